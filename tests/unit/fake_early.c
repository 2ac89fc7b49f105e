// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A library that opens a device when it is loaded, which is before the shim is constructed. */
#include <infiniband/verbs.h>

extern struct ibv_context *early_context;
struct ibv_context *early_context;

static __attribute__((constructor)) void open_early(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list)
		return;
	early_context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
}
