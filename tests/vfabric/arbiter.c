// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* VL arbitration (IBA 1.2.1 vol 1, 7.6.9): two weighted round-robin tables and a limit. */
#include <string.h>

#include "fabric.h"

#define LOW 0
#define HIGH 1

void arbiter_init(struct arbiter *a, unsigned int vls)
{
	memset(a, 0, sizeof(*a));
	for (unsigned int vl = 0; vl < vls; vl++)
		a->table[LOW][vl] = (struct vl_weight){ vl, 64 };
}

void arbiter_changed(struct port *port)
{
	port->weighted = 0;
	for (unsigned int i = 0; i < 64; i++)
		if (port->arbiter->table[HIGH][i].weight)
			port->weighted = 1;
}

/* The next entry of a table whose VL is ready, or -1; *wrapped entries have been passed. */
static int next_entry(const struct arbiter *a, int table, unsigned int ready)
{
	const struct vl_weight *entry = a->table[table];
	unsigned int at = a->at[table] % 64;

	if (a->left[table] > 0 && entry[at].weight && ready >> entry[at].vl & 1)
		return at;
	for (unsigned int i = 1; i <= 64; i++) {
		unsigned int e = (at + i) % 64;

		if (entry[e].weight && ready >> entry[e].vl & 1)
			return e;
	}
	return -1;
}

static unsigned int take(struct arbiter *a, int table, unsigned int e, const uint32_t *bytes)
{
	unsigned int vl = a->table[table][e].vl;

	if (e != a->at[table] || a->left[table] <= 0) {
		a->at[table] = e;
		a->left[table] = a->table[table][e].weight * 64;
	}
	/* A packet may overdraw the weight: it is sent whole. */
	a->left[table] -= bytes[vl];
	return vl;
}

unsigned int arbiter_pick(struct port *port, unsigned int ready, const uint32_t *bytes)
{
	struct arbiter *a = port->arbiter;
	int high, low;

	/* Alone, and nothing is weighed against each other: the usual case. */
	if (!port->weighted && !(ready & (ready - 1)))
		return __builtin_ctz(ready);
	high = next_entry(a, HIGH, ready);

	if (high < 0 || (a->limit != 255 && a->high_left <= 0)) {
		low = next_entry(a, LOW, ready);
		if (low >= 0) {
			a->high_left = a->limit ? a->limit * 4096 : 1;
			return take(a, LOW, low, bytes);
		}
	}
	if (high >= 0) {
		unsigned int vl = take(a, HIGH, high, bytes);

		a->high_left -= bytes[vl];
		return vl;
	}
	/* In neither table: it may be sent when nothing else is. */
	return __builtin_ctz(ready);
}
