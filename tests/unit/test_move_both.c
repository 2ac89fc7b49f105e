// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Both ends' devices go away at once, or one while the other is away; and moves that follow each
 * other without a pause, when the peer has not finished the one before.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static const char *const dev[2] = { "mock0", "mock1" };

static void plug(int i)
{
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = dev[i] }), 0);
}

static void both_checked(unsigned int round)
{
	const char *why = "";
	int i, ret;

	for (i = 0; i < 2; i++) {
		fake_use_op(i);
		ret = fake_check(dev[i], &why);
		CHECK(!ret, "round %u: check of %s: %d, %s", round, dev[i], ret, why);
	}
}

static void both_begin(unsigned int round)
{
	int i;

	both_checked(round);
	for (i = 0; i < 2; i++) {
		fake_use_op(i);
		fake_suspend_start(dev[i]);
	}
}

static void both_back(struct traffic *t, unsigned int round)
{
	int i, ret;

	for (i = 0; i < 2; i++) {
		fake_use_op(i);
		ret = fake_wait(REPATH_STAGE_REPLAY);
		CHECK(!ret, "round %u: resume of %s: %d", round, dev[i], ret);
	}
	fake_use_op(0);
	traffic_flows(t, 5);
}

static void at_once(struct traffic *t, unsigned int round)
{
	int i, ret;

	both_begin(round);
	for (i = 0; i < 2; i++) {
		fake_use_op(i);
		ret = fake_wait(REPATH_STAGE_RELEASE);
		CHECK(!ret, "round %u: suspend of %s: %d", round, dev[i], ret);
	}
	for (i = 0; i < 2; i++)
		CHECK_EQ(mock_unplug(dev[i]), 0);
	for (i = 0; i < 2; i++) {
		int which = (i + round) % 2;

		plug(which);
		fake_use_op(which);
		fake_resume_start(dev[which]);
		if (round % 3)
			usleep(5000);
	}
	both_back(t, round);
}

/* One leaves while the other is away; it is not there yet when the first comes back. */
static void one_by_one(struct traffic *t, unsigned int round)
{
	int first = round % 2, second = !first, back = round / 2 % 2 ? first : second;
	int last = !back;

	fake_use_op(first);
	move_away(dev[first]);
	fake_use_op(second);
	move_away(dev[second]);
	plug(back);
	fake_use_op(back);
	CHECK_EQ(fake_resume_start(dev[back]), 0);
	usleep(100000);		/* longer than it takes to try what comes to nothing */
	plug(last);
	fake_use_op(last);
	CHECK_EQ(fake_resume_start(dev[last]), 0);
	both_back(t, round);
}

/* The one that has begun to leave goes on, the one that thought better of it is its peer. */
static void other_goes_on(struct traffic *t, int stays, unsigned int round)
{
	int leaves = !stays, ret;
	const char *why = "";

	fake_use_op(leaves);
	ret = fake_wait(REPATH_STAGE_RELEASE);
	CHECK(!ret, "round %u: suspend of %s: %d", round, dev[leaves], ret);
	CHECK_EQ(mock_unplug(dev[leaves]), 0);
	plug(leaves);
	ret = fake_resume(dev[leaves], &why);
	CHECK(!ret, "round %u: resume of %s: %d, %s", round, dev[leaves], ret, why);
	/* It may have waited for the other one, to be connected again. */
	fake_use_op(stays);
	ret = fake_wait(REPATH_STAGE_ABORT);
	CHECK(!ret, "round %u: abort on %s: %d", round, dev[stays], ret);
	fake_use_op(0);
	traffic_flows(t, 5);
}

/* Both leave, and one thinks better of it at some moment. */
static void one_stays(struct traffic *t, unsigned int round)
{
	int stays = round % 2;

	both_begin(round);
	usleep(round * 700 % 9000);
	fake_use_op(stays);
	CHECK_EQ(fake_abort_start(), 0);
	other_goes_on(t, stays, round);
}

/* ... and does before the other begins, which has had its ABORT, or not yet, or answers it just then. */
static void one_has_stayed(struct traffic *t, unsigned int round)
{
	int stays = round % 2;

	both_checked(round);
	fake_use_op(stays);
	fake_suspend_start(dev[stays]);
	usleep(round * 100 % 1500);
	CHECK_EQ(fake_abort_start(), 0);
	usleep(round * 300 % 4000);
	fake_use_op(!stays);
	fake_suspend_start(dev[!stays]);
	other_goes_on(t, stays, round);
}

/* No look at whether the peer has finished. */
static void no_pause(struct traffic *t, unsigned int round)
{
	const char *why = "";
	int i, ret;

	for (i = 0; i < 3; i++) {
		int which = (round + i) / 2 % 2;

		move_away(dev[which]);
		plug(which);
		ret = fake_resume(dev[which], &why);
		CHECK(!ret, "round %u: resume of %s: %d, %s", round, dev[which], ret, why);
	}
	traffic_flows(t, 5);
}

static atomic_bool stop;

static void *queries(void *arg)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct end *e = arg;

	while (!atomic_load(&stop))
		CHECK_EQ(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
	return NULL;
}

/* A verb that waits for the peer to come back does not keep its own device from going. */
static void verbs_wait(struct traffic *t, struct end e[2])
{
	pthread_t thread[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, queries, &e[i]), 0);
	for (i = 0; i < 4; i++)
		one_by_one(t, i);
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

int main(void)
{
	struct fake_faults f = { .seed = 4, .late_us = 3000, .twice = 30, .lost = 20 };
	struct traffic *t;
	struct end e[2];
	unsigned int i;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ .events = true });
	t = traffic_start(e, &(struct traffic_how){ .seed = 10 });
	for (i = 0; i < TIMES(20); i++)
		at_once(t, i);
	for (i = 0; i < TIMES(20); i++)
		no_pause(t, i);
	for (i = 0; i < 4; i++)
		one_by_one(t, i);
	verbs_wait(t, e);
	for (i = 0; i < TIMES(40); i++)
		one_stays(t, i);
	for (i = 0; i < TIMES(40); i++)
		one_has_stayed(t, i);
	/* The answer to the ABORT comes after what is said of the other's own move. */
	fake_faults_set(&(struct fake_faults){ .seed = 4, .slow = REPATH_MSG_ABORTED,
					       .slow_us = 5000 });
	for (i = 0; i < TIMES(40); i++)
		one_has_stayed(t, i);
	fake_faults_set(&f);
	for (i = 0; i < TIMES(20); i++)
		at_once(t, i);
	for (i = 0; i < TIMES(20); i++)
		no_pause(t, i);
	/* Who leaves has been heard: the module waits for the answers to its last words. */
	f.lost = 0;
	fake_faults_set(&f);
	for (i = 0; i < 4; i++)
		one_by_one(t, i);
	/* Who is back is told at once, though it is still looked for where it was. */
	f.away_us = 30000000;
	fake_faults_set(&f);
	for (i = 0; i < 4; i++)
		one_by_one(t, i);
	CHECK_EQ(fake_settled(), 0);
	traffic_stop(t);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
	return 0;
}
