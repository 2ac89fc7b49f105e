/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Routing engines of the plugin: opensm -R NAME. */
#ifndef RSM_ROUTER_H
#define RSM_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo.h"

#define RSM_NO_PORT	255 /* of a LID that a switch does not reach: IBA 14.2.5.8's meaning */
#define RSM_VL_DISCARD	15

struct rsm_options;

/**
 * struct rsm_routes - what an engine makes
 * @lft: by the switch's index: a table of output ports by LID, of @n_lft entries, each RSM_NO_PORT
 *	before the engine runs. Port 0 of the switch's own LID is set by who calls the engine.
 * @n_lft: at least the highest LID + 1
 * @context: the engine's own, for the functions below; it lives until @free
 * @sl: service level of a path between two ends (LIDs, LMC included), 0 to 15. NULL: 0, or the
 *	partition's.
 * @vl: VL that a switch sends packets of an SL on, that came in by one port (0: its own) and leave
 *	by another: a data VL, or RSM_VL_DISCARD. @sw < 0: what an end does; @out is its index then.
 *	NULL: OpenSM's configuration. Only with QoS (opensm -Q).
 * @free: of @context; NULL: free()
 * @before: those in force, which these are to take the place of; NULL: there are none
 * @remark: what is not as it was wanted, for the log; empty: nothing
 */
struct rsm_routes {
	uint8_t **lft;
	uint32_t n_lft;
	void *context;
	uint8_t (*sl)(void *context, uint16_t slid, uint16_t dlid);
	uint8_t (*vl)(void *context, int32_t sw, uint16_t in, uint32_t out, uint8_t sl);
	void (*free)(void *context);
	const struct rsm_routes *before;
	char remark[512];
};

/**
 * struct rsm_router - an engine. It knows nothing of OpenSM.
 * @name: for opensm -R
 * @by_switch: service levels depend only on the switches at both ends of a path
 * @by_partition: service levels depend on which partitions the ports at both ends are in, whoever they follow
 * @by_more: tables depend on more than the fabric: on partitions, files, counters
 * @route: fills in @routes. @topo stays until they are freed, its names do not. Returns 0 or a
 *	negative error number, with the reason for a person in @why: then the routing before it
 *	stays in force.
 */
struct rsm_router {
	const char *name;
	bool by_switch;
	bool by_partition;
	bool by_more;
	int (*route)(const struct rsm_topo *topo, const struct rsm_options *opt,
		     struct rsm_routes *routes, char *why, size_t size);
};

extern const struct rsm_router rsm_pftree_router;
extern const struct rsm_router rsm_updown_router;
extern const struct rsm_router rsm_vftree_router;
extern const struct rsm_router rsm_voqsw_router;

struct rsm;
struct osm_routing_engine;
struct _ib_vl_arb_table;
struct osm_physp;

bool rsm_router_ours(const struct osm_routing_engine *engine);
void rsm_router_weigh_equally(const struct osm_physp *port, struct _ib_vl_arb_table *block, unsigned int length,
			      unsigned int which);
bool rsm_router_by_switch(const struct osm_routing_engine *engine);
bool rsm_router_by_partition(const struct osm_routing_engine *engine);
bool rsm_router_again(const struct osm_routing_engine *engine);
void rsm_router_kept(const struct osm_routing_engine *engine, uint64_t *us, uint64_t *bytes);
int rsm_routers_register(struct rsm *rsm);
void rsm_routers_free(void);

#endif
