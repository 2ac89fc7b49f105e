// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What hosts were told: of whom, what of it stays while a VM is on its way, and all of it when they have been told. */
#include <string.h>

#include "prd_table.h"

/**
 * rsm_prd_take_along - a VM's LID has come to another port
 * @prd: the distinguisher
 * @lid: it
 * @guid: of the port that has it from now on
 *
 * What hosts were told of it they were told of the VM. The next update that has it in its network knows of it.
 */
void rsm_prd_take_along(struct rsm_prd *prd, uint16_t lid, uint64_t guid)
{
	if (lid >= prd->n_lids || !prd->told[lid].guid)
		return;
	prd->told[lid].guid = guid;
	prd->marks[lid] |= PRD_ALONG;
}

/**
 * rsm_prd_hold - LIDs that are on their way with their ports
 * @prd: the distinguisher
 * @lids: they
 * @n: of them, RSM_PRD_MOST_HELD at most
 *
 * Who is not among them any more has come, or does not come. Before an update.
 */
void rsm_prd_hold(struct rsm_prd *prd, const uint16_t *lids, uint32_t n)
{
	for (uint32_t lid = 0; lid < prd->n_lids; lid++)
		prd->marks[lid] &= ~PRD_HELD;
	for (uint32_t i = 0; i < n && i < RSM_PRD_MOST_HELD; i++)
		if (lids[i] < prd->n_lids)
			prd->marks[lids[i]] |= PRD_HELD;
}

#define MOST_KEPT (2 * RSM_PRD_MOST_HELD + RSM_PRD_MOST_GONE)

/* LIDs of which hosts know for now what they knew: those that are held, VMs whose move is not through, and gone ones. */
struct kept {
	uint16_t lids[MOST_KEPT];
	uint32_t n;
};

static bool is_remembered(struct rsm_prd *prd, uint32_t lid, uint32_t *n)
{
	bool gone = prd->told[lid].guid && !prd->now[lid].guid && !(prd->marks[lid] & PRD_ELSEWHERE);

	if (!gone || prd->gone[lid] == RSM_PRD_REMEMBERED || *n == RSM_PRD_MOST_GONE) {
		prd->gone[lid] = 0;
		return false;
	}
	/* In a VM's move no other port can come back. */
	prd->gone[lid] += prd->anew || !prd->gone[lid];
	++*n;
	return true;
}

static void find_kept(struct rsm_prd *prd, struct kept *kept)
{
	uint32_t n_held = 0, n_gone = 0;

	kept->n = 0;
	for (uint32_t lid = 0; lid < prd->n_lids; lid++)
		if (prd_is_held(prd, lid) ? n_held++ < 2 * RSM_PRD_MOST_HELD : is_remembered(prd, lid, &n_gone)) {
			kept->lids[kept->n++] = lid;
			prd->marks[lid] |= PRD_KEPT;
		}
}

static void copy_row(uint8_t *to, const uint8_t *from, uint32_t n_lids, const struct kept *kept)
{
	uint8_t was[MOST_KEPT];

	for (uint32_t i = 0; i < kept->n; i++)
		was[i] = to[kept->lids[i]];
	memcpy(to, from, n_lids);
	for (uint32_t i = 0; i < kept->n; i++)
		to[kept->lids[i]] = was[i];
}

static bool is_known_host(const struct rsm_prd *prd, uint32_t lid)
{
	return prd->told[lid].guid && prd->told[lid].guid == prd->now[lid].guid;
}

/* Whether others have other lanes, or other places: then what they know of who is kept is not what is told of them. */
static bool others_change(const struct rsm_prd *prd)
{
	bool change = prd->lanes != prd->lanes_told;

	for (uint32_t i = 0; i < prd->n_slots && !change; i++)
		change = prd->lanes == RSM_LANES_SWITCH && prd->slots[i].is_leaf &&
			 memcmp(prd->slots[i].sl_told, prd->slots[i].sl_now, prd->n_slots);
	for (uint32_t lid = 0; lid < prd->n_lids && !change; lid++)
		change = is_known_host(prd, lid) && !prd_is_held(prd, lid) &&
			 !prd_same_owner(&prd->told[lid], &prd->now[lid]);
	return change;
}

/* Whether the paths that it had from its leaf are not those any more that it knows. */
static bool leaf_changes(const struct rsm_prd *prd, uint32_t lid)
{
	const struct prd_slot *slot = &prd->slots[prd->told[lid].leaf];

	if (!slot->alive)
		return true;
	for (uint32_t to = 0; slot->is_leaf && to < prd->n_lids; to++)
		if (slot->now[to] != slot->told[to] && is_known_host(prd, to) && !prd_is_held(prd, to))
			return true;
	return false;
}

static void mark_anyhow(struct rsm_prd *prd, const struct kept *kept)
{
	bool all = kept->n && others_change(prd);

	for (uint32_t i = 0; i < kept->n; i++) {
		uint16_t lid = kept->lids[i];

		if (prd->told[lid].guid && !(prd->marks[lid] & PRD_ANYHOW) && (all || leaf_changes(prd, lid)))
			prd->marks[lid] |= PRD_ANYHOW;
	}
}

/** rsm_prd_told - hosts know now what the last update found, but for who is held, or gone */
void rsm_prd_told(struct rsm_prd *prd)
{
	struct kept kept;

	find_kept(prd, &kept);
	mark_anyhow(prd, &kept);
	for (uint32_t i = 0; i < prd->n_slots; i++) {
		struct prd_slot *slot = &prd->slots[i];

		if (slot->guid && !slot->alive) {
			prd_free_slot(slot);
		} else if (slot->now) {
			/* Where nobody is any more it is what those knew who have left. */
			if (slot->is_leaf)
				copy_row(slot->told, slot->now, prd->n_lids, &kept);
			memcpy(slot->sl_told, slot->sl_now, prd->n_slots);
		}
	}
	for (uint32_t lid = 0; lid < prd->n_lids; lid++) {
		if (prd->marks[lid] & PRD_KEPT) {
			prd->marks[lid] &= ~(PRD_KEPT | PRD_NEWS);
			continue;
		}
		prd->told[lid] = prd->now[lid];
		prd->marks[lid] = 0;
		if (prd->port_sl_now[lid])
			copy_row(prd->port_sl_told[lid], prd->port_sl_now[lid], prd->n_lids, &kept);
	}
	prd->lanes_told = prd->lanes;
	prd->anew = false;
}
