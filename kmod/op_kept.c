// SPDX-License-Identifier: GPL-2.0
/*
 * The numbers by which queue pairs are known whose process is away from its device. There a stranger's
 * may take them meanwhile, and so on the device where the process will be: who asks for such a number is
 * told to wait, and no process with a shim takes it.
 */
#include <linux/bsearch.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <net/net_namespace.h>

#include "conn.h"
#include "device.h"
#include "local.h"
#include "number.h"
#include "op.h"
#include "proc.h"
#include "track.h"

/**
 * struct repath_kept - the numbers of a process on a device
 * @any: it may have had any number: there was no memory to note them
 * @n: entries of @keys
 * @max: room in it
 * @keys: type and number, sorted
 * @ngids: entries of @gids; 0: not known
 * @gids: by which the device could be reached; they may go with the process
 */
struct repath_kept {
	bool any;
	u32 n;
	u32 max;
	u32 *keys;
	u32 ngids;
	union ib_gid *gids;
};

/* Processes of which numbers are kept; repath_op_mutex. Of operations that have ended there are none. */
static unsigned int keepers;

struct keeping {
	struct repath_kept *kept;
	const struct repath_device *dev;
};

static u32 key_of(u8 type, u32 qpn)
{
	return type << 24 | qpn;
}

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static int count_qps(struct repath_user *user, void *arg)
{
	u32 *count = arg;

	*count += READ_ONCE(user->qp_count);
	return 0;
}

static int keep_qp(struct repath_qp *rqp, void *arg)
{
	const struct keeping *keeping = arg;
	struct repath_kept *kept = keeping->kept;

	if (rqp->dev != keeping->dev)
		return 0;
	if (kept->n == kept->max) {
		kept->any = true;
		return 1;
	}
	kept->keys[kept->n++] = key_of(rqp->type, repath_number_known_as(rqp));
	return 0;
}

static void keep_all(struct repath_kept *kept, struct repath_device *dev, struct pid *tgid)
{
	struct keeping keeping = { kept, dev };
	u32 max = 0;

	if (repath_user_for_each(dev, tgid, count_qps, &max))
		kept->any = true;
	if (max)
		kept->keys = kvmalloc_array(max, sizeof(*kept->keys), GFP_KERNEL);
	if (kept->keys)
		kept->max = max;
	if (repath_qp_walk_of(tgid, keep_qp, &keeping))
		kept->any = true;
	sort(kept->keys, kept->n, sizeof(*kept->keys), compare, NULL);
}

/**
 * repath_op_keep - a process is about to leave its device
 * @op: operation
 * @p: the process; its shim makes no queue pair any more, and has destroyed none yet
 *
 * Context: repath_op_mutex held, takes repath_conn_mutex.
 */
void repath_op_keep(struct repath_op *op, struct repath_op_proc *p)
{
	struct repath_kept *kept;

	lockdep_assert_held(&repath_op_mutex);
	if (p->kept || !p->proc || repath_op_is_final(op))
		return;
	kept = kzalloc(sizeof(*kept), GFP_KERNEL | __GFP_NOFAIL);
	kept->gids = repath_local_gids(op->dev, &kept->ngids);
	mutex_lock(&repath_conn_mutex);
	keep_all(kept, op->dev, p->tgid);
	repath_number_keep(p->proc, true);
	mutex_unlock(&repath_conn_mutex);
	p->kept = kept;
	keepers++;
}

/**
 * repath_op_unkeep - a process is where it stays, or is no more
 * @p: the process
 *
 * Context: repath_op_mutex held, takes repath_conn_mutex.
 */
void repath_op_unkeep(struct repath_op_proc *p)
{
	lockdep_assert_held(&repath_op_mutex);
	if (!p->kept)
		return;
	mutex_lock(&repath_conn_mutex);
	repath_number_keep(p->proc, false);
	mutex_unlock(&repath_conn_mutex);
	kvfree(p->kept->keys);
	kvfree(p->kept->gids);
	kfree(p->kept);
	p->kept = NULL;
	keepers--;
}

static bool has(const struct repath_kept *kept, u8 type, u32 qpn)
{
	u32 key = key_of(type, qpn);

	return kept->any || bsearch(&key, kept->keys, kept->n, sizeof(key), compare);
}

/* May the process be meant by this address, which leads to @dev? One of zeroes is a LID's. */
static bool is_at(const struct repath_op *op, const struct repath_kept *kept,
		  const struct repath_device *dev, const u8 gid[16])
{
	u32 i;

	if (op->dev == dev || op->new_dev == dev || !kept->ngids || !memchr_inv(gid, 0, 16))
		return true;
	for (i = 0; i < kept->ngids; i++)
		if (!memcmp(&kept->gids[i], gid, 16))
			return true;
	return false;
}

struct query {
	const struct repath_device *dev;
	const u8 *gid;
	u8 type;
	u32 qpn;
	u64 cookie;
	const struct repath_proc *but;
	const struct repath_qp *named;	/* the one of @but, if that has said its number */
	bool kept;
};

/*
 * Was a queue pair made anew for this resume, on the device that it goes to? Another one of the process may have come
 * there before it, from a third device, and be known by the same number. Of one that was adopted nobody knows.
 */
static bool is_anew(const struct repath_qp *rqp, const struct repath_op *op, const struct repath_op_proc *p)
{
	return rqp && rqp->dev == op->new_dev &&
	       (!rqp->created_ns || rqp->created_ns >= op->started_ns + p->stage_ns[REPATH_STAGE_NONE]);
}

static bool matches(const struct query *q, const struct repath_op *op,
		    const struct repath_op_proc *p)
{
	if (!p->kept || (q->cookie && p->proc->cookie != q->cookie))
		return false;
	/* Its own is the one that is meant, when it has said so of one on the device that it comes to. */
	if (p->proc == q->but && (p->stage >= REPATH_STAGE_RECREATE ||
				  (op->state == REPATH_OP_RESUMING && is_anew(q->named, op, p))))
		return false;
	return has(p->kept, q->type, q->qpn) && is_at(op, p->kept, q->dev, q->gid);
}

static void look(struct repath_op *op, void *arg)
{
	const struct repath_op_proc *p;
	struct query *q = arg;

	if (repath_op_is_final(op) || !net_eq(op->net, repath_device_net(q->dev)))
		return;
	list_for_each_entry(p, &op->procs, node)
		q->kept |= matches(q, op, p);
}

struct wish {
	const struct repath_device *dev;
	u32 qpn;
	const struct repath_proc *asker;
	bool kept;
	bool away;	/* is the asker itself, from this device or on its way to it */
};

static void look_for_wish(struct repath_op *op, void *arg)
{
	const struct repath_op_proc *p;
	struct wish *w = arg;

	/* Where those will be that nobody resumes yet is not known. */
	if (repath_op_is_final(op) || !net_eq(op->net, repath_device_net(w->dev)) ||
	    (op->new_dev && op->new_dev != w->dev && op->dev != w->dev))
		return;
	list_for_each_entry(p, &op->procs, node) {
		if (!p->kept)
			continue;
		if (p->proc == w->asker)
			w->away |= op->dev == w->dev || op->new_dev == w->dev;
		else
			w->kept |= has(p->kept, IB_QPT_RC, w->qpn) ||
				   has(p->kept, IB_QPT_UC, w->qpn) ||
				   has(p->kept, IB_QPT_UD, w->qpn);
	}
}

/**
 * repath_op_keeps - shall a process not have a queue pair of this number?
 * @dev: its device
 * @qpn: the number
 * @asker: the process; NULL: one that is not registered
 *
 * One that comes back itself to this device may: its queue pairs are meant by the numbers that they had.
 *
 * Context: repath_op_mutex held.
 */
bool repath_op_keeps(const struct repath_device *dev, u32 qpn, const struct repath_proc *asker)
{
	struct wish w = { .dev = dev, .qpn = qpn, .asker = asker };

	if (keepers)
		repath_op_for_each(look_for_wish, &w);
	return w.kept && !w.away;
}

/**
 * repath_op_keeps_at - may one be meant that is away, and not the one that bears the number now?
 * @dev: the device that the question has come to
 * @gid: the address that was asked
 * @type: enum ib_qp_type
 * @qpn: the number
 * @cookie: of the process that is meant; 0: not known
 * @owner: whose queue pair bears the number now; NULL: of no process with a shim
 * @named: that queue pair, if @owner has said that it is known by the number; NULL: it has not
 *
 * Context: repath_op_mutex held.
 */
bool repath_op_keeps_at(const struct repath_device *dev, const u8 gid[16], u8 type, u32 qpn,
			u64 cookie, const struct repath_proc *owner,
			const struct repath_qp *named)
{
	struct query q = {
		.dev = dev, .gid = gid, .type = type, .qpn = qpn, .cookie = cookie, .but = owner,
		.named = named,
	};

	if (keepers)
		repath_op_for_each(look, &q);
	return q.kept;
}

struct own {
	const struct repath_proc *proc;
	u8 type;
	u32 qpn;
	bool kept;
};

static void look_for_own(struct repath_op *op, void *arg)
{
	const struct repath_op_proc *p;
	struct own *own = arg;

	if (repath_op_is_final(op))
		return;
	list_for_each_entry(p, &op->procs, node)
		own->kept |= p->kept && p->proc == own->proc && has(p->kept, own->type, own->qpn);
}

/**
 * repath_op_keeps_of - is this the number of a queue pair of a process that is away?
 * @proc: the process
 * @type: enum ib_qp_type
 * @qpn: the number
 *
 * Context: repath_op_mutex held.
 */
bool repath_op_keeps_of(const struct repath_proc *proc, u8 type, u32 qpn)
{
	struct own own = { .proc = proc, .type = type, .qpn = qpn };

	if (keepers)
		repath_op_for_each(look_for_own, &own);
	return own.kept;
}
