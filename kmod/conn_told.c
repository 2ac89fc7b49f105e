// SPDX-License-Identifier: GPL-2.0
/*
 * Both ends of a connection may be moved at once, each to a new address: then neither finds the other where it was. Who
 * has moved them knows where they are, and says so to one of them; its INFO tells the other one. Where a UD queue pair has
 * gone its senders are told one by one: so who has some is told where they are.
 */
#include <rdma/ib_verbs.h>

#include "conn.h"
#include "conn_told.h"
#include "device.h"
#include "known.h"
#include "netlink.h"
#include "proc.h"
#include "watch.h"

#define KNOWN_MAX	8	/* processes that have left one address, the last ones */

/**
 * struct told - peers have moved
 * @dev: their connections' device here
 * @from: where they were: a GID, else a LID
 * @to: their new GID; NULL: it is as before
 * @lid: their new LID; 0 on RoCE
 * @conns: connections that look for them there now
 * @senders: of those, senders to UD queue pairs, that are told there now where these are
 * @last: the last one whose process was told
 * @moved: what was said of the last one
 */
struct told {
	const struct repath_device *dev;
	struct repath_addr from;
	const u8 *to;
	u32 lid;
	u32 conns;
	u32 senders;
	const struct repath_conn *last;
	struct repath_conn_moved moved;
};

static bool is_of_last(const struct told *t, const struct repath_conn *conn)
{
	return t->last && t->last->proc == conn->proc && t->last->remote == conn->remote;
}

/* Or it is on its way to one: whoever knows where its peer is may be faster. */
static bool is_concerned(const struct told *t, const struct repath_conn *conn)
{
	return conn->dev == t->dev ||
	       (!conn->rqp && net_eq(repath_device_net(conn->dev), repath_device_net(t->dev)));
}

static struct repath_addr where(const struct told *t, const struct repath_conn *conn)
{
	struct repath_addr to = conn->addr;

	if (t->to)
		memcpy(to.dgid.raw, t->to, sizeof(to.dgid));
	to.dlid = t->lid;
	return to;
}

/* The peer has said it before, or it was told twice. */
static bool is_known(const struct told *t, const struct repath_conn *conn)
{
	struct repath_addr now[KNOWN_MAX];
	u64 cookies[KNOWN_MAX];
	u32 i, n;

	if (repath_addr_is_same_place(&conn->addr, &t->from))
		return true;
	n = repath_known_find(conn->proc, &t->from, now, cookies, KNOWN_MAX);
	for (i = 0; i < n; i++)
		if (cookies[i] == conn->remote->cookie)
			return true;
	return false;
}

static int has_moved(struct repath_conn *conn, void *arg)
{
	struct repath_addr to;
	struct told *t = arg;

	if (!is_concerned(t, conn) || !conn->remote || conn->state != REPATH_CONN_READY ||
	    repath_proc_is_local(conn->remote->cookie))
		return 0;
	to = where(t, conn);
	if (repath_addr_is_same_place(&conn->addr, &to) && conn->addr.dlid == to.dlid) {
		t->conns += is_known(t, conn);
		return 0;
	}
	if (!conn->moving || !repath_addr_is_same_place(&conn->addr, &t->from))
		return 0;
	repath_conn_readdress(conn, to.dgid.raw, t->lid, conn->dest_qpn, true, &t->moved);
	/* What it says is on its way to the old place. One message to a process for all of a peer's. */
	if (!is_of_last(t, conn))
		repath_conn_tell(conn);
	t->last = conn;
	t->conns++;
	return 0;
}

static bool is_unicast(const u8 gid[16])
{
	return gid[0] != 0xff && memchr_inv(gid, 0, 16);
}

static int parse(struct genl_info *info, const struct repath_device *dev, struct told *t)
{
	bool roce = rdma_protocol_roce(dev->ibdev, rdma_start_port(dev->ibdev));
	struct nlattr **a = info->attrs;

	t->dev = dev;
	if (!a[REPATH_A_DGID] == !a[REPATH_A_DLID]) {
		NL_SET_ERR_MSG(info->extack, "where the peers were: either their GID or, without one, their LID");
		return -EINVAL;
	}
	if (a[REPATH_A_DGID])
		memcpy(&t->from.dgid, nla_data(a[REPATH_A_DGID]), sizeof(t->from.dgid));
	else
		t->from.dlid = nla_get_u32(a[REPATH_A_DLID]);
	if (a[REPATH_A_NEW_DGID])
		t->to = nla_data(a[REPATH_A_NEW_DGID]);
	if (a[REPATH_A_NEW_DLID])
		t->lid = nla_get_u32(a[REPATH_A_NEW_DLID]);
	if (roce ? !t->to || t->lid : !t->lid) {
		NL_SET_ERR_MSG(info->extack,
			       "where the peers are: a new GID on RoCE; on InfiniBand a new LID, and maybe a new GID");
		return -EINVAL;
	}
	if ((t->to && !is_unicast(t->to)) || (a[REPATH_A_DGID] && !repath_addr_has_gid(&t->from))) {
		NL_SET_ERR_MSG(info->extack, "not a GID of a port");
		return -EINVAL;
	}
	if (a[REPATH_A_DLID] && (roce || t->to)) {
		NL_SET_ERR_MSG(info->extack, "peers that have a new GID, or are on RoCE, are known by the GID that they had");
		return -EINVAL;
	}
	return 0;
}

static int answer(struct genl_info *info, const struct told *t)
{
	struct sk_buff *skb;
	void *hdr;

	skb = repath_nl_reply_new(info, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_u32(skb, REPATH_A_CONN_COUNT, t->conns) || nla_put_u32(skb, REPATH_A_COUNT, t->senders)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return repath_nl_reply(info, skb, hdr);
}

/**
 * repath_conn_moved_cmd - CONN_MOVED
 * @skb: request
 * @info: request
 *
 * Nobody there is believed for it: the peer has to know the tokens as always.
 *
 * Return: 0, -ENOENT (none that stands still has its peer there), or why the request is wrong.
 */
int repath_conn_moved_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev = repath_nl_admins_device(skb, info);
	struct told t = {};
	int err;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = parse(info, dev, &t);
	if (!err) {
		mutex_lock(&repath_conn_mutex);
		t.senders = repath_watch_told(dev, &t.from, t.to, t.lid);
		repath_conn_for_each(has_moved, &t);
		mutex_unlock(&repath_conn_mutex);
		if (!t.conns && !t.senders) {
			NL_SET_ERR_MSG(info->extack, "no connection of the device that stands still has its peer there");
			err = -ENOENT;
		}
	}
	repath_device_put(dev);
	return err ? err : answer(info, &t);
}
