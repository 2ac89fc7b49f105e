// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "place.h"
#include "plugin.h"

#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

/** rsm_is_vswitch - whether a switch is the inside of an HCA, by its name */
bool rsm_is_vswitch(struct rsm *rsm, const osm_switch_t *sw)
{
	return *rsm->opt.vswitch_name && sw->p_node->print_desc &&
	       strstr(sw->p_node->print_desc, rsm->opt.vswitch_name);
}

/**
 * rsm_place_of - where a host's port is
 * @port: of a host
 * @place: filled in
 *
 * Return: false if it is at no switch.
 */
bool rsm_place_of(const osm_port_t *port, struct rsm_place *place)
{
	osm_physp_t *behind = osm_physp_get_remote(port->p_physp);

	if (port->p_node->sw || !behind || !behind->p_node->sw)
		return false;
	memset(place, 0, sizeof(*place));
	place->sw = cl_ntoh64(osm_node_get_node_guid(behind->p_node));
	place->port = osm_physp_get_port_num(behind);
	return true;
}

static osm_port_t *end_behind(struct rsm *rsm, osm_switch_t *sw, uint8_t number)
{
	osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, number);
	osm_physp_t *behind = port ? osm_physp_get_remote(port) : NULL;

	if (!behind || behind->p_node->sw)
		return NULL;
	return osm_get_port_by_guid(&rsm->osm->subn, osm_physp_get_port_guid(behind));
}

/** rsm_place_port - who is there; NULL: nobody */
osm_port_t *rsm_place_port(struct rsm *rsm, const struct rsm_place *place)
{
	osm_switch_t *sw = osm_get_switch_by_guid(&rsm->osm->subn, cl_hton64(place->sw));

	return sw && place->port < sw->num_ports ? end_behind(rsm, sw, place->port) : NULL;
}

/** rsm_place_pf - the hypervisor's port at a vSwitch: the first; NULL: there is none */
osm_port_t *rsm_place_pf(struct rsm *rsm, uint64_t guid)
{
	osm_switch_t *sw = osm_get_switch_by_guid(&rsm->osm->subn, cl_hton64(guid));
	osm_port_t *port = NULL;

	for (unsigned int i = 1; sw && i < sw->num_ports && !port; i++)
		port = end_behind(rsm, sw, i);
	return port;
}

/** rsm_place_is_vf - whether it is at a vSwitch and not the hypervisor's own */
bool rsm_place_is_vf(struct rsm *rsm, const struct rsm_place *place)
{
	osm_switch_t *sw = osm_get_switch_by_guid(&rsm->osm->subn, cl_hton64(place->sw));
	struct rsm_place first;
	osm_port_t *pf;

	if (!sw || !rsm_is_vswitch(rsm, sw))
		return false;
	pf = rsm_place_pf(rsm, place->sw);
	return pf && rsm_place_of(pf, &first) && first.port < place->port;
}

/** rsm_place_is - whether two are the same */
bool rsm_place_is(const struct rsm_place *a, const struct rsm_place *b)
{
	return a->sw == b->sw && a->port == b->port;
}
