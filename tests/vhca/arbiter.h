/* SPDX-License-Identifier: GPL-2.0 */
/* Which data VL sends next: two weighted tables and a limit (IBA 1.2.1 vol 1, 7.6.9). */
#ifndef VHCA_ARBITER_H
#define VHCA_ARBITER_H

#include <rdma/ib_smi.h>

#define VHCA_ARB_ENTRIES 32	/* of each table: VLArbitrationLowCap, HighCap */

enum vhca_arb_table {
	VHCA_ARB_LOW,
	VHCA_ARB_HIGH,
	VHCA_ARB_TABLES,
};

/**
 * struct vhca_arbiter - the tables, and where the turn is
 * @at: index of the entry whose turn it is
 * @left: bytes it may still send
 * @high_left: bytes the high table may send before the low one gets a turn
 * @limit: VLHighLimit: units of 4 KiB; 255 is no limit
 */
struct vhca_arbiter {
	struct ib_vl_weight_elem table[VHCA_ARB_TABLES][VHCA_ARB_ENTRIES];
	u8 at[VHCA_ARB_TABLES];
	s32 left[VHCA_ARB_TABLES];
	s32 high_left;
	u8 limit;
};

/* Until the SM writes the tables: all VLs alike in the low one, the high one empty. */
void vhca_arbiter_init(struct vhca_arbiter *a);

/**
 * vhca_arbiter_pick() - the VL whose turn it is
 * @ready: bits of VLs that have a packet and credits for it; not 0
 * @bytes: of that packet, per VL
 *
 * A VL that is in no table sends when no other can.
 */
unsigned int vhca_arbiter_pick(struct vhca_arbiter *a, u32 ready, const u32 *bytes);

#endif
