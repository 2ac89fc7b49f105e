// SPDX-License-Identifier: GPL-2.0
/* A question where a queue pair is: asking at all places, and what comes of the answers. */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "conn.h"
#include "device.h"
#include "lid.h"
#include "local.h"
#include "proc.h"
#include "resolve.h"
#include "resolve_question.h"
#include "silent.h"

/* A question to a queue pair of this host: done by a work item, since the asker holds the mutex. */
struct local {
	struct work_struct work;
	struct repath_device *dev;
	struct repath_asked *asked;
	struct repath_resolve ask;
};

static struct workqueue_struct *ask_wq;

/* --- what came of it --- */

/*
 * Which of the answers holds; NULL with *@err: none. Where nobody answers at the address there is no
 * module, so nobody there has moved: the number is what it says.
 */
static struct repath_asked *weigh(struct repath_question *q, int *err)
{
	struct repath_asked *a, *hit = NULL;
	bool silent = q->asked[0].err, taken = false;

	*err = 0;
	for (a = q->asked; a < q->asked + q->nasked; a++) {
		if (a->err)
			continue;
		if (a->status == REPATH_PEER_AMBIGUOUS || (a->status == REPATH_PEER_OK && hit &&
							   hit->answer.tag != a->answer.tag)) {
			*err = ENOTUNIQ;
			return NULL;
		}
		taken |= a->status == REPATH_PEER_TAKEN;
		if (a->status == REPATH_PEER_OK && !hit)
			hit = a;
	}
	if (hit)
		return hit;
	if (taken)
		*err = EADDRINUSE;
	else if (!silent || q->nasked > 1)
		*err = EADDRNOTAVAIL;
	return NULL;
}

static void conclude(struct repath_question *q)
{
	struct repath_asked *hit;
	int err;

	if (q->gone) {
		repath_question_free(q);
		return;
	}
	hit = weigh(q, &err);
	/* A datagram may be sent to anybody. */
	if (q->token)
		err = err == ENOTUNIQ ? err : 0;
	if (hit) {
		q->place = hit->addr;
		repath_question_tell(q, 0, &hit->addr, be32_to_cpu(hit->answer.qpn),
		     be32_to_cpu(hit->answer.flags) & REPATH_RESOLVED_MOVED);
	} else {
		repath_question_tell(q, err, &q->asked[0].addr, q->qpn, false);
	}
	kfree(q->asked);
	q->asked = NULL;
	/* Nothing holds a device because a datagram was once sent from it. */
	repath_device_put(q->dev);
	q->dev = NULL;
	if (!q->token)
		repath_question_free(q);
}

static void answered(void *arg, int err, u8 status)
{
	struct repath_asked *a = arg;

	mutex_lock(&repath_conn_mutex);
	a->err = err;
	a->status = status;
	/* Not a word of a module that can answer this. */
	if (!err && status != REPATH_PEER_OK && status != REPATH_PEER_NO_QP &&
	    status != REPATH_PEER_AMBIGUOUS && status != REPATH_PEER_TAKEN)
		a->err = -EPROTO;
	if (err)
		repath_silent_add(a->question->dev, &a->addr);
	if (!--a->question->open)
		conclude(a->question);
	mutex_unlock(&repath_conn_mutex);
}

/* --- asking --- */

static void local_work(struct work_struct *work)
{
	struct local *local = container_of(work, struct local, work);
	u8 status = repath_resolve_answer(local->dev, &local->ask, sizeof(local->ask),
					  &local->asked->answer);

	answered(local->asked, 0, status);
	repath_device_put(local->dev);
	kfree_sensitive(local);
}

static int ask_one(struct repath_question *q, struct repath_asked *a, u64 cookie)
{
	struct repath_resolve *ask;
	struct repath_device *dev;
	struct local *local;
	int err;

	a->question = q;
	/* Nobody there: see weigh(). */
	if (repath_silent_is(q->dev, &a->addr))
		return -ETIMEDOUT;
	ask = kvzalloc(sizeof(*ask), GFP_KERNEL);
	if (!ask)
		return -ENOMEM;
	memcpy(ask->dst_gid, &a->addr.dgid, sizeof(ask->dst_gid));
	ask->dst_cookie = cpu_to_be64(cookie);
	ask->src_cookie = cpu_to_be64(q->proc->cookie);
	ask->token = cpu_to_be64(q->token);
	ask->qpn = cpu_to_be32(q->qpn);
	ask->src_qpn = cpu_to_be32(q->src_qpn);
	ask->src_sl = a->addr.sl;
	ask->qp_type = q->type;
	ask->src_lid = cpu_to_be32(repath_lid(q->dev, a->addr.port));
	err = repath_local_gid(q->dev, &a->addr, ask->src_gid);
	if (err)
		goto out;

	dev = repath_local_device(q->dev, &a->addr);
	if (!dev)
		return repath_xprt_ask(q->dev, &a->addr, REPATH_MSG_RESOLVE, ask, sizeof(*ask),
				       &a->answer, sizeof(a->answer), answered, a);
	local = kzalloc(sizeof(*local), GFP_KERNEL);
	if (local) {
		INIT_WORK(&local->work, local_work);
		local->dev = dev;
		local->asked = a;
		local->ask = *ask;
		queue_work(ask_wq, &local->work);
	} else {
		repath_device_put(dev);
		err = -ENOMEM;
	}
out:
	kvfree(ask);
	return err;
}

/**
 * repath_question_ask - ask at all places
 * @q: the question, with its places; not valid any more
 * @cookies: of all places but the first: the process that is meant
 *
 * Context: repath_conn_mutex held.
 */
void repath_question_ask(struct repath_question *q, const u64 *cookies)
{
	u32 i;

	/* One more than there are, so that nothing ends before all are asked. */
	q->open = 1;
	for (i = 0; i < q->nasked; i++) {
		struct repath_asked *a = q->asked + i;

		q->open++;
		a->err = ask_one(q, a, i ? cookies[i - 1] : 0);
		if (a->err)
			q->open--;
	}
	if (!--q->open)
		conclude(q);
}

int repath_question_init(void)
{
	ask_wq = alloc_workqueue("repath_resolve", WQ_UNBOUND, 0);
	return ask_wq ? 0 : -ENOMEM;
}

/* The carrier is gone: all have answered but those of this host. */
void repath_question_exit(void)
{
	destroy_workqueue(ask_wq);
}
