// SPDX-License-Identifier: GPL-2.0
/*
 * A moved RoCE peer is known by its GID, so its MAC is asked from the neighbour table, as
 * modify_qp does for user space, but without waiting.
 */
#include <linux/etherdevice.h>
#include <linux/string.h>
#include <rdma/ib_cache.h>

#include "xprt_route.h"

/*
 * ib_core may miss that the answer has come (it looks, and then begins to wait to be told), and sees
 * it when the time that it was given is over: it is asked again and again for a short one.
 */
#define RESOLVE_MS	2000
#define RESOLVE_STEP_MS	100

/**
 * repath_route_begin - a route that has not been looked for
 * @route: to initialise
 * @addr: where it leads
 */
void repath_route_begin(struct repath_route *route, const struct repath_addr *addr)
{
	memset(route, 0, sizeof(*route));
	route->addr = *addr;
}

static void resolved(int status, struct sockaddr *src, struct rdma_dev_addr *dev_addr, void *context)
{
	struct repath_route *route = context;
	int state = status ? REPATH_ROUTE_FAILED : REPATH_ROUTE_READY;

	if (!status) {
		ether_addr_copy(route->addr.dmac, dev_addr->dst_dev_addr);
		route->addr.has_dmac = true;
	}
	if (status == -ETIMEDOUT && time_before(jiffies, route->deadline))
		state = REPATH_ROUTE_NEW;
	route->err = status == -ETIMEDOUT || status == -ENODATA ? -EHOSTUNREACH : status;
	/* The MAC and the error are there before the state says so: see repath_route_find(). */
	smp_store_release(&route->state, state);
	route->ready(route->arg);
}

static int ask(struct repath_route *route)
{
	struct sockaddr_storage src, dst;
	int err;

	/* The request before this one may still be on its way out of the callback. */
	if (route->asked)
		rdma_addr_cancel(&route->resolve);
	else
		route->deadline = jiffies + msecs_to_jiffies(RESOLVE_MS);
	rdma_gid2ip((struct sockaddr *)&src, &route->sgid_attr->gid);
	rdma_gid2ip((struct sockaddr *)&dst, &route->addr.dgid);
	route->resolve.net = &init_net;
	route->resolve.sgid_attr = route->sgid_attr;
	route->state = REPATH_ROUTE_ASKED;
	err = rdma_resolve_ip((struct sockaddr *)&src, (struct sockaddr *)&dst, &route->resolve,
			      RESOLVE_STEP_MS, resolved, true, route);
	if (err)
		return err == -ENODATA ? -EHOSTUNREACH : err;
	route->asked = true;
	return -EINPROGRESS;
}

/**
 * repath_route_find - find the route, or go on doing so
 * @route: route
 * @ibdev: own device
 * @ready: called when it is worth while to call this again; may be called before this returns
 * @arg: for @ready
 *
 * Context: may sleep for memory. Not for two at once on the same route.
 * Return: 0: found; -EINPROGRESS: @ready will be called; else there is none.
 */
int repath_route_find(struct repath_route *route, struct ib_device *ibdev,
		      void (*ready)(void *arg), void *arg)
{
	const struct repath_addr *addr = &route->addr;

	/* What the resolver found is read after its state. */
	switch (smp_load_acquire(&route->state)) {
	case REPATH_ROUTE_READY:
		return 0;
	case REPATH_ROUTE_FAILED:
		return route->err;
	case REPATH_ROUTE_ASKED:
		return -EINPROGRESS;
	}

	route->ibdev = ibdev;
	route->ready = ready;
	route->arg = arg;
	if (!route->sgid_attr) {
		const struct ib_gid_attr *attr;

		attr = rdma_get_gid_attr(ibdev, addr->port,
					 repath_addr_has_gid(addr) ? addr->sgid_index : 0);
		if (IS_ERR(attr))
			return PTR_ERR(attr);
		route->sgid_attr = attr;
	}
	if (rdma_protocol_roce(ibdev, addr->port) && !addr->has_dmac) {
		if (!repath_addr_has_gid(addr))
			return -EHOSTUNREACH;
		if (route->sgid_attr->gid_type == IB_GID_TYPE_ROCE &&
		    rdma_link_local_addr((struct in6_addr *)addr->dgid.raw))
			rdma_get_ll_mac((struct in6_addr *)addr->dgid.raw, route->addr.dmac);
		else
			return ask(route);
	}
	route->state = REPATH_ROUTE_READY;
	return 0;
}

/**
 * repath_route_path - the path record of a found route
 * @route: route
 * @slid: LID of the own port; 0 on RoCE
 * @path: to fill in
 */
void repath_route_path(const struct repath_route *route, u32 slid, struct sa_path_rec *path)
{
	const struct repath_addr *addr = &route->addr;

	memset(path, 0, sizeof(*path));
	path->sgid = route->sgid_attr->gid;
	path->dgid = addr->dgid;
	path->pkey = cpu_to_be16(0xffff);
	path->sl = addr->sl;
	path->mtu = IB_MTU_256;
	path->reversible = 1;
	path->numb_path = 1;
	path->flow_label = cpu_to_be32(addr->flow_label);
	path->traffic_class = addr->traffic_class;
	path->packet_life_time = 14;
	if (rdma_protocol_roce(route->ibdev, addr->port)) {
		path->rec_type = route->sgid_attr->gid_type == IB_GID_TYPE_ROCE ?
				 SA_PATH_REC_TYPE_ROCE_V1 : SA_PATH_REC_TYPE_ROCE_V2;
		path->hop_limit = max_t(u8, addr->hop_limit, 64);
		/* The queue pair that the address comes from was resolved by the core itself. */
		path->roce.route_resolved = true;
		ether_addr_copy(path->roce.dmac, addr->dmac);
		return;
	}
	path->rec_type = SA_PATH_REC_TYPE_IB;
	path->hop_limit = repath_addr_has_gid(addr) ? max_t(u8, addr->hop_limit, 1) : 0;
	sa_path_set_dlid(path, addr->dlid);
	sa_path_set_slid(path, slid);
}

/**
 * repath_route_end - give back what the route holds
 * @route: route; its @ready is not called any more when this returns
 */
void repath_route_end(struct repath_route *route)
{
	if (route->asked)
		rdma_addr_cancel(&route->resolve);
	route->asked = false;
	if (route->sgid_attr)
		rdma_put_gid_attr(route->sgid_attr);
	route->sgid_attr = NULL;
}
