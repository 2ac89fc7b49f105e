/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A topology for routing engines out of vfabric's generators and files, with no OpenSM. */
#ifndef TOPO_NET_H
#define TOPO_NET_H

#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "topo.h"

/* Ends get LIDs from 1 on in the order of the net, 1 << lmc each, then switches one each. */
static int topo_of_net(const struct net *net, unsigned int lmc, uint8_t vls, struct rsm_topo *topo)
{
	uint16_t lid = 1;

	*topo = (struct rsm_topo) {
		.switches = calloc(net->n + 1, sizeof(*topo->switches)),
		.ends = calloc(net->n + 1, sizeof(*topo->ends)),
		.vls = vls,
	};
	if (!topo->switches || !topo->ends)
		return -1;
	for (unsigned int i = 0; i < net->n; i++) {
		const struct net_node *node = &net->nodes[i];

		if (node->type == NET_SWITCH || node->ports[1].peer == NET_NONE)
			continue;
		lid = (lid + (1u << lmc) - 1) & -(1u << lmc);
		topo->ends[topo->n_ends++] = (struct rsm_topo_end) {
			.guid = node->guid + 1,
			.name = node->desc,
			.lid = lid,
			.n_lids = 1u << lmc,
			.leaf_port = node->ports[1].peer_port,
			.vls = vls,
		};
		lid += 1u << lmc;
	}
	for (unsigned int i = 0; i < net->n; i++) {
		const struct net_node *node = &net->nodes[i];

		if (node->type != NET_SWITCH)
			continue;
		topo->switches[topo->n_switches] = (struct rsm_topo_switch) {
			.guid = node->guid,
			.name = node->desc,
			.lid = lid++,
			.n_ports = node->nports + 1,
			.ports = calloc(node->nports + 1, sizeof(struct rsm_topo_port)),
		};
		if (!topo->switches[topo->n_switches++].ports)
			return -1;
	}
	topo->max_lid = lid - 1;
	rsm_topo_sort(topo);
	for (unsigned int i = 0; i < net->n; i++) {
		const struct net_node *node = &net->nodes[i];
		struct rsm_topo_switch *sw;
		int32_t at;

		if (node->type != NET_SWITCH)
			continue;
		at = rsm_topo_switch_index(topo, node->guid);
		sw = &topo->switches[at];
		for (unsigned int port = 0; port <= node->nports; port++) {
			struct rsm_topo_port *to = &sw->ports[port];
			const struct net_node *peer;

			*to = (struct rsm_topo_port) { .peer = RSM_TOPO_NONE, .end = -1 };
			if (!port || node->ports[port].peer == NET_NONE)
				continue;
			peer = &net->nodes[node->ports[port].peer];
			to->peer_port = node->ports[port].peer_port;
			to->vls = vls;
			if (peer->type == NET_SWITCH) {
				to->peer = rsm_topo_switch_index(topo, peer->guid);
				continue;
			}
			to->end = rsm_topo_end_index(topo, peer->guid + 1);
			to->peer = to->end < 0 ? RSM_TOPO_NONE : RSM_TOPO_END;
			if (to->end >= 0)
				topo->ends[to->end].leaf = at;
		}
	}
	return 0;
}

#endif
