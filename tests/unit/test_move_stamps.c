// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions with time stamps, of a process that moves and of its peer that stays: those that were
 * taken from the device before the application asked for them have theirs, and a clock that the
 * application reads goes on with the next device as with the one before.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static const struct pair_how stamped = {
	.ex_cq = true,
	.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
		    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
};

struct moment {
	uint64_t cycles, wallclock_ns;
};

static struct moment moment(struct end *e)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct timespec t;

	CHECK_EQ(ibv_query_rt_values_ex(e->ctx, &v), 0);
	CHECK_EQ(v.raw_clock.tv_sec, 0);
	clock_gettime(CLOCK_REALTIME, &t);
	return (struct moment){ v.raw_clock.tv_nsec, t.tv_sec * 1000000000ull + t.tv_nsec };
}

/* In cycles, round the end of the counter. */
static bool is_before(uint64_t a, uint64_t b)
{
	return ((b - a) & ((1ull << 48) - 1)) < 1ull << 47;
}

/* A millisecond more or less: of a device that is away it is reckoned. */
static void stamped_between(struct end *e, enum ibv_wc_status status, const struct moment *from,
			    const struct moment *to)
{
	struct ibv_poll_cq_attr a = { 0 };
	const uint64_t some = 156250;
	uint64_t cycles, ns;
	int tries = 0;

	while (ibv_start_poll(e->cqx, &a)) {
		CHECK(tries++ < 5000, "no completion");
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	CHECK_EQ(e->cqx->status, status);
	cycles = ibv_wc_read_completion_ts(e->cqx);
	ns = ibv_wc_read_completion_wallclock_ns(e->cqx);
	ibv_end_poll(e->cqx);
	CHECK(is_before(from->cycles - some, cycles) && is_before(cycles, to->cycles + some),
	      "0x%llx not in 0x%llx ... 0x%llx", (unsigned long long)cycles,
	      (unsigned long long)from->cycles, (unsigned long long)to->cycles);
	CHECK(from->wallclock_ns <= ns && ns <= to->wallclock_ns, "%llu not in %llu ... %llu",
	      (unsigned long long)ns, (unsigned long long)from->wallclock_ns,
	      (unsigned long long)to->wallclock_ns);
}

static void wait_quiet(void)
{
	while (!mock_quiet())
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

/* A message each way, which nobody polls before the device has gone and come back. */
static void across(struct end *e, const char *from, const char *to)
{
	struct moment start[2], end[2], now;
	int k;

	for (k = 0; k < 2; k++) {
		start[k] = moment(&e[k]);
		CHECK_EQ(post_recv(&e[k], 1, 0, 64), 0);
	}
	for (k = 0; k < 2; k++)
		CHECK_EQ(post(&e[k], &e[!k], IBV_WR_SEND, 2, IBV_SEND_SIGNALED, 64, 16), 0);
	wait_quiet();
	for (k = 0; k < 2; k++)
		end[k] = moment(&e[k]);
	move_away(from);
	move_back(to);
	for (k = 0; k < 2; k++) {
		now = moment(&e[k]);
		CHECK(is_before(end[k].cycles, now.cycles), "the clock went back");
		stamped_between(&e[k], IBV_WC_SUCCESS, &start[k], &end[k]);
		stamped_between(&e[k], IBV_WC_SUCCESS, &start[k], &end[k]);
	}
}

/* One of another rate, or that nobody can ask, is not taken for it. */
static void other_clocks(struct end *e)
{
	const char *why = "";

	move_away("mock0");
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock7", .clock_khz = 1000000 }), 0);
	CHECK_EQ(fake_resume("mock7", &why), EOPNOTSUPP);
	CHECK(strstr(why, "1000000 kHz"), "says: %s", why);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock8", .hidden_clock = true }), 0);
	CHECK_EQ(fake_resume("mock8", &why), EOPNOTSUPP);
	CHECK(strstr(why, "no clock"), "says: %s", why);
	CHECK_EQ(mock_unplug("mock7"), 0);
	CHECK_EQ(mock_unplug("mock8"), 0);
	move_back("mock0");
	across(e, "mock0", "mock0");
}

/* Completions that no device has made. */
static void peer_gone(struct end *e)
{
	struct moment start, now;

	move_away("mock0");
	start = moment(&e[1]);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 3, IBV_SEND_SIGNALED, 64, 16), 0);
	CHECK_EQ(ibv_destroy_qp(e[1].qp), 0);
	e[1].qp = NULL;
	move_back("mock0");
	now = moment(&e[0]);
	start.cycles = now.cycles - (moment(&e[1]).cycles - start.cycles);
	stamped_between(&e[0], IBV_WC_RETRY_EXC_ERR, &start, &now);
}

/* What could not be told after a move is refused before. */
static void unasked(void)
{
	struct pair_how how = stamped;
	const char *why = "";
	struct end e[2];

	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock9", .hidden_clock = true }), 0);
	how.dev[0] = "mock9";
	pair_open(e, &how);
	CHECK_EQ(fake_check("mock9", &why), EOPNOTSUPP);
	CHECK(strstr(why, "time stamps of a clock that can not be read"), "says: %s", why);
	CHECK_EQ(fake_abort(), 0);
	pair_close(e);
}

int main(void)
{
	struct end e[2];
	int k;

	alarm(HANGS);
	pair_open(e, &stamped);
	for (k = 0; k < 4; k++)
		across(e, k % 2 ? "mock1" : "mock0", k % 2 ? "mock1" : "mock0");
	other_clocks(e);
	peer_gone(e);
	pair_close(e);
	unasked();
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
