// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Anything that may happen, by a seed (argument): moves, moves given up at some moment, resumes
 * that fail, ends that post no receives meanwhile, lost answers, over three connections,
 * one of them within a device; messages late, twice, lost. The seed of a failure repeats
 * it as far as threads allow.
 */
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

#define PAIRS 3

static unsigned int seed;

static unsigned int random_below(unsigned int n)
{
	return (rand_r(&seed) >> 8) % n;
}

static void plug(const char *dev)
{
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = dev, .gid_shift = random_below(4) }), 0);
}

static void fail_something(void)
{
	static const char *const verbs[] = {
		"ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr", "ibv_create_cq", "ibv_create_qp",
	};

	mock_fail(verbs[random_below(5)], ENOSPC, random_below(3), 1);
}

static void move(const char *dev, unsigned int round)
{
	const char *why = "";
	int ret;

	/* Executed, but the answers are lost */
	mock_hold_acks(random_below(8) == 0);
	usleep(random_below(2000));
	move_away(dev);
	mock_hold_acks(false);
	plug(dev);
	if (random_below(4) == 0) {
		fail_something();
		ret = fake_resume(dev, &why);
		/* What was let through may have been all that there was. */
		CHECK(!ret || ret == ENOSPC, "round %u: %d, %s", round, ret, why);
		if (!ret)
			return;
	}
	ret = fake_resume(dev, &why);
	/* The failure that was still waiting for its call */
	if (ret == ENOSPC)
		ret = fake_resume(dev, &why);
	CHECK(!ret, "round %u: resume of %s: %d, %s", round, dev, ret, why);
}

static void give_up(const char *dev, unsigned int round)
{
	const char *why = "";
	int ret = fake_check(dev, &why);

	CHECK(!ret, "round %u: check of %s: %d, %s", round, dev, ret, why);
	fake_suspend_start(dev);
	usleep(random_below(15000));
	ret = fake_abort();
	if (ret == ENOSPC)
		ret = fake_resume(dev, &why);
	CHECK(!ret, "round %u: abort on %s: %d", round, dev, ret);
}

int main(int argc, char **argv)
{
	struct fake_faults f = { .late_us = 2000, .twice = 20, .lost = 10 };
	static struct pair_how how[PAIRS] = {
		{ .events = true },
		{ .ex_cq = true, .ex_qp = true },
		{ .dev = { "mock0", "mock0" }, .sgid_index = 1 },
	};
	struct traffic *t[PAIRS];
	struct end e[PAIRS][2];
	unsigned int i, k, start = argc > 1 ? atoi(argv[1]) : 1;

	alarm(HANGS);
	seed = f.seed = start;
	for (k = 0; k < PAIRS; k++) {
		pair_open(e[k], &how[k]);
		t[k] = traffic_start(e[k], &(struct traffic_how){ .seed = start + k,
				     .rarely = k == 1 });
	}
	for (i = 0; i < TIMES(60); i++) {
		const char *dev = random_below(3) ? "mock0" : "mock1";
		int holder = -1, end = random_below(2);

		if (random_below(3) == 0)
			fake_faults_set(&f);
		else
			fake_faults_set(&(struct fake_faults){ .seed = i });
		f.seed = seed;
		if (random_below(6) == 0) {
			holder = random_below(PAIRS);
			traffic_hold_receives(t[holder], end, true);
			usleep(random_below(4000));
		}
		if (random_below(3))
			move(dev, i);
		else
			give_up(dev, i);
		if (random_below(2))
			CHECK(!fake_settled(), "round %u", i);
		if (holder >= 0)
			traffic_hold_receives(t[holder], end, false);
		for (k = 0; k < PAIRS; k++)
			traffic_flows(t[k], 1 + random_below(5));
	}
	CHECK_EQ(fake_settled(), 0);
	for (k = 0; k < PAIRS; k++)
		traffic_stop(t[k]);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	for (k = 0; k < PAIRS; k++)
		pair_close(e[k]);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
	return 0;
}
