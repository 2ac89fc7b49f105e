// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * 1000 suspends at random moments, of either device, one in five given up again, while eight
 * threads post, poll, create and destroy: two checked connections (one of them with shared receive queues and the
 * extended interfaces), and four that make and destroy objects of every kind, read the events,
 * and reopen a device. Messages between the ends come late, twice, or are lost. Arguments: a
 * seed, and how many.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

#define PAIRS 2
#define CHURNERS 4

static atomic_bool stop;
static atomic_uint made;
static struct end e[PAIRS][2];

static void queue_pairs(struct end *end)
{
	struct end own = *end;
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_recv_wr wr = { 0 }, *bad;
	int i;

	own.channel = ibv_create_comp_channel(end->ctx);
	own.cq = ibv_create_cq(end->ctx, 16, NULL, own.channel, 0);
	own.pd = ibv_alloc_pd(end->ctx);
	own.srq = ibv_create_srq(own.pd, &sa);
	CHECK(own.channel && own.cq && own.pd && own.srq);
	for (i = 0; i < 4; i++)
		CHECK_EQ(ibv_post_srq_recv(own.srq, &wr, &bad), 0);
	own.qp = end_create_qp(&own, &(struct pair_how){ 0 });
	qp_to_init(&own, own.qp);
	CHECK_EQ(ibv_modify_srq(own.srq, &(struct ibv_srq_attr){ .srq_limit = 2 }, IBV_SRQ_LIMIT),
		 0);
	CHECK_EQ(ibv_query_qp(own.qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_INIT);
	CHECK(init.srq == own.srq && init.send_cq == own.cq);
	qp_to(own.qp, IBV_QPS_ERR);
	CHECK_EQ(ibv_req_notify_cq(own.cq, 0), 0);
	CHECK_EQ(ibv_resize_cq(own.cq, 32), 0);
	CHECK_EQ(ibv_destroy_qp(own.qp), 0);
	CHECK_EQ(ibv_destroy_srq(own.srq), 0);
	CHECK_EQ(ibv_destroy_cq(own.cq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(own.channel), 0);
	CHECK_EQ(ibv_dealloc_pd(own.pd), 0);
}

static void memory(struct end *end, char *buf)
{
	struct ibv_parent_domain_init_attr pa = { .pd = end->pd };
	struct ibv_td_init_attr ta = { 0 };
	struct ibv_td *td = ibv_alloc_td(end->ctx, &ta);
	struct ibv_mr *mr, *null;
	struct ibv_mw *mw[2];
	struct ibv_pd *pd;

	CHECK(td);
	pa.td = td;
	pd = ibv_alloc_parent_domain(end->ctx, &pa);
	CHECK(pd);
	mr = ibv_reg_mr(pd, buf, 4096, ALL_ACCESS | IBV_ACCESS_MW_BIND);
	null = ibv_alloc_null_mr(pd);
	mw[0] = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	mw[1] = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	CHECK(mr && null && mw[0] && mw[1]);
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			      IBV_ACCESS_LOCAL_WRITE), 0);
	CHECK_EQ(ibv_dealloc_mw(mw[0]), 0);
	CHECK_EQ(ibv_dealloc_mw(mw[1]), 0);
	CHECK_EQ(ibv_dereg_mr(null), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_dealloc_td(td), 0);
}

/* Sends to a number that nobody has: it completes, whatever moves. */
static void datagrams(struct end *end, char *buf)
{
	struct pair_how how = { .type = IBV_QPT_UD, .send_wr = 8, .recv_wr = 8 };
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1 };
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 9 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct end own = *end;
	int i;

	own.buf = buf;
	own.srq = NULL;
	own.cqx = NULL;
	own.cq = ibv_create_cq(end->ctx, 32, NULL, NULL, 0);
	CHECK(own.cq);
	own.qp = end_create_qp(&own, &how);
	qp_to_init(&own, own.qp);
	CHECK_EQ(ibv_attach_mcast(own.qp, &group, 0), 0);
	qp_to(own.qp, IBV_QPS_RTR);
	qp_to_rts(own.qp, 1);
	CHECK_EQ(ibv_query_gid(own.ctx, 1, 0, &aa.grh.dgid), 0);
	wr.wr.ud.ah = ibv_create_ah(own.pd, &aa);
	CHECK(wr.wr.ud.ah, "%s", strerror(errno));
	wr.wr.ud.remote_qpn = 0xfffffd;
	for (i = 0; i < 6; i++) {
		wr.wr_id = i;
		CHECK_EQ(ibv_post_send(own.qp, &wr, &bad), 0);
	}
	for (i = 0; i < 6; i++)
		expect(&own, i, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_ah(wr.wr.ud.ah), 0);
	CHECK_EQ(ibv_detach_mcast(own.qp, &group, 0), 0);
	CHECK_EQ(ibv_destroy_qp(own.qp), 0);
	CHECK_EQ(ibv_destroy_cq(own.cq), 0);
}

/* What there is to read goes with its queue pair, which another thread may destroy in between: nobody waits for it. */
static void events(struct end *end)
{
	struct pollfd p = { .fd = end->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	while (poll(&p, 1, 0) == 1) {
		if (ibv_get_async_event(end->ctx, &ev)) {
			CHECK_EQ(errno, EAGAIN);
			return;
		}
		/* Of a queue pair that queue_pairs() took to ERR. */
		if (ev.event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
			CHECK(ev.element.qp != end->qp);
		else
			CHECK(ev.event_type == IBV_EVENT_GID_CHANGE ||
			      ev.event_type == IBV_EVENT_LID_CHANGE, "event %d", ev.event_type);
		ibv_ack_async_event(&ev);
	}
}

/* One that has just gone after it was listed can not be opened: no fault of ours. */
static void reopen(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	int i;

	for (i = 0; list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			break;
		pd = ibv_alloc_pd(ctx);
		cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
		CHECK(pd && cq);
		CHECK_EQ(ibv_destroy_cq(cq), 0);
		CHECK_EQ(ibv_dealloc_pd(pd), 0);
		CHECK_EQ(ibv_close_device(ctx), 0);
	}
	ibv_free_device_list(list);
}

static void *churn(void *arg)
{
	unsigned int me = (uintptr_t)arg, round;
	char *buf = calloc(1, 8192);

	CHECK(buf);
	for (round = 0; !atomic_load(&stop); round++) {
		struct end *end = &e[round % PAIRS][round / PAIRS % 2];

		switch (me) {
		case 0:
			queue_pairs(end);
			break;
		case 1:
			memory(end, buf);
			break;
		case 2:
			datagrams(end, buf);
			break;
		default:
			reopen(round % 2 ? "mock1" : "mock0");
			events(end);
			usleep(500);
			break;
		}
		atomic_fetch_add(&made, 1);
	}
	free(buf);
	return NULL;
}

static unsigned int seed;

static unsigned int random_below(unsigned int n)
{
	return (rand_r(&seed) >> 8) % n;
}

static bool suspend(const char *dev, unsigned int round)
{
	const char *why = "";
	int ret = fake_check(dev, &why);

	CHECK(!ret, "round %u: check of %s: %d, %s", round, dev, ret, why);
	if (random_below(5) == 0) {
		fake_suspend_start(dev);
		usleep(random_below(5000));
		CHECK_EQ(fake_abort(), 0);
		return false;
	}
	ret = fake_suspend(dev);
	CHECK(!ret, "round %u: suspend of %s: %d", round, dev, ret);
	CHECK_EQ(mock_unplug(dev), 0);
	return true;
}

int main(int argc, char **argv)
{
	struct fake_faults faults = { .late_us = 500, .twice = 20, .lost = 2 };
	static struct pair_how how[PAIRS] = {
		{ .events = true },
		{ .ex_cq = true, .ex_qp = true, .srq = true },
	};
	unsigned int i, k, rounds = TIMES(1000), before;
	pthread_t thread[CHURNERS];
	struct traffic *t[PAIRS];

	seed = argc > 1 ? atoi(argv[1]) : 1;
	if (argc > 2)
		rounds = atoi(argv[2]);
	alarm(argc > 2 ? 1800 : HANGS);
	for (k = 0; k < PAIRS; k++) {
		pair_open(e[k], &how[k]);
		for (i = 0; i < 2; i++)
			CHECK_EQ(fcntl(e[k][i].ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
		t[k] = traffic_start(e[k], &(struct traffic_how){ .seed = seed + k });
	}
	for (k = 0; k < CHURNERS; k++)
		CHECK_EQ(pthread_create(&thread[k], NULL, churn, (void *)(uintptr_t)k), 0);
	for (i = 0; i < rounds; i++) {
		const char *dev = random_below(2) ? "mock0" : "mock1";

		faults.seed = seed;
		fake_faults_set(random_below(2) ? &faults : &(struct fake_faults){ .seed = i });
		usleep(random_below(3000));
		if (suspend(dev, i)) {
			if (random_below(4) == 0)
				usleep(random_below(3000));
			move_back(dev);
		}
		if (i % 16 == 0)
			for (k = 0; k < PAIRS; k++)
				traffic_flows(t[k], 2);
		before = atomic_load(&made);
		if (i % 64 == 0)
			while (atomic_load(&made) < before + 8)
				usleep(1000);
	}
	atomic_store(&stop, true);
	for (k = 0; k < CHURNERS; k++)
		pthread_join(thread[k], NULL);
	for (k = 0; k < PAIRS; k++)
		traffic_stop(t[k]);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	for (k = 0; k < PAIRS; k++) {
		events(&e[k][0]);
		pair_close(e[k]);
	}
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
	return 0;
}
