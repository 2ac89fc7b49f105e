// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Descriptors that a program holds, and threads that sleep in them, outlive the device. */
#include <fcntl.h>
#include <pthread.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static atomic_int got;

static void *wait_cq(void *arg)
{
	struct end *e = arg;
	struct ibv_cq *cq;
	void *ctx;

	CHECK_EQ(ibv_get_cq_event(e->channel, &cq, &ctx), 0);
	CHECK(cq == e->cq);
	ibv_ack_cq_events(cq, 1);
	atomic_fetch_add(&got, 1);
	return NULL;
}

static void *wait_async(void *arg)
{
	struct end *e = arg;
	struct ibv_async_event ev;

	CHECK_EQ(ibv_get_async_event(e->ctx, &ev), 0);
	CHECK_EQ(ev.event_type, IBV_EVENT_GID_CHANGE);
	ibv_ack_async_event(&ev);
	CHECK_EQ(ibv_get_async_event(e->ctx, &ev), 0);
	CHECK_EQ(ev.event_type, IBV_EVENT_PORT_ERR);
	ibv_ack_async_event(&ev);
	atomic_fetch_add(&got, 10);
	return NULL;
}

/* Waits with the three calls, and says whether all agree. */
static bool readable(int ep, int fd, int ms)
{
	struct timeval tv = { .tv_usec = 0 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct epoll_event ev;
	fd_set set;
	int n = epoll_wait(ep, &ev, 1, ms);

	CHECK_EQ(poll(&p, 1, 0), n);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	CHECK_EQ(select(fd + 1, &set, NULL, NULL, &tv), n);
	return n;
}

static atomic_int signals;

static void on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&signals, 1);
}

/* The descriptors send none, and do not say that they would: nothing of ours, and no move, interrupts the program. */
static void no_signal(int fd)
{
	CHECK_EQ(fcntl(fd, F_SETOWN, getpid()), 0);
	CHECK_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC), 0);
	CHECK(!(fcntl(fd, F_GETFL) & O_ASYNC));
}

int main(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ibv_cq *cq;
	struct end e[2];
	pthread_t t, a;
	void *ctx;
	int ep, i, fd, async;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ .events = true });
	fd = e[0].channel->fd;
	async = e[0].ctx->async_fd;
	signal(SIGIO, on_signal);
	no_signal(fd);
	no_signal(async);
	ep = epoll_create1(0);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);

	/* Threads sleep over the move; armed before it, woken after it */
	CHECK_EQ(pthread_create(&t, NULL, wait_cq, &e[0]), 0);
	CHECK_EQ(pthread_create(&a, NULL, wait_async, &e[0]), 0);
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
	CHECK_EQ(post_recv(&e[0], 1, 0, 64), 0);
	usleep(10000);
	move_away("mock0");
	usleep(10000);
	CHECK_EQ(atomic_load(&got), 0);
	move_back("mock0");
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 2, 0, 0, 8), 0);
	pthread_join(t, NULL);
	mock_async_event("mock0", IBV_EVENT_PORT_ERR);
	pthread_join(a, NULL);
	CHECK_EQ(atomic_load(&got), 11);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	CHECK(!readable(ep, fd, 0));

	/* An event that nobody has read when the device goes */
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
	CHECK_EQ(post_recv(&e[0], 3, 0, 64), 0);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 4, 0, 0, 8), 0);
	CHECK(readable(ep, fd, 2000));
	move_away("mock0");
	CHECK(readable(ep, fd, 0));
	take_event(&e[0]);
	CHECK(!readable(ep, fd, 0));
	expect(&e[0], 3, IBV_WC_SUCCESS);
	/* Armed while it is away; a completion that was asked for comes behind the move. */
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
	CHECK_EQ(post_recv(&e[0], 5, 0, 64), 0);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 6, 0, 0, 8), 0);
	CHECK(!readable(ep, fd, 20));
	move_back("mock0");
	CHECK(readable(ep, fd, 2000));
	take_event(&e[0]);
	expect(&e[0], 5, IBV_WC_SUCCESS);

	/* O_NONBLOCK that the program set on the descriptor */
	CHECK_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	errno = 0;
	CHECK_EQ(ibv_get_cq_event(e[0].channel, &cq, &ctx), -1);
	CHECK_EQ(errno, EAGAIN);
	move_away("mock0");
	errno = 0;
	CHECK_EQ(ibv_get_cq_event(e[0].channel, &cq, &ctx), -1);
	CHECK_EQ(errno, EAGAIN);
	move_back("mock0");
	errno = 0;
	CHECK_EQ(ibv_get_cq_event(e[0].channel, &cq, &ctx), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(e[0].channel->fd, fd);
	CHECK_EQ(e[0].ctx->async_fd, async);

	/* Completions that are found while the queues are drained wake the program, too. */
	for (i = 0; i < 3; i++) {
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, i == 1), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 10 + i, IBV_SEND_SIGNALED, 0, 8),
			 0);
		move_away("mock0");
		move_back("mock0");
		if (i != 1) {
			CHECK(readable(ep, fd, 1000), "round %d", i);
			take_event(&e[0]);
		}
		expect(&e[0], 10 + i, IBV_WC_SUCCESS);
	}
	close(ep);
	CHECK_EQ(atomic_load(&signals), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
