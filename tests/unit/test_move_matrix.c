// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each message of the shims x each fault x each stage of a move, under traffic: every move succeeds
 * and all data are right. docs/message-faults.md has the matrix; REPATH_WRITE_DOCS=1 writes it.
 */
#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

#define DOC "docs/message-faults.md"
#define MARK "<!-- unit -->\n"

static const char *const fault_name[FAKE_FAULTS] = {
	[FAKE_LOST] = "lost", [FAKE_OVERTAKEN] = "overtaken", [FAKE_DOUBLED] = "doubled",
	[FAKE_DELAYED] = "delayed", [FAKE_FORGED] = "forged", [FAKE_TRUNCATED] = "truncated",
};

static const struct row {
	enum repath_msg type;
	const char *name;
	bool aborts;
} rows[] = {
	{ REPATH_MSG_PREPARE, "PREPARE", false }, { REPATH_MSG_PREPARED, "PREPARED", false },
	{ REPATH_MSG_GATE, "GATE", false }, { REPATH_MSG_DRAINED, "DRAINED", false },
	{ REPATH_MSG_READY, "READY", false }, { REPATH_MSG_INFO, "INFO", false },
	{ REPATH_MSG_CONNECTED, "CONNECTED", false }, { REPATH_MSG_ABORT, "ABORT", true },
	{ REPATH_MSG_ABORTED, "ABORTED", true }, { REPATH_MSG_KEYS, "KEYS", false },
	{ REPATH_MSG_KEYS_ACK, "KEYS_ACK", false }, { REPATH_MSG_GONE, "GONE", false },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct end pair[2];
static struct traffic *traffic;
static char cell[ROWS][FAKE_FAULTS][64];
static unsigned int moves;

static const char *next_device(void)
{
	return moves++ % 2 ? "mock1" : "mock0";
}

static void register_more(void)
{
	struct ibv_mr *mr = ibv_reg_mr(pair[0].pd, pair[0].buf, 64, ALL_ACCESS);

	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

static void whole_move(void)
{
	const char *dev = next_device();

	move_away(dev);
	move_back(dev);
	register_more();
	traffic_flows(traffic, 3);
}

/* With work of which nobody knows whether it was done: the only move that says DRAINED. */
static void stuck_move(void)
{
	const char *dev = next_device();

	mock_hold_acks(true);
	usleep(2000);
	move_away(dev);
	mock_hold_acks(false);
	move_back(dev);
	register_more();
	traffic_flows(traffic, 3);
}

/* Given up while the send queues are emptied, and a whole one behind it. */
static void half_move(void)
{
	const char *dev = next_device(), *why = "";
	int ret = fake_check(dev, &why);

	CHECK(!ret, "check of %s: %d, %s", dev, ret, why);
	fake_faults_set(&(struct fake_faults){ .seed = 1, .slow = REPATH_MSG_READY,
					       .slow_us = 100000 });
	fake_suspend_start(dev);
	usleep(5000);
	ret = fake_abort();
	CHECK(!ret, "abort on %s: %d", dev, ret);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	CHECK_EQ(fake_settled(), 0);
	whole_move();
}

/* The peer destroys its end while this one is away: the error that verbs have for that. */
static void gone(const struct fake_tap *tap)
{
	unsigned int touched, delivered;
	const char *why = "";
	struct end e[2];
	int ret;

	pair_open(e, &(struct pair_how){ .dev = { "mock2", "mock3" } });
	fake_tap_set(tap);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 1, 0, 0, 8), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, 0, 0, 8), 0);
	ret = fake_check("mock2", &why);
	CHECK(!ret, "check: %d, %s", ret, why);
	CHECK_EQ(fake_suspend("mock2"), 0);
	CHECK_EQ(ibv_destroy_qp(e[1].qp), 0);
	e[1].qp = NULL;
	/* This host hears it as long as it has the device. */
	do {
		usleep(1000);
		fake_tap_get(&touched, &delivered);
	} while (!touched);
	CHECK_EQ(mock_unplug("mock2"), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock2" }), 0);
	ret = fake_resume("mock2", &why);
	CHECK(!ret, "%d, %s", ret, why);
	expect(&e[0], 1, IBV_WC_RETRY_EXC_ERR);
	expect(&e[0], 2, IBV_WC_WR_FLUSH_ERR);
	expect_none(&e[0], 1);
	pair_close(e);
}

static bool left_out(unsigned int row, unsigned int fault, unsigned int stage)
{
	/* Where each is slow, a part of them, spread over all. */
	return TIMES(4) != 4 && (row + fault + stage) % 5;
}

static void run(unsigned int row, enum fake_fault fault)
{
	const struct row *r = &rows[row];
	bool once = fault == FAKE_LOST || fault == FAKE_OVERTAKEN;
	unsigned int stage, done = 0, tries, touched, delivered;	/* done: stages */
	const char *verdict = r->type == REPATH_MSG_GONE ? "error" : r->aborts ? "taken back" : "moved";

	if (r->type == REPATH_MSG_GONE && (fault == FAKE_LOST || fault == FAKE_DELAYED)) {
		/* Its sender is not there any more to repeat it, when the CM has given up. */
		snprintf(cell[row][fault], sizeof(cell[0][0]), "known by INFO or the lease");
		return;
	}
	for (stage = r->type == REPATH_MSG_GONE ? FAKE_RESUME : 0; stage < FAKE_STAGES; stage++) {
		struct fake_tap tap = { .type = r->type, .fault = fault, .stage = stage,
					.forget = r->type == REPATH_MSG_GONE };

		/* A stage that this move does not have, or has before the message was ever said */
		if (stage == FAKE_ABORT && !r->aborts)
			continue;
		if (once && done)
			break;
		if (left_out(row, fault, stage))
			continue;
		fprintf(stderr, "%s %s %u\n", r->name, fault_name[fault], stage);
		/* Who is late on a busy machine has no need to say it: again. */
		for (tries = touched = 0; !touched && tries < 20; tries++) {
			if (r->type == REPATH_MSG_GONE) {
				gone(&tap);
			} else {
				fake_tap_set(&tap);
				if (r->aborts)
					half_move();
				else if (r->type == REPATH_MSG_DRAINED)
					stuck_move();
				else
					whole_move();
			}
			fake_tap_get(&touched, &delivered);
		}
		CHECK(touched, "%s was not sent", r->name);
		CHECK(once || delivered, "%s at stage %u: no copy of it", r->name, stage);
		done++;
	}
	if (once)
		snprintf(cell[row][fault], sizeof(cell[0][0]), "%s", verdict);
	else
		snprintf(cell[row][fault], sizeof(cell[0][0]), "%s at %u stages", verdict, done);
}

static size_t print_table(char *to, size_t room)
{
	unsigned int row, fault;
	size_t n = 0;

	n += snprintf(to + n, room - n, "| message |");
	for (fault = FAKE_LOST; fault < FAKE_FAULTS; fault++)
		n += snprintf(to + n, room - n, " %s |", fault_name[fault]);
	n += snprintf(to + n, room - n, "\n|");
	for (fault = FAKE_NONE; fault < FAKE_FAULTS; fault++)
		n += snprintf(to + n, room - n, "---|");
	for (row = 0; row < ROWS; row++) {
		n += snprintf(to + n, room - n, "\n| %s |", rows[row].name);
		for (fault = FAKE_LOST; fault < FAKE_FAULTS; fault++)
			n += snprintf(to + n, room - n, " %s |", cell[row][fault]);
	}
	n += snprintf(to + n, room - n, "\n");
	return n;
}

/* The tests are run from the top of the tree; elsewhere there is nothing to compare with. */
static void compare_with_doc(void)
{
	static char text[65536], table[16384];
	FILE *f = fopen(DOC, "r");
	size_t n, len;
	char *at, *end;

	if (!f)
		return;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	at = strstr(text, MARK);
	end = at ? strstr(at, "<!-- end -->") : NULL;
	CHECK(end, "%s has no section %s", DOC, MARK);
	at += strlen(MARK);
	len = print_table(table, sizeof(table));
	if ((size_t)(end - at) == len && !memcmp(at, table, len))
		return;
	CHECK(getenv("REPATH_WRITE_DOCS"), "%s says something else than:\n%s", DOC, table);
	f = fopen(DOC, "w");
	CHECK(f);
	fwrite(text, 1, at - text, f);
	fwrite(table, 1, len, f);
	fputs(end, f);
	CHECK_EQ(fclose(f), 0);
}

int main(void)
{
	unsigned int row, fault;

	alarm(HANGS);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock2" }), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock3" }), 0);
	pair_open(pair, &(struct pair_how){ 0 });
	traffic = traffic_start(pair, &(struct traffic_how){ .seed = 11 });
	whole_move();
	whole_move();
	for (row = 0; row < ROWS; row++) {
		/* So that there is one of the move before. */
		fake_tap_set(&(struct fake_tap){ .type = rows[row].type });
		if (rows[row].aborts)
			half_move();
		else if (rows[row].type != REPATH_MSG_GONE)
			whole_move();
		for (fault = FAKE_LOST; fault < FAKE_FAULTS; fault++)
			run(row, fault);
	}
	fake_tap_set(&(struct fake_tap){ .forget = true });
	traffic_stop(traffic);
	pair_close(pair);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
	if (TIMES(4) == 4)
		compare_with_doc();
	return 0;
}
