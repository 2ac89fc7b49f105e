// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibsim's net format, of which ibnetdiscover's output is a dialect:
 *
 *	vendid=0x2c9  devid=0x5a06  sysimgguid=0x..  switchguid=0x..  caguid=0x..
 *	switchguid+5		(from the last one that was set on)
 *	width=N  speed=N  extspeed=N  module="prefix"  include "file"  do CONSOLE LINE
 *	Switch 8 "id" # "description" enhanced port 0 lid 3 lmc 0
 *	Switch 8 "id" # "description" shared port	(ours: the inside of an HCA, shared.h)
 *	[1](portguid) "remote id"[2](portguid) w=4 s=2 e=2 # "remote description" lid 4 4xQDR
 *	[1] "remote id"[2] l=12.5		(ours: metres of cable)
 *	@[3] "alias"		another name for this port, to others "@alias", or "prefix@alias"
 *
 * A remote may be named before its record, so links are made at the end. Lines that are none of
 * these are ignored, as ibsim does.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

#define DEPTH 8

struct cable {
	uint32_t node;
	unsigned int port, peer_port;
	char *peer;
	int line;
};

struct alias {
	char name[200];		/* prefix@name */
	uint32_t node;
	unsigned int port;
};

struct reader {
	struct net *net;
	struct alias *aliases;
	unsigned int naliases;
	uint64_t guid_base[4];
	struct cable *cables;
	unsigned int ncables, room;
	uint32_t node;		/* whose ports follow, or NET_NONE */
	uint8_t width, speed, ext;
	uint32_t vendor, device;
	uint64_t sysimg;
	char prefix[64];
	const char *file;
	int line, depth;
};

static int fail(struct reader *r, const char *why)
{
	char reason[160];

	snprintf(reason, sizeof(reason), "%.150s", why);
	snprintf(r->net->error, sizeof(r->net->error), "%.60s:%d: %s", r->file, r->line, reason);
	return -1;
}

/* Copies "quoted" text at *at to text and moves *at behind it. */
static int quoted(const char **at, char *text, size_t size)
{
	const char *s = strchr(*at, '"'), *e = s ? strchr(s + 1, '"') : NULL;

	if (!e || (size_t)(e - s) > size)
		return -1;
	memcpy(text, s + 1, e - s - 1);
	text[e - s - 1] = '\0';
	*at = e + 1;
	return 0;
}

static void full_id(const struct reader *r, const char *id, char *full, size_t size)
{
	if (strchr(id, '@'))
		snprintf(full, size, "%s%s", *id == '@' ? r->prefix : "", id);
	else if (*r->prefix && !strchr(id, '#'))
		snprintf(full, size, "%s#%s", r->prefix, id);
	else
		snprintf(full, size, "%s", id);
}

static uint8_t width_code(unsigned int lanes)
{
	switch (lanes) {
	case 1: return 1;
	case 2: return 16;
	case 8: return 4;
	case 12: return 8;
	default: return 2;
	}
}

static void set_speed(struct net_port *port, const char *name)
{
	static const struct { const char *name; uint8_t speed, ext; } known[] = {
		{ "SDR", 1, 0 }, { "DDR", 2, 0 }, { "QDR", 4, 0 }, { "FDR10", 4, 0 },
		{ "FDR", 4, 1 }, { "EDR", 4, 2 }, { "HDR", 4, 4 }, { "NDR", 4, 8 },
	};

	for (unsigned int i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i].name, name)) {
			port->speed = known[i].speed;
			port->ext = known[i].ext;
		}
}

/* ibsim takes a description without quotes, too, up to what ibnetdiscover prints behind it. */
static void description(const char *comment, char *desc, size_t size)
{
	static const char *const ends[] = { " enhanced port ", " base port ", " lid ", " lmc ",
					    " shared port" };
	const char *at = comment + 1;
	size_t n;

	if (strchr(comment, '"')) {
		at = comment;
		if (quoted(&at, desc, size))
			*desc = '\0';
		return;
	}
	while (isspace((unsigned char)*at))
		at++;
	n = strlen(at);
	for (unsigned int i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		const char *end = strstr(comment, ends[i]);

		if (end && end < at + n)
			n = end < at ? 0 : end - at;
	}
	while (n && isspace((unsigned char)at[n - 1]))
		n--;
	snprintf(desc, size, "%.*s", (int)n, at);
}

/* The highest bit is what the link comes up with. */
static uint8_t best(unsigned long enabled)
{
	uint8_t bit = 1;

	while ((enabled >>= 1))
		bit <<= 1;
	return bit;
}

/* The same of widths, whose code for 2x is the highest. */
static uint8_t widest(unsigned long enabled)
{
	return enabled & 15 ? best(enabled & 15) : enabled & 16 ? 16 : 2;
}

static int parse_node(struct reader *r, const char *line, enum net_type type)
{
	char id[128], full[200], desc[64] = "";
	const char *at = line, *comment;
	unsigned long ports;
	struct net_node *node;

	while (*at && !isspace((unsigned char)*at))
		at++;
	ports = strtoul(at, NULL, 10);
	if (quoted(&at, id, sizeof(id)))
		return fail(r, "a node without a \"name\"");
	full_id(r, id, full, sizeof(full));
	comment = strchr(at, '#');
	if (comment)
		description(comment, desc, sizeof(desc));
	r->node = net_add(r->net, type, full, *desc ? desc : NULL,
			  ports > NET_MAX_PORTS ? NET_MAX_PORTS + 1 : ports);
	if (r->node == NET_NONE) {
		char why[256];

		snprintf(why, sizeof(why), "%s", r->net->error);
		return fail(r, why);
	}
	node = &r->net->nodes[r->node];
	node->esp0 = type == NET_SWITCH && strstr(at, "enhanced port 0") != NULL;
	node->shared = type == NET_SWITCH && strstr(at, "shared port") != NULL;
	if (node->shared && (ports < 2 || ports > NET_MAX_SHARED_VFS + 2))
		return fail(r, "a shared port has 2 to 9: the cable's, the PF's and the VFs'");
	node->vendor = r->vendor;
	node->device = r->device;
	node->sysimg = r->sysimg;
	r->vendor = 0;		/* these are of one node only */
	r->sysimg = 0;
	for (unsigned int i = 0; i <= node->nports; i++) {
		node->ports[i].width = r->width;
		node->ports[i].speed = r->speed;
		node->ports[i].ext = r->ext;
	}
	return 0;
}

/* @[port] "name" */
static int parse_alias(struct reader *r, const char *line)
{
	const struct net_node *node = &r->net->nodes[r->node];
	unsigned long num = line[1] == '[' ? strtoul(line + 2, NULL, 10) : 0;
	const char *at = line;
	struct alias *alias;
	char name[128];

	if (num > node->nports || !num)
		return fail(r, "an alias for a port that the node does not have");
	if (quoted(&at, name, sizeof(name)) || strpbrk(name, "#@"))
		return fail(r, "an alias without a \"name\", or with # or @ in it");
	alias = realloc(r->aliases, (r->naliases + 1) * sizeof(*alias));
	if (!alias)
		return fail(r, "out of memory");
	r->aliases = alias;
	alias += r->naliases;
	snprintf(alias->name, sizeof(alias->name), "%s@%s", r->prefix, name);
	for (unsigned int i = 0; i < r->naliases; i++)
		if (!strcmp(r->aliases[i].name, alias->name))
			return fail(r, "an alias that is there already");
	alias->node = r->node;
	alias->port = num;
	r->naliases++;
	return 0;
}

static int parse_port(struct reader *r, const char *line)
{
	struct net_node *node = &r->net->nodes[r->node];
	char id[128], full[200], speed[8];
	unsigned long num = strtoul(line + 1, NULL, 10), peer_port = 1;
	const char *at = line, *option, *tail;
	struct cable *cable;
	struct net_port *port;
	unsigned int lanes;

	if (num > node->nports || !num)
		return fail(r, "a port number that the node does not have");
	if (quoted(&at, id, sizeof(id)))
		return fail(r, "a port without a \"remote\"");
	full_id(r, id, full, sizeof(full));
	if (*at == '[')
		peer_port = strtoul(at + 1, NULL, 10);
	port = &node->ports[num];
	tail = strchr(at, '#');
	for (option = at; (option = strchr(option, '=')) && (!tail || option < tail); option++) {
		unsigned long value = strtoul(option + 1, NULL, 0);
		const char *word = option;

		while (word > at && isspace((unsigned char)word[-1]))
			word--;
		if (word[-1] == 'w')
			port->width = widest(value);
		else if (word[-1] == 's')
			port->speed = best(value & 7 ? value & 7 : 4);
		else if (word[-1] == 'e')
			port->ext = value & 15 ? best(value & 15) : 0;
		else if (word[-1] == 'l') {
			double metres = strtod(option + 1, NULL);

			if (!(metres >= 0.01 && metres <= NET_MAX_METRES))
				return fail(r, "a cable of no length that it can have");
			port->length = metres * 100 + 0.5;
		}
	}
	/* ibnetdiscover: ... # "description" lid 4 4xQDR */
	for (tail = tail ? tail : at; (tail = strstr(tail, "lid ")); tail += 4)
		if (sscanf(tail, "lid %*u %ux%7[A-Z0-9]", &lanes, speed) == 2) {
			port->width = width_code(lanes);
			set_speed(port, speed);
		}
	if (r->ncables == r->room) {
		unsigned int room = r->room ? r->room * 2 : 256;

		cable = realloc(r->cables, room * sizeof(*cable));
		if (!cable)
			return fail(r, "out of memory");
		r->cables = cable;
		r->room = room;
	}
	cable = &r->cables[r->ncables];
	*cable = (struct cable){ r->node, num, peer_port, strdup(full), r->line };
	if (!cable->peer)
		return fail(r, "out of memory");
	r->ncables++;
	return 0;
}

static int read_file(struct reader *r, FILE *file);

static int parse_include(struct reader *r, const char *line)
{
	const char *at = line, *outer = r->file;
	int outer_line = r->line, rc;
	char path[256];
	FILE *file;

	if (quoted(&at, path, sizeof(path)))
		return fail(r, "include without a \"file\"");
	if (r->depth == DEPTH)
		return fail(r, "files that include each other");
	file = fopen(path, "r");
	if (!file)
		return fail(r, "can not open the included file");
	r->file = path;
	r->depth++;
	rc = read_file(r, file);
	r->depth--;
	fclose(file);
	r->file = outer;
	r->line = outer_line;
	return rc;
}

/* What ibsim does while it reads is done when all is there. */
static int keep_line(struct reader *r, const char *line)
{
	char **todo = realloc(r->net->todo, (r->net->ntodo + 1) * sizeof(*todo));

	if (!todo)
		return fail(r, "out of memory");
	r->net->todo = todo;
	todo[r->net->ntodo] = strdup(line);
	if (!todo[r->net->ntodo])
		return fail(r, "out of memory");
	r->net->ntodo++;
	return 0;
}

static int parse_line(struct reader *r, const char *line)
{
	const char *value = strchr(line, '=') ? strchr(line, '=') : strchr(line, '+');
	uint64_t number = value ? strtoull(value + 1, NULL, 0) : 0;
	enum net_type type;

	if (*line == '[') {
		if (r->node == NET_NONE)
			return fail(r, "a port outside a node");
		return parse_port(r, line);
	}
	if (*line == '@') {
		if (r->node == NET_NONE)
			return fail(r, "an alias outside a node");
		return parse_alias(r, line);
	}
	if (*line == '#')
		return 0;
	r->node = NET_NONE;
	if (!strncmp(line, "switchguid", 10))
		type = NET_SWITCH;
	else if (!strncmp(line, "hcaguid", 7) || !strncmp(line, "caguid", 6))
		type = NET_HCA;
	else if (!strncmp(line, "rtguid", 6))
		type = NET_ROUTER;
	else if (!strncmp(line, "Switch", 6))
		return parse_node(r, line, NET_SWITCH);
	else if (!strncmp(line, "Hca", 3) || !strncmp(line, "Ca", 2))
		return parse_node(r, line, NET_HCA);
	else if (!strncmp(line, "Rt", 2))
		return parse_node(r, line, NET_ROUTER);
	else if (!strncmp(line, "include", 7))
		return parse_include(r, line);
	else if (!strncmp(line, "do", 2))
		return keep_line(r, line + 2);
	else {
		if (!strncmp(line, "vendid", 6))
			r->vendor = number;
		else if (!strncmp(line, "devid", 5))
			r->device = number;
		else if (!strncmp(line, "sysimgguid", 10))
			r->sysimg = number;
		else if (!strncmp(line, "width", 5))
			r->width = widest(number);
		else if (!strncmp(line, "speed", 5))
			r->speed = best(number & 7 ? number & 7 : 4);
		else if (!strncmp(line, "extspeed", 8))
			r->ext = number & 15 ? best(number & 15) : 0;
		else if (!strncmp(line, "module", 6)) {
			const char *at = line;

			if (quoted(&at, r->prefix, sizeof(r->prefix)))
				return fail(r, "module without a \"name\"");
		}
		return 0;
	}
	if (value && *value == '=')
		r->guid_base[type] = number;
	if (value)
		r->net->next_guid[type] = r->guid_base[type] + (*value == '+' ? number : 0);
	return 0;
}

static int read_file(struct reader *r, FILE *file)
{
	char line[1024];

	for (r->line = 1; fgets(line, sizeof(line), file); r->line++) {
		line[strcspn(line, "\r\n")] = '\0';
		if (parse_line(r, line))
			return -1;
	}
	r->node = NET_NONE;
	return 0;
}

static unsigned int lanes_of(uint8_t width)
{
	return width == 16 ? 2 : width == 1 ? 1 : width == 8 ? 12 : width == 4 ? 8 : 4;
}

/* A link comes up with what both its ends can, and has one length. */
static void agree(struct net_port *a, struct net_port *b)
{
	a->width = b->width = lanes_of(a->width) < lanes_of(b->width) ? a->width : b->width;
	a->speed = b->speed = a->speed < b->speed ? a->speed : b->speed;
	a->ext = b->ext = a->ext < b->ext ? a->ext : b->ext;
	a->length = b->length = a->length > b->length ? a->length : b->length;
}

static uint32_t find_peer(const struct reader *r, struct cable *c)
{
	for (unsigned int i = 0; i < r->naliases && strchr(c->peer, '@'); i++)
		if (!strcmp(r->aliases[i].name, c->peer)) {
			c->peer_port = r->aliases[i].port;
			return r->aliases[i].node;
		}
	return net_find(r->net, c->peer);
}

static int plug_cables(struct reader *r)
{
	for (unsigned int i = 0; i < r->ncables; i++) {
		struct cable *c = &r->cables[i];
		uint32_t peer = find_peer(r, c);
		struct net_port *port = &r->net->nodes[c->node].ports[c->port];

		r->line = c->line;
		if (peer == NET_NONE)	/* ibsim, too, leaves the port open */
			continue;
		/* Both ends usually name the cable. */
		if (port->peer == peer && port->peer_port == c->peer_port)
			continue;
		if (net_plug(r->net, c->node, c->port, peer, c->peer_port)) {
			char why[256];

			snprintf(why, sizeof(why), "%s", r->net->error);
			return fail(r, why);
		}
	}
	for (unsigned int i = 0; i < r->ncables; i++) {
		struct net_port *port = &r->net->nodes[r->cables[i].node].ports[r->cables[i].port];

		if (port->peer != NET_NONE)
			agree(port, &r->net->nodes[port->peer].ports[port->peer_port]);
	}
	return 0;
}

int net_read_stream(struct net *net, FILE *file, const char *name)
{
	struct reader r = {
		.net = net, .file = name, .node = NET_NONE, .width = 2, .speed = 4,
	};
	int rc;

	memcpy(r.guid_base, net->next_guid, sizeof(r.guid_base));
	rc = read_file(&r, file);
	if (!rc)
		rc = plug_cables(&r);
	for (unsigned int i = 0; i < r.ncables; i++)
		free(r.cables[i].peer);
	free(r.cables);
	free(r.aliases);
	return rc;
}

int net_read(struct net *net, const char *path)
{
	FILE *file = fopen(path, "r");
	int rc;

	if (!file) {
		snprintf(net->error, sizeof(net->error), "can not open %.200s", path);
		return -1;
	}
	rc = net_read_stream(net, file, path);
	fclose(file);
	return rc;
}
