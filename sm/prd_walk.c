// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "prd_table.h"

#define MOST_HOPS 64 /* switches on a path: OpenSM's SA gives no record for a longer one */

/**
 * struct walk - from all leaves to one LID
 * @prd: the table
 * @lid: the destination
 * @owner: who has it
 * @turn: different for each LID
 * @seen: by slot: the turn in which @attr and @hops were found
 * @attr: by slot: MTU and rate from there on
 * @hops: by slot: switches from there on
 * @stack: slots on the way
 */
struct walk {
	struct rsm_prd *prd;
	uint16_t lid;
	const struct prd_owner *owner;
	uint32_t turn;
	uint32_t *seen;
	uint8_t *attr;
	uint8_t *hops;
	int32_t *stack;
};

static const struct rsm_link *way_out(const struct walk *walk, int32_t slot)
{
	static const struct rsm_link none = { .peer = RSM_LINK_NONE };
	const struct prd_slot *s = &walk->prd->slots[slot];
	uint8_t port = s->lft[walk->lid];

	return port < s->n_ports ? &s->links[port] : &none;
}

/* Follows the tables until a switch whose rest of the way is known, and fills in the way to it. */
static uint8_t follow(struct walk *walk, int32_t slot)
{
	uint8_t attr, hops;
	int depth = 0;

	/* A switch that is met again before its way is known is in a loop: no path. */
	while (walk->seen[slot] != walk->turn) {
		const struct rsm_link *link = way_out(walk, slot);

		walk->seen[slot] = walk->turn;
		walk->attr[slot] = RSM_NO_PATH;
		walk->hops[slot] = 1;
		if (link->peer < 0) {
			if (link->peer == RSM_LINK_END && link->lid == walk->owner->lid)
				walk->attr[slot] = link->attr;
			break;
		}
		walk->stack[depth++] = slot;
		slot = link->peer;
	}
	attr = walk->attr[slot];
	hops = walk->hops[slot];
	while (depth--) {
		slot = walk->stack[depth];
		attr = rsm_attr_least(attr, way_out(walk, slot)->attr);
		hops += hops <= MOST_HOPS;
		walk->attr[slot] = attr;
		walk->hops[slot] = hops;
	}
	return hops > MOST_HOPS ? RSM_NO_PATH : attr;
}

/**
 * prd_walk - find MTU and rate of all paths to the dirty LIDs
 * @prd: the table
 *
 * In the order of LIDs: 64 of them share each switch's cache line.
 */
int prd_walk(struct rsm_prd *prd)
{
	struct walk walk = {
		.prd = prd,
		.seen = calloc(prd->n_slots + 1, sizeof(*walk.seen)),
		.attr = malloc(prd->n_slots + 1),
		.hops = malloc(prd->n_slots + 1),
		.stack = malloc((prd->n_slots + 1) * sizeof(*walk.stack)),
	};
	int rc = walk.seen && walk.attr && walk.hops && walk.stack ? 0 : -ENOMEM;

	prd->walked = 0;
	for (uint32_t lid = 1; !rc && lid < prd->n_lids; lid++) {
		if (!prd->dirty[lid])
			continue;
		walk.lid = lid;
		walk.owner = &prd->now[lid];
		walk.turn++;
		prd->walked++;
		for (uint32_t s = 0; s < prd->n_slots; s++) {
			if (!prd->slots[s].is_leaf)
				continue;
			prd->slots[s].now[lid] = walk.owner->guid ? follow(&walk, s) :
								    RSM_UNKNOWN_PATH;
		}
		prd->dirty[lid] = false;
	}
	free(walk.seen);
	free(walk.attr);
	free(walk.hops);
	free(walk.stack);
	return rc;
}
