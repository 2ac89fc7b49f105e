// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A whole subnet as one file of lines, which programs and tests can write themselves:
 *
 *	repath fabric 1
 *	switch GUID PORTS NAME
 *	host GUID PORTS NAME
 *	lid GUID PORT LID LMC [PORTGUID]	of a switch PORT is 0
 *	cable GUID PORT GUID PORT [GBPS [VLS]]
 *	table GUID LID:PORT LID:PORT ...
 *	lanes GUID IN OUT VL VL ... (16)	IN "*": all input ports
 *	sl DLID SLID-SLID:SL ...		runs of SLIDs
 *	load GUID PORT WORDS WAITED		PortXmitData, PortXmitWait
 *
 * Nodes come first, then LIDs and cables, then the rest. GUIDs are hexadecimal, the rest decimal.
 */
#include <inttypes.h>
#include <string.h>
#include "read.h"

#define LOWEST	1		/* SLID 0 is nobody's */

static bool take_port(struct fabric *f, const char **s, struct fabric_port **p)
{
	struct fabric_node *n;
	uint64_t guid, num;

	if (!take_number(s, 16, UINT64_MAX, &guid))
		return false;
	n = fabric_node(f, guid);
	if (!n || !take_number(s, 10, n->nports, &num))
		return false;
	*p = &n->port[num];
	return true;
}

static bool node_line(struct fabric *f, const char *s, bool is_switch)
{
	uint64_t guid, ports;

	if (!take_number(&s, 16, UINT64_MAX, &guid) || !take_number(&s, 10, FABRIC_PORTS, &ports))
		return false;
	return !fabric_node(f, guid) && fabric_add(f, guid, is_switch, ports, s + (*s == ' '));
}

static bool lid_line(struct fabric *f, const char *s)
{
	uint64_t lid, lmc, guid = 0;
	struct fabric_port *p;

	if (!take_port(f, &s, &p) || fabric_is_switch(p->node) != !p->num ||
	    !take_number(&s, 10, FABRIC_LIDS - 1, &lid) || !take_number(&s, 10, 7, &lmc))
		return false;
	take_number(&s, 16, UINT64_MAX, &guid);
	return (!guid || fabric_name_port(f, p, guid)) &&
	       (!lid || fabric_give_lid(f, p, lid, lmc));
}

static bool cable_line(struct fabric *f, const char *s)
{
	uint64_t gbps = 0, vls = 0;
	struct fabric_port *a, *b;

	if (!take_port(f, &s, &a) || !take_port(f, &s, &b) || !fabric_cable(a, b))
		return false;
	if (take_number(&s, 10, UINT16_MAX, &gbps))
		take_number(&s, 10, FABRIC_DISCARD, &vls);
	a->gbps = b->gbps = gbps;
	a->vls = b->vls = vls;
	return true;
}

static bool table_line(struct fabric *f, const char *s)
{
	struct fabric_node *sw;
	uint64_t guid, lid, port;

	if (!take_number(&s, 16, UINT64_MAX, &guid))
		return false;
	sw = fabric_node(f, guid);
	if (!sw || !fabric_is_switch(sw))
		return false;
	while (take_number(&s, 10, FABRIC_LIDS - 1, &lid)) {
		if (!take_text(&s, ":") || !take_number(&s, 10, FABRIC_NO_PORT, &port))
			return false;
		fabric_set_entry(sw, lid, port);
	}
	return true;
}

static bool lanes_line(struct fabric *f, const char *s)
{
	uint64_t guid, in = 0, out, value;
	uint8_t vl[FABRIC_LANES];
	struct fabric_node *n;
	bool all;

	if (!take_number(&s, 16, UINT64_MAX, &guid))
		return false;
	n = fabric_node(f, guid);
	all = n && take_text(&s, "*");
	if (!n || (!all && !take_number(&s, 10, n->nports, &in)) ||
	    !take_number(&s, 10, n->nports, &out))
		return false;
	for (unsigned int sl = 0; sl < FABRIC_LANES; sl++) {
		if (!take_number(&s, 10, FABRIC_LANES - 1, &value))
			return false;
		vl[sl] = value;
	}
	for (unsigned int i = all ? 0 : in; i <= (all ? n->nports : in); i++)
		fabric_set_sl2vl(f, &n->port[out], i, vl);
	return true;
}

#define NO_PATH "none"

static bool sl_line(struct fabric *f, const char *s)
{
	uint64_t dlid, from, to, sl;

	if (!take_number(&s, 10, FABRIC_LIDS - 1, &dlid))
		return false;
	while (take_number(&s, 10, FABRIC_LIDS - 1, &from)) {
		if (!take_text(&s, "-") || !take_number(&s, 10, FABRIC_LIDS - 1, &to) ||
		    !take_text(&s, ":"))
			return false;
		if (take_text(&s, NO_PATH))
			sl = FABRIC_NO_SL;
		else if (!take_number(&s, 10, FABRIC_LANES - 1, &sl))
			return false;
		for (; from <= to; from++)
			if (f->lid[from] && !fabric_set_sl(f, from, dlid, sl))
				return false;
	}
	return true;
}

static bool load_line(struct fabric *f, const char *s)
{
	struct fabric_port *p;

	if (!take_port(f, &s, &p) || !take_number(&s, 10, UINT64_MAX, &p->load) ||
	    !take_number(&s, 10, UINT64_MAX, &p->waited))
		return false;
	f->has_load = true;
	return true;
}

static bool unanswered_line(struct fabric *f, const char *s)
{
	uint64_t n;

	if (!take_number(&s, 10, UINT32_MAX, &n))
		return false;
	f->unanswered = n;
	return true;
}

bool read_state(struct fabric *f, struct lines *l)
{
	while (lines_next(l)) {
		const char *s = l->line;
		bool good;

		if (!*s || *s == '#' || !strcmp(s, "repath fabric 1"))
			continue;
		if (take_text(&s, "switch "))
			good = node_line(f, s, true);
		else if (take_text(&s, "host "))
			good = node_line(f, s, false);
		else if (take_text(&s, "lid "))
			good = lid_line(f, s);
		else if (take_text(&s, "cable "))
			good = cable_line(f, s);
		else if (take_text(&s, "table "))
			good = table_line(f, s);
		else if (take_text(&s, "lanes "))
			good = lanes_line(f, s);
		else if (take_text(&s, "sl "))
			good = sl_line(f, s);
		else if (take_text(&s, "load "))
			good = load_line(f, s);
		else if (take_text(&s, "unanswered "))
			good = unanswered_line(f, s);
		else
			good = false;
		if (!good)
			return lines_bad(l, "\"%.40s\" is not understood, or does not fit what is"
					 " before it", l->line);
	}
	return true;
}

static void write_ports(const struct fabric_node *n, FILE *to)
{
	for (unsigned int p = 0; p <= n->nports; p++) {
		const struct fabric_port *port = &n->port[p];

		if (port->lid || port->guid)
			fprintf(to, "lid %" PRIx64 " %u %u %u %" PRIx64 "\n", n->guid, p, port->lid,
				port->lmc, port->guid);
	}
}

static void write_cables(const struct fabric_node *n, FILE *to)
{
	for (unsigned int p = 1; p <= n->nports; p++) {
		const struct fabric_port *a = &n->port[p], *b = a->peer;

		if (!b || b->node->index < n->index || (b->node == n && b->num < p))
			continue;
		fprintf(to, "cable %" PRIx64 " %u %" PRIx64 " %u %u %u\n", n->guid, p,
			b->node->guid, b->num, a->gbps, a->vls);
	}
}

static void write_lanes(const struct fabric_node *n, unsigned int in, const char *in_word,
			const struct fabric_port *out, FILE *to)
{
	fprintf(to, "lanes %" PRIx64 " %s %u", n->guid, in_word, out->num);
	for (unsigned int sl = 0; sl < FABRIC_LANES; sl++)
		fprintf(to, " %u", out->sl2vl[in][sl]);
	fputc('\n', to);
}

static void write_sl2vl(const struct fabric_node *n, FILE *to)
{
	for (unsigned int p = 0; p <= n->nports; p++) {
		const struct fabric_port *out = &n->port[p];
		bool same = true;

		for (unsigned int in = 1; out->sl2vl && in <= n->nports; in++)
			same = same && !memcmp(out->sl2vl[in], out->sl2vl[0], FABRIC_LANES);
		for (unsigned int in = 0; out->sl2vl && in <= (same ? 0 : n->nports); in++) {
			char word[8];

			snprintf(word, sizeof(word), "%u", in);
			write_lanes(n, in, same ? "*" : word, out, to);
		}
	}
}

static void write_sls(const struct fabric *f, unsigned int dlid, FILE *to)
{
	const uint8_t *row = f->sl[dlid];

	fprintf(to, "sl %u", dlid);
	for (unsigned int from = LOWEST, next; from < f->sl_lids; from = next) {
		for (next = from + 1; next < f->sl_lids && row[next] == row[from]; next++)
			;
		if (row[from] == FABRIC_NO_SL)
			fprintf(to, " %u-%u:" NO_PATH, from, next - 1);
		else
			fprintf(to, " %u-%u:%u", from, next - 1, row[from]);
	}
	fputc('\n', to);
}

void write_state(const struct fabric *f, FILE *to)
{
	fprintf(to, "repath fabric 1\n");
	if (f->unanswered)
		fprintf(to, "unanswered %u\n", f->unanswered);
	for (unsigned int i = 0; i < f->nodes; i++)
		fprintf(to, "%s %" PRIx64 " %u %s\n",
			fabric_is_switch(f->node[i]) ? "switch" : "host", f->node[i]->guid,
			f->node[i]->nports, f->node[i]->name);
	for (unsigned int i = 0; i < f->nodes; i++) {
		write_ports(f->node[i], to);
		write_cables(f->node[i], to);
	}
	for (unsigned int i = 0; i < f->switches; i++) {
		fprintf(to, "table %" PRIx64, f->sw[i]->guid);
		for (unsigned int lid = 1; lid < f->lids; lid++)
			if (fabric_entry(f->sw[i], lid) != FABRIC_NO_PORT)
				fprintf(to, " %u:%u", lid, fabric_entry(f->sw[i], lid));
		fputc('\n', to);
	}
	for (unsigned int i = 0; i < f->nodes; i++)
		write_sl2vl(f->node[i], to);
	for (unsigned int lid = 1; lid < f->lids; lid++)
		if (f->sl[lid])
			write_sls(f, lid, to);
	for (unsigned int i = 0; f->has_load && i < f->nodes; i++)
		for (unsigned int p = 1; p <= f->node[i]->nports; p++)
			if (f->node[i]->port[p].peer)
				fprintf(to, "load %" PRIx64 " %u %" PRIu64 " %" PRIu64 "\n",
					f->node[i]->guid, p, f->node[i]->port[p].load,
					f->node[i]->port[p].waited);
}
