// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A move whose SMPs get lost: sm/vm_move.c, sm/vm_address.c and sm/smp.c, with a switch, two hosts and a
 * transport of the test's, and OpenSM's own dispatcher, which says what was lost. (umad2sim has no time-outs.)
 */
#include <errno.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>

#include "check.h"
#include "engine.h"
#include "opensm_alias.h"
#include "paths.h"
#include "plugin.h"
#include "slots.h"
#include "smp.h"
#include "topo_view.h"
#include "vm.h"
#include "vm_learn.h"

#include <opensm/osm_db_pack.h>
#include <opensm/osm_node.h>
#include <opensm/osm_switch.h>

#define SIZE	64
#define GUIDS	8
#define VM	0x77ull

/* A host's node, with the port that is not in struct osm_node. */
struct host {
	osm_node_t node;
	osm_physp_t port_1;
	osm_port_t port;
};

static osm_opensm_t osm;
static struct rsm rsm = { .osm = &osm };
static osm_switch_t sw;
static osm_node_t sw_node;
static struct host hosts[2];
static const struct osm_port *unknown;
static osm_madw_t *sent[16];
static unsigned int n_sent;
static cl_disp_reg_handle_t poster;
static sem_t posted;

osm_madw_t *osm_prepare_req_set(IN osm_sm_t *sm, IN const osm_dr_path_t *path, IN const uint8_t *payload,
				IN size_t size, IN ib_net16_t attribute, IN ib_net32_t modifier,
				IN boolean_t find_mkey, IN ib_net64_t mkey, IN uint32_t timeout,
				IN cl_disp_msgid_t err_msg, IN const osm_madw_context_t *context)
{
	osm_madw_t *madw = calloc(1, sizeof(*madw));
	ib_smp_t *smp = calloc(1, MAD_BLOCK_SIZE);

	(void)sm;
	(void)path;
	(void)find_mkey;
	(void)mkey;
	(void)timeout;
	smp->method = IB_MAD_METHOD_SET;
	smp->attr_id = attribute;
	smp->attr_mod = modifier;
	memcpy(smp->data, payload, size);
	madw->p_mad = (ib_mad_t *)smp;
	madw->fail_msg = err_msg;
	madw->context = *context;
	return madw;
}

void osm_send_req_mad(IN osm_sm_t *sm, IN osm_madw_t *madw)
{
	(void)sm;
	CHECK(n_sent < 16);
	osm.stats.qp0_mads_outstanding++;
	sent[n_sent++] = madw;
}

volatile unsigned int osm_exit_flag;

ib_api_status_t osm_req_get(IN osm_sm_t *sm, IN const osm_dr_path_t *path, IN ib_net16_t attribute,
			    IN ib_net32_t modifier, IN boolean_t find_mkey, IN ib_net64_t mkey, IN uint32_t timeout,
			    IN cl_disp_msgid_t err_msg, IN const osm_madw_context_t *context)
{
	(void)sm;
	(void)path;
	(void)attribute;
	(void)modifier;
	(void)find_mkey;
	(void)mkey;
	(void)timeout;
	(void)err_msg;
	(void)context;
	return IB_ERROR;
}

void osm_gi_rcv_process(void *context, void *data);
void osm_gi_rcv_process(void *context, void *data)
{
	(void)context;
	(void)data;
}

osm_switch_t *osm_get_switch_by_guid(IN osm_subn_t const *subn, IN ib_net64_t guid)
{
	(void)subn;
	return guid == sw_node.node_info.node_guid ? &sw : NULL;
}

osm_port_t *osm_get_port_by_guid(IN osm_subn_t const *subn, IN ib_net64_t guid)
{
	(void)subn;
	for (int i = 0; i < 2; i++)
		if (hosts[i].port.guid == guid)
			return &hosts[i].port;
	return NULL;
}

int osm_db_guid2lid_set(IN osm_db_domain_t *domain, IN uint64_t guid, IN uint16_t first, IN uint16_t last)
{
	(void)domain;
	(void)guid;
	(void)first;
	(void)last;
	return 0;
}

uint64_t rsm_microseconds(void)
{
	return 0;
}

struct osm_port *rsm_place_port(struct rsm *r, const struct rsm_place *place)
{
	(void)r;
	return &hosts[place->port - 1].port;
}

bool rsm_vm_knows(const struct osm_port *port)
{
	return port != unknown;
}

bool rsm_is_vswitch(struct rsm *r, const struct osm_switch *at)
{
	(void)r;
	(void)at;
	return false;
}

int rsm_topo_of_subnet(struct rsm *r, struct rsm_topo *topo)
{
	(void)r;
	*topo = (struct rsm_topo) { .switches = calloc(1, sizeof(*topo->switches)), .n_switches = 1 };
	topo->switches[0].guid = cl_ntoh64(sw_node.node_info.node_guid);
	return 0;
}

void rsm_topo_free(struct rsm_topo *topo)
{
	free(topo->switches);
	*topo = (struct rsm_topo) { 0 };
}

int32_t rsm_topo_switch_index(const struct rsm_topo *topo, uint64_t guid)
{
	return topo->switches[0].guid == guid ? 0 : -1;
}

static bool limited; /* the last plan */

/* Both are at the one switch. */
int rsm_move_plan(const struct rsm_topo *topo, uint8_t *const *lft, const struct rsm_move *move,
		  struct rsm_move_plan *plan)
{
	(void)topo;
	limited = move->limited;
	*plan = (struct rsm_move_plan) { malloc(1), malloc(1), malloc(sizeof(bool)), 1, 1, 1 };
	plan->lid[0] = lft[0][move->other];
	plan->other[0] = lft[0][move->lid];
	plan->changed[0] = true;
	return 0;
}

void rsm_move_plan_free(struct rsm_move_plan *plan)
{
	free(plan->lid);
	free(plan->other);
	free(plan->changed);
	*plan = (struct rsm_move_plan) { 0 };
}

uint32_t rsm_slots_tables(const uint64_t *guids, uint32_t n, uint8_t **lft)
{
	(void)guids;
	(void)n;
	(void)lft;
	return 0;
}

bool rsm_slots_entries(struct rsm *r, const struct rsm_place *place, const uint64_t *guids, uint32_t n,
		       uint8_t *entries)
{
	(void)r;
	(void)place;
	(void)guids;
	(void)n;
	(void)entries;
	return true;
}

void rsm_slots_moved(struct rsm *r, uint16_t lid, const struct rsm_place *place)
{
	(void)r;
	(void)lid;
	(void)place;
}

bool rsm_slots_expect(uint16_t lid, const struct rsm_place *place, const struct rsm_place *from)
{
	(void)lid;
	(void)place;
	(void)from;
	return true;
}

/* The port that a LID is known to be at, hosts' LIDs being small. */
static ib_net64_t taken_along[SIZE];

void rsm_paths_take_along(struct rsm *r, uint16_t lid, ib_net64_t guid)
{
	(void)r;
	taken_along[lid] = guid;
}

/* What OpenSM does when its dispatcher is through with a MAD that was lost. */
static void is_posted(void *context, void *data)
{
	(void)context;
	(void)data;
	sem_post(&posted);
}

static void finish(unsigned int i, bool lost)
{
	osm_madw_t *madw = sent[i];
	ib_smp_t *smp = osm_madw_get_smp_ptr(madw);

	if (lost && madw->fail_msg != CL_DISP_MSGID_NONE) {
		CHECK_EQ(cl_disp_post(poster, madw->fail_msg, madw, is_posted, NULL), CL_SUCCESS);
		sem_wait(&posted);
	}
	if (smp->attr_id == IB_MAD_ATTR_LIN_FWD_TBL)
		memcpy(sw.lft, smp->data, SIZE);
	osm.stats.qp0_mads_outstanding--;
	free((void *)madw->p_mad);
	free(madw);
	sent[i] = NULL;
}

/* To a host's port, by what it is told. Returns its place, or -1. */
static int find(uint16_t attribute, int host)
{
	for (unsigned int i = 0; i < n_sent; i++) {
		osm_madw_context_t *context = sent[i] ? &sent[i]->context : NULL;

		if (context && osm_madw_get_smp_ptr(sent[i])->attr_id == attribute &&
		    hosts[host].port.guid == (attribute == IB_MAD_ATTR_GUID_INFO ?
					      context->gi_context.port_guid : context->pi_context.port_guid))
			return i;
	}
	return -1;
}

static void lose(uint16_t attribute, int host)
{
	CHECK(find(attribute, host) >= 0);
	finish(find(attribute, host), true);
}

static void answer_all(void)
{
	for (unsigned int i = 0; i < n_sent; i++)
		if (sent[i])
			finish(i, false);
	n_sent = 0;
}

/* VM is at host 0, and goes to the other one and back; what was lost of each is said. */
static void move(int from, uint16_t attribute, int at, bool unheard)
{
	struct rsm_vm_move vm = {
		.lid = cl_ntoh16(osm_port_get_base_lid(&hosts[from].port)),
		.from = { cl_ntoh64(sw_node.node_info.node_guid), from + 1 },
		.to = { cl_ntoh64(sw_node.node_info.node_guid), 2 - from },
	};
	char why[256];

	osm.subn.subnet_initialization_error = FALSE;
	CHECK_EQ(rsm_vm_plan(&rsm, &vm, why, sizeof(why)), 0);
	rsm_vm_start(&rsm, &vm);
	CHECK_EQ(n_sent, 2 + 2 + 1);
	CHECK(vm.lid < SIZE && taken_along[vm.lid] == hosts[1 - from].port.guid);
	CHECK(vm.other < SIZE && taken_along[vm.other] == hosts[from].port.guid);
	/* Until the VM's old port has lost its GUID the new one has it, and who has it has its LID. */
	CHECK_EQ(find(IB_MAD_ATTR_PORT_INFO, 1 - from), 0);
	CHECK_EQ(find(IB_MAD_ATTR_GUID_INFO, 1 - from), 1);
	CHECK_EQ(find(IB_MAD_ATTR_GUID_INFO, from), 2);
	CHECK_EQ(find(IB_MAD_ATTR_PORT_INFO, from), 3);
	CHECK(!rsm_vm_go_on(&rsm, &vm));
	if (attribute)
		lose(attribute, at);
	CHECK(!rsm_vm_go_on(&rsm, &vm));
	answer_all();
	CHECK(rsm_vm_go_on(&rsm, &vm));
	CHECK_EQ(vm.unheard, unheard);
	CHECK_EQ(osm.subn.subnet_initialization_error, unheard);
	rsm_move_plan_free(&vm.plan);
}

/* Whoever has come back since it was asked for, and has not said which VM it has, is not written to. */
static void not_known(void)
{
	struct rsm_vm_move vm = {
		.lid = cl_ntoh16(osm_port_get_base_lid(&hosts[0].port)),
		.from = { cl_ntoh64(sw_node.node_info.node_guid), 1 },
		.to = { cl_ntoh64(sw_node.node_info.node_guid), 2 },
	};
	char why[256];

	for (int i = 0; i < 2; i++) {
		unknown = &hosts[i].port;
		CHECK_EQ(rsm_vm_plan(&rsm, &vm, why, sizeof(why)), -EAGAIN);
		CHECK(strstr(why, "it is not known which VM it has"));
		/* Its port goes along, and keeps what it has. */
		vm.carried = true;
		CHECK_EQ(rsm_vm_plan(&rsm, &vm, why, sizeof(why)), 0);
		vm.carried = false;
	}
	unknown = NULL;
	rsm_move_plan_free(&vm.plan);
}

/* Where levels are for an engine's own paths there are no others. */
static void mixed_tables(void)
{
	static const osm_routing_engine_type_t own[] = {
		OSM_ROUTING_ENGINE_TYPE_LASH, OSM_ROUTING_ENGINE_TYPE_DFSSSP, OSM_ROUTING_ENGINE_TYPE_TORUS_2QOS,
	};
	static const osm_routing_engine_type_t any[] = {
		OSM_ROUTING_ENGINE_TYPE_MINHOP, OSM_ROUTING_ENGINE_TYPE_FTREE, OSM_ROUTING_ENGINE_TYPE_EXTERNAL,
	};
	struct osm_routing_engine engine = { 0 };
	struct rsm_vm_move vm = {
		.lid = cl_ntoh16(osm_port_get_base_lid(&hosts[0].port)),
		.from = { cl_ntoh64(sw_node.node_info.node_guid), 1 },
		.to = { cl_ntoh64(sw_node.node_info.node_guid), 2 },
	};
	char why[256];

	osm.routing_engine_used = &engine;
	for (int i = 0; i < 12; i++) {
		vm.limited = i % 2;
		engine.type = i / 2 < 3 ? own[i / 2] : any[i / 2 - 3];
		CHECK_EQ(rsm_vm_plan(&rsm, &vm, why, sizeof(why)), 0);
		CHECK_EQ(limited, vm.limited && i / 2 >= 3);
	}
	osm.routing_engine_used = NULL;
	rsm_move_plan_free(&vm.plan);
}

static bool has_vm(unsigned int i)
{
	ib_net64_t guid;

	memcpy(&guid, osm_madw_get_smp_ptr(sent[i])->data + sizeof(guid), sizeof(guid));
	return guid == cl_hton64(VM);
}

int main(void)
{
	CHECK_EQ(cl_disp_init(&osm.disp, 1, "test"), CL_SUCCESS);
	poster = cl_disp_register(&osm.disp, CL_DISP_MSGID_NONE, NULL, NULL);
	CHECK(poster && !sem_init(&posted, 0, 0));
	cl_qmap_init(&osm.subn.alias_port_guid_tbl);
	CHECK_EQ(cl_ptr_vector_init(&osm.subn.port_lid_tbl, 0, 64), CL_SUCCESS);
	sw_node.node_info.node_guid = cl_hton64(0x1000);
	sw_node.physp_tbl_size = 1;
	sw_node.physp_table[0].port_guid = cl_hton64(0x1000);
	sw = (osm_switch_t) { .p_node = &sw_node, .lft_size = SIZE };
	sw.lft = calloc(1, SIZE);
	sw.new_lft = calloc(1, SIZE);
	for (int i = 0; i < 2; i++) {
		osm_physp_t *physp = &hosts[i].port_1;

		hosts[i].node.node_info.node_guid = cl_hton64(0x10 + i);
		physp->port_guid = cl_hton64(0x20 + i);
		physp->port_num = 1;
		physp->p_node = &hosts[i].node;
		physp->port_info.guid_cap = GUIDS;
		physp->port_info.base_lid = cl_hton16(5 + i);
		hosts[i].port = (osm_port_t) { .guid = physp->port_guid, .p_node = &hosts[i].node,
					       .p_physp = physp, .lid = cl_hton16(5 + i) };
		sw.lft[5 + i] = sw.new_lft[5 + i] = i + 1;
	}
	CHECK_EQ(rsm_vm_address_start(&rsm), 0);
	CHECK_EQ(rsm_vm_set_guid(&rsm, &hosts[0].port, VM), 0);
	answer_all();

	not_known();
	mixed_tables();
	move(0, 0, 0, false);
	rsm_vm_repeat(&rsm);
	CHECK_EQ(n_sent, 0);
	/* OpenSM sets LIDs by itself when it sweeps. */
	move(1, IB_MAD_ATTR_PORT_INFO, 0, true);
	rsm_vm_repeat(&rsm);
	CHECK_EQ(n_sent, 0);
	/* GUIDs are set again, until that is answered. */
	move(0, IB_MAD_ATTR_GUID_INFO, 1, true);
	for (int i = 0; i < 3; i++) {
		rsm_vm_repeat(&rsm);
		CHECK(n_sent == 1 && find(IB_MAD_ATTR_GUID_INFO, 1) == 0 && has_vm(0));
		if (i < 2)
			finish(0, true);
		answer_all();
	}
	rsm_vm_repeat(&rsm);
	CHECK_EQ(n_sent, 0);
	/* What a later move says takes its place, and none is blamed for another's. */
	move(1, IB_MAD_ATTR_GUID_INFO, 1, true);
	move(0, 0, 0, false);
	rsm_vm_repeat(&rsm);
	CHECK_EQ(n_sent, 0);
	/* The same for a VM that starts or ends. */
	CHECK_EQ(rsm_vm_set_guid(&rsm, &hosts[1].port, 0), 0);
	finish(0, true);
	n_sent = 0;
	rsm_vm_repeat(&rsm);
	CHECK(n_sent == 1 && find(IB_MAD_ATTR_GUID_INFO, 1) == 0 && !has_vm(0));
	answer_all();
	/* One whose GUID is not the first entry: somebody else has set it. */
	(*hosts[1].port_1.p_guids)[3] = cl_hton64(VM);
	CHECK_EQ(rsm_vm_guid(&hosts[1].port), VM);
	CHECK_EQ(rsm_vm_set_guid(&rsm, &hosts[1].port, 0), 0);
	CHECK_EQ(rsm_vm_guid(&hosts[1].port), 0);
	answer_all();

	rsm_vm_free();
	cl_disp_shutdown(&osm.disp);
	cl_disp_destroy(&osm.disp);
	cl_ptr_vector_destroy(&osm.subn.port_lid_tbl);
	for (int i = 0; i < 2; i++)
		free(hosts[i].port_1.p_guids);
	free(sw.lft);
	free(sw.new_lft);
	puts("ok");
	return 0;
}
