// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A CQ that has room for what was asked to be signalled, and a long queue of unsignalled requests
 * behind a SEND that waits: when they are taken back none may overrun the CQ.
 */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define DEPTH 200

static void go(const char *dev)
{
	struct pair_how how = { .send_wr = DEPTH, .recv_wr = 4, .cqe = 8 };
	struct end e[2];
	int i;

	pair_open(e, &how);
	for (i = 0; i < DEPTH; i++) {
		*(int *)e[0].buf = i;
		CHECK_EQ(post(&e[0], &e[1], i ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, i,
			      IBV_SEND_INLINE | (i == DEPTH - 1 ? IBV_SEND_SIGNALED : 0), 0, 4),
			 0);
	}
	move_away(dev);
	move_back(dev);
	expect_none(&e[0], 10);
	CHECK_EQ(post_recv(&e[1], 500, 4096, 64), 0);
	expect(&e[1], 500, IBV_WC_SUCCESS);
	expect(&e[0], DEPTH - 1, IBV_WC_SUCCESS);
	CHECK_EQ(*(int *)e[1].buf, DEPTH - 1);
	CHECK_EQ(mock_cq_overruns(), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	go("mock0");
	go("mock1");
	return 0;
}
