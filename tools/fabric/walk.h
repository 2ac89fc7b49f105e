/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where packets for one LID go from every switch, as the forwarding tables say. */
#ifndef REPATH_FABRIC_WALK_H
#define REPATH_FABRIC_WALK_H

#include "fabric.h"

enum walk_end {
	WALK_UNSEEN,
	WALK_ARRIVES,
	WALK_NO_ENTRY,		/* a switch does not know the LID */
	WALK_NO_CABLE,		/* a table names a port without a cable, or none of that number */
	WALK_STRANGER,		/* it ends at somebody else */
	WALK_LOOP,
};

/**
 * struct walk - the way from each switch
 * @f: the subnet
 * @lid: where to
 * @end: by switch, how it ends
 * @hops: by switch, cables to the end; of one that arrives only
 * @next: by switch, the switch behind, or -1
 * @stop: by switch that does not arrive, the switch at which it ends or the loop is met
 * @far: switches from which packets arrive, those farthest away first
 * @nfar: how many
 */
struct walk {
	const struct fabric *f;
	unsigned int lid;
	uint8_t *end;
	uint16_t *hops;
	int *next;
	int *stop;
	int *far;
	unsigned int nfar;
	int *stack;
	unsigned int *count;
};

void walk_init(struct walk *w, const struct fabric *f);
void walk_to(struct walk *w, unsigned int lid);
void walk_free(struct walk *w);

/* The switch at which a host's port is, or NULL. */
static inline const struct fabric_node *walk_leaf(const struct fabric_port *host)
{
	return host->peer && fabric_is_switch(host->peer->node) ? host->peer->node : NULL;
}

/**
 * struct ranks - shortest ways to one switch
 * @hops: by switch, cables between them; UINT16_MAX if there is no way
 */
struct ranks {
	uint16_t *hops;
	int *queue;
};

void ranks_init(struct ranks *r, const struct fabric *f);
void ranks_of(struct ranks *r, const struct fabric *f, const struct fabric_node *sw);
void ranks_free(struct ranks *r);

#endif /* REPATH_FABRIC_WALK_H */
