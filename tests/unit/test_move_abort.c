// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A move that is given up at a random moment: everything continues on the old device. */
#include "../../include/repath_peer.h"
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static void give_up_after(struct traffic *t, unsigned int us, unsigned int i)
{
	const char *dev = i % 2 ? "mock1" : "mock0", *why = NULL;
	int ret;

	ret = fake_check(dev, &why);
	CHECK(!ret, "round %u: check: %d, %s", i, ret, why);
	fake_suspend_start(dev);
	usleep(us);
	ret = fake_abort();
	CHECK(!ret, "round %u, after %u us: abort: %d", i, us, ret);
	CHECK_EQ(fake_settled(), 0);
	traffic_flows(t, 5);
}

/*
 * READY does not arrive before the move is given up: it is not said again, of a move that has ended, since
 * the module would take it for another one.
 */
static void ready_unheard(struct traffic *t)
{
	unsigned int said, later, delivered;
	const char *why = NULL;

	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	fake_tap_set(&(struct fake_tap){ .type = REPATH_MSG_READY, .fault = FAKE_LOST, .always = true });
	CHECK_EQ(fake_check("mock0", &why), 0);
	fake_suspend_start("mock0");
	do {
		usleep(1000);
		fake_tap_get(&said, &delivered);
	} while (said < 2);		/* both ends */
	CHECK_EQ(fake_abort(), 0);
	CHECK_EQ(fake_settled(), 0);
	fake_tap_get(&said, &delivered);
	traffic_flows(t, 5);
	usleep(300000);			/* some times as long as it takes to say it again */
	fake_tap_get(&later, &delivered);
	CHECK_EQ(later, said);
	fake_tap_set(&(struct fake_tap){ .forget = true });
}

int main(void)
{
	struct fake_faults f = { .seed = 3, .late_us = 2000, .twice = 20, .lost = 10 };
	unsigned int seed = 5, i;
	struct traffic *t;
	struct end e[2];

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ .events = true });
	t = traffic_start(e, &(struct traffic_how){ .seed = 9 });
	for (i = 0; i < 60; i++)
		give_up_after(t, rand_r(&seed) % 12000, i);
	fake_faults_set(&f);
	for (i = 0; i < 60; i++)
		give_up_after(t, rand_r(&seed) % 30000, i);
	ready_unheard(t);
	/* And a move still works. */
	move_away("mock0");
	move_back("mock0");
	traffic_flows(t, 100);
	traffic_stop(t);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
