/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * In which order new tables are distributed to switches, so that old and new routes together do not
 * deadlock. Nothing is sent here.
 */
#ifndef RSM_PLAN_H
#define RSM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "direction.h"
#include "topo.h"

#define RSM_LFT_BLOCK 64u /* entries that one SMP sets */

/**
 * enum rsm_distribution - how
 * @RSM_DISTRIBUTE_DYNAMIC: tables only. It may deadlock.
 * @RSM_DISTRIBUTE_STATIC: no port carries data meanwhile
 * @RSM_DISTRIBUTE_PORTS: break nodes keep one of the ports that lead up
 * @RSM_DISTRIBUTE_TURNS: break nodes discard what would turn from down to up, until they are no
 *	break nodes any more
 */
enum rsm_distribution {
	RSM_DISTRIBUTE_DYNAMIC,
	RSM_DISTRIBUTE_STATIC,
	RSM_DISTRIBUTE_PORTS,
	RSM_DISTRIBUTE_TURNS,
};

/**
 * enum rsm_step_kind - what an SMP sets
 * @RSM_STEP_PORT_OFF: PortInfo: the port carries no data
 * @RSM_STEP_DISCARD: SLtoVL: all SLs of a turn to VL 15
 * @RSM_STEP_RESTORE: SLtoVL: as it was before it was discarded
 * @RSM_STEP_LFT: a block of the forwarding table
 * @RSM_STEP_PORT_ON: PortInfo: the port carries data again
 * @RSM_STEP_WAIT: no SMP: until packets that are on their way are where they go
 */
enum rsm_step_kind {
	RSM_STEP_PORT_OFF,
	RSM_STEP_DISCARD,
	RSM_STEP_RESTORE,
	RSM_STEP_LFT,
	RSM_STEP_PORT_ON,
	RSM_STEP_WAIT,
};

/**
 * struct rsm_step - one SMP
 * @kind: see enum rsm_step_kind
 * @end: the port is that of a host: @sw is the index of the end
 * @sw: index of the switch
 * @block: of the LFT
 * @in: port of a turn, or the port
 * @out: port of a turn
 */
struct rsm_step {
	enum rsm_step_kind kind;
	bool end;
	uint32_t sw;
	uint16_t block;
	uint8_t in, out;
};

/**
 * struct rsm_plan - steps; those of the same kind that follow one another may go in any order, and
 * only when all of them are answered the next kind begins
 */
struct rsm_plan {
	struct rsm_step *steps;
	uint32_t n, room;
};

/**
 * struct rsm_change - from which tables to which
 * @topo: that the new tables are for
 * @direction: of its links
 * @old_lft: by the switch's index; NULL: the switch is new
 * @new_lft: by the switch's index
 * @n_lft: entries of each
 * @old_turns: discarded now; of switches or ports that are not there any more, too
 * @new_turns: those that no new route takes: rsm_direction_turns()
 * @whole: all blocks are set, not only those that differ
 */
struct rsm_change {
	const struct rsm_topo *topo;
	const struct rsm_direction *direction;
	const uint8_t *const *old_lft;
	const uint8_t *const *new_lft;
	uint32_t n_lft;
	const struct rsm_turns *old_turns;
	const struct rsm_turns *new_turns;
	bool whole;
};

int rsm_plan_make(const struct rsm_change *change, enum rsm_distribution how,
		  struct rsm_plan *plan, char *why, size_t size);
void rsm_plan_free(struct rsm_plan *plan);

#endif
