// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_start_poll() and what follows. The software queue is read first, then the device's, with our
 * numbers. A session holds a lock that pollers alone take: between its calls the application may do
 * anything, a control verb that waits for a move too, and the move needs cq->lock. So each entry
 * has a session of the device's own, which ends before ours goes on, and what can be read of
 * it is kept here. (The next_poll() of rxe in rdma-core 44 could not be used anyway: it ends the
 * session when there is no more, and end_poll(), which other devices need then, would step over the
 * end of the queue.)
 */
#include <stdlib.h>
#include <string.h>

#include "objects.h"

/**
 * struct rp_cq_ex
 * @session: held from start_poll to end_poll; before all other locks
 * @wc: the current entry
 * @more: and what else it has
 */
struct rp_cq_ex {
	struct rp_lock session;
	struct ibv_wc wc;
	struct rp_wc_more more;
};

static struct rp_cq *of(struct ibv_cq_ex *cqex)
{
	return (struct rp_cq *)cqex;
}

/* All that the application may read of the device's current entry. Of one that has failed only the
 * vendor's error, the queue pair and when are there. */
static void read_current(struct rp_cq *cq, struct ibv_wc *wc, struct rp_wc_more *more)
{
	struct ibv_cq_ex *real = cq->real_ex;

	*wc = (struct ibv_wc){ .wr_id = real->wr_id, .status = real->status };
	memset(more, 0, sizeof(*more));
	/* Only where asked for are these functions there. */
#define TAKE(to, name) do { if (real->read_##name) (to) = real->read_##name(real); } while (0)
	TAKE(wc->qp_num, qp_num);
	TAKE(wc->vendor_err, vendor_err);
	TAKE(more->completion_ts, completion_ts);
	TAKE(more->completion_wallclock_ns, completion_wallclock_ns);
	if (real->read_completion_ts)
		more->completion_ts =
			rp_clock_real_to_virtual(to_rp_context(cq->cq.context), more->completion_ts);
	if (wc->status != IBV_WC_SUCCESS)
		return;
	TAKE(wc->src_qp, src_qp);
	wc->opcode = real->read_opcode(real);
	wc->wc_flags = real->read_wc_flags(real);
	TAKE(wc->byte_len, byte_len);
	TAKE(wc->imm_data, imm_data);
	TAKE(wc->slid, slid);
	TAKE(wc->sl, sl);
	TAKE(wc->dlid_path_bits, dlid_path_bits);
	TAKE(more->cvlan, cvlan);
	TAKE(more->flow_tag, flow_tag);
#undef TAKE
	if (real->read_tm_info)
		real->read_tm_info(real, &more->tm_info);
}

int rp_cq_ex_read(struct rp_cq *cq, struct ibv_wc *wc, struct rp_wc_more *more)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int ret = cq->real_ex ? cq->real_ex->start_poll(cq->real_ex, &attr) : ENOENT;

	if (ret)
		return ret;
	read_current(cq, wc, more);
	cq->real_ex->end_poll(cq->real_ex);
	return 0;
}

/* The next entry that is for the application. */
static int take(struct rp_cq *cq)
{
	struct rp_cq_ex *ex = cq->ex;
	int ret = 0;

	rp_lock(&cq->lock);
	if (!rp_cq_soft_pop(cq, &ex->wc, &ex->more))
		do
			ret = rp_cq_ex_read(cq, &ex->wc, &ex->more);
		while (!ret && !rp_wc_translate(&ex->wc));
	rp_unlock(&cq->lock);
	if (!ret) {
		cq->cqex.wr_id = ex->wc.wr_id;
		cq->cqex.status = ex->wc.status;
	}
	return ret;
}

static int start_poll(struct ibv_cq_ex *cqex, struct ibv_poll_cq_attr *attr)
{
	struct rp_cq *cq = of(cqex);
	int ret;

	if (attr && attr->comp_mask)
		return EINVAL;
	rp_lock(&cq->ex->session);
	ret = take(cq);
	if (ret)
		rp_unlock(&cq->ex->session);
	return ret;
}

static int next_poll(struct ibv_cq_ex *cqex)
{
	return take(of(cqex));
}

static void end_poll(struct ibv_cq_ex *cqex)
{
	rp_unlock(&of(cqex)->ex->session);
}

#define READ(type, name, field)							\
static type read_##name(struct ibv_cq_ex *cqex)					\
{										\
	return of(cqex)->ex->field;						\
}
READ(enum ibv_wc_opcode, opcode, wc.opcode)
READ(uint32_t, vendor_err, wc.vendor_err)
READ(uint32_t, byte_len, wc.byte_len)
READ(__be32, imm_data, wc.imm_data)
READ(uint32_t, qp_num, wc.qp_num)
READ(uint32_t, src_qp, wc.src_qp)
READ(unsigned int, wc_flags, wc.wc_flags)
READ(uint32_t, slid, wc.slid)
READ(uint8_t, sl, wc.sl)
READ(uint8_t, dlid_path_bits, wc.dlid_path_bits)
READ(uint64_t, completion_ts, more.completion_ts)
READ(uint64_t, completion_wallclock_ns, more.completion_wallclock_ns)
READ(uint16_t, cvlan, more.cvlan)
READ(uint32_t, flow_tag, more.flow_tag)
#undef READ

static void read_tm_info(struct ibv_cq_ex *cqex, struct ibv_wc_tm_info *info)
{
	*info = of(cqex)->ex->more.tm_info;
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
