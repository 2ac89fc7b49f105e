// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The peer dies while the device is away: the queue pair fails as it would have without a move. */
#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

/*
 * @dies: the module says that the peer is gone; its end, which is this process's too, stays as
 * it was.
 * Else the peer destroys its queue pair itself.
 */
static void go(bool dies, bool before)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	const char *why = "";
	struct end e[2];
	int i, ret;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 3; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, 0, 0, 8), 0);
	CHECK_EQ(post_recv(&e[0], 100, 0, 8), 0);
	CHECK_EQ(post_recv(&e[0], 101, 0, 8), 0);
	move_away("mock0");
	if (before)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 3, 0, 0, 8), 0);
	if (dies) {
		fake_gone("mock0");
	} else {
		CHECK_EQ(ibv_destroy_qp(e[1].qp), 0);
		e[1].qp = NULL;
	}
	usleep(20000);
	if (!before)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 3, 0, 0, 8), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
	ret = fake_resume("mock0", &why);
	CHECK(!ret, "%d, %s", ret, why);
	expect(&e[0], 0, IBV_WC_RETRY_EXC_ERR);
	for (i = 1; i < 4; i++)
		expect(&e[0], i, IBV_WC_WR_FLUSH_ERR);
	expect(&e[0], 100, IBV_WC_WR_FLUSH_ERR);
	expect(&e[0], 101, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 4, 0, 0, 8), 0);
	expect(&e[0], 4, IBV_WC_WR_FLUSH_ERR);
	expect_none(&e[0], 10);
	CHECK_EQ(ibv_query_qp(e[0].qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Its owner ends it while the peer is away, and does not wait: all is flushed, and the peer finds nobody. */
static void ended(enum ibv_qp_state state, bool at_work)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct end e[2];

	pair_open(e, &(struct pair_how){ 0 });
	if (!at_work) {
		CHECK_EQ(post_recv(&e[1], 100, 0, 8), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 0, IBV_SEND_SIGNALED, 0, 8), 0);
		expect(&e[0], 0, IBV_WC_SUCCESS);
		expect(&e[1], 100, IBV_WC_SUCCESS);
	}
	CHECK_EQ(post_recv(&e[1], 101, 0, 8), 0);
	move_away("mock0");
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 1, 0, 0, 8), 0);
	qp_to(e[1].qp, state);
	if (state == IBV_QPS_ERR) {
		expect(&e[1], 1, IBV_WC_WR_FLUSH_ERR);
		expect(&e[1], 101, IBV_WC_WR_FLUSH_ERR);
	}
	expect_none(&e[1], 10);
	CHECK_EQ(ibv_query_qp(e[1].qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, state);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, 0, 0, 8), 0);
	move_back("mock0");
	expect(&e[0], 2, IBV_WC_RETRY_EXC_ERR);
	expect_none(&e[0], 10);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* mock0 is being suspended; its peer hears late that it is ready. */
static void suspend_slowly(void)
{
	const char *why = "";
	int ret;

	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_READY, .slow_us = 2000000 });
	ret = fake_check("mock0", &why);
	CHECK(!ret, "check: %d, %s", ret, why);
	fake_suspend_start("mock0");
}

/* What is left of the pair when mock0 has been suspended after all goes to another device, and ends. */
static void come_back(struct end e[2])
{
	const char *why = "";
	int ret;

	CHECK_EQ(fake_wait(REPATH_STAGE_RELEASE), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	CHECK_EQ(mock_unplug("mock0"), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
	ret = fake_resume("mock0", &why);
	CHECK(!ret, "%d, %s", ret, why);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* The mover dies when its peer has taken back, unseen, what waited for receives. */
static void stuck(void)
{
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 3; i++)
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, i, 0, 0, 8), 0);
	CHECK_EQ(post_recv(&e[1], 100, 0, 8), 0);
	suspend_slowly();
	usleep(1000000);	/* longer than it takes to be stuck */
	fake_gone("mock1");
	fake_gone("mock0");
	expect(&e[1], 0, IBV_WC_RETRY_EXC_ERR);
	expect(&e[1], 1, IBV_WC_WR_FLUSH_ERR);
	expect(&e[1], 2, IBV_WC_WR_FLUSH_ERR);
	expect(&e[1], 100, IBV_WC_WR_FLUSH_ERR);
	expect_none(&e[1], 10);
	come_back(e);
}

/* The mover dies when its peer has drained, and nothing waits: the first request that is posted then tells. */
static void drained(void)
{
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(post_recv(&e[0], 100, 0, 8), 0);
	CHECK_EQ(post_recv(&e[1], 101, 0, 8), 0);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 0, 0, 0, 8), 0);
	expect(&e[0], 100, IBV_WC_SUCCESS);
	suspend_slowly();
	usleep(300000);		/* longer than it takes to drain */
	fake_gone("mock1");
	fake_gone("mock0");
	expect(&e[1], 101, IBV_WC_WR_FLUSH_ERR);
	for (i = 1; i < 4; i++)
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, i, i & 1 ? 0 : IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[1], 1, IBV_WC_RETRY_EXC_ERR);
	expect(&e[1], 2, IBV_WC_WR_FLUSH_ERR);
	expect(&e[1], 3, IBV_WC_WR_FLUSH_ERR);
	expect_none(&e[1], 10);
	come_back(e);
}

/* The peer dies before it has answered that the move is given up: nobody waits for it any more. */
static void given_up(void)
{
	const char *why = "";
	struct end e[2];
	int ret;

	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 0, 0, 0, 8), 0);	/* it waits for a receive */
	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_ABORTED, .slow_us = 5000000 });
	ret = fake_check("mock0", &why);
	CHECK(!ret, "check: %d, %s", ret, why);
	fake_suspend_start("mock0");
	CHECK_EQ(fake_wait(REPATH_STAGE_GATE), 0);
	fake_abort_start();
	fake_gone("mock0");
	CHECK_EQ(fake_wait(REPATH_STAGE_ABORT), 0);
	expect(&e[0], 0, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 1, 0, 0, 8), 0);
	expect(&e[0], 1, IBV_WC_WR_FLUSH_ERR);
	expect_none(&e[0], 10);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * One of two queue pairs of the peer is destroyed while the device is away: the module knows before this process reads of it, and
 * takes nothing about the connection any more. The other one goes on.
 */
static void one_of_two(void)
{
	const struct pair_how how = { 0 };
	struct end e[2], f[2];
	const char *why = "";
	int i, ret;

	pair_open(e, &how);
	for (i = 0; i < 2; i++) {
		f[i] = e[i];
		f[i].qp = end_create_qp(&f[i], &how);
	}
	pair_connect(f);
	move_away("mock0");
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_GONE, .slow_us = 300000 });
	CHECK_EQ(ibv_destroy_qp(f[1].qp), 0);
	CHECK_EQ(post(&f[0], &e[1], IBV_WR_SEND, 7, 0, 0, 8), 0);
	usleep(20000);
	ret = fake_resume("mock0", &why);
	CHECK(!ret, "%d, %s", ret, why);
	expect(&f[0], 7, IBV_WC_RETRY_EXC_ERR);
	send_one(e);
	CHECK_EQ(ibv_destroy_qp(f[0].qp), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	ended(IBV_QPS_ERR, true);
	ended(IBV_QPS_ERR, false);
	ended(IBV_QPS_RESET, true);
	ended(IBV_QPS_RESET, false);
	one_of_two();
	given_up();
	stuck();
	drained();
	go(true, true);
	go(true, false);
	go(false, true);
	go(false, false);
	return 0;
}
