// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 6 */
/* kunit-objs: ../reroute_behind.o ../stat.o */
/* Processes that do not read what they are told of paths get it when they do, in order. */
#include <kunit/test.h>
#include <linux/delay.h>

#include "../device.h"
#include "../proc.h"
#include "../reroute_behind.h"
#include "../reroute_qp.h"
#include "../reroute_shim.h"
#include "../stat.h"

#define PROCS	2
#define MOST	32768

/* What surrounds it in the module. */
static struct {
	struct repath_proc proc[PROCS];
	int room[PROCS];	/* so many more that its socket holds */
	int err;		/* of a socket that is full, or what else is wrong */
	int heard[PROCS];	/* so many it was told, in order: 0, 1, 2 ... */
	bool full[PROCS];	/* takes nothing until it has been read empty, as a socket */
	int fulls[PROCS];	/* so often it was full */
	bool in_order;
	int references;
	struct repath_device dev;
	struct repath_reroute reroute;
} fake;

struct repath_proc *repath_proc_get(struct repath_proc *proc)
{
	fake.references++;
	return proc;
}

void repath_proc_put(struct repath_proc *proc)
{
	fake.references--;
}

int repath_shim_send_path(struct repath_device *dev, struct repath_proc *proc, u32 port,
			  const struct repath_new_path *path)
{
	int i = proc - fake.proc;

	if (fake.room[i] <= 0 || fake.full[i]) {
		fake.fulls[i] += !fake.full[i];
		fake.full[i] = fake.err == -EAGAIN;
		return fake.err;
	}
	fake.room[i]--;
	fake.in_order &= path->dlid == fake.heard[i] && port == path->dlid % 2 + 1;
	fake.heard[i]++;
	return 0;
}

static int behind_init(struct kunit *test)
{
	memset(&fake, 0, sizeof(fake));
	memset(&repath_stats, 0, sizeof(repath_stats));
	fake.err = -EAGAIN;
	fake.in_order = true;
	fake.dev.reroute = &fake.reroute;
	fake.reroute.dev = &fake.dev;
	INIT_LIST_HEAD(&fake.reroute.behind);
	return 0;
}

static void behind_exit(struct kunit *test)
{
	repath_behind_end(&fake.reroute);
	KUNIT_EXPECT_EQ(test, fake.references, 0);
	KUNIT_EXPECT_TRUE(test, fake.in_order);
}

static void tell(int from, int to)
{
	struct repath_new_path path = {};
	int i, n;

	for (n = from; n < to; n++) {
		path.dlid = n;
		for (i = 0; i < PROCS; i++)
			repath_behind_tell(&fake.dev, &fake.proc[i], n % 2 + 1, &path);
	}
}

/* Until it has been told so many, or for a minute: what the work item does. */
static void again_until(struct kunit *test, int proc, int heard)
{
	unsigned long end = jiffies + 60 * HZ;

	while (fake.heard[proc] < heard && time_before(jiffies, end)) {
		const int before = fake.heard[proc];

		fake.reroute.nap = HZ;
		repath_behind_again(&fake.reroute);
		/* Who has been told some is told the rest soon. */
		KUNIT_EXPECT_EQ(test, fake.reroute.nap, fake.heard[proc] > before ? 1 : HZ);
		usleep_range(1000, 2000);
	}
	KUNIT_EXPECT_EQ(test, fake.heard[proc], heard);
}

static void has_read(int proc, int room)
{
	fake.room[proc] = room;
	fake.full[proc] = false;
}

static void t_reads(struct kunit *test)
{
	fake.room[0] = fake.room[1] = MOST;
	tell(0, 100);
	KUNIT_EXPECT_EQ(test, fake.heard[0], 100);
	KUNIT_EXPECT_EQ(test, fake.heard[1], 100);
	KUNIT_EXPECT_FALSE(test, repath_behind_again(&fake.reroute));
	KUNIT_EXPECT_EQ(test, fake.references, 0);
}

/* One does not read for a while, and the other one does not wait for it. */
static void t_behind(struct kunit *test)
{
	fake.room[0] = 300;
	fake.room[1] = MOST;
	tell(0, 1000);
	KUNIT_EXPECT_EQ(test, fake.heard[0], 300);
	KUNIT_EXPECT_EQ(test, fake.heard[1], 1000);
	KUNIT_EXPECT_TRUE(test, repath_behind_again(&fake.reroute));
	has_read(0, 300);
	/* What is new comes after what is old. */
	tell(1000, 1001);
	KUNIT_EXPECT_EQ(test, fake.heard[0], 300);
	again_until(test, 0, 600);
	KUNIT_EXPECT_TRUE(test, repath_behind_again(&fake.reroute));
	has_read(0, MOST);
	again_until(test, 0, 1001);
	KUNIT_EXPECT_FALSE(test, repath_behind_again(&fake.reroute));
	KUNIT_EXPECT_EQ(test, atomic64_read(&repath_stats.n[REPATH_STAT_PATH_SHIM_MISSED]), 0);
}

static void t_leaves(struct kunit *test)
{
	tell(0, 10);
	KUNIT_EXPECT_EQ(test, fake.references, 2);
	fake.err = -ESRCH;
	KUNIT_EXPECT_FALSE(test, repath_behind_again(&fake.reroute));
	KUNIT_EXPECT_EQ(test, fake.references, 0);
	tell(10, 20);
	KUNIT_EXPECT_EQ(test, fake.references, 0);
}

/* It never reads: it costs no more than so much. */
static void t_never_reads(struct kunit *test)
{
	fake.room[1] = MOST;
	tell(0, 17000);
	KUNIT_EXPECT_EQ(test, atomic64_read(&repath_stats.n[REPATH_STAT_PATH_SHIM_MISSED]),
			17000 - 16384);
	has_read(0, MOST);
	again_until(test, 0, 16384);
	KUNIT_EXPECT_FALSE(test, repath_behind_again(&fake.reroute));
}

/*
 * A socket that is full takes no other message either: one that is read slowly is not filled again and
 * again, nor as far as it goes.
 */
static void t_reads_slowly(struct kunit *test)
{
	const unsigned long end = jiffies + 60 * HZ;
	int read = 0, before;
	unsigned long last;

	fake.room[0] = 300;
	fake.room[1] = MOST;
	tell(0, 3000);
	has_read(0, 300);
	last = jiffies;
	while (repath_behind_again(&fake.reroute) && read < 3000 && time_before(jiffies, end)) {
		before = fake.heard[0] - 300;
		/* 1000 a second, of what there is */
		read = min_t(int, before, read + (jiffies - last) * 1000 / HZ);
		last = jiffies;
		fake.room[0] = 300 - (before - read);
		if (before == read)
			fake.full[0] = false;
		usleep_range(1000, 2000);
	}
	KUNIT_EXPECT_EQ(test, fake.heard[0], 3000);
	KUNIT_EXPECT_LT(test, fake.fulls[0], 5);
}

/* It did not read for a while, twice, and now reads all there is: it is not told slowly for ever. */
static void t_reads_again(struct kunit *test)
{
	unsigned long began;
	int i;

	tell(0, 8000);
	for (i = 0; i < 2; i++) {
		has_read(0, 200);
		again_until(test, 0, 200 * (i + 1));
		msleep(500);
		repath_behind_again(&fake.reroute);
		msleep(500);
		repath_behind_again(&fake.reroute);
	}
	has_read(0, MOST);
	began = jiffies;
	again_until(test, 0, 8000);
	KUNIT_EXPECT_LT(test, jiffies_to_msecs(jiffies - began), 10000u);
}

static struct kunit_case behind_cases[] = {
	KUNIT_CASE(t_reads),
	KUNIT_CASE(t_behind),
	KUNIT_CASE(t_leaves),
	KUNIT_CASE(t_never_reads),
	KUNIT_CASE(t_reads_slowly),
	KUNIT_CASE(t_reads_again),
	{}
};

static struct kunit_suite behind_suite = {
	.name = "repath_reroute_behind",
	.init = behind_init,
	.exit = behind_exit,
	.test_cases = behind_cases,
};
kunit_test_suite(behind_suite);
MODULE_LICENSE("GPL");
