// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The new device does not take what the old one would have taken: the queue pair fails, and each of its
 * requests completes once, in order. And what no device takes in the state that a queue pair has, the
 * shim does not keep for it either.
 */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define SENDS 6

/* The @nth request that is given to the device again is refused. */
static void refused(unsigned int nth, bool srq)
{
	enum ibv_wc_status status;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	bool failed = false;
	struct ibv_wc wc;
	struct end e[2];
	unsigned int i;

	pair_open(e, &(struct pair_how){ .srq = srq });
	for (i = 0; i < SENDS; i++)
		CHECK_EQ(post_recv(&e[1], 100 + i, 64 * i, 64), 0);
	CHECK_EQ(post_recv(&e[0], 200, 4096, 64), 0);
	CHECK_EQ(post_recv(&e[0], 201, 4096, 64), 0);
	move_away("mock0");
	for (i = 0; i < SENDS; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, i % 2 ? 0 : IBV_SEND_SIGNALED, 64 * i, 8), 0);
	mock_fail("post_send", EIO, nth, 1);
	move_back("mock0");
	for (i = 0; i < SENDS; i++) {
		/* Of what was executed only half asks for a completion. */
		do {
			wc = poll_one(&e[0]);
			if (wc.wr_id < 200)
				break;
			CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
			failed = true;
		} while (1);
		status = wc.status;
		if (wc.wr_id > i) {
			CHECK(i % 2 && i < nth && !failed);
			i = wc.wr_id;
		}
		CHECK_EQ(wc.wr_id, i);
		CHECK(i < nth || status != IBV_WC_SUCCESS, "request %u", i);
		CHECK(!failed || status != IBV_WC_SUCCESS);
		failed |= status != IBV_WC_SUCCESS;
	}
	CHECK(failed);
	usleep(20000);
	for (i = 0; ibv_poll_cq(e[0].cq, 1, &wc); i++) {
		CHECK(!srq && wc.wr_id >= 200 && wc.status == IBV_WC_WR_FLUSH_ERR, "%lu", wc.wr_id);
		CHECK(i < 2);
	}
	CHECK_EQ(ibv_query_qp(e[0].qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 50, 0, 0, 8), 0);
	expect(&e[0], 50, IBV_WC_WR_FLUSH_ERR);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* A queue pair that is not connected takes no sends, also while there is no device to say so. */
static void not_connected(void)
{
	struct pair_how how = { 0 };
	struct ibv_qp *qp, *whole;
	struct ibv_wc wc;
	struct end e[2];
	int i;

	pair_open(e, &how);
	whole = e[0].qp;
	qp = e[0].qp = end_create_qp(&e[0], &how);
	for (i = 0; i < 2; i++) {
		if (i) {
			qp_to_init(&e[0], qp);
			CHECK_EQ(post_recv(&e[0], 5, 0, 64), 0);
		}
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 6, IBV_SEND_SIGNALED, 0, 8), EINVAL);
		move_away("mock0");
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 7, IBV_SEND_SIGNALED, 0, 8), EINVAL);
		move_back("mock0");
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 8, IBV_SEND_SIGNALED, 0, 8), EINVAL);
	}
	CHECK_EQ(ibv_poll_cq(e[0].cq, 1, &wc), 0);
	/* The receive is still there. */
	qp_to(qp, IBV_QPS_ERR);
	expect(&e[0], 5, IBV_WC_WR_FLUSH_ERR);
	expect_none(&e[0], 10);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	e[0].qp = whole;
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(60);
	not_connected();
	refused(0, false);
	refused(3, false);
	refused(5, true);
	return 0;
}
