// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ways by which everything that is wanted is kept: a search that goes back when it gets stuck. It
 * takes one demand after the other, the strictest partitions' first, and at each switch prefers
 * links that its partition uses already. All ends of a class at a leaf take the same ways here:
 * other ones would only take more links. The tables are balanced later, around these ways.
 *
 * On a small tree the search is complete. On a large one it is given up after so many steps.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pftree.h"

#define MOST_STEPS	200000	/* and 10 for each demand */

/* A step from a switch to the next. */
struct step {
	uint32_t demand;	/* in planner.order */
	uint32_t at;
	uint16_t choice;
	uint8_t port;
	bool forced;		/* another demand of the tree has gone this way */
};

struct option {
	uint64_t cost;
	uint8_t port;
};

struct planner {
	struct pftree *p;
	uint32_t *order;	/* demands */
	struct step *steps;
	uint32_t n;
	uint32_t room;
	uint32_t farthest;
	bool lacked_lanes;	/* once at least */
};

static int by_cost(const void *a, const void *b)
{
	const struct option *one = a, *other = b;

	if (one->cost != other->cost)
		return one->cost < other->cost ? -1 : 1;
	return (int)one->port - (int)other->port;
}

/* Own links first, then to where the partition is, then where nobody else is. */
static uint64_t cost_of(const struct pftree *p, const struct pftree_link *link, uint32_t peer,
			uint32_t part)
{
	const uint32_t *marks = &p->marks[peer * (size_t)p->n_parts];
	uint64_t others = 0;

	if (pftree_uses(link, part))
		return 0;
	if (p->parts[part].isolation != PFTREE_DEF)
		for (uint32_t i = 0; i < p->n_parts; i++)
			others += i != part && marks[i];
	return (marks[part] ? 1ull << 40 : 1ull << 41) + ((uint64_t)link->n_users << 20) + others;
}

/* The way that is the nth best; 0: there are no more. */
static uint8_t choose(const struct planner *m, const struct pftree_demand *demand, uint32_t at,
		      unsigned int nth)
{
	const struct pftree *p = m->p;
	const struct rsm_topo_switch *sw = &p->topo->switches[at];
	struct option options[256];
	unsigned int n = 0;

	for (unsigned int port = 1; port < sw->n_ports; port++) {
		const struct pftree_link *link = pftree_link_at(p, at, port);
		int32_t peer = sw->ports[port].peer;

		if (peer < 0 || !rsm_ft_nearer(&p->tree, at, peer, p->trees[demand->tree].leaf) ||
		    !pftree_may_use(p, link, demand->part))
			continue;
		options[n++] = (struct option) { cost_of(p, link, peer, demand->part), port };
	}
	if (nth >= n)
		return 0;
	qsort(options, n, sizeof(*options), by_cost);
	return options[nth].port;
}

static int take(struct planner *m, const struct step *step)
{
	const struct pftree_demand *demand = &m->p->demands[m->order[step->demand]];

	if (m->n == m->room) {
		void *more = realloc(m->steps, (2 * m->room + 256) * sizeof(*m->steps));

		if (!more)
			return -ENOMEM;
		m->steps = more;
		m->room = 2 * m->room + 256;
	}
	m->steps[m->n++] = *step;
	m->p->trees[demand->tree].out[step->at] = step->port;
	return pftree_use_add(m->p, step->at, step->port, demand->part);
}

/* Whether there are lanes for what shares links until now. Nobody has one while ways are sought. */
static int check_lanes(struct planner *m)
{
	int rc;

	if (!m->p->tightened)
		return 0;
	m->p->tightened = false;
	rc = pftree_lanes_assign(m->p);
	for (uint32_t i = 0; i < m->p->n_parts; i++)
		m->p->parts[i].lane = PFTREE_NO_LANE;
	m->lacked_lanes |= rc == -ENOSPC;
	return rc;
}

/* Takes steps back up to one that could have been another; false: there is none. */
static bool back(struct planner *m, struct step *step)
{
	while (m->n) {
		const struct pftree_demand *demand;

		*step = m->steps[--m->n];
		demand = &m->p->demands[m->order[step->demand]];
		pftree_use_drop(m->p, step->at, step->port, demand->part);
		if (step->forced)
			continue;
		m->p->trees[demand->tree].out[step->at] = 0;
		step->choice++;
		return true;
	}
	return false;
}

/* From a switch by the way that another demand of the tree takes, or by the nth best. */
static bool next(const struct planner *m, struct step *step)
{
	const struct pftree *p = m->p;
	const struct pftree_demand *demand = &p->demands[m->order[step->demand]];

	step->port = p->trees[demand->tree].out[step->at];
	step->forced = step->port;
	if (step->forced)
		return pftree_may_use(p, pftree_link_at(p, step->at, step->port), demand->part);
	step->port = choose(m, demand, step->at, step->choice);
	return step->port;
}

static int search(struct planner *m)
{
	struct pftree *p = m->p;
	uint64_t steps = 0;
	struct step step = { .at = p->demands[m->order[0]].from };

	for (;;) {
		const struct pftree_demand *demand = &p->demands[m->order[step.demand]];
		int rc;

		if (step.at == p->tree.leaves[p->trees[demand->tree].leaf]) {
			if (step.demand + 1 < p->n_demands) {
				step = (struct step) { .demand = step.demand + 1 };
				step.at = p->demands[m->order[step.demand]].from;
				if (step.demand > m->farthest)
					m->farthest = step.demand;
				continue;
			}
			return pftree_lanes_assign(p);
		}
		if (++steps > MOST_STEPS + 10ull * p->n_demands)
			return -ENOSPC;
		if (!next(m, &step)) {
			if (!back(m, &step))
				return -ENOSPC;
			continue;
		}
		rc = take(m, &step) ?: check_lanes(m);
		if (rc == -ENOSPC && back(m, &step))
			continue;
		if (rc)
			return rc;
		step.at = p->topo->switches[step.at].ports[step.port].peer;
		step.choice = 0;
	}
}

static int by_need(const void *a, const void *b, void *context)
{
	const struct pftree *p = context;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct pftree_part *x = &p->parts[p->demands[i].part];
	const struct pftree_part *y = &p->parts[p->demands[j].part];

	if (x->isolation != y->isolation)
		return x->isolation > y->isolation ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return i < j ? -1 : 1;
}

/* The last to be kept up: of those in @among, or of those that need lanes, or of all. */
static uint32_t weakest(const struct pftree *p, const bool *among, enum pftree_isolation most)
{
	uint32_t found = PFTREE_NOBODY;

	for (uint32_t i = 0; i < p->n_parts; i++)
		if (p->parts[i].isolation != PFTREE_DEF && p->parts[i].isolation <= most &&
		    (!among || among[i]) &&
		    (found == PFTREE_NOBODY || p->parts[i].rank > p->parts[found].rank))
			found = i;
	return found;
}

/* Partitions that want a link of their own at a leaf, and links that there are. */
static bool is_crowded(const struct pftree *p, uint32_t leaf, bool *there, char *why, size_t size)
{
	const struct rsm_ft_switch *sw = &p->tree.switches[leaf];
	uint32_t n_links = 0, n_phy = 0, n = 0;

	for (unsigned int g = 0; g < sw->n_up; g++)
		n_links += sw->up[g].n;
	for (unsigned int g = 0; g < sw->n_down; g++)
		n_links += sw->down[g].n;
	for (uint32_t i = 0; i < p->n_parts; i++) {
		n += there[i];
		there[i] = there[i] && p->parts[i].isolation == PFTREE_PHY;
		n_phy += there[i];
	}
	if (n_phy + (n > n_phy) <= n_links)
		return false;
	snprintf(why, size, "%s has %u links for %u partitions, %u of which share none",
		 p->topo->switches[leaf].name, n_links, n, n_phy);
	return true;
}

static int by_leaf(const void *a, const void *b, void *context)
{
	const struct pftree *p = context;
	uint32_t one = p->demands[*(const uint32_t *)a].from;
	uint32_t other = p->demands[*(const uint32_t *)b].from;

	return one < other ? -1 : one > other;
}

/* A reason to give up without a search, and who it is about. */
static uint32_t obstacle(const struct planner *m, bool *there, char *why, size_t size)
{
	const struct pftree *p = m->p;

	for (uint32_t i = 0; i < p->n_parts; i++)
		for (uint32_t j = 0; p->parts[i].isolation == PFTREE_PHY && j < p->n_parts; j++) {
			if (!p->meet[i * (size_t)p->n_parts + j])
				continue;
			snprintf(why, size, "a host of it is in %s as well", p->parts[j].name);
			return i;
		}
	qsort_r(m->order, p->n_demands, sizeof(*m->order), by_leaf, m->p);
	for (uint32_t i = 0; i < p->n_demands; i++) {
		uint32_t leaf = p->demands[m->order[i]].from;

		there[p->demands[m->order[i]].part] = true;
		if (i + 1 < p->n_demands && p->demands[m->order[i + 1]].from == leaf)
			continue;
		if (is_crowded(p, leaf, there, why, size))
			return weakest(p, there, PFTREE_PHY);
		memset(there, 0, p->n_parts * sizeof(*there));
	}
	return PFTREE_NOBODY;
}

static uint32_t explain(const struct planner *m, char *why, size_t size)
{
	const struct pftree *p = m->p;
	const struct pftree_demand *demand = &p->demands[m->order[m->farthest]];

	if (m->lacked_lanes) {
		snprintf(why, size, "%d lanes are too few", p->lanes);
		return weakest(p, NULL, PFTREE_VLANE);
	}
	snprintf(why, size, "no ways were found for all: none is left from %s to %s for %s",
		 p->topo->switches[demand->from].name,
		 p->topo->switches[p->tree.leaves[p->trees[demand->tree].leaf]].name,
		 p->parts[demand->part].name);
	return p->parts[demand->part].isolation != PFTREE_DEF ? demand->part :
								    weakest(p, NULL, PFTREE_PHY);
}

static int plan(struct planner *m, uint32_t *who, char *why, size_t size)
{
	struct pftree *p = m->p;
	bool *there = calloc(p->n_parts + 1, sizeof(*there));
	int rc;

	if (!there)
		return -ENOMEM;
	*who = obstacle(m, there, why, size);
	free(there);
	if (*who != PFTREE_NOBODY)
		return -ENOSPC;
	for (uint32_t i = 0; i < p->n_trees; i++) {
		if (!p->trees[i].out)
			p->trees[i].out = malloc(p->topo->n_switches);
		if (!p->trees[i].out)
			return -ENOMEM;
		memset(p->trees[i].out, 0, p->topo->n_switches);
	}
	qsort_r(m->order, p->n_demands, sizeof(*m->order), by_need, p);
	p->tightened = true;
	rc = check_lanes(m) ?: search(m);
	if (rc == -ENOSPC)
		*who = explain(m, why, size);
	return rc;
}

/**
 * pftree_plan - find ways by which all that is wanted is kept
 * @p: its trees get them, its links their users, its partitions their lanes
 * @who: which partition had better be given up, after -ENOSPC
 * @why: the reason then, for a person
 * @size: of @why
 *
 * Return: 0, -ENOSPC if there are none or none were found, or -ENOMEM.
 */
int pftree_plan(struct pftree *p, uint32_t *who, char *why, size_t size)
{
	struct planner m = {
		.p = p,
		.order = calloc(p->n_demands + 1, sizeof(*m.order)),
	};
	int rc = -ENOMEM;

	pftree_use_clear(p);
	for (uint32_t i = 0; i < p->n_parts; i++)
		p->parts[i].lane = PFTREE_NO_LANE;
	for (uint32_t i = 0; m.order && i < p->n_demands; i++)
		m.order[i] = i;
	if (m.order)
		rc = p->n_demands ? plan(&m, who, why, size) : pftree_lanes_assign(p);
	if (rc == -ENOSPC && !p->n_demands) {
		snprintf(why, size, "%d lanes are too few", p->lanes);
		*who = weakest(p, NULL, PFTREE_VLANE);
	}
	free(m.order);
	free(m.steps);
	return rc;
}
