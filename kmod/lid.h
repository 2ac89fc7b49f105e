/* SPDX-License-Identifier: GPL-2.0 */
/* LIDs of the own ports, kept: asking a device is a command to its firmware, which may hang. */
#ifndef REPATH_LID_H
#define REPATH_LID_H

#include <linux/xarray.h>

#include "device.h"

/**
 * repath_lid - the LID of a port
 * @dev: device
 * @port: its port
 *
 * Context: any.
 * Return: 0 on RoCE, and before the subnet manager has set it.
 */
static inline u32 repath_lid(struct repath_device *dev, u32 port)
{
	return xa_to_value(xa_load(&dev->lids, port));
}

void repath_lid_ask(struct repath_device *dev, u32 port);
void repath_lid_begin(struct repath_device *dev);
void repath_lid_end(struct repath_device *dev);

#endif /* REPATH_LID_H */
