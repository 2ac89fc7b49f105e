// SPDX-License-Identifier: GPL-2.0
/*
 * Adoption: what exists and was not seen by a hook, because it is older than the module, because
 * memory was short, or because a probe was missed.
 *
 * The exported interface gives an entry of the restrack table by its number only, so the numbers
 * are tried in turn, until as many were found as ib_core says that there are. A context's number
 * is small; a queue pair's is its QPN, of 24 bits: at worst some 16 million look-ups in an xarray, a
 * second or two, which only a device pays that was in use when the module came.
 */
#include <linux/moduleparam.h>
#include <linux/sysfs.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "adopt.h"
#include "device.h"
#include "track.h"

#define ID_LIMIT (1u << 24)

/* The end of something may have been missed: a rescan is to find what has gone, too. */
static atomic_t adopt_sweep = ATOMIC_INIT(0);

static void adopt_query(struct repath_qp *rqp, struct ib_qp *qp)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	int tries;
	u32 changes;

	/* Whoever modifies it all the time is followed by the hooks. */
	for (tries = 0; tries < 8; tries++) {
		changes = READ_ONCE(rqp->changes);
		if (ib_query_qp(qp, &attr, IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_AV |
				IB_QP_DEST_QPN | IB_QP_PATH_MTU, &init))
			return;
		/* Not every driver says what kind of address it has returned. */
		if (rdma_is_port_valid(qp->device, attr.port_num))
			attr.ah_attr.type = rdma_ah_find_type(qp->device, attr.port_num);
		if (repath_track_qp_queried(rqp, changes, &attr))
			return;
	}
}

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
		adopt_query(rqp, qp);
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

/* Tries all numbers; true if everything was found that is there. */
static bool adopt_all(struct repath_device *dev, enum rdma_restrack_type type, u32 round,
		      bool (*adopt)(struct repath_device *dev, u32 id, u32 round))
{
	int found = 0, count;
	u32 id, port;

	count = rdma_restrack_count(dev->ibdev, type, true);
	if (type == RDMA_RESTRACK_QP) {
		/* SMI and GSI queue pairs, see repath_qp_key(). */
		rdma_for_each_port(dev->ibdev, port) {
			found += adopt(dev, port << 24, round);
			found += adopt(dev, port << 24 | 1, round);
		}
	}
	for (id = 0; id < ID_LIMIT && found < count; id++) {
		found += adopt(dev, id, round);
		if (id % 1024)
			continue;
		cond_resched();
		if (READ_ONCE(dev->removed))
			return false;
		/* Counting walks them all: not too often. */
		if (!(id % 65536))
			count = rdma_restrack_count(dev->ibdev, type, true);
	}
	return found >= rdma_restrack_count(dev->ibdev, type, true);
}

struct sweep {
	u32 round;
	bool any;
};

/* Neither seen in this round nor newer. */
static bool sweep_stale(const struct sweep *sweep, u32 rescan)
{
	return (s32)(rescan - sweep->round) < 0;
}

static int sweep_qp(struct repath_qp *rqp, void *arg)
{
	struct sweep *sweep = arg;
	struct ib_qp *qp;

	if (!sweep_stale(sweep, rqp->rescan))
		return 0;
	qp = repath_qp_use(rqp);
	if (qp) {
		repath_qp_unuse(qp);
		return 0;
	}
	repath_track_sweep_qp(rqp);
	sweep->any = true;
	return 0;
}

static int sweep_ctx(struct repath_ctx *ctx, void *arg)
{
	struct sweep *sweep = arg;

	if (!sweep_stale(sweep, ctx->rescan))
		return 0;
	repath_track_sweep_ctx(ctx);
	sweep->any = true;
	return 0;
}

/**
 * repath_adopt - track what is there and is not tracked
 * @dev: the device, which can not go away meanwhile, or is held by repath_device_use()
 * @sweep: also drop what is tracked and is not there
 *
 * Context: process.
 */
void repath_adopt(struct repath_device *dev, bool sweep)
{
	struct sweep state = { .round = atomic_inc_return(&repath_track_round) };
	bool complete;
	int tries = 0;

	/* What comes while the numbers are tried makes it look as if some had not been found. */
	do {
		complete = adopt_all(dev, RDMA_RESTRACK_CTX, state.round, adopt_ctx);
	} while (!complete && ++tries < 4);
	if (sweep && complete)
		repath_ctx_for_each(dev, sweep_ctx, &state);

	adopt_all(dev, RDMA_RESTRACK_QP, state.round, adopt_qp);
	/* ib_core is asked for each of them by its number: no need to have found all. */
	if (sweep)
		repath_qp_for_each(dev, sweep_qp, &state);
	/*
	 * A hook adds what ib_core is about to put into its table: in between it looks as if it
	 * had gone. The next round finds it again.
	 */
	if (state.any)
		repath_device_rescan(dev);
}

/**
 * repath_adopt_work - repath_device::rescan
 * @work: in the device
 */
void repath_adopt_work(struct work_struct *work)
{
	struct repath_device *dev = container_of(work, struct repath_device, rescan);

	if (!repath_device_use(dev))
		return;
	atomic_inc(&repath_track_stats.rescans);
	repath_adopt(dev, atomic_read(&adopt_sweep));
	repath_device_unuse(dev);
}

/**
 * repath_adopt_rescan_all - have all devices rescanned soon
 * @sweep: something that has gone may still be tracked
 */
void repath_adopt_rescan_all(bool sweep)
{
	struct repath_device *dev;
	unsigned long flags;

	if (sweep)
		atomic_set(&adopt_sweep, 1);
	repath_device_for_each(dev, NULL) {
		/* Whoever removes the device cancels the work after this was set: none comes later. */
		spin_lock_irqsave(&repath_track_lock, flags);
		if (!dev->removed)
			repath_device_rescan(dev);
		spin_unlock_irqrestore(&repath_track_lock, flags);
	}
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
	return sysfs_emit(buffer, "%d\n", atomic_read((atomic_t *)kp->arg));
}

static const struct kernel_param_ops stat_ops = {
	.get = stat_get,
};
module_param_cb(no_memory, &stat_ops, &repath_track_stats.no_memory, 0444);
MODULE_PARM_DESC(no_memory, "read only: objects that a probe could not allocate; they are adopted");
module_param_cb(missed_probes, &stat_ops, &repath_track_stats.missed, 0444);
MODULE_PARM_DESC(missed_probes, "read only: probes that did not run; a rescan repairs it");
module_param_cb(rescans, &stat_ops, &repath_track_stats.rescans, 0444);
MODULE_PARM_DESC(rescans, "read only: rescans of devices");
