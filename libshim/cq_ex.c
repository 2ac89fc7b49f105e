// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_start_poll() and what follows. The software queue is read first; then a session is opened on
 * the device's queue and its entries are read through, with our numbers. cq->lock is held from
 * start to end, as providers hold theirs.
 */
#include <stdlib.h>

#include "objects.h"

/**
 * struct rp_cq_ex
 * @session: the thread between start_poll and end_poll: an address that is unique to it
 * @real_open: the device's session is open
 * @soft: the current entry is @wc; else it is the device's current one, of @qp_num
 * @buried: queue pairs that the session's thread destroyed meanwhile
 */
struct rp_cq_ex {
	_Atomic(void *) session;
	bool real_open, soft;
	struct ibv_wc wc;
	struct rp_qp *buried;
};

static struct rp_cq *of(struct ibv_cq_ex *cqex)
{
	return (struct rp_cq *)cqex;
}

bool rp_cq_in_session(const struct rp_cq *cq)
{
	return cq->ex && atomic_load(&cq->ex->session) == (void *)&rp_depth;
}

/* Makes the device's current entry ours; false: it is not for the application. */
static bool take_current(struct rp_cq *cq)
{
	struct ibv_cq_ex *real = cq->real_ex;
	struct ibv_wc *wc = &cq->ex->wc;

	wc->wr_id = real->wr_id;
	wc->status = real->status;
	/* Only where asked for are these functions there. */
	wc->qp_num = real->read_qp_num ? real->read_qp_num(real) : 0;
	wc->src_qp = real->read_src_qp ? real->read_src_qp(real) : 0;
	if (!rp_wc_translate(wc))
		return false;
	cq->ex->soft = false;
	cq->cqex.wr_id = wc->wr_id;
	cq->cqex.status = wc->status;
	return true;
}

static bool take_soft(struct rp_cq *cq)
{
	if (!rp_cq_soft_pop(cq, &cq->ex->wc))
		return false;
	cq->ex->soft = true;
	cq->cqex.wr_id = cq->ex->wc.wr_id;
	cq->cqex.status = cq->ex->wc.status;
	return true;
}

/*
 * The device's next entry that is for the application. Each entry has a session of the device's own:
 * rxe's next_poll() of rdma-core 44 ends the session when there is no more, and end_poll(), which
 * other devices need then, would step over the end of the queue.
 */
static int advance(struct rp_cq *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int ret;

	do {
		if (!cq->real_ex)
			return ENOENT;
		if (cq->ex->real_open)
			cq->real_ex->end_poll(cq->real_ex);
		ret = cq->real_ex->start_poll(cq->real_ex, &attr);
		cq->ex->real_open = !ret;
		if (ret)
			return ret;
	} while (!take_current(cq));
	return 0;
}

static void close_session(struct rp_cq *cq)
{
	struct rp_cq_ex *ex = cq->ex;
	struct rp_qp *buried = ex->buried;

	if (ex->real_open)
		cq->real_ex->end_poll(cq->real_ex);
	ex->real_open = false;
	ex->buried = NULL;
	if (unlikely(buried != NULL))
		rp_cq_take(cq);
	atomic_store(&ex->session, NULL);
	rp_unlock(&cq->lock);
	while (unlikely(buried != NULL)) {
		struct rp_qp *next = buried->next_hashed;

		rp_qp_free(buried);
		buried = next;
	}
}

static int start_poll(struct ibv_cq_ex *cqex, struct ibv_poll_cq_attr *attr)
{
	struct rp_cq *cq = of(cqex);
	int ret;

	if (attr && attr->comp_mask)
		return EINVAL;
	rp_lock(&cq->lock);
	atomic_store(&cq->ex->session, (void *)&rp_depth);
	if (take_soft(cq))
		return 0;
	ret = advance(cq);
	if (ret)
		close_session(cq);
	return ret;
}

static int next_poll(struct ibv_cq_ex *cqex)
{
	struct rp_cq *cq = of(cqex);

	if (take_soft(cq))
		return 0;
	return advance(cq);
}

static void end_poll(struct ibv_cq_ex *cqex)
{
	close_session(of(cqex));
}

void rp_cq_ex_bury(struct rp_cq *cq, struct rp_qp *qp)
{
	qp->next_hashed = cq->ex->buried;
	cq->ex->buried = qp;
}

#define READ(type, name, field)							\
static type read_##name(struct ibv_cq_ex *cqex)					\
{										\
	struct rp_cq *cq = of(cqex);						\
										\
	return cq->ex->soft ? cq->ex->wc.field : cq->real_ex->read_##name(cq->real_ex); \
}
READ(enum ibv_wc_opcode, opcode, opcode)
READ(uint32_t, vendor_err, vendor_err)
READ(uint32_t, byte_len, byte_len)
READ(__be32, imm_data, imm_data)
READ(unsigned int, wc_flags, wc_flags)
READ(uint32_t, slid, slid)
READ(uint8_t, sl, sl)
READ(uint8_t, dlid_path_bits, dlid_path_bits)
#undef READ

/* Ours in both cases: translated when the entry was taken. */
static uint32_t read_qp_num(struct ibv_cq_ex *cqex)
{
	return of(cqex)->ex->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cqex)
{
	return of(cqex)->ex->wc.src_qp;
}

/* Of CQs that are not moved, which read the software queue only after a queue pair was destroyed:
 * what libibverbs' own struct does not carry reads as nothing then. */
#define READ_REAL(type, name)							\
static type read_##name(struct ibv_cq_ex *cqex)					\
{										\
	struct rp_cq *cq = of(cqex);						\
										\
	return cq->ex->soft ? 0 : cq->real_ex->read_##name(cq->real_ex);	\
}
READ_REAL(uint64_t, completion_ts)
READ_REAL(uint64_t, completion_wallclock_ns)
READ_REAL(uint16_t, cvlan)
READ_REAL(uint32_t, flow_tag)
#undef READ_REAL

static void read_tm_info(struct ibv_cq_ex *cqex, struct ibv_wc_tm_info *info)
{
	struct rp_cq *cq = of(cqex);

	if (cq->ex->soft)
		*info = (struct ibv_wc_tm_info){ 0 };
	else
		cq->real_ex->read_tm_info(cq->real_ex, info);
}

/* Ours where the device has one. */
static void fill(struct rp_cq *cq)
{
	struct ibv_cq_ex *c = &cq->cqex, *r = cq->real_ex;

	c->start_poll = start_poll;
	c->next_poll = next_poll;
	c->end_poll = end_poll;
#define FILL(name) c->read_##name = r->read_##name ? read_##name : NULL
	FILL(opcode);
	FILL(vendor_err);
	FILL(byte_len);
	FILL(imm_data);
	FILL(qp_num);
	FILL(src_qp);
	FILL(wc_flags);
	FILL(slid);
	FILL(sl);
	FILL(dlid_path_bits);
	FILL(completion_ts);
	FILL(completion_wallclock_ns);
	FILL(cvlan);
	FILL(flow_tag);
	FILL(tm_info);
#undef FILL
	c->comp_mask = r->comp_mask;
}

int rp_cq_ex_init(struct rp_cq *cq)
{
	cq->ex = calloc(1, sizeof(*cq->ex));
	if (!cq->ex)
		return -ENOMEM;
	fill(cq);
	return 0;
}

void rp_cq_ex_free(struct rp_cq *cq)
{
	free(cq->ex);
}
