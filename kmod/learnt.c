// SPDX-License-Identifier: GPL-2.0
/* Paths of a port as the subnet manager has told them: the table. */
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <uapi/ib_repath.h>

#include "learnt.h"

static unsigned long index_of(u16 slid, u16 dlid)
{
	return (unsigned long)slid << 16 | dlid;
}

/**
 * repath_learnts_init - an empty table
 * @paths: table
 */
void repath_learnts_init(struct repath_learnts *paths)
{
	xa_init(&paths->paths);
	paths->n = 0;
}

static bool same(const struct repath_learnt *a, const struct repath_learnt *b)
{
	return a->sl == b->sl && a->mtu == b->mtu && a->rate == b->rate && a->pkey == b->pkey &&
	       a->unpath == b->unpath && !memcmp(a->dgid, b->dgid, sizeof(a->dgid));
}

static enum repath_learnt_change compare(const struct repath_learnt *old,
					 const struct repath_learnt *path)
{
	if (same(old, path))
		return REPATH_LEARNT_SAME;
	if (repath_learnt_has_dgid(old) && repath_learnt_has_dgid(path) &&
	    memcmp(old->dgid, path->dgid, sizeof(old->dgid)))
		return REPATH_LEARNT_ELSEWHERE;
	return REPATH_LEARNT_CHANGED;
}

/* Is it another path from now on? One that is about to break is when that is said, whatever else is told of it. */
static bool begins_anew(const struct repath_learnt *path, enum repath_learnt_change change)
{
	return path->unpath ? path->source == REPATH_PATH_REPORT : change != REPATH_LEARNT_SAME;
}

/**
 * repath_learnt_put - a path was told
 * @paths: table
 * @path: the path; copied, but that @changed_ns is when it was told last that it has changed, of one that was known
 *
 * Return: what is new of it; without memory it is not kept.
 */
enum repath_learnt_change repath_learnt_put(struct repath_learnts *paths,
					    const struct repath_learnt *path)
{
	unsigned long index = index_of(path->slid, path->dlid);
	struct repath_learnt *old = xa_load(&paths->paths, index), *new;
	enum repath_learnt_change change = REPATH_LEARNT_NEW;

	if (old)
		change = compare(old, path);
	else if (paths->n >= REPATH_LEARNT_MAX)
		return REPATH_LEARNT_NO_ROOM;
	new = kmemdup(path, sizeof(*path), GFP_KERNEL);
	if (!new)
		return REPATH_LEARNT_NO_ROOM;
	if (old)
		new->changed_ns = begins_anew(path, change) ? path->ns : old->changed_ns;
	if (xa_is_err(xa_store(&paths->paths, index, new, GFP_KERNEL))) {
		kfree(new);
		return REPATH_LEARNT_NO_ROOM;
	}
	if (old)
		kfree_rcu(old, rcu);
	else
		paths->n++;
	return change;
}

/**
 * repath_learnt_find - a path
 * @paths: table
 * @slid: own LID
 * @dlid: where to
 * @found: copy
 *
 * Context: any.
 */
bool repath_learnt_find(struct repath_learnts *paths, u16 slid, u16 dlid,
			struct repath_learnt *found)
{
	const struct repath_learnt *path;

	rcu_read_lock();
	path = xa_load(&paths->paths, index_of(slid, dlid));
	if (path)
		*found = *path;
	rcu_read_unlock();
	return path;
}

/**
 * repath_learnt_next - go through the table
 * @paths: table
 * @index: where to look from; then of what was found. One more for the next
 * @found: copy
 *
 * Context: any. What comes or goes meanwhile may be seen or not.
 */
bool repath_learnt_next(struct repath_learnts *paths, unsigned long *index,
			struct repath_learnt *found)
{
	const struct repath_learnt *path;

	rcu_read_lock();
	path = xa_find(&paths->paths, index, ULONG_MAX, XA_PRESENT);
	if (path)
		*found = *path;
	rcu_read_unlock();
	return path;
}

/**
 * repath_learnt_drop - a path is not there any more
 * @paths: table
 * @path: the path, which may be a copy
 */
void repath_learnt_drop(struct repath_learnts *paths, const struct repath_learnt *path)
{
	struct repath_learnt *old = xa_erase(&paths->paths, index_of(path->slid, path->dlid));

	if (!old)
		return;
	paths->n--;
	kfree_rcu(old, rcu);
}

/**
 * repath_learnts_clear - forget everything
 * @paths: table
 */
void repath_learnts_clear(struct repath_learnts *paths)
{
	struct repath_learnt *path;
	unsigned long index;

	xa_for_each(&paths->paths, index, path) {
		xa_erase(&paths->paths, index);
		kfree_rcu(path, rcu);
	}
	paths->n = 0;
}
