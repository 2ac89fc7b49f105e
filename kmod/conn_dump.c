// SPDX-License-Identifier: GPL-2.0
/* CONN_GET and EV_CONN. Tokens and cookies do not leave the kernel. */
#include "compat/genl.h"
#include "conn.h"
#include "device.h"
#include "netlink.h"
#include "proc.h"

static int fill(struct sk_buff *skb, const struct repath_conn *conn, u32 pid)
{
	struct nlattr *nest = nla_nest_start(skb, REPATH_A_CONN);
	char name[IB_DEVICE_NAME_MAX];

	if (!nest)
		return -EMSGSIZE;
	repath_device_name(conn->dev, name);
	if (nla_put_u32(skb, REPATH_A_CONN_ID, conn->id) ||
	    nla_put_u8(skb, REPATH_A_CONN_STATE, conn->state) ||
	    nla_put_u32(skb, REPATH_A_DEV_INDEX, conn->dev->index) ||
	    nla_put_string(skb, REPATH_A_DEV_NAME, name) ||
	    nla_put_u32(skb, REPATH_A_PORT, conn->addr.port) ||
	    nla_put_u32(skb, REPATH_A_QPN, conn->qpn) ||
	    (conn->remote && nla_put_u32(skb, REPATH_A_PEER_ID, conn->remote->id)) ||
	    nla_put_u32(skb, REPATH_A_DEST_QPN, conn->dest_qpn) ||
	    nla_put(skb, REPATH_A_DGID, sizeof(conn->addr.dgid), &conn->addr.dgid) ||
	    nla_put_u32(skb, REPATH_A_DLID, conn->addr.dlid) ||
	    (conn->moving && nla_put_flag(skb, REPATH_A_MOVING)) ||
	    nla_put_u32(skb, REPATH_A_PID, pid)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * repath_conn_tell - tell its process of a connection
 * @conn: connection
 *
 * The event says nothing of the PID: it is the receiver's own.
 *
 * Context: repath_conn_mutex held.
 */
void repath_conn_tell(const struct repath_conn *conn)
{
	struct sk_buff *skb;
	void *hdr;

	skb = repath_nl_msg_new(REPATH_CMD_EV_CONN, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return;
	if (fill(skb, conn, 0))
		nlmsg_free(skb);
	else
		repath_proc_send(conn->proc, skb, hdr);
}

static bool wanted(const struct repath_conn *conn, struct netlink_callback *cb)
{
	struct nlattr **attrs = repath_dump_attrs(cb);
	u32 pid = repath_nl_pid(conn->proc->tgid);
	char name[IB_DEVICE_NAME_MAX];

	if (!pid || !rdma_dev_access_netns(conn->dev->ibdev, sock_net(cb->skb->sk)))
		return false;
	if (attrs && attrs[REPATH_A_PID] && nla_get_u32(attrs[REPATH_A_PID]) != pid)
		return false;
	if (attrs && attrs[REPATH_A_CONN_STATE] && nla_get_u8(attrs[REPATH_A_CONN_STATE]) != conn->state)
		return false;
	if (!attrs || !attrs[REPATH_A_DEV_NAME])
		return true;
	repath_device_name(conn->dev, name);
	return !nla_strcmp(attrs[REPATH_A_DEV_NAME], name);
}

struct dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
};

static int dump_one(struct repath_conn *conn, void *arg)
{
	struct dump *dump = arg;
	void *hdr;

	if (!wanted(conn, dump->cb))
		return 0;
	hdr = repath_nl_dump_put(dump->skb, dump->cb, REPATH_CMD_CONN_GET);
	if (!hdr)
		return -EMSGSIZE;
	if (fill(dump->skb, conn, repath_nl_pid(conn->proc->tgid))) {
		genlmsg_cancel(dump->skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(dump->skb, hdr);
	dump->cb->args[0] = conn->id + 1;
	return 0;
}

/**
 * repath_conn_dump - CONN_GET
 * @skb: answer
 * @cb: request; args[0] is the number from which on they have not been told
 */
int repath_conn_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump dump = { .skb = skb, .cb = cb };

	mutex_lock(&repath_conn_mutex);
	repath_conn_walk_from(cb->args[0], dump_one, &dump);
	mutex_unlock(&repath_conn_mutex);
	return skb->len;
}
