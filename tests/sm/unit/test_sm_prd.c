// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The distinguisher against brute force: random fabrics with links of all rates, whose tables,
 * cables, hosts and lanes change at random, loops and dead ends among them. After each change every
 * pair's record is worked out by walking from host to host, and compared with what was told.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prd.h"

#define SWITCHES 14
#define PORTS 12
#define ENDS 24
#define LIDS 200
#define ROUNDS 400
#define FABRICS 60

struct record {
	uint64_t source, destination; /* 0: there is none */
	uint8_t attr, sl;
};

static struct rsm_net net;
static uint8_t lfts[SWITCHES][LIDS];
static uint8_t lanes[LIDS][LIDS];
static uint8_t end_attr[LIDS]; /* of the end's own port, by its first LID */
static struct record told[LIDS][LIDS], now[LIDS][LIDS];

/* The linker has the distinguisher ask these: see the Makefile. */
static long allocations = -1; /* until one fails; below 0: none does */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return allocations >= 0 && !allocations-- ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allocations >= 0 && !allocations-- ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return allocations >= 0 && !allocations-- ? NULL : __real_realloc(old, size);
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)rand() % n;
}

static uint8_t some_attr(void)
{
	return below(3) ? RSM_ATTR(5, 12) : RSM_ATTR(1 + below(5), 2 + below(21));
}

static struct rsm_net_end *end_at(uint16_t lid)
{
	for (uint32_t i = 0; i < net.n_ends; i++)
		if (lid >= net.ends[i].lid && lid < net.ends[i].lid + net.ends[i].n_lids)
			return &net.ends[i];
	return NULL;
}

static uint8_t sl_of(void *context, uint16_t slid, uint16_t dlid)
{
	(void)context;
	if (net.lanes == RSM_LANES_SWITCH)
		return lanes[end_at(slid)->leaf][end_at(dlid)->leaf];
	return lanes[slid][dlid];
}

static int free_port(int sw)
{
	for (int port = 1; port < PORTS; port++)
		if (net.switches[sw].links[port].peer == RSM_LINK_NONE)
			return port;
	return -1;
}

static void cable(int a, int b)
{
	int from = free_port(a), to;
	uint8_t attr = some_attr();

	if (from < 0)
		return;
	net.switches[a].links[from] = (struct rsm_link) { .peer = b, .attr = attr };
	to = free_port(b);
	if (to < 0)
		net.switches[a].links[from].peer = RSM_LINK_NONE;
	else
		net.switches[b].links[to] = (struct rsm_link) { .peer = a, .attr = attr };
}

static void plug(struct rsm_net_end *end, int leaf)
{
	int port = free_port(leaf);
	uint8_t attr = some_attr();

	if (port < 0)
		return;
	end->leaf = leaf;
	end->attr = rsm_attr_least(end_attr[end->lid], attr);
	net.switches[leaf].links[port] = (struct rsm_link) {
		RSM_LINK_END, end->lid, rsm_attr_least(end_attr[end->lid], attr),
	};
}

static void unplug(const struct rsm_net_end *end)
{
	for (int port = 1; port < PORTS; port++) {
		struct rsm_link *link = &net.switches[end->leaf].links[port];

		if (link->peer == RSM_LINK_END && link->lid == end->lid)
			*link = (struct rsm_link) { .peer = RSM_LINK_NONE };
	}
}

/* Tables for the end's LIDs: from the leaf outwards, by a random one of the ways there are. */
static void route(const struct rsm_net_end *end)
{
	int queue[SWITCHES], n = 0, head = 0;
	bool seen[SWITCHES] = { false };

	for (int lid = end->lid; lid < end->lid + end->n_lids; lid++) {
		n = head = 0;
		memset(seen, 0, sizeof(seen));
		for (uint32_t sw = 0; sw < net.n_switches; sw++)
			lfts[sw][lid] = 0xff;
		for (int port = 1; port < PORTS; port++) {
			struct rsm_link *link = &net.switches[end->leaf].links[port];

			if (link->peer == RSM_LINK_END && link->lid == end->lid)
				lfts[end->leaf][lid] = port;
		}
		queue[n++] = end->leaf;
		seen[end->leaf] = true;
		while (head < n) {
			int at = queue[head++], first = below(net.n_switches);

			for (uint32_t i = 0; i < net.n_switches; i++) {
				int sw = (first + i) % net.n_switches;

				for (int port = 1; port < PORTS && !seen[sw]; port++) {
					if (net.switches[sw].links[port].peer != at)
						continue;
					lfts[sw][lid] = port;
					seen[sw] = true;
					queue[n++] = sw;
				}
			}
		}
	}
}

static void make_fabric(void)
{
	static struct rsm_net_switch switches[SWITCHES];
	static struct rsm_net_end ends[ENDS];
	static struct rsm_link links[SWITCHES][PORTS];
	uint16_t lid = 1;

	net = (struct rsm_net) { .switches = switches, .ends = ends, .sl = sl_of };
	net.n_switches = 2 + below(SWITCHES - 1);
	net.lanes = below(3);
	memset(told, 0, sizeof(told));
	for (uint32_t i = 0; i < net.n_switches; i++) {
		for (int port = 0; port < PORTS; port++)
			links[i][port] = (struct rsm_link) { .peer = RSM_LINK_NONE };
		memset(lfts[i], 0xff, LIDS);
		switches[i] = (struct rsm_net_switch) { 1000 + i, lfts[i], LIDS, PORTS, links[i] };
		if (i)
			cable(i, below(i));
	}
	for (uint32_t i = 0; i < net.n_switches; i++)
		cable(below(net.n_switches), below(net.n_switches));
	for (int i = 0; i < ENDS; i++) {
		int leaf = below(net.n_switches), lmc = below(5) ? 0 : below(3);

		if (free_port(leaf) < 0)
			continue;
		lid = ((lid + (1 << lmc) - 1) >> lmc << lmc) + below(3 << lmc) / (1 << lmc) * (1 << lmc);
		ends[net.n_ends] = (struct rsm_net_end) { .guid = 1 + i, .lid = lid,
							  .n_lids = 1 << lmc };
		end_attr[lid] = some_attr();
		plug(&ends[net.n_ends++], leaf);
		lid += 1 << lmc;
	}
	net.max_lid = lid;
	for (int a = 0; a < LIDS; a++)
		for (int b = 0; b < LIDS; b++)
			lanes[a][b] = below(2);
	for (uint32_t i = 0; i < net.n_ends; i++)
		route(&ends[i]);
}

/* From host to host, as the SA walks. */
static uint8_t walk(const struct rsm_net_end *from, const struct rsm_net_end *to, uint16_t dlid)
{
	uint8_t attr = from->attr;
	int sw = from->leaf;

	for (int hops = 0; hops < 64; hops++) {
		uint8_t port = lfts[sw][dlid];
		struct rsm_link *link;

		if (port >= PORTS)
			return RSM_NO_PATH;
		link = &net.switches[sw].links[port];
		if (link->peer == RSM_LINK_NONE)
			return RSM_NO_PATH;
		attr = rsm_attr_least(attr, link->attr);
		if (link->peer == RSM_LINK_END)
			return link->lid == to->lid ? attr : RSM_NO_PATH;
		sw = link->peer;
	}
	return RSM_NO_PATH;
}

static void work_out(void)
{
	memset(now, 0, sizeof(now));
	for (uint32_t i = 0; i < net.n_ends; i++) {
		for (int dlid = 1; dlid < LIDS; dlid++) {
			struct rsm_net_end *from = &net.ends[i], *to = end_at(dlid);

			if (!to || to == from)
				continue;
			now[from->lid][dlid] = (struct record) {
				from->guid, to->guid, walk(from, to, dlid),
				net.lanes ? sl_of(NULL, from->lid, dlid) : 0,
			};
		}
	}
}

static bool another(const struct record *a, const struct record *b)
{
	if (!a->source || a->source != b->source || a->destination != b->destination)
		return false;
	if (a->attr != b->attr)
		return true;
	return a->attr != RSM_NO_PATH && a->sl != b->sl;
}

static void fail(const char *what, int fabric, int round, int from, int to)
{
	fprintf(stderr, "fabric %d round %d, %d to %d: %s: told %#x SL %u, now %#x SL %u\n", fabric,
		round, from, to, what, told[from][to].attr, told[from][to].sl, now[from][to].attr,
		now[from][to].sl);
	exit(1);
}

static unsigned int check(struct rsm_prd *prd, int fabric, int round)
{
	static bool found[LIDS][LIDS];
	struct rsm_changes changes;
	unsigned int n = 0;

	memset(found, 0, sizeof(found));
	if (rsm_prd_update(prd, &net) || rsm_prd_changes(prd, LIDS, &changes))
		fail("no memory", fabric, round, 0, 0);
	for (uint32_t i = 0; i < changes.n_ends; i++) {
		struct rsm_changed_end *end = &changes.ends[i];

		if (end->n != end->n_kept)
			fail("not all kept", fabric, round, end->lid, 0);
		if (end->own_sl != (net.lanes == RSM_LANES_PORT && end->n_lids > 1))
			fail("of which LIDs", fabric, round, end->lid, 0);
		for (uint32_t j = 0; j < end->n; j++) {
			struct record *is = &now[end->lid][end->changes[j].dlid];

			if (end->changes[j].attr != is->attr || end->changes[j].sl != is->sl)
				fail("wrong values", fabric, round, end->lid, end->changes[j].dlid);
			found[end->lid][end->changes[j].dlid] = true;
			n++;
		}
	}
	if (changes.n != n)
		fail("wrong sum", fabric, round, 0, 0);
	rsm_changes_free(&changes);
	for (int a = 1; a < LIDS; a++)
		for (int b = 1; b < LIDS; b++)
			if (another(&told[a][b], &now[a][b]) != found[a][b])
				fail(found[a][b] ? "not changed" : "missed", fabric, round, a, b);
	return n;
}

static void change_one(void)
{
	struct rsm_net_end *end = &net.ends[below(net.n_ends)];
	struct rsm_link *link;
	int sw = below(net.n_switches), port = 1 + below(PORTS - 1);

	switch (below(9)) {
	case 0: /* another way */
		route(end);
		break;
	case 1: /* an entry that leads anywhere */
		lfts[sw][end->lid] = below(PORTS + 1);
		break;
	case 2: /* a cable comes */
		cable(sw, below(net.n_switches));
		break;
	case 3: /* one end of a cable goes, as when it is not yet discovered */
		link = &net.switches[sw].links[port];
		if (link->peer >= 0)
			link->peer = RSM_LINK_NONE;
		break;
	case 4: /* it is renegotiated */
		link = &net.switches[sw].links[port];
		if (link->peer >= 0)
			link->attr = some_attr();
		break;
	case 5: /* a host goes to another switch */
		if (free_port(sw) < 0)
			break;
		unplug(end);
		plug(end, sw);
		route(end);
		break;
	case 6: /* or is exchanged */
		end->guid += 100;
		break;
	case 7: /* or goes */
		if (net.n_ends < 3)
			break;
		unplug(end);
		*end = net.ends[--net.n_ends];
		break;
	case 8: /* another lane */
		lanes[below(net.lanes == RSM_LANES_SWITCH ? net.n_switches : LIDS)]
		     [below(net.lanes == RSM_LANES_SWITCH ? net.n_switches : LIDS)] ^= 1;
		break;
	}
}

/* The same switches in another order, one of them perhaps gone and back: places are not names. */
static void shuffle(void)
{
	uint32_t a = below(net.n_switches), b = below(net.n_switches);
	uint8_t lft[LIDS], lane;

	if (net.lanes == RSM_LANES_SWITCH) {
		for (uint32_t i = 0; i < net.n_switches; i++) {
			lane = lanes[a][i];
			lanes[a][i] = lanes[b][i];
			lanes[b][i] = lane;
		}
		for (uint32_t i = 0; i < net.n_switches; i++) {
			lane = lanes[i][a];
			lanes[i][a] = lanes[i][b];
			lanes[i][b] = lane;
		}
	}
	memcpy(lft, lfts[a], LIDS);
	memcpy(lfts[a], lfts[b], LIDS);
	memcpy(lfts[b], lft, LIDS);
	struct rsm_net_switch sw = net.switches[a];

	net.switches[a] = net.switches[b];
	net.switches[b] = sw;
	net.switches[a].lft = lfts[a];
	net.switches[b].lft = lfts[b];
	for (uint32_t i = 0; i < net.n_switches; i++) {
		for (int port = 1; port < PORTS; port++) {
			int32_t *peer = &net.switches[i].links[port].peer;

			*peer = *peer == (int)a ? (int)b : *peer == (int)b ? (int)a : *peer;
		}
	}
	for (uint32_t i = 0; i < net.n_ends; i++) {
		int32_t *leaf = &net.ends[i].leaf;

		*leaf = *leaf == (int)a ? (int)b : *leaf == (int)b ? (int)a : *leaf;
	}
}

static void replace_switch(void)
{
	net.switches[below(net.n_switches)].guid += 1000;
}

/* With many changes of a host only the first are listed, and all are counted. */
static void keeps_some(struct rsm_prd *prd)
{
	struct rsm_changes all, some;

	if (rsm_prd_changes(prd, LIDS, &all) || rsm_prd_changes(prd, 2, &some))
		exit(1);
	if (all.n != some.n || all.n_ends != some.n_ends)
		exit(1);
	for (uint32_t i = 0; i < some.n_ends; i++)
		if (some.ends[i].n != all.ends[i].n ||
		    some.ends[i].n_kept != (all.ends[i].n < 2 ? all.ends[i].n : 2))
			exit(1);
	rsm_changes_free(&all);
	rsm_changes_free(&some);
}

/*
 * Each allocation fails in turn, for all lanes, the first time and later: it is said, and after a reset
 * all is as with a new distinguisher.
 */
static void no_memory(void)
{
	int whole = 0; /* updates in a row that needed fewer */

	for (long at = 0; whole < 6; at++) {
		struct rsm_prd *prd = rsm_prd_new();
		bool failed;

		make_fabric();
		net.lanes = at % 3;
		work_out();
		memset(told, 0, sizeof(told));
		if (at % 2) {
			check(prd, at, 0);
			rsm_prd_told(prd);
			shuffle();
			replace_switch();
			work_out();
		}
		allocations = at / 6;
		failed = rsm_prd_update(prd, &net) == -ENOMEM;
		if (failed == (allocations >= 0))
			fail("fails where there is no memory", -1, at, 0, 0);
		allocations = -1;
		whole = failed ? 0 : whole + 1;
		if (failed) {
			rsm_prd_reset(prd);
			check(prd, -1, at);
			rsm_prd_told(prd);
			memcpy(told, now, sizeof(told));
			change_one();
			work_out();
			check(prd, -1, at);
		}
		rsm_prd_free(prd);
	}
}

int main(void)
{
	unsigned long long changed = 0;

	srand(1);
	for (int fabric = 0; fabric < FABRICS; fabric++) {
		struct rsm_prd *prd = rsm_prd_new();

		make_fabric();
		for (int round = 0; round < ROUNDS / (1 + fabric % 5); round++) {
			for (unsigned int i = below(4); i; i--)
				change_one();
			if (!below(10))
				shuffle();
			if (!below(20))
				replace_switch();
			if (!below(40))
				net.lanes = below(3);
			work_out();
			changed += check(prd, fabric, round);
			keeps_some(prd);
			if (!below(4))
				continue;
			rsm_prd_told(prd);
			memcpy(told, now, sizeof(told));
		}
		rsm_prd_free(prd);
	}
	no_memory();
	printf("%llu changes, all found\n", changed);
	return changed < 10000;
}
