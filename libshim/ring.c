// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "ring.h"

int rp_ring_alloc(struct rp_ring *r, unsigned int depth, const struct rp_ring *like,
		  enum rp_slot_kind kind, void *owner)
{
	unsigned int i;

	*r = (struct rp_ring){
		.size = depth + 1, .max_sge = like->max_sge ? like->max_sge : 1,
		.max_inline = like->max_inline, .max_header = like->max_header,
	};
	r->stride = (sizeof(struct rp_slot) + r->max_sge * sizeof(struct ibv_sge) + r->max_inline +
		     r->max_header + 63) & ~63u;
	if (posix_memalign((void **)&r->slots, 64, (size_t)r->size * r->stride)) {
		r->slots = NULL;
		return -ENOMEM;
	}
	memset(r->slots, 0, (size_t)r->size * r->stride);
	for (i = 0; i < r->size; i++) {
		struct rp_slot *s = rp_ring_slot(r, i);

		s->kind = kind;
		s->owner = owner;
		s->next = rp_ring_slot(r, i + 1);
		if (kind == RP_SLOT_SEND) {
			s->send.wr_id = (uintptr_t)s;
			s->send.sg_list = (struct ibv_sge *)(s + 1);
		} else {
			s->recv.wr_id = (uintptr_t)s;
			s->recv.sg_list = (struct ibv_sge *)(s + 1);
		}
	}
	r->next = rp_ring_slot(r, 0);
	return 0;
}

void rp_qp_reset_rings(struct rp_qp *qp)
{
	struct rp_ring *rings[] = { &qp->sq, &qp->rq };
	int i;

	for (i = 0; i < 2; i++) {
		rings[i]->head = rings[i]->submitted = rings[i]->sends = rings[i]->room = 0;
		atomic_store(&rings[i]->retired, 0);
		rings[i]->next = rp_ring_slot(rings[i], 0);
	}
	atomic_store(&qp->recvs_done, 0);
	atomic_store(&qp->failed, false);
	atomic_store(&qp->buried, false);
	rp_keys_reset(qp);
}

/* Takes back what the device did not accept. */
void rp_ring_rollback(struct rp_ring *r)
{
	r->head = r->submitted;
	r->next = rp_ring_slot(r, r->head);
	r->sends = r->head ? rp_ring_slot(r, r->head - 1)->sends : 0;
}

/*
 * The ring is full of requests whose completions lie in the CQ: takes them, which makes room where
 * the device has it already. Of an application that does not poll not more are taken than its CQ has
 * room for: then the ring stays full, as the device's. Drops qp->lock meanwhile: the CQ's comes first.
 */
bool rp_ring_make_room(struct rp_qp *qp, struct rp_ring *r, struct ibv_cq *cq)
{
	if (!cq)
		return false;
	rp_unlock(&qp->lock);
	rp_cq_sweep_if_room(to_rp_cq(cq));
	rp_lock(&qp->lock);
	return !ring_full(r);
}

struct rp_scratch *rp_scratch_new(struct rp_qp *qp)
{
	unsigned int max = qp->sq.max_sge > qp->rq.max_sge ? qp->sq.max_sge : qp->rq.max_sge;

	qp->scratch = calloc(1, sizeof(*qp->scratch) +
			     (size_t)RP_SCRATCH * max * sizeof(struct ibv_sge));
	if (qp->scratch)
		qp->scratch->max_sge = max;
	return qp->scratch;
}

bool rp_real_sges(const struct rp_qp *qp, struct ibv_sge *to, const struct ibv_sge *from, int n)
{
	const struct rp_keymap *lkeys = __atomic_load_n(&to_rp_context(qp->qp.context)->lkeys,
							__ATOMIC_ACQUIRE);
	int i;

	for (i = 0; i < n; i++) {
		to[i] = from[i];
		/* A region that is gone: refused, since its number may be another's by now. */
		if (lkeys && !rp_keymap_find(lkeys, from[i].lkey, &to[i].lkey) && from[i].length)
			return false;
	}
	return true;
}

uint32_t rp_payload(const struct ibv_send_wr *wr)
{
	uint32_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len;
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_TSO:
		return IBV_WC_TSO;
	case IBV_WR_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	default:
		return IBV_WC_SEND;
	}
}

void rp_qp_settle_send(struct rp_qp *qp, uint64_t index, enum ibv_wc_status status)
{
	struct rp_slot *s = rp_ring_slot(&qp->sq, index);
	struct ibv_wc wc = {
		.wr_id = s->wr_id, .status = status, .opcode = wc_opcode(s->send.opcode),
		.byte_len = rp_payload(&s->send), .qp_num = qp->qp.qp_num,
	};

	atomic_store(&qp->sq.retired, index + 1);
	if (!s->hidden || status != IBV_WC_SUCCESS)
		rp_cq_soft_push(to_rp_cq(qp->qp.send_cq), qp, &wc);
}

void rp_qp_settle_recv(struct rp_qp *qp, uint64_t index, enum ibv_wc_status status)
{
	struct rp_slot *s = rp_ring_slot(&qp->rq, index);
	struct ibv_wc wc = {
		.wr_id = s->wr_id, .status = status, .opcode = IBV_WC_RECV,
		.qp_num = qp->qp.qp_num,
	};

	atomic_store(&qp->rq.retired, index + 1);
	rp_cq_soft_push(to_rp_cq(qp->qp.recv_cq), qp, &wc);
}
