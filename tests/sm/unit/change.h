/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Networks that are routed with and without one of their switches, and plans from one to the other. */
#ifndef CHANGE_H
#define CHANGE_H

#include "check.h"
#include "judged.h"
#include "plan.h"
#include "router.h"
#include "topo_net.h"

struct made {
	struct net net;
	struct rsm_topo topo;
	struct rsm_direction direction;
	struct rsm_turns turns;
	struct rsm_routes routes;
};

/* Takes a switch out of a topology, with its hosts. LIDs stay as they are. */
static void topo_without(struct rsm_topo *topo, uint32_t gone)
{
	uint32_t *end_now = calloc(topo->n_ends + 1, sizeof(*end_now)), n = 0;

	CHECK(end_now);
	for (uint32_t i = 0; i < topo->n_ends; i++) {
		if (topo->ends[i].leaf == (int32_t)gone)
			continue;
		end_now[i] = n;
		topo->ends[n] = topo->ends[i];
		topo->ends[n].leaf -= topo->ends[n].leaf > (int32_t)gone;
		n++;
	}
	topo->n_ends = n;
	free(topo->switches[gone].ports);
	topo->n_switches--;
	memmove(&topo->switches[gone], &topo->switches[gone + 1],
		(topo->n_switches - gone) * sizeof(*topo->switches));
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		for (unsigned int port = 1; port < topo->switches[i].n_ports; port++) {
			struct rsm_topo_port *to = &topo->switches[i].ports[port];

			if (to->peer == (int32_t)gone)
				*to = (struct rsm_topo_port) { .peer = RSM_TOPO_NONE, .end = -1 };
			else if (to->peer > (int32_t)gone)
				to->peer--;
			if (to->end >= 0)
				to->end = end_now[to->end];
		}
	}
	free(end_now);
}

/* @less: a switch of that GUID is not there, or NULL. @n_lft: at least so many entries. */
static void made_route(const char *spec, const struct rsm_topo_switch *less, uint32_t n_lft,
		       struct made *made)
{
	char why[128] = "";

	*made = (struct made) { 0 };
	net_init(&made->net);
	CHECK_EQ(net_make(&made->net, spec), 0);
	CHECK_EQ(topo_of_net(&made->net, 0, 8, &made->topo), 0);
	made->routes.n_lft = made->topo.max_lid < n_lft ? n_lft : made->topo.max_lid + 1u;
	if (less)
		topo_without(&made->topo, rsm_topo_switch_index(&made->topo, less->guid));
	made->routes.lft = calloc(made->topo.n_switches + 1, sizeof(*made->routes.lft));
	CHECK(made->routes.lft);
	for (uint32_t i = 0; i < made->topo.n_switches; i++) {
		made->routes.lft[i] = malloc(made->routes.n_lft);
		CHECK(made->routes.lft[i]);
		memset(made->routes.lft[i], RSM_NO_PORT, made->routes.n_lft);
	}
	CHECK_EQ(rsm_updown_router.route(&made->topo, NULL, &made->routes, why, sizeof(why)), 0);
	CHECK_EQ(judged(&made->topo, &made->routes, false, NULL), 0);
	CHECK_EQ(rsm_direction_make(&made->topo, &made->direction), 0);
	CHECK_EQ(rsm_direction_turns(&made->topo, &made->direction, &made->turns), 0);
}

static void made_free(struct made *made)
{
	for (uint32_t i = 0; i < made->topo.n_switches; i++)
		free(made->routes.lft[i]);
	free(made->routes.lft);
	rsm_turns_free(&made->turns);
	rsm_direction_free(&made->direction);
	rsm_topo_free(&made->topo);
	net_free(&made->net);
}

/* From the tables of one to those of the other; for made_change_free(). */
static struct rsm_change made_change(const struct made *before, const struct made *after,
				     const struct rsm_turns *discarded)
{
	const uint8_t **old = calloc(after->topo.n_switches + 1, sizeof(*old));

	CHECK(old);
	for (uint32_t i = 0; i < after->topo.n_switches; i++) {
		int32_t at = rsm_topo_switch_index(&before->topo, after->topo.switches[i].guid);

		old[i] = at < 0 ? NULL : before->routes.lft[at];
	}
	return (struct rsm_change) {
		.topo = &after->topo,
		.direction = &after->direction,
		.old_lft = old,
		.new_lft = (const uint8_t *const *)after->routes.lft,
		.n_lft = after->routes.n_lft,
		.old_turns = discarded,
		.new_turns = &after->turns,
	};
}

static void made_change_free(struct rsm_change *change)
{
	free((void *)change->old_lft);
}

static inline void made_plan(const struct made *before, const struct made *after,
			     const struct rsm_turns *discarded, enum rsm_distribution how, bool whole,
			     struct rsm_plan *plan)
{
	struct rsm_change c = made_change(before, after, discarded);
	char why[128] = "";

	c.whole = whole;
	if (rsm_plan_make(&c, how, plan, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
	made_change_free(&c);
}

#endif
