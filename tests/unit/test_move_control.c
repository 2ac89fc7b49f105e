// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Control verbs while the device moves: they wait and then do what they were asked for, on the new
 * device. Threads make and destroy objects of every kind on both ends all the time.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static atomic_bool stop;
static atomic_uint rounds;

static void *churn(void *arg)
{
	struct end *e = arg;
	char *buf = malloc(4096);
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct end own = *e;

	CHECK(buf);
	while (!atomic_load(&stop)) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, buf, 4096, ALL_ACCESS);
		struct ibv_pd *pd = ibv_alloc_pd(e->ctx);
		struct ibv_comp_channel *ch = ibv_create_comp_channel(e->ctx);
		struct ibv_cq *cq = ibv_create_cq(e->ctx, 16, NULL, ch, 0);

		CHECK(mr && pd && ch && cq);
		own.cq = cq;
		own.pd = pd;
		own.srq = NULL;
		own.qp = end_create_qp(&own, &(struct pair_how){ 0 });
		qp_to_init(&own, own.qp);
		CHECK_EQ(ibv_query_qp(own.qp, &attr, IBV_QP_STATE, &init), 0);
		CHECK_EQ(attr.qp_state, IBV_QPS_INIT);
		CHECK_EQ(ibv_query_port(e->ctx, 1, &port), 0);
		CHECK_EQ(port.state, IBV_PORT_ACTIVE);
		qp_to(own.qp, IBV_QPS_ERR);
		CHECK_EQ(ibv_query_qp(own.qp, &attr, IBV_QP_STATE, &init), 0);
		CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
		CHECK_EQ(ibv_destroy_qp(own.qp), 0);
		CHECK_EQ(ibv_destroy_cq(cq), 0);
		CHECK_EQ(ibv_destroy_comp_channel(ch), 0);
		CHECK_EQ(ibv_dealloc_pd(pd), 0);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		atomic_fetch_add(&rounds, 1);
		usleep(200);
	}
	free(buf);
	return NULL;
}

/* Whole devices are opened and closed, too. */
static void *reopen(void *arg)
{
	struct end e;

	while (!atomic_load(&stop)) {
		end_open(&e, arg, &(struct pair_how){ 0 });
		end_close(&e);
		atomic_fetch_add(&rounds, 1);
		usleep(1000);
	}
	return NULL;
}

int main(void)
{
	struct fake_faults f = { .seed = 2, .late_us = 1000, .twice = 10, .lost = 5 };
	struct traffic *t;
	struct end e[2];
	pthread_t thread[3];
	unsigned int i, before;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ .events = true });
	t = traffic_start(e, &(struct traffic_how){ .seed = 6 });
	fake_faults_set(&f);
	CHECK_EQ(pthread_create(&thread[0], NULL, churn, &e[0]), 0);
	CHECK_EQ(pthread_create(&thread[1], NULL, churn, &e[1]), 0);
	CHECK_EQ(pthread_create(&thread[2], NULL, reopen, (void *)"mock1"), 0);
	for (i = 0; i < 30; i++) {
		before = atomic_load(&rounds);
		move_away("mock0");
		move_back("mock0");
		traffic_flows(t, 5);
		while (atomic_load(&rounds) < before + 3)
			usleep(1000);
	}
	atomic_store(&stop, true);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	traffic_stop(t);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
	return 0;
}
