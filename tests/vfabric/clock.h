/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What happens when. Times are picoseconds. A wheel of slots holds what is near, first in, first
 * out within a slot; a heap holds the rest. So the cost of an event does not grow with their
 * number, and the same calls always give the same order.
 */
#ifndef VF_CLOCK_H
#define VF_CLOCK_H

#include <stdint.h>

#define CLOCK_NEVER UINT64_MAX
#define CLOCK_SHIFT 9		/* a slot is 512 ps wide */
#define CLOCK_SLOTS 8192u	/* so the wheel reaches 4.2 us ahead */
#define CLOCK_WORDS (CLOCK_SLOTS / 64)

struct event {
	uint64_t time;
	uint32_t next;
	uint32_t arg, arg2;
	uint32_t type;
};

struct clock_far {
	uint64_t time, serial;
	uint32_t event;
};

struct clock {
	uint64_t now;		/* never goes back */
	uint64_t tick;		/* the slot that is being emptied */
	uint64_t events;	/* taken so far */
	struct event *pool;
	uint32_t pool_size, free;
	uint32_t *head, *tail;
	uint64_t used[CLOCK_WORDS];	/* slots that hold something */
	uint64_t words[CLOCK_WORDS / 64];	/* words of used that do */
	uint64_t waiting;	/* events on the wheel */
	struct clock_far *far;
	uint32_t nfar, far_room;
	uint64_t serial;
};

int clock_init(struct clock *clock);
void clock_free(struct clock *clock);
/* At time (not before now) let clock_next() give (type, arg, arg2). Aborts if memory is out. */
void clock_at(struct clock *clock, uint64_t time, uint32_t type, uint32_t arg, uint32_t arg2);
/* Takes the next event that is not later than until. Return: 0 if there is none; now = until. */
int clock_next(struct clock *clock, uint64_t until, struct event *event);
/* When the next event is, at the earliest, or CLOCK_NEVER. */
uint64_t clock_peek(struct clock *clock);

#endif
