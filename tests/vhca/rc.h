/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reliable connections (IBA 1.2.1 vol 1, 9.7), in four parts:
 *
 *	rc_request.c	requester: builds requests, goes back when it must
 *	rc_response.c	requester: what ACKs, NAKs and responses do to outstanding requests
 *	rc_receive.c	responder: executes requests, once
 *	rc_reply.c	responder: read and atomic responses, ACKs and NAKs, in order
 *
 * A requester's place is (s_cur, s_psn), the next packet to build. Going back for a resend is
 * setting it: everything a packet says is derived from its request and its PSN. s_last is the
 * oldest request that is not complete, s_tail the first that was never begun.
 */
#ifndef VHCA_RC_H
#define VHCA_RC_H

#include "psn.h"
#include "qp.h"

#define VHCA_RC_WINDOW 64	/* packets of sends and writes without an ACK */
#define VHCA_RC_ACK_EVERY 16	/* one of so many asks for an ACK, besides every last one */

/* rvt_ack_entry.sent */
enum {
	VHCA_REPLY_DUE,
	VHCA_REPLY_SENT,
	VHCA_REPLY_AGAIN,	/* it was answered, and is asked for again */
};

static inline bool vhca_is_read_or_atomic(const struct rvt_swqe *wqe)
{
	return wqe->wr.opcode == IB_WR_RDMA_READ ||
	       wqe->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->wr.opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

/* Ring of read and atomic requests: rdmavt's s_ack_queue, kept for replay until it comes around. */
static inline u32 vhca_rc_next_entry(struct rvt_qp *qp, u32 i)
{
	return i >= rvt_size_atomic(ib_to_rvt(qp->ibqp.device)) ? 0 : i + 1;
}

/* All of these: r_lock and s_lock held. */
enum vhca_step vhca_rc_request(struct rvt_qp *qp);
enum vhca_step vhca_rc_reply(struct rvt_qp *qp);
void vhca_rc_receive(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx);
void vhca_rc_response(struct rvt_qp *qp, const struct vhca_rx *rx);

/**
 * vhca_rc_last_ack() - the queue pair ends: the ACK or NAK that is still due
 *
 * What has come is the program's already, which may be done with the queue pair. From hardware
 * the ACK would be on its way by then.
 */
void vhca_rc_last_ack(struct rvt_qp *qp);

/* Goes back to @psn, which is outstanding, and sends everything from there on again. */
void vhca_rc_go_back(struct rvt_qp *qp, u32 psn);

/**
 * vhca_rc_retry() - go back because something was lost, if the retry count allows it
 *
 * If not the alternate path is taken, and if there is none the oldest request fails.
 */
void vhca_rc_retry(struct rvt_qp *qp, u32 psn);

/* rdmavt's timer for responses has run out. */
void vhca_rc_timeout(struct rvt_qp *qp, u32 psn, int wait);

/* The oldest request fails, and with it the queue pair. */
void vhca_rc_fail(struct rvt_qp *qp, enum ib_wc_status status);

/**
 * vhca_rc_refuse() - a NAK that ends the connection (9.7.5.2.1)
 * @syndrome: AETH of the NAK
 * @psn: of the request that is not executed, nor is anything after it
 * @status: of the receive that is under way
 *
 * What was asked before is answered before: the queue pair goes to ERR when the NAK has been sent.
 */
void vhca_rc_refuse(struct rvt_qp *qp, u32 syndrome, u32 psn, enum ib_wc_status status);

#endif
