/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * Generic netlink interface of ib_repath.ko, family "repath".
 *
 * Everybody who can open a netlink socket may read, and sees only devices of
 * the own network namespace and PIDs of the own PID namespace. SUSPEND,
 * RESUME, ABORT, CONN_MOVED, PATH_SET, RELAY and DEVICE_SET need CAP_NET_ADMIN in the user namespace that
 * owns the device's network namespace. REGISTER and what follows it are for the shim:
 * a process speaks for itself only.
 *
 * No handler waits for a process or for what another host answers. What is about the subnet manager
 * (PATH_GET, SM_GET, PATH_ASK, SM_SET, RELAY) may wait while the device is asked for a port's state,
 * and a second while the device is taken away. SUSPEND, RESUME and ABORT answer with an operation id
 * at once; progress and the end are events, and OP_GET tells the same.
 *
 * READING (dump, or do where a key is given)
 *   VERSION_GET                  -> VERSION, ABI_VERSION
 *   QP_GET     [DEV_NAME PORT PID QPN DLID DGID QP_TYPE QP_STATE]
 *                                -> QP { DEV_INDEX DEV_NAME PORT QPN QP_TYPE QP_STATE PID COMM
 *                                        KERNEL? SHIM? CREATED_NS? ASKED? DEST_QPN DLID SLID
 *                                        DGID? SGID_INDEX? SL TCLASS? RATE PATH_MTU PKEY_INDEX PKEY?
 *                                        MIG_STATE? ALT_PATH? { PORT DLID DGID? SGID_INDEX? SL
 *                                        RATE PKEY_INDEX PKEY? } CONN_ID? CONN_STATE?
 *                                        MOVE? { MOVE_STATE MOVED_BY? SINCE_NS? COUNT REASON? } }
 *   PROCESS_GET [DEV_NAME PID]   -> PROCESS { PID COMM SHIM? DEV_INDEX DEV_NAME QP_COUNT
 *                                        CTX_COUNT CONN_COUNT CONN_MOVING }
 *   DEVICE_GET [DEV_NAME]        -> DEVICE { DEV_INDEX DEV_NAME NODE_GUID PORTS LINK_LAYER
 *                                        QP_COUNT CTX_COUNT PROC_COUNT OP_ID? REROUTE }
 *   OP_GET     [OP_ID]           -> OP (below)
 *   CONN_GET   [PID DEV_NAME CONN_STATE]
 *                                -> CONN { CONN_ID CONN_STATE DEV_INDEX DEV_NAME PORT QPN PEER_ID
 *                                        DEST_QPN DGID DLID MOVING? PID }
 *   STATS_GET  [DEV_NAME]        -> STATS { DEV_INDEX? DEV_NAME? COUNTS { u64 by enum repath_stat } }
 *                                        one for the module, without DEV_*, to readers in the initial
 *                                        network namespace; then one a device
 *   PATH_GET   [DEV_NAME PORT DLID]
 *                                -> PATH { DEV_INDEX DEV_NAME PORT SLID DLID DGID? SL PATH_MTU?
 *                                        RATE? PKEY? LEARNT_NS PATH_SOURCE UNPATH? RELAYED? }
 *   SM_GET     [DEV_NAME]        -> SM { DEV_INDEX DEV_NAME PORT SM_STATE SM_LID? SL? SLID?
 *                                        SINCE_NS? COUNT }
 *                                        one an InfiniBand port; COUNT: of its paths
 *
 *   LISTEN                               events of the group "monitor" come to this socket by unicast,
 *                                        until it is closed, of processes that its owner sees, by
 *                                        their PIDs in his PID namespace; ENOBUFS as on the group.
 *                                        EUSERS: 64 sockets of a user, with his user namespaces, do
 *                                        so already, or 1024 in all; those of an administrator do
 *                                        not count
 *
 * AN ADMINISTRATOR
 *   SUSPEND  DEV_NAME [TIMEOUT_MS FORCE DRY_RUN]        -> OP_ID
 *   RESUME   OP_ID|OLD_DEV_NAME [DEV_NAME TIMEOUT_MS]   -> OP_ID
 *   ABORT    OP_ID                                      -> OP_ID
 *   CONN_MOVED DEV_NAME DGID|DLID [NEW_DGID NEW_DLID]   -> CONN_COUNT COUNT
 *                                        the peers there have moved, too, to that address: CONN_COUNT
 *                                        connections of DEV that stand still look for them there from now
 *                                        on, and COUNT senders to UD queue pairs are told there
 *   PATH_ASK DEV_NAME [PORT DLID]          ask the subnet manager for one path, or all
 *   SM_SET   DEV_NAME SM_LISTEN            listen to the subnet manager, or do not
 *   ADOPT    [DEV_NAME]          dump                   -> ADOPTION (below), one a device
 *   PATH_SET DEV_NAME PORT DLID [SLID NEW_DLID SL RATE PATH_MTU PKEY SERIAL PATH_WHEN]
 *                                        queue pairs of PORT that send to DLID are moved to that path
 *   PATH_SET DEV_NAME PORT DGID [SL TCLASS RATE PATH_MTU SERIAL]
 *                                        the same on RoCE: those that send to DGID
 *   DEVICE_SET DEV_NAME REROUTE
 *   RELAY    DEV_NAME PORT [NOTICE]        the hypervisor has heard this of the subnet manager for
 *                                        us; without NOTICE: it begins to tell, and what was told
 *                                        before may be missing. ENOTCONN: it has not begun
 *
 *   ADOPTION { DEV_INDEX DEV_NAME QP_COUNT CTX_COUNT ADOPTED_QPS ADOPTED_CTXS CORRECTED SWEPT
 *              MISSING_QPS MISSING_CTXS ERRNO? REASON? }
 *   First comes one with DEV_* alone for each device whose adoption has begun, and when it has
 *   ended the whole.
 *
 *   OP { OP_ID OP_KIND OP_STATE DEV_NAME STARTED_NS UNPLUG? ERRNO? REASON? TIMEOUT_MS
 *        OP_PROC* { PID COMM OP_STAGE ERRNO? REASON? COUNTERS? STAGE_NS* } }
 *
 * THE SHIM (one socket a process; closing it is leaving)
 *   REGISTER ABI_VERSION [COMM]  -> VERSION ABI_VERSION COUNT KNOWS?   (COUNT as in EV_NUMBERS)
 *                                        a module refuses what it does not know; KNOWS tells a newer
 *                                        shim what it has to leave out
 *   REPLY    OP_ID OP_STAGE ERRNO [REASON COUNTERS]
 *   PEER_SEND PEER_ID MSG_TYPE MSG_ID CONNS [DEV_INDEX PORT SGID_INDEX BLOB]
 *   NUMBERS   DEV_INDEX [NUMBERS GIDS]   own queue pairs on DEV that others know by another number;
 *                                        EPERM: one is not its own, or is said to have a number
 *                                        by which another process's queue pair is meant
 *   NUMBER_CHECK DEV_INDEX QPN           EADDRINUSE: others know another queue pair by this number;
 *                                        EBUSY: one of another process that is away
 *   RESOLVE   MSG_ID DEV_INDEX PORT QP_TYPE QPN SRC_QPN [SGID_INDEX DGID DLID SL]
 *                                        where is the queue pair that was at this address?
 *   UNRESOLVE MSG_ID                     a UD address is not used any more
 *   CYCLED    CONN_ID ERRNO [COUNT]      the answer to EV_CYCLE; ECANCELED: no answer: it is on no
 *                                        move, whatever its peer has said up to its round COUNT
 *                                        (if the module has KNOWS_ROUND), or has not answered
 *
 *   Events, unicast to the registered socket:
 *   EV_CHECK   OP_ID DEV_INDEX DEV_NAME TIMEOUT_MS FORCE?
 *   EV_SUSPEND OP_ID DEV_INDEX DEV_NAME TIMEOUT_MS FORCE?
 *   EV_RESUME  OP_ID DEV_INDEX DEV_NAME TIMEOUT_MS     (DEV_* name the new device)
 *   EV_ABORT   OP_ID DEV_INDEX DEV_NAME
 *   EV_PEER_MSG  PEER_ID MSG_TYPE MSG_ID CONNS [DGID DLID BLOB]   (DGID, DLID: the sender's)
 *   EV_PEER_SENT PEER_ID MSG_TYPE MSG_ID ERRNO
 *   EV_RESOLVED  MSG_ID ERRNO [QPN DGID DLID MOVED?]  the answer to RESOLVE; of a UD address again
 *                                        each time it has changed. MOVED: keys that were told
 *                                        before are not the device's
 *   EV_CONN      CONN                    a connection of a process that has moved became READY, or its
 *                                        peer has another PEER_ID; one that is MOVING: its peer is
 *                                        now where it was not looked for
 *   EV_NUMBERS   COUNT                   so many queue pairs of this host are known by other
 *                                        numbers, and of so many other processes, which are away,
 *                                        numbers are kept; when it becomes 0 or stops being 0
 *   EV_CYCLE     CONN_ID DLID [NEW_DLID SL TCLASS RATE PATH_MTU]
 *                                        connect that queue pair anew, together with its peer, by
 *                                        that path: its device can not change it in place
 *   EV_REPATH    DEV_INDEX PORT DLID [SLID DGID NEW_DLID SL TCLASS RATE]
 *                                        address handles of UD to DLID: that path from now on;
 *                                        with DGID those to that GID, whatever DLID they have
 *
 * MULTICAST GROUP "monitor": EV_QP (QP nest and EV_ACTION), EV_PROCESS, EV_DEVICE, EV_PATH, EV_OP
 * (OP nest).
 * MULTICAST GROUP "operation": EV_OP alone, for who follows a move and is not to be woken by each of
 * the thousand queue pairs that it makes.
 * MULTICAST GROUP "notice": EV_NOTICE DEV_INDEX DEV_NAME PORT [NOTICE]: what was believed and not
 * heard before, for RELAY in guests; without NOTICE: the subscription is new, some may be missing.
 * These are one message for all, in whatever PID namespace, and tell no PID, COMM or REASON: LISTEN does.
 * A listener that gets ENOBUFS has lost events and dumps again.
 *
 * The order of enumerators never changes once released; new ones are added at the end.
 */
#ifndef _UAPI_IB_REPATH_H
#define _UAPI_IB_REPATH_H

#include <linux/types.h>

#define REPATH_GENL_NAME	"repath"
#define REPATH_GENL_VERSION	1
#define REPATH_MCGRP_MONITOR	"monitor"
#define REPATH_MCGRP_OPERATION	"operation"
#define REPATH_MCGRP_NOTICE	"notice"

/* Shim and module must agree on this; a module refuses another one with EPROTO. */
#define REPATH_ABI_VERSION	1

#define REPATH_REASON_MAX	240	/* bytes with the final NUL */
#define REPATH_CONNS_MAX	1024	/* records in one PEER_SEND */
#define REPATH_BLOB_MAX		32768	/* bytes in one PEER_SEND */
#define REPATH_NUMBERS_MAX	4096	/* struct repath_number in one NUMBERS */
#define REPATH_GIDS_MAX		512	/* struct repath_gid_change in one NUMBERS */
#define REPATH_RESOLVES_MAX	16384	/* UD addresses of one process that are kept resolved */
#define REPATH_NOTICE_SIZE	200	/* bytes of NOTICE: the data of a MAD to the SA */

enum repath_cmd {
	REPATH_CMD_UNSPEC,
	REPATH_CMD_VERSION_GET,
	REPATH_CMD_QP_GET,
	REPATH_CMD_PROCESS_GET,
	REPATH_CMD_DEVICE_GET,
	REPATH_CMD_OP_GET,
	REPATH_CMD_CONN_GET,
	REPATH_CMD_SUSPEND,
	REPATH_CMD_RESUME,
	REPATH_CMD_ABORT,
	REPATH_CMD_REGISTER,
	REPATH_CMD_REPLY,
	REPATH_CMD_PEER_SEND,

	REPATH_CMD_EV_CHECK,
	REPATH_CMD_EV_SUSPEND,
	REPATH_CMD_EV_RESUME,
	REPATH_CMD_EV_ABORT,
	REPATH_CMD_EV_PEER_MSG,
	REPATH_CMD_EV_PEER_SENT,

	REPATH_CMD_EV_QP,
	REPATH_CMD_EV_PROCESS,
	REPATH_CMD_EV_DEVICE,
	REPATH_CMD_EV_OP,

	REPATH_CMD_ADOPT,
	REPATH_CMD_STATS_GET,

	REPATH_CMD_NUMBERS,
	REPATH_CMD_NUMBER_CHECK,
	REPATH_CMD_RESOLVE,
	REPATH_CMD_UNRESOLVE,
	REPATH_CMD_EV_RESOLVED,
	REPATH_CMD_EV_CONN,
	REPATH_CMD_EV_NUMBERS,

	REPATH_CMD_PATH_SET,
	REPATH_CMD_DEVICE_SET,

	REPATH_CMD_PATH_GET,
	REPATH_CMD_SM_GET,
	REPATH_CMD_PATH_ASK,
	REPATH_CMD_SM_SET,
	REPATH_CMD_EV_PATH,

	REPATH_CMD_RELAY,
	REPATH_CMD_EV_NOTICE,
	REPATH_CMD_EV_CYCLE,
	REPATH_CMD_EV_REPATH,
	REPATH_CMD_CYCLED,

	REPATH_CMD_LISTEN,
	REPATH_CMD_CONN_MOVED,

	__REPATH_CMD_MAX
};
#define REPATH_CMD_MAX (__REPATH_CMD_MAX - 1)

enum repath_attr {
	REPATH_A_UNSPEC,
	REPATH_A_PAD,
	REPATH_A_VERSION,	/* string: the module's version */
	REPATH_A_ABI_VERSION,	/* u32 */

	REPATH_A_QP,		/* nest */
	REPATH_A_PROCESS,	/* nest */
	REPATH_A_DEVICE,	/* nest */
	REPATH_A_CONN,		/* nest */
	REPATH_A_OP,		/* nest */
	REPATH_A_OP_PROC,	/* nest, repeated */

	REPATH_A_DEV_INDEX,	/* u32: ib_device::index */
	REPATH_A_DEV_NAME,	/* string, at most 63 bytes: "rxe0" */
	REPATH_A_OLD_DEV_NAME,	/* string: the name that was suspended */
	REPATH_A_PORT,		/* u32, from 1 */
	REPATH_A_PID,		/* u32: tgid in the reader's PID namespace; in multicasts, see there */
	REPATH_A_COMM,		/* string */
	REPATH_A_KERNEL,	/* flag: the kernel's own queue pair */
	REPATH_A_SHIM,		/* flag: the process has registered */
	REPATH_A_QPN,		/* u32 */
	REPATH_A_QP_TYPE,	/* u8: enum ib_qp_type */
	REPATH_A_QP_STATE,	/* u8: enum ib_qp_state */
	REPATH_A_DEST_QPN,	/* u32 */
	REPATH_A_DLID,		/* u32; 0 on RoCE */
	REPATH_A_SLID,		/* u32; 0 on RoCE */
	REPATH_A_DGID,		/* 16 bytes, network order */
	REPATH_A_SGID_INDEX,	/* u32 */
	REPATH_A_SL,		/* u8 */
	REPATH_A_PATH_MTU,	/* u8: enum ib_mtu */

	REPATH_A_NODE_GUID,	/* u64, as read by a person (host order) */
	REPATH_A_PORTS,		/* u32 */
	REPATH_A_LINK_LAYER,	/* u8: enum rdma_link_layer of port 1 */
	REPATH_A_QP_COUNT,	/* u32 */
	REPATH_A_CTX_COUNT,	/* u32: open user contexts */
	REPATH_A_PROC_COUNT,	/* u32 */
	REPATH_A_CONN_COUNT,	/* u32 */
	REPATH_A_CONN_MOVING,	/* u32: connections that are suspended */

	REPATH_A_CONN_ID,	/* u32 */
	REPATH_A_CONN_STATE,	/* u8: enum repath_conn_state */
	REPATH_A_PEER_ID,	/* u32: the remote process, as this module numbers it */
	REPATH_A_MOVING,	/* flag */

	REPATH_A_OP_ID,		/* u32 */
	REPATH_A_OP_KIND,	/* u8: enum repath_op_kind */
	REPATH_A_OP_STATE,	/* u8: enum repath_op_state */
	REPATH_A_OP_STAGE,	/* u8: enum repath_stage */
	REPATH_A_STAGE_NS,	/* nest, repeated: OP_STAGE and NS */
	REPATH_A_NS,		/* u64: nanoseconds since the operation's start */
	REPATH_A_STARTED_NS,	/* u64: CLOCK_BOOTTIME */
	REPATH_A_TIMEOUT_MS,	/* u32 */
	REPATH_A_FORCE,		/* flag */
	REPATH_A_DRY_RUN,	/* flag: check only */
	REPATH_A_ERRNO,		/* u32: positive errno; 0 is success */
	REPATH_A_REASON,	/* string: for a person */
	REPATH_A_COUNTERS,	/* binary: struct repath_counters */

	REPATH_A_MSG_TYPE,	/* u8: enum repath_msg of repath_peer.h */
	REPATH_A_MSG_ID,	/* u64: the sender's number for EV_PEER_SENT */
	REPATH_A_CONNS,		/* binary: array of struct repath_conn_rec */
	REPATH_A_BLOB,		/* binary: from shim to shim, not looked into */
	REPATH_A_EV_ACTION,	/* u8: enum repath_ev_action */

	REPATH_A_PKEY_INDEX,	/* u32 */
	REPATH_A_PKEY,		/* u32: the P_Key at that index now; absent when the port does not say */
	REPATH_A_RATE,		/* u8: static rate, enum ib_rate; 0: the port's own */
	REPATH_A_MIG_STATE,	/* u8: enum ib_mig_state; absent without path migration */
	REPATH_A_ALT_PATH,	/* nest */
	REPATH_A_CREATED_NS,	/* u64: CLOCK_BOOTTIME; absent when adopted: nobody knows */
	REPATH_A_ASKED,		/* flag: the device was asked for the state for this answer */

	REPATH_A_ADOPTION,	/* nest */
	REPATH_A_ADOPTED_QPS,	/* u32: were there and not tracked, and are now */
	REPATH_A_ADOPTED_CTXS,	/* u32 */
	REPATH_A_CORRECTED,	/* u32: queue pairs whose state or path was another than tracked */
	REPATH_A_SWEPT,		/* u32: were tracked and not there any more */
	REPATH_A_MISSING_QPS,	/* u32: ib_core counts them, and they could not be taken */
	REPATH_A_MISSING_CTXS,	/* u32 */

	REPATH_A_STATS,		/* nest */
	REPATH_A_COUNTS,	/* nest: attributes by enum repath_stat, each a u64 */
	REPATH_A_UNPLUG,	/* flag: begun because the device was being removed, by nobody's request */

	REPATH_A_NUMBERS,	/* binary: array of struct repath_number */
	REPATH_A_GIDS,		/* binary: array of struct repath_gid_change */
	REPATH_A_SRC_QPN,	/* u32: the asker's own queue pair, 0: a UD address of any of them */
	REPATH_A_MOVED,		/* flag: the queue pair's process has moved */
	REPATH_A_COUNT,		/* u32 */

	REPATH_A_MOVE,		/* nest */
	REPATH_A_MOVE_STATE,	/* u8: enum repath_move_state */
	REPATH_A_MOVED_BY,	/* u8: enum repath_moved_by; absent: never moved */
	REPATH_A_SINCE_NS,	/* u64: CLOCK_BOOTTIME, when it was moved onto its path, or subscribed */
	REPATH_A_NEW_DLID,	/* u32 */
	REPATH_A_SERIAL,	/* u32: of the routing that a path belongs to */
	REPATH_A_PATH_WHEN,	/* u8: enum repath_path_when; absent: NOW */
	REPATH_A_REROUTE,	/* u8: 1: queue pairs of the device are moved to new paths; 0: not */

	REPATH_A_PATH,		/* nest */
	REPATH_A_SM,		/* nest */
	REPATH_A_LEARNT_NS,	/* u64: CLOCK_BOOTTIME */
	REPATH_A_PATH_SOURCE,	/* u8: enum repath_path_source */
	REPATH_A_UNPATH,	/* flag: the path is about to break */
	REPATH_A_SM_STATE,	/* u8: enum repath_sm_state */
	REPATH_A_SM_LID,	/* u32 */
	REPATH_A_SM_LISTEN,	/* u8: 1: the subnet manager is listened to; 0: not */
	REPATH_A_NOTICE,	/* binary, REPATH_NOTICE_SIZE: struct repath_sm_report of repath_sm.h */
	REPATH_A_RELAYED,	/* flag: the hypervisor has told it */
	REPATH_A_KNOWS,		/* u32: bits of enum repath_knows; absent: none */
	REPATH_A_NEW_DGID,	/* 16 bytes, network order */
	REPATH_A_TCLASS,	/* u8: traffic class of the GRH; on RoCE the byte that IP has in its place */

	__REPATH_A_MAX
};
#define REPATH_A_MAX (__REPATH_A_MAX - 1)

/* What shims may say to this module that others of the same ABI version refuse. */
enum repath_knows {
	REPATH_KNOWS_ROUND	= 1 << 0,	/* COUNT in CYCLED */
};

/* What the module knows of the other end of an RC or UC connection. */
enum repath_conn_state {
	REPATH_CONN_NEW,	/* nothing heard yet */
	REPATH_CONN_READY,	/* both ends have the other's token */
	REPATH_CONN_NO_SHIM,	/* the peer's module answered: no shim there */
	REPATH_CONN_NO_ANSWER,	/* no module there, or not reached */
	REPATH_CONN_GONE,	/* the peer said that its end is gone */
	REPATH_CONN_NO_PEER,	/* the peer's module answered: it has no such queue pair */
};

enum repath_op_kind {
	REPATH_OP_SUSPEND,
	REPATH_OP_RESUME,
};

enum repath_op_state {
	REPATH_OP_CHECKING,	/* everything is asked, nothing released */
	REPATH_OP_SUSPENDING,	/* gates closed; draining, releasing */
	REPATH_OP_SUSPENDED,	/* no context is left on the device */
	REPATH_OP_RESUMING,
	REPATH_OP_RESUMED,	/* final */
	REPATH_OP_ABORTING,	/* going back to the old device */
	REPATH_OP_FAILED,	/* final: rolled back, REASON says why */
	REPATH_OP_PARKED,	/* a resume failed: the processes wait, resume again */
	REPATH_OP_CHECKED,	/* final: a dry run that found nothing against it */
};

/* Where one process is inside an operation; each is reported with its time. */
enum repath_stage {
	REPATH_STAGE_NONE,	/* nothing yet; in STAGE_NS: EV_RESUME was sent */
	REPATH_STAGE_CHECK,	/* EV_CHECK answered */
	REPATH_STAGE_GATE,	/* gates closed here and at the peers */
	REPATH_STAGE_DRAIN,	/* send queues empty at both ends */
	REPATH_STAGE_RELEASE,	/* device closed */
	REPATH_STAGE_OPEN,	/* new device open */
	REPATH_STAGE_RECREATE,	/* all objects recreated */
	REPATH_STAGE_CONNECT,	/* peers have the new addresses, queue pairs in RTS */
	REPATH_STAGE_REPLAY,	/* kept work posted, gates open: done */
	REPATH_STAGE_ABORT,	/* back to normal on the old device: done */
};

enum repath_ev_action {
	REPATH_EV_NEW,
	REPATH_EV_CHANGE,
	REPATH_EV_DEL,
};

/* What has become of a queue pair whose path has changed. */
enum repath_move_state {
	REPATH_MOVE_NONE,	/* given up before anything had happened: its owner has done something */
	REPATH_MOVE_MOVING,	/* on its way */
	REPATH_MOVE_WAITING,	/* does not send until the new path is told */
	REPATH_MOVE_PREPARED,	/* the new path is loaded as the alternate one */
	REPATH_MOVE_MOVED,
	REPATH_MOVE_LOST,	/* was in error before */
	REPATH_MOVE_NO_WAY,	/* neither the device nor the shim can: left alone */
	REPATH_MOVE_FAILED,	/* tried, and given up */
};

enum repath_path_when {
	REPATH_PATH_NOW,
	REPATH_PATH_LATER,	/* it is about to be valid: load it as the alternate one */
	/* It is not known yet: do not send to DLID until it is told, or for a while. No SLID, nothing of the new one. */
	REPATH_PATH_HOLD,
};

enum repath_moved_by {
	REPATH_BY_NONE,
	REPATH_BY_APM,		/* alternate path and migration */
	REPATH_BY_SQD,		/* send queue drained, new address */
	REPATH_BY_CYCLE,	/* by the shims at both ends */
};

/* How a path was learnt. */
enum repath_path_source {
	REPATH_PATH_QUERY,	/* a path record that was asked for */
	REPATH_PATH_REPORT,	/* told by the subnet manager unasked */
	REPATH_PATH_LANE,	/* the same, as an exception from the path record */
};

/* What there is between a port and its subnet manager. */
enum repath_sm_state {
	REPATH_SM_OFF,		/* switched off */
	REPATH_SM_DOWN,		/* the port is not active, or has no subnet manager */
	REPATH_SM_ASKING,	/* for the subscription */
	REPATH_SM_WAITING,	/* to ask again: there was no answer, or a refusal */
	REPATH_SM_SUBSCRIBED,
	REPATH_SM_RELAYED,	/* the hypervisor is subscribed, and tells what it hears */
};

/*
 * Counters, of the module and of each device. They only grow; a device's end with the device, the
 * module's go on.
 */
enum repath_stat {
	REPATH_STAT_UNSPEC,
	REPATH_STAT_PAD,

	/* Tracking. */
	REPATH_STAT_QP_NEW,		/* queue pairs that a probe has seen being made */
	REPATH_STAT_QP_MODIFY,		/* their modifications */
	REPATH_STAT_QP_DEL,		/* queue pairs that have ended */
	REPATH_STAT_CTX_NEW,		/* user contexts that a probe has seen being opened */
	REPATH_STAT_CTX_DEL,		/* user contexts that have ended */
	REPATH_STAT_QP_ADOPTED,		/* queue pairs that no probe had seen */
	REPATH_STAT_CTX_ADOPTED,	/* contexts that no probe had seen */
	REPATH_STAT_CORRECTED,		/* the device said another state or path than was tracked */
	REPATH_STAT_SWEPT,		/* objects whose end no probe had seen */
	REPATH_STAT_RESCANS,		/* rounds of adoption after the first */
	REPATH_STAT_PROBE_MISSED,	/* probes that the kernel did not run; module only */
	REPATH_STAT_PROBE_NO_MEMORY,	/* objects that a probe could not allocate */

	/* Connections. */
	REPATH_STAT_CONN_NEW,
	REPATH_STAT_CONN_READY,		/* both ends have the other's token */
	REPATH_STAT_CONN_LIMIT,		/* not made: the process has too many without a queue pair */
	REPATH_STAT_LEASE_EXPIRED,	/* peers that did not come back */

	/* Messages sent, and how they ended. */
	REPATH_STAT_TX_MSG,		/* handed to the carrier */
	REPATH_STAT_TX_LOCAL,		/* to a process of this host */
	REPATH_STAT_TX_FRAG,		/* requests of the CM, without its repetitions */
	REPATH_STAT_TX_HELLO_AGAIN,	/* HELLOs repeated because the peer was busy */
	REPATH_STAT_TX_OK,
	REPATH_STAT_TX_PENDING,		/* answered so by the other module: enum repath_peer_status */
	REPATH_STAT_TX_NO_SHIM,
	REPATH_STAT_TX_NO_QP,
	REPATH_STAT_TX_BAD_TOKEN,
	REPATH_STAT_TX_BUSY,
	REPATH_STAT_TX_VERSION,
	REPATH_STAT_TX_MALFORMED,
	REPATH_STAT_TX_TIMEOUT,		/* nobody answered, after all repetitions */
	REPATH_STAT_TX_UNREACHABLE,	/* no way there, or the device could not send */
	REPATH_STAT_TX_NO_MODULE,	/* a host that has no ib_repath answered */
	REPATH_STAT_TX_ERROR,		/* no memory, device or connection going away, nonsense for an answer */

	/* Messages received, and what was answered. */
	REPATH_STAT_RX_MSG,		/* whole ones */
	REPATH_STAT_RX_FRAG,
	REPATH_STAT_RX_FRAG_AGAIN,	/* had come before: the sender did not get the answer in time */
	REPATH_STAT_RX_OK,
	REPATH_STAT_RX_PENDING,
	REPATH_STAT_RX_NO_SHIM,
	REPATH_STAT_RX_NO_QP,
	REPATH_STAT_RX_BAD_TOKEN,
	REPATH_STAT_RX_BUSY,
	REPATH_STAT_RX_VERSION,
	REPATH_STAT_RX_MALFORMED,

	/* Operations, of the device that they began on. */
	REPATH_STAT_OP_START,		/* suspends asked for, dry runs too */
	REPATH_STAT_OP_SUSPENDED,	/* nothing is left on the device */
	REPATH_STAT_OP_REFUSED,		/* failed before anything was touched */
	REPATH_STAT_OP_ROLLED_BACK,	/* failed, and everything is as before */
	REPATH_STAT_OP_RESUME,		/* resumes asked for */
	REPATH_STAT_OP_RESUMED,
	REPATH_STAT_OP_PARKED,		/* processes were left waiting */
	REPATH_STAT_OP_ABORT,		/* asked for by an administrator */
	REPATH_STAT_OP_KILLED,		/* processes killed by FORCE */
	REPATH_STAT_UNPLUG,		/* devices removed without a suspend, in use */
	REPATH_STAT_UNPLUG_LOST,	/* of these: given up, the processes have lost the device */

	/* Queue pairs whose path has changed. */
	REPATH_STAT_UNPATH,		/* paths that were taken away */
	REPATH_STAT_REPATH,		/* new paths */
	REPATH_STAT_MOVE,		/* queue pairs that were to be moved */
	REPATH_STAT_MOVED_APM,
	REPATH_STAT_MOVED_SQD,
	REPATH_STAT_MOVE_AGAIN,		/* tried again, or by another way */
	REPATH_STAT_MOVE_LOST,		/* in error before */
	REPATH_STAT_MOVE_NO_WAY,	/* neither the device nor the shim can */
	REPATH_STAT_MOVE_FAILED,

	/* The subnet manager. */
	REPATH_STAT_SM_SUBSCRIBED,	/* subscriptions made, or made again */
	REPATH_STAT_SM_LOST,		/* subscriptions that were not granted, or not answered */
	REPATH_STAT_NOTICE_RX,		/* Reports answered */
	REPATH_STAT_NOTICE_UNPATH,	/* of these: paths that break */
	REPATH_STAT_NOTICE_REPATH,	/* of these: paths that are new */
	REPATH_STAT_NOTICE_AGAIN,	/* of these: heard before */
	REPATH_STAT_NOTICE_LATE,	/* of these: of an older routing than the last */
	REPATH_STAT_NOTICE_MALFORMED,	/* said nothing that can be true */
	REPATH_STAT_NOTICE_FORGED,	/* Reports and answers of somebody else: dropped */
	REPATH_STAT_NOTICE_DROPPED,	/* too many at once: not answered, so they are repeated */
	REPATH_STAT_SA_QUERY,		/* questions for paths */
	REPATH_STAT_SA_QUERY_FAILED,	/* without an answer of use */
	REPATH_STAT_PATH_LEARNT,	/* paths that were new or have changed */
	REPATH_STAT_PATH_NO_ROOM,	/* paths that were not kept */
	REPATH_STAT_PATH_GIVEN,		/* paths that queue pairs were to be moved to */
	REPATH_STAT_PATH_AMBIGUOUS,	/* a GID has moved, and a queue pair to its LID tells no GID */
	REPATH_STAT_PATH_KERNEL_TOLD,	/* events to IPoIB, which caches paths */
	REPATH_STAT_NOTICE_RELAYED,	/* notices that the hypervisor has told */

	REPATH_STAT_MOVED_CYCLE,	/* queue pairs whose path has changed: by the shims */
	REPATH_STAT_PATH_SHIM_TOLD,	/* shims that were told of a path, for address handles */
	REPATH_STAT_PATH_SHIM_MISSED,	/* ... that were not, as they have not read for too long */

	__REPATH_STAT_MAX
};
#define REPATH_STAT_MAX (__REPATH_STAT_MAX - 1)

/**
 * struct repath_counters - what a shim found when it closed the gate
 * @qps: queue pairs moved
 * @send_inflight: send requests on real queues when the gate closed, all queue pairs
 * @recv_posted: receives posted and not consumed
 * @drained_cqes: completions taken into the software queues
 * @replayed_sends: send requests posted after the move
 * @replayed_recvs: receives posted again
 * @settled: requests settled by the receiver's consumed count
 * @mrs: memory regions
 * @bytes: bytes registered
 */
struct repath_counters {
	__u32 qps;
	__u32 send_inflight;
	__u32 recv_posted;
	__u32 drained_cqes;
	__u32 replayed_sends;
	__u32 replayed_recvs;
	__u32 settled;
	__u32 mrs;
	__u64 bytes;
};

/**
 * struct repath_conn_rec - one connection in PEER_SEND and EV_PEER_MSG
 * @conn_id: the local number of the connection (each side sees its own)
 * @qpn: current QPN of the sender's end
 * @psn: first PSN that the sender will send (REPATH_MSG_INFO)
 * @flags: REPATH_REC_*
 * @count: messages that consumed a receive at the sender's end since the connection was made
 */
struct repath_conn_rec {
	__u32 conn_id;
	__u32 qpn;
	__u32 psn;
	__u32 flags;
	__u64 count;
};

/**
 * struct repath_number - a queue pair that was made anew
 * @qpn: its number now
 * @known_as: the number that its application has, and has told others
 */
struct repath_number {
	__u32 qpn;
	__u32 known_as;
};

/**
 * struct repath_gid_change - what has become of a GID that a process had
 * @old: before the move
 * @now: on the new device; all zero: nothing has taken its place
 * @port: of the new device
 * @lid: of that port now; 0 on RoCE
 */
struct repath_gid_change {
	__u8 old[16];
	__u8 now[16];
	__u32 port;
	__u32 lid;
};

/* struct repath_conn_rec::flags */
#define REPATH_REC_STUCK	(1u << 0) /* not drained: settle by count and replay */
#define REPATH_REC_RESET	(1u << 1) /* this end has left RTS: reconnect by INFO */
#define REPATH_REC_DEAD		(1u << 2) /* this end is in error or destroyed */
#define REPATH_REC_MOVER	(1u << 3) /* this end leaves its device: not to be reached till its INFO */
#define REPATH_REC_CONNECTED	(1u << 4) /* INFO: and CONNECTED */
#define REPATH_REC_STAYS	(1u << 5) /* READY: QPN, PSN, MTU are those that INFO will have */
#define REPATH_REC_MTU(flags)	(((flags) >> 8) & 0x7) /* enum ib_mtu that the port carries */
#define REPATH_REC_MTU_SHIFT	8
/* INFO with CONNECTED: the low bits of the PSN of the INFO that the sender is connected by. */
#define REPATH_REC_ECHO(flags)	(((flags) >> 11) & 0x1f)
#define REPATH_REC_ECHO_SHIFT	11
/* How often the sender has closed this connection's gate, modulo 2^16 (from shim to shim). */
#define REPATH_REC_ROUND(flags)	((flags) >> 16)
#define REPATH_REC_ROUND_SHIFT	16

#endif /* _UAPI_IB_REPATH_H */
