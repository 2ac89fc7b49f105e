// SPDX-License-Identifier: GPL-2.0
#include <linux/bitops.h>
#include <linux/string.h>

#include "arbiter.h"
#include "credit.h"

#define WEIGHT_BYTES 64
#define LIMIT_BYTES 4096

void vhca_arbiter_init(struct vhca_arbiter *a)
{
	unsigned int vl;

	memset(a, 0, sizeof(*a));
	for (vl = 0; vl < VHCA_DATA_VLS; vl++) {
		a->table[VHCA_ARB_LOW][vl].vl = vl;
		a->table[VHCA_ARB_LOW][vl].weight = 64;
	}
}

static bool may_send(const struct ib_vl_weight_elem *entry, u32 ready)
{
	return entry->weight && ready & BIT(entry->vl & 15);
}

/* Gives the turn to the first entry of the table, from the present one on, that can use it. */
static bool turn(struct vhca_arbiter *a, enum vhca_arb_table t, u32 ready)
{
	unsigned int i;

	if (a->left[t] > 0 && may_send(&a->table[t][a->at[t]], ready))
		return true;
	for (i = 1; i <= VHCA_ARB_ENTRIES; i++) {
		unsigned int next = (a->at[t] + i) % VHCA_ARB_ENTRIES;

		if (may_send(&a->table[t][next], ready)) {
			a->at[t] = next;
			a->left[t] = a->table[t][next].weight * WEIGHT_BYTES;
			return true;
		}
	}
	return false;
}

/* A packet is never split: it may overdraw the weight. */
static unsigned int use(struct vhca_arbiter *a, enum vhca_arb_table t, const u32 *bytes)
{
	unsigned int vl = a->table[t][a->at[t]].vl & 15;

	a->left[t] -= bytes[vl];
	return vl;
}

unsigned int vhca_arbiter_pick(struct vhca_arbiter *a, u32 ready, const u32 *bytes)
{
	bool high = turn(a, VHCA_ARB_HIGH, ready);
	unsigned int vl;

	if (high && (a->limit == 255 || a->high_left > 0)) {
		vl = use(a, VHCA_ARB_HIGH, bytes);
		a->high_left -= bytes[vl];
		return vl;
	}
	/* Limit 0 means one packet of the high table between two of the low one. */
	a->high_left = a->limit ? a->limit * LIMIT_BYTES : 1;
	if (turn(a, VHCA_ARB_LOW, ready))
		return use(a, VHCA_ARB_LOW, bytes);
	if (high) {
		vl = use(a, VHCA_ARB_HIGH, bytes);
		a->high_left -= bytes[vl];
		return vl;
	}
	return __ffs(ready);
}
