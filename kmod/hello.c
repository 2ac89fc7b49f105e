// SPDX-License-Identifier: GPL-2.0
/*
 * HELLO. Its sender is not known for sure, so what it says is weighed: its token is sent back to
 * nobody, and own tokens go only to where the queue pair itself is connected to. See
 * docs/protocol.md, "Identity of a connection".
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "hello.h"
#include "local.h"
#include "number.h"
#include "op.h"
#include "proc.h"
#include "silent.h"
#include "track.h"
#include "watch.h"

#define EARLY_MAX	256		/* HELLOs that came before their queue pair was connected */
#define EARLY_AGE	(60 * HZ)
#define HELD_AGAIN	(600 * HZ)
#define BUSY_TRIES	10
#define LOST_TRIES	3		/* each has its retries */
#define BUSY_PERIOD	(HZ / 5)
#define UNDER_WAY_MAX	1024		/* of one process */
#define ASK_PERIOD	HZ		/* a changed token is checked back no more often */

/**
 * struct early - a HELLO that is kept
 * @node: in @earlies, oldest first
 * @dev: on which it came; compared only
 * @at: jiffies
 * @at_ns: the same by the clock of repath_qp::created_ns
 * @hello: itself
 */
struct early {
	struct list_head node;
	const struct repath_device *dev;
	unsigned long at;
	u64 at_ns;
	struct repath_hello hello;
};

/* A HELLO to a queue pair of this host: done by a work item, since the sender holds the mutex. */
struct local_hello {
	struct work_struct work;
	struct repath_device *dev;
	struct repath_conn *conn;
	struct repath_hello hello;
};

/* Protected by repath_conn_mutex. */
static LIST_HEAD(earlies);
static unsigned int early_count;

static struct workqueue_struct *hello_wq;
static struct delayed_work busy_work;

/* --- HELLOs that came early --- */

static void early_drop(struct early *e)
{
	list_del(&e->node);
	early_count--;
	kfree_sensitive(e);
}

static u8 early_keep(const struct repath_device *dev, const struct repath_hello *hello)
{
	struct early *e, *next;

	list_for_each_entry_safe(e, next, &earlies, node)
		if (time_after(jiffies, e->at + EARLY_AGE) ||
		    (e->dev == dev && e->hello.dst_qpn == hello->dst_qpn &&
		     e->hello.src_qpn == hello->src_qpn &&
		     !memcmp(e->hello.src_gid, hello->src_gid, sizeof(hello->src_gid))))
			early_drop(e);
	if (early_count >= EARLY_MAX)
		return REPATH_PEER_BUSY;
	e = kzalloc(sizeof(*e), GFP_KERNEL);
	if (!e)
		return REPATH_PEER_BUSY;
	e->dev = dev;
	e->at = jiffies;
	e->at_ns = ktime_get_boottime_ns();
	e->hello = *hello;
	list_add_tail(&e->node, &earlies);
	early_count++;
	return REPATH_PEER_PENDING;
}

static void believe(struct repath_conn *conn, const struct repath_hello *hello)
{
	const struct repath_remote *before = conn->remote;
	const bool was_ready = conn->state == REPATH_CONN_READY;
	u64 token = be64_to_cpu(hello->token);

	if (conn->peer_token != token) {
		/* What it has counted of an end that it did not know any more it counts anew. */
		conn->has_over = false;
		conn->old_token = conn->old_token == token ? 0 : conn->peer_token;
		conn->peer_token = token;
	}
	conn->expect_token = false;
	memcpy(&conn->said_gid, hello->src_gid, sizeof(conn->said_gid));
	repath_conn_set_remote(conn, be64_to_cpu(hello->cookie));
	/* Whoever does not want this end's token has it. */
	if (!(be32_to_cpu(hello->flags) & REPATH_HELLO_WANT))
		conn->hello_acked = true;
	repath_conn_update_ready(conn);
	/* Its shim has to tell the keys anew to whom it knows by another number now: they may have been on their way. */
	if (was_ready && conn->remote != before && repath_number_has_moved(conn->proc, conn->dev))
		repath_conn_tell(conn);
}

/**
 * repath_hello_early - take the HELLO that came before the connection was there
 * @conn: new connection
 *
 * Context: repath_conn_mutex held.
 */
void repath_hello_early(struct repath_conn *conn)
{
	struct early *e, *next;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry_safe(e, next, &earlies, node) {
		if (e->dev != conn->dev || be32_to_cpu(e->hello.dst_qpn) != conn->qpn)
			continue;
		if (time_before(jiffies, e->at + EARLY_AGE) &&
		    repath_conn_is_peer(conn, be32_to_cpu(e->hello.src_qpn), e->hello.src_gid))
			believe(conn, &e->hello);
		/* What else came for this number was meant for a connection that is not this one. */
		early_drop(e);
	}
}

/*
 * Whoever knows its number may say that he is connected to a queue pair, and again and again. So that holds a device up
 * for a minute, in which all who mean it become connected, and then for some time not at all.
 */
static bool may_hold_up(struct repath_device *dev)
{
	if (!dev->held_up || time_after_eq(jiffies, dev->held_at + HELD_AGAIN)) {
		dev->held_up = true;
		dev->held_at = jiffies;
	}
	return time_before(jiffies, dev->held_at + EARLY_AGE);
}

/**
 * repath_hello_is_early - is somebody connected to a queue pair that is connected to nobody yet?
 * @rqp: the queue pair
 * @from: result: what the other end has said
 *
 * What was said before the queue pair was made was said to another one.
 *
 * Context: repath_conn_mutex held.
 */
bool repath_hello_is_early(const struct repath_qp *rqp, struct repath_hello *from)
{
	const struct early *e;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry(e, &earlies, node)
		if (e->dev == rqp->dev && be32_to_cpu(e->hello.dst_qpn) == rqp->qpn &&
		    time_before(jiffies, e->at + EARLY_AGE) && e->at_ns >= rqp->created_ns) {
			*from = e->hello;
			return may_hold_up(rqp->dev);
		}
	return false;
}

/* --- sending --- */

/*
 * It was not heard, or its answer was not. The peer is there, since it has said HELLO, and takes this end for READY maybe:
 * that it is not answered is not left at that.
 */
static bool is_said_again(const struct repath_conn *conn)
{
	return conn->peer_token && conn->state != REPATH_CONN_READY && conn->state != REPATH_CONN_GONE &&
	       conn->hello_tries < LOST_TRIES;
}

/* All that wait do so together: what is planned is not put off for one more. */
static void plan_busy(void)
{
	queue_delayed_work(hello_wq, &busy_work, BUSY_PERIOD);
}

static void say_again_soon(struct repath_conn *conn)
{
	conn->hello_tries++;
	repath_stat_inc(conn->dev, REPATH_STAT_TX_HELLO_AGAIN);
	plan_busy();
}

/* Return: it is said again soon. */
static bool not_answered(struct repath_conn *conn, int err)
{
	repath_silent_add(conn->dev, &conn->addr, err);
	if (is_said_again(conn))
		return true;
	if (!conn->hello_acked)
		conn->state = REPATH_CONN_NO_ANSWER;
	return false;
}

/*
 * Its host has no such queue pair. By LID alone that may be another function's, which shares the port. Of a READY one the
 * other end says so itself, unless its module, loaded anew, has never heard of it: it did not know the token.
 */
static bool lost_peer(const struct repath_conn *conn)
{
	static const union ib_gid none;

	return memcmp(&conn->addr.dgid, &none, sizeof(none)) && !conn->moving &&
	       conn->state != REPATH_CONN_GONE && (conn->state != REPATH_CONN_READY || conn->expect_token);
}

/* Return: likewise. */
static bool answered(struct repath_conn *conn, u8 status)
{
	repath_silent_answered(conn->dev, &conn->addr);
	if (status == REPATH_PEER_BUSY && conn->hello_tries < BUSY_TRIES)
		return true;
	if (status == REPATH_PEER_OK) {
		conn->hello_acked = true;
		if (conn->state != REPATH_CONN_GONE && conn->state != REPATH_CONN_READY)
			conn->state = REPATH_CONN_NEW;
		repath_conn_update_ready(conn);
	} else if (status == REPATH_PEER_ABSENT && lost_peer(conn)) {
		conn->state = REPATH_CONN_NO_PEER;
	} else if (conn->state != REPATH_CONN_READY && conn->state != REPATH_CONN_GONE) {
		conn->state = status == REPATH_PEER_PENDING || status == REPATH_PEER_ABSENT ? REPATH_CONN_NEW :
			      status == REPATH_PEER_NO_SHIM ? REPATH_CONN_NO_SHIM :
							      REPATH_CONN_NO_ANSWER;
	}
	return false;
}

static void hello_answered(struct repath_conn *conn, int err, u8 status)
{
	mutex_lock(&repath_conn_mutex);
	conn->hello_busy = false;
	conn->proc->hellos--;
	if (conn->dead)
		goto unlock;
	if (err ? not_answered(conn, err) : answered(conn, status)) {
		say_again_soon(conn);
		goto unlock;
	}
	conn->hello_tries = 0;
	if (conn->hello_again && !conn->hello_acked && !err)
		repath_hello_start(conn, true);
	conn->hello_again = false;
unlock:
	mutex_unlock(&repath_conn_mutex);
	repath_op_conn_changed();
	repath_conn_put(conn);
}

static int is_wanted(void *arg)
{
	struct repath_conn *conn = arg;

	return READ_ONCE(conn->dead) ? -ECANCELED : 0;
}

static void wire_done(void *arg, int err, u8 status)
{
	hello_answered(arg, err, status);
}

static void local_work(struct work_struct *work)
{
	struct local_hello *local = container_of(work, struct local_hello, work);
	u8 status = repath_hello_receive(local->dev, &local->hello, sizeof(local->hello));

	hello_answered(local->conn, 0, status);
	repath_device_put(local->dev);
	kfree_sensitive(local);
}

static int hello_send(struct repath_conn *conn)
{
	struct local_hello *local;
	struct repath_hello *hello;
	struct repath_device *dev;
	int err;

	hello = kvzalloc(sizeof(*hello), GFP_KERNEL);
	if (!hello)
		return -ENOMEM;
	err = repath_local_gid(conn->dev, &conn->addr, hello->src_gid);
	if (err) {
		kvfree(hello);
		return err;
	}
	hello->src_qpn = cpu_to_be32(conn->qpn);
	hello->dst_qpn = cpu_to_be32(conn->dest_qpn);
	hello->token = cpu_to_be64(conn->token);
	hello->cookie = cpu_to_be64(conn->proc->cookie);
	if (!conn->peer_token || conn->expect_token)
		hello->flags = cpu_to_be32(REPATH_HELLO_WANT);

	dev = repath_local_device(conn->dev, &conn->addr);
	if (!dev) {
		repath_conn_get(conn);
		err = repath_xprt_send(conn->dev, &(struct repath_xprt_send){
			.to = &conn->addr, .payer = conn->proc, .type = REPATH_MSG_HELLO,
			.data = hello, .len = sizeof(*hello), .check = is_wanted, .done = wire_done,
			.arg = conn,
		});
		if (err)
			repath_conn_put(conn);
		else
			conn->proc->hellos++;
		return err;
	}
	local = kzalloc(sizeof(*local), GFP_KERNEL);
	if (local) {
		INIT_WORK(&local->work, local_work);
		local->dev = dev;
		local->conn = repath_conn_get(conn);
		local->hello = *hello;
		conn->proc->hellos++;
		queue_work(hello_wq, &local->work);
	} else {
		repath_device_put(dev);
	}
	kvfree(hello);
	return local ? 0 : -ENOMEM;
}

/**
 * repath_hello_start - tell the peer this end's token, and ask for its
 * @conn: connection
 * @force: although its port did not answer a moment ago
 *
 * Nothing is waited for: the answer changes the connection's state. Where too many of its process are under way it is
 * done as soon as some of them have ended.
 *
 * Context: repath_conn_mutex held.
 */
void repath_hello_start(struct repath_conn *conn, bool force)
{
	lockdep_assert_held(&repath_conn_mutex);
	if (conn->hello_busy) {
		conn->hello_again = true;
		return;
	}
	/* One that has said HELLO has answered since. */
	if (!force && !conn->peer_token && repath_silent_is(conn->dev, &conn->addr)) {
		conn->state = REPATH_CONN_NO_ANSWER;
		return;
	}
	/* Anybody may register, and connect a queue pair to one host after the other that does not answer. */
	if (conn->proc->hellos >= UNDER_WAY_MAX) {
		conn->hello_tries = max_t(u8, conn->hello_tries, 1);
		plan_busy();
		return;
	}
	conn->hello_busy = true;
	conn->hello_at = jiffies;
	if (!hello_send(conn))
		return;
	conn->hello_busy = false;
	if (is_said_again(conn)) {
		say_again_soon(conn);
		return;
	}
	conn->hello_tries = 0;
	if (conn->state == REPATH_CONN_NEW)
		conn->state = REPATH_CONN_NO_ANSWER;
}

static int busy_again(struct repath_conn *conn, void *arg)
{
	if (conn->hello_tries && !conn->hello_busy)
		repath_hello_start(conn, true);
	cond_resched();
	return 0;
}

static void busy_expire(struct work_struct *work)
{
	mutex_lock(&repath_conn_mutex);
	repath_conn_for_each(busy_again, NULL);
	mutex_unlock(&repath_conn_mutex);
}

/* --- receiving --- */

static u8 no_connection(struct repath_device *dev, const struct repath_hello *hello)
{
	struct repath_qp *rqp = repath_qp_find(dev, be32_to_cpu(hello->dst_qpn));
	struct repath_proc *proc;
	u8 status;

	if (!rqp) {
		status = early_keep(dev, hello);
		/* Or it is not tracked, or on its way: that is looked for without the lock. */
		return status == REPATH_PEER_PENDING ? REPATH_PEER_ABSENT : status;
	}
	proc = rqp->kernel ? NULL : repath_proc_find(repath_qp_pid(rqp));
	if (!rqp->kernel && !repath_qp_is_connected_type(rqp))
		status = REPATH_PEER_NO_QP;
	else if (!proc)
		status = REPATH_PEER_NO_SHIM;
	else
		status = early_keep(dev, hello);
	repath_proc_put(proc);
	repath_qp_put(rqp);
	return status;
}

/*
 * Who speaks by the token that was known before the last one is the peer: another one was believed, since somebody had said
 * it when the peer was asked, and nothing has been said by it.
 */
static bool was_lied_to(const struct repath_conn *conn, const struct repath_hello *hello)
{
	return conn->old_token && conn->old_token == be64_to_cpu(hello->token);
}

static u8 weigh(struct repath_device *dev, const struct repath_hello *hello)
{
	struct repath_conn *conn = repath_conn_by_qp(dev, be32_to_cpu(hello->dst_qpn));

	if (!conn)
		return no_connection(dev, hello);
	if (!repath_conn_is_peer(conn, be32_to_cpu(hello->src_qpn), hello->src_gid))
		return REPATH_PEER_NO_QP;

	if (conn->peer_token && conn->peer_token != be64_to_cpu(hello->token) && !conn->expect_token &&
	    !was_lied_to(conn, hello)) {
		/*
		 * The peer's module was loaded anew, or somebody lies. Ask at the place where the
		 * queue pair is connected to. While moving, words count only with the known token.
		 */
		if (conn->moving)
			return REPATH_PEER_BAD_TOKEN;
		if (time_after(jiffies, conn->hello_at + ASK_PERIOD) || !conn->hello_at) {
			conn->expect_token = true;
			repath_hello_start(conn, true);
		}
		return REPATH_PEER_PENDING;
	}
	believe(conn, hello);
	repath_silent_answered(conn->dev, &conn->addr);
	if (be32_to_cpu(hello->flags) & REPATH_HELLO_WANT)
		repath_hello_start(conn, true);
	return REPATH_PEER_OK;
}

/*
 * Is a queue pair that is not tracked neither there, nor about to be, since its process is between two devices? That is
 * asked before and behind, as it may go, or come, meanwhile.
 */
static bool is_absent(struct repath_device *dev, u32 qpn)
{
	struct net *net = repath_device_net(dev);
	bool between, there;

	mutex_lock(&repath_op_mutex);
	between = repath_op_between(net, NULL, 0);
	mutex_unlock(&repath_op_mutex);
	there = repath_qp_is_there(dev, qpn);
	mutex_lock(&repath_op_mutex);
	between |= repath_op_between(net, NULL, 0);
	mutex_unlock(&repath_op_mutex);
	return !between && !there;
}

/**
 * repath_hello_receive - a HELLO has come in
 * @dev: on which device
 * @data: struct repath_hello
 * @len: bytes
 *
 * Context: may sleep, takes repath_conn_mutex and repath_op_mutex.
 * Return: enum repath_peer_status.
 */
u8 repath_hello_receive(struct repath_device *dev, const void *data, u32 len)
{
	const struct repath_hello *hello = data;
	u8 status;

	if (len != sizeof(*hello) || !hello->token || !hello->cookie)
		return REPATH_PEER_MALFORMED;
	mutex_lock(&repath_conn_mutex);
	repath_silent_forget(hello->src_gid, 0);
	status = weigh(dev, hello);
	mutex_unlock(&repath_conn_mutex);
	if (status == REPATH_PEER_ABSENT && !is_absent(dev, be32_to_cpu(hello->dst_qpn)))
		status = REPATH_PEER_PENDING;
	repath_op_conn_changed();
	return status;
}

/**
 * repath_hello_device_removed - forget what was kept for a device
 * @dev: device
 */
void repath_hello_device_removed(struct repath_device *dev)
{
	struct early *e, *next;

	mutex_lock(&repath_conn_mutex);
	list_for_each_entry_safe(e, next, &earlies, node)
		if (e->dev == dev)
			early_drop(e);
	repath_silent_device_removed(dev);
	repath_watch_device_removed(dev);
	mutex_unlock(&repath_conn_mutex);
}

int repath_hello_init(void)
{
	INIT_DELAYED_WORK(&busy_work, busy_expire);
	hello_wq = alloc_workqueue("repath_hello", WQ_UNBOUND, 0);
	return hello_wq ? 0 : -ENOMEM;
}

/*
 * No device, no notes: nothing starts a HELLO any more. Those to this host that are still under way may
 * be answered BUSY, which starts the timer, and may be kept although their device has gone.
 */
void repath_hello_exit(void)
{
	struct early *e, *next;

	flush_workqueue(hello_wq);
	cancel_delayed_work_sync(&busy_work);
	destroy_workqueue(hello_wq);
	mutex_lock(&repath_conn_mutex);
	list_for_each_entry_safe(e, next, &earlies, node)
		early_drop(e);
	mutex_unlock(&repath_conn_mutex);
}
