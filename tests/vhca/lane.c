// SPDX-License-Identifier: GPL-2.0
#include <linux/slab.h>

#include "lane.h"
#include "qp.h"
#include "wire_link.h"

void vhca_lanes_init(struct vhca_port *port)
{
	unsigned int i;

	spin_lock_init(&port->lane_lock);
	vhca_arbiter_init(&port->arbiter);
	for (i = 0; i < VHCA_LANES; i++) {
		INIT_LIST_HEAD(&port->lane[i].packets);
		INIT_LIST_HEAD(&port->lane[i].waiting);
	}
}

bool vhca_lane_room(struct vhca_port *port, unsigned int lane, struct vhca_qp *vqp)
{
	struct vhca_lane *l = &port->lane[lane];
	unsigned long flags;
	bool room;

	lockdep_assert_held(&vqp->qp->s_lock);
	vhca_lane_done(vqp);
	/* Who waits elsewhere now has no use for the room that it was woken for. */
	if (vqp->waits_at != port || vqp->waits_in != lane)
		vhca_lane_pass(vqp);
	spin_lock_irqsave(&port->lane_lock, flags);
	room = l->count + l->places < VHCA_LANE_DEPTH;
	if (room) {
		l->places++;
		vqp->place_at = port;
		vqp->place_in = lane;
	} else if (list_empty_careful(&vqp->waiting)) {
		rvt_get_qp(vqp->qp);
		vqp->waits_at = port;
		vqp->waits_in = lane;
		vqp->woken = false;
		vqp->qp->s_flags |= RVT_S_WAIT_PIO;
		list_add_tail(&vqp->waiting, &l->waiting);
	}
	spin_unlock_irqrestore(&port->lane_lock, flags);
	return room;
}

void vhca_lane_done(struct vhca_qp *vqp)
{
	struct vhca_port *port = vqp->place_at;
	struct vhca_lane *l;
	unsigned long flags;
	bool alone;

	lockdep_assert_held(&vqp->qp->s_lock);
	if (!port)
		return;
	spin_lock_irqsave(&port->lane_lock, flags);
	l = &port->lane[vqp->place_in];
	l->places--;
	alone = !l->count && !list_empty(&l->waiting);
	spin_unlock_irqrestore(&port->lane_lock, flags);
	vqp->place_at = NULL;
	/* Others wait for no more than this place: nothing is there that will be taken out. */
	if (alone)
		vhca_lane_wake(port, vqp->place_in);
}

/* VL15 is there as soon as the link is; data needs ACTIVE (IBA 1.2.1 vol 1, 7.2.7). */
static bool may_pass(const struct vhca_port *port, unsigned int lane)
{
	if (lane == VHCA_LANE_LOOP)
		return true;
	return port->wire.up && (lane == 15 || port->state == IB_PORT_ACTIVE);
}

void vhca_lane_put(struct vhca_port *port, struct vhca_packet *packet, struct vhca_qp *vqp)
{
	struct vhca_lane *l = &port->lane[packet->lane];
	unsigned long flags;

	spin_lock_irqsave(&port->lane_lock, flags);
	if (!may_pass(port, packet->lane)) {
		port->counters.xmit_discards++;
	} else if (l->count >= 2 * VHCA_LANE_DEPTH) {
		port->ibp.n_pkt_drops++;
	} else {
		packet->owner = vqp;
		if (vqp)
			atomic_inc(&vqp->queued);
		list_add_tail(&packet->list, &l->packets);
		l->count++;
		port->lane_most = max(port->lane_most, l->count);
		packet = NULL;
	}
	spin_unlock_irqrestore(&port->lane_lock, flags);
	kfree(packet);
	vhca_wire_kick(port);
}

static void take_out(struct vhca_port *port, struct vhca_packet *packet)
{
	lockdep_assert_held(&port->lane_lock);
	list_del(&packet->list);
	port->lane[packet->lane].count--;
	if (packet->owner)
		atomic_dec(&packet->owner->queued);
	packet->owner = NULL;
}

static struct vhca_packet *head_of(struct vhca_port *port, unsigned int lane)
{
	return list_first_entry_or_null(&port->lane[lane].packets, struct vhca_packet, list);
}

/* Data VLs with a packet that credits allow. */
static u32 ready_lanes(struct vhca_port *port, u32 *bytes, bool *blocked)
{
	unsigned int vl;
	u32 ready = 0;

	for (vl = 0; vl < VHCA_DATA_VLS; vl++) {
		struct vhca_packet *packet = head_of(port, vl);

		if (!packet)
			continue;
		bytes[vl] = packet->size;
		if (vhca_credits_allow(&port->wire.credits, vl, vhca_blocks(packet->size)))
			ready |= BIT(vl);
		else
			*blocked = true;
	}
	return ready;
}

struct vhca_packet *vhca_lane_next(struct vhca_port *port, bool *blocked)
{
	struct vhca_packet *packet;
	u32 bytes[VHCA_DATA_VLS];
	unsigned long flags;
	u32 ready;

	*blocked = false;
	spin_lock_irqsave(&port->lane_lock, flags);
	packet = head_of(port, VHCA_LANE_LOOP);
	if (!packet)
		packet = head_of(port, 15);
	if (!packet) {
		ready = ready_lanes(port, bytes, blocked);
		if (ready)
			packet = head_of(port, vhca_arbiter_pick(&port->arbiter, ready, bytes));
	}
	if (packet)
		take_out(port, packet);
	spin_unlock_irqrestore(&port->lane_lock, flags);
	if (packet)
		vhca_lane_wake(port, packet->lane);
	return packet;
}

void vhca_lane_wake(struct vhca_port *port, unsigned int lane)
{
	struct vhca_lane *l = &port->lane[lane];
	struct vhca_qp *vqp = NULL;
	unsigned long flags;

	/* Not before there is room for some packets: each wake costs a switch of context. */
	if (READ_ONCE(l->count) > VHCA_LANE_DEPTH / 2)
		return;
	spin_lock_irqsave(&port->lane_lock, flags);
	if (!list_empty(&l->waiting)) {
		vqp = list_first_entry(&l->waiting, struct vhca_qp, waiting);
		list_del_init_careful(&vqp->waiting);
		vqp->woken = true;
	}
	spin_unlock_irqrestore(&port->lane_lock, flags);
	if (vqp) {
		vhca_qp_schedule(vqp->qp);
		rvt_put_qp(vqp->qp);
	}
}

void vhca_lane_pass(struct vhca_qp *vqp)
{
	struct vhca_port *port = vqp->waits_at;
	unsigned int lane = vqp->waits_in;
	unsigned long flags;
	bool woken;

	if (!READ_ONCE(vqp->woken))
		return;
	spin_lock_irqsave(&port->lane_lock, flags);
	woken = vqp->woken;
	vqp->woken = false;
	spin_unlock_irqrestore(&port->lane_lock, flags);
	if (woken)
		vhca_lane_wake(port, lane);
}

void vhca_lane_leave(struct vhca_qp *vqp)
{
	struct vhca_port *port = vqp->waits_at;
	unsigned long flags;
	bool waited;

	if (!port)
		return;
	spin_lock_irqsave(&port->lane_lock, flags);
	waited = !list_empty(&vqp->waiting);
	list_del_init_careful(&vqp->waiting);
	spin_unlock_irqrestore(&port->lane_lock, flags);
	if (waited)
		rvt_put_qp(vqp->qp);
}

static void disown(struct vhca_port *port, struct vhca_qp *vqp)
{
	struct vhca_packet *packet;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&port->lane_lock, flags);
	for (i = 0; i < VHCA_LANES; i++)
		list_for_each_entry(packet, &port->lane[i].packets, list)
			if (packet->owner == vqp) {
				packet->owner = NULL;
				atomic_dec(&vqp->queued);
			}
	spin_unlock_irqrestore(&port->lane_lock, flags);
}

void vhca_lane_moved(struct vhca_dev *dev, struct vhca_qp *vqp)
{
	unsigned int i;

	lockdep_assert_held(&vqp->qp->s_lock);
	vhca_lane_leave(vqp);
	vhca_lane_pass(vqp);
	for (i = 0; i < dev->nports; i++)
		if (atomic_read(&vqp->queued))
			disown(&dev->port[i], vqp);
}

static void drop(struct vhca_port *port, struct vhca_qp *vqp)
{
	struct vhca_packet *packet, *next;
	unsigned long flags;
	LIST_HEAD(gone);
	unsigned int i;

	spin_lock_irqsave(&port->lane_lock, flags);
	for (i = 0; i < VHCA_LANES; i++)
		list_for_each_entry_safe(packet, next, &port->lane[i].packets, list)
			if (vqp ? packet->owner == vqp :
			    i != VHCA_LANE_LOOP || READ_ONCE(port->wire.closing)) {
				take_out(port, packet);
				list_add(&packet->list, &gone);
			}
	spin_unlock_irqrestore(&port->lane_lock, flags);
	list_for_each_entry_safe(packet, next, &gone, list)
		kfree(packet);
	for (i = 0; i < VHCA_LANES; i++)
		vhca_lane_wake(port, i);
}

void vhca_lane_forget(struct vhca_dev *dev, struct vhca_qp *vqp)
{
	unsigned int i;

	vhca_lane_leave(vqp);
	vhca_lane_pass(vqp);
	for (i = 0; i < dev->nports; i++)
		if (atomic_read(&vqp->queued))
			drop(&dev->port[i], vqp);
}

void vhca_lanes_flush(struct vhca_port *port)
{
	drop(port, NULL);
}
