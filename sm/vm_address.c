// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The addresses of a VM: the LID of the VF's port and its alias GUIDs. OpenSM's SA is right at once: who
 * asks while SMPs are on their way gets what will be.
 *
 * A port that gives no answer may have its old ones. What a LID is to be OpenSM's next sweep sees to; of
 * GUIDs it thinks that they are set, so they are set again behind it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"
#include "smp.h"
#include "vm.h"

#include <opensm/osm_db_pack.h>
#include <opensm/osm_node.h>
#include <opensm/osm_port.h>

#define MOST_UNHEARD 256

/* Ports that have not answered, and whether to Set(GUIDInfo); each once for both. */
static struct {
	pthread_mutex_t mutex;
	struct unheard {
		uint64_t port;
		bool guids;
	} of[MOST_UNHEARD];
	unsigned int n;
} unheard = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void remember_unheard(uint64_t port, bool guids)
{
	pthread_mutex_lock(&unheard.mutex);
	if (unheard.n < MOST_UNHEARD)
		unheard.of[unheard.n++] = (struct unheard) { port, guids };
	pthread_mutex_unlock(&unheard.mutex);
}

/* OpenSM sees by itself to a heavy sweep when it is PortInfo. */
static void not_heard(struct rsm *rsm, uint64_t port, bool guids)
{
	remember_unheard(port, guids);
	rsm->osm->subn.subnet_initialization_error = TRUE;
	rsm_log(rsm, OSM_LOG_ERROR, "port 0x%016llx does not answer: its %s is set again at the next sweep",
		(unsigned long long)port, guids ? "GUID" : "LID");
}

static void forget_unheard(uint64_t port)
{
	pthread_mutex_lock(&unheard.mutex);
	for (unsigned int i = 0; i < unheard.n; i++)
		if (unheard.of[i].port == port)
			unheard.of[i--] = unheard.of[--unheard.n];
	pthread_mutex_unlock(&unheard.mutex);
}

/** rsm_vm_is_unheard - whether a port, by its GUID, has not answered what it was told last */
bool rsm_vm_is_unheard(uint64_t port)
{
	bool found = false;

	pthread_mutex_lock(&unheard.mutex);
	for (unsigned int i = 0; i < unheard.n; i++)
		found |= unheard.of[i].port == port;
	pthread_mutex_unlock(&unheard.mutex);
	return found;
}

/**
 * rsm_vm_repeat - set GUIDs again of which no port has said that it has them
 * @rsm: the plugin; a heavy sweep has ended
 */
void rsm_vm_repeat(struct rsm *rsm)
{
	struct unheard of[MOST_UNHEARD];
	unsigned int n;

	pthread_mutex_lock(&unheard.mutex);
	n = unheard.n;
	memcpy(of, unheard.of, n * sizeof(*of));
	unheard.n = 0;
	pthread_mutex_unlock(&unheard.mutex);
	for (unsigned int i = 0; i < n; i++) {
		osm_port_t *port = of[i].guids ?
			osm_get_port_by_guid(&rsm->osm->subn, cl_hton64(of[i].port)) : NULL;

		if (port && port->p_physp->p_guids)
			rsm_smp_set_guids(rsm, port);
	}
}

/**
 * rsm_vm_address_start - before any is set
 * @rsm: the plugin, while it starts
 *
 * Return: 0 or -ENOMEM.
 */
int rsm_vm_address_start(struct rsm *rsm)
{
	unheard.n = 0;
	return rsm_smp_watch(rsm, not_heard);
}

static ib_net64_t *guids_of(const osm_port_t *port)
{
	return port->p_physp->p_guids ? *port->p_physp->p_guids : NULL;
}

/* As OpenSM allocates them when the SA is asked to set one. */
static ib_net64_t *make_guids(osm_port_t *port)
{
	size_t n = (port->p_physp->port_info.guid_cap + RSM_GUIDS - 1) / RSM_GUIDS * RSM_GUIDS;

	if (!port->p_physp->p_guids) {
		port->p_physp->p_guids = calloc(n ? n : RSM_GUIDS, sizeof(ib_net64_t));
		if (!port->p_physp->p_guids)
			return NULL;
		(*port->p_physp->p_guids)[0] = port->p_physp->port_guid;
	}
	return *port->p_physp->p_guids;
}

/* The entry of the VM's GUID, or where it is to be: the first but the port's own. Others set it by the SA, too. */
static int entry_of_vm(const ib_net64_t *guids)
{
	for (int i = 1; i < RSM_GUIDS; i++)
		if (guids[i])
			return i;
	return 1;
}

/** rsm_vm_guid - the first alias GUID of a port; 0: it has none */
uint64_t rsm_vm_guid(const osm_port_t *port)
{
	ib_net64_t *guids = guids_of(port);

	return guids ? cl_ntoh64(guids[entry_of_vm(guids)]) : 0;
}

/**
 * rsm_vm_set_guid - a VM starts or ends
 * @rsm: the plugin
 * @port: of its VF
 * @guid: of the VM; 0: the VF has none any more
 *
 * Return: 0, -EEXIST if another port has it, -EINVAL if the port can have none, or -ENOMEM.
 */
int rsm_vm_set_guid(struct rsm *rsm, osm_port_t *port, uint64_t guid)
{
	cl_qmap_t *table = &rsm->osm->subn.alias_port_guid_tbl;
	osm_alias_guid_t *alias = NULL;
	ib_net64_t *guids, *entry;
	osm_alias_guid_t *old;

	if (port->p_physp->port_info.guid_cap < 2)
		return -EINVAL;
	guids = make_guids(port);
	if (!guids)
		return -ENOMEM;
	entry = guids + entry_of_vm(guids);
	if (guid && cl_qmap_get(table, cl_hton64(guid)) != cl_qmap_end(table))
		return *entry == cl_hton64(guid) ? 0 : -EEXIST;
	if (guid) {
		alias = osm_alias_guid_new(cl_hton64(guid), port);
		if (!alias)
			return -ENOMEM;
	}
	old = (osm_alias_guid_t *)cl_qmap_get(table, *entry);
	if (*entry && &old->map_item != cl_qmap_end(table)) {
		cl_qmap_remove_item(table, &old->map_item);
		osm_alias_guid_delete(&old);
	}
	if (alias)
		cl_qmap_insert(table, alias->alias_guid, &alias->map_item);
	*entry = cl_hton64(guid);
	forget_unheard(cl_ntoh64(osm_port_get_guid(port)));
	return rsm_smp_set_guids(rsm, port);
}

/* Takes an alias out of OpenSM's table if it is that port's, or that of one that has gone. */
static void remove_alias(struct rsm *rsm, ib_net64_t guid, const osm_port_t *port)
{
	cl_qmap_t *table = &rsm->osm->subn.alias_port_guid_tbl;
	osm_alias_guid_t *alias = (osm_alias_guid_t *)cl_qmap_get(table, guid);

	if (&alias->map_item == cl_qmap_end(table) || guid == alias->p_base_port->guid ||
	    (alias->p_base_port != port && alias->p_base_port->discovery_count))
		return;
	cl_qmap_remove_item(table, &alias->map_item);
	osm_alias_guid_delete(&alias);
}

/**
 * rsm_vm_forget_guids - what OpenSM thinks that a port's alias GUIDs are
 * @rsm: the plugin
 * @port: which will be said to have others, or the same
 */
void rsm_vm_forget_guids(struct rsm *rsm, osm_port_t *port)
{
	ib_net64_t *guids = guids_of(port);

	for (int i = 1; guids && i < RSM_GUIDS; i++) {
		if (guids[i])
			remove_alias(rsm, guids[i], port);
		guids[i] = 0;
	}
}

/**
 * rsm_vm_take_guids - have the SA know alias GUIDs that a port has
 * @rsm: the plugin
 * @port: it; what the SA has been told to set there since it was asked stays
 * @guids: RSM_GUIDS of them, with its own
 *
 * What another port has already this one loses when rsm_vm_repeat() is called.
 * Return: 0 or -ENOMEM.
 */
int rsm_vm_take_guids(struct rsm *rsm, osm_port_t *port, const ib_net64_t *guids)
{
	cl_qmap_t *table = &rsm->osm->subn.alias_port_guid_tbl;
	ib_net64_t *own = make_guids(port);
	bool doubled = false;

	for (int i = 1; own && i < RSM_GUIDS && i < port->p_physp->port_info.guid_cap; i++) {
		osm_alias_guid_t *alias;

		if (!guids[i] || own[i])
			continue;
		remove_alias(rsm, guids[i], port);
		alias = cl_qmap_get(table, guids[i]) == cl_qmap_end(table) ?
			osm_alias_guid_new(guids[i], port) : NULL;
		if (alias) {
			cl_qmap_insert(table, alias->alias_guid, &alias->map_item);
			own[i] = guids[i];
			continue;
		}
		rsm_log(rsm, OSM_LOG_ERROR, "GUID 0x%016llx is another port's: port 0x%016llx loses it",
			(unsigned long long)cl_ntoh64(guids[i]), (unsigned long long)cl_ntoh64(port->guid));
		doubled = true;
	}
	if (doubled)
		remember_unheard(cl_ntoh64(port->guid), true);
	return own ? 0 : -ENOMEM;
}

static void take_lid(struct rsm *rsm, osm_port_t *port, uint16_t lid, struct rsm_vm_counts *counts)
{
	osm_subn_t *subn = &rsm->osm->subn;

	counts->lids += !rsm_smp_set_lid(rsm, port, lid);
	osm_physp_set_base_lid(port->p_physp, cl_hton16(lid));
	port->lid = cl_hton16(lid);
	cl_ptr_vector_set(&subn->port_lid_tbl, lid, port);
	osm_db_guid2lid_set(rsm->osm->sm.lid_mgr.p_g2l, cl_ntoh64(osm_port_get_guid(port)), lid,
			    lid);
}

static void exchange_guids(struct rsm *rsm, osm_port_t *from, osm_port_t *to,
			   struct rsm_vm_counts *counts)
{
	cl_qmap_t *table = &rsm->osm->subn.alias_port_guid_tbl;
	ib_net64_t *one = make_guids(from), *other = make_guids(to);

	if (!one || !other) {
		rsm_log(rsm, OSM_LOG_ERROR, "no memory: a VM has lost its GUID");
		return;
	}
	for (int i = 1; i < RSM_GUIDS; i++) {
		ib_net64_t guid = one[i];

		one[i] = other[i];
		other[i] = guid;
	}
	for (cl_map_item_t *i = cl_qmap_head(table); i != cl_qmap_end(table); i = cl_qmap_next(i)) {
		osm_alias_guid_t *alias = (osm_alias_guid_t *)i;

		if (alias->p_base_port == from && alias->alias_guid != osm_port_get_guid(from))
			alias->p_base_port = to;
		else if (alias->p_base_port == to && alias->alias_guid != osm_port_get_guid(to))
			alias->p_base_port = from;
	}
	counts->guids += !rsm_smp_set_guids(rsm, to);
	counts->guids += !rsm_smp_set_guids(rsm, from);
}

/**
 * rsm_vm_exchange - two VFs exchange LIDs and alias GUIDs
 * @rsm: the plugin
 * @from: the port of the VM's
 * @to: that of the other one
 * @counts: SMPs are counted there
 *
 * If this subnet manager is killed meanwhile the next one finds the VM: in this order who has its GUID has its LID.
 */
void rsm_vm_exchange(struct rsm *rsm, osm_port_t *from, osm_port_t *to, struct rsm_vm_counts *counts)
{
	uint16_t lid = cl_ntoh16(osm_port_get_base_lid(from)), other = cl_ntoh16(osm_port_get_base_lid(to));
	bool any_guid = rsm_vm_guid(from) || rsm_vm_guid(to);

	/* GUIDs that were not heard are said again now. */
	any_guid |= rsm_vm_is_unheard(cl_ntoh64(osm_port_get_guid(from)));
	any_guid |= rsm_vm_is_unheard(cl_ntoh64(osm_port_get_guid(to)));
	forget_unheard(cl_ntoh64(osm_port_get_guid(from)));
	forget_unheard(cl_ntoh64(osm_port_get_guid(to)));
	take_lid(rsm, to, lid, counts);
	if (any_guid)
		exchange_guids(rsm, from, to, counts);
	take_lid(rsm, from, other, counts);
}
