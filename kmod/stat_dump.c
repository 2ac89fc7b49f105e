// SPDX-License-Identifier: GPL-2.0
/* STATS_GET. */
#include <net/net_namespace.h>

#include "compat/genl.h"
#include "device.h"
#include "netlink.h"
#include "stat.h"

static int fill_counts(struct sk_buff *skb, struct repath_stats *stats)
{
	struct nlattr *nest = nla_nest_start(skb, REPATH_A_COUNTS);
	int stat;

	if (!nest)
		return -EMSGSIZE;
	for (stat = REPATH_STAT_PAD + 1; stat <= REPATH_STAT_MAX; stat++)
		if (nla_put_u64_64bit(skb, stat, atomic64_read(&stats->n[stat]), REPATH_STAT_PAD))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* @dev: NULL: the module's. */
static int fill_stats(struct sk_buff *skb, struct repath_device *dev)
{
	struct nlattr *nest = nla_nest_start(skb, REPATH_A_STATS);
	char name[IB_DEVICE_NAME_MAX];

	if (!nest)
		return -EMSGSIZE;
	if (dev) {
		repath_device_name(dev, name);
		if (nla_put_u32(skb, REPATH_A_DEV_INDEX, dev->index) ||
		    nla_put_string(skb, REPATH_A_DEV_NAME, name))
			return -EMSGSIZE;
	}
	if (fill_counts(skb, dev ? &dev->stats : &repath_stats))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int tell_stats(struct sk_buff *skb, struct netlink_callback *cb, struct repath_device *dev)
{
	void *hdr = repath_nl_dump_put(skb, cb, REPATH_CMD_STATS_GET);

	if (!hdr)
		return -EMSGSIZE;
	if (fill_stats(skb, dev)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

#define MODULE_TOLD	1LL
#define ALL_TOLD	(MODULE_TOLD + U32_MAX + 1)

/**
 * repath_stats_dumpit - STATS_GET
 * @skb: answer
 * @cb: request; args[0]: 0 at the beginning, then MODULE_TOLD + the index of the device to tell next
 */
int repath_stats_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct nlattr *name = repath_dump_attrs(cb)[REPATH_A_DEV_NAME];
	struct net *net = sock_net(cb->skb->sk);
	struct repath_device *dev;
	s64 next = cb->args[0];
	int err;

	if (name && !next) {
		dev = repath_nl_device(net, name, cb->extack);
		if (IS_ERR(dev))
			return PTR_ERR(dev);
		err = tell_stats(skb, cb, dev);
		repath_device_put(dev);
		cb->args[0] = ALL_TOLD;
		return err ?: skb->len;
	}
	if (!next) {
		/* The sum tells of devices that other namespaces do not see. */
		if (net_eq(net, &init_net) && tell_stats(skb, cb, NULL))
			return skb->len;
		next = MODULE_TOLD;
	}
	while (next < ALL_TOLD && (dev = repath_device_next(net, next - MODULE_TOLD))) {
		next = MODULE_TOLD + dev->index;
		err = tell_stats(skb, cb, dev);
		repath_device_put(dev);
		if (err)
			goto out;
		next++;
	}
	next = ALL_TOLD;
out:
	cb->args[0] = next;
	return skb->len;
}
