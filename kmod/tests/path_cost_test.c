// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 3 */
/* kunit-objs: ../device.o ../track.o ../track_query.o ../track_user.o ../track_walk.o ../path.o ../note.o ../stat.o ../trace.o */
/*
 * What looking for the queue pairs of a path costs: entries that are visited, not time. The indexes are
 * compiled in here, with loops that count; by a path's DLID, its DGID, and that of an alternate path.
 */
#include <linux/list.h>

static u64 visited;

#undef hlist_for_each_entry
#define hlist_for_each_entry(pos, head, member)						\
	for (pos = hlist_entry_safe((head)->first, typeof(*(pos)), member); pos;	\
	     visited++, pos = hlist_entry_safe((pos)->member.next, typeof(*(pos)), member))
/* What a look-up has to carry to a larger table is its cost, too. */
#define __hlist_del(node)	(visited++, (__hlist_del)(node))
#include "../index.c"
#include "../track_path.c"
#undef __hlist_del

#include "track_fakes.h"

/*
 * Others on the same chains, of which there are two, and two entries each on average, as index.c has it; one may
 * have to be carried over from a smaller table first.
 */
#define OTHERS		8
/* At most for one look-up: that one, and two walks where the answer is more than there was room for. */
#define TIMES		3

enum by { BY_LID, BY_GID, BY_ALT };

static int cost_init(struct kunit *test)
{
	memset(&told, 0, sizeof(told));
	KUNIT_ASSERT_EQ(test, repath_track_init(), 0);
	KUNIT_ASSERT_EQ(test, repath_note_init(), 0);
	return 0;
}

static void cost_exit(struct kunit *test)
{
	repath_note_exit();
	repath_track_exit();
}

/* 1, 10 and 100 that share one; all others have one of their own, from 1000 on. */
static u32 dlid_of(int i)
{
	return i < 1 ? 1 : i < 11 ? 10 : i < 111 ? 100 : 1000 + i;
}

static union ib_gid dgid_of(u32 dlid)
{
	union ib_gid gid = { .global.subnet_prefix = cpu_to_be64(0xfe80ull << 48),
			     .global.interface_id = cpu_to_be64(dlid) };

	return gid;
}

static void set_path(struct ib_qp *qp, u32 dlid, enum by by)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.ah_attr = { .type = RDMA_AH_ATTR_TYPE_OPA, .port_num = 1 },
		.alt_ah_attr = { .type = RDMA_AH_ATTR_TYPE_OPA, .port_num = 1 },
		.alt_port_num = 1,
		.path_mig_state = IB_MIG_REARM,
	};
	int mask = IB_QP_STATE | IB_QP_AV;

	if (by == BY_GID) {
		attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
		attr.ah_attr.ah_flags = IB_AH_GRH;
		attr.ah_attr.grh.dgid = dgid_of(dlid);
	} else {
		rdma_ah_set_dlid(&attr.ah_attr, by == BY_ALT ? 100000 + qp->qp_num : dlid);
	}
	if (by == BY_ALT) {
		rdma_ah_set_dlid(&attr.alt_ah_attr, dlid);
		mask |= IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE;
	}
	repath_track_qp_modified(qp, &attr, mask);
}

/* Entries that were visited for an answer that must have @count. */
static u64 look(struct kunit *test, struct repath_device *dev, u32 dlid, enum by by, int count)
{
	union ib_gid gid = dgid_of(dlid);
	u64 before = visited;
	int found = 0;

	KUNIT_EXPECT_EQ(test, repath_qp_walk_on_path(dev, 1, by == BY_GID ? 0 : dlid, &gid,
						     fake_count_qp, &found), 0);
	KUNIT_EXPECT_EQ(test, found, count);
	KUNIT_EXPECT_GE(test, visited - before, (u64)count);
	return visited - before;
}

static void among(struct kunit *test, int total, enum by by)
{
	struct repath_device *dev = fake_device_add(test, "fake0", 1);
	struct ib_qp *qps = kvcalloc(total, sizeof(*qps), GFP_KERNEL);
	u64 cost, sum = 0;
	int i, n;

	KUNIT_ASSERT_NOT_NULL(test, qps);
	for (i = 0; i < total; i++) {
		qps[i].device = dev->ibdev;
		qps[i].real_qp = &qps[i];
		qps[i].qp_num = 16 + i;
		qps[i].qp_type = IB_QPT_RC;
		fake_qp_created(&qps[i], current);
		set_path(&qps[i], dlid_of(i), by);
		/* As it is when they do not come all at once. */
		if (!(i % 256)) {
			flush_work(&by_lid.grow);
			flush_work(&by_gid.grow);
			flush_work(&by_alt.grow);
		}
	}
	repath_note_flush();

	for (n = 1; n <= 100; n *= 10) {
		cost = look(test, dev, n, by, n);
		KUNIT_EXPECT_LE(test, cost, (u64)TIMES * (n + OTHERS));
		pr_info("path_cost: %d of %d: %llu visited\n", n, total, cost);
	}
	for (i = 111; i < 911; i++)
		sum += look(test, dev, dlid_of(i), by, 1);
	KUNIT_EXPECT_LE(test, sum, (u64)800 * (1 + OTHERS));
	pr_info("path_cost: 800 of one of %d: %llu visited\n", total, sum);
	fake_device_del(dev);
	kvfree(qps);
}

static void t_by_lid(struct kunit *test)
{
	among(test, 1024, BY_LID);
	among(test, 16384, BY_LID);
}

static void t_by_gid(struct kunit *test)
{
	among(test, 1024, BY_GID);
	among(test, 16384, BY_GID);
}

static void t_by_alternate(struct kunit *test)
{
	among(test, 1024, BY_ALT);
	among(test, 16384, BY_ALT);
}

static struct kunit_case cost_cases[] = {
	KUNIT_CASE(t_by_lid),
	KUNIT_CASE(t_by_gid),
	KUNIT_CASE(t_by_alternate),
	{}
};

static struct kunit_suite cost_suite = {
	.name = "repath_path_cost",
	.init = cost_init,
	.exit = cost_exit,
	.test_cases = cost_cases,
};

kunit_test_suite(cost_suite);
MODULE_LICENSE("GPL");
