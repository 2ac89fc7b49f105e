// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What there was before: OpenSM asks no port for its alias GUIDs, and gives virtual functions the LIDs that it
 * remembers. So who becomes subnet manager, after another one or its own restart, asks the ports when it has
 * found them, and before it gives LIDs. Where VMs are is what ports have; nothing else is needed.
 *
 * Who was killed while it moved a VM leaves two ports with the VM's LID, and perhaps both with its GUID: see
 * rsm_vm_exchange() for the order. One that has the GUID keeps the LID, the other gets a new one. Where the VM
 * is then is either place: who has asked for the move, and was not answered, asks again.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "homes.h"
#include "plugin.h"
#include "slots.h"
#include "smp.h"
#include "vm_jobs.h"
#include "vm_learn.h"

#include <opensm/osm_db_pack.h>
#include <opensm/osm_node.h>
#include <opensm/osm_port.h>

#define MOST_IN_VAIN 5 /* sweeps for ports that do not answer */

/* The first GUIDs of a port, as it has said. */
struct answer {
	struct answer *next;
	ib_net64_t port;
	ib_net64_t guids[RSM_GUIDS];
};

/* Filled in by OpenSM's dispatcher. */
static struct {
	pthread_mutex_t mutex;
	struct answer *all;
} answers = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void guids_come(struct rsm *rsm, uint64_t port, const void *guids)
{
	struct answer *answer = malloc(sizeof(*answer));

	if (!answer) {
		rsm_log(rsm, OSM_LOG_ERROR, "no memory: GUIDs of port 0x%016llx are not known",
			(unsigned long long)port);
		return;
	}
	answer->port = cl_hton64(port);
	memcpy(answer->guids, guids, sizeof(answer->guids));
	pthread_mutex_lock(&answers.mutex);
	answer->next = answers.all;
	answers.all = answer;
	pthread_mutex_unlock(&answers.mutex);
}

/* A host's port, which this sweep has found. */
static bool is_there(const osm_port_t *port)
{
	struct rsm_place place;

	return port->discovery_count && rsm_place_of(port, &place);
}

/* A port that is asked, and whether it has said something. */
struct asked {
	ib_net64_t port;
	bool heard;
};

/*
 * Ports that are asked and have not answered yet, by their GUIDs: nobody knows which VM is there. OpenSM's lock is
 * held. @in_vain: how often in a row all were asked in vain.
 */
static struct {
	struct asked *of;
	size_t n;
	unsigned int in_vain;
} silent;

static int by_port(const void *a, const void *b)
{
	const struct asked *one = a, *other = b;

	return one->port < other->port ? -1 : one->port > other->port;
}

static struct asked *find_silent(ib_net64_t port)
{
	struct asked key = { .port = port };

	return silent.n ? bsearch(&key, silent.of, silent.n, sizeof(key), by_port) : NULL;
}

/**
 * rsm_vm_knows - whether it is known which VM a port has, if any
 * @port: of a host; OpenSM's lock is held
 *
 * Return: false while it has not said so.
 */
bool rsm_vm_knows(const osm_port_t *port)
{
	return port->p_physp->port_info.guid_cap < 2 || (port->p_physp->p_guids && !find_silent(port->guid));
}

/**
 * rsm_vm_unknown - how many ports have not said which VM they have
 * @rsm: the plugin; OpenSM's lock is held
 *
 * That a sweep, which may be under way, has not come to a port yet does not mean that it is gone.
 */
unsigned int rsm_vm_unknown(struct rsm *rsm)
{
	cl_qmap_t *map = &rsm->osm->subn.port_guid_tbl;
	unsigned int n = 0;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		struct rsm_place place;

		n += rsm_place_of((osm_port_t *)i, &place) && !rsm_vm_knows((osm_port_t *)i);
	}
	return n;
}

/* Of a port that has not answered what it was told last, what it was told is right. */
static bool is_to_be_asked(const osm_port_t *port, bool anew)
{
	if (!is_there(port) || port->p_physp->port_info.guid_cap < 2)
		return false;
	return !rsm_vm_knows(port) || (anew && !rsm_vm_is_unheard(cl_ntoh64(port->guid)));
}

/* What was known of who is asked counts no more. Return: how many are, or -ENOMEM. */
static int ask(struct rsm *rsm, bool anew)
{
	cl_qmap_t *map = &rsm->osm->subn.port_guid_tbl;
	struct asked *asked = malloc((cl_qmap_count(map) + 1) * sizeof(*asked));
	size_t n = 0;

	if (!asked) {
		rsm_log(rsm, OSM_LOG_ERROR, "no memory: no port is asked for its GUIDs");
		return -ENOMEM;
	}
	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_port_t *port = (osm_port_t *)i;

		if (!is_to_be_asked(port, anew))
			continue;
		asked[n++].port = port->guid;
		if (anew)
			rsm_vm_forget_guids(rsm, port);
		/* What is not sent is not answered. */
		rsm_smp_get_guids(rsm, port);
	}
	free(silent.of);
	silent.of = asked;
	silent.n = n;
	for (size_t i = 0; i < n; i++)
		asked[i].heard = false;
	return n;
}

static void take_guids(struct rsm *rsm, const struct answer *all)
{
	for (const struct answer *answer = all; answer; answer = answer->next) {
		osm_port_t *port = osm_get_port_by_guid(&rsm->osm->subn, answer->port);
		struct asked *asked = find_silent(answer->port);

		if (asked && port && is_there(port))
			asked->heard = !rsm_vm_take_guids(rsm, port, answer->guids);
	}
}

/* Who has not answered is asked again by the next heavy sweep, for which there is a reason; but not for ever. */
static void see_to_silent(struct rsm *rsm, bool anew)
{
	size_t n = 0, was = silent.n;

	for (size_t i = 0; i < was; i++) {
		if (silent.of[i].heard)
			continue;
		silent.of[n++] = silent.of[i];
		rsm_log(rsm, OSM_LOG_ERROR, "port 0x%016llx does not say its GUIDs: it is asked again at the next sweep",
			(unsigned long long)cl_ntoh64(silent.of[i].port));
	}
	silent.n = n;
	silent.in_vain = anew || n < was ? 0 : silent.in_vain + 1;
	if (n && silent.in_vain < MOST_IN_VAIN)
		rsm->osm->subn.subnet_initialization_error = TRUE;
}

static void learn_guids(struct rsm *rsm, bool anew)
{
	struct answer *all;
	int n;

	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	n = ask(rsm, anew);
	if (n > 0)
		rsm_smp_wait(rsm);
	if (n < 0)
		rsm->osm->subn.subnet_initialization_error = TRUE;
	pthread_mutex_lock(&answers.mutex);
	all = answers.all;
	answers.all = NULL;
	pthread_mutex_unlock(&answers.mutex);
	take_guids(rsm, all);
	if (n > 0)
		see_to_silent(rsm, anew);
	CL_PLOCK_RELEASE(&rsm->osm->lock);
	while (all) {
		struct answer *next = all->next;

		free(all);
		all = next;
	}
}

static uint16_t lid_of(const osm_port_t *port)
{
	uint16_t lid = cl_ntoh16(osm_port_get_base_lid(port));

	return lid < RSM_N_LIDS ? lid : 0;
}

/*
 * How well a port that has a LID is known to have the VM whose LID that is. One that has not said it may have the GUID
 * that the other one has not.
 */
static int claim_of(struct rsm *rsm, const osm_port_t *port, uint16_t lid)
{
	uint16_t first, last;
	bool remembered = !osm_db_guid2lid_get(rsm->osm->sm.lid_mgr.p_g2l, cl_ntoh64(port->guid), &first, &last) &&
			  first == lid;

	return (rsm_vm_guid(port) ? 4 : !rsm_vm_knows(port) ? 2 : 0) + remembered;
}

/*
 * Who has which LID. Of two hosts that have the same one loses it: who has no GUID of a VM, or else, as it has come
 * back with the LID of once, who has it not in OpenSM's memory.
 */
static void find_holders(struct rsm *rsm, osm_port_t **holder)
{
	cl_qmap_t *map = &rsm->osm->subn.port_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_port_t *port = (osm_port_t *)i, *loser = port;
		uint16_t lid = lid_of(port);

		if (!port->discovery_count || !lid)
			continue;
		if (!holder[lid]) {
			holder[lid] = port;
			continue;
		}
		if (!is_there(port) || !is_there(holder[lid]))
			continue;
		if (claim_of(rsm, port, lid) > claim_of(rsm, holder[lid], lid)) {
			loser = holder[lid];
			holder[lid] = port;
		}
		rsm_log(rsm, OSM_LOG_ERROR, "LID %u was on its way from one port to another: port 0x%016llx loses it",
			lid, (unsigned long long)cl_ntoh64(loser->guid));
		osm_physp_set_base_lid(loser->p_physp, 0);
	}
}

static bool is_vf(struct rsm *rsm, const osm_port_t *port)
{
	struct rsm_place place;

	return is_there(port) && rsm_place_of(port, &place) && rsm_place_is_vf(rsm, &place);
}

/* Whether a LID that OpenSM remembers of a port is wrong: the port is a VF with another one, or a VF has that. */
static bool is_outdated(struct rsm *rsm, uint64_t guid, uint16_t lid, osm_port_t *const *holder)
{
	osm_port_t *port = osm_get_port_by_guid(&rsm->osm->subn, cl_hton64(guid));

	if (port && lid_of(port) && is_vf(rsm, port))
		return lid_of(port) != lid;
	return holder[lid] && holder[lid] != port && is_vf(rsm, holder[lid]);
}

static void correct_remembered(struct rsm *rsm, osm_port_t *const *holder)
{
	osm_lid_mgr_t *mgr = &rsm->osm->sm.lid_mgr;
	cl_qlist_t guids;
	uint16_t lid, last;

	cl_qlist_init(&guids);
	osm_db_guid2lid_guids(mgr->p_g2l, &guids);
	while (cl_qlist_count(&guids)) {
		osm_db_guid_elem_t *element = (osm_db_guid_elem_t *)cl_qlist_remove_head(&guids);

		if (!osm_db_guid2lid_get(mgr->p_g2l, element->guid, &lid, &last) && lid < RSM_N_LIDS &&
		    is_outdated(rsm, element->guid, lid, holder)) {
			osm_db_guid2lid_delete(mgr->p_g2l, element->guid);
			mgr->used_lids[lid] = 0;
		}
		free(element);
	}
}

/* What has begun and was made, or made impossible, by another subnet manager is no more to be ended here. */
static void check_begun(struct rsm *rsm, osm_port_t *const *holder)
{
	for (struct rsm_vm_job *job = rsm->vms->jobs; job; job = job->next) {
		const osm_port_t *port = holder[job->move.lid], *there = rsm_place_port(rsm, &job->move.to);
		struct rsm_place place;

		if (!job->begun)
			continue;
		if ((port && (!rsm_place_of(port, &place) || !rsm_place_is(&place, &job->move.from))) ||
		    (!job->move.carried && there && rsm_vm_guid(there))) {
			rsm_slots_forget(job->move.lid);
			__atomic_store_n(&job->overtaken, true, __ATOMIC_RELEASE);
		}
	}
}

static void learn_lids(struct rsm *rsm)
{
	osm_port_t **holder;

	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	holder = rsm->osm->subn.opt.lmc ? NULL : calloc(RSM_N_LIDS, sizeof(*holder));
	if (holder)
		find_holders(rsm, holder);
	rsm_slots_learn(holder);
	if (holder) {
		correct_remembered(rsm, holder);
		check_begun(rsm, holder);
	}
	CL_PLOCK_RELEASE(&rsm->osm->lock);
	free(holder);
}

/**
 * rsm_vm_learn - where VMs are that this subnet manager has not heard of
 * @rsm: the plugin
 *
 * In OpenSM's thread that sweeps, its lock not held, when it has found all ports: it waits for their answers.
 * Who becomes master asks all; later those that it sees for the first time, or that have not answered. A move, start
 * or stop of a VM has to do with none that is asked: see rsm_vm_knows().
 */
void rsm_vm_learn(struct rsm *rsm)
{
	osm_subn_t *subn = &rsm->osm->subn;
	bool anew = subn->sm_state != IB_SMINFO_STATE_MASTER || subn->first_time_master_sweep;
	static bool hears;

	/* Not while the plugin starts: it may yet be unloaded. Nobody has asked or set anything before the first time. */
	hears = hears || !rsm_smp_hear_guids(rsm, guids_come);
	if (!hears)
		return;
	learn_guids(rsm, anew);
	if (anew)
		learn_lids(rsm);
	rsm_wake(rsm);
}

/** rsm_vm_learn_free - when OpenSM ends */
void rsm_vm_learn_free(void)
{
	free(silent.of);
	memset(&silent, 0, sizeof(silent));
}
