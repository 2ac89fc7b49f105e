/* SPDX-License-Identifier: GPL-2.0 */
/* What RC's and UC's receiving sides have in common: where data goes, and the completion. */
#ifndef VHCA_RECV_SGE_H
#define VHCA_RECV_SGE_H

#include "vhca.h"

/**
 * vhca_recv_reth() - point r_sge to the memory that a write's RETH names
 *
 * r_len is its length then, r_rcv_len 0. Both locks held.
 * Return: false if the keys do not allow it.
 */
bool vhca_recv_reth(struct rvt_qp *qp, const u8 *reth, int access);

/* Completes the receive that was taken for this message; both locks held. */
void vhca_recv_complete(struct rvt_qp *qp, const struct vhca_rx *rx, enum ib_wc_opcode opcode,
			u32 length);

#endif
