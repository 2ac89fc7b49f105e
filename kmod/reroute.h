/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Paths change: from what the subnet manager says to the queue pairs that it concerns.
 *
 * Who hears of a change calls one of the three below. They do not wait: a work item of the device
 * looks up the queue pairs by the index and moves them, each by what its device can do
 * (reroute_qp.h). A path is named by own port and DLID, as queue pairs have it now, or GID on RoCE: there an
 * administrator tells it, and nobody beforehand, as there are no alternate paths.
 */
#ifndef REPATH_REROUTE_H
#define REPATH_REROUTE_H

#include <linux/bits.h>
#include <linux/types.h>

struct repath_device;
struct repath_qp;

/* What a new path tells besides its destination. */
#define REPATH_PATH_SL		BIT(0)
#define REPATH_PATH_MTU		BIT(1)
#define REPATH_PATH_RATE	BIT(2)
#define REPATH_PATH_PKEY	BIT(3)
#define REPATH_PATH_TCLASS	BIT(4)

/**
 * struct repath_new_path - the path that takes the place of another one
 * @dlid: of the path in use; 0 on RoCE, where @dgid tells it
 * @slid: own LID of the path in use; 0: any that the port has
 * @dgid: queue pairs that go to this GID only; all zero: whatever GID they go to
 * @by_lid: queue pairs that go to no GID only
 * @new_dlid: from now on; 0: as before
 * @serial: of the routing that it belongs to: nothing older takes its place; 0: not told, newest
 * @epoch: of who counts @serial: those of another one do not compare
 * @pkey: valid if @has says so
 * @sl: valid if @has says so
 * @tclass: traffic class of the GRH; valid if @has says so, on RoCE only
 * @mtu: enum ib_mtu; valid if @has says so
 * @rate: enum ib_rate; valid if @has says so
 * @has: REPATH_PATH_*
 * @for_peer: it is what it was, but who is at its other end has another way
 */
struct repath_new_path {
	u32 dlid;
	u32 slid;
	u8 dgid[16];
	u32 new_dlid;
	u32 serial;
	u32 epoch;
	u16 pkey;
	u8 sl;
	u8 tclass;
	u8 mtu;
	u8 rate;
	u8 has;
	bool by_lid;
	bool for_peer;
};

/* Why a path is not to be used any more. */
enum repath_unpath_why {
	REPATH_UNPATH_BREAKS,	/* it is about to break: a new one will be told */
	REPATH_UNPATH_LANE,	/* an exception ends: the path record tells the way again */
};

/*
 * All: any process context; may sleep for memory, never for the device. 0, -ENOMEM, -EOPNOTSUPP
 * (not a port of InfiniBand or RoCE, prepare and unpath of RoCE, or switched off for the device), -ENODEV (it is going).
 *
 * unpath:  the path to @dlid (0: any) will not be used any more, and nobody knows yet what comes
 *          instead. With @wait its queue pairs stop sending until the new path is told, or for a
 *          while; without, it is only counted.
 * prepare: @path will take the place of one that still works: it is loaded as the alternate path.
 * repath:  @path takes its place now.
 */
int repath_reroute_unpath(struct repath_device *dev, u32 port, u32 dlid,
			  enum repath_unpath_why why, bool wait);
int repath_reroute_prepare(struct repath_device *dev, u32 port, const struct repath_new_path *path);
int repath_reroute_late(struct repath_device *dev, u32 port, const struct repath_new_path *path,
			u64 since_ns);
int repath_reroute_repath(struct repath_device *dev, u32 port, const struct repath_new_path *path);

/* The shim's answer: it has connected a queue pair anew (0), or has not (errno). Any process context. */
void repath_reroute_cycled(struct repath_qp *rqp, int err);

/* Off: what is asked for is refused, and what is under way is brought to an end. */
bool repath_reroute_switch(struct repath_device *dev, bool on);
bool repath_reroute_is_on(const struct repath_device *dev);

/* Are queue pairs on their way, or about to be? Where they are does then not tell where they will be. */
bool repath_reroute_is_under_way(const struct repath_device *dev);

/* A device comes, and goes: ib_client's add() and remove(). Without memory it can not reroute. */
void repath_reroute_begin(struct repath_device *dev);
void repath_reroute_end(struct repath_device *dev);

#endif /* REPATH_REROUTE_H */
