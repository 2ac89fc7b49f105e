/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A fabric as routing engines see it: switches, their cables, the ends. It has no tables. */
#ifndef RSM_TOPO_H
#define RSM_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RSM_TOPO_NONE	-1 /* nothing is plugged in */
#define RSM_TOPO_END	-2 /* an end is */

/**
 * struct rsm_topo_port - what is behind a port of a switch
 * @peer: index of the switch, RSM_TOPO_END or RSM_TOPO_NONE
 * @end: its index, if @peer is RSM_TOPO_END
 * @peer_port: number of the port of that switch
 * @vls: data VLs that the link can use, 1 to 15
 */
struct rsm_topo_port {
	int32_t peer;
	int32_t end;
	uint8_t peer_port;
	uint8_t vls;
};

/**
 * struct rsm_topo_switch - a switch
 * @guid: of the node
 * @name: NodeDescription
 * @lid: of its port 0; 0: it has none yet
 * @n_ports: with port 0
 * @ports: by number; nothing is behind port 0
 */
struct rsm_topo_switch {
	uint64_t guid;
	const char *name;
	uint16_t lid;
	uint16_t n_ports;
	struct rsm_topo_port *ports;
};

/**
 * struct rsm_topo_end - a port of a host or router that is cabled to a switch and has a LID
 * @guid: of the port
 * @name: NodeDescription
 * @lid: its first
 * @n_lids: a power of two: 1 << LMC
 * @leaf: index of the switch
 * @leaf_port: number of the switch's port
 * @vls: data VLs that the link can use, 1 to 15
 * @received: traffic that came to it lately, beside the others; 0 where it is not counted
 */
struct rsm_topo_end {
	uint64_t guid;
	const char *name;
	uint16_t lid;
	uint8_t n_lids;
	int32_t leaf;
	uint8_t leaf_port;
	uint8_t vls;
	uint64_t received;
};

/**
 * struct rsm_topo_member - an end that is in a partition
 * @end: its index
 * @full: limited members do not talk to one another
 */
struct rsm_topo_member {
	int32_t end;
	bool full;
};

/**
 * struct rsm_topo_partition - who may talk to whom
 * @pkey: without the bit for the membership
 * @name: in the partition file
 * @members: an end is there once
 * @n_members: of them
 */
struct rsm_topo_partition {
	uint16_t pkey;
	const char *name;
	struct rsm_topo_member *members;
	uint32_t n_members;
};

/**
 * struct rsm_topo - all of it
 * @switches: in the order of their node GUIDs
 * @n_switches: of them
 * @ends: in the order of their port GUIDs
 * @n_ends: of them
 * @partitions: in the order of their P_Keys
 * @n_partitions: of them
 * @max_lid: the highest that anything has
 * @vls: data VLs that every link between two switches can use; 1 if there is none, and without QoS
 */
struct rsm_topo {
	struct rsm_topo_switch *switches;
	uint32_t n_switches;
	struct rsm_topo_end *ends;
	uint32_t n_ends;
	struct rsm_topo_partition *partitions;
	uint32_t n_partitions;
	uint16_t max_lid;
	uint8_t vls;
};

void rsm_topo_sort(struct rsm_topo *topo);
int32_t rsm_topo_switch_index(const struct rsm_topo *topo, uint64_t guid);
int32_t rsm_topo_end_index(const struct rsm_topo *topo, uint64_t guid);
uint32_t *rsm_topo_ends_by_lid(const struct rsm_topo *topo);
void rsm_topo_free(struct rsm_topo *topo);

#endif
