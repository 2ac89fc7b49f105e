// SPDX-License-Identifier: GPL-2.0
/*
 * Reading: queue pairs, processes, devices. A dump first collects what it will tell, with
 * references, so that what comes and goes between two of its messages neither repeats nor hides
 * anything.
 */
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>

#include "compat/genl.h"
#include "device.h"
#include "netlink.h"
#include "qp_filter.h"
#include "track.h"

#define ANSWER_SIZE 1024

/* A page of what a dump will tell. */
struct dump_page {
	struct list_head node;
	unsigned int n;
	void *obj[(PAGE_SIZE - sizeof(struct list_head) - sizeof(long)) / sizeof(void *)];
};

/**
 * struct dump - what a dump will tell
 * @pages: in order
 * @pos: next object of the first page
 * @put: drops a reference of an object
 */
struct dump {
	struct list_head pages;
	unsigned int pos;
	void (*put)(void *obj);
};

static int dump_add(struct dump *dump, void *obj)
{
	struct dump_page *page;

	BUILD_BUG_ON(sizeof(*page) > PAGE_SIZE);
	page = list_empty(&dump->pages) ? NULL :
	       list_last_entry(&dump->pages, struct dump_page, node);
	if (!page || page->n == ARRAY_SIZE(page->obj)) {
		page = kmalloc(sizeof(*page), GFP_KERNEL_ACCOUNT);
		if (!page)
			return -ENOMEM;
		page->n = 0;
		list_add_tail(&page->node, &dump->pages);
	}
	page->obj[page->n++] = obj;
	return 0;
}

/* The object to tell next, NULL at the end. */
static void *dump_peek(struct dump *dump)
{
	struct dump_page *page;

	page = list_first_entry_or_null(&dump->pages, struct dump_page, node);
	return page ? page->obj[dump->pos] : NULL;
}

static void dump_advance(struct dump *dump)
{
	struct dump_page *page = list_first_entry(&dump->pages, struct dump_page, node);

	dump->put(page->obj[dump->pos]);
	if (++dump->pos < page->n)
		return;
	dump->pos = 0;
	list_del(&page->node);
	kfree(page);
}

static struct dump *dump_new(void (*put)(void *obj))
{
	struct dump *dump = kzalloc(sizeof(*dump), GFP_KERNEL_ACCOUNT);

	if (dump) {
		INIT_LIST_HEAD(&dump->pages);
		dump->put = put;
	}
	return dump;
}

static void dump_free(struct dump *dump)
{
	while (dump_peek(dump))
		dump_advance(dump);
	kfree(dump);
}

static int dump_done(struct netlink_callback *cb)
{
	struct dump *dump = (struct dump *)cb->args[0];

	if (dump)
		dump_free(dump);
	return 0;
}

static int dump_tell(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
		     int (*fill)(struct sk_buff *skb, void *obj, struct pid_namespace *ns))
{
	struct dump *dump = (struct dump *)cb->args[0];
	void *obj, *hdr;

	while ((obj = dump_peek(dump))) {
		hdr = repath_nl_dump_put(skb, cb, cmd);
		if (!hdr)
			break;
		if (fill(skb, obj, task_active_pid_ns(current))) {
			genlmsg_cancel(skb, hdr);
			break;
		}
		genlmsg_end(skb, hdr);
		dump_advance(dump);
	}
	return skb->len;
}

/* One object as the answer to a request. */
static int answer(struct genl_info *info, void *obj,
		  int (*fill)(struct sk_buff *skb, void *obj, struct pid_namespace *ns))
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	skb = repath_nl_reply_new(info, ANSWER_SIZE, &hdr);
	if (!skb)
		return -ENOMEM;
	err = fill(skb, obj, task_active_pid_ns(current));
	if (err) {
		nlmsg_free(skb);
		return err;
	}
	return repath_nl_reply(info, skb, hdr);
}

/* VERSION_GET */
int repath_version_doit(struct sk_buff *skb, struct genl_info *info)
{
	void *hdr;

	skb = repath_nl_reply_new(info, ANSWER_SIZE, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_string(skb, REPATH_A_VERSION, THIS_MODULE->version) ||
	    nla_put_u32(skb, REPATH_A_ABI_VERSION, REPATH_ABI_VERSION)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return repath_nl_reply(info, skb, hdr);
}

static int fill_qp(struct sk_buff *skb, void *obj, struct pid_namespace *ns)
{
	return repath_fill_qp(skb, obj, ns);
}

static void drop_qp(void *obj)
{
	repath_qp_put(obj);
}

/* QP_GET for one: DEV_NAME and QPN, and PORT for 0 and 1. */
int repath_qp_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev;
	struct repath_qp *rqp;
	u32 key;
	int err;

	dev = repath_nl_device(genl_info_net(info), info->attrs[REPATH_A_DEV_NAME],
			       info->extack);
	if (IS_ERR(dev))
		return PTR_ERR(dev);

	err = -EINVAL;
	if (!info->attrs[REPATH_A_QPN]) {
		NL_SET_ERR_MSG(info->extack, "QPN is missing");
		goto put_device;
	}
	key = nla_get_u32(info->attrs[REPATH_A_QPN]);
	if (key <= 1) {
		if (!info->attrs[REPATH_A_PORT] ||
		    nla_get_u32(info->attrs[REPATH_A_PORT]) > dev->ports) {
			NL_SET_ERR_MSG(info->extack, "QPN 0 and 1 need a PORT of the device");
			goto put_device;
		}
		key |= nla_get_u32(info->attrs[REPATH_A_PORT]) << 24;
	}

	rqp = repath_qp_find(dev, key);
	if (!rqp) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[REPATH_A_QPN],
				    "no queue pair of this number on the device");
		err = -ENOENT;
		goto put_device;
	}
	repath_qp_ask(rqp);
	err = answer(info, rqp, fill_qp);
	repath_qp_put(rqp);
put_device:
	repath_device_put(dev);
	return err;
}

static int collect_qp(struct repath_qp *rqp, void *arg)
{
	int err;

	kref_get(&rqp->kref);
	err = dump_add(arg, rqp);
	if (err)
		repath_qp_put(rqp);
	return err;
}

static int qp_dump_begin(struct netlink_callback *cb)
{
	struct repath_qp_filter filter;
	struct dump *dump;
	int err;

	err = repath_qp_filter_parse(&filter, sock_net(cb->skb->sk), repath_dump_attrs(cb),
				     cb->extack);
	if (err)
		return err;
	dump = dump_new(drop_qp);
	err = dump ? repath_qp_filter_walk(&filter, collect_qp, dump) : -ENOMEM;
	repath_qp_filter_free(&filter);
	if (err && dump)
		dump_free(dump);
	else
		cb->args[0] = (long)dump;
	return err;
}

/*
 * The collection is made by the first dumpit() rather than by start(): there 6.1 has no extack.
 */
int repath_qp_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	int err = cb->args[0] ? 0 : qp_dump_begin(cb);

	if (err)
		return err;
	return dump_tell(skb, cb, REPATH_CMD_QP_GET, fill_qp);
}

int repath_qp_dump_done(struct netlink_callback *cb)
{
	return dump_done(cb);
}

static int fill_process(struct sk_buff *skb, void *obj, struct pid_namespace *ns)
{
	return repath_fill_process(skb, obj, ns);
}

static void drop_user(void *obj)
{
	repath_user_put(obj);
}

static int first_user(struct repath_user *user, void *arg)
{
	struct repath_user **found = arg;

	kref_get(&user->kref);
	*found = user;
	return 1;
}

/* PROCESS_GET for one: DEV_NAME and PID. */
int repath_process_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_user *user = NULL;
	struct repath_device *dev;
	struct pid *tgid;
	int err;

	dev = repath_nl_device(genl_info_net(info), info->attrs[REPATH_A_DEV_NAME],
			       info->extack);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	if (!info->attrs[REPATH_A_PID]) {
		NL_SET_ERR_MSG(info->extack, "PID is missing");
		repath_device_put(dev);
		return -EINVAL;
	}

	tgid = find_get_pid(nla_get_u32(info->attrs[REPATH_A_PID]));
	err = tgid ? repath_user_for_each(dev, tgid, first_user, &user) : 0;
	put_pid(tgid);
	repath_device_put(dev);
	if (err < 0)
		return err;
	if (!user) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[REPATH_A_PID],
				    "this process does not use the device");
		return -ENOENT;
	}
	err = answer(info, user, fill_process);
	repath_user_put(user);
	return err;
}

struct user_collector {
	struct dump *dump;
	const struct net *net;
};

static int collect_user(struct repath_user *user, void *arg)
{
	struct user_collector *to = arg;
	int err;

	/* Whom the reader can not see he is not told of. */
	if (!repath_nl_pid(user->pid) || !rdma_dev_access_netns(user->dev->ibdev, to->net))
		return 0;
	kref_get(&user->kref);
	err = dump_add(to->dump, user);
	if (err)
		repath_user_put(user);
	return err;
}

static int collect_users(struct nlattr **attrs, struct user_collector *to,
			 struct netlink_ext_ack *extack)
{
	const struct nlattr *name = attrs[REPATH_A_DEV_NAME];
	struct repath_device *dev = NULL;
	struct pid *tgid = NULL;
	int err = 0;

	if (name) {
		dev = repath_nl_device(to->net, name, extack);
		if (IS_ERR(dev))
			return PTR_ERR(dev);
	}
	if (attrs[REPATH_A_PID]) {
		tgid = find_get_pid(nla_get_u32(attrs[REPATH_A_PID]));
		if (tgid)
			err = repath_user_for_each(dev, tgid, collect_user, to);
		put_pid(tgid);
	} else if (dev) {
		err = repath_user_for_each(dev, NULL, collect_user, to);
	}
	if (dev) {
		repath_device_put(dev);
		return err;
	}
	if (attrs[REPATH_A_PID])
		return err;

	repath_device_for_each(dev, to->net) {
		err = repath_user_for_each(dev, NULL, collect_user, to);
		if (err) {
			repath_device_put(dev);
			break;
		}
	}
	return err;
}

static int process_dump_begin(struct netlink_callback *cb)
{
	struct user_collector to = { .net = sock_net(cb->skb->sk) };
	int err;

	to.dump = dump_new(drop_user);
	if (!to.dump)
		return -ENOMEM;
	err = collect_users(repath_dump_attrs(cb), &to, cb->extack);
	if (err)
		dump_free(to.dump);
	else
		cb->args[0] = (long)to.dump;
	return err;
}

int repath_process_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	int err = cb->args[0] ? 0 : process_dump_begin(cb);

	if (err)
		return err;
	return dump_tell(skb, cb, REPATH_CMD_PROCESS_GET, fill_process);
}

int repath_process_dump_done(struct netlink_callback *cb)
{
	return dump_done(cb);
}

static int fill_device(struct sk_buff *skb, void *obj, struct pid_namespace *ns)
{
	return repath_fill_device(skb, obj);
}

/* DEVICE_GET for one: DEV_NAME. */
int repath_device_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev;
	int err;

	dev = repath_nl_device(genl_info_net(info), info->attrs[REPATH_A_DEV_NAME],
			       info->extack);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = answer(info, dev, fill_device);
	repath_device_put(dev);
	return err;
}

static int tell_device(struct sk_buff *skb, struct netlink_callback *cb,
		       struct repath_device *dev)
{
	void *hdr;

	hdr = repath_nl_dump_put(skb, cb, REPATH_CMD_DEVICE_GET);
	if (!hdr)
		return -EMSGSIZE;
	if (repath_fill_device(skb, dev)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* args[0]: index of the device to tell next; above all indexes at the end. */
int repath_device_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct nlattr *name = repath_dump_attrs(cb)[REPATH_A_DEV_NAME];
	struct net *net = sock_net(cb->skb->sk);
	struct repath_device *dev;
	u64 next = cb->args[0];
	int err;

	if (name && !next) {
		dev = repath_nl_device(net, name, cb->extack);
		if (IS_ERR(dev))
			return PTR_ERR(dev);
		err = tell_device(skb, cb, dev);
		repath_device_put(dev);
		if (err)
			return err;
		next = (u64)U32_MAX + 1;
	}
	while (next <= U32_MAX && (dev = repath_device_next(net, next))) {
		next = dev->index;
		err = tell_device(skb, cb, dev);
		repath_device_put(dev);
		if (err)
			break;
		next++;
	}
	cb->args[0] = next;
	return skb->len;
}
