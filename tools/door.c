// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Generic netlink requests, dumps and events of ib_repath.ko. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include "args.h"
#include "door.h"

#define DUMP_ATTEMPTS	10
#define EVENT_BUFFER	(1 << 20)
#define WAIT_LOOK_MS	1000

struct door {
	struct nl_sock *sock;
	struct nl_sock *events;
	int family;
	char error[512];
};

/* So that nobody reads beyond a short attribute, whatever module this is. */
static struct nla_policy policy[REPATH_A_MAX + 1] = {
	[REPATH_A_VERSION]	= { .type = NLA_STRING },
	[REPATH_A_ABI_VERSION]	= { .type = NLA_U32 },
	[REPATH_A_QP]		= { .type = NLA_NESTED },
	[REPATH_A_PROCESS]	= { .type = NLA_NESTED },
	[REPATH_A_DEVICE]	= { .type = NLA_NESTED },
	[REPATH_A_CONN]		= { .type = NLA_NESTED },
	[REPATH_A_OP]		= { .type = NLA_NESTED },
	[REPATH_A_OP_PROC]	= { .type = NLA_NESTED },
	[REPATH_A_DEV_INDEX]	= { .type = NLA_U32 },
	[REPATH_A_DEV_NAME]	= { .type = NLA_STRING },
	[REPATH_A_OLD_DEV_NAME]	= { .type = NLA_STRING },
	[REPATH_A_PORT]		= { .type = NLA_U32 },
	[REPATH_A_PID]		= { .type = NLA_U32 },
	[REPATH_A_COMM]		= { .type = NLA_STRING },
	[REPATH_A_QPN]		= { .type = NLA_U32 },
	[REPATH_A_QP_TYPE]	= { .type = NLA_U8 },
	[REPATH_A_QP_STATE]	= { .type = NLA_U8 },
	[REPATH_A_DEST_QPN]	= { .type = NLA_U32 },
	[REPATH_A_DLID]		= { .type = NLA_U32 },
	[REPATH_A_SLID]		= { .type = NLA_U32 },
	[REPATH_A_DGID]		= { .type = NLA_UNSPEC, .minlen = 16 },
	[REPATH_A_SGID_INDEX]	= { .type = NLA_U32 },
	[REPATH_A_SL]		= { .type = NLA_U8 },
	[REPATH_A_PATH_MTU]	= { .type = NLA_U8 },
	[REPATH_A_NODE_GUID]	= { .type = NLA_U64 },
	[REPATH_A_PORTS]	= { .type = NLA_U32 },
	[REPATH_A_LINK_LAYER]	= { .type = NLA_U8 },
	[REPATH_A_QP_COUNT]	= { .type = NLA_U32 },
	[REPATH_A_CTX_COUNT]	= { .type = NLA_U32 },
	[REPATH_A_PROC_COUNT]	= { .type = NLA_U32 },
	[REPATH_A_CONN_COUNT]	= { .type = NLA_U32 },
	[REPATH_A_CONN_MOVING]	= { .type = NLA_U32 },
	[REPATH_A_CONN_ID]	= { .type = NLA_U32 },
	[REPATH_A_CONN_STATE]	= { .type = NLA_U8 },
	[REPATH_A_PEER_ID]	= { .type = NLA_U32 },
	[REPATH_A_OP_ID]	= { .type = NLA_U32 },
	[REPATH_A_OP_KIND]	= { .type = NLA_U8 },
	[REPATH_A_OP_STATE]	= { .type = NLA_U8 },
	[REPATH_A_OP_STAGE]	= { .type = NLA_U8 },
	[REPATH_A_STAGE_NS]	= { .type = NLA_NESTED },
	[REPATH_A_NS]		= { .type = NLA_U64 },
	[REPATH_A_STARTED_NS]	= { .type = NLA_U64 },
	[REPATH_A_TIMEOUT_MS]	= { .type = NLA_U32 },
	[REPATH_A_ERRNO]	= { .type = NLA_U32 },
	[REPATH_A_REASON]	= { .type = NLA_STRING },
	[REPATH_A_COUNTERS]	= { .type = NLA_UNSPEC, .minlen = sizeof(struct repath_counters) },
	[REPATH_A_EV_ACTION]	= { .type = NLA_U8 },
	[REPATH_A_PKEY_INDEX]	= { .type = NLA_U32 },
	[REPATH_A_PKEY]		= { .type = NLA_U32 },
	[REPATH_A_RATE]		= { .type = NLA_U8 },
	[REPATH_A_TCLASS]	= { .type = NLA_U8 },
	[REPATH_A_MIG_STATE]	= { .type = NLA_U8 },
	[REPATH_A_ALT_PATH]	= { .type = NLA_NESTED },
	[REPATH_A_CREATED_NS]	= { .type = NLA_U64 },
	[REPATH_A_ADOPTION]	= { .type = NLA_NESTED },
	[REPATH_A_ADOPTED_QPS]	= { .type = NLA_U32 },
	[REPATH_A_ADOPTED_CTXS]	= { .type = NLA_U32 },
	[REPATH_A_CORRECTED]	= { .type = NLA_U32 },
	[REPATH_A_SWEPT]	= { .type = NLA_U32 },
	[REPATH_A_MISSING_QPS]	= { .type = NLA_U32 },
	[REPATH_A_MISSING_CTXS]	= { .type = NLA_U32 },
	[REPATH_A_STATS]	= { .type = NLA_NESTED },
	[REPATH_A_COUNTS]	= { .type = NLA_NESTED },
	[REPATH_A_COUNT]	= { .type = NLA_U32 },
	[REPATH_A_MOVE]		= { .type = NLA_NESTED },
	[REPATH_A_MOVE_STATE]	= { .type = NLA_U8 },
	[REPATH_A_MOVED_BY]	= { .type = NLA_U8 },
	[REPATH_A_SINCE_NS]	= { .type = NLA_U64 },
	[REPATH_A_REROUTE]	= { .type = NLA_U8 },
	[REPATH_A_PATH]		= { .type = NLA_NESTED },
	[REPATH_A_SM]		= { .type = NLA_NESTED },
	[REPATH_A_LEARNT_NS]	= { .type = NLA_U64 },
	[REPATH_A_PATH_SOURCE]	= { .type = NLA_U8 },
	[REPATH_A_SM_STATE]	= { .type = NLA_U8 },
	[REPATH_A_SM_LID]	= { .type = NLA_U32 },
};

const char *door_error(const struct door *door)
{
	return door->error;
}

int door_exit_status(int err)
{
	if (!err)
		return 0;
	if (err == -EBUSY)
		return EXIT_REFUSED;
	return err == -EPERM || err == -EACCES || err == -EPROTONOSUPPORT ? EXIT_NO_DOOR :
									     EXIT_FAILED;
}

/* @words: the module's, or NULL. What to do next is said where it is known for any request. */
static int explain(struct door *door, int err, const char *words)
{
	const char *hint = "";

	if (err == -EPERM || err == -EACCES)
		hint = " (this needs CAP_NET_ADMIN: run it as root)";
	else if (err == -ENODEV && !words)
		hint = " ('repath device' lists the devices)";
	snprintf(door->error, sizeof(door->error), "%s%s", words ? words : strerror(-err), hint);
	return err;
}

static int explain_libnl(struct door *door, int nlerr, const char *what)
{
	snprintf(door->error, sizeof(door->error), "%s: %s", what, nl_geterror(nlerr));
	return nlerr == -NLE_NOMEM ? -ENOMEM : -EIO;
}

static struct nl_sock *open_socket(void)
{
	struct nl_sock *sock = nl_socket_alloc();
	int one = 1;

	if (!sock)
		return NULL;
	if (genl_connect(sock)) {
		nl_socket_free(sock);
		return NULL;
	}
	nl_socket_enable_msg_peek(sock);
	/* Older kernels lack these: then errors are numbers only, and strictness is theirs. */
	setsockopt(nl_socket_get_fd(sock), SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(nl_socket_get_fd(sock), SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	setsockopt(nl_socket_get_fd(sock), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
	return sock;
}

struct door *door_new(void)
{
	struct door *door = calloc(1, sizeof(*door));

	if (!door)
		abort();
	return door;
}

/* Opens the door when something is to go through it. */
static int open_door(struct door *door)
{
	door->error[0] = 0;
	if (door->sock)
		return 0;
	door->sock = open_socket();
	if (!door->sock) {
		snprintf(door->error, sizeof(door->error), "cannot open a netlink socket: %s",
			 strerror(errno));
		return -EPROTONOSUPPORT;
	}
	door->family = genl_ctrl_resolve(door->sock, REPATH_GENL_NAME);
	if (door->family >= 0)
		return 0;
	nl_socket_free(door->sock);
	door->sock = NULL;
	snprintf(door->error, sizeof(door->error),
		 "the kernel has no \"%s\" netlink family: 'modprobe ib_repath' first",
		 REPATH_GENL_NAME);
	/* Not ENOENT: that is what an operation that is not there gives. */
	return -EPROTONOSUPPORT;
}

void door_close(struct door *door)
{
	if (!door)
		return;
	nl_socket_free(door->events);
	nl_socket_free(door->sock);
	free(door);
}

struct nl_msg *door_request(uint8_t cmd)
{
	struct nl_msg *msg = nlmsg_alloc();

	/* The family's number is filled in when the message goes out. */
	if (!msg || !genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, 0, 0, 0, cmd,
				 REPATH_GENL_VERSION))
		abort();
	return msg;
}

/* The extack string that follows @skip bytes of payload, or NULL. */
static const char *extack(struct nlmsghdr *h, size_t skip)
{
	struct nlattr *tb[NLMSGERR_ATTR_MAX + 1];
	static const struct nla_policy ack_policy[NLMSGERR_ATTR_MAX + 1] = {
		[NLMSGERR_ATTR_MSG] = { .type = NLA_NUL_STRING },
	};
	size_t left = nlmsg_datalen(h);

	if (!(h->nlmsg_flags & NLM_F_ACK_TLVS) || skip > left)
		return NULL;
	if (nla_parse(tb, NLMSGERR_ATTR_MAX, (struct nlattr *)((char *)nlmsg_data(h) + skip),
		      left - skip, (struct nla_policy *)ack_policy) < 0)
		return NULL;
	return tb[NLMSGERR_ATTR_MSG] ? nla_get_string(tb[NLMSGERR_ATTR_MSG]) : NULL;
}

static int explain_ack(struct door *door, struct nlmsghdr *h)
{
	struct nlmsgerr *e = nlmsg_data(h);
	size_t skip = sizeof(*e);

	if (nlmsg_datalen(h) < (int)sizeof(*e))
		return explain(door, -EBADMSG, NULL);
	if (!e->error)
		return 0;
	if (!(h->nlmsg_flags & NLM_F_CAPPED))
		skip += NLMSG_ALIGN(e->msg.nlmsg_len) - NLMSG_HDRLEN;
	return explain(door, e->error, extack(h, skip));
}

static int explain_done(struct door *door, struct nlmsghdr *h)
{
	int err = 0;

	if (nlmsg_datalen(h) >= (int)sizeof(err))
		memcpy(&err, nlmsg_data(h), sizeof(err));
	return err < 0 ? explain(door, err, extack(h, sizeof(err))) : 0;
}

static void deliver(struct door *door, struct nlmsghdr *h, door_msg_fn fn, void *arg)
{
	struct nlattr *tb[REPATH_A_MAX + 1];

	if (!fn || h->nlmsg_type != door->family)
		return;
	if (genlmsg_parse(h, 0, tb, REPATH_A_MAX, policy) < 0)
		return;
	fn(((struct genlmsghdr *)nlmsg_data(h))->cmd, tb, arg);
}

/* Kept answers of a dump, until it is known that the dump is consistent. */
struct kept {
	struct nlmsghdr **msgs;
	size_t n;
};

static void keep(struct kept *kept, struct nlmsghdr *h)
{
	struct nlmsghdr *copy = malloc(h->nlmsg_len);
	struct nlmsghdr **msgs = realloc(kept->msgs, (kept->n + 1) * sizeof(*msgs));

	if (!copy || !msgs)
		abort();
	memcpy(copy, h, h->nlmsg_len);
	kept->msgs = msgs;
	kept->msgs[kept->n++] = copy;
}

static void drop(struct kept *kept)
{
	for (size_t i = 0; i < kept->n; i++)
		free(kept->msgs[i]);
	free(kept->msgs);
	*kept = (struct kept){ 0 };
}

/* Takes answers to the request @seq until its acknowledgement or end. 1: the dump is torn. */
static int collect(struct door *door, struct nl_sock *sock, uint32_t seq, struct kept *kept)
{
	bool torn = false;

	for (;;) {
		struct sockaddr_nl from;
		unsigned char *buf = NULL;
		struct nlmsghdr *h;
		int n = nl_recv(sock, &from, &buf, NULL);

		if (n == 0 || n == -NLE_INTR || n == -NLE_AGAIN)
			continue;
		if (n < 0)
			return explain_libnl(door, n, "reading from the kernel");
		for (h = (struct nlmsghdr *)buf; nlmsg_ok(h, n); h = nlmsg_next(h, &n)) {
			int ret = 0;
			bool end = false;

			if (from.nl_pid || h->nlmsg_seq != seq)
				continue;
			if (h->nlmsg_flags & NLM_F_DUMP_INTR)
				torn = true;
			if (h->nlmsg_type == NLMSG_ERROR) {
				ret = explain_ack(door, h);
				end = true;
			} else if (h->nlmsg_type == NLMSG_DONE) {
				ret = explain_done(door, h);
				end = true;
			} else {
				keep(kept, h);
			}
			if (end) {
				free(buf);
				return ret ? ret : torn;
			}
		}
		free(buf);
	}
}

/* By a socket of the open door; @msg stays the caller's. */
static int transact_by(struct door *door, struct nl_sock *sock, struct nl_msg *msg, struct kept *kept)
{
	struct nlmsghdr *h = nlmsg_hdr(msg);
	int ret;

	h->nlmsg_type = door->family;
	h->nlmsg_seq = NL_AUTO_SEQ;
	nl_complete_msg(sock, msg);
	ret = nl_send(sock, msg);
	if (ret < 0)
		return explain_libnl(door, ret, "sending to the kernel");
	return collect(door, sock, h->nlmsg_seq, kept);
}

static int transact(struct door *door, struct nl_msg *msg, struct kept *kept)
{
	int ret = open_door(door);

	return ret ? ret : transact_by(door, door->sock, msg, kept);
}

int door_do(struct door *door, struct nl_msg *msg, door_msg_fn fn, void *arg)
{
	struct kept kept = { 0 };
	int ret;

	nlmsg_hdr(msg)->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	ret = transact(door, msg, &kept);
	for (size_t i = 0; ret >= 0 && i < kept.n; i++)
		deliver(door, kept.msgs[i], fn, arg);
	drop(&kept);
	nlmsg_free(msg);
	return ret < 0 ? ret : 0;
}

int door_dump(struct door *door, struct nl_msg *msg, door_msg_fn fn, void *arg)
{
	struct kept kept = { 0 };
	int ret;

	nlmsg_hdr(msg)->nlmsg_flags |= NLM_F_REQUEST | NLM_F_DUMP;
	for (int i = 0; i < DUMP_ATTEMPTS; i++) {
		drop(&kept);
		ret = transact(door, msg, &kept);
		if (ret != 1)
			break;
	}
	/* Still torn on a busy host: each entry is right, some may be missing or twice. */
	if (ret == 1)
		fprintf(stderr, "repath: the list changed while it was read\n");
	for (size_t i = 0; ret >= 0 && i < kept.n; i++)
		deliver(door, kept.msgs[i], fn, arg);
	drop(&kept);
	nlmsg_free(msg);
	return ret < 0 ? ret : 0;
}

/* Joins the group in which the kernel says that families of generic netlink come and go. */
static int join_notify(struct door *door, struct nl_sock *sock)
{
	int group = genl_ctrl_resolve_grp(sock, "nlctrl", "notify");

	if (group >= 0)
		group = nl_socket_add_membership(sock, group);
	return group < 0 ? explain_libnl(door, group, "joining the group \"notify\"") : 0;
}

/* A socket for events, which hears when the module goes. */
static int open_events(struct door *door)
{
	door->events = open_socket();
	if (!door->events)
		return explain(door, -errno, NULL);
	nl_socket_set_buffer_size(door->events, EVENT_BUFFER, 0);
	/* First, since it asks by this socket: no event may come before the answer. */
	return join_notify(door, door->events);
}

int door_listen(struct door *door, const char *name)
{
	int ret = open_door(door), group;

	if (ret)
		return ret;
	group = genl_ctrl_resolve_grp(door->sock, REPATH_GENL_NAME, name);
	if (group < 0)
		return explain_libnl(door, group, "looking up the multicast group");
	ret = open_events(door);
	if (ret)
		return ret;
	nl_socket_set_nonblocking(door->events);
	ret = nl_socket_add_membership(door->events, group);
	return ret ? explain_libnl(door, ret, "joining the multicast group") : 0;
}

int door_listen_all(struct door *door)
{
	struct nl_msg *msg = door_request(REPATH_CMD_LISTEN);
	struct kept kept = { 0 };
	int ret = open_door(door);

	if (!ret)
		ret = open_events(door);
	if (!ret) {
		nlmsg_hdr(msg)->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
		/* An event that comes before the answer is of before we listened. */
		ret = transact_by(door, door->events, msg, &kept);
		if (ret == -ENOENT)	/* the family that we looked up is no more */
			ret = explain(door, -ENODEV, "the module was unloaded");
		nl_socket_set_nonblocking(door->events);
	}
	drop(&kept);
	nlmsg_free(msg);
	return ret;
}

int door_wait(struct door *door)
{
	struct nl_sock *notify = open_socket();
	struct pollfd fd;
	int ret;

	nl_socket_free(door->events);
	nl_socket_free(door->sock);
	door->events = door->sock = NULL;
	if (!notify)
		return explain(door, -errno, NULL);
	nl_socket_set_nonblocking(notify);
	ret = join_notify(door, notify);
	fd = (struct pollfd){ .fd = nl_socket_get_fd(notify), .events = POLLIN };
	while (!ret && open_door(door)) {
		unsigned char *buf = NULL;
		struct sockaddr_nl from;

		/* Families come and go seldom: whichever it was, ours is looked for again. */
		if (poll(&fd, 1, WAIT_LOOK_MS) > 0 && nl_recv(notify, &from, &buf, NULL) > 0)
			free(buf);
	}
	nl_socket_free(notify);
	return ret;
}

int door_event_fd(const struct door *door)
{
	return nl_socket_get_fd(door->events);
}

/* Does the kernel say that our family is no more? */
static bool says_unloaded(struct door *door, struct nlmsghdr *h)
{
	static struct nla_policy ctrl_policy[CTRL_ATTR_MAX + 1] = {
		[CTRL_ATTR_FAMILY_ID] = { .type = NLA_U16 },
	};
	struct nlattr *tb[CTRL_ATTR_MAX + 1];

	return h->nlmsg_type == GENL_ID_CTRL && genlmsg_valid_hdr(h, 0) &&
	       ((struct genlmsghdr *)nlmsg_data(h))->cmd == CTRL_CMD_DELFAMILY &&
	       !genlmsg_parse(h, 0, tb, CTRL_ATTR_MAX, ctrl_policy) &&
	       tb[CTRL_ATTR_FAMILY_ID] && nla_get_u16(tb[CTRL_ATTR_FAMILY_ID]) == door->family;
}

int door_events(struct door *door, door_msg_fn fn, void *arg)
{
	bool unloaded = false, lost = false;

	for (;;) {
		struct sockaddr_nl from;
		unsigned char *buf = NULL;
		struct nlmsghdr *h;
		int n = nl_recv(door->events, &from, &buf, NULL);

		if (n == 0 || n == -NLE_AGAIN)
			return unloaded ? explain(door, -ENODEV, "the module was unloaded") :
			       lost ? -ENOBUFS : 0;
		if (n == -NLE_INTR)
			continue;
		if (n == -NLE_NOMEM) {
			/*
			 * The buffer was full. Until it is empty more is lost, and what is in it is of
			 * before the loss: who asks for all that there is after this misses nothing.
			 */
			lost = true;
			continue;
		}
		if (n < 0)
			return explain_libnl(door, n, "reading events");
		for (h = (struct nlmsghdr *)buf; nlmsg_ok(h, n); h = nlmsg_next(h, &n))
			if (!from.nl_pid) {
				if (!lost)
					deliver(door, h, fn, arg);
				unloaded |= says_unloaded(door, h);
			}
		free(buf);
	}
}

void door_nest(struct nlattr *nest, struct nlattr **tb)
{
	if (nla_parse_nested(tb, REPATH_A_MAX, nest, policy) < 0)
		memset(tb, 0, sizeof(*tb) * (REPATH_A_MAX + 1));
}
