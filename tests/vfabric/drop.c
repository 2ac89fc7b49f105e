// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets that end here: why, and which counter of the standard says so. */
#include "fabric.h"
#include "traffic.h"

const char *const drop_name[NDROPS] = {
	[DROP_LFT] = "no_route", [DROP_VL] = "vl_mapping", [DROP_LOOP] = "looping",
	[DROP_INACTIVE] = "inactive_port", [DROP_NOT_READY] = "inactive_inbound",
	[DROP_MTU] = "neighbor_mtu",
	[DROP_LIFETIME] = "switch_lifetime", [DROP_HOQ] = "hoq_lifetime",
	[DROP_STALL] = "vl_stalled", [DROP_PKEY_IN] = "pkey_inbound",
	[DROP_PKEY_OUT] = "pkey_outbound", [DROP_LINK] = "link_went_down",
	[DROP_CORRUPT] = "corrupt", [DROP_LOST] = "lost_on_wire", [DROP_NOT_MINE] = "not_my_lid",
	[DROP_BY_HAND] = "by_hand", [DROP_RAW] = "raw",
	[DROP_VF_QP0] = "vf_qp0", [DROP_UNREAD] = "unread_by_hca",
	[DROP_DATAGRAM] = "datagrams_from_hca",
};

/* IBA 1.2.1 vol 1, 16.1.3.5 and 16.1.4: which counter of the port a discard belongs to. */
void relay_drop(struct fabric *f, uint32_t port, uint32_t packet, enum drop why)
{
	struct counters *c = &f->ports[port].counters;

	f->drops[why]++;
	switch (why) {
	case DROP_LFT:
		c->rcv_relay_errors++;
		c->dlid_mapping++;
		break;
	case DROP_VL:
		/* A host relays nothing: what it has no lane for it would have sent. */
		if (f->ports[port].is_switch) {
			c->rcv_relay_errors++;
			c->vl_mapping++;
		} else {
			c->xmit_discards++;
		}
		break;
	case DROP_LOOP:
		c->rcv_relay_errors++;
		c->looping++;
		break;
	case DROP_INACTIVE:
		c->xmit_discards++;
		c->discard_inactive++;
		break;
	case DROP_MTU:
		c->xmit_discards++;
		c->discard_mtu++;
		break;
	case DROP_LIFETIME:
		c->xmit_discards++;
		c->discard_lifetime++;
		break;
	case DROP_HOQ:
	case DROP_STALL:
		c->xmit_discards++;
		c->discard_hoq++;
		break;
	case DROP_PKEY_IN:
		c->rcv_constraint++;
		break;
	case DROP_PKEY_OUT:
		c->xmit_constraint++;
		break;
	case DROP_CORRUPT:
		c->rcv_errors++;
		c->symbol_errors++;
		break;
	default:	/* such as DROP_NOT_READY: to come too early is no error and is not outbound */
		break;
	}
	if (f->packets[packet].flow != NONE)
		flow_lost(f, packet);
	packet_put(f, packet);
}
