// SPDX-License-Identifier: GPL-2.0
/* From the path of a queue pair to the address that leads along another one. */
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "reroute_qp.h"
#include "track.h"

/* @rate: enum ib_rate */
static bool is_there(const struct repath_new_path *to, u32 dlid, u8 sl, u8 tclass, u8 rate)
{
	if ((to->new_dlid ?: to->dlid) != dlid)
		return false;
	if (to->has & REPATH_PATH_SL && to->sl != sl)
		return false;
	if (to->has & REPATH_PATH_TCLASS && to->tclass != tclass)
		return false;
	/* 0 is the port's own, and stays that. */
	return !(to->has & REPATH_PATH_RATE) || !rate || to->rate == rate;
}

/* What comes by a path must not be larger than it carries. */
static bool is_smaller(const struct repath_new_path *to, const struct repath_path *path)
{
	return to->has & REPATH_PATH_MTU && to->mtu < path->mtu;
}

/**
 * repath_ah_is_there - does an address lead where it shall?
 * @to: where it shall lead
 * @ah: the address
 */
bool repath_ah_is_there(const struct repath_new_path *to, const struct rdma_ah_attr *ah)
{
	u8 rate = rdma_ah_get_static_rate(ah);

	/* Devices take the next lower enum ib_rate that they have (mlx4, mlx5), which is not in the order of speeds. */
	if (to->has & REPATH_PATH_RATE && rate && rate < to->rate)
		rate = to->rate;
	return is_there(to, rdma_ah_get_dlid(ah), rdma_ah_get_sl(ah), ah->grh.traffic_class, rate);
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
 * repath_path_keeps_pkey - is the new path in the partition that it has?
 * @ibdev: device
 * @to: where it shall go
 * @path: where it goes
 */
bool repath_path_keeps_pkey(struct ib_device *ibdev, const struct repath_new_path *to,
			    const struct repath_path *path)
{
	u16 index;

	return !repath_path_find_pkey(ibdev, to, path, &index);
}

/**
 * repath_path_is_enough - does it go where it shall, in packets that fit?
 * @ibdev: device
 * @to: where it shall go
 * @path: where it goes
 */
bool repath_path_is_enough(struct ib_device *ibdev, const struct repath_new_path *to,
			   const struct repath_path *path)
{
	return is_there(to, path->dlid, path->sl, path->traffic_class, path->rate) &&
	       !is_smaller(to, path) && repath_path_keeps_pkey(ibdev, to, path);
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
	if (to->has & REPATH_PATH_TCLASS)
		ah->grh.traffic_class = to->tclass;
	/* The kernel's callers have it resolved. */
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		memcpy(ah->roce.dmac, path->dmac, sizeof(ah->roce.dmac));
}

/* Without ib_core, which would let go of the GID entry that it has noted. */
static int ask_driver(struct ib_qp *qp, const struct ib_gid_attr *gid, struct ib_qp_attr *attr,
		      int mask)
{
	struct rdma_ah_attr *ah = mask & IB_QP_ALT_PATH ? &attr->alt_ah_attr : &attr->ah_attr;
	int err;

	if (mask & IB_QP_PKEY_INDEX) {
		/* That one is for ib_core to judge. */
		err = ib_modify_qp(qp, attr, mask & ~IB_QP_AV);
		if (err)
			return err;
		mask &= ~IB_QP_PKEY_INDEX;
	}
	attr->xmit_slave = NULL;
	ah->grh.sgid_attr = gid;
	err = qp->device->ops.modify_qp(qp->real_qp, attr, mask, NULL);
	ah->grh.sgid_attr = NULL;
	if (!err)
		repath_track_qp_modified(qp, attr, mask);
	return err;
}

/**
 * repath_path_set_av - give a queue pair another address, in SQD
 * @qp: queue pair
 * @path: where it goes
 * @attr: the new address, by the same GID index or, as before, without a GRH
 * @mask: of @attr
 *
 * ib_core notes, under no lock of its own, which GID entry the address uses. That it is the same
 * one as before makes whatever the owner does at the same time harmless. It is not whenever a
 * subnet manager has had clients register again: all entries are made anew then, with the same
 * indices, which is what hardware goes by. The former entry stays noted, as after a migration; on
 * InfiniBand nobody looks at it.
 *
 * Return: as ib_modify_qp(); -EAGAIN: there is no such entry at this moment.
 */
int repath_path_set_av(struct ib_qp *qp, const struct repath_path *path, struct ib_qp_attr *attr,
		       int mask)
{
	const struct ib_gid_attr *gid = NULL;
	int err;

	if (path->has_grh) {
		gid = rdma_get_gid_attr(qp->device, path->port, path->sgid_index);
		if (IS_ERR(gid))
			return -EAGAIN;
	}
	if (gid == READ_ONCE(qp->av_sgid_attr))
		err = ib_modify_qp(qp, attr, mask);
	else
		err = ask_driver(qp, gid, attr, mask);
	if (gid)
		rdma_put_gid_attr(gid);
	return err;
}

/**
 * repath_path_set_alt - load an alternate path
 * @qp: queue pair
 * @attr: the alternate path
 * @mask: of @attr
 * @judge: its P_Key is another one than that in use: ib_core shall judge
 *
 * Here ib_core's note of the GID entry is not the same one as before, as with an address: there is none before
 * the first alternate path. Whoever destroys the queue pair has read what is noted before he waits for us, and
 * would not let go of the entry; and an owner who loads one at the same moment would let go of one twice.
 *
 * Return: as ib_modify_qp(); -EAGAIN: there is no such entry at this moment.
 */
int repath_path_set_alt(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, bool judge)
{
	const struct rdma_ah_attr *ah = &attr->alt_ah_attr;
	bool has_grh = rdma_ah_get_ah_flags(ah) & IB_AH_GRH;
	const struct ib_gid_attr *gid = NULL;
	int err;

	if (judge || (!has_grh && !READ_ONCE(qp->alt_path_sgid_attr)))
		return ib_modify_qp(qp, attr, mask);
	if (has_grh) {
		gid = rdma_get_gid_attr(qp->device, attr->alt_port_num,
					rdma_ah_read_grh(ah)->sgid_index);
		if (IS_ERR(gid))
			return -EAGAIN;
	}
	err = ask_driver(qp, gid, attr, mask);
	if (gid)
		rdma_put_gid_attr(gid);
	return err;
}
