// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Console commands for traffic, virtual time, and what came of it. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "congestion.h"
#include "console.h"
#include "fault.h"
#include "manager.h"
#include "traffic.h"

#define US 1000000ull

void console_traffic_help(FILE *out)
{
	fputs("Tables minhop                  routes, LIDs and active ports without an SM\n"
	      "Flow \"a\" \"b\" [sl=N|sl=sa] [size=B] [message=B] [rate=GBPS] [start=US] [stop=US]\n"
	      "      [messages=N]             that many; Results json: took_us\n"
	      "      [dlid=LID]               to whoever has it: Results json: at, places\n"
	      "      [window=N] [rto=US]      window: closed loop like RC; sl=sa: ask the SM\n"
	      "      [poisson=1]              gaps are exponential, rate= is their mean\n"
	      "      [ack=N]                  an ACK for N packets, and for a message's last\n"
	      "Lane \"a\" \"b\" SL               flows between them use that SL from now on\n"
	      "Uniform [spread=SLS] [...]     every host to all others at random\n"
	      "Hotspot \"h\" PERCENT [...]      the same, that part of it to one host\n"
	      "Permutation SHIFT [...]        host i to host i + SHIFT\n"
	      "      [hosts=FIRST-LAST]       only these send, in the three of them; H1 is 1\n"
	      "      [sl=sa]                  Uniform, Hotspot: a source for each SL, as the SM says\n"
	      "Congestion [threshold=N] [marking=N] [increase=N] [limit=N] [timer=US]\n"
	      "                               congestion control from now on; what it has done so far\n"
	      "Measure [US]                   start measuring, sample every US\n"
	      "Advance US                     run virtual time\n"
	      "At US COMMAND                  a command at a virtual time from now\n"
	      "Stop                           no source sends any more\n"
	      "Results flows|series|vls|drops|faults|json [FILE]\n"
	      "Deadlock                       look for one, name its cycle\n"
	      "Remove \"node\"[p] VL            take out the packet at the head of an input queue\n"
	      "Time                           virtual time, events, hops, run time\n"
	      "Copy                           what a copy of 2 KiB costs here, to compare with\n", out);
}

/* "H1" or "H1"[2] as a port. */
static uint32_t host(struct fabric *f, const char **at, FILE *out)
{
	unsigned int num;
	uint32_t node;

	if (console_port(f, at, &node, &num, out))
		return NONE;
	return f->nodes[node].first + (num ? num : 1);
}

/* A number of at most 1e12, with a space or the line's end behind it. */
static int number(const char **at, double *value)
{
	char *end;

	*value = strtod(*at, &end);
	if (end == *at || !strchr(" \t\r\n", *end) || !(*value >= -1e12 && *value <= 1e12))
		return -1;
	*at = end;
	return 0;
}

/* What an option says that is not of a flow but of which flows there are. */
struct asked {
	int sa;				/* ask the SA for the service level */
	uint32_t first, last;		/* hosts that send, counted from 1; 0: all */
};

static int options(const char *at, struct flow_spec *s, struct asked *ask, uint64_t now, FILE *out)
{
	char name[16], value[32];
	int used;

	s->start = now;
	while (sscanf(at, " %15[a-z]=%31[^ \t\r\n]%n", name, value, &used) == 2) {
		const char *digits = value;
		double v;

		at += used;
		if (number(&digits, &v))
			v = -1;		/* which no option takes */
		if (!strcmp(name, "sl") && !strcmp(value, "sa"))
			ask->sa = 1;
		else if (!strcmp(name, "sl") && v >= 0 && v < 16)
			s->sl = v;
		else if (!strcmp(name, "spread") && v >= 0 && v <= 16)
			s->spread = v;
		else if (!strcmp(name, "size") && v > 30 && v <= 4096 + 126)
			s->size = v;
		else if (!strcmp(name, "message") && v >= 0 && v <= 1 << 30)
			s->message = v;
		else if (!strcmp(name, "dlid") && v > 0 && v < UCAST_LIDS)
			s->dlid = v;
		else if (!strcmp(name, "messages") && v >= 0 && v <= 1 << 20)
			s->messages = v;
		else if (!strcmp(name, "rate") && v > 0)
			s->gbps = v;
		else if (!strcmp(name, "poisson") && v >= 0)
			s->poisson = v != 0;
		else if (!strcmp(name, "start") && v >= 0)
			s->start = now + v * US;
		else if (!strcmp(name, "stop") && v >= 0)
			s->stop = now + v * US;
		else if (!strcmp(name, "window") && v >= 0 && v <= 1e9)
			s->window = v;
		else if (!strcmp(name, "ack") && v >= 0 && v <= 1e9)
			s->ack = v;
		else if (!strcmp(name, "hosts") &&
			 sscanf(value, "%u-%u", &ask->first, &ask->last) == 2 && ask->first &&
			 ask->first <= ask->last)
			continue;
		else if (!strcmp(name, "rto") && v > 0)
			s->rto = v * US;
		else {
			fprintf(out, "# no option %s=%s\n", name, value);
			return -1;
		}
	}
	if (at[strspn(at, " \t\r\n")]) {
		fprintf(out, "# do not understand \"%s\"\n", at);
		return -1;
	}
	if (s->ack > s->window) {
		fprintf(out, "# ack=%u would wait for more than window=%u\n", s->ack, s->window);
		return -1;
	}
	return 0;
}

static int cmd_flow(struct fabric *f, const char *rest, FILE *out)
{
	struct flow_spec s = { .pattern = FLOW_FIXED };
	struct asked ask = { 0 };
	uint16_t dlid;
	uint8_t sl;

	s.from = host(f, &rest, out);
	if (s.from == NONE)
		return -1;
	s.to = host(f, &rest, out);
	if (s.to == NONE || options(rest, &s, &ask, f->clock.now, out))
		return -1;
	if (ask.first)
		return -1;
	if (ask.sa && sa_path(f, s.from, s.to, &sl, &dlid, console_wait)) {
		fprintf(out, "# the SA does not know a path\n");
		return -1;
	}
	if (ask.sa)
		s.sl = sl;
	if (traffic_add(f, &s) == NONE) {
		fprintf(out, "# both ends must be hosts with LIDs, with less than 2^32 packets\n");
		return -1;
	}
	if (ask.sa)
		fprintf(out, "sl %u\n", s.sl);
	return 0;
}

/* What hosts do that a subnet manager tells to use another service level. */
static int cmd_lane(struct fabric *f, const char *rest, FILE *out)
{
	struct traffic *t = f->traffic;
	uint32_t from, to, found = 0;
	unsigned int sl;

	from = host(f, &rest, out);
	if (from == NONE)
		return -1;
	to = host(f, &rest, out);
	if (to == NONE)
		return -1;
	if (sscanf(rest, "%u", &sl) != 1 || sl > 15) {
		fprintf(out, "# want a service level\n");
		return -1;
	}
	for (uint32_t i = 0; t && i < t->nflows; i++) {
		struct flow_spec *s = &t->flows[i].spec;

		if (s->pattern != FLOW_FIXED || s->from != from || s->to != to)
			continue;
		s->sl = sl;
		found++;
	}
	fprintf(out, "%u\n", found);
	return 0;
}

static int cmd_congestion(struct fabric *f, const char *rest, FILE *out)
{
	struct congestion c = { .threshold = 15, .increase = 1, .limit = 127, .timer = 150 * US };
	const struct congestion *now = f->congestion;
	char name[16];
	double value;
	int used;

	if (now)
		fprintf(out, "{\"marked\": %llu, \"told\": %llu}\n", (unsigned long long)now->marked,
			(unsigned long long)now->told);
	while (sscanf(rest, " %15[a-z]=%lf%n", name, &value, &used) == 2) {
		rest += used;
		if (!strcmp(name, "threshold") && value >= 0 && value <= 15)
			c.threshold = value;
		else if (!strcmp(name, "marking") && value >= 0 && value < 65536)
			c.marking = value;
		else if (!strcmp(name, "increase") && value >= 0 && value < 65536)
			c.increase = value;
		else if (!strcmp(name, "limit") && value >= 0 && value < 16384)
			c.limit = value;
		else if (!strcmp(name, "timer") && value > 0)
			c.timer = value * US;
		else
			return -1;
	}
	return rest[strspn(rest, " \t\r\n")] ? -1 : congestion_on(f, &c);
}

static int add_everywhere(struct fabric *f, const struct flow_spec *spec, unsigned int shift,
			  const struct asked *ask)
{
	struct flow_spec s = *spec;
	uint32_t *hosts = malloc((f->nports + 1) * sizeof(*hosts)), n = 0;
	int rc = 0;

	if (!hosts)
		return -1;
	for (uint32_t p = 0; p < f->nports; p++)
		if (!f->ports[p].is_switch && f->ports[p].num && f->ports[p].lid && f->ports[p].up)
			hosts[n++] = p;
	if (ask->sa) {
		rc = n < 2 ? -1 : console_lanes(f, spec, hosts, n, ask->first ? ask->first - 1 : 0,
						ask->first ? ask->last - 1 : n - 1);
		free(hosts);
		return rc;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (ask->first && (i + 1 < ask->first || i + 1 > ask->last))
			continue;
		s.from = hosts[i];
		if (spec->pattern == FLOW_FIXED)
			s.to = hosts[(i + shift) % n];
		if (spec->pattern == FLOW_HOTSPOT && s.from == s.to)
			continue;
		/* Sources of rates are out of step, as real ones are. */
		s.start = spec->start + fabric_random(f) % US;
		if (traffic_add(f, &s) == NONE)
			rc = -1;
	}
	free(hosts);
	return n ? rc : -1;
}

static int cmd_pattern(struct fabric *f, enum flow_pattern pattern, const char *rest, FILE *out)
{
	struct flow_spec s = { .pattern = pattern };
	struct asked ask = { 0 };
	double value = 0;

	if (pattern == FLOW_HOTSPOT) {
		s.to = host(f, &rest, out);
		if (s.to == NONE)
			return -1;
		if (number(&rest, &value) || !(value >= 0 && value <= 100)) {
			fprintf(out, "# want 0 to 100 percent\n");
			return -1;
		}
		s.hot = value / 100;
	} else if (pattern == FLOW_FIXED &&
		   (number(&rest, &value) || !(value >= 0 && value < f->nports))) {
		fprintf(out, "# Permutation by how many hosts?\n");
		return -1;
	}
	if (options(rest, &s, &ask, f->clock.now, out) || (ask.sa && pattern == FLOW_FIXED))
		return -1;
	if (add_everywhere(f, &s, value, &ask)) {
		fprintf(out, "# no hosts with LIDs%s\n", ask.sa ? ", or no path" : "");
		return -1;
	}
	return 0;
}

static int cmd_results(struct fabric *f, const char *rest, FILE *out)
{
	char what[16] = "", path[256] = "";
	FILE *file = out;
	int rc = 0;

	if (sscanf(rest, "%15s %255s", what, path) < 1)
		return -1;
	if (*path)
		file = fopen(path, "w");
	if (!file) {
		fprintf(out, "# can not write %s\n", path);
		return -1;
	}
	if (!strcmp(what, "json"))
		results_json(f, file);
	else
		rc = results_csv(f, what, file);
	if (*path && fclose(file))
		rc = -1;
	if (rc)
		fprintf(out, "# no results \"%s\"\n", what);
	return rc;
}

static int cmd_deadlock(struct fabric *f, FILE *out)
{
	uint32_t cycle[64];
	unsigned int n = deadlock_find(f, cycle, 64);

	if (!n) {
		fprintf(out, "no deadlock\n");
		return 0;
	}
	fprintf(out, "deadlock of %u queues:\n", n);
	deadlock_print(f, cycle, n < 64 ? n : 64, out);
	return 0;
}

static int cmd_remove(struct fabric *f, const char *rest, FILE *out)
{
	uint32_t node, queue;
	unsigned int num;
	double vl;

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	if (!num || number(&rest, &vl) || !(vl >= 0 && vl < f->config.vls)) {
		fprintf(out, "# want a port and one of its VLs\n");
		return -1;
	}
	queue = (f->nodes[node].first + num) * f->config.vls + (uint32_t)vl;
	if (f->queues[queue].head == NONE) {
		fprintf(out, "# that queue is empty\n");
		return -1;
	}
	relay_discard(f, queue, f->nodes[node].first + num, DROP_BY_HAND);
	return 0;
}

static int cmd_measure(struct fabric *f, const char *rest, FILE *out)
{
	double us = 0;

	if (rest[strspn(rest, " \t\r\n")] && (number(&rest, &us) || us < 0)) {
		fprintf(out, "# Measure each how many microseconds?\n");
		return -1;
	}
	return traffic_measure(f, us * US);
}

static double run_time;		/* of the processor, spent in Advance, seconds */

static int cmd_advance(struct fabric *f, const char *rest, FILE *out)
{
	struct timespec a, b;
	double us;

	if (number(&rest, &us) || us <= 0) {
		fprintf(out, "# Advance how many microseconds?\n");
		return -1;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	fabric_run(f, f->clock.now + us * US);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	run_time += b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) * 1e-9;
	return 0;
}

static int cmd_at(struct fabric *f, const char *rest, FILE *out)
{
	double us;

	if (number(&rest, &us) || us < 0) {
		fprintf(out, "# At how many microseconds what?\n");
		return -1;
	}
	return fault_schedule(f, f->clock.now + us * US, rest);
}

/*
 * What a packet-hop is measured in: a copy of 2 KiB, here and now, of packets that no cache has, as
 * packets in buffers are not. Both in the processor's time, so what else runs is not in it.
 */
static double copy_ns(void)
{
	enum { SIZE = 2048, POOL = 64 << 20, ROUNDS = 50000 };
	struct timespec a, b;
	char *pool = malloc(POOL);
	uint32_t at = 1;

	if (!pool)
		return 0;
	memset(pool, 1, POOL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t from = at >> 8 & (POOL / SIZE - 1);

		at = at * 1664525 + 1013904223;
		memmove(pool + (size_t)(at >> 8 & (POOL / SIZE - 1)) * SIZE,
			pool + (size_t)from * SIZE, SIZE);
		/* The compiler must not know that nobody looks. */
		__asm__ volatile("" : : "r"(pool) : "memory");
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	free(pool);
	return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / ROUNDS;
}

static int cmd_time(struct fabric *f, FILE *out)
{
	fprintf(out, "{\"now_us\": %.3f, \"events\": %llu, \"hops\": %llu, ",
		f->clock.now * 1e-6, (unsigned long long)f->clock.events,
		(unsigned long long)f->hops);
	fprintf(out, "\"run_s\": %.6f}\n", run_time);
	return 0;
}

int console_traffic(struct fabric *f, const char *word, const char *rest, FILE *out)
{
	if (!strcasecmp(word, "flow"))
		return cmd_flow(f, rest, out);
	if (!strcasecmp(word, "uniform"))
		return cmd_pattern(f, FLOW_UNIFORM, rest, out);
	if (!strcasecmp(word, "hotspot"))
		return cmd_pattern(f, FLOW_HOTSPOT, rest, out);
	if (!strcasecmp(word, "permutation"))
		return cmd_pattern(f, FLOW_FIXED, rest, out);
	if (!strcasecmp(word, "congestion"))
		return cmd_congestion(f, rest, out);
	if (!strcasecmp(word, "lane"))
		return cmd_lane(f, rest, out);
	if (!strcasecmp(word, "measure"))
		return cmd_measure(f, rest, out);
	if (!strcasecmp(word, "advance"))
		return cmd_advance(f, rest, out);
	if (!strcasecmp(word, "at"))
		return cmd_at(f, rest, out);
	if (!strcasecmp(word, "results"))
		return cmd_results(f, rest, out);
	if (!strcasecmp(word, "deadlock"))
		return cmd_deadlock(f, out);
	if (!strcasecmp(word, "remove"))
		return cmd_remove(f, rest, out);
	if (!strcasecmp(word, "time"))
		return cmd_time(f, out);
	if (!strcasecmp(word, "copy")) {
		fprintf(out, "{\"copy_ns\": %.2f}\n", copy_ns());
		return 0;
	}
	if (!strcasecmp(word, "stop")) {
		traffic_stop(f);
		return 0;
	}
	if (!strcasecmp(word, "tables")) {
		if (routes_minhop(f))
			return -1;
		port_activate_all(f);
		return 0;
	}
	fprintf(out, "# what is \"%s\"? Help tells the commands\n", word);
	return -1;
}
