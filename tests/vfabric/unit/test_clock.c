// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Events come out in the order of time to a slot's width, near and far ones alike, none lost. */
#include "check.h"
#include "clock.h"

#define N 200000

int main(void)
{
	struct clock clock;
	struct event e;
	uint64_t rng = 1, last = 0, sum_in = 0, sum_out = 0, seen = 0;

	CHECK_EQ(clock_init(&clock), 0);
	CHECK(clock_peek(&clock) == CLOCK_NEVER);
	CHECK(!clock_next(&clock, 1000, &e));
	CHECK_EQ(clock.now, 1000);
	for (uint32_t i = 0; i < N; i++) {
		uint64_t far[] = { 1000, 1000000, 100000000, 1000000000000ull };

		rng = rng * 6364136223846793005ull + 1442695040888963407ull;
		clock_at(&clock, clock.now + (rng >> 20) % far[i % 4], 7, i, 0);
		sum_in += i;
		if (i % 3 == 0 && clock_next(&clock, CLOCK_NEVER, &e)) {
			CHECK(clock.now >= last);
			CHECK(e.time + (1u << CLOCK_SHIFT) > last);
			last = clock.now;
			sum_out += e.arg;
			seen++;
		}
	}
	while (clock_next(&clock, CLOCK_NEVER, &e)) {
		CHECK(clock.now >= last);
		CHECK(e.time + (1u << CLOCK_SHIFT) > last);
		last = clock.now;
		sum_out += e.arg;
		seen++;
	}
	CHECK_EQ(seen, N);
	CHECK_EQ(sum_out, sum_in);
	/* At one time: in the order of the calls, over the border of the wheel, too. */
	for (uint32_t i = 0; i < 100; i++)
		clock_at(&clock, last + 10000000, 7, i, 0);
	for (uint32_t i = 0; i < 100; i++) {
		CHECK(clock_next(&clock, CLOCK_NEVER, &e));
		CHECK_EQ(e.arg, i);
	}
	/* Not beyond until. */
	clock_at(&clock, clock.now + 5000000, 7, 1, 0);
	CHECK(!clock_next(&clock, clock.now + 4000000, &e));
	CHECK(clock_next(&clock, clock.now + 2000000, &e));
	clock_free(&clock);
	return 0;
}
