/* SPDX-License-Identifier: GPL-2.0 */
/* Notices to the subnet manager (IBA 1.2.1 vol 1, 14.2.5.1, 14.3.9): repeated until repressed. */
#ifndef VHCA_TRAP_H
#define VHCA_TRAP_H

#include "vhca.h"

void vhca_traps_init(struct vhca_port *port);
/* May be called again. */
void vhca_traps_stop(struct vhca_port *port);
void vhca_traps_again(struct vhca_port *port);

/* Traps 257 and 258: a packet with a wrong P_Key or Q_Key came for @qpn. Any context. */
void vhca_trap_bad_key(struct vhca_port *port, __be16 trap, u32 key, const struct vhca_rx *rx,
		       u32 qpn);

/* Trap 256: an SMP with a wrong M_Key came from @slid. */
void vhca_trap_bad_mkey(struct vhca_port *port, u16 slid, const struct ib_smp *smp);

/* Trap 144: PortInfo.CapabilityMask or NodeDescription has changed. */
void vhca_trap_cap_mask(struct rvt_dev_info *rdi, u32 num);
void vhca_trap_node_desc(struct vhca_port *port);

/* TrapRepress from the SM. */
void vhca_trap_repress(struct vhca_port *port, const struct ib_smp *smp);

#endif
