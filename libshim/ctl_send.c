// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the module is told and asked. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "ctl_socket.h"
#include "shim.h"

/* PEER_SEND at its limits: 1024 records and 32 KiB. */
#define MSG_SIZE (REPATH_CONNS_MAX * sizeof(struct repath_conn_rec) + REPATH_BLOB_MAX + 1024)

/*
 * Requests go out without NLM_F_ACK: the module answers only what it refuses, and then the error
 * carries our sequence number, which for a PEER_SEND is the low half of its msg_id.
 */
static int send_msg(struct nl_msg *msg)
{
	int ret = nl_send_auto(rp_ctl.events, msg);

	nlmsg_free(msg);
	return ret < 0 ? -EIO : 0;
}

static struct nl_msg *new_msg(uint8_t cmd, uint32_t seq)
{
	struct nl_msg *msg;

	if (!rp_ctl.family)
		return NULL;
	msg = nlmsg_alloc_size(MSG_SIZE);
	if (msg && !genlmsg_put(msg, NL_AUTO_PORT, seq, rp_ctl.family, 0, NLM_F_REQUEST, cmd,
				REPATH_GENL_VERSION)) {
		nlmsg_free(msg);
		msg = NULL;
	}
	return msg;
}

static const char *const stages[] = {
	[REPATH_STAGE_NONE] = "none", [REPATH_STAGE_CHECK] = "check", [REPATH_STAGE_GATE] = "gate",
	[REPATH_STAGE_DRAIN] = "drain", [REPATH_STAGE_RELEASE] = "release", [REPATH_STAGE_OPEN] = "open",
	[REPATH_STAGE_RECREATE] = "recreate", [REPATH_STAGE_CONNECT] = "connect", [REPATH_STAGE_REPLAY] = "replay",
	[REPATH_STAGE_ABORT] = "abort",
};

int rp_ctl_reply(uint32_t op, enum repath_stage stage, int err, const char *reason,
		 const struct repath_counters *counters)
{
	struct nl_msg *msg = new_msg(REPATH_CMD_REPLY, NL_AUTO_SEQ);
	char text[REPATH_REASON_MAX];

	if (!msg)
		return -ENOTCONN;
	nla_put_u32(msg, REPATH_A_OP_ID, op);
	nla_put_u8(msg, REPATH_A_OP_STAGE, stage);
	nla_put_u32(msg, REPATH_A_ERRNO, err < 0 ? -err : err);
	if (reason) {
		snprintf(text, sizeof(text), "%s", reason);
		nla_put_string(msg, REPATH_A_REASON, text);
	}
	if (counters)
		nla_put(msg, REPATH_A_COUNTERS, sizeof(*counters), counters);
	rp_log(RP_LOG_INFO, "op %u, %s: %s%s%s", op, stages[stage], err ? "failed" : "done",
	       reason ? ": " : "", reason ? reason : "");
	return send_msg(msg);
}

int rp_ctl_peer_send(uint32_t peer_id, enum repath_msg type, uint64_t msg_id,
		     const struct repath_conn_rec *recs, unsigned int nrecs,
		     const struct rp_ctl_bind *bind, const void *blob, unsigned int blob_len)
{
	struct nl_msg *msg = new_msg(REPATH_CMD_PEER_SEND, (uint32_t)msg_id);

	if (!msg)
		return -ENOTCONN;
	nla_put_u32(msg, REPATH_A_PEER_ID, peer_id);
	nla_put_u8(msg, REPATH_A_MSG_TYPE, type);
	nla_put_u64(msg, REPATH_A_MSG_ID, msg_id);
	nla_put(msg, REPATH_A_CONNS, nrecs * sizeof(*recs), recs);
	if (bind) {
		nla_put_u32(msg, REPATH_A_DEV_INDEX, bind->dev_index);
		nla_put_u32(msg, REPATH_A_PORT, bind->port);
		nla_put_u32(msg, REPATH_A_SGID_INDEX, bind->sgid_index);
	}
	if (blob_len)
		nla_put(msg, REPATH_A_BLOB, blob_len, blob);
	return send_msg(msg);
}

struct conns_arg {
	void (*fn)(const struct rp_ctl_conn *c, void *arg);
	void *arg;
};

bool rp_ctl_parse_conn(struct nlattr *nest, struct rp_ctl_conn *c)
{
	struct nlattr *tb[REPATH_A_MAX + 1];

	if (!nest || nla_parse_nested(tb, REPATH_A_MAX, nest, NULL) < 0)
		return false;
	if (!tb[REPATH_A_CONN_ID] || !tb[REPATH_A_QPN] || !tb[REPATH_A_CONN_STATE])
		return false;
	*c = (struct rp_ctl_conn){
		.conn_id = nla_get_u32(tb[REPATH_A_CONN_ID]),
		.qpn = nla_get_u32(tb[REPATH_A_QPN]),
		.state = nla_get_u8(tb[REPATH_A_CONN_STATE]),
		.moving = tb[REPATH_A_MOVING],
	};
	if (tb[REPATH_A_DEV_INDEX])
		c->dev_index = nla_get_u32(tb[REPATH_A_DEV_INDEX]);
	if (tb[REPATH_A_PEER_ID])
		c->peer_id = nla_get_u32(tb[REPATH_A_PEER_ID]);
	return true;
}

static int conn_row(struct nl_msg *msg, void *arg)
{
	struct nlattr *tb[REPATH_A_MAX + 1];
	struct conns_arg *a = arg;
	struct rp_ctl_conn c;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, tb, REPATH_A_MAX, NULL) < 0 ||
	    !rp_ctl_parse_conn(tb[REPATH_A_CONN], &c))
		return NL_SKIP;
	a->fn(&c, a->arg);
	return NL_OK;
}

int rp_ctl_request_failed(struct sockaddr_nl *nla, struct nlmsgerr *err, void *arg)
{
	(void)nla;
	*(int *)arg = err->error < 0 ? err->error : -EIO;
	return NL_STOP;
}

static int request_done(struct nl_msg *msg, void *arg)
{
	(void)msg;
	*(int *)arg = 0;
	return NL_STOP;
}

/* Sends @msg, which is freed, on the socket for this and waits for all of its answer: 0 or -errno. */
static int request(struct nl_msg *msg, nl_recvmsg_msg_cb_t row, void *arg)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	int state = 1;

	if (!cb) {
		nlmsg_free(msg);
		return -ENOMEM;
	}
	if (row)
		nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, row, arg);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, request_done, &state);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, request_done, &state);
	nl_cb_err(cb, NL_CB_CUSTOM, rp_ctl_request_failed, &state);
	if (nl_send_auto(rp_ctl.requests, msg) < 0)
		state = -EIO;
	while (state > 0)
		if (nl_recvmsgs(rp_ctl.requests, cb) < 0 && state > 0)
			state = -EIO;
	nlmsg_free(msg);
	nl_cb_put(cb);
	return state;
}

int rp_ctl_conns(void (*fn)(const struct rp_ctl_conn *c, void *arg), void *arg)
{
	struct conns_arg a = { .fn = fn, .arg = arg };
	struct nl_msg *msg;

	if (!rp_ctl.family)
		return -ENOTCONN;
	msg = nlmsg_alloc();
	if (!msg)
		return -ENOMEM;
	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, rp_ctl.family, 0, NLM_F_REQUEST | NLM_F_DUMP,
		    REPATH_CMD_CONN_GET, REPATH_GENL_VERSION);
	nla_put_u32(msg, REPATH_A_PID, getpid());
	return request(msg, conn_row, &a);
}

int rp_ctl_number_check(uint32_t dev_index, uint32_t qpn)
{
	struct nl_msg *msg;

	if (!rp_ctl.family)
		return 0;
	msg = nlmsg_alloc();
	if (!msg)
		return -ENOMEM;
	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, rp_ctl.family, 0, NLM_F_REQUEST | NLM_F_ACK,
		    REPATH_CMD_NUMBER_CHECK, REPATH_GENL_VERSION);
	nla_put_u32(msg, REPATH_A_DEV_INDEX, dev_index);
	nla_put_u32(msg, REPATH_A_QPN, qpn);
	return request(msg, NULL, NULL);
}

int rp_ctl_numbers(uint32_t dev_index, const struct repath_number *rows, unsigned int n,
		   const struct repath_gid_change *gids, unsigned int ngids)
{
	struct nl_msg *msg = new_msg(REPATH_CMD_NUMBERS, NL_AUTO_SEQ);

	if (!msg)
		return -ENOTCONN;
	nla_put_u32(msg, REPATH_A_DEV_INDEX, dev_index);
	if (n)
		nla_put(msg, REPATH_A_NUMBERS, n * sizeof(*rows), rows);
	if (ngids)
		nla_put(msg, REPATH_A_GIDS, ngids * sizeof(*gids), gids);
	return send_msg(msg);
}

static struct nl_msg *new_cycled(uint32_t conn_id, int err)
{
	struct nl_msg *msg = new_msg(REPATH_CMD_CYCLED, NL_AUTO_SEQ);

	if (msg) {
		nla_put_u32(msg, REPATH_A_CONN_ID, conn_id);
		nla_put_u32(msg, REPATH_A_ERRNO, err);
	}
	return msg;
}

int rp_ctl_cycled(uint32_t conn_id, int err)
{
	struct nl_msg *msg = new_cycled(conn_id, err);

	return msg ? send_msg(msg) : -ENOTCONN;
}

int rp_ctl_rests(uint32_t conn_id, uint16_t peer_round)
{
	struct nl_msg *msg = new_cycled(conn_id, ECANCELED);

	if (!msg)
		return -ENOTCONN;
	/* To an older module it says: whatever its peer has said so far. */
	if (rp_ctl.knows & REPATH_KNOWS_ROUND)
		nla_put_u32(msg, REPATH_A_COUNT, peer_round);
	return send_msg(msg);
}

int rp_ctl_resolve(uint32_t id, const struct rp_ctl_address *a)
{
	struct nl_msg *msg = new_msg(REPATH_CMD_RESOLVE, id);

	if (!msg)
		return -ENOTCONN;
	nla_put_u64(msg, REPATH_A_MSG_ID, id);
	nla_put_u32(msg, REPATH_A_DEV_INDEX, a->dev_index);
	nla_put_u32(msg, REPATH_A_PORT, a->port);
	nla_put_u32(msg, REPATH_A_SGID_INDEX, a->sgid_index);
	nla_put_u8(msg, REPATH_A_QP_TYPE, a->qp_type);
	nla_put_u32(msg, REPATH_A_QPN, a->qpn);
	nla_put_u32(msg, REPATH_A_SRC_QPN, a->src_qpn);
	nla_put(msg, REPATH_A_DGID, sizeof(a->gid), a->gid);
	nla_put_u32(msg, REPATH_A_DLID, a->lid);
	nla_put_u8(msg, REPATH_A_SL, a->sl);
	return send_msg(msg);
}

int rp_ctl_unresolve(uint32_t id)
{
	struct nl_msg *msg = new_msg(REPATH_CMD_UNRESOLVE, NL_AUTO_SEQ);

	if (!msg)
		return -ENOTCONN;
	nla_put_u64(msg, REPATH_A_MSG_ID, id);
	return send_msg(msg);
}
