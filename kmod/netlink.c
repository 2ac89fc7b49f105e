// SPDX-License-Identifier: GPL-2.0
/* The generic netlink family "repath": commands, access, messages. */
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/notifier.h>
#include <linux/pid_namespace.h>
#include <linux/rwsem.h>

#include "adopt.h"
#include "conn.h"
#include "conn_told.h"
#include "device.h"
#include "listen.h"
#include "netlink.h"
#include "netlink_policy.h"
#include "number.h"
#include "op.h"
#include "peer.h"
#include "proc.h"
#include "reroute_nl.h"
#include "reroute_shim.h"
#include "resolve.h"
#include "stat.h"

static struct genl_family repath_family;

/* The family is registered: its multicast groups are ours. Senders hold it for reading. */
static DECLARE_RWSEM(family_sem);
static bool family_up;

/**
 * repath_nl_msg_new - begin a message that answers no request
 * @cmd: REPATH_CMD_EV_*
 * @size: of its attributes, at most
 * @hdr: for the function that sends it
 *
 * Return: the message, or NULL without memory.
 */
struct sk_buff *repath_nl_msg_new(u8 cmd, size_t size, void **hdr)
{
	struct sk_buff *skb;

	skb = genlmsg_new(size, GFP_KERNEL);
	if (!skb)
		return NULL;
	*hdr = genlmsg_put(skb, 0, 0, &repath_family, 0, cmd);
	if (!*hdr) {
		nlmsg_free(skb);
		return NULL;
	}
	return skb;
}

/**
 * repath_nl_unicast - send a message to one socket
 * @net: namespace of the socket
 * @portid: the socket
 * @skb: message, given away
 * @hdr: from repath_nl_msg_new()
 *
 * Return: 0, -ECONNREFUSED (the socket is closed), -EAGAIN (it is full).
 */
int repath_nl_unicast(struct net *net, u32 portid, struct sk_buff *skb, void *hdr)
{
	genlmsg_end(skb, hdr);
	return genlmsg_unicast(net, skb, portid);
}

/**
 * repath_nl_has_listeners - is there anybody to make an event for?
 * @net: namespace of the listeners
 * @group: their group
 */
bool repath_nl_has_listeners(struct net *net, enum repath_nl_group group)
{
	bool listeners;

	down_read(&family_sem);
	listeners = family_up && genl_has_listeners(&repath_family, net, group);
	up_read(&family_sem);
	return listeners;
}

/**
 * repath_nl_hook_has_listeners - repath_nl_has_listeners() for hooks
 * @net: namespace of the listeners
 * @group: their group
 *
 * Context: any. The family is registered before the first hook is placed and device is tracked, and
 * unregistered after the last.
 */
bool repath_nl_hook_has_listeners(struct net *net, enum repath_nl_group group)
{
	return genl_has_listeners(&repath_family, net, group);
}

/**
 * repath_nl_multicast - send a message to a group
 * @net: namespace of the listeners
 * @group: enum repath_nl_group
 * @skb: message, given away
 * @hdr: from repath_nl_msg_new()
 */
void repath_nl_multicast(struct net *net, enum repath_nl_group group, struct sk_buff *skb,
			 void *hdr)
{
	genlmsg_end(skb, hdr);
	down_read(&family_sem);
	if (family_up)
		/* Nobody listening is no error. */
		genlmsg_multicast_netns(&repath_family, net, skb, 0, group, GFP_KERNEL);
	else
		nlmsg_free(skb);
	up_read(&family_sem);
}

/**
 * repath_nl_reply_new - begin the answer to a request
 * @info: the request
 * @size: of its attributes, at most
 * @hdr: for repath_nl_reply()
 *
 * Return: the message, or NULL without memory.
 */
struct sk_buff *repath_nl_reply_new(struct genl_info *info, size_t size, void **hdr)
{
	struct sk_buff *skb;

	skb = genlmsg_new(size, GFP_KERNEL);
	if (!skb)
		return NULL;
	*hdr = genlmsg_put_reply(skb, info, &repath_family, 0, info->genlhdr->cmd);
	if (!*hdr) {
		nlmsg_free(skb);
		return NULL;
	}
	return skb;
}

/**
 * repath_nl_reply - send the answer to a request
 * @info: the request
 * @skb: message, given away
 * @hdr: from repath_nl_reply_new()
 */
int repath_nl_reply(struct genl_info *info, struct sk_buff *skb, void *hdr)
{
	genlmsg_end(skb, hdr);
	return genlmsg_reply(skb, info);
}

/**
 * repath_nl_dump_put - begin one message of a dump
 * @skb: the dump's
 * @cb: the dump
 * @cmd: command that is answered
 *
 * Return: for genlmsg_end() or genlmsg_cancel(); NULL: @skb is full.
 */
void *repath_nl_dump_put(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &repath_family,
			   NLM_F_MULTI, cmd);
}

/**
 * repath_nl_may_admin - may the sender of a request change anything?
 * @skb: the request
 * @net: the device's network namespace
 * @extack: says what is missing
 *
 * That the sender sees the device is not enough: in ib_core's shared mode everybody does.
 *
 * Return: 0 or -EPERM.
 */
int repath_nl_may_admin(const struct sk_buff *skb, const struct net *net,
			struct netlink_ext_ack *extack)
{
	if (netlink_ns_capable(skb, net->user_ns, CAP_NET_ADMIN))
		return 0;
	NL_SET_ERR_MSG(extack, "needs CAP_NET_ADMIN over the device's network namespace");
	return -EPERM;
}

/**
 * repath_nl_device - the device that a request names
 * @net: namespace of the sender
 * @name: attribute, or NULL if it is not there
 * @extack: says what is wrong
 *
 * Return: with a reference; or ERR_PTR: -EINVAL without @name, -ENODEV.
 */
struct repath_device *repath_nl_device(const struct net *net, const struct nlattr *name,
				       struct netlink_ext_ack *extack)
{
	struct repath_device *dev;

	if (!name) {
		NL_SET_ERR_MSG(extack, "DEV_NAME is missing");
		return ERR_PTR(-EINVAL);
	}
	dev = repath_device_get_by_name(net, nla_data(name));
	if (!dev) {
		NL_SET_ERR_MSG_ATTR(extack, name,
				    "no RDMA device of this name in this network namespace; 'rdma link' shows them");
		return ERR_PTR(-ENODEV);
	}
	return dev;
}

/**
 * repath_nl_admins_device - the device that a request wants changed
 * @skb: request
 * @info: the same
 *
 * Return: with a reference; or ERR_PTR: as repath_nl_device() and repath_nl_may_admin().
 */
struct repath_device *repath_nl_admins_device(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev;
	int err;

	dev = repath_nl_device(genl_info_net(info), info->attrs[REPATH_A_DEV_NAME],
			       info->extack);
	if (IS_ERR(dev))
		return dev;
	err = repath_nl_may_admin(skb, repath_device_net(dev), info->extack);
	if (!err)
		return dev;
	repath_device_put(dev);
	return ERR_PTR(err);
}

/**
 * repath_nl_pid - the number of a process for the reader
 * @pid: thread group
 *
 * Context: process, of the reader.
 * Return: 0 if the reader can not see the process.
 */
u32 repath_nl_pid(struct pid *pid)
{
	return pid_nr_ns(pid, task_active_pid_ns(current));
}

static int suspend_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev = repath_nl_admins_device(skb, info);

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	repath_device_put(dev);
	return repath_op_suspend_cmd(skb, info);
}

static int resume_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev;

	if (!info->attrs[REPATH_A_OP_ID] && !info->attrs[REPATH_A_OLD_DEV_NAME]) {
		NL_SET_ERR_MSG(info->extack, "OP_ID or OLD_DEV_NAME is missing");
		return -EINVAL;
	}
	if (info->attrs[REPATH_A_DEV_NAME]) {
		dev = repath_nl_admins_device(skb, info);
		if (IS_ERR(dev))
			return PTR_ERR(dev);
		repath_device_put(dev);
	}
	return repath_op_resume_cmd(skb, info);
}

static int abort_doit(struct sk_buff *skb, struct genl_info *info)
{
	if (!info->attrs[REPATH_A_OP_ID]) {
		NL_SET_ERR_MSG(info->extack, "OP_ID is missing");
		return -EINVAL;
	}
	return repath_op_abort_cmd(skb, info);
}

#define REPATH_OP(command, its_policy)			\
	.cmd		= REPATH_CMD_ ## command,	\
	.policy		= its_policy,			\
	.maxattr	= REPATH_A_MAX

static const struct genl_ops repath_ops[] = {
	{
		REPATH_OP(VERSION_GET, repath_none_policy),
		.doit	= repath_version_doit,
	}, {
		REPATH_OP(QP_GET, repath_qp_get_policy),
		.doit	= repath_qp_doit,
		.dumpit	= repath_qp_dumpit,
		.done	= repath_qp_dump_done,
	}, {
		REPATH_OP(PROCESS_GET, repath_process_get_policy),
		.doit	= repath_process_doit,
		.dumpit	= repath_process_dumpit,
		.done	= repath_process_dump_done,
	}, {
		REPATH_OP(DEVICE_GET, repath_device_get_policy),
		.doit	= repath_device_doit,
		.dumpit	= repath_device_dumpit,
	}, {
		REPATH_OP(OP_GET, repath_op_get_policy),
		.doit	= repath_op_get_doit,
		.dumpit	= repath_op_dump,
	}, {
		REPATH_OP(CONN_GET, repath_conn_get_policy),
		.dumpit	= repath_conn_dump,
	}, {
		REPATH_OP(CONN_MOVED, repath_conn_moved_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= repath_conn_moved_cmd,
	}, {
		REPATH_OP(SUSPEND, repath_suspend_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= suspend_doit,
	}, {
		REPATH_OP(RESUME, repath_resume_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= resume_doit,
	}, {
		REPATH_OP(ABORT, repath_abort_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= abort_doit,
	}, {
		REPATH_OP(REGISTER, repath_register_policy),
		.doit	= repath_proc_register,
	}, {
		REPATH_OP(REPLY, repath_reply_policy),
		.doit	= repath_op_reply_cmd,
	}, {
		REPATH_OP(PEER_SEND, repath_peer_send_policy),
		.doit	= repath_peer_send_cmd,
	}, {
		REPATH_OP(NUMBERS, repath_numbers_policy),
		.doit	= repath_numbers_cmd,
	}, {
		REPATH_OP(NUMBER_CHECK, repath_number_check_policy),
		.doit	= repath_number_check_cmd,
	}, {
		REPATH_OP(RESOLVE, repath_resolve_policy),
		.doit	= repath_resolve_cmd,
	}, {
		REPATH_OP(UNRESOLVE, repath_unresolve_policy),
		.doit	= repath_unresolve_cmd,
	}, {
		REPATH_OP(CYCLED, repath_cycled_policy),
		.doit	= repath_cycled_cmd,
	}, {
		REPATH_OP(ADOPT, repath_device_get_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.dumpit	= repath_adopt_dumpit,
		.done	= repath_adopt_dump_done,
	}, {
		REPATH_OP(STATS_GET, repath_device_get_policy),
		.dumpit	= repath_stats_dumpit,
	}, {
		REPATH_OP(LISTEN, repath_none_policy),
		.doit	= repath_listen_cmd,
	}, {
		REPATH_OP(PATH_SET, repath_path_set_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= repath_path_set_cmd,
	}, {
		REPATH_OP(DEVICE_SET, repath_device_set_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= repath_device_set_cmd,
	}, {
		REPATH_OP(PATH_GET, repath_path_get_policy),
		.dumpit	= repath_path_dumpit,
	}, {
		REPATH_OP(SM_GET, repath_device_get_policy),
		.dumpit	= repath_sm_dumpit,
	}, {
		REPATH_OP(PATH_ASK, repath_path_get_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= repath_path_ask_doit,
	}, {
		REPATH_OP(SM_SET, repath_sm_set_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= repath_sm_set_doit,
	}, {
		REPATH_OP(RELAY, repath_relay_policy),
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= repath_relay_doit,
	},
};

static const struct genl_multicast_group repath_groups[] = {
	[REPATH_NL_MONITOR]	= { .name = REPATH_MCGRP_MONITOR },
	[REPATH_NL_OPERATION]	= { .name = REPATH_MCGRP_OPERATION },
	[REPATH_NL_NOTICE]	= { .name = REPATH_MCGRP_NOTICE },
};

static struct genl_family repath_family __ro_after_init = {
	.name		= REPATH_GENL_NAME,
	.version	= REPATH_GENL_VERSION,
	.module		= THIS_MODULE,
	.netnsok	= true,
	.parallel_ops	= true,
	.ops		= repath_ops,
	.n_ops		= ARRAY_SIZE(repath_ops),
	.resv_start_op	= REPATH_CMD_UNSPEC + 1,
	.mcgrps		= repath_groups,
	.n_mcgrps	= ARRAY_SIZE(repath_groups),
};

static int socket_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct netlink_notify *notify = ptr;

	if (event == NETLINK_URELEASE && notify->protocol == NETLINK_GENERIC) {
		repath_listen_released(notify->net, notify->portid);
		repath_proc_released(notify->net, notify->portid);
	}
	return NOTIFY_DONE;
}

static struct notifier_block socket_notifier = {
	.notifier_call = socket_event,
};

/**
 * repath_nl_init - from now on there are requests
 */
int __init repath_nl_init(void)
{
	int err;

	err = netlink_register_notifier(&socket_notifier);
	if (err)
		return err;
	err = genl_register_family(&repath_family);
	if (err) {
		netlink_unregister_notifier(&socket_notifier);
		return err;
	}
	down_write(&family_sem);
	family_up = true;
	up_write(&family_sem);
	return 0;
}

/**
 * repath_nl_exit - no request is under way when this returns, and none comes
 *
 * Events that are sent later are dropped. A dump that is not read to its end holds the module, so
 * there is none here.
 */
void repath_nl_exit(void)
{
	down_write(&family_sem);
	family_up = false;
	up_write(&family_sem);
	genl_unregister_family(&repath_family);
	repath_listen_exit();
	netlink_unregister_notifier(&socket_notifier);
}
