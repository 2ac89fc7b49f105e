// SPDX-License-Identifier: GPL-2.0
/*
 * Adoption: what exists and was not seen by a hook, because it is older than the module, because
 * memory was short, or because a probe was missed.
 *
 * The exported interface gives an entry of the restrack table by its number only, so the numbers
 * are tried in turn, until as many were found as ib_core says that there are. A queue pair's
 * number is its QPN, of 24 bits: at worst some 16 million look-ups in an xarray, a second or two, which
 * only a device pays that was in use when the module came. A context's is counted up, by one each
 * time that somebody opens the device, and can have 32 bits: beyond 24 it is looked for by the
 * rescan, which nobody waits for, and which ends at the first that completes the count.
 */
#include <linux/moduleparam.h>
#include <linux/sysfs.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "adopt.h"
#include "device.h"
#include "trace.h"
#include "track.h"

#define QP_LIMIT	(1u << 24)
#define CTX_NEAR_LIMIT	(1u << 24)
#define TRIES		4

/* The end of something may have been missed: a rescan is to find what has gone, too. */
static atomic_t adopt_sweep = ATOMIC_INIT(0);

/* A rescan has ended, or a device has gone. */
static DECLARE_WAIT_QUEUE_HEAD(adopt_wait);

static bool adopt_qp(struct repath_device *dev, u32 id, u32 round)
{
	struct rdma_restrack_entry *res;
	struct repath_qp *rqp;
	struct ib_qp *qp;

	res = rdma_restrack_get_byid(dev->ibdev, RDMA_RESTRACK_QP, id);
	if (IS_ERR(res))
		return false;
	qp = container_of(res, struct ib_qp, res);
	rqp = repath_track_qp_add(qp, rdma_is_kernel_res(res) ? NULL : res->task, res->kern_name,
				  GFP_KERNEL, round);
	if (rqp) {
		repath_qp_query(rqp, qp, true);
		repath_qp_put(rqp);
	}
	rdma_restrack_put(res);
	return true;
}

static bool adopt_ctx(struct repath_device *dev, u32 id, u32 round)
{
	struct rdma_restrack_entry *res;

	res = rdma_restrack_get_byid(dev->ibdev, RDMA_RESTRACK_CTX, id);
	if (IS_ERR(res))
		return false;
	if (res->task)
		repath_track_ctx_add(container_of(res, struct ib_ucontext, res), res->task,
				     GFP_KERNEL, round);
	rdma_restrack_put(res);
	return true;
}

/**
 * struct search - for the entries of one table of ib_core's
 * @dev: of this device
 * @type: table
 * @round: of adoption
 * @adopt: takes the entry of a number; false if there is none
 * @found: entries
 */
struct search {
	struct repath_device *dev;
	enum rdma_restrack_type type;
	u32 round;
	bool (*adopt)(struct repath_device *dev, u32 id, u32 round);
	u32 found;
};

static u32 count_all(const struct search *search)
{
	return rdma_restrack_count(search->dev->ibdev, search->type, true);
}

/* Tries the numbers from @from to before @to; true if everything was found that is there. */
static bool try_numbers(struct search *search, u64 from, u64 to)
{
	u32 count = count_all(search);
	u64 id;

	for (id = from; id < to && search->found < count; id++) {
		search->found += search->adopt(search->dev, id, search->round);
		if (id % 1024)
			continue;
		cond_resched();
		if (READ_ONCE(search->dev->removed))
			return false;
		/* Counting walks them all: not too often. */
		if (!(id % 65536))
			count = count_all(search);
	}
	return search->found >= count_all(search);
}

static bool find_contexts(struct repath_device *dev, u32 round, bool far)
{
	struct search search = {
		.dev = dev, .type = RDMA_RESTRACK_CTX, .round = round, .adopt = adopt_ctx,
	};
	int tries;

	/* What comes while the numbers are tried makes it look as if some had not been found. */
	for (tries = 0; tries < TRIES; tries++) {
		search.found = 0;
		if (try_numbers(&search, 0, CTX_NEAR_LIMIT))
			return true;
	}
	return far && try_numbers(&search, CTX_NEAR_LIMIT, (u64)U32_MAX + 1);
}

static void find_qps(struct repath_device *dev, u32 round)
{
	struct search search = {
		.dev = dev, .type = RDMA_RESTRACK_QP, .round = round, .adopt = adopt_qp,
	};
	u32 port;

	/* SMI and GSI queue pairs, see repath_qp_key(). */
	rdma_for_each_port(dev->ibdev, port) {
		search.found += adopt_qp(dev, port << 24, round);
		search.found += adopt_qp(dev, port << 24 | 1, round);
	}
	try_numbers(&search, 0, QP_LIMIT);
}

struct sweep {
	u32 round;
	u32 swept;
};

static int sweep_qp(struct repath_qp *rqp, void *arg)
{
	struct sweep *sweep = arg;
	struct ib_qp *qp;

	if (!repath_qp_is_older(rqp, sweep->round))
		return 0;
	qp = repath_qp_use(rqp);
	if (qp) {
		repath_qp_unuse(qp);
		return 0;
	}
	repath_track_sweep_qp(rqp);
	sweep->swept++;
	return 0;
}

static int sweep_ctx(struct repath_ctx *ctx, void *arg)
{
	struct sweep *sweep = arg;

	/* Seen in this round, or newer. */
	if ((s32)(ctx->rescan - sweep->round) >= 0)
		return 0;
	repath_track_sweep_ctx(ctx);
	sweep->swept++;
	return 0;
}

static u32 missing(struct repath_device *dev, enum rdma_restrack_type type, u32 tracked)
{
	int count = rdma_restrack_count(dev->ibdev, type, true);

	return max_t(int, count - (int)tracked, 0);
}

static u64 counted(struct repath_device *dev, enum repath_stat stat)
{
	return atomic64_read(&dev->stats.n[stat]);
}

/*
 * There is no asking for a context by its number, which the hook does not learn: all must have been
 * seen. If some were closed meanwhile, as many have been found as there are, and not the same ones.
 */
static bool sweep_ctxs(struct repath_device *dev, struct sweep *sweep, u32 closed)
{
	if (closed != READ_ONCE(dev->ctx_closed))
		return false;
	repath_ctx_for_each(dev, sweep_ctx, sweep);
	return true;
}

/* True: once more, at once. */
static bool adopt(struct repath_device *dev, bool sweep, bool far)
{
	struct repath_adoption *sum = &dev->adoption;
	u32 missing_qps, missing_ctxs, closed;
	u64 qps, ctxs, corrected;
	struct sweep state = {};
	bool complete, unswept = false;

	/* One at a time: else each would take for gone what the other has seen last. */
	mutex_lock(&dev->adopt_lock);
	state.round = atomic_inc_return(&repath_track_round);
	qps = counted(dev, REPATH_STAT_QP_ADOPTED);
	ctxs = counted(dev, REPATH_STAT_CTX_ADOPTED);
	corrected = counted(dev, REPATH_STAT_CORRECTED);
	closed = READ_ONCE(dev->ctx_closed);

	complete = find_contexts(dev, state.round, far);
	if (sweep)
		unswept = !complete || !sweep_ctxs(dev, &state, closed);
	find_qps(dev, state.round);
	/* ib_core is asked for each of them by its number: no need to have found all. */
	if (sweep)
		repath_qp_for_each(dev, sweep_qp, &state);
	repath_stat_add(dev, REPATH_STAT_SWEPT, state.swept);

	missing_qps = missing(dev, RDMA_RESTRACK_QP, READ_ONCE(dev->qp_count));
	missing_ctxs = missing(dev, RDMA_RESTRACK_CTX, READ_ONCE(dev->ctx_count));
	spin_lock(&dev->adoption_lock);
	sum->qps += counted(dev, REPATH_STAT_QP_ADOPTED) - qps;
	sum->ctxs += counted(dev, REPATH_STAT_CTX_ADOPTED) - ctxs;
	sum->corrected += counted(dev, REPATH_STAT_CORRECTED) - corrected;
	sum->swept += state.swept;
	sum->missing_qps = missing_qps;
	sum->missing_ctxs = missing_ctxs;
	spin_unlock(&dev->adoption_lock);
	WRITE_ONCE(dev->adopt_again, unswept);
	trace_adopt(dev->index, counted(dev, REPATH_STAT_QP_ADOPTED) - qps,
		    counted(dev, REPATH_STAT_CTX_ADOPTED) - ctxs, state.swept, complete);
	mutex_unlock(&dev->adopt_lock);
	/*
	 * A hook adds what ib_core is about to put into its table: in between it looks as if it
	 * had gone. The next round finds it again.
	 */
	return state.swept || (!complete && !far);
}

/* Whoever removes the device cancels the work after this was set: none comes later. */
static void rescan_soon(struct repath_device *dev)
{
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	if (!dev->removed)
		repath_device_rescan(dev);
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/**
 * repath_adopt - track what is there and is not tracked
 * @dev: the device, which can not go away meanwhile, and is linked
 *
 * Context: process.
 */
void repath_adopt(struct repath_device *dev)
{
	if (adopt(dev, false, false))
		rescan_soon(dev);
}

/**
 * repath_adopt_work - repath_device::rescan
 * @work: in the device
 */
void repath_adopt_work(struct work_struct *work)
{
	struct repath_device *dev = container_of(work, struct repath_device, rescan);
	u32 ticket = READ_ONCE(dev->adopt_wanted);

	/* The device can not go meanwhile: whoever removes it waits for this work first. */
	if (repath_device_use(dev)) {
		repath_stat_inc(dev, REPATH_STAT_RESCANS);
		if (adopt(dev, atomic_read(&adopt_sweep), true))
			rescan_soon(dev);
		repath_device_unuse(dev);
	}
	/* With the result, for repath_adopt_has_ended(). */
	smp_store_release(&dev->adopt_done, ticket);
	wake_up_all(&adopt_wait);
}

/**
 * repath_adopt_watch - rescan the devices whose last round could not tell what has gone
 *
 * Context: process; called from time to time.
 */
void repath_adopt_watch(void)
{
	struct repath_device *dev;

	repath_device_for_each(dev, NULL)
		if (READ_ONCE(dev->adopt_again))
			rescan_soon(dev);
}

/**
 * repath_adopt_begin - have a device rescanned, also for what has gone
 * @dev: device
 * @before: for repath_adopt_wait(), too
 *
 * Return: for repath_adopt_wait().
 */
u32 repath_adopt_begin(struct repath_device *dev, struct repath_adoption *before)
{
	u32 ticket;

	atomic_set(&adopt_sweep, 1);
	spin_lock(&dev->adoption_lock);
	ticket = ++dev->adopt_wanted;
	*before = dev->adoption;
	spin_unlock(&dev->adoption_lock);
	rescan_soon(dev);
	return ticket;
}

/**
 * repath_adopt_has_ended - need it not be waited for?
 * @dev: device
 * @ticket: of repath_adopt_begin()
 */
bool repath_adopt_has_ended(struct repath_device *dev, u32 ticket)
{
	/* The result was written before: repath_adopt_work(). */
	return (s32)(smp_load_acquire(&dev->adopt_done) - ticket) >= 0 ||
	       READ_ONCE(dev->removed);
}

/**
 * repath_adopt_wait - wait for the end of a rescan
 * @dev: device
 * @ticket: of repath_adopt_begin()
 * @result: as repath_adopt_begin() has it; what the rounds since then came to
 *
 * Return: 0; -ENODEV: the device has gone; -ERESTARTSYS: the process has a signal.
 */
int repath_adopt_wait(struct repath_device *dev, u32 ticket, struct repath_adoption *result)
{
	int err = wait_event_interruptible(adopt_wait, repath_adopt_has_ended(dev, ticket));

	if (err)
		return err;
	if (READ_ONCE(dev->removed))
		return -ENODEV;
	spin_lock(&dev->adoption_lock);
	result->qps = dev->adoption.qps - result->qps;
	result->ctxs = dev->adoption.ctxs - result->ctxs;
	result->corrected = dev->adoption.corrected - result->corrected;
	result->swept = dev->adoption.swept - result->swept;
	result->missing_qps = dev->adoption.missing_qps;
	result->missing_ctxs = dev->adoption.missing_ctxs;
	spin_unlock(&dev->adoption_lock);
	return 0;
}

/**
 * repath_adopt_device_gone - nobody waits for a device that is being removed
 * @dev: the device, removed and its work cancelled
 */
void repath_adopt_device_gone(struct repath_device *dev)
{
	wake_up_all(&adopt_wait);
}

/**
 * repath_adopt_rescan_all - have all devices rescanned soon
 * @sweep: something that has gone may still be tracked
 */
void repath_adopt_rescan_all(bool sweep)
{
	struct repath_device *dev;

	if (sweep)
		atomic_set(&adopt_sweep, 1);
	repath_device_for_each(dev, NULL)
		rescan_soon(dev);
}

static int rescan_set(const char *value, const struct kernel_param *kp)
{
	bool wanted;
	int err;

	err = kstrtobool(value, &wanted);
	if (!err && wanted)
		repath_adopt_rescan_all(true);
	return err;
}

static const struct kernel_param_ops rescan_ops = {
	.set = rescan_set,
};
module_param_cb(rescan, &rescan_ops, NULL, 0200);
MODULE_PARM_DESC(rescan, "write 1: compare with ib_core's tables now, as after kprobes were switched off");

static int stat_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%lld\n", atomic64_read((atomic64_t *)kp->arg));
}

static const struct kernel_param_ops stat_ops = {
	.get = stat_get,
};
module_param_cb(no_memory, &stat_ops, &repath_stats.n[REPATH_STAT_PROBE_NO_MEMORY], 0444);
MODULE_PARM_DESC(no_memory, "read only: objects that a probe could not allocate; they are adopted");
module_param_cb(missed_probes, &stat_ops, &repath_stats.n[REPATH_STAT_PROBE_MISSED], 0444);
MODULE_PARM_DESC(missed_probes, "read only: probes that did not run; a rescan repairs it");
module_param_cb(rescans, &stat_ops, &repath_stats.n[REPATH_STAT_RESCANS], 0444);
MODULE_PARM_DESC(rescans, "read only: rescans of devices");
