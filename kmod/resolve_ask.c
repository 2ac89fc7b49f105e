// SPDX-License-Identifier: GPL-2.0
/* A question where a queue pair is: asking at all places, and what comes of the answers. */
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "conn.h"
#include "device.h"
#include "known.h"
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

#define AGAIN		HZ		/* twice as long each time */
#define AGAIN_MAX	(32 * HZ)
#define TRIES		10		/* some three minutes */
#define AGAIN_OPEN	16		/* at once: who moves has its messages go the same way */
#define AGAIN_NEXT	(HZ / 20)	/* when one of these is answered */

static struct workqueue_struct *ask_wq;
static struct delayed_work again_work;

/*
 * Processes with questions that nobody has known the answer of, who is to ask next first, and how many of these are
 * asked for now; protected by repath_conn_mutex.
 */
static LIST_HEAD(askers);
static unsigned int again_open;

/* --- what came of it --- */

/*
 * No module listens there, but one did, since there are connections to that place by it: it is being loaded anew,
 * and who is there may have moved.
 */
static bool is_loaded_anew(struct repath_asked *a)
{
	return a->err == -ENOPROTOOPT && repath_silent_is_loaded_anew(a->question->dev, &a->addr);
}

/*
 * Which of the answers holds; NULL with *@err: none. Where nobody answers at the address there is no
 * module, so nobody there has moved: the number is what it says.
 */
static struct repath_asked *weigh(struct repath_question *q, int *err)
{
	struct repath_asked *a, *hit = NULL;
	bool silent = q->asked[0].err, taken = false;

	*err = 0;
	/* A datagram is lost at most. Who is connected is it for good. */
	if (!q->token && q->asked[0].err == -ENOMEM)
		*err = ENOMEM;	/* it was not even asked */
	if (!q->token && is_loaded_anew(&q->asked[0]))
		*err = EAGAIN;
	if (*err)
		return NULL;
	for (a = q->asked; a < q->asked + q->nasked; a++) {
		if (a->err)
			continue;
		/* Ask again. */
		if (a->status == REPATH_PEER_BUSY) {
			*err = EAGAIN;
			return NULL;
		}
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

/* Has somebody not answered who may be on the move, or not known what is just being made anew? */
static bool may_come(const struct repath_question *q)
{
	const struct repath_asked *a;

	for (a = q->asked; a < q->asked + q->nasked; a++)
		switch (a->err) {
		case 0:
			if (a->status == REPATH_PEER_NO_QP || a->status == REPATH_PEER_BUSY)
				return true;
			break;
		case -ETIMEDOUT:
		case -EHOSTUNREACH:
		case -ENOPROTOOPT:	/* its module is not loaded yet, or again */
		case -EBADMSG:
		case -ENOMEM:		/* it was not even asked */
			return true;
		}
	return false;
}

static void put_later(struct repath_question *q)
{
	list_add_tail(&q->later, &q->proc->unknown);
	if (list_empty(&q->proc->has_unknown))
		list_add_tail(&q->proc->has_unknown, &askers);
}

/**
 * repath_question_is_asked - or is not asked any more
 * @q: question
 *
 * Context: repath_conn_mutex held.
 */
void repath_question_is_asked(struct repath_question *q)
{
	list_del_init(&q->later);
	if (list_empty(&q->proc->unknown))
		list_del_init(&q->proc->has_unknown);
}

/*
 * Who connects is refused, or hears of the peer by HELLO. Who sends datagrams is not: all would go
 * to nobody, for ever, since who has not been asked does not tell where the queue pair has arrived.
 */
static void ask_later(struct repath_question *q)
{
	if (q->tries == TRIES)
		return;
	q->again = jiffies + min(AGAIN << q->tries, AGAIN_MAX);
	q->tries++;
	put_later(q);
	queue_delayed_work(ask_wq, &again_work, AGAIN);
}

/**
 * repath_question_found - it need not be asked again
 * @q: question
 *
 * Context: repath_conn_mutex held.
 */
void repath_question_found(struct repath_question *q)
{
	repath_question_is_asked(q);
	q->tries = 0;
}

static void settle(struct repath_question *q)
{
	struct repath_asked *hit;
	int err;

	hit = weigh(q, &err);
	/* A datagram may be sent to anybody. */
	if (q->token)
		err = err == ENOTUNIQ ? err : 0;
	if (hit) {
		q->place = q->found = hit->addr;
		if (!repath_question_tell(q, 0, &hit->addr, be32_to_cpu(hit->answer.qpn),
					  be32_to_cpu(hit->answer.flags) & REPATH_RESOLVED_MOVED))
			repath_question_found(q);
		else if (q->token)
			ask_later(q);
	} else {
		/* Who has been told where it went does not send to where it was. */
		if (!q->tries && !q->told)
			repath_question_tell(q, err, &q->asked[0].addr, q->qpn, false);
		if (q->token && may_come(q))
			ask_later(q);
	}
}

static void conclude(struct repath_question *q)
{
	if (q->tries) {
		again_open--;
		if (!list_empty(&askers))
			mod_delayed_work(ask_wq, &again_work, AGAIN_NEXT);
	}
	if (q->gone) {
		repath_question_free(q);
		return;
	}
	/* Who has moved has told of it itself, after the question: what others say is older. */
	if (q->heard)
		repath_question_found(q);
	else
		settle(q);
	q->heard = false;
	kfree(q->asked);
	q->asked = NULL;
	/* Nothing holds a device because a datagram was once sent from it. */
	repath_device_put(q->dev);
	q->dev = NULL;
	if (!q->token)
		repath_question_free(q);
}

static bool is_understood(u8 status)
{
	return status == REPATH_PEER_OK || status == REPATH_PEER_NO_QP ||
	       status == REPATH_PEER_AMBIGUOUS || status == REPATH_PEER_TAKEN ||
	       status == REPATH_PEER_BUSY;
}

static int ask_one(struct repath_question *q, struct repath_asked *a);

/* It may have been damaged on its way: who goes on as if nobody were there is connected to the wrong one. */
static bool asked_again(struct repath_asked *a)
{
	return !a->question->gone && ++a->refused < REPATH_REFUSED_TRIES && !ask_one(a->question, a);
}

static void answered(void *arg, int err, u8 status)
{
	struct repath_asked *a = arg;

	mutex_lock(&repath_conn_mutex);
	if (err == -EBADMSG || (!err && !is_understood(status))) {
		if (asked_again(a))
			goto unlock;
		/* Not a word of a module that can answer this. */
		err = err ?: -EPROTO;
	}
	a->err = err == -EHOSTDOWN ? -ETIMEDOUT : err;
	a->status = status;
	if (err)
		repath_silent_add(a->question->dev, &a->addr, err);
	else
		repath_silent_answered(a->question->dev, &a->addr);
	if (!--a->question->open)
		conclude(a->question);
unlock:
	mutex_unlock(&repath_conn_mutex);
}

/* --- asking --- */

/* Who keeps thousands of UD addresses is still connected at once. */
static const void *payer_of(const struct repath_question *q)
{
	return (const char *)q->proc + (q->type == IB_QPT_UD);
}

/* Nobody there: see weigh(). Who asks again keeps nobody waiting. */
static int no_use(const struct repath_question *q, const struct repath_addr *addr)
{
	return !q->tries && repath_silent_is(q->dev, addr) ? -EHOSTDOWN : 0;
}

/* Those before it may have found out, since it was sent. */
static int is_wanted(void *arg)
{
	struct repath_asked *a = arg;
	int err;

	mutex_lock(&repath_conn_mutex);
	err = a->question->gone ? -ECANCELED : no_use(a->question, &a->addr);
	mutex_unlock(&repath_conn_mutex);
	return err;
}

static void local_work(struct work_struct *work)
{
	struct local *local = container_of(work, struct local, work);
	u8 status = repath_resolve_answer(local->dev, &local->ask, sizeof(local->ask),
					  &local->asked->answer);

	answered(local->asked, 0, status);
	repath_device_put(local->dev);
	kfree_sensitive(local);
}

static int ask_one(struct repath_question *q, struct repath_asked *a)
{
	struct repath_resolve *ask;
	struct repath_device *dev;
	struct local *local;
	int err;

	a->question = q;
	if (no_use(q, &a->addr))
		return -ETIMEDOUT;
	ask = kvzalloc(sizeof(*ask), GFP_KERNEL_ACCOUNT);
	if (!ask)
		return -ENOMEM;
	memcpy(ask->dst_gid, &a->addr.dgid, sizeof(ask->dst_gid));
	ask->dst_cookie = cpu_to_be64(a->cookie);
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
		return repath_xprt_send(q->dev, &(struct repath_xprt_send){
			.to = &a->addr, .payer = payer_of(q), .type = REPATH_MSG_RESOLVE,
			.data = ask, .len = sizeof(*ask), .answer = &a->answer,
			.answer_len = sizeof(a->answer), .check = is_wanted, .done = answered,
			.arg = a,
		});
	local = kzalloc(sizeof(*local), GFP_KERNEL_ACCOUNT);
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
 * @q: question that nobody is asked now
 * @dev: own device
 *
 * The question may be gone afterwards.
 *
 * Context: repath_conn_mutex held.
 * Return: 0 or -ENOMEM.
 */
int repath_question_ask(struct repath_question *q, struct repath_device *dev)
{
	struct repath_addr now[REPATH_ASKED_MAX - 1];
	u64 cookies[REPATH_ASKED_MAX - 1];
	u32 i;

	i = repath_known_find(q->proc, &q->place, now, cookies, ARRAY_SIZE(now));
	q->asked = kcalloc(i + 1, sizeof(*q->asked), GFP_KERNEL);
	if (!q->asked)
		return -ENOMEM;
	q->dev = repath_device_get(dev);
	q->dev_index = dev->index;
	q->nasked = i + 1;
	/* One more than there are, so that nothing ends before all are asked. */
	q->open = 1;
	for (i = 0; i < q->nasked; i++) {
		struct repath_asked *a = q->asked + i;

		a->addr = q->place;
		if (i) {
			if (repath_addr_has_gid(&q->place))
				a->addr.dgid = now[i - 1].dgid;
			a->addr.dlid = now[i - 1].dlid;
			a->cookie = cookies[i - 1];
		}
		q->open++;
		a->err = ask_one(q, a);
		if (a->err)
			q->open--;
	}
	if (!--q->open)
		conclude(q);
	return 0;
}

/* Of a process: the first whose time has come, or NULL. */
static struct repath_question *due_of(const struct repath_proc *proc)
{
	struct repath_question *q;

	list_for_each_entry(q, &proc->unknown, later)
		if (!time_before(jiffies, q->again))
			return q;
	return NULL;
}

/*
 * Where its device has gone, its process asks itself, on the one that it has next.
 *
 * Return: false: there is no memory now.
 */
static bool ask_anew(struct repath_question *q)
{
	struct repath_device *dev;
	bool asked = false;

	repath_question_is_asked(q);
	dev = repath_device_get_by_index(q->proc->net, q->dev_index);
	if (!dev)
		return true;
	again_open++;
	if (repath_question_ask(q, dev)) {
		again_open--;
		q->again = jiffies + AGAIN;
		put_later(q);
	} else {
		asked = true;
	}
	repath_device_put(dev);
	return asked;
}

/* One of each process. */
static bool ask_round(void)
{
	struct repath_question *q;
	struct repath_proc *proc;
	LIST_HEAD(round);
	bool any = false;

	list_splice_init(&askers, &round);
	while (again_open < AGAIN_OPEN && !list_empty(&round)) {
		proc = list_first_entry(&round, struct repath_proc, has_unknown);
		list_move_tail(&proc->has_unknown, &askers);
		q = due_of(proc);
		if (q)
			any |= ask_anew(q);
	}
	/* Who has not had a turn has the next one. */
	list_splice(&round, &askers);
	return any;
}

/* Who has thousands, at hosts that are down, keeps nobody waiting who has one. */
static void ask_again(struct work_struct *work)
{
	mutex_lock(&repath_conn_mutex);
	while (ask_round())
		;
	if (!list_empty(&askers))
		queue_delayed_work(ask_wq, &again_work, AGAIN);
	mutex_unlock(&repath_conn_mutex);
}

int repath_question_init(void)
{
	INIT_DELAYED_WORK(&again_work, ask_again);
	again_open = 0;
	ask_wq = alloc_workqueue("repath_resolve", WQ_UNBOUND, 0);
	return ask_wq ? 0 : -ENOMEM;
}

/*
 * The carrier is gone: all have answered but those of this host. There is no device to ask them
 * again on.
 */
void repath_question_exit(void)
{
	flush_workqueue(ask_wq);
	cancel_delayed_work_sync(&again_work);
	destroy_workqueue(ask_wq);
}
