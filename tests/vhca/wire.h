/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The cable between a software HCA and vfabric: one datagram is one message, over a unix datagram
 * socket or UDP on 127.0.0.0/8. Both kernel and user space include this file. All fields are big
 * endian, packed by hand, and the header is the same in both directions and in every message.
 *
 *	HCA					switch (vfabric)
 *	VHCA_HELLO "H1", port, GUID	->
 *				<-	VHCA_WELCOME, link up, credits
 *	VHCA_DATA LRH..ICRC		->
 *				<-	VHCA_DATA LRH..ICRC
 *	VHCA_FLOW (at least every VHCA_KEEPALIVE_MS, and when room was freed)	<->
 *	VHCA_BYE			<->	pulled out
 *
 * Attaching: HELLO names a host of the topology by node id (body: up to 63 bytes, not terminated)
 * and the port of it that is plugged in. The switch port at the other end then belongs to this
 * sender; the modelled host gives up the cable. HELLO is repeated every VHCA_HELLO_MS until WELCOME
 * or REFUSED comes, which says why. A HELLO of another version is REFUSED in that version; other
 * messages of other versions are ignored. A HELLO for a cable that has an owner replaces him if
 * GUID and port are the same (the HCA was restarted), and is REFUSED otherwise. Session: the HCA
 * chooses a number with HELLO, and both put it into every message; others are ignored, so that late
 * datagrams of an earlier life do no harm. After a BYE from vfabric, which it also says when the console
 * puts the cable into another switch, the HCA asks again with HELLO, for the same host.
 *
 * Link state: each message says the sender's view (VHCA_LINK_*). The physical link is up when
 * both say UP; WELCOME and the FLOW messages carry changes (a cable pulled by the console: DOWN,
 * put back: UP). Both ends then go through INIT, ARMED, ACTIVE by the SM's hand as usual; this
 * logical state is not on the wire, it goes by SMPs. Silence for VHCA_DEAD_MS is DOWN.
 * Era: the switch counts how often the link has come up or gone down, the HCA says the last count that it
 * has heard. What an HCA has sent before it heard of a change is not of this link any more, and
 * does not train it.
 *
 * Flow control, as IBA 1.2.1 vol 1, 7.9, but with 32-bit counters. Per data VL, counted from 0 at
 * WELCOME and again whenever the link comes up, modulo 2^32, in blocks of 64 bytes, a packet being
 * (bytes of LRH..ICRC + 63) / 64 blocks:
 *	sent	what the sender has sent on this VL in all, including this message
 *	limit	what it is willing to receive in all
 * Who receives sets its own count of received blocks to `sent` (so lost datagrams cost no
 * credits) and may send as long as its sent count plus the packet's blocks does not go beyond
 * `limit`. VL15 has no flow control: who has no room drops.
 *
 * Functions that share a port (SR-IOV): each has a link of its own, and says in all its messages which one
 * it is; HELLO names the host that is their PF. A QPN's upper bits are its function. Only the PF
 * has an SMA. It says what the port is with VHCA_PORT, whenever it changes and with each keep-alive,
 * and VFs are told the same; a VF's port has its state from there.
 *
 * Sequence: counts the sender's messages of a session; gaps tell about lost datagrams, of which there
 * should be none, and which both ends count. It does not order anything: datagrams of a unix socket and of lo come in order, and reordering by a fault injector is
 * to reach the transport.
 *
 * Body of VHCA_DATA: the packet from LRH to ICRC. There is no VCRC: the wire checks itself. The ICRC
 * is computed as IBA 1.2.1 vol 1, 7.8.1 says; vfabric passes it on as it is, so that a
 * corrupted packet (a fault) arrives with an ICRC that does not fit. Packets that vfabric makes
 * itself (answers of its agents) have a correct one.
 */
#ifndef VHCA_WIRE_H
#define VHCA_WIRE_H

#include <linux/types.h>

#define VHCA_MAGIC		0x76484341u	/* "vHCA" */
#define VHCA_VERSION		2
#define VHCA_VLS		16
#define VHCA_BLOCK		64
#define VHCA_MAX_PACKET		(4096 + 126)
#define VHCA_HELLO_MS		500
#define VHCA_KEEPALIVE_MS	500
#define VHCA_DEAD_MS		3000
#define VHCA_MAX_FUNCTIONS	8	/* a block of GUIDInfo */
#define VHCA_FUNCTION_QPN_BITS	20

enum vhca_type {
	VHCA_HELLO = 1,
	VHCA_WELCOME,
	VHCA_REFUSED,	/* body: why, as text */
	VHCA_DATA,
	VHCA_FLOW,
	VHCA_BYE,
	VHCA_PORT,
};

enum vhca_link {
	VHCA_LINK_DOWN = 0,
	VHCA_LINK_UP = 1,
};

struct vhca_credit {
	__be32 sent;
	__be32 limit;
};

struct vhca_header {
	__be32 magic;
	__u8 version;
	__u8 type;
	__u8 port;		/* of the HCA: 1.. */
	__u8 vl;		/* VHCA_DATA: as in LRH; else 0 */
	__be32 session;
	__be32 sequence;
	__be64 guid;		/* the HCA's node GUID */
	__u8 link;		/* enum vhca_link: the sender's view */
	__u8 width;		/* LinkWidthActive and LinkSpeedActive of the cable, as in */
	__u8 speed;		/* PortInfo; WELCOME and FLOW of the switch say them */
	__u8 ext;
	__be16 length;		/* of the body */
	__u8 function;		/* 0: the HCA itself, or its PF */
	__u8 era;		/* of the link */
	struct vhca_credit credit[VHCA_VLS];	/* by VL; VL15's is not used */
	/* body */
};

/* How many messages are missing before this one, when that one was to come next; that follows it. */
static inline __u32 vhca_wire_gap(__u32 *next, __u32 sequence)
{
	__u32 gap = sequence - *next;

	if (gap >= 1u << 31)	/* an old one */
		return 0;
	*next = sequence + 1;
	return gap;
}

/* Body of VHCA_PORT. */
struct vhca_port_news {
	__u8 info[64];			/* PortInfo (14.2.5.6) */
	__u8 sl2vl[16];
	__be16 pkeys[32];
	__be64 guids[VHCA_MAX_FUNCTIONS];	/* by function */
	__be32 reregistered;		/* how often the SM has asked for it */
	__be32 reserved;
};

#endif /* VHCA_WIRE_H */
