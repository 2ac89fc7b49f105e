/* SPDX-License-Identifier: GPL-2.0 */
/* RDMA devices as this module knows them: one object from ib_client add() on. */
#ifndef REPATH_DEVICE_H
#define REPATH_DEVICE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

#include "adopt.h"
#include "note.h"
#include "stat.h"

struct repath_reroute;

/**
 * struct repath_device - an RDMA device
 * @kref: the list holds one; every queue pair, context, connection and operation holds one each
 * @rcu: readers of the list
 * @node: in the list of devices; repath_track_lock, readers RCU
 * @ibdev: the memory stays valid as long as this object. To call the device, be inside add()
 *	and remove(), or hold it by repath_device_use()
 * @index: ib_device::index, never used twice while the module is loaded
 * @name: changed by a rename under repath_track_lock
 * @node_guid: as read by a person (host order)
 * @ports: number of ports
 * @link_layer: enum rdma_link_layer of port 1
 * @removed: remove() runs or has run; nothing is tracked any more. repath_track_lock
 * @xprt: belongs to xprt.c
 * @reroute: belongs to reroute.c; set before the device is linked
 * @lids: LIDs by port (lid.c). Readers RCU
 * @lid_lock: serialises who asks for them
 * @port_events: tells when they may have changed
 * @sa_ports: InfiniBand ports and their subnet managers (sa.c); they change under @sa_mutex, from
 *	add() to remove()
 * @sa_mutex: see there
 * @sa_events: tells when the subnet manager may be another one
 * @by_qpn: QP by repath_qp_key(); the newest one of a QPN. repath_track_lock
 * @place: reserved in @by_qpn, unless a queue pair has it now (track.c); 0: none. repath_track_lock
 * @ctxs: contexts by a number of our own. Readers RCU
 * @users: processes that hold anything of the device; repath_track_lock
 * @qp_count: entries of @by_qpn
 * @ud_count: of these, of UD; repath_track_lock
 * @ctx_count: entries of @ctxs
 * @ctx_closed: contexts whose end a hook has seen
 * @user_count: entries of @users
 * @stats: counters
 * @note: pending news of this device
 * @rescan: adopts what the hooks have missed
 * @adopt_lock: held through a round of adoption
 * @adoption_lock: protects @adoption and @adopt_wanted
 * @adoption: what all rounds came to
 * @adopt_wanted: rounds asked for
 * @adopt_done: the newest of these that has ended
 * @adopt_again: the last round could not tell which contexts have gone
 * @held_up: a suspend was held up because somebody is said to be connected to a queue pair that is not
 *	connected yet; repath_conn_mutex
 * @held_at: since when, jiffies
 * @free: the end of it, in process context
 */
struct repath_device {
	struct kref kref;
	struct rcu_head rcu;
	struct list_head node;
	struct ib_device *ibdev;
	u32 index;
	char name[IB_DEVICE_NAME_MAX];
	u64 node_guid;
	u32 ports;
	u8 link_layer;
	bool removed;
	void *xprt;
	struct repath_reroute *reroute;

	struct xarray lids;
	struct mutex lid_lock;
	struct ib_event_handler port_events;

	struct list_head sa_ports;
	struct mutex sa_mutex;
	struct ib_event_handler sa_events;

	struct xarray by_qpn;
	u32 place;
	struct xarray ctxs;
	struct list_head users;
	u32 qp_count;
	u32 ud_count;
	u32 ctx_count;
	u32 ctx_closed;
	u32 user_count;
	struct repath_stats stats;
	struct repath_note note;
	struct work_struct rescan;
	struct mutex adopt_lock;
	spinlock_t adoption_lock;
	struct repath_adoption adoption;
	u32 adopt_wanted;
	u32 adopt_done;
	bool adopt_again;
	bool held_up;
	unsigned long held_at;
	struct work_struct free;
};

/* All that return a device but the _locked one return it with a reference, or NULL. */
struct repath_device *repath_device_get_by_name(const struct net *net, const char *name);
struct repath_device *repath_device_get_by_index(const struct net *net, u32 index);
struct repath_device *repath_device_next(const struct net *net, u32 index);
void repath_device_put(struct repath_device *dev);

static inline struct repath_device *repath_device_get(struct repath_device *dev)
{
	kref_get(&dev->kref);
	return dev;
}

/**
 * repath_device_for_each - walk the devices that a network namespace sees
 * @dev: struct repath_device *; leaving the loop early leaves a reference to put
 * @net: namespace, NULL for all
 *
 * The body may sleep.
 */
#define repath_device_for_each(dev, net)						\
	for (dev = repath_device_next(net, 0); dev;					\
	     dev = repath_device_after(net, dev))

static inline struct repath_device *repath_device_after(const struct net *net,
							struct repath_device *dev)
{
	u32 index = dev->index;

	repath_device_put(dev);
	return index == U32_MAX ? NULL : repath_device_next(net, index + 1);
}

/* Have adoption look at the device soon. Any context. */
static inline void repath_device_rescan(struct repath_device *dev)
{
	queue_work(system_unbound_wq, &dev->rescan);
}

bool repath_device_use(struct repath_device *dev);
void repath_device_unuse(struct repath_device *dev);
struct net *repath_device_net(const struct repath_device *dev);
struct repath_device *repath_device_of_locked(const struct ib_device *ibdev);

void repath_device_rename(struct repath_device *dev);
void repath_device_name(struct repath_device *dev, char name[IB_DEVICE_NAME_MAX]);

/* For client.c and tests: the object without ib_client around it. */
struct repath_device *repath_device_alloc(struct ib_device *ibdev);
void repath_device_link(struct repath_device *dev);

#endif /* REPATH_DEVICE_H */
