// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Up-down routing for any topology: packets go up, if at all, and then only down. Tables know where a
 * packet goes and not where it comes from, so a switch that can reach a destination by going down
 * does: whoever comes from above must find a way down there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "direction.h"
#include "options.h"
#include "router.h"

#define FAR UINT32_MAX

/* Ways to one switch: @distance by switch, @down: whether only down. */
struct ways {
	const struct rsm_topo *topo;
	struct rsm_direction direction;
	uint32_t *distance;
	bool *down;
	uint32_t *queue;
	uint32_t **load;	/* by switch and port: LIDs that leave there */
	uint8_t **ports;	/* by switch: that shortest ways leave by */
	uint8_t *n_ports;	/* of them */
	bool even;		/* the one with the fewest LIDs, not the first */
};

static void ways_free(struct ways *w)
{
	for (uint32_t i = 0; w->load && i < w->topo->n_switches; i++)
		free(w->load[i]);
	for (uint32_t i = 0; w->ports && i < w->topo->n_switches; i++)
		free(w->ports[i]);
	free(w->load);
	free(w->ports);
	free(w->n_ports);
	free(w->distance);
	free(w->down);
	free(w->queue);
	rsm_direction_free(&w->direction);
}

static int ways_make(struct ways *w, const struct rsm_topo *topo)
{
	uint32_t n = topo->n_switches + 1;

	*w = (struct ways) { .topo = topo };
	w->distance = calloc(n, sizeof(*w->distance));
	w->down = calloc(n, sizeof(*w->down));
	w->queue = calloc(n, sizeof(*w->queue));
	w->load = calloc(n, sizeof(*w->load));
	w->ports = calloc(n, sizeof(*w->ports));
	w->n_ports = calloc(n, sizeof(*w->n_ports));
	if (!w->distance || !w->down || !w->queue || !w->load || !w->ports || !w->n_ports)
		return -ENOMEM;
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		w->load[i] = calloc(topo->switches[i].n_ports, sizeof(**w->load));
		w->ports[i] = calloc(topo->switches[i].n_ports, sizeof(**w->ports));
		if (!w->load[i] || !w->ports[i])
			return -ENOMEM;
	}
	return rsm_direction_make(topo, &w->direction);
}

/* Who reaches the destination by going down: they are above it, and above those. */
static void ways_down(struct ways *w, uint32_t to)
{
	uint32_t n = 0;

	w->distance[to] = 0;
	w->down[to] = true;
	w->queue[n++] = to;
	for (uint32_t at = 0; at < n; at++) {
		const struct rsm_topo_switch *sw = &w->topo->switches[w->queue[at]];

		for (unsigned int port = 1; port < sw->n_ports; port++) {
			int32_t peer = sw->ports[port].peer;

			if (!rsm_direction_up(w->topo, &w->direction, w->queue[at], port) ||
			    w->down[peer])
				continue;
			w->distance[peer] = w->distance[w->queue[at]] + 1;
			w->down[peer] = true;
			w->queue[n++] = peer;
		}
	}
}

/* The others go up, from the top on: who is above has its distance by then. */
static void ways_up(struct ways *w)
{
	for (uint32_t i = 0; i < w->direction.n; i++) {
		uint32_t at = w->direction.order[i];
		const struct rsm_topo_switch *sw = &w->topo->switches[at];

		if (w->down[at])
			continue;
		for (unsigned int port = 1; port < sw->n_ports; port++) {
			int32_t peer = sw->ports[port].peer;

			if (rsm_direction_up(w->topo, &w->direction, at, port) &&
			    w->distance[peer] != FAR && w->distance[peer] + 1 < w->distance[at])
				w->distance[at] = w->distance[peer] + 1;
		}
	}
}

/* Ports that shortest ways leave a switch by. */
static void find_ports(struct ways *w, uint32_t at)
{
	const struct rsm_topo_switch *sw = &w->topo->switches[at];

	w->n_ports[at] = 0;
	for (unsigned int port = 1; port < sw->n_ports; port++) {
		int32_t peer = sw->ports[port].peer;
		bool up;

		if (peer < 0 || w->distance[peer] == FAR ||
		    w->distance[peer] + 1 != w->distance[at])
			continue;
		up = rsm_direction_up(w->topo, &w->direction, at, port);
		if (up != w->down[at] && (up || w->down[peer]))
			w->ports[at][w->n_ports[at]++] = port;
	}
}

static void ways_to(struct ways *w, uint32_t to)
{
	for (uint32_t i = 0; i < w->topo->n_switches; i++) {
		w->distance[i] = FAR;
		w->down[i] = false;
	}
	ways_down(w, to);
	ways_up(w);
	for (uint32_t i = 0; i < w->topo->n_switches; i++)
		find_ports(w, i);
}

/* One of those. */
static uint8_t choose(struct ways *w, uint32_t at)
{
	uint32_t *load = w->load[at];
	uint8_t best;

	if (!w->n_ports[at])
		return RSM_NO_PORT;
	best = w->ports[at][0];
	for (unsigned int i = 1; w->even && i < w->n_ports[at]; i++)
		if (load[w->ports[at][i]] < load[best])
			best = w->ports[at][i];
	load[best]++;
	return best;
}

static void route_lid(struct ways *w, uint32_t to, uint16_t lid, uint8_t last, uint8_t **lft)
{
	for (uint32_t i = 0; i < w->topo->n_switches; i++)
		if (w->distance[i] != FAR)
			lft[i][lid] = i == to ? last : choose(w, i);
}

static int by_leaf(const void *a, const void *b)
{
	const struct rsm_topo_end *const *one = a, *const *other = b;

	if ((*one)->leaf != (*other)->leaf)
		return (*one)->leaf < (*other)->leaf ? -1 : 1;
	return (*one)->guid < (*other)->guid ? -1 : (*one)->guid > (*other)->guid;
}

static void route_all(struct ways *w, const struct rsm_topo_end **ends, uint8_t **lft)
{
	uint32_t e = 0;

	for (uint32_t to = 0; to < w->topo->n_switches; to++) {
		const struct rsm_topo_switch *sw = &w->topo->switches[to];

		ways_to(w, to);
		for (; e < w->topo->n_ends && ends[e]->leaf == (int32_t)to; e++)
			for (uint32_t i = 0; i < ends[e]->n_lids; i++)
				route_lid(w, to, ends[e]->lid + i, ends[e]->leaf_port, lft);
		if (sw->lid)
			route_lid(w, to, sw->lid, 0, lft);
	}
}

static int route(const struct rsm_topo *topo, const struct rsm_options *opt,
		 struct rsm_routes *routes, char *why, size_t size)
{
	const struct rsm_topo_end **ends = calloc(topo->n_ends + 1, sizeof(*ends));
	struct ways w;
	int rc;

	rc = ways_make(&w, topo);
	w.even = !opt || opt->updown_even;
	if (!rc && !ends)
		rc = -ENOMEM;
	if (rc) {
		snprintf(why, size, "no memory");
	} else {
		for (uint32_t i = 0; i < topo->n_ends; i++)
			ends[i] = &topo->ends[i];
		qsort(ends, topo->n_ends, sizeof(*ends), by_leaf);
		route_all(&w, ends, routes->lft);
	}
	ways_free(&w);
	free(ends);
	return rc;
}

const struct rsm_router rsm_updown_router = {
	.name = "updown",
	.by_switch = true,
	.route = route,
};
