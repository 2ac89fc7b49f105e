// SPDX-License-Identifier: GPL-2.0
/*
 * Who has asked for a UD queue pair. A UD queue pair has no connection, so its senders are known
 * only by their questions; when it has moved, each of them is told, with the token of its question,
 * until it has answered. Where it is it says itself, and anybody may ask: who has answered once, so is there, is kept and
 * told before the others.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "number.h"
#include "proc.h"
#include "resolve.h"
#include "track.h"
#include "watch.h"

#define AGAIN		HZ	/* who was not reached is told again */
#define TRIES		5	/* so often in a row, then seldom: its host may be cut off, or asleep */
#define SELDOM		(10 * HZ)
#define REFUSED_TRIES	3	/* of a token that is not known there: it may have been damaged */

#define SHARE		(REPATH_WATCH_MAX / 8)		/* of those that say the same address */
#define CONFIRMED_MAX	(REPATH_WATCH_MAX / 4 * 3)	/* there is room left for those that have yet to answer */

/**
 * struct source - the address that senders say when they ask
 * @node: in @sources
 * @gid: the address
 * @unsure: those of them that have not answered, who asked longest ago first
 * @nunsure: entries of @unsure
 * @nconfirmed: how many have
 */
struct source {
	struct hlist_node node;
	u8 gid[16];
	struct list_head unsure;
	u32 nunsure;
	u32 nconfirmed;
};

/**
 * struct watch - a sender that uses a UD queue pair
 * @node: in @watches
 * @of_proc: in repath_proc::watches of @proc
 * @unsure: in @unsure, while not @confirmed
 * @source_node: in @source's, while not @confirmed
 * @source: where it asked from; it may be elsewhere now
 * @by_qp: by @proc and @known_as
 * @by_token: by @token
 * @proc: whose the queue pair is; compared only, the watch goes when it leaves
 * @proc_cookie: its cookie
 * @known_as: the number that the sender's application has
 * @rqp: the queue pair as it is now, or was last; holds a reference
 * @gid: of the queue pair's port, as the sender reaches it; all zero: by LID alone
 * @lid: the same
 * @back: to the sender
 * @dev: the way back; NULL: its device is gone, and the queue pair has not moved yet
 * @token: the sender's
 * @cookie: the sender
 * @at_ns: when it moved last, since the machine was booted
 * @tries: 0: it has heard all; else how often it was told, as far as counted
 * @since: when it was told first; jiffies, valid with @tries
 * @next: when it is told again; the same
 * @round: which MOVED was sent last, of all watches: one that is dropped and asked for anew has the same token
 * @refused: how often its token was not known there
 * @confirmed: it has answered, or is a process of this host
 * @guessed: an administrator has said where the sender is, and it has not been heard from since
 * @said: @back is what the sender has said of itself
 * @busy: a MOVED is under way
 * @news: it has moved again since that was sent
 */
struct watch {
	struct list_head node;
	struct list_head of_proc;
	struct list_head unsure;
	struct list_head source_node;
	struct source *source;
	struct hlist_node by_qp;
	struct hlist_node by_token;
	const struct repath_proc *proc;
	u64 proc_cookie;
	u32 known_as;
	struct repath_qp *rqp;
	u8 gid[16];
	u32 lid;
	struct repath_addr back;
	struct repath_device *dev;
	u64 token;
	u64 cookie;
	u32 round;
	u64 at_ns;
	u8 tries;
	u8 refused;
	unsigned long since;
	unsigned long next;
	bool confirmed;
	bool guessed;
	bool said;
	bool busy;
	bool news;
};

/* All protected by repath_conn_mutex. */
static LIST_HEAD(watches);
static LIST_HEAD(unsure);	/* who asked longest ago first */
static DEFINE_HASHTABLE(sources, 10);
static DEFINE_HASHTABLE(by_qp, 12);
static DEFINE_HASHTABLE(by_token, 12);
static u32 count;
static u32 nconfirmed;
static u32 seed;		/* GIDs and tokens are strangers' words */
static u32 rounds;

static struct workqueue_struct *watch_wq;
static struct delayed_work again_work;

static u64 qp_hash(const struct repath_proc *proc, u32 known_as)
{
	return (unsigned long)proc ^ (u64)known_as << 40;
}

static u32 token_hash(u64 token)
{
	return jhash_2words(token, token >> 32, seed);
}

static struct watch *find(u64 token)
{
	struct watch *w;

	hash_for_each_possible(by_token, w, by_token, token_hash(token))
		if (w->token == token)
			return w;
	return NULL;
}

static u32 source_hash(const u8 gid[16])
{
	return jhash(gid, 16, seed);
}

/* Where @w asks from. false: no memory */
static bool join_source(struct watch *w, const u8 gid[16])
{
	struct source *s;

	hash_for_each_possible(sources, s, node, source_hash(gid))
		if (!memcmp(s->gid, gid, sizeof(s->gid)))
			goto join;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return false;
	memcpy(s->gid, gid, sizeof(s->gid));
	INIT_LIST_HEAD(&s->unsure);
	hash_add(sources, &s->node, source_hash(gid));
join:
	w->source = s;
	s->nunsure++;
	list_add_tail(&w->source_node, &s->unsure);
	list_add_tail(&w->unsure, &unsure);
	return true;
}

static void leave_unsure(struct watch *w)
{
	list_del(&w->unsure);
	list_del(&w->source_node);
	w->source->nunsure--;
}

static void leave_source(struct watch *w)
{
	struct source *s = w->source;

	if (w->confirmed) {
		s->nconfirmed--;
		nconfirmed--;
	} else {
		leave_unsure(w);
	}
	if (s->nunsure || s->nconfirmed)
		return;
	hash_del(&s->node);
	kfree(s);
}

/* It is there. Who answers for very many keeps a share for certain, and the others as those who have not answered. */
static void confirm(struct watch *w)
{
	if (w->confirmed || nconfirmed >= CONFIRMED_MAX || w->source->nconfirmed >= SHARE)
		return;
	leave_unsure(w);
	w->confirmed = true;
	w->source->nconfirmed++;
	nconfirmed++;
}

static void drop(struct watch *w)
{
	leave_source(w);
	list_del(&w->node);
	list_del(&w->of_proc);
	hash_del(&w->by_qp);
	hash_del(&w->by_token);
	if (w->dev)
		repath_device_put(w->dev);
	repath_qp_put(w->rqp);
	kfree_sensitive(w);
	count--;
}

static void set_dev(struct watch *w, struct repath_device *dev)
{
	if (w->dev == dev)
		return;
	if (dev)
		repath_device_get(dev);
	if (w->dev)
		repath_device_put(w->dev);
	w->dev = dev;
}

/* The own GID that a sender uses, so that the answer goes out where the question came in. */
static void find_way_back(struct watch *w)
{
	const struct ib_gid_attr *attr = ERR_PTR(-ENOENT);
	enum ib_gid_type type;
	u32 port;

	if (!w->dev || !repath_device_use(w->dev))
		return;
	rdma_for_each_port(w->dev->ibdev, port) {
		for (type = IB_GID_TYPE_SIZE; type-- > IB_GID_TYPE_IB && IS_ERR(attr);)
			attr = rdma_find_gid_by_port(w->dev->ibdev, (union ib_gid *)w->gid, type,
						     port, NULL);
		if (!IS_ERR(attr))
			break;
	}
	w->back.port = rdma_start_port(w->dev->ibdev);
	w->back.sgid_index = 0;
	if (!IS_ERR(attr)) {
		w->back.port = attr->port_num;
		w->back.sgid_index = attr->index;
		rdma_put_gid_attr(attr);
	}
	repath_device_unuse(w->dev);
}

/* A sender that asks for very many takes the room of its own, not of others; nobody that of one who has answered. */
static void make_room(const struct source *own)
{
	drop(own->nunsure > SHARE ? list_first_entry(&own->unsure, struct watch, source_node) :
				    list_first_entry(&unsure, struct watch, unsure));
}

/**
 * repath_watch_add - a sender asks for a UD queue pair
 * @dev: device that the question came to
 * @rqp: queue pair
 * @ask: the question
 *
 * Context: repath_conn_mutex held.
 */
void repath_watch_add(struct repath_device *dev, struct repath_qp *rqp,
		      const struct repath_resolve *ask)
{
	u64 token = be64_to_cpu(ask->token);
	struct repath_proc *proc;
	bool has_answered = false;
	struct watch *w;
	u8 from[16];

	lockdep_assert_held(&repath_conn_mutex);
	if (!token || rqp->kernel || !repath_qp_pid(rqp))
		return;
	proc = repath_proc_find(repath_qp_pid(rqp));
	if (!proc)
		return;		/* never moves */
	w = find(token);
	memcpy(from, ask->src_gid, sizeof(from));
	if (w) {
		has_answered = w->confirmed;
		/* By its token it is the same one, wherever it is now, and takes no other one's share. */
		if (has_answered)
			memcpy(from, w->source->gid, sizeof(from));
		drop(w);
	}
	w = kzalloc(sizeof(*w), GFP_KERNEL);
	if (!w || READ_ONCE(proc->left) || !join_source(w, from)) {
		kfree(w);
		repath_proc_put(proc);
		return;
	}
	if (count >= REPATH_WATCH_MAX)
		make_room(w->source);
	w->proc = proc;
	w->proc_cookie = proc->cookie;
	w->known_as = be32_to_cpu(ask->qpn);
	memcpy(w->gid, ask->dst_gid, sizeof(w->gid));
	kref_get(&rqp->kref);
	w->rqp = rqp;
	w->token = token;
	w->cookie = be64_to_cpu(ask->src_cookie);
	memcpy(w->back.dgid.raw, ask->src_gid, sizeof(w->back.dgid));
	w->back.dlid = be32_to_cpu(ask->src_lid);
	w->back.sl = ask->src_sl & 0xf;
	set_dev(w, dev);
	find_way_back(w);
	if (has_answered || repath_proc_is_local(w->cookie))
		confirm(w);
	list_add_tail(&w->node, &watches);
	list_add_tail(&w->of_proc, &proc->watches);
	hash_add(by_qp, &w->by_qp, qp_hash(proc, w->known_as));
	hash_add(by_token, &w->by_token, token_hash(token));
	count++;
	/* Where it goes when the process leaves: see repath_watch_proc_left(). */
	repath_proc_put(proc);
}

/* --- telling --- */

static void tell(struct watch *w);

static void tell_later(struct watch *w)
{
	w->next = jiffies + (w->tries < TRIES ? AGAIN : SELDOM);
	queue_delayed_work(watch_wq, &again_work, AGAIN);
}

static void heard(struct watch *w, int err, u8 status)
{
	bool news = w->news;

	w->busy = w->news = false;
	w->guessed &= err || status;
	if (!err && !status)
		confirm(w);
	/* What a stranger's host does not know says nothing of the sender. */
	if (!err && status == REPATH_PEER_BAD_TOKEN && !w->guessed && ++w->refused >= REFUSED_TRIES)
		drop(w);	/* it does not use the address any more */
	else if (news)
		tell(w);
	else if ((!err && !status) || (w->tries == TRIES && repath_conn_lease_is_over(w->since)))
		w->tries = 0;	/* told, or not there */
	else
		tell_later(w);
}

/* Tokens, not pointers, go with a message: the watch may have gone when the answer comes. */
struct telling {
	u64 token;
	u32 round;
};

static void told(void *arg, int err, u8 status)
{
	struct telling *t = arg;
	struct watch *w;

	mutex_lock(&repath_conn_mutex);
	w = find(t->token);
	if (w && w->busy && w->round == t->round)
		heard(w, err, status);
	mutex_unlock(&repath_conn_mutex);
	kfree_sensitive(t);
}

static int send(struct watch *w, struct repath_moved *moved)
{
	struct telling *t = kzalloc(sizeof(*t), GFP_KERNEL);
	int err;

	if (!t) {
		kvfree(moved);
		return -ENOMEM;
	}
	t->token = w->token;
	t->round = w->round = ++rounds;
	err = repath_xprt_send(w->dev, &(struct repath_xprt_send){
		.to = &w->back, .type = REPATH_MSG_MOVED, .data = moved, .len = sizeof(*moved),
		.done = told, .arg = t,
	});
	if (err)
		kfree_sensitive(t);
	return err;
}

static void tell(struct watch *w)
{
	struct repath_moved *moved;
	int ret;

	if (!w->dev)
		return;
	if (w->busy) {
		w->news = true;
		return;
	}
	if (!w->tries)
		w->since = jiffies;
	if (w->tries < TRIES)
		w->tries++;
	moved = kvzalloc(sizeof(*moved), GFP_KERNEL);
	if (!moved) {
		tell_later(w);
		return;
	}
	moved->token = cpu_to_be64(w->token);
	moved->cookie = cpu_to_be64(w->proc_cookie);
	memcpy(moved->gid, w->gid, sizeof(moved->gid));
	moved->lid = cpu_to_be32(w->lid);
	moved->qpn = cpu_to_be32(w->rqp->qpn);
	moved->at = cpu_to_be64(w->at_ns);
	ret = repath_resolve_tell_local(w->cookie, moved);
	if (ret >= 0) {
		kvfree(moved);
		heard(w, 0, ret);
		return;
	}
	w->busy = !send(w, moved);
	if (!w->busy)
		tell_later(w);
}

/* Does any of them have to wait longer? */
static bool tell_those(bool confirmed)
{
	struct watch *w, *next;
	bool later = false;

	list_for_each_entry_safe(w, next, &watches, node) {
		if (!w->tries || w->busy || w->confirmed != confirmed)
			continue;
		if (time_before(jiffies, w->next))
			later = true;
		else
			tell(w);
	}
	return later;
}

static void tell_again(struct work_struct *work)
{
	bool later;

	mutex_lock(&repath_conn_mutex);
	later = tell_those(true);
	later |= tell_those(false);
	if (later)
		queue_delayed_work(watch_wq, &again_work, AGAIN);
	mutex_unlock(&repath_conn_mutex);
}

static const struct repath_gid_change *change_of(const struct watch *w,
						 const struct repath_gid_change *gids, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (!memcmp(gids[i].old, w->gid, sizeof(w->gid)))
			return gids + i;
	/* Reached by LID alone: any port will do that has one. */
	for (i = 0; i < n && !memchr_inv(w->gid, 0, sizeof(w->gid)); i++)
		if (gids[i].lid)
			return gids + i;
	return NULL;
}

/*
 * Numbers are of one device: another queue pair of the process may be known by the same one, which has stayed where it is,
 * or is of another type, or at a GID that is none of those that have moved.
 */
static bool is_meant(const struct watch *w, const struct repath_qp *now,
		     const struct repath_gid_change *change, u32 ngids)
{
	return now->type == IB_QPT_UD && (change || !ngids) &&
	       (now == w->rqp || READ_ONCE(w->rqp->gone));
}

static void moved_one(struct watch *w, struct repath_device *dev, struct repath_qp *now,
		      const struct repath_gid_change *gids, u32 ngids)
{
	const struct repath_gid_change *change = change_of(w, gids, ngids);

	if (!is_meant(w, now, change, ngids))
		return;
	kref_get(&now->kref);
	repath_qp_put(w->rqp);
	w->rqp = now;
	if (change) {
		if (memchr_inv(w->gid, 0, sizeof(w->gid)))
			memcpy(w->gid, change->now, sizeof(w->gid));
		w->lid = change->lid;
	}
	set_dev(w, dev);
	w->back.has_dmac = false;
	find_way_back(w);
	w->at_ns = ktime_get_boottime_ns();
	w->tries = w->refused = 0;
	tell(w);
}

static void row_moved(struct repath_proc *proc, struct repath_device *dev, const struct repath_number *row,
		      const struct repath_gid_change *gids, u32 ngids, bool confirmed)
{
	struct repath_qp *now = repath_qp_find(dev, row->qpn);
	struct hlist_node *next;
	struct watch *w;

	if (!now)
		return;		/* destroyed meanwhile */
	hash_for_each_possible_safe(by_qp, w, next, by_qp, qp_hash(proc, row->known_as))
		if (w->proc == proc && w->known_as == row->known_as && w->confirmed == confirmed)
			moved_one(w, dev, now, gids, ngids);
	repath_qp_put(now);
}

/**
 * repath_watch_moved - queue pairs of a process are on another device
 * @proc: process
 * @dev: that device
 * @rows: the queue pairs, of all types
 * @n: entries of @rows
 * @gids: what became of the GIDs of the old device
 * @ngids: entries of @gids
 *
 * Context: repath_conn_mutex held.
 */
void repath_watch_moved(struct repath_proc *proc, struct repath_device *dev,
			const struct repath_number *rows, u32 n,
			const struct repath_gid_change *gids, u32 ngids)
{
	u32 i;

	lockdep_assert_held(&repath_conn_mutex);
	/* Those who are there do not wait for answers of who may not be. */
	for (i = 0; i < n && count; i++)
		row_moved(proc, dev, rows + i, gids, ngids, true);
	for (i = 0; i < n && count; i++)
		row_moved(proc, dev, rows + i, gids, ngids, false);
}

/* An address without a GID is its LID; a sender always says both. */
static bool is_back_to(const struct watch *w, const struct repath_addr *addr)
{
	if (memchr_inv(&addr->dgid, 0, sizeof(addr->dgid)))
		return !memcmp(&w->back.dgid, &addr->dgid, sizeof(addr->dgid));
	return w->back.dlid == addr->dlid;
}

/* What is under way to its old place does not matter any more. */
static void is_now_at(struct watch *w, const struct repath_addr *to, bool guessed)
{
	w->back.dgid = to->dgid;
	w->back.dlid = to->dlid;
	w->back.has_dmac = false;
	w->guessed = guessed;
	w->said = true;
	if (!w->tries)
		return;
	w->busy = w->news = false;
	tell(w);
}

/**
 * repath_watch_sender_moved - a sender to queue pairs of a process is elsewhere
 * @proc: process
 * @cookie: the sender
 * @from: where it was for certain; other ports of it are where they were
 * @said: where it has said before that it is
 * @to: where it is
 * @told: as an administrator says, and not itself
 *
 * What was sent to it where it was would be tried there to the last.
 *
 * Context: repath_conn_mutex held.
 */
void repath_watch_sender_moved(const struct repath_proc *proc, u64 cookie,
			       const struct repath_addr *from, const struct repath_addr *said,
			       const struct repath_addr *to, bool told)
{
	struct watch *w, *next;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry_safe(w, next, &proc->watches, of_proc) {
		if (w->cookie != cookie || !(is_back_to(w, from) || (w->said && is_back_to(w, said))))
			continue;
		/* Another connection of the two has told. */
		if (w->back.dlid == to->dlid && !memcmp(&w->back.dgid, &to->dgid, sizeof(to->dgid)))
			continue;
		is_now_at(w, to, told);
	}
}

/**
 * repath_watch_told - an administrator says that senders are elsewhere
 * @dev: the way back to them
 * @from: where they were: a GID, else a LID
 * @gid: their new GID; NULL: it is as before
 * @lid: their new LID; 0 on RoCE
 *
 * Only those that have not heard yet where the queue pair has gone: of the others nobody knows that they are not where
 * they were.
 *
 * Context: repath_conn_mutex held.
 * Return: how many are told there now.
 */
u32 repath_watch_told(const struct repath_device *dev, const struct repath_addr *from, const u8 *gid, u32 lid)
{
	struct watch *w, *next;
	struct repath_addr to;
	u32 n = 0;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry_safe(w, next, &watches, node) {
		if (w->dev != dev || !w->tries || !is_back_to(w, from))
			continue;
		to = w->back;
		if (gid)
			memcpy(to.dgid.raw, gid, sizeof(to.dgid));
		to.dlid = lid;
		is_now_at(w, &to, true);
		n++;
	}
	return n;
}

/**
 * repath_watch_proc_left - a process is not there any more
 * @proc: process
 *
 * Context: repath_conn_mutex held.
 */
void repath_watch_proc_left(struct repath_proc *proc)
{
	struct watch *w, *next;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry_safe(w, next, &proc->watches, of_proc)
		drop(w);
}

/**
 * repath_watch_device_removed - the way back is gone, until the queue pair is on another device
 * @dev: device
 *
 * Context: repath_conn_mutex held.
 */
void repath_watch_device_removed(struct repath_device *dev)
{
	struct watch *w;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry(w, &watches, node)
		if (w->dev == dev)
			set_dev(w, NULL);
}

int repath_watch_init(void)
{
	seed = get_random_u32();
	INIT_DELAYED_WORK(&again_work, tell_again);
	watch_wq = alloc_workqueue("repath_watch", WQ_UNBOUND, 0);
	return watch_wq ? 0 : -ENOMEM;
}

/* The carrier is gone, so no MOVED is under way, and nobody asks or moves. */
void repath_watch_exit(void)
{
	struct watch *w, *next;

	cancel_delayed_work_sync(&again_work);
	destroy_workqueue(watch_wq);
	mutex_lock(&repath_conn_mutex);
	list_for_each_entry_safe(w, next, &watches, node)
		drop(w);
	mutex_unlock(&repath_conn_mutex);
}
