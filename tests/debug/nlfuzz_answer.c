// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What comes back: each message has to be whole, of this family, and in its place. */
#include <errno.h>
#include <linux/genetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "nlfuzz.h"

#define FIRST_KERNEL_ONLY 512	/* errnos from here on are not for programs */

const enum kind kinds[ATTRS_MAX] = {
#include "nlfuzz_types.h"
};

static const unsigned int kind_len[] = {
	[KIND_u8] = 1, [KIND_u16] = 2, [KIND_u32] = 4, [KIND_u64] = 8, [KIND_16] = 16,
};

static void check_attrs(const unsigned char *data, size_t len, unsigned int cmd, int depth);

static void check_counts(const unsigned char *data, size_t len, unsigned int cmd)
{
	struct nlattr nla;

	for (; len >= NLA_HDRLEN; data += NLA_ALIGN(nla.nla_len), len -= NLA_ALIGN(nla.nla_len)) {
		memcpy(&nla, data, sizeof(nla));
		if (nla.nla_len == NLA_HDRLEN)  /* padding before a u64 */
			continue;
		if (nla.nla_len != NLA_HDRLEN + 8 || nla.nla_len > len)
			wrong("answer to %u: a count of %u bytes", cmd, nla.nla_len);
	}
	if (len)
		wrong("answer to %u: counts end in %zu bytes", cmd, len);
}

static void check_value(uint16_t attr, const unsigned char *data, size_t len, unsigned int cmd,
			int depth)
{
	switch (kinds[attr]) {
	case KIND_none:
		wrong("answer to %u: attribute %u, which the header does not have", cmd, attr);
	case KIND_string:
		if (!len || data[len - 1] || memchr(data, 0, len) != data + len - 1)
			wrong("answer to %u: attribute %u is no string", cmd, attr);
		break;
	case KIND_nest:
		check_attrs(data, len, cmd, depth + 1);
		return;
	case KIND_counts:
		check_counts(data, len, cmd);
		return;
	case KIND_flag:
		if (len)
			wrong("answer to %u: flag %u has %zu bytes", cmd, attr, len);
		return;
	case KIND_binary:
		return;
	default:
		if (len != kind_len[kinds[attr]])
			wrong("answer to %u: attribute %u has %zu bytes", cmd, attr, len);
	}
	learn(attr, data, len);
}

static void check_attrs(const unsigned char *data, size_t len, unsigned int cmd, int depth)
{
	struct nlattr nla;
	uint16_t attr;

	if (depth > 8)
		wrong("answer to %u: nested without end", cmd);
	while (len >= NLA_HDRLEN) {
		size_t whole;

		memcpy(&nla, data, sizeof(nla));
		if (nla.nla_len < NLA_HDRLEN || nla.nla_len > len)
			wrong("answer to %u: an attribute of %u bytes where %zu are left", cmd,
			      nla.nla_len, len);
		attr = nla.nla_type & NLA_TYPE_MASK;
		if (attr >= ATTRS_MAX || attr > REPATH_A_MAX || !attr)
			wrong("answer to %u: attribute %u", cmd, attr);
		if (attr != REPATH_A_PAD)
			check_value(attr, data + NLA_HDRLEN, nla.nla_len - NLA_HDRLEN, cmd, depth);
		whole = NLA_ALIGN(nla.nla_len);
		if (whole > len)
			whole = len;
		data += whole;
		len -= whole;
	}
	if (len)
		wrong("answer to %u: %zu bytes after the last attribute", cmd, len);
}

static struct request *request_of(struct datagram *dg, uint32_t seq)
{
	for (unsigned int i = 0; i < dg->nrequests; i++)
		if (dg->requests[i].seq == seq)
			return dg->requests + i;
	return NULL;
}

static bool is_admins(uint8_t cmd)
{
	return cmd == REPATH_CMD_SUSPEND || cmd == REPATH_CMD_RESUME || cmd == REPATH_CMD_ABORT;
}

static void check_end(struct datagram *dg, const struct nlmsghdr *nlh, int error)
{
	struct request *rq = request_of(dg, nlh->nlmsg_seq);

	if (error > 0 || error <= -FIRST_KERNEL_ONLY)
		wrong("request %u ends with %d", rq ? rq->cmd : 0, error);
	if (!rq)
		return;         /* of noise, or of a dump that another datagram began */
	rq->owed = false;
	if (error) {
		tally.refused[rq->cmd]++;
		tally.errors[-error]++;
		return;
	}
	tally.done[rq->cmd]++;
	if (unprivileged && is_admins(rq->cmd))
		wrong("command %u was done for somebody without CAP_NET_ADMIN", rq->cmd);
}

/* What an error says besides its number. */
static void check_extack(const struct nlmsghdr *nlh, const struct nlmsgerr *error)
{
	size_t at = NLMSG_HDRLEN + sizeof(*error), len;
	const unsigned char *data;
	struct nlattr nla;

	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		at += NLMSG_ALIGN(error->msg.nlmsg_len) - NLMSG_HDRLEN;
	for (; at + NLA_HDRLEN <= nlh->nlmsg_len; at += NLA_ALIGN(nla.nla_len)) {
		data = (const unsigned char *)nlh + at;
		memcpy(&nla, data, sizeof(nla));
		len = nla.nla_len - NLA_HDRLEN;
		if (nla.nla_len < NLA_HDRLEN || at + nla.nla_len > nlh->nlmsg_len)
			wrong("an extended error that is cut off");
		data += NLA_HDRLEN;
		if ((nla.nla_type & NLA_TYPE_MASK) == NLMSGERR_ATTR_MSG &&
		    (!len || data[len - 1] || data[0] < ' '))
			wrong("an extended error that is no text");
	}
}

static void check_message(struct datagram *dg, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *error = NLMSG_DATA(nlh);
	const struct genlmsghdr *genl = NLMSG_DATA(nlh);
	int status = 0;

	if (nlh->nlmsg_type == NLMSG_ERROR) {
		if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*error)))
			wrong("an error of %u bytes", nlh->nlmsg_len);
		if (nlh->nlmsg_flags & NLM_F_ACK_TLVS)
			check_extack(nlh, error);
		check_end(dg, nlh, error->error);
	} else if (nlh->nlmsg_type == NLMSG_DONE) {
		if (nlh->nlmsg_len >= NLMSG_LENGTH(sizeof(status)))
			memcpy(&status, NLMSG_DATA(nlh), sizeof(status));
		check_end(dg, nlh, status);
	} else if (nlh->nlmsg_type == family.id) {
		if (nlh->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
			wrong("a message of %u bytes", nlh->nlmsg_len);
		if (!nlh->nlmsg_seq)
			tally.events++;
		check_attrs((const unsigned char *)genl + GENL_HDRLEN,
			    nlh->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), genl->cmd, 0);
	} else {
		wrong("a message of type %u", nlh->nlmsg_type);
	}
}

void read_answers(int fd, struct datagram *dg)
{
	_Alignas(8) static unsigned char buffer[1 << 18];
	bool lost = false;
	ssize_t len;

	for (;;) {
		struct nlmsghdr *nlh = (struct nlmsghdr *)buffer;
		size_t left;

		len = recv(fd, buffer, sizeof(buffer), MSG_TRUNC);
		if (len < 0 && errno == EAGAIN)
			break;
		if (len < 0 && errno == ENOBUFS) {
			tally.lost++;
			lost = true;
			continue;
		}
		if (len < 0 || (size_t)len > sizeof(buffer))
			wrong("recv: %zd bytes, %s", len, strerror(errno));
		for (left = len; left >= NLMSG_HDRLEN;) {
			size_t whole = NLMSG_ALIGN(nlh->nlmsg_len);

			if (nlh->nlmsg_len < NLMSG_HDRLEN || nlh->nlmsg_len > left)
				wrong("a message of %u bytes where %zu are left", nlh->nlmsg_len,
				      left);
			check_message(dg, nlh);
			left -= whole < left ? whole : left;
			nlh = (struct nlmsghdr *)((unsigned char *)nlh + whole);
		}
		if (left)
			wrong("%zu bytes after the last message", left);
	}
	for (unsigned int i = 0; i < dg->nrequests && !lost; i++)
		if (dg->requests[i].owed)
			wrong("request %u of command %u was never answered", dg->requests[i].seq,
			      dg->requests[i].cmd);
}
