// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 20 */
/* kunit-objs: ../device.o ../track.o ../track_path.o ../track_query.o ../track_user.o ../track_walk.o ../index.o ../path.o ../note.o ../stat.o ../trace.o */
/* Tracking: indexes, their order of events, and teardown. */
#include "track_case.h"

static void t_add_and_find(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 17);
	struct repath_qp *rqp;

	KUNIT_EXPECT_NULL(test, repath_qp_find(dev, 17));
	fake_qp_created(qp, current);
	rqp = repath_qp_find(dev, 17);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_PTR_EQ(test, repath_qp_pid(rqp), task_tgid(current));
	KUNIT_EXPECT_STREQ(test, rqp->user->comm, current->group_leader->comm);
	KUNIT_EXPECT_FALSE(test, rqp->kernel);
	KUNIT_EXPECT_EQ(test, (int)rqp->state, (int)IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 1u);
	repath_qp_put(rqp);

	repath_track_qp_gone(qp);
	KUNIT_EXPECT_NULL(test, repath_qp_find(dev, 17));
	KUNIT_EXPECT_EQ(test, dev->qp_count, 0u);
}

static void t_kernel_qp(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 18);
	struct repath_qp *rqp;

	fake_qp_created(qp, NULL);
	rqp = repath_qp_find(dev, 18);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_TRUE(test, rqp->kernel);
	KUNIT_EXPECT_NULL(test, repath_qp_pid(rqp));
	KUNIT_EXPECT_STREQ(test, rqp->user->comm, "fake");
	KUNIT_EXPECT_EQ(test, dev->user_count, 0u);
	repath_qp_put(rqp);

	/* Connections are for processes. */
	fake_qp_rtr(qp, 1, 5, 99);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.connected, 0);
}

static void t_gsi_of_each_port(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *one = fake_qp(test, dev, 1), *two = fake_qp(test, dev, 1);
	struct repath_qp *rqp;

	one->qp_type = IB_QPT_GSI;
	one->port = 1;
	two->qp_type = IB_QPT_GSI;
	two->port = 2;
	fake_qp_created(one, NULL);
	fake_qp_created(two, NULL);
	KUNIT_EXPECT_NULL(test, repath_qp_find(dev, 1));
	rqp = repath_qp_find(dev, 1 | 2 << 24);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_PTR_EQ(test, rqp->qp, (const struct ib_qp *)two);
	repath_qp_put(rqp);
	repath_track_qp_gone(one);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 1u);
}

/* The number belongs to the new one from its creation on, whenever the old one's end is told. */
static void t_qpn_reused_before_deletion(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *old = fake_qp(test, dev, 20), *new = fake_qp(test, dev, 20);
	struct repath_qp *rqp;

	fake_qp_created(old, current);
	fake_qp_created(new, current);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 1u);
	rqp = repath_qp_find(dev, 20);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_PTR_EQ(test, rqp->qp, (const struct ib_qp *)new);
	repath_qp_put(rqp);

	repath_track_qp_gone(old);
	rqp = repath_qp_find(dev, 20);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_PTR_EQ(test, rqp->qp, (const struct ib_qp *)new);
	repath_qp_put(rqp);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 1u);

	repath_track_qp_gone(new);
	KUNIT_EXPECT_NULL(test, repath_qp_find(dev, 20));
}

/* The end of a queue pair was missed, and its memory is used again, under another number. */
static void t_pointer_reused(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 21);
	struct repath_qp *old, *new;

	fake_qp_created(qp, current);
	old = repath_qp_find(dev, 21);
	qp->qp_num = 22;
	fake_qp_created(qp, current);
	new = repath_qp_find(dev, 22);
	KUNIT_ASSERT_NOT_NULL(test, new);
	/* What happens at this address happens to the new one. */
	fake_qp_rtr(qp, 1, 5, 77);
	KUNIT_EXPECT_EQ(test, (int)new->state, (int)IB_QPS_RTR);
	KUNIT_EXPECT_EQ(test, (int)old->state, (int)IB_QPS_RESET);
	repath_track_sweep_qp(old);
	repath_qp_put(old);
	KUNIT_EXPECT_NULL(test, repath_qp_find(dev, 21));
	KUNIT_EXPECT_EQ(test, dev->qp_count, 1u);
	repath_track_qp_gone(qp);
	repath_qp_put(new);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.gone, 2);
	KUNIT_EXPECT_EQ(test, told.qp_new, 2);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 0u);
}

static void t_path_moves_with_modify(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 30);
	struct repath_path path;
	struct repath_qp *rqp;
	u8 state;
	int i;

	fake_qp_created(qp, current);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 0);

	fake_qp_rtr(qp, 1, 5, 77);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 0, 5), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 5, 0), 0);
	rqp = repath_qp_find(dev, 30);
	repath_qp_snapshot(rqp, &state, &path);
	repath_qp_put(rqp);
	KUNIT_EXPECT_EQ(test, (int)state, (int)IB_QPS_RTR);
	KUNIT_EXPECT_EQ(test, path.dest_qpn, 77u);
	KUNIT_EXPECT_EQ(test, path.dlid, 5u);
	KUNIT_EXPECT_EQ(test, (int)path.sl, 3);
	KUNIT_EXPECT_EQ(test, (int)path.mtu, (int)IB_MTU_2048);

	fake_qp_rtr(qp, 2, 6, 77);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 0);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 6, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 0, 6), 1);

	/* ERR keeps the path. RESET ends it; who has left it is still found there, once and once more. */
	fake_qp_state(qp, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 6, 0), 1);
	for (i = 0; i < 2; i++) {
		fake_qp_state(qp, IB_QPS_RESET);
		KUNIT_EXPECT_EQ(test, on_path(dev, 2, 6, 0), 1);
		KUNIT_EXPECT_EQ(test, on_path(dev, 2, 0, 6), 1);
		rqp = repath_qp_find(dev, 30);
		repath_qp_snapshot(rqp, &state, &path);
		repath_qp_put(rqp);
		KUNIT_EXPECT_FALSE(test, path.has_av);
		KUNIT_EXPECT_EQ(test, (int)path.port, 0);
		KUNIT_EXPECT_EQ(test, (int)path.left_port, 2);
		KUNIT_EXPECT_EQ(test, path.dest_qpn, 0u);
		KUNIT_EXPECT_EQ(test, (int)path.mtu, 0);
	}

	fake_qp_rtr(qp, 1, 5, 77);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 6, 0), 0);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 0, 6), 0);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	repath_track_qp_gone(qp);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 0);
}

/* More than fit into the first guess of how many there are. */
static void t_many_on_one_path(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	int i, count = 0;

	for (i = 0; i < 300; i++) {
		struct ib_qp *qp = fake_qp(test, dev, 1000 + i);

		fake_qp_created(qp, current);
		fake_qp_rtr(qp, 1, i < 200 ? 9 : 10, i);
	}
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 9, 0), 200);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 10, 0), 100);
	KUNIT_EXPECT_EQ(test, repath_qp_walk_of(task_tgid(current), fake_count_qp, &count), 0);
	KUNIT_EXPECT_EQ(test, count, 300);
	count = 0;
	KUNIT_EXPECT_EQ(test, repath_qp_for_each(dev, fake_count_qp, &count), 0);
	KUNIT_EXPECT_EQ(test, count, 300);
}

/* Places of the table by QPN: what the walk finds, and what is reserved. */
static void count_places(struct repath_device *dev, int *used, int *reserved)
{
	XA_STATE(xas, &dev->by_qpn, 0);
	unsigned long flags;
	void *entry;

	*used = *reserved = 0;
	spin_lock_irqsave(&repath_track_lock, flags);
	xas_lock(&xas);
	xas_for_each(&xas, entry, ULONG_MAX) {
		*used += !xa_is_zero(entry);
		*reserved += xa_is_zero(entry);
	}
	xas_unlock(&xas);
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/* However numbers go up, and whichever go first: no more than one place is kept for the next. */
static void t_place_is_kept(struct kunit *test)
{
	static const u32 strides[] = { 1, 3, 64, 4099 };
	struct repath_device *dev = the_device(test);
	int i, k, used, reserved, count;
	struct ib_qp *qps[16];
	u32 qpn = 60;

	for (i = 0; i < ARRAY_SIZE(qps); i++)
		qps[i] = fake_qp(test, dev, 0);
	for (i = 0; i < 200; i++) {
		for (k = 0; k < ARRAY_SIZE(qps); k++) {
			qps[k]->qp_num = qpn;
			qpn += strides[i % ARRAY_SIZE(strides)];
			fake_qp_created(qps[k], current);
		}
		for (k = 0; k < ARRAY_SIZE(qps); k++) {
			count_places(dev, &used, &reserved);
			KUNIT_ASSERT_EQ(test, used, (int)ARRAY_SIZE(qps) - k);
			KUNIT_ASSERT_LE(test, reserved, 1);
			repath_track_qp_gone(qps[i & 1 ? k : ARRAY_SIZE(qps) - 1 - k]);
		}
		count_places(dev, &used, &reserved);
		KUNIT_ASSERT_EQ(test, used, 0);
		KUNIT_ASSERT_EQ(test, reserved, 1);
		count = 0;
		repath_qp_for_each(dev, fake_count_qp, &count);
		KUNIT_ASSERT_EQ(test, count, 0);
		KUNIT_ASSERT_NULL(test, repath_qp_find(dev, qpn - strides[i % ARRAY_SIZE(strides)]));
	}
}

/* A number comes again, and whoever had it before is not meant: the place that is kept, and others. */
static void t_kept_place_is_used(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *a = fake_qp(test, dev, 70), *b = fake_qp(test, dev, 71);
	struct ib_qp *far = fake_qp(test, dev, 7000), *first = fake_qp(test, dev, 0);
	struct repath_qp *rqp;
	int used, reserved;

	/* Alone it needs no node. */
	fake_qp_created(first, current);
	repath_track_qp_gone(first);
	count_places(dev, &used, &reserved);
	KUNIT_EXPECT_EQ(test, used + reserved, 0);

	fake_qp_created(a, current);
	repath_track_qp_gone(a);
	fake_qp_created(a, current);
	fake_qp_created(b, current);
	count_places(dev, &used, &reserved);
	KUNIT_EXPECT_EQ(test, used, 2);
	KUNIT_EXPECT_EQ(test, reserved, 0);
	/* The place that was kept is taken: it stays with who has it. */
	fake_qp_created(far, current);
	repath_track_qp_gone(far);
	rqp = repath_qp_find(dev, 70);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	KUNIT_EXPECT_PTR_EQ(test, rqp->qp, (const struct ib_qp *)a);
	repath_qp_put(rqp);
	repath_track_qp_gone(b);
	repath_track_qp_gone(a);
	count_places(dev, &used, &reserved);
	KUNIT_EXPECT_EQ(test, used, 0);
	KUNIT_EXPECT_EQ(test, reserved, 1);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 0u);
}

static void t_connected_is_told(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *rc = fake_qp(test, dev, 31), *ud = fake_qp(test, dev, 32);

	ud->qp_type = IB_QPT_UD;
	fake_qp_created(rc, current);
	fake_qp_created(ud, current);
	fake_qp_state(rc, IB_QPS_INIT);
	fake_qp_state(ud, IB_QPS_RTR);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.connected, 0);

	fake_qp_rtr(rc, 1, 5, 77);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.connected, 1);
	KUNIT_EXPECT_EQ(test, told.last_connected_qpn, 31u);

	fake_qp_state(rc, IB_QPS_RTS);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.connected, 1);

	fake_qp_state(rc, IB_QPS_RESET);
	fake_qp_rtr(rc, 1, 5, 78);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.connected, 2);
}

/* However late it is told: made, connected, changed, gone. */
static void t_order_of_notes(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 33);

	fake_qp_created(qp, current);
	repath_note_flush();
	fake_qp_rtr(qp, 1, 5, 77);
	repath_note_flush();
	repath_track_qp_gone(qp);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.order, 12345ull);
}

/* As a program loads an alternate path; REARM asks hardware to arm it. */
static void load_alternate(struct ib_qp *qp, u32 port, u16 dlid, enum ib_mig_state mig)
{
	struct ib_qp_attr attr = {
		.alt_port_num = port,
		.alt_pkey_index = 2,
		.path_mig_state = mig,
		.alt_ah_attr = {
			.type = RDMA_AH_ATTR_TYPE_IB, .port_num = port, .sl = 4, .static_rate = 3,
		},
	};

	rdma_ah_set_dlid(&attr.alt_ah_attr, dlid);
	repath_track_qp_modified(qp, &attr, IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE);
}

/* What nobody wants to know wakes no worker; who begins to follow is told from then on. */
static void t_followers(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 34), *other = fake_qp(test, dev, 35);

	told.unheard = true;
	fake_qp_created(qp, current);
	fake_qp_rtr(qp, 1, 5, 77);
	fake_qp_created(other, current);
	repath_track_qp_gone(other);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.order, 0ull);
	KUNIT_EXPECT_EQ(test, told.connected, 0);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 1u);

	repath_qp_follow();
	repath_qp_follow();
	fake_qp_rtr(qp, 1, 5, 78);
	repath_qp_unfollow();
	repath_track_qp_gone(qp);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.order, 2345ull);

	repath_qp_unfollow();
	fake_qp_created(other, current);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.order, 2345ull);
	told.unheard = false;
	repath_track_qp_gone(other);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, told.order, 234545ull);
}

static void t_alternate_path(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 39);
	struct ib_qp_attr attr = { .path_mig_state = IB_MIG_MIGRATED };
	struct repath_alt_path alt;
	struct repath_path path;
	struct repath_qp *rqp;

	fake_qp_created(qp, current);
	fake_qp_rtr(qp, 1, 5, 77);
	/* MIGRATED with nothing loaded is what every queue pair begins with. */
	repath_track_qp_modified(qp, &attr, IB_QP_PATH_MIG_STATE);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	load_alternate(qp, 2, 9, IB_MIG_REARM);
	/* On both, each by its own port, and told once where both are the same. */
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 9, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 9, 0), 0);
	load_alternate(qp, 1, 5, IB_MIG_REARM);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 9, 0), 0);
	load_alternate(qp, 2, 9, IB_MIG_REARM);
	rqp = repath_qp_find(dev, 39);
	repath_qp_snapshot_alt(rqp, &alt);
	KUNIT_EXPECT_EQ(test, alt.dlid, 9u);
	KUNIT_EXPECT_EQ(test, (int)alt.sl, 4);
	KUNIT_EXPECT_EQ(test, (int)alt.rate, 3);
	KUNIT_EXPECT_EQ(test, (int)alt.pkey_index, 2);
	KUNIT_EXPECT_EQ(test, (int)alt.mig, (int)IB_MIG_REARM);

	/* Armed by hardware, found out by asking: the paths stay. */
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTR, .port_num = 1, .dest_qp_num = 77,
		.path_mig_state = IB_MIG_ARMED, .ah_attr.type = RDMA_AH_ATTR_TYPE_IB,
	};
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, rqp->changes, &attr,
							IB_QP_PATH_MIG_STATE, false));
	repath_qp_snapshot_alt(rqp, &alt);
	KUNIT_EXPECT_EQ(test, (int)alt.mig, (int)IB_MIG_ARMED);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 9, 0), 1);

	/* Told to migrate: what was the alternate path is the path. */
	attr = (struct ib_qp_attr){ .path_mig_state = IB_MIG_MIGRATED };
	repath_track_qp_modified(qp, &attr, IB_QP_PATH_MIG_STATE);
	repath_qp_snapshot(rqp, NULL, &path);
	KUNIT_EXPECT_EQ(test, path.dlid, 9u);
	KUNIT_EXPECT_EQ(test, (int)path.port, 2);
	KUNIT_EXPECT_EQ(test, path.dest_qpn, 77u);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 0);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 9, 0), 1);

	/* Migrated by hardware: what the device says is the path now. */
	load_alternate(qp, 1, 5, IB_MIG_REARM);
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTR, .port_num = 1, .dest_qp_num = 77,
		.path_mig_state = IB_MIG_MIGRATED,
		.ah_attr = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1 },
	};
	rdma_ah_set_dlid(&attr.ah_attr, 5);
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, rqp->changes, &attr,
							IB_QP_PATH_MIG_STATE, false));
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 9, 0), 0);

	load_alternate(qp, 2, 9, IB_MIG_REARM);
	fake_qp_state(qp, IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	/* Where it was the device does not know. */
	attr = (struct ib_qp_attr){ .qp_state = IB_QPS_INIT, .port_num = 1 };
	KUNIT_EXPECT_TRUE(test, repath_track_qp_queried(rqp, rqp->changes, &attr, 0, true));
	KUNIT_EXPECT_EQ(test, (int)rqp->state, (int)IB_QPS_INIT);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 9, 0), 0);
	load_alternate(qp, 2, 9, IB_MIG_REARM);
	repath_track_qp_gone(qp);
	KUNIT_EXPECT_EQ(test, on_path(dev, 2, 9, 0), 0);
	repath_qp_put(rqp);
}

/* However many there are, and while the index grows, each is found, and what has gone is not. */
static void t_index_grows(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_qp **qp;
	int i, wrong = 0;

	qp = kunit_kzalloc(test, 5000 * sizeof(*qp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	for (i = 0; i < 5000; i++) {
		qp[i] = fake_qp(test, dev, 100 + i);
		fake_qp_created(qp[i], current);
		fake_qp_rtr(qp[i], 1, 1 + i, i);
		wrong += on_path(dev, 1, 1 + i, 0) != 1;
		wrong += on_path(dev, 1, 1 + i / 2, 0) != 1;
		if (!(i % 64))
			cond_resched();
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	for (i = 0; i < 5000; i += 2)
		repath_track_qp_gone(qp[i]);
	for (i = 0; i < 5000; i++)
		wrong += on_path(dev, 1, 1 + i, 0) != i % 2;
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static void t_contexts_and_users(struct kunit *test)
{
	struct repath_device *dev = the_device(test);
	struct ib_ucontext *mine = kunit_kzalloc(test, sizeof(*mine), GFP_KERNEL);
	struct ib_ucontext *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct ib_qp *qp = fake_qp(test, dev, 35);

	KUNIT_ASSERT_NOT_NULL(test, mine);
	KUNIT_ASSERT_NOT_NULL(test, other);
	mine->device = dev->ibdev;
	other->device = dev->ibdev;
	KUNIT_EXPECT_TRUE(test, repath_track_ctx_add(mine, current, GFP_NOWAIT, 0));
	KUNIT_EXPECT_TRUE(test, repath_track_ctx_add(other, &init_task, GFP_NOWAIT, 0));
	/* Adoption finds it again. */
	KUNIT_EXPECT_TRUE(test, repath_track_ctx_add(other, &init_task, GFP_NOWAIT, 3));
	fake_qp_created(qp, current);
	KUNIT_EXPECT_EQ(test, repath_device_ctx_count(dev), 2u);
	KUNIT_EXPECT_EQ(test, dev->user_count, 2u);

	/* A process is there as long as it holds anything. */
	repath_track_ctx_gone(mine);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, repath_device_ctx_count(dev), 1u);
	KUNIT_EXPECT_EQ(test, dev->user_count, 2u);
	KUNIT_EXPECT_EQ(test, told.ctx_gone, 1);
	KUNIT_EXPECT_EQ(test, told.user_del, 0);
	repath_track_qp_gone(qp);
	repath_note_flush();
	KUNIT_EXPECT_EQ(test, dev->user_count, 1u);
	KUNIT_EXPECT_EQ(test, told.user_new, 2);
	KUNIT_EXPECT_EQ(test, told.user_del, 1);
}

/* Nobody's references keep anything findable, and what is held stays valid. */
static void t_device_gone(struct kunit *test)
{
	struct track_ctx *ctx = test->priv;
	struct repath_device *dev = ctx->dev;
	struct ib_ucontext *uctx = kunit_kzalloc(test, sizeof(*uctx), GFP_KERNEL);
	struct ib_qp *qp = fake_qp(test, dev, 36), *late = fake_qp(test, dev, 37);
	struct ib_device *ibdev = dev->ibdev;
	struct repath_qp *rqp;

	KUNIT_ASSERT_NOT_NULL(test, uctx);
	uctx->device = ibdev;
	fake_qp_created(qp, current);
	fake_qp_rtr(qp, 1, 5, 77);
	repath_track_ctx_add(uctx, current, GFP_NOWAIT, 0);
	rqp = repath_qp_find(dev, 36);
	KUNIT_ASSERT_NOT_NULL(test, rqp);
	repath_device_get(dev);

	repath_track_device_gone(dev);
	ctx->dev = NULL;
	repath_note_flush();
	KUNIT_EXPECT_TRUE(test, rqp->gone);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 0u);
	KUNIT_EXPECT_EQ(test, dev->ctx_count, 0u);
	KUNIT_EXPECT_EQ(test, dev->user_count, 0u);
	KUNIT_EXPECT_EQ(test, told.gone, 1);
	KUNIT_EXPECT_EQ(test, told.device_del, 1);
	KUNIT_EXPECT_EQ(test, told.user_del, 1);
	KUNIT_EXPECT_EQ(test, on_path(dev, 1, 5, 0), 0);
	KUNIT_EXPECT_NULL(test, repath_device_get_by_name(NULL, "fake0"));

	/* Handlers that are still running change nothing. */
	repath_track_qp_gone(qp);
	fake_qp_state(qp, IB_QPS_ERR);
	repath_track_ctx_gone(uctx);
	fake_qp_created(late, current);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 0u);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_PROBE_NO_MEMORY), 0ull);

	/* The last reference ends all of it, in whatever order. */
	KUNIT_EXPECT_EQ(test, kref_read(&rqp->kref), 1u);
	repath_device_put(dev);
	repath_device_put(dev);
	KUNIT_EXPECT_EQ(test, kref_read(&rqp->dev->kref), 1u); /* of the queue pair's user */
	repath_qp_put(rqp);
	repath_note_flush();
	ib_dealloc_device(ibdev);
}

/*
 * Where the device belongs to afterwards may be another network namespace, or one whose memory goes: all is told
 * before, however slow those are who hear it, and whatever goes on elsewhere.
 */
static void t_device_gone_is_told(struct kunit *test)
{
	struct track_ctx *ctx = test->priv;
	struct repath_device *dev = ctx->dev;
	struct ib_device *ibdev = dev->ibdev;
	u32 i;

	for (i = 0; i < 8; i++)
		fake_qp_created(fake_qp(test, dev, 40 + i), current);
	repath_note_flush();
	told.slow = true;
	repath_device_get(dev);
	repath_track_device_gone(dev);
	ctx->dev = NULL;
	KUNIT_EXPECT_EQ(test, told.qp_del, 8);
	KUNIT_EXPECT_EQ(test, told.gone, 8);
	KUNIT_EXPECT_EQ(test, told.user_del, 1);
	KUNIT_EXPECT_EQ(test, told.device_del, 1);
	repath_device_put(dev);
	repath_device_put(dev);
	repath_note_flush();
	ib_dealloc_device(ibdev);
}

static void t_foreign_device_is_ignored(struct kunit *test)
{
	struct fake_device *fake = ib_alloc_device(fake_device, ibdev);
	struct repath_device *dev = the_device(test);
	struct ib_qp *qp = fake_qp(test, dev, 38);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	qp->device = &fake->ibdev;
	fake_qp_created(qp, current);
	KUNIT_EXPECT_EQ(test, dev->qp_count, 0u);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_PROBE_NO_MEMORY), 0ull);
	ib_dealloc_device(&fake->ibdev);
}

static void t_devices_by_index_and_name(struct kunit *test)
{
	struct repath_device *dev = the_device(test), *found, *other;
	int count = 0;

	other = fake_device_add(test, "fake1", 3);
	found = repath_device_next(NULL, 0);
	KUNIT_EXPECT_PTR_EQ(test, found, other);
	repath_device_put(found);
	found = repath_device_get_by_index(NULL, 7);
	KUNIT_EXPECT_PTR_EQ(test, found, dev);
	repath_device_put(found);
	KUNIT_EXPECT_NULL(test, repath_device_get_by_index(NULL, 5));
	KUNIT_EXPECT_NULL(test, repath_device_get_by_name(NULL, "fake2"));
	found = repath_device_get_by_name(NULL, "fake1");
	KUNIT_EXPECT_PTR_EQ(test, found, other);
	repath_device_put(found);

	dev_set_name(&other->ibdev->dev, "fake2");
	repath_device_rename(other);
	KUNIT_EXPECT_NULL(test, repath_device_get_by_name(NULL, "fake1"));
	found = repath_device_get_by_name(NULL, "fake2");
	KUNIT_EXPECT_PTR_EQ(test, found, other);
	repath_device_put(found);

	repath_device_for_each(found, NULL)
		count++;
	KUNIT_EXPECT_EQ(test, count, 2);
	fake_device_del(other);
}

/* A rescan at once, and then the more seldom, the longer there are reasons; none is forgotten. */
static void t_rest(struct kunit *test)
{
	struct repath_rest rest = {};
	unsigned int look, rescans = 0;

	KUNIT_EXPECT_FALSE(test, repath_rest_over(&rest, false));
	for (look = 0; look < 1000; look++)
		rescans += repath_rest_over(&rest, true);
	KUNIT_EXPECT_GE(test, rescans, 1000u / (REPATH_REST_MOST + 1));
	KUNIT_EXPECT_LE(test, rescans, 7 + 1000u / (REPATH_REST_MOST + 1));
	while (!repath_rest_over(&rest, true))
		;
	for (look = 0; look <= REPATH_REST_MOST; look++)
		KUNIT_EXPECT_FALSE(test, repath_rest_over(&rest, false));
	KUNIT_EXPECT_TRUE(test, repath_rest_over(&rest, true));
	KUNIT_EXPECT_TRUE(test, repath_rest_over(&rest, true));
	KUNIT_EXPECT_FALSE(test, repath_rest_over(&rest, true));
}

static struct kunit_case track_cases[] = {
	KUNIT_CASE(t_rest),
	KUNIT_CASE(t_add_and_find),
	KUNIT_CASE(t_kernel_qp),
	KUNIT_CASE(t_gsi_of_each_port),
	KUNIT_CASE(t_qpn_reused_before_deletion),
	KUNIT_CASE(t_pointer_reused),
	KUNIT_CASE(t_path_moves_with_modify),
	KUNIT_CASE(t_many_on_one_path),
	KUNIT_CASE(t_place_is_kept),
	KUNIT_CASE(t_kept_place_is_used),
	KUNIT_CASE(t_connected_is_told),
	KUNIT_CASE(t_order_of_notes),
	KUNIT_CASE(t_followers),
	KUNIT_CASE(t_alternate_path),
	KUNIT_CASE(t_index_grows),
	KUNIT_CASE(t_contexts_and_users),
	KUNIT_CASE(t_device_gone),
	KUNIT_CASE(t_device_gone_is_told),
	KUNIT_CASE(t_foreign_device_is_ignored),
	KUNIT_CASE(t_devices_by_index_and_name),
	{}
};

static struct kunit_suite track_suite = {
	.name = "repath_track",
	.init = track_init,
	.exit = track_exit,
	.test_cases = track_cases,
};
kunit_test_suite(track_suite);
MODULE_LICENSE("GPL");
