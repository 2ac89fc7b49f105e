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
 * @layers: in which the engine keeps paths apart, 1 if it does not: they keep SLs and VLs of their own
 * @layer: that of a path; NULL: one layer
 * @context: for @layer
 * @sls: service levels of each layer
 * @vls: lanes of each layer
 * @even: SLs get about as many paths each: more of them are needed for as many queues
 * @hosts: the inputs that hosts send to have queues, too: by the hosts' tables
 */
struct rsm_voq_spec {
	const struct rsm_topo *topo;
	uint8_t *const *lft;
	uint32_t n_lft;
	unsigned int layers;
	uint8_t (*layer)(void *context, uint16_t slid, uint16_t dlid);
	void *context;
	unsigned int sls, vls;
	bool even;
	bool hosts;
};

/**
 * struct rsm_voq - service levels and lanes
 * @spec: what they were made of
 * @crossings: that any path takes
 * @considered: of them, the most used ones, which have queues of their own
 * @used_sls: of each layer, at most
 * @sl: by source end and destination LID
 * @first: by switch: index of its crossings
 * @first_end: index of the crossings from hosts into their switches
 * @port_index: by switch and port: its number among those with a cable
 * @weight: by crossing: paths that take it
 * @rank: by crossing: its place by weight, from 0 on
 * @used: by crossing: set of SLs, @words long
 * @n: crossings that there could be
 * @words: of a set of SLs
 * @most_ports: of a switch, with port 0
 */
struct rsm_voq {
	struct rsm_voq_spec spec;
	uint32_t crossings, considered;
	unsigned int used_sls;
	uint16_t *sl;
	uint64_t *first;
	uint64_t first_end;
	uint8_t **port_index;
	uint32_t *weight;
	uint32_t *rank;
	uint64_t *used;
	uint64_t n;
	unsigned int words;
	unsigned int most_ports;
};

int rsm_voq_make(const struct rsm_voq_spec *spec, struct rsm_voq *voq, char *why, size_t size);
uint16_t rsm_voq_sl(const struct rsm_voq *voq, uint32_t end, uint16_t dlid);
uint8_t rsm_voq_vl(const struct rsm_voq *voq, uint32_t sw, uint8_t in, uint8_t out, uint16_t sl);
uint8_t rsm_voq_end_vl(const struct rsm_voq *voq, uint32_t end, uint16_t sl);
uint8_t rsm_voq_port_vl(const struct rsm_voq *voq, uint32_t sw, uint8_t out, unsigned int layer);
uint64_t rsm_voq_crossing(const struct rsm_voq *voq, uint32_t sw, uint8_t in, uint8_t out,
			  uint8_t next);
void rsm_voq_free(struct rsm_voq *voq);

#endif
