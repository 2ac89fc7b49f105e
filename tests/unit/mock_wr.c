// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ibv_wr_*: requests are gathered and posted at wr_complete. */
#include "mock_state.h"

#define BATCH 64

struct mock_batch {
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH][MOCK_SGE];
	char data[BATCH][MOCK_INLINE], header[BATCH][MOCK_HEADER];
	unsigned int n;
	int err;
};

static struct mock_batch *batch_of(struct ibv_qp_ex *ex)
{
	return ((struct mock_qp *)ex)->batch;
}

static void start(struct ibv_qp_ex *ex)
{
	batch_of(ex)->n = 0;
	batch_of(ex)->err = 0;
}

/* A scratch request takes what comes after the batch has failed. */
static struct ibv_send_wr *add(struct ibv_qp_ex *ex, enum ibv_wr_opcode op)
{
	struct mock_batch *b = batch_of(ex);
	struct ibv_send_wr *wr;

	if (b->n == BATCH) {
		b->err = ENOMEM;
		b->n--;
	}
	wr = &b->wr[b->n++];
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = ex->wr_id;
	wr->send_flags = ex->wr_flags;
	wr->opcode = op;
	return wr;
}

static void rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
		 __be32 imm)
{
	struct ibv_send_wr *wr = add(ex, op);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	wr->imm_data = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	add(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	add(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	add(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	add(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
			      uint64_t swap)
{
	struct ibv_send_wr *wr = add(ex, IBV_WR_ATOMIC_CMP_AND_SWP);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t n)
{
	struct ibv_send_wr *wr = add(ex, IBV_WR_ATOMIC_FETCH_AND_ADD);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = n;
}

/* Eight bytes that lie in the request: it takes nothing of max_inline_data. */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *value)
{
	struct mock_batch *b = batch_of(ex);
	struct ibv_send_wr *wr = add(ex, IBV_WR_ATOMIC_WRITE);
	unsigned int at = b->n - 1;

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	wr->send_flags |= IBV_SEND_INLINE | MOCK_BUILT;
	memcpy(b->data[at], value, 8);
	b->sge[at][0] = (struct ibv_sge){ (uintptr_t)b->data[at], 8, 0 };
	wr->sg_list = b->sge[at];
	wr->num_sge = 1;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = add(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	struct mock_batch *b = batch_of(ex);
	struct ibv_send_wr *wr = add(ex, IBV_WR_TSO);

	if (hdr_sz > MOCK_HEADER) {
		b->err = EINVAL;
		return;
	}
	memcpy(b->header[b->n - 1], hdr, hdr_sz);
	wr->tso.hdr = b->header[b->n - 1];
	wr->tso.hdr_sz = hdr_sz;
	wr->tso.mss = mss;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	struct mock_batch *b = batch_of(ex);

	b->wr[b->n - 1].qp_type.xrc.remote_srqn = srqn;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct mock_batch *b = batch_of(ex);
	struct ibv_send_wr *wr = &b->wr[b->n - 1];

	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = qpn;
	wr->wr.ud.remote_qkey = qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *sge)
{
	struct mock_batch *b = batch_of(ex);
	unsigned int at = b->n - 1;

	if (n > MOCK_SGE) {
		b->err = EINVAL;
		return;
	}
	if (n)
		memcpy(b->sge[at], sge, n * sizeof(*sge));
	b->wr[at].sg_list = b->sge[at];
	b->wr[at].num_sge = n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { addr, length, lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *buf)
{
	struct mock_batch *b = batch_of(ex);
	unsigned int at = b->n - 1;
	size_t i, len = 0;

	for (i = 0; i < n; i++) {
		if (len + buf[i].length > MOCK_INLINE) {
			b->err = EINVAL;
			return;
		}
		memcpy(b->data[at] + len, buf[i].addr, buf[i].length);
		len += buf[i].length;
	}
	b->sge[at][0].addr = (uintptr_t)b->data[at];
	b->sge[at][0].length = len;
	b->wr[at].sg_list = b->sge[at];
	b->wr[at].num_sge = 1;
	b->wr[at].send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { addr, length };

	wr_set_inline_data_list(ex, 1, &buf);
}

/* All or nothing. */
static int wr_complete(struct ibv_qp_ex *ex)
{
	struct mock_qp *qp = (struct mock_qp *)ex;
	struct mock_batch *b = qp->batch;
	struct ibv_send_wr *bad;
	unsigned int i;
	bool room;

	if (b->err || !b->n)
		return b->err;
	mock_lock();
	room = qp->sq.head - qp->sq.tail + b->n <= qp->sq.size;
	mock_unlock();
	if (!room)
		return ENOMEM;
	for (i = 0; i + 1 < b->n; i++)
		b->wr[i].next = &b->wr[i + 1];
	return qp->qp.context->ops.post_send(&qp->qp, b->wr, &bad);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	batch_of(ex)->n = 0;
}

bool mock_wr_has(const struct ibv_qp_init_attr_ex *a)
{
	const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	const uint64_t of_rc = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
			       IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV |
			       IBV_QP_EX_WITH_ATOMIC_WRITE;
	/* What later headers have it has, of all kinds. */
	const uint64_t known = sends | writes | of_rc | IBV_QP_EX_WITH_TSO;
	uint64_t ask = a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? a->send_ops_flags & known : 0;

	if (a->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER && a->max_tso_header > MOCK_HEADER)
		return false;
	switch (a->qp_type) {
	case IBV_QPT_UD:
		return !(ask & ~(sends | IBV_QP_EX_WITH_TSO));
	case IBV_QPT_RC:
		return !(ask & ~(sends | writes | of_rc));
	default:
		return !(ask & ~(sends | writes));
	}
}

void mock_wr_init(struct mock_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	qp->batch = mock_zalloc(sizeof(*qp->batch));
	ex->wr_start = start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
}
