// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two states of a subnet are compared by GUIDs: LIDs and the order of nodes may have changed. */
#include <stdlib.h>
#include <string.h>
#include "change.h"

const struct fabric_port *change_port(const struct fabric *in, const struct fabric_port *p)
{
	const struct fabric_node *n = fabric_node(in, p->node->guid);

	return n && p->num <= n->nports ? &n->port[p->num] : NULL;
}

bool change_is_gone(const struct fabric *in, const struct fabric_port *p)
{
	const struct fabric_port *other = change_port(in, p);

	return p->peer && (!other || !other->peer || other->peer != change_port(in, p->peer));
}

/* Cables of @a that are not in @b, and nodes. */
static void count_gone(const struct fabric *a, const struct fabric *b, unsigned int *cables,
		       unsigned int *nodes)
{
	unsigned int ends = 0;

	for (unsigned int i = 0; i < a->nodes; i++) {
		*nodes += !fabric_node(b, a->node[i]->guid);
		for (unsigned int p = 1; p <= a->node[i]->nports; p++)
			ends += change_is_gone(b, &a->node[i]->port[p]);
	}
	*cables = ends / 2;
}

/* Ways to one LID that is the same port's in both states, from those near to it outwards. */
static void count_moved(struct change *c, const struct fabric *before, const struct walk *w,
			const unsigned int *sources, bool *moved)
{
	const struct fabric *now = w->f;
	const struct fabric_port *to = now->lid[w->lid];
	const struct fabric_node *leaf = walk_leaf(to);

	for (unsigned int i = w->nfar; i--;) {
		const struct fabric_node *sw = now->sw[w->far[i]];
		const struct fabric_node *old = fabric_node(before, sw->guid);
		unsigned int paths = sources[sw->order] - (leaf == sw);
		bool other;

		if (!old || !fabric_is_switch(old)) {
			moved[sw->order] = true;
			continue;
		}
		other = fabric_entry(old, w->lid) != fabric_entry(sw, w->lid);
		c->entries += other;
		c->by_switch[sw->order] += other;
		moved[sw->order] = other || (w->next[sw->order] >= 0 && moved[w->next[sw->order]]);
		if (fabric_is_switch(to->node))
			continue;
		c->paths += paths;
		c->moved += moved[sw->order] ? paths : 0;
	}
}

void change_find(struct change *c, const struct fabric *before, const struct fabric *now)
{
	unsigned int *sources = fabric_alloc(now->switches, sizeof(*sources));
	bool *moved = fabric_alloc(now->switches, sizeof(*moved));
	struct walk w;

	memset(c, 0, sizeof(*c));
	c->by_switch = fabric_alloc(now->switches, sizeof(*c->by_switch));
	count_gone(before, now, &c->cables_gone, &c->nodes_gone);
	count_gone(now, before, &c->cables_new, &c->nodes_new);
	for (unsigned int i = 0; i < now->nodes; i++) {
		const struct fabric_node *n = now->node[i];

		for (unsigned int p = 1; !fabric_is_switch(n) && p <= n->nports; p++)
			if (n->port[p].lid && walk_leaf(&n->port[p]))
				sources[walk_leaf(&n->port[p])->order]++;
	}
	walk_init(&w, now);
	for (unsigned int lid = 1; lid < now->lids; lid++) {
		if (!now->lid[lid] || !before->lid[lid] ||
		    before->lid[lid] != change_port(before, now->lid[lid]))
			continue;
		walk_to(&w, lid);
		count_moved(c, before, &w, sources, moved);
	}
	walk_free(&w);
	free(sources);
	free(moved);
}

void change_free(struct change *c)
{
	free(c->by_switch);
}
