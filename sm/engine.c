// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * OpenSM has no event between the computing of tables and the setting of them. So the function of
 * each routing engine that computes them is replaced by one that calls it and then says so. It is
 * told apart only by its engine's context, which several engines share: each gets a function of
 * its own.
 */
#include <stdlib.h>
#include <time.h>

#include "congestion.h"
#include "distribute.h"
#include "engine.h"
#include "levels.h"
#include "over.h"
#include "plan.h"
#include "plugin.h"
#include "router.h"
#include "slots.h"

#include <opensm/osm_ucast_mgr.h>

#define MOST_ENGINES 16

struct hook {
	struct osm_routing_engine *engine;
	int (*build)(void *context);
	int (*matrices)(void *context);
	struct rsm_engine_cpu cpu;
	void (*lanes)(void *context, osm_physp_t *port, uint8_t in, uint8_t out,
		      ib_slvl_table_t *table);
	void (*vlarb)(void *context, osm_physp_t *port, uint8_t number, ib_vl_arb_table_t *block, unsigned int length,
		      unsigned int which);
	rsm_path_sl path_sl;
	struct rsm_levels levels;
};

static struct hook hooks[MOST_ENGINES];
static struct rsm *plugin;
static rsm_computed tell;
static bool sweeping; /* a sweep has begun and not computed tables yet */
static bool known; /* tables of the last time are right */
static bool computing;

static uint64_t microseconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

/** rsm_microseconds - of the monotonic clock */
uint64_t rsm_microseconds(void)
{
	return microseconds(CLOCK_MONOTONIC);
}

/** rsm_cpu_microseconds - of this thread: on a busy machine the clock says little about an engine */
uint64_t rsm_cpu_microseconds(void)
{
	return microseconds(CLOCK_THREAD_CPUTIME_ID);
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

/* Some look up where a LID is now, and give the level of the way between the switches. */
static bool goes_by_lid(const struct osm_routing_engine *engine)
{
	return engine->path_sl && engine->type != OSM_ROUTING_ENGINE_TYPE_LASH &&
	       engine->type != OSM_ROUTING_ENGINE_TYPE_TORUS_2QOS;
}

/* OpenSM's own of those that go by LID: with others' levels nothing is wrong. */
static bool is_asked_once(const struct osm_routing_engine *engine)
{
	return engine->path_sl && engine->type == OSM_ROUTING_ENGINE_TYPE_DFSSSP &&
	       (plugin->opt.steady || plugin->opt.vswitch != RSM_VSWITCH_OFF);
}

/* Before LIDs are where they are: an engine has seen them at the slots that they are of. */
static void ask_levels(struct hook *hook)
{
	if (hook->path_sl && is_asked_once(hook->engine) &&
	    rsm_levels_ask(&hook->levels, &plugin->osm->subn, hook->path_sl, hook->engine->context, plugin->opt.steady))
		rsm_log(plugin, OSM_LOG_ERROR, "no memory: service levels are what %s says each time",
			hook->engine->name);
}

static int build(int number, void *context)
{
	struct hook *hook = &hooks[number];
	uint64_t start = rsm_microseconds(), cpu = rsm_cpu_microseconds();
	bool slots = plugin->opt.vswitch != RSM_VSWITCH_OFF;
	int rc = 0;

	choose_as_before();
	if (!known)
		rc = hook->build ? hook->build(context) : 1;
	if (rc > 0)
		rc = build_default();
	if (rc && slots)
		rsm_slots_failed(plugin);
	if (rc)
		return rc;
	if (!known)
		ask_levels(hook);
	if (slots)
		rsm_slots_end(plugin, !known);
	hook->cpu.tables_us = rsm_cpu_microseconds() - cpu;
	rsm_router_kept(hook->engine, &hook->cpu.keep_us, &hook->cpu.kept);
	/* Engines give SLs only while they are the one in use. */
	plugin->osm->routing_engine_used = hook->engine;
	if (rsm_over_wanted(plugin, hook->engine)) {
		struct rsm_over_base base = { hook->path_sl, hook->lanes, hook->engine->context };

		rsm_over_make(plugin, hook->engine, &base);
	}
	rsm_congestion_routed(plugin, hook->engine->name);
	tell(plugin, hook->engine, rsm_microseconds() - start);
	rsm_distribute(plugin);
	plugin->osm->routing_engine_used = NULL;
	return 0;
}

/* Others begin what they end with the tables: lanes that they have given are lost until then. */
static bool counts_hops_only(const struct osm_routing_engine *engine)
{
	return engine->type == OSM_ROUTING_ENGINE_TYPE_UPDN ||
	       engine->type == OSM_ROUTING_ENGINE_TYPE_DNUP;
}

/* Hop counts, which multicast needs whatever the engine is. ftree makes its tree here, too. */
static int matrices(int number, void *context)
{
	struct hook *hook = &hooks[number];
	uint64_t cpu = rsm_cpu_microseconds();
	int rc;

	known = plugin->opt.vswitch != RSM_VSWITCH_OFF &&
		rsm_slots_begin(plugin, hook->engine,
				!sweeping || rsm_router_again(hook->engine));
	sweeping = false;
	if (known && !counts_hops_only(hook->engine))
		return osm_ucast_mgr_build_lid_matrices(&plugin->osm->sm.ucast_mgr);
	rc = hook->matrices ? hook->matrices(context) : 1;
	if (rc > 0)
		rc = osm_ucast_mgr_build_lid_matrices(&plugin->osm->sm.ucast_mgr);
	hook->cpu.hops_us = rsm_cpu_microseconds() - cpu;
	if (rc && plugin->opt.vswitch != RSM_VSWITCH_OFF)
		rsm_slots_failed(plugin);
	return rc;
}

static void lanes(int number, void *context, osm_physp_t *port, uint8_t in, uint8_t out,
		  ib_slvl_table_t *table)
{
	if (!rsm_over_lanes(hooks[number].engine, port, in, out, table) && hooks[number].lanes)
		hooks[number].lanes(context, port, in, out, table);
	rsm_distribute_lanes(plugin, port, in, out, table);
}

/*
 * Shortest paths to one port wait for each other only towards it, and those from it only away from it: on a lane of
 * their own they close no ring.
 */
static bool is_managements(ib_net16_t slid, ib_net16_t dlid)
{
	ib_net16_t sm = plugin->osm->subn.sm_base_lid;

	return plugin->opt.sm_sl && (slid == sm || dlid == sm);
}

static uint16_t known_as(const struct osm_routing_engine *engine, uint16_t lid)
{
	return rsm_router_by_partition(engine) ? rsm_slots_known(lid) : rsm_slots_lid(lid);
}

/*
 * What an engine knows of a LID that it does not look up itself is what it knows of the slot that it is in. OpenSM's
 * lock is held, by several threads perhaps.
 */
static uint8_t path_sl(int number, void *context, uint8_t hint, ib_net16_t slid, ib_net16_t dlid)
{
	const struct hook *hook = &hooks[number];
	const osm_subn_t *subn = &plugin->osm->subn;
	uint16_t from, to;
	uint8_t sl;

	if (is_managements(slid, dlid) && (hook->path_sl || rsm_over_in_force(hook->engine)))
		return plugin->osm->subn.opt.sm_sl;
	if (rsm_over_sl(hook->engine, cl_ntoh16(slid), cl_ntoh16(dlid), &sl))
		return sl;
	if (!hook->path_sl)
		return hint;
	if (!goes_by_lid(hook->engine))
		return hook->path_sl(context, hint, slid, dlid);
	from = known_as(hook->engine, cl_ntoh16(slid));
	to = known_as(hook->engine, cl_ntoh16(dlid));
	if (!hook->levels.sl)
		return hook->path_sl(context, hint, cl_hton16(from), cl_hton16(to));
	if (!osm_get_port_by_lid(subn, slid) || !osm_get_port_by_lid(subn, dlid) ||
	    !rsm_levels_find(&hook->levels, from, to, &sl))
		return hint;
	return sl;
}

static void weigh(int number, void *context, osm_physp_t *port, uint8_t port_number, ib_vl_arb_table_t *block,
		  unsigned int length, unsigned int which)
{
	const struct hook *hook = &hooks[number];

	if (rsm_over_in_force(hook->engine))
		rsm_router_weigh_equally(port, block, length, which);
	else if (hook->vlarb)
		hook->vlarb(context, port, port_number, block, length, which);
}

/* An engine may take long, and OpenSM is silent meanwhile. */
static int compute(int (*how)(int number, void *context), int number, void *context)
{
	int rc;

	__atomic_store_n(&computing, true, __ATOMIC_RELEASE);
	rc = how(number, context);
	__atomic_store_n(&computing, false, __ATOMIC_RELEASE);
	return rc;
}

/** rsm_engine_computes - whether one does now; in any thread */
bool rsm_engine_computes(void)
{
	return __atomic_load_n(&computing, __ATOMIC_ACQUIRE);
}

#define BUILD(number)                                                                              \
	static int build_##number(void *context)                                                   \
	{                                                                                          \
		return compute(build, number, context);                                            \
	}                                                                                          \
	static int matrices_##number(void *context)                                                \
	{                                                                                          \
		return compute(matrices, number, context);                                         \
	}                                                                                          \
	static void lanes_##number(void *context, osm_physp_t *port, uint8_t in, uint8_t out,      \
				   ib_slvl_table_t *table)                                         \
	{                                                                                          \
		lanes(number, context, port, in, out, table);                                      \
	}                                                                                          \
	static void weigh_##number(void *context, osm_physp_t *port, uint8_t port_number,          \
				   ib_vl_arb_table_t *block, unsigned int length,                  \
				   unsigned int which)                                             \
	{                                                                                          \
		weigh(number, context, port, port_number, block, length, which);                   \
	}                                                                                          \
	static uint8_t path_sl_##number(void *context, uint8_t hint, const ib_net16_t slid,        \
					const ib_net16_t dlid)                                     \
	{                                                                                          \
		return path_sl(number, context, hint, slid, dlid);                                 \
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

#define HOOK(number)                                                                               \
	{                                                                                          \
		.build = build_##number, .matrices = matrices_##number, .lanes = lanes_##number,   \
		.path_sl = path_sl_##number, .vlarb = weigh_##number,                              \
	}

/* Ours, by number. */
static const struct hook ours[MOST_ENGINES] = {
	HOOK(0), HOOK(1), HOOK(2),  HOOK(3),  HOOK(4),	HOOK(5),  HOOK(6),  HOOK(7),
	HOOK(8), HOOK(9), HOOK(10), HOOK(11), HOOK(12), HOOK(13), HOOK(14), HOOK(15),
};

/* With a function for lanes OpenSM sets ports x ports SLtoVL tables of a switch, and can not with one SMP. */
static bool needs_lanes(const struct osm_routing_engine *engine)
{
	return engine->update_sl2vl || rsm_over_wanted(plugin, engine) ||
	       plugin->opt.distribute == RSM_DISTRIBUTE_TURNS + 1;
}

static void hook_one(struct osm_routing_engine *engine)
{
	for (int i = 0; i < MOST_ENGINES; i++) {
		if (hooks[i].engine == engine)
			return;
		if (hooks[i].engine)
			continue;
		hooks[i] = (struct hook) {
			.engine = engine,
			.build = engine->ucast_build_fwd_tables,
			.matrices = engine->build_lid_matrices,
			.lanes = engine->update_sl2vl,
			.vlarb = engine->update_vlarb,
			.path_sl = engine->path_sl,
		};
		engine->ucast_build_fwd_tables = ours[i].build;
		engine->build_lid_matrices = ours[i].matrices;
		if (needs_lanes(engine))
			engine->update_sl2vl = ours[i].lanes;
		if (plugin->opt.vswitch != RSM_VSWITCH_OFF && goes_by_lid(engine))
			engine->path_sl = ours[i].path_sl;
		if (is_asked_once(engine))
			engine->path_sl = ours[i].path_sl;
		if (plugin->opt.sm_sl && engine->path_sl)
			engine->path_sl = ours[i].path_sl;
		if (rsm_over_wanted(plugin, engine)) {
			engine->path_sl = ours[i].path_sl;
			engine->update_vlarb = ours[i].vlarb;
		}
		rsm_over_tell(plugin, engine);
		return;
	}
}

/** rsm_engine_cpu - what an engine's last tables took */
struct rsm_engine_cpu rsm_engine_cpu(const struct osm_routing_engine *engine)
{
	for (int i = 0; i < MOST_ENGINES; i++)
		if (hooks[i].engine == engine)
			return hooks[i].cpu;
	return (struct rsm_engine_cpu) { 0 };
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
	sweeping = true;
	for (struct osm_routing_engine *i = rsm->osm->routing_engine_list; i; i = i->next)
		hook_one(i);
	if (rsm->osm->default_routing_engine)
		hook_one(rsm->osm->default_routing_engine);
}

/** rsm_engines_free - when OpenSM has ended */
void rsm_engines_free(void)
{
	for (int i = 0; i < MOST_ENGINES; i++)
		rsm_levels_free(&hooks[i].levels);
}
