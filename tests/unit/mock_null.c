// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting and polling that do nearly nothing, so that what a shim adds can be counted. */
#include "mock_state.h"

static void keep(struct ibv_cq *ibcq, struct ibv_qp *qp, uint64_t wr_id)
{
	struct mock_cq *cq = (struct mock_cq *)ibcq;
	unsigned int at = cq->null_head++ % 4096;

	cq->null[at].wr_id = wr_id;
	cq->null[at].qpn = qp->qp_num;
}

int mock_null_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)bad;
	for (; wr; wr = wr->next)
		if (wr->send_flags & IBV_SEND_SIGNALED)
			keep(qp->send_cq, qp, wr->wr_id);
	return 0;
}

int mock_null_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)bad;
	for (; wr; wr = wr->next)
		keep(qp->recv_cq, qp, wr->wr_id);
	return 0;
}

int mock_null_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct mock_cq *cq = (struct mock_cq *)ibcq;
	int i;

	for (i = 0; i < n && cq->null_tail != cq->null_head; i++, cq->null_tail++) {
		wc[i].wr_id = cq->null[cq->null_tail % 4096].wr_id;
		wc[i].qp_num = cq->null[cq->null_tail % 4096].qpn;
		wc[i].status = IBV_WC_SUCCESS;
		wc[i].opcode = IBV_WC_SEND;
		wc[i].wc_flags = 0;
	}
	return i;
}
