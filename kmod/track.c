// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: the indexes, and what happens to them. */
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "conn.h"
#include "device.h"
#include "event.h"
#include "reroute_qp.h"
#include "trace.h"
#include "track.h"

#define DROP_AT_ONCE 256

DEFINE_SPINLOCK(repath_track_lock);
atomic_t repath_track_round = ATOMIC_INIT(0);
static atomic_t followers = ATOMIC_INIT(0);
/* Their own: kmalloc()'s sizes are too far apart. */
static struct kmem_cache *qp_cache;
/* The memory of one that has gone, or NULL: who makes and destroys them one by one finds it here. */
static struct repath_qp *spare_qp;

/**
 * repath_qp_follow - from now on news of queue pairs are delivered to connections and numbers
 *
 * Who needs them says so before he looks at the queue pairs that there are. Without anybody, and without
 * listeners to events, a queue pair comes and goes without waking a worker.
 *
 * Context: any.
 */
void repath_qp_follow(void)
{
	atomic_inc(&followers);
}

/**
 * repath_qp_unfollow - end of repath_qp_follow()
 *
 * Context: any.
 */
void repath_qp_unfollow(void)
{
	WARN_ON_ONCE(atomic_dec_return(&followers) < 0);
}

static void qp_deliver(struct repath_note *note, unsigned int what)
{
	struct repath_qp *rqp = container_of(note, struct repath_qp, note);

	if (what & REPATH_NOTE_NEW)
		repath_event_qp(rqp, REPATH_EV_NEW);
	if (what & REPATH_NOTE_CONNECTED)
		repath_conn_qp_connected(rqp);
	if (what & REPATH_NOTE_CHANGED) {
		repath_conn_qp_reset(rqp);
		repath_event_qp(rqp, REPATH_EV_CHANGE);
	}
	if (what & REPATH_NOTE_GONE) {
		repath_conn_qp_gone(rqp);
		repath_event_qp(rqp, REPATH_EV_DEL);
	}
	repath_qp_put(rqp);
}

/*
 * Does anybody want to know? Who begins to after this looks at all queue pairs then, and finds them as they
 * are now: a registering process under the track lock; a listener in a dump, after he has joined.
 */
static bool is_followed_locked(const struct repath_device *dev)
{
	lockdep_assert_held(&repath_track_lock);
	if (atomic_read(&followers))
		return true;
	/* What has happened is in the indexes before the listeners are looked at. */
	smp_mb();
	return repath_event_is_wanted(dev);
}

static void qp_note_locked(struct repath_qp *rqp, unsigned int what)
{
	if (!is_followed_locked(rqp->dev))
		return;
	kref_get(&rqp->kref);
	if (!repath_note_post(&rqp->note, what))
		repath_qp_put(rqp);
}

/* repath_qp_put(): any context. Who finds one takes a reference under the track lock: nobody looks at it now. */
void repath_qp_release(struct kref *kref)
{
	struct repath_qp *rqp = container_of(kref, struct repath_qp, kref);

	if (rqp->user)
		repath_user_put(rqp->user);
	/* KASAN shall see who uses it still. */
	if (IS_ENABLED(CONFIG_KASAN) || cmpxchg(&spare_qp, NULL, rqp))
		kmem_cache_free(qp_cache, rqp);
}

/* Who has a place of the table by QPN. Nobody else changes the table under the track lock. */
static struct repath_qp *qp_at_locked(struct xa_state *place)
{
	void *entry;

	lockdep_assert_held(&repath_track_lock);
	xas_lock(place);
	entry = xas_load(place);
	xas_unlock(place);
	return xa_is_zero(entry) ? NULL : entry;
}

/* Then @entry has it; false without memory, which only an empty place may need. */
static bool qp_put_at_locked(struct xa_state *place, void *entry)
{
	lockdep_assert_held(&repath_track_lock);
	xas_lock(place);
	xas_store(place, entry);
	xas_unlock(place);
	return !xas_error(place);
}

/* What is known of @qp, whose memory is there; and @place, its key's. */
static struct repath_qp *qp_of_locked(const struct ib_qp *qp, struct xa_state *place)
{
	struct repath_device *dev = repath_device_of_locked(qp->device);
	struct repath_qp *rqp;

	if (!dev)
		return NULL;
	place->xa = &dev->by_qpn;
	rqp = qp_at_locked(place);
	return rqp && rqp->qp == qp ? rqp : NULL;
}

static void trace_it(const struct repath_qp *rqp, enum repath_ev_action action)
{
	trace_qp(rqp->dev->index, rqp->qpn, rqp->type, rqp->state,
		 rqp->path.has_av ? rqp->path.dlid : 0, rqp->path.dest_qpn, action);
}

/*
 * Devices count their numbers up: the next queue pair's place is beside the one that is given up here. So that
 * the table does not free and make the same node again and again, one empty place of the device stays reserved.
 */
static void qp_leave_place_locked(struct repath_qp *rqp, struct xa_state *place)
{
	struct repath_device *dev = rqp->dev;
	u32 held = dev->place;
	void *leave = NULL;

	/* Another one has the number already. */
	if (qp_at_locked(place) != rqp)
		return;
	/* Number 0 needs no node, and making one could fail. */
	if (rqp->key && (!held || held == rqp->key ||
			 held >> XA_CHUNK_SHIFT != rqp->key >> XA_CHUNK_SHIFT))
		leave = XA_ZERO_ENTRY;
	qp_put_at_locked(place, leave);
	if (!leave)
		return;
	dev->place = rqp->key;
	if (held && held != rqp->key)
		xa_release(&dev->by_qpn, held);
}

/* The caller's reference is another one than the index's, which is dropped here. @place: of its key. */
static void qp_drop_locked(struct repath_qp *rqp, struct xa_state *place)
{
	lockdep_assert_held(&repath_track_lock);
	if (rqp->gone)
		return;
	rqp->gone = true;
	repath_move_gone_locked(rqp);
	repath_path_unlink_locked(rqp);
	rqp->dev->qp_count--;
	qp_leave_place_locked(rqp, place);
	list_del(&rqp->user_node);
	rqp->user->qp_count--;
	if (rqp->type == IB_QPT_UD && !rqp->kernel) {
		rqp->user->ud_count--;
		rqp->dev->ud_count--;
	}
	repath_user_leave_locked(rqp->user);
	repath_stat_inc(rqp->dev, REPATH_STAT_QP_DEL);
	trace_it(rqp, REPATH_EV_DEL);
	qp_note_locked(rqp, REPATH_NOTE_GONE);
	repath_qp_put(rqp);
}

static struct repath_qp *qp_alloc(struct ib_qp *qp, bool kernel, gfp_t gfp)
{
	struct repath_qp *rqp = READ_ONCE(spare_qp);

	if (rqp)
		rqp = xchg(&spare_qp, NULL);
	if (!rqp)
		rqp = kmem_cache_alloc(qp_cache, gfp);
	if (!rqp)
		return NULL;
	/* Padding too: paths are compared. */
	memset(rqp, 0, sizeof(*rqp));
	kref_init(&rqp->kref);
	spin_lock_init(&rqp->lock);
	repath_note_setup(&rqp->note, REPATH_NOTE_OF_QP, qp_deliver);
	rqp->qp = qp;
	rqp->qpn = qp->qp_num;
	rqp->key = repath_qp_key(qp);
	rqp->type = qp->qp_type;
	rqp->state = IB_QPS_RESET;
	rqp->kernel = kernel;
	return rqp;
}

/* Is @rqp still about the same one? Its memory and its number may have been used again. */
static bool qp_is(const struct repath_qp *rqp, const struct ib_qp *qp,
		  struct task_struct *owner)
{
	return rqp->qp == qp && rqp->type == qp->qp_type && rqp->kernel == !owner &&
	       repath_user_is(rqp->user, owner);
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
 * Return: its object with a reference; NULL without memory, when the device is not tracked, or when
 * adoption finds one of this number in use that it did not bring: one of the two has gone.
 */
struct repath_qp *repath_track_qp_add(struct ib_qp *qp, struct task_struct *task,
				      const char *kern_name, gfp_t gfp, u32 rescan)
{
	XA_STATE(place, NULL, repath_qp_key(qp));
	struct repath_user *spare = NULL;
	struct repath_qp *rqp = qp_alloc(qp, !task, gfp);
	struct repath_device *dev;
	struct repath_qp *old;
	unsigned long flags;

	/* Mostly the owner is known, and a hook need not allocate it again. */
	if (gfpflags_allow_blocking(gfp))
		spare = repath_user_alloc(task, kern_name, gfp);
	spin_lock_irqsave(&repath_track_lock, flags);
	dev = repath_device_of_locked(qp->device);
	if (!dev)
		goto err_unlock;
	if (!rqp)
		goto err_memory;

	place.xa = &dev->by_qpn;
	old = qp_at_locked(&place);
	if (old && rescan && qp_is(old, qp, task)) {
		if (repath_qp_is_older(old, rescan))
			old->rescan = rescan;
		kref_get(&old->kref);
		goto out_unlock;
	}
	/*
	 * Where a deletion commits after the device has given the number back, ib_core's table can
	 * still have the old one. If it is the other one that has gone, the sweep finds out.
	 */
	if (old && rescan && old->qp != qp) {
		old = NULL;
		goto out_unlock;
	}
	rqp->user = repath_user_join_locked(dev, task, kern_name, &spare);
	if (!rqp->user)
		goto err_memory;
	rqp->dev = dev;
	/* Before the old one leaves, which may have been the owner's last. */
	rqp->user->qp_count++;
	rqp->rescan = rescan ?: atomic_read(&repath_track_round);
	rqp->created_ns = rescan ? 0 : ktime_get_boottime_ns();
	if (!qp_put_at_locked(&place, rqp)) {
		rqp->user->qp_count--;
		repath_user_leave_locked(rqp->user);
		goto err_memory;
	}
	/*
	 * The number is used again: the device has given it back, so the old queue pair is as good as
	 * gone, although its deletion may commit only now; or the probe at its end was missed.
	 */
	if (old)
		qp_drop_locked(old, &place);

	list_add_tail(&rqp->user_node, &rqp->user->qps);
	if (rqp->type == IB_QPT_UD && !rqp->kernel) {
		rqp->user->ud_count++;
		dev->ud_count++;
	}
	dev->qp_count++;
	repath_stat_inc(dev, rescan ? REPATH_STAT_QP_ADOPTED : REPATH_STAT_QP_NEW);
	trace_it(rqp, REPATH_EV_NEW);
	kref_get(&rqp->kref);
	qp_note_locked(rqp, REPATH_NOTE_NEW);
	old = rqp;
	rqp = NULL;
	goto out_unlock;

err_memory:
	repath_stat_inc(dev, REPATH_STAT_PROBE_NO_MEMORY);
	repath_device_rescan(dev);
err_unlock:
	old = NULL;
out_unlock:
	spin_unlock_irqrestore(&repath_track_lock, flags);
	if (rqp)
		repath_qp_put(rqp);
	if (spare)
		repath_user_put(spare);
	return old;
}

static void qp_set_path_locked(struct repath_qp *rqp, u8 state, const struct repath_path *path,
			       const struct repath_alt_path *alt)
{
	lockdep_assert_held(&repath_track_lock);
	repath_path_unlink_locked(rqp);
	spin_lock(&rqp->lock);
	rqp->state = state;
	rqp->path = *path;
	rqp->alt = *alt;
	rqp->changes++;
	spin_unlock(&rqp->lock);
	repath_path_link_locked(rqp);
	trace_it(rqp, REPATH_EV_CHANGE);
}

static unsigned int qp_connected(const struct repath_qp *rqp)
{
	return !rqp->kernel && repath_qp_is_connected_type(rqp) ? REPATH_NOTE_CONNECTED : 0;
}

/* It can not have come so far without the modification that set its address: that was missed. */
static bool qp_lacks_av(const struct repath_qp *rqp)
{
	return repath_qp_is_connected_type(rqp) && !rqp->path.has_av &&
	       rqp->state >= IB_QPS_RTR && rqp->state <= IB_QPS_SQE;
}

/**
 * repath_track_qp_modified - a modification has succeeded
 * @qp: the queue pair, which can not go away meanwhile
 * @attr: the attributes
 * @mask: enum ib_qp_attr_mask
 *
 * One that was under way when the hooks came was seen by nobody: if the address is missing now, the
 * device is rescanned.
 *
 * Context: any.
 */
void repath_track_qp_modified(const struct ib_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	XA_STATE(place, NULL, repath_qp_key(qp));
	unsigned int what = REPATH_NOTE_CHANGED;
	struct repath_alt_path alt;
	struct repath_path path;
	struct repath_qp *rqp;
	unsigned long flags;
	u8 state;

	spin_lock_irqsave(&repath_track_lock, flags);
	rqp = qp_of_locked(qp, &place);
	if (rqp) {
		path = rqp->path;
		alt = rqp->alt;
		state = rqp->state;
		repath_path_modify(&path, &alt, attr, mask);
		if (mask & IB_QP_STATE)
			state = attr->qp_state;
		if (mask & IB_QP_STATE && state == IB_QPS_RTR)
			what |= qp_connected(rqp);
		qp_set_path_locked(rqp, state, &path, &alt);
		repath_move_seen_locked(rqp, attr, mask);
		repath_stat_inc(rqp->dev, REPATH_STAT_QP_MODIFY);
		if (qp_lacks_av(rqp))
			repath_device_rescan(rqp->dev);
		qp_note_locked(rqp, what);
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

/* Not every driver tells the MAC that it was given; it stays as long as the rest of the address. */
static void keep_dmac(struct repath_path *path, const struct repath_path *known)
{
	if (path->has_grh && known->has_grh && is_zero_ether_addr(path->dmac) &&
	    path->sgid_index == known->sgid_index &&
	    !memcmp(&path->dgid, &known->dgid, sizeof(path->dgid)))
		ether_addr_copy(path->dmac, known->dmac);
}

/**
 * repath_track_qp_queried - the device was asked for the state of a queue pair
 * @rqp: the queue pair
 * @changes: repath_qp::changes before it was asked
 * @attr: the answer
 * @also: which of IB_QP_PATH_MIG_STATE and IB_QP_ALT_PATH the device has filled in
 * @anew: modifications may have been missed: the whole answer counts. Else the hooks know the path
 *	better, since drivers fill in what they like, and what hardware changes by itself counts
 *
 * Return: false if the queue pair was modified meanwhile: the answer is worth nothing, ask again.
 */
bool repath_track_qp_queried(struct repath_qp *rqp, u32 changes, const struct ib_qp_attr *attr,
			     int also, bool anew)
{
	unsigned int what = REPATH_NOTE_CHANGED;
	struct repath_alt_path alt;
	struct repath_path path;
	unsigned long flags;
	bool valid;
	int mask;

	/* Padding too: they are compared. */
	memset(&path, 0, sizeof(path));
	memset(&alt, 0, sizeof(alt));
	mask = queried_mask(rqp, attr);
	if (mask & IB_QP_AV)
		mask |= also;
	repath_path_modify(&path, &alt, attr, mask);

	spin_lock_irqsave(&repath_track_lock, flags);
	valid = rqp->changes == changes;
	keep_dmac(&path, &rqp->path);
	if (!path.has_av)
		repath_path_leave(&path, &rqp->path);
	if (!anew && attr->qp_state >= IB_QPS_RTR && rqp->state >= IB_QPS_RTR &&
	    !(alt.has_mig && rqp->alt.dlid && attr->path_mig_state == IB_MIG_MIGRATED)) {
		path = rqp->path;
		if (alt.has_mig && rqp->alt.has_mig) {
			u8 mig = alt.mig;

			alt = rqp->alt;
			alt.mig = mig;
		} else {
			alt = rqp->alt;
		}
	}
	if (valid && !rqp->gone &&
	    (rqp->state != attr->qp_state || memcmp(&rqp->path, &path, sizeof(path)) ||
	     memcmp(&rqp->alt, &alt, sizeof(alt)))) {
		if (anew && path.has_av && attr->qp_state != IB_QPS_ERR)
			what |= qp_connected(rqp);
		/* What adoption has just taken up has no state yet that could be wrong. */
		if (rqp->created_ns || rqp->changes)
			repath_stat_inc(rqp->dev, REPATH_STAT_CORRECTED);
		qp_set_path_locked(rqp, attr->qp_state, &path, &alt);
		qp_note_locked(rqp, what);
	}
	spin_unlock_irqrestore(&repath_track_lock, flags);
	return valid;
}

/**
 * repath_track_qp_gone - a queue pair does not exist any more
 * @qp: the queue pair, whose memory is still there
 *
 * Context: any.
 */
void repath_track_qp_gone(const struct ib_qp *qp)
{
	XA_STATE(place, NULL, repath_qp_key(qp));
	struct repath_qp *rqp;
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	rqp = qp_of_locked(qp, &place);
	if (rqp)
		qp_drop_locked(rqp, &place);
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/**
 * repath_track_sweep_qp - adoption has found that a queue pair's end was missed
 * @rqp: the queue pair
 */
void repath_track_sweep_qp(struct repath_qp *rqp)
{
	XA_STATE(place, &rqp->dev->by_qpn, rqp->key);
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	qp_drop_locked(rqp, &place);
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/**
 * repath_track_device_gone - stop tracking a device
 * @dev: the device; drops the reference of the list
 *
 * Nothing of the device is found by anybody when this returns, and the hooks add nothing more. All that has
 * happened to it has been told: from now on it may belong to another network namespace, or to one that ends, of
 * which nobody keeps the memory.
 *
 * Context: process; no lock of this module is held.
 */
void repath_track_device_gone(struct repath_device *dev)
{
	struct repath_qp *rqp;
	unsigned long flags;
	unsigned long key;
	unsigned int n;

	spin_lock_irqsave(&repath_track_lock, flags);
	dev->removed = true;
	list_del_rcu(&dev->node);
	repath_ctx_device_gone_locked(dev);
	/* There may be many, and interrupts are off. */
	do {
		n = 0;
		xa_for_each(&dev->by_qpn, key, rqp) {
			XA_STATE(place, &dev->by_qpn, key);

			qp_drop_locked(rqp, &place);
			if (++n == DROP_AT_ONCE)
				break;
		}
		spin_unlock_irqrestore(&repath_track_lock, flags);
		cond_resched();
		spin_lock_irqsave(&repath_track_lock, flags);
	} while (n == DROP_AT_ONCE);
	spin_unlock_irqrestore(&repath_track_lock, flags);

	repath_device_get(dev);
	if (!repath_note_post(&dev->note, REPATH_NOTE_GONE))
		repath_device_put(dev);
	repath_note_flush();
	repath_device_put(dev);
}

int repath_track_qp_cache_init(void)
{
	qp_cache = KMEM_CACHE(repath_qp, 0);
	return qp_cache ? 0 : -ENOMEM;
}

/* No queue pair is left. */
void repath_track_qp_cache_exit(void)
{
	if (spare_qp)
		kmem_cache_free(qp_cache, spare_qp);
	spare_qp = NULL;
	kmem_cache_destroy(qp_cache);
}
