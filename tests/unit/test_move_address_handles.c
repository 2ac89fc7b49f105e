// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Paths change for UD: what is posted afterwards goes the new way by the handles that the application
 * has, what was posted before goes the old one, and nothing of the device's is left over.
 */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static struct end e[2];

static struct ibv_ah *address_of(struct end *from, struct end *to, uint16_t dlid, uint8_t sl)
{
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1, .dlid = dlid, .sl = sl };
	struct ibv_ah *ah;

	CHECK_EQ(ibv_query_gid(to->ctx, 1, 0, &aa.grh.dgid), 0);
	ah = ibv_create_ah(from->pd, &aa);
	CHECK(ah, "%s", strerror(errno));
	return ah;
}

static void send_by(struct ibv_ah *ah, uint64_t wr_id, int flags)
{
	CHECK_EQ(post_recv(&e[1], wr_id, 64 * (wr_id % 32), 64), 0);
	CHECK_EQ(post_datagram(&e[0], ah, e[1].qp->qp_num, IBV_WR_SEND, wr_id, flags), 0);
}

static void goes_by(struct ibv_ah *ah, int sl)
{
	send_by(ah, 1, IBV_SEND_SIGNALED);
	CHECK_EQ(expect(&e[1], 1, IBV_WC_SUCCESS).sl, sl);
	expect(&e[0], 1, IBV_WC_SUCCESS);
}

/* Those that were replaced are destroyed soon after nothing names them any more, and not before. */
static void are_left(unsigned int n)
{
	int i;

	for (i = 0; i < 2000 && mock_live(MOCK_AH) != n; i++)
		usleep(5000);
	CHECK_EQ(mock_live(MOCK_AH), n);
}

static void repath(uint32_t dlid, int sl)
{
	const struct fake_path path = { .dlid = dlid, .sl = sl };

	fake_repath("mock0", NULL, &path);
}

static void follows(void)
{
	const struct fake_path elsewhere = { .dlid = 9, .new_dlid = 10, .sl = 6 };
	struct ibv_ah *ah, *other;
	int i;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = address_of(&e[0], &e[1], 9, 1);
	other = address_of(&e[0], &e[1], 8, 1);
	goes_by(ah, 1);
	goes_by(other, 1);
	repath(9, 4);
	goes_by(ah, 4);
	goes_by(other, 1);
	are_left(2);
	/* Told again: nothing is made anew. */
	mock_fail("ibv_create_ah", ENOMEM, 0, 100);
	repath(9, 4);
	goes_by(ah, 4);
	/* It can not be made: it goes on as it did. */
	repath(9, 5);
	goes_by(ah, 4);
	mock_fail("ibv_create_ah", 0, 0, 0);
	/* To another LID of the same host, and from there. */
	fake_repath("mock0", NULL, &elsewhere);
	goes_by(ah, 6);
	repath(9, 2);
	goes_by(ah, 6);
	repath(10, 7);
	goes_by(ah, 7);
	are_left(2);
	for (i = 0; i < 40; i++) {
		repath(10, i % 8);
		goes_by(ah, i % 8);
	}
	are_left(2);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_destroy_ah(other), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* One of the GIDs that a LID has goes to another one. */
static void one_gid(void)
{
	struct fake_path moved = { .dlid = 9, .new_dlid = 10, .sl = 6 };
	struct ibv_ah_attr aa = { .port_num = 1, .dlid = 9, .sl = 1 };
	struct ibv_ah *ah, *nameless;
	union ibv_gid gid;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = address_of(&e[0], &e[1], 9, 1);
	nameless = ibv_create_ah(e[0].pd, &aa);
	CHECK(nameless, "%s", strerror(errno));
	/* Another one's, and then this one's, from wherever it was. */
	memset(&gid, 0x55, sizeof(gid));
	fake_repath("mock0", gid.raw, &moved);
	goes_by(ah, 1);
	CHECK_EQ(ibv_query_gid(e[1].ctx, 1, 0, &gid), 0);
	moved.dlid = 77;
	/* One handle is made, not two. */
	mock_fail("ibv_create_ah", ENOMEM, 1, 100);
	fake_repath("mock0", gid.raw, &moved);
	mock_fail("ibv_create_ah", 0, 0, 0);
	goes_by(ah, 6);
	are_left(2);
	repath(9, 3);
	goes_by(ah, 6);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_destroy_ah(nameless), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* RoCE: to the same GID by another class of traffic, also when the device is another one by now. */
static void roce(void)
{
	const struct fake_path path = { .sl = 5, .tclass = 96 };
	struct ibv_ah *ah;
	union ibv_gid gid;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = address_of(&e[0], &e[1], 0, 1);
	memset(&gid, 0x55, sizeof(gid));
	fake_repath("mock0", gid.raw, &path);
	goes_by(ah, 1);
	CHECK_EQ(mock_last_grh("mock0").traffic_class, 0);
	CHECK_EQ(ibv_query_gid(e[1].ctx, 1, 0, &gid), 0);
	fake_repath("mock0", gid.raw, &path);
	goes_by(ah, 5);
	CHECK_EQ(mock_last_grh("mock0").traffic_class, 96);
	/* Told again: nothing is made anew. */
	mock_fail("ibv_create_ah", ENOMEM, 0, 100);
	fake_repath("mock0", gid.raw, &path);
	mock_fail("ibv_create_ah", 0, 0, 0);
	are_left(1);
	move_away("mock0");
	move_back("mock0");
	goes_by(ah, 5);
	CHECK_EQ(mock_last_grh("mock0").traffic_class, 96);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* The mock takes it ill when a handle goes that a request names. */
static void on_their_way(void)
{
	struct ibv_ah *ah;
	int i, k;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = address_of(&e[0], &e[1], 9, 0);
	for (k = 0; k < 3; k++) {
		mock_delay_us(20000);
		for (i = 0; i < 10; i++) {
			send_by(ah, i, i % 3 ? 0 : IBV_SEND_SIGNALED);
			repath(9, (i + 1) % 8);
		}
		CHECK(mock_live(MOCK_AH) > 1);
		for (i = 0; i < 10; i++)
			CHECK_EQ(expect(&e[1], i, IBV_WC_SUCCESS).sl, i % 8);
		for (i = 0; i < 10; i += 3)
			expect(&e[0], i, IBV_WC_SUCCESS);
		mock_delay_us(0);
		are_left(1);
		repath(9, 0);
	}
	/* Nobody asks whether the last ones were sent: they may be on their way for ever. */
	send_by(ah, 20, 0);
	expect(&e[1], 20, IBV_WC_SUCCESS);
	repath(9, 3);
	CHECK_EQ(mock_live(MOCK_AH), 2);
	goes_by(ah, 3);
	are_left(1);
	/* As long as the handle at most, and the queue pair. */
	send_by(ah, 20, 0);
	expect(&e[1], 20, IBV_WC_SUCCESS);
	repath(9, 4);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(mock_live(MOCK_AH), 0);
	ah = address_of(&e[0], &e[1], 9, 0);
	send_by(ah, 20, 0);
	expect(&e[1], 20, IBV_WC_SUCCESS);
	repath(9, 4);
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	e[0].qp = NULL;
	are_left(1);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Nothing is posted for a long time, and what was is never asked for: the paths go on changing. */
static void idle(void)
{
	struct ibv_ah *ah, *unused;
	int i;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = address_of(&e[0], &e[1], 9, 0);
	unused = address_of(&e[0], &e[1], 9, 0);
	send_by(ah, 20, 0);
	expect(&e[1], 20, IBV_WC_SUCCESS);
	for (i = 1; i < 40; i++)
		repath(9, i % 8);
	CHECK_EQ(mock_live(MOCK_AH), 3);
	send_by(ah, 21, 0);
	CHECK_EQ(expect(&e[1], 21, IBV_WC_SUCCESS).sl, 7);
	for (i = 1; i < 40; i++)
		repath(9, i % 8);
	CHECK_EQ(mock_live(MOCK_AH), 4);
	goes_by(ah, 7);
	goes_by(unused, 7);
	are_left(2);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_destroy_ah(unused), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* The device moves, and then the receiver. */
static void and_a_move(void)
{
	struct ibv_ah *ah;
	int i;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = address_of(&e[0], &e[1], 9, 0);
	goes_by(ah, 0);
	repath(9, 3);
	for (i = 0; i < 2; i++) {
		move_away("mock0");
		move_back("mock0");
		goes_by(ah, 3);
		move_away("mock1");
		repath(9, 4);
		move_back("mock1");
		for (int tries = 0; tries < 1000; tries++) {
			send_by(ah, 1, IBV_SEND_SIGNALED);
			expect(&e[0], 1, IBV_WC_SUCCESS);
			struct ibv_wc wc;

			usleep(5000);
			if (ibv_poll_cq(e[1].cq, 1, &wc) == 1) {
				CHECK_EQ(wc.sl, 4);
				break;
			}
		}
		repath(9, 3);
		goes_by(ah, 3);
	}
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void receiver_moves_to(uint32_t lid)
{
	fake_moved_lid(lid);
	move_away("mock1");
	move_back("mock1");
}

/*
 * The receiver moves twice. A path to where it was changes before anything is sent to where it is now: that
 * is another path.
 */
static void and_a_move_since(void)
{
	struct ibv_ah *ah;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = address_of(&e[0], &e[1], 9, 0);
	goes_by(ah, 0);
	receiver_moves_to(20);
	goes_by(ah, 0);
	receiver_moves_to(30);
	repath(20, 4);
	goes_by(ah, 0);
	repath(30, 5);
	goes_by(ah, 5);
	fake_moved_lid(0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* The receiver moves again and again, and some of it is told twice: one handle is left for where it is. */
static void and_many_moves(void)
{
	struct ibv_ah *ah;
	int i;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = address_of(&e[0], &e[1], 9, 0);
	for (i = 0; i < 12; i++) {
		receiver_moves_to(20 + i / 2);
		goes_by(ah, 0);
	}
	are_left(2);
	fake_moved_lid(0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	follows();
	one_gid();
	roce();
	on_their_way();
	idle();
	and_a_move();
	and_a_move_since();
	and_many_moves();
	return 0;
}
