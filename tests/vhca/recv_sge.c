// SPDX-License-Identifier: GPL-2.0
#include "recv_sge.h"

bool vhca_recv_reth(struct rvt_qp *qp, const u8 *reth, int access)
{
	qp->r_len = get_unaligned_be32(reth + 12);
	qp->r_rcv_len = 0;
	qp->r_sge.sg_list = NULL;
	qp->r_sge.num_sge = 0;
	qp->r_sge.total_len = qp->r_len;
	if (!(qp->qp_access_flags & access))
		return false;
	/* Zero bytes touch no memory: neither key nor address count (9.7.5.2.1). */
	if (!qp->r_len)
		return true;
	if (!rvt_rkey_ok(qp, &qp->r_sge.sge, qp->r_len, get_unaligned_be64(reth),
			 get_unaligned_be32(reth + 8), access))
		return false;
	qp->r_sge.num_sge = 1;
	return true;
}

void vhca_recv_complete(struct rvt_qp *qp, const struct vhca_rx *rx, enum ib_wc_opcode opcode,
			u32 length)
{
	u8 operation = rx->bth.opcode & 0x1f;
	struct ib_wc wc = {
		.wr_id = qp->r_wr_id,
		.status = IB_WC_SUCCESS,
		.opcode = opcode,
		.byte_len = length,
		.qp = &qp->ibqp,
		.src_qp = qp->remote_qpn,
		.slid = rx->slid,
		.sl = rx->sl,
		.port_num = qp->port_num,
	};

	if (!test_and_clear_bit(RVT_R_WRID_VALID, &qp->r_aflags))
		return;
	switch (operation) {
	case IB_OPCODE_SEND_LAST_WITH_IMMEDIATE:
	case IB_OPCODE_SEND_ONLY_WITH_IMMEDIATE:
	case IB_OPCODE_RDMA_WRITE_LAST_WITH_IMMEDIATE:
		memcpy(&wc.ex.imm_data, rx->ext, 4);
		wc.wc_flags = IB_WC_WITH_IMM;
		break;
	case IB_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE:
		memcpy(&wc.ex.imm_data, rx->ext + 16, 4);
		wc.wc_flags = IB_WC_WITH_IMM;
		break;
	}
	rvt_recv_cq(qp, &wc, rx->bth.solicited);
}
