/* SPDX-License-Identifier: GPL-2.0 */
/* The path of a queue pair, as its owner set it by modify_qp. */
#ifndef REPATH_PATH_H
#define REPATH_PATH_H

#include <linux/if_ether.h>
#include <rdma/ib_verbs.h>

struct repath_device;

/**
 * struct repath_path - where a queue pair sends to
 * @dgid: all zero when the address has no GRH
 * @port: own port, 0 before INIT
 * @dest_qpn: the peer's queue pair, 0 before RTR
 * @dlid: 0 on RoCE
 * @sgid_index: own GID; valid if @has_grh
 * @flow_label: of the GRH
 * @pkey_index: own P_Key
 * @sl: service level
 * @mtu: enum ib_mtu, 0 before RTR
 * @path_bits: low bits of the own LID
 * @traffic_class: of the GRH
 * @hop_limit: of the GRH
 * @dmac: of the next hop; RoCE only
 * @has_av: an address was set, and the queue pair was not RESET since
 * @has_grh: see @dgid
 */
struct repath_path {
	union ib_gid dgid;
	u32 port;
	u32 dest_qpn;
	u32 dlid;
	u32 sgid_index;
	u32 flow_label;
	u16 pkey_index;
	u8 sl;
	u8 mtu;
	u8 path_bits;
	u8 traffic_class;
	u8 hop_limit;
	u8 dmac[ETH_ALEN];
	bool has_av;
	bool has_grh;
};

void repath_path_modify(struct repath_path *path, const struct ib_qp_attr *attr, int mask);
u32 repath_path_slid(struct repath_device *dev, const struct repath_path *path);

#endif /* REPATH_PATH_H */
