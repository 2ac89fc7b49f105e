// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A switch's port marks if what waits for a lane of it, in all input buffers, is above the threshold,
 * and the congestion is its own: it has credits for another packet, or a host is behind it that takes
 * no more (Victim_Mask). Hosts answer a mark by one on an ACK; flows that have none send one for it.
 * Only flows with one destination are slowed down.
 */
#include <stdlib.h>

#include "congestion.h"
#include "traffic.h"

int congestion_on(struct fabric *f, const struct congestion *how)
{
	struct congestion *c = f->congestion;

	if (!c)
		c = calloc(1, sizeof(*c));
	if (!c)
		return -1;
	f->congestion = c;
	if (!c->passed)
		c->passed = calloc((size_t)f->nports * f->config.vls, sizeof(*c->passed));
	if (!c->passed)
		return -1;
	c->threshold = how->threshold;
	c->marking = how->marking;
	c->increase = how->increase;
	c->limit = how->limit;
	c->timer = how->timer;
	return 0;
}

void congestion_free(struct fabric *f)
{
	if (f->congestion)
		free(f->congestion->passed);
	free(f->congestion);
	f->congestion = NULL;
}

/* Blocks in one input port's buffers that will leave by a port and VL. */
static uint32_t blocks_of(const struct fabric *f, struct node *node, unsigned int in,
			  unsigned int out, unsigned int vl)
{
	uint32_t blocks = 0;

	for (unsigned int i = 0; i < f->config.vls; i++) {
		const struct queue *q = &f->queues[(node->first + in) * f->config.vls + i];
		const struct packet *p;

		for (uint32_t at = q->head; at != NONE; at = f->behind[at]) {
			p = &f->packets[at];
			if (p->dlid <= node->lft_top && node->lft[p->dlid] == out &&
			    relay_vl(f, node, in, out, p->sl) == vl)
				blocks += packet_blocks(p);
		}
	}
	return blocks;
}

void congestion_mark(struct fabric *f, uint32_t port, const struct queue *q, struct packet *p)
{
	struct congestion *c = f->congestion;
	const struct port *out = &f->ports[port];
	struct node *node = &f->nodes[out->node];
	int host = out->peer < f->nports && !f->ports[out->peer].is_switch;
	uint32_t waiting = 0;

	if (!out->is_switch || !node->lft || p->kind != PACKET_DATA || !c->threshold)
		return;
	if (!host && f->lanes[q->lane].credits < packet_blocks(p))
		return;
	for (unsigned int in = 1; in <= node->nports; in++)
		waiting += blocks_of(f, node, in, out->num, q->lane % f->config.vls);
	if (waiting * 16 < (16 - c->threshold) * f->capacity)
		return;
	if (c->passed[q->lane]++ < c->marking)
		return;
	c->passed[q->lane] = 0;
	p->marks |= MARK_FECN;
	c->marked++;
}

void congestion_told(struct fabric *f, uint32_t number)
{
	struct congestion *c = f->congestion;
	struct flow *flow = &f->traffic->flows[number];

	c->told++;
	flow->ccti += c->increase;
	if (flow->ccti > c->limit)
		flow->ccti = c->limit;
	if (flow->ccti_timer || !flow->ccti)
		return;
	flow->ccti_timer = 1;
	clock_at(&f->clock, f->clock.now + c->timer, EV_CCTI, number, 0);
}

void congestion_timer(struct fabric *f, uint32_t number)
{
	struct flow *flow = &f->traffic->flows[number];

	flow->ccti_timer = --flow->ccti > 0;
	if (flow->ccti_timer)
		clock_at(&f->clock, f->clock.now + f->congestion->timer, EV_CCTI, number, 0);
}

void congestion_sent(struct fabric *f, uint32_t number)
{
	struct flow *flow = &f->traffic->flows[number];
	uint64_t packet = (uint64_t)flow->spec.size * f->ports[flow->spec.from].fs_per_byte / 1000;

	if (flow->ccti)
		flow->next_at = f->clock.now + packet * (8 + flow->ccti) / 8;
}
