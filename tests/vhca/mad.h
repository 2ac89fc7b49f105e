/* SPDX-License-Identifier: GPL-2.0 */
/* The agents of a port: subnet management (chapter 14) and performance management (16.1). */
#ifndef VHCA_MAD_H
#define VHCA_MAD_H

#include "vhca.h"

/* Status of a MAD, its low byte as in 13.4.7. */
enum {
	VHCA_MAD_OK = 0,
	VHCA_MAD_BAD_CLASS = 1 << 2,
	VHCA_MAD_BAD_METHOD = 2 << 2,
	VHCA_MAD_BAD_ATTRIBUTE = 3 << 2,
	VHCA_MAD_BAD_VALUE = 7 << 2,
};

/* ib_device_ops.process_mad */
int vhca_process_mad(struct ib_device *device, int flags, u32 num, const struct ib_wc *wc,
		     const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index);

/* @slid: who asks. */
int vhca_sma(struct vhca_dev *dev, int flags, u32 num, u16 slid, struct ib_smp *smp);
int vhca_pma(struct vhca_dev *dev, u32 num, struct ib_mad *mad);

/* PortInfo: 64 bytes. Return: a status. */
u16 vhca_port_info_get(struct vhca_port *port, const struct ib_smp *smp, u8 *data);
u16 vhca_port_info_set(struct vhca_port *port, struct ib_smp *smp);
/* A VF's port is like the PF's, of which this is the PortInfo; not above INIT if not @usable. */
void vhca_port_info_follow(struct vhca_port *port, const u8 *data, bool usable);

/* A reply with that status, in place. */
static inline int vhca_mad_reply(struct ib_mad_hdr *hdr, u16 status)
{
	hdr->status |= cpu_to_be16(status);
	hdr->method = IB_MGMT_METHOD_GET_RESP;
	if (hdr->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		hdr->status |= IB_SMP_DIRECTION;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

#endif
