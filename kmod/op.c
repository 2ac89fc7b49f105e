// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine of an operation. One worker advances all operations; everything that happens
 * only notes itself and wakes it, so that no handler waits and the order of locks is plain.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <linux/stdarg.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "device.h"
#include "op.h"
#include "proc.h"

#define FINISHED_MAX	64
#define HELLO_TIME	(2 * HZ)
#define POLL_PERIOD	msecs_to_jiffies(10)

DEFINE_MUTEX(repath_op_mutex);

static LIST_HEAD(ops);
static u32 next_id;
static struct workqueue_struct *op_wq;
static struct delayed_work op_work;

static void wake(void)
{
	if (op_wq)
		mod_delayed_work(op_wq, &op_work, 0);
}

/**
 * repath_op_state_name - a state for a person
 * @state: enum repath_op_state
 */
const char *repath_op_state_name(u8 state)
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

static bool is_final(u8 state)
{
	return state == REPATH_OP_RESUMED || state == REPATH_OP_FAILED ||
	       state == REPATH_OP_CHECKED;
}

bool repath_op_is_final(const struct repath_op *op)
{
	return is_final(op->state);
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

static void unsay(struct repath_op *op)
{
	op->err = 0;
	op->reason[0] = 0;
}

/* --- lists --- */

static void proc_free(struct repath_op *op, struct repath_op_proc *p)
{
	list_del(&p->node);
	op->nprocs--;
	repath_proc_put(p->proc);
	put_pid(p->tgid);
	kfree(p);
}

static void op_free(struct repath_op *op)
{
	struct repath_op_proc *p, *next;

	list_for_each_entry_safe(p, next, &op->procs, node)
		proc_free(op, p);
	if (op->pinned)
		module_put(THIS_MODULE);
	if (op->new_dev)
		repath_device_put(op->new_dev);
	repath_device_put(op->dev);
	put_pid_ns(op->ns);
	if (!is_final(op->state))
		put_net(op->net);
	list_del(&op->node);
	kfree(op);
}

/* The newest finished ones are kept, so that their end can be asked for. */
static void forget_old(void)
{
	struct repath_op *op, *next;
	unsigned int finished = 0;

	list_for_each_entry_safe_reverse(op, next, &ops, node)
		if (is_final(op->state) && ++finished > FINISHED_MAX)
			op_free(op);
}

struct repath_op *repath_op_find(u32 id)
{
	struct repath_op *op;

	lockdep_assert_held(&repath_op_mutex);
	list_for_each_entry(op, &ops, node)
		if (op->id == id)
			return op;
	return NULL;
}

/* The operation after number @after: numbers grow along the list. */
struct repath_op *repath_op_next(u32 after)
{
	struct repath_op *op;

	lockdep_assert_held(&repath_op_mutex);
	list_for_each_entry(op, &ops, node)
		if (op->id > after)
			return op;
	return NULL;
}

/* The operation that @dev is in: suspended from it, or being resumed on it. */
struct repath_op *repath_op_on(const struct repath_device *dev)
{
	struct repath_op *op;

	lockdep_assert_held(&repath_op_mutex);
	list_for_each_entry(op, &ops, node)
		if (!is_final(op->state) &&
		    (op->dev == dev || (op->state == REPATH_OP_RESUMING && op->new_dev == dev)))
			return op;
	return NULL;
}

u32 repath_op_of_device(struct repath_device *dev)
{
	struct repath_op *op;
	u32 id;

	mutex_lock(&repath_op_mutex);
	op = repath_op_on(dev);
	id = op ? op->id : 0;
	mutex_unlock(&repath_op_mutex);
	return id;
}

struct repath_op_proc *repath_op_proc_find(struct repath_op *op, const struct repath_proc *proc)
{
	struct repath_op_proc *p;

	lockdep_assert_held(&repath_op_mutex);
	list_for_each_entry(p, &op->procs, node)
		if (p->proc == proc)
			return p;
	return NULL;
}

/**
 * repath_op_proc_add - a process takes part
 * @op: operation
 * @proc: process; may be in it already
 *
 * Return: its entry, or NULL without memory.
 */
struct repath_op_proc *repath_op_proc_add(struct repath_op *op, struct repath_proc *proc)
{
	struct repath_op_proc *p = repath_op_proc_find(op, proc);

	if (p)
		return p;
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return NULL;
	p->proc = repath_proc_get(proc);
	p->tgid = get_pid(proc->tgid);
	strscpy(p->comm, proc->comm, sizeof(p->comm));
	list_add_tail(&p->node, &op->procs);
	op->nprocs++;
	return p;
}

/* --- states --- */

static void set_state(struct repath_op *op, u8 state)
{
	bool suspends = state == REPATH_OP_SUSPENDING || state == REPATH_OP_SUSPENDED ||
			state == REPATH_OP_RESUMING || state == REPATH_OP_ABORTING ||
			state == REPATH_OP_PARKED;

	op->state = state;
	/* Without the module nobody could wake the processes that wait: it stays as long as they do. */
	if (suspends && !op->pinned)
		op->pinned = try_module_get(THIS_MODULE);
	if (!suspends && op->pinned) {
		op->pinned = false;
		module_put(THIS_MODULE);
	}
	op->deadline = jiffies + msecs_to_jiffies(op->timeout_ms);
	repath_op_event(op);
	/* History does not keep a namespace alive: net_exit() below forgets it first. */
	if (is_final(state))
		put_net(op->net);
}

static void tell_all(struct repath_op *op, u8 cmd)
{
	struct repath_op_proc *p;
	int err;

	list_for_each_entry(p, &op->procs, node) {
		p->answered = false;
		p->err = 0;
		p->reason[0] = 0;
		err = p->proc ? repath_op_tell(op, p, cmd) : -ESRCH;
		if (err == -ESRCH || err == -ECONNREFUSED) {
			/* It is leaving; repath_op_proc_left() takes it out. */
			continue;
		} else if (err) {
			p->answered = true;
			p->err = -err;
			strscpy(p->reason, "it does not read its socket", sizeof(p->reason));
		}
	}
}

/* Nothing was touched: who was asked is told that it is over, and nobody is waited for. */
static void refuse(struct repath_op *op)
{
	if (op->asked)
		tell_all(op, REPATH_CMD_EV_ABORT);
	set_state(op, REPATH_OP_FAILED);
}

static void begin_abort(struct repath_op *op)
{
	if (op->dev_gone) {
		/* Nowhere to go back to. */
		repath_op_say(op, ENODEV, "%s is gone; resume on another device", op->dev_name);
		set_state(op, REPATH_OP_PARKED);
		return;
	}
	set_state(op, REPATH_OP_ABORTING);
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

static const char *stage_name(u8 stage)
{
	static const char *const names[REPATH_STAGES] = {
		"start", "check", "gate", "drain", "release", "open", "recreate", "connect",
		"replay", "abort",
	};

	return names[stage];
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
				      pid_nr_ns(p->tgid, op->ns), p->comm, stage_name(p->stage));
	return true;
}

static bool not_answered(const struct repath_op_proc *p)
{
	return !p->answered;
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
		return refuse(op);
	}
	if (!op->checked) {
		err = repath_op_check_device(op);
		if (err)
			return refuse(op);
		op->checked = true;
		op->hello_deadline = jiffies + HELLO_TIME;
	}
	if (!op->asked) {
		err = repath_op_check_conns(op);
		if (err == -EAGAIN)
			return;
		if (err)
			return refuse(op);
		op->asked = true;
		op->deadline = jiffies + msecs_to_jiffies(op->timeout_ms);
		tell_all(op, REPATH_CMD_EV_CHECK);
	}
	if (has_failed(op))
		return refuse(op);
	if (any(op, not_answered)) {
		if (is_late(op, not_answered))
			refuse(op);
		return;
	}
	if (repath_op_check_again(op))
		return refuse(op);
	if (op->dry_run) {
		tell_all(op, REPATH_CMD_EV_ABORT);
		return set_state(op, REPATH_OP_CHECKED);
	}
	set_state(op, REPATH_OP_SUSPENDING);
	if (!op->pinned) {
		repath_op_say(op, ESHUTDOWN, "the module is being unloaded");
		return refuse(op);
	}
	tell_all(op, REPATH_CMD_EV_SUSPEND);
}

static void advance_suspending(struct repath_op *op)
{
	if (has_failed(op))
		return begin_abort(op);
	if (!any(op, not_released)) {
		if (op->force && !op->killed) {
			op->killed = true;
			repath_op_kill_foreign(op);
		}
		if (repath_op_is_released(op))
			return set_state(op, REPATH_OP_SUSPENDED);
		if (time_before(jiffies, op->deadline))
			return;
		repath_op_say(op, EBUSY, "%s was opened again meanwhile", op->dev_name);
		return begin_abort(op);
	}
	if (is_late(op, not_released))
		begin_abort(op);
}

static void advance_aborting(struct repath_op *op)
{
	if (any(op, not_answered)) {
		if (is_late(op, not_answered))
			set_state(op, REPATH_OP_PARKED);
		return;
	}
	set_state(op, has_failed(op) ? REPATH_OP_PARKED : REPATH_OP_FAILED);
}

static void advance_resuming(struct repath_op *op)
{
	if (any(op, not_replayed)) {
		if (is_late(op, not_replayed))
			set_state(op, REPATH_OP_PARKED);
		return;
	}
	set_state(op, has_failed(op) ? REPATH_OP_PARKED : REPATH_OP_RESUMED);
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
			/* Who was late may have come. With nobody left there is nothing to resume. */
			if (is_replayed(op)) {
				unsay(op);
				set_state(op, op->kind == REPATH_OP_RESUME ? REPATH_OP_RESUMED
									   : REPATH_OP_FAILED);
			}
			break;
		}
	} while (op->state != before);
}

/* What nobody tells of must be looked at: contexts, the carrier. */
static unsigned long next_look(const struct repath_op *op)
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
	default:
		return MAX_JIFFY_OFFSET;
	}
	left = time_after(left, now) ? left - now : 1;
	if (op->state == REPATH_OP_SUSPENDING)
		left = min(left, POLL_PERIOD);
	return left;
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
	struct repath_op *op;

	lockdep_assert_held(&repath_op_mutex);
	list_for_each_entry(op, &ops, node) {
		advance(op);
		next = min(next, next_look(op));
	}
	forget_old();
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

/* --- what is asked --- */

/**
 * repath_op_start - begin to suspend a device
 * @dev: device; nothing is under way on it
 * @net: namespace of the administrator
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
	op = kzalloc(sizeof(*op), GFP_KERNEL);
	if (!op)
		return NULL;
	op->id = ++next_id;
	op->kind = REPATH_OP_SUSPEND;
	op->dev = repath_device_get(dev);
	op->net = get_net(net);
	op->ns = get_pid_ns(ns);
	INIT_LIST_HEAD(&op->procs);
	op->started_ns = ktime_get_boottime_ns();
	op->timeout_ms = timeout_ms ?: REPATH_OP_TIMEOUT_MS;
	op->force = force;
	op->dry_run = dry_run;
	op->dev_gone = READ_ONCE(dev->removed);
	repath_device_name(dev, op->dev_name);
	list_add_tail(&op->node, &ops);
	set_state(op, REPATH_OP_CHECKING);
	wake();
	return op;
}

/**
 * repath_op_resume - resume what is suspended
 * @op: operation, suspended or parked
 * @dev: where to
 * @timeout_ms: 0: as before
 *
 * Context: repath_op_mutex held.
 * Return: 0, or -EBUSY: it is in another state.
 */
int repath_op_resume(struct repath_op *op, struct repath_device *dev, u32 timeout_ms)
{
	struct repath_op_proc *p;
	int err;

	lockdep_assert_held(&repath_op_mutex);
	if (op->state != REPATH_OP_SUSPENDED && op->state != REPATH_OP_PARKED)
		return -EBUSY;
	unsay(op);
	op->kind = REPATH_OP_RESUME;
	if (timeout_ms)
		op->timeout_ms = timeout_ms;
	if (op->new_dev)
		repath_device_put(op->new_dev);
	op->new_dev = repath_device_get(dev);
	set_state(op, REPATH_OP_RESUMING);
	list_for_each_entry(p, &op->procs, node) {
		/* Who has resumed, here or back on the old device, stays as it is. */
		if (p->stage == REPATH_STAGE_REPLAY)
			continue;
		if (p->stage == REPATH_STAGE_ABORT) {
			p->stage = REPATH_STAGE_REPLAY;
			continue;
		}
		p->err = 0;
		p->reason[0] = 0;
		p->stage_ns[REPATH_STAGE_NONE] = ktime_get_boottime_ns() - op->started_ns;
		err = p->proc ? repath_op_tell(op, p, REPATH_CMD_EV_RESUME) : 0;
		if (err && err != -ESRCH && err != -ECONNREFUSED) {
			p->err = -err;
			strscpy(p->reason, "it does not read its socket", sizeof(p->reason));
		}
	}
	wake();
	return 0;
}

/**
 * repath_op_abort - go back to the old device
 * @op: operation
 *
 * Context: repath_op_mutex held.
 * Return: 0 (also when it is on its way back), -EALREADY: it has ended, -EBUSY: it is resuming.
 */
int repath_op_abort(struct repath_op *op)
{
	lockdep_assert_held(&repath_op_mutex);
	switch (op->state) {
	case REPATH_OP_ABORTING:
		return 0;
	case REPATH_OP_RESUMING:
		return -EBUSY;
	case REPATH_OP_CHECKING:
		repath_op_say(op, ECANCELED, "aborted by the administrator");
		refuse(op);
		return 0;
	case REPATH_OP_SUSPENDING:
	case REPATH_OP_SUSPENDED:
	case REPATH_OP_PARKED:
		unsay(op);
		op->kind = REPATH_OP_SUSPEND;
		repath_op_say(op, ECANCELED, "aborted by the administrator");
		begin_abort(op);
		wake();
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
	if (!is_expected(op, stage))
		return;
	p->err = err;
	strscpy(p->reason, reason ?: "", sizeof(p->reason));
	if (!err) {
		p->stage = stage;
		p->stage_ns[stage] = ktime_get_boottime_ns() - op->started_ns;
	}
	if (stage == REPATH_STAGE_CHECK || stage == REPATH_STAGE_ABORT)
		p->answered = true;
	repath_op_event(op);
	wake();
}

/* --- what happens --- */

/**
 * repath_op_ctx_gone - a user context was closed
 * @dev: of which device
 */
void repath_op_ctx_gone(struct repath_device *dev)
{
	wake();
}

/**
 * repath_op_conn_changed - a connection may be READY now, or a message answered
 */
void repath_op_conn_changed(void)
{
	wake();
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
	list_for_each_entry(op, &ops, node)
		if (op->dev == dev)
			op->dev_gone = true;
	mutex_unlock(&repath_op_mutex);
	wake();
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
	list_for_each_entry(op, &ops, node) {
		p = repath_op_proc_find(op, proc);
		if (!p)
			continue;
		if (is_final(op->state)) {
			repath_proc_put(p->proc);
			p->proc = NULL;
		} else {
			proc_free(op, p);
			repath_op_event(op);
		}
	}
	mutex_unlock(&repath_op_mutex);
	wake();
}

/* Operations that have not ended hold the namespace, so these have. */
static void __net_exit net_exit(struct net *net)
{
	struct repath_op *op, *next;

	mutex_lock(&repath_op_mutex);
	list_for_each_entry_safe(op, next, &ops, node)
		if (op->net == net && is_final(op->state))
			op_free(op);
	mutex_unlock(&repath_op_mutex);
}

static struct pernet_operations net_ops = {
	.exit = net_exit,
};

int repath_op_init(void)
{
	int err;

	INIT_DELAYED_WORK(&op_work, work);
	op_wq = alloc_ordered_workqueue("repath_op", 0);
	if (!op_wq)
		return -ENOMEM;
	err = register_pernet_subsys(&net_ops);
	if (err) {
		destroy_workqueue(op_wq);
		op_wq = NULL;
	}
	return err;
}

/*
 * Netlink and the devices are gone. An operation with suspended processes has held the module, so
 * what is left has ended, or has touched nothing.
 */
void repath_op_exit(void)
{
	struct repath_op *op, *next;

	if (op_wq) {
		unregister_pernet_subsys(&net_ops);
		cancel_delayed_work_sync(&op_work);
		destroy_workqueue(op_wq);
		op_wq = NULL;
	}
	mutex_lock(&repath_op_mutex);
	list_for_each_entry_safe(op, next, &ops, node)
		op_free(op);
	mutex_unlock(&repath_op_mutex);
}
