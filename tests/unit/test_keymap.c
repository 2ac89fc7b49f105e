// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A table of keys that is looked into while it is filled and emptied: a key leads to its own memory, or nowhere. Who looks
 * takes his time between what he reads.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

static void take_time(void)
{
	for (volatile int i = 0; i < 50; i++)
		;
}

#undef atomic_load_explicit
#define atomic_load_explicit(at, order) (take_time(), __atomic_load_n(at, __ATOMIC_ACQUIRE))
#include "../../libshim/keymap.c"

#define SOUGHT 0xffffff00
#define ROUNDS TIMES(20000)
#define KEYS 64
#define OLD 16

static struct rp_keymap *_Atomic current;
static atomic_uint looked;
static atomic_bool stop;

static void *looks(void *arg)
{
	uint32_t real;

	(void)arg;
	while (!atomic_load(&stop)) {
		CHECK(!rp_keymap_find(atomic_load(&current), SOUGHT, &real), "it is 0x%x", real);
		atomic_fetch_add(&looked, 1);
	}
	return NULL;
}

static void wait_looked(void)
{
	unsigned int before = atomic_load(&looked);

	while (atomic_load(&looked) - before < 2)
		;
}

/* Others come to the row at which the search for one that is not there ends. */
static void others_come(void)
{
	struct rp_keymap *map = rp_keymap_new(NULL, KEYS), *old[OLD];
	unsigned int nold = 0;
	pthread_t thread;
	uint32_t i, k;

	CHECK(map);
	atomic_store(&current, map);
	CHECK_EQ(pthread_create(&thread, NULL, looks, NULL), 0);
	for (i = 0; i < ROUNDS; i++) {
		for (k = 0; k < KEYS; k++)
			CHECK(rp_keymap_add(map, 0x100 * (KEYS * i + k), 1 + i));
		CHECK(!rp_keymap_add(map, 0xff, 1), "there is no room");
		for (k = 0; k < KEYS; k++)
			rp_keymap_remove(map, 0x100 * (KEYS * i + k));
		old[nold++] = map;	/* of which nothing is left */
		map = rp_keymap_new(map, KEYS);
		CHECK(map);
		atomic_store(&current, map);
		if (nold < OLD && i < ROUNDS - 1)
			continue;
		/* A reader keeps one no longer than a look takes. */
		wait_looked();
		while (nold)
			rp_keymap_free(old[--nold]);
	}
	atomic_store(&stop, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	rp_keymap_free(map);
}

static void grows(void)
{
	struct rp_keymap *map = rp_keymap_new(NULL, 1), *more;
	uint32_t k, real;

	CHECK(map && rp_keymap_add_window(map, 0xabc05, 0xdef07));
	for (k = 0; k < 1000; k++) {
		if (!rp_keymap_add(map, k << 8, k)) {
			more = rp_keymap_new(map, 1);
			CHECK(more && rp_keymap_room(more) > rp_keymap_room(map) && rp_keymap_add(more, k << 8, k));
			rp_keymap_free(map);
			map = more;
		}
		if (k % 3 == 0)
			rp_keymap_remove(map, k << 8);
		if (k % 3 == 1)
			CHECK(rp_keymap_add(map, k << 8, k + 5));	/* has its row */
	}
	for (k = 0; k < 1000; k++) {
		CHECK_EQ(rp_keymap_find(map, k << 8, &real), k % 3 != 0);
		CHECK(k % 3 == 0 || real == (k % 3 == 1 ? k + 5 : k), "0x%x", real);
	}
	/* Of a window the application has the lower eight bits. */
	CHECK(rp_keymap_find(map, 0xabc42, &real) && real == 0xdef42);
	rp_keymap_remove(map, 0xabc00);
	CHECK(!rp_keymap_find(map, 0xabc42, &real));
	rp_keymap_free(map);
}

static void nothing_in_it(void)
{
	uint32_t real;

	CHECK(!rp_keymap_find(rp_keymap_awaited, 5, &real) && !rp_keymap_find(rp_keymap_none, 5, &real));
	CHECK_EQ(rp_keymap_room(rp_keymap_none), 0);
}

int main(void)
{
	alarm(HANGS);
	nothing_in_it();
	grows();
	others_come();
	return 0;
}
