// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fat-tree routing. Each LID has one way down from the highest level, over the cables with the
 * fewest LIDs, and what can goes up to that way: so nothing but packets to one LID meets below the
 * top of a full tree. What can not get there since cables are missing goes up over its own
 * cables with the fewest LIDs. Counts that are equal make destination d of a leaf take cable d.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fat_tree.h"
#include "router.h"

#define UNSET RSM_NO_PORT

/* A LID of a leaf: an end's, or the switch's own behind port 0. */
struct target {
	uint16_t lid;
	uint8_t port;
	uint8_t turn;	/* which of the end's LIDs: equals are looked through from there on */
	bool counts;
};

struct router {
	const struct rsm_fat_tree *tree;
	struct rsm_routes *routes;
	uint32_t *load;		/* LIDs by cable and direction: [base[switch] + port] */
	uint32_t *base;
	uint32_t *main;		/* switches whose way leads to the one way down */
	uint8_t *hops;
	uint8_t *out;		/* [switch * n_targets + target]: ports */
	struct target *targets;
	uint32_t n_targets;
	uint32_t *far;
};

static uint32_t *load_of(struct router *r, uint32_t sw, unsigned int port)
{
	return &r->load[r->base[sw] + port];
}

static uint8_t *out_of(struct router *r, uint32_t sw, uint32_t target)
{
	return &r->out[(size_t)sw * r->n_targets + target];
}

/* The least loaded of a group's cables, outwards. */
static unsigned int pick(struct router *r, uint32_t sw, const struct rsm_ft_group *group,
			 unsigned int turn)
{
	unsigned int best = group->ports[turn % group->n];

	for (unsigned int i = 1; i < group->n; i++) {
		unsigned int port = group->ports[(turn + i) % group->n];

		if (*load_of(r, sw, port) < *load_of(r, sw, best))
			best = port;
	}
	return best;
}

/*
 * From the switch one level up, the way down to it: over the least loaded cable inwards, to a
 * neighbour that gets as high as any. Returns the neighbour, or -1 at the top.
 */
static int32_t climb(struct router *r, uint32_t sw, uint32_t target)
{
	const struct rsm_ft_switch *from = &r->tree->switches[sw];
	const struct rsm_topo_switch *topo = &r->tree->topo->switches[sw];
	unsigned int turn = r->targets[target].turn;
	uint32_t least = UINT32_MAX;
	unsigned int best = 0;

	for (unsigned int i = 0; i < from->n_up; i++) {
		const struct rsm_ft_group *group = &from->up[(turn + i) % from->n_up];

		if (r->tree->switches[group->peer].height < from->height)
			continue;
		for (unsigned int c = 0; c < group->n; c++) {
			unsigned int port = group->ports[c];
			uint32_t load = *load_of(r, group->peer, topo->ports[port].peer_port);

			if (load >= least)
				continue;
			least = load;
			best = port;
		}
	}
	if (!best)
		return -1;
	*out_of(r, topo->ports[best].peer, target) = topo->ports[best].peer_port;
	if (r->targets[target].counts)
		++*load_of(r, topo->ports[best].peer, topo->ports[best].peer_port);
	return topo->ports[best].peer;
}

/* All that a switch's neighbours below can send up to it on a shortest way. */
static void gather(struct router *r, uint32_t sw, uint32_t target, const uint8_t *hops,
		   uint32_t *n_main)
{
	const struct rsm_topo_switch *topo = &r->tree->topo->switches[sw];
	const struct rsm_ft_switch *from = &r->tree->switches[sw];

	for (unsigned int g = 0; g < from->n_down; g++) {
		const struct rsm_ft_group *group = &from->down[g];
		unsigned int best = topo->ports[group->ports[0]].peer_port;

		if (hops[group->peer] != hops[sw] + 1 || *out_of(r, group->peer, target) != UNSET)
			continue;
		for (unsigned int c = 1; c < group->n; c++) {
			unsigned int port = topo->ports[group->ports[c]].peer_port;

			if (*load_of(r, group->peer, port) < *load_of(r, group->peer, best))
				best = port;
		}
		*out_of(r, group->peer, target) = best;
		if (r->targets[target].counts)
			++*load_of(r, group->peer, best);
		r->main[(*n_main)++] = group->peer;
	}
}

static void route_main(struct router *r, uint32_t leaf, uint32_t target, const uint8_t *hops)
{
	uint32_t chain[RSM_FT_FAR], n_chain = 0, n_main = 0;
	int32_t sw = r->tree->leaves[leaf];

	*out_of(r, sw, target) = r->targets[target].port;
	for (; sw >= 0 && n_chain < RSM_FT_FAR; sw = climb(r, sw, target))
		chain[n_chain++] = sw;
	while (n_chain > 0)
		r->main[n_main++] = chain[--n_chain];
	for (uint32_t i = 0; i < n_main; i++)
		gather(r, r->main[i], target, hops, &n_main);
}

/* The least loaded cable to a neighbour that is nearer. */
static unsigned int pick_nearer(struct router *r, uint32_t sw, const uint8_t *hops,
				const struct rsm_ft_group *groups, unsigned int n,
				unsigned int turn)
{
	unsigned int best = 0;

	for (unsigned int i = 0; i < n; i++) {
		const struct rsm_ft_group *group = &groups[(turn + i) % n];
		unsigned int port;

		if (hops[group->peer] >= hops[sw])
			continue;
		port = pick(r, sw, group, turn);
		if (!best || *load_of(r, sw, port) < *load_of(r, sw, best))
			best = port;
	}
	return best;
}

/* What goes down here has few sources: it does not count for the ways down of others. */
static void route_rest(struct router *r, uint32_t leaf, uint32_t target, const uint8_t *hops)
{
	const struct rsm_topo *topo = r->tree->topo;
	unsigned int turn = r->targets[target].turn;

	for (uint32_t from = 0; from < r->tree->n_leaves; from++) {
		uint32_t sw = r->tree->leaves[from];

		while (*out_of(r, sw, target) == UNSET) {
			const struct rsm_ft_switch *at = &r->tree->switches[sw];
			bool down = rsm_ft_above(r->tree, sw, leaf);
			unsigned int port = pick_nearer(r, sw, hops, down ? at->down : at->up,
							down ? at->n_down : at->n_up, turn);

			*out_of(r, sw, target) = port;
			if (r->targets[target].counts && !down)
				++*load_of(r, sw, port);
			sw = topo->switches[sw].ports[port].peer;
		}
	}
}

/* Cables to neighbours that are nearer; those of one that is far may lead anywhere. */
static unsigned int ports_nearer(const struct rsm_fat_tree *tree, uint32_t from, uint32_t to,
				 const uint8_t *hops, uint8_t *ports)
{
	const struct rsm_topo_switch *topo = &tree->topo->switches[from];
	const struct rsm_ft_switch *sw = &tree->switches[from];
	bool below = hops[from] == sw->level - tree->switches[to].level;
	unsigned int n = 0;

	for (unsigned int port = 1; port < topo->n_ports; port++) {
		int32_t peer = topo->ports[port].peer;

		if (peer < 0 || hops[peer] >= hops[from])
			continue;
		if (hops[from] > RSM_FT_FAR || (tree->switches[peer].level < sw->level) == below)
			ports[n++] = port;
	}
	return n;
}

/*
 * Switches from which no way leads up and then down: theirs turns up again below. Only packets
 * of switches themselves take it. One that is far has RSM_FT_FAR and its distance to one that
 * is not.
 */
static void hops_of_far(struct router *r, uint8_t *hops)
{
	uint32_t n = 0, n_switches = r->tree->topo->n_switches;

	for (uint32_t i = 0; i < n_switches; i++)
		if (hops[i] < RSM_FT_FAR)
			r->far[n++] = i;
	if (n == n_switches)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const struct rsm_topo_switch *sw = &r->tree->topo->switches[r->far[i]];
		uint8_t next = hops[r->far[i]] < RSM_FT_FAR ? RSM_FT_FAR + 1 : hops[r->far[i]] + 1;

		for (unsigned int port = 1; port < sw->n_ports; port++) {
			int32_t peer = sw->ports[port].peer;

			if (peer < 0 || hops[peer] != RSM_FT_FAR)
				continue;
			hops[peer] = next;
			r->far[n++] = peer;
		}
	}
}

/* What no host's packets pass. */
static void fill_unused(struct router *r, uint32_t to, uint8_t *hops)
{
	const struct rsm_topo *topo = r->tree->topo;
	uint8_t ports[UINT8_MAX + 1];

	hops_of_far(r, hops);
	for (uint32_t sw = 0; sw < topo->n_switches; sw++) {
		unsigned int n = ports_nearer(r->tree, sw, to, hops, ports);

		for (uint32_t t = 0; t < r->n_targets && n; t++)
			if (*out_of(r, sw, t) == UNSET)
				*out_of(r, sw, t) = ports[(t + r->targets[t].turn) % n];
	}
}

static void add_target(struct router *r, uint16_t lid, uint8_t port, uint8_t turn, bool counts)
{
	if (lid)
		r->targets[r->n_targets++] = (struct target) { lid, port, turn, counts };
}

static void find_targets(struct router *r, uint32_t leaf)
{
	const struct rsm_fat_tree *tree = r->tree;
	bool more = true;

	r->n_targets = 0;
	for (unsigned int turn = 0; more; turn++) {
		more = false;
		for (uint32_t i = tree->first_end[leaf]; i < tree->first_end[leaf + 1]; i++) {
			const struct rsm_topo_end *end = &tree->topo->ends[tree->ends[i]];

			if (turn >= end->n_lids)
				continue;
			add_target(r, end->lid + turn, end->leaf_port, turn, true);
			more = true;
		}
	}
	add_target(r, tree->topo->switches[tree->leaves[leaf]].lid, 0, 0, false);
}

static void write_tables(struct router *r)
{
	for (uint32_t sw = 0; sw < r->tree->topo->n_switches; sw++)
		for (uint32_t t = 0; t < r->n_targets; t++)
			r->routes->lft[sw][r->targets[t].lid] = *out_of(r, sw, t);
}

static void route_leaf(struct router *r, uint32_t leaf)
{
	uint32_t n_switches = r->tree->topo->n_switches;

	find_targets(r, leaf);
	memcpy(r->hops, rsm_ft_hops(r->tree, leaf), n_switches);
	memset(r->out, UNSET, (size_t)n_switches * r->n_targets);
	for (uint32_t t = 0; t < r->n_targets; t++)
		route_main(r, leaf, t, r->hops);
	for (uint32_t t = 0; t < r->n_targets; t++)
		route_rest(r, leaf, t, r->hops);
	fill_unused(r, r->tree->leaves[leaf], r->hops);
	write_tables(r);
}

static void route_switch(struct router *r, uint32_t sw)
{
	uint16_t lid = r->tree->topo->switches[sw].lid;

	if (!lid)
		return;
	r->targets[0] = (struct target) { .lid = lid, .turn = sw };
	r->n_targets = 1;
	rsm_fat_tree_hops(r->tree, sw, r->hops);
	memset(r->out, UNSET, r->tree->topo->n_switches);
	*out_of(r, sw, 0) = 0;
	fill_unused(r, sw, r->hops);
	write_tables(r);
}

static int make(struct router *r)
{
	const struct rsm_topo *topo = r->tree->topo;
	uint32_t n = topo->n_switches, n_cables = 0, most = 0;

	for (uint32_t leaf = 0; leaf < r->tree->n_leaves; leaf++) {
		uint32_t lids = 1;

		for (uint32_t i = r->tree->first_end[leaf]; i < r->tree->first_end[leaf + 1]; i++)
			lids += topo->ends[r->tree->ends[i]].n_lids;
		if (lids > most)
			most = lids;
	}
	r->base = calloc(n + 1, sizeof(*r->base));
	for (uint32_t i = 0; r->base && i < n; i++) {
		r->base[i] = n_cables;
		n_cables += topo->switches[i].n_ports;
	}
	r->load = calloc(n_cables + 1, sizeof(*r->load));
	r->main = calloc(n + 1, sizeof(*r->main));
	r->far = calloc(n + 1, sizeof(*r->far));
	r->hops = malloc(n + 1);
	r->out = malloc((size_t)n * (most + 1) + 1);
	r->targets = calloc(most + 1, sizeof(*r->targets));
	return r->base && r->load && r->main && r->far && r->hops && r->out && r->targets ?
		0 : -ENOMEM;
}

/**
 * rsm_fat_tree_route - fill in the tables
 * @tree: of the topology
 * @routes: has empty tables
 *
 * Return: 0 or -ENOMEM.
 */
int rsm_fat_tree_route(const struct rsm_fat_tree *tree, struct rsm_routes *routes)
{
	struct router r = { .tree = tree, .routes = routes };
	int rc = make(&r);

	for (uint32_t leaf = 0; leaf < tree->n_leaves && !rc; leaf++)
		route_leaf(&r, leaf);
	for (uint32_t sw = 0; sw < tree->topo->n_switches && !rc; sw++)
		if (tree->switches[sw].leaf < 0)
			route_switch(&r, sw);
	free(r.base);
	free(r.load);
	free(r.main);
	free(r.far);
	free(r.hops);
	free(r.out);
	free(r.targets);
	return rc;
}
