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
static uint16_t told_base[LIDS]; /* the first LID of who had this one */
static bool told_lends[LIDS];
static struct rsm_net_end away; /* has gone, and may come back; guid 0: nobody */
static unsigned int away_for; /* how often hosts were told since */
static bool told_away[LIDS];
static unsigned int n_back; /* paths to and from who has come back that are others */
static unsigned long n_asked; /* paths that were asked for one by one */
static unsigned int n_others, n_taken; /* paths to ports with another LID, and of those whose LID another has */

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
	memset(told_away, 0, sizeof(told_away));
	away.guid = 0;
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

static const struct rsm_net_end *end_of(uint64_t guid)
{
	for (uint32_t i = 0; i < net.n_ends; i++)
		if (net.ends[i].guid == guid)
			return &net.ends[i];
	return NULL;
}

/* The LID to which paths to @was lead now that its port has others; 0: it has not, or there is no path. */
static uint16_t other_lid(int from, int was)
{
	const struct record *then = &told[from][was], *is = &now[from][was];
	const struct rsm_net_end *to, *here;
	uint16_t lid;

	if (!then->source || is->destination == then->destination || told_lends[was])
		return 0;
	here = end_at(from);
	to = end_of(then->destination);
	if (!to || to->lends || !here || here == to || here->lid != from || here->guid != then->source)
		return 0;
	lid = to->lid + (was - told_base[was]) % to->n_lids;
	is = &now[from][lid];
	return is->attr == RSM_NO_PATH ? 0 : lid;
}

static bool is_away(int lid)
{
	return away.guid && lid >= away.lid && lid < away.lid + away.n_lids && !end_at(lid);
}

static bool is_still(int lid, uint64_t guid)
{
	const struct rsm_net_end *end = end_at(lid);

	return end ? end->guid == guid : is_away(lid);
}

/* Of who is away hosts know what they knew. */
static void tell(struct rsm_prd *prd)
{
	rsm_prd_told(prd);
	away_for++;
	for (int a = 0; a < LIDS; a++)
		for (int b = 0; b < LIDS; b++)
			if ((!is_away(a) && !is_away(b)) || !is_still(a, told[a][b].source) ||
			    !is_still(b, told[a][b].destination))
				told[a][b] = now[a][b];
	for (int lid = 0; lid < LIDS; lid++) {
		const struct rsm_net_end *end = end_at(lid);

		told_away[lid] = is_away(lid);
		if (told_away[lid])
			continue;
		told_base[lid] = end ? end->lid : 0;
		told_lends[lid] = end && end->lends;
	}
}

static void fail(const char *what, int fabric, int round, int from, int to)
{
	fprintf(stderr, "fabric %d round %d, %d to %d: %s: told %#x SL %u, now %#x SL %u\n", fabric,
		round, from, to, what, told[from][to].attr, told[from][to].sl, now[from][to].attr,
		now[from][to].sl);
	exit(1);
}

/* One path by itself: as it is, and whether it is what hosts were told. */
static unsigned int ask(const struct rsm_prd *prd, uint16_t from, uint16_t to, bool is_news, int fabric, int round)
{
	const struct record *is = &now[from][to];
	struct rsm_changed_end end;
	struct rsm_change path;

	if (from == to || !rsm_prd_path(prd, from, to, &end, &path))
		return 0;
	if (end.lid != from || path.dlid != to || path.attr != is->attr || path.sl != is->sl)
		fail("asked for", fabric, round, from, to);
	if (rsm_prd_is_told(prd, from, to) == is_news)
		fail("known or not", fabric, round, from, to);
	return 1;
}

static unsigned int check(struct rsm_prd *prd, int fabric, int round)
{
	static uint16_t others[LIDS][LIDS];
	static bool found[LIDS][LIDS], news[LIDS];
	struct rsm_changes changes;
	unsigned int n = 0;

	memset(found, 0, sizeof(found));
	memset(others, 0, sizeof(others));
	memset(news, 0, sizeof(news));
	if (rsm_prd_update(prd, &net) || rsm_prd_changes(prd, LIDS, &changes))
		fail("no memory", fabric, round, 0, 0);
	for (uint32_t i = 0; i < changes.n_ends; i++) {
		struct rsm_changed_end *end = &changes.ends[i];

		if (end->n != end->n_kept)
			fail("not all kept", fabric, round, end->lid, 0);
		if (end->own_sl != (net.lanes == RSM_LANES_PORT && end->n_lids > 1))
			fail("of which LIDs", fabric, round, end->lid, 0);
		for (uint32_t j = 0; j < end->n; j++) {
			struct rsm_change *change = &end->changes[j];
			struct record *is = &now[end->lid][change->dlid];

			if (change->attr != is->attr || change->sl != is->sl)
				fail("wrong values", fabric, round, end->lid, change->dlid);
			if (change->was && (change->guid != is->destination || change->taken != !!end_at(change->was)))
				fail("wrong port", fabric, round, end->lid, change->dlid);
			if (change->was && change->several != (end_at(change->dlid)->n_lids > 1))
				fail("of how many LIDs", fabric, round, end->lid, change->dlid);
			if (change->was ? others[end->lid][change->was] : found[end->lid][change->dlid])
				fail("twice", fabric, round, end->lid, change->dlid);
			if (change->was)
				others[end->lid][change->was] = change->dlid;
			else
				found[end->lid][change->dlid] = true;
			news[change->dlid] = true;
			n_others += change->was && !change->taken;
			n_taken += change->taken;
			n_back += told_away[change->was ? change->was : change->dlid] || told_away[end->lid];
			n++;
		}
	}
	for (uint32_t i = 0; i < net.n_ends; i++)
		for (uint32_t j = 0; j < net.n_ends; j++)
			n_asked += ask(prd, net.ends[i].lid, net.ends[j].lid,
				       found[net.ends[i].lid][net.ends[j].lid], fabric, round);
	if (changes.n != n)
		fail("wrong sum", fabric, round, 0, 0);
	for (int lid = 0; lid < LIDS; lid++)
		if (rsm_prd_is_news(prd, lid) != news[lid])
			fail("news of a LID", fabric, round, 0, lid);
	rsm_changes_free(&changes);
	for (int a = 1; a < LIDS; a++)
		for (int b = 1; b < LIDS; b++)
			if (another(&told[a][b], &now[a][b]) != found[a][b] &&
			    !(found[a][b] && (told_away[a] || told_away[b])))
				fail(found[a][b] ? "not changed" : "missed", fabric, round, a, b);
	for (int a = 1; a < LIDS; a++)
		for (int b = 1; b < LIDS; b++)
			if (other_lid(a, b) != others[a][b] && !(others[a][b] && (told_away[a] || told_away[b])))
				fail(others[a][b] ? "has not moved there" : "not seen to move", fabric, round, a, b);
	return n;
}

static bool is_free(int lid, int n, const struct rsm_net_end *but)
{
	bool is = lid + n <= LIDS;

	for (int i = lid; is && i < lid + n; i++)
		is = !end_at(i) || end_at(i) == but;
	return is;
}

/* The port is known by it to its switch. */
static void set_lids(struct rsm_net_end *end, uint16_t lid, uint8_t n_lids)
{
	uint8_t attr = end_attr[end->lid];

	for (int port = 1; port < PORTS; port++) {
		struct rsm_link *link = &net.switches[end->leaf].links[port];

		if (link->peer == RSM_LINK_END && link->lid == end->lid)
			link->lid = lid;
	}
	end->lid = lid;
	end->n_lids = n_lids;
	end_attr[lid] = attr;
	if (lid + n_lids - 1 > net.max_lid)
		net.max_lid = lid + n_lids - 1;
	route(end);
}

/* A port gets other LIDs, more or fewer, or those of another one, which gets its. */
static void other_lids(struct rsm_net_end *end)
{
	struct rsm_net_end *other = &net.ends[below(net.n_ends)], is = *end;
	int n = 1 << below(3), lid = (1 + below(LIDS - 8)) / n * n;

	switch (below(4)) {
	case 0:
		if (is_free(end->lid, n, end) && end->lid % n == 0)
			set_lids(end, end->lid, n);
		break;
	case 1:
		/* It is at a third place meanwhile: links know ports by their LIDs. */
		if (other == end || !is_free(LIDS - 4, 4, NULL))
			break;
		set_lids(end, LIDS - 4, 1);
		n = other->n_lids;
		lid = other->lid;
		set_lids(other, is.lid, is.n_lids);
		set_lids(end, lid, n);
		break;
	default:
		if (lid && is_free(lid, n, NULL))
			set_lids(end, lid, n);
		break;
	}
}

/* Hosts have been told of it, with these LIDs. */
static bool is_known(const struct rsm_net_end *end)
{
	int known = 0;

	for (int lid = 1; lid < LIDS; lid++) {
		bool of_it = false;

		for (int from = 1; from < LIDS; from++)
			of_it |= told[from][lid].destination == end->guid;
		if (of_it && (lid < end->lid || lid >= end->lid + end->n_lids))
			return false;
		known += of_it;
	}
	return known == end->n_lids;
}

/* Who has gone comes back: where it was or elsewhere, perhaps with another LID. */
static void come_back(void)
{
	int leaf = below(2) ? away.leaf : (int)below(net.n_switches);
	struct rsm_net_end *end = &net.ends[net.n_ends];
	int lid = below(4) ? away.lid : 1 + (int)below(LIDS - 8);

	if (net.n_ends < ENDS && free_port(leaf) >= 0 && lid % away.n_lids == 0 && is_free(lid, away.n_lids, NULL)) {
		*end = away;
		net.n_ends++;
		end_attr[lid] = end_attr[away.lid];
		end->lid = lid;
		plug(end, leaf);
		if (lid + end->n_lids - 1 > net.max_lid)
			net.max_lid = lid + end->n_lids - 1;
		route(end);
	}
	away.guid = 0;
}

static void change_one(void)
{
	struct rsm_net_end *end = &net.ends[below(net.n_ends)];
	struct rsm_link *link;
	int sw = below(net.n_switches), port = 1 + below(PORTS - 1);

	switch (below(11)) {
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
		if (!away.guid && is_known(end) && !told_away[end->lid]) {
			away = *end;
			away_for = 0;
		}
		*end = net.ends[--net.n_ends];
		break;
	case 8: /* another lane */
		lanes[below(net.lanes == RSM_LANES_SWITCH ? net.n_switches : LIDS)]
		     [below(net.lanes == RSM_LANES_SWITCH ? net.n_switches : LIDS)] ^= 1;
		break;
	case 9:
		other_lids(end);
		break;
	case 10: /* VMs come to it, or leave it */
		if (!below(4))
			end->lends = !end->lends;
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
	for (uint32_t i = 0; i < some.n_ends; i++) {
		const struct rsm_changed_end *one = &some.ends[i], *same = &all.ends[i];

		if (one->lid != same->lid || one->n != same->n || one->n_kept != (same->n < 2 ? same->n : 2))
			exit(1);
		for (uint32_t n = 0; n < one->n_kept; n++)
			if (one->changes[n].dlid != same->changes[n].dlid || one->changes[n].attr != same->changes[n].attr ||
			    one->changes[n].sl != same->changes[n].sl)
				exit(1);
	}
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
			tell(prd);
			change_one();
			work_out();
			check(prd, -1, at);
		}
		rsm_prd_free(prd);
	}
}

static void exchange(void *a, void *b, size_t size)
{
	uint8_t kept[sizeof(struct record) * LIDS];

	memcpy(kept, a, size);
	memcpy(a, b, size);
	memcpy(b, kept, size);
}

/* What was told of a LID was of the VM that has it. */
static void renamed(uint16_t lid, uint64_t guid)
{
	for (int other = 0; other < LIDS; other++) {
		if (told[lid][other].source)
			told[lid][other].source = guid;
		if (told[other][lid].source)
			told[other][lid].destination = guid;
	}
}

static struct rsm_link *link_to(const struct rsm_net_end *end)
{
	for (int port = 1; port < PORTS; port++) {
		struct rsm_link *link = &net.switches[end->leaf].links[port];

		if (link->peer == RSM_LINK_END && link->lid == end->lid)
			return link;
	}
	exit(1);
}

/* Two VMs change places: lanes by LID, too, are those of the place. */
static bool exchange_vms(struct rsm_prd *prd)
{
	struct rsm_net_end *one = &net.ends[below(net.n_ends)], *other = &net.ends[below(net.n_ends)];
	struct rsm_link *first = link_to(one), *second = link_to(other);
	uint16_t a = one->lid, b = other->lid;

	if (one == other || one->n_lids > 1 || other->n_lids > 1)
		return false;
	one->lid = first->lid = b;
	other->lid = second->lid = a;
	exchange(&end_attr[a], &end_attr[b], 1);
	for (uint32_t sw = 0; sw < net.n_switches; sw++)
		exchange(&lfts[sw][a], &lfts[sw][b], 1);
	if (net.lanes != RSM_LANES_SWITCH) {
		exchange(lanes[a], lanes[b], LIDS);
		for (int lid = 0; lid < LIDS; lid++)
			exchange(&lanes[lid][a], &lanes[lid][b], 1);
	}
	renamed(a, other->guid);
	renamed(b, one->guid);
	rsm_prd_take_along(prd, a, other->guid);
	rsm_prd_take_along(prd, b, one->guid);
	net.moved[0] = a;
	net.moved[1] = b;
	net.n_moved = 2;
	return true;
}

/* Also where what was routed before is not told, or not hosts of another move. */
static unsigned int vms(struct rsm_prd *prd, int fabric, int round)
{
	unsigned int n;

	if (!exchange_vms(prd))
		return 0;
	work_out();
	n = check(prd, fabric, round);
	keeps_some(prd);
	if (below(4))
		tell(prd);
	net.n_moved = 0;
	return n;
}

/*
 * A VM takes its port along: while it is nowhere, or is still where no table leads to any more, nobody is told. When
 * it has come they are whose paths to it are others than they knew.
 */
static void on_its_way(struct rsm_prd *prd, int fabric, int round)
{
	struct rsm_net_end *end = &net.ends[below(net.n_ends)], vm = *end;
	uint16_t lid = vm.lid;
	unsigned int sw = below(net.n_switches);

	if (vm.n_lids > 1 || free_port(sw) < 0)
		return;
	work_out();
	check(prd, fabric, round);
	tell(prd);

	rsm_prd_hold(prd, &lid, 1);
	for (uint32_t i = 0; i < net.n_switches; i++)
		lfts[i][lid] = 0xff;
	for (int gone = 0; gone < 2; gone++) {
		work_out();
		for (int i = 1; i < LIDS; i++) {
			now[i][lid] = told[i][lid];
			now[lid][i] = told[lid][i];
		}
		check(prd, fabric, round);
		rsm_prd_told(prd);
		away_for++;
		if (gone)
			continue;
		unplug(&vm);
		*end = net.ends[--net.n_ends];
	}
	rsm_prd_hold(prd, NULL, 0);

	net.ends[net.n_ends++] = vm;
	plug(&net.ends[net.n_ends - 1], sw);
	route(&net.ends[net.n_ends - 1]);
	work_out();
	check(prd, fabric, round);
	tell(prd);
}

/* Whoever is on its way when there are other lanes is told of in any case. */
static void lanes_meanwhile(void)
{
	struct rsm_prd *prd = rsm_prd_new();
	struct rsm_changes changes;
	struct rsm_net_end vm;
	uint16_t lid;

	do
		make_fabric();
	while (net.n_switches < 3 || net.n_ends < 3 || net.ends[net.n_ends - 1].n_lids > 1);
	net.lanes = RSM_LANES_SWITCH;
	vm = net.ends[net.n_ends - 1];
	lid = vm.lid;
	rsm_prd_update(prd, &net);
	rsm_prd_told(prd);
	rsm_prd_hold(prd, &lid, 1);
	net.n_ends--;
	rsm_prd_update(prd, &net);
	rsm_prd_told(prd);
	for (int i = 0; i < SWITCHES; i++)
		for (int j = 0; j < SWITCHES; j++)
			lanes[i][j] ^= 1;
	rsm_prd_update(prd, &net);
	rsm_prd_told(prd);
	rsm_prd_hold(prd, NULL, 0);
	net.n_ends++;
	rsm_prd_update(prd, &net);
	if (rsm_prd_changes(prd, LIDS, &changes) || changes.n_ends < net.n_ends - 1)
		fail("lanes meanwhile", -1, -1, 0, lid);
	rsm_changes_free(&changes);
	rsm_prd_free(prd);
}

/* How many paths are others when the last port has been away for so many times of telling; with another lane or not. */
static uint64_t back_after(int times, bool other)
{
	struct rsm_prd *prd = rsm_prd_new();
	struct rsm_changes changes;
	uint64_t n;

	do
		make_fabric();
	while (net.n_ends < 3 || net.ends[0].n_lids > 1 || net.ends[net.n_ends - 1].n_lids > 1);
	net.lanes = RSM_LANES_PORT;
	rsm_prd_update(prd, &net);
	rsm_prd_told(prd);
	net.n_ends--;
	while (times--) {
		rsm_prd_update(prd, &net);
		rsm_prd_told(prd);
	}
	lanes[net.ends[0].lid][net.ends[net.n_ends++].lid] ^= other;
	rsm_prd_update(prd, &net);
	if (rsm_prd_changes(prd, LIDS, &changes))
		fail("no memory", -1, -1, 0, 0);
	n = changes.n;
	rsm_changes_free(&changes);
	rsm_prd_free(prd);
	return n;
}

/* Who comes back is told of if its path is another, and only then; and after a while it is new. */
static void comes_back(void)
{
	for (int times = 1; times <= RSM_PRD_REMEMBERED + 1; times++)
		for (int other = 0; other < 2; other++)
			if (back_after(times, other) != (other && times <= RSM_PRD_REMEMBERED))
				fail("who is back", other, times, 0, 0);
}

int main(void)
{
	unsigned long long changed = 0, moved = 0;

	srand(1);
	for (int fabric = 0; fabric < FABRICS; fabric++) {
		struct rsm_prd *prd = rsm_prd_new();

		make_fabric();
		for (int round = 0; round < ROUNDS / (1 + fabric % 5); round++) {
			for (unsigned int i = below(4); i; i--)
				change_one();
			if (away.guid && (!below(3) || away_for + 9 > RSM_PRD_REMEMBERED))
				come_back();
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
			tell(prd);
			for (unsigned int i = below(4); i; i--)
				moved += vms(prd, fabric, round);
			if (!below(5))
				on_its_way(prd, fabric, round);
		}
		rsm_prd_free(prd);
	}
	no_memory();
	lanes_meanwhile();
	comes_back();
	printf("%llu changes, and %llu by VMs that move, all found; %u paths lead to another LID, and %u more whose LID another port has; %u are of who was away\n",
	       changed, moved, n_others, n_taken, n_back);
	printf("%lu paths asked for\n", n_asked);
	return n_asked < 5000000 || changed < 10000 || moved < 10000 || n_others < 1000 || n_taken < 1000 || n_back < 1000;
}
