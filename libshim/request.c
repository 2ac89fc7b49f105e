// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What application threads ask of the control thread about peers. */
#include <pthread.h>
#include <time.h>

#include "keys.h"

#define KEYS_WAIT_S	2

/* Threads that wait for KEYS_ACK. */
static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t keys_done = PTHREAD_COND_INITIALIZER;

void rp_request_keys_acked(void)
{
	pthread_mutex_lock(&keys_lock);
	pthread_cond_broadcast(&keys_done);
	pthread_mutex_unlock(&keys_lock);
}

struct keys_call {
	struct rp_context *ctx;
	uint32_t serial;
	bool known;
};

static void push(void *arg)
{
	struct keys_call *a = arg;

	/* Its device has left since: the peers hear of it with all others at the resume. */
	if (a->ctx->real)
		rp_keys_push(a->ctx);
}

static void look(void *arg)
{
	struct keys_call *a = arg;

	a->known = rp_keys_known_to_all(a->ctx, a->serial);
}

static bool after(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec >= b->tv_nsec);
}

/*
 * The application will give the key to a peer by its own means, and the peer may use it at once: so
 * the peer's shim has to know it before this returns.
 */
void rp_peer_new_key(struct rp_context *ctx, uint32_t serial)
{
	struct keys_call a = { .ctx = ctx, .serial = serial };
	struct timespec end, step;
	int cancel;

	if (!rp_ctl_call(push, &a))
		return;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += KEYS_WAIT_S;
	for (;;) {
		rp_ctl_call(look, &a);
		if (a.known)
			return;
		clock_gettime(CLOCK_MONOTONIC, &step);
		if (after(&step, &end)) {
			/* Who uses it before its peer has been told of it waits there (keys_wait.c). */
			rp_log(RP_LOG_INFO, "a peer has not acknowledged a new key yet");
			return;
		}
		/* The look was taken without the lock: again soon even if no signal comes. */
		step.tv_nsec += 20000000;
		if (step.tv_nsec >= 1000000000) {
			step.tv_nsec -= 1000000000;
			step.tv_sec++;
		}
		cancel = rp_uncancelled();
		pthread_mutex_lock(&keys_lock);
		pthread_cond_clockwait(&keys_done, &keys_lock, CLOCK_MONOTONIC, &step);
		pthread_mutex_unlock(&keys_lock);
		rp_cancelled_as(cancel);
	}
}

void rp_peer_key_removed(struct rp_context *ctx)
{
	struct keys_call a = { .ctx = ctx };

	rp_ctl_call(push, &a);
}

static void say_gone(struct rp_conn *c)
{
	struct rp_message *m = rp_message_new(c->peer, REPATH_MSG_GONE, 1, NULL, 0);

	if (!m)
		return;
	rp_message_record(m->recs, c, REPATH_MSG_GONE);
	m->nrecs = 1;
	rp_message_try(m);
}

static void qp_gone(void *arg)
{
	struct rp_qp *qp = arg;
	struct rp_conn *c = qp->conn;

	rp_keys_clear(qp);
	if (!c)
		return;
	if (c->moving) {
		say_gone(c);
		if (!c->mover)
			rp_conn_kill(c);
	}
	rp_conn_forget(c);
}

void rp_peer_qp_gone(struct rp_qp *qp)
{
	rp_ctl_call(qp_gone, qp);
}

static void qp_ends(void *arg)
{
	struct rp_conn *c = ((struct rp_qp *)arg)->conn;

	if (!c || !c->moving || c->mover)
		return;
	say_gone(c);
	rp_conn_disown(c);
}

void rp_peer_qp_ends(struct rp_qp *qp)
{
	rp_ctl_call(qp_ends, qp);
}
