/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sources and sinks at the hosts of the model, and what they measure. */
#ifndef VF_TRAFFIC_H
#define VF_TRAFFIC_H

#include "fabric.h"

#define LATENCY_STEPS 16u	/* of a power of two */
#define LATENCY_BUCKETS (40u * LATENCY_STEPS)
#define FLOW_ACK 0x80000000u	/* in queue.flow: the responder's side of the flow */
#define MAX_SERIES 256u		/* flows of which every sample is kept */

enum flow_pattern { FLOW_FIXED, FLOW_UNIFORM, FLOW_HOTSPOT, FLOW_MIXED };

struct flow_aim {
	uint32_t to;		/* port */
	uint16_t sl;
	double until;		/* part of the packets that goes there or to aims before it, 0..1 */
};

struct flow_spec {
	uint32_t from, to;	/* ports; to: the hot spot with FLOW_HOTSPOT */
	enum flow_pattern pattern;
	uint16_t sl;
	uint8_t spread;		/* SL is sl + destination's number modulo this; 0: only sl */
	uint16_t size;		/* bytes of a full packet with headers; 0: 2048 + 30 */
	uint32_t message;	/* payload of a message: its last packet is shorter; 0: all full */
	uint16_t dlid;		/* FLOW_FIXED: to whoever has this LID; 0: the LID that @to has */
	uint32_t messages;	/* that many, or packets if there are no messages; 0: without end */
	double gbps;		/* 0: as fast as it goes */
	uint8_t poisson;	/* gaps between packets are exponential, @gbps is their mean */
	uint32_t *among, n_among;	/* ports: the others that a pattern means; the flow frees it.
					 * 0: all
					 */
	struct flow_aim *aims;	/* FLOW_MIXED: where packets go, whatever their order; the flow frees it */
	uint32_t n_aims;
	double hot;		/* part of the packets that goes to the hot spot, 0..1 */
	uint64_t start, stop;	/* ps; stop 0: never */
	uint32_t window;	/* closed loop with that many packets in flight; 0: open loop */
	uint32_t ack;		/* closed loop: every so many packets ask for an ACK, and the last of
				 * a message; 0: all do
				 */
	uint64_t rto;		/* closed loop: retransmit after, ps (default 1 ms) */
};

struct latency {
	uint32_t bucket[LATENCY_BUCKETS];
	uint64_t n, max, sum;	/* ps */
};

struct flow {
	struct flow_spec spec;
	uint32_t queue, ack_queue;
	uint16_t dlid, slid;
	uint64_t gap, due;
	uint8_t scheduled, timer, ack_due, stopped;
	uint8_t becn, ccti_timer;	/* becn: the destination has to tell of congestion */
	uint32_t ccti;			/* how far the source is slowed down */
	uint64_t next_at;		/* and until when it waits for that */
	uint32_t next, acked, expected, timer_acked;
	uint64_t done;			/* when the last of its messages had come, ps; 0: not yet */
	uint64_t sent, received, bytes, lost, resent, sampled_bytes;
	uint32_t at, places;	/* which port took the last packet, and how often it was another one */
	struct latency *latency;
};

struct traffic {
	struct flow *flows;
	uint32_t nflows, room;
	uint32_t *hosts;		/* ports with a LID, destinations of patterns */
	uint32_t nhosts;
	uint64_t since;			/* when measuring began */
	uint64_t received, bytes, sampled_bytes;
	struct latency latency;
	uint64_t interval;		/* between samples; 0: none */
	uint64_t *sample_time, *sample_bytes;
	float *series;			/* [sample * nflows + flow], Gbit/s */
	uint32_t *occupancy;		/* [sample * vls + vl], blocks in input queues */
	uint32_t nsamples, sample_room;
	uint64_t deadlock_at;		/* first seen by a sample; 0: never */
	uint32_t deadlock[64];
	unsigned int deadlock_length;
};

/* Return: the flow's number, or NONE if the ports are no host ports with LIDs. */
uint32_t traffic_add(struct fabric *f, const struct flow_spec *spec);
void traffic_stop(struct fabric *f);	/* no flow sends any more */
void traffic_free(struct fabric *f);
/* Samples every @interval ps from now on; forgets what was measured so far. */
int traffic_measure(struct fabric *f, uint64_t interval);
void traffic_sample(struct fabric *f);
uint64_t latency_percentile(const struct latency *l, double percent);

/* source.c. All packets that it has to send; 0: without end. */
uint64_t source_packets(const struct flow_spec *s);
/* Whether a packet asks for an ACK, as its BTH would say. */
int source_asks(const struct flow_spec *s, uint32_t seq);
/* Chooses the packet's way and size. Return: 0 if there is nowhere to go. */
int source_aim(struct fabric *f, struct flow *flow, struct packet *p);

/* What the relay tells. */
void flow_sent(struct fabric *f, uint32_t flow);
void flow_stopped(struct fabric *f, uint32_t flow);
void flow_arrived(struct fabric *f, uint32_t port, uint32_t packet);
void flow_lost(struct fabric *f, uint32_t packet);
void flow_due(struct fabric *f, uint32_t flow, uint32_t unused);
void flow_timeout(struct fabric *f, uint32_t flow, uint32_t unused);

/* results.c: tables. what: flows, series, vls, drops, faults */
int results_csv(struct fabric *f, const char *what, FILE *file);
void results_json(struct fabric *f, FILE *file);

#endif
