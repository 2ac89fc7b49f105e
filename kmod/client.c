// SPDX-License-Identifier: GPL-2.0
/* The ib_client: devices come and go. */
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "adopt.h"
#include "client.h"
#include "device.h"
#include "lid.h"
#include "op.h"
#include "reroute.h"
#include "sa.h"
#include "track.h"
#include "unplug.h"
#include "xprt.h"

/*
 * A use of ib_uverbs, which makes the loader load it first and keep it: ib_core adds clients
 * in the order of registration and removes them in the opposite one, so remove() below comes
 * while processes still can use the device.
 */
static void (*const uverbs_pin)(struct ib_umem *umem) __used = ib_umem_release;

static struct ib_client repath_client;

static int client_add(struct ib_device *ibdev)
{
	struct repath_device *dev;
	int err;

	dev = repath_device_alloc(ibdev);
	if (!dev)
		return -ENOMEM;
	ib_set_client_data(ibdev, &repath_client, dev);

	repath_lid_begin(dev);
	/* Without a way to its peers nothing on the device can be moved; it is tracked all the same. */
	err = repath_xprt_add_device(dev);
	if (err)
		dev_warn(&ibdev->dev, "repath: no peer channel (%d)\n", err);

	repath_reroute_begin(dev);
	/* First the hooks, then what they have not seen: nothing falls between. */
	repath_device_link(dev);
	repath_adopt(dev);
	repath_sa_begin(dev);
	repath_unplug_added();
	return 0;
}

/*
 * Who may still hold the device's objects when this returns, and why that is safe:
 * (1) probe handlers: they find queue pairs and contexts by the indexes only, under
 *     repath_track_lock, and those are empty and stay empty (repath_device::removed);
 * (2) dumps, connections and operations: they hold references, of the queue pair or of the device, and
 *     call the device only inside repath_device_use(), for which who unregisters it waits. Notes have
 *     been delivered: they look at the device's network namespace;
 * (3) the rescan, the port events, the moves of queue pairs, and what is said to subnet managers:
 *     cancelled here.
 * ibdev's memory stays until the last reference of @dev is dropped.
 */
static void client_remove(struct ib_device *ibdev, void *client_data)
{
	struct repath_device *dev = client_data;

	/* While everything still works. */
	repath_unplug_removed(dev);
	repath_op_device_removed(dev);
	repath_sa_end(dev);
	if (dev->xprt)
		repath_xprt_remove_device(dev);
	repath_reroute_end(dev);
	repath_track_device_gone(dev);
	/* Again: one may have begun meanwhile. From now on they begin with a device that is gone. */
	repath_op_device_removed(dev);
	repath_lid_end(dev);
	cancel_work_sync(&dev->rescan);
	repath_adopt_device_gone(dev);
	repath_device_put(dev);
}

static void client_rename(struct ib_device *ibdev, void *client_data)
{
	repath_device_rename(client_data);
}

static struct ib_client repath_client = {
	.name	= "repath",
	.add	= client_add,
	.remove	= client_remove,
	.rename	= client_rename,
};

/**
 * repath_client_init - begin to track all devices
 *
 * The queue pairs and contexts that are there already are known when this returns.
 */
int __init repath_client_init(void)
{
	return ib_register_client(&repath_client);
}

/**
 * repath_client_exit - forget all devices
 */
void repath_client_exit(void)
{
	repath_unplug_ending();
	ib_unregister_client(&repath_client);
}
