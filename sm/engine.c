// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * OpenSM has no event between the computing of tables and the setting of them. So the function of
 * each routing engine that computes them is replaced by one that calls it and then says so. It is
 * told apart only by its engine's context, which several engines share: each gets a function of
 * its own.
 */
#include <stdlib.h>
#include <time.h>

#include "engine.h"
#include "plugin.h"

#define MOST_ENGINES 16

struct hook {
	struct osm_routing_engine *engine;
	int (*build)(void *context);
};

static struct hook hooks[MOST_ENGINES];
static struct rsm *plugin;
static rsm_computed tell;

/** rsm_microseconds - of the monotonic clock */
uint64_t rsm_microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

/* What OpenSM itself does when an engine leaves the tables to it, by minhop's engine. */
static int build_default(void)
{
	struct osm_routing_engine *engine = plugin->osm->default_routing_engine;

	for (int i = 0; i < MOST_ENGINES; i++)
		if (hooks[i].engine == engine && hooks[i].build)
			return hooks[i].build(engine->context);
	return 1;
}

/*
 * LASH balances its lanes by rand(): without this a sweep that finds nothing new gives half of all
 * paths another lane. With scatter_ports OpenSM does the same itself.
 */
static void choose_as_before(void)
{
	if (plugin->opt.steady && !plugin->osm->subn.opt.scatter_ports)
		srand(1);
}

static int build(int number, void *context)
{
	struct hook *hook = &hooks[number];
	uint64_t start = rsm_microseconds();
	int rc;

	choose_as_before();
	rc = hook->build ? hook->build(context) : 1;
	if (rc > 0)
		rc = build_default();
	if (rc)
		return rc;
	/* Engines give SLs only while they are the one in use. */
	plugin->osm->routing_engine_used = hook->engine;
	tell(plugin, hook->engine, rsm_microseconds() - start);
	plugin->osm->routing_engine_used = NULL;
	return 0;
}

#define BUILD(number)                                                                              \
	static int build_##number(void *context)                                                   \
	{                                                                                          \
		return build(number, context);                                                     \
	}

BUILD(0)
BUILD(1)
BUILD(2)
BUILD(3)
BUILD(4)
BUILD(5)
BUILD(6)
BUILD(7)
BUILD(8)
BUILD(9)
BUILD(10)
BUILD(11)
BUILD(12)
BUILD(13)
BUILD(14)
BUILD(15)

static int (*const builds[MOST_ENGINES])(void *context) = {
	build_0, build_1, build_2,  build_3,  build_4,	build_5,  build_6,  build_7,
	build_8, build_9, build_10, build_11, build_12, build_13, build_14, build_15,
};

static void hook_one(struct osm_routing_engine *engine)
{
	for (int i = 0; i < MOST_ENGINES; i++) {
		if (hooks[i].engine == engine)
			return;
		if (hooks[i].engine)
			continue;
		hooks[i] = (struct hook) { engine, engine->ucast_build_fwd_tables };
		engine->ucast_build_fwd_tables = builds[i];
		return;
	}
}

/**
 * rsm_engines_hook - be told by all engines that there are
 * @rsm: the plugin
 * @computed: to be called
 *
 * Engines are set up after the plugin was loaded, and stay until the end: this is called before
 * each sweep and hooks those that are new.
 */
void rsm_engines_hook(struct rsm *rsm, rsm_computed computed)
{
	plugin = rsm;
	tell = computed;
	for (struct osm_routing_engine *i = rsm->osm->routing_engine_list; i; i = i->next)
		hook_one(i);
	if (rsm->osm->default_routing_engine)
		hook_one(rsm->osm->default_routing_engine);
}
