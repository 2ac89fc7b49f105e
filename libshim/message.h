/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A message to a peer's shim, from when it is due until the peer's module has it. */
#ifndef RP_MESSAGE_H
#define RP_MESSAGE_H

#include "conn.h"

/**
 * struct rp_message - a message on its way
 * @id: MSG_ID; also how an answer names its question
 * @inflight: the module has it, and will say what became of it
 * @bound, @bind: which queue pairs an INFO binds the connections to
 * @next_ns: when to try again; @deadline_ns: when to give up
 * @seldom: what it is about has ended here, and is said on until the peer is there again
 * @nrecs, @recs: its connections; there is room for as many as were asked for
 */
struct rp_message {
	struct list_node node;
	struct rp_peer *peer;
	uint32_t id;
	enum repath_msg type;
	bool inflight, bound, seldom;
	struct rp_ctl_bind bind;
	uint64_t next_ns, deadline_ns;
	unsigned int nrecs, blob_len;
	struct repath_conn_rec *recs;
	char *blob;
};

/* In the queue, not sent; room for @nrecs records, none there yet. NULL: out of memory. */
struct rp_message *rp_message_new(struct rp_peer *peer, enum repath_msg type, unsigned int nrecs,
				  const void *blob, unsigned int blob_len);
void rp_message_free(struct rp_message *m);
/* Gives it to the module, now or, if that does not take it, a little later. */
void rp_message_try(struct rp_message *m);
/* @m says what older ones to its peer say, of the same connections and rounds: those need not be said. */
void rp_message_supersede(const struct rp_message *m);
/* What the queue does by itself when called often enough. */
void rp_message_retry(void);
/* Notes in a PREPARE or KEYS, before it is tried, that an answer is waited for; false: no memory. */
bool rp_message_ask(struct rp_message *m, unsigned int *count);
/* What was asked in message @id can not be: whose check it was hears it. */
void rp_message_refused(struct rp_peer *peer, uint32_t id, const char *why);
/* An answer to message @id: false if nobody waits for it (any more). */
bool rp_message_answered(struct rp_peer *peer, uint32_t id);

/* due.c: what a message of @type tells of a connection */
void rp_message_record(struct repath_conn_rec *r, const struct rp_conn *c, enum repath_msg type);

/* request.c: wakes the threads that wait for answers to KEYS */
void rp_request_keys_acked(void);

#endif /* RP_MESSAGE_H */
