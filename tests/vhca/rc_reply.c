// SPDX-License-Identifier: GPL-2.0
#include "lane.h"
#include "rc.h"

static __be32 aeth_of(struct rvt_qp *qp, u32 syndrome)
{
	if (!syndrome)
		return rvt_compute_aeth(qp);
	return cpu_to_be32((qp->r_msn & IB_MSN_MASK) | syndrome << IB_AETH_CREDIT_SHIFT);
}

static bool send_ack(struct rvt_qp *qp, u32 syndrome, u32 psn)
{
	struct vhca_bth bth = { .opcode = IB_OPCODE_RC_ACKNOWLEDGE, .psn = psn };
	__be32 aeth = aeth_of(qp, syndrome);
	struct vhca_packet *packet;
	u8 *ext;

	packet = vhca_qp_packet(qp, &bth, 0, &ext);
	if (!packet)
		return false;
	memcpy(ext, &aeth, 4);
	vhca_qp_put(qp, packet, NULL);
	if (!syndrome)
		vhca_qp_port(qp)->rc.acks++;
	else if (syndrome >> 5 == IB_RNR_NAK >> 5)
		vhca_qp_port(qp)->rc.rnr_naks++;
	return true;
}

/* The NAK that refuses a request is on its way. */
static void refused(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	if (vqp->ack_syndrome == IB_NAK_REMOTE_ACCESS_ERROR)
		vhca_qp_event(qp, IB_EVENT_QP_ACCESS_ERR);
	else if (vqp->ack_syndrome == IB_NAK_INVALID_REQUEST)
		vhca_qp_event(qp, IB_EVENT_QP_REQ_ERR);
	vhca_qp_error(qp, vqp->refused_as);
}

static bool reply_due(struct rvt_qp *qp)
{
	u32 i;

	for (i = qp->s_tail_ack_queue; i != qp->r_head_ack_queue; i = vhca_rc_next_entry(qp, i))
		if (qp->s_ack_queue[i].sent != VHCA_REPLY_SENT)
			return true;
	return false;
}

void vhca_rc_refuse(struct rvt_qp *qp, u32 syndrome, u32 psn, enum ib_wc_status status)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	vqp->ack_pending = true;
	vqp->ack_syndrome = syndrome;
	vqp->ack_psn = psn;
	vqp->refusing = true;
	vqp->refused_as = status;
	if (reply_due(qp))
		return;
	/* Full lane or not, and whether there is memory or not. */
	send_ack(qp, syndrome, psn);
	refused(qp);
}

void vhca_rc_last_ack(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	/* A NAK that asks again acknowledges what was before; one that refuses has gone. */
	if (vqp->ack_pending && !vqp->refusing && !reply_due(qp))
		send_ack(qp, vqp->ack_syndrome, vqp->ack_psn);
	vqp->ack_pending = false;
}

/* An entry was answered in full; a replay checks the key anew, the region may go. */
static void entry_done(struct rvt_qp *qp, struct rvt_ack_entry *e)
{
	if (e->rdma_sge.mr) {
		rvt_put_mr(e->rdma_sge.mr);
		e->rdma_sge.mr = NULL;
	}
	e->sent = VHCA_REPLY_SENT;
	to_vhca_qp(qp)->reply_active = false;
}

static u8 response_opcode(bool first, bool last)
{
	if (first)
		return last ? IB_OPCODE_RC_RDMA_READ_RESPONSE_ONLY :
			IB_OPCODE_RC_RDMA_READ_RESPONSE_FIRST;
	return last ? IB_OPCODE_RC_RDMA_READ_RESPONSE_LAST :
		IB_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE;
}

static enum vhca_step send_read(struct rvt_qp *qp, struct rvt_ack_entry *e)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	u32 total = e->rdma_sge.sge_length, offset, length;
	struct vhca_packet *packet;
	struct vhca_bth bth;
	bool last;
	u8 *ext;

	if (!vqp->reply_active) {
		vqp->reply_active = true;
		vqp->reply_psn = e->psn;
		qp->s_ack_rdma_sge.sge = e->rdma_sge;
		qp->s_ack_rdma_sge.sg_list = NULL;
		qp->s_ack_rdma_sge.num_sge = 1;
		qp->s_ack_rdma_sge.total_len = total;
	}
	offset = (vqp->reply_psn - e->psn) << qp->log_pmtu;
	length = min_t(u32, total - offset, qp->pmtu);
	last = vqp->reply_psn == e->lpsn;
	bth = (struct vhca_bth){
		.opcode = response_opcode(vqp->reply_psn == e->psn, last),
		.psn = vqp->reply_psn,
	};
	packet = vhca_qp_packet(qp, &bth, length, &ext);
	if (!packet) {
		vhca_qp_schedule(qp);
		return VHCA_IDLE;
	}
	if (bth.opcode != IB_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE) {
		__be32 aeth = aeth_of(qp, 0);

		memcpy(ext, &aeth, 4);
		ext += 4;
	}
	vhca_copy_from(&qp->s_ack_rdma_sge, ext, length);
	vhca_qp_put(qp, packet, to_vhca_qp(qp));
	if (last)
		entry_done(qp, e);
	else
		vqp->reply_psn++;
	return VHCA_BUSY;
}

static enum vhca_step send_atomic(struct rvt_qp *qp, struct rvt_ack_entry *e)
{
	struct vhca_bth bth = { .opcode = IB_OPCODE_RC_ATOMIC_ACKNOWLEDGE, .psn = e->psn };
	__be32 aeth = aeth_of(qp, 0);
	struct vhca_packet *packet;
	u8 *ext;

	packet = vhca_qp_packet(qp, &bth, 0, &ext);
	if (!packet) {
		vhca_qp_schedule(qp);
		return VHCA_IDLE;
	}
	memcpy(ext, &aeth, 4);
	put_unaligned_be64(e->atomic_data, ext + 4);
	vhca_qp_put(qp, packet, to_vhca_qp(qp));
	entry_done(qp, e);
	return VHCA_BUSY;
}

/* Responses to reads and atomics go before an ACK: one that overtook them would deny them. */
enum vhca_step vhca_rc_reply(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	while (qp->s_tail_ack_queue != qp->r_head_ack_queue) {
		struct rvt_ack_entry *e = &qp->s_ack_queue[qp->s_tail_ack_queue];

		if (e->sent != VHCA_REPLY_SENT) {
			if (!vhca_qp_room(qp))
				return VHCA_IDLE;
			return e->opcode == IB_OPCODE_RC_RDMA_READ_REQUEST ?
				send_read(qp, e) : send_atomic(qp, e);
		}
		qp->s_tail_ack_queue = vhca_rc_next_entry(qp, qp->s_tail_ack_queue);
	}
	if (!vqp->ack_pending || !vhca_qp_room(qp))
		return VHCA_IDLE;
	if (!send_ack(qp, vqp->ack_syndrome, vqp->ack_psn))
		return VHCA_IDLE;	/* lost: the requester asks again */
	if (vqp->refusing) {
		refused(qp);
		return VHCA_BUSY;
	}
	vqp->ack_pending = false;
	vqp->ack_syndrome = 0;
	return VHCA_BUSY;
}
