// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "layers.h"

#define MOST_PATHS (1u << 28)

static size_t place_of(const struct rsm_layers *layers, uint32_t end, uint32_t lid)
{
	return (size_t)end * ((layers->n_lids + 1) / 2) + lid / 2;
}

/* All paths but those of an end to itself. */
static void ask_all(const struct rsm_topo *topo, struct rsm_layers *layers)
{
	for (uint32_t from = 0; from < topo->n_ends; from++)
		for (uint32_t lid = 1; lid < layers->n_lids; lid++) {
			uint8_t sl;

			if (layers->end_of[lid] == from)
				continue;
			sl = layers->ask(layers->context, topo->ends[from].lid, lid) & 15;
			layers->sl[place_of(layers, from, lid)] |= sl << (lid % 2 * 4);
			if (sl >= layers->n)
				layers->n = sl + 1;
		}
}

/**
 * rsm_layers_make - ask for all paths between ends, and from them to switches
 * @topo: the fabric
 * @layers: with @ask and @context; the rest is filled in
 *
 * Return: 0 or a negative error number, -E2BIG for a fabric that is too large; then there is nothing to
 * free.
 */
int rsm_layers_make(const struct rsm_topo *topo, struct rsm_layers *layers)
{
	layers->n_lids = topo->max_lid + 1u;
	layers->n = 1;
	if ((uint64_t)topo->n_ends * layers->n_lids > MOST_PATHS)
		return -E2BIG;
	layers->sl = calloc(place_of(layers, topo->n_ends, 0) + 1, 1);
	layers->end_of = rsm_topo_ends_by_lid(topo);
	if (!layers->sl || !layers->end_of) {
		rsm_layers_free(layers);
		return -ENOMEM;
	}
	ask_all(topo, layers);
	return 0;
}

/**
 * rsm_layers_sl - what it has said; of paths from switches it is asked now
 * @context: struct rsm_layers
 * @slid: from where
 * @dlid: to where
 */
uint8_t rsm_layers_sl(void *context, uint16_t slid, uint16_t dlid)
{
	const struct rsm_layers *layers = context;

	if (slid >= layers->n_lids || dlid >= layers->n_lids || layers->end_of[slid] == UINT32_MAX)
		return layers->ask(layers->context, slid, dlid);
	return layers->sl[place_of(layers, layers->end_of[slid], dlid)] >> (dlid % 2 * 4) & 15;
}

/** rsm_layers_free - what it has said */
void rsm_layers_free(struct rsm_layers *layers)
{
	free(layers->end_of);
	free(layers->sl);
	*layers = (struct rsm_layers) { 0 };
}
