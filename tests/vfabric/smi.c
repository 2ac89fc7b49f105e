// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The way of management packets: directed routes (IBA 1.2.1 vol 1, 14.2.2) and LIDs. */
#include <stdbool.h>
#include <string.h>

#include "ext.h"
#include "fault.h"
#include "journal.h"
#include "manager.h"
#include "shared.h"
#include "sma.h"

#define MAX_HOPS 64
#define HOP_PTR 6
#define HOP_CNT 7
#define INITIAL 128
#define RETURN 192

static int is_dr(const uint8_t *mad)
{
	return mad[1] == CLASS_SM_DR;
}

/* A request that the agents of a node answer themselves. */
static int for_agent(const struct fabric *f, uint32_t port, const uint8_t *mad)
{
	unsigned int attr = be16_at(mad + 16);

	if (mad[1] == CLASS_PERF)
		return mad[3] == SMP_GET || mad[3] == SMP_SET;
	if (mad[1] != CLASS_SM && mad[1] != CLASS_SM_DR)
		return 0;
	if (mad[3] == SMP_REPRESS)	/* or of a program that has sent the trap itself */
		return !pending_waits(f->manager, mad);
	if (mad[3] & 0x80 || mad[3] == SMP_TRAP)
		return 0;
	/* SMInfo belongs to the SM there, if there is one. */
	return attr != 0x20 || !clients_have_sm(f, port);
}

/* Answers in place. Return: whether there is an answer to send. */
static int answer(struct fabric *f, uint32_t port, uint16_t slid, uint8_t *mad)
{
	unsigned int status, dr = is_dr(mad);
	int reply = 1;

	if (mad[1] == CLASS_PERF)
		status = pma_process(f, port, mad);
	else
		status = sma_process(f, port, slid, mad, &reply);
	if (reply && mad[1] != CLASS_PERF && fault_mutes(f, port, be16_at(mad + 16))) {
		f->manager->faults++;
		f->manager->lost++;
		reply = 0;
	}
	mad[3] = SMP_RESP;
	put_be16(mad + 4, status | (dr ? 0x8000 : 0));
	return reply;
}

static uint32_t cross(struct fabric *f, uint32_t out, const struct mad_address *address,
		      uint8_t *mad);

/* Where a MAD arrives that has come to a port: not within an HCA, but behind it. */
static uint32_t through(struct fabric *f, uint32_t port, const struct mad_address *address,
			uint8_t *mad)
{
	return is_shared(f, port) ? cross(f, shared_route_mad(f, port, mad), address, mad) : port;
}

/* Who is late: it goes on when its time has come, if there is a place to wait. */
static bool is_late(struct fabric *f, uint32_t out, const struct mad_address *address,
		    const uint8_t *mad)
{
	struct manager *m = f->manager;
	unsigned int ms = f->ports[out].peer == EXTERNAL ? 0 : fault_delays_mad(f, out);
	struct late *late;

	if (!ms || m->nlate == MAX_LATE)
		return false;
	m->delayed++;
	m->faults++;
	late = &m->late[m->nlate++];
	late->port = out;
	late->due_ms = m->now_ms + ms;
	late->address = *address;
	memcpy(late->mad, mad, sizeof(late->mad));
	return true;
}

/* Leaves by a port. Return: the one at the other end, or NONE if it gets no further. */
static uint32_t leave(struct fabric *f, uint32_t out, const struct mad_address *address,
		      uint8_t *mad)
{
	struct port *port = &f->ports[out];

	/* Real HCAs' cables do to it what they do to data. */
	if (!port->up || (port->peer != EXTERNAL && fault_loses_mad(f, out))) {
		f->manager->faults += port->up;
		f->manager->lost++;
		return NONE;
	}
	f->ports[out].counters.xmit_pkts++;
	f->ports[out].counters.xmit_bytes += 256 + 30;
	if (port->peer == EXTERNAL) {
		f->manager->gone++;
		ext_send_mad(f, out, address, mad);
		return NONE;
	}
	f->ports[port->peer].counters.rcv_pkts++;
	f->ports[port->peer].counters.rcv_bytes += 256 + 30;
	return through(f, port->peer, address, mad);
}

/* Crosses the cable at a port, now or later. Return: as leave(). */
static uint32_t cross(struct fabric *f, uint32_t out, const struct mad_address *address,
		      uint8_t *mad)
{
	return is_late(f, out, address, mad) ? NONE : leave(f, out, address, mad);
}

static const struct mad_address permissive = { 0xffff, 0xffff, 0, 0 };

/* The packet has come to the end of its outward way; if agents answer, it returns. */
static int dr_at_end(struct fabric *f, uint32_t port, uint8_t *mad)
{
	if (for_agent(f, port, mad))
		return answer(f, port, permissive.slid, mad);
	if (!clients_take(f, port, &permissive, mad))
		f->manager->lost++;
	return 0;
}

/*
 * Follows a directed route from a port: in is the port it came in by, or NONE if this node sends
 * it. The loop ends because hop pointers only go one way, and the direction changes once.
 */
static void dr_follow(struct fabric *f, uint32_t at, int came_in, uint8_t *mad)
{
	f->manager->smps++;
	while (at != NONE) {
		struct node *node = &f->nodes[f->ports[at].node];
		unsigned int ptr = mad[HOP_PTR], cnt = mad[HOP_CNT], num = f->ports[at].num, out;

		if (cnt >= MAX_HOPS || ptr > cnt + 1) {
			f->manager->lost++;
			return;
		}
		if (!(mad[4] & 0x80)) {
			if (came_in && ptr && ptr <= cnt)
				mad[RETURN + ptr] = num;
			else if (came_in || ptr) {
				f->manager->lost++;
				return;
			}
			if (ptr == cnt) {
				mad[HOP_PTR] = cnt + 1;
				if (be16_at(mad + 34) != 0xffff || !dr_at_end(f, at, mad))
					return;
				came_in = 0;
				if (!cnt) {
					clients_take(f, at, &permissive, mad);
					return;
				}
				continue;
			}
			mad[HOP_PTR] = ++ptr;
			out = mad[INITIAL + ptr];
		} else {
			if (!came_in)		/* this node's agents or programs answer */
				ptr = cnt;
			else if (ptr)
				ptr--;
			mad[HOP_PTR] = ptr;
			if (!ptr) {
				if (!clients_take(f, at, &permissive, mad))
					f->manager->lost++;
				return;
			}
			out = mad[RETURN + ptr];
		}
		/* Only switches pass packets on; what an HCA sends leaves by the port it is at. */
		if (!out || out > node->nports ||
		    (node->type != NET_SWITCH && (came_in || out != num))) {
			f->manager->lost++;
			return;
		}
		at = cross(f, node->first + out, &permissive, mad);
		came_in = 1;
	}
}

void smi_arrive(struct fabric *f, uint32_t port, uint8_t *mad)
{
	dr_follow(f, through(f, port, &permissive, mad), 1, mad);
}

static int is_smp(const uint8_t *mad)
{
	return mad[1] == CLASS_SM;
}

static int my_lid(const struct fabric *f, uint32_t port, uint16_t lid)
{
	const struct port *p = &f->ports[port];

	return p->lid && lid >> p->lmc == p->lid >> p->lmc;
}

/* The MAD is at the port with its LID. Return: whether its answer is to be sent from there. */
static int at_lid(struct fabric *f, uint32_t port, struct mad_address *address, uint8_t *mad)
{
	struct mad_address back = { address->dlid, address->slid, address->dqp, address->sqp };

	if (!for_agent(f, port, mad)) {
		if (clients_take(f, port, address, mad))
			journal_mad(f, port, mad);
		else
			f->manager->lost++;
		return 0;
	}
	if (!answer(f, port, address->slid, mad))
		return 0;
	*address = back;
	return 1;
}

static void lid_follow(struct fabric *f, uint32_t at, int came_in,
		       const struct mad_address *address, uint8_t *mad)
{
	struct mad_address a = *address;

	for (int hops = 0; at != NONE && hops < 2 * MAX_HOPS; hops++) {
		struct node *node = &f->nodes[f->ports[at].node];
		uint32_t self = node->type == NET_SWITCH ? node->first : at;
		unsigned int out;

		if (my_lid(f, self, a.dlid)) {
			if (!at_lid(f, self, &a, mad))
				return;
			came_in = 0;
			if (my_lid(f, self, a.dlid)) {	/* it asked itself */
				clients_take(f, self, &a, mad);
				return;
			}
		}
		if (node->type == NET_SWITCH) {
			out = node->lft && a.dlid <= node->lft_top ? node->lft[a.dlid] : 255;
			if (!out || out > node->nports) {
				if (came_in) {
					f->ports[at].counters.rcv_relay_errors++;
					f->ports[at].counters.dlid_mapping++;
				}
				f->manager->lost++;
				return;
			}
		} else {
			if (came_in) {
				f->manager->lost++;
				return;
			}
			out = f->ports[at].num;
		}
		/* Before a port is active only SMPs pass. */
		if (!is_smp(mad) && f->ports[node->first + out].state != PORT_ACTIVE) {
			f->ports[node->first + out].counters.xmit_discards++;
			f->ports[node->first + out].counters.discard_inactive++;
			f->manager->lost++;
			return;
		}
		at = cross(f, node->first + out, &a, mad);
		came_in = 1;
	}
}

void mad_arrive(struct fabric *f, uint32_t port, const struct mad_address *address, uint8_t *mad)
{
	lid_follow(f, through(f, port, address, mad), 1, address, mad);
}

void mad_send(struct fabric *f, uint32_t port, const struct mad_address *to, uint8_t *mad)
{
	struct mad_address address = *to;

	if (is_shared(f, port)) {	/* nobody is in there */
		f->manager->lost++;
		return;
	}
	if (is_dr(mad)) {
		dr_follow(f, port, 0, mad);
		return;
	}
	if (!address.slid || address.slid == 0xffff)
		address.slid = f->ports[port].lid;
	lid_follow(f, port, 0, &address, mad);
}

int late_go_on(struct fabric *f)
{
	struct manager *m = f->manager;
	int wait = -1;

	for (uint32_t i = 0; i < m->nlate;) {
		struct late late = m->late[i];
		uint32_t at;

		if (late.due_ms > m->now_ms) {
			if (wait < 0 || late.due_ms - m->now_ms < (uint64_t)wait)
				wait = late.due_ms - m->now_ms;
			i++;
			continue;
		}
		memmove(&m->late[i], &m->late[i + 1], (--m->nlate - i) * sizeof(late));
		at = leave(f, late.port, &late.address, late.mad);
		if (at == NONE)
			continue;
		if (is_dr(late.mad))
			dr_follow(f, at, 1, late.mad);
		else
			lid_follow(f, at, 1, &late.address, late.mad);
	}
	return wait;
}
