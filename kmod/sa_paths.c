// SPDX-License-Identifier: GPL-2.0
/*
 * From what the subnet manager says to paths: a Report tells the path itself, or makes us ask, for
 * one path or once for all of the port. What differs from what queue pairs use is handed on.
 */
#include <linux/kallsyms.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <rdma/ib_sa.h>
#include <repath_sm.h>

#include "device.h"
#include "event.h"
#include "reroute.h"
#include "reroute_shim.h"
#include "sa.h"
#include "sa_ask.h"
#include "trace.h"
#include "track.h"

#define TABLE_GAP	(HZ / 10)	/* between the end of one table and the question for the next */
#define TABLE_TRIES	6
#define TELL_GAP	HZ		/* between two events to IPoIB, if a port is elsewhere by now */
#define MULTICAST_LID	0xc000

/* After a path has changed, how often it is looked who has been connected by what it was, each time after twice as long. */
#define LOOKS		6
#define LOOKS_NS	((u64)NSEC_PER_SEC << LOOKS)

static u16 lid_mask(const struct repath_sa_port *sp)
{
	return (1 << sp->lmc) - 1;
}

/**
 * repath_sa_is_own - is a LID one of the port's own?
 * @sp: port
 * @slid: LID
 */
bool repath_sa_is_own(const struct repath_sa_port *sp, u16 slid)
{
	return (slid & ~lid_mask(sp)) == sp->lid;
}

/* --- what is asked --- */

/**
 * repath_sa_want_table - ask for all paths of the port, soon
 * @sp: port
 * @news: because they may have changed
 */
void repath_sa_want_table(struct repath_sa_port *sp, bool news)
{
	sp->table_news |= news;
	sp->table_tries = 0;
	set_bit(REPATH_SA_TABLE, &sp->wants);
}

/**
 * repath_sa_want_path - ask for a path that may have changed, soon
 * @sp: port
 * @dlid: where it leads
 */
void repath_sa_want_path(struct repath_sa_port *sp, u16 dlid)
{
	unsigned int i;

	for (i = 0; i < sp->ndlids; i++)
		if (sp->dlids[i] == dlid)
			return;
	if (sp->ndlids < REPATH_SA_DLIDS)
		sp->dlids[sp->ndlids++] = dlid;
	else
		repath_sa_want_table(sp, true);
}

/**
 * repath_sa_want_paths - an administrator wants to know
 * @sp: port, which has a way
 * @dlid: to there; 0: to everywhere
 */
void repath_sa_want_paths(struct repath_sa_port *sp, u16 dlid)
{
	if (dlid) {
		repath_sa_want_path(sp, dlid);
		return;
	}
	set_bit(REPATH_SA_FORCED, &sp->wants);
	repath_sa_want_table(sp, false);
}

static int has_path(struct repath_qp *rqp, void *arg)
{
	const struct repath_sa_port *sp = arg;
	struct repath_path path;

	return repath_shim_path(rqp, &path) && repath_path_port(&path) == sp->port;
}

static int ask_paths(struct repath_sa_port *sp, u16 dlid)
{
	trace_sm_paths(sp->dev->index, sp->port, dlid, 0, 0);
	return repath_sa_ask_paths(sp, dlid);
}

static bool is_asking(struct repath_sa_port *sp)
{
	struct repath_sa_ask *ask;
	bool asking = false;

	spin_lock_irq(&sp->lock);
	list_for_each_entry(ask, &sp->asked, node)
		asking |= ask->kind == REPATH_SA_PATHS;
	spin_unlock_irq(&sp->lock);
	return asking;
}

/* Until it is answered. Who does not answer for long may be another one by now, or not know us. */
static void ask_again(struct repath_sa_port *sp)
{
	repath_stat_inc(sp->dev, REPATH_STAT_SA_QUERY_FAILED);
	if (sp->table_tries < TABLE_TRIES) {
		sp->table_tries++;
	} else {
		set_bit(REPATH_SA_RENEW, &sp->wants);
		repath_sa_want(sp, REPATH_SA_LOOK);
	}
	sp->table_at = jiffies + (HZ << (sp->table_tries - 1));
	set_bit(REPATH_SA_TABLE, &sp->wants);
}

/**
 * repath_sa_drop - a path is not there any more
 * @sp: port
 * @path: the path, which may be a copy
 */
void repath_sa_drop(struct repath_sa_port *sp, const struct repath_learnt *path)
{
	repath_learnt_drop(&sp->paths, path);
	repath_event_path(sp->dev, sp->port, path, REPATH_EV_DEL);
}

/* One that the subnet manager made holds until the same one ends it, or knows us no more. */
static bool is_exception(const struct repath_sa_port *sp, const struct repath_learnt *path)
{
	return path->source == REPATH_PATH_LANE && path->epoch == sp->ring.epoch &&
	       path->ns >= sp->since_ns;
}

/**
 * repath_sa_is_exception - does an exception from the path record hold?
 * @sp: port
 * @slid: own LID
 * @dlid: where the path leads
 */
bool repath_sa_is_exception(struct repath_sa_port *sp, u16 slid, u16 dlid)
{
	struct repath_learnt old;

	return repath_learnt_find(&sp->paths, slid, dlid, &old) && is_exception(sp, &old);
}

/**
 * repath_sa_is_outdated - was it not told of a path since, nor is it an exception that holds?
 * @sp: port
 * @path: the path, which may be a copy
 * @before_ns: CLOCK_BOOTTIME
 */
bool repath_sa_is_outdated(struct repath_sa_port *sp, const struct repath_learnt *path, u64 before_ns)
{
	return path->ns < before_ns && !is_exception(sp, path);
}

/* What the answer does not have is not there any more; or @vague: of which nothing is known. */
static void drop(struct repath_sa_port *sp, u64 before_ns, bool vague)
{
	struct repath_learnt path;
	unsigned long index;

	for (index = 0; repath_learnt_next(&sp->paths, &index, &path); index++)
		if (repath_sa_is_outdated(sp, &path, before_ns) &&
		    (!vague || path.unpath || path.source == REPATH_PATH_LANE))
			repath_sa_drop(sp, &path);
}

/**
 * repath_sa_query - ask what is to be asked; one question at a time
 * @sp: port, which has a way
 * @next: see sa.h
 *
 * A port of which no queue pair goes anywhere, and no datagram that we could redirect, does not ask for
 * all paths: nobody uses one. It forgets what it would have to ask for.
 */
void repath_sa_query(struct repath_sa_port *sp, unsigned long *next)
{
	int err;

	if (is_asking(sp))
		return;
	if (test_bit(REPATH_SA_TABLE, &sp->wants)) {
		if (time_before(jiffies, sp->table_at)) {
			repath_sa_sooner(next, sp->table_at);
			return;
		}
		clear_bit(REPATH_SA_TABLE, &sp->wants);
		sp->ndlids = 0;
		if (!test_and_clear_bit(REPATH_SA_FORCED, &sp->wants) &&
		    !repath_qp_for_each(sp->dev, has_path, sp) &&
		    !repath_shim_has_datagrams(sp->dev)) {
			sp->changed |= sp->table_news;
			sp->table_news = false;
			drop(sp, U64_MAX, true);
			return;
		}
		err = ask_paths(sp, 0);
	} else if (sp->ndlids) {
		err = ask_paths(sp, sp->dlids[--sp->ndlids]);
	} else {
		return;
	}
	if (err)
		ask_again(sp);
	else
		repath_stat_inc(sp->dev, REPATH_STAT_SA_QUERY);
}

/* --- what is learnt --- */

struct users {
	const struct repath_sa_port *sp;
	const struct repath_learnt *path;
	bool differ;
	bool may_differ;
	bool left;
};

static bool leads_there(const struct users *users, u32 port, u32 dlid, u8 path_bits)
{
	return port == users->sp->port && dlid == users->path->dlid &&
	       path_bits == (users->path->slid & lid_mask(users->sp));
}

static bool is_unlike(const struct repath_learnt *learnt, u8 sl, u8 rate)
{
	return sl != learnt->sl ||
	       (learnt->rate && ib_rate_to_mbps(rate) > ib_rate_to_mbps(learnt->rate));
}

static bool is_other(const struct users *users, const struct repath_path *path)
{
	const struct repath_learnt *learnt = users->path;

	return leads_there(users, repath_path_port(path), path->dlid, path->path_bits) &&
	       (is_unlike(learnt, path->sl, path->rate) || (learnt->mtu && path->mtu > learnt->mtu));
}

/* Is it on the path, if it has gone over to its alternate one, and not as was told? */
static bool may_be_other(const struct users *users, const struct repath_alt_path *alt)
{
	return repath_alt_may_be_used(alt) &&
	       leads_there(users, alt->port, alt->dlid, alt->path_bits) &&
	       is_unlike(users->path, alt->sl, alt->rate);
}

static void look(const struct repath_path *path, const struct repath_alt_path *alt, void *arg)
{
	struct users *users = arg;

	if (is_other(users, path))
		*(path->has_av ? &users->differ : &users->left) = true;
	else if (path->has_av)
		users->may_differ |= may_be_other(users, alt);
}

static int differs(struct repath_qp *rqp, void *arg)
{
	struct users *users = arg;
	struct repath_path path;

	users->differ = repath_shim_path(rqp, &path) && is_other(users, &path);
	return users->differ;
}

/*
 * Has a queue pair of the path anything else? Most paths of an answer are what they were, and many queue pairs
 * may be on them: no more is done for each than to look at it. Of those that were RESET the shims are asked.
 * @may: of one hardware knows, which may have gone over to an alternate path.
 */
static bool are_other(struct repath_sa_port *sp, const struct repath_learnt *path, bool *may)
{
	struct users users = { .sp = sp, .path = path };

	repath_qp_look_on_path(sp->dev, sp->port, path->dlid, NULL, look, &users);
	/* Without memory to ask: those that have not are left alone. */
	if (!users.differ && users.left)
		users.differ = repath_qp_walk_on_path(sp->dev, sp->port, path->dlid, NULL, differs, &users);
	*may = users.may_differ;
	return users.differ;
}

/**
 * repath_sa_path_of - to a path that was learnt
 * @learnt: what was learnt
 * @path: result
 */
void repath_sa_path_of(const struct repath_learnt *learnt, struct repath_new_path *path)
{
	*path = (struct repath_new_path) {
		.dlid = learnt->dlid,
		.slid = learnt->slid,
		.pkey = learnt->pkey,
		.sl = learnt->sl,
		.mtu = learnt->mtu,
		.rate = learnt->rate,
		.has = REPATH_PATH_SL | (learnt->mtu ? REPATH_PATH_MTU : 0) |
		       (learnt->rate ? REPATH_PATH_RATE : 0),
	};
}

/**
 * repath_sa_hand_over - have queue pairs moved to a path
 * @sp: port
 * @path: the path
 */
void repath_sa_hand_over(struct repath_sa_port *sp, const struct repath_new_path *path)
{
	int err = repath_reroute_repath(sp->dev, sp->port, path);

	if (!err)
		repath_stat_inc(sp->dev, REPATH_STAT_PATH_GIVEN);
	else if (err == -ENOMEM)
		repath_sa_want_table(sp, true);		/* which finds what is not on its path */
}

/* Have queue pairs go by what was learnt of a path: all, or @all being false those that do not. */
static void go_by(struct repath_sa_port *sp, const struct repath_learnt *learnt, bool all)
{
	struct repath_new_path path;
	bool may;

	repath_sa_path_of(learnt, &path);
	if (are_other(sp, learnt, &may) || all)
		repath_sa_hand_over(sp, &path);
	else if (may && repath_reroute_late(sp->dev, sp->port, &path, U64_MAX) == -ENOMEM)
		repath_sa_want_table(sp, true);
}

/**
 * repath_sa_hand_all_over - have queue pairs and datagrams go by all that was learnt
 * @sp: port
 */
void repath_sa_hand_all_over(struct repath_sa_port *sp)
{
	bool datagrams = repath_shim_has_datagrams(sp->dev);
	struct repath_learnt learnt;
	unsigned long index;

	for (index = 0; repath_learnt_next(&sp->paths, &index, &learnt); index++) {
		cond_resched();
		if (!learnt.unpath)
			go_by(sp, &learnt, datagrams);
	}
}

/**
 * repath_sa_learn - keep what is known of a path
 * @sp: port
 * @path: what is known
 * @news: it has changed, even if it was not known before
 *
 * Return: true if it has changed.
 */
bool repath_sa_learn(struct repath_sa_port *sp, const struct repath_learnt *path, bool news)
{
	struct repath_learnt learnt = *path;
	enum repath_learnt_change change;

	learnt.changed_ns = news ? path->ns : 0;
	change = repath_learnt_put(&sp->paths, &learnt);
	if (change == REPATH_LEARNT_NO_ROOM) {
		repath_stat_inc(sp->dev, REPATH_STAT_PATH_NO_ROOM);
		return news;
	}
	if (change == REPATH_LEARNT_SAME)
		return false;
	repath_stat_inc(sp->dev, REPATH_STAT_PATH_LEARNT);
	if (change != REPATH_LEARNT_NEW || news) {
		if (!sp->looks || time_before(jiffies + HZ, sp->look_again))
			sp->look_again = jiffies + HZ;
		sp->looks = LOOKS;
	}
	/* What is about to break has no other path yet, for which IPoIB could ask. */
	if (!path->unpath) {
		if (change == REPATH_LEARNT_NEW)
			sp->moved |= news;
		else if (change == REPATH_LEARNT_ELSEWHERE)
			sp->moved = true;
		else
			sp->changed = true;
	}
	repath_event_path(sp->dev, sp->port, path,
			  change == REPATH_LEARNT_NEW ? REPATH_EV_NEW : REPATH_EV_CHANGE);
	return change != REPATH_LEARNT_NEW || news;
}

struct answer {
	struct repath_sa_port *sp;
	u64 asked_ns;
	u64 now;
	bool news;
	bool all;	/* paths were asked for */
	bool elsewhere;	/* there are queue pairs that go to other LIDs than those of their GIDs */
	bool datagrams;	/* a process with a shim has queue pairs of UD */
	bool under_way;	/* where queue pairs are does not tell where they will be */
};

/* May the LID be that of other GIDs, too? A question for one path is answered by one of them. */
static bool is_shared(const struct answer *answer, const struct repath_learnt *old,
		      const struct repath_learnt *path)
{
	/* A notice may tell of a path, and not whose LID that is. */
	return (repath_learnt_has_dgid(old) && memcmp(old->dgid, path->dgid, sizeof(old->dgid))) ||
	       (old->shared && (!answer->all || old->ns == answer->now));
}

/* A report that came after the question may be newer than the answer. */
static bool is_overtaken(const struct answer *answer, const struct repath_learnt *old)
{
	return old->source != REPATH_PATH_QUERY && old->ns > answer->asked_ns;
}

/* 0, as if it had not been told: an MTU that there is not, or a rate that this kernel does not know. */
static u8 known_mtu(u8 mtu)
{
	return mtu >= IB_MTU_256 && mtu <= IB_MTU_4096 ? mtu : 0;
}

static u8 known_rate(u8 rate)
{
	return ib_rate_to_mbps(rate) > 0 ? rate : 0;
}

/**
 * repath_sa_look_again - has anybody been connected by what a path was before it has changed?
 * @sp: port
 * @next: see sa.h
 *
 * Programs ask for a path, and connect when they like; the subnet manager tells those who are connected. For a minute
 * after a path has changed it is looked who uses it, and is not on it.
 */
void repath_sa_look_again(struct repath_sa_port *sp, unsigned long *next)
{
	u64 now = ktime_get_boottime_ns();
	struct repath_new_path path;
	struct repath_learnt learnt;
	bool may, missed = false;
	unsigned long index;

	if (!sp->looks)
		return;
	if (!time_before(jiffies, sp->look_again)) {
		for (index = 0; repath_learnt_next(&sp->paths, &index, &learnt); index++) {
			cond_resched();
			if (!learnt.changed_ns || now - learnt.changed_ns > LOOKS_NS || learnt.unpath ||
			    (!are_other(sp, &learnt, &may) && !may))
				continue;
			repath_sa_path_of(&learnt, &path);
			missed |= repath_reroute_late(sp->dev, sp->port, &path, learnt.changed_ns) == -ENOMEM;
		}
		/* One for which there was no memory does not count. */
		sp->look_again = jiffies + (missed ? HZ : HZ << (LOOKS - --sp->looks));
	}
	if (sp->looks)
		repath_sa_sooner(next, sp->look_again);
}

/* That a path is about to break is not known to who answers before it does: it is what it was, if that was ever told. */
static bool is_yet_to_break(const struct repath_sa_port *sp, const struct repath_learnt *old,
			    const struct repath_learnt *path)
{
	return repath_sa_is_breaking(sp, old) &&
	       ((!old->mtu && !old->rate) ||
		(old->sl == path->sl && old->mtu == path->mtu && old->rate == path->rate));
}

static void take_record(const void *record, void *arg)
{
	const struct repath_sm_path *path = record;
	struct repath_learnt learnt = {
		.slid = be16_to_cpu(path->slid),
		.dlid = be16_to_cpu(path->dlid),
		.pkey = be16_to_cpu(path->pkey),
		.sl = be16_to_cpu(path->qos_class_sl) & 0xf,
		.mtu = known_mtu(path->mtu & 0x3f),
		.rate = known_rate(path->rate & 0x3f),
		.source = REPATH_PATH_QUERY,
	};
	struct answer *answer = arg;
	struct repath_sa_port *sp = answer->sp;
	struct repath_learnt old;
	bool known, changed, announced, breaking;

	if (!repath_sa_is_own(sp, learnt.slid) || !learnt.dlid || learnt.dlid >= MULTICAST_LID)
		return;
	known = repath_learnt_find(&sp->paths, learnt.slid, learnt.dlid, &old);
	if (known && (is_exception(sp, &old) || is_overtaken(answer, &old)))
		return;
	learnt.ns = answer->now;
	if (known) {
		learnt.epoch = old.epoch;
		learnt.lane = old.lane;
	}
	memcpy(learnt.dgid, path->dgid, sizeof(learnt.dgid));
	learnt.shared = known && is_shared(answer, &old, &learnt);
	breaking = known && answer->all && is_yet_to_break(sp, &old, &learnt);
	learnt.unpath = breaking;
	/* Alternate paths were loaded for what has not been told. */
	announced = known && old.unpath;
	changed = repath_sa_learn(sp, &learnt, answer->news);
	answer->elsewhere |= answer->all && repath_sa_is_elsewhere(sp, &learnt);
	/*
	 * Nobody but its process knows where an address handle leads; and who is on the path as it is now may be on
	 * the way to what it was before.
	 */
	if (breaking) {
		/* Whoever has said it, what comes instead is asked for. */
		if (!sp->breaks)
			sp->breaks_at = jiffies;
		sp->breaks = true;
		return;
	}
	if (changed && !answer->datagrams)
		answer->datagrams = repath_shim_has_datagrams(sp->dev);
	go_by(sp, &learnt, announced || (changed && (answer->under_way || answer->datagrams)));
}

/**
 * repath_sa_query_answered - path records have come, or have not
 * @sp: port
 * @ask: the question, to the subnet manager that is
 */
void repath_sa_query_answered(struct repath_sa_port *sp, struct repath_sa_ask *ask)
{
	struct answer answer = {
		.sp = sp,
		.asked_ns = ask->started_ns,
		.now = ktime_get_boottime_ns(),
		.news = ask->number || sp->table_news,
		.all = !ask->number,
		/* Before any is looked at. */
		.under_way = repath_reroute_is_under_way(sp->dev),
	};
	int err = repath_sa_ask_status(ask);

	trace_sm_paths(sp->dev->index, sp->port, ask->number, 1, err);
	if (!err)
		err = repath_sa_records(ask->answer, sizeof(struct repath_sm_path), take_record,
					&answer);
	trace_sm_paths(sp->dev->index, sp->port, ask->number, 2, err);
	/* Whatever it was that went wrong, the question for everything makes it good. */
	if (err < 0) {
		ask_again(sp);
		return;
	}
	sp->table_tries = 0;
	if (ask->number)
		return;
	if (!test_bit(REPATH_SA_TABLE, &sp->wants))
		sp->table_news = false;
	sp->table_at = jiffies + TABLE_GAP;
	if (repath_sa_find_moved(sp, answer.asked_ns, answer.now, answer.elsewhere,
				 answer.under_way))
		drop(sp, answer.asked_ns, false);
	else
		repath_sa_want_table(sp, true);
}

/**
 * repath_sa_forget - nothing of what was learnt holds any more
 * @sp: port
 */
void repath_sa_forget(struct repath_sa_port *sp)
{
	struct repath_learnt path;
	unsigned long index;

	for (index = 0; repath_learnt_next(&sp->paths, &index, &path); index++)
		repath_event_path(sp->dev, sp->port, &path, REPATH_EV_DEL);
	repath_learnts_clear(&sp->paths);
}

/* As "%ps" has it: with the module behind it, if it is one. */
static bool is_ipoib(const struct ib_event_handler *handler)
{
	char name[KSYM_SYMBOL_LEN];
	size_t len;

	snprintf(name, sizeof(name), "%ps", handler->handler);
	len = str_has_prefix(name, "ipoib_event");
	return len && (!name[len] || name[len] == ' ');
}

/*
 * Of the events by which IPoIB asks for its paths again this one does the least: it has multicast
 * groups joined anew, and leaves the interface up. For all others it would mean more: ib_core makes the
 * table of GIDs anew, multicasts of rdma_cm end with an error, and programs hear of it.
 */
static bool tell_ipoib(struct ib_device *ibdev, u32 port)
{
	struct ib_event event = {
		.device = ibdev,
		.event = IB_EVENT_CLIENT_REREGISTER,
		.element.port_num = port,
	};
	struct ib_event_handler *handler;
	bool told = false;

	down_read(&ibdev->event_handler_rwsem);
	list_for_each_entry(handler, &ibdev->event_handler_list, list) {
		if (!is_ipoib(handler))
			continue;
		handler->handler(handler, &event);
		told = true;
	}
	up_read(&ibdev->event_handler_rwsem);
	return told;
}

/**
 * repath_sa_tell_kernel - IPoIB, which caches paths in the kernel, asks for them again
 * @sp: port
 * @next: see sa.h
 *
 * There is no event for a path. Each costs the subnet manager the joins of all groups of the port, so what
 * can wait does: a path that has only changed is still one.
 */
void repath_sa_tell_kernel(struct repath_sa_port *sp, unsigned long *next)
{
	unsigned long at = sp->told + (sp->moved ? TELL_GAP : REPATH_SA_TELL_GAP);

	if (!sp->changed && !sp->moved)
		return;
	if (time_before(jiffies, at)) {
		repath_sa_sooner(next, at);
		return;
	}
	sp->changed = false;
	sp->moved = false;
	sp->told = jiffies;
	if (tell_ipoib(sp->dev->ibdev, sp->port))
		repath_stat_inc(sp->dev, REPATH_STAT_PATH_KERNEL_TOLD);
}
