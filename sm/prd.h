/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The path record distinguisher: which paths between hosts have another SL, MTU, rate or DLID than
 * what hosts were last told, or are there no more or again. Knows nothing of OpenSM, so that it can be
 * tested and measured without.
 *
 *	rsm_prd_update(prd, net);	the routing has been computed
 *	rsm_prd_changes(prd, ...);	what differs from what was told
 *	rsm_prd_told(prd);		hosts are told of it
 *
 * An update that is never told of is included in the next one.
 *
 * VMs keep their LIDs and go to other ports:
 *
 *	rsm_prd_take_along(prd, lid, guid);	what was told of it, to the port that has it from now on
 *	rsm_prd_hold(prd, lids, n);		these are on their way with their ports: nobody is told
 *
 * A port that goes may come back, with another LID or another path, before connections to it are given up: what
 * hosts were told of it is remembered while they are told RSM_PRD_REMEMBERED times of others.
 */
#ifndef RSM_PRD_H
#define RSM_PRD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net.h"

#define RSM_PRD_MOST_HELD 128
#define RSM_PRD_MOST_GONE 1024	/* LIDs that are remembered at a time; who has more of them is new when it comes back */
#define RSM_PRD_REMEMBERED 16

struct rsm_prd;

/**
 * struct rsm_change - one path that has changed
 * @dlid: its destination
 * @attr: MTU and rate that it has now, or RSM_NO_PATH
 * @sl: that it has now
 * @was: the LID that its destination had; 0: the same
 * @taken: another port has that now
 * @several: its destination has several LIDs, and another place for each
 * @guid: of the destination's port, if it has another LID
 */
struct rsm_change {
	uint16_t dlid;
	uint8_t attr;
	uint8_t sl;
	uint16_t was;
	bool taken;
	bool several;
	uint64_t guid;
};

/**
 * struct rsm_changed_end - a port that changed paths begin at
 * @lid: the path's source
 * @n_lids: of the port; paths from the others are the same, but for @own_sl
 * @own_sl: they have other SLs, which nobody has asked for
 * @n: how many paths changed
 * @n_kept: how many of them are in @changes
 * @changes: the first ones
 */
struct rsm_changed_end {
	uint16_t lid;
	uint8_t n_lids;
	bool own_sl;
	uint32_t n;
	uint32_t n_kept;
	struct rsm_change *changes;
};

/**
 * struct rsm_changes - all of them; to be freed by rsm_changes_free()
 * @ends: by their LIDs' order in the network
 * @n_ends: of them
 * @n: changed paths
 * @n_paths: paths that there are now from each source, at most
 */
struct rsm_changes {
	struct rsm_changed_end *ends;
	uint32_t n_ends;
	uint64_t n;
	uint32_t n_paths;
};

struct rsm_prd *rsm_prd_new(void);
void rsm_prd_reset(struct rsm_prd *prd);
void rsm_prd_free(struct rsm_prd *prd);
int rsm_prd_update(struct rsm_prd *prd, const struct rsm_net *net);
void rsm_prd_take_along(struct rsm_prd *prd, uint16_t lid, uint64_t guid);
void rsm_prd_hold(struct rsm_prd *prd, const uint16_t *lids, uint32_t n);
int rsm_prd_changes(struct rsm_prd *prd, uint32_t keep, struct rsm_changes *changes);
void rsm_changes_free(struct rsm_changes *changes);
bool rsm_prd_has(const struct rsm_prd *prd, uint16_t lid);
bool rsm_prd_path(const struct rsm_prd *prd, uint16_t slid, uint16_t dlid, struct rsm_changed_end *end,
		  struct rsm_change *path);
bool rsm_prd_is_news(const struct rsm_prd *prd, uint16_t lid);
bool rsm_prd_is_told(const struct rsm_prd *prd, uint16_t slid, uint16_t dlid);
bool rsm_prd_sm_shares(const struct rsm_prd *prd);
void rsm_prd_told(struct rsm_prd *prd);
size_t rsm_prd_memory(const struct rsm_prd *prd);
uint32_t rsm_prd_walked(const struct rsm_prd *prd);

#endif
