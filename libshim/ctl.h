/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The only door to the module: one netlink socket and one thread a process. Everything about a
 * move happens on this thread, so that its state needs no locks of its own.
 */
#ifndef RP_CTL_H
#define RP_CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "../include/repath_peer.h"
#include "../include/uapi/ib_repath.h"

/**
 * struct rp_ctl_bind - which queue pairs an INFO binds the connections to
 * @dev_index, @port, @sgid_index: real ones
 */
struct rp_ctl_bind {
	uint32_t dev_index, port, sgid_index;
};

/**
 * struct rp_ctl_conn - one row of CONN_GET
 */
struct rp_ctl_conn {
	uint32_t conn_id, peer_id, dev_index, qpn;
	uint8_t state;	/* enum repath_conn_state */
	bool moving;
};

/**
 * struct rp_ctl_address - what RESOLVE asks for
 * @dev_index, @port, @sgid_index: the own port, real numbers
 * @gid, @lid, @sl: the address that the application was given
 * @qp_type: enum ibv_qp_type
 * @qpn: the number that the application was given
 * @src_qpn: the own queue pair's real number; 0: a UD address
 */
struct rp_ctl_address {
	uint32_t dev_index, port, sgid_index, lid, qpn, src_qpn;
	uint8_t gid[16], sl, qp_type;
};

/**
 * struct rp_place - where a queue pair is
 * @gid, @lid: its port; the GID zero where it is reached by LID alone
 * @qpn: its number on the device
 * @moved: keys that its process has told are not the device's
 */
struct rp_place {
	uint8_t gid[16];
	uint32_t lid, qpn;
	bool moved;
};

/**
 * struct rp_ctl_path - a path that takes the place of another one
 * @dlid: of that one; 0: on RoCE, by its GID
 * @slid: own LID of it; 0: any of the port's
 * @new_dlid: 0: as before
 * @sl, @tclass: -1: as before
 * @rate: enum ibv_rate; 0: as before
 * @mtu: enum ibv_mtu that it carries; 0: as before
 */
struct rp_ctl_path {
	uint32_t dlid, slid, new_dlid;
	int sl, tclass;
	uint8_t rate, mtu;
};

/* Set in every number of a RESOLVE, so that they are never those of messages. */
#define RP_RESOLVE_ID	0x80000000u

/**
 * struct rp_ctl_peer_msg - EV_PEER_MSG
 * @gid, @lid: where the sender's end is now
 */
struct rp_ctl_peer_msg {
	uint32_t peer_id;
	uint8_t type;
	uint8_t gid[16];
	uint32_t lid;
	const struct repath_conn_rec *recs;
	unsigned int nrecs;
	const void *blob;
	unsigned int blob_len;
};

/* fork.c: from now on fork() waits while the control thread works, and it does not begin to during one. */
void rp_forks_wait(void);
void rp_work_begin(void);
void rp_work_end(void);
/* True: this thread is within fork(), which does not hold up the control thread until rp_fork_go_on(). */
bool rp_fork_let(void);
void rp_fork_go_on(void);

/* All for the control thread alone; they return 0 or -errno. */
int rp_ctl_reply(uint32_t op, enum repath_stage stage, int err, const char *reason,
		 const struct repath_counters *counters);
int rp_ctl_peer_send(uint32_t peer_id, enum repath_msg type, uint64_t msg_id,
		     const struct repath_conn_rec *recs, unsigned int nrecs,
		     const struct rp_ctl_bind *bind, const void *blob, unsigned int blob_len);
int rp_ctl_conns(void (*fn)(const struct rp_ctl_conn *c, void *arg), void *arg);
int rp_ctl_resolve(uint32_t id, const struct rp_ctl_address *a);
int rp_ctl_unresolve(uint32_t id);
int rp_ctl_numbers(uint32_t dev_index, const struct repath_number *rows, unsigned int n,
		   const struct repath_gid_change *gids, unsigned int ngids);
/* -EADDRINUSE: others know another queue pair by this number */
int rp_ctl_number_check(uint32_t dev_index, uint32_t qpn);
int rp_ctl_cycled(uint32_t conn_id, int err);		/* @err: positive */
/* It is not on a move, whatever the peer has said up to its round, or has not answered. */
int rp_ctl_rests(uint32_t conn_id, uint16_t peer_round);

/**
 * rp_ctl_call() - run a function on the control thread and wait until it has returned
 * Runs it at once when called on that thread. Returns false, without having run it, when there is no control
 * thread: no module, or a child of fork.
 */
bool rp_ctl_call(void (*fn)(void *arg), void *arg);

/* Has the control thread look for what is due, soon. Any thread, any lock held. */
void rp_ctl_wake(void);

/* What the control thread calls (move.c, peer.c). */
void rp_move_event(int cmd, uint32_t op, uint32_t dev_index, const char *dev_name,
		   uint32_t timeout_ms, bool force);
void rp_move_lost_module(void);
/* In a child of fork, which has no part in its parent's moves. */
void rp_move_forked(void);
/* Does what is due; returns milliseconds until it wants to be called again, -1: not at all. */
int rp_move_tick(void);
void rp_peer_msg_in(const struct rp_ctl_peer_msg *m);
void rp_peer_sent(uint64_t msg_id, int err);
void rp_peer_resend(void);	/* events were lost: rp_peer_sent() may not be called any more */
void rp_conns_missed(void);		/* nor of connections that have become READY */

/* ah_path.c, cycle.c: a path has changed */
/* @gid: NULL: those to @to->dlid; else those to that GID, whatever LID they go to */
void rp_ahs_repath(uint32_t dev_index, uint32_t port, const uint8_t *gid,
		   const struct rp_ctl_path *to);
void rp_cycle_event(uint32_t conn_id, const struct rp_ctl_path *to);

/* resolve.c, keys_stream.c, numbers.c. @place: NULL with an error. */
void rp_resolved(uint32_t id, int err, const struct rp_place *place);
void rp_resolve_refused(uint32_t id, int err);	/* the module does not even ask */
void rp_conn_ready(const struct rp_ctl_conn *row);
void rp_numbers_about(uint32_t count);
void rp_numbers_again(void);	/* to a module that knows nothing yet */

#endif /* RP_CTL_H */
