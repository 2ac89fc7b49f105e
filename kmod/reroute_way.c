// SPDX-License-Identifier: GPL-2.0
/*
 * The ways to another path: through SQD with a new address, and by an alternate path. What a device
 * can do is tried, not believed, and every move is read back.
 */
#include <linux/ktime.h>
#include <rdma/ib_verbs.h>

#include "reroute_qp.h"
#include "reroute_shim.h"
#include "stat.h"

static bool ask(struct ib_qp *qp, struct ib_qp_attr *attr)
{
	struct ib_qp_init_attr init = {};

	memset(attr, 0, sizeof(*attr));
	return !ib_query_qp(qp, attr, IB_QP_STATE | IB_QP_AV | IB_QP_PORT | IB_QP_PKEY_INDEX |
			    IB_QP_TIMEOUT | IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE, &init);
}

/**
 * repath_move_lost - it is in error, and was before
 * @r: its device
 * @move: of the queue pair
 *
 * A shim that can not drain it otherwise takes it there, and out again.
 */
enum repath_move_next repath_move_lost(struct repath_reroute *r, struct repath_move *move)
{
	if (repath_shim_is_moving(move->rqp)) {
		repath_move_begin_step(move, REPATH_STEP_START);
		return REPATH_NEXT_WAIT;
	}
	return repath_move_end(r, move, REPATH_MOVE_LOST, "it was in error before");
}

/* A modification was refused: by the device, or because the queue pair is not what it was. */
static enum repath_move_next refused(struct repath_reroute *r, struct repath_move *move,
				     struct ib_qp *qp, int err, u32 foreign, const char *why)
{
	struct ib_qp_attr attr;
	bool never;

	if (!ask(qp, &attr))
		return repath_move_end(r, move, REPATH_MOVE_FAILED, "the device does not answer");
	if (attr.qp_state == IB_QPS_ERR)
		return repath_move_lost(r, move);
	never = (err == -EINVAL || err == -EOPNOTSUPP) &&
		attr.qp_state == IB_QPS_RTS && READ_ONCE(move->foreign) == foreign;
	return repath_move_next_way(r, move, never, why);
}

/**
 * repath_move_leave_sqd - out of SQD again, if it is we who took it there
 * @move: of the queue pair
 * @qp: the same
 *
 * Return: true when it is out.
 */
bool repath_move_leave_sqd(struct repath_move *move, struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };
	unsigned long flags;

	if (!READ_ONCE(move->in_sqd))
		return true;
	/*
	 * In ERR, or in another state of the owner's, it is refused, and there is nothing to leave. That
	 * the device has to say: of one that says nothing it is not known.
	 */
	if (ib_modify_qp(qp, &attr, IB_QP_STATE) &&
	    (!ask(qp, &attr) || attr.qp_state == IB_QPS_SQD))
		return false;
	spin_lock_irqsave(&move->lock, flags);
	move->in_sqd = false;
	spin_unlock_irqrestore(&move->lock, flags);
	return true;
}

/**
 * repath_move_begin_sqd - have the send queue drained
 * @r: its device
 * @move: of the queue pair
 * @qp: the same
 *
 * What its owner has drained stays so, whether he does it before, at this moment, or later.
 */
enum repath_move_next repath_move_begin_sqd(struct repath_reroute *r, struct repath_move *move,
					    struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD };
	u32 foreign = READ_ONCE(move->foreign);
	unsigned long flags;
	u8 state;
	int err;

	move->way = REPATH_WAY_SQD;
	spin_lock_irqsave(&move->lock, flags);
	move->owner_sqd = false;
	spin_unlock_irqrestore(&move->lock, flags);
	/* Only now: from here on it is seen that he does. */
	repath_qp_snapshot(move->rqp, &state, NULL);
	if (state != IB_QPS_SQD) {
		err = ib_modify_qp(qp, &attr, IB_QP_STATE);
		if (err)
			return refused(r, move, qp, err, foreign,
				       "the device does not drain send queues");
		spin_lock_irqsave(&move->lock, flags);
		move->in_sqd = !move->owner_sqd;
		spin_unlock_irqrestore(&move->lock, flags);
	}
	repath_move_begin_step(move, REPATH_STEP_DRAINING);
	return REPATH_NEXT_AGAIN;
}

/* Out of SQD with the old address. */
static enum repath_move_next go_back(struct repath_reroute *r, struct repath_move *move,
				     struct ib_qp *qp)
{
	if (!repath_move_leave_sqd(move, qp))
		return REPATH_NEXT_WAIT;
	if (r->paused) {
		repath_move_begin_step(move, REPATH_STEP_START);
		return REPATH_NEXT_WAIT;
	}
	if (!move->go)
		return repath_move_end(r, move, REPATH_MOVE_NONE, "the new path was not told in time");
	return repath_move_next_way(r, move, false, "its send queue does not drain");
}

/**
 * repath_move_arrived - it sends by the new path, as the device says
 * @move: of the queue pair
 *
 * That is read back when all others have been moved, for which time counts.
 */
enum repath_move_next repath_move_arrived(struct repath_move *move)
{
	move->arrived_ns = ktime_get_boottime_ns();
	repath_move_begin_step(move, REPATH_STEP_VERIFY);
	return REPATH_NEXT_WAIT;
}

static bool has_alt(const struct repath_move *move)
{
	struct repath_alt_path alt;

	repath_qp_snapshot_alt(move->rqp, &alt);
	return alt.dlid || (alt.has_mig && alt.mig != IB_MIG_MIGRATED);
}

/* What it takes to load an alternate path. One that is armed, or waits for that, stays so: the peer need do nothing again. */
static int alt_mask(const struct ib_qp_attr *asked)
{
	return asked->path_mig_state == IB_MIG_MIGRATED ? IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE :
	       IB_QP_ALT_PATH;
}

/* The owner's alternate path again, where ours may have been written over it as he loaded it. */
static void give_back(struct repath_move *move, struct ib_qp *qp)
{
	struct ib_qp_attr asked, attr = { .path_mig_state = IB_MIG_REARM };
	unsigned long flags;

	spin_lock_irqsave(&move->lock, flags);
	attr.alt_ah_attr = move->owners.ah;
	attr.alt_pkey_index = move->owners.pkey_index;
	attr.alt_port_num = move->owners.port;
	attr.alt_timeout = move->owners.timeout;
	spin_unlock_irqrestore(&move->lock, flags);
	/* It may have been used by now. */
	if (!attr.alt_port_num || !ask(qp, &asked) || asked.path_mig_state == IB_MIG_MIGRATED ||
	    !repath_ah_is_there(&move->to, &asked.alt_ah_attr))
		return;
	/* ib_core has judged its P_Key, when he loaded it. */
	repath_path_set_alt(qp, &attr, alt_mask(&asked), false);
}

/* Load an address as the alternate path, over ours if there is one. Return: -EBUSY if there is the owner's. */
static int load_alt(struct repath_move *move, struct ib_qp *qp, const struct ib_qp_attr *asked,
		    struct ib_qp_attr *attr)
{
	int mask = alt_mask(asked);
	unsigned long flags;
	bool was_loaded;
	int err;

	attr->path_mig_state = IB_MIG_REARM;
	/* Before: an owner who loads one at this moment is seen, and the path is his. */
	spin_lock_irqsave(&move->lock, flags);
	was_loaded = move->loaded;
	move->loaded = true;
	spin_unlock_irqrestore(&move->lock, flags);
	/* Or has loaded one since it was looked. */
	err = !was_loaded && has_alt(move) ? -EBUSY :
	      repath_path_set_alt(qp, attr, mask, attr->alt_pkey_index != asked->pkey_index);
	if (!err && !READ_ONCE(move->loaded))
		give_back(move, qp);
	if (!err || was_loaded)
		return err;
	spin_lock_irqsave(&move->lock, flags);
	move->loaded = false;
	spin_unlock_irqrestore(&move->lock, flags);
	return err;
}

/* By the device; and not because there is the owner's one, or no entry of the GID at this moment. */
static bool is_refused(int err)
{
	return err && err != -EBUSY && err != -EAGAIN;
}

/* For its peer's sake also as long as nobody knows: that it has another way may be the first that this host hears. */
static bool only_migrates(const struct repath_reroute *r, const struct repath_move *move)
{
	return repath_may_only_migrate(r) && (move->to.for_peer || r->can[REPATH_WAY_SQD] == REPATH_CAN_NOT);
}

/* Is the alternate path, which is ours, the one in use? */
static bool is_same_way(const struct ib_qp_attr *asked)
{
	const struct rdma_ah_attr *now = &asked->ah_attr, *alt = &asked->alt_ah_attr;

	return rdma_ah_get_dlid(now) == rdma_ah_get_dlid(alt) &&
	       rdma_ah_get_sl(now) == rdma_ah_get_sl(alt) &&
	       rdma_ah_get_path_bits(now) == rdma_ah_get_path_bits(alt) &&
	       asked->pkey_index == asked->alt_pkey_index;
}

/* Shall the path in use be the alternate one, too? */
static bool wants_same(const struct repath_reroute *r, struct repath_move *move,
		       const struct ib_qp *qp, const struct ib_qp_attr *asked)
{
	if ((asked->qp_state != IB_QPS_RTS && asked->qp_state != IB_QPS_SQD) ||
	    !repath_move_may_load(move, qp))
		return false;
	if (asked->path_mig_state != IB_MIG_MIGRATED)
		return (READ_ONCE(move->loaded) || only_migrates(r, move)) && !is_same_way(asked);
	return only_migrates(r, move) ||
	       (move->way == REPATH_WAY_APM && r->can[REPATH_WAY_SQD] != REPATH_CAN_YES);
}

/*
 * It has gone over to an alternate path: its owner's, or one that was announced, maybe to another LID. Where to is not
 * known yet.
 */
static void has_gone_astray(struct repath_move *move, struct ib_qp *qp,
			    const struct ib_qp_attr *asked)
{
	u32 dlid = rdma_ah_get_dlid(&asked->ah_attr);

	repath_qp_query(move->rqp, qp, true);
	if (READ_ONCE(move->loaded) && dlid != (move->to.new_dlid ?: move->to.dlid)) {
		move->to.new_dlid = move->to.new_dlid ?: move->to.dlid;
		move->via = dlid;
	}
	repath_move_begin_step(move, REPATH_STEP_START);
}

/*
 * Have the peer find this end ready to migrate. An end arms only on packets of one that has not
 * migrated. If the peer has another step to go, and both can do nothing but migrate, it would wait
 * for ever: the path in use is loaded as the alternate one, too. It also takes the place of one that
 * the peer could still make this end go over to: one that was announced, and another path was told instead.
 *
 * Return: false if it does not send by its path: the peer was quicker.
 */
static bool rearm(struct repath_reroute *r, struct repath_move *move, struct ib_qp *qp,
		  const struct ib_qp_attr *asked)
{
	struct ib_qp_attr over = { .path_mig_state = IB_MIG_MIGRATED }, now = *asked, attr = {
		.alt_ah_attr = asked->ah_attr,
		.alt_port_num = asked->port_num,
		.alt_pkey_index = asked->pkey_index,
		.alt_timeout = asked->timeout,
	};
	int err;

	/* RoCE has no alternate paths. */
	if (repath_path_is_roce(&move->to))
		return true;
	if (repath_ah_is_there(&move->to, &asked->ah_attr) && wants_same(r, move, qp, asked)) {
		attr.alt_ah_attr.type = rdma_ah_find_type(qp->device, asked->port_num);
		attr.alt_ah_attr.grh.sgid_attr = NULL;
		err = load_alt(move, qp, asked, &attr);
		/* If it takes no other one while it is armed: over to that, and then to where it shall be. */
		if (is_refused(err) && asked->path_mig_state == IB_MIG_ARMED &&
		    asked->qp_state == IB_QPS_RTS)
			ib_modify_qp(qp, &over, IB_QP_PATH_MIG_STATE);
		if (!ask(qp, &now))
			return true;
	}
	if (repath_ah_is_there(&move->to, &now.ah_attr))
		return true;
	has_gone_astray(move, qp, &now);
	return false;
}

/**
 * repath_move_stay - it is where it shall go
 * @r: its device
 * @move: of the queue pair
 * @qp: the same
 */
enum repath_move_next repath_move_stay(struct repath_reroute *r, struct repath_move *move,
				       struct ib_qp *qp)
{
	struct ib_qp_attr attr;
	bool loaded = READ_ONCE(move->loaded);

	if (r->paused && move->to.for_peer)
		return REPATH_NEXT_WAIT;
	if ((only_migrates(r, move) || loaded) && ask(qp, &attr)) {
		/* It has followed its peer, before the path was told, or while it was drained. */
		if (loaded && attr.path_mig_state == IB_MIG_MIGRATED && move->go && move->leaves) {
			move->way = REPATH_WAY_APM;
			return repath_move_arrived(move);
		}
		if (!rearm(r, move, qp, &attr))
			return REPATH_NEXT_WAIT;
		move->loaded_for_peer |= move->to.for_peer && !loaded && READ_ONCE(move->loaded);
	}
	return repath_move_end(r, move, move->since_ns ? REPATH_MOVE_MOVED : REPATH_MOVE_NONE, NULL);
}

static const char *why_not_there(u8 way)
{
	switch (way) {
	case REPATH_WAY_APM:
		return "the device does not go over to the alternate path";
	case REPATH_WAY_SQD:
		return "the device does not change the address in SQD";
	default:
		return "the shims have connected it by another path";
	}
}

/* Has the device gone over to an alternate path by itself? */
static bool has_migrated(const struct repath_move *move, const struct ib_qp_attr *asked)
{
	return asked->path_mig_state == IB_MIG_MIGRATED && repath_qp_may_migrate(move->rqp);
}

/* On RoCE not every driver tells all of an address, as rxe the service level: what the shims have set is what they set. */
static bool is_there_now(const struct repath_move *move, const struct ib_qp *qp,
			 const struct rdma_ah_attr *ah)
{
	struct repath_path path;

	if (move->way != REPATH_WAY_CYCLE || !repath_path_is_roce(&move->to))
		return repath_ah_is_there(&move->to, ah);
	repath_qp_snapshot(move->rqp, NULL, &path);
	return repath_path_is_enough(qp->device, &move->to, &path);
}

/**
 * repath_move_verify - read back where it sends to
 * @r: its device
 * @move: of the queue pair
 * @qp: the same
 */
enum repath_move_next repath_move_verify(struct repath_reroute *r, struct repath_move *move,
					 struct ib_qp *qp)
{
	struct ib_qp_attr attr;

	if (!ask(qp, &attr))
		return repath_move_end(r, move, REPATH_MOVE_FAILED, "the device does not answer");
	if (attr.qp_state == IB_QPS_ERR)
		return repath_move_lost(r, move);
	if (is_there_now(move, qp, &attr.ah_attr))
		return rearm(r, move, qp, &attr) ? repath_move_done(r, move) : REPATH_NEXT_WAIT;
	/* Or gone from there already, which says nothing of the device. */
	if (has_migrated(move, &attr)) {
		has_gone_astray(move, qp, &attr);
		return REPATH_NEXT_WAIT;
	}
	/* The hooks have believed it. */
	repath_qp_query(move->rqp, qp, true);
	return repath_move_next_way(r, move, READ_ONCE(move->foreign) == move->seen,
				    why_not_there(move->way));
}

static enum repath_move_next set_av(struct repath_reroute *r, struct repath_move *move,
				    struct ib_qp *qp, const struct repath_path *path,
				    const struct ib_qp_attr *asked)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD };
	u32 foreign = READ_ONCE(move->foreign);
	int mask = IB_QP_STATE | IB_QP_AV;
	int ret, err;

	ret = repath_path_find_pkey(qp->device, &move->to, path, &attr.pkey_index);
	if (ret < 0)
		return repath_move_end(r, move, REPATH_MOVE_FAILED, "the port has no such P_Key");
	if (ret)
		mask |= IB_QP_PKEY_INDEX;
	repath_path_make_ah(qp, &move->to, path, &asked->ah_attr, &attr.ah_attr);
	err = repath_path_set_av(qp, path, &attr, mask);
	if (err) {
		repath_move_leave_sqd(move, qp);
		return refused(r, move, qp, err, foreign,
			       "the device takes no new address in SQD");
	}
	move->seen = foreign;
	repath_move_leave_sqd(move, qp);
	return repath_move_arrived(move);
}

/**
 * repath_move_drain - a send queue drains, or is drained
 * @r: its device
 * @move: of the queue pair
 * @qp: the same
 * @path: its path
 */
enum repath_move_next repath_move_drain(struct repath_reroute *r, struct repath_move *move,
					struct ib_qp *qp, const struct repath_path *path)
{
	struct ib_qp_attr attr;

	if (!r->paused && !repath_move_poll(move))
		return REPATH_NEXT_WAIT;
	if (!ask(qp, &attr))
		return repath_move_end(r, move, REPATH_MOVE_FAILED, "the device does not answer");
	if (attr.qp_state == IB_QPS_ERR)
		return repath_move_lost(r, move);
	if (attr.qp_state != IB_QPS_SQD) {
		/* Its owner has taken it elsewhere. */
		repath_move_begin_step(move, REPATH_STEP_START);
		return REPATH_NEXT_WAIT;
	}
	if (has_migrated(move, &attr)) {
		has_gone_astray(move, qp, &attr);
		return REPATH_NEXT_WAIT;
	}
	if (move->go && !attr.sq_draining)
		return set_av(r, move, qp, path, &attr);
	if (repath_move_is_late(move) || r->paused)
		return go_back(r, move, qp);
	return REPATH_NEXT_WAIT;
}

static enum repath_move_next go_over(struct repath_reroute *r, struct repath_move *move,
				     struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .path_mig_state = IB_MIG_MIGRATED };
	u32 foreign = READ_ONCE(move->foreign);
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_PATH_MIG_STATE);
	/* The peer may have been first. */
	if (err && (!ask(qp, &attr) || !repath_ah_is_there(&move->to, &attr.ah_attr)))
		return refused(r, move, qp, err, foreign,
			       "the device does not migrate");
	move->seen = foreign;
	return repath_move_arrived(move);
}

/**
 * repath_move_load - load the new path as the alternate one
 * @r: its device
 * @move: of the queue pair
 * @qp: the same
 * @path: its path
 */
enum repath_move_next repath_move_load(struct repath_reroute *r, struct repath_move *move,
				       struct ib_qp *qp, const struct repath_path *path)
{
	u32 foreign = READ_ONCE(move->foreign);
	struct ib_qp_attr asked, attr = {};
	int err;

	move->way = REPATH_WAY_APM;
	move->loaded_for_peer = false;
	if (!ask(qp, &asked))
		return repath_move_end(r, move, REPATH_MOVE_FAILED, "the device does not answer");
	if (asked.qp_state == IB_QPS_ERR)
		return repath_move_lost(r, move);
	if (asked.path_mig_state == IB_MIG_MIGRATED && READ_ONCE(move->loaded) &&
	    repath_ah_is_there(&move->to, &asked.ah_attr)) {
		/* Its peer has gone over already, and it has followed. */
		repath_qp_query(move->rqp, qp, false);
		return repath_move_arrived(move);
	}
	if (has_migrated(move, &asked)) {
		has_gone_astray(move, qp, &asked);
		return REPATH_NEXT_WAIT;
	}
	if (asked.path_mig_state != IB_MIG_MIGRATED && READ_ONCE(move->loaded) &&
	    repath_ah_is_there(&move->to, &asked.alt_ah_attr)) {
		repath_move_begin_step(move, REPATH_STEP_ARMING);
		return REPATH_NEXT_AGAIN;
	}
	if (repath_path_find_pkey(qp->device, &move->to, path, &attr.alt_pkey_index) < 0)
		return repath_move_end(r, move, REPATH_MOVE_FAILED, "the port has no such P_Key");
	repath_path_make_ah(qp, &move->to, path, &asked.ah_attr, &attr.alt_ah_attr);
	attr.alt_port_num = path->port;
	attr.alt_timeout = asked.timeout;
	err = load_alt(move, qp, &asked, &attr);
	/* If it takes no other one while it is armed: over to that, to load again. */
	if (is_refused(err) && asked.path_mig_state == IB_MIG_ARMED) {
		struct ib_qp_attr over = { .path_mig_state = IB_MIG_MIGRATED };

		asked.path_mig_state = IB_MIG_MIGRATED;
		err = ib_modify_qp(qp, &over, IB_QP_PATH_MIG_STATE) ?:
		      load_alt(move, qp, &asked, &attr);
	}
	if (err)
		return refused(r, move, qp, err, foreign, "the device takes no alternate path");
	repath_move_begin_step(move, REPATH_STEP_ARMING);
	return REPATH_NEXT_AGAIN;
}

/**
 * repath_move_arm - the alternate path waits for traffic both ways, or is armed
 * @r: its device
 * @move: of the queue pair
 * @qp: the same
 */
enum repath_move_next repath_move_arm(struct repath_reroute *r, struct repath_move *move,
				      struct ib_qp *qp)
{
	struct ib_qp_attr attr;

	if (!repath_move_poll(move))
		return REPATH_NEXT_WAIT;
	if (!ask(qp, &attr))
		return repath_move_end(r, move, REPATH_MOVE_FAILED, "the device does not answer");
	if (attr.qp_state == IB_QPS_ERR)
		return repath_move_lost(r, move);
	if (attr.path_mig_state == IB_MIG_MIGRATED) {
		/* By the device itself, as its peer has gone over, or it had no answer. */
		if (repath_ah_is_there(&move->to, &attr.ah_attr)) {
			repath_qp_query(move->rqp, qp, false);
			return repath_move_arrived(move);
		}
		has_gone_astray(move, qp, &attr);
		return REPATH_NEXT_WAIT;
	}
	if (!READ_ONCE(move->loaded)) {
		give_back(move, qp);
		return repath_move_next_way(r, move, false, "its owner has loaded an alternate path");
	}
	if (move->go && attr.path_mig_state == IB_MIG_ARMED &&
	    repath_ah_is_there(&move->to, &attr.alt_ah_attr))
		return go_over(r, move, qp);
	/* What is idle arms nothing, and its first message would go the old way. */
	if (move->go && attr.path_mig_state == IB_MIG_REARM &&
	    r->can[REPATH_WAY_SQD] != REPATH_CAN_NOT && !(move->tried & BIT(REPATH_WAY_SQD)))
		return repath_move_next_way(r, move, false,
					    "nothing has come both ways to arm the alternate path");
	if (!repath_move_is_late(move))
		return REPATH_NEXT_WAIT;
	/* It stays loaded. */
	if (!move->go)
		return repath_move_end(r, move, REPATH_MOVE_PREPARED, NULL);
	return repath_move_next_way(r, move, false, "its peer has not armed the alternate path");
}

/**
 * repath_move_is_armed - is the alternate path armed at last that was waited for in vain?
 * @move: of the queue pair
 * @qp: the same
 *
 * It stays loaded, and its peer may be told later than this end, or go first. Also if it is in error.
 */
bool repath_move_is_armed(struct repath_move *move, struct ib_qp *qp)
{
	struct ib_qp_attr attr;

	if (!move->go || !READ_ONCE(move->loaded) || !repath_move_poll(move) || !ask(qp, &attr))
		return false;
	return attr.qp_state == IB_QPS_ERR || attr.path_mig_state == IB_MIG_MIGRATED ||
	       (attr.path_mig_state == IB_MIG_ARMED && repath_ah_is_there(&move->to, &attr.alt_ah_attr));
}

/**
 * repath_move_may_load - is there no alternate path, or ours?
 * @move: of the queue pair
 * @qp: the same
 *
 * The owner's is not ours to write over. And once a path is loaded the device may migrate at any time, and tells
 * the owner: rdmavt (6.1) without looking whether there is somebody to tell. IPoIB's senders have nobody.
 */
bool repath_move_may_load(struct repath_move *move, const struct ib_qp *qp)
{
	return qp->event_handler && (READ_ONCE(move->loaded) || !has_alt(move));
}
