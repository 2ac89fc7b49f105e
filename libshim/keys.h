/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Remote keys. A process that has moved tells its peers, per device that it has open, which real key
 * stands for each of its virtual keys. What it tells is a stream: each change of its keys has a
 * serial number, a message carries the changes from one number to another, and the answer says how
 * far the receiver is. Of a key that is not in the table the receiver asks (keys_wait.c): a move does not wait for all
 * of a long one. A move begins a new stream, at 0, and so does who can not tell any more what he has taken back:
 * the table of a later epoch replaces the one before.
 */
#ifndef RP_KEYS_H
#define RP_KEYS_H

#include "message.h"

#define RP_KEYS_MAGIC	0x4b455932	/* "KEY2" */

/**
 * struct rp_keys_wire - blob of INFO and KEYS; network order
 * @magic: RP_KEYS_MAGIC
 * @ctx: tells the sender's devices apart
 * @epoch: which stream, in the order in which they were begun; 0: the sender's keys are the device's own
 * @from: the receiver knows all changes up to this one; 0: nothing is known
 * @to: the last change in this message
 * @removed: so many are not there any more; of the pairs only virt counts
 * @set: after them, so many are there, or are another
 * @windows: after them, so many windows: of these the low 8 bits are the application's
 * @key: all of them
 */
struct rp_keys_wire {
	uint32_t magic, ctx, epoch;
	uint32_t from, to;
	uint32_t removed, set, windows;
	struct {
		uint32_t virt, real;
	} key[];
};

/**
 * struct rp_keys_ack - blob of KEYS_ACK; network order
 * @ctx, @epoch: as in the message
 * @serial: all changes up to this one are known; 0 where the stream is not
 */
struct rp_keys_ack {
	uint32_t ctx, epoch, serial;
};

#define RP_KEYS_ASK_MAGIC	0x4b41534b	/* "KASK" */

/**
 * struct rp_keys_ask - blob of KEYS that tells nothing: how far does your table go? network order
 * @magic: RP_KEYS_ASK_MAGIC
 * @ctx: the receiver's number of the device
 * The answer is a struct rp_keys_ack of the receiver's own stream.
 */
struct rp_keys_ask {
	uint32_t magic, ctx;
};

/**
 * struct rp_keyset - the keys of one device of a remote process, shared by all connections to it
 * @refs: the peer's list, and queue pairs
 * @ctx: the sender's number of the device
 * @epoch, @serial: how far its stream is known
 * @map: what is known of it; NULL: nothing
 * @qps: that post by it, whatever has become of their connections
 * @question: number of the KEYS that asks how far the sender's table goes; 0: none
 * @until: when so much is known, what was asked about and is not in it is in none; 0: that is not known
 * @ask_ns: not before
 */
struct rp_keyset {
	unsigned int refs;
	uint32_t ctx, epoch, serial;
	struct rp_keymap *map;
	struct list_head qps;
	uint32_t question, until;
	uint64_t ask_ns;
	struct list_node node;
};

/* keys.c: what peers have told. All on the control thread. */
/* How much of a blob is a table of keys. */
unsigned int rp_keys_length(const void *blob, unsigned int len);
void rp_keys_take(struct rp_peer *peer, const struct rp_ctl_peer_msg *m, struct rp_keys_ack *ack);
void rp_keys_forget_peer(struct rp_peer *peer);
/* What requests of a queue pair are translated with from now on; those that have waited for it go. */
void rp_keys_publish(struct rp_qp *qp, struct rp_keymap *map);

/* keys_wait.c: on the control thread, but for what conn.h has of it. */
/* Asks for, or fails, what waits. */
void rp_keys_tick(void);
int rp_keys_wait_ms(void);
void rp_keys_forked(void);
/* KEYS_ACK @m answers, or nothing does, what may have been a question of ours. */
void rp_keys_told(const struct rp_peer *peer, uint32_t message, const struct rp_ctl_peer_msg *m);
void rp_keys_not_told(const struct rp_peer *peer, uint32_t message);
/* Caller holds qp->lock. */
void rp_keys_unhold(struct rp_qp *qp);
/*
 * What has waited is given; if the provider refuses it the queue pair fails. Takes qp->control, unless the connection
 * moves: who calls it holds no lock.
 */
void rp_keys_go_on(struct rp_qp *qp);

/* keys_stream.c: what peers are told. */
/* Tells all peers of @ctx, or this one, what they do not know. */
void rp_keys_push(struct rp_context *ctx);
void rp_keys_push_peer(struct rp_peer *peer, struct rp_context *ctx);
/* As rp_peer::keys_due says. */
void rp_keys_push_due(struct rp_peer *peer);
/* @blob for an INFO about @c, @size bytes at most; false: what is under way must be answered first. */
bool rp_keys_info(struct rp_conn *c, void *blob, unsigned int size, unsigned int *len);
void rp_keys_acked(struct rp_peer *peer, const struct rp_ctl_peer_msg *m);
/* Is it a question? Then that is its answer. */
bool rp_keys_asked(struct rp_peer *peer, const struct rp_ctl_peer_msg *m, struct rp_keys_ack *ack);
void rp_keys_lost(struct rp_peer *peer, uint32_t message);	/* not delivered, or not answered */
bool rp_keys_known_to_all(struct rp_context *ctx, uint32_t serial);
void rp_keys_forget_streams(struct rp_peer *peer);
void rp_keys_context_gone(struct rp_context *ctx);

#endif /* RP_KEYS_H */
