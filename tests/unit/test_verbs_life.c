// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Objects come and go under the shim: completions of those that are gone, events that are owed, descriptors,
 * device lists, what can not be moved, and many threads at once. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>

#include "../../libshim/pool.h"
#include "check.h"
#include "mock.h"
#include "pair.h"

static struct end e[2];

/* The next completion, of a queue pair that need not be there any more. */
static void left(struct end *end, uint64_t wr_id)
{
	struct ibv_wc wc = poll_one(end);

	CHECK_EQ(wc.wr_id, wr_id);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

/* A second queue pair of the first end is connected to the other end in its place. */
static struct ibv_qp *takes_turn(const struct pair_how *how)
{
	struct ibv_qp *first = e[0].qp;

	e[0].qp = end_create_qp(&e[0], how);
	qp_to(e[1].qp, IBV_QPS_RESET);
	pair_connect(e);
	return first;
}

static void written(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, from, IBV_SEND_SIGNALED, 0, 4), 0);
	usleep(50000);
}

/*
 * Completions of a queue pair that is gone are gone, as with most devices: a program may have freed what
 * their wr_ids point to. Those of others stay, in order, and of one that has its number now.
 */
static void destroyed_with_completions(bool ex)
{
	struct pair_how how = { .ex_cq = ex };
	struct ibv_qp *first;
	int i;

	pair_open(e, &how);
	written(0, 3);
	first = takes_turn(&how);
	written(10, 13);
	CHECK_EQ(ibv_destroy_qp(first), 0);
	written(13, 15);
	for (i = 10; i < 15; i++)
		left(&e[0], i);
	expect_none(&e[0], 1);
	/* Those that lay in the software queue between others, and in the device's. */
	first = takes_turn(&how);
	written(20, 22);
	CHECK_EQ(ibv_destroy_qp(first), 0);	/* takes what there is from the device */
	first = takes_turn(&how);
	written(30, 32);
	CHECK_EQ(ibv_destroy_qp(end_create_qp(&e[0], &how)), 0);
	CHECK_EQ(to_rp_cq(e[0].cq)->soft_n, 4);
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	CHECK_EQ(to_rp_cq(e[0].cq)->soft_n, 2);
	e[0].qp = first;
	left(&e[0], 20);
	left(&e[0], 21);
	expect_none(&e[0], 1);
	CHECK_EQ(ibv_destroy_qp(first), 0);
	for (i = 0; i < 20; i++) {
		e[0].qp = end_create_qp(&e[0], &how);
		qp_to(e[1].qp, IBV_QPS_RESET);
		pair_connect(e);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 40 + i, IBV_SEND_SIGNALED, 0, 4), 0);
		if (i % 2)
			left(&e[0], 40 + i);
		CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
		expect_none(&e[0], 0);
	}
	e[0].qp = NULL;
	pair_close(e);
}

/* ... and of one that the device does not destroy are not. */
static void not_destroyed(void)
{
	pair_open(e, &(struct pair_how){ 0 });
	written(0, 3);
	mock_fail("ibv_destroy_qp", EBUSY, 0, 1);
	CHECK_EQ(ibv_destroy_qp(e[0].qp), EBUSY);
	left(&e[0], 0);
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	e[0].qp = NULL;
	expect_none(&e[0], 1);
	pair_close(e);
}

/* ... even when it is destroyed by who is just reading the CQ. The software queue is what is read:
 * the mock, like some providers, does not let a queue pair go while its own queue is read. */
static void destroyed_while_polling(void)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct pair_how how = { .ex_cq = true };
	struct ibv_qp *first, *second;

	pair_open(e, &how);
	written(0, 2);
	first = takes_turn(&how);
	written(2, 4);
	second = takes_turn(&how);
	written(4, 6);
	CHECK_EQ(ibv_destroy_qp(end_create_qp(&e[0], &how)), 0);	/* all are in the software queue now */

	CHECK_EQ(ibv_start_poll(e[0].cqx, &attr), 0);
	CHECK_EQ(e[0].cqx->wr_id, 0);
	CHECK_EQ(ibv_destroy_qp(second), 0);
	CHECK_EQ(e[0].cqx->wr_id, 0);
	CHECK_EQ(ibv_wc_read_qp_num(e[0].cqx), first->qp_num);
	CHECK_EQ(ibv_next_poll(e[0].cqx), 0);
	CHECK_EQ(e[0].cqx->wr_id, 1);
	CHECK_EQ(ibv_next_poll(e[0].cqx), 0);
	CHECK_EQ(e[0].cqx->wr_id, 4);
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	e[0].qp = first;
	CHECK_EQ(ibv_next_poll(e[0].cqx), ENOENT);
	ibv_end_poll(e[0].cqx);
	CHECK_EQ(ibv_start_poll(e[0].cqx, &attr), ENOENT);
	pair_close(e);
}

/*
 * RESET is the same; what the queue pair does in its next life is reported, and the event of one that is gone
 * harms nobody.
 */
static void reset_with_completions(void)
{
	struct pair_how how = { .events = true };
	struct ibv_qp *first;
	int i;

	pair_open(e, &how);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
		written(10 * i, 10 * i + 3);
		first = takes_turn(&how);
		written(10 * i + 5, 10 * i + 7);
		qp_to(first, IBV_QPS_RESET);
		take_event(&e[0]);
		left(&e[0], 10 * i + 5);
		left(&e[0], 10 * i + 6);
		expect_none(&e[0], 1);
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
		written(100 + i, 101 + i);
		take_event(&e[0]);
		left(&e[0], 100 + i);
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
		written(200, 203);
		qp_to(e[0].qp, IBV_QPS_RESET);
		take_event(&e[0]);
		expect_none(&e[0], 1);
		CHECK_EQ(ibv_destroy_qp(first), 0);
		qp_to(e[1].qp, IBV_QPS_RESET);
		pair_connect(e);
	}
	pair_close(e);
}

/* Receives from an SRQ are those of the queue pair that received; their slots are free again either way. */
static void destroyed_with_shared_receives(void)
{
	struct pair_how how = { .srq = true };
	struct ibv_qp *other;
	int i, k;

	pair_open(e, &how);
	for (k = 0; k < 40; k++) {
		for (i = 0; i < 20; i++)
			CHECK_EQ(post_recv(&e[1], i, 64 * i, 64), 0);
		for (i = 0; i < 10; i++)
			CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 0, 4), 0);
		for (i = 0; i < 10; i++)
			expect(&e[0], i, IBV_WC_SUCCESS);
		other = e[1].qp;
		e[1].qp = end_create_qp(&e[1], &how);
		qp_to(e[0].qp, IBV_QPS_RESET);
		pair_connect(e);
		for (i = 10; i < 20; i++)
			CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 0, 4), 0);
		for (i = 10; i < 20; i++)
			expect(&e[0], i, IBV_WC_SUCCESS);
		CHECK_EQ(ibv_destroy_qp(other), 0);
		for (i = 10; i < 20; i++)
			CHECK_EQ(expect(&e[1], i, IBV_WC_SUCCESS).qp_num, e[1].qp->qp_num);
		expect_none(&e[1], 0);
		CHECK_EQ(to_rp_srq(e[1].srq)->pool.n, 0);
		CHECK_EQ(atomic_load(&to_rp_qp(e[1].qp)->recvs_done), 10);
	}
	pair_close(e);
}

static void reset_restarts(void)
{
	struct rp_qp *qp;
	int i, round;

	pair_open(e, &(struct pair_how){ .send_wr = 4, .recv_wr = 4 });
	qp = to_rp_qp(e[0].qp);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 4; i++)
			CHECK_EQ(post_recv(&e[1], i, 0, 64), 0);
		for (i = 0; i < 3; i++)
			CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 10 * round + i, IBV_SEND_SIGNALED,
				      0, 4), 0);
		usleep(20000);
		qp_to(e[0].qp, IBV_QPS_RESET);
		qp_to(e[1].qp, IBV_QPS_RESET);
		CHECK_EQ(qp->sq.head, 0);
		CHECK_EQ(qp->sq.sends, 0);
		CHECK_EQ(atomic_load(&to_rp_qp(e[1].qp)->recvs_done), 0);
		while (ibv_poll_cq(e[0].cq, 1, &(struct ibv_wc){ 0 }) > 0)
			;
		while (ibv_poll_cq(e[1].cq, 1, &(struct ibv_wc){ 0 }) > 0)
			;
		pair_connect(e);
	}
	pair_close(e);
}

static void *wait_event(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	CHECK_EQ(ibv_get_cq_event(((struct end *)arg)->channel, &cq, &context), 0);
	CHECK(cq == ((struct end *)arg)->cq);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void *destroy_cq(void *arg)
{
	CHECK_EQ(ibv_destroy_cq(arg), 0);
	return NULL;
}

static void nop(int sig)
{
	(void)sig;
}

static void descriptors(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct pollfd p;
	struct ibv_cq *cq;
	pthread_t t;
	void *arg;
	int ep = epoll_create1(0);

	pair_open(e, &(struct pair_how){ .events = true });
	p = (struct pollfd){ .fd = e[0].channel->fd, .events = POLLIN };
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, p.fd, &ev), 0);
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);

	/* A thread that blocks */
	pthread_create(&t, NULL, wait_event, &e[0]);
	usleep(20000);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 4), 0);
	pthread_join(t, NULL);
	expect(&e[0], 1, IBV_WC_SUCCESS);

	/* O_NONBLOCK is seen on our descriptor */
	CHECK_EQ(fcntl(p.fd, F_SETFL, fcntl(p.fd, F_GETFL) | O_NONBLOCK), 0);
	errno = 0;
	CHECK_EQ(ibv_get_cq_event(e[0].channel, &cq, &arg), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 2, IBV_SEND_SIGNALED, 0, 4), 0);
	CHECK_EQ(poll(&p, 1, 5000), 1);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
	CHECK_EQ(ibv_get_cq_event(e[0].channel, &cq, &arg), 0);
	CHECK_EQ(poll(&p, 1, 0), 0);
	expect(&e[0], 2, IBV_WC_SUCCESS);

	/* A CQ whose event is not acknowledged is not destroyed before it is */
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	e[0].qp = NULL;
	CHECK_EQ(ibv_destroy_comp_channel(e[0].channel), EBUSY);
	pthread_create(&t, NULL, destroy_cq, cq);
	usleep(50000);
	CHECK_EQ(pthread_tryjoin_np(t, NULL), EBUSY);
	ibv_ack_cq_events(cq, 1);
	pthread_join(t, NULL);
	e[0].cq = NULL;
	pair_close(e);
	close(ep);
}

/* A handler without SA_RESTART interrupts the wait, one with it does not. */
static volatile int interrupted;

static void *wait_interrupted(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	errno = 0;
	CHECK_EQ(ibv_get_cq_event(((struct end *)arg)->channel, &cq, &context), -1);
	CHECK_EQ(errno, EINTR);
	interrupted = 1;
	return NULL;
}

static void signals(void)
{
	struct sigaction sa = { .sa_handler = nop };
	pthread_t t;

	pair_open(e, &(struct pair_how){ .events = true });
	sigaction(SIGUSR1, &sa, NULL);
	pthread_create(&t, NULL, wait_interrupted, &e[0]);
	usleep(50000);
	pthread_kill(t, SIGUSR1);
	pthread_join(t, NULL);
	CHECK(interrupted);

	sa.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &sa, NULL);
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
	pthread_create(&t, NULL, wait_event, &e[0]);
	usleep(50000);
	pthread_kill(t, SIGUSR1);
	usleep(50000);
	CHECK_EQ(pthread_tryjoin_np(t, NULL), EBUSY);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 4), 0);
	pthread_join(t, NULL);
	signal(SIGUSR1, SIG_DFL);
	pair_close(e);
}

static void async_events(void)
{
	struct ibv_async_event ev;
	struct pollfd p;

	end_open(&e[0], "mock0", &(struct pair_how){ 0 });
	p = (struct pollfd){ .fd = e[0].ctx->async_fd, .events = POLLIN };
	CHECK_EQ(poll(&p, 1, 0), 0);
	mock_async_event("mock0", IBV_EVENT_SM_CHANGE);
	CHECK_EQ(poll(&p, 1, 5000), 1);
	CHECK_EQ(ibv_get_async_event(e[0].ctx, &ev), 0);
	CHECK_EQ(ev.event_type, IBV_EVENT_SM_CHANGE);
	CHECK_EQ(ev.element.port_num, 1);
	ibv_ack_async_event(&ev);
	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(fcntl(p.fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	CHECK_EQ(ibv_get_async_event(e[0].ctx, &ev), -1);
	CHECK_EQ(errno, EAGAIN);
	end_close(&e[0]);
}

static struct ibv_async_event wait_async(struct end *end, enum ibv_event_type type)
{
	struct pollfd p = { .fd = end->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	CHECK_EQ(poll(&p, 1, 5000), 1);
	CHECK_EQ(ibv_get_async_event(end->ctx, &ev), 0);
	CHECK_EQ(ev.event_type, type);
	return ev;
}

static void *destroy_qp(void *arg)
{
	CHECK_EQ(ibv_destroy_qp(arg), 0);
	return NULL;
}

/* Events of objects name ours, and who destroys one waits until they are acknowledged. */
static void object_events(void)
{
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_async_event ev;
	uint32_t rkey;
	pthread_t t;
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	rkey = e[1].mr->rkey;
	e[1].mr->rkey ^= 0x5500;
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 4), 0);
	e[1].mr->rkey = rkey;
	expect(&e[0], 1, IBV_WC_REM_ACCESS_ERR);
	ev = wait_async(&e[1], IBV_EVENT_QP_ACCESS_ERR);
	CHECK(ev.element.qp == e[1].qp);
	pthread_create(&t, NULL, destroy_qp, e[1].qp);
	usleep(50000);
	CHECK_EQ(pthread_tryjoin_np(t, NULL), EBUSY);
	ibv_ack_async_event(&ev);
	pthread_join(t, NULL);
	e[1].qp = NULL;
	pair_close(e);

	pair_open(e, &(struct pair_how){ .send_wr = 128, .cqe = 3 });
	for (i = 0; i < 3 + RP_CQ_EXTRA + 1; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED, 0, 4), 0);
	ev = wait_async(&e[0], IBV_EVENT_CQ_ERR);
	CHECK(ev.element.cq == e[0].cq);
	ibv_ack_async_event(&ev);
	pair_close(e);

	pair_open(e, &(struct pair_how){ .srq = true });
	CHECK_EQ(post_recv(&e[1], 1, 0, 4), 0);
	CHECK_EQ(ibv_modify_srq(e[1].srq, &limit, IBV_SRQ_LIMIT), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 1, IBV_SEND_SIGNALED, 0, 4), 0);
	ev = wait_async(&e[1], IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(ev.element.srq == e[1].srq);
	ibv_ack_async_event(&ev);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	pair_close(e);
}

static void device_lists(void)
{
	struct ibv_device **a, **b;
	struct ibv_context *ctx;
	int n, m;

	a = ibv_get_device_list(&n);
	b = ibv_get_device_list(&m);
	CHECK_EQ(n, 2);
	CHECK_EQ(m, 2);
	CHECK(a[0] == b[0] && a[1] == b[1] && a[0] != a[1] && !a[2]);
	ctx = ibv_open_device(a[0]);
	CHECK(ctx && ctx->device == a[0]);
	ibv_free_device_list(a);
	CHECK(!strcmp(ibv_get_device_name(b[0]), ibv_get_device_name(ctx->device)));
	CHECK(ibv_get_device_index(b[0]) >= 0);
	ibv_free_device_list(b);
	CHECK_EQ(ibv_close_device(ctx), 0);
	CHECK_EQ(mock_unplug("mock1"), 0);
	a = ibv_get_device_list(&n);
	CHECK_EQ(n, 1);
	ibv_free_device_list(a);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock1" }), 0);
}

static int pinned(struct ibv_context *c)
{
	int i, n = 0;

	for (i = 0; i < RP_IMM_N; i++)
		n += atomic_load(&to_rp_context(c)->immovable[i]);
	return n;
}

#define PINNED(c, what) atomic_load(&to_rp_context(c)->immovable[what])

static void immovable(void)
{
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;
	struct ibv_mw *mw;

	pair_open(e, &(struct pair_how){ .ex_cq = true, .ex_qp = true, .events = true });
	CHECK_EQ(pinned(e[0].ctx), 0);
	ah = ibv_create_ah(e[0].pd, &aa);
	CHECK(ah);
	mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	if (mw) {
		CHECK_EQ(pinned(e[0].ctx), 0);
		CHECK_EQ(ibv_dealloc_mw(mw), 0);
	}
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(pinned(e[0].ctx), 0);
	pair_close(e);

	pair_open(e, &(struct pair_how){ .srq = true });
	CHECK_EQ(pinned(e[0].ctx), 0);
	pair_close(e);
	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	CHECK_EQ(pinned(e[0].ctx), 0);
	pair_close(e);
	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UC });
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	e[0].qp = NULL;
	CHECK_EQ(pinned(e[0].ctx), 0);
	pair_close(e);
}

/* A program of libibverbs 1.0 has another context, in which ours is. */
static void old_program(void)
{
	struct {
		void *device, *ops[27];
		int cmd_fd, async_fd, num_comp_vectors;
		struct ibv_context *context;
	} old = { .cmd_fd = -1 };
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;

	old.context = open_named("mock0");
	ch = ibv_create_comp_channel((struct ibv_context *)&old);
	CHECK(ch);
	CHECK(ch->context == old.context);
	cq = ibv_create_cq(old.context, 4, NULL, ch, 0);
	CHECK(cq);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(ch), 0);
	CHECK_EQ(ibv_close_device(old.context), 0);
}

/* An SRQ's slots grow, are used again, and may be left behind in a CQ when they go. */
static void shared_receives(void)
{
	struct ibv_recv_wr wr[3] = { 0 }, *bad;
	int i;

	pair_open(e, &(struct pair_how){ .srq = true });
	for (i = 0; i < 700; i++) {
		CHECK_EQ(post_recv(&e[1], i, 0, 64), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 1000 + i, IBV_SEND_SIGNALED, 0, 4), 0);
		CHECK_EQ(expect(&e[1], i, IBV_WC_SUCCESS).qp_num, e[1].qp->qp_num);
		expect(&e[0], 1000 + i, IBV_WC_SUCCESS);
	}
	CHECK_EQ(atomic_load(&to_rp_qp(e[1].qp)->recvs_done), 700);
	CHECK_EQ(ibv_post_recv(e[1].qp, wr, &bad), EINVAL);
	CHECK(bad == wr);
	wr[0].next = &wr[1];
	wr[1].next = &wr[2];
	wr[1].num_sge = 99;
	wr[1].sg_list = calloc(99, sizeof(struct ibv_sge));
	CHECK_EQ(ibv_post_srq_recv(e[1].srq, wr, &bad), EINVAL);
	CHECK(bad == &wr[1]);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 1, IBV_SEND_SIGNALED, 0, 0), 0);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	free(wr[1].sg_list);
	CHECK_EQ(ibv_destroy_qp(e[1].qp), 0);
	CHECK_EQ(ibv_destroy_srq(e[1].srq), 0);
	e[1].qp = NULL;
	e[1].srq = NULL;
	expect_none(&e[1], 1);
	pair_close(e);
}

/* Eight threads that share a device and in pairs a queue pair, and make and destroy others. */
static struct end shared[2];
static atomic_int polled, posted;

static void *churn(void *arg)
{
	long id = (long)arg;
	struct ibv_wc wc[8];
	int i, n;

	for (i = 0; i < 300; i++) {
		struct end *from = &shared[id % 2], *to = &shared[!(id % 2)];

		if (id < 4) {
			if (post(from, to, IBV_WR_RDMA_WRITE, id, IBV_SEND_SIGNALED, 64 * id, 64)) {
				i--;	/* full: the other thread's completions, or ours */
				sched_yield();
			} else {
				atomic_fetch_add(&posted, 1);
			}
			n = ibv_poll_cq(from->cq, 8, wc);
			CHECK(n >= 0);
			atomic_fetch_add(&polled, n);
			while (n--)
				CHECK(wc[n].wr_id < 4 && wc[n].qp_num == from->qp->qp_num);
		} else if (i % 10 == 0) {
			struct ibv_mr *mr = ibv_reg_mr(from->pd, from->buf, 4096, ALL_ACCESS);
			struct ibv_qp *qp = end_create_qp(from, &(struct pair_how){ 0 });
			struct ibv_recv_wr wr = { 0 }, *bad;

			CHECK(mr && qp);
			qp_to_init(from, qp);
			CHECK_EQ(ibv_post_recv(qp, &wr, &bad), 0);
			qp_to(qp, IBV_QPS_RESET);
			CHECK_EQ(ibv_destroy_qp(qp), 0);
			CHECK_EQ(ibv_dereg_mr(mr), 0);
		}
	}
	return NULL;
}

static void threads(void)
{
	struct ibv_wc wc;
	pthread_t t[8];
	long i;
	int idle;

	pair_open(shared, &(struct pair_how){ .send_wr = 16 });
	for (i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, churn, (void *)i);
	for (i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < 2; i++)
		for (idle = 0; idle < 50; idle++)
			if (ibv_poll_cq(shared[i].cq, 1, &wc) > 0) {
				atomic_fetch_add(&polled, 1);
				idle = 0;
			} else {
				usleep(1000);
			}
	CHECK_EQ(polled, posted);
	CHECK_EQ(posted, 1200);
	pair_close(shared);
}

int main(void)
{
	alarm(HANGS);
	destroyed_with_completions(false);
	destroyed_with_completions(true);
	not_destroyed();
	destroyed_while_polling();
	reset_with_completions();
	destroyed_with_shared_receives();
	reset_restarts();
	descriptors();
	signals();
	async_events();
	object_events();
	device_lists();
	old_program();
	immovable();
	shared_receives();
	threads();
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
