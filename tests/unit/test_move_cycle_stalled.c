// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A queue pair that can not be drained is not connected anew: it goes on as it was, and so does its peer. */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"
#include "../../include/repath_peer.h"

static const struct fake_path path = { .dlid = 1, .sl = 3 };
static struct end e[2];

static void goes_on(void)
{
	int i, end;

	pair_open(e, &(struct pair_how){ 0 });
	mock_retry_ms(60000);
	mock_stall(true);
	for (i = 0; i < 8; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED, 64 * i, 64), 0);
	/* Both have begun, and one gives up first. */
	for (end = 0; end < 2; end++)
		fake_cycle_start(e[end].qp->qp_num, &path);
	for (end = 0; end < 2; end++)
		CHECK_EQ(fake_cycle_wait(e[end].qp->qp_num), EAGAIN);
	for (; i < 16; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED, 64 * i, 64), 0);
	mock_stall(false);
	for (i = 0; i < 16; i++)
		expect(&e[0], i, IBV_WC_SUCCESS);
	CHECK_EQ(mock_path_sl(e[0].qp->qp_num), 0);
	for (end = 0; end < 2; end++)
		CHECK_EQ(fake_cycle(e[end].qp->qp_num, &path), 0);
	CHECK_EQ(mock_path_sl(e[0].qp->qp_num), 3);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* It was taken back, the peer goes on, and has not said so yet: the device is moved. */
static void and_a_move(void)
{
	int i;

	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_ABORTED, .slow_us = 1500000,
	});
	pair_open(e, &(struct pair_how){ 0 });
	mock_stall(true);
	for (i = 0; i < 8; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED, 64 * i, 64), 0);
	fake_cycle_start(e[0].qp->qp_num, &path);
	usleep(10500000);	/* ABORT is after 10 s */
	mock_stall(false);
	move_away("mock0");
	move_back("mock0");
	for (; i < 16; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED, 64 * i, 64), 0);
	for (i = 0; i < 16; i++)
		expect(&e[0], i, IBV_WC_SUCCESS);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	goes_on();
	and_a_move();
	return 0;
}
