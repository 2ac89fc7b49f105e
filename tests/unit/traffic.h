/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Traffic both ways over a connected pair, a thread an end: numbered SENDs and WRITE_WITH_IMMs that
 * must arrive once and in order; WRITEs that a later READ must find; atomics whose results
 * show whether each was done exactly once; completions that must come in order, one for each
 * signalled request. Anything else ends the program.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "pair.h"

/**
 * struct traffic_how
 * @seed: of the sequence of operations
 * @window: requests kept outstanding, at most 48; default 24
 * @sends_only: no operation but SEND and WRITE_WITH_IMM
 * @rarely: signal only each @window-th request
 */
struct traffic_how {
	unsigned int seed, window;
	bool sends_only, rarely;
};

struct traffic;

/* The pair must have at least 64 send and receive requests, and events only if @e has channels. */
struct traffic *traffic_start(struct end e[2], const struct traffic_how *how);
/* An end posts no receives until it is allowed again. */
void traffic_hold_receives(struct traffic *t, int end, bool hold);
/* Messages received at an end so far. */
uint64_t traffic_received(struct traffic *t, int end);
/* Waits until both ends have got @n more messages; at most 10 s. */
void traffic_flows(struct traffic *t, uint64_t n);
/* No new requests; waits until everything has arrived and checks the sums. */
void traffic_stop(struct traffic *t);

#endif /* TRAFFIC_H */
