// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * VMs that move with their GUID, from OpenSM's table of alias GUIDs to the hosts. OpenSM says nothing
 * when an alias GUID is set or deleted: its table is looked at now and then. A GUID that is deleted and
 * set between two looks is at another port in the second one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <opensm/osm_sa.h>

#include "moves.h"
#include "plugin.h"
#include "signal.h"
#include "vm_jobs.h"
#include "subscribers.h"

/**
 * struct rsm_guids - what is known of alias GUIDs; only the plugin's thread looks at it
 * @moves: see moves.h
 * @next: when the table is looked at again, in milliseconds
 * @told: notices
 */
struct rsm_guids {
	struct moves *moves;
	uint64_t next;
	unsigned long long told;
};

struct found {
	uint64_t guid;
	uint16_t lid;
};

/* All alias GUIDs, to be freed; NULL without memory. */
static struct found *look(struct rsm *rsm, size_t *n)
{
	cl_qmap_t *table = &rsm->osm->subn.alias_port_guid_tbl;
	struct found *all;

	*n = 0;
	CL_PLOCK_ACQUIRE(&rsm->osm->lock);
	all = malloc((cl_qmap_count(table) + 1) * sizeof(*all));
	for (cl_map_item_t *i = cl_qmap_head(table); all && i != cl_qmap_end(table);
	     i = cl_qmap_next(i)) {
		const osm_alias_guid_t *alias = (osm_alias_guid_t *)i;
		uint16_t lid = cl_ntoh16(osm_port_get_base_lid(alias->p_base_port));

		/* A port's own GUID is there, too; and one without a LID is nowhere yet. */
		if (alias->alias_guid != alias->p_base_port->guid && lid)
			all[(*n)++] = (struct found) { cl_ntoh64(alias->alias_guid), lid };
	}
	CL_PLOCK_RELEASE(&rsm->osm->lock);
	return all;
}

/* The record of the path from a subscriber's port, as the SA would give it. */
static bool fill(struct rsm *rsm, uint16_t from, struct rsm_notice *notice)
{
	osm_subn_t *subn = &rsm->osm->subn;
	uint16_t to = cl_ntoh16(notice->path.dlid);
	osm_path_parms_t found;
	osm_port_t *a, *b;
	bool ok;

	CL_PLOCK_ACQUIRE(&rsm->osm->lock);
	a = osm_get_port_by_lid_ho(subn, from);
	b = osm_get_port_by_lid_ho(subn, to);
	memset(&found, 0, sizeof(found));
	ok = a && b && !osm_get_path_params(&rsm->osm->sa, a, from, b, to, &found);
	CL_PLOCK_RELEASE(&rsm->osm->lock);
	if (!ok)
		return false;
	notice->mask = REPATH_SM_MASK_DGID | REPATH_SM_MASK_DLID | REPATH_SM_MASK_PKEY |
		       REPATH_SM_MASK_SL | REPATH_SM_MASK_MTU | REPATH_SM_MASK_RATE |
		       REPATH_SM_MASK_LIFE;
	notice->path.pkey = found.pkey;
	notice->path.qos_class_sl = cl_hton16(found.sl);
	notice->path.mtu = REPATH_SM_EXACTLY | found.mtu;
	notice->path.rate = REPATH_SM_EXACTLY | found.rate;
	notice->path.pkt_life = REPATH_SM_EXACTLY | found.pkt_life;
	return true;
}

/* One notice for each port that has subscribed, with the path that it has to the new place. */
static void tell(void *context, uint64_t guid, uint16_t old, uint16_t lid)
{
	struct rsm *rsm = context;
	ib_gid_t gid = { .unicast = { rsm->osm->subn.opt.subnet_prefix, cl_hton64(guid) } };
	struct rsm_subscriber *all;
	unsigned int told = 0;
	size_t n;

	all = rsm_subscribers(rsm, RSM_UNLOCKED, &n);
	for (size_t i = 0; i < n; i++) {
		struct rsm_notice notice = {
			.trap = REPATH_SM_REPATH,
			.flags = REPATH_SM_MOVED,
			.serial = rsm->serial,
			.mask = REPATH_SM_MASK_DGID | REPATH_SM_MASK_DLID,
			.path = { .dlid = cl_hton16(lid), .num_path = 0x80 },
		};

		if (i && all[i].lid == all[i - 1].lid)
			continue;
		memcpy(notice.path.dgid, &gid, sizeof(notice.path.dgid));
		/* Without a path there, the address alone is still true. */
		fill(rsm, all[i].lid, &notice);
		told += rsm_signal_port(rsm, all[i].lid, &notice);
	}
	free(all);
	rsm->guids->told += told;
	rsm_log(rsm, OSM_LOG_INFO, "GUID 0x%016llx has moved from LID %u to LID %u: %u hosts told",
		(unsigned long long)guid, old, lid, told);
}

static uint64_t guids_tick(struct rsm *rsm, uint64_t now)
{
	struct rsm_guids *guids = rsm->guids;
	struct found *all;
	size_t n;

	if (!guids)
		return RSM_NEVER;
	if (now < guids->next)
		return guids->next;
	guids->next = now + rsm->opt.moves_interval;
	/* Before the first sweep and beside another SM the table is empty, and that means nothing. */
	if (!rsm_vms_up(rsm))
		return guids->next;
	all = look(rsm, &n);
	if (!all)
		return guids->next;
	if (n)
		rsm_signal_refresh(rsm, RSM_UNLOCKED);
	for (size_t i = 0; i < n; i++)
		moves_set(guids->moves, all[i].guid, all[i].lid, now * 1000000, tell, rsm);
	moves_all_set(guids->moves, now * 1000000);
	free(all);
	rsm_signal_push(rsm);
	return guids->next;
}

static void guids_status(struct rsm *rsm, FILE *out)
{
	struct moves_counts c;

	if (!rsm->guids) {
		fprintf(out, "null");
		return;
	}
	c = *moves_counts(rsm->guids->moves);
	fprintf(out, "{\"present\":%u,\"absent\":%u,\"boots\":%llu,\"reboots\":%llu,\"moves\":%llu,"
		"\"forgotten\":%llu,\"notices\":%llu}",
		c.present, c.absent, (unsigned long long)c.boots, (unsigned long long)c.reboots,
		(unsigned long long)c.moves, (unsigned long long)c.forgotten, rsm->guids->told);
}

static int guids_start(struct rsm *rsm)
{
	struct rsm_guids *guids;

	if (!rsm->opt.moves_interval)
		return 0;
	guids = calloc(1, sizeof(*guids));
	if (!guids)
		return -ENOMEM;
	guids->moves = moves_new(rsm->opt.moves_keep * 1000000000ull, rsm->opt.moves_limit);
	if (!guids->moves) {
		free(guids);
		return -ENOMEM;
	}
	rsm->guids = guids;
	return 0;
}

static void guids_stop(struct rsm *rsm)
{
	if (!rsm->guids)
		return;
	moves_free(rsm->guids->moves);
	free(rsm->guids);
	rsm->guids = NULL;
}

const struct rsm_part rsm_guids_part = {
	.name = "moves",
	.start = guids_start,
	.stop = guids_stop,
	.tick = guids_tick,
	.status = guids_status,
};
