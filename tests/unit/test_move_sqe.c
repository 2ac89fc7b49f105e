// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A send fails by the sender's own fault: queue pairs of UD and UC are in SQE then, or, on a device that does
 * not make the difference, in ERR, and their owner may not have heard of it. After a move they are where they
 * were: what is sent is flushed until he says RTS; what comes is received in SQE, also from a peer of UC.
 */
#include <pthread.h>

#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static struct end e[2];
static struct ibv_ah *ah, *back;	/* of UD: to the second end, and to the first one */

static enum ibv_qp_state state_of(int i)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(e[i].qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, e[i].qp->state);
	return attr.qp_state;
}

static int modify(enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct ibv_qp_attr a = { .cur_qp_state = from, .qp_state = to };

	return ibv_modify_qp(e[0].qp, &a, IBV_QP_CUR_STATE | IBV_QP_STATE);
}

/* @qpn: of the receiver, as its sender may know it */
static int send_from(int i, struct ibv_ah *to, uint32_t qpn, uint64_t wr_id, bool bad, int flags)
{
	/* Behind the end of the region. */
	struct ibv_sge sge = { (uintptr_t)e[i].buf + (bad ? e[i].bytes : 8192), 8, e[i].mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = flags, .imm_data = htobe32(wr_id),
	}, *not;

	if (to) {
		wr.wr.ud.ah = to;
		wr.wr.ud.remote_qpn = qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (bad) {	/* needs no receive, for lack of which UC would lose it */
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = (uintptr_t)e[!i].buf;
		wr.wr.rdma.rkey = e[!i].mr->rkey;
	}
	return ibv_post_send(e[i].qp, &wr, &not);
}

static void sends(uint64_t wr_id, bool bad, int flags)
{
	CHECK_EQ(send_from(0, ah, e[1].qp->qp_num, wr_id, bad, flags), 0);
}

static void arrives(uint64_t wr_id)
{
	CHECK_EQ(post_recv(&e[1], 90, 0, 64), 0);
	sends(wr_id, false, IBV_SEND_SIGNALED);
	expect(&e[0], wr_id, IBV_WC_SUCCESS);
	CHECK_EQ(be32toh(expect(&e[1], 90, IBV_WC_SUCCESS).imm_data), wr_id);
}

/* The receives that were posted are there, in order. */
static void receives(uint64_t recv)
{
	CHECK_EQ(send_from(1, back, e[0].qp->qp_num, 40 + recv, false, IBV_SEND_SIGNALED), 0);
	expect(&e[1], 40 + recv, IBV_WC_SUCCESS);
	CHECK_EQ(be32toh(expect(&e[0], recv, IBV_WC_SUCCESS).imm_data), 40 + recv);
}

static void open_pair(enum ibv_qp_type type, bool srq)
{
	int i;

	pair_open(e, &(struct pair_how){ .type = type, .srq = srq });
	ah = type == IBV_QPT_UD ? pair_ah(&e[0], &e[1]) : NULL;
	back = type == IBV_QPT_UD ? pair_ah(&e[1], &e[0]) : NULL;
	for (i = 0; i < 8; i++)
		CHECK_EQ(post_recv(&e[0], i, 1024 + 64 * i, 64), 0);
}

static void close_pair(void)
{
	if (ah) {
		CHECK_EQ(ibv_destroy_ah(ah), 0);
		CHECK_EQ(ibv_destroy_ah(back), 0);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

/* One that arrives, one that fails, and two behind it. */
static void fail(void)
{
	CHECK_EQ(post_recv(&e[1], 90, 0, 64), 0);
	mock_stall(true);	/* until all are posted */
	sends(10, false, IBV_SEND_SIGNALED);
	sends(11, true, 0);
	sends(12, false, 0);
	sends(13, false, IBV_SEND_SIGNALED);
	mock_stall(false);
	expect(&e[1], 90, IBV_WC_SUCCESS);
	while (!mock_quiet())
		usleep(100);
}

static void is_told(void)
{
	expect(&e[0], 10, IBV_WC_SUCCESS);
	expect(&e[0], 11, IBV_WC_LOC_PROT_ERR);
	expect(&e[0], 12, IBV_WC_WR_FLUSH_ERR);
	expect(&e[0], 13, IBV_WC_WR_FLUSH_ERR);
	expect_none(&e[0], 1);
}

/* @seen: by the owner, before the first move, of device @first */
static void in_sqe(enum ibv_qp_type type, bool srq, bool seen, const char *first)
{
	int k, n = 0;

	open_pair(type, srq);
	fail();
	if (seen) {
		is_told();
		CHECK_EQ(state_of(0), IBV_QPS_SQE);
	}
	/* It was taken back: as if nothing had been. */
	CHECK_EQ(fake_check(first, NULL), 0);
	CHECK_EQ(fake_suspend_start(first), 0);
	CHECK_EQ(fake_abort(), 0);
	CHECK_EQ(fake_settled(), 0);
	for (k = 0; k < 3; k++) {
		const char *dev = k == 1 ? "mock1" : first;

		move_away(dev);
		if (!k && !seen)
			is_told();
		sends(20, false, 0);
		move_back(dev);
		if (k || strcmp(dev, "mock1") || type == IBV_QPT_UC)
			CHECK_EQ(state_of(0), IBV_QPS_SQE);
		sends(21, false, IBV_SEND_SIGNALED);
		expect(&e[0], 20, IBV_WC_WR_FLUSH_ERR);
		expect(&e[0], 21, IBV_WC_WR_FLUSH_ERR);
		receives(n++);
	}
	expect_none(&e[1], 1);
	CHECK_EQ(modify(IBV_QPS_RTS, IBV_QPS_RTS), EINVAL);
	CHECK_EQ(modify(IBV_QPS_SQE, IBV_QPS_SQD), EINVAL);
	CHECK_EQ(state_of(0), IBV_QPS_SQE);
	CHECK_EQ(modify(IBV_QPS_SQE, IBV_QPS_RTS), 0);
	CHECK_EQ(state_of(0), IBV_QPS_RTS);
	arrives(22);
	receives(n++);
	move_away("mock0");
	move_back("mock0");
	CHECK_EQ(state_of(0), IBV_QPS_RTS);
	arrives(23);
	receives(n++);
	/* Again, and out of it by RESET and by ERR. */
	fail();
	is_told();
	move_away("mock0");
	move_back("mock0");
	CHECK_EQ(state_of(0), IBV_QPS_SQE);
	qp_to(e[0].qp, IBV_QPS_ERR);
	CHECK_EQ(state_of(0), IBV_QPS_ERR);
	for (; n < 8 && !srq; n++)
		expect(&e[0], n, IBV_WC_WR_FLUSH_ERR);
	sends(24, false, 0);
	expect(&e[0], 24, IBV_WC_WR_FLUSH_ERR);
	close_pair();
}

static void out_by_reset(enum ibv_qp_type type)
{
	open_pair(type, false);
	fail();
	move_away("mock0");
	move_back("mock0");
	is_told();
	qp_to(e[0].qp, IBV_QPS_RESET);
	CHECK_EQ(state_of(0), IBV_QPS_RESET);
	if (type == IBV_QPT_UD) {
		qp_to_init(&e[0], e[0].qp);
		qp_to_rtr(&e[0], e[0].qp, 0, 0);
		qp_to_rts(e[0].qp, 1);
		arrives(25);
	}
	close_pair();
}

/* The owner has put it right himself, before it is moved. */
static void put_right(enum ibv_qp_type type, const char *dev)
{
	open_pair(type, false);
	fail();
	is_told();
	CHECK_EQ(modify(IBV_QPS_SQE, IBV_QPS_RTS), 0);
	arrives(30);
	move_away(dev);
	move_back(dev);
	arrives(31);
	receives(0);
	close_pair();
}

#define POSTED 40

static struct ibv_wc told[POSTED + 1];

static void *post_all(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < POSTED; i++)
		sends(100 + i, false, IBV_SEND_SIGNALED);
	return NULL;
}

/* It takes the completion queue's lock all the time, too. */
static void *poll_all(void *arg)
{
	int n = 0, left = 500000;

	(void)arg;
	while (n < POSTED && left--)
		n += ibv_poll_cq(e[0].cq, POSTED - n, told + n);
	return (void *)(uintptr_t)n;
}

/* One thread ends it while another one posts: each send is flushed or sent, and not both. */
static void ends_while_others_post(enum ibv_qp_type type, unsigned int delay)
{
	pthread_t poster, poller;
	int i, sent = 0;
	void *n;

	open_pair(type, false);
	fail();
	is_told();
	for (i = 0; i < POSTED; i++)
		CHECK_EQ(post_recv(&e[1], 200 + i, 0, 64), 0);
	move_away("mock0");
	move_back("mock0");
	CHECK_EQ(pthread_create(&poller, NULL, poll_all, NULL), 0);
	CHECK_EQ(pthread_create(&poster, NULL, post_all, NULL), 0);
	usleep(delay);
	CHECK_EQ(modify(IBV_QPS_SQE, IBV_QPS_RTS), 0);
	CHECK_EQ(pthread_join(poster, NULL), 0);
	CHECK_EQ(pthread_join(poller, &n), 0);
	for (i = (uintptr_t)n; i < POSTED; i++)
		told[i] = poll_one(&e[0]);
	for (i = 0; i < POSTED; i++) {
		CHECK_EQ(told[i].wr_id, 100 + i);
		if (told[i].status == IBV_WC_WR_FLUSH_ERR && !sent)
			continue;
		CHECK_EQ(told[i].status, IBV_WC_SUCCESS);
		CHECK_EQ(be32toh(expect(&e[1], 200 + sent, IBV_WC_SUCCESS).imm_data), 100 + i);
		sent++;
	}
	expect_none(&e[0], 1);
	expect_none(&e[1], 1);
	close_pair();
}

/* On a device that makes no difference; nothing is received any more. */
static void in_error(bool seen)
{
	int i;

	mock_sqe(false);
	open_pair(IBV_QPT_UD, false);
	fail();
	if (seen)
		CHECK_EQ(state_of(0), IBV_QPS_ERR);
	move_away("mock0");
	sends(20, false, IBV_SEND_SIGNALED);
	move_back("mock0");
	expect(&e[0], 10, IBV_WC_SUCCESS);
	expect(&e[0], 11, IBV_WC_LOC_PROT_ERR);
	expect(&e[0], 12, IBV_WC_WR_FLUSH_ERR);
	expect(&e[0], 13, IBV_WC_WR_FLUSH_ERR);
	for (i = 0; i < 8; i++)
		expect(&e[0], i, IBV_WC_WR_FLUSH_ERR);
	expect(&e[0], 20, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(state_of(0), IBV_QPS_ERR);
	CHECK_EQ(post_recv(&e[0], 30, 0, 64), 0);
	expect(&e[0], 30, IBV_WC_WR_FLUSH_ERR);
	close_pair();
	mock_sqe(true);
}

int main(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UD, IBV_QPT_UC };
	int i, k;

	alarm(HANGS);
	mock_sqe(true);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 4; k++)
			in_sqe(types[i], k == 2 && !i, k & 1, "mock0");
		put_right(types[i], "mock0");
		put_right(types[i], "mock1");
		out_by_reset(types[i]);
		for (k = 0; k < 40; k++)
			ends_while_others_post(types[i], k);
	}
	in_sqe(IBV_QPT_UC, false, false, "mock1");
	in_error(false);
	in_error(true);
	return 0;
}
