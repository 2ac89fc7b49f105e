// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Keys that are taken back after a move, and peers that do not hear of it: they are not kept for ever, and whoever is
 * there again knows only those keys that there are.
 */
#include "../../include/repath_peer.h"
#include "../../libshim/shim.h"
#include "check.h"
#include "clock_ahead.h"
#include "move_cycle.h"
#include "pair.h"

#define KEPT	100
#define REMOVED	(KEPT + 20)
#define STAYS	TIMES(5000)
#define PARTS	4200	/* more than are in one message */

/* For what waits, until it is given up. */
static void time_goes(int seconds)
{
	int i;

	ahead_ns += seconds * S;
	for (i = 0; i < 4; i++) {
		usleep(60000);	/* messages are said again meanwhile */
		fake_look();
	}
}

static struct ibv_mr *reg(struct end *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf, 8, ALL_ACCESS);

	CHECK(mr);
	return mr;
}

/* What is left of a region that is taken back. */
struct gone {
	struct ibv_mr mr;
	uint32_t lkey, rkey;	/* the device's */
};

static struct gone take_back(struct ibv_mr *mr)
{
	const struct rp_mr *is = (const struct rp_mr *)mr;
	struct gone g = { .mr = *mr, .lkey = is->real_lkey, .rkey = is->real_rkey };

	CHECK_EQ(ibv_dereg_mr(mr), 0);
	return g;
}

/* The device gives its keys to another one, once all peers have heard, or might be thought to have. */
static struct ibv_mr *in_its_place(struct end *e, const struct gone *g)
{
	struct ibv_mr *mr = reg(e), *next;

	mock_next_key("mock0", g->lkey);
	next = reg(e);
	CHECK_EQ(next->rkey, g->rkey);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	return next;
}

/* Whose key was taken back leads to nobody, whoever has its number on the device now. */
static void leads_nowhere(struct end e[2], struct gone *g)
{
	struct ibv_mr *mr = in_its_place(&e[0], g);

	strcpy(e[0].buf, "before");
	strcpy(e[1].buf, "late");
	write_by_mr(e, mr, 1);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	CHECK(!strcmp(e[0].buf, "late"));
	strcpy(e[1].buf, "never");
	write_by_mr(e, &g->mr, 2);
	expect(&e[1], 2, IBV_WC_REM_ACCESS_ERR);
	CHECK(!strcmp(e[0].buf, "late"));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

/* The device's numbers are none that there have been before. */
static void moved(void)
{
	static uint32_t first_key = 0x40000000;
	const char *why = NULL;
	int ret;

	first_key += 0x1000000;
	move_away("mock0");
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0", .first_key = first_key }), 0);
	ret = fake_resume("mock0", &why);
	CHECK(!ret, "resume: %d, %s", ret, why);
	CHECK_EQ(fake_settled(), 0);
}

static void closed(struct end e[2])
{
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* After a move of its owner a peer knows it. */
static struct ibv_mr *open_moved_with_one(struct end e[2])
{
	struct ibv_mr *mr;

	pair_open(e, &(struct pair_how){ 0 });
	mr = reg(&e[0]);
	moved();
	return mr;
}

/* A region gives up its remote rights, and its key with them, or when it goes. */
static void rights_are_given_up(bool with_key)
{
	const int flags = IBV_REREG_MR_CHANGE_ACCESS | (with_key ? IBV_REREG_MR_CHANGE_TRANSLATION : 0);
	struct end e[2];
	struct ibv_mr *mr = open_moved_with_one(e);
	struct gone g;

	g = (struct gone){ *mr, ((struct rp_mr *)mr)->real_lkey, ((struct rp_mr *)mr)->real_rkey };
	CHECK_EQ(ibv_rereg_mr(mr, flags, NULL, e[0].buf, 8, IBV_ACCESS_LOCAL_WRITE), 0);
	if (!with_key)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	leads_nowhere(e, &g);
	if (with_key)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	closed(e);
}

/* It could not be told; then the peer moves, and is told all keys by INFO. */
static void then_peer_moves(void)
{
	struct end e[2];
	struct ibv_mr *mr = open_moved_with_one(e);
	struct gone g;

	messages_are_lost(true);
	g = take_back(mr);
	time_goes(40);
	messages_are_lost(false);
	move_away("mock1");
	move_back("mock1");
	leads_nowhere(e, &g);
	closed(e);
}

/* The peer has the table, and its answer was lost: it is told again, from the beginning. */
static void answer_is_lost(void)
{
	struct ibv_mr *mr;
	struct end e[2];
	struct gone g;

	end_open(&e[0], "mock0", &(struct pair_how){ 0 });
	end_open(&e[1], "mock1", &(struct pair_how){ 0 });
	mr = reg(&e[0]);
	moved();
	fake_tap_set(&(struct fake_tap){ .type = REPATH_MSG_KEYS_ACK, .fault = FAKE_LOST, .always = true });
	pair_connect(e);
	write_by_mr(e, mr, 1);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	g = take_back(mr);
	time_goes(40);
	fake_tap_set(&(struct fake_tap){ .forget = true });
	leads_nowhere(e, &g);
	closed(e);
}

/* Nobody will hear of them any more. */
static void peer_is_gone(void)
{
	struct end e[2];
	unsigned int i;

	pair_open(e, &(struct pair_how){ 0 });
	moved();
	CHECK_EQ(ibv_destroy_qp(e[1].qp), 0);
	/* It is told of the first one, and its module answers that it is gone. */
	for (i = 0; i < 10; i++) {
		take_back(reg(&e[0]));
		fake_look();
	}
	CHECK_EQ(fake_removed_keys("mock0"), 0);
	e[1].qp = end_create_qp(&e[1], &(struct pair_how){ 0 });
	closed(e);
}

/*
 * More than are kept, for one that does not answer; then it is there, and is told the table as it is, which is more than
 * one message where that does not take too long. @moves: by INFO
 */
static void peer_is_silent(bool moves)
{
	static struct ibv_mr *mr[REMOVED], *stays[STAYS];
	struct end e[2];
	unsigned int i;
	struct gone g;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < REMOVED; i++)
		mr[i] = reg(&e[0]);
	for (i = 0; i < STAYS; i++)
		stays[i] = reg(&e[0]);
	moved();
	messages_are_lost(true);
	fake_removed_keys_kept(KEPT);
	g = take_back(mr[0]);
	for (i = 1; i < REMOVED; i++)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	CHECK(fake_removed_keys("mock0") <= KEPT, "%u are kept", fake_removed_keys("mock0"));
	time_goes(40);
	messages_are_lost(false);
	if (moves) {
		move_away("mock1");
		move_back("mock1");
	}
	CHECK_EQ(ibv_dereg_mr(reg(&e[0])), 0);
	for (i = 0; i < STAYS; i += 100) {
		write_by_mr(e, stays[i], i);
		expect(&e[1], i, IBV_WC_SUCCESS);
	}
	/* Acknowledged now: nothing is kept. */
	CHECK_EQ(ibv_dereg_mr(reg(&e[0])), 0);
	leads_nowhere(e, &g);
	CHECK(fake_removed_keys("mock0") <= 10);
	for (i = 0; i < STAYS; i++)
		CHECK_EQ(ibv_dereg_mr(stays[i]), 0);
	closed(e);
}

/* More of them are taken back than are kept, and what the peer was to be told of it is given up. */
static void forget_too_many(struct ibv_mr **mr)
{
	unsigned int i;

	fake_removed_keys_kept(KEPT);
	for (i = 0; i < REMOVED; i++)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	time_goes(40);
}

/* With regions that are taken back later, and others that the table is in two parts of, if @stays. */
static void open_moved(struct end e[2], struct ibv_mr **mr, struct ibv_mr **stays)
{
	unsigned int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < REMOVED; i++)
		mr[i] = reg(&e[0]);
	for (i = 0; stays && i < PARTS; i++)
		stays[i] = reg(&e[0]);
	moved();
}

/*
 * The table is begun anew when the peer asks for what it lacks, which is in the last part: the first part, which takes the
 * place of the whole old table, is there before the answer.
 */
static void peer_asks(void)
{
	static struct ibv_mr *mr[REMOVED], *stays[PARTS];
	struct ibv_mr *last;
	struct end e[2];
	unsigned int i;

	open_moved(e, mr, stays);
	messages_are_lost(true);
	last = reg(&e[0]);
	forget_too_many(mr);
	messages_are_lost(false);
	strcpy(e[0].buf, "before");
	strcpy(e[1].buf, "known");
	write_by_mr(e, last, 1);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	CHECK(!strcmp(e[0].buf, "known"));
	messages_are_lost(true);	/* not one for each */
	for (i = 0; i < PARTS; i++)
		CHECK_EQ(ibv_dereg_mr(stays[i]), 0);
	messages_are_lost(false);
	CHECK_EQ(ibv_dereg_mr(last), 0);
	closed(e);
}

/*
 * The table is begun anew, and the peer has not heard of it: until it has, it uses the old one, and those that are kept
 * stand for nothing new.
 */
static void new_table_is_lost(void)
{
	static struct ibv_mr *mr[REMOVED];
	struct ibv_mr *one, *next;
	struct end e[2];
	struct gone g;

	open_moved(e, mr, NULL);
	one = reg(&e[0]);
	messages_are_lost(true);
	forget_too_many(mr);
	g = take_back(one);
	CHECK(fake_removed_keys("mock0") > 0);
	mock_next_key("mock0", g.lkey);
	next = reg(&e[0]);
	CHECK(next->rkey != g.rkey && ((struct rp_mr *)next)->real_rkey != g.rkey);
	strcpy(e[0].buf, "before");
	strcpy(e[1].buf, "never");
	write_by_mr(e, &g.mr, 1);
	expect(&e[1], 1, IBV_WC_REM_ACCESS_ERR);
	CHECK(!strcmp(e[0].buf, "before"));
	messages_are_lost(false);
	/* By and by the peer hears it all. */
	CHECK_EQ(ibv_dereg_mr(next), 0);
	time_goes(40);
	CHECK_EQ(ibv_dereg_mr(reg(&e[0])), 0);
	time_goes(0);
	CHECK(fake_removed_keys("mock0") <= 1, "%u are kept", fake_removed_keys("mock0"));
	closed(e);
}

/*
 * The peer's module is loaded anew, and its shim has the table that it had: it is told what was taken back. @forgotten: more
 * than are kept
 */
static void peer_is_known_anew(bool forgotten)
{
	static struct ibv_mr *mr[REMOVED];
	struct end e[2];
	struct gone g;
	unsigned int i;

	open_moved(e, mr, NULL);
	messages_are_lost(true);
	g = take_back(mr[0]);
	fake_removed_keys_kept(forgotten ? KEPT : 2 * REMOVED);
	for (i = 1; i < REMOVED; i++)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	fake_known_anew("mock1");
	fake_look();
	messages_are_lost(false);
	leads_nowhere(e, &g);
	fake_known_anew(NULL);
	closed(e);
}

/* ... and is away, so that it is not told yet, while another peer is. */
static void other_peer_hears_first(void)
{
	struct end e[2], other[2];
	struct ibv_mr *mr;
	struct gone g;

	pair_open(e, &(struct pair_how){ 0 });
	other[0] = e[0];
	other[0].qp = end_create_qp(&e[0], &(struct pair_how){ 0 });
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock2" }), 0);
	end_open(&other[1], "mock2", &(struct pair_how){ 0 });
	pair_connect(other);
	mr = reg(&e[0]);
	moved();
	move_away("mock1");
	fake_known_anew("mock1");
	g = take_back(mr);
	time_goes(0);
	CHECK_EQ(fake_removed_keys("mock0"), 1);
	move_back("mock1");
	leads_nowhere(e, &g);
	fake_known_anew(NULL);
	CHECK_EQ(ibv_destroy_qp(other[0].qp), 0);
	end_close(&other[1]);
	closed(e);
}

int main(void)
{
	alarm(HANGS);
	rights_are_given_up(true);
	rights_are_given_up(false);
	then_peer_moves();
	answer_is_lost();
	peer_is_gone();
	peer_is_silent(false);
	peer_is_silent(true);
	peer_asks();
	new_table_is_lost();
	peer_is_known_anew(false);
	peer_is_known_anew(true);
	other_peer_hears_first();
	return 0;
}
