/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All paths between hosts, followed lane by lane: how many take a link, which channels (a link and
 * a lane) wait for which, and what is dropped by SLtoVL. Then the cycles among the waiting ones:
 * where packets can come to wait for each other for ever (Dally and Seitz's condition).
 */
#ifndef REPATH_FABRIC_FLOW_H
#define REPATH_FABRIC_FLOW_H

#include "walk.h"

/**
 * struct turn - a way through a switch, from port to port, that some path takes
 * @to: by lane of arrival, bits of the lanes in which packets go on
 * @dropped: bits of SLs that SLtoVL drops here
 * @lid: one destination of what is dropped
 * @lost: paths that end here
 */
struct turn {
	uint16_t to[FABRIC_LANES];
	uint16_t dropped;
	uint16_t lid;
	uint64_t lost;
};

/**
 * struct link_use - what leaves by a port
 * @paths: pairs of a source port and a destination LID
 * @lane: the same by lane
 */
struct link_use {
	uint64_t paths;
	uint64_t lane[FABRIC_LANES];
};

struct flow {
	const struct fabric *f;
	struct turn ***turn;		/* by switch, by in * (nports + 1) + out */
	struct link_use *use;		/* by flow_port() */
	unsigned int *base;
	unsigned int ports;
	struct packets *at;		/* by switch */
	uint64_t lost;			/* paths that SLtoVL drops, at hosts too */
	uint64_t lost_at_hosts;
	const struct fabric_port *lost_at_host;
	uint8_t lost_sl;
};

void flow_init(struct flow *l, const struct fabric *f);
void flow_free(struct flow *l);
/* Adds the paths of all hosts to the LID that @w has walked to. */
void flow_add(struct flow *l, const struct walk *w);

static inline unsigned int flow_port(const struct flow *l, const struct fabric_port *p)
{
	return l->base[p->node->index] + p->num;
}

static inline const struct turn *flow_turn(const struct flow *l, const struct fabric_node *sw,
					   unsigned int in, unsigned int out)
{
	return l->turn[sw->order][in * (sw->nports + 1) + out];
}

/**
 * struct channel - one lane of a cable in one direction
 * @out: the port that sends
 * @vl: the lane
 */
struct channel {
	const struct fabric_port *out;
	uint8_t vl;
};

/**
 * struct wait - why a channel of a cycle waits for the next
 * @slid: a source of packets that do
 * @dlid: where they go; 0 if there is no such path
 * @sl: their SL
 */
struct wait {
	uint16_t slid;
	uint16_t dlid;
	uint8_t sl;
};

/**
 * struct cycle - channels that wait for each other in turn
 * @channel: each waits for the next, the last for the first
 * @wait: by channel
 * @length: how many
 * @knot: channels of all cycles that this one is tangled with
 */
struct cycle {
	struct channel *channel;
	struct wait *wait;
	unsigned int length;
	unsigned int knot;
};

/* A short cycle of each knot. Returns how many knots there are; frees by cycles_free(). */
unsigned int cycles_find(const struct flow *l, struct cycle **cycles);
void cycles_free(struct cycle *cycles, unsigned int n);

#endif /* REPATH_FABRIC_FLOW_H */
