/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tables are set in the order of a plan, before OpenSM would set them in its own. */
#ifndef RSM_DISTRIBUTE_H
#define RSM_DISTRIBUTE_H

#include <stdint.h>

#include <opensm/osm_port.h>

struct rsm;

void rsm_distribute(struct rsm *rsm);
void rsm_distribute_lanes(struct rsm *rsm, osm_physp_t *port, uint8_t in, uint8_t out,
			  ib_slvl_table_t *table);

#endif
