/* SPDX-License-Identifier: GPL-2.0 */
/* From the address of a port to a path that the CM can send on. */
#ifndef REPATH_XPRT_ROUTE_H
#define REPATH_XPRT_ROUTE_H

#include <linux/types.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_sa.h>

#include "xprt.h"

enum repath_route_state {
	REPATH_ROUTE_NEW,
	REPATH_ROUTE_ASKED,
	REPATH_ROUTE_READY,
	REPATH_ROUTE_FAILED,
};

/**
 * struct repath_route - an address that becomes a path
 * @addr: the address; its MAC is filled in
 * @ibdev: own device
 * @sgid_attr: own GID; held from repath_route_find() to repath_route_end()
 * @resolve: the request to the neighbour table
 * @asked: @resolve is to be cancelled
 * @deadline: jiffies; it is not asked again after that
 * @state: enum repath_route_state; written by the resolver
 * @err: if it is REPATH_ROUTE_FAILED
 * @ready: called when @state changes
 * @arg: for @ready
 */
struct repath_route {
	struct repath_addr addr;
	struct ib_device *ibdev;
	const struct ib_gid_attr *sgid_attr;
	struct rdma_dev_addr resolve;
	bool asked;
	unsigned long deadline;
	int state;
	int err;
	void (*ready)(void *arg);
	void *arg;
};

void repath_route_begin(struct repath_route *route, const struct repath_addr *addr);
int repath_route_find(struct repath_route *route, struct ib_device *ibdev,
		      void (*ready)(void *arg), void *arg);
void repath_route_path(const struct repath_route *route, u32 slid, struct sa_path_rec *path);
void repath_route_end(struct repath_route *route);

#endif /* REPATH_XPRT_ROUTE_H */
