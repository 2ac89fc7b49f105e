// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 12 */
/* kunit-objs: ../sa.o ../sa_ask.o ../sa_subscribe.o ../sa_paths.o ../sa_heard.o ../sa_moved.o ../sa_relay.o ../notice.o ../learnt.o ../stat.o ../trace.o */
/* All paths of a port in one answer of many segments: whole, and in every way that it may not be. */
#include "sa_case.h"
#include "fuzz.h"

#define RECORD	sizeof(struct repath_sm_path)
#define KNOWN	40	/* paths: 13 segments */

/* The path that the queue pair uses is the one with this number, far behind the first segment. */
#define USED	23
#define DLID(i)	((i) == USED ? 20 : 100 + (i))

struct segment {
	struct ib_mad_recv_buf buf;
	struct ib_sa_mad mad;
};

/* As ib_mad hands it over: the first segment's list entry is in the completion. */
struct table {
	struct ib_mad_recv_wc wc;
	struct ib_wc completion;
	unsigned int n;
	struct segment segments[];
};

static struct list_head *entry_of(struct table *table, unsigned int i)
{
	return i ? &table->segments[i].buf.list : &table->wc.recv_buf.list;
}

/* The answer to question @i: @len bytes of records, each of which takes @step. */
static struct table *table_new(struct kunit *test, int i, const void *bytes, size_t len, size_t step)
{
	unsigned int k, n = max_t(unsigned int, DIV_ROUND_UP(len, IB_MGMT_SA_DATA), 1);
	struct table *table = kvzalloc(struct_size(table, segments, n), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, table);
	KUNIT_ASSERT_GE(test, i, 0);
	table->n = n;
	table->completion.slid = SM_LID;
	table->completion.src_qp = 1;
	table->wc.wc = &table->completion;
	table->wc.mad_len = IB_MGMT_SA_HDR + len;
	table->wc.recv_buf.mad = (struct ib_mad *)&table->segments[0].mad;
	INIT_LIST_HEAD(&table->wc.rmpp_list);
	for (k = 0; k < n; k++) {
		struct segment *segment = &table->segments[k];
		size_t at = k * IB_MGMT_SA_DATA;

		memcpy(&segment->mad, fake.sent[i]->mad, IB_MGMT_SA_HDR);
		segment->mad.mad_hdr.method |= IB_MGMT_METHOD_RESP;
		segment->mad.rmpp_hdr.rmpp_type = IB_MGMT_RMPP_TYPE_DATA;
		segment->mad.rmpp_hdr.seg_num = cpu_to_be32(k + 1);
		segment->mad.sa_hdr.attr_offset = cpu_to_be16(step / 8);
		memcpy(segment->mad.data, bytes + at, min_t(size_t, len - at, IB_MGMT_SA_DATA));
		segment->buf.mad = (struct ib_mad *)&segment->mad;
		list_add_tail(entry_of(table, k), &table->wc.rmpp_list);
	}
	return table;
}

static void table_answer(int i, struct table *table)
{
	fake.agent.recv_handler(&fake.agent, fake.sent[i], &table->wc);
	fake_over(i, IB_WC_SUCCESS);
	settle();
}

/* @n paths, each in @step bytes; the one that is used goes by @sl, the others by what belongs to them. */
static u8 *paths_new(struct kunit *test, unsigned int n, size_t step, u8 sl)
{
	u8 *bytes = kvzalloc(n * step, GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	for (i = 0; i < n; i++)
		fill_path((void *)(bytes + i * step), DLID(i), i == USED ? sl : i & 7);
	return bytes;
}

static int question(struct kunit *test)
{
	port_of()->table_at = jiffies;
	repath_sa_want_table(port_of(), true);
	repath_sa_kick(port_of());
	settle();
	KUNIT_ASSERT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 1);
	return asked(IB_SA_ATTR_PATH_REC);
}

/* A whole answer is known: what is not believed afterwards takes nothing of it away. */
static void know(struct kunit *test)
{
	u8 *bytes = paths_new(test, KNOWN, RECORD, 1);
	int i;

	fake.has_qp = true;
	fake.qp_path.mtu = IB_MTU_2048;
	fake.qp_path.rate = IB_RATE_10_GBPS;
	subscribe(test);
	i = asked(IB_SA_ATTR_PATH_REC);
	table_answer(i, table_new(test, i, bytes, KNOWN * RECORD, RECORD));
	kvfree(bytes);
	KUNIT_ASSERT_EQ(test, port_of()->paths.n, (u32)KNOWN);
	KUNIT_ASSERT_EQ(test, fake.ngiven, 0);
}

/* All @n paths are known and as they were told. */
static void is_known(struct kunit *test, unsigned int n, u8 sl)
{
	struct repath_learnt found;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, port_of()->paths.n, n);
	for (i = 0; i < n; i++) {
		if (!repath_learnt_find(&port_of()->paths, OWN_LID, DLID(i), &found) ||
		    found.sl != (i == USED ? sl : i & 7) || found.mtu != IB_MTU_4096) {
			KUNIT_FAIL(test, "path %u", i);
			return;
		}
	}
}

/* An answer that says otherwise, but does not add up: nobody is moved, and nothing is forgotten. */
static void not_believed(struct kunit *test, int i, struct table *table)
{
	u64 failed = stat_of(REPATH_STAT_SA_QUERY_FAILED);

	table_answer(i, table);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY_FAILED), failed + 1);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	is_known(test, KNOWN, 1);
}

/* It is asked for again, and now it is whole. */
static void made_good(struct kunit *test)
{
	u64 failed = stat_of(REPATH_STAT_SA_QUERY_FAILED);
	u8 *bytes = paths_new(test, KNOWN, RECORD, 3);
	int i;

	KUNIT_EXPECT_TRUE(test, test_bit(REPATH_SA_TABLE, &port_of()->wants));
	port_of()->table_at = jiffies;
	repath_sa_kick(port_of());
	settle();
	i = asked(IB_SA_ATTR_PATH_REC);
	table_answer(i, table_new(test, i, bytes, KNOWN * RECORD, RECORD));
	kvfree(bytes);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY_FAILED), failed);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 3);
	is_known(test, KNOWN, 3);
}

/* Records begin in one segment and end in the next. */
static void t_whole(struct kunit *test)
{
	u8 *bytes = paths_new(test, KNOWN, RECORD, 2);
	int i;

	know(test);
	i = question(test);
	table_answer(i, table_new(test, i, bytes, KNOWN * RECORD, RECORD));
	kvfree(bytes);
	is_known(test, KNOWN, 2);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.dlid, 20u);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 2);

	/* What it does not have any more has gone. */
	bytes = paths_new(test, 30, RECORD, 2);
	i = question(test);
	table_answer(i, table_new(test, i, bytes, 30 * RECORD, RECORD));
	kvfree(bytes);
	is_known(test, 30, 2);
	i = question(test);
	table_answer(i, table_new(test, i, NULL, 0, RECORD));
	KUNIT_EXPECT_EQ(test, port_of()->paths.n, 0u);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY_FAILED), 0ull);
}

/* A later version's records are longer; the last one may come without what pads it. */
static void t_longer_records(struct kunit *test)
{
	size_t step;

	know(test);
	for (step = RECORD + 8; step <= 2 * RECORD; step += 8) {
		u8 *bytes = paths_new(test, 30, step, 2);
		int i = question(test);

		table_answer(i, table_new(test, i, bytes, 29 * step + RECORD, step));
		kvfree(bytes);
		is_known(test, 30, 2);
	}
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY_FAILED), 0ull);
}

static void t_segment_lost(struct kunit *test)
{
	u8 *bytes = paths_new(test, KNOWN, RECORD, 2);
	struct table *table;
	unsigned int k, n;

	know(test);
	for (k = 0, n = 2; k < n; k++) {
		int i = question(test);

		table = table_new(test, i, bytes, KNOWN * RECORD, RECORD);
		n = table->n;
		list_del(entry_of(table, k));
		not_believed(test, i, table);
	}
	KUNIT_EXPECT_EQ(test, n, 13u);
	kvfree(bytes);
	made_good(test);
}

/* One in the place of another, and in sum they are as long as they should be. */
static void t_wrong_order(struct kunit *test)
{
	u8 *bytes = paths_new(test, KNOWN, RECORD, 2);
	struct table *table;
	unsigned int k;

	know(test);
	for (k = 0; k < 12; k++) {
		int i = question(test);

		table = table_new(test, i, bytes, KNOWN * RECORD, RECORD);
		list_swap(entry_of(table, k), entry_of(table, k + 1));
		not_believed(test, i, table);
	}
	kvfree(bytes);
	made_good(test);
}

/* Of the last record a byte is not there; of the first all but the first one, which is more than no record. */
static void t_truncated(struct kunit *test)
{
	static const size_t lengths[] = { KNOWN * RECORD - 1, (KNOWN - 1) * RECORD + 1, RECORD - 1, 1 };
	u8 *bytes = paths_new(test, KNOWN, RECORD, 2);
	int i, k;

	know(test);
	for (k = 0; k < ARRAY_SIZE(lengths); k++) {
		i = question(test);
		not_believed(test, i, table_new(test, i, bytes, lengths[k], RECORD));
	}
	kvfree(bytes);
	made_good(test);
}

/* A distance of records that is none, or that a count of bytes could not hold. */
static void t_wrong_step(struct kunit *test)
{
	static const size_t steps[] = { 0, 8, RECORD - 8, 2 * RECORD + 8, 8 * 0x8000, 8 * 0xffff };
	u8 *bytes = paths_new(test, KNOWN, RECORD, 2);
	int i, k;

	know(test);
	for (k = 0; k < ARRAY_SIZE(steps); k++) {
		i = question(test);
		not_believed(test, i, table_new(test, i, bytes, KNOWN * RECORD, steps[k]));
	}
	kvfree(bytes);
	made_good(test);
}

/* What is behind the end that it says is not read, be it in its last segment or in another one. */
static void t_trailing(struct kunit *test)
{
	size_t end = KNOWN * RECORD % IB_MGMT_SA_DATA;
	u8 *bytes = paths_new(test, KNOWN + 4, RECORD, 2);
	struct table *table;
	int i;

	know(test);
	i = question(test);
	table = table_new(test, i, bytes, (KNOWN + 4) * RECORD, RECORD);
	table->wc.mad_len = IB_MGMT_SA_HDR + KNOWN * RECORD;
	table_answer(i, table);
	is_known(test, KNOWN, 2);
	fake.qp_path.sl = 2;

	i = question(test);
	table = table_new(test, i, bytes, KNOWN * RECORD, RECORD);
	memset(table->segments[table->n - 1].mad.data + end, 0xff, IB_MGMT_SA_DATA - end);
	kvfree(bytes);
	table_answer(i, table);
	is_known(test, KNOWN, 2);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY_FAILED), 0ull);
}

/* Hardware may have gone over to an alternate path that is not as it is told; where it is has to be asked. */
static void t_alternate(struct kunit *test)
{
	u8 *bytes = paths_new(test, KNOWN, RECORD, 1);
	int i;

	know(test);
	fake.qp_alt = (struct repath_alt_path) {
		.dlid = fake.qp_path.dlid, .port = 1, .sl = 1, .has_mig = true, .mig = IB_MIG_ARMED,
	};
	i = question(test);
	table_answer(i, table_new(test, i, bytes, KNOWN * RECORD, RECORD));
	KUNIT_EXPECT_EQ(test, fake.nlate, 0);
	fake.qp_alt.sl = 5;
	i = question(test);
	KUNIT_EXPECT_FALSE(test, test_bit(REPATH_SA_TABLE, &port_of()->wants));
	fake.give_err = -ENOMEM;
	table_answer(i, table_new(test, i, bytes, KNOWN * RECORD, RECORD));
	/* No memory for that: all paths are asked for once more. */
	fake.give_err = 0;
	KUNIT_EXPECT_TRUE(test, test_bit(REPATH_SA_TABLE, &port_of()->wants));
	i = question(test);
	table_answer(i, table_new(test, i, bytes, KNOWN * RECORD, RECORD));
	KUNIT_EXPECT_EQ(test, fake.nlate, 1);
	KUNIT_EXPECT_EQ(test, fake.late.dlid, fake.qp_path.dlid);
	/* By another port of ours; and it has been asked, and is not there. */
	fake.qp_alt.port = 2;
	i = question(test);
	table_answer(i, table_new(test, i, bytes, KNOWN * RECORD, RECORD));
	fake.qp_alt.port = 1;
	fake.qp_alt.mig = IB_MIG_MIGRATED;
	i = question(test);
	table_answer(i, table_new(test, i, bytes, KNOWN * RECORD, RECORD));
	KUNIT_EXPECT_EQ(test, fake.nlate, 1);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 0);
	kvfree(bytes);
}

/* Shims connect the only queue pair anew: its path is asked for, and it is moved. One that was RESET for good is not. */
static void t_left(struct kunit *test)
{
	u8 *bytes = paths_new(test, KNOWN, RECORD, 2);
	int i;

	know(test);
	fake.qp_path.has_av = false;
	fake.qp_path.left_port = fake.qp_path.port;
	fake.qp_path.port = 0;
	fake.moving = true;
	i = question(test);
	table_answer(i, table_new(test, i, bytes, KNOWN * RECORD, RECORD));
	kvfree(bytes);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, (int)fake.given.sl, 2);

	fake.moving = false;
	port_of()->table_at = jiffies;
	repath_sa_want_table(port_of(), true);
	repath_sa_kick(port_of());
	settle();
	KUNIT_EXPECT_EQ(test, count_asked(IB_SA_ATTR_PATH_REC), 0);
}

/* More paths than are kept; what a queue pair uses is heard all the same. */
static void t_too_many(struct kunit *test)
{
	unsigned int n = REPATH_LEARNT_MAX + 10, k;
	u8 *bytes;
	int i;

	know(test);
	port_of()->table_at = jiffies;
	fake.attr.lmc = 7;
	event(IB_EVENT_LID_CHANGE);
	subscribe(test);
	i = asked(IB_SA_ATTR_PATH_REC);
	bytes = kvzalloc(n * RECORD, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bytes);
	for (k = 0; k < n; k++) {
		struct repath_sm_path *path = (void *)(bytes + k * RECORD);

		fill_path(path, 100 + k / 128, 1);
		path->slid = cpu_to_be16(k % 128);
	}
	fill_path((void *)(bytes + (n - 1) * RECORD), 20, 5);
	fake.qp_path.path_bits = OWN_LID;
	table_answer(i, table_new(test, i, bytes, n * RECORD, RECORD));
	kvfree(bytes);
	KUNIT_EXPECT_EQ(test, port_of()->paths.n, (u32)REPATH_LEARNT_MAX);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_PATH_NO_ROOM), 10ull);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY_FAILED), 0ull);
	KUNIT_EXPECT_EQ(test, fake.ngiven, 1);
	KUNIT_EXPECT_EQ(test, fake.given.dlid, 20u);
	KUNIT_EXPECT_EQ(test, fake.given.sl, 5);
}

/* ib_mad has not got all segments, or was told that there will be no more. */
static void t_given_up(struct kunit *test)
{
	static const enum ib_wc_status how[] = { IB_WC_REM_ABORT_ERR, IB_WC_RESP_TIMEOUT_ERR };
	int i, k;

	know(test);
	for (k = 0; k < ARRAY_SIZE(how); k++) {
		i = question(test);
		fake_over(i, how[k]);
		settle();
		KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_SA_QUERY_FAILED), k + 1ull);
		KUNIT_EXPECT_TRUE(test, test_bit(REPATH_SA_TABLE, &port_of()->wants));
		is_known(test, KNOWN, 1);
	}
}

/* Whatever comes: what is taken for true can be, and only segments that are there are read. */
static void t_fuzz(struct kunit *test)
{
	struct repath_learnt found;
	unsigned long index;
	unsigned int round;
	u8 *bytes;

	know(test);
	bytes = paths_new(test, KNOWN, RECORD, 2);
	fuzz_begin();
	for (round = 0; round < rounds / 50; round++) {
		int i = question(test);
		struct table *table = table_new(test, i, bytes, KNOWN * RECORD, RECORD);
		struct ib_sa_mad *first = &table->segments[0].mad;
		unsigned int k;

		for (k = fuzz_below(8); k; k--)
			table->segments[fuzz_below(table->n)].mad.data[fuzz_below(IB_MGMT_SA_DATA)] =
				fuzz_below(256);
		switch (fuzz_below(6)) {
		case 0:
			table->wc.mad_len = fuzz_below(2 * KNOWN * RECORD);
			break;
		case 1:
			first->sa_hdr.attr_offset = cpu_to_be16(fuzz_below(0x10000));
			break;
		case 2:
			first->sa_hdr.attr_offset = cpu_to_be16(8 + fuzz_below(9));
			break;
		case 3:
			list_del(entry_of(table, 1 + fuzz_below(table->n - 1)));
		}
		table_answer(i, table);
		for (index = 0; repath_learnt_next(&port_of()->paths, &index, &found); index++) {
			if (found.slid != OWN_LID || !found.dlid || found.dlid >= 0xc000 ||
			    found.sl > 15 || found.mtu > IB_MTU_4096) {
				KUNIT_FAIL(test, "round %u was believed", round);
				return;
			}
		}
		cond_resched();
	}
	kvfree(bytes);
	KUNIT_EXPECT_GT(test, fake.ngiven, 0);
	KUNIT_EXPECT_GT(test, stat_of(REPATH_STAT_SA_QUERY_FAILED), 0ull);
}

static struct kunit_case sa_table_cases[] = {
	KUNIT_CASE(t_whole),
	KUNIT_CASE(t_longer_records),
	KUNIT_CASE(t_segment_lost),
	KUNIT_CASE(t_wrong_order),
	KUNIT_CASE(t_truncated),
	KUNIT_CASE(t_wrong_step),
	KUNIT_CASE(t_trailing),
	KUNIT_CASE(t_alternate),
	KUNIT_CASE(t_left),
	KUNIT_CASE(t_too_many),
	KUNIT_CASE(t_given_up),
	KUNIT_CASE(t_fuzz),
	{}
};

static struct kunit_suite sa_table_suite = {
	.name = "repath_sa_table",
	.init = sa_init,
	.exit = sa_exit,
	.test_cases = sa_table_cases,
};
kunit_test_suite(sa_table_suite);
MODULE_LICENSE("GPL");
