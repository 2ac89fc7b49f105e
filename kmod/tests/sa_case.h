/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each case of a port and its subnet manager begins with, and how the subnet manager's part is
 * played: answers, Reports, and time that passes.
 */
#ifndef REPATH_TESTS_SA_CASE_H
#define REPATH_TESTS_SA_CASE_H

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

static void fill_report(struct repath_sm_report *report, u16 trap, u64 mask, u32 number, u8 sl)
{
	report->type = REPATH_SM_TYPE;
	report->trap = cpu_to_be16(trap);
	report->details.version = REPATH_SM_VERSION;
	report->details.comp_mask = cpu_to_be64(mask);
	report->details.number = cpu_to_be32(number);
	report->path.slid = cpu_to_be16(OWN_LID);
	report->path.dlid = cpu_to_be16(20);
	report->path.qos_class_sl = cpu_to_be16(sl);
}

static void report_from(struct kunit *test, u16 trap, u64 mask, u32 number, u8 sl, u32 slid,
			u32 qpn)
{
	struct ib_sa_mad mad = {};
	struct received *r;

	mad.mad_hdr.base_version = IB_MGMT_BASE_VERSION;
	mad.mad_hdr.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
	mad.mad_hdr.method = IB_MGMT_METHOD_REPORT;
	mad.mad_hdr.attr_id = cpu_to_be16(IB_SA_ATTR_NOTICE);
	fill_report((void *)mad.data, trap, mask, number, sl);
	r = received_new(test, &mad, slid, qpn);
	fake.agent.recv_handler(&fake.agent, NULL, &r->wc);
	settle();
}

#define PATH (REPATH_SM_MASK_SLID | REPATH_SM_MASK_DLID | REPATH_SM_MASK_SL)

static void report(struct kunit *test, u16 trap, u64 mask, u32 number, u8 sl)
{
	report_from(test, trap, mask, number, sl, SM_LID, 1);
}

/* The same, whatever MAD it was in. */
static void hear(const struct repath_notice *notice)
{
	mutex_lock(&port_of()->mutex);
	repath_sa_heard(port_of(), notice);
	mutex_unlock(&port_of()->mutex);
	repath_sa_kick(port_of());
	settle();
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

static void fill_path(struct repath_sm_path *path, u16 dlid, u8 sl)
{
	memset(path, 0, sizeof(*path));
	path->slid = cpu_to_be16(OWN_LID);
	path->dlid = cpu_to_be16(dlid);
	path->qos_class_sl = cpu_to_be16(sl);
	path->mtu = REPATH_SM_EXACTLY | IB_MTU_4096;
	path->rate = REPATH_SM_EXACTLY | IB_RATE_10_GBPS;
}

static void tell_path(struct kunit *test, const struct repath_sm_path *path)
{
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, path, 1);
	settle();
}

/* A queue pair uses the path to 20, which goes by @sl. */
static __maybe_unused void learn(struct kunit *test, struct repath_sm_path *path, u8 sl)
{
	fake.has_qp = true;
	subscribe(test);
	fill_path(path, 20, sl);
	tell_path(test, path);
}

static int sa_init(struct kunit *test)
{
	memset(&fake, 0, sizeof(fake));
	memset(&repath_stats, 0, sizeof(repath_stats));
	spin_lock_init(&fake.lock);
	fake.ibdev.phys_port_cnt = 1;
	fake.ibdev.node_type = RDMA_NODE_IB_CA;
	fake.ibdev.port_data = fake.port_data;
	init_rwsem(&fake.ibdev.event_handler_rwsem);
	INIT_LIST_HEAD(&fake.ibdev.event_handler_list);
	fake.ipoib.handler = ipoib_event;
	fake.other.handler = others_event;
	list_add(&fake.ipoib.list, &fake.ibdev.event_handler_list);
	list_add(&fake.other.list, &fake.ibdev.event_handler_list);
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

#endif /* REPATH_TESTS_SA_CASE_H */
