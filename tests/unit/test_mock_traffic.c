// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Traffic over the mock alone: the tests of moves ask no more of it than it can do. */
#include "check.h"
#include "mock.h"
#include "traffic.h"

static void go(const struct pair_how *how, const struct traffic_how *traffic)
{
	struct end e[2];
	struct traffic *t;

	pair_open(e, how);
	t = traffic_start(e, traffic);
	traffic_flows(t, 500);
	traffic_stop(t);
	pair_close(e);
}

int main(void)
{
	alarm(HANGS);
	go(&(struct pair_how){ 0 }, &(struct traffic_how){ .seed = 1 });
	go(&(struct pair_how){ .events = true }, &(struct traffic_how){ .seed = 2 });
	go(&(struct pair_how){ .ex_cq = true, .ex_qp = true }, &(struct traffic_how){ .rarely = true });
	mock_delay_us(100);
	go(&(struct pair_how){ 0 }, &(struct traffic_how){ .sends_only = true });
	CHECK_EQ(mock_cq_overruns(), 0);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_strays(), 0);
	return 0;
}
