// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a queue is emptied with, a WRITE of no bytes, when the move is given up while it is on its way
 * to a queue pair that allows no remote writes; and of many queue pairs, in a CQ that has room
 * for what was asked to be signalled.
 */
#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define QPS 120

static void message(struct end *from, struct end *to, uint64_t n)
{
	CHECK_EQ(post_recv(to, n, 4096, 64), 0);
	CHECK_EQ(post(from, to, IBV_WR_SEND, n + 1, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(to, n, IBV_WC_SUCCESS);
	expect(from, n + 1, IBV_WC_SUCCESS);
}

static int access_of(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(e->qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
	return attr.qp_access_flags;
}

/* @sender has a SEND that waits, and the marker behind it. */
static void given_up(int sender, bool signaled)
{
	struct end e[2], *from = &e[sender], *to = &e[!sender];
	int round;

	pair_open(e, &(struct pair_how){ .no_write = true });
	message(from, to, 10);
	for (round = 0; round < 2; round++) {
		CHECK_EQ(post(from, to, IBV_WR_SEND, 20, signaled ? IBV_SEND_SIGNALED : 0, 0, 8), 0);
		CHECK_EQ(fake_check("mock0", NULL), 0);
		CHECK_EQ(fake_suspend_start("mock0"), 0);
		usleep(200000);
		CHECK_EQ(fake_abort(), 0);
		CHECK_EQ(fake_settled(), 0);
		CHECK_EQ(access_of(from), from->qp_access);
		CHECK_EQ(access_of(to), to->qp_access);
		CHECK_EQ(post_recv(to, 21, 4096, 64), 0);
		expect(to, 21, IBV_WC_SUCCESS);
		if (signaled)
			expect(from, 20, IBV_WC_SUCCESS);
		expect_none(from, 20);
		expect_none(to, 0);
		message(from, to, 30);
		message(to, from, 40);
	}
	move_away("mock0");
	move_back("mock0");
	message(from, to, 50);
	/* The application's are let through no more than before. */
	CHECK_EQ(post(from, to, IBV_WR_RDMA_WRITE, 7, 0, 0, 8), 0);
	expect(from, 7, IBV_WC_REM_ACCESS_ERR);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void connect_qps(struct end e[2], struct ibv_qp *a, struct ibv_qp *b)
{
	qp_to_init(&e[0], a);
	qp_to_init(&e[1], b);
	qp_to_rtr(&e[0], a, b->qp_num, 5);
	qp_to_rtr(&e[1], b, a->qp_num, 6);
	qp_to_rts(a, 6);
	qp_to_rts(b, 5);
}

static void write_one(struct end e[2], struct ibv_qp *qp, uint64_t wr_id, unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)e[0].buf, 8, e[0].mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = flags,
		.wr.rdma = { .remote_addr = (uintptr_t)e[1].buf, .rkey = e[1].mr->rkey },
	}, *bad;

	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
}

/* Each queue pair has a request that is signaled, which fills the CQ, and one that is not. */
static __attribute__((unused)) void many(const char *dev)
{
	static struct ibv_qp *qp[2][QPS];
	struct pair_how how = { .send_wr = 4, .recv_wr = 4, .cqe = QPS };
	struct end e[2];
	int i;

	pair_open(e, &how);
	for (i = 0; i < QPS; i++) {
		qp[0][i] = end_create_qp(&e[0], &how);
		qp[1][i] = end_create_qp(&e[1], &how);
		connect_qps(e, qp[0][i], qp[1][i]);
	}
	mock_stall(true);
	for (i = 0; i < QPS; i++) {
		write_one(e, qp[0][i], i, IBV_SEND_SIGNALED);
		write_one(e, qp[0][i], i, 0);
	}
	CHECK_EQ(fake_check(dev, NULL), 0);
	CHECK_EQ(fake_suspend_start(dev), 0);
	usleep(300000);		/* until all have been told to close their gates */
	mock_stall(false);
	CHECK_EQ(fake_wait(REPATH_STAGE_RELEASE), 0);
	CHECK_EQ(mock_unplug(dev), 0);
	move_back(dev);
	for (i = 0; i < QPS; i++)
		CHECK_EQ(poll_one(&e[0]).status, IBV_WC_SUCCESS);
	expect_none(&e[0], 0);
	CHECK_EQ(mock_cq_overruns(), 0);
	for (i = 0; i < QPS; i++) {
		CHECK_EQ(ibv_destroy_qp(qp[0][i]), 0);
		CHECK_EQ(ibv_destroy_qp(qp[1][i]), 0);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
#ifndef __SANITIZE_THREAD__	/* knows no more than 64 locks that a thread holds */
	many("mock0");
	many("mock1");
#endif
	given_up(0, true);
	given_up(1, true);
	given_up(0, false);
	given_up(1, false);
	return 0;
}
