// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fills in what the check reads of a subnet; what it says is its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/check.h"
#include "judged.h"

/* Node GUIDs, as an end's is its port's: which node, and that it is no switch. */
#define HOST	(1ull << 63)
#define NONE	UINT32_MAX

static void must(bool done)
{
	if (!done)
		abort();
}

/* Which switches are joined: by each, the lowest number among them. One that has no cables is in no part. */
static uint32_t *find_parts(const struct rsm_topo *topo)
{
	uint32_t *part = calloc(topo->n_switches + 1, sizeof(*part));
	bool again = true;

	must(part);
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		part[i] = NONE;
		for (unsigned int port = 1; port < topo->switches[i].n_ports; port++)
			if (topo->switches[i].ports[port].peer != RSM_TOPO_NONE)
				part[i] = i;
	}
	while (again) {
		again = false;
		for (uint32_t i = 0; i < topo->n_switches; i++) {
			for (unsigned int port = 1; port < topo->switches[i].n_ports; port++) {
				int32_t peer = topo->switches[i].ports[port].peer;

				if (peer >= 0 && part[peer] < part[i]) {
					part[i] = part[peer];
					again = true;
				}
			}
		}
	}
	return part;
}

static void add_nodes(struct fabric *f, const struct rsm_topo *topo, const uint32_t *part, uint32_t which)
{
	char name[16];

	for (uint32_t i = 0; i < topo->n_switches; i++) {
		const struct rsm_topo_switch *sw = &topo->switches[i];
		struct fabric_node *n;

		if (part[i] != which)
			continue;
		snprintf(name, sizeof(name), "S%u", i);
		n = fabric_add(f, sw->guid, true, sw->n_ports - 1, name);
		must(n && fabric_give_lid(f, &n->port[0], sw->lid, 0));
	}
	for (uint32_t i = 0; i < topo->n_ends; i++) {
		const struct rsm_topo_end *end = &topo->ends[i];
		struct fabric_node *n;

		if (part[end->leaf] != which)
			continue;
		snprintf(name, sizeof(name), "E%u", i);
		n = fabric_add(f, end->guid | HOST, false, 1, name);
		must(n && fabric_give_lid(f, &n->port[1], end->lid, __builtin_ctz(end->n_lids)));
		n->port[1].vls = end->vls;
	}
}

static void add_cables(struct fabric *f, const struct rsm_topo *topo, uint32_t i)
{
	struct fabric_node *n = fabric_node(f, topo->switches[i].guid);

	for (unsigned int port = 1; port < topo->switches[i].n_ports; port++) {
		const struct rsm_topo_port *to = &topo->switches[i].ports[port];
		struct fabric_port *peer;

		if (to->peer == RSM_TOPO_END)
			peer = &fabric_node(f, topo->ends[to->end].guid | HOST)->port[1];
		else if (to->peer >= 0)
			peer = &fabric_node(f, topo->switches[to->peer].guid)->port[to->peer_port];
		else
			continue;
		if (!peer->peer)
			must(fabric_cable(&n->port[port], peer));
		n->port[port].vls = to->vls;
	}
}

static void add_lanes(struct fabric *f, const struct rsm_routes *routes, struct fabric_port *out,
		      int32_t sw, uint32_t number)
{
	uint8_t vl[FABRIC_LANES];

	for (unsigned int in = 0; in <= out->node->nports; in++) {
		for (unsigned int sl = 0; sl < FABRIC_LANES; sl++)
			vl[sl] = routes->vl(routes->context, sw, in, number, sl);
		fabric_set_sl2vl(f, out, in, vl);
	}
}

/* A switch's own LID is OpenSM's to set, if the engine has not. */
static void add_tables(struct fabric *f, const struct rsm_topo *topo, const struct rsm_routes *routes,
		       uint32_t i)
{
	struct fabric_node *n = fabric_node(f, topo->switches[i].guid);

	for (uint32_t lid = 1; lid < routes->n_lft && lid < FABRIC_LIDS; lid++)
		fabric_set_entry(n, lid, routes->lft[i][lid]);
	if (fabric_entry(n, topo->switches[i].lid) == FABRIC_NO_PORT)
		fabric_set_entry(n, topo->switches[i].lid, 0);
	for (unsigned int port = 1; port <= n->nports; port++)
		if (routes->vl && n->port[port].peer)
			add_lanes(f, routes, &n->port[port], i, port);
}

static void add_levels(struct fabric *f, const struct rsm_topo *topo, const struct rsm_routes *routes)
{
	for (unsigned int from = 1; from < f->lids; from++)
		for (unsigned int to = 1; to < f->lids; to++)
			if (f->lid[from] && f->lid[to] && !fabric_is_switch(f->lid[from]->node) &&
			    !fabric_is_switch(f->lid[to]->node) && f->lid[from] != f->lid[to])
				must(fabric_set_sl(f, from, to, routes->sl(routes->context, from, to)));
	for (uint32_t i = 0; i < topo->n_ends && routes->vl; i++) {
		struct fabric_node *n = fabric_node(f, topo->ends[i].guid | HOST);

		if (n)
			add_lanes(f, routes, &n->port[1], -1, i);
	}
}

static unsigned int judge_part(const struct rsm_topo *topo, const struct rsm_routes *routes, bool minimal,
			       const char *but, const uint32_t *part, uint32_t which)
{
	const struct check_wants wants = { .minimal = minimal };
	struct fabric *f = fabric_new();
	unsigned int faults = 0;
	struct check c;

	add_nodes(f, topo, part, which);
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		if (part[i] != which)
			continue;
		add_cables(f, topo, i);
		add_tables(f, topo, routes, i);
	}
	if (routes->sl)
		add_levels(f, topo, routes);
	check_run(&c, f, &wants);
	for (unsigned int i = 0; i < c.faults; i++) {
		if (!c.fault[i].wrong || (but && !strcmp(c.fault[i].kind, but)))
			continue;
		fprintf(stderr, "%s: %s\n", c.fault[i].kind, c.fault[i].what);
		faults++;
	}
	check_free(&c);
	fabric_free(f);
	return faults;
}

unsigned int judged(const struct rsm_topo *topo, const struct rsm_routes *routes, bool minimal,
		    const char *but)
{
	uint32_t *part = find_parts(topo);
	unsigned int faults = 0;

	for (uint32_t i = 0; i < topo->n_switches; i++)
		if (part[i] == i)
			faults += judge_part(topo, routes, minimal, but, part, i);
	free(part);
	return faults;
}
