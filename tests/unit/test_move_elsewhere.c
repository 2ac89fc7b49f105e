// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process is resumed on a device from which its peers can not be told: the wrong one, or one that
 * goes again. It is resumed on another then; also where a peer has heard of the first one.
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

int main(void)
{
	struct traffic *t;
	struct end e[2];

	alarm(110);
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
