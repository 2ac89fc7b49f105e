// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting to receive queues. */
#include "ring.h"

static inline struct rp_slot *slot_of_recv(struct ibv_recv_wr *wr)
{
	return (struct rp_slot *)((char *)wr - offsetof(struct rp_slot, recv));
}

static int log_recv(struct rp_qp *qp, const struct ibv_recv_wr *wr)
{
	struct rp_ring *r = &qp->rq;
	struct rp_slot *s = r->next;
	struct ibv_sge *sge = slot_sge(s);
	int i;

	if (unlikely((unsigned int)wr->num_sge > r->max_sge))
		return EINVAL;
	if (unlikely(qp->xlate) && !rp_no_remap && !rp_real_sges(qp, sge, wr->sg_list, wr->num_sge))
		return EINVAL;
	s->recv.num_sge = wr->num_sge;
	s->wr_id = wr->wr_id;
	s->index = r->head;
	for (i = 0; i < wr->num_sge; i++)
		sge[i] = wr->sg_list[i];
	ring_advance(r);
	return 0;
}

/*
 * A region that is gone since its receive was posted: the receive fails when it is used, as it would have on the
 * old device.
 */
static void no_sges(struct ibv_sge *to, const struct ibv_sge *from, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		to[i] = from[i];
		to[i].lkey = RP_NO_KEY;
	}
}

static int submit_recvs_moved(struct rp_qp *qp)
{
	struct rp_scratch *x = rp_scratch_of(qp);
	struct rp_ring *r = &qp->rq;

	if (!x)
		return ENOMEM;
	while (r->submitted < r->head) {
		struct ibv_recv_wr *bad = NULL;
		uint64_t first = r->submitted;
		int n = 0, ret = 0;

		while (n < RP_SCRATCH && first + n < r->head) {
			struct rp_slot *s = rp_ring_slot(r, first + n);

			x->recv[n] = s->recv;
			x->recv[n].sg_list = &x->sge[n * x->max_sge];
			if (!rp_real_sges(qp, x->recv[n].sg_list, s->recv.sg_list,
					  s->recv.num_sge))
				no_sges(x->recv[n].sg_list, s->recv.sg_list, s->recv.num_sge);
			x->recv[n].next = NULL;
			if (n)
				x->recv[n - 1].next = &x->recv[n];
			n++;
		}
		r->submitted += n;
		ret = qp->real->context->ops.post_recv(qp->real, x->recv, &bad);
		if (ret) {
			r->submitted = first + (bad ? bad - x->recv : 0);
			return ret;
		}
	}
	return 0;
}

int rp_qp_submit_recvs(struct rp_qp *qp)
{
	struct rp_ring *r = &qp->rq;
	struct ibv_recv_wr *bad = NULL;
	uint64_t i, first = r->submitted;
	int ret;

	if (first == r->head)
		return 0;
	if (!qp->real)
		return ENODEV;
	if (unlikely(qp->xlate) && !rp_no_remap)
		return submit_recvs_moved(qp);
	for (i = first; i + 1 < r->head; i++)
		rp_ring_slot(r, i)->recv.next = &rp_ring_slot(r, i + 1)->recv;
	r->submitted = r->head;
	ret = qp->real->context->ops.post_recv(qp->real, &rp_ring_slot(r, first)->recv, &bad);
	for (i = first; i + 1 < r->head; i++)
		rp_ring_slot(r, i)->recv.next = NULL;
	if (unlikely(ret))
		r->submitted = bad ? slot_of_recv(bad)->index : first;
	return ret;
}

static int post_recv_list(struct rp_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct rp_ring *r = &qp->rq;
	bool swept = false;
	int ret, err;

	/* Nothing is posted by it; some providers call it an error. */
	if (!wr)
		return qp->recv_gate || !qp->real ? 0 :
		       qp->real->context->ops.post_recv(qp->real, NULL, bad);
	while (wr) {
		struct ibv_recv_wr *from = wr;
		uint64_t first = r->head;

		err = 0;
		for (; wr && !ring_full(r) && !err; wr = err ? wr : wr->next)
			err = log_recv(qp, wr);
		if (!qp->recv_gate) {
			ret = rp_qp_submit_recvs(qp);
			if (ret) {
				for (; first < r->submitted; first++)
					from = from->next;
				rp_ring_rollback(r);
				*bad = from;
				return ret;
			}
		}
		if (!err && wr && (swept || !rp_ring_make_room(qp, r, qp->qp.recv_cq)))
			err = ENOMEM;
		swept = true;
		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}

static inline bool is_plain_recv(struct rp_qp *qp, const struct ibv_recv_wr *wr, uint32_t slow)
{
	if (unlikely(qp->slow & slow))
		return false;
	return !wr->next && wr->num_sge == 1 && !ring_full(&qp->rq);
}

/* @real: what the device is given; NULL: what is logged. */
static inline __attribute__((always_inline))
int post_plain_recv(struct rp_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr *real,
		    struct ibv_recv_wr **bad)
{
	struct rp_ring *r = &qp->rq;
	struct rp_slot *s = r->next;
	int ret;

	s->recv.num_sge = 1;
	s->wr_id = wr->wr_id;
	s->index = r->head;
	*slot_sge(s) = wr->sg_list[0];
	ring_advance(r);
	r->submitted = r->head;
	ret = qp->real->context->ops.post_recv(qp->real, real ?: &s->recv, bad);
	if (unlikely(ret)) {
		r->submitted--;
		rp_ring_rollback(r);
		*bad = wr;
	}
	return ret;
}

/*
 * The same after a move, with its real key, if all before it was given to the device and the key is
 * known; false: it is for post_recv_list().
 */
static bool post_moved_recv(struct rp_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
			    int *ret)
{
	struct rp_scratch *x;

	if (!is_plain_recv(qp, wr, rp_slow_moved_recv.mask) || qp->rq.submitted < qp->rq.head ||
	    rp_no_remap)
		return false;
	x = rp_scratch_of(qp);
	if (!x || !rp_real_sges(qp, x->sge, wr->sg_list, 1))
		return false;
	x->recv[0] = (struct ibv_recv_wr){ .wr_id = (uintptr_t)qp->rq.next, .sg_list = x->sge,
					   .num_sge = 1 };
	*ret = post_plain_recv(qp, wr, x->recv, bad);
	return true;
}

/* Apart, so that the short way saves no registers for it. */
static __attribute__((noinline))
int post_other_recv(struct rp_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int ret;

	if (!qp->rq.slots) {	/* it has an SRQ, or does not receive */
		*bad = wr;
		return EINVAL;
	}
	return wr && post_moved_recv(qp, wr, bad, &ret) ? ret : post_recv_list(qp, wr, bad);
}

int rp_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct rp_qp *qp = to_rp_qp(ibqp);
	int ret;

	rp_lock(&qp->lock);
	if (likely(wr && is_plain_recv(qp, wr, rp_slow_recv.mask)))
		ret = post_plain_recv(qp, wr, NULL, bad);
	else
		ret = post_other_recv(qp, wr, bad);
	rp_unlock(&qp->lock);
	return ret;
}
