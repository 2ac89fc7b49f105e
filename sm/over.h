/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* VOQsw over one of OpenSM's own engines (option voqsw_over): its tables, and lanes that queue by output. */
#ifndef RSM_OVER_H
#define RSM_OVER_H

#include <stdbool.h>
#include <stdint.h>

#include <opensm/osm_opensm.h>

struct rsm;

/**
 * struct rsm_over_base - what the engine says of service levels
 * @path_sl: of OpenSM's; NULL: nothing
 * @lanes: which lanes these have at a port; NULL: each its own, everywhere
 * @context: for both
 */
struct rsm_over_base {
	uint8_t (*path_sl)(void *context, uint8_t hint, ib_net16_t slid, ib_net16_t dlid);
	void (*lanes)(void *context, osm_physp_t *port, uint8_t in, uint8_t out, ib_slvl_table_t *table);
	void *context;
};

bool rsm_over_wanted(const struct rsm *rsm, const struct osm_routing_engine *engine);
void rsm_over_tell(struct rsm *rsm, const struct osm_routing_engine *engine);
void rsm_over_make(struct rsm *rsm, const struct osm_routing_engine *engine,
		   const struct rsm_over_base *base);
bool rsm_over_in_force(const struct osm_routing_engine *engine);
bool rsm_over_sl(const struct osm_routing_engine *engine, uint16_t slid, uint16_t dlid, uint8_t *sl);
bool rsm_over_lanes(const struct osm_routing_engine *engine, osm_physp_t *port, uint8_t in,
		    uint8_t out, ib_slvl_table_t *table);
void rsm_over_free(void);

#endif
