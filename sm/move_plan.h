/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What becomes of forwarding tables when a VM takes its LID along to another port: nothing is
 * routed, entries that there are already are exchanged or copied.
 *
 *	swap	the LID of the port that it comes to goes to where it was
 *	copy	it follows the LID of its new hypervisor
 *
 * Nothing in here knows OpenSM.
 */
#ifndef RSM_MOVE_PLAN_H
#define RSM_MOVE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "topo.h"

#define RSM_LIDS_A_BLOCK 64 /* of a linear forwarding table, IBA 14.2.5.8 */

/**
 * struct rsm_move - one VM's
 * @lid: the VM's
 * @other: the LID at its destination whose entries it takes; @lid itself: @wanted
 * @wanted: the entries that it is to have there, by the switch's index, or NULL
 * @engine: tables as a routing engine has made them, whose turns are free of cycles
 * @n_engine: entries of each
 * @from: switch that the VM is at
 * @to: switch that it comes to
 * @to_port: port of @to that it comes to
 * @swap: @other goes to where the VM was; else it stays
 * @limited: only switches that have to change do, as balanced as it was or not
 */
struct rsm_move {
	uint16_t lid, other;
	const uint8_t *wanted;
	uint8_t *const *engine;
	uint32_t n_engine;
	int32_t from, to;
	uint8_t to_port;
	bool swap;
	bool limited;
};

/**
 * struct rsm_move_plan - the entries of both LIDs after it
 * @lid: of the VM, by the switch's index
 * @other: of the other
 * @changed: whether a switch's entries are others than before
 * @n: of switches
 * @n_changed: of those that change
 * @blocks: that have to be written, in all
 */
struct rsm_move_plan {
	uint8_t *lid, *other;
	bool *changed;
	uint32_t n, n_changed, blocks;
};

int rsm_move_plan(const struct rsm_topo *topo, uint8_t *const *lft, const struct rsm_move *move,
		  struct rsm_move_plan *plan);
void rsm_move_plan_free(struct rsm_move_plan *plan);
bool rsm_move_plans_meet(const struct rsm_move_plan *a, const struct rsm_move_plan *b);

#endif
