/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device, a port, an address; and the way of an RC queue pair to RTS. */
#ifndef APPS_ENDPOINT_H
#define APPS_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdint.h>

/**
 * struct endpoint - an open device and the address that is used on it
 * @ctx: the device
 * @port: port number
 * @gid_index: index of @gid
 * @gid: our address
 * @lid: our LID; 0 on RoCE
 * @mtu: the port's active MTU
 * @sl: service level of its paths; 0 until somebody says another one
 */
struct endpoint {
	struct ibv_context *ctx;
	uint8_t port;
	int gid_index;
	union ibv_gid gid;
	uint16_t lid;
	enum ibv_mtu mtu;
	uint8_t sl;
};

/**
 * struct rc_address - what the other end has to know to connect
 *
 * Without a GID, all of whose bytes are zero, it is reached by its LID alone.
 */
struct rc_address {
	uint8_t gid[16];
	uint32_t qpn;
	uint32_t psn;
	uint16_t lid;
	uint16_t mtu;
	uint32_t reserved;
};

/**
 * struct rc_limits - attributes of a connection that the programs let one choose
 */
struct rc_limits {
	uint8_t rd_atomic;
	uint8_t timeout;
	uint8_t retry;
	uint8_t min_rnr_timer;
};

/**
 * endpoint_open() - open a device and find its address
 * @ep: filled in
 * @device: name, or NULL for the first one
 * @gid_index: -1 chooses the one that holds an IPv4 address, else 0
 *
 * Exits with a message when it can not.
 */
void endpoint_open(struct endpoint *ep, const char *device, int gid_index);

/**
 * endpoint_address() - our address for one queue pair
 */
struct rc_address endpoint_address(const struct endpoint *ep, const struct ibv_qp *qp,
				   uint32_t psn);

/**
 * endpoint_path() - the way to a port
 * @to: its GID and LID
 */
struct ibv_ah_attr endpoint_path(const struct endpoint *ep, const struct rc_address *to);

/**
 * rc_init() - RESET to INIT; all remote access allowed
 * Returns 0 or a positive errno.
 */
int rc_init(struct ibv_qp *qp, const struct endpoint *ep);

/**
 * rc_connect() - INIT to RTR to RTS
 * @limits: NULL for defaults
 * Returns 0 or a positive errno.
 */
int rc_connect(struct ibv_qp *qp, const struct endpoint *ep, const struct rc_address *local,
	       const struct rc_address *remote, const struct rc_limits *limits);

/**
 * gid_text() - a GID as people read it; one static buffer
 */
const char *gid_text(const void *gid);

#endif
