// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "plugin.h"
#include "smp.h"

#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

/* OpenSM's dispatcher takes it from there to is_lost(). Only the plugin's own SMPs have it. */
static cl_disp_msgid_t lost = CL_DISP_MSGID_NONE;
static rsm_smp_lost told;

/* No answer came: @data is the request, which who has posted it frees. */
static void is_lost(void *context, void *data)
{
	osm_madw_t *madw = data;
	ib_smp_t *smp = osm_madw_get_smp_ptr(madw);
	bool guids = smp->attr_id == IB_MAD_ATTR_GUID_INFO;

	told(context, cl_ntoh64(guids ? osm_madw_get_gi_context_ptr(madw)->port_guid :
					osm_madw_get_pi_context_ptr(madw)->port_guid), guids);
}

/**
 * rsm_smp_watch - be told of addresses that hosts' ports may not have
 * @rsm: the plugin, while it starts
 * @call: for each Set(PortInfo) and Set(GUIDInfo) of the plugin that is not answered, in a thread of
 *	OpenSM's, before it counts as outstanding no more
 *
 * It is for good: OpenSM has freed its dispatcher when plugins end, and who does not start sends nothing.
 * Return: 0 or -ENOMEM.
 */
int rsm_smp_watch(struct rsm *rsm, rsm_smp_lost call)
{
	told = call;
	if (!cl_disp_register(&rsm->osm->disp, OSM_MSG_MAX, is_lost, rsm))
		return -ENOMEM;
	lost = OSM_MSG_MAX;
	return 0;
}

static int send_to(struct rsm *rsm, osm_physp_t *port, const void *data, uint16_t attribute,
		   uint32_t modifier, const osm_madw_context_t *context, uint16_t lid)
{
	osm_sm_t *sm = &rsm->osm->sm;
	osm_madw_t *madw;
	ib_smp_t *smp;

	madw = osm_prepare_req_set(sm, osm_physp_get_dr_path_ptr(port), data, IB_SMP_DATA_SIZE,
				   attribute, cl_hton32(modifier), FALSE,
				   ib_port_info_get_m_key(&port->port_info), 0,
				   attribute == IB_MAD_ATTR_LIN_FWD_TBL ? CL_DISP_MSGID_NONE : lost,
				   context);
	if (!madw)
		return -ENOMEM;
	if (lid) {
		smp = osm_madw_get_smp_ptr(madw);
		smp->mgmt_class = IB_MCLASS_SUBN_LID;
		smp->hop_ptr = 0;
		smp->hop_count = 0;
		smp->dr_slid = 0;
		smp->dr_dlid = 0;
		memset(smp->initial_path, 0, sizeof(smp->initial_path));
		madw->mad_addr.dest_lid = cl_hton16(lid);
		madw->mad_addr.addr_type.smi.source_lid = rsm->osm->subn.sm_base_lid;
	}
	osm_send_req_mad(sm, madw);
	return 0;
}

/**
 * rsm_smp_set_block - 64 entries of a forwarding table as OpenSM wants them (new_lft)
 * @rsm: the plugin
 * @sw: the switch
 * @block: number of it
 *
 * It goes by the switch's LID if the options say so: the routes to switches do not change.
 * Return: 0 or -ENOMEM.
 */
int rsm_smp_set_block(struct rsm *rsm, osm_switch_t *sw, uint16_t block)
{
	osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, 0);
	osm_madw_context_t context = { 0 };

	context.lft_context.node_guid = osm_node_get_node_guid(sw->p_node);
	context.lft_context.set_method = TRUE;
	return send_to(rsm, port, sw->new_lft + block * IB_SMP_DATA_SIZE, IB_MAD_ATTR_LIN_FWD_TBL,
		       block, &context,
		       rsm->opt.vswitch_routed ?
			       cl_ntoh16(osm_node_get_base_lid(sw->p_node, 0)) : 0);
}

/**
 * rsm_smp_set_lid - the LID of a host's port
 * @rsm: the plugin
 * @port: it; OpenSM's own knowledge of its LID is not touched
 * @lid: the new one
 *
 * Return: 0 or -ENOMEM.
 */
int rsm_smp_set_lid(struct rsm *rsm, osm_port_t *port, uint16_t lid)
{
	osm_physp_t *at = port->p_physp;
	uint8_t data[IB_SMP_DATA_SIZE] = { 0 };
	ib_port_info_t *info = (ib_port_info_t *)data;
	osm_madw_context_t context = { 0 };

	memcpy(info, &at->port_info, sizeof(*info));
	info->base_lid = cl_hton16(lid);
	info->state_info2 = 2; /* IBA 14.2.5.6: no change but polling when it goes down */
	ib_port_info_set_port_state(info, IB_LINK_NO_CHANGE);
	ib_port_info_set_client_rereg(info, 0);
	context.pi_context.node_guid = osm_node_get_node_guid(port->p_node);
	context.pi_context.port_guid = osm_physp_get_port_guid(at);
	context.pi_context.set_method = TRUE;
	return send_to(rsm, at, data, IB_MAD_ATTR_PORT_INFO, osm_physp_get_port_num(at), &context,
		       0);
}

/**
 * rsm_smp_set_guids - the first GUIDs of a host's port, as OpenSM has them
 * @rsm: the plugin
 * @port: it
 *
 * Return: 0 or -ENOMEM.
 */
int rsm_smp_set_guids(struct rsm *rsm, osm_port_t *port)
{
	osm_madw_context_t context = { 0 };

	context.gi_context.node_guid = osm_node_get_node_guid(port->p_node);
	context.gi_context.port_guid = osm_physp_get_port_guid(port->p_physp);
	context.gi_context.set_method = TRUE;
	context.gi_context.port_num = osm_physp_get_port_num(port->p_physp);
	return send_to(rsm, port->p_physp, *port->p_physp->p_guids, IB_MAD_ATTR_GUID_INFO, 0,
		       &context, 0);
}

/** rsm_smp_outstanding - SMPs of OpenSM's, all of them, that are not answered yet */
int rsm_smp_outstanding(struct rsm *rsm)
{
	return __atomic_load_n(&rsm->osm->stats.qp0_mads_outstanding, __ATOMIC_RELAXED);
}
