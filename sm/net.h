/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a routing has made of a fabric, as far as path records depend on it. */
#ifndef RSM_NET_H
#define RSM_NET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * MTU and rate of a path or of a link in one byte: enum ib_mtu above 5 bits of the rate's place
 * among all rates (rate.h). The least of two is the least of each.
 */
#define RSM_ATTR(mtu, place)	((uint8_t)((mtu) << 5 | (place)))
#define RSM_ATTR_MTU(attr)	((attr) >> 5)
#define RSM_ATTR_PLACE(attr)	((attr) & 0x1f)
#define RSM_ATTR_ALL		RSM_ATTR(7, 31) /* of no link at all */
#define RSM_UNKNOWN_PATH	0 /* nobody can have heard of it */
#define RSM_NO_PATH		1 /* the routing does not get there: MTU 0 */

static inline uint8_t rsm_attr_least(uint8_t a, uint8_t b)
{
	uint8_t mtu = (a & 0xe0) < (b & 0xe0) ? a & 0xe0 : b & 0xe0;
	uint8_t place = (a & 0x1f) < (b & 0x1f) ? a & 0x1f : b & 0x1f;

	return mtu | place;
}

#define RSM_LINK_NONE	-1 /* peers of a switch's port that are not switches */
#define RSM_LINK_END	-2

/**
 * struct rsm_link - what is behind a port of a switch
 * @peer: index of the switch, RSM_LINK_END or RSM_LINK_NONE
 * @lid: of the end, its first
 * @attr: the least of the port, and of the port behind it
 */
struct rsm_link {
	int32_t peer;
	uint16_t lid;
	uint8_t attr;
};

/**
 * struct rsm_net_switch - a switch
 * @guid: of the node
 * @lft: output ports by LID
 * @n_lft: entries of it
 * @n_ports: with port 0
 * @links: by port
 */
struct rsm_net_switch {
	uint64_t guid;
	const uint8_t *lft;
	uint32_t n_lft;
	uint16_t n_ports;
	struct rsm_link *links;
};

/**
 * struct rsm_net_end - a port of a host
 * @guid: of the port
 * @lid: its first
 * @n_lids: a power of two
 * @lends: its LID is that of the VM that has it, and goes where that goes
 * @leaf: index of the switch that it is cabled to
 * @attr: the least of the port, and of the switch's port behind it
 */
struct rsm_net_end {
	uint64_t guid;
	uint16_t lid;
	uint8_t n_lids;
	bool lends;
	int32_t leaf;
	uint8_t attr;
};

/**
 * enum rsm_lanes - what the service level of a path depends on
 * @RSM_LANES_NONE: nothing: it is the partition's
 * @RSM_LANES_SWITCH: the switches at its ends
 * @RSM_LANES_PORT: the LIDs at its ends
 */
enum rsm_lanes {
	RSM_LANES_NONE,
	RSM_LANES_SWITCH,
	RSM_LANES_PORT,
};

/**
 * struct rsm_net - all of it
 * @switches: in any order
 * @n_switches: of them
 * @ends: in any order
 * @n_ends: of them
 * @max_lid: the highest LID of an end
 * @lanes: see enum rsm_lanes
 * @sl: of a path, unless @lanes is RSM_LANES_NONE
 * @context: for @sl
 * @sm_lid: the first of a port whose paths, both ways, have @sm_sl whatever @lanes is; 0: none
 * @sm_sl: see there
 * @moved: LIDs of VMs that have changed places, since which nothing else has to be looked at
 * @n_moved: of them; 0: anything may be other than it was
 */
struct rsm_net {
	struct rsm_net_switch *switches;
	uint32_t n_switches;
	struct rsm_net_end *ends;
	uint32_t n_ends;
	uint16_t max_lid;
	enum rsm_lanes lanes;
	uint8_t (*sl)(void *context, uint16_t slid, uint16_t dlid);
	void *context;
	uint16_t sm_lid;
	uint8_t sm_sl;
	uint16_t moved[2];
	uint32_t n_moved;
};

#endif
