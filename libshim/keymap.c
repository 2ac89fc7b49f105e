// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Open addressing in a table at most half full: a post looks up one or two lines of cache. Rows are read while others
 * are filled or given up: a row is filled once, and what it leads to is changed as one word.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "shim.h"

#define TAG 0xffu	/* of a memory window, chosen by each bind */

enum state { EMPTY, KEY, WINDOW, GONE };

struct rp_keymap {
	size_t mask, room;		/* so many rows may be filled yet */
	atomic_bool windows;		/* there are some */
	struct row {
		_Atomic uint64_t keys;	/* virtual, real */
		_Atomic enum state state;
	} row[];
};

/* Both are empty; what is found in neither waits in the one case, and is wrong in the other. */
static struct {
	struct rp_keymap map;
	char rows[sizeof(struct row)];
} awaited, none;

struct rp_keymap *const rp_keymap_awaited = &awaited.map;
struct rp_keymap *const rp_keymap_none = &none.map;

static enum state state_of(const struct row *row)
{
	return atomic_load_explicit(&row->state, memory_order_acquire);
}

static uint64_t keys_of(const struct row *row)
{
	return atomic_load_explicit(&row->keys, memory_order_relaxed);
}

/* Keys are an index in the upper bits and a tag in the lower eight; indices in a row, of one tag, have a row each. */
static size_t slot_of(const struct rp_keymap *m, uint32_t key)
{
	return ((key * 0x9e3779b1u) >> 8) & m->mask;
}

/* The row of a key, or the empty one behind all where it could be. */
static struct row *row_of(const struct rp_keymap *m, uint32_t virt, enum state kind)
{
	const struct row *row;
	enum state state;
	size_t i;

	for (i = slot_of(m, virt);; i = (i + 1) & m->mask) {
		row = &m->row[i];
		state = state_of(row);
		if (state == EMPTY || (state == kind && keys_of(row) >> 32 == virt))
			return (struct row *)row;
	}
}

static bool add(struct rp_keymap *m, uint64_t virt, uint32_t real, enum state kind)
{
	struct row *row = row_of(m, virt, kind);
	bool is_new = state_of(row) == EMPTY;

	if (is_new && !m->room)
		return false;
	m->room -= is_new;
	atomic_store_explicit(&row->keys, virt << 32 | real, memory_order_relaxed);
	atomic_store_explicit(&row->state, kind, memory_order_release);
	return true;
}

bool rp_keymap_add(struct rp_keymap *m, uint32_t virt, uint32_t real)
{
	return add(m, virt, real, KEY);
}

bool rp_keymap_add_window(struct rp_keymap *m, uint32_t virt, uint32_t real)
{
	atomic_store_explicit(&m->windows, true, memory_order_relaxed);
	return add(m, virt & ~TAG, real & ~TAG, WINDOW);
}

void rp_keymap_remove(struct rp_keymap *m, uint32_t virt)
{
	enum state kind;
	struct row *row;

	for (kind = KEY; kind <= WINDOW; kind++) {
		row = row_of(m, virt, kind);
		if (state_of(row) == kind)
			atomic_store_explicit(&row->state, GONE, memory_order_relaxed);
	}
}

size_t rp_keymap_room(const struct rp_keymap *m)
{
	return m->room;
}

struct rp_keymap *rp_keymap_new(const struct rp_keymap *of, size_t n)
{
	struct rp_keymap *m;
	size_t size = 8, have = 0, i;
	const struct row *row;

	for (i = 0; of && i <= of->mask; i++)
		have += state_of(&of->row[i]) == KEY || state_of(&of->row[i]) == WINDOW;
	/* One that has grown does not soon again, whatever comes and goes. */
	while (size < 2 * (have + have / 2 + n))
		size *= 2;
	m = calloc(1, sizeof(*m) + size * sizeof(m->row[0]));
	if (!m)
		return NULL;
	m->mask = size - 1;
	m->room = size / 2;
	for (i = 0; of && i <= of->mask; i++) {
		row = &of->row[i];
		if (state_of(row) == KEY)
			rp_keymap_add(m, keys_of(row) >> 32, keys_of(row));
		else if (state_of(row) == WINDOW)
			rp_keymap_add_window(m, keys_of(row) >> 32, keys_of(row));
	}
	return m;
}

/*
 * row_of() for who holds no lock: each row's state is read once, and before its keys. One that is empty may be filled
 * the moment after, for any key.
 */
static inline bool find(const struct rp_keymap *m, uint32_t virt, enum state kind, uint32_t *real)
{
	enum state state;
	uint64_t keys;
	size_t i;

	for (i = slot_of(m, virt);; i = (i + 1) & m->mask) {
		state = state_of(&m->row[i]);
		if (state == EMPTY)
			return false;
		keys = keys_of(&m->row[i]);
		if (keys >> 32 == virt && state == kind) {
			*real = keys;
			return true;
		}
	}
}

bool rp_keymap_find(const struct rp_keymap *m, uint32_t virt, uint32_t *real)
{
	if (find(m, virt, KEY, real))
		return true;
	if (!atomic_load_explicit(&m->windows, memory_order_relaxed) || !find(m, virt & ~TAG, WINDOW, real))
		return false;
	*real |= virt & TAG;
	return true;
}

void rp_keymap_free(struct rp_keymap *m)
{
	free(m);
}
