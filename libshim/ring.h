/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rings in which requests are logged: from their slots they are given to the device, and given
 * again after a move. What both queues of a queue pair share.
 */
#ifndef RP_RING_H
#define RP_RING_H

#include "objects.h"

#define RP_SCRATCH 16	/* requests translated at once */

/**
 * struct rp_scratch - requests with real keys, after a move
 * @sge: @max_sge for each
 */
struct rp_scratch {
	unsigned int max_sge;
	struct ibv_send_wr send[RP_SCRATCH];
	struct ibv_recv_wr recv[RP_SCRATCH];
	struct ibv_sge sge[];
};

/* ring.c; callers hold qp->lock */
struct rp_scratch *rp_scratch_new(struct rp_qp *qp);	/* NULL: no memory */
/* false: an element of a region that is not there */
bool rp_real_sges(const struct rp_qp *qp, struct ibv_sge *to, const struct ibv_sge *from, int n);
/* Drops qp->lock meanwhile. */
bool rp_ring_make_room(struct rp_qp *qp, struct rp_ring *r, struct ibv_cq *cq);
void rp_ring_rollback(struct rp_ring *r);
uint32_t rp_payload(const struct ibv_send_wr *wr);

#define RP_ATOMIC_WRITE 8	/* bytes */

/*
 * What an atomic write writes lies in the request, behind its key: as it takes nothing of max_inline_data.
 * For the rest it is inline data, where it is not an element of plain memory (ibv_post_send).
 */
static inline void *rp_atomic_value(struct ibv_send_wr *wr)
{
	return &wr->wr.atomic.swap;
}

static inline bool rp_has_atomic_value(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_WRITE && wr->send_flags & IBV_SEND_INLINE;
}

static inline struct rp_scratch *rp_scratch_of(struct rp_qp *qp)
{
	return likely(qp->scratch) ? qp->scratch : rp_scratch_new(qp);
}

static inline struct ibv_sge *slot_sge(struct rp_slot *s)
{
	return (struct ibv_sge *)(s + 1);
}

static inline bool has_room(const struct rp_ring *r, unsigned int n)
{
	return r->head + n - atomic_load_explicit(&r->retired, memory_order_acquire) < r->size;
}

static inline bool ring_full(struct rp_ring *r)
{
	if (likely(r->head < r->room))
		return false;
	r->room = atomic_load_explicit(&r->retired, memory_order_acquire) + r->size - 1;
	return r->head >= r->room;
}

/* Of rp_qp::slow: what takes a post out of the short way. */
static const union {
	bool byte[4];
	uint32_t mask;
} rp_slow_send = { .byte = { true, false, true, true } },
  rp_slow_recv = { .byte = { false, true, true, false } },
  rp_slow_moved_send = { .byte = { true, false, false, true } },
  rp_slow_moved_recv = { .byte = { false, true, false, false } };

static inline void ring_advance(struct rp_ring *r)
{
	r->head++;
	r->next = r->next->next;
}

#endif /* RP_RING_H */
