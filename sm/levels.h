/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an engine says of service levels, asked when it has computed. Later it might not say it: OpenSM's dfsssp draws
 * lots each time, and has no level for a LID that no port has, as a slot's need not when VMs move.
 */
#ifndef RSM_LEVELS_H
#define RSM_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include <opensm/osm_subnet.h>

/**
 * struct rsm_levels - all 0: nothing is known
 * @index: by LID, the highest that had a port and below: 1 and more, 0 without a port
 * @n_lids: of them
 * @n: LIDs that had one
 * @sl: by the indices of source and destination; as many bytes as dfsssp itself has for it
 */
struct rsm_levels {
	uint16_t *index;
	uint32_t n_lids, n;
	uint8_t *sl;
};

typedef uint8_t (*rsm_path_sl)(void *context, uint8_t hint, ib_net16_t slid, ib_net16_t dlid);

int rsm_levels_ask(struct rsm_levels *levels, const osm_subn_t *subn, rsm_path_sl ask, void *context, bool steady);
bool rsm_levels_find(const struct rsm_levels *levels, uint16_t slid, uint16_t dlid, uint8_t *sl);
void rsm_levels_free(struct rsm_levels *levels);

#endif
