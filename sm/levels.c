// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "levels.h"

#define NONE 0xff /* no level: what an engine is given that has none */

/* Also the lowest bits depend on all of both, from which an engine takes a remainder. */
static uint32_t seed_of(uint16_t slid, uint16_t dlid)
{
	uint32_t x = (uint32_t)slid << 16 | dlid;

	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68b;
	return x ^ x >> 16;
}

/*
 * The lots that it draws are those of the pair, whoever else there is. The stream from which other engines draw is
 * as it was: one as short as this would not do for them.
 */
static uint8_t ask_steadily(rsm_path_sl ask, void *context, uint16_t slid, uint16_t dlid)
{
	char lots[8];
	char *stream = initstate(seed_of(slid, dlid), lots, sizeof(lots));
	uint8_t sl = ask(context, NONE, cl_hton16(slid), cl_hton16(dlid));

	setstate(stream);
	return sl;
}

/**
 * rsm_levels_ask - ask for all paths
 * @levels: filled in; what it knew is forgotten
 * @subn: its LIDs are at the ports that the engine has seen them at
 * @ask: the engine's
 * @context: for @ask
 * @steady: each pair of LIDs draws the same lots each time
 *
 * OpenSM's lock is held exclusively: no other thread asks, or draws.
 *
 * Return: 0 or -ENOMEM: nothing is known then.
 */
int rsm_levels_ask(struct rsm_levels *levels, const osm_subn_t *subn, rsm_path_sl ask, void *context, bool steady)
{
	const cl_ptr_vector_t *ports = &subn->port_lid_tbl;
	uint16_t *lids;

	rsm_levels_free(levels);
	levels->n_lids = cl_ptr_vector_get_size(ports);
	levels->index = calloc(levels->n_lids + 1, sizeof(*levels->index));
	lids = calloc(levels->n_lids + 1, sizeof(*lids));
	if (!levels->index || !lids)
		goto err;
	for (uint32_t lid = 1; lid < levels->n_lids; lid++)
		if (cl_ptr_vector_get(ports, lid)) {
			lids[levels->n++] = lid;
			levels->index[lid] = levels->n;
		}
	levels->sl = malloc((size_t)levels->n * levels->n + 1);
	if (!levels->sl)
		goto err;
	for (uint32_t from = 0; from < levels->n; from++)
		for (uint32_t to = 0; to < levels->n; to++)
			levels->sl[(size_t)from * levels->n + to] =
				steady ? ask_steadily(ask, context, lids[from], lids[to]) :
					 ask(context, NONE, cl_hton16(lids[from]), cl_hton16(lids[to]));
	free(lids);
	return 0;
err:
	free(lids);
	rsm_levels_free(levels);
	return -ENOMEM;
}

static uint32_t index_of(const struct rsm_levels *levels, uint16_t lid)
{
	return lid < levels->n_lids ? levels->index[lid] : 0;
}

/**
 * rsm_levels_find - what it has said
 * @levels: of it
 * @slid: of the path, as the engine knows it
 * @dlid: the same
 * @sl: filled in, if it has said one
 *
 * OpenSM's lock is held.
 */
bool rsm_levels_find(const struct rsm_levels *levels, uint16_t slid, uint16_t dlid, uint8_t *sl)
{
	uint32_t from = index_of(levels, slid), to = index_of(levels, dlid);
	uint8_t said = from && to ? levels->sl[(size_t)(from - 1) * levels->n + to - 1] : NONE;

	if (said == NONE)
		return false;
	*sl = said;
	return true;
}

/** rsm_levels_free - nothing is known */
void rsm_levels_free(struct rsm_levels *levels)
{
	free(levels->index);
	free(levels->sl);
	*levels = (struct rsm_levels) { 0 };
}
