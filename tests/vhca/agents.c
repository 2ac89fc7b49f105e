// SPDX-License-Identifier: GPL-2.0
/*
 * What the driver has of the core's own clients. rdmavt makes the agents that send traps when it registers a
 * device, and frees them when it goes. In between the core may take all its clients from the device, its MAD
 * layer among them, and put them back: that is how a device changes its network namespace.
 */
#include "function.h"
#include "trap.h"

static void sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	ib_free_send_mad(wc->send_buf);
}

static int add(struct ib_device *device)
{
	struct vhca_dev *dev = vhca_dev_of(device);
	struct ib_mad_agent *agent;
	unsigned int i;

	/* The first time rdmavt makes them. */
	if (!dev || !READ_ONCE(dev->registered))
		return 0;
	for (i = 0; i < dev->nports; i++) {
		struct vhca_port *port = &dev->port[i];

		vhca_vguids_again(port);
		agent = ib_register_mad_agent(device, i + 1, IB_QPT_SMI, NULL, 0, sent, NULL, NULL, 0);
		if (IS_ERR(agent)) {
			dev_warn(&device->dev, "port %u sends no traps from now on (%ld)\n", i + 1,
				 PTR_ERR(agent));
			continue;
		}
		port->ibp.send_agent = agent;
		vhca_traps_again(port);
	}
	return 0;
}

static void remove(struct ib_device *device, void *data)
{
	struct vhca_dev *dev = vhca_dev_of(device);
	unsigned int i;

	for (i = 0; dev && i < dev->nports; i++) {
		struct rvt_ibport *ibp = &dev->port[i].ibp;
		struct ib_mad_agent *agent = ibp->send_agent;

		vhca_traps_stop(&dev->port[i]);
		vhca_vguids_stop(&dev->port[i]);
		ibp->send_agent = NULL;
		if (agent)
			ib_unregister_mad_agent(agent);
		if (ibp->sm_ah)
			rdma_destroy_ah(&ibp->sm_ah->ibah, RDMA_DESTROY_AH_SLEEPABLE);
		ibp->sm_ah = NULL;
	}
}

static struct ib_client client = {
	.name = "vhca",
	.add = add,
	.remove = remove,
};

int vhca_agents_init(void)
{
	return ib_register_client(&client);
}

void vhca_agents_exit(void)
{
	ib_unregister_client(&client);
}
