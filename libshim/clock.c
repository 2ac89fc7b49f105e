// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The stamps of completions are cycles of the device's clock. Another device's clock stands elsewhere: what
 * it says is shifted, so that a program that subtracts stamps, or compares them with the device's time,
 * sees one clock that goes on. A clock of another rate can not be: the program has asked for the rate once.
 */
#include <stdio.h>
#include <time.h>

#include "conn.h"
#include "objects.h"

/* Where the device is, in cycles. Providers give these as nanoseconds, and no seconds. */
static bool read_cycles(struct rp_context *ctx, uint64_t *cycles)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	if (!RP_HAS_SLOT(ctx, query_rt_values) ||
	    RP_REAL(RP_SLOT(ctx, query_rt_values)(ctx->real, &v)) ||
	    !(v.comp_mask & IBV_VALUES_MASK_RAW_CLOCK) || v.raw_clock.tv_sec)
		return false;
	*cycles = v.raw_clock.tv_nsec;
	return true;
}

static bool read_rate(struct rp_context *ctx, uint64_t *khz, uint64_t *mask)
{
	struct ibv_device_attr_ex attr = { 0 };

	if (!RP_HAS_SLOT(ctx, query_device_ex) ||
	    RP_REAL(RP_SLOT(ctx, query_device_ex)(ctx->real, NULL, &attr, sizeof(attr))))
		return false;
	*khz = attr.hca_core_clock;
	*mask = attr.completion_timestamp_mask;
	return *khz && *mask;
}

bool rp_clock_use(struct rp_context *ctx)
{
	struct rp_clock *k = &ctx->clock;
	uint64_t khz, mask, cycles;
	bool ok;

	pthread_mutex_lock(&ctx->vctx.context.mutex);
	ok = k->khz;
	if (!ok && read_rate(ctx, &khz, &mask) && read_cycles(ctx, &cycles)) {
		k->mask = mask;
		k->khz = khz;
		k->left = cycles;
		k->left_ns = rp_now_ns();
		k->in_step = ok = true;
	}
	pthread_mutex_unlock(&ctx->vctx.context.mutex);
	return ok;
}

uint64_t rp_clock_real_to_virtual(const struct rp_context *ctx, uint64_t cycles)
{
	const struct rp_clock *k = &ctx->clock;

	return k->add ? (cycles + k->add) & k->mask : cycles;
}

/* What it would say now if it had not been left. */
static uint64_t passed_since_left(const struct rp_clock *k)
{
	uint64_t us = (rp_now_ns() - k->left_ns) / 1000;

	return (k->left + us * k->khz / 1000) & k->mask;
}

void rp_clock_stamp(struct rp_context *ctx, struct rp_wc_more *more)
{
	struct timespec t;
	uint64_t cycles;

	clock_gettime(CLOCK_REALTIME, &t);
	more->completion_wallclock_ns = t.tv_sec * 1000000000ull + t.tv_nsec;
	if (!ctx->clock.khz)
		return;
	if (!ctx->clock.in_step)
		more->completion_ts = passed_since_left(&ctx->clock);
	else if (ctx->real && read_cycles(ctx, &cycles))
		more->completion_ts = rp_clock_real_to_virtual(ctx, cycles);
}

void rp_clock_leave(struct rp_context *ctx)
{
	struct rp_clock *k = &ctx->clock;
	uint64_t cycles;

	if (!k->khz || !k->in_step)
		return;
	/* Of one that can not be read any more the time before counts. */
	if (read_cycles(ctx, &cycles)) {
		k->left = rp_clock_real_to_virtual(ctx, cycles);
		k->left_ns = rp_now_ns();
	}
	k->in_step = false;
}

int rp_clock_enter(struct rp_context *ctx, char *why, size_t room)
{
	struct rp_clock *k = &ctx->clock;
	uint64_t khz, mask, cycles;

	if (!k->khz)
		return 0;
	if (!read_rate(ctx, &khz, &mask) || !read_cycles(ctx, &cycles)) {
		snprintf(why, room, "%s has no clock for the time stamps of completions", ctx->name);
		return -EOPNOTSUPP;
	}
	if (khz != k->khz || mask != k->mask) {
		snprintf(why, room, "the clock of %s runs at %llu kHz, not at %llu", ctx->name,
			 (unsigned long long)khz, (unsigned long long)k->khz);
		return -EOPNOTSUPP;
	}
	k->add = (passed_since_left(k) - cycles) & mask;
	k->in_step = true;
	return 0;
}
