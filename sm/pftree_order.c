// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "pftree.h"

/** pftree_is_strict - whether an end is in a partition that is at least so isolated */
bool pftree_is_strict(const struct pftree *p, uint32_t end, enum pftree_isolation least)
{
	const struct pftree_class *class = &p->classes[p->class_of[end]];

	for (uint32_t i = 0; i < class->n; i++)
		if (p->parts[p->members[class->first + i].part].isolation >= least)
			return true;
	return false;
}

struct ranking {
	const struct pftree *p;
	bool weighted;
};

/* The strictest first, and then, with weights, the heaviest; else by port. */
static int by_rank(const void *a, const void *b, void *context)
{
	const struct ranking *ranking = context;
	const struct pftree *p = ranking->p;
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
	int x = pftree_is_strict(p, one, PFTREE_VLANE), y = pftree_is_strict(p, other, PFTREE_VLANE);

	if (x != y)
		return y - x;
	if (ranking->weighted && p->weights[one] != p->weights[other])
		return p->weights[other] - p->weights[one];
	return (int)p->topo->ends[one].leaf_port - (int)p->topo->ends[other].leaf_port;
}

/**
 * pftree_order - in what order the ends of a leaf are routed
 * @p: the work
 * @leaf: its number in the fat tree
 * @weighted: the heavy ones of a partition first
 * @ends: their indices, and as much room behind them
 * @last: room for one by class: the place of its last end
 *
 * The paper's algorithm 2: ends of a partition come in steps of the number of links up, so that
 * each link, in turn, gets those of one partition.
 * Return: how many.
 */
int pftree_order(const struct pftree *p, uint32_t leaf, bool weighted, uint32_t *ends, int64_t *last)
{
	struct ranking ranking = { p, weighted };
	const struct rsm_ft_switch *sw = &p->tree.switches[p->tree.leaves[leaf]];
	uint32_t n = p->tree.first_end[leaf + 1] - p->tree.first_end[leaf], n_up = 0, free_slot = 0;
	uint32_t *sorted = ends + n;

	for (unsigned int g = 0; g < sw->n_up; g++)
		n_up += sw->up[g].n;
	memcpy(ends, &p->tree.ends[p->tree.first_end[leaf]], n * sizeof(*ends));
	qsort_r(ends, n, sizeof(*ends), by_rank, &ranking);
	if (n <= n_up)
		return n;
	for (uint32_t i = 0; i < n; i++) {
		last[p->class_of[ends[i]]] = -1;
		sorted[i] = PFTREE_NOBODY;
	}
	for (uint32_t i = 0; i < n; i++) {
		int64_t *slot = &last[p->class_of[ends[i]]];

		*slot = *slot < 0 ? n : *slot + n_up;
		if (*slot >= n || sorted[*slot] != PFTREE_NOBODY) {
			while (sorted[free_slot] != PFTREE_NOBODY)
				free_slot++;
			*slot = free_slot;
		}
		sorted[*slot] = ends[i];
	}
	memcpy(ends, sorted, n * sizeof(*sorted));
	return n;
}
