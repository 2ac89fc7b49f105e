/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who may wait for whom while tables change, SMP by SMP: each direction of a link between two switches is
 * a channel; one waits for another if a packet that is in it leaves by the other. Packets that a
 * table has brought into a channel stay there, and what has been decided stays decided, until the
 * test says that they are gone: that is the worst that can happen, and no more than that. Knows
 * nothing of directions, break nodes and plans.
 */
#ifndef WAITS_H
#define WAITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topo.h"

#define WAITS_PORTS 6
#define WAITS_LIDS 128

typedef unsigned __int128 waits_set; /* of LIDs */

struct waits {
	const struct rsm_topo *topo;
	uint32_t n; /* channels: switch * WAITS_PORTS + port */
	uint8_t (*lft)[WAITS_LIDS];
	bool *off;				/* by channel: the port carries no data */
	bool *end_off;				/* by end */
	bool (*discard)[WAITS_PORTS];		/* by channel that leads away from the port, and out */
	waits_set *leaves;			/* by channel: LIDs of the table that go there */
	waits_set *present;			/* by channel: where packets may be */
	bool (*waits)[WAITS_PORTS];		/* by channel: for the one that leaves there */
};

static void waits_make(struct waits *w, const struct rsm_topo *topo)
{
	*w = (struct waits) { .topo = topo, .n = topo->n_switches * WAITS_PORTS };
	w->lft = malloc(topo->n_switches * sizeof(*w->lft));
	memset(w->lft, 0xff, topo->n_switches * sizeof(*w->lft));
	w->off = calloc(w->n, sizeof(*w->off));
	w->end_off = calloc(topo->n_ends + 1, sizeof(*w->end_off));
	w->discard = calloc(w->n, sizeof(*w->discard));
	w->leaves = calloc(w->n, sizeof(*w->leaves));
	w->present = calloc(w->n, sizeof(*w->present));
	w->waits = calloc(w->n, sizeof(*w->waits));
}

static void waits_free(struct waits *w)
{
	free(w->lft);
	free(w->off);
	free(w->end_off);
	free(w->discard);
	free(w->leaves);
	free(w->present);
	free(w->waits);
}

/* Both ends of a cable carry data, or neither does. */
static bool waits_carries(const struct waits *w, uint32_t sw, unsigned int port)
{
	const struct rsm_topo_port *p = &w->topo->switches[sw].ports[port];

	if (w->off[sw * WAITS_PORTS + port])
		return false;
	if (p->peer == RSM_TOPO_END)
		return !w->end_off[p->end];
	return p->peer >= 0 && !w->off[p->peer * WAITS_PORTS + p->peer_port];
}

/*
 * Packets for these LIDs are at a switch, in by a port (0: of nobody that waits): puts those that
 * leave by another into the next channel. Return: whether any had not been there.
 */
static bool waits_forward(struct waits *w, uint32_t from, uint32_t sw, unsigned int in,
			  unsigned int out, waits_set lids)
{
	uint32_t to = sw * WAITS_PORTS + out;
	bool fresh;

	lids &= w->leaves[to];
	if (!lids || out == in || w->topo->switches[sw].ports[out].peer < 0 ||
	    !waits_carries(w, sw, out))
		return false;
	if (in && w->discard[sw * WAITS_PORTS + in][out])
		return false;
	if (in)
		w->waits[from][out] = true;
	fresh = lids & ~w->present[to];
	w->present[to] |= lids;
	return fresh;
}

/* Where a channel leads. */
static const struct rsm_topo_port *waits_channel(const struct waits *w, uint32_t channel)
{
	uint32_t sw = channel / WAITS_PORTS, port = channel % WAITS_PORTS;

	if (port >= w->topo->switches[sw].n_ports || w->topo->switches[sw].ports[port].peer < 0)
		return NULL;
	return &w->topo->switches[sw].ports[port];
}

/* Which LIDs leave by which port. */
static void waits_tables(struct waits *w)
{
	memset(w->leaves, 0, w->n * sizeof(*w->leaves));
	for (uint32_t sw = 0; sw < w->topo->n_switches; sw++) {
		for (unsigned int lid = 1; lid <= w->topo->max_lid; lid++) {
			unsigned int out = w->lft[sw][lid];

			if (out && out < w->topo->switches[sw].n_ports)
				w->leaves[sw * WAITS_PORTS + out] |= (waits_set)1 << lid;
		}
	}
}

/* What leaves by a port that carries nothing is dropped, what has decided to as well. */
static void waits_drop(struct waits *w)
{
	for (uint32_t from = 0; from < w->n; from++) {
		const struct rsm_topo_port *to = waits_channel(w, from);

		for (unsigned int out = 1; to && out < w->topo->switches[to->peer].n_ports; out++) {
			if (waits_carries(w, to->peer, out))
				continue;
			w->present[from] &= ~w->leaves[to->peer * WAITS_PORTS + out];
			w->waits[from][out] = false;
		}
	}
}

/* An SMP is done: hosts send, packets go on. */
static void waits_go_on(struct waits *w)
{
	bool again = true;

	waits_tables(w);
	waits_drop(w);
	for (uint32_t i = 0; i < w->topo->n_ends; i++) {
		const struct rsm_topo_end *end = &w->topo->ends[i];

		if (!waits_carries(w, end->leaf, end->leaf_port))
			continue;
		for (unsigned int out = 1; out < w->topo->switches[end->leaf].n_ports; out++)
			waits_forward(w, 0, end->leaf, 0, out, ~(waits_set)0);
	}
	while (again) {
		again = false;
		for (uint32_t from = 0; from < w->n; from++) {
			const struct rsm_topo_port *to = waits_channel(w, from);

			if (!to || !w->present[from])
				continue;
			for (unsigned int out = 1; out < w->topo->switches[to->peer].n_ports; out++)
				again |= waits_forward(w, from, to->peer, to->peer_port, out,
						       w->present[from]);
		}
	}
}

/* Who had decided has left. @all: nobody is there any more who came before now. */
static void waits_gone(struct waits *w, bool all)
{
	memset(w->waits, 0, w->n * sizeof(*w->waits));
	if (all)
		memset(w->present, 0, w->n * sizeof(*w->present));
	waits_go_on(w);
}

static bool waits_visit(const struct waits *w, uint32_t at, uint8_t *seen)
{
	const struct rsm_topo_port *link = waits_channel(w, at);

	seen[at] = 1;
	for (unsigned int out = 1; link && out < WAITS_PORTS; out++) {
		uint32_t to = link->peer * WAITS_PORTS + out;

		if (!w->waits[at][out] || seen[to] == 2)
			continue;
		if (seen[to] == 1 || waits_visit(w, to, seen))
			return true;
	}
	seen[at] = 2;
	return false;
}

/* Whether channels can wait for each other in a circle. */
static bool waits_circle(const struct waits *w)
{
	uint8_t *seen = calloc(w->n, 1);
	bool found = false;

	for (uint32_t at = 0; at < w->n && !found; at++)
		if (!seen[at])
			found = waits_visit(w, at, seen);
	free(seen);
	return found;
}

#endif
