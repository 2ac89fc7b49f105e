// SPDX-License-Identifier: GPL-2.0
/* The table of connections, and what happens to them. */
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "hello.h"
#include "op.h"
#include "peer.h"
#include "proc.h"
#include "track.h"

static unsigned int peer_lease_s = 3600;
module_param(peer_lease_s, uint, 0644);
MODULE_PARM_DESC(peer_lease_s,
		 "How long queue pairs stay suspended for a peer that does not come back, in s (3600; 0: for ever)");

#define LEASE_PERIOD (5 * HZ)

DEFINE_MUTEX(repath_conn_mutex);

static DEFINE_XARRAY_ALLOC1(by_id);
static u32 next_id;
static DEFINE_HASHTABLE(by_token, 8);
static DEFINE_HASHTABLE(by_qp, 8);
static DEFINE_HASHTABLE(remotes, 6);
static u32 next_remote_id;
static struct delayed_work lease_work;

/* --- remote processes --- */

static void remote_put(struct repath_remote *remote)
{
	lockdep_assert_held(&repath_conn_mutex);
	if (!remote || --remote->users)
		return;
	hash_del(&remote->node);
	kfree_sensitive(remote);
}

static struct repath_remote *remote_get(u64 cookie)
{
	struct repath_remote *remote;

	lockdep_assert_held(&repath_conn_mutex);
	hash_for_each_possible(remotes, remote, node, cookie)
		if (remote->cookie == cookie) {
			remote->users++;
			return remote;
		}
	remote = kzalloc(sizeof(*remote), GFP_KERNEL);
	if (!remote)
		return NULL;
	remote->id = ++next_remote_id;
	remote->cookie = cookie;
	remote->users = 1;
	hash_add(remotes, &remote->node, cookie);
	return remote;
}

/**
 * repath_conn_set_remote - say whose the other end is
 * @conn: connection
 * @cookie: the remote process
 *
 * Without memory it is left as it was: the connection does not become READY and HELLO is repeated.
 */
void repath_conn_set_remote(struct repath_conn *conn, u64 cookie)
{
	struct repath_remote *remote;

	lockdep_assert_held(&repath_conn_mutex);
	if (conn->remote && conn->remote->cookie == cookie)
		return;
	remote = remote_get(cookie);
	if (!remote)
		return;
	remote_put(conn->remote);
	conn->remote = remote;
}

/* --- one connection --- */

static void conn_release(struct kref *kref)
{
	struct repath_conn *conn = container_of(kref, struct repath_conn, kref);

	repath_proc_put(conn->proc);
	repath_device_put(conn->dev);
	kfree_sensitive(conn);
}

struct repath_conn *repath_conn_get(struct repath_conn *conn)
{
	kref_get(&conn->kref);
	return conn;
}

/**
 * repath_conn_put - give a reference back
 * @conn: connection
 */
void repath_conn_put(struct repath_conn *conn)
{
	kref_put(&conn->kref, conn_release);
}

static u64 qp_hash(const struct repath_device *dev, u32 qpn)
{
	return (u64)dev->index << 32 | qpn;
}

static void unbind(struct repath_conn *conn)
{
	struct repath_qp *rqp = conn->rqp;

	if (!rqp)
		return;
	hash_del(&conn->by_qp);
	if (rqp->conn_id == conn->id)
		WRITE_ONCE(rqp->conn_id, 0);
	conn->rqp = NULL;
	repath_qp_put(rqp);
}

static void bind(struct repath_conn *conn, struct repath_qp *rqp)
{
	kref_get(&rqp->kref);
	unbind(conn);
	if (conn->dev != rqp->dev) {
		if (conn->dev)
			repath_device_put(conn->dev);
		conn->dev = repath_device_get(rqp->dev);
	}
	conn->rqp = rqp;
	conn->qpn = rqp->qpn;
	WRITE_ONCE(rqp->conn_id, conn->id);
	hash_add(by_qp, &conn->by_qp, qp_hash(conn->dev, conn->qpn));
}

/**
 * repath_conn_create - a queue pair is connected
 * @proc: whose it is
 * @rqp: queue pair
 * @dest_qpn: the peer's
 * @addr: where the peer is
 *
 * Context: repath_conn_mutex held.
 * Return: the connection, valid while the mutex is held; NULL without memory, or if @proc has left.
 */
struct repath_conn *repath_conn_create(struct repath_proc *proc, struct repath_qp *rqp,
				       u32 dest_qpn, const struct repath_addr *addr)
{
	struct repath_conn *conn;

	lockdep_assert_held(&repath_conn_mutex);
	/* Set before repath_conn_proc_left() takes the mutex: nothing is added behind its back. */
	if (READ_ONCE(proc->left))
		return NULL;
	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return NULL;
	if (xa_alloc_cyclic(&by_id, &conn->id, conn, xa_limit_32b, &next_id, GFP_KERNEL) < 0) {
		kfree(conn);
		return NULL;
	}
	kref_init(&conn->kref);
	conn->proc = repath_proc_get(proc);
	conn->dest_qpn = dest_qpn;
	conn->addr = *addr;
	conn->state = REPATH_CONN_NEW;
	do {
		conn->token = get_random_u64();
	} while (!conn->token || repath_conn_by_token(conn->token));
	hash_add(by_token, &conn->by_token, conn->token);
	list_add_tail(&conn->proc_node, &proc->conns);
	proc->nconns++;
	bind(conn, rqp);
	return conn;
}

/**
 * repath_conn_destroy - forget a connection
 * @conn: connection; not valid any more
 *
 * Context: repath_conn_mutex held.
 */
void repath_conn_destroy(struct repath_conn *conn)
{
	lockdep_assert_held(&repath_conn_mutex);
	conn->dead = true;
	unbind(conn);
	hash_del(&conn->by_token);
	list_del(&conn->proc_node);
	conn->proc->nconns--;
	xa_erase(&by_id, conn->id);
	remote_put(conn->remote);
	conn->remote = NULL;
	repath_conn_put(conn);
}

struct repath_conn *repath_conn_by_id(u32 id)
{
	lockdep_assert_held(&repath_conn_mutex);
	return xa_load(&by_id, id);
}

struct repath_conn *repath_conn_by_token(u64 token)
{
	struct repath_conn *conn;

	lockdep_assert_held(&repath_conn_mutex);
	hash_for_each_possible(by_token, conn, by_token, token)
		if (conn->token == token)
			return conn;
	return NULL;
}

struct repath_conn *repath_conn_by_qp(struct repath_device *dev, u32 qpn)
{
	struct repath_conn *conn;

	lockdep_assert_held(&repath_conn_mutex);
	hash_for_each_possible(by_qp, conn, by_qp, qp_hash(dev, qpn))
		if (conn->dev == dev && conn->qpn == qpn)
			return conn;
	return NULL;
}

/**
 * repath_conn_for_each - call a function for every connection
 * @fn: may destroy the connection it is given; ends the walk by returning non-zero
 * @arg: for @fn
 *
 * Context: repath_conn_mutex held.
 * Return: what @fn returned last.
 */
int repath_conn_for_each(int (*fn)(struct repath_conn *conn, void *arg), void *arg)
{
	struct repath_conn *conn;
	unsigned long id;
	int ret = 0;

	lockdep_assert_held(&repath_conn_mutex);
	xa_for_each(&by_id, id, conn) {
		ret = fn(conn, arg);
		if (ret)
			break;
	}
	return ret;
}

/**
 * repath_conn_is_peer - is this the other end?
 * @conn: connection
 * @qpn: queue pair at the other end
 * @gid: GID of its port
 *
 * A connection without GRH knows no GID.
 */
bool repath_conn_is_peer(const struct repath_conn *conn, u32 qpn, const u8 gid[16])
{
	static const union ib_gid none;

	if (conn->dest_qpn != qpn)
		return false;
	return !memcmp(&conn->addr.dgid, &none, sizeof(none)) ||
	       !memcmp(conn->addr.dgid.raw, gid, sizeof(none));
}

/**
 * repath_conn_update_ready - both tokens may be known now
 * @conn: connection
 */
void repath_conn_update_ready(struct repath_conn *conn)
{
	lockdep_assert_held(&repath_conn_mutex);
	if (conn->state != REPATH_CONN_GONE && conn->hello_acked && conn->peer_token &&
	    conn->remote)
		conn->state = REPATH_CONN_READY;
}

/**
 * repath_conn_rebind - the connection continues on another queue pair
 * @conn: connection
 * @rqp: queue pair of the same process
 * @port: port that it uses
 * @sgid_index: GID that it uses
 */
void repath_conn_rebind(struct repath_conn *conn, struct repath_qp *rqp, u32 port, u32 sgid_index)
{
	struct repath_conn *other;

	lockdep_assert_held(&repath_conn_mutex);
	if (conn->rqp != rqp) {
		/* The number belonged to a queue pair whose end was not heard of yet. */
		other = repath_conn_by_qp(rqp->dev, rqp->qpn);
		if (other)
			unbind(other);
		bind(conn, rqp);
		/* Another port may be in another network. */
		conn->addr.has_dmac = false;
	}
	conn->addr.port = port;
	conn->addr.sgid_index = sgid_index;
}

/**
 * repath_conn_readdress - the other end has moved
 * @conn: connection
 * @gid: GID of its port
 * @lid: LID of its port, 0 on RoCE
 * @qpn: its queue pair
 */
void repath_conn_readdress(struct repath_conn *conn, const u8 gid[16], u32 lid, u32 qpn)
{
	static const union ib_gid none;

	lockdep_assert_held(&repath_conn_mutex);
	conn->dest_qpn = qpn;
	if (lid)
		conn->addr.dlid = lid;
	if (!memcmp(&conn->addr.dgid, &none, sizeof(none)))
		return;
	/* The GID may be the same, and the HCA behind it another. */
	conn->addr.has_dmac = false;
	memcpy(conn->addr.dgid.raw, gid, sizeof(none));
}

static void settled(struct repath_conn *conn)
{
	conn->moving = false;
	conn->must_reset = false;
	conn->connected_tx = false;
	conn->connected_rx = false;
}

/**
 * repath_conn_message - what a message that was sent or accepted means for the connection
 * @conn: connection; not valid any more after GONE
 * @type: enum repath_msg
 * @flags: of its record, REPATH_REC_*
 * @tx: it was sent
 */
void repath_conn_message(struct repath_conn *conn, u8 type, u32 flags, bool tx)
{
	lockdep_assert_held(&repath_conn_mutex);
	switch (type) {
	case REPATH_MSG_GATE:
		if (!conn->moving) {
			settled(conn);
			conn->moving = true;
		}
		conn->moving_since = jiffies;
		break;
	case REPATH_MSG_CONNECTED:
		if (tx)
			conn->connected_tx = true;
		else
			conn->connected_rx = true;
		if (conn->connected_tx && conn->connected_rx)
			settled(conn);
		break;
	case REPATH_MSG_ABORT:
		conn->must_reset |= !!(flags & REPATH_REC_RESET);
		break;
	case REPATH_MSG_ABORTED:
		conn->must_reset |= !!(flags & REPATH_REC_RESET);
		if (!conn->must_reset)
			settled(conn);
		break;
	case REPATH_MSG_GONE:
		conn->state = REPATH_CONN_GONE;
		if (!conn->rqp)
			repath_conn_destroy(conn);
		break;
	default:
		if (conn->moving)
			conn->moving_since = jiffies;
		break;
	}
}

/* --- queue pairs --- */

static void addr_of_path(struct repath_addr *addr, const struct repath_path *path)
{
	memset(addr, 0, sizeof(*addr));
	addr->port = path->port;
	addr->dlid = path->dlid;
	addr->sl = path->sl;
	if (path->has_grh) {
		addr->dgid = path->dgid;
		addr->sgid_index = path->sgid_index;
		addr->traffic_class = path->traffic_class;
		addr->hop_limit = path->hop_limit;
		addr->flow_label = path->flow_label;
	}
	memcpy(addr->dmac, path->dmac, sizeof(addr->dmac));
	addr->has_dmac = memchr_inv(path->dmac, 0, sizeof(path->dmac));
}

static void qp_connected(struct repath_proc *proc, struct repath_qp *rqp)
{
	struct repath_conn *conn = repath_conn_by_qp(rqp->dev, rqp->qpn);
	struct repath_path path;
	struct repath_addr addr;
	u8 state;

	repath_qp_snapshot(rqp, &state, &path);
	if (state < IB_QPS_RTR || state > IB_QPS_SQE || !path.has_av || READ_ONCE(rqp->gone))
		return;
	addr_of_path(&addr, &path);
	if (conn && conn->rqp == rqp && conn->proc == proc) {
		bool same = repath_conn_is_peer(conn, path.dest_qpn, path.dgid.raw);

		/* The shim connects it; this may be news of a time before the last INFO. */
		if (conn->moving) {
			if (same)
				conn->addr = addr;
			return;
		}
		if (same && conn->state != REPATH_CONN_GONE) {
			conn->addr = addr;
			if (conn->state != REPATH_CONN_READY)
				repath_hello_start(conn, false);
			return;
		}
	}
	if (conn)
		repath_conn_destroy(conn);
	conn = repath_conn_create(proc, rqp, path.dest_qpn, &addr);
	if (!conn)
		return;
	repath_hello_early(conn);
	repath_hello_start(conn, false);
}

/**
 * repath_conn_qp_connected - a queue pair has reached RTR
 * @rqp: queue pair
 *
 * For the first time or again. Only those of registered processes get connections; a process that registers later
 * is seen to by repath_conn_adopt().
 */
void repath_conn_qp_connected(struct repath_qp *rqp)
{
	struct repath_proc *proc;

	if (rqp->kernel || !rqp->pid || !repath_qp_is_connected_type(rqp))
		return;
	proc = repath_proc_find(rqp->pid);
	if (!proc)
		return;
	mutex_lock(&repath_conn_mutex);
	qp_connected(proc, rqp);
	mutex_unlock(&repath_conn_mutex);
	repath_proc_put(proc);
}

/**
 * repath_conn_qp_gone - a queue pair was destroyed
 * @rqp: queue pair
 */
void repath_conn_qp_gone(struct repath_qp *rqp)
{
	struct repath_conn *conn;

	mutex_lock(&repath_conn_mutex);
	conn = rqp->conn_id ? repath_conn_by_id(rqp->conn_id) : NULL;
	if (conn && conn->rqp == rqp) {
		if (conn->moving && conn->state != REPATH_CONN_GONE) {
			unbind(conn);
		} else {
			/* Else the other end would not know why nobody answers when it is to move. */
			if (conn->state == REPATH_CONN_READY)
				repath_peer_send_gone(conn);
			repath_conn_destroy(conn);
		}
	}
	mutex_unlock(&repath_conn_mutex);
}

static int adopt(struct repath_qp *rqp, void *arg)
{
	repath_conn_qp_connected(rqp);
	return 0;
}

/**
 * repath_conn_adopt - take up the queue pairs that a process connected before it registered
 * @proc: process
 */
void repath_conn_adopt(struct repath_proc *proc)
{
	repath_qp_walk_of(proc->tgid, adopt, NULL);
}

/**
 * repath_conn_proc_left - a process is not there any more
 * @proc: process
 */
void repath_conn_proc_left(struct repath_proc *proc)
{
	struct repath_conn *conn, *next;

	mutex_lock(&repath_conn_mutex);
	list_for_each_entry_safe(conn, next, &proc->conns, proc_node) {
		if (conn->state == REPATH_CONN_READY)
			repath_peer_send_gone(conn);
		repath_conn_destroy(conn);
	}
	mutex_unlock(&repath_conn_mutex);
	repath_op_conn_changed();
}

/**
 * repath_conn_query - the state of a connection
 * @conn_id: its number
 * @state: enum repath_conn_state
 *
 * Return: false if there is no such connection.
 */
bool repath_conn_query(u32 conn_id, u8 *state)
{
	struct repath_conn *conn;

	mutex_lock(&repath_conn_mutex);
	conn = repath_conn_by_id(conn_id);
	if (conn)
		*state = conn->state;
	mutex_unlock(&repath_conn_mutex);
	return conn;
}

/**
 * repath_conn_count - how many connections a process has
 * @proc: process
 * @count: all
 * @moving: those that are suspended
 */
void repath_conn_count(struct repath_proc *proc, u32 *count, u32 *moving)
{
	struct repath_conn *conn;

	*moving = 0;
	mutex_lock(&repath_conn_mutex);
	*count = proc->nconns;
	list_for_each_entry(conn, &proc->conns, proc_node)
		*moving += conn->moving;
	mutex_unlock(&repath_conn_mutex);
}

/* --- the lease --- */

/* An end that has kept its queue pair waits for a mover; after the lease, nobody comes any more. */
static int lease_check(struct repath_conn *conn, void *arg)
{
	if (!conn->moving || !conn->rqp || conn->state != REPATH_CONN_READY ||
	    time_before(jiffies, conn->moving_since + peer_lease_s * HZ))
		return 0;
	repath_peer_tell_gone(conn);
	return 0;
}

static void lease_expire(struct work_struct *work)
{
	if (peer_lease_s) {
		mutex_lock(&repath_conn_mutex);
		repath_conn_for_each(lease_check, NULL);
		mutex_unlock(&repath_conn_mutex);
	}
	queue_delayed_work(system_power_efficient_wq, &lease_work, LEASE_PERIOD);
}

int repath_conn_init(void)
{
	INIT_DELAYED_WORK(&lease_work, lease_expire);
	queue_delayed_work(system_power_efficient_wq, &lease_work, LEASE_PERIOD);
	return 0;
}

static int destroy_one(struct repath_conn *conn, void *arg)
{
	repath_conn_destroy(conn);
	return 0;
}

/* Notes, netlink and the carrier are gone: nobody makes or finds a connection any more. */
void repath_conn_exit(void)
{
	cancel_delayed_work_sync(&lease_work);
	mutex_lock(&repath_conn_mutex);
	repath_conn_for_each(destroy_one, NULL);
	mutex_unlock(&repath_conn_mutex);
	xa_destroy(&by_id);
}
