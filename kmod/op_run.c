// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine of an operation. One worker advances all operations; everything that happens
 * only notes itself and wakes it, so that no handler waits and the order of locks is plain.
 */
#include <linux/jiffies.h>
#include <linux/pid_namespace.h>
#include <linux/workqueue.h>

#include "device.h"
#include "op.h"
#include "proc.h"

#define HELLO_TIME	(2 * HZ)
#define POLL_PERIOD	msecs_to_jiffies(10)
#define TELL_PERIOD	msecs_to_jiffies(100)

static struct workqueue_struct *op_wq;
static struct delayed_work op_work;

/**
 * repath_op_wake - something has happened that an operation may wait for
 *
 * Context: any.
 */
void repath_op_wake(void)
{
	if (op_wq)
		mod_delayed_work(op_wq, &op_work, 0);
}

/* It is leaving; repath_op_proc_left() takes it out. */
static bool is_leaving(int err)
{
	return err == -ESRCH || err == -ECONNREFUSED;
}

/**
 * tell_all - an event for all that take part
 * @op: operation
 * @cmd: REPATH_CMD_EV_CHECK, _SUSPEND or _ABORT
 */
static void tell_all(struct repath_op *op, u8 cmd)
{
	struct repath_op_proc *p;
	int err;

	list_for_each_entry(p, &op->procs, node) {
		p->answered = false;
		p->untold = false;
		p->err = 0;
		p->reason[0] = 0;
		err = p->proc ? repath_op_tell(op, p, cmd) : -ESRCH;
		if (is_leaving(err)) {
			continue;
		} else if (err && cmd == REPATH_CMD_EV_ABORT) {
			/* Nothing else would let it go on. */
			p->untold = true;
		} else if (err) {
			p->answered = true;
			p->err = -err;
			strscpy(p->reason, "it does not read its socket", sizeof(p->reason));
		}
	}
}

static void tell_untold(struct repath_op *op)
{
	struct repath_op_proc *p;
	int err;

	list_for_each_entry(p, &op->procs, node) {
		if (!p->untold)
			continue;
		err = p->proc ? repath_op_tell(op, p, REPATH_CMD_EV_ABORT) : -ESRCH;
		p->untold = err && !is_leaving(err);
	}
}

/**
 * repath_op_refuse - nothing was touched: who was asked is told so, and nobody is waited for
 * @op: operation
 */
void repath_op_refuse(struct repath_op *op)
{
	if (op->asked)
		tell_all(op, REPATH_CMD_EV_ABORT);
	repath_op_set_state(op, REPATH_OP_FAILED);
}

/**
 * repath_op_go_back - to the old device; where there is none any more, processes are parked
 * @op: operation
 */
void repath_op_go_back(struct repath_op *op)
{
	if (op->dev_gone) {
		/* Nowhere to go back to. */
		repath_op_say(op, ENODEV, "%s is gone; resume on another device", op->dev_name);
		repath_op_set_state(op, REPATH_OP_PARKED);
		return;
	}
	repath_op_set_state(op, REPATH_OP_ABORTING);
	tell_all(op, REPATH_CMD_EV_ABORT);
}

/* The first process that has failed says why; others are not needed to understand it. */
static bool has_failed(struct repath_op *op)
{
	struct repath_op_proc *p;

	list_for_each_entry(p, &op->procs, node) {
		if (!p->err)
			continue;
		repath_op_say(op, p->err, REPATH_PROC_FMT ": %s", pid_nr_ns(p->tgid, op->ns),
			      p->comm, p->reason[0] ? p->reason : "no reason given");
		return true;
	}
	return false;
}

/* Past the deadline: name those that have not reached @stage. */
static bool is_late(struct repath_op *op, bool (*waits)(const struct repath_op_proc *p))
{
	struct repath_op_proc *p;

	if (time_before(jiffies, op->deadline))
		return false;
	list_for_each_entry(p, &op->procs, node)
		if (waits(p))
			repath_op_say(op, ETIMEDOUT,
				      REPATH_PROC_FMT " has not gone on after stage %s",
				      pid_nr_ns(p->tgid, op->ns), p->comm, repath_op_stage_name(p->stage));
	return true;
}

static bool not_answered(const struct repath_op_proc *p)
{
	return !p->answered;
}

static bool is_untold(const struct repath_op_proc *p)
{
	return p->untold;
}

static bool not_released(const struct repath_op_proc *p)
{
	return p->stage < REPATH_STAGE_RELEASE;
}

static bool not_replayed(const struct repath_op_proc *p)
{
	return p->stage != REPATH_STAGE_REPLAY && !p->err;
}

static bool any(struct repath_op *op, bool (*is)(const struct repath_op_proc *p))
{
	struct repath_op_proc *p;

	list_for_each_entry(p, &op->procs, node)
		if (is(p))
			return true;
	return false;
}

static void advance_checking(struct repath_op *op)
{
	int err;

	if (op->dev_gone) {
		repath_op_say(op, ENODEV, "%s was removed meanwhile", op->dev_name);
		return repath_op_refuse(op);
	}
	if (!op->checked) {
		err = repath_op_check_device(op);
		if (err)
			return repath_op_refuse(op);
		op->checked = true;
		op->hello_deadline = jiffies + HELLO_TIME;
	}
	if (!op->asked) {
		err = repath_op_check_conns(op);
		if (err == -EAGAIN)
			return;
		if (err)
			return repath_op_refuse(op);
		op->asked = true;
		op->deadline = jiffies + msecs_to_jiffies(op->timeout_ms);
		tell_all(op, REPATH_CMD_EV_CHECK);
	}
	if (has_failed(op))
		return repath_op_refuse(op);
	if (any(op, not_answered)) {
		if (is_late(op, not_answered))
			repath_op_refuse(op);
		return;
	}
	if (repath_op_check_again(op))
		return repath_op_refuse(op);
	if (op->dry_run) {
		tell_all(op, REPATH_CMD_EV_ABORT);
		return repath_op_set_state(op, REPATH_OP_CHECKED);
	}
	repath_op_set_state(op, REPATH_OP_SUSPENDING);
	if (op->nprocs && !op->pinned) {
		repath_op_say(op, ESHUTDOWN, "the module is being unloaded");
		return repath_op_refuse(op);
	}
	tell_all(op, REPATH_CMD_EV_SUSPEND);
}

static void advance_suspending(struct repath_op *op)
{
	if (has_failed(op))
		return repath_op_go_back(op);
	if (!any(op, not_released)) {
		if (op->force && !op->killed) {
			op->killed = true;
			repath_op_kill_foreign(op);
		}
		if (repath_op_is_released(op))
			return repath_op_set_state(op, REPATH_OP_SUSPENDED);
		if (time_before(jiffies, op->deadline))
			return;
		repath_op_say(op, EBUSY, "%s was opened again meanwhile", op->dev_name);
		return repath_op_go_back(op);
	}
	if (is_late(op, not_released))
		repath_op_go_back(op);
}

static void advance_aborting(struct repath_op *op)
{
	tell_untold(op);
	if (any(op, not_answered)) {
		if (is_late(op, not_answered))
			repath_op_set_state(op, REPATH_OP_PARKED);
		return;
	}
	repath_op_set_state(op, has_failed(op) ? REPATH_OP_PARKED : REPATH_OP_FAILED);
}

static void advance_resuming(struct repath_op *op)
{
	if (any(op, not_replayed)) {
		if (is_late(op, not_replayed))
			repath_op_set_state(op, REPATH_OP_PARKED);
		return;
	}
	repath_op_set_state(op, has_failed(op) ? REPATH_OP_PARKED : REPATH_OP_RESUMED);
}

static bool is_replayed(const struct repath_op *op)
{
	const struct repath_op_proc *p;

	list_for_each_entry(p, &op->procs, node)
		if (p->stage != REPATH_STAGE_REPLAY && p->stage != REPATH_STAGE_ABORT)
			return false;
	return true;
}

static void advance(struct repath_op *op)
{
	u8 before;

	do {
		before = op->state;
		switch (op->state) {
		case REPATH_OP_CHECKING:
			advance_checking(op);
			break;
		case REPATH_OP_SUSPENDING:
			advance_suspending(op);
			break;
		case REPATH_OP_ABORTING:
			advance_aborting(op);
			break;
		case REPATH_OP_RESUMING:
			advance_resuming(op);
			break;
		case REPATH_OP_PARKED:
			tell_untold(op);
			/* Who was late may have come. With nobody left there is nothing to resume. */
			if (!is_replayed(op))
				break;
			if (op->kind == REPATH_OP_RESUME) {
				repath_op_unsay(op);
				repath_op_set_state(op, REPATH_OP_RESUMED);
			} else {
				repath_op_set_state(op, REPATH_OP_FAILED);
			}
			break;
		}
	} while (op->state != before);
}

/* What nobody tells of must be looked at: contexts, the carrier. */
static unsigned long next_look(struct repath_op *op)
{
	unsigned long now = jiffies, left;

	switch (op->state) {
	case REPATH_OP_CHECKING:
		left = op->asked ? op->deadline : op->hello_deadline;
		break;
	case REPATH_OP_SUSPENDING:
	case REPATH_OP_ABORTING:
	case REPATH_OP_RESUMING:
		left = op->deadline;
		break;
	case REPATH_OP_PARKED:
		return any(op, is_untold) ? TELL_PERIOD : MAX_JIFFY_OFFSET;
	default:
		return MAX_JIFFY_OFFSET;
	}
	/* Its time may have come since it was put off, and nobody else may wake us. */
	if (op->state == REPATH_OP_CHECKING && !op->asked && op->look_put_off &&
	    time_before(op->look_next, left))
		left = op->look_next;
	left = time_after(left, now) ? left - now : 1;
	if (op->state == REPATH_OP_SUSPENDING)
		left = min(left, POLL_PERIOD);
	else if (op->state == REPATH_OP_ABORTING && any(op, is_untold))
		left = min(left, TELL_PERIOD);
	return left;
}

static void run_one(struct repath_op *op, void *arg)
{
	unsigned long *next = arg;

	advance(op);
	*next = min(*next, next_look(op));
}

/**
 * repath_op_run - advance all operations as far as they go now
 *
 * Context: repath_op_mutex held.
 * Return: in how many jiffies to call it again, if nothing wakes it before.
 */
unsigned long repath_op_run(void)
{
	unsigned long next = MAX_JIFFY_OFFSET;

	lockdep_assert_held(&repath_op_mutex);
	repath_op_for_each(run_one, &next);
	repath_op_forget_old();
	return next;
}

static void work(struct work_struct *unused)
{
	unsigned long next;

	mutex_lock(&repath_op_mutex);
	next = repath_op_run();
	mutex_unlock(&repath_op_mutex);
	if (next != MAX_JIFFY_OFFSET)
		queue_delayed_work(op_wq, &op_work, next);
}

int repath_op_init(void)
{
	int err;

	INIT_DELAYED_WORK(&op_work, work);
	op_wq = alloc_ordered_workqueue("repath_op", 0);
	if (!op_wq)
		return -ENOMEM;
	err = repath_op_list_init();
	if (err) {
		destroy_workqueue(op_wq);
		op_wq = NULL;
	}
	return err;
}

/* Netlink and the devices are gone. */
void repath_op_exit(void)
{
	if (op_wq) {
		repath_op_list_exit();
		cancel_delayed_work_sync(&op_work);
		destroy_workqueue(op_wq);
		op_wq = NULL;
	}
	repath_op_free_all();
}
