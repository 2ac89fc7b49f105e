// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 9 */
/* kunit-objs: ../device.o ../track.o ../track_path.o ../track_query.o ../track_user.o ../track_walk.o ../index.o ../path.o ../note.o ../stat.o ../trace.o ../reroute.o ../reroute_qp.o ../reroute_path.o ../reroute_way.o ../reroute_cycle.o */
/*
 * Queue pairs moved to a new path beside the bare verbs that it takes, on a device whose verbs take
 * a given time. What it takes is told for tests/bench/reroute.py; nothing fails because of a time.
 */
#include <linux/sort.h>

#define MOST_QPS 16384

#include "reroute_case.h"

#define QPS	200
#define OTHERS	(10 * QPS)
#define ROUNDS	15

static int by_time(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static u64 median(u64 *took)
{
	sort(took, ROUNDS, sizeof(*took), by_time, NULL);
	return took[ROUNDS / 2];
}

static u64 least(u64 *took)
{
	sort(took, ROUNDS, sizeof(*took), by_time, NULL);
	return took[0];
}

static void bare_sqd(struct hw_qp *hw, u8 sl)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD };

	ib_modify_qp(&hw->qp, &attr, IB_QP_STATE);
	ib_query_qp(&hw->qp, &attr, IB_QP_STATE, &init);
	attr.qp_state = IB_QPS_SQD;
	attr.ah_attr = hw->ah;
	rdma_ah_set_sl(&attr.ah_attr, sl);
	ib_modify_qp(&hw->qp, &attr, IB_QP_STATE | IB_QP_AV);
	attr.qp_state = IB_QPS_RTS;
	ib_modify_qp(&hw->qp, &attr, IB_QP_STATE);
}

static void bare_apm(struct hw_qp *hw, u8 sl)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};

	ib_query_qp(&hw->qp, &attr, IB_QP_TIMEOUT, &init);
	attr.alt_timeout = attr.timeout;
	attr.alt_port_num = 1;
	attr.alt_ah_attr = hw->ah;
	attr.path_mig_state = IB_MIG_REARM;
	rdma_ah_set_sl(&attr.alt_ah_attr, sl);
	ib_modify_qp(&hw->qp, &attr, IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE);
	ib_query_qp(&hw->qp, &attr, IB_QP_PATH_MIG_STATE, &init);
	attr.path_mig_state = IB_MIG_MIGRATED;
	ib_modify_qp(&hw->qp, &attr, IB_QP_PATH_MIG_STATE);
}

/* An alternate path that is armed: the bare verbs do not ask first, as who knows its state. */
static void make_ready(struct hw_qp *hw)
{
	hw->mig = IB_MIG_MIGRATED;
}

static u64 last_arrived(struct kunit *test)
{
	struct reroute_ctx *ctx = test->priv;
	u64 last = 0;
	int i;

	for (i = 0; i < ctx->count; i++) {
		struct repath_move *move = xa_load(&ctx->dev->reroute->table,
						   ctx->qps[i]->qp.qp_num);

		if (move && move->since_ns > last)
			last = move->since_ns;
	}
	return last;
}

/* How long rounds took: the bare verbs, until the last one had arrived, until all were read back. */
static u64 bare_ns[ROUNDS], moved_ns[ROUNDS], all_ns[ROUNDS];

/* Up to @count in all, the new ones by as many paths as @paths. */
static void add_up_to(struct kunit *test, int count, u32 dlid, int paths)
{
	struct reroute_ctx *ctx = test->priv;
	int i;

	for (i = ctx->count; i < count; i++)
		add_qp(test, 100 + i, dlid + i % paths, current);
}

/* The first @qps, which are on one path. */
static void measure(struct kunit *test, bool by_apm, unsigned int verb_us, int qps)
{
	struct reroute_ctx *ctx = test->priv;
	int i, round;
	u64 begin;

	add_up_to(test, qps, DLID, 1);
	hw_device.verb_us = verb_us;
	hw_device.arms = true;
	if (by_apm)
		ctx->dev->reroute->can[REPATH_WAY_SQD] = REPATH_CAN_NOT;
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < qps; i++)
			make_ready(ctx->qps[i]);
		begin = ktime_get_boottime_ns();
		for (i = 0; i < qps; i++) {
			if (by_apm)
				bare_apm(ctx->qps[i], 2);
			else
				bare_sqd(ctx->qps[i], 2);
		}
		bare_ns[round] = ktime_get_boottime_ns() - begin;
		begin = ktime_get_boottime_ns();
		KUNIT_ASSERT_EQ(test, reroute_to(test, NEW_SL), 0);
		flush_delayed_work(&ctx->dev->reroute->work);
		all_ns[round] = ktime_get_boottime_ns() - begin;
		settle(test, false);
		moved_ns[round] = last_arrived(test) - begin;
	}
	for (i = 0; i < qps; i++)
		expect(test, ctx->qps[i], REPATH_MOVE_MOVED,
		       by_apm ? REPATH_BY_APM : REPATH_BY_SQD, NEW_SL, IB_QPS_RTS);
}

static void by_verbs(struct kunit *test, const char *way, unsigned int verb_us)
{
	measure(test, !strcmp(way, "apm"), verb_us, QPS);
	pr_info("reroute: %s verbs %u us: bare %llu ns, moved %llu ns, read back %llu ns\n", way,
		verb_us,
		median(bare_ns) / QPS, median(moved_ns) / QPS, median(all_ns) / QPS);
}

static void t_verbs_0(struct kunit *test)
{
	by_verbs(test, "sqd", 0);
}

static void t_verbs_10(struct kunit *test)
{
	by_verbs(test, "sqd", 10);
}

static void t_verbs_50(struct kunit *test)
{
	by_verbs(test, "sqd", 50);
}

static void t_apm_10(struct kunit *test)
{
	by_verbs(test, "apm", 10);
}

static void t_apm_50(struct kunit *test)
{
	by_verbs(test, "apm", 50);
}

/*
 * @others are on the same port, and go elsewhere. The least of all rounds counts: the rest is
 * what the machine did meanwhile.
 */
static void with_others(struct kunit *test, int others)
{
	add_up_to(test, QPS + others, DLID + 1, 50);
	measure(test, false, 0, QPS);
	pr_info("reroute: beside %d others: moved %llu ns, read back %llu ns\n", others,
		least(moved_ns) / QPS, least(all_ns) / QPS);
}

static void t_others(struct kunit *test)
{
	add_up_to(test, QPS, DLID, 1);
	with_others(test, QPS);
	with_others(test, OTHERS);
}

/* A path is told, and the queue pairs on it are there already, if there are any. */
static u64 when_told(struct kunit *test, u32 dlid)
{
	const struct repath_new_path path = { .dlid = dlid, .sl = OLD_SL, .has = REPATH_PATH_SL };
	static u64 took[ROUNDS];
	int round;
	u64 begin;

	for (round = 0; round < ROUNDS; round++) {
		begin = ktime_get_boottime_ns();
		KUNIT_EXPECT_EQ(test, repath_reroute_repath(the_device(test), 1, &path), 0);
		flush_delayed_work(&the_device(test)->reroute->work);
		took[round] = ktime_get_boottime_ns() - begin;
		settle(test, false);
	}
	return median(took);
}

static void t_no_change(struct kunit *test)
{
	u64 none, few, all;
	int i;

	for (i = 0; i < 16; i++)
		add_qp(test, 100 + i, DLID + 1, current);
	none = when_told(test, DLID + 2);
	for (; i < MOST_QPS; i++)
		add_qp(test, 100 + i, DLID, current);
	few = when_told(test, DLID + 1);
	all = when_told(test, DLID);
	pr_info("reroute: no change: %d queue pairs, on another path: %llu ns with 16, %llu ns with all; on this one: 16 %llu ns, %d %llu ns\n",
		MOST_QPS, none, when_told(test, DLID + 2), few, MOST_QPS - 16, all);
	KUNIT_EXPECT_EQ(test, stat_of(REPATH_STAT_MOVED_SQD), 0ull);
}

/* The papers' first one: a host with one queue pair. */
static void t_one(struct kunit *test)
{
	u64 none, same;

	add_up_to(test, 1, DLID, 1);
	hw_device.verb_us = 10;
	none = when_told(test, DLID + 1);
	same = when_told(test, DLID);
	measure(test, false, 10, 1);
	pr_info("reroute: one: on another path %llu ns, there already %llu ns, moved %llu ns, read back %llu ns, bare %llu ns\n",
		none, same, median(moved_ns), median(all_ns), median(bare_ns));
}

/* A queue pair to every other host, of which half get another path, each told by itself (paper II, figure 11). */
static void t_many_paths(struct kunit *test)
{
	static const int hosts[] = { 16, 36, 64, 100, 400 };
	struct repath_new_path path = { .sl = NEW_SL, .has = REPATH_PATH_SL };
	struct reroute_ctx *ctx = test->priv;
	int h, i, round;
	u64 begin;

	hw_device.verb_us = 10;
	for (h = 0; h < ARRAY_SIZE(hosts); h++) {
		add_up_to(test, hosts[h] - 1, DLID, MOST_QPS);
		for (round = 0; round < ROUNDS; round++) {
			begin = ktime_get_boottime_ns();
			for (i = 0; i < ctx->count; i += 2)
				bare_sqd(ctx->qps[i], 2);
			bare_ns[round] = ktime_get_boottime_ns() - begin;
			begin = ktime_get_boottime_ns();
			for (i = 0; i < ctx->count; i += 2) {
				path.dlid = DLID + i;
				KUNIT_ASSERT_EQ(test, repath_reroute_repath(ctx->dev, 1, &path), 0);
			}
			settle(test, false);
			moved_ns[round] = last_arrived(test) - begin;
		}
		for (i = 0; i < ctx->count; i++)
			KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&ctx->qps[i]->ah), i % 2 ? OLD_SL : NEW_SL);
		pr_info("reroute: host of %d: %d paths: bare %llu ns, moved %llu ns\n", hosts[h],
			(ctx->count + 1) / 2, median(bare_ns), median(moved_ns));
	}
}

static struct kunit_case bench_cases[] = {
	KUNIT_CASE(t_verbs_0),
	KUNIT_CASE(t_verbs_10),
	KUNIT_CASE(t_verbs_50),
	KUNIT_CASE(t_apm_10),
	KUNIT_CASE(t_apm_50),
	KUNIT_CASE(t_others),
	KUNIT_CASE(t_no_change),
	KUNIT_CASE(t_one),
	KUNIT_CASE(t_many_paths),
	{}
};

static struct kunit_suite bench_suite = {
	.name = "repath_reroute_bench",
	.init = reroute_init,
	.exit = reroute_exit,
	.test_cases = bench_cases,
};
kunit_test_suite(bench_suite);
MODULE_LICENSE("GPL");
