// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The SMA: checks an SMP, hands its attribute to who has it; NodeInfo and what is as short. */
#include <stdlib.h>
#include <string.h>

#include "journal.h"
#include "manager.h"
#include "sma.h"

enum attr { NODE_DESC = 0x10, NODE_INFO = 0x11, SWITCH_INFO = 0x12, GUID_INFO = 0x14,
	    PORT_INFO = 0x15, PKEY_TABLE = 0x16, SLVL_TABLE = 0x17, VLARB_TABLE = 0x18,
	    LINEAR_TABLE = 0x19, MCAST_TABLE = 0x1b, SM_INFO = 0x20 };

#define PKEYS 32u
#define GUIDS 8u

unsigned int sma_pkey_room(const struct fabric *f, uint32_t port)
{
	(void)f;
	(void)port;
	return PKEYS;
}

static uint8_t vl_cap(unsigned int vls)
{
	return vls >= 15 ? 5 : vls >= 8 ? 4 : vls >= 4 ? 3 : vls >= 2 ? 2 : 1;
}

static uint8_t all_up_to(uint8_t bit)
{
	return bit ? bit * 2 - 1 : 0;
}

static void init_port(struct fabric *f, uint32_t at)
{
	struct port *port = &f->ports[at];
	const struct node *node = &f->nodes[port->node];
	const struct net_port *np = &node->net->ports[port->num];
	struct port_sma *ps = &f->port_sma[at];
	uint8_t *info = ps->info, cap = vl_cap(f->config.vls), width = all_up_to(np->width);
	/* Notices, traps, SLtoVL, CapabilityMask notice, client reregistration, other local changes' notice. */
	uint32_t mask = 1u << 2 | 1u << 3 | 1u << 6 | 1u << 22 | 1u << 25 | 1u << 26;

	ps->pkeys = calloc(PKEYS, sizeof(*ps->pkeys));
	if (ps->pkeys)
		put_be16((uint8_t *)ps->pkeys, 0xffff);
	if (np->width == 16)
		width = 1 | 16;
	else if (np->width == 8)
		width = 1 | 2 | 8;
	if (np->ext)
		mask |= 1u << 14;
	if (!port->is_switch || !port->num) {
		put_be64(info + 8, 0xfe80000000000000ull);
		put_be32(info + 20, mask);
		info[50] = GUIDS;
		info[51] = 18;
		info[52] = 16;
		put_be64((uint8_t *)&ps->guids[0],
			 node->net->guid + (port->is_switch ? 0 : port->num));
	} else {
		put_be32(info + 20, np->ext ? 1u << 14 : 0);
	}
	info[29] = width;
	info[30] = width;
	info[31] = np->width;
	info[32] = all_up_to(np->speed) << 4;
	info[33] = 2;				/* LinkDownDefaultState: polling */
	info[35] = np->speed << 4 | all_up_to(np->speed);
	info[36] = 4 << 4;			/* NeighborMTU 2048 until the SM knows better */
	info[37] = cap << 4;
	info[38] = 0;
	info[39] = 64;
	info[40] = 64;
	info[41] = 5;				/* MTUCap 4096 */
	info[42] = 31;
	info[43] = cap << 4;
	info[62] = np->ext << 4 | all_up_to(np->ext);
	info[63] = all_up_to(np->ext);
	port->mtu = node->shared ? 4096 : 2048;
}

int sma_init(struct fabric *f)
{
	f->port_sma = calloc(f->nports + 1, sizeof(*f->port_sma));
	if (!f->port_sma)
		return -1;
	for (uint32_t p = 0; p < f->nports; p++)
		init_port(f, p);
	for (uint32_t i = 0; i < f->nnodes; i++) {
		struct sma *sma = calloc(1, sizeof(*sma));
		const struct net_node *net = f->nodes[i].net;

		if (!sma)
			return -1;
		f->nodes[i].sma = sma;
		memcpy(sma->desc, net->desc, strnlen(net->desc, 64));
		put_be16(sma->switch_info, UCAST_LIDS);
		put_be16(sma->switch_info + 4, MCAST_BLOCKS * 32);
		put_be16(sma->switch_info + 14, PKEYS);
		sma->switch_info[11] = 31 << 3;
		sma->switch_info[16] = 0xf0 | (net->esp0 ? 8 : 0);
		sma->port_change = 1;
	}
	return 0;
}

void sma_free(struct fabric *f)
{
	for (uint32_t p = 0; f->port_sma && p < f->nports; p++)
		free(f->port_sma[p].pkeys);
	for (uint32_t i = 0; i < f->nnodes; i++) {
		free(f->nodes[i].sma);
		f->nodes[i].sma = NULL;
	}
	free(f->port_sma);
	f->port_sma = NULL;
}

/* IBA 1.2.1 vol 1, 10.9.3: the low 15 bits agree and one of both is a full member. */
int sma_has_pkey(const struct fabric *f, uint32_t port, uint16_t pkey)
{
	const uint16_t *table = f->port_sma ? f->port_sma[port].pkeys : NULL;

	if (!table)
		return 1;
	for (unsigned int i = 0; i < PKEYS; i++) {
		uint16_t mine = be16_at((const uint8_t *)&table[i]);

		if (mine & 0x7fff && (mine & 0x7fff) == (pkey & 0x7fff) && (mine | pkey) & 0x8000)
			return 1;
	}
	return 0;
}

void sma_state_changed(struct fabric *f, uint32_t at, enum port_state old)
{
	const struct port *port = &f->ports[at];
	struct sma *sma = f->nodes[port->node].sma;

	if (!sma)
		return;
	if (!port->is_switch || f->nodes[port->node].shared)
		return;
	/* What the SM does itself (to armed, to active) is no news to it. */
	if (port->state == PORT_DOWN || (old == PORT_DOWN && port->state == PORT_INIT)) {
		sma->port_change = 1;
		trap_link_state(f, port->node);
	}
}

void sma_describe(struct fabric *f, uint32_t node, const char *text)
{
	memset(f->nodes[node].sma->desc, 0, 64);
	memcpy(f->nodes[node].sma->desc, text, strnlen(text, 64));
	trap_description(f, node);
}

/*
 * As somebody at the node would, not the subnet manager, who knows what he sets (IBA 1.4 vol 1, 14.3.13). As
 * with a Set, it would count when the link trains again; the model's links are as fast as their cable.
 */
int sma_enable(struct fabric *f, uint32_t port, unsigned int width, unsigned int speed)
{
	uint8_t *info = f->port_sma[port].info;
	unsigned int was_width = info[29], was_speed = info[35] & 15;

	if (width & ~(unsigned int)info[30] || speed & ~(unsigned int)(info[32] >> 4))
		return -1;
	if (width)
		info[29] = width;
	if (speed)
		info[35] = (info[35] & 0xf0) | speed;
	if (info[29] != was_width || (info[35] & 15u) != was_speed)
		trap_enabled(f, port, info[29] != was_width, (info[35] & 15u) != was_speed);
	return 0;
}

static unsigned int node_info(struct fabric *f, uint32_t at, unsigned int local, uint8_t *data)
{
	const struct node *node = &f->nodes[at];
	const struct net_node *net = node->net;

	memset(data, 0, 64);
	data[0] = 1;
	data[1] = 1;
	data[2] = net->type;
	data[3] = net->nports;
	put_be64(data + 4, net->sysimg ? net->sysimg : net->guid);
	put_be64(data + 12, net->guid);
	put_be64(data + 20, net->guid + (net->type == NET_SWITCH ? 0 : local));
	put_be16(data + 28, PKEYS);
	put_be16(data + 30, net->device);
	put_be32(data + 32, 0xa0);
	put_be32(data + 36, (uint32_t)local << 24 | (net->vendor & 0xffffff));
	return 0;
}

static unsigned int switch_info(struct fabric *f, uint32_t at, int set, uint8_t *data)
{
	struct node *node = &f->nodes[at];
	uint8_t *info = node->sma->switch_info;

	if (node->type != NET_SWITCH)
		return MAD_BAD_ATTR;
	if (set) {
		if (be16_at(data + 6) >= UCAST_LIDS)
			return MAD_BAD_VALUE;
		memcpy(info + 6, data + 6, 5);	/* LinearFDBTop, default ports */
		info[11] = data[11] & 0xf8;
		memcpy(info + 18, data + 18, 2);
		if (data[11] & 4)
			node->sma->port_change = 0;
		node->lifetime = f->config.endless ? CLOCK_NEVER : life_time(info[11] >> 3);
		/* Beyond the top nothing is forwarded. */
		node->lft_top = be16_at(info + 6);
		if (node->lft_top >= node->lft_room)
			node_lft_set(f, at, node->lft_top, 255);
		journal_top(f, at);
	}
	memcpy(data, info, 64);
	if (!be16_at(info + 6))
		put_be16(data + 6, node->lft_top);	/* tables without a manager have one, too */
	data[11] = info[11] | (node->sma->port_change ? 4 : 0);
	return 0;
}

static unsigned int attribute(struct fabric *f, uint32_t port, unsigned int attr, uint32_t mod,
			      int set, uint8_t *data)
{
	uint32_t node = f->ports[port].node;
	unsigned int local = f->ports[port].num;

	switch (attr) {
	case NODE_DESC:
		if (set)
			return MAD_BAD_METHOD;
		memcpy(data, f->nodes[node].sma->desc, 64);
		return 0;
	case NODE_INFO:
		return set ? MAD_BAD_METHOD : node_info(f, node, local, data);
	case SWITCH_INFO:
		return switch_info(f, node, set, data);
	case GUID_INFO:
		return sma_guid_info(f, node, local, mod, set, data);
	case PORT_INFO:
		return sma_port_info(f, node, mod & 0xff, local, set, data);
	case PKEY_TABLE:
		return sma_pkeys(f, node, local, mod, set, data);
	case SLVL_TABLE:
		return sma_sl2vl(f, node, local, mod, set, data);
	case VLARB_TABLE:
		return sma_vlarb(f, node, local, mod, set, data);
	case LINEAR_TABLE:
		return sma_lft(f, node, mod, set, data);
	case MCAST_TABLE:
		return sma_mft(f, node, mod, set, data);
	default:
		return MAD_BAD_ATTR;
	}
}

unsigned int sma_read(struct fabric *f, uint32_t port, unsigned int attr, uint32_t mod, uint8_t *data)
{
	return attribute(f, port, attr, mod, 0, data);
}

/* Whose M_Key guards the port: a switch has one, an HCA's ports have their own. */
static uint32_t guard_of(const struct fabric *f, uint32_t port)
{
	return f->ports[port].is_switch ? f->nodes[f->ports[port].node].first : port;
}

/* Whose M_Key guards what the SMP is about: PortInfo may be of the HCA's other port. NONE: of no port */
static uint32_t guard_of_named(const struct fabric *f, uint32_t port, const uint8_t *mad)
{
	unsigned int num = mad[23];

	if (be16_at(mad + 16) == PORT_INFO && num && !f->ports[port].is_switch)
		return fabric_port(f, f->ports[port].node, num);
	return guard_of(f, port);
}

/*
 * Who may with which M_Key (IBA 1.2.1 vol 1, 14.2.4.1, table 115). Its lease runs from the first violation until
 * the key is seen again; when it is over the protection ends (14.2.4.2).
 */
static int mkey_allows(struct fabric *f, uint32_t guard, uint16_t slid, const uint8_t *mad, int set)
{
	struct port_sma *ps = &f->port_sma[guard];
	uint64_t now = f->manager->now_ms, key = be64_at(ps->info);
	unsigned int lease = be16_at(ps->info + 26), violations = be16_at(ps->info + 44);

	if (ps->lease_ms && now >= ps->lease_ms) {
		ps->lease_ms = 0;
		ps->info[34] &= 0x3f;
	}
	if (!key || key == be64_at(mad + 24)) {
		ps->lease_ms = 0;
		return 1;
	}
	if (!set && ps->info[34] >> 6 < 2)
		return 1;
	if (violations != 0xffff)
		put_be16(ps->info + 44, violations + 1);
	if (!ps->lease_ms && lease)
		ps->lease_ms = now + lease * 1000;
	trap_bad_mkey(f, guard, slid, mad);
	return 0;
}

unsigned int sma_process(struct fabric *f, uint32_t port, uint16_t slid, uint8_t *mad, int *reply)
{
	unsigned int method = mad[3], attr = be16_at(mad + 16), status;
	uint32_t guard = guard_of(f, port), named = guard_of_named(f, port, mad);
	int set = method == SMP_SET;

	*reply = 1;
	if (mad[0] != 1 || mad[2] != 1)
		return MAD_BAD_VERSION;
	if (method == SMP_REPRESS) {
		trap_repress(f, f->ports[port].node, mad);
		*reply = 0;
		return 0;
	}
	if (method != SMP_GET && !set) {
		*reply = !(method & 0x80) && method != SMP_TRAP;
		return MAD_BAD_METHOD;
	}
	if (!mkey_allows(f, guard, slid, mad, set) ||
	    (named != NONE && named != guard && !mkey_allows(f, named, slid, mad, set))) {
		*reply = 0;
		return 0;
	}
	status = attribute(f, port, attr, be32_at(mad + 20), set, mad + 64);
	/* Who does not know the key does not learn it; who has just set it does, and stock OpenSM wants to see it. */
	if (!set && attr == PORT_INFO && named != NONE && f->port_sma[named].info[34] >> 6 &&
	    be64_at(f->port_sma[named].info) != be64_at(mad + 24))
		put_be64(mad + 64, 0);
	if (set && attr < 64)
		f->manager->sets[mad[1] == CLASS_SM][attr]++;
	return status;
}
