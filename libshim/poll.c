// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Polling. A completion's wr_id is the address of its slot, which says whose it is. */
#include "objects.h"

/* Under the lock of the CQ that reports the ring; requests complete in the order of posting. */
static inline void retire(struct rp_ring *r, const struct rp_slot *s)
{
	uint64_t next = s->index + 1;

	if (likely(next > atomic_load_explicit(&r->retired, memory_order_relaxed)))
		atomic_store_explicit(&r->retired, next, memory_order_release);
}

/* After a move of either end: what else in a completion is the device's number. */
static void translate_moved(const struct rp_qp *qp, struct ibv_wc *wc)
{
	if (wc->src_qp && qp->qp.qp_type == IBV_QPT_RC)
		wc->src_qp = qp->attr.dest_qp_num;
}

static void marker_back(struct rp_qp *qp, const struct ibv_wc *wc)
{
	atomic_store(&qp->marker_status, wc->status);
	atomic_store(&qp->marker_done, true);
}

/*
 * A queue that was stuck is flushed, in order, whether a completion was asked for or not: what
 * stands before the first flushed request has been executed.
 */
static void swallow(struct rp_qp *qp, const struct rp_slot *s)
{
	if (s->kind != RP_SLOT_SEND || qp->flushed)
		return;
	qp->flushed = true;
	if (s->index > atomic_load(&qp->sq.retired))
		atomic_store(&qp->sq.retired, s->index);
}

static inline __attribute__((always_inline)) bool translate(struct ibv_wc *wc)
{
	struct rp_slot *s = (struct rp_slot *)(uintptr_t)wc->wr_id;
	struct rp_qp *qp = s->owner;

	if (likely(s->kind <= RP_SLOT_RECV)) {
		/* The peer's end may be flushed before ours, and answer no more. */
		if (unlikely(wc->status == IBV_WC_WR_FLUSH_ERR ||
			     wc->status == IBV_WC_RETRY_EXC_ERR) && atomic_load(&qp->swallow)) {
			swallow(qp, s);
			return false;
		}
		if (s->kind == RP_SLOT_SEND) {
			retire(&qp->sq, s);
			if (unlikely(s->hidden) && wc->status == IBV_WC_SUCCESS)
				return false;
		} else {
			retire(&qp->rq, s);
			if (likely(wc->status == IBV_WC_SUCCESS))
				atomic_fetch_add_explicit(&qp->recvs_done, 1,
							  memory_order_relaxed);
		}
		wc->wr_id = s->wr_id;
		wc->qp_num = qp->qp.qp_num;
		if (unlikely(qp->readdressed))
			translate_moved(qp, wc);
		return true;
	}
	if (s->kind == RP_SLOT_MARKER) {
		marker_back(qp, wc);
		return false;
	}
	rp_pool_completed(s, wc);
	return true;
}

bool rp_wc_translate(struct ibv_wc *wc)
{
	return translate(wc);
}

/* What was hidden leaves a gap: the rest closes up. Returns how many are left of @n. */
static int translate_rest(struct ibv_wc *wc, int hidden, int n)
{
	int kept = hidden, i;

	for (i = hidden + 1; i < n; i++)
		if (translate(&wc[i]))
			wc[kept++] = wc[i];
	return kept;
}

/* As often as something was hidden, there may be more: fewer than asked for means empty. */
static __attribute__((noinline)) int poll_more(struct rp_cq *cq, int got, int n, struct ibv_wc *wc)
{
	int ret, kept, i;

	while (got < n && rp_cq_soft_pop(cq, &wc[got]))
		got++;
	while (got < n && cq->real) {
		ret = cq->real->context->ops.poll_cq(cq->real, n - got, wc + got);
		if (ret <= 0)
			return ret < 0 && !got ? ret : got;
		for (kept = i = 0; i < ret; i++)
			if (translate(&wc[got + i]))
				wc[got + kept++] = wc[got + i];
		got += kept;
		if (kept == ret)
			break;
	}
	return got;
}

int rp_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct rp_cq *cq = to_rp_cq(ibcq);
	int ret, i;

	rp_lock(&cq->lock);
	if (unlikely(cq->soft_n || !cq->real)) {
		ret = poll_more(cq, 0, n, wc);
	} else {
		ret = cq->real->context->ops.poll_cq(cq->real, n, wc);
		for (i = 0; i < ret; i++)
			if (unlikely(!translate(&wc[i]))) {
				ret = poll_more(cq, translate_rest(wc, i, ret), n, wc);
				break;
			}
	}
	rp_unlock(&cq->lock);
	return ret;
}
