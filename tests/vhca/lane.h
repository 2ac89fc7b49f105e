/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that wait for credits, one bounded queue a VL, and queue pairs that wait for room there. */
#ifndef VHCA_LANE_H
#define VHCA_LANE_H

#include "vhca.h"

/*
 * So many packets of queue pairs that ask for room. What does not ask, ACKs of queue pairs that end, may
 * go beyond that, to twice as many; more is dropped.
 */
#define VHCA_LANE_DEPTH 64u

void vhca_lanes_init(struct vhca_port *port);

/**
 * vhca_lane_room() - whether a queue pair may put one more packet into a lane
 *
 * If so it has a place there until vhca_lane_done(). If not it is queued to be woken, with a reference,
 * and must try again then. The caller holds its s_lock, and puts the packet in before it lets go.
 */
bool vhca_lane_room(struct vhca_port *port, unsigned int lane, struct vhca_qp *vqp);

/* Gives back the place, if it has one: it is filled, or not wanted. s_lock held. */
void vhca_lane_done(struct vhca_qp *vqp);

/* Puts a packet in, owned by @vqp (or NULL), and wakes the pump. Packets on a port that may not
 * send them are counted and freed. */
void vhca_lane_put(struct vhca_port *port, struct vhca_packet *packet, struct vhca_qp *vqp);

/* The next packet by arbitration and credits; NULL if there is none, *@blocked if only for want of
 * credits. The caller owns it. */
struct vhca_packet *vhca_lane_next(struct vhca_port *port, bool *blocked);

/* A queue pair goes: neither its packets nor its place in a line remain. */
void vhca_lane_forget(struct vhca_dev *dev, struct vhca_qp *vqp);
/* It no longer waits; its packets stay. */
void vhca_lane_leave(struct vhca_qp *vqp);
/*
 * Its path is another one: it no longer waits where it did, and packets that are there still are nobody's,
 * and leave when they can. Both locks held.
 */
void vhca_lane_moved(struct vhca_dev *dev, struct vhca_qp *vqp);

/**
 * vhca_lane_pass() - a queue pair has put in what it could
 *
 * If it was woken for that the next in the line is: one that had nothing to put in, or could not, would
 * else be the last that was ever woken.
 */
void vhca_lane_pass(struct vhca_qp *vqp);
/* Drops everything: the link is down. What loops stays, unless the HCA goes. */
void vhca_lanes_flush(struct vhca_port *port);
/* Wakes who waits first if there is room. */
void vhca_lane_wake(struct vhca_port *port, unsigned int lane);

#endif
