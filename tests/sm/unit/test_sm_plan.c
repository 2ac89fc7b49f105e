// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order in which tables are distributed, on thousands of random networks that lose a switch and
 * get it back: after every SMP, whichever of those that may come first did, nobody waits for himself
 * (waits.h); and a plan with a step left out is caught.
 */
#include <errno.h>

#include "change.h"
#include "check.h"
#include "waits.h"

#define NETS 300 /* or as many as the command line says */

/* Counted over all networks. */
static struct {
	unsigned int changes, circles_dynamic, left_out, caught, waited, discards;
	unsigned int refused, planned, gone;
} seen;

static uint64_t chance = 1;

static uint32_t random_below(uint32_t n)
{
	chance = chance * 6364136223846793005ull + 1442695040888963407ull;
	return (chance >> 33) % n;
}

/* A fabric that changes from one topology to another. */
struct scene {
	struct waits waits;
	const struct made *before, *after;
	struct rsm_turns discarded; /* at first */
};

/* All of the whole fabric; what only one of both has is dead all the time. */
static void scene_make(struct scene *s, const struct rsm_topo *whole, const struct made *before,
		       const struct made *after)
{
	struct waits *w = &s->waits;

	s->before = before;
	s->after = after;
	waits_make(w, whole);
	for (uint32_t i = 0; i < whole->n_switches; i++) {
		int32_t at = rsm_topo_switch_index(&before->topo, whole->switches[i].guid);

		if (at >= 0)
			memcpy(w->lft[i], before->routes.lft[at], before->routes.n_lft);
	}
	/* Its neighbours see the cables of a switch that goes die before anything is computed. */
	for (uint32_t i = 0; i < whole->n_switches; i++)
		if (rsm_topo_switch_index(&after->topo, whole->switches[i].guid) < 0)
			for (unsigned int port = 0; port < WAITS_PORTS; port++)
				w->off[i * WAITS_PORTS + port] = true;
	for (uint32_t i = 0; i < s->discarded.n; i++) {
		const struct rsm_turn *t = &s->discarded.turns[i];

		w->discard[rsm_topo_switch_index(whole, t->guid) * WAITS_PORTS + t->in][t->out] = true;
	}
	waits_go_on(w);
}

static void take_step(struct scene *s, const struct rsm_step *step, enum rsm_distribution how)
{
	struct waits *w = &s->waits;
	const struct rsm_topo *topo = &s->after->topo;
	uint32_t sw, first = step->block * RSM_LFT_BLOCK;

	if (step->kind == RSM_STEP_WAIT) {
		waits_gone(w, how == RSM_DISTRIBUTE_PORTS);
		return;
	}
	if (step->end) {
		w->end_off[rsm_topo_end_index(w->topo, topo->ends[step->sw].guid)] =
			step->kind == RSM_STEP_PORT_OFF;
		waits_go_on(w);
		return;
	}
	sw = rsm_topo_switch_index(w->topo, topo->switches[step->sw].guid);
	switch (step->kind) {
	case RSM_STEP_PORT_OFF:
	case RSM_STEP_PORT_ON:
		w->off[sw * WAITS_PORTS + step->in] = step->kind == RSM_STEP_PORT_OFF;
		break;
	case RSM_STEP_DISCARD:
	case RSM_STEP_RESTORE:
		w->discard[sw * WAITS_PORTS + step->in][step->out] = step->kind == RSM_STEP_DISCARD;
		break;
	default:
		for (uint32_t lid = first; lid < first + RSM_LFT_BLOCK && lid < s->after->routes.n_lft;
		     lid++)
			w->lft[sw][lid] = s->after->routes.lft[step->sw][lid];
	}
	waits_go_on(w);
}

/* Those of the same kind that follow one another, in any order. */
static void shuffle(struct rsm_plan *plan)
{
	for (uint32_t first = 0, end; first < plan->n; first = end) {
		for (end = first; end < plan->n && plan->steps[end].kind == plan->steps[first].kind;)
			end++;
		for (uint32_t i = end - 1; i > first; i--) {
			uint32_t other = first + random_below(i - first + 1);
			struct rsm_step step = plan->steps[i];

			plan->steps[i] = plan->steps[other];
			plan->steps[other] = step;
		}
	}
}

/* The fabric is as the new tables want it. */
static void check_end(struct scene *s, enum rsm_distribution how)
{
	const struct made *after = s->after;
	struct waits *w = &s->waits;

	for (uint32_t i = 0; i < after->topo.n_switches; i++) {
		const struct rsm_topo_switch *sw = &after->topo.switches[i];
		uint32_t at = rsm_topo_switch_index(w->topo, sw->guid);

		CHECK(!memcmp(w->lft[at], after->routes.lft[i], after->routes.n_lft));
		for (unsigned int in = 1; in < sw->n_ports; in++) {
			CHECK(!w->off[at * WAITS_PORTS + in]);
			for (unsigned int out = 1; out < sw->n_ports && how == RSM_DISTRIBUTE_TURNS;
			     out++)
				CHECK_EQ(w->discard[at * WAITS_PORTS + in][out],
					 rsm_turns_have(&after->turns, sw->guid, in, out));
		}
	}
	for (uint32_t i = 0; i < w->topo->n_ends; i++)
		CHECK(!w->end_off[i]);
}

/* Return: whether somebody waited for himself at any time. @but: a step that is left out, or -1. */
static bool run(const struct rsm_topo *whole, const struct made *before, const struct made *after,
		const struct rsm_turns *discarded, enum rsm_distribution how,
		const struct rsm_plan *plan, int64_t but)
{
	struct scene s = { .discarded = *discarded };
	bool circle = false;

	scene_make(&s, whole, before, after);
	CHECK(!waits_circle(&s.waits));
	for (uint32_t i = 0; i < plan->n && !circle; i++) {
		if (i == but)
			continue;
		take_step(&s, &plan->steps[i], how);
		circle = waits_circle(&s.waits);
	}
	if (but < 0 && !circle)
		check_end(&s, how);
	waits_free(&s.waits);
	return circle;
}

static uint32_t count(const struct rsm_plan *plan, enum rsm_step_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < plan->n; i++)
		n += plan->steps[i].kind == kind;
	return n;
}

/* One SLtoVL table that is not sent: is there an order of the rest in which it is missed? */
static void leave_one_out(const struct rsm_topo *whole, const struct made *before,
			  const struct made *after, const struct rsm_turns *discarded,
			  const struct rsm_plan *plan)
{
	for (uint32_t i = 0; i < plan->n; i++) {
		if (plan->steps[i].kind != RSM_STEP_DISCARD)
			continue;
		seen.left_out++;
		seen.caught += run(whole, before, after, discarded, RSM_DISTRIBUTE_TURNS, plan, i);
	}
}

static void change(const struct rsm_topo *whole, const struct made *before,
		   const struct made *after, const struct rsm_turns *discarded, bool deep)
{
	struct rsm_plan plan;

	seen.changes++;
	for (enum rsm_distribution how = 0; how <= RSM_DISTRIBUTE_TURNS; how++) {
		bool circle;

		made_plan(before, after, discarded, how, false, &plan);
		shuffle(&plan);
		circle = run(whole, before, after, discarded, how, &plan, -1);
		if (how == RSM_DISTRIBUTE_DYNAMIC)
			seen.circles_dynamic += circle;
		else
			CHECK(!circle);
		if (how == RSM_DISTRIBUTE_TURNS) {
			seen.waited += count(&plan, RSM_STEP_WAIT);
			seen.discards += count(&plan, RSM_STEP_DISCARD);
			if (deep)
				leave_one_out(whole, before, after, discarded, &plan);
		}
		rsm_plan_free(&plan);
	}
}

/* A switch goes, and comes back: what break nodes discard is what was left behind. */
static void network(unsigned int switches, unsigned int seed, unsigned int gone)
{
	static const struct rsm_turns nothing;
	char spec[64];
	struct made whole, less;

	snprintf(spec, sizeof(spec), "random:%u,degree=3,hosts=1,seed=%u", switches, seed);
	made_route(spec, NULL, 0, &whole);
	made_route(spec, &whole.topo.switches[gone], 0, &less);
	CHECK_EQ(less.topo.n_switches, switches - 1);
	change(&whole.topo, &whole, &less, &nothing, seed % 10 == 0);
	change(&whole.topo, &whole, &less, &whole.turns, seed % 10 == 0);
	change(&whole.topo, &less, &whole, &less.turns, seed % 10 == 0);
	made_free(&less);
	made_free(&whole);
}

/* Every LID that has a way there is reached, and by no more switches than there are. */
static void test_routes(void)
{
	for (unsigned int seed = 1; seed <= 20; seed++) {
		struct made made;
		char spec[64];

		snprintf(spec, sizeof(spec), "random:24,degree=3,hosts=1,seed=%u", seed);
		made_route(spec, NULL, 0, &made);
		/* All paths have one SL: nobody need know of it by more than switches. */
		CHECK(!made.routes.sl && rsm_updown_router.by_switch);
		for (uint32_t from = 0; from < 24; from++) {
			for (unsigned int lid = 1; lid <= made.topo.max_lid; lid++) {
				uint32_t at = from, hops = 0, out;

				while ((out = made.routes.lft[at][lid])) {
					const struct rsm_topo_port *port = &made.topo.switches[at].ports[out];

					CHECK(out < made.topo.switches[at].n_ports);
					if (port->peer == RSM_TOPO_END) {
						CHECK_EQ(made.topo.ends[port->end].lid, lid);
						break;
					}
					CHECK(port->peer >= 0 && ++hops < 24);
					at = port->peer;
				}
				if (!out)
					CHECK_EQ(made.topo.switches[at].lid, lid);
			}
		}
		made_free(&made);
	}
}

/* A ring by the shortest ways: packets turn everywhere. */
static void test_refuses(void)
{
	struct rsm_plan plan = { 0 };
	struct made made;
	char why[128];

	made_route("torus:6", NULL, 0, &made);
	for (uint32_t at = 0; at < 6; at++)
		for (uint32_t i = 0; i < made.topo.n_ends; i++) {
			const struct rsm_topo_end *end = &made.topo.ends[i];
			/* Ports 1 and 2 lead to the one before and to the next. */
			uint32_t ahead = (end->leaf + 6 - at) % 6;

			made.routes.lft[at][end->lid] = !ahead ? end->leaf_port : ahead <= 3 ? 2 : 1;
		}
	for (enum rsm_distribution how = 0; how <= RSM_DISTRIBUTE_TURNS; how++) {
		struct rsm_change c = made_change(&made, &made, &made.turns);
		int rc = rsm_plan_make(&c, how, &plan, why, sizeof(why));

		CHECK_EQ(rc, how < RSM_DISTRIBUTE_PORTS ? 0 : -EINVAL);
		if (rc)
			CHECK(strstr(why, "down and up"));
		made_change_free(&c);
		rsm_plan_free(&plan);
	}
	made_free(&made);
}

/* Turn by turn: whether tables of a switch send anything on that others have brought it. */
static bool turn_taken(const struct rsm_change *c, const uint8_t *const *here, const uint8_t *const *there,
		       const struct rsm_turns *discarded)
{
	for (uint32_t i = 0; i < c->new_turns->n; i++) {
		const struct rsm_turn *turn = &c->new_turns->turns[i];
		int32_t sw = rsm_topo_switch_index(c->topo, turn->guid);
		const struct rsm_topo_port *from = &c->topo->switches[sw].ports[turn->in];

		if (!here[sw] || !there[from->peer] ||
		    (discarded && rsm_turns_have(discarded, turn->guid, turn->in, turn->out)))
			continue;
		for (uint32_t lid = 1; lid < c->n_lft; lid++)
			if (here[sw][lid] == turn->out && there[from->peer][lid] == from->peer_port)
				return true;
	}
	return false;
}

/* Entries that lead anywhere, or nowhere. */
static void spoil(struct made *made, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t sw = random_below(made->topo.n_switches);

		made->routes.lft[sw][random_below(made->routes.n_lft)] =
			random_below(8) ? random_below(made->topo.switches[sw].n_ports + 1) : RSM_NO_PORT;
	}
}

/* Some of them. */
static void thin_out(const struct rsm_turns *from, struct rsm_turns *turns)
{
	turns->n = 0;
	turns->turns = calloc(from->n + 1, sizeof(*turns->turns));
	CHECK(turns->turns);
	for (uint32_t i = 0; i < from->n; i++)
		if (random_below(8))
			turns->turns[turns->n++] = from->turns[i];
}

static void compare(const struct rsm_change *c, enum rsm_distribution how)
{
	const uint8_t *const *old = c->old_lft, *const *new = c->new_lft;
	struct rsm_plan plan = { 0 };
	char why[128];
	bool differ = false, waits;

	if (turn_taken(c, new, new, NULL)) {
		CHECK_EQ(rsm_plan_make(c, how, &plan, why, sizeof(why)), -EINVAL);
		seen.refused++;
		return;
	}
	CHECK_EQ(rsm_plan_make(c, how, &plan, why, sizeof(why)), 0);
	for (uint32_t sw = 0; sw < c->topo->n_switches; sw++)
		differ |= !old[sw] || memcmp(old[sw], new[sw], c->n_lft);
	waits = how == RSM_DISTRIBUTE_TURNS ? turn_taken(c, old, old, c->old_turns) :
		differ && (turn_taken(c, old, old, NULL) || turn_taken(c, new, old, NULL));
	CHECK_EQ(count(&plan, RSM_STEP_WAIT), waits);
	seen.planned++;
	seen.gone += waits;
	rsm_plan_free(&plan);
}

/* Turns are found by what tables do: that is the same as trying each of them. */
static void test_taken(void)
{
	for (unsigned int seed = 1; seed <= 200; seed++) {
		struct made before, after;
		struct rsm_turns discarded;
		struct rsm_change c;
		char spec[64];

		snprintf(spec, sizeof(spec), "random:8,degree=3,hosts=1,seed=%u", seed);
		made_route(spec, NULL, 0, &before);
		made_route(spec, NULL, 0, &after);
		spoil(&before, random_below(6));
		spoil(&after, random_below(3));
		thin_out(&before.turns, &discarded);
		c = made_change(&before, &after, &discarded);
		if (seed % 4 == 0)
			((const uint8_t **)c.old_lft)[random_below(8)] = NULL;
		compare(&c, RSM_DISTRIBUTE_PORTS);
		compare(&c, RSM_DISTRIBUTE_TURNS);
		made_change_free(&c);
		rsm_turns_free(&discarded);
		made_free(&after);
		made_free(&before);
	}
	printf("spoilt tables: %u refused, %u planned, %u of these wait\n", seen.refused, seen.planned, seen.gone);
	CHECK(seen.refused > 20 && seen.gone > 20 && seen.planned > seen.gone + 20);
}

int main(int argc, char **argv)
{
	static const unsigned int sizes[] = { 8, 8, 8, 12, 16, 24, 32 };

	unsigned int nets = argc > 1 ? strtoul(argv[1], NULL, 10) : NETS;

	test_routes();
	test_refuses();
	test_taken();
	for (unsigned int i = 0; i < nets; i++) {
		unsigned int size = sizes[i % 7];

		network(size, i + 1, random_below(size));
	}
	printf("%u changes; plain dynamic closes a circle in %u; %u tables of discards, %u waits; "
	       "without it a circle closes for %u of %u\n", seen.changes, seen.circles_dynamic, seen.discards,
	       seen.waited, seen.caught, seen.left_out);
	CHECK(seen.circles_dynamic > 0);
	CHECK(seen.caught > 0);
	CHECK(seen.waited > 0);
	return 0;
}
