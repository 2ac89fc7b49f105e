// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MTU and rate are taken from the same attributes as OpenSM's SA takes them from for a path record:
 * the MTU that ports are capable of, and the rate at which their links are active, with extended
 * speeds if the node's port 0 (of a switch) or the port (of a host) has them.
 */
#include <errno.h>
#include <stdlib.h>

#include "over.h"
#include "place.h"
#include "plugin.h"
#include "rate.h"
#include "router.h"
#include "view.h"

#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

static uint8_t attr_of(const osm_physp_t *port)
{
	const ib_port_info_t *info = &port->port_info, *capable = info;
	osm_physp_t *zero = osm_node_get_physp_ptr(port->p_node, 0);

	if (port->p_node->sw && zero)
		capable = &zero->port_info;
	return RSM_ATTR(ib_port_info_get_mtu_cap(info),
			rsm_rate_place(ib_port_info_compute_rate(
				info, capable->capability_mask & IB_PORT_CAP_HAS_EXT_SPEEDS)));
}

/* Where a switch is in the network: OpenSM has no place for a number of ours in it. */
struct place {
	const osm_switch_t *sw;
	int32_t index;
};

static int by_address(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	return one->sw < other->sw ? -1 : one->sw > other->sw;
}

static int32_t index_of(const struct place *places, uint32_t n, const osm_switch_t *sw)
{
	struct place wanted = { .sw = sw };
	struct place *found = bsearch(&wanted, places, n, sizeof(*places), by_address);

	return found ? found->index : -1;
}

static void fill_link(const struct place *places, uint32_t n, const osm_physp_t *port,
		      struct rsm_link *link)
{
	osm_physp_t *behind = osm_physp_get_remote(port);

	*link = (struct rsm_link) { .peer = RSM_LINK_NONE };
	if (!behind)
		return;
	link->attr = rsm_attr_least(attr_of(port), attr_of(behind));
	if (behind->p_node->sw) {
		link->peer = index_of(places, n, behind->p_node->sw);
	} else {
		link->peer = RSM_LINK_END;
		link->lid = cl_ntoh16(osm_physp_get_base_lid(behind));
	}
}

static int fill_switch(const struct place *places, uint32_t n, const osm_switch_t *sw,
		       bool computed, struct rsm_net_switch *out)
{
	*out = (struct rsm_net_switch) {
		.guid = osm_node_get_node_guid(sw->p_node),
		.lft = computed ? sw->new_lft : sw->lft,
		.n_lft = sw->lft_size,
		.n_ports = sw->num_ports,
		.links = calloc(sw->num_ports, sizeof(*out->links)),
	};
	if (!out->links)
		return -ENOMEM;
	if (!out->lft)
		out->n_lft = 0;
	out->links[0].peer = RSM_LINK_NONE;
	for (int i = 1; i < sw->num_ports; i++) {
		osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, i);

		out->links[i].peer = RSM_LINK_NONE;
		if (port)
			fill_link(places, n, port, &out->links[i]);
	}
	return 0;
}

static int fill_switches(osm_subn_t *subn, struct place *places, bool computed,
			 struct rsm_net *net)
{
	cl_qmap_t *map = &subn->sw_guid_tbl;
	uint32_t n = 0;
	int rc = 0;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i), n++)
		places[n] = (struct place) { (osm_switch_t *)i, n };
	qsort(places, n, sizeof(*places), by_address);
	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map) && !rc; i = cl_qmap_next(i))
		rc = fill_switch(places, n, (osm_switch_t *)i, computed,
				 &net->switches[net->n_switches++]);
	return rc;
}

static bool lends(struct rsm *rsm, const osm_port_t *port)
{
	struct rsm_place place;

	return rsm->opt.vswitch != RSM_VSWITCH_OFF && rsm_place_of(port, &place) &&
	       rsm_place_is_vf(rsm, &place);
}

/* Ports of hosts and routers that have a LID and are cabled to a switch. */
static void fill_ends(struct rsm *rsm, const struct place *places, struct rsm_net *net)
{
	cl_qmap_t *map = &rsm->osm->subn.port_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_port_t *port = (osm_port_t *)i;
		osm_physp_t *behind = osm_physp_get_remote(port->p_physp);
		uint16_t lid = cl_ntoh16(osm_port_get_base_lid(port));
		uint32_t n_lids = 1u << osm_port_get_lmc(port);
		int32_t leaf;

		if (port->p_node->sw || !lid || lid + n_lids > IB_LID_UCAST_END_HO + 1u || !behind ||
		    !behind->p_node->sw)
			continue;
		leaf = index_of(places, net->n_switches, behind->p_node->sw);
		if (leaf < 0)
			continue;
		net->ends[net->n_ends++] = (struct rsm_net_end) {
			.guid = port->guid,
			.lid = lid,
			.n_lids = n_lids,
			.lends = lends(rsm, port),
			.leaf = leaf,
			.attr = rsm_attr_least(attr_of(port->p_physp), attr_of(behind)),
		};
		if (lid + n_lids - 1 > net->max_lid)
			net->max_lid = lid + n_lids - 1;
	}
}

static uint8_t path_sl(void *context, uint16_t slid, uint16_t dlid)
{
	struct osm_routing_engine *engine = context;

	return engine->path_sl(engine->context, OSM_DEFAULT_SL, cl_hton16(slid), cl_hton16(dlid));
}

static enum rsm_lanes lanes_of(const struct rsm *rsm, const struct osm_routing_engine *engine)
{
	if (!engine || !engine->path_sl)
		return RSM_LANES_NONE;
	if (rsm_over_wanted(rsm, engine))
		return RSM_LANES_PORT;
	if (engine->type == OSM_ROUTING_ENGINE_TYPE_LASH ||
	    engine->type == OSM_ROUTING_ENGINE_TYPE_TORUS_2QOS || rsm_router_by_switch(engine))
		return RSM_LANES_SWITCH;
	return RSM_LANES_PORT;
}

/**
 * rsm_view_make - look at OpenSM's subnet
 * @rsm: the plugin
 * @engine: that has routed
 * @computed: the tables that are computed and not set yet, not those that are set
 * @net: filled in; it points into OpenSM's tables
 *
 * OpenSM's lock is held, and until rsm_view_free().
 */
int rsm_view_make(struct rsm *rsm, struct osm_routing_engine *engine, bool computed,
		  struct rsm_net *net)
{
	osm_subn_t *subn = &rsm->osm->subn;
	size_t n_switches = cl_qmap_count(&subn->sw_guid_tbl);
	struct place *places = calloc(n_switches + 1, sizeof(*places));
	int rc;

	*net = (struct rsm_net) {
		.switches = calloc(n_switches + 1, sizeof(*net->switches)),
		.ends = calloc(cl_qmap_count(&subn->port_guid_tbl) + 1, sizeof(*net->ends)),
		.lanes = lanes_of(rsm, engine),
		.sl = path_sl,
		.context = engine,
	};
	if (rsm->opt.sm_sl && net->lanes != RSM_LANES_NONE) {
		net->sm_lid = cl_ntoh16(subn->sm_base_lid);
		net->sm_sl = subn->opt.sm_sl;
	}
	rc = places && net->switches && net->ends ? 0 : -ENOMEM;
	rc = rc ?: fill_switches(subn, places, computed, net);
	if (!rc)
		fill_ends(rsm, places, net);
	else
		rsm_view_free(net);
	free(places);
	return rc;
}

/** rsm_view_free - what rsm_view_make() made */
void rsm_view_free(struct rsm_net *net)
{
	for (uint32_t i = 0; i < net->n_switches; i++)
		free(net->switches[i].links);
	free(net->switches);
	free(net->ends);
	*net = (struct rsm_net) { 0 };
}
