// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: the indexes, and what happens to them. */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "conn.h"
#include "device.h"
#include "event.h"
#include "track.h"

#define QP_HASH_BITS 12

DEFINE_SPINLOCK(repath_track_lock);
struct repath_track_stats repath_track_stats;
atomic_t repath_track_round = ATOMIC_INIT(0);

/* All three: writers hold repath_track_lock. by_pointer is only read under it, too. */
static DEFINE_HASHTABLE(by_pointer, QP_HASH_BITS);
static DEFINE_HASHTABLE(by_lid, QP_HASH_BITS);
static DEFINE_HASHTABLE(by_gid, QP_HASH_BITS);

static void qp_deliver(struct repath_note *note, unsigned int what)
{
	struct repath_qp *rqp = container_of(note, struct repath_qp, note);

	if (what & REPATH_NOTE_NEW)
		repath_event_qp(rqp, REPATH_EV_NEW);
	if (what & REPATH_NOTE_CONNECTED)
		repath_conn_qp_connected(rqp);
	if (what & REPATH_NOTE_CHANGED)
		repath_event_qp(rqp, REPATH_EV_CHANGE);
	if (what & REPATH_NOTE_GONE) {
		repath_conn_qp_gone(rqp);
		repath_event_qp(rqp, REPATH_EV_DEL);
	}
	repath_qp_put(rqp);
}

static void qp_note(struct repath_qp *rqp, unsigned int what)
{
	kref_get(&rqp->kref);
	if (!repath_note_post(&rqp->note, what))
		repath_qp_put(rqp);
}

/* repath_qp_put(): any context. */
void repath_qp_release(struct kref *kref)
{
	struct repath_qp *rqp = container_of(kref, struct repath_qp, kref);

	if (rqp->user)
		repath_user_put(rqp->user);
	if (rqp->dev)
		repath_device_put(rqp->dev);
	kfree_rcu(rqp, rcu);
}

static struct repath_qp *qp_by_pointer_locked(const struct ib_qp *qp)
{
	struct repath_qp *rqp;

	lockdep_assert_held(&repath_track_lock);
	hash_for_each_possible(by_pointer, rqp, hash, (unsigned long)qp)
		if (rqp->qp == qp)
			return rqp;
	return NULL;
}

static u32 lid_hash(const struct repath_device *dev, u32 port, u32 dlid)
{
	return jhash_3words(dev->index, port, dlid, 0);
}

static u32 gid_hash(const struct repath_device *dev, u32 port, const union ib_gid *dgid)
{
	return jhash2((const u32 *)dgid->raw, sizeof(*dgid) / sizeof(u32), dev->index ^ port << 24);
}

static void path_unlink_locked(struct repath_qp *rqp)
{
	lockdep_assert_held(&repath_track_lock);
	hash_del(&rqp->lid_node);
	hash_del(&rqp->gid_node);
}

static void path_link_locked(struct repath_qp *rqp)
{
	const struct repath_path *path = &rqp->path;

	lockdep_assert_held(&repath_track_lock);
	if (rqp->gone || !path->has_av)
		return;
	if (path->dlid)
		hash_add(by_lid, &rqp->lid_node, lid_hash(rqp->dev, path->port, path->dlid));
	if (path->has_grh)
		hash_add(by_gid, &rqp->gid_node, gid_hash(rqp->dev, path->port, &path->dgid));
}

/* The caller's reference is another one than the index's, which is dropped here. */
static void qp_drop_locked(struct repath_qp *rqp)
{
	lockdep_assert_held(&repath_track_lock);
	if (rqp->gone)
		return;
	rqp->gone = true;
	hash_del(&rqp->hash);
	path_unlink_locked(rqp);
	list_del(&rqp->dev_node);
	rqp->dev->qp_count--;
	/* The QPN may belong to a newer queue pair already. */
	xa_cmpxchg(&rqp->dev->by_qpn, rqp->key, rqp, NULL, GFP_NOWAIT | __GFP_NOWARN);
	if (rqp->user) {
		list_del(&rqp->user_node);
		rqp->user->qp_count--;
		repath_user_leave_locked(rqp->user);
	}
	qp_note(rqp, REPATH_NOTE_GONE);
	repath_qp_put(rqp);
}

/* false: no memory for the index, nothing has changed. */
static bool qp_index_locked(struct repath_qp *rqp, bool adopted)
{
	struct xarray *xa = &rqp->dev->by_qpn;
	void *old;

	/*
	 * A QPN can be used again before the old queue pair's deletion commits: the newest has it.
	 * One that is adopted is never newer than one that a hook has brought.
	 */
	if (adopted)
		old = xa_cmpxchg(xa, rqp->key, NULL, rqp, GFP_NOWAIT | __GFP_NOWARN);
	else
		old = xa_store(xa, rqp->key, rqp, GFP_NOWAIT | __GFP_NOWARN);
	return !xa_is_err(old);
}

static struct repath_qp *qp_alloc(struct ib_qp *qp, struct repath_user *spare,
				  const char *kern_name, gfp_t gfp)
{
	struct repath_qp *rqp;

	rqp = kzalloc(sizeof(*rqp), gfp);
	if (!rqp)
		return NULL;
	kref_init(&rqp->kref);
	spin_lock_init(&rqp->lock);
	repath_note_setup(&rqp->note, qp_deliver);
	rqp->qp = qp;
	rqp->qpn = qp->qp_num;
	rqp->key = repath_qp_key(qp);
	rqp->type = qp->qp_type;
	rqp->state = IB_QPS_RESET;
	rqp->kernel = !spare;
	strscpy(rqp->comm, spare ? spare->comm : kern_name ?: "kernel", sizeof(rqp->comm));
	return rqp;
}

/* Is @rqp, whose key is @qp, still about the same one? Its memory may have been used again. */
static bool qp_is(const struct repath_qp *rqp, const struct ib_qp *qp,
		  const struct repath_user *owner)
{
	return rqp->qpn == qp->qp_num && rqp->type == qp->qp_type &&
	       rqp->pid == (owner ? owner->pid : NULL);
}

/**
 * repath_track_qp_add - a queue pair exists
 * @qp: the queue pair, which can not go away meanwhile
 * @task: who made it, NULL for the kernel
 * @kern_name: which part of the kernel made it; copied
 * @gfp: how to allocate
 * @rescan: round of adoption; 0 from the hook, that is, the queue pair is new
 *
 * What can not be allocated is counted, and the device is rescanned later.
 *
 * Context: any that @gfp allows.
 * Return: its object with a reference; NULL without memory or when the device is not tracked.
 */
struct repath_qp *repath_track_qp_add(struct ib_qp *qp, struct task_struct *task,
				      const char *kern_name, gfp_t gfp, u32 rescan)
{
	struct repath_user *spare = NULL;
	struct repath_qp *rqp, *old;
	struct repath_device *dev;
	unsigned long flags;

	if (task)
		spare = repath_user_alloc(task, gfp);
	rqp = task && !spare ? NULL : qp_alloc(qp, spare, kern_name, gfp);

	spin_lock_irqsave(&repath_track_lock, flags);
	dev = repath_device_of_locked(qp->device);
	if (!dev)
		goto err_unlock;
	if (!rqp)
		goto err_memory;

	old = qp_by_pointer_locked(qp);
	if (old && rescan && qp_is(old, qp, spare)) {
		old->rescan = rescan;
		/* Its number may have been held by one that was swept since. */
		qp_index_locked(old, true);
		kref_get(&old->kref);
		spin_unlock_irqrestore(&repath_track_lock, flags);
		repath_qp_put(rqp);
		if (spare)
			repath_user_put(spare);
		return old;
	}
	/* The memory of a queue pair was used again: the probe at its end was missed. */
	if (old)
		qp_drop_locked(old);

	rqp->dev = repath_device_get(dev);
	rqp->rescan = rescan ?: atomic_read(&repath_track_round);
	if (!qp_index_locked(rqp, rescan))
		goto err_memory;

	if (spare) {
		rqp->user = repath_user_join_locked(dev, spare);
		rqp->pid = rqp->user->pid;
		rqp->user->qp_count++;
		list_add_tail(&rqp->user_node, &rqp->user->qps);
		spare = NULL;
	}
	hash_add(by_pointer, &rqp->hash, (unsigned long)qp);
	list_add_tail(&rqp->dev_node, &dev->qps);
	dev->qp_count++;
	kref_get(&rqp->kref);
	qp_note(rqp, REPATH_NOTE_NEW);
	spin_unlock_irqrestore(&repath_track_lock, flags);
	return rqp;

err_memory:
	atomic_inc(&repath_track_stats.no_memory);
	repath_device_rescan(dev);
err_unlock:
	spin_unlock_irqrestore(&repath_track_lock, flags);
	if (rqp)
		repath_qp_put(rqp);
	if (spare)
		repath_user_put(spare);
	return NULL;
}

static void qp_set_path_locked(struct repath_qp *rqp, u8 state, const struct repath_path *path)
{
	lockdep_assert_held(&repath_track_lock);
	path_unlink_locked(rqp);
	spin_lock(&rqp->lock);
	rqp->state = state;
	rqp->path = *path;
	rqp->changes++;
	spin_unlock(&rqp->lock);
	path_link_locked(rqp);
}

static unsigned int qp_connected(const struct repath_qp *rqp)
{
	return rqp->user && repath_qp_is_connected_type(rqp) ? REPATH_NOTE_CONNECTED : 0;
}

/**
 * repath_track_qp_modified - a modification has succeeded
 * @qp: the queue pair; only compared
 * @attr: the attributes
 * @mask: enum ib_qp_attr_mask
 *
 * Context: any.
 */
void repath_track_qp_modified(const struct ib_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	unsigned int what = REPATH_NOTE_CHANGED;
	struct repath_path path;
	struct repath_qp *rqp;
	unsigned long flags;
	u8 state;

	spin_lock_irqsave(&repath_track_lock, flags);
	rqp = qp_by_pointer_locked(qp);
	if (rqp) {
		path = rqp->path;
		state = rqp->state;
		repath_path_modify(&path, attr, mask);
		if (mask & IB_QP_STATE)
			state = attr->qp_state;
		if (mask & IB_QP_STATE && state == IB_QPS_RTR)
			what |= qp_connected(rqp);
		qp_set_path_locked(rqp, state, &path);
		qp_note(rqp, what);
	}
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/* Which attributes of a queried queue pair mean anything. */
static int queried_mask(const struct repath_qp *rqp, const struct ib_qp_attr *attr)
{
	int mask = IB_QP_STATE;

	if (attr->qp_state == IB_QPS_RESET)
		return mask;
	mask |= IB_QP_PORT | IB_QP_PKEY_INDEX;
	if (attr->qp_state == IB_QPS_INIT || !repath_qp_is_connected_type(rqp))
		return mask;
	/* ERR can be reached from INIT, without a path. */
	if (attr->qp_state == IB_QPS_ERR && !attr->dest_qp_num)
		return mask;
	return mask | IB_QP_AV | IB_QP_DEST_QPN | IB_QP_PATH_MTU;
}

/**
 * repath_track_qp_queried - the device was asked for the state of a queue pair
 * @rqp: the queue pair
 * @changes: repath_qp::changes before it was asked
 * @attr: the answer
 *
 * Return: false if the queue pair was modified meanwhile: the answer is worth nothing, ask again.
 */
bool repath_track_qp_queried(struct repath_qp *rqp, u32 changes, const struct ib_qp_attr *attr)
{
	unsigned int what = REPATH_NOTE_CHANGED;
	struct repath_path path;
	unsigned long flags;
	bool valid;

	memset(&path, 0, sizeof(path)); /* padding too: it is compared */
	repath_path_modify(&path, attr, queried_mask(rqp, attr));

	spin_lock_irqsave(&repath_track_lock, flags);
	valid = rqp->changes == changes;
	if (valid && !rqp->gone &&
	    (rqp->state != attr->qp_state || memcmp(&rqp->path, &path, sizeof(path)))) {
		if (path.has_av && attr->qp_state != IB_QPS_ERR)
			what |= qp_connected(rqp);
		qp_set_path_locked(rqp, attr->qp_state, &path);
		qp_note(rqp, what);
	}
	spin_unlock_irqrestore(&repath_track_lock, flags);
	return valid;
}

/**
 * repath_track_qp_gone - a queue pair does not exist any more
 * @qp: the queue pair; only compared
 *
 * Context: any.
 */
void repath_track_qp_gone(const struct ib_qp *qp)
{
	struct repath_qp *rqp;
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	rqp = qp_by_pointer_locked(qp);
	if (rqp)
		qp_drop_locked(rqp);
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/**
 * repath_track_sweep_qp - adoption has found that a queue pair's end was missed
 * @rqp: the queue pair
 */
void repath_track_sweep_qp(struct repath_qp *rqp)
{
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	qp_drop_locked(rqp);
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/**
 * repath_track_device_gone - stop tracking a device
 * @dev: the device; drops the reference of the list
 *
 * Nothing of the device is found by anybody when this returns, and the hooks add nothing more.
 */
void repath_track_device_gone(struct repath_device *dev)
{
	struct repath_qp *rqp, *next;
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	dev->removed = true;
	list_del_rcu(&dev->node);
	list_for_each_entry_safe(rqp, next, &dev->qps, dev_node)
		qp_drop_locked(rqp);
	repath_ctx_device_gone_locked(dev);
	spin_unlock_irqrestore(&repath_track_lock, flags);

	repath_device_get(dev);
	if (!repath_note_post(&dev->note, REPATH_NOTE_GONE))
		repath_device_put(dev);
	repath_device_put(dev);
}

/**
 * repath_qp_on_path_locked - walk the queue pairs of one path
 * @dev: device
 * @port: own port
 * @dlid: by DLID, or 0: by @dgid
 * @dgid: see @dlid
 * @fn: told each of them; neither sleeps nor takes the track lock
 * @arg: for @fn
 *
 * Cost: the queue pairs on the path, not all there are.
 */
void repath_qp_on_path_locked(struct repath_device *dev, u32 port, u32 dlid,
			      const union ib_gid *dgid,
			      void (*fn)(struct repath_qp *rqp, void *arg), void *arg)
{
	struct repath_qp *rqp;

	lockdep_assert_held(&repath_track_lock);
	if (dlid) {
		hash_for_each_possible(by_lid, rqp, lid_node, lid_hash(dev, port, dlid))
			if (rqp->dev == dev && rqp->path.port == port && rqp->path.dlid == dlid)
				fn(rqp, arg);
		return;
	}
	hash_for_each_possible(by_gid, rqp, gid_node, gid_hash(dev, port, dgid))
		if (rqp->dev == dev && rqp->path.port == port &&
		    !memcmp(&rqp->path.dgid, dgid, sizeof(*dgid)))
			fn(rqp, arg);
}
