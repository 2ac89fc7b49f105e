// SPDX-License-Identifier: GPL-2.0
/* Processes that use a device, and their contexts. */
#include <linux/hashtable.h>
#include <linux/slab.h>

#include "device.h"
#include "event.h"
#include "track.h"

/* Both: repath_track_lock. */
static DEFINE_HASHTABLE(by_pid, 10);
static DEFINE_HASHTABLE(by_ucontext, 10);

static void user_deliver(struct repath_note *note, unsigned int what)
{
	struct repath_user *user = container_of(note, struct repath_user, note);

	if (what & REPATH_NOTE_NEW)
		repath_event_user(user, REPATH_EV_NEW);
	if (what & REPATH_NOTE_GONE)
		repath_event_user(user, REPATH_EV_DEL);
	repath_user_put(user);
}

static void user_note(struct repath_user *user, unsigned int what)
{
	kref_get(&user->kref);
	if (!repath_note_post(&user->note, what))
		repath_user_put(user);
}

/* repath_user_put(): any context. */
void repath_user_release(struct kref *kref)
{
	struct repath_user *user = container_of(kref, struct repath_user, kref);

	put_pid(user->pid);
	if (user->dev)
		repath_device_put(user->dev);
	kfree(user);
}

/**
 * repath_user_alloc - an entry for the process of a task, not yet on any device
 * @task: one of its threads, which can not be freed meanwhile; NULL: the kernel
 * @kern_name: without @task: which part of the kernel
 * @gfp: how to allocate
 *
 * Return: the entry with one reference, or NULL without memory.
 */
struct repath_user *repath_user_alloc(struct task_struct *task, const char *kern_name, gfp_t gfp)
{
	struct task_struct *leader;
	struct repath_user *user;

	user = kzalloc(sizeof(*user), gfp);
	if (!user)
		return NULL;
	kref_init(&user->kref);
	INIT_LIST_HEAD(&user->qps);
	repath_note_setup(&user->note, REPATH_NOTE_OF_USER, user_deliver);
	if (!task) {
		strscpy(user->comm, kern_name ?: "kernel", sizeof(user->comm));
		return user;
	}
	user->pid = get_task_pid(task, PIDTYPE_TGID);

	/* A dead process has no leader to be found; what it owns may live on in its children. */
	rcu_read_lock();
	leader = pid_task(user->pid, PIDTYPE_TGID) ?: task;
	/* Without task_lock(), which a probe handler must not take: a name that changes may come torn. */
	strscpy(user->comm, leader->comm, sizeof(user->comm));
	rcu_read_unlock();
	return user;
}

static struct pid *tgid_of(struct task_struct *task)
{
	/* Only compared, with what somebody holds. NULL: the process has died. */
	return task ? READ_ONCE(task->signal->pids[PIDTYPE_TGID]) : NULL;
}

/**
 * repath_user_is - is it this one's entry?
 * @user: entry
 * @task: one of the process's threads, which can not be freed meanwhile; NULL: the kernel
 */
bool repath_user_is(const struct repath_user *user, struct task_struct *task)
{
	return user->pid == tgid_of(task);
}

static struct repath_user *user_find_locked(struct repath_device *dev, struct task_struct *task,
					    const char *kern_name)
{
	const char *comm = task ? task->comm : kern_name ?: "kernel";
	struct pid *pid = tgid_of(task);
	struct repath_user *user;

	lockdep_assert_held(&repath_track_lock);
	hash_for_each_possible(by_pid, user, hash, (unsigned long)pid)
		if (user->pid == pid && user->dev == dev &&
		    (pid || !strncmp(user->comm, comm, sizeof(user->comm) - 1)))
			return user;
	return NULL;
}

/**
 * repath_user_join_locked - a process gets a queue pair or a context
 * @dev: on this device
 * @task: one of its threads, which can not be freed meanwhile; NULL: the kernel
 * @kern_name: without @task: which part of the kernel
 * @spare: an entry for it, which is taken if there is none; *@spare NULL: one is made then
 *
 * Return: the process's entry on the device, with a reference for the queue pair or context. The
 * caller adds to its counts. NULL without memory.
 */
struct repath_user *repath_user_join_locked(struct repath_device *dev, struct task_struct *task,
					    const char *kern_name, struct repath_user **spare)
{
	struct repath_user *user = user_find_locked(dev, task, kern_name);

	if (user) {
		kref_get(&user->kref);
		return user;
	}
	user = *spare ?: repath_user_alloc(task, kern_name, GFP_NOWAIT | __GFP_NOWARN);
	*spare = NULL;
	if (!user)
		return NULL;
	user->dev = repath_device_get(dev);
	hash_add(by_pid, &user->hash, (unsigned long)user->pid);
	/* The parts of the kernel are no processes. */
	if (!user->pid)
		return user;
	list_add_tail(&user->node, &dev->users);
	dev->user_count++;
	user_note(user, REPATH_NOTE_NEW);
	return user;
}

/**
 * repath_user_leave_locked - a process has lost a queue pair or a context
 * @user: its entry, the counts are lowered already; the reference stays with the caller
 */
void repath_user_leave_locked(struct repath_user *user)
{
	lockdep_assert_held(&repath_track_lock);
	if (user->qp_count || user->ctx_count)
		return;
	hash_del(&user->hash);
	if (!user->pid)
		return;
	list_del(&user->node);
	user->dev->user_count--;
	user_note(user, REPATH_NOTE_GONE);
}

/**
 * repath_user_of_locked - walk the entries of a process, one a device
 * @tgid: the process
 * @after: the entry before, NULL to begin
 *
 * Return: the next one or NULL; no reference.
 */
struct repath_user *repath_user_of_locked(struct pid *tgid, struct repath_user *after)
{
	struct repath_user *user;
	bool passed = !after;

	lockdep_assert_held(&repath_track_lock);
	hash_for_each_possible(by_pid, user, hash, (unsigned long)tgid) {
		if (passed && user->pid == tgid)
			return user;
		if (user == after)
			passed = true;
	}
	return NULL;
}

/* repath_ctx_put(): any context. */
void repath_ctx_release(struct kref *kref)
{
	struct repath_ctx *ctx = container_of(kref, struct repath_ctx, kref);

	if (ctx->user)
		repath_user_put(ctx->user);
	if (ctx->dev)
		repath_device_put(ctx->dev);
	kfree_rcu(ctx, rcu);
}

static struct repath_ctx *ctx_by_pointer_locked(const struct ib_ucontext *ucontext)
{
	struct repath_ctx *ctx;

	lockdep_assert_held(&repath_track_lock);
	hash_for_each_possible(by_ucontext, ctx, hash, (unsigned long)ucontext)
		if (ctx->ucontext == ucontext)
			return ctx;
	return NULL;
}

static void ctx_drop_locked(struct repath_ctx *ctx)
{
	struct repath_device *dev = ctx->dev;

	lockdep_assert_held(&repath_track_lock);
	hash_del(&ctx->hash);
	xa_erase(&dev->ctxs, ctx->id);
	dev->ctx_count--;
	repath_stat_inc(dev, REPATH_STAT_CTX_DEL);
	ctx->user->ctx_count--;
	repath_user_leave_locked(ctx->user);

	repath_device_get(dev);
	if (!repath_note_post(&dev->note, REPATH_NOTE_CTX_GONE))
		repath_device_put(dev);
	repath_ctx_put(ctx);
}

/**
 * repath_track_ctx_add - a process has opened a device
 * @ucontext: the context, which can not go away meanwhile
 * @task: who
 * @gfp: how to allocate
 * @rescan: round of adoption; 0 from the hook, that is, the context is new
 *
 * What can not be allocated is counted, and the device is rescanned later.
 *
 * Context: any that @gfp allows.
 * Return: true if it is tracked.
 */
bool repath_track_ctx_add(struct ib_ucontext *ucontext, struct task_struct *task, gfp_t gfp,
			  u32 rescan)
{
	struct repath_ctx *ctx = kzalloc(sizeof(*ctx), gfp);
	struct repath_user *spare = NULL;
	struct repath_device *dev;
	struct repath_ctx *old;
	unsigned long flags;
	bool tracked = false;

	if (ctx)
		kref_init(&ctx->kref);
	if (gfpflags_allow_blocking(gfp))
		spare = repath_user_alloc(task, NULL, gfp);

	spin_lock_irqsave(&repath_track_lock, flags);
	dev = repath_device_of_locked(ucontext->device);
	if (!dev)
		goto unlock;

	old = ctx_by_pointer_locked(ucontext);
	if (old && rescan && repath_user_is(old->user, task)) {
		repath_track_seen(&old->rescan, rescan);
		tracked = true;
		goto unlock;
	}
	/* The memory of a context was used again: the probe at its end was missed. */
	if (old)
		ctx_drop_locked(old);

	if (!ctx || xa_alloc(&dev->ctxs, &ctx->id, NULL, xa_limit_32b, GFP_NOWAIT | __GFP_NOWARN))
		goto memory;
	ctx->user = repath_user_join_locked(dev, task, NULL, &spare);
	if (!ctx->user) {
		xa_erase(&dev->ctxs, ctx->id);
		goto memory;
	}
	ctx->dev = repath_device_get(dev);
	ctx->ucontext = ucontext;
	ctx->rescan = rescan ?: atomic_read(&repath_track_round);
	ctx->user->ctx_count++;
	ctx->pid = ctx->user->pid;
	ctx->comm = ctx->user->comm;
	hash_add(by_ucontext, &ctx->hash, (unsigned long)ucontext);
	/* Readers find it from here on: it is complete. Its place is there already. */
	xa_store(&dev->ctxs, ctx->id, ctx, GFP_NOWAIT | __GFP_NOWARN);
	dev->ctx_count++;
	repath_stat_inc(dev, rescan ? REPATH_STAT_CTX_ADOPTED : REPATH_STAT_CTX_NEW);
	ctx = NULL;
	tracked = true;
	goto unlock;

memory:
	repath_stat_inc(dev, REPATH_STAT_PROBE_NO_MEMORY);
	repath_device_rescan(dev);
unlock:
	spin_unlock_irqrestore(&repath_track_lock, flags);
	if (ctx)
		repath_ctx_put(ctx);
	if (spare)
		repath_user_put(spare);
	return tracked;
}

/**
 * repath_track_ctx_gone - a process closes a device
 * @ucontext: the context; only compared
 *
 * Context: any.
 */
void repath_track_ctx_gone(const struct ib_ucontext *ucontext)
{
	struct repath_ctx *ctx;
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	ctx = ctx_by_pointer_locked(ucontext);
	if (ctx) {
		ctx->dev->ctx_closed++;
		ctx_drop_locked(ctx);
	}
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/**
 * repath_track_sweep_ctx - adoption has found that a context's end was missed
 * @ctx: the context
 */
void repath_track_sweep_ctx(struct repath_ctx *ctx)
{
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	if (xa_load(&ctx->dev->ctxs, ctx->id) == ctx)
		ctx_drop_locked(ctx);
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/**
 * repath_ctx_device_gone_locked - forget all contexts of a device
 * @dev: the device
 */
void repath_ctx_device_gone_locked(struct repath_device *dev)
{
	struct repath_ctx *ctx;
	unsigned long id;

	lockdep_assert_held(&repath_track_lock);
	xa_for_each(&dev->ctxs, id, ctx)
		ctx_drop_locked(ctx);
}
