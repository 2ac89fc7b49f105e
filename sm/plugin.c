// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The plugin's entry: OpenSM finds osm_event_plugin, whose version must be its own, and calls
 * create() before it is bound to its port, report() at events, and destroy() at its end.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <opensm/osm_version.h>

#include "engine.h"
#include "over.h"
#include "plugin.h"
#include "router.h"

static const struct rsm_part *const parts[] = {
	&rsm_signal_part,
	&rsm_paths_part,
	&rsm_congestion_part,
	&rsm_guids_part,
	&rsm_distribute_part,
	&rsm_receipts_part,
	&rsm_vm_part,
	&rsm_status_part,
};

#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

/** rsm_now - milliseconds of the monotonic clock */
uint64_t rsm_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

/**
 * rsm_wake - have the plugin's thread call every tick() soon
 * @rsm: the plugin
 *
 * May be called with any lock held, OpenSM's too.
 */
void rsm_wake(struct rsm *rsm)
{
	pthread_mutex_lock(&rsm->mutex);
	rsm->woken = true;
	pthread_cond_signal(&rsm->cond);
	pthread_mutex_unlock(&rsm->mutex);
}

/** rsm_status_all - one line of JSON: what each part says of itself */
void rsm_status_all(struct rsm *rsm, FILE *out)
{
	fprintf(out, "{\"method\":\"%s\",\"dry_run\":%s,\"epoch\":%u,\"serial\":%u",
		rsm_method_name(rsm->opt.method), rsm->opt.dry_run ? "true" : "false", rsm->epoch,
		rsm->serial);
	for (size_t i = 0; i < N_PARTS; i++) {
		if (!parts[i]->status)
			continue;
		fprintf(out, ",\"%s\":", parts[i]->name);
		parts[i]->status(rsm, out);
	}
	fprintf(out, "}\n");
}

static void wait_until(struct rsm *rsm, uint64_t when)
{
	struct timespec t = {
		.tv_sec = when / 1000,
		.tv_nsec = when % 1000 * 1000000,
	};

	if (when == RSM_NEVER)
		pthread_cond_wait(&rsm->cond, &rsm->mutex);
	else
		pthread_cond_timedwait(&rsm->cond, &rsm->mutex, &t);
}

static void *thread_main(void *arg)
{
	struct rsm *rsm = arg;
	uint64_t next[N_PARTS] = { 0 };

	pthread_mutex_lock(&rsm->mutex);
	while (!rsm->stopping) {
		uint64_t now = rsm_now(), soonest = RSM_NEVER;
		bool woken = rsm->woken;

		rsm->woken = false;
		pthread_mutex_unlock(&rsm->mutex);
		for (size_t i = 0; i < N_PARTS; i++) {
			if (woken || next[i] <= now)
				next[i] = parts[i]->tick ? parts[i]->tick(rsm, now) : RSM_NEVER;
			if (next[i] < soonest)
				soonest = next[i];
		}
		pthread_mutex_lock(&rsm->mutex);
		if (!rsm->woken && !rsm->stopping && soonest > rsm_now())
			wait_until(rsm, soonest);
	}
	pthread_mutex_unlock(&rsm->mutex);
	return NULL;
}

static void stop_parts(struct rsm *rsm, size_t started)
{
	while (started--)
		if (parts[started]->stop)
			parts[started]->stop(rsm);
}

static int start(struct rsm *rsm)
{
	pthread_condattr_t attr;
	size_t started;
	int rc;

	if (getrandom(&rsm->epoch, sizeof(rsm->epoch), 0) != sizeof(rsm->epoch))
		return -errno;
	pthread_mutex_init(&rsm->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&rsm->cond, &attr);
	for (started = 0; started < N_PARTS; started++) {
		rc = parts[started]->start ? parts[started]->start(rsm) : 0;
		if (rc) {
			rsm_log(rsm, OSM_LOG_ERROR, "cannot start %s: %s", parts[started]->name,
				strerror(-rc));
			goto err;
		}
	}
	rc = -pthread_create(&rsm->thread, NULL, thread_main, rsm);
	if (!rc)
		return 0;
err:
	stop_parts(rsm, started);
	return rc;
}

static void *create(osm_opensm_t *osm)
{
	struct rsm *rsm = calloc(1, sizeof(*rsm));
	char why[512];

	if (!rsm)
		return NULL;
	rsm->osm = osm;
	if (rsm_options_read(&rsm->opt, osm->subn.opt.event_plugin_options, why, sizeof(why))) {
		rsm_log(rsm, OSM_LOG_ERROR, "not loaded: %s", why);
		goto err;
	}
	if (start(rsm)) {
		rsm_log(rsm, OSM_LOG_ERROR, "not loaded");
		goto err;
	}
	/* OpenSM keeps those that it knows, and unloads who gives up: from here on there is no way back. */
	if (rsm_routers_register(rsm))
		rsm_log(rsm, OSM_LOG_ERROR, "no memory: not all routing engines are there");
	rsm_log(rsm, OSM_LOG_INFO, "loaded into %s: method %s%s", osm->osm_version,
		rsm_method_name(rsm->opt.method), rsm->opt.dry_run ? ", dry run" : "");
	return rsm;
err:
	free(rsm);
	return NULL;
}

/* OpenSM's own threads have ended: only the plugin's is left. */
static void destroy(void *arg)
{
	struct rsm *rsm = arg;

	pthread_mutex_lock(&rsm->mutex);
	rsm->stopping = true;
	pthread_cond_signal(&rsm->cond);
	pthread_mutex_unlock(&rsm->mutex);
	pthread_join(rsm->thread, NULL);
	stop_parts(rsm, N_PARTS);
	rsm_engines_free();
	rsm_over_free();
	rsm_routers_free();
	free(rsm);
}

static void report(void *arg, osm_epi_event_id_t id, void *data)
{
	struct rsm *rsm = arg;

	for (size_t i = 0; i < N_PARTS; i++)
		if (parts[i]->event)
			parts[i]->event(rsm, id, data);
}

osm_event_plugin_t osm_event_plugin = { OSM_VERSION, create, destroy, report };
