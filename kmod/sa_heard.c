// SPDX-License-Identifier: GPL-2.0
/* What the subnet manager reports, and what is done about it. include/repath_sm.h. */
#include <linux/ktime.h>
#include <repath_sm.h>

#include "device.h"
#include "range.h"
#include "reroute.h"
#include "reroute_shim.h"
#include "sa.h"
#include "trace.h"
#include "track.h"

static unsigned int unpath_ms = 30000;
REPATH_RANGE_PARAM(unpath_ms, 1000, 600000, 0644);
MODULE_PARM_DESC(unpath_ms,
		 "when to ask for a path that was to break, if nothing was told, in ms (30000; 1000 to 600000)");

/**
 * repath_sa_new_path - the path that a notice tells
 * @notice: notice
 * @path: result
 *
 * Without the P_Key, which is that of one of the partitions that the two ports share: in which one a
 * queue pair is its owner says, and to its peer.
 */
void repath_sa_new_path(const struct repath_notice *notice, struct repath_new_path *path)
{
	*path = (struct repath_new_path) {
		.dlid = notice->dlid,
		.slid = notice->slid,
		.serial = notice->serial,
		.epoch = notice->epoch,
		.sl = notice->sl,
		.mtu = notice->mtu,
		.rate = notice->rate,
	};
	if (notice->mask & REPATH_SM_MASK_SL)
		path->has |= REPATH_PATH_SL;
	if (notice->mask & REPATH_SM_MASK_MTU)
		path->has |= REPATH_PATH_MTU;
	if (notice->mask & REPATH_SM_MASK_RATE)
		path->has |= REPATH_PATH_RATE;
}

/**
 * repath_sa_learn_notice - what a notice says of a path takes the place of what was known
 * @sp: port
 * @notice: notice
 * @source: enum repath_path_source
 * @unpath: the path is about to break
 */
void repath_sa_learn_notice(struct repath_sa_port *sp, const struct repath_notice *notice,
			    u8 source, bool unpath)
{
	u16 slid = notice->slid ?: sp->lid;
	struct repath_learnt path = { .slid = slid, .dlid = notice->dlid };

	repath_learnt_find(&sp->paths, slid, notice->dlid, &path);
	path.ns = ktime_get_boottime_ns();
	path.source = source;
	path.unpath = unpath;
	path.relayed = notice->relayed;
	if (path.epoch != notice->epoch)
		path.lane = 0;
	path.epoch = notice->epoch;
	if (notice->kind == REPATH_SM_LANE)
		path.lane = notice->number;
	if (notice->mask & REPATH_SM_MASK_DGID)
		memcpy(path.dgid, notice->dgid, sizeof(path.dgid));
	/* A VM's GID is beside those of its new host. */
	if (notice->kind == REPATH_SM_MOVED)
		path.shared = !notice->old_dlid;
	/* An UnPath tells what will be, not what is. */
	if (notice->mask & REPATH_SM_MASK_SL && !unpath)
		path.sl = notice->sl;
	if (notice->mask & REPATH_SM_MASK_MTU && !unpath)
		path.mtu = notice->mtu;
	if (notice->mask & REPATH_SM_MASK_RATE && !unpath)
		path.rate = notice->rate;
	if (notice->mask & REPATH_SM_MASK_PKEY && !unpath)
		path.pkey = notice->pkey;
	repath_sa_learn(sp, &path, true);
}

static void heard_route_repath(struct repath_sa_port *sp, const struct repath_notice *notice,
			       bool late)
{
	struct repath_new_path path;
	struct repath_learnt old;

	if (!late) {
		sp->breaks_all = false;
		if (!notice->dlid)
			sp->repath_ns = ktime_get_boottime_ns();
	}
	/* What is late may have been overtaken for this path, or not: the SA knows, if it is not about to break since. */
	if (!notice->dlid) {
		repath_sa_want_table(sp, true);
	} else if (late || !(notice->mask & REPATH_SM_MASK_SL)) {
		if (!late || !repath_learnt_find(&sp->paths, notice->slid ?: sp->lid, notice->dlid, &old) ||
		    !repath_sa_is_breaking(sp, &old))
			repath_sa_want_path(sp, notice->dlid);
	} else if (!repath_sa_is_exception(sp, notice->slid ?: sp->lid, notice->dlid)) {
		repath_sa_learn_notice(sp, notice, REPATH_PATH_REPORT, false);
		repath_sa_new_path(notice, &path);
		repath_sa_hand_over(sp, &path);
	}
}

/*
 * Nothing is new of the path but for who is at its other end. So it is not learnt; if it is known otherwise one of the
 * two was lost, and the SA is asked.
 */
static void heard_way_back(struct repath_sa_port *sp, const struct repath_notice *notice)
{
	struct repath_new_path path;
	struct repath_learnt known;

	if (!notice->dlid || !(notice->mask & REPATH_SM_MASK_SL))
		return;
	repath_sa_new_path(notice, &path);
	path.has = REPATH_PATH_SL;
	path.for_peer = true;
	if (repath_learnt_find(&sp->paths, notice->slid ?: sp->lid, notice->dlid, &known)) {
		if (known.unpath)
			return;
		if (known.sl != path.sl && !repath_sa_is_exception(sp, known.slid, known.dlid)) {
			repath_sa_want_path(sp, notice->dlid);
			return;
		}
		path.sl = known.sl;
	}
	repath_sa_hand_over(sp, &path);
}

static void heard_route_unpath(struct repath_sa_port *sp, const struct repath_notice *notice)
{
	unsigned long at = jiffies + msecs_to_jiffies(unpath_ms);
	struct repath_new_path path;
	/* Then nothing is told of the path, and what is announced is not for it. */
	bool exception = notice->dlid &&
			 repath_sa_is_exception(sp, notice->slid ?: sp->lid, notice->dlid);

	if (!sp->breaks)
		sp->breaks_at = at;
	sp->breaks = true;
	if (!notice->dlid) {
		sp->breaks_all = true;
		sp->breaks_all_at = at;
	}
	if (notice->dlid && !exception && notice->ahead && notice->mask & REPATH_SM_MASK_SL) {
		repath_sa_new_path(notice, &path);
		repath_reroute_prepare(sp->dev, sp->port, &path);
	}
	if (notice->dlid && !exception)
		repath_sa_learn_notice(sp, notice, REPATH_PATH_REPORT, true);
	repath_reroute_unpath(sp->dev, sp->port, notice->dlid, REPATH_UNPATH_BREAKS,
			      notice->wait && !exception);
}

/* One that was lost and repeated says what is over by now, if a later one was heard of the path. */
static bool is_late_lane(struct repath_sa_port *sp, const struct repath_notice *notice)
{
	struct repath_learnt old;

	return repath_learnt_find(&sp->paths, notice->slid ?: sp->lid, notice->dlid, &old) &&
	       old.lane && old.epoch == notice->epoch &&
	       repath_notice_is_behind(notice->number, old.lane);
}

/* An exception from the path record begins or ends. */
static void heard_lane(struct repath_sa_port *sp, const struct repath_notice *notice)
{
	struct repath_new_path path;

	if (!notice->dlid)
		return;
	if (is_late_lane(sp, notice)) {
		repath_stat_inc(sp->dev, REPATH_STAT_NOTICE_LATE);
		return;
	}
	if (notice->repath || (notice->ahead && notice->mask & REPATH_SM_MASK_SL)) {
		repath_sa_learn_notice(sp, notice, notice->repath ? REPATH_PATH_LANE : REPATH_PATH_REPORT,
			     false);
		repath_sa_new_path(notice, &path);
		/* It belongs to no routing. */
		path.serial = 0;
		repath_sa_hand_over(sp, &path);
		return;
	}
	repath_sa_learn_notice(sp, notice, REPATH_PATH_REPORT, true);
	repath_reroute_unpath(sp->dev, sp->port, notice->dlid, REPATH_UNPATH_LANE, notice->wait);
	repath_sa_want_path(sp, notice->dlid);
}

/**
 * repath_sa_heard - the subnet manager has said something
 * @sp: port
 * @notice: what
 *
 * Return: false if it was heard before.
 */
bool repath_sa_heard(struct repath_sa_port *sp, const struct repath_notice *notice)
{
	enum repath_notice_age age = repath_notice_age(&sp->ring, notice);

	trace_sm_report(sp->dev->index, sp->port,
			notice->repath ? REPATH_SM_REPATH : REPATH_SM_UNPATH, notice->kind,
			notice->dlid, notice->serial, age);
	if (age == REPATH_NOTICE_AGAIN) {
		repath_stat_inc(sp->dev, REPATH_STAT_NOTICE_AGAIN);
		return false;
	}
	repath_stat_inc(sp->dev, notice->repath ? REPATH_STAT_NOTICE_REPATH :
				 REPATH_STAT_NOTICE_UNPATH);
	if (age == REPATH_NOTICE_LATE)
		repath_stat_inc(sp->dev, REPATH_STAT_NOTICE_LATE);
	if (notice->slid && !repath_sa_is_own(sp, notice->slid))
		repath_stat_inc(sp->dev, REPATH_STAT_NOTICE_MALFORMED);
	else if (notice->kind == REPATH_SM_ROUTE && notice->repath)
		heard_route_repath(sp, notice, age == REPATH_NOTICE_LATE);
	else if (notice->kind == REPATH_SM_ROUTE && age == REPATH_NOTICE_NEW)
		heard_route_unpath(sp, notice);
	else if (notice->kind == REPATH_SM_LANE)
		heard_lane(sp, notice);
	else if (notice->kind == REPATH_SM_WAY_BACK && notice->repath)
		heard_way_back(sp, notice);
	else if (notice->kind == REPATH_SM_MOVED)
		repath_sa_heard_moved(sp, notice, age == REPATH_NOTICE_LATE);
	return true;
}

/* For how long yet is it waited for what comes instead of a path that is about to break? */
static u64 left_ns(const struct repath_learnt *path)
{
	u64 age = ktime_get_boottime_ns() - path->changed_ns, limit = (u64)unpath_ms * NSEC_PER_MSEC;

	return age < limit ? limit - age : 0;
}

/**
 * repath_sa_is_breaking - is a path about to break, and is it waited for what comes instead?
 * @sp: port
 * @path: the path
 *
 * What another subnet manager has said before is not waited for.
 */
bool repath_sa_is_breaking(const struct repath_sa_port *sp, const struct repath_learnt *path)
{
	return path->unpath && path->changed_ns > sp->repath_ns && path->changed_ns >= sp->since_ns &&
	       left_ns(path);
}

/**
 * repath_sa_not_heard - what should have been said by now
 * @sp: port, which has a way
 * @next: see sa.h
 *
 * After UnPath the subnet manager may die, or give up to say RePath to a host that it does not
 * reach. No path is about to break for ever: who knows is asked.
 */
void repath_sa_not_heard(struct repath_sa_port *sp, unsigned long *next)
{
	bool all = sp->breaks_all && !time_before(jiffies, sp->breaks_all_at), ask = all;
	struct repath_learnt path;
	unsigned long index;

	if (!sp->breaks)
		return;
	if (time_before(jiffies, sp->breaks_at)) {
		repath_sa_sooner(next, sp->breaks_at);
		return;
	}
	sp->breaks_all &= !all;
	sp->breaks = sp->breaks_all;
	sp->breaks_at = sp->breaks_all_at;
	for (index = 0; repath_learnt_next(&sp->paths, &index, &path); index++) {
		u64 left = path.unpath ? left_ns(&path) : 0;
		unsigned long at = jiffies + max_t(unsigned long, nsecs_to_jiffies(left) + 1, HZ);

		cond_resched();
		ask |= path.unpath && !left;
		if (left && (!sp->breaks || time_before(at, sp->breaks_at)))
			sp->breaks_at = at;
		sp->breaks |= left > 0;
	}
	if (ask)
		repath_sa_want_table(sp, true);
	if (sp->breaks)
		repath_sa_sooner(next, sp->breaks_at);
}
