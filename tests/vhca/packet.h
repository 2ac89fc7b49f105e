/* SPDX-License-Identifier: GPL-2.0 */
/* Packets as bytes, LRH..ICRC (IBA 1.2.1 vol 1, 7.7, 7.8, 8.3, 9.2, 9.3): built and taken apart. */
#ifndef VHCA_PACKET_H
#define VHCA_PACKET_H

#include <linux/list.h>
#include <rdma/ib_hdrs.h>
#include <rdma/ib_pack.h>

#define VHCA_LID_PERMISSIVE 0xffff
#define VHCA_LID_MULTICAST 0xc000
#define VHCA_MAX_EXT 28u	/* AtomicETH is the longest of the extended headers */
#define VHCA_MAX_MTU 4096u

struct vhca_qp;

/**
 * struct vhca_packet - a packet that waits to be sent
 * @list: in a lane
 * @owner: the queue pair that sent it; it counts what it has waiting. NULL for a multicast copy
 * @size: of @bytes, LRH to ICRC
 * @lane: the VL, or VHCA_LANE_LOOP
 */
struct vhca_packet {
	struct list_head list;
	struct vhca_qp *owner;
	u16 size;
	u8 lane;
	u8 bytes[];
};

/**
 * struct vhca_address - what goes into LRH and GRH
 * @grh: NULL without a GRH; its paylen is filled in by vhca_packet_new()
 */
struct vhca_address {
	u16 slid, dlid;
	u8 sl, vl;
	const struct ib_grh *grh;
};

/* What goes into BTH (9.2). */
struct vhca_bth {
	u8 opcode;
	bool solicited, migreq, ackreq;
	u16 pkey;
	u32 qpn, psn;
};

/**
 * struct vhca_rx - a packet taken apart; pointers are into its bytes
 * @ext: the extended transport headers
 * @data: the payload without padding
 * @grh: NULL without one
 * @loop: it did not come from the wire, but from this port
 */
struct vhca_rx {
	const u8 *ext;
	u8 *data;
	struct ib_grh *grh;
	u32 length;
	u16 slid, dlid;
	u8 sl, vl;
	bool loop;
	struct vhca_bth bth;
};

/**
 * vhca_opcode_ext() - bytes of extended transport headers behind BTH
 * Return: -1 for an opcode that no RC, UC or UD queue pair sends.
 */
int vhca_opcode_ext(u8 opcode);

/**
 * vhca_packet_new() - a packet with everything but extended headers, payload and ICRC
 * @payload: its length without padding
 * @ext: set to where the extended headers go; the payload follows them
 *
 * Any context. Return: NULL without memory.
 */
struct vhca_packet *vhca_packet_new(const struct vhca_address *to, const struct vhca_bth *bth,
				    u32 payload, u8 **ext);

/* Writes the ICRC; to be called when nothing else changes any more. */
void vhca_packet_seal(struct vhca_packet *packet);

/**
 * vhca_packet_parse() - take a packet apart
 * @check: whether to compare the ICRC
 *
 * Trusts nothing: every length is checked against what is there.
 * Return: false if it is not an IBA transport packet that is well formed.
 */
bool vhca_packet_parse(struct vhca_rx *rx, u8 *bytes, size_t size, bool check);

/* The invariant CRC (7.8.1) of a packet of @size bytes with the ICRC's own four. */
u32 vhca_packet_icrc(const u8 *bytes, size_t size);

#endif
