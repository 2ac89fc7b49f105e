// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The timing wheel: near events in slots, far ones in a heap until the wheel reaches them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define NONE UINT32_MAX
#define MASK (CLOCK_SLOTS - 1)

int clock_init(struct clock *clock)
{
	memset(clock, 0, sizeof(*clock));
	clock->head = malloc(CLOCK_SLOTS * sizeof(*clock->head));
	clock->tail = malloc(CLOCK_SLOTS * sizeof(*clock->tail));
	if (!clock->head || !clock->tail)
		return -1;
	memset(clock->head, 0xff, CLOCK_SLOTS * sizeof(*clock->head));
	clock->free = NONE;
	return 0;
}

void clock_free(struct clock *clock)
{
	free(clock->head);
	free(clock->tail);
	free(clock->pool);
	free(clock->far);
	memset(clock, 0, sizeof(*clock));
}

static void *grown(void *array, size_t size)
{
	array = realloc(array, size);
	if (!array) {
		perror("vfabric: events");
		abort();
	}
	return array;
}

static void grow_pool(struct clock *clock)
{
	uint32_t i = clock->pool_size, size = i ? i * 2 : 1024;

	clock->pool = grown(clock->pool, size * sizeof(*clock->pool));
	clock->pool_size = size;
	while (size-- > i) {
		clock->pool[size].next = clock->free;
		clock->free = size;
	}
}

static int before(const struct clock_far *a, const struct clock_far *b)
{
	return a->time != b->time ? a->time < b->time : a->serial < b->serial;
}

static void push_far(struct clock *clock, uint64_t time, uint32_t event)
{
	struct clock_far item = { time, clock->serial++, event };
	uint32_t i = clock->nfar;

	if (clock->nfar == clock->far_room) {
		clock->far_room = clock->far_room ? clock->far_room * 2 : 256;
		clock->far = grown(clock->far, clock->far_room * sizeof(*clock->far));
	}
	clock->nfar++;
	while (i && before(&item, &clock->far[(i - 1) / 2])) {
		clock->far[i] = clock->far[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	clock->far[i] = item;
}

static uint32_t pop_far(struct clock *clock)
{
	uint32_t event = clock->far[0].event, i = 0;
	struct clock_far item = clock->far[--clock->nfar];

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= clock->nfar)
			break;
		if (child + 1 < clock->nfar &&
		    before(&clock->far[child + 1], &clock->far[child]))
			child++;
		if (!before(&clock->far[child], &item))
			break;
		clock->far[i] = clock->far[child];
		i = child;
	}
	if (clock->nfar)
		clock->far[i] = item;
	return event;
}

static void onto_wheel(struct clock *clock, uint32_t event, uint64_t tick)
{
	uint32_t slot = tick & MASK;

	clock->pool[event].next = NONE;
	if (clock->head[slot] == NONE) {
		clock->head[slot] = event;
		clock->used[slot / 64] |= 1ull << slot % 64;
		clock->words[slot / 64 / 64] |= 1ull << slot / 64 % 64;
	} else {
		clock->pool[clock->tail[slot]].next = event;
	}
	clock->tail[slot] = event;
	clock->waiting++;
}

void clock_at(struct clock *clock, uint64_t time, uint32_t type, uint32_t arg, uint32_t arg2)
{
	uint64_t tick = time >> CLOCK_SHIFT;
	uint32_t event;

	if (clock->free == NONE)
		grow_pool(clock);
	event = clock->free;
	clock->free = clock->pool[event].next;
	clock->pool[event] = (struct event){ time, NONE, arg, arg2, type };
	if (tick < clock->tick)
		tick = clock->tick;
	if (tick < clock->tick + CLOCK_SLOTS)
		onto_wheel(clock, event, tick);
	else
		push_far(clock, time, event);
}

/* The wheel has moved: what was far may be near now. */
static void bring_near(struct clock *clock)
{
	while (clock->nfar &&
	       clock->far[0].time >> CLOCK_SHIFT < clock->tick + CLOCK_SLOTS) {
		uint64_t tick = clock->far[0].time >> CLOCK_SHIFT;

		onto_wheel(clock, pop_far(clock), tick < clock->tick ? clock->tick : tick);
	}
}

/* The first word with a used slot behind @word, around the wheel to @word itself. */
static uint32_t next_word(const struct clock *clock, uint32_t word)
{
	uint32_t at = (word + 1) % CLOCK_WORDS, i = at / 64;
	uint64_t bits = clock->words[i] & ~0ull << at % 64;

	while (!bits) {
		i = (i + 1) % (CLOCK_WORDS / 64);
		bits = clock->words[i];
	}
	return i * 64 + __builtin_ctzll(bits);
}

/* The tick of the first used slot; the wheel is not empty. */
static uint64_t first_tick(const struct clock *clock)
{
	uint32_t start = clock->tick & MASK, word = start / 64;
	uint64_t bits = clock->used[word] & ~0ull << start % 64;

	if (!bits) {
		word = next_word(clock, word);
		bits = clock->used[word];
	}
	return clock->tick + ((word * 64 + __builtin_ctzll(bits) - start) & MASK);
}

uint64_t clock_peek(struct clock *clock)
{
	if (clock->waiting) {
		uint64_t time = first_tick(clock) << CLOCK_SHIFT;

		return time > clock->now ? time : clock->now;
	}
	return clock->nfar ? clock->far[0].time : CLOCK_NEVER;
}

int clock_next(struct clock *clock, uint64_t until, struct event *event)
{
	uint64_t last = until >> CLOCK_SHIFT, tick;
	uint32_t slot, at;

	if (clock->waiting)
		tick = first_tick(clock);
	else if (clock->nfar)
		tick = clock->far[0].time >> CLOCK_SHIFT;
	else
		tick = UINT64_MAX;
	if (tick > last) {
		if (until > clock->now && until != CLOCK_NEVER) {
			clock->now = until;
			clock->tick = last;
			bring_near(clock);
		}
		return 0;
	}
	if (tick != clock->tick) {
		clock->tick = tick;
		bring_near(clock);
	}
	slot = tick & MASK;
	at = clock->head[slot];
	*event = clock->pool[at];
	clock->head[slot] = event->next;
	if (event->next == NONE) {
		clock->used[slot / 64] &= ~(1ull << slot % 64);
		if (!clock->used[slot / 64])
			clock->words[slot / 64 / 64] &= ~(1ull << slot / 64 % 64);
	}
	clock->pool[at].next = clock->free;
	clock->free = at;
	clock->waiting--;
	clock->events++;
	if (event->time > clock->now)
		clock->now = event->time;
	return 1;
}
