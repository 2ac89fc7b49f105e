// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The way of a packet through a switch: arrive, be routed, wait, be sent, give the room back. */
#include <string.h>

#include "congestion.h"
#include "ext.h"
#include "fabric.h"
#include "fault.h"
#include "shared.h"
#include "sma.h"
#include "traffic.h"

/* Blocks of an input queue are free: tell the sender, who hears it a cable later. */
static void give_back(struct fabric *f, uint32_t queue, uint32_t blocks, uint64_t when)
{
	clock_at(&f->clock, when + f->wires[f->queues[queue].port].delay, EV_CREDIT, queue, blocks);
}

void relay_copy_gone(struct fabric *f, uint32_t origin, uint32_t original, uint64_t when)
{
	if (--f->packets[original].ncopies)
		return;
	give_back(f, origin, packet_blocks(&f->packets[original]), when);
	packet_put(f, original);
}

/* A packet leaves the buffer of @queue at @when. */
static void release(struct fabric *f, uint32_t queue, uint32_t packet, uint64_t when)
{
	struct queue *q = &f->queues[queue];
	struct packet *p = &f->packets[packet];

	if (q->flow != NONE)
		return;
	if (q->origin == NONE) {
		give_back(f, queue, packet_blocks(p), when);
		return;
	}
	relay_copy_gone(f, q->origin, p->copies, when);
	queue_put(f, queue);
}

static void join_line(struct fabric *f, uint32_t queue, uint32_t lane)
{
	struct queue *q = &f->queues[queue];
	struct lane *l = &f->lanes[lane];
	uint32_t port = lane / f->config.vls;

	q->lane = lane;
	q->since = f->clock.now;
	q->state = QUEUE_WAITS;
	q->next = NONE;
	if (l->first == NONE)
		l->first = queue;
	else
		f->queues[l->last].next = queue;
	l->last = queue;
	f->ports[port].waiting |= 1u << lane % f->config.vls;
}

void relay_leave_line(struct fabric *f, uint32_t queue)
{
	struct queue *q = &f->queues[queue];
	struct lane *l = &f->lanes[q->lane];
	uint32_t prev = NONE, at = l->first;

	while (at != queue) {
		prev = at;
		at = f->queues[at].next;
	}
	if (prev == NONE)
		l->first = q->next;
	else
		f->queues[prev].next = q->next;
	if (l->last == queue)
		l->last = prev;
	if (l->first == NONE)
		f->ports[q->lane / f->config.vls].waiting &= ~(1u << q->lane % f->config.vls);
	q->next = NONE;
	q->state = QUEUE_EMPTY;
}

/* Removes the head from a queue that is in no line; who follows is not routed yet. */
static uint32_t pop(struct fabric *f, uint32_t queue)
{
	struct queue *q = &f->queues[queue];
	uint32_t packet = q->head;

	q->head = f->behind[packet];
	q->blocks -= packet_blocks(&f->packets[packet]);
	return packet;
}

static uint8_t *turn(const struct fabric *f, const struct node *node, unsigned int in, unsigned int out)
{
	return &node->sl2vl[(in * (node->nports + 1u) + out) * f->config.sls];
}

void relay_set_vl(const struct fabric *f, struct node *node, unsigned int in, unsigned int out,
		  unsigned int sl, uint8_t vl)
{
	turn(f, node, in, out)[sl] = vl;
	node->turns = TURNS_SET;
}

/* Looks at what packets can take: not from a port to itself, nor by the management port. */
static enum turns look_at_turns(const struct fabric *f, const struct node *node)
{
	for (unsigned int in = 1; in <= node->nports; in++)
		for (unsigned int out = 1; out <= node->nports; out++)
			if (in != out && memcmp(turn(f, node, in, out), turn(f, node, 1, 2), f->config.sls))
				return TURNS_DIFFER;
	return TURNS_ALIKE;
}

unsigned int relay_vl(const struct fabric *f, struct node *node, unsigned int in, unsigned int out,
		      unsigned int sl)
{
	if (node->turns == TURNS_SET)
		node->turns = look_at_turns(f, node);
	if (node->turns == TURNS_ALIKE && in != out) {
		in = 1;
		out = 2;
	}
	return turn(f, node, in, out)[sl];
}

/* The lane of a packet that a switch sends by port num, or NONE, why, and the port that counts. */
static uint32_t route(struct fabric *f, const struct queue *q, const struct packet *p,
		      unsigned int num, enum drop *why, uint32_t *counts)
{
	struct node *node = &f->nodes[q->node];
	struct port *out;
	unsigned int vl;
	uint32_t lane;

	*counts = q->port;
	if (num > node->nports || !num) {
		*why = DROP_LFT;
		return NONE;
	}
	if (num == q->in && !node->shared) {
		*why = DROP_LOOP;
		return NONE;
	}
	out = &f->ports[node->first + num];
	vl = node->shared ? p->vl : relay_vl(f, node, q->in, num, p->sl);
	if (vl >= out->op_vls || vl >= f->config.vls) {
		*why = DROP_VL;
		return NONE;
	}
	*counts = node->first + num;
	lane = *counts * f->config.vls + vl;
	*why = DROP_INACTIVE;
	if (out->state != PORT_ACTIVE)
		return NONE;
	*why = DROP_MTU;
	if (p->len > out->mtu + 126u)	/* the MTU is the payload's; headers come on top */
		return NONE;
	*why = DROP_STALL;
	if (f->clock.now < f->lanes[lane].stalled_until)
		return NONE;
	*why = DROP_LIFETIME;
	if (node->lifetime != CLOCK_NEVER && f->clock.now - p->entered > node->lifetime)
		return NONE;
	*why = DROP_PKEY_OUT;
	if (out->enforce_out && !sma_has_pkey(f, *counts, p->pkey))
		return NONE;
	return lane;
}

static uint32_t source_lane(struct fabric *f, const struct queue *q, const struct packet *p,
			    enum drop *why)
{
	struct port *port = &f->ports[q->port];
	unsigned int vl = f->nodes[port->node].sl2vl[p->sl];

	*why = DROP_VL;
	if (vl >= port->op_vls || vl >= f->config.vls)
		return NONE;
	*why = DROP_INACTIVE;
	return port->state == PORT_ACTIVE ? q->port * f->config.vls + vl : NONE;
}

static unsigned int lookup(const struct node *node, const struct packet *p)
{
	return node->lft && p->dlid <= node->lft_top ? node->lft[p->dlid] : 255;
}

void relay_discard(struct fabric *f, uint32_t queue, uint32_t counts, enum drop why)
{
	uint32_t flow = f->queues[queue].flow, packet;

	if (f->queues[queue].state == QUEUE_WAITS)
		relay_leave_line(f, queue);
	packet = pop(f, queue);
	release(f, queue, packet, f->clock.now);
	relay_drop(f, counts, packet, why);
	if (flow != NONE)	/* a host whose port is down does not spin: it looks again later */
		flow_stopped(f, flow);
	else if (f->queues[queue].port != NONE && f->queues[queue].head != NONE)
		relay_head(f, queue);
}

/* A real packet for the switch itself: its agents have it, and not who is at the port that it came by. */
static void take_in(struct fabric *f, uint32_t queue)
{
	uint32_t packet = pop(f, queue);

	release(f, queue, packet, f->clock.now);
	f->deliver(f, f->nodes[f->queues[queue].node].first, packet);
	if (f->queues[queue].head != NONE)
		relay_head(f, queue);
}

/* Routes a waiting head; what it has no lane for is dropped. Recursion ends: queues get shorter. */
void relay_head(struct fabric *f, uint32_t queue)
{
	struct queue *q = &f->queues[queue];
	struct packet *p;
	enum drop why;
	uint32_t lane, counts = q->port, port;

	if (q->head == NONE || q->state != QUEUE_EMPTY)
		return;
	p = &f->packets[q->head];
	if (q->flow != NONE) {
		lane = source_lane(f, q, p, &why);
	} else if (q->origin != NONE) {
		lane = route(f, q, p, q->out, &why, &counts);
	} else if (p->dlid >= MCAST_LID) {
		multicast_head(f, queue);
		return;
	} else {
		const struct node *node = &f->nodes[q->node];
		unsigned int num = node->shared ? shared_route(f, q->port, p) : lookup(node, p);

		if (!num && p->kind == PACKET_REAL) {
			take_in(f, queue);
			return;
		}
		lane = route(f, q, p, num, &why, &counts);
	}
	if (lane == NONE) {
		relay_discard(f, queue, counts, why);
		return;
	}
	port = lane / f->config.vls;
	join_line(f, queue, lane);
	if (!f->ports[port].busy)
		relay_send(f, port);
	if (f->ports[port].waiting)
		lifetime_arm(f, port);
}

/* Bits of the VLs that wait and have the credits for their first packet. */
static unsigned int ready_lanes(struct fabric *f, uint32_t port, uint32_t *bytes)
{
	unsigned int ready = 0;

	for (unsigned int bits = f->ports[port].waiting; bits; bits &= bits - 1) {
		unsigned int vl = __builtin_ctz(bits);
		struct lane *l = &f->lanes[port * f->config.vls + vl];
		struct packet *p = &f->packets[f->queues[l->first].head];

		if (l->credits < packet_blocks(p))
			continue;
		bytes[vl] = p->len;
		ready |= 1u << vl;
	}
	return ready;
}

static void transmit(struct fabric *f, uint32_t port, uint32_t queue)
{
	struct port *out = &f->ports[port];
	struct queue *q = &f->queues[queue];
	struct lane *l = &f->lanes[q->lane];
	uint32_t packet, peer = out->peer;
	struct packet *p;
	uint64_t fs = out->disturbed && out->slow ? (uint64_t)out->fs_per_byte * out->slow / 100 :
		out->fs_per_byte;
	uint64_t now = f->clock.now, delay = f->wires[port].delay, end;
	uint32_t flow = q->flow, vl = q->lane % f->config.vls;

	relay_leave_line(f, queue);
	packet = pop(f, queue);
	p = &f->packets[packet];
	end = now + p->len * fs / 1000;

	/* A cut-through packet can not be sent faster than it comes in. */
	if (end < p->tail)
		end = p->tail;
	out->busy = 1;
	l->credits -= packet_blocks(p);
	l->stalls = 0;
	l->sent++;
	if (f->congestion)
		congestion_mark(f, port, q, p);
	p->vl = vl;
	p->epoch = out->epoch;
	out->counters.xmit_bytes += p->len;
	out->counters.xmit_pkts++;
	if (p->dlid >= MCAST_LID) {
		out->counters.multi_xmit++;
		out->counters.xmit_other++;
	}
	if (flow == NONE && q->origin == NONE) {
		q->state = QUEUE_LEAVES;
		clock_at(&f->clock, end, EV_SENT, port, queue);
	} else {
		clock_at(&f->clock, end, EV_SENT, port, NONE);
	}
	release(f, queue, packet, end);
	p->copies = NONE;
	p->tail = end + delay;
	f->hops++;
	if (peer == EXTERNAL) {
		f->deliver(f, port, packet);
	} else {
		uint64_t when = out->to_host ? p->tail : now + delay + f->config.switch_delay;
		uint32_t twin = NONE;

		if (out->disturbed && out->fault)
			twin = fault_on_wire(f, port, packet, l->credits, &when);
		if (twin != NONE) {
			l->credits -= packet_blocks(&f->packets[twin]);
			clock_at(&f->clock, when, EV_ARRIVE, peer, twin);
		}
		clock_at(&f->clock, when, EV_ARRIVE, peer, packet);
	}
	if (flow != NONE)
		flow_sent(f, flow);
}

void relay_send(struct fabric *f, uint32_t port)
{
	struct port *out = &f->ports[port];
	uint32_t bytes[16];
	unsigned int ready, vl;

	if (out->busy || !out->waiting || out->state != PORT_ACTIVE)
		return;
	ready = ready_lanes(f, port, bytes);
	if (!ready) {
		if (!out->blocked) {
			out->blocked = 1;
			out->counters.blocked_since = f->clock.now;
		}
		return;
	}
	if (out->blocked) {
		out->blocked = 0;
		f->ports[port].counters.xmit_wait += f->clock.now - out->counters.blocked_since;
	}
	vl = arbiter_pick(out, ready, bytes);
	transmit(f, port, f->lanes[port * f->config.vls + vl].first);
}

void relay_sent(struct fabric *f, uint32_t port, uint32_t queue)
{
	/* The queue lines up again before the lane chooses; behind those that wait already. */
	if (queue != NONE) {
		f->queues[queue].state = QUEUE_EMPTY;
		relay_head(f, queue);
	}
	f->ports[port].busy = 0;
	relay_send(f, port);
}

void relay_credit(struct fabric *f, uint32_t queue, uint32_t blocks)
{
	uint32_t vls = f->config.vls, port = queue / vls, peer = f->wires[port].peer;
	struct lane *lane;

	if (peer >= f->nports) {
		f->queues[queue].came -= blocks;
		if (peer == EXTERNAL)
			ext_room(f, port);
		return;
	}
	lane = &f->lanes[peer * vls + queue % vls];
	lane->given += blocks;
	/* If the link is down they do not matter: link_up() counts anew. */
	lane->credits += blocks;
	if (lane->first != NONE && !f->ports[peer].busy)
		relay_send(f, peer);
}

/* When a host has taken what came: one with a slow bus holds the room until then. */
static uint64_t taken(struct fabric *f, struct port *host, unsigned int bytes)
{
	if (!host->drain)
		return f->clock.now;
	if (host->drained < f->clock.now)
		host->drained = f->clock.now;
	host->drained += (uint64_t)bytes * host->fs_per_byte * host->drain / 100000;
	return host->drained;
}

void relay_arrive(struct fabric *f, uint32_t port, uint32_t packet)
{
	struct port *in = &f->ports[port];
	struct packet *p = &f->packets[packet];
	uint32_t queue = port * f->config.vls + p->vl, blocks = packet_blocks(p);
	struct queue *q = &f->queues[queue];

	if (p->epoch != in->epoch || !in->up) {	/* the cable went while it was on it */
		relay_drop(f, port, packet, DROP_LINK);
		return;
	}
	q->came += blocks;
	in->counters.rcv_bytes += p->len;
	in->counters.rcv_pkts++;
	if (p->kind & FAULT_MARKS) {
		enum drop why = p->kind & FAULT_CORRUPT ? DROP_CORRUPT : DROP_LOST;

		if (why == DROP_LOST) {
			in->counters.rcv_bytes -= p->len;
			in->counters.rcv_pkts--;
		} else {
			in->counters.rcv_other++;
		}
		give_back(f, queue, blocks, f->clock.now);
		relay_drop(f, port, packet, why);
		return;
	}
	if (p->dlid >= MCAST_LID) {
		in->counters.multi_rcv++;
		in->counters.rcv_other++;
	}
	/* A port that waits for the SM's last word takes data as this word (IBA 1.2.1, 7.2.7). */
	if (in->state == PORT_ARMED)
		port_set_state(f, port, PORT_ACTIVE);
	if (in->state != PORT_ACTIVE) {
		give_back(f, queue, blocks, f->clock.now);
		relay_drop(f, port, packet, DROP_NOT_READY);
		return;
	}
	if (!in->is_switch) {
		give_back(f, queue, blocks, taken(f, in, p->len));
		if (p->kind == PACKET_REAL)
			f->deliver(f, port, packet);
		else
			flow_arrived(f, port, packet);
		return;
	}
	if (in->enforce_in && !sma_has_pkey(f, port, p->pkey)) {
		give_back(f, queue, blocks, f->clock.now);
		relay_drop(f, port, packet, DROP_PKEY_IN);
		return;
	}
	p->entered = f->clock.now;
	f->behind[packet] = NONE;
	q->blocks += blocks;
	if (q->head == NONE) {
		q->head = packet;
		q->tail = packet;
		if (q->state == QUEUE_EMPTY)
			relay_head(f, queue);
	} else {
		f->behind[q->tail] = packet;
		q->tail = packet;
	}
}
