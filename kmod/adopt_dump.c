// SPDX-License-Identifier: GPL-2.0
/*
 * ADOPT. The request itself waits for nothing: it has the devices rescanned, and what that comes
 * to is waited for by who reads the dump, in whose way nobody else is.
 */
#include <linux/capability.h>
#include <linux/slab.h>

#include "adopt.h"
#include "compat/genl.h"
#include "device.h"
#include "netlink.h"

/**
 * struct adopting - a device that is being rescanned
 * @node: in struct adopt_dump
 * @dev: holds a reference
 * @ticket: for repath_adopt_wait()
 * @result: what was before; then what it came to
 * @ended: @result is the result
 */
struct adopting {
	struct list_head node;
	struct repath_device *dev;
	u32 ticket;
	struct repath_adoption result;
	bool ended;
};

struct adopt_dump {
	struct list_head devices;
};

static void drop(struct adopting *a)
{
	list_del(&a->node);
	repath_device_put(a->dev);
	kfree(a);
}

/* Takes over the reference of @dev. */
static int begin(struct adopt_dump *dump, struct repath_device *dev)
{
	struct adopting *a = kmalloc(sizeof(*a), GFP_KERNEL_ACCOUNT);

	if (!a) {
		repath_device_put(dev);
		return -ENOMEM;
	}
	a->dev = dev;
	a->ticket = repath_adopt_begin(dev, &a->result);
	a->ended = false;
	list_add_tail(&a->node, &dump->devices);
	return 0;
}

static int begin_all(struct adopt_dump *dump, struct netlink_callback *cb)
{
	struct net *net = sock_net(cb->skb->sk);
	struct repath_device *dev;
	bool refused = false;
	int err;

	repath_device_for_each(dev, net) {
		if (repath_nl_may_admin(cb->skb, repath_device_net(dev), NULL)) {
			refused = true;
			continue;
		}
		err = begin(dump, repath_device_get(dev));
		if (err) {
			repath_device_put(dev);
			return err;
		}
	}
	/* Nothing to do is no error; nothing that may be done is. */
	if (!list_empty(&dump->devices) || !refused)
		return 0;
	NL_SET_ERR_MSG(cb->extack, "needs CAP_NET_ADMIN over a device's network namespace");
	return -EPERM;
}

static int begin_one(struct adopt_dump *dump, struct netlink_callback *cb,
		     const struct nlattr *name)
{
	struct repath_device *dev = repath_nl_device(sock_net(cb->skb->sk), name, cb->extack);
	int err;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = repath_nl_may_admin(cb->skb, repath_device_net(dev), cb->extack);
	if (err) {
		repath_device_put(dev);
		return err;
	}
	return begin(dump, dev);
}

static int fill_result(struct sk_buff *skb, struct repath_device *dev,
		       const struct repath_adoption *r)
{
	if (nla_put_u32(skb, REPATH_A_QP_COUNT, READ_ONCE(dev->qp_count)) ||
	    nla_put_u32(skb, REPATH_A_CTX_COUNT, READ_ONCE(dev->ctx_count)) ||
	    nla_put_u32(skb, REPATH_A_ADOPTED_QPS, r->qps) ||
	    nla_put_u32(skb, REPATH_A_ADOPTED_CTXS, r->ctxs) ||
	    nla_put_u32(skb, REPATH_A_CORRECTED, r->corrected) ||
	    nla_put_u32(skb, REPATH_A_SWEPT, r->swept) ||
	    nla_put_u32(skb, REPATH_A_MISSING_QPS, r->missing_qps) ||
	    nla_put_u32(skb, REPATH_A_MISSING_CTXS, r->missing_ctxs))
		return -EMSGSIZE;
	if ((r->missing_qps || r->missing_ctxs) &&
	    (nla_put_u32(skb, REPATH_A_ERRNO, EAGAIN) ||
	     nla_put_string(skb, REPATH_A_REASON,
			    "being made or destroyed at this moment, or no memory: adopt again")))
		return -EMSGSIZE;
	return 0;
}

/* @result: NULL: the rescan has begun. */
static int tell(struct sk_buff *skb, struct netlink_callback *cb, struct repath_device *dev,
		const struct repath_adoption *result)
{
	char name[IB_DEVICE_NAME_MAX];
	struct nlattr *nest;
	void *hdr;

	hdr = repath_nl_dump_put(skb, cb, REPATH_CMD_ADOPT);
	if (!hdr)
		return -EMSGSIZE;
	repath_device_name(dev, name);
	nest = nla_nest_start(skb, REPATH_A_ADOPTION);
	if (!nest || nla_put_u32(skb, REPATH_A_DEV_INDEX, dev->index) ||
	    nla_put_string(skb, REPATH_A_DEV_NAME, name) ||
	    (result && fill_result(skb, dev, result))) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	genlmsg_end(skb, hdr);
	return 0;
}

static int dump_begin(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct nlattr *name = repath_dump_attrs(cb)[REPATH_A_DEV_NAME];
	struct adopt_dump *dump = kmalloc(sizeof(*dump), GFP_KERNEL_ACCOUNT);
	struct adopting *a;
	int err;

	if (!dump)
		return -ENOMEM;
	INIT_LIST_HEAD(&dump->devices);
	cb->args[0] = (long)dump;
	err = name ? begin_one(dump, cb, name) : begin_all(dump, cb);
	if (err)
		return err;
	/* An empty message would end the dump; a few hundred devices fit into one. */
	list_for_each_entry(a, &dump->devices, node)
		if (tell(skb, cb, a->dev, NULL))
			break;
	return skb->len;
}

/**
 * repath_adopt_dumpit - ADOPT
 * @skb: answer
 * @cb: request; args[0] is the struct adopt_dump
 *
 * The first call comes from the sender of the request, the others from who reads the answer.
 */
int repath_adopt_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct adopt_dump *dump = (struct adopt_dump *)cb->args[0];
	struct adopting *a;
	int err;

	if (!dump)
		return dump_begin(skb, cb);
	while ((a = list_first_entry_or_null(&dump->devices, struct adopting, node))) {
		/* What is there is told before the next one is waited for. */
		if (skb->len && !repath_adopt_has_ended(a->dev, a->ticket))
			break;
		err = a->ended ? 0 : repath_adopt_wait(a->dev, a->ticket, &a->result);
		if (err == -ERESTARTSYS)
			return -EINTR;
		a->ended = !err;
		if (a->ended && tell(skb, cb, a->dev, &a->result))
			break;
		drop(a);
	}
	return skb->len;
}

int repath_adopt_dump_done(struct netlink_callback *cb)
{
	struct adopt_dump *dump = (struct adopt_dump *)cb->args[0];
	struct adopting *a, *next;

	if (!dump)
		return 0;
	list_for_each_entry_safe(a, next, &dump->devices, node)
		drop(a);
	kfree(dump);
	return 0;
}
