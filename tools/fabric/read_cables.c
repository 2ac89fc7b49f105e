// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Nodes, cables and LIDs: OpenSM's opensm-subnet.lst, and what ibnetdiscover prints. */
#include <string.h>
#include "read.h"

/* The number behind @key, in the text that ends at @end. */
static bool number_of(const char *s, const char *end, const char *key, int base, uint64_t max,
		      uint64_t *value)
{
	const char *at = strstr(s, key);

	if (!at || at >= end)
		return false;
	at += strlen(key);
	return take_number(&at, base, max, value);
}

/* "{ SW Ports:05 ... NodeGUID:.. PortGUID:.. ... {S1} LID:0002 PN:02 }", the brace taken already. */
static struct fabric_port *subnet_end(struct fabric *f, const char **s)
{
	uint64_t ports, guid, port_guid, lid, num;
	const char *name = strchr(*s, '{'), *name_end, *end;
	struct fabric_node *n;
	char description[65];
	bool is_switch = take_text(s, "SW");

	/* A description may have braces of its own: its end is where the LID comes. */
	name_end = name ? strstr(name, "} LID:") : NULL;
	end = name_end ? strchr(name_end + 1, '}') : NULL;
	if (!end || !number_of(*s, name, "Ports:", 16, FABRIC_PORTS, &ports) ||
	    !number_of(*s, name, "NodeGUID:", 16, UINT64_MAX, &guid) ||
	    !number_of(*s, name, "PortGUID:", 16, UINT64_MAX, &port_guid) ||
	    !number_of(name_end, end, "LID:", 16, FABRIC_LIDS - 1, &lid) ||
	    !number_of(name_end, end, "PN:", 16, ports, &num))
		return NULL;
	snprintf(description, sizeof(description), "%.*s", (int)(name_end - name - 1), name + 1);
	n = fabric_add(f, guid, is_switch, ports, description);
	if (!n || !num)
		return NULL;
	if (!fabric_name_port(f, &n->port[is_switch ? 0 : num], port_guid))
		return NULL;
	if (lid && !fabric_give_lid(f, &n->port[is_switch ? 0 : num], lid, 0))
		return NULL;
	*s = end + 1;
	return &n->port[num];
}

/* "PHY=4x" and "SPD=10": lanes of copper, and Gb/s of each. */
static unsigned int subnet_speed(const char *s)
{
	const char *end = s + strlen(s);
	uint64_t width, speed;

	if (!number_of(s, end, "PHY=", 10, 12, &width) || !number_of(s, end, "SPD=", 10, 400, &speed))
		return 0;
	return speed == 2 ? width * 5 / 2 : width * speed;
}

bool read_subnet(struct fabric *f, struct lines *l)
{
	while (lines_next(l)) {
		struct fabric_port *a, *b;
		const char *s = l->line;

		if (!*s)
			continue;
		a = take_text(&s, "{") ? subnet_end(f, &s) : NULL;
		b = a && take_text(&s, "{") ? subnet_end(f, &s) : NULL;
		if (!b)
			return lines_bad(l, "this is no link, or its node is told of otherwise"
					 " before; is the file whole?");
		if (!fabric_cable(a, b))
			return lines_bad(l, "port %u of %s or %u of %s has another cable already",
					 a->num, a->node->name, b->num, b->node->name);
		a->gbps = b->gbps = subnet_speed(s);
	}
	return true;
}

/* The text in quotes that is next; what is behind is left in *@s. */
static bool quoted(const char **s, char *text, size_t room)
{
	const char *from = strchr(*s, '"'), *to;

	/* A description may have quotes of its own, an identifier has none. */
	to = from ? strchr(from + 1, '"') : NULL;
	if (!to)
		return false;
	snprintf(text, room, "%.*s", (int)(to - from - 1), from + 1);
	*s = to + 1;
	return true;
}

/* "S-0000000000200018": what a node is, and its GUID. */
static bool identity(const char *id, bool *is_switch, uint64_t *guid)
{
	const char *s = id + 2;

	*is_switch = id[0] == 'S';
	return (id[0] == 'S' || id[0] == 'H' || id[0] == 'R') && id[1] == '-' &&
	       take_number(&s, 16, UINT64_MAX, guid) && *guid && !*s;
}

/* A node's first line. In the first pass nodes are made, in the second they are found. */
static bool net_node(struct fabric *f, struct lines *l, struct fabric_node **node, bool first)
{
	const char *s = l->line + strcspn(l->line, "\t "), *lid;
	char id[32], name[65];
	uint64_t ports, guid, value, lmc = 0;
	bool is_switch;

	if (!take_number(&s, 10, FABRIC_PORTS, &ports) || !quoted(&s, id, sizeof(id)) ||
	    !identity(id, &is_switch, &guid) || !quoted(&s, name, sizeof(name)))
		return lines_bad(l, "this is no node");
	*node = fabric_add(f, guid, is_switch, ports, name);
	if (!*node)
		return lines_bad(l, "node %s is told of otherwise before", id);
	if (!first || !is_switch)
		return true;
	lid = strstr(s, " lid ");
	if (!lid)
		return true;
	lid += 5;
	if (!take_number(&lid, 10, FABRIC_LIDS - 1, &value))
		return lines_bad(l, "this is no LID");
	if (take_text(&lid, "lmc") && !take_number(&lid, 10, 7, &lmc))
		return lines_bad(l, "this is no LMC");
	if (value && !fabric_give_lid(f, &(*node)->port[0], value, lmc))
		return lines_bad(l, "LID %u is another port's", (unsigned int)value);
	fabric_name_port(f, &(*node)->port[0], guid);
	return true;
}

/* A host's own port: its GUID stands behind the port's number, its LID in the comment. */
static bool net_host_port(struct fabric *f, struct lines *l, struct fabric_port *p)
{
	const char *s = strchr(l->line, '('), *lid = strstr(l->line, "# lid ");
	uint64_t guid, value, lmc = 0;

	if (s) {
		s++;
		if (!take_number(&s, 16, UINT64_MAX, &guid) || !fabric_name_port(f, p, guid))
			return lines_bad(l, "this is no port GUID, or another port's");
	}
	if (!lid)
		return true;
	lid += 6;
	if (!take_number(&lid, 10, FABRIC_LIDS - 1, &value) ||
	    (take_text(&lid, "lmc") && !take_number(&lid, 10, 7, &lmc)))
		return lines_bad(l, "this is no LID");
	if (value && !fabric_give_lid(f, p, value, lmc))
		return lines_bad(l, "LID %u is another port's", (unsigned int)value);
	return true;
}

/* "4xQDR" at the end of a line. */
static unsigned int net_speed(const char *line)
{
	/* Mbit/s a lane, as they are called. */
	static const struct {
		const char *name;
		unsigned int mbps;
	} speeds[] = {
		{ "SDR", 2500 }, { "DDR", 5000 }, { "QDR", 10000 }, { "FDR10", 10000 }, { "FDR", 14000 }, { "EDR", 25000 },
		{ "HDR", 50000 }, { "NDR", 100000 }, { "XDR", 200000 },
	};
	const char *word = strrchr(line, ' ');
	uint64_t width;

	word = word ? word + 1 : line;
	if (!take_number(&word, 10, 12, &width) || *word++ != 'x')
		return 0;
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (!strcmp(word, speeds[i].name))
			return width * speeds[i].mbps / 1000;
	return 0;
}

/* "[1](10000b) "S-..."[3]  # ...": a cable, in the second pass, when both ends are there. */
static bool net_cable(struct fabric *f, struct lines *l, struct fabric_node *node)
{
	struct fabric_node *peer;
	struct fabric_port *a, *b;
	const char *s = l->line + 1;
	uint64_t num, guid, peer_num;
	bool is_switch;
	char id[32];

	if (!take_number(&s, 10, node->nports, &num) || !num || *s != ']' ||
	    !quoted(&s, id, sizeof(id)) || !identity(id, &is_switch, &guid) || *s++ != '[' ||
	    !take_number(&s, 10, FABRIC_PORTS, &peer_num))
		return lines_bad(l, "this is no cable");
	peer = fabric_node(f, guid);
	if (!peer || !peer_num || peer_num > peer->nports || fabric_is_switch(peer) != is_switch)
		return lines_bad(l, "the file tells of no port %u of %s", (unsigned int)peer_num, id);
	a = &node->port[num];
	b = &peer->port[peer_num];
	if (!fabric_cable(a, b))
		return lines_bad(l, "port %u of %s or %u of %s has another cable already",
				 a->num, node->name, b->num, peer->name);
	a->gbps = net_speed(l->line);
	return fabric_is_switch(node) || net_host_port(f, l, a);
}

static bool net_pass(struct fabric *f, struct lines *l, bool first)
{
	struct fabric_node *node = NULL;

	while (lines_next(l)) {
		if (!strncmp(l->line, "Switch", 6) || !strncmp(l->line, "Ca", 2) ||
		    !strncmp(l->line, "Rt", 2)) {
			if (!net_node(f, l, &node, first))
				return false;
		} else if (*l->line == '[' && !first) {
			if (!node)
				return lines_bad(l, "a cable before any node");
			if (!net_cable(f, l, node))
				return false;
		}
	}
	return true;
}

bool read_net(struct fabric *f, struct lines *l)
{
	if (!net_pass(f, l, true))
		return false;
	if (fseek(l->file, 0, SEEK_SET))
		return lines_bad(l, "it can not be read twice");
	l->number = 0;
	return net_pass(f, l, false);
}
