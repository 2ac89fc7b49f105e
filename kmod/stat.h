/* SPDX-License-Identifier: GPL-2.0 */
/* Counters of the module and of each device, for STATS_GET. */
#ifndef REPATH_STAT_H
#define REPATH_STAT_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <uapi/ib_repath.h>

struct netlink_callback;
struct repath_device;
struct sk_buff;

#define REPATH_STATS (REPATH_STAT_MAX + 1)

/**
 * struct repath_stats - counters
 * @n: by enum repath_stat
 */
struct repath_stats {
	atomic64_t n[REPATH_STATS];
};

extern struct repath_stats repath_stats;

/* @dev: whose counter it is, too; NULL: nobody's. Any context, a probe handler as well. */
void repath_stat_add(struct repath_device *dev, enum repath_stat stat, u64 n);

static inline void repath_stat_inc(struct repath_device *dev, enum repath_stat stat)
{
	repath_stat_add(dev, stat, 1);
}

/* The counter of an answer, enum repath_peer_status, that was given (@rx) or received. */
enum repath_stat repath_stat_of_status(u8 status, bool rx);

/* STATS_GET */
int repath_stats_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* REPATH_STAT_H */
