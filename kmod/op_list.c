// SPDX-License-Identifier: GPL-2.0
/* Operations and the processes in them: the list, what is kept of what has ended. */
#include <linux/ktime.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "device.h"
#include "op.h"
#include "proc.h"

#define FINISHED_MAX	64

DEFINE_MUTEX(repath_op_mutex);

static LIST_HEAD(ops);
static u32 next_id;

/**
 * repath_op_proc_free - a process takes part no more
 * @op: operation
 * @p: its entry
 */
void repath_op_proc_free(struct repath_op *op, struct repath_op_proc *p)
{
	lockdep_assert_held(&repath_op_mutex);
	list_del(&p->node);
	repath_op_unkeep(p);
	if (!--op->nprocs)
		repath_op_unpin(op);
	repath_proc_put(p->proc);
	put_pid(p->tgid);
	kfree(p);
}

static void op_free(struct repath_op *op)
{
	struct repath_op_proc *p, *next;

	list_for_each_entry_safe(p, next, &op->procs, node)
		repath_op_proc_free(op, p);
	if (op->new_dev)
		repath_device_put(op->new_dev);
	repath_device_put(op->dev);
	put_pid_ns(op->ns);
	list_del(&op->node);
	kfree(op);
}

/**
 * repath_op_forget_old - keep the newest finished ones alone, so that their end can be asked for
 */
void repath_op_forget_old(void)
{
	struct repath_op *op, *next;
	unsigned int finished = 0;

	list_for_each_entry_safe_reverse(op, next, &ops, node)
		if (repath_op_is_final(op) && ++finished > FINISHED_MAX)
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
		if (!repath_op_is_final(op) &&
		    (op->dev == dev || (op->state == REPATH_OP_RESUMING && op->new_dev == dev)))
			return op;
	return NULL;
}

/* Are queue pairs of a process that is on its way on this device, or about to be? */
static bool comes_to(const struct repath_op *op, const struct repath_op_proc *p,
		     const struct repath_device *dev)
{
	switch (op->state) {
	case REPATH_OP_SUSPENDING:	/* what is there is about to go */
		return op->dev == dev && p->stage >= REPATH_STAGE_DRAIN;
	case REPATH_OP_SUSPENDED:
		return false;
	case REPATH_OP_RESUMING:
		return op->new_dev == dev;
	default:	/* it may be late on its way to the new one, or back */
		return op->new_dev == dev || op->dev == dev;
	}
}

/* Has a process, or the one of @cookie, not told yet where it is by which numbers it is known? */
static bool is_between(const struct repath_op *op, const struct repath_device *dev, u64 cookie)
{
	const struct repath_op_proc *p;

	if (op->state == REPATH_OP_CHECKING || repath_op_is_final(op))
		return false;
	list_for_each_entry(p, &op->procs, node)
		if (p->stage < REPATH_STAGE_RECREATE && (!cookie || p->proc->cookie == cookie) &&
		    (!dev || comes_to(op, p, dev)))
			return true;
	return false;
}

/**
 * repath_op_between - are processes between two devices?
 * @net: of the devices
 * @dev: on their way to this one, or leaving it; NULL: wherever they were, and will be
 * @cookie: is the process of this one; 0: is any
 *
 * Their queue pairs are not there, or not known by their numbers yet.
 *
 * Context: repath_op_mutex held.
 */
bool repath_op_between(const struct net *net, const struct repath_device *dev, u64 cookie)
{
	const struct repath_op *op;

	lockdep_assert_held(&repath_op_mutex);
	list_for_each_entry(op, &ops, node)
		if (net_eq(op->net, net) && is_between(op, dev, cookie))
			return true;
	return false;
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

/**
 * repath_op_new - an operation, and the list holds it
 * @dev: device
 * @net: the network namespace that the device belongs to
 * @ns: PID namespace of who asks
 *
 * Context: repath_op_mutex held.
 * Return: the operation, or NULL without memory.
 */
struct repath_op *repath_op_new(struct repath_device *dev, struct net *net,
				struct pid_namespace *ns)
{
	struct repath_op *op;

	lockdep_assert_held(&repath_op_mutex);
	op = kzalloc(sizeof(*op), GFP_KERNEL);
	if (!op)
		return NULL;
	op->id = ++next_id;
	op->dev = repath_device_get(dev);
	/* One that is about to end hands its devices over, and its end has been told already. */
	op->net = check_net(net) ? net : &init_net;
	op->ns = get_pid_ns(ns);
	INIT_LIST_HEAD(&op->procs);
	op->started_ns = ktime_get_boottime_ns();
	repath_device_name(dev, op->dev_name);
	list_add_tail(&op->node, &ops);
	return op;
}

/**
 * repath_op_for_each - call a function for every operation, oldest first
 * @fn: called with each
 * @arg: for @fn
 *
 * Context: repath_op_mutex held.
 */
void repath_op_for_each(void (*fn)(struct repath_op *op, void *arg), void *arg)
{
	struct repath_op *op, *next;

	lockdep_assert_held(&repath_op_mutex);
	list_for_each_entry_safe(op, next, &ops, node)
		fn(op, arg);
}

/**
 * repath_op_net_gone - a network namespace ends
 * @net: the namespace
 *
 * What has ended there is history that nobody can read any more. Its devices go to the initial namespace,
 * and with them what is suspended: a namespace that was left so, by whoever had the right to it, would
 * keep its devices for ever else.
 */
void repath_op_net_gone(struct net *net)
{
	struct repath_op *op, *next;

	mutex_lock(&repath_op_mutex);
	list_for_each_entry_safe(op, next, &ops, node) {
		if (op->net != net)
			continue;
		if (repath_op_is_final(op))
			op_free(op);
		else
			op->net = &init_net;
	}
	mutex_unlock(&repath_op_mutex);
}

static void __net_exit net_exit(struct net *net)
{
	repath_op_net_gone(net);
}

static struct pernet_operations net_ops = {
	.exit = net_exit,
};

int repath_op_list_init(void)
{
	return register_pernet_subsys(&net_ops);
}

void repath_op_list_exit(void)
{
	unregister_pernet_subsys(&net_ops);
}

/**
 * repath_op_free_all - forget all operations
 *
 * An operation with suspended processes has held the module, so what is left has ended, or has touched
 * nothing.
 */
void repath_op_free_all(void)
{
	struct repath_op *op, *next;

	mutex_lock(&repath_op_mutex);
	list_for_each_entry_safe(op, next, &ops, node)
		op_free(op);
	mutex_unlock(&repath_op_mutex);
}
