// SPDX-License-Identifier: GPL-2.0
/* Operations on the netlink interface: events to shims and listeners, the OP nest. */
#include <linux/pid_namespace.h>

#include "device.h"
#include "listen.h"
#include "netlink.h"
#include "op.h"
#include "proc.h"

/**
 * repath_op_tell - an event for a process that takes part
 * @op: operation
 * @p: process
 * @cmd: REPATH_CMD_EV_CHECK, _SUSPEND, _RESUME or _ABORT
 *
 * Return: 0; -ESRCH, -ECONNREFUSED: it has left; -EAGAIN: it does not read; -ENOMEM.
 */
int repath_op_tell(struct repath_op *op, struct repath_op_proc *p, u8 cmd)
{
	struct repath_device *dev = cmd == REPATH_CMD_EV_RESUME ? op->new_dev : op->dev;
	char name[IB_DEVICE_NAME_MAX];
	struct sk_buff *skb;
	void *hdr;

	skb = repath_nl_msg_new(cmd, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return -ENOMEM;
	repath_device_name(dev, name);
	if (nla_put_u32(skb, REPATH_A_OP_ID, op->id) ||
	    nla_put_u32(skb, REPATH_A_DEV_INDEX, dev->index) ||
	    nla_put_string(skb, REPATH_A_DEV_NAME, name) ||
	    (cmd != REPATH_CMD_EV_ABORT &&
	     nla_put_u32(skb, REPATH_A_TIMEOUT_MS, op->timeout_ms)) ||
	    (op->force && (cmd == REPATH_CMD_EV_CHECK || cmd == REPATH_CMD_EV_SUSPEND) &&
	     nla_put_flag(skb, REPATH_A_FORCE))) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return repath_proc_send(p->proc, skb, hdr);
}

static int fill_stages(struct sk_buff *skb, const struct repath_op_proc *p)
{
	struct nlattr *nest;
	u8 stage;

	for (stage = 0; stage < REPATH_STAGES; stage++) {
		if (!p->stage_ns[stage])
			continue;
		nest = nla_nest_start(skb, REPATH_A_STAGE_NS);
		if (!nest || nla_put_u8(skb, REPATH_A_OP_STAGE, stage) ||
		    nla_put_u64_64bit(skb, REPATH_A_NS, p->stage_ns[stage], REPATH_A_PAD))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
	}
	return 0;
}

static int fill_proc(struct sk_buff *skb, const struct repath_op_proc *p, struct pid_namespace *ns)
{
	struct nlattr *nest = nla_nest_start(skb, REPATH_A_OP_PROC);
	pid_t nr = ns ? pid_nr_ns(p->tgid, ns) : 0;

	if (!nest)
		return -EMSGSIZE;
	/* Whom the reader can not see has no number for him, nor a name, nor words. */
	if ((nr && (nla_put_u32(skb, REPATH_A_PID, nr) ||
		    nla_put_string(skb, REPATH_A_COMM, p->comm) ||
		    (p->reason[0] && nla_put_string(skb, REPATH_A_REASON, p->reason)))) ||
	    nla_put_u8(skb, REPATH_A_OP_STAGE, p->stage) ||
	    (p->err && nla_put_u32(skb, REPATH_A_ERRNO, p->err)) ||
	    (p->counted && nla_put(skb, REPATH_A_COUNTERS, sizeof(p->counters), &p->counters)) ||
	    fill_stages(skb, p)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* A reason names processes, as who asked for the operation sees them. */
static bool may_know_why(const struct repath_op *op, const struct pid_namespace *ns)
{
	const struct pid_namespace *its = op->ns;

	while (ns && its && its != ns)
		its = its->parent;
	return ns && its;
}

/**
 * repath_op_fill - REPATH_A_OP
 * @skb: message
 * @op: operation
 * @ns: PID namespace of the reader; NULL: readers of several
 * @as_fits: leave out the processes that do not fit
 *
 * Context: repath_op_mutex held.
 * Return: 0, or -EMSGSIZE; then the message is as before.
 */
int repath_op_fill(struct sk_buff *skb, struct repath_op *op, struct pid_namespace *ns,
		   bool as_fits)
{
	struct nlattr *nest = nla_nest_start(skb, REPATH_A_OP);
	struct repath_op_proc *p;

	lockdep_assert_held(&repath_op_mutex);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, REPATH_A_OP_ID, op->id) ||
	    nla_put_u8(skb, REPATH_A_OP_KIND, op->kind) ||
	    nla_put_u8(skb, REPATH_A_OP_STATE, op->state) ||
	    nla_put_string(skb, REPATH_A_DEV_NAME, op->dev_name) ||
	    nla_put_u64_64bit(skb, REPATH_A_STARTED_NS, op->started_ns, REPATH_A_PAD) ||
	    nla_put_u32(skb, REPATH_A_TIMEOUT_MS, op->timeout_ms) ||
	    (op->err && nla_put_u32(skb, REPATH_A_ERRNO, op->err)) ||
	    (op->unplug && nla_put_flag(skb, REPATH_A_UNPLUG)) ||
	    (op->reason[0] && may_know_why(op, ns) &&
	     nla_put_string(skb, REPATH_A_REASON, op->reason)))
		goto cancel;
	list_for_each_entry(p, &op->procs, node)
		if (fill_proc(skb, p, ns)) {
			if (as_fits)
				break;
			goto cancel;
		}
	nla_nest_end(skb, nest);
	return 0;

cancel:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
}

/**
 * repath_op_fill_size - how much room REPATH_A_OP takes at most
 * @op: operation
 *
 * An attribute holds less than 64 KiB: what goes beyond is not asked for.
 */
size_t repath_op_fill_size(const struct repath_op *op)
{
	size_t proc = 2 * NLA_HDRLEN + REPATH_STAGES * 32 + sizeof(struct repath_op_proc);

	return min_t(size_t, 1024 + op->nprocs * proc, U16_MAX - 1024);
}

static int fill_event(struct sk_buff *skb, struct pid_namespace *ns, void *arg)
{
	return repath_op_fill(skb, arg, ns, true);
}

/**
 * repath_op_event - tell the listeners how an operation is
 * @op: operation
 *
 * Context: repath_op_mutex held.
 */
void repath_op_event(struct repath_op *op)
{
	static const enum repath_nl_group groups[] = { REPATH_NL_MONITOR, REPATH_NL_OPERATION };
	size_t size = repath_op_fill_size(op);
	unsigned int i;

	repath_listen_tell(op->net, REPATH_CMD_EV_OP, size, fill_event, op);
	for (i = 0; i < ARRAY_SIZE(groups); i++)
		repath_listen_tell_group(op->net, groups[i], REPATH_CMD_EV_OP, size, fill_event, op);
}
