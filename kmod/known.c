// SPDX-License-Identifier: GPL-2.0
/*
 * Where processes that others were connected to have gone. A program that connects again uses the
 * address that it was given before its peer moved; only who knew the peer can say where it is now.
 * What is remembered came in an INFO or MOVED, so by a token that only the peer had.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "conn.h"
#include "known.h"
#include "proc.h"

/**
 * struct known - a process has left an address
 * @node: in @knowns, oldest first
 * @proc: who knew it; compared only, forgotten when it leaves
 * @cookie: the process that has moved
 * @from: where it was
 * @to: where it is
 */
struct known {
	struct list_head node;
	const struct repath_proc *proc;
	u64 cookie;
	struct repath_addr from;
	struct repath_addr to;
};

/* Protected by repath_conn_mutex. */
static LIST_HEAD(knowns);

static void drop(struct known *known)
{
	list_del(&known->node);
	kfree_sensitive(known);
}

/**
 * repath_known_moved - a peer is not any more where it was
 * @proc: who knew it
 * @cookie: the peer
 * @from: where it was, as @proc reached it
 * @to: where it is
 *
 * Without memory nothing is remembered: a later question is answered as for a stranger.
 *
 * Context: repath_conn_mutex held.
 */
void repath_known_moved(struct repath_proc *proc, u64 cookie, const struct repath_addr *from,
			const struct repath_addr *to)
{
	struct known *known, *next, *oldest = NULL;
	bool have = false;
	u32 count = 0;

	lockdep_assert_held(&repath_conn_mutex);
	/* What was known of it before leads there, too; an address that it came back to is right. */
	list_for_each_entry_safe(known, next, &knowns, node) {
		if (known->proc != proc)
			continue;
		if (known->cookie == cookie) {
			known->to = *to;
			have |= repath_addr_is_same_place(&known->from, from);
			if (repath_addr_is_same_place(&known->from, to)) {
				drop(known);
				continue;
			}
		}
		count++;
		if (!oldest)
			oldest = known;
	}
	if (have || repath_addr_is_same_place(from, to))
		return;
	if (count >= REPATH_KNOWN_MAX)
		drop(oldest);
	known = kzalloc(sizeof(*known), GFP_KERNEL);
	if (!known)
		return;
	known->proc = proc;
	known->cookie = cookie;
	known->from = *from;
	known->to = *to;
	list_add_tail(&known->node, &knowns);
}

/**
 * repath_known_find - who was at an address and is not any more?
 * @proc: who asks
 * @at: the address
 * @now: where they are
 * @cookies: who they are
 * @max: room in @now and @cookies
 *
 * Context: repath_conn_mutex held.
 * Return: how many, at most @max; the newest first.
 */
u32 repath_known_find(struct repath_proc *proc, const struct repath_addr *at,
		      struct repath_addr *now, u64 *cookies, u32 max)
{
	struct known *known;
	u32 n = 0;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry_reverse(known, &knowns, node) {
		if (n == max)
			break;
		if (known->proc != proc || !repath_addr_is_same_place(&known->from, at))
			continue;
		now[n] = known->to;
		cookies[n++] = known->cookie;
	}
	return n;
}

/**
 * repath_known_forget - a process has left
 * @proc: process
 *
 * Context: repath_conn_mutex held.
 */
void repath_known_forget(struct repath_proc *proc)
{
	struct known *known, *next;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry_safe(known, next, &knowns, node)
		if (known->proc == proc)
			drop(known);
}

/* Nobody asks or moves any more; processes may be registered still. */
void repath_known_exit(void)
{
	struct known *known, *next;

	mutex_lock(&repath_conn_mutex);
	list_for_each_entry_safe(known, next, &knowns, node)
		drop(known);
	mutex_unlock(&repath_conn_mutex);
}
