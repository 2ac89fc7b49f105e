// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The ways to wait for completions and to take them. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

#include "rcheck.h"

#define POLL_BATCH 16

static int epoll_fd = -1;

static void arm(struct check *c)
{
	uint32_t i;

	for (i = 0; i < c->ncqs; i++) {
		int rc = ibv_req_notify_cq(c->cqs[i], 0);

		if (rc)
			fail(c, NULL, "req_notify_cq: %s", strerror(rc));
	}
}

/* Prepares what --epoll and its like need, once: descriptors must stay good for the whole run. */
void wait_set_up(struct check *c)
{
	struct itimerval tick = { { 0, TICK_MS * 1000 }, { 0, TICK_MS * 1000 } };
	struct epoll_event watch = { .events = EPOLLIN };
	int flags;

	switch (c->opt.wait) {
	case WAIT_BLOCK:
		/* Nothing else gets us out of a read for which there may be no event any more. */
		if (setitimer(ITIMER_REAL, &tick, NULL))
			err(2, "setitimer");
		break;
	case WAIT_EPOLL:
		epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->channel->fd, &watch))
			err(2, "epoll");
		break;
	case WAIT_NONBLOCK:
		flags = fcntl(c->channel->fd, F_GETFL);
		if (flags < 0 || fcntl(c->channel->fd, F_SETFL, flags | O_NONBLOCK))
			err(2, "O_NONBLOCK on a completion channel");
		break;
	default:
		break;
	}
	flags = fcntl(c->ep.ctx->async_fd, F_GETFL);
	if (flags < 0 || fcntl(c->ep.ctx->async_fd, F_SETFL, flags | O_NONBLOCK))
		err(2, "O_NONBLOCK on the asynchronous event descriptor");
	if (c->opt.wait != WAIT_BUSY)
		arm(c);
}

static bool channel_ready(struct check *c)
{
	struct pollfd p = { .fd = c->channel->fd, .events = POLLIN };
	struct timeval limit = { 0, TICK_MS * 1000 };
	struct epoll_event event;
	fd_set set;
	int n;

	switch (c->opt.wait) {
	case WAIT_EPOLL:
		n = epoll_wait(epoll_fd, &event, 1, TICK_MS);
		break;
	case WAIT_SELECT:
		FD_ZERO(&set);
		FD_SET(c->channel->fd, &set);
		n = select(c->channel->fd + 1, &set, NULL, NULL, &limit);
		break;
	case WAIT_POLL:
	case WAIT_NONBLOCK:
		n = poll(&p, 1, TICK_MS);
		break;
	default:
		return true;
	}
	if (n < 0 && errno != EINTR)
		fail(c, NULL, "waiting for an event: %s", strerror(errno));
	return n > 0;
}

static bool take_event(struct check *c)
{
	struct ibv_cq *cq;
	void *context;
	int rc;

	if (ibv_get_cq_event(c->channel, &cq, &context)) {
		if (errno != EINTR && !(errno == EAGAIN && c->opt.wait == WAIT_NONBLOCK))
			fail(c, NULL, "get_cq_event: %s", strerror(errno));
		return false;
	}
	c->events++;
	/* Acknowledged in lots, as programs do: the rest before the queue is destroyed. */
	if (++*(unsigned int *)context >= 64) {
		ibv_ack_cq_events(cq, *(unsigned int *)context);
		*(unsigned int *)context = 0;
	}
	rc = ibv_req_notify_cq(cq, 0);
	if (rc)
		fail(c, NULL, "req_notify_cq: %s", strerror(rc));
	return true;
}

static void completed(struct check *c, struct ibv_wc *wc)
{
	uint64_t index = (wc->wr_id & ~RECV_BIT) >> 48;
	bool recv = wc->wr_id & RECV_BIT;
	double gap = c->now - c->last_progress;
	struct link *l;

	if (index >= c->traffic.qps) {
		fail(c, NULL, "completion with wr_id 0x%llx, which was never posted",
		     (unsigned long long)wc->wr_id);
		return;
	}
	l = &c->links[index];
	if (c->opt.plant == PLANT_WRONG_QPN && c->cqes > 50)
		wc->qp_num ^= 1;
	if (wc->status != IBV_WC_SUCCESS) {
		if (c->opt.probe)
			completed_after_failure(c, wc);
		fail(c, l, "%s of request %llu: %s (vendor error 0x%x)", recv ? "receive" : "send",
		     (unsigned long long)(wc->wr_id & POST_MASK), ibv_wc_status_str(wc->status),
		     wc->vendor_err);
		return;
	}
	if (wc->qp_num != l->qpn) {
		fail(c, l, "completion of request %llu says qp_num 0x%x, not 0x%x",
		     (unsigned long long)(wc->wr_id & POST_MASK), wc->qp_num, l->qpn);
		return;
	}
	c->cqes++;
	if (c->phase == RUNNING) {
		if (c->last_progress && gap > c->max_gap)
			c->max_gap = gap;
		if (c->last_progress && gap > c->interval_gap)
			c->interval_gap = gap;
	}
	if (!is_probe(c, l, wc))
		link_progressed(c, l);
	if (recv)
		recv_completed(c, l, wc);
	else
		send_completed(c, l, wc);
	if (!recv && c->opt.plant == PLANT_DOUBLE_CQE && l->retired > 50 && !c->planted) {
		c->planted = true;
		send_completed(c, l, wc);
	}
}

/*
 * One entry a batch: rxe's ibv_next_poll() of rdma-core 44 ends the batch by itself when there is
 * no more, and ibv_end_poll(), which others need then, would skip an entry.
 */
static int poll_ex(struct check *c, struct ibv_cq_ex *cq, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int rc = ibv_start_poll(cq, &attr);

	if (rc) {
		if (rc != ENOENT)
			fail(c, NULL, "start_poll: %s", strerror(rc));
		return 0;
	}
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cq->wr_id;
	wc->status = cq->status;
	wc->opcode = ibv_wc_read_opcode(cq);
	wc->qp_num = ibv_wc_read_qp_num(cq);
	wc->vendor_err = ibv_wc_read_vendor_err(cq);
	if (!cq->status) {
		wc->byte_len = ibv_wc_read_byte_len(cq);
		wc->wc_flags = ibv_wc_read_wc_flags(cq);
		wc->imm_data = ibv_wc_read_imm_data(cq);
	}
	ibv_end_poll(cq);
	return 1;
}

static void poll_queue(struct check *c, uint32_t i)
{
	struct ibv_wc wc[POLL_BATCH];
	int full = c->cqx[i] ? 1 : POLL_BATCH;
	int k, n;

	do {
		n = c->cqx[i] ? poll_ex(c, c->cqx[i], wc) : ibv_poll_cq(c->cqs[i], full, wc);
		if (n < 0)
			fail(c, NULL, "poll_cq returned %d", n);
		c->now = seconds_now();
		for (k = 0; k < n; k++) {
			if (!c->failure[0])
				completed(c, &wc[k]);
			else if (c->opt.probe)
				completed_after_failure(c, &wc[k]);
		}
	} while (n == full && (!c->failure[0] || c->opt.probe));
}

void poll_all(struct check *c)
{
	uint32_t i;

	for (i = 0; i < c->ncqs; i++)
		poll_queue(c, i);
}

/*
 * Waits at most a tick for an event, then takes all completions there are. Without an event
 * nothing is polled: a lost one must be seen as a stall.
 */
void wait_and_poll(struct check *c, bool poll_anyway)
{
	bool woken = poll_anyway || c->opt.wait == WAIT_BUSY;
	uint32_t i;

	if (!woken && channel_ready(c))
		while (!c->failure[0] && take_event(c)) {
			woken = true;
			if (c->opt.wait != WAIT_NONBLOCK)
				break;
		}
	c->now = seconds_now();
	for (i = 0; woken && i < c->ncqs && !c->failure[0]; i++)
		poll_queue(c, i);
}
