// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The clocks of devices, which the stamps of completions are read from. */
#include <time.h>

#include "mock_state.h"

uint64_t mock_cycles(const struct mock_device *d)
{
	return (d->clock_starts + mock_now_ns() / 1000 * d->clock_khz / 1000) & MOCK_CLOCK_MASK;
}

uint64_t mock_wallclock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int mock_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values)
{
	const struct mock_device *d = mock_context(c)->device;

	if (values->comp_mask != IBV_VALUES_MASK_RAW_CLOCK || d->hidden_clock)
		return EOPNOTSUPP;
	values->raw_clock = (struct timespec){ .tv_nsec = (long)mock_cycles(d) };
	return 0;
}
