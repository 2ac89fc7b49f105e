// SPDX-License-Identifier: GPL-2.0
/* What speaks against a suspend, by name. Everything is asked before anything is touched. */
#include <linux/cred.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/user_namespace.h>
#include <net/net_namespace.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "hello.h"
#include "op.h"
#include "proc.h"
#include "stat.h"
#include "track.h"
#include "xprt.h"

/* --- the device: contexts, kernel queue pairs --- */

/**
 * struct scan - a look at a device
 * @op: operation
 * @add: processes that have registered take part from now on
 * @refused: somebody speaks against it
 * @last: named last; a process with several contexts is named once
 */
struct scan {
	struct repath_op *op;
	bool add;
	bool refused;
	struct pid *last;
};

/*
 * Who may administrate the device's network namespace has no right over processes of a user namespace that is none
 * of those below its own: they have come from outside.
 */
static bool may_kill(const struct repath_op *op, struct pid *pid)
{
	const struct user_namespace *ns = op->net->user_ns;
	struct task_struct *task;

	rcu_read_lock();
	task = pid_task(pid, PIDTYPE_TGID);
	if (task)
		ns = __task_cred(task)->user_ns;
	while (ns && ns != op->net->user_ns)
		ns = ns->parent;
	rcu_read_unlock();
	return ns;
}

static int look_at_ctx(struct repath_ctx *ctx, void *arg)
{
	struct repath_proc *proc = repath_proc_find(ctx->pid);
	struct scan *scan = arg;
	struct repath_op *op = scan->op;
	bool kill = op->force && may_kill(op, ctx->pid);

	if (proc && repath_op_proc_find(op, proc)) {
		/* known */
	} else if (proc && scan->add) {
		if (!repath_op_proc_add(op, proc)) {
			repath_op_say(op, ENOMEM, "out of memory");
			scan->refused = true;
		}
	} else if (ctx->pid != scan->last) {
		scan->last = ctx->pid;
		if (proc)
			repath_op_say(op, EBUSY, REPATH_PROC_FMT " has opened %s meanwhile",
				      pid_nr_ns(ctx->pid, op->ns), ctx->comm, op->dev_name);
		else
			repath_op_say(op, EBUSY,
				      REPATH_PROC_FMT " has %s open without libibrepath.so%s",
				      pid_nr_ns(ctx->pid, op->ns), ctx->comm, op->dev_name,
				      kill ? ", will be killed" :
				      op->force ? ", and is not of the device's user namespace" : "");
		scan->refused |= proc || !kill;
	}
	repath_proc_put(proc);
	return 0;
}

static bool is_connected(struct repath_qp *rqp, u32 *port)
{
	struct repath_path path;
	u8 state;

	if (!repath_qp_is_connected_type(rqp) || READ_ONCE(rqp->gone))
		return false;
	repath_qp_snapshot(rqp, &state, &path);
	*port = path.port;
	return state >= IB_QPS_RTR && state <= IB_QPS_SQE;
}

static bool is_unconnected(struct repath_qp *rqp)
{
	struct repath_path path;
	u8 state;

	if (!repath_qp_is_connected_type(rqp) || READ_ONCE(rqp->gone))
		return false;
	repath_qp_snapshot(rqp, &state, &path);
	return state < IB_QPS_RTR;
}

static int look_at_kernel_qp(struct repath_qp *rqp, void *arg)
{
	struct scan *scan = arg;
	u32 port;

	if (!rqp->kernel || !is_connected(rqp, &port))
		return 0;
	repath_op_say(scan->op, EBUSY, "the kernel's own queue pair 0x%x (%s) is connected",
		      rqp->qpn, rqp->user->comm);
	/* Nobody can be killed for it. */
	scan->refused = true;
	return 0;
}

/**
 * repath_op_check_device - who uses the device
 * @op: operation; the registered processes take part from now on
 *
 * Return: 0, or why not.
 */
int repath_op_check_device(struct repath_op *op)
{
	struct scan scan = { .op = op, .add = true };

	repath_ctx_for_each(op->dev, look_at_ctx, &scan);
	repath_qp_for_each(op->dev, look_at_kernel_qp, &scan);
	return scan.refused ? -EBUSY : 0;
}

/* --- the peers --- */

/**
 * struct peers - a look at the connections
 * @op: operation
 * @first: HELLO is said again where it is not READY
 * @last: no more time to wait
 * @waiting: somebody has not answered yet
 * @refused: somebody can not be moved with
 */
struct peers {
	struct repath_op *op;
	bool first;
	bool last;
	bool waiting;
	bool refused;
};

static void say_peer(struct peers *peers, const struct repath_conn *conn)
{
	const char *what = "does not answer";
	int err = EHOSTUNREACH;

	if (conn->state == REPATH_CONN_NO_SHIM) {
		what = "has no libibrepath.so";
		err = EOPNOTSUPP;
	} else if (conn->state == REPATH_CONN_NEW && !conn->hello_acked && !conn->hello_busy &&
		   !conn->hello_tries) {
		what = "is not connected to it yet, or has gone: try again";
		err = EAGAIN;
	}
	repath_op_say(peers->op, err, REPATH_PROC_FMT " QP 0x%x: its peer %pI6c QP 0x%x %s",
		      pid_nr_ns(conn->proc->tgid, peers->op->ns), conn->proc->comm, conn->qpn,
		      conn->addr.dgid.raw, conn->dest_qpn, what);
	peers->refused |= !peers->op->force;
}

/*
 * A peer that is connected to a queue pair that is not connected to it yet has no way to hear where that one goes:
 * what makes them one connection is the queue pair's own part.
 */
static void look_at_early(struct peers *peers, struct repath_qp *rqp)
{
	struct repath_hello from;

	if (!repath_hello_is_early(rqp, &from))
		return;
	if (!peers->last) {
		peers->waiting = true;
		return;
	}
	repath_op_say(peers->op, EAGAIN, REPATH_PROC_FMT
		      " QP 0x%x is not connected yet, and its peer %pI6c QP 0x%x is: try again",
		      pid_nr_ns(repath_qp_pid(rqp), peers->op->ns), rqp->user->comm, rqp->qpn,
		      from.src_gid, be32_to_cpu(from.src_qpn));
	peers->refused |= !peers->op->force;
}

static void look_at_conn(struct peers *peers, struct repath_qp *rqp)
{
	struct repath_conn *conn = repath_conn_by_qp(rqp->dev, rqp->qpn);

	if (!conn || conn->rqp != rqp) {
		repath_op_say(peers->op, EAGAIN, REPATH_PROC_FMT " QP 0x%x is not known yet",
			      pid_nr_ns(repath_qp_pid(rqp), peers->op->ns), rqp->user->comm, rqp->qpn);
		peers->refused = true;
		return;
	}
	if (conn->state == REPATH_CONN_READY || conn->state == REPATH_CONN_GONE)
		return;
	/* Its host says so, and has just been asked. */
	if (conn->state == REPATH_CONN_NO_PEER && !peers->first && !conn->hello_busy && !conn->hello_tries)
		return;
	if (peers->first) {
		repath_hello_start(conn, true);
		peers->waiting = true;
	} else if (!peers->last &&
		   (conn->hello_busy || conn->hello_tries || conn->state == REPATH_CONN_NEW)) {
		peers->waiting = true;
	} else {
		say_peer(peers, conn);
	}
}

static bool has_shim(const struct repath_qp *rqp)
{
	struct repath_proc *proc = repath_proc_find(repath_qp_pid(rqp));

	repath_proc_put(proc);
	return proc;
}

static int look_at_unconnected(struct repath_qp *rqp, void *arg)
{
	if (rqp->kernel || !is_unconnected(rqp) || !has_shim(rqp))
		return 0;
	mutex_lock(&repath_conn_mutex);
	look_at_early(arg, rqp);
	mutex_unlock(&repath_conn_mutex);
	return 0;
}

static int look_at_qp(struct repath_qp *rqp, void *arg)
{
	u32 port;

	/* Queue pairs in ERR are past saving, others come back in the state they are in. */
	if (rqp->kernel || !is_connected(rqp, &port))
		return look_at_unconnected(rqp, arg);
	if (!has_shim(rqp))
		return 0;
	/* It may have been connected before its process registered. */
	if (!READ_ONCE(rqp->conn_id))
		repath_conn_qp_connected(rqp);
	mutex_lock(&repath_conn_mutex);
	look_at_conn(arg, rqp);
	mutex_unlock(&repath_conn_mutex);
	return 0;
}

#define LOOK_PAUSE	4	/* as long as looking at all has taken */

/**
 * repath_op_check_conns - can all peers be moved with?
 * @op: operation
 *
 * Return: 0; -EAGAIN: not all have answered yet; -EHOSTUNREACH: no, and said which.
 */
int repath_op_check_conns(struct repath_op *op)
{
	struct peers peers = {
		.op = op,
		.first = !op->helloed,
		.last = time_after_eq(jiffies, op->hello_deadline),
	};
	unsigned long began = jiffies;

	/* Each of a thousand answers wakes it. */
	op->look_put_off = op->helloed && !peers.last && time_before(began, op->look_next);
	if (op->look_put_off)
		return -EAGAIN;
	op->helloed = true;
	repath_qp_for_each(op->dev, look_at_qp, &peers);
	op->look_next = jiffies + LOOK_PAUSE * (jiffies - began);
	if (peers.refused)
		return -EHOSTUNREACH;
	if (peers.waiting)
		return -EAGAIN;
	op->err = 0;
	return 0;
}

/**
 * repath_op_check_again - has anybody come meanwhile?
 * @op: operation
 *
 * Return: 0, or why not.
 */
int repath_op_check_again(struct repath_op *op)
{
	struct peers peers = { .op = op, .last = true };
	struct scan scan = { .op = op };

	if (op->force)
		op->reason[0] = 0;
	repath_ctx_for_each(op->dev, look_at_ctx, &scan);
	repath_qp_for_each(op->dev, look_at_unconnected, &peers);
	if (scan.refused || peers.refused)
		return -EBUSY;
	op->err = 0;
	return 0;
}

/* --- the end of a suspend --- */

#define LAST_WORDS	(5 * HZ)	/* what is said on the device has its retries in that */

static int is_foreign(struct repath_ctx *ctx, void *arg)
{
	struct repath_proc *proc = repath_proc_find(ctx->pid);
	const struct repath_op *op = arg;

	if (!proc && may_kill(op, ctx->pid)) {
		kill_pid(ctx->pid, SIGKILL, 1);
		repath_stat_inc(ctx->dev, REPATH_STAT_OP_KILLED);
	}
	repath_proc_put(proc);
	return 0;
}

/**
 * repath_op_kill_foreign - kill those who hold the device and can not let go of it
 * @op: operation with force; the shims have released
 */
void repath_op_kill_foreign(struct repath_op *op)
{
	repath_ctx_for_each(op->dev, is_foreign, op);
}

/**
 * repath_op_is_released - is the device free, and everything said that had to be said on it?
 * @op: operation
 *
 * Those who do not answer are waited for a while only: others, whose hosts are there, wait for this device.
 */
bool repath_op_is_released(struct repath_op *op)
{
	if (repath_device_ctx_count(op->dev)) {
		op->left = false;
		return false;
	}
	if (!op->left) {
		op->left = true;
		op->left_at = jiffies;
	}
	return !repath_xprt_busy(op->dev) || time_after_eq(jiffies, op->left_at + LAST_WORDS) ||
	       time_after_eq(jiffies, op->deadline);
}
