/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection while it is moved, as docs/protocol.md tells. Both ends run the same state
 * machine; what differs is @mover. Everything here belongs to the control thread.
 */
#ifndef RP_CONN_H
#define RP_CONN_H

#include "ctl.h"
#include "shim.h"

/**
 * struct rp_peer - a remote process
 * @id: the module's number of it
 * @keysets: its keys by its contexts (keys.c)
 * @streams: what it knows of ours (keys_stream.c)
 * @prepares: PREPAREs that it has not answered
 * @acks: KEYS that it has not answered
 * @keys_due: it may lack keys, and is told soon
 * @of_lost_module: @id is a number of a module that has been unloaded
 */
struct rp_peer {
	uint32_t id;
	struct list_head conns;
	struct list_head keysets;
	struct list_head streams;
	unsigned int prepares;
	unsigned int acks;
	bool keys_due, of_lost_module;
	struct list_node node;
};

/* Connecting a queue pair anew by another path (cycle.c). */
enum rp_cycle {
	RP_CYCLE_NONE,
	RP_CYCLE_WANTED,
	RP_CYCLE_ASKED,		/* the peer is */
	RP_CYCLE_RUNS,
};

/**
 * struct rp_conn - one end of a connection
 * @id: the module's number
 * @known: what the module says of the peer, enum repath_conn_state
 * @listed: it is in the module's list, which is being read
 * @moving: gate closed; all that follows is about this move
 * @mover: the own device is going away; @peer_mover: the peer's is, until its INFO; @peer_moved: it was
 * @peer_gated: the peer takes our marker
 * @marker_old: the marker is on its way since a move that was aborted: it tells nothing of what was posted since
 * @peer_clear: the peer's queue is empty, its marker is back
 * @drained, @stuck: our send queue; @peer_drained: the peer's
 * @quiet: nothing more will be sent from here; @peer_quiet
 * @reset: the queue pair has left RTS
 * @was_error: the queue pair was, when it was looked at last
 * @has_path: @dlid, @sl and @rate are those that it had then: the module may have moved it to them
 * @has_lane: on RoCE, where not every driver tells: @lane is what its path was last told to be
 * @inited: in INIT already, receives posted
 * @usable: there is a queue pair in RESET that may be connected
 * @psn_chosen: @psn is that of this move
 * @told: the peer's module has this end's INFO
 * @telling: its INFO is on its way there, also of a move that has ended
 * @early: the peer's READY has told @peer_qpn ... @peer_gid; its INFO confirms them, or not
 * @informed: the peer's INFO is in @peer_qpn ... @peer_count
 * @in_rts: with the peer's address; @connected: and with all memory windows; @peer_connected
 * @lookups: how often the peer's address was not found
 * @peer_to_qpn, @peer_to_psn: to what the peer has said that it is connected; this end may have
 *	left that since
 * @aborting: ABORT was sent and is not answered
 * @alone: nobody has answered ABORT of @round: this end goes on, and the other one may still have stopped
 * @dead: the peer has no such end any more
 * @given_up: by force, since the peer can not be moved with; the queue pair is as it was until released
 * @round: how often this end has begun, modulo 2^16; @peer_round: the peer's, as last heard
 * @peer_over: the peer's round that has ended here: messages up to it are late ones
 * @abort_round: the peer's round whose ABORT is to be answered
 * @control: qp->control is held
 * @asked: number of the check's PREPARE that the peer has not answered for it; 0: none
 * @ask_again: the peer is known by another number since
 * @keys_epoch: 1 + the move whose key table the peer uses for it; 0: none
 * @cycle: it stays, and is to be connected anew by the path @to; @cycle_again: by one that was told too
 *	late for this time
 * @wrong_path: @to does not lead to where the peer is
 * @cycle_ask: number of the PREPARE; @cycle_until: when it has taken too long; @cycle_late: it was seen
 *	to have
 * @begun_ns: when the move began
 * @heard_ns: when the peer's module has had ABORT, whose answer may get lost; 0: it is being said
 * @path_mtu: that the path carries which was told last; 0: none was told
 * @left: @from and @alt_from are where the queue pair's path and its other place (rp_qp::other) led when it
 *	left them
 * @alt_loaded: the device has the alternate path again
 * @alt_told: the peer's INFO tells that the queue pair's alternate path leads to @alt_to now
 * @due: 1 << enum repath_msg, to be sent
 * @progress, @progress_ns: what of the send ring was retired when, to see that it is stuck
 */
struct rp_conn {
	struct rp_qp *qp;
	struct rp_context *ctx;
	struct rp_peer *peer;
	uint32_t id;
	enum repath_conn_state known;
	bool listed;

	bool moving, mover, peer_mover, peer_moved, peer_gated, marker_old;
	bool drained, stuck, peer_drained, peer_clear;
	bool has_path, has_lane;
	uint8_t sl, rate;
	uint16_t dlid;
	bool quiet, peer_quiet, flushing, was_error, reset, inited, usable, psn_chosen;
	bool told, telling, early, informed, in_rts, connected, peer_connected;
	bool aborting, alone, dead, given_up, control, ask_again;
	unsigned int keys_epoch, lookups;
	uint16_t round, peer_round, peer_over, abort_round;
	enum rp_cycle cycle;
	bool cycle_again, cycle_late, wrong_path;
	uint32_t asked, cycle_ask;
	uint64_t cycle_until, begun_ns, heard_ns;
	struct rp_ctl_path to, lane;
	unsigned int due;

	uint32_t psn, peer_psn, peer_qpn, peer_lid;
	uint32_t peer_to_qpn, peer_to_psn;
	enum ibv_mtu mtu, peer_mtu;	/* that ports and paths carry */
	enum ibv_mtu path_mtu;
	union ibv_gid peer_gid;
	uint64_t peer_count;
	bool left, alt_loaded, alt_told;
	struct rp_port from, alt_from, alt_to;

	uint64_t progress;
	uint64_t progress_ns;

	struct list_node node;		/* rp_conns */
	struct list_node in_peer;
	struct rp_conn *next_hashed;
};

extern struct list_head rp_conns;
extern struct list_head rp_peers;

static inline struct rp_context *rp_qp_context(struct rp_qp *qp)
{
	return to_rp_context(qp->qp.context);
}

uint64_t rp_now_ns(void);

/* conn_table.c */
int rp_conns_refresh(void);			/* asks the module for all of this process */
/*
 * A process whose module was loaded anew has another number. What it has been asked, and has not answered,
 * it is asked again by that one, before the old one goes. Moves may end by it: not amidst their list.
 */
void rp_conns_renumbered(void);
void rp_conns_lost_module(void);		/* their numbers mean nothing any more */
void rp_conns_forked(void);			/* forgets them all, without freeing */
struct rp_conn *rp_conn_find(uint32_t id);
struct rp_peer *rp_peer_find(uint32_t id);
void rp_conn_forget(struct rp_conn *c);
bool rp_conn_connectable(const struct rp_qp *qp);	/* has it been in RTR? */

/* conn.c */
/* Is round @a of the peer after @b? */
static inline bool rp_round_after(uint16_t a, uint16_t b)
{
	return (int16_t)(a - b) > 0;
}

static inline uint16_t rp_round_heard(const struct rp_conn *c)
{
	return rp_round_after(c->peer_round, c->peer_over) ? c->peer_round : c->peer_over;
}

/* Is the peer a process with the shim that can be spoken to? */
static inline bool rp_conn_is_ready(const struct rp_conn *c)
{
	return c->known == REPATH_CONN_READY;
}

/* Can it be moved: does the peer move with it, or is there none any more? */
static inline bool rp_conn_peer_moves(const struct rp_conn *c)
{
	return rp_conn_is_ready(c) || c->known == REPATH_CONN_GONE;
}

/* Before: is the queue pair in error, and by which path does it go? */
void rp_conn_look(struct rp_conn *c);
/* The last time that its device is as it was: what it has done by itself is so from now on. */
void rp_conn_leave(struct rp_conn *c);
/*
 * Closes the gate. A peer's end also keeps the application from modifying the queue pair. Nothing is begun with
 * one that is not connected any more: the peer is told.
 */
void rp_conn_begin(struct rp_conn *c, bool mover);
/* Moves a queue pair without its peer, which hears nothing: it comes back as one whose peer has gone. */
void rp_conn_give_up(struct rp_conn *c);
/* Ends a connection whose other end has stopped for a move that has ended here. */
void rp_conn_part(struct rp_conn *c);
/* Opens the gate of a queue pair that never left RTS. */
void rp_conn_cancel(struct rp_conn *c);
/* Takes a queue pair that is not released through RESET, to be connected by INFO. */
void rp_conn_reset(struct rp_conn *c);
/* There is a queue pair in RESET: INFO goes out. */
void rp_conn_usable(struct rp_conn *c);
/* Where the peer's end will be; INFO, or READY of one that stays (@early). */
void rp_conn_inform(struct rp_conn *c, const struct rp_ctl_peer_msg *m,
		    const struct repath_conn_rec *r, bool early);
/* ... and there is none any more, before the peer knew it. */
void rp_conn_unusable(struct rp_conn *c);
void rp_conn_step(struct rp_conn *c);
/* Opens the gate where both ends are connected; false: they are not. */
bool rp_conn_finish(struct rp_conn *c);
/*
 * Does what takes long and the peer does not wait for, after what it waits for was sent. True if
 * there was something.
 */
bool rp_conn_work(struct rp_conn *c);
/* From now on an end that keeps its queue pair, for a move of the peer. */
void rp_conn_stay(struct rp_conn *c);
void rp_conn_kill(struct rp_conn *c);		/* the peer is gone */
/* Its owner ends it, who does not wait for the peer: what it has is flushed. */
void rp_conn_disown(struct rp_conn *c);
/* Gives kept sends to the device and lets new ones through. */
void rp_qp_open_gate(struct rp_qp *qp);
/*
 * The device does not take what was kept for it, and the gate is closed: nothing left but the queue pair's error.
 * What it has taken comes back, in order; then the rest is completed, @first before what is flushed.
 * Caller holds qp->control: this takes long, and must not be its owner's next life.
 */
void rp_qp_not_taken(struct rp_qp *qp, int err, enum ibv_wc_status first);

/* cycle.c */
void rp_cycle_tick(void);		/* before messages are sent */
int rp_cycle_wait_ms(void);		/* until it wants to be called again; -1: not at all */
/* PREPARE @id is answered: yes, for this one; or no, for all: false if it was not asked for a cycle. */
void rp_cycle_prepared(struct rp_conn *c, uint32_t id);
bool rp_cycle_refused(struct rp_peer *peer, uint32_t id);
void rp_cycle_ended(struct rp_conn *c);	/* the gate is open, or the queue pair in error */
void rp_cycle_lost_module(void);

/* connect.c; 0 or -errno */
int rp_qp_to_state(struct rp_qp *qp, enum ibv_qp_state state);
int rp_qp_to_init(struct rp_qp *qp);		/* and posts receives */
int rp_qp_to_error(struct rp_qp *qp);
/* Gives kept receives to the device and lets new ones through. */
int rp_qp_replay_recvs(struct rp_qp *qp);
/* Puts a recreated queue pair without a connection into the state that it had. */
int rp_qp_restore(struct rp_qp *qp);
/* When it is connected, and its windows are bound: to SQD again, where its owner has it. */
int rp_qp_hold_back(struct rp_qp *qp);
/* In SQD on a device that comes: what its owner still waits for. */
void rp_qp_tell_drained(struct rp_qp *qp);
/* To the peer's place; if that fails it is looked for again, or the connection is dead. */
void rp_conn_connect(struct rp_conn *c);

/* alternate.c: the alternate path of an owner, and his limit of the rate */
/* Before the owner's is given to the device, and when it was. */
void rp_alternate_real(struct rp_qp *qp, struct ibv_qp_attr *attr, int mask);
void rp_alternate_set(struct rp_qp *qp, const struct ibv_qp_attr *real, int mask);
/* Has the device migrated? Then that is the queue pair's path. Caller holds qp->control, or has its verbs. */
void rp_alternate_look(struct rp_qp *qp, const struct ibv_qp_attr *is);
/* Into what a query has told, the owner's. */
void rp_alternate_query(const struct rp_qp *qp, struct ibv_qp_attr *attr);
#define RP_LOOK_MASK (IBV_QP_STATE | IBV_QP_PORT | IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
struct rp_port rp_place_of(const struct ibv_ah_attr *av);
/* Where it leads when the primary one leads to @to: NULL; or why it is not to be had. */
const char *rp_alternate_leads(const struct rp_conn *c, const struct rp_port *to, struct rp_port *alt);
/*
 * When the queue pair is connected: before either end sends, as what is sent first arms both. Where the
 * peer is may not be known for certain until its INFO is there: again when it is.
 */
void rp_alternate_again(struct rp_conn *c);
void rp_alternate_drop(struct rp_qp *qp, const char *why);
void rp_place_fill(struct ibv_ah_attr *av, const struct rp_port *place);
void rp_qp_rate_limit(struct rp_qp *qp);	/* in RTS again */

/* ports.c: where the other ports of one who moves are; after the keys in the blob of INFO */
unsigned int rp_ports_info(const struct rp_conn *c, void *blob, unsigned int room);
#define RP_PORTS_INFO_MAX 168	/* bytes */
void rp_ports_take(struct rp_conn *c, const struct rp_ctl_peer_msg *m);

/* sqe.c */
void rp_sqe_set(struct rp_qp *qp, bool sqe);
/* Completes what is kept as flushed. */
void rp_sqe_flush(struct rp_qp *qp);
/* The owner's modify in SQE: what the device is to be asked for; 0 or EINVAL. */
int rp_sqe_modify(const struct rp_qp *qp, struct ibv_qp_attr *attr, int *mask);
void rp_sqe_end(struct rp_qp *qp);
/* Of one that is connected to nobody: it may have failed, and nobody asked. */
void rp_sqe_look(struct rp_qp *qp);

/* drain.c */
void rp_drain_harvest(struct rp_context *ctx);
void rp_drain_step(struct rp_conn *c);
void rp_drain_count(void);			/* the markers, before the steps */
bool rp_drain_may_mark(const struct rp_qp *qp);	/* Has its CQ room for another one? */
bool rp_drain_flush(struct rp_conn *c);		/* stuck work taken back; true when done */
/* Its owner keeps it in SQD, and the device has ended what it had begun. */
bool rp_qp_held_back(const struct rp_qp *qp);
/*
 * The peer has consumed more messages than we saw acknowledged: they, and what was posted before them, have been
 * executed. false: what of that had an answer has lost it, so that it can neither be completed nor done again; what is
 * in front of it is settled.
 */
bool rp_drain_settle(struct rp_conn *c);
/* Completes everything that is kept: the first send with @first, the rest as flushed. */
void rp_drain_fail_all(struct rp_qp *qp, enum ibv_wc_status first);

/* due.c, message.c, peer.c */
void rp_peer_flush(void);			/* sends what is due */
int rp_peer_wait_ms(void);			/* until a message wants to be repeated; -1: none */
void rp_peer_prepare(struct rp_peer *peer, struct rp_context *ctx);
void rp_message_forget(const struct rp_conn *c, enum repath_msg type);
void rp_peer_drop(struct rp_peer *peer);	/* forget messages of a peer without connections */
void rp_peer_back(struct rp_peer *peer);	/* what waits for it goes out now, where it is now */
void rp_peer_forked(void);			/* forget all, without freeing */
void rp_peer_expire(void);			/* what a peer has had and not answered in time */

/* keys.c, keys_wait.c: the peer's keys, which the requests of a queue pair are translated with */
void rp_keys_await(struct rp_qp *qp);	/* of a peer that has moved: nothing is known of them yet */
void rp_keys_clear(struct rp_qp *qp);	/* control thread: it is connected to nobody any more */
void rp_keys_hold(struct rp_qp *qp);	/* a request waits for them; caller holds qp->lock */
/* May this request's key, which is not known, be of a table that is on its way? Caller holds qp->lock. */
bool rp_keys_in_doubt(const struct rp_qp *qp, uint64_t index);
void rp_keys_failed(struct rp_qp *qp);	/* one that had a wrong key has completed */
void rp_keys_reset(struct rp_qp *qp);	/* all requests are gone; caller holds qp->lock */

/* check.c, move.c */
void rp_move_prepared(void);		/* a peer has answered, or need not any more */
void rp_move_refused(const struct rp_context *ctx, const char *why);	/* by a peer of its connections */
extern struct repath_counters *rp_counters;	/* of the move that is worked on, or NULL */

#endif /* RP_CONN_H */
