// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 23 */
/* kunit-objs: ../device.o ../track.o ../track_path.o ../track_query.o ../track_user.o ../track_walk.o ../index.o ../path.o ../note.o ../stat.o ../trace.o ../reroute.o ../reroute_qp.o ../reroute_path.o ../reroute_way.o ../reroute_cycle.o */
/* Alternate paths: announced, loaded, armed or not, and gone over to by hardware or its peer while nobody looks. */
#include <rdma/ib_cache.h>

#include "reroute_case.h"

/* A path was announced, and another one told: the peer can not make it go over to the first any more. */
static void t_announced_in_vain(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *stays = add_qp(test, 21, DLID, current);
	struct hw_qp *goes = add_qp(test, 22, DLID, current);

	repath_reroute_prepare(the_device(test), 1, &path);
	let_begin(test);
	stays->mig = IB_MIG_ARMED;
	goes->mig = IB_MIG_ARMED;
	settle(test, true);
	KUNIT_ASSERT_EQ(test, (int)rdma_ah_get_sl(&stays->alt), NEW_SL);
	reroute_to(test, OLD_SL);
	settle(test, true);
	expect(test, stays, REPATH_MOVE_NONE, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&stays->alt), OLD_SL);

	/* It was quicker: the one that was told last counts. */
	repath_reroute_prepare(the_device(test), 1, &path);
	let_begin(test);
	goes->mig = IB_MIG_ARMED;
	settle(test, true);
	KUNIT_ASSERT_EQ(test, (int)rdma_ah_get_sl(&goes->alt), NEW_SL);
	goes->ah = goes->alt;
	goes->mig = IB_MIG_MIGRATED;
	reroute_to(test, OLD_SL);
	settle(test, true);
	expect(test, stays, REPATH_MOVE_NONE, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	expect(test, goes, REPATH_MOVE_MOVED, REPATH_BY_SQD, OLD_SL, IB_QPS_RTS);
}

/* The same where the device takes no other one while it is armed: over to that, and back. */
static void t_in_vain_and_armed(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	repath_reroute_prepare(the_device(test), 1, &path);
	let_begin(test);
	hw->mig = IB_MIG_ARMED;
	settle(test, true);
	hw_device.keeps_alt = true;
	reroute_to(test, OLD_SL);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), OLD_SL);
}

/* On its way to one path it hears of another that will come: it goes on, and does not wait for that. */
static void t_announced_meanwhile(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = 3, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_ASSERT_EQ(test, (int)hw->state, (int)IB_QPS_SQD);
	repath_reroute_prepare(the_device(test), 1, &path);
	let_begin(test);
	WRITE_ONCE(hw->draining, false);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

/* Its owner has drained it when another path is told than the one that was announced. */
static void t_announced_and_drained(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	repath_reroute_prepare(the_device(test), 1, &path);
	settle(test, true);
	KUNIT_ASSERT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), NEW_SL);
	owner_sets(hw, IB_QPS_SQD);
	reroute_to(test, 3);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, 3, IB_QPS_SQD);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), 3);
}

/* The peer makes it go over to what was announced between the new address and the look at it: the device drains all the same. */
static void goes_over(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask)
{
	if (!is_first(hw, mask, attr, IB_QP_STATE, IB_QPS_RTS))
		return;
	hw_goes_over(hw);
}

static void t_goes_over_before_look(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	repath_reroute_prepare(the_device(test), 1, &path);
	settle(test, true);
	the_device(test)->reroute->can[REPATH_WAY_APM] = REPATH_CAN_NOT;
	hw_device.after = goes_over;
	reroute_to(test, 3);
	settle(test, true);
	KUNIT_EXPECT_NULL(test, hw_device.after);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, 3, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)the_device(test)->reroute->can[REPATH_WAY_SQD], (int)REPATH_CAN_YES);
}

/* Hardware goes over to its owner's alternate path while nobody looks. */
static void t_gone_over_unseen(struct kunit *test)
{
	struct repath_new_path path = { .dlid = DLID + 1, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct ib_qp_attr owners = {
		.path_mig_state = IB_MIG_REARM,
		.alt_port_num = 1,
		.alt_ah_attr = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = 7 },
	};
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	rdma_ah_set_dlid(&owners.alt_ah_attr, DLID + 1);
	KUNIT_ASSERT_EQ(test, owner_does(hw, &owners, IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE), 0);
	hw_goes_over(hw);
	/* The path that it has left is not its own any more, the other one is. */
	reroute_to(test, 3);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->modified, 1);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&hw->ah), DLID + 1);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), 7);
	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&hw->ah), DLID + 1);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), NEW_SL);
}

/* A device that has not the rate of a path takes the next lower one. */
static void lowers_rate(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_AV)
		rdma_ah_set_static_rate(&hw->ah, IB_RATE_10_GBPS);
}

static void t_lower_rate(struct kunit *test)
{
	const struct repath_new_path path = {
		.dlid = DLID, .sl = NEW_SL, .rate = IB_RATE_14_GBPS, .has = REPATH_PATH_SL | REPATH_PATH_RATE,
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	owner_sets(hw, IB_QPS_SQD);
	attr.ah_attr = hw->ah;
	rdma_ah_set_static_rate(&attr.ah_attr, IB_RATE_40_GBPS);
	KUNIT_ASSERT_EQ(test, owner_does(hw, &attr, IB_QP_STATE | IB_QP_AV), 0);
	owner_sets(hw, IB_QPS_RTS);
	hw_device.after = lowers_rate;
	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_static_rate(&hw->ah), (int)IB_RATE_10_GBPS);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_AGAIN), 0ull);
}

/* The path was prepared at both ends, and its peer was told first that it is valid. */
static void t_followed_before(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	repath_reroute_prepare(the_device(test), 1, &path);
	let_begin(test);
	settle(test, true);
	hw_goes_over(hw);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
	/* Loaded, and the same as the alternate one, as its peer may be told of another next. */
	KUNIT_EXPECT_EQ(test, hw->modified, 2);
}

/* The same, and somebody has asked the device meanwhile. */
static void t_followed_and_seen(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_move *move;

	repath_reroute_prepare(the_device(test), 1, &path);
	settle(test, true);
	hw_goes_over(hw);
	move = xa_load(&the_device(test)->reroute->table, hw->qp.qp_num);
	KUNIT_ASSERT_NOT_NULL(test, move);
	KUNIT_ASSERT_TRUE(test, repath_qp_query(move->rqp, &hw->qp, false));
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, move->count, 1u);
	reroute_to(test, NEW_SL);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, move->count, 1u);
}

/* It was not armed, and is drained, when its peer goes over all the same. */
static void t_followed_while_drained(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_move *move;

	repath_reroute_prepare(the_device(test), 1, &path);
	let_begin(test);
	hw->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_ASSERT_EQ(test, (int)hw->state, (int)IB_QPS_SQD);
	hw_goes_over(hw);
	WRITE_ONCE(hw->draining, false);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
	move = xa_load(&the_device(test)->reroute->table, hw->qp.qp_num);
	KUNIT_EXPECT_EQ(test, move->count, 1u);
}

/* It is told once more, with what else is known of the path, before it is read back: it has been moved, once. */
static void t_told_twice(struct kunit *test)
{
	const struct repath_new_path more = {
		.dlid = DLID, .sl = NEW_SL, .mtu = IB_MTU_4096, .has = REPATH_PATH_SL | REPATH_PATH_MTU,
	};
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_move *move;

	hw->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	move = xa_load(&the_device(test)->reroute->table, hw->qp.qp_num);
	KUNIT_ASSERT_NOT_NULL(test, move);
	repath_move_arrived(move);
	hw->state = IB_QPS_RTS;
	rdma_ah_set_sl(&hw->ah, NEW_SL);
	KUNIT_EXPECT_TRUE(test, repath_move_want(move, &more, true));
	KUNIT_EXPECT_EQ(test, (int)move->step, (int)REPATH_STEP_VERIFY);
	settle(test, true);
	KUNIT_EXPECT_EQ(test, move->count, 1u);
}

/* Nobody answers for minutes. */
static struct hw_qp *wait_in_vain(struct kunit *test)
{
	struct repath_reroute *r = the_device(test)->reroute;
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_move *move;
	int tries;

	hw_device.no_sqd = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	move = xa_load(&r->table, 21);
	KUNIT_ASSERT_NOT_NULL(test, move);
	for (tries = 0; tries < 1000 && (READ_ONCE(move->state) != REPATH_MOVE_FAILED ||
					 READ_ONCE(move->step) != REPATH_STEP_LATER); tries++) {
		WRITE_ONCE(move->until, jiffies - 1);
		mod_delayed_work(system_unbound_wq, &r->work, 0);
		flush_delayed_work(&r->work);
	}
	expect(test, hw, REPATH_MOVE_FAILED, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_FAILED), 1ull);
	KUNIT_EXPECT_EQ(test, (int)hw->mig, (int)IB_MIG_REARM);
	return hw;
}

/* As with one that is idle: it is said, once, and it is moved when it sends at last. */
static void t_armed_very_late(struct kunit *test)
{
	struct repath_reroute *r = the_device(test)->reroute;
	struct hw_qp *hw = wait_in_vain(test);
	struct repath_move *move = xa_load(&r->table, 21);

	WRITE_ONCE(move->until, jiffies - 1);
	mod_delayed_work(system_unbound_wq, &r->work, 0);
	let_begin(test);
	expect(test, hw, REPATH_MOVE_FAILED, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	/* The same, told once more. */
	reroute_to(test, NEW_SL);
	let_begin(test);
	expect(test, hw, REPATH_MOVE_FAILED, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_FAILED), 1ull);
	hw->mig = IB_MIG_ARMED;
	settle(test, true);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
}

/* Its peer was quicker. */
static void t_followed_very_late(struct kunit *test)
{
	struct hw_qp *hw = wait_in_vain(test);

	hw_goes_over(hw);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
}

static void t_error_very_late(struct kunit *test)
{
	struct hw_qp *hw = wait_in_vain(test);

	hw->state = IB_QPS_ERR;
	settle(test, true);
	expect(test, hw, REPATH_MOVE_LOST, REPATH_BY_NONE, OLD_SL, IB_QPS_ERR);
}

/* Its owner has given it another address: it is his. */
static void t_elsewhere_very_late(struct kunit *test)
{
	struct rdma_ah_attr ah = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = OLD_SL };
	struct hw_qp *hw = wait_in_vain(test);

	hw_device.no_sqd = false;
	rdma_ah_set_dlid(&ah, DLID + 1);
	owner_readdresses(test, hw, &ah);
	settle(test, true);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_dlid(&hw->ah), DLID + 1);
}

/* Announced, with another LID; the peer has taken it there, and it is told to stay. */
static void t_stays_at_lid(struct kunit *test)
{
	const struct repath_new_path path = {
		.dlid = DLID, .new_dlid = DLID + 1, .sl = OLD_SL, .has = REPATH_PATH_SL,
	};
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	repath_reroute_prepare(the_device(test), 1, &path);
	settle(test, true);
	hw_goes_over(hw);
	reroute_to(test, OLD_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, OLD_SL, IB_QPS_RTS);
}

/* All are asked whether they are on the path that they shall be on: what was prepared stays, what was used does not. */
static void t_asked_where(struct kunit *test)
{
	const struct repath_new_path soon = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	const struct repath_new_path now = {
		.dlid = DLID, .sl = OLD_SL, .rate = IB_RATE_40_GBPS, .has = REPATH_PATH_SL | REPATH_PATH_RATE,
	};
	struct hw_qp *hw = add_qp(test, 21, DLID, current), *slow = add_qp(test, 22, DLID, current);
	struct rdma_ah_attr ah = slow->ah;
	int modified;

	/* Its owner wants to send slower than he may. */
	rdma_ah_set_static_rate(&ah, IB_RATE_10_GBPS);
	owner_readdresses(test, slow, &ah);

	repath_reroute_prepare(the_device(test), 1, &soon);
	settle(test, true);
	modified = slow->modified;
	repath_reroute_late(the_device(test), 1, &now, U64_MAX);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_PREPARED, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), NEW_SL);
	hw_goes_over(hw);
	repath_reroute_late(the_device(test), 1, &now, U64_MAX);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, slow->modified, modified);
}

/* Where hardware has gone meanwhile is known before another path is loaded. */
static void t_gone_over_and_loaded(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = 3, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_path now;
	struct repath_qp *rqp;

	hw_device.no_sqd = true;
	repath_reroute_prepare(the_device(test), 1, &path);
	settle(test, true);
	hw_goes_over(hw);
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), NEW_SL);
	rqp = repath_qp_find(the_device(test), 21);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	repath_qp_snapshot(rqp, NULL, &now);
	repath_qp_put(rqp);
	KUNIT_EXPECT_EQ(test, (int)now.sl, 3);
	hw->mig = IB_MIG_ARMED;
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
}

/* Who destroys it has read which GID entry is noted for the alternate path before he waits for us: none is. */
static void t_notes_no_gid_entry(struct kunit *test)
{
	struct rdma_ah_attr ah = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = OLD_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	rdma_ah_set_dlid(&ah, DLID);
	rdma_ah_set_grh(&ah, NULL, 0, 0, 1, 0);
	owner_readdresses(test, hw, &ah);
	hw_device.no_sqd = true;
	hw_device.arms = true;
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_NULL(test, hw->qp.alt_path_sgid_attr);
	rdma_put_gid_attr(hw->qp.av_sgid_attr);
}

/* Its peer is told later: it need not wait for the next try. */
static void t_armed_late(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_move *move;

	hw_device.no_sqd = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	move = xa_load(&the_device(test)->reroute->table, 21);
	KUNIT_ASSERT_NOT_NULL(test, move);
	/* On a machine that is slow it is over by itself, and what comes then must not be cut short. */
	if (READ_ONCE(move->step) == REPATH_STEP_ARMING) {
		WRITE_ONCE(move->until, jiffies - 1);
		mod_delayed_work(system_unbound_wq, &the_device(test)->reroute->work, 0);
		let_begin(test);
	}
	KUNIT_EXPECT_EQ(test, (int)move->step, (int)REPATH_STEP_LATER);
	move->until = jiffies + 3600 * HZ;
	hw->mig = IB_MIG_ARMED;
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
}

/* Its peer was told as well, and has gone first. */
static void t_peer_is_first(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw_device.no_sqd = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	hw_goes_over(hw);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
}

/* Told in time, it is loaded while the old path lives, and one command is left to do. */
static void t_prepared(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	KUNIT_EXPECT_EQ(test, repath_reroute_prepare(the_device(test), 1, &path), 0);
	let_begin(test);
	hw->mig = IB_MIG_ARMED;
	settle(test, true);
	expect(test, hw, REPATH_MOVE_PREPARED, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 1);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
	/* Loaded, gone over; and the same for a peer that can only migrate, as this end may. */
	KUNIT_EXPECT_EQ(test, hw->modified, 3);
	KUNIT_EXPECT_EQ(test, (int)hw->mig, (int)IB_MIG_REARM);
}

/* No traffic arms what was loaded in time: it does not wait for that. */
static void t_prepared_idle(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	repath_reroute_prepare(the_device(test), 1, &path);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)hw->mig, (int)IB_MIG_REARM);
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	/* Loaded; drained, given the address, sent on. */
	KUNIT_EXPECT_EQ(test, hw->modified, 4);
}

static struct kunit_case reroute_alt_cases[] = {
	KUNIT_CASE(t_announced_in_vain),
	KUNIT_CASE(t_in_vain_and_armed),
	KUNIT_CASE(t_announced_meanwhile),
	KUNIT_CASE(t_announced_and_drained),
	KUNIT_CASE(t_goes_over_before_look),
	KUNIT_CASE(t_gone_over_unseen),
	KUNIT_CASE(t_lower_rate),
	KUNIT_CASE(t_followed_before),
	KUNIT_CASE(t_followed_and_seen),
	KUNIT_CASE(t_followed_while_drained),
	KUNIT_CASE(t_told_twice),
	KUNIT_CASE(t_armed_very_late),
	KUNIT_CASE(t_followed_very_late),
	KUNIT_CASE(t_error_very_late),
	KUNIT_CASE(t_elsewhere_very_late),
	KUNIT_CASE(t_stays_at_lid),
	KUNIT_CASE(t_asked_where),
	KUNIT_CASE(t_gone_over_and_loaded),
	KUNIT_CASE(t_notes_no_gid_entry),
	KUNIT_CASE(t_armed_late),
	KUNIT_CASE(t_peer_is_first),
	KUNIT_CASE(t_prepared),
	KUNIT_CASE(t_prepared_idle),
	{}
};

static struct kunit_suite reroute_alt_suite = {
	.name = "repath_reroute_alt",
	.init = reroute_init,
	.exit = reroute_exit,
	.test_cases = reroute_alt_cases,
};
kunit_test_suite(reroute_alt_suite);
MODULE_LICENSE("GPL");
