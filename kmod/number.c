// SPDX-License-Identifier: GPL-2.0
/*
 * The numbers by which queue pairs are known. One that was made anew after a move has another number
 * than its application knows and has told others. Who wants to connect to it asks here, by the known
 * number, and gets the current one, or a refusal where another queue pair may be meant as well.
 */
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "number.h"
#include "op.h"
#include "proc.h"
#include "track.h"

/**
 * struct number - a queue pair is known by another number than its own
 * @by_known: by device and @known_as
 * @by_qp: by @rqp
 * @rqp: holds a reference
 * @known_as: that number
 */
struct number {
	struct hlist_node by_known;
	struct hlist_node by_qp;
	struct repath_qp *rqp;
	u32 known_as;
};

/**
 * struct moved - a process has moved to a device
 * @node: in @moveds
 * @proc: compared only, forgotten when it leaves
 * @dev_index: never used twice
 */
struct moved {
	struct list_head node;
	const struct repath_proc *proc;
	u32 dev_index;
};

/* All protected by repath_conn_mutex. */
static DEFINE_HASHTABLE(by_known, 12);
static DEFINE_HASHTABLE(by_qp, 12);
static LIST_HEAD(moveds);
static u32 count;
static u32 keepers;	/* processes that are away, whose numbers are kept */

/*
 * That there are none any more is told a while later: anybody may have such a number, and give it up again, as
 * often as he likes, and every other process of this host would be woken each time, until its socket is full.
 */
#define NONE_AFTER	HZ

static bool none_untold;
static void tell_none(struct work_struct *work);
static DECLARE_DELAYED_WORK(none_work, tell_none);

static siphash_key_t tag_key;

static u64 known_hash(u32 dev_index, u32 known_as)
{
	return (u64)dev_index << 32 | known_as;
}

static struct number *of_qp(const struct repath_qp *rqp)
{
	struct number *number;

	hash_for_each_possible(by_qp, number, by_qp, (unsigned long)rqp)
		if (number->rqp == rqp)
			return number;
	return NULL;
}

/* As others are told: what was there a moment ago is. */
static u32 told_count(void)
{
	return READ_ONCE(count) ?: READ_ONCE(none_untold);
}

/* Its own kept numbers are in nobody's way who makes the queue pairs anew. */
static void tell_count(struct repath_proc *proc, void *arg)
{
	repath_proc_tell_numbers(proc, told_count() + keepers - !!proc->kept);
}

static void tell_none(struct work_struct *work)
{
	mutex_lock(&repath_conn_mutex);
	/* A timer that has been stopped may have started this before. */
	if (none_untold && !count) {
		WRITE_ONCE(none_untold, false);
		repath_proc_for_each(tell_count, NULL);
	}
	mutex_unlock(&repath_conn_mutex);
}

static void counted(u32 before)
{
	/* Who makes a queue pair asks for its number only while there is something to ask for. */
	if (!before == !count)
		return;
	if (!count) {
		WRITE_ONCE(none_untold, true);
		mod_delayed_work(system_power_efficient_wq, &none_work, NONE_AFTER);
	} else if (none_untold) {
		WRITE_ONCE(none_untold, false);
	} else {
		repath_proc_for_each(tell_count, NULL);
	}
}

static void drop(struct number *number)
{
	hash_del(&number->by_known);
	hash_del(&number->by_qp);
	repath_qp_unfollow();
	repath_qp_put(number->rqp);
	kfree(number);
	count--;
}

/**
 * repath_number_count - how many queue pairs are known by numbers that are not theirs
 *
 * And of how many processes numbers are kept.
 */
u32 repath_number_count(void)
{
	return told_count() + READ_ONCE(keepers);
}

/**
 * repath_number_keep - the numbers of a process are kept, or not any more
 * @proc: process
 * @keep: they are
 *
 * Context: repath_conn_mutex held.
 */
void repath_number_keep(struct repath_proc *proc, bool keep)
{
	lockdep_assert_held(&repath_conn_mutex);
	if (keep ? proc->kept++ : --proc->kept)
		return;
	keepers += keep ? 1 : -1;
	/* The only one hears nothing of its own: it matters whether there are none, one, or more. */
	if (keepers + !keep <= 2)
		repath_proc_for_each(tell_count, NULL);
}

/**
 * repath_number_known_as - the number that others know a queue pair by
 * @rqp: queue pair
 *
 * Context: repath_conn_mutex held.
 */
u32 repath_number_known_as(const struct repath_qp *rqp)
{
	const struct number *number = of_qp(rqp);

	lockdep_assert_held(&repath_conn_mutex);
	return number ? number->known_as : rqp->qpn;
}

/**
 * repath_number_is_known - is a queue pair of a device known by this number, and not its own?
 * @dev: device
 * @qpn: number
 *
 * Context: repath_conn_mutex held.
 */
bool repath_number_is_known(const struct repath_device *dev, u32 qpn)
{
	struct number *number;

	lockdep_assert_held(&repath_conn_mutex);
	hash_for_each_possible(by_known, number, by_known, known_hash(dev->index, qpn))
		if (number->rqp->dev == dev && number->known_as == qpn)
			return true;
	return false;
}

static bool is_anothers(const struct repath_qp *rqp, const struct repath_qp *other)
{
	return other->type == rqp->type && !READ_ONCE(other->gone) &&
	       repath_qp_pid(other) != repath_qp_pid(rqp);
}

/**
 * repath_number_is_anothers - does this number mean a queue pair of another process now?
 * @rqp: queue pair; of the same type and device, as who asks means one of these
 * @qpn: number
 *
 * Context: repath_conn_mutex held.
 */
bool repath_number_is_anothers(const struct repath_qp *rqp, u32 qpn)
{
	struct number *number;
	struct repath_qp *other;
	bool is;

	lockdep_assert_held(&repath_conn_mutex);
	hash_for_each_possible(by_known, number, by_known, known_hash(rqp->dev->index, qpn))
		if (number->rqp->dev == rqp->dev && number->known_as == qpn && is_anothers(rqp, number->rqp))
			return true;
	other = repath_qp_find(rqp->dev, qpn);
	if (!other)
		return false;
	is = !of_qp(other) && is_anothers(rqp, other);
	repath_qp_put(other);
	return is;
}

/**
 * repath_number_set - a queue pair is known by a number
 * @proc: whose it is
 * @rqp: queue pair
 * @known_as: the number; its own is no news
 *
 * Context: repath_conn_mutex held.
 * Return: 0 or -ENOMEM.
 */
int repath_number_set(struct repath_proc *proc, struct repath_qp *rqp, u32 known_as)
{
	struct number *number;
	u32 before = count;
	int err = 0;

	lockdep_assert_held(&repath_conn_mutex);
	number = of_qp(rqp);
	if (number) {
		if (number->known_as == known_as)
			return 0;
		drop(number);
	}
	/* Its end has been told already: nobody would drop it. */
	if (known_as != rqp->qpn && !READ_ONCE(rqp->gone)) {
		number = kzalloc(sizeof(*number), GFP_KERNEL_ACCOUNT);
		if (!number) {
			err = -ENOMEM;
			goto out;
		}
		/* The process that it is of, a follower too, may leave before its queue pair. */
		repath_qp_follow();
		kref_get(&rqp->kref);
		number->rqp = rqp;
		number->known_as = known_as;
		hash_add(by_known, &number->by_known, known_hash(rqp->dev->index, known_as));
		hash_add(by_qp, &number->by_qp, (unsigned long)rqp);
		count++;
	}
out:
	counted(before);
	return err;
}

/**
 * repath_number_has_moved - has a process moved to a device?
 * @proc: process
 * @dev: device
 *
 * Context: repath_conn_mutex held.
 */
bool repath_number_has_moved(const struct repath_proc *proc, const struct repath_device *dev)
{
	struct moved *moved;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry(moved, &moveds, node)
		if (moved->proc == proc && moved->dev_index == dev->index)
			return true;
	return false;
}

static void moved_drop(struct moved *moved)
{
	list_del(&moved->node);
	kfree(moved);
}

/**
 * repath_number_moved - a process has moved to a device
 * @proc: process
 * @dev: device
 *
 * Context: repath_conn_mutex held.
 */
void repath_number_moved(struct repath_proc *proc, struct repath_device *dev)
{
	struct moved *moved;

	lockdep_assert_held(&repath_conn_mutex);
	if (READ_ONCE(proc->left) || repath_number_has_moved(proc, dev))
		return;
	moved = kzalloc(sizeof(*moved), GFP_KERNEL | __GFP_NOFAIL);
	moved->proc = proc;
	moved->dev_index = dev->index;
	list_add(&moved->node, &moveds);
}

/**
 * repath_number_qp_gone - a queue pair was destroyed
 * @rqp: queue pair
 *
 * Context: repath_conn_mutex held.
 */
void repath_number_qp_gone(struct repath_qp *rqp)
{
	struct number *number;
	u32 before = count;

	lockdep_assert_held(&repath_conn_mutex);
	number = of_qp(rqp);
	if (number)
		drop(number);
	counted(before);
}

/**
 * repath_number_proc_left - a process is not there any more
 * @proc: process
 *
 * Its queue pairs, and with them their numbers, go by themselves.
 *
 * Context: repath_conn_mutex held.
 */
void repath_number_proc_left(struct repath_proc *proc)
{
	struct moved *moved, *next;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry_safe(moved, next, &moveds, node)
		if (moved->proc == proc)
			moved_drop(moved);
}

/* --- finding --- */

/**
 * struct search - for the queue pair that somebody means by a number
 * @ask: the question
 * @best: the one that is connected to the asker, or may be; holds a reference
 * @free: how many are connected to nobody yet
 * @elsewhere: how many are connected to others
 * @mutual: one is connected to the asker
 * @named: @best is known by the number, which its process has told
 */
struct search {
	const struct repath_resolve *ask;
	struct repath_qp *best;
	u32 free;
	u32 elsewhere;
	bool mutual;
	bool named;
};

/* A port may have several LIDs, as many as the own one: the subnet manager gives all ports the same LMC. */
static bool is_same_port(struct repath_device *dev, u32 port, u32 lid, u32 other)
{
	u8 lmc = 0;

	if (repath_device_use(dev)) {
		ib_get_cached_lmc(dev->ibdev, port, &lmc);
		repath_device_unuse(dev);
	}
	return lid >> lmc == other >> lmc;
}

/* By the number alone it may be another host's. */
static bool leads_to_asker(const struct search *s, struct repath_qp *rqp, const struct repath_path *path)
{
	if (path->dest_qpn != be32_to_cpu(s->ask->src_qpn))
		return false;
	if (path->has_grh)
		return !memcmp(&path->dgid, s->ask->src_gid, sizeof(path->dgid));
	return is_same_port(rqp->dev, path->port, path->dlid, be32_to_cpu(s->ask->src_lid));
}

static bool is_elsewhere(const struct search *s, struct repath_qp *rqp, bool *mutual)
{
	struct repath_path path;
	u8 state;

	*mutual = false;
	if (!repath_qp_is_connected_type(rqp))
		return false;
	repath_qp_snapshot(rqp, &state, &path);
	if (state < IB_QPS_RTR || state > IB_QPS_SQE || !path.has_av)
		return false;
	*mutual = leads_to_asker(s, rqp, &path);
	return !*mutual;
}

/* With a reference, or NULL: the kernel's own, or a process without the shim. */
static struct repath_proc *proc_of(const struct repath_qp *rqp)
{
	return rqp->kernel || !repath_qp_pid(rqp) ? NULL : repath_proc_find(repath_qp_pid(rqp));
}

static bool is_of(struct repath_qp *rqp, u64 cookie)
{
	struct repath_proc *proc;
	bool same;

	if (!cookie)
		return true;
	proc = proc_of(rqp);
	same = proc && proc->cookie == cookie;
	repath_proc_put(proc);
	return same;
}

static void consider(struct search *s, struct repath_qp *rqp, bool named)
{
	bool mutual, elsewhere;

	if (rqp->type != s->ask->qp_type || READ_ONCE(rqp->gone) ||
	    !is_of(rqp, be64_to_cpu(s->ask->dst_cookie)))
		return;
	elsewhere = is_elsewhere(s, rqp, &mutual);
	if (elsewhere)
		s->elsewhere++;
	else
		s->free++;
	if (s->mutual || (s->best && elsewhere))
		return;
	s->mutual = mutual;
	s->named = named;
	if (s->best)
		repath_qp_put(s->best);
	kref_get(&rqp->kref);
	s->best = rqp;
}

static void search_device(struct search *s, struct repath_device *dev)
{
	u32 qpn = be32_to_cpu(s->ask->qpn);
	struct number *number;
	struct repath_qp *rqp;

	hash_for_each_possible(by_known, number, by_known, known_hash(dev->index, qpn))
		if (number->rqp->dev == dev && number->known_as == qpn)
			consider(s, number->rqp, true);
	rqp = repath_qp_find(dev, qpn);
	if (!rqp)
		return;
	/* One that is known by another number is not meant by its own. */
	if (!of_qp(rqp))
		consider(s, rqp, false);
	repath_qp_put(rqp);
}

/* Both ends have confirmed that it is another process's peer. */
static bool is_taken(const struct search *s)
{
	struct repath_conn *conn;

	if (s->mutual || !repath_qp_is_connected_type(s->best))
		return false;
	conn = repath_conn_by_qp(s->best->dev, s->best->qpn);
	return conn && conn->state == REPATH_CONN_READY && !conn->moving && conn->remote &&
	       conn->remote->cookie != be64_to_cpu(s->ask->src_cookie);
}

static void fill(struct repath_resolved *answer, struct repath_qp *rqp)
{
	struct repath_proc *proc = proc_of(rqp);
	u32 flags = 0;

	if (proc && repath_number_has_moved(proc, rqp->dev))
		flags |= REPATH_RESOLVED_MOVED;
	answer->tag = cpu_to_be64(siphash_1u64((unsigned long)rqp, &tag_key));
	answer->qpn = cpu_to_be32(rqp->qpn);
	answer->flags = cpu_to_be32(flags);
	repath_proc_put(proc);
}

/*
 * Is its process about to say by which number it is known? Or is another one known by this number whose
 * process is away? It may come, and be the one that is meant.
 */
static bool is_unsure(const struct search *s, const struct repath_device *dev, const struct net *net)
{
	const struct repath_resolve *ask = s->ask;
	struct repath_proc *proc = proc_of(s->best);
	bool unsure;

	if (s->mutual)
		unsure = false;
	else if (proc && !s->named && repath_op_between(net, s->best->dev, proc->cookie))
		unsure = true;
	else
		unsure = repath_op_keeps_at(dev, ask->dst_gid, ask->qp_type, be32_to_cpu(ask->qpn),
					    be64_to_cpu(ask->dst_cookie), proc,
					    s->named ? s->best : NULL);
	repath_proc_put(proc);
	return unsure;
}

/**
 * repath_number_find - find the queue pair that somebody means by a number
 * @dev: device that the question came to
 * @ask: the question
 * @answer: result
 * @found: the queue pair with a reference, if the answer is REPATH_PEER_OK
 *
 * Of several, one that is connected to the asker is meant; else the one that is connected to nobody.
 * Two of those can not be told apart. While processes are between two devices, one that bears the number
 * may not be the one that is known by it, and one that is not there may come.
 *
 * Context: repath_op_mutex and repath_conn_mutex held.
 * Return: enum repath_peer_status.
 */
u8 repath_number_find(struct repath_device *dev, const struct repath_resolve *ask,
		      struct repath_resolved *answer, struct repath_qp **found)
{
	struct net *net = repath_device_net(dev);
	struct search s = { .ask = ask };
	struct repath_device *each;
	u8 status = REPATH_PEER_OK;
	u64 cookie = be64_to_cpu(ask->dst_cookie);

	lockdep_assert_held(&repath_conn_mutex);
	*found = NULL;
	if (cookie) {
		/* A process is meant, wherever on this host its queue pair is. */
		repath_device_for_each(each, net)
			search_device(&s, each);
	} else {
		search_device(&s, dev);
	}
	if (!s.best)
		return repath_op_between(net, NULL, cookie) ? REPATH_PEER_BUSY : REPATH_PEER_NO_QP;
	if (is_unsure(&s, dev, net))
		status = REPATH_PEER_BUSY;
	else if (!s.mutual && (s.free > 1 || (!s.free && s.elsewhere > 1)))
		status = REPATH_PEER_AMBIGUOUS;
	else if (is_taken(&s))
		status = REPATH_PEER_TAKEN;
	if (status) {
		repath_qp_put(s.best);
		return status;
	}
	fill(answer, s.best);
	*found = s.best;
	return REPATH_PEER_OK;
}

void repath_number_init(void)
{
	get_random_bytes(&tag_key, sizeof(tag_key));
}

/*
 * Notes, netlink and the carrier are gone: nobody adds one. The devices' queue pairs are gone, too; processes may be
 * registered still.
 */
void repath_number_exit(void)
{
	struct moved *moved, *other;
	struct number *number;
	struct hlist_node *next;
	int row;

	cancel_delayed_work_sync(&none_work);
	mutex_lock(&repath_conn_mutex);
	none_untold = false;
	hash_for_each_safe(by_known, row, next, number, by_known)
		drop(number);
	list_for_each_entry_safe(moved, other, &moveds, node)
		moved_drop(moved);
	mutex_unlock(&repath_conn_mutex);
}
