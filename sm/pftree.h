/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * pFTree: routes of a fat tree that partitions share as little as may be. Parts of the engine:
 *
 *	pftree_policy.c	what is wanted
 *	pftree_known.c	what of that is not there any more, or never was
 *	pftree_model.c	who talks to whom, and from which leaf to which
 *	pftree_weights.c how much each end receives
 *	pftree_use.c	who uses which link, and who may
 *	pftree_plan.c	ways by which all that is wanted is kept, if there are any
 *	pftree_lanes.c	lanes
 *	pftree_order.c	ends of a leaf
 *	pftree_route.c	tables: balanced, and within what the plan leaves
 *	pftree.c	one after the other
 */
#ifndef RSM_PFTREE_H
#define RSM_PFTREE_H

#include "fat_tree.h"
#include "pftree_policy.h"

#define PFTREE_NOBODY	UINT32_MAX
#define PFTREE_NO_LANE	-1

/**
 * struct pftree_part - a partition
 * @pkey: without the bit for the membership
 * @name: of it
 * @wanted: by the policy
 * @isolation: what is kept up; less than @wanted when it had to be given up
 * @rank: who is given up first: the highest
 * @links: see struct pftree_rule
 * @lane: data VL and SL, or PFTREE_NO_LANE
 */
struct pftree_part {
	uint16_t pkey;
	const char *name;
	enum pftree_isolation wanted;
	enum pftree_isolation isolation;
	uint32_t rank;
	int links;
	int lane;
};

/**
 * struct pftree_member - of a class
 * @part: index of the partition
 * @full: limited members do not talk to one another
 */
struct pftree_member {
	uint32_t part;
	bool full;
};

/**
 * struct pftree_class - ends that are in the same partitions, in the same way
 * @first: of its memberships in pftree.members, in ascending order
 * @n: how many
 */
struct pftree_class {
	uint32_t first;
	uint32_t n;
};

/**
 * struct pftree_demand - traffic from a leaf to the ends of a class at another one
 * @tree: index of the tree
 * @from: index of the switch
 * @part: partition that it is of
 */
struct pftree_demand {
	uint32_t tree;
	uint32_t from;
	uint32_t part;
};

/**
 * struct pftree_tree - ways to the ends of one class at one leaf
 * @class: index of the class
 * @leaf: number of the leaf in the fat tree
 * @first: of its demands
 * @n: how many
 * @n_ends: ends that it leads to
 * @out: by switch: the port that the plan has, 0: none; NULL: there is no plan
 */
struct pftree_tree {
	uint32_t class;
	uint32_t leaf;
	uint32_t first;
	uint32_t n;
	uint32_t n_ends;
	uint8_t *out;
};

/**
 * struct pftree_user - a partition on a link
 * @part: index of it
 * @count: demands
 */
struct pftree_user {
	uint32_t part;
	uint32_t count;
};

/**
 * struct pftree_link - a direction of a cable between two switches
 * @users: of it
 * @n_users: how many
 * @room: for how many
 * @n_hard: users that are not PFTREE_DEF
 * @routes: LIDs that are reached by it
 * @weight: of these
 */
struct pftree_link {
	struct pftree_user *users;
	uint32_t n_users;
	uint32_t room;
	uint32_t n_hard;
	uint32_t routes;
	uint64_t weight;
};

/**
 * struct pftree - the work on one topology
 * @tree: levels, leaves
 * @topo: the fabric
 * @parts: by P_Key
 * @n_parts: of them
 * @members: of classes
 * @classes: of ends
 * @n_classes: of them
 * @class_of: by end
 * @trees: in no order
 * @n_trees: of them
 * @tree_of: by end
 * @demands: by tree
 * @n_demands: of them
 * @first_link: by switch: number of the link out of port 0
 * @links: by switch and port
 * @n_links: of them
 * @marks: [switch * parts + part]: users of links to the switch
 * @pairs: [part * parts + part]: links that both use
 * @meet: [part * parts + part]: both use the cable of one end
 * @weights: by end
 * @lanes: that there are
 * @hard: some partition is not PFTREE_DEF
 * @tightened: two partitions that need different lanes have come to share a first link
 */
struct pftree {
	struct rsm_fat_tree tree;
	const struct rsm_topo *topo;
	struct pftree_part *parts;
	uint32_t n_parts;
	struct pftree_member *members;
	struct pftree_class *classes;
	uint32_t n_classes;
	uint32_t *class_of;
	struct pftree_tree *trees;
	uint32_t n_trees;
	uint32_t *tree_of;
	struct pftree_demand *demands;
	uint32_t n_demands;
	uint32_t *first_link;
	struct pftree_link *links;
	uint32_t n_links;
	uint32_t *marks;
	uint32_t *pairs;
	bool *meet;
	int *weights;
	int lanes;
	bool hard;
	bool tightened;
};

int pftree_model_make(struct pftree *p, const struct rsm_topo *topo,
		      const struct pftree_policy *policy, char *why, size_t size);
void pftree_model_free(struct pftree *p);
int pftree_weigh(struct pftree *p, const struct pftree_policy *policy);
uint32_t pftree_common(const struct pftree *p, uint32_t one, uint32_t other);

void pftree_use_clear(struct pftree *p);
int pftree_use_add(struct pftree *p, uint32_t sw, uint32_t port, uint32_t part);
void pftree_use_drop(struct pftree *p, uint32_t sw, uint32_t port, uint32_t part);
bool pftree_uses(const struct pftree_link *link, uint32_t part);
bool pftree_clash(const struct pftree *p, uint32_t one, uint32_t other);
bool pftree_may_use(const struct pftree *p, const struct pftree_link *link, uint32_t part);
bool pftree_shared(const struct pftree *p, uint32_t one, uint32_t *other, char *where, size_t size);

int pftree_lanes_assign(struct pftree *p);

int pftree_plan(struct pftree *p, uint32_t *who, char *why, size_t size);

bool pftree_is_strict(const struct pftree *p, uint32_t end, enum pftree_isolation least);
int pftree_order(const struct pftree *p, uint32_t leaf, bool weighted, uint32_t *ends,
		 int64_t *last);

int pftree_route_all(struct pftree *p, struct rsm_routes *routes, int isolation);

/** pftree_link_at - out of a port of a switch */
static inline struct pftree_link *pftree_link_at(const struct pftree *p, uint32_t sw, uint32_t port)
{
	return &p->links[p->first_link[sw] + port];
}

#endif
