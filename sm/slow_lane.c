// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A channel is a cable in one direction; it waits for the next one of each path that goes through it. If no circle
 * closes with all paths in one lane, none does with any of them in any lanes. Else it depends on who is a hot spot,
 * and on what else is in that lane: nobody can know that before.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "slow_lane.h"

#define OUTS 256 /* ports of a switch */

/**
 * struct channels - all of them, by switch and port
 * @topo: the fabric
 * @lft: tables by switch
 * @first: by switch: number of the channel out of port 0
 * @switch_of: by channel
 * @n: of them
 * @leaf: by switch: whether an end is there
 * @next: by channel: ports by which paths leave the switch where it leads, as bits
 * @held: by channel: how many wait for it, of those not known yet to be in no circle
 * @left: channels that nobody waits for any more
 * @seen: by switch: the destination + 1 whose way from there is known
 */
struct channels {
	const struct rsm_topo *topo;
	uint8_t *const *lft;
	uint32_t *first;
	uint32_t *switch_of;
	uint32_t n;
	bool *leaf;
	uint8_t (*next)[OUTS / 8];
	uint32_t *held;
	uint32_t *left;
	uint32_t *seen;
};

static const struct rsm_topo_port *way_out(const struct channels *c, uint32_t sw, uint16_t lid)
{
	uint8_t out = c->lft[sw][lid];

	if (!out || out >= c->topo->switches[sw].n_ports || c->topo->switches[sw].ports[out].peer < 0)
		return NULL;
	return &c->topo->switches[sw].ports[out];
}

static void follow(struct channels *c, uint32_t sw, uint16_t lid)
{
	const struct rsm_topo_port *port;

	while (c->seen[sw] != lid + 1u && (port = way_out(c, sw, lid))) {
		uint8_t *next = c->next[c->first[sw] + c->lft[sw][lid]];
		uint8_t out = c->lft[port->peer][lid];

		c->seen[sw] = lid + 1u;
		if (way_out(c, port->peer, lid) && !(next[out / 8] >> out % 8 & 1)) {
			next[out / 8] |= 1 << out % 8;
			c->held[c->first[port->peer] + out]++;
		}
		sw = port->peer;
	}
}

static void follow_all(struct channels *c)
{
	for (uint32_t i = 0; i < c->topo->n_ends; i++)
		c->leaf[c->topo->ends[i].leaf] = true;
	for (uint32_t to = 0; to < c->topo->n_ends; to++)
		for (unsigned int lid = 0; lid < c->topo->ends[to].n_lids; lid++)
			for (uint32_t sw = 0; sw < c->topo->n_switches; sw++)
				if (c->leaf[sw])
					follow(c, sw, c->topo->ends[to].lid + lid);
}

/* A channel that nobody waits for is in no circle, and waits for none that is held by it alone. */
static bool circle(struct channels *c)
{
	uint32_t n = 0, done = 0;

	for (uint32_t i = 0; i < c->n; i++)
		if (!c->held[i])
			c->left[n++] = i;
	while (done < n) {
		uint32_t channel = c->left[done++], sw = c->switch_of[channel];
		const struct rsm_topo_port *port = &c->topo->switches[sw].ports[channel - c->first[sw]];

		for (unsigned int out = 0; port->peer >= 0 && out < OUTS; out++)
			if (c->next[channel][out / 8] >> out % 8 & 1 &&
			    !--c->held[c->first[port->peer] + out])
				c->left[n++] = c->first[port->peer] + out;
	}
	return n < c->n;
}

/**
 * rsm_slow_lane_loops - whether paths between ends can wait for one another in a circle if they are in one lane
 * @topo: the fabric
 * @lft: by the switch's index: its table, up to the highest LID
 *
 * Return: 1, 0, or -ENOMEM.
 */
int rsm_slow_lane_loops(const struct rsm_topo *topo, uint8_t *const *lft)
{
	struct channels c = { .topo = topo, .lft = lft };
	int rc = -ENOMEM;

	c.first = calloc(topo->n_switches + 1, sizeof(*c.first));
	c.seen = calloc(topo->n_switches + 1, sizeof(*c.seen));
	c.leaf = calloc(topo->n_switches + 1, sizeof(*c.leaf));
	for (uint32_t i = 0; c.first && i < topo->n_switches; i++) {
		c.first[i] = c.n;
		c.n += topo->switches[i].n_ports;
	}
	c.switch_of = calloc(c.n + 1, sizeof(*c.switch_of));
	for (uint32_t i = 0; c.switch_of && i < topo->n_switches; i++)
		for (unsigned int port = 0; port < topo->switches[i].n_ports; port++)
			c.switch_of[c.first[i] + port] = i;
	c.next = calloc(c.n + 1, sizeof(*c.next));
	c.held = calloc(c.n + 1, sizeof(*c.held));
	c.left = calloc(c.n + 1, sizeof(*c.left));
	if (c.first && c.switch_of && c.seen && c.leaf && c.next && c.held && c.left) {
		follow_all(&c);
		rc = circle(&c);
	}
	free(c.first);
	free(c.switch_of);
	free(c.seen);
	free(c.leaf);
	free(c.next);
	free(c.held);
	free(c.left);
	return rc;
}
