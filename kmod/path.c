// SPDX-License-Identifier: GPL-2.0
/* The paths of a queue pair, as its owner set them by modify_qp. */
#include <linux/etherdevice.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "device.h"
#include "path.h"

static void path_set_av(struct repath_path *path, const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = &ah->grh;

	path->port = rdma_ah_get_port_num(ah);
	path->sl = rdma_ah_get_sl(ah);
	path->rate = rdma_ah_get_static_rate(ah);
	path->dlid = ah->type == RDMA_AH_ATTR_TYPE_ROCE ? 0 : rdma_ah_get_dlid(ah);
	path->path_bits = ah->type == RDMA_AH_ATTR_TYPE_ROCE ? 0 : rdma_ah_get_path_bits(ah);
	path->has_grh = !!(rdma_ah_get_ah_flags(ah) & IB_AH_GRH);
	path->has_av = true;
	path->left_port = 0;

	memset(&path->dgid, 0, sizeof(path->dgid));
	path->sgid_index = 0;
	path->flow_label = 0;
	path->hop_limit = 0;
	path->traffic_class = 0;
	if (path->has_grh) {
		path->dgid = grh->dgid;
		path->sgid_index = grh->sgid_index;
		path->flow_label = grh->flow_label;
		path->hop_limit = grh->hop_limit;
		path->traffic_class = grh->traffic_class;
	}

	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		ether_addr_copy(path->dmac, ah->roce.dmac);
	else
		eth_zero_addr(path->dmac);
}

static void alt_set(struct repath_alt_path *alt, const struct ib_qp_attr *attr)
{
	const struct rdma_ah_attr *ah = &attr->alt_ah_attr;

	alt->port = attr->alt_port_num;
	alt->pkey_index = attr->alt_pkey_index;
	alt->sl = rdma_ah_get_sl(ah);
	alt->rate = rdma_ah_get_static_rate(ah);
	/* ib_core refuses it on RoCE. */
	alt->dlid = ah->type == RDMA_AH_ATTR_TYPE_ROCE ? 0 : rdma_ah_get_dlid(ah);
	alt->path_bits = ah->type == RDMA_AH_ATTR_TYPE_ROCE ? 0 : rdma_ah_get_path_bits(ah);
	alt->has_grh = rdma_ah_get_ah_flags(ah) & IB_AH_GRH;
	memset(&alt->dgid, 0, sizeof(alt->dgid));
	alt->sgid_index = 0;
	if (alt->has_grh) {
		alt->dgid = ah->grh.dgid;
		alt->sgid_index = ah->grh.sgid_index;
	}
}

/* The queue pair was told to go over to the alternate path, which is the path from now on. */
static void migrate(struct repath_path *now, struct repath_alt_path *alt)
{
	now->dgid = alt->dgid;
	now->dlid = alt->dlid;
	now->port = alt->port;
	now->sgid_index = alt->sgid_index;
	now->pkey_index = alt->pkey_index;
	now->sl = alt->sl;
	now->rate = alt->rate;
	now->path_bits = alt->path_bits;
	now->has_grh = alt->has_grh;
	/* Those of the alternate GRH are not kept: until the device is asked, what a GRH has mostly. */
	now->flow_label = 0;
	now->traffic_class = 0;
	memset(alt, 0, sizeof(*alt));
}

/**
 * repath_path_leave - note which path it was on
 * @path: of a queue pair that was RESET
 * @before: what was known of it
 *
 * Shims that connect a queue pair anew RESET it, and set the address that it had: if the path changes meanwhile it
 * has to be found.
 */
void repath_path_leave(struct repath_path *path, const struct repath_path *before)
{
	u32 port = repath_path_port(before);

	if ((!before->dlid && !before->has_grh) || !port || port > U8_MAX)
		return;
	path->left_port = port;
	path->dgid = before->dgid;
	path->dlid = before->dlid;
	path->sl = before->sl;
	path->path_bits = before->path_bits;
	path->has_grh = before->has_grh;
}

/**
 * repath_path_modify - follow a modification that has succeeded
 * @path: what is known of the path
 * @alt: what is known of the alternate one
 * @attr: the attributes
 * @mask: enum ib_qp_attr_mask, which of them were set
 *
 * Context: any.
 */
void repath_path_modify(struct repath_path *path, struct repath_alt_path *alt,
			const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RESET) {
		const struct repath_path before = *path;

		memset(path, 0, sizeof(*path));
		memset(alt, 0, sizeof(*alt));
		repath_path_leave(path, &before);
		return;
	}
	if (mask & IB_QP_AV)
		path_set_av(path, &attr->ah_attr);
	if (mask & IB_QP_PORT)
		path->port = attr->port_num;
	if (mask & IB_QP_PKEY_INDEX)
		path->pkey_index = attr->pkey_index;
	if (mask & IB_QP_DEST_QPN)
		path->dest_qpn = attr->dest_qp_num;
	if (mask & IB_QP_PATH_MTU)
		path->mtu = attr->path_mtu;

	/* MIGRATED after REARM was set is a command; else it is the state that there was. */
	if (mask & IB_QP_PATH_MIG_STATE && attr->path_mig_state == IB_MIG_MIGRATED &&
	    alt->has_mig && alt->mig != IB_MIG_MIGRATED && alt->dlid)
		migrate(path, alt);
	if (mask & IB_QP_ALT_PATH)
		alt_set(alt, attr);
	if (mask & IB_QP_PATH_MIG_STATE) {
		alt->mig = attr->path_mig_state;
		alt->has_mig = true;
	}
}

/**
 * repath_path_pkey - the P_Key that a queue pair uses now: the subnet manager can change it
 * @dev: its device
 * @port: own port
 * @index: in the port's table
 * @pkey: result
 *
 * Context: process.
 * Return: false when the device has gone, or has no such entry.
 */
bool repath_path_pkey(struct repath_device *dev, u32 port, u16 index, u16 *pkey)
{
	bool known;

	if (!repath_device_use(dev))
		return false;
	known = rdma_is_port_valid(dev->ibdev, port) &&
		!ib_get_cached_pkey(dev->ibdev, port, index, pkey);
	repath_device_unuse(dev);
	return known;
}
