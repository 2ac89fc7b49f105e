// SPDX-License-Identifier: GPL-2.0
/*
 * LISTEN: a socket hears the events of the group "monitor" by unicast, with PIDs as they are in the PID
 * namespace of who asked for it. A multicast is one message for all, so it can not name a process.
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/mutex.h>
#include <linux/pid_namespace.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/srcu.h>
#include <linux/user_namespace.h>
#include <net/sock.h>

#include "listen.h"
#include "netlink.h"

/**
 * struct listener - a socket that listens
 * @node: in listeners
 * @net: namespace of the socket, which holds it
 * @sk: the socket; holds a reference, of the struct alone
 * @portid: address of the socket; another one may have it as soon as that is closed
 * @ns: whose PIDs it is told; a reference
 * @user: who has asked, see user_of()
 * @counts: it is one of those of which there may be so many only
 * @rcu: frees it
 */
struct listener {
	struct list_head node;
	struct net *net;
	struct sock *sk;
	u32 portid;
	struct pid_namespace *ns;
	kuid_t user;
	bool counts;
	struct rcu_head rcu;
};

#define NET_BITS 6

/* Whoever makes a queue pair waits until all have been told. */
#define MAX_OF_USER	64
#define MAX_IN_ALL	1024

/*
 * Changed under the mutex; read under SRCU, as who tells may sleep and holds locks of all kinds. Those of
 * one network and PID namespace stand side by side: a message is made once for all of them.
 */
static LIST_HEAD(listeners);
static DEFINE_MUTEX(listen_mutex);
DEFINE_STATIC_SRCU(listen_srcu);
/* How many, by network namespace, so that those who listen elsewhere cost hooks next to nothing. */
static atomic_t listening[1 << NET_BITS];

static atomic_t *count_of(const struct net *net)
{
	return &listening[hash_ptr(net, NET_BITS)];
}

static struct listener *find_locked(const struct sock *sk)
{
	struct listener *l;

	lockdep_assert_held(&listen_mutex);
	list_for_each_entry(l, &listeners, node)
		if (l->sk == sk)
			return l;
	return NULL;
}

/* The one that has been closed of those that had the address: another one may have it by now. */
static struct listener *find_closed_locked(const struct net *net, u32 portid)
{
	struct listener *l;

	lockdep_assert_held(&listen_mutex);
	list_for_each_entry(l, &listeners, node)
		if (l->portid == portid && net_eq(l->net, net) && sock_flag(l->sk, SOCK_DEAD))
			return l;
	return NULL;
}

/*
 * Who has made a user namespace, or namespaces below that, is one user with all that there are in
 * these. The administrator makes them for others: those are one for each.
 */
static kuid_t user_of(const struct cred *cred)
{
	struct user_namespace *ns = cred->user_ns;

	if (ns == &init_user_ns)
		return cred->uid;
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) ? make_kuid(ns, 0) : ns->owner;
}

/* Anybody may listen, and there may be many. */
static bool is_one_too_many(const struct listener *l)
{
	unsigned int own = 0, all = 0;
	struct listener *other;

	lockdep_assert_held(&listen_mutex);
	list_for_each_entry(other, &listeners, node) {
		all += other->counts;
		own += other->counts && uid_eq(other->user, l->user);
	}
	return l->counts && (own >= MAX_OF_USER || all >= MAX_IN_ALL);
}

static void unlink_locked(struct listener *l)
{
	lockdep_assert_held(&listen_mutex);
	list_del_rcu(&l->node);
	atomic_dec(count_of(l->net));
}

static void listener_free(struct rcu_head *rcu)
{
	struct listener *l = container_of(rcu, struct listener, rcu);

	put_pid_ns(l->ns);
	sock_put(l->sk);
	kfree(l);
}

/* Behind which it is to stand. */
static struct list_head *place_locked(const struct listener *l)
{
	struct listener *other;

	lockdep_assert_held(&listen_mutex);
	list_for_each_entry(other, &listeners, node)
		if (net_eq(other->net, l->net) && other->ns == l->ns)
			return &other->node;
	return &listeners;
}

/**
 * repath_listen_cmd - LISTEN
 * @skb: request
 * @info: request
 *
 * Return: 0, also if the socket listens already; -ENOMEM, -EUSERS.
 */
int repath_listen_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct listener *l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	bool listens;
	int err = 0;

	if (!l)
		return -ENOMEM;
	l->net = genl_info_net(info);
	l->portid = info->snd_portid;
	l->sk = NETLINK_CB(skb).sk;
	sock_hold(l->sk);
	l->ns = get_pid_ns(task_active_pid_ns(current));
	l->user = user_of(current_cred());
	l->counts = !ns_capable_noaudit(&init_user_ns, CAP_NET_ADMIN);
	mutex_lock(&listen_mutex);
	listens = find_locked(l->sk);
	if (!listens && is_one_too_many(l)) {
		GENL_SET_ERR_MSG(info, "too many sockets listen already, of this user or of all");
		err = -EUSERS;
	} else if (!listens) {
		list_add_rcu(&l->node, place_locked(l));
		atomic_inc(count_of(l->net));
		/* It dumps after this: what has not been told by then it finds there. */
		smp_mb__after_atomic();
		l = NULL;
	}
	mutex_unlock(&listen_mutex);
	if (l)
		listener_free(&l->rcu);
	return err;
}

/**
 * repath_listen_released - a netlink socket was closed
 * @net: its namespace
 * @portid: its address
 */
void repath_listen_released(struct net *net, u32 portid)
{
	struct listener *l;

	if (!repath_listen_any(net))
		return;
	mutex_lock(&listen_mutex);
	l = find_closed_locked(net, portid);
	if (l) {
		unlink_locked(l);
		/* Other sockets wait behind this one's notifier. */
		call_srcu(&listen_srcu, &l->rcu, listener_free);
	}
	mutex_unlock(&listen_mutex);
}

/**
 * repath_listen_any - does anybody listen in a network namespace?
 * @net: the namespace
 *
 * Context: any.
 * Return: false for certain; true also for a few others whose hash is the same.
 */
bool repath_listen_any(const struct net *net)
{
	return atomic_read(count_of(net));
}

/* The message for @ns, or for all if it is NULL; without its end. */
static struct sk_buff *message_for(struct pid_namespace *ns, u8 cmd, size_t size,
				   repath_listen_fn fill, void *arg, void **hdr)
{
	struct sk_buff *skb = repath_nl_msg_new(cmd, size, hdr);
	int err = skb ? fill(skb, ns, arg) : -ENOMEM;

	WARN_ON_ONCE(err && err != -ENODATA && err != -ENOMEM);
	if (!err)
		return skb;
	nlmsg_free(skb);
	return NULL;
}

/**
 * repath_listen_tell - tell an event to all who listen in a network namespace
 * @net: the namespace
 * @cmd: REPATH_CMD_EV_*
 * @size: of its attributes, at most
 * @fill: writes them, for each PID namespace that listens
 * @arg: for @fill
 *
 * Who does not read loses events, and is told so by the socket: ENOBUFS.
 *
 * Context: process; @fill may sleep.
 */
void repath_listen_tell(struct net *net, u8 cmd, size_t size, repath_listen_fn fill, void *arg)
{
	const struct pid_namespace *ns = NULL;
	struct sk_buff *skb = NULL, *copy;
	struct listener *l;
	void *hdr;
	int idx;

	if (!repath_listen_any(net))
		return;
	idx = srcu_read_lock(&listen_srcu);
	list_for_each_entry_srcu(l, &listeners, node, srcu_read_lock_held(&listen_srcu)) {
		/* The address of one that is closed may be another one's before that is told. */
		if (!net_eq(l->net, net) || sock_flag(l->sk, SOCK_DEAD))
			continue;
		if (l->ns != ns) {
			nlmsg_free(skb);
			skb = message_for(l->ns, cmd, size, fill, arg, &hdr);
			ns = l->ns;
		}
		copy = skb ? skb_clone(skb, GFP_KERNEL) : NULL;
		if (copy)
			repath_nl_unicast(net, l->portid, copy, hdr);
	}
	srcu_read_unlock(&listen_srcu, idx);
	nlmsg_free(skb);
}

/**
 * repath_listen_tell_group - tell an event to a multicast group, in no PID namespace
 * @net: the network namespace
 * @group: the group
 * @cmd: REPATH_CMD_EV_*
 * @size: of its attributes, at most
 * @fill: writes them
 * @arg: for @fill
 *
 * Context: process; @fill may sleep.
 */
void repath_listen_tell_group(struct net *net, enum repath_nl_group group, u8 cmd, size_t size,
			      repath_listen_fn fill, void *arg)
{
	struct sk_buff *skb;
	void *hdr;

	if (!repath_nl_has_listeners(net, group))
		return;
	skb = message_for(NULL, cmd, size, fill, arg, &hdr);
	if (skb)
		repath_nl_multicast(net, group, skb, hdr);
}

/**
 * repath_listen_exit - nobody listens any more; there are no requests
 */
void repath_listen_exit(void)
{
	struct listener *l, *next;

	mutex_lock(&listen_mutex);
	list_for_each_entry_safe(l, next, &listeners, node) {
		unlink_locked(l);
		call_srcu(&listen_srcu, &l->rcu, listener_free);
	}
	mutex_unlock(&listen_mutex);
	srcu_barrier(&listen_srcu);
}
