/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What hosts receive, for engines that go by weights. */
#ifndef RSM_RECEIPTS_H
#define RSM_RECEIPTS_H

#include <stdint.h>

struct rsm;

uint64_t rsm_received(struct rsm *rsm, uint64_t guid, uint8_t port);

#endif
