// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * While a fabric comes up, tables are computed before links have the VLs that they will have. So it
 * counts what both ports are capable of and what OpenSM may use (its option max_op_vls): that is
 * what it sets them to.
 */
#include <errno.h>
#include <stdlib.h>

#include "plugin.h"
#include "receipts.h"
#include "topo_view.h"

#include <opensm/osm_node.h>
#include <opensm/osm_partition.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

/* Data VLs by PortInfo:VLCap, IBA 14.2.5.6. */
static uint8_t link_vls(const osm_subn_t *subn, const osm_physp_t *port, const osm_physp_t *behind)
{
	static const uint8_t vls[] = { 1, 1, 2, 4, 8, 15 };
	uint8_t cap = ib_port_info_get_vl_cap(&port->port_info);

	if (ib_port_info_get_vl_cap(&behind->port_info) < cap)
		cap = ib_port_info_get_vl_cap(&behind->port_info);
	if (cap > subn->opt.max_op_vls)
		cap = subn->opt.max_op_vls;
	return cap < sizeof(vls) ? vls[cap] : 15;
}

/* Hosts and routers that have a LID and are cabled to a switch. */
static int fill_ends(struct rsm *rsm, struct rsm_topo *topo)
{
	osm_subn_t *subn = &rsm->osm->subn;
	cl_qmap_t *map = &subn->port_guid_tbl;

	topo->ends = calloc(cl_qmap_count(map) + 1, sizeof(*topo->ends));
	if (!topo->ends)
		return -ENOMEM;
	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_port_t *port = (osm_port_t *)i;
		osm_physp_t *behind = osm_physp_get_remote(port->p_physp);
		uint16_t lid = cl_ntoh16(osm_port_get_base_lid(port));
		uint32_t n_lids = 1u << osm_port_get_lmc(port);

		if (port->p_node->sw || !lid || lid + n_lids > IB_LID_UCAST_END_HO + 1u || !behind ||
		    !behind->p_node->sw)
			continue;
		topo->ends[topo->n_ends++] = (struct rsm_topo_end) {
			.guid = cl_ntoh64(port->guid),
			.name = port->p_node->print_desc,
			.lid = lid,
			.n_lids = n_lids,
			.leaf_port = osm_physp_get_port_num(behind),
			.vls = link_vls(subn, port->p_physp, behind),
			.received = rsm_received(rsm, cl_ntoh64(osm_node_get_node_guid(behind->p_node)),
						 osm_physp_get_port_num(behind)),
		};
		if (lid + n_lids - 1 > topo->max_lid)
			topo->max_lid = lid + n_lids - 1;
	}
	return 0;
}

static int fill_switches(osm_subn_t *subn, struct rsm_topo *topo)
{
	cl_qmap_t *map = &subn->sw_guid_tbl;

	topo->switches = calloc(cl_qmap_count(map) + 1, sizeof(*topo->switches));
	if (!topo->switches)
		return -ENOMEM;
	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_switch_t *sw = (osm_switch_t *)i;
		struct rsm_topo_switch *to = &topo->switches[topo->n_switches++];
		uint16_t lid = cl_ntoh16(osm_node_get_base_lid(sw->p_node, 0));

		*to = (struct rsm_topo_switch) {
			.guid = cl_ntoh64(osm_node_get_node_guid(sw->p_node)),
			.name = sw->p_node->print_desc,
			.n_ports = sw->num_ports,
			.ports = calloc(sw->num_ports, sizeof(*to->ports)),
		};
		if (!to->ports)
			return -ENOMEM;
		/* OpenSM takes it as it is from the answer to a Set. */
		if (lid <= IB_LID_UCAST_END_HO)
			to->lid = lid;
		if (to->lid > topo->max_lid)
			topo->max_lid = to->lid;
	}
	return 0;
}

static void fill_link(osm_subn_t *subn, struct rsm_topo *topo, osm_physp_t *port,
		      struct rsm_topo_port *to)
{
	osm_physp_t *behind = port ? osm_physp_get_remote(port) : NULL;

	to->peer = RSM_TOPO_NONE;
	to->end = -1;
	if (!behind)
		return;
	to->vls = link_vls(subn, port, behind);
	to->peer_port = osm_physp_get_port_num(behind);
	if (behind->p_node->sw) {
		to->peer = rsm_topo_switch_index(topo,
						 cl_ntoh64(osm_node_get_node_guid(behind->p_node)));
		if (to->peer >= 0 && to->vls < topo->vls)
			topo->vls = to->vls;
		return;
	}
	to->end = rsm_topo_end_index(topo, cl_ntoh64(osm_physp_get_port_guid(behind)));
	if (to->end >= 0)
		to->peer = RSM_TOPO_END;
}

static void fill_links(osm_subn_t *subn, struct rsm_topo *topo)
{
	/* Without QoS OpenSM sets no SLtoVL tables. */
	topo->vls = subn->opt.qos ? 15 : 1;
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		struct rsm_topo_switch *sw = &topo->switches[i];
		osm_switch_t *from = osm_get_switch_by_guid(subn, cl_hton64(sw->guid));

		sw->ports[0].peer = RSM_TOPO_NONE;
		sw->ports[0].end = -1;
		for (unsigned int port = 1; port < sw->n_ports; port++) {
			fill_link(subn, topo, osm_node_get_physp_ptr(from->p_node, port),
				  &sw->ports[port]);
			if (sw->ports[port].peer == RSM_TOPO_END)
				topo->ends[sw->ports[port].end].leaf = i;
		}
	}
}

/* Who is a full and a limited member is a full one. */
static void fill_members(const struct rsm_topo *topo, struct rsm_topo_partition *to,
			 const osm_prtn_t *from, bool full)
{
	const cl_map_t *guids = full ? &from->full_guid_tbl : &from->part_guid_tbl;

	for (cl_map_iterator_t i = cl_map_head(guids); i != cl_map_end(guids); i = cl_map_next(i)) {
		ib_net64_t guid = osm_physp_get_port_guid((osm_physp_t *)cl_map_obj(i));
		int32_t end = rsm_topo_end_index(topo, cl_ntoh64(guid));

		if (end >= 0 && (full || !cl_map_get(&from->full_guid_tbl, guid)))
			to->members[to->n_members++] = (struct rsm_topo_member) { end, full };
	}
}

static int by_pkey(const void *a, const void *b)
{
	const struct rsm_topo_partition *one = a, *other = b;

	return (int)one->pkey - (int)other->pkey;
}

/* As OpenSM's partition manager has them. */
static int fill_partitions(osm_subn_t *subn, struct rsm_topo *topo)
{
	cl_qmap_t *map = &subn->prtn_pkey_tbl;

	topo->partitions = calloc(cl_qmap_count(map) + 1, sizeof(*topo->partitions));
	if (!topo->partitions)
		return -ENOMEM;
	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_prtn_t *from = (osm_prtn_t *)i;
		struct rsm_topo_partition *to = &topo->partitions[topo->n_partitions++];

		to->pkey = cl_ntoh16(from->pkey) & 0x7fff;
		to->name = from->name;
		to->members = calloc(cl_map_count(&from->full_guid_tbl) +
					     cl_map_count(&from->part_guid_tbl) + 1,
				     sizeof(*to->members));
		if (!to->members)
			return -ENOMEM;
		fill_members(topo, to, from, true);
		fill_members(topo, to, from, false);
	}
	qsort(topo->partitions, topo->n_partitions, sizeof(*topo->partitions), by_pkey);
	return 0;
}

/**
 * rsm_topo_of_subnet - look at OpenSM's subnet
 * @rsm: the plugin
 * @topo: filled in; for rsm_topo_free()
 *
 * OpenSM's lock is held.
 * Return: 0 or -ENOMEM.
 */
int rsm_topo_of_subnet(struct rsm *rsm, struct rsm_topo *topo)
{
	osm_subn_t *subn = &rsm->osm->subn;
	int rc;

	*topo = (struct rsm_topo) { 0 };
	rc = fill_ends(rsm, topo) ?: fill_switches(subn, topo);
	if (rc) {
		rsm_topo_free(topo);
		return rc;
	}
	rsm_topo_sort(topo);
	rc = fill_partitions(subn, topo);
	if (rc) {
		rsm_topo_free(topo);
		return rc;
	}
	fill_links(subn, topo);
	return 0;
}

/**
 * rsm_topo_new_tables - those that an engine has computed, and that are not set yet
 * @rsm: the plugin
 * @topo: the fabric
 * @lft: filled in by the switch's index
 *
 * OpenSM's lock is held.
 * Return: 0, or -ENOENT: a switch has none for the highest LID.
 */
int rsm_topo_new_tables(struct rsm *rsm, const struct rsm_topo *topo, uint8_t **lft)
{
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		osm_switch_t *sw = osm_get_switch_by_guid(&rsm->osm->subn,
							  cl_hton64(topo->switches[i].guid));

		if (!sw || !sw->new_lft || sw->lft_size <= topo->max_lid)
			return -ENOENT;
		lft[i] = sw->new_lft;
	}
	return 0;
}

/**
 * rsm_topo_way_out - whose SLtoVL table it is, as struct rsm_routes names them
 * @topo: the fabric
 * @port: of a switch, or of a host
 * @out: port by which packets leave the switch
 * @sw: the switch's index; -1: a host's
 * @to: @out; of a host: index of the end
 *
 * Return: false if it is nobody's in @topo.
 */
bool rsm_topo_way_out(const struct rsm_topo *topo, const osm_physp_t *port, uint8_t out, int32_t *sw,
		      uint32_t *to)
{
	int32_t end;

	*sw = -1;
	*to = out;
	if (port->p_node->sw) {
		*sw = rsm_topo_switch_index(topo, cl_ntoh64(osm_node_get_node_guid(port->p_node)));
		return *sw >= 0;
	}
	end = rsm_topo_end_index(topo, cl_ntoh64(osm_physp_get_port_guid(port)));
	*to = end;
	return end >= 0;
}
