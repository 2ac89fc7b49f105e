// SPDX-License-Identifier: GPL-2.0
/* The state of an operation: what it is called, what comes with it, and why it is what it is. */
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/stdarg.h>

#include "op.h"
#include "stat.h"
#include "trace.h"
#include "unplug.h"

/**
 * state_name - a state for a person
 * @state: enum repath_op_state
 */
static const char *state_name(u8 state)
{
	static const char *const names[] = {
		[REPATH_OP_CHECKING]	= "being checked",
		[REPATH_OP_SUSPENDING]	= "suspending",
		[REPATH_OP_SUSPENDED]	= "suspended",
		[REPATH_OP_RESUMING]	= "resuming",
		[REPATH_OP_RESUMED]	= "resumed",
		[REPATH_OP_ABORTING]	= "aborting",
		[REPATH_OP_FAILED]	= "failed",
		[REPATH_OP_PARKED]	= "parked",
		[REPATH_OP_CHECKED]	= "checked",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

/**
 * repath_op_stage_name - a stage for a person
 * @stage: enum repath_stage
 */
const char *repath_op_stage_name(u8 stage)
{
	static const char *const names[REPATH_STAGES] = {
		"start", "check", "gate", "drain", "release", "open", "recreate", "connect",
		"replay", "abort",
	};

	return names[stage];
}

/**
 * repath_op_is_final - has it ended?
 * @op: operation
 */
bool repath_op_is_final(const struct repath_op *op)
{
	return op->state == REPATH_OP_RESUMED || op->state == REPATH_OP_FAILED ||
	       op->state == REPATH_OP_CHECKED;
}

/**
 * repath_op_say - note why an operation fails
 * @op: operation
 * @err: positive errno
 * @fmt: for a person; added to what was said before
 */
void repath_op_say(struct repath_op *op, u32 err, const char *fmt, ...)
{
	size_t len = strlen(op->reason);
	va_list args;

	lockdep_assert_held(&repath_op_mutex);
	if (!op->err)
		op->err = err;
	if (len)
		len += scnprintf(op->reason + len, sizeof(op->reason) - len, "; ");
	va_start(args, fmt);
	vscnprintf(op->reason + len, sizeof(op->reason) - len, fmt, args);
	va_end(args);
}

/**
 * repath_op_unsay - it does not fail any more
 * @op: operation
 */
void repath_op_unsay(struct repath_op *op)
{
	op->err = 0;
	op->reason[0] = 0;
}

/*
 * For who reads the log later. A reason may be a process's own words: nothing that is not printable
 * gets there.
 */
static void log_state(const struct repath_op *op)
{
	switch (op->state) {
	case REPATH_OP_CHECKING:
	case REPATH_OP_SUSPENDING:
	case REPATH_OP_RESUMING:
		return;
	default:
		pr_info("repath: operation %u on %s: %s%s%*pE\n", op->id, op->dev_name,
			state_name(op->state), op->reason[0] ? ": " : "",
			(int)strlen(op->reason), op->reason);
	}
}

/* @was: the state before; a new operation's is its own. */
static void count_state(const struct repath_op *op, u8 was)
{
	switch (op->state) {
	case REPATH_OP_SUSPENDED:
		repath_stat_inc(op->dev, REPATH_STAT_OP_SUSPENDED);
		break;
	case REPATH_OP_RESUMED:
		repath_stat_inc(op->dev, REPATH_STAT_OP_RESUMED);
		break;
	case REPATH_OP_PARKED:
		repath_stat_inc(op->dev, REPATH_STAT_OP_PARKED);
		break;
	case REPATH_OP_FAILED:
		repath_stat_inc(op->dev, was == REPATH_OP_CHECKING ? REPATH_STAT_OP_REFUSED :
							     REPATH_STAT_OP_ROLLED_BACK);
		break;
	}
}

/**
 * repath_op_unpin - no process waits for this operation: the module may go
 * @op: operation
 */
void repath_op_unpin(struct repath_op *op)
{
	if (op->pinned)
		module_put(THIS_MODULE);
	op->pinned = false;
}

/**
 * repath_op_set_state - go on to another state
 * @op: operation
 * @state: enum repath_op_state
 *
 * Context: repath_op_mutex held.
 */
void repath_op_set_state(struct repath_op *op, u8 state)
{
	bool suspends = state == REPATH_OP_SUSPENDING || state == REPATH_OP_SUSPENDED ||
			state == REPATH_OP_RESUMING || state == REPATH_OP_ABORTING ||
			state == REPATH_OP_PARKED;
	struct repath_op_proc *p;
	u8 was = op->state;

	lockdep_assert_held(&repath_op_mutex);
	op->state = state;
	count_state(op, was);
	trace_op(op->id, op->dev_name, was, state, op->err);
	/* Without the module nobody could wake the processes that wait: it stays as long as they do. */
	if (suspends && op->nprocs && !op->pinned)
		op->pinned = try_module_get(THIS_MODULE);
	if (!suspends)
		repath_op_unpin(op);
	op->deadline = jiffies + msecs_to_jiffies(op->timeout_ms);
	log_state(op);
	repath_op_event(op);
	repath_unplug_left(op);
	/* Whoever removes the device waits for what becomes of it. */
	if (op->settled && state != REPATH_OP_SUSPENDING && state != REPATH_OP_ABORTING)
		complete(op->settled);
	if (!repath_op_is_final(op))
		return;
	list_for_each_entry(p, &op->procs, node)
		repath_op_unkeep(p);
}
