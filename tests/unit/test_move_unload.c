// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module is unloaded while queue pairs are held: none is held for ever, at neither end. */
#include "../../include/repath_peer.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

/* @late: the message that is still on its way when the module goes */
static void go(int late, bool survives)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 14 };
	const char *why = NULL;
	struct end e[2];
	int i, ret;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 2; i++)
		CHECK_EQ(post_recv(&e[i], 10, 0, 8), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1, .slow = late, .slow_us = 1000000 });
	ret = fake_check("mock0", &why);
	CHECK(!ret, "check: %d, %s", ret, why);
	fake_suspend_start("mock0");
	usleep(200000);
	for (i = 0; i < 2; i++)
		CHECK_EQ(post(&e[i], &e[!i], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 0, 8), 0);
	for (i = 0; i < 2; i++)
		expect_none(&e[i], 10);
	fake_unload();
	for (i = 0; i < 2; i++) {
		struct ibv_wc wc = poll_one(&e[i]);

		CHECK_EQ(wc.status == IBV_WC_SUCCESS, survives);
		wc = poll_one(&e[i]);
		CHECK_EQ(wc.status == IBV_WC_SUCCESS, survives);
		expect_none(&e[i], 10);
	}
	/* The control verbs, too, return. */
	for (i = 0; i < 2; i++)
		CHECK_EQ(ibv_modify_qp(e[i].qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	usleep(1500000);	/* what was late is for nobody */
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	CHECK_EQ(fake_settled(), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(60);
	go(REPATH_MSG_DRAINED, true);
	go(REPATH_MSG_READY, false);
	return 0;
}
