// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A lane for each partition: colours of a graph, in which partitions are neighbours that share a
 * link. One of them that is PFTREE_VLANE must have another lane than the other. Two that are
 * PFTREE_DEF should, where lanes are left.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pftree.h"

#define MOST_STEPS	20000

enum { APART = 1, MUST };

struct painter {
	struct pftree *p;
	uint8_t *share;		/* [part * parts + part] */
	uint32_t *order;
	uint32_t *degrees;
	uint32_t steps;
};

static void find_neighbours(struct painter *m)
{
	const struct pftree *p = m->p;
	size_t n = p->n_parts;

	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < n; b++) {
			if (!p->meet[a * n + b] && !p->pairs[a * n + b])
				continue;
			m->share[a * n + b] = p->parts[a].isolation == PFTREE_VLANE ||
					      p->parts[b].isolation == PFTREE_VLANE ? MUST : APART;
			m->degrees[a]++;
		}
}

static int by_need(const void *a, const void *b, void *context)
{
	const struct painter *m = context;
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
	enum pftree_isolation x = m->p->parts[one].isolation, y = m->p->parts[other].isolation;

	if ((x == PFTREE_VLANE) != (y == PFTREE_VLANE))
		return x == PFTREE_VLANE ? -1 : 1;
	if (m->degrees[one] != m->degrees[other])
		return m->degrees[one] > m->degrees[other] ? -1 : 1;
	return one < other ? -1 : 1;
}

/* How many neighbours each lane has already; those that must not share it: NOBODY. */
static void count_lanes(const struct painter *m, uint32_t part, uint32_t *counts)
{
	const struct pftree *p = m->p;

	memset(counts, 0, p->lanes * sizeof(*counts));
	for (uint32_t i = 0; i < p->n_parts; i++) {
		uint8_t how = m->share[part * (size_t)p->n_parts + i];
		int lane = p->parts[i].lane;

		if (!how || lane == PFTREE_NO_LANE || counts[lane] == PFTREE_NOBODY)
			continue;
		counts[lane] = how == MUST ? PFTREE_NOBODY : counts[lane] + 1;
	}
}

static bool paint(struct painter *m, uint32_t at)
{
	uint32_t counts[16], part;

	if (at == m->p->n_parts)
		return true;
	part = m->order[at];
	count_lanes(m, part, counts);
	for (int tried = 0; tried < m->p->lanes; tried++) {
		int best = 0;

		for (int lane = 1; lane < m->p->lanes; lane++)
			if (counts[lane] < counts[best])
				best = lane;
		if (counts[best] == PFTREE_NOBODY || m->steps++ > MOST_STEPS)
			break;
		m->p->parts[part].lane = best;
		if (paint(m, at + 1))
			return true;
		counts[best] = PFTREE_NOBODY;
	}
	m->p->parts[part].lane = PFTREE_NO_LANE;
	return false;
}

/**
 * pftree_lanes_assign - to all partitions
 * @p: the users of links are counted
 *
 * Return: 0, -ENOSPC if there are too few, or -ENOMEM.
 */
int pftree_lanes_assign(struct pftree *p)
{
	struct painter m = {
		.p = p,
		.share = calloc((size_t)p->n_parts * p->n_parts + 1, 1),
		.order = calloc(p->n_parts + 1, sizeof(*m.order)),
		.degrees = calloc(p->n_parts + 1, sizeof(*m.degrees)),
	};
	int rc = -ENOMEM;

	if (m.share && m.order && m.degrees) {
		for (uint32_t i = 0; i < p->n_parts; i++) {
			p->parts[i].lane = PFTREE_NO_LANE;
			m.order[i] = i;
		}
		find_neighbours(&m);
		qsort_r(m.order, p->n_parts, sizeof(*m.order), by_need, &m);
		rc = paint(&m, 0) ? 0 : -ENOSPC;
	}
	free(m.share);
	free(m.order);
	free(m.degrees);
	return rc;
}
