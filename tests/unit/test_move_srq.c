// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: the mover's is posted again in order, with what was posted while there was
 * no device and the limit that was armed; that of a peer stays as it is.
 */
#include <infiniband/verbs.h>
#include <poll.h>

#include "../../libshim/objects.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"
#include "traffic.h"

#define DEPTH 64

static struct end e[2];

/* Receive @i is for 16 bytes at 16 * i: where a message lies says which receive it took. */
static void post_numbered(struct end *end, unsigned int i)
{
	CHECK_EQ(post_recv(end, i, 16 * i, 16), 0);
}

static void send_taken_by(struct end *from, struct end *to, uint64_t id)
{
	CHECK_EQ(post(from, to, IBV_WR_SEND, 1000 + id, IBV_SEND_SIGNALED, 4096, 16), 0);
	expect(to, id, IBV_WC_SUCCESS);
	expect(from, 1000 + id, IBV_WC_SUCCESS);
}

static void taken_in_order(struct end *from, struct end *to, unsigned int first, unsigned int last)
{
	for (; first <= last; first++)
		send_taken_by(from, to, first);
}

static int next_event(struct end *end, struct ibv_async_event *ev)
{
	struct pollfd p = { .fd = end->ctx->async_fd, .events = POLLIN };

	if (poll(&p, 1, 0) != 1)
		return 0;
	CHECK_EQ(ibv_get_async_event(end->ctx, ev), 0);
	return 1;
}

/* Events of the ports are every move's. */
static int srq_event(struct end *end, struct ibv_async_event *ev)
{
	while (next_event(end, ev)) {
		if (ev->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
			return 1;
		CHECK(ev->event_type != IBV_EVENT_QP_LAST_WQE_REACHED);
		ibv_ack_async_event(ev);
	}
	return 0;
}

/* @moving: which of the ends has the device that moves */
static void contents_kept(int moving)
{
	const char *dev = moving ? "mock1" : "mock0";
	struct ibv_srq_attr attr;
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_async_event ev;
	unsigned int i;

	pair_open(e, &(struct pair_how){ .srq = true });
	for (i = 0; i < 8; i++)
		post_numbered(&e[0], i);
	CHECK_EQ(ibv_modify_srq(e[0].srq, &(struct ibv_srq_attr){ .srq_limit = 3 }, IBV_SRQ_LIMIT),
		 0);
	send_taken_by(&e[1], &e[0], 0);
	move_away(dev);
	for (i = 8; i < 16; i++)
		post_numbered(&e[0], i);
	if (!moving) {
		/* No device to say that it is full: we do. */
		for (i = 15; i < DEPTH; i++)
			CHECK_EQ(ibv_post_srq_recv(e[0].srq, &wr, &bad), 0);
		CHECK_EQ(ibv_post_srq_recv(e[0].srq, &wr, &bad), ENOMEM);
		CHECK(bad == &wr);
	}
	move_back(dev);
	CHECK_EQ(ibv_query_srq(e[0].srq, &attr), 0);
	CHECK_EQ(attr.srq_limit, 3);
	CHECK_EQ(attr.max_wr, DEPTH);
	taken_in_order(&e[1], &e[0], 1, 15);
	if (moving)
		CHECK(srq_event(&e[0], &ev));
	else
		CHECK(!srq_event(&e[0], &ev));
	if (moving)
		ibv_ack_async_event(&ev);
	/* Again, with what the first move has posted. */
	for (i = 16; i < 24; i++)
		post_numbered(&e[0], i);
	if (moving) {
		move_away(dev);
		move_back(dev);
		taken_in_order(&e[1], &e[0], 16, 23);
		CHECK(!srq_event(&e[0], &ev));	/* the limit was used up */
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Two queue pairs of one SRQ: each one's receives are counted apart, which settles stuck sends. */
static void shared_by_two(void)
{
	struct pair_how how = { .srq = true };
	struct ibv_qp *second[2];
	struct ibv_qp *first[2];
	unsigned int i;
	int k;

	pair_open(e, &how);
	for (k = 0; k < 2; k++) {
		first[k] = e[k].qp;
		second[k] = end_create_qp(&e[k], &how);
	}
	for (k = 0; k < 2; k++)
		e[k].qp = second[k];
	pair_connect(e);
	for (i = 0; i < 6; i++)
		post_numbered(&e[0], i);
	/* Stuck: more than there are receives, on both. */
	for (i = 0; i < 5; i++) {
		e[1].qp = first[1];
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 4096, 16), 0);
		e[1].qp = second[1];
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 100 + i, IBV_SEND_SIGNALED, 4096, 16), 0);
	}
	move_away("mock0");
	for (i = 6; i < 10; i++)
		post_numbered(&e[0], i);
	move_back("mock0");
	for (i = 0; i < 10; i++) {
		struct ibv_wc wc = poll_one(&e[0]);

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.wr_id, i);
		CHECK(wc.qp_num == first[0]->qp_num || wc.qp_num == second[0]->qp_num);
	}
	for (i = 0; i < 10; i++)
		CHECK_EQ(poll_one(&e[1]).status, IBV_WC_SUCCESS);
	expect_none(&e[0], 5);
	expect_none(&e[1], 5);
	for (k = 0; k < 2; k++) {
		struct ibv_async_event ev;

		CHECK(!srq_event(&e[k], &ev));	/* nor LAST_WQE_REACHED */
		CHECK_EQ(ibv_destroy_qp(first[k]), 0);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* An event that was not read before the device went, and an object with one that is destroyed. */
static void events_survive(void)
{
	struct ibv_async_event ev;

	pair_open(e, &(struct pair_how){ .srq = true });
	post_numbered(&e[0], 0);
	post_numbered(&e[0], 1);
	CHECK_EQ(ibv_modify_srq(e[0].srq, &(struct ibv_srq_attr){ .srq_limit = 2 }, IBV_SRQ_LIMIT),
		 0);
	send_taken_by(&e[1], &e[0], 0);
	move_away("mock0");
	move_back("mock0");
	CHECK(srq_event(&e[0], &ev));
	CHECK(ev.element.srq == e[0].srq);
	ibv_ack_async_event(&ev);
	CHECK_EQ(ibv_modify_srq(e[0].srq, &(struct ibv_srq_attr){ .srq_limit = 1 }, IBV_SRQ_LIMIT),
		 0);
	send_taken_by(&e[1], &e[0], 1);
	move_away("mock0");
	move_back("mock0");
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	e[0].qp = NULL;
	CHECK_EQ(ibv_destroy_srq(e[0].srq), 0);
	e[0].srq = NULL;
	CHECK(!srq_event(&e[0], &ev));
	pair_close(e);
}

/* The limit is set again before the event of the time before is read: that one does not disarm it. */
static void limit_set_again(bool read_before)
{
	struct ibv_async_event ev;
	unsigned int i;

	pair_open(e, &(struct pair_how){ .srq = true });
	for (i = 0; i < 6; i++)
		post_numbered(&e[0], i);
	CHECK_EQ(ibv_modify_srq(e[0].srq, &(struct ibv_srq_attr){ .srq_limit = 6 }, IBV_SRQ_LIMIT),
		 0);
	send_taken_by(&e[1], &e[0], 0);
	CHECK_EQ(ibv_modify_srq(e[0].srq, &(struct ibv_srq_attr){ .srq_limit = 3 }, IBV_SRQ_LIMIT),
		 0);
	for (i = 0; i < 2; i++) {
		if (!i == read_before) {
			CHECK(srq_event(&e[0], &ev));
			ibv_ack_async_event(&ev);
		}
		if (!i) {
			move_away("mock0");
			move_back("mock0");
		}
	}
	taken_in_order(&e[1], &e[0], 1, 2);
	CHECK(!srq_event(&e[0], &ev));
	taken_in_order(&e[1], &e[0], 3, 3);
	CHECK(srq_event(&e[0], &ev));
	ibv_ack_async_event(&ev);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* An element of no bytes needs no key, before a move or after, and an unknown one is refused. */
static void no_bytes(void)
{
	struct ibv_sge sge = { 0 };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	int i;

	pair_open(e, &(struct pair_how){ .srq = true });
	for (i = 0; i < 3; i++) {
		CHECK_EQ(ibv_post_srq_recv(e[0].srq, &wr, &bad), 0);
		move_away("mock0");
		wr.wr_id = 2;
		CHECK_EQ(ibv_post_srq_recv(e[0].srq, &wr, &bad), 0);
		move_back("mock0");
		for (wr.wr_id = 1; wr.wr_id < 3; wr.wr_id++) {
			CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 9, IBV_SEND_SIGNALED, 0, 0), 0);
			expect(&e[0], wr.wr_id, IBV_WC_SUCCESS);
			expect(&e[1], 9, IBV_WC_SUCCESS);
		}
		wr.wr_id = 1;
	}
	sge.length = 8;
	CHECK_EQ(ibv_post_srq_recv(e[0].srq, &wr, &bad), EINVAL);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void under_traffic(void)
{
	struct traffic *t;
	int i;

	pair_open(e, &(struct pair_how){ .srq = true, .events = true });
	t = traffic_start(e, &(struct traffic_how){ .seed = 11 });
	for (i = 0; i < TIMES(20); i++) {
		const char *dev = i % 3 ? "mock0" : "mock1";

		traffic_flows(t, 20);
		if (i % 4 == 0)
			traffic_hold_receives(t, i % 2, true);
		move_away(dev);
		move_back(dev);
		traffic_hold_receives(t, i % 2, false);
	}
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

int main(void)
{
	alarm(HANGS);
	contents_kept(0);
	contents_kept(1);
	shared_by_two();
	events_survive();
	limit_set_again(true);
	limit_set_again(false);
	no_bytes();
	under_traffic();
	return 0;
}
