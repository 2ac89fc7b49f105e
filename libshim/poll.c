// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Polling. A completion's wr_id is the address of its slot, which says whose it is. */
#include "conn.h"
#include "mw.h"
#include "pool.h"

/* Under the lock of the CQ that reports the ring; requests complete in the order of posting. */
static inline void retire(struct rp_ring *r, const struct rp_slot *s)
{
	uint64_t next = s->index + 1;

	if (likely(next > atomic_load_explicit(&r->retired, memory_order_relaxed)))
		atomic_store_explicit(&r->retired, next, memory_order_release);
}

/* After a move of either end, and of windows: what else in a completion is the device's number. */
static void translate_moved(struct rp_qp *qp, const struct rp_slot *s, struct ibv_wc *wc)
{
	if (unlikely(qp->key_stop) && s->kind == RP_SLOT_SEND && s->index == qp->bad_index) {
		if (wc->status == IBV_WC_SUCCESS)
			wc->status = qp->bad_status;
		rp_keys_failed(qp);
	}
	if (qp->readdressed && wc->src_qp && qp->qp.qp_type != IBV_QPT_UD)
		wc->src_qp = qp->attr.dest_qp_num;
	if (qp->handles && wc->status == IBV_WC_SUCCESS && wc->wc_flags & IBV_WC_WITH_INV)
		rp_mw_invalidated(qp, wc);
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

/* false: it is hidden, and has told how far the device had come. */
static bool failed(struct rp_qp *qp, const struct rp_slot *s, struct ibv_wc *wc)
{
	/* The peer's end may be flushed before ours, and answer no more. */
	if ((wc->status == IBV_WC_WR_FLUSH_ERR || wc->status == IBV_WC_RETRY_EXC_ERR) &&
	    atomic_load(&qp->swallow)) {
		swallow(qp, s);
		return false;
	}
	if (!atomic_exchange(&qp->failed, true) && wc->status == IBV_WC_RETRY_EXC_ERR)
		rp_log(RP_LOG_ERR, "QP 0x%x: its peer has not answered any retry of the HCA", qp->qp.qp_num);
	if (s->kind == RP_SLOT_SEND && atomic_exchange(&qp->buried, false) &&
	    wc->status == IBV_WC_WR_FLUSH_ERR)
		wc->status = IBV_WC_RETRY_EXC_ERR;
	return true;
}

/* What has come back is in a ring, and for the application. */
static inline __attribute__((always_inline))
void report(struct rp_qp *qp, const struct rp_slot *s, struct ibv_wc *wc, bool good)
{
	if (s->kind == RP_SLOT_SEND) {
		retire(&qp->sq, s);
	} else {
		retire(&qp->rq, s);
		/* Written under the lock of this CQ alone. */
		atomic_store_explicit(&qp->recvs_done,
			atomic_load_explicit(&qp->recvs_done, memory_order_relaxed) + good,
			memory_order_relaxed);
	}
	wc->wr_id = s->wr_id;
	wc->qp_num = qp->qp.qp_num;
	if (unlikely(qp->foreign))
		translate_moved(qp, s, wc);
}

/* It has failed, or its slot says that it is hidden. */
static __attribute__((noinline)) bool translate_other(struct rp_slot *s, struct ibv_wc *wc)
{
	struct rp_qp *qp = s->owner;

	if (s->kind == RP_SLOT_SRQ)
		return rp_pool_completed(s, wc);
	if (s->kind == RP_SLOT_MARKER) {
		marker_back(qp, wc);
		return false;
	}
	if (wc->status == IBV_WC_SUCCESS) {
		retire(&qp->sq, s);
		return false;
	}
	if (!failed(qp, s, wc))
		return false;
	report(qp, s, wc, false);
	return true;
}

static inline __attribute__((always_inline)) bool translate(struct ibv_wc *wc)
{
	struct rp_slot *s = (struct rp_slot *)(uintptr_t)wc->wr_id;

	if (unlikely(s->hidden | wc->status))
		return translate_other(s, wc);
	report(s->owner, s, wc, true);
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

	while (got < n && rp_cq_soft_pop(cq, &wc[got], NULL))
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

/* The one at @at is not for the application. */
static __attribute__((noinline, cold)) int close_up(struct rp_cq *cq, int at, int found, int n,
						    struct ibv_wc *wc)
{
	return poll_more(cq, translate_rest(wc, at, found), n, wc);
}

/* All but the first; apart, so that who finds one or none saves no registers for it. */
static __attribute__((noinline)) int translate_more(struct rp_cq *cq, int found, int n,
						    struct ibv_wc *wc)
{
	int i;

	for (i = 1; i < found; i++)
		if (unlikely(!translate(&wc[i])))
			return close_up(cq, i, found, n, wc);
	return found;
}

int rp_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct rp_cq *cq = to_rp_cq(ibcq);
	int ret;

	rp_lock(&cq->lock);
	if (unlikely(cq->soft_n || !cq->real)) {
		ret = poll_more(cq, 0, n, wc);
	} else {
		ret = cq->real->context->ops.poll_cq(cq->real, n, wc);
		if (ret > 0 && unlikely(!translate(&wc[0])))
			ret = close_up(cq, 0, ret, n, wc);
		else if (ret > 1)
			ret = translate_more(cq, ret, n, wc);
	}
	rp_unlock(&cq->lock);
	return ret;
}
