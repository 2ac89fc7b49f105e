/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* OpenSM's subnet as the distinguisher sees it. */
#ifndef RSM_VIEW_H
#define RSM_VIEW_H

#include <stdbool.h>

#include "net.h"

struct rsm;
struct osm_routing_engine;

int rsm_view_make(struct rsm *rsm, struct osm_routing_engine *engine, bool computed,
		  struct rsm_net *net);
void rsm_view_free(struct rsm_net *net);

#endif
