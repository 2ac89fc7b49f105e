// SPDX-License-Identifier: GPL-2.0
/* A port's state (IBA 1.2.1 vol 1, 7.2), and what verbs are told of it. */
#include "function.h"
#include "lane.h"
#include "trap.h"
#include "wire_link.h"

void vhca_port_init(struct vhca_dev *dev, unsigned int num)
{
	struct vhca_port *port = vhca_port(dev, num);

	port->dev = dev;
	port->num = num;
	port->state = IB_PORT_DOWN;
	port->phys = IB_PORT_PHYS_STATE_POLLING;
	port->link_default = IB_PORT_PHYS_STATE_POLLING;
	port->neighbor_mtu = IB_MTU_4096;
	port->op_vls = 4;
	port->hoq_life = 0xf3;
	port->width_enabled = IB_WIDTH_1X | IB_WIDTH_4X | IB_WIDTH_8X | IB_WIDTH_12X;
	port->speed_enabled = 7;
	port->error_limits = 0x88;
	port->pkeys[0] = IB_DEFAULT_PKEY_FULL;
	/* A VF's is the PF's to say. */
	port->guids[0] = dev->function ? 0 : cpu_to_be64(dev->guid + num);
	spin_lock_init(&port->ibp.lock);
	port->ibp.mcast_tree = RB_ROOT;
	port->ibp.gid_prefix = cpu_to_be64(VHCA_GID_PREFIX);
	port->ibp.port_cap_flags = IB_PORT_SYS_IMAGE_GUID_SUP | IB_PORT_CLIENT_REG_SUP |
		IB_PORT_SL_MAP_SUP | IB_PORT_TRAP_SUP | IB_PORT_CAP_MASK_NOTICE_SUP |
		(vhca_with_apm ? IB_PORT_AUTO_MIGR_SUP : 0);
	vhca_lanes_init(port);
	vhca_traps_init(port);
	vhca_vguids_start(port);
	vhca_wire_init(port);
	rvt_init_port(&dev->rdi, &port->ibp, num - 1, port->pkeys);
}

void vhca_port_set_state(struct vhca_port *port, u8 state)
{
	u8 old = port->state;

	if (state == old)
		return;
	WRITE_ONCE(port->state, state);
	if (state == IB_PORT_ACTIVE)
		vhca_dev_event(port, IB_EVENT_PORT_ACTIVE);
	else if (old == IB_PORT_ACTIVE)
		vhca_dev_event(port, IB_EVENT_PORT_ERR);
	if (state == IB_PORT_DOWN)
		vhca_lanes_flush(port);
}

void vhca_port_link(struct vhca_port *port, bool up)
{
	if (up) {
		port->phys = IB_PORT_PHYS_STATE_LINK_UP;
		vhca_port_set_state(port, IB_PORT_INIT);
		return;
	}
	if (port->phys != IB_PORT_PHYS_STATE_DISABLED)
		port->phys = IB_PORT_PHYS_STATE_POLLING;
	port->counters.link_downed++;
	vhca_port_set_state(port, IB_PORT_DOWN);
}

static u16 active_speed(const struct vhca_port *port)
{
	switch (port->wire.ext) {
	case 1:
		return IB_SPEED_FDR;
	case 2:
		return IB_SPEED_EDR;
	case 4:
		return IB_SPEED_HDR;
	case 8:
		return IB_SPEED_NDR;
	default:
		return port->wire.speed ?: IB_SPEED_SDR;
	}
}

int vhca_port_query(struct rvt_dev_info *rdi, u32 num, struct ib_port_attr *attr)
{
	struct vhca_dev *dev = container_of(rdi, struct vhca_dev, rdi);
	struct vhca_port *port;

	if (num < 1 || num > dev->nports)
		return -EINVAL;
	port = vhca_port(dev, num);
	attr->lid = port->lid;
	attr->lmc = port->lmc;
	attr->state = port->state;
	attr->phys_state = port->phys;
	attr->gid_tbl_len = VHCA_GUIDS;
	attr->active_width = port->wire.width ?: IB_WIDTH_4X;
	attr->active_speed = active_speed(port);
	attr->max_vl_num = 4;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = port->neighbor_mtu;
	return 0;
}
