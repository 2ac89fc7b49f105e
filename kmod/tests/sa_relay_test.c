// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 3 */
/* kunit-objs: ../sa.o ../sa_ask.o ../sa_subscribe.o ../sa_paths.o ../sa_heard.o ../sa_moved.o ../sa_relay.o ../notice.o ../learnt.o ../stat.o ../trace.o */
/* Ports that are shared: what a hypervisor hands on, and what a guest takes. */
#include "sa_case.h"

static int relay(const void *notice)
{
	int err = repath_sa_relay(port_of(), notice);

	settle();
	return err;
}

union told {
	struct repath_sm_report report;
	u8 data[REPATH_NOTICE_SIZE];
};

static int relay_report(u32 number, u8 sl)
{
	union told notice = {};

	fill_report(&notice.report, REPATH_SM_REPATH, PATH, number, sl);
	return relay(&notice);
}

/* What the hypervisor tells is as good as a Report, if it has begun; nothing of it is answered. */
static void t_relayed(struct kunit *test)
{
	struct repath_learnt found;
	union told nonsense;

	fake.has_qp = true;
	subscribe(test);
	KUNIT_EXPECT_EQ(test, relay_report(1, 3), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	fake_over(asked(IB_SA_ATTR_PATH_REC), IB_WC_RESP_TIMEOUT_ERR);
	settle();
	KUNIT_EXPECT_EQ(test, relay(NULL), 0);
	KUNIT_EXPECT_EQ(test, port_of()->state, (u8)REPATH_SM_RELAYED);
	KUNIT_EXPECT_FALSE(test, port_of()->subscribed);
	KUNIT_EXPECT_EQ(test, relay_report(1, 3), 0);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 3);
	KUNIT_EXPECT_EQ(test, relay_report(1, 4), 0);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.responses, 0);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_NOTICE_RELAYED), 2ull);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_NOTICE_AGAIN), 1ull);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_NOTICE_RX), 0ull);
	KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	KUNIT_EXPECT_TRUE(test, found.relayed);
	memset(&nonsense, 0xff, sizeof(nonsense));
	nonsense.report.trap = cpu_to_be16(REPATH_SM_REPATH);
	KUNIT_EXPECT_EQ(test, relay(&nonsense), 0);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_NOTICE_MALFORMED), 1ull);

	/* Nothing is subscribed by itself, whatever happens, nor given back. */
	event(IB_EVENT_CLIENT_REREGISTER);
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_INFORM_INFO), 0);
	KUNIT_EXPECT_EQ(test, port_of()->state, (u8)REPATH_SM_RELAYED);
	fake.attr.state = IB_PORT_DOWN;
	event(IB_EVENT_PORT_ERR);
	KUNIT_EXPECT_EQ(test, relay_report(2, 3), -ENETDOWN);
	mutex_lock(&port_of()->mutex);
	port_of()->on = false;
	mutex_unlock(&port_of()->mutex);
	KUNIT_EXPECT_EQ(test, relay(NULL), -EOPNOTSUPP);
}

/* What is new of what is believed is handed on once, and that some may be missing. */
static void t_handed_on(struct kunit *test)
{
	subscribe(test);
	KUNIT_EXPECT_EQ(test, fake.handed, 1);
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	KUNIT_EXPECT_EQ(test, fake.handed, 2);
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	report_from(test, REPATH_SM_REPATH, PATH, 2, 3, SM_LID + 1, 1);
	KUNIT_EXPECT_EQ(test, fake.handed, 2);
	event(IB_EVENT_CLIENT_REREGISTER);
	subscribe(test);
	KUNIT_EXPECT_EQ(test, fake.handed, 3);
}

/* Others may stay at the LID from which a GID has gone. */
static void t_one_gid_moved(struct kunit *test)
{
	struct repath_notice moved = {
		.repath = true, .kind = REPATH_SM_MOVED, .dlid = 21, .number = 1,
		.mask = REPATH_SM_MASK_DGID | REPATH_SM_MASK_DLID | REPATH_SM_MASK_PKEY,
		.dgid = { [15] = 9 }, .pkey = 0x8001,
	};

	fake.has_qp = true;
	fake.qp_path.has_grh = true;
	memcpy(&fake.qp_path.dgid, moved.dgid, sizeof(moved.dgid));
	subscribe(test);
	hear(&moved);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.dlid, 20u);
	KUNIT_EXPECT_EQ(test, fake.given.new_dlid, 21u);
	/* The one that the subnet manager has found first. */
	KUNIT_EXPECT_FALSE(test, fake.given.has & REPATH_PATH_PKEY);
	KUNIT_EXPECT_EQ(test, memcmp(fake.given.dgid, moved.dgid, sizeof(moved.dgid)), 0);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_PATH_AMBIGUOUS), 0ull);

	/* By address handles only, of which nobody here knows from where. */
	fake.has_qp = false;
	moved.number = 2;
	hear(&moved);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	fake.datagrams = true;
	moved.number = 3;
	hear(&moved);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 2);
	KUNIT_EXPECT_EQ(test, fake.given.new_dlid, 21u);
	KUNIT_EXPECT_EQ(test, memcmp(fake.given.dgid, moved.dgid, sizeof(moved.dgid)), 0);
}

static struct kunit_case relay_cases[] = {
	KUNIT_CASE(t_relayed),
	KUNIT_CASE(t_handed_on),
	KUNIT_CASE(t_one_gid_moved),
	{}
};

static struct kunit_suite relay_suite = {
	.name = "repath_sa_relay",
	.init = sa_init,
	.exit = sa_exit,
	.test_cases = relay_cases,
};
kunit_test_suite(relay_suite);
MODULE_LICENSE("GPL");
