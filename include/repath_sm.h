/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the subnet manager's plugin (libosmrepath.so) says to hosts about their paths.
 *
 * Carrier: SubnAdmReport(Notice) to the subscribers of the generic traps 68 (UnPath) and 69
 * (RePath) (IBA 1.2.1 vol 1, 13.4.8.2, 14.2.5.1, 15.3.4). The answer is SubnAdmReportResp with the
 * same transaction ID. The sender repeats a report that is not answered, under a new transaction
 * ID: a repetition is known by @sm_epoch and @number alone. To subscribe: InformInfo with
 * IsGeneric, TrapNumber 68 and another with 69 (or one with 0xffff), and any of: Type 0xffff or 3
 * (Subnet Management), ProducerType 0xffffff or 4 (Class Manager), LIDRangeBegin 0xffff.
 *
 * The standard names what the details of both traps have, not where: a component mask and a path
 * record, and WAIT_FOR_REPATH with UnPath. The mask and that flag are where Wireshark looks for
 * them, and the record is in ClassTrapSpecificData. All else is in what is left of the details.
 * Everything is in network byte order; the LIDs are 0 where the mask does not have them.
 *
 * Which paths a notice is about:
 *
 *	mask 0			all paths of the port that reads it
 *	SLID and DLID		the path between the two; the reader is at SLID
 *	SLID			all paths of that LID of the reader
 *	DLID			all paths of the reader to that LID
 *	DGID			REPATH_SM_MOVED only: all paths of the reader to that GID, and with
 *				@old_dlid all that it has to that LID
 *
 * Other components that the mask has are the path's values: with RePath those that hold from now
 * on, with UnPath only if REPATH_SM_AHEAD is set, and then those that will hold. A component that
 * the mask does not have is unchanged, or unknown where the mask is 0: ask the SA for it.
 */
#ifndef REPATH_SM_H
#define REPATH_SM_H

#include <linux/types.h>

#define REPATH_SM_VERSION	1
#define REPATH_SM_UNPATH	68	/* trap numbers */
#define REPATH_SM_REPATH	69
#define REPATH_SM_TYPE		0x83	/* generic, Subnet Management */
#define REPATH_SM_PRODUCER	4	/* class manager */

/**
 * enum repath_sm_kind - what a notice means: REPATH_SM_KIND of the flags
 * @REPATH_SM_ROUTE: UnPath: the paths are about to break, the switches' tables will change;
 *	RePath: the tables have changed
 * @REPATH_SM_LANE: an exception from the path record: RePath: use this SL until told otherwise
 *	(a flow to a hot spot goes to the slow lane); UnPath: it ends, back to the path record's
 * @REPATH_SM_MOVED: RePath only: the port with the record's DGID is now at the record's DLID: a VM that
 *	has moved, or a port that has got another LID
 * @REPATH_SM_WAY_BACK: RePath only: the path is what it was, and who is at its other end has another way: queue
 *	pairs whose device only migrates make an alternate path ready, which both ends need
 *
 * A receiver that does not know a kind answers the report and does nothing.
 */
enum repath_sm_kind {
	REPATH_SM_ROUTE,
	REPATH_SM_LANE,
	REPATH_SM_MOVED,
	REPATH_SM_WAY_BACK,
};

#define REPATH_SM_WAIT_FOR_REPATH	0x80	/* UnPath: a RePath will follow, wait for it */
#define REPATH_SM_AHEAD			0x40	/* UnPath: the record is what will hold */
#define REPATH_SM_KIND			0x0f	/* mask for enum repath_sm_kind */

/* Components of a PathRecord (IBA 1.2.1 vol 1, 15.2.5.16), those that are used here. */
#define REPATH_SM_MASK_DGID	(1ULL << 2)
#define REPATH_SM_MASK_SGID	(1ULL << 3)
#define REPATH_SM_MASK_DLID	(1ULL << 4)
#define REPATH_SM_MASK_SLID	(1ULL << 5)
#define REPATH_SM_MASK_PKEY	(1ULL << 13)
#define REPATH_SM_MASK_SL	(1ULL << 15)
#define REPATH_SM_MASK_MTU	(1ULL << 17)
#define REPATH_SM_MASK_RATE	(1ULL << 19)
#define REPATH_SM_MASK_LIFE	(1ULL << 21)

/**
 * struct repath_sm_details - DataDetails of both traps, 54 bytes at byte 10 of the Notice
 * @comp_mask: the components that the path record has; 0: any path of the reader, no record
 * @flags: REPATH_SM_WAIT_FOR_REPATH, REPATH_SM_AHEAD, enum repath_sm_kind; the rest is 0
 * @version: REPATH_SM_VERSION; another version is answered and not acted on
 * @old_dlid: REPATH_SM_MOVED: the LID that the port had, and all that was there with it, where nobody
 *	is now: paths to it lead to the record's DLID, by whatever GID or none; 0: not told, or there is
 *	somebody by now, as a repetition may say
 * @sm_epoch: random, new at each start of the plugin; another one: @serial and @number begin anew
 * @serial: of the routing, one more each time that the tables are computed. An UnPath and the
 *	RePath that follows it have the same. Reports are repeated, so they may come late: a notice
 *	of REPATH_SM_ROUTE is out of date for a path of which a later serial was heard; for other
 *	paths it still holds. One of REPATH_SM_MOVED is where any later one was heard. An UnPath is out of date once any RePath of its serial was heard: the
 *	tables have changed.
 * @number: of the notice, from anywhere, one more for each notice to the same subscriber; the
 *	same in a repetition
 * @unused: 0
 */
struct repath_sm_details {
	__be64	comp_mask;
	__u8	flags;
	__u8	version;
	__be16	old_dlid;
	__be32	sm_epoch;
	__be32	serial;
	__be32	number;
	__u8	unused[30];
} __attribute__((packed));

/**
 * struct repath_sm_path - a PathRecord, 64 bytes
 * @service_id: 0
 * @dgid: with REPATH_SM_MASK_DGID
 * @sgid: with REPATH_SM_MASK_SGID
 * @dlid: with REPATH_SM_MASK_DLID
 * @slid: with REPATH_SM_MASK_SLID
 * @hop_flow_raw: raw traffic (bit 31), flow label (bits 27-8), hop limit (bits 7-0): 0
 * @tclass: 0
 * @num_path: reversible (bit 7): set; number of paths: 0
 * @pkey: with REPATH_SM_MASK_PKEY
 * @qos_class_sl: QoS class (bits 15-4): 0; SL (bits 3-0) with REPATH_SM_MASK_SL
 * @mtu: selector (bits 7-6): 2, exactly; enum ib_mtu (bits 5-0) with REPATH_SM_MASK_MTU
 * @rate: selector: 2; enum ib_rate (bits 5-0) with REPATH_SM_MASK_RATE
 * @pkt_life: selector: 2; packet life time (bits 5-0) with REPATH_SM_MASK_LIFE
 * @preference: 0
 * @reserved: 0
 */
struct repath_sm_path {
	__be64	service_id;
	__u8	dgid[16];
	__u8	sgid[16];
	__be16	dlid;
	__be16	slid;
	__be32	hop_flow_raw;
	__u8	tclass;
	__u8	num_path;
	__be16	pkey;
	__be16	qos_class_sl;
	__u8	mtu;
	__u8	rate;
	__u8	pkt_life;
	__u8	preference;
	__u8	reserved[6];
} __attribute__((packed));

#define REPATH_SM_EXACTLY	(2 << 6) /* selector of @mtu, @rate and @pkt_life */

/**
 * struct repath_sm_report - the data of the SA MAD (at its byte 56): a Notice and what follows it
 * @type: REPATH_SM_TYPE
 * @producer: REPATH_SM_PRODUCER, 24 bits
 * @trap: REPATH_SM_UNPATH or REPATH_SM_REPATH
 * @issuer_lid: of the SM
 * @count: notice toggle and count: 0
 * @details: see there
 * @issuer_gid: of the SM
 * @path: the record, if @details.comp_mask is not 0; else zeros
 */
struct repath_sm_report {
	__u8	type;
	__u8	producer[3];
	__be16	trap;
	__be16	issuer_lid;
	__be16	count;
	struct repath_sm_details details;
	__u8	issuer_gid[16];
	struct repath_sm_path path;
} __attribute__((packed));

#endif
