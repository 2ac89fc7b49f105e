// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A second plugin for OpenSM, by which ports get other LIDs while it runs: what it remembers of them is changed
 * when a heavy sweep begins, and OpenSM does the rest. $OTHER_LIDS names a file with a GUID and a LID in each
 * line, which is read once and removed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <opensm/osm_config.h>
#include <opensm/osm_db_pack.h>
#include <opensm/osm_event_plugin.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_version.h>

static void *create(osm_opensm_t *osm)
{
	return osm;
}

static void destroy(void *osm)
{
	(void)osm;
}

/* Two may change places: first nobody has any of them. */
static void remember(osm_lid_mgr_t *mgr, FILE *file)
{
	uint16_t first, last, lid;
	uint64_t guid;

	while (fscanf(file, "%" SCNx64 " %" SCNu16, &guid, &lid) == 2) {
		if (!osm_db_guid2lid_get(mgr->p_g2l, guid, &first, &last))
			mgr->used_lids[first] = 0;
	}
	rewind(file);
	while (fscanf(file, "%" SCNx64 " %" SCNu16, &guid, &lid) == 2) {
		osm_db_guid2lid_set(mgr->p_g2l, guid, lid, lid);
		mgr->used_lids[lid] = 1;
	}
}

static void report(void *context, osm_epi_event_id_t id, void *data)
{
	const char *path = getenv("OTHER_LIDS");
	osm_opensm_t *osm = context;
	FILE *file;

	(void)data;
	file = id == OSM_EVENT_ID_HEAVY_SWEEP_START && path ? fopen(path, "r") : NULL;
	if (!file)
		return;
	CL_PLOCK_EXCL_ACQUIRE(&osm->lock);
	remember(&osm->sm.lid_mgr, file);
	CL_PLOCK_RELEASE(&osm->lock);
	fclose(file);
	unlink(path);
}

osm_event_plugin_t osm_event_plugin = { OSM_VERSION, create, destroy, report };
