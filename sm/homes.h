/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A slot is a place, and has a LID for good: its home's, that of who was there first. OpenSM's lock is
 * held exclusively.
 */
#ifndef RSM_HOMES_H
#define RSM_HOMES_H

#include "place.h"

#define RSM_N_LIDS 0xc000

/**
 * struct rsm_slot - a place, and who is there
 * @place: the place
 * @home: the LID that its paths are computed for; 0: it follows its hypervisor's
 * @routed: the home that the engine's tables have; 0: nobody was there then
 * @seen: the LID that was there, to the engine, when it computed its tables; 0: none
 * @now: the LID that is there; 0: none
 * @who: the port, while tables are computed
 */
struct rsm_slot {
	struct rsm_place place;
	uint16_t home, routed, seen, now;
	struct osm_port *who;
};

/**
 * struct rsm_homes - all slots that there have ever been
 * @slots: by place
 * @n: of them
 * @room: for so many
 */
struct rsm_homes {
	struct rsm_slot *slots;
	uint32_t n, room;
};

int rsm_homes_update(struct rsm *rsm, struct rsm_homes *homes);
struct rsm_slot *rsm_homes_find(const struct rsm_homes *homes, const struct rsm_place *place);
void rsm_homes_show(struct rsm *rsm, const struct rsm_homes *homes, bool own);
bool rsm_follows(struct rsm *rsm, const struct rsm_place *place);

#endif
