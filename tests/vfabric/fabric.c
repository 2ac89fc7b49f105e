// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Builds the model of a topology, owns its objects, and runs its clock. */
#include <stdlib.h>
#include <string.h>

#include "congestion.h"
#include "ext.h"
#include "fabric.h"
#include "fault.h"
#include "shared.h"
#include "traffic.h"

static void *grown(void *array, size_t size)
{
	array = realloc(array, size);
	if (!array) {
		perror("vfabric: tables");
		abort();
	}
	return array;
}

/* An array of what is aligned to lines of the cache. Return: zeroes, or NULL. */
static void *lines(size_t n, size_t size)
{
	size_t bytes = (n * size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	void *array = aligned_alloc(CACHE_LINE, bytes);

	if (array)
		memset(array, 0, bytes);
	return array;
}

static void *more_lines(void *array, size_t n, size_t more, size_t size)
{
	void *larger = lines(more, size);

	if (!larger) {
		perror("vfabric: packets");
		abort();
	}
	if (n)
		memcpy(larger, array, n * size);
	free(array);
	return larger;
}

uint64_t fabric_random(struct fabric *f)
{
	uint64_t x = f->rng;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	f->rng = x;
	return x * 2685821657736338717ull;
}

double fabric_chance(struct fabric *f)
{
	return (fabric_random(f) >> 11) * 0x1p-53;
}

uint64_t life_time(unsigned int value)
{
	return value > 19 ? CLOCK_NEVER : 4096000ull << value;
}

/* Data rates after encoding, as the time of a byte: SDR 1x is 2 Gbit/s. */
uint32_t link_fs_per_byte(unsigned int width, unsigned int speed, unsigned int ext)
{
	static const uint8_t lanes[17] = { [1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2 };
	unsigned int n = width <= 16 && lanes[width] ? lanes[width] : 4;
	uint64_t kbit = 2000000ull * (speed ? speed : 1);

	if (ext)	/* 14.0625, 25.78125, 53.125, 106.25 GBd with 64/66 and PAM4's FEC */
		kbit = ext >= 8 ? 100000000 : ext >= 4 ? 50000000 : ext >= 2 ? 25000000 : 13636364;
	return 8000000000000ull / (kbit * n);
}

static int init_node(struct fabric *f, uint32_t i)
{
	const struct net_node *net = &f->net->nodes[i];
	struct node *node = &f->nodes[i];
	unsigned int tables = net->type == NET_SWITCH ? (net->nports + 1) * (net->nports + 1) : 1;

	node->net = net;
	node->type = net->type;
	node->nports = net->nports;
	node->lifetime = CLOCK_NEVER;
	node->sl2vl = malloc(tables * f->config.sls);
	if (!node->sl2vl)
		return -1;
	for (unsigned int sl = 0; sl < tables * f->config.sls; sl++)
		node->sl2vl[sl] = sl % f->config.sls % f->config.vls;
	if (net->shared) {
		node->shared = 1;
		node->hca = shared_new();
		if (!node->hca)
			return -1;
	} else if (net->type == NET_SWITCH) {
		node->mft = calloc(MCAST_BLOCKS * 32 * 16, sizeof(*node->mft));
		if (!node->mft)
			return -1;
	}
	for (unsigned int p = 0; p <= net->nports; p++) {
		struct port *port = &f->ports[node->first + p];

		port->node = i;
		port->num = p;
		port->is_switch = net->type == NET_SWITCH;
		port->peer = NONE;
		port->was_peer = NONE;
		port->state = PORT_DOWN;
		port->phys = PHYS_POLLING;
		port->mtu = 4096;
		port->op_vls = f->config.vls;
		f->wires[node->first + p] = (struct wire){ NONE, net->ports[p].length ?
			net->ports[p].length * 50u : f->config.cable_delay };	/* 5 ns a metre */
		port_set_hoq(port, CLOCK_NEVER);
		port->arbiter = malloc(sizeof(*port->arbiter));
		if (!port->arbiter)
			return -1;
		arbiter_init(port->arbiter, f->config.vls);
		link_set_speed(f, node->first + p);
	}
	return 0;
}

int fabric_init(struct fabric *f, const struct net *net, const struct fabric_config *config)
{
	unsigned int vls;

	memset(f, 0, sizeof(*f));
	if (config)
		f->config = *config;
	if (!f->config.vls || f->config.vls > MAX_VLS)
		f->config.vls = 8;
	if (f->config.sls < 16)
		f->config.sls = 16;
	if (!f->config.buffer)
		f->config.buffer = 16384;
	if (f->config.buffer < 4096 + 128)	/* the largest packet must fit */
		f->config.buffer = 4096 + 128;
	if (!f->config.switch_delay)
		f->config.switch_delay = 100000;
	if (!f->config.cable_delay)
		f->config.cable_delay = 10000;
	vls = f->config.vls;
	f->net = net;
	f->rng = f->config.seed * 2862933555777941757ull + 88172645463325252ull;
	f->capacity = f->config.buffer / BLOCK;
	f->free_packet = NONE;
	f->free_queue = NONE;
	f->nnodes = net->n;
	f->nodes = calloc(net->n + 1, sizeof(*f->nodes));
	if (!f->nodes || clock_init(&f->clock))
		return -1;
	for (uint32_t i = 0; i < net->n; i++) {
		f->nodes[i].first = f->nports;
		f->nports += net->nodes[i].nports + 1;
	}
	f->nqueues = f->nports * vls;
	f->queue_room = f->nqueues + 64;
	f->ports = lines(f->nports + 1, sizeof(*f->ports));
	f->wires = lines(f->nports + 1, sizeof(*f->wires));
	f->queues = lines(f->queue_room, sizeof(*f->queues));
	f->lanes = lines(f->nqueues + 1, sizeof(*f->lanes));
	f->lids = malloc(UCAST_LIDS * sizeof(*f->lids));
	if (!f->ports || !f->wires || !f->queues || !f->lanes || !f->lids)
		return -1;
	memset(f->lids, 0xff, UCAST_LIDS * sizeof(*f->lids));
	for (uint32_t i = 0; i < net->n; i++)
		if (init_node(f, i))
			return -1;
	for (uint32_t i = 0; i < f->nqueues; i++) {
		f->queues[i] = (struct queue){ .head = NONE, .next = NONE, .port = i / vls,
			.node = f->ports[i / vls].node, .in = f->ports[i / vls].num, .vl = i % vls,
			.flow = NONE, .origin = NONE };
		f->lanes[i] = (struct lane){ .first = NONE, .last = NONE };
	}
	for (uint32_t i = 0; i < net->n; i++)
		for (unsigned int p = 1; p <= net->nodes[i].nports; p++) {
			const struct net_port *np = &net->nodes[i].ports[p];
			struct port *port = &f->ports[f->nodes[i].first + p];

			if (np->peer != NET_NONE) {
				port_join(f, f->nodes[i].first + p,
					  f->nodes[np->peer].first + np->peer_port);
				port->was_peer = port->peer;
			}
		}
	for (uint32_t p = 0; p < f->nports; p++)
		if (f->ports[p].peer != NONE && f->ports[p].peer > p)
			link_up(f, p);
	return 0;
}

void fabric_free(struct fabric *f)
{
	traffic_free(f);
	congestion_free(f);
	free(f->journal);
	for (uint32_t i = 0; i < f->nports && f->ports; i++) {
		free(f->ports[i].arbiter);
		free(f->ports[i].fault);
	}
	for (uint32_t i = 0; i < f->nnodes && f->nodes; i++) {
		free(f->nodes[i].lft);
		free(f->nodes[i].mft);
		free(f->nodes[i].sl2vl);
	}
	for (uint32_t i = 0; i < f->npackets; i++)
		free(f->packets[i].bytes);
	free(f->packets);
	free(f->behind);
	free(f->nodes);
	free(f->ports);
	free(f->wires);
	free(f->queues);
	free(f->lanes);
	free(f->lids);
	clock_free(&f->clock);
	memset(f, 0, sizeof(*f));
}

uint32_t fabric_port(const struct fabric *f, uint32_t node, unsigned int num)
{
	return node < f->nnodes && num <= f->nodes[node].nports ? f->nodes[node].first + num : NONE;
}

const char *port_name(const struct fabric *f, uint32_t port)
{
	static char text[4][160];
	static unsigned int next;
	char *at = text[next++ % 4];

	if (port >= f->nports)
		return "nothing";
	snprintf(at, sizeof(text[0]), "\"%.140s\"[%u]", f->nodes[f->ports[port].node].net->id,
		 f->ports[port].num);
	return at;
}

uint32_t packet_new(struct fabric *f)
{
	uint32_t at = f->free_packet;

	if (at == NONE) {
		uint32_t n = f->npackets, size = n ? n * 2 : 1024;

		f->packets = more_lines(f->packets, n, size, sizeof(*f->packets));
		f->behind = grown(f->behind, size * sizeof(*f->behind));
		f->npackets = size;
		while (size-- > n) {
			f->behind[size] = f->free_packet;
			f->free_packet = size;
		}
		at = f->free_packet;
	}
	f->free_packet = f->behind[at];
	f->behind[at] = NONE;
	f->packets[at] = (struct packet){ .flow = NONE, .copies = NONE,
		.pkey = 0xffff };
	return at;
}

void packet_put(struct fabric *f, uint32_t packet)
{
	free(f->packets[packet].bytes);
	f->packets[packet].bytes = NULL;
	f->behind[packet] = f->free_packet;
	f->free_packet = packet;
}

uint32_t queue_new(struct fabric *f, uint32_t port, uint32_t flow)
{
	uint32_t at = f->free_queue;

	if (at != NONE) {
		f->free_queue = f->queues[at].next;
	} else {
		if (f->nqueues == f->queue_room) {
			f->queues = more_lines(f->queues, f->nqueues, f->queue_room * 2,
					       sizeof(*f->queues));
			f->queue_room *= 2;
		}
		at = f->nqueues++;
	}
	f->queues[at] = (struct queue){ .head = NONE, .next = NONE, .port = port,
		.node = f->ports[port].node, .in = f->ports[port].num, .flow = flow, .origin = NONE };
	return at;
}

void queue_put(struct fabric *f, uint32_t queue)
{
	f->queues[queue].port = NONE;
	f->queues[queue].next = f->free_queue;
	f->free_queue = queue;
}

uint32_t queue_held(const struct fabric *f, uint32_t queue)
{
	uint32_t vls = f->config.vls, peer = f->wires[queue / vls].peer, came = f->queues[queue].came;

	return peer < f->nports ? came - f->lanes[peer * vls + queue % vls].given : came;
}

void port_join(struct fabric *f, uint32_t at, uint32_t peer)
{
	uint32_t vls = f->config.vls;

	/* From now on it is the new one's lanes that know what has been given back. */
	for (uint32_t vl = 0; vl < vls; vl++)
		f->queues[at * vls + vl].came = queue_held(f, at * vls + vl) +
			(peer < f->nports ? f->lanes[peer * vls + vl].given : 0);
	f->ports[at].peer = peer;
	f->ports[at].to_host = peer < f->nports && !f->ports[peer].is_switch;
	f->wires[at].peer = peer;
}

void node_lft_set(struct fabric *f, uint32_t at, unsigned int lid, uint8_t port)
{
	struct node *node = &f->nodes[at];

	if (lid >= node->lft_room) {
		uint32_t room = node->lft_room ? node->lft_room : 64;

		while (room <= lid)
			room *= 2;
		node->lft = grown(node->lft, room);
		memset(node->lft + node->lft_room, 0xff, room - node->lft_room);
		node->lft_room = room;
	}
	node->lft[lid] = port;
	if (lid > node->lft_top)
		node->lft_top = lid;
}

/*
 * In a large fabric each event touches memory that no cache has. Those behind it in the slot are known:
 * fetch what the next ones need while this one is worked on; near ones a level deeper than far.
 */
static inline void fetch(const struct fabric *f, const struct event *e, int near)
{
	const struct packet *p;
	uint32_t peer;

	switch (e->type) {
	case EV_ARRIVE:
		p = &f->packets[e->arg2];
		__builtin_prefetch(p);
		__builtin_prefetch(&f->ports[e->arg]);
		__builtin_prefetch(&f->queues[e->arg * f->config.vls]);
		if (near) {
			const struct node *node = &f->nodes[f->ports[e->arg].node];

			if (node->lft && p->dlid < node->lft_room)
				__builtin_prefetch(&node->lft[p->dlid]);
		}
		break;
	case EV_SENT:
		__builtin_prefetch(&f->ports[e->arg]);
		__builtin_prefetch(&f->lanes[e->arg * f->config.vls]);
		if (e->arg2 != NONE)
			__builtin_prefetch(&f->queues[e->arg2]);
		if (near && e->arg2 != NONE && f->queues[e->arg2].head != NONE)
			__builtin_prefetch(&f->packets[f->queues[e->arg2].head]);
		break;
	case EV_CREDIT:
		peer = f->wires[e->arg / f->config.vls].peer;
		if (peer < f->nports)
			__builtin_prefetch(&f->lanes[peer * f->config.vls + e->arg % f->config.vls]);
		if (near && peer < f->nports)
			__builtin_prefetch(&f->ports[peer]);
		break;
	}
}

static inline void look_ahead(const struct fabric *f, uint32_t next)
{
	for (int i = 0; i < 4 && next != NONE; i++) {
		const struct event *e = &f->clock.pool[next];

		if (i == 1)
			fetch(f, e, 1);
		else if (i == 3)
			fetch(f, e, 0);
		next = e->next;
	}
	if (next != NONE)
		__builtin_prefetch(&f->clock.pool[next]);
}

void fabric_run(struct fabric *f, uint64_t until)
{
	struct event e;

	while (clock_next(&f->clock, until, &e)) {
		look_ahead(f, e.next);
		switch (e.type) {
		case EV_ARRIVE:
			relay_arrive(f, e.arg, e.arg2);
			break;
		case EV_SENT:
			relay_sent(f, e.arg, e.arg2);
			break;
		case EV_CREDIT:
			relay_credit(f, e.arg, e.arg2);
			break;
		case EV_LIFETIME:
			lifetime_expire(f, e.arg);
			break;
		case EV_FLOW:
			flow_due(f, e.arg, e.arg2);
			break;
		case EV_RTO:
			flow_timeout(f, e.arg, e.arg2);
			break;
		case EV_SAMPLE:
			traffic_sample(f);
			break;
		case EV_FAULT:
			fault_due(f, e.arg);
			break;
		case EV_CCTI:
			congestion_timer(f, e.arg);
			break;
		case EV_TO_HCA:
			ext_leave(f, e.arg, e.arg2);
			break;
		case EV_FROM_HCA:
			ext_arrive(f, e.arg, e.arg2);
			break;
		}
	}
}
