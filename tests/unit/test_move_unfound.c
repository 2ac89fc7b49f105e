// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Both ends are moved at once, and neither is looked for where it has gone. An administrator says where one of them is:
 * what the other end has to tell it goes there then, though the module still looks for it at the old place.
 */
#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define FOR_EVER_US	600000000u	/* nobody waits here for so long */

static void plug_and_resume(unsigned int op, const char *dev)
{
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = dev }), 0);
	fake_use_op(op);
	CHECK_EQ(fake_resume_start(dev), 0);
	CHECK_EQ(fake_wait(REPATH_STAGE_RECREATE), 0);
}

static void flows(struct end *from, struct end *to)
{
	CHECK_EQ(post_recv(to, 7, 0, 64), 0);
	CHECK_EQ(post(from, to, IBV_WR_SEND, 8, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(to, 7, IBV_WC_SUCCESS);
	expect(from, 8, IBV_WC_SUCCESS);
}

/* @told: whose module is told where the other one is */
static void is_found(unsigned int told)
{
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	/* The fake module says once of each connection that it is there, which makes both tell their keys. */
	for (i = 0; i < 2; i++) {
		fake_use_op(i);
		move_away(i ? "mock1" : "mock0");
		move_back(i ? "mock1" : "mock0");
	}
	fake_faults_set(&(struct fake_faults){ .seed = 1, .away_us = FOR_EVER_US });
	fake_use_op(0);
	move_away("mock0");
	fake_use_op(1);
	move_away("mock1");
	/* Each says where it is to where the other one was. */
	fake_hide(true);
	plug_and_resume(0, "mock0");
	plug_and_resume(1, "mock1");
	expect_none(&e[0], 200);
	fake_hide(false);
	fake_look_elsewhere(e[told].qp->qp_num);
	for (i = 0; i < 2; i++) {
		fake_use_op(i);
		CHECK_EQ(fake_wait(REPATH_STAGE_REPLAY), 0);
	}
	CHECK_EQ(fake_settled(), 0);
	flows(&e[0], &e[1]);
	flows(&e[1], &e[0]);
	fake_use_op(0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	is_found(0);
	is_found(1);
	return 0;
}
