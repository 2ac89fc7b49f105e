// SPDX-License-Identifier: GPL-2.0
/* From the path of a queue pair to the address that leads along another one. */
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "reroute_qp.h"

/**
 * repath_path_is_there - does it go where it shall?
 * @to: where it shall go
 * @dlid: where it goes
 * @sl: service level
 * @rate: enum ib_rate
 */
bool repath_path_is_there(const struct repath_new_path *to, u32 dlid, u8 sl, u8 rate)
{
	if (to->new_dlid && to->new_dlid != dlid)
		return false;
	if (to->has & REPATH_PATH_SL && to->sl != sl)
		return false;
	/* 0 is the port's own, and stays that. */
	return !(to->has & REPATH_PATH_RATE) || !rate || to->rate == rate;
}

/**
 * repath_ah_is_there - does an address lead where it shall?
 * @to: where it shall lead
 * @ah: the address
 */
bool repath_ah_is_there(const struct repath_new_path *to, const struct rdma_ah_attr *ah)
{
	return repath_path_is_there(to, rdma_ah_get_dlid(ah), rdma_ah_get_sl(ah),
				    rdma_ah_get_static_rate(ah));
}

/**
 * repath_path_find_pkey - which P_Key the new path takes
 * @ibdev: device
 * @to: where it shall go
 * @path: where it goes
 * @index: of the P_Key in the port's table
 *
 * Return: 0: the one that it has; 1: another one; -ENOENT: the port has none.
 */
int repath_path_find_pkey(struct ib_device *ibdev, const struct repath_new_path *to,
			  const struct repath_path *path, u16 *index)
{
	u16 pkey;

	*index = path->pkey_index;
	if (!(to->has & REPATH_PATH_PKEY))
		return 0;
	if (!ib_get_cached_pkey(ibdev, path->port, path->pkey_index, &pkey) &&
	    (pkey & 0x7fff) == (to->pkey & 0x7fff))
		return 0;
	return ib_find_cached_pkey(ibdev, path->port, to->pkey, index) ? -ENOENT : 1;
}

/**
 * repath_path_make_ah - the new address: what the owner has set, and what is new
 * @qp: queue pair
 * @to: where it shall go
 * @path: where it goes
 * @asked: the address as the device has it
 * @ah: result
 */
void repath_path_make_ah(struct ib_qp *qp, const struct repath_new_path *to,
			 const struct repath_path *path, const struct rdma_ah_attr *asked,
			 struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(asked);

	memset(ah, 0, sizeof(*ah));
	ah->type = rdma_ah_find_type(qp->device, path->port);
	rdma_ah_set_port_num(ah, path->port);
	rdma_ah_set_dlid(ah, to->new_dlid ?: path->dlid);
	rdma_ah_set_path_bits(ah, path->path_bits);
	rdma_ah_set_sl(ah, to->has & REPATH_PATH_SL ? to->sl : path->sl);
	rdma_ah_set_static_rate(ah, path->rate && to->has & REPATH_PATH_RATE ? to->rate :
				path->rate);
	if (!path->has_grh)
		return;
	rdma_ah_set_grh(ah, NULL, path->flow_label, path->sgid_index, path->hop_limit,
			path->traffic_class);
	/* After a migration only the device knows these. */
	if (rdma_ah_get_ah_flags(asked) & IB_AH_GRH &&
	    !memcmp(&grh->dgid, &path->dgid, sizeof(path->dgid)))
		rdma_ah_set_grh(ah, NULL, grh->flow_label, path->sgid_index, grh->hop_limit,
				grh->traffic_class);
	ah->grh.dgid = path->dgid;
}

/**
 * repath_path_keeps_gid - would the new address use the GID entry that the present one uses?
 * @qp: queue pair
 * @path: where it goes
 *
 * ib_core notes which one it is, under no lock of its own: that it is the same as before makes
 * whatever the owner does at the same time harmless.
 */
bool repath_path_keeps_gid(struct ib_qp *qp, const struct repath_path *path)
{
	const struct ib_gid_attr *gid;
	bool same;

	if (!path->has_grh)
		return !READ_ONCE(qp->av_sgid_attr);
	gid = rdma_get_gid_attr(qp->device, path->port, path->sgid_index);
	if (IS_ERR(gid))
		return false;
	same = gid == READ_ONCE(qp->av_sgid_attr);
	rdma_put_gid_attr(gid);
	return same;
}
