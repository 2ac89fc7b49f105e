/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links that are up, and carry nothing before OpenSM has made both ports active (IBA 1.2.1 vol 1, 7.2). It does
 * so at the end of a sweep, when tables have long been set. OpenSM's lock is held.
 */
#ifndef RSM_LINKS_H
#define RSM_LINKS_H

#include <stdbool.h>
#include <stdint.h>

struct rsm;

bool rsm_links_wait(const struct rsm *rsm, bool (*is_news)(const struct rsm *rsm, uint16_t lid));

#endif
