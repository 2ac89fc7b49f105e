// SPDX-License-Identifier: GPL-2.0
/* SUSPEND, RESUME, ABORT, REPLY, OP_GET. */
#include <linux/pid_namespace.h>

#include "device.h"
#include "netlink.h"
#include "op.h"
#include "proc.h"

#define NO_SUCH_OPERATION "no operation of this number; 'repath status' shows those there are"

static int reply_id(struct genl_info *info, u32 id)
{
	struct sk_buff *skb;
	void *hdr;

	skb = repath_nl_reply_new(info, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_u32(skb, REPATH_A_OP_ID, id)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return repath_nl_reply(info, skb, hdr);
}

static u32 timeout_of(struct genl_info *info)
{
	struct nlattr *attr = info->attrs[REPATH_A_TIMEOUT_MS];

	return attr ? nla_get_u32(attr) : 0;
}

/* extack takes no formatted text before 6.2, and keeps a pointer: one text for each state. */
static int say_busy(struct genl_info *info, const struct repath_op *op)
{
	switch (op->state) {
	case REPATH_OP_CHECKING:
	case REPATH_OP_SUSPENDING:
		GENL_SET_ERR_MSG(info, "the device is being suspended by another operation");
		break;
	case REPATH_OP_SUSPENDED:
		GENL_SET_ERR_MSG(info, "the device is suspended: resume or abort that operation");
		break;
	case REPATH_OP_RESUMING:
		GENL_SET_ERR_MSG(info, "an operation is resuming on the device: wait for its end");
		break;
	case REPATH_OP_ABORTING:
		GENL_SET_ERR_MSG(info, "an operation is being aborted: wait for its end");
		break;
	case REPATH_OP_PARKED:
		GENL_SET_ERR_MSG(info, "processes are parked: resume that operation");
		break;
	default:
		GENL_SET_ERR_MSG(info, "the operation has ended");
		break;
	}
	return -EBUSY;
}

/**
 * repath_op_suspend_cmd - SUSPEND
 * @skb: request of an administrator
 * @info: request
 */
int repath_op_suspend_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev;
	struct repath_op *op;
	u32 id = 0;
	int err = 0;

	dev = repath_nl_device(genl_info_net(info), info->attrs[REPATH_A_DEV_NAME], info->extack);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	mutex_lock(&repath_op_mutex);
	op = repath_op_on(dev);
	if (op) {
		err = say_busy(info, op);
	} else {
		op = repath_op_start(dev, repath_device_net(dev), task_active_pid_ns(current),
				     timeout_of(info), info->attrs[REPATH_A_FORCE],
				     info->attrs[REPATH_A_DRY_RUN]);
		if (op)
			id = op->id;
		else
			err = -ENOMEM;
	}
	mutex_unlock(&repath_op_mutex);
	repath_device_put(dev);
	return err ?: reply_id(info, id);
}

/* An operation is where its device is, or was; in ib_core's shared mode that is everywhere. */
static bool is_visible(const struct repath_op *op, const struct net *net)
{
	return net_eq(op->net, net) ||
	       (!repath_op_is_final(op) && !op->dev_gone &&
		rdma_dev_access_netns(op->dev->ibdev, net));
}

/* The newest operation that has something to resume from a device of this name. */
static struct repath_op *find_by_name(struct genl_info *info, const struct nlattr *name)
{
	struct repath_op *op, *hit = NULL;
	u32 after = 0;

	while ((op = repath_op_next(after))) {
		after = op->id;
		if (!repath_op_is_final(op) && is_visible(op, genl_info_net(info)) &&
		    !nla_strcmp(name, op->dev_name))
			hit = op;
	}
	return hit;
}

/* The operation that a request names, and that its sender may change. */
static struct repath_op *named_op(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *id = info->attrs[REPATH_A_OP_ID], *name = info->attrs[REPATH_A_OLD_DEV_NAME];
	struct repath_op *op = NULL;
	int err;

	if (id)
		op = repath_op_find(nla_get_u32(id));
	else if (name)
		op = find_by_name(info, name);
	if (!op || !is_visible(op, genl_info_net(info))) {
		if (id)
			GENL_SET_ERR_MSG(info, NO_SUCH_OPERATION);
		else
			GENL_SET_ERR_MSG(info, "no operation has suspended this device");
		return ERR_PTR(-ENOENT);
	}
	err = repath_nl_may_admin(skb, op->net, info->extack);
	return err ? ERR_PTR(err) : op;
}

static int resume_locked(struct sk_buff *skb, struct genl_info *info, u32 *id)
{
	struct repath_op *op = named_op(skb, info), *other;
	struct repath_device *dev;
	int err;

	if (IS_ERR(op))
		return PTR_ERR(op);
	*id = op->id;
	if (info->attrs[REPATH_A_DEV_NAME])
		dev = repath_nl_device(genl_info_net(info), info->attrs[REPATH_A_DEV_NAME],
				       info->extack);
	else
		dev = repath_device_get_by_name(genl_info_net(info), op->dev_name);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	if (!dev) {
		GENL_SET_ERR_MSG(info, "the suspended device is not there: name another one");
		return -ENODEV;
	}
	other = repath_op_on(dev);
	if (other && other != op && other->state != REPATH_OP_RESUMING)
		err = say_busy(info, other);
	else
		err = repath_op_resume(op, dev, timeout_of(info));
	if (err == -EBUSY && (!other || other == op))
		say_busy(info, op);
	if (err == -EINVAL)
		GENL_SET_ERR_MSG(info, "of InfiniBand and Ethernet, this device is the other one: no peer could be reached; name another device");
	repath_device_put(dev);
	return err;
}

/**
 * repath_op_resume_cmd - RESUME
 * @skb: request of an administrator
 * @info: request
 */
int repath_op_resume_cmd(struct sk_buff *skb, struct genl_info *info)
{
	u32 id = 0;
	int err;

	mutex_lock(&repath_op_mutex);
	err = resume_locked(skb, info, &id);
	mutex_unlock(&repath_op_mutex);
	return err ?: reply_id(info, id);
}

/**
 * repath_op_abort_cmd - ABORT
 * @skb: request of an administrator
 * @info: request
 */
int repath_op_abort_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_op *op;
	u32 id = 0;
	int err;

	mutex_lock(&repath_op_mutex);
	op = named_op(skb, info);
	err = PTR_ERR_OR_ZERO(op);
	if (!err) {
		id = op->id;
		err = repath_op_abort(op);
		if (err)
			say_busy(info, op);
	}
	mutex_unlock(&repath_op_mutex);
	return err ?: reply_id(info, id);
}

/**
 * repath_op_reply_cmd - REPLY
 * @skb: request of a shim
 * @info: request
 */
int repath_op_reply_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr **a = info->attrs;
	struct repath_op_proc *p = NULL;
	struct repath_proc *proc;
	struct repath_op *op;
	int err = 0;

	if (GENL_REQ_ATTR_CHECK(info, REPATH_A_OP_ID) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_OP_STAGE) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_ERRNO))
		return -EINVAL;
	proc = repath_proc_of(info);
	if (!proc)
		return -EPERM;

	mutex_lock(&repath_op_mutex);
	op = repath_op_find(nla_get_u32(a[REPATH_A_OP_ID]));
	if (op)
		p = repath_op_proc_find(op, proc);
	if (p) {
		repath_op_reply(op, p, nla_get_u8(a[REPATH_A_OP_STAGE]),
				nla_get_u32(a[REPATH_A_ERRNO]),
				a[REPATH_A_REASON] ? nla_data(a[REPATH_A_REASON]) : NULL,
				a[REPATH_A_COUNTERS] ? nla_data(a[REPATH_A_COUNTERS]) : NULL);
	} else {
		GENL_SET_ERR_MSG(info, "the process takes part in no operation of this number");
		err = -ENOENT;
	}
	mutex_unlock(&repath_op_mutex);
	repath_proc_put(proc);
	return err;
}

/**
 * repath_op_get_doit - OP_GET of one operation
 * @skb: request
 * @info: request
 */
int repath_op_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_op *op;
	struct sk_buff *msg;
	void *hdr;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, REPATH_A_OP_ID))
		return -EINVAL;
	mutex_lock(&repath_op_mutex);
	op = repath_op_find(nla_get_u32(info->attrs[REPATH_A_OP_ID]));
	err = -ENOENT;
	if (!op || !is_visible(op, genl_info_net(info))) {
		GENL_SET_ERR_MSG(info, NO_SUCH_OPERATION);
		goto unlock;
	}
	err = -ENOMEM;
	msg = repath_nl_reply_new(info, repath_op_fill_size(op), &hdr);
	if (!msg)
		goto unlock;
	err = repath_op_fill(msg, op, task_active_pid_ns(current), true);
	if (err)
		nlmsg_free(msg);
	else
		err = repath_nl_reply(info, msg, hdr);
unlock:
	mutex_unlock(&repath_op_mutex);
	return err;
}

/**
 * repath_op_dump - OP_GET of all operations
 * @skb: answer
 * @cb: request; args[0] is the number of the last operation that was told
 *
 * One that does not fit behind others is told in the next message; what does not fit into a message of its
 * own is cut, and can be had by its number.
 */
int repath_op_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct repath_op *op;
	void *hdr;

	mutex_lock(&repath_op_mutex);
	while ((op = repath_op_next(cb->args[0]))) {
		bool alone = !skb->len;

		if (is_visible(op, sock_net(cb->skb->sk))) {
			hdr = repath_nl_dump_put(skb, cb, REPATH_CMD_OP_GET);
			if (!hdr)
				break;
			if (repath_op_fill(skb, op, task_active_pid_ns(current), alone)) {
				genlmsg_cancel(skb, hdr);
				break;
			}
			genlmsg_end(skb, hdr);
		}
		cb->args[0] = op->id;
	}
	mutex_unlock(&repath_op_mutex);
	return skb->len;
}
