// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "mock_state.h"

static bool may_be_inline(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV ||
	       op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM ||
	       op == IBV_WR_ATOMIC_WRITE;
}

static int check_send(const struct mock_qp *qp, const struct ibv_send_wr *wr)
{
	bool rc = qp->qp.qp_type == IBV_QPT_RC;

	/* A provider reads such handles as its own. */
	if (qp->qp.qp_type == IBV_QPT_UD && wr->wr.ud.ah && wr->wr.ud.ah->context != qp->qp.context)
		return EINVAL;
	if (wr->opcode == IBV_WR_BIND_MW && wr->bind_mw.mw->context != qp->qp.context)
		return EINVAL;
	if (wr->num_sge < 0 || wr->num_sge > (int)qp->init.cap.max_send_sge)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE && !may_be_inline(wr->opcode))
		return EINVAL;
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return qp->qp.qp_type == IBV_QPT_UD && !wr->wr.ud.ah ? EINVAL : 0;
	case IBV_WR_SEND_WITH_INV:
		return rc ? 0 : EINVAL;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return qp->qp.qp_type == IBV_QPT_UD ? EINVAL : 0;
	case IBV_WR_RDMA_READ:
		return rc ? 0 : EINVAL;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return rc && wr->num_sge == 1 ? 0 : EINVAL;
	case IBV_WR_LOCAL_INV:
	case IBV_WR_BIND_MW:
		return rc ? 0 : EINVAL;
	case IBV_WR_ATOMIC_WRITE:
		return rc && wr->send_flags & MOCK_BUILT ? 0 : EINVAL;
	case IBV_WR_TSO:
		return qp->qp.qp_type == IBV_QPT_UD && wr->wr.ud.ah && wr->tso.mss && wr->tso.hdr_sz &&
		       wr->tso.hdr_sz <= qp->max_header ? 0 : EINVAL;
	default:
		return EINVAL;
	}
}

static int keep(struct mock_qp *qp, const struct ibv_send_wr *wr)
{
	struct mock_sq *sq = &qp->sq;
	struct mock_wqe *w;
	uint32_t len = 0;
	int i, ret;

	ret = check_send(qp, wr);
	if (ret)
		return ret;
	if (sq->head - sq->tail >= sq->size)
		return ENOMEM;
	w = &sq->ring[sq->head % sq->size];
	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (wr->send_flags & IBV_SEND_INLINE && len > qp->init.cap.max_inline_data &&
	    wr->opcode != IBV_WR_ATOMIC_WRITE)
		return EINVAL;
	w->wr = *wr;
	w->bytes = len;
	w->inline_len = 0;
	w->signaled = qp->init.sq_sig_all || wr->send_flags & IBV_SEND_SIGNALED;
	w->at_ns = mock_now_ns() + mock.delay_us * 1000ull;
	if (wr->num_sge)
		memcpy(w->sge, wr->sg_list, wr->num_sge * sizeof(*w->sge));
	w->wr.sg_list = w->sge;
	if (wr->send_flags & IBV_SEND_INLINE)
		for (i = 0; i < wr->num_sge; i++) {
			if (!wr->sg_list[i].length)
				continue;
			memcpy(w->data + w->inline_len, (void *)(uintptr_t)wr->sg_list[i].addr,
			       wr->sg_list[i].length);
			w->inline_len += wr->sg_list[i].length;
		}
	if (qp->qp.qp_type == IBV_QPT_UD) {
		w->dest_qpn = wr->wr.ud.remote_qpn;
		w->qkey = wr->wr.ud.remote_qkey;
		w->ah = (struct mock_ah *)wr->wr.ud.ah;
		w->dgid = w->ah->attr.grh.dgid;
		mock_context(qp->qp.context)->device->last_grh = w->ah->attr.grh;
	}
	if (wr->opcode == IBV_WR_BIND_MW)
		w->window_key = wr->bind_mw.mw->rkey;
	if (wr->opcode == IBV_WR_TSO)
		memcpy(w->header, wr->tso.hdr, wr->tso.hdr_sz);
	if (qp->qp.qp_type == IBV_QPT_XRC_SEND)
		mock.srqn = wr->qp_type.xrc.remote_srqn;
	sq->head++;
	return 0;
}

int mock_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;
	int ret = 0;

	if (!wr)
		return EINVAL;	/* as soft RoCE */
	mock_lock();
	for (; wr; wr = wr->next) {
		ret = mock_failing("post_send");
		if (!ret && ibqp->state != IBV_QPS_RTS && ibqp->state != IBV_QPS_SQD &&
		    ibqp->state != IBV_QPS_ERR && ibqp->state != IBV_QPS_SQE)
			ret = EINVAL;
		if (!ret)
			ret = keep(qp, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	if (ibqp->state == IBV_QPS_ERR)
		mock_flush(qp);
	else if (ibqp->state == IBV_QPS_SQE)
		mock_flush_sends(qp);
	else
		pthread_cond_signal(&mock.wake);
	mock_unlock();
	return ret;
}

uint32_t mock_last_srqn(void)
{
	uint32_t srqn;

	mock_lock();
	srqn = mock.srqn;
	mock_unlock();
	return srqn;
}

/* @held: entries that were consumed but whose completion nobody has polled */
int mock_rq_post(struct mock_rq *rq, unsigned int held, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad)
{
	int ret = 0;

	for (; wr; wr = wr->next) {
		struct mock_rqe *r;

		ret = mock_failing("post_recv");
		if (!ret && (wr->num_sge < 0 || wr->num_sge > (int)rq->max_sge))
			ret = EINVAL;
		if (!ret && rq->head - rq->tail + held >= rq->size)
			ret = ENOMEM;
		if (ret) {
			*bad = wr;
			break;
		}
		r = &rq->ring[rq->head++ % rq->size];
		r->wr_id = wr->wr_id;
		r->nsge = wr->num_sge;
		if (wr->num_sge)
			memcpy(r->sge, wr->sg_list, wr->num_sge * sizeof(*r->sge));
	}
	pthread_cond_signal(&mock.wake);
	return ret;
}

int mock_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;
	int ret;

	if (!wr)
		return EINVAL;
	mock_lock();
	if (ibqp->state == IBV_QPS_RESET || ibqp->srq) {
		*bad = wr;
		ret = EINVAL;
	} else {
		ret = mock_rq_post(&qp->rq, 0, wr, bad);
	}
	if (ibqp->state == IBV_QPS_ERR)
		mock_flush(qp);
	mock_unlock();
	return ret;
}
