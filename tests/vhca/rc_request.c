// SPDX-License-Identifier: GPL-2.0
#include "apm.h"
#include "lane.h"
#include "rc.h"

/* The request whose packets include @psn, from the oldest on; s_tail if none does. */
static u32 request_of(struct rvt_qp *qp, u32 psn)
{
	u32 i;

	for (i = qp->s_last; i != qp->s_tail; i = rvt_qp_swqe_incr(qp, i))
		if (vhca_psn_diff(psn, rvt_get_swqe_ptr(qp, i)->lpsn) <= 0)
			break;
	return i;
}

void vhca_rc_go_back(struct rvt_qp *qp, u32 psn)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	u32 i;

	qp->s_cur = request_of(qp, psn);
	qp->s_psn = psn;
	if (qp->s_cur == qp->s_tail)
		qp->s_psn = vqp->next_new;
	/* Those from here on are counted when they are sent again. */
	qp->s_num_rd_atomic = 0;
	for (i = qp->s_last; i != qp->s_cur; i = rvt_qp_swqe_incr(qp, i))
		qp->s_num_rd_atomic += vhca_is_read_or_atomic(rvt_get_swqe_ptr(qp, i));
	vqp->sge_valid = false;
	vhca_qp_port(qp)->ibp.n_rc_resends += vhca_psn_diff(vqp->next_new, psn) & VHCA_PSN_MASK;
	vhca_qp_schedule(qp);
}

void vhca_rc_fail(struct rvt_qp *qp, enum ib_wc_status status)
{
	if (qp->s_last != qp->s_tail)
		rvt_send_complete(qp, rvt_get_swqe_ptr(qp, qp->s_last), status);
	vhca_qp_error(qp, IB_WC_WR_FLUSH_ERR);
}

void vhca_rc_retry(struct rvt_qp *qp, u32 psn)
{
	if (qp->s_retry) {
		qp->s_retry--;
	} else if (vhca_apm_migrate(qp)) {
		qp->s_retry = qp->s_retry_cnt;
		qp->s_rnr_retry = qp->s_rnr_retry_cnt;
	} else {
		vhca_rc_fail(qp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	vhca_rc_go_back(qp, psn);
}

void vhca_rc_timeout(struct rvt_qp *qp, u32 psn, int wait)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	if (!(ib_rvt_state_ops[qp->state] & RVT_PROCESS_SEND_OK) || qp->s_last == qp->s_tail)
		return;
	vqp->implied_nak = false;
	/* What has not left yet can not have been answered: the fabric has no credits for it. */
	if (atomic_read(&vqp->queued)) {
		rvt_mod_retry_timer(qp);
		return;
	}
	vhca_rc_retry(qp, psn);
}

static bool takes_receive(const struct rvt_swqe *wqe)
{
	return wqe->wr.opcode == IB_WR_SEND || wqe->wr.opcode == IB_WR_SEND_WITH_IMM ||
	       wqe->wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM;
}

/* Whether the packet at (s_cur, s_psn) may be sent now; if not, s_flags say what is waited for. */
static bool may_send(struct rvt_qp *qp, struct rvt_swqe *wqe, bool fresh)
{
	bool reads = vhca_is_read_or_atomic(wqe);

	qp->s_flags &= ~(RVT_S_WAIT_FENCE | RVT_S_WAIT_RDMAR | RVT_S_WAIT_ACK |
			 RVT_S_WAIT_SSN_CREDIT);
	if (qp->s_psn == wqe->psn && wqe->wr.send_flags & IB_SEND_FENCE && qp->s_num_rd_atomic) {
		qp->s_flags |= RVT_S_WAIT_FENCE;
		return false;
	}
	if (reads && qp->s_num_rd_atomic >= qp->s_max_rd_atomic) {
		qp->s_flags |= RVT_S_WAIT_RDMAR;
		return false;
	}
	if (fresh && takes_receive(wqe) && !rvt_rc_credit_avail(qp, wqe))
		return false;
	if (!reads && vhca_psn_diff(qp->s_psn, qp->s_last_psn + 1) >= VHCA_RC_WINDOW) {
		qp->s_flags |= RVT_S_WAIT_ACK;
		return false;
	}
	return vhca_qp_room(qp);
}

static u8 opcode_of(const struct rvt_swqe *wqe, bool first, bool last)
{
	switch (wqe->wr.opcode) {
	case IB_WR_RDMA_READ:
		return IB_OPCODE_RC_RDMA_READ_REQUEST;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_OPCODE_RC_COMPARE_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_OPCODE_RC_FETCH_ADD;
	default:
		return IB_OPCODE_RC + vhca_part_opcode(wqe, first, last);
	}
}

static u8 *put_reth(u8 *ext, const struct rvt_swqe *wqe, u32 offset)
{
	put_unaligned_be64(wqe->rdma_wr.remote_addr + offset, ext);
	put_unaligned_be32(wqe->rdma_wr.rkey, ext + 8);
	put_unaligned_be32(wqe->length - offset, ext + 12);
	return ext + 16;
}

static u8 *put_atomic_eth(u8 *ext, const struct rvt_swqe *wqe)
{
	bool swap = wqe->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP;

	put_unaligned_be64(wqe->atomic_wr.remote_addr, ext);
	put_unaligned_be32(wqe->atomic_wr.rkey, ext + 8);
	put_unaligned_be64(swap ? wqe->atomic_wr.swap : wqe->atomic_wr.compare_add, ext + 12);
	put_unaligned_be64(swap ? wqe->atomic_wr.compare_add : 0, ext + 20);
	return ext + 28;
}

static u8 *put_ext(u8 *ext, u8 opcode, const struct rvt_swqe *wqe, u32 offset)
{
	switch (opcode) {
	case IB_OPCODE_RC_RDMA_READ_REQUEST:
	case IB_OPCODE_RC_RDMA_WRITE_FIRST:
	case IB_OPCODE_RC_RDMA_WRITE_ONLY:
		return put_reth(ext, wqe, offset);
	case IB_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE:
		ext = put_reth(ext, wqe, offset);
		break;
	case IB_OPCODE_RC_COMPARE_SWAP:
	case IB_OPCODE_RC_FETCH_ADD:
		return put_atomic_eth(ext, wqe);
	case IB_OPCODE_RC_SEND_LAST_WITH_IMMEDIATE:
	case IB_OPCODE_RC_SEND_ONLY_WITH_IMMEDIATE:
	case IB_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE:
		break;
	default:
		return ext;
	}
	memcpy(ext, &wqe->wr.ex.imm_data, 4);
	return ext + 4;
}

static void copy_payload(struct rvt_qp *qp, struct rvt_swqe *wqe, u32 offset, u8 *to, u32 length)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	if (!vqp->sge_valid || vqp->sge_psn != qp->s_psn)
		rvt_restart_sge(&qp->s_sge, wqe, offset);
	vhca_copy_from(&qp->s_sge, to, length);
	vqp->sge_valid = true;
	vqp->sge_psn = qp->s_psn + 1;
}

/* The packet was built: the place moves on. */
static void advance(struct rvt_qp *qp, struct rvt_swqe *wqe, bool fresh)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	if (fresh)
		qp->s_tail = rvt_qp_swqe_incr(qp, qp->s_tail);
	if (vhca_is_read_or_atomic(wqe)) {
		qp->s_num_rd_atomic++;
		qp->s_psn = wqe->lpsn + 1;
	} else {
		qp->s_psn++;
	}
	if (vhca_psn_diff(qp->s_psn, vqp->next_new) > 0)
		vqp->next_new = qp->s_psn;
	if (qp->s_psn == wqe->lpsn + 1) {
		qp->s_cur = rvt_qp_swqe_incr(qp, qp->s_cur);
		vqp->sge_valid = false;
	}
	if (!(qp->s_flags & RVT_S_TIMER) && qp->timeout)
		rvt_add_retry_timer(qp);
}

enum vhca_step vhca_rc_request(struct rvt_qp *qp)
{
	bool fresh = qp->s_cur == qp->s_tail, first, last, reads;
	u32 offset, length, place;
	struct vhca_packet *packet;
	struct rvt_swqe *wqe;
	struct vhca_bth bth;
	u8 *ext;

	if (qp->s_flags & RVT_S_WAIT_RNR || qp->s_cur == READ_ONCE(qp->s_head))
		return VHCA_IDLE;
	smp_rmb();	/* rvt_post_one_wr() fills in the request before it moves s_head */
	if (fresh && !(ib_rvt_state_ops[qp->state] & RVT_PROCESS_NEXT_SEND_OK))
		return VHCA_IDLE;
	wqe = rvt_get_swqe_ptr(qp, qp->s_cur);
	if (fresh)
		qp->s_psn = wqe->psn;
	if (!may_send(qp, wqe, fresh))
		return VHCA_IDLE;

	reads = vhca_is_read_or_atomic(wqe);
	place = qp->s_psn - wqe->psn;
	first = !place;
	last = qp->s_psn == wqe->lpsn;
	offset = place << qp->log_pmtu;
	length = reads ? 0 : min_t(u32, wqe->length - offset, qp->pmtu);
	bth = (struct vhca_bth){
		.opcode = opcode_of(wqe, first, last), .psn = qp->s_psn,
		.solicited = last && wqe->wr.send_flags & IB_SEND_SOLICITED && takes_receive(wqe),
		.ackreq = last || reads || !((place + 1) % VHCA_RC_ACK_EVERY),
	};
	packet = vhca_qp_packet(qp, &bth, length, &ext);
	if (!packet) {
		/* Without memory now: the timer brings us back, whatever it finds outstanding. */
		if (!(qp->s_flags & RVT_S_TIMER))
			rvt_add_retry_timer(qp);
		return VHCA_IDLE;
	}
	ext = put_ext(ext, bth.opcode, wqe, offset);
	if (length)
		copy_payload(qp, wqe, offset, ext, length);
	vhca_qp_put(qp, packet, to_vhca_qp(qp));
	advance(qp, wqe, fresh);
	return VHCA_BUSY;
}
