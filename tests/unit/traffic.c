// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"
#include "traffic.h"

#define SLOTS	64
#define SLOT	64
#define RECVS	16

/* The buffer: what is sent from, received into, written by the peer, and read into. */
#define AT_SEND		0
#define AT_RECV		4096
#define AT_LANDING	8192
#define AT_CELL		12288		/* the peer's WRITEs */
#define AT_COUNTER	12352		/* the peer's FETCH_ADDs */
#define AT_SWAPPED	12416		/* the peer's CMP_SWPs */
#define AT_RESULT	16384

struct request {
	enum ibv_wr_opcode op;
	bool signaled;
	uint64_t result;	/* that READ and the atomics must bring */
};

struct side {
	struct traffic *t;
	struct end *e, *other;
	pthread_t thread;
	unsigned int seed;
	struct request req[SLOTS];
	uint64_t posted, done;		/* requests */
	uint64_t written, added, swapped;
	_Atomic uint64_t messages;	/* sent */
	_Atomic uint64_t received;
	uint64_t recvs_posted;
	atomic_bool hold, final;	/* final: posts no more */
};

struct traffic {
	struct traffic_how how;
	struct side side[2];
	atomic_bool stop;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void post_receives(struct side *s)
{
	while (!atomic_load(&s->hold) && s->recvs_posted < atomic_load(&s->received) + RECVS) {
		uint64_t n = s->recvs_posted;

		CHECK_EQ(post_recv(s->e, n | 1ull << 63, AT_RECV + n % SLOTS * SLOT, SLOT), 0);
		s->recvs_posted++;
	}
}

static enum ibv_wr_opcode choose(struct side *s)
{
	unsigned int r = rand_r(&s->seed) >> 8;

	if (s->t->how.sends_only)
		return r % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM;
	switch (r % 10) {
	case 0:
		return IBV_WR_RDMA_READ;
	case 1:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	case 2:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case 3:
	case 4:
		return IBV_WR_RDMA_WRITE;
	case 5:
	case 6:
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	default:
		return IBV_WR_SEND;
	}
}

/* true: posted */
static bool post_one(struct side *s)
{
	uint64_t n = s->posted, m = atomic_load(&s->messages);
	struct request *q = &s->req[n % SLOTS];
	uint64_t *from = (uint64_t *)(s->e->buf + AT_SEND + n % SLOTS * SLOT);
	struct ibv_sge sge = { (uintptr_t)from, 16, s->e->mr->lkey };
	uintptr_t far = (uintptr_t)s->other->buf;
	struct ibv_send_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	unsigned int window = s->t->how.window;
	int ret;

	q->op = wr.opcode = choose(s);
	q->signaled = n % window == window - 1 || (!s->t->how.rarely && rand_r(&s->seed) % 2);
	wr.send_flags = q->signaled ? IBV_SEND_SIGNALED : 0;
	from[0] = m;
	from[1] = ~m;
	wr.wr.rdma.rkey = s->other->mr->rkey;
	switch (wr.opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wr.wr.rdma.remote_addr = far + AT_LANDING + m % SLOTS * SLOT;
		wr.imm_data = htobe32((uint32_t)m);
		break;
	case IBV_WR_RDMA_WRITE:
		from[0] = n;
		sge.length = 8;
		wr.wr.rdma.remote_addr = far + AT_CELL;
		if (n % 3)
			wr.send_flags |= IBV_SEND_INLINE;
		break;
	case IBV_WR_RDMA_READ:
		sge.addr = (uintptr_t)s->e->buf + AT_RESULT + n % SLOTS * 8;
		sge.length = 8;
		q->result = s->written;
		wr.wr.rdma.remote_addr = far + AT_CELL;
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		sge.addr = (uintptr_t)s->e->buf + AT_RESULT + n % SLOTS * 8;
		sge.length = 8;
		q->result = s->added;
		wr.wr.atomic.rkey = s->other->mr->rkey;
		wr.wr.atomic.remote_addr = far + AT_COUNTER;
		wr.wr.atomic.compare_add = 1;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		sge.addr = (uintptr_t)s->e->buf + AT_RESULT + n % SLOTS * 8;
		sge.length = 8;
		q->result = s->swapped;
		wr.wr.atomic.rkey = s->other->mr->rkey;
		wr.wr.atomic.remote_addr = far + AT_SWAPPED;
		wr.wr.atomic.compare_add = s->swapped;
		wr.wr.atomic.swap = n + 1;
		break;
	default:
		break;
	}
	ret = ibv_post_send(s->e->qp, &wr, &bad);
	if (ret == ENOMEM) {
		CHECK(bad == &wr);
		return false;
	}
	CHECK_EQ(ret, 0);
	s->posted++;
	switch (wr.opcode) {
	case IBV_WR_SEND:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		atomic_fetch_add(&s->messages, 1);
		break;
	case IBV_WR_RDMA_WRITE:
		s->written = n;
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		s->added++;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		s->swapped = n + 1;
		break;
	default:
		break;
	}
	return true;
}

static void sent(struct side *s, const struct ibv_wc *wc)
{
	CHECK(wc->wr_id < s->posted, "request %llu was never posted",
	      (unsigned long long)wc->wr_id);
	for (; s->done <= wc->wr_id; s->done++) {
		struct request *q = &s->req[s->done % SLOTS];
		uint64_t got;

		CHECK(!q->signaled || s->done == wc->wr_id,
		      "%llu was completed before %llu, which was signalled",
		      (unsigned long long)wc->wr_id, (unsigned long long)s->done);
		if (q->op != IBV_WR_RDMA_READ && q->op != IBV_WR_ATOMIC_FETCH_AND_ADD &&
		    q->op != IBV_WR_ATOMIC_CMP_AND_SWP)
			continue;
		got = *(uint64_t *)(s->e->buf + AT_RESULT + s->done % SLOTS * 8);
		CHECK(got == q->result, "operation %d of request %llu brought %llu, not %llu",
		      q->op, (unsigned long long)s->done, (unsigned long long)got,
		      (unsigned long long)q->result);
	}
	CHECK_EQ(s->done, wc->wr_id + 1);	/* else it came twice */
	CHECK(s->req[wc->wr_id % SLOTS].signaled, "%llu was not signalled",
	      (unsigned long long)wc->wr_id);
}

static void received(struct side *s, const struct ibv_wc *wc)
{
	uint64_t n = wc->wr_id & ~(1ull << 63), m = atomic_load(&s->received), *data;

	CHECK_EQ(n, m);		/* receives complete in order */
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		CHECK_EQ(be32toh(wc->imm_data), (uint32_t)m);
		data = (uint64_t *)(s->e->buf + AT_LANDING + m % SLOTS * SLOT);
	} else {
		CHECK_EQ(wc->opcode, IBV_WC_RECV);
		data = (uint64_t *)(s->e->buf + AT_RECV + n % SLOTS * SLOT);
	}
	CHECK_EQ(wc->byte_len, 16);
	CHECK_EQ(data[0], m);
	CHECK_EQ(data[1], ~m);
	atomic_fetch_add(&s->received, 1);
}

static void completed(struct side *s, const struct ibv_wc *wc)
{
	CHECK(!wc->status, "request %llx of QP 0x%x: status %d", (unsigned long long)wc->wr_id,
	      wc->qp_num, wc->status);
	CHECK_EQ(wc->qp_num, s->e->qp->qp_num);
	if (wc->wr_id >> 63)
		received(s, wc);
	else
		sent(s, wc);
}

static int poll_ex(struct side *s)
{
	struct ibv_cq_ex *cq = s->e->cqx;
	struct ibv_poll_cq_attr a = { 0 };
	int n = 0, ret = ibv_start_poll(cq, &a);

	if (ret == ENOENT)
		return 0;
	while (!ret) {
		struct ibv_wc wc = {
			.wr_id = cq->wr_id,
			.status = cq->status,
			.opcode = ibv_wc_read_opcode(cq),
			.byte_len = ibv_wc_read_byte_len(cq),
			.qp_num = ibv_wc_read_qp_num(cq),
		};

		if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM)
			wc.imm_data = ibv_wc_read_imm_data(cq);
		completed(s, &wc);
		ret = ++n < 8 ? ibv_next_poll(cq) : ENOENT;
	}
	CHECK_EQ(ret, ENOENT);
	ibv_end_poll(cq);
	return n;
}

static int poll_all(struct side *s)
{
	struct ibv_wc wc[8];
	int i, n;

	if (s->e->cqx)
		return poll_ex(s);
	n = ibv_poll_cq(s->e->cq, 8, wc);
	CHECK(n >= 0);
	for (i = 0; i < n; i++)
		completed(s, &wc[i]);
	return n;
}

static void rest(struct side *s)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	struct pollfd p = { .events = POLLIN };
	struct ibv_cq *cq;
	void *arg;

	if (!s->e->channel) {
		nanosleep(&pause, NULL);
		return;
	}
	/* Arm, look once more, wait: what comes after the look makes an event. */
	CHECK_EQ(ibv_req_notify_cq(s->e->cq, 0), 0);
	if (poll_all(s))
		return;
	p.fd = s->e->channel->fd;
	if (poll(&p, 1, 2) == 1) {
		CHECK_EQ(ibv_get_cq_event(s->e->channel, &cq, &arg), 0);
		CHECK(cq == s->e->cq);
		ibv_ack_cq_events(cq, 1);
	}
}

static bool finished(const struct side *s)
{
	const struct side *o = &s->t->side[s == &s->t->side[0]];

	return atomic_load(&o->final) &&
	       atomic_load(&s->received) == atomic_load(&o->messages) &&
	       atomic_load(&o->received) == atomic_load(&s->messages);
}

static void *run(void *arg)
{
	struct side *s = arg;
	unsigned int window = s->t->how.window;
	double end = 0;

	for (;;) {
		bool stopping = atomic_load(&s->t->stop), did = false;

		post_receives(s);
		while (!stopping && s->posted - s->done < window && post_one(s))
			did = true;
		/* So that the last request is a signalled one. */
		if (stopping && s->posted % window && s->posted - s->done < SLOTS - 1)
			did = post_one(s);
		did |= poll_all(s) > 0;
		if (stopping) {
			if (!end)
				end = seconds() + 20;
			CHECK(seconds() < end, "%p: %llu of %llu requests done, %llu of %llu messages",
			      (void *)s, (unsigned long long)s->done, (unsigned long long)s->posted,
			      (unsigned long long)s->received,
			      (unsigned long long)s->t->side[s == &s->t->side[0]].messages);
			if (!(s->posted % window))
				atomic_store(&s->final, true);
			if (s->done == s->posted && !(s->posted % window) && finished(s))
				return NULL;
		}
		if (!did)
			rest(s);
	}
}

struct traffic *traffic_start(struct end e[2], const struct traffic_how *how)
{
	struct traffic *t = calloc(1, sizeof(*t));
	int i;

	CHECK(t);
	t->how = *how;
	if (!t->how.window)
		t->how.window = 24;
	for (i = 0; i < 2; i++) {
		struct side *s = &t->side[i];

		s->t = t;
		s->e = &e[i];
		s->other = &e[!i];
		s->seed = how->seed * 2 + i + 1;
		post_receives(s);
	}
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t->side[i].thread, NULL, run, &t->side[i]), 0);
	return t;
}

void traffic_hold_receives(struct traffic *t, int end, bool hold)
{
	atomic_store(&t->side[end].hold, hold);
}

uint64_t traffic_received(struct traffic *t, int end)
{
	return atomic_load(&t->side[end].received);
}

void traffic_flows(struct traffic *t, uint64_t n)
{
	uint64_t from[2] = { traffic_received(t, 0), traffic_received(t, 1) };
	double end = seconds() + 10;
	int i;

	for (i = 0; i < 2; i++)
		while (traffic_received(t, i) < from[i] + n) {
			CHECK(seconds() < end, "end %d: %llu messages", i,
			      (unsigned long long)(traffic_received(t, i) - from[i]));
			usleep(500);
		}
}

void traffic_stop(struct traffic *t)
{
	int i;

	atomic_store(&t->stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(t->side[i].thread, NULL);
	for (i = 0; i < 2; i++) {
		struct side *s = &t->side[i];

		CHECK_EQ(*(uint64_t *)(s->other->buf + AT_CELL), s->written);
		CHECK_EQ(*(uint64_t *)(s->other->buf + AT_COUNTER), s->added);
		CHECK_EQ(*(uint64_t *)(s->other->buf + AT_SWAPPED), s->swapped);
	}
	free(t);
}
