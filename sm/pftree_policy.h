/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What an administrator wants of partitions, and what hosts weigh: the file of pftree_policy. */
#ifndef RSM_PFTREE_POLICY_H
#define RSM_PFTREE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * enum pftree_isolation - how a partition may share links; more is stricter
 * @PFTREE_DEF: with anybody, as few as may be
 * @PFTREE_VLANE: only in lanes that others on the link do not use
 * @PFTREE_PHY: with nobody
 */
enum pftree_isolation {
	PFTREE_DEF,
	PFTREE_VLANE,
	PFTREE_PHY,
};

/**
 * struct pftree_rule - of one partition
 * @name: of it; empty: it is named by its P_Key
 * @pkey: without the bit for the membership
 * @isolation: that is wanted
 * @links: links that it may take at most on the way to a leaf, if nobody else can use them then;
 *	0: its share by the number of hosts
 */
struct pftree_rule {
	char name[32];
	uint16_t pkey;
	enum pftree_isolation isolation;
	int links;
};

/**
 * struct pftree_weight - of one host
 * @name: NodeDescription, or the first word of it; empty: it is named by its port's GUID
 * @guid: of the port
 * @weight: traffic that it receives, 1 to 100
 */
struct pftree_weight {
	char name[65];
	uint64_t guid;
	int weight;
};

/**
 * struct pftree_policy - a file
 * @strict: nothing is routed if a rule cannot be kept
 * @rules: in the order of the file: the first is the last to be given up
 * @n_rules: of them
 * @weights: in the order of the file: of two for one host the last counts
 * @n_weights: of them
 */
struct pftree_policy {
	bool strict;
	struct pftree_rule *rules;
	uint32_t n_rules;
	struct pftree_weight *weights;
	uint32_t n_weights;
};

const char *pftree_isolation_name(enum pftree_isolation isolation);
int pftree_policy_read(struct pftree_policy *policy, const char *path, char *why, size_t size);
void pftree_policy_free(struct pftree_policy *policy);

#endif
