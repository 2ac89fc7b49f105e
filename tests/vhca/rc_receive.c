// SPDX-License-Identifier: GPL-2.0
#include "apm.h"
#include "rc.h"
#include "recv_sge.h"

static void acknowledge(struct rvt_qp *qp, u32 psn)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	if (vqp->ack_pending && vqp->ack_syndrome)	/* a NAK says as much, and more */
		return;
	if (!vqp->ack_pending || vhca_psn_diff(psn, vqp->ack_psn) > 0)
		vqp->ack_psn = psn;
	vqp->ack_pending = true;
	vqp->ack_syndrome = 0;
}

/* A NAK after which the requester sends again from @psn. */
static void nak(struct rvt_qp *qp, u32 syndrome, u32 psn)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	vqp->ack_pending = true;
	vqp->ack_syndrome = syndrome;
	vqp->ack_psn = psn;
	vqp->nak_sent = true;
}

static void invalid(struct rvt_qp *qp, u32 psn, enum ib_wc_status status)
{
	vhca_rc_refuse(qp, IB_NAK_INVALID_REQUEST, psn, status);
}

/* Takes a receive. Return: false after RNR or a local error. */
static bool take_receive(struct rvt_qp *qp, u32 psn, bool only_id)
{
	int got = rvt_get_rwqe(qp, only_id);

	if (!got)
		nak(qp, IB_RNR_NAK | qp->r_min_rnr_timer, psn);
	else if (got < 0)
		vhca_rc_refuse(qp, IB_NAK_REMOTE_OPERATIONAL_ERROR, psn, IB_WC_LOC_QP_OP_ERR);
	return got > 0;
}

/* One more packet was executed. */
static void done(struct rvt_qp *qp, const struct vhca_rx *rx, u32 psn)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	qp->r_psn = psn + 1;
	qp->r_state = rx->bth.opcode;
	vqp->nak_sent = false;
	if (vqp->ack_syndrome) {	/* what the NAK asked for has come */
		vqp->ack_syndrome = 0;
		vqp->ack_pending = false;
	}
	if (rx->bth.ackreq) {
		vhca_qp_port(qp)->rc.ack_requests++;
		acknowledge(qp, psn);
	}
}

static bool begins(u8 opcode)
{
	return opcode == IB_OPCODE_RC_SEND_FIRST || opcode == IB_OPCODE_RC_SEND_ONLY ||
	       opcode == IB_OPCODE_RC_SEND_ONLY_WITH_IMMEDIATE ||
	       opcode == IB_OPCODE_RC_RDMA_WRITE_FIRST ||
	       opcode == IB_OPCODE_RC_RDMA_WRITE_ONLY ||
	       opcode == IB_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE ||
	       opcode == IB_OPCODE_RC_RDMA_READ_REQUEST || opcode == IB_OPCODE_RC_COMPARE_SWAP ||
	       opcode == IB_OPCODE_RC_FETCH_ADD;
}

/* Whether an opcode may come after the last one (9.7.4.1.2). */
static bool in_sequence(const struct rvt_qp *qp, u8 opcode)
{
	switch (qp->r_state) {
	case IB_OPCODE_RC_SEND_FIRST:
	case IB_OPCODE_RC_SEND_MIDDLE:
		return opcode == IB_OPCODE_RC_SEND_MIDDLE || opcode == IB_OPCODE_RC_SEND_LAST ||
		       opcode == IB_OPCODE_RC_SEND_LAST_WITH_IMMEDIATE;
	case IB_OPCODE_RC_RDMA_WRITE_FIRST:
	case IB_OPCODE_RC_RDMA_WRITE_MIDDLE:
		return opcode == IB_OPCODE_RC_RDMA_WRITE_MIDDLE ||
		       opcode == IB_OPCODE_RC_RDMA_WRITE_LAST ||
		       opcode == IB_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE;
	default:
		return begins(opcode);
	}
}

static void receive_send(struct rvt_qp *qp, const struct vhca_rx *rx, u32 psn)
{
	u8 op = rx->bth.opcode;
	bool last = op != IB_OPCODE_RC_SEND_FIRST && op != IB_OPCODE_RC_SEND_MIDDLE;

	if (begins(op)) {
		if (!take_receive(qp, psn, false))
			return;
		qp->r_rcv_len = 0;
	}
	if ((!last && rx->length != qp->pmtu) || rx->length > qp->pmtu ||
	    qp->r_rcv_len + rx->length > qp->r_len) {
		invalid(qp, psn, IB_WC_LOC_LEN_ERR);
		return;
	}
	rvt_copy_sge(qp, &qp->r_sge, rx->data, rx->length, true, false);
	qp->r_rcv_len += rx->length;
	if (last) {
		rvt_put_ss(&qp->r_sge);
		qp->r_msn++;
		vhca_recv_complete(qp, rx, IB_WC_RECV, qp->r_rcv_len);
	}
	done(qp, rx, psn);
}

static void receive_write(struct rvt_qp *qp, const struct vhca_rx *rx, u32 psn)
{
	u8 op = rx->bth.opcode;
	bool last = op != IB_OPCODE_RC_RDMA_WRITE_FIRST && op != IB_OPCODE_RC_RDMA_WRITE_MIDDLE;
	bool imm = op == IB_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE ||
		   op == IB_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;

	if (begins(op) && !vhca_recv_reth(qp, rx->ext, IB_ACCESS_REMOTE_WRITE)) {
		vhca_rc_refuse(qp, IB_NAK_REMOTE_ACCESS_ERROR, psn, IB_WC_LOC_QP_OP_ERR);
		return;
	}
	if ((!last && rx->length != qp->pmtu) || rx->length > qp->pmtu ||
	    qp->r_rcv_len + rx->length > qp->r_len ||
	    (last && qp->r_rcv_len + rx->length != qp->r_len)) {
		invalid(qp, psn, IB_WC_LOC_QP_OP_ERR);
		return;
	}
	/* Before the data: without a receive this packet comes again. */
	if (imm && !take_receive(qp, psn, true)) {
		if (begins(op))
			rvt_put_ss(&qp->r_sge);
		return;
	}
	rvt_copy_sge(qp, &qp->r_sge, rx->data, rx->length, true, false);
	qp->r_rcv_len += rx->length;
	if (last) {
		rvt_put_ss(&qp->r_sge);
		qp->r_msn++;
		if (imm)
			vhca_recv_complete(qp, rx, IB_WC_RECV_RDMA_WITH_IMM, qp->r_len);
	}
	done(qp, rx, psn);
}

/* A place in the ring for a request that is new; NULL if more are under way than were agreed on. */
static struct rvt_ack_entry *new_entry(struct rvt_qp *qp, u32 psn)
{
	struct rvt_ack_entry *e = &qp->s_ack_queue[qp->r_head_ack_queue];
	u32 i, pending = 0;

	/* Replays do not count: the requester may have had those answers meanwhile. */
	for (i = qp->s_tail_ack_queue; i != qp->r_head_ack_queue; i = vhca_rc_next_entry(qp, i))
		pending += qp->s_ack_queue[i].sent == VHCA_REPLY_DUE;
	if (pending >= qp->r_max_rd_atomic) {
		invalid(qp, psn, IB_WC_LOC_QP_OP_ERR);
		return NULL;
	}
	/* The oldest one may still be replayed right now: its last answers were sent long ago. */
	if (vhca_rc_next_entry(qp, qp->r_head_ack_queue) == qp->s_tail_ack_queue) {
		qp->s_tail_ack_queue = vhca_rc_next_entry(qp, qp->s_tail_ack_queue);
		to_vhca_qp(qp)->reply_active = false;
	}
	if (e->rdma_sge.mr) {
		rvt_put_mr(e->rdma_sge.mr);
		e->rdma_sge.mr = NULL;
	}
	return e;
}

static bool read_sge(struct rvt_qp *qp, struct rvt_ack_entry *e, const u8 *reth)
{
	u32 length = get_unaligned_be32(reth + 12);

	memset(&e->rdma_sge, 0, sizeof(e->rdma_sge));
	if (!(qp->qp_access_flags & IB_ACCESS_REMOTE_READ))
		return false;
	/* Zero bytes touch no memory: neither key nor address count (9.7.5.2.1). */
	if (length && !rvt_rkey_ok(qp, &e->rdma_sge, length, get_unaligned_be64(reth),
				   get_unaligned_be32(reth + 8), IB_ACCESS_REMOTE_READ)) {
		e->rdma_sge.mr = NULL;
		return false;
	}
	e->rdma_sge.sge_length = length;
	return true;
}

static void push(struct rvt_qp *qp, struct rvt_ack_entry *e, const struct vhca_rx *rx, u32 psn)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	e->opcode = rx->bth.opcode;
	e->psn = psn;
	e->sent = VHCA_REPLY_DUE;
	qp->r_head_ack_queue = vhca_rc_next_entry(qp, qp->r_head_ack_queue);
	qp->r_msn++;
	qp->r_psn = e->lpsn + 1;
	qp->r_state = rx->bth.opcode;
	vqp->nak_sent = false;
	vqp->ack_pending = false;	/* the response acknowledges what was before it */
	vqp->ack_syndrome = 0;
}

static void receive_read(struct rvt_qp *qp, const struct vhca_rx *rx, u32 psn)
{
	u32 length = get_unaligned_be32(rx->ext + 12);
	struct rvt_ack_entry *e;

	if (rx->length || length > 0x80000000u) {
		invalid(qp, psn, IB_WC_LOC_QP_OP_ERR);
		return;
	}
	e = new_entry(qp, psn);
	if (!e)
		return;
	if (!read_sge(qp, e, rx->ext)) {
		vhca_rc_refuse(qp, IB_NAK_REMOTE_ACCESS_ERROR, psn, IB_WC_LOC_QP_OP_ERR);
		return;
	}
	e->lpsn = psn + (length ? (length - 1) >> qp->log_pmtu : 0);
	push(qp, e, rx, psn);
}

static void receive_atomic(struct rvt_qp *qp, const struct vhca_rx *rx, u32 psn)
{
	u64 address = get_unaligned_be64(rx->ext), swap_add = get_unaligned_be64(rx->ext + 12);
	struct rvt_ack_entry *e;
	struct rvt_sge sge = {};
	atomic64_t *memory;

	if (rx->length || address & 7) {
		invalid(qp, psn, IB_WC_LOC_QP_OP_ERR);
		return;
	}
	e = new_entry(qp, psn);
	if (!e)
		return;
	if (!(qp->qp_access_flags & IB_ACCESS_REMOTE_ATOMIC) ||
	    !rvt_rkey_ok(qp, &sge, sizeof(u64), address, get_unaligned_be32(rx->ext + 8),
			 IB_ACCESS_REMOTE_ATOMIC)) {
		vhca_rc_refuse(qp, IB_NAK_REMOTE_ACCESS_ERROR, psn, IB_WC_LOC_QP_OP_ERR);
		return;
	}
	memory = sge.vaddr;
	if (rx->bth.opcode == IB_OPCODE_RC_FETCH_ADD)
		e->atomic_data = atomic64_fetch_add(swap_add, memory);
	else
		e->atomic_data = atomic64_cmpxchg(memory, get_unaligned_be64(rx->ext + 20),
						  swap_add);
	rvt_put_mr(sge.mr);
	e->lpsn = psn;
	push(qp, e, rx, psn);
}

/* The oldest entry that has not ended before @psn: the one @psn is of, if it is of any. */
static struct rvt_ack_entry *old_entry(struct rvt_qp *qp, u32 psn, u32 *at)
{
	u32 i = qp->r_head_ack_queue, n = rvt_size_atomic(ib_to_rvt(qp->ibqp.device));
	struct rvt_ack_entry *e, *found = NULL;

	while (n--) {
		i = i ? i - 1 : rvt_size_atomic(ib_to_rvt(qp->ibqp.device));
		e = &qp->s_ack_queue[i];
		/* Empty, before @psn, or so old that its number has come around. */
		if (!e->opcode || vhca_psn_diff(psn, e->lpsn) > 0 ||
		    vhca_psn_diff(e->lpsn, qp->r_psn) >= 0)
			break;
		found = e;
		*at = i;
	}
	return found;
}

/* Whether ring index a comes before b, seen from the head backwards. */
static bool is_older(struct rvt_qp *qp, u32 a, u32 b)
{
	u32 i;

	for (i = a; i != qp->r_head_ack_queue; i = vhca_rc_next_entry(qp, i))
		if (i == b)
			return true;
	return false;
}

static void replay(struct rvt_qp *qp, const struct vhca_rx *rx, u32 psn)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	bool read = rx->bth.opcode == IB_OPCODE_RC_RDMA_READ_REQUEST;
	struct rvt_ack_entry *e;
	u32 at;

	e = old_entry(qp, psn, &at);
	if (!e || e->opcode != rx->bth.opcode || (!read && e->psn != psn))
		return;
	if (e->sent != VHCA_REPLY_SENT) {
		/* It is still to be answered from here on or before: that answers this, too. */
		bool active = vqp->reply_active && at == qp->s_tail_ack_queue;

		if (vhca_psn_diff(active ? vqp->reply_psn : e->psn, psn) <= 0)
			return;
	}
	if (read) {
		u32 length = get_unaligned_be32(rx->ext + 12);
		struct rvt_ack_entry again = *e;

		/* A requester that asks again asks for the rest of what it had asked for. */
		if (psn + (length ? (length - 1) >> qp->log_pmtu : 0) != e->lpsn ||
		    !read_sge(qp, &again, rx->ext))
			return;
		if (e->rdma_sge.mr)
			rvt_put_mr(e->rdma_sge.mr);
		*e = again;
		e->psn = psn;
	}
	if (e->sent == VHCA_REPLY_SENT) {
		e->sent = VHCA_REPLY_AGAIN;
		if (read)
			vhca_qp_port(qp)->rc.read_replays++;
		else
			vhca_qp_port(qp)->rc.atomic_replays++;
	}
	if (at == qp->s_tail_ack_queue || is_older(qp, at, qp->s_tail_ack_queue) ||
	    qp->s_tail_ack_queue == qp->r_head_ack_queue) {
		qp->s_tail_ack_queue = at;
		vqp->reply_active = false;
	}
}

/* It was executed already (9.7.5.1.4); what was lost is perhaps our answer. */
static void duplicate(struct rvt_qp *qp, const struct vhca_rx *rx, u32 psn)
{
	vhca_qp_port(qp)->ibp.n_rc_dupreq++;
	switch (rx->bth.opcode) {
	case IB_OPCODE_RC_RDMA_READ_REQUEST:
	case IB_OPCODE_RC_COMPARE_SWAP:
	case IB_OPCODE_RC_FETCH_ADD:
		replay(qp, rx, psn);
		break;
	default:
		acknowledge(qp, psn);
		break;
	}
}

static bool is_response(u8 opcode)
{
	return opcode >= IB_OPCODE_RC_RDMA_READ_RESPONSE_FIRST &&
	       opcode <= IB_OPCODE_RC_ATOMIC_ACKNOWLEDGE;
}

static void request(struct rvt_qp *qp, const struct vhca_rx *rx)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	u32 psn = vhca_psn_near(qp->r_psn, rx->bth.psn);
	s32 ahead = vhca_psn_diff(psn, qp->r_psn);

	if (ahead < 0) {
		duplicate(qp, rx, psn);
		return;
	}
	/* The NAK waits for what was asked before: it is the last word. */
	if (to_vhca_qp(qp)->refusing)
		return;
	if (ahead > 0) {
		/* One NAK a gap: the requester goes back once, what is on its way is in vain. */
		vhca_qp_port(qp)->ibp.n_rc_seqnak++;
		if (!vqp->nak_sent)
			nak(qp, IB_NAK_PSN_ERROR, qp->r_psn);
		return;
	}
	if (!in_sequence(qp, rx->bth.opcode)) {
		invalid(qp, psn, IB_WC_LOC_QP_OP_ERR);
		return;
	}
	if (qp->state == IB_QPS_RTR && !(qp->r_flags & RVT_R_COMM_EST)) {
		qp->r_flags |= RVT_R_COMM_EST;
		vhca_qp_event(qp, IB_EVENT_COMM_EST);
	}
	switch (rx->bth.opcode) {
	case IB_OPCODE_RC_RDMA_READ_REQUEST:
		receive_read(qp, rx, psn);
		break;
	case IB_OPCODE_RC_COMPARE_SWAP:
	case IB_OPCODE_RC_FETCH_ADD:
		receive_atomic(qp, rx, psn);
		break;
	default:
		if (rx->bth.opcode <= IB_OPCODE_RC_SEND_ONLY_WITH_IMMEDIATE)
			receive_send(qp, rx, psn);
		else
			receive_write(qp, rx, psn);
		break;
	}
}

void vhca_rc_receive(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx)
{
	if (!vhca_apm_arrived(port, qp, rx)) {
		port->ibp.n_pkt_drops++;
		return;
	}
	if (is_response(rx->bth.opcode))
		vhca_rc_response(qp, rx);
	else
		request(qp, rx);
}
