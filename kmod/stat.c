// SPDX-License-Identifier: GPL-2.0
/* Counters of the module and of each device. */
#include <repath_peer.h>

#include "device.h"
#include "stat.h"

struct repath_stats repath_stats;

/**
 * repath_stat_add - count something
 * @dev: where it has happened; NULL: on no device
 * @stat: what
 * @n: how often
 */
void repath_stat_add(struct repath_device *dev, enum repath_stat stat, u64 n)
{
	atomic64_add(n, &repath_stats.n[stat]);
	if (dev)
		atomic64_add(n, &dev->stats.n[stat]);
}

/**
 * repath_stat_of_status - the counter of an answer
 * @status: enum repath_peer_status
 * @rx: this host gave it; else it got it
 */
enum repath_stat repath_stat_of_status(u8 status, bool rx)
{
	static const u8 stats[][2] = {
		[REPATH_PEER_OK]	  = { REPATH_STAT_TX_OK, REPATH_STAT_RX_OK },
		[REPATH_PEER_PENDING]	  = { REPATH_STAT_TX_PENDING, REPATH_STAT_RX_PENDING },
		[REPATH_PEER_NO_SHIM]	  = { REPATH_STAT_TX_NO_SHIM, REPATH_STAT_RX_NO_SHIM },
		[REPATH_PEER_NO_QP]	  = { REPATH_STAT_TX_NO_QP, REPATH_STAT_RX_NO_QP },
		[REPATH_PEER_BAD_TOKEN]	  = { REPATH_STAT_TX_BAD_TOKEN, REPATH_STAT_RX_BAD_TOKEN },
		[REPATH_PEER_SOME_BAD]	  = { REPATH_STAT_TX_BAD_TOKEN, REPATH_STAT_RX_BAD_TOKEN },
		[REPATH_PEER_BUSY]	  = { REPATH_STAT_TX_BUSY, REPATH_STAT_RX_BUSY },
		[REPATH_PEER_VERSION_ERR] = { REPATH_STAT_TX_VERSION, REPATH_STAT_RX_VERSION },
		[REPATH_PEER_MALFORMED]	  = { REPATH_STAT_TX_MALFORMED, REPATH_STAT_RX_MALFORMED },
		[REPATH_PEER_AMBIGUOUS]	  = { REPATH_STAT_TX_MALFORMED, REPATH_STAT_RX_MALFORMED },
		[REPATH_PEER_TAKEN]	  = { REPATH_STAT_TX_MALFORMED, REPATH_STAT_RX_MALFORMED },
		[REPATH_PEER_ABSENT]	  = { REPATH_STAT_TX_NO_QP, REPATH_STAT_RX_NO_QP },
		[REPATH_PEER_UNPROVEN]	  = { REPATH_STAT_TX_BAD_TOKEN, REPATH_STAT_RX_BAD_TOKEN },
	};

	/* The other end may be newer, or no module at all. */
	if (status >= ARRAY_SIZE(stats))
		status = REPATH_PEER_MALFORMED;
	return stats[status][rx];
}
