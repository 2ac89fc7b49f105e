// SPDX-License-Identifier: GPL-2.0
/* NUMBERS, NUMBER_CHECK. */
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "netlink.h"
#include "number.h"
#include "op.h"
#include "proc.h"
#include "track.h"
#include "watch.h"

/**
 * repath_number_check_cmd - NUMBER_CHECK
 * @skb: request
 * @info: request
 */
int repath_number_check_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev;
	struct repath_proc *proc;
	bool known, kept;
	u32 qpn;

	if (GENL_REQ_ATTR_CHECK(info, REPATH_A_DEV_INDEX) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_QPN))
		return -EINVAL;
	qpn = nla_get_u32(info->attrs[REPATH_A_QPN]);
	dev = repath_device_get_by_index(genl_info_net(info),
					 nla_get_u32(info->attrs[REPATH_A_DEV_INDEX]));
	if (!dev)
		return -ENODEV;
	/* By its task: it asks on another socket than the one that it has registered. */
	proc = repath_proc_find(task_tgid(current));
	mutex_lock(&repath_op_mutex);
	kept = repath_op_keeps(dev, qpn, proc);
	mutex_unlock(&repath_op_mutex);
	mutex_lock(&repath_conn_mutex);
	known = repath_number_is_known(dev, qpn);
	mutex_unlock(&repath_conn_mutex);
	repath_device_put(dev);
	repath_proc_put(proc);
	return known ? -EADDRINUSE : kept ? -EBUSY : 0;
}

/*
 * May others know it by this number? Anybody may register: who claims the number of a stranger's queue pair is asked for in
 * its place, or keeps others from finding it. What was there before the module may have moved under the one before, of
 * which nothing is known.
 */
static bool may_be_known_as(struct repath_proc *proc, const struct repath_qp *rqp, u32 known_as)
{
	return known_as == rqp->qpn || known_as == repath_number_known_as(rqp) || !rqp->created_ns ||
	       repath_op_keeps_of(proc, rqp->type, known_as) ||
	       !(repath_op_keeps(rqp->dev, known_as, NULL) || repath_number_is_anothers(rqp, known_as));
}

/* @refused: result: true if it may not be known by that number; the others of the process may */
static int set_one(struct repath_proc *proc, struct repath_device *dev,
		   const struct repath_number *row, bool *refused)
{
	struct repath_qp *rqp = repath_qp_find(dev, row->qpn);
	int err = 0;

	if (!rqp)
		return 0;	/* destroyed meanwhile */
	if (repath_qp_pid(rqp) != proc->tgid)
		err = -EPERM;
	else if (may_be_known_as(proc, rqp, row->known_as))
		err = repath_number_set(proc, rqp, row->known_as);
	else
		*refused = true;
	repath_qp_put(rqp);
	return err;
}

/**
 * repath_numbers_cmd - NUMBERS
 * @skb: request
 * @info: request
 */
int repath_numbers_cmd(struct sk_buff *skb, struct genl_info *info)
{
	const struct repath_gid_change *gids = NULL;
	const struct repath_number *rows = NULL;
	struct repath_device *dev;
	struct repath_proc *proc;
	u32 i, n = 0, ngids = 0;
	bool refused = false;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, REPATH_A_DEV_INDEX))
		return -EINVAL;
	if (info->attrs[REPATH_A_NUMBERS]) {
		rows = nla_data(info->attrs[REPATH_A_NUMBERS]);
		n = nla_len(info->attrs[REPATH_A_NUMBERS]) / sizeof(*rows);
	}
	if (info->attrs[REPATH_A_GIDS]) {
		gids = nla_data(info->attrs[REPATH_A_GIDS]);
		ngids = nla_len(info->attrs[REPATH_A_GIDS]) / sizeof(*gids);
	}
	err = repath_proc_and_device_of(info, &proc, &dev);
	if (err)
		return err;
	mutex_lock(&repath_op_mutex);
	mutex_lock(&repath_conn_mutex);
	repath_number_moved(proc, dev);
	for (i = 0; i < n && !err; i++)
		err = set_one(proc, dev, rows + i, &refused);
	if (!err)
		repath_watch_moved(proc, dev, rows, n, gids, ngids);
	mutex_unlock(&repath_conn_mutex);
	mutex_unlock(&repath_op_mutex);
	if (err == -EPERM)
		GENL_SET_ERR_MSG(info, "NUMBERS names a queue pair that is not the process's own");
	if (!err && refused) {
		GENL_SET_ERR_MSG(info, "NUMBERS claims a number that is another process's");
		err = -EPERM;
	}
	repath_device_put(dev);
	repath_proc_put(proc);
	return err;
}
