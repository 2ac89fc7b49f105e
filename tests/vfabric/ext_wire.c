// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets on the cables of real HCAs, in and out of the model, and what goes wrong with them there. */
#include <string.h>

#include "ext_cable.h"
#include "ext_packet.h"
#include "fault.h"
#include "shared.h"
#include "sma.h"

#define FLIPPED 8u	/* bytes at a packet's end, all of which the ICRC covers, or is */

static int is_mad(const struct packet *p)
{
	return (p->kind & ~FAULT_MARKS) == PACKET_MAD;
}

/* The modelled host's port in whose place the HCA is: it has the faults of what the HCA sends. */
static uint32_t host_of(const struct fabric *f, uint32_t port)
{
	uint32_t host = f->ports[port].was_peer;

	return host < f->nports && !f->ports[host].is_switch && f->ports[host].was_peer == port ?
		host : NONE;
}

/* The cable that a packet was put on. If that has been down since, NULL, and the packet is dropped. */
static struct cable *still_there(struct fabric *f, uint32_t port, uint32_t packet)
{
	struct cable *c = ext_cable_of(f, port);

	if (c && c->up && f->packets[packet].epoch == f->ports[port].epoch)
		return c;
	relay_drop(f, port, packet, DROP_LINK);
	return NULL;
}

static void later(struct fabric *f, enum event_type type, uint32_t port, uint32_t packet,
		  uint64_t when)
{
	if (when > f->clock.now)
		clock_at(&f->clock, when, type, port, packet);
	else if (type == EV_TO_HCA)
		ext_leave(f, port, packet);
	else
		ext_arrive(f, port, packet);
}

static void to_hca(struct fabric *f, struct cable *c, uint32_t packet)
{
	struct packet *p = &f->packets[packet];
	uint8_t *lrh = p->bytes;

	if (lrh) {
		lrh[0] = p->vl << 4 | (lrh[0] & 15);
		if (!is_mad(p)) {
			c->sent[p->vl] += packet_blocks(p);
			ext_paths_count(&f->ext->paths, p->slid, p->dlid, p->vl);
		}
		ext_tell(f, c, VHCA_DATA, p->vl, lrh, p->len);
	}
	packet_put(f, packet);
}

static void leave_by_bad_cable(struct fabric *f, struct cable *c, uint32_t packet)
{
	struct packet *p = &f->packets[packet];
	uint32_t blocks = is_mad(p) ? 0 : packet_blocks(p), twin, unlimited = UINT32_MAX;
	uint32_t *room = is_mad(p) ? &unlimited : &f->lanes[c->port * f->config.vls + p->vl].credits;
	uint32_t *leaving = &c->leaving[p->vl];
	uint64_t when = f->clock.now;

	*leaving += blocks;
	twin = fault_on_wire(f, c->port, packet, *room, &when);
	if (twin != NONE) {
		*room -= blocks;
		*leaving += blocks;
	}
	later(f, EV_TO_HCA, c->port, packet, when);
	if (twin != NONE)
		later(f, EV_TO_HCA, c->port, twin, when);
}

void ext_leave(struct fabric *f, uint32_t port, uint32_t packet)
{
	struct cable *c = still_there(f, port, packet);
	struct packet *p = &f->packets[packet];
	uint32_t blocks;

	if (!c)
		return;
	blocks = packet_blocks(p);
	if (!is_mad(p))
		c->leaving[p->vl] -= blocks;
	if (p->kind & FAULT_LOST) {
		if (is_mad(p))
			f->manager->lost++;
		else	/* the HCA does not know of it, so it has the room still */
			f->lanes[port * f->config.vls + p->vl].credits += blocks;
		relay_drop(f, port, packet, DROP_LOST);
		relay_send(f, port);
		return;
	}
	/* It is the HCA that sees this. */
	if (p->kind & FAULT_CORRUPT && p->bytes) {
		uint8_t *bytes = p->bytes;
		uint64_t where = fabric_random(f) % (FLIPPED * 8);

		bytes[p->len - 1 - where / 8] ^= 1u << where % 8;
		f->drops[DROP_CORRUPT]++;
	}
	to_hca(f, c, packet);
}

/* A packet of the model leaves by an external port, or is for programs at a modelled host. */
void ext_deliver(struct fabric *f, uint32_t port, uint32_t packet)
{
	struct packet *p = &f->packets[packet];
	struct cable *c = f->ports[port].peer == EXTERNAL ? ext_cable_of(f, port) : NULL;

	if (c && f->ports[port].fault) {
		leave_by_bad_cable(f, c, packet);
		return;
	}
	if (c) {
		to_hca(f, c, packet);
		return;
	}
	if (p->bytes)
		ext_packet_mad(f, port, p->bytes, p->len);
	packet_put(f, packet);
}

/* A MAD that the model carries, as a packet on the cable. Return: its number, or NONE. */
static uint32_t mad_packet(struct fabric *f, uint32_t port, unsigned int vl, const uint8_t *bytes,
			   unsigned int length)
{
	uint32_t packet = ext_packet_from(f, bytes, length);

	if (packet != NONE) {
		f->packets[packet].kind = PACKET_MAD;
		f->packets[packet].vl = vl;
		f->packets[packet].epoch = f->ports[port].epoch;
	}
	return packet;
}

void ext_send_mad(struct fabric *f, uint32_t port, const struct mad_address *address,
		  const uint8_t *mad)
{
	struct cable *c = ext_cable_of(f, port);
	uint8_t bytes[EXT_MAD_PACKET];
	uint32_t packet;
	unsigned int vl;

	if (!c || !c->up)
		return;
	vl = ext_packet_of_mad(address, mad, bytes);
	if (!f->ports[port].fault) {
		ext_tell(f, c, VHCA_DATA, vl, bytes, sizeof(bytes));
		return;
	}
	packet = mad_packet(f, port, vl, bytes, sizeof(bytes));
	if (packet != NONE)
		leave_by_bad_cable(f, c, packet);
}

/* Into the switch, by a cable that may be bad. */
static void come_in(struct fabric *f, struct cable *c, uint32_t packet)
{
	uint32_t host = host_of(f, c->port), twin = NONE, room = UINT32_MAX, blocks = 0;
	struct packet *p = &f->packets[packet];
	uint32_t vl = p->vl;
	uint64_t when = f->clock.now;

	if (!is_mad(p)) {
		blocks = packet_blocks(p);
		c->coming[vl] += blocks;
		room = ext_taken(f, c, vl);
		room = room < f->capacity ? f->capacity - room : 0;
	}
	if (host != NONE && f->ports[host].fault)
		twin = fault_on_wire(f, host, packet, room, &when);
	if (twin != NONE && blocks) {
		c->coming[vl] += blocks;
		c->doubled[vl] += blocks;
		if (c->doubled[vl] > f->capacity)
			c->doubled[vl] = f->capacity;
	}
	later(f, EV_FROM_HCA, c->port, packet, when);
	if (twin != NONE)
		later(f, EV_FROM_HCA, c->port, twin, when);
}

void ext_arrive(struct fabric *f, uint32_t port, uint32_t packet)
{
	struct cable *c = still_there(f, port, packet);
	struct packet *p = &f->packets[packet];

	if (!c)
		return;
	p->tail = f->clock.now;
	if (!is_mad(p)) {
		c->coming[p->vl] -= packet_blocks(p);
		relay_arrive(f, port, packet);
		return;
	}
	if (p->kind & FAULT_MARKS) {
		f->manager->lost++;
		relay_drop(f, port, packet, p->kind & FAULT_LOST ? DROP_LOST : DROP_CORRUPT);
		return;
	}
	ext_packet_mad(f, port, p->bytes, p->len);
	packet_put(f, packet);
}

void ext_data(struct fabric *f, struct cable *c, unsigned int vl, uint8_t *body,
	      unsigned int length)
{
	uint32_t packet, taken;

	if (!c->up || length < EXT_MIN_PACKET || length > VHCA_MAX_PACKET ||
	    !shared_send(f, c->port, vl, body, length))
		return;
	if (vl == 15) {
		packet = mad_packet(f, c->port, vl, body, length);
		if (packet != NONE)
			come_in(f, c, packet);
		return;
	}
	if (vl >= f->config.vls)
		return;
	packet = ext_packet_from(f, body, length);
	if (packet == NONE) {
		f->ports[c->port].counters.rcv_errors++;
		return;
	}
	/* It was sent within the room we told of; who lies is dropped, not stored. */
	taken = ext_taken(f, c, vl);
	if (!taken)
		c->doubled[vl] = 0;
	if (taken + packet_blocks(&f->packets[packet]) > f->capacity + c->doubled[vl]) {
		f->ports[c->port].counters.buffer_overruns++;
		packet_put(f, packet);
		return;
	}
	f->packets[packet].vl = vl;
	f->packets[packet].epoch = f->ports[c->port].epoch;
	f->packets[packet].born = f->clock.now;
	come_in(f, c, packet);
}
