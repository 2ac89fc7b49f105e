// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where VMs are, from ports that answer, do not, or say that they can not: sm/vm_learn.c with the addresses, SMPs, words
 * and places, OpenSM's own dispatcher, and an HCA of the test's whose first port is the hypervisor's. What is
 * learned when a subnet manager is killed is test_handover.py's.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "check.h"
#include "opensm_alias.h"
#include "plugin.h"
#include "slots.h"
#include "smp.h"
#include "vm_jobs.h"
#include "vm_learn.h"
#include "vm_words.h"

#include <opensm/osm_db_pack.h>
#include <opensm/osm_msgdef.h>
#include <opensm/osm_node.h>
#include <opensm/osm_switch.h>

#define N	4
#define GUIDS	8
#define SWITCH	0x1000ull
#define VM	0x77000000ull

/* Structures of OpenSM's end with their first port. */
static struct {
	osm_node_t node;
	osm_physp_t ports[N];
} sw_node;
static struct host {
	osm_node_t node;
	osm_physp_t port_1;
	osm_port_t port;
	uint64_t says;		/* the alias GUID that it has */
	ib_net16_t status;	/* of its answers */
	bool dumb;
	uint16_t remembered;	/* guid2lid */
	unsigned int asked;
} hosts[N];
static osm_opensm_t osm;
static struct rsm_vms vms;
static struct rsm rsm = { .osm = &osm, .vms = &vms, .opt.vswitch = RSM_VSWITCH_PREPOPULATED };
static osm_switch_t sw;
static cl_disp_reg_handle_t poster;
static void (*meanwhile)(void);

volatile unsigned int osm_exit_flag;

static void is_answered(void *context, void *data)
{
	osm_madw_t *madw = data;

	(void)context;
	free((void *)madw->p_mad);
	free(madw);
	pthread_mutex_lock(&osm.stats.mutex);
	osm.stats.qp0_mads_outstanding--;
	pthread_cond_signal(&osm.stats.cond);
	pthread_mutex_unlock(&osm.stats.mutex);
}

static struct host *host_of(ib_net64_t guid)
{
	for (int i = 0; i < N; i++)
		if (hosts[i].port.guid == guid)
			return &hosts[i];
	return NULL;
}

/* It is answered at once, or has been given up at once. */
ib_api_status_t osm_req_get(IN osm_sm_t *sm, IN const osm_dr_path_t *path, IN ib_net16_t attribute,
			    IN ib_net32_t modifier, IN boolean_t find_mkey, IN ib_net64_t mkey, IN uint32_t timeout,
			    IN cl_disp_msgid_t err_msg, IN const osm_madw_context_t *context)
{
	struct host *host = host_of(context->gi_context.port_guid);
	ib_net64_t guids[GUIDS] = { host->port.guid, cl_hton64(host->says) };
	osm_madw_t *madw;
	ib_smp_t *smp;

	(void)sm;
	(void)path;
	(void)modifier;
	(void)find_mkey;
	(void)mkey;
	(void)timeout;
	(void)err_msg;
	CHECK_EQ(attribute, IB_MAD_ATTR_GUID_INFO);
	host->asked++;
	if (host->dumb)
		return IB_SUCCESS;
	madw = calloc(1, sizeof(*madw));
	smp = calloc(1, MAD_BLOCK_SIZE);
	smp->attr_id = attribute;
	smp->status = host->status;
	memcpy(smp->data, guids, sizeof(guids));
	madw->p_mad = (ib_mad_t *)smp;
	madw->context = *context;
	pthread_mutex_lock(&osm.stats.mutex);
	osm.stats.qp0_mads_outstanding++;
	pthread_mutex_unlock(&osm.stats.mutex);
	CHECK_EQ(cl_disp_post(poster, OSM_MSG_MAD_GUID_INFO, madw, is_answered, NULL), CL_SUCCESS);
	return IB_SUCCESS;
}

/* OpenSM waits for the end of this. */
void osm_gi_rcv_process(void *context, void *data);
void osm_gi_rcv_process(void *context, void *data)
{
	(void)context;
	(void)data;
	if (meanwhile) {
		CL_PLOCK_EXCL_ACQUIRE(&osm.lock);
		meanwhile();
		CL_PLOCK_RELEASE(&osm.lock);
	}
	meanwhile = NULL;
}

osm_madw_t *osm_prepare_req_set(IN osm_sm_t *sm, IN const osm_dr_path_t *path, IN const uint8_t *payload,
				IN size_t size, IN ib_net16_t attribute, IN ib_net32_t modifier,
				IN boolean_t find_mkey, IN ib_net64_t mkey, IN uint32_t timeout,
				IN cl_disp_msgid_t err_msg, IN const osm_madw_context_t *context)
{
	ib_net64_t guid;

	(void)sm;
	(void)path;
	(void)size;
	(void)modifier;
	(void)find_mkey;
	(void)mkey;
	(void)timeout;
	(void)err_msg;
	CHECK_EQ(attribute, IB_MAD_ATTR_GUID_INFO);
	memcpy(&guid, payload + sizeof(guid), sizeof(guid));
	host_of(context->gi_context.port_guid)->says = cl_ntoh64(guid);
	return calloc(1, sizeof(osm_madw_t));
}

void osm_send_req_mad(IN osm_sm_t *sm, IN osm_madw_t *madw)
{
	(void)sm;
	free(madw);
}

osm_switch_t *osm_get_switch_by_guid(IN osm_subn_t const *subn, IN ib_net64_t guid)
{
	(void)subn;
	return guid == cl_hton64(SWITCH) ? &sw : NULL;
}

osm_port_t *osm_get_port_by_guid(IN osm_subn_t const *subn, IN ib_net64_t guid)
{
	struct host *host = host_of(guid);

	(void)subn;
	return host ? &host->port : NULL;
}

osm_port_t *osm_get_port_by_lid_ho(const osm_subn_t *subn, uint16_t lid)
{
	(void)subn;
	return lid >= 5 && lid < 5 + N ? &hosts[lid - 5].port : NULL;
}

osm_port_t *osm_get_port_by_alias_guid(IN osm_subn_t const *subn, IN ib_net64_t guid)
{
	osm_alias_guid_t *alias = (osm_alias_guid_t *)cl_qmap_get(&subn->alias_port_guid_tbl, guid);

	return &alias->map_item == cl_qmap_end(&subn->alias_port_guid_tbl) ? NULL : alias->p_base_port;
}

int osm_db_guid2lid_set(IN osm_db_domain_t *domain, IN uint64_t guid, IN uint16_t first, IN uint16_t last)
{
	(void)domain;
	(void)last;
	host_of(cl_hton64(guid))->remembered = first;
	return 0;
}

int osm_db_guid2lid_get(IN osm_db_domain_t *domain, IN uint64_t guid, OUT uint16_t *first, OUT uint16_t *last)
{
	struct host *host = host_of(cl_hton64(guid));

	(void)domain;
	if (!host || !host->remembered)
		return 1;
	*first = *last = host->remembered;
	return 0;
}

int osm_db_guid2lid_delete(IN osm_db_domain_t *domain, IN uint64_t guid)
{
	(void)domain;
	host_of(cl_hton64(guid))->remembered = 0;
	return 0;
}

int osm_db_guid2lid_guids(IN osm_db_domain_t *domain, OUT cl_qlist_t *guids)
{
	(void)domain;
	for (int i = 0; i < N; i++) {
		osm_db_guid_elem_t *element;

		if (!hosts[i].remembered)
			continue;
		element = calloc(1, sizeof(*element));
		element->guid = cl_ntoh64(hosts[i].port.guid);
		cl_qlist_insert_tail(guids, &element->item);
	}
	return 0;
}

void rsm_wake(struct rsm *r)
{
	(void)r;
}

bool rsm_slots_forget(uint16_t lid)
{
	(void)lid;
	return false;
}

void rsm_slots_learn(osm_port_t *const *holder)
{
	(void)holder;
}

static bool nobody(void *context, const struct rsm_place *place)
{
	(void)context;
	(void)place;
	return false;
}

/* What is said of a VM that shall come to a place: 0 if it may. */
static int place(const char *word, const char *error)
{
	struct rsm_vm_move move = { 0 };
	char why[256] = "";
	int rc = rsm_vm_find_place(&rsm, word, nobody, NULL, &move, why, sizeof(why));

	if (!strstr(why, error))
		fprintf(stderr, "\"%s\" is not in \"%s\"\n", error, why);
	CHECK(strstr(why, error));
	return rc;
}

static void sweep(void)
{
	osm.subn.subnet_initialization_error = FALSE;
	rsm_vm_learn(&rsm);
	osm.subn.first_time_master_sweep = FALSE;
}

static uint64_t known(int i)
{
	return rsm_vm_guid(&hosts[i].port);
}

/* Another one was master meanwhile, or this one has just begun. */
static void begin(bool started)
{
	osm.subn.first_time_master_sweep = TRUE;
	for (int i = 0; i < N; i++) {
		struct host *host = &hosts[i];

		if (started) {
			rsm_vm_forget_guids(&rsm, &host->port);
			free(host->port_1.p_guids);
			host->port_1.p_guids = NULL;
		}
		host->says = 0;
		host->dumb = false;
		host->status = host->asked = host->remembered = 0;
		osm_physp_set_base_lid(&host->port_1, cl_hton16(5 + i));
	}
}

/* Nobody gets the place of a VM that is not known, nor its addresses; it is asked until it says what it has. */
static void unanswered(bool started)
{
	struct rsm_vm_move move = { 0 };
	char why[256];

	begin(started);
	hosts[1].says = VM + 1;
	hosts[2].says = VM + 2;
	hosts[2].dumb = hosts[3].dumb = true;
	sweep();
	CHECK(osm.subn.subnet_initialization_error);
	CHECK(known(1) == VM + 1 && !known(2));
	CHECK_EQ(rsm_vm_unknown(&rsm), 2);
	/* Also while a sweep has not come to its port yet. */
	hosts[2].port.discovery_count = 0;
	CHECK_EQ(rsm_vm_unknown(&rsm), 2);
	hosts[2].port.discovery_count = 1;
	CHECK_EQ(place("5", "but not of all it is known"), -EAGAIN);
	CHECK_EQ(place("6", "another VM is there"), -EEXIST);
	CHECK_EQ(place("7", "which VM is there is not known"), -EAGAIN);
	CHECK_EQ(rsm_vm_find(&rsm, "7", &move, why, sizeof(why)), -EAGAIN);
	CHECK_EQ(move.lid, 7);
	/* With its port it may go. */
	CHECK_EQ(rsm_vm_find(&rsm, "0x10022", &move, why, sizeof(why)), 0);
	/* One of the two answers. */
	hosts[3].dumb = false;
	sweep();
	CHECK(osm.subn.subnet_initialization_error);
	CHECK(hosts[1].asked == 1 && hosts[2].asked == 2 && hosts[3].asked == 2);
	CHECK_EQ(rsm_vm_unknown(&rsm), 1);
	CHECK_EQ(place("5", ""), 0);
	CHECK_EQ(place("7", "which VM is there is not known"), -EAGAIN);
	/* No sweep follows for ever for one that never answers; but in each it is asked. */
	for (int i = 0; i < 10; i++)
		sweep();
	CHECK(!osm.subn.subnet_initialization_error);
	CHECK(!known(2) && hosts[2].asked == 12 && hosts[1].asked == 1);
	hosts[2].dumb = false;
	sweep();
	CHECK_EQ(known(2), VM + 2);
	CHECK_EQ(rsm_vm_unknown(&rsm), 0);
	CHECK(osm_get_port_by_alias_guid(&osm.subn, cl_hton64(VM + 2)) == &hosts[2].port);
	sweep();
	CHECK(hosts[2].asked == 13 && !osm.subn.subnet_initialization_error);
	/* Who has been standby does not go by what it knew once. */
	begin(false);
	hosts[2].dumb = true;
	hosts[3].says = VM + 2;
	sweep();
	CHECK(!known(1) && !known(2) && known(3) == VM + 2);
	CHECK_EQ(place("7", "which VM is there is not known"), -EAGAIN);
	hosts[2].dumb = false;
	sweep();
	CHECK(!known(2) && known(3) == VM + 2);
	CHECK_EQ(place("7", ""), 0);
}

/* Who can not say it has none, and is not asked for ever; who is busy is asked again. */
static void refused(void)
{
	begin(true);
	hosts[2].status = IB_MAD_STATUS_UNSUP_METHOD_ATTR;
	hosts[3].status = IB_MAD_STATUS_BUSY;
	hosts[3].says = VM;
	sweep();
	CHECK(osm.subn.subnet_initialization_error);
	CHECK_EQ(place("7", ""), 0);
	CHECK_EQ(place("8", "which VM is there is not known"), -EAGAIN);
	hosts[3].status = 0;
	sweep();
	CHECK(hosts[2].asked == 1 && hosts[3].asked == 2 && known(3) == VM);
	CHECK(!osm.subn.subnet_initialization_error);
}

static void is_set(void)
{
	CHECK_EQ(place("7", "which VM is there is not known"), -EAGAIN);
	CHECK_EQ(rsm_vm_set_guid(&rsm, &hosts[2].port, VM), 0);
}

/* One that comes later, and gets a GUID while it is asked: its answer is older. */
static void set_meanwhile(void)
{
	begin(true);
	sweep();
	CHECK_EQ(hosts[2].asked, 1);
	free(hosts[2].port_1.p_guids);
	hosts[2].port_1.p_guids = NULL;
	meanwhile = is_set;
	sweep();
	CHECK_EQ(hosts[2].asked, 2);
	CHECK_EQ(known(2), VM);
	CHECK(hosts[2].says == VM && osm_get_port_by_alias_guid(&osm.subn, cl_hton64(VM)) == &hosts[2].port);
	CHECK_EQ(known(3), 0);
}

/* Two have LID 8; @keeps is who has it then, and is remembered to. */
static void doubled(int keeps, uint16_t first, uint16_t second)
{
	hosts[1].remembered = first;
	hosts[3].remembered = second;
	osm_physp_set_base_lid(&hosts[1].port_1, cl_hton16(8));
	osm_physp_set_base_lid(&hosts[3].port_1, cl_hton16(8));
	sweep();
	for (int i = 1; i < N; i += 2)
		CHECK_EQ(cl_ntoh16(osm_port_get_base_lid(&hosts[i].port)), i == keeps ? 8 : 0);
	CHECK(hosts[4 - keeps].remembered != 8);
}

static void one_lid(void)
{
	/* One has come back with the LID that it had once, the other one has been there. */
	begin(true);
	doubled(3, 6, 8);
	CHECK(hosts[3].remembered == 8 && hosts[1].remembered == 6);
	begin(true);
	doubled(1, 8, 0);
	CHECK_EQ(hosts[1].remembered, 8);
	/* The same where both have a VM. */
	begin(true);
	hosts[1].says = VM + 1;
	hosts[3].says = VM + 3;
	doubled(3, 0, 8);
	CHECK_EQ(hosts[3].remembered, 8);
	/* A VM has gone from one to the other; what is remembered is of before. */
	begin(true);
	hosts[3].says = VM;
	doubled(3, 8, 6);
	begin(true);
	hosts[1].says = VM;
	doubled(1, 6, 8);
	/* It has, but does not say so. */
	begin(true);
	hosts[3].says = VM;
	hosts[3].dumb = true;
	doubled(3, 8, 6);
}

int main(void)
{
	char name[] = "vSwitch of a test";

	CHECK_EQ(cl_plock_init(&osm.lock), CL_SUCCESS);
	CHECK_EQ(cl_disp_init(&osm.disp, 1, "test"), CL_SUCCESS);
	CHECK(!pthread_mutex_init(&osm.stats.mutex, NULL) && !pthread_cond_init(&osm.stats.cond, NULL));
	poster = cl_disp_register(&osm.disp, CL_DISP_MSGID_NONE, NULL, NULL);
	cl_qmap_init(&osm.subn.alias_port_guid_tbl);
	cl_qmap_init(&osm.subn.port_guid_tbl);
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	strcpy(rsm.opt.vswitch_name, "vSwitch");
	sw = (osm_switch_t) { .p_node = &sw_node.node, .num_ports = N + 1 };
	sw_node.node.node_info.node_guid = cl_hton64(SWITCH);
	sw_node.node.physp_tbl_size = N + 1;
	sw_node.node.print_desc = name;
	sw_node.node.sw = &sw;
	for (int i = 0; i < N; i++) {
		osm_physp_t *at = &sw_node.ports[i], *physp = &hosts[i].port_1;

		at->port_guid = cl_hton64(SWITCH);
		at->port_num = i + 1;
		at->p_node = &sw_node.node;
		at->p_remote_physp = physp;
		hosts[i].node.node_info.node_guid = cl_hton64(0x10 + i);
		physp->port_guid = cl_hton64(0x10020 + i);
		physp->port_num = 1;
		physp->p_node = &hosts[i].node;
		physp->p_remote_physp = at;
		physp->port_info.guid_cap = GUIDS;
		hosts[i].port = (osm_port_t) { .guid = physp->port_guid, .p_node = &hosts[i].node, .p_physp = physp,
					       .discovery_count = 1 };
		cl_qmap_insert(&osm.subn.port_guid_tbl, hosts[i].port.guid, &hosts[i].port.map_item);
	}
	CHECK_EQ(rsm_vm_address_start(&rsm), 0);

	unanswered(true);
	unanswered(false);
	refused();
	set_meanwhile();
	one_lid();

	begin(true);
	rsm_vm_learn_free();
	cl_disp_shutdown(&osm.disp);
	cl_disp_destroy(&osm.disp);
	cl_plock_destroy(&osm.lock);
	puts("ok");
	return 0;
}
