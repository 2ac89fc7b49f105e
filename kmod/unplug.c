// SPDX-License-Identifier: GPL-2.0
/*
 * A device that is simply unplugged. ib_client remove() comes to us first, while processes still
 * can use the device, and may wait: so it is suspended as if somebody had asked for it, and
 * resumed when another one of its kind is there. The wait has a deadline well below that of the
 * hung-task watch, and never is for the resume: other devices may not be probed meanwhile.
 */
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "device.h"
#include "op.h"
#include "range.h"
#include "stat.h"
#include "track.h"
#include "unplug.h"

#define UNPLUG_MAX_MS	60000	/* half of what the hung-task watch allows */

static unsigned int unplug_ms;
REPATH_RANGE_PARAM(unplug_ms, 0, UNPLUG_MAX_MS, 0444);
MODULE_PARM_DESC(unplug_ms,
		 "How long the removal of a device waits for its processes to be suspended, in ms (0: not at all; 20000 is a good value, 60000 the most)");

static bool auto_resume = true;
module_param(auto_resume, bool, 0644);
MODULE_PARM_DESC(auto_resume,
		 "Resume what an unplugged device has left suspended when one of the same kind comes, or on one that nobody uses (Y)");

#define ROLL_BACK_TIME	(2 * HZ)	/* for those that could not leave the device in time */
#define AUTO_PERIOD	(HZ / 2)
#define AUTO_TRIES	10

/* The module goes, not the devices. Written under repath_op_mutex. */
static bool ending;

/* --- rdma dev set netns: the device goes only to come back --- */

/* Tasks that do it now: few. */
static struct task_struct *renaming[8];

static int on_netns_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(renaming); i++)
		if (!cmpxchg(&renaming[i], NULL, current))
			break;
	return 0;
}
NOKPROBE_SYMBOL(on_netns_entry);

static int on_netns_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(renaming); i++)
		cmpxchg(&renaming[i], current, NULL);
	return 0;
}
NOKPROBE_SYMBOL(on_netns_return);

#define NETNS_PROBE(symbol) {			\
	.kp.symbol_name	= symbol,		\
	.entry_handler	= on_netns_entry,	\
	.handler	= on_netns_return,	\
	.maxactive	= ARRAY_SIZE(renaming),	\
}

static struct kretprobe netns_probes[] = {
	NETNS_PROBE("ib_device_set_netns_put"),
	NETNS_PROBE("rdma_dev_exit_net"),
};
static bool netns_probed[ARRAY_SIZE(netns_probes)];

static bool changes_netns(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(renaming); i++)
		if (READ_ONCE(renaming[i]) == current)
			return true;
	return false;
}

/* --- the device goes --- */

/* Does it still carry packets? Else there is nobody to drain to, and nothing to decide. */
static bool device_works(struct repath_device *dev)
{
	struct ib_port_attr attr;
	bool works = false;
	u32 port;

	if (!repath_device_use(dev))
		return false;
	rdma_for_each_port(dev->ibdev, port)
		works |= !ib_query_port(dev->ibdev, port, &attr) && attr.state == IB_PORT_ACTIVE;
	repath_device_unuse(dev);
	return works;
}

static void tell_loss(struct repath_op *op, const char *why)
{
	lockdep_assert_held(&repath_op_mutex);
	repath_op_say(op, ENODEV, "unplanned: %s was removed while in use%s; what used it has lost it",
		      op->dev_name, why);
	pr_info("repath: %s was removed while in use%s; what used it has lost it\n", op->dev_name,
		why);
	repath_stat_inc(op->dev, REPATH_STAT_UNPLUG_LOST);
}

static struct repath_op *begin(struct repath_device *dev, struct completion *settled)
{
	struct repath_op *op = repath_op_on(dev);

	lockdep_assert_held(&repath_op_mutex);
	if (op) {
		/* Somebody asked for it a moment ago. Else there is nothing left on the device. */
		if (op->dev == dev &&
		    (op->state == REPATH_OP_CHECKING || op->state == REPATH_OP_SUSPENDING))
			op->settled = settled;
		return op;
	}
	op = repath_op_start(dev, repath_device_net(dev), &init_pid_ns, unplug_ms, false, false);
	if (!op)
		return NULL;
	op->unplug = true;
	op->settled = settled;
	return op;
}

/* Past the deadline: whoever still can goes back, to lose the device as it would have without us. */
static void give_up(u32 id, struct completion *settled)
{
	struct repath_op *op;

	mutex_lock(&repath_op_mutex);
	op = repath_op_find(id);
	if (op && op->settled && (op->state == REPATH_OP_CHECKING ||
				  op->state == REPATH_OP_SUSPENDING)) {
		repath_op_say(op, ETIMEDOUT, "not suspended within %u ms of its removal", unplug_ms);
		if (op->state == REPATH_OP_CHECKING)
			repath_op_refuse(op);
		else
			repath_op_go_back(op);
		repath_op_wake();
	}
	mutex_unlock(&repath_op_mutex);
	wait_for_completion_timeout(settled, ROLL_BACK_TIME);
}

/**
 * repath_unplug_removed - a device is being removed: let its processes leave it first
 * @dev: device, which still works
 *
 * Nothing is waited for if nobody uses the device, if it does not work any more, when this module
 * goes, when the device only changes its network namespace, or if nobody is to be asked (unplug_ms 0).
 * The log says the last two.
 *
 * Context: ib_client remove(), before anything else.
 */
void repath_unplug_removed(struct repath_device *dev)
{
	DECLARE_COMPLETION_ONSTACK(settled);
	char name[IB_DEVICE_NAME_MAX];
	struct repath_op *op;
	bool wait = false, works;
	u32 id = 0;

	if (READ_ONCE(ending) || !repath_device_ctx_count(dev))
		return;
	repath_device_name(dev, name);
	if (changes_netns()) {
		pr_info("repath: %s goes to another network namespace while in use; what used it loses it\n",
			name);
		return;
	}
	if (!READ_ONCE(unplug_ms)) {
		pr_info("repath: %s is removed while in use; with unplug_ms 0 nobody is asked to leave it\n",
			name);
		return;
	}
	/* Dead firmware may take long to say so; questions of other hosts wait for the mutex. */
	works = device_works(dev);
	mutex_lock(&repath_op_mutex);
	op = begin(dev, &settled);
	if (op) {
		id = op->id;
		wait = op->settled == &settled;
	}
	if (wait && op->unplug) {
		repath_stat_inc(dev, REPATH_STAT_UNPLUG);
		if (!works) {
			tell_loss(op, ", and did not work any more");
			op->settled = NULL;
			wait = false;
			repath_op_refuse(op);
		}
	}
	mutex_unlock(&repath_op_mutex);
	if (!wait)
		return;

	if (!wait_for_completion_timeout(&settled, msecs_to_jiffies(unplug_ms)))
		give_up(id, &settled);

	mutex_lock(&repath_op_mutex);
	op = repath_op_find(id);
	if (op)
		op->settled = NULL;
	if (op && op->unplug && op->state != REPATH_OP_SUSPENDED) {
		tell_loss(op, "");
		repath_op_event(op);
	}
	mutex_unlock(&repath_op_mutex);
}

/* --- another one comes --- */

static struct delayed_work auto_work;
static bool arrived;	/* a device, since auto_fn() looked */

static bool is_waiting(const struct repath_op *op)
{
	return op->unplug && op->dev_gone && op->auto_tries < AUTO_TRIES &&
	       (op->state == REPATH_OP_SUSPENDED || op->state == REPATH_OP_PARKED);
}

/* As ib_core has heard of it: firmware that does not answer would keep all who wait for the mutex. */
static bool is_up(struct repath_device *dev)
{
	enum ib_port_state state;
	bool up = false;
	u32 port;

	if (!repath_device_use(dev))
		return false;
	rdma_for_each_port(dev->ibdev, port)
		up |= !ib_get_cached_port_state(dev->ibdev, port, &state) && state == IB_PORT_ACTIVE;
	repath_device_unuse(dev);
	return up;
}

/* Only its own place in the network, and its own driver: what it can do is found out by trying. */
static bool is_of_kind(const struct repath_device *dev, const struct repath_device *old,
		       const struct repath_op *op)
{
	return dev != old && dev->ibdev->ops.driver_id == old->ibdev->ops.driver_id &&
	       dev->link_layer == old->link_layer && net_eq(repath_device_net(dev), op->net);
}

/* How well it would do; 0: not at all. One that others use, and that was there all the time, has its own work. */
static int rank(struct repath_device *dev, const struct repath_op *op)
{
	char name[IB_DEVICE_NAME_MAX];

	repath_device_name(dev, name);
	if (!strcmp(name, op->dev_name))
		return 3;
	return !repath_device_ctx_count(dev) ? 2 : op->auto_any;
}

/*
 * The new device for @op: of its name before any other, and then one that nobody uses. With a reference, or NULL;
 * @later: there is one whose port is not up yet.
 */
static struct repath_device *replacement(const struct repath_op *op, bool *later)
{
	struct repath_device *dev, *best = NULL;
	int best_rank = 0;

	repath_device_for_each(dev, NULL) {
		int its = is_of_kind(dev, op->dev, op) && !repath_op_on(dev) ? rank(dev, op) : 0;

		if (its <= best_rank)
			continue;
		if (!is_up(dev)) {
			*later = true;
			continue;
		}
		if (best)
			repath_device_put(best);
		best = repath_device_get(dev);
		best_rank = its;
	}
	return best;
}

/**
 * struct look - at who waits for a device
 * @any: one has come
 * @again: to be looked again soon
 */
struct look {
	bool any;
	bool again;
};

static void resume_one(struct repath_op *op, void *arg)
{
	struct repath_device *dev;
	struct look *look = arg;

	/* A resume may fail and be worth another try. */
	if (op->unplug && op->auto_tries && op->state == REPATH_OP_RESUMING)
		look->again = true;
	if (!is_waiting(op))
		return;
	op->auto_any |= look->any;
	dev = replacement(op, &look->again);
	if (!dev)
		return;
	op->auto_tries++;
	repath_op_resume(op, dev, 0);
	repath_device_put(dev);
	look->again = true;
}

static void auto_fn(struct work_struct *work)
{
	struct look look = { 0 };

	if (!READ_ONCE(auto_resume))
		return;
	mutex_lock(&repath_op_mutex);
	look.any = xchg(&arrived, false);
	repath_op_for_each(resume_one, &look);
	mutex_unlock(&repath_op_mutex);
	if (look.again)
		queue_delayed_work(system_unbound_wq, &auto_work, AUTO_PERIOD);
}

/**
 * repath_unplug_added - a device has come: it may be what processes wait for
 */
void repath_unplug_added(void)
{
	if (!unplug_ms)
		return;
	WRITE_ONCE(arrived, true);
	mod_delayed_work(system_unbound_wq, &auto_work, 0);
}

/**
 * repath_unplug_left - processes have left a device that has gone: what they wait for may be there already
 * @op: operation
 *
 * Context: repath_op_mutex held.
 */
void repath_unplug_left(const struct repath_op *op)
{
	lockdep_assert_held(&repath_op_mutex);
	if (is_waiting(op) && !ending)
		queue_delayed_work(system_unbound_wq, &auto_work, AUTO_PERIOD);
}

/**
 * repath_unplug_ending - from now on devices go because the module does
 */
void repath_unplug_ending(void)
{
	mutex_lock(&repath_op_mutex);
	WRITE_ONCE(ending, true);
	mutex_unlock(&repath_op_mutex);
}

int __init repath_unplug_init(void)
{
	int i;

	INIT_DELAYED_WORK(&auto_work, auto_fn);
	if (!unplug_ms)
		return 0;
	for (i = 0; i < ARRAY_SIZE(netns_probes); i++) {
		/* Without it a change of namespace is taken for a removal, which is only slower. */
		netns_probed[i] = !register_kretprobe(&netns_probes[i]);
		if (!netns_probed[i])
			pr_info("repath: no probe on %s: a device that changes its network namespace is suspended\n",
				netns_probes[i].kp.symbol_name);
	}
	return 0;
}

/* No device is left, so nobody waits and nobody queues the work; operations may still be there. */
void repath_unplug_exit(void)
{
	int i;

	cancel_delayed_work_sync(&auto_work);
	for (i = 0; i < ARRAY_SIZE(netns_probes); i++)
		if (netns_probed[i])
			unregister_kretprobe(&netns_probes[i]);
}
