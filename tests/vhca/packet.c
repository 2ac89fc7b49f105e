// SPDX-License-Identifier: GPL-2.0
#include <linux/crc32.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "packet.h"

/* Bytes behind BTH by the low five bits of the opcode; 0xff: not used (9.2, table 38). */
static const u8 rc_ext[32] = {
	[IB_OPCODE_SEND_LAST_WITH_IMMEDIATE] = 4,
	[IB_OPCODE_SEND_ONLY_WITH_IMMEDIATE] = 4,
	[IB_OPCODE_RDMA_WRITE_FIRST] = 16,
	[IB_OPCODE_RDMA_WRITE_LAST_WITH_IMMEDIATE] = 4,
	[IB_OPCODE_RDMA_WRITE_ONLY] = 16,
	[IB_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE] = 20,
	[IB_OPCODE_RDMA_READ_REQUEST] = 16,
	[IB_OPCODE_RDMA_READ_RESPONSE_FIRST] = 4,
	[IB_OPCODE_RDMA_READ_RESPONSE_LAST] = 4,
	[IB_OPCODE_RDMA_READ_RESPONSE_ONLY] = 4,
	[IB_OPCODE_ACKNOWLEDGE] = 4,
	[IB_OPCODE_ATOMIC_ACKNOWLEDGE] = 12,
	[IB_OPCODE_COMPARE_SWAP] = 28,
	[IB_OPCODE_FETCH_ADD] = 28,
	[0x15 ... 0x1f] = 0xff,
};

int vhca_opcode_ext(u8 opcode)
{
	u8 operation = opcode & 0x1f;

	switch (opcode & 0xe0) {
	case IB_OPCODE_UC:
		if (operation > IB_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE)
			return -1;
		fallthrough;
	case IB_OPCODE_RC:
		return rc_ext[operation] == 0xff ? -1 : rc_ext[operation];
	case IB_OPCODE_UD:
		if (operation == IB_OPCODE_SEND_ONLY)
			return 8;
		if (operation == IB_OPCODE_SEND_ONLY_WITH_IMMEDIATE)
			return 12;
		return -1;
	default:
		return -1;
	}
}

struct vhca_packet *vhca_packet_new(const struct vhca_address *to, const struct vhca_bth *bth,
				    u32 payload, u8 **ext)
{
	u32 pad = -payload & 3, ext_size = vhca_opcode_ext(bth->opcode);
	u32 size = IB_LRH_BYTES + IB_BTH_BYTES + ext_size + payload + pad + IB_ICRC_BYTES;
	struct vhca_packet *packet;
	__be16 *lrh;
	__be32 *b;

	if (to->grh)
		size += sizeof(*to->grh);
	packet = kmalloc(struct_size(packet, bytes, size), GFP_ATOMIC | __GFP_NOWARN);
	if (!packet)
		return NULL;
	packet->owner = NULL;
	packet->size = size;
	packet->lane = to->vl;
	lrh = (__be16 *)packet->bytes;
	lrh[0] = cpu_to_be16(to->vl << 12 | to->sl << 4 |
			     (to->grh ? IB_LNH_IBA_GLOBAL : IB_LNH_IBA_LOCAL));
	lrh[1] = cpu_to_be16(to->dlid);
	lrh[2] = cpu_to_be16(size / 4);
	lrh[3] = cpu_to_be16(to->slid);
	b = (__be32 *)(packet->bytes + IB_LRH_BYTES);
	if (to->grh) {
		struct ib_grh *grh = (struct ib_grh *)b;

		*grh = *to->grh;
		grh->paylen = cpu_to_be16(size - IB_LRH_BYTES - sizeof(*grh));
		b = (__be32 *)(grh + 1);
	}
	b[0] = cpu_to_be32(bth->opcode << IB_BTH_OPCODE_SHIFT | bth->solicited << IB_BTH_SE_SHIFT |
			   bth->migreq << IB_BTH_M_SHIFT | pad << IB_BTH_PAD_SHIFT | bth->pkey);
	b[1] = cpu_to_be32(bth->qpn & IB_QPN_MASK);
	b[2] = cpu_to_be32((u32)bth->ackreq << IB_BTH_A_SHIFT | (bth->psn & 0xffffff));
	*ext = (u8 *)(b + 3);
	memset(*ext + ext_size + payload, 0, pad);
	return packet;
}

u32 vhca_packet_icrc(const u8 *bytes, size_t size)
{
	bool global = (bytes[1] & 3) == IB_LNH_IBA_GLOBAL;
	u8 head[IB_LRH_BYTES + sizeof(struct ib_grh) + IB_BTH_BYTES];
	size_t at = IB_LRH_BYTES + (global ? sizeof(struct ib_grh) : 0), n = at + IB_BTH_BYTES;
	u32 crc;

	memcpy(head, bytes, n);
	if (global) {
		struct ib_grh *grh = (struct ib_grh *)(head + IB_LRH_BYTES);

		memset(head, 0xff, IB_LRH_BYTES);	/* routers write it anew */
		grh->version_tclass_flow |= cpu_to_be32(0x0fffffff);
		grh->hop_limit = 0xff;
	} else {
		head[0] |= 0xf0;			/* VL changes from hop to hop */
	}
	head[at + 4] = 0xff;				/* BTH's reserved 8a */
	crc = crc32_le(~0, head, n);
	return ~crc32_le(crc, bytes + n, size - n - IB_ICRC_BYTES);
}

void vhca_packet_seal(struct vhca_packet *packet)
{
	/* It goes least significant byte first (7.8.1). */
	put_unaligned_le32(vhca_packet_icrc(packet->bytes, packet->size),
			   packet->bytes + packet->size - IB_ICRC_BYTES);
}

static bool grh_is_good(const struct ib_grh *grh, size_t size)
{
	return be32_to_cpu(grh->version_tclass_flow) >> IB_GRH_VERSION_SHIFT == IB_GRH_VERSION &&
	       grh->next_hdr == IB_GRH_NEXT_HDR &&
	       be16_to_cpu(grh->paylen) == size - IB_LRH_BYTES - sizeof(*grh);
}

bool vhca_packet_parse(struct vhca_rx *rx, u8 *bytes, size_t size, bool check)
{
	size_t at = IB_LRH_BYTES;
	u16 head, words;
	u32 b0, b2, pad;
	int ext;

	if (size < IB_LRH_BYTES + IB_BTH_BYTES + IB_ICRC_BYTES)
		return false;
	head = get_unaligned_be16(bytes);
	words = get_unaligned_be16(bytes + 4);
	if ((head >> IB_LVER_SHIFT) & IB_LVER_MASK || (words & 0x7ff) * 4 != size)
		return false;
	rx->grh = NULL;
	switch (head & IB_LNH_MASK) {
	case IB_LNH_IBA_GLOBAL:
		rx->grh = (struct ib_grh *)(bytes + at);
		at += sizeof(*rx->grh);
		if (size < at + IB_BTH_BYTES + IB_ICRC_BYTES || !grh_is_good(rx->grh, size))
			return false;
		break;
	case IB_LNH_IBA_LOCAL:
		break;
	default:
		return false;
	}
	b0 = get_unaligned_be32(bytes + at);
	b2 = get_unaligned_be32(bytes + at + 8);
	rx->vl = head >> IB_SC_SHIFT;
	rx->sl = head >> IB_SL_SHIFT & 15;
	rx->dlid = get_unaligned_be16(bytes + 2);
	rx->slid = get_unaligned_be16(bytes + 6);
	rx->bth.opcode = b0 >> IB_BTH_OPCODE_SHIFT;
	rx->bth.solicited = b0 >> IB_BTH_SE_SHIFT & 1;
	rx->bth.migreq = b0 >> IB_BTH_M_SHIFT & 1;
	rx->bth.pkey = b0 & IB_BTH_PKEY_MASK;
	rx->bth.qpn = get_unaligned_be32(bytes + at + 4) & IB_QPN_MASK;
	rx->bth.ackreq = b2 >> IB_BTH_A_SHIFT;
	rx->bth.psn = b2 & 0xffffff;
	pad = b0 >> IB_BTH_PAD_SHIFT & IB_BTH_PAD_MASK;
	ext = vhca_opcode_ext(rx->bth.opcode);
	at += IB_BTH_BYTES;
	if ((b0 >> IB_BTH_TVER_SHIFT) & IB_BTH_TVER_MASK || ext < 0 ||
	    size < at + ext + pad + IB_ICRC_BYTES)
		return false;
	rx->ext = bytes + at;
	rx->data = bytes + at + ext;
	rx->length = size - at - ext - pad - IB_ICRC_BYTES;
	rx->loop = false;
	return rx->length <= VHCA_MAX_MTU &&
	       (!check || vhca_packet_icrc(bytes, size) ==
			  get_unaligned_le32(bytes + size - IB_ICRC_BYTES));
}
