// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Topologies in memory: nodes by name, links between their ports. */
#include <stdlib.h>
#include <string.h>

#include "net.h"

void net_init(struct net *net)
{
	memset(net, 0, sizeof(*net));
	/* Where ibsim starts, so that its users find their nodes again. */
	net->next_guid[NET_HCA] = 0x100000;
	net->next_guid[NET_SWITCH] = 0x200000;
	net->next_guid[NET_ROUTER] = 0x300000;
}

void net_free(struct net *net)
{
	for (unsigned int i = 0; i < net->n; i++) {
		free(net->nodes[i].id);
		free(net->nodes[i].desc);
		free(net->nodes[i].ports);
	}
	for (unsigned int i = 0; i < net->ntodo; i++)
		free(net->todo[i]);
	free(net->todo);
	free(net->nodes);
	free(net->hash);
	memset(net, 0, sizeof(*net));
}

static unsigned int hash_id(const char *id)
{
	unsigned int h = 2166136261u;

	while (*id)
		h = (h ^ (unsigned char)*id++) * 16777619u;
	return h;
}

static uint32_t lookup(const struct net *net, const char *id)
{
	if (!net->hash_size)
		return NET_NONE;
	for (unsigned int i = hash_id(id);; i++) {
		uint32_t at = net->hash[i & (net->hash_size - 1)];

		if (at == NET_NONE || !strcmp(net->nodes[at].id, id))
			return at;
	}
}

static void remember(struct net *net, uint32_t node)
{
	unsigned int i = hash_id(net->nodes[node].id);

	while (net->hash[i & (net->hash_size - 1)] != NET_NONE)
		i++;
	net->hash[i & (net->hash_size - 1)] = node;
}

static int grow(struct net *net)
{
	unsigned int room = net->room ? net->room * 2 : 64;
	struct net_node *nodes = realloc(net->nodes, room * sizeof(*nodes));
	uint32_t *hash;

	if (!nodes)
		return -1;
	net->nodes = nodes;
	hash = realloc(net->hash, 4 * room * sizeof(*hash));
	if (!hash)
		return -1;
	net->hash = hash;
	net->room = room;
	net->hash_size = 4 * room;
	memset(hash, 0xff, net->hash_size * sizeof(*hash));
	for (unsigned int i = 0; i < net->n; i++)
		remember(net, i);
	return 0;
}

uint32_t net_add(struct net *net, enum net_type type, const char *id, const char *desc,
		 unsigned int nports)
{
	struct net_node *node;

	if (!nports || nports > NET_MAX_PORTS) {
		snprintf(net->error, sizeof(net->error), "\"%s\": 1 to %d ports, not %u", id,
			 NET_MAX_PORTS, nports);
		return NET_NONE;
	}
	if (lookup(net, id) != NET_NONE) {
		snprintf(net->error, sizeof(net->error), "\"%s\" is there twice", id);
		return NET_NONE;
	}
	if (net->n == net->room && grow(net))
		goto no_memory;
	node = &net->nodes[net->n];
	memset(node, 0, sizeof(*node));
	node->id = strdup(id);
	node->desc = strdup(desc ? desc : id);
	node->ports = calloc(nports + 1, sizeof(*node->ports));
	if (!node->id || !node->desc || !node->ports) {
		free(node->id);
		free(node->desc);
		free(node->ports);
		goto no_memory;
	}
	node->type = type;
	node->nports = nports;
	node->guid = net->next_guid[type];
	net->next_guid[type] += nports + 1;
	for (unsigned int i = 0; i <= nports; i++)
		node->ports[i] = (struct net_port){ .peer = NET_NONE, .width = 2, .speed = 4 };
	remember(net, net->n);
	return net->n++;
no_memory:
	snprintf(net->error, sizeof(net->error), "out of memory at \"%s\"", id);
	return NET_NONE;
}

uint32_t net_find(const struct net *net, const char *id)
{
	uint32_t at = lookup(net, id);

	for (unsigned int i = 0; at == NET_NONE && i < net->n; i++)
		if (!strcmp(net->nodes[i].desc, id))
			at = i;
	return at;
}

int net_plug(struct net *net, uint32_t a, unsigned int pa, uint32_t b, unsigned int pb)
{
	const uint32_t node[2] = { a, b };
	const unsigned int port[2] = { pa, pb };

	for (int i = 0; i < 2; i++) {
		const struct net_node *n = &net->nodes[node[i]];

		if (!port[i] || port[i] > n->nports) {
			snprintf(net->error, sizeof(net->error), "\"%s\" has no port %u", n->id,
				 port[i]);
			return -1;
		}
		if (n->ports[port[i]].peer != NET_NONE) {
			snprintf(net->error, sizeof(net->error), "\"%s\"[%u] is plugged already",
				 n->id, port[i]);
			return -1;
		}
	}
	if (a == b && pa == pb) {
		snprintf(net->error, sizeof(net->error), "\"%s\"[%u] is plugged into itself",
			 net->nodes[a].id, pa);
		return -1;
	}
	net->nodes[a].ports[pa].peer = b;
	net->nodes[a].ports[pa].peer_port = pb;
	net->nodes[b].ports[pb].peer = a;
	net->nodes[b].ports[pb].peer_port = pa;
	return 0;
}

void net_unplug(struct net *net, uint32_t a, unsigned int pa)
{
	struct net_port *port = &net->nodes[a].ports[pa];

	if (port->peer == NET_NONE)
		return;
	net->nodes[port->peer].ports[port->peer_port].peer = NET_NONE;
	port->peer = NET_NONE;
}

unsigned int net_count(const struct net *net, enum net_type type)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < net->n; i++)
		n += net->nodes[i].type == type;
	return n;
}
