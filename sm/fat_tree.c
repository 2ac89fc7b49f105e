// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Levels are distances from the switches that have hosts. No loss of links or switches puts two
 * neighbours on one level: in a tree all ways from one leaf to another have an even length, and
 * what is left of the tree has no other ways. So neighbours of one level mean that it was no tree,
 * or that some hosts are higher up than others: below a vSwitch beside others that are cabled
 * to its leaf. Then switches with one neighbour are taken for the lowest level of all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fat_tree.h"

#define NO_LEVEL 255

struct maker {
	struct rsm_fat_tree *tree;
	const struct rsm_topo *topo;
	uint32_t *queue;
	bool *has_ends;
	bool *pendant;
	uint32_t n_queued;
	bool too_high;
};

static bool is_cable(const struct rsm_topo_port *port)
{
	return port->peer >= 0;
}

static void set_level(struct maker *m, uint32_t sw, unsigned int level)
{
	if (m->tree->switches[sw].level != NO_LEVEL)
		return;
	if (level >= NO_LEVEL) {
		m->too_high = true;
		return;
	}
	m->tree->switches[sw].level = level;
	m->queue[m->n_queued++] = sw;
}

static void spread_levels(struct maker *m, uint32_t from)
{
	for (uint32_t i = from; i < m->n_queued; i++) {
		const struct rsm_topo_switch *sw = &m->topo->switches[m->queue[i]];

		for (unsigned int port = 1; port < sw->n_ports; port++)
			if (is_cable(&sw->ports[port]))
				set_level(m, sw->ports[port].peer,
					  m->tree->switches[m->queue[i]].level + 1);
	}
}

/* The only neighbour of a switch, or -1. */
static int32_t only_neighbour(const struct rsm_topo_switch *sw)
{
	int32_t found = -1;

	for (unsigned int port = 1; port < sw->n_ports; port++) {
		if (!is_cable(&sw->ports[port]) || sw->ports[port].peer == found)
			continue;
		if (found >= 0)
			return -1;
		found = sw->ports[port].peer;
	}
	return found;
}

static void clear_levels(struct maker *m)
{
	m->n_queued = 0;
	m->too_high = false;
	for (uint32_t i = 0; i < m->topo->n_switches; i++)
		m->tree->switches[i].level = NO_LEVEL;
}

static void levels_by_ends(struct maker *m)
{
	clear_levels(m);
	for (uint32_t i = 0; i < m->topo->n_switches; i++)
		if (m->has_ends[i])
			set_level(m, i, 0);
	spread_levels(m, 0);
}

static void levels_above_pendants(struct maker *m)
{
	uint32_t n;

	clear_levels(m);
	for (uint32_t i = 0; i < m->topo->n_switches; i++) {
		int32_t neighbour = only_neighbour(&m->topo->switches[i]);

		m->pendant[i] = m->has_ends[i] && neighbour >= 0 && !m->pendant[neighbour];
		if (m->pendant[i])
			set_level(m, i, 0);
	}
	n = m->n_queued;
	for (uint32_t i = 0; i < m->topo->n_switches; i++)
		if (m->has_ends[i] && !m->pendant[i])
			set_level(m, i, 1);
	for (uint32_t i = 0; i < n; i++)
		set_level(m, only_neighbour(&m->topo->switches[m->queue[i]]), 1);
	spread_levels(m, n);
}

/* Whether each cable leads from a level to the next; if not, @a and @b are neighbours. */
static bool levels_fit(const struct maker *m, uint32_t *a, uint32_t *b)
{
	for (uint32_t i = 0; i < m->topo->n_switches; i++) {
		const struct rsm_topo_switch *sw = &m->topo->switches[i];

		for (unsigned int port = 1; port < sw->n_ports; port++) {
			int32_t peer = sw->ports[port].peer;

			if (!is_cable(&sw->ports[port]) ||
			    abs(m->tree->switches[i].level - m->tree->switches[peer].level) == 1)
				continue;
			*a = i;
			*b = peer;
			return false;
		}
	}
	return true;
}

/* In the order of their levels; those that nothing leads to are roots of nothing. */
static void order_switches(struct maker *m)
{
	struct rsm_fat_tree *tree = m->tree;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->topo->n_switches; i++) {
		if (tree->switches[i].level == NO_LEVEL)
			tree->switches[i].level = 0;
		else if (tree->switches[i].level >= tree->n_levels)
			tree->n_levels = tree->switches[i].level + 1;
	}
	for (unsigned int level = 0; level < tree->n_levels; level++)
		for (uint32_t i = 0; i < m->topo->n_switches; i++)
			if (tree->switches[i].level == level)
				tree->order[n++] = i;
}

/* Cables of one switch up, or down, by neighbour. Returns the number of groups. */
static unsigned int fill_groups(struct rsm_fat_tree *tree, uint32_t sw, bool up,
				struct rsm_ft_group *groups, uint8_t **ports)
{
	const struct rsm_topo_switch *from = &tree->topo->switches[sw];
	unsigned int n = 0;

	for (unsigned int port = 1; port < from->n_ports; port++) {
		int32_t peer = from->ports[port].peer;
		unsigned int g;

		if (!is_cable(&from->ports[port]) ||
		    (tree->switches[peer].level > tree->switches[sw].level) != up)
			continue;
		for (g = 0; g < n && groups[g].peer != (uint32_t)peer; g++)
			;
		if (g == n)
			groups[n++] = (struct rsm_ft_group) { .peer = peer };
		groups[g].n++;
	}
	for (unsigned int g = 0; g < n; g++) {
		groups[g].ports = *ports;
		for (unsigned int port = 1; port < from->n_ports; port++)
			if (is_cable(&from->ports[port]) &&
			    (uint32_t)from->ports[port].peer == groups[g].peer)
				*(*ports)++ = port;
	}
	return n;
}

static int make_groups(struct rsm_fat_tree *tree)
{
	struct rsm_ft_group *groups;
	size_t n = 1;
	uint8_t *ports;

	for (uint32_t i = 0; i < tree->topo->n_switches; i++)
		n += tree->topo->switches[i].n_ports;
	tree->groups = calloc(n, sizeof(*tree->groups));
	tree->ports = malloc(n);
	if (!tree->groups || !tree->ports)
		return -ENOMEM;
	groups = tree->groups;
	ports = tree->ports;
	for (uint32_t i = 0; i < tree->topo->n_switches; i++) {
		struct rsm_ft_switch *sw = &tree->switches[i];

		sw->up = groups;
		sw->n_up = fill_groups(tree, i, true, groups, &ports);
		groups += sw->n_up;
		sw->down = groups;
		sw->n_down = fill_groups(tree, i, false, groups, &ports);
		groups += sw->n_down;
	}
	for (uint32_t at = tree->topo->n_switches; at-- > 0;) {
		struct rsm_ft_switch *sw = &tree->switches[tree->order[at]];

		sw->height = sw->level;
		for (unsigned int g = 0; g < sw->n_up; g++)
			if (tree->switches[sw->up[g].peer].height > sw->height)
				sw->height = tree->switches[sw->up[g].peer].height;
	}
	return 0;
}

/* Counting sort: ends by their leaf, and there by port. */
static int make_leaves(struct maker *m)
{
	struct rsm_fat_tree *tree = m->tree;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->topo->n_switches; i++) {
		tree->switches[i].leaf = m->has_ends[i] ? (int32_t)tree->n_leaves : -1;
		if (m->has_ends[i])
			tree->leaves[tree->n_leaves++] = i;
	}
	tree->first_end = calloc(tree->n_leaves + 1, sizeof(*tree->first_end));
	if (!tree->first_end)
		return -ENOMEM;
	for (uint32_t leaf = 0; leaf < tree->n_leaves; leaf++) {
		const struct rsm_topo_switch *sw = &m->topo->switches[tree->leaves[leaf]];

		tree->first_end[leaf] = n;
		for (unsigned int port = 1; port < sw->n_ports; port++)
			if (sw->ports[port].peer == RSM_TOPO_END)
				tree->ends[n++] = sw->ports[port].end;
	}
	tree->first_end[tree->n_leaves] = n;
	return 0;
}

/**
 * rsm_fat_tree_hops - from every switch to one, up and then down
 * @tree: its groups are there
 * @to: index of a switch
 * @hops: by index: the cables on the way, or RSM_FT_FAR
 */
void rsm_fat_tree_hops(const struct rsm_fat_tree *tree, uint32_t to, uint8_t *hops)
{
	uint32_t n = tree->topo->n_switches;

	memset(hops, RSM_FT_FAR, n);
	hops[to] = 0;
	for (uint32_t at = 0; at < n; at++) {
		uint32_t i = tree->order[at];
		const struct rsm_ft_switch *sw = &tree->switches[i];

		if (sw->level <= tree->switches[to].level)
			continue;
		for (unsigned int g = 0; g < sw->n_down; g++)
			if (hops[sw->down[g].peer] < RSM_FT_FAR)
				hops[i] = hops[sw->down[g].peer] + 1;
	}
	for (uint32_t at = n; at-- > 0;) {
		uint32_t i = tree->order[at];
		const struct rsm_ft_switch *sw = &tree->switches[i];

		if (hops[i] < RSM_FT_FAR)
			continue;
		for (unsigned int g = 0; g < sw->n_up; g++)
			if (hops[sw->up[g].peer] < hops[i])
				hops[i] = hops[sw->up[g].peer] + 1;
	}
}

static int make_hops(struct rsm_fat_tree *tree, char *why, size_t size)
{
	const struct rsm_topo_switch *switches = tree->topo->switches;

	tree->hops = malloc((size_t)tree->n_leaves * tree->topo->n_switches + 1);
	if (!tree->hops)
		return -ENOMEM;
	for (uint32_t to = 0; to < tree->n_leaves; to++) {
		uint8_t *hops = tree->hops + (size_t)to * tree->topo->n_switches;

		rsm_fat_tree_hops(tree, tree->leaves[to], hops);
		for (uint32_t from = 0; from < tree->n_leaves; from++) {
			if (hops[tree->leaves[from]] < RSM_FT_FAR)
				continue;
			snprintf(why, size, "no tree: no way leads up and then down from %s to %s",
				 switches[tree->leaves[from]].name, switches[tree->leaves[to]].name);
			return -EINVAL;
		}
	}
	return 0;
}

static int find_levels(struct maker *m, char *why, size_t size)
{
	uint32_t a, b;
	bool fit;

	levels_by_ends(m);
	fit = levels_fit(m, &a, &b);
	if (!fit && !m->too_high) {
		levels_above_pendants(m);
		fit = levels_fit(m, &a, &b);
	}
	if (m->too_high) {
		snprintf(why, size, "no tree: it has more than %u levels", NO_LEVEL);
		return -EINVAL;
	}
	if (!fit) {
		snprintf(why, size, "no tree: %s and %s are neighbours on the same level",
			 m->topo->switches[a].name, m->topo->switches[b].name);
		return -EINVAL;
	}
	return 0;
}

static int make(struct maker *m, char *why, size_t size)
{
	int rc;

	if (!m->topo->n_ends) {
		snprintf(why, size, "no tree: there are no hosts");
		return -EINVAL;
	}
	for (uint32_t i = 0; i < m->topo->n_ends; i++)
		m->has_ends[m->topo->ends[i].leaf] = true;
	rc = find_levels(m, why, size);
	if (rc)
		return rc;
	order_switches(m);
	return make_leaves(m) ?: make_groups(m->tree) ?: make_hops(m->tree, why, size);
}

/**
 * rsm_fat_tree_make - find the tree in a topology
 * @tree: filled in; for rsm_fat_tree_free()
 * @topo: stays as long as the tree
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0, -EINVAL if it is no tree, or -ENOMEM.
 */
int rsm_fat_tree_make(struct rsm_fat_tree *tree, const struct rsm_topo *topo, char *why,
		      size_t size)
{
	uint32_t n = topo->n_switches + 1;
	struct maker m = {
		.tree = tree,
		.topo = topo,
		.queue = calloc(n, sizeof(*m.queue)),
		.has_ends = calloc(n, sizeof(*m.has_ends)),
		.pendant = calloc(n, sizeof(*m.pendant)),
	};
	int rc = -ENOMEM;

	*tree = (struct rsm_fat_tree) {
		.topo = topo,
		.n_levels = 1,
		.switches = calloc(n, sizeof(*tree->switches)),
		.order = calloc(n, sizeof(*tree->order)),
		.leaves = calloc(n, sizeof(*tree->leaves)),
		.ends = calloc(topo->n_ends + 1, sizeof(*tree->ends)),
	};
	snprintf(why, size, "no memory");
	if (m.queue && m.has_ends && m.pendant && tree->switches && tree->order && tree->leaves &&
	    tree->ends)
		rc = make(&m, why, size);
	free(m.queue);
	free(m.has_ends);
	free(m.pendant);
	if (rc)
		rsm_fat_tree_free(tree);
	return rc;
}

/** rsm_fat_tree_free - all but the topology */
void rsm_fat_tree_free(struct rsm_fat_tree *tree)
{
	free(tree->switches);
	free(tree->order);
	free(tree->leaves);
	free(tree->ends);
	free(tree->first_end);
	free(tree->hops);
	free(tree->groups);
	free(tree->ports);
	*tree = (struct rsm_fat_tree) { 0 };
}
