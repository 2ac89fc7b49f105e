// SPDX-License-Identifier: GPL-2.0
/*
 * One queue pair on its way to another path: what is done to it, step by step. No step waits.
 *
 * By SQD first where the device can: it takes one end only, the owner sees no event, and it ends
 * within the time of what was begun. By APM where the new path was told in time to be loaded, so
 * that nothing has to be answered on the old one any more, and on devices that can not drain.
 *
 * A queue pair has an owner, who does not know of this. Its modifications and ours are in order
 * because the driver takes a lock; between two of ours the owner may do what it likes, and the
 * hooks tell (repath_move::foreign). What we do must be right after any of it: RTS is commanded
 * only out of an SQD that is ours, and in any state that the owner can have chosen meanwhile but
 * SQD the device refuses it, or it is no change.
 */
#include <linux/ktime.h>
#include <rdma/ib_verbs.h>

#include "event.h"
#include "range.h"
#include "reroute_qp.h"
#include "reroute_shim.h"
#include "stat.h"
#include "trace.h"

/* Of a device that may not answer once. */
#define RELEASE_TRIES	3

static unsigned int reroute_drain_ms = 5000;
REPATH_RANGE_PARAM(reroute_drain_ms, 10, 600000, 0644);
MODULE_PARM_DESC(reroute_drain_ms,
		 "how long a send queue may take to drain for a new path, in ms (5000; 10 to 600000)");

static unsigned int reroute_arm_ms = 1000;
REPATH_RANGE_PARAM(reroute_arm_ms, 10, 600000, 0644);
MODULE_PARM_DESC(reroute_arm_ms,
		 "how long an alternate path may take to be armed, in ms (1000; 10 to 600000)");

static unsigned int reroute_hold_ms = 2000;
REPATH_RANGE_PARAM(reroute_hold_ms, 10, 600000, 0644);
MODULE_PARM_DESC(reroute_hold_ms,
		 "how long to wait for the new path after the old one was taken away, in ms (2000; 10 to 600000)");

static unsigned int reroute_again_ms = 1000;
REPATH_RANGE_PARAM(reroute_again_ms, 10, 600000, 0644);
MODULE_PARM_DESC(reroute_again_ms,
		 "when to try again to move a queue pair, in ms (1000; 10 to 600000)");

/* Rounds through all ways, each twice as long; then it is said that it has not moved. */
#define ROUNDS 6

/**
 * repath_move_is_serialised - may we modify queue pairs of a device?
 * @ibdev: device
 *
 * Modifications of others' queue pairs, the kernel's own too, are ours to mix in only where the driver takes a
 * lock. rxe looks at the state and sets it later, and clears the address that answers are being sent by before it writes
 * it, under none (6.1): an owner's RESET in between would be undone. There the shims have to do it.
 */
bool repath_move_is_serialised(const struct ib_device *ibdev)
{
	switch (ibdev->ops.driver_id) {
	case RDMA_DRIVER_MLX4:
	case RDMA_DRIVER_MLX5:
	case RDMA_DRIVER_HFI1:
	case RDMA_DRIVER_QIB:
		return true;
	default:
		return false;
	}
}

/**
 * repath_move_begin_step - from now on this is done
 * @move: of the queue pair
 * @step: what
 */
void repath_move_begin_step(struct repath_move *move, enum repath_move_step step)
{
	unsigned int ms = 0;

	/* The longer, the oftener it was in vain: an idle one is armed when it has something to send. */
	if (step == REPATH_STEP_LATER)
		ms = reroute_again_ms << move->rounds;
	else if (step == REPATH_STEP_DRAINING)
		ms = move->go ? reroute_drain_ms : reroute_hold_ms;
	else if (step == REPATH_STEP_ARMING)
		ms = (move->go ? reroute_arm_ms : reroute_hold_ms) << move->rounds;
	move->step = step;
	move->begun = jiffies;
	move->polled = jiffies;
	move->until = jiffies + msecs_to_jiffies(ms);
}

static void set_state(struct repath_move *move, enum repath_move_state state, const char *why)
{
	unsigned long flags;

	spin_lock_irqsave(&move->lock, flags);
	move->state = state;
	move->why = why;
	spin_unlock_irqrestore(&move->lock, flags);
}

static void say(struct repath_reroute *r, struct repath_move *move, enum repath_move_state state,
		const char *why)
{
	static const enum repath_stat stats[] = {
		[REPATH_MOVE_LOST]   = REPATH_STAT_MOVE_LOST,
		[REPATH_MOVE_NO_WAY] = REPATH_STAT_MOVE_NO_WAY,
		[REPATH_MOVE_FAILED] = REPATH_STAT_MOVE_FAILED,
	};
	struct repath_path path;

	if (state < ARRAY_SIZE(stats) && stats[state])
		repath_stat_inc(r->dev, stats[state]);
	set_state(move, state, why);
	repath_qp_snapshot(move->rqp, NULL, &path);
	trace_move(r->dev->index, move->rqp->qpn, path.dlid, path.sl, state, move->by);
}

/**
 * repath_move_end - it stays as it is
 * @r: its device
 * @move: of the queue pair
 * @state: what has become of it
 * @why: for a person; lives as long as the module
 */
enum repath_move_next repath_move_end(struct repath_reroute *r, struct repath_move *move,
				      enum repath_move_state state, const char *why)
{
	say(r, move, state, why);
	move->step = REPATH_STEP_IDLE;
	return REPATH_NEXT_DONE;
}

/**
 * repath_move_done - it is on its new path
 * @r: its device
 * @move: of the queue pair
 */
enum repath_move_next repath_move_done(struct repath_reroute *r, struct repath_move *move)
{
	static const struct {
		enum repath_moved_by by;
		enum repath_stat stat;
	} ways[REPATH_WAYS] = {
		[REPATH_WAY_APM]   = { REPATH_BY_APM, REPATH_STAT_MOVED_APM },
		[REPATH_WAY_SQD]   = { REPATH_BY_SQD, REPATH_STAT_MOVED_SQD },
		[REPATH_WAY_CYCLE] = { REPATH_BY_CYCLE, REPATH_STAT_MOVED_CYCLE },
	};
	unsigned long flags;

	r->can[move->way] = REPATH_CAN_YES;
	/* Shims have connected it in its owner's name. */
	if (move->way == REPATH_WAY_CYCLE)
		move->addressed = READ_ONCE(move->foreign_av);
	spin_lock_irqsave(&move->lock, flags);
	move->by = ways[move->way].by;
	move->leaves = false;
	move->since_ns = move->arrived_ns;
	move->count++;
	spin_unlock_irqrestore(&move->lock, flags);
	repath_stat_inc(r->dev, ways[move->way].stat);
	return repath_move_end(r, move, REPATH_MOVE_MOVED, NULL);
}

/**
 * repath_move_next_way - this way did not lead there
 * @r: its device
 * @move: of the queue pair
 * @never: nor will it with another queue pair of the device, as it seems
 * @why: for a person; lives as long as the module
 */
enum repath_move_next repath_move_next_way(struct repath_reroute *r, struct repath_move *move,
					   bool never, const char *why)
{
	unsigned long flags;

	if (never && move->way != REPATH_WAY_CYCLE && r->can[move->way] == REPATH_CAN_UNKNOWN)
		r->can[move->way] = REPATH_CAN_NOT;
	move->tried |= BIT(move->way);
	spin_lock_irqsave(&move->lock, flags);
	move->why = why;
	spin_unlock_irqrestore(&move->lock, flags);
	repath_stat_inc(r->dev, REPATH_STAT_MOVE_AGAIN);
	repath_move_begin_step(move, REPATH_STEP_START);
	return REPATH_NEXT_WAIT;
}

static bool may_try(const struct repath_reroute *r, const struct repath_move *move,
		    enum repath_way way)
{
	return r->can[way] != REPATH_CAN_NOT && !(move->tried & BIT(way));
}

/* All ways were tried. */
static enum repath_move_next give_up(struct repath_reroute *r, struct repath_move *move,
				     const struct ib_qp *qp, u8 state, bool may_apm, bool may_cycle)
{
	const char *why = "the device can neither drain nor migrate";

	if (repath_path_is_roce(&move->to))
		why = "the device does not drain, and RoCE has no alternate paths";
	else if (!qp->event_handler)
		why = "the device does not drain, and its owner hears no events";
	else if (!may_apm)
		why = "the device does not drain, and the alternate path is its owner's";
	if (r->can[REPATH_WAY_SQD] == REPATH_CAN_NOT &&
	    (!may_apm || r->can[REPATH_WAY_APM] == REPATH_CAN_NOT) && !may_cycle)
		return repath_move_end(r, move, REPATH_MOVE_NO_WAY, why);
	if (move->rounds < ROUNDS && ++move->rounds == ROUNDS) {
		say(r, move, REPATH_MOVE_FAILED, move->why ?: "its peer's host has not answered yet");
		repath_event_qp(move->rqp, REPATH_EV_CHANGE);
	}
	/* One that is idle is moved when it sends, however late that is. */
	if (move->rounds == ROUNDS && !READ_ONCE(move->loaded) && state != IB_QPS_RTR) {
		move->step = REPATH_STEP_IDLE;
		return REPATH_NEXT_DONE;
	}
	move->tried = 0;
	repath_move_begin_step(move, REPATH_STEP_LATER);
	return REPATH_NEXT_WAIT;
}

/* Why it can not be moved where it is, whatever its device can; NULL: maybe it can. */
static const char *why_not_in_place(const struct repath_move *move, const struct ib_qp *qp,
				    u8 state, const struct repath_path *path)
{
	if (!repath_move_is_serialised(qp->device))
		return "the device's driver takes no lock when it modifies a queue pair";
	if (move->to.has & REPATH_PATH_MTU && move->to.mtu < path->mtu)
		return "the new path carries smaller packets";
	/* It answers by its address, and can not be told another one before it sends. */
	if (state == IB_QPS_RTR)
		return "it has not begun to send";
	return NULL;
}

/*
 * Or has its peer moved to another LID, its owner connected it to another one, or it gone over to an
 * alternate path?
 */
static bool leads_there(const struct repath_move *move, const struct repath_path *path)
{
	if (path->port != move->port || (move->to.slid && path->path_bits != move->path_bits))
		return false;
	if (repath_path_is_roce(&move->to))
		return !memcmp(&path->dgid, move->to.dgid, sizeof(path->dgid));
	return path->dlid == move->to.dlid || path->dlid == move->to.new_dlid || path->dlid == move->via;
}

/* What was loaded for the peer's sake alone does not speak against draining, if the device may do that. */
static bool is_loaded_to_go(const struct repath_reroute *r, const struct repath_move *move)
{
	return READ_ONCE(move->loaded) && !(move->loaded_for_peer && r->can[REPATH_WAY_SQD] == REPATH_CAN_UNKNOWN);
}

static enum repath_move_next start(struct repath_reroute *r, struct repath_move *move,
				   struct ib_qp *qp, u8 state, const struct repath_path *path)
{
	bool may_apm, may_cycle;
	const char *why;

	/* Its address is the shim's to set, until it is connected again. */
	if (repath_shim_is_moving(move->rqp))
		return REPATH_NEXT_WAIT;
	if (state == IB_QPS_ERR)
		return repath_move_lost(r, move);
	if (state != IB_QPS_RTR && state != IB_QPS_RTS && state != IB_QPS_SQD)
		return repath_move_end(r, move, REPATH_MOVE_NONE, "it is not connected");
	if (!leads_there(move, path))
		return repath_move_end(r, move, REPATH_MOVE_NONE, "it is on another path by now");
	if (!move->hold && repath_path_is_enough(qp->device, &move->to, path))
		return repath_move_stay(r, move, qp);
	move->leaves = true;
	why = why_not_in_place(move, qp, state, path);
	may_cycle = repath_path_keeps_pkey(qp->device, &move->to, path) &&
		    repath_shim_may_cycle(move->rqp);
	if (why && state != IB_QPS_RTR && !may_cycle)
		return repath_move_end(r, move, REPATH_MOVE_NO_WAY, why);
	if (r->paused)
		return REPATH_NEXT_WAIT;

	may_apm = !repath_path_is_roce(&move->to) && repath_move_may_load(move, qp);
	if (why)
		move->tried |= BIT(REPATH_WAY_APM) | BIT(REPATH_WAY_SQD);
	if (move->rounds < ROUNDS)
		set_state(move, move->hold ? REPATH_MOVE_WAITING : REPATH_MOVE_MOVING, why ?: move->why);
	if (may_apm && may_try(r, move, REPATH_WAY_APM) && state == IB_QPS_RTS && !move->hold &&
	    (!move->go || is_loaded_to_go(r, move) || !may_try(r, move, REPATH_WAY_SQD)))
		return repath_move_load(r, move, qp, path);
	if (may_try(r, move, REPATH_WAY_SQD) && (move->go || move->hold))
		return repath_move_begin_sqd(r, move, qp);
	if (!move->go)
		return repath_move_end(r, move, REPATH_MOVE_NONE, NULL);
	/* What its owner has drained stays so: it can not be connected anew. */
	if (state != IB_QPS_SQD && may_try(r, move, REPATH_WAY_CYCLE) && may_cycle &&
	    repath_shim_can_cycle(move->rqp))
		return repath_move_begin_cycle(r, move);
	return give_up(r, move, qp, state, may_apm, may_cycle);
}

static enum repath_move_next step(struct repath_reroute *r, struct repath_move *move,
				  struct ib_qp *qp)
{
	struct repath_path path;
	u8 state;

	repath_qp_snapshot(move->rqp, &state, &path);
	/* From now on it is the shim that says where it goes; then it is looked at again. */
	if ((move->step == REPATH_STEP_DRAINING || move->step == REPATH_STEP_ARMING) &&
	    repath_shim_is_moving(move->rqp)) {
		if (repath_move_leave_sqd(move, qp))
			repath_move_begin_step(move, REPATH_STEP_START);
		return REPATH_NEXT_WAIT;
	}
	switch (move->step) {
	case REPATH_STEP_DRAINING:
		if (leads_there(move, &path))
			return repath_move_drain(r, move, qp, &path);
		break;
	case REPATH_STEP_ARMING:
		return repath_move_arm(r, move, qp);
	case REPATH_STEP_CYCLING:
		return repath_move_cycle(r, move, state, &path);
	case REPATH_STEP_VERIFY:
		return repath_move_verify(r, move, qp);
	case REPATH_STEP_LATER:
		if (repath_move_is_armed(move, qp))
			break;
		if (!repath_move_is_late(move))
			return REPATH_NEXT_WAIT;
		if (move->rounds < ROUNDS || !READ_ONCE(move->loaded) || READ_ONCE(move->in_sqd) ||
		    !leads_there(move, &path) || repath_path_is_enough(qp->device, &move->to, &path))
			break;
		/* Nothing is tried any more but to wait for that, the device asked less and less often. */
		move->until = jiffies + msecs_to_jiffies(reroute_again_ms << ROUNDS);
		return REPATH_NEXT_WAIT;
	default:
		break;
	}
	return start(r, move, qp, state, &path);
}

/**
 * repath_move_step - go on with one queue pair, as far as it goes without waiting
 * @r: its device
 * @move: in the list
 *
 * Context: the work item.
 */
enum repath_move_next repath_move_step(struct repath_reroute *r, struct repath_move *move)
{
	enum repath_move_next next;
	struct ib_qp *qp;

	do {
		qp = repath_qp_use(move->rqp);
		if (!qp)
			return repath_move_end(r, move, REPATH_MOVE_NONE, "it has gone");
		next = step(r, move, qp);
		/* However it has ended: not in a state that its owner does not know of. */
		if (next == REPATH_NEXT_DONE && !repath_move_leave_sqd(move, qp)) {
			repath_move_begin_step(move, REPATH_STEP_LATER);
			next = REPATH_NEXT_WAIT;
		}
		repath_qp_unuse(qp);
	} while (next == REPATH_NEXT_AGAIN);
	return next;
}

static bool is_same(const struct repath_new_path *a, const struct repath_new_path *b)
{
	return a->new_dlid == b->new_dlid && a->has == b->has && a->sl == b->sl &&
	       a->tclass == b->tclass && a->rate == b->rate && a->pkey == b->pkey && a->mtu == b->mtu;
}

/* The same lane to the same port; a report and a record may tell different things besides. */
static bool is_same_place(const struct repath_new_path *a, const struct repath_new_path *b)
{
	return a->dlid == b->dlid && a->new_dlid == b->new_dlid && a->sl == b->sl &&
	       a->tclass == b->tclass &&
	       !((a->has ^ b->has) & (REPATH_PATH_SL | REPATH_PATH_TCLASS));
}

/* Another subnet manager, or one that has begun anew, counts from the beginning. */
static bool is_older(const struct repath_new_path *a, const struct repath_new_path *b)
{
	return a->serial && b->serial && a->epoch == b->epoch && (s32)(a->serial - b->serial) < 0;
}

/**
 * repath_move_is_to - is a queue pair on its way to a path already?
 * @move: of the queue pair
 * @to: the path
 *
 * Context: the work item.
 */
bool repath_move_is_to(const struct repath_move *move, const struct repath_new_path *to)
{
	return !list_empty(&move->node) && move->go && is_same(&move->to, to);
}

/**
 * repath_move_want - a queue pair shall go to a path
 * @move: of the queue pair
 * @to: the path
 * @go: now; else it is only announced
 *
 * Context: the work item.
 * Return: false if it knows of a newer one already, or is on its way and this one is only announced.
 */
bool repath_move_want(struct repath_move *move, const struct repath_new_path *to, bool go)
{
	bool was_same = is_same(&move->to, to), same_place = is_same_place(&move->to, to);
	bool had_gone = move->go;

	if (is_older(to, &move->to))
		return false;
	/* What is announced will be told yet; until then it goes on to where it shall be now. */
	if (!go && had_gone && !list_empty(&move->node))
		return false;
	move->to = *to;
	move->wanted_ns = ktime_get_boottime_ns();
	move->addressed = READ_ONCE(move->foreign_av);
	move->via = 0;
	move->go = go;
	move->leaves &= same_place;
	move->hold = false;
	move->tried = 0;
	move->rounds = 0;
	/* What is draining gets the address when it is drained. */
	if (move->step == REPATH_STEP_DRAINING)
		repath_move_begin_step(move, REPATH_STEP_DRAINING);
	else if (move->step == REPATH_STEP_CYCLING && was_same && had_gone)
		;	/* the shims know it, and would connect it once more */
	else if (move->step == REPATH_STEP_CYCLING)
		repath_move_cycle_anew(move);
	else if (move->step == REPATH_STEP_VERIFY && same_place)
		;	/* it is there, as it seems */
	else if (move->step != REPATH_STEP_ARMING || !was_same)
		repath_move_begin_step(move, REPATH_STEP_START);
	else
		repath_move_begin_step(move, REPATH_STEP_ARMING);
	return true;
}

/**
 * repath_move_hold - a queue pair shall not send until its new path is told
 * @move: of the queue pair
 * @dlid: of the path that breaks
 *
 * Context: the work item.
 * Return: false if it is on its way already.
 */
bool repath_move_hold(struct repath_move *move, u32 dlid)
{
	/* One that is on its way already goes on: it may be told another path any time. */
	if (move->step != REPATH_STEP_IDLE)
		return false;
	move->to = (struct repath_new_path){ .dlid = dlid };
	move->via = 0;
	move->go = false;
	move->hold = true;
	move->tried = 0;
	move->rounds = 0;
	repath_move_begin_step(move, REPATH_STEP_START);
	return true;
}

/**
 * repath_move_release - leave a queue pair alone, in a state that its owner knows of
 * @r: its device
 * @move: in the list
 *
 * Context: nobody else moves queue pairs of the device.
 */
void repath_move_release(struct repath_reroute *r, struct repath_move *move)
{
	struct ib_qp *qp = repath_qp_use(move->rqp);
	int tries = RELEASE_TRIES;

	if (qp) {
		while (!repath_move_leave_sqd(move, qp) && --tries)
			;
		if (!tries)
			pr_warn_ratelimited("repath: %s: QP %u was drained for another path, and the device does not let it send again: its owner can, by IBV_QPS_RTS\n",
					    dev_name(&qp->device->dev), qp->qp_num);
		repath_qp_unuse(qp);
	}
	repath_move_end(r, move, REPATH_MOVE_NONE, "the module has stopped moving it");
}
