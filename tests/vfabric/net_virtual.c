// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* HCAs with virtual functions (SR-IOV), as a switch that is part of the HCA. */
#include <stdlib.h>
#include <string.h>

#include "net.h"

/* Puts a switch between a host and what it is plugged into: port 1 leads there, port 2 to the host. */
static uint32_t put_between(struct net *net, uint32_t host, unsigned int ports)
{
	const struct net_port uplink = net->nodes[host].ports[1];
	char id[64], desc[64];
	uint32_t sw;

	snprintf(id, sizeof(id), "%.50s-hca", net->nodes[host].id);
	snprintf(desc, sizeof(desc), "%.50s vswitch", net->nodes[host].id);
	sw = net_add(net, NET_SWITCH, id, desc, ports);
	if (sw == NET_NONE)
		return NET_NONE;
	net_unplug(net, host, 1);
	if (net_plug(net, sw, 1, uplink.peer, uplink.peer_port) || net_plug(net, sw, 2, host, 1))
		return NET_NONE;
	return sw;
}

int net_vswitch(struct net *net, uint32_t first, unsigned int vfs)
{
	uint32_t end = net->n;

	for (uint32_t host = first; host < end; host++) {
		uint32_t sw;

		if (net->nodes[host].type != NET_HCA || net->nodes[host].nports != 1 ||
		    net->nodes[host].ports[1].peer == NET_NONE)
			continue;
		sw = put_between(net, host, vfs + 2);
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
