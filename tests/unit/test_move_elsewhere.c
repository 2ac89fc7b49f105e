// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process is resumed on a device from which its peers can not be told: the wrong one, or one that
 * goes again. It is resumed on another then; also where peers have heard of the first one, and some of
 * them go on there already, while others are away themselves.
 */
#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static void elsewhere(struct traffic *t, const char *from, const char *wrong, const char *right,
		      int slow)
{
	const char *why = "";
	int ret;

	move_away(from);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = wrong }), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = right }), 0);
	/* What is slow is lost with the device. */
	fake_faults_set(&(struct fake_faults){ .seed = 1, .slow = slow, .slow_us = 300000 });
	fake_resume_start(wrong);
	CHECK_EQ(fake_wait(REPATH_STAGE_RECREATE), 0);
	/* The administrator asks for the same again: it goes on waiting. */
	fake_resume_start(wrong);
	usleep(50000);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	fake_tap_set(&(struct fake_tap){ .forget = true });
	ret = fake_resume(right, &why);
	CHECK(!ret, "resume on %s: %d, %s", right, ret, why);
	CHECK_EQ(mock_unplug(wrong), 0);
	CHECK_EQ(fake_settled(), 0);
	traffic_flows(t, 50);
	usleep(300000);
	traffic_flows(t, 50);
}

/* What waits for a receive crosses both moves; one that is given up in between changes nothing. */
static void flow(struct end e[2], int id)
{
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, id, IBV_SEND_SIGNALED, 0, 8), 0);
	CHECK_EQ(post_recv(&e[1], 100 + id, 0, 8), 0);
	expect(&e[0], id, IBV_WC_SUCCESS);
	expect(&e[1], 100 + id, IBV_WC_SUCCESS);
}

static void before_all_have_answered(bool aborted)
{
	struct end here[2], away[2];
	const char *why = "";
	int ret;

	pair_open(here, &(struct pair_how){ 0 });
	pair_open(away, &(struct pair_how){ .dev = { "mock0", "mock2" } });
	fake_use_op(1);
	move_away("mock2");
	fake_use_op(0);
	move_away("mock0");
	CHECK_EQ(post(&away[0], &away[1], IBV_WR_SEND, 1, IBV_SEND_SIGNALED, 0, 8), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock6" }), 0);
	fake_resume_start("mock6");
	CHECK_EQ(fake_wait(REPATH_STAGE_RECREATE), 0);
	flow(here, 2);		/* this one has answered */

	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock7" }), 0);
	fake_resume_start("mock7");
	if (aborted)
		fake_abort_start();
	else
		CHECK_EQ(fake_wait(REPATH_STAGE_RECREATE), 0);
	flow(here, 3);
	if (!aborted)
		CHECK_EQ(mock_unplug("mock6"), 0);
	expect_none(&away[0], 10);

	fake_use_op(1);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock2" }), 0);
	ret = fake_resume("mock2", &why);
	CHECK(!ret, "%d, %s", ret, why);
	fake_use_op(0);
	CHECK_EQ(fake_wait(aborted ? REPATH_STAGE_ABORT : REPATH_STAGE_REPLAY), 0);
	CHECK_EQ(post_recv(&away[1], 101, 0, 8), 0);
	expect(&away[0], 1, IBV_WC_SUCCESS);
	expect(&away[1], 101, IBV_WC_SUCCESS);
	flow(away, 4);
	flow(here, 5);
	pair_close(here);
	pair_close(away);
	CHECK_EQ(mock_live_total(), 0);
	if (aborted)
		CHECK_EQ(mock_unplug("mock6"), 0);
	CHECK_EQ(mock_unplug("mock7"), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
}

int main(void)
{
	struct traffic *t;
	struct end e[2];

	alarm(HANGS);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock2" }), 0);
	before_all_have_answered(false);
	before_all_have_answered(true);
	pair_open(e, &(struct pair_how){ .events = true });
	t = traffic_start(e, &(struct traffic_how){ .seed = 21 });
	traffic_flows(t, 50);
	/* The peer has heard of the wrong device, and its answer is on the way. */
	elsewhere(t, "mock0", "mock6", "mock7", REPATH_MSG_INFO);
	elsewhere(t, "mock7", "mock6", "mock0", REPATH_MSG_INFO);
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
	return 0;
}
