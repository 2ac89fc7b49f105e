// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Between OpenSM and the plugin's routing engines. An engine that fails leaves the tables as they
 * are: OpenSM would route by another engine, whose lanes are not those that connections use.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "plugin.h"
#include "router.h"
#include "topo_view.h"

#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

#define EQUAL_WEIGHT 16 /* blocks of 64 bytes that a lane sends at a time */

static const struct rsm_router *const routers[] = {
	&rsm_pftree_router,
	&rsm_updown_router,
	&rsm_vftree_router,
	&rsm_voqsw_router,
	NULL,
};

/* A switch's table as it was made, by its GUID. */
struct table {
	uint64_t sw;
	uint32_t n;
	uint8_t *lft;
};

/* What is in force: the topology is the one that it was made for. */
static struct router {
	struct rsm *rsm;
	const struct rsm_router *router;
	struct rsm_topo *topo;
	struct rsm_routes routes;
	struct table *tables;
	uint32_t n_tables;
	uint64_t keep_us;
	bool routed, failed;
} state[sizeof(routers) / sizeof(routers[0])];

static void routes_free(struct rsm_routes *routes)
{
	free(routes->lft);
	if (routes->free)
		routes->free(routes->context);
	else
		free(routes->context);
	*routes = (struct rsm_routes) { 0 };
}

static void topo_free(struct rsm_topo *topo)
{
	if (topo)
		rsm_topo_free(topo);
	free(topo);
}

static osm_switch_t *switch_of(struct router *r, const struct rsm_topo_switch *sw)
{
	return osm_get_switch_by_guid(&r->rsm->osm->subn, cl_hton64(sw->guid));
}

/* The engine writes into the tables that OpenSM will set. */
static int tables_of(struct router *r, const struct rsm_topo *topo, struct rsm_routes *routes)
{
	routes->lft = calloc(topo->n_switches + 1, sizeof(*routes->lft));
	if (!routes->lft)
		return -ENOMEM;
	routes->n_lft = UINT16_MAX + 1;
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		osm_switch_t *sw = switch_of(r, &topo->switches[i]);

		routes->lft[i] = sw->new_lft;
		if (sw->lft_size < routes->n_lft)
			routes->n_lft = sw->lft_size;
		memset(sw->new_lft, RSM_NO_PORT, sw->lft_size);
	}
	if (routes->n_lft <= topo->max_lid)
		return -ENOSPC;
	for (uint32_t i = 0; i < topo->n_switches; i++)
		if (topo->switches[i].lid)
			routes->lft[i][topo->switches[i].lid] = 0;
	return 0;
}

static void tables_free(struct router *r)
{
	for (uint32_t i = 0; i < r->n_tables; i++)
		free(r->tables[i].lft);
	free(r->tables);
	r->tables = NULL;
	r->n_tables = 0;
}

static int by_guid(const void *a, const void *b)
{
	const struct table *one = a, *other = b;

	return one->sw < other->sw ? -1 : one->sw > other->sw;
}

static int keep_tables(struct router *r, const struct rsm_topo *topo)
{
	uint64_t start = rsm_cpu_microseconds();

	tables_free(r);
	r->tables = calloc(topo->n_switches + 1, sizeof(*r->tables));
	if (!r->tables)
		return -ENOMEM;
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		osm_switch_t *sw = switch_of(r, &topo->switches[i]);
		struct table *table = &r->tables[i];

		*table = (struct table) { topo->switches[i].guid, sw->lft_size,
					  malloc(sw->lft_size) };
		r->n_tables++;
		if (!table->lft) {
			tables_free(r);
			return -ENOMEM;
		}
		memcpy(table->lft, sw->new_lft, sw->lft_size);
	}
	qsort(r->tables, r->n_tables, sizeof(*r->tables), by_guid);
	r->keep_us = rsm_cpu_microseconds() - start;
	return 0;
}

/* Of a switch that has come since: a block that was lost is one that OpenSM has made zero. */
static void take_what_is_set(osm_switch_t *sw)
{
	static const uint8_t zero[IB_SMP_DATA_SIZE];

	memset(sw->new_lft, RSM_NO_PORT, sw->lft_size);
	for (uint32_t lid = 0; sw->lft && lid + sizeof(zero) <= sw->lft_size; lid += sizeof(zero))
		if (memcmp(sw->lft + lid, zero, sizeof(zero)))
			memcpy(sw->new_lft + lid, sw->lft + lid, sizeof(zero));
}

/*
 * As they were made, not as they are set: of what OpenSM has sent and is not answered it keeps zeros, so
 * that it differs and is sent again.
 */
static void take_tables(struct router *r)
{
	cl_qmap_t *map = &r->rsm->osm->subn.sw_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_switch_t *sw = (osm_switch_t *)i;
		struct table wanted = { .sw = cl_ntoh64(osm_node_get_node_guid(sw->p_node)) };
		struct table *table = r->tables ? bsearch(&wanted, r->tables, r->n_tables,
							  sizeof(*r->tables), by_guid) : NULL;

		if (!table) {
			take_what_is_set(sw);
			continue;
		}
		memset(sw->new_lft, RSM_NO_PORT, sw->lft_size);
		memcpy(sw->new_lft, table->lft, table->n < sw->lft_size ? table->n : sw->lft_size);
	}
}

/* Sweep after sweep finds the same: that is said once. */
static bool remark_is_news(const struct router *r, const struct rsm_routes *routes)
{
	return *routes->remark && (r->failed || !r->routed || strcmp(routes->remark, r->routes.remark));
}

static int build(void *context)
{
	struct router *r = context;
	struct rsm_routes routes = { .before = r->routed ? &r->routes : NULL };
	char why[512] = "no memory";
	struct rsm_topo *topo = calloc(1, sizeof(*topo));
	int rc;

	rc = topo ? rsm_topo_of_subnet(r->rsm, topo) : -ENOMEM;
	if (!rc) {
		rc = tables_of(r, topo, &routes);
		if (rc == -ENOSPC)
			snprintf(why, sizeof(why), "a switch has no table entry for LID %u",
				 topo->max_lid);
	}
	rc = rc ?: r->router->route(topo, &r->rsm->opt, &routes, why, sizeof(why));
	if (!rc) {
		if (remark_is_news(r, &routes))
			rsm_log(r->rsm, OSM_LOG_ERROR, "%s: %s", r->router->name, routes.remark);
		routes_free(&r->routes);
		topo_free(r->topo);
		routes.before = NULL;
		r->routes = routes;
		r->topo = topo;
		r->routed = true;
		r->failed = false;
		if (keep_tables(r, topo))
			rsm_log(r->rsm, OSM_LOG_ERROR, "%s: no memory to keep the tables",
				r->router->name);
		return 0;
	}
	r->failed = true;
	routes_free(&routes);
	topo_free(topo);
	rsm_log(r->rsm, OSM_LOG_ERROR, "%s: cannot route: %s%s", r->router->name, why,
		r->routed ? "; the routing before it stays in force" : "");
	if (!r->routed)
		return -1;
	take_tables(r);
	return 0;
}

static uint8_t path_sl(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
	struct router *r = context;

	if (!r->routes.sl)
		return hint;
	return r->routes.sl(r->routes.context, cl_ntoh16(slid), cl_ntoh16(dlid));
}

static void update_sl2vl(void *context, osm_physp_t *port, uint8_t in, uint8_t out,
			 ib_slvl_table_t *table)
{
	struct router *r = context;
	uint32_t to;
	int32_t sw;

	if (!r->routes.vl || !rsm_topo_way_out(r->topo, port, out, &sw, &to))
		return;
	for (uint8_t sl = 0; sl < 16; sl++)
		ib_slvl_table_set(table, sl, r->routes.vl(r->routes.context, sw, in, to, sl));
}

/**
 * rsm_router_weigh_equally - a block of VL arbitration in which all lanes weigh the same
 * @port: whose lanes
 * @block: filled in
 * @length: of it
 * @which: 0 and 1 are the low priority table, 2 and 3 the high one
 *
 * OpenSM's own tables let VL 0 go before all others, which is not what an engine means that spreads
 * paths over lanes. What is said of lanes that a link does not have OpenSM says of those that it has: they would
 * weigh more.
 */
void rsm_router_weigh_equally(const osm_physp_t *port, ib_vl_arb_table_t *block, unsigned int length,
			      unsigned int which)
{
	uint8_t vls = ib_port_info_get_op_vls(&port->port_info);
	unsigned int lanes = vls && vls < 5 ? 1 << (vls - 1) : RSM_VL_DISCARD;

	for (unsigned int i = 0; i < length; i++)
		block->vl_entry[i] = (ib_vl_arb_element_t) {
			.vl = i < lanes ? i : 0,
			.weight = !which && i < lanes ? EQUAL_WEIGHT : 0,
		};
}

static void update_vlarb(void *context, osm_physp_t *port, uint8_t number, ib_vl_arb_table_t *block,
			 unsigned int length, unsigned int which)
{
	struct router *r = context;

	(void)number;
	if (r->routes.vl)
		rsm_router_weigh_equally(port, block, length, which);
}

static int setup(struct osm_routing_engine *engine, struct osm_opensm *osm)
{
	(void)osm;
	engine->ucast_build_fwd_tables = build;
	engine->path_sl = path_sl;
	engine->update_sl2vl = update_sl2vl;
	engine->update_vlarb = update_vlarb;
	return 0;
}

/* NULL: it is not one of ours. Its functions may be others' by now, who ask ours. */
static const struct router *router_of(const struct osm_routing_engine *engine)
{
	for (size_t i = 0; routers[i]; i++)
		if (engine->context == &state[i])
			return &state[i];
	return NULL;
}

/** rsm_router_ours - whether it is one of the plugin's */
bool rsm_router_ours(const struct osm_routing_engine *engine)
{
	return router_of(engine);
}

/** rsm_router_by_switch - whether it is one of ours, whose lanes depend only on switches */
bool rsm_router_by_switch(const struct osm_routing_engine *engine)
{
	const struct router *r = router_of(engine);

	return r && r->router->by_switch;
}

/** rsm_router_by_partition - whether it is one of ours, whose lanes are partitions' */
bool rsm_router_by_partition(const struct osm_routing_engine *engine)
{
	const struct router *r = router_of(engine);

	return r && r->router->by_partition;
}

/**
 * rsm_router_again - whether tables can be others though the fabric is as it was
 *
 * It is one of ours, and could not route then, or goes by more.
 */
bool rsm_router_again(const struct osm_routing_engine *engine)
{
	const struct router *r = router_of(engine);

	return r && (r->failed || r->router->by_more);
}

/**
 * rsm_router_kept - what the copy of an engine's tables takes
 * @engine: any; the copy of one that is not ours takes nothing
 * @us: processor time of making it, microseconds
 * @bytes: its memory
 */
void rsm_router_kept(const struct osm_routing_engine *engine, uint64_t *us, uint64_t *bytes)
{
	const struct router *r = router_of(engine);

	*us = r ? r->keep_us : 0;
	*bytes = 0;
	for (uint32_t i = 0; r && i < r->n_tables; i++)
		*bytes += sizeof(r->tables[i]) + r->tables[i].n;
}

/**
 * rsm_routers_register - make the engines known to OpenSM
 * @rsm: the plugin, while OpenSM loads it
 *
 * Return: 0 or -ENOMEM.
 */
int rsm_routers_register(struct rsm *rsm)
{
	for (size_t i = 0; routers[i]; i++) {
		external_routing_engine_module_t module = {
			.name = routers[i]->name,
			.setup = setup,
		};

		state[i] = (struct router) { .rsm = rsm, .router = routers[i] };
		if (osm_register_external_routing_engine(rsm->osm, &module, &state[i]))
			return -ENOMEM;
	}
	return 0;
}

/** rsm_routers_free - when OpenSM has ended */
void rsm_routers_free(void)
{
	for (size_t i = 0; routers[i]; i++) {
		routes_free(&state[i].routes);
		topo_free(state[i].topo);
		tables_free(&state[i]);
	}
}
