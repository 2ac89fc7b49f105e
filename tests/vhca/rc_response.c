// SPDX-License-Identifier: GPL-2.0
#include "rc.h"

enum {
	AETH_ACK = 0,
	AETH_RNR_NAK = 1,
	AETH_NAK = 3,
};

/* Something new was acknowledged: what counts failures in a row begins anew. */
static void progress(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	qp->s_retry = qp->s_retry_cnt;
	qp->s_rnr_retry = qp->s_rnr_retry_cnt;
	vqp->implied_nak = false;
	/* The place was behind what is now known to have arrived: there is no need to send it. */
	if (vhca_psn_diff(qp->s_psn, qp->s_last_psn + 1) < 0) {
		qp->s_psn = qp->s_last_psn + 1;
		vqp->sge_valid = false;
	}
	if (qp->s_last == qp->s_tail) {
		if (qp->s_flags & RVT_S_TIMER) {
			qp->s_flags &= ~RVT_S_TIMER;
			del_timer(&qp->s_timer);
		}
	} else if (qp->timeout) {
		rvt_mod_retry_timer(qp);
	}
	vhca_sqd_check(qp);
}

/* The oldest request is done. */
static void finish(struct rvt_qp *qp, struct rvt_swqe *wqe)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	u32 lpsn = wqe->lpsn;
	bool ahead = qp->s_cur != qp->s_last;

	if (ahead && vhca_is_read_or_atomic(wqe) && qp->s_num_rd_atomic)
		qp->s_num_rd_atomic--;
	qp->s_last_psn = lpsn;
	vqp->read_valid = false;
	if (!ahead)
		vqp->sge_valid = false;
	rvt_send_complete(qp, wqe, IB_WC_SUCCESS);
	progress(qp);
}

/* A response was lost, as a later one tells: go back for it, once until something comes. */
static void implied_nak(struct rvt_qp *qp, u32 psn)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	if (vqp->implied_nak)
		return;
	vhca_qp_port(qp)->ibp.n_rdma_seq++;
	vhca_rc_retry(qp, psn);
	vqp->implied_nak = true;
}

/*
 * Everything up to and with @psn has arrived. Reads and atomics are done by their responses only.
 * Return: false if one of those before @psn had no response, and we went back for it.
 */
static bool acked(struct rvt_qp *qp, u32 psn)
{
	while (qp->s_last != qp->s_tail) {
		struct rvt_swqe *wqe = rvt_get_swqe_ptr(qp, qp->s_last);

		if (vhca_psn_diff(psn, wqe->psn) < 0)
			break;
		if (vhca_is_read_or_atomic(wqe)) {
			if (vhca_psn_diff(psn, wqe->lpsn) < 0)
				break;
			implied_nak(qp, qp->s_last_psn + 1);
			return false;
		}
		if (vhca_psn_diff(psn, wqe->lpsn) < 0) {
			if (vhca_psn_diff(psn, qp->s_last_psn) > 0) {
				qp->s_last_psn = psn;
				progress(qp);
			}
			break;
		}
		finish(qp, wqe);
	}
	return true;
}

static void rnr_nak(struct rvt_qp *qp, u32 psn, u32 aeth)
{
	struct vhca_port *port = vhca_qp_port(qp);

	if (qp->s_flags & RVT_S_WAIT_RNR)
		return;
	port->ibp.n_rnr_naks++;
	if (!qp->s_rnr_retry) {
		vhca_rc_fail(qp, IB_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (qp->s_rnr_retry_cnt < 7)	/* 7 is for ever */
		qp->s_rnr_retry--;
	if (qp->s_flags & RVT_S_TIMER) {
		qp->s_flags &= ~RVT_S_TIMER;
		del_timer(&qp->s_timer);
	}
	vhca_rc_go_back(qp, psn);
	rvt_add_rnr_timer(qp, aeth);
}

static void nak(struct rvt_qp *qp, u32 psn, u32 code)
{
	struct vhca_port *port = vhca_qp_port(qp);

	if (code == (IB_NAK_PSN_ERROR & 0x1f)) {
		port->ibp.n_seq_naks++;
		vhca_rc_retry(qp, psn);
		return;
	}
	port->ibp.n_other_naks++;
	switch (code) {
	case IB_NAK_INVALID_REQUEST & 0x1f:
		vhca_rc_fail(qp, IB_WC_REM_INV_REQ_ERR);
		break;
	case IB_NAK_REMOTE_ACCESS_ERROR & 0x1f:
		vhca_rc_fail(qp, IB_WC_REM_ACCESS_ERR);
		break;
	case IB_NAK_REMOTE_OPERATIONAL_ERROR & 0x1f:
		vhca_rc_fail(qp, IB_WC_REM_OP_ERR);
		break;
	}
}

static void acknowledge(struct rvt_qp *qp, u32 psn, u32 aeth)
{
	switch (aeth >> IB_AETH_NAK_SHIFT) {
	case AETH_ACK:
		if (acked(qp, psn))
			rvt_get_credit(qp, aeth);
		break;
	case AETH_RNR_NAK:
		/* A NAK says that everything before it has arrived, and something is outstanding. */
		if (acked(qp, psn - 1) && vhca_psn_diff(psn, qp->s_last_psn) > 0)
			rnr_nak(qp, psn, aeth);
		break;
	case AETH_NAK:
		if (acked(qp, psn - 1) && vhca_psn_diff(psn, qp->s_last_psn) > 0 &&
		    !(qp->s_flags & RVT_S_WAIT_RNR))
			nak(qp, psn, aeth >> IB_AETH_CREDIT_SHIFT & 0x1f);
		break;
	}
}

/* The request that this response must belong to: the oldest, and of that kind. */
static struct rvt_swqe *waiting_request(struct rvt_qp *qp, u32 psn, bool read)
{
	struct rvt_swqe *wqe;

	if (!acked(qp, psn - 1) || qp->s_last == qp->s_tail)
		return NULL;
	wqe = rvt_get_swqe_ptr(qp, qp->s_last);
	if (!vhca_is_read_or_atomic(wqe) || (wqe->wr.opcode == IB_WR_RDMA_READ) != read ||
	    vhca_psn_diff(psn, wqe->psn) < 0 || vhca_psn_diff(psn, wqe->lpsn) > 0)
		return NULL;
	if (psn != qp->s_last_psn + 1) {
		if (vhca_psn_diff(psn, qp->s_last_psn) > 0)
			implied_nak(qp, qp->s_last_psn + 1);
		return NULL;
	}
	return wqe;
}

static bool ends_read(u8 opcode)
{
	return opcode == IB_OPCODE_RC_RDMA_READ_RESPONSE_LAST ||
	       opcode == IB_OPCODE_RC_RDMA_READ_RESPONSE_ONLY;
}

static void read_response(struct rvt_qp *qp, const struct vhca_rx *rx, u32 psn)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	struct rvt_swqe *wqe = waiting_request(qp, psn, true);
	u32 offset, length;

	if (!wqe)
		return;
	offset = (psn - wqe->psn) << qp->log_pmtu;
	length = min_t(u32, wqe->length - offset, qp->pmtu);
	if (rx->length != length || ends_read(rx->bth.opcode) != (psn == wqe->lpsn)) {
		vhca_rc_fail(qp, IB_WC_LOC_LEN_ERR);
		return;
	}
	if (length) {
		if (!vqp->read_valid || vqp->read_psn != psn)
			rvt_restart_sge(&qp->s_rdma_read_sge, wqe, offset);
		rvt_copy_sge(qp, &qp->s_rdma_read_sge, rx->data, length, false, false);
		vqp->read_valid = true;
		vqp->read_psn = psn + 1;
	}
	if (rx->bth.opcode != IB_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE)
		rvt_get_credit(qp, get_unaligned_be32(rx->ext));
	if (psn == wqe->lpsn) {
		finish(qp, wqe);
		return;
	}
	qp->s_last_psn = psn;
	progress(qp);
}

static void atomic_response(struct rvt_qp *qp, const struct vhca_rx *rx, u32 psn)
{
	struct rvt_swqe *wqe = waiting_request(qp, psn, false);

	if (!wqe)
		return;
	if (rx->length) {
		vhca_rc_fail(qp, IB_WC_BAD_RESP_ERR);
		return;
	}
	*(u64 *)wqe->sg_list[0].vaddr = get_unaligned_be64(rx->ext + 4);
	rvt_get_credit(qp, get_unaligned_be32(rx->ext));
	finish(qp, wqe);
}

void vhca_rc_response(struct rvt_qp *qp, const struct vhca_rx *rx)
{
	u32 psn = vhca_psn_near(qp->s_last_psn + 1, rx->bth.psn);

	if (!(ib_rvt_state_ops[qp->state] & RVT_PROCESS_SEND_OK))
		return;
	/* Old, or never sent: neither says anything, but for credits that were given later. */
	if (vhca_psn_diff(psn, qp->s_last_psn) <= 0 ||
	    vhca_psn_diff(psn, to_vhca_qp(qp)->next_new) >= 0) {
		if (rx->bth.opcode == IB_OPCODE_RC_ACKNOWLEDGE && psn == qp->s_last_psn &&
		    get_unaligned_be32(rx->ext) >> IB_AETH_NAK_SHIFT == AETH_ACK)
			rvt_get_credit(qp, get_unaligned_be32(rx->ext));
		return;
	}
	switch (rx->bth.opcode) {
	case IB_OPCODE_RC_ACKNOWLEDGE:
		acknowledge(qp, psn, get_unaligned_be32(rx->ext));
		break;
	case IB_OPCODE_RC_ATOMIC_ACKNOWLEDGE:
		atomic_response(qp, rx, psn);
		break;
	default:
		read_response(qp, rx, psn);
		break;
	}
}
