// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 2 */
/* kunit-objs: ../device.o ../track.o ../track_path.o ../track_query.o ../track_user.o ../track_walk.o ../index.o ../path.o ../note.o ../stat.o ../trace.o */
/*
 * Looking for the queue pairs of one path among many: what is found is right, and what it takes is
 * told for tests/bench/qp_lookup.py; nothing fails because of a time.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sort.h>

#include "track_fakes.h"

#define ROUNDS 301

static int lookup_init(struct kunit *test)
{
	memset(&told, 0, sizeof(told));
	KUNIT_ASSERT_EQ(test, repath_track_init(), 0);
	KUNIT_ASSERT_EQ(test, repath_note_init(), 0);
	return 0;
}

static void lookup_exit(struct kunit *test)
{
	repath_note_exit();
	repath_track_exit();
}

/* The 1, 10 and 100 that are looked for; all others have a DLID each of their own, from 1000 on. */
static u32 dlid_of(int i)
{
	return i < 1 ? 1 : i < 11 ? 10 : i < 111 ? 100 : 1000 + i;
}

static void set_path(struct ib_qp *qp, u32 dlid)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.ah_attr = { .type = RDMA_AH_ATTR_TYPE_OPA, .port_num = 1 },
	};

	rdma_ah_set_dlid(&attr.ah_attr, dlid);
	repath_track_qp_modified(qp, &attr, IB_QP_STATE | IB_QP_AV);
}

static int by_time(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void look(struct kunit *test, struct repath_device *dev, int total, u32 dlid)
{
	static u64 took[ROUNDS];
	union ib_gid none = {};
	int round, count = 0;
	u64 begin;

	for (round = 0; round < ROUNDS; round++) {
		count = 0;
		begin = ktime_get_ns();
		if (dlid)
			repath_qp_walk_on_path(dev, 1, dlid, &none, fake_count_qp, &count);
		else
			repath_qp_for_each(dev, fake_count_qp, &count);
		took[round] = ktime_get_ns() - begin;
		/* A walk of all is slow enough to need no more. */
		if (!dlid && round == 4)
			break;
	}
	KUNIT_EXPECT_EQ(test, count, dlid ? (int)dlid : total);
	round = min(round + 1, ROUNDS);
	sort(took, round, sizeof(*took), by_time, NULL);
	pr_info("lookup: %d of %d: %llu ns\n", count, total, took[round / 2]);
}

static void among(struct kunit *test, int total)
{
	struct repath_device *dev = fake_device_add(test, "fake0", 1);
	struct ib_qp *qps = kvcalloc(total, sizeof(*qps), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, qps);
	for (i = 0; i < total; i++) {
		qps[i].device = dev->ibdev;
		qps[i].real_qp = &qps[i];
		qps[i].qp_num = 16 + i;
		qps[i].qp_type = IB_QPT_RC;
		fake_qp_created(&qps[i], current);
		set_path(&qps[i], dlid_of(i));
		if (!(i % 1024))
			cond_resched();
	}
	repath_note_flush();
	look(test, dev, total, 1);
	look(test, dev, total, 10);
	look(test, dev, total, 100);
	look(test, dev, total, 0);
	fake_device_del(dev);
	kvfree(qps);
}

static void t_among_1k(struct kunit *test)
{
	among(test, 1024);
}

static void t_among_64k(struct kunit *test)
{
	among(test, 65536);
}

static struct kunit_case lookup_cases[] = {
	KUNIT_CASE(t_among_1k),
	KUNIT_CASE(t_among_64k),
	{}
};

static struct kunit_suite lookup_suite = {
	.name = "repath_lookup",
	.init = lookup_init,
	.exit = lookup_exit,
	.test_cases = lookup_cases,
};
kunit_test_suite(lookup_suite);
MODULE_LICENSE("GPL");
