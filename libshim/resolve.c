// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Asking the module where a queue pair is. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conn.h"
#include "objects.h"
#include "resolve.h"

/* The module's retries end before, and its answer may have been lost once. */
#define ANSWER_S	6
#define ASKS		2
#define UD_ANSWER_MS	250
/* How long a question waits that was no answer, and how often it may be. */
#define REFUSED_MS	100
#define REFUSALS	10

/* A question that somebody waits for the answer of. */
struct question {
	struct list_node node;
	uint32_t id;
	struct rp_ctl_address address;
	bool done, refused;
	int err;
	struct rp_place now;
};

/* Protects both lists, what is in them, by what it is found, and the numbers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static struct list_head questions = { { &questions.n, &questions.n } };
static struct list_head dests = { { &dests.n, &dests.n } };
#define ROWS 1024
static struct rp_dest *by_address[ROWS], *by_id[ROWS];
static uint32_t last_id;

/* Caller holds the lock. */
static uint32_t new_id(void)
{
	return RP_RESOLVE_ID | (++last_id & ~RP_RESOLVE_ID);
}

void rp_resolved(uint32_t id, int err, const struct rp_place *place)
{
	struct question *q;
	struct rp_dest *d;

	pthread_mutex_lock(&lock);
	list_for_each(q, &questions, node)
		if (q->id == id) {
			q->done = true;
			q->err = err;
			if (!err)
				q->now = *place;
		}
	for (d = by_id[id % ROWS]; d; d = d->next_by_id)
		if (d->id == id) {
			/* An address that two may be meant by leads where it says, as ever. */
			if (!err) {
				rp_lock(&d->lock);
				d->now = *place;
				rp_unlock(&d->lock);
				atomic_fetch_add(&d->changes, 1);
			}
			d->answered = true;
		}
	pthread_cond_broadcast(&answered);
	pthread_mutex_unlock(&lock);
}

/* By a module that is on its way out, or has not come to know the device yet. */
static bool is_no_answer(int err)
{
	return err == ENODEV || err == ENOENT || err == ESRCH || err == EPERM;
}

void rp_resolve_refused(uint32_t id, int err)
{
	bool waits = false;
	struct question *q;

	pthread_mutex_lock(&lock);
	list_for_each(q, &questions, node)
		if (q->id == id && is_no_answer(err))
			q->refused = waits = true;
	pthread_cond_broadcast(&answered);
	pthread_mutex_unlock(&lock);
	if (!waits)
		rp_resolved(id, err, NULL);
}

void rp_resolve_lost_module(void)
{
	struct question *q;

	pthread_mutex_lock(&lock);
	list_for_each(q, &questions, node)
		if (!q->done) {
			q->done = true;
			q->err = ENOTCONN;
		}
	pthread_cond_broadcast(&answered);
	pthread_mutex_unlock(&lock);
}

static void address_of(struct rp_ctl_address *a, struct rp_context *ctx,
		       const struct ibv_ah_attr *av, enum ibv_qp_type type, uint32_t qpn,
		       uint32_t src_qpn)
{
	*a = (struct rp_ctl_address){
		.dev_index = ctx->dev_index,
		.port = av->port_num,
		.lid = av->dlid,
		.sl = av->sl,
		.qpn = qpn,
		.src_qpn = src_qpn,
		.qp_type = type,
	};
	if (!av->is_global)
		return;
	a->sgid_index = rp_real_sgid(ctx, av->port_num, av->grh.sgid_index);
	memcpy(a->gid, &av->grh.dgid, sizeof(a->gid));
}

/* What holds where nobody can be asked. */
static struct rp_place as_given(const struct ibv_ah_attr *av, uint32_t qpn)
{
	struct rp_place p = { .lid = av->dlid, .qpn = qpn };

	if (av->is_global)
		memcpy(p.gid, &av->grh.dgid, sizeof(p.gid));
	return p;
}

static void send_question(void *arg)
{
	struct question *q = arg;
	int ret = rp_ctl_resolve(q->id, &q->address);

	pthread_mutex_lock(&lock);
	if (ret) {
		q->done = true;
		q->err = ret == -ENOTCONN ? ENOTCONN : EIO;
	}
	pthread_mutex_unlock(&lock);
}

static void deadline_in(struct timespec *t, int ms)
{
	clock_gettime(CLOCK_MONOTONIC, t);
	t->tv_nsec += ms % 1000 * 1000000l;
	t->tv_sec += ms / 1000 + t->tv_nsec / 1000000000;
	t->tv_nsec %= 1000000000;
}

/* The time of day may be set while it waits, as after a move of the machine. */
static int wait_answer(const struct timespec *end)
{
	int cancel = rp_uncancelled();
	int ret = pthread_cond_clockwait(&answered, &lock, CLOCK_MONOTONIC, end);

	rp_cancelled_as(cancel);
	return ret;
}

/* Caller holds the lock. False: it is not answered, and may be asked again. */
static bool wait_resolved(struct question *q)
{
	struct timespec end;

	deadline_in(&end, ANSWER_S * 1000);
	while (!q->done && !q->refused && !wait_answer(&end))
		;
	if (!q->refused)
		return q->done;
	deadline_in(&end, REFUSED_MS);
	while (!q->done && !wait_answer(&end))
		;
	return q->done;
}

static int resolve(struct rp_context *ctx, const struct ibv_ah_attr *av, enum ibv_qp_type type,
	       uint32_t qpn, uint32_t src_qpn, struct rp_place *now)
{
	struct question q = { .done = false };
	int asks = 0, refusals = 0;

	*now = as_given(av, qpn);
	address_of(&q.address, ctx, av, type, qpn, src_qpn);
	pthread_mutex_lock(&lock);
	q.id = new_id();
	list_add_tail(&questions, &q.node);
	while (!q.done && asks < ASKS && refusals < REFUSALS) {
		q.refused = false;
		pthread_mutex_unlock(&lock);
		if (!rp_ctl_call(send_question, &q)) {
			pthread_mutex_lock(&lock);
			q.err = ENOTCONN;
			q.done = true;
			break;
		}
		pthread_mutex_lock(&lock);
		if (!wait_resolved(&q)) {
			asks += !q.refused;
			refusals += q.refused;
		}
	}
	list_del(&q.node);
	pthread_mutex_unlock(&lock);
	/* No module that knows the device, so nobody who could have moved is a peer of this process. */
	if (q.err == ENOTCONN || (!q.done && refusals == REFUSALS))
		return 0;
	if (!q.done)
		return ETIMEDOUT;
	if (!q.err)
		*now = q.now;
	return q.err;
}

/* --- connecting --- */

static const char *reason(int err)
{
	switch (err) {
	case EADDRNOTAVAIL:
		return "no such queue pair is there, nor with those who have left that address";
	case ENOTUNIQ:
		return "two queue pairs may be meant, one of them by a number that it had before a move";
	case EADDRINUSE:
		return "it is connected to somebody else";
	case EAGAIN:
		return "processes there are still between two devices";
	default:
		return strerror(err);
	}
}

int rp_resolve_rtr(struct rp_qp *qp, struct ibv_qp_attr *attr, int mask, bool *moved)
{
	const int need = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN;
	struct rp_context *ctx = rp_qp_context(qp);
	struct rp_place now;
	struct ibv_ah_attr av;
	int ret;

	*moved = false;
	if ((mask & need) != need || attr->qp_state != IBV_QPS_RTR || rp_no_remap ||
	    (qp->qp.qp_type != IBV_QPT_RC && qp->qp.qp_type != IBV_QPT_UC))
		return 0;
	av = attr->ah_attr;
	if (!av.port_num)
		av.port_num = qp->attr.port_num;
	ret = resolve(ctx, &av, qp->qp.qp_type, attr->dest_qp_num, qp->real->qp_num, &now);
	if (ret) {
		rp_log(ret == EAGAIN ? RP_LOG_DEBUG : RP_LOG_ERR,
		       "QP 0x%x: not connected to QP 0x%x: %s", qp->qp.qp_num, attr->dest_qp_num,
		       reason(ret));
		return ret;
	}
	if (now.qpn != attr->dest_qp_num)
		rp_log(RP_LOG_INFO, "QP 0x%x: the peer's QP 0x%x is now 0x%x", qp->qp.qp_num,
		       attr->dest_qp_num, now.qpn);
	attr->dest_qp_num = now.qpn;
	if (attr->ah_attr.is_global)
		memcpy(&attr->ah_attr.grh.dgid, now.gid, sizeof(now.gid));
	attr->ah_attr.dlid = now.lid;
	*moved = now.moved;
	return 0;
}

/* --- UD addresses --- */

static bool same_av(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b)
{
	if (a->port_num != b->port_num || a->dlid != b->dlid || a->sl != b->sl ||
	    !a->is_global != !b->is_global)
		return false;
	return !a->is_global || (a->grh.sgid_index == b->grh.sgid_index &&
				 !memcmp(&a->grh.dgid, &b->grh.dgid, sizeof(a->grh.dgid)));
}

static void send_dest(void *arg)
{
	struct rp_ctl_address a;
	struct rp_dest *d = arg;

	address_of(&a, d->ctx, &d->av, IBV_QPT_UD, d->qpn, 0);
	/* Away, or no module: it is asked when the device is there again, if at all. */
	if (!d->ctx->real || rp_ctl_resolve(d->id, &a)) {
		pthread_mutex_lock(&lock);
		d->answered = true;
		pthread_mutex_unlock(&lock);
	}
}

static void unsend_dest(void *arg)
{
	rp_ctl_unresolve(((struct rp_dest *)arg)->id);
}

static struct rp_dest **address_row(const struct ibv_ah_attr *av, uint32_t qpn)
{
	const uint8_t *gid = av->grh.dgid.raw;
	uint32_t h = qpn ^ av->dlid;

	if (av->is_global)
		h ^= gid[15] ^ gid[14] << 8 ^ gid[13] << 16;
	return &by_address[(h * 2654435761u >> 16) % ROWS];
}

/* Caller holds the lock. */
static void dest_link(struct rp_dest *d)
{
	struct rp_dest **row = address_row(&d->av, d->qpn);

	d->next_by_address = *row;
	*row = d;
	row = &by_id[d->id % ROWS];
	d->next_by_id = *row;
	*row = d;
	list_add_tail(&dests, &d->node);
}

/* Caller holds the lock. */
static void dest_unlink(struct rp_dest *d)
{
	struct rp_dest **at;

	for (at = address_row(&d->av, d->qpn); *at != d; at = &(*at)->next_by_address)
		;
	*at = d->next_by_address;
	for (at = &by_id[d->id % ROWS]; *at != d; at = &(*at)->next_by_id)
		;
	*at = d->next_by_id;
	list_del(&d->node);
}

static struct rp_dest *dest_find(struct rp_context *ctx, const struct ibv_ah_attr *av,
				 uint32_t qpn)
{
	struct rp_dest *d;

	for (d = *address_row(av, qpn); d; d = d->next_by_address)
		if (d->ctx == ctx && d->qpn == qpn && same_av(&d->av, av))
			return d;
	return NULL;
}

struct rp_dest *rp_dest_get(struct rp_context *ctx, const struct ibv_ah_attr *av, uint32_t qpn)
{
	struct timespec end;
	struct rp_dest *d;

	pthread_mutex_lock(&lock);
	d = dest_find(ctx, av, qpn);
	if (d) {
		d->users++;
		pthread_mutex_unlock(&lock);
		return d;
	}
	d = calloc(1, sizeof(*d));
	if (!d) {
		pthread_mutex_unlock(&lock);
		return NULL;
	}
	d->ctx = ctx;
	d->av = *av;
	d->qpn = qpn;
	d->id = new_id();
	d->users = 1;
	d->now = as_given(av, qpn);
	dest_link(d);
	pthread_mutex_unlock(&lock);

	if (!rp_ctl_call(send_dest, d))
		return d;
	/* A datagram may be lost, but its sender is not kept for as long as one who connects. */
	deadline_in(&end, UD_ANSWER_MS);
	pthread_mutex_lock(&lock);
	while (!d->answered && !wait_answer(&end))
		;
	pthread_mutex_unlock(&lock);
	return d;
}

void rp_dest_put(struct rp_dest *d)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = !--d->users;
	if (last)
		dest_unlink(d);
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	rp_ctl_call(unsend_dest, d);
	free(d);
}

struct rp_place rp_dest_now(struct rp_dest *d)
{
	struct rp_place now;

	rp_lock(&d->lock);
	now = d->now;
	rp_unlock(&d->lock);
	return now;
}

void rp_dest_av(struct rp_context *ctx, const struct ibv_ah_attr *av, const struct rp_place *now,
		struct ibv_ah_attr *real)
{
	*real = *av;
	real->dlid = now->lid;
	if (!av->is_global)
		return;
	memcpy(&real->grh.dgid, now->gid, sizeof(now->gid));
	real->grh.sgid_index = rp_real_sgid(ctx, av->port_num, av->grh.sgid_index);
}

void rp_dests_again(struct rp_context *ctx)
{
	struct rp_ctl_address a;
	struct rp_dest *d;

	pthread_mutex_lock(&lock);
	list_for_each(d, &dests, node)
		if (d->ctx == ctx) {
			address_of(&a, ctx, &d->av, IBV_QPT_UD, d->qpn, 0);
			rp_ctl_resolve(d->id, &a);
		}
	pthread_mutex_unlock(&lock);
}

void rp_resolve_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&answered, NULL);
	list_init(&questions);
	list_init(&dests);
	memset(by_address, 0, sizeof(by_address));
	memset(by_id, 0, sizeof(by_id));
}
