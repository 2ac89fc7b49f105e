/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of this host: what is sent to them does not leave it. */
#ifndef REPATH_LOCAL_H
#define REPATH_LOCAL_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct repath_addr;
struct repath_device;

/* The device, of the network that @dev is in, that has the GID of @addr; with a reference, or NULL. */
struct repath_device *repath_local_device(const struct repath_device *dev,
					  const struct repath_addr *addr);

/* The own GID that is used towards @addr; without waiting. 0, or why there is none. */
int repath_local_gid(struct repath_device *dev, const struct repath_addr *addr, u8 gid[16]);

/* All GIDs of a device, for kvfree(); NULL: none, or no memory. */
union ib_gid *repath_local_gids(struct repath_device *dev, u32 *n);

#endif /* REPATH_LOCAL_H */
