/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Congestion control: switches mark packets, those who get them say so, and sources slow down. */
#ifndef VF_CONGESTION_H
#define VF_CONGESTION_H

#include "fabric.h"

#define MARK_FECN 1	/* packet.marks: it went through congestion */
#define MARK_BECN 2	/* one of the other direction did */

/* IBA 1.2.1 vol 1, annex A10. The same for all switches and hosts. */
struct congestion {
	unsigned int threshold;	/* 1 (late) to 15 (at once), in 16ths of an input buffer; 0: never */
	unsigned int marking;	/* packets between two that are marked */
	unsigned int increase;	/* of CCTI at each BECN */
	unsigned int limit;	/* of CCTI. Entry i of the table: i / 8 of a packet's time between two */
	uint64_t timer;		/* ps until CCTI is one less */
	uint32_t *passed;	/* by lane: packets since the last that was marked */
	uint64_t marked, told;	/* packets with FECN and with BECN */
};

/* Of @how the first five. Return: 0, or -1 without memory. */
int congestion_on(struct fabric *f, const struct congestion *how);
void congestion_free(struct fabric *f);
/* The relay sends the packet out of the queue by that port. */
void congestion_mark(struct fabric *f, uint32_t port, const struct queue *q, struct packet *p);
/* The source of a flow gets a BECN. */
void congestion_told(struct fabric *f, uint32_t flow);
void congestion_timer(struct fabric *f, uint32_t flow);
/* A source has begun to send: the next packet may have to wait. */
void congestion_sent(struct fabric *f, uint32_t flow);

#endif
