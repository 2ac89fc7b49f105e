// SPDX-License-Identifier: GPL-2.0
/*
 * The carrier of peer messages: IB CM service ID resolution (IBA 1.2.1 vol 1, 12.7.2). A message goes out
 * in fragments (xprt_frag.c), a few at a time; what comes in is put together by xprt_receive.c.
 * docs/peer-channel.md says why it is this one.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_cm.h>

#include "device.h"
#include "hello.h"
#include "stat.h"
#include "trace.h"
#include "xprt_frag.h"

#define MSG_WINDOW	16	/* fragments of one message under way */
#define DEV_WINDOW	64	/* of all messages of a device: QP1's queues are everybody's */
#define OWN_WINDOW	48	/* of these, at most, of what the module itself says */
#define IDLE_WINDOW	32	/* and of what can wait */

static struct workqueue_struct *xprt_wq;

/**
 * repath_xprt_pump - have the carrier go on
 * @xprt: a device's end
 *
 * Context: any.
 */
void repath_xprt_pump(struct repath_xprt *xprt)
{
	queue_work(xprt_wq, &xprt->pump);
}

/**
 * repath_xprt_status_errno - what an answer means to the sender
 * @status: enum repath_peer_status
 *
 * Return: a positive errno, 0 for an accepted message.
 */
int repath_xprt_status_errno(u8 status)
{
	switch (status) {
	case REPATH_PEER_OK:
		return 0;
	case REPATH_PEER_PENDING:
	case REPATH_PEER_BUSY:
	case REPATH_PEER_UNPROVEN:
		return EAGAIN;
	case REPATH_PEER_NO_SHIM:
		return EOPNOTSUPP;
	case REPATH_PEER_NO_QP:
		return ENOENT;
	case REPATH_PEER_BAD_TOKEN:
		return EACCES;
	case REPATH_PEER_SOME_BAD:
		return EKEYREJECTED;
	case REPATH_PEER_VERSION_ERR:
		return EPROTO;
	default:
		return EBADMSG;
	}
}

/* --- sending --- */

static bool is_finished(const struct out_msg *msg)
{
	return !msg->inflight && (msg->err || msg->status || msg->next >= msg->len);
}

static int compare_way(const struct out_msg *a, const struct out_msg *b)
{
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	if (a->route.addr.dlid != b->route.addr.dlid)
		return a->route.addr.dlid < b->route.addr.dlid ? -1 : 1;
	return memcmp(&a->route.addr.dgid, &b->route.addr.dgid, sizeof(a->route.addr.dgid));
}

static int compare_fronts(struct rb_node *a, const struct rb_node *b)
{
	return compare_way(rb_entry(a, struct out_msg, front), rb_entry(b, struct out_msg, front));
}

static bool is_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct out_msg, turn)->number < rb_entry(b, struct out_msg, turn)->number;
}

static struct rb_root_cached *turns_of(struct repath_xprt *xprt, const struct out_msg *msg)
{
	return &xprt->turns[repath_xprt_is_own(msg) + 2 * repath_xprt_is_idle_talk(msg)];
}

/* Would a fragment of it be sent, if the windows of the device had room? */
static bool can_go_on(const struct out_msg *msg)
{
	return !msg->err && !msg->status && !msg->waits && !msg->finding && !msg->xprt->dead &&
	       msg->next < msg->len && msg->inflight < MSG_WINDOW;
}

static void no_turn(struct out_msg *msg)
{
	if (RB_EMPTY_NODE(&msg->turn))
		return;
	rb_erase_cached(&msg->turn, turns_of(msg->xprt, msg));
	RB_CLEAR_NODE(&msg->turn);
}

static void set_turn(struct out_msg *msg)
{
	lockdep_assert_held(&msg->xprt->lock);
	if (!can_go_on(msg))
		no_turn(msg);
	else if (RB_EMPTY_NODE(&msg->turn))
		rb_add_cached(&msg->turn, turns_of(msg->xprt, msg), is_before);
}

/*
 * A message waits for the one before it to the same process. Where a process has left is not asked long before it
 * is told where it is now: to another port it does not wait.
 */
static void line_up(struct out_msg *msg)
{
	struct rb_node *front;

	if (!msg->order)
		return;
	front = rb_find_add(&msg->front, &msg->xprt->fronts, compare_fronts);
	if (!front)
		return;
	msg->waits = true;
	list_add_tail(&msg->behind, &rb_entry(front, struct out_msg, front)->behind);
}

/* The next one, with those behind it, takes its place. */
static void leave_line(struct out_msg *msg)
{
	struct out_msg *next;

	if (msg->waits || !msg->order) {
		list_del_init(&msg->behind);
		return;
	}
	if (list_empty(&msg->behind)) {
		rb_erase(&msg->front, &msg->xprt->fronts);
		return;
	}
	next = list_first_entry(&msg->behind, struct out_msg, behind);
	list_del_init(&msg->behind);
	rb_replace_node(&msg->front, &next->front, &msg->xprt->fronts);
	next->waits = false;
	set_turn(next);
}

/*
 * Who releases a device does not wait for questions: who asks where somebody is can ask from elsewhere. Nor for where
 * a queue pair has gone to, which is said from where it goes next. There may be always some, to hosts that are down, also
 * of processes that do not have the device open.
 */
static bool is_waited_for(const struct out_msg *msg)
{
	return !msg->answer && msg->type != REPATH_MSG_MOVED;
}

/**
 * repath_xprt_settle - something has become of a message
 * @msg: message; if it has ended it is not valid any more when the lock is dropped and the pump goes on
 *
 * Context: the pump, repath_xprt::lock held.
 */
void repath_xprt_settle(struct out_msg *msg)
{
	struct repath_xprt *xprt = msg->xprt;

	set_turn(msg);
	if (!is_finished(msg))
		return;
	msg->finding = false;
	leave_line(msg);
	xprt->unanswered -= is_waited_for(msg);
	list_move_tail(&msg->node, &xprt->finished);
}

/* It may have ended meanwhile, with its device. */
static void route_ready(void *arg)
{
	struct out_msg *msg = arg;
	struct repath_xprt *xprt = msg->xprt;

	spin_lock(&xprt->lock);
	if (msg->finding) {
		msg->finding = false;
		set_turn(msg);
	}
	spin_unlock(&xprt->lock);
	repath_xprt_pump(xprt);
}

static void count_end(const struct out_msg *msg)
{
	struct repath_device *dev = msg->xprt->dev;

	switch (msg->err) {
	case 0:
		repath_stat_inc(dev, repath_stat_of_status(msg->status, false));
		break;
	case -ETIMEDOUT:
		repath_stat_inc(dev, REPATH_STAT_TX_TIMEOUT);
		break;
	case -EHOSTUNREACH:
		repath_stat_inc(dev, REPATH_STAT_TX_UNREACHABLE);
		break;
	case -ENOPROTOOPT:
		repath_stat_inc(dev, REPATH_STAT_TX_NO_MODULE);
		break;
	default:
		repath_stat_inc(dev, REPATH_STAT_TX_ERROR);
		break;
	}
}

static void msg_end(struct out_msg *msg)
{
	count_end(msg);
	trace_peer_tx(msg->xprt->dev->index, msg->type, msg->len, msg->err, msg->status);
	repath_route_end(&msg->route);
	msg->done(msg->arg, msg->err, msg->status);
	kvfree(msg->data);
	kfree(msg);
}

/*
 * To a host that is down a fragment is under way for seconds. Who connects to a thousand of them, asks for them, or
 * has lost them, does not keep those waiting who are on a move.
 */
static bool has_room(const struct repath_xprt *xprt, const struct out_msg *msg)
{
	lockdep_assert_held(&xprt->lock);
	if (xprt->inflight >= DEV_WINDOW)
		return false;
	if (repath_xprt_is_own(msg) && xprt->own >= OWN_WINDOW)
		return false;
	return !repath_xprt_is_idle_talk(msg) || xprt->idle_talk < IDLE_WINDOW;
}

/* The one that was sent first, of those of which a fragment may be sent now. */
static struct out_msg *next_turn(struct repath_xprt *xprt)
{
	struct out_msg *msg, *first = NULL;
	struct rb_node *node;
	unsigned int kind;

	lockdep_assert_held(&xprt->lock);
	for (kind = 0; kind < REPATH_XPRT_KINDS; kind++) {
		node = rb_first_cached(&xprt->turns[kind]);
		msg = node ? rb_entry(node, struct out_msg, turn) : NULL;
		if (msg && has_room(xprt, msg) && (!first || msg->number < first->number))
			first = msg;
	}
	return first;
}

/* Sends what the windows allow. */
static void msg_push(struct repath_xprt *xprt, struct out_msg *msg)
{
	lockdep_assert_held(&xprt->lock);
	while (can_go_on(msg) && has_room(xprt, msg)) {
		u32 offset = msg->next;
		int err;

		msg->next += REPATH_FRAG_DATA;
		repath_xprt_count(msg, 1);
		spin_unlock(&xprt->lock);
		err = repath_xprt_frag_send(xprt, msg, offset);
		spin_lock(&xprt->lock);
		if (err) {
			repath_xprt_count(msg, -1);
			if (!msg->err)
				msg->err = err;
		}
	}
}

static void take_turn(struct repath_xprt *xprt, struct out_msg *msg)
{
	int state;

	if (msg->forgotten && !msg->next && READ_ONCE(*msg->forgotten)) {
		msg->err = -ECANCELED;
		repath_xprt_settle(msg);
		return;
	}
	/* It may be found, and its turn come again, before the search for it returns. */
	msg->finding = true;
	no_turn(msg);
	spin_unlock(&xprt->lock);
	state = repath_route_find(&msg->route, xprt->dev->ibdev, route_ready, msg);
	spin_lock(&xprt->lock);
	if (state == -EINPROGRESS)
		return;
	msg->finding = false;
	if (state)
		msg->err = state;
	else
		msg_push(xprt, msg);
	repath_xprt_settle(msg);
}

/* Those that have nothing under way end at once. */
static void end_all(struct repath_xprt *xprt)
{
	struct out_msg *msg, *next;

	lockdep_assert_held(&xprt->lock);
	/* The lock is dropped inside; nothing is added any more, and removed only here. */
	list_for_each_entry_safe(msg, next, &xprt->msgs, node) {
		if (!msg->err)
			msg->err = -ESHUTDOWN;
		repath_xprt_settle(msg);
		cond_resched_lock(&xprt->lock);
	}
}

/* Who waits costs nothing: anybody may have thousands of messages wait, to hosts that are down. */
static void pump(struct work_struct *work)
{
	struct repath_xprt *xprt = container_of(work, struct repath_xprt, pump);
	struct out_msg *msg, *next;
	LIST_HEAD(finished);

	repath_xprt_frag_reap(xprt);
	spin_lock(&xprt->lock);
	while (!xprt->dead && (msg = next_turn(xprt))) {
		take_turn(xprt, msg);
		cond_resched_lock(&xprt->lock);
	}
	if (xprt->dead)
		end_all(xprt);
	list_splice_init(&xprt->finished, &finished);
	spin_unlock(&xprt->lock);

	list_for_each_entry_safe(msg, next, &finished, node)
		msg_end(msg);
}

static void msg_add(struct repath_xprt *xprt, struct out_msg *msg)
{
	lockdep_assert_held(&xprt->lock);
	msg->number = xprt->sent_count++;
	INIT_LIST_HEAD(&msg->behind);
	RB_CLEAR_NODE(&msg->turn);
	list_add_tail(&msg->node, &xprt->msgs);
	xprt->unanswered += is_waited_for(msg);
	line_up(msg);
	set_turn(msg);
}

static int msg_send(struct repath_device *dev, const struct repath_addr *to, struct out_msg msg)
{
	struct repath_xprt *xprt;
	struct out_msg *m;
	int err = -EMSGSIZE;

	if (!msg.len || msg.len > REPATH_WIRE_MAX)
		goto err_data;
	err = -ENOMEM;
	m = kmemdup(&msg, sizeof(msg), GFP_KERNEL_ACCOUNT);
	if (!m)
		goto err_data;
	repath_route_begin(&m->route, to);
	/* Random, so that who gets messages from here can not guess those that others get. */
	m->id = get_random_u64();

	/* Either this, or repath_xprt_remove_device(), has the device's xprt first. */
	rcu_read_lock();
	xprt = READ_ONCE(dev->xprt);
	err = -ENODEV;
	if (xprt) {
		spin_lock(&xprt->lock);
		if (!xprt->dead) {
			m->xprt = xprt;
			msg_add(xprt, m);
			repath_xprt_pump(xprt);
			err = 0;
		}
		spin_unlock(&xprt->lock);
	}
	rcu_read_unlock();
	if (!err) {
		repath_stat_inc(dev, REPATH_STAT_TX_MSG);
		return 0;
	}
	kfree(m);
err_data:
	kvfree(msg.data);
	return err;
}

int repath_xprt_send(struct repath_device *dev, const struct repath_addr *to, u64 order, u8 type,
		     void *data, u32 len, repath_xprt_done_fn done, void *arg)
{
	return msg_send(dev, to, (struct out_msg){
		.order = order, .type = type, .data = data, .len = len, .done = done, .arg = arg,
	});
}

int repath_xprt_send_unless(struct repath_device *dev, const struct repath_addr *to, u8 type,
			    void *data, u32 len, const bool *forgotten, repath_xprt_done_fn done,
			    void *arg)
{
	return msg_send(dev, to, (struct out_msg){
		.type = type, .data = data, .len = len, .done = done, .arg = arg,
		.forgotten = forgotten,
	});
}

int repath_xprt_ask(struct repath_device *dev, const struct repath_addr *to, u8 type, void *data,
		    u32 len, void *answer, u32 answer_len, repath_xprt_done_fn done, void *arg)
{
	return msg_send(dev, to, (struct out_msg){
		.type = type, .data = data, .len = len, .done = done, .arg = arg,
		.answer = answer,
		.answer_len = min_t(u32, answer_len, IB_CM_SIDR_REP_PRIVATE_DATA_SIZE -
						     sizeof(struct repath_frag_reply)),
	});
}

/**
 * repath_xprt_busy - are there messages that were not answered yet?
 * @dev: device
 *
 * Questions do not count, nor does where a queue pair has gone to.
 */
bool repath_xprt_busy(struct repath_device *dev)
{
	struct repath_xprt *xprt;
	bool busy = false;

	rcu_read_lock();
	xprt = READ_ONCE(dev->xprt);
	if (xprt) {
		spin_lock(&xprt->lock);
		busy = xprt->unanswered && !xprt->dead;
		spin_unlock(&xprt->lock);
	}
	rcu_read_unlock();
	return busy;
}

/* --- devices --- */

/**
 * repath_xprt_new - a device's end, which nobody finds yet
 * @dev: device
 *
 * Return: to be freed with kfree(), or NULL without memory.
 */
struct repath_xprt *repath_xprt_new(struct repath_device *dev)
{
	struct repath_xprt *xprt = kzalloc(sizeof(*xprt), GFP_KERNEL);
	unsigned int kind;

	if (!xprt)
		return NULL;
	xprt->dev = dev;
	spin_lock_init(&xprt->lock);
	INIT_LIST_HEAD(&xprt->msgs);
	INIT_LIST_HEAD(&xprt->finished);
	xprt->fronts = RB_ROOT;
	for (kind = 0; kind < REPATH_XPRT_KINDS; kind++)
		xprt->turns[kind] = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&xprt->sent);
	INIT_LIST_HEAD(&xprt->answered);
	INIT_WORK(&xprt->pump, pump);
	mutex_init(&xprt->rx_lock);
	repath_reasm_init(&xprt->reasm);
	init_waitqueue_head(&xprt->idle);
	return xprt;
}

/**
 * repath_xprt_add_device - open the peer channel on a device
 * @dev: device
 *
 * Return: 0, or why not: -EOPNOTSUPP where no port has a CM.
 */
int repath_xprt_add_device(struct repath_device *dev)
{
	struct repath_xprt *xprt;
	bool has_cm = false;
	u32 port;
	int err;

	rdma_for_each_port(dev->ibdev, port)
		has_cm |= rdma_cap_ib_cm(dev->ibdev, port);
	if (!has_cm)
		return -EOPNOTSUPP;

	xprt = repath_xprt_new(dev);
	if (!xprt)
		return -ENOMEM;
	xprt->listener = ib_create_cm_id(dev->ibdev, repath_xprt_listen, xprt);
	if (IS_ERR(xprt->listener)) {
		err = PTR_ERR(xprt->listener);
		goto err_xprt;
	}
	/* Senders find it without a lock: it is complete before it can be found. */
	smp_store_release(&dev->xprt, xprt);
	err = ib_cm_listen(xprt->listener, cpu_to_be64(REPATH_SERVICE_ID));
	if (err)
		goto err_listener;
	return 0;

err_listener:
	WRITE_ONCE(dev->xprt, NULL);
	ib_destroy_cm_id(xprt->listener);
	synchronize_rcu();
err_xprt:
	kfree(xprt);
	return err;
}

static bool is_idle(struct repath_xprt *xprt)
{
	bool idle;

	spin_lock(&xprt->lock);
	idle = !xprt->inflight;
	spin_unlock(&xprt->lock);
	return idle;
}

/**
 * repath_xprt_remove_device - close the peer channel on a device
 * @dev: device, as added
 *
 * Who could still use it, and why that ends:
 * (1) callbacks of incoming requests: destroying the listener waits for them;
 * (2) callbacks of answers: each fragment under way is answered, or its retries end, in a time
 *     that is bounded by the module's parameters. They are not cancelled before: ib_cm calls back
 *     without a reference when a send fails, and could not be kept from using a destroyed CM ID.
 *     What the CM has lost the pump gives up some time later, when no call can come;
 * (3) senders: see the device dead under the lock, or have the pointer no more.
 * All messages are told -ESHUTDOWN.
 */
void repath_xprt_remove_device(struct repath_device *dev)
{
	struct repath_xprt *xprt = dev->xprt;

	ib_destroy_cm_id(xprt->listener);
	WRITE_ONCE(dev->xprt, NULL);
	spin_lock(&xprt->lock);
	xprt->dead = true;
	spin_unlock(&xprt->lock);
	synchronize_rcu();

	while (!wait_event_timeout(xprt->idle, is_idle(xprt), HZ))
		repath_xprt_pump(xprt);
	/* A round on a dead device ends every message, and with it the search for its route. */
	repath_xprt_pump(xprt);
	flush_work(&xprt->pump);
	cancel_work_sync(&xprt->pump);
	WARN_ON(!list_empty(&xprt->msgs));
	repath_hello_device_removed(dev);
	repath_reasm_destroy(&xprt->reasm);
	kfree(xprt);
}

int repath_xprt_init(void)
{
	xprt_wq = alloc_workqueue("repath_xprt", WQ_UNBOUND, 0);
	return xprt_wq ? 0 : -ENOMEM;
}

/* No device is left, so no work is, either. */
void repath_xprt_exit(void)
{
	destroy_workqueue(xprt_wq);
}
