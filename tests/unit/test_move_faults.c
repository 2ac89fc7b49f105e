// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two hundred moves under traffic, of either end in turn, while messages come late, twice, in
 * another order and not at all.
 */
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

int main(void)
{
	struct fake_faults f = { .seed = 1, .late_us = 3000, .twice = 30, .lost = 20 };
	unsigned int i;
	struct traffic *t;
	struct end e[2];

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	t = traffic_start(e, &(struct traffic_how){ .seed = 7 });
	fake_faults_set(&f);
	for (i = 0; i < TIMES(200); i++) {
		const char *dev = i % 3 == 2 ? "mock1" : "mock0";

		move_away(dev);
		move_back(dev);
		traffic_flows(t, 5);
	}
	traffic_stop(t);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
	return 0;
}
