// SPDX-License-Identifier: GPL-2.0
/*
 * The last way to another path: the shims at both ends close their gates, drain, and connect the two
 * queue pairs anew. For devices that can do neither of the other two, drivers that take no lock,
 * smaller packets, and ends that never send.
 */
#include <rdma/ib_verbs.h>

#include "range.h"
#include "reroute_qp.h"
#include "reroute_shim.h"

static unsigned int reroute_cycle_ms = 15000;
REPATH_RANGE_PARAM(reroute_cycle_ms, 10, 600000, 0644);
MODULE_PARM_DESC(reroute_cycle_ms,
		 "how long the shims may take to connect a queue pair anew, in ms (15000; 10 to 600000)");

/* Of the shim: -1: none yet. */
static int answer_of(struct repath_move *move)
{
	unsigned long flags;
	int answer;

	spin_lock_irqsave(&move->lock, flags);
	answer = move->answer;
	spin_unlock_irqrestore(&move->lock, flags);
	return answer;
}

static void forget_answer(struct repath_move *move)
{
	unsigned long flags;

	spin_lock_irqsave(&move->lock, flags);
	move->answer = -1;
	spin_unlock_irqrestore(&move->lock, flags);
}

static const char *reason(int err)
{
	switch (err) {
	case EOPNOTSUPP:
		return "its process or the peer's can not connect it anew";
	case ENOTCONN:
	case EBUSY:
		return "its owner does something with it";
	default:
		return "the shims do not connect it anew";
	}
}

/**
 * repath_move_begin_cycle - have the shims do it
 * @r: its device
 * @move: of the queue pair
 */
enum repath_move_next repath_move_begin_cycle(struct repath_reroute *r, struct repath_move *move)
{
	move->way = REPATH_WAY_CYCLE;
	forget_answer(move);
	if (repath_shim_cycle(move->rqp, &move->to))
		return repath_move_next_way(r, move, false, "its process's shim is not reached");
	repath_move_begin_step(move, REPATH_STEP_CYCLING);
	move->until = jiffies + msecs_to_jiffies(reroute_cycle_ms);
	return REPATH_NEXT_WAIT;
}

/**
 * repath_move_cycle_anew - it shall get to another path than the shims were told
 * @move: of the queue pair, which they connect anew
 */
void repath_move_cycle_anew(struct repath_move *move)
{
	move->until = jiffies + msecs_to_jiffies(reroute_cycle_ms);
	if (!move->go)
		return;
	forget_answer(move);
	/* What they do not hear is seen by its end, or by the time that it takes. */
	repath_shim_cycle(move->rqp, &move->to);
}

/**
 * repath_move_cycle - the shims connect it anew, or have done so
 * @r: its device
 * @move: of the queue pair
 * @state: enum ib_qp_state of it
 * @path: its path
 */
enum repath_move_next repath_move_cycle(struct repath_reroute *r, struct repath_move *move,
					u8 state, const struct repath_path *path)
{
	int answer = answer_of(move);

	if (answer < 0 && !repath_move_is_late(move))
		return REPATH_NEXT_WAIT;
	if ((state == IB_QPS_RTS || state == IB_QPS_RTR) && path->has_av &&
	    repath_path_is_enough(r->dev->ibdev, &move->to, path))
		return repath_move_arrived(move);
	/* It has got there by another path, which was told earlier. */
	if (!answer && move->go && !repath_move_is_late(move) &&
	    repath_path_keeps_pkey(r->dev->ibdev, &move->to, path)) {
		forget_answer(move);
		if (!repath_shim_cycle(move->rqp, &move->to))
			return REPATH_NEXT_WAIT;
	}
	return repath_move_next_way(r, move, false, reason(answer));
}
