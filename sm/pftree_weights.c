// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* How much traffic a host receives, beside the others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pftree.h"

static bool weight_means(const struct pftree_weight *weight, const struct rsm_topo_end *end)
{
	size_t n = strlen(weight->name);

	if (!n)
		return weight->guid == end->guid;
	return !strncmp(end->name, weight->name, n) && (!end->name[n] || end->name[n] == ' ');
}

/**
 * pftree_weigh - the ends
 * @p: its model is made
 * @policy: what it says of a weight, counts
 *
 * The others have a weight from 1 to 100 by what was counted, which is the paper's equation 1.
 * Return: 0 or -ENOMEM.
 */
int pftree_weigh(struct pftree *p, const struct pftree_policy *policy)
{
	uint64_t least = UINT64_MAX, most = 0;

	p->weights = calloc(p->topo->n_ends + 1, sizeof(*p->weights));
	if (!p->weights)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->topo->n_ends; i++) {
		uint64_t received = p->topo->ends[i].received;

		least = received < least ? received : least;
		most = received > most ? received : most;
	}
	for (uint32_t i = 0; i < p->topo->n_ends; i++) {
		const struct rsm_topo_end *end = &p->topo->ends[i];

		p->weights[i] = 1;
		if (most > least)
			p->weights[i] += (double)(end->received - least) * 99 / (most - least);
		for (uint32_t w = 0; w < policy->n_weights; w++)
			if (weight_means(&policy->weights[w], end))
				p->weights[i] = policy->weights[w].weight;
	}
	return 0;
}
