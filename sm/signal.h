/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Notices to subscribers: queued for each, sent as the window and the rate allow, repeated until
 * answered. The order of use:
 *
 *	rsm_signal_refresh(rsm, lock);		who has subscribed, now
 *	rsm_signal_port() or rsm_signal_all()	any number of times
 *	rsm_signal_push(rsm);			what can be sent is sent here and now
 *
 * All may be called from any thread that does not hold a lock of OpenSM's transport.
 */
#ifndef RSM_SIGNAL_H
#define RSM_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "repath_sm.h"

struct rsm;

/**
 * enum rsm_lock - what a caller has of OpenSM's lock
 * @RSM_UNLOCKED: nothing: it is taken
 * @RSM_LOCKED: it
 * @RSM_COMPUTING: it, inside OpenSM while tables are being computed: the engine's lanes are not in use yet
 */
enum rsm_lock {
	RSM_UNLOCKED,
	RSM_LOCKED,
	RSM_COMPUTING,
};

/**
 * struct rsm_notice - what is to be said
 * @trap: REPATH_SM_UNPATH or REPATH_SM_REPATH
 * @flags: of struct repath_sm_details
 * @serial: of struct repath_sm_details
 * @mask: REPATH_SM_MASK_* of @path; 0: any path of the reader
 * @old_dlid: of struct repath_sm_details
 * @path: the record
 */
struct rsm_notice {
	uint16_t trap;
	uint8_t flags;
	uint32_t serial;
	uint64_t mask;
	uint16_t old_dlid;
	struct repath_sm_path path;
};

void rsm_signal_refresh(struct rsm *rsm, enum rsm_lock lock);
bool rsm_signal_port(struct rsm *rsm, uint16_t lid, const struct rsm_notice *notice);
unsigned int rsm_signal_all(struct rsm *rsm, const struct rsm_notice *notice);
void rsm_signal_taken(struct rsm *rsm, bool (*is_taken)(const struct rsm *rsm, uint16_t lid));
void rsm_signal_push(struct rsm *rsm);
void rsm_signal_await(struct rsm *rsm, int milliseconds);

#endif
