// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * For one destination the paths are a tree. What comes together at a switch with the same input
 * port, SL and lane goes on together: so all pairs are followed at the cost of the tree.
 */
#include <stdlib.h>
#include <string.h>
#include "flow.h"

struct bundle {
	uint8_t in;
	uint8_t sl;
	uint8_t vl;
	uint32_t paths;
};

struct packets {
	struct bundle *bundle;
	unsigned int n;
	unsigned int room;
};

void flow_init(struct flow *l, const struct fabric *f)
{
	memset(l, 0, sizeof(*l));
	l->f = f;
	l->turn = fabric_alloc(f->switches, sizeof(*l->turn));
	l->at = fabric_alloc(f->switches, sizeof(*l->at));
	for (unsigned int i = 0; i < f->switches; i++) {
		size_t side = f->sw[i]->nports + 1;

		l->turn[i] = fabric_alloc(side * side, sizeof(**l->turn));
	}
	l->base = fabric_alloc(f->nodes, sizeof(*l->base));
	for (unsigned int i = 0; i < f->nodes; i++) {
		l->base[i] = l->ports;
		l->ports += f->node[i]->nports + 1;
	}
	l->use = fabric_alloc(l->ports, sizeof(*l->use));
}

void flow_free(struct flow *l)
{
	for (unsigned int i = 0; i < l->f->switches; i++) {
		size_t side = l->f->sw[i]->nports + 1;

		for (size_t t = 0; t < side * side; t++)
			free(l->turn[i][t]);
		free(l->turn[i]);
		free(l->at[i].bundle);
	}
	free(l->turn);
	free(l->at);
	free(l->base);
	free(l->use);
}

static void put(struct packets *p, unsigned int in, uint8_t sl, uint8_t vl, uint32_t paths)
{
	if (p->n == p->room) {
		struct bundle *more = fabric_alloc(p->room ? 2ul * p->room : 16, sizeof(*more));

		if (p->n)
			memcpy(more, p->bundle, p->n * sizeof(*more));
		free(p->bundle);
		p->bundle = more;
		p->room = p->room ? 2 * p->room : 16;
	}
	p->bundle[p->n++] = (struct bundle){ in, sl, vl, paths };
}

static struct turn *turn_at(struct flow *l, const struct fabric_node *sw, unsigned int in,
			    unsigned int out)
{
	struct turn **t = &l->turn[sw->order][in * (sw->nports + 1) + out];

	if (!*t)
		*t = fabric_alloc(1, sizeof(**t));
	return *t;
}

static void use(struct flow *l, const struct fabric_port *out, uint8_t vl, uint32_t paths)
{
	struct link_use *u = &l->use[flow_port(l, out)];

	u->paths += paths;
	u->lane[vl] += paths;
}

/* One host's packets, with the SL of one of its LIDs. Further LIDs are no further paths. */
static void inject(struct flow *l, const struct fabric_port *src, unsigned int slid,
		   unsigned int dlid, bool counts)
{
	uint8_t sl = fabric_sl(l->f, slid, dlid), vl = fabric_vl(src, 0, sl);

	if (sl == FABRIC_NO_SL)
		return;
	if (vl == FABRIC_DISCARD) {
		l->lost += counts;
		l->lost_at_hosts += counts;
		l->lost_at_host = src;
		l->lost_sl = sl;
		return;
	}
	use(l, src, vl, counts);
	if (walk_leaf(src))
		put(&l->at[walk_leaf(src)->order], src->peer->num, sl, vl, counts);
}

static void inject_all(struct flow *l, const struct walk *w)
{
	const struct fabric *f = l->f;

	for (unsigned int i = 0; i < f->nodes; i++) {
		struct fabric_node *n = f->node[i];

		for (unsigned int p = 1; !fabric_is_switch(n) && p <= n->nports; p++) {
			const struct fabric_port *src = &n->port[p];
			const struct fabric_node *leaf = walk_leaf(src);

			if (!src->lid || src == f->lid[w->lid])
				continue;
			if (leaf ? w->end[leaf->order] != WALK_ARRIVES :
				   src->peer != f->lid[w->lid])
				continue;
			inject(l, src, src->lid, w->lid, true);
			for (unsigned int more = 1; f->has_sl && more < 1u << src->lmc; more++)
				inject(l, src, src->lid + more, w->lid, false);
		}
	}
}

/* All that has come to a switch goes on, each lane's of an SL together. */
static void forward(struct flow *l, const struct fabric_node *sw, unsigned int lid)
{
	const struct fabric_port *out = &sw->port[fabric_entry(sw, lid)];
	const struct fabric_node *next = out->peer->node;
	struct packets *here = &l->at[sw->order];
	uint32_t onward[FABRIC_LANES][FABRIC_LANES] = { };
	uint16_t some[FABRIC_LANES] = { };

	for (unsigned int i = 0; i < here->n; i++) {
		const struct bundle *b = &here->bundle[i];
		struct turn *t = turn_at(l, sw, b->in, out->num);
		uint8_t vl = fabric_vl(out, b->in, b->sl);

		if (vl == FABRIC_DISCARD) {
			t->dropped |= 1u << b->sl;
			t->lid = lid;
			t->lost += b->paths;
			l->lost += b->paths;
			continue;
		}
		t->to[b->vl] |= 1u << vl;
		onward[b->sl][vl] += b->paths;
		some[b->sl] |= 1u << vl;
	}
	here->n = 0;
	for (unsigned int sl = 0; sl < FABRIC_LANES; sl++) {
		for (unsigned int vl = 0; some[sl] >> vl; vl++) {
			if (!(some[sl] >> vl & 1))
				continue;
			use(l, out, vl, onward[sl][vl]);
			if (fabric_is_switch(next))
				put(&l->at[next->order], out->peer->num, sl, vl, onward[sl][vl]);
		}
	}
}

void flow_add(struct flow *l, const struct walk *w)
{
	const struct fabric *f = l->f;

	if (fabric_is_switch(f->lid[w->lid]->node))
		return;
	inject_all(l, w);
	for (unsigned int i = 0; i < w->nfar; i++) {
		const struct fabric_node *sw = f->sw[w->far[i]];

		if (l->at[sw->order].n)
			forward(l, sw, w->lid);
	}
}
