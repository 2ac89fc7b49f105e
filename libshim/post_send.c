// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting to send queues. */
#include <string.h>

#include "conn.h"
#include "mw.h"
#include "ring.h"
#include "ud.h"

static inline struct rp_slot *slot_of_send(struct ibv_send_wr *wr)
{
	return (struct rp_slot *)((char *)wr - offsetof(struct rp_slot, send));
}

static int copy_inline(const struct rp_ring *r, struct rp_slot *s, const struct ibv_send_wr *wr)
{
	bool value = rp_has_atomic_value(wr);
	char *data = value ? rp_atomic_value(&s->send) : (char *)(slot_sge(s) + r->max_sge);
	size_t len = 0, max = value ? RP_ATOMIC_WRITE : r->max_inline;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (len + wr->sg_list[i].length > max)
			return EINVAL;
		memcpy(data + len, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		len += wr->sg_list[i].length;
	}
	if (value && len != max)
		return EINVAL;
	if (wr->num_sge) {
		slot_sge(s)[0] = (struct ibv_sge){ .addr = (uintptr_t)data, .length = len };
		s->send.num_sge = 1;
	}
	return 0;
}

/* Its owner may write over it as soon as it is posted. */
static int copy_header(const struct rp_ring *r, struct rp_slot *s, const struct ibv_send_wr *wr)
{
	char *header = (char *)(slot_sge(s) + r->max_sge) + r->max_inline;

	if (wr->tso.hdr_sz > r->max_header)
		return EINVAL;
	if (wr->tso.hdr_sz)
		memcpy(header, wr->tso.hdr, wr->tso.hdr_sz);
	s->send.tso.hdr = header;
	return 0;
}

/*
 * What every request has; the tail of the struct is for opcodes that fill_tail() names. What is before
 * num_sge never changes (rp_ring_alloc()).
 */
static inline __attribute__((always_inline))
void fill_send(struct rp_qp *qp, struct rp_slot *s, const struct ibv_send_wr *wr)
{
	struct rp_ring *r = &qp->sq;

	memcpy(&s->send.num_sge, &wr->num_sge, offsetof(struct ibv_send_wr, qp_type) -
	       offsetof(struct ibv_send_wr, num_sge));
	s->wr_id = wr->wr_id;
	s->index = r->head;
	s->hidden = !((wr->send_flags | qp->sig_all) & IBV_SEND_SIGNALED);
	s->sends = r->sends + rp_consumes_receive(wr->opcode);
}

/* Opcodes of requests that have a tail, or are given to the device in another way. */
#define TAILS (1u << IBV_WR_BIND_MW | 1u << IBV_WR_LOCAL_INV | 1u << IBV_WR_TSO | 1u << IBV_WR_ATOMIC_WRITE)

static inline bool has_tail(const struct rp_qp *qp, const struct ibv_send_wr *wr)
{
	return qp->tailed || (unsigned int)wr->opcode >= 32 || TAILS >> wr->opcode & 1;
}

/* By the device's ibv_wr_atomic_write(): no ibv_post_send() takes it, soft RoCE's loses the key. */
static bool is_built(const struct rp_qp *qp, const struct ibv_send_wr *wr)
{
	return rp_has_atomic_value(wr) && qp->has_ops &&
	       qp->init.send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE;
}

static int fill_tail(struct rp_qp *qp, struct rp_slot *s, const struct ibv_send_wr *wr)
{
	memcpy(&s->send.qp_type, &wr->qp_type, sizeof(*wr) - offsetof(struct ibv_send_wr, qp_type));
	if (wr->opcode == IBV_WR_TSO)
		return copy_header(&qp->sq, s, wr);
	if (is_built(qp, wr)) {
		qp->handles = qp->xlate = true;
	} else if (wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV) {
		qp->handles = qp->xlate = true;
		rp_mw_logged(qp, s);
	}
	return 0;
}

static int log_send(struct rp_qp *qp, const struct ibv_send_wr *wr)
{
	struct rp_ring *r = &qp->sq;
	struct rp_slot *s = r->next;
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
	if (unlikely(has_tail(qp, wr))) {
		ret = fill_tail(qp, s, wr);
		if (ret)
			return ret;
	}
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
		return rp_keymap_find(qp->rkeys, wr->invalidate_rkey, &wr->invalidate_rkey);
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
	if (from->opcode == IBV_WR_BIND_MW)
		rp_mw_real_bind(to);
	else if (from->opcode == IBV_WR_LOCAL_INV)
		rp_mw_real_inv(qp, to);
	else if (qp->qp.qp_type == IBV_QPT_UD)
		rp_ah_real(to);
	return !qp->rkeys || real_rkey(qp, to);
}

/* Whose key it is that is not known, as the completion would say. */
static enum ibv_wc_status which_key(const struct rp_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_sge sge[wr->num_sge > 0 ? wr->num_sge : 1];

	return wr->send_flags & IBV_SEND_INLINE ||
	       rp_real_sges(qp, sge, wr->sg_list, wr->num_sge) ? IBV_WC_REM_ACCESS_ERR :
								 IBV_WC_LOC_PROT_ERR;
}

/*
 * A request with a key that nobody has. The peer's device would refuse it, this one's even know it;
 * but another request may have that number on the device. An RDMA WRITE of no bytes takes its place:
 * when it comes back all before it has been executed, and it is reported as it would have failed.
 * What is behind it waits, to be flushed. On UC, where nobody says anything, it just does nothing.
 */
static void make_bad(struct rp_qp *qp, struct rp_slot *s, struct ibv_send_wr *wr,
		     enum ibv_wc_status status)
{
	rp_log(RP_LOG_ERR, "QP 0x%x: a request has a key that is not known", qp->qp.qp_num);
	*wr = (struct ibv_send_wr){
		.wr_id = (uintptr_t)s,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	if (qp->qp.qp_type != IBV_QPT_RC && status == IBV_WC_REM_ACCESS_ERR)
		return;
	s->hidden = false;
	qp->bad_index = s->index;
	qp->bad_status = status;
	qp->key_stop = true;
	qp->readdressed = true;
	rp_cq_any_event(to_rp_cq(qp->qp.send_cq));
}

static int build(struct rp_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *x = rp_real.ibv_qp_to_qp_ex(qp->real);

	ibv_wr_start(x);
	x->wr_id = wr->wr_id;
	x->wr_flags = wr->send_flags & ~IBV_SEND_INLINE;
	ibv_wr_atomic_write(x, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, rp_atomic_value(wr));
	return ibv_wr_complete(x);
}

/* With keys translated, RP_SCRATCH at a time. */
static int submit_sends_moved(struct rp_qp *qp)
{
	struct rp_scratch *x = rp_scratch_of(qp);
	struct rp_ring *r = &qp->sq;

	if (!x)
		return ENOMEM;
	/* The device did not take it, or has given it back. */
	if (qp->key_stop && r->submitted <= qp->bad_index)
		qp->key_stop = false;
	while (r->submitted < r->head && !qp->key_stop) {
		struct ibv_send_wr *bad = NULL;
		uint64_t first = r->submitted;
		int n = 0, ret = 0, unknown = 0;
		bool hold = false;

		if (rp_mw_is_type1(&rp_ring_slot(r, first)->send)) {
			ret = rp_mw_bind_type1(qp, rp_ring_slot(r, first));
			if (ret)
				return ret;
			r->submitted++;
			continue;
		}
		while (n < RP_SCRATCH && first + n < r->head) {
			struct rp_slot *s = rp_ring_slot(r, first + n);

			if (rp_mw_is_type1(&s->send) || (n && is_built(qp, &s->send)))
				break;

			if (!real_send(qp, &x->send[n], &x->sge[n * x->max_sge], &s->send)) {
				enum ibv_wc_status why = which_key(qp, &s->send);

				hold = why == IBV_WC_REM_ACCESS_ERR &&
				       rp_keys_in_doubt(qp, s->index);
				if (!hold && qp->qp.qp_type == IBV_QPT_UD)
					unknown = EINVAL;
				if (hold || unknown)
					break;
				make_bad(qp, s, &x->send[n], why);
			}
			x->send[n].next = NULL;
			if (n)
				x->send[n - 1].next = &x->send[n];
			n++;
			if (qp->key_stop || s->send.opcode == IBV_WR_BIND_MW || is_built(qp, &s->send))
				break;
		}
		r->submitted += n;
		if (n && is_built(qp, x->send))
			ret = build(qp, x->send);
		else if (n)
			ret = qp->real->context->ops.post_send(qp->real, x->send, &bad);
		if (ret) {
			r->submitted = first + (bad ? bad - x->send : 0);
			return ret;
		}
		/* A provider may ask the handle for the window's key of the time of the post. */
		if (n && x->send[n - 1].opcode == IBV_WR_BIND_MW)
			x->send[n - 1].bind_mw.mw->rkey = x->send[n - 1].bind_mw.rkey;
		if (unknown)
			return unknown;
		if (hold) {
			rp_keys_hold(qp);
			return 0;
		}
	}
	return 0;
}

/*
 * To be flushed by a queue pair in ERR, in order: requests stand for those of the program, which may name objects of
 * the shim, or be such that no ibv_post_send() takes. Without bytes, were the device to execute one.
 */
static int submit_flushed(struct rp_qp *qp)
{
	bool datagrams = qp->qp.qp_type == IBV_QPT_UD;
	struct rp_ring *r = &qp->sq;
	int ret = 0;

	while (r->submitted < r->head && !ret) {
		struct rp_slot *s = rp_ring_slot(r, r->submitted++);
		struct ibv_send_wr *bad, wr = {
			.wr_id = (uintptr_t)s,
			.opcode = datagrams ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
		};

		if (datagrams) {
			wr.wr.ud = s->send.wr.ud;
			rp_ah_real(&wr);
		}
		ret = qp->real->context->ops.post_send(qp->real, &wr, &bad);
	}
	if (ret)
		r->submitted--;
	return ret;
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
	if (unlikely(qp->as_is))
		return submit_flushed(qp);
	if (unlikely(qp->xlate) && (!rp_no_remap || qp->handles))
		return submit_sends_moved(qp);
	for (i = first; i + 1 < r->head; i++)
		rp_ring_slot(r, i)->send.next = &rp_ring_slot(r, i + 1)->send;
	r->submitted = r->head;
	ret = qp->real->context->ops.post_send(qp->real, &rp_ring_slot(r, first)->send, &bad);
	for (i = first; i + 1 < r->head; i++)
		rp_ring_slot(r, i)->send.next = NULL;
	if (unlikely(ret))
		r->submitted = bad ? slot_of_send(bad)->index : first;
	return ret;
}

static int post_send_list(struct rp_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct rp_ring *r = &qp->sq;
	bool swept = false;
	int ret, err;

	/* Nothing is posted by it; some providers call it an error. */
	if (!wr)
		return qp->gate || !qp->real ? 0 : qp->real->context->ops.post_send(qp->real, NULL, bad);
	/* While it is kept no device refuses it. */
	if (qp->gate && __atomic_load_n(&qp->qp.state, __ATOMIC_ACQUIRE) < IBV_QPS_RTS) {
		*bad = wr;
		return EINVAL;
	}
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
				if (qp->handles)
					rp_mw_rolled_back(qp);
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

/* One request with one element on an RC queue pair: what benchmarks and most programs do. Everything
 * else, and every error, is post_send_list()'s. */
static inline bool is_plain_send(struct rp_qp *qp, const struct ibv_send_wr *wr, uint32_t slow)
{
	if (unlikely(qp->slow & slow))
		return false;
	return !wr->next && wr->num_sge == 1 &&
	       !(wr->send_flags & IBV_SEND_INLINE) && (unsigned int)wr->opcode < 32 &&
	       !(TAILS >> wr->opcode & 1) && !ring_full(&qp->sq);
}

/* @real: what the device is given; NULL: what is logged. */
static inline __attribute__((always_inline))
int post_plain_send(struct rp_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr *real,
		    struct ibv_send_wr **bad)
{
	struct rp_ring *r = &qp->sq;
	struct rp_slot *s = r->next;
	int ret;

	fill_send(qp, s, wr);
	*slot_sge(s) = wr->sg_list[0];
	r->sends = s->sends;
	ring_advance(r);
	r->submitted = r->head;
	ret = qp->real->context->ops.post_send(qp->real, real ?: &s->send, bad);
	if (unlikely(ret)) {
		r->submitted--;
		rp_ring_rollback(r);
		*bad = wr;
	}
	return ret;
}

/*
 * The same after a move, with real keys, if all before it was given to the device and the keys are
 * known; false: it is for post_send_list().
 */
static bool post_moved_send(struct rp_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
			    int *ret)
{
	struct rp_scratch *x;
	struct ibv_send_wr *to;

	if (!is_plain_send(qp, wr, rp_slow_moved_send.mask) || qp->sq.submitted < qp->sq.head ||
	    qp->key_stop || qp->as_is || qp->handles || rp_no_remap)
		return false;
	x = rp_scratch_of(qp);
	if (!x || !rp_real_sges(qp, x->sge, wr->sg_list, 1))
		return false;
	to = x->send;
	memcpy(&to->num_sge, &wr->num_sge, offsetof(struct ibv_send_wr, qp_type) -
	       offsetof(struct ibv_send_wr, num_sge));
	to->wr_id = (uintptr_t)qp->sq.next;
	to->next = NULL;
	to->sg_list = x->sge;
	if (qp->rkeys && !real_rkey(qp, to))
		return false;
	*ret = post_plain_send(qp, wr, to, bad);
	return true;
}

static __attribute__((noinline))
int post_other_send(struct rp_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int ret;

	if (wr && post_moved_send(qp, wr, bad, &ret))
		return ret;
	ret = post_send_list(qp, wr, bad);
	if (unlikely(qp->sqe)) {
		rp_unlock(&qp->lock);	/* the CQ's comes first */
		rp_sqe_flush(qp);
		rp_lock(&qp->lock);
	}
	return ret;
}

static int post_other_batch(struct rp_qp *qp, struct ibv_send_wr *wr, unsigned int n)
{
	struct rp_ring *r = &qp->sq;
	struct ibv_send_wr *bad;

	if (!has_room(r, n))
		rp_ring_make_room(qp, r, qp->qp.send_cq);
	return has_room(r, n) ? post_other_send(qp, wr, &bad) : ENOMEM;
}

/* @n: 0: as many of them as there is room for; else all of these, or none. */
static __attribute__((noinline))
int post_datagrams(struct rp_qp *qp, struct ibv_send_wr *wr, unsigned int n, struct ibv_send_wr **bad)
{
	uint64_t since = rp_ah_prepare(qp, wr);
	int ret;

	rp_lock(&qp->lock);
	ret = n ? post_other_batch(qp, wr, n) : post_other_send(qp, wr, bad);
	rp_ah_posted(qp, since);
	rp_unlock(&qp->lock);
	return ret;
}

int rp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct rp_qp *qp = to_rp_qp(ibqp);
	int ret;

	if (unlikely(ibqp->qp_type == IBV_QPT_UD))
		return post_datagrams(qp, wr, 0, bad);
	rp_lock(&qp->lock);
	if (likely(wr && is_plain_send(qp, wr, rp_slow_send.mask)))
		ret = post_plain_send(qp, wr, NULL, bad);
	else
		ret = post_other_send(qp, wr, bad);
	rp_unlock(&qp->lock);
	return ret;
}

int rp_qp_post_batch(struct rp_qp *qp, struct ibv_send_wr *wr, unsigned int n)
{
	struct ibv_send_wr *bad;
	int ret;

	if (unlikely(qp->qp.qp_type == IBV_QPT_UD))
		return post_datagrams(qp, wr, n, NULL);
	rp_lock(&qp->lock);
	if (likely(is_plain_send(qp, wr, rp_slow_send.mask)))
		ret = post_plain_send(qp, wr, NULL, &bad);
	else
		ret = post_other_batch(qp, wr, n);
	rp_unlock(&qp->lock);
	return ret;
}

int rp_qp_post_marker(struct rp_qp *qp)
{
	struct rp_slot *s = &qp->marker;
	struct ibv_send_wr *bad;

	s->kind = RP_SLOT_MARKER;
	s->hidden = true;
	s->owner = qp;
	s->send = (struct ibv_send_wr){
		.wr_id = (uintptr_t)s,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	return qp->real->context->ops.post_send(qp->real, &s->send, &bad);
}
