// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Forwarding tables, SLtoVL tables and SLs of paths, as OpenSM and infiniband-diags print them. */
#include <string.h>
#include "read.h"

/* A port GUID in the comment behind an entry tells whose the LID is: so LIDs behind the base LID
 * become known, of which opensm-subnet.lst is silent.
 */
static bool entry_owner(struct fabric *f, struct lines *l, const char *s, unsigned int lid)
{
	const char *at = strstr(s, "portguid ");
	struct fabric_port *p;
	uint64_t guid;

	if (!at)
		return true;
	at += strlen("portguid ");
	p = take_number(&at, 16, UINT64_MAX, &guid) ? fabric_port_of(f, guid) : NULL;
	if (p && !fabric_give_alias(f, p, lid))
		return lines_bad(l, "LID %u is another port's", lid);
	return true;
}

/* "Unicast lids [0-12] of switch Lid 2 guid 0x.. ('S1'):" */
static struct fabric_node *table_of(struct fabric *f, struct lines *l)
{
	const char *s = strstr(l->line, " guid ");
	struct fabric_node *sw = NULL;
	uint64_t guid;

	if (s) {
		s += strlen(" guid ");
		if (take_number(&s, 16, UINT64_MAX, &guid))
			sw = fabric_node(f, guid);
	}
	if (!sw || !fabric_is_switch(sw)) {
		lines_bad(l, "the table of a switch that no cable is told of");
		return NULL;
	}
	return sw;
}

bool read_tables(struct fabric *f, struct lines *l)
{
	struct fabric_node *sw = NULL;

	while (lines_next(l)) {
		const char *s = l->line;
		uint64_t lid, port;

		if (!strncmp(s, "Unicast lids", 12)) {
			sw = table_of(f, l);
			if (!sw)
				return false;
			continue;
		}
		/* Titles and sums are words; entries begin with the LID. */
		if (strncmp(s, "0x", 2))
			continue;
		if (!sw || !take_number(&s, 16, UINT16_MAX, &lid) ||
		    !take_number(&s, 10, FABRIC_NO_PORT, &port))
			return lines_bad(l, "this is no entry of a forwarding table");
		if (!lid || lid >= FABRIC_LIDS)
			return lines_bad(l, "0x%x is no unicast LID", (unsigned int)lid);
		fabric_set_entry(sw, lid, port);
		if (!entry_owner(f, l, s, lid))
			return false;
	}
	return true;
}

/* opensm.fdbs: "0x0003 : 002  : 02   : yes", or "UNREACHABLE" instead of the port. */
bool read_routes(struct fabric *f, struct lines *l)
{
	struct fabric_node *sw = NULL;

	while (lines_next(l)) {
		const char *s = l->line;
		uint64_t guid, lid, port;

		if (take_text(&s, "dump_ucast_routes: Switch")) {
			sw = take_number(&s, 16, UINT64_MAX, &guid) ? fabric_node(f, guid) : NULL;
			if (!sw || !fabric_is_switch(sw))
				return lines_bad(l, "the table of a switch that no cable is told of");
			continue;
		}
		if (strncmp(s, "0x", 2))
			continue;
		if (!sw || !take_number(&s, 16, FABRIC_LIDS - 1, &lid) || !lid || !take_text(&s, ":"))
			return lines_bad(l, "this is no entry of a forwarding table");
		if (take_text(&s, "UNREACHABLE"))
			continue;
		if (!take_number(&s, 10, FABRIC_NO_PORT, &port))
			return lines_bad(l, "this is no port");
		fabric_set_entry(sw, lid, port);
	}
	return true;
}

/* "Switch 0x.., base LID 2, "S1"", or a host's port, by its GUID: then *@own is that port. */
static struct fabric_node *lanes_of(struct fabric *f, const char *s, struct fabric_port **own)
{
	struct fabric_node *node;
	uint64_t guid;

	*own = NULL;
	if (!take_number(&s, 16, UINT64_MAX, &guid))
		return NULL;
	node = fabric_node(f, guid);
	if (node && fabric_is_switch(node))
		return node;
	*own = fabric_port_of(f, guid);
	return *own ? (*own)->node : NULL;
}

bool read_sl2vl(struct fabric *f, struct lines *l)
{
	struct fabric_node *node = NULL;
	struct fabric_port *own = NULL;

	while (lines_next(l)) {
		uint64_t in, out, value;
		uint8_t vl[FABRIC_LANES];
		const char *s = l->line;

		if (!*s || *s == '#')
			continue;
		if (take_text(&s, "Switch") || take_text(&s, "Channel Adapter") ||
		    take_text(&s, "Router")) {
			node = lanes_of(f, s, &own);
			if (!node)
				return lines_bad(l, "a node that no cable is told of");
			continue;
		}
		if (!node || !take_number(&s, 10, node->nports, &in) ||
		    !take_number(&s, 10, node->nports, &out) || !take_text(&s, ":"))
			return lines_bad(l, "this is no SLtoVL table");
		for (unsigned int sl = 0; sl < FABRIC_LANES; sl++) {
			if (!take_number(&s, 10, FABRIC_LANES - 1, &value))
				return lines_bad(l, "SL %u has no lane there", sl);
			vl[sl] = value;
		}
		fabric_set_sl2vl(f, own ? own : &node->port[out], in, vl);
	}
	return true;
}

bool read_paths(struct fabric *f, struct lines *l)
{
	while (lines_next(l)) {
		const char *s = l->line;
		uint64_t slid, dlid, sl;

		if (!*s || *s == '#')
			continue;
		if (!take_number(&s, 0, FABRIC_LIDS - 1, &slid) ||
		    !take_number(&s, 0, FABRIC_LIDS - 1, &dlid) ||
		    !take_number(&s, 0, FABRIC_LANES - 1, &sl))
			return lines_bad(l, "this is no line \"slid dlid sl\"");
		if (!fabric_set_sl(f, slid, dlid, sl))
			return lines_bad(l, "LID %u or %u is nobody's", (unsigned int)slid,
					 (unsigned int)dlid);
	}
	return true;
}
