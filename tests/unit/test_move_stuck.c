// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SENDs that wait for a receive which the peer posts only after the move, with WRITEs behind them;
 * the same where a few of them were executed and the answer was lost.
 */
#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static void wait_quiet(struct traffic *t, int end)
{
	uint64_t n;

	do {
		n = traffic_received(t, end);
		usleep(20000);
	} while (n != traffic_received(t, end));
}

static void go(const struct pair_how *how, const struct traffic_how *traffic, int holder,
	       const char *dev)
{
	struct traffic *t;
	struct end e[2];
	int i;

	pair_open(e, how);
	t = traffic_start(e, traffic);
	for (i = 0; i < 2; i++) {
		traffic_flows(t, 50);
		traffic_hold_receives(t, holder, true);
		wait_quiet(t, holder);
		move_away(dev);
		move_back(dev);
		usleep(5000);
		traffic_hold_receives(t, holder, false);
		traffic_flows(t, 50);
	}
	/* Both ends hold */
	traffic_hold_receives(t, 0, true);
	traffic_hold_receives(t, 1, true);
	wait_quiet(t, 0);
	wait_quiet(t, 1);
	move_away(dev);
	move_back(dev);
	traffic_hold_receives(t, 0, false);
	traffic_hold_receives(t, 1, false);
	traffic_flows(t, 50);
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

/* Eight SENDs: three executed without an answer, the others waiting. */
static void lost_answers(const char *dev)
{
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 3; i++)
		CHECK_EQ(post_recv(&e[1], 100 + i, 1024 * i, 64), 0);
	mock_hold_acks(true);
	for (i = 0; i < 8; i++) {
		sprintf(e[0].buf + 64 * i, "message %d", i);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, i % 2 ? 0 : IBV_SEND_SIGNALED, 64 * i,
			      64), 0);
	}
	for (i = 0; i < 3; i++)
		expect(&e[1], 100 + i, IBV_WC_SUCCESS);
	expect_none(&e[0], 10);
	move_away(dev);
	mock_hold_acks(false);
	move_back(dev);
	expect(&e[0], 0, IBV_WC_SUCCESS);
	expect(&e[0], 2, IBV_WC_SUCCESS);
	expect_none(&e[0], 10);
	for (i = 3; i < 8; i++) {
		CHECK_EQ(post_recv(&e[1], 100 + i, 1024 * i, 64), 0);
		expect(&e[1], 100 + i, IBV_WC_SUCCESS);
	}
	expect(&e[0], 4, IBV_WC_SUCCESS);
	expect(&e[0], 6, IBV_WC_SUCCESS);
	for (i = 0; i < 8; i++) {
		char text[32];

		sprintf(text, "message %d", i);
		CHECK(!strcmp(e[1].buf + 1024 * i, text), "%d: %s", i, e[1].buf + 1024 * i);
	}
	expect_none(&e[0], 10);
	expect_none(&e[1], 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * The peer has had what is behind a READ, or an atomic, and its answer does not come: nobody is told that the data are
 * there, and it is not done again, when they may be others.
 */
static void lost_data(const char *dev, enum ibv_wr_opcode opcode)
{
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 2; i++)
		CHECK_EQ(post_recv(&e[1], 100 + i, 1024 * i, 64), 0);
	mock_lose_answers(true);
	for (i = 0; i < 4; i++)
		CHECK_EQ(post(&e[0], &e[1], i == 1 ? opcode : IBV_WR_SEND, i, IBV_SEND_SIGNALED,
			      i == 1 ? 2048 : 64 * i, i == 1 ? 8 : 64), 0);
	for (i = 0; i < 2; i++)
		expect(&e[1], 100 + i, IBV_WC_SUCCESS);
	expect_none(&e[0], 10);
	move_away(dev);
	mock_lose_answers(false);
	move_back(dev);
	expect(&e[0], 0, IBV_WC_SUCCESS);
	expect(&e[0], 1, IBV_WC_RETRY_EXC_ERR);
	for (i = 2; i < 4; i++)
		expect(&e[0], i, IBV_WC_WR_FLUSH_ERR);
	/* The other end finds out as well. */
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 5, IBV_SEND_SIGNALED, 0, 64), 0);
	expect(&e[1], 5, IBV_WC_RETRY_EXC_ERR);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * Answers of executed requests that are lost: they come when they are asked for again, which is
 * waited for. Who would not, and do the addition again after the move, has done it twice.
 */
static void late_answers(const char *dev)
{
	uint64_t *sum;
	struct end e[2];
	const char *why;

	pair_open(e, &(struct pair_how){ .timeout = 18 });
	sum = (uint64_t *)(e[1].buf + 128);
	*sum = 0;
	CHECK_EQ(post_recv(&e[1], 100, 0, 64), 0);
	mock_lose_answers(true);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 0, 0, 0, 64), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 1, IBV_SEND_SIGNALED, 128, 8), 0);
	expect(&e[1], 100, IBV_WC_SUCCESS);
	expect_none(&e[0], 10);
	CHECK_EQ(*sum, 1);
	CHECK_EQ(fake_check(dev, &why), 0);
	CHECK_EQ(fake_suspend_start(dev), 0);
	usleep(1000000);
	mock_lose_answers(false);
	CHECK_EQ(fake_wait(REPATH_STAGE_RELEASE), 0);
	CHECK_EQ(mock_unplug(dev), 0);
	move_back(dev);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	CHECK_EQ(*sum, 1);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * The device loses patience with a SEND after it was taken for stuck, and before the peer has stopped: the
 * queue pair has failed, what is behind that is flushed, and nothing of it is done after the move.
 */
static void out_of_patience(const char *dev)
{
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .sq_psn = 100, .timeout = 10, .retry_cnt = 7, .rnr_retry = 1,
		.max_rd_atomic = 4,
	};
	struct end e[2];
	int i;

	for (i = 0; i < 2; i++) {
		end_open(&e[i], i ? "mock1" : "mock0", &(struct pair_how){ 0 });
		qp_to_init(&e[i], e[i].qp);
	}
	for (i = 0; i < 2; i++)
		qp_to_rtr(&e[i], e[i].qp, e[!i].qp->qp_num, 100 + !i);
	CHECK_EQ(ibv_modify_qp(e[0].qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC), 0);
	qp_to_rts(e[1].qp, 101);

	mock_stall(true);
	for (i = 0; i < 3; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, 0, 0, 64), 0);
	/* So that its GATE is not one with its READY. */
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 9, 0, 4096, 64), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1, .slow = REPATH_MSG_READY, .slow_us = 1500000 });
	CHECK_EQ(fake_check(dev, NULL), 0);
	CHECK_EQ(fake_suspend_start(dev), 0);
	usleep(700000);
	mock_stall(false);
	CHECK_EQ(fake_wait(REPATH_STAGE_RELEASE), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	CHECK_EQ(mock_unplug(dev), 0);
	CHECK_EQ(post_recv(&e[1], 100, 0, 64), 0);
	move_back(dev);
	expect(&e[0], 0, IBV_WC_RNR_RETRY_EXC_ERR);
	expect(&e[0], 1, IBV_WC_WR_FLUSH_ERR);
	expect(&e[0], 2, IBV_WC_WR_FLUSH_ERR);
	expect(&e[1], 100, IBV_WC_WR_FLUSH_ERR);
	expect_none(&e[0], 10);
	expect_none(&e[1], 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	out_of_patience("mock0");
	out_of_patience("mock1");
	lost_answers("mock0");
	lost_answers("mock1");
	lost_data("mock0", IBV_WR_RDMA_READ);
	lost_data("mock1", IBV_WR_ATOMIC_FETCH_AND_ADD);
	late_answers("mock0");
	late_answers("mock1");
	go(&(struct pair_how){ 0 }, &(struct traffic_how){ .seed = 1 }, 1, "mock0");
	go(&(struct pair_how){ 0 }, &(struct traffic_how){ .seed = 2 }, 0, "mock0");
	go(&(struct pair_how){ .ex_cq = true }, &(struct traffic_how){ .seed = 3, .rarely = true },
	   1, "mock1");
	return 0;
}
