// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets that wait too long: HOQLife at the head of a queue, LifeTimeValue in a switch, and a VL
 * that is stalled after VLStallCount heads in a row (IBA 1.2.1 vol 1, 18.2.5.4).
 */
#include "fabric.h"
#include "traffic.h"

static uint64_t deadline(const struct fabric *f, uint32_t port, const struct queue *q)
{
	const struct port *out = &f->ports[port];
	const struct node *node = &f->nodes[out->node];
	uint64_t hoq = CLOCK_NEVER, life = CLOCK_NEVER;

	if (out->hoq != CLOCK_NEVER)
		hoq = q->since + out->hoq;
	if (node->lifetime != CLOCK_NEVER)
		life = f->packets[q->head].entered + node->lifetime;
	return hoq < life ? hoq : life;
}

void lifetime_arm(struct fabric *f, uint32_t port)
{
	struct port *out = &f->ports[port];
	uint64_t first = CLOCK_NEVER;

	if (out->timer || !out->is_switch ||
	    (!out->timed && f->nodes[out->node].lifetime == CLOCK_NEVER))
		return;
	for (unsigned int bits = out->waiting; bits; bits &= bits - 1) {
		uint32_t lane = port * f->config.vls + __builtin_ctz(bits);

		for (uint32_t q = f->lanes[lane].first; q != NONE; q = f->queues[q].next) {
			uint64_t when = deadline(f, port, &f->queues[q]);

			if (when < first)
				first = when;
		}
	}
	if (first == CLOCK_NEVER)
		return;
	out->timer = 1;
	clock_at(&f->clock, first, EV_LIFETIME, port, 0);
}

/* Return: whether the lane is stalled now, and its line empty. */
static int drop_head(struct fabric *f, uint32_t port, uint32_t lane, uint32_t queue)
{
	struct port *out = &f->ports[port];
	struct lane *l = &f->lanes[lane];
	struct queue *q = &f->queues[queue];
	int hoq = out->hoq != CLOCK_NEVER && q->since + out->hoq <= f->clock.now;
	int stall = hoq && out->stall_count && ++l->stalls >= out->stall_count;

	if (stall) {	/* first: who comes next is not to line up */
		l->stalls = 0;
		l->stalled_until = f->clock.now + 8 * out->hoq;
	}
	relay_discard(f, queue, port, hoq ? DROP_HOQ : DROP_LIFETIME);
	while (stall && l->first != NONE)
		relay_discard(f, l->first, port, DROP_STALL);
	return stall;
}

void lifetime_expire(struct fabric *f, uint32_t port)
{
	struct port *out = &f->ports[port];

	out->timer = 0;
	for (unsigned int vl = 0; vl < f->config.vls; vl++) {
		uint32_t lane = port * f->config.vls + vl, q;

		/* From the front each time: who was behind a head that is dropped may have gone. */
		do {
			q = f->lanes[lane].first;
			while (q != NONE && deadline(f, port, &f->queues[q]) > f->clock.now)
				q = f->queues[q].next;
		} while (q != NONE && !drop_head(f, port, lane, q));
	}
	if (out->waiting)
		lifetime_arm(f, port);
}
