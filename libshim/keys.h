/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Remote keys. A process that has moved tells its peers, per device that it has open, which real key
 * stands for each of its virtual keys. What it tells is a stream: each change of its keys has a
 * serial number, a message carries the changes from one number to another, and the answer says how
 * far the receiver is. A move begins a new stream, at 0; the epoch says which move.
 */
#ifndef RP_KEYS_H
#define RP_KEYS_H

#include "message.h"

#define RP_KEYS_MAGIC	0x4b455932	/* "KEY2" */

/**
 * struct rp_keys_wire - blob of INFO and KEYS; network order
 * @magic: RP_KEYS_MAGIC
 * @ctx: tells the sender's devices apart
 * @epoch: the sender's moves of that device; 0: its keys are the device's own
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

/* keys.c: what peers have told. All on the control thread. */
/* How much of a blob is a table of keys. */
unsigned int rp_keys_length(const void *blob, unsigned int len);
void rp_keys_take(struct rp_peer *peer, const struct rp_ctl_peer_msg *m, struct rp_keys_ack *ack);
void rp_keys_forget_peer(struct rp_peer *peer);
/* Requests with keys of a table that does not come are failed after a while. */
void rp_keys_tick(void);
int rp_keys_wait_ms(void);

/* keys_stream.c: what peers are told. */
/* Tells all peers of @ctx, or this one, what they do not know. */
void rp_keys_push(struct rp_context *ctx);
void rp_keys_push_peer(struct rp_peer *peer, struct rp_context *ctx);
/* Blob for an INFO about @c; false: more must be acknowledged first. */
bool rp_keys_info(struct rp_conn *c, void *blob, unsigned int *len);
void rp_keys_acked(struct rp_peer *peer, const struct rp_ctl_peer_msg *m);
void rp_keys_lost(struct rp_peer *peer, uint32_t message);	/* not delivered, or not answered */
bool rp_keys_known_to_all(struct rp_context *ctx, uint32_t serial);
void rp_keys_forget_streams(struct rp_peer *peer);
void rp_keys_context_gone(struct rp_context *ctx);

#endif /* RP_KEYS_H */
