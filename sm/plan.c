// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A cycle of packets that wait for each other needs, in each direction that links can have, a turn
 * from a link that leads up to another one. So when all turns of the new direction are discarded,
 * nothing that moves can close a cycle, whatever tables say; and as long as the tables are still the
 * old ones, nothing is there that was not before. What was discarded for the old direction is put
 * back between the two: new routes take it, and old ones never do.
 *
 * A switch that has decided where a packet leaves, before the turn was discarded, does not decide
 * again: where old routes take such a turn their packets have to be gone before the first table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

static int add(struct rsm_plan *plan, struct rsm_step step)
{
	if (plan->n == plan->room) {
		uint32_t room = plan->room ? plan->room * 2 : 64;
		struct rsm_step *steps = realloc(plan->steps, room * sizeof(*steps));

		if (!steps)
			return -ENOMEM;
		plan->steps = steps;
		plan->room = room;
	}
	plan->steps[plan->n++] = step;
	return 0;
}

static int add_turn(const struct rsm_change *c, enum rsm_step_kind kind,
		    const struct rsm_turn *turn, struct rsm_plan *plan)
{
	int32_t sw = rsm_topo_switch_index(c->topo, turn->guid);

	/* Cables can have moved: what a turn to or from no switch is, is nobody's. */
	if (sw < 0 || turn->in >= c->topo->switches[sw].n_ports ||
	    turn->out >= c->topo->switches[sw].n_ports)
		return 0;
	return add(plan, (struct rsm_step) { .kind = kind, .sw = sw, .in = turn->in,
					     .out = turn->out });
}

static int add_turns(const struct rsm_change *c, enum rsm_step_kind kind,
		     const struct rsm_turns *turns, const struct rsm_turns *but,
		     struct rsm_plan *plan)
{
	int rc = 0;

	for (uint32_t i = 0; i < turns->n && !rc; i++) {
		const struct rsm_turn *turn = &turns->turns[i];

		if (!rsm_turns_have(but, turn->guid, turn->in, turn->out))
			rc = add_turn(c, kind, turn, plan);
	}
	return rc;
}

static bool differs(const struct rsm_change *c, uint32_t sw, uint32_t first)
{
	uint32_t n = c->n_lft - first < RSM_LFT_BLOCK ? c->n_lft - first : RSM_LFT_BLOCK;

	return c->whole || !c->old_lft[sw] ||
	       memcmp(c->old_lft[sw] + first, c->new_lft[sw] + first, n);
}

static int add_tables(const struct rsm_change *c, struct rsm_plan *plan)
{
	int rc = 0;

	for (uint32_t first = 0; first < c->n_lft && !rc; first += RSM_LFT_BLOCK)
		for (uint32_t sw = 0; sw < c->topo->n_switches && !rc; sw++)
			if (differs(c, sw, first))
				rc = add(plan, (struct rsm_step) { .kind = RSM_STEP_LFT, .sw = sw,
								   .block = first / RSM_LFT_BLOCK });
	return rc;
}

/* Every port that has a cable. */
static int add_all_ports(const struct rsm_change *c, enum rsm_step_kind kind,
			 struct rsm_plan *plan)
{
	int rc = 0;

	for (uint32_t sw = 0; sw < c->topo->n_switches && !rc; sw++)
		for (unsigned int port = 1; port < c->topo->switches[sw].n_ports && !rc; port++)
			if (c->topo->switches[sw].ports[port].peer != RSM_TOPO_NONE)
				rc = add(plan, (struct rsm_step) { .kind = kind, .sw = sw,
								   .in = port });
	for (uint32_t end = 0; end < c->topo->n_ends && !rc; end++)
		rc = add(plan, (struct rsm_step) { .kind = kind, .sw = end, .end = true });
	return rc;
}

/* The break nodes' links that lead up, but the first. */
static int add_break_ports(const struct rsm_change *c, enum rsm_step_kind kind,
			   struct rsm_plan *plan)
{
	int rc = 0;

	for (uint32_t sw = 0; sw < c->topo->n_switches; sw++) {
		bool first = true;

		for (unsigned int port = 1; port < c->topo->switches[sw].n_ports; port++) {
			if (!rsm_direction_up(c->topo, c->direction, sw, port))
				continue;
			if (!first)
				rc = rc ?: add(plan, (struct rsm_step) { .kind = kind, .sw = sw,
									 .in = port });
			first = false;
		}
	}
	return rc;
}

static uint8_t entry(const uint8_t *lft, uint32_t lid)
{
	return lft ? lft[lid] : UINT8_MAX;
}

/*
 * Whether packets that one table has brought to a switch are sent by another table of it along one
 * of the turns. A turn that was discarded all the time nobody takes.
 */
static bool taken(const struct rsm_change *c, const uint8_t *const *here,
		  const uint8_t *const *there, const struct rsm_turns *discarded)
{
	for (uint32_t from = 0; from < c->topo->n_switches; from++) {
		const struct rsm_topo_switch *sw = &c->topo->switches[from];

		for (uint32_t lid = 1; lid < c->n_lft; lid++) {
			uint8_t port = entry(there[from], lid), in, out;
			int32_t at;

			/* A turn begins with a link that leads down. */
			if (!port || port >= sw->n_ports)
				continue;
			at = sw->ports[port].peer;
			if (at < 0 || c->direction->place[at] <= c->direction->place[from])
				continue;
			in = sw->ports[port].peer_port;
			out = entry(here[at], lid);
			if (out && out != in && out < c->topo->switches[at].n_ports &&
			    rsm_direction_up(c->topo, c->direction, at, out) &&
			    !(discarded && rsm_turns_have(discarded, c->topo->switches[at].guid, in, out)))
				return true;
		}
	}
	return false;
}

/* Whether any table is another: if not, no port need be off. */
static bool any_table(const struct rsm_change *c)
{
	for (uint32_t sw = 0; sw < c->topo->n_switches; sw++)
		for (uint32_t first = 0; first < c->n_lft; first += RSM_LFT_BLOCK)
			if (differs(c, sw, first))
				return true;
	return false;
}

static int plan_static(const struct rsm_change *c, struct rsm_plan *plan)
{
	if (!any_table(c))
		return 0;
	return add_all_ports(c, RSM_STEP_PORT_OFF, plan) ?: add_tables(c, plan) ?:
		       add_all_ports(c, RSM_STEP_PORT_ON, plan);
}

/* Packets that the old tables brought to a break node may yet be there when its ports come back. */
static int plan_ports(const struct rsm_change *c, struct rsm_plan *plan)
{
	int rc;

	if (!any_table(c))
		return 0;
	rc = add_break_ports(c, RSM_STEP_PORT_OFF, plan) ?: add_tables(c, plan);
	if (!rc && (taken(c, c->old_lft, c->old_lft, NULL) || taken(c, c->new_lft, c->old_lft, NULL)))
		rc = add(plan, (struct rsm_step) { .kind = RSM_STEP_WAIT });
	return rc ?: add_break_ports(c, RSM_STEP_PORT_ON, plan);
}

static int plan_turns(const struct rsm_change *c, struct rsm_plan *plan)
{
	int rc = add_turns(c, RSM_STEP_DISCARD, c->new_turns, c->old_turns, plan);

	if (!rc && taken(c, c->old_lft, c->old_lft, c->old_turns))
		rc = add(plan, (struct rsm_step) { .kind = RSM_STEP_WAIT });
	return rc ?: add_turns(c, RSM_STEP_RESTORE, c->old_turns, c->new_turns, plan) ?:
		       add_tables(c, plan);
}

/**
 * rsm_plan_make - in which order SMPs are sent
 * @change: from which tables to which
 * @how: see enum rsm_distribution
 * @plan: for rsm_plan_free()
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0; -EINVAL: new routes take turns of @change->new_turns, and @how does not allow for that;
 * -ENOMEM.
 */
int rsm_plan_make(const struct rsm_change *change, enum rsm_distribution how,
		  struct rsm_plan *plan, char *why, size_t size)
{
	int rc;

	*plan = (struct rsm_plan) { 0 };
	if ((how == RSM_DISTRIBUTE_PORTS || how == RSM_DISTRIBUTE_TURNS) &&
	    taken(change, change->new_lft, change->new_lft, NULL)) {
		snprintf(why, size, "the new routes go down and up again");
		return -EINVAL;
	}
	switch (how) {
	case RSM_DISTRIBUTE_STATIC:
		rc = plan_static(change, plan);
		break;
	case RSM_DISTRIBUTE_PORTS:
		rc = plan_ports(change, plan);
		break;
	case RSM_DISTRIBUTE_TURNS:
		rc = plan_turns(change, plan);
		break;
	default:
		rc = add_tables(change, plan);
	}
	if (rc) {
		snprintf(why, size, "no memory");
		rsm_plan_free(plan);
	}
	return rc;
}

/** rsm_plan_free - all that hangs on it */
void rsm_plan_free(struct rsm_plan *plan)
{
	free(plan->steps);
	*plan = (struct rsm_plan) { 0 };
}
