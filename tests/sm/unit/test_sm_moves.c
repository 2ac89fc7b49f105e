// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Paper VI's algorithm 1: which set of a GUID is a move, and what becomes of those that stay away. */
#include "check.h"
#include "moves.h"

#define SECOND 1000000000ull

static struct {
	uint64_t guid;
	uint16_t old, lid;
	unsigned int n;
} told;

static void tell(void *context, uint64_t guid, uint16_t old, uint16_t lid)
{
	(void)context;
	told.guid = guid;
	told.old = old;
	told.lid = lid;
	told.n++;
}

static void set(struct moves *m, uint64_t guid, uint16_t lid, uint64_t now)
{
	told.n = 0;
	CHECK_EQ(moves_set(m, guid, lid, now, tell, NULL), 0);
}

static void expect_move(uint64_t guid, uint16_t old, uint16_t lid)
{
	CHECK_EQ(told.n, 1);
	CHECK_EQ(told.guid, guid);
	CHECK_EQ(told.old, old);
	CHECK_EQ(told.lid, lid);
}

static void moves_and_boots(void)
{
	struct moves *m = moves_new(10 * SECOND, 100);

	set(m, 0xaaaa, 1, 1);
	CHECK_EQ(told.n, 0);
	moves_delete(m, 0xaaaa, 1, 2);
	set(m, 0xaaaa, 2, 3);
	expect_move(0xaaaa, 1, 2);	/* the new LID is told, not the one of the table */
	moves_delete(m, 0xaaaa, 2, 4);
	set(m, 0xaaaa, 2, 5);
	CHECK_EQ(told.n, 0);
	CHECK_EQ(moves_counts(m)->reboots, 1);
	/* And back to where it came from. */
	moves_delete(m, 0xaaaa, 2, 6);
	set(m, 0xaaaa, 1, 7);
	expect_move(0xaaaa, 2, 1);
	CHECK_EQ(moves_counts(m)->moves, 2);
	CHECK_EQ(moves_counts(m)->boots, 1);
	CHECK_EQ(moves_counts(m)->absent, 0);
	moves_free(m);
}

static void set_before_delete(void)
{
	struct moves *m = moves_new(10 * SECOND, 100);

	set(m, 7, 1, 1);
	set(m, 7, 2, 2);
	expect_move(7, 1, 2);
	moves_delete(m, 7, 1, 3);	/* late: of where it was */
	CHECK_EQ(moves_counts(m)->present, 1);
	CHECK_EQ(moves_counts(m)->absent, 0);
	set(m, 7, 2, 4);
	CHECK_EQ(told.n, 0);
	moves_delete(m, 7, 1, 5);
	moves_delete(m, 7, 1, 6);
	moves_delete(m, 8, 1, 6);	/* nobody's */
	CHECK_EQ(moves_counts(m)->present, 1);
	moves_free(m);
}

static void never_back(void)
{
	struct moves *m = moves_new(10 * SECOND, 3);

	for (uint64_t guid = 1; guid <= 5; guid++)
		set(m, guid, guid, guid * SECOND);
	/* At most three are waited for: the first two are forgotten. */
	for (uint64_t guid = 1; guid <= 5; guid++)
		moves_delete(m, guid, guid, (10 + guid) * SECOND);
	CHECK_EQ(moves_counts(m)->absent, 3);
	CHECK_EQ(moves_counts(m)->forgotten, 2);
	set(m, 1, 100, 16 * SECOND);
	CHECK_EQ(told.n, 0);
	set(m, 4, 100, 16 * SECOND);
	expect_move(4, 4, 100);
	/* And no longer than that: 3 is too late, 5 just in time. */
	set(m, 3, 100, 24 * SECOND);
	CHECK_EQ(told.n, 0);
	set(m, 5, 100, 25 * SECOND);
	expect_move(5, 5, 100);
	CHECK_EQ(moves_counts(m)->absent, 0);
	CHECK_EQ(moves_counts(m)->forgotten, 3);
	moves_free(m);
}

/* GUIDs of the SM's own stay with the slot: who moves gets that of the new slot. */
static void dynamic(void)
{
	struct moves *m = moves_new(10 * SECOND, 100);

	set(m, 0x100, 1, 1);
	set(m, 0x200, 2, 1);
	moves_delete(m, 0x100, 1, 2);
	set(m, 0x201, 2, 3);
	CHECK_EQ(told.n, 0);
	set(m, 0x100, 1, 4);
	CHECK_EQ(told.n, 0);
	CHECK_EQ(moves_counts(m)->moves, 0);
	moves_free(m);
}

static void looks(void)
{
	struct moves *m = moves_new(10 * SECOND, 100);

	set(m, 1, 1, 1);
	set(m, 2, 2, 1);
	moves_all_set(m, 1);
	CHECK_EQ(moves_counts(m)->present, 2);
	/* 1 went and came between two looks; 2 is on its way. */
	set(m, 1, 5, 2);
	expect_move(1, 1, 5);
	moves_all_set(m, 2);
	CHECK_EQ(moves_counts(m)->absent, 1);
	set(m, 1, 5, 3);
	CHECK_EQ(told.n, 0);
	set(m, 2, 5, 3);
	expect_move(2, 2, 5);
	moves_all_set(m, 3);
	CHECK_EQ(moves_counts(m)->present, 2);
	moves_all_set(m, 4);
	CHECK_EQ(moves_counts(m)->present, 0);
	CHECK_EQ(moves_counts(m)->absent, 2);
	moves_all_set(m, 15 * SECOND);
	CHECK_EQ(moves_counts(m)->absent, 0);
	moves_free(m);
}

/* Against a simple table, with GUIDs that come and go at random. */
static void at_random(void)
{
	enum { GUIDS = 3000, STEPS = 200000 };
	static uint16_t at[GUIDS], last[GUIDS];
	struct moves *m = moves_new(UINT64_MAX, GUIDS);
	uint32_t random = 1;
	unsigned int present = 0, moved = 0;

	for (unsigned int i = 0; i < STEPS; i++) {
		unsigned int g, lid;

		random = random * 1664525 + 1013904223;
		g = (random >> 8) % GUIDS;
		lid = 1 + (random >> 20) % 7;
		if (at[g] && (random >> 30)) {
			moves_delete(m, g + 1, at[g], i);
			at[g] = 0;
			present--;
			continue;
		}
		set(m, g + 1, lid, i);
		present += !at[g];
		if (last[g] && last[g] != lid) {
			expect_move(g + 1, last[g], lid);
			moved++;
		} else {
			CHECK_EQ(told.n, 0);
		}
		at[g] = last[g] = lid;
	}
	CHECK_EQ(moves_counts(m)->present, present);
	CHECK_EQ(moves_counts(m)->moves, moved);
	CHECK(moved > STEPS / 4);
	moves_free(m);
}

int main(void)
{
	moves_and_boots();
	set_before_delete();
	never_back();
	dynamic();
	looks();
	at_random();
	return 0;
}
