// SPDX-License-Identifier: GPL-2.0
/* Connections come and go with queue pairs, and with the processes that own them. */
#include <linux/string.h>

#include "conn.h"
#include "device.h"
#include "hello.h"
#include "known.h"
#include "number.h"
#include "op.h"
#include "peer.h"
#include "proc.h"
#include "resolve.h"
#include "track.h"
#include "watch.h"

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

/* The other end would not know why nobody answers when it is to move. */
static void end(struct repath_conn *conn)
{
	if (conn->state == REPATH_CONN_READY)
		repath_peer_send_gone(conn, conn->moving);
	repath_conn_destroy(conn);
}

/**
 * repath_conn_lost_qp - the queue pair of a connection is no more
 * @conn: connection; not valid any more if it was on no move
 *
 * On a move it is continued on another one.
 *
 * Context: repath_conn_mutex held.
 */
void repath_conn_lost_qp(struct repath_conn *conn)
{
	lockdep_assert_held(&repath_conn_mutex);
	if (conn->moving && conn->state != REPATH_CONN_GONE)
		repath_conn_unbind(conn);
	else
		end(conn);
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

		/*
		 * The shim connects it; this may be news of a time before the last INFO. Where the peer is gone
		 * it does not any more: the application has taken it to RESET, for another one.
		 */
		if (conn->moving && conn->state != REPATH_CONN_GONE) {
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
	if (conn && conn->rqp == rqp)
		end(conn);
	else if (conn)
		repath_conn_lost_qp(conn);	/* its end has not been heard of yet, but its number is another's */
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

	if (rqp->kernel || !repath_qp_pid(rqp) || !repath_qp_is_connected_type(rqp))
		return;
	proc = repath_proc_find(repath_qp_pid(rqp));
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
	repath_number_qp_gone(rqp);
	conn = rqp->conn_id ? repath_conn_by_id(rqp->conn_id) : NULL;
	if (conn && conn->rqp == rqp)
		repath_conn_lost_qp(conn);
	mutex_unlock(&repath_conn_mutex);
}

/**
 * repath_conn_qp_reset - a queue pair was modified, maybe to RESET
 * @rqp: queue pair
 *
 * To RESET by its application, which will connect it to somebody else, or by the shim in the course of a move.
 * News may be late: what counts is what it is now.
 */
void repath_conn_qp_reset(struct repath_qp *rqp)
{
	struct repath_conn *conn;
	struct repath_path path;
	u8 state;

	repath_qp_snapshot(rqp, &state, &path);
	if (state >= IB_QPS_RTR || !READ_ONCE(rqp->conn_id))
		return;
	mutex_lock(&repath_conn_mutex);
	conn = rqp->conn_id ? repath_conn_by_id(rqp->conn_id) : NULL;
	repath_qp_snapshot(rqp, &state, &path);
	if (conn && conn->rqp == rqp && !conn->moving && state < IB_QPS_RTR)
		end(conn);
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
		end(conn);
		cond_resched();
	}
	repath_resolve_proc_left(proc);
	repath_watch_proc_left(proc);
	repath_number_proc_left(proc);
	repath_known_forget(proc);
	mutex_unlock(&repath_conn_mutex);
	repath_op_conn_changed();
}
