// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_wr_*: requests are collected between wr_start and wr_complete and posted as one list, all of
 * them or none, through the same log as ibv_post_send(). The batch's lock makes two threads take
 * turns, as the providers' does; it is taken before all other locks, and by nobody else.
 */
#include <stdlib.h>
#include <string.h>

#include "ring.h"

/**
 * struct rp_batch
 * @err: of the first call that was wrong, told by wr_complete
 * @n: requests so far; the last is the one that setters set
 * @wr, @sge, @data: room for @room requests: @max_sge elements, @max_inline and @max_header bytes each
 */
struct rp_batch {
	struct rp_lock lock;
	int err;
	unsigned int n, room, max_sge, max_inline, max_header;
	struct ibv_send_wr *wr;
	struct ibv_sge *sge;
	char *data;
};

static struct rp_qp *of(struct ibv_qp_ex *qpx)
{
	return (struct rp_qp *)qpx;
}

static char *data_of(const struct rp_batch *b, unsigned int i)
{
	return &b->data[(size_t)i * (b->max_inline + b->max_header)];
}

static char *header_of(const struct rp_batch *b, unsigned int i)
{
	return data_of(b, i) + b->max_inline;
}

static bool grow(struct rp_batch *b)
{
	unsigned int i, room = b->room ? 2 * b->room : 16;
	void *p;

	p = realloc(b->wr, room * sizeof(*b->wr));
	if (!p)
		return false;
	b->wr = p;
	p = realloc(b->sge, (size_t)room * b->max_sge * sizeof(*b->sge));
	if (!p)
		return false;
	b->sge = p;
	p = realloc(b->data, (size_t)room * (b->max_inline + b->max_header) + 1);
	if (!p)
		return false;
	b->data = p;
	for (i = 0; i < b->n; i++)
		if (b->wr[i].opcode == IBV_WR_TSO)
			b->wr[i].tso.hdr = header_of(b, i);
	b->room = room;
	return true;
}

static struct ibv_send_wr *begin(struct ibv_qp_ex *qpx, enum ibv_wr_opcode opcode)
{
	struct rp_batch *b = of(qpx)->batch;
	struct ibv_send_wr *wr;

	if (b->n >= of(qpx)->sq.size - 1)
		b->err = ENOMEM;
	else if (b->n == b->room && !grow(b))
		b->err = ENOMEM;
	if (b->err)
		return NULL;
	wr = &b->wr[b->n++];
	/* The tail is set by who has one, but for what only some queue pairs have (rp_qp::tailed). */
	if (unlikely(of(qpx)->tailed))
		memset(wr, 0, sizeof(*wr));
	else
		memset(wr, 0, offsetof(struct ibv_send_wr, qp_type));
	wr->wr_id = qpx->wr_id;
	wr->send_flags = qpx->wr_flags;
	wr->opcode = opcode;
	return wr;
}

/* The request that is being built; NULL after an error. */
static struct ibv_send_wr *current(struct ibv_qp_ex *qpx)
{
	struct rp_batch *b = of(qpx)->batch;

	if (!b->err && !b->n)
		b->err = EINVAL;
	return b->err ? NULL : &b->wr[b->n - 1];
}

static void wr_start(struct ibv_qp_ex *qpx)
{
	struct rp_batch *b = of(qpx)->batch;

	rp_lock(&b->lock);
	b->n = 0;
	b->err = 0;
}

static int wr_complete(struct ibv_qp_ex *qpx)
{
	struct rp_batch *b = of(qpx)->batch;
	unsigned int i;
	int ret = b->err;

	for (i = 0; i < b->n; i++) {
		/* The arrays have their final place only now. */
		b->wr[i].sg_list = &b->sge[i * b->max_sge];
		if (b->wr[i].send_flags & IBV_SEND_INLINE)
			b->wr[i].sg_list->addr = (uintptr_t)(rp_has_atomic_value(&b->wr[i]) ?
							     rp_atomic_value(&b->wr[i]) : data_of(b, i));
		b->wr[i].next = i + 1 < b->n ? &b->wr[i + 1] : NULL;
	}
	if (!ret && b->n)
		ret = rp_qp_post_batch(of(qpx), b->wr, b->n);
	rp_unlock(&b->lock);
	return ret;
}

static void wr_abort(struct ibv_qp_ex *qpx)
{
	rp_unlock(&of(qpx)->batch->lock);
}

static void rdma(struct ibv_qp_ex *qpx, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
		 __be32 imm)
{
	struct ibv_send_wr *wr = begin(qpx, op);

	if (!wr)
		return;
	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	wr->imm_data = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr)
{
	rdma(qpx, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr)
{
	rdma(qpx, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr, __be32 imm)
{
	rdma(qpx, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void atomic(struct ibv_qp_ex *qpx, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
		   uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = begin(qpx, op);

	if (!wr)
		return;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr,
			      uint64_t compare, uint64_t swap)
{
	atomic(qpx, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr, uint64_t add)
{
	atomic(qpx, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void wr_bind_mw(struct ibv_qp_ex *qpx, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = begin(qpx, IBV_WR_BIND_MW);

	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void wr_local_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	struct ibv_send_wr *wr = begin(qpx, IBV_WR_LOCAL_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_send(struct ibv_qp_ex *qpx)
{
	begin(qpx, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qpx, __be32 imm)
{
	struct ibv_send_wr *wr = begin(qpx, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	struct ibv_send_wr *wr = begin(qpx, IBV_WR_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_send_tso(struct ibv_qp_ex *qpx, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	struct ibv_send_wr *wr = begin(qpx, IBV_WR_TSO);
	struct rp_batch *b = of(qpx)->batch;

	if (!wr)
		return;
	wr->tso.hdr = header_of(b, b->n - 1);
	if (hdr_sz > b->max_header) {
		b->err = EINVAL;
		return;
	}
	if (hdr_sz)
		memcpy(wr->tso.hdr, hdr, hdr_sz);
	wr->tso.hdr_sz = hdr_sz;
	wr->tso.mss = mss;
}

static void wr_set_ud_addr(struct ibv_qp_ex *qpx, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_send_wr *wr = current(qpx);

	if (!wr)
		return;
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = qpn;
	wr->wr.ud.remote_qkey = qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qpx, uint32_t srqn)
{
	struct ibv_send_wr *wr = current(qpx);

	if (wr)
		wr->qp_type.xrc.remote_srqn = srqn;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qpx, size_t n,
				    const struct ibv_data_buf *buf)
{
	struct rp_batch *b = of(qpx)->batch;
	struct ibv_send_wr *wr = current(qpx);
	size_t i, len = 0;
	char *data;

	if (!wr)
		return;
	data = data_of(b, b->n - 1);
	for (i = 0; i < n; i++) {
		if (buf[i].length > b->max_inline - len) {
			b->err = EINVAL;
			return;
		}
		memcpy(data + len, buf[i].addr, buf[i].length);
		len += buf[i].length;
	}
	wr->send_flags |= IBV_SEND_INLINE;
	wr->num_sge = 1;
	b->sge[(b->n - 1) * b->max_sge] = (struct ibv_sge){ .length = len };
}

static void wr_set_inline_data(struct ibv_qp_ex *qpx, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(qpx, 1, &buf);
}

static void wr_set_sge_list(struct ibv_qp_ex *qpx, size_t n, const struct ibv_sge *sge)
{
	struct rp_batch *b = of(qpx)->batch;
	struct ibv_send_wr *wr = current(qpx);

	if (!wr)
		return;
	if (n > b->max_sge) {
		b->err = EINVAL;
		return;
	}
	/* The caller may have set the flag for another request. */
	wr->send_flags &= ~IBV_SEND_INLINE;
	wr->num_sge = n;
	memcpy(&b->sge[(b->n - 1) * b->max_sge], sge, n * sizeof(*sge));
}

static void wr_set_sge(struct ibv_qp_ex *qpx, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct rp_batch *b = of(qpx)->batch;
	struct ibv_send_wr *wr = current(qpx);

	if (!wr)
		return;
	wr->send_flags &= ~IBV_SEND_INLINE;
	wr->num_sge = 1;
	b->sge[(b->n - 1) * b->max_sge] = (struct ibv_sge){ .addr = addr, .length = length,
							    .lkey = lkey };
}

/* It has no setter: what it writes it is given itself. */
static void wr_atomic_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr, const void *value)
{
	struct ibv_send_wr *wr = begin(qpx, IBV_WR_ATOMIC_WRITE);
	struct rp_batch *b = of(qpx)->batch;

	if (!wr)
		return;
	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	memcpy(rp_atomic_value(wr), value, RP_ATOMIC_WRITE);
	wr->send_flags |= IBV_SEND_INLINE;
	wr->num_sge = 1;
	b->sge[(b->n - 1) * b->max_sge] = (struct ibv_sge){ .length = RP_ATOMIC_WRITE };
}

int rp_wr_init(struct rp_qp *qp)
{
	struct ibv_qp_ex *x = &qp->qpx;
	struct rp_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->max_sge = qp->sq.max_sge;
	b->max_inline = qp->sq.max_inline;
	b->max_header = qp->sq.max_header;
	qp->batch = b;

	x->wr_start = wr_start;
	x->wr_complete = wr_complete;
	x->wr_abort = wr_abort;
	x->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	x->wr_atomic_fetch_add = wr_atomic_fetch_add;
	x->wr_bind_mw = wr_bind_mw;
	x->wr_local_inv = wr_local_inv;
	x->wr_rdma_read = wr_rdma_read;
	x->wr_rdma_write = wr_rdma_write;
	x->wr_rdma_write_imm = wr_rdma_write_imm;
	x->wr_send = wr_send;
	x->wr_send_imm = wr_send_imm;
	x->wr_send_inv = wr_send_inv;
	x->wr_send_tso = wr_send_tso;
	x->wr_set_ud_addr = wr_set_ud_addr;
	x->wr_set_xrc_srqn = wr_set_xrc_srqn;
	x->wr_set_inline_data = wr_set_inline_data;
	x->wr_set_inline_data_list = wr_set_inline_data_list;
	x->wr_set_sge = wr_set_sge;
	x->wr_set_sge_list = wr_set_sge_list;
	x->wr_atomic_write = wr_atomic_write;
	return 0;
}

void rp_wr_free(struct rp_qp *qp)
{
	struct rp_batch *b = qp->batch;

	if (!b)
		return;
	free(b->wr);
	free(b->sge);
	free(b->data);
	free(b);
}
