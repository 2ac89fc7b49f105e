// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What application threads ask of the control thread about peers. */
#include <pthread.h>
#include <time.h>

#include "message.h"

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

struct new_mr {
	struct rp_mr *mr;
	unsigned int waiting;
};

static void push_mr(void *arg)
{
	struct new_mr *a = arg;
	struct rp_context *ctx = to_rp_context(a->mr->mr.context);
	char blob[64];
	unsigned int len;
	struct rp_conn *c;
	struct rp_peer *p;

	/* Its device has left since: the peers hear of it with all others at the resume. */
	if (!a->mr->real)
		return;
	len = rp_keys_fill_one(a->mr, blob, sizeof(blob));
	list_for_each(p, &rp_peers, node)
		list_for_each(c, &p->conns, in_peer)
			if (c->ctx == ctx) {
				rp_message_send_keys(c, blob, len);
				break;
			}
}

static void count_acks(void *arg)
{
	struct new_mr *a = arg;
	struct rp_peer *p;

	a->waiting = 0;
	list_for_each(p, &rp_peers, node)
		a->waiting += p->acks;
}

/*
 * The application will give the key to a peer by its own means, and the peer may use it at once: so
 * the peer's shim has to know it before this returns.
 */
void rp_peer_new_mr(struct rp_mr *mr)
{
	struct new_mr a = { .mr = mr };
	struct timespec end;

	if (!rp_ctl_call(push_mr, &a))
		return;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += KEYS_WAIT_S;
	for (;;) {
		struct timespec step;

		rp_ctl_call(count_acks, &a);
		if (!a.waiting)
			return;
		clock_gettime(CLOCK_REALTIME, &step);
		if (step.tv_sec > end.tv_sec ||
		    (step.tv_sec == end.tv_sec && step.tv_nsec >= end.tv_nsec)) {
			rp_log(RP_LOG_ERR, "a peer did not acknowledge key 0x%x in time",
			       mr->mr.rkey);
			return;
		}
		/* The count was taken without the lock: look again soon even if no signal comes. */
		step.tv_nsec += 20000000;
		if (step.tv_nsec >= 1000000000) {
			step.tv_nsec -= 1000000000;
			step.tv_sec++;
		}
		pthread_mutex_lock(&keys_lock);
		pthread_cond_timedwait(&keys_done, &keys_lock, &step);
		pthread_mutex_unlock(&keys_lock);
	}
}

static void qp_gone(void *arg)
{
	struct rp_qp *qp = arg;
	struct rp_conn *c = qp->conn;
	struct rp_message *m;

	if (!c)
		return;
	if (c->moving) {
		m = rp_message_new(c->peer, REPATH_MSG_GONE, 1, NULL, 0);
		if (m) {
			rp_message_record(m->recs, c, REPATH_MSG_GONE);
			m->nrecs = 1;
			rp_message_try(m);
		}
		if (!c->mover)
			rp_conn_kill(c);
	}
	rp_conn_forget(c);
}

void rp_peer_qp_gone(struct rp_qp *qp)
{
	rp_ctl_call(qp_gone, qp);
}
