/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What has become other between two states of a subnet. */
#ifndef REPATH_FABRIC_CHANGE_H
#define REPATH_FABRIC_CHANGE_H

#include "check.h"

/**
 * struct change - from one state to another
 * @cables_gone, @cables_new: by the GUIDs and ports of their ends
 * @nodes_gone, @nodes_new: by GUID
 * @entries: entries of forwarding tables that are others, of LIDs and switches that are in both
 * @by_switch: the same, by switch of the later state
 * @paths: paths in both states, by source port and LID
 * @moved: of those, how many take another way
 */
struct change {
	unsigned int cables_gone;
	unsigned int cables_new;
	unsigned int nodes_gone;
	unsigned int nodes_new;
	uint64_t entries;
	unsigned int *by_switch;
	uint64_t paths;
	uint64_t moved;
};

void change_find(struct change *c, const struct fabric *before, const struct fabric *now);
void change_free(struct change *c);
/* The same port in another state, or NULL. */
const struct fabric_port *change_port(const struct fabric *in, const struct fabric_port *p);
/* Whether a port has a cable that is not there in another state. */
bool change_is_gone(const struct fabric *in, const struct fabric_port *p);

#endif /* REPATH_FABRIC_CHANGE_H */
