// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * vFtree (Guay, Bogdanski, Reinemo, Lysne, Skeie, 2011): fat-tree routing whose lanes depend on the
 * leaves at both ends of a path. LIDs that share a cable up are those of different leaves, so
 * packets to a busy one hold up those to few others. SL n is VL n.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fat_tree.h"
#include "options.h"
#include "router.h"

#define NO_LEAF UINT32_MAX

/**
 * struct vftree - the lanes
 * @topo: where the VLs of links are
 * @lanes: how many are used
 * @n_leaves: switches that have ends
 * @lane: [leaf * n_leaves + leaf]
 * @n_lids: entries of @leaf_of
 * @leaf_of: by LID: its leaf, or NO_LEAF
 */
struct vftree {
	const struct rsm_topo *topo;
	unsigned int lanes;
	uint32_t n_leaves;
	uint8_t *lane;
	uint32_t n_lids;
	uint32_t *leaf_of;
};

/* Where the paper's algorithm 1 begins. It is even over all leaves, but not over those of one. */
static uint32_t first_of_paper(uint32_t from, uint32_t lanes)
{
	return from * 2 % lanes + from * 2 / lanes % 2;
}

/* The way back has the same lane. */
static void assign_lanes(struct vftree *v, bool even)
{
	uint32_t n = v->n_leaves, lanes = v->lanes;

	for (uint32_t from = 0; from < n; from++) {
		uint32_t lane = even ? (from * 2 + 1) % lanes : first_of_paper(from, lanes);

		for (uint32_t to = from + 1; to < n; to++) {
			v->lane[(size_t)from * n + to] = lane;
			v->lane[(size_t)to * n + from] = lane;
			lane = (lane + 1) % lanes;
		}
	}
}

static void find_leaves(struct vftree *v, const struct rsm_fat_tree *tree)
{
	for (uint32_t lid = 0; lid < v->n_lids; lid++)
		v->leaf_of[lid] = NO_LEAF;
	for (uint32_t i = 0; i < v->topo->n_ends; i++) {
		const struct rsm_topo_end *end = &v->topo->ends[i];

		for (unsigned int k = 0; k < end->n_lids; k++)
			v->leaf_of[end->lid + k] = tree->switches[end->leaf].leaf;
	}
}

/* The paper's algorithm 2. Switches use the first lane. */
static uint8_t path_sl(void *context, uint16_t slid, uint16_t dlid)
{
	const struct vftree *v = context;

	if (slid >= v->n_lids || dlid >= v->n_lids || v->leaf_of[slid] == NO_LEAF ||
	    v->leaf_of[dlid] == NO_LEAF)
		return 0;
	return v->lane[(size_t)v->leaf_of[slid] * v->n_leaves + v->leaf_of[dlid]];
}

/* A host's link may have fewer VLs than there are lanes. Lanes that are left are other services'. */
static uint8_t link_vl(void *context, int32_t sw, uint16_t in, uint32_t out, uint8_t sl)
{
	const struct vftree *v = context;
	unsigned int vls;

	(void)in;
	vls = sw < 0 ? v->topo->ends[out].vls : v->topo->switches[sw].ports[out].vls;
	if (!vls || sl < vls)
		return sl;
	return sl % (v->lanes < vls ? v->lanes : vls);
}

static void vftree_free(void *context)
{
	struct vftree *v = context;

	if (!v)
		return;
	free(v->lane);
	free(v->leaf_of);
	free(v);
}

static int fill_routes(const struct rsm_fat_tree *tree, unsigned int lanes, bool even,
		       struct rsm_routes *routes)
{
	struct vftree *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	routes->context = v;
	routes->free = vftree_free;
	routes->sl = path_sl;
	routes->vl = link_vl;
	*v = (struct vftree) {
		.topo = tree->topo,
		.lanes = lanes,
		.n_leaves = tree->n_leaves,
		.lane = calloc(tree->n_leaves, tree->n_leaves),
		.n_lids = tree->topo->max_lid + 1,
		.leaf_of = malloc((tree->topo->max_lid + 1) * sizeof(*v->leaf_of)),
	};
	if (!v->lane || !v->leaf_of)
		return -ENOMEM;
	assign_lanes(v, even);
	find_leaves(v, tree);
	return rsm_fat_tree_route(tree, routes);
}

static int route(const struct rsm_topo *topo, const struct rsm_options *opt,
		 struct rsm_routes *routes, char *why, size_t size)
{
	unsigned int lanes = opt->vftree_lanes ? opt->vftree_lanes : topo->vls;
	struct rsm_fat_tree tree;
	int rc;

	if (lanes > topo->vls) {
		snprintf(why, size, "vftree_lanes is %u, and a link between switches has %u data VLs",
			 lanes, topo->vls);
		return -EINVAL;
	}
	rc = rsm_fat_tree_make(&tree, topo, why, size);
	if (rc)
		return rc;
	rc = fill_routes(&tree, lanes, opt->vftree_even, routes);
	rsm_fat_tree_free(&tree);
	return rc;
}

const struct rsm_router rsm_vftree_router = {
	.name = "vftree",
	.by_switch = true,
	.route = route,
};
