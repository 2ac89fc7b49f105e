// SPDX-License-Identifier: GPL-2.0
/* ib_vhca: software InfiniBand HCAs on a fabric that vfabric models. See README.md. */
#include <linux/module.h>

#include "function.h"

bool vhca_with_apm = true;
module_param_named(apm, vhca_with_apm, bool, 0444);
MODULE_PARM_DESC(apm, "automatic path migration (default: yes)");

bool vhca_with_sqd = true;
module_param_named(sqd, vhca_with_sqd, bool, 0444);
MODULE_PARM_DESC(sqd, "the SQD state of send queues (default: yes)");

int vhca_driver_id = RDMA_DRIVER_QIB;
module_param_named(driver_id, vhca_driver_id, int, 0444);
MODULE_PARM_DESC(driver_id, "which user library programs load, by its number in the uapi (default: ipathverbs)");

static int __init vhca_init(void)
{
	int err;

	err = vhca_agents_init();
	if (err)
		return err;
	vhca_vguids_init();
	err = vhca_hotplug_init();
	if (err) {
		vhca_vguids_exit();
		vhca_agents_exit();
	}
	return err;
}

static void __exit vhca_exit(void)
{
	vhca_hotplug_exit();
	vhca_vguids_exit();
	vhca_agents_exit();
}

module_init(vhca_init);
module_exit(vhca_exit);
MODULE_DESCRIPTION("Software InfiniBand HCA");
MODULE_LICENSE("GPL");
