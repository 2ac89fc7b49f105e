// SPDX-License-Identifier: GPL-2.0
/* LIDs of the own ports: asked when they may have changed, and kept for who must not wait. */
#include <rdma/ib_verbs.h>

#include "lid.h"

/**
 * repath_lid_ask - ask the device for the LID of a port
 * @dev: device
 * @port: its port
 *
 * For who must not miss a change of which the event is still under way.
 *
 * Context: may sleep for as long as the firmware does: repath_conn_mutex not held.
 */
void repath_lid_ask(struct repath_device *dev, u32 port)
{
	struct ib_port_attr attr;

	if (!rdma_protocol_ib(dev->ibdev, port) || !repath_device_use(dev))
		return;
	/* The later answer is the one that is kept. */
	mutex_lock(&dev->lid_lock);
	if (!ib_query_port(dev->ibdev, port, &attr))
		xa_store(&dev->lids, port, xa_mk_value(attr.lid), GFP_KERNEL);
	mutex_unlock(&dev->lid_lock);
	repath_device_unuse(dev);
}

static void port_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct repath_device *dev = container_of(handler, struct repath_device, port_events);

	switch (event->event) {
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_CLIENT_REREGISTER:
		repath_lid_ask(dev, event->element.port_num);
		break;
	default:
		break;
	}
}

/**
 * repath_lid_begin - from now on the LIDs are known
 * @dev: device, in ib_client add()
 */
void repath_lid_begin(struct repath_device *dev)
{
	u32 port;

	INIT_IB_EVENT_HANDLER(&dev->port_events, dev->ibdev, port_event);
	ib_register_event_handler(&dev->port_events);
	rdma_for_each_port(dev->ibdev, port)
		repath_lid_ask(dev, port);
}

/**
 * repath_lid_end - the LIDs stay as they are
 * @dev: device, in ib_client remove()
 */
void repath_lid_end(struct repath_device *dev)
{
	ib_unregister_event_handler(&dev->port_events);
}
