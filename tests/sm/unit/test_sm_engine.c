// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which functions of an engine are replaced: sm/engine.c. With one for lanes OpenSM sets the SLtoVL tables of
 * all pairs of a switch's ports, else one that holds for all of them, where the switch can (use_optimized_slvl).
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
static int n_engines, lanes_asked, lanes_shown;

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

uint16_t rsm_slots_lid(uint16_t lid)
{
	return lid;
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

void rsm_router_weigh_equally(ib_vl_arb_table_t *block, unsigned int length, unsigned int which)
{
	(void)block;
	(void)length;
	(void)which;
}

bool rsm_over_wanted(const struct rsm *r, const struct osm_routing_engine *engine)
{
	(void)engine;
	return r->opt.voqsw_over;
}

void rsm_over_make(struct rsm *r, const struct osm_routing_engine *engine, const struct rsm_over_base *base)
{
	(void)r;
	(void)engine;
	(void)base;
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
	rsm_engines_hook(&rsm, told);
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
	puts("ok");
	return 0;
}
