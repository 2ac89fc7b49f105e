// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 8 */
/* kunit-objs: ../sa.o ../sa_ask.o ../sa_subscribe.o ../sa_paths.o ../sa_heard.o ../sa_moved.o ../sa_relay.o ../notice.o ../learnt.o ../stat.o ../trace.o */
/* The port itself: its LID, and the way on which its subnet manager is asked, and how often. */
#include "sa_case.h"

/* Paths that begin at the LID that it had are of no use; the subnet manager knows nobody of the new one. */
static void t_lid_changes(struct kunit *test)
{
	struct repath_sm_path path;
	struct repath_learnt found;

	learn(test, &path, 1);
	KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	fake.attr.lid = OWN_LID + 4;
	port_of()->table_at = jiffies;
	event(IB_EVENT_LID_CHANGE);
	KUNIT_EXPECT_EQ(test, port_of()->paths.n, 0u);
	KUNIT_EXPECT_FALSE(test, port_of()->subscribed);
	/* Of the old one. */
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	KUNIT_EXPECT_EQ(test, port_of()->paths.n, 0u);
	subscribe(test);
	path.slid = cpu_to_be16(OWN_LID + 4);
	path.qos_class_sl = cpu_to_be16(2);
	tell_path(test, &path);
	KUNIT_EXPECT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID + 4, 20, &found));
	KUNIT_EXPECT_EQ(test, fake.given.sl, 2);
}

/* With the same LID, and more of them. */
static void t_more_lids(struct kunit *test)
{
	struct repath_sm_path path;

	learn(test, &path, 1);
	fake.attr.lmc = 2;
	event(IB_EVENT_LID_CHANGE);
	KUNIT_EXPECT_EQ(test, port_of()->paths.n, 0u);
	subscribe(test);
}

/* How long a question is repeated, in ms. */
static unsigned int asks_for(u16 attr)
{
	const struct ib_mad_send_buf *buf = fake.sent[asked(attr)];

	return buf->timeout_ms * (buf->retries + 1);
}

/* On the SL that PortInfo says, and for longer than a packet can be in the subnet. */
static void t_gets_through(struct kunit *test)
{
	unsigned int lifetime_ms = (4096ull << 18) / NSEC_PER_MSEC;

	fake.has_qp = true;
	settle();
	KUNIT_EXPECT_EQ(test, rdma_ah_get_sl(&fake.ah), 0);
	KUNIT_EXPECT_GT(test, asks_for(IB_SA_ATTR_INFORM_INFO), 2 * lifetime_ms);
	fake.attr.sm_sl = 5;
	event(IB_EVENT_SM_CHANGE);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_sl(&fake.ah), 5);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_dlid(&fake.ah), (u32)SM_LID);
	subscribe(test);
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	KUNIT_EXPECT_GT(test, asks_for(IB_SA_ATTR_PATH_REC), 2 * lifetime_ms);
}

/* It was down for a moment, and everything is as it was: all that was said meanwhile was missed. */
static void t_flaps(struct kunit *test)
{
	struct repath_sm_path path;

	learn(test, &path, 1);
	fake.attr.state = IB_PORT_DOWN;
	event(IB_EVENT_PORT_ERR);
	KUNIT_EXPECT_FALSE(test, port_of()->subscribed);
	fake.attr.state = IB_PORT_ACTIVE;
	port_of()->table_at = jiffies;
	event(IB_EVENT_PORT_ACTIVE);
	subscribe(test);
	path.qos_class_sl = cpu_to_be16(4);
	tell_path(test, &path);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 4);
}

/* The system has slept, and the port was there all the while: what was said has been missed as well. */
static void t_sleeps(struct kunit *test)
{
	struct repath_sm_path path;

	learn(test, &path, 1);
	port_of()->table_at = jiffies;
	repath_sa_woken(&fake.dev);
	subscribe(test);
	path.qos_class_sl = cpu_to_be16(4);
	tell_path(test, &path);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 4);
}

/* Where the path leads that is asked for; 0: to everywhere; -1: none is asked for, or more than one. */
static int asked_dlid(void)
{
	const struct ib_sa_mad *mad;

	if (count_asked(IB_SA_ATTR_PATH_REC) != 1)
		return -1;
	mad = fake.sent[asked(IB_SA_ATTR_PATH_REC)]->mad;
	if (!(mad->sa_hdr.comp_mask & IB_SA_PATH_REC_DLID))
		return 0;
	return be16_to_cpu(((const struct repath_sm_path *)mad->data)->dlid);
}

/* Between the end of a table and the question for the next there is time: whatever is said, it is one question. */
static void t_gap(struct kunit *test)
{
	struct repath_sm_path path;
	unsigned long before;
	u32 number;
	int i;

	fake.has_qp = true;
	subscribe(test);
	fill_path(&path, 20, 1);
	before = jiffies;
	tell_path(test, &path);
	KUNIT_EXPECT_TRUE(test, time_after_eq(port_of()->table_at, before + HZ / 10));
	/* It ends of its own accord. */
	report(test, REPATH_SM_REPATH, 0, 1, 0);
	for (i = 0; i < 3000 && asked_dlid(); i++)
		msleep(20);
	KUNIT_ASSERT_EQ(test, asked_dlid(), 0);
	tell_path(test, &path);

	/* So long that it is not over, however slow this machine is. */
	port_of()->table_at = jiffies + 600 * HZ;
	for (number = 2; number < 12; number++)
		report(test, REPATH_SM_REPATH, 0, number, 0);
	KUNIT_EXPECT_EQ(test, asked_dlid(), -1);
	port_of()->table_at = jiffies;
	repath_sa_kick(port_of());
	settle();
	KUNIT_EXPECT_EQ(test, asked_dlid(), 0);
	tell_path(test, &path);
	KUNIT_EXPECT_EQ(test, asked_dlid(), -1);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY), 3ull);
}

/* A path is asked for, and @n more, each twice, while that is not answered. */
static void report_paths(struct kunit *test, unsigned int n)
{
	struct repath_notice notice = {
		.repath = true, .kind = REPATH_SM_ROUTE, .slid = OWN_LID, .dlid = 100,
		.mask = REPATH_SM_MASK_SLID | REPATH_SM_MASK_DLID,
	};
	struct repath_sm_path path;
	unsigned int i;

	learn(test, &path, 1);
	hear(&notice);
	for (i = 0; i < 2 * n; i++) {
		notice.dlid = 101 + i / 2;
		notice.number = notice.serial = 1 + i;
		hear(&notice);
	}
	KUNIT_EXPECT_EQ(test, asked_dlid(), 100);
	port_of()->table_at = jiffies;
}

/* One question at a time, and each once. */
static void t_some_paths(struct kunit *test)
{
	struct repath_sm_path path;
	unsigned long asked = 0;
	int i, dlid;

	report_paths(test, REPATH_SA_DLIDS);
	for (i = 0; i <= REPATH_SA_DLIDS; i++) {
		dlid = asked_dlid();
		KUNIT_ASSERT_GE(test, dlid, 100);
		KUNIT_ASSERT_LE(test, dlid, 100 + REPATH_SA_DLIDS);
		KUNIT_EXPECT_FALSE(test, __test_and_set_bit(dlid - 100, &asked));
		fill_path(&path, dlid, 1);
		tell_path(test, &path);
	}
	KUNIT_EXPECT_EQ(test, asked_dlid(), -1);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY), 2ull + REPATH_SA_DLIDS);
}

/* More than that are one question, for all paths, and none is lost: what is in the answer has changed. */
static void t_many_paths(struct kunit *test)
{
	struct repath_sm_path path;

	report_paths(test, REPATH_SA_DLIDS + 1);
	fill_path(&path, 100, 1);
	tell_path(test, &path);
	KUNIT_ASSERT_EQ(test, asked_dlid(), 0);
	fill_path(&path, 20, 6);
	tell_path(test, &path);
	KUNIT_EXPECT_EQ(test, fake.given.dlid, 20u);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 6);
	KUNIT_EXPECT_EQ(test, asked_dlid(), -1);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY), 3ull);
}

static struct kunit_case sa_port_cases[] = {
	KUNIT_CASE(t_lid_changes),
	KUNIT_CASE(t_more_lids),
	KUNIT_CASE(t_gets_through),
	KUNIT_CASE(t_flaps),
	KUNIT_CASE(t_sleeps),
	KUNIT_CASE(t_gap),
	KUNIT_CASE(t_some_paths),
	KUNIT_CASE(t_many_paths),
	{}
};

static struct kunit_suite sa_port_suite = {
	.name = "repath_sa_port",
	.init = sa_init,
	.exit = sa_exit,
	.test_cases = sa_port_cases,
};
kunit_test_suite(sa_port_suite);
MODULE_LICENSE("GPL");
