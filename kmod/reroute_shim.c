// SPDX-License-Identifier: GPL-2.0
/*
 * Paths change: what the shims of processes do. A queue pair that its device can not take to another
 * path is connected anew, by the shims at both ends; and address handles of UD are known to their
 * process only.
 */
#include <linux/string.h>

#include "conn.h"
#include "device.h"
#include "netlink.h"
#include "proc.h"
#include "reroute.h"
#include "reroute_behind.h"
#include "reroute_shim.h"
#include "stat.h"
#include "track.h"

/* Whose connection it is; under repath_conn_mutex. */
static struct repath_conn *conn_of(struct repath_qp *rqp)
{
	struct repath_conn *conn = rqp->conn_id ? repath_conn_by_id(rqp->conn_id) : NULL;

	return conn && conn->rqp == rqp ? conn : NULL;
}

/* Has it a connection of which that is so? */
static bool has_conn(struct repath_qp *rqp, bool (*is_so)(const struct repath_conn *conn))
{
	const struct repath_conn *conn;
	bool has;

	if (!READ_ONCE(rqp->conn_id))
		return false;
	mutex_lock(&repath_conn_mutex);
	conn = conn_of(rqp);
	has = conn && is_so(conn);
	mutex_unlock(&repath_conn_mutex);
	return has;
}

static bool is_ready(const struct repath_conn *conn)
{
	return conn->state == REPATH_CONN_READY;
}

static bool may_get_ready(const struct repath_conn *conn)
{
	return is_ready(conn) || conn->state == REPATH_CONN_NEW || conn->hello_busy ||
	       conn->hello_tries;
}

static bool is_moving(const struct repath_conn *conn)
{
	return conn->moving;
}

/**
 * repath_shim_can_cycle - can a queue pair be connected anew by the shims at both its ends?
 * @rqp: queue pair
 */
bool repath_shim_can_cycle(struct repath_qp *rqp)
{
	return has_conn(rqp, is_ready);
}

/**
 * repath_shim_may_cycle - can it be connected anew, or is its peer still being asked?
 * @rqp: queue pair
 */
bool repath_shim_may_cycle(struct repath_qp *rqp)
{
	return has_conn(rqp, may_get_ready);
}

/**
 * repath_shim_is_moving - is a queue pair on a move, its own or its peer's, or is it connected anew?
 * @rqp: queue pair
 */
bool repath_shim_is_moving(struct repath_qp *rqp)
{
	return has_conn(rqp, is_moving);
}

static bool put_path(struct sk_buff *skb, const struct repath_new_path *path)
{
	return nla_put_u32(skb, REPATH_A_DLID, path->dlid) ||
	       (path->new_dlid && nla_put_u32(skb, REPATH_A_NEW_DLID, path->new_dlid)) ||
	       (path->has & REPATH_PATH_SL && nla_put_u8(skb, REPATH_A_SL, path->sl)) ||
	       (path->has & REPATH_PATH_TCLASS && nla_put_u8(skb, REPATH_A_TCLASS, path->tclass)) ||
	       (path->has & REPATH_PATH_RATE && nla_put_u8(skb, REPATH_A_RATE, path->rate));
}

/**
 * repath_shim_cycle - have a queue pair connected anew
 * @rqp: queue pair
 * @to: by this path
 *
 * Return: 0; -EOPNOTSUPP: its process or the peer's has no shim (any more); -EAGAIN: the shim does
 * not read; -ENOMEM.
 */
int repath_shim_cycle(struct repath_qp *rqp, const struct repath_new_path *to)
{
	struct repath_conn *conn;
	int err = -EOPNOTSUPP;
	struct sk_buff *skb;
	void *hdr;

	skb = repath_nl_msg_new(REPATH_CMD_EV_CYCLE, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return -ENOMEM;
	mutex_lock(&repath_conn_mutex);
	conn = conn_of(rqp);
	if (conn && conn->state == REPATH_CONN_READY &&
	    !nla_put_u32(skb, REPATH_A_CONN_ID, conn->id) && !put_path(skb, to) &&
	    !(to->has & REPATH_PATH_MTU && nla_put_u8(skb, REPATH_A_PATH_MTU, to->mtu)))
		err = repath_proc_send(conn->proc, skb, hdr);
	else
		nlmsg_free(skb);
	mutex_unlock(&repath_conn_mutex);
	return err;
}

/* --- address handles --- */

/* The process with queue pairs of UD that has registered; with a reference, or NULL. */
static struct repath_proc *proc_of(const struct repath_user *user)
{
	return user->pid && READ_ONCE(user->ud_count) ? repath_proc_find(user->pid) : NULL;
}

static int has_datagrams(struct repath_user *user, void *arg)
{
	struct repath_proc *proc = proc_of(user);

	if (!proc)
		return 0;
	repath_proc_put(proc);
	return 1;
}

/**
 * repath_shim_has_datagrams - has a process with a shim queue pairs of UD on a device?
 * @dev: device
 */
bool repath_shim_has_datagrams(struct repath_device *dev)
{
	return READ_ONCE(dev->ud_count) && repath_user_for_each(dev, NULL, has_datagrams, NULL) > 0;
}

struct news {
	struct repath_device *dev;
	u32 port;
	const struct repath_new_path *path;
};

/**
 * repath_shim_send_path - tell the shim of one process of a path
 * @dev: device
 * @proc: process
 * @port: own port
 * @path: from now on
 *
 * Return: see reroute_shim.h.
 */
int repath_shim_send_path(struct repath_device *dev, struct repath_proc *proc, u32 port,
			  const struct repath_new_path *path)
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	skb = repath_nl_msg_new(REPATH_CMD_EV_REPATH, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_u32(skb, REPATH_A_DEV_INDEX, dev->index) ||
	    nla_put_u32(skb, REPATH_A_PORT, port) || put_path(skb, path) ||
	    (path->slid && nla_put_u32(skb, REPATH_A_SLID, path->slid)) ||
	    (memchr_inv(path->dgid, 0, sizeof(path->dgid)) &&
	     nla_put(skb, REPATH_A_DGID, sizeof(path->dgid), path->dgid))) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	err = repath_proc_send(proc, skb, hdr);
	if (!err)
		repath_stat_inc(dev, REPATH_STAT_PATH_SHIM_TOLD);
	return err;
}

static int tell(struct repath_user *user, void *arg)
{
	struct repath_proc *proc = proc_of(user);
	const struct news *news = arg;

	if (!proc)
		return 0;
	repath_behind_tell(news->dev, proc, news->port, news->path);
	repath_proc_put(proc);
	return 0;
}

/**
 * repath_shim_tell_path - tell the shims of processes that use UD of a path
 * @dev: device
 * @port: own port
 * @path: from now on
 *
 * Context: the device's work item for rerouting.
 */
void repath_shim_tell_path(struct repath_device *dev, u32 port, const struct repath_new_path *path)
{
	struct news news = { dev, port, path };

	if (READ_ONCE(dev->ud_count))
		repath_user_for_each(dev, NULL, tell, &news);
}

/**
 * repath_cycled_cmd - CYCLED
 * @skb: request
 * @info: the same
 */
int repath_cycled_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_qp *rqp = NULL;
	struct repath_conn *conn;
	struct repath_proc *proc;
	u32 err;

	if (GENL_REQ_ATTR_CHECK(info, REPATH_A_CONN_ID) || GENL_REQ_ATTR_CHECK(info, REPATH_A_ERRNO))
		return -EINVAL;
	err = nla_get_u32(info->attrs[REPATH_A_ERRNO]);
	proc = repath_proc_of(info);
	if (!proc)
		return -EPERM;
	mutex_lock(&repath_conn_mutex);
	conn = repath_conn_by_id(nla_get_u32(info->attrs[REPATH_A_CONN_ID]));
	if (conn && conn->proc == proc && err == ECANCELED) {
		/* Who does not say so far has heard of all, as a library did that is older. */
		repath_conn_rest(conn, info->attrs[REPATH_A_COUNT] ?
				 nla_get_u32(info->attrs[REPATH_A_COUNT]) : conn->peer_round);
	} else if (conn && conn->proc == proc && conn->rqp) {
		rqp = conn->rqp;
		kref_get(&rqp->kref);
	}
	mutex_unlock(&repath_conn_mutex);
	repath_proc_put(proc);
	/* It may be gone by the time of the answer: nobody waits for that. */
	if (!rqp)
		return 0;
	repath_reroute_cycled(rqp, err);
	repath_qp_put(rqp);
	return 0;
}
