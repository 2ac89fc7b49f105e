// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "plugin.h"
#include "smp.h"

#include <opensm/osm_msgdef.h>
#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

/* OpenSM's dispatcher takes it from there to is_lost(). Only the plugin's own SMPs have it. */
static cl_disp_msgid_t lost = CL_DISP_MSGID_NONE;
static rsm_smp_lost told;
static rsm_smp_guids heard;

/* What OpenSM does with answers to GUIDInfo: it logs them. No header has it. */
void osm_gi_rcv_process(void *context, void *data);

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

/* Who says that it has none to tell has none; who is busy has not answered. */
static void guids_come(void *context, void *data)
{
	static const ib_net64_t none[IB_SMP_DATA_SIZE / sizeof(ib_net64_t)];
	struct rsm *rsm = context;
	osm_madw_t *madw = data;
	ib_smp_t *smp = osm_madw_get_smp_ptr(madw);
	const osm_gi_context_t *gi = osm_madw_get_gi_context_ptr(madw);
	ib_net16_t status = ib_smp_get_status(smp);

	if (!gi->set_method && !(status & IB_MAD_STATUS_BUSY) && !smp->attr_mod)
		heard(rsm, cl_ntoh64(gi->port_guid), status ? (const void *)none : ib_smp_get_payload_ptr(smp));
	osm_gi_rcv_process(&rsm->osm->sm, madw);
}

/**
 * rsm_smp_hear_guids - be told what ports answer to rsm_smp_get_guids()
 * @rsm: the plugin
 * @call: for each answer, before it counts as outstanding no more
 *
 * It takes the place of OpenSM's own, until that ends.
 * Return: 0 or -ENOMEM.
 */
int rsm_smp_hear_guids(struct rsm *rsm, rsm_smp_guids call)
{
	osm_sm_t *sm = &rsm->osm->sm;

	heard = call;
	cl_disp_unregister(sm->gi_disp_h);
	sm->gi_disp_h = cl_disp_register(&rsm->osm->disp, OSM_MSG_MAD_GUID_INFO, guids_come, rsm);
	return sm->gi_disp_h ? 0 : -ENOMEM;
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

/**
 * rsm_smp_get_guids - ask a host's port for its first GUIDs
 * @rsm: the plugin
 * @port: it
 *
 * Return: 0 or -ENOMEM.
 */
int rsm_smp_get_guids(struct rsm *rsm, osm_port_t *port)
{
	osm_madw_context_t context = { 0 };

	context.gi_context.node_guid = osm_node_get_node_guid(port->p_node);
	context.gi_context.port_guid = osm_physp_get_port_guid(port->p_physp);
	context.gi_context.port_num = osm_physp_get_port_num(port->p_physp);
	return osm_req_get(&rsm->osm->sm, osm_physp_get_dr_path_ptr(port->p_physp), IB_MAD_ATTR_GUID_INFO, 0,
			   FALSE, ib_port_info_get_m_key(&port->p_physp->port_info), 0, CL_DISP_MSGID_NONE,
			   &context) ? -ENOMEM : 0;
}

/** rsm_smp_outstanding - SMPs of OpenSM's, all of them, that are not answered yet */
int rsm_smp_outstanding(struct rsm *rsm)
{
	return __atomic_load_n(&rsm->osm->stats.qp0_mads_outstanding, __ATOMIC_RELAXED);
}

/**
 * rsm_smp_wait - until all are answered, or given up
 * @rsm: the plugin; OpenSM's lock is not held meanwhile
 */
void rsm_smp_wait(struct rsm *rsm)
{
	osm_stats_t *stats = &rsm->osm->stats;

	CL_PLOCK_RELEASE(&rsm->osm->lock);
	pthread_mutex_lock(&stats->mutex);
	while (stats->qp0_mads_outstanding && !osm_exit_flag)
		pthread_cond_wait(&stats->cond, &stats->mutex);
	pthread_mutex_unlock(&stats->mutex);
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
}
