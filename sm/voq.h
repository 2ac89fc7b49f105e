/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Virtual output queues out of lanes: packets that a switch sends by different ports wait in different
 * lanes of its inputs, as far as service levels go. For any engine's tables.
 *
 * A crossing is a way through two switches: in and out of the first one, and out of the next. The
 * first one's SLtoVL table chooses the lane at the next, by its ports and the service level: paths
 * that part at the next switch need different ones.
 */
#ifndef RSM_VOQ_H
#define RSM_VOQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo.h"

#define RSM_VOQ_SLS 512 /* at most; a fabric has 16 */

/**
 * struct rsm_voq_spec - what there is to use
 * @topo: the fabric
 * @lft: tables by the switch's index
 * @n_lft: entries of each
 * @layers: in which the engine keeps paths apart, 1 if it does not: they keep SLs of their own
 * @layer: that of a path; NULL: one layer
 * @context: for @layer
 * @lanes: that the engine has for its layers; 0: each layer has one of its own
 * @sls: service levels of each layer
 * @vls: that become of each of the engine's lanes
 * @step: from a VL of a lane's to its next one; 0: as many as there are lanes. A power of two keeps lanes apart where
 *	OpenSM masks VLs, as it does while a link has fewer than others, if it has one for each lane
 * @even: SLs get about as many paths each: more of them are needed for as many queues
 * @hosts: the inputs that hosts send to have queues, too: by the hosts' tables
 * @inner: only crossings that come from a switch and go to one have queues (for measurements)
 */
struct rsm_voq_spec {
	const struct rsm_topo *topo;
	uint8_t *const *lft;
	uint32_t n_lft;
	unsigned int layers;
	uint8_t (*layer)(void *context, uint16_t slid, uint16_t dlid);
	void *context;
	unsigned int lanes;
	unsigned int sls, vls, step;
	bool even;
	bool hosts;
	bool inner;
};

/**
 * struct rsm_voq_hop - a crossing that a path takes
 * @table: number of the SLtoVL table that chooses the lane at the next switch
 * @next: where the path leaves that one
 */
struct rsm_voq_hop {
	uint32_t table;
	uint8_t next;
};

/**
 * struct rsm_voq - service levels and lanes
 * @spec: what they were made of
 * @crossings: that any path takes; hosts of a switch come in by one and the same port of it
 * @considered: of them, the most used ones, which have queues of their own
 * @used_sls: of each layer, at most
 * @sl: by the switch that hosts are at, layer and destination LID
 * @paths: by the same: how many hosts that is
 * @leaf: by switch: 1 + its number among those with hosts; 0: none
 * @n_leaves: of them
 * @link: by switch and port: 1 + its number among links to switches; 0: none
 * @n_links: of them, by switch
 * @first: by switch: number of its first table
 * @first_end: number of the first table of hosts
 * @n_tables: of all
 * @port_index: by switch and port: its number among those with a cable
 * @rank: by table and next port: the crossing's place by weight, from 1 on; 0: nobody's
 * @owner: by table and SL: where paths that have it leave the next switch; 0: nobody has it
 * @way: the path that is being looked at
 * @most_ports: of a switch, with port 0
 */
struct rsm_voq {
	struct rsm_voq_spec spec;
	uint32_t crossings, considered;
	unsigned int used_sls;
	uint16_t *sl;
	uint16_t *paths;
	uint32_t *leaf;
	uint32_t n_leaves;
	uint8_t **link;
	uint32_t *n_links;
	uint32_t *first;
	uint32_t first_end;
	uint32_t n_tables;
	uint8_t **port_index;
	uint32_t *rank;
	uint8_t *owner;
	struct rsm_voq_hop *way;
	unsigned int most_ports;
};

int rsm_voq_make(const struct rsm_voq_spec *spec, struct rsm_voq *voq, char *why, size_t size);
uint16_t rsm_voq_sl(const struct rsm_voq *voq, uint32_t end, uint16_t dlid);
uint8_t rsm_voq_vl(const struct rsm_voq *voq, uint32_t sw, uint8_t in, uint8_t out, uint16_t sl,
		   const uint8_t *lanes);
uint8_t rsm_voq_end_vl(const struct rsm_voq *voq, uint32_t end, uint16_t sl, const uint8_t *lanes);
uint8_t rsm_voq_port_vl(const struct rsm_voq *voq, uint32_t sw, uint8_t out, unsigned int lane);
int rsm_voq_queued(const struct rsm_voq *voq, uint32_t sw, uint8_t in, uint8_t out, uint8_t next);
void rsm_voq_free(struct rsm_voq *voq);

#endif
