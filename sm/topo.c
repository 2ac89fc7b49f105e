// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "topo.h"

static int by_switch_guid(const void *a, const void *b)
{
	const struct rsm_topo_switch *one = a, *other = b;

	return one->guid < other->guid ? -1 : one->guid > other->guid;
}

static int by_end_guid(const void *a, const void *b)
{
	const struct rsm_topo_end *one = a, *other = b;

	return one->guid < other->guid ? -1 : one->guid > other->guid;
}

/** rsm_topo_sort - by GUIDs, before anything has indices */
void rsm_topo_sort(struct rsm_topo *topo)
{
	qsort(topo->switches, topo->n_switches, sizeof(*topo->switches), by_switch_guid);
	qsort(topo->ends, topo->n_ends, sizeof(*topo->ends), by_end_guid);
}

/** rsm_topo_switch_index - of the switch with this node GUID, or -1 */
int32_t rsm_topo_switch_index(const struct rsm_topo *topo, uint64_t guid)
{
	struct rsm_topo_switch wanted = { .guid = guid };
	struct rsm_topo_switch *found = bsearch(&wanted, topo->switches, topo->n_switches,
						sizeof(wanted), by_switch_guid);

	return found ? found - topo->switches : -1;
}

/** rsm_topo_end_index - of the end with this port GUID, or -1 */
int32_t rsm_topo_end_index(const struct rsm_topo *topo, uint64_t guid)
{
	struct rsm_topo_end wanted = { .guid = guid };
	struct rsm_topo_end *found = bsearch(&wanted, topo->ends, topo->n_ends, sizeof(wanted),
					     by_end_guid);

	return found ? found - topo->ends : -1;
}

/**
 * rsm_topo_ends_by_lid - whose LID it is
 * @topo: the fabric
 *
 * Return: an end's index for each LID up to @max_lid, UINT32_MAX where it is nobody's; to be freed. NULL: no
 * memory.
 */
uint32_t *rsm_topo_ends_by_lid(const struct rsm_topo *topo)
{
	uint32_t *end_of = malloc((topo->max_lid + 1u) * sizeof(*end_of));

	if (!end_of)
		return NULL;
	memset(end_of, 0xff, (topo->max_lid + 1u) * sizeof(*end_of));
	for (uint32_t i = 0; i < topo->n_ends; i++)
		for (unsigned int lid = 0; lid < topo->ends[i].n_lids; lid++)
			end_of[topo->ends[i].lid + lid] = i;
	return end_of;
}

/**
 * rsm_topo_free - all that hangs on it
 * @topo: its arrays come from malloc(); names belong to who gave them
 */
void rsm_topo_free(struct rsm_topo *topo)
{
	for (uint32_t i = 0; i < topo->n_switches; i++)
		free(topo->switches[i].ports);
	for (uint32_t i = 0; i < topo->n_partitions; i++)
		free(topo->partitions[i].members);
	free(topo->switches);
	free(topo->ends);
	free(topo->partitions);
	*topo = (struct rsm_topo) { 0 };
}
