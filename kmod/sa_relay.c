// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of an HCA that share a port are one host to the subnet manager: it has one subscription,
 * and its Reports come to the PF. The module at the PF hands them on to a tool by EV_NOTICE, and the
 * tool to guests, where RELAY is as if the Report had come to the VF. Nothing goes the other way.
 */
#include <linux/ktime.h>
#include <rdma/ib_sa.h>

#include "device.h"
#include "netlink.h"
#include "sa.h"

#define EVENT_SIZE 512

static_assert(REPATH_NOTICE_SIZE == IB_MGMT_SA_DATA);

static int fill(struct sk_buff *skb, struct repath_sa_port *sp, const void *notice)
{
	char name[IB_DEVICE_NAME_MAX];

	repath_device_name(sp->dev, name);
	if (nla_put_u32(skb, REPATH_A_DEV_INDEX, sp->dev->index) ||
	    nla_put_string(skb, REPATH_A_DEV_NAME, name) ||
	    nla_put_u32(skb, REPATH_A_PORT, sp->port) ||
	    (notice && nla_put(skb, REPATH_A_NOTICE, REPATH_NOTICE_SIZE, notice)))
		return -EMSGSIZE;
	return 0;
}

/**
 * repath_sa_hand_on - tell those that tell guests: EV_NOTICE
 * @sp: port
 * @notice: REPATH_NOTICE_SIZE bytes, believed; NULL: some may be missing
 *
 * Context: may sleep.
 */
void repath_sa_hand_on(struct repath_sa_port *sp, const void *notice)
{
	struct net *net = repath_device_net(sp->dev);
	struct sk_buff *skb;
	void *hdr;

	if (!repath_nl_has_listeners(net, REPATH_NL_NOTICE))
		return;
	skb = repath_nl_msg_new(REPATH_CMD_EV_NOTICE, EVENT_SIZE, &hdr);
	if (!skb)
		return;
	if (WARN_ON_ONCE(fill(skb, sp, notice)))
		nlmsg_free(skb);
	else
		repath_nl_multicast(net, REPATH_NL_NOTICE, skb, hdr);
}

/* The subscription is the PF's as well: it is not given back. */
static void begin(struct repath_sa_port *sp)
{
	sp->relayed = true;
	sp->subscribed = false;
	sp->since_ns = ktime_get_boottime_ns();
	sp->state = REPATH_SM_RELAYED;
	/* What was reported before has not been heard, by users in the kernel neither. */
	repath_sa_want_table(sp, true);
	repath_sa_kick(sp);
}

/**
 * repath_sa_relay - the hypervisor has heard something for this port
 * @sp: port
 * @notice: REPATH_NOTICE_SIZE bytes; NULL: it begins to tell
 *
 * Return: 0; -EOPNOTSUPP: switched off; -ENETDOWN: nobody is believed now; -ENOTCONN: it has not
 * begun; -EBUSY: too many at once.
 */
int repath_sa_relay(struct repath_sa_port *sp, const void *notice)
{
	struct ib_mad mad = {};
	int err = 0;

	mutex_lock(&sp->mutex);
	if (!sp->on)
		err = -EOPNOTSUPP;
	else if (!sp->way)
		err = -ENETDOWN;
	else if (!notice)
		begin(sp);
	else if (!sp->relayed)
		err = -ENOTCONN;
	mutex_unlock(&sp->mutex);
	if (err || !notice)
		return err;
	memcpy(((struct ib_sa_mad *)&mad)->data, notice, REPATH_NOTICE_SIZE);
	return repath_sa_keep(sp, &mad, true) ? 0 : -EBUSY;
}

/* Constants, as extack wants them. */
static const char *why(int err)
{
	switch (err) {
	case -ENODEV:
		return "no InfiniBand port of that number";
	case -EOPNOTSUPP:
		return "the port does not listen: repath path listen";
	case -ENETDOWN:
		return "the port is not active, or has no subnet manager";
	case -ENOTCONN:
		return "the hypervisor has not begun to tell";
	}
	return "too many at once";
}

static int relay(struct repath_device *dev, u32 port, const void *notice)
{
	struct repath_sa_port *sp;
	int err = -ENODEV;

	mutex_lock(&dev->sa_mutex);
	list_for_each_entry(sp, &dev->sa_ports, node)
		if (sp->port == port)
			err = repath_sa_relay(sp, notice);
	mutex_unlock(&dev->sa_mutex);
	return err;
}

/* RELAY */
int repath_relay_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev = repath_nl_admins_device(skb, info);
	struct nlattr **attrs = info->attrs;
	int err;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = relay(dev, attrs[REPATH_A_PORT] ? nla_get_u32(attrs[REPATH_A_PORT]) : 0,
		    attrs[REPATH_A_NOTICE] ? nla_data(attrs[REPATH_A_NOTICE]) : NULL);
	repath_device_put(dev);
	if (err)
		info->extack->_msg = why(err);
	return err;
}
