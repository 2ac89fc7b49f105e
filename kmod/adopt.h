/* SPDX-License-Identifier: GPL-2.0 */
/* Adoption: what exists and was not seen by a hook. */
#ifndef REPATH_ADOPT_H
#define REPATH_ADOPT_H

#include <linux/minmax.h>
#include <linux/types.h>

struct netlink_callback;
struct repath_device;
struct sk_buff;
struct work_struct;

/**
 * struct repath_adoption - what rounds of adoption came to; the last two are of the last one
 * @qps: queue pairs that were not tracked
 * @ctxs: contexts that were not tracked
 * @corrected: queue pairs whose state or path was another one
 * @swept: what was tracked and had gone
 * @missing_qps: queue pairs that ib_core counts, and that are still not tracked
 * @missing_ctxs: contexts that ib_core counts, and that are still not tracked
 */
struct repath_adoption {
	u32 qps;
	u32 ctxs;
	u32 corrected;
	u32 swept;
	u32 missing_qps;
	u32 missing_ctxs;
};

#define REPATH_REST_MOST 63

/**
 * struct repath_rest - when there is a reason for a rescan at each look, it rests in between
 * @left: looks that it rests for
 * @next: looks that it will rest for the next time
 */
struct repath_rest {
	unsigned int left;
	unsigned int next;
};

/**
 * repath_rest_over - is a rescan to be done at this look?
 * @rest: twice as long each time, to REPATH_REST_MOST looks; none again when one look finds no reason
 * @reason: there is one, since the last rescan
 */
static inline bool repath_rest_over(struct repath_rest *rest, bool reason)
{
	if (rest->left) {
		rest->left--;
		return false;
	}
	if (!reason) {
		rest->next = 0;
		return false;
	}
	rest->left = rest->next;
	rest->next = min(2 * rest->next + 1, (unsigned int)REPATH_REST_MOST);
	return true;
}

void repath_adopt(struct repath_device *dev);
void repath_adopt_work(struct work_struct *work);
void repath_adopt_rescan_all(bool sweep);
void repath_adopt_watch(void);
u32 repath_adopt_begin(struct repath_device *dev, struct repath_adoption *before);
bool repath_adopt_has_ended(struct repath_device *dev, u32 ticket);
int repath_adopt_wait(struct repath_device *dev, u32 ticket, struct repath_adoption *result);
void repath_adopt_device_gone(struct repath_device *dev);

/* ADOPT: adopt_dump.c */
int repath_adopt_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int repath_adopt_dump_done(struct netlink_callback *cb);

#endif /* REPATH_ADOPT_H */
