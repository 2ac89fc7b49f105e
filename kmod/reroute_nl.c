// SPDX-License-Identifier: GPL-2.0
/* Rerouting by netlink: an administrator's paths, and what a reader sees of moved queue pairs. */
#include <rdma/ib_verbs.h>

#include "netlink.h"
#include "reroute_nl.h"
#include "reroute_qp.h"
#include "sa.h"

static u32 get_u32(struct genl_info *info, enum repath_attr attr)
{
	return info->attrs[attr] ? nla_get_u32(info->attrs[attr]) : 0;
}

/* An attribute of a byte that may be there: what it adds to repath_new_path::has. */
static u8 get_u8(struct genl_info *info, enum repath_attr attr, u8 *value, u8 has)
{
	if (!info->attrs[attr])
		return 0;
	*value = nla_get_u8(info->attrs[attr]);
	return has;
}

static void read_path(struct genl_info *info, struct repath_new_path *path)
{
	path->dlid = get_u32(info, REPATH_A_DLID);
	path->slid = get_u32(info, REPATH_A_SLID);
	path->new_dlid = get_u32(info, REPATH_A_NEW_DLID);
	path->serial = get_u32(info, REPATH_A_SERIAL);
	path->pkey = get_u32(info, REPATH_A_PKEY);
	path->has = info->attrs[REPATH_A_PKEY] ? REPATH_PATH_PKEY : 0;
	path->has |= get_u8(info, REPATH_A_SL, &path->sl, REPATH_PATH_SL);
	path->has |= get_u8(info, REPATH_A_TCLASS, &path->tclass, REPATH_PATH_TCLASS);
	path->has |= get_u8(info, REPATH_A_RATE, &path->rate, REPATH_PATH_RATE);
	path->has |= get_u8(info, REPATH_A_PATH_MTU, &path->mtu, REPATH_PATH_MTU);
	if (info->attrs[REPATH_A_DGID])
		memcpy(path->dgid, nla_data(info->attrs[REPATH_A_DGID]), sizeof(path->dgid));
}

/* By what a path is told on the port's link layer. */
static int check_path(struct genl_info *info, bool roce, u8 when)
{
	struct nlattr **a = info->attrs;

	if (!roce && (!a[REPATH_A_DLID] || a[REPATH_A_DGID] || a[REPATH_A_TCLASS])) {
		NL_SET_ERR_MSG(info->extack,
			       "a path of an InfiniBand port is told by its DLID, without DGID and TCLASS");
		return -EINVAL;
	}
	if (roce && (!a[REPATH_A_DGID] || a[REPATH_A_DLID] || a[REPATH_A_SLID] ||
		     a[REPATH_A_NEW_DLID] || a[REPATH_A_PKEY])) {
		NL_SET_ERR_MSG(info->extack,
			       "a path of a RoCE port is told by its DGID, without LIDs and PKEY");
		return -EINVAL;
	}
	if (roce && when != REPATH_PATH_NOW) {
		NL_SET_ERR_MSG(info->extack,
			       "RoCE has no alternate path that could be loaded beforehand: tell the path when it holds");
		return -EOPNOTSUPP;
	}
	return 0;
}

static int path_set(struct repath_device *dev, struct genl_info *info)
{
	u32 port = get_u32(info, REPATH_A_PORT);
	struct repath_new_path path = {};
	u8 when = REPATH_PATH_NOW;
	int err;

	if (!rdma_is_port_valid(dev->ibdev, port)) {
		NL_SET_ERR_MSG(info->extack, "the device has no such port");
		return -EINVAL;
	}
	read_path(info, &path);
	get_u8(info, REPATH_A_PATH_WHEN, &when, 0);
	err = check_path(info, rdma_protocol_roce(dev->ibdev, port), when);
	if (err)
		return err;
	if (when == REPATH_PATH_HOLD && (path.slid || path.new_dlid || path.has)) {
		NL_SET_ERR_MSG(info->extack, "HOLD is of all paths to DLID, and says nothing of a new one");
		return -EINVAL;
	}
	if (when == REPATH_PATH_HOLD)
		err = repath_reroute_unpath(dev, port, path.dlid, REPATH_UNPATH_BREAKS, true);
	else if (when == REPATH_PATH_LATER)
		err = repath_reroute_prepare(dev, port, &path);
	else
		err = repath_reroute_repath(dev, port, &path);
	if (err == -EOPNOTSUPP && !repath_reroute_is_on(dev))
		NL_SET_ERR_MSG(info->extack,
			       "rerouting is switched off for the device; 'repath path reroute DEV on' switches it on");
	else if (err == -EOPNOTSUPP)
		NL_SET_ERR_MSG(info->extack, "not a port of InfiniBand or RoCE");
	return err;
}

static int device_set(struct repath_device *dev, struct genl_info *info)
{
	if (!info->attrs[REPATH_A_REROUTE]) {
		NL_SET_ERR_MSG(info->extack, "REROUTE is missing");
		return -EINVAL;
	}
	if (repath_reroute_switch(dev, nla_get_u8(info->attrs[REPATH_A_REROUTE])))
		repath_sa_again(dev);
	return 0;
}

/* As an administrator of the device. */
static int admin_do(struct sk_buff *skb, struct genl_info *info,
		    int (*fn)(struct repath_device *dev, struct genl_info *info))
{
	struct repath_device *dev = repath_nl_admins_device(skb, info);
	int err;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = fn(dev, info);
	repath_device_put(dev);
	return err;
}

/**
 * repath_path_set_cmd - PATH_SET
 * @skb: the request
 * @info: the same
 */
int repath_path_set_cmd(struct sk_buff *skb, struct genl_info *info)
{
	if (!info->attrs[REPATH_A_PORT]) {
		NL_SET_ERR_MSG(info->extack, "PORT is missing");
		return -EINVAL;
	}
	return admin_do(skb, info, path_set);
}

/**
 * repath_device_set_cmd - DEVICE_SET
 * @skb: the request
 * @info: the same
 */
int repath_device_set_cmd(struct sk_buff *skb, struct genl_info *info)
{
	return admin_do(skb, info, device_set);
}

/* What a reader sees of one, as of one moment; false: it was never to be moved. */
static bool move_snapshot(struct repath_qp *rqp, struct repath_move *copy)
{
	struct repath_reroute *r = rqp->dev->reroute;
	struct repath_move *move;
	unsigned long flags;

	if (!r)
		return false;
	rcu_read_lock();
	move = xa_load(&r->table, rqp->key);
	if (move && move->rqp != rqp)
		move = NULL;
	if (move) {
		spin_lock_irqsave(&move->lock, flags);
		copy->state = move->state;
		copy->by = move->by;
		copy->why = move->why;
		copy->count = move->count;
		copy->since_ns = move->since_ns;
		spin_unlock_irqrestore(&move->lock, flags);
	}
	rcu_read_unlock();
	return move;
}

/**
 * repath_fill_move - REPATH_A_MOVE, if the queue pair was ever to be moved
 * @skb: message
 * @rqp: queue pair
 *
 * Context: process.
 * Return: 0, or -EMSGSIZE.
 */
int repath_fill_move(struct sk_buff *skb, struct repath_qp *rqp)
{
	struct repath_move move;
	struct nlattr *nest;

	if (!move_snapshot(rqp, &move))
		return 0;
	nest = nla_nest_start(skb, REPATH_A_MOVE);
	if (!nest ||
	    nla_put_u8(skb, REPATH_A_MOVE_STATE, move.state) ||
	    nla_put_u32(skb, REPATH_A_COUNT, move.count) ||
	    (move.why && nla_put_string(skb, REPATH_A_REASON, move.why)) ||
	    (move.since_ns &&
	     (nla_put_u8(skb, REPATH_A_MOVED_BY, move.by) ||
	      nla_put_u64_64bit(skb, REPATH_A_SINCE_NS, move.since_ns, REPATH_A_PAD))))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}
