// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Deadlocks: each input queue waits for room in at most one other, so a cycle is found by following
 * the successors. Only what can not resolve itself counts: the room that is missing is all taken by
 * packets that wait themselves, none is on a wire or on its way out.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

static uint32_t waits_for(const struct fabric *f, uint32_t queue)
{
	const struct queue *q = &f->queues[queue];
	const struct lane *lane;
	uint32_t out, peer, next;

	if (q->state != QUEUE_WAITS)
		return NONE;
	lane = &f->lanes[q->lane];
	out = q->lane / f->config.vls;
	peer = f->ports[out].peer;
	/* A lane serves its line in order: what its first one lacks holds all of them. */
	if (f->ports[out].busy || peer == NONE || peer == EXTERNAL || !f->ports[peer].is_switch ||
	    lane->credits >= packet_blocks(&f->packets[f->queues[lane->first].head]))
		return NONE;
	next = peer * f->config.vls + q->lane % f->config.vls;
	if (lane->credits + f->queues[next].blocks != f->capacity)
		return NONE;
	return next;
}

unsigned int deadlock_find(struct fabric *f, uint32_t *cycle, unsigned int room)
{
	uint32_t n = f->nports * f->config.vls, *seen = calloc(n, sizeof(*seen));
	unsigned int length = 0;

	if (!seen)
		return 0;
	for (uint32_t start = 0; start < n && !length; start++) {
		uint32_t q = start;

		while (q != NONE && !seen[q]) {
			seen[q] = start + 1;
			q = waits_for(f, q);
		}
		if (q == NONE || seen[q] != start + 1)
			continue;
		for (uint32_t at = q; !length || at != q; at = waits_for(f, at)) {
			if (length < room)
				cycle[length] = at;
			length++;
		}
	}
	free(seen);
	return length;
}

void deadlock_print(const struct fabric *f, const uint32_t *cycle, unsigned int n, FILE *file)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct queue *q = &f->queues[cycle[i]];
		uint32_t out = q->lane / f->config.vls;

		fprintf(file, "  %s VL%u (%u blocks wait) -> %s VL%u (%u credits)\n",
			port_name(f, q->port), q->vl, q->blocks, port_name(f, out),
			q->lane % f->config.vls, f->lanes[q->lane].credits);
	}
}
