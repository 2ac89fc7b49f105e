// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A resume that fails leaves the process parked; the next one, on this or another device, works. */
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static const char *const verbs[] = {
	"ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr", "ibv_create_comp_channel", "ibv_create_cq",
	"ibv_create_qp",
};

int main(void)
{
	const char *why, *dev = "mock0";
	struct traffic *t;
	struct end e[2];
	unsigned int i;
	int ret;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ .events = true });
	t = traffic_start(e, &(struct traffic_how){ .seed = 1 });
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		const char *next = i % 2 ? "mock0" : "mock7";

		traffic_flows(t, 50);
		move_away(dev);
		CHECK_EQ(mock_plug(&(struct mock_plug){ .name = dev }), 0);
		mock_fail(verbs[i], ENOSPC, 0, 1);
		why = "";
		ret = fake_resume(dev, &why);
		CHECK(ret == ENOSPC, "%s: %d, %s", verbs[i], ret, why);
		CHECK(why[0]);
		/* Nothing is left on it, so that another may be tried. */
		CHECK_EQ(mock_unplug(dev), 0);
		move_back(next);
		traffic_flows(t, 50);
		dev = next;
	}
	/* The device is there, but not what it needs: it is waited for, and then refused. */
	move_away(dev);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = dev, .down = true }), 0);
	ret = fake_resume(dev, &why);
	CHECK_EQ(ret, ENETDOWN);
	mock_port_up(dev);
	ret = fake_resume(dev, &why);
	CHECK(!ret, "%d, %s", ret, why);
	traffic_flows(t, 50);
	/* The way to the other end is not found at once: by the one, by the other, by both. */
	for (i = 0; i < 6; i++) {
		move_away(dev);
		mock_fail("ibv_modify_qp_rtr", ETIMEDOUT, i % 2, 1 + i / 2);
		move_back(dev);
		traffic_flows(t, 50);
	}
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
