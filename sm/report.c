// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * OpenSM's SA forgets a report when it is sent: its answer is retired without a word to anybody.
 * So reports leave by an agent of the plugin's own, of the same class, that takes no requests:
 * answers come back to the agent whose number is in the transaction ID, and those are ours.
 *
 * The agent is bound while the plugin starts, before the SA's own, because umad2sim gives requests
 * to the agent that was registered last.
 */
#include <errno.h>
#include <string.h>

#include <vendor/osm_vendor_api.h>
#include <opensm/osm_mad_pool.h>

#include "plugin.h"
#include "report.h"

#define SA_CLASS_VERSION 2
#define FIRST_TID 0x52500000u /* OpenSM's own reports begin at 0x02dab000 */

static osm_bind_handle_t agent;
static rsm_report_done told;

static void tell(struct rsm *rsm, osm_madw_t *request, bool answered)
{
	struct repath_sm_report data;

	memcpy(&data, osm_madw_get_sa_mad_ptr(request)->data, sizeof(data));
	told(rsm, cl_ntoh16(request->mad_addr.dest_lid), cl_ntoh32(data.details.number), answered);
	osm_mad_pool_put(&rsm->osm->mad_pool, request);
}

static void received(osm_madw_t *madw, void *context, osm_madw_t *request)
{
	struct rsm *rsm = context;

	if (request)
		tell(rsm, request, true);
	osm_mad_pool_put(&rsm->osm->mad_pool, madw);
}

/* OpenSM may hold locks of its transport: nothing may be sent from here. */
static void not_answered(void *context, osm_madw_t *request)
{
	tell(context, request, false);
}

/**
 * rsm_report_bind - register the agent
 * @rsm: the plugin, while it starts
 * @done: to be called for each report that was sent
 */
int rsm_report_bind(struct rsm *rsm, rsm_report_done done)
{
	osm_bind_info_t info = {
		.port_guid = rsm->osm->subn.sm_port_guid,
		.mad_class = IB_MCLASS_SUBN_ADM,
		.class_version = SA_CLASS_VERSION,
		.recv_q_size = OSM_SM_DEFAULT_QP1_RCV_SIZE,
		.send_q_size = OSM_SM_DEFAULT_QP1_SEND_SIZE,
		.timeout = rsm->opt.report_timeout,
		.retries = 1,
	};

	told = done;
	agent = osm_vendor_bind(rsm->osm->p_vendor, &info, &rsm->osm->mad_pool, received,
				not_answered, rsm);
	return agent == OSM_BIND_INVALID_HANDLE ? -ENODEV : 0;
}

/** rsm_report_unbind - no callback runs any more, or will, when this returns */
void rsm_report_unbind(void)
{
	osm_vendor_unbind(agent);
}

/**
 * rsm_report_send - send one report, once
 * @rsm: the plugin
 * @to: the subscriber
 * @data: what it is told
 * @timeout: milliseconds until the transport repeats it, and again until it gives up
 *
 * No lock that @done takes may be held. OpenSM's lock may be held or not.
 *
 * Return: 0, and @done will be called; -ENOMEM, and it will not.
 */
int rsm_report_send(struct rsm *rsm, const osm_mad_addr_t *to, const struct repath_sm_report *data,
		    uint32_t timeout)
{
	static uint32_t tid;
	osm_mad_addr_t address = *to;
	osm_madw_t *madw;

	madw = osm_mad_pool_get(&rsm->osm->mad_pool, agent, MAD_BLOCK_SIZE, &address);
	if (!madw)
		return -ENOMEM;
	madw->resp_expected = TRUE;
	madw->timeout = timeout;
	ib_mad_init_new(osm_madw_get_mad_ptr(madw), IB_MCLASS_SUBN_ADM, SA_CLASS_VERSION,
			IB_MAD_METHOD_REPORT,
			cl_hton64(FIRST_TID + __atomic_fetch_add(&tid, 1, __ATOMIC_RELAXED)),
			IB_MAD_ATTR_NOTICE, 0);
	memcpy(osm_madw_get_sa_mad_ptr(madw)->data, data, sizeof(*data));
	osm_vendor_send(agent, madw, TRUE);
	return 0;
}
