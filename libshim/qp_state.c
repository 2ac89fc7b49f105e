// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Modifying and querying queue pairs. What the application sets is recorded as it set it. */
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "mw.h"
#include "resolve.h"
#include "ud.h"

/* How long who connects waits for processes that are between two devices. */
#define BUSY_NS		12000000000ull
#define BUSY_LOOK_US	50000
#define CONTROL_LOOK_US	1000

static void real_av(const struct rp_context *ctx, struct ibv_ah_attr *av)
{
	if (av->is_global)
		av->grh.sgid_index = rp_real_sgid(ctx, av->port_num, av->grh.sgid_index);
}

static void virtual_av(const struct rp_context *ctx, struct ibv_ah_attr *av)
{
	if (av->is_global)
		av->grh.sgid_index = rp_virtual_sgid(ctx, av->port_num, av->grh.sgid_index);
}

static int modify(struct rp_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct rp_context *ctx = to_rp_context(qp->qp.context);
	struct ibv_qp_attr a = *attr;

	if (mask & IBV_QP_AV)
		real_av(ctx, &a.ah_attr);
	if (mask & IBV_QP_PKEY_INDEX)
		a.pkey_index = rp_real_pkey(ctx, mask & IBV_QP_PORT ? a.port_num : qp->attr.port_num,
					    a.pkey_index);
	if (mask & IBV_QP_ALT_PATH) {
		real_av(ctx, &a.alt_ah_attr);
		a.alt_pkey_index = rp_real_pkey(ctx, a.alt_port_num, a.alt_pkey_index);
	}
	if (mask & IBV_QP_CAP)
		a.cap.max_send_wr += qp->sq_extra;
	return RP_REAL(rp_real.ibv_modify_qp(qp->real, &a, mask));
}

int rp_qp_modify_real(struct rp_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int ret = modify(qp, attr, mask);

	if (!ret && mask & (IBV_QP_AV | IBV_QP_DEST_QPN))
		qp->readdressed = true;
	/* Positive errno, or as in the oldest providers -1 and errno. */
	return ret > 0 ? -ret : ret ? rp_minus_errno() : 0;
}

/*
 * The move of its peer keeps a queue pair until the peer is back. That is not waited for in the verbs of @ctx, which its
 * own move has to end: false, and they are left. Nor is it by an owner who @ends it.
 */
static bool takes_control(struct rp_context *ctx, struct rp_qp *qp, bool ends)
{
	if (!pthread_mutex_trylock(&qp->control))
		return true;
	rp_verbs_leave(ctx);
	if (ends)
		rp_peer_qp_ends(qp);
	usleep(CONTROL_LOOK_US);
	return false;
}

/* As rp_verbs_enter(). */
static bool enter_control(struct rp_context *ctx, struct rp_qp *qp)
{
	bool there;

	do {
		there = rp_verbs_enter(ctx);
	} while (!takes_control(ctx, qp, false));
	return there;
}

static void record(struct rp_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *to = &qp->attr;

	if (mask & IBV_QP_STATE && a->qp_state == IBV_QPS_RESET) {
		memset(to, 0, sizeof(*to));
		qp->attr_mask = 0;
		qp->alternate = qp->other = false;
		atomic_store(&qp->mig_due, 0);
		memset(&qp->pace, 0, sizeof(qp->pace));
		return;
	}
	if (mask & IBV_QP_RATE_LIMIT)
		memset(&qp->pace, 0, sizeof(qp->pace));
#define RECORD(bit, field) do { if (mask & (bit)) to->field = a->field; } while (0)
	RECORD(IBV_QP_STATE, qp_state);
	RECORD(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	RECORD(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	RECORD(IBV_QP_PKEY_INDEX, pkey_index);
	RECORD(IBV_QP_PORT, port_num);
	RECORD(IBV_QP_QKEY, qkey);
	RECORD(IBV_QP_AV, ah_attr);
	RECORD(IBV_QP_PATH_MTU, path_mtu);
	RECORD(IBV_QP_TIMEOUT, timeout);
	RECORD(IBV_QP_RETRY_CNT, retry_cnt);
	RECORD(IBV_QP_RNR_RETRY, rnr_retry);
	RECORD(IBV_QP_RQ_PSN, rq_psn);
	RECORD(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	RECORD(IBV_QP_ALT_PATH, alt_ah_attr);
	RECORD(IBV_QP_ALT_PATH, alt_pkey_index);
	RECORD(IBV_QP_ALT_PATH, alt_port_num);
	RECORD(IBV_QP_ALT_PATH, alt_timeout);
	RECORD(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	RECORD(IBV_QP_SQ_PSN, sq_psn);
	RECORD(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	RECORD(IBV_QP_PATH_MIG_STATE, path_mig_state);
	RECORD(IBV_QP_CAP, cap);
	RECORD(IBV_QP_DEST_QPN, dest_qp_num);
	RECORD(IBV_QP_RATE_LIMIT, rate_limit);
#undef RECORD
	qp->attr_mask |= mask;
}

/*
 * To RESET: completions of the old life are taken while their slots still mean them, and dropped when it is over,
 * as most providers do.
 */
static int modify_to_reset(struct rp_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int ret;

	rp_qp_sweep(qp);
	ret = modify(qp, attr, mask);
	if (ret)
		return ret;
	rp_qp_forget_completions(qp);
	rp_ud_drain_end(qp);	/* the marker of a move that was given up went with the rest */
	rp_mw_qp_reset(qp);
	rp_lock(&qp->lock);
	rp_qp_reset_rings(qp);
	qp->readdressed = qp->marker_out = qp->marker_let = false;
	rp_unlock(&qp->lock);
	return 0;
}

/* The queue pair is connected to @real, which the application knows as @given. */
static void set_destination(struct rp_qp *qp, const struct ibv_qp_attr *given,
			    const struct ibv_qp_attr *real, bool moved)
{
	qp->readdressed = moved || given->dest_qp_num != real->dest_qp_num ||
			  given->ah_attr.dlid != real->ah_attr.dlid ||
			  memcmp(&given->ah_attr.grh.dgid, &real->ah_attr.grh.dgid,
				 sizeof(given->ah_attr.grh.dgid));
	if (moved)
		rp_keys_await(qp);
}

/*
 * Enters the verbs of @ctx with @a as the device needs it. While processes there are between two devices
 * this one is kept waiting, for some time, but not in its verbs: its own device may have to be left, too.
 */
static int enter_resolved(struct rp_context *ctx, struct rp_qp *qp, struct ibv_qp_attr *a, int mask,
			  bool *moved)
{
	uint64_t end = rp_now_ns() + BUSY_NS;
	int ret;

	for (;;) {
		if (!rp_verbs_enter(ctx))
			return ENODEV;
		ret = rp_resolve_rtr(qp, a, mask, moved);
		if (ret != EAGAIN)
			return ret;
		if (rp_now_ns() >= end) {
			rp_log(RP_LOG_ERR, "QP 0x%x: not connected: processes there stay between two devices",
			       qp->qp.qp_num);
			return ret;
		}
		rp_verbs_leave(ctx);
		usleep(BUSY_LOOK_US);
	}
}

/* It may have migrated, and the owner have heard that: then it is another path that he sets. */
static void look_at_alternate(struct rp_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr is = { 0 };

	if (!RP_REAL(rp_real.ibv_query_qp(qp->real, &is, RP_LOOK_MASK, &init)))
		rp_alternate_look(qp, &is);
}

/*
 * Before the device is told, whose event may come before its answer. Return: as it was, for
 * a state that the device refuses.
 */
static bool expect_drained(struct rp_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (!(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_SQD || qp->qp.state == IBV_QPS_SQD)
		return atomic_load(&qp->sqd_due);
	qp->sqd_asked = mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify;
	return atomic_exchange(&qp->sqd_due, true);
}

void rp_qp_tell_drained(struct rp_qp *qp)
{
	if (qp->qp.state != IBV_QPS_SQD || !qp->sqd_asked || !atomic_load(&qp->sqd_due))
		return;
	rp_async_take(to_rp_context(qp->qp.context));	/* the device may have told it */
	if (atomic_exchange(&qp->sqd_due, false))
		rp_async_soft_qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	const bool ends = mask & IBV_QP_STATE && (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_RESET);
	struct rp_qp *qp = to_rp_qp(ibqp);
	struct rp_context *ctx;
	struct ibv_qp_attr a;
	bool moved, due, loads;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_modify_qp(ibqp, attr, mask);
	ctx = to_rp_context(ibqp->context);
	do {
		a = *attr;
		ret = enter_resolved(ctx, qp, &a, mask, &moved);
	} while (!takes_control(ctx, qp, ends));
	if (!ret)
		ret = rp_sqe_modify(qp, &a, &mask);
	if (!ret && qp->alternate && mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE))
		look_at_alternate(qp);
	if (!ret)
		rp_alternate_real(qp, &a, mask);
	due = expect_drained(qp, attr, mask);
	/* What the device has told is of those before. */
	if (mask & IBV_QP_ALT_PATH || (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET && qp->mig_due))
		rp_async_take(ctx);
	/* One that takes the place of another one, which was not used, is no second migration to come. */
	loads = !ret && mask & IBV_QP_ALT_PATH && !(qp->alternate && qp->mig_due);
	if (loads)
		atomic_fetch_add(&qp->mig_due, 1);
	if (qp->marker_let && mask & IBV_QP_ACCESS_FLAGS)
		a.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	if (ret)
		;	/* not to be connected */
	else if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		ret = modify_to_reset(qp, attr, mask);
	else
		ret = modify(qp, &a, mask);
	if (!ret) {
		record(qp, attr, mask);
		rp_alternate_set(qp, &a, mask);
		if (mask & IBV_QP_AV && mask & IBV_QP_DEST_QPN)
			set_destination(qp, attr, &a, moved);
		if (mask & IBV_QP_STATE)
			__atomic_store_n(&ibqp->state, attr->qp_state, __ATOMIC_RELEASE);
		/* From SQE, if it had failed. */
		if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTS)
			atomic_store(&qp->failed, false);
		if (mask & IBV_QP_STATE)
			rp_sqe_end(qp);
	} else {
		atomic_store(&qp->sqd_due, due);
		if (loads)
			rp_async_take_mig(qp);
	}
	pthread_mutex_unlock(&qp->control);
	/* It may be connected to somebody else next. The control thread takes qp->control itself. */
	if (!ret && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		rp_peer_qp_gone(qp);
	rp_verbs_leave(ctx);
	return ret;
}

int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct rp_qp *qp = to_rp_qp(ibqp);
	struct rp_context *ctx;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_query_qp(ibqp, attr, mask, init);
	ctx = to_rp_context(ibqp->context);
	/* Not while a peer's move has it in RESET. */
	ret = enter_control(ctx, qp) ?
	      RP_REAL(rp_real.ibv_query_qp(qp->real, attr, qp->alternate ? mask | RP_LOOK_MASK : mask, init)) : ENODEV;
	if (ret)
		goto out;
	if (qp->sqe && attr->qp_state == IBV_QPS_RTS)
		attr->qp_state = attr->cur_qp_state = IBV_QPS_SQE;
	if (mask & IBV_QP_STATE)
		__atomic_store_n(&ibqp->state, attr->qp_state, __ATOMIC_RELEASE);
	rp_alternate_look(qp, attr);
	if (attr->cap.max_send_wr > qp->sq_extra)
		attr->cap.max_send_wr -= qp->sq_extra;
	if (init->cap.max_send_wr > qp->sq_extra)
		init->cap.max_send_wr -= qp->sq_extra;
	init->qp_context = qp->init.qp_context;
	init->send_cq = qp->init.send_cq;
	init->recv_cq = qp->init.recv_cq;
	init->srq = qp->init.srq;
	attr->pkey_index = rp_virtual_pkey(ctx, qp->attr.port_num, attr->pkey_index);
	attr->alt_pkey_index = rp_virtual_pkey(ctx, attr->alt_port_num, attr->alt_pkey_index);
	virtual_av(ctx, &attr->ah_attr);
	virtual_av(ctx, &attr->alt_ah_attr);
	rp_alternate_query(qp, attr);
	if (qp->marker_let)
		attr->qp_access_flags = qp->attr.qp_access_flags;
	/* Of a queue pair that was connected anew: what the application connected. */
	if (!qp->readdressed)
		goto out;
	attr->dest_qp_num = qp->attr.dest_qp_num;
	attr->ah_attr = qp->attr.ah_attr;
	attr->rq_psn = qp->attr.rq_psn;
	attr->sq_psn = qp->attr.sq_psn;
	attr->path_mtu = qp->attr.path_mtu;
	attr->qp_access_flags = qp->attr.qp_access_flags;
out:
	pthread_mutex_unlock(&qp->control);
	rp_verbs_leave(ctx);
	return ret;
}

int ibv_query_qp_data_in_order(struct ibv_qp *ibqp, enum ibv_wr_opcode op, uint32_t flags)
{
	struct rp_context *ctx;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_query_qp_data_in_order(ibqp, op, flags);
	ctx = to_rp_context(ibqp->context);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(rp_real.ibv_query_qp_data_in_order(to_rp_qp(ibqp)->real, op, flags));
	rp_verbs_leave(ctx);
	return ret;
}

/* A verb on one queue pair that is neither recorded nor translated. */
#define ON_QP(ibqp, call)						\
	struct rp_context *ctx = to_rp_context((ibqp)->context);	\
	struct rp_qp *qp = to_rp_qp(ibqp);				\
	int ret;							\
	ret = enter_control(ctx, qp) ? RP_REAL(call) : ENODEV;		\
	pthread_mutex_unlock(&qp->control);				\
	rp_verbs_leave(ctx)

/* What they mean only a device of this vendor knows; another one would be given what was agreed on with it. */
static int set_ece(struct rp_context *ctx, struct rp_qp *qp, struct ibv_ece *ece)
{
	int ret = rp_real.ibv_set_ece(qp->real, ece);

	if (ret || qp->ece == !!ece->options)
		return ret;
	qp->ece = ece->options;
	if (qp->ece)
		rp_pin(ctx, RP_IMM_ECE);
	else
		rp_unpin(ctx, RP_IMM_ECE);
	return 0;
}

int ibv_set_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	if (RP_PASSING)
		return rp_real.ibv_set_ece(ibqp, ece);
	ON_QP(ibqp, set_ece(ctx, qp, ece));
	return ret;
}

int ibv_query_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	if (RP_PASSING)
		return rp_real.ibv_query_ece(ibqp, ece);
	ON_QP(ibqp, rp_real.ibv_query_ece(qp->real, ece));
	return ret;
}

static int limit_rate(struct rp_context *ctx, struct rp_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	int ret = RP_SLOT(ctx, modify_qp_rate_limit)(qp->real, attr);

	if (ret)
		return ret;
	qp->pace = *attr;
	qp->attr_mask &= ~IBV_QP_RATE_LIMIT;
	return 0;
}

int rp_modify_qp_rate_limit(struct ibv_qp *ibqp, struct ibv_qp_rate_limit_attr *attr)
{
	ON_QP(ibqp, limit_rate(ctx, qp, attr));
	return ret;
}
