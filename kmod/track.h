/* SPDX-License-Identifier: GPL-2.0 */
/* Queue pairs, user contexts, and the processes that own them. */
#ifndef REPATH_TRACK_H
#define REPATH_TRACK_H

#include <linux/kref.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "note.h"
#include "path.h"

struct repath_device;

/*
 * Protects all indexes, lists and counts of tracked objects, and the list of devices. Taken in
 * probe handlers, so with interrupts off; nobody sleeps or calls out under it. Order: this one,
 * then repath_qp::lock.
 */
extern spinlock_t repath_track_lock;

/**
 * struct repath_user - a process, or a part of the kernel, on a device
 * @kref: each queue pair and context of the process on the device holds one
 * @hash: by @pid; repath_track_lock
 * @node: in repath_device::users, a process's; repath_track_lock
 * @qps: its queue pairs on the device; repath_track_lock
 * @dev: holds a reference
 * @pid: the thread group; holds a reference. NULL: the kernel
 * @comm: name of the thread group's leader when it opened the device; the kernel's: of the module
 * @qp_count: entries of @qps; repath_track_lock
 * @ud_count: of these, of UD; repath_track_lock
 * @ctx_count: open contexts; repath_track_lock
 * @note: pending news
 */
struct repath_user {
	struct kref kref;
	struct hlist_node hash;
	struct list_head node;
	struct list_head qps;
	struct repath_device *dev;
	struct pid *pid;
	char comm[TASK_COMM_LEN];
	u32 qp_count;
	u32 ud_count;
	u32 ctx_count;
	struct repath_note note;
};

/**
 * struct repath_ctx - an open user context of a device
 * @kref: the indexes hold one
 * @rcu: readers of repath_device::ctxs
 * @hash: by @ucontext; repath_track_lock
 * @ucontext: a key only, never dereferenced
 * @dev: holds a reference
 * @user: whose it is; holds a reference
 * @pid: = @user->pid
 * @comm: = @user->comm
 * @id: in repath_device::ctxs
 * @rescan: newest round of adoption that has seen it, or in which it came
 */
struct repath_ctx {
	struct kref kref;
	struct rcu_head rcu;
	struct hlist_node hash;
	const struct ib_ucontext *ucontext;
	struct repath_device *dev;
	struct repath_user *user;
	struct pid *pid;
	const char *comm;
	u32 id;
	u32 rescan;
};

/**
 * struct repath_qp - a queue pair; at most REPATH_QP_SIZE bytes, since there may be many: so a page holds 18
 * @kref: the index holds one
 * @qpn: number
 * @note: pending news
 * @lid_node: by device, port and DLID; unhashed without one. repath_track_lock
 * @gid_node: by device, port and DGID; unhashed without one. repath_track_lock
 * @alt_node: by device, port and DLID of @alt; unhashed without one. repath_track_lock
 * @user_node: in repath_user::qps; repath_track_lock
 * @qp: a key only, never dereferenced: use repath_qp_use()
 * @dev: = @user->dev
 * @user: the owner's entry; holds a reference
 * @key: in repath_device::by_qpn, see repath_qp_key()
 * @created_ns: CLOCK_BOOTTIME; 0: adopted, so nobody knows
 * @rescan: as in struct repath_ctx, modulo 2^16
 * @changes: modifications seen so far, modulo 2^16
 * @lock: protects @changes and what follows. Taken in probe handlers: with interrupts off
 * @conn_id: 0: none; written by conn.c only
 * @asked: when the device was asked for @state last: jiffies with bit 0 set; 0: never
 * @type: enum ib_qp_type
 * @state: enum ib_qp_state, as last set by modify_qp or asked for; hardware that goes to ERR does
 *	not say so
 * @kernel: not a process's
 * @gone: destroyed, or its device removed; set once, repath_track_lock
 * @path: where it sends to
 * @alt: where it would send to after path migration
 */
struct repath_qp {
	struct kref kref;
	u32 qpn;
	struct repath_note note;
	struct hlist_node lid_node;
	struct hlist_node gid_node;
	struct hlist_node alt_node;
	struct list_head user_node;
	const struct ib_qp *qp;
	struct repath_device *dev;
	struct repath_user *user;
	u64 created_ns;
	u32 key;
	u16 rescan;

	u16 changes;
	spinlock_t lock;
	u32 conn_id;
	u32 asked;
	u8 type;
	u8 state;
	bool kernel;
	bool gone;
	struct repath_path path;
	struct repath_alt_path alt;
};

#define REPATH_QP_SIZE 224

/* Locks that watch themselves are larger. */
#if !defined(CONFIG_DEBUG_SPINLOCK) && !defined(CONFIG_DEBUG_LOCK_ALLOC)
static_assert(sizeof(struct repath_qp) <= REPATH_QP_SIZE);
#endif

/* The newest round of adoption; what a hook adds is as new as that. */
extern atomic_t repath_track_round;

/* Seen in a round of adoption, perhaps after one that began later. */
static inline void repath_track_seen(u32 *rescan, u32 round)
{
	if ((s32)(round - *rescan) > 0)
		*rescan = round;
}

/* A queue pair knows the low bits only: who is taken for stale by mistake is asked for before it goes. */
static inline bool repath_qp_is_older(const struct repath_qp *rqp, u32 round)
{
	return (s16)(rqp->rescan - round) < 0;
}

void repath_qp_release(struct kref *kref);
void repath_ctx_release(struct kref *kref);
void repath_user_release(struct kref *kref);

static inline void repath_qp_put(struct repath_qp *rqp)
{
	kref_put(&rqp->kref, repath_qp_release);
}

static inline void repath_ctx_put(struct repath_ctx *ctx)
{
	kref_put(&ctx->kref, repath_ctx_release);
}

static inline void repath_user_put(struct repath_user *user)
{
	kref_put(&user->kref, repath_user_release);
}

/* SMI and GSI queue pairs of all ports have the numbers 0 and 1: told apart as restrack does. */
static inline u32 repath_qp_key(const struct ib_qp *qp)
{
	if (qp->qp_type == IB_QPT_SMI || qp->qp_type == IB_QPT_GSI)
		return qp->qp_num | qp->port << 24;
	return qp->qp_num;
}

static inline bool repath_qp_is_connected_type(const struct repath_qp *rqp)
{
	return rqp->type == IB_QPT_RC || rqp->type == IB_QPT_UC;
}

/* The process; NULL: the kernel, or one that had died when it was adopted. As long as @rqp is held. */
static inline struct pid *repath_qp_pid(const struct repath_qp *rqp)
{
	return rqp->user->pid;
}

/* Finding. What is returned has a reference; any context but the track lock held. */
struct repath_qp *repath_qp_find(struct repath_device *dev, u32 qpn);
void repath_qp_snapshot(struct repath_qp *rqp, u8 *state, struct repath_path *path);
void repath_qp_snapshot_alt(struct repath_qp *rqp, struct repath_alt_path *alt);
bool repath_qp_is_there(struct repath_device *dev, u32 qpn);
struct ib_qp *repath_qp_use(struct repath_qp *rqp);
void repath_qp_unuse(struct ib_qp *qp);

/* Asking the device: track_query.c. */
bool repath_qp_may_migrate(struct repath_qp *rqp);
bool repath_qp_query(struct repath_qp *rqp, struct ib_qp *qp, bool anew);
bool repath_qp_ask(struct repath_qp *rqp);
bool repath_qp_was_asked(const struct repath_qp *rqp);

/*
 * Walking: @fn is called with a referenced object, may sleep, and ends the walk by returning
 * non-zero, which is then what the walk returns. Objects that come or go meanwhile may be seen or not.
 */
typedef int (*repath_qp_fn)(struct repath_qp *rqp, void *arg);
int repath_qp_for_each(struct repath_device *dev, repath_qp_fn fn, void *arg);
int repath_qp_walk_of(struct pid *tgid, repath_qp_fn fn, void *arg);
int repath_qp_walk_on_path(struct repath_device *dev, u32 port, u32 dlid,
			   const union ib_gid *dgid, repath_qp_fn fn, void *arg);
typedef void (*repath_look_fn)(const struct repath_path *path, const struct repath_alt_path *alt,
			       void *arg);
void repath_qp_look_on_path(struct repath_device *dev, u32 port, u32 dlid, const union ib_gid *dgid,
			    repath_look_fn fn, void *arg);
int repath_ctx_for_each(struct repath_device *dev,
			int (*fn)(struct repath_ctx *ctx, void *arg), void *arg);
int repath_user_for_each(struct repath_device *dev, struct pid *tgid,
			 int (*fn)(struct repath_user *user, void *arg), void *arg);
u32 repath_device_ctx_count(struct repath_device *dev);

/* Who wants news of queue pairs: track.c. */
void repath_qp_follow(void);
void repath_qp_unfollow(void);

int repath_track_init(void);
void repath_track_exit(void);

/* What the hooks and adoption report. Never sleep; @task: NULL for the kernel's objects. */
struct repath_qp *repath_track_qp_add(struct ib_qp *qp, struct task_struct *task,
				      const char *kern_name, gfp_t gfp, u32 rescan);
void repath_track_qp_modified(const struct ib_qp *qp, const struct ib_qp_attr *attr, int mask);
bool repath_track_qp_queried(struct repath_qp *rqp, u32 changes, const struct ib_qp_attr *attr,
			     int also, bool anew);
void repath_track_qp_gone(const struct ib_qp *qp);
bool repath_track_ctx_add(struct ib_ucontext *ucontext, struct task_struct *task, gfp_t gfp,
			  u32 rescan);
void repath_track_ctx_gone(const struct ib_ucontext *ucontext);
void repath_track_device_gone(struct repath_device *dev);
void repath_qp_on_path_locked(struct repath_device *dev, u32 port, u32 dlid,
			      const union ib_gid *dgid,
			      void (*fn)(struct repath_qp *rqp, void *arg), void *arg);
void repath_track_sweep_qp(struct repath_qp *rqp);
void repath_track_sweep_ctx(struct repath_ctx *ctx);

/* track.c, for track_path.c. */
int repath_track_qp_cache_init(void);
void repath_track_qp_cache_exit(void);

/* track_path.c, for track.c. The track lock is held. */
void repath_path_link_locked(struct repath_qp *rqp);
void repath_path_unlink_locked(struct repath_qp *rqp);

/* track_user.c, for track.c. The track lock is held. */
struct repath_user *repath_user_alloc(struct task_struct *task, const char *kern_name, gfp_t gfp);
bool repath_user_is(const struct repath_user *user, struct task_struct *task);
struct repath_user *repath_user_join_locked(struct repath_device *dev, struct task_struct *task,
					    const char *kern_name, struct repath_user **spare);
void repath_user_leave_locked(struct repath_user *user);
void repath_ctx_device_gone_locked(struct repath_device *dev);
struct repath_user *repath_user_of_locked(struct pid *tgid, struct repath_user *after);

#endif /* REPATH_TRACK_H */
