/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A slot is a port of a switch that a host or a virtual function is plugged into. It has a LID for
 * good, the one of who was there first; a VM that comes there with a LID of its own is reached by the
 * paths of the slot's. Routing engines see the slots' LIDs only: to them nothing ever moves, and when
 * nothing but VMs has come, gone or moved they are not asked at all.
 *
 * OpenSM's lock is held exclusively wherever this is called, but for rsm_slots_lid(), rsm_slots_known() and
 * rsm_slots_due().
 */
#ifndef RSM_SLOTS_H
#define RSM_SLOTS_H

#include "place.h"

struct osm_port;
struct osm_routing_engine;

/* LIDs that are on their way with their HCAs' ports, at most. */
#define RSM_MOST_EXPECTED 128

bool rsm_slots_begin(struct rsm *rsm, struct osm_routing_engine *engine, bool forced);
void rsm_slots_end(struct rsm *rsm, bool computed);
void rsm_slots_failed(struct rsm *rsm);
void rsm_slots_free(void);

bool rsm_slots_entries(struct rsm *rsm, const struct rsm_place *place, const uint64_t *guids,
		       uint32_t n, uint8_t *entries);
uint32_t rsm_slots_tables(const uint64_t *guids, uint32_t n, uint8_t **lft);
void rsm_slots_moved(struct rsm *rsm, uint16_t lid, const struct rsm_place *place);
bool rsm_slots_expect(uint16_t lid, const struct rsm_place *place, const struct rsm_place *from);
bool rsm_slots_forget(uint16_t lid);
uint64_t rsm_slots_due(void);
bool rsm_slots_are_late(uint64_t now);
bool rsm_slots_awaits(const struct rsm_place *place, uint16_t lid);
void rsm_slots_learn(struct osm_port *const *holder);
unsigned int rsm_slots_expected(uint16_t *lids);
uint16_t rsm_slots_lid(uint16_t lid);
uint16_t rsm_slots_known(uint16_t lid);

/**
 * struct rsm_slots_counts - for the status
 * @slots: that there are or were
 * @moved: of them, those with another LID than their own
 * @odd: LIDs that some switches send by other paths than their slot's
 * @expected: that are not where they are routed to
 * @computed: tables that an engine made
 * @reused: tables for which none was asked
 * @computed_us: processor time of the last that an engine made
 */
struct rsm_slots_counts {
	unsigned int slots, moved, odd, expected;
	unsigned long long computed, reused, computed_us;
};

struct rsm_slots_counts rsm_slots_counts(void);

#endif
