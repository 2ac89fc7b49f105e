// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fat-tree routing by brute force: from every switch to every LID, packets are walked by the tables.
 * Those of hosts must go up and then down, by a shortest such way; all must arrive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fat_tree.h"
#include "judged.h"
#include "router.h"
#include "topo_net.h"

#define FAR 1000

struct fabric {
	struct net net;
	struct rsm_topo topo;
	struct rsm_fat_tree tree;
	struct rsm_routes routes;
	char why[200];
};

static void tables_new(struct fabric *f)
{
	f->routes.n_lft = f->topo.max_lid + 1;
	f->routes.lft = calloc(f->topo.n_switches, sizeof(*f->routes.lft));
	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		f->routes.lft[i] = malloc(f->routes.n_lft);
		memset(f->routes.lft[i], RSM_NO_PORT, f->routes.n_lft);
	}
}

static void close_fabric(struct fabric *f)
{
	for (uint32_t i = 0; i < f->topo.n_switches && f->routes.lft; i++)
		free(f->routes.lft[i]);
	free(f->routes.lft);
	rsm_fat_tree_free(&f->tree);
	rsm_topo_free(&f->topo);
	net_free(&f->net);
}

static void read_net(struct fabric *f, const char *spec)
{
	*f = (struct fabric) { 0 };
	net_init(&f->net);
	CHECK_EQ(net_make(&f->net, spec), 0);
}

/* Routes what the net has become. */
static int route(struct fabric *f, unsigned int lmc)
{
	int rc;

	CHECK_EQ(topo_of_net(&f->net, lmc, 8, &f->topo), 0);
	rc = rsm_fat_tree_make(&f->tree, &f->topo, f->why, sizeof(f->why));
	if (rc)
		return rc;
	tables_new(f);
	return rsm_fat_tree_route(&f->tree, &f->routes);
}

/* Cables from a switch to another up and then down, without the tree's own idea of it. */
static void shortest(const struct fabric *f, uint32_t to, unsigned int *cables)
{
	uint32_t n = f->topo.n_switches;
	unsigned int *falling = malloc(n * sizeof(*falling));
	bool more = true;

	for (uint32_t i = 0; i < n; i++)
		falling[i] = cables[i] = i == to ? 0 : FAR;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < n; i++)
			for (unsigned int p = 1; p < f->topo.switches[i].n_ports; p++) {
				int32_t peer = f->topo.switches[i].ports[p].peer;
				unsigned int found;

				if (peer < 0)
					continue;
				if (f->tree.switches[peer].level > f->tree.switches[i].level) {
					found = cables[peer] + 1;
				} else {
					found = falling[peer] + 1;
					if (found < falling[i])
						falling[i] = found;
				}
				if (found < cables[i]) {
					cables[i] = found;
					more = true;
				}
			}
	}
	free(falling);
}

/* Returns the cables on the way; -1: it turns up after it went down. */
static int walk(const struct fabric *f, uint32_t sw, uint16_t lid, uint32_t to, uint8_t last_port)
{
	int cables = 0;
	bool fell = false, turned = false;

	while (sw != to) {
		uint8_t port = f->routes.lft[sw][lid];
		int32_t peer;

		CHECK(port && port < f->topo.switches[sw].n_ports);
		peer = f->topo.switches[sw].ports[port].peer;
		CHECK(peer >= 0);
		if (f->tree.switches[peer].level < f->tree.switches[sw].level)
			fell = true;
		else if (fell)
			turned = true;
		sw = peer;
		CHECK(++cables < 100);
	}
	CHECK_EQ(f->routes.lft[sw][lid], last_port);
	return turned ? -1 : cables;
}

/* A switch that was lost is still in the net. */
static bool lost(const struct fabric *f, uint32_t sw)
{
	for (unsigned int p = 1; p < f->topo.switches[sw].n_ports; p++)
		if (f->topo.switches[sw].ports[p].peer != RSM_TOPO_NONE)
			return false;
	return true;
}

static void check_all_ways(const struct fabric *f)
{
	unsigned int *cables = malloc(f->topo.n_switches * sizeof(*cables));

	CHECK_EQ(judged(&f->topo, &f->routes, false, NULL), 0);
	for (uint32_t e = 0; e < f->topo.n_ends; e++) {
		const struct rsm_topo_end *end = &f->topo.ends[e];

		shortest(f, end->leaf, cables);
		for (uint32_t sw = 0; sw < f->topo.n_switches; sw++)
			for (unsigned int k = 0; k < end->n_lids && !lost(f, sw); k++) {
				int found = walk(f, sw, end->lid + k, end->leaf, end->leaf_port);

				if (cables[sw] < FAR)
					CHECK_EQ(found, cables[sw]);
				else
					CHECK(f->tree.switches[sw].leaf < 0);
			}
	}
	for (uint32_t to = 0; to < f->topo.n_switches; to++) {
		shortest(f, to, cables);
		for (uint32_t sw = 0; sw < f->topo.n_switches; sw++) {
			int found;

			if (lost(f, sw) || lost(f, to))
				continue;
			found = walk(f, sw, f->topo.switches[to].lid, to, 0);
			if (cables[sw] < FAR)
				CHECK_EQ(found, cables[sw]);
		}
	}
	free(cables);
}

static void routed(const char *spec, unsigned int lmc)
{
	struct fabric f;

	read_net(&f, spec);
	CHECK_EQ(route(&f, lmc), 0);
	check_all_ways(&f);
	close_fabric(&f);
}

/* Of the cables that lead down to, or up from, level: the LIDs of hosts that go over each. */
static void load(const struct fabric *f, unsigned int level, bool down, unsigned int *least,
		 unsigned int *most)
{
	uint32_t n = f->topo.n_switches;
	uint8_t (*used)[256] = calloc(n, 256);
	unsigned int (*count)[256] = calloc(n, sizeof(*count));

	*least = FAR * FAR;
	*most = 0;
	for (uint32_t e = 0; e < f->topo.n_ends; e++)
		for (unsigned int k = 0; k < f->topo.ends[e].n_lids; k++) {
			memset(used, 0, n * sizeof(*used));
			for (uint32_t i = 0; i < f->tree.n_leaves; i++)
				for (uint32_t sw = f->tree.leaves[i]; sw != (uint32_t)f->topo.ends[e].leaf;) {
					uint8_t port = f->routes.lft[sw][f->topo.ends[e].lid + k];

					used[sw][port] = 1;
					sw = f->topo.switches[sw].ports[port].peer;
				}
			for (uint32_t sw = 0; sw < n; sw++)
				for (unsigned int p = 1; p < f->topo.switches[sw].n_ports; p++)
					count[sw][p] += used[sw][p];
		}
	for (uint32_t sw = 0; sw < n; sw++)
		for (unsigned int p = 1; p < f->topo.switches[sw].n_ports; p++) {
			int32_t peer = f->topo.switches[sw].ports[p].peer;
			unsigned int from = f->tree.switches[sw].level;

			if (peer < 0 || (down ? f->tree.switches[peer].level != level ||
						from <= level :
						from != level || f->tree.switches[peer].level <= level))
				continue;
			if (count[sw][p] < *least)
				*least = count[sw][p];
			if (count[sw][p] > *most)
				*most = count[sw][p];
		}
	free(used);
	free(count);
}

/* In a full tree all cables between two levels have the same number of LIDs. */
static void balanced(const char *spec, unsigned int lmc, unsigned int spread)
{
	unsigned int least, most;
	struct fabric f;

	read_net(&f, spec);
	CHECK_EQ(route(&f, lmc), 0);
	for (unsigned int level = 0; level + 1 < f.tree.n_levels; level++)
		for (int down = 0; down < 2; down++) {
			load(&f, level, down, &least, &most);
			printf("%s lmc %u level %u %s: %u to %u\n", spec, lmc, level,
			       down ? "down" : "up", least, most);
			CHECK(most - least <= spread);
		}
	close_fabric(&f);
}

/* Cables that go one after another, as long as it is a tree. Returns how many went. */
static unsigned int cut(struct fabric *f, unsigned int n, unsigned int seed)
{
	unsigned int gone = 0;

	srand(seed);
	while (gone < n) {
		uint32_t node = rand() % f->net.n;
		unsigned int port = 1 + rand() % f->net.nodes[node].nports;
		uint32_t peer = f->net.nodes[node].ports[port].peer;

		if (f->net.nodes[node].type != NET_SWITCH || peer == NET_NONE ||
		    f->net.nodes[peer].type != NET_SWITCH)
			continue;
		net_unplug(&f->net, node, port);
		gone++;
	}
	return gone;
}

/* @wanted: in how many of them each two leaves still have a way up and then down; seeds are listed */
static void routed_without(const char *spec, unsigned int cables, unsigned int seeds, unsigned int wanted)
{
	unsigned int trees = 0;

	for (unsigned int seed = 1; seed <= seeds; seed++) {
		struct fabric f;

		read_net(&f, spec);
		cut(&f, cables, seed);
		if (route(&f, 0)) {
			CHECK(strstr(f.why, "up and then down"));
		} else {
			check_all_ways(&f);
			trees++;
		}
		close_fabric(&f);
	}
	printf("%s without %u cables: %u of %u were trees\n", spec, cables, trees, seeds);
	CHECK_EQ(trees, wanted);
}

static void routed_without_switch(const char *spec, const char *name)
{
	struct fabric f;
	uint32_t node;

	read_net(&f, spec);
	node = net_find(&f.net, name);
	CHECK(node != NET_NONE);
	for (unsigned int port = 1; port <= f.net.nodes[node].nports; port++)
		net_unplug(&f.net, node, port);
	CHECK_EQ(route(&f, 0), 0);
	check_all_ways(&f);
	close_fabric(&f);
}

/* A leaf that lost a cable spreads what went there over its others. */
static void balanced_without_a_cable(void)
{
	unsigned int least, most;
	struct fabric f;
	uint32_t leaf;

	read_net(&f, "xgft:6,8/1,6");
	leaf = net_find(&f.net, "L1-1");
	CHECK(leaf != NET_NONE);
	net_unplug(&f.net, leaf, 7);
	CHECK_EQ(route(&f, 0), 0);
	check_all_ways(&f);
	load(&f, 0, false, &least, &most);
	printf("up without a cable: %u to %u\n", least, most);
	/* 42 LIDs of others over 5 cables; at the other leaves 41 over 6 have no cable too many. */
	CHECK(most <= 10);
	CHECK(least >= 6);
	load(&f, 0, true, &least, &most);
	printf("down without a cable: %u to %u\n", least, most);
	CHECK(most <= 3);
	close_fabric(&f);
}

static void refused(const char *spec, const char *reason)
{
	struct fabric f;

	read_net(&f, spec);
	CHECK_EQ(route(&f, 0), -22);
	printf("%s: %s\n", spec, f.why);
	CHECK(strstr(f.why, reason));
	close_fabric(&f);
}

/* Switches in a row by two cables each, a host at the first: levels that have no number any more. */
static void row(unsigned int n, int rc)
{
	struct fabric f = { 0 };
	char name[16];

	net_init(&f.net);
	for (unsigned int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "S%u", i + 1);
		CHECK_EQ(net_add(&f.net, NET_SWITCH, name, NULL, 4), i);
		for (unsigned int port = 1; port <= 2 && i; port++)
			CHECK_EQ(net_plug(&f.net, i, port, i - 1, port + 2), 0);
	}
	CHECK_EQ(net_plug(&f.net, net_add(&f.net, NET_HCA, "X", NULL, 1), 1, 0, 1), 0);
	CHECK_EQ(topo_of_net(&f.net, 0, 8, &f.topo), 0);
	CHECK_EQ(rsm_fat_tree_make(&f.tree, &f.topo, f.why, sizeof(f.why)), rc);
	if (rc)
		CHECK(strstr(f.why, "no tree: it has more than 255 levels"));
	else
		CHECK_EQ(f.tree.n_levels, n);
	close_fabric(&f);
}

/* One host has no vSwitch: its leaf has an end, and neighbours below that have some, too. */
static void vswitches_and_a_host(void)
{
	struct fabric f;
	uint32_t host;

	read_net(&f, "xgft:2,3,2/1,2,2");
	CHECK_EQ(net_vswitch(&f.net, 0, 2), 0);
	host = net_add(&f.net, NET_HCA, "X", NULL, 1);
	net_unplug(&f.net, net_find(&f.net, "L1-1"), 4);
	CHECK_EQ(net_plug(&f.net, host, 1, net_find(&f.net, "L1-1"), 4), 0);
	CHECK_EQ(route(&f, 0), 0);
	CHECK_EQ(f.tree.n_levels, 4);
	check_all_ways(&f);
	close_fabric(&f);
}

int main(void)
{
	routed("tree:4,1", 0);
	routed("tree:8,2", 0);
	routed("tree:4,3", 2);
	routed("tree:4,4", 0);
	routed("xgft:2,3/1,2", 0);
	routed("xgft:4,4,3/1,2,2", 1);
	routed("xgft:3,3,2/1,2,2,vswitch=2", 0);
	vswitches_and_a_host();
	balanced("tree:8,2", 0, 0);
	balanced("tree:8,3", 0, 0);
	balanced("tree:8,2", 1, 0);
	balanced("tree:36,2", 0, 0);
	balanced("xgft:8,6/1,4", 0, 0);
	balanced("xgft:8,6/1,4", 2, 0);
	balanced_without_a_cable();
	/* Two leaves of the first have four ways: to lose them takes as many cables. In one of the last a leaf is cut off. */
	routed_without("tree:8,2", 3, 20, 20);
	routed_without("tree:6,3", 5, 20, 20);
	routed_without("tree:4,4", 2, 20, 19);
	routed_without_switch("tree:8,2", "L2-4");
	routed_without_switch("tree:8,3", "L2-1");
	routed_without_switch("tree:8,3", "L3-16");
	refused("mesh:3x3", "on the same level");
	refused("torus:4x4", "on the same level");
	refused("random:16,degree=4,hosts=2", "on the same level");
	row(255, 0);
	row(256, -22);
	row(300, -22);
	puts("ok");
	return 0;
}
