/* SPDX-License-Identifier: GPL-2.0 */
/* Queue pairs: what rdmavt asks of a driver, and the engine that sends. */
#ifndef VHCA_QP_H
#define VHCA_QP_H

#include "vhca.h"

/* What rdmavt calls; device.c hands it over. */
extern const struct rvt_driver_provided vhca_driver_functions;
extern const struct rvt_operation_params vhca_post_parms[RVT_OPERATION_MAX];
extern const enum ib_wc_opcode vhca_wc_opcode[];

/* What one step of a queue pair's engine came to. */
enum vhca_step {
	VHCA_IDLE,	/* nothing more can be done until something happens */
	VHCA_BUSY,	/* a packet was put into a lane, or the state changed: go on */
};

/**
 * vhca_qp_lock() - take the locks under which a queue pair's transport state changes
 *
 * Any context. Return: for vhca_qp_unlock().
 */
unsigned long vhca_qp_lock(struct rvt_qp *qp) __acquires(&qp->r_lock) __acquires(&qp->s_lock);

/* Lets go, then raises the events that were noted meanwhile: handlers take locks of their own. */
void vhca_qp_unlock(struct rvt_qp *qp, unsigned long flags)
	__releases(&qp->s_lock) __releases(&qp->r_lock);

/* Notes an event; both locks held. */
void vhca_qp_event(struct rvt_qp *qp, enum ib_event_type event);

/* Puts the queue pair into ERR; the receive that is under way ends with @status. */
void vhca_qp_error(struct rvt_qp *qp, enum ib_wc_status status);

/* Builds packets until nothing more can be sent now. Any context, no lock held. */
void vhca_qp_engine(struct rvt_qp *qp);
/* The same, soon. */
bool vhca_qp_schedule(struct rvt_qp *qp);

/**
 * vhca_qp_packet() - a packet of a connected queue pair, on its present path
 * @bth: all but P_Key, QPN and MigReq, which are the connection's
 *
 * To be followed by vhca_qp_put(). Return: NULL without memory.
 */
struct vhca_packet *vhca_qp_packet(struct rvt_qp *qp, struct vhca_bth *bth, u32 payload, u8 **ext);
/* @owner: NULL for what leaves even if the queue pair is gone by then. */
void vhca_qp_put(struct rvt_qp *qp, struct vhca_packet *packet, struct vhca_qp *owner);
/* Whether vhca_qp_put() has room; if not the engine runs again when it has. */
bool vhca_qp_room(struct rvt_qp *qp);

/* Fills in LRH's and GRH's fields from an address; grh is where the GRH is made, if it has one. */
void vhca_address_of(struct vhca_port *port, const struct rdma_ah_attr *attr, bool smp,
		     struct vhca_address *to, struct ib_grh *grh);
/* Which lane a packet for that address goes into. */
u8 vhca_lane_of(const struct vhca_port *port, const struct vhca_address *to);

/* Copies from what a work request points to; the state moves on. */
void vhca_copy_from(struct rvt_sge_state *ss, u8 *to, u32 length);

/*
 * Which part of a SEND or RDMA WRITE a packet is, as opcode without the transport (IBA 1.2.1 vol 1, table 35):
 * IB_OPCODE_RC or IB_OPCODE_UC is to be added.
 */
u8 vhca_part_opcode(const struct rvt_swqe *wqe, bool first, bool last);

/* sqd.c: after completions and at modify; both locks held. */
void vhca_sqd_check(struct rvt_qp *qp);

#endif
