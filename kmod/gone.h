/* SPDX-License-Identifier: GPL-2.0 */
/* The last word of an end that is no more. */
#ifndef REPATH_GONE_H
#define REPATH_GONE_H

#include <linux/types.h>

struct repath_addr;
struct repath_device;

void repath_gone_exit(void);

/**
 * repath_gone_say - send a GONE
 * @dev: from where; a reference is taken
 * @to: the peer's port
 * @data: the message
 * @len: bytes
 * @waited_for: the peer is suspended: send it again while nobody answers, as long as a lease lasts
 *
 * Context: may sleep for memory, not for the network; conn mutex may be held.
 */
void repath_gone_say(struct repath_device *dev, const struct repath_addr *to, const void *data,
		     u32 len, bool waited_for);

#endif /* REPATH_GONE_H */
