/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* libosmrepath.so inside OpenSM: what its parts share. */
#ifndef RSM_PLUGIN_H
#define RSM_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <opensm/osm_opensm.h>
#include <opensm/osm_event_plugin.h>

#include "options.h"

struct rsm;
struct rsm_signal;
struct rsm_status;
struct rsm_paths;
struct rsm_congestion;
struct rsm_guids;
struct rsm_distribute;
struct rsm_receipts;
struct rsm_vms;

/**
 * struct rsm_part - something that the plugin does
 * @name: its key in the status
 * @start: called once while OpenSM starts, before it is bound to its port; 0, or the plugin fails
 * @stop: called once while OpenSM ends; no other function of the part runs then
 * @event: an event of OpenSM, in the thread that it happens in. TRAP and LFT_CHANGE come with
 *	OpenSM's lock held, the others without.
 * @tick: called in the plugin's own thread, OpenSM's lock not held, when rsm_wake() was called or
 *	the time that it asked for has come. Returns when it wants to be called next, in
 *	milliseconds of rsm_now(), or RSM_NEVER.
 * @status: writes a JSON object to the stream, from the plugin's own thread
 *
 * All but @name may be NULL. A part keeps its state behind a pointer in struct rsm.
 */
struct rsm_part {
	const char *name;
	int (*start)(struct rsm *rsm);
	void (*stop)(struct rsm *rsm);
	void (*event)(struct rsm *rsm, osm_epi_event_id_t id, void *data);
	uint64_t (*tick)(struct rsm *rsm, uint64_t now);
	void (*status)(struct rsm *rsm, FILE *out);
};

#define RSM_NEVER UINT64_MAX

extern const struct rsm_part rsm_signal_part;
extern const struct rsm_part rsm_paths_part;
extern const struct rsm_part rsm_status_part;
extern const struct rsm_part rsm_congestion_part;
extern const struct rsm_part rsm_guids_part;
extern const struct rsm_part rsm_distribute_part;
extern const struct rsm_part rsm_receipts_part;
extern const struct rsm_part rsm_vm_part;

/**
 * struct rsm - the plugin, one in a process
 * @osm: OpenSM
 * @opt: the options, which never change
 * @epoch: random, for struct repath_sm_details
 * @serial: of the routing that was computed last, or of the move that hosts were told of since
 */
struct rsm {
	osm_opensm_t *osm;
	struct rsm_options opt;
	uint32_t epoch;
	uint32_t serial;
	struct rsm_signal *signal;
	struct rsm_status *status;
	struct rsm_paths *paths;
	struct rsm_congestion *congestion;
	struct rsm_guids *guids;
	struct rsm_distribute *distribute;
	struct rsm_receipts *receipts;
	struct rsm_vms *vms;

	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool woken;
	bool stopping;
};

#define rsm_log(rsm, level, format, ...)                                                           \
	osm_log(&(rsm)->osm->log, level, "repath: " format "\n", ##__VA_ARGS__)

uint64_t rsm_now(void);
void rsm_wake(struct rsm *rsm);
void rsm_status_all(struct rsm *rsm, FILE *out);

#endif
