// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Traffic: open-loop sources by pattern and rate, closed-loop ones that behave like RC. */
#include <stdlib.h>
#include <string.h>

#include "congestion.h"
#include "traffic.h"

#define ACK_SIZE 30u
#define LOOK_AGAIN 100000000ull	/* 100 us: a source whose port does not send */

static struct traffic *traffic_of(struct fabric *f)
{
	if (!f->traffic)
		f->traffic = calloc(1, sizeof(*f->traffic));
	return f->traffic;
}

static int find_hosts(struct fabric *f, struct traffic *t)
{
	uint32_t *hosts = malloc((f->nports + 1) * sizeof(*hosts));

	if (!hosts)
		return -1;
	free(t->hosts);
	t->hosts = hosts;
	t->nhosts = 0;
	for (uint32_t p = 0; p < f->nports; p++)
		if (!f->ports[p].is_switch && f->ports[p].num && f->ports[p].lid && f->ports[p].up)
			hosts[t->nhosts++] = p;
	return 0;
}

static void latency_add(struct latency *l, uint64_t ps)
{
	unsigned int exponent, at;

	l->n++;
	l->sum += ps;
	if (ps > l->max)
		l->max = ps;
	if (ps < LATENCY_STEPS)
		ps = LATENCY_STEPS;
	exponent = 63 - __builtin_clzll(ps);
	at = (exponent - 4) * LATENCY_STEPS + (ps >> (exponent - 4)) % LATENCY_STEPS;
	l->bucket[at < LATENCY_BUCKETS ? at : LATENCY_BUCKETS - 1]++;
}

uint64_t latency_percentile(const struct latency *l, double percent)
{
	uint64_t want = l->n * percent / 100, sum = 0;

	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++) {
		sum += l->bucket[i];
		if (sum > want) {
			uint64_t top = (uint64_t)(LATENCY_STEPS + i % LATENCY_STEPS + 1) <<
				(i / LATENCY_STEPS);

			return top < l->max ? top : l->max;
		}
	}
	return l->max;
}

static void enqueue(struct fabric *f, uint32_t queue, uint32_t packet)
{
	struct queue *q = &f->queues[queue];

	q->head = packet;
	q->tail = packet;
	q->blocks = packet_blocks(&f->packets[packet]);
	relay_head(f, queue);
}

static void look_at(struct fabric *f, uint32_t number, uint64_t when)
{
	struct flow *flow = &f->traffic->flows[number];

	if (flow->scheduled)
		return;
	flow->scheduled = 1;
	clock_at(&f->clock, when, EV_FLOW, number, 0);
}

/* -ln() of a random number, without a logarithm (von Neumann). */
static double exponential(struct fabric *f)
{
	for (double whole = 0;; whole++) {
		double first = fabric_chance(f), last = first, next;
		unsigned int n = 1;

		while ((next = fabric_chance(f)) < last) {
			last = next;
			n++;
		}
		if (n % 2)
			return whole + first;
	}
}

/* Puts the next packet at the head of the source's queue if it is empty and it is time. */
static void pump(struct fabric *f, uint32_t number)
{
	struct flow *flow = &f->traffic->flows[number];
	const struct flow_spec *s = &flow->spec;
	uint64_t now = f->clock.now, born = now;
	uint32_t packet;

	if (f->queues[flow->queue].head != NONE || now < s->start || flow->stopped ||
	    (s->stop && now >= s->stop))
		return;
	if (s->messages && flow->next >= source_packets(s))
		return;
	if (s->window && flow->next - flow->acked >= s->window)
		return;
	if (flow->next_at > now) {
		look_at(f, number, flow->next_at);
		return;
	}
	if (flow->gap) {
		if (flow->due > now) {
			look_at(f, number, flow->due);
			return;
		}
		born = flow->due;
		flow->due += s->poisson ? (uint64_t)(flow->gap * exponential(f)) : flow->gap;
	}
	packet = packet_new(f);
	f->packets[packet].kind = PACKET_DATA;
	f->packets[packet].flow = number;
	f->packets[packet].born = born;
	f->packets[packet].seq = flow->next;
	if (!source_aim(f, flow, &f->packets[packet])) {
		packet_put(f, packet);
		return;
	}
	flow->next++;
	flow->sent++;
	if (s->window && !flow->timer) {
		flow->timer = 1;
		flow->timer_acked = flow->acked;
		clock_at(&f->clock, now + s->rto, EV_RTO, number, 0);
	}
	enqueue(f, flow->queue, packet);
}

static void acknowledge(struct fabric *f, uint32_t number)
{
	struct flow *flow = &f->traffic->flows[number];
	struct packet *p;
	uint32_t packet;

	if (flow->ack_queue == NONE)
		flow->ack_queue = queue_new(f, flow->spec.to, number | FLOW_ACK);
	if (f->queues[flow->ack_queue].head != NONE) {
		flow->ack_due = 1;
		return;
	}
	flow->ack_due = 0;
	packet = packet_new(f);
	p = &f->packets[packet];
	p->kind = PACKET_ACK;
	p->flow = number;
	p->born = f->clock.now;
	p->seq = flow->expected;
	p->slid = f->ports[flow->spec.to].lid;
	p->dlid = f->ports[flow->spec.from].lid;
	p->sl = flow->spec.sl;
	p->len = ACK_SIZE;
	p->marks = flow->becn ? MARK_BECN : 0;
	flow->becn = 0;
	enqueue(f, flow->ack_queue, packet);
}

void flow_sent(struct fabric *f, uint32_t number)
{
	if (number & FLOW_ACK) {
		number &= ~FLOW_ACK;
		if (f->traffic->flows[number].ack_due)
			acknowledge(f, number);
		return;
	}
	if (f->congestion)
		congestion_sent(f, number);
	pump(f, number);
}

/* A source with a rate and no window goes on at it: it loses what it has. */
void flow_stopped(struct fabric *f, uint32_t number)
{
	uint64_t when = f->clock.now;
	const struct flow *flow = &f->traffic->flows[number & ~FLOW_ACK];

	if (number & FLOW_ACK)
		return;
	when += !flow->gap || flow->spec.window ? LOOK_AGAIN : 0;
	look_at(f, number, flow->due > when ? flow->due : when);
}

void flow_due(struct fabric *f, uint32_t number, uint32_t unused)
{
	(void)unused;
	f->traffic->flows[number].scheduled = 0;
	pump(f, number);
}

void flow_timeout(struct fabric *f, uint32_t number, uint32_t unused)
{
	struct flow *flow = &f->traffic->flows[number];

	(void)unused;
	flow->timer = 0;
	if (flow->acked == flow->next)
		return;
	if (flow->acked == flow->timer_acked) {
		flow->resent += flow->next - flow->acked;
		flow->next = flow->acked;
	}
	flow->timer = 1;
	flow->timer_acked = flow->acked;
	clock_at(&f->clock, f->clock.now + flow->spec.rto, EV_RTO, number, 0);
	pump(f, number);
}

void flow_lost(struct fabric *f, uint32_t packet)
{
	struct packet *p = &f->packets[packet];

	if ((p->kind & ~0xc0) == PACKET_DATA)
		f->traffic->flows[p->flow].lost++;
}

static int my_lid(const struct port *port, uint16_t dlid)
{
	return dlid >= MCAST_LID || dlid >> port->lmc == port->lid >> port->lmc;
}

void flow_arrived(struct fabric *f, uint32_t port, uint32_t packet)
{
	struct packet *p = &f->packets[packet];
	struct traffic *t = f->traffic;
	uint32_t number = p->flow, seq = p->seq;
	struct flow *flow;
	int count = 1;

	if (!my_lid(&f->ports[port], p->dlid)) {
		relay_drop(f, port, packet, DROP_NOT_MINE);
		return;
	}
	flow = &t->flows[number];
	if (p->kind == PACKET_ACK) {
		if (p->marks & MARK_BECN)
			congestion_told(f, number);
		packet_put(f, packet);
		if ((int32_t)(seq - flow->acked) > 0)
			flow->acked = seq;
		if ((int32_t)(flow->next - flow->acked) < 0)
			flow->next = flow->acked;
		pump(f, number);
		return;
	}
	if (flow->spec.window)
		count = seq == flow->expected;
	if (count) {
		flow->expected++;
		if (flow->expected == source_packets(&flow->spec))
			flow->done = f->clock.now;
		flow->received++;
		flow->bytes += p->len;
		flow->places += flow->at != port;
		flow->at = port;
		t->received++;
		t->bytes += p->len;
		latency_add(&t->latency, f->clock.now - p->born);
		if (flow->latency)
			latency_add(flow->latency, f->clock.now - p->born);
	}
	if (p->marks & MARK_FECN && flow->spec.pattern == FLOW_FIXED)
		flow->becn = 1;
	packet_put(f, packet);
	/* One that is out of order says where to go on. */
	if (flow->spec.window ? !count || source_asks(&flow->spec, seq) : flow->becn)
		acknowledge(f, number);
}

uint32_t traffic_add(struct fabric *f, const struct flow_spec *spec)
{
	struct traffic *t = traffic_of(f);
	struct flow *flow;
	double bytes_per_ps;

	if (!t || spec->from >= f->nports || f->ports[spec->from].is_switch ||
	    !f->ports[spec->from].lid)
		return NONE;
	if (spec->pattern == FLOW_MIXED && !spec->n_aims)
		return NONE;
	if (spec->pattern != FLOW_UNIFORM && spec->pattern != FLOW_MIXED &&
	    (spec->to >= f->nports || f->ports[spec->to].is_switch || !f->ports[spec->to].lid))
		return NONE;
	if ((spec->pattern != FLOW_FIXED || spec->dlid) && spec->window)
		return NONE;	/* a connection has one other end */
	if (t->nflows == t->room) {
		uint32_t room = t->room ? t->room * 2 : 64;

		flow = realloc(t->flows, room * sizeof(*flow));
		if (!flow)
			return NONE;
		t->flows = flow;
		t->room = room;
	}
	if (!t->nhosts && find_hosts(f, t))
		return NONE;
	flow = &t->flows[t->nflows];
	memset(flow, 0, sizeof(*flow));
	flow->spec = *spec;
	flow->at = NONE;
	if (!flow->spec.size)
		flow->spec.size = 2048 + 30;
	if (source_packets(&flow->spec) > UINT32_MAX)
		return NONE;	/* more than there are numbers */
	if (!flow->spec.rto)
		flow->spec.rto = 1000000000;
	if (flow->spec.start < f->clock.now)
		flow->spec.start = f->clock.now;
	flow->due = flow->spec.start;
	bytes_per_ps = spec->gbps / 8000;
	if (spec->gbps > 0)
		flow->gap = flow->spec.size / bytes_per_ps;
	if (spec->poisson)
		flow->due += flow->gap * exponential(f);
	flow->queue = queue_new(f, spec->from, t->nflows);
	flow->ack_queue = spec->window ? queue_new(f, spec->to, t->nflows | FLOW_ACK) : NONE;
	if (t->nflows < MAX_SERIES)
		flow->latency = calloc(1, sizeof(*flow->latency));
	look_at(f, t->nflows++, flow->spec.start);
	return t->nflows - 1;
}

void traffic_stop(struct fabric *f)
{
	for (uint32_t i = 0; f->traffic && i < f->traffic->nflows; i++)
		f->traffic->flows[i].stopped = 1;
}

void traffic_free(struct fabric *f)
{
	struct traffic *t = f->traffic;

	if (!t)
		return;
	for (uint32_t i = 0; i < t->nflows; i++) {
		free(t->flows[i].latency);
		free(t->flows[i].spec.among);
		free(t->flows[i].spec.aims);
	}
	free(t->flows);
	free(t->hosts);
	free(t->sample_time);
	free(t->sample_bytes);
	free(t->series);
	free(t->occupancy);
	free(t);
	f->traffic = NULL;
}

int traffic_measure(struct fabric *f, uint64_t interval)
{
	struct traffic *t = traffic_of(f);
	int running;

	if (!t)
		return -1;
	running = t->interval != 0;
	t->since = f->clock.now;
	t->received = 0;
	t->bytes = 0;
	t->sampled_bytes = 0;
	t->nsamples = 0;
	t->deadlock_at = 0;
	t->deadlock_length = 0;
	memset(&t->latency, 0, sizeof(t->latency));
	memset(f->drops, 0, sizeof(f->drops));
	for (uint32_t i = 0; i < t->nflows; i++) {
		struct flow *flow = &t->flows[i];

		flow->sent = 0;
		flow->received = 0;
		flow->bytes = 0;
		flow->lost = 0;
		flow->resent = 0;
		flow->at = NONE;
		flow->places = 0;
		flow->sampled_bytes = 0;
		if (flow->latency)
			memset(flow->latency, 0, sizeof(*flow->latency));
	}
	t->interval = interval;
	if (interval && !running)
		clock_at(&f->clock, f->clock.now + interval, EV_SAMPLE, 0, 0);
	return 0;
}

static int sample_room(struct fabric *f, struct traffic *t)
{
	uint32_t room = t->sample_room ? t->sample_room * 2 : 256;
	void *p;

	if (t->nsamples < t->sample_room)
		return 0;
	p = realloc(t->sample_time, room * sizeof(*t->sample_time));
	if (!p)
		return -1;
	t->sample_time = p;
	p = realloc(t->sample_bytes, room * sizeof(*t->sample_bytes));
	if (!p)
		return -1;
	t->sample_bytes = p;
	/* The width of a row is fixed for the largest number of flows. */
	p = realloc(t->series, room * MAX_SERIES * sizeof(*t->series));
	if (!p)
		return -1;
	t->series = p;
	p = realloc(t->occupancy, room * f->config.vls * sizeof(*t->occupancy));
	if (!p)
		return -1;
	t->occupancy = p;
	t->sample_room = room;
	return 0;
}

void traffic_sample(struct fabric *f)
{
	struct traffic *t = f->traffic;
	uint32_t *occupancy, n;

	if (!t || !t->interval)
		return;
	clock_at(&f->clock, f->clock.now + t->interval, EV_SAMPLE, 0, 0);
	if (sample_room(f, t))
		return;
	n = t->nsamples++;
	t->sample_time[n] = f->clock.now - t->since;
	t->sample_bytes[n] = t->bytes - t->sampled_bytes;
	t->sampled_bytes = t->bytes;
	for (uint32_t i = 0; i < t->nflows && i < MAX_SERIES; i++) {
		struct flow *flow = &t->flows[i];

		t->series[n * MAX_SERIES + i] =
			(flow->bytes - flow->sampled_bytes) * 8000.0 / t->interval;
		flow->sampled_bytes = flow->bytes;
	}
	occupancy = &t->occupancy[n * f->config.vls];
	memset(occupancy, 0, f->config.vls * sizeof(*occupancy));
	for (uint32_t q = 0; q < f->nports * f->config.vls; q++)
		occupancy[q % f->config.vls] += f->queues[q].blocks;
	if (!t->deadlock_at) {
		t->deadlock_length = deadlock_find(f, t->deadlock, 64);
		if (t->deadlock_length)
			t->deadlock_at = f->clock.now;
	}
}
