// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 18 */
/* kunit-objs: ../device.o ../track.o ../track_path.o ../track_query.o ../track_user.o ../track_walk.o ../index.o ../path.o ../note.o ../stat.o ../trace.o ../reroute.o ../reroute_qp.o ../reroute_path.o ../reroute_way.o ../reroute_cycle.o */
/* Queue pairs that their devices can not move are connected anew by the shims; datagrams follow by them. */
#include "reroute_case.h"

static void answer(struct hw_qp *hw, struct kunit *test, int err)
{
	struct repath_qp *rqp = repath_qp_find(the_device(test), hw->qp.qp_num);

	KUNIT_ASSERT_NOT_NULL(test, rqp);
	repath_reroute_cycled(rqp, err);
	repath_qp_put(rqp);
}

static void shim_sets(struct hw_qp *hw, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	hw->state = state;
	repath_track_qp_modified(&hw->qp, &attr, IB_QP_STATE);
}

/* RESET has been: what a shim sets by the path that it was told last. */
static void shim_connects(struct hw_qp *hw, enum ib_mtu mtu)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.dest_qp_num = 77,
		.path_mtu = mtu,
		.ah_attr = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = shims.to.sl },
	};

	rdma_ah_set_dlid(&attr.ah_attr, shims.to.new_dlid ?: shims.to.dlid);
	shim_sets(hw, IB_QPS_INIT);
	hw->ah = attr.ah_attr;
	hw->state = IB_QPS_RTR;
	repath_track_qp_modified(&hw->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_DEST_QPN |
				 IB_QP_PATH_MTU);
	shim_sets(hw, IB_QPS_RTS);
}

/* All of what they are asked for. */
static void shims_cycle(struct hw_qp *hw, struct kunit *test, enum ib_mtu mtu)
{
	shim_sets(hw, IB_QPS_RESET);
	shim_connects(hw, mtu);
	answer(hw, test, 0);
}

static void can_neither(void)
{
	hw_device.no_sqd = true;
	hw_device.no_alt = true;
	shims.there = true;
}

static void t_by_cycle(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	can_neither();
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 1);
	KUNIT_EXPECT_EQ(test, (int)shims.to.sl, NEW_SL);
	/* Either way once: then it is known what the device can. */
	KUNIT_EXPECT_EQ(test, hw->tried, 2);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
	shim_sets(hw, IB_QPS_RESET);
	let_begin(test);
	/* The same again: by the table after the report. */
	reroute_to(test, NEW_SL);
	let_begin(test);
	shim_connects(hw, IB_MTU_2048);
	reroute_to(test, NEW_SL);
	let_begin(test);
	answer(hw, test, 0);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_CYCLE, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVED_CYCLE), 1ull);
	KUNIT_EXPECT_EQ(test, shims.asked, 1);
	KUNIT_EXPECT_EQ(test, hw->tried, 2);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
}

/* It is asked again and again, and then no more. */
static void t_refused(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	int i;

	can_neither();
	reroute_to(test, NEW_SL);
	for (i = 0; i < 100 && !list_empty(&the_device(test)->reroute->moves); i++) {
		struct repath_move *move = xa_load(&the_device(test)->reroute->table, 21);

		KUNIT_ASSERT_NOT_NULL(test, move);
		answer(hw, test, EOPNOTSUPP);
		let_begin(test);
		WRITE_ONCE(move->until, jiffies - 1);
	}
	settle(test, true);
	expect(test, hw, REPATH_MOVE_FAILED, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, shims.asked, 6);

	/* Nobody is left to ask. */
	shims.there = false;
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_NO_WAY, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, shims.asked, 6);
}

/* Whether the peer has a shim is not known yet: it is tried again, and not for ever. */
static void t_not_known_yet(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_move *move;

	can_neither();
	shims.there = false;
	shims.asked_for = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	move = xa_load(&the_device(test)->reroute->table, 21);
	KUNIT_ASSERT_NOT_NULL(test, move);
	KUNIT_EXPECT_EQ(test, (int)move->state, (int)REPATH_MOVE_MOVING);
	KUNIT_EXPECT_EQ(test, shims.asked, 0);
	shims.there = true;
	WRITE_ONCE(move->until, jiffies - 1);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 1);
	shims_cycle(hw, test, IB_MTU_2048);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_CYCLE, NEW_SL, IB_QPS_RTS);
	shims.there = false;
	reroute_to(test, OLD_SL);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_FAILED, REPATH_BY_CYCLE, NEW_SL, IB_QPS_RTS);
}

/* Another partition is not for the shims to go to. */
static void t_another_partition(struct kunit *test)
{
	struct repath_new_path path = {
		.dlid = DLID, .sl = NEW_SL, .pkey = 0x8123,
		.has = REPATH_PATH_SL | REPATH_PATH_PKEY,
	};
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	can_neither();
	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, true);
	KUNIT_EXPECT_EQ(test, shims.asked, 0);
	/* Told when the shims are at it. */
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 1);
	repath_reroute_repath(the_device(test), 1, &path);
	let_begin(test);
	shims_cycle(hw, test, IB_MTU_2048);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_NO_WAY, REPATH_BY_NONE, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVED_CYCLE), 0ull);
}

/* While it is nowhere, too. */
static void t_another_path(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	can_neither();
	reroute_to(test, NEW_SL);
	let_begin(test);
	shim_sets(hw, IB_QPS_RESET);
	reroute_to(test, NEW_SL + 1);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 2);
	KUNIT_EXPECT_EQ(test, (int)shims.to.sl, NEW_SL + 1);
	shim_connects(hw, IB_MTU_2048);
	/* Told when it was too late for it: it is told again. */
	reroute_to(test, NEW_SL + 2);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 3);
	answer(hw, test, 0);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 4);
	shims_cycle(hw, test, IB_MTU_2048);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_CYCLE, NEW_SL + 2, IB_QPS_RTS);
}

/* No answer, and yet it is there; no answer, and it is not. */
static void t_silent(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	can_neither();
	reroute_to(test, NEW_SL);
	let_begin(test);
	shim_sets(hw, IB_QPS_RESET);
	shim_connects(hw, IB_MTU_2048);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_CYCLE, NEW_SL, IB_QPS_RTS);
	shims.deaf = true;
	reroute_to(test, OLD_SL);
	settle(test, true);
	expect(test, hw, REPATH_MOVE_FAILED, REPATH_BY_CYCLE, NEW_SL, IB_QPS_RTS);
}

/* What the module can not do where it is, whatever the device can. */
static void t_not_in_place(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_new_path path = {
		.dlid = DLID, .sl = NEW_SL, .mtu = IB_MTU_1024,
		.has = REPATH_PATH_SL | REPATH_PATH_MTU,
	};

	shims.there = true;
	repath_reroute_repath(the_device(test), 1, &path);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 1);
	shims_cycle(hw, test, IB_MTU_1024);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_CYCLE, NEW_SL, IB_QPS_RTS);

	/* One that only receives. */
	shim_sets(hw, IB_QPS_RESET);
	shims.to.sl = OLD_SL;
	shim_connects(hw, IB_MTU_1024);
	shim_sets(hw, IB_QPS_RTR);
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 2);
	KUNIT_EXPECT_EQ(test, hw->tried, 0);
	shim_sets(hw, IB_QPS_RESET);
	shim_connects(hw, IB_MTU_1024);
	shim_sets(hw, IB_QPS_RTR);
	answer(hw, test, 0);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_CYCLE, NEW_SL, IB_QPS_RTR);
}

#define HERE	1
#define THERE	2

/* The port is RoCE's. */
static void on_roce(struct kunit *test)
{
	struct ib_device *ibdev = the_device(test)->ibdev;

	ibdev->port_data[1].immutable.core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
}

static void set_roce(struct hw_qp *hw, u8 gid, u8 tclass)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.ah_attr = { .type = RDMA_AH_ATTR_TYPE_ROCE, .port_num = 1, .sl = OLD_SL },
	};

	rdma_ah_set_grh(&attr.ah_attr, NULL, 0, 0, 64, tclass);
	attr.ah_attr.grh.dgid.raw[15] = gid;
	attr.ah_attr.roce.dmac[5] = gid;
	hw->ah = attr.ah_attr;
	repath_track_qp_modified(&hw->qp, &attr, IB_QP_STATE | IB_QP_AV);
	shim_sets(hw, IB_QPS_RTS);
}

/* As the shim does it. */
static void connect_roce(struct hw_qp *hw, u8 gid, u8 tclass)
{
	shim_sets(hw, IB_QPS_INIT);
	set_roce(hw, gid, tclass);
	/* What the device tells of it, if it is asked. */
	rdma_ah_set_sl(&hw->ah, 0);
}

static int tell_roce(struct kunit *test, u8 gid, u8 tclass)
{
	const struct repath_new_path path = {
		.dgid = { [15] = gid }, .sl = OLD_SL, .tclass = tclass,
		.has = REPATH_PATH_SL | REPATH_PATH_TCLASS,
	};

	return repath_reroute_repath(the_device(test), 1, &path);
}

static void expect_roce(struct kunit *test, struct hw_qp *hw, enum repath_move_state state, u8 tclass)
{
	struct repath_move *move = xa_load(&the_device(test)->reroute->table, hw->qp.qp_num);

	KUNIT_ASSERT_NOT_NULL(test, move);
	KUNIT_EXPECT_EQ(test, (int)move->state, (int)state);
	KUNIT_EXPECT_EQ(test, (int)hw->ah.grh.traffic_class, (int)tclass);
	KUNIT_EXPECT_EQ(test, (int)hw->state, (int)IB_QPS_RTS);
}

/* A driver without a lock, as rxe: another class of traffic to one GID, by the shims; and the last that is told. */
static void t_roce_by_shims(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current), *other = add_qp(test, 22, DLID, current);

	on_roce(test);
	the_device(test)->ibdev->ops.driver_id = RDMA_DRIVER_RXE;
	shims.there = true;
	set_roce(hw, THERE, 0);
	set_roce(other, HERE, 0);
	KUNIT_EXPECT_EQ(test, tell_roce(test, THERE, 96), 0);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 1);
	KUNIT_EXPECT_EQ(test, (int)shims.to.tclass, 96);
	KUNIT_EXPECT_EQ(test, (int)shims.tale.tclass, 96);
	shim_sets(hw, IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, tell_roce(test, THERE, 32), 0);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 2);
	KUNIT_EXPECT_EQ(test, (int)shims.to.tclass, 32);
	connect_roce(hw, THERE, 32);
	answer(hw, test, 0);
	settle(test, false);
	expect_roce(test, hw, REPATH_MOVE_MOVED, 32);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVED_CYCLE), 1ull);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE), 1ull);
	KUNIT_EXPECT_EQ(test, hw->tried + other->tried, 0);
	/* It is there already. */
	KUNIT_EXPECT_EQ(test, tell_roce(test, THERE, 32), 0);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, shims.asked, 2);
	/* Its owner has connected it to another one by the time that it is looked at. */
	KUNIT_EXPECT_EQ(test, tell_roce(test, THERE, 64), 0);
	let_begin(test);
	shim_sets(hw, IB_QPS_RESET);
	connect_roce(hw, HERE, 0);
	answer(hw, test, ENOTCONN);
	settle(test, false);
	expect_roce(test, hw, REPATH_MOVE_NONE, 0);
	/* And nobody is there to do it. */
	shims.there = false;
	KUNIT_EXPECT_EQ(test, tell_roce(test, HERE, 64), 0);
	settle(test, false);
	expect_roce(test, other, REPATH_MOVE_NO_WAY, 0);
	KUNIT_EXPECT_EQ(test, hw->tried + other->tried, 0);
}

/* A driver that takes one: where it is, under the same address otherwise. */
static void t_roce_by_sqd(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current), *other = add_qp(test, 22, DLID, current);

	on_roce(test);
	set_roce(hw, THERE, 8);
	set_roce(other, HERE, 8);
	KUNIT_EXPECT_EQ(test, tell_roce(test, THERE, 96), 0);
	settle(test, false);
	expect_roce(test, hw, REPATH_MOVE_MOVED, 96);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVED_SQD), 1ull);
	KUNIT_EXPECT_EQ(test, (int)hw->ah.type, (int)RDMA_AH_ATTR_TYPE_ROCE);
	KUNIT_EXPECT_EQ(test, (int)hw->ah.grh.dgid.raw[15], THERE);
	KUNIT_EXPECT_EQ(test, (int)hw->ah.roce.dmac[5], THERE);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), OLD_SL);
	KUNIT_EXPECT_EQ(test, other->modified, 0);
}

/* ib_core has no alternate paths there, whatever the device can; and nothing is told beforehand. */
static void t_roce_by_no_alternate(struct kunit *test)
{
	const struct repath_new_path path = { .dgid = { [15] = THERE } };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	on_roce(test);
	hw_device.no_sqd = true;
	hw_device.arms = true;
	set_roce(hw, THERE, 0);
	KUNIT_EXPECT_EQ(test, tell_roce(test, THERE, 96), 0);
	settle(test, true);
	expect_roce(test, hw, REPATH_MOVE_NO_WAY, 0);
	KUNIT_EXPECT_EQ(test, hw->tried, 1);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
	KUNIT_EXPECT_EQ(test, repath_reroute_prepare(the_device(test), 1, &path), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, repath_reroute_unpath(the_device(test), 1, 1, REPATH_UNPATH_BREAKS, true),
			-EOPNOTSUPP);
}

/* Nobody has touched it; its shim sets what it had, and it is moved when that is over. */
static void goes_on(struct kunit *test, struct hw_qp *hw)
{
	KUNIT_EXPECT_EQ(test, hw->tried, 0);
	shims.to = (struct repath_new_path){ .dlid = DLID, .sl = OLD_SL };
	shim_connects(hw, IB_MTU_2048);
	WRITE_ONCE(shims.moving, false);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

/* Its peer, or its own process, is on a move: its states are the shims'. */
static void t_waits_for_move(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	shims.there = true;
	shims.moving = true;
	shim_sets(hw, IB_QPS_ERR);
	reroute_to(test, NEW_SL);
	let_begin(test);
	shim_sets(hw, IB_QPS_RESET);
	let_begin(test);
	goes_on(test, hw);
	KUNIT_EXPECT_EQ(test, shims.asked, 0);
}

/* The path is told while its peer has it connected anew, and it is nowhere: its shim sets what it had. */
static void t_told_while_reset(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	shims.there = true;
	shims.moving = true;
	shim_sets(hw, IB_QPS_RESET);
	reroute_to(test, NEW_SL);
	let_begin(test);
	shim_sets(hw, IB_QPS_INIT);
	let_begin(test);
	goes_on(test, hw);
}

/* ... and then it goes to another LID, or nowhere any more. */
static void t_left_for_good(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current), *other = add_qp(test, 22, DLID, current);
	struct repath_move *move;

	shims.there = true;
	shims.moving = true;
	shim_sets(hw, IB_QPS_RESET);
	reroute_to(test, NEW_SL);
	let_begin(test);
	shims.to = (struct repath_new_path){ .dlid = DLID + 1, .sl = OLD_SL };
	shim_connects(hw, IB_MTU_2048);
	shim_sets(other, IB_QPS_RESET);
	WRITE_ONCE(shims.moving, false);
	settle(test, false);
	expect(test, other, REPATH_MOVE_NONE, REPATH_BY_NONE, OLD_SL, IB_QPS_RESET);
	move = xa_load(&the_device(test)->reroute->table, 21);
	KUNIT_ASSERT_NOT_NULL(test, move);
	KUNIT_EXPECT_EQ(test, (int)move->state, (int)REPATH_MOVE_NONE);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), OLD_SL);
	KUNIT_EXPECT_EQ(test, hw->tried + other->tried, 0);
	/* By the LID that they have left they are not moved any more. */
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE), 2ull);
	reroute_to(test, NEW_SL);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->tried + other->tried, 0);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE), 2ull);
	/* Nor is one drained that was to wait where it is not any more. */
	shims.moving = true;
	shim_sets(hw, IB_QPS_RESET);
	repath_reroute_unpath(the_device(test), 1, DLID + 1, REPATH_UNPATH_BREAKS, true);
	let_begin(test);
	shims.to.dlid = DLID;
	shim_connects(hw, IB_MTU_2048);
	WRITE_ONCE(shims.moving, false);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, hw->tried, 0);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE), 3ull);
}

/* On its way to another LID it is told how one gets there now. */
static void t_redirected(struct kunit *test)
{
	struct repath_new_path path = { .dlid = DLID, .new_dlid = DLID + 1 };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_move *move;

	can_neither();
	repath_reroute_repath(the_device(test), 1, &path);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 1);
	shim_sets(hw, IB_QPS_RESET);
	path = (struct repath_new_path){ .dlid = DLID + 1, .sl = NEW_SL, .has = REPATH_PATH_SL };
	repath_reroute_repath(the_device(test), 1, &path);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 2);
	KUNIT_EXPECT_EQ(test, shims.to.new_dlid, DLID + 1u);
	KUNIT_EXPECT_EQ(test, (int)shims.to.sl, NEW_SL);
	shims_cycle(hw, test, IB_MTU_2048);
	settle(test, false);
	move = xa_load(&the_device(test)->reroute->table, 21);
	KUNIT_ASSERT_NOT_NULL(test, move);
	KUNIT_EXPECT_EQ(test, (int)move->state, (int)REPATH_MOVE_MOVED);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), NEW_SL);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&hw->ah), DLID + 1);
}

static void on_the_way(struct kunit *test, u32 dlid, u32 to, int sl)
{
	const struct repath_new_path path = {
		.dlid = dlid, .new_dlid = to, .sl = max(sl, 0), .has = sl < 0 ? 0 : REPATH_PATH_SL,
	};

	KUNIT_EXPECT_EQ(test, repath_reroute_repath(the_device(test), 1, &path), 0);
	let_begin(test);
}

/* What is said of the LID that it leaves, or only announced, does not keep it from where it goes. */
static void t_on_the_way(struct kunit *test)
{
	const struct repath_new_path soon = { .dlid = DLID + 1, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	shims.there = true;
	shims.moving = true;
	on_the_way(test, DLID, DLID + 1, -1);
	on_the_way(test, DLID, 0, NEW_SL + 1);
	KUNIT_EXPECT_EQ(test, repath_reroute_prepare(the_device(test), 1, &soon), 0);
	let_begin(test);
	WRITE_ONCE(shims.moving, false);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&hw->ah), DLID + 1);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), OLD_SL);
	on_the_way(test, DLID + 1, 0, NEW_SL);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), NEW_SL);
}

/* It gets to where it was to go first, and then on. */
static void t_by_way_of(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	shims.there = true;
	shims.moving = true;
	shim_sets(hw, IB_QPS_RESET);
	on_the_way(test, DLID, DLID + 1, -1);
	on_the_way(test, DLID + 1, DLID + 2, -1);
	shims.to = (struct repath_new_path){ .dlid = DLID, .new_dlid = DLID + 1, .sl = OLD_SL };
	shim_connects(hw, IB_MTU_2048);
	WRITE_ONCE(shims.moving, false);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&hw->ah), DLID + 2);
}

/* Nobody sends: the alternate path is not armed, and its owner's shim helps. */
static void t_idle(struct kunit *test)
{
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	struct repath_move *move;

	hw_device.no_sqd = true;
	shims.there = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)hw->mig, (int)IB_MIG_REARM);
	KUNIT_EXPECT_EQ(test, shims.asked, 0);
	move = xa_load(&the_device(test)->reroute->table, 21);
	KUNIT_ASSERT_NOT_NULL(test, move);
	WRITE_ONCE(move->until, jiffies - 1);
	mod_delayed_work(system_unbound_wq, &the_device(test)->reroute->work, 0);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, shims.asked, 1);
	shims_cycle(hw, test, IB_MTU_2048);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_CYCLE, NEW_SL, IB_QPS_RTS);
}

static void t_datagrams(struct kunit *test)
{
	struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };

	/* A new path only, and whether queue pairs that are connected use it or not. */
	repath_reroute_prepare(the_device(test), 1, &path);
	repath_reroute_unpath(the_device(test), 1, DLID, REPATH_UNPATH_BREAKS, true);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, shims.told, 0);
	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, false);
	KUNIT_EXPECT_EQ(test, shims.told, 1);
	KUNIT_EXPECT_EQ(test, (int)shims.tale.dlid, DLID);
	KUNIT_EXPECT_EQ(test, (int)shims.tale.sl, NEW_SL);
}

static struct kunit_case reroute_shim_cases[] = {
	KUNIT_CASE(t_by_cycle),
	KUNIT_CASE(t_refused),
	KUNIT_CASE(t_not_known_yet),
	KUNIT_CASE(t_another_partition),
	KUNIT_CASE(t_another_path),
	KUNIT_CASE(t_silent),
	KUNIT_CASE(t_not_in_place),
	KUNIT_CASE(t_waits_for_move),
	KUNIT_CASE(t_told_while_reset),
	KUNIT_CASE(t_left_for_good),
	KUNIT_CASE(t_redirected),
	KUNIT_CASE(t_on_the_way),
	KUNIT_CASE(t_by_way_of),
	KUNIT_CASE(t_idle),
	KUNIT_CASE(t_datagrams),
	KUNIT_CASE(t_roce_by_shims),
	KUNIT_CASE(t_roce_by_sqd),
	KUNIT_CASE(t_roce_by_no_alternate),
	{}
};

static struct kunit_suite reroute_shim_suite = {
	.name = "repath_reroute_shim",
	.init = reroute_init,
	.exit = reroute_exit,
	.test_cases = reroute_shim_cases,
};

kunit_test_suite(reroute_shim_suite);
MODULE_LICENSE("GPL");
