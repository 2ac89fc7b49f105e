// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* UD queue pairs in a move, which nobody else has a part in, and multicast groups. */
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "ud.h"

/* Sends wait for nobody: longer than this only a device that does not work any more takes. */
#define PATIENCE_NS 2000000000ull

/**
 * struct rp_ud_drain - a queue pair whose sends are waited for
 * @self: where the marker goes, see RP_QPN_NOBODY
 * @out: it is on its way; @old: since a move that was aborted
 */
struct rp_ud_drain {
	struct ibv_ah *self;
	uint64_t since_ns;
	bool out, old, done;
};

static bool drains(const struct rp_qp *qp)
{
	enum ibv_qp_state state = qp->qp.state;

	return qp->qp.qp_type == IBV_QPT_UD && qp->real &&
	       (state == IBV_QPS_RTS || state == IBV_QPS_SQD);
}

/* Addressed like whatever the application addresses from this queue pair. */
static struct ibv_ah_attr some_address(const struct rp_qp *qp)
{
	struct rp_context *ctx = to_rp_context(qp->qp.context);
	struct ibv_ah_attr attr = {
		.port_num = qp->attr.port_num, .is_global = 1, .grh.hop_limit = 1,
	};
	struct rp_ah *ah;

	rp_lock(&ctx->objects);
	list_for_each(ah, &ctx->ahs, node)
		if (ah->attr.port_num == qp->attr.port_num) {
			attr = ah->attr;
			break;
		}
	rp_unlock(&ctx->objects);
	return attr;
}

static int post_marker(struct rp_qp *qp)
{
	struct rp_slot *s = &qp->marker;
	struct ibv_send_wr *bad;
	int ret;

	rp_lock(&qp->lock);
	qp->marker_done = false;
	s->kind = RP_SLOT_MARKER;
	s->hidden = true;
	s->owner = qp;
	s->send = (struct ibv_send_wr){
		.wr_id = (uintptr_t)s,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = qp->ud_drain->self, .remote_qpn = RP_QPN_NOBODY },
	};
	ret = qp->real->context->ops.post_send(qp->real, &s->send, &bad);
	rp_unlock(&qp->lock);
	return ret;
}

static bool drain_step(struct rp_qp *qp)
{
	struct rp_ud_drain *d = qp->ud_drain;
	int ret;

	if (!d) {
		struct ibv_ah_attr like = some_address(qp);

		if (atomic_load(&qp->sq.retired) == qp->sq.submitted)
			return true;
		d = qp->ud_drain = calloc(1, sizeof(*d));
		if (!d)
			return true;
		d->self = rp_ah_to_self(to_rp_context(qp->qp.context), qp->qp.pd, &like);
	}
	if (!d->since_ns)
		d->since_ns = rp_now_ns();
	if (d->done || rp_qp_held_back(qp))
		return true;
	if (d->out && qp->marker_done) {
		d->out = false;
		d->done = !d->old;
		d->old = false;
		if (d->done && qp->marker_status == IBV_WC_SUCCESS)
			rp_qp_retire_all(qp);
	}
	/* In SQD it would not come back. */
	if (!d->out && !d->done && d->self && qp->qp.state != IBV_QPS_SQD && rp_drain_may_mark(qp)) {
		ret = post_marker(qp);
		d->out = !ret;
		if (!ret)
			to_rp_cq(qp->qp.send_cq)->markers++;
		/* ENOMEM: the device still holds the queue full; again after the next harvest. */
		if (ret && ret != ENOMEM)
			d->done = true;
	}
	if (!d->done && rp_now_ns() - d->since_ns > PATIENCE_NS) {
		rp_log(RP_LOG_ERR, "UD QP 0x%x does not send what it was given", qp->qp.qp_num);
		d->done = true;
	}
	return d->done;
}

void rp_ud_flush(struct rp_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct rp_cq *cq = to_rp_cq(qp->qp.send_cq);
	struct rp_ud_drain *d = qp->ud_drain;
	uint64_t end = rp_now_ns() + PATIENCE_NS;

	if (!d || !d->self || !qp->real || !rp_qp_held_back(qp))
		return;
	/* As make_room_to_flush() does. */
	rp_cq_grow(cq, cq->cq.cqe + RP_CQ_EXTRA + qp->sq.size);
	qp->flushed = false;
	qp->swallow = true;
	/* One that is out since a move before is held back, too, and has others behind it. */
	if ((!d->out && post_marker(qp)) || rp_qp_modify_real(qp, &attr, IBV_QP_STATE))
		return;
	while (!qp->marker_done && rp_now_ns() < end)
		rp_drain_harvest(to_rp_context(qp->qp.context));
	rp_drain_harvest(to_rp_context(qp->qp.context));
	if (qp->marker_done && !qp->flushed && !d->out)
		rp_qp_retire_all(qp);
}

bool rp_ud_drained(struct rp_context *ctx)
{
	bool all = true, harvested = false;
	struct rp_qp *qp;

	list_for_each(qp, &ctx->qps, node)
		if (qp->ud_drain)
			to_rp_cq(qp->qp.send_cq)->markers = 0;
	list_for_each(qp, &ctx->qps, node)
		if (qp->ud_drain && qp->ud_drain->out && !qp->marker_done)
			to_rp_cq(qp->qp.send_cq)->markers++;
	list_for_each(qp, &ctx->qps, node) {
		if (!drains(qp))
			continue;
		if (!harvested)
			rp_drain_harvest(ctx);
		harvested = true;
		all &= drain_step(qp);
	}
	return all;
}

void rp_ud_drain_end(struct rp_qp *qp)
{
	struct rp_ud_drain *d = qp->ud_drain;

	if (!d)
		return;
	if (d->self)
		RP_REAL(rp_real.ibv_destroy_ah(d->self));
	free(d);
	qp->ud_drain = NULL;
}

void rp_ud_drain_cancel(struct rp_qp *qp)
{
	struct rp_ud_drain *d = qp->ud_drain;

	if (!d || !d->out) {
		rp_ud_drain_end(qp);
		return;
	}
	d->old = true;
	d->done = false;
	d->since_ns = 0;
}

/* --- multicast --- */

struct rp_mcast {
	union ibv_gid gid;
	uint16_t lid;
	struct list_node node;
};

int ibv_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	struct rp_qp *qp = to_rp_qp(ibqp);
	struct rp_context *ctx;
	struct rp_mcast *m;
	bool there;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_attach_mcast(ibqp, gid, lid);
	ctx = to_rp_context(ibqp->context);
	m = calloc(1, sizeof(*m));
	if (!m)
		return ENOMEM;
	m->gid = *gid;
	m->lid = lid;
	there = rp_verbs_enter(ctx);
	pthread_mutex_lock(&qp->control);
	ret = there ? RP_REAL(rp_real.ibv_attach_mcast(qp->real, gid, lid)) : ENODEV;
	if (!ret)
		list_add_tail(&qp->mcasts, &m->node);
	pthread_mutex_unlock(&qp->control);
	rp_verbs_leave(ctx);
	if (ret)
		free(m);
	return ret;
}

int ibv_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	struct rp_qp *qp = to_rp_qp(ibqp);
	struct rp_context *ctx;
	struct rp_mcast *m, *tmp;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_detach_mcast(ibqp, gid, lid);
	ctx = to_rp_context(ibqp->context);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	pthread_mutex_lock(&qp->control);
	ret = RP_REAL(rp_real.ibv_detach_mcast(qp->real, gid, lid));
	if (!ret)
		list_for_each_safe(m, tmp, &qp->mcasts, node)
			if (m->lid == lid && !memcmp(&m->gid, gid, sizeof(*gid))) {
				list_del(&m->node);
				free(m);
				break;
			}
	pthread_mutex_unlock(&qp->control);
	rp_verbs_leave(ctx);
	return ret;
}

void rp_ud_free(struct rp_qp *qp)
{
	while (!list_empty(&qp->mcasts)) {
		struct rp_mcast *m = list_first(&qp->mcasts, struct rp_mcast, node);

		list_del(&m->node);
		free(m);
	}
	free(qp->ud_drain);
}

void rp_ud_leave(struct rp_qp *qp)
{
	struct rp_mcast *m;

	/* Of a resume that failed half-way it is not in all of them. */
	list_for_each(m, &qp->mcasts, node)
		RP_REAL(rp_real.ibv_detach_mcast(qp->real, &m->gid, m->lid));
}

static int attach_again(struct rp_qp *qp)
{
	struct rp_mcast *m;
	int ret;

	list_for_each(m, &qp->mcasts, node) {
		ret = RP_REAL(rp_real.ibv_attach_mcast(qp->real, &m->gid, m->lid));
		if (ret)
			return -ret;
	}
	return 0;
}

/* --- the state --- */

static int to_state(struct rp_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = qp->attr;

	attr.qp_state = state;
	return rp_qp_modify_real(qp, &attr, IBV_QP_STATE | mask);
}

int rp_ud_restore(struct rp_qp *qp)
{
	enum ibv_qp_state state = qp->qp.state == IBV_QPS_SQE ? IBV_QPS_RTS : qp->qp.state;
	int ret;

	if (state == IBV_QPS_RESET)
		return 0;
	rp_sqe_set(qp, qp->qp.state == IBV_QPS_SQE);
	ret = to_state(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	if (!ret)
		ret = attach_again(qp);
	if (!ret && state != IBV_QPS_ERR)
		ret = rp_qp_replay_recvs(qp);
	if (!ret && (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD))
		ret = to_state(qp, IBV_QPS_RTR, 0);
	if (!ret && (state == IBV_QPS_RTS || state == IBV_QPS_SQD))
		ret = to_state(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
	if (!ret && (state == IBV_QPS_RTS || state == IBV_QPS_SQD))
		rp_qp_rate_limit(qp);
	if (!ret && state == IBV_QPS_SQD)
		ret = to_state(qp, IBV_QPS_SQD, 0);
	if (!ret)
		rp_qp_tell_drained(qp);
	if (!ret && state == IBV_QPS_ERR) {
		qp->swallow = true;	/* what the device tells of it was told when it happened */
		ret = to_state(qp, IBV_QPS_ERR, 0);
		rp_async_take(to_rp_context(qp->qp.context));
		qp->swallow = false;
		if (!ret)
			ret = rp_qp_replay_recvs(qp);
	}
	return ret;
}
