// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables after moves: everybody is reached where it is now, by paths that are no longer; no set of
 * fewer switches would do; no link waits for another that it did not wait for before.
 */
#include "check.h"
#include "judged.h"
#include "move_plan.h"
#include "net.h"
#include "router.h"
#include "topo_net.h"

#define MOST_PORTS 64

struct fabric {
	struct rsm_topo topo;
	uint8_t **lft, **first;	/* now, and before any move */
	uint32_t n_lft;
	int32_t *at;		/* end by LID */
	uint32_t *hops;		/* from switch to switch */
	uint8_t *turns;		/* [switch][port][port behind it], of all LIDs before any move */
};

static uint32_t rnd(uint32_t below)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static const struct rsm_topo_end *end_of(const struct fabric *f, uint16_t lid)
{
	return &f->topo.ends[f->at[lid]];
}

static uint32_t *hops(const struct fabric *f, uint32_t a, uint32_t b)
{
	return &f->hops[a * f->topo.n_switches + b];
}

static void count_hops(struct fabric *f)
{
	uint32_t n = f->topo.n_switches, *queue = malloc(n * sizeof(*queue));

	f->hops = malloc(n * n * sizeof(*f->hops));
	for (uint32_t from = 0; from < n; from++) {
		uint32_t head = 0, tail = 1;

		for (uint32_t i = 0; i < n; i++)
			*hops(f, from, i) = i == from ? 0 : UINT32_MAX;
		queue[0] = from;
		for (; head < tail; head++) {
			const struct rsm_topo_switch *sw = &f->topo.switches[queue[head]];

			for (unsigned int p = 1; p < sw->n_ports; p++) {
				int32_t peer = sw->ports[p].peer;

				if (peer < 0 || *hops(f, from, peer) != UINT32_MAX)
					continue;
				*hops(f, from, peer) = *hops(f, from, queue[head]) + 1;
				queue[tail++] = peer;
			}
		}
	}
	free(queue);
}

/* Down from switch 0 only where nothing but down follows; else up. Equal ways in turn, by LID. */
static void route_up_down(struct fabric *f, uint16_t lid, int32_t dest)
{
	uint32_t n = f->topo.n_switches, *cost = malloc(n * sizeof(*cost));
	bool *down = calloc(n, sizeof(*down)), again = true;

	for (uint32_t i = 0; i < n; i++)
		cost[i] = (int32_t)i == dest ? 0 : n * n;
	down[dest] = true;
	while (again) {
		again = false;
		for (uint32_t i = 0; i < n; i++) {
			const struct rsm_topo_switch *sw = &f->topo.switches[i];
			uint8_t best[MOST_PORTS];
			uint32_t least = cost[i], n_best = 0;
			bool is_down = false;

			if ((int32_t)i == dest)
				continue;
			for (int want_down = 1; want_down >= 0 && !is_down; want_down--)
				for (unsigned int p = 1; p < sw->n_ports; p++) {
					int32_t peer = sw->ports[p].peer;
					bool up;

					if (peer < 0)
						continue;
					up = *hops(f, 0, peer) < *hops(f, 0, i) ||
					     (*hops(f, 0, peer) == *hops(f, 0, i) && peer < (int32_t)i);
					if (up == want_down || (want_down && !down[peer]) ||
					    cost[peer] + 1 > least)
						continue;
					if (cost[peer] + 1 < least)
						n_best = 0;
					least = cost[peer] + 1;
					best[n_best++] = p;
					is_down |= want_down;
				}
			if (n_best && (least < cost[i] || (is_down && !down[i]))) {
				cost[i] = least;
				down[i] = is_down;
				f->lft[i][lid] = best[lid % n_best];
				again = true;
			}
		}
	}
	free(cost);
	free(down);
}

static void route_shortest(struct fabric *f, uint16_t lid, int32_t dest)
{
	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		const struct rsm_topo_switch *sw = &f->topo.switches[i];
		uint8_t best[MOST_PORTS];
		uint32_t n_best = 0;

		for (unsigned int p = 1; p < sw->n_ports; p++)
			if (sw->ports[p].peer >= 0 &&
			    *hops(f, sw->ports[p].peer, dest) + 1 == *hops(f, i, dest))
				best[n_best++] = p;
		if (n_best)
			f->lft[i][lid] = best[lid % n_best];
	}
}

static uint8_t *turn(const struct fabric *f, uint32_t sw, uint8_t port, uint8_t next)
{
	return &f->turns[(sw * MOST_PORTS + port) * MOST_PORTS + next];
}

static int32_t next_switch(const struct fabric *f, uint32_t sw, uint16_t lid)
{
	uint8_t port = f->lft[sw][lid];

	return port && port != RSM_NO_PORT ? f->topo.switches[sw].ports[port].peer : RSM_TOPO_NONE;
}

static void start(struct fabric *f, const char *spec,
		  void (*route)(struct fabric *f, uint16_t lid, int32_t dest))
{
	struct net net;

	*f = (struct fabric) { 0 };
	net_init(&net);
	CHECK_EQ(net_make(&net, spec), 0);
	CHECK_EQ(topo_of_net(&net, 0, 1, &f->topo), 0);
	net_free(&net);
	f->n_lft = f->topo.max_lid + 1;
	f->lft = calloc(f->topo.n_switches, sizeof(*f->lft));
	f->at = malloc(f->n_lft * sizeof(*f->at));
	f->turns = calloc(f->topo.n_switches, MOST_PORTS * MOST_PORTS);
	count_hops(f);
	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		CHECK(f->topo.switches[i].n_ports <= MOST_PORTS);
		f->lft[i] = malloc(f->n_lft);
		memset(f->lft[i], RSM_NO_PORT, f->n_lft);
	}
	for (uint32_t i = 0; i < f->topo.n_ends; i++) {
		const struct rsm_topo_end *end = &f->topo.ends[i];

		f->at[end->lid] = i;
		route(f, end->lid, end->leaf);
		f->lft[end->leaf][end->lid] = end->leaf_port;
		for (uint32_t sw = 0; sw < f->topo.n_switches; sw++) {
			int32_t next = next_switch(f, sw, end->lid);

			if (next >= 0)
				*turn(f, sw, f->lft[sw][end->lid], f->lft[next][end->lid]) = 1;
		}
	}
	f->first = calloc(f->topo.n_switches, sizeof(*f->first));
	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		f->first[i] = malloc(f->n_lft);
		memcpy(f->first[i], f->lft[i], f->n_lft);
	}
}

static void stop(struct fabric *f)
{
	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		free(f->lft[i]);
		free(f->first[i]);
	}
	free(f->first);
	free(f->lft);
	free(f->at);
	free(f->hops);
	free(f->turns);
	rsm_topo_free(&f->topo);
}

/* Hops to where the LID is, or UINT32_MAX. */
static uint32_t walk(const struct fabric *f, uint32_t sw, uint16_t lid)
{
	const struct rsm_topo_end *end = end_of(f, lid);
	uint32_t n = 0;

	while ((int32_t)sw != end->leaf || f->lft[sw][lid] != end->leaf_port) {
		int32_t next = next_switch(f, sw, lid);

		if (next < 0 || n++ > f->topo.n_switches)
			return UINT32_MAX;
		sw = next;
	}
	return n;
}

static struct rsm_move between(const struct fabric *f, uint16_t lid, uint16_t other, bool limited)
{
	return (struct rsm_move) {
		.lid = lid,
		.other = other,
		.from = end_of(f, lid)->leaf,
		.to = end_of(f, other)->leaf,
		.to_port = end_of(f, other)->leaf_port,
		.swap = true,
		.limited = limited,
		.engine = f->first,
		.n_engine = f->n_lft,
	};
}

static void make(const struct fabric *f, const struct rsm_move *move, struct rsm_move_plan *plan)
{
	CHECK_EQ(rsm_move_plan(&f->topo, f->lft, move, plan), 0);
}

static void apply(struct fabric *f, const struct rsm_move *move, const struct rsm_move_plan *plan)
{
	int32_t end = f->at[move->lid];

	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		f->lft[i][move->lid] = plan->lid[i];
		f->lft[i][move->other] = plan->other[i];
	}
	f->at[move->lid] = f->at[move->other];
	f->at[move->other] = end;
}

static uint16_t any_lid(const struct fabric *f)
{
	return f->topo.ends[rnd(f->topo.n_ends)].lid;
}

/* Return: whether all paths to the LID are there, have as many hops as allowed, and known turns. */
static bool is_good(const struct fabric *f, uint16_t lid, bool shortest)
{
	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		uint32_t n = walk(f, i, lid);
		int32_t next = next_switch(f, i, lid);

		if (n == UINT32_MAX || (shortest && n != *hops(f, i, end_of(f, lid)->leaf)))
			return false;
		if (next >= 0 && !*turn(f, i, f->lft[i][lid], f->lft[next][lid]))
			return false;
	}
	return true;
}

/* By repath fabric check. There are no routes to switches' own LIDs in this. */
static void check_subnet(const struct fabric *f, bool shortest)
{
	struct rsm_routes routes = { .lft = f->lft, .n_lft = f->n_lft };
	struct rsm_topo now = f->topo;

	now.ends = malloc((now.n_ends + 1) * sizeof(*now.ends));
	CHECK(now.ends);
	memcpy(now.ends, f->topo.ends, now.n_ends * sizeof(*now.ends));
	for (uint32_t i = 0; i < f->topo.n_ends; i++)
		now.ends[f->at[f->topo.ends[i].lid]].lid = f->topo.ends[i].lid;
	CHECK_EQ(judged(&now, &routes, shortest, "management"), 0);
	free(now.ends);
}

/* 1000 moves, each of them checked. */
static void at_random(const char *spec, bool shortest, bool limited)
{
	struct rsm_move_plan plan;
	struct fabric f;
	uint32_t most = 0;

	start(&f, spec, shortest ? route_shortest : route_up_down);
	for (int i = 0; i < 1000; i++) {
		uint16_t lid = any_lid(&f), other = any_lid(&f);
		struct rsm_move move = between(&f, lid, other, limited);

		if (lid == other)
			continue;
		make(&f, &move, &plan);
		apply(&f, &move, &plan);
		CHECK(is_good(&f, lid, shortest));
		CHECK(is_good(&f, other, shortest));
		CHECK(plan.n_changed >= 1 && plan.blocks <= 2 * plan.n_changed);
		if (plan.blocks > most)
			most = plan.blocks;
		if (i % 100 == 0)
			check_subnet(&f, shortest);
		rsm_move_plan_free(&plan);
	}
	for (uint32_t i = 0; i < f.topo.n_ends; i++)
		CHECK(is_good(&f, f.topo.ends[i].lid, shortest));
	check_subnet(&f, shortest);
	CHECK(most <= 2 * f.topo.n_switches);
	stop(&f);
}

/* With exactly these switches changed, for one LID. */
static bool would_do(struct fabric *f, const struct rsm_move *move, const uint8_t *wanted,
		     uint32_t set)
{
	uint8_t old[32];
	bool good;

	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		old[i] = f->lft[i][move->lid];
		if (set >> i & 1)
			f->lft[i][move->lid] = wanted[i];
	}
	f->at[move->lid] = f->at[move->other];
	good = is_good(f, move->lid, true);
	for (uint32_t i = 0; i < f->topo.n_switches; i++)
		f->lft[i][move->lid] = old[i];
	return good;
}

/* Every set of switches is tried: no smaller one gives shortest paths from everywhere. */
static void all_sets(const char *spec, int moves)
{
	struct rsm_move_plan plan, whole;
	struct fabric f;

	start(&f, spec, route_shortest);
	CHECK(f.topo.n_switches <= 20);
	for (int i = 0; i < moves; i++) {
		uint16_t lid = any_lid(&f), other = any_lid(&f);
		struct rsm_move move = between(&f, lid, other, true);
		uint32_t least = UINT32_MAX, mine = 0;
		int32_t home = f.at[lid];

		if (lid == other)
			continue;
		make(&f, &move, &plan);
		move.limited = false;
		make(&f, &move, &whole);
		for (uint32_t sw = 0; sw < f.topo.n_switches; sw++)
			mine += plan.lid[sw] != f.lft[sw][lid];
		for (uint32_t set = 0; set < 1u << f.topo.n_switches; set++) {
			uint32_t size = __builtin_popcount(set);

			if (size < least && would_do(&f, &move, whole.lid, set))
				least = size;
			f.at[lid] = home;
		}
		CHECK_EQ(mine, least);
		apply(&f, &move, &plan);
		rsm_move_plan_free(&plan);
		rsm_move_plan_free(&whole);
	}
	stop(&f);
}

/* It is good with all that it changes, and not with one of them as it was. */
static void apply_all_or_none(struct fabric *f, const struct rsm_move *move,
			      const struct rsm_move_plan *plan)
{
	uint8_t old[36];

	for (uint32_t sw = 0; sw < f->topo.n_switches; sw++)
		old[sw] = f->lft[sw][move->lid];
	apply(f, move, plan);
	CHECK(is_good(f, move->lid, true) && is_good(f, move->other, true));
	for (uint32_t sw = 0; sw < f->topo.n_switches; sw++) {
		if (plan->lid[sw] == old[sw])
			continue;
		f->lft[sw][move->lid] = old[sw];
		CHECK(!is_good(f, move->lid, true));
		f->lft[sw][move->lid] = plan->lid[sw];
	}
}

/*
 * A switch has to change if and only if its old next hop lies on no shortest path: each switch is
 * told apart by itself, so this is all sets of 36 switches.
 */
static void least_of_36(void)
{
	struct rsm_move_plan plan;
	struct fabric f;
	uint32_t inside = 0;

	start(&f, "xgft:18,18/1,18", route_shortest);
	CHECK_EQ(f.topo.n_switches, 36);
	for (int i = 0; i < 500; i++) {
		uint16_t lid = any_lid(&f), other = any_lid(&f);
		struct rsm_move move = between(&f, lid, other, true);

		if (lid == other)
			continue;
		if (i % 4 == 0)	/* a neighbour at the same leaf */
			for (uint32_t end = 0; end < f.topo.n_ends; end++)
				if (end_of(&f, lid)->leaf == end_of(&f, f.topo.ends[end].lid)->leaf &&
				    f.topo.ends[end].lid != lid)
					move = between(&f, lid, f.topo.ends[end].lid, true);
		make(&f, &move, &plan);
		for (uint32_t sw = 0; sw < f.topo.n_switches; sw++) {
			int32_t next = next_switch(&f, sw, lid);
			bool has_to = (int32_t)sw == move.to || next < 0 ||
				      *hops(&f, next, move.to) + 1 != *hops(&f, sw, move.to);

			CHECK_EQ(plan.lid[sw] != f.lft[sw][move.lid], has_to);
		}
		CHECK_EQ(plan.n_changed, move.from == move.to ? 1 : 18 + 2);
		inside += move.from == move.to;
		apply_all_or_none(&f, &move, &plan);
		rsm_move_plan_free(&plan);
	}
	CHECK(inside > 100);
	stop(&f);
}

/* With vSwitches: the leaf and both of them. And moves at different leaves do not meet. */
static void inside_a_leaf(void)
{
	struct rsm_move_plan first, second, far;
	struct rsm_move a, b, c;
	struct fabric f;

	start(&f, "xgft:3,3/1,3,vswitch=2", route_shortest);
	for (uint32_t i = 0; i < f.topo.n_ends; i++)
		CHECK(end_of(&f, f.topo.ends[i].lid)->leaf >= 0);
	/* LIDs 1 to 9 are PFs, three at each leaf; two VFs of each follow. */
	a = between(&f, 10, 13, true);
	b = between(&f, 4, 18, true);
	c = between(&f, 11, 16, true);
	make(&f, &a, &first);
	make(&f, &b, &second);
	make(&f, &c, &far);
	CHECK_EQ(first.n_changed, 3);
	CHECK_EQ(second.n_changed, 3);
	CHECK(!rsm_move_plans_meet(&first, &second));
	CHECK(rsm_move_plans_meet(&first, &far));
	CHECK(rsm_move_plans_meet(&far, &second));
	rsm_move_plan_free(&first);
	rsm_move_plan_free(&second);
	rsm_move_plan_free(&far);
	stop(&f);
}

/* A VM follows the LID of its hypervisor, which stays; one block of a switch at most. */
static void copies(bool limited)
{
	struct rsm_move_plan plan;
	struct fabric f;
	int32_t *places;

	start(&f, "xgft:4,4/1,4,vswitch=2", route_shortest);
	places = malloc(f.n_lft * sizeof(*places));
	memcpy(places, f.at, f.n_lft * sizeof(*places));
	for (int i = 0; i < 500; i++) {
		uint16_t lid = any_lid(&f), slot = any_lid(&f);
		const struct rsm_topo_end *place = &f.topo.ends[places[slot]];
		struct rsm_move move = {
			.lid = lid,
			/* LIDs 1 to 16 are PFs; two VFs of each follow. */
			.other = (slot - 17) / 2 + 1,
			.from = end_of(&f, lid)->leaf,
			.to = place->leaf,
			.to_port = place->leaf_port,
			.limited = limited,
			.engine = f.first,
			.n_engine = f.n_lft,
		};

		if (lid <= 16 || slot <= 16)
			continue;
		make(&f, &move, &plan);
		for (uint32_t sw = 0; sw < f.topo.n_switches; sw++) {
			CHECK_EQ(plan.other[sw], f.lft[sw][move.other]);
			if ((int32_t)sw != move.to && !limited)
				CHECK_EQ(plan.lid[sw], f.lft[sw][move.other]);
			f.lft[sw][lid] = plan.lid[sw];
		}
		CHECK_EQ(plan.blocks, plan.n_changed);
		f.at[lid] = places[slot];
		for (uint32_t sw = 0; sw < f.topo.n_switches; sw++)
			CHECK_EQ(walk(&f, sw, lid), *hops(&f, sw, move.to));
		rsm_move_plan_free(&plan);
	}
	free(places);
	stop(&f);
}

int main(void)
{
	at_random("xgft:18,18/1,18", true, false);
	at_random("xgft:4,4,4/1,4,4", true, true);
	at_random("xgft:4,4/1,4,vswitch=3", true, true);
	at_random("random:16,degree=4,hosts=3,seed=5", false, false);
	at_random("random:16,degree=4,hosts=3,seed=5", false, true);
	at_random("mesh:4x4,hosts=2", false, true);
	all_sets("tree:4,2", 100);
	all_sets("xgft:2,2,2/1,2,1", 30);
	least_of_36();
	inside_a_leaf();
	copies(false);
	copies(true);
	return 0;
}
