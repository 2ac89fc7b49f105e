// SPDX-License-Identifier: GPL-2.0
/* The nests of a queue pair, a process and a device, the same in dumps, answers and events. */
#include <linux/pid_namespace.h>

#include "conn.h"
#include "device.h"
#include "lid.h"
#include "netlink.h"
#include "op.h"
#include "proc.h"
#include "reroute.h"
#include "reroute_nl.h"
#include "track.h"

/* A process that the reader can not see has no number for it, and its name is not told either. */
static int fill_owner(struct sk_buff *skb, struct pid *pid, const char *comm,
		      struct pid_namespace *ns)
{
	pid_t nr = ns ? pid_nr_ns(pid, ns) : 0;

	if (!nr)
		return 0;
	if (nla_put_u32(skb, REPATH_A_PID, nr) || nla_put_string(skb, REPATH_A_COMM, comm))
		return -EMSGSIZE;
	return 0;
}

static int fill_device_key(struct sk_buff *skb, struct repath_device *dev)
{
	char name[IB_DEVICE_NAME_MAX];

	repath_device_name(dev, name);
	if (nla_put_u32(skb, REPATH_A_DEV_INDEX, dev->index) ||
	    nla_put_string(skb, REPATH_A_DEV_NAME, name))
		return -EMSGSIZE;
	return 0;
}

static int fill_pkey(struct sk_buff *skb, struct repath_device *dev, u32 port, u16 index)
{
	u16 pkey;

	if (nla_put_u32(skb, REPATH_A_PKEY_INDEX, index) ||
	    (repath_path_pkey(dev, port, index, &pkey) && nla_put_u32(skb, REPATH_A_PKEY, pkey)))
		return -EMSGSIZE;
	return 0;
}

static int fill_path(struct sk_buff *skb, struct repath_device *dev,
		     const struct repath_path *path)
{
	/* The LID that its packets carry as source; on RoCE they carry none. */
	u32 slid = path->dlid ? repath_lid(dev, path->port) | path->path_bits : 0;

	if (nla_put_u32(skb, REPATH_A_DEST_QPN, path->dest_qpn) ||
	    nla_put_u32(skb, REPATH_A_DLID, path->dlid) ||
	    nla_put_u32(skb, REPATH_A_SLID, slid) ||
	    nla_put_u8(skb, REPATH_A_SL, path->sl) ||
	    nla_put_u8(skb, REPATH_A_RATE, path->rate) ||
	    nla_put_u8(skb, REPATH_A_PATH_MTU, path->mtu))
		return -EMSGSIZE;
	if (path->has_grh &&
	    (nla_put(skb, REPATH_A_DGID, sizeof(path->dgid), path->dgid.raw) ||
	     nla_put_u32(skb, REPATH_A_SGID_INDEX, path->sgid_index) ||
	     (!path->dlid && nla_put_u8(skb, REPATH_A_TCLASS, path->traffic_class))))
		return -EMSGSIZE;
	return 0;
}

static int fill_alt_path(struct sk_buff *skb, struct repath_device *dev,
			 const struct repath_alt_path *alt)
{
	struct nlattr *nest;

	if (alt->has_mig && nla_put_u8(skb, REPATH_A_MIG_STATE, alt->mig))
		return -EMSGSIZE;
	if (!alt->dlid)
		return 0;
	nest = nla_nest_start(skb, REPATH_A_ALT_PATH);
	if (!nest ||
	    nla_put_u32(skb, REPATH_A_PORT, alt->port) ||
	    nla_put_u32(skb, REPATH_A_DLID, alt->dlid) ||
	    nla_put_u8(skb, REPATH_A_SL, alt->sl) ||
	    nla_put_u8(skb, REPATH_A_RATE, alt->rate) ||
	    fill_pkey(skb, dev, alt->port, alt->pkey_index) ||
	    (alt->has_grh &&
	     (nla_put(skb, REPATH_A_DGID, sizeof(alt->dgid), alt->dgid.raw) ||
	      nla_put_u32(skb, REPATH_A_SGID_INDEX, alt->sgid_index))))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int fill_qp_owner(struct sk_buff *skb, struct repath_qp *rqp, struct pid_namespace *ns)
{
	struct repath_proc *proc;

	if (rqp->kernel) {
		if (nla_put_flag(skb, REPATH_A_KERNEL) ||
		    nla_put_string(skb, REPATH_A_COMM, rqp->user->comm))
			return -EMSGSIZE;
		return 0;
	}
	proc = repath_proc_find(repath_qp_pid(rqp));
	if (proc) {
		repath_proc_put(proc);
		if (nla_put_flag(skb, REPATH_A_SHIM))
			return -EMSGSIZE;
	}
	return fill_owner(skb, repath_qp_pid(rqp), rqp->user->comm, ns);
}

/**
 * repath_fill_qp - REPATH_A_QP
 * @skb: message
 * @rqp: queue pair
 * @ns: PID namespace of the reader; NULL: readers of several
 *
 * Context: process.
 * Return: 0, or -EMSGSIZE; then the message is as before.
 */
int repath_fill_qp(struct sk_buff *skb, struct repath_qp *rqp, struct pid_namespace *ns)
{
	struct repath_alt_path alt;
	struct repath_path path;
	struct nlattr *nest;
	u8 state, conn_state;
	u32 conn_id;

	nest = nla_nest_start(skb, REPATH_A_QP);
	if (!nest)
		return -EMSGSIZE;

	repath_qp_snapshot(rqp, &state, &path);
	if (fill_device_key(skb, rqp->dev) ||
	    nla_put_u32(skb, REPATH_A_QPN, rqp->qpn) ||
	    nla_put_u8(skb, REPATH_A_QP_TYPE, rqp->type) ||
	    nla_put_u8(skb, REPATH_A_QP_STATE, state) ||
	    fill_qp_owner(skb, rqp, ns) ||
	    (rqp->created_ns &&
	     nla_put_u64_64bit(skb, REPATH_A_CREATED_NS, rqp->created_ns, REPATH_A_PAD)) ||
	    (repath_qp_was_asked(rqp) && nla_put_flag(skb, REPATH_A_ASKED)))
		goto cancel;
	/* Those of SMI and GSI belong to a port without ever being told so. */
	if (!path.port && rqp->key != rqp->qpn)
		path.port = rqp->key >> 24;
	if (path.port && nla_put_u32(skb, REPATH_A_PORT, path.port))
		goto cancel;
	if (path.has_av && fill_path(skb, rqp->dev, &path))
		goto cancel;
	/* From INIT on; the P_Key of SMI and GSI is not the queue pair's. */
	if (path.port && rqp->key == rqp->qpn &&
	    fill_pkey(skb, rqp->dev, path.port, path.pkey_index))
		goto cancel;
	repath_qp_snapshot_alt(rqp, &alt);
	if (fill_alt_path(skb, rqp->dev, &alt) || repath_fill_move(skb, rqp))
		goto cancel;

	conn_id = READ_ONCE(rqp->conn_id);
	if (conn_id && repath_conn_query(conn_id, &conn_state) &&
	    (nla_put_u32(skb, REPATH_A_CONN_ID, conn_id) ||
	     nla_put_u8(skb, REPATH_A_CONN_STATE, conn_state)))
		goto cancel;

	nla_nest_end(skb, nest);
	return 0;

cancel:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
}

/**
 * repath_fill_process - REPATH_A_PROCESS
 * @skb: message
 * @user: the process on a device
 * @ns: PID namespace of the reader; NULL: readers of several
 *
 * Context: process.
 * Return: 0, or -EMSGSIZE; then the message is as before.
 */
int repath_fill_process(struct sk_buff *skb, struct repath_user *user, struct pid_namespace *ns)
{
	u32 conns = 0, moving = 0;
	struct repath_proc *proc;
	struct nlattr *nest;
	bool shim;

	nest = nla_nest_start(skb, REPATH_A_PROCESS);
	if (!nest)
		return -EMSGSIZE;

	proc = repath_proc_find(user->pid);
	shim = proc;
	if (proc) {
		repath_conn_count(proc, user->dev, &conns, &moving);
		repath_proc_put(proc);
	}
	if (fill_owner(skb, user->pid, user->comm, ns) ||
	    (shim && nla_put_flag(skb, REPATH_A_SHIM)) ||
	    fill_device_key(skb, user->dev) ||
	    nla_put_u32(skb, REPATH_A_QP_COUNT, READ_ONCE(user->qp_count)) ||
	    nla_put_u32(skb, REPATH_A_CTX_COUNT, READ_ONCE(user->ctx_count)) ||
	    nla_put_u32(skb, REPATH_A_CONN_COUNT, conns) ||
	    nla_put_u32(skb, REPATH_A_CONN_MOVING, moving)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * repath_fill_device - REPATH_A_DEVICE
 * @skb: message
 * @dev: device
 *
 * Context: process.
 * Return: 0, or -EMSGSIZE; then the message is as before.
 */
int repath_fill_device(struct sk_buff *skb, struct repath_device *dev)
{
	struct nlattr *nest;
	u32 op_id;

	nest = nla_nest_start(skb, REPATH_A_DEVICE);
	if (!nest)
		return -EMSGSIZE;

	op_id = repath_op_of_device(dev);
	if (fill_device_key(skb, dev) ||
	    nla_put_u64_64bit(skb, REPATH_A_NODE_GUID, dev->node_guid, REPATH_A_PAD) ||
	    nla_put_u32(skb, REPATH_A_PORTS, dev->ports) ||
	    nla_put_u8(skb, REPATH_A_LINK_LAYER, dev->link_layer) ||
	    nla_put_u32(skb, REPATH_A_QP_COUNT, READ_ONCE(dev->qp_count)) ||
	    nla_put_u32(skb, REPATH_A_CTX_COUNT, READ_ONCE(dev->ctx_count)) ||
	    nla_put_u32(skb, REPATH_A_PROC_COUNT, READ_ONCE(dev->user_count)) ||
	    (op_id && nla_put_u32(skb, REPATH_A_OP_ID, op_id)) ||
	    nla_put_u8(skb, REPATH_A_REROUTE, repath_reroute_is_on(dev))) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}
