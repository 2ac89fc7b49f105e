/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Who is told what of changed paths: enum rsm_method. */
#ifndef RSM_METHOD_H
#define RSM_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "prd.h"

struct rsm;

bool rsm_method_compares(const struct rsm *rsm);
bool rsm_method_unpaths(const struct rsm *rsm);
uint32_t rsm_method_keeps(const struct rsm *rsm);
void rsm_method_tell_all(struct rsm *rsm, uint16_t trap);
void rsm_method_way_back(struct rsm *rsm, uint16_t slid, uint16_t dlid);
bool rsm_method_tell(struct rsm *rsm, uint16_t trap, const struct rsm_changes *changes);

#endif
