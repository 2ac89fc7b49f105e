// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Whether all paths may be in one lane, beside what repath fabric check says of it: shortest ways by lot. */
#include "change.h"
#include "slow_lane.h"

#define FAR UINT32_MAX

static void hops_to(const struct rsm_topo *topo, uint32_t leaf, uint32_t *hops)
{
	bool again = true;

	for (uint32_t i = 0; i < topo->n_switches; i++)
		hops[i] = i == leaf ? 0 : FAR;
	while (again) {
		again = false;
		for (uint32_t i = 0; i < topo->n_switches; i++)
			for (unsigned int port = 1; port < topo->switches[i].n_ports; port++) {
				int32_t peer = topo->switches[i].ports[port].peer;

				if (peer < 0 || hops[peer] == FAR || hops[peer] + 1 >= hops[i])
					continue;
				hops[i] = hops[peer] + 1;
				again = true;
			}
	}
}

static void route_by_lot(struct made *made)
{
	const struct rsm_topo *topo = &made->topo;
	uint32_t *hops = calloc(topo->n_switches, sizeof(*hops));

	CHECK(hops);
	for (uint32_t end = 0; end < topo->n_ends; end++) {
		hops_to(topo, topo->ends[end].leaf, hops);
		for (uint32_t i = 0; i < topo->n_switches; i++) {
			unsigned int n = 0;

			for (unsigned int port = 1; hops[i] && port < topo->switches[i].n_ports; port++) {
				int32_t peer = topo->switches[i].ports[port].peer;

				if (peer >= 0 && hops[peer] + 1 == hops[i] && !(rand() % ++n))
					made->routes.lft[i][topo->ends[end].lid] = port;
			}
		}
	}
	free(hops);
}

int main(void)
{
	static const char *const specs[] = {
		"random:8,degree=3,hosts=1,seed=%u", "random:12,degree=3,hosts=1,seed=%u", "torus:%u", "torus:4x%u",
		"xgft:3,4/1,%u", "mesh:%ux2",
	};
	unsigned int found[2] = { 0 };

	for (unsigned int i = 0; i < 60; i++) {
		struct made made;
		char spec[64];
		int loops;

		srand(i);
		snprintf(spec, sizeof(spec), specs[i % 6], 3 + i / 6);
		made_route(spec, NULL, 0, &made);
		CHECK_EQ(rsm_slow_lane_loops(&made.topo, made.routes.lft), 0);
		route_by_lot(&made);
		loops = rsm_slow_lane_loops(&made.topo, made.routes.lft);
		CHECK_EQ(judged(&made.topo, &made.routes, true, "credit-loop"), 0);
		CHECK_EQ(loops, judged(&made.topo, &made.routes, true, NULL) > 0);
		found[loops]++;
		made_free(&made);
	}
	printf("%u with a loop, %u without\n", found[1], found[0]);
	CHECK(found[0] > 10 && found[1] > 10);
	return 0;
}
