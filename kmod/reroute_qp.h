/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One queue pair on its way to another path, and what is remembered of it afterwards.
 *
 * The device's work item is the only one that moves queue pairs (reroute.c), so there is one hand
 * on each. What the owner does to it meanwhile is seen by the hooks and told here: whoever modifies
 * a queue pair is obeyed, and the move begins again or ends.
 */
#ifndef REPATH_REROUTE_QP_H
#define REPATH_REROUTE_QP_H

#include <linux/kref.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "device.h"
#include "reroute.h"
#include "track.h"

/* How a queue pair can be moved; in repath_reroute::can by device. */
enum repath_way {
	REPATH_WAY_APM,		/* alternate path, and the command to go over to it */
	REPATH_WAY_SQD,		/* send queue drained, new address */
	REPATH_WAY_CYCLE,	/* connected anew by the shims at both ends */
	REPATH_WAYS
};

/* What a device has shown. */
enum repath_can {
	REPATH_CAN_UNKNOWN,
	REPATH_CAN_YES,
	REPATH_CAN_NOT,
};

/* Where one is; the work item's. */
enum repath_move_step {
	REPATH_STEP_IDLE,	/* not under way */
	REPATH_STEP_START,
	REPATH_STEP_ARMING,	/* the alternate path is loaded; traffic both ways arms it */
	REPATH_STEP_DRAINING,
	REPATH_STEP_CYCLING,	/* the shims connect it anew */
	REPATH_STEP_VERIFY,	/* it is there, as the device says: to be read back */
	REPATH_STEP_LATER,	/* no way led there yet: all again */
};

/**
 * struct repath_move - a queue pair that was moved, or is on its way
 * @kref: the device's table holds one, its list of moves another one
 * @rcu: readers of the table
 * @node: in repath_reroute::moves; the work item's
 * @rqp: the queue pair: holds a reference while in the list, only compared otherwise
 * @to: where to; the work item's
 * @via: another LID that it may be at by now, 0: none; the work item's
 * @port: own port of the path that it shall leave; the work item's
 * @path_bits: low bits of the own LID on that path; the work item's
 * @step: enum repath_move_step; the work item's
 * @way: enum repath_way that is being tried; the work item's
 * @tried: ways that did not lead there, by bit; the work item's
 * @rounds: how often all ways were tried; the work item's
 * @go: the new path is valid, and not only announced; the work item's
 * @leaves: it was on another path than @to; the work item's
 * @hold: stop sending until the new path is told; the work item's
 * @wanted_ns: CLOCK_BOOTTIME, when @to was told last; the work item's
 * @addressed: @foreign_av at that time, and when shims have connected it; the work item's
 * @begun: the step: jiffies; the work item's
 * @polled: when the device was asked last in it: jiffies; the work item's
 * @until: when the step has taken too long: jiffies; the work item's
 * @arrived_ns: CLOCK_BOOTTIME, when it began to send by the new path; the work item's
 * @seen: @foreign at that time; the work item's
 * @lock: protects what follows. Taken in probe handlers: with interrupts off
 * @foreign: modifications by others
 * @foreign_av: those that have set the address
 * @in_sqd: the work item has taken it to SQD, and nobody else has set a state since
 * @owner_sqd: somebody else has taken it there since the work item began to, and it is not out again
 * @loaded: the alternate path is the work item's
 * @loaded_for_peer: and was loaded for nothing but the peer's sake
 * @owners: the alternate path that somebody else has loaded last; port 0: none since RESET
 * @answer: the shim's: 0, an errno, or -1: none yet
 * @state: enum repath_move_state, for readers
 * @by: enum repath_moved_by that led to the path it is on
 * @why: it was not moved, for a person; NULL: there is nothing to say
 * @count: how often it was moved
 * @since_ns: CLOCK_BOOTTIME, when it came onto its path; 0: never moved
 */
struct repath_move {
	struct kref kref;
	struct rcu_head rcu;
	struct list_head node;
	struct repath_qp *rqp;

	struct repath_new_path to;
	u32 via;
	u32 port;
	u8 path_bits;
	u8 step;
	u8 way;
	u8 tried;
	u8 rounds;
	bool go;
	bool leaves;
	bool hold;
	u64 wanted_ns;
	u32 addressed;
	unsigned long begun;
	unsigned long polled;
	unsigned long until;
	u64 arrived_ns;
	u32 seen;

	spinlock_t lock;
	u32 foreign;
	u32 foreign_av;
	bool in_sqd;
	bool owner_sqd;
	bool loaded;
	bool loaded_for_peer;
	struct repath_owners_alt {
		struct rdma_ah_attr ah;
		u16 pkey_index;
		u8 port;
		u8 timeout;
	} owners;
	int answer;
	u8 state;
	u8 by;
	const char *why;
	u32 count;
	u64 since_ns;
};

/**
 * struct repath_reroute - rerouting of one device
 * @dev: whose it is
 * @table: moves by repath_qp::key. Written under repath_track_lock; readers RCU
 * @lock: protects @jobs, @ending
 * @jobs: what was asked for and not begun
 * @ending: no more jobs
 * @off: switched off
 * @moves: under way; the work item's
 * @begun: some have come since the last pass through these; the work item's
 * @under_way: entries of @jobs and @moves, and those that the work item is at
 * @behind: processes that are to be told of paths when they read; the work item's
 * @nap: how long the work item waits if nothing happens: jiffies; its own
 * @longest_nap: the most that it may be: less if something is done that ends by itself
 * @pass_ns: what the last pass through @moves has taken; the work item's
 * @paused: the device is in an operation; the work item's
 * @work: does all of it
 * @hand: the task that modifies queue pairs at this moment: its modifications are ours
 * @can: enum repath_can by enum repath_way
 */
struct repath_reroute {
	struct repath_device *dev;
	struct xarray table;
	spinlock_t lock;
	struct list_head jobs;
	bool ending;
	bool off;
	struct list_head moves;
	bool begun;
	atomic_t under_way;
	struct list_head behind;
	unsigned int nap;
	unsigned int longest_nap;
	u64 pass_ns;
	bool paused;
	struct delayed_work work;
	struct task_struct *hand;
	u8 can[REPATH_WAYS];
};

/* repath_may_only_migrate - as far as has been tried, a device does not drain, and may migrate */
static inline bool repath_may_only_migrate(const struct repath_reroute *r)
{
	return r->can[REPATH_WAY_SQD] != REPATH_CAN_YES && r->can[REPATH_WAY_APM] != REPATH_CAN_NOT;
}

/* What a step came to. */
enum repath_move_next {
	REPATH_NEXT_AGAIN,	/* at once */
	REPATH_NEXT_WAIT,	/* again in a while */
	REPATH_NEXT_DONE,	/* it leaves the list */
};

/* From the path to the address (reroute_path.c). */
static inline bool repath_path_is_roce(const struct repath_new_path *to)
{
	return !to->dlid;
}

bool repath_ah_is_there(const struct repath_new_path *to, const struct rdma_ah_attr *ah);
bool repath_path_is_enough(struct ib_device *ibdev, const struct repath_new_path *to,
			   const struct repath_path *path);
bool repath_path_keeps_pkey(struct ib_device *ibdev, const struct repath_new_path *to,
			    const struct repath_path *path);
int repath_path_find_pkey(struct ib_device *ibdev, const struct repath_new_path *to,
			  const struct repath_path *path, u16 *index);
void repath_path_make_ah(struct ib_qp *qp, const struct repath_new_path *to,
			 const struct repath_path *path, const struct rdma_ah_attr *asked,
			 struct rdma_ah_attr *ah);
int repath_path_set_av(struct ib_qp *qp, const struct repath_path *path, struct ib_qp_attr *attr,
		       int mask);
int repath_path_set_alt(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, bool judge);

/* The ways (reroute_way.c). */
enum repath_move_next repath_move_begin_sqd(struct repath_reroute *r, struct repath_move *move,
					    struct ib_qp *qp);
enum repath_move_next repath_move_drain(struct repath_reroute *r, struct repath_move *move,
					struct ib_qp *qp, const struct repath_path *path);
bool repath_move_is_serialised(const struct ib_device *ibdev);
bool repath_move_leave_sqd(struct repath_move *move, struct ib_qp *qp);
bool repath_move_may_load(struct repath_move *move, const struct ib_qp *qp);
enum repath_move_next repath_move_load(struct repath_reroute *r, struct repath_move *move,
				       struct ib_qp *qp, const struct repath_path *path);
enum repath_move_next repath_move_arm(struct repath_reroute *r, struct repath_move *move,
				      struct ib_qp *qp);
bool repath_move_is_armed(struct repath_move *move, struct ib_qp *qp);
enum repath_move_next repath_move_stay(struct repath_reroute *r, struct repath_move *move,
				       struct ib_qp *qp);
enum repath_move_next repath_move_verify(struct repath_reroute *r, struct repath_move *move,
					 struct ib_qp *qp);
enum repath_move_next repath_move_lost(struct repath_reroute *r, struct repath_move *move);
enum repath_move_next repath_move_arrived(struct repath_move *move);

/* The last of them (reroute_cycle.c). */
enum repath_move_next repath_move_begin_cycle(struct repath_reroute *r, struct repath_move *move);
void repath_move_cycle_anew(struct repath_move *move);
enum repath_move_next repath_move_cycle(struct repath_reroute *r, struct repath_move *move,
					u8 state, const struct repath_path *path);

/* What they come to (reroute_qp.c). */
void repath_move_begin_step(struct repath_move *move, enum repath_move_step step);
enum repath_move_next repath_move_end(struct repath_reroute *r, struct repath_move *move,
				      enum repath_move_state state, const char *why);
enum repath_move_next repath_move_done(struct repath_reroute *r, struct repath_move *move);
enum repath_move_next repath_move_next_way(struct repath_reroute *r, struct repath_move *move,
					   bool never, const char *why);

static inline bool repath_move_is_late(const struct repath_move *move)
{
	return time_after(jiffies, move->until);
}

/* Is it time to ask the device again? The longer it has taken, the less often. */
static inline bool repath_move_poll(struct repath_move *move)
{
	unsigned long most = move->step == REPATH_STEP_LATER ? 8 * HZ : HZ;
	unsigned long wait = min((move->polled - move->begun) / 8, most);

	if (move->polled != move->begun && time_before(jiffies, move->polled + wait) &&
	    !repath_move_is_late(move))
		return false;
	move->polled = jiffies;
	return true;
}

/* The work item's, of a move in its list. All may sleep. */
enum repath_move_next repath_move_step(struct repath_reroute *r, struct repath_move *move);
bool repath_move_is_to(const struct repath_move *move, const struct repath_new_path *to);
bool repath_move_want(struct repath_move *move, const struct repath_new_path *to, bool go);
bool repath_move_hold(struct repath_move *move, u32 dlid);
void repath_move_release(struct repath_reroute *r, struct repath_move *move);

static inline void repath_move_free(struct kref *kref)
{
	kfree_rcu(container_of(kref, struct repath_move, kref), rcu);
}

static inline void repath_move_put(struct repath_move *move)
{
	kref_put(&move->kref, repath_move_free);
}

/* For track.c. The track lock is held. */

/* Somebody has modified a queue pair. */
static inline void repath_move_seen_locked(const struct repath_qp *rqp,
					   const struct ib_qp_attr *attr, int mask)
{
	struct repath_reroute *r = rqp->dev->reroute;
	struct repath_move *move;

	if (!r || READ_ONCE(r->hand) == current)
		return;
	move = xa_load(&r->table, rqp->key);
	if (!move || move->rqp != rqp)
		return;
	spin_lock(&move->lock);
	move->foreign++;
	move->foreign_av += !!(mask & IB_QP_AV);
	if (mask & IB_QP_STATE) {
		move->in_sqd = false;
		move->owner_sqd = attr->qp_state == IB_QPS_SQD;
	}
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RESET) {
		move->loaded = false;
		move->owners.port = 0;
	}
	if (mask & IB_QP_ALT_PATH) {
		move->loaded = false;
		move->owners = (struct repath_owners_alt) {
			.ah = attr->alt_ah_attr,
			.pkey_index = attr->alt_pkey_index,
			.port = attr->alt_port_num,
			.timeout = attr->alt_timeout,
		};
		move->owners.ah.grh.sgid_attr = NULL;
	}
	spin_unlock(&move->lock);
}

/* A queue pair has gone. */
static inline void repath_move_gone_locked(const struct repath_qp *rqp)
{
	struct repath_reroute *r = rqp->dev->reroute;
	struct repath_move *move;

	if (!r || xa_empty(&r->table))
		return;
	move = xa_load(&r->table, rqp->key);
	if (!move || move->rqp != rqp)
		return;
	xa_erase(&r->table, rqp->key);
	kref_put(&move->kref, repath_move_free);
}

#endif /* REPATH_REROUTE_QP_H */
