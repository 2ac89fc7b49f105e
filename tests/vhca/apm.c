// SPDX-License-Identifier: GPL-2.0
#include <rdma/ib_cache.h>

#include "apm.h"
#include "lane.h"
#include "qp.h"
#include "trap.h"

static bool on_path(struct vhca_port *port, const struct rdma_ah_attr *path,
		    const struct vhca_rx *rx)
{
	const struct ib_global_route *route = rdma_ah_read_grh(path);

	/* Both LIDs, path bits included, are those of the path (9.6.1.5). */
	if (rdma_ah_get_port_num(path) != port->num || rdma_ah_get_dlid(path) != rx->slid ||
	    rx->dlid != vhca_path_lid(port, path))
		return false;
	if (!(rdma_ah_get_ah_flags(path) & IB_AH_GRH))
		return !rx->grh;
	return rx->grh && !memcmp(&rx->grh->sgid, &route->dgid, sizeof(route->dgid)) &&
	       rx->grh->dgid.global.interface_id == port->guids[route->sgid_index % VHCA_GUIDS];
}

/* The alternate path becomes the primary one. */
static bool migrate(struct rvt_qp *qp)
{
	struct vhca_dev *dev = to_vhca(qp->ibqp.device);
	u8 num = rdma_ah_get_port_num(&qp->alt_ah_attr);

	if (num < 1 || num > dev->nports ||
	    vhca_port(dev, num)->state != IB_PORT_ACTIVE) {
		vhca_qp_event(qp, IB_EVENT_PATH_MIG_ERR);
		return false;
	}
	rdma_replace_ah_attr(&qp->remote_ah_attr, &qp->alt_ah_attr);
	qp->port_num = num;
	qp->s_pkey_index = qp->s_alt_pkey_index;
	qp->timeout = qp->alt_timeout;
	qp->timeout_jiffies = rvt_timeout_to_jiffies(qp->timeout);
	qp->s_mig_state = IB_MIG_MIGRATED;
	vhca_apm_changed(qp);
	/* No response is waited for that the old path holds up: its packets do not delay a resend. */
	vhca_lane_moved(dev, to_vhca_qp(qp));
	vhca_qp_event(qp, IB_EVENT_PATH_MIG);
	return true;
}

/*
 * The peer has migrated to where we do not follow: a path migration request error (11.6.3). It goes on with
 * its packets until it gives up, and one event tells of them all.
 */
static void refuse(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	if (!vqp->mig_refused)
		vhca_qp_event(qp, IB_EVENT_PATH_MIG_ERR);
	vqp->mig_refused = true;
}

void vhca_apm_changed(struct rvt_qp *qp)
{
	to_vhca_qp(qp)->mig_refused = false;
}

void vhca_apm_prepare(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	vqp->before = qp->remote_ah_attr;
	vqp->ordered = true;
}

void vhca_apm_ordered(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	if (!vqp->ordered)
		return;
	vqp->ordered = false;
	vhca_lane_moved(to_vhca(qp->ibqp.device), vqp);
	rdma_destroy_ah_attr(&vqp->before);
	if (qp->remote_ah_attr.grh.sgid_attr)
		rdma_hold_gid_attr(qp->remote_ah_attr.grh.sgid_attr);
	qp->timeout = qp->alt_timeout;
	qp->timeout_jiffies = rvt_timeout_to_jiffies(qp->timeout);
}

bool vhca_apm_arrived(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx)
{
	bool alternate = rx->bth.migreq && on_path(port, &qp->alt_ah_attr, rx);

	if (qp->s_mig_state == IB_MIG_ARMED && rx->bth.migreq) {
		if (alternate)
			return migrate(qp);
		refuse(qp);
		return false;
	}
	if (!on_path(port, &qp->remote_ah_attr, rx)) {
		/*
		 * MIGRATED is also what queue pairs are that have never heard of migration: only their
		 * alternate path, if they have one, makes of a stranger's packet a request.
		 */
		if (alternate || (rx->bth.migreq && qp->s_mig_state == IB_MIG_REARM))
			refuse(qp);
		return false;
	}
	if (qp->s_mig_state == IB_MIG_REARM && !rx->bth.migreq)
		qp->s_mig_state = IB_MIG_ARMED;
	return true;
}

bool vhca_apm_migrate(struct rvt_qp *qp)
{
	return qp->s_mig_state == IB_MIG_ARMED && migrate(qp);
}
