// SPDX-License-Identifier: GPL-2.0
/* What is asked of operations, and what happens to them. The machine that goes on is op_run.c. */
#include <linux/ktime.h>
#include <linux/pid_namespace.h>

#include "device.h"
#include "op.h"
#include "proc.h"
#include "stat.h"
#include "trace.h"
#include "unplug.h"

/**
 * repath_op_start - begin to suspend a device
 * @dev: device; nothing is under way on it
 * @net: network namespace that the device belongs to
 * @ns: PID namespace of the administrator
 * @timeout_ms: for each phase; 0: the default
 * @force: see struct repath_op
 * @dry_run: see struct repath_op
 *
 * Context: repath_op_mutex held.
 * Return: the operation, or NULL without memory.
 */
struct repath_op *repath_op_start(struct repath_device *dev, struct net *net,
				  struct pid_namespace *ns, u32 timeout_ms, bool force, bool dry_run)
{
	struct repath_op *op;

	lockdep_assert_held(&repath_op_mutex);
	op = repath_op_new(dev, net, ns);
	if (!op)
		return NULL;
	op->kind = REPATH_OP_SUSPEND;
	op->timeout_ms = timeout_ms ?: REPATH_OP_TIMEOUT_MS;
	op->force = force;
	op->dry_run = dry_run;
	op->dev_gone = READ_ONCE(dev->removed);
	repath_stat_inc(dev, REPATH_STAT_OP_START);
	repath_op_set_state(op, REPATH_OP_CHECKING);
	repath_op_wake();
	return op;
}

/**
 * repath_op_resume - resume what is suspended
 * @op: operation, suspended or parked
 * @dev: where to
 * @timeout_ms: 0: as before
 *
 * Context: repath_op_mutex held.
 * Return: 0; -EBUSY: it is in another state; -EINVAL: of InfiniBand and Ethernet, @dev is the other one.
 */
int repath_op_resume(struct repath_op *op, struct repath_device *dev, u32 timeout_ms)
{
	struct repath_op_proc *p;
	int err;

	lockdep_assert_held(&repath_op_mutex);
	if (op->state != REPATH_OP_SUSPENDED && op->state != REPATH_OP_PARKED)
		return -EBUSY;
	if (dev->link_layer != op->dev->link_layer)
		return -EINVAL;
	repath_op_unsay(op);
	op->kind = REPATH_OP_RESUME;
	repath_stat_inc(op->dev, REPATH_STAT_OP_RESUME);
	if (timeout_ms)
		op->timeout_ms = timeout_ms;
	if (op->new_dev)
		repath_device_put(op->new_dev);
	op->new_dev = repath_device_get(dev);
	repath_op_set_state(op, REPATH_OP_RESUMING);
	list_for_each_entry(p, &op->procs, node) {
		/* Who has resumed, here or back on the old device, stays as it is. */
		if (p->stage == REPATH_STAGE_REPLAY)
			continue;
		if (p->stage == REPATH_STAGE_ABORT) {
			p->stage = REPATH_STAGE_REPLAY;
			continue;
		}
		/* It may have been on another device by now: what it had there is no more. */
		p->stage = min_t(u8, p->stage, REPATH_STAGE_RELEASE);
		p->err = 0;
		p->untold = false;
		p->reason[0] = 0;
		p->stage_ns[REPATH_STAGE_NONE] = ktime_get_boottime_ns() - op->started_ns;
		err = p->proc ? repath_op_tell(op, p, REPATH_CMD_EV_RESUME) : 0;
		if (err && err != -ESRCH && err != -ECONNREFUSED) {
			p->err = -err;
			strscpy(p->reason, "it does not read its socket", sizeof(p->reason));
		}
	}
	repath_op_wake();
	return 0;
}

/**
 * repath_op_abort - go back to the old device
 * @op: operation
 *
 * A process that is being resumed goes on where it is, since it has told its peers so; one whose resume
 * has failed goes back, if the old device is still there, and else stays parked.
 *
 * Return: 0 (also when it is on its way back), -EALREADY: it has ended.
 */
int repath_op_abort(struct repath_op *op)
{
	lockdep_assert_held(&repath_op_mutex);
	switch (op->state) {
	case REPATH_OP_ABORTING:
		return 0;
	case REPATH_OP_CHECKING:
		repath_stat_inc(op->dev, REPATH_STAT_OP_ABORT);
		repath_op_say(op, ECANCELED, "aborted by the administrator");
		repath_op_refuse(op);
		return 0;
	case REPATH_OP_SUSPENDING:
	case REPATH_OP_SUSPENDED:
	case REPATH_OP_PARKED:
	case REPATH_OP_RESUMING:
		repath_stat_inc(op->dev, REPATH_STAT_OP_ABORT);
		repath_op_unsay(op);
		/* With the old device gone, what is resuming now can only end as resumed. */
		if (!op->dev_gone)
			op->kind = REPATH_OP_SUSPEND;
		repath_op_say(op, ECANCELED, "aborted by the administrator");
		repath_op_go_back(op);
		repath_op_wake();
		return 0;
	default:
		return -EALREADY;
	}
}

/* Is this stage something that can be reported now? */
static bool is_expected(const struct repath_op *op, u8 stage)
{
	switch (op->state) {
	case REPATH_OP_CHECKING:
		return stage == REPATH_STAGE_CHECK;
	case REPATH_OP_SUSPENDING:
		return stage >= REPATH_STAGE_GATE && stage <= REPATH_STAGE_RELEASE;
	case REPATH_OP_RESUMING:
		return stage >= REPATH_STAGE_OPEN && stage <= REPATH_STAGE_REPLAY;
	case REPATH_OP_PARKED:
		return stage >= REPATH_STAGE_OPEN;
	case REPATH_OP_ABORTING:
		return stage == REPATH_STAGE_ABORT;
	default:
		return false;
	}
}

/**
 * repath_op_reply - a process has reached a stage, or can not
 * @op: operation
 * @p: the process in it
 * @stage: enum repath_stage
 * @err: positive errno, or 0
 * @reason: for a person, or NULL
 * @counters: or NULL
 *
 * What is reported late, or twice, is not wrong; it changes nothing.
 *
 * Context: repath_op_mutex held.
 */
void repath_op_reply(struct repath_op *op, struct repath_op_proc *p, u8 stage, u32 err,
		     const char *reason, const struct repath_counters *counters)
{
	lockdep_assert_held(&repath_op_mutex);
	if (counters) {
		p->counters = *counters;
		p->counted = true;
	}
	trace_op_stage(op->id, pid_nr(p->tgid), stage, err);
	/* It leaves its device next, even if it is late to do so. */
	if (stage == REPATH_STAGE_DRAIN && !err)
		repath_op_keep(op, p);
	if (!is_expected(op, stage))
		return;
	p->err = err;
	strscpy(p->reason, reason ?: "", sizeof(p->reason));
	if (!err) {
		p->stage = stage;
		p->stage_ns[stage] = ktime_get_boottime_ns() - op->started_ns;
	}
	if (stage >= REPATH_STAGE_REPLAY && !err)
		repath_op_unkeep(p);
	if (stage == REPATH_STAGE_CHECK || stage == REPATH_STAGE_ABORT)
		p->answered = true;
	repath_op_event(op);
	repath_op_wake();
}

/**
 * repath_op_ctx_gone - a user context was closed
 * @dev: of which device
 */
void repath_op_ctx_gone(struct repath_device *dev)
{
	repath_op_wake();
}

/**
 * repath_op_conn_changed - a connection may be READY now, or a message answered
 */
void repath_op_conn_changed(void)
{
	repath_op_wake();
}

/**
 * repath_op_device_removed - a device goes away
 * @dev: device
 *
 * Its operations hold it; they learn that it can not be gone back to. Nothing is waited for.
 */
void repath_op_device_removed(struct repath_device *dev)
{
	struct repath_op *op;

	mutex_lock(&repath_op_mutex);
	for (op = repath_op_next(0); op; op = repath_op_next(op->id))
		if (op->dev == dev) {
			op->dev_gone = true;
			repath_unplug_left(op);
		}
	mutex_unlock(&repath_op_mutex);
	repath_op_wake();
}

/**
 * repath_op_proc_left - a process is not there any more
 * @proc: process
 */
void repath_op_proc_left(struct repath_proc *proc)
{
	struct repath_op_proc *p;
	struct repath_op *op;

	mutex_lock(&repath_op_mutex);
	for (op = repath_op_next(0); op; op = repath_op_next(op->id)) {
		p = repath_op_proc_find(op, proc);
		if (!p)
			continue;
		if (repath_op_is_final(op)) {
			repath_proc_put(p->proc);
			p->proc = NULL;
		} else {
			pr_info("repath: operation %u on %s: PID %d has left after stage %s\n", op->id,
				op->dev_name, pid_nr(p->tgid), repath_op_stage_name(p->stage));
			repath_op_proc_free(op, p);
			repath_op_event(op);
		}
	}
	mutex_unlock(&repath_op_mutex);
	repath_op_wake();
}
