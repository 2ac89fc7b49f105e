// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The least set of switches: one keeps its entry if that leads a hop nearer to the new place, by the
 * ways that the other LID has from there. Each hop of the mixture of old and new entries then does,
 * so it has no loop, and no path is longer than if all switches had changed. Two hops that follow one
 * another do so on some path of the engine's, or the entry is not kept: the mixture adds no dependency
 * between links to those that the engine has made free of cycles.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "move_plan.h"
#include "router.h"

#define FAR UINT32_MAX

/* One LID's change: from @old to @wanted entries, as far as they are not kept. */
struct change {
	const struct rsm_topo *topo;
	const struct rsm_move *move;
	const uint8_t *old, *wanted;
	uint8_t *entry;
};

static int32_t behind(const struct rsm_topo *topo, uint32_t sw, uint8_t port)
{
	if (!port || port >= topo->switches[sw].n_ports)
		return RSM_TOPO_NONE;
	return topo->switches[sw].ports[port].peer;
}

/* The switch that all cables of this one lead to. */
static int32_t only_neighbour(const struct rsm_topo *topo, int32_t sw)
{
	int32_t found = RSM_TOPO_NONE;

	for (unsigned int i = 1; i < topo->switches[sw].n_ports; i++) {
		int32_t peer = topo->switches[sw].ports[i].peer;

		if (peer < 0 || peer == found)
			continue;
		if (found >= 0)
			return RSM_TOPO_NONE;
		found = peer;
	}
	return found;
}

/* The leaf that a move does not leave, with vSwitches or without. */
static int32_t common_leaf(const struct rsm_topo *topo, const struct rsm_move *move)
{
	int32_t a = only_neighbour(topo, move->from), b = only_neighbour(topo, move->to);

	if (move->from == move->to)
		return move->from;
	if (a == move->to || (a >= 0 && a == b))
		return a;
	return b == move->from ? b : RSM_TOPO_NONE;
}

/* Hops from each switch to the new place by the wanted entries, at most as many as switches. */
static uint32_t *distances(const struct change *c)
{
	uint32_t n = c->topo->n_switches, *hops = malloc((n + 1) * sizeof(*hops));

	if (!hops)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		int32_t sw = i;
		uint32_t count = 0;

		while (sw >= 0 && count <= n) {
			int32_t next = behind(c->topo, sw, c->wanted[sw]);

			if (next == RSM_TOPO_END)
				break;
			sw = next;
			count++;
		}
		hops[i] = sw >= 0 && count <= n ? count : FAR;
	}
	return hops;
}

/* Whether some path of the engine's has these two hops. */
static bool is_known_turn(const struct change *c, uint32_t a, uint8_t first, uint32_t b,
			  uint8_t second)
{
	for (uint32_t lid = 1; lid < c->move->n_engine; lid++)
		if (c->move->engine[a][lid] == first && c->move->engine[b][lid] == second)
			return true;
	return false;
}

/* Return: whether an entry that was kept had to be given up. */
static bool give_up(const struct change *c, bool *kept, uint32_t sw)
{
	int32_t next = behind(c->topo, sw, c->entry[sw]);
	uint32_t wrong = sw;

	if (next < 0 || kept[sw] == kept[next] || c->old[sw] == c->wanted[sw] ||
	    c->old[next] == c->wanted[next] ||
	    is_known_turn(c, sw, c->entry[sw], next, c->entry[next]))
		return false;
	if (!kept[sw])
		wrong = next;
	kept[wrong] = false;
	c->entry[wrong] = c->wanted[wrong];
	return true;
}

static int keep_some(const struct change *c)
{
	uint32_t n = c->topo->n_switches, *hops = distances(c);
	bool *kept = calloc(n + 1, sizeof(*kept)), again = true;
	int rc = hops && kept ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < n; i++) {
		int32_t next = behind(c->topo, i, c->old[i]);

		kept[i] = next >= 0 && hops[i] != FAR && hops[next] + 1 == hops[i];
		c->entry[i] = kept[i] ? c->old[i] : c->wanted[i];
	}
	while (!rc && again) {
		again = false;
		for (uint32_t i = 0; i < n; i++)
			again |= give_up(c, kept, i);
	}
	free(hops);
	free(kept);
	return rc;
}

static int change(const struct change *c)
{
	uint32_t n = c->topo->n_switches;
	int32_t leaf;

	memcpy(c->entry, c->wanted, n);
	if (!c->move->limited)
		return 0;
	leaf = common_leaf(c->topo, c->move);
	if (leaf < 0)
		return keep_some(c);
	memcpy(c->entry, c->old, n);
	c->entry[leaf] = c->wanted[leaf];
	c->entry[c->move->from] = c->wanted[c->move->from];
	c->entry[c->move->to] = c->wanted[c->move->to];
	return 0;
}

static int plan_entries(const struct rsm_topo *topo, uint8_t *const *lft,
			const struct rsm_move *move, struct rsm_move_plan *plan)
{
	uint32_t n = topo->n_switches;
	uint8_t *old = malloc(3 * (n + 1)), *other = old + n + 1, *wanted = other + n + 1;
	struct change c = { topo, move, old, wanted, plan->lid };
	int rc = old ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < n; i++) {
		old[i] = lft[i][move->lid];
		other[i] = lft[i][move->other];
		wanted[i] = move->wanted ? move->wanted[i] : other[i];
	}
	if (!rc) {
		wanted[move->to] = move->to_port;
		rc = change(&c);
	}
	if (!rc && move->swap) {
		c.old = other;
		c.wanted = old;
		c.entry = plan->other;
		rc = change(&c);
	} else if (!rc) {
		memcpy(plan->other, other, n);
	}
	free(old);
	return rc;
}

/**
 * rsm_move_plan - what to write
 * @topo: the fabric
 * @lft: tables of its switches, by index, with entries for both LIDs
 * @move: what moves; the ends are at their switches
 * @plan: filled in; for rsm_move_plan_free()
 *
 * Return: 0 or -ENOMEM.
 */
int rsm_move_plan(const struct rsm_topo *topo, uint8_t *const *lft, const struct rsm_move *move,
		  struct rsm_move_plan *plan)
{
	uint32_t n = topo->n_switches;
	bool same = move->lid / RSM_LIDS_A_BLOCK == move->other / RSM_LIDS_A_BLOCK;
	int rc;

	*plan = (struct rsm_move_plan) {
		.lid = malloc(n + 1),
		.other = malloc(n + 1),
		.changed = calloc(n + 1, sizeof(*plan->changed)),
		.n = n,
	};
	rc = plan->lid && plan->other && plan->changed ? 0 : -ENOMEM;
	rc = rc ?: plan_entries(topo, lft, move, plan);
	if (rc) {
		rsm_move_plan_free(plan);
		return rc;
	}
	for (uint32_t i = 0; i < n; i++) {
		bool first = plan->lid[i] != lft[i][move->lid];
		bool second = move->other != move->lid &&
			      plan->other[i] != lft[i][move->other];

		plan->changed[i] = first || second;
		plan->n_changed += plan->changed[i];
		plan->blocks += same ? first || second : first + second;
	}
	return 0;
}

/** rsm_move_plan_free - what rsm_move_plan() made */
void rsm_move_plan_free(struct rsm_move_plan *plan)
{
	free(plan->lid);
	free(plan->other);
	free(plan->changed);
	*plan = (struct rsm_move_plan) { 0 };
}

/** rsm_move_plans_meet - whether a switch has to change for both */
bool rsm_move_plans_meet(const struct rsm_move_plan *a, const struct rsm_move_plan *b)
{
	for (uint32_t i = 0; i < a->n && i < b->n; i++)
		if (a->changed[i] && b->changed[i])
			return true;
	return false;
}
