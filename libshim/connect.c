// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs from RESET to the states that they had, connected or not. */
#include <errno.h>
#include <string.h>

#include "conn.h"
#include "ud.h"

/* How often the MAC of a peer that has told its place is looked for: each takes up to a second. */
#define LOOKUPS	3

int rp_qp_to_state(struct rp_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return rp_qp_modify_real(qp, &attr, IBV_QP_STATE);
}

int rp_qp_replay_recvs(struct rp_qp *qp)
{
	int ret;

	rp_lock(&qp->lock);
	if (rp_counters)
		rp_counters->replayed_recvs += qp->rq.head - qp->rq.submitted;
	ret = -rp_qp_submit_recvs(qp);
	if (!ret)
		qp->recv_gate = false;
	rp_unlock(&qp->lock);
	return ret;
}

int rp_qp_to_init(struct rp_qp *qp)
{
	struct ibv_qp_attr attr = qp->attr;
	int ret;

	attr.qp_state = IBV_QPS_INIT;
	ret = rp_qp_modify_real(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				IBV_QP_ACCESS_FLAGS);
	if (!ret)
		qp->marker_let = false;
	return ret ? ret : rp_qp_replay_recvs(qp);
}

static enum ibv_mtu min_mtu(enum ibv_mtu a, enum ibv_mtu b)
{
	return b && b < a ? b : a;
}

static void by_path(const struct rp_ctl_path *to, struct ibv_ah_attr *av)
{
	av->dlid = to->new_dlid ? to->new_dlid : to->dlid;
	if (to->sl >= 0)
		av->sl = to->sl;
	if (to->tclass >= 0 && av->is_global)
		av->grh.traffic_class = to->tclass;
	/* 0 is the port's own, and stays that. */
	if (to->rate && av->static_rate)
		av->static_rate = to->rate;
}

/* What one word says of it and the next does not holds on. */
static void keep_lane(struct rp_conn *c)
{
	struct rp_ctl_path lane = c->to;

	if (c->has_lane && lane.sl < 0)
		lane.sl = c->lane.sl;
	if (c->has_lane && lane.tclass < 0)
		lane.tclass = c->lane.tclass;
	if (c->has_lane && !lane.rate)
		lane.rate = c->lane.rate;
	c->lane = lane;
	c->has_lane = true;
}

/* One of them may have moved since: then the LID is that of where the peer was. */
static bool is_peers(const struct rp_conn *c, uint32_t dlid)
{
	struct ibv_port_attr port = { 0 };

	return !c->peer_lid ||
	       (!RP_REAL(rp_real.ibv_query_port(c->ctx->real, c->qp->attr.port_num, (void *)&port)) &&
		dlid >> port.lmc == c->peer_lid >> port.lmc);
}

/* The one that it had, maybe not from its application. */
static void by_path_before(const struct rp_conn *c, struct ibv_ah_attr *av)
{
	av->sl = c->sl;
	if (c->rate && av->static_rate)
		av->static_rate = c->rate;
	if (is_peers(c, c->dlid))
		av->dlid = c->dlid;
}

/* One that has never been told to send takes its alternate path with RTR only. */
static int to_rtr_by(struct rp_conn *c, struct ibv_qp_attr *attr, int mask, const struct rp_port *to)
{
	struct rp_qp *qp = c->qp;
	struct rp_port alt;
	int ret;

	if (!qp->alternate || qp->qp.state != IBV_QPS_RTR || rp_alternate_leads(c, to, &alt))
		return rp_qp_modify_real(qp, attr, mask);
	rp_place_fill(&attr->alt_ah_attr, &alt);
	ret = rp_qp_modify_real(qp, attr, mask | IBV_QP_ALT_PATH);
	c->alt_loaded = !ret;
	if (!ret)
		return 0;
	ret = rp_qp_modify_real(qp, attr, mask);
	if (!ret)
		rp_alternate_drop(qp, "the device does not take it");
	return ret;
}

static int to_rtr(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	struct rp_port to;
	struct ibv_qp_attr attr = qp->attr;
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int ret;

	if (qp->qp.qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = c->peer_qpn;
	attr.rq_psn = c->peer_psn;
	attr.path_mtu = min_mtu(min_mtu(attr.path_mtu, c->peer_mtu), c->mtu);
	if (attr.ah_attr.is_global)
		attr.ah_attr.grh.dgid = c->peer_gid;
	if (c->peer_lid)
		attr.ah_attr.dlid = c->peer_lid;
	if (c->has_path)
		by_path_before(c, &attr.ah_attr);
	if (c->has_lane)
		by_path(&c->lane, &attr.ah_attr);
	if (c->cycle == RP_CYCLE_RUNS) {
		c->wrong_path = !is_peers(c, c->to.new_dlid ? c->to.new_dlid : c->to.dlid);
		if (!c->wrong_path)
			by_path(&c->to, &attr.ah_attr);
	}
	to = rp_place_of(&attr.ah_attr);
	ret = to_rtr_by(c, &attr, mask, &to);
	if (ret)
		return ret;
	qp->dest = to;
	if (c->cycle == RP_CYCLE_RUNS && !c->to.dlid)
		keep_lane(c);
	return 0;
}

static int to_rts(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	struct ibv_qp_attr attr = qp->attr;
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp.state == IBV_QPS_RTR)
		return 0;	/* it only ever received */
	if (qp->qp.qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = c->psn;
	return rp_qp_modify_real(qp, &attr, mask);
}

/* A datagram that the neighbour table needs may be lost. */
static bool look_again(struct rp_conn *c, int err)
{
	return (err == -ETIMEDOUT || err == -EHOSTUNREACH) && ++c->lookups < LOOKUPS;
}

void rp_conn_connect(struct rp_conn *c)
{
	int ret;

	ret = c->inited ? 0 : rp_qp_to_init(c->qp);
	if (!ret)
		ret = to_rtr(c);
	if (!ret)
		ret = to_rts(c);
	/* It may have left the place that its READY told: its INFO will say. */
	if (ret && (!c->informed || look_again(c, ret))) {
		rp_log(RP_LOG_INFO, "QP 0x%x: QP 0x%x is not reached: %s", c->qp->qp.qp_num,
		       c->peer_qpn, strerror(-ret));
		rp_conn_reset(c);
		c->early = false;
		return;
	}
	if (ret) {
		rp_log(RP_LOG_ERR, "QP 0x%x: can not be connected to QP 0x%x again: %s",
		       c->qp->qp.qp_num, c->peer_qpn, strerror(-ret));
		c->due |= 1u << REPATH_MSG_GONE;
		rp_conn_kill(c);
		return;
	}
	c->in_rts = true;
	if (c->qp->qp.state != IBV_QPS_RTR)
		rp_qp_rate_limit(c->qp);
	rp_alternate_again(c);
	rp_sqe_set(c->qp, c->qp->qp.state == IBV_QPS_SQE);
	rp_log(RP_LOG_INFO, "QP 0x%x is now 0x%x, connected to 0x%x, PSN 0x%x/0x%x",
	       c->qp->qp.qp_num, c->qp->real->qp_num, c->peer_qpn, c->psn, c->peer_psn);
}

int rp_qp_hold_back(struct rp_qp *qp)
{
	int ret = qp->qp.state == IBV_QPS_SQD ? rp_qp_to_state(qp, IBV_QPS_SQD) : 0;

	if (!ret)
		rp_qp_tell_drained(qp);
	return ret;
}

/* From RESET ERR is reached by way of INIT only (ib_modify_qp_is_ok()). */
int rp_qp_to_error(struct rp_qp *qp)
{
	struct ibv_qp_attr attr = qp->attr;

	if (!rp_qp_to_state(qp, IBV_QPS_ERR))
		return 0;
	attr.qp_state = IBV_QPS_INIT;
	rp_qp_modify_real(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS);
	return rp_qp_to_state(qp, IBV_QPS_ERR);
}

int rp_qp_restore(struct rp_qp *qp)
{
	enum ibv_qp_state state = qp->qp.state;
	int ret = 0;

	if (qp->qp.qp_type == IBV_QPT_UD)
		return rp_ud_restore(qp);
	if (state == IBV_QPS_INIT)
		return rp_qp_to_init(qp);
	if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
		qp->swallow = true;	/* what the device tells of it was told when it happened */
		ret = rp_qp_to_error(qp);
		rp_async_take(rp_qp_context(qp));
		qp->swallow = false;
	}
	rp_lock(&qp->lock);
	/* Of one in RESET there is nothing; one in ERR flushes it. */
	if (!ret)
		ret = -rp_qp_submit_recvs(qp);
	qp->recv_gate = false;
	rp_unlock(&qp->lock);
	return ret;
}
