// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 7 */
/* kunit-objs: ../device.o ../track.o ../track_path.o ../track_query.o ../track_user.o ../track_walk.o ../index.o ../path.o ../note.o ../stat.o ../trace.o */
/* Tracking: what no hook has seen, and adoption or the device itself is asked for. */
#include "track_case.h"

static void t_adoption_does_not_double(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *known = fake_qp(test, dev, 23), *unknown = fake_qp(test, dev, 24);
	struct repath_qp *rqp, *again;

	fake_qp_created(known, current);
	rqp = repath_qp_find(dev, 23);
	again = repath_track_qp_add(known, current, NULL, GFP_KERNEL, 5);
	KUNIT_EXPECT_PTR_EQ(test, again, rqp);
	KUNIT_EXPECT_EQ(test, rqp->rescan, 5u);
	repath_qp_put(again);
	repath_qp_put(rqp);

	again = repath_track_qp_add(unknown, current, NULL, GFP_KERNEL, 5);
	KUNIT_ASSERT_NOT_NULL(test, again);
	repath_qp_put(again);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 2u);
}

/* Nobody has told of the end of what lay at this address, nor of what lies there now. */
static void t_adoption_of_reused_memory(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_ucontext *uctx = kunit_kzalloc(test, sizeof(*uctx), GFP_KERNEL);
	struct ib_qp *qp = fake_qp(test, dev, 26);
	struct repath_qp *rqp;

	KUNIT_ASSERT_NOT_NULL(test, uctx);
	uctx->device = dev->ibdev;
	fake_qp_created(qp, current);
	repath_track_ctx_add(uctx, current, GFP_NOWAIT, 0);

	rqp = repath_track_qp_add(qp, &init_task, NULL, GFP_KERNEL, 7);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_PTR_EQ(test, repath_qp_pid(rqp), task_tgid(&init_task));
	repath_qp_put(rqp);
	KUNIT_EXPECT_TRUE(test, repath_track_ctx_add(uctx, &init_task, GFP_KERNEL, 7));
	KUNIT_EXPECT_EQ(test, dev->qp_count, 1u);
	KUNIT_EXPECT_EQ(test, dev->ctx_count, 1u);
	KUNIT_EXPECT_EQ(test, dev->user_count, 1u);
}

/* An adopted queue pair is never newer than what a hook has brought under the same number. */
static void t_adopted_does_not_take_qpn(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *hooked = fake_qp(test, dev, 25), *adopted = fake_qp(test, dev, 25);
	struct repath_qp *rqp;

	fake_qp_created(hooked, current);
	KUNIT_EXPECT_NULL(test, repath_track_qp_add(adopted, current, NULL, GFP_KERNEL, 6));
	rqp = repath_qp_find(dev, 25);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_PTR_EQ(test, rqp->qp, (const struct ib_qp *)hooked);
	repath_qp_put(rqp);

	/* Unless that one has gone when adoption comes by again. */
	repath_track_qp_gone(hooked);
	KUNIT_EXPECT_NULL(test, repath_qp_find(dev, 25));
	rqp = repath_track_qp_add(adopted, current, NULL, GFP_KERNEL, 7);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_EQ(test, rqp->created_ns, 0ull);
	repath_qp_put(rqp);
	rqp = repath_qp_find(dev, 25);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_PTR_EQ(test, rqp->qp, (const struct ib_qp *)adopted);
	repath_qp_put(rqp);
}

/*
 * A queue pair that is connected while the module is loaded: RTR was under way when the hooks came,
 * so adoption has found INIT, and they see RTS.
 */
static void t_missed_address_is_asked_for(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct ib_qp *rc = fake_qp(test, dev, 35), *ud = fake_qp(test, dev, 36);
	struct repath_qp *rqp;

	ud->qp_type = IB_QPT_UD;
	fake_qp_created(ud, current);
	fake_qp_state(ud, IB_QPS_RTS);
	rqp = repath_track_qp_add(rc, current, NULL, GFP_KERNEL, 1);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, rqp->changes, &attr, 0, true));
	flush_work(&dev->rescan);
	KUNIT_EXPECT_EQ(test, told.rescans, 0);

	fake_qp_state(rc, IB_QPS_RTS);
	flush_work(&dev->rescan);
	KUNIT_EXPECT_EQ(test, told.rescans, 1);

	attr.qp_state = IB_QPS_RTS;
	attr.dest_qp_num = 77;
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	attr.ah_attr.port_num = 1;
	rdma_ah_set_dlid(&attr.ah_attr, 8);
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, rqp->changes, &attr, 0, true));
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.connected, 1);
	KUNIT_EXPECT_EQ(test, told.last_connected_qpn, 35u);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 8, 0), 1);

	fake_qp_state(rc, IB_QPS_SQD);
	fake_qp_state(rc, IB_QPS_ERR);
	flush_work(&dev->rescan);
	KUNIT_EXPECT_EQ(test, told.rescans, 1);
	repath_qp_put(rqp);
}

static void t_query_is_not_believed_after_modify(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 34);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct repath_qp *rqp;
	u32 changes;

	fake_qp_created(qp, current);
	rqp = repath_qp_find(dev, 34);
	changes = rqp->changes;
	fake_qp_rtr(qp, 1, 5, 77);
	KUNIT_EXPECT_FALSE(test, repath_track_qp_queried(rqp, changes, &attr, 0, true));
	KUNIT_EXPECT_EQ(test, (int)rqp->state, (int)IB_QPS_RTR);

	changes = rqp->changes;
	attr.qp_state = IB_QPS_RTS;
	attr.dest_qp_num = 77;
	attr.port_num = 1;
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	attr.ah_attr.port_num = 1;
	rdma_ah_set_dlid(&attr.ah_attr, 8);
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, changes, &attr, 0, true));
	KUNIT_EXPECT_EQ(test, (int)rqp->state, (int)IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 8, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 0);
	repath_qp_put(rqp);
}

/* As rxe does: what it leaves out has not changed, unless the address is another one. */
static void t_device_does_not_tell_the_mac(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 37);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR, .dest_qp_num = 77, .port_num = 1 };
	struct repath_qp *rqp;

	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.ah_flags = IB_AH_GRH;
	attr.ah_attr.grh.dgid = fake_dgid(9);
	attr.ah_attr.roce.dmac[5] = 9;
	fake_qp_created(qp, current);
	repath_track_qp_modified(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_DEST_QPN);
	rqp = repath_qp_find(dev, 37);
	KUNIT_ASSERT_NOT_NULL(test, rqp);

	attr.ah_attr.roce.dmac[5] = 0;
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, rqp->changes, &attr, 0, true));
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_CORRECTED), 0ull);
	KUNIT_EXPECT_EQ(test, (int)rqp->path.dmac[5], 9);

	attr.ah_attr.grh.dgid = fake_dgid(10);
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, rqp->changes, &attr, 0, true));
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_CORRECTED), 1ull);
	KUNIT_EXPECT_EQ(test, (int)rqp->path.dmac[5], 0);
	repath_qp_put(rqp);
}

/* Hardware that takes a queue pair to ERR tells nobody; what it says of the path is not believed. */
static void t_asked_for_what_hardware_does(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 34);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR, .dest_qp_num = 1, .port_num = 1 };
	struct repath_qp *rqp;

	fake_qp_created(qp, current);
	fake_qp_rtr(qp, 1, 5, 77);
	rqp = repath_qp_find(dev, 34);
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	attr.ah_attr.port_num = 1;
	rdma_ah_set_dlid(&attr.ah_attr, 8);
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, rqp->changes, &attr, 0, false));
	KUNIT_EXPECT_EQ(test, (int)rqp->state, (int)IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 8, 0), 0);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_CORRECTED), 1ull);
	/* The same again is no news. */
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, rqp->changes, &attr, 0, false));
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_CORRECTED), 1ull);
	repath_qp_put(rqp);
}

static struct kunit_case asked_cases[] = {
	KUNIT_CASE(t_adoption_does_not_double),
	KUNIT_CASE(t_adoption_of_reused_memory),
	KUNIT_CASE(t_adopted_does_not_take_qpn),
	KUNIT_CASE(t_missed_address_is_asked_for),
	KUNIT_CASE(t_query_is_not_believed_after_modify),
	KUNIT_CASE(t_device_does_not_tell_the_mac),
	KUNIT_CASE(t_asked_for_what_hardware_does),
	{}
};

static struct kunit_suite asked_suite = {
	.name = "repath_track_asked",
	.init = track_init,
	.exit = track_exit,
	.test_cases = asked_cases,
};
kunit_test_suite(asked_suite);
MODULE_LICENSE("GPL");
