// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 28 */
/* kunit-objs: ../sa.o ../sa_ask.o ../sa_subscribe.o ../sa_paths.o ../sa_heard.o ../sa_moved.o ../sa_relay.o ../notice.o ../learnt.o ../stat.o ../trace.o */
/* A port and its subnet manager: who is believed, what is asked, and what is done about it. */
#include "sa_case.h"

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

/* There was no memory to move queue pairs to a path: it is asked for, and they are moved then. */
static void t_no_memory(struct kunit *test)
{
	struct repath_sm_path path;

	fake.has_qp = true;
	subscribe(test);
	fill_path(&path, 20, 1);
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, &path, 1);
	settle();
	port_of()->table_at = jiffies;
	fake.give_err = -ENOMEM;
	report(test, REPATH_SM_REPATH, PATH, 1, 3);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	fake.give_err = 0;
	fill_path(&path, 20, 3);
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, &path, 1);
	settle();
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 3);
}

/* All paths are asked for at once, and only the one that differs is handed on. */
static void t_table(struct kunit *test)
{
	struct repath_sm_path paths[3];
	struct repath_learnt found;

	fake.has_qp = true;
	fake.qp_path.mtu = IB_MTU_2048;
	fake.qp_path.rate = IB_RATE_10_GBPS;
	subscribe(test);
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	fill_path(&paths[0], 20, 1);
	/* Such an MTU there is not, and such a rate is not known. */
	paths[0].mtu = REPATH_SM_EXACTLY;
	paths[0].rate = 0xff;
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
	KUNIT_EXPECT_EQ(test, fake.given.mtu, (u8)IB_MTU_4096);
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
	tell_path(test, &path);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	KUNIT_EXPECT_EQ(test, found.sl, 3);
}

/* A path is what it was before queue pairs have left that: they are told, as others need not be. */
static void t_back(struct kunit *test)
{
	struct repath_sm_path path;
	int i;

	learn(test, &path, 1);
	for (i = 0; i < 2; i++) {
		fake.ngiven = 0;
		path.qos_class_sl = cpu_to_be16(2);
		port_of()->table_at = jiffies;
		report(test, REPATH_SM_REPATH, 0, 2 * i + 1, 0);
		tell_path(test, &path);
		KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
		fake.under_way = !i;
		path.qos_class_sl = cpu_to_be16(1);
		port_of()->table_at = jiffies;
		report(test, REPATH_SM_REPATH, 0, 2 * i + 2, 0);
		tell_path(test, &path);
		KUNIT_EXPECT_EQ(test, fake.ngiven, 1 + !i);
		KUNIT_EXPECT_EQ(test, fake.given.sl, i ? 2 : 1);
		/* Once. */
		port_of()->table_at = jiffies;
		report(test, REPATH_SM_REPATH, 0, 10 + i, 0);
		tell_path(test, &path);
		KUNIT_EXPECT_EQ(test, fake.ngiven, 1 + !i);
	}
}

/* An exception holds against path records until it is taken back, and then they are asked. */
static void t_lane(struct kunit *test)
{
	struct repath_sm_path path;
	struct repath_notice lane = {
		.repath = true, .kind = REPATH_SM_LANE, .mask = PATH, .slid = OWN_LID,
		.dlid = 20, .sl = 6, .number = 1,
	};
	struct repath_notice unpath = {
		.kind = REPATH_SM_ROUTE, .mask = PATH, .slid = OWN_LID, .dlid = 20, .sl = 3,
		.number = 2, .serial = 1, .wait = true, .ahead = true,
	};

	fake.has_qp = true;
	subscribe(test);
	fill_path(&path, 20, 2);
	hear(&lane);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 6);
	tell_path(test, &path);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	/* What is announced of the path record is not for it. */
	hear(&unpath);
	KUNIT_EXPECT_EQ(test, fake.nprepared, 0);
	lane.number = 3;
	lane.repath = false;
	hear(&lane);
	tell_path(test, &path);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 2);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 2);

	/* One that was lost, and is repeated when the one after it was heard, begins nothing any more. */
	lane.number = 5;
	hear(&lane);
	tell_path(test, &path);
	lane.number = 4;
	lane.repath = true;
	hear(&lane);
	KUNIT_EXPECT_FALSE(test, repath_sa_is_exception(port_of(), OWN_LID, 20));
	KUNIT_EXPECT_EQ(test, fake.given.sl, 2);
	lane.number = 6;
	hear(&lane);
	KUNIT_EXPECT_TRUE(test, repath_sa_is_exception(port_of(), OWN_LID, 20));
}

/* Of a path that is what it was, for the sake of who is at its other end: its queue pairs hear of it, and nobody else. */
static void t_way_back(struct kunit *test)
{
	struct repath_notice back = {
		.repath = true, .kind = REPATH_SM_WAY_BACK, .mask = PATH, .slid = OWN_LID, .dlid = 20, .sl = 2, .number = 1,
	};
	struct repath_notice lane = {
		.repath = true, .kind = REPATH_SM_LANE, .mask = PATH, .slid = OWN_LID, .dlid = 20, .sl = 6, .number = 2,
	};
	struct repath_learnt found;
	struct repath_sm_path path;

	fake.has_qp = true;
	subscribe(test);
	fill_path(&path, 21, 2);
	tell_path(test, &path);
	fake.ngiven = 0;
	port_of()->changed = port_of()->moved = false;
	hear(&back);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_TRUE(test, fake.given.for_peer);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 2);
	KUNIT_EXPECT_EQ(test, fake.given.has, (u8)REPATH_PATH_SL);
	KUNIT_EXPECT_FALSE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	KUNIT_EXPECT_FALSE(test, port_of()->changed || port_of()->moved);

	/* Where an exception holds they stay in its lane. */
	hear(&lane);
	back.number = 3;
	hear(&back);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 3);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 6);
	KUNIT_EXPECT_TRUE(test, fake.given.for_peer && repath_sa_is_exception(port_of(), OWN_LID, 20));

	/* What is known otherwise by now was said too late. */
	lane.number = 4;
	lane.repath = false;
	hear(&lane);
	fill_path(&path, 20, 5);
	tell_path(test, &path);
	fake.ngiven = 0;
	back.number = 5;
	hear(&back);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	back.number = 6;
	back.sl = 5;
	hear(&back);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
}

/* An exception is known only to who made it: who has begun anew will never end it. */
static void t_lane_without_manager(struct kunit *test)
{
	struct repath_notice lane = {
		.repath = true, .kind = REPATH_SM_LANE, .mask = PATH, .slid = OWN_LID,
		.dlid = 20, .sl = 6, .number = 1,
	};
	struct repath_sm_path path;
	struct repath_learnt found;

	learn(test, &path, 2);
	hear(&lane);
	fake.qp_path.sl = 6;
	/* Asking again does not mean that. */
	port_of()->at = jiffies;
	repath_sa_kick(port_of());
	subscribe(test);
	KUNIT_EXPECT_TRUE(test, repath_sa_is_exception(port_of(), OWN_LID, 20));

	fake.ngiven = 0;
	port_of()->table_at = jiffies;
	event(IB_EVENT_CLIENT_REREGISTER);
	subscribe(test);
	tell_path(test, &path);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 2);

	/* Nobody uses it: nobody asks, and it is not known. */
	lane.number = 2;
	hear(&lane);
	fake.has_qp = false;
	port_of()->table_at = jiffies;
	event(IB_EVENT_CLIENT_REREGISTER);
	subscribe(test);
	KUNIT_EXPECT_FALSE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
}

/* A minute has passed since it has changed. */
static void grow_old(u16 dlid)
{
	struct repath_learnt *path = xa_load(&port_of()->paths.paths, OWN_LID << 16 | dlid);

	if (path)
		path->changed_ns -= 60 * NSEC_PER_SEC;
}

/* It has died before it could say RePath, or could not be heard. */
static void t_breaks(struct kunit *test)
{
	struct repath_notice unpath = {
		.kind = REPATH_SM_ROUTE, .mask = PATH, .slid = OWN_LID, .dlid = 20, .sl = 6,
		.number = 1, .serial = 1, .wait = true, .ahead = true,
	};
	struct repath_sm_path path;
	struct repath_learnt found;
	int given;

	learn(test, &path, 1);
	hear(&unpath);
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 0);
	KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	KUNIT_EXPECT_TRUE(test, found.unpath);
	given = fake.ngiven;
	/* All are asked for, whyever; who answers does not know yet that it is to break. */
	port_of()->table_at = jiffies;
	repath_sa_want_table(port_of(), true);
	repath_sa_kick(port_of());
	settle();
	tell_path(test, &path);
	KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	KUNIT_EXPECT_TRUE(test, found.unpath);
	KUNIT_EXPECT_EQ(test, fake.ngiven, given);
	/* Another one does not have the first wait longer, nor does it wait less itself. */
	unpath.number = 100;
	unpath.dlid = 21;
	hear(&unpath);
	grow_old(20);
	port_of()->breaks_at = jiffies;
	port_of()->table_at = jiffies;
	repath_sa_kick(port_of());
	settle();
	KUNIT_EXPECT_TRUE(test, port_of()->breaks);
	KUNIT_EXPECT_TRUE(test, time_after(port_of()->breaks_at, jiffies));
	tell_path(test, &path);
	KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	KUNIT_EXPECT_FALSE(test, found.unpath);
	/* It is what it was; what was loaded as the alternate path is not. */
	KUNIT_EXPECT_EQ(test, fake.ngiven, given + 1);
	KUNIT_EXPECT_EQ(test, (int)fake.given.sl, 1);

	/* Said of all: nothing was learnt of any. */
	unpath.number = unpath.serial = 2;
	unpath.mask = unpath.dlid = 0;
	hear(&unpath);
	port_of()->breaks_at = jiffies;
	port_of()->breaks_all_at = jiffies;
	port_of()->table_at = jiffies;
	repath_sa_kick(port_of());
	settle();
	tell_path(test, &path);

	/* Nobody uses it: nobody asks. */
	unpath.number = unpath.serial = 3;
	unpath.mask = PATH;
	unpath.dlid = 20;
	hear(&unpath);
	fake.has_qp = false;
	grow_old(20);
	port_of()->breaks_at = jiffies;
	port_of()->table_at = jiffies;
	repath_sa_kick(port_of());
	settle();
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 0);
	KUNIT_EXPECT_FALSE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
}

/* Of a path that nobody has told before it is about to break; what is late does not end that, nor is it its time. */
static void t_breaks_unknown(struct kunit *test)
{
	struct repath_notice unpath = {
		.kind = REPATH_SM_ROUTE, .mask = PATH, .slid = OWN_LID, .dlid = 20, .sl = 6,
		.number = 1, .serial = 5, .wait = true, .ahead = true,
	};
	struct repath_notice all = { .repath = true, .kind = REPATH_SM_ROUTE, .number = 2, .serial = 4 };
	struct repath_notice late = {
		.repath = true, .kind = REPATH_SM_ROUTE, .mask = PATH, .slid = OWN_LID, .dlid = 20, .sl = 3,
		.number = 3, .serial = 4,
	};
	struct repath_sm_path path;
	struct repath_learnt found;
	int i;

	subscribe(test);
	fake.has_qp = true;
	fill_path(&path, 20, 2);
	hear(&unpath);
	for (i = 0; i < 2; i++) {
		hear(i ? &late : &all);
		KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), !i);
		if (!i)
			tell_path(test, &path);
		KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
		KUNIT_EXPECT_TRUE(test, found.unpath);
		KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	}
	/* Said again, of the next routing. */
	grow_old(20);
	unpath.number = 4;
	unpath.serial = 6;
	hear(&unpath);
	KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	KUNIT_EXPECT_TRUE(test, repath_sa_is_breaking(port_of(), &found));
	all.number = 5;
	all.serial = 6;
	port_of()->table_at = jiffies;
	hear(&all);
	tell_path(test, &path);
	KUNIT_ASSERT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
	KUNIT_EXPECT_FALSE(test, found.unpath);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
}

/* Who has asked before the path has changed, and is connected afterwards, uses what it was. */
static void t_connected_late(struct kunit *test)
{
	struct repath_notice repath = {
		.repath = true, .kind = REPATH_SM_ROUTE, .mask = PATH, .slid = OWN_LID, .dlid = 20, .sl = 6,
		.number = 1, .serial = 1,
	};
	struct repath_sm_path path;
	unsigned int looks;
	int given, i;

	learn(test, &path, 1);
	KUNIT_EXPECT_EQ(test, port_of()->looks, 0u);
	fake.qp_path.sl = 6;
	hear(&repath);
	given = fake.ngiven;
	port_of()->look_again = jiffies;
	repath_sa_kick(port_of());
	settle();
	KUNIT_EXPECT_EQ(test, fake.nlate, 0);
	fake.qp_path.sl = 1;
	/* One without memory is none. */
	looks = port_of()->looks;
	fake.give_err = -ENOMEM;
	port_of()->look_again = jiffies;
	repath_sa_kick(port_of());
	settle();
	KUNIT_EXPECT_EQ(test, port_of()->looks, looks);
	KUNIT_EXPECT_TRUE(test, time_before_eq(port_of()->look_again, jiffies + HZ));
	fake.give_err = 0;
	/* Not for ever. */
	for (i = 0; i < 100 && port_of()->looks; i++) {
		port_of()->look_again = jiffies;
		repath_sa_kick(port_of());
		settle();
	}
	KUNIT_EXPECT_GT(test, fake.nlate, 0);
	KUNIT_EXPECT_LE(test, fake.nlate, 5);
	KUNIT_EXPECT_EQ(test, fake.late.dlid, 20u);
	KUNIT_EXPECT_EQ(test, (int)fake.late.sl, 6);
	KUNIT_EXPECT_EQ(test, fake.ngiven, given);
}

/* All was told: nothing is asked. */
static void t_does_not_break(struct kunit *test)
{
	struct repath_notice notice = {
		.kind = REPATH_SM_ROUTE, .mask = PATH, .slid = OWN_LID, .dlid = 20, .sl = 6,
		.serial = 1,
	};
	struct repath_sm_path path;

	learn(test, &path, 1);
	hear(&notice);
	notice.dlid = 0;
	notice.mask = 0;
	notice.number = 1;
	hear(&notice);
	notice.repath = true;
	notice.dlid = 20;
	notice.mask = PATH;
	hear(&notice);
	port_of()->breaks_at = jiffies;
	port_of()->table_at = jiffies;
	repath_sa_kick(port_of());
	settle();
	KUNIT_EXPECT_FALSE(test, port_of()->breaks);
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 0);
}

/* Who does not answer for long may not know us any more; it is asked until it answers. */
static void t_unanswered(struct kunit *test)
{
	struct repath_sm_path path;
	struct repath_learnt found;
	int i, looks;

	fake.has_qp = true;
	subscribe(test);
	looks = fake.looks;
	for (i = 0; i < 20; i++) {
		KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
		fake_over(asked(IB_SA_ATTR_PATH_REC), IB_WC_RESP_TIMEOUT_ERR);
		settle();
		if (count_asked(IB_SA_ATTR_INFORM_INFO))
			subscribe(test);
		port_of()->table_at = jiffies;
		repath_sa_kick(port_of());
		settle();
	}
	KUNIT_EXPECT_GT(test, fake.looks, looks);
	KUNIT_EXPECT_GT(test, stat_of(REPATH_STAT_SM_SUBSCRIBED), 1ull);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY_FAILED), 20ull);
	fill_path(&path, 20, 3);
	tell_path(test, &path);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 3);
	KUNIT_EXPECT_TRUE(test, repath_learnt_find(&port_of()->paths, OWN_LID, 20, &found));
}

/* Of an older routing: perhaps overtaken, perhaps not. */
static void t_late(struct kunit *test)
{
	struct repath_notice notice = {
		.repath = true, .kind = REPATH_SM_ROUTE, .mask = PATH, .slid = OWN_LID, .dlid = 20,
		.sl = 6, .serial = 9, .epoch = 5,
	};

	subscribe(test);
	hear(&notice);
	KUNIT_EXPECT_EQ(test, fake.given.serial, 9u);
	KUNIT_EXPECT_EQ(test, fake.given.epoch, 5u);
	notice.serial = 8;
	notice.number = 1;
	hear(&notice);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	/* Another subnet manager counts from the beginning. */
	notice.epoch = 6;
	notice.number = 2;
	hear(&notice);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 2);
	KUNIT_EXPECT_EQ(test, fake.given.epoch, 6u);
}

/* Who sends datagrams has no path that could be looked at: what has changed is handed on. */
static void t_datagrams(struct kunit *test)
{
	struct repath_sm_path paths[2];

	fake.datagrams = true;
	fake.qp_path.dlid = 0;
	subscribe(test);
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	fill_path(&paths[0], 20, 1);
	fill_path(&paths[1], 21, 4);
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, paths, 2);
	settle();
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	port_of()->table_at = jiffies;
	report(test, REPATH_SM_REPATH, 0, 1, 0);
	fill_path(&paths[1], 21, 5);
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, paths, 2);
	settle();
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.dlid, 21u);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 5);
}

/* So often IPoIB was told, if the last time was so many seconds ago and then a path has this SL. */
static int told_of_path(struct kunit *test, int seconds, u32 number, u8 sl)
{
	port_of()->told = jiffies - seconds * HZ;
	report(test, REPATH_SM_REPATH, PATH, number, sl);
	return fake.events;
}

/* IPoIB is told, and nobody else. */
static void t_kernel_users(struct kunit *test)
{
	subscribe(test);
	KUNIT_EXPECT_EQ(test, told_of_path(test, 3600, 1, 3), 1);
	/* Not if nothing has changed, and not too often. */
	KUNIT_EXPECT_EQ(test, told_of_path(test, 3600, 2, 3), 1);
	KUNIT_EXPECT_EQ(test, told_of_path(test, -3600, 3, 4), 1);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_PATH_KERNEL_TOLD), 1ull);
	KUNIT_EXPECT_EQ(test, fake.others_events, 0);
}

/* It has all its groups joined anew each time: another way to where somebody still is can wait. */
static void t_kernel_users_wait(struct kunit *test)
{
	struct repath_notice moved = {
		.repath = true, .kind = REPATH_SM_MOVED, .slid = OWN_LID, .dlid = 21, .number = 99, .serial = 3,
		.mask = PATH | REPATH_SM_MASK_DGID, .dgid = { 0xfe, 0x80, [15] = 1 },
	};

	subscribe(test);
	KUNIT_EXPECT_EQ(test, told_of_path(test, 3600, 1, 3), 1);
	KUNIT_EXPECT_EQ(test, told_of_path(test, 2, 2, 4), 1);
	KUNIT_EXPECT_EQ(test, told_of_path(test, 11, 3, 5), 2);
	port_of()->told = jiffies - 2 * HZ;
	hear(&moved);
	KUNIT_EXPECT_EQ(test, fake.events, 3);
}

/* Before the new path is there nothing else could be asked for, and what comes then would have to wait. */
static void t_kernel_users_unpath(struct kunit *test)
{
	struct repath_notice notice = {
		.kind = REPATH_SM_ROUTE, .slid = OWN_LID, .dlid = 20, .mask = PATH,
	};
	int i;

	subscribe(test);
	/* As well if the path was known before. */
	for (i = 0; i < 2; i++) {
		port_of()->told = jiffies - 3600 * HZ;
		notice.number = notice.serial = i + 1;
		notice.sl = i + 3;
		notice.repath = false;
		hear(&notice);
		KUNIT_EXPECT_EQ(test, fake.events, i);
		notice.repath = true;
		hear(&notice);
		KUNIT_EXPECT_EQ(test, fake.events, i + 1);
	}
}

/* A LID that another port has got is soon told. */
static void t_kernel_users_lid(struct kunit *test)
{
	struct repath_notice route = {
		.repath = true, .kind = REPATH_SM_ROUTE, .slid = OWN_LID, .dlid = 21,
		.mask = PATH | REPATH_SM_MASK_DGID, .dgid = { 0xfe, 0x80, [15] = 1 },
	};
	int i;

	subscribe(test);
	for (i = 0; i < 3; i++) {
		port_of()->told = jiffies - 2 * HZ;
		route.number = route.serial = i + 1;
		route.dgid[15] = i + 1;
		hear(&route);
		KUNIT_EXPECT_EQ(test, fake.events, i + 1);
	}
	/* The same one, by another way */
	port_of()->told = jiffies - 2 * HZ;
	route.number = route.serial = 4;
	route.sl = 5;
	hear(&route);
	KUNIT_EXPECT_EQ(test, fake.events, 3);
}

/* A VM may come back to where it was: that is news each time. */
static void t_moved_back(struct kunit *test)
{
	struct repath_notice moved = {
		.repath = true, .kind = REPATH_SM_MOVED, .slid = OWN_LID,
		.mask = PATH | REPATH_SM_MASK_DGID, .dgid = { 0xfe, 0x80, [15] = 1 },
	};
	static const u16 lids[] = { 20, 21, 20, 21 };
	int i;

	subscribe(test);
	for (i = 0; i < ARRAY_SIZE(lids); i++) {
		port_of()->told = jiffies - 3600 * HZ;
		moved.dlid = lids[i];
		moved.number = i + 1;
		hear(&moved);
		KUNIT_EXPECT_EQ(test, fake.events, i + 1);
	}
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
	KUNIT_CASE(t_no_memory),
	KUNIT_CASE(t_table),
	KUNIT_CASE(t_overtaken),
	KUNIT_CASE(t_back),
	KUNIT_CASE(t_lane),
	KUNIT_CASE(t_lane_without_manager),
	KUNIT_CASE(t_way_back),
	KUNIT_CASE(t_breaks),
	KUNIT_CASE(t_does_not_break),
	KUNIT_CASE(t_breaks_unknown),
	KUNIT_CASE(t_connected_late),
	KUNIT_CASE(t_unanswered),
	KUNIT_CASE(t_late),
	KUNIT_CASE(t_datagrams),
	KUNIT_CASE(t_kernel_users),
	KUNIT_CASE(t_kernel_users_wait),
	KUNIT_CASE(t_kernel_users_unpath),
	KUNIT_CASE(t_kernel_users_lid),
	KUNIT_CASE(t_moved_back),
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
