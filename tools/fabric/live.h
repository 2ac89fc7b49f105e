/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A subnet as it is now, asked from its nodes and its subnet manager. */
#ifndef REPATH_FABRIC_LIVE_H
#define REPATH_FABRIC_LIVE_H

#include "read.h"

/**
 * struct live_wants - what is asked
 * @device: RDMA device, or NULL
 * @port: of it, or 0
 * @sls: ask the subnet manager for the SL of each path between hosts
 * @load: read the counters of all ports
 */
struct live_wants {
	const char *device;
	unsigned int port;
	bool sls;
	bool load;
};

/**
 * live_read() - read a subnet
 * @f: what is filled
 * @wants: what is asked
 * @message: what is wrong, when something is
 *
 * Return: false if nothing can be asked at all.
 */
bool live_read(struct fabric *f, const struct live_wants *wants, char message[READ_MESSAGE]);

#endif /* REPATH_FABRIC_LIVE_H */
