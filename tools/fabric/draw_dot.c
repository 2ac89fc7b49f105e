// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A drawing for Graphviz: one line for each cable, an arrow for each channel of a credit loop. */
#include <inttypes.h>
#include "draw.h"

#define MANY_HOSTS	128	/* more are drawn as a number at their switch */

static unsigned int hosts_at(const struct fabric_node *sw)
{
	unsigned int n = 0;

	for (unsigned int p = 1; p <= sw->nports; p++)
		n += sw->port[p].peer && !fabric_is_switch(sw->port[p].peer->node);
	return n;
}

static void draw_nodes(const struct check *c, bool hosts, FILE *to)
{
	for (unsigned int i = 0; i < c->f->nodes; i++) {
		const struct fabric_node *n = c->f->node[i];

		if (!fabric_is_switch(n)) {
			if (hosts)
				fprintf(to, "\tn%u [label=\"%s\" shape=ellipse];\n", i, n->name);
			continue;
		}
		fprintf(to, "\tn%u [label=\"%s", i, n->name);
		if (!hosts && hosts_at(n))
			fprintf(to, "\\n%u hosts", hosts_at(n));
		fprintf(to, "\" shape=box style=filled fillcolor=\"#e8eef7\"];\n");
	}
}

static void draw_cables(const struct check *c, bool hosts, FILE *to)
{
	for (unsigned int i = 0; i < c->f->nodes; i++) {
		const struct fabric_node *n = c->f->node[i];

		for (unsigned int p = 1; p <= n->nports; p++) {
			const struct fabric_port *a = &n->port[p], *b = a->peer;
			uint64_t there, back;

			if (!b || b->node->index < i || (b->node == n && b->num < p))
				continue;
			if (!hosts && (!fabric_is_switch(n) || !fabric_is_switch(b->node)))
				continue;
			there = c->flow.use[flow_port(&c->flow, a)].paths;
			back = c->flow.use[flow_port(&c->flow, b)].paths;
			fprintf(to, "\tn%u -> n%u [dir=none taillabel=\"%u\" headlabel=\"%u\""
				" label=\"%" PRIu64 "/%" PRIu64 "\" penwidth=%.1f];\n", i,
				b->node->index, a->num, b->num, there, back, !c->most ? 1 :
				1 + 4.0 * (there > back ? there : back) / (c->most + there + back));
		}
	}
}

static void draw_cycle(const struct cycle *cycle, unsigned int number, FILE *to)
{
	for (unsigned int i = 0; i < cycle->length; i++) {
		const struct channel *ch = &cycle->channel[i];

		fprintf(to, "\tn%u -> n%u [color=red fontcolor=red penwidth=3 constraint=false"
			" label=\"loop %u: port %u VL %u\"];\n", ch->out->node->index,
			ch->out->peer->node->index, number + 1, ch->out->num, ch->vl);
	}
}

void draw_dot(const struct check *c, FILE *to)
{
	bool hosts = c->hosts <= MANY_HOSTS;

	fprintf(to, "digraph fabric {\n\tnode [fontname=\"sans-serif\" fontsize=10];\n"
		"\tedge [fontname=\"sans-serif\" fontsize=8 color=\"#888888\"];\n");
	draw_nodes(c, hosts, to);
	draw_cables(c, hosts, to);
	for (unsigned int i = 0; i < c->ncycles; i++)
		draw_cycle(&c->cycles[i], i, to);
	fprintf(to, "}\n");
}
