// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Whether packets arrive, whether they go round, and whether they take the shortest way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"

/* Where packets end that do not arrive, for how many, and one of them. */
struct dead_end {
	uint64_t paths;
	uint16_t slid;
	uint16_t dlid;
};

struct reach {
	struct check *c;
	struct walk w;
	struct ranks ranks;
	const struct fabric_node *ranked;	/* whose ranks are at hand */
	unsigned int *sources;			/* by switch, ports of hosts with a LID */
	const struct fabric_port **source;	/* by switch, one of them */
	struct dead_end (*dead)[WALK_LOOP + 1];	/* by the switch at which they end */
	struct dead_end own;			/* ways from and to switches' own LIDs */
	struct dead_end longest;
	unsigned int loops_told;
};

static void count_sources(struct reach *r)
{
	const struct fabric *f = r->c->f;

	for (unsigned int i = 0; i < f->nodes; i++) {
		for (unsigned int p = 1; p <= f->node[i]->nports; p++) {
			const struct fabric_port *port = &f->node[i]->port[p];

			if (fabric_is_switch(f->node[i]) || !port->lid || !walk_leaf(port))
				continue;
			r->sources[walk_leaf(port)->order]++;
			r->source[walk_leaf(port)->order] = port;
		}
	}
}

/* A source at that switch other than @not, for an example. */
static unsigned int some_slid(const struct reach *r, unsigned int sw, const struct fabric_port *not)
{
	const struct fabric_node *n = r->c->f->sw[sw];

	if (r->source[sw] && r->source[sw] != not)
		return r->source[sw]->lid;
	for (unsigned int p = 1; p <= n->nports; p++) {
		const struct fabric_port *peer = n->port[p].peer;

		if (peer && peer != not && peer->lid && !fabric_is_switch(peer->node))
			return peer->lid;
	}
	return 0;
}

static void tell_loop(struct reach *r)
{
	const struct fabric *f = r->c->f;
	const struct fabric_port *to = f->lid[r->w.lid];
	char way[600] = "";
	size_t n = 0;
	int start = -1, at;

	for (unsigned int i = 0; start < 0 && i < f->switches; i++)
		if (r->w.end[i] == WALK_LOOP)
			start = r->w.stop[i];
	if (start < 0)
		return;
	r->c->looping++;
	if (r->loops_told++ >= TOLD)
		return;
	at = start;
	do {
		n += snprintf(way + n, sizeof(way) - n, "%s port %u -> ", f->sw[at]->name,
			      fabric_entry(f->sw[at], r->w.lid));
		at = r->w.next[at];
	} while (at != start && n < sizeof(way) - 100);
	check_tell(r->c, "loop", true, 1,
		   "have the subnet manager write these tables again; a packet goes round until it"
		   " is too old, and takes the place of others",
		   "packets for LID %u (%s) go round: %s%s%s", r->w.lid, to->node->name, way,
		   at == start ? "" : "... -> ", f->sw[start]->name);
}

static void count_dead(struct reach *r, unsigned int sw, unsigned int paths,
		       const struct fabric_port *to)
{
	struct dead_end *d = &r->dead[r->w.stop[sw]][r->w.end[sw]];

	d->paths += paths;
	if (!d->dlid) {
		d->slid = some_slid(r, sw, to);
		d->dlid = r->w.lid;
	}
}

/* All hosts to one host's LID, and that LID from the switches' own ports. */
static void reach_host(struct reach *r, const struct fabric_port *to)
{
	const struct fabric_node *leaf = walk_leaf(to);
	struct check *c = r->c;

	for (unsigned int i = 0; i < c->f->switches; i++) {
		unsigned int paths = r->sources[i] - (leaf == c->f->sw[i] && to->lid);
		unsigned int more, hops = r->w.hops[i];

		if (r->w.end[i] != WALK_ARRIVES) {
			c->pairs += paths;
			c->unreached += paths;
			if (paths)
				count_dead(r, i, paths, to);
			if (c->f->sw[i]->port[0].lid) {
				c->management++;
				if (!r->own.paths)
					r->own.slid = c->f->sw[i]->port[0].lid;
				if (!r->own.paths++)
					r->own.dlid = r->w.lid;
			}
			continue;
		}
		c->pairs += paths;
		c->hops[hops < CHECK_HOPS ? hops : CHECK_HOPS - 1] += paths;
		more = leaf ? hops - 1 - r->ranks.hops[i] : 0;
		if (!more || !paths)
			continue;
		c->longer += paths;
		if (more > c->most_longer) {
			c->most_longer = more;
			r->longest.slid = some_slid(r, i, to);
			r->longest.dlid = r->w.lid;
		}
	}
}

static void reach_switch(struct reach *r)
{
	for (unsigned int i = 0; i < r->c->f->switches; i++) {
		if (r->w.end[i] == WALK_ARRIVES || !r->sources[i])
			continue;
		r->c->management += r->sources[i];
		if (!r->own.paths) {
			r->own.slid = some_slid(r, i, NULL);
			r->own.dlid = r->w.lid;
		}
		r->own.paths += r->sources[i];
	}
}

static void reach_lid(struct reach *r, unsigned int lid)
{
	const struct fabric_port *to = r->c->f->lid[lid];
	const struct fabric_node *leaf = fabric_is_switch(to->node) ? to->node : walk_leaf(to);

	walk_to(&r->w, lid);
	tell_loop(r);
	if (fabric_is_switch(to->node)) {
		reach_switch(r);
		return;
	}
	if (!leaf) {
		/* A host at a host, or without a cable: nobody else can reach it. */
		bool neighbour = to->peer && to->peer->lid;

		r->c->pairs += neighbour;
		r->c->hops[0] += neighbour;
		flow_add(&r->c->flow, &r->w);
		return;
	}
	if (r->ranked != leaf) {
		ranks_of(&r->ranks, r->c->f, leaf);
		r->ranked = leaf;
	}
	reach_host(r, to);
	flow_add(&r->c->flow, &r->w);
}

static void tell_dead_ends(struct reach *r)
{
	static const char *const why[] = {
		[WALK_NO_ENTRY] = "whose table has no entry for them",
		[WALK_NO_CABLE] = "whose table names a port without a cable",
		[WALK_STRANGER] = "whose table gives them to somebody else",
		[WALK_LOOP] = "where they have come into a loop",
	};
	const struct fabric *f = r->c->f;
	unsigned int told = 0, more = 0;
	uint64_t paths = 0;

	for (unsigned int i = 0; i < f->switches; i++) {
		for (unsigned int end = WALK_NO_ENTRY; end <= WALK_LOOP; end++) {
			const struct dead_end *d = &r->dead[i][end];

			if (!d->paths)
				continue;
			if (told++ >= TOLD) {
				more++;
				paths += d->paths;
				continue;
			}
			check_tell(r->c, "unreachable", true, d->paths,
				   end == WALK_NO_CABLE ?
				   "see if a cable is out; the subnet manager has not routed around it" :
				   end == WALK_NO_ENTRY && !f->sw[i]->table ?
				   "nothing is known of its forwarding table: add that" :
				   "have the subnet manager route again, and see its log for what the"
				   " routing engine could not do",
				   "%lu path%s at switch %s, %s: as from %s (LID %u) to %s (LID %u)",
				   d->paths, d->paths == 1 ? " ends" : "s end", f->sw[i]->name, why[end], f->lid[d->slid] ?
				   f->lid[d->slid]->node->name : "nobody", d->slid,
				   f->lid[d->dlid]->node->name, d->dlid);
		}
	}
	if (more)
		check_tell(r->c, "unreachable", true, paths, "mend the others first",
			   "%lu paths end at %u more places", paths, more);
	if (r->loops_told > TOLD)
		check_tell(r->c, "loop", true, r->loops_told - TOLD, "mend the others first",
			   "packets for %u more LIDs go round", r->loops_told - TOLD);
	if (r->own.paths)
		check_tell(r->c, "management", true, r->own.paths,
			   "counters and tables of such a switch can not be read by its LID",
			   "of the ways from hosts to switches' own LIDs and back %lu do not arrive:"
			   " as from %s (LID %u) to %s (LID %u)", r->own.paths,
			   f->lid[r->own.slid] ? f->lid[r->own.slid]->node->name : "nobody",
			   r->own.slid, f->lid[r->own.dlid]->node->name, r->own.dlid);
}

void check_reach(struct check *c, const struct check_wants *wants)
{
	const struct fabric *f = c->f;
	struct reach r = { .c = c };

	walk_init(&r.w, f);
	ranks_init(&r.ranks, f);
	r.sources = fabric_alloc(f->switches, sizeof(*r.sources));
	r.source = fabric_alloc(f->switches, sizeof(*r.source));
	r.dead = fabric_alloc(f->switches, sizeof(*r.dead));
	count_sources(&r);
	for (unsigned int lid = 1; lid < f->lids; lid++)
		if (f->lid[lid])
			reach_lid(&r, lid);
	tell_dead_ends(&r);
	if (c->longer)
		check_tell(c, "longer", wants->minimal, c->longer,
			   "up*/down* and engines that avoid deadlocks without lanes do that; others"
			   " should not",
			   "%lu of %lu paths are longer than the shortest way, by %u cables at most:"
			   " as from %s (LID %u) to %s (LID %u)", c->longer, c->pairs, c->most_longer,
			   f->lid[r.longest.slid]->node->name, r.longest.slid,
			   f->lid[r.longest.dlid]->node->name, r.longest.dlid);
	walk_free(&r.w);
	ranks_free(&r.ranks);
	free(r.sources);
	free(r.source);
	free(r.dead);
}
