// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory, by the number of switches S, leaves L, LIDs N and ends E: a copy of the tables (S x N
 * bytes), the paths of each leaf, now and as told (2 x L x N), and the SLs (2 x L x S, or 2 x E x N
 * where an engine has them by port).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prd_table.h"

#define LID_STEP 64
#define NO_PORT 0xff

/** rsm_prd_new - a distinguisher to which every path is new */
struct rsm_prd *rsm_prd_new(void)
{
	return calloc(1, sizeof(struct rsm_prd));
}

void prd_free_slot(struct prd_slot *slot)
{
	free(slot->lft);
	free(slot->links);
	free(slot->now);
	free(slot->told);
	free(slot->sl_now);
	free(slot->sl_told);
	memset(slot, 0, sizeof(*slot));
}

static void free_port_sl(uint8_t **rows, uint32_t n)
{
	for (uint32_t lid = 0; rows && lid < n; lid++)
		free(rows[lid]);
	free(rows);
}

/** rsm_prd_reset - every path is new to it, as in the beginning */
void rsm_prd_reset(struct rsm_prd *prd)
{
	for (uint32_t i = 0; i < prd->n_slots; i++)
		prd_free_slot(&prd->slots[i]);
	free_port_sl(prd->port_sl_now, prd->n_lids);
	free_port_sl(prd->port_sl_told, prd->n_lids);
	free(prd->slots);
	free(prd->now);
	free(prd->told);
	free(prd->dirty);
	free(prd->marks);
	free(prd->gone);
	*prd = (struct rsm_prd) { 0 };
}

/** rsm_prd_free - NULL is fine */
void rsm_prd_free(struct rsm_prd *prd)
{
	if (prd)
		rsm_prd_reset(prd);
	free(prd);
}

/* Makes an array longer; what is new is 0, or 0xff. Keeps it as it is when there is no memory. */
static int grow(void *array, size_t size, uint32_t from, uint32_t to, int filler)
{
	char **p = array, *longer;

	longer = realloc(*p, size * to);
	if (!longer)
		return -ENOMEM;
	memset(longer + size * from, filler, size * (to - from));
	*p = longer;
	return 0;
}

static int grow_rows(uint8_t **rows, uint32_t n, uint32_t from, uint32_t to)
{
	int rc = 0;

	for (uint32_t i = 0; rows && i < n && !rc; i++)
		rc = rows[i] ? grow(&rows[i], 1, from, to, 0) : 0;
	return rc;
}

static int grow_lids(struct rsm_prd *prd, uint32_t wanted)
{
	uint32_t from = prd->n_lids, to = (wanted + LID_STEP - 1) / LID_STEP * LID_STEP;
	int rc;

	if (to <= from)
		return 0;
	rc = grow(&prd->now, sizeof(*prd->now), from, to, 0) ?:
	     grow(&prd->told, sizeof(*prd->told), from, to, 0) ?:
	     grow(&prd->dirty, sizeof(*prd->dirty), from, to, 0) ?:
	     grow(&prd->marks, sizeof(*prd->marks), from, to, 0) ?:
	     grow(&prd->gone, sizeof(*prd->gone), from, to, 0) ?:
	     grow_rows(prd->port_sl_now, from, from, to) ?:
	     grow_rows(prd->port_sl_told, from, from, to) ?:
	     grow(&prd->port_sl_now, sizeof(*prd->port_sl_now), from, to, 0) ?:
	     grow(&prd->port_sl_told, sizeof(*prd->port_sl_told), from, to, 0);
	for (uint32_t i = 0; i < prd->n_slots && !rc; i++) {
		struct prd_slot *slot = &prd->slots[i];

		if (slot->lft)
			rc = grow(&slot->lft, 1, from, to, NO_PORT);
		if (!rc && slot->now)
			rc = grow(&slot->now, 1, from, to, 0) ?: grow(&slot->told, 1, from, to, 0);
	}
	if (!rc)
		prd->n_lids = to;
	return rc;
}

static int grow_slots(struct rsm_prd *prd)
{
	uint32_t from = prd->n_slots, to = from + from / 4 + 16;
	int rc = grow(&prd->slots, sizeof(*prd->slots), from, to, 0);

	for (uint32_t i = 0; i < from && !rc; i++)
		if (prd->slots[i].sl_now)
			rc = grow(&prd->slots[i].sl_now, 1, from, to, 0) ?:
			     grow(&prd->slots[i].sl_told, 1, from, to, 0);
	if (!rc)
		prd->n_slots = to;
	return rc;
}

static int new_slot(struct rsm_prd *prd, const struct rsm_net_switch *sw)
{
	struct prd_slot *slot;
	uint32_t i = 0;

	while (i < prd->n_slots && prd->slots[i].guid)
		i++;
	if (i == prd->n_slots && grow_slots(prd))
		return -ENOMEM;
	slot = &prd->slots[i];
	slot->lft = malloc(prd->n_lids);
	slot->links = calloc(sw->n_ports, sizeof(*slot->links));
	if (!slot->lft || !slot->links) {
		prd_free_slot(slot);
		return -ENOMEM;
	}
	memset(slot->lft, NO_PORT, prd->n_lids);
	slot->guid = sw->guid;
	slot->n_ports = sw->n_ports;
	for (int port = 0; port < sw->n_ports; port++)
		slot->links[port].peer = RSM_LINK_NONE;
	return i;
}

int prd_by_guid(const void *a, const void *b)
{
	const struct prd_place *one = a, *other = b;

	return one->guid < other->guid ? -1 : one->guid > other->guid;
}

/* Slots of the network's switches that are known, by their indices there; of others NO_SLOT. */
static int place_known(const struct rsm_prd *prd, const struct rsm_net *net, int32_t *slots)
{
	struct prd_place *known = malloc((prd->n_slots + 1) * sizeof(*known));
	uint32_t n = 0;

	if (!known)
		return -ENOMEM;
	for (uint32_t i = 0; i < prd->n_slots; i++)
		if (prd->slots[i].guid)
			known[n++] = (struct prd_place) { prd->slots[i].guid, i };
	qsort(known, n, sizeof(*known), prd_by_guid);
	for (uint32_t i = 0; i < net->n_switches; i++) {
		struct prd_place wanted = { .guid = net->switches[i].guid };
		struct prd_place *found = bsearch(&wanted, known, n, sizeof(*known), prd_by_guid);

		slots[i] = found ? (int32_t)found->at : NO_SLOT;
	}
	free(known);
	return 0;
}

static int place_switches(struct rsm_prd *prd, const struct rsm_net *net, int32_t *slots)
{
	int rc = place_known(prd, net, slots);

	for (uint32_t i = 0; i < prd->n_slots && !rc; i++)
		prd->slots[i].alive = false;
	for (uint32_t i = 0; i < net->n_switches && rc >= 0; i++) {
		rc = slots[i] != NO_SLOT ? slots[i] : new_slot(prd, &net->switches[i]);
		if (rc < 0)
			break;
		slots[i] = rc;
		prd->slots[rc].alive = true;
	}
	return rc < 0 ? rc : 0;
}

static void mark_through(struct rsm_prd *prd, const struct prd_slot *slot, const bool *changed)
{
	for (uint32_t lid = 0; lid < prd->n_lids; lid++)
		if (changed[slot->lft[lid]])
			prd->dirty[lid] = true;
}

/* LIDs are dirty that leave by a port behind which there is something else than before. */
static int take_links(struct rsm_prd *prd, const struct rsm_net_switch *sw, struct prd_slot *slot,
		      const int32_t *slots)
{
	bool changed[256] = { false }, any = false;

	if (slot->n_ports < sw->n_ports) {
		if (grow(&slot->links, sizeof(*slot->links), slot->n_ports, sw->n_ports, 0))
			return -ENOMEM;
		for (int port = slot->n_ports; port < sw->n_ports; port++)
			slot->links[port].peer = RSM_LINK_NONE;
		slot->n_ports = sw->n_ports;
	}
	for (int port = 0; port < slot->n_ports; port++) {
		struct rsm_link *then = &slot->links[port], now = { .peer = RSM_LINK_NONE };

		if (port < sw->n_ports)
			now = sw->links[port];
		if (now.peer >= 0)
			now.peer = slots[now.peer];
		if (now.peer == then->peer && now.lid == then->lid && now.attr == then->attr)
			continue;
		*then = now;
		changed[port] = any = true;
	}
	if (any)
		mark_through(prd, slot, changed);
	return 0;
}

static void take_table(struct rsm_prd *prd, const struct rsm_net_switch *sw, struct prd_slot *slot)
{
	for (uint32_t lid = 0; lid < prd->n_lids; lid += LID_STEP) {
		uint32_t here = sw->n_lft > lid ? sw->n_lft - lid : 0;

		if (here >= LID_STEP && !memcmp(slot->lft + lid, sw->lft + lid, LID_STEP))
			continue;
		for (uint32_t i = 0; i < LID_STEP; i++) {
			uint8_t port = i < here ? sw->lft[lid + i] : NO_PORT;

			if (slot->lft[lid + i] == port)
				continue;
			slot->lft[lid + i] = port;
			prd->dirty[lid + i] = true;
		}
	}
}

static int make_leaf(struct rsm_prd *prd, struct prd_slot *slot, bool *fresh)
{
	*fresh |= !slot->is_leaf;
	slot->is_leaf = true;
	if (slot->now)
		return 0;
	slot->now = calloc(1, prd->n_lids);
	slot->told = calloc(1, prd->n_lids);
	slot->sl_now = calloc(1, prd->n_slots);
	slot->sl_told = calloc(1, prd->n_slots);
	return slot->now && slot->told && slot->sl_now && slot->sl_told ? 0 : -ENOMEM;
}

static struct prd_owner owner_of(const struct rsm_net_end *end, const int32_t *slots)
{
	return (struct prd_owner) {
		end->guid, slots[end->leaf], end->lid, end->n_lids, end->attr, end->lends,
	};
}

/* Who has which LID, and which switches are leaves. */
static int take_ends(struct rsm_prd *prd, const struct rsm_net *net, const int32_t *slots)
{
	struct prd_owner *now = calloc(prd->n_lids, sizeof(*now));
	bool *was_leaf = calloc(prd->n_slots, sizeof(*was_leaf));
	bool fresh = false;
	int rc = now && was_leaf ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < net->n_ends && !rc; i++) {
		const struct rsm_net_end *end = &net->ends[i];

		for (uint32_t lid = end->lid; lid < end->lid + end->n_lids; lid++)
			now[lid] = owner_of(end, slots);
		was_leaf[slots[end->leaf]] = true;
		rc = make_leaf(prd, &prd->slots[slots[end->leaf]], &fresh);
	}
	for (uint32_t i = 0; i < prd->n_slots && !rc; i++) {
		if (!prd->slots[i].is_leaf || was_leaf[i])
			continue;
		prd->slots[i].is_leaf = false;
		memset(prd->slots[i].now, RSM_UNKNOWN_PATH, prd->n_lids);
	}
	for (uint32_t lid = 0; lid < prd->n_lids && !rc; lid++) {
		if (!prd_same_owner(&prd->now[lid], &now[lid]) || (fresh && now[lid].guid))
			prd->dirty[lid] = true;
		prd->now[lid] = now[lid];
	}
	free(was_leaf);
	free(now);
	return rc;
}

static void note_sharing(struct rsm_prd *prd, uint32_t from, uint32_t to, uint8_t sl)
{
	prd->sm_shares |= prd->sm_lid && from != to && sl == prd->sm_sl;
}

static bool has_moved(const struct rsm_net *net, uint16_t lid)
{
	for (uint32_t i = 0; i < net->n_moved; i++)
		if (net->moved[i] == lid)
			return true;
	return false;
}

static void take_switch_lane(struct rsm_prd *prd, const struct rsm_net *net, const uint16_t *lid_at, uint32_t from,
			     uint32_t to)
{
	if (!lid_at[from] || !lid_at[to])
		return;
	prd->slots[from].sl_now[to] = net->sl(net->context, lid_at[from], lid_at[to]);
	note_sharing(prd, from, to, prd->slots[from].sl_now[to]);
}

/*
 * SLs by switch: any LID at a switch speaks for all but the subnet manager's, whose paths have their own, and those of VMs that
 * are on their way: these have the paths of where they will be. Of all switches, or from and to those where somebody has
 * moved to, of whom nobody may have spoken before.
 */
static int take_switch_lanes(struct rsm_prd *prd, const struct rsm_net *net, const int32_t *slots, bool all)
{
	uint16_t *lid_at = calloc(prd->n_slots + 1, sizeof(*lid_at));

	if (!lid_at)
		return -ENOMEM;
	for (uint32_t i = 0; i < net->n_ends; i++)
		if (net->ends[i].lid != net->sm_lid && !prd_is_held(prd, net->ends[i].lid))
			lid_at[slots[net->ends[i].leaf]] = net->ends[i].lid;
	for (uint32_t from = 0; all && from < prd->n_slots; from++)
		for (uint32_t to = 0; lid_at[from] && to < prd->n_slots; to++)
			take_switch_lane(prd, net, lid_at, from, to);
	for (uint32_t i = 0; !all && i < net->n_ends; i++) {
		uint32_t at = slots[net->ends[i].leaf];

		for (uint32_t other = 0; has_moved(net, net->ends[i].lid) && other < prd->n_slots; other++) {
			take_switch_lane(prd, net, lid_at, at, other);
			take_switch_lane(prd, net, lid_at, other, at);
		}
	}
	free(lid_at);
	return 0;
}

static void take_port_lane(struct rsm_prd *prd, const struct rsm_net *net, uint32_t from, uint32_t lid)
{
	if (!prd->now[lid].guid || prd->now[lid].lid == from)
		return;
	prd->port_sl_now[from][lid] = net->sl(net->context, from, lid);
	if (from != net->sm_lid && prd->now[lid].lid != net->sm_lid)
		note_sharing(prd, prd->now[from].leaf, prd->now[lid].leaf, prd->port_sl_now[from][lid]);
}

/* Of all, or those from and to who has moved. */
static int take_port_lanes(struct rsm_prd *prd, const struct rsm_net *net, bool all)
{
	for (uint32_t i = 0; i < net->n_ends; i++) {
		uint16_t from = net->ends[i].lid;

		if (from >= prd->n_lids || prd->now[from].lid != from)
			continue;
		if (!prd->port_sl_now[from])
			prd->port_sl_now[from] = calloc(1, prd->n_lids);
		if (!prd->port_sl_told[from])
			prd->port_sl_told[from] = calloc(1, prd->n_lids);
		if (!prd->port_sl_now[from] || !prd->port_sl_told[from])
			return -ENOMEM;
		if (all || has_moved(net, from)) {
			for (uint32_t lid = 1; lid < prd->n_lids; lid++)
				take_port_lane(prd, net, from, lid);
			continue;
		}
		for (uint32_t j = 0; j < net->n_moved; j++)
			take_port_lane(prd, net, from, net->moved[j]);
	}
	return 0;
}

static int take_lanes(struct rsm_prd *prd, const struct rsm_net *net, const int32_t *slots, bool all)
{
	if (net->lanes == RSM_LANES_SWITCH)
		return take_switch_lanes(prd, net, slots, all);
	return net->lanes == RSM_LANES_PORT ? take_port_lanes(prd, net, all) : 0;
}

static int update(struct rsm_prd *prd, const struct rsm_net *net, int32_t *slots)
{
	int rc = grow_lids(prd, net->max_lid + 1u) ?: place_switches(prd, net, slots);

	for (uint32_t i = 0; i < net->n_switches && !rc; i++) {
		struct prd_slot *slot = &prd->slots[slots[i]];

		rc = take_links(prd, &net->switches[i], slot, slots);
		take_table(prd, &net->switches[i], slot);
	}
	rc = rc ?: take_ends(prd, net, slots) ?: prd_walk(prd);
	if (rc)
		return rc;
	for (uint32_t lid = 0; lid < prd->n_lids; lid++)
		prd->marks[lid] &= ~PRD_ALONG;
	prd->lanes = net->lanes;
	prd->sm_lid = net->sm_lid;
	prd->sm_sl = net->sm_sl;
	prd->sm_shares = false;
	prd->whole = prd->anew = true;
	return take_lanes(prd, net, slots, true);
}

/* Slots of the switches; false: they are not those that there were, or what is said of them is another kind of thing. */
static bool is_as_it_was(struct rsm_prd *prd, const struct rsm_net *net, int32_t *slots)
{
	uint32_t alive = 0;
	int rc;

	if (!prd->whole || net->max_lid >= prd->n_lids || net->lanes != prd->lanes || net->sm_lid != prd->sm_lid ||
	    net->sm_sl != prd->sm_sl)
		return false;
	for (uint32_t i = 0; i < net->n_moved; i++)
		if (net->moved[i] >= prd->n_lids)
			return false;
	for (uint32_t i = 0; i < prd->n_slots; i++)
		alive += prd->slots[i].alive;
	if (alive != net->n_switches)
		return false;
	rc = place_known(prd, net, slots);
	for (uint32_t i = 0; i < net->n_switches && !rc; i++)
		if (slots[i] == NO_SLOT || !prd->slots[slots[i]].alive || prd->slots[slots[i]].n_ports < net->switches[i].n_ports)
			rc = -ENOENT;
	for (uint32_t i = 0; i < net->n_ends && !rc; i++)
		if (!prd->slots[slots[net->ends[i].leaf]].is_leaf)
			rc = -ENOENT;
	return !rc;
}

/* Behind a port is who has one of these LIDs, or had it. */
static void take_moved_links(const struct rsm_net *net, const struct rsm_net_switch *sw, struct prd_slot *slot)
{
	for (int port = 0; port < sw->n_ports; port++) {
		struct rsm_link *then = &slot->links[port];

		if (sw->links[port].peer == RSM_LINK_END && has_moved(net, sw->links[port].lid))
			*then = sw->links[port];
		else if (then->peer == RSM_LINK_END && has_moved(net, then->lid))
			*then = (struct rsm_link) { .peer = RSM_LINK_NONE };
	}
}

/* Nothing is taken over of other VMs, which may be on their way meanwhile. */
static int update_moved(struct rsm_prd *prd, const struct rsm_net *net, int32_t *slots)
{
	int rc;

	for (uint32_t i = 0; i < net->n_switches; i++) {
		const struct rsm_net_switch *sw = &net->switches[i];
		struct prd_slot *slot = &prd->slots[slots[i]];

		take_moved_links(net, sw, slot);
		for (uint32_t j = 0; j < net->n_moved; j++)
			slot->lft[net->moved[j]] = net->moved[j] < sw->n_lft ? sw->lft[net->moved[j]] : NO_PORT;
	}
	for (uint32_t j = 0; j < net->n_moved; j++) {
		prd->now[net->moved[j]] = (struct prd_owner) { 0 };
		prd->dirty[net->moved[j]] = true;
		prd->marks[net->moved[j]] = (prd->marks[net->moved[j]] & ~PRD_ALONG) | PRD_MOVED;
	}
	for (uint32_t i = 0; i < net->n_ends; i++) {
		const struct rsm_net_end *end = &net->ends[i];

		if (end->n_lids == 1 && has_moved(net, end->lid))
			prd->now[end->lid] = owner_of(end, slots);
	}
	rc = prd_walk(prd);
	return rc ?: take_lanes(prd, net, slots, false);
}

/**
 * rsm_prd_update - take over what the routing has computed
 * @prd: the distinguisher
 * @net: is copied
 *
 * Return: 0 or -ENOMEM; then nothing is known, and rsm_prd_reset() comes before the next one.
 */
int rsm_prd_update(struct rsm_prd *prd, const struct rsm_net *net)
{
	int32_t *slots = malloc((net->n_switches + 1) * sizeof(*slots));
	int rc = -ENOMEM;

	if (slots && net->n_moved && is_as_it_was(prd, net, slots))
		rc = update_moved(prd, net, slots);
	else if (slots)
		rc = update(prd, net, slots);
	free(slots);
	return rc;
}

/** rsm_prd_has - whether somebody has this LID, as of the last update */
bool rsm_prd_has(const struct rsm_prd *prd, uint16_t lid)
{
	return lid < prd->n_lids && prd->now[lid].guid;
}

/** rsm_prd_sm_shares - do other paths between switches have the subnet manager's level, where it has one? */
bool rsm_prd_sm_shares(const struct rsm_prd *prd)
{
	return prd->sm_shares;
}

/** rsm_prd_walked - to how many LIDs the last update had to walk */
uint32_t rsm_prd_walked(const struct rsm_prd *prd)
{
	return prd->walked;
}

/** rsm_prd_memory - bytes that the tables take */
size_t rsm_prd_memory(const struct rsm_prd *prd)
{
	size_t lids = prd->n_lids;
	size_t sum = sizeof(*prd) + prd->n_slots * sizeof(*prd->slots) +
		     lids * (2 * sizeof(*prd->now) + sizeof(*prd->dirty) + sizeof(*prd->marks) +
			     sizeof(*prd->gone) + 2 * sizeof(uint8_t *));

	for (uint32_t i = 0; i < prd->n_slots; i++) {
		const struct prd_slot *slot = &prd->slots[i];

		if (slot->lft)
			sum += lids + slot->n_ports * sizeof(*slot->links);
		if (slot->now)
			sum += 2 * lids + 2 * prd->n_slots;
	}
	for (size_t lid = 0; lid < lids; lid++)
		if (prd->port_sl_now[lid])
			sum += 2 * lids;
	return sum;
}
