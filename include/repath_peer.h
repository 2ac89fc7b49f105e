/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The peer channel: what two ib_repath modules say to each other.
 *
 * Carrier: InfiniBand CM service ID resolution (IBA 1.2.1 vol 1, 12.7.2 SIDR_REQ, SIDR_REP), one
 * fragment in the private data of a request, its answer in the private data of the reply. The
 * CM repeats a request that is not answered; a fragment may therefore come twice and is
 * answered the same both times. Everything is in network byte order.
 *
 * Identity. QP1 proves nothing about a sender, so a token of 64 random bits is made for each end
 * of a connection, and is only ever sent to the destination that the queue pair itself is
 * connected to. A message about a connection is acted on only if it carries the receiver's own
 * token and the sender's. See docs/protocol.md.
 */
#ifndef REPATH_PEER_H
#define REPATH_PEER_H

#include <linux/types.h>

/* IB_CM_... service ID with the locally administered prefix 0x10 (IBA A3.2.3.3): "repath" + version. */
#define REPATH_SERVICE_ID	0x1072657061746801ULL
#define REPATH_PEER_VERSION	2

#define REPATH_FRAG_DATA	192	/* bytes of a message in one SIDR_REQ (216 - header) */
#define REPATH_WIRE_MAX		131072	/* bytes of one message at most */

/**
 * enum repath_msg - message types, module to module
 * @REPATH_MSG_NONE: no message
 * @REPATH_MSG_HELLO: module's own: "my QP is connected to your QP; here is my token"
 * @REPATH_MSG_PREPARE: may these connections be moved? Nothing changes.
 * @REPATH_MSG_PREPARED: the answer; blob empty: yes; else the reason for a person
 * @REPATH_MSG_GATE: my gate is closed and my end accepts the peer's marker; close yours
 * @REPATH_MSG_DRAINED: my send queue is empty, or stuck behind missing receives
 * @REPATH_MSG_READY: nothing more will be sent from here; @count is final
 * @REPATH_MSG_INFO: my end's current QPN, PSN, GID, LID; blob: key table
 * @REPATH_MSG_CONNECTED: my queue pair is in RTS with your INFO, receives are posted
 * @REPATH_MSG_ABORT: the move is given up; blob empty
 * @REPATH_MSG_ABORTED: the answer; REPATH_REC_RESET where this end must be reconnected by INFO
 * @REPATH_MSG_KEYS: memory registered after a move; blob: key table
 * @REPATH_MSG_KEYS_ACK: the answer
 * @REPATH_MSG_GONE: my end does not exist any more; from the shim, or from the module when
 *	the process died while its connections were suspended
 * @REPATH_MSG_RESOLVE: module's own: "which queue pair is known by this number?", answered in the
 *	reply
 * @REPATH_MSG_MOVED: module's own: "the UD queue pair that you have asked for is there now"
 * @__REPATH_MSG_MAX: one more than the last
 */
enum repath_msg {
	REPATH_MSG_NONE,
	REPATH_MSG_HELLO,
	REPATH_MSG_PREPARE,
	REPATH_MSG_PREPARED,
	REPATH_MSG_GATE,
	REPATH_MSG_DRAINED,
	REPATH_MSG_READY,
	REPATH_MSG_INFO,
	REPATH_MSG_CONNECTED,
	REPATH_MSG_ABORT,
	REPATH_MSG_ABORTED,
	REPATH_MSG_KEYS,
	REPATH_MSG_KEYS_ACK,
	REPATH_MSG_GONE,
	REPATH_MSG_RESOLVE,
	REPATH_MSG_MOVED,
	__REPATH_MSG_MAX
};

/**
 * struct repath_frag - private data of a SIDR_REQ
 * @version: REPATH_PEER_VERSION
 * @type: enum repath_msg of the whole message
 * @reserved: zero
 * @msg_id: the sender's number of the message, random start, the same in all fragments
 * @total: bytes of the whole message
 * @offset: of this fragment, a multiple of REPATH_FRAG_DATA
 * @data: min(REPATH_FRAG_DATA, total - offset) bytes
 */
struct repath_frag {
	__u8	version;
	__u8	type;
	__be16	reserved;
	__be32	total;
	__be64	msg_id;
	__be32	offset;
	__u8	data[REPATH_FRAG_DATA];
} __attribute__((packed));

/**
 * struct repath_frag_reply - private data of a SIDR_REP
 * @version: REPATH_PEER_VERSION of the answerer
 * @status: enum repath_peer_status
 * @reserved: 0
 * @msg_id: of the message that the fragment belongs to
 * @offset: of the fragment in it
 */
struct repath_frag_reply {
	__u8	version;
	__u8	status;
	__be16	reserved;
	__be64	msg_id;
	__be32	offset;
} __attribute__((packed));

enum repath_peer_status {
	REPATH_PEER_OK,
	REPATH_PEER_PENDING,	/* HELLO: no queue pair is connected to yours yet; kept */
	REPATH_PEER_NO_SHIM,	/* HELLO: the queue pair's process has no shim */
	REPATH_PEER_NO_QP,	/* no such queue pair */
	REPATH_PEER_BAD_TOKEN,
	/* Send again later: out of memory, over a limit, or (RESOLVE) processes are between two devices. */
	REPATH_PEER_BUSY,
	REPATH_PEER_VERSION_ERR,
	REPATH_PEER_MALFORMED,
	REPATH_PEER_AMBIGUOUS,	/* RESOLVE: more than one may be meant */
	REPATH_PEER_TAKEN,	/* RESOLVE: it is connected to somebody else's */
	REPATH_PEER_SOME_BAD,	/* some records had bad tokens; the others were taken */
	REPATH_PEER_UNPROVEN,	/* packed records that fit no connections here: say them at length */
	REPATH_PEER_ABSENT,	/* HELLO: no such queue pair, and none is on its way that was one */
};

/**
 * struct repath_hello - REPATH_MSG_HELLO, one fragment
 * @src_gid: GID of the sender's port that its queue pair uses
 * @src_qpn: QPN of the sender's queue pair
 * @dst_qpn: QPN of the receiver's, as the sender's queue pair has it
 * @token: the sender's token for this connection
 * @cookie: the sender's process, 64 random bits made when it registered
 * @flags: REPATH_HELLO_*
 */
struct repath_hello {
	__u8	src_gid[16];
	__be32	src_qpn;
	__be32	dst_qpn;
	__be64	token;
	__be64	cookie;
	__be32	flags;
} __attribute__((packed));

#define REPATH_HELLO_WANT	(1u << 0) /* send me your HELLO (again) */

/**
 * struct repath_resolve - REPATH_MSG_RESOLVE, one fragment
 * @dst_gid: where the asker believes the queue pair to be; all zero: it is reached by LID alone
 * @src_gid: GID of the asker's port
 * @dst_cookie: only a queue pair of this process is meant; 0: anybody's
 * @src_cookie: the asker
 * @token: of a UD address, 64 random bits that MOVED must bring; 0: not to be told
 * @qpn: the number that the asker's application was given
 * @src_qpn: the asker's own queue pair, 0 for UD
 * @src_lid: LID of the asker's port; 0 on RoCE
 * @src_sl: service level of the way back
 * @qp_type: enum ib_qp_type
 * @reserved: 0
 */
struct repath_resolve {
	__u8	dst_gid[16];
	__u8	src_gid[16];
	__be64	dst_cookie;
	__be64	src_cookie;
	__be64	token;
	__be32	qpn;
	__be32	src_qpn;
	__be32	src_lid;
	__u8	src_sl;
	__u8	qp_type;
	__be16	reserved;
} __attribute__((packed));

/**
 * struct repath_resolved - follows struct repath_frag_reply in the answer to REPATH_MSG_RESOLVE
 * @tag: names the queue pair among all of all hosts, and tells nothing else
 * @qpn: its number now
 * @flags: REPATH_RESOLVED_*
 */
struct repath_resolved {
	__be64	tag;
	__be32	qpn;
	__be32	flags;
} __attribute__((packed));

#define REPATH_RESOLVED_MOVED	(1u << 0) /* its process has moved on this device */

/**
 * struct repath_moved - REPATH_MSG_MOVED, one fragment
 * @token: of the asker's RESOLVE
 * @cookie: the process that has moved
 * @gid: where its queue pair is now; all zero: it is reached by LID alone
 * @lid: the same, 0 on RoCE
 * @qpn: the queue pair's number now
 * @at: when it moved, by its host's clock: of two of one process the later one holds
 */
struct repath_moved {
	__be64	token;
	__be64	cookie;
	__u8	gid[16];
	__be32	lid;
	__be32	qpn;
	__be64	at;
} __attribute__((packed));

/**
 * struct repath_wire_msg - every other message, module to module
 * @src_gid: GID that the sender's end uses now
 * @src_lid: LID of that port; 0 on RoCE
 * @dst_cookie: the process that is meant
 * @src_cookie: the process that speaks
 * @nconns: records that follow
 * @blob_len: bytes that follow the records
 * @form: of the records, REPATH_WIRE_AT_LENGTH or _PACKED
 */
struct repath_wire_msg {
	__u8	src_gid[16];
	__be32	src_lid;
	__be32	nconns;
	__be32	blob_len;
	__be32	form;
	__be64	dst_cookie;
	__be64	src_cookie;
	/*
	 * struct repath_wire_rec recs[nconns], or struct repath_wire_packed with its names and
	 * columns; __u8 blob[blob_len];
	 */
} __attribute__((packed));

#define REPATH_WIRE_AT_LENGTH	0
#define REPATH_WIRE_PACKED	1

struct repath_wire_rec {
	__be64	dst_token;	/* the receiver's token */
	__be64	src_token;	/* the sender's */
	__be32	qpn;
	__be32	psn;
	__be32	flags;
	__be32	reserved;
	__be64	count;
} __attribute__((packed));

#define REPATH_WIRE_PROOF	16

/**
 * struct repath_wire_packed - all records of a message, by columns
 * @proof: BLAKE2s with 16 bytes of result (RFC 7693), without key, of the receiver's and the sender's
 *	token of each connection, in the order of the names, the header of the message, and all that
 *	follows the proof
 * @qpn: the least; a column has what is to be added to it
 * @psn: the same
 * @flags: the same
 * @width: bytes of each number in the columns of QPNs, PSNs, flags (at most 4) and counts (at most 8)
 * @count: the same as @qpn
 *
 * Names follow, the low 16 bits of the receiver's token of each connection; then the columns.
 */
struct repath_wire_packed {
	__u8	proof[REPATH_WIRE_PROOF];
	__be32	qpn;
	__be32	psn;
	__be32	flags;
	__u8	width[4];
	__be64	count;
	/* __be16 name[nconns]; __u8 qpns[nconns][width[0]], ... counts[nconns][width[3]]; */
} __attribute__((packed));

#endif /* REPATH_PEER_H */
