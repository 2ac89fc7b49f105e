// SPDX-License-Identifier: GPL-2.0
/* The table of connections, and the processes at their other ends. */
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "number.h"
#include "proc.h"
#include "track.h"

/* Connections of a process whose queue pair is gone until it is resumed. */
#define UNBOUND_MAX	(1u << 17)

/* How often a token is drawn to be named by its low bits alone; where they are all taken it is not. */
#define NAME_TRIES	16

DEFINE_MUTEX(repath_conn_mutex);

static DEFINE_XARRAY_ALLOC1(by_id);
static u32 next_id;
static DEFINE_HASHTABLE(by_token, 12);	/* by the low 16 bits */
static DEFINE_HASHTABLE(by_qp, 12);
static DEFINE_HASHTABLE(remotes, 10);
static u32 next_remote_id;

/* --- remote processes --- */

/**
 * repath_remote_put - one connection, or message, fewer
 * @remote: remote process, or NULL
 *
 * Context: repath_conn_mutex held.
 */
void repath_remote_put(struct repath_remote *remote)
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
 * repath_remote_has_been - has it understood something there, as far as is kept?
 * @remote: remote process
 * @addr: where
 *
 * Context: repath_conn_mutex held.
 */
bool repath_remote_has_been(const struct repath_remote *remote, const struct repath_addr *addr)
{
	u32 i;

	lockdep_assert_held(&repath_conn_mutex);
	for (i = 0; i < min_t(u32, remote->nplaces, REPATH_REMOTE_PLACES); i++)
		if (repath_addr_is_same(&remote->places[i], addr))
			return true;
	return false;
}

/**
 * repath_remote_was_at - something was understood there that only it can understand
 * @remote: remote process
 * @addr: where
 *
 * Context: repath_conn_mutex held.
 */
void repath_remote_was_at(struct repath_remote *remote, const struct repath_addr *addr)
{
	if (!repath_remote_has_been(remote, addr))
		remote->places[remote->nplaces++ % REPATH_REMOTE_PLACES] = *addr;
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
	repath_remote_put(conn->remote);
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

/**
 * repath_conn_unbind - the connection has no queue pair for now
 * @conn: connection
 *
 * Context: repath_conn_mutex held.
 */
void repath_conn_unbind(struct repath_conn *conn)
{
	struct repath_qp *rqp = conn->rqp;

	if (!rqp)
		return;
	hash_del(&conn->by_qp);
	if (rqp->conn_id == conn->id)
		WRITE_ONCE(rqp->conn_id, 0);
	conn->rqp = NULL;
	conn->proc->nunbound++;
	repath_qp_put(rqp);
}

/**
 * repath_conn_bind - this queue pair is the connection's end now
 * @conn: connection
 * @rqp: queue pair
 *
 * Context: repath_conn_mutex held.
 */
void repath_conn_bind(struct repath_conn *conn, struct repath_qp *rqp)
{
	kref_get(&rqp->kref);
	repath_conn_unbind(conn);
	if (conn->dev != rqp->dev) {
		if (conn->dev)
			repath_device_put(conn->dev);
		conn->dev = repath_device_get(rqp->dev);
	}
	conn->rqp = rqp;
	/* Of a mover, which is back: now its peer has as long to answer. */
	conn->moving_since = jiffies;
	conn->proc->nunbound--;
	conn->qpn = rqp->qpn;
	WRITE_ONCE(rqp->conn_id, conn->id);
	hash_add(by_qp, &conn->by_qp, qp_hash(conn->dev, conn->qpn));
}

static bool has_name(const struct repath_proc *proc, u16 name)
{
	struct repath_conn *conn;

	hash_for_each_possible(by_token, conn, by_token, name)
		if ((u16)conn->token == name && conn->proc == proc)
			return true;
	return false;
}

static void draw_token(struct repath_conn *conn)
{
	unsigned int tries = 0;

	do {
		conn->token = get_random_u64();
	} while (!conn->token || repath_conn_by_token(conn->token) ||
		 (++tries < NAME_TRIES && has_name(conn->proc, conn->token)));
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
	/* What has no queue pair costs its process nothing, and this host memory. */
	if (proc->nunbound >= UNBOUND_MAX) {
		repath_stat_inc(rqp->dev, REPATH_STAT_CONN_LIMIT);
		return NULL;
	}
	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return NULL;
	if (xa_alloc_cyclic(&by_id, &conn->id, conn, xa_limit_31b, &next_id, GFP_KERNEL) < 0) {
		kfree(conn);
		return NULL;
	}
	kref_init(&conn->kref);
	conn->proc = repath_proc_get(proc);
	conn->dest_qpn = dest_qpn;
	conn->addr = *addr;
	conn->first = *addr;
	conn->state = REPATH_CONN_NEW;
	draw_token(conn);
	hash_add(by_token, &conn->by_token, (u16)conn->token);
	list_add_tail(&conn->proc_node, &proc->conns);
	proc->nconns++;
	proc->nunbound++;
	repath_stat_inc(rqp->dev, REPATH_STAT_CONN_NEW);
	repath_conn_bind(conn, rqp);
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
	WRITE_ONCE(conn->dead, true);
	repath_conn_unbind(conn);
	hash_del(&conn->by_token);
	list_del(&conn->proc_node);
	conn->proc->nconns--;
	conn->proc->nunbound--;
	xa_erase(&by_id, conn->id);
	if (conn->remote)
		conn->remote->at_length = false;
	repath_remote_put(conn->remote);
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
	hash_for_each_possible(by_token, conn, by_token, (u16)token)
		if (conn->token == token)
			return conn;
	return NULL;
}

struct repath_conn *repath_conn_by_name(const struct repath_proc *proc, u64 cookie, u16 name)
{
	struct repath_conn *conn;

	lockdep_assert_held(&repath_conn_mutex);
	hash_for_each_possible(by_token, conn, by_token, name)
		if ((u16)conn->token == name && conn->proc == proc && conn->remote &&
		    conn->remote->cookie == cookie)
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
 * repath_conn_walk_from - call a function for the connections from a number on
 * @from: the number
 * @fn: may destroy the connection it is given; ends the walk by returning non-zero
 * @arg: for @fn
 *
 * Context: repath_conn_mutex held.
 * Return: what @fn returned last.
 */
int repath_conn_walk_from(u32 from, int (*fn)(struct repath_conn *conn, void *arg), void *arg)
{
	struct repath_conn *conn;
	unsigned long id;
	int ret = 0;

	lockdep_assert_held(&repath_conn_mutex);
	xa_for_each_start(&by_id, id, conn, from) {
		ret = fn(conn, arg);
		if (ret)
			break;
	}
	return ret;
}

/**
 * repath_conn_for_each - call a function for every connection
 * @fn: as for repath_conn_walk_from()
 * @arg: for @fn
 *
 * Context: repath_conn_mutex held.
 * Return: what @fn returned last.
 */
int repath_conn_for_each(int (*fn)(struct repath_conn *conn, void *arg), void *arg)
{
	return repath_conn_walk_from(0, fn, arg);
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
	if (conn->state == REPATH_CONN_GONE || conn->state == REPATH_CONN_READY ||
	    !conn->hello_acked || !conn->peer_token || !conn->remote)
		return;
	conn->state = REPATH_CONN_READY;
	conn->remote->at_length = false;
	repath_stat_inc(conn->dev, REPATH_STAT_CONN_READY);
	/* The other end has to be told keys before it can use any. */
	if (repath_number_has_moved(conn->proc, conn->dev))
		repath_conn_tell(conn);
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
 * repath_conn_count - how many connections a process has on a device
 * @proc: process
 * @dev: device, that they use or used last
 * @count: all
 * @moving: those that are suspended
 */
void repath_conn_count(struct repath_proc *proc, const struct repath_device *dev, u32 *count,
		       u32 *moving)
{
	struct repath_conn *conn;

	*count = 0;
	*moving = 0;
	mutex_lock(&repath_conn_mutex);
	list_for_each_entry(conn, &proc->conns, proc_node) {
		if (conn->dev != dev)
			continue;
		++*count;
		*moving += conn->moving;
	}
	mutex_unlock(&repath_conn_mutex);
}

int repath_conn_init(void)
{
	repath_conn_lease_init();
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
	repath_conn_lease_exit();
	mutex_lock(&repath_conn_mutex);
	repath_conn_for_each(destroy_one, NULL);
	mutex_unlock(&repath_conn_mutex);
	xa_destroy(&by_id);
}
