// SPDX-License-Identifier: GPL-2.0
/* The path of a queue pair, as its owner set it by modify_qp. */
#include <linux/etherdevice.h>
#include <rdma/ib_verbs.h>

#include "device.h"
#include "path.h"

static void path_set_av(struct repath_path *path, const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = &ah->grh;

	path->port = rdma_ah_get_port_num(ah);
	path->sl = rdma_ah_get_sl(ah);
	path->dlid = ah->type == RDMA_AH_ATTR_TYPE_ROCE ? 0 : rdma_ah_get_dlid(ah);
	path->path_bits = ah->type == RDMA_AH_ATTR_TYPE_ROCE ? 0 : rdma_ah_get_path_bits(ah);
	path->has_grh = rdma_ah_get_ah_flags(ah) & IB_AH_GRH;
	path->has_av = true;

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

/**
 * repath_path_modify - follow a modification that has succeeded
 * @path: what is known of the path
 * @attr: the attributes
 * @mask: enum ib_qp_attr_mask, which of them were set
 *
 * Context: any.
 */
void repath_path_modify(struct repath_path *path, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RESET) {
		memset(path, 0, sizeof(*path));
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
}

/**
 * repath_path_slid - the LID that the queue pair's packets carry as source
 * @dev: its device
 * @path: its path
 *
 * Context: process, the device may be asked.
 * Return: 0 on RoCE, without an address, and when the device has gone.
 */
u32 repath_path_slid(struct repath_device *dev, const struct repath_path *path)
{
	struct ib_port_attr attr;
	u32 lid = 0;

	if (!path->has_av || !path->dlid || !repath_device_use(dev))
		return 0;
	if (rdma_is_port_valid(dev->ibdev, path->port) &&
	    !ib_query_port(dev->ibdev, path->port, &attr))
		lid = attr.lid | path->path_bits;
	repath_device_unuse(dev);
	return lid;
}
