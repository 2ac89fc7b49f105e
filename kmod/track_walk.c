// SPDX-License-Identifier: GPL-2.0
/* Finding and walking tracked objects, for those who may sleep. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/restrack.h>

#include "device.h"
#include "track.h"

#ifdef REPATH_HAVE_RESTRACK_COMMIT_DEL
#define DELETES_IN_ORDER true
#else
#define DELETES_IN_ORDER false
#endif

/**
 * repath_qp_find - find a queue pair
 * @dev: device
 * @qpn: its number; the newest queue pair of that number is meant
 *
 * Context: any, without the track lock.
 * Return: with a reference, or NULL.
 */
struct repath_qp *repath_qp_find(struct repath_device *dev, u32 qpn)
{
	struct repath_qp *rqp;
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	rqp = xa_load(&dev->by_qpn, qpn);
	if (rqp)
		kref_get(&rqp->kref);
	spin_unlock_irqrestore(&repath_track_lock, flags);
	return rqp;
}

/**
 * repath_qp_snapshot - state and path of a queue pair, as of one moment
 * @rqp: the queue pair
 * @state: enum ib_qp_state, or NULL
 * @path: or NULL
 *
 * Context: any.
 */
void repath_qp_snapshot(struct repath_qp *rqp, u8 *state, struct repath_path *path)
{
	unsigned long flags;

	spin_lock_irqsave(&rqp->lock, flags);
	if (state)
		*state = rqp->state;
	if (path)
		*path = rqp->path;
	spin_unlock_irqrestore(&rqp->lock, flags);
}

/**
 * repath_qp_snapshot_alt - the alternate path of a queue pair, as of one moment
 * @rqp: the queue pair
 * @alt: result
 *
 * Context: any.
 */
void repath_qp_snapshot_alt(struct repath_qp *rqp, struct repath_alt_path *alt)
{
	unsigned long flags;

	spin_lock_irqsave(&rqp->lock, flags);
	*alt = rqp->alt;
	spin_unlock_irqrestore(&rqp->lock, flags);
}

/*
 * Where the deletion of a queue pair has no begin of its own ib_core waits for who uses it when the driver has
 * destroyed it already: who is about to do that by uverbs has locked the object first, which is the first thing in
 * a struct ib_uqp_object. A verb that was under way at that moment goes to a number that may be another's by the
 * time that the driver sends it, as with nldev's of such a kernel.
 */
static bool is_being_destroyed(const struct ib_qp *qp)
{
	const struct ib_uobject *uobject = (const void *)READ_ONCE(qp->uobject);

	return !DELETES_IN_ORDER && uobject && atomic_read(&uobject->usecnt) < 0;
}

/**
 * repath_qp_use - take hold of the real queue pair, to query or modify it
 * @rqp: the queue pair
 *
 * Whoever destroys it waits, uninterruptibly, until repath_qp_unuse(): hold it for one verb.
 *
 * Return: the queue pair, or NULL if it or its device is going or has gone.
 */
struct ib_qp *repath_qp_use(struct repath_qp *rqp)
{
	struct rdma_restrack_entry *res;
	struct ib_qp *qp = NULL;

	if (!repath_device_use(rqp->dev))
		return NULL;
	res = rdma_restrack_get_byid(rqp->dev->ibdev, RDMA_RESTRACK_QP, rqp->key);
	if (!IS_ERR(res)) {
		qp = container_of(res, struct ib_qp, res);
		/* Another one with the same number. */
		if (qp != rqp->qp || READ_ONCE(rqp->gone) || is_being_destroyed(qp)) {
			rdma_restrack_put(res);
			qp = NULL;
		}
	}
	if (!qp)
		repath_device_unuse(rqp->dev);
	return qp;
}

/**
 * repath_qp_is_there - is there a queue pair of this number, whether it is tracked or not?
 * @dev: device
 * @qpn: number
 *
 * Return: true also where nobody can tell, since the device is going.
 */
bool repath_qp_is_there(struct repath_device *dev, u32 qpn)
{
	struct rdma_restrack_entry *res;
	bool there;

	if (!repath_device_use(dev))
		return true;
	res = rdma_restrack_get_byid(dev->ibdev, RDMA_RESTRACK_QP, qpn);
	there = !IS_ERR(res);
	if (there)
		rdma_restrack_put(res);
	repath_device_unuse(dev);
	return there;
}

/**
 * repath_qp_unuse - end of repath_qp_use()
 * @qp: what it returned
 */
void repath_qp_unuse(struct ib_qp *qp)
{
	struct ib_device *ibdev = qp->device;

	rdma_restrack_put(&qp->res);
	ib_device_put(ibdev);
}

/**
 * repath_device_ctx_count - how many user contexts are open
 * @dev: device
 */
u32 repath_device_ctx_count(struct repath_device *dev)
{
	return READ_ONCE(dev->ctx_count);
}

/* The one with the lowest key that is not below *@key, which becomes its key; with a reference, or NULL. */
static struct repath_qp *qp_from(struct repath_device *dev, unsigned long *key)
{
	struct repath_qp *rqp;
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	rqp = xa_find(&dev->by_qpn, key, U32_MAX, XA_PRESENT);
	if (rqp)
		kref_get(&rqp->kref);
	spin_unlock_irqrestore(&repath_track_lock, flags);
	return rqp;
}

/**
 * repath_qp_for_each - walk the queue pairs of a device
 * @dev: device
 * @fn: see track.h
 * @arg: for @fn
 *
 * Context: process.
 */
int repath_qp_for_each(struct repath_device *dev, repath_qp_fn fn, void *arg)
{
	struct repath_qp *rqp;
	unsigned long key;
	int ret = 0;

	for (key = 0; !ret && (rqp = qp_from(dev, &key)); key++) {
		ret = fn(rqp, arg);
		repath_qp_put(rqp);
	}
	return ret;
}

/**
 * repath_ctx_for_each - walk the user contexts of a device
 * @dev: device
 * @fn: see track.h
 * @arg: for @fn
 *
 * Context: process.
 */
int repath_ctx_for_each(struct repath_device *dev,
			int (*fn)(struct repath_ctx *ctx, void *arg), void *arg)
{
	struct repath_ctx *ctx;
	unsigned long id;
	int ret = 0;

	rcu_read_lock();
	xa_for_each(&dev->ctxs, id, ctx) {
		if (!kref_get_unless_zero(&ctx->kref))
			continue;
		rcu_read_unlock();
		ret = fn(ctx, arg);
		repath_ctx_put(ctx);
		if (ret)
			return ret;
		rcu_read_lock();
	}
	rcu_read_unlock();
	return ret;
}

/*
 * Lists and hash chains can not be left and entered again: what is on them is collected under
 * the lock, with references, and then told to those who sleep.
 */
struct collection {
	void **obj;
	u32 max;
	u32 n;
};

static bool collect_room(struct collection *set)
{
	return set->n++ < set->max;
}

static void collect_qp(struct repath_qp *rqp, void *arg)
{
	struct collection *set = arg;

	if (collect_room(set)) {
		kref_get(&rqp->kref);
		set->obj[set->n - 1] = rqp;
	}
}

static void collect_user(struct repath_user *user, struct collection *set)
{
	if (collect_room(set)) {
		kref_get(&user->kref);
		set->obj[set->n - 1] = user;
	}
}

/* What is collected. */
struct selection {
	struct repath_device *dev;	/* NULL: all */
	struct pid *tgid;		/* NULL: all */
	u32 port;
	u32 dlid;
	const union ib_gid *dgid;
	void (*walk)(const struct selection *sel, struct collection *set);
	void (*put)(void *obj);
};

static void drop_qp(void *obj)
{
	repath_qp_put(obj);
}

static void drop_user(void *obj)
{
	repath_user_put(obj);
}

static void walk_path(const struct selection *sel, struct collection *set)
{
	repath_qp_on_path_locked(sel->dev, sel->port, sel->dlid, sel->dgid, collect_qp, set);
}

static void walk_users(const struct selection *sel, struct collection *set)
{
	struct repath_user *user = NULL;

	if (sel->tgid) {
		while ((user = repath_user_of_locked(sel->tgid, user)))
			if (!sel->dev || user->dev == sel->dev)
				collect_user(user, set);
		return;
	}
	list_for_each_entry(user, &sel->dev->users, node)
		collect_user(user, set);
}

static void walk_qps_of(const struct selection *sel, struct collection *set)
{
	struct repath_user *user = NULL;
	struct repath_qp *rqp;

	while ((user = repath_user_of_locked(sel->tgid, user)))
		list_for_each_entry(rqp, &user->qps, user_node)
			collect_qp(rqp, set);
}

static void collection_free(const struct selection *sel, struct collection *set)
{
	u32 i;

	for (i = 0; i < min(set->n, set->max); i++)
		sel->put(set->obj[i]);
	kvfree(set->obj);
	set->obj = NULL;
}

static int collect(const struct selection *sel, struct collection *set)
{
	unsigned long flags;

	set->max = 64;
	for (;;) {
		set->obj = kvmalloc_array(set->max, sizeof(*set->obj), GFP_KERNEL);
		if (!set->obj)
			return -ENOMEM;
		set->n = 0;
		spin_lock_irqsave(&repath_track_lock, flags);
		sel->walk(sel, set);
		spin_unlock_irqrestore(&repath_track_lock, flags);
		if (set->n <= set->max)
			return 0;
		/* Too small: again, with room for some that come meanwhile. */
		collection_free(sel, set);
		set->max = set->n + set->n / 4;
	}
}

static int tell_qps(const struct selection *sel, repath_qp_fn fn, void *arg)
{
	struct collection set;
	int ret;
	u32 i;

	ret = collect(sel, &set);
	if (ret)
		return ret;
	for (i = 0; !ret && i < set.n; i++)
		ret = fn(set.obj[i], arg);
	collection_free(sel, &set);
	return ret;
}

/**
 * repath_qp_walk_of - walk the queue pairs of a process, on all devices
 * @tgid: the process
 * @fn: see track.h
 * @arg: for @fn
 *
 * Context: process.
 * Return: 0, what @fn returned, or -ENOMEM.
 */
int repath_qp_walk_of(struct pid *tgid, repath_qp_fn fn, void *arg)
{
	const struct selection sel = {
		.tgid = tgid, .walk = walk_qps_of, .put = drop_qp,
	};

	return tell_qps(&sel, fn, arg);
}

/**
 * repath_qp_walk_on_path - walk the queue pairs that send on one path, or did when they were RESET last
 * @dev: device
 * @port: own port
 * @dlid: by DLID, of the path in use or the alternate one; 0: by @dgid
 * @dgid: see @dlid
 * @fn: see track.h
 * @arg: for @fn
 *
 * Cost: the queue pairs on the path, not all there are.
 *
 * Context: process.
 * Return: 0, what @fn returned, or -ENOMEM.
 */
int repath_qp_walk_on_path(struct repath_device *dev, u32 port, u32 dlid,
			   const union ib_gid *dgid, repath_qp_fn fn, void *arg)
{
	const struct selection sel = {
		.dev = dev, .port = port, .dlid = dlid, .dgid = dgid,
		.walk = walk_path, .put = drop_qp,
	};

	return tell_qps(&sel, fn, arg);
}

struct look {
	repath_look_fn fn;
	void *arg;
};

static void look_at(struct repath_qp *rqp, void *arg)
{
	const struct look *look = arg;

	look->fn(&rqp->path, &rqp->alt, look->arg);
}

/**
 * repath_qp_look_on_path - look at queue pairs as repath_qp_walk_on_path() finds them, and take hold of none
 * @dev: device
 * @port: own port
 * @dlid: by DLID, of the path in use or the alternate one; 0: by @dgid
 * @dgid: see @dlid
 * @fn: told the path of each that is in use, or that it was RESET on, and the alternate one; under a spinlock, with
 *	interrupts off
 * @arg: for @fn
 *
 * Context: any.
 */
void repath_qp_look_on_path(struct repath_device *dev, u32 port, u32 dlid, const union ib_gid *dgid,
			    repath_look_fn fn, void *arg)
{
	struct look look = { fn, arg };
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	repath_qp_on_path_locked(dev, port, dlid, dgid, look_at, &look);
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/**
 * repath_user_for_each - walk the processes that use a device
 * @dev: device; NULL, with @tgid: all
 * @tgid: this process only; NULL, with @dev: all
 * @fn: see track.h
 * @arg: for @fn
 *
 * Context: process.
 * Return: 0, what @fn returned, or -ENOMEM.
 */
int repath_user_for_each(struct repath_device *dev, struct pid *tgid,
			 int (*fn)(struct repath_user *user, void *arg), void *arg)
{
	const struct selection sel = {
		.dev = dev, .tgid = tgid, .walk = walk_users, .put = drop_user,
	};
	struct collection set;
	int ret;
	u32 i;

	ret = collect(&sel, &set);
	if (ret)
		return ret;
	for (i = 0; !ret && i < set.n; i++)
		ret = fn(set.obj[i], arg);
	collection_free(&sel, &set);
	return ret;
}
