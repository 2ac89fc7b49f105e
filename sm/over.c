// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "layers.h"
#include "over.h"
#include "plugin.h"
#include "router.h"
#include "topo_view.h"
#include "voqsw.h"

#include <opensm/osm_node.h>

/* What is in force, for the tables of one engine; @engine is NULL without. */
static struct over {
	const struct osm_routing_engine *engine;
	struct rsm_over_base base;
	struct rsm_topo topo;
	struct rsm_layers layers;
	struct rsm_voqsw queues;
} over;

static uint8_t base_sl(void *context, uint16_t slid, uint16_t dlid)
{
	const struct rsm_over_base *base = context;

	return base->path_sl(base->context, 0, cl_hton16(slid), cl_hton16(dlid));
}

static bool is_with_vswitch(const struct rsm *rsm)
{
	return rsm->opt.vswitch != RSM_VSWITCH_OFF;
}

/**
 * rsm_over_wanted - whether an engine's lanes are to be replaced
 * @rsm: the plugin
 * @engine: it
 *
 * Those of the plugin have lanes of their own. With vswitch an engine is seldom asked, and knows of LIDs that
 * others have by then: there it is not done.
 */
bool rsm_over_wanted(const struct rsm *rsm, const struct osm_routing_engine *engine)
{
	return rsm->opt.voqsw_over && !is_with_vswitch(rsm) && !rsm_router_ours(engine);
}

/** rsm_over_tell - say in the log why an engine's lanes are not replaced, if they should be */
void rsm_over_tell(struct rsm *rsm, const struct osm_routing_engine *engine)
{
	if (rsm->opt.voqsw_over && is_with_vswitch(rsm) && !rsm_router_ours(engine))
		rsm_log(rsm, OSM_LOG_ERROR, "voqsw over %s: not together with vswitch; it keeps its own lanes",
			engine->name);
}

/** rsm_over_free - when OpenSM ends, or before others are made */
void rsm_over_free(void)
{
	rsm_voqsw_free(&over.queues);
	rsm_layers_free(&over.layers);
	rsm_topo_free(&over.topo);
	over = (struct over) { 0 };
}

/* The engine's lanes of its layers at a port. */
static void lanes_at(osm_physp_t *port, uint8_t in, uint8_t out, uint8_t *lanes)
{
	ib_slvl_table_t table;

	for (uint8_t sl = 0; sl < 16; sl++)
		ib_slvl_table_set(&table, sl, sl);
	over.base.lanes(over.base.context, port, in, out, &table);
	for (uint8_t layer = 0; layer < over.layers.n; layer++)
		lanes[layer] = ib_slvl_table_get(&table, layer);
}

static unsigned int most_of(osm_physp_t *port, uint8_t in, uint8_t out)
{
	uint8_t lanes[16];
	unsigned int n = 0;

	lanes_at(port, in, out, lanes);
	for (unsigned int layer = 0; layer < over.layers.n; layer++)
		n = lanes[layer] >= n ? lanes[layer] + 1u : n;
	return n;
}

/* The highest that layers have anywhere, + 1. */
static unsigned int count_lanes(const osm_subn_t *subn)
{
	unsigned int n = 1;

	for (cl_map_item_t *i = cl_qmap_head(&subn->node_guid_tbl); i != cl_qmap_end(&subn->node_guid_tbl);
	     i = cl_qmap_next(i)) {
		osm_node_t *node = (osm_node_t *)i;
		unsigned int n_ports = osm_node_get_num_physp(node);

		for (unsigned int out = 0; out < n_ports; out++) {
			osm_physp_t *port = osm_node_get_physp_ptr(node, out);

			for (unsigned int in = 0; port && in < (node->sw ? n_ports : 1); in++) {
				unsigned int most = most_of(port, in, node->sw ? out : 0);

				n = most > n ? most : n;
			}
		}
	}
	return n;
}

/* Layers of paths from an end, those of the subnet manager's own left out: a bit for each. */
static uint16_t layers_from(uint32_t end, uint16_t sm)
{
	const struct rsm_topo *topo = &over.topo;
	uint16_t slid = topo->ends[end].lid, used = 0;

	for (uint32_t to = 0; slid != sm && to < topo->n_ends; to++)
		for (unsigned int i = 0; to != end && i < topo->ends[to].n_lids; i++)
			if (topo->ends[to].lid + i != sm)
				used |= 1u << rsm_layers_sl(&over.layers, slid, topo->ends[to].lid + i);
	for (uint32_t to = 0; slid != sm && to < topo->n_switches; to++)
		if (topo->switches[to].lid && topo->switches[to].lid != sm)
			used |= 1u << rsm_layers_sl(&over.layers, slid, topo->switches[to].lid);
	return used;
}

/*
 * Paths from and to the subnet manager have the service level of option sm_sl, whatever layer the engine would have
 * them in: in one of other paths they could close a loop, and so in one that shares the engine's lanes.
 */
static bool is_managements_alone(const struct rsm *rsm, char *why, size_t size)
{
	unsigned int sl = rsm->osm->subn.opt.sm_sl, layer = sl / over.queues.voq.spec.sls;
	uint16_t used = 0;

	if (!rsm->opt.sm_sl || over.layers.n < 2)
		return true;
	if (over.base.lanes) {
		snprintf(why, size, "not together with sm_sl, as its layers share lanes");
		return false;
	}
	if (layer >= over.layers.n)
		layer = 0;
	for (uint32_t end = 0; end < over.topo.n_ends; end++)
		used |= layers_from(end, cl_ntoh16(rsm->osm->subn.sm_base_lid));
	if (!(used >> layer & 1))
		return true;
	snprintf(why, size, "service level %u, which the subnet manager has by sm_sl, would be in layer %u, of other paths",
		 sl, layer);
	return false;
}

static int make(struct rsm *rsm, const char *name, char *why, size_t size)
{
	struct rsm_voqsw_base base = {
		.name = name, .sl = over.base.path_sl ? rsm_layers_sl : NULL, .context = &over.layers,
	};
	uint8_t **lft;
	int rc;

	snprintf(why, size, "no memory");
	rc = rsm_topo_of_subnet(rsm, &over.topo);
	if (!rc && base.sl) {
		over.layers = (struct rsm_layers) { .ask = base_sl, .context = &over.base };
		rc = rsm_layers_make(&over.topo, &over.layers);
		if (rc == -E2BIG)
			snprintf(why, size, "too large: %u ends", over.topo.n_ends);
		base.layers = over.layers.n;
	}
	if (rc)
		return rc;
	if (!base.sl && over.base.lanes) {
		snprintf(why, size, "it has lanes by turns, and no service levels");
		return -EINVAL;
	}
	if (over.base.lanes)
		base.lanes = count_lanes(&rsm->osm->subn);
	lft = calloc(over.topo.n_switches + 1, sizeof(*lft));
	rc = lft ? rsm_topo_new_tables(rsm, &over.topo, lft) : -ENOMEM;
	if (rc == -ENOENT)
		snprintf(why, size, "a switch has no table for LID %u", over.topo.max_lid);
	base.lft = lft;
	rc = rc ?: rsm_voqsw_make(&over.topo, &rsm->opt, &base, &over.queues, why, size);
	free(lft);
	if (!rc && !is_managements_alone(rsm, why, size))
		rc = -EINVAL;
	return rc;
}

/**
 * rsm_over_make - service levels and lanes for the tables that an engine has computed
 * @rsm: the plugin
 * @engine: it
 * @base: what it says of service levels
 *
 * In OpenSM's thread, before the first table is set. Without them the engine's own are in force, and
 * the log says why.
 */
void rsm_over_make(struct rsm *rsm, const struct osm_routing_engine *engine,
		   const struct rsm_over_base *base)
{
	char why[256];

	rsm_over_free();
	over.base = *base;
	if (make(rsm, engine->name, why, sizeof(why))) {
		rsm_log(rsm, OSM_LOG_ERROR, "voqsw over %s: %s; it keeps its own lanes", engine->name,
			why);
		rsm_over_free();
		return;
	}
	over.engine = engine;
	rsm_voqsw_remark(&over.queues, &rsm->opt, why, sizeof(why));
	if (!*why)
		snprintf(why, sizeof(why), "%u of %u crossings have a queue", over.queues.voq.considered,
			 over.queues.voq.crossings);
	rsm_log(rsm, OSM_LOG_INFO, "voqsw over %s: %s", engine->name, why);
}

/** rsm_over_in_force - whether an engine's lanes are replaced now */
bool rsm_over_in_force(const struct osm_routing_engine *engine)
{
	return over.engine && over.engine == engine;
}

/** rsm_over_sl - service level of a path; false: the engine's own */
bool rsm_over_sl(const struct osm_routing_engine *engine, uint16_t slid, uint16_t dlid, uint8_t *sl)
{
	if (!rsm_over_in_force(engine))
		return false;
	*sl = rsm_voqsw_sl(&over.queues, slid, dlid);
	return true;
}

/** rsm_over_lanes - a port's SLtoVL table; false: the engine's own */
bool rsm_over_lanes(const struct osm_routing_engine *engine, osm_physp_t *port, uint8_t in,
		    uint8_t out, ib_slvl_table_t *table)
{
	uint8_t lanes[16];
	uint32_t to;
	int32_t sw;

	if (!rsm_over_in_force(engine) ||
	    !rsm_topo_way_out(&over.topo, port, out, &sw, &to))
		return false;
	if (over.queues.base.lanes)
		lanes_at(port, in, out, lanes);
	for (uint8_t sl = 0; sl < 16; sl++)
		ib_slvl_table_set(table, sl, rsm_voqsw_vl(&over.queues, sw, in, to, sl,
							  over.queues.base.lanes ? lanes : NULL));
	return true;
}
