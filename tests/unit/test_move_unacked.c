// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events that a program has read and not acknowledged yet, across moves: who destroys the object waits for
 * each of them, as without a move; a move waits neither for the program nor for who destroys.
 */
#include <poll.h>
#include <pthread.h>

#include "../../libshim/shim.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static void cycle(const char *dev)
{
	move_away(dev);
	move_back(dev);
}

static struct ibv_async_event take_async(struct end *e, enum ibv_event_type type)
{
	struct pollfd p = { .fd = e->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	do {
		CHECK_EQ(poll(&p, 1, 5000), 1);
		CHECK_EQ(ibv_get_async_event(e->ctx, &ev), 0);
		if (ev.event_type != type)	/* of the port, as a new device says */
			CHECK(ev.event_type >= IBV_EVENT_DEVICE_FATAL);
	} while (ev.event_type != type);
	return ev;
}

/* What is destroyed, and how. */
struct destroyer {
	int (*destroy)(void *object);
	void *object;
	pthread_t thread;
};

static void *destroy(void *arg)
{
	struct destroyer *d = arg;

	CHECK_EQ(d->destroy(d->object), 0);
	return NULL;
}

static int destroy_qp(void *qp) { return ibv_destroy_qp(qp); }
static int destroy_cq(void *cq) { return ibv_destroy_cq(cq); }
static int destroy_srq(void *srq) { return ibv_destroy_srq(srq); }

static void still_waits(struct destroyer *d)
{
	usleep(50000);
	CHECK_EQ(pthread_tryjoin_np(d->thread, NULL), EBUSY);
}

/* A move of the device does not wait for who destroys, who goes on waiting behind it. */
static void waits_through_move(struct destroyer *d)
{
	CHECK_EQ(pthread_create(&d->thread, NULL, destroy, d), 0);
	still_waits(d);
	cycle("mock0");
	still_waits(d);
}

/* A write by a key that is nobody's: end 0 is told so, its queue pair is in ERR. */
static void write_wrongly(struct end e[2])
{
	uint32_t rkey = e[0].mr->rkey;

	e[0].mr->rkey ^= 0x5500;
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 4), 0);
	e[0].mr->rkey = rkey;
	expect(&e[1], 1, IBV_WC_REM_ACCESS_ERR);
}

/* Two events, of which the second is read behind the move: each has to be acknowledged. */
static void of_queue_pair(const char *dev)
{
	struct ibv_async_event first, second;
	struct destroyer d = { .destroy = destroy_qp };
	struct end e[2];

	pair_open(e, &(struct pair_how){ .srq = true });
	write_wrongly(e);
	first = take_async(&e[0], IBV_EVENT_QP_LAST_WQE_REACHED);
	cycle(dev);
	second = take_async(&e[0], IBV_EVENT_QP_ACCESS_ERR);
	CHECK(first.element.qp == e[0].qp && second.element.qp == e[0].qp);
	d.object = e[0].qp;
	e[0].qp = NULL;
	waits_through_move(&d);
	ibv_ack_async_event(&first);
	still_waits(&d);
	ibv_ack_async_event(&second);
	CHECK_EQ(pthread_join(d.thread, NULL), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* When its queue pair is gone the event alone holds it, before a move and behind it, until it is acknowledged. */
static void held_by_event(const char *dev, struct end e[2], struct destroyer *d,
			  struct ibv_async_event *ev)
{
	cycle(dev);
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	e[0].qp = NULL;
	waits_through_move(d);
	ibv_ack_async_event(ev);
	CHECK_EQ(pthread_join(d->thread, NULL), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void of_completion_queue(const char *dev)
{
	struct destroyer d = { .destroy = destroy_cq };
	struct ibv_async_event ev;
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ .send_wr = 128, .cqe = 3 });
	for (i = 0; i < 3 + RP_CQ_EXTRA + 1; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED, 0, 4), 0);
	ev = take_async(&e[0], IBV_EVENT_CQ_ERR);
	CHECK(ev.element.cq == e[0].cq);
	d.object = e[0].cq;
	e[0].cq = NULL;
	held_by_event(dev, e, &d, &ev);
}

static void of_shared_receives(const char *dev)
{
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct destroyer d = { .destroy = destroy_srq };
	struct ibv_async_event ev;
	struct end e[2];

	pair_open(e, &(struct pair_how){ .srq = true });
	CHECK_EQ(post_recv(&e[0], 1, 0, 4), 0);
	CHECK_EQ(ibv_modify_srq(e[0].srq, &limit, IBV_SRQ_LIMIT), 0);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 1, IBV_SEND_SIGNALED, 0, 4), 0);
	ev = take_async(&e[0], IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(ev.element.srq == e[0].srq);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	d.object = e[0].srq;
	e[0].srq = NULL;
	held_by_event(dev, e, &d, &ev);
}

/* The same for completion events; @away: one of them is acknowledged there. */
static void of_completions(const char *dev, bool away)
{
	struct destroyer d = { .destroy = destroy_cq };
	struct ibv_cq *cq;
	struct end e[2];
	void *context;
	int i;

	pair_open(e, &(struct pair_how){ .events = true });
	for (i = 0; i < 2; i++) {
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED, 0, 4), 0);
		CHECK_EQ(ibv_get_cq_event(e[0].channel, &cq, &context), 0);
		CHECK(cq == e[0].cq);
		expect(&e[0], i, IBV_WC_SUCCESS);
	}
	move_away(dev);
	if (away)
		ibv_ack_cq_events(cq, 1);
	move_back(dev);
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	e[0].qp = NULL;
	d.object = e[0].cq;
	e[0].cq = NULL;
	waits_through_move(&d);
	if (!away) {
		ibv_ack_cq_events(cq, 1);
		still_waits(&d);
	}
	ibv_ack_cq_events(cq, 1);
	CHECK_EQ(pthread_join(d.thread, NULL), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* What is acknowledged while the device is away holds up nobody later. */
static void acknowledged_away(const char *dev)
{
	struct ibv_async_event ev;
	struct end e[2];

	pair_open(e, &(struct pair_how){ 0 });
	write_wrongly(e);
	ev = take_async(&e[0], IBV_EVENT_QP_ACCESS_ERR);
	move_away(dev);
	ibv_ack_async_event(&ev);
	move_back(dev);
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	e[0].qp = NULL;
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	const char *const devs[] = { "mock0", "mock1" };	/* the end itself, and its peer */
	int i;

	alarm(HANGS);
	for (i = 0; i < 2; i++) {
		of_queue_pair(devs[i]);
		of_completion_queue(devs[i]);
		of_shared_receives(devs[i]);
		of_completions(devs[i], false);
		of_completions(devs[i], true);
		acknowledged_away(devs[i]);
	}
	return 0;
}
