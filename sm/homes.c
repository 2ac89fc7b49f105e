// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "homes.h"
#include "plugin.h"

#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

static int by_place(const void *a, const void *b)
{
	const struct rsm_place *one = a, *other = b;

	if (one->sw != other->sw)
		return one->sw < other->sw ? -1 : 1;
	return (int)one->port - other->port;
}

/** rsm_homes_find - NULL: nobody has been there yet */
struct rsm_slot *rsm_homes_find(const struct rsm_homes *homes, const struct rsm_place *place)
{
	return bsearch(place, homes->slots, homes->n, sizeof(*homes->slots), by_place);
}

/** rsm_follows - whether who is there has the paths of the hypervisor's LID */
bool rsm_follows(struct rsm *rsm, const struct rsm_place *place)
{
	return rsm->opt.vswitch == RSM_VSWITCH_DYNAMIC && rsm_place_is_vf(rsm, place);
}

static bool add_slot(struct rsm_homes *homes, const struct rsm_place *place)
{
	if (homes->n == homes->room) {
		uint32_t room = homes->room ? 2 * homes->room : 256;
		struct rsm_slot *more = realloc(homes->slots, room * sizeof(*more));

		if (!more)
			return false;
		homes->slots = more;
		homes->room = room;
	}
	homes->slots[homes->n++] = (struct rsm_slot) { .place = *place };
	return true;
}

/* Who is where now. Return: whether all are known. */
static bool look(struct rsm *rsm, struct rsm_homes *homes)
{
	cl_qmap_t *map = &rsm->osm->subn.port_guid_tbl;
	uint32_t known = homes->n;
	struct rsm_place place;

	for (uint32_t i = 0; i < homes->n; i++) {
		homes->slots[i].now = 0;
		homes->slots[i].who = NULL;
	}
	for (int round = 0; round < 2; round++) {
		for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map);
		     i = cl_qmap_next(i)) {
			osm_port_t *port = (osm_port_t *)i;
			struct rsm_slot *slot;

			/* OpenSM takes a LID as it is from the answer to a Set. */
			if (!osm_port_get_base_lid(port) || osm_port_get_lmc(port) ||
			    cl_ntoh16(osm_port_get_base_lid(port)) >= RSM_N_LIDS ||
			    !rsm_place_of(port, &place))
				continue;
			slot = bsearch(&place, homes->slots, round ? homes->n : known,
				       sizeof(*slot), by_place);
			if (!slot) {
				if (!add_slot(homes, &place))
					return false;
				continue;
			}
			slot->now = cl_ntoh16(osm_port_get_base_lid(port));
			slot->who = port;
			slot->home = rsm_follows(rsm, &place) ? 0 : slot->home;
		}
		if (known == homes->n)
			break;
		qsort(homes->slots, homes->n, sizeof(*homes->slots), by_place);
	}
	return true;
}

static void mark_switches(struct rsm *rsm, uint32_t *holder)
{
	cl_qmap_t *map = &rsm->osm->subn.sw_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		uint16_t lid = cl_ntoh16(osm_node_get_base_lid(((osm_switch_t *)i)->p_node, 0));

		if (lid < RSM_N_LIDS)
			holder[lid] = UINT32_MAX;
	}
}

/*
 * A slot that is new gets the LID of who is there. If that is another slot's that is empty, that one
 * loses it; if it is not, VMs have moved while nobody looked, and all begin anew.
 */
static bool give_homes(struct rsm *rsm, struct rsm_homes *homes)
{
	uint32_t *holder = calloc(RSM_N_LIDS, sizeof(*holder));
	bool again = false;

	if (!holder)
		return false;
	mark_switches(rsm, holder);
	holder[0] = 0;
	for (uint32_t i = 0; i < homes->n; i++) {
		if (!homes->slots[i].home)
			continue;
		again |= holder[homes->slots[i].home] != 0;
		holder[homes->slots[i].home] = i + 1;
	}
	for (uint32_t i = 0; i < homes->n && !again; i++) {
		struct rsm_slot *slot = &homes->slots[i];
		uint32_t other = holder[slot->now];

		if (slot->home || !slot->now || rsm_follows(rsm, &slot->place))
			continue;
		if (other == UINT32_MAX || (other && homes->slots[other - 1].now))
			again = true;
		else if (other)
			homes->slots[other - 1].home = 0;
		slot->home = slot->now;
		holder[slot->now] = i + 1;
	}
	for (uint32_t i = 0; i < homes->n && again; i++)
		homes->slots[i].home = rsm_follows(rsm, &homes->slots[i].place) ? 0 : homes->slots[i].now;
	free(holder);
	return true;
}

/**
 * rsm_homes_show - to who looks at OpenSM's subnet
 * @rsm: the plugin
 * @homes: as it is
 * @own: each port gets its own LID back; else it has that of the slot that it is in
 */
void rsm_homes_show(struct rsm *rsm, const struct rsm_homes *homes, bool own)
{
	cl_ptr_vector_t *table = &rsm->osm->subn.port_lid_tbl;

	for (uint32_t i = 0; i < homes->n; i++)
		if (homes->slots[i].who && homes->slots[i].home && homes->slots[i].home != homes->slots[i].now)
			cl_ptr_vector_set(table, own ? homes->slots[i].home : homes->slots[i].now, NULL);
	for (uint32_t i = 0; i < homes->n; i++) {
		struct rsm_slot *slot = &homes->slots[i];
		uint16_t lid = own ? slot->now : slot->home;

		if (!slot->who || !slot->home || slot->home == slot->now)
			continue;
		osm_physp_set_base_lid(slot->who->p_physp, cl_hton16(lid));
		cl_ptr_vector_set(table, lid, slot->who);
	}
}

/**
 * rsm_homes_update - see who is where
 * @rsm: the plugin
 * @homes: all 0 in the beginning
 *
 * Return: 0 or -ENOMEM: nothing is known then.
 */
int rsm_homes_update(struct rsm *rsm, struct rsm_homes *homes)
{
	if (look(rsm, homes) && give_homes(rsm, homes))
		return 0;
	homes->n = 0;
	return -ENOMEM;
}
