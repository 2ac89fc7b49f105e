/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Between OpenSM's routing engine and the setting of its tables. */
#ifndef RSM_ENGINE_H
#define RSM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

struct rsm;
struct osm_routing_engine;

/**
 * typedef rsm_computed - called when tables are computed, before the first is set
 *
 * In OpenSM's thread, with its lock held exclusively. @microseconds is what the engine took.
 */
typedef void (*rsm_computed)(struct rsm *rsm, struct osm_routing_engine *engine,
			     uint64_t microseconds);

/**
 * struct rsm_engine_cpu - an engine's processor time, microseconds
 * @hops_us: for hop counts, which come before the tables
 * @tables_us: for the tables
 * @keep_us: of that, for the copy of them that is there if the next ones cannot be made
 * @kept: bytes of the copy
 */
struct rsm_engine_cpu {
	uint64_t hops_us;
	uint64_t tables_us;
	uint64_t keep_us;
	uint64_t kept;
};

void rsm_engines_hook(struct rsm *rsm, rsm_computed computed);
void rsm_engines_free(void);
struct rsm_engine_cpu rsm_engine_cpu(const struct osm_routing_engine *engine);
bool rsm_engine_computes(void);
uint64_t rsm_microseconds(void);
uint64_t rsm_cpu_microseconds(void);

#endif
