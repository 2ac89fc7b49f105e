// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hot spots, from OpenSM's performance manager to the hosts: its readings go to hotspot.c, and what
 * that says goes out as notices.
 *
 * OpenSM does not say when its sweep is over: it is when no reading has come for a while.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "congestion.h"
#include "hotspot.h"
#include "method.h"
#include "plugin.h"
#include "signal.h"
#include "slow_lane.h"
#include "topo_view.h"

#define QUIET	100	/* milliseconds without a reading that end a sweep */

/**
 * struct rsm_congestion - what is known of hot spots
 * @mutex: for all below; no lock of OpenSM is taken while it is held
 * @hotspot: see hotspot.h
 * @last: when the last reading came, in milliseconds; 0: none since the last sweep
 * @rewired: the links are to be read again
 * @loops: paths in one lane can wait for one another in a circle: hot spots are not looked for
 */
struct rsm_congestion {
	pthread_mutex_t mutex;
	struct hotspot *hotspot;
	uint64_t last;
	bool rewired;
	bool loops;
};

/**
 * struct told - who was told of lanes in a sweep
 * @rsm: the plugin
 * @pairs: the hot spot, and the contributor
 * @n: of them
 * @room: for them
 */
struct told {
	struct rsm *rsm;
	uint16_t (*pairs)[2];
	uint32_t n, room;
};

/* Without memory the hot spot does not hear of it, which matters where devices only migrate. */
static void note(struct told *told, uint16_t hot, uint16_t to)
{
	if (told->n == told->room) {
		uint32_t room = told->room * 2 + 64;
		void *more = realloc(told->pairs, room * sizeof(*told->pairs));

		if (!more)
			return;
		told->pairs = more;
		told->room = room;
	}
	told->pairs[told->n][0] = hot;
	told->pairs[told->n++][1] = to;
}

static bool tell(void *context, enum hotspot_lane lane, uint16_t hot, uint16_t to)
{
	struct told *told = context;
	struct rsm *rsm = told->rsm;
	struct rsm_notice notice = {
		.trap = lane == HOTSPOT_SLOW ? REPATH_SM_REPATH : REPATH_SM_UNPATH,
		.flags = REPATH_SM_LANE,
		.serial = rsm->serial,
		.mask = REPATH_SM_MASK_DLID,
		.path.dlid = cl_hton16(hot),
	};

	if (lane == HOTSPOT_SLOW) {
		notice.mask |= REPATH_SM_MASK_SL;
		notice.path.qos_class_sl = cl_hton16(rsm->opt.slow_sl);
	}
	if (!rsm_signal_port(rsm, to, &notice))
		return false;
	note(told, hot, to);
	rsm_log(rsm, OSM_LOG_VERBOSE, "hot spot LID %u%s: LID %u to use the %s lane", hot,
		lane == HOTSPOT_SLOW ? "" : " is over", to, lane == HOTSPOT_SLOW ? "slow" : "fast");
	return true;
}

/* The other ends. None of the locks here is held: who has OpenSM's waits for them. */
static void tell_other_ends(struct told *told)
{
	if (!told->n)
		return;
	CL_PLOCK_ACQUIRE(&told->rsm->osm->lock);
	for (uint32_t i = 0; i < told->n; i++)
		rsm_method_way_back(told->rsm, told->pairs[i][0], told->pairs[i][1]);
	CL_PLOCK_RELEASE(&told->rsm->osm->lock);
	free(told->pairs);
}

/* Data, Mbit/s, of one lane: IBA 1.2.1 vol 1, 14.2.5.6, and the extended speeds of 1.3. */
static unsigned int lane_mbit(const ib_port_info_t *info)
{
	switch (ib_port_info_get_link_speed_ext_active(info)) {
	case 1:
		return 13636;
	case 2:
		return 25000;
	case 4:
		return 50000;
	case 8:
		return 100000;
	default:
		return 2000 * ib_port_info_get_link_speed_active(info);
	}
}

static uint64_t bytes_per_s(const struct rsm *rsm, const osm_physp_t *port)
{
	static const uint8_t widths[][2] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
	unsigned int width = 0;

	if (rsm->opt.hotspot_mbit)
		return rsm->opt.hotspot_mbit * 125000ull;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (port->port_info.link_width_active == widths[i][0])
			width = widths[i][1];
	return width * lane_mbit(&port->port_info) * 125000ull;
}

/* The cable of a switch's port, if a host is at its other end. */
static bool host_link(const struct rsm *rsm, osm_node_t *node, uint8_t num,
		      struct hotspot_link *link)
{
	osm_physp_t *port = osm_node_get_physp_ptr(node, num);
	osm_physp_t *host = port ? osm_physp_get_remote(port) : NULL;

	if (!host || osm_node_get_type(osm_physp_get_node_ptr(host)) != IB_NODE_TYPE_CA ||
	    !osm_physp_get_base_lid(host))
		return false;
	*link = (struct hotspot_link) {
		.switch_guid = cl_ntoh64(osm_node_get_node_guid(node)),
		.switch_port = num,
		.host_guid = cl_ntoh64(osm_node_get_node_guid(osm_physp_get_node_ptr(host))),
		.host_port = osm_physp_get_port_num(host),
		.lid = cl_ntoh16(osm_physp_get_base_lid(host)),
		.bytes_per_s = bytes_per_s(rsm, port),
	};
	return true;
}

/* All of them, to be freed; NULL without memory. */
static struct hotspot_link *read_links(struct rsm *rsm, unsigned int *n)
{
	osm_subn_t *subn = &rsm->osm->subn;
	struct hotspot_link *links;

	*n = 0;
	CL_PLOCK_ACQUIRE(&rsm->osm->lock);
	/* No more than there are ports that are not switches'. */
	links = calloc(cl_qmap_count(&subn->port_guid_tbl) + 1, sizeof(*links));
	for (cl_map_item_t *i = cl_qmap_head(&subn->sw_guid_tbl);
	     links && i != cl_qmap_end(&subn->sw_guid_tbl); i = cl_qmap_next(i)) {
		osm_node_t *node = ((osm_switch_t *)i)->p_node;

		for (unsigned int num = 1; num < osm_node_get_num_physp(node); num++)
			if (*n < cl_qmap_count(&subn->port_guid_tbl))
				*n += host_link(rsm, node, num, &links[*n]);
	}
	CL_PLOCK_RELEASE(&rsm->osm->lock);
	return links;
}

/* Returns whether it could be done. */
static bool rewire(struct rsm *rsm, struct told *told)
{
	struct rsm_congestion *congestion = rsm->congestion;
	unsigned int n;
	struct hotspot_link *links = read_links(rsm, &n);
	bool done = false;

	if (links) {
		pthread_mutex_lock(&congestion->mutex);
		/* Without links there are no hot spots, and who was told that there are is told that they are over. */
		done = !hotspot_links(congestion->hotspot, links, congestion->loops ? 0 : n, tell, told);
		pthread_mutex_unlock(&congestion->mutex);
	}
	free(links);
	return done;
}

static bool tell_nobody(void *context, enum hotspot_lane lane, uint16_t hot, uint16_t to)
{
	(void)context;
	(void)lane;
	(void)hot;
	(void)to;
	return false;
}

/* Another SM is the master: it is its matter what is a hot spot. */
static void forget(struct rsm_congestion *congestion)
{
	pthread_mutex_lock(&congestion->mutex);
	congestion->last = 0;
	if (hotspot_counts(congestion->hotspot)->links)
		hotspot_links(congestion->hotspot, NULL, 0, tell_nobody, NULL);
	pthread_mutex_unlock(&congestion->mutex);
}

/**
 * rsm_congestion_routed - an engine has computed tables
 * @rsm: the plugin
 * @engine: its name
 *
 * Who contributes to a hot spot leaves the lane that the engine has given him. Where paths need lanes to be without
 * credit loops that may close one, with the lane's own paths or with those to another hot spot. In OpenSM's thread,
 * which has the lock.
 */
void rsm_congestion_routed(struct rsm *rsm, const char *engine)
{
	struct rsm_congestion *congestion = rsm->congestion;
	struct rsm_topo topo;
	uint8_t **lft;
	bool before;
	int rc;

	if (!congestion)
		return;
	rc = rsm_topo_of_subnet(rsm, &topo);
	if (rc)
		return;
	lft = calloc(topo.n_switches + 1, sizeof(*lft));
	rc = lft ? rsm_topo_new_tables(rsm, &topo, lft) : -ENOMEM;
	/* What can not be known is taken for the worst. */
	rc = rc ?: rsm_slow_lane_loops(&topo, lft);
	pthread_mutex_lock(&congestion->mutex);
	before = congestion->loops;
	congestion->loops = rc;
	pthread_mutex_unlock(&congestion->mutex);
	if (rc && !before)
		rsm_log(rsm, OSM_LOG_ERROR, "slow_sl is set, but paths of %s have credit loops in one lane: "
			"hot spots are not looked for", engine);
	free(lft);
	rsm_topo_free(&topo);
}

static uint64_t congestion_tick(struct rsm *rsm, uint64_t now)
{
	struct rsm_congestion *congestion = rsm->congestion;
	struct told told = { .rsm = rsm };
	uint64_t next = RSM_NEVER;
	bool rewired, over;

	if (!congestion)
		return RSM_NEVER;
	if (rsm->osm->subn.sm_state != IB_SMINFO_STATE_MASTER) {
		forget(congestion);
		return RSM_NEVER;
	}
	pthread_mutex_lock(&congestion->mutex);
	rewired = congestion->rewired;
	congestion->rewired = false;
	over = congestion->last && now >= congestion->last + QUIET;
	if (congestion->last && !over)
		next = congestion->last + QUIET;
	pthread_mutex_unlock(&congestion->mutex);
	if (!rewired && !over)
		return next;
	rsm_signal_refresh(rsm, RSM_UNLOCKED);
	if (rewired && !rewire(rsm, &told)) {
		pthread_mutex_lock(&congestion->mutex);
		congestion->rewired = true;
		pthread_mutex_unlock(&congestion->mutex);
		next = now + 1000;
	}
	if (over) {
		pthread_mutex_lock(&congestion->mutex);
		congestion->last = 0;
		hotspot_sweep(congestion->hotspot, tell, &told);
		pthread_mutex_unlock(&congestion->mutex);
	}
	tell_other_ends(&told);
	rsm_signal_push(rsm);
	return next;
}

static uint64_t nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* With the lock of the performance manager's data base held, many times in a row. */
static void take(struct rsm *rsm, osm_epi_event_id_t id, const void *data)
{
	struct rsm_congestion *congestion = rsm->congestion;
	const osm_epi_pe_event_t *errors = data;
	const osm_epi_dc_event_t *sent = data;
	bool first;

	pthread_mutex_lock(&congestion->mutex);
	if (id == OSM_EVENT_ID_PORT_ERRORS)
		hotspot_waited(congestion->hotspot, errors->port_id.node_guid, errors->port_id.port_num,
			       errors->xmit_wait, nanoseconds());
	else
		hotspot_sent(congestion->hotspot, sent->port_id.node_guid, sent->port_id.port_num,
			     sent->xmit_data, nanoseconds());
	first = !congestion->last;
	congestion->last = rsm_now();
	pthread_mutex_unlock(&congestion->mutex);
	if (first)
		rsm_wake(rsm);
}

static void congestion_event(struct rsm *rsm, osm_epi_event_id_t id, void *data)
{
	struct rsm_congestion *congestion = rsm->congestion;

	if (!congestion)
		return;
	switch (id) {
	case OSM_EVENT_ID_PORT_ERRORS:
	case OSM_EVENT_ID_PORT_DATA_COUNTERS:
		take(rsm, id, data);
		break;
	case OSM_EVENT_ID_SUBNET_UP:
	case OSM_EVENT_ID_UCAST_ROUTING_DONE:
		pthread_mutex_lock(&congestion->mutex);
		congestion->rewired = true;
		pthread_mutex_unlock(&congestion->mutex);
		rsm_wake(rsm);
		break;
	default:
		break;
	}
}

static void congestion_status(struct rsm *rsm, FILE *out)
{
	struct rsm_congestion *congestion = rsm->congestion;
	struct hotspot_counts c;

	if (!congestion) {
		fprintf(out, "null");
		return;
	}
	pthread_mutex_lock(&congestion->mutex);
	c = *hotspot_counts(congestion->hotspot);
	pthread_mutex_unlock(&congestion->mutex);
	fprintf(out, "{\"links\":%u,\"now\":%u,\"contributors\":%u,\"sweeps\":%llu,"
		"\"begun\":%llu,\"ended\":%llu,\"to_slow_lane\":%llu,\"to_fast_lane\":%llu}",
		c.links, c.hot, c.contributors, (unsigned long long)c.sweeps,
		(unsigned long long)c.begun, (unsigned long long)c.ended,
		(unsigned long long)c.slow, (unsigned long long)c.fast);
}

static int congestion_start(struct rsm *rsm)
{
	const struct hotspot_rules rules = {
		.wait_per_s = rsm->opt.hotspot_wait,
		.used_percent = rsm->opt.hotspot_used,
		.onset = rsm->opt.hotspot_onset,
		.calm = rsm->opt.hotspot_calm,
		.calm_percent = rsm->opt.hotspot_calm_percent,
	};
	struct rsm_congestion *congestion;

	if (!rsm->opt.slow_sl)
		return 0;
	if (!rsm->osm->subn.opt.perfmgr)
		rsm_log(rsm, OSM_LOG_ERROR, "slow_sl is set, but OpenSM's option perfmgr is not: "
			"no hot spot will be seen");
	congestion = calloc(1, sizeof(*congestion));
	if (!congestion)
		return -ENOMEM;
	congestion->hotspot = hotspot_new(&rules);
	if (!congestion->hotspot) {
		free(congestion);
		return -ENOMEM;
	}
	pthread_mutex_init(&congestion->mutex, NULL);
	rsm->congestion = congestion;
	return 0;
}

static void congestion_stop(struct rsm *rsm)
{
	struct rsm_congestion *congestion = rsm->congestion;

	if (!congestion)
		return;
	hotspot_free(congestion->hotspot);
	free(congestion);
	rsm->congestion = NULL;
}

const struct rsm_part rsm_congestion_part = {
	.name = "hot_spots",
	.start = congestion_start,
	.stop = congestion_stop,
	.event = congestion_event,
	.tick = congestion_tick,
	.status = congestion_status,
};
