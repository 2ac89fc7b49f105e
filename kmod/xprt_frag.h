/* SPDX-License-Identifier: GPL-2.0 */
/* The inside of the carrier: a device's end, the messages that go out, and their fragments. */
#ifndef REPATH_XPRT_FRAG_H
#define REPATH_XPRT_FRAG_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <repath_peer.h>

#include "xprt.h"
#include "xprt_reasm.h"
#include "xprt_route.h"

struct ib_cm_event;
struct ib_cm_id;
struct repath_device;

/**
 * enum repath_xprt_kind - of what kinds messages are: each has its window
 * @REPATH_XPRT_SHIM: what shims say to each other: of who is on a move
 * @REPATH_XPRT_HELLO: of connections that are made
 * @REPATH_XPRT_ASK: RESOLVE, whoever connects waits for it
 * @REPATH_XPRT_GONE: of connections that are no more
 * @REPATH_XPRT_MOVED: to who sends datagrams
 * @REPATH_XPRT_KINDS: how many there are
 */
enum repath_xprt_kind {
	REPATH_XPRT_SHIM,
	REPATH_XPRT_HELLO,
	REPATH_XPRT_ASK,
	REPATH_XPRT_GONE,
	REPATH_XPRT_MOVED,
	REPATH_XPRT_KINDS
};

#define REPATH_XPRT_PAYERS_BITS	6

/**
 * struct repath_xprt_turns - the messages of one kind
 * @turns: those of which a fragment can be sent as soon as there is room, by struct out_msg::tag and number
 * @inflight: fragments under way
 * @now: the tag of the one that had its turn last
 * @next: the tags that the next messages of the payers get, if @now is not beyond; by a hash of the payer
 *
 * Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996), with a hash in the place of flows (McKenney's
 * stochastic fairness queueing, INFOCOM 1990): two payers of one place share a turn.
 */
struct repath_xprt_turns {
	struct rb_root_cached turns;
	unsigned int inflight;
	u64 now;
	u64 next[1 << REPATH_XPRT_PAYERS_BITS];
};

/**
 * struct repath_xprt - a device's end of the peer channel
 * @dev: the device; outlives this
 * @listener: takes SIDR_REQs
 * @lock: protects all of these but @listener, @rx_lock and @reasm, and the messages but what is @pump's alone
 * @msgs: struct out_msg in the order of sending; entries are removed by @pump alone
 * @fronts: of these, by order and port, those that wait for none of the same order to the same port
 * @kinds: and of each kind, whose turn it is
 * @kind: which of these comes next
 * @salt: of the hash of payers: who shares a turn with whom is not known
 * @finished: out of @msgs; @pump tells who has sent them
 * @sent_count: messages there have been
 * @unanswered: of @msgs, those that a release of the device waits for
 * @sent: struct out_frag under way
 * @answered: struct out_frag whose CM ID is to be destroyed
 * @inflight: fragments under way
 * @dead: the device goes away
 * @pump: sends, and reaps
 * @rx_lock: serialises incoming fragments, protects @reasm
 * @reasm: messages that come in
 * @idle: woken when @inflight becomes 0
 */
struct repath_xprt {
	struct repath_device *dev;
	struct ib_cm_id *listener;
	spinlock_t lock;
	struct list_head msgs;
	struct rb_root fronts;
	struct repath_xprt_turns kinds[REPATH_XPRT_KINDS];
	unsigned int kind;
	u64 salt;
	struct list_head finished;
	u64 sent_count;
	unsigned int unanswered;
	struct list_head sent;
	struct list_head answered;
	unsigned int inflight;
	bool dead;
	struct work_struct pump;
	struct mutex rx_lock;
	struct repath_reasm reasm;
	wait_queue_head_t idle;
};

/**
 * struct out_msg - a message that goes out
 * @node: in repath_xprt::msgs, or repath_xprt::finished
 * @front: in repath_xprt::fronts, unless it waits or has no order
 * @behind: those that wait for it, in the order of sending; of one that waits, its place there
 * @turn: in repath_xprt_turns::turns, or empty
 * @number: in the order of sending
 * @tag: when it is its turn, beside others of its kind
 * @waits: for one before it
 * @finding: its route is looked for
 * @xprt: where
 * @route: how
 * @id: number
 * @next: offset of the fragment to send next
 * @inflight: fragments under way
 * @err: the first failure
 * @status: the worst answer
 * @m: what it is; but @m.to is in @route
 */
struct out_msg {
	struct list_head node;
	struct rb_node front;
	struct list_head behind;
	struct rb_node turn;
	u64 number;
	u64 tag;
	bool waits;
	bool finding;
	struct repath_xprt *xprt;
	struct repath_route route;
	u64 id;
	u32 next;
	unsigned int inflight;
	int err;
	u8 status;
	struct repath_xprt_send m;
};

/**
 * struct out_frag - a fragment under way
 * @node: in repath_xprt::sent or repath_xprt::answered
 * @msg: of which message
 * @id: its exchange
 * @overdue: jiffies; nobody answers it any more
 * @ended: in repath_xprt::answered, or taken from there
 * @offset: in the message
 */
struct out_frag {
	struct list_head node;
	struct out_msg *msg;
	struct ib_cm_id *id;
	unsigned long overdue;
	bool ended;
	u32 offset;
};

static inline enum repath_xprt_kind repath_xprt_kind_of(const struct out_msg *msg)
{
	if (msg->m.order)
		return REPATH_XPRT_SHIM;
	if (msg->m.answer)
		return REPATH_XPRT_ASK;
	switch (msg->m.type) {
	case REPATH_MSG_GONE:
		return REPATH_XPRT_GONE;
	case REPATH_MSG_MOVED:
		return REPATH_XPRT_MOVED;
	default:
		return REPATH_XPRT_HELLO;
	}
}

/* A fragment is under way (@by: 1), or not any more (-1: repath_xprt_settle() comes next). The lock is held. */
static inline void repath_xprt_count(struct out_msg *msg, int by)
{
	struct repath_xprt *xprt = msg->xprt;

	lockdep_assert_held(&xprt->lock);
	msg->inflight += by;
	xprt->inflight += by;
	xprt->kinds[repath_xprt_kind_of(msg)].inflight += by;
	if (!xprt->inflight)
		wake_up_all(&xprt->idle);
}

/* xprt.c */
struct repath_xprt *repath_xprt_new(struct repath_device *dev);
void repath_xprt_pump(struct repath_xprt *xprt);
void repath_xprt_settle(struct out_msg *msg);

/* xprt_frag.c */
int repath_xprt_frag_send(struct repath_xprt *xprt, struct out_msg *msg, u32 offset);
void repath_xprt_frag_reap(struct repath_xprt *xprt);

/* xprt_receive.c */
int repath_xprt_listen(struct ib_cm_id *id, const struct ib_cm_event *event);

#endif /* REPATH_XPRT_FRAG_H */
