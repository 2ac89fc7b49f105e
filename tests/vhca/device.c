// SPDX-License-Identifier: GPL-2.0
/* The HCA as verbs see it: limits, operations, registration with rdmavt. */
#include <rdma/ib_sysfs.h>

#include "function.h"
#include "lane.h"
#include "mad.h"
#include "qp.h"
#include "trap.h"
#include "wire_link.h"

#define VENDOR_ID 0x001175	/* what the stock user library of the driver id expects */
#define PART_ID 0x7322
#define LKEY_BITS 16
#define NUMBERS_APART 4098	/* even: rdmavt's QPNs are all odd, or all even */

static int modify_device(struct ib_device *device, int mask, struct ib_device_modify *modify)
{
	struct vhca_dev *dev = to_vhca(device);
	unsigned int i;

	if (mask & ~(IB_DEVICE_MODIFY_NODE_DESC | IB_DEVICE_MODIFY_SYS_IMAGE_GUID))
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC) {
		memcpy(device->node_desc, modify->node_desc, IB_DEVICE_NODE_DESC_MAX);
		for (i = 0; i < dev->nports; i++)
			vhca_trap_node_desc(&dev->port[i]);
	}
	return 0;
}

/*
 * A program's context when the HCA is removed: the core destroys its objects before and after, and
 * its mappings refer to nothing of ours (mmap.c).
 */
static void disassociate_ucontext(struct ib_ucontext *context)
{
}

/* What the transport counts: ports/N/vhca/. */
#define COUNTER(name, field)								\
static ssize_t name##_show(struct ib_device *device, u32 num,				\
			   struct ib_port_attribute *attr, char *text)			\
{											\
	return sysfs_emit(text, "%llu\n", (u64)vhca_port(to_vhca(device), num)->field);	\
}											\
static IB_PORT_ATTR_RO(name)

COUNTER(rc_resends, ibp.n_rc_resends);
COUNTER(rc_timeouts, ibp.n_rc_timeouts);
COUNTER(rc_implied_naks, ibp.n_rdma_seq);
COUNTER(rc_sequence_naks, ibp.n_seq_naks);
COUNTER(rc_rnr_naks, ibp.n_rnr_naks);
COUNTER(rc_duplicates, ibp.n_rc_dupreq);
COUNTER(rc_gaps, ibp.n_rc_seqnak);
COUNTER(dropped, ibp.n_pkt_drops);
COUNTER(wire_lost, wire_lost);
COUNTER(looped, ibp.n_loop_pkts);
COUNTER(rc_acks, rc.acks);
COUNTER(rc_ack_requests, rc.ack_requests);
COUNTER(rc_rnr_naks_sent, rc.rnr_naks);
COUNTER(rc_read_replays, rc.read_replays);
COUNTER(rc_atomic_replays, rc.atomic_replays);
COUNTER(lane_most, lane_most);

static struct attribute *port_attrs[] = {
	&ib_port_attr_rc_resends.attr,
	&ib_port_attr_rc_timeouts.attr,
	&ib_port_attr_rc_implied_naks.attr,
	&ib_port_attr_rc_sequence_naks.attr,
	&ib_port_attr_rc_rnr_naks.attr,
	&ib_port_attr_rc_duplicates.attr,
	&ib_port_attr_rc_gaps.attr,
	&ib_port_attr_dropped.attr,
	&ib_port_attr_wire_lost.attr,
	&ib_port_attr_looped.attr,
	&ib_port_attr_rc_acks.attr,
	&ib_port_attr_rc_ack_requests.attr,
	&ib_port_attr_rc_rnr_naks_sent.attr,
	&ib_port_attr_rc_read_replays.attr,
	&ib_port_attr_rc_atomic_replays.attr,
	&ib_port_attr_lane_most.attr,
	NULL,
};

static const struct attribute_group port_group = { .name = "vhca", .attrs = port_attrs };
static const struct attribute_group *port_groups[] = { &port_group, NULL };

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%x\n", 1);
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t hca_type_show(struct device *device, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "vhca\n");
}
static DEVICE_ATTR_RO(hca_type);

static struct attribute *device_attrs[] = {
	&dev_attr_hw_rev.attr,
	&dev_attr_hca_type.attr,
	NULL,
};

static const struct attribute_group device_group = { .attrs = device_attrs };

static void firmware(struct ib_device *device, char *text)
{
	snprintf(text, IB_FW_VERSION_NAME_MAX, "1.0");
}

/* One for the driver id, which is a module parameter: so it is not const. */
static struct ib_device_ops operations = {
	.owner = THIS_MODULE,
	.port_groups = port_groups,
	.device_group = &device_group,
	.get_dev_fw_str = firmware,
	.modify_device = modify_device,
	.process_mad = vhca_process_mad,
	.mmap = vhca_mmap,
	.disassociate_ucontext = disassociate_ucontext,
};

void vhca_dev_event(struct vhca_port *port, enum ib_event_type event)
{
	struct ib_event e = {
		.device = &port->dev->rdi.ibdev, .event = event, .element.port_num = port->num,
	};

	/* Before registration there is nobody to tell. */
	if (!READ_ONCE(port->dev->registered))
		return;
	ib_dispatch_event(&e);
	if (!port->dev->vfs)
		return;
	if (event == IB_EVENT_PORT_ACTIVE || event == IB_EVENT_LID_CHANGE ||
	    event == IB_EVENT_SM_CHANGE || event == IB_EVENT_CLIENT_REREGISTER)
		vhca_vguids_tell(port);
	WRITE_ONCE(port->news, true);
	vhca_wire_kick(port);
}

/*
 * No two HCAs give out the same numbers, as is so with hardware: with each that comes queue pairs and keys
 * begin elsewhere. So who goes from one to the next has other ones, and gets on only by translating them.
 * A test that wants another process to have these numbers says whose they shall be.
 */
static void set_parameters(struct vhca_dev *dev)
{
	struct rvt_driver_params *p = &dev->rdi.dparms;
	static atomic_t come = ATOMIC_INIT(0);
	u32 own = atomic_fetch_inc(&come);
	u32 first = (dev->numbers < 0 ? own : (u32)dev->numbers) * NUMBERS_APART;

	p->max_rdma_atomic = VHCA_MAX_RD_ATOMIC;
	p->extra_rdma_atomic = VHCA_MAX_RD_ATOMIC;	/* kept for replay besides those under way */
	p->lkey_table_size = LKEY_BITS;
	dev->rdi.lkey_table.next = first % BIT(LKEY_BITS);
	p->qp_table_size = 1024;
	p->qpn_start = 1 + first % BIT(22);
	p->qpn_inc = 1;
	p->qos_shift = 1;
	p->qpn_res_start = 0x00ff0000;
	p->qpn_res_end = 0x00ff0000;
	p->psn_mask = 0xffffff;
	p->psn_modify_mask = 0xffffff;
	p->psn_shift = 8;
	p->nports = dev->nports;
	p->npkeys = VHCA_PKEYS;
	p->node = first_online_node;	/* rdmavt makes completion queues on it: NONE oopses */
	p->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	p->max_mad_size = IB_MGMT_MAD_SIZE;
}

static void set_limits(struct vhca_dev *dev)
{
	struct ib_device_attr *a = &dev->rdi.dparms.props;

	a->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |
		IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |
		IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SRQ_RESIZE |
		(vhca_with_apm ? IB_DEVICE_AUTO_PATH_MIG : 0);
	a->page_size_cap = PAGE_SIZE;
	a->vendor_id = VENDOR_ID;
	a->vendor_part_id = PART_ID;
	a->hw_ver = 1;
	a->sys_image_guid = cpu_to_be64(dev->guid);
	a->max_mr_size = ~0ull;
	a->max_qp = 16384;
	a->max_qp_wr = 0x3fff;
	a->max_send_sge = 32;
	a->max_recv_sge = 32;
	a->max_sge_rd = 32;
	a->max_cq = 0x1ffff;
	a->max_cqe = 0x2ffff;
	a->max_mr = 0x10000;
	a->max_pd = 0xffff;
	a->max_ah = 0xffff;
	a->max_qp_rd_atom = VHCA_MAX_RD_ATOMIC;
	a->max_qp_init_rd_atom = VHCA_MAX_RD_ATOMIC;
	a->max_srq = 1024;
	a->max_srq_wr = 0x1ffff;
	a->max_srq_sge = 32;
	a->atomic_cap = IB_ATOMIC_GLOB;
	a->max_pkeys = VHCA_PKEYS;
	a->max_mcast_grp = 1024;
	a->max_mcast_qp_attach = 64;
	a->max_total_mcast_qp_attach = 64 * 1024;
}

int vhca_dev_register(struct vhca_dev *dev)
{
	struct rvt_dev_info *rdi = &dev->rdi;
	unsigned int i;
	int err;

	rdi->driver_f = vhca_driver_functions;
	if (dev->function || dev->vfs)
		rdi->driver_f.alloc_qpn = vhca_function_qpn;
	rdi->post_parms = vhca_post_parms;
	rdi->wc_opcode = vhca_wc_opcode;
	rdi->ibdev.node_guid = cpu_to_be64(dev->guid);
	rdi->ibdev.phys_port_cnt = dev->nports;
	rdi->ibdev.dev.parent = dev->parent;
	snprintf(rdi->ibdev.node_desc, sizeof(rdi->ibdev.node_desc), "%s vhca", dev->host);
	set_parameters(dev);
	set_limits(dev);
	operations.driver_id = vhca_driver_id;
	ib_set_device_ops(&rdi->ibdev, &operations);
	for (i = 1; i <= dev->nports; i++)
		vhca_port_init(dev, i);
	err = rvt_register_device(rdi);
	if (err)
		return err;
	WRITE_ONCE(dev->registered, true);
	for (i = 0; i < dev->nports; i++) {
		err = vhca_wire_open(&dev->port[i]);
		if (err) {
			vhca_dev_unregister(dev);	/* a port without a socket is skipped */
			return err;
		}
	}
	return 0;
}

/* Of this driver, by its operations. */
struct vhca_dev *vhca_dev_of(struct ib_device *device)
{
	return device->ops.owner == THIS_MODULE ? to_vhca(device) : NULL;
}

void vhca_dev_unregister(struct vhca_dev *dev)
{
	unsigned int i;

	/*
	 * While clients let go of it, the driver's own one among them (agents.c), the HCA works, wires
	 * included, as one does that is to be removed. (1) Traps stop. (2) When the core has unregistered
	 * it, no client is left, what programs had is destroyed, and nobody is told of events. (3) The
	 * pumps end, which look up queue pairs in (4) rdmavt's tables; it unregisters once more, in vain.
	 */
	for (i = 0; i < dev->nports; i++) {
		vhca_traps_stop(&dev->port[i]);
		vhca_vguids_stop(&dev->port[i]);
	}
	WRITE_ONCE(dev->registered, false);
	ib_unregister_device(&dev->rdi.ibdev);
	for (i = 0; i < dev->nports; i++) {
		vhca_wire_close(&dev->port[i]);
		vhca_vguids_stop(&dev->port[i]);	/* what the pump began meanwhile */
	}
	rvt_unregister_device(&dev->rdi);
}
