// SPDX-License-Identifier: GPL-2.0
/*
 * LISTEN: a socket hears the events of the group "monitor" by unicast, with PIDs as they are in the PID
 * namespace of who asked for it. A multicast is one message for all, so it can not name a process.
 */
#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/pid_namespace.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/srcu.h>

#include "listen.h"
#include "netlink.h"

/**
 * struct listener - a socket that listens
 * @node: in listeners
 * @net: namespace of the socket, which holds it
 * @portid: address of the socket
 * @ns: whose PIDs it is told; a reference
 */
struct listener {
	struct list_head node;
	struct net *net;
	u32 portid;
	struct pid_namespace *ns;
};

/* Changed under the mutex; read under SRCU, as who tells may sleep and holds locks of all kinds. */
static LIST_HEAD(listeners);
static DEFINE_MUTEX(listen_mutex);
DEFINE_STATIC_SRCU(listen_srcu);
static atomic_t listening = ATOMIC_INIT(0);

static struct listener *find_locked(const struct net *net, u32 portid)
{
	struct listener *l;

	lockdep_assert_held(&listen_mutex);
	list_for_each_entry(l, &listeners, node)
		if (l->portid == portid && net_eq(l->net, net))
			return l;
	return NULL;
}

static void unlink_locked(struct listener *l)
{
	lockdep_assert_held(&listen_mutex);
	list_del_rcu(&l->node);
	atomic_dec(&listening);
}

/* @l: unlinked, and nobody reads it any more. */
static void listener_free(struct listener *l)
{
	put_pid_ns(l->ns);
	kfree(l);
}

/**
 * repath_listen_cmd - LISTEN
 * @skb: request
 * @info: request
 *
 * Return: 0, also if the socket listens already; -ENOMEM.
 */
int repath_listen_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct listener *l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);

	if (!l)
		return -ENOMEM;
	l->net = genl_info_net(info);
	l->portid = info->snd_portid;
	l->ns = get_pid_ns(task_active_pid_ns(current));
	mutex_lock(&listen_mutex);
	if (!find_locked(l->net, l->portid)) {
		list_add_tail_rcu(&l->node, &listeners);
		atomic_inc(&listening);
		/* It dumps after this: what has not been told by then it finds there. */
		smp_mb__after_atomic();
		l = NULL;
	}
	mutex_unlock(&listen_mutex);
	if (l)
		listener_free(l);
	return 0;
}

/**
 * repath_listen_released - a netlink socket was closed
 * @net: its namespace
 * @portid: its address
 */
void repath_listen_released(struct net *net, u32 portid)
{
	struct listener *l;

	if (!repath_listen_any())
		return;
	mutex_lock(&listen_mutex);
	l = find_locked(net, portid);
	if (l)
		unlink_locked(l);
	mutex_unlock(&listen_mutex);
	if (!l)
		return;
	synchronize_srcu(&listen_srcu);
	listener_free(l);
}

/**
 * repath_listen_any - does anybody listen, in whatever namespace?
 *
 * Context: any.
 */
bool repath_listen_any(void)
{
	return atomic_read(&listening);
}

/**
 * repath_listen_tell - tell an event to all who listen in a network namespace
 * @net: the namespace
 * @cmd: REPATH_CMD_EV_*
 * @size: of its attributes, at most
 * @fill: writes them, for each listener
 * @arg: for @fill
 *
 * Who does not read loses events, and is told so by the socket: ENOBUFS.
 *
 * Context: process; @fill may sleep.
 */
void repath_listen_tell(struct net *net, u8 cmd, size_t size, repath_listen_fn fill, void *arg)
{
	struct listener *l;
	struct sk_buff *skb;
	int idx, err;
	void *hdr;

	if (!repath_listen_any())
		return;
	idx = srcu_read_lock(&listen_srcu);
	list_for_each_entry_srcu(l, &listeners, node, srcu_read_lock_held(&listen_srcu)) {
		if (!net_eq(l->net, net))
			continue;
		skb = repath_nl_msg_new(cmd, size, &hdr);
		if (!skb)
			continue;
		err = fill(skb, l->ns, arg);
		if (err)
			nlmsg_free(skb);
		else
			repath_nl_unicast(net, l->portid, skb, hdr);
		WARN_ON_ONCE(err && err != -ENODATA);
	}
	srcu_read_unlock(&listen_srcu, idx);
}

/**
 * repath_listen_exit - nobody listens any more; there are no requests
 */
void repath_listen_exit(void)
{
	struct listener *l, *next;
	LIST_HEAD(left);

	mutex_lock(&listen_mutex);
	while ((l = list_first_entry_or_null(&listeners, struct listener, node))) {
		unlink_locked(l);
		synchronize_srcu(&listen_srcu);
		list_add(&l->node, &left);
	}
	mutex_unlock(&listen_mutex);
	list_for_each_entry_safe(l, next, &left, node)
		listener_free(l);
}
