// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The peer hears of a new key later than its owner waits for that, and the program uses it at once: it waits until
 * the key is known, or known to be nobody's.
 */
#include <errno.h>
#include <pthread.h>

#include "../../include/repath_peer.h"
#include "check.h"
#include "clock_ahead.h"
#include "move_cycle.h"
#include "pair.h"

static void keys_take(unsigned int us)
{
	fake_faults_set(&(struct fake_faults){ .seed = 1, .slow = us ? REPATH_MSG_KEYS : 0, .slow_us = us });
}

/* For what waits. */
static void waits(int seconds)
{
	int i;

	ahead_ns += seconds * S;
	for (i = 0; i < 4; i++) {
		usleep(60000);	/* messages are said again meanwhile */
		fake_look();
	}
}

static void *hurry(void *arg)
{
	usleep(50000);
	ahead_ns += 2 * S;
	return arg;
}

/* A region whose key the peer has not heard of when its owner's patience is at its end. */
static struct ibv_mr *registered(struct end *e)
{
	struct ibv_mr *mr;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, hurry, NULL));
	mr = ibv_reg_mr(e->pd, e->buf, 8, ALL_ACCESS);
	CHECK(mr);
	pthread_join(thread, NULL);
	return mr;
}

static void nothing_comes(struct end *e)
{
	struct ibv_wc wc;

	CHECK_EQ(ibv_poll_cq(e->cq, 1, &wc), 0);
}

static void moved(struct end e[2])
{
	pair_open(e, &(struct pair_how){ 0 });
	move_away("mock0");
	move_back("mock0");
}

static void closed(struct end e[2])
{
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* It comes when its owner has long gone on; what is behind it waits, too, and one without a key. */
static void comes_late(void)
{
	struct ibv_mr *mr, wrong;
	struct end e[2];

	moved(e);
	keys_take(3500000);
	mr = registered(&e[0]);
	strcpy(e[0].buf, "before");
	strcpy(e[1].buf, "late");
	CHECK_EQ(post_recv(&e[0], 9, 64, 8), 0);
	write_by_mr(e, mr, 1);
	write_by_mr(e, e[0].mr, 2);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 3, IBV_SEND_SIGNALED, 0, 8), 0);
	nothing_comes(&e[1]);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	expect(&e[1], 2, IBV_WC_SUCCESS);
	expect(&e[1], 3, IBV_WC_SUCCESS);
	expect(&e[0], 9, IBV_WC_SUCCESS);
	CHECK(!strcmp(e[0].buf, "late"));
	/* One that nobody has fails as soon as that is known, and what is behind it is flushed. */
	keys_take(0);
	wrong = *mr;
	wrong.rkey ^= 0x5a000000;
	write_by_mr(e, &wrong, 4);
	write_by_mr(e, mr, 5);
	expect(&e[1], 4, IBV_WC_REM_ACCESS_ERR);
	expect(&e[1], 5, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	closed(e);
}

/* Its owner has given up telling it, as the peer was not to be reached for so long; or nobody answers any more. */
static void is_lost(bool back)
{
	struct ibv_mr *mr;
	struct end e[2];

	moved(e);
	messages_are_lost(true);
	mr = registered(&e[0]);
	waits(40);
	strcpy(e[0].buf, "before");
	strcpy(e[1].buf, "late");
	write_by_mr(e, mr, 1);
	write_by_mr(e, e[0].mr, 2);
	waits(20);
	nothing_comes(&e[1]);
	if (back)
		messages_are_lost(false);
	else
		waits(20);
	expect(&e[1], 1, back ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	expect(&e[1], 2, back ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	CHECK(!strcmp(e[0].buf, back ? "late" : "before"));
	messages_are_lost(false);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	closed(e);
}

/* What waits is flushed like all else when its queue pair comes to ERR, whoever is not to be reached. */
static void is_flushed(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_mr *mr;
	struct end e[2];

	moved(e);
	messages_are_lost(true);
	mr = registered(&e[0]);
	write_by_mr(e, mr, 1);
	write_by_mr(e, e[0].mr, 2);
	nothing_comes(&e[1]);
	CHECK_EQ(ibv_modify_qp(e[1].qp, &attr, IBV_QP_STATE), 0);
	fake_look();
	expect(&e[1], 1, IBV_WC_WR_FLUSH_ERR);
	expect(&e[1], 2, IBV_WC_WR_FLUSH_ERR);
	messages_are_lost(false);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	closed(e);
}

/* A move, of either end, while it waits. */
static void moves_meanwhile(const char *dev)
{
	struct ibv_mr *mr;
	struct end e[2];

	moved(e);
	keys_take(2500000);
	mr = registered(&e[0]);
	write_by_mr(e, mr, 1);
	write_by_mr(e, e[0].mr, 2);
	move_away(dev);
	keys_take(0);
	move_back(dev);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	expect(&e[1], 2, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	closed(e);
}

/* What waited, and the device does not take when it may go: from the @nth of it on the queue pair has failed. */
static void is_refused(unsigned int nth)
{
	enum ibv_wc_status status;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_mr *mr;
	struct end e[2];
	struct ibv_wc wc;
	unsigned int i;

	moved(e);
	keys_take(2500000);
	mr = registered(&e[0]);
	CHECK_EQ(post_recv(&e[1], 9, 64, 8), 0);
	mock_fail("post_send", EIO, nth, 1);
	for (i = 0; i < 4; i++)
		write_by_mr(e, i % 2 ? e[0].mr : mr, i);
	nothing_comes(&e[1]);
	for (i = 0; i < 4; i++) {
		wc = poll_one(&e[1]);
		/* Where the CQ is the receives', too. */
		if (wc.wr_id == 9) {
			CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
			i--;
			continue;
		}
		CHECK_EQ(wc.wr_id, i);
		status = i == nth ? IBV_WC_GENERAL_ERR : IBV_WC_WR_FLUSH_ERR;
		CHECK(wc.status == status || (i < nth && wc.status == IBV_WC_SUCCESS), "request %u: %d", i, wc.status);
	}
	CHECK_EQ(ibv_query_qp(e[1].qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
	keys_take(0);
	write_by_mr(e, e[0].mr, 7);
	do
		wc = poll_one(&e[1]);
	while (wc.wr_id == 9);
	CHECK_EQ(wc.wr_id, 7);
	CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	closed(e);
}

/*
 * The device does not take what waited, and neither gives back what it has had before: that is waited for. Meanwhile
 * the owner takes the queue pair to RESET and connects it anew: its new life has keys, and none of the old one's errors.
 */
static void is_reset_meanwhile(void)
{
	struct ibv_mr *mr;
	struct end e[2];
	struct ibv_wc wc;

	moved(e);
	keys_take(2500000);
	mr = registered(&e[0]);
	CHECK_EQ(post_recv(&e[1], 9, 64, 8), 0);
	mock_fail("post_send", EIO, 0, 1);
	mock_fail("ibv_modify_qp", EIO, 0, 3);
	write_by_mr(e, mr, 1);
	nothing_comes(&e[1]);
	while (mock_failures())
		usleep(1000);
	keys_take(0);
	qp_to(e[1].qp, IBV_QPS_RESET);
	qp_to(e[0].qp, IBV_QPS_RESET);
	qp_to_init(&e[1], e[1].qp);
	qp_to_init(&e[0], e[0].qp);
	qp_to_rtr(&e[1], e[1].qp, e[0].qp->qp_num, 200);
	qp_to_rtr(&e[0], e[0].qp, e[1].qp->qp_num, 100);
	qp_to_rts(e[1].qp, 100);
	qp_to_rts(e[0].qp, 200);
	strcpy(e[0].buf, "before");
	strcpy(e[1].buf, "anew");
	write_by_mr(e, e[0].mr, 2);
	do
		wc = poll_one(&e[1]);
	while (wc.wr_id == 1 || wc.wr_id == 9);
	CHECK_EQ(wc.wr_id, 2);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK(!strcmp(e[0].buf, "anew"));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	closed(e);
}

#define MANY	500

/*
 * As much as a queue holds, on UC, where nobody answers: in its order, but for what has a wrong key, which does
 * nothing; or flushed, in its order, too.
 */
static void many_wait(bool flushed)
{
	struct ibv_mr *mr, wrong;
	struct end e[2];
	unsigned int i;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UC, .send_wr = MANY, .recv_wr = MANY, .cqe = 2 * MANY });
	move_away("mock0");
	move_back("mock0");
	keys_take(2800000);
	mr = registered(&e[0]);
	wrong = *mr;
	wrong.rkey ^= 0x5a000000;
	memset(e[0].buf, 0, 8);
	*(uint32_t *)e[1].buf = 1;
	for (i = 0; i < MANY; i++)
		write_by_mr(e, i % 7 == 3 ? &wrong : i % 2 ? e[0].mr : mr, i);
	nothing_comes(&e[1]);
	keys_take(0);
	if (flushed) {
		qp_to(e[1].qp, IBV_QPS_ERR);
		fake_look();
	}
	for (i = 0; i < MANY; i++)
		expect(&e[1], i, flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
	CHECK_EQ(*(uint32_t *)e[0].buf, !flushed);
	nothing_comes(&e[1]);
	CHECK_EQ(mock_cq_overruns(), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	closed(e);
}

int main(void)
{
	alarm(HANGS);
	comes_late();
	is_lost(true);
	is_lost(false);
	is_flushed();
	is_refused(0);
	is_refused(2);
	is_reset_meanwhile();
	many_wait(false);
	many_wait(true);
	moves_meanwhile("mock0");
	moves_meanwhile("mock1");
	return 0;
}
