// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "shim.h"

const char *rp_immovable_name(enum rp_immovable what)
{
	static const char *const names[RP_IMM_N] = {
		[RP_IMM_RAW_QP] = "raw packet queue pair",
		[RP_IMM_XRC] = "XRC object",
		[RP_IMM_DM] = "device memory",
		[RP_IMM_WQ] = "work queue",
		[RP_IMM_FLOW] = "flow rule",
		[RP_IMM_COUNTERS] = "counter set",
		[RP_IMM_CQ_EX] = "completion queue with time stamps or offloads",
		[RP_IMM_DMABUF_MR] = "dmabuf memory region",
		[RP_IMM_IMPORTED] = "imported object",
		[RP_IMM_DIRECT_VERBS] = "queue pair of direct verbs",
		[RP_IMM_RDMACM] = "queue pair of librdmacm",
	};

	return what < RP_IMM_N && names[what] ? names[what] : "object";
}
