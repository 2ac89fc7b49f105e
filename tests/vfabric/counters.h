/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a port counts, wider than the PMA shows it. */
#ifndef VF_COUNTERS_H
#define VF_COUNTERS_H

#include <stdint.h>

struct counters {
	uint64_t xmit_bytes, rcv_bytes, xmit_pkts, rcv_pkts;	/* what each packet counts */
	uint64_t xmit_wait;		/* ps */
	uint64_t blocked_since;		/* not yet in it; if the port is blocked */
	/* Unicast packets are all but these; less than none of them if the others alone have been cleared */
	uint64_t xmit_other, rcv_other;
	uint64_t symbol_errors, link_recovers, link_downed;
	uint64_t rcv_errors, rcv_remote_phys, rcv_relay_errors;
	uint64_t xmit_discards, xmit_constraint, rcv_constraint;
	uint64_t local_integrity, buffer_overruns, vl15_dropped;
	uint64_t multi_xmit, multi_rcv;
	uint64_t discard_inactive, discard_mtu, discard_lifetime, discard_hoq;
	uint64_t dlid_mapping, vl_mapping, looping;
};

#endif
