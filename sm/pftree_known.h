/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Partitions that the routing in force has known, so that it is told from one that never was when one is missing. */
#ifndef RSM_PFTREE_KNOWN_H
#define RSM_PFTREE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pftree_policy.h"
#include "topo.h"

/**
 * struct pftree_known_part - a partition that there was
 * @pkey: without the bit for the membership
 * @name: of it
 * @guids: of its members' ports
 * @n_guids: of them
 * @gone: it is not in the routing in force, as its hosts had gone before
 */
struct pftree_known_part {
	uint16_t pkey;
	char *name;
	uint64_t *guids;
	uint32_t n_guids;
	bool gone;
};

/**
 * struct pftree_known - all of them
 * @parts: in no order
 * @n: of them
 */
struct pftree_known {
	struct pftree_known_part *parts;
	uint32_t n;
};

int pftree_known_check(const struct pftree_known *before, const struct rsm_topo *topo,
		       const struct pftree_policy *policy, char *why, size_t size);
void pftree_known_remark(const struct pftree_known *before, const struct rsm_topo *topo,
			 const struct pftree_policy *policy, char *remark, size_t size);
int pftree_known_make(struct pftree_known *known, const struct pftree_known *before,
		      const struct rsm_topo *topo, const struct pftree_policy *policy);
void pftree_known_free(struct pftree_known *known);

#endif
