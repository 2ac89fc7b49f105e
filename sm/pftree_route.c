// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The tables. For each end the algorithm goes up from its leaf by the link that has least to do, to
 * a switch where its partition is already, and so on; and from each of these switches down to all
 * that are below, for their way up. A partition does not take links that it must not share.
 *
 * Where a leaf is left without a way then, the plan has one: its links are reserved.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pftree.h"
#include "router.h"

struct router {
	struct pftree *p;
	struct rsm_routes *routes;
	int isolation;		/* percent: of the objective; the rest is weights */
	uint32_t *stamps;	/* by link: serial of the LID that was counted last */
	uint32_t serial;
	bool *done;		/* by switch: it has a way to the LID that its partition may take */
	uint32_t *spine;	/* switches above the leaf that the LID's way leads through */
	uint32_t n_spine;
	uint32_t *ends;
	int64_t *slots;
	bool *below;		/* [part * switches + switch]: its ends are there or below */
	uint64_t *heavy;	/* by switch: weights above 1 of what it leads down to */
};

/* Of the LID that is being routed. */
struct target {
	const struct pftree_tree *tree;
	uint16_t lid;
	int weight;
};

/* A link that could be taken, and what the choice depends on: less is better. */
struct candidate {
	const struct pftree_link *link;
	uint32_t peer;
	uint8_t port;
	uint32_t blocked;
	uint64_t score;
	uint64_t heavy;
	uint32_t mark;
	uint64_t guid;
};

static bool may_use(const struct router *r, const struct target *t, const struct pftree_link *link)
{
	const struct pftree *p = r->p;
	const struct pftree_class *class = &p->classes[t->tree->class];

	if (!p->hard || !t->tree->n)
		return true;
	for (uint32_t i = 0; i < class->n; i++)
		if (!pftree_may_use(p, link, p->members[class->first + i].part))
			return false;
	return true;
}

/*
 * The combined objective, equation 2 of the paper: routes stand for isolation, where a switch that
 * the partition is not at yet counts as half a route more, weights for balance. Both are parts of
 * what the candidates have together. Heavy ends of different leaves go by different switches if they
 * can, or who sends to several of them would do so by one link up: for them a switch that leads to
 * more of that than another one counts as half a unit of weight more.
 */
static void score(const struct router *r, const struct target *t, struct candidate *all, uint32_t n)
{
	const struct pftree *p = r->p;
	uint64_t routes = 1, weight = 1, least = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++) {
		routes += all[i].link->routes;
		weight += all[i].link->weight;
		if (all[i].heavy < least)
			least = all[i].heavy;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct candidate *c = &all[i];
		uint32_t part = t->tree->n ? p->demands[t->tree->first].part : PFTREE_NOBODY;
		uint64_t foreign, laden;

		c->mark = part == PFTREE_NOBODY ? 0 :
						  p->marks[c->peer * (size_t)p->n_parts + part];
		foreign = c->mark ? 0 : 1;
		laden = t->weight > 1 ? c->heavy > least : foreign;
		c->score = r->isolation * (2 * c->link->routes + foreign) * weight +
			   (100 - r->isolation) * (2 * c->link->weight + laden) * routes;
		c->guid = p->topo->switches[c->peer].guid;
	}
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (a->blocked != b->blocked)
		return a->blocked < b->blocked;
	if (a->score != b->score)
		return a->score < b->score;
	if (a->mark != b->mark)
		return a->mark > b->mark;
	if (a->guid != b->guid)
		return a->guid > b->guid;
	return a->port < b->port;
}

static const struct candidate *best_of(const struct router *r, const struct target *t,
				       struct candidate *all, uint32_t n)
{
	const struct candidate *best = all;

	score(r, t, all, n);
	for (uint32_t i = 1; i < n; i++)
		if (is_better(&all[i], best))
			best = &all[i];
	return best;
}

/* Switches below, with ends of the tree's partitions, that can not come up to this one. */
static uint32_t count_blocked(const struct router *r, const struct target *t, uint32_t sw,
			      uint32_t from)
{
	const struct pftree *p = r->p;
	const struct rsm_ft_switch *node = &p->tree.switches[sw];
	uint32_t part = p->demands[t->tree->first].part, n = 0;
	const bool *below = &r->below[part * (size_t)p->topo->n_switches];

	for (unsigned int g = 0; g < node->n_down; g++) {
		const struct rsm_ft_group *group = &node->down[g];
		bool free = group->peer == from || !below[group->peer];

		for (unsigned int i = 0; !free && i < group->n; i++) {
			const struct rsm_topo_port *port =
				&p->topo->switches[sw].ports[group->ports[i]];

			free = may_use(r, t, pftree_link_at(p, group->peer, port->peer_port));
		}
		n += !free;
	}
	return n;
}

/* Links into a leaf that a partition may take: its share of them, unless the policy says more. */
static bool has_share(const struct router *r, const struct target *t, uint32_t leaf)
{
	const struct pftree *p = r->p;
	uint32_t number = p->tree.switches[leaf].leaf, ends, links = 0, used = 0, share;
	const struct pftree_part *part;
	uint32_t index;

	index = p->demands[t->tree->first].part;
	part = &p->parts[index];
	if (part->isolation != PFTREE_PHY)
		return true;
	ends = p->tree.first_end[number + 1] - p->tree.first_end[number];
	for (unsigned int g = 0; g < p->tree.switches[leaf].n_up; g++) {
		const struct rsm_ft_group *group = &p->tree.switches[leaf].up[g];

		for (unsigned int i = 0; i < group->n; i++) {
			const struct rsm_topo_port *port =
				&p->topo->switches[leaf].ports[group->ports[i]];

			links++;
			used += pftree_uses(pftree_link_at(p, group->peer, port->peer_port),
					    index);
		}
	}
	share = part->links ? (uint32_t)part->links : links * t->tree->n_ends / ends;
	return used < (share ? share : 1);
}

/* The way down to a switch from above: false if there is none that may be taken. */
static bool go_up(struct router *r, const struct target *t, uint32_t *at)
{
	const struct pftree *p = r->p;
	const struct rsm_ft_switch *node = &p->tree.switches[*at];
	bool any = !p->hard || !t->tree->n || node->leaf < 0 || has_share(r, t, *at);
	struct candidate all[256];
	const struct candidate *best;
	uint32_t n = 0;

	for (unsigned int g = 0; g < node->n_up; g++) {
		const struct rsm_ft_group *group = &node->up[g];
		uint32_t blocked = PFTREE_NOBODY;

		/* What has lost its links up is passed by. */
		if (p->tree.switches[group->peer].height < node->height)
			continue;
		for (unsigned int i = 0; i < group->n; i++) {
			uint8_t port = p->topo->switches[*at].ports[group->ports[i]].peer_port;
			const struct pftree_link *link = pftree_link_at(p, group->peer, port);

			if (!may_use(r, t, link) ||
			    (!any && !pftree_uses(link, p->demands[t->tree->first].part)))
				continue;
			if (blocked == PFTREE_NOBODY)
				blocked = p->hard && t->tree->n ?
					  count_blocked(r, t, group->peer, *at) : 0;
			all[n++] = (struct candidate) {
				.link = link, .peer = group->peer, .port = port, .blocked = blocked,
				.heavy = r->heavy[group->peer],
			};
		}
	}
	if (!n)
		return false;
	best = best_of(r, t, all, n);
	r->routes->lft[best->peer][t->lid] = best->port;
	r->done[best->peer] = true;
	r->heavy[best->peer] += t->weight - 1;
	r->spine[r->n_spine++] = best->peer;
	*at = best->peer;
	return true;
}

/* From a switch to all that come up to it for the LID. */
static void go_down(struct router *r, const struct target *t, uint32_t at)
{
	const struct pftree *p = r->p;
	const struct rsm_ft_switch *node = &p->tree.switches[at];
	const uint8_t *hops = rsm_ft_hops(&p->tree, t->tree->leaf);

	for (unsigned int g = 0; g < node->n_down; g++) {
		const struct rsm_ft_group *group = &node->down[g];
		struct candidate all[256];
		uint32_t n = 0;

		if (r->done[group->peer] || hops[group->peer] != hops[at] + 1)
			continue;
		for (unsigned int i = 0; i < group->n; i++) {
			uint8_t port = p->topo->switches[at].ports[group->ports[i]].peer_port;
			const struct pftree_link *link = pftree_link_at(p, group->peer, port);

			if (may_use(r, t, link))
				all[n++] = (struct candidate) {
					.link = link, .peer = at, .port = port,
				};
		}
		if (!n)
			continue;
		r->routes->lft[group->peer][t->lid] = best_of(r, t, all, n)->port;
		r->done[group->peer] = true;
		go_down(r, t, group->peer);
	}
}

/* A way for a switch that the LID's spine is not above, or not by links that it may use. */
static void go_aside(struct router *r, const struct target *t, uint32_t at)
{
	const struct pftree *p = r->p;
	const struct rsm_topo_switch *sw = &p->topo->switches[at];
	struct candidate all[256];
	uint32_t n = 0;

	for (unsigned int port = 1; port < sw->n_ports; port++) {
		int32_t peer = sw->ports[port].peer;
		const struct pftree_link *link = pftree_link_at(p, at, port);

		if (peer >= 0 && rsm_ft_nearer(&p->tree, at, peer, t->tree->leaf) && r->done[peer] &&
		    may_use(r, t, link))
			all[n++] = (struct candidate) {
				.link = link, .peer = peer, .port = port,
			};
	}
	if (!n)
		return;
	r->routes->lft[at][t->lid] = best_of(r, t, all, n)->port;
	r->done[at] = true;
}

/* The others, those above the leaf first: each goes on at a switch that has a way. */
static void go_everywhere(struct router *r, const struct target *t)
{
	const struct rsm_fat_tree *tree = &r->p->tree;
	uint32_t n = tree->topo->n_switches;

	for (uint32_t i = 0; i < n; i++)
		if (!r->done[tree->order[i]] && rsm_ft_above(tree, tree->order[i], t->tree->leaf))
			go_aside(r, t, tree->order[i]);
	for (uint32_t i = n; i-- > 0;)
		if (!r->done[tree->order[i]])
			go_aside(r, t, tree->order[i]);
}

/* Whether a leaf that the LID is used from has no way; false, too, if none is needed. */
static bool is_lost(const struct router *r, const struct target *t)
{
	for (uint32_t i = 0; i < t->tree->n; i++)
		if (!r->done[r->p->demands[t->tree->first + i].from])
			return true;
	return false;
}

static void follow_plan(const struct router *r, const struct target *t)
{
	for (uint32_t sw = 0; sw < r->p->topo->n_switches; sw++)
		if (t->tree->out[sw])
			r->routes->lft[sw][t->lid] = t->tree->out[sw];
}

/* Who uses which links for the LID. */
static int count(struct router *r, const struct target *t)
{
	struct pftree *p = r->p;
	uint32_t leaf = p->tree.leaves[t->tree->leaf];
	bool one = p->classes[t->tree->class].n < 2;

	r->serial++;
	for (uint32_t i = 0; i < t->tree->n; i++) {
		const struct pftree_demand *demand = &p->demands[t->tree->first + i];

		for (uint32_t at = demand->from; at != leaf;) {
			uint8_t port = r->routes->lft[at][t->lid];
			struct pftree_link *link = pftree_link_at(p, at, port);
			bool known = r->stamps[link - p->links] == r->serial;

			if (known && one)
				break;
			if (!known) {
				link->routes++;
				link->weight += t->weight;
				r->stamps[link - p->links] = r->serial;
			}
			if (pftree_use_add(p, at, port, demand->part))
				return -ENOMEM;
			at = p->topo->switches[at].ports[port].peer;
		}
	}
	return 0;
}

static int route_lid(struct router *r, const struct target *t)
{
	const struct pftree *p = r->p;
	uint32_t at = p->tree.leaves[t->tree->leaf];

	memset(r->done, 0, p->topo->n_switches * sizeof(*r->done));
	r->done[at] = true;
	r->n_spine = 0;
	while (go_up(r, t, &at))
		;
	for (uint32_t i = r->n_spine; i-- > 0;)
		go_down(r, t, r->spine[i]);
	go_down(r, t, p->tree.leaves[t->tree->leaf]);
	if (is_lost(r, t)) {
		go_everywhere(r, t);
		if (p->hard && is_lost(r, t))
			follow_plan(r, t);
	}
	return count(r, t);
}

static int route_leaf(struct router *r, uint32_t leaf, bool phy)
{
	const struct pftree *p = r->p;
	uint32_t n = pftree_order(p, leaf, r->isolation < 100, r->ends, r->slots);

	for (uint32_t i = 0; i < n; i++) {
		const struct rsm_topo_end *end = &p->topo->ends[r->ends[i]];
		struct target t = {
			.tree = &p->trees[p->tree_of[r->ends[i]]],
			.weight = p->weights[r->ends[i]],
		};

		if (pftree_is_strict(p, r->ends[i], PFTREE_PHY) != phy)
			continue;
		for (unsigned int lid = 0; lid < end->n_lids; lid++) {
			t.lid = end->lid + lid;
			if (route_lid(r, &t))
				return -ENOMEM;
		}
	}
	return 0;
}

static void find_below(struct router *r)
{
	const struct pftree *p = r->p;
	uint32_t n = p->topo->n_switches;

	for (uint32_t i = 0; i < p->n_demands; i++)
		r->below[p->demands[i].part * (size_t)n + p->demands[i].from] = true;
	for (uint32_t i = 0; i < n; i++) {
		const struct rsm_ft_switch *sw = &p->tree.switches[p->tree.order[i]];

		for (uint32_t part = 0; part < p->n_parts; part++)
			for (unsigned int g = 0; g < sw->n_down; g++)
				r->below[part * (size_t)n + p->tree.order[i]] |=
					r->below[part * (size_t)n + sw->down[g].peer];
	}
}

/* What the plan has reserved beyond the tables is free again. */
static int recount(struct router *r)
{
	const struct pftree *p = r->p;

	pftree_use_clear(r->p);
	for (uint32_t i = 0; i < p->topo->n_ends; i++) {
		struct target t = { .tree = &p->trees[p->tree_of[i]], .weight = p->weights[i] };

		for (unsigned int lid = 0; lid < p->topo->ends[i].n_lids; lid++) {
			t.lid = p->topo->ends[i].lid + lid;
			if (count(r, &t))
				return -ENOMEM;
		}
	}
	return 0;
}

static int route(struct router *r)
{
	const struct pftree *p = r->p;
	int rc = rsm_fat_tree_route(&p->tree, r->routes);

	if (p->hard)
		find_below(r);
	for (int phy = p->hard; !rc && phy >= 0; phy--)
		for (uint32_t leaf = 0; !rc && leaf < p->tree.n_leaves; leaf++)
			rc = route_leaf(r, leaf, phy);
	return rc ?: p->hard ? recount(r) : 0;
}

/**
 * pftree_route_all - make the tables
 * @p: with a plan, if some partition is not PFTREE_DEF; then its links have users, and else none
 * @routes: filled in; LIDs of switches, too
 * @isolation: percent of the objective that is isolation; the rest is balance by weights
 *
 * Return: 0 or -ENOMEM. The users of links are those of the tables then.
 */
int pftree_route_all(struct pftree *p, struct rsm_routes *routes, int isolation)
{
	size_t n = p->topo->n_switches + 1, parts = p->hard ? p->n_parts : 0;
	struct router r = {
		.p = p,
		.routes = routes,
		.isolation = isolation,
		.stamps = calloc(p->n_links + 1, sizeof(*r.stamps)),
		.done = calloc(n, sizeof(*r.done)),
		.spine = calloc(n, sizeof(*r.spine)),
		.ends = calloc(2 * p->topo->n_ends + 1, sizeof(*r.ends)),
		.slots = calloc(p->n_classes + 1, sizeof(*r.slots)),
		.below = calloc(n * parts + 1, sizeof(*r.below)),
		.heavy = calloc(n, sizeof(*r.heavy)),
	};
	int rc = -ENOMEM;

	if (r.stamps && r.done && r.spine && r.ends && r.slots && r.below && r.heavy)
		rc = route(&r);
	free(r.stamps);
	free(r.done);
	free(r.spine);
	free(r.ends);
	free(r.slots);
	free(r.below);
	free(r.heavy);
	return rc;
}
