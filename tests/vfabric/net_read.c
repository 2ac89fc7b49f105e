// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibsim's net format, of which ibnetdiscover's output is a dialect:
 *
 *	vendid=0x2c9  devid=0x5a06  sysimgguid=0x..  switchguid=0x..  caguid=0x..
 *	width=N  speed=N  extspeed=N  module="prefix"  include "file"
 *	Switch 8 "id" # "description" enhanced port 0 lid 3 lmc 0
 *	Switch 8 "id" # "description" shared port	(ours: the inside of an HCA, shared.h)
 *	[1](portguid) "remote id"[2](portguid) w=4 s=2 e=2 # "remote description" lid 4 4xQDR
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

struct reader {
	struct net *net;
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
	if (*r->prefix && !strchr(id, '#'))
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

/* The highest bit is what the link comes up with. */
static uint8_t best(unsigned long enabled)
{
	uint8_t bit = 1;

	while ((enabled >>= 1))
		bit <<= 1;
	return bit;
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
	if (comment && strchr(comment, '"')) {
		const char *text = comment;

		if (quoted(&text, desc, sizeof(desc)))
			*desc = '\0';
		at = text;
	}
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
	for (unsigned int i = 0; i <= node->nports; i++) {
		node->ports[i].width = r->width;
		node->ports[i].speed = r->speed;
		node->ports[i].ext = r->ext;
	}
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

		if (option[-1] == 'w')
			port->width = best(value & 31 ? value & 31 : 2);
		else if (option[-1] == 's')
			port->speed = best(value & 7 ? value & 7 : 4);
		else if (option[-1] == 'e')
			port->ext = value & 15 ? best(value & 15) : 0;
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

static int parse_line(struct reader *r, const char *line)
{
	const char *value = strpbrk(line, "=+");
	uint64_t number = value ? strtoull(value + 1, NULL, 0) : 0;
	enum net_type type;

	if (*line == '[') {
		if (r->node == NET_NONE)
			return fail(r, "a port outside a node");
		return parse_port(r, line);
	}
	if (*line == '@')
		return fail(r, "aliases (@) are not supported: name the node itself");
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
	else {
		if (!strncmp(line, "vendid", 6))
			r->vendor = number;
		else if (!strncmp(line, "devid", 5))
			r->device = number;
		else if (!strncmp(line, "sysimgguid", 10))
			r->sysimg = number;
		else if (!strncmp(line, "width", 5))
			r->width = best(number & 31 ? number & 31 : 2);
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
		r->net->next_guid[type] = number;
	else if (value)
		r->net->next_guid[type] += number;
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

static int plug_cables(struct reader *r)
{
	for (unsigned int i = 0; i < r->ncables; i++) {
		struct cable *c = &r->cables[i];
		uint32_t peer = net_find(r->net, c->peer);
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
	return 0;
}

int net_read_stream(struct net *net, FILE *file, const char *name)
{
	struct reader r = {
		.net = net, .file = name, .node = NET_NONE, .width = 2, .speed = 4,
	};
	int rc = read_file(&r, file);

	if (!rc)
		rc = plug_cables(&r);
	for (unsigned int i = 0; i < r.ncables; i++)
		free(r.cables[i].peer);
	free(r.cables);
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

void net_write(const struct net *net, FILE *file)
{
	static const char *const word[] = { "", "Hca", "Switch", "Rt" };
	static const char *const guid[] = { "", "caguid", "switchguid", "rtguid" };

	for (unsigned int i = 0; i < net->n; i++) {
		const struct net_node *node = &net->nodes[i];

		fprintf(file, "%s=0x%llx\n%s\t%u \"%s\"", guid[node->type],
			(unsigned long long)node->guid, word[node->type], node->nports, node->id);
		fprintf(file, "\t# \"%s\"%s\n", node->desc, node->shared ? " shared port" : "");
		for (unsigned int p = 1; p <= node->nports; p++) {
			const struct net_port *port = &node->ports[p];

			if (port->peer != NET_NONE)
				fprintf(file, "[%u]\t\"%s\"[%u]\tw=%u s=%u e=%u\n", p,
					net->nodes[port->peer].id, port->peer_port, port->width,
					port->speed, port->ext);
		}
		fputc('\n', file);
	}
}
