// SPDX-License-Identifier: GPL-2.0
/* Processes whose shim has registered. */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <net/sock.h>

#include "conn.h"
#include "device.h"
#include "event.h"
#include "netlink.h"
#include "number.h"
#include "op.h"
#include "proc.h"
#include "track.h"

/* Protects the list; innermost, nothing is called under it. */
static DEFINE_SPINLOCK(repath_proc_lock);
static LIST_HEAD(procs);

static void proc_release(struct kref *kref)
{
	struct repath_proc *proc = container_of(kref, struct repath_proc, kref);

	WARN_ON(!list_empty(&proc->conns));
	repath_qp_unfollow();
	put_pid(proc->tgid);
	sock_put(proc->sk);
	put_net(proc->net);
	/* Not left readable in a slab: whoever knows it may speak for the process. */
	kfree_sensitive(proc);
}

/**
 * repath_proc_get - take another reference
 * @proc: process
 */
struct repath_proc *repath_proc_get(struct repath_proc *proc)
{
	kref_get(&proc->kref);
	return proc;
}

/**
 * repath_proc_put - give a reference back
 * @proc: process, or NULL
 */
void repath_proc_put(struct repath_proc *proc)
{
	if (proc)
		kref_put(&proc->kref, proc_release);
}

/* @proc: found under the lock or NULL. */
static struct repath_proc *found(struct repath_proc *proc)
{
	lockdep_assert_held(&repath_proc_lock);
	return proc ? repath_proc_get(proc) : NULL;
}

static struct repath_proc *find_tgid_locked(struct pid *tgid)
{
	struct repath_proc *proc;

	list_for_each_entry(proc, &procs, node)
		if (proc->tgid == tgid)
			return proc;
	return NULL;
}

/*
 * @closed: of a socket that has been closed. Its address is free before we are told so, and may be another one's by
 * then.
 */
static struct repath_proc *find_portid_locked(struct net *net, u32 portid, bool closed)
{
	struct repath_proc *proc;

	list_for_each_entry(proc, &procs, node)
		if (proc->portid == portid && net_eq(proc->net, net) &&
		    sock_flag(proc->sk, SOCK_DEAD) == closed)
			return proc;
	return NULL;
}

/**
 * repath_proc_find - the registered process of a thread group
 * @tgid: thread group
 *
 * Return: the process with a reference, or NULL when it has not registered.
 */
struct repath_proc *repath_proc_find(struct pid *tgid)
{
	struct repath_proc *proc;

	spin_lock(&repath_proc_lock);
	proc = found(find_tgid_locked(tgid));
	spin_unlock(&repath_proc_lock);
	return proc;
}

/**
 * find_portid - the process that registered on a socket
 * @net: the socket's network namespace
 * @portid: the socket's address
 * @closed: see find_portid_locked()
 *
 * Return: the process with a reference, or NULL.
 */
static struct repath_proc *find_portid(struct net *net, u32 portid, bool closed)
{
	struct repath_proc *proc;

	spin_lock(&repath_proc_lock);
	proc = found(find_portid_locked(net, portid, closed));
	spin_unlock(&repath_proc_lock);
	return proc;
}

/**
 * repath_proc_find_cookie - the process that other modules call by a cookie
 * @cookie: cookie
 *
 * Return: the process with a reference, or NULL.
 */
struct repath_proc *repath_proc_find_cookie(u64 cookie)
{
	struct repath_proc *proc, *hit = NULL;

	spin_lock(&repath_proc_lock);
	list_for_each_entry(proc, &procs, node)
		if (proc->cookie == cookie)
			hit = proc;
	hit = found(hit);
	spin_unlock(&repath_proc_lock);
	return hit;
}

/**
 * proc_add - make a registered process
 * @net: namespace of its socket
 * @sk: its socket
 * @portid: address of its socket
 * @tgid: thread group
 * @comm: name
 *
 * Return: the process with a reference besides the table's; -EBUSY: the thread group is registered on
 * another socket, or the socket by another thread group; -EALREADY: this very pair is; -ENOMEM.
 */
static struct repath_proc *proc_add(struct net *net, struct sock *sk, u32 portid, struct pid *tgid,
				    const char *comm)
{
	struct repath_proc *proc, *other;
	int err = 0;

	proc = kzalloc(sizeof(*proc), GFP_KERNEL_ACCOUNT);
	if (!proc)
		return ERR_PTR(-ENOMEM);
	kref_init(&proc->kref);
	repath_proc_lists_init(proc);
	repath_qp_follow();
	proc->net = get_net(net);
	sock_hold(sk);
	proc->sk = sk;
	proc->portid = portid;
	proc->tgid = get_pid(tgid);
	strscpy(proc->comm, comm, sizeof(proc->comm));
	do {
		proc->cookie = get_random_u64();
	} while (!proc->cookie);

	spin_lock(&repath_proc_lock);
	other = find_tgid_locked(tgid);
	if (other)
		err = other->sk == sk ? -EALREADY : -EBUSY;
	else if (find_portid_locked(net, portid, false))
		err = -EBUSY;
	else
		list_add_tail(&proc->node, &procs);
	if (!err)
		kref_get(&proc->kref);
	spin_unlock(&repath_proc_lock);
	if (err) {
		repath_proc_put(proc);
		return ERR_PTR(err);
	}
	return proc;
}

/**
 * proc_leave - a process is no longer registered
 * @proc: process
 *
 * Its suspended connections are told to be gone, operations go on without it. May sleep.
 */
static void proc_leave(struct repath_proc *proc)
{
	bool first;

	spin_lock(&repath_proc_lock);
	first = !proc->left;
	if (first) {
		proc->left = true;
		list_del(&proc->node);
	}
	spin_unlock(&repath_proc_lock);
	if (!first)
		return;

	repath_conn_proc_left(proc);
	repath_op_proc_left(proc);
	repath_event_process(proc->tgid, REPATH_EV_CHANGE);
	repath_proc_put(proc);
}

/**
 * repath_proc_released - a netlink socket was closed
 * @net: its namespace
 * @portid: its address
 */
void repath_proc_released(struct net *net, u32 portid)
{
	struct repath_proc *proc = find_portid(net, portid, true);

	if (!proc)
		return;
	proc_leave(proc);
	repath_proc_put(proc);
}

/**
 * repath_proc_of - the process that may speak by a request
 * @info: the request
 *
 * A child of fork has its parent's socket and is not its parent; it may not use its words.
 *
 * Return: the process with a reference, or NULL with extack set.
 */
struct repath_proc *repath_proc_of(struct genl_info *info)
{
	struct repath_proc *proc = find_portid(genl_info_net(info), info->snd_portid, false);

	if (proc && proc->tgid == task_tgid(current))
		return proc;
	if (proc)
		GENL_SET_ERR_MSG(info, "this socket was registered by another process");
	else
		GENL_SET_ERR_MSG(info, "the process is not registered on this socket");
	repath_proc_put(proc);
	return NULL;
}

/**
 * repath_proc_and_device_of - the process that may speak by a request, and the device that it speaks of
 * @info: the request, with DEV_INDEX
 * @proc: result, with a reference
 * @dev: result, with a reference
 *
 * Return: 0; -EPERM with extack set; -ENODEV: there is none of that index any more.
 */
int repath_proc_and_device_of(struct genl_info *info, struct repath_proc **proc,
			      struct repath_device **dev)
{
	*proc = repath_proc_of(info);
	if (!*proc)
		return -EPERM;
	*dev = repath_device_get_by_index(genl_info_net(info),
					  nla_get_u32(info->attrs[REPATH_A_DEV_INDEX]));
	if (*dev)
		return 0;
	repath_proc_put(*proc);
	return -ENODEV;
}

static int reply_registered(struct genl_info *info)
{
	struct sk_buff *skb;
	void *hdr;

	skb = repath_nl_reply_new(info, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_string(skb, REPATH_A_VERSION, REPATH_VERSION) ||
	    nla_put_u32(skb, REPATH_A_ABI_VERSION, REPATH_ABI_VERSION) ||
	    nla_put_u32(skb, REPATH_A_COUNT, repath_number_count()) ||
	    nla_put_u32(skb, REPATH_A_KNOWS, REPATH_KNOWS_ROUND)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return repath_nl_reply(info, skb, hdr);
}

/**
 * repath_proc_register - REGISTER
 * @skb: request
 * @info: request
 */
int repath_proc_register(struct sk_buff *skb, struct genl_info *info)
{
	char comm[TASK_COMM_LEN];
	struct repath_proc *proc;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, REPATH_A_ABI_VERSION))
		return -EINVAL;
	if (nla_get_u32(info->attrs[REPATH_A_ABI_VERSION]) != REPATH_ABI_VERSION) {
		pr_notice_ratelimited("repath: PID %d (%*pE) can not be moved: its libibrepath.so has ABI %u, this module %u\n",
				      task_tgid_nr(current), (int)strlen(current->comm),
				      current->comm,
				      nla_get_u32(info->attrs[REPATH_A_ABI_VERSION]),
				      REPATH_ABI_VERSION);
		GENL_SET_ERR_MSG(info, "libibrepath.so and ib_repath.ko are of different releases");
		return -EPROTO;
	}
	if (info->attrs[REPATH_A_COMM])
		nla_strscpy(comm, info->attrs[REPATH_A_COMM], sizeof(comm));
	else
		get_task_comm(comm, current->group_leader);

	proc = proc_add(genl_info_net(info), NETLINK_CB(skb).sk, info->snd_portid, task_tgid(current),
			comm);
	err = PTR_ERR_OR_ZERO(proc);
	if (err == -EALREADY)
		return reply_registered(info);
	if (err) {
		if (err == -EBUSY)
			GENL_SET_ERR_MSG(info, "already registered: one socket a process");
		return err;
	}
	err = reply_registered(info);
	if (err) {
		proc_leave(proc);
	} else {
		repath_conn_adopt(proc);
		repath_event_process(proc->tgid, REPATH_EV_CHANGE);
	}
	repath_proc_put(proc);
	return err;
}

/**
 * repath_proc_send - an event for a process
 * @proc: process
 * @skb: message of repath_nl_msg_new(); freed in every case
 * @hdr: its header
 *
 * Return: 0; -ESRCH: it has left; -EAGAIN: its socket is full.
 */
int repath_proc_send(struct repath_proc *proc, struct sk_buff *skb, void *hdr)
{
	/* Before its end is told, its address may be another one's already. */
	if (READ_ONCE(proc->left) || sock_flag(proc->sk, SOCK_DEAD)) {
		nlmsg_free(skb);
		return -ESRCH;
	}
	return repath_nl_unicast(proc->net, proc->portid, skb, hdr);
}

/**
 * repath_proc_tell_numbers - EV_NUMBERS
 * @proc: process
 * @count: so many queue pairs are known by other numbers than their own
 */
void repath_proc_tell_numbers(struct repath_proc *proc, u32 count)
{
	struct sk_buff *skb;
	void *hdr;

	skb = repath_nl_msg_new(REPATH_CMD_EV_NUMBERS, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return;
	if (nla_put_u32(skb, REPATH_A_COUNT, count))
		nlmsg_free(skb);
	else
		repath_proc_send(proc, skb, hdr);
}

/**
 * repath_proc_for_each - call a function for every registered process
 * @fn: may sleep
 * @arg: for @fn
 *
 * Processes that come or go meanwhile may be seen or not; one may be seen twice.
 */
void repath_proc_for_each(void (*fn)(struct repath_proc *proc, void *arg), void *arg)
{
	struct repath_proc *proc, *next;

	spin_lock(&repath_proc_lock);
	proc = found(list_first_entry_or_null(&procs, struct repath_proc, node));
	spin_unlock(&repath_proc_lock);
	while (proc) {
		fn(proc, arg);
		spin_lock(&repath_proc_lock);
		/* One that has left is on the list no more: who came after it is not known. */
		if (proc->left)
			next = found(list_first_entry_or_null(&procs, struct repath_proc, node));
		else if (list_is_last(&proc->node, &procs))
			next = NULL;
		else
			next = found(list_next_entry(proc, node));
		spin_unlock(&repath_proc_lock);
		repath_proc_put(proc);
		proc = next;
	}
}

int repath_proc_init(void)
{
	return 0;
}

/*
 * The netlink family is gone, so nobody registers or leaves any more. The connections and operations that held
 * references are gone, too: what remains is the table's reference. The shims learn of it when they speak
 * next, or by the controller's notification of the family.
 */
void repath_proc_exit(void)
{
	struct repath_proc *proc, *next;

	list_for_each_entry_safe(proc, next, &procs, node) {
		list_del(&proc->node);
		repath_proc_put(proc);
	}
}
