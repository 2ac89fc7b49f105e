// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Traps to the master SM, sent again until it represses them (IBA 1.2.1 vol 1, 13.4.9 and 14.3).
 * A second trap of the same kind from the same node takes the place of an unanswered first.
 */
#include <stdlib.h>
#include <string.h>

#include "manager.h"
#include "sma.h"

#define RESEND_MS 200
#define MAX_TRIES 20
#define OWN_TID UINT16_MAX	/* above a transaction ID: no program's */

static void send(struct fabric *f, struct trap *trap)
{
	const struct node *node = &f->nodes[trap->node];
	uint32_t port = node->type == NET_SWITCH ? node->first : node->first + 1;
	struct mad_address to = { 0 };
	uint8_t mad[256] = { 1, CLASS_SM, 1, SMP_TRAP };

	trap->tries++;
	trap->next_ms = f->manager->now_ms + RESEND_MS;
	to.dlid = f->ports[port].smlid;
	to.slid = f->ports[port].lid;
	if (!to.dlid || !to.slid)
		return;
	put_be64(mad + 8, trap->tid);
	put_be16(mad + 8, OWN_TID);
	put_be16(mad + 16, 2);		/* Notice */
	put_be64(mad + 24, be64_at(f->port_sma[port].info));
	put_be16(trap->notice + 6, to.slid);
	memcpy(mad + 64, trap->notice, 64);
	mad_send(f, port, &to, mad);
}

static void raise_trap(struct fabric *f, uint32_t node, const uint8_t *notice)
{
	struct manager *m = f->manager;
	struct trap *trap;

	if (!m || f->nodes[node].shared)
		return;
	for (uint32_t i = 0; i < m->ntraps; i++) {
		trap = &m->traps[i];
		if (trap->node == node && !memcmp(trap->notice + 4, notice + 4, 2) &&
		    !memcmp(trap->notice + 10, notice + 10, 54)) {
			/* News: what represses the old one does not answer it. */
			trap->tid = ++m->next_tid;
			trap->tries = 0;
			trap->next_ms = 0;
			return;
		}
	}
	if (m->ntraps == m->trap_room) {
		uint32_t room = m->trap_room ? m->trap_room * 2 : 64;

		trap = realloc(m->traps, room * sizeof(*trap));
		if (!trap)
			return;
		m->traps = trap;
		m->trap_room = room;
	}
	trap = &m->traps[m->ntraps++];
	memset(trap, 0, sizeof(*trap));
	trap->node = node;
	trap->tid = ++m->next_tid;
	memcpy(trap->notice, notice, 64);
	/* Not from here: the state that it reports is still changing. trap_resend() is next. */
}

static void start(uint8_t *notice, unsigned int type, unsigned int producer, unsigned int number)
{
	memset(notice, 0, 64);
	notice[0] = 0x80 | type;
	notice[3] = producer;
	put_be16(notice + 4, number);
}

/* Of one node; more is lost, as 14.3.9 allows: who guesses M_Keys does not fill the memory. */
#define MAX_KEYS 16

void trap_bad_mkey(struct fabric *f, uint32_t port, uint16_t slid, const uint8_t *mad)
{
	const struct manager *m = f->manager;
	uint32_t node = f->ports[port].node;
	unsigned int hops = mad[7] < 30 ? mad[7] : 30, waiting = 0;
	uint8_t notice[64];

	for (uint32_t i = 0; m && i < m->ntraps; i++)
		waiting += m->traps[i].node == node && be16_at(m->traps[i].notice + 4) == 256;
	if (waiting >= MAX_KEYS)
		return;
	start(notice, 2, f->nodes[node].type, 256);
	/* Its sender, DrSLID, method, attribute, modifier, M_Key and way back (14.2.5.1) */
	put_be16(notice + 12, slid);
	notice[16] = mad[3];
	memcpy(notice + 18, mad + 16, 2);
	memcpy(notice + 20, mad + 20, 4);
	memcpy(notice + 24, mad + 24, 8);
	if (mad[1] == CLASS_SM_DR) {
		memcpy(notice + 14, mad + 32, 2);
		notice[33] = 0x80 | (mad[7] > hops ? 0x40 : 0) | hops;
		memcpy(notice + 34, mad + 192, hops);
	}
	raise_trap(f, node, notice);
}

void trap_link_state(struct fabric *f, uint32_t node)
{
	uint8_t notice[64];

	start(notice, 1, 2, 128);
	put_be16(notice + 10, f->ports[f->nodes[node].first].lid);
	raise_trap(f, node, notice);
}

void trap_flow_control(struct fabric *f, uint32_t port)
{
	const struct port *p = &f->ports[port];
	uint8_t notice[64];

	start(notice, 1, f->nodes[p->node].type, 131);
	put_be16(notice + 12, p->is_switch ? f->ports[f->nodes[p->node].first].lid : p->lid);
	notice[14] = p->num;
	raise_trap(f, p->node, notice);
}

/* IBA 1.2.1 vol 1, 14.2.5.1: the CapabilityMask goes with it in any case. */
static void local_change(struct fabric *f, uint32_t port, unsigned int flags)
{
	const struct port *p;
	uint8_t notice[64], info[64];

	/* A switch's LID and capabilities are its port 0's; nothing names the port. */
	if (f->ports[port].is_switch)
		port = f->nodes[f->ports[port].node].first;
	p = &f->ports[port];
	sma_port_info_now(f, port, p->num, info);
	start(notice, 4, f->nodes[p->node].type, 144);
	put_be16(notice + 12, p->lid);
	notice[15] = flags != 0;	/* OtherLocalChanges */
	put_be32(notice + 16, be32_at(info + 20));
	put_be16(notice + 20, flags);
	raise_trap(f, p->node, notice);
}

void trap_capabilities(struct fabric *f, uint32_t port)
{
	local_change(f, port, 0);
}

void trap_description(struct fabric *f, uint32_t node)
{
	local_change(f, f->nodes[node].first + (f->nodes[node].type != NET_SWITCH), 1);
}

void trap_enabled(struct fabric *f, uint32_t port, int width, int speed)
{
	local_change(f, port, (width ? 2 : 0) | (speed ? 4 : 0));
}

/*
 * libumad2sim writes into the middle of a TrapRepress's transaction ID. One that comes late, or twice, to who has sent
 * a trap from a program of this node is not for the node's own.
 */
void trap_repress(struct fabric *f, uint32_t node, const uint8_t *mad)
{
	struct manager *m = f->manager;

	if (be16_at(mad + 8) != OWN_TID)
		return;
	for (uint32_t i = 0; m && i < m->ntraps; i++)
		if (m->traps[i].node == node && (uint32_t)m->traps[i].tid == be32_at(mad + 12)) {
			m->traps[i] = m->traps[--m->ntraps];
			return;
		}
}

int trap_resend(struct fabric *f, uint64_t now)
{
	struct manager *m = f->manager;
	int wait = -1;

	m->now_ms = now;
	for (uint32_t i = m->ntraps; i-- > 0;) {
		uint64_t tid;

		if (i >= m->ntraps)
			continue;
		tid = m->traps[i].tid;
		if (m->traps[i].next_ms <= now) {
			send(f, &m->traps[i]);
			if (i >= m->ntraps || m->traps[i].tid != tid)
				continue;
			if (m->traps[i].tries >= MAX_TRIES) {
				m->traps[i] = m->traps[--m->ntraps];
				continue;
			}
		}
		if (wait < 0 || m->traps[i].next_ms - now < (uint64_t)wait)
			wait = m->traps[i].next_ms - now;
	}
	return wait;
}
