// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "place.h"
#include "plugin.h"
#include "vm_answer.h"
#include "vm_learn.h"
#include "vm_list.h"
#include "vm_socket.h"

#define A_LINE	8

/**
 * rsm_vm_list - some VMs by their GUIDs, with their LIDs and places
 * @rsm: the plugin; OpenSM's lock is held
 * @who: gets the answer
 * @after: the GUID that was the last in the answer before; NULL: the first of all
 */
void rsm_vm_list(struct rsm *rsm, uint32_t who, const char *after)
{
	cl_qmap_t *table = &rsm->osm->subn.alias_port_guid_tbl;
	char text[RSM_VM_ANSWER];
	unsigned int n = 0, used = 0;
	cl_map_item_t *i = after ? cl_qmap_get_next(table, cl_hton64(strtoull(after, NULL, 0))) :
				   cl_qmap_head(table);

	for (; i != cl_qmap_end(table) && n < A_LINE; i = cl_qmap_next(i)) {
		const osm_alias_guid_t *alias = (osm_alias_guid_t *)i;
		const osm_port_t *port = alias->p_base_port;
		struct rsm_place place;

		if (alias->alias_guid == port->guid || !rsm_place_of(port, &place))
			continue;
		used += snprintf(text + used, sizeof(text) - used,
				 "%s{\"guid\":\"0x%016" PRIx64 "\",\"lid\":%u,\"at\":\"0x%016" PRIx64 "/%u\"}",
				 n++ ? "," : "", cl_ntoh64(alias->alias_guid),
				 cl_ntoh16(osm_port_get_base_lid(port)), place.sw, place.port);
	}
	text[used] = '\0';
	if (i == cl_qmap_end(table))
		rsm_vm_answer(who, "{\"vms\":[%s],\"more\":false,\"silent\":%u}", text, rsm_vm_unknown(rsm));
	else
		rsm_vm_answer(who, "{\"vms\":[%s],\"more\":true}", text);
}
