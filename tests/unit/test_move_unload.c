// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module is unloaded while queue pairs are held: none is held for ever, at neither end. */
#include <pthread.h>
#include <stdatomic.h>

#include "../../include/repath_peer.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

/* Takes @n completions of each end. */
static void take(struct end e[2], int n, bool good)
{
	int i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < n; k++) {
			struct ibv_wc wc = poll_one(&e[i]);

			CHECK_EQ(wc.status == IBV_WC_SUCCESS, good);
		}
}

/* @told: each end has told the other that it has stopped; but that is still on its way */
static void go(bool told)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 14 };
	const char *why = NULL;
	struct end e[2];
	int i, ret;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 2; i++) {
		CHECK_EQ(post_recv(&e[i], 10, 0, 8), 0);
		CHECK_EQ(post_recv(&e[i], 11, 0, 8), 0);
	}
	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_READY, .slow_us = 1000000 });
	ret = fake_check("mock0", &why);
	CHECK(!ret, "check: %d, %s", ret, why);
	/* Neither can stop before its send is acknowledged. */
	mock_hold_acks(true);
	for (i = 0; i < 2; i++)
		CHECK_EQ(post(&e[i], &e[!i], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 0, 8), 0);
	take(e, 1, true);	/* the receives */
	fake_suspend_start("mock0");
	usleep(200000);
	for (i = 0; i < 2; i++)
		CHECK_EQ(post(&e[i], &e[!i], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 0, 8), 0);
	for (i = 0; i < 2; i++)
		expect_none(&e[i], 10);
	if (told) {
		mock_hold_acks(false);
		take(e, 1, true);	/* the first send */
		usleep(100000);
	}
	fake_unload();
	if (told) {
		take(e, 2, false);
	} else {
		usleep(100000);
		mock_hold_acks(false);
		take(e, 3, true);
	}
	for (i = 0; i < 2; i++)
		expect_none(&e[i], 10);
	/* The control verbs, too, return. */
	for (i = 0; i < 2; i++)
		CHECK_EQ(ibv_modify_qp(e[i].qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	usleep(1500000);	/* what was late is for nobody */
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	CHECK_EQ(fake_settled(), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Two ends have moved before, and the module of one of them is loaded anew: they move as before. */
static void anew(int end)
{
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 6; i++) {
		if (i == 3)
			fake_load_anew(e[end].qp->qp_num);
		move_away(i % 2 ? "mock1" : "mock0");
		move_back(i % 2 ? "mock1" : "mock0");
		CHECK_EQ(post_recv(&e[1], 10, 0, 8), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 1, IBV_SEND_SIGNALED, 0, 8), 0);
		expect(&e[1], 10, IBV_WC_SUCCESS);
		expect(&e[0], 1, IBV_WC_SUCCESS);
	}
	CHECK_EQ(fake_settled(), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void send_both(struct end e[2], struct end f[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		struct end *with = i ? f : e;

		CHECK_EQ(post_recv(&with[1], 20 + i, 0, 8), 0);
		CHECK_EQ(post(&with[0], &with[1], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 0, 8), 0);
		CHECK_EQ(expect(&with[1], 20 + i, IBV_WC_SUCCESS).qp_num, with[1].qp->qp_num);
		CHECK_EQ(expect(&with[0], i, IBV_WC_SUCCESS).qp_num, with[0].qp->qp_num);
	}
}

/* The end that stays had its module loaded anew, and that gives the number of one connection to another one. */
static void swapped(int end)
{
	const struct pair_how how = { 0 };
	struct end e[2], f[2];
	int i;

	pair_open(e, &how);
	for (i = 0; i < 2; i++) {
		f[i] = e[i];
		f[i].qp = end_create_qp(&f[i], &how);
	}
	pair_connect(f);
	for (i = 0; i < 2; i++) {
		send_both(e, f);
		move_away(end ? "mock0" : "mock1");
		move_back(end ? "mock0" : "mock1");
		send_both(e, f);
		if (!i)
			fake_load_swapped(e[end].qp->qp_num, f[end].qp->qp_num);
	}
	CHECK_EQ(fake_settled(), 0);
	for (i = 0; i < 2; i++)
		CHECK_EQ(ibv_destroy_qp(f[i].qp), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static atomic_bool stop;

static void *writes(void *arg)
{
	struct end *e = arg;
	uint64_t n = 0;

	while (!atomic_load(&stop)) {
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, ++n, IBV_SEND_SIGNALED, 0, 8), 0);
		CHECK_EQ(expect(&e[1], n, IBV_WC_SUCCESS).wr_id, n);
	}
	return NULL;
}

/* The keys are told anew while requests are translated with those that were known before. */
static void keys_in_use(void)
{
	pthread_t thread;
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 2; i++) {
		move_away(i ? "mock1" : "mock0");
		move_back(i ? "mock1" : "mock0");
	}
	atomic_store(&stop, false);
	CHECK_EQ(pthread_create(&thread, NULL, writes, e), 0);
	for (i = 0; i < TIMES(100); i++) {
		struct ibv_mr *mr;

		fake_load_anew(e[i % 2].qp->qp_num);
		mr = ibv_reg_mr(e[0].pd, e[0].buf, 8, ALL_ACCESS);
		CHECK(mr);
		usleep(5000);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	atomic_store(&stop, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(fake_settled(), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	keys_in_use();
	anew(0);
	anew(1);
	swapped(0);
	swapped(1);
	go(false);
	go(true);
	return 0;
}
