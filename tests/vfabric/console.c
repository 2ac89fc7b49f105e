// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The console: ibsim's words for nodes, links and counters. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "console.h"
#include "ext.h"
#include "fault.h"
#include "journal.h"
#include "manager.h"
#include "sma.h"

int (*console_wait)(struct fabric *f);

static const char *const state_name[] = { "-", "Down", "Init", "Armed", "Active" };
static const char *const phys_name[] = { "-", "Sleep", "Polling", "Disabled", "Training",
					 "LinkUp" };

int console_port(struct fabric *f, const char **at, uint32_t *node, unsigned int *num, FILE *out)
{
	const char *s = strchr(*at, '"'), *e = s ? strchr(s + 1, '"') : NULL;
	char id[160];

	if (!e || e - s - 1 >= (long)sizeof(id)) {
		fprintf(out, "# want \"node\"[port]\n");
		return -1;
	}
	memcpy(id, s + 1, e - s - 1);
	id[e - s - 1] = '\0';
	*node = net_find(f->net, id);
	if (*node == NET_NONE) {
		fprintf(out, "# nodeid \"%s\" not found\n", id);
		return -1;
	}
	*num = 0;
	*at = e + 1;
	if (**at == '[') {
		*num = strtoul(*at + 1, NULL, 10);
		if (!*num || *num > f->nodes[*node].nports) {
			fprintf(out, "# \"%s\" has no port %u\n", id, *num);
			return -1;
		}
		e = strchr(*at, ']');
		*at = e ? e + 1 : *at + strlen(*at);
	}
	return 0;
}

/* Does it to one port, or to all of the node; how many it worked for. */
static int each_port(struct fabric *f, uint32_t node, unsigned int num,
		     int (*act)(struct fabric *f, uint32_t port))
{
	int done = 0;

	for (unsigned int p = 1; p <= f->nodes[node].nports; p++)
		if (!num || num == p)
			done += !act(f, f->nodes[node].first + p);
	return done;
}

static int reset_port(struct fabric *f, uint32_t port)
{
	if (f->ports[port].peer != NONE && link_unplug(f, port))
		return -1;
	memset(&f->ports[port].counters, 0, sizeof(f->ports[port].counters));
	fault_clear(f, port);
	return 0;
}

static int cmd_ports(struct fabric *f, const char *rest, FILE *out, const char *word,
		     int (*act)(struct fabric *f, uint32_t port))
{
	unsigned int num;
	uint32_t node;

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	if (!each_port(f, node, num, act)) {
		fprintf(out, "# %s: nothing to do there\n", word);
		return -1;
	}
	return 0;
}

static int cmd_link(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int pa, pb;
	uint32_t a, b, at, peer;

	if (console_port(f, &rest, &a, &pa, out) || console_port(f, &rest, &b, &pb, out))
		return -1;
	at = fabric_port(f, a, pa ? pa : 1);
	peer = fabric_port(f, b, pb ? pb : 1);
	if (link_new(f, at, peer)) {
		fprintf(out, "# can't link: a port is connected already\n");
		return -1;
	}
	return 0;
}

static int cmd_error(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int num;
	uint32_t node;
	double rate;
	char *end;

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	rate = strtod(rest, &end);
	if (end == rest || rate < 0 || rate > 100) {
		fprintf(out, "# error rate must be in [0..100] percent\n");
		return -1;
	}
	for (unsigned int p = 1; p <= f->nodes[node].nports; p++)
		if (!num || num == p)
			fault_set(f, f->nodes[node].first + p, "loss", rate / 100);
	return 0;
}

/* Fault "S1"[2] loss=0.01 delay=500 ... */
static int cmd_fault(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int num;
	uint32_t node;
	char word[16];
	double value;
	int used, rc;

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	while (sscanf(rest, " %15[a-z]=%lf%n", word, &value, &used) == 2) {
		for (unsigned int p = 1; p <= f->nodes[node].nports; p++) {
			if (num && num != p)
				continue;
			rc = fault_set(f, f->nodes[node].first + p, word, value);
			if (rc) {
				fprintf(out, "# no fault %s=%g%s\n", word, value, rc == FAULT_OF_HCA ?
					": a real HCA is in the place of that host" : "");
				return -1;
			}
		}
		rest += used;
	}
	rest += strspn(rest, " \t\r\n");
	if (*rest)
		fprintf(out, "# not understood: %s\n", rest);
	return *rest ? -1 : 0;
}

static int cmd_performance(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int num;
	uint32_t node;
	char name[80];
	unsigned long long value;
	const char *field;

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	if (!num || sscanf(rest, " %79[A-Za-z0-9.]=%llu", name, &value) != 2) {
		fprintf(out, "# want \"node\"[port] PortCounters.Field=value\n");
		return -1;
	}
	field = strchr(name, '.');
	if (pma_set(f, f->nodes[node].first + num, field ? field + 1 : name, value)) {
		fprintf(out, "# no counter %s\n", name);
		return -1;
	}
	return 0;
}

static void dump_node(struct fabric *f, uint32_t at, FILE *out)
{
	const struct node *node = &f->nodes[at];
	static const char *const word[] = { "", "Hca", "Switch", "Rt" };

	fprintf(out, "\n%s %u \"%s\"\tnodeguid %llx%s\n", word[node->type], node->nports,
		node->net->id, (unsigned long long)node->net->guid, node->dead ? "\tdead" : "");
	if (node->type == NET_SWITCH && node->lft) {
		fprintf(out, "#\tlid %u FDBtop %u\n", f->ports[node->first].lid, node->lft_top);
		for (unsigned int lid = 0; lid <= node->lft_top; lid++)
			if (node->lft[lid] != 255)
				fprintf(out, " [%u]%u", lid, node->lft[lid]);
		fprintf(out, "\n");
	}
	for (unsigned int p = 1; p <= node->nports; p++) {
		const struct port *port = &f->ports[node->first + p];
		int state = port->state <= PORT_ACTIVE ? port->state : 0;

		if (port->peer == NONE)
			continue;
		fprintf(out, "[%u]\t%s\tlid %u lmc %u smlid %u %s/%s xmit %llu discards %llu\n", p,
			port->peer == EXTERNAL ? "real HCA" : port_name(f, port->peer), port->lid,
			port->lmc, port->smlid, state_name[state], phys_name[port->phys],
			(unsigned long long)f->ports[node->first + p].counters.xmit_pkts,
			(unsigned long long)f->ports[node->first + p].counters.xmit_discards);
	}
}

static int cmd_dump(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int num;
	uint32_t node;

	if (strchr(rest, '"')) {
		if (console_port(f, &rest, &node, &num, out))
			return -1;
		dump_node(f, node, out);
		return 0;
	}
	for (uint32_t i = 0; i < f->nnodes; i++)
		dump_node(f, i, out);
	fprintf(out, "#  dumped %u nodes\n", f->nnodes);
	return 0;
}

static void print_sent(const struct fabric *f, uint32_t port, FILE *out)
{
	const struct lane *lanes = &f->lanes[port * f->config.vls];
	int any = 0;

	for (unsigned int vl = 0; vl < f->config.vls; vl++) {
		if (!lanes[vl].sent)
			continue;
		if (!any++)
			fprintf(out, "%s", port_name(f, port));
		fprintf(out, " VL%u %llu", vl, (unsigned long long)lanes[vl].sent);
	}
	if (any)
		fputc('\n', out);
}

static int cmd_sent(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int num;
	uint32_t node;

	if (strchr(rest, '"')) {
		if (console_port(f, &rest, &node, &num, out))
			return -1;
		print_sent(f, f->nodes[node].first + num, out);
		return 0;
	}
	for (uint32_t port = 0; port < f->nports; port++)
		print_sent(f, port, out);
	return 0;
}

/*
 * "directed 0x19 36": the attribute, and how many hosts and switches have been set. Then what became of
 * MADs of all kinds on their way.
 */
static void print_smps(const struct fabric *f, FILE *out)
{
	static const char *const how[] = { "directed", "routed" };

	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int attr = 0; attr < 64; attr++)
			if (f->manager->sets[i][attr])
				fprintf(out, "%s %#x %llu\n", how[i], attr,
					(unsigned long long)f->manager->sets[i][attr]);
	fprintf(out, "lost %llu\nlate %llu\n", (unsigned long long)f->manager->lost,
		(unsigned long long)f->manager->delayed);
}

static int cmd_journal(struct fabric *f, const char *rest, FILE *out)
{
	unsigned long room;
	char *end;

	rest += strspn(rest, " \t\r\n");
	if (!*rest) {
		journal_print(f, out);
		return 0;
	}
	room = strtoul(rest, &end, 10);
	if (end == rest || *rest == '-' || room > 1000000 || journal_start(f, room)) {
		fprintf(out, "# want the number of entries, 1000000 at most\n");
		return -1;
	}
	return 0;
}

static uint32_t port_of_lid(const struct fabric *f, unsigned int lid)
{
	if (lid < UCAST_LIDS && f->lids[lid] != NONE)
		return f->lids[lid];
	for (uint32_t i = 0; i < f->nnodes; i++)
		if (f->nodes[i].type == NET_SWITCH && f->ports[f->nodes[i].first].lid == lid)
			return f->nodes[i].first;
	return NONE;
}

static int cmd_route(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int from, to;
	uint32_t at, target;

	if (sscanf(rest, "%u %u", &from, &to) != 2 || !from || !to) {
		fprintf(out, "# bad params. Usage: Route from-lid to-lid\n");
		return -1;
	}
	at = port_of_lid(f, from);
	target = port_of_lid(f, to);
	if (at == NONE || target == NONE) {
		fprintf(out, "# to/from lid unconfigured\n");
		return -1;
	}
	fprintf(out, "From %s lid %u\n", port_name(f, at), from);
	for (int hops = 0; at != target; hops++) {
		const struct node *node = &f->nodes[f->ports[at].node];
		unsigned int num = f->ports[at].num;
		uint32_t out_port;

		if (node->type == NET_SWITCH) {
			if (node->first == target)
				break;
			num = node->lft && to <= node->lft_top ? node->lft[to] : 255;
		} else if (hops) {
			num = 255;
		}
		out_port = fabric_port(f, f->ports[at].node, num);
		if (!num || out_port == NONE || hops == 64) {
			fprintf(out, "# no route at %s\n", port_name(f, at));
			return -1;
		}
		if (!f->ports[out_port].up || f->ports[out_port].state != PORT_ACTIVE) {
			fprintf(out, "# Bad port state at %s: %s\n", port_name(f, out_port),
				state_name[f->ports[out_port].state]);
			return -1;
		}
		at = f->ports[out_port].peer;
		fprintf(out, "[%u] -> %s\n", num, port_name(f, at));
		if (at == EXTERNAL)
			break;
	}
	fprintf(out, "To %s lid %u\n", port_name(f, target), to);
	return 0;
}

static int cmd_node(struct fabric *f, const char *rest, FILE *out,
		    int (*act)(struct fabric *f, uint32_t node))
{
	unsigned int num;
	uint32_t node;

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	return act(f, node);
}

void console_help(FILE *out)
{
	fputs("Dump [\"node\"]                  state, tables\n"
	      "Sent [\"node\"[p]]              packets that each data VL has sent, by port\n"
	      "Paths                         packets that real HCAs were sent, by SLID, DLID and data VL\n"
	      "Smps                          SMPs that have set something, by attribute; MADs lost, late\n"
	      "Journal [ENTRIES]             what happens to tables and cables; begin one (0: end it)\n"
	      "Route FROM-LID TO-LID          the way through the tables\n"
	      "Unlink|ReLink|Clear \"node\"[p]  pull a cable, put it back, pull and reset\n"
	      "Link \"a\"[p] \"b\"[p]             a new cable; a real HCA's is pulled first\n"
	      "Down|Up \"node\"                 power\n"
	      "Error \"node\"[p] PERCENT        packets lost on the way out\n"
	      "Fault \"node\"[p] loss= corrupt= duplicate= reorder= (0..1) delay= jitter=\n"
	      "      window= (ns) slow= drain= (percent) mute= (an attribute of SMPs)\n"
	      "PerformanceSet \"node\"[p] PortCounters.Field=value\n"
	      "Baselid \"node\"[p] LID [LMC]    change a LID behind the SM's back\n"
	      "Describe \"node\" \"text\"         another NodeDescription, and trap 144\n"
	      "Enable \"node\"[p] width= speed=  another LinkWidthEnabled, LinkSpeedEnabled (bits), and trap 144\n"
	      "Trap \"node\"[p] 128|131|144\n"
	      "Attached, X CLIENT             programs and real HCAs, and what they have not read; drop one\n"
	      "Do FILE, !FILE                 the lines of a file\n", out);
	console_traffic_help(out);
	fputs("Quit\n", out);
}

static int is(const char *word, const char *command)
{
	return *word && !strncasecmp(word, command, strlen(word)) && strlen(word) >= 2;
}

static int cmd_file(struct fabric *f, const char *rest, FILE *out)
{
	char path[256];

	if (sscanf(rest, " %255[^\r\n]", path) != 1) {
		fprintf(out, "# want a file\n");
		return -1;
	}
	return console_file(f, path, out);
}

int console_line(struct fabric *f, const char *line, FILE *out)
{
	const char *rest;
	char word[32];
	size_t n;

	while (isspace((unsigned char)*line))
		line++;
	if (!*line || *line == '#')
		return 0;
	if (*line == '!')
		return cmd_file(f, line + 1, out);
	n = strcspn(line, " \t\"\r\n");
	snprintf(word, sizeof(word), "%.*s", (int)(n < 31 ? n : 31), line);
	rest = line + n;
	if (!strcasecmp(word, "quit"))
		return 1;
	if (!strcasecmp(word, "do"))
		return cmd_file(f, rest, out);
	if (!strcasecmp(word, "x"))
		return f->manager ? clients_drop(f, strtoul(rest, NULL, 10)) : -1;
	if (is(word, "unlink"))
		return cmd_ports(f, rest, out, word, link_unplug);
	if (is(word, "relink"))
		return cmd_ports(f, rest, out, word, link_replug);
	if (is(word, "clear"))
		return cmd_ports(f, rest, out, word, reset_port);
	if (is(word, "link"))
		return cmd_link(f, rest, out);
	if (is(word, "down"))
		return cmd_node(f, rest, out, node_down);
	if (is(word, "up"))
		return cmd_node(f, rest, out, node_up);
	if (is(word, "error"))
		return cmd_error(f, rest, out);
	if (is(word, "fault"))
		return cmd_fault(f, rest, out);
	if (is(word, "performanceset"))
		return cmd_performance(f, rest, out);
	if (is(word, "dump"))
		return cmd_dump(f, rest, out);
	if (is(word, "sent"))
		return cmd_sent(f, rest, out);
	if (is(word, "paths")) {
		ext_paths_print(f, out);
		return 0;
	}
	if (is(word, "smps")) {
		if (f->manager)
			print_smps(f, out);
		return 0;
	}
	if (is(word, "journal"))
		return cmd_journal(f, rest, out);
	if (is(word, "route"))
		return cmd_route(f, rest, out);
	if (is(word, "describe"))
		return console_describe(f, rest, out);
	if (is(word, "enable"))
		return console_enable(f, rest, out);
	if (is(word, "baselid"))
		return console_baselid(f, rest, out);
	if (is(word, "trap"))
		return console_trap(f, rest, out);
	/* "At" is the traffic's. */
	if (is(word, "attached") && strlen(word) > 2) {
		if (f->manager) {
			clients_look(f);
			clients_print(f, out);
		}
		ext_print(f, out);
		return 0;
	}
	if (is(word, "help") || *word == '?') {
		console_help(out);
		return 0;
	}
	return console_traffic(f, word, rest, out);
}
