// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Multicast: the head of an input queue becomes one copy for each port of its MFT entry. The copies
 * line up as queues of their own; the buffer is free when the last has left.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

void multicast_head(struct fabric *f, uint32_t queue)
{
	uint32_t original = f->queues[queue].head, in = f->queues[queue].port;
	struct node *node = &f->nodes[f->ports[in].node];
	unsigned int mlid = f->packets[original].dlid - MCAST_LID, copies = 0;
	uint32_t line[256];

	for (unsigned int num = 1; num <= node->nports && mlid < MCAST_BLOCKS * 32; num++) {
		/* Functions of one port look themselves whether they are members. */
		if (!(node->shared ? f->ports[node->first + num].up :
		      node->mft[mlid * 16 + num / 16] >> num % 16 & 1) ||
		    num == f->ports[in].num)
			continue;
		line[copies++] = num;
	}
	f->queues[queue].state = QUEUE_SPLIT;
	f->packets[original].ncopies = copies + 1;	/* ours, while we hand them out */
	f->packets[original].copies = NONE;
	f->queues[queue].head = f->behind[original];
	f->queues[queue].blocks -= packet_blocks(&f->packets[original]);
	if (!copies) {
		f->ports[in].counters.rcv_relay_errors++;
		f->ports[in].counters.dlid_mapping++;
		f->drops[DROP_LFT]++;
	}
	for (unsigned int i = 0; i < copies; i++) {
		uint32_t copy = packet_new(f), q = queue_new(f, in, NONE);

		f->packets[copy] = f->packets[original];
		f->packets[copy].copies = original;
		f->behind[copy] = NONE;
		if (f->packets[original].bytes) {
			f->packets[copy].bytes = malloc(f->packets[copy].len);
			if (f->packets[copy].bytes)
				memcpy(f->packets[copy].bytes, f->packets[original].bytes,
				       f->packets[copy].len);
		}
		f->queues[q].origin = queue;
		f->queues[q].vl = f->queues[queue].vl;
		f->queues[q].head = copy;
		f->queues[q].tail = copy;
		f->queues[q].blocks = packet_blocks(&f->packets[copy]);
		f->queues[q].out = line[i];
		relay_head(f, q);
	}
	relay_copy_gone(f, queue, original, f->clock.now);
	f->queues[queue].state = QUEUE_EMPTY;
	relay_head(f, queue);
}
