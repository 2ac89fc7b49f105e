/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whether any paths may be in one lane together, as those to hot spots are. */
#ifndef RSM_SLOW_LANE_H
#define RSM_SLOW_LANE_H

#include <stdint.h>

#include "topo.h"

int rsm_slow_lane_loops(const struct rsm_topo *topo, uint8_t *const *lft);

#endif
