/* SPDX-License-Identifier: GPL-2.0 */
/* Processes whose shim has registered: one netlink socket each. */
#ifndef REPATH_PROC_H
#define REPATH_PROC_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <net/net_namespace.h>

struct sk_buff;
struct sock;
struct genl_info;
struct repath_device;

/* The module's version, as MODULE_VERSION() and VERSION on the netlink interface have it. */
#ifndef REPATH_VERSION
#define REPATH_VERSION "0.1"
#endif

/**
 * struct repath_proc - a registered process
 * @kref: the table holds one; connections and operations hold one each
 * @node: in the table; repath_proc_lock
 * @conns: its connections; repath_conn_mutex
 * @knowns: peers of it that have moved, see known.c; repath_conn_mutex
 * @watches: senders to its UD queue pairs, see watch.c; repath_conn_mutex
 * @asks: its questions, see resolve.c; repath_conn_mutex
 * @unknown: those that are to be asked again, see resolve_ask.c; repath_conn_mutex
 * @has_unknown: in the list of processes that have such, or empty; repath_conn_mutex
 * @tgid: the process
 * @net: namespace of its socket; held by the socket, so valid while @left is false
 * @sk: the socket; holds a reference, of the struct alone
 * @portid: netlink address of the socket; another one may have it as soon as that is closed
 * @cookie: 64 random bits that name this process to other modules; never zero
 * @nconns: entries of @conns; repath_conn_mutex
 * @nunbound: of these, without a queue pair; repath_conn_mutex
 * @kept: operations that keep numbers of it; repath_conn_mutex
 * @hellos: HELLOs of its connections that are under way; repath_conn_mutex
 * @questions: RESOLVEs to connect by that are not answered; repath_conn_mutex
 * @ud_questions: those of UD addresses, which are kept; repath_conn_mutex
 * @sending: what its messages that are under way take of memory, in bytes
 * @left: the socket was closed; set once, before the table's reference is dropped
 * @comm: name of the thread that registered
 */
struct repath_proc {
	struct kref kref;
	struct list_head node;
	struct list_head conns;
	struct list_head knowns;
	struct list_head watches;
	struct list_head asks;
	struct list_head unknown;
	struct list_head has_unknown;
	struct pid *tgid;
	struct net *net;
	struct sock *sk;
	u32 portid;
	u64 cookie;
	u32 nconns;
	u32 nunbound;
	u32 kept;
	u32 questions;
	u32 hellos;
	u32 ud_questions;
	atomic_t sending;
	bool left;
	char comm[TASK_COMM_LEN];
};

/* Of a new one. */
static inline void repath_proc_lists_init(struct repath_proc *proc)
{
	INIT_LIST_HEAD(&proc->conns);
	INIT_LIST_HEAD(&proc->knowns);
	INIT_LIST_HEAD(&proc->watches);
	INIT_LIST_HEAD(&proc->asks);
	INIT_LIST_HEAD(&proc->unknown);
	INIT_LIST_HEAD(&proc->has_unknown);
}

int repath_proc_init(void);
void repath_proc_exit(void);

struct repath_proc *repath_proc_get(struct repath_proc *proc);
void repath_proc_put(struct repath_proc *proc);

/* The registered process of a tgid, a cookie; with a reference, or NULL. */
struct repath_proc *repath_proc_find(struct pid *tgid);
struct repath_proc *repath_proc_find_cookie(u64 cookie);
/* Has a process of this host this cookie? */
static inline bool repath_proc_is_local(u64 cookie)
{
	struct repath_proc *proc = repath_proc_find_cookie(cookie);

	repath_proc_put(proc);
	return proc;
}

/* REGISTER: process context of the process itself. */
int repath_proc_register(struct sk_buff *skb, struct genl_info *info);
/* The process that may speak on this socket: the registered one, else NULL with extack set. */
struct repath_proc *repath_proc_of(struct genl_info *info);
/* And the device that it names by DEV_INDEX, which must be there; 0, -EPERM or -ENODEV. */
int repath_proc_and_device_of(struct genl_info *info, struct repath_proc **proc,
			      struct repath_device **dev);
/* NETLINK_URELEASE: the socket is closed, the process has left. May sleep. */
void repath_proc_released(struct net *net, u32 portid);

/* Calls @fn for each registered process, one after the other; may sleep in it. */
void repath_proc_for_each(void (*fn)(struct repath_proc *proc, void *arg), void *arg);
/* EV_NUMBERS */
void repath_proc_tell_numbers(struct repath_proc *proc, u32 count);

int repath_proc_send(struct repath_proc *proc, struct sk_buff *skb, void *hdr);

/* "PID 12 (ib_write_bw)": how reasons name a process. */
#define REPATH_PROC_FMT "PID %d (%s)"

#endif /* REPATH_PROC_H */
