// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Patterns whose packets have the service levels of path records. A real host has a connection to
 * each other one, and one whose lane is held up does not hold up the rest. So a host gets a source
 * for each service level: to the hosts that it reaches by it, at the rate that is their part.
 */
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "manager.h"
#include "traffic.h"

#define UNKNOWN 0xff
#define US 1000000ull

/* Engines give lanes by the switches at both ends: of every two one pair of hosts is asked for. */
struct lanes {
	const uint32_t *hosts;
	uint32_t n;
	uint32_t *first, *second;	/* by node: hosts of that switch, or NONE */
	uint8_t *sl;			/* [from * n + to] of the pairs that were asked for */
	uint32_t *to;			/* [sl * n + i]: whom one host reaches by it */
};

static uint32_t switch_of(const struct fabric *f, const struct lanes *l, uint32_t host)
{
	return f->ports[f->ports[l->hosts[host]].peer].node;
}

static int lanes_init(const struct fabric *f, struct lanes *l)
{
	size_t pairs = (size_t)l->n * l->n;

	l->first = malloc(f->nnodes * sizeof(*l->first));
	l->second = malloc(f->nnodes * sizeof(*l->second));
	l->sl = malloc(pairs);
	l->to = malloc(16 * l->n * sizeof(*l->to));
	if (!l->first || !l->second || !l->sl || !l->to)
		return -1;
	memset(l->first, 0xff, f->nnodes * sizeof(*l->first));
	memset(l->second, 0xff, f->nnodes * sizeof(*l->second));
	memset(l->sl, UNKNOWN, pairs);
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t node = switch_of(f, l, i);

		if (l->first[node] == NONE)
			l->first[node] = i;
		else if (l->second[node] == NONE)
			l->second[node] = i;
	}
	return 0;
}

static void lanes_free(struct lanes *l)
{
	free(l->first);
	free(l->second);
	free(l->sl);
	free(l->to);
}

static int lane(struct fabric *f, struct lanes *l, uint32_t from, uint32_t to)
{
	uint32_t a = switch_of(f, l, from), b = switch_of(f, l, to);
	uint32_t host = l->first[a], other = a == b ? l->second[b] : l->first[b];
	uint8_t *sl = &l->sl[(size_t)host * l->n + other];
	uint16_t dlid;

	if (*sl == UNKNOWN &&
	    sa_path(f, l->hosts[host], l->hosts[other], sl, &dlid, console_wait))
		return -1;
	return *sl;
}

/* One source: @n hosts at @to, and of its packets that part to the hot spot. */
static int add_source(struct fabric *f, const struct flow_spec *spec, const uint32_t *to,
		      uint32_t n, double hot)
{
	struct flow_spec s = *spec;

	s.n_among = n;
	s.among = malloc(n * sizeof(*to));
	if (!s.among)
		return -1;
	memcpy(s.among, to, n * sizeof(*to));
	s.hot = hot;
	s.start += fabric_random(f) % US;
	if (traffic_add(f, &s) != NONE)
		return 0;
	free(s.among);
	return -1;
}

static int add_host(struct fabric *f, struct lanes *l, const struct flow_spec *spec, uint32_t from)
{
	double all = spec->gbps > 0 ? spec->gbps : 8e6 / f->ports[l->hosts[from]].fs_per_byte;
	double hot = spec->pattern == FLOW_HOTSPOT ? spec->hot : 0;
	uint32_t n[16] = { 0 };
	int hot_sl = -1;

	for (uint32_t i = 0; i < l->n; i++) {
		int sl = i == from ? -1 : lane(f, l, from, i);

		if (i == from)
			continue;
		if (sl < 0)
			return -1;
		l->to[sl * l->n + n[sl]++] = l->hosts[i];
		if (l->hosts[i] == spec->to)
			hot_sl = sl;
	}
	for (int sl = 0; sl < 16; sl++) {
		double part = (1 - hot) * n[sl] / (l->n - 1), hot_here = sl == hot_sl ? hot : 0;
		struct flow_spec s = *spec;

		if (!n[sl])
			continue;
		s.from = l->hosts[from];
		s.sl = sl;
		s.gbps = (part + hot_here) * all;
		if (add_source(f, &s, &l->to[sl * l->n], n[sl], hot_here / (part + hot_here)))
			return -1;
	}
	return 0;
}

/**
 * console_lanes() - add a pattern, uniform or with a hot spot, whose lanes the SA says
 * @hosts: ports of all hosts
 * @n: of them, two at least
 * @first: the first of those that send, by place in @hosts
 * @last: the last
 * Return: 0, or -1 if the SA does not know a path.
 */
int console_lanes(struct fabric *f, const struct flow_spec *spec, const uint32_t *hosts,
		  uint32_t n, uint32_t first, uint32_t last)
{
	struct lanes l = { .hosts = hosts, .n = n };
	int rc = lanes_init(f, &l);

	for (uint32_t i = first; i <= last && i < n && !rc; i++)
		if (spec->pattern != FLOW_HOTSPOT || hosts[i] != spec->to)
			rc = add_host(f, &l, spec, i);
	lanes_free(&l);
	return rc;
}
