// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables without a subnet manager: LIDs in the order of the nodes, shortest paths, each LID by the
 * port with the fewest. No care is taken of deadlocks: in a mesh or torus that is the point.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

static void give_lids(struct fabric *f)
{
	unsigned int lid = 1;

	for (uint32_t i = 0; i < f->nnodes; i++) {
		struct node *node = &f->nodes[i];

		if (node->type == NET_SWITCH) {
			f->ports[node->first].lid = lid++;
			continue;
		}
		for (unsigned int p = 1; p <= node->nports; p++)
			if (f->ports[node->first + p].up) {
				f->lids[lid] = node->first + p;
				f->ports[node->first + p].lid = lid++;
			}
	}
}

/* Distances in hops from every switch to @to; 65535 if there is no way. */
static void distances(struct fabric *f, uint32_t to, uint16_t *dist, uint32_t *line)
{
	uint32_t first = 0, last = 0;

	memset(dist, 0xff, f->nnodes * sizeof(*dist));
	dist[to] = 0;
	line[last++] = to;
	while (first < last) {
		uint32_t at = line[first++];
		const struct node *node = &f->nodes[at];

		for (unsigned int p = 1; p <= node->nports; p++) {
			const struct port *port = &f->ports[node->first + p];
			uint32_t next;

			if (!port->up)
				continue;
			next = f->ports[port->peer].node;
			if (f->nodes[next].type != NET_SWITCH || dist[next] != UINT16_MAX)
				continue;
			dist[next] = dist[at] + 1;
			line[last++] = next;
		}
	}
}

static void route_lid(struct fabric *f, uint32_t at, unsigned int lid, const uint16_t *dist,
		      uint32_t *load)
{
	const struct node *node = &f->nodes[at];
	unsigned int best = 0;

	for (unsigned int p = 1; p <= node->nports; p++) {
		const struct port *port = &f->ports[node->first + p];
		uint32_t next;

		if (!port->up)
			continue;
		next = f->ports[port->peer].node;
		if (f->nodes[next].type != NET_SWITCH || dist[next] + 1 != dist[at])
			continue;
		if (!best || load[node->first + p] < load[node->first + best])
			best = p;
	}
	if (!best)
		return;
	load[node->first + best]++;
	node_lft_set(f, at, lid, best);
}

static void route_to(struct fabric *f, uint32_t to, const uint16_t *dist, uint32_t *load)
{
	const struct node *node = &f->nodes[to];

	for (uint32_t at = 0; at < f->nnodes; at++) {
		if (f->nodes[at].type != NET_SWITCH || dist[at] == UINT16_MAX)
			continue;
		node_lft_set(f, at, f->ports[node->first].lid, 0);
		if (at != to)
			route_lid(f, at, f->ports[node->first].lid, dist, load);
		for (unsigned int p = 1; p <= node->nports; p++) {
			const struct port *port = &f->ports[node->first + p];

			if (!port->up || f->ports[port->peer].is_switch)
				continue;
			if (at == to)
				node_lft_set(f, at, f->ports[port->peer].lid, p);
			else
				route_lid(f, at, f->ports[port->peer].lid, dist, load);
		}
	}
}

int routes_minhop(struct fabric *f)
{
	uint16_t *dist = malloc((f->nnodes + 1) * sizeof(*dist));
	uint32_t *line = malloc((f->nnodes + 1) * sizeof(*line));
	uint32_t *load = calloc(f->nports + 1, sizeof(*load));
	int rc = -1;

	if (!dist || !line || !load)
		goto out;
	give_lids(f);
	for (uint32_t i = 0; i < f->nnodes; i++) {
		if (f->nodes[i].type != NET_SWITCH)
			continue;
		distances(f, i, dist, line);
		route_to(f, i, dist, load);
	}
	rc = 0;
out:
	free(dist);
	free(line);
	free(load);
	return rc;
}
