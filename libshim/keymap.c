// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Open addressing in a table at most half full: a post looks up one or two lines of cache. */
#include <stdlib.h>

#include "shim.h"

struct rp_keymap {
	size_t mask;
	struct {
		uint32_t virt, real;
		bool used;
	} row[];
};

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

void rp_keymap_add(struct rp_keymap *m, uint32_t virt, uint32_t real)
{
	size_t i = slot_of(m, virt);

	while (m->row[i].used && m->row[i].virt != virt)
		i = (i + 1) & m->mask;
	m->row[i].used = true;
	m->row[i].virt = virt;
	m->row[i].real = real;
}

bool rp_keymap_find(const struct rp_keymap *m, uint32_t virt, uint32_t *real)
{
	size_t i;

	for (i = slot_of(m, virt); m->row[i].used; i = (i + 1) & m->mask)
		if (m->row[i].virt == virt) {
			*real = m->row[i].real;
			return true;
		}
	return false;
}

void rp_keymap_free(struct rp_keymap *m)
{
	free(m);
}
