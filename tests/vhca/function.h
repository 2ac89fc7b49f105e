/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that share a port (SR-IOV): one LID, one space of QPNs, one QP1 (../vfabric/shared.h). The PF
 * has the port; a VF's is what the PF says of it, and its GUID is an entry of the PF's table.
 */
#ifndef VHCA_FUNCTION_H
#define VHCA_FUNCTION_H

#include "vhca.h"
#include "wire.h"

/* rvt_driver_provided.alloc_qpn of a device that shares its port: the upper bits are the function. */
int vhca_function_qpn(struct rvt_dev_info *rdi, struct rvt_qpn_table *qpt, enum ib_qp_type type,
		      u32 port_num);
/*
 * A queue pair of whatever device is gone: rdmavt gives QP0's and QP1's numbers out once in the life of a device,
 * whose clients come and go with its network namespace.
 */
void vhca_function_free_special(struct rvt_dev_info *rdi, struct rvt_qp *qp);
/* What a PF tells its VFs of the port. */
void vhca_function_news(struct vhca_port *port, struct vhca_port_news *news);
/* A VF's port is what the PF has told. */
void vhca_function_follow(struct vhca_port *port, const struct vhca_port_news *news);

/* vguid.c: has the SM know the GUIDs of a PF's VFs, and choose those that nobody chose. */
void vhca_vguids_init(void);
void vhca_vguids_exit(void);
void vhca_vguids_start(struct vhca_port *port);
/* May be called again. */
void vhca_vguids_stop(struct vhca_port *port);
/* After that. */
void vhca_vguids_again(struct vhca_port *port);
/* The SM is new, or the port is: it is told again. */
void vhca_vguids_tell(struct vhca_port *port);

#endif
