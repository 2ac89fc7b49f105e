/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the simulations of papers 002 and 003 have in common. */
#ifndef PAPERS_H
#define PAPERS_H

#include "fabric.h"

/* Index of the node with this GUID, or NONE. */
static uint32_t node_of(const struct fabric *f, uint64_t guid)
{
	for (uint32_t i = 0; i < f->nnodes; i++)
		if (f->nodes[i].net->guid == guid)
			return i;
	return NONE;
}

/* Links are 1x SDR, whose 2.5 Gbit/s are 2 of data, as the papers'. */
static void slow_links(struct net *net)
{
	for (unsigned int i = 0; i < net->n; i++) {
		for (unsigned int port = 1; port <= net->nodes[i].nports; port++) {
			net->nodes[i].ports[port].width = 1;
			net->nodes[i].ports[port].speed = 1;
		}
	}
}

#endif
