// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A queue pair is connected anew by another path, because the module asks for it: nothing is lost, doubled
 * or out of order, the number and the state stay, and only what was asked for goes the new way.
 */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"
#include "traffic.h"

#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"

#define AS_BEFORE { .dlid = 1, .sl = -1 }

static struct end e[2];

static struct fake_path lane(int sl)
{
	return (struct fake_path){ .dlid = 1, .sl = sl };
}

static int cycle(struct end *end, int sl)
{
	const struct fake_path path = lane(sl);

	return fake_cycle(end->qp->qp_num, &path);
}

/* A message from @from to @to goes by this service level. */
static void goes_by(struct end *from, struct end *to, int sl)
{
	CHECK_EQ(post_recv(to, 7, 0, 64), 0);
	CHECK_EQ(post(from, to, IBV_WR_SEND, 8, IBV_SEND_SIGNALED, 4096, 16), 0);
	CHECK_EQ(expect(to, 7, IBV_WC_SUCCESS).sl, sl);
	expect(from, 8, IBV_WC_SUCCESS);
}

static void idle(enum ibv_qp_type type, bool srq)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr before, after;
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU;
	uint32_t number;

	pair_open(e, &(struct pair_how){ .type = type, .srq = srq });
	number = e[0].qp->qp_num;
	CHECK_EQ(ibv_query_qp(e[0].qp, &before, mask, &init), 0);
	goes_by(&e[0], &e[1], 0);
	CHECK_EQ(cycle(&e[0], 3), 0);
	goes_by(&e[0], &e[1], 3);
	goes_by(&e[1], &e[0], 0);
	/* The one who is the peer this time keeps what it was given. */
	CHECK_EQ(cycle(&e[1], 5), 0);
	goes_by(&e[0], &e[1], 3);
	goes_by(&e[1], &e[0], 5);
	CHECK_EQ(ibv_query_qp(e[0].qp, &after, mask, &init), 0);
	CHECK_EQ(after.qp_state, before.qp_state);
	CHECK_EQ(after.dest_qp_num, before.dest_qp_num);
	CHECK_EQ(after.path_mtu, before.path_mtu);
	CHECK_EQ(e[0].qp->qp_num, number);
	/* And on a move of the whole device. */
	CHECK_EQ(fake_settled(), 0);
	move_away("mock0");
	move_back("mock0");
	goes_by(&e[1], &e[0], 5);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void carry(enum ibv_mtu mtu)
{
	int i;

	for (i = 0; i < 2; i++)
		CHECK_EQ(mock_path_mtu(e[i].qp->qp_num), mtu);
}

static void smaller_packets(void)
{
	const struct fake_path path = { .dlid = 1, .sl = 2, .mtu = IBV_MTU_512 };
	const struct fake_path larger = { .dlid = 1, .sl = 2, .mtu = IBV_MTU_2048 };

	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(mock_path_mtu(e[0].qp->qp_num), IBV_MTU_1024);
	CHECK_EQ(fake_cycle(e[0].qp->qp_num, &path), 0);
	carry(IBV_MTU_512);
	goes_by(&e[0], &e[1], 2);
	/* The path is what it was, whatever the other end does. */
	CHECK_EQ(cycle(&e[1], 5), 0);
	carry(IBV_MTU_512);
	CHECK_EQ(fake_cycle(e[0].qp->qp_num, &larger), 0);
	carry(IBV_MTU_1024);
	CHECK_EQ(fake_cycle(e[1].qp->qp_num, &path), 0);
	move_away("mock1");
	move_back("mock1");
	CHECK_EQ(mock_path_mtu(e[0].qp->qp_num), IBV_MTU_512);
	goes_by(&e[0], &e[1], 2);
	pair_close(e);
}

/* Requests that wait for a receive, and requests that were acknowledged too late. */
static void stuck(void)
{
	unsigned int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 4; i++)
		CHECK_EQ(post_recv(&e[1], i, 64 * i, 64), 0);
	for (i = 0; i < 8; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, IBV_SEND_SIGNALED, 4096, 16), 0);
	CHECK_EQ(cycle(&e[0], 4), 0);
	for (i = 4; i < 8; i++)
		CHECK_EQ(post_recv(&e[1], i, 64 * i, 64), 0);
	for (i = 0; i < 8; i++) {
		CHECK_EQ(expect(&e[1], i, IBV_WC_SUCCESS).sl, i < 4 ? 0 : 4);
		expect(&e[0], i, IBV_WC_SUCCESS);
	}
	expect_none(&e[0], 5);
	expect_none(&e[1], 5);
	pair_close(e);
}

static void refused(void)
{
	const struct fake_path path = AS_BEFORE;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(fake_cycle(12345, &path), ENOTCONN);
	pair_open(e, &(struct pair_how){ 0 });
	fake_unready(e[0].qp->qp_num, REPATH_CONN_NO_SHIM);
	CHECK_EQ(cycle(&e[0], 1), EOPNOTSUPP);
	fake_unready(0, 0);
	goes_by(&e[0], &e[1], 0);
	pair_close(e);

	/* In error, which its owner is told by its completions. */
	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(cycle(&e[0], 1), 0);
	qp_to(e[0].qp, IBV_QPS_ERR);
	CHECK_EQ(cycle(&e[0], 2), ENOTCONN);
	CHECK_EQ(ibv_query_qp(e[0].qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
	pair_close(e);

	/* Drained by its owner. */
	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(cycle(&e[0], 1), 0);
	qp_to(e[0].qp, IBV_QPS_SQD);
	CHECK_EQ(cycle(&e[0], 2), ENOTCONN);
	qp_to(e[0].qp, IBV_QPS_RTS);
	goes_by(&e[0], &e[1], 1);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void both_at_once(struct end end[2], int sl)
{
	const struct fake_path path[2] = { lane(sl), lane(sl + 1) };
	int i;

	for (i = 0; i < 2; i++)
		fake_cycle_start(end[i].qp->qp_num, &path[i]);
	for (i = 0; i < 2; i++)
		CHECK_EQ(fake_cycle_wait(end[i].qp->qp_num), 0);
}

/* @faults: of the messages between the two */
static void under_traffic(const struct pair_how *how, const struct fake_faults *faults)
{
	struct traffic *t;
	int i, sl = 0;

	fake_faults_set(faults);
	pair_open(e, how);
	t = traffic_start(e, &(struct traffic_how){ .seed = 5 });
	for (i = 0; i < TIMES(16); i++) {
		traffic_flows(t, 20);
		sl = 2 * (i % 5);
		if (i % 3 == 0)
			traffic_hold_receives(t, i % 2, true);
		if (i % 2)
			both_at_once(e, sl);
		else
			CHECK_EQ(cycle(&e[i / 2 % 2], sl), 0);
		traffic_hold_receives(t, i % 2, false);
	}
	both_at_once(e, 6);
	traffic_stop(t);
	CHECK_EQ(fake_settled(), 0);
	CHECK_EQ(mock_path_sl(e[0].qp->qp_num), 6);
	CHECK_EQ(mock_path_sl(e[1].qp->qp_num), 7);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
}

/* The peer is moved in place by its module, after it was asked and before it stops. */
static void peer_is_moved(void)
{
	const struct fake_path path = lane(3);

	pair_open(e, &(struct pair_how){ 0 });
	mock_delay_us(300000);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 8), 0);
	fake_cycle_start(e[0].qp->qp_num, &path);
	usleep(100000);
	mock_set_path(e[1].qp->qp_num, 1, 5, 0);
	mock_delay_us(0);
	CHECK_EQ(fake_cycle_wait(e[0].qp->qp_num), 0);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	CHECK_EQ(mock_path_sl(e[0].qp->qp_num), 3);
	CHECK_EQ(mock_path_sl(e[1].qp->qp_num), 5);
	pair_close(e);
}

static void has_path(const struct end *end, uint16_t dlid, uint8_t sl, uint8_t rate)
{
	uint16_t dlid_is;
	uint8_t sl_is, rate_is;

	mock_path(end->qp->qp_num, &dlid_is, &sl_is, &rate_is);
	CHECK_EQ(dlid_is, dlid);
	CHECK_EQ(sl_is, sl);
	CHECK_EQ(rate_is, rate);
}

/* The end that is not told keeps all of the path that it had, unless that leads elsewhere. */
static void peer_keeps_its_path(void)
{
	const struct fake_path path = { .dlid = 21, .sl = 3, .rate = IBV_RATE_20_GBPS };

	fake_peer_lid(20);
	mock_lmc(2);
	pair_open(e, &(struct pair_how){ .rate = IBV_RATE_5_GBPS });
	mock_set_path(e[1].qp->qp_num, 22, 5, IBV_RATE_10_GBPS);
	CHECK_EQ(fake_cycle(e[0].qp->qp_num, &path), 0);
	has_path(&e[0], 21, 3, IBV_RATE_20_GBPS);
	has_path(&e[1], 22, 5, IBV_RATE_10_GBPS);
	fake_peer_lid(40);
	move_away("mock0");
	move_back("mock0");
	has_path(&e[1], 40, 5, IBV_RATE_10_GBPS);
	pair_close(e);
	mock_lmc(0);
	fake_peer_lid(0);
}

/* Both ends have been connected last by these, and send by them. */
static void goes_by_classes(int tclass, int sl, int peers_tclass, int peers_sl)
{
	CHECK_EQ(mock_last_grh("mock0").traffic_class, tclass);
	CHECK_EQ(mock_last_grh("mock1").traffic_class, peers_tclass);
	goes_by(&e[0], &e[1], sl);
	goes_by(&e[1], &e[0], peers_sl);
}

/* RoCE: another class of traffic to the same GID, which holds on at each end, whatever moves; and the last word counts. */
static void roce(void)
{
	const struct fake_path path = { .sl = 3, .tclass = 96 }, other = { .sl = 5, .tclass = 32 };
	const struct fake_path only_lane = { .sl = 6 };
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(fake_cycle(e[0].qp->qp_num, &path), 0);
	goes_by_classes(96, 3, 0, 0);
	/* Not every driver tells of RoCE where it goes. */
	mock_fail("ibv_query_qp", EOPNOTSUPP, 0, 100);
	CHECK_EQ(fake_cycle(e[1].qp->qp_num, &other), 0);
	mock_fail("ibv_query_qp", 0, 0, 0);
	goes_by_classes(96, 3, 32, 5);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(fake_settled(), 0);
		move_away(i ? "mock1" : "mock0");
		move_back(i ? "mock1" : "mock0");
		goes_by_classes(96, 3, 32, 5);
	}
	CHECK_EQ(fake_cycle(e[0].qp->qp_num, &only_lane), 0);
	goes_by_classes(96, 6, 32, 5);
	pair_close(e);
}

/* ... also if it is asked for something else in the meantime. */
static void asked_meanwhile(void)
{
	const struct fake_path path = lane(3);
	const char *why;

	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_INFO, .slow_us = 500000,
	});
	pair_open(e, &(struct pair_how){ 0 });
	mock_set_path(e[1].qp->qp_num, 1, 5, 0);
	fake_cycle_start(e[0].qp->qp_num, &path);
	usleep(150000);
	fake_check("mock0", &why);
	CHECK_EQ(fake_cycle_wait(e[0].qp->qp_num), 0);
	CHECK_EQ(fake_settled(), 0);
	has_path(&e[0], 1, 3, 0);
	has_path(&e[1], 1, 5, 0);
	CHECK_EQ(fake_abort(), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	goes_by(&e[1], &e[0], 5);
	pair_close(e);
}

/* The peer has moved since the path was told, which leads to where it was. */
static void to_where_it_was(void)
{
	const struct fake_path now = { .dlid = 20, .sl = 4 };

	fake_peer_lid(20);
	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(cycle(&e[0], 3), EADDRNOTAVAIL);
	goes_by(&e[0], &e[1], 0);
	CHECK_EQ(fake_cycle(e[0].qp->qp_num, &now), 0);
	goes_by(&e[0], &e[1], 4);
	pair_close(e);
	fake_peer_lid(0);
}

/* The peer begins anew as soon as it is through, before this end has heard that. */
static void one_after_the_other(void)
{
	const struct fake_path path[2] = { lane(3), lane(5) };
	int i;

	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_INFO, .slow_us = 200000,
	});
	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 2; i++) {
		fake_cycle_start(e[i].qp->qp_num, &path[i]);
		usleep(300000);
	}
	for (i = 0; i < 2; i++)
		CHECK_EQ(fake_cycle_wait(e[i].qp->qp_num), 0);
	goes_by(&e[0], &e[1], 3);
	goes_by(&e[1], &e[0], 5);
	pair_close(e);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
}

/* Another path while it is on its way to one: it ends on the last. */
static void last_path_wins(void)
{
	struct fake_path path;
	struct traffic *t;
	int i, sl;

	pair_open(e, &(struct pair_how){ 0 });
	t = traffic_start(e, &(struct traffic_how){ .seed = 6 });
	for (i = 0; i < TIMES(12); i++) {
		traffic_flows(t, 10);
		for (sl = 1; sl < 8; sl++) {
			path = lane(sl);
			fake_cycle_start(e[0].qp->qp_num, &path);
			usleep(100 * i);
		}
		CHECK_EQ(fake_cycle_wait(e[0].qp->qp_num), 0);
	}
	traffic_stop(t);
	CHECK_EQ(fake_settled(), 0);
	CHECK_EQ(mock_path_sl(e[0].qp->qp_num), 7);
	pair_close(e);
}

/* The device is moved meanwhile, at any point: the move succeeds, and nothing is lost. */
static void with_a_move(void)
{
	const struct fake_path path = lane(3);
	struct traffic *t;
	int i, ret;

	pair_open(e, &(struct pair_how){ 0 });
	t = traffic_start(e, &(struct traffic_how){ .seed = 7 });
	for (i = 0; i < TIMES(20); i++) {
		const char *dev = i % 3 ? "mock0" : "mock1";

		traffic_flows(t, 10);
		fake_cycle_start(e[i % 2].qp->qp_num, &path);
		usleep(150 * i);
		move_away(dev);
		move_back(dev);
		ret = fake_cycle_wait(e[i % 2].qp->qp_num);
		CHECK(!ret || ret == EBUSY || ret == EAGAIN || ret == ENOTCONN, "%d", ret);
	}
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Its application destroys it, or the peer's does. */
static void destroyed(void)
{
	const struct fake_path path = lane(3);
	int i, end;

	for (i = 0; i < TIMES(24); i++) {
		end = i % 2;
		pair_open(e, &(struct pair_how){ 0 });
		CHECK_EQ(cycle(&e[0], 1), 0);
		mock_delay_us(2000);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 8), 0);
		fake_cycle_start(e[0].qp->qp_num, &path);
		usleep(200 * i);
		CHECK_EQ(ibv_destroy_qp(e[end].qp), 0);
		e[end].qp = NULL;
		mock_delay_us(0);
		CHECK_EQ(fake_settled(), 0);
		pair_close(e);
		CHECK_EQ(mock_live_total(), 0);
	}
}

int main(void)
{
	alarm(HANGS);
	idle(IBV_QPT_RC, false);
	idle(IBV_QPT_RC, true);
	idle(IBV_QPT_UC, false);
	smaller_packets();
	stuck();
	refused();
	under_traffic(&(struct pair_how){ 0 }, &(struct fake_faults){ .seed = 3 });
	under_traffic(&(struct pair_how){ .srq = true, .events = true },
		      &(struct fake_faults){ .seed = 4, .late_us = 5000, .twice = 20, .lost = 10 });
	last_path_wins();
	peer_is_moved();
	peer_keeps_its_path();
	roce();
	asked_meanwhile();
	to_where_it_was();
	one_after_the_other();
	with_a_move();
	destroyed();
	return 0;
}
