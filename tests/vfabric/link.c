// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cables and the link state machine: what up, down and a new state do to lanes and lines. */
#include "ext.h"
#include "fabric.h"
#include "journal.h"
#include "sma.h"

void link_set_speed(struct fabric *f, uint32_t at)
{
	struct port *port = &f->ports[at];
	const struct net_port *np = &f->nodes[port->node].net->ports[port->num];

	port->fs_per_byte = link_fs_per_byte(np->width, np->speed, np->ext);
}

/* Nobody waits for a port that does not send. */
static void empty_lines(struct fabric *f, uint32_t port)
{
	struct port *p = &f->ports[port];

	for (unsigned int vl = 0; vl < f->config.vls; vl++) {
		uint32_t lane = port * f->config.vls + vl;

		while (f->lanes[lane].first != NONE)
			relay_discard(f, f->lanes[lane].first, port, DROP_INACTIVE);
	}
	if (p->blocked) {
		p->blocked = 0;
		f->ports[port].counters.xmit_wait += f->clock.now - p->counters.blocked_since;
	}
}

void port_set_state(struct fabric *f, uint32_t at, enum port_state state)
{
	struct port *port = &f->ports[at];
	enum port_state old = port->state;

	/* Within an HCA nobody sets states: what is up is active. */
	if (state == PORT_INIT && f->nodes[port->node].shared)
		state = PORT_ACTIVE;
	if (old == state)
		return;
	port->state = state;
	journal_state(f, at);
	sma_state_changed(f, at, old);
	if (state == PORT_ACTIVE)
		relay_send(f, at);
	else if (old == PORT_ACTIVE)
		empty_lines(f, at);
}

void link_down(struct fabric *f, uint32_t at)
{
	uint32_t ends[2] = { at, f->ports[at].peer };

	for (int i = 0; i < 2; i++) {
		struct port *port;

		if (ends[i] == NONE || ends[i] == EXTERNAL)
			continue;
		port = &f->ports[ends[i]];
		port->up = 0;
		port->epoch++;
		if (port->phys != PHYS_DISABLED)
			port->phys = PHYS_POLLING;
	}
	/* Only when both are down do the lines empty: what they hold must not move across. */
	for (int i = 0; i < 2; i++)
		if (ends[i] != NONE && ends[i] != EXTERNAL)
			port_set_state(f, ends[i], PORT_DOWN);
	if (ends[1] == EXTERNAL)
		ext_down(f, at);
}

void link_up(struct fabric *f, uint32_t at)
{
	struct port *a = &f->ports[at], *b;
	uint32_t ends[2] = { at, a->peer };
	uint8_t epoch;

	if (a->peer == NONE || a->peer == EXTERNAL)
		return;
	b = &f->ports[a->peer];
	if (a->up || a->phys == PHYS_DISABLED || b->phys == PHYS_DISABLED ||
	    f->nodes[a->node].dead || f->nodes[b->node].dead)
		return;
	epoch = (a->epoch > b->epoch ? a->epoch : b->epoch) + 1;
	for (int i = 0; i < 2; i++) {
		struct port *port = &f->ports[ends[i]];

		port->up = 1;
		port->epoch = epoch;
		port->phys = PHYS_LINKUP;
		for (unsigned int vl = 0; vl < f->config.vls; vl++) {
			struct lane *lane = &f->lanes[ends[i] * f->config.vls + vl];

			lane->credits = f->capacity -
				queue_held(f, ends[!i] * f->config.vls + vl);
			lane->stalls = 0;
			lane->stalled_until = 0;
		}
	}
	journal_cable(f, at);
	for (int i = 0; i < 2; i++)
		port_set_state(f, ends[i], PORT_INIT);
}

void port_activate_all(struct fabric *f)
{
	for (uint32_t p = 0; p < f->nports; p++)
		if (f->ports[p].up)
			port_set_state(f, p, PORT_ACTIVE);
}
