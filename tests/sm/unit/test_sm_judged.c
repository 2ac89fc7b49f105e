// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What judges the engines' tables in these tests sees what is wrong: here it is put in by hand. */
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "check.h"

/* A ring each way round, three hops at most: in one lane all wait for the next. */
static void ring(struct made *made)
{
	uint32_t n = made->topo.n_switches;

	for (uint32_t at = 0; at < n; at++)
		for (uint32_t i = 0; i < made->topo.n_ends; i++) {
			const struct rsm_topo_end *end = &made->topo.ends[i];
			uint32_t ahead = (end->leaf + n - at) % n, next = (at + (ahead <= n / 2 ? 1 : n - 1)) % n;

			if (!ahead)
				continue;
			for (unsigned int port = 1; port < made->topo.switches[at].n_ports; port++)
				if (made->topo.switches[at].ports[port].peer == (int32_t)next)
					made->routes.lft[at][end->lid] = port;
		}
}

static uint8_t sl(void *context, uint16_t slid, uint16_t dlid)
{
	const struct made *made = context;
	int32_t from = -1, to = -1, ahead, n = made->topo.n_switches;

	for (uint32_t i = 0; i < made->topo.n_ends; i++) {
		if (made->topo.ends[i].lid == slid)
			from = made->topo.ends[i].leaf;
		if (made->topo.ends[i].lid == dlid)
			to = made->topo.ends[i].leaf;
	}
	ahead = (to - from + n) % n;
	/* Across the joint of the ring: lane 1. */
	return ahead <= n / 2 ? to < from : to > from;
}

static uint8_t as_sl(void *context, int32_t sw, uint16_t in, uint32_t out, uint8_t level)
{
	(void)context;
	(void)sw;
	(void)in;
	(void)out;
	return level;
}

static uint8_t no_second(void *context, int32_t sw, uint16_t in, uint32_t out, uint8_t level)
{
	return as_sl(context, sw, in, out, sw == 2 && level == 1 ? RSM_VL_DISCARD : level);
}

int main(void)
{
	uint8_t *entry, before;
	struct made made;
	uint16_t lid;

	made_route("torus:6,hosts=1", NULL, 0, &made);
	lid = made.topo.ends[0].lid;
	entry = &made.routes.lft[(made.topo.ends[0].leaf + 1) % 6][lid];
	before = *entry;
	*entry = RSM_NO_PORT;
	CHECK(judged(&made.topo, &made.routes, false, NULL));
	*entry = before;
	CHECK_EQ(judged(&made.topo, &made.routes, false, NULL), 0);
	/* Up and down is longer than it need be. */
	CHECK(judged(&made.topo, &made.routes, true, NULL));

	ring(&made);
	CHECK(judged(&made.topo, &made.routes, false, "management"));
	CHECK_EQ(judged(&made.topo, &made.routes, true, "credit-loop"), 0);
	made.routes.sl = sl;
	made.routes.context = &made;
	CHECK(judged(&made.topo, &made.routes, true, NULL) == 0);
	made.routes.vl = as_sl;
	CHECK_EQ(judged(&made.topo, &made.routes, true, NULL), 0);
	made.routes.vl = no_second;
	CHECK(judged(&made.topo, &made.routes, true, NULL));
	made.routes.vl = NULL;
	made.routes.context = NULL;
	made_free(&made);
	return 0;
}
