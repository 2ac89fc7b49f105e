// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting to send queues. */
#include <string.h>

#include "ring.h"

static inline struct rp_slot *slot_of_send(struct ibv_send_wr *wr)
{
	return (struct rp_slot *)((char *)wr - offsetof(struct rp_slot, send));
}

static int copy_inline(const struct rp_ring *r, struct rp_slot *s, const struct ibv_send_wr *wr)
{
	char *data = (char *)(slot_sge(s) + r->max_sge);
	size_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (len + wr->sg_list[i].length > r->max_inline)
			return EINVAL;
		memcpy(data + len, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		len += wr->sg_list[i].length;
	}
	if (wr->num_sge) {
		slot_sge(s)[0] = (struct ibv_sge){ .addr = (uintptr_t)data, .length = len };
		s->send.num_sge = 1;
	}
	return 0;
}

/* Handles of objects that are not moved: the device's own go into the log. */
static void unwrap_handles(const struct rp_qp *qp, struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_BIND_MW) {
		wr->bind_mw.mw = real_mw(wr->bind_mw.mw);
		wr->bind_mw.bind_info.mr = real_mr(wr->bind_mw.bind_info.mr);
	} else if (qp->qp.qp_type == IBV_QPT_UD) {
		wr->wr.ud.ah = real_ah(wr->wr.ud.ah);
	}
}

/* What every request has; the tail of the struct is for opcodes that fill_tail() names. */
static inline __attribute__((always_inline))
void fill_send(struct rp_qp *qp, struct rp_slot *s, const struct ibv_send_wr *wr)
{
	struct rp_ring *r = &qp->sq;

	s->send.wr_id = (uintptr_t)s;
	s->send.next = NULL;
	s->send.sg_list = slot_sge(s);
	memcpy(&s->send.num_sge, &wr->num_sge, offsetof(struct ibv_send_wr, qp_type) -
	       offsetof(struct ibv_send_wr, num_sge));
	s->wr_id = wr->wr_id;
	s->index = r->head;
	s->hidden = !((wr->send_flags | qp->sig_all) & IBV_SEND_SIGNALED);
	s->sends = r->sends + rp_consumes_receive(wr->opcode);
}

static inline bool has_tail(const struct rp_qp *qp, const struct ibv_send_wr *wr)
{
	return qp->qp.qp_type != IBV_QPT_RC || wr->opcode == IBV_WR_BIND_MW;
}

static void fill_tail(const struct rp_qp *qp, struct rp_slot *s, const struct ibv_send_wr *wr)
{
	memcpy(&s->send.qp_type, &wr->qp_type, sizeof(*wr) - offsetof(struct ibv_send_wr, qp_type));
	unwrap_handles(qp, &s->send);
}

static int log_send(struct rp_qp *qp, const struct ibv_send_wr *wr)
{
	struct rp_ring *r = &qp->sq;
	struct rp_slot *s = (struct rp_slot *)r->next;
	struct ibv_sge *sge = slot_sge(s);
	int i, ret;

	if (unlikely((unsigned int)wr->num_sge > r->max_sge))
		return EINVAL;
	fill_send(qp, s, wr);
	if (unlikely(wr->send_flags & IBV_SEND_INLINE)) {
		ret = copy_inline(r, s, wr);
		if (ret)
			return ret;
	} else {
		for (i = 0; i < wr->num_sge; i++)
			sge[i] = wr->sg_list[i];
	}
	if (unlikely(has_tail(qp, wr)))
		fill_tail(qp, s, wr);
	r->sends = s->sends;
	ring_advance(r);
	return 0;
}

static bool real_rkey(const struct rp_qp *qp, struct ibv_send_wr *wr)
{
	uint32_t *key;

	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		key = &wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		key = &wr->wr.atomic.rkey;
		break;
	case IBV_WR_SEND_WITH_INV:
		key = &wr->invalidate_rkey;
		break;
	default:
		return true;
	}
	/* Of a request without payload the key is not looked at (IBA 1.2.1 vol 1, C9-88). */
	return rp_keymap_find(qp->rkeys, *key, key) || !rp_payload(wr);
}

static bool real_send(const struct rp_qp *qp, struct ibv_send_wr *to, struct ibv_sge *sge,
		      const struct ibv_send_wr *from)
{
	*to = *from;
	if (!(from->send_flags & IBV_SEND_INLINE)) {
		to->sg_list = sge;
		if (!rp_real_sges(qp, sge, from->sg_list, from->num_sge))
			return false;
	}
	return !qp->rkeys || real_rkey(qp, to);
}

/* With keys translated, RP_SCRATCH at a time. */
static int submit_sends_moved(struct rp_qp *qp)
{
	struct rp_scratch *x = rp_scratch_of(qp);
	struct rp_ring *r = &qp->sq;

	if (!x)
		return ENOMEM;
	while (r->submitted < r->head) {
		struct ibv_send_wr *bad = NULL;
		uint64_t first = r->submitted;
		int n = 0, ret = 0, unknown = 0;

		while (n < RP_SCRATCH && first + n < r->head) {
			struct rp_slot *s = rp_ring_slot(r, first + n);

			if (!real_send(qp, &x->send[n], &x->sge[n * x->max_sge], &s->send)) {
				rp_log(RP_LOG_ERR, "QP 0x%x: a request has a key that is not known",
				       qp->qp.qp_num);
				unknown = EINVAL;
				break;
			}
			x->send[n].next = NULL;
			if (n)
				x->send[n - 1].next = &x->send[n];
			n++;
		}
		r->submitted += n;
		if (n)
			ret = qp->real->context->ops.post_send(qp->real, x->send, &bad);
		if (ret) {
			r->submitted = first + (bad ? bad - x->send : 0);
			return ret;
		}
		if (unknown)
			return unknown;
	}
	return 0;
}

int rp_qp_submit_sends(struct rp_qp *qp)
{
	struct rp_ring *r = &qp->sq;
	struct ibv_send_wr *bad = NULL;
	uint64_t i, first = r->submitted;
	int ret;

	if (first == r->head)
		return 0;
	if (!qp->real)
		return ENODEV;
	if (unlikely(qp->xlate) && !rp_no_remap)
		return submit_sends_moved(qp);
	for (i = first; i + 1 < r->head; i++)
		rp_ring_slot(r, i)->send.next = &rp_ring_slot(r, i + 1)->send;
	rp_ring_slot(r, i)->send.next = NULL;
	r->submitted = r->head;
	ret = qp->real->context->ops.post_send(qp->real, &rp_ring_slot(r, first)->send, &bad);
	if (unlikely(ret))
		r->submitted = bad ? slot_of_send(bad)->index : first;
	return ret;
}

static int post_send_list(struct rp_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct rp_ring *r = &qp->sq;
	bool swept = false;
	int ret, err;

	while (wr) {
		struct ibv_send_wr *from = wr;
		uint64_t first = r->head;

		err = 0;
		for (; wr && !ring_full(r) && !err; wr = err ? wr : wr->next)
			err = log_send(qp, wr);
		if (!qp->gate) {
			ret = rp_qp_submit_sends(qp);
			if (ret) {
				for (; first < r->submitted; first++)
					from = from->next;
				rp_ring_rollback(r);
				*bad = from;
				return ret;
			}
		}
		if (!err && wr && (swept || !rp_ring_make_room(qp, r, qp->qp.send_cq)))
			err = ENOMEM;
		swept = true;
		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}

/* One request with one element on an RC queue pair that has not moved: what benchmarks and most
 * programs do. Everything else, and every error, is post_send_list()'s. */
static inline bool is_plain_send(const struct rp_qp *qp, const struct ibv_send_wr *wr)
{
	return !wr->next && wr->num_sge == 1 && !(qp->gate | qp->xlate) &&
	       !(wr->send_flags & IBV_SEND_INLINE) && !has_tail(qp, wr) && !ring_full(&qp->sq);
}

static inline int post_plain_send(struct rp_qp *qp, struct ibv_send_wr *wr,
				  struct ibv_send_wr **bad)
{
	struct rp_ring *r = &qp->sq;
	struct rp_slot *s = (struct rp_slot *)r->next;
	int ret;

	fill_send(qp, s, wr);
	*slot_sge(s) = wr->sg_list[0];
	r->sends = s->sends;
	ring_advance(r);
	r->submitted = r->head;
	ret = qp->real->context->ops.post_send(qp->real, &s->send, bad);
	if (unlikely(ret)) {
		r->submitted--;
		rp_ring_rollback(r);
		*bad = wr;
	}
	return ret;
}

int rp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct rp_qp *qp = to_rp_qp(ibqp);
	int ret;

	rp_lock(&qp->lock);
	if (likely(is_plain_send(qp, wr)))
		ret = post_plain_send(qp, wr, bad);
	else
		ret = post_send_list(qp, wr, bad);
	rp_unlock(&qp->lock);
	return ret;
}

int rp_qp_post_batch(struct rp_qp *qp, struct ibv_send_wr *wr, unsigned int n)
{
	struct rp_ring *r = &qp->sq;
	struct ibv_send_wr *bad;
	int ret = ENOMEM;

	rp_lock(&qp->lock);
	if (likely(is_plain_send(qp, wr))) {
		ret = post_plain_send(qp, wr, &bad);
	} else {
		if (!has_room(r, n))
			rp_ring_make_room(qp, r, qp->qp.send_cq);
		if (has_room(r, n))
			ret = post_send_list(qp, wr, &bad);
	}
	rp_unlock(&qp->lock);
	return ret;
}

int rp_qp_post_bind(struct rp_qp *qp, const struct ibv_mw_bind *bind,
		    int (*post)(struct rp_qp *qp, void *arg, struct ibv_mw_bind *bind), void *arg)
{
	struct rp_ring *r = &qp->sq;
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags,
	};
	struct ibv_mw_bind b = *bind;
	int ret = ENOMEM;

	rp_lock(&qp->lock);
	/* Nothing may pass what a gate keeps, and the verb can not wait: as if the queue were full. */
	if (!qp->gate && (!ring_full(r) || rp_ring_make_room(qp, r, qp->qp.send_cq)) &&
	    !qp->gate) {
		b.wr_id = (uintptr_t)r->next;
		b.bind_info.mr = real_mr(bind->bind_info.mr);
		log_send(qp, &wr);
		r->submitted = r->head;
		ret = post(qp, arg, &b);
		if (ret) {
			r->submitted--;
			rp_ring_rollback(r);
		}
	}
	rp_unlock(&qp->lock);
	return ret;
}

int rp_qp_post_marker(struct rp_qp *qp)
{
	struct rp_slot *s = &qp->marker;
	struct ibv_send_wr *bad;

	s->kind = RP_SLOT_MARKER;
	s->owner = qp;
	s->send = (struct ibv_send_wr){
		.wr_id = (uintptr_t)s,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	return qp->real->context->ops.post_send(qp->real, &s->send, &bad);
}
