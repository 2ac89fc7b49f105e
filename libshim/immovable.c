// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>

#include "shim.h"

/* What it is called, one and several, and what its owner can do about it. */
static const struct {
	const char *name, *of, *instead;
} kinds[RP_IMM_N] = {
	[RP_IMM_RAW_QP] = { "raw packet queue pair", "", "destroy it first" },
	[RP_IMM_XRC] = { "XRC object", "", "use RC" },
	[RP_IMM_DM] = { "device memory area", "", "use the host's; UCX: UCX_TLS=rc_verbs,ud_verbs" },
	[RP_IMM_WQ] = { "work queue", "", "receive on queue pairs" },
	[RP_IMM_FLOW] = { "flow rule", "", "destroy it first" },
	[RP_IMM_COUNTERS] = { "counter set", "", "destroy it first" },
	[RP_IMM_CQ_EX] = { "completion queue", " with tag matching, or time stamps of a clock that can not be read",
			   "ask for none" },
	[RP_IMM_DMABUF_MR] = { "dmabuf memory region", "", "use the host's memory" },
	[RP_IMM_IMPORTED] = { "imported object", "", "let each process open the device" },
	[RP_IMM_DIRECT_VERBS] = { "queue pair", " of direct verbs",
				  "use libibverbs; UCX: UCX_TLS=rc_verbs,ud_verbs" },
	[RP_IMM_RDMACM] = { "queue pair", " of librdmacm", "connect by a socket" },
	[RP_IMM_ECE] = { "queue pair", " with options of ECE", "set none" },
};

int rp_immovable_say(enum rp_immovable what, int n, char *text, size_t room)
{
	return snprintf(text, room, "%d %s%s%s (%s)", n, kinds[what].name, n > 1 ? "s" : "",
			kinds[what].of, kinds[what].instead);
}
