/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * Generic netlink interface of ib_repath.ko, family "repath".
 *
 * Everybody who can open a netlink socket may read, and sees only devices of
 * the own network namespace and PIDs of the own PID namespace. SUSPEND,
 * RESUME and ABORT need CAP_NET_ADMIN in the user namespace that owns the
 * device's network namespace. REGISTER and what follows it are for the shim:
 * a process speaks for itself only.
 *
 * No handler sleeps. SUSPEND, RESUME and ABORT answer with an operation id
 * at once; progress and the end are events, and OP_GET tells the same.
 *
 * READING (dump, or do where a key is given)
 *   VERSION_GET                  -> VERSION, ABI_VERSION
 *   QP_GET     [DEV_NAME PORT PID QPN DLID DGID QP_STATE]
 *                                -> QP { DEV_INDEX DEV_NAME PORT QPN QP_TYPE QP_STATE PID COMM
 *                                        KERNEL? SHIM? DEST_QPN DLID SLID DGID SGID_INDEX SL
 *                                        PATH_MTU CONN_ID? CONN_STATE? }
 *   PROCESS_GET [DEV_NAME PID]   -> PROCESS { PID COMM SHIM? DEV_INDEX DEV_NAME QP_COUNT
 *                                        CTX_COUNT CONN_COUNT CONN_MOVING }
 *   DEVICE_GET [DEV_NAME]        -> DEVICE { DEV_INDEX DEV_NAME NODE_GUID PORTS LINK_LAYER
 *                                        QP_COUNT CTX_COUNT PROC_COUNT OP_ID? }
 *   OP_GET     [OP_ID]           -> OP (below)
 *   CONN_GET   [PID DEV_NAME]    -> CONN { CONN_ID CONN_STATE DEV_INDEX PORT QPN PEER_ID
 *                                        DEST_QPN DGID MOVING? PID }
 *
 * AN ADMINISTRATOR
 *   SUSPEND  DEV_NAME [TIMEOUT_MS FORCE DRY_RUN]        -> OP_ID
 *   RESUME   OP_ID|OLD_DEV_NAME [DEV_NAME TIMEOUT_MS]   -> OP_ID
 *   ABORT    OP_ID                                      -> OP_ID
 *
 *   OP { OP_ID OP_KIND OP_STATE DEV_NAME STARTED_NS ERRNO? REASON? TIMEOUT_MS
 *        OP_PROC* { PID COMM OP_STAGE ERRNO? REASON? COUNTERS? STAGE_NS* } }
 *
 * THE SHIM (one socket a process; closing it is leaving)
 *   REGISTER ABI_VERSION [COMM]  -> VERSION ABI_VERSION
 *   REPLY    OP_ID OP_STAGE ERRNO [REASON COUNTERS]
 *   PEER_SEND PEER_ID MSG_TYPE MSG_ID CONNS [DEV_INDEX PORT SGID_INDEX BLOB]
 *
 *   Events, unicast to the registered socket:
 *   EV_CHECK   OP_ID DEV_INDEX DEV_NAME TIMEOUT_MS FORCE?
 *   EV_SUSPEND OP_ID DEV_INDEX DEV_NAME TIMEOUT_MS FORCE?
 *   EV_RESUME  OP_ID DEV_INDEX DEV_NAME TIMEOUT_MS     (DEV_* name the new device)
 *   EV_ABORT   OP_ID DEV_INDEX DEV_NAME
 *   EV_PEER_MSG  PEER_ID MSG_TYPE MSG_ID CONNS [DGID DLID BLOB]   (DGID, DLID: the sender's)
 *   EV_PEER_SENT PEER_ID MSG_TYPE MSG_ID ERRNO
 *
 * MULTICAST GROUP "monitor": EV_QP (QP nest and EV_ACTION), EV_PROCESS, EV_DEVICE, EV_OP (OP nest).
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

/* Shim and module must agree on this; a module refuses another one with EPROTO. */
#define REPATH_ABI_VERSION	1

#define REPATH_REASON_MAX	240	/* bytes with the final NUL */
#define REPATH_CONNS_MAX	1024	/* records in one PEER_SEND */
#define REPATH_BLOB_MAX		32768	/* bytes in one PEER_SEND */

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
	REPATH_A_PID,		/* u32: tgid in the reader's PID namespace; in multicasts, the initial one */
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

	__REPATH_A_MAX
};
#define REPATH_A_MAX (__REPATH_A_MAX - 1)

/* What the module knows of the other end of an RC or UC connection. */
enum repath_conn_state {
	REPATH_CONN_NEW,	/* nothing heard yet */
	REPATH_CONN_READY,	/* both ends have the other's token */
	REPATH_CONN_NO_SHIM,	/* the peer's module answered: no shim there */
	REPATH_CONN_NO_ANSWER,	/* no module there, or not reached */
	REPATH_CONN_GONE,	/* the peer said that its end is gone */
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

/* struct repath_conn_rec::flags */
#define REPATH_REC_STUCK	(1u << 0) /* not drained: settle by count and replay */
#define REPATH_REC_RESET	(1u << 1) /* this end has left RTS: reconnect by INFO */
#define REPATH_REC_DEAD		(1u << 2) /* this end is in error or destroyed */
#define REPATH_REC_MTU(flags)	(((flags) >> 8) & 0x7) /* enum ib_mtu that the port carries */
#define REPATH_REC_MTU_SHIFT	8
/* How often the sender has closed this connection's gate, modulo 2^16 (from shim to shim). */
#define REPATH_REC_ROUND(flags)	((flags) >> 16)
#define REPATH_REC_ROUND_SHIFT	16

#endif /* _UAPI_IB_REPATH_H */
