// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which functions of an engine are replaced: sm/engine.c. With one for lanes OpenSM sets the SLtoVL tables of
 * all pairs of a switch's ports, else one that holds for all of them, where the switch can (use_optimized_slvl).
 * And what is asked, of whom, when somebody wants a path's service level.
 */
#include "check.h"
#include "congestion.h"
#include "distribute.h"
#include "engine.h"
#include "over.h"
#include "plan.h"
#include "plugin.h"
#include "router.h"
#include "slots.h"

#include <opensm/osm_ucast_mgr.h>

#define MOST 16

static osm_opensm_t osm;
static struct rsm rsm = { .osm = &osm };
static struct osm_routing_engine engines[MOST];
static int n_engines, n_told, lanes_asked, lanes_shown;

bool rsm_slots_begin(struct rsm *r, struct osm_routing_engine *engine, bool forced)
{
	(void)r;
	(void)engine;
	(void)forced;
	return false;
}

void rsm_slots_end(struct rsm *r, bool computed)
{
	(void)r;
	(void)computed;
}

void rsm_slots_failed(struct rsm *r)
{
	(void)r;
}

/* VMs have moved to where others were, of which one is nowhere now. */
static uint16_t homes[8];

uint16_t rsm_slots_lid(uint16_t lid)
{
	return homes[lid] ?: lid;
}

uint16_t rsm_slots_known(uint16_t lid)
{
	return lid;
}

bool rsm_router_by_partition(const struct osm_routing_engine *engine)
{
	(void)engine;
	return false;
}

osm_port_t *osm_get_port_by_lid_ho(const osm_subn_t *subn, uint16_t lid)
{
	return lid < cl_ptr_vector_get_size(&subn->port_lid_tbl) ? cl_ptr_vector_get(&subn->port_lid_tbl, lid) : NULL;
}

bool rsm_router_again(const struct osm_routing_engine *engine)
{
	(void)engine;
	return false;
}

void rsm_router_kept(const struct osm_routing_engine *engine, uint64_t *us, uint64_t *bytes)
{
	(void)engine;
	*us = 0;
	*bytes = 0;
}

void rsm_router_weigh_equally(const osm_physp_t *port, ib_vl_arb_table_t *block, unsigned int length,
			      unsigned int which)
{
	(void)port;
	(void)block;
	(void)length;
	(void)which;
}

bool rsm_over_wanted(const struct rsm *r, const struct osm_routing_engine *engine)
{
	(void)engine;
	return r->opt.voqsw_over;
}

void rsm_over_tell(struct rsm *r, const struct osm_routing_engine *engine)
{
	(void)r;
	CHECK(engine == &engines[n_engines - 1]);
	n_told++;
}

void rsm_over_make(struct rsm *r, const struct osm_routing_engine *engine, const struct rsm_over_base *base)
{
	(void)r;
	(void)engine;
	(void)base;
}

bool rsm_over_in_force(const struct osm_routing_engine *engine)
{
	(void)engine;
	return false;
}

bool rsm_over_sl(const struct osm_routing_engine *engine, uint16_t slid, uint16_t dlid, uint8_t *sl)
{
	(void)engine;
	(void)slid;
	(void)dlid;
	(void)sl;
	return false;
}

bool rsm_over_lanes(const struct osm_routing_engine *engine, osm_physp_t *port, uint8_t in, uint8_t out,
		    ib_slvl_table_t *table)
{
	(void)engine;
	(void)port;
	(void)in;
	(void)out;
	(void)table;
	return false;
}

void rsm_congestion_routed(struct rsm *r, const char *engine)
{
	(void)r;
	(void)engine;
}

void rsm_distribute(struct rsm *r)
{
	(void)r;
}

void rsm_distribute_lanes(struct rsm *r, osm_physp_t *port, uint8_t in, uint8_t out, ib_slvl_table_t *table)
{
	(void)r;
	(void)port;
	(void)in;
	(void)out;
	(void)table;
	lanes_shown++;
}

int osm_ucast_mgr_build_lid_matrices(IN osm_ucast_mgr_t *const p_mgr)
{
	(void)p_mgr;
	return 0;
}

void osm_log(IN osm_log_t *const log, IN const osm_log_level_t level, IN const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

static int tables(void *context)
{
	(void)context;
	return 0;
}

static void lanes(void *context, osm_physp_t *port, uint8_t in, uint8_t out, ib_slvl_table_t *table)
{
	(void)context;
	(void)port;
	(void)in;
	(void)out;
	(void)table;
	lanes_asked++;
}

static void told(struct rsm *r, struct osm_routing_engine *engine, uint64_t us)
{
	(void)r;
	(void)engine;
	(void)us;
}

/* The plugin meets an engine. */
static struct osm_routing_engine *meet(bool has_lanes, int distribute, bool over)
{
	struct osm_routing_engine *engine = &engines[n_engines++];

	CHECK(n_engines <= MOST);
	*engine = (struct osm_routing_engine) {
		.type = OSM_ROUTING_ENGINE_TYPE_MINHOP,
		.ucast_build_fwd_tables = tables,
		.update_sl2vl = has_lanes ? lanes : NULL,
	};
	rsm.opt.distribute = distribute;
	rsm.opt.voqsw_over = over;
	osm.routing_engine_list = engine;
	n_told = 0;
	rsm_engines_hook(&rsm, told);
	CHECK_EQ(n_told, 1);
	CHECK(engine->ucast_build_fwd_tables && engine->ucast_build_fwd_tables != tables);
	return engine;
}

/* What it has for lanes now calls what it had, and the distributor. */
static void check_lanes(const struct osm_routing_engine *engine, bool had)
{
	ib_slvl_table_t table = { 0 };

	CHECK(engine->update_sl2vl && engine->update_sl2vl != lanes);
	lanes_asked = lanes_shown = 0;
	engine->update_sl2vl(engine->context, NULL, 1, 2, &table);
	CHECK_EQ(lanes_asked, had);
	CHECK_EQ(lanes_shown, 1);
}

/* As OpenSM's dfsssp: whoever is nowhere has no level, and that of the others is drawn. */
static uint8_t by_chance(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
	(void)context;
	if (!osm_get_port_by_lid(&osm.subn, slid) || !osm_get_port_by_lid(&osm.subn, dlid))
		return hint;
	return rand() % 4 + (cl_ntoh16(slid) == 4 || cl_ntoh16(dlid) == 4 ? 4 : 0);
}

/* As lash: by where who has the LID is now. */
static uint8_t by_place(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
	(void)context;
	(void)hint;
	return cl_ntoh16(slid) + cl_ntoh16(dlid);
}

static uint8_t level(const struct osm_routing_engine *engine, uint16_t from, uint16_t to)
{
	return engine->path_sl(engine->context, 15, cl_hton16(from), cl_hton16(to));
}

static struct osm_routing_engine *meet_levels(osm_routing_engine_type_t type,
					      uint8_t (*path_sl)(void *context, uint8_t hint, const ib_net16_t slid,
								 const ib_net16_t dlid))
{
	struct osm_routing_engine *engine = &engines[n_engines++];

	CHECK(n_engines <= MOST);
	*engine = (struct osm_routing_engine) {
		.type = type, .ucast_build_fwd_tables = tables, .path_sl = path_sl,
	};
	osm.routing_engine_list = engine;
	rsm_engines_hook(&rsm, told);
	return engine;
}

static void compute(const struct osm_routing_engine *engine)
{
	CHECK_EQ(engine->ucast_build_fwd_tables(engine->context), 0);
}

/* Asked for a level it asks an engine that was met before. */
static const struct osm_routing_engine *met;

static uint8_t by_another(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
	(void)context;
	return met->path_sl(met->context, hint, slid, dlid);
}

/* OpenSM knows them, and no engine's tables are computed yet, or one has failed. */
static void before_tables(const struct osm_routing_engine *engine)
{
	/* Whatever it says: it is there to be asked. */
	for (uint16_t lid = 1; lid < 8; lid++)
		level(engine, lid, 8 - lid);
}

/*
 * LID 5 has come to where 4 was when tables were computed, which is nowhere now. What is asked in between takes
 * nothing from the stream of random numbers from which engines draw while they compute, and waits for nobody.
 */
static void levels(void)
{
	struct osm_routing_engine *engine, *chance;
	uint8_t seen = 0, sl, was[4][4];
	osm_port_t port;
	int drawn;

	CHECK_EQ(cl_ptr_vector_init(&osm.subn.port_lid_tbl, 0, 1), CL_SUCCESS);
	for (uint16_t lid = 1; lid < 8; lid++)
		cl_ptr_vector_set(&osm.subn.port_lid_tbl, lid, &port);
	rsm.opt = (struct rsm_options) { .vswitch = RSM_VSWITCH_PREPOPULATED, .steady = true };
	engine = meet_levels(OSM_ROUTING_ENGINE_TYPE_DFSSSP, by_chance);
	before_tables(engine);
	srand(1);
	drawn = rand();
	compute(engine);
	CHECK_EQ(rand(), drawn);
	cl_ptr_vector_set(&osm.subn.port_lid_tbl, 4, NULL);
	homes[5] = 4;
	chance = engine;
	for (uint16_t from = 1; from < 8; from++)
		for (uint16_t to = 1; to < 8; to++) {
			sl = level(engine, from, to);
			if (from == 4 || to == 4) {
				CHECK(sl == 15 || from == 5 || to == 5);
				continue;
			}
			CHECK_EQ(sl / 4, from == 5 || to == 5);
			seen |= 1 << sl % 4;
			for (int i = 0; i < 50; i++)
				CHECK_EQ(level(engine, from, to), sl);
		}
	CHECK_EQ(seen, 0xf);
	CHECK(!osm_get_port_by_lid_ho(&osm.subn, 4));
	homes[5] = 0;
	for (uint16_t from = 1; from < 4; from++)
		for (uint16_t to = 1; to < 4; to++)
			was[from][to] = level(engine, from, to);
	compute(engine);
	for (uint16_t from = 1; from < 4; from++)
		for (uint16_t to = 1; to < 4; to++)
			CHECK_EQ(level(engine, from, to), was[from][to]);

	homes[5] = 4;
	met = chance;
	engine = meet_levels(OSM_ROUTING_ENGINE_TYPE_DFSSSP, by_another);
	before_tables(engine);
	compute(engine);
	CHECK_EQ(level(engine, 1, 2), level(chance, 1, 2));

	/* Who finds a LID by itself is not told where it was, whatever else is asked of it. */
	rsm.opt.sm_sl = true;
	osm.subn.opt.sm_sl = 9;
	osm.subn.sm_base_lid = cl_hton16(7);
	engine = meet_levels(OSM_ROUTING_ENGINE_TYPE_LASH, by_place);
	CHECK_EQ(level(engine, 5, 2), 7);
	CHECK_EQ(level(engine, 5, 7), 9);
	before_tables(engine);

	/* Where VMs do not move only who draws lots is not asked each time. */
	rsm.opt = (struct rsm_options) { .steady = true };
	CHECK(meet_levels(OSM_ROUTING_ENGINE_TYPE_LASH, by_place)->path_sl == by_place);
	CHECK(meet_levels(OSM_ROUTING_ENGINE_TYPE_EXTERNAL, by_place)->path_sl == by_place);
	CHECK(meet_levels(OSM_ROUTING_ENGINE_TYPE_DFSSSP, by_chance)->path_sl != by_chance);
	rsm.opt.steady = false;
	CHECK(meet_levels(OSM_ROUTING_ENGINE_TYPE_DFSSSP, by_chance)->path_sl == by_chance);
	cl_ptr_vector_destroy(&osm.subn.port_lid_tbl);
	rsm_engines_free();
}

int main(void)
{
	/* As the options are when nobody has set any; and the ways that leave SLtoVL tables alone. */
	CHECK(!meet(false, 0, false)->update_sl2vl);
	CHECK(!meet(false, 1 + RSM_DISTRIBUTE_DYNAMIC, false)->update_sl2vl);
	CHECK(!meet(false, 1 + RSM_DISTRIBUTE_STATIC, false)->update_sl2vl);
	CHECK(!meet(false, 1 + RSM_DISTRIBUTE_PORTS, false)->update_sl2vl);
	check_lanes(meet(false, 1 + RSM_DISTRIBUTE_TURNS, false), false);
	check_lanes(meet(false, 0, true), false);
	check_lanes(meet(true, 0, false), true);
	check_lanes(meet(true, 1 + RSM_DISTRIBUTE_TURNS, false), true);
	levels();
	puts("ok");
	return 0;
}
