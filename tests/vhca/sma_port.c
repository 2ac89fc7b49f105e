// SPDX-License-Identifier: GPL-2.0
/* PortInfo (IBA 1.2.1 vol 1, 14.2.5.6). */
#include "lane.h"
#include "mad.h"
#include "wire_link.h"

#define VL_CAP 4			/* VL0..VL7 */
#define WIDTHS (IB_WIDTH_1X | IB_WIDTH_4X | IB_WIDTH_8X | IB_WIDTH_12X)
#define SPEEDS 7			/* SDR, DDR, QDR */
#define EXT_AT 62			/* LinkSpeedExtActive, LinkSpeedExtSupported */
#define RESPONSE_TIME 18
#define REREGISTER BIT(7)
#define CAP_EXT_SPEEDS BIT(14)

u16 vhca_port_info_get(struct vhca_port *port, const struct ib_smp *smp, u8 *data)
{
	struct ib_port_info *info = (struct ib_port_info *)data;
	const struct vhca_wire *w = &port->wire;
	struct rvt_ibport *ibp = &port->ibp;
	__be64 asked = smp->mkey;

	memset(data, 0, IB_SMP_DATA_SIZE);
	/* Who does not know the key does not learn it (table 115). */
	/* A Set has shown its key; what it has set is told. */
	if (!ibp->mkeyprot || asked == ibp->mkey || smp->method == IB_MGMT_METHOD_SET)
		info->mkey = ibp->mkey;
	info->gid_prefix = ibp->gid_prefix;
	info->lid = cpu_to_be16(port->lid);
	info->sm_lid = cpu_to_be16(ibp->sm_lid);
	info->cap_mask = cpu_to_be32(ibp->port_cap_flags | (w->ext ? CAP_EXT_SPEEDS : 0));
	info->mkey_lease_period = cpu_to_be16(ibp->mkey_lease_period);
	info->local_port_num = port->num;
	info->link_width_enabled = port->width_enabled;
	info->link_width_supported = WIDTHS;
	info->link_width_active = w->width;
	info->linkspeed_portstate = SPEEDS << 4 | port->state;
	info->portphysstate_linkdown = port->phys << 4 | port->link_default;
	info->mkeyprot_resv_lmc = ibp->mkeyprot << 6 | port->lmc;
	info->linkspeedactive_enabled = w->speed << 4 | port->speed_enabled;
	info->neighbormtu_mastersmsl = port->neighbor_mtu << 4 | ibp->sm_sl;
	info->vlcap_inittype = VL_CAP << 4;
	info->vl_high_limit = port->arbiter.limit;
	info->vl_arb_high_cap = VHCA_ARB_ENTRIES;
	info->vl_arb_low_cap = VHCA_ARB_ENTRIES;
	info->inittypereply_mtucap = IB_MTU_4096;
	info->vlstallcnt_hoqlife = port->hoq_life;
	info->operationalvl_pei_peo_fpi_fpo = port->op_vls << 4 | port->enforce;
	info->mkey_violations = cpu_to_be16(ibp->mkey_violations);
	info->pkey_violations = cpu_to_be16(ibp->pkey_violations);
	info->qkey_violations = cpu_to_be16(ibp->qkey_violations);
	info->guid_cap = VHCA_GUIDS;
	info->clientrereg_resv_subnetto = ibp->subnet_timeout;
	info->resv_resptimevalue = RESPONSE_TIME;
	info->localphyerrors_overrunerrors = port->error_limits;
	data[EXT_AT] = w->ext << 4 | w->ext;
	data[EXT_AT + 1] = w->ext;
	return VHCA_MAD_OK;
}

/* The logical state that the SM wants: 0 is none, 1 down, then only upwards by one. */
static bool state_ok(const struct vhca_port *port, u8 state, u8 phys)
{
	switch (state) {
	case 0:
	case IB_PORT_DOWN:
		return !phys || phys == IB_PORT_PHYS_STATE_POLLING ||
		       phys == IB_PORT_PHYS_STATE_DISABLED;
	case IB_PORT_ARMED:
		return !phys && (port->state == IB_PORT_INIT || port->state == IB_PORT_ARMED);
	case IB_PORT_ACTIVE:
		return !phys && (port->state == IB_PORT_ARMED || port->state == IB_PORT_ACTIVE);
	default:
		return false;
	}
}

static void set_state(struct vhca_port *port, u8 state, u8 phys)
{
	if (phys == IB_PORT_PHYS_STATE_DISABLED) {
		port->phys = phys;
		vhca_wire_kick(port);	/* the pump takes the link down and tells the switch */
	} else if (phys == IB_PORT_PHYS_STATE_POLLING && !port->wire.up) {
		port->phys = phys;
		vhca_wire_kick(port);
	}
	if (state == IB_PORT_DOWN && port->wire.up) {
		vhca_port_set_state(port, IB_PORT_DOWN);
		/* Without an order to stay down it trains again, and the cable is there. */
		if (phys != IB_PORT_PHYS_STATE_DISABLED)
			vhca_port_set_state(port, IB_PORT_INIT);
	} else if (state > IB_PORT_INIT) {
		vhca_port_set_state(port, state);
	}
}

static bool values_ok(const struct vhca_port *port, const struct ib_port_info *info)
{
	u16 lid = be16_to_cpu(info->lid), sm_lid = be16_to_cpu(info->sm_lid);
	u8 mtu = info->neighbormtu_mastersmsl >> 4;
	u8 vls = info->operationalvl_pei_peo_fpi_fpo >> 4;

	return lid && lid < VHCA_LID_MULTICAST && sm_lid && sm_lid < VHCA_LID_MULTICAST &&
	       mtu >= IB_MTU_256 && mtu <= IB_MTU_4096 && vls <= VL_CAP &&
	       state_ok(port, info->linkspeed_portstate & 15, info->portphysstate_linkdown >> 4);
}

static void set_address(struct vhca_port *port, const struct ib_port_info *info)
{
	u16 lid = be16_to_cpu(info->lid), sm_lid = be16_to_cpu(info->sm_lid);
	u8 lmc = info->mkeyprot_resv_lmc & 7, sm_sl = info->neighbormtu_mastersmsl & 15;
	bool moved = lid != port->lid || lmc != port->lmc;
	bool sm_moved = sm_lid != port->ibp.sm_lid || sm_sl != port->ibp.sm_sl;

	WRITE_ONCE(port->lmc, lmc);
	WRITE_ONCE(port->lid, lid);
	port->ibp.sm_lid = sm_lid;
	port->ibp.sm_sl = sm_sl;
	if (moved)
		vhca_dev_event(port, IB_EVENT_LID_CHANGE);
	if (sm_moved)
		vhca_dev_event(port, IB_EVENT_SM_CHANGE);
}

static void set_mkey(struct vhca_port *port, const struct ib_port_info *info)
{
	struct rvt_ibport *ibp = &port->ibp;

	ibp->mkey = info->mkey;
	ibp->mkeyprot = info->mkeyprot_resv_lmc >> 6;
	ibp->mkey_lease_period = be16_to_cpu(info->mkey_lease_period);
	ibp->mkey_lease_timeout = 0;
}

static void set_link(struct vhca_port *port, const struct ib_port_info *info)
{
	u8 vls = info->operationalvl_pei_peo_fpi_fpo >> 4;

	if (info->link_width_enabled)
		port->width_enabled = info->link_width_enabled == 0xff ? WIDTHS :
			info->link_width_enabled & WIDTHS;
	if (info->linkspeedactive_enabled & 15)
		port->speed_enabled = info->linkspeedactive_enabled & SPEEDS;
	if (info->portphysstate_linkdown & 15)
		port->link_default = info->portphysstate_linkdown & 15;
	port->neighbor_mtu = info->neighbormtu_mastersmsl >> 4;
	if (vls)
		WRITE_ONCE(port->op_vls, vls);
	port->enforce = info->operationalvl_pei_peo_fpi_fpo & 15;
	port->hoq_life = info->vlstallcnt_hoqlife;
	port->error_limits = info->localphyerrors_overrunerrors;
	WRITE_ONCE(port->arbiter.limit, info->vl_high_limit);
}

u16 vhca_port_info_set(struct vhca_port *port, struct ib_smp *smp)
{
	struct ib_port_info info;
	struct rvt_ibport *ibp = &port->ibp;
	bool reregister;

	BUILD_BUG_ON(sizeof(info) > sizeof(smp->data));
	memcpy(&info, smp->data, sizeof(info));
	if (!values_ok(port, &info)) {
		vhca_port_info_get(port, smp, smp->data);
		return VHCA_MAD_BAD_VALUE;
	}
	if (info.gid_prefix && info.gid_prefix != ibp->gid_prefix) {
		ibp->gid_prefix = info.gid_prefix;
		vhca_dev_event(port, IB_EVENT_GID_CHANGE);
	}
	set_mkey(port, &info);
	set_link(port, &info);
	set_address(port, &info);
	ibp->subnet_timeout = info.clientrereg_resv_subnetto & 0x1f;
	/* A violation counter is set to 0 only (14.2.5.6). */
	if (!info.mkey_violations)
		ibp->mkey_violations = 0;
	if (!info.pkey_violations)
		ibp->pkey_violations = 0;
	if (!info.qkey_violations)
		ibp->qkey_violations = 0;
	set_state(port, info.linkspeed_portstate & 15, info.portphysstate_linkdown >> 4);
	reregister = info.clientrereg_resv_subnetto & REREGISTER;
	port->reregistered += reregister;
	if (reregister)
		vhca_dev_event(port, IB_EVENT_CLIENT_REREGISTER);
	vhca_port_info_get(port, smp, smp->data);
	if (reregister)
		((struct ib_port_info *)smp->data)->clientrereg_resv_subnetto |= REREGISTER;
	return VHCA_MAD_OK;
}

void vhca_port_info_follow(struct vhca_port *port, const u8 *data, bool usable)
{
	struct rvt_ibport *ibp = &port->ibp;
	struct ib_port_info info;
	u8 state;

	memcpy(&info, data, sizeof(info));
	state = info.linkspeed_portstate & 15;
	if (!usable)
		state = min_t(u8, state, IB_PORT_INIT);
	if (info.gid_prefix && info.gid_prefix != ibp->gid_prefix) {
		ibp->gid_prefix = info.gid_prefix;
		vhca_dev_event(port, IB_EVENT_GID_CHANGE);
	}
	set_link(port, &info);
	set_address(port, &info);
	ibp->subnet_timeout = info.clientrereg_resv_subnetto & 0x1f;
	vhca_port_set_state(port, state);
}
