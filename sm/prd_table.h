/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the distinguisher remembers: prd.c fills it in, prd_diff.c compares, prd_told.c keeps what hosts know. */
#ifndef RSM_PRD_TABLE_H
#define RSM_PRD_TABLE_H

#include "prd.h"

#define NO_SLOT -1

/* What is to be known of a LID besides. */
#define PRD_HELD	1	/* it is on its way: what was told of it stays so */
#define PRD_ALONG	2	/* another port has it, of which no update has said */
#define PRD_MOVED	4	/* that was in an update since hosts were told */
#define PRD_ANYHOW	8	/* it was away, and there was more than can be compared: all its paths are others */
#define PRD_ELSEWHERE	16	/* the port that had it has another one, as the last comparison found */
#define PRD_KEPT	32	/* what was told of it stays so now: rsm_prd_told()'s */
#define PRD_NEWS	64	/* a path to it is another, as the last comparison found */

/**
 * struct prd_slot - a switch; its place in the table stays while hosts were told of it
 * @guid: of the node; 0: the slot is free
 * @alive: it is in the network
 * @is_leaf: ends are cabled to it now
 * @lft: copy of its table
 * @links: copy of its links; peers are slots
 * @n_ports: of them
 * @now: MTU and rate of the paths from here by DLID; none if it never was a leaf
 * @told: the same as hosts know it
 * @sl_now: SL of the paths from here by the destination's leaf, with RSM_LANES_SWITCH
 * @sl_told: the same as hosts know it
 */
struct prd_slot {
	uint64_t guid;
	bool alive;
	bool is_leaf;
	uint8_t *lft;
	struct rsm_link *links;
	uint16_t n_ports;
	uint8_t *now;
	uint8_t *told;
	uint8_t *sl_now;
	uint8_t *sl_told;
};

/**
 * struct prd_owner - who has a LID
 * @guid: of the port; 0: nobody
 * @leaf: slot of its switch
 * @lid: the port's first
 * @n_lids: of the port
 * @attr: see struct rsm_net_end
 * @lends: the same
 */
struct prd_owner {
	uint64_t guid;
	int32_t leaf;
	uint16_t lid;
	uint8_t n_lids;
	uint8_t attr;
	bool lends;
};

/**
 * struct rsm_prd - all of it
 * @slots: switches
 * @n_slots: places in use, free ones among them
 * @n_lids: the length of all that is by LID, a multiple of 64
 * @now: owners of LIDs
 * @told: the same as hosts know it
 * @lanes: what SLs depend on
 * @lanes_told: the same when hosts were last told
 * @port_sl_now: with RSM_LANES_PORT by the source's first LID, then by DLID
 * @port_sl_told: the same as hosts know it
 * @sm_lid: see struct rsm_net
 * @sm_sl: the same
 * @sm_shares: other paths between switches have that level, too
 * @dirty: LIDs whose paths must be walked
 * @marks: by LID: PRD_*
 * @gone: by LID: how often hosts were told since its port has gone, of which they know what they knew; 0: it has not
 * @whole: all of a network was looked at since there was nothing
 * @anew: and since hosts were told
 * @walked: how many the last update walked
 */
struct rsm_prd {
	struct prd_slot *slots;
	uint32_t n_slots;
	uint32_t n_lids;
	struct prd_owner *now;
	struct prd_owner *told;
	enum rsm_lanes lanes;
	enum rsm_lanes lanes_told;
	uint8_t **port_sl_now;
	uint8_t **port_sl_told;
	uint16_t sm_lid;
	uint8_t sm_sl;
	bool sm_shares;
	bool *dirty;
	uint8_t *marks;
	uint8_t *gone;
	bool whole, anew;
	uint32_t walked;
};

/**
 * struct prd_place - where a GUID is
 * @guid: sorted by it, see prd_by_guid()
 * @at: slot of the table, or LID
 */
struct prd_place {
	uint64_t guid;
	uint32_t at;
};

static inline bool prd_same_owner(const struct prd_owner *a, const struct prd_owner *b)
{
	return a->guid == b->guid && a->leaf == b->leaf && a->lid == b->lid &&
	       a->n_lids == b->n_lids && a->attr == b->attr;
}

static inline bool prd_is_held(const struct rsm_prd *prd, uint32_t lid)
{
	return prd->marks[lid] & (PRD_HELD | PRD_ALONG);
}

int prd_by_guid(const void *a, const void *b);
void prd_free_slot(struct prd_slot *slot);
int prd_walk(struct rsm_prd *prd);

#endif
