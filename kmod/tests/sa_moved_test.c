// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 11 */
/* kunit-objs: ../sa.o ../sa_ask.o ../sa_subscribe.o ../sa_paths.o ../sa_heard.o ../sa_moved.o ../sa_relay.o ../notice.o ../learnt.o ../stat.o ../trace.o */
/* Who is at another LID: as the subnet manager tells it, and as an answer with all paths shows it. */
#include "sa_case.h"

static const u8 gids[][16] = { { 0xfe, 0x80, [15] = 9 }, { 0xfe, 0x80, [15] = 8 } };

static struct repath_notice moved_to(u16 old_dlid, u16 dlid, u32 number)
{
	struct repath_notice moved = {
		.repath = true, .kind = REPATH_SM_MOVED, .slid = OWN_LID, .dlid = dlid,
		.old_dlid = old_dlid, .number = number, .serial = 5, .sl = 3,
		.mask = PATH | REPATH_SM_MASK_DGID,
	};

	memcpy(moved.dgid, gids[0], sizeof(moved.dgid));
	return moved;
}

static void by_gid(bool is)
{
	fake.qp_path.has_grh = is;
	if (is)
		memcpy(&fake.qp_path.dgid, gids[0], sizeof(gids[0]));
	else
		memset(&fake.qp_path.dgid, 0, sizeof(fake.qp_path.dgid));
}

/* All paths are asked for, and answered: @n of them, to these LIDs of these GIDs. */
static void ask(struct kunit *test)
{
	port_of()->table_at = jiffies;
	repath_sa_want_table(port_of(), true);
	repath_sa_kick(port_of());
	settle();
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
}

struct at {
	u16 dlid;
	u8 gid;
};

static void answer_all(struct kunit *test, const struct at *at, int n)
{
	struct repath_sm_path paths[3];
	int i;

	for (i = 0; i < n; i++) {
		fill_path(&paths[i], at[i].dlid, 1);
		memcpy(paths[i].dgid, gids[at[i].gid], sizeof(paths[i].dgid));
	}
	answer_from(test, asked(IB_SA_ATTR_PATH_REC), 0, SM_LID, 1, paths, n);
	settle();
}

#define ANSWER(test, ...) do {						\
	const struct at at[] = { __VA_ARGS__ };				\
									\
	ask(test);							\
	answer_all(test, at, ARRAY_SIZE(at));				\
} while (0)

/* A queue pair is there, and goes to LID 20 as it was told. */
static void begin(struct kunit *test, const struct at *at, int n)
{
	fake.has_qp = true;
	subscribe(test);
	answer_all(test, at, n);
	KUNIT_ASSERT_EQ(test, fake.ngiven, 0);
}

static bool knows(u16 dlid)
{
	struct repath_learnt found;

	return repath_learnt_find(&port_of()->paths, OWN_LID, dlid, &found);
}

static void given(struct kunit *test, u16 from, u16 to, const void *dgid)
{
	static const u8 none[16];

	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.dlid, (u32)from);
	KUNIT_EXPECT_EQ(test, fake.given.new_dlid, (u32)to);
	KUNIT_EXPECT_EQ(test, memcmp(fake.given.dgid, dgid ?: none, sizeof(none)), 0);
	fake.ngiven = 0;
}

/* All that is there goes along, and as with any route a later one takes its place. */
static void t_told(struct kunit *test)
{
	const struct at before[] = { { 20, 0 } };
	struct repath_notice moved = moved_to(20, 21, 1);
	int i;

	begin(test, before, 1);
	for (i = 0; i < 2; i++) {
		by_gid(i);
		moved.number = i + 1;
		hear(&moved);
		given(test, 20, 21, NULL);
		KUNIT_EXPECT_EQ(test, fake.given.serial, 5u);
		KUNIT_EXPECT_EQ(test, fake.given.sl, 3);
		KUNIT_EXPECT_EQ(test, fake.given.slid, (u32)OWN_LID);
		KUNIT_EXPECT_FALSE(test, fake.given.by_lid);
		KUNIT_EXPECT_TRUE(test, knows(21) && !knows(20));
	}
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_PATH_AMBIGUOUS), 0ull);
}

/* Another one is there by now: who goes by the LID alone may go to that. */
static void t_told_taken(struct kunit *test)
{
	const struct at before[] = { { 20, 0 } };
	struct repath_notice moved = moved_to(0, 21, 1);

	begin(test, before, 1);
	hear(&moved);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	by_gid(true);
	moved.number = 2;
	hear(&moved);
	given(test, 20, 21, gids[0]);
}

/* One that was lost, and comes behind a later one, does not take anybody back: who knows is asked. */
static void t_told_late(struct kunit *test)
{
	const struct at before[] = { { 20, 0 } };
	struct repath_notice moved = moved_to(0, 22, 2);

	begin(test, before, 1);
	by_gid(true);
	hear(&moved);
	given(test, 20, 22, gids[0]);
	fake.qp_path.dlid = 22;
	moved = moved_to(20, 21, 1);
	port_of()->table_at = jiffies;
	hear(&moved);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_NOTICE_LATE), 1ull);
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	/* Who subscribes anew may be told by lower numbers. */
	moved = moved_to(0, 23, 2 - (1 << 20));
	hear(&moved);
	given(test, 22, 23, gids[0]);
}

/* It is back before the queue pair has left, which so does not go where it was meanwhile. */
static void t_told_back(struct kunit *test)
{
	const struct at before[] = { { 20, 0 } };
	struct repath_notice moved = moved_to(0, 21, 1);

	begin(test, before, 1);
	by_gid(true);
	hear(&moved);
	given(test, 20, 21, gids[0]);
	fake.under_way = true;
	moved = moved_to(0, 20, 2);
	hear(&moved);
	/* Whether it has left yet, or not. */
	KUNIT_EXPECT_EQ(test, fake.ngiven, 2);
	fake.ngiven = 1;
	given(test, 21, 20, gids[0]);
	/* Where nobody is under way it is enough to look. */
	fake.under_way = false;
	moved = moved_to(0, 20, 3);
	hear(&moved);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
}

/* By the GID, whether the LID was known or not. */
static void t_found(struct kunit *test)
{
	const struct at before[] = { { 30, 1 } };

	begin(test, before, 1);
	by_gid(true);
	ANSWER(test, { 21, 0 }, { 30, 1 });
	given(test, 20, 21, gids[0]);
	KUNIT_EXPECT_FALSE(test, fake.given.serial);
	fake.qp_path.dlid = 21;
	/* Another port has that LID now. */
	ANSWER(test, { 21, 1 }, { 22, 0 });
	given(test, 21, 22, gids[0]);
	fake.qp_path.dlid = 22;
	ANSWER(test, { 21, 1 }, { 22, 0 });
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
}

/* A port with several LIDs is at all of them. */
static void t_found_several(struct kunit *test)
{
	const struct at before[] = { { 20, 0 }, { 21, 0 } };

	by_gid(true);
	begin(test, before, 2);
	ANSWER(test, { 20, 0 }, { 21, 0 });
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	ANSWER(test, { 24, 0 }, { 25, 0 });
	given(test, 20, 24, gids[0]);
}

/* By the LID alone: of who was there, if nobody is now. */
static void t_found_by_lid(struct kunit *test)
{
	const struct at before[] = { { 20, 0 } };

	begin(test, before, 1);
	ANSWER(test, { 21, 0 });
	given(test, 20, 21, NULL);
	KUNIT_EXPECT_TRUE(test, fake.given.by_lid);
	KUNIT_EXPECT_TRUE(test, knows(21) && !knows(20));
	/* Once: whoever is on the way is. */
	ANSWER(test, { 21, 0 });
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
}

/* Whose LID it is was not told at first, but that is no other one's. */
static void t_found_by_lid_told_before(struct kunit *test)
{
	const struct at before[] = { { 30, 1 } };
	const struct repath_notice told = {
		.repath = true, .kind = REPATH_SM_ROUTE, .slid = OWN_LID, .dlid = 20,
		.number = 1, .serial = 5, .sl = 1, .mask = PATH,
	};

	begin(test, before, 1);
	hear(&told);
	KUNIT_ASSERT_TRUE(test, knows(20));
	fake.ngiven = 0;
	ANSWER(test, { 20, 0 }, { 30, 1 });
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	ANSWER(test, { 21, 0 }, { 30, 1 });
	given(test, 20, 21, NULL);
	KUNIT_EXPECT_TRUE(test, fake.given.by_lid);
}

/* Nobody knows whom it goes to: another port has the LID, or two GIDs had it. */
static void t_not_found_by_lid(struct kunit *test)
{
	const struct at before[] = { { 20, 0 } };

	begin(test, before, 1);
	ANSWER(test, { 20, 1 }, { 21, 0 });
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	ANSWER(test, { 20, 0 }, { 20, 1 });
	ANSWER(test, { 21, 0 }, { 22, 1 });
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	/* Gone for good. */
	ANSWER(test, { 20, 0 });
	ANSWER(test, { 22, 1 });
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
}

/* What was asked before somebody moved does not tell where that is. */
static void t_found_late(struct kunit *test)
{
	const struct at before[] = { { 20, 0 } };
	const struct at then[] = { { 21, 0 } };
	struct repath_notice moved = moved_to(0, 22, 1);

	begin(test, before, 1);
	by_gid(true);
	ask(test);
	hear(&moved);
	given(test, 20, 22, gids[0]);
	answer_all(test, then, 1);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	KUNIT_EXPECT_TRUE(test, test_bit(REPATH_SA_TABLE, &port_of()->wants));
	ANSWER(test, { 22, 0 });
	given(test, 20, 22, gids[0]);
}

/* All is where it was, before the queue pair has left. */
static void t_found_back(struct kunit *test)
{
	const struct at before[] = { { 20, 0 } };

	begin(test, before, 1);
	ANSWER(test, { 21, 0 });
	given(test, 20, 21, NULL);
	fake.under_way = true;
	ANSWER(test, { 20, 0 });
	/* What is new of the path itself; of those that go by the LID alone; and of the GID. */
	KUNIT_EXPECT_EQ(test, fake.ngiven, 3);
	fake.ngiven = 1;
	given(test, 21, 20, gids[0]);
	/* Once. */
	ANSWER(test, { 20, 0 });
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
}

static struct kunit_case moved_cases[] = {
	KUNIT_CASE(t_told),
	KUNIT_CASE(t_told_taken),
	KUNIT_CASE(t_told_late),
	KUNIT_CASE(t_told_back),
	KUNIT_CASE(t_found),
	KUNIT_CASE(t_found_several),
	KUNIT_CASE(t_found_by_lid),
	KUNIT_CASE(t_found_by_lid_told_before),
	KUNIT_CASE(t_not_found_by_lid),
	KUNIT_CASE(t_found_late),
	KUNIT_CASE(t_found_back),
	{}
};

static struct kunit_suite moved_suite = {
	.name = "repath_sa_moved",
	.init = sa_init,
	.exit = sa_exit,
	.test_cases = moved_cases,
};
kunit_test_suite(moved_suite);
MODULE_LICENSE("GPL");
