/* SPDX-License-Identifier: GPL-2.0 */
/* Connections: what outlives a queue pair while it is being moved. See docs/protocol.md. */
#ifndef REPATH_CONN_H
#define REPATH_CONN_H

#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>
#include <uapi/ib_repath.h>

#include "xprt.h"

struct netlink_callback;
struct repath_device;
struct repath_proc;
struct repath_qp;
struct sk_buff;

/*
 * One mutex for the connection table, every field of every connection, the remote processes and
 * each repath_proc::conns. Nobody waits for the network under it. Order: repath_op_mutex,
 * then this one, then the locks of xprt.c and proc.c.
 */
extern struct mutex repath_conn_mutex;

#define REPATH_REMOTE_PLACES 4

/**
 * struct repath_remote - a process at the other end of connections, of this host or another
 * @node: by cookie
 * @id: PEER_ID on the netlink interface; never used twice
 * @cookie: as that process's module told in HELLO
 * @places: where something that was said to it was understood, so that it has been there; the last few
 * @nplaces: how many there have been
 * @at_length: it has not understood packed records; until its connections are others
 * @users: connections to it, and messages
 */
struct repath_remote {
	struct hlist_node node;
	u32 id;
	u64 cookie;
	struct repath_addr places[REPATH_REMOTE_PLACES];
	u32 nplaces;
	bool at_length;
	u32 users;
};

/**
 * struct repath_conn - one end of a connection
 * @kref: the table holds one
 * @by_token: in the hash of own tokens
 * @by_qp: in the hash of (device, QPN); unhashed while @rqp is NULL
 * @proc_node: in repath_proc::conns
 * @proc: the process; holds a reference
 * @remote: who the peer is; NULL until its HELLO came
 * @dev: device that the end uses, or used last; holds a reference
 * @rqp: the queue pair that is the end now, or NULL; holds a reference
 * @id: CONN_ID on the netlink interface
 * @qpn: the end's current or last QPN
 * @dest_qpn: the peer's current QPN
 * @state: enum repath_conn_state
 * @addr: how to reach the peer from @dev
 * @first: @addr when the connection was made
 * @said_gid: of the peer's port, as it has said itself: without a GRH @addr has none; zero: it has not
 * @token: this end's
 * @peer_token: the peer's; 0 is "not yet known"
 * @old_token: the one before, until something is said by the one that is known now; 0: none
 * @told: an administrator has said where the peer is, and it has not been heard from there yet
 * @dead: destroyed; only references are left. Read without the mutex by the carrier
 * @moving: suspended, from GATE to CONNECTED or ABORTED
 * @must_reset: ABORT or ABORTED said that an end has left RTS
 * @connected_tx: CONNECTED was sent since GATE
 * @connected_rx: CONNECTED came since GATE
 * @peer_gated: GATE, or what says that, came since it rested
 * @peer_round: of this round of the peer's; valid if @peer_gated
 * @peer_linked: and of this one CONNECTED came; valid if @connected_rx
 * @peer_over: the peer's round that has ended last; valid if @has_over
 * @has_over: see there
 * @own_round: this end's, as its shim has said last; valid if @own_begun
 * @own_begun: see there
 * @hello_busy: a HELLO is under way
 * @hello_acked: the peer has this end's token
 * @hello_again: another HELLO is wanted when this one has ended
 * @hello_tries: HELLOs in a row that were answered BUSY; not 0 while one is to be sent soon
 * @hello_at: jiffies when the last HELLO was sent
 * @expect_token: WANT was sent: a changed token in the peer's HELLO is believed
 * @moving_since: jiffies
 * @gone_at: jiffies when GONE was said last; valid if @gone_said
 * @gone_said: see there
 * @gone_waited: as to one who waits for it
 */
struct repath_conn {
	struct kref kref;
	struct hlist_node by_token;
	struct hlist_node by_qp;
	struct list_head proc_node;
	struct repath_proc *proc;
	struct repath_remote *remote;
	struct repath_device *dev;
	struct repath_qp *rqp;
	u32 id;
	u32 qpn;
	u32 dest_qpn;
	u8 state;
	struct repath_addr addr;
	struct repath_addr first;
	union ib_gid said_gid;
	u64 token;
	u64 peer_token;
	u64 old_token;
	bool told;
	bool dead;
	bool moving;
	bool must_reset;
	bool connected_tx;
	bool connected_rx;
	bool peer_gated;
	bool has_over;
	bool own_begun;
	u16 peer_round;
	u16 peer_linked;
	u16 peer_over;
	u16 own_round;
	bool hello_busy;
	bool hello_acked;
	bool hello_again;
	u8 hello_tries;
	unsigned long hello_at;
	bool expect_token;
	unsigned long moving_since;
	unsigned long gone_at;
	bool gone_said;
	bool gone_waited;
};

/**
 * struct repath_conn_moved - a peer of a process has moved
 * @proc: the process; compared only
 * @cookie: the peer
 * @from: where it was
 * @to: where it is
 */
struct repath_conn_moved {
	const struct repath_proc *proc;
	u64 cookie;
	struct repath_addr from;
	struct repath_addr to;
};

int repath_conn_init(void);
void repath_conn_exit(void);
bool repath_conn_lease_is_over(unsigned long since);
void repath_conn_lease_init(void);
void repath_conn_lease_exit(void);

/* From the tracker, in process context and in order per queue pair. */
void repath_conn_qp_connected(struct repath_qp *rqp);
void repath_conn_qp_reset(struct repath_qp *rqp);
void repath_conn_qp_gone(struct repath_qp *rqp);
/* The state of a queue pair's connection, for QP_GET: true if it has one. */
bool repath_conn_query(u32 conn_id, u8 *state);

/* The process has registered: its queue pairs that are connected already get connections. */
void repath_conn_adopt(struct repath_proc *proc);
/* The process has left: all its connections go, and GONE is sent for them. */
void repath_conn_proc_left(struct repath_proc *proc);

/* Any context that may sleep. */
void repath_conn_put(struct repath_conn *conn);
/* Its module answered UNPROVEN. Takes the mutex. */

/* All that follows: under repath_conn_mutex. Found objects are valid while it is held. */
struct repath_conn *repath_conn_by_id(u32 id);
struct repath_conn *repath_conn_by_token(u64 token);
/* By the low 16 bits of its token, among those of @proc with the process @cookie. */
struct repath_conn *repath_conn_by_name(const struct repath_proc *proc, u64 cookie, u16 name);
struct repath_conn *repath_conn_by_qp(struct repath_device *dev, u32 qpn);
struct repath_conn *repath_conn_create(struct repath_proc *proc, struct repath_qp *rqp,
				       u32 dest_qpn, const struct repath_addr *addr);
void repath_conn_destroy(struct repath_conn *conn);
void repath_conn_bind(struct repath_conn *conn, struct repath_qp *rqp);
void repath_conn_unbind(struct repath_conn *conn);
void repath_conn_lost_qp(struct repath_conn *conn);
void repath_conn_set_remote(struct repath_conn *conn, u64 cookie);
void repath_remote_put(struct repath_remote *remote);
bool repath_remote_has_been(const struct repath_remote *remote, const struct repath_addr *addr);
void repath_remote_was_at(struct repath_remote *remote, const struct repath_addr *addr);
void repath_conn_rebind(struct repath_conn *conn, struct repath_qp *rqp, u32 port, u32 sgid_index);
bool repath_conn_is_peer(const struct repath_conn *conn, u32 qpn, const u8 gid[16]);
void repath_conn_update_ready(struct repath_conn *conn);
void repath_conn_readdress(struct repath_conn *conn, const u8 gid[16], u32 lid, u32 qpn, bool told,
			   struct repath_conn_moved *last);
/* Is a message that has come one of a round of the peer's that is over? */
bool repath_conn_is_late(const struct repath_conn *conn, u8 type, u32 flags);
/* A message of @type was sent (@tx) or accepted: keeps moving, and may destroy @conn. */
void repath_conn_message(struct repath_conn *conn, u8 type, u32 flags, bool tx);
/* Its shim says that it is on no move, having heard of the peer's rounds up to @heard. */
void repath_conn_rest(struct repath_conn *conn, u16 heard);
/* Calls @fn for each connection until it returns non-zero; @fn may destroy its connection. */
struct repath_conn *repath_conn_get(struct repath_conn *conn);
int repath_conn_walk_from(u32 from, int (*fn)(struct repath_conn *conn, void *arg), void *arg);
int repath_conn_for_each(int (*fn)(struct repath_conn *conn, void *arg), void *arg);
/* How many connections @proc has on @dev, and how many of them are moving. Takes the mutex. */
void repath_conn_count(struct repath_proc *proc, const struct repath_device *dev, u32 *count,
		       u32 *moving);

/* EV_CONN; conn mutex held */
void repath_conn_tell(const struct repath_conn *conn);
/* CONN_GET */
int repath_conn_dump(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* REPATH_CONN_H */
