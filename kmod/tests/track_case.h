/* SPDX-License-Identifier: GPL-2.0 */
/* What each case of tracking begins with: one device, and nothing told. */
#ifndef REPATH_TESTS_TRACK_CASE_H
#define REPATH_TESTS_TRACK_CASE_H

#include "track_fakes.h"

struct track_ctx {
	struct repath_device *dev;
};

static struct repath_device *the_device(struct kunit *test)
{
	return ((struct track_ctx *)test->priv)->dev;
}

static u64 stat_of(enum repath_stat stat)
{
	return atomic64_read(&repath_stats.n[stat]);
}

static void count_path(const struct repath_path *path, const struct repath_alt_path *alt, void *arg)
{
	int *count = arg;

	++*count;
}

/* How many; looking at them must come to the same as walking. */
static int on_path(struct repath_device *dev, u32 port, u32 dlid, u16 dgid)
{
	union ib_gid gid = fake_dgid(dgid);
	int count = 0, seen = 0;

	if (repath_qp_walk_on_path(dev, port, dlid, &gid, fake_count_qp, &count))
		return -1;
	repath_qp_look_on_path(dev, port, dlid, &gid, count_path, &seen);
	return seen == count ? count : -1;
}

static int track_init(struct kunit *test)
{
	struct track_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	memset(&told, 0, sizeof(told));
	memset(&repath_stats, 0, sizeof(repath_stats));
	KUNIT_ASSERT_EQ(test, repath_track_init(), 0);
	KUNIT_ASSERT_EQ(test, repath_note_init(), 0);
	ctx->dev = fake_device_add(test, "fake0", 7);
	test->priv = ctx;
	return 0;
}

static void track_exit(struct kunit *test)
{
	struct track_ctx *ctx = test->priv;

	if (!ctx)
		return;
	if (ctx->dev)
		fake_device_del(ctx->dev);
	repath_note_exit();
	repath_track_exit();
}

#endif /* REPATH_TESTS_TRACK_CASE_H */
