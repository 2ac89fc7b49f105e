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
 * @node: in @knowns
 * @of_proc: in repath_proc::knowns of who knew it, oldest first; forgotten when it leaves
 * @cookie: the process that has moved
 * @from: where it was
 * @to: where it is
 */
struct known {
	struct list_head node;
	struct list_head of_proc;
	u64 cookie;
	struct repath_addr from;
	struct repath_addr to;
};

/* Protected by repath_conn_mutex. */
static LIST_HEAD(knowns);

/* A place by LID alone is its LID. The same GID may be behind another LID since. */
static bool is_same(const struct repath_addr *from, const struct repath_addr *addr)
{
	return from->dlid == addr->dlid &&
	       (!repath_addr_has_gid(from) || !memcmp(&from->dgid, &addr->dgid, sizeof(from->dgid)));
}

/* INFO tells where it was by GID and LID, MOVED maybe by LID alone: of the same place both are kept as one. */
static bool is_from(struct known *known, const struct repath_addr *from)
{
	if (is_same(from, &known->from))
		return true;
	if (!is_same(&known->from, from))
		return false;
	known->from.dgid = from->dgid;
	return true;
}

/* It has gone on from where this led, as told by GID and LID or by LID alone. */
static bool led_to(const struct known *known, const struct repath_addr *from)
{
	return is_same(&known->to, from) || is_same(from, &known->to);
}

/* Who asks by a LID alone may mean one that is known by the GID that it had there; who asks by GID has to be told one. */
static bool was_at(const struct known *known, const struct repath_addr *at)
{
	if (!repath_addr_has_gid(at))
		return known->from.dlid == at->dlid;
	return repath_addr_has_gid(&known->to) && repath_addr_is_same_place(&known->from, at);
}

/* Who was told by LID alone knows the GID as well, if that was told of the same LID. */
static void goes_to(struct known *known, const struct repath_addr *to)
{
	union ib_gid gid = known->to.dgid;
	bool same = known->to.dlid == to->dlid;

	known->to = *to;
	if (same && !repath_addr_has_gid(to))
		known->to.dgid = gid;
}

static void drop(struct known *known)
{
	list_del(&known->node);
	list_del(&known->of_proc);
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
	if (READ_ONCE(proc->left))
		return;
	/*
	 * What led there before leads on; an address that it came back to is right. (Another host may say that it has that
	 * cookie: it has been elsewhere.)
	 */
	list_for_each_entry_safe(known, next, &proc->knowns, of_proc) {
		if (known->cookie == cookie && (is_from(known, from) || led_to(known, from))) {
			goes_to(known, to);
			have |= is_from(known, from);
			if (is_same(&known->from, to)) {
				drop(known);
				continue;
			}
		}
		count++;
		if (!oldest)
			oldest = known;
	}
	if (have || is_same(from, to))
		return;
	if (count >= REPATH_KNOWN_MAX)
		drop(oldest);
	known = kzalloc(sizeof(*known), GFP_KERNEL);
	if (!known)
		return;
	known->cookie = cookie;
	known->from = *from;
	known->to = *to;
	list_add_tail(&known->node, &knowns);
	list_add_tail(&known->of_proc, &proc->knowns);
}

static bool has(const u64 *cookies, u32 n, u64 cookie)
{
	while (n--)
		if (cookies[n] == cookie)
			return true;
	return false;
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
	list_for_each_entry_reverse(known, &proc->knowns, of_proc) {
		if (n == max)
			break;
		/* One that was there by several LIDs is asked once. */
		if (!was_at(known, at) || has(cookies, n, known->cookie))
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
	list_for_each_entry_safe(known, next, &proc->knowns, of_proc)
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
