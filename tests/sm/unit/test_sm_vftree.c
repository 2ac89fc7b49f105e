// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* vFtree's lanes: what the paper's algorithm says, step by step, of the same on the way back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "judged.h"
#include "options.h"
#include "router.h"
#include "topo_net.h"

#define MOST_LEAVES 40

struct fabric {
	struct net net;
	struct rsm_topo topo;
	struct rsm_routes routes;
	char why[200];
};

static int open_fabric(struct fabric *f, const char *spec, unsigned int lmc, uint8_t vls, int lanes,
		       bool even)
{
	struct rsm_options opt;
	int rc;

	*f = (struct fabric) { 0 };
	net_init(&f->net);
	CHECK_EQ(net_make(&f->net, spec), 0);
	CHECK_EQ(topo_of_net(&f->net, lmc, vls, &f->topo), 0);
	CHECK_EQ(rsm_options_read(&opt, "/dev/null", f->why, sizeof(f->why)), 0);
	opt.vftree_lanes = lanes;
	opt.vftree_even = even;
	f->routes.n_lft = f->topo.max_lid + 1;
	f->routes.lft = calloc(f->topo.n_switches, sizeof(*f->routes.lft));
	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		f->routes.lft[i] = malloc(f->routes.n_lft);
		memset(f->routes.lft[i], RSM_NO_PORT, f->routes.n_lft);
	}
	rc = rsm_vftree_router.route(&f->topo, &opt, &f->routes, f->why, sizeof(f->why));
	if (!rc)
		CHECK_EQ(judged(&f->topo, &f->routes, true, NULL), 0);
	return rc;
}

static void close_fabric(struct fabric *f)
{
	for (uint32_t i = 0; i < f->topo.n_switches; i++)
		free(f->routes.lft[i]);
	free(f->routes.lft);
	if (f->routes.free)
		f->routes.free(f->routes.context);
	rsm_topo_free(&f->topo);
	net_free(&f->net);
}

/* Line by line as it is printed. */
static void paper(unsigned int leaves, unsigned int maxvl, int vl[MOST_LEAVES][MOST_LEAVES])
{
	memset(vl, -1, MOST_LEAVES * sizeof(vl[0]));
	for (unsigned int swsrc = 0; swsrc < leaves; swsrc++) {
		unsigned int lane;

		if ((swsrc * 2 / maxvl) & 1)
			lane = ((swsrc * 2) % maxvl) + 1;
		else
			lane = (swsrc * 2) % maxvl;
		for (unsigned int swdst = 0; swdst < leaves; swdst++) {
			if (swdst > swsrc) {
				if (vl[swsrc][swdst] < 0)
					vl[swsrc][swdst] = lane;
				if (vl[swdst][swsrc] < 0)
					vl[swdst][swsrc] = lane;
				lane = (lane + 1) % maxvl;
			} else if (swdst == swsrc) {
				vl[swdst][swsrc] = 0;
			}
		}
	}
}

static uint8_t lane(struct fabric *f, const struct rsm_topo_end *a, const struct rsm_topo_end *b)
{
	uint8_t sl = f->routes.sl(f->routes.context, a->lid, b->lid);

	/* All LIDs of an end are as its first, and SL n is VL n everywhere. */
	for (unsigned int k = 1; k < b->n_lids; k++)
		CHECK_EQ(f->routes.sl(f->routes.context, a->lid + k, b->lid + k), sl);
	CHECK_EQ(f->routes.vl(f->routes.context, a->leaf, a->leaf_port, 1, sl), sl);
	CHECK_EQ(f->routes.vl(f->routes.context, -1, 0, a - f->topo.ends, sl), sl);
	return sl;
}

/* Leaves are counted in the order of their switches. */
static unsigned int number_leaves(const struct fabric *f, int *leaf_of)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		leaf_of[i] = -1;
		for (uint32_t e = 0; e < f->topo.n_ends && leaf_of[i] < 0; e++)
			if (f->topo.ends[e].leaf == (int32_t)i)
				leaf_of[i] = n++;
	}
	return n;
}

static void as_in_the_paper(const char *spec, unsigned int lmc, uint8_t vls, int lanes)
{
	unsigned int used = lanes ? lanes : vls, n, count[16] = { 0 }, least = UINT32_MAX, most = 0;
	static int vl[MOST_LEAVES][MOST_LEAVES];
	struct fabric f;
	int *leaf_of;

	CHECK_EQ(open_fabric(&f, spec, lmc, vls, lanes, false), 0);
	leaf_of = calloc(f.topo.n_switches, sizeof(*leaf_of));
	n = number_leaves(&f, leaf_of);
	CHECK(n <= MOST_LEAVES);
	paper(n, used, vl);
	for (uint32_t a = 0; a < f.topo.n_ends; a++) {
		for (uint32_t b = 0; b < f.topo.n_ends; b++) {
			const struct rsm_topo_end *from = &f.topo.ends[a], *to = &f.topo.ends[b];
			uint8_t found = lane(&f, from, to);

			CHECK(found < used);
			CHECK_EQ(found, vl[leaf_of[from->leaf]][leaf_of[to->leaf]]);
			CHECK_EQ(found, lane(&f, to, from));
			if (from->leaf != to->leaf)
				count[found]++;
		}
	}
	for (unsigned int i = 0; i < used; i++) {
		least = count[i] < least ? count[i] : least;
		most = count[i] > most ? count[i] : most;
	}
	/* The paper's lanes are even over all pairs of leaves, not over those of one. */
	if (n == 36)
		CHECK(most * 5 <= least * 6);
	free(leaf_of);
	close_fabric(&f);
}

/* From each leaf the others are as many by each lane, or one more or two: it is none itself. */
static void even(unsigned int lanes)
{
	struct fabric f;

	CHECK_EQ(open_fabric(&f, "xgft:1,36/1,2", 0, 8, lanes, true), 0);
	for (uint32_t a = 0; a < f.topo.n_ends; a++) {
		unsigned int count[8] = { 0 }, least = MOST_LEAVES, most = 0;

		for (uint32_t b = 0; b < f.topo.n_ends; b++) {
			uint8_t found = lane(&f, &f.topo.ends[a], &f.topo.ends[b]);

			CHECK(found < lanes);
			CHECK_EQ(found, lane(&f, &f.topo.ends[b], &f.topo.ends[a]));
			count[found] += a != b;
		}
		for (unsigned int i = 0; i < lanes; i++) {
			least = count[i] < least ? count[i] : least;
			most = count[i] > most ? count[i] : most;
		}
		CHECK(most - least <= 2);
	}
	close_fabric(&f);
}

/* Of two destinations that share a cable up from leaf A of three, each has a lane of its own. */
static void the_papers_example(void)
{
	const struct rsm_topo_end *end;
	struct fabric f;
	uint8_t port;

	CHECK_EQ(open_fabric(&f, "xgft:2,3/1,2", 0, 8, 2, false), 0);
	end = f.topo.ends;
	port = f.routes.lft[end[0].leaf][end[2].lid];
	CHECK_EQ(f.routes.lft[end[0].leaf][end[4].lid], port);
	CHECK(f.routes.lft[end[0].leaf][end[3].lid] != port);
	CHECK_EQ(lane(&f, &end[0], &end[2]), 0);
	CHECK_EQ(lane(&f, &end[0], &end[4]), 1);
	CHECK_EQ(lane(&f, &end[0], &end[1]), 0);
	close_fabric(&f);
}

static void narrow_links(void)
{
	struct fabric f;

	CHECK_EQ(open_fabric(&f, "xgft:2,3/1,2", 0, 4, 0, false), 0);
	f.topo.ends[0].vls = 2;
	CHECK_EQ(f.routes.vl(f.routes.context, -1, 0, 0, 3), 1);
	CHECK_EQ(f.routes.vl(f.routes.context, -1, 0, 1, 3), 3);
	CHECK_EQ(f.routes.vl(f.routes.context, -1, 0, 1, 9), 1);
	/* A switch's LID, and one that nothing has. */
	CHECK_EQ(f.routes.sl(f.routes.context, f.topo.switches[0].lid, f.topo.ends[3].lid), 0);
	CHECK_EQ(f.routes.sl(f.routes.context, f.topo.ends[5].lid, 4000), 0);
	close_fabric(&f);
}

static void refused(const char *spec, uint8_t vls, int lanes, const char *reason)
{
	struct fabric f;

	CHECK_EQ(open_fabric(&f, spec, 0, vls, lanes, false), -22);
	printf("%s\n", f.why);
	CHECK(strstr(f.why, reason));
	close_fabric(&f);
}

int main(void)
{
	for (int lanes = 0; lanes <= 8; lanes++) {
		as_in_the_paper("tree:8,2", 0, 8, lanes);
		as_in_the_paper("xgft:2,36/1,2", 0, 8, lanes);
	}
	as_in_the_paper("tree:4,3", 1, 4, 0);
	as_in_the_paper("xgft:3,7/1,3", 0, 15, 15);
	as_in_the_paper("xgft:1,3/1,1", 0, 1, 0);
	for (unsigned int lanes = 2; lanes <= 8; lanes++)
		even(lanes);
	the_papers_example();
	narrow_links();
	refused("tree:8,2", 4, 8, "vftree_lanes is 8, and a link between switches has 4 data VLs");
	refused("mesh:3x3", 8, 4, "no tree");
	puts("ok");
	return 0;
}
