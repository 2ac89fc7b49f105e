/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef RSM_CONGESTION_H
#define RSM_CONGESTION_H

struct rsm;

void rsm_congestion_routed(struct rsm *rsm, const char *engine);

#endif
