// SPDX-License-Identifier: GPL-2.0
/* A hash table that grows. */
#include <linux/mm.h>
#include <linux/slab.h>

#include "index.h"

/* Chains of the old table that each addition moves: it is empty long before the next growth. */
#define MOVE_AT_ONCE 4

static void move_chain(struct repath_index *index, u32 i)
{
	struct hlist_node *node, *next;
	struct hlist_head *old = index->old + i;
	u32 mask = (1u << index->bits) - 1;

	for (node = old->first; node; node = next) {
		next = node->next;
		__hlist_del(node);
		hlist_add_head(node, index->buckets + (index->hash(node) & mask));
	}
}

static void move_some(struct repath_index *index)
{
	int i;

	for (i = 0; i < MOVE_AT_ONCE && index->old; i++) {
		move_chain(index, index->moved);
		if (++index->moved >> index->old_bits) {
			index->spent = index->old;
			index->old = NULL;
			/* vfree() wants interrupts on. */
			queue_work(system_unbound_wq, &index->grow);
		}
	}
}

/* Two entries a chain on average: with less a queue pair's share of the table is larger than its node. */
static bool is_crowded(const struct repath_index *index)
{
	return !index->old && !index->spent && index->bits < REPATH_INDEX_MAX_BITS &&
	       index->count >> (index->bits + 1);
}

static void grow(struct work_struct *work)
{
	struct repath_index *index = container_of(work, struct repath_index, grow);
	struct hlist_head *spent, *larger;
	unsigned long flags;
	unsigned int bits = 0;

	spin_lock_irqsave(index->lock, flags);
	spent = index->spent;
	index->spent = NULL;
	if (is_crowded(index))
		bits = min_t(unsigned int, max_t(unsigned int, index->bits + 1,
						 fls(index->count) - 1), REPATH_INDEX_MAX_BITS);
	spin_unlock_irqrestore(index->lock, flags);

	kvfree(spent);
	if (!bits)
		return;
	/* Without memory chains are longer, until the next addition tries again. */
	larger = kvcalloc(1ul << bits, sizeof(*larger), GFP_KERNEL);
	if (!larger)
		return;
	/* Nobody else puts a table in or takes one away: this work does not run beside itself. */
	spin_lock_irqsave(index->lock, flags);
	index->old = index->buckets;
	index->old_bits = index->bits;
	index->moved = 0;
	index->buckets = larger;
	index->bits = bits;
	spin_unlock_irqrestore(index->lock, flags);
}

/**
 * repath_index_init - make an empty table
 * @index: table
 * @lock: see struct repath_index
 * @hash: see struct repath_index
 *
 * Return: 0 or -ENOMEM.
 */
int repath_index_init(struct repath_index *index, spinlock_t *lock,
		      u32 (*hash)(const struct hlist_node *node))
{
	memset(index, 0, sizeof(*index));
	index->buckets = kvcalloc(1ul << REPATH_INDEX_MIN_BITS, sizeof(*index->buckets),
				  GFP_KERNEL);
	if (!index->buckets)
		return -ENOMEM;
	index->bits = REPATH_INDEX_MIN_BITS;
	index->lock = lock;
	index->hash = hash;
	INIT_WORK(&index->grow, grow);
	return 0;
}

/**
 * repath_index_exit - free a table; nobody adds or looks any more, and its entries have gone
 * @index: table
 */
void repath_index_exit(struct repath_index *index)
{
	cancel_work_sync(&index->grow);
	WARN_ON(index->count);
	kvfree(index->spent);
	kvfree(index->old);
	kvfree(index->buckets);
}

/**
 * repath_index_chain - where entries of a hash are, among few others
 * @index: table
 * @hash: hash
 *
 * Context: index->lock held; the chain is valid until it is dropped or something is added.
 */
struct hlist_head *repath_index_chain(struct repath_index *index, u32 hash)
{
	lockdep_assert_held(index->lock);
	if (index->old)
		move_chain(index, hash & ((1u << index->old_bits) - 1));
	return index->buckets + (hash & ((1u << index->bits) - 1));
}

/**
 * repath_index_add - add an entry
 * @index: table
 * @node: entry, unhashed
 *
 * Context: index->lock held.
 */
void repath_index_add(struct repath_index *index, struct hlist_node *node)
{
	lockdep_assert_held(index->lock);
	/* Into the new table at once, although some of the same hash may still be in the old one. */
	hlist_add_head(node, index->buckets + (index->hash(node) & ((1u << index->bits) - 1)));
	index->count++;
	move_some(index);
	if (is_crowded(index))
		queue_work(system_unbound_wq, &index->grow);
}

/**
 * repath_index_del - take an entry away
 * @index: table
 * @node: entry; may be unhashed
 *
 * Context: index->lock held.
 */
void repath_index_del(struct repath_index *index, struct hlist_node *node)
{
	lockdep_assert_held(index->lock);
	if (hlist_unhashed(node))
		return;
	hlist_del_init(node);
	index->count--;
}
