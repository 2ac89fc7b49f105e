// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The tables an SM writes: forwarding, SLtoVL, VL arbitration, P_Keys, GUIDs. */
#include <string.h>

#include "journal.h"
#include "sma.h"

unsigned int sma_lft(struct fabric *f, uint32_t at, uint32_t mod, int set, uint8_t *data)
{
	struct node *node = &f->nodes[at];
	uint32_t first = mod * 64, top;

	if (node->type != NET_SWITCH)
		return MAD_BAD_ATTR;
	if (mod >= UCAST_LIDS / 64)
		return MAD_BAD_VALUE;
	if (set) {
		top = node->lft_top;
		node_lft_set(f, at, first + 63, data[63]);
		memcpy(node->lft + first, data, 64);
		if (be16_at(node->sma->switch_info + 6))
			node->lft_top = top;	/* LinearFDBTop rules once it has been set */
		journal_block(f, at, mod);
		journal_top(f, at);
	}
	for (unsigned int i = 0; i < 64; i++)
		data[i] = first + i < node->lft_room ? node->lft[first + i] : 255;
	return 0;
}

unsigned int sma_mft(struct fabric *f, uint32_t at, uint32_t mod, int set, uint8_t *data)
{
	struct node *node = &f->nodes[at];
	uint32_t block = mod & 0x1ff, position = mod >> 28;

	if (node->type != NET_SWITCH)
		return MAD_BAD_ATTR;
	if (block >= MCAST_BLOCKS || position > node->nports / 16u)
		return MAD_BAD_VALUE;
	for (unsigned int i = 0; i < 32; i++) {
		uint16_t *mask = &node->mft[(block * 32 + i) * 16 + position];

		if (set)
			*mask = be16_at(data + 2 * i);
		put_be16(data + 2 * i, *mask);
	}
	return 0;
}

unsigned int sma_sl2vl(struct fabric *f, uint32_t at, unsigned int local, uint32_t mod, int set,
		       uint8_t *data)
{
	struct node *node = &f->nodes[at];
	unsigned int in = 0, out = 0;
	uint8_t *table = node->sl2vl;

	(void)local;
	if (node->type == NET_SWITCH) {
		in = mod >> 8 & 0xff;
		out = mod & 0xff;
		if (in > node->nports || out > node->nports)
			return MAD_BAD_VALUE;
		table += (in * (node->nports + 1) + out) * f->config.sls;
	}
	for (unsigned int i = 0; i < 8; i++) {
		if (set) {
			relay_set_vl(f, node, in, out, 2 * i, data[i] >> 4);
			relay_set_vl(f, node, in, out, 2 * i + 1, data[i] & 15);
		}
		data[i] = table[2 * i] << 4 | table[2 * i + 1];
	}
	if (set)
		journal_turn(f, at, in, out);
	memset(data + 8, 0, 56);
	return 0;
}

unsigned int sma_vlarb(struct fabric *f, uint32_t at, unsigned int local, uint32_t mod, int set,
		       uint8_t *data)
{
	struct node *node = &f->nodes[at];
	unsigned int block = mod >> 16, num = node->type == NET_SWITCH ? mod & 0xffff : local;
	struct vl_weight *entry;
	struct port *port;

	if (block < 1 || block > 4 || num > node->nports)
		return MAD_BAD_VALUE;
	port = &f->ports[node->first + num];
	/* 1 and 2: the low priority table's halves, 3 and 4: the high priority table's. */
	entry = port->arbiter->table[block > 2] + (block % 2 ? 0 : 32);
	for (unsigned int i = 0; i < 32; i++) {
		if (set)
			entry[i] = (struct vl_weight){ data[2 * i] & 15, data[2 * i + 1] };
		data[2 * i] = entry[i].vl;
		data[2 * i + 1] = entry[i].weight;
	}
	arbiter_changed(port);
	return 0;
}

unsigned int sma_pkeys(struct fabric *f, uint32_t at, unsigned int local, uint32_t mod, int set,
		       uint8_t *data)
{
	struct node *node = &f->nodes[at];
	unsigned int num = node->type == NET_SWITCH ? mod >> 16 : local;

	if (mod & 0xffff || num > node->nports)
		return MAD_BAD_VALUE;
	if (set)
		memcpy(f->port_sma[node->first + num].pkeys, data, 64);
	memcpy(data, f->port_sma[node->first + num].pkeys, 64);
	return 0;
}

unsigned int sma_guid_info(struct fabric *f, uint32_t at, unsigned int local, uint32_t mod,
			   int set, uint8_t *data)
{
	struct node *node = &f->nodes[at];
	struct port_sma *ps = &f->port_sma[node->first +
					   (node->type == NET_SWITCH ? 0 : local)];

	if (mod)
		return MAD_BAD_VALUE;
	if (set)	/* GUID 0 is the port's own and read-only */
		memcpy(&ps->guids[1], data + 8, 56);
	memcpy(data, ps->guids, 64);
	return 0;
}
