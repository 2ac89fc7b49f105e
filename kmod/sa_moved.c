// SPDX-License-Identifier: GPL-2.0
/*
 * Who is at another LID than before. The subnet manager says so, or an answer with all paths of the port
 * shows it: a GID is at a LID, and queue pairs go to it by another one. So it is after a subnet manager
 * has begun anew, which knows nothing of the LIDs that it has not given.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <repath_sm.h>

#include "device.h"
#include "reroute.h"
#include "reroute_shim.h"
#include "sa.h"
#include "stat.h"
#include "track.h"

static bool same_dgid(const struct repath_learnt *a, const struct repath_learnt *b)
{
	return !memcmp(a->dgid, b->dgid, sizeof(a->dgid));
}

/* Where a GID is, from one of the port's LIDs. */
struct gid_at {
	u16 slid;
	u8 dgid[16];
	u16 dlid;
};

/**
 * struct all_paths - all paths of a port, as they were told, and have been learnt
 * @sp: port
 * @asked_ns: CLOCK_BOOTTIME: when they were asked for
 * @now: when they were learnt
 * @sorted: @gids are, or there is no memory for that
 * @gids: by own LID and GID; NULL: there are none
 * @n: entries of @gids
 */
struct all_paths {
	struct repath_sa_port *sp;
	u64 asked_ns;
	u64 now;
	bool sorted;
	struct gid_at *gids;
	u32 n;
};

/**
 * struct moved - queue pairs that go to a GID by other LIDs than it has
 * @sp: port
 * @to: a LID that it has
 * @was: queue pairs that go by this one are not looked for; 0: all are
 * @bits: 0, or those of the own LID by which they are concerned
 * @before_ns: LIDs of which was told since are right, too; U64_MAX: none is
 * @all: an answer that shows it; NULL: it was told
 * @from: LIDs
 * @n: entries of @from
 */
struct moved {
	struct repath_sa_port *sp;
	const struct repath_learnt *to;
	u16 was;
	u16 bits;
	u64 before_ns;
	struct all_paths *all;
	u16 from[REPATH_SA_DLIDS];
	unsigned int n;
};

/* One of several that the GID has, from whichever own LID. */
static bool is_right(const struct moved *moved, u16 dlid)
{
	struct repath_sa_port *sp = moved->sp;
	struct repath_learnt path;
	unsigned int i;

	if (moved->before_ns == U64_MAX)
		return false;
	for (i = 0; i < 1U << sp->lmc; i++)
		if (repath_learnt_find(&sp->paths, sp->lid + i, dlid, &path) &&
		    !repath_sa_is_outdated(sp, &path, moved->before_ns) && same_dgid(&path, moved->to))
			return true;
	return false;
}

/* May a queue pair of the GID be where its alternate path leads? Nobody tells when hardware goes there. */
static bool may_use(const struct moved *moved, const struct repath_alt_path *alt)
{
	return repath_alt_may_be_used(alt) && alt->port == moved->sp->port && alt->has_grh &&
	       !memcmp(&alt->dgid, moved->to->dgid, sizeof(alt->dgid));
}

/* Return: whether there are more than can be kept. */
static int add_from(struct moved *moved, u16 dlid, u8 path_bits)
{
	unsigned int i;

	if (!dlid || dlid == moved->to->dlid || dlid == moved->was ||
	    (path_bits ^ moved->to->slid) & moved->bits || is_right(moved, dlid))
		return 0;
	for (i = 0; i < moved->n; i++)
		if (moved->from[i] == dlid)
			return 0;
	if (moved->n == ARRAY_SIZE(moved->from))
		return 1;
	moved->from[moved->n++] = dlid;
	return 0;
}

static int leads_there(struct repath_qp *rqp, void *arg)
{
	struct moved *moved = arg;
	struct repath_alt_path alt;
	struct repath_path path;

	if (!repath_shim_path(rqp, &path))
		return 0;
	if (add_from(moved, path.dlid, path.path_bits))
		return 1;
	repath_qp_snapshot_alt(rqp, &alt);
	return may_use(moved, &alt) ? add_from(moved, alt.dlid, alt.path_bits) : 0;
}

static void find(struct moved *moved)
{
	moved->n = 0;
	if (repath_qp_walk_on_path(moved->sp->dev, moved->sp->port, 0,
				   (const union ib_gid *)moved->to->dgid, leads_there, moved) < 0)
		repath_sa_want_table(moved->sp, true);
}

static int leads_nowhere(struct repath_qp *rqp, void *arg)
{
	struct repath_path path;

	return repath_shim_path(rqp, &path) && !path.has_grh;
}

/* Does a queue pair go to this LID, and does not say whose that is? */
static bool any_by_lid(struct repath_sa_port *sp, u16 dlid)
{
	return repath_qp_walk_on_path(sp->dev, sp->port, dlid, NULL, leads_nowhere, NULL);
}

static void hand_over_gid(struct repath_sa_port *sp, struct repath_new_path *path, const u8 *dgid,
			  u16 from)
{
	memcpy(path->dgid, dgid, sizeof(path->dgid));
	path->dlid = from;
	repath_sa_hand_over(sp, path);
}

static int by_gid(const void *a, const void *b)
{
	const struct gid_at *one = a, *other = b;

	return one->slid - other->slid ?: memcmp(one->dgid, other->dgid, sizeof(one->dgid)) ?:
	       one->dlid - other->dlid;
}

/* Ten thousands may be looked for, one after the other. */
static void sort_gids(struct all_paths *all)
{
	struct repath_learnts *paths = &all->sp->paths;
	u32 most = READ_ONCE(paths->n);
	struct repath_learnt path;
	unsigned long index;

	all->sorted = true;
	all->gids = kvmalloc_array(most, sizeof(*all->gids), GFP_KERNEL);
	if (!all->gids)
		return;
	for (index = 0; all->n < most && repath_learnt_next(paths, &index, &path); index++) {
		struct gid_at *at = &all->gids[all->n];

		if (path.ns != all->now)
			continue;
		*at = (struct gid_at) { .slid = path.slid, .dlid = path.dlid };
		memcpy(at->dgid, path.dgid, sizeof(at->dgid));
		all->n++;
	}
	sort(all->gids, all->n, sizeof(*all->gids), by_gid, NULL);
}

static bool find_sorted(const struct all_paths *all, const struct gid_at *wanted,
			struct repath_learnt *to)
{
	u32 low = 0, high = all->n;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (by_gid(&all->gids[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < all->n && all->gids[low].slid == wanted->slid &&
	       !memcmp(all->gids[low].dgid, wanted->dgid, sizeof(wanted->dgid)) &&
	       repath_learnt_find(&all->sp->paths, wanted->slid, all->gids[low].dlid, to);
}

/* Where the GID is now that was at a LID. */
static bool find_gid(struct all_paths *all, const struct repath_learnt *old, struct repath_learnt *to)
{
	struct gid_at wanted = { .slid = old->slid };
	unsigned long index;

	if (!all->sorted)
		sort_gids(all);
	memcpy(wanted.dgid, old->dgid, sizeof(wanted.dgid));
	if (all->gids)
		return find_sorted(all, &wanted, to);
	for (index = 0; repath_learnt_next(&all->sp->paths, &index, to); index++) {
		if (to->ns == all->now && to->slid == old->slid && same_dgid(to, old))
			return true;
		cond_resched();
	}
	return false;
}

/* Where that is that was at a LID, if it was one GID only, and nobody is there now. */
static bool find_all(struct all_paths *all, const struct repath_learnt *old, struct repath_learnt *to)
{
	return repath_sa_is_outdated(all->sp, old, all->asked_ns) && repath_learnt_has_dgid(old) &&
	       !old->shared && find_gid(all, old, to);
}

static bool is_by_lid(const struct moved *moved, u16 from)
{
	struct repath_learnt old, to;

	return moved->all && repath_learnt_find(&moved->sp->paths, moved->to->slid, from, &old) &&
	       find_all(moved->all, &old, &to);
}

/*
 * A LID may be shared by several GIDs, of which one has moved: only queue pairs that go to that one
 * are moved. Where one does not say where it goes, it is left alone, and counted.
 */
static void hand_over_moved(struct moved *moved, struct repath_new_path *path)
{
	struct repath_sa_port *sp = moved->sp;
	unsigned int i;

	for (i = 0; i < moved->n; i++) {
		if (any_by_lid(sp, moved->from[i]) && !is_by_lid(moved, moved->from[i]))
			repath_stat_inc(sp->dev, REPATH_STAT_PATH_AMBIGUOUS);
		hand_over_gid(sp, path, moved->to->dgid, moved->from[i]);
	}
}

/*
 * Queue pairs are on their way to where the GID was told to be before, or have got there since they were looked for,
 * or are still, or again, where it is.
 */
static void hand_over_under_way(const struct moved *moved, struct repath_new_path *path)
{
	struct repath_sa_port *sp = moved->sp;
	struct repath_learnt was;
	unsigned long index;

	hand_over_gid(sp, path, moved->to->dgid, moved->to->dlid);
	for (index = 0; repath_learnt_next(&sp->paths, &index, &was); index++)
		if (was.slid == moved->to->slid && was.dlid != moved->to->dlid &&
		    same_dgid(&was, moved->to))
			hand_over_gid(sp, path, was.dgid, was.dlid);
}

/* A port has got another LID: nobody is at the old one, and whoever was there is at the new one. */
static void heard_other_lid(struct repath_sa_port *sp, const struct repath_notice *notice)
{
	struct repath_new_path path;
	struct repath_learnt old;

	repath_sa_new_path(notice, &path);
	path.dlid = notice->old_dlid;
	path.new_dlid = notice->dlid;
	repath_sa_hand_over(sp, &path);
	if (repath_learnt_find(&sp->paths, notice->slid ?: sp->lid, notice->old_dlid, &old))
		repath_sa_drop(sp, &old);
}

/**
 * repath_sa_heard_moved - somebody has moved to another LID
 * @sp: port
 * @notice: notice
 * @late: it may have moved again since
 */
void repath_sa_heard_moved(struct repath_sa_port *sp, const struct repath_notice *notice, bool late)
{
	struct repath_learnt to = { .slid = notice->slid ?: sp->lid, .dlid = notice->dlid };
	struct moved moved = {
		.sp = sp, .to = &to, .was = notice->old_dlid, .before_ns = U64_MAX,
	};
	/* Before any is looked for. */
	bool under_way = repath_reroute_is_under_way(sp->dev);
	struct repath_new_path path;

	if (late) {
		repath_sa_want_table(sp, true);
		return;
	}
	memcpy(to.dgid, notice->dgid, sizeof(to.dgid));
	repath_sa_learn_notice(sp, notice, REPATH_PATH_REPORT, false);
	/* Even if this path is known, since the GID was there before: others have another one. */
	sp->moved = true;
	sp->moved_ns = ktime_get_boottime_ns();
	if (notice->old_dlid && notice->old_dlid != notice->dlid)
		heard_other_lid(sp, notice);
	repath_sa_new_path(notice, &path);
	path.new_dlid = notice->dlid;
	path.serial = 0;
	find(&moved);
	hand_over_moved(&moved, &path);
	if (under_way)
		hand_over_under_way(&moved, &path);
	/* Address handles are known by that GID, whatever LID they have. */
	else if (!moved.n && repath_shim_has_datagrams(sp->dev))
		hand_over_gid(sp, &path, to.dgid, notice->dlid);
}

static void path_of(const struct repath_learnt *learnt, struct repath_new_path *path)
{
	repath_sa_path_of(learnt, path);
	path->new_dlid = learnt->dlid;
}

static void look(const struct repath_path *path, const struct repath_alt_path *alt, void *arg)
{
	struct moved *moved = arg;

	moved->n += path->dlid && path->dlid != moved->to->dlid;
	moved->n += may_use(moved, alt) && alt->dlid != moved->to->dlid;
}

/**
 * repath_sa_is_elsewhere - does a queue pair go to the same GID by another LID?
 * @sp: port
 * @path: as it was told just now, of all of the port
 */
bool repath_sa_is_elsewhere(struct repath_sa_port *sp, const struct repath_learnt *path)
{
	struct moved moved = { .sp = sp, .to = path, .bits = (1 << sp->lmc) - 1, .before_ns = U64_MAX };

	if (!repath_learnt_has_dgid(path))
		return false;
	/* Mostly none does: then no more is done than to look. */
	repath_qp_look_on_path(sp->dev, sp->port, 0, (const union ib_gid *)path->dgid, look, &moved);
	if (moved.n)
		find(&moved);
	return moved.n;
}

/* A port with several LIDs has them in a row: one of them will do. */
static void find_by_gid(struct all_paths *all)
{
	struct repath_sa_port *sp = all->sp;
	struct repath_learnt to, last = {};
	struct repath_new_path path;
	unsigned long index;

	for (index = 0; repath_learnt_next(&sp->paths, &index, &to); index++) {
		struct moved moved = {
			.sp = sp, .to = &to, .bits = (1 << sp->lmc) - 1, .before_ns = all->asked_ns,
			.all = all,
		};

		cond_resched();
		if (to.ns != all->now || !repath_learnt_has_dgid(&to) ||
		    (to.slid == last.slid && same_dgid(&to, &last)))
			continue;
		last = to;
		find(&moved);
		path_of(&to, &path);
		hand_over_moved(&moved, &path);
	}
}

/* Who goes by a LID alone goes to who was there; and so do those that are under way to there, to whatever GID. */
static void find_by_lid(struct all_paths *all, bool under_way)
{
	struct repath_sa_port *sp = all->sp;
	struct repath_learnt old, to;
	struct repath_new_path path;
	unsigned long index;

	for (index = 0; repath_learnt_next(&sp->paths, &index, &old); index++) {
		cond_resched();
		if (!repath_sa_is_outdated(sp, &old, all->asked_ns) ||
		    !(under_way || any_by_lid(sp, old.dlid) || repath_shim_has_datagrams(sp->dev)))
			continue;
		if (find_all(all, &old, &to)) {
			path_of(&to, &path);
			path.dlid = old.dlid;
			path.by_lid = true;
			repath_sa_hand_over(sp, &path);
		}
		if (under_way && repath_learnt_has_dgid(&old) && find_gid(all, &old, &to)) {
			path_of(&to, &path);
			hand_over_gid(sp, &path, old.dgid, old.dlid);
		}
	}
}

/**
 * repath_sa_find_moved - who is at another LID, by an answer with all paths
 * @sp: port, which has learnt them, and has not dropped what they have not
 * @asked_ns: CLOCK_BOOTTIME: when they were asked for
 * @now: when they were learnt
 * @elsewhere: see repath_sa_is_elsewhere(), of any of them
 * @under_way: see repath_reroute_is_under_way(), before
 *
 * Return: false if it can not be known, as somebody has moved since they were asked for.
 */
bool repath_sa_find_moved(struct repath_sa_port *sp, u64 asked_ns, u64 now, bool elsewhere,
			  bool under_way)
{
	struct all_paths all = { .sp = sp, .asked_ns = asked_ns, .now = now };

	if (sp->moved_ns > asked_ns)
		return false;
	/* Shims, which know no such difference of address handles, then hear of the GIDs. */
	find_by_lid(&all, under_way);
	if (elsewhere)
		find_by_gid(&all);
	kvfree(all.gids);
	return true;
}
