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

/* Of what kinds messages are: each has its window. */
#define REPATH_XPRT_KINDS	4

/**
 * struct repath_xprt - a device's end of the peer channel
 * @dev: the device; outlives this
 * @listener: takes SIDR_REQs
 * @lock: protects all of these but @listener, @rx_lock and @reasm, and the messages but what is @pump's alone
 * @msgs: struct out_msg in the order of sending; entries are removed by @pump alone
 * @fronts: of these, by order and port, those that wait for none of the same order to the same port
 * @turns: and of each kind, in the order of sending, those of which a fragment can be sent as soon as a window has room
 * @finished: out of @msgs; @pump tells who has sent them
 * @sent_count: messages there have been
 * @unanswered: of @msgs, those that a release of the device waits for
 * @sent: struct out_frag under way
 * @answered: struct out_frag whose CM ID is to be destroyed
 * @inflight: fragments under way
 * @own: of these, of messages of the module itself
 * @idle_talk: of these, of what nobody waits for who is on a move
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
	struct rb_root_cached turns[REPATH_XPRT_KINDS];
	struct list_head finished;
	u64 sent_count;
	unsigned int unanswered;
	struct list_head sent;
	struct list_head answered;
	unsigned int inflight;
	unsigned int own;
	unsigned int idle_talk;
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
 * @turn: in repath_xprt::turns, or empty
 * @number: in the order of sending
 * @waits: for one before it
 * @finding: its route is looked for
 * @xprt: where
 * @route: how
 * @order: see repath_xprt_send()
 * @id: number
 * @len: bytes
 * @next: offset of the fragment to send next
 * @inflight: fragments under way
 * @err: the first failure
 * @type: enum repath_msg
 * @status: the worst answer
 * @data: the message
 * @forgotten: see repath_xprt_send_unless(), or NULL
 * @answer: where to put what comes back beside @status, or NULL
 * @answer_len: room there
 * @done: whom to tell
 * @arg: for @done
 */
struct out_msg {
	struct list_head node;
	struct rb_node front;
	struct list_head behind;
	struct rb_node turn;
	u64 number;
	bool waits;
	bool finding;
	struct repath_xprt *xprt;
	struct repath_route route;
	u64 order;
	u64 id;
	u32 len;
	u32 next;
	unsigned int inflight;
	int err;
	u8 type;
	u8 status;
	void *data;
	const bool *forgotten;
	void *answer;
	u32 answer_len;
	repath_xprt_done_fn done;
	void *arg;
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

/* What a shim says has an order; all else the module says. */
static inline bool repath_xprt_is_own(const struct out_msg *msg)
{
	return !msg->order;
}

/* Where others are or this end is, and that somebody is gone, who may be so for the same reason as all of his host. */
static inline bool repath_xprt_is_idle_talk(const struct out_msg *msg)
{
	return msg->answer || msg->type == REPATH_MSG_GONE || msg->type == REPATH_MSG_MOVED;
}

/* A fragment is under way (@by: 1), or not any more (-1: repath_xprt_settle() comes next). The lock is held. */
static inline void repath_xprt_count(struct out_msg *msg, int by)
{
	struct repath_xprt *xprt = msg->xprt;

	lockdep_assert_held(&xprt->lock);
	msg->inflight += by;
	xprt->inflight += by;
	if (repath_xprt_is_own(msg))
		xprt->own += by;
	if (repath_xprt_is_idle_talk(msg))
		xprt->idle_talk += by;
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
