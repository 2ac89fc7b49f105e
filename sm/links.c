// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "links.h"
#include "plugin.h"

#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

static bool is_waiting(const osm_physp_t *port)
{
	uint8_t state = osm_physp_get_port_state(port);

	return state == IB_LINK_INIT || state == IB_LINK_ARMED;
}

static bool leads(const struct rsm *rsm, const osm_switch_t *sw, uint8_t port,
		  bool (*is_news)(const struct rsm *rsm, uint16_t lid))
{
	const uint8_t *at = sw->lft;

	while (at && (at = memchr(at, port, sw->lft + sw->lft_size - at))) {
		if (is_news(rsm, at - sw->lft))
			return true;
		at++;
	}
	return false;
}

/**
 * rsm_links_wait - whether tables lead to somebody by a link that is up, and not active yet
 * @rsm: the plugin
 * @is_news: whether the way to a LID counts
 */
bool rsm_links_wait(const struct rsm *rsm, bool (*is_news)(const struct rsm *rsm, uint16_t lid))
{
	const cl_qmap_t *map = &rsm->osm->subn.sw_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		const osm_switch_t *sw = (osm_switch_t *)i;

		for (uint8_t n = 1; n < sw->num_ports; n++) {
			const osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, n);
			const osm_physp_t *behind = port ? osm_physp_get_remote(port) : NULL;

			/* OpenSM sets nothing at a port of which it has not been told. */
			if (behind && osm_physp_is_valid(behind) && (is_waiting(port) || is_waiting(behind)) && leads(rsm, sw, n, is_news))
				return true;
		}
	}
	return false;
}
