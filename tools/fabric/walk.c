// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The tables of all switches for one LID are a graph with one way out of each: followed once. */
#include <stdlib.h>
#include <string.h>
#include "walk.h"

void walk_init(struct walk *w, const struct fabric *f)
{
	unsigned int n = f->switches;

	memset(w, 0, sizeof(*w));
	w->f = f;
	w->end = fabric_alloc(n, sizeof(*w->end));
	w->hops = fabric_alloc(n, sizeof(*w->hops));
	w->next = fabric_alloc(n, sizeof(*w->next));
	w->stop = fabric_alloc(n, sizeof(*w->stop));
	w->far = fabric_alloc(n, sizeof(*w->far));
	w->stack = fabric_alloc(n, sizeof(*w->stack));
	w->count = fabric_alloc(n + 2, sizeof(*w->count));
}

void walk_free(struct walk *w)
{
	free(w->end);
	free(w->hops);
	free(w->next);
	free(w->stop);
	free(w->far);
	free(w->stack);
	free(w->count);
}

/* One step: the switch behind, or -1 with how it ends. */
static int step(const struct fabric *f, const struct fabric_node *sw, unsigned int lid,
		enum walk_end *end)
{
	const struct fabric_port *to = f->lid[lid], *peer;
	uint8_t out = fabric_entry(sw, lid);

	if (out == FABRIC_NO_PORT) {
		/* A switch takes what is for itself, entry or not. */
		*end = to->node == sw ? WALK_ARRIVES : WALK_NO_ENTRY;
		return -1;
	}
	if (!out) {
		*end = to->node == sw ? WALK_ARRIVES : WALK_STRANGER;
		return -1;
	}
	peer = out <= sw->nports ? sw->port[out].peer : NULL;
	if (!peer) {
		*end = WALK_NO_CABLE;
		return -1;
	}
	if (fabric_is_switch(peer->node))
		return peer->node->order;
	*end = peer == to ? WALK_ARRIVES : WALK_STRANGER;
	return -1;
}

/* Those that arrive, by their distance, the farthest first. */
static void sort_far(struct walk *w)
{
	unsigned int n = w->f->switches, at = 0;

	memset(w->count, 0, (n + 2) * sizeof(*w->count));
	w->nfar = 0;
	for (unsigned int i = 0; i < n; i++) {
		if (w->end[i] != WALK_ARRIVES)
			continue;
		w->count[w->hops[i]]++;
		w->nfar++;
	}
	for (unsigned int h = n + 1; h--;) {
		unsigned int here = w->count[h];

		w->count[h] = at;
		at += here;
	}
	for (unsigned int i = 0; i < n; i++)
		if (w->end[i] == WALK_ARRIVES)
			w->far[w->count[w->hops[i]]++] = i;
}

void walk_to(struct walk *w, unsigned int lid)
{
	const struct fabric *f = w->f;

	w->lid = lid;
	memset(w->end, WALK_UNSEEN, f->switches);
	for (unsigned int i = 0; i < f->switches; i++) {
		enum walk_end end = WALK_UNSEEN;
		unsigned int depth = 0;
		int at = i, stop, hops;

		while (w->end[at] == WALK_UNSEEN) {
			/* Taken for a loop until the end is found. */
			w->end[at] = WALK_LOOP;
			w->stop[at] = -1;
			w->stack[depth++] = at;
			w->next[at] = step(f, f->sw[at], lid, &end);
			if (w->next[at] < 0)
				break;
			at = w->next[at];
		}
		if (!depth)
			continue;
		if (end != WALK_UNSEEN) {
			/* The walk came to an end of its own: at the last of the stack. */
			stop = w->stack[depth - 1];
			hops = f->lid[lid]->node == f->sw[stop] ? -1 : 0;
		} else if (w->end[at] != WALK_LOOP || w->stop[at] >= 0) {
			end = w->end[at];
			stop = w->stop[at];
			hops = w->hops[at];
		} else {
			end = WALK_LOOP;
			stop = at;
			hops = 0;
		}
		while (depth--) {
			w->end[w->stack[depth]] = end;
			w->stop[w->stack[depth]] = stop;
			w->hops[w->stack[depth]] = ++hops;
		}
	}
	sort_far(w);
}

void ranks_init(struct ranks *r, const struct fabric *f)
{
	r->hops = fabric_alloc(f->switches, sizeof(*r->hops));
	r->queue = fabric_alloc(f->switches, sizeof(*r->queue));
}

void ranks_free(struct ranks *r)
{
	free(r->hops);
	free(r->queue);
}

void ranks_of(struct ranks *r, const struct fabric *f, const struct fabric_node *sw)
{
	unsigned int head = 0, tail = 0;

	memset(r->hops, 0xff, f->switches * sizeof(*r->hops));
	r->hops[sw->order] = 0;
	r->queue[tail++] = sw->order;
	while (head < tail) {
		const struct fabric_node *at = f->sw[r->queue[head++]];

		for (unsigned int p = 1; p <= at->nports; p++) {
			const struct fabric_port *peer = at->port[p].peer;

			if (!peer || !fabric_is_switch(peer->node) ||
			    r->hops[peer->node->order] != UINT16_MAX)
				continue;
			r->hops[peer->node->order] = r->hops[at->order] + 1;
			r->queue[tail++] = peer->node->order;
		}
	}
}
