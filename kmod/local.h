/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of this host: what is sent to them does not leave it. */
#ifndef REPATH_LOCAL_H
#define REPATH_LOCAL_H

struct repath_addr;
struct repath_device;

/* The device, of the network that @dev is in, that has the GID of @addr; with a reference, or NULL. */
struct repath_device *repath_local_device(const struct repath_device *dev,
					  const struct repath_addr *addr);

#endif /* REPATH_LOCAL_H */
