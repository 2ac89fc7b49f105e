// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages of which the peer's module does not take each record: what is missing is said again. */
#include <string.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define LINKS 7

static void flow(struct end link[2], int i)
{
	CHECK_EQ(post_recv(&link[1], 100 + i, 0, 8), 0);
	CHECK_EQ(post(&link[0], &link[1], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&link[0], i, IBV_WC_SUCCESS);
	expect(&link[1], 100 + i, IBV_WC_SUCCESS);
}

int main(void)
{
	struct pair_how how = { 0 };
	struct end link[LINKS][2];
	const char *why = "";
	unsigned int round;
	int i, ret;

	alarm(HANGS);
	pair_open(link[0], &how);
	for (i = 1; i < LINKS; i++) {
		int k;

		for (k = 0; k < 2; k++) {
			link[i][k] = link[0][k];
			link[i][k].qp = end_create_qp(&link[i][k], &how);
		}
		pair_connect(link[i]);
	}
	for (round = 0; round < TIMES(20); round++) {
		const char *dev = round % 2 ? "mock1" : "mock0";

		fake_faults_set(&(struct fake_faults){
			.seed = round + 1, .late_us = 500, .spoilt = round % 3 ? 50 : 100,
			.unasked = 50 });
		move_away(dev);
		move_back(dev);
		for (i = 0; i < LINKS; i++)
			flow(link[i], i);
	}
	/* A peer that has not been asked about one of them has not answered. */
	fake_faults_set(&(struct fake_faults){ .seed = 1, .unasked = 100 });
	ret = fake_check("mock0", &why);
	CHECK(ret == EOPNOTSUPP && strstr(why, "its peer"), "%d, %s", ret, why);
	CHECK_EQ(fake_abort(), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	for (i = 1; i < LINKS; i++) {
		CHECK_EQ(ibv_destroy_qp(link[i][0].qp), 0);
		CHECK_EQ(ibv_destroy_qp(link[i][1].qp), 0);
	}
	pair_close(link[0]);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
