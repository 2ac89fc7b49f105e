// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer's program takes its queue pair to RESET when the move begins: the queue pair is in RESET, and can be
 * connected anew, whoever was faster.
 */
#include <pthread.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static struct end e[2];

static void drop_completions(void)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++)
		while (ibv_poll_cq(e[i].cq, 1, &wc))
			;
}

/* e[1] is in INIT. Its keys are others than the device's. */
static void connect_anew(void)
{
	int i;

	qp_to(e[0].qp, IBV_QPS_RESET);
	drop_completions();
	qp_to_init(&e[0], e[0].qp);
	for (i = 0; i < 2; i++)
		qp_to_rtr(&e[i], e[i].qp, e[!i].qp->qp_num, 100 + !i);
	for (i = 0; i < 2; i++)
		qp_to_rts(e[i].qp, 100 + i);
	CHECK_EQ(post_recv(&e[0], 6, 0, 64), 0);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 7, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[1], 7, IBV_WC_SUCCESS);
	expect(&e[0], 6, IBV_WC_SUCCESS);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 8, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[1], 3, IBV_WC_SUCCESS);
	expect(&e[0], 8, IBV_WC_SUCCESS);
}

/* It does not wait until the move has ended. */
static void *reset(void *arg)
{
	unsigned int us = *(unsigned int *)arg;

	usleep(us);
	qp_to(e[1].qp, IBV_QPS_RESET);
	fake_gone("mock0");		/* as its module says */
	qp_to_init(&e[1], e[1].qp);
	CHECK_EQ(post_recv(&e[1], 3, 0, 64), 0);
	return NULL;
}

/* GATE comes @after_us after its program has begun to take the queue pair to RESET. */
static void go(unsigned int reset_us, unsigned int us, unsigned int after_us)
{
	pthread_t thread;

	CHECK_EQ(post_recv(&e[1], 1, 0, 64), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 2, 0, 0, 8), 0);
	CHECK_EQ(fake_check("mock0", NULL), 0);
	mock_reset_us(reset_us);
	CHECK_EQ(pthread_create(&thread, NULL, reset, &us), 0);
	usleep(after_us);
	CHECK_EQ(fake_suspend_start("mock0"), 0);
	usleep(5000 + reset_us);
	mock_reset_us(0);
	CHECK_EQ(fake_abort(), 0);
	CHECK_EQ(fake_settled(), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	connect_anew();
}

int main(void)
{
	unsigned int seed = 1, us;
	int i;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	move_away("mock1");
	move_back("mock1");
	for (i = 0; i < 3; i++)
		go(30000, 0, 10000);
	for (i = 0; i < TIMES(40); i++) {
		us = rand_r(&seed) % 300;
		go(0, us, rand_r(&seed) % 100);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
