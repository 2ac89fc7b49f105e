// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prd_table.h"

#define STEP 64

/**
 * struct other_lid - a port has another LID than hosts were told
 * @was: that they were told
 * @lid: that it has now
 */
struct other_lid {
	uint16_t was;
	uint16_t lid;
};

/**
 * struct diff - the comparison under way
 * @prd: the table
 * @keep: changes of one end that are kept at most
 * @moved: LIDs whose port is cabled to another switch than hosts were told
 * @any_moved: there are some
 * @lids: LIDs of ends, in the order of their leaves
 * @at_leaf: by slot: where its LIDs begin in @lids; one more than slots
 * @candidates: LIDs to which a path from the current leaf may have changed
 * @listed: by LID: is among them
 * @n_candidates: of them
 * @others: ports with other LIDs; NULL: there are none
 * @n_others: LIDs that those had
 * @found: changes of the current end
 */
struct diff {
	struct rsm_prd *prd;
	uint32_t keep;
	bool *moved;
	bool any_moved;
	uint16_t *lids;
	uint32_t *at_leaf;
	uint16_t *candidates;
	bool *listed;
	uint32_t n_candidates;
	struct other_lid *others;
	uint32_t n_others;
	struct rsm_change *found;
};

static void candidate(struct diff *diff, uint32_t lid)
{
	if (diff->listed[lid])
		return;
	diff->listed[lid] = true;
	diff->candidates[diff->n_candidates++] = lid;
}

static void candidates_by_row(struct diff *diff, const uint8_t *now, const uint8_t *told)
{
	for (uint32_t lid = 0; lid < diff->prd->n_lids; lid += STEP) {
		if (!memcmp(now + lid, told + lid, STEP))
			continue;
		for (uint32_t i = lid; i < lid + STEP; i++)
			if (now[i] != told[i])
				candidate(diff, i);
	}
}

/* What all ends at this leaf may have in common. Port lanes are each end's own, but for paths to who has moved. */
static void leaf_candidates(struct diff *diff, const struct prd_slot *slot)
{
	struct rsm_prd *prd = diff->prd;

	while (diff->n_candidates)
		diff->listed[diff->candidates[--diff->n_candidates]] = false;
	candidates_by_row(diff, slot->now, slot->told);
	for (uint32_t lid = 1; lid < prd->n_lids; lid++)
		if (prd->marks[lid] & (PRD_MOVED | PRD_ANYHOW))
			candidate(diff, lid);
	if (prd->lanes != RSM_LANES_SWITCH)
		return;
	for (uint32_t to = 0; to < prd->n_slots; to++) {
		if (slot->sl_now[to] == slot->sl_told[to])
			continue;
		for (uint32_t i = diff->at_leaf[to]; i < diff->at_leaf[to + 1]; i++)
			candidate(diff, diff->lids[i]);
	}
	for (uint32_t lid = 0; diff->any_moved && lid < prd->n_lids; lid++)
		if (diff->moved[lid])
			candidate(diff, lid);
}

/* Such a path has the same SL for ever. */
static bool is_managements(const struct rsm_prd *prd, uint32_t from, uint32_t lid)
{
	return prd->sm_lid && (prd->now[from].lid == prd->sm_lid || prd->now[lid].lid == prd->sm_lid);
}

static uint8_t sl_now(const struct rsm_prd *prd, uint32_t from, uint32_t lid)
{
	if (is_managements(prd, from, lid))
		return prd->sm_sl;
	switch (prd->lanes) {
	case RSM_LANES_SWITCH:
		return prd->slots[prd->now[from].leaf].sl_now[prd->now[lid].leaf];
	case RSM_LANES_PORT:
		return prd->port_sl_now[from][lid];
	default:
		return 0;
	}
}

static uint8_t sl_told(const struct rsm_prd *prd, uint32_t from, uint32_t lid)
{
	if (is_managements(prd, from, lid))
		return prd->sm_sl;
	switch (prd->lanes_told) {
	case RSM_LANES_SWITCH:
		return prd->slots[prd->told[from].leaf].sl_told[prd->told[lid].leaf];
	case RSM_LANES_PORT:
		return prd->port_sl_told[from] ? prd->port_sl_told[from][lid] : 0;
	default:
		return 0;
	}
}

static struct rsm_changed_end end_now(const struct rsm_prd *prd, uint32_t from)
{
	const struct prd_owner *now = &prd->now[from];

	return (struct rsm_changed_end) {
		.lid = now->lid,
		.n_lids = now->n_lids,
		.own_sl = prd->lanes == RSM_LANES_PORT && now->n_lids > 1,
	};
}

/* @from: a port's first LID */
static struct rsm_change path_now(const struct rsm_prd *prd, uint32_t from, uint32_t lid)
{
	const struct prd_owner *now = &prd->now[from];

	return (struct rsm_change) {
		.dlid = lid,
		.attr = rsm_attr_least(now->attr, prd->slots[now->leaf].now[lid]),
		.sl = sl_now(prd, from, lid),
	};
}

/* Fills in @change if the path differs from what the host at @from was told of it. */
static bool differs(const struct rsm_prd *prd, uint32_t from, uint32_t lid,
		    struct rsm_change *change)
{
	const struct prd_owner *now = &prd->now[from], *told = &prd->told[from];
	uint8_t attr_told;

	/* A LID that is new, or another port's, is nobody's path yet; and the way to itself is none. */
	if (!prd->told[lid].guid || prd->told[lid].guid != prd->now[lid].guid ||
	    prd->now[lid].guid == now->guid)
		return false;
	if (prd_is_held(prd, lid))
		return false;
	*change = path_now(prd, from, lid);
	if ((prd->marks[from] | prd->marks[lid]) & PRD_ANYHOW)
		return true;
	attr_told = rsm_attr_least(told->attr, prd->slots[told->leaf].told[lid]);
	if (change->attr != attr_told)
		return true;
	return change->attr != RSM_NO_PATH && change->sl != sl_told(prd, from, lid);
}

/*
 * Fills in @change if the host at @from has a path to who has another LID. That the port of the host itself
 * has another one it knows, and asks for all paths.
 */
static bool leads_to_other(const struct rsm_prd *prd, uint32_t from, const struct other_lid *other,
			   struct rsm_change *change)
{
	const struct prd_owner *now = &prd->now[from], *to = &prd->now[other->lid];

	*change = path_now(prd, from, other->lid);
	change->was = other->was;
	change->taken = prd->now[other->was].guid;
	change->several = to->n_lids > 1;
	change->guid = to->guid;
	return to->guid != now->guid && change->attr != RSM_NO_PATH;
}

static void note(struct diff *diff, struct rsm_changed_end *end, const struct rsm_change *change)
{
	diff->prd->marks[change->dlid] |= PRD_NEWS;
	if (end->n++ < diff->keep)
		diff->found[end->n_kept++] = *change;
}

static void compare_end(struct diff *diff, uint32_t from, struct rsm_changed_end *end)
{
	struct rsm_prd *prd = diff->prd;
	const struct prd_owner *now = &prd->now[from], *told = &prd->told[from];
	struct rsm_change change;

	*end = end_now(prd, from);
	if (told->guid != now->guid || prd_is_held(prd, from))
		return;
	for (uint32_t i = 0; i < diff->n_others; i++)
		if (leads_to_other(prd, from, &diff->others[i], &change))
			note(diff, end, &change);
	if ((prd->lanes == RSM_LANES_PORT && (prd->anew || prd->marks[from] & ~PRD_NEWS)) || (prd->marks[from] & PRD_ANYHOW) ||
	    prd->lanes != prd->lanes_told ||
	    told->leaf != now->leaf || told->attr != now->attr) {
		for (uint32_t lid = 1; lid < prd->n_lids; lid++)
			if (prd->now[lid].guid && differs(prd, from, lid, &change))
				note(diff, end, &change);
		return;
	}
	for (uint32_t i = 0; i < diff->n_candidates; i++)
		if (differs(prd, from, diff->candidates[i], &change))
			note(diff, end, &change);
}

static int add_end(struct diff *diff, struct rsm_changes *changes, struct rsm_changed_end *end)
{
	end->changes = malloc((end->n_kept + 1) * sizeof(*end->changes));
	if (!end->changes)
		return -ENOMEM;
	memcpy(end->changes, diff->found, end->n_kept * sizeof(*end->changes));
	changes->ends[changes->n_ends++] = *end;
	changes->n += (uint64_t)end->n;
	return 0;
}

/* All of a port's LIDs are sources, of paths that are alike but for port lanes. */
static int compare_leaf(struct diff *diff, uint32_t leaf, struct rsm_changes *changes)
{
	int rc = 0;

	leaf_candidates(diff, &diff->prd->slots[leaf]);
	for (uint32_t i = diff->at_leaf[leaf]; i < diff->at_leaf[leaf + 1] && !rc; i++) {
		struct rsm_changed_end end;
		uint16_t lid = diff->lids[i];

		if (diff->prd->now[lid].lid != lid)
			continue;
		compare_end(diff, lid, &end);
		if (end.n)
			rc = add_end(diff, changes, &end);
	}
	return rc;
}

static void sort_lids(struct diff *diff, uint32_t *n_ends, uint32_t *n_lids)
{
	struct rsm_prd *prd = diff->prd;

	for (uint32_t lid = 1; lid < prd->n_lids; lid++) {
		if (!prd->now[lid].guid)
			continue;
		diff->at_leaf[prd->now[lid].leaf + 1]++;
		*n_ends += prd->now[lid].lid == lid;
		++*n_lids;
		diff->moved[lid] = prd->told[lid].guid == prd->now[lid].guid &&
				   prd->told[lid].leaf != prd->now[lid].leaf;
		diff->any_moved |= diff->moved[lid];
	}
	for (uint32_t i = 0; i < prd->n_slots; i++)
		diff->at_leaf[i + 1] += diff->at_leaf[i];
	/* From the last to the first: each leaf's place is counted down to where it begins. */
	for (uint32_t lid = prd->n_lids - 1; lid; lid--)
		if (prd->now[lid].guid)
			diff->lids[--diff->at_leaf[prd->now[lid].leaf + 1]] = lid;
	memmove(diff->at_leaf, diff->at_leaf + 1, prd->n_slots * sizeof(*diff->at_leaf));
	diff->at_leaf[prd->n_slots] = *n_lids;
}

static bool has_left(const struct rsm_prd *prd, uint32_t lid)
{
	const struct prd_owner *told = &prd->told[lid];

	return told->guid && told->guid != prd->now[lid].guid && !prd_is_held(prd, lid);
}

static void find_others(struct diff *diff, struct prd_place *ports)
{
	struct rsm_prd *prd = diff->prd;
	uint32_t n = 0;

	for (uint32_t lid = 1; lid < prd->n_lids; lid++)
		if (prd->now[lid].guid && prd->now[lid].lid == lid)
			ports[n++] = (struct prd_place) { prd->now[lid].guid, lid };
	qsort(ports, n, sizeof(*ports), prd_by_guid);
	for (uint32_t lid = 1; lid < prd->n_lids; lid++) {
		struct prd_place wanted = { .guid = prd->told[lid].guid }, *found;

		found = has_left(prd, lid) ? bsearch(&wanted, ports, n, sizeof(*ports), prd_by_guid) : NULL;
		if (!found)
			continue;
		prd->marks[lid] |= PRD_ELSEWHERE;
		/* A LID that is a VM's goes where that goes. */
		if (prd->told[lid].lends || prd->now[found->at].lends)
			continue;
		/* The first takes the place of the first, and if there are fewer now, of more than one. */
		diff->others[diff->n_others++] = (struct other_lid) {
			lid, found->at + (lid - prd->told[lid].lid) % prd->now[found->at].n_lids,
		};
	}
}

/* Ports that have another LID, which is seldom. One that is gone has none. */
static int compare_lids(struct diff *diff)
{
	struct rsm_prd *prd = diff->prd;
	struct prd_place *ports;
	uint32_t n = 0;

	for (uint32_t lid = 1; lid < prd->n_lids; lid++) {
		prd->marks[lid] &= ~(PRD_ELSEWHERE | PRD_NEWS);
		n += has_left(prd, lid);
	}
	if (!n)
		return 0;
	diff->others = calloc(n, sizeof(*diff->others));
	ports = calloc(prd->n_lids, sizeof(*ports));
	if (diff->others && ports)
		find_others(diff, ports);
	free(ports);
	return diff->others && ports ? 0 : -ENOMEM;
}

/**
 * rsm_prd_changes - compare what is with what hosts were told
 * @prd: the distinguisher
 * @keep: how many changes of one source to list; more are only counted
 * @changes: filled in
 *
 * Return: 0 or -ENOMEM, and then @changes is empty.
 */
int rsm_prd_changes(struct rsm_prd *prd, uint32_t keep, struct rsm_changes *changes)
{
	struct diff diff = {
		.prd = prd,
		.keep = keep,
		.moved = calloc(prd->n_lids + 1, sizeof(bool)),
		.lids = calloc(prd->n_lids + 1, sizeof(uint16_t)),
		.at_leaf = calloc(prd->n_slots + 2, sizeof(uint32_t)),
		.candidates = calloc(prd->n_lids + 1, sizeof(uint16_t)),
		.listed = calloc(prd->n_lids + 1, sizeof(bool)),
		.found = calloc((keep < 2 * prd->n_lids ? keep : 2 * prd->n_lids) + 1,
				sizeof(struct rsm_change)),
	};
	uint32_t n_ends = 0, n_lids = 0;
	int rc = -ENOMEM;

	*changes = (struct rsm_changes) { 0 };
	if (diff.moved && diff.lids && diff.at_leaf && diff.candidates && diff.listed &&
	    diff.found && prd->n_lids) {
		sort_lids(&diff, &n_ends, &n_lids);
		changes->n_paths = n_lids;
		changes->ends = calloc(n_ends + 1, sizeof(*changes->ends));
		rc = changes->ends ? compare_lids(&diff) : -ENOMEM;
		for (uint32_t leaf = 0; leaf < prd->n_slots && !rc; leaf++)
			if (prd->slots[leaf].is_leaf)
				rc = compare_leaf(&diff, leaf, changes);
	}
	free(diff.moved);
	free(diff.lids);
	free(diff.at_leaf);
	free(diff.candidates);
	free(diff.listed);
	free(diff.others);
	free(diff.found);
	if (rc)
		rsm_changes_free(changes);
	return prd->n_lids ? rc : 0;
}

/**
 * rsm_prd_path - a path as it is now, be it new or not
 * @prd: the distinguisher
 * @slid: any LID of the port where it begins
 * @dlid: where it leads
 * @end: filled in: the port where it begins
 * @path: filled in
 *
 * Return: false if there is none, or hosts were never told of one, or its ports are on their way.
 */
bool rsm_prd_path(const struct rsm_prd *prd, uint16_t slid, uint16_t dlid, struct rsm_changed_end *end,
		  struct rsm_change *path)
{
	const struct prd_owner *from, *to;

	if (!rsm_prd_has(prd, slid) || !rsm_prd_has(prd, dlid))
		return false;
	from = &prd->now[slid];
	to = &prd->now[dlid];
	if (prd->told[slid].guid != from->guid || prd->told[dlid].guid != to->guid || prd_is_held(prd, slid) ||
	    prd_is_held(prd, dlid))
		return false;
	*end = end_now(prd, slid);
	*path = path_now(prd, from->lid, dlid);
	return path->attr != RSM_NO_PATH;
}

/** rsm_prd_is_told - whether a path is what hosts were last told of it; there is one, by rsm_prd_path() */
bool rsm_prd_is_told(const struct rsm_prd *prd, uint16_t slid, uint16_t dlid)
{
	struct rsm_change change;

	return !differs(prd, prd->now[slid].lid, dlid, &change);
}

/** rsm_prd_is_news - whether a path to a LID is among the changes that rsm_prd_changes() has found */
bool rsm_prd_is_news(const struct rsm_prd *prd, uint16_t lid)
{
	return lid < prd->n_lids && prd->marks[lid] & PRD_NEWS;
}

/** rsm_changes_free - what rsm_prd_changes() listed */
void rsm_changes_free(struct rsm_changes *changes)
{
	for (uint32_t i = 0; i < changes->n_ends; i++)
		free(changes->ends[i].changes);
	free(changes->ends);
	*changes = (struct rsm_changes) { 0 };
}
