/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A direction for every link between switches: up is to the switch of the lower place. Nobody's
 * packets may go down and then up again: that is what keeps up-down routing free of deadlocks. A
 * break node is a switch with several links that lead up: only there is such a turn possible.
 */
#ifndef RSM_DIRECTION_H
#define RSM_DIRECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "topo.h"

/**
 * struct rsm_direction - of all links
 * @place: of each switch, by its index; each has another one
 * @order: switches by their places
 * @n: switches
 */
struct rsm_direction {
	uint32_t *place;
	uint32_t *order;
	uint32_t n;
};

/**
 * struct rsm_turn - from one port of a switch to another
 * @guid: of the switch
 * @in: where packets come in
 * @out: where they leave
 */
struct rsm_turn {
	uint64_t guid;
	uint8_t in, out;
};

/**
 * struct rsm_turns - several of them
 * @turns: by GUID, then by @in and @out
 * @n: of them
 */
struct rsm_turns {
	struct rsm_turn *turns;
	uint32_t n;
};

int rsm_direction_make(const struct rsm_topo *topo, struct rsm_direction *direction);
void rsm_direction_free(struct rsm_direction *direction);
bool rsm_direction_up(const struct rsm_topo *topo, const struct rsm_direction *direction,
		      uint32_t sw, uint8_t port);
int rsm_direction_turns(const struct rsm_topo *topo, const struct rsm_direction *direction,
			struct rsm_turns *turns);
int64_t rsm_turns_index(const struct rsm_turns *turns, uint64_t guid, uint8_t in, uint8_t out);
void rsm_turns_free(struct rsm_turns *turns);

/** rsm_turns_have - whether this turn is one of them */
static inline bool rsm_turns_have(const struct rsm_turns *turns, uint64_t guid, uint8_t in,
				  uint8_t out)
{
	return rsm_turns_index(turns, guid, in, out) >= 0;
}

#endif
