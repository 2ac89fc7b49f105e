// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Both ends wait for receives, and give up soon when nobody answers: the one that is flushed last
 * must not fail because the other answers no more.
 */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static void take(struct end *e, int sends, int recvs)
{
	int i, s = 0, r = 0;

	for (i = 0; i < 8; i++) {
		struct ibv_wc wc = poll_one(e);

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			CHECK_EQ(wc.wr_id, recvs + r++);
		else
			CHECK_EQ(wc.wr_id, sends + s++);
	}
	expect_none(e, 5);
}

static void post_sends(struct end e[2])
{
	int i;

	for (i = 0; i < 4; i++) {
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 0, 8), 0);
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 10 + i, IBV_SEND_SIGNALED, 0, 8), 0);
	}
}

static void post_recvs(struct end e[2])
{
	int i;

	for (i = 0; i < 4; i++) {
		CHECK_EQ(post_recv(&e[0], 100 + i, 4096, 64), 0);
		CHECK_EQ(post_recv(&e[1], 200 + i, 4096, 64), 0);
	}
	take(&e[0], 0, 100);
	take(&e[1], 10, 200);
}

int main(void)
{
	struct fake_faults f = { .seed = 11, .late_us = 20000, .twice = 20, .lost = 20 };
	struct end e[2];
	int i;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	mock_retry_ms(1);
	fake_faults_set(&f);
	for (i = 0; i < 6; i++) {
		post_sends(e);
		/* A peer that is being reconnected needs longer than this to answer. */
		move_away(i % 2 ? "mock1" : "mock0");
		mock_retry_ms(1000);
		move_back(i % 2 ? "mock1" : "mock0");
		mock_retry_ms(1);
		post_recvs(e);
	}
	/* Given up while both are stuck */
	mock_retry_ms(1000);
	post_sends(e);
	CHECK_EQ(fake_check("mock0", NULL), 0);
	fake_suspend_start("mock0");
	usleep(400000);
	CHECK_EQ(fake_abort(), 0);
	CHECK_EQ(fake_settled(), 0);
	post_recvs(e);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
