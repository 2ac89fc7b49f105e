// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* By force a process is moved although some of its peers can not be moved with: those it loses. */
#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"
#include "traffic.h"

static void refused(const char *because)
{
	const char *why = "";

	CHECK_EQ(fake_check("mock0", &why), EOPNOTSUPP);
	CHECK(strstr(why, because), "says: %s", why);
	CHECK_EQ(fake_abort(), 0);
}

static void forced(void)
{
	const char *why = "";
	int ret = fake_check_force("mock0", &why);

	CHECK(!ret, "check: %d, %s", ret, why);
}

static void works(struct end e[2], uint64_t id)
{
	int i;

	for (i = 0; i < 2; i++) {
		CHECK_EQ(post_recv(&e[!i], id, 0, 8), 0);
		CHECK_EQ(post(&e[i], &e[!i], IBV_WR_SEND, id + 1, IBV_SEND_SIGNALED, 0, 8), 0);
		expect(&e[i], id + 1, IBV_WC_SUCCESS);
		expect(&e[!i], id, IBV_WC_SUCCESS);
	}
}

int main(void)
{
	struct end e[2], without[2];
	const char *why = "";
	struct traffic *t;
	int ret;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	pair_open(without, &(struct pair_how){ 0 });
	t = traffic_start(e, &(struct traffic_how){ .seed = 5 });
	works(without, 10);
	fake_unready(without[0].qp->qp_num, REPATH_CONN_NO_ANSWER);
	refused("does not answer");
	fake_unready(without[0].qp->qp_num, REPATH_CONN_NO_SHIM);
	refused("has no libibrepath.so");
	/* Its peer's host has no such queue pair: nobody is left who could be moved with. */
	fake_unready(without[0].qp->qp_num, REPATH_CONN_NO_PEER);
	ret = fake_check("mock0", &why);
	CHECK(!ret, "check: %d, %s", ret, why);
	CHECK_EQ(fake_abort(), 0);
	fake_unready(without[0].qp->qp_num, REPATH_CONN_NO_SHIM);

	/* Nothing is broken as long as there is a way back. */
	forced();
	CHECK_EQ(fake_abort(), 0);
	works(without, 20);
	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_READY, .slow_us = 1000000 });
	forced();
	fake_suspend_start("mock0");
	usleep(100000);
	CHECK_EQ(fake_abort(), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	CHECK_EQ(fake_settled(), 0);
	works(without, 30);
	traffic_flows(t, 50);

	/* Then it fails as it would without the shim, and its neighbours do not. */
	CHECK_EQ(post_recv(&without[0], 42, 0, 8), 0);
	forced();
	CHECK_EQ(fake_suspend("mock0"), 0);
	CHECK_EQ(mock_unplug("mock0"), 0);
	CHECK_EQ(post(&without[0], &without[1], IBV_WR_SEND, 40, 0, 0, 8), 0);
	CHECK_EQ(post(&without[0], &without[1], IBV_WR_SEND, 41, 0, 0, 8), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
	ret = fake_resume("mock0", &why);
	CHECK(!ret, "resume: %d, %s", ret, why);
	expect(&without[0], 40, IBV_WC_RETRY_EXC_ERR);
	expect(&without[0], 41, IBV_WC_WR_FLUSH_ERR);
	expect(&without[0], 42, IBV_WC_WR_FLUSH_ERR);
	expect_none(&without[0], 10);
	CHECK_EQ(fake_settled(), 0);
	traffic_flows(t, 50);

	/* What has been given up needs no force. */
	move_away("mock0");
	move_back("mock0");
	traffic_flows(t, 50);
	traffic_stop(t);
	pair_close(e);
	pair_close(without);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
