// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that do not read what they are told of paths, as their socket is full: it is kept for them,
 * and told when they do, in order. All of this is the work item's.
 */
#include <linux/slab.h>

#include "device.h"
#include "proc.h"
#include "reroute_behind.h"
#include "reroute_qp.h"
#include "reroute_shim.h"
#include "stat.h"

/* What is kept for one process: it may never read again. */
#define TALES_MAX	16384

/*
 * A socket that was full takes nothing, not even the messages of peers, until it has been read empty. Who
 * comes back gets so much at once, which leaves room; and the more seldom, the slower it reads.
 */
#define AT_ONCE		128
#define GAP_MIN		max(HZ / 50, 1)
#define GAP_MAX		HZ

struct tale {
	struct list_head node;
	u32 port;
	struct repath_new_path path;
};

/**
 * struct behind - a process that is to be told what it has missed
 * @node: in repath_reroute::behind
 * @proc: the process; holds a reference
 * @tales: what; never empty
 * @count: entries of @tales
 * @told: so much the last time that something was tried
 * @gap: jiffies between two times that it is told some
 * @next: when it is told again
 */
struct behind {
	struct list_head node;
	struct repath_proc *proc;
	struct list_head tales;
	unsigned int count;
	unsigned int told;
	unsigned int gap;
	unsigned long next;
};

static struct behind *find(struct repath_reroute *r, const struct repath_proc *proc)
{
	struct behind *behind;

	list_for_each_entry(behind, &r->behind, node)
		if (behind->proc == proc)
			return behind;
	return NULL;
}

static struct behind *add(struct repath_reroute *r, struct repath_proc *proc)
{
	struct behind *behind = kzalloc(sizeof(*behind), GFP_KERNEL);

	if (!behind)
		return NULL;
	behind->proc = repath_proc_get(proc);
	behind->gap = GAP_MIN;
	behind->next = jiffies;
	INIT_LIST_HEAD(&behind->tales);
	list_add_tail(&behind->node, &r->behind);
	return behind;
}

static void drop_tale(struct behind *behind, struct tale *tale)
{
	list_del(&tale->node);
	behind->count--;
	kfree(tale);
}

static void drop(struct behind *behind)
{
	struct tale *tale, *next;

	list_for_each_entry_safe(tale, next, &behind->tales, node)
		drop_tale(behind, tale);
	list_del(&behind->node);
	repath_proc_put(behind->proc);
	kfree(behind);
}

static bool keep(struct repath_reroute *r, struct repath_proc *proc, u32 port,
		 const struct repath_new_path *path)
{
	struct behind *behind = find(r, proc);
	struct tale *tale;

	if (behind && behind->count >= TALES_MAX)
		return false;
	tale = kmalloc(sizeof(*tale), GFP_KERNEL);
	if (!tale)
		return false;
	behind = behind ?: add(r, proc);
	if (!behind) {
		kfree(tale);
		return false;
	}
	tale->port = port;
	tale->path = *path;
	list_add_tail(&tale->node, &behind->tales);
	behind->count++;
	return true;
}

/**
 * repath_behind_tell - tell a process of a path, now or when it reads
 * @dev: device
 * @proc: process
 * @port: own port
 * @path: from now on
 */
void repath_behind_tell(struct repath_device *dev, struct repath_proc *proc, u32 port,
			const struct repath_new_path *path)
{
	int err = -EAGAIN;

	if (!find(dev->reroute, proc))
		err = repath_shim_send_path(dev, proc, port, path);
	if ((err == -EAGAIN || err == -ENOMEM) && !keep(dev->reroute, proc, port, path))
		repath_stat_inc(dev, REPATH_STAT_PATH_SHIM_MISSED);
}

/* Some of it, if it reads; true: it has been told all. */
static bool tell(struct repath_device *dev, struct behind *behind)
{
	struct tale *tale, *next;
	unsigned int told = 0;
	int err;

	if (time_before(jiffies, behind->next))
		return false;
	list_for_each_entry_safe(tale, next, &behind->tales, node) {
		if (told == AT_ONCE)
			break;
		err = repath_shim_send_path(dev, behind->proc, tale->port, &tale->path);
		if (err == -EAGAIN || err == -ENOMEM) {
			/* It has not read what it was told last. */
			if (behind->told && behind->gap < GAP_MAX)
				behind->gap *= 2;
			break;
		}
		drop_tale(behind, tale);
		told++;
	}
	/* It reads again, and may have been slow for a moment only. */
	if (told == AT_ONCE && behind->gap > GAP_MIN)
		behind->gap -= max(behind->gap / 8, 1U);
	behind->told = told;
	behind->next = jiffies + behind->gap;
	/* The work item naps longer and longer if nothing happens. */
	if (told)
		dev->reroute->nap = 1;
	return list_empty(&behind->tales);
}

/**
 * repath_behind_again - tell those that read again what they have missed
 * @r: rerouting of a device
 *
 * Return: true if some do not.
 */
bool repath_behind_again(struct repath_reroute *r)
{
	struct behind *behind, *next;

	list_for_each_entry_safe(behind, next, &r->behind, node)
		if (tell(r->dev, behind))
			drop(behind);
	return !list_empty(&r->behind);
}

/**
 * repath_behind_end - nobody is told any more
 * @r: rerouting of a device, which ends
 */
void repath_behind_end(struct repath_reroute *r)
{
	struct behind *behind, *next;

	list_for_each_entry_safe(behind, next, &r->behind, node)
		drop(behind);
}
