// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 30 */
/* kunit-objs: ../device.o ../track.o ../track_path.o ../track_query.o ../track_user.o ../track_walk.o ../index.o ../path.o ../note.o ../stat.o ../trace.o ../reroute.o ../reroute_qp.o ../reroute_path.o ../reroute_way.o ../reroute_cycle.o */
/* Queue pairs are moved to new paths: by what the device can do, whatever their owners do. */
#include "reroute_case.h"

static void t_by_sqd(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current), *other = add_qp(test, 22, 8, current);

	KUNIT_EXPECT_EQ(test, reroute_to(test, NEW_SL), 0);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 3);
	KUNIT_EXPECT_EQ(test, other->modified, 0);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVED_SQD), 1ull);

	/* There already: not a verb. */
	reroute_to(test, NEW_SL);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->modified, 3);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVED_SQD), 1ull);
}

/* The kernel's own has no process and no shim: its device moves it, or nobody does. */
static void t_kernels_own(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, NULL);

	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 3);
	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_NOT;
	the_device(test)->reroute->can[REPATH_WAY_APM] = REPATH_CAN_NOT;
	reroute_to(test, OLD_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_NO_WAY, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

/* Some drivers tell of a migration whether there is somebody to tell or not: it never comes to that. */
static void t_hears_no_events(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, NULL);

	hw->qp.event_handler = NULL;
	repath_reroute_prepare(the_device(test), 1, &path);
	settle(test, true);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 3);

	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_NOT;
	reroute_to(test, OLD_SL);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_NO_WAY, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 3);
}

static void t_drains_first(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)hw->state, (int)IB_QPS_SQD);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), OLD_SL);
	WRITE_ONCE(hw->draining, false);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

/* It goes on with the old address, and is tried again. */
static void t_never_drains(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw->draining = true;
	hw_device.no_alt = true;
	reroute_to(test, NEW_SL);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_FAILED, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_FAILED), 1ull);
	/* That it was not drained does not mean that the device can not. */
	WRITE_ONCE(hw->draining, false);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

static void t_by_apm(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current), *next;

	hw_device.no_sqd = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)hw->mig, (int)IB_MIG_REARM);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), OLD_SL);
	hw->mig = IB_MIG_ARMED;
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
	/* Loaded, gone over; and its peer finds it ready to do so again. */
	KUNIT_EXPECT_EQ(test, hw->modified, 3);
	KUNIT_EXPECT_EQ(test, (int)hw->mig, (int)IB_MIG_REARM);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), NEW_SL);

	/* It is known now that the device does not drain. */
	next = add_qp(test, 23, DLID, current);
	reroute_to(test, NEW_SL);
	let_begin(test);
	next->mig = IB_MIG_ARMED;
	settle(test, false);
	expect(test, next, REPATH_MOVE_MOVED, REPATH_BY_APM, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_AGAIN), 1ull);

	/* And again: what was loaded then is ours to write over. */
	reroute_to(test, OLD_SL);
	let_begin(test);
	hw->mig = IB_MIG_ARMED;
	next->mig = IB_MIG_ARMED;
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, OLD_SL, IB_QPS_RTS);
}

static void t_by_neither(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw_device.no_sqd = true;
	hw_device.no_alt = true;
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_NO_WAY, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_NO_WAY), 1ull);
	/* Of the next one nothing is tried any more. */
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_AGAIN), 2ull);
	add_qp(test, 22, DLID, current);
	reroute_to(test, NEW_SL);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_AGAIN), 2ull);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_NO_WAY), 3ull);
}

/* It says yes to everything, and changes nothing. */
static void t_device_is_not_believed(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_reroute *r = the_device(test)->reroute;

	hw_device.keeps_ah = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)r->can[REPATH_WAY_SQD], (int)REPATH_CAN_NOT);
	hw->mig = IB_MIG_ARMED;
	settle(test, false);
	KUNIT_EXPECT_EQ(test, (int)r->can[REPATH_WAY_APM], (int)REPATH_CAN_NOT);
	expect(test, hw, REPATH_MOVE_NO_WAY, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
}

static const struct repath_new_path for_peer = {
	.dlid = DLID, .sl = OLD_SL, .has = REPATH_PATH_SL, .for_peer = true,
};

/* Where nothing but migration may be left, an end that is there makes itself ready for its peer's sake. */
static void t_ready_for_peer(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	/* By itself nothing is to be done, nor where the device is known to drain. */
	reroute_to(test, OLD_SL);
	settle(test, false);
	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_YES;
	repath_reroute_repath(the_device(test), 1, &for_peer);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
	/* Nobody knows yet. */
	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_UNKNOWN;
	repath_reroute_repath(the_device(test), 1, &for_peer);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, (int)hw->mig, (int)IB_MIG_REARM);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), OLD_SL);
	KUNIT_EXPECT_EQ(test, hw->modified, 1);
	/* It is loaded, and may be armed: that is enough. */
	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_NOT;
	reroute_to(test, OLD_SL);
	repath_reroute_repath(the_device(test), 1, &for_peer);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->modified, 1);
}

/* It moves nothing that is elsewhere, nor speaks against draining later, nor takes away what was said of a queue pair. */
static void t_for_peer_only(struct kunit *test)
{
	const struct repath_new_path elsewhere = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL, .for_peer = true };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_move *move;

	repath_reroute_repath(the_device(test), 1, &elsewhere);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), OLD_SL);
	repath_reroute_repath(the_device(test), 1, &for_peer);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, (int)hw->mig, (int)IB_MIG_REARM);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);

	move = xa_load(&the_device(test)->reroute->table, hw->qp.qp_num);
	KUNIT_ASSERT_NOT_NULL(test, move);
	move->state = REPATH_MOVE_NO_WAY;
	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_NOT;
	repath_reroute_repath(the_device(test), 1, &elsewhere);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, (int)move->state, (int)REPATH_MOVE_NO_WAY);
}

/* Until the new path is told, or not for ever. */
static void t_held(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	KUNIT_EXPECT_EQ(test, repath_reroute_unpath(dev, 1, DLID, REPATH_UNPATH_BREAKS, true), 0);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)hw->state, (int)IB_QPS_SQD);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 3);

	repath_reroute_unpath(dev, 1, DLID, REPATH_UNPATH_BREAKS, true);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)hw->state, (int)IB_QPS_SQD);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_NONE, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	/* All of a port are never stopped. */
	repath_reroute_unpath(dev, 1, 0, REPATH_UNPATH_BREAKS, true);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->modified, 5);
}

static void t_in_error_before(struct kunit *test)
{
	struct hw_qp *known = add_qp(test, 21, DLID, current), *hw = add_qp(test, 22, DLID, current);

	owner_sets(known, IB_QPS_ERR);
	/* Hardware does not say so. */
	hw->state = IB_QPS_ERR;
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, known, REPATH_MOVE_LOST, REPATH_BY_NONE, OLD_SL, IB_QPS_ERR);
	expect(test, hw, REPATH_MOVE_LOST, REPATH_BY_NONE, OLD_SL, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_LOST), 2ull);
	KUNIT_EXPECT_EQ(test, (int)the_device(test)->reroute->can[REPATH_WAY_SQD],
			(int)REPATH_CAN_UNKNOWN);
}

/* Whatever its owner does to one that drains, it is obeyed. */
static void t_owner_is_obeyed(struct kunit *test)
{
	struct hw_qp *err = add_qp(test, 21, DLID, current), *reset = add_qp(test, 22, DLID, current);
	struct hw_qp *rts = add_qp(test, 23, DLID, current), *sqd = add_qp(test, 24, DLID, current);

	err->draining = true;
	reset->draining = true;
	rts->draining = true;
	sqd->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)rts->state, (int)IB_QPS_SQD);
	KUNIT_EXPECT_EQ(test, owner_sets(err, IB_QPS_ERR), 0);
	KUNIT_EXPECT_EQ(test, owner_sets(reset, IB_QPS_RESET), 0);
	KUNIT_EXPECT_EQ(test, owner_sets(rts, IB_QPS_RTS), 0);
	KUNIT_EXPECT_EQ(test, owner_sets(sqd, IB_QPS_SQD), 0);
	WRITE_ONCE(rts->draining, false);
	WRITE_ONCE(sqd->draining, false);
	settle(test, false);
	expect(test, err, REPATH_MOVE_LOST, REPATH_BY_NONE, OLD_SL, IB_QPS_ERR);
	expect(test, reset, REPATH_MOVE_NONE, REPATH_BY_NONE, OLD_SL, IB_QPS_RESET);
	expect(test, rts, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	expect(test, sqd, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_SQD);
}

static void owner_errs(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask)
{
	/* At any moment of it: this is the last, before the command to go on. */
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTS)
		hw->state = IB_QPS_ERR;
}

static void owner_resets(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_AV && mask & IB_QP_STATE) {
		hw_device.before = NULL;
		owner_sets(hw, IB_QPS_RESET);
	}
}

static void t_owner_in_between(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw_device.before = owner_errs;
	reroute_to(test, NEW_SL);
	settle(test, false);
	hw_device.before = NULL;
	expect(test, hw, REPATH_MOVE_LOST, REPATH_BY_NONE, NEW_SL, IB_QPS_ERR);

	hw = add_qp(test, 22, DLID, current);
	hw_device.before = owner_resets;
	reroute_to(test, NEW_SL);
	settle(test, true);
	KUNIT_EXPECT_EQ(test, (int)hw->state, (int)IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, (int)the_device(test)->reroute->can[REPATH_WAY_SQD],
			(int)REPATH_CAN_UNKNOWN);
}

static void owner_drains(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr owners = { .qp_state = IB_QPS_SQD };

	if (is_first(hw, mask, attr, IB_QP_STATE, IB_QPS_SQD))
		owner_does_meanwhile(hw, &owners, IB_QP_STATE);
}

static void owner_goes_on(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr owners = { .qp_state = IB_QPS_RTS };

	if (is_first(hw, mask, attr, IB_QP_STATE, IB_QPS_SQD))
		owner_does_meanwhile(hw, &owners, IB_QP_STATE);
}

/* The owner drains it at the moment in which it is drained for a new path: it is his, whoever is first. */
static void t_owner_drains_as_well(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw_device.before = owner_drains;
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_SQD);

	hw = add_qp(test, 22, DLID, current);
	hw_device.after = owner_drains;
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_SQD);

	/* Who lets it send does not find it drained for good. */
	hw = add_qp(test, 23, DLID, current);
	hw_device.before = owner_goes_on;
	reroute_to(test, NEW_SL);
	settle(test, false);
	KUNIT_EXPECT_NULL(test, hw_device.before);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	hw = add_qp(test, 24, DLID, current);
	hw_device.after = owner_goes_on;
	reroute_to(test, NEW_SL);
	settle(test, false);
	KUNIT_EXPECT_NULL(test, hw_device.after);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

static void owner_loads_now(struct hw_qp *hw)
{
	struct ib_qp_attr owners = {
		.path_mig_state = IB_MIG_REARM,
		.alt_port_num = 1,
		.alt_ah_attr = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = 7 },
	};

	rdma_ah_set_dlid(&owners.alt_ah_attr, DLID);
	hw_device.asked = NULL;
	owner_does_meanwhile(hw, &owners, IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE);
}

static void owner_loads(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask)
{
	if (is_first(hw, mask, attr, IB_QP_ALT_PATH, 0))
		owner_loads_now(hw);
}

/* A reroute leaves it where it is, with the alternate path that its owner has loaded. */
static void expect_owners(struct kunit *test, struct hw_qp *hw)
{
	reroute_to(test, NEW_SL);
	settle(test, true);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), 7);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), OLD_SL);
	/* Another one's is asked for when its path is told. */
	del_qp(test, hw);
}

/* The alternate path that the owner loads over the one for a move is his. */
static void t_owner_loads_as_well(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_NOT;
	hw_device.after = owner_loads;
	expect_owners(test, hw);

	/* The device has done his just before: he gets it again. */
	hw = add_qp(test, 22, DLID, current);
	hw_device.before = owner_loads;
	expect_owners(test, hw);

	/* Or since it was seen that there is none. */
	hw = add_qp(test, 23, DLID, current);
	hw_device.asked = owner_loads_now;
	expect_owners(test, hw);
}

/* One that its owner has drained stays so. */
static void t_owner_has_drained(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	owner_sets(hw, IB_QPS_SQD);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_SQD);
}

/* The alternate path of the owner is not written over, and where nothing else is left it is said. */
static void t_owner_has_alternate_path(struct kunit *test)
{
	struct ib_qp_attr attr = {
		.path_mig_state = IB_MIG_REARM,
		.alt_port_num = 1,
		.alt_ah_attr = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = 7 },
	};
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	rdma_ah_set_dlid(&attr.alt_ah_attr, DLID);
	KUNIT_EXPECT_EQ(test, owner_does(hw, &attr, IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE), 0);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), 7);

	hw_device.no_sqd = true;
	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_UNKNOWN;
	reroute_to(test, OLD_SL);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_NO_WAY, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->alt), 7);
}

/* The last path counts, in the middle of the one before; and none that is older. */
static void t_last_path_wins(struct kunit *test)
{
	struct repath_new_path path = { .dlid = DLID, .sl = 6, .has = REPATH_PATH_SL, .serial = 7 };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	repath_reroute_repath(the_device(test), 1, &path);
	path.sl = 4;
	path.serial = 6;
	repath_reroute_repath(the_device(test), 1, &path);
	let_begin(test);
	WRITE_ONCE(hw->draining, false);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, 6, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 3);
	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, 6, IB_QPS_RTS);

	/* By the alternate path: what is armed and not wanted any more. */
	hw_device.no_sqd = true;
	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_NOT;
	reroute_to(test, 2);
	let_begin(test);
	hw->mig = IB_MIG_ARMED;
	WRITE_ONCE(fake_op, 1);
	reroute_to(test, 3);
	WRITE_ONCE(fake_op, 0);
	let_begin(test);
	hw->mig = hw->mig == IB_MIG_REARM ? IB_MIG_ARMED : hw->mig;
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_APM, 3, IB_QPS_RTS);
}

static int told_at_first;

static void note_first(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask)
{
	if (!told_at_first)
		told_at_first = shims.told;
}

/* Of a thousand paths that are told at once the queue pairs of the first do not wait until the last has been looked at. */
static void t_first_of_many(struct kunit *test)
{
	struct hw_qp *first = add_qp(test, 21, DLID, current), *last = add_qp(test, 22, DLID + 999, current);
	struct repath_new_path path = { .sl = NEW_SL, .has = REPATH_PATH_SL };
	int i;

	told_at_first = 0;
	shims.tell_us = 200;
	hw_device.after = note_first;
	for (i = 0; i < 1000; i++) {
		path.dlid = DLID + i;
		KUNIT_ASSERT_EQ(test, repath_reroute_repath(the_device(test), 1, &path), 0);
	}
	settle(test, false);
	expect(test, first, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&last->ah), NEW_SL);
	KUNIT_EXPECT_EQ(test, shims.told, 1000);
	KUNIT_EXPECT_LT(test, told_at_first, 500);
}

/* From when it is asked for until the last one is there, or has gone. */
static void t_under_way(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current), *other = add_qp(test, 22, DLID, current);
	struct repath_device *dev = the_device(test);

	KUNIT_EXPECT_FALSE(test, repath_reroute_is_under_way(dev));
	hw->draining = true;
	reroute_to(test, NEW_SL);
	KUNIT_EXPECT_TRUE(test, repath_reroute_is_under_way(dev));
	let_begin(test);
	expect(test, other, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_TRUE(test, repath_reroute_is_under_way(dev));
	/* Told to stay where it is, it is not there for good before that is done. */
	reroute_to(test, OLD_SL);
	let_begin(test);
	KUNIT_EXPECT_TRUE(test, repath_reroute_is_under_way(dev));
	WRITE_ONCE(hw->draining, false);
	settle(test, false);
	KUNIT_EXPECT_FALSE(test, repath_reroute_is_under_way(dev));
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), OLD_SL);

	hw->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	del_qp(test, hw);
	settle(test, false);
	KUNIT_EXPECT_FALSE(test, repath_reroute_is_under_way(dev));
}

/* It is destroyed while it drains. */
static void t_gone_in_between(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current), *other = add_qp(test, 22, DLID, current);

	hw->draining = true;
	other->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	del_qp(test, hw);
	WRITE_ONCE(other->draining, false);
	settle(test, false);
	KUNIT_EXPECT_NULL(test, xa_load(&the_device(test)->reroute->table, 21));
	expect(test, other, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

/* The device, or the module, goes: nothing is left in a state that its owner does not know of. */
static void t_end_in_between(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)hw->state, (int)IB_QPS_SQD);
	repath_reroute_end(the_device(test));
	expect(test, hw, REPATH_MOVE_NONE, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, reroute_to(test, NEW_SL), -ENODEV);
}

static void ends(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask)
{
	WRITE_ONCE(hw_device.reroute->ending, true);
}

/* Who waits for the end of the work item waits for what is under way, and for none of all that could be begun. */
static void t_ends_soon(struct kunit *test)
{
	struct hw_qp *hw[20];
	int i, modified = 0;

	for (i = 0; i < ARRAY_SIZE(hw); i++)
		hw[i] = add_qp(test, 21 + i, i & 1 ? DLID : DLID + 1, current);
	hw_device.before = ends;
	repath_reroute_repath(the_device(test), 1, &(struct repath_new_path) {
		.dlid = DLID + 1, .sl = NEW_SL, .has = REPATH_PATH_SL,
	});
	flush_delayed_work(&the_device(test)->reroute->work);
	for (i = 0; i < ARRAY_SIZE(hw); i++)
		modified += !!hw[i]->modified;
	KUNIT_EXPECT_EQ(test, modified, 1);
	repath_reroute_end(the_device(test));
	for (i = 0; i < ARRAY_SIZE(hw); i++)
		KUNIT_EXPECT_EQ(test, (int)hw[i]->state, (int)IB_QPS_RTS);
}

/* The device is in an operation: what drains comes out, and goes on when it has ended. */
static void t_waits_for_operation(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)hw->state, (int)IB_QPS_SQD);
	WRITE_ONCE(fake_op, 1);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)hw->state, (int)IB_QPS_RTS);
	WRITE_ONCE(hw->draining, false);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), OLD_SL);
	WRITE_ONCE(fake_op, 0);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

/* A new path to one GID is none of a queue pair's that does not tell where it goes. */
static void t_of_another_gid(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .new_dlid = 10, .dgid = { [15] = 1 } };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	KUNIT_EXPECT_EQ(test, repath_reroute_repath(the_device(test), 1, &path), 0);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&hw->ah), DLID);
}

/* Nor is one that is for who goes by the LID alone of a queue pair's that goes to a GID. */
static void t_by_lid(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .new_dlid = 10, .by_lid = true };
	struct hw_qp *hw = add_qp(test, 21, DLID, current), *to_gid = add_qp(test, 22, DLID, current);
	struct ib_qp_attr attr = { .ah_attr = to_gid->ah };

	rdma_ah_set_grh(&attr.ah_attr, NULL, 0, 0, 64, 0);
	attr.ah_attr.grh.dgid.raw[15] = 2;
	to_gid->ah = attr.ah_attr;
	repath_track_qp_modified(&to_gid->qp, &attr, IB_QP_AV);
	KUNIT_EXPECT_EQ(test, repath_reroute_repath(the_device(test), 1, &path), 0);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&hw->ah), 10);
	KUNIT_EXPECT_EQ(test, to_gid->modified, 0);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&to_gid->ah), DLID);
}

/* What is not ours, or can not be mixed with the owner's hand. */
static void t_left_alone(struct kunit *test)
{
	struct repath_new_path path = {
		.dlid = DLID, .mtu = IB_MTU_1024, .sl = NEW_SL,
		.has = REPATH_PATH_MTU | REPATH_PATH_SL,
	};
	struct hw_qp *kernel = add_qp(test, 21, DLID, NULL), *hw = add_qp(test, 22, DLID, current);

	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, false);
	expect(test, kernel, REPATH_MOVE_NO_WAY, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	expect(test, hw, REPATH_MOVE_NO_WAY, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	path.slid = 3;
	path.has = REPATH_PATH_SL;
	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);

	the_device(test)->ibdev->ops.driver_id = RDMA_DRIVER_RXE;
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_NO_WAY, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
}

/* Who was connected after the path was told; not who was told of it, and stays where he is for a reason. */
static void t_connected_late(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct rdma_ah_attr ah = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = 3 };
	struct repath_device *dev = the_device(test);
	struct hw_qp *told = add_qp(test, 21, DLID, current), *late;
	u64 since = ktime_get_boottime_ns();

	reroute_to(test, NEW_SL);
	settle(test, false);
	late = add_qp(test, 22, DLID, current);
	KUNIT_EXPECT_EQ(test, repath_reroute_late(dev, 1, &path, since), 0);
	settle(test, false);
	expect(test, late, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, told->modified, 3);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE), 2ull);

	/* By an administrator. */
	reroute_to(test, 4);
	settle(test, false);
	owner_sets(told, IB_QPS_SQD);
	owner_sets(told, IB_QPS_RTS);
	repath_reroute_late(dev, 1, &path, since);
	settle(test, false);
	expect(test, told, REPATH_MOVE_MOVED, REPATH_BY_SQD, 4, IB_QPS_RTS);
	/* Connected anew by its owner. */
	rdma_ah_set_dlid(&ah, DLID);
	owner_readdresses(test, told, &ah);
	repath_reroute_late(dev, 1, &path, since);
	settle(test, false);
	expect(test, told, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	expect(test, late, REPATH_MOVE_MOVED, REPATH_BY_SQD, 4, IB_QPS_RTS);
}

static void t_switched_off(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	the_device(test)->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_NOT;
	KUNIT_EXPECT_FALSE(test, repath_reroute_switch(the_device(test), true));
	KUNIT_EXPECT_FALSE(test, repath_reroute_switch(the_device(test), false));
	KUNIT_EXPECT_FALSE(test, repath_reroute_is_on(the_device(test)));
	KUNIT_EXPECT_EQ(test, reroute_to(test, NEW_SL), -EOPNOTSUPP);
	/* What was told meanwhile is to be asked; and what the device can is tried anew. */
	KUNIT_EXPECT_TRUE(test, repath_reroute_switch(the_device(test), true));
	KUNIT_EXPECT_EQ(test, reroute_to(test, NEW_SL), 0);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

static struct kunit_case reroute_cases[] = {
	KUNIT_CASE(t_by_sqd),
	KUNIT_CASE(t_drains_first),
	KUNIT_CASE(t_never_drains),
	KUNIT_CASE(t_by_apm),
	KUNIT_CASE(t_by_neither),
	KUNIT_CASE(t_device_is_not_believed),
	KUNIT_CASE(t_ready_for_peer),
	KUNIT_CASE(t_for_peer_only),
	KUNIT_CASE(t_held),
	KUNIT_CASE(t_in_error_before),
	KUNIT_CASE(t_owner_is_obeyed),
	KUNIT_CASE(t_owner_in_between),
	KUNIT_CASE(t_owner_has_drained),
	KUNIT_CASE(t_owner_drains_as_well),
	KUNIT_CASE(t_owner_loads_as_well),
	KUNIT_CASE(t_owner_has_alternate_path),
	KUNIT_CASE(t_last_path_wins),
	KUNIT_CASE(t_first_of_many),
	KUNIT_CASE(t_under_way),
	KUNIT_CASE(t_gone_in_between),
	KUNIT_CASE(t_end_in_between),
	KUNIT_CASE(t_ends_soon),
	KUNIT_CASE(t_waits_for_operation),
	KUNIT_CASE(t_kernels_own),
	KUNIT_CASE(t_hears_no_events),
	KUNIT_CASE(t_left_alone),
	KUNIT_CASE(t_of_another_gid),
	KUNIT_CASE(t_by_lid),
	KUNIT_CASE(t_connected_late),
	KUNIT_CASE(t_switched_off),
	{}
};

static struct kunit_suite reroute_suite = {
	.name = "repath_reroute",
	.init = reroute_init,
	.exit = reroute_exit,
	.test_cases = reroute_cases,
};
kunit_test_suite(reroute_suite);
MODULE_LICENSE("GPL");
