// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The state SQE of UD and UC: a send has failed, those behind it are flushed, receives go on, and the
 * owner says RTS when he has seen it (IBA 1.2.1 vol 1, 10.3.1.6). No verb leads there: after a move the
 * device has the queue pair in RTS, and is given no sends until then.
 */
#include "conn.h"
#include "objects.h"

void rp_sqe_set(struct rp_qp *qp, bool sqe)
{
	rp_lock(&qp->lock);
	qp->sqe = sqe;
	rp_unlock(&qp->lock);
}

void rp_sqe_flush(struct rp_qp *qp)
{
	struct rp_cq *cq = to_rp_cq(qp->qp.send_cq);
	bool any = false;
	uint64_t i;

	rp_lock(&cq->lock);
	rp_lock(&qp->lock);
	/* If its owner has ended it meanwhile, the device has what was posted. */
	if (qp->sqe) {
		for (i = atomic_load(&qp->sq.retired); i < qp->sq.head; i++, any = true)
			rp_qp_settle_send(qp, i, IBV_WC_WR_FLUSH_ERR);
		qp->sq.submitted = qp->sq.head;
		if (any)
			rp_cq_soft_notify(cq, true);
	}
	rp_unlock(&qp->lock);
	rp_unlock(&cq->lock);
}

int rp_sqe_modify(const struct rp_qp *qp, struct ibv_qp_attr *attr, int *mask)
{
	if (!qp->sqe)
		return 0;
	if (*mask & IBV_QP_CUR_STATE && attr->cur_qp_state != IBV_QPS_SQE)
		return EINVAL;
	*mask &= ~IBV_QP_CUR_STATE;
	if (!(*mask & IBV_QP_STATE))
		return EINVAL;
	return attr->qp_state == IBV_QPS_RTS || attr->qp_state == IBV_QPS_ERR ||
	       attr->qp_state == IBV_QPS_RESET ? 0 : EINVAL;
}

void rp_sqe_end(struct rp_qp *qp)
{
	int ret;

	if (!qp->sqe)
		return;
	rp_lock(&qp->lock);
	qp->sqe = false;
	ret = rp_qp_submit_sends(qp);	/* what was posted when it was about to end */
	qp->gate = false;
	rp_unlock(&qp->lock);
	if (ret)
		rp_drain_fail_all(qp, IBV_WC_GENERAL_ERR);
}

void rp_sqe_look(struct rp_qp *qp)
{
	struct ibv_qp_attr attr = { 0 };
	struct ibv_qp_init_attr init;

	if (!qp->real || qp->qp.state == IBV_QPS_RESET ||
	    RP_REAL(rp_real.ibv_query_qp(qp->real, &attr, IBV_QP_STATE, &init)))
		return;
	if (attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE)
		__atomic_store_n(&qp->qp.state, attr.qp_state, __ATOMIC_RELEASE);
}
