// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The page is page.html with the subnet as JSON in it. Names of nodes and partitions have nothing in
 * them that JSON or HTML could mistake: see fabric_add() and partitions_read().
 */
#include <inttypes.h>
#include <string.h>
#include "draw.h"
#include "partition.h"

#define PLACE	"@DATA@"
#define NAMED	200	/* cables that have come or gone, of each */

extern const char page_html[], page_html_end[];

__asm__(".section .rodata\n"
	".global page_html, page_html_end\n"
	"page_html: .incbin \"tools/fabric/page.html\"\n"
	"page_html_end: .byte 0\n"
	".previous\n");

static void nodes(const struct fabric *f, FILE *to)
{
	fprintf(to, "\"nodes\":[");
	for (unsigned int i = 0; i < f->nodes; i++)
		fprintf(to, "%s[\"%s\",%d,\"%016" PRIx64 "\"]", i ? ",\n" : "", f->node[i]->name,
			fabric_is_switch(f->node[i]), f->node[i]->guid);
	fprintf(to, "],\n");
}

/* One direction: paths, by lane, by partition, and what was counted; before, too. */
static void direction(const struct page *page, const struct fabric_port *out, FILE *to)
{
	const struct check *c = page->now;
	const struct link_use *u = &c->flow.use[flow_port(&c->flow, out)];
	const struct fabric_port *old = page->before ? change_port(page->before->f, out) : NULL;
	const char *comma = "";

	fprintf(to, "{\"paths\":%" PRIu64 ",\"lane\":{", u->paths);
	for (unsigned int vl = 0; vl < FABRIC_LANES; vl++) {
		if (u->lane[vl]) {
			fprintf(to, "%s\"%u\":%" PRIu64, comma, vl, u->lane[vl]);
			comma = ",";
		}
	}
	fprintf(to, "},\"part\":[");
	comma = "";
	for (unsigned int p = 0; c->users && p < page->partitions->n; p++) {
		bool here = false;

		for (unsigned int vl = 0; vl < FABRIC_LANES; vl++) {
			const uint64_t *users =
				c->users[flow_port(&c->flow, out) * FABRIC_LANES + vl];

			here |= users && users[p / 64] >> p % 64 & 1;
		}
		if (here) {
			fprintf(to, "%s%u", comma, p);
			comma = ",";
		}
	}
	fprintf(to, "]");
	if (c->f->has_load) {
		bool since = old && page->before->f->has_load && out->load >= old->load &&
			     out->waited >= old->waited;

		fprintf(to, ",\"words\":%" PRIu64 ",\"wait\":%" PRIu64,
			out->load - (since ? old->load : 0), out->waited - (since ? old->waited : 0));
	}
	if (page->before)
		fprintf(to, ",\"was\":%" PRIu64, old && old->peer ?
			page->before->flow.use[flow_port(&page->before->flow, old)].paths : 0);
	fprintf(to, "}");
}

static void links(const struct page *page, FILE *to)
{
	const struct fabric *f = page->now->f;
	const char *comma = "";

	fprintf(to, "\"links\":[");
	for (unsigned int i = 0; i < f->nodes; i++) {
		for (unsigned int p = 1; p <= f->node[i]->nports; p++) {
			const struct fabric_port *a = &f->node[i]->port[p], *b = a->peer;

			if (!b || b->node->index < i || (b->node->index == i && b->num < p))
				continue;
			fprintf(to, "%s[%u,%u,%u,%u,%u,", comma, i, p, b->node->index, b->num,
				a->gbps);
			direction(page, a, to);
			fprintf(to, ",");
			direction(page, b, to);
			fprintf(to, "]");
			comma = ",\n";
		}
	}
	fprintf(to, "],\n");
}

/* Texts are of names and figures only, but quotes would end them. */
static void text(const char *s, FILE *to)
{
	fputc('"', to);
	for (; *s; s++) {
		if (strchr("\"\\<>&", *s) || *s < ' ')
			fprintf(to, "\\u%04x", (unsigned char)*s);
		else
			fputc(*s, to);
	}
	fputc('"', to);
}

static void faults(const struct check *c, FILE *to)
{
	fprintf(to, "\"faults\":[");
	for (unsigned int i = 0; i < c->faults; i++) {
		fprintf(to, "%s{\"kind\":\"%s\",\"wrong\":%d,\"what\":", i ? "," : "",
			c->fault[i].kind, c->fault[i].wrong);
		text(c->fault[i].what, to);
		fprintf(to, ",\"then\":");
		text(c->fault[i].then, to);
		fprintf(to, "}");
	}
	fprintf(to, "],\n\"loops\":[");
	for (unsigned int i = 0; i < c->ncycles; i++) {
		fprintf(to, "%s[", i ? "," : "");
		for (unsigned int j = 0; j < c->cycles[i].length; j++)
			fprintf(to, "%s[%u,%u,%u]", j ? "," : "",
				c->cycles[i].channel[j].out->node->index,
				c->cycles[i].channel[j].out->num, c->cycles[i].channel[j].vl);
		fprintf(to, "]");
	}
	fprintf(to, "],\n");
}

static void figures(const char *name, const struct check *c, FILE *to)
{
	fprintf(to, "\"%s\":{\"ok\":%d,\"switches\":%u,\"hosts\":%u,\"cables\":%u,\"paths\":%" PRIu64
		",\"unreachable\":%" PRIu64 ",\"longer\":%" PRIu64 ",\"least\":%" PRIu64
		",\"mean\":%.2f,\"most\":%" PRIu64 ",\"unused\":%u,\"loops\":%u,\"sharedLinks\":%u,"
		"\"sharedLanes\":%u,\"sls\":%d,\"load\":%d},\n", name, !check_failed(c),
		c->f->switches, c->hosts, c->cables, c->pairs, c->unreached, c->longer, c->least,
		c->mean, c->most, c->unused, c->ncycles, c->shared_links, c->shared_lanes,
		c->f->has_sl, c->f->has_load);
}

static void partitions(const struct page *page, FILE *to)
{
	fprintf(to, "\"partitions\":[");
	for (unsigned int i = 0; page->partitions && i < page->partitions->n; i++) {
		const struct partition *p = &page->partitions->partition[i];

		fprintf(to, "%s{\"name\":\"%s\",\"pkey\":%u,\"all\":%d,\"members\":%u}", i ? "," : "",
			p->name, p->pkey, p->everybody, p->members);
	}
	fprintf(to, "],\n");
}

/* Cables of one state that are not in the other: ends, and their nodes by number now, or -1. */
static void cables(const char *name, const struct fabric *in, const struct fabric *other,
		   const struct fabric *now, FILE *to)
{
	unsigned int n = 0;

	fprintf(to, "\"%s\":[", name);
	for (unsigned int i = 0; i < in->nodes; i++) {
		for (unsigned int p = 1; p <= in->node[i]->nports && n < NAMED; p++) {
			const struct fabric_port *a = &in->node[i]->port[p], *b = a->peer;
			const struct fabric_node *at, *peer;

			if (!b || b->node->index < i || (b->node->index == i && b->num < p) ||
			    !change_is_gone(other, a))
				continue;
			at = fabric_node(now, a->node->guid);
			peer = fabric_node(now, b->node->guid);
			fprintf(to, "%s[\"%s\",%u,\"%s\",%u,%d,%d]", n++ ? "," : "", a->node->name,
				a->num, b->node->name, b->num, at ? (int)at->index : -1,
				peer ? (int)peer->index : -1);
		}
	}
	fprintf(to, "],\n");
}

static void changed(const struct page *page, FILE *to)
{
	const struct change *c = page->change;
	const char *comma = "";

	if (!c) {
		fprintf(to, "\"change\":null\n");
		return;
	}
	cables("gone", page->before->f, page->now->f, page->now->f, to);
	cables("added", page->now->f, page->before->f, page->now->f, to);
	fprintf(to, "\"change\":{\"cablesGone\":%u,\"cablesNew\":%u,\"nodesGone\":%u,\"nodesNew\":%u,"
		"\"entries\":%" PRIu64 ",\"paths\":%" PRIu64 ",\"moved\":%" PRIu64 ",\"bySwitch\":{",
		c->cables_gone, c->cables_new, c->nodes_gone, c->nodes_new, c->entries, c->paths,
		c->moved);
	for (unsigned int i = 0; i < page->now->f->switches; i++) {
		if (c->by_switch[i]) {
			fprintf(to, "%s\"%u\":%u", comma, page->now->f->sw[i]->index,
				c->by_switch[i]);
			comma = ",";
		}
	}
	fprintf(to, "}}\n");
}

void draw_page(const struct page *page, FILE *to)
{
	const char *place = strstr(page_html, PLACE);

	fwrite(page_html, place - page_html, 1, to);
	fprintf(to, "{");
	figures("now", page->now, to);
	if (page->before)
		figures("before", page->before, to);
	nodes(page->now->f, to);
	links(page, to);
	faults(page->now, to);
	partitions(page, to);
	changed(page, to);
	fprintf(to, "}");
	fputs(place + strlen(PLACE), to);
}
