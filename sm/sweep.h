/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whether OpenSM sweeps: it says when it begins to, but not always when it has ended. */
#ifndef RSM_SWEEP_H
#define RSM_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct rsm;

void rsm_sweep_begins(uint64_t now);
void rsm_sweep_ends(void);
bool rsm_is_sweeping(struct rsm *rsm, uint64_t now);

#endif
