/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* OpenSM's subnet as routing engines see it. */
#ifndef RSM_TOPO_VIEW_H
#define RSM_TOPO_VIEW_H

#include <opensm/osm_port.h>

#include "topo.h"

struct rsm;

int rsm_topo_of_subnet(struct rsm *rsm, struct rsm_topo *topo);
int rsm_topo_new_tables(struct rsm *rsm, const struct rsm_topo *topo, uint8_t **lft);
bool rsm_topo_way_out(const struct rsm_topo *topo, const osm_physp_t *port, uint8_t out, int32_t *sw,
		      uint32_t *to);

#endif
