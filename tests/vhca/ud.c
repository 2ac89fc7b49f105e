// SPDX-License-Identifier: GPL-2.0
#include "lane.h"
#include "receive.h"
#include "trap.h"
#include "ud.h"

static u16 pkey_of(struct rvt_qp *qp, struct rvt_swqe *wqe)
{
	struct rvt_dev_info *rdi = ib_to_rvt(qp->ibqp.device);

	switch (qp->ibqp.qp_type) {
	case IB_QPT_SMI:
		return 0xffff;		/* VL15 knows no partitions (10.9.8) */
	case IB_QPT_GSI:
		return rvt_get_pkey(rdi, qp->port_num - 1, rvt_get_swqe_pkey_index(wqe));
	default:
		return rvt_get_pkey(rdi, qp->port_num - 1, qp->s_pkey_index);
	}
}

/* Members on this port get a copy that the switch does not send back. */
static bool is_multicast(const struct vhca_address *to)
{
	return to->dlid >= VHCA_LID_MULTICAST && to->dlid != VHCA_LID_PERMISSIVE;
}

static bool has_members(struct vhca_port *port, const struct vhca_address *to)
{
	union ib_gid mgid = to->grh->dgid;
	struct rvt_mcast *group = rvt_mcast_find(&port->ibp, &mgid, to->dlid);

	if (!group)
		return false;
	if (atomic_dec_return(&group->refcount) <= 1)
		wake_up(&group->wait);
	return true;
}

static void send_copy(struct vhca_port *port, const struct vhca_packet *packet)
{
	struct vhca_packet *copy = kmemdup(packet, struct_size(packet, bytes, packet->size),
					   GFP_ATOMIC);

	if (!copy)
		return;
	copy->lane = VHCA_LANE_LOOP;
	vhca_lane_put(port, copy, NULL);
}

static void build(struct vhca_port *port, struct rvt_qp *qp, struct rvt_swqe *wqe,
		  const struct vhca_address *to, u8 lane)
{
	bool imm = wqe->wr.opcode == IB_WR_SEND_WITH_IMM;
	u32 qkey = rvt_get_swqe_remote_qkey(wqe);
	struct vhca_bth bth = {
		.opcode = imm ? IB_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE : IB_OPCODE_UD_SEND_ONLY,
		.solicited = !!(wqe->wr.send_flags & IB_SEND_SOLICITED),
		.pkey = pkey_of(qp, wqe), .psn = wqe->psn,
		.qpn = is_multicast(to) ? IB_MULTICAST_QPN : rvt_get_swqe_remote_qpn(wqe),
	};
	struct vhca_packet *packet;
	struct rvt_sge_state ss;
	u8 *ext;

	packet = vhca_packet_new(to, &bth, wqe->length, &ext);
	if (!packet) {
		port->ibp.n_pkt_drops++;
		return;
	}
	/* The high bit means: the queue pair's own (10.2.5). */
	put_unaligned_be32(qkey & BIT(31) ? qp->qkey : qkey, ext);
	put_unaligned_be32(qp->ibqp.qp_num, ext + 4);
	ext += 8;
	if (imm) {
		memcpy(ext, &wqe->wr.ex.imm_data, 4);
		ext += 4;
	}
	if (wqe->length) {
		rvt_restart_sge(&ss, wqe, 0);
		vhca_copy_from(&ss, ext, wqe->length);
	}
	packet->lane = lane;
	if (is_multicast(to) && has_members(port, to))
		send_copy(port, packet);
	vhca_lane_put(port, packet, to_vhca_qp(qp));
}

enum vhca_step vhca_ud_request(struct rvt_qp *qp)
{
	struct vhca_port *port;
	struct rdma_ah_attr *attr;
	struct rvt_swqe *wqe;
	struct vhca_address to;
	struct ib_grh grh;
	u8 lane;

	if (qp->s_last == READ_ONCE(qp->s_head))
		return VHCA_IDLE;
	smp_rmb();	/* rvt_post_one_wr() fills in the request before it moves s_head */
	wqe = rvt_get_swqe_ptr(qp, qp->s_last);
	attr = rvt_get_swqe_ah_attr(wqe);
	port = vhca_port(to_vhca(qp->ibqp.device), rdma_ah_get_port_num(attr));
	vhca_address_of(port, attr, qp->ibqp.qp_type == IB_QPT_SMI, &to, &grh);
	lane = vhca_lane_of(port, &to);
	if (lane == 15 && qp->ibqp.qp_type != IB_QPT_SMI) {
		port->counters.xmit_discards++;
	} else {
		/* The copy of a multicast packet, if it has one, takes up room, too. */
		if ((is_multicast(&to) &&
		     !vhca_lane_room(port, VHCA_LANE_LOOP, to_vhca_qp(qp))) ||
		    !vhca_lane_room(port, lane, to_vhca_qp(qp)))
			return VHCA_IDLE;
		build(port, qp, wqe, &to, lane);
	}
	qp->s_cur = rvt_qp_swqe_incr(qp, qp->s_last);
	qp->s_tail = qp->s_cur;
	rvt_send_complete(qp, wqe, IB_WC_SUCCESS);
	return VHCA_BUSY;
}

static bool qkey_ok(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx)
{
	u32 qkey = get_unaligned_be32(rx->ext);

	if (!qp->ibqp.qp_num || qkey == (qp->ibqp.qp_num == 1 ? IB_QP1_QKEY : qp->qkey))
		return true;
	vhca_trap_bad_key(port, IB_NOTICE_TRAP_BAD_QKEY, qkey, rx, qp->ibqp.qp_num);
	return false;
}

static u16 pkey_index(struct vhca_port *port, u16 pkey)
{
	unsigned int i;

	for (i = 0; i < VHCA_PKEYS; i++)
		if (vhca_pkey_match(port->pkeys[i], pkey))
			return i;
	return 0;
}

void vhca_ud_receive(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx)
{
	u32 source = get_unaligned_be32(rx->ext + 4) & IB_QPN_MASK;
	bool multicast = rx->bth.qpn == IB_MULTICAST_QPN;
	struct ib_wc wc = {
		.status = IB_WC_SUCCESS, .opcode = IB_WC_RECV, .qp = &qp->ibqp,
		.src_qp = source, .slid = rx->slid, .sl = rx->sl, .port_num = port->num,
		.dlid_path_bits = multicast ? 0 : rx->dlid & ((1 << port->lmc) - 1),
		.byte_len = rx->length + sizeof(struct ib_grh),
	};

	/* Its sender does not get a multicast message back (10.5.2.1). */
	if (multicast && rx->loop && source == qp->ibqp.qp_num)
		return;
	if (!qkey_ok(port, qp, rx))
		return;
	if (qp->ibqp.qp_num <= 1 && rx->length != IB_MGMT_MAD_SIZE) {
		port->ibp.n_pkt_drops++;
		return;
	}
	if (qp->r_flags & RVT_R_REUSE_SGE) {
		qp->r_flags &= ~RVT_R_REUSE_SGE;
	} else {
		int got = rvt_get_rwqe(qp, false);

		if (got < 0)
			vhca_qp_error(qp, IB_WC_LOC_QP_OP_ERR);
		if (got <= 0) {
			if (!qp->ibqp.qp_num)
				port->counters.vl15_dropped++;
			port->ibp.n_pkt_drops++;
			return;
		}
	}
	if (wc.byte_len > qp->r_len) {	/* too long: silently dropped, the receive stays (9.8.3) */
		qp->r_flags |= RVT_R_REUSE_SGE;
		port->ibp.n_pkt_drops++;
		return;
	}
	if (rx->grh) {
		rvt_copy_sge(qp, &qp->r_sge, rx->grh, sizeof(*rx->grh), true, false);
		wc.wc_flags |= IB_WC_GRH;
	} else {
		rvt_skip_sge(&qp->r_sge, sizeof(struct ib_grh), true);
	}
	rvt_copy_sge(qp, &qp->r_sge, rx->data, rx->length, true, false);
	rvt_put_ss(&qp->r_sge);
	if (!test_and_clear_bit(RVT_R_WRID_VALID, &qp->r_aflags))
		return;
	wc.wr_id = qp->r_wr_id;
	if (rx->bth.opcode == IB_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE) {
		memcpy(&wc.ex.imm_data, rx->ext + 8, 4);
		wc.wc_flags |= IB_WC_WITH_IMM;
	}
	if (qp->ibqp.qp_num == 1)
		wc.pkey_index = pkey_index(port, rx->bth.pkey);
	rvt_recv_cq(qp, &wc, rx->bth.solicited);
}
