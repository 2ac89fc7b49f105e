// SPDX-License-Identifier: GPL-2.0
/* PATH_GET, SM_GET, PATH_ASK, SM_SET, and the nest of EV_PATH: what the subnet manager has told. */
#include "compat/genl.h"
#include "device.h"
#include "netlink.h"
#include "sa.h"

static int fill_key(struct sk_buff *skb, struct repath_device *dev, u32 port)
{
	char name[IB_DEVICE_NAME_MAX];

	repath_device_name(dev, name);
	if (nla_put_u32(skb, REPATH_A_DEV_INDEX, dev->index) ||
	    nla_put_string(skb, REPATH_A_DEV_NAME, name) ||
	    nla_put_u32(skb, REPATH_A_PORT, port))
		return -EMSGSIZE;
	return 0;
}

static int fill_values(struct sk_buff *skb, const struct repath_learnt *path)
{
	if (nla_put_u32(skb, REPATH_A_SLID, path->slid) ||
	    nla_put_u32(skb, REPATH_A_DLID, path->dlid) ||
	    nla_put_u8(skb, REPATH_A_SL, path->sl) ||
	    (memchr_inv(path->dgid, 0, sizeof(path->dgid)) &&
	     nla_put(skb, REPATH_A_DGID, sizeof(path->dgid), path->dgid)) ||
	    (path->mtu && nla_put_u8(skb, REPATH_A_PATH_MTU, path->mtu)) ||
	    (path->rate && nla_put_u8(skb, REPATH_A_RATE, path->rate)) ||
	    (path->pkey && nla_put_u32(skb, REPATH_A_PKEY, path->pkey)) ||
	    nla_put_u64_64bit(skb, REPATH_A_LEARNT_NS, path->ns, REPATH_A_PAD) ||
	    nla_put_u8(skb, REPATH_A_PATH_SOURCE, path->source) ||
	    (path->unpath && nla_put_flag(skb, REPATH_A_UNPATH)) ||
	    (path->relayed && nla_put_flag(skb, REPATH_A_RELAYED)))
		return -EMSGSIZE;
	return 0;
}

/**
 * repath_fill_learnt - REPATH_A_PATH
 * @skb: message
 * @dev: device
 * @port: its port
 * @path: what was learnt
 *
 * Return: 0, or -EMSGSIZE; then the message is as before.
 */
int repath_fill_learnt(struct sk_buff *skb, struct repath_device *dev, u32 port,
		       const struct repath_learnt *path)
{
	struct nlattr *nest = nla_nest_start(skb, REPATH_A_PATH);

	if (!nest)
		return -EMSGSIZE;
	if (fill_key(skb, dev, port) || fill_values(skb, path)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

static int fill_sm(struct sk_buff *skb, struct repath_sa_port *sp)
{
	struct nlattr *nest = nla_nest_start(skb, REPATH_A_SM);

	if (!nest)
		return -EMSGSIZE;
	/* A subscription that is being renewed holds. */
	if (fill_key(skb, sp->dev, sp->port) ||
	    nla_put_u8(skb, REPATH_A_SM_STATE,
		       sp->subscribed ? REPATH_SM_SUBSCRIBED : sp->state) ||
	    nla_put_u32(skb, REPATH_A_COUNT, READ_ONCE(sp->paths.n)) ||
	    (sp->way && (nla_put_u32(skb, REPATH_A_SM_LID, sp->way->lid) ||
			 nla_put_u8(skb, REPATH_A_SL, sp->sm_sl) ||
			 nla_put_u32(skb, REPATH_A_SLID, sp->lid))) ||
	    ((sp->subscribed || sp->state == REPATH_SM_RELAYED) &&
	     nla_put_u64_64bit(skb, REPATH_A_SINCE_NS, sp->since_ns, REPATH_A_PAD))) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

static int tell_path(struct sk_buff *skb, struct netlink_callback *cb, struct repath_device *dev,
		     u32 port, const struct repath_learnt *path)
{
	void *hdr = repath_nl_dump_put(skb, cb, REPATH_CMD_PATH_GET);

	if (!hdr)
		return -EMSGSIZE;
	if (repath_fill_learnt(skb, dev, port, path)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

static int tell_sm(struct sk_buff *skb, struct netlink_callback *cb, struct repath_sa_port *sp)
{
	void *hdr = repath_nl_dump_put(skb, cb, REPATH_CMD_SM_GET);
	int err;

	if (!hdr)
		return -EMSGSIZE;
	mutex_lock(&sp->mutex);
	err = fill_sm(skb, sp);
	mutex_unlock(&sp->mutex);
	if (err) {
		genlmsg_cancel(skb, hdr);
		return err;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/*
 * Where a dump goes on, in netlink_callback::args. What is learnt and forgotten between two of its
 * messages is told or not; what stays is told once.
 */
enum { AT_DEVICE, AT_PORT, AT_PATH };

static int tell_paths(struct sk_buff *skb, struct netlink_callback *cb, struct repath_sa_port *sp,
		      u16 dlid)
{
	unsigned long *at = (unsigned long *)&cb->args[AT_PATH];
	struct repath_learnt path;

	while (repath_learnt_next(&sp->paths, at, &path)) {
		if ((!dlid || path.dlid == dlid) &&
		    tell_path(skb, cb, sp->dev, sp->port, &path))
			return -EMSGSIZE;
		(*at)++;
	}
	*at = 0;
	return 0;
}

static int tell_device(struct sk_buff *skb, struct netlink_callback *cb,
		       struct repath_device *dev, bool paths)
{
	struct nlattr **attrs = repath_dump_attrs(cb);
	u32 port = attrs[REPATH_A_PORT] ? nla_get_u32(attrs[REPATH_A_PORT]) : 0;
	u32 dlid = attrs[REPATH_A_DLID] ? nla_get_u32(attrs[REPATH_A_DLID]) : 0;
	struct repath_sa_port *sp;
	int err = 0;

	mutex_lock(&dev->sa_mutex);
	list_for_each_entry(sp, &dev->sa_ports, node) {
		if (sp->port < cb->args[AT_PORT] || (port && sp->port != port))
			continue;
		cb->args[AT_PORT] = sp->port;
		err = paths ? tell_paths(skb, cb, sp, dlid) : tell_sm(skb, cb, sp);
		if (err)
			break;
		cb->args[AT_PORT] = sp->port + 1;
	}
	mutex_unlock(&dev->sa_mutex);
	return err;
}

static int dump(struct sk_buff *skb, struct netlink_callback *cb, bool paths)
{
	const struct nlattr *name = repath_dump_attrs(cb)[REPATH_A_DEV_NAME];
	struct net *net = sock_net(cb->skb->sk);
	u64 next = cb->args[AT_DEVICE];
	struct repath_device *dev;
	u32 only = U32_MAX;
	int err = 0;

	if (name) {
		dev = repath_nl_device(net, name, cb->extack);
		if (IS_ERR(dev))
			/* It was there when the dump began. */
			return next ? skb->len : PTR_ERR(dev);
		only = dev->index;
		next = max_t(u64, next, only);
		repath_device_put(dev);
	}
	while (!err && next <= only && (dev = repath_device_next(net, next))) {
		if (dev->index != next)
			cb->args[AT_PORT] = cb->args[AT_PATH] = 0;
		next = dev->index;
		if (next <= only)
			err = tell_device(skb, cb, dev, paths);
		repath_device_put(dev);
		if (!err) {
			next++;
			cb->args[AT_PORT] = cb->args[AT_PATH] = 0;
		}
	}
	cb->args[AT_DEVICE] = next;
	return skb->len;
}

/* PATH_GET */
int repath_path_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump(skb, cb, true);
}

/* SM_GET */
int repath_sm_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump(skb, cb, false);
}

static void listen_to(struct repath_device *dev, bool on)
{
	struct repath_sa_port *sp;

	mutex_lock(&dev->sa_mutex);
	list_for_each_entry(sp, &dev->sa_ports, node) {
		mutex_lock(&sp->mutex);
		if (!on && sp->on && sp->way && sp->subscribed)
			repath_sa_unsubscribe(sp);
		/* From now on by itself again, until the hypervisor begins anew. */
		if (sp->relayed)
			set_bit(REPATH_SA_RENEW, &sp->wants);
		sp->relayed = false;
		sp->on = on;
		mutex_unlock(&sp->mutex);
		repath_sa_want(sp, REPATH_SA_LOOK);
	}
	mutex_unlock(&dev->sa_mutex);
}

/**
 * repath_sa_again - what was told while queue pairs of a device were not moved
 * @dev: device
 */
void repath_sa_again(struct repath_device *dev)
{
	struct repath_sa_port *sp;

	mutex_lock(&dev->sa_mutex);
	list_for_each_entry(sp, &dev->sa_ports, node) {
		mutex_lock(&sp->mutex);
		repath_sa_hand_all_over(sp);
		if (sp->way)
			repath_sa_want_table(sp, false);
		mutex_unlock(&sp->mutex);
		repath_sa_kick(sp);
	}
	mutex_unlock(&dev->sa_mutex);
}

/* Ask for paths, whoever uses them; @port, @dlid: 0: all. */
static int ask_anew(struct repath_device *dev, u32 port, u16 dlid)
{
	struct repath_sa_port *sp;
	int err = -ENETDOWN;

	mutex_lock(&dev->sa_mutex);
	list_for_each_entry(sp, &dev->sa_ports, node) {
		if (port && sp->port != port)
			continue;
		mutex_lock(&sp->mutex);
		if (sp->way) {
			repath_sa_want_paths(sp, dlid);
			err = 0;
		}
		mutex_unlock(&sp->mutex);
		repath_sa_kick(sp);
	}
	mutex_unlock(&dev->sa_mutex);
	return err;
}

/* PATH_ASK */
int repath_path_ask_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev = repath_nl_admins_device(skb, info);
	struct nlattr **attrs = info->attrs;
	int err;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = ask_anew(dev, attrs[REPATH_A_PORT] ? nla_get_u32(attrs[REPATH_A_PORT]) : 0,
		       attrs[REPATH_A_DLID] ? nla_get_u32(attrs[REPATH_A_DLID]) : 0);
	repath_device_put(dev);
	if (err)
		NL_SET_ERR_MSG(info->extack, "no InfiniBand port there that has a subnet manager");
	return err;
}

/* SM_SET */
int repath_sm_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev = repath_nl_admins_device(skb, info);

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	if (info->attrs[REPATH_A_SM_LISTEN])
		listen_to(dev, nla_get_u8(info->attrs[REPATH_A_SM_LISTEN]));
	repath_device_put(dev);
	return 0;
}
