/* SPDX-License-Identifier: GPL-2.0 */
/* Paths change: what the shims of processes do that the module can not do in their place. */
#ifndef REPATH_REROUTE_SHIM_H
#define REPATH_REROUTE_SHIM_H

#include <linux/types.h>

#include "track.h"

struct genl_info;
struct repath_device;
struct repath_new_path;
struct repath_proc;
struct repath_qp;
struct sk_buff;

/* All may sleep, and take repath_conn_mutex. */

/* Can a queue pair be connected anew by the shims at both its ends? Is that, or a move, under way? */
bool repath_shim_can_cycle(struct repath_qp *rqp);
/* ... or is it not known yet? */
bool repath_shim_may_cycle(struct repath_qp *rqp);
bool repath_shim_is_moving(struct repath_qp *rqp);

/*
 * The path that a queue pair is on, or that shims have taken it from, who set the same again. False: it is on none, as
 * one that its owner has RESET.
 */
static inline bool repath_shim_path(struct repath_qp *rqp, struct repath_path *path)
{
	repath_qp_snapshot(rqp, NULL, path);
	if (path->has_av || !path->left_port || repath_shim_is_moving(rqp))
		return repath_path_is_known(path);
	/* They may have been through meanwhile. */
	repath_qp_snapshot(rqp, NULL, path);
	return path->has_av;
}

/* Have that done, by a path. The answer goes to repath_reroute_cycled(). 0, -EOPNOTSUPP, -ENOMEM ... */
int repath_shim_cycle(struct repath_qp *rqp, const struct repath_new_path *to);

/* Has a process with a shim queue pairs of UD on a device? */
bool repath_shim_has_datagrams(struct repath_device *dev);
/* Tell each of them of a path. */
void repath_shim_tell_path(struct repath_device *dev, u32 port, const struct repath_new_path *path);

/* Tell one. 0; -EAGAIN: its socket is full; -ENOMEM; or it can not be told. */
int repath_shim_send_path(struct repath_device *dev, struct repath_proc *proc, u32 port,
			  const struct repath_new_path *path);

/* CYCLED */
int repath_cycled_cmd(struct sk_buff *skb, struct genl_info *info);

#endif /* REPATH_REROUTE_SHIM_H */
