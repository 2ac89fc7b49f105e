// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cycles among channels: knots (strongly connected parts) by Tarjan, then a short one in each. */
#include <stdlib.h>
#include <string.h>
#include "flow.h"

#define STARTS	64		/* channels of a knot from which a short cycle is looked for */

/*
 * A channel is numbered flow_port() * 16 + lane. Its successors are counted by @at: the port
 * behind it, and the lane there.
 */
struct frame {
	uint32_t channel;
	uint32_t at;
};

struct search {
	const struct flow *l;
	const struct fabric_port **port;	/* by flow_port() */
	uint32_t *seen;				/* order of discovery, from 1 */
	uint32_t *low;
	uint32_t *knot;				/* number of its knot, from 1, when that is known */
	uint32_t *stack;
	uint32_t depth;
	struct frame *frame;
	uint32_t *from;				/* of the breadth-first search */
	uint32_t *queue;
	struct cycle *cycles;
	unsigned int ncycles;
	uint32_t clock;
	uint32_t knots;
};

/* The next channel for which @c waits, from *@at on, which is left behind it; 0 if none is left. */
static uint32_t successor(const struct search *s, uint32_t c, uint32_t *at)
{
	const struct fabric_port *in = s->port[c / FABRIC_LANES]->peer;

	if (!in || !fabric_is_switch(in->node))
		return 0;
	for (; *at < (in->node->nports + 1) * FABRIC_LANES; ++*at) {
		const struct turn *t = flow_turn(s->l, in->node, in->num, *at / FABRIC_LANES);

		if (!t || !t->to[c % FABRIC_LANES]) {
			*at |= FABRIC_LANES - 1;
			continue;
		}
		if (t->to[c % FABRIC_LANES] >> *at % FABRIC_LANES & 1) {
			const struct fabric_port *out = &in->node->port[*at / FABRIC_LANES];

			return flow_port(s->l, out) * FABRIC_LANES + (*at)++ % FABRIC_LANES;
		}
	}
	return 0;
}

/* The shortest way from @start back to it within its knot, or @most. Leaves s->from to be read. */
static unsigned int round_trip(struct search *s, uint32_t start, uint32_t *last, unsigned int most)
{
	uint32_t head = 0, tail = 0, level = 1, level_end = 1;

	s->queue[tail++] = start;
	while (head < tail && level < most) {
		uint32_t c = s->queue[head++], at = 0, next;

		while ((next = successor(s, c, &at))) {
			if (s->knot[next] != s->knot[start])
				continue;
			if (next == start) {
				*last = c;
				most = level;
				goto out;
			}
			if (s->from[next])
				continue;
			s->from[next] = c;
			s->queue[tail++] = next;
		}
		if (head == level_end) {
			level_end = tail;
			level++;
		}
	}
out:
	return most;
}

static void forget(struct search *s, uint32_t start, const uint32_t *members, uint32_t n)
{
	s->from[start] = 0;
	for (uint32_t i = 0; i < n; i++)
		s->from[members[i]] = 0;
}

/* Members of a knot lie at the end of the stack. Keeps one short cycle of them. */
static void keep(struct search *s, const uint32_t *members, uint32_t n)
{
	uint32_t best = 0, last = 0, step = n > STARTS ? n / STARTS : 1, at;
	unsigned int length = n + 1;
	struct cycle *c;

	for (uint32_t i = 0; i < n; i += step) {
		unsigned int found = round_trip(s, members[i], &last, length);

		if (found < length) {
			length = found;
			best = members[i];
		}
		forget(s, members[i], members, n);
	}
	if (!(s->ncycles & (s->ncycles - 1))) {
		struct cycle *more = fabric_alloc(s->ncycles ? 2ul * s->ncycles : 1, sizeof(*more));

		if (s->ncycles)
			memcpy(more, s->cycles, s->ncycles * sizeof(*more));
		free(s->cycles);
		s->cycles = more;
	}
	c = &s->cycles[s->ncycles++];
	c->length = length;
	c->knot = n;
	c->channel = fabric_alloc(length, sizeof(*c->channel));
	c->wait = fabric_alloc(length, sizeof(*c->wait));
	round_trip(s, best, &last, length + 1);
	at = last;
	for (unsigned int i = length; i--; at = s->from[at]) {
		c->channel[i].out = s->port[at / FABRIC_LANES];
		c->channel[i].vl = at % FABRIC_LANES;
	}
	forget(s, best, members, n);
}

static void close_knot(struct search *s, uint32_t c)
{
	uint32_t n = 0, top;

	s->knots++;
	do {
		top = s->stack[s->depth - ++n];
		s->knot[top] = s->knots;
	} while (top != c);
	/* A channel does not wait for itself: its packets have left the switch that sends into it. */
	if (n > 1)
		keep(s, &s->stack[s->depth - n], n);
	s->depth -= n;
}

static void visit(struct search *s, uint32_t root)
{
	unsigned int depth = 0;

	s->frame[0] = (struct frame){ root, 0 };
	s->seen[root] = s->low[root] = ++s->clock;
	s->stack[s->depth++] = root;
	for (;;) {
		struct frame *top = &s->frame[depth];
		uint32_t c = top->channel, next = successor(s, c, &top->at);

		if (next && !s->seen[next]) {
			s->seen[next] = s->low[next] = ++s->clock;
			s->stack[s->depth++] = next;
			s->frame[++depth] = (struct frame){ next, 0 };
			continue;
		}
		if (next) {
			if (!s->knot[next] && s->seen[next] < s->low[c])
				s->low[c] = s->seen[next];
			continue;
		}
		if (s->low[c] == s->seen[c])
			close_knot(s, c);
		if (!depth)
			return;
		depth--;
		if (s->low[c] < s->low[s->frame[depth].channel])
			s->low[s->frame[depth].channel] = s->low[c];
	}
}

/* Whether the path from a host to a LID goes through @a and then @b, in these lanes. */
static bool takes(const struct fabric *f, const struct fabric_port *src, unsigned int slid,
		  unsigned int dlid, const struct channel *a, const struct channel *b)
{
	const struct fabric_port *out = src;
	uint8_t sl = fabric_sl(f, slid, dlid), vl = fabric_vl(src, 0, sl);

	for (unsigned int hops = 0; hops <= f->switches; hops++) {
		const struct fabric_node *sw = out->peer ? out->peer->node : NULL;
		const struct fabric_port *next;
		uint8_t entry, next_vl;

		if (!sw || !fabric_is_switch(sw) || vl == FABRIC_DISCARD)
			return false;
		entry = fabric_entry(sw, dlid);
		if (!entry || entry > sw->nports)
			return false;
		next = &sw->port[entry];
		next_vl = fabric_vl(next, out->peer->num, sl);
		if (out == a->out && vl == a->vl)
			return next == b->out && next_vl == b->vl;
		out = next;
		vl = next_vl;
	}
	return false;
}

static bool waits_for_lid(const struct fabric *f, unsigned int dlid, const struct channel *a,
			  const struct channel *b, struct wait *wait)
{
	for (unsigned int slid = 1; slid < f->lids; slid++) {
		const struct fabric_port *src = f->lid[slid];

		if (!src || fabric_is_switch(src->node) || src == f->lid[dlid])
			continue;
		if (takes(f, src, slid, dlid, a, b)) {
			*wait = (struct wait){ slid, dlid, fabric_sl(f, slid, dlid) };
			return true;
		}
	}
	return false;
}

/* Names one path that makes the channel wait for the next one. */
static void explain(const struct fabric *f, const struct channel *a, const struct channel *b,
		    struct wait *wait)
{
	for (unsigned int dlid = 1; dlid < f->lids; dlid++) {
		if (!f->lid[dlid] || fabric_is_switch(f->lid[dlid]->node) ||
		    fabric_entry(a->out->node, dlid) != a->out->num ||
		    fabric_entry(b->out->node, dlid) != b->out->num)
			continue;
		if (waits_for_lid(f, dlid, a, b, wait))
			return;
	}
}

unsigned int cycles_find(const struct flow *l, struct cycle **cycles)
{
	size_t n = (size_t)l->ports * FABRIC_LANES;
	struct search s = { .l = l };

	s.port = fabric_alloc(l->ports, sizeof(*s.port));
	for (unsigned int i = 0; i < l->f->nodes; i++)
		for (unsigned int p = 0; p <= l->f->node[i]->nports; p++)
			s.port[l->base[i] + p] = &l->f->node[i]->port[p];
	s.seen = fabric_alloc(n, sizeof(*s.seen));
	s.low = fabric_alloc(n, sizeof(*s.low));
	s.knot = fabric_alloc(n, sizeof(*s.knot));
	s.stack = fabric_alloc(n, sizeof(*s.stack));
	s.frame = fabric_alloc(n, sizeof(*s.frame));
	s.from = fabric_alloc(n, sizeof(*s.from));
	s.queue = fabric_alloc(n, sizeof(*s.queue));
	for (unsigned int i = 0; i < l->ports; i++)
		for (unsigned int vl = 0; fabric_is_switch(s.port[i]->node) && vl < FABRIC_LANES; vl++)
			if (s.port[i]->peer && !s.seen[i * FABRIC_LANES + vl])
				visit(&s, i * FABRIC_LANES + vl);
	for (unsigned int i = 0; i < s.ncycles; i++)
		for (unsigned int j = 0; j < s.cycles[i].length; j++)
			explain(l->f, &s.cycles[i].channel[j],
				&s.cycles[i].channel[(j + 1) % s.cycles[i].length],
				&s.cycles[i].wait[j]);
	free(s.port);
	free(s.seen);
	free(s.low);
	free(s.knot);
	free(s.stack);
	free(s.frame);
	free(s.from);
	free(s.queue);
	*cycles = s.cycles;
	return s.ncycles;
}

void cycles_free(struct cycle *cycles, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		free(cycles[i].channel);
		free(cycles[i].wait);
	}
	free(cycles);
}
