/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A hash table that grows: its chains stay short, however many entries come, and no single call
 * pays for the growth. Everything happens under one lock of the user's, in any context.
 */
#ifndef REPATH_INDEX_H
#define REPATH_INDEX_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#define REPATH_INDEX_MIN_BITS	6
#define REPATH_INDEX_MAX_BITS	20

/**
 * struct repath_index - a hash table
 * @lock: the user's, held in every call but init and exit
 * @hash: of an entry; what it reads does not change while the entry is in the table
 * @buckets: 2^@bits chains
 * @old: 2^@old_bits chains of before the growth; NULL when it has ended
 * @spent: a table that is empty, for @grow to free
 * @bits: see @buckets
 * @old_bits: see @old
 * @moved: chains of @old below this one are empty
 * @count: entries
 * @grow: allocates a larger table, frees the one before
 */
struct repath_index {
	spinlock_t *lock;
	u32 (*hash)(const struct hlist_node *node);
	struct hlist_head *buckets;
	struct hlist_head *old;
	struct hlist_head *spent;
	unsigned int bits;
	unsigned int old_bits;
	u32 moved;
	u32 count;
	struct work_struct grow;
};

int repath_index_init(struct repath_index *index, spinlock_t *lock,
		      u32 (*hash)(const struct hlist_node *node));
void repath_index_exit(struct repath_index *index);
struct hlist_head *repath_index_chain(struct repath_index *index, u32 hash);
void repath_index_add(struct repath_index *index, struct hlist_node *node);
void repath_index_del(struct repath_index *index, struct hlist_node *node);

#endif /* REPATH_INDEX_H */
