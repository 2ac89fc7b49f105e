/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ports of switches that hosts and virtual functions are plugged into. OpenSM's lock is held. */
#ifndef RSM_PLACE_H
#define RSM_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct rsm;
struct osm_port;
struct osm_switch;

/**
 * struct rsm_place - one of them
 * @sw: GUID of the switch
 * @port: of it
 */
struct rsm_place {
	uint64_t sw;
	uint8_t port;
};

bool rsm_place_is(const struct rsm_place *a, const struct rsm_place *b);
bool rsm_place_of(const struct osm_port *port, struct rsm_place *place);
struct osm_port *rsm_place_port(struct rsm *rsm, const struct rsm_place *place);
struct osm_port *rsm_place_pf(struct rsm *rsm, uint64_t sw);
bool rsm_place_is_vf(struct rsm *rsm, const struct rsm_place *place);
bool rsm_is_vswitch(struct rsm *rsm, const struct osm_switch *sw);

#endif
