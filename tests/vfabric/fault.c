// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Faults: lossy, slow, disordered wires; cables and switches that go and come back. */
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "ext.h"
#include "fault.h"
#include "shared.h"

/* The switch port whose cable goes to a real HCA in the place of this host port; or NONE. */
static uint32_t cable_of_hca(const struct fabric *f, uint32_t at)
{
	const struct port *port = &f->ports[at];

	return !port->is_switch && port->peer == NONE && port->was_peer < f->nports &&
	       f->ports[port->was_peer].peer == EXTERNAL ? port->was_peer : NONE;
}

int fault_set(struct fabric *f, uint32_t at, const char *word, double value)
{
	struct port *port = &f->ports[at];
	struct link_fault *fault = port->fault;
	int chance = value >= 0 && value <= 1;

	if (!(value >= 0) || value > 1e12)
		return -1;
	/* How fast it sends and takes is a real HCA's own. */
	if ((!strcmp(word, "slow") || !strcmp(word, "drain")) && cable_of_hca(f, at) != NONE)
		return FAULT_OF_HCA;
	if (!strcmp(word, "slow")) {
		if (value < 1 || value > 1e9)
			return -1;
		port->slow = value;
		port->disturbed = 1;
		return 0;
	}
	if (!strcmp(word, "drain")) {
		if (value < 1 || value > 1e9 || port->is_switch)
			return -1;
		port->drain = value;
		return 0;
	}
	if (!fault) {
		fault = calloc(1, sizeof(*fault));
		if (!fault)
			return -1;
		fault->reorder_by = 10000000;
		port->fault = fault;
		port->disturbed = 1;
	}
	if (!strcmp(word, "loss") && chance)
		fault->loss = value;
	else if (!strcmp(word, "corrupt") && chance)
		fault->corrupt = value;
	else if (!strcmp(word, "duplicate") && chance)
		fault->duplicate = value;
	else if (!strcmp(word, "reorder") && chance)
		fault->reorder = value;
	else if (!strcmp(word, "delay"))
		fault->delay = value * 1000;
	else if (!strcmp(word, "jitter"))
		fault->jitter = value * 1000;
	else if (!strcmp(word, "window"))
		fault->reorder_by = value * 1000;
	else if (!strcmp(word, "mute") && value <= UINT16_MAX)
		fault->mute = value;
	else
		return -1;
	return 0;
}

void fault_clear(struct fabric *f, uint32_t port)
{
	free(f->ports[port].fault);
	f->ports[port].fault = NULL;
	f->ports[port].slow = 0;
	f->ports[port].disturbed = 0;
	f->ports[port].drain = 0;
}

int fault_loses_mad(struct fabric *f, uint32_t port)
{
	struct link_fault *fault = f->ports[port].fault;

	if (!fault || fabric_chance(f) >= fault->loss + fault->corrupt)
		return 0;
	fault->lost++;
	return 1;
}

int fault_mutes(struct fabric *f, uint32_t port, uint16_t attribute)
{
	struct link_fault *fault = f->ports[port].fault;

	if (!fault || !attribute || fault->mute != attribute)
		return 0;
	fault->lost++;
	return 1;
}

unsigned int fault_delays_mad(struct fabric *f, uint32_t port)
{
	const struct link_fault *fault = f->ports[port].fault;

	if (!fault || !fault->reorder || fabric_chance(f) >= fault->reorder)
		return 0;
	return 1 + fabric_random(f) % (fault->reorder_by / 1000000000 + 1);
}

/* A second one; it needs room there like any other. */
static uint32_t duplicate(struct fabric *f, uint32_t packet)
{
	uint32_t twin = packet_new(f);

	f->packets[twin] = f->packets[packet];
	f->behind[twin] = NONE;
	if (f->packets[packet].bytes) {
		f->packets[twin].bytes = malloc(f->packets[packet].len);
		if (!f->packets[twin].bytes) {
			packet_put(f, twin);
			return NONE;
		}
		memcpy(f->packets[twin].bytes, f->packets[packet].bytes, f->packets[packet].len);
	}
	return twin;
}

/* Who comes before one that has left before him. */
static void count_order(struct link_fault *fault, uint64_t when)
{
	if (when >= fault->latest) {
		fault->latest = when;
		fault->run = 0;
		return;
	}
	fault->overtook++;
	if (++fault->run > fault->most)
		fault->most = fault->run;
}

uint32_t fault_on_wire(struct fabric *f, uint32_t port, uint32_t packet, uint32_t room,
		       uint64_t *when)
{
	struct link_fault *fault = f->ports[port].fault;
	struct packet *p = &f->packets[packet];
	uint32_t twin = NONE;

	*when += fault->delay;
	if (fault->jitter)
		*when += fabric_random(f) % fault->jitter;
	fault->delayed += fault->delay || fault->jitter;
	if (fault->reorder && fabric_chance(f) < fault->reorder) {
		*when += fabric_random(f) % (fault->reorder_by + 1);
		fault->late++;
	}
	if (fault->loss && fabric_chance(f) < fault->loss) {
		p->kind |= FAULT_LOST;
		fault->lost++;
	} else if (fault->corrupt && fabric_chance(f) < fault->corrupt) {
		p->kind |= FAULT_CORRUPT;
		fault->corrupted++;
	} else if (fault->duplicate && fabric_chance(f) < fault->duplicate) {
		if (room >= packet_blocks(p))
			twin = duplicate(f, packet);
		if (twin != NONE)
			fault->doubled++;
		else
			fault->not_doubled++;
	}
	if (!(f->packets[packet].kind & FAULT_LOST))
		count_order(fault, *when);
	return twin;
}

/* LinkDownedCounter: a link that fails, not one that an SM trains again. */
static void fail_link(struct fabric *f, uint32_t at)
{
	f->ports[at].counters.link_downed++;
	if (f->ports[at].peer < f->nports)
		f->ports[f->ports[at].peer].counters.link_downed++;
	link_down(f, at);
}

/* The switch port whose cable goes to a real HCA in the place of this host port; or the port. */
static uint32_t cable_end(const struct fabric *f, uint32_t at)
{
	uint32_t peer = f->ports[at].peer, hca = cable_of_hca(f, at);
	uint32_t pf = peer < f->nports ? shared_pf_of(f, peer) : NONE;

	/* A shared port's cable is its PF's, which then knows that it is pulled. */
	if (pf != NONE && f->ports[pf].peer == EXTERNAL)
		return pf;
	return hca != NONE ? hca : at;
}

int link_unplug(struct fabric *f, uint32_t at)
{
	struct port *port, *peer;

	at = cable_end(f, at);
	port = &f->ports[at];
	if (port->peer == EXTERNAL) {
		f->ports[at].counters.link_downed++;
		return ext_plug(f, at, 0);
	}
	if (port->peer == NONE || port->peer == EXTERNAL)
		return -1;
	peer = &f->ports[port->peer];
	if (port->up)
		fail_link(f, at);
	port->was_peer = port->peer;
	peer->was_peer = at;
	port_join(f, port->peer, NONE);
	port_join(f, at, NONE);
	return 0;
}

int link_replug(struct fabric *f, uint32_t at)
{
	struct port *port;

	at = cable_end(f, at);
	port = &f->ports[at];
	if (port->peer == EXTERNAL)
		return ext_plug(f, at, 1);
	if (port->peer != NONE || port->was_peer == NONE ||
	    f->ports[port->was_peer].peer != NONE)
		return -1;
	port_join(f, at, port->was_peer);
	port_join(f, port->peer, at);
	link_up(f, at);
	return 0;
}

/* No cable is in that port any more, and what was there last does not count. */
static int clear(struct fabric *f, uint32_t at)
{
	uint32_t hca = cable_of_hca(f, at), was = f->ports[at].was_peer;

	if (f->ports[at].peer != NONE || (hca != NONE && ext_dismiss(f, hca)))
		return -1;
	if (was != NONE && f->ports[was].was_peer == at)
		f->ports[was].was_peer = NONE;
	return 0;
}

int link_new(struct fabric *f, uint32_t a, uint32_t b)
{
	int real = cable_of_hca(f, a) != NONE || cable_of_hca(f, b) != NONE;

	if (a == b || clear(f, a) || clear(f, b))
		return -1;
	f->ports[a].was_peer = b;
	f->ports[b].was_peer = a;
	/* A real HCA comes by itself; the modelled host that it stands for is not to be seen meanwhile. */
	return real ? 0 : link_replug(f, a);
}

int node_down(struct fabric *f, uint32_t at)
{
	struct node *node = &f->nodes[at];

	if (node->dead)
		return -1;
	node->dead = 1;
	for (unsigned int p = 1; p <= node->nports; p++)
		if (f->ports[node->first + p].up)
			fail_link(f, node->first + p);
	return 0;
}

int node_up(struct fabric *f, uint32_t at)
{
	struct node *node = &f->nodes[at];

	if (!node->dead)
		return -1;
	node->dead = 0;
	for (unsigned int p = 1; p <= node->nports; p++)
		link_up(f, node->first + p);
	return 0;
}

static char **scheduled;
static uint32_t nscheduled;

int fault_schedule(struct fabric *f, uint64_t when, const char *line)
{
	char **lines = realloc(scheduled, (nscheduled + 1) * sizeof(*lines));

	if (!lines)
		return -1;
	scheduled = lines;
	lines[nscheduled] = strdup(line);
	if (!lines[nscheduled])
		return -1;
	clock_at(&f->clock, when, EV_FAULT, nscheduled++, 0);
	return 0;
}

void fault_due(struct fabric *f, uint32_t number)
{
	if (number < nscheduled)
		console_line(f, scheduled[number], stdout);
}

void fault_forget(struct fabric *f)
{
	(void)f;
	for (uint32_t i = 0; i < nscheduled; i++)
		free(scheduled[i]);
	free(scheduled);
	scheduled = NULL;
	nscheduled = 0;
}
