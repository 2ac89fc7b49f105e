// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Open addressing in a table at most half full: a post looks up one or two lines of cache. */
#include <stdlib.h>

#include "shim.h"

#define TAG 0xffu	/* of a memory window, chosen by each bind */

struct rp_keymap {
	size_t mask;
	bool windows;		/* there are some */
	struct {
		uint32_t virt, real;
		bool used, window;
	} row[];
};

/* Both are empty; what is found in neither waits in the one case, and is wrong in the other. */
static struct {
	struct rp_keymap map;
	char rows[sizeof(((struct rp_keymap *)NULL)->row[0])];
} awaited, none;

struct rp_keymap *const rp_keymap_awaited = &awaited.map;
struct rp_keymap *const rp_keymap_none = &none.map;

struct rp_keymap *rp_keymap_new(size_t n)
{
	struct rp_keymap *m;
	size_t size = 8;

	while (size < 2 * n)
		size *= 2;
	m = calloc(1, sizeof(*m) + size * sizeof(m->row[0]));
	if (m)
		m->mask = size - 1;
	return m;
}

/* Keys are an index in the upper bits and a tag in the lower eight: mix both. */
static size_t slot_of(const struct rp_keymap *m, uint32_t key)
{
	return ((key * 0x9e3779b1u) >> 7) & m->mask;
}

static void add(struct rp_keymap *m, uint32_t virt, uint32_t real, bool window)
{
	size_t i = slot_of(m, virt);

	while (m->row[i].used && (m->row[i].virt != virt || m->row[i].window != window))
		i = (i + 1) & m->mask;
	m->row[i].used = true;
	m->row[i].window = window;
	m->row[i].virt = virt;
	m->row[i].real = real;
}

void rp_keymap_add(struct rp_keymap *m, uint32_t virt, uint32_t real)
{
	add(m, virt, real, false);
}

void rp_keymap_add_window(struct rp_keymap *m, uint32_t virt, uint32_t real)
{
	add(m, virt & ~TAG, real & ~TAG, true);
	m->windows = true;
}

static bool find(const struct rp_keymap *m, uint32_t virt, bool window, uint32_t *real)
{
	size_t i;

	for (i = slot_of(m, virt); m->row[i].used; i = (i + 1) & m->mask)
		if (m->row[i].virt == virt && m->row[i].window == window) {
			*real = m->row[i].real;
			return true;
		}
	return false;
}

bool rp_keymap_find(const struct rp_keymap *m, uint32_t virt, uint32_t *real)
{
	if (find(m, virt, false, real))
		return true;
	if (!m->windows || !find(m, virt & ~TAG, true, real))
		return false;
	*real |= virt & TAG;
	return true;
}

void rp_keymap_free(struct rp_keymap *m)
{
	free(m);
}
