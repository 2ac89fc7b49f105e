/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Who has subscribed to traps 68 and 69: a copy of OpenSM's list that needs no lock of OpenSM. */
#ifndef RSM_SUBSCRIBERS_H
#define RSM_SUBSCRIBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opensm/osm_madw.h>

#include "signal.h"

struct rsm;

/**
 * struct rsm_subscriber - one address that reports go to
 * @address: of the agent that subscribed
 * @lid: of its port
 * @unpath: it wants trap 68
 * @repath: it wants trap 69
 */
struct rsm_subscriber {
	osm_mad_addr_t address;
	uint16_t lid;
	bool unpath;
	bool repath;
};

struct rsm_subscriber *rsm_subscribers(struct rsm *rsm, enum rsm_lock lock, size_t *n);

#endif
