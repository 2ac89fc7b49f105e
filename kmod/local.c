// SPDX-License-Identifier: GPL-2.0
/* Addresses of this host. */
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_cache.h>

#include "device.h"
#include "local.h"
#include "xprt.h"

/**
 * repath_local_device - is it an address of this host?
 * @dev: who asks: only devices of the same network namespace are looked at
 * @addr: the address
 *
 * Context: may sleep.
 * Return: the device that has the address, with a reference, or NULL.
 */
struct repath_device *repath_local_device(const struct repath_device *dev,
					  const struct repath_addr *addr)
{
	struct net *net = repath_device_net(dev);
	const struct ib_gid_attr *attr;
	struct repath_device *each;
	enum ib_gid_type type;

	if (!memchr_inv(&addr->dgid, 0, sizeof(addr->dgid)))
		return NULL;
	repath_device_for_each(each, net) {
		if (!net_eq(repath_device_net(each), net) || !repath_device_use(each))
			continue;
		attr = ERR_PTR(-ENOENT);
		for (type = IB_GID_TYPE_IB; type < IB_GID_TYPE_SIZE && IS_ERR(attr); type++)
			attr = rdma_find_gid(each->ibdev, &addr->dgid, type, NULL);
		if (!IS_ERR(attr))
			rdma_put_gid_attr(attr);
		repath_device_unuse(each);
		if (!IS_ERR(attr))
			return each;
	}
	return NULL;
}

/**
 * repath_local_gid - the own GID that is used towards an address
 * @dev: own device
 * @addr: the address
 * @gid: result
 *
 * Context: may sleep, but not for the device: the GID table is ib_core's.
 * Return: 0; -ENODEV if the device is going; -EINVAL without such a GID.
 */
int repath_local_gid(struct repath_device *dev, const struct repath_addr *addr, u8 gid[16])
{
	union ib_gid own;
	int err;

	if (!repath_device_use(dev))
		return -ENODEV;
	err = rdma_query_gid(dev->ibdev, addr->port, addr->sgid_index, &own);
	repath_device_unuse(dev);
	if (!err)
		memcpy(gid, own.raw, sizeof(own));
	return err;
}

/* How many there are; the first @max of them to @gids. */
static u32 read_gids(struct ib_device *ibdev, union ib_gid *gids, u32 max)
{
	union ib_gid gid;
	u32 port, n = 0;
	int i;

	rdma_for_each_port(ibdev, port)
		for (i = 0; i < ibdev->port_data[port].immutable.gid_tbl_len; i++) {
			if (rdma_query_gid(ibdev, port, i, &gid) || rdma_is_zero_gid(&gid))
				continue;
			if (n < max)
				gids[n] = gid;
			n++;
		}
	return n;
}

/**
 * repath_local_gids - by which GIDs a device can be reached
 * @dev: device
 * @n: how many
 *
 * Context: may sleep, but not for the device: the GID table is ib_core's.
 * Return: the GIDs, for kvfree(); NULL if there are none, or it is not known, as the device has gone.
 */
union ib_gid *repath_local_gids(struct repath_device *dev, u32 *n)
{
	union ib_gid *gids = NULL;
	u32 max;

	*n = 0;
	if (!repath_device_use(dev))
		return NULL;
	max = read_gids(dev->ibdev, NULL, 0);
	if (max)
		gids = kvmalloc_array(max, sizeof(*gids), GFP_KERNEL);
	if (gids)
		*n = min(max, read_gids(dev->ibdev, gids, max));
	repath_device_unuse(dev);
	return gids;
}
