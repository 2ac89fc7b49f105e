// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What becomes of tables when an engine of the plugin can not route: sm/router.c, with an engine and a subnet of
 * the test's. What OpenSM does then with them is said here again, as its osm_ucast_mgr.c does it. And what the
 * lanes of an engine weigh.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "check.h"
#include "engine.h"
#include "plugin.h"
#include "router.h"
#include "topo_view.h"

#include <opensm/osm_node.h>
#include <opensm/osm_switch.h>

#define N	3
#define SIZE	256
#define BLOCK	64

static osm_opensm_t osm;
static struct rsm rsm = { .osm = &osm };
static osm_switch_t switches[N];
static osm_node_t nodes[N];
static uint8_t set[N][SIZE];	/* in the switches themselves */
static struct osm_routing_engine engine;
static bool fails, has_lanes;
static uint8_t salt;

static uint8_t first_lane(void *context, int32_t sw, uint16_t in, uint32_t out, uint8_t sl)
{
	(void)context;
	(void)sw;
	(void)in;
	(void)out;
	(void)sl;
	return 0;
}

static int route(const struct rsm_topo *topo, const struct rsm_options *opt, struct rsm_routes *routes,
		 char *why, size_t size)
{
	(void)opt;
	for (uint32_t i = 0; i < topo->n_switches; i++)
		for (uint32_t lid = 1; lid < 200; lid++)
			routes->lft[i][lid] = 1 + (lid + i + salt) % 30;
	routes->vl = has_lanes ? first_lane : NULL;
	if (fails)
		snprintf(why, size, "it is not to");
	return fails ? -EINVAL : 0;
}

const struct rsm_router rsm_updown_router = { .name = "updown", .route = route };
const struct rsm_router rsm_pftree_router = { .name = "pftree", .route = route };
const struct rsm_router rsm_vftree_router = { .name = "vftree", .route = route };
const struct rsm_router rsm_voqsw_router = { .name = "voqsw", .route = route };

osm_switch_t *osm_get_switch_by_guid(IN osm_subn_t const *subn, IN ib_net64_t guid)
{
	(void)subn;
	for (int i = 0; i < N; i++)
		if (nodes[i].node_info.node_guid == guid)
			return &switches[i];
	return NULL;
}

int rsm_topo_of_subnet(struct rsm *r, struct rsm_topo *topo)
{
	cl_qmap_t *map = &osm.subn.sw_guid_tbl;

	(void)r;
	topo->switches = calloc(N, sizeof(*topo->switches));
	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i))
		topo->switches[topo->n_switches++].guid =
			cl_ntoh64(osm_node_get_node_guid(((osm_switch_t *)i)->p_node));
	topo->max_lid = 199;
	return 0;
}

void rsm_topo_free(struct rsm_topo *topo)
{
	free(topo->switches);
}

bool rsm_topo_way_out(const struct rsm_topo *topo, const osm_physp_t *port, uint8_t out, int32_t *sw,
		      uint32_t *to)
{
	(void)topo;
	(void)port;
	(void)out;
	(void)sw;
	(void)to;
	return false;
}

int osm_register_external_routing_engine(osm_opensm_t *o, const external_routing_engine_module_t *module,
					 void *context)
{
	if (strcmp(module->name, "updown"))
		return 0;
	engine.context = context;
	return module->setup(&engine, o);
}

/* Another microsecond each time it is asked. */
uint64_t rsm_cpu_microseconds(void)
{
	static uint64_t now;

	return ++now;
}

void osm_log(IN osm_log_t *const log, IN const osm_log_level_t level, IN const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

static void add_switch(int i)
{
	nodes[i].node_info.node_guid = cl_hton64(0x100 + 7 * ((i + 1) % N));
	switches[i] = (osm_switch_t) { .p_node = &nodes[i], .lft_size = SIZE };
	switches[i].lft = malloc(SIZE);
	switches[i].new_lft = malloc(SIZE);
	memset(switches[i].lft, OSM_NO_PATH, SIZE);
	memset(switches[i].new_lft, OSM_NO_PATH, SIZE);
	memset(set[i], OSM_NO_PATH, SIZE);
	cl_qmap_insert(&osm.subn.sw_guid_tbl, nodes[i].node_info.node_guid, &switches[i].map_item);
}

/* Sends what differs, or all. One block's MAD gets lost. Returns how many were sent. */
static int distribute(bool all, int lost_at, int lost)
{
	int n = 0;

	for (int i = 0; i < N; i++) {
		if (!switches[i].lft)
			continue;
		for (int block = 0; block < SIZE / BLOCK; block++) {
			uint8_t *now = switches[i].lft + block * BLOCK;
			const uint8_t *wanted = switches[i].new_lft + block * BLOCK;

			if (!all && !memcmp(now, wanted, BLOCK))
				continue;
			n++;
			memset(now, 0, BLOCK);
			if (i == lost_at && block == lost)
				continue;
			memcpy(now, wanted, BLOCK);
			memcpy(set[i] + block * BLOCK, wanted, BLOCK);
		}
	}
	return n;
}

static void as_made(int i, uint8_t with)
{
	for (int lid = 1; lid < 200; lid++) {
		/* Switches are indexed by the order of their GUIDs. */
		int index = (i + 1) % N - (nodes[2].node_info.node_guid ? 0 : 1);

		CHECK_EQ(set[i][lid], 1 + (lid + index + with) % 30);
	}
}

/* The copy is of as many tables as there were. */
static void check_kept(unsigned int tables)
{
	struct osm_routing_engine another = { 0 };
	uint64_t us, bytes;

	rsm_router_kept(&engine, &us, &bytes);
	CHECK_EQ(us, tables ? 1 : 0);
	CHECK(bytes >= tables * SIZE && bytes < tables * 2 * SIZE + 1);
	rsm_router_kept(&another, &us, &bytes);
	CHECK(!us && !bytes);
}

/* What lanes weigh in a block of VL arbitration that was empty, with that PortInfo:OperationalVLs. */
static void weights(unsigned int which, uint8_t vls, unsigned int *of)
{
	ib_vl_arb_table_t block = { 0 };
	osm_physp_t port = { 0 };

	ib_port_info_set_op_vls(&port.port_info, vls);
	engine.update_vlarb(engine.context, &port, 1, &block, IB_NUM_VL_ARB_ELEMENTS_IN_BLOCK, which);
	memset(of, 0, 256 * sizeof(*of));
	for (unsigned int i = 0; i < IB_NUM_VL_ARB_ELEMENTS_IN_BLOCK; i++)
		of[block.vl_entry[i].vl & ((1 << (vls - 1)) - 1)] += block.vl_entry[i].weight;
}

/* All that there are weigh the same, and none goes before others. Without lanes the weights are OpenSM's. */
static void check_weights(void)
{
	static const unsigned int lanes[] = { 0, 1, 2, 4, 8, 15 };
	unsigned int of[256];

	for (unsigned int which = 0; which < 4; which++) {
		weights(which, 5, of);
		for (unsigned int vl = 0; vl < 256; vl++)
			CHECK(!of[vl]);
	}
	has_lanes = true;
	CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), 0);
	has_lanes = false;
	for (unsigned int which = 0; which < 4; which++)
		for (uint8_t vls = 1; vls <= 5; vls++) {
			weights(which, vls, of);
			for (unsigned int vl = 0; vl < 256; vl++)
				CHECK_EQ(of[vl] > 0, !which && vl < lanes[vls]);
			for (unsigned int vl = 1; vl < lanes[vls]; vl++)
				CHECK_EQ(of[vl], of[0]);
		}
}

int main(void)
{
	cl_qmap_init(&osm.subn.sw_guid_tbl);
	CHECK_EQ(rsm_routers_register(&rsm), 0);
	add_switch(0);
	add_switch(1);

	/* None that could stay in force. */
	fails = true;
	CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), -1);
	check_kept(0);

	/* A block is lost, and from then on nothing can be routed: it is sent again all the same. */
	fails = false;
	CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), 0);
	distribute(false, 1, 1);
	CHECK_EQ(set[1][64], OSM_NO_PATH);
	fails = true;
	salt = 5;
	CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), 0);
	CHECK_EQ(distribute(false, -1, 0), 1);
	as_made(0, 0);
	as_made(1, 0);
	check_kept(2);

	/* The same with an old block in the switch, when OpenSM sends all of them anew. */
	fails = false;
	CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), 0);
	distribute(false, 0, 2);
	fails = true;
	salt = 9;
	for (int times = 0; times < 2; times++) {
		CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), 0);
		distribute(true, 0, times ? -1 : 2);
	}
	as_made(0, 5);
	as_made(1, 5);
	CHECK_EQ(distribute(false, -1, 0), 0);

	/* One that has come since keeps what it has, but not what OpenSM does not know. */
	add_switch(2);
	memset(switches[2].lft + BLOCK, 3, BLOCK);
	memset(set[2] + BLOCK, 3, BLOCK);
	memset(switches[2].lft + 2 * BLOCK, 0, BLOCK);
	CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), 0);
	CHECK_EQ(distribute(false, -1, 0), 1);
	CHECK_EQ(set[2][BLOCK], 3);
	CHECK_EQ(set[2][2 * BLOCK], OSM_NO_PATH);
	fails = false;
	CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), 0);
	distribute(false, -1, 0);
	fails = true;
	CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), 0);
	CHECK_EQ(distribute(true, -1, 0), N * SIZE / BLOCK);
	for (int i = 0; i < N; i++)
		as_made(i, 9);

	/* A switch goes: the others stay. */
	cl_qmap_remove_item(&osm.subn.sw_guid_tbl, &switches[0].map_item);
	CHECK_EQ(engine.ucast_build_fwd_tables(engine.context), 0);
	CHECK_EQ(distribute(false, -1, 0), 0);

	fails = false;
	check_weights();

	rsm_routers_free();
	for (int i = 0; i < N; i++) {
		free(switches[i].lft);
		free(switches[i].new_lft);
	}
	puts("ok");
	return 0;
}
