/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * fdcheck: do the descriptors of completion channels and of asynchronous events behave?
 *
 * Every way to wait for an event has a queue pair, a channel and a thread of its own, which is
 * set up once. The two ends play ping-pong with numbered messages on each. Nobody polls without
 * an event, so a lost event is a game that stands still.
 */
#ifndef APPS_FDCHECK_H
#define APPS_FDCHECK_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"

enum way { WAY_BLOCK, WAY_EPOLL_LT, WAY_EPOLL_ET, WAY_POLL, WAY_SELECT, WAY_NONBLOCK, WAYS };

extern const char *const way_names[WAYS];

#define RECVS 4

struct slot {
	uint64_t number;
	uint64_t check;
};

/**
 * struct watch - one way to wait, with its objects
 * @stop: set by main(): the client lets the game end after the next message
 * @parked: the thread has got a message that it does not answer
 * @end: set by main(): leave, whatever you wait for
 * @done: set by the thread when it has left
 * @last: number of the last message received; the next one is two more
 * @arms: notifications asked for; @events may never be more
 * @spurious: an edge of EPOLLET without an event, which is allowed
 * @changed: when @last changed, CLOCK_MONOTONIC seconds
 * @failure: what went wrong
 */
struct watch {
	enum way way;
	bool client;
	unsigned int gap_us;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct slot *slots;	/* RECVS to receive, one to send */
	struct rc_address local, remote;
	pthread_t thread;
	int epoll;

	bool parked;
	volatile bool stop, end, done;
	volatile uint64_t last;
	volatile double changed;
	double max_gap;
	uint64_t recvs_done, sends;
	uint64_t arms, events, spurious;
	unsigned int unacked;
	char failure[200];
};

/**
 * watch_create() - the objects of one way to wait, queue pair in INIT
 * Exits with a message when it can not.
 */
void watch_create(struct watch *w, const struct endpoint *ep, struct ibv_pd *pd, enum way way);

/**
 * watch_start() - receives posted, notification asked for, thread started
 * The queue pair is in RTS at this end; the client's first message goes out with watch_serve().
 */
void watch_start(struct watch *w);

/**
 * watch_serve() - send the first message
 */
void watch_serve(struct watch *w);

/**
 * watch_destroy() - and check what destroying promises
 *
 * A channel with a queue is busy; a queue with an event that was not acknowledged is not gone
 * before it is.
 */
void watch_destroy(struct watch *w);

/**
 * watch_fail() - keep the first failure
 */
void watch_fail(struct watch *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

double seconds_now(void);

#endif
