// SPDX-License-Identifier: GPL-2.0
/*
 * Paths change: who asks, and the work item of each device that does it.
 *
 * What is asked for is queued, in order. The work item looks up the queue pairs that it concerns
 * and keeps those that are on their way in a list; it goes through the list until it is empty, and
 * does to each what can be done without waiting. So the cost is that of the queue pairs concerned,
 * however many the device has, and many drain at the same time.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "device.h"
#include "event.h"
#include "lid.h"
#include "op.h"
#include "reroute.h"
#include "reroute_behind.h"
#include "reroute_qp.h"
#include "reroute_shim.h"
#include "stat.h"
#include "track.h"

/* Passes through the list before the work item lets others run, and how long it waits after each. */
#define PASSES		5
#define PASS_MIN_US	100
#define PASS_MAX_US	200
#define JOBS_MIN_NS	NSEC_PER_MSEC
/* So long what has its new path waits to be read back, while others begin. */
#define VERIFY_MAX	(HZ / 50)

enum job_kind {
	JOB_HOLD,
	JOB_PREPARE,
	JOB_REPATH,
	JOB_LATE,
};

struct job {
	struct list_head node;
	enum job_kind kind;
	bool again;	/* there was no memory for all of it */
	u32 port;
	struct repath_new_path path;
	u64 since_ns;
};

static struct repath_move *move_of(struct repath_reroute *r, const struct repath_qp *rqp)
{
	struct repath_move *move;

	rcu_read_lock();
	move = xa_load(&r->table, rqp->key);
	if (move && (move->rqp != rqp || !kref_get_unless_zero(&move->kref)))
		move = NULL;
	rcu_read_unlock();
	return move;
}

/* Of a queue pair that has none yet. ERR_PTR(-ENOMEM), or NULL when it has gone. */
static struct repath_move *move_new(struct repath_reroute *r, struct repath_qp *rqp)
{
	struct repath_move *move = kzalloc(sizeof(*move), GFP_KERNEL);
	unsigned long flags;
	int err;

	if (!move)
		return ERR_PTR(-ENOMEM);
	kref_init(&move->kref);
	INIT_LIST_HEAD(&move->node);
	spin_lock_init(&move->lock);
	move->rqp = rqp;
	spin_lock_irqsave(&repath_track_lock, flags);
	err = rqp->gone ? -ENOENT :
	      xa_err(xa_store(&r->table, rqp->key, move, GFP_NOWAIT | __GFP_NOWARN));
	if (!err)
		kref_get(&move->kref);
	spin_unlock_irqrestore(&repath_track_lock, flags);
	if (!err)
		return move;
	repath_move_put(move);
	return err == -ENOENT ? NULL : ERR_PTR(err);
}

struct expansion {
	struct repath_reroute *r;
	const struct job *job;
};

static bool is_concerned(const struct repath_qp *rqp, const struct repath_path *path,
			 const struct job *job)
{
	if (!repath_qp_is_connected_type(rqp) || repath_path_port(path) != job->port)
		return false;
	if (memchr_inv(job->path.dgid, 0, sizeof(job->path.dgid)) &&
	    (!path->has_grh || memcmp(&path->dgid, job->path.dgid, sizeof(path->dgid))))
		return false;
	if (job->path.by_lid && path->has_grh)
		return false;
	return !job->path.slid ||
	       (repath_lid(rqp->dev, job->port) | path->path_bits) == job->path.slid;
}

static void begin(struct repath_reroute *r, struct repath_move *move, const struct job *job,
		  const struct repath_path *path)
{
	bool wanted;

	if (job->kind == JOB_HOLD)
		wanted = repath_move_hold(move, job->path.dlid);
	else
		wanted = repath_move_want(move, &job->path, job->kind != JOB_PREPARE);
	if (!wanted)
		return;
	move->port = job->port;
	move->path_bits = path->path_bits;
	if (!list_empty(&move->node))
		return;
	kref_get(&move->kref);
	kref_get(&move->rqp->kref);
	list_add_tail(&move->node, &r->moves);
	r->begun = true;
	atomic_inc(&r->under_way);
	repath_stat_inc(r->dev, REPATH_STAT_MOVE);
}

/* It is on its way to another LID, and will not send to this one any more. */
static bool is_leaving(const struct repath_move *move, const struct job *job)
{
	return !list_empty(&move->node) && move->go && move->to.new_dlid &&
	       move->to.new_dlid != job->path.dlid && !job->path.new_dlid;
}

/*
 * Hardware may have gone over to an alternate path, and nobody has looked. To one that was loaded for a move between the
 * same two ports, and the same LIDs, that is asked in the course of the next one.
 */
static void follow(struct repath_qp *rqp, const struct repath_move *move, const struct job *job)
{
	struct repath_path path;
	struct ib_qp *qp;

	if (!repath_qp_may_migrate(rqp))
		return;
	repath_qp_snapshot(rqp, NULL, &path);
	if (move && READ_ONCE(move->loaded) && path.dlid == job->path.dlid && job->kind != JOB_LATE)
		return;
	qp = repath_qp_use(rqp);
	if (!qp)
		return;
	repath_qp_query(rqp, qp, false);
	repath_qp_unuse(qp);
}

/* Is it on the path, or was told of it, and its owner has given it no other address since? */
static bool is_settled(const struct repath_qp *rqp, const struct repath_move *move,
		       const struct repath_path *path, const struct job *job)
{
	struct repath_new_path to = job->path;

	/* One that sends slower than it may stays that. */
	if (to.has & REPATH_PATH_RATE && ib_rate_to_mbps(path->rate) <= ib_rate_to_mbps(to.rate))
		to.has &= ~REPATH_PATH_RATE;
	return repath_path_is_enough(rqp->dev->ibdev, &to, path) ||
	       (move && move->go && !move->to.for_peer && move->wanted_ns >= job->since_ns &&
		(!list_empty(&move->node) || move->addressed == READ_ONCE(move->foreign_av)));
}

/*
 * What is on its way, or could not be moved, is as it is whatever becomes of its peer. Nothing is moved by what is not
 * new: who is not on the path is looked for in other ways.
 */
static bool may_get_ready(const struct repath_qp *rqp, const struct repath_move *move, const struct repath_path *path,
			  const struct job *job)
{
	return (!move || (list_empty(&move->node) && move->state != REPATH_MOVE_FAILED &&
			  move->state != REPATH_MOVE_NO_WAY && move->state != REPATH_MOVE_LOST)) &&
	       repath_path_is_enough(rqp->dev->ibdev, &job->path, path);
}

static int expand(struct repath_qp *rqp, void *arg)
{
	struct expansion *ex = arg;
	struct repath_path path;
	struct repath_move *move;

	move = move_of(ex->r, rqp);
	follow(rqp, move, ex->job);
	/* The index finds it by its alternate path as well, and by one that it has left for good. */
	if ((!repath_shim_path(rqp, &path) && !(move && move->step == REPATH_STEP_CYCLING)) ||
	    path.dlid != ex->job->path.dlid || !is_concerned(rqp, &path, ex->job))
		goto out;
	if (ex->job->kind == JOB_LATE && is_settled(rqp, move, &path, ex->job))
		goto out;
	if (ex->job->path.for_peer && !may_get_ready(rqp, move, &path, ex->job))
		goto out;
	move = move ?: move_new(ex->r, rqp);
	if (IS_ERR(move))
		return PTR_ERR(move);
	if (move && !is_leaving(move, ex->job) &&
	    !((ex->job->again || move->state == REPATH_MOVE_FAILED) &&
	      repath_move_is_to(move, &ex->job->path)))
		begin(ex->r, move, ex->job, &path);
out:
	if (move)
		repath_move_put(move);
	return 0;
}

/* What is on its way to a LID, and not there, gets from where it is to where others get from there. */
static void redirect(struct repath_reroute *r, struct repath_move *move, const struct job *job)
{
	struct job whole = *job;
	struct repath_path path;

	if (!move->go || move->to.new_dlid != job->path.dlid)
		return;
	repath_qp_snapshot(move->rqp, NULL, &path);
	if (path.dlid == job->path.dlid || !is_concerned(move->rqp, &path, job))
		return;
	whole.path.dlid = path.dlid;
	if (!whole.path.new_dlid)
		whole.path.new_dlid = job->path.dlid;
	begin(r, move, &whole, &path);
	/* It may get there yet before it hears of that. */
	move->via = job->path.dlid;
}

/* Return: -ENOMEM: to be run again, which begins with none anew that is on its way. */
static int run_job(struct repath_reroute *r, const struct job *job)
{
	struct expansion ex = { .r = r, .job = job };
	bool news = job->kind == JOB_REPATH && !job->path.for_peer;
	struct repath_move *move;
	union ib_gid gid;
	int err;

	/* Nothing would be done at a queue pair of the device. */
	if (job->path.for_peer && !(repath_may_only_migrate(r) && repath_move_is_serialised(r->dev->ibdev)))
		return 0;
	memcpy(&gid, job->path.dgid, sizeof(gid));
	/* What is only announced, or to stop, does not keep them from there. */
	if (news)
		list_for_each_entry(move, &r->moves, node)
			redirect(r, move, job);
	err = repath_qp_walk_on_path(r->dev, job->port, job->path.dlid, &gid, expand, &ex);
	if (!err && news)
		repath_shim_tell_path(r->dev, job->port, &job->path);
	return err;
}

static struct job *next_job(struct repath_reroute *r)
{
	struct job *job;

	spin_lock(&r->lock);
	job = list_first_entry_or_null(&r->jobs, struct job, node);
	if (job)
		list_del(&job->node);
	spin_unlock(&r->lock);
	return job;
}

/* It counts as before. */
static void put_back(struct repath_reroute *r, struct job *job)
{
	job->again = true;
	spin_lock(&r->lock);
	list_add(&job->node, &r->jobs);
	spin_unlock(&r->lock);
}

static void leave_list(struct repath_move *move)
{
	struct repath_qp *rqp = move->rqp;

	list_del_init(&move->node);
	atomic_dec(&rqp->dev->reroute->under_way);
	repath_event_qp(rqp, REPATH_EV_CHANGE);
	repath_move_put(move);
	repath_qp_put(rqp);
}

/* It sends by its new path, as others of the device do, and others have only begun: they go first. */
static bool can_wait(const struct repath_reroute *r, const struct repath_move *move)
{
	return move->step == REPATH_STEP_VERIFY && move->way == REPATH_WAY_SQD &&
	       r->can[REPATH_WAY_SQD] == REPATH_CAN_YES && !READ_ONCE(move->in_sqd) &&
	       !READ_ONCE(move->loaded) && time_before(jiffies, move->begun + VERIFY_MAX);
}

/* Once through the list: has anything happened? */
static bool pass(struct repath_reroute *r)
{
	struct repath_move *move, *tmp;
	bool any = false;
	u8 step;

	r->longest_nap = HZ;
	list_for_each_entry_safe(move, tmp, &r->moves, node) {
		if (READ_ONCE(r->ending))
			break;
		if (r->begun && can_wait(r, move))
			continue;
		step = move->step;
		if (repath_move_step(r, move) == REPATH_NEXT_DONE) {
			leave_list(move);
			any = true;
		} else {
			any |= move->step != step;
			if (move->step != REPATH_STEP_LATER)
				r->longest_nap = HZ / 10;
		}
		cond_resched();
	}
	r->begun = false;
	return any;
}

/* The same; how long it takes is kept. */
static bool timed_pass(struct repath_reroute *r)
{
	u64 began = ktime_get_ns();
	bool any = pass(r);

	r->pass_ns = ktime_get_ns() - began;
	return any;
}

/*
 * Begins what was asked for. The first of a thousand paths does not wait for the last one: for as long as a pass takes, then
 * there is one. Return: false: that was all.
 */
static bool run_jobs(struct repath_reroute *r)
{
	u64 until = ktime_get_ns() + max_t(u64, r->pass_ns, JOBS_MIN_NS);
	struct job *job;

	while (!READ_ONCE(r->ending) && (job = next_job(r))) {
		/* What is only announced, or to stop, would be in the way of what is told next. */
		if (run_job(r, job) && (job->kind == JOB_REPATH || job->kind == JOB_LATE)) {
			put_back(r, job);
			return false;
		}
		kfree(job);
		/* Not before those that it has begun count. */
		atomic_dec(&r->under_way);
		r->nap = 1;
		if (!list_empty(&r->moves) && ktime_get_ns() >= until)
			return true;
		cond_resched();
	}
	return false;
}

static void reroute_work(struct work_struct *work)
{
	struct repath_reroute *r = container_of(to_delayed_work(work), struct repath_reroute, work);
	bool behind;
	int i;

	WRITE_ONCE(r->hand, current);
	while (run_jobs(r)) {
		r->paused = repath_op_of_device(r->dev);
		timed_pass(r);
	}
	behind = repath_behind_again(r);
	r->paused = repath_op_of_device(r->dev);
	/* Who is told next does not wait for those that drain. */
	for (i = 0; i < PASSES && !list_empty(&r->moves) && !READ_ONCE(r->ending); i++) {
		if (i) {
			if (!list_empty_careful(&r->jobs))
				break;
			usleep_range(PASS_MIN_US, PASS_MAX_US);
		}
		if (timed_pass(r))
			r->nap = 1;
		else if (r->nap > 1)
			break;
	}
	WRITE_ONCE(r->hand, NULL);
	spin_lock(&r->lock);
	if ((!list_empty(&r->moves) || !list_empty(&r->jobs) || behind) && !r->ending)
		queue_delayed_work(system_unbound_wq, &r->work, r->nap);
	spin_unlock(&r->lock);
	r->nap = min_t(unsigned int, 2 * r->nap, behind ? HZ / 10 : r->longest_nap);
}

static int ask_for(struct repath_device *dev, u32 port, enum job_kind kind,
		   const struct repath_new_path *path, u64 since_ns)
{
	struct repath_reroute *r = dev->reroute;
	struct job *job;

	if (!r || !rdma_is_port_valid(dev->ibdev, port) || READ_ONCE(r->off))
		return -EOPNOTSUPP;
	if (!rdma_protocol_ib(dev->ibdev, port) &&
	    !(rdma_protocol_roce(dev->ibdev, port) && kind == JOB_REPATH))
		return -EOPNOTSUPP;
	job = kzalloc(sizeof(*job), GFP_KERNEL);
	if (!job)
		return -ENOMEM;
	job->kind = kind;
	job->port = port;
	job->path = *path;
	job->since_ns = since_ns;
	spin_lock(&r->lock);
	if (r->ending) {
		spin_unlock(&r->lock);
		kfree(job);
		return -ENODEV;
	}
	list_add_tail(&job->node, &r->jobs);
	atomic_inc(&r->under_way);
	mod_delayed_work(system_unbound_wq, &r->work, 0);
	spin_unlock(&r->lock);
	return 0;
}

/**
 * repath_reroute_unpath - a path is not to be used any more
 * @dev: device
 * @port: own port
 * @dlid: where it leads; 0: any
 * @why: why
 * @wait: its queue pairs shall not send until the new path is told; not for any
 *
 * Return: see reroute.h.
 */
int repath_reroute_unpath(struct repath_device *dev, u32 port, u32 dlid,
			  enum repath_unpath_why why, bool wait)
{
	const struct repath_new_path path = { .dlid = dlid };

	repath_stat_inc(dev, REPATH_STAT_UNPATH);
	/* To stop all of a port would cost more than what is about to break. */
	if (!wait || !dlid || why != REPATH_UNPATH_BREAKS)
		return 0;
	return ask_for(dev, port, JOB_HOLD, &path, 0);
}

/**
 * repath_reroute_prepare - a path will take the place of another one
 * @dev: device
 * @port: own port
 * @path: the new path
 *
 * Return: see reroute.h.
 */
int repath_reroute_prepare(struct repath_device *dev, u32 port, const struct repath_new_path *path)
{
	return ask_for(dev, port, JOB_PREPARE, path, 0);
}

/**
 * repath_reroute_repath - a path takes the place of another one
 * @dev: device
 * @port: own port
 * @path: the new path
 *
 * Return: see reroute.h.
 */
int repath_reroute_repath(struct repath_device *dev, u32 port, const struct repath_new_path *path)
{
	repath_stat_inc(dev, REPATH_STAT_REPATH);
	return ask_for(dev, port, JOB_REPATH, path, 0);
}

/**
 * repath_reroute_late - a path has taken the place of another one, for who was connected since
 * @dev: device
 * @port: own port
 * @path: the new path
 * @since_ns: CLOCK_BOOTTIME, when that was told; U64_MAX: of all that are not on it
 *
 * Who asks for a path and connects later does so by what holds no more, if it has changed in between. What was
 * told of the path since, or has been put elsewhere, is left alone; and what is on it. Where hardware is it is asked.
 *
 * Return: see reroute.h.
 */
int repath_reroute_late(struct repath_device *dev, u32 port, const struct repath_new_path *path,
			u64 since_ns)
{
	return ask_for(dev, port, JOB_LATE, path, since_ns);
}

/**
 * repath_reroute_cycled - the shims have connected a queue pair anew, or have not
 * @rqp: queue pair
 * @err: 0, or why not: an errno
 */
void repath_reroute_cycled(struct repath_qp *rqp, int err)
{
	struct repath_reroute *r = rqp->dev->reroute;
	struct repath_move *move = r ? move_of(r, rqp) : NULL;
	unsigned long flags;

	if (!move)
		return;
	spin_lock_irqsave(&move->lock, flags);
	move->answer = err;
	spin_unlock_irqrestore(&move->lock, flags);
	repath_move_put(move);
	spin_lock(&r->lock);
	if (!r->ending)
		mod_delayed_work(system_unbound_wq, &r->work, 0);
	spin_unlock(&r->lock);
}

/**
 * repath_reroute_switch - move queue pairs of a device, or not
 * @dev: device
 * @on: or not
 *
 * Return: true if it was off: what was told meanwhile was not done, and what the device can is tried anew.
 */
bool repath_reroute_switch(struct repath_device *dev, bool on)
{
	struct repath_reroute *r = dev->reroute;
	bool was_off;
	int way;

	if (!r)
		return false;
	was_off = READ_ONCE(r->off);
	WRITE_ONCE(r->off, !on);
	if (!was_off || !on)
		return false;
	for (way = 0; way < REPATH_WAYS; way++)
		WRITE_ONCE(r->can[way], REPATH_CAN_UNKNOWN);
	return true;
}

/**
 * repath_reroute_is_on - are queue pairs of a device moved?
 * @dev: device
 */
bool repath_reroute_is_on(const struct repath_device *dev)
{
	return dev->reroute && !READ_ONCE(dev->reroute->off);
}

/**
 * repath_reroute_is_under_way - are queue pairs of a device on their way, or about to be?
 * @dev: device
 *
 * If not, then each that was to go to a path is on it, as its address tells.
 *
 * Context: any.
 */
bool repath_reroute_is_under_way(const struct repath_device *dev)
{
	return dev->reroute && atomic_read_acquire(&dev->reroute->under_way);
}

/**
 * repath_reroute_begin - a device has come
 * @dev: device, not yet linked
 */
void repath_reroute_begin(struct repath_device *dev)
{
	struct repath_reroute *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return;
	r->dev = dev;
	r->nap = 1;
	r->longest_nap = HZ;
	xa_init(&r->table);
	spin_lock_init(&r->lock);
	INIT_LIST_HEAD(&r->jobs);
	INIT_LIST_HEAD(&r->moves);
	INIT_LIST_HEAD(&r->behind);
	INIT_DELAYED_WORK(&r->work, reroute_work);
	dev->reroute = r;
}

/**
 * repath_reroute_end - a device is going, or the module is
 * @dev: device, whose queue pairs can still be modified
 *
 * None stays in a state that its owner does not know of. The table ends with the queue pairs.
 */
void repath_reroute_end(struct repath_device *dev)
{
	struct repath_reroute *r = dev->reroute;
	struct repath_move *move, *tmp;
	struct job *job;

	if (!r)
		return;
	spin_lock(&r->lock);
	WRITE_ONCE(r->ending, true);
	spin_unlock(&r->lock);
	cancel_delayed_work_sync(&r->work);
	while ((job = next_job(r)))
		kfree(job);
	WRITE_ONCE(r->hand, current);
	list_for_each_entry_safe(move, tmp, &r->moves, node) {
		repath_move_release(r, move);
		leave_list(move);
	}
	WRITE_ONCE(r->hand, NULL);
	repath_behind_end(r);
}
