/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A fat tree, also one that has lost links and switches: levels, links up and down, the leaves. */
#ifndef RSM_FAT_TREE_H
#define RSM_FAT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo.h"

struct rsm_routes;

#define RSM_FT_FAR 128 /* hops: there is no way up and then down */

/**
 * struct rsm_ft_group - the cables between a switch and a neighbour
 * @peer: index of the neighbour
 * @n: how many
 * @ports: of this switch, in ascending order
 */
struct rsm_ft_group {
	uint32_t peer;
	uint16_t n;
	uint8_t *ports;
};

/**
 * struct rsm_ft_switch - a switch in the tree
 * @level: 0 is lowest; every cable leads from a level to the next
 * @height: the highest level that is reached from here by going up
 * @leaf: its number among the leaves; -1: it has no ends
 * @n_up: groups up
 * @n_down: groups down
 * @up: in the order of their first ports
 * @down: the same
 */
struct rsm_ft_switch {
	uint8_t level;
	uint8_t height;
	int32_t leaf;
	uint16_t n_up;
	uint16_t n_down;
	struct rsm_ft_group *up;
	struct rsm_ft_group *down;
};

/**
 * struct rsm_fat_tree - all of it
 * @topo: what it was made of
 * @switches: by index in @topo
 * @order: indices of switches by their level, lowest first
 * @n_levels: of them
 * @leaves: indices of the switches that have ends, in ascending order
 * @n_leaves: of them
 * @ends: indices of ends by leaf, and by port within a leaf
 * @first_end: by leaf: where its ends begin in @ends; one more tells where the last's end
 * @hops: [leaf * switches + switch]: cables from a switch to a leaf, up and then down, or
 *	RSM_FT_FAR. The way goes to a neighbour with one hop less.
 */
struct rsm_fat_tree {
	const struct rsm_topo *topo;
	struct rsm_ft_switch *switches;
	uint32_t *order;
	unsigned int n_levels;
	uint32_t *leaves;
	uint32_t n_leaves;
	uint32_t *ends;
	uint32_t *first_end;
	uint8_t *hops;
	struct rsm_ft_group *groups;
	uint8_t *ports;
};

int rsm_fat_tree_make(struct rsm_fat_tree *tree, const struct rsm_topo *topo, char *why,
		      size_t size);
void rsm_fat_tree_free(struct rsm_fat_tree *tree);
void rsm_fat_tree_hops(const struct rsm_fat_tree *tree, uint32_t to, uint8_t *hops);
int rsm_fat_tree_route(const struct rsm_fat_tree *tree, struct rsm_routes *routes);

/** rsm_ft_hops - of all switches to one leaf */
static inline const uint8_t *rsm_ft_hops(const struct rsm_fat_tree *tree, uint32_t leaf)
{
	return tree->hops + (size_t)leaf * tree->topo->n_switches;
}

/** rsm_ft_above - whether the leaf is reached from the switch by going down only */
static inline bool rsm_ft_above(const struct rsm_fat_tree *tree, uint32_t sw, uint32_t leaf)
{
	return rsm_ft_hops(tree, leaf)[sw] ==
	       tree->switches[sw].level - tree->switches[tree->leaves[leaf]].level;
}

/**
 * rsm_ft_nearer - whether a neighbour is the next on a shortest way to a leaf, up and then down
 *
 * One that is below a switch from which the leaf is reached by going up may be as near.
 */
static inline bool rsm_ft_nearer(const struct rsm_fat_tree *tree, uint32_t sw, uint32_t peer,
				 uint32_t leaf)
{
	const uint8_t *hops = rsm_ft_hops(tree, leaf);

	return hops[peer] + 1 == hops[sw] &&
	       (tree->switches[peer].level < tree->switches[sw].level) ==
		       rsm_ft_above(tree, sw, leaf);
}

#endif
