// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a source of traffic sends next: how much, where to. */
#include "traffic.h"

#define HEADERS 30u		/* LRH, BTH, ICRC and VCRC, and some of the extended ones */

/* Messages are cut into full packets and what is left. */
static uint32_t message_packets(const struct flow_spec *s)
{
	uint32_t full = s->size - HEADERS;

	return (s->message + full - 1) / full;
}

static uint16_t packet_size(const struct flow_spec *s, uint32_t seq)
{
	uint32_t packets = message_packets(s);

	if (!packets || seq % packets != packets - 1)
		return s->size;
	return s->message - (packets - 1) * (s->size - HEADERS) + HEADERS;
}

/* All that it has to send; 0: without end. */
uint64_t source_packets(const struct flow_spec *s)
{
	uint64_t packets = message_packets(s);

	return s->messages * (packets ? packets : 1);
}

/* Whether a packet asks for an ACK, as its BTH would say. */
int source_asks(const struct flow_spec *s, uint32_t seq)
{
	uint32_t packets = message_packets(s), place = packets ? seq % packets : seq;

	return !s->ack || place + 1 == packets || !((place + 1) % s->ack);
}

static const struct flow_aim *aim_of(struct fabric *f, const struct flow_spec *s)
{
	double where = fabric_chance(f);
	uint32_t i = 0;

	while (i + 1 < s->n_aims && s->aims[i].until <= where)
		i++;
	return &s->aims[i];
}

/* Chooses the packet's way. Return: 0 if there is nowhere to go. */
int source_aim(struct fabric *f, struct flow *flow, struct packet *p)
{
	struct traffic *t = f->traffic;
	const struct flow_spec *s = &flow->spec;
	const struct flow_aim *mixed = s->pattern == FLOW_MIXED ? aim_of(f, s) : NULL;
	uint32_t to = mixed ? mixed->to : s->to;

	if (s->pattern == FLOW_UNIFORM ||
	    (s->pattern == FLOW_HOTSPOT && fabric_chance(f) >= s->hot)) {
		const uint32_t *hosts = s->n_among ? s->among : t->hosts;
		uint32_t n = s->n_among ? s->n_among : t->nhosts;

		if (!n || (n == 1 && hosts[0] == s->from))
			return 0;
		do {
			to = hosts[fabric_random(f) % n];
		} while (to == s->from);
	}
	p->dlid = s->dlid ? s->dlid : f->ports[to].lid;
	p->slid = f->ports[s->from].lid;
	p->sl = mixed ? mixed->sl : s->sl;
	if (s->spread)
		p->sl = (s->sl + p->dlid % s->spread) % 16;
	p->len = packet_size(s, p->seq);
	return 1;
}
