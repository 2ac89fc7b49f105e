// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which links between switches, and which lanes of them, paths of several partitions share. */
#include <stdio.h>
#include <stdlib.h>
#include "check.h"
#include "partition.h"

struct isolation {
	struct check *c;
	const struct partitions *all;
	uint64_t **users;		/* by port and lane, bits of partitions */
	unsigned int words;
};

/* One path: its links between switches are this partition's. */
static void mark(struct isolation *i, unsigned int partition, const struct fabric_port *src,
		 unsigned int dlid)
{
	const struct fabric *f = i->c->f;
	uint8_t sl = fabric_sl(f, src->lid, dlid);
	const struct fabric_port *in = src->peer;

	for (unsigned int hops = 0; hops <= f->switches; hops++) {
		const struct fabric_port *out;
		uint64_t **users;
		uint8_t entry, vl;

		if (!in || !fabric_is_switch(in->node))
			return;
		entry = fabric_entry(in->node, dlid);
		if (!entry || entry > in->node->nports)
			return;
		out = &in->node->port[entry];
		vl = fabric_vl(out, in->num, sl);
		if (!out->peer || !fabric_is_switch(out->peer->node) || vl == FABRIC_DISCARD)
			return;
		users = &i->users[flow_port(&i->c->flow, out) * FABRIC_LANES + vl];
		if (!*users)
			*users = fabric_alloc(i->words, sizeof(**users));
		(*users)[partition / 64] |= 1ull << partition % 64;
		in = out->peer;
	}
}

static void mark_all(struct isolation *i, unsigned int number)
{
	const struct partition *p = &i->all->partition[number];
	const struct fabric *f = i->c->f;

	for (unsigned int a = 0; a < p->members; a++) {
		const struct fabric_port *src = fabric_port_of(f, p->guid[a]);

		if (!src) {
			check_tell(i->c, "partition", false, 1,
				   "see if it is switched off, or if the file has its node GUID",
				   "partition %s has a member 0x%016lx that is no port of the subnet",
				   p->name, p->guid[a]);
			continue;
		}
		for (unsigned int b = 0; b < p->members && src->lid; b++) {
			const struct fabric_port *dst = fabric_port_of(f, p->guid[b]);

			if (a == b || !dst || !dst->lid || !(p->full[a] || p->full[b]))
				continue;
			for (unsigned int lid = dst->lid; lid < dst->lid + (1u << dst->lmc); lid++)
				mark(i, number, src, lid);
		}
	}
}

/* Names of partitions whose bits are set, and how many they are. */
static unsigned int names(const struct isolation *i, const uint64_t *users, FILE *to)
{
	unsigned int n = 0;

	for (unsigned int p = 0; p < i->all->n; p++)
		if (users[p / 64] >> p % 64 & 1)
			fprintf(to, "%s%s", n++ ? ", " : "", i->all->partition[p].name);
	return n;
}

static unsigned int count(const struct isolation *i, const uint64_t *users)
{
	unsigned int n = 0;

	for (unsigned int w = 0; w < i->words; w++)
		n += __builtin_popcountll(users[w]);
	return n;
}

/* A link in one direction: the partitions of all its lanes, and lanes that several share. */
static bool shared(struct isolation *i, const struct fabric_port *out, uint64_t *all,
		   uint16_t *lanes)
{
	*lanes = 0;
	for (unsigned int w = 0; w < i->words; w++)
		all[w] = 0;
	for (unsigned int vl = 0; vl < FABRIC_LANES; vl++) {
		const uint64_t *users =
			i->users[flow_port(&i->c->flow, out) * FABRIC_LANES + vl];

		for (unsigned int w = 0; users && w < i->words; w++)
			all[w] |= users[w];
		if (users && count(i, users) > 1) {
			*lanes |= 1u << vl;
			i->c->shared_lanes++;
		}
	}
	return count(i, all) > 1;
}

static void tell_shared(struct isolation *i, const struct fabric_port *out, const uint64_t *all,
			uint16_t lanes, bool wrong)
{
	char *text = NULL;
	size_t room = 0;
	FILE *to = open_memstream(&text, &room);

	if (!to)
		abort();
	for (unsigned int vl = 0; vl < FABRIC_LANES; vl++)
		if (lanes >> vl & 1)
			fprintf(to, "lane %u, ", vl);
	fprintf(to, "partitions ");
	names(i, all, to);
	fclose(to);
	check_tell(i->c, "shared", wrong, 1,
		   "give the partitions lanes of their own (an SL each), or links by a routing that"
		   " knows of partitions",
		   "%s port %u to %s port %u is shared: %s", out->node->name, out->num,
		   out->peer->node->name, out->peer->num, text);
	free(text);
}

static void tell_all(struct isolation *i, const struct check_wants *wants)
{
	uint64_t *all = fabric_alloc(i->words, sizeof(*all));
	const struct fabric *f = i->c->f;
	unsigned int told = 0;
	uint16_t lanes;

	for (unsigned int s = 0; s < f->switches; s++) {
		for (unsigned int p = 1; p <= f->sw[s]->nports; p++) {
			const struct fabric_port *out = &f->sw[s]->port[p];
			bool wrong;

			if (!out->peer || !shared(i, out, all, &lanes))
				continue;
			i->c->shared_links++;
			wrong = wants->isolation == ISOLATION_LINKS ||
				(wants->isolation == ISOLATION_LANES && lanes);
			if (told < TOLD && (wrong || wants->isolation == ISOLATION_NONE)) {
				tell_shared(i, out, all, lanes, wrong);
				told++;
			}
		}
	}
	free(all);
}

void check_isolation(struct check *c, const struct check_wants *wants)
{
	struct isolation i = { .c = c, .all = wants->partitions };

	i.words = c->user_words = (i.all->n + 63) / 64;
	i.users = c->users = fabric_alloc((size_t)c->flow.ports * FABRIC_LANES, sizeof(*i.users));
	for (unsigned int p = 0; p < i.all->n; p++)
		if (!i.all->partition[p].everybody)
			mark_all(&i, p);
	tell_all(&i, wants);
}
