// SPDX-License-Identifier: GPL-2.0
#include "lane.h"
#include "mad.h"
#include "trap.h"

/* The port that an attribute modifier names: 0 is the one that was asked. */
static struct vhca_port *named_port(struct vhca_dev *dev, u32 num, const struct ib_smp *smp)
{
	u32 named = be32_to_cpu(smp->attr_mod) & 0xff;

	if (!named)
		named = num;
	return named <= dev->nports ? vhca_port(dev, named) : NULL;
}

/* The M_Key's lease runs from the first violation until the key is seen again (14.2.4.2). */
static void check_lease(struct vhca_port *port)
{
	struct rvt_ibport *ibp = &port->ibp;

	if (ibp->mkey_lease_timeout && time_after_eq(jiffies, ibp->mkey_lease_timeout)) {
		ibp->mkey_lease_timeout = 0;
		ibp->mkeyprot = 0;
	}
}

/* Whether the M_Key allows this SMP (14.2.4.1, table 115). */
static bool mkey_ok(struct vhca_port *port, u16 slid, const struct ib_smp *smp)
{
	struct rvt_ibport *ibp = &port->ibp;
	bool match = !ibp->mkey || smp->mkey == ibp->mkey;

	check_lease(port);
	if (match) {
		ibp->mkey_lease_timeout = 0;
		return true;
	}
	if (smp->method == IB_MGMT_METHOD_GET && ibp->mkeyprot < 2)
		return true;
	if (smp->method == IB_MGMT_METHOD_TRAP_REPRESS)
		return true;
	if (ibp->mkey_violations != 0xffff)
		ibp->mkey_violations++;
	if (!ibp->mkey_lease_timeout && ibp->mkey_lease_period)
		ibp->mkey_lease_timeout = jiffies + ibp->mkey_lease_period * HZ;
	vhca_trap_bad_mkey(port, slid, smp);
	return false;
}

static u16 node_info(struct vhca_dev *dev, u32 num, struct ib_smp *smp)
{
	struct ib_node_info *info = (struct ib_node_info *)smp->data;

	if (smp->method == IB_MGMT_METHOD_SET)
		return VHCA_MAD_BAD_METHOD;
	memset(smp->data, 0, sizeof(smp->data));
	info->base_version = 1;
	info->class_version = 1;
	info->node_type = 1;
	info->num_ports = dev->nports;
	info->sys_guid = cpu_to_be64(dev->guid);
	info->node_guid = cpu_to_be64(dev->guid);
	info->port_guid = vhca_port(dev, num)->guids[0];
	info->partition_cap = cpu_to_be16(VHCA_PKEYS);
	info->device_id = cpu_to_be16(dev->rdi.dparms.props.vendor_part_id);
	info->revision = cpu_to_be32(1);
	info->local_port_num = num;
	put_unaligned_be24(dev->rdi.dparms.props.vendor_id, info->vendor_id);
	return VHCA_MAD_OK;
}

static u16 node_desc(struct vhca_dev *dev, u32 num, struct ib_smp *smp)
{
	if (smp->method == IB_MGMT_METHOD_SET)
		return VHCA_MAD_BAD_METHOD;
	memcpy(smp->data, dev->rdi.ibdev.node_desc, sizeof(smp->data));
	return VHCA_MAD_OK;
}

static u16 port_info(struct vhca_dev *dev, u32 num, struct ib_smp *smp)
{
	struct vhca_port *port = named_port(dev, num, smp);
	u16 status;

	if (!port)
		return VHCA_MAD_BAD_VALUE;
	if (smp->method == IB_MGMT_METHOD_GET)
		return vhca_port_info_get(port, smp, smp->data);
	status = vhca_port_info_set(port, smp);
	return status;
}

static u16 pkey_table(struct vhca_dev *dev, u32 num, struct ib_smp *smp)
{
	struct vhca_port *port = vhca_port(dev, num);
	__be16 *keys = (__be16 *)smp->data;
	bool changed = false;
	unsigned int i;

	if (be32_to_cpu(smp->attr_mod) & 0xffff)
		return VHCA_MAD_BAD_VALUE;
	for (i = 0; smp->method == IB_MGMT_METHOD_SET && i < VHCA_PKEYS; i++) {
		u16 key = be16_to_cpu(keys[i]);

		if (!(key & 0x7fff))	/* membership of no partition is no entry (10.9.1.1) */
			key = 0;
		changed |= key != port->pkeys[i];
		WRITE_ONCE(port->pkeys[i], key);
	}
	for (i = 0; i < VHCA_PKEYS; i++)
		keys[i] = cpu_to_be16(port->pkeys[i]);
	if (changed)
		vhca_dev_event(port, IB_EVENT_PKEY_CHANGE);
	return VHCA_MAD_OK;
}

static u16 guid_info(struct vhca_dev *dev, u32 num, struct ib_smp *smp)
{
	struct vhca_port *port = vhca_port(dev, num);
	u32 block = be32_to_cpu(smp->attr_mod), i;
	__be64 *guids = (__be64 *)smp->data;
	bool changed = false;

	if (block >= VHCA_GUIDS / 8)
		return VHCA_MAD_BAD_VALUE;
	for (i = 0; smp->method == IB_MGMT_METHOD_SET && i < 8; i++) {
		__be64 guid = get_unaligned(&guids[i]);

		/* The first is the port's own and read-only (14.2.5.5). */
		if (!(block + i) || guid == port->guids[block * 8 + i])
			continue;
		WRITE_ONCE(port->guids[block * 8 + i], guid);
		changed = true;
	}
	memcpy(smp->data, &port->guids[block * 8], sizeof(smp->data));
	if (changed)
		vhca_dev_event(port, IB_EVENT_GID_CHANGE);
	return VHCA_MAD_OK;
}

static u16 sl_to_vl(struct vhca_dev *dev, u32 num, struct ib_smp *smp)
{
	struct vhca_port *port = vhca_port(dev, num);
	unsigned int sl;

	for (sl = 0; smp->method == IB_MGMT_METHOD_SET && sl < 16; sl++)
		WRITE_ONCE(port->sl2vl[sl], smp->data[sl / 2] >> (sl & 1 ? 0 : 4) & 15);
	memset(smp->data, 0, sizeof(smp->data));
	for (sl = 0; sl < 16; sl++)
		smp->data[sl / 2] |= port->sl2vl[sl] << (sl & 1 ? 0 : 4);
	return VHCA_MAD_OK;
}

static u16 vl_arbitration(struct vhca_dev *dev, u32 num, struct ib_smp *smp)
{
	struct vhca_port *port = vhca_port(dev, num);
	u32 block = be32_to_cpu(smp->attr_mod) >> 16;
	enum vhca_arb_table t = block == 3 ? VHCA_ARB_HIGH : VHCA_ARB_LOW;
	unsigned long flags;

	BUILD_BUG_ON(sizeof(port->arbiter.table[0]) != sizeof(smp->data));
	/* Blocks 2 and 4 would be entries from 32 on, which PortInfo says are not there. */
	if (block != 1 && block != 3)
		return VHCA_MAD_BAD_VALUE;
	spin_lock_irqsave(&port->lane_lock, flags);
	if (smp->method == IB_MGMT_METHOD_SET) {
		memcpy(port->arbiter.table[t], smp->data, sizeof(smp->data));
		port->arbiter.at[t] = 0;
		port->arbiter.left[t] = 0;
	} else {
		memcpy(smp->data, port->arbiter.table[t], sizeof(smp->data));
	}
	spin_unlock_irqrestore(&port->lane_lock, flags);
	return VHCA_MAD_OK;
}

/* Traps are sent; there is no queue to be polled. */
static u16 notice(struct vhca_dev *dev, u32 num, struct ib_smp *smp)
{
	memset(smp->data, 0, sizeof(smp->data));
	smp->data[0] = 0xff;	/* an empty notice (14.2.5.1) */
	return VHCA_MAD_OK;
}

static u16 no_attribute(struct vhca_dev *dev, u32 num, struct ib_smp *smp)
{
	return VHCA_MAD_BAD_ATTRIBUTE;
}

static const struct {
	u16 attribute;
	u16 (*handle)(struct vhca_dev *dev, u32 num, struct ib_smp *smp);
} attributes[] = {
	{ 0x02, notice },
	{ 0x10, node_desc },
	{ 0x11, node_info },
	{ 0x14, guid_info },
	{ 0x15, port_info },
	{ 0x16, pkey_table },
	{ 0x17, sl_to_vl },
	{ 0x18, vl_arbitration },
};

int vhca_sma(struct vhca_dev *dev, int flags, u32 num, u16 slid, struct ib_smp *smp)
{
	u16 (*handle)(struct vhca_dev *dev, u32 num, struct ib_smp *smp) = no_attribute;
	struct vhca_port *port = vhca_port(dev, num), *named = port;
	unsigned int i;

	if (smp->attr_id == IB_SMP_ATTR_PORT_INFO)
		named = named_port(dev, num, smp);
	if (!(flags & IB_MAD_IGNORE_MKEY) &&
	    (!mkey_ok(port, slid, smp) || (named && named != port && !mkey_ok(named, slid, smp))))
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	switch (smp->method) {
	case IB_MGMT_METHOD_GET:
		break;
	case IB_MGMT_METHOD_SET:
		/* Only who asks itself gets here on a VF. */
		if (dev->function)
			return vhca_mad_reply((struct ib_mad_hdr *)smp, VHCA_MAD_BAD_METHOD);
		break;
	case IB_MGMT_METHOD_TRAP_REPRESS:
		vhca_trap_repress(port, smp);
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	case IB_MGMT_METHOD_GET_RESP:
	case IB_MGMT_METHOD_TRAP:
	case IB_MGMT_METHOD_REPORT:
	case IB_MGMT_METHOD_REPORT_RESP:
		return IB_MAD_RESULT_SUCCESS;	/* for a program at this port */
	default:
		return vhca_mad_reply((struct ib_mad_hdr *)smp, VHCA_MAD_BAD_METHOD);
	}
	/* SMInfo is the subnet manager's, if there is one at this port. */
	if (smp->attr_id == IB_SMP_ATTR_SM_INFO && port->ibp.port_cap_flags & IB_PORT_SM)
		return IB_MAD_RESULT_SUCCESS;
	if (smp->class_version != 1)
		return vhca_mad_reply((struct ib_mad_hdr *)smp, VHCA_MAD_BAD_CLASS);
	for (i = 0; i < ARRAY_SIZE(attributes); i++)
		if (attributes[i].attribute == be16_to_cpu(smp->attr_id))
			handle = attributes[i].handle;
	return vhca_mad_reply((struct ib_mad_hdr *)smp, handle(dev, num, smp));
}

int vhca_process_mad(struct ib_device *device, int flags, u32 num, const struct ib_wc *wc,
		     const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index)
{
	struct vhca_dev *dev = to_vhca(device);

	if (!num || num > dev->nports)
		return IB_MAD_RESULT_FAILURE;
	*out = *in;
	switch (in->mad_hdr.mgmt_class) {
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
		return vhca_sma(dev, flags, num, wc ? wc->slid : 0, (struct ib_smp *)out);
	case IB_MGMT_CLASS_PERF_MGMT:
		return vhca_pma(dev, num, out);
	default:
		return IB_MAD_RESULT_SUCCESS;
	}
}
