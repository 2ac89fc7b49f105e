/* SPDX-License-Identifier: GPL-2.0 */
/* What a Report of the subnet manager says, and whether it was said before. */
#ifndef REPATH_NOTICE_H
#define REPATH_NOTICE_H

#include <linux/types.h>

struct ib_mad;

#define REPATH_NOTICE_RING 256	/* a power of two: notices that are known again */

/**
 * struct repath_notice - a notice, in host order
 * @mask: the components of the path that are told, REPATH_SM_MASK_*; 0: all paths
 * @epoch: of the sender
 * @serial: of the routing
 * @number: of the notice
 * @dgid: see @mask, as the LIDs
 * @dlid: 0: all
 * @old_dlid: moved: where it was, and nobody is now; 0: not told
 * @slid: own; 0: all
 * @pkey: see @mask, as the rest
 * @sl: service level
 * @mtu: enum ib_mtu
 * @rate: enum ib_rate
 * @kind: enum repath_sm_kind, or one that is not known
 * @repath: trap 69; else 68
 * @wait: UnPath: a RePath follows
 * @ahead: UnPath: the path's values are those to come
 * @relayed: the hypervisor has told it
 */
struct repath_notice {
	u64 mask;
	u32 epoch;
	u32 serial;
	u32 number;
	u8 dgid[16];
	u16 dlid;
	u16 old_dlid;
	u16 slid;
	u16 pkey;
	u8 sl;
	u8 mtu;
	u8 rate;
	u8 kind;
	bool repath;
	bool wait;
	bool ahead;
	bool relayed;
};

/**
 * struct repath_notice_ring - what was heard lately
 * @epoch: of the sender that was heard last
 * @serial: the newest of that epoch; valid if @any
 * @heard: numbers, by trap; those of an epoch
 * @n: how many were put into @heard
 * @any: something was heard in this epoch
 * @repathed: the newest serial of a RePath; valid if @any_repath
 * @any_repath: a RePath was heard in this epoch
 * @moved: the newest number of who says that somebody has moved; valid if @any_moved
 * @any_moved: that was heard in this epoch
 */
struct repath_notice_ring {
	u32 epoch;
	u32 serial;
	u32 repathed;
	u32 moved;
	u32 heard[2][REPATH_NOTICE_RING];
	u32 n[2];
	bool any;
	bool any_repath;
	bool any_moved;
};

enum repath_notice_age {
	REPATH_NOTICE_NEW,
	REPATH_NOTICE_AGAIN,	/* it was heard before */
	REPATH_NOTICE_LATE,	/* a newer routing, or move, is known already, or is in force */
};

bool repath_notice_is_report(const struct ib_mad *mad);
bool repath_notice_is_behind(u32 number, u32 newest);
int repath_notice_parse(const struct ib_mad *mad, struct repath_notice *notice);
enum repath_notice_age repath_notice_age(struct repath_notice_ring *ring,
					 const struct repath_notice *notice);

#endif /* REPATH_NOTICE_H */
