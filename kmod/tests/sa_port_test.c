// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 5 */
/* kunit-objs: ../sa.o ../sa_ask.o ../sa_subscribe.o ../sa_paths.o ../sa_heard.o ../sa_relay.o ../notice.o ../learnt.o ../stat.o ../trace.o */
/* The port itself: its LID, and the way on which its subnet manager is asked. */
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

static struct kunit_case sa_port_cases[] = {
	KUNIT_CASE(t_lid_changes),
	KUNIT_CASE(t_more_lids),
	KUNIT_CASE(t_gets_through),
	KUNIT_CASE(t_flaps),
	KUNIT_CASE(t_sleeps),
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
