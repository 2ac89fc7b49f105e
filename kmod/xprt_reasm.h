/* SPDX-License-Identifier: GPL-2.0 */
/* Messages put together again from fragments that come in any order, and more than once. */
#ifndef REPATH_XPRT_REASM_H
#define REPATH_XPRT_REASM_H

#include <linux/hashtable.h>
#include <linux/list.h>
#include <repath_peer.h>

#define REPATH_REASM_BITS	6
#define REPATH_REASM_OPEN_MAX	64		/* messages that are not whole yet */
#define REPATH_REASM_MAX	1024		/* with those that are kept for doubles */
#define REPATH_REASM_BYTES	(4 << 20)	/* of messages that are not whole yet */
#define REPATH_REASM_AGE	(10 * HZ)
#define REPATH_REASM_STALL	(HZ / 2)	/* what has lost a fragment goes on sooner */

/**
 * struct repath_inmsg - a message that comes in
 * @hash: by @id
 * @lru: in repath_reasm::lru, oldest first
 * @id: the sender's number
 * @seen: jiffies of the last fragment that was new
 * @total: bytes
 * @missing: fragments that have not come
 * @type: enum repath_msg
 * @done: whole, or given up; @status is the answer, @data is freed
 * @status: enum repath_peer_status
 * @data: @total bytes
 * @have: bitmap of the fragments that have come
 */
struct repath_inmsg {
	struct hlist_node hash;
	struct list_head lru;
	u64 id;
	unsigned long seen;
	u32 total;
	u32 missing;
	u8 type;
	bool done;
	u8 status;
	u8 *data;
	unsigned long have[];
};

/**
 * struct repath_reasm - the messages of one device; the owner serialises all calls
 * @hash: struct repath_inmsg
 * @lru: struct repath_inmsg
 * @count: entries
 * @open: entries that are not done
 * @bytes: of those
 */
struct repath_reasm {
	DECLARE_HASHTABLE(hash, REPATH_REASM_BITS);
	struct list_head lru;
	u32 count;
	u32 open;
	u32 bytes;
};

void repath_reasm_init(struct repath_reasm *r);
void repath_reasm_destroy(struct repath_reasm *r);
bool repath_reasm_has(struct repath_reasm *r, const struct repath_frag *frag);
u8 repath_reasm_add(struct repath_reasm *r, const struct repath_frag *frag, u32 len,
		    struct repath_inmsg **whole);
void repath_reasm_done(struct repath_reasm *r, struct repath_inmsg *msg, u8 status);
void repath_reasm_expire(struct repath_reasm *r, unsigned long now);

#endif /* REPATH_XPRT_REASM_H */
