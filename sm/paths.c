// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From routing to notices: when tables are computed, compare and say UnPath; when they are set, and the
 * links that they lead over are active, say RePath; and when a VM has moved. Routing is in OpenSM's thread
 * that sweeps, moves are in the plugin's: who compares or tells has OpenSM's lock exclusively.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "links.h"
#include "method.h"
#include "paths.h"
#include "plugin.h"
#include "prd.h"
#include "signal.h"
#include "slots.h"
#include "view.h"

#define LOOK_MS 20	/* between two looks at links that RePath waits for */

/**
 * struct counts - for the status
 * @routings: tables computed
 * @told: of them, those that are set and of which hosts were told
 * @changed: routings after which a path was another
 * @paths: changed paths in all
 * @last_paths: of the last routing
 * @last_hosts: at which those begin
 * @walked: LIDs whose paths the last routing made us follow
 * @memory: of the tables
 * @routing_us: what the engine took for the last tables
 * @view_us: to read OpenSM's subnet
 * @update_us: to follow paths
 * @compare_us: to compare
 * @tell_us: to queue notices
 * @moves: VMs' that were compared
 * @moved_paths: that were others then
 * @moved_us: the last of these comparisons
 * @waits: times that RePath has waited for links
 * @late: of them, those after which they were not active
 * @waited_ms: how long the last time
 * @cpu: the engine's processor time
 */
struct counts {
	unsigned long long routings, told, changed, paths, last_paths, last_hosts, walked, memory;
	unsigned long long routing_us, view_us, update_us, compare_us, tell_us;
	unsigned long long moves, moved_paths, moved_us;
	unsigned long long waits, late, waited_ms;
	struct rsm_engine_cpu cpu;
};

/**
 * struct rsm_paths - what the part knows
 * @prd: the distinguisher
 * @changes: of the last routing, until hosts are told
 * @computed: tables were computed that are not set yet
 * @failed: the last routing could not be compared
 * @blind: nor was the one that hosts were last told of: nobody knows what differs from that
 * @until: when RePath is said at the latest that waits for links, of rsm_now(); 0: none does. Read in any thread
 * @since: since when it waits
 * @look: when links are looked at next
 * @forgotten: another SM has had the subnet since: set in any thread
 * @shares: that other paths have the subnet manager's level is logged
 * @mutex: for @shown
 * @counts: of who has OpenSM's lock
 * @shown: a copy for the status
 */
struct rsm_paths {
	struct rsm_prd *prd;
	struct rsm_changes changes;
	bool computed;
	bool failed;
	bool blind;
	uint64_t until;
	uint64_t since;
	uint64_t look;
	bool forgotten;
	bool shares;
	pthread_mutex_t mutex;
	struct counts counts;
	struct counts shown;
};

static unsigned long long lap(uint64_t *since)
{
	uint64_t then = *since;

	*since = rsm_microseconds();
	return *since - then;
}

static void show(struct rsm_paths *paths)
{
	pthread_mutex_lock(&paths->mutex);
	paths->shown = paths->counts;
	pthread_mutex_unlock(&paths->mutex);
}

/* What is to get through while others are blocked is blocked with them. */
static void tell_sharing(struct rsm *rsm)
{
	bool shares = rsm_prd_sm_shares(rsm->paths->prd);

	if (shares && !rsm->paths->shares)
		rsm_log(rsm, OSM_LOG_ERROR,
			"sm_sl: other paths have service level %d, too: with LASH set lash_start_vl",
			rsm->osm->subn.opt.sm_sl);
	rsm->paths->shares = shares;
}

/* Another SM has the subnet: when it comes back, all that hosts were told is of that other one. */
static void forget(struct rsm *rsm)
{
	__atomic_store_n(&rsm->paths->forgotten, true, __ATOMIC_RELEASE);
}

/* LIDs of VMs that have changed places. */
struct moved {
	uint16_t lids[2];
	uint32_t n;
};

static uint64_t deadline(const struct rsm_paths *paths)
{
	return __atomic_load_n(&paths->until, __ATOMIC_ACQUIRE);
}

static void set_deadline(struct rsm_paths *paths, uint64_t until)
{
	__atomic_store_n(&paths->until, until, __ATOMIC_RELEASE);
}

static void see_whether_forgotten(struct rsm *rsm)
{
	struct rsm_paths *paths = rsm->paths;

	if (!__atomic_exchange_n(&paths->forgotten, false, __ATOMIC_ACQUIRE))
		return;
	set_deadline(paths, 0);
	paths->counts.told = paths->counts.routings;
	rsm_changes_free(&paths->changes);
	rsm_prd_reset(paths->prd);
	paths->computed = false;
	paths->blind = false;
	show(paths);
}

/* VMs whose ports go along, and are nowhere, or not yet where they are to be. */
static void hold_expected(struct rsm *rsm)
{
	uint16_t lids[RSM_MOST_EXPECTED];

	_Static_assert(RSM_MOST_EXPECTED <= RSM_PRD_MOST_HELD, "none is left out");
	rsm_prd_hold(rsm->paths->prd, lids, rsm_slots_expected(lids));
}

static bool is_taken(const struct rsm *rsm, uint16_t lid)
{
	return rsm_prd_has(rsm->paths->prd, lid);
}

/*
 * When memory runs out every host is told that anything may have changed, and
 * once more when there is some again: what is new is not compared with what it was told then.
 */
static void compare(struct rsm *rsm, struct osm_routing_engine *engine, bool computed, const struct moved *moved)
{
	struct rsm_paths *paths = rsm->paths;
	struct counts *counts = &paths->counts;
	uint64_t clock = rsm_microseconds();
	struct rsm_net net;
	int rc;

	rsm_changes_free(&paths->changes);
	rc = rsm_view_make(rsm, engine, computed, &net);
	counts->view_us = lap(&clock);
	if (!rc) {
		memcpy(net.moved, moved->lids, sizeof(net.moved));
		net.n_moved = moved->n;
		hold_expected(rsm);
		rc = rsm_prd_update(paths->prd, &net);
		rsm_view_free(&net);
	}
	counts->update_us = lap(&clock);
	rc = rc ?: rsm_prd_changes(paths->prd, rsm_method_keeps(rsm), &paths->changes);
	counts->compare_us = lap(&clock);
	counts->walked = rsm_prd_walked(paths->prd);
	counts->memory = rsm_prd_memory(paths->prd);
	paths->failed = rc;
	if (!rc) {
		rsm_signal_taken(rsm, is_taken);
		tell_sharing(rsm);
		return;
	}
	paths->blind = true;
	rsm_prd_reset(paths->prd);
	rsm_log(rsm, OSM_LOG_ERROR, "paths not compared: %s", strerror(-rc));
}

/* Returns whether somebody can prepare for what will be. */
static bool tell(struct rsm *rsm, uint16_t trap)
{
	struct rsm_paths *paths = rsm->paths;
	uint64_t clock = rsm_microseconds();
	bool ahead = false;

	if (paths->blind)
		rsm_method_tell_all(rsm, trap);
	else
		ahead = rsm_method_tell(rsm, trap, &paths->changes);
	rsm_signal_push(rsm);
	paths->counts.tell_us = lap(&clock);
	return ahead;
}

static const struct moved nobody;

static void tables_computed(struct rsm *rsm, struct osm_routing_engine *engine,
			    uint64_t microseconds)
{
	struct rsm_paths *paths = rsm->paths;

	see_whether_forgotten(rsm);
	/* What was not said yet, as it waited for links, is a part of what is compared now. */
	set_deadline(paths, 0);
	rsm->serial++;
	paths->computed = true;
	paths->counts.routings++;
	paths->counts.routing_us = microseconds;
	paths->counts.cpu = rsm_engine_cpu(engine);
	if (rsm_method_compares(rsm))
		compare(rsm, engine, true, &nobody);
	if (rsm_method_unpaths(rsm) && (paths->changes.n || !rsm_method_compares(rsm))) {
		rsm_signal_refresh(rsm, RSM_COMPUTING);
		/* Who hears only that something will change can do nothing about it before it has. */
		if (tell(rsm, REPATH_SM_UNPATH))
			rsm_signal_await(rsm, rsm->opt.unpath_wait);
	}
	show(paths);
}

/* OpenSM's own cache of routes (-A) computes nothing: what is set now is what there is to compare. */
static void compare_cached(struct rsm *rsm)
{
	rsm->serial++;
	rsm->paths->counts.routings++;
	rsm->paths->counts.routing_us = 0;
	rsm->paths->counts.cpu = (struct rsm_engine_cpu) { 0 };
	if (!rsm_method_compares(rsm))
		return;
	compare(rsm, rsm->osm->routing_engine_used, false, &nobody);
}

static bool has_news(const struct rsm *rsm)
{
	return rsm->paths->changes.n || rsm->paths->blind || !rsm_method_compares(rsm);
}

/* RePath, if there is something to say. Hosts know then what was compared. */
static void tell_news(struct rsm *rsm)
{
	struct rsm_paths *paths = rsm->paths;

	if (has_news(rsm)) {
		rsm_signal_refresh(rsm, RSM_LOCKED);
		tell(rsm, REPATH_SM_REPATH);
	}
	rsm_changes_free(&paths->changes);
	rsm_prd_told(paths->prd);
	paths->blind = paths->failed;
	paths->counts.told = paths->counts.routings;
	set_deadline(paths, 0);
}

static bool is_news(const struct rsm *rsm, uint16_t lid)
{
	return !rsm_method_compares(rsm) || rsm->paths->blind || rsm_prd_is_news(rsm->paths->prd, lid);
}

/*
 * What is sent into a link before it is active is gone, and its sender waits for a timeout. A sweep makes
 * links active at its end; where OpenSM only routes anew there is none.
 */
static bool is_to_wait(const struct rsm *rsm, bool sweeping)
{
	return sweeping && rsm->opt.link_wait && has_news(rsm) && rsm_links_wait(rsm, is_news);
}

/* @late: links do not carry anything yet */
static void end_wait(struct rsm *rsm, bool late)
{
	struct rsm_paths *paths = rsm->paths;

	paths->counts.waited_ms = rsm_now() - paths->since;
	paths->counts.late += late;
	tell_news(rsm);
	show(paths);
}

/* What waits for links is said, whatever they are. */
static void tell_waiting(struct rsm *rsm)
{
	if (deadline(rsm->paths))
		end_wait(rsm, rsm_links_wait(rsm, is_news));
}

/* @over: the sweep is, and what are not active now will not be by it. */
static void look_at_links(struct rsm *rsm, bool over)
{
	struct rsm_paths *paths = rsm->paths;
	bool late;

	if (!deadline(paths))
		return;
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	see_whether_forgotten(rsm);
	late = deadline(paths) && rsm_links_wait(rsm, is_news);
	if (deadline(paths) && (over || !late || rsm_now() >= deadline(paths)))
		end_wait(rsm, late);
	CL_PLOCK_RELEASE(&rsm->osm->lock);
}

static void tables_set(struct rsm *rsm, bool sweeping)
{
	struct rsm_paths *paths = rsm->paths;
	struct counts *counts = &paths->counts;

	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	see_whether_forgotten(rsm);
	if (!paths->computed)
		compare_cached(rsm);
	paths->computed = false;
	counts->last_paths = paths->changes.n;
	counts->last_hosts = paths->changes.n_ends;
	counts->paths += paths->changes.n;
	counts->changed += paths->changes.n > 0;
	if (paths->changes.n)
		rsm_log(rsm, OSM_LOG_INFO, "routing %u: %llu paths of %llu hosts changed",
			rsm->serial, counts->last_paths, counts->last_hosts);
	if (is_to_wait(rsm, sweeping)) {
		counts->waits++;
		paths->since = rsm_now();
		set_deadline(paths, paths->since + rsm->opt.link_wait);
		rsm_wake(rsm);
	} else {
		tell_news(rsm);
	}
	show(paths);
	CL_PLOCK_RELEASE(&rsm->osm->lock);
}

/** rsm_paths_prd - what paths there are, and what hosts were told */
const struct rsm_prd *rsm_paths_prd(const struct rsm *rsm)
{
	return rsm->paths->prd;
}

/**
 * rsm_paths_take_along - a VM has another port
 * @rsm: the plugin
 * @lid: of the VM
 * @guid: of the port
 *
 * What hosts were told of the LID holds for it. Before the ports change LIDs, as what waits for links is said here, and
 * before rsm_paths_moved(), or what is computed meanwhile.
 */
void rsm_paths_take_along(struct rsm *rsm, uint16_t lid, ib_net64_t guid)
{
	see_whether_forgotten(rsm);
	tell_waiting(rsm);
	rsm_prd_take_along(rsm->paths->prd, lid, guid);
}

/**
 * rsm_paths_moved - a VM's move has been made: tell hosts what is another path now
 * @rsm: the plugin
 * @lid: of the VM
 * @other: the LID that has taken its place; 0: none
 */
void rsm_paths_moved(struct rsm *rsm, uint16_t lid, uint16_t other)
{
	struct rsm_paths *paths = rsm->paths;
	const struct moved moved = { { lid, other }, other ? 2 : 1 };
	uint64_t clock = rsm_microseconds();
	struct counts routing;

	see_whether_forgotten(rsm);
	/* What was computed meanwhile was with the VM where it is, and is told when it is set. */
	if (paths->computed)
		return;
	/* What waits for links is of more than these LIDs. */
	tell_waiting(rsm);
	routing = paths->counts;
	/* Who does not know what there was compares when it is routed. */
	if (rsm_method_compares(rsm) && !paths->blind) {
		compare(rsm, rsm->osm->routing_engine_used, false, &moved);
		routing.moves++;
		routing.moved_paths += paths->changes.n;
		routing.moved_us = lap(&clock);
		routing.memory = paths->counts.memory;
	}
	if (has_news(rsm))
		rsm->serial++;
	tell_news(rsm);
	/* The others are of the last routing. */
	paths->counts = routing;
	show(paths);
}

static void paths_event(struct rsm *rsm, osm_epi_event_id_t id, void *data)
{
	switch (id) {
	case OSM_EVENT_ID_HEAVY_SWEEP_START:
		/* OpenSM says nothing of a handover. */
		if (rsm->osm->subn.sm_state != IB_SMINFO_STATE_MASTER ||
		    rsm->osm->subn.first_time_master_sweep)
			forget(rsm);
		look_at_links(rsm, true);
		rsm_engines_hook(rsm, tables_computed);
		break;
	case OSM_EVENT_ID_UCAST_ROUTING_DONE:
		tables_set(rsm, (uintptr_t)data == UCAST_ROUTING_HEAVY_SWEEP);
		break;
	case OSM_EVENT_ID_SUBNET_UP:
		look_at_links(rsm, true);
		break;
	case OSM_EVENT_ID_STATE_CHANGE:
		if (rsm->osm->subn.sm_state != IB_SMINFO_STATE_MASTER)
			forget(rsm);
		break;
	default:
		break;
	}
}

/* OpenSM has much to do between the last link and the end of its sweep, and no event of links. */
static uint64_t paths_tick(struct rsm *rsm, uint64_t now)
{
	struct rsm_paths *paths = rsm->paths;
	uint64_t until = deadline(paths);

	/* The thread is woken by each answer to a report. */
	if (until && now >= paths->look) {
		look_at_links(rsm, false);
		paths->look = until < now + LOOK_MS ? until : now + LOOK_MS;
	}
	return deadline(paths) ? paths->look : RSM_NEVER;
}

static int paths_start(struct rsm *rsm)
{
	struct rsm_paths *paths = calloc(1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	paths->prd = rsm_prd_new();
	if (!paths->prd) {
		free(paths);
		return -ENOMEM;
	}
	pthread_mutex_init(&paths->mutex, NULL);
	rsm->paths = paths;
	return 0;
}

static void paths_stop(struct rsm *rsm)
{
	rsm_changes_free(&rsm->paths->changes);
	rsm_prd_free(rsm->paths->prd);
	free(rsm->paths);
	rsm->paths = NULL;
}

static void paths_status(struct rsm *rsm, FILE *out)
{
	struct counts counts;

	pthread_mutex_lock(&rsm->paths->mutex);
	counts = rsm->paths->shown;
	pthread_mutex_unlock(&rsm->paths->mutex);
	fprintf(out,
		"{\"routings\":%llu,\"told\":%llu,\"changed\":%llu,\"paths\":%llu,\"last_paths\":%llu,"
		"\"last_hosts\":%llu,\"walked\":%llu,\"memory\":%llu,\"routing_us\":%llu,"
		"\"view_us\":%llu,\"update_us\":%llu,\"compare_us\":%llu,\"tell_us\":%llu,"
		"\"moves\":%llu,\"moved_paths\":%llu,\"moved_us\":%llu,"
		"\"waits\":%llu,\"late\":%llu,\"waited_ms\":%llu,"
		"\"cpu\":{\"hops_us\":%llu,\"tables_us\":%llu,\"keep_us\":%llu,\"kept\":%llu}}",
		counts.routings, counts.told, counts.changed, counts.paths, counts.last_paths,
		counts.last_hosts, counts.walked, counts.memory, counts.routing_us, counts.view_us,
		counts.update_us, counts.compare_us, counts.tell_us,
		counts.moves, counts.moved_paths, counts.moved_us,
		counts.waits, counts.late, counts.waited_ms,
		(unsigned long long)counts.cpu.hops_us, (unsigned long long)counts.cpu.tables_us,
		(unsigned long long)counts.cpu.keep_us, (unsigned long long)counts.cpu.kept);
}

const struct rsm_part rsm_paths_part = {
	.name = "paths",
	.start = paths_start,
	.stop = paths_stop,
	.event = paths_event,
	.tick = paths_tick,
	.status = paths_status,
};
