/* SPDX-License-Identifier: GPL-2.0 */
/* Which queue pairs a reader wants to see. */
#ifndef REPATH_QP_FILTER_H
#define REPATH_QP_FILTER_H

#include <linux/pid.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <rdma/ib_verbs.h>

#include "track.h"

/**
 * struct repath_qp_filter - everything that is set must match
 * @net: namespace of the reader
 * @dev: device; holds a reference
 * @tgid: process; holds a reference
 * @nobody: a process was asked for that does not exist
 * @port: own port, 0: any
 * @dlid: 0: any
 * @dgid: valid if @has_dgid
 * @qpn: valid if @has_qpn
 * @type: valid if @has_type
 * @state: valid if @has_state
 * @has_dgid: see @dgid
 * @has_qpn: see @qpn
 * @has_type: see @type
 * @has_state: see @state
 */
struct repath_qp_filter {
	const struct net *net;
	struct repath_device *dev;
	struct pid *tgid;
	bool nobody;
	u32 port;
	u32 dlid;
	union ib_gid dgid;
	u32 qpn;
	u8 type;
	u8 state;
	bool has_dgid;
	bool has_qpn;
	bool has_type;
	bool has_state;
};

int repath_qp_filter_parse(struct repath_qp_filter *filter, const struct net *net,
			   struct nlattr **attrs, struct netlink_ext_ack *extack);
void repath_qp_filter_free(struct repath_qp_filter *filter);
bool repath_qp_filter_match(const struct repath_qp_filter *filter, struct repath_qp *rqp);
int repath_qp_filter_walk(const struct repath_qp_filter *filter, repath_qp_fn fn, void *arg);

#endif /* REPATH_QP_FILTER_H */
