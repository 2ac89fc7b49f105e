// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "direction.h"

/* How far the switches are that @root reaches. Returns how many these are, they begin @order. */
static uint32_t visit(const struct rsm_topo *topo, uint32_t root, uint32_t *distance,
		      uint32_t *order)
{
	uint32_t n = 0;

	memset(distance, 0xff, topo->n_switches * sizeof(*distance));
	distance[root] = 0;
	order[n++] = root;
	for (uint32_t at = 0; at < n; at++) {
		const struct rsm_topo_switch *sw = &topo->switches[order[at]];

		for (unsigned int port = 1; port < sw->n_ports; port++) {
			int32_t peer = sw->ports[port].peer;

			if (peer < 0 || distance[peer] != UINT32_MAX)
				continue;
			distance[peer] = distance[order[at]] + 1;
			order[n++] = peer;
		}
	}
	return n;
}

static uint32_t links(const struct rsm_topo_switch *sw)
{
	uint32_t n = 0;

	for (unsigned int port = 1; port < sw->n_ports; port++)
		n += sw->ports[port].peer >= 0;
	return n;
}

/*
 * The switch with the most links of what is connected, of those the first by GUID: a change
 * elsewhere seldom makes it another, which would turn many links round.
 */
static uint32_t find_root(const struct rsm_topo *topo, const uint32_t *component, uint32_t n)
{
	uint32_t root = component[0], most = links(&topo->switches[root]);

	for (uint32_t i = 1; i < n; i++) {
		uint32_t has = links(&topo->switches[component[i]]);

		if (has < most || (has == most && component[i] > root))
			continue;
		most = has;
		root = component[i];
	}
	return root;
}

/* Places are given from the root on, those of the same distance by GUID. */
static void give_places(const struct rsm_topo *topo, const uint32_t *distance,
			struct rsm_direction *direction)
{
	uint32_t left = topo->n_switches;

	for (uint32_t d = 0, found = 1; found && left; d++) {
		found = 0;
		for (uint32_t i = 0; i < topo->n_switches; i++) {
			if (distance[i] != d || direction->place[i] != UINT32_MAX)
				continue;
			direction->place[i] = direction->n;
			direction->order[direction->n++] = i;
			found++;
			left--;
		}
	}
}

/**
 * rsm_direction_make - give each link a direction
 * @topo: of the links. Its parts that are not connected get a root each.
 * @direction: for rsm_direction_free()
 *
 * The same topology always has the same directions. Every switch but a root has a link up to one that
 * is nearer to it.
 * Return: 0 or -ENOMEM.
 */
int rsm_direction_make(const struct rsm_topo *topo, struct rsm_direction *direction)
{
	uint32_t size = topo->n_switches + 1, n;
	uint32_t *distance = malloc(size * sizeof(*distance));
	uint32_t *order = malloc(size * sizeof(*order));
	int rc = -ENOMEM;

	direction->n = 0;
	direction->place = malloc(size * sizeof(*direction->place));
	direction->order = malloc(size * sizeof(*direction->order));
	if (!distance || !order || !direction->place || !direction->order)
		goto out;
	memset(direction->place, 0xff, size * sizeof(*direction->place));
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		if (direction->place[i] != UINT32_MAX)
			continue;
		n = visit(topo, i, distance, order);
		visit(topo, find_root(topo, order, n), distance, order);
		give_places(topo, distance, direction);
	}
	rc = 0;
out:
	free(distance);
	free(order);
	if (rc)
		rsm_direction_free(direction);
	return rc;
}

/** rsm_direction_free - all that hangs on it */
void rsm_direction_free(struct rsm_direction *direction)
{
	free(direction->place);
	free(direction->order);
	*direction = (struct rsm_direction) { 0 };
}

/** rsm_direction_up - whether the switch's link at this port leads up */
bool rsm_direction_up(const struct rsm_topo *topo, const struct rsm_direction *direction,
		      uint32_t sw, uint8_t port)
{
	int32_t peer = topo->switches[sw].ports[port].peer;

	return peer >= 0 && direction->place[peer] < direction->place[sw];
}

static uint32_t links_up(const struct rsm_topo *topo, const struct rsm_direction *direction,
			 uint32_t sw, uint8_t *ports)
{
	uint32_t n = 0;

	for (unsigned int port = 1; port < topo->switches[sw].n_ports; port++)
		if (rsm_direction_up(topo, direction, sw, port))
			ports[n++] = port;
	return n;
}

/**
 * rsm_direction_turns - all turns from a link that leads up to another one
 * @topo: of the links
 * @direction: of them
 * @turns: those that no packet may take; for rsm_turns_free()
 *
 * Return: 0 or -ENOMEM.
 */
int rsm_direction_turns(const struct rsm_topo *topo, const struct rsm_direction *direction,
			struct rsm_turns *turns)
{
	uint8_t up[UINT8_MAX];
	uint64_t room = 0;

	*turns = (struct rsm_turns) { 0 };
	for (uint32_t sw = 0; sw < topo->n_switches; sw++) {
		uint64_t n = links_up(topo, direction, sw, up);

		room += n * n;
	}
	turns->turns = malloc((room + 1) * sizeof(*turns->turns));
	if (!turns->turns)
		return -ENOMEM;
	for (uint32_t sw = 0; sw < topo->n_switches; sw++) {
		uint32_t n = links_up(topo, direction, sw, up);

		for (uint32_t in = 0; in < n; in++)
			for (uint32_t out = 0; out < n; out++)
				if (in != out)
					turns->turns[turns->n++] = (struct rsm_turn) {
						topo->switches[sw].guid, up[in], up[out],
					};
	}
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct rsm_turn *one = a, *other = b;

	if (one->guid != other->guid)
		return one->guid < other->guid ? -1 : 1;
	if (one->in != other->in)
		return one->in < other->in ? -1 : 1;
	return (one->out > other->out) - (one->out < other->out);
}

/** rsm_turns_index - which of them this turn is, or -1 */
int64_t rsm_turns_index(const struct rsm_turns *turns, uint64_t guid, uint8_t in, uint8_t out)
{
	struct rsm_turn wanted = { guid, in, out };
	const struct rsm_turn *found = NULL;

	if (turns->n)
		found = bsearch(&wanted, turns->turns, turns->n, sizeof(wanted), by_place);
	return found ? found - turns->turns : -1;
}

/** rsm_turns_free - all that hangs on them */
void rsm_turns_free(struct rsm_turns *turns)
{
	free(turns->turns);
	*turns = (struct rsm_turns) { 0 };
}
