// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 12 */
/* kunit-objs: ../notice.o ../learnt.o */
/* What is read from Reports, what is known again, and the table of what was learnt. */
#include <kunit/test.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>
#include <repath_sm.h>
#include <uapi/ib_repath.h>

#include "../learnt.h"
#include "../notice.h"
#include "fuzz.h"

static struct ib_mad *report_new(struct kunit *test, u16 trap, u64 mask)
{
	struct ib_sa_mad *mad = kunit_kzalloc(test, sizeof(*mad), GFP_KERNEL);
	struct repath_sm_report *report;

	KUNIT_ASSERT_NOT_NULL(test, mad);
	mad->mad_hdr.base_version = IB_MGMT_BASE_VERSION;
	mad->mad_hdr.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
	mad->mad_hdr.class_version = IB_SA_CLASS_VERSION;
	mad->mad_hdr.method = IB_MGMT_METHOD_REPORT;
	mad->mad_hdr.attr_id = cpu_to_be16(IB_SA_ATTR_NOTICE);
	report = (void *)mad->data;
	report->type = REPATH_SM_TYPE;
	report->producer[2] = REPATH_SM_PRODUCER;
	report->trap = cpu_to_be16(trap);
	report->details.version = REPATH_SM_VERSION;
	report->details.comp_mask = cpu_to_be64(mask);
	report->details.sm_epoch = cpu_to_be32(0x11223344);
	report->details.serial = cpu_to_be32(5);
	report->details.number = cpu_to_be32(6);
	report->path.slid = cpu_to_be16(3);
	report->path.dlid = cpu_to_be16(4);
	report->path.dgid[15] = 9;
	report->path.pkey = cpu_to_be16(0x8001);
	report->path.qos_class_sl = cpu_to_be16(0xfff2);
	report->path.mtu = REPATH_SM_EXACTLY | IB_MTU_2048;
	report->path.rate = REPATH_SM_EXACTLY | IB_RATE_10_GBPS;
	return (struct ib_mad *)mad;
}

static struct repath_sm_report *in(struct ib_mad *mad)
{
	return (void *)((struct ib_sa_mad *)mad)->data;
}

#define WHOLE (REPATH_SM_MASK_SLID | REPATH_SM_MASK_DLID | REPATH_SM_MASK_SL | \
	       REPATH_SM_MASK_MTU | REPATH_SM_MASK_RATE | REPATH_SM_MASK_PKEY)

static void t_whole_path(struct kunit *test)
{
	struct ib_mad *mad = report_new(test, REPATH_SM_REPATH, WHOLE);
	struct repath_notice n;

	KUNIT_EXPECT_TRUE(test, repath_notice_is_report(mad));
	KUNIT_ASSERT_EQ(test, repath_notice_parse(mad, &n), 0);
	KUNIT_EXPECT_TRUE(test, n.repath);
	KUNIT_EXPECT_EQ(test, n.mask, (u64)WHOLE);
	KUNIT_EXPECT_EQ(test, n.epoch, 0x11223344u);
	KUNIT_EXPECT_EQ(test, n.serial, 5u);
	KUNIT_EXPECT_EQ(test, n.number, 6u);
	KUNIT_EXPECT_EQ(test, n.slid, 3);
	KUNIT_EXPECT_EQ(test, n.dlid, 4);
	KUNIT_EXPECT_EQ(test, n.pkey, 0x8001);
	KUNIT_EXPECT_EQ(test, n.sl, 2);
	KUNIT_EXPECT_EQ(test, n.mtu, (u8)IB_MTU_2048);
	KUNIT_EXPECT_EQ(test, n.rate, (u8)IB_RATE_10_GBPS);
	KUNIT_EXPECT_EQ(test, n.dgid[15], 0);
	KUNIT_EXPECT_FALSE(test, n.wait || n.ahead);
}

/* What the mask does not have may be anything, and is not read. */
static void t_mask(struct kunit *test)
{
	struct ib_mad *mad = report_new(test, REPATH_SM_UNPATH, 0);
	struct repath_notice n;

	in(mad)->path.mtu = 0xff;
	in(mad)->path.rate = 0xff;
	in(mad)->path.dlid = cpu_to_be16(0xffff);
	in(mad)->details.flags = REPATH_SM_WAIT_FOR_REPATH | REPATH_SM_LANE;
	KUNIT_ASSERT_EQ(test, repath_notice_parse(mad, &n), 0);
	KUNIT_EXPECT_FALSE(test, n.repath);
	KUNIT_EXPECT_TRUE(test, n.wait);
	KUNIT_EXPECT_FALSE(test, n.ahead);
	KUNIT_EXPECT_EQ(test, n.kind, (u8)REPATH_SM_LANE);
	KUNIT_EXPECT_EQ(test, n.slid | n.dlid | n.sl | n.mtu | n.rate | n.pkey, 0);
}

static void t_nonsense(struct kunit *test)
{
	struct repath_notice n;
	struct ib_mad *mad;

	mad = report_new(test, 64, 0);
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -ENOMSG);
	/* A vendor's notice with the number of ours. */
	mad = report_new(test, REPATH_SM_REPATH, 0);
	in(mad)->type &= 0x7f;
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -ENOMSG);
	mad = report_new(test, REPATH_SM_REPATH, 0);
	in(mad)->details.version++;
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -EPROTO);
	mad = report_new(test, REPATH_SM_REPATH, WHOLE);
	in(mad)->path.dlid = cpu_to_be16(0xc000);
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -EBADMSG);
	in(mad)->path.dlid = 0;
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -EBADMSG);
	mad = report_new(test, REPATH_SM_REPATH, WHOLE);
	in(mad)->path.slid = cpu_to_be16(0xffff);
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -EBADMSG);
	mad = report_new(test, REPATH_SM_REPATH, WHOLE);
	in(mad)->path.mtu = REPATH_SM_EXACTLY;
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -EBADMSG);
	mad = report_new(test, REPATH_SM_REPATH, WHOLE);
	in(mad)->path.rate = REPATH_SM_EXACTLY | 63;
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -EBADMSG);
}

/* An address that has moved says which and where to, and no path that breaks does. */
static void t_moved(struct kunit *test)
{
	struct repath_notice n;
	struct ib_mad *mad;

	mad = report_new(test, REPATH_SM_REPATH, REPATH_SM_MASK_DGID | REPATH_SM_MASK_DLID);
	in(mad)->details.flags = REPATH_SM_MOVED;
	KUNIT_ASSERT_EQ(test, repath_notice_parse(mad, &n), 0);
	KUNIT_EXPECT_EQ(test, n.dgid[15], 9);
	mad = report_new(test, REPATH_SM_REPATH, REPATH_SM_MASK_DLID);
	in(mad)->details.flags = REPATH_SM_MOVED;
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -EBADMSG);
	mad = report_new(test, REPATH_SM_REPATH, REPATH_SM_MASK_DGID);
	in(mad)->details.flags = REPATH_SM_MOVED;
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -EBADMSG);
	mad = report_new(test, REPATH_SM_UNPATH, REPATH_SM_MASK_DGID | REPATH_SM_MASK_DLID);
	in(mad)->details.flags = REPATH_SM_MOVED;
	KUNIT_EXPECT_EQ(test, repath_notice_parse(mad, &n), -EBADMSG);
}

static void t_is_report(struct kunit *test)
{
	struct ib_mad *mad = report_new(test, REPATH_SM_REPATH, 0);
	struct ib_mad bad;

	bad = *mad;
	bad.mad_hdr.method = IB_MGMT_METHOD_REPORT_RESP;
	KUNIT_EXPECT_FALSE(test, repath_notice_is_report(&bad));
	bad = *mad;
	bad.mad_hdr.attr_id = cpu_to_be16(IB_SA_ATTR_PATH_REC);
	KUNIT_EXPECT_FALSE(test, repath_notice_is_report(&bad));
	bad = *mad;
	bad.mad_hdr.mgmt_class = IB_MGMT_CLASS_PERF_MGMT;
	KUNIT_EXPECT_FALSE(test, repath_notice_is_report(&bad));
}

static struct repath_notice_ring *ring_new(struct kunit *test)
{
	struct repath_notice_ring *ring = kunit_kzalloc(test, sizeof(*ring), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ring);
	return ring;
}

static enum repath_notice_age age_of(struct repath_notice_ring *ring, bool repath, u32 epoch,
				     u32 serial, u32 number)
{
	struct repath_notice n = {
		.repath = repath, .epoch = epoch, .serial = serial, .number = number,
	};

	return repath_notice_age(ring, &n);
}

static void t_doubles(struct kunit *test)
{
	struct repath_notice_ring *ring = ring_new(test);
	u32 i;

	/* The first may have the number 0. */
	KUNIT_EXPECT_EQ(test, age_of(ring, false, 1, 1, 0), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, false, 1, 1, 0), REPATH_NOTICE_AGAIN);
	/* Of the other trap it is another one. */
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, 1, 0), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, 1, 0), REPATH_NOTICE_AGAIN);
	for (i = 1; i < REPATH_NOTICE_RING; i++)
		KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, 1, i), REPATH_NOTICE_NEW);
	for (i = 0; i < REPATH_NOTICE_RING; i++)
		KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, 1, i), REPATH_NOTICE_AGAIN);
	/* Numbers begin anew with another sender. */
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 2, 1, 0), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 2, 1, 0), REPATH_NOTICE_AGAIN);
}

static void t_late(struct kunit *test)
{
	struct repath_notice_ring *ring = ring_new(test);
	struct repath_notice lane = { .repath = true, .epoch = 1, .kind = REPATH_SM_LANE };
	struct repath_notice moved = { .repath = true, .epoch = 1, .kind = REPATH_SM_MOVED };

	KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, U32_MAX, 1), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, 0, 2), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, U32_MAX, 3), REPATH_NOTICE_LATE);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, U32_MAX, 3), REPATH_NOTICE_AGAIN);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, 0, 4), REPATH_NOTICE_NEW);
	/* An exception belongs to no routing. */
	lane.serial = U32_MAX;
	lane.number = 5;
	KUNIT_EXPECT_EQ(test, repath_notice_age(ring, &lane), REPATH_NOTICE_NEW);
	/* What is said of the way to who has moved does. */
	moved.serial = U32_MAX;
	moved.number = 6;
	KUNIT_EXPECT_EQ(test, repath_notice_age(ring, &moved), REPATH_NOTICE_LATE);
	moved.serial = 0;
	moved.number = 7;
	KUNIT_EXPECT_EQ(test, repath_notice_age(ring, &moved), REPATH_NOTICE_NEW);
}

/* UnPath is said before the tables change: after a RePath of that routing it comes too late. */
static void t_late_unpath(struct kunit *test)
{
	struct repath_notice_ring *ring = ring_new(test);

	KUNIT_EXPECT_EQ(test, age_of(ring, false, 1, 5, 1), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, 5, 2), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, false, 1, 5, 3), REPATH_NOTICE_LATE);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 1, 5, 4), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, false, 1, 6, 5), REPATH_NOTICE_NEW);
	/* Another sender counts its own. */
	KUNIT_EXPECT_EQ(test, age_of(ring, false, 2, 6, 1), REPATH_NOTICE_NEW);
}

/* What counts the numbers wraps: nothing is forgotten then. */
static void t_ring_wraps(struct kunit *test)
{
	struct repath_notice_ring *ring = ring_new(test);

	ring->any = true;
	ring->n[1] = U32_MAX;
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 0, 0, 77), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 0, 0, 78), REPATH_NOTICE_NEW);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 0, 0, 77), REPATH_NOTICE_AGAIN);
	KUNIT_EXPECT_EQ(test, age_of(ring, true, 0, 0, 78), REPATH_NOTICE_AGAIN);
}

/* Whatever comes: what is taken for true is in its range. */
static void t_fuzz(struct kunit *test)
{
	struct ib_mad *mad = report_new(test, REPATH_SM_REPATH, WHOLE), *bad;
	struct ib_mad whole;
	struct repath_notice n;
	unsigned int i, taken = 0;

	fuzz_begin();
	for (i = 0; i < rounds; i++) {
		u32 len = sizeof(struct repath_sm_report);
		void *report = fuzz_copy(in(mad), &len);

		KUNIT_ASSERT_NOT_NULL(test, report);
		whole = *mad;
		bad = &whole;
		memcpy(in(bad), report, min_t(u32, len, sizeof(struct repath_sm_report)));
		kfree(report);
		if (repath_notice_parse(bad, &n))
			continue;
		taken++;
		if (n.sl > 15 || n.dlid >= 0xc000 || n.slid >= 0xc000 || n.mtu > IB_MTU_4096 ||
		    (n.mask & REPATH_SM_MASK_DLID && !n.dlid)) {
			KUNIT_FAIL(test, "round %u was believed", i);
			return;
		}
	}
	KUNIT_EXPECT_GT(test, taken, 0u);
}

static void t_learnt(struct kunit *test)
{
	struct repath_learnt path = { .slid = 1, .dlid = 2, .sl = 3, .mtu = 4, .ns = 1 }, found;
	struct repath_learnts paths;
	unsigned long index = 0;

	repath_learnts_init(&paths);
	KUNIT_EXPECT_FALSE(test, repath_learnt_find(&paths, 1, 2, &found));
	KUNIT_EXPECT_EQ(test, repath_learnt_put(&paths, &path), REPATH_LEARNT_NEW);
	path.ns = 2;
	path.source = REPATH_PATH_REPORT;
	KUNIT_EXPECT_EQ(test, repath_learnt_put(&paths, &path), REPATH_LEARNT_SAME);
	path.sl = 4;
	KUNIT_EXPECT_EQ(test, repath_learnt_put(&paths, &path), REPATH_LEARNT_CHANGED);
	path.unpath = true;
	KUNIT_EXPECT_EQ(test, repath_learnt_put(&paths, &path), REPATH_LEARNT_CHANGED);
	KUNIT_EXPECT_TRUE(test, repath_learnt_find(&paths, 1, 2, &found));
	KUNIT_EXPECT_EQ(test, found.sl, 4);
	KUNIT_EXPECT_EQ(test, found.ns, 2ull);
	/* The other way round it is another path. */
	path.slid = 2;
	path.dlid = 1;
	KUNIT_EXPECT_EQ(test, repath_learnt_put(&paths, &path), REPATH_LEARNT_NEW);
	KUNIT_EXPECT_EQ(test, paths.n, 2u);

	KUNIT_ASSERT_TRUE(test, repath_learnt_next(&paths, &index, &found));
	KUNIT_EXPECT_EQ(test, found.slid, 1);
	repath_learnt_drop(&paths, &found);
	repath_learnt_drop(&paths, &found);
	KUNIT_EXPECT_EQ(test, paths.n, 1u);
	index++;
	KUNIT_ASSERT_TRUE(test, repath_learnt_next(&paths, &index, &found));
	KUNIT_EXPECT_EQ(test, found.slid, 2);
	repath_learnts_clear(&paths);
	KUNIT_EXPECT_EQ(test, paths.n, 0u);
	index = 0;
	KUNIT_EXPECT_FALSE(test, repath_learnt_next(&paths, &index, &found));
}

static void t_no_room(struct kunit *test)
{
	struct repath_learnt path = { .slid = 1 };
	struct repath_learnts paths;
	u32 i;

	repath_learnts_init(&paths);
	for (i = 0; i < REPATH_LEARNT_MAX; i++) {
		path.slid = 1 + (i >> 15);
		path.dlid = i & 0x7fff;
		if (repath_learnt_put(&paths, &path) != REPATH_LEARNT_NEW)
			break;
	}
	KUNIT_EXPECT_EQ(test, i, (u32)REPATH_LEARNT_MAX);
	path.slid = 7;
	KUNIT_EXPECT_EQ(test, repath_learnt_put(&paths, &path), REPATH_LEARNT_NO_ROOM);
	/* Those that are there can still change. */
	path.slid = 1;
	path.sl = 5;
	KUNIT_EXPECT_EQ(test, repath_learnt_put(&paths, &path), REPATH_LEARNT_CHANGED);
	repath_learnts_clear(&paths);
}

static struct kunit_case notice_cases[] = {
	KUNIT_CASE(t_whole_path),
	KUNIT_CASE(t_mask),
	KUNIT_CASE(t_nonsense),
	KUNIT_CASE(t_moved),
	KUNIT_CASE(t_is_report),
	KUNIT_CASE(t_doubles),
	KUNIT_CASE(t_late),
	KUNIT_CASE(t_late_unpath),
	KUNIT_CASE(t_ring_wraps),
	KUNIT_CASE(t_fuzz),
	KUNIT_CASE(t_learnt),
	KUNIT_CASE(t_no_room),
	{}
};

static struct kunit_suite notice_suite = {
	.name = "repath_notice",
	.test_cases = notice_cases,
};
kunit_test_suite(notice_suite);
MODULE_LICENSE("GPL");
