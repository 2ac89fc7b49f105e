/* SPDX-License-Identifier: GPL-2.0 */
/* The paths of a queue pair, as its owner set them by modify_qp. */
#ifndef REPATH_PATH_H
#define REPATH_PATH_H

#include <linux/if_ether.h>
#include <rdma/ib_verbs.h>

struct repath_device;

/**
 * struct repath_path - where a queue pair sends to
 * @dgid: all zero when the address has no GRH
 * @dest_qpn: the peer's queue pair, 0 before RTR
 * @dlid: 0 on RoCE
 * @flow_label: of the GRH
 * @port: own port, 0 before INIT
 * @sgid_index: own GID; valid if @has_grh
 * @pkey_index: own P_Key
 * @dmac: of the next hop; RoCE only
 * @sl: service level
 * @mtu: enum ib_mtu, 0 before RTR
 * @rate: static rate, enum ib_rate; 0: the port's own
 * @path_bits: low bits of the own LID
 * @traffic_class: of the GRH
 * @hop_limit: of the GRH
 * @left_port: own port of the path that it was on when it was RESET last, whose @dgid, @dlid, @sl, @path_bits and
 *	@has_grh are still there; 0: @has_av, or it was on none
 * @has_av: an address was set, and the queue pair was not RESET since
 * @has_grh: see @dgid
 */
struct repath_path {
	union ib_gid dgid;
	u32 dest_qpn;
	u32 dlid;
	u32 flow_label;
	u16 port;
	u16 sgid_index;
	u16 pkey_index;
	u8 dmac[ETH_ALEN];
	u8 sl;
	u8 mtu;
	u8 rate;
	u8 path_bits;
	u8 traffic_class;
	u8 hop_limit;
	u8 left_port;
	u8 has_av : 1;
	u8 has_grh : 1;
};

/**
 * struct repath_alt_path - where it would send to after path migration
 * @dgid: all zero when the address has no GRH
 * @dlid: 0: no alternate path is loaded. RoCE has none
 * @port: own port
 * @sgid_index: own GID; valid if @has_grh
 * @pkey_index: own P_Key
 * @sl: service level
 * @rate: as in struct repath_path
 * @path_bits: as in struct repath_path
 * @mig: enum ib_mig_state, as last set or asked for: hardware changes it by itself
 * @has_grh: see @dgid
 * @has_mig: @mig was set
 */
struct repath_alt_path {
	union ib_gid dgid;
	u32 dlid;
	u16 port;
	u16 sgid_index;
	u16 pkey_index;
	u8 sl;
	u8 rate;
	u8 path_bits;
	u8 mig;
	bool has_grh : 1;
	bool has_mig : 1;
};

/* May hardware have gone over to it since the queue pair was modified? Nobody tells. */
static inline bool repath_alt_may_be_used(const struct repath_alt_path *alt)
{
	return alt->dlid && alt->has_mig && alt->mig != IB_MIG_MIGRATED;
}

/* Is it on a path, or has it been RESET on one? */
static inline bool repath_path_is_known(const struct repath_path *path)
{
	return path->has_av || path->left_port;
}

/* The own port of the path that it is on, or has left; 0: none. */
static inline u32 repath_path_port(const struct repath_path *path)
{
	return path->has_av ? path->port : path->left_port;
}

void repath_path_leave(struct repath_path *path, const struct repath_path *before);
void repath_path_modify(struct repath_path *path, struct repath_alt_path *alt,
			const struct ib_qp_attr *attr, int mask);
bool repath_path_pkey(struct repath_device *dev, u32 port, u16 index, u16 *pkey);

#endif /* REPATH_PATH_H */
