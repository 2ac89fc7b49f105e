/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What paths.c is told of VMs that move. OpenSM's lock is held exclusively. */
#ifndef RSM_PATHS_H
#define RSM_PATHS_H

#include <iba/ib_types.h>

struct rsm;
struct rsm_prd;

const struct rsm_prd *rsm_paths_prd(const struct rsm *rsm);
void rsm_paths_take_along(struct rsm *rsm, uint16_t lid, ib_net64_t guid);
void rsm_paths_moved(struct rsm *rsm, uint16_t lid, uint16_t other);

#endif
