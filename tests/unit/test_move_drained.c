// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who asks to be told when a queue pair in SQD is drained is told once, also where the device that was asked
 * has gone, and where the one that comes has nothing to drain; who does not ask is not told.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define ROUNDS 2000

static struct end e[2];

static void to_sqd(bool asks)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	CHECK_EQ(ibv_modify_qp(e[0].qp, &a, IBV_QP_STATE | (asks ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0)), 0);
}

/* How often it is told from now on, for so long. */
static int told(int ms)
{
	struct pollfd p = { .fd = e[0].ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	int n = 0;

	while (poll(&p, 1, ms) > 0) {
		CHECK_EQ(ibv_get_async_event(e[0].ctx, &event), 0);
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_GID_CHANGE || event.event_type == IBV_EVENT_LID_CHANGE)
			continue;
		CHECK_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
		CHECK(event.element.qp == e[0].qp);
		n++;
	}
	return n;
}

static void cycle(const char *dev)
{
	move_away(dev);
	move_back(dev);
}

static sem_t seen;

static void *reader(void *arg)
{
	struct ibv_async_event event;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		CHECK_EQ(ibv_get_async_event(e[0].ctx, &event), 0);
		ibv_ack_async_event(&event);
		sem_post(&seen);
	}
	return arg;
}

/* By a thread that waits for it while another one says SQD. */
static void at_once(void)
{
	pthread_t thread;
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	sem_init(&seen, 0, 0);
	CHECK_EQ(pthread_create(&thread, NULL, reader, NULL), 0);
	for (i = 0; i < ROUNDS; i++) {
		to_sqd(true);
		sem_wait(&seen);
		qp_to(e[0].qp, IBV_QPS_RTS);
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
	pair_close(e);
}

static void idle(enum ibv_qp_type type, const char *dev)
{
	pair_open(e, &(struct pair_how){ .type = type });
	to_sqd(true);
	CHECK_EQ(told(20), 1);
	cycle(dev);
	CHECK_EQ(told(20), 0);
	qp_to(e[0].qp, IBV_QPS_RTS);
	to_sqd(true);
	cycle(dev);
	CHECK_EQ(told(20), 1);
	cycle(dev);
	CHECK_EQ(told(20), 0);
	qp_to(e[0].qp, IBV_QPS_RTS);
	to_sqd(false);
	cycle(dev);
	CHECK_EQ(told(20), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* What has begun waits for a receive: the device that goes never says that it is drained. */
static void blocked(const char *dev)
{
	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 1, IBV_SEND_SIGNALED, 0, 8), 0);
	expect_none(&e[0], 20);
	to_sqd(true);
	CHECK_EQ(told(50), 0);
	cycle(dev);
	CHECK_EQ(told(20), 1);
	CHECK_EQ(post_recv(&e[1], 2, 0, 64), 0);
	qp_to(e[0].qp, IBV_QPS_RTS);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	expect(&e[1], 2, IBV_WC_SUCCESS);
	CHECK_EQ(told(20), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	int i;

	alarm(HANGS);
	at_once();
	for (i = 0; i < 6; i++)
		idle(types[i / 2], i % 2 ? "mock1" : "mock0");
	blocked("mock0");
	blocked("mock1");
	return 0;
}
