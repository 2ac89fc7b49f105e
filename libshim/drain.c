// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Emptying a send queue without asking the device for a state that it may not have (SQD), and what
 * to do when it can not be emptied because the receiver has posted no receive, or its owner keeps it in
 * SQD.
 */
#include <errno.h>
#include <string.h>

#include "conn.h"

/*
 * No completion for this long while a SEND is outstanding: it waits for a receive. The fabric works
 * (nobody has been unplugged yet), so an acknowledgement is not late by half a second, unless it was
 * lost: then it comes when the request was repeated. An atomic in front is the one request that must
 * not be done twice: be surer there.
 */
#define STUCK_NS	500000000ull
#define STUCK_ATOMIC_NS	2000000000ull
#define STUCK_MOST_NS	10000000000ull

void rp_drain_harvest(struct rp_context *ctx)
{
	struct rp_cq *cq;

	rp_lock(&ctx->objects);
	list_for_each(cq, &ctx->cqs, node) {
		int n = cq->real ? rp_cq_harvest(cq) : 0;

		if (rp_counters && n > 0)
			rp_counters->drained_cqes += n;
	}
	rp_unlock(&ctx->objects);
}

static bool is_atomic(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* What it brings is nowhere but in the answer. */
static bool has_answer(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_READ || is_atomic(wr);
}

/* What a lost answer takes, and as much again (IBA 1.2.1 vol 1, 9.7.6.1.3: 4.096 us * 2^timeout). */
static uint64_t repeated_after(const struct rp_qp *qp)
{
	uint64_t ns = 2 * (4096ull << (qp->attr.timeout & 31));

	return !(qp->attr.timeout & 31) || ns > STUCK_MOST_NS ? STUCK_MOST_NS : ns;
}

/* How long without progress means stuck; 0: never, something in front will complete. */
static uint64_t stuck_after(const struct rp_qp *qp)
{
	uint64_t i, repeated = repeated_after(qp);
	uint64_t limit = STUCK_NS;

	for (i = atomic_load(&qp->sq.retired); i < qp->sq.submitted; i++) {
		const struct ibv_send_wr *wr = &rp_ring_slot(&qp->sq, i)->send;

		if (rp_consumes_receive(wr->opcode))
			return limit > repeated ? limit : repeated;
		if (is_atomic(wr))
			limit = STUCK_ATOMIC_NS;
	}
	return 0;
}

static struct rp_cq *send_cq(struct rp_qp *qp)
{
	return to_rp_cq(qp->qp.send_cq);
}

void rp_drain_count(void)
{
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node)
		send_cq(c->qp)->markers = 0;
	/* Where one is stuck there is room for all of its queue, when that is flushed. */
	list_for_each(c, &rp_conns, node)
		if (c->qp->marker_out && !c->qp->marker_done && !(c->moving && c->drained))
			send_cq(c->qp)->markers++;
}

bool rp_drain_may_mark(const struct rp_qp *qp)
{
	const struct rp_cq *cq = to_rp_cq(qp->qp.send_cq);

	return cq->markers < (cq->extra > 1 ? cq->extra : 1);
}

void rp_qp_retire_all(struct rp_qp *qp)
{
	struct rp_cq *cq = send_cq(qp);

	rp_lock(&cq->lock);
	rp_lock(&qp->lock);
	atomic_store(&qp->sq.retired, qp->sq.submitted);
	rp_unlock(&qp->lock);
	rp_unlock(&cq->lock);
}

static bool in_sqd(const struct rp_qp *qp)
{
	return __atomic_load_n(&qp->qp.state, __ATOMIC_ACQUIRE) == IBV_QPS_SQD;
}

bool rp_qp_held_back(const struct rp_qp *qp)
{
	struct ibv_qp_attr attr = { 0 };
	struct ibv_qp_init_attr init;

	return in_sqd(qp) &&
	       !RP_REAL(rp_real.ibv_query_qp(qp->real, &attr, IBV_QP_STATE, &init)) &&
	       attr.qp_state == IBV_QPS_SQD && !attr.sq_draining;
}

static void drained(struct rp_conn *c, bool stuck)
{
	c->drained = true;
	c->stuck = stuck;
	c->due |= 1u << REPATH_MSG_DRAINED;
	if (stuck) {
		rp_lock(&c->qp->lock);
		c->qp->flushed = false;
		c->qp->swallow = true;
		rp_unlock(&c->qp->lock);
	}
	if (stuck)
		rp_log(RP_LOG_INFO, "QP 0x%x: %llu requests wait for %s", c->qp->qp.qp_num,
		       (unsigned long long)(c->qp->sq.submitted - atomic_load(&c->qp->sq.retired)),
		       in_sqd(c->qp) ? "the end of SQD" : "receives of the peer");
}

void rp_drain_step(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	uint64_t retired = atomic_load(&qp->sq.retired), now, limit;
	int ret = 0;

	if (!qp->marker_out) {
		if (retired == qp->sq.submitted) {
			drained(c, false);
			return;
		}
		if (rp_qp_held_back(qp)) {
			drained(c, true);
			return;
		}
		/* A marker would not come back. If what has begun is stuck there is a limit to that, too. */
		if (in_sqd(qp))
			goto progress;
		if (!c->peer_gated)
			return;		/* it would not take the marker yet */
		if (!rp_drain_may_mark(qp))
			goto progress;
		rp_lock(&qp->lock);
		qp->marker_done = false;
		ret = rp_qp_post_marker(qp);
		rp_unlock(&qp->lock);
		if (!ret) {
			qp->marker_out = true;
			send_cq(qp)->markers++;
			c->progress_ns = rp_now_ns();
		} else if (ret != ENOMEM && ret != -ENOMEM) {
			rp_log(RP_LOG_ERR, "QP 0x%x: no marker: %s", qp->qp.qp_num,
			       strerror(ret < 0 ? -ret : ret));
		}
		/* ENOMEM: the device still holds the queue full; again after the next harvest. */
	}
	if (qp->marker_out && qp->marker_done) {
		qp->marker_out = false;
		if (c->marker_old && qp->marker_status == IBV_WC_SUCCESS) {
			c->marker_old = false;	/* now the one of this move */
			return;
		}
		if (qp->marker_status == IBV_WC_SUCCESS)
			rp_qp_retire_all(qp);
		else	/* the queue pair failed; its completions have told the application */
			rp_log(RP_LOG_ERR, "QP 0x%x failed while it was drained: %s",
			       qp->qp.qp_num, rp_real.ibv_wc_status_str(qp->marker_status));
		drained(c, false);
		return;
	}
	if (qp->marker_out && rp_qp_held_back(qp)) {
		drained(c, true);	/* it is one of a move before, and is held back as well */
		return;
	}
progress:
	now = rp_now_ns();
	if (retired != c->progress) {
		c->progress = retired;
		c->progress_ns = now;
		return;
	}
	limit = stuck_after(qp);
	if (limit && now - c->progress_ns > limit)
		drained(c, true);
}

/*
 * Flushed requests complete whether they asked for it or not; the application's CQ has room for
 * those that did.
 */
static void make_room_to_flush(const struct rp_conn *c)
{
	struct rp_cq *cq = send_cq(c->qp);
	unsigned int need = cq->cq.cqe + RP_CQ_EXTRA;
	struct rp_conn *o;
	int ret;

	list_for_each(o, &rp_conns, node)
		if (o->moving && o->stuck && send_cq(o->qp) == cq)
			need += o->qp->sq.size;
	ret = rp_cq_grow(cq, need);
	if (ret)
		rp_log(RP_LOG_ERR, "a completion queue can not be made larger: %s",
		       strerror(-ret));
}

bool rp_drain_flush(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int ret;

	if (!c->flushing) {
		rp_conn_leave(c);
		make_room_to_flush(c);
		rp_lock(&qp->lock);
		qp->recv_gate = true;
		/* Of what is held back in SQD it tells the end: there it was of no use before. */
		if (!qp->marker_out) {
			qp->marker_done = false;
			qp->marker_out = !rp_qp_post_marker(qp);
			c->marker_old = false;
		}
		rp_unlock(&qp->lock);
		ret = rp_qp_modify_real(qp, &attr, IBV_QP_STATE);
		if (ret)
			rp_log(RP_LOG_ERR, "QP 0x%x: ERR: %s", qp->qp.qp_num, strerror(-ret));
		c->flushing = true;
		c->progress_ns = rp_now_ns();
	}
	/* The marker is the last request in the queue: when it is flushed all are. */
	if (qp->marker_out && !qp->marker_done && rp_now_ns() - c->progress_ns < STUCK_ATOMIC_NS)
		return false;
	/* Nothing in front of it was flushed. */
	if (qp->marker_out && qp->marker_done && !c->marker_old && !qp->flushed)
		rp_qp_retire_all(qp);
	qp->marker_out = false;
	return true;
}

static uint64_t sends_done(const struct rp_qp *qp)
{
	uint64_t retired = atomic_load(&qp->sq.retired);

	return retired ? rp_ring_slot(&qp->sq, retired - 1)->sends : 0;
}

/* Settles those from the first one that is not retired to @end, which is not. Caller holds the locks. */
static void settle_to(struct rp_qp *qp, uint64_t end)
{
	uint64_t i = atomic_load(&qp->sq.retired);

	if (i == end)
		return;
	if (rp_counters)
		rp_counters->settled += end - i;
	rp_log(RP_LOG_INFO, "QP 0x%x: %llu requests settled by the peer's count", qp->qp.qp_num,
	       (unsigned long long)(end - i));
	for (; i < end; i++)
		rp_qp_settle_send(qp, i, IBV_WC_SUCCESS);
	if (qp->sq.submitted < end)
		qp->sq.submitted = end;
	rp_cq_soft_notify(send_cq(qp), false);
}

bool rp_drain_settle(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	struct rp_cq *cq = send_cq(qp);
	uint64_t i, end, unanswered;
	bool all;

	if (c->peer_count <= sends_done(qp))
		return true;
	rp_lock(&cq->lock);
	rp_lock(&qp->lock);
	end = atomic_load(&qp->sq.retired);
	unanswered = qp->sq.head;
	for (i = end; i < qp->sq.head; i++) {
		const struct rp_slot *s = rp_ring_slot(&qp->sq, i);

		if (s->sends > c->peer_count)
			break;
		if (rp_consumes_receive(s->send.opcode))
			end = i + 1;
		else if (has_answer(&s->send) && i < unanswered)
			unanswered = i;
	}
	all = end <= unanswered;
	settle_to(qp, all ? end : unanswered);
	rp_unlock(&qp->lock);
	rp_unlock(&cq->lock);
	if (!all)
		rp_log(RP_LOG_ERR,
		       "QP 0x%x: the peer has done what came behind a READ or an atomic, whose answer was lost",
		       qp->qp.qp_num);
	return all;
}

void rp_drain_fail_all(struct rp_qp *qp, enum ibv_wc_status first)
{
	struct rp_cq *scq = send_cq(qp), *rcq = to_rp_cq(qp->qp.recv_cq);
	bool any = false;
	uint64_t i;

	rp_lock(&scq->lock);
	rp_lock(&qp->lock);
	for (i = atomic_load(&qp->sq.retired); i < qp->sq.head; i++, first = IBV_WC_WR_FLUSH_ERR) {
		rp_qp_settle_send(qp, i, first);
		atomic_store(&qp->buried, false);
		any = true;
	}
	qp->sq.submitted = qp->sq.head;
	if (any)
		rp_cq_soft_notify(scq, true);
	rp_unlock(&qp->lock);
	rp_unlock(&scq->lock);

	if (qp->qp.srq)
		return;
	rp_lock(&rcq->lock);
	rp_lock(&qp->lock);
	any = false;
	for (i = atomic_load(&qp->rq.retired); i < qp->rq.head; i++, any = true)
		rp_qp_settle_recv(qp, i, IBV_WC_WR_FLUSH_ERR);
	qp->rq.submitted = qp->rq.head;
	if (any)
		rp_cq_soft_notify(rcq, true);
	rp_unlock(&qp->lock);
	rp_unlock(&rcq->lock);
}
