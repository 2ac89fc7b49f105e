// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Nothing that one end says gets to the other for longer than it waits: neither is left behind with its
 * gate closed, or in RESET, when messages get through again.
 */
#include "check.h"
#include "clock_ahead.h"
#include "fake_module.h"
#include "mock.h"
#include "pair.h"
#include "../../include/repath_peer.h"

#define DELAY	(40 * S)

static const struct fake_path path = { .dlid = 1, .sl = 3 };
static struct end e[2];

static void goes_by(struct end *from, struct end *to, int sl)
{
	CHECK_EQ(post_recv(to, 7, 0, 64), 0);
	CHECK_EQ(post(from, to, IBV_WR_SEND, 8, IBV_SEND_SIGNALED, 4096, 16), 0);
	CHECK_EQ(expect(to, 7, IBV_WC_SUCCESS).sl, sl);
	expect(from, 8, IBV_WC_SUCCESS);
}

/* e[0] has begun, and one has said that it is READY. */
static void start(void)
{
	unsigned int said = 0, delivered;

	fake_tap_set(&(struct fake_tap){ .type = REPATH_MSG_READY });
	fake_cycle_start(e[0].qp->qp_num, &path);
	while (!said) {
		usleep(10000);
		fake_tap_get(&said, &delivered);
	}
}

/* @busy can not be drained. */
static void begin(struct end *busy)
{
	pair_open(e, &(struct pair_how){ 0 });
	mock_retry_ms(1000000);
	mock_stall(true);
	CHECK_EQ(post(busy, &e[busy == e], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 8), 0);
	start();
	messages_are_lost(true);
}

static void end(int sl)
{
	CHECK_EQ(fake_settled(), 0);
	goes_by(&e[0], &e[1], sl);
	goes_by(&e[1], &e[0], 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* The one that has begun goes on as it was, and its peer, which has stopped, does not hear that. */
static void peer_waits(void)
{
	begin(&e[0]);
	time_passes(11);
	time_passes(11);
	CHECK_EQ(fake_cycle_wait(e[0].qp->qp_num), EAGAIN);
	mock_stall(false);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	time_passes(30);
	time_passes(30);
	messages_are_lost(false);
	end(0);
}

/* The peer has left RTS, and the one that has begun does not hear that. */
static void peer_has_left(void)
{
	begin(&e[1]);
	mock_stall(false);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	time_passes(0);
	time_passes(11);
	time_passes(11);
	time_passes(20);
	messages_are_lost(false);
	CHECK_EQ(fake_cycle_wait(e[0].qp->qp_num), 0);
	end(3);
}

/* For so long that there is no peer, as it seems. */
static void for_ever(void)
{
	begin(&e[1]);
	time_passes(11);
	time_passes(11);
	time_passes(300);
	time_passes(20);
	CHECK_EQ(fake_cycle_wait(e[0].qp->qp_num), EAGAIN);
	mock_stall(false);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	messages_are_lost(false);
	end(0);
}

/* The peer has heard that it is taken back, and its answer gets lost on the way: it is asked again. */
static void answer_is_lost(void)
{
	begin(&e[0]);
	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_ABORTED, .slow_us = DELAY / 1000,
	});
	time_passes(11);
	messages_are_lost(false);
	time_passes(11);
	CHECK_EQ(fake_cycle_wait(e[0].qp->qp_num), EAGAIN);
	mock_stall(false);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	time_passes(DELAY / S);		/* what was late is old */
	end(0);
}

/* Time is up between two looks at the clock: it is not forgotten. */
static void time_is_up(int nlooks)
{
	pair_open(e, &(struct pair_how){ 0 });
	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_READY, .slow_us = DELAY / 1000,
	});
	start();
	fake_patient(true);
	usleep(100000);
	looks = nlooks;
	stopped_ns += 10 * S;
	fake_patient(true);
	CHECK_EQ(fake_cycle_wait(e[0].qp->qp_num), EAGAIN);
	fake_patient(false);
	CHECK_EQ(fake_settled(), 0);
	messages_are_lost(false);
	pair_close(e);
	stopped_ns += 2 * DELAY;	/* what was late is told to nobody */
	usleep(100000);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	struct timespec now;
	int nlooks;

	alarm(HANGS);
	peer_waits();
	peer_has_left();
	for_ever();
	answer_is_lost();
	clock_gettime(CLOCK_MONOTONIC, &now);
	stopped_ns = now.tv_sec * S + now.tv_nsec;
	for (nlooks = 0; nlooks < 16; nlooks++)
		time_is_up(nlooks);
	return 0;
}
