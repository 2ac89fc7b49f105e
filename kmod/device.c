// SPDX-License-Identifier: GPL-2.0
/* RDMA devices as this module knows them. */
#include <linux/rculist.h>
#include <linux/slab.h>

#include "adopt.h"
#include "device.h"
#include "event.h"
#include "op.h"
#include "reroute_qp.h"
#include "track.h"

/* Writers hold repath_track_lock, readers are in RCU. */
static LIST_HEAD(devices);

static void device_deliver(struct repath_note *note, unsigned int what)
{
	struct repath_device *dev = container_of(note, struct repath_device, note);

	if (what & REPATH_NOTE_NEW)
		repath_event_device(dev, REPATH_EV_NEW);
	if (what & REPATH_NOTE_CHANGED)
		repath_event_device(dev, REPATH_EV_CHANGE);
	if (what & REPATH_NOTE_CTX_GONE)
		repath_op_ctx_gone(dev);
	if (what & REPATH_NOTE_GONE)
		repath_event_device(dev, REPATH_EV_DEL);
	repath_device_put(dev);
}

static void device_free_work(struct work_struct *work)
{
	struct repath_device *dev = container_of(work, struct repath_device, free);

	/* Every queue pair, context and process entry holds a reference: there are none left. */
	WARN_ON(dev->qp_count || !list_empty(&dev->users));
	xa_destroy(&dev->lids);
	xa_destroy(&dev->by_qpn);
	xa_destroy(&dev->ctxs);
	if (dev->reroute)
		xa_destroy(&dev->reroute->table);
	kfree(dev->reroute);
	put_device(&dev->ibdev->dev);
	kfree_rcu(dev, rcu);
}

/**
 * repath_device_alloc - make the object of a device, not yet to be found by anybody
 * @ibdev: the device, registered
 *
 * Return: the object with one reference, or NULL without memory.
 */
struct repath_device *repath_device_alloc(struct ib_device *ibdev)
{
	struct repath_device *dev;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return NULL;
	kref_init(&dev->kref);
	get_device(&ibdev->dev);
	dev->ibdev = ibdev;
	dev->index = ibdev->index;
	strscpy(dev->name, dev_name(&ibdev->dev), sizeof(dev->name));
	dev->node_guid = be64_to_cpu(ibdev->node_guid);
	dev->ports = ibdev->phys_port_cnt;
	dev->link_layer = rdma_port_get_link_layer(ibdev, rdma_start_port(ibdev));
	xa_init(&dev->lids);
	mutex_init(&dev->lid_lock);
	INIT_LIST_HEAD(&dev->sa_ports);
	mutex_init(&dev->sa_mutex);
	xa_init(&dev->by_qpn);
	xa_init_flags(&dev->ctxs, XA_FLAGS_ALLOC);
	INIT_LIST_HEAD(&dev->node);
	INIT_LIST_HEAD(&dev->users);
	INIT_WORK(&dev->rescan, repath_adopt_work);
	mutex_init(&dev->adopt_lock);
	spin_lock_init(&dev->adoption_lock);
	INIT_WORK(&dev->free, device_free_work);
	repath_note_setup(&dev->note, REPATH_NOTE_OF_DEVICE, device_deliver);
	return dev;
}

static void device_release(struct kref *kref)
{
	/* A hook can be the last one, and put_device() may sleep. */
	repath_note_defer(&container_of(kref, struct repath_device, kref)->free);
}

/**
 * repath_device_put - drop a reference
 * @dev: the device
 *
 * Context: any.
 */
void repath_device_put(struct repath_device *dev)
{
	kref_put(&dev->kref, device_release);
}

/**
 * repath_device_link - from now on the device is found, and the hooks track it
 * @dev: from repath_device_alloc(); the list takes a reference
 */
void repath_device_link(struct repath_device *dev)
{
	unsigned long flags;

	kref_get(&dev->kref);
	spin_lock_irqsave(&repath_track_lock, flags);
	list_add_tail_rcu(&dev->node, &devices);
	spin_unlock_irqrestore(&repath_track_lock, flags);

	repath_device_get(dev);
	if (!repath_note_post(&dev->note, REPATH_NOTE_NEW))
		repath_device_put(dev);
}

/**
 * repath_device_of_locked - the object of an RDMA device
 * @ibdev: the device; only compared
 *
 * Context: repath_track_lock held.
 * Return: the device, or NULL if it is not, or not any more, tracked. No reference.
 */
struct repath_device *repath_device_of_locked(const struct ib_device *ibdev)
{
	struct repath_device *dev;

	lockdep_assert_held(&repath_track_lock);
	list_for_each_entry(dev, &devices, node)
		if (dev->ibdev == ibdev && !dev->removed)
			return dev;
	return NULL;
}

static bool device_visible(const struct repath_device *dev, const struct net *net)
{
	return !net || rdma_dev_access_netns(dev->ibdev, net);
}

/**
 * repath_device_next - the device with the lowest index that is not below one
 * @net: only those that this network namespace sees; NULL: all
 * @index: where to begin
 *
 * Return: with a reference, or NULL.
 */
struct repath_device *repath_device_next(const struct net *net, u32 index)
{
	struct repath_device *dev, *best;

	rcu_read_lock();
	do {
		best = NULL;
		list_for_each_entry_rcu(dev, &devices, node) {
			if (dev->index < index || (best && best->index <= dev->index))
				continue;
			if (device_visible(dev, net))
				best = dev;
		}
		/* One that is going away at this moment is not on the list the next time. */
	} while (best && !kref_get_unless_zero(&best->kref));
	rcu_read_unlock();
	return best;
}

/**
 * repath_device_get_by_index - find a device
 * @net: by whom it must be seen; NULL: anybody
 * @index: ib_device::index
 *
 * Return: with a reference, or NULL.
 */
struct repath_device *repath_device_get_by_index(const struct net *net, u32 index)
{
	struct repath_device *dev = repath_device_next(net, index);

	if (dev && dev->index != index) {
		repath_device_put(dev);
		dev = NULL;
	}
	return dev;
}

/**
 * repath_device_get_by_name - find a device
 * @net: by whom it must be seen; NULL: anybody
 * @name: its current name
 *
 * Return: with a reference, or NULL.
 */
struct repath_device *repath_device_get_by_name(const struct net *net, const char *name)
{
	char its_name[IB_DEVICE_NAME_MAX];
	struct repath_device *dev;

	repath_device_for_each(dev, net) {
		repath_device_name(dev, its_name);
		if (!strcmp(its_name, name))
			return dev;
	}
	return NULL;
}

/**
 * repath_device_name - the device's current name
 * @dev: the device
 * @name: where to put it
 *
 * Context: any.
 */
void repath_device_name(struct repath_device *dev, char name[IB_DEVICE_NAME_MAX])
{
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	strscpy(name, dev->name, IB_DEVICE_NAME_MAX);
	spin_unlock_irqrestore(&repath_track_lock, flags);
}

/**
 * repath_device_rename - the device has got another name
 * @dev: the device
 *
 * Context: ib_client rename(): ib_core keeps the name stable meanwhile.
 */
void repath_device_rename(struct repath_device *dev)
{
	unsigned long flags;

	spin_lock_irqsave(&repath_track_lock, flags);
	strscpy(dev->name, dev_name(&dev->ibdev->dev), sizeof(dev->name));
	spin_unlock_irqrestore(&repath_track_lock, flags);

	repath_device_get(dev);
	if (!repath_note_post(&dev->note, REPATH_NOTE_CHANGED))
		repath_device_put(dev);
}

/**
 * repath_device_use - keep the device registered, so that it can be called
 * @dev: the device
 *
 * Whoever unregisters the device waits, uninterruptibly, until repath_device_unuse(): never
 * hold it across a wait.
 *
 * Return: false if the device is going or has gone.
 */
bool repath_device_use(struct repath_device *dev)
{
	return ib_device_try_get(dev->ibdev);
}

/**
 * repath_device_unuse - end of repath_device_use()
 * @dev: the device
 */
void repath_device_unuse(struct repath_device *dev)
{
	ib_device_put(dev->ibdev);
}

/**
 * repath_device_net - the network namespace that the device belongs to
 * @dev: the device
 *
 * In ib_core's shared mode that is the initial one, and other namespaces see the device too.
 */
struct net *repath_device_net(const struct repath_device *dev)
{
	return read_pnet(&dev->ibdev->coredev.rdma_net);
}
