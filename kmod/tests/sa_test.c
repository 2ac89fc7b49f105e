// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 13 */
/* kunit-objs: ../sa.o ../sa_ask.o ../sa_subscribe.o ../sa_paths.o ../sa_heard.o ../notice.o ../learnt.o ../stat.o */
/* A port and its subnet manager: who is believed, what is asked, and what is done about it. */
#include <kunit/test.h>

#include "sa_fakes.h"

static struct repath_sa_port *port_of(void)
{
	return list_first_entry(&fake.dev.sa_ports, struct repath_sa_port, node);
}

static u64 stat_of(enum repath_stat stat)
{
	return atomic64_read(&fake.dev.stats.n[stat]);
}

/* What is to be done is done, and what was given up is over. */
static void settle(void)
{
	struct repath_sa_port *sp = port_of();
	bool again;
	int i;

	do {
		again = false;
		flush_delayed_work(&sp->work);
		for (i = 0; i < SENT_MAX; i++) {
			if (fake.sent[i] && fake.cancelled[i]) {
				fake_over(i, IB_WC_WR_FLUSH_ERR);
				again = true;
			}
		}
	} while (again);
}

/* The next request under way of an attribute, or -1. */
static int asked(u16 attr)
{
	int i;

	for (i = 0; i < SENT_MAX; i++)
		if (fake.sent[i] &&
		    ((struct ib_mad_hdr *)fake.sent[i]->mad)->attr_id == cpu_to_be16(attr))
			return i;
	return -1;
}

static int count_asked(u16 attr)
{
	int i, n = 0;

	for (i = 0; i < SENT_MAX; i++)
		n += fake.sent[i] &&
		     ((struct ib_mad_hdr *)fake.sent[i]->mad)->attr_id == cpu_to_be16(attr);
	return n;
}

struct received {
	struct ib_mad_recv_wc wc;
	struct ib_wc completion;
	struct ib_sa_mad mad;
};

static struct received *received_new(struct kunit *test, const void *mad, u32 slid, u32 qpn)
{
	/* ib_free_recv_mad() frees it. */
	struct received *r = kzalloc(sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	memcpy(&r->mad, mad, sizeof(r->mad));
	r->completion.slid = slid;
	r->completion.src_qp = qpn;
	r->wc.wc = &r->completion;
	r->wc.recv_buf.mad = (struct ib_mad *)&r->mad;
	INIT_LIST_HEAD(&r->wc.rmpp_list);
	list_add(&r->wc.recv_buf.list, &r->wc.rmpp_list);
	r->wc.mad_len = sizeof(r->mad);
	return r;
}

static void answer_from(struct kunit *test, int i, u16 status, u32 slid, u32 qpn,
			const struct repath_sm_path *path, int n)
{
	struct ib_sa_mad mad;
	struct received *r;

	KUNIT_ASSERT_GE(test, i, 0);
	memcpy(&mad, fake.sent[i]->mad, sizeof(mad));
	mad.mad_hdr.method |= IB_MGMT_METHOD_RESP;
	mad.mad_hdr.status = cpu_to_be16(status);
	r = received_new(test, &mad, slid, qpn);
	if (path) {
		r->mad.sa_hdr.attr_offset = cpu_to_be16(sizeof(*path) / 8);
		memcpy(r->mad.data, path, n * sizeof(*path));
		r->wc.mad_len = IB_MGMT_SA_HDR + n * sizeof(*path);
	}
	fake.agent.recv_handler(&fake.agent, fake.sent[i], &r->wc);
	fake_over(i, IB_WC_SUCCESS);
}

static void answer(struct kunit *test, int i, u16 status)
{
	answer_from(test, i, status, SM_LID, 1, NULL, 0);
}

static void report_from(struct kunit *test, u16 trap, u64 mask, u32 number, u8 sl, u32 slid,
			u32 qpn)
{
	struct repath_sm_report *report;
	struct ib_sa_mad mad = {};
	struct received *r;

	mad.mad_hdr.base_version = IB_MGMT_BASE_VERSION;
	mad.mad_hdr.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
	mad.mad_hdr.method = IB_MGMT_METHOD_REPORT;
	mad.mad_hdr.attr_id = cpu_to_be16(IB_SA_ATTR_NOTICE);
	report = (void *)mad.data;
	report->type = REPATH_SM_TYPE;
	report->trap = cpu_to_be16(trap);
	report->details.version = REPATH_SM_VERSION;
	report->details.comp_mask = cpu_to_be64(mask);
	report->details.number = cpu_to_be32(number);
	report->path.slid = cpu_to_be16(OWN_LID);
	report->path.dlid = cpu_to_be16(20);
	report->path.qos_class_sl = cpu_to_be16(sl);
	r = received_new(test, &mad, slid, qpn);
	fake.agent.recv_handler(&fake.agent, NULL, &r->wc);
	settle();
}

#define PATH (REPATH_SM_MASK_SLID | REPATH_SM_MASK_DLID | REPATH_SM_MASK_SL)

static void report(struct kunit *test, u16 trap, u64 mask, u32 number, u8 sl)
{
	report_from(test, trap, mask, number, sl, SM_LID, 1);
}

static void subscribe(struct kunit *test)
{
	settle();
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_INFORM_INFO), 2);
	answer(test, asked(IB_SA_ATTR_INFORM_INFO), 0);
	answer(test, asked(IB_SA_ATTR_INFORM_INFO), 0);
	settle();
	KUNIT_ASSERT_EQ(test, port_of()->state, (u8)REPATH_SM_SUBSCRIBED);
}

static void event(enum ib_event_type type)
{
	struct ib_event event = { .event = type, .element.port_num = 1 };

	fake.dev.sa_events.handler(&fake.dev.sa_events, &event);
	settle();
}

static int sa_init(struct kunit *test)
{
	memset(&fake, 0, sizeof(fake));
	memset(&repath_stats, 0, sizeof(repath_stats));
	spin_lock_init(&fake.lock);
	fake.ibdev.phys_port_cnt = 1;
	fake.ibdev.node_type = RDMA_NODE_IB_CA;
	fake.ibdev.port_data = fake.port_data;
	fake.port_data[1].immutable.core_cap_flags = RDMA_CORE_CAP_IB_SA | RDMA_CORE_CAP_PROT_IB;
	fake.attr.state = IB_PORT_ACTIVE;
	fake.attr.lid = OWN_LID;
	fake.attr.sm_lid = SM_LID;
	fake.attr.subnet_timeout = 18;
	fake.qp_path = (struct repath_path) { .dlid = 20, .port = 1, .has_av = true, .sl = 1 };
	fake.dev.ibdev = &fake.ibdev;
	INIT_LIST_HEAD(&fake.dev.sa_ports);
	mutex_init(&fake.dev.sa_mutex);
	if (repath_sa_init())
		return -ENOMEM;
	repath_sa_begin(&fake.dev);
	test->priv = &fake;
	return 0;
}

static void sa_exit(struct kunit *test)
{
	if (!test->priv)
		return;
	/* It is not active, so that nobody waits for an answer to the goodbye. */
	fake.attr.state = IB_PORT_DOWN;
	repath_sa_end(&fake.dev);
	repath_sa_exit();
	KUNIT_EXPECT_EQ(test, fake.ahs, 0);
}

static void t_subscribes(struct kunit *test)
{
	subscribe(test);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SM_SUBSCRIBED), 1ull);
	/* Nobody uses a path: none is asked for. */
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 0);
}

static void t_no_answer(struct kunit *test)
{
	int i;

	settle();
	for (i = 0; i < 2; i++)
		fake_over(asked(IB_SA_ATTR_INFORM_INFO), IB_WC_RESP_TIMEOUT_ERR);
	settle();
	KUNIT_EXPECT_EQ(test, port_of()->state, (u8)REPATH_SM_WAITING);
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_INFORM_INFO), 0);
	/* Its time has come. */
	port_of()->at = jiffies;
	repath_sa_kick(port_of());
	subscribe(test);
}

static void t_refused(struct kunit *test)
{
	settle();
	answer(test, asked(IB_SA_ATTR_INFORM_INFO), 0);
	answer(test, asked(IB_SA_ATTR_INFORM_INFO), 0x0200);
	settle();
	KUNIT_EXPECT_EQ(test, port_of()->state, (u8)REPATH_SM_WAITING);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SM_LOST), 1ull);
	KUNIT_EXPECT_FALSE(test, port_of()->subscribed);
}

/* Without a GRH ib_mad lets an answer of any LID through. */
static void t_forged_answer(struct kunit *test)
{
	settle();
	answer_from(test, asked(IB_SA_ATTR_INFORM_INFO), 0, SM_LID + 1, 1, NULL, 0);
	answer_from(test, asked(IB_SA_ATTR_INFORM_INFO), 0, SM_LID, 99, NULL, 0);
	settle();
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_NOTICE_FORGED), 2ull);
	KUNIT_EXPECT_FALSE(test, port_of()->subscribed);
}

static void t_renews(struct kunit *test)
{
	static const enum ib_event_type types[] = {
		IB_EVENT_CLIENT_REREGISTER, IB_EVENT_SM_CHANGE, IB_EVENT_LID_CHANGE,
		IB_EVENT_PORT_ACTIVE,
	};
	int i;

	subscribe(test);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		event(types[i]);
		subscribe(test);
	}
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SM_SUBSCRIBED), 1ull + ARRAY_SIZE(types));
}

/* In the middle of asking the one before: that is given up, and its answer not believed. */
static void t_another(struct kunit *test)
{
	settle();
	answer(test, asked(IB_SA_ATTR_INFORM_INFO), 0);
	fake.attr.sm_lid = SM_LID + 1;
	event(IB_EVENT_SM_CHANGE);
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_INFORM_INFO), 2);
	answer_from(test, asked(IB_SA_ATTR_INFORM_INFO), 0, SM_LID + 1, 1, NULL, 0);
	answer_from(test, asked(IB_SA_ATTR_INFORM_INFO), 0, SM_LID + 1, 1, NULL, 0);
	settle();
	KUNIT_EXPECT_TRUE(test, port_of()->subscribed);
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	KUNIT_EXPECT_EQ(test, fake.responses, 0);
	report_from(test, REPATH_SM_REPATH, PATH, 1, 3, SM_LID + 1, 1);
	KUNIT_EXPECT_EQ(test, fake.responses, 1);
}

static void t_port_down(struct kunit *test)
{
	subscribe(test);
	fake.attr.state = IB_PORT_DOWN;
	event(IB_EVENT_PORT_ERR);
	KUNIT_EXPECT_EQ(test, port_of()->state, (u8)REPATH_SM_DOWN);
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	KUNIT_EXPECT_EQ(test, fake.responses, 0);
	fake.attr.state = IB_PORT_ACTIVE;
	event(IB_EVENT_PORT_ACTIVE);
	subscribe(test);
}

/* PortInfo is read again, but not for each of them. */
static void t_stranger(struct kunit *test)
{
	int i, looks;

	subscribe(test);
	looks = fake.looks;
	for (i = 0; i < 20; i++)
		report_from(test, REPATH_SM_REPATH, PATH, i, 3, SM_LID + 5, 1);
	report_from(test, REPATH_SM_REPATH, PATH, i, 3, SM_LID, 77);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_NOTICE_FORGED), 21ull);
	KUNIT_EXPECT_GT(test, fake.looks, looks);
	KUNIT_EXPECT_LT(test, fake.looks, looks + 20);
	KUNIT_EXPECT_EQ(test, fake.responses, 0);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	/* It has become the subnet manager, and nobody has said so. */
	fake.attr.sm_lid = SM_LID + 5;
	port_of()->looked = jiffies - 3600 * HZ;
	report_from(test, REPATH_SM_REPATH, PATH, 1, 3, SM_LID + 5, 1);
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_INFORM_INFO), 2);
	report_from(test, REPATH_SM_REPATH, PATH, 1, 3, SM_LID + 5, 1);
	KUNIT_EXPECT_EQ(test, fake.responses, 1);
}

static void t_reports(struct kunit *test)
{
	fake.has_qp = true;
	subscribe(test);
	report(test, REPATH_SM_UNPATH, PATH, 1, 3);
	KUNIT_EXPECT_EQ(test, fake.nunpaths, 1);
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.dlid, 20u);
	KUNIT_EXPECT_EQ(test, fake.given.slid, (u32)OWN_LID);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 3);
	KUNIT_EXPECT_EQ(test, fake.given.has, (u8)REPATH_PATH_SL);
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.responses, 3);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_NOTICE_AGAIN), 1ull);
}

static void fill_path(struct repath_sm_path *path, u16 dlid, u8 sl)
{
	memset(path, 0, sizeof(*path));
	path->slid = cpu_to_be16(OWN_LID);
	path->dlid = cpu_to_be16(dlid);
	path->qos_class_sl = cpu_to_be16(sl);
	path->mtu = REPATH_SM_EXACTLY | IB_MTU_4096;
	path->rate = REPATH_SM_EXACTLY | IB_RATE_10_GBPS;
}

/* All paths are asked for at once, and only the one that differs is handed on. */
static void t_table(struct kunit *test)
{
	struct repath_sm_path paths[3];
	struct repath_learnt found;

	fake.has_qp = true;
	subscribe(test);
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	fill_path(&paths[0], 20, 1);
	fill_path(&paths[1], 21, 4);
	fill_path(&paths[2], 22, 5);
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, paths, 3);
	settle();
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	KUNIT_EXPECT_EQ(test, port_of()->paths.n, 3u);

	/* Two reports while the question is under way are one more question. */
	port_of()->table_at = jiffies;
	report(test, REPATH_SM_REPATH, 0, 1, 0);
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	report(test, REPATH_SM_REPATH, 0, 2, 0);
	report(test, REPATH_SM_REPATH, 0, 3, 0);
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	fill_path(&paths[0], 20, 2);
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, paths, 2);
	settle();
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.dlid, 20u);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 2);
	/* What was not in the answer has gone. */
	KUNIT_EXPECT_FALSE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 22, &found));
	port_of()->table_at = jiffies;
	repath_sa_kick(port_of());
	settle();
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, paths, 2);
	settle();
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY), 3ull);
}

/* What was reported after the question is not taken back by the answer. */
static void t_overtaken(struct kunit *test)
{
	struct repath_sm_path path;
	struct repath_learnt found;

	fake.has_qp = true;
	subscribe(test);
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	fill_path(&path, 20, 2);
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, &path, 1);
	settle();
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	KUNIT_EXPECT_EQ(test, found.sl, 3);
}

/* An exception holds against path records until it is taken back, and then they are asked. */
static void t_lane(struct kunit *test)
{
	struct repath_sm_path path;
	struct repath_notice lane = {
		.repath = true, .kind = REPATH_SM_LANE, .mask = PATH, .slid = OWN_LID,
		.dlid = 20, .sl = 6, .number = 1,
	};

	fake.has_qp = true;
	subscribe(test);
	fill_path(&path, 20, 2);
	mutex_lock(&port_of()->mutex);
	repath_sa_heard(port_of(), &lane);
	mutex_unlock(&port_of()->mutex);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 6);
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, &path, 1);
	settle();
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	lane.repath = false;
	mutex_lock(&port_of()->mutex);
	repath_sa_heard(port_of(), &lane);
	mutex_unlock(&port_of()->mutex);
	repath_sa_kick(port_of());
	settle();
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, &path, 1);
	settle();
	KUNIT_EXPECT_EQ(test, fake.ngiven, 2);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 2);
}

/* The event that tells the kernel's users is not taken for another subnet manager. */
static void t_kernel_users(struct kunit *test)
{
	fake.has_qp = fake.kernel_qp = true;
	subscribe(test);
	fake_over(asked(IB_SA_ATTR_PATH_REC), IB_WC_RESP_TIMEOUT_ERR);
	port_of()->told = jiffies - 3600 * HZ;
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	KUNIT_EXPECT_EQ(test, fake.events, 1);
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_INFORM_INFO), 0);
	event(IB_EVENT_SM_CHANGE);
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_INFORM_INFO), 2);
}

static struct kunit_case sa_cases[] = {
	KUNIT_CASE(t_subscribes),
	KUNIT_CASE(t_no_answer),
	KUNIT_CASE(t_refused),
	KUNIT_CASE(t_forged_answer),
	KUNIT_CASE(t_renews),
	KUNIT_CASE(t_another),
	KUNIT_CASE(t_port_down),
	KUNIT_CASE(t_stranger),
	KUNIT_CASE(t_reports),
	KUNIT_CASE(t_table),
	KUNIT_CASE(t_overtaken),
	KUNIT_CASE(t_lane),
	KUNIT_CASE(t_kernel_users),
	{}
};

static struct kunit_suite sa_suite = {
	.name = "repath_sa",
	.init = sa_init,
	.exit = sa_exit,
	.test_cases = sa_cases,
};
kunit_test_suite(sa_suite);
MODULE_LICENSE("GPL");
