// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "fdcheck.h"

#define LOOK_MS		100	/* how often a thread that waits looks whether it shall end */
#define ACK_LOT		16
#define CHECK_OF(n)	((n) * 0x9e3779b97f4a7c15ull)

const char *const way_names[WAYS] = {
	"block", "epoll-lt", "epoll-et", "poll", "select", "nonblock",
};

void watch_fail(struct watch *w, const char *format, ...)
{
	va_list args;

	if (w->failure[0])
		return;
	va_start(args, format);
	vsnprintf(w->failure, sizeof(w->failure), format, args);
	va_end(args);
	fprintf(stderr, "fdcheck: FAIL: %s: %s\n", way_names[w->way], w->failure);
}

static void post_recv(struct watch *w, uint64_t number)
{
	struct ibv_sge sge = {
		(uintptr_t)&w->slots[number % RECVS], sizeof(struct slot), w->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(w->qp, &wr, &bad);
	if (errno)
		watch_fail(w, "post_recv: %s", strerror(errno));
}

static void send_number(struct watch *w, uint64_t number)
{
	struct slot *slot = &w->slots[RECVS];
	struct ibv_sge sge = { (uintptr_t)slot, sizeof(*slot), w->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = number, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;
	double since = seconds_now();

	/* The peer's answer to the one before is here; its completion soon is. */
	while (w->sends && !ibv_poll_cq(w->send_cq, 1, &wc)) {
		if (seconds_now() - since > 20) {
			watch_fail(w, "no completion of message %llu",
				   (unsigned long long)slot->number);
			return;
		}
		usleep(200);
	}
	if (w->sends && (wc.status || wc.wr_id != slot->number || wc.qp_num != w->qp->qp_num))
		watch_fail(w, "message %llu: completion of %llu, status %s, qp_num 0x%x",
			   (unsigned long long)slot->number, (unsigned long long)wc.wr_id,
			   ibv_wc_status_str(wc.status), wc.qp_num);
	*slot = (struct slot){ number, CHECK_OF(number) };
	errno = ibv_post_send(w->qp, &wr, &bad);
	if (errno)
		watch_fail(w, "post_send: %s", strerror(errno));
	w->sends++;
}

void watch_serve(struct watch *w)
{
	w->changed = seconds_now();
	send_number(w, 1);
}

static void arm(struct watch *w)
{
	errno = ibv_req_notify_cq(w->cq, 0);
	if (errno)
		watch_fail(w, "req_notify_cq: %s", strerror(errno));
	w->arms++;
}

/* Whether the descriptor is readable, as the way's own call tells it. */
static bool ready(struct watch *w, int timeout_ms)
{
	int fd = w->channel->fd;
	struct timeval limit = { 0, timeout_ms * 1000 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct epoll_event event;
	fd_set set;
	int n;

	switch (w->way) {
	case WAY_EPOLL_LT:
	case WAY_EPOLL_ET:
		n = epoll_wait(w->epoll, &event, 1, timeout_ms);
		if (n > 0 && event.data.ptr != w)
			watch_fail(w, "epoll_wait returned other data");
		break;
	case WAY_SELECT:
		FD_ZERO(&set);
		FD_SET(fd, &set);
		n = select(fd + 1, &set, NULL, NULL, &limit);
		break;
	default:
		n = poll(&p, 1, timeout_ms);
		if (n > 0 && !(p.revents & POLLIN))
			watch_fail(w, "poll says 0x%x", p.revents);
	}
	if (n < 0 && errno != EINTR)
		watch_fail(w, "waiting: %s", strerror(errno));
	return n > 0;
}

/* 1 an event, 0 none */
static int take_event(struct watch *w)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	if (ibv_get_cq_event(w->channel, &cq, &context)) {
		if (errno != EINTR && errno != EAGAIN)
			watch_fail(w, "get_cq_event: %s", strerror(errno));
		return 0;
	}
	w->events++;
	if (cq != w->cq || context != w)
		watch_fail(w, "an event of another queue");
	if (w->events > w->arms)
		watch_fail(w, "%llu events, %llu were asked for", (unsigned long long)w->events,
			   (unsigned long long)w->arms);
	if (++w->unacked >= ACK_LOT) {
		ibv_ack_cq_events(w->cq, w->unacked);
		w->unacked = 0;
	}
	return 1;
}

static int wait_event(struct watch *w)
{
	int got;

	if (w->way == WAY_BLOCK)
		return take_event(w);
	if (!ready(w, LOOK_MS))
		return 0;
	got = take_event(w);
	if (!got && w->way == WAY_EPOLL_ET)
		w->spurious++;
	else if (!got && !w->failure[0])
		watch_fail(w, "readable, but there was no event");
	return got;
}

/* One notification was asked for and came: there can not be another. */
static void expect_none(struct watch *w)
{
	if (w->way == WAY_NONBLOCK || w->way == WAY_EPOLL_ET) {
		if (take_event(w))
			watch_fail(w, "a second event without asking");
	} else if (w->way != WAY_BLOCK && ready(w, 0)) {
		watch_fail(w, "readable without a notification asked for");
	}
}

static void received(struct watch *w, const struct ibv_wc *wc)
{
	const struct slot *slot = &w->slots[w->recvs_done % RECVS];
	double now = seconds_now();

	if (wc->status || wc->wr_id != w->recvs_done || wc->qp_num != w->qp->qp_num) {
		watch_fail(w, "receive %llu: completion of %llu, status %s, qp_num 0x%x",
			   (unsigned long long)w->recvs_done, (unsigned long long)wc->wr_id,
			   ibv_wc_status_str(wc->status), wc->qp_num);
		return;
	}
	if (slot->number != w->last + 2 || slot->check != CHECK_OF(slot->number))
		watch_fail(w, "message %llu after %llu", (unsigned long long)slot->number,
			   (unsigned long long)w->last);
	if (w->recvs_done && now - w->changed > w->max_gap)
		w->max_gap = now - w->changed;
	w->changed = now;
	w->last = slot->number;
	post_recv(w, w->recvs_done + RECVS);
	w->recvs_done++;
	w->parked = w->client && w->stop;
	if (w->parked)
		return;
	if (w->gap_us)
		usleep(w->gap_us);
	send_number(w, w->last + 1);
}

static void *run(void *arg)
{
	struct watch *w = arg;
	struct ibv_wc wc;
	int n;

	while (!w->failure[0] && !w->end && !w->parked) {
		if (!wait_event(w))
			continue;
		expect_none(w);
		arm(w);
		while ((n = ibv_poll_cq(w->cq, 1, &wc)) > 0)
			received(w, &wc);
		if (n < 0)
			watch_fail(w, "poll_cq returned %d", n);
	}
	w->done = true;
	return NULL;
}

static void register_fd(struct watch *w)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = w };
	int flags;

	if (w->way == WAY_EPOLL_ET)
		event.events |= EPOLLET;
	if (w->way == WAY_EPOLL_LT || w->way == WAY_EPOLL_ET) {
		w->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (w->epoll < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->channel->fd, &event))
			err(2, "epoll");
	}
	if (w->way == WAY_EPOLL_ET || w->way == WAY_NONBLOCK) {
		flags = fcntl(w->channel->fd, F_GETFL);
		if (flags < 0 || fcntl(w->channel->fd, F_SETFL, flags | O_NONBLOCK))
			err(2, "O_NONBLOCK");
	}
}

void watch_create(struct watch *w, const struct endpoint *ep, struct ibv_pd *pd, enum way way)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 2, .max_recv_wr = RECVS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	w->way = way;
	w->channel = ibv_create_comp_channel(ep->ctx);
	if (!w->channel)
		err(2, "create a completion channel");
	w->cq = ibv_create_cq(ep->ctx, RECVS, w, w->channel, 0);
	w->send_cq = ibv_create_cq(ep->ctx, 2, NULL, NULL, 0);
	if (!w->cq || !w->send_cq)
		err(2, "create a completion queue");
	w->slots = calloc(RECVS + 1, sizeof(*w->slots));
	w->mr = w->slots ? ibv_reg_mr(pd, w->slots, (RECVS + 1) * sizeof(*w->slots),
				      IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!w->mr)
		err(2, "register memory");
	attr.send_cq = w->send_cq;
	attr.recv_cq = w->cq;
	w->qp = ibv_create_qp(pd, &attr);
	if (!w->qp)
		err(2, "create a queue pair");
	errno = rc_init(w->qp, ep);
	if (errno)
		err(2, "queue pair to INIT");
	register_fd(w);
	w->local = endpoint_address(ep, w->qp, w->qp->qp_num & 0xffff);
}

void watch_start(struct watch *w)
{
	uint64_t i;

	/* Numbers go 1 (client), 2 (server), 3 ... */
	w->last = w->client ? 0 : (uint64_t)-1;
	for (i = 0; i < RECVS; i++)
		post_recv(w, i);
	arm(w);
	w->changed = seconds_now();
	errno = pthread_create(&w->thread, NULL, run, w);
	if (errno)
		err(2, "thread");
}

struct destroyer {
	struct ibv_cq *cq;
	volatile bool done;
	int rc;
};

static void *destroy_cq(void *arg)
{
	struct destroyer *d = arg;

	d->rc = ibv_destroy_cq(d->cq);
	d->done = true;
	return NULL;
}

static void destroy_cq_unacked(struct watch *w)
{
	struct destroyer d = { .cq = w->cq };
	pthread_t thread;

	if (!w->unacked) {
		watch_fail(w, "no event is left to acknowledge");
		return;
	}
	pthread_create(&thread, NULL, destroy_cq, &d);
	usleep(300000);
	if (d.done)
		watch_fail(w, "destroy_cq did not wait for %u events not acknowledged", w->unacked);
	else
		ibv_ack_cq_events(w->cq, w->unacked);
	pthread_join(thread, NULL);
	if (d.rc)
		watch_fail(w, "destroy_cq: %s", strerror(d.rc));
}

void watch_destroy(struct watch *w)
{
	int rc = ibv_destroy_qp(w->qp);

	if (rc)
		watch_fail(w, "destroy_qp: %s", strerror(rc));
	rc = ibv_destroy_comp_channel(w->channel);
	if (rc != EBUSY) {
		watch_fail(w, "destroy_comp_channel with a queue on it: %s", strerror(rc));
		return;
	}
	if (w->failure[0])
		ibv_ack_cq_events(w->cq, w->unacked);
	/* One event has to be left; acknowledging in lots may have taken it. */
	if (!w->failure[0] && w->unacked)
		destroy_cq_unacked(w);
	else if (ibv_destroy_cq(w->cq))
		watch_fail(w, "destroy_cq");
	rc = ibv_destroy_cq(w->send_cq);
	if (rc)
		watch_fail(w, "destroy_cq: %s", strerror(rc));
	rc = ibv_destroy_comp_channel(w->channel);
	if (rc)
		watch_fail(w, "destroy_comp_channel: %s", strerror(rc));
	rc = ibv_dereg_mr(w->mr);
	if (rc)
		watch_fail(w, "dereg_mr: %s", strerror(rc));
	free(w->slots);
}
