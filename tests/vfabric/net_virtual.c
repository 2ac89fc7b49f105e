// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* HCAs with virtual functions (SR-IOV), as a switch that is part of the HCA. */
#include <stdlib.h>
#include <string.h>

#include "net.h"

/* Puts a switch between a host (port 2) and what it is plugged into (port 1). */
static uint32_t put_between(struct net *net, uint32_t host, const char *what, unsigned int vfs)
{
	const struct net_port uplink = net->nodes[host].ports[1];
	char id[64], desc[64];
	uint32_t sw;

	snprintf(id, sizeof(id), "%.50s-hca", net->nodes[host].id);
	snprintf(desc, sizeof(desc), "%.40s %s", net->nodes[host].id, what);
	sw = net_add(net, NET_SWITCH, id, desc, vfs + 2);
	if (sw == NET_NONE)
		return NET_NONE;
	net_unplug(net, host, 1);
	if (net_plug(net, sw, 1, uplink.peer, uplink.peer_port) || net_plug(net, sw, 2, host, 1))
		return NET_NONE;
	return sw;
}

static int has_one_cable(const struct net_node *node)
{
	return node->type == NET_HCA && node->nports == 1 && node->ports[1].peer != NET_NONE;
}

int net_vswitch(struct net *net, uint32_t first, unsigned int vfs)
{
	uint32_t end = net->n;

	for (uint32_t host = first; host < end; host++) {
		uint32_t sw;

		if (!has_one_cable(&net->nodes[host]))
			continue;
		sw = put_between(net, host, "vswitch", vfs);
		if (sw == NET_NONE)
			return -1;
		for (unsigned int i = 1; i <= vfs; i++) {
			char id[64];
			uint32_t vf;

			snprintf(id, sizeof(id), "%.50sv%u", net->nodes[host].id, i);
			vf = net_add(net, NET_HCA, id, NULL, 1);
			if (vf == NET_NONE || net_plug(net, vf, 1, sw, i + 2))
				return -1;
		}
	}
	return 0;
}

int net_shared(struct net *net, uint32_t first, unsigned int vfs)
{
	uint32_t end = net->n;

	if (vfs > NET_MAX_SHARED_VFS) {
		snprintf(net->error, sizeof(net->error), "at most %u VFs share a port",
			 NET_MAX_SHARED_VFS);
		return -1;
	}
	for (uint32_t host = first; host < end; host++) {
		uint32_t inside;

		if (!has_one_cable(&net->nodes[host]))
			continue;
		inside = put_between(net, host, "HCA", vfs);
		if (inside == NET_NONE)
			return -1;
		net->nodes[inside].shared = 1;
	}
	return 0;
}
