// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The subnet as it is set up: what readers fill. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fabric.h"

/* A slot of the hash: node GUIDs and port GUIDs may be the same number. */
struct fabric_guid {
	uint64_t guid;
	struct fabric_node *node;
	struct fabric_port *port;
};

void *fabric_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p) {
		fprintf(stderr, "repath: no memory for %zu times %zu bytes\n", n, size);
		exit(1);
	}
	return p;
}

struct fabric *fabric_new(void)
{
	struct fabric *f = fabric_alloc(1, sizeof(*f));

	f->slots = 1024;
	f->guids = fabric_alloc(f->slots, sizeof(*f->guids));
	return f;
}

void fabric_free(struct fabric *f)
{
	if (!f)
		return;
	for (unsigned int i = 0; i < f->nodes; i++) {
		struct fabric_node *n = f->node[i];

		for (unsigned int p = 0; p <= n->nports; p++)
			free(n->port[p].sl2vl);
		free(n->port);
		free(n->table);
		free(n->name);
		free(n);
	}
	for (unsigned int lid = 0; lid < f->lids; lid++)
		free(f->sl[lid]);
	free(f->node);
	free(f->sw);
	free(f->guids);
	free(f);
}

static struct fabric_guid *slot_of(struct fabric_guid *guids, size_t slots, uint64_t guid)
{
	size_t at = (guid * 0x9e3779b97f4a7c15ull) >> 32 & (slots - 1);

	while ((guids[at].node || guids[at].port) && guids[at].guid != guid)
		at = (at + 1) & (slots - 1);
	return &guids[at];
}

static struct fabric_guid *slot_for(struct fabric *f, uint64_t guid)
{
	struct fabric_guid *s;

	if (f->used * 2 >= f->slots) {
		struct fabric_guid *more = fabric_alloc(f->slots * 2, sizeof(*more));

		for (size_t i = 0; i < f->slots; i++)
			if (f->guids[i].node || f->guids[i].port)
				*slot_of(more, f->slots * 2, f->guids[i].guid) = f->guids[i];
		free(f->guids);
		f->guids = more;
		f->slots *= 2;
	}
	s = slot_of(f->guids, f->slots, guid);
	if (!s->node && !s->port) {
		s->guid = guid;
		f->used++;
	}
	return s;
}

struct fabric_node *fabric_node(const struct fabric *f, uint64_t guid)
{
	return slot_of(f->guids, f->slots, guid)->node;
}

struct fabric_port *fabric_port_of(const struct fabric *f, uint64_t port_guid)
{
	return slot_of(f->guids, f->slots, port_guid)->port;
}

bool fabric_name_port(struct fabric *f, struct fabric_port *p, uint64_t port_guid)
{
	struct fabric_guid *s;

	if (!port_guid || p->guid == port_guid)
		return true;
	s = slot_for(f, port_guid);
	if (p->guid || (s->port && s->port != p))
		return false;
	s->port = p;
	p->guid = port_guid;
	return true;
}

/* A node names itself: neither a terminal nor a drawing must take that for its own language. */
static char *printable(const char *name)
{
	char *clean = fabric_alloc(strlen(name) + 1, 1);

	for (size_t i = 0; name[i]; i++)
		clean[i] = name[i] < ' ' || name[i] > '~' || strchr("\"\\<>&", name[i]) ? '?' : name[i];
	return clean;
}

void fabric_rename(struct fabric_node *n, const char *name)
{
	free(n->name);
	n->name = printable(name);
}

/* Arrays of pointers double when their length is a power of two. */
static void append(struct fabric_node ***list, unsigned int *n, struct fabric_node *node)
{
	if (!(*n & (*n - 1))) {
		struct fabric_node **more = fabric_alloc(*n ? 2ul * *n : 1, sizeof(*more));

		if (*n)
			memcpy(more, *list, *n * sizeof(*more));
		free(*list);
		*list = more;
	}
	(*list)[(*n)++] = node;
}

struct fabric_node *fabric_add(struct fabric *f, uint64_t guid, bool is_switch,
			       unsigned int nports, const char *name)
{
	struct fabric_node *n = fabric_node(f, guid);

	if (n)
		return fabric_is_switch(n) == is_switch && n->nports == nports ? n : NULL;
	if (!guid || !nports || nports > FABRIC_PORTS)
		return NULL;
	n = fabric_alloc(1, sizeof(*n));
	n->guid = guid;
	n->name = printable(name);
	n->index = f->nodes;
	n->order = is_switch ? (int)f->switches : -1;
	n->nports = nports;
	n->port = fabric_alloc(nports + 1, sizeof(*n->port));
	for (unsigned int p = 0; p <= nports; p++) {
		n->port[p].node = n;
		n->port[p].num = p;
	}
	slot_for(f, guid)->node = n;
	append(&f->node, &f->nodes, n);
	if (is_switch)
		append(&f->sw, &f->switches, n);
	return n;
}

bool fabric_cable(struct fabric_port *a, struct fabric_port *b)
{
	if (a == b || !a->num || !b->num)
		return false;
	if (a->peer || b->peer)
		return a->peer == b && b->peer == a;
	a->peer = b;
	b->peer = a;
	return true;
}

bool fabric_give_alias(struct fabric *f, struct fabric_port *p, unsigned int lid)
{
	if (!lid || lid >= FABRIC_LIDS || (f->lid[lid] && f->lid[lid] != p))
		return false;
	f->lid[lid] = p;
	if (f->lids <= lid)
		f->lids = lid + 1;
	/* Who tells of one tells of as many as there are, but not always how many. */
	while (p->lid && lid > p->lid && lid >= p->lid + (1u << p->lmc) && p->lmc < 7)
		p->lmc++;
	return true;
}

bool fabric_give_lid(struct fabric *f, struct fabric_port *p, unsigned int lid, unsigned int lmc)
{
	if (lmc > 7 || (p->lid && p->lid != lid))
		return false;
	for (unsigned int i = 0; i < 1u << lmc; i++)
		if (!fabric_give_alias(f, p, lid + i))
			return false;
	p->lid = lid;
	if (p->lmc < lmc)
		p->lmc = lmc;
	return true;
}

void fabric_set_entry(struct fabric_node *sw, unsigned int lid, uint8_t port)
{
	if (!sw->table) {
		sw->table = fabric_alloc(FABRIC_LIDS, 1);
		memset(sw->table, FABRIC_NO_PORT, FABRIC_LIDS);
	}
	sw->table[lid] = port;
}

void fabric_set_sl2vl(struct fabric *f, struct fabric_port *out, unsigned int in,
		      const uint8_t vl[FABRIC_LANES])
{
	if (!out->sl2vl) {
		out->sl2vl = fabric_alloc(out->node->nports + 1, sizeof(*out->sl2vl));
		/* Of input ports that nobody tells of, as without a table. */
		for (unsigned int i = 0; i <= out->node->nports; i++)
			for (unsigned int sl = 0; sl < FABRIC_LANES; sl++)
				out->sl2vl[i][sl] = sl;
	}
	memcpy(out->sl2vl[in], vl, FABRIC_LANES);
	f->has_sl2vl = true;
}

bool fabric_set_sl(struct fabric *f, unsigned int slid, unsigned int dlid, uint8_t sl)
{
	if (slid >= FABRIC_LIDS || !f->lid[slid] || dlid >= FABRIC_LIDS || !f->lid[dlid])
		return false;
	if (!f->sl_lids)
		f->sl_lids = f->lids;
	if (slid >= f->sl_lids)
		return false;
	if (!f->sl[dlid]) {
		f->sl[dlid] = fabric_alloc(f->sl_lids, 1);
		memset(f->sl[dlid], f->default_sl, f->sl_lids);
	}
	f->sl[dlid][slid] = sl;
	f->has_sl = true;
	return true;
}
