// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the module says by itself. */
#include <string.h>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "ctl_socket.h"
#include "shim.h"

static struct rp_ctl_path read_path(struct nlattr *const *tb)
{
	struct rp_ctl_path path = { .dlid = nla_get_u32(tb[REPATH_A_DLID]), .sl = -1,
				   .tclass = -1 };

	if (tb[REPATH_A_SLID])
		path.slid = nla_get_u32(tb[REPATH_A_SLID]);
	if (tb[REPATH_A_NEW_DLID])
		path.new_dlid = nla_get_u32(tb[REPATH_A_NEW_DLID]);
	if (tb[REPATH_A_SL])
		path.sl = nla_get_u8(tb[REPATH_A_SL]);
	if (tb[REPATH_A_TCLASS])
		path.tclass = nla_get_u8(tb[REPATH_A_TCLASS]);
	if (tb[REPATH_A_RATE])
		path.rate = nla_get_u8(tb[REPATH_A_RATE]);
	if (tb[REPATH_A_PATH_MTU])
		path.mtu = nla_get_u8(tb[REPATH_A_PATH_MTU]);
	return path;
}

int rp_ctl_event_in(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *tb[REPATH_A_MAX + 1];
	struct rp_ctl_peer_msg m = { 0 };
	struct rp_place place = { 0 };
	struct rp_ctl_path path;
	struct rp_ctl_conn conn;
	char dev[64] = "";

	(void)arg;
	/* Only the kernel's word counts; port 0 can not be taken by a process. */
	if (nlmsg_get_src(msg)->nl_pid || nlmsg_hdr(msg)->nlmsg_type != rp_ctl.family ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, tb, REPATH_A_MAX, NULL) < 0)
		return NL_SKIP;

	switch (g->cmd) {
	case REPATH_CMD_EV_CHECK:
	case REPATH_CMD_EV_SUSPEND:
	case REPATH_CMD_EV_RESUME:
	case REPATH_CMD_EV_ABORT:
		if (!tb[REPATH_A_OP_ID] || !tb[REPATH_A_DEV_INDEX])
			return NL_SKIP;
		if (tb[REPATH_A_DEV_NAME])
			nla_strlcpy(dev, tb[REPATH_A_DEV_NAME], sizeof(dev));
		rp_move_event(g->cmd, nla_get_u32(tb[REPATH_A_OP_ID]),
			      nla_get_u32(tb[REPATH_A_DEV_INDEX]), dev,
			      tb[REPATH_A_TIMEOUT_MS] ? nla_get_u32(tb[REPATH_A_TIMEOUT_MS]) : 0,
			      tb[REPATH_A_FORCE]);
		break;
	case REPATH_CMD_EV_PEER_MSG:
		if (!tb[REPATH_A_PEER_ID] || !tb[REPATH_A_MSG_TYPE] || !tb[REPATH_A_CONNS])
			return NL_SKIP;
		m.peer_id = nla_get_u32(tb[REPATH_A_PEER_ID]);
		m.type = nla_get_u8(tb[REPATH_A_MSG_TYPE]);
		m.recs = nla_data(tb[REPATH_A_CONNS]);
		m.nrecs = nla_len(tb[REPATH_A_CONNS]) / sizeof(*m.recs);
		if (tb[REPATH_A_DGID] && nla_len(tb[REPATH_A_DGID]) == sizeof(m.gid))
			memcpy(m.gid, nla_data(tb[REPATH_A_DGID]), sizeof(m.gid));
		if (tb[REPATH_A_DLID])
			m.lid = nla_get_u32(tb[REPATH_A_DLID]);
		if (tb[REPATH_A_BLOB]) {
			m.blob = nla_data(tb[REPATH_A_BLOB]);
			m.blob_len = nla_len(tb[REPATH_A_BLOB]);
		}
		rp_peer_msg_in(&m);
		break;
	case REPATH_CMD_EV_PEER_SENT:
		if (!tb[REPATH_A_MSG_ID] || !tb[REPATH_A_ERRNO])
			return NL_SKIP;
		rp_peer_sent(nla_get_u64(tb[REPATH_A_MSG_ID]), nla_get_u32(tb[REPATH_A_ERRNO]));
		break;
	case REPATH_CMD_EV_RESOLVED:
		if (!tb[REPATH_A_MSG_ID] || !tb[REPATH_A_ERRNO])
			return NL_SKIP;
		if (tb[REPATH_A_QPN])
			place.qpn = nla_get_u32(tb[REPATH_A_QPN]);
		if (tb[REPATH_A_DGID] && nla_len(tb[REPATH_A_DGID]) == sizeof(place.gid))
			memcpy(place.gid, nla_data(tb[REPATH_A_DGID]), sizeof(place.gid));
		if (tb[REPATH_A_DLID])
			place.lid = nla_get_u32(tb[REPATH_A_DLID]);
		place.moved = tb[REPATH_A_MOVED];
		rp_resolved(nla_get_u64(tb[REPATH_A_MSG_ID]), nla_get_u32(tb[REPATH_A_ERRNO]),
			    &place);
		break;
	case REPATH_CMD_EV_CONN:
		if (rp_ctl_parse_conn(tb[REPATH_A_CONN], &conn))
			rp_conn_ready(&conn);
		break;
	case REPATH_CMD_EV_CYCLE:
		if (!tb[REPATH_A_CONN_ID] || !tb[REPATH_A_DLID])
			return NL_SKIP;
		path = read_path(tb);
		rp_cycle_event(nla_get_u32(tb[REPATH_A_CONN_ID]), &path);
		break;
	case REPATH_CMD_EV_REPATH:
		if (!tb[REPATH_A_DEV_INDEX] || !tb[REPATH_A_PORT] || !tb[REPATH_A_DLID] ||
		    (tb[REPATH_A_DGID] && nla_len(tb[REPATH_A_DGID]) != sizeof(m.gid)))
			return NL_SKIP;
		path = read_path(tb);
		rp_ahs_repath(nla_get_u32(tb[REPATH_A_DEV_INDEX]),
			      nla_get_u32(tb[REPATH_A_PORT]),
			      tb[REPATH_A_DGID] ? nla_data(tb[REPATH_A_DGID]) : NULL, &path);
		break;
	case REPATH_CMD_EV_NUMBERS:
		if (tb[REPATH_A_COUNT])
			rp_numbers_about(nla_get_u32(tb[REPATH_A_COUNT]));
		break;
	}
	return NL_OK;
}

int rp_ctl_event_error(struct sockaddr_nl *nla, struct nlmsgerr *err, void *arg)
{
	(void)nla;
	(void)arg;
	if (err->error)
		rp_log(RP_LOG_ERR, "the module refused request %u: %s", err->msg.nlmsg_seq,
		       strerror(-err->error));
	if (err->error && err->msg.nlmsg_seq & RP_RESOLVE_ID)
		rp_resolve_refused(err->msg.nlmsg_seq, -err->error);
	else if (err->error)
		rp_peer_sent(err->msg.nlmsg_seq, -err->error);
	return NL_SKIP;
}
