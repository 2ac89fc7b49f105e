// SPDX-License-Identifier: GPL-2.0
/* Which queue pairs a reader wants to see, and the shortest way to them. */
#include <linux/moduleparam.h>
#include <uapi/ib_repath.h>

#include "device.h"
#include "netlink.h"
#include "qp_filter.h"

static unsigned int ask_max = 256;
module_param(ask_max, uint, 0644);
MODULE_PARM_DESC(ask_max,
		 "How many queue pairs of one answer the device is asked about; the others' state is as last set (256)");

/**
 * repath_qp_filter_parse - read a filter from a request
 * @filter: result; repath_qp_filter_free() it after success
 * @net: namespace of the reader
 * @attrs: of the request, valid by policy
 * @extack: says what is wrong
 *
 * Context: process, of the reader.
 * Return: 0, or -ENODEV when the reader sees no device of that name.
 */
int repath_qp_filter_parse(struct repath_qp_filter *filter, const struct net *net,
			   struct nlattr **attrs, struct netlink_ext_ack *extack)
{
	struct repath_device *dev;

	memset(filter, 0, sizeof(*filter));
	filter->net = net;

	if (attrs[REPATH_A_DEV_NAME]) {
		dev = repath_nl_device(net, attrs[REPATH_A_DEV_NAME], extack);
		if (IS_ERR(dev))
			return PTR_ERR(dev);
		filter->dev = dev;
	}
	if (attrs[REPATH_A_PID]) {
		filter->tgid = find_get_pid(nla_get_u32(attrs[REPATH_A_PID]));
		filter->nobody = !filter->tgid;
	}
	if (attrs[REPATH_A_PORT])
		filter->port = nla_get_u32(attrs[REPATH_A_PORT]);
	if (attrs[REPATH_A_DLID])
		filter->dlid = nla_get_u32(attrs[REPATH_A_DLID]);
	if (attrs[REPATH_A_DGID]) {
		memcpy(&filter->dgid, nla_data(attrs[REPATH_A_DGID]), sizeof(filter->dgid));
		filter->has_dgid = true;
	}
	if (attrs[REPATH_A_QPN]) {
		filter->qpn = nla_get_u32(attrs[REPATH_A_QPN]);
		filter->has_qpn = true;
	}
	if (attrs[REPATH_A_QP_TYPE]) {
		filter->type = nla_get_u8(attrs[REPATH_A_QP_TYPE]);
		filter->has_type = true;
	}
	if (attrs[REPATH_A_QP_STATE]) {
		filter->state = nla_get_u8(attrs[REPATH_A_QP_STATE]);
		filter->has_state = true;
	}
	return 0;
}

/**
 * repath_qp_filter_free - end of repath_qp_filter_parse()
 * @filter: the filter
 */
void repath_qp_filter_free(struct repath_qp_filter *filter)
{
	if (filter->dev)
		repath_device_put(filter->dev);
	put_pid(filter->tgid);
	filter->dev = NULL;
	filter->tgid = NULL;
}

static bool is_port(const struct repath_qp_filter *filter, u32 port)
{
	return !filter->port || filter->port == port;
}

static bool match_state(const struct repath_qp_filter *filter, struct repath_qp *rqp)
{
	return !filter->has_state || filter->state == READ_ONCE(rqp->state);
}

static bool match_others(const struct repath_qp_filter *filter, struct repath_qp *rqp)
{
	struct repath_alt_path alt;
	struct repath_path path;

	if (filter->nobody || (filter->dev && filter->dev != rqp->dev) ||
	    (filter->tgid && filter->tgid != repath_qp_pid(rqp)) ||
	    (filter->has_qpn && filter->qpn != rqp->qpn) ||
	    (filter->has_type && filter->type != rqp->type))
		return false;

	repath_qp_snapshot(rqp, NULL, &path);
	repath_qp_snapshot_alt(rqp, &alt);
	/* What it has left does not count. */
	if (!path.has_av) {
		path.dlid = 0;
		path.has_grh = false;
	}
	if (!path.port && rqp->key != rqp->qpn)
		path.port = rqp->key >> 24;
	/* A path is where packets go from a port, now or after a migration. */
	if (filter->dlid) {
		if (!(filter->dlid == path.dlid && is_port(filter, path.port)) &&
		    !(filter->dlid == alt.dlid && is_port(filter, alt.port)))
			return false;
	} else if (!is_port(filter, path.port)) {
		return false;
	}
	if (filter->has_dgid &&
	    (!path.has_grh || memcmp(&filter->dgid, &path.dgid, sizeof(path.dgid))))
		return false;
	return true;
}

/**
 * repath_qp_filter_match - is this one wanted?
 * @filter: the filter
 * @rqp: the queue pair
 *
 * Context: any.
 */
bool repath_qp_filter_match(const struct repath_qp_filter *filter, struct repath_qp *rqp)
{
	return match_others(filter, rqp) && match_state(filter, rqp);
}

/* A walk; @asked: how many the device was asked about. */
struct filtered {
	const struct repath_qp_filter *filter;
	repath_qp_fn fn;
	void *arg;
	u32 asked;
};

static int filtered_qp(struct repath_qp *rqp, void *arg)
{
	struct filtered *to = arg;

	if (!match_others(to->filter, rqp))
		return 0;
	/* The way through a process leads over all its devices. */
	if (to->filter->net && !rdma_dev_access_netns(rqp->dev->ibdev, to->filter->net))
		return 0;
	/* A driver's query can cost a command to firmware: an answer of 64k is not worth that. */
	if (to->asked < READ_ONCE(ask_max))
		to->asked += repath_qp_ask(rqp);
	return match_state(to->filter, rqp) ? to->fn(rqp, to->arg) : 0;
}

static int walk_path(struct repath_device *dev, struct filtered *to)
{
	const struct repath_qp_filter *filter = to->filter;
	u32 port = rdma_start_port(dev->ibdev);
	u32 last = rdma_end_port(dev->ibdev);
	int ret = 0;

	if (filter->port) {
		/* Also: beyond the greatest number, @port would begin anew and never end. */
		if (filter->port > last)
			return 0;
		port = filter->port;
		last = filter->port;
	}
	for (; !ret && port <= last; port++)
		ret = repath_qp_walk_on_path(dev, port, filter->dlid, &filter->dgid,
						 filtered_qp, to);
	return ret;
}

static int walk_device(struct repath_device *dev, struct filtered *to)
{
	const struct repath_qp_filter *filter = to->filter;
	struct repath_qp *rqp;
	int ret;

	if (filter->dlid || filter->has_dgid)
		return walk_path(dev, to);
	/* 0 and 1 are numbers of one queue pair a port. */
	if (filter->has_qpn && filter->qpn > 1) {
		rqp = repath_qp_find(dev, filter->qpn);
		if (!rqp)
			return 0;
		ret = filtered_qp(rqp, to);
		repath_qp_put(rqp);
		return ret;
	}
	return repath_qp_for_each(dev, filtered_qp, to);
}

/**
 * repath_qp_filter_walk - walk the queue pairs that match, by the index that leads to the fewest
 * @filter: the filter
 * @fn: see track.h
 * @arg: for @fn
 *
 * Context: process.
 * Return: 0, what @fn returned, or -ENOMEM.
 */
int repath_qp_filter_walk(const struct repath_qp_filter *filter, repath_qp_fn fn, void *arg)
{
	struct filtered to = { .filter = filter, .fn = fn, .arg = arg };
	struct repath_device *dev;
	int ret = 0;

	if (filter->nobody)
		return 0;
	if (filter->tgid)
		return repath_qp_walk_of(filter->tgid, filtered_qp, &to);
	if (filter->dev)
		return walk_device(filter->dev, &to);

	repath_device_for_each(dev, filter->net) {
		ret = walk_device(dev, &to);
		if (ret) {
			repath_device_put(dev);
			break;
		}
	}
	return ret;
}
