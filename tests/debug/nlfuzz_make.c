// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is sent: requests that obey the policy, with values heard in answers; the same with bytes
 * turned; and noise. Its values make the difference: a number that the module has just told opens
 * doors that a random one never finds.
 */
#include <string.h>

#include "nlfuzz.h"
#include "../../include/repath_peer.h"

#define HEARD_MAX	8	/* values that are kept of each attribute */
#define VALUE_MAX	64	/* bytes of one */

static struct {
	unsigned char data[HEARD_MAX][VALUE_MAX];
	uint8_t len[HEARD_MAX];
	unsigned int n;
} heard[ATTRS_MAX];

void learn(uint16_t attr, const void *data, size_t len)
{
	unsigned int at;

	if (attr >= ATTRS_MAX || !len || len > VALUE_MAX)
		return;
	at = heard[attr].n < HEARD_MAX ? heard[attr].n++ : below(HEARD_MAX);
	memcpy(heard[attr].data[at], data, len);
	heard[attr].len[at] = len;
}

static size_t room(const struct datagram *dg)
{
	return sizeof(dg->data) - dg->len;
}

static void noise(void *to, size_t len)
{
	unsigned char *p = to;

	while (len--)
		*p++ = below(256);
}

static void put_attr(struct datagram *dg, uint16_t type, const void *data, size_t len)
{
	struct nlattr nla = { .nla_len = NLA_HDRLEN + len, .nla_type = type };
	size_t whole = NLA_ALIGN(nla.nla_len);

	if (whole > room(dg) || nla.nla_len < len)
		return;
	memset(dg->data + dg->len, 0, whole);
	memcpy(dg->data + dg->len, &nla, sizeof(nla));
	if (data)
		memcpy(dg->data + dg->len + NLA_HDRLEN, data, len);
	else
		noise(dg->data + dg->len + NLA_HDRLEN, len);
	dg->len += whole;
}

/* One of those heard: bytes, 0 if there is none. */
static size_t recall(uint16_t attr, void *to, size_t len)
{
	unsigned int at;

	if (!heard[attr].n)
		return 0;
	at = below(heard[attr].n);
	if (heard[attr].len[at] > len)
		return 0;
	memcpy(to, heard[attr].data[at], heard[attr].len[at]);
	return heard[attr].len[at];
}

/* Records of the process's own connections, now and then of nobody's. */
static void put_conns(struct datagram *dg)
{
	struct repath_conn_rec recs[64];
	unsigned int n = below(8) ? 1 + below(2) : below(64);

	for (unsigned int i = 0; i < n; i++) {
		noise(recs + i, sizeof(recs[i]));
		recall(REPATH_A_CONN_ID, &recs[i].conn_id, sizeof(recs[i].conn_id));
		recall(REPATH_A_QPN, &recs[i].qpn, sizeof(recs[i].qpn));
		if (below(4))
			recs[i].flags &= 0xff;
	}
	put_attr(dg, REPATH_A_CONNS, recs, n * sizeof(recs[0]) + (below(16) ? 0 : below(40)));
}

static uint64_t number(const struct attr_policy *policy, unsigned int bits)
{
	uint64_t most = bits == 64 ? UINT64_MAX : (1ULL << bits) - 1;
	uint64_t max = policy->max < most ? policy->max : most;

	switch (below(8)) {
	case 0:
		return policy->min;
	case 1:
		return max;
	case 2:
		return policy->min - 1;
	case 3:
		return max + 1;
	case 4:
		return ((uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX)) & most;
	default:
		return policy->min + below(max - policy->min < 16 ? max - policy->min + 1 : 16);
	}
}

static void put_valid(struct datagram *dg, uint16_t attr, const struct attr_policy *policy)
{
	unsigned char value[VALUE_MAX];
	uint64_t n;
	size_t len;

	if (attr == REPATH_A_CONNS) {
		put_conns(dg);
		return;
	}
	if (attr == REPATH_A_ABI_VERSION && below(8)) {
		n = REPATH_ABI_VERSION;
		put_attr(dg, attr, &n, 4);
		return;
	}
	if (attr == REPATH_A_MSG_ID && below(8)) {      /* few, so that they are met again */
		n = below(4);
		put_attr(dg, attr, &n, 8);
		return;
	}
	if (policy->type != NL_ATTR_TYPE_FLAG && below(4)) {
		/* What was suspended is the name of a device. */
		len = recall(attr == REPATH_A_OLD_DEV_NAME ? REPATH_A_DEV_NAME : attr, value,
			     sizeof(value));
		if (len) {
			put_attr(dg, attr, value, len);
			return;
		}
	}
	switch (policy->type) {
	case NL_ATTR_TYPE_FLAG:
		put_attr(dg, attr, "", 0);
		break;
	case NL_ATTR_TYPE_U8:
		n = number(policy, 8);
		put_attr(dg, attr, &n, 1);
		break;
	case NL_ATTR_TYPE_U16:
		n = number(policy, 16);
		put_attr(dg, attr, &n, 2);
		break;
	case NL_ATTR_TYPE_U32:
		n = number(policy, 32);
		put_attr(dg, attr, &n, 4);
		break;
	case NL_ATTR_TYPE_U64:
		n = number(policy, 64);
		put_attr(dg, attr, &n, 8);
		break;
	case NL_ATTR_TYPE_STRING:
	case NL_ATTR_TYPE_NUL_STRING:
		len = 1 + below(policy->max < 300 ? policy->max + 2 : 300);
		put_attr(dg, attr, NULL, len);
		if (below(4))
			dg->data[dg->len - NLA_ALIGN(len) + len - 1] = 0;
		break;
	default:
		len = policy->max < 40000 ? policy->max : 40000;
		len = below(4) ? policy->min + below(64) : below(len + 16);
		put_attr(dg, attr, NULL, len);
	}
}

static void put_random(struct datagram *dg)
{
	put_attr(dg, below(8) ? below(REPATH_A_MAX + 8) : below(65536), NULL,
		 below(4) ? below(20) : below(600));
}

/* How often a command is chosen beside others: those that end things must not be all there is. */
static unsigned int choose_op(void)
{
	unsigned int op;

	for (;;) {
		op = below(family.nops);
		if (family.ops[op] == REPATH_CMD_PEER_SEND || family.ops[op] == REPATH_CMD_REPLY ||
		    below(2))
			return op;
	}
}

/* Attributes of one request: @op < 0 has no policy. */
static void put_attrs(struct datagram *dg, int op)
{
	unsigned int likely = 1 + below(8);

	if (op < 0 || !below(12)) {
		for (unsigned int i = below(6); i; i--)
			put_random(dg);
		return;
	}
	for (unsigned int attr = 1; attr < ATTRS_MAX; attr++)
		/* What takes many attributes is refused unless all are there: mostly they are. */
		if (family.policy[op][attr].type && below(likely + 1))
			put_valid(dg, attr, &family.policy[op][attr]);
	if (!below(16))
		put_random(dg);
}

/* Turn bytes anywhere but in the header @at, which says what is owed for it. */
static void mutate(struct datagram *dg, size_t at)
{
	size_t from = at + NLMSG_HDRLEN + GENL_HDRLEN, len = dg->len - from;
	struct nlattr *nla;

	if (len < NLA_HDRLEN)
		return;
	for (unsigned int i = 1 + below(4); i; i--)
		switch (below(4)) {
		case 0:
			dg->data[from + below(len)] ^= 1 << below(8);
			break;
		case 1:
			dg->data[from + below(len)] = below(2) ? 0xff : 0;
			break;
		case 2:
			nla = (struct nlattr *)(dg->data + from);
			nla->nla_len = below(2) ? below(65536) : nla->nla_len + below(9) - 4;
			break;
		default:
			nla = (struct nlattr *)(dg->data + from);
			nla->nla_type ^= below(2) ? NLA_F_NESTED : NLA_F_NET_BYTEORDER;
		}
}

static void put_message(struct datagram *dg, uint32_t seq)
{
	int op = below(40) ? (int)choose_op() : -1;
	struct nlmsghdr nlh = {
		.nlmsg_type = family.id,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.nlmsg_seq = seq,
	};
	struct genlmsghdr genl = {
		.cmd = op < 0 ? below(256) : family.ops[op],
		.version = below(20) ? REPATH_GENL_VERSION : below(256),
	};
	size_t at = dg->len;

	if (op >= 0 && (family.flags[op] & GENL_CMD_CAP_DUMP) &&
	    (!(family.flags[op] & GENL_CMD_CAP_DO) || below(2)))
		nlh.nlmsg_flags |= NLM_F_DUMP;
	if (!below(30))
		nlh.nlmsg_flags ^= 1 << (1 + below(15));
	genl.reserved = below(50) ? 0 : below(65536);
	dg->len += NLMSG_HDRLEN + GENL_HDRLEN;
	memcpy(dg->data + at + NLMSG_HDRLEN, &genl, sizeof(genl));
	put_attrs(dg, op);
	if (!below(3))
		mutate(dg, at);
	if (!below(30) && dg->len - at > NLMSG_HDRLEN + GENL_HDRLEN)    /* cut off */
		dg->len = at + NLMSG_ALIGN(NLMSG_HDRLEN + GENL_HDRLEN + below(dg->len - at - 20));
	nlh.nlmsg_len = dg->len - at;
	memcpy(dg->data + at, &nlh, sizeof(nlh));
	dg->requests[dg->nrequests++] = (struct request){
		.seq = seq,
		.cmd = genl.cmd,
		.owed = nlh.nlmsg_flags & (NLM_F_ACK | NLM_F_ROOT | NLM_F_MATCH),
	};
}

/* FORCE, by intention or chance, kills those that have queue pairs. */
static void spare(struct datagram *dg)
{
	struct nlattr nla;

	for (size_t at = 0; at + NLA_HDRLEN <= dg->len; at += NLA_ALIGNTO) {
		memcpy(&nla, dg->data + at, sizeof(nla));
		if (nla.nla_len == NLA_HDRLEN && (nla.nla_type & NLA_TYPE_MASK) == REPATH_A_FORCE)
			nla.nla_type ^= REPATH_A_FORCE ^ REPATH_A_DRY_RUN;
		memcpy(dg->data + at, &nla, sizeof(nla));
	}
}

void make_datagram(struct datagram *dg, uint32_t *seq)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)dg->data;

	dg->len = 0;
	dg->nrequests = 0;
	if (!below(50)) {       /* noise, whose type is no other family's */
		dg->len = NLMSG_HDRLEN + below(400);
		noise(dg->data, dg->len);
		nlh->nlmsg_type = below(4) ? family.id : below(NLMSG_MIN_TYPE);
		if (below(2))
			nlh->nlmsg_len = dg->len;
		return;
	}
	for (unsigned int n = below(10) ? 1 : 1 + below(BATCH_MAX); n; n--)
		if (room(dg) > DATAGRAM_MAX / 2)
			put_message(dg, ++*seq);
	if (!force)
		spare(dg);
	if (!below(60)) {       /* a header that lies: nothing is owed */
		nlh->nlmsg_len = below(2) ? below(dg->len + 40) : below(UINT32_MAX);
		dg->nrequests = 0;
	}
}
