// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which links are waited for: those that are up and not active at one end, and by which tables lead to somebody
 * whose path is news. Two switches with a cable between their ports 2, and a host at port 1 of the first.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "links.h"
#include "plugin.h"

#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

#define PORTS	3	/* with port 0 */
#define HERE	5	/* the LID at the first switch's port 1, */
#define THERE	130	/* and one behind its port 2 */
#define N_LFT	192

static osm_opensm_t osm;
static struct rsm rsm = { .osm = &osm };
static osm_node_t *nodes[3];
static osm_switch_t switches[2];
static uint8_t lft[2][N_LFT];
static uint16_t news;

static bool is_news(const struct rsm *plugin, uint16_t lid)
{
	CHECK(plugin == &rsm);
	return lid == news;
}

static bool waits(uint16_t lid)
{
	news = lid;
	return rsm_links_wait(&rsm, is_news);
}

static osm_physp_t *port(int node, int n)
{
	return &nodes[node]->physp_table[n];
}

static void set(int node, int n, uint8_t state)
{
	ib_port_info_set_port_state(&port(node, n)->port_info, state);
}

static osm_node_t *node_new(void)
{
	osm_node_t *node = calloc(1, sizeof(*node) + PORTS * sizeof(osm_physp_t));

	CHECK(node);
	node->physp_tbl_size = PORTS;
	for (int n = 1; n < PORTS; n++) {
		node->physp_table[n].port_guid = cl_hton64(1);
		node->physp_table[n].p_node = node;
		ib_port_info_set_port_state(&node->physp_table[n].port_info, IB_LINK_DOWN);
	}
	return node;
}

static void cable(int a, int at, int b, int bt)
{
	port(a, at)->p_remote_physp = port(b, bt);
	port(b, bt)->p_remote_physp = port(a, at);
	set(a, at, IB_LINK_ACTIVE);
	set(b, bt, IB_LINK_ACTIVE);
}

static void make(void)
{
	cl_qmap_init(&osm.subn.sw_guid_tbl);
	for (int i = 0; i < 3; i++)
		nodes[i] = node_new();
	for (int i = 0; i < 2; i++) {
		memset(lft[i], OSM_NO_PATH, sizeof(lft[i]));
		switches[i] = (osm_switch_t) {
			.p_node = nodes[i], .num_ports = PORTS, .lft = lft[i], .lft_size = N_LFT,
		};
		nodes[i]->sw = &switches[i];
		cl_qmap_insert(&osm.subn.sw_guid_tbl, i + 1, &switches[i].map_item);
	}
	cable(0, 2, 1, 2);
	cable(0, 1, 2, 1);
	lft[0][HERE] = 1;
	lft[0][THERE] = 2;
	lft[1][HERE] = 2;
}

int main(void)
{
	static const uint8_t waiting[] = { IB_LINK_INIT, IB_LINK_ARMED };

	make();
	CHECK(!waits(HERE) && !waits(THERE));
	for (int i = 0; i < 2; i++) {
		/* Of either end, to who is behind it, and to nobody else. */
		for (int end = 0; end < 2; end++) {
			set(end, 2, waiting[i]);
			CHECK(waits(HERE) && waits(THERE) && !waits(HERE + 1));
			set(end, 2, IB_LINK_ACTIVE);
		}
		/* A host's. */
		set(0, 1, waiting[i]);
		CHECK(waits(HERE) && !waits(THERE));
		set(0, 1, IB_LINK_ACTIVE);
		set(2, 1, waiting[i]);
		CHECK(waits(HERE) && !waits(THERE));
		set(2, 1, IB_LINK_ACTIVE);
	}
	/* One that is down is not made active, nor is a port without a cable. */
	set(0, 2, IB_LINK_DOWN);
	CHECK(!waits(THERE));
	set(0, 2, IB_LINK_ACTIVE);
	set(1, 1, IB_LINK_INIT);
	lft[1][THERE] = 1;
	CHECK(!waits(THERE));
	/* OpenSM does not know the port at the other end. */
	set(0, 2, IB_LINK_INIT);
	CHECK(waits(THERE));
	port(1, 2)->port_guid = 0;
	CHECK(!waits(THERE));
	port(1, 2)->port_guid = cl_hton64(1);
	/* The last entry there is, and a switch without a table. */
	set(0, 2, IB_LINK_INIT);
	lft[0][N_LFT - 1] = 2;
	CHECK(waits(N_LFT - 1));
	switches[0].lft_size = N_LFT - 1;
	CHECK(!waits(N_LFT - 1));
	switches[0].lft = NULL;
	CHECK(!waits(THERE) && waits(HERE));
	for (int i = 0; i < 3; i++)
		free(nodes[i]);
	puts("ok");
	return 0;
}
