// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* While the device is away posts are kept up to the queues' depth, and refused beyond. */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define DEPTH 8

/* Sends and receives complete in their order, but between each other in any. */
static void take(struct end *e, int sends, int recvs)
{
	int i, s = 0, r = 0;

	for (i = 0; i < 2 * DEPTH; i++) {
		struct ibv_wc wc = poll_one(e);

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			CHECK_EQ(wc.wr_id, recvs + r++);
		else
			CHECK_EQ(wc.wr_id, sends + s++);
	}
	CHECK_EQ(s, DEPTH);
}

int main(void)
{
	struct pair_how how = { .send_wr = DEPTH, .recv_wr = DEPTH };
	struct end e[2];
	int i;

	alarm(HANGS);
	pair_open(e, &how);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 90, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[0], 90, IBV_WC_SUCCESS);
	move_away("mock0");
	for (i = 0; i < DEPTH; i++) {
		sprintf(e[0].buf + 64 * i, "kept %d", i);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, IBV_SEND_SIGNALED |
			      (i % 2 ? IBV_SEND_INLINE : 0), 64 * i, 16), 0);
		CHECK_EQ(post_recv(&e[0], 200 + i, 16384 + 64 * i, 64), 0);
		/* The peer's gate is closed too. */
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 300 + i, IBV_SEND_SIGNALED, 64 * i, 16),
			 0);
	}
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 9, 0, 0, 16), ENOMEM);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 9, 0, 0, 16), ENOMEM);
	CHECK_EQ(post_recv(&e[0], 9, 0, 16), ENOMEM);
	expect_none(&e[0], 10);
	expect_none(&e[1], 0);
	for (i = 0; i < DEPTH; i++)
		CHECK_EQ(post_recv(&e[1], 400 + i, 32768 + 64 * i, 64), 0);
	/* What was inline has been copied, the rest is read when it goes out. */
	memset(e[0].buf + 64, 'x', 16);
	move_back("mock0");
	take(&e[0], 0, 200);
	take(&e[1], 300, 400);
	for (i = 0; i < DEPTH; i++) {
		char text[32];

		sprintf(text, "kept %d", i);
		CHECK(!strcmp(e[1].buf + 32768 + 64 * i, text), "%d: %s", i,
		      e[1].buf + 32768 + 64 * i);
	}
	expect_none(&e[0], 10);
	expect_none(&e[1], 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
