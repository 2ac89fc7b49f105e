// SPDX-License-Identifier: GPL-2.0
#include "apm.h"
#include "psn.h"
#include "recv_sge.h"
#include "uc.h"

static bool has_reth(u8 opcode)
{
	return opcode == IB_OPCODE_UC_RDMA_WRITE_FIRST ||
	       opcode == IB_OPCODE_UC_RDMA_WRITE_ONLY ||
	       opcode == IB_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
}

static bool has_imm(u8 opcode)
{
	return opcode == IB_OPCODE_UC_SEND_LAST_WITH_IMMEDIATE ||
	       opcode == IB_OPCODE_UC_SEND_ONLY_WITH_IMMEDIATE ||
	       opcode == IB_OPCODE_UC_RDMA_WRITE_LAST_WITH_IMMEDIATE ||
	       opcode == IB_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
}

enum vhca_step vhca_uc_request(struct rvt_qp *qp)
{
	bool fresh = qp->s_cur == qp->s_tail, last;
	struct vhca_packet *packet;
	struct rvt_swqe *wqe;
	struct vhca_bth bth;
	u32 offset, length;
	u8 *ext;

	if (qp->s_cur == READ_ONCE(qp->s_head))
		return VHCA_IDLE;
	smp_rmb();	/* rvt_post_one_wr() fills in the request before it moves s_head */
	if (fresh && !(ib_rvt_state_ops[qp->state] & RVT_PROCESS_NEXT_SEND_OK))
		return VHCA_IDLE;
	wqe = rvt_get_swqe_ptr(qp, qp->s_cur);
	if (fresh)
		qp->s_psn = wqe->psn;
	if (!vhca_qp_room(qp))
		return VHCA_IDLE;
	offset = (qp->s_psn - wqe->psn) << qp->log_pmtu;
	length = min_t(u32, wqe->length - offset, qp->pmtu);
	last = qp->s_psn == wqe->lpsn;
	bth = (struct vhca_bth){
		.opcode = IB_OPCODE_UC + vhca_part_opcode(wqe, !offset, last), .psn = qp->s_psn,
		.solicited = last && wqe->wr.send_flags & IB_SEND_SOLICITED &&
			     wqe->wr.opcode != IB_WR_RDMA_WRITE,
	};
	packet = vhca_qp_packet(qp, &bth, length, &ext);
	if (packet) {
		if (has_reth(bth.opcode)) {
			put_unaligned_be64(wqe->rdma_wr.remote_addr, ext);
			put_unaligned_be32(wqe->rdma_wr.rkey, ext + 8);
			put_unaligned_be32(wqe->length, ext + 12);
			ext += 16;
		}
		if (has_imm(bth.opcode)) {
			memcpy(ext, &wqe->wr.ex.imm_data, 4);
			ext += 4;
		}
		if (length) {
			if (!offset)
				rvt_restart_sge(&qp->s_sge, wqe, 0);
			vhca_copy_from(&qp->s_sge, ext, length);
		}
		vhca_qp_put(qp, packet, to_vhca_qp(qp));
	} else if (length) {		/* lost, as on the wire; the data's place moves on */
		rvt_restart_sge(&qp->s_sge, wqe, offset + length);
	}
	if (fresh)
		qp->s_tail = rvt_qp_swqe_incr(qp, qp->s_tail);
	qp->s_psn++;
	if (last) {
		qp->s_cur = rvt_qp_swqe_incr(qp, qp->s_cur);
		rvt_send_complete(qp, wqe, IB_WC_SUCCESS);
		vhca_sqd_check(qp);
	}
	return VHCA_BUSY;
}

static bool begins(u8 opcode)
{
	return opcode == IB_OPCODE_UC_SEND_FIRST || opcode == IB_OPCODE_UC_SEND_ONLY ||
	       opcode == IB_OPCODE_UC_SEND_ONLY_WITH_IMMEDIATE || has_reth(opcode);
}

static bool is_send(u8 opcode)
{
	return opcode <= IB_OPCODE_UC_SEND_ONLY_WITH_IMMEDIATE;
}

static bool is_last(u8 opcode)
{
	return opcode != IB_OPCODE_UC_SEND_FIRST && opcode != IB_OPCODE_UC_SEND_MIDDLE &&
	       opcode != IB_OPCODE_UC_RDMA_WRITE_FIRST && opcode != IB_OPCODE_UC_RDMA_WRITE_MIDDLE;
}

/* Whether a middle or last packet continues the message that is coming in. */
static bool continues(const struct rvt_qp *qp, u8 opcode)
{
	return !is_last(qp->r_state) && is_send(qp->r_state) == is_send(opcode);
}

/*
 * A send's receive is whole in s_rdma_read_sge, with RVT_R_REWIND_SGE, so that rdmavt knows of its
 * references whenever the queue pair is reset; uc_sge is how far it was filled. A message that is
 * cut off leaves it there, and the next send begins it anew (9.8.2.2.1).
 */
static bool take_receive(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	int got;

	if (!test_bit(RVT_R_REWIND_SGE, &qp->r_aflags)) {
		got = rvt_get_rwqe(qp, false);
		if (got < 0)
			vhca_qp_error(qp, IB_WC_LOC_QP_OP_ERR);
		if (got <= 0)
			return false;
		qp->s_rdma_read_sge = qp->r_sge;
		qp->r_sge.num_sge = 0;
		set_bit(RVT_R_REWIND_SGE, &qp->r_aflags);
	}
	vqp->uc_sge = qp->s_rdma_read_sge;
	qp->r_len = vqp->uc_sge.total_len;
	qp->r_rcv_len = 0;
	return true;
}

static void put_receive(struct rvt_qp *qp)
{
	if (test_and_clear_bit(RVT_R_REWIND_SGE, &qp->r_aflags))
		rvt_put_ss(&qp->s_rdma_read_sge);
}

/* For a write with immediate the receive is only its number; one left by a cut-off send will do. */
static bool take_number(struct rvt_qp *qp)
{
	if (test_bit(RVT_R_REWIND_SGE, &qp->r_aflags)) {
		put_receive(qp);
		return true;
	}
	return rvt_get_rwqe(qp, true) > 0;
}

/* The rest of the message that is coming in is of no use. */
static void cut_off(struct rvt_qp *qp)
{
	rvt_put_ss(&qp->r_sge);		/* a write's */
	qp->r_state = IB_OPCODE_UC_SEND_LAST;
	vhca_qp_port(qp)->ibp.n_pkt_drops++;
}

static bool length_ok(const struct rvt_qp *qp, const struct vhca_rx *rx, bool send, bool last)
{
	u32 length = qp->r_rcv_len + rx->length;

	if (last ? rx->length > qp->pmtu : rx->length != qp->pmtu)
		return false;
	return send || !last ? length <= qp->r_len : length == qp->r_len;
}

static void deliver(struct rvt_qp *qp, const struct vhca_rx *rx)
{
	u8 op = rx->bth.opcode;
	bool send = is_send(op), last = is_last(op);

	if (!length_ok(qp, rx, send, last) || (!send && has_imm(op) && !take_number(qp))) {
		cut_off(qp);
		return;
	}
	if (send)
		rvt_copy_sge(qp, &to_vhca_qp(qp)->uc_sge, rx->data, rx->length, false, false);
	else
		rvt_copy_sge(qp, &qp->r_sge, rx->data, rx->length, true, false);
	qp->r_rcv_len += rx->length;
	qp->r_state = op;
	if (!last)
		return;
	if (send) {
		put_receive(qp);
		vhca_recv_complete(qp, rx, IB_WC_RECV, qp->r_rcv_len);
		return;
	}
	rvt_put_ss(&qp->r_sge);
	if (has_imm(op))
		vhca_recv_complete(qp, rx, IB_WC_RECV_RDMA_WITH_IMM, qp->r_len);
}

void vhca_uc_receive(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx)
{
	u32 psn = vhca_psn_near(qp->r_psn, rx->bth.psn);
	u8 op = rx->bth.opcode;

	if (!vhca_apm_arrived(port, qp, rx)) {
		port->ibp.n_pkt_drops++;
		return;
	}
	if (psn != qp->r_psn && !is_last(qp->r_state))
		cut_off(qp);
	qp->r_psn = psn + 1;
	if (!begins(op)) {
		if (continues(qp, op))
			deliver(qp, rx);
		else
			port->ibp.n_pkt_drops++;
		return;
	}
	if (!is_last(qp->r_state))
		cut_off(qp);
	if (qp->state == IB_QPS_RTR && !(qp->r_flags & RVT_R_COMM_EST)) {
		qp->r_flags |= RVT_R_COMM_EST;
		vhca_qp_event(qp, IB_EVENT_COMM_EST);
	}
	if (is_send(op) ? !take_receive(qp) :
	    !vhca_recv_reth(qp, rx->ext, IB_ACCESS_REMOTE_WRITE)) {
		port->ibp.n_pkt_drops++;
		return;
	}
	deliver(qp, rx);
}
