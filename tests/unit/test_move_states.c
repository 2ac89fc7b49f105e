// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs in every state, connections within one device and to several, one that only ever
 * receives, and some that do not allow remote writes: all come back as they were.
 */
#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define N 6

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, qp->state);
	return attr.qp_state;
}

static void connect_ends(struct end *a, struct end *b, bool b_sends)
{
	qp_to_init(a, a->qp);
	qp_to_init(b, b->qp);
	qp_to_rtr(a, a->qp, b->qp->qp_num, 0x800001);
	qp_to_rtr(b, b->qp, a->qp->qp_num, 0xfffff0);
	qp_to_rts(a->qp, 0xfffff0);
	if (b_sends)
		qp_to_rts(b->qp, 0x800001);
}

static void message(struct end *a, struct end *b, uint64_t n)
{
	CHECK_EQ(post_recv(b, n, 4096, 64), 0);
	*(uint64_t *)a->buf = n;
	CHECK_EQ(post(a, b, IBV_WR_SEND, n + 1, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(b, n, IBV_WC_SUCCESS);
	CHECK_EQ(*(uint64_t *)(b->buf + 4096), n);
	expect(a, n + 1, IBV_WC_SUCCESS);
}

static void go(bool no_write)
{
	struct pair_how how = { .no_write = no_write };
	struct end e[N];
	struct ibv_qp *idle[3];
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int i, round;

	/* 0-1: across, 2-3: within mock0, 4-5: across, 5 only receives */
	for (i = 0; i < N; i++)
		end_open(&e[i], i % 2 && i != 3 ? "mock1" : "mock0", &how);
	connect_ends(&e[0], &e[1], true);
	connect_ends(&e[2], &e[3], true);
	connect_ends(&e[4], &e[5], false);
	for (i = 0; i < 3; i++)
		idle[i] = end_create_qp(&e[0], &how);
	qp_to_init(&e[0], idle[1]);
	qp_to_init(&e[0], idle[2]);
	qp_to(idle[2], IBV_QPS_ERR);
	for (round = 0; round < 6; round++) {
		const char *dev = round % 3 == 1 ? "mock1" : "mock0";

		for (i = 0; i < N; i += 2)
			message(&e[i], &e[i + 1], 10 * round + i);
		message(&e[1], &e[0], 1000 + round);
		message(&e[3], &e[2], 1000 + round);
		/* Kept over the move, of one that sends and one that only receives */
		CHECK_EQ(post_recv(&e[5], 5000, 8192, 64), 0);
		CHECK_EQ(post_recv(&e[2], 5002, 8192, 64), 0);
		move_away(dev);
		CHECK_EQ(post(&e[4], &e[5], IBV_WR_SEND, 5001, IBV_SEND_SIGNALED, 0, 8), 0);
		CHECK_EQ(post(&e[3], &e[2], IBV_WR_SEND, 5003, IBV_SEND_SIGNALED, 0, 8), 0);
		move_back(dev);
		expect(&e[4], 5001, IBV_WC_SUCCESS);
		expect(&e[5], 5000, IBV_WC_SUCCESS);
		expect(&e[3], 5003, IBV_WC_SUCCESS);
		expect(&e[2], 5002, IBV_WC_SUCCESS);
		CHECK_EQ(state_of(idle[0]), IBV_QPS_RESET);
		CHECK_EQ(state_of(idle[1]), IBV_QPS_INIT);
		CHECK_EQ(state_of(idle[2]), IBV_QPS_ERR);
		CHECK_EQ(state_of(e[0].qp), IBV_QPS_RTS);
		CHECK_EQ(state_of(e[5].qp), IBV_QPS_RTR);
		for (i = 0; i < N; i++) {
			CHECK_EQ(ibv_query_qp(e[i].qp, &attr, IBV_QP_DEST_QPN, &init), 0);
			CHECK_EQ(attr.dest_qp_num, e[i ^ 1].qp->qp_num);
			CHECK_EQ(attr.qp_access_flags, e[i].qp_access);
			CHECK_EQ(init.cap.max_send_wr, 64);
			CHECK(init.send_cq == e[i].cq);
		}
	}
	if (no_write) {
		/* The marker was let through, the application's are not. */
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 7, 0, 0, 8), 0);
		expect(&e[0], 7, IBV_WC_REM_ACCESS_ERR);
	}
	/* Idle ones can be used. */
	qp_to_init(&e[0], idle[0]);
	qp_to(idle[2], IBV_QPS_RESET);
	for (i = 0; i < 3; i++)
		CHECK_EQ(ibv_destroy_qp(idle[i]), 0);
	for (i = 0; i < N; i++)
		end_close(&e[i]);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

static uint64_t *word(struct end *e, int at)
{
	return (uint64_t *)(e->buf + at);
}

/* What e[0] was given before its owner said SQD is done, some of it without a completion. */
static void send_some(struct end e[2], bool rc)
{
	int i;

	for (i = 0; i < 8; i++)
		CHECK_EQ(post_recv(&e[1], i, 1024 + 64 * i, 64), 0);
	*word(&e[1], 0) = 0;
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND_WITH_IMM, 70, IBV_SEND_SIGNALED, 8, 8), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND_WITH_IMM, 71, 0, 8, 8), 0);
	if (rc)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 72, 0, 0, 8), 0);
	expect(&e[0], 70, IBV_WC_SUCCESS);
	for (i = 0; i < 2; i++)
		CHECK_EQ(be32toh(expect(&e[1], i, IBV_WC_SUCCESS).imm_data), 70 + i);
	while (!mock_quiet())
		usleep(100);
}

/* Nothing that SQD holds back has been sent; the other direction goes on. */
static void check_held(struct end e[2], bool rc)
{
	CHECK_EQ(state_of(e[0].qp), IBV_QPS_SQD);
	expect_none(&e[1], 20);
	expect_none(&e[0], 0);
	CHECK_EQ(*word(&e[1], 0), rc);
	CHECK_EQ(*word(&e[1], 16), 0);
	CHECK_EQ(post_recv(&e[0], 90, 8192, 64), 0);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 91, IBV_SEND_SIGNALED, 64, 8), 0);
	expect(&e[0], 90, IBV_WC_SUCCESS);
	expect(&e[1], 91, IBV_WC_SUCCESS);
}

/*
 * In SQD the owner holds requests back: @dev is moved, given up first, and comes back in SQD with them;
 * they are sent, once, when he says RTS. @some: others were sent before
 */
static void held_back(enum ibv_qp_type type, const char *dev, bool some, bool srq)
{
	bool rc = type == IBV_QPT_RC;
	struct end e[2];
	int i, round;

	pair_open(e, &(struct pair_how){ .type = type, .srq = srq });
	for (round = 0; round < 2; round++) {
		if (some)
			send_some(e, rc);
		else
			for (i = 2; i < 8; i++)
				CHECK_EQ(post_recv(&e[1], i, 1024 + 64 * i, 64), 0);
		*word(&e[1], 0) = some && rc;
		*word(&e[1], 16) = 0;
		*word(&e[0], 16) = 99;
		qp_to(e[0].qp, IBV_QPS_SQD);
		/* Nothing that waits for a receive is in front. */
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 2, 0, 16, 8), 0);
		if (rc)
			CHECK_EQ(post(&e[0], &e[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 3,
				      IBV_SEND_SIGNALED, 0, 8), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND_WITH_IMM, 4, 0, 8, 8), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND_WITH_IMM, 5, IBV_SEND_SIGNALED, 8, 8), 0);
		CHECK_EQ(fake_check(dev, NULL), 0);
		CHECK_EQ(fake_suspend_start(dev), 0);
		usleep(300 * round);
		CHECK_EQ(fake_abort(), 0);
		CHECK_EQ(fake_settled(), 0);
		check_held(e, some && rc);
		for (i = 0; i < 2; i++) {
			move_away(dev);
			CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND_WITH_IMM, 6 + i, IBV_SEND_SIGNALED, 8, 8),
				 0);
			move_back(dev);
			check_held(e, some && rc);
		}
		qp_to(e[0].qp, IBV_QPS_RTS);
		if (rc)
			expect(&e[0], 3, IBV_WC_SUCCESS);
		for (i = 5; i < 8; i++)
			expect(&e[0], i, IBV_WC_SUCCESS);
		for (i = 4; i < 8; i++)
			CHECK_EQ(be32toh(expect(&e[1], i - 2, IBV_WC_SUCCESS).imm_data), i);
		CHECK_EQ(*word(&e[1], 0), rc + (some && rc));
		CHECK_EQ(*word(&e[1], 16), 99);
		expect_none(&e[0], 5);
		expect_none(&e[1], 0);
		for (i = 6; i < 8; i++) {
			CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 80, IBV_SEND_SIGNALED, 8, 8), 0);
			expect(&e[0], 80, IBV_WC_SUCCESS);
			expect(&e[1], i, IBV_WC_SUCCESS);
		}
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

/* What was begun before SQD is waited for: its answer is lost at first, and it is not to be done twice. */
static void still_draining(const char *dev)
{
	struct end e[2];

	pair_open(e, &(struct pair_how){ .timeout = 18 });
	*word(&e[1], 0) = 0;
	mock_lose_answers(true);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 1, IBV_SEND_SIGNALED, 0, 8), 0);
	expect_none(&e[0], 50);
	CHECK_EQ(*word(&e[1], 0), 1);
	qp_to(e[0].qp, IBV_QPS_SQD);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 2, IBV_SEND_SIGNALED, 0, 8), 0);
	CHECK_EQ(fake_check(dev, NULL), 0);
	CHECK_EQ(fake_suspend_start(dev), 0);
	usleep(300000);
	mock_lose_answers(false);
	CHECK_EQ(fake_wait(REPATH_STAGE_RELEASE), 0);
	CHECK_EQ(mock_unplug(dev), 0);
	move_back(dev);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	expect_none(&e[0], 20);
	CHECK_EQ(*word(&e[1], 0), 1);
	qp_to(e[0].qp, IBV_QPS_RTS);
	expect(&e[0], 2, IBV_WC_SUCCESS);
	CHECK_EQ(*word(&e[1], 0), 2);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };
	int i, k;

	alarm(HANGS);
	for (i = 0; i < 2; i++)
		for (k = 0; k < 2; k++) {
			held_back(types[i], k ? "mock1" : "mock0", false, false);
			held_back(types[i], k ? "mock1" : "mock0", true, types[i] == IBV_QPT_RC);
		}
	still_draining("mock0");
	still_draining("mock1");
	go(false);
	go(true);
	return 0;
}
