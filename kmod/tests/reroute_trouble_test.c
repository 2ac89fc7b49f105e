// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 8 */
/* kunit-objs: ../device.o ../track.o ../track_path.o ../track_query.o ../track_user.o ../track_walk.o ../index.o ../path.o ../note.o ../stat.o ../trace.o ../reroute.o ../reroute_qp.o ../reroute_path.o ../reroute_way.o ../reroute_cycle.o */
/* Queue pairs are moved to new paths whatever becomes of who tells them, and of the device's word. */
#include <linux/kprobes.h>
#include <rdma/ib_cache.h>

#include "reroute_case.h"

/* Another subnet manager counts its routings from the beginning. */
static void t_another_manager(struct kunit *test)
{
	struct repath_new_path path = {
		.dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL, .serial = 70, .epoch = 1,
	};
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	path.serial = 2;
	path.epoch = 9;
	path.sl = 3;
	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, 3, IB_QPS_RTS);
	path.serial = 1;
	path.sl = 4;
	repath_reroute_repath(the_device(test), 1, &path);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, 3, IB_QPS_RTS);
}

/* It dies before it says what comes instead; the next one says it while the queue pair still waits. */
static void t_manager_dies(struct kunit *test)
{
	const struct repath_new_path ahead = {
		.dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL, .serial = 70, .epoch = 1,
	};
	const struct repath_new_path path = {
		.dlid = DLID, .sl = 3, .has = REPATH_PATH_SL, .serial = 1, .epoch = 2,
	};
	struct hw_qp *waits = add_qp(test, 21, DLID, current), *loaded = add_qp(test, 22, DLID, current);
	struct repath_device *dev = the_device(test);

	repath_reroute_prepare(dev, 1, &ahead);
	repath_reroute_unpath(dev, 1, DLID, REPATH_UNPATH_BREAKS, true);
	let_begin(test);
	waits->mig = IB_MIG_ARMED;
	settle(test, true);
	/* It still sends, by the path that there is. */
	KUNIT_EXPECT_EQ(test, (int)waits->state, (int)IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&waits->ah), OLD_SL);
	repath_reroute_unpath(dev, 1, DLID, REPATH_UNPATH_BREAKS, true);
	let_begin(test);
	KUNIT_EXPECT_EQ(test, (int)loaded->state, (int)IB_QPS_SQD);
	repath_reroute_repath(dev, 1, &path);
	settle(test, false);
	expect(test, waits, REPATH_MOVE_MOVED, REPATH_BY_SQD, 3, IB_QPS_RTS);
	expect(test, loaded, REPATH_MOVE_MOVED, REPATH_BY_SQD, 3, IB_QPS_RTS);
}

/* It takes no alternate path, though it was told in time: the other way is left. */
static void t_alternate_refused(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);

	hw_device.no_alt = true;
	repath_reroute_prepare(the_device(test), 1, &path);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_NONE, REPATH_BY_NONE, OLD_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hw->modified, 0);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, (int)hw->mig, (int)IB_MIG_MIGRATED);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVE_NO_WAY), 0ull);
}

/*
 * In the middle of a move its owner, or the device, goes over to another path: the new address was not for that. The third
 * one goes over to another path between the same LIDs: what is told of these holds.
 */
static void t_migrates_while_drained(struct kunit *test)
{
	struct ib_qp_attr over = { .path_mig_state = IB_MIG_MIGRATED }, owners = {
		.path_mig_state = IB_MIG_REARM,
		.alt_port_num = 1,
		.alt_ah_attr = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = 7 },
	};
	struct repath_move *move;
	struct hw_qp *hw[3];
	int i;

	for (i = 0; i < 3; i++) {
		hw[i] = add_qp(test, 21 + i, DLID, current);
		rdma_ah_set_dlid(&owners.alt_ah_attr, i < 2 ? DLID + 1 : DLID);
		KUNIT_ASSERT_EQ(test, owner_does(hw[i], &owners, IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE), 0);
		hw[i]->mig = IB_MIG_ARMED;
		hw[i]->draining = true;
	}
	reroute_to(test, NEW_SL);
	let_begin(test);
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, (int)hw[i]->state, (int)IB_QPS_SQD);
	KUNIT_ASSERT_EQ(test, owner_does(hw[0], &over, IB_QP_PATH_MIG_STATE), 0);
	for (i = 1; i < 3; i++) {
		hw[i]->ah = hw[i]->alt;
		hw[i]->mig = IB_MIG_MIGRATED;
	}
	for (i = 0; i < 3; i++)
		WRITE_ONCE(hw[i]->draining, false);
	settle(test, false);
	for (i = 0; i < 2; i++) {
		move = xa_load(&the_device(test)->reroute->table, hw[i]->qp.qp_num);
		KUNIT_ASSERT_NOT_NULL(test, move);
		KUNIT_EXPECT_EQ(test, (int)move->state, (int)REPATH_MOVE_NONE);
		KUNIT_ASSERT_NOT_NULL(test, move->why);
		KUNIT_EXPECT_STREQ(test, move->why, "it is on another path by now");
		KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&hw[i]->ah), DLID + 1);
		KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw[i]->ah), 7);
		KUNIT_EXPECT_EQ(test, (int)hw[i]->state, (int)IB_QPS_RTS);
	}
	expect(test, hw[2], REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

static const struct ib_gid_attr *gid_now(struct kunit *test)
{
	const struct ib_gid_attr *gid = rdma_get_gid_attr(the_device(test)->ibdev, 1, 0);

	if (!IS_ERR(gid))
		rdma_put_gid_attr(gid);
	return gid;
}

/* With each subnet manager's client reregistration ib_core makes all GID entries anew. */
static void t_gid_entry_is_new(struct kunit *test)
{
	struct ib_event event = {
		.device = the_device(test)->ibdev, .event = IB_EVENT_GID_CHANGE,
		.element.port_num = 1,
	};
	struct rdma_ah_attr ah = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = OLD_SL };
	struct hw_qp *hw = add_qp(test, 21, DLID, current);
	const struct ib_gid_attr *noted;
	int tries;

	rdma_ah_set_dlid(&ah, DLID);
	rdma_ah_set_grh(&ah, NULL, 0, 0, 1, 0);
	owner_readdresses(test, hw, &ah);
	noted = hw->qp.av_sgid_attr;
	KUNIT_ASSERT_NOT_NULL(test, noted);
	reroute_to(test, NEW_SL);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
	KUNIT_EXPECT_PTR_EQ(test, hw->qp.av_sgid_attr, noted);

	ib_dispatch_event(&event);
	for (tries = 0; tries < 1000 && (IS_ERR(gid_now(test)) || gid_now(test) == noted); tries++)
		usleep_range(1000, 2000);
	KUNIT_ASSERT_PTR_NE(test, gid_now(test), noted);
	reroute_to(test, 3);
	settle(test, false);
	expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, 3, IB_QPS_RTS);
	/* Nobody else takes it back. */
	KUNIT_EXPECT_PTR_EQ(test, hw->qp.av_sgid_attr, noted);
	rdma_put_gid_attr(noted);
}

/* Its device is silent for a while: a queue pair that was drained for us does not stay so. */
static void t_device_is_silent(struct kunit *test)
{
	struct hw_qp *moves = add_qp(test, 21, DLID, current);

	moves->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_ASSERT_EQ(test, (int)moves->state, (int)IB_QPS_SQD);
	hw_device.mute = 3;
	WRITE_ONCE(moves->draining, false);
	settle(test, true);
	KUNIT_EXPECT_EQ(test, hw_device.mute, 0);
	expect(test, moves, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

/* The same when the module lets go of it. */
static void t_silent_when_released(struct kunit *test)
{
	struct hw_qp *moves = add_qp(test, 21, DLID, current);
	struct repath_device *dev = the_device(test);

	moves->draining = true;
	reroute_to(test, NEW_SL);
	let_begin(test);
	KUNIT_ASSERT_EQ(test, (int)moves->state, (int)IB_QPS_SQD);
	hw_device.mute = 2;
	repath_reroute_end(dev);
	KUNIT_EXPECT_EQ(test, (int)moves->state, (int)IB_QPS_RTS);
}

/* Memory that the work item asks for, and does not get: once, after so many times that it does. */
static struct {
	int given;
	bool refused;
	bool probed;
} memory;

static noinline int refuse(void)
{
	return -ENOMEM;
}

static int asked_for_memory(struct kprobe *probe, struct pt_regs *regs)
{
	if (memory.refused || in_hardirq() || in_serving_softirq() || current != READ_ONCE(hw_device.reroute->hand) || memory.given-- > 0)
		return 0;
	memory.refused = true;
	/* It returns to who has called the function that is probed. */
	instruction_pointer_set(regs, (unsigned long)refuse);
	return 1;
}

/* Without one a probe may not lead elsewhere. */
static void answered_for_memory(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe memory_probe = {
	.symbol_name = "should_failslab",
	.pre_handler = asked_for_memory,
	.post_handler = answered_for_memory,
};

/* Who is told of a path, or connects late to one, is on it in the end whatever there was no memory for. */
static void t_no_memory(struct kunit *test)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct repath_device *dev = the_device(test);
	struct hw_qp *hw;
	int err, late, times;

	/* It remembers where it was. */
	memory_probe.addr = NULL;
	memory_probe.flags = 0;
	err = register_kprobe(&memory_probe);
	if (err == -ENOENT)
		kunit_skip(test, "this kernel asks nobody before it gives memory");
	KUNIT_ASSERT_EQ(test, err, 0);
	memory.probed = true;
	for (late = 0; late < 2; late++) {
		times = 0;
		do {
			hw = add_qp(test, 21, DLID, current);
			memory.given = times++;
			WRITE_ONCE(memory.refused, false);
			if (late)
				repath_reroute_late(dev, 1, &path, U64_MAX);
			else
				repath_reroute_repath(dev, 1, &path);
			settle(test, false);
			expect(test, hw, REPATH_MOVE_MOVED, REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
			del_qp(test, hw);
		} while (memory.refused);
		KUNIT_EXPECT_GT(test, times, 1);
	}
}

static void reroute_trouble_exit(struct kunit *test)
{
	if (memory.probed)
		unregister_kprobe(&memory_probe);
	memory.probed = false;
	reroute_exit(test);
}

static struct kunit_case reroute_trouble_cases[] = {
	KUNIT_CASE(t_no_memory),
	KUNIT_CASE(t_device_is_silent),
	KUNIT_CASE(t_silent_when_released),
	KUNIT_CASE(t_another_manager),
	KUNIT_CASE(t_manager_dies),
	KUNIT_CASE(t_alternate_refused),
	KUNIT_CASE(t_migrates_while_drained),
	KUNIT_CASE(t_gid_entry_is_new),
	{}
};

static struct kunit_suite reroute_trouble_suite = {
	.name = "repath_reroute_trouble",
	.init = reroute_init,
	.exit = reroute_trouble_exit,
	.test_cases = reroute_trouble_cases,
};
kunit_test_suite(reroute_trouble_suite);
MODULE_LICENSE("GPL");
