// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include <opensm/osm_inform.h>
#include <opensm/osm_pkey.h>

#include "plugin.h"
#include "subscribers.h"
#include "repath_sm.h"

/* The rules of IBA 1.2.1 vol 1, 13.4.8.3 (InformInfo), as far as our notices can differ in them. */
static bool wants(const ib_inform_info_t *info, uint16_t trap, uint16_t sm_lid)
{
	uint16_t type = cl_ntoh16(info->trap_type), number = cl_ntoh16(info->g_or_v.generic.trap_num);
	uint32_t producer = cl_ntoh32(ib_inform_info_get_prod_type(info));
	uint16_t first = cl_ntoh16(info->lid_range_begin), last = cl_ntoh16(info->lid_range_end);

	return info->is_generic && (type == 0xffff || type == (REPATH_SM_TYPE & 0x7f)) &&
	       (number == 0xffff || number == trap) &&
	       (producer == 0xffffff || producer == REPATH_SM_PRODUCER) &&
	       (first == 0xffff || (first <= sm_lid && sm_lid <= last));
}

static int by_address(const void *a, const void *b)
{
	const struct rsm_subscriber *one = a, *other = b;

	if (one->lid != other->lid)
		return one->lid < other->lid ? -1 : 1;
	return memcmp(&one->address.addr_type.gsi.remote_qp,
		      &other->address.addr_type.gsi.remote_qp,
		      sizeof(one->address.addr_type.gsi.remote_qp));
}

/* A host may have subscribed to the two traps one by one: that is one subscriber. */
static size_t unite(struct rsm_subscriber *all, size_t n)
{
	size_t kept = 0;

	qsort(all, n, sizeof(*all), by_address);
	for (size_t i = 0; i < n; i++) {
		if (kept && !by_address(&all[kept - 1], &all[i])) {
			all[kept - 1].unpath |= all[i].unpath;
			all[kept - 1].repath |= all[i].repath;
		} else {
			all[kept++] = all[i];
		}
	}
	return kept;
}

/* Reports take the lane that the routing now has for this path, not that of the subscription. */
static void set_lane(struct rsm *rsm, struct rsm_subscriber *subscriber)
{
	struct osm_routing_engine *engine = rsm->osm->routing_engine_used;

	if (engine && engine->path_sl)
		subscriber->address.addr_type.gsi.service_level =
			engine->path_sl(engine->context, 0, rsm->osm->subn.sm_base_lid,
					cl_hton16(subscriber->lid));
}

/**
 * rsm_subscribers - copy the list
 * @rsm: the plugin
 * @lock: what the caller has; while tables are being computed lanes are those of the subscriptions
 * @n: how many there are
 *
 * Return: an array by ascending LID, to be freed, or NULL: there are none, or no memory.
 */
struct rsm_subscriber *rsm_subscribers(struct rsm *rsm, enum rsm_lock lock, size_t *n)
{
	osm_subn_t *subn = &rsm->osm->subn;
	struct rsm_subscriber *all = NULL;
	uint16_t sm_lid;
	osm_port_t *sm;

	*n = 0;
	if (lock == RSM_UNLOCKED)
		CL_PLOCK_ACQUIRE(&rsm->osm->lock);
	sm_lid = cl_ntoh16(subn->sm_base_lid);
	sm = osm_get_port_by_guid(subn, subn->sm_port_guid);
	if (sm && cl_qlist_count(&subn->sa_infr_list))
		all = calloc(cl_qlist_count(&subn->sa_infr_list), sizeof(*all));
	for (cl_list_item_t *i = cl_qlist_head(&subn->sa_infr_list);
	     all && i != cl_qlist_end(&subn->sa_infr_list); i = cl_qlist_next(i)) {
		osm_infr_t *infr = (osm_infr_t *)i;
		const ib_inform_info_t *info = &infr->inform_record.inform_info;
		osm_port_t *port = osm_get_port_by_lid(subn, infr->report_addr.dest_lid);
		struct rsm_subscriber found = {
			.address = infr->report_addr,
			.lid = cl_ntoh16(infr->report_addr.dest_lid),
			.unpath = wants(info, REPATH_SM_UNPATH, sm_lid),
			.repath = wants(info, REPATH_SM_REPATH, sm_lid),
		};

		if (!port || (!found.unpath && !found.repath) ||
		    !osm_port_share_pkey(&rsm->osm->log, sm, port, subn->opt.allow_both_pkeys))
			continue;
		if (lock != RSM_COMPUTING)
			set_lane(rsm, &found);
		all[(*n)++] = found;
	}
	if (lock == RSM_UNLOCKED)
		CL_PLOCK_RELEASE(&rsm->osm->lock);
	if (all)
		*n = unite(all, *n);
	return all;
}
