/* SPDX-License-Identifier: GPL-2.0 */
/* What a port does with a packet that has come. */
#ifndef VHCA_RECEIVE_H
#define VHCA_RECEIVE_H

#include "vhca.h"

#define VHCA_BATCH 16

/* Queue pairs that have something to send since packets came: they answer several with one ACK. */
struct vhca_batch {
	struct rvt_qp *qp[VHCA_BATCH];
	unsigned int count;
};

/**
 * vhca_receive() - check a packet and give it to its queue pairs
 * @bytes: LRH to ICRC, writable
 * @loop: it comes from this port itself
 *
 * Only the port's pump calls it.
 */
void vhca_receive(struct vhca_port *port, u8 *bytes, size_t size, bool loop,
		  struct vhca_batch *batch);

/* Lets them send, and forgets them. */
void vhca_batch_run(struct vhca_batch *batch);

/* Whether two P_Keys match: same partition, and not both limited members (10.9.3). */
static inline bool vhca_pkey_match(u16 a, u16 b)
{
	return !((a ^ b) & 0x7fff) && (a & 0x7fff) && (a | b) & 0x8000;
}

#endif
