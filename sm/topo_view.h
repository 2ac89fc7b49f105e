/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* OpenSM's subnet as routing engines see it. */
#ifndef RSM_TOPO_VIEW_H
#define RSM_TOPO_VIEW_H

#include "topo.h"

struct rsm;

int rsm_topo_of_subnet(struct rsm *rsm, struct rsm_topo *topo);

#endif
