// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What does not come: a message that was overtaken, the next completion of a link, of any link. */
#include "rcheck.h"

#define LOST_S 1.0	/* an overtaken message would come within this time */

void link_progressed(struct check *c, struct link *l)
{
	if (c->last_progress && c->now - c->last_progress > c->opt.stall / 4)
		c->flow_from = c->now;
	c->last_progress = l->last_progress = c->now;
	if (l->round > c->rounds)
		return;
	l->round = c->rounds + 1;
	if (++c->in_round < c->traffic.qps)
		return;
	c->in_round = 0;
	c->rounds++;
}

/* How long a link may have to wait for its turn, and for one that asks for a completion. */
static double turn_s(const struct check *c)
{
	if (!c->traffic.rate)
		return 0;
	return 2.0 * c->traffic.qps * c->traffic.signal_every * c->traffic.list / c->traffic.rate;
}

/*
 * One that stands still while others go on. When all do, as while they are moved, that is the others'
 * case: those behind it in the queue may wait for a while then.
 */
static void check_links(struct check *c)
{
	double limit = c->opt.stall + turn_s(c);
	uint32_t i;

	if (!c->sender || c->phase > STOPPING)
		return;
	for (i = 0; i < c->traffic.qps; i++) {
		struct link *l = &c->links[i];
		double since = l->last_progress > c->started ? l->last_progress : c->started;

		if (c->phase == STOPPING && l->posted == l->retired)
			continue;
		if (since < c->flow_from)
			since = c->flow_from;
		if (since < c->pause_until)
			since = c->pause_until;
		if (c->now - since > limit && c->last_progress - since > limit / 2)
			fail(c, l, "stood still for %.0f s, at request %llu of %llu, while others went on",
			     c->now - since, (unsigned long long)l->retired,
			     (unsigned long long)l->posted);
	}
}

/* At the end, when all that was sent has come: each link has had its part of it. */
void check_all_sent(struct check *c)
{
	uint64_t total = 0;
	uint32_t i;

	for (i = 0; i < c->traffic.qps; i++)
		total += c->links[i].seq;
	/* A run can be over before each had its turn. */
	if (!c->sender || total < 2ull * c->traffic.qps * c->traffic.list)
		return;
	for (i = 0; i < c->traffic.qps; i++)
		if (!c->links[i].last_progress || !c->links[i].seq)
			fail(c, &c->links[i], "stood still from the beginning to the end, of %llu requests in all",
			     (unsigned long long)total);
}

void check_times(struct check *c)
{
	uint32_t i;

	for (i = 0; i < c->traffic.qps; i++) {
		struct link *l = &c->links[i];

		if (l->missing && c->now - l->missing_since > LOST_S)
			fail(c, l, "message %llu is lost: later ones came",
			     (unsigned long long)l->missing);
	}
	check_links(c);
	if ((c->sender || c->phase != RUNNING) &&
	    c->now - (c->last_progress ? c->last_progress : c->started) > c->opt.stall) {
		for (i = 0; i < c->traffic.qps; i++) {
			struct link *l = &c->links[i];

			if (l->posted != l->retired)
				fail(c, l, "no completion of request %llu (%s) for %.0f s",
				     (unsigned long long)l->retired,
				     msg_op_names[l->ring[l->retired % c->nsend].op], c->opt.stall);
			else if (c->phase == STOPPING && !l->finished)
				fail(c, l, "%llu messages came, no more for %.0f s",
				     (unsigned long long)l->next_rseq - 1, c->opt.stall);
		}
		fail(c, NULL, "no progress for %.0f s", c->opt.stall);
	}
}
