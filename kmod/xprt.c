// SPDX-License-Identifier: GPL-2.0
/*
 * The carrier of peer messages: IB CM service ID resolution (IBA 1.2.1 vol 1, 12.7.2). A message goes out
 * in fragments (xprt_frag.c), a few at a time; what comes in is put together by xprt_receive.c.
 * docs/peer-channel.md says why it is this one.
 */
#include <linux/hash.h>
#include <linux/math.h>
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

/*
 * Of each kind. To a host that is down a fragment is under way for seconds. Who connects to a thousand of them, or has lost
 * them, keeps neither those waiting who are on a move, nor those who look for somebody else.
 */
static const unsigned int windows[REPATH_XPRT_KINDS] = {
	[REPATH_XPRT_SHIM]	= DEV_WINDOW,
	[REPATH_XPRT_HELLO]	= 16,
	[REPATH_XPRT_ASK]	= 16,
	[REPATH_XPRT_GONE]	= 8,
	[REPATH_XPRT_MOVED]	= 8,
};

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
	return !msg->inflight && (msg->err || msg->status || msg->next >= msg->m.len);
}

static int compare_way(const struct out_msg *a, const struct out_msg *b)
{
	if (a->m.order != b->m.order)
		return a->m.order < b->m.order ? -1 : 1;
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
	const struct out_msg *x = rb_entry(a, struct out_msg, turn), *y = rb_entry(b, struct out_msg, turn);

	return x->tag != y->tag ? x->tag < y->tag : x->number < y->number;
}

static struct repath_xprt_turns *turns_of(const struct out_msg *msg)
{
	return &msg->xprt->kinds[repath_xprt_kind_of(msg)];
}

/* As many turns later as its payer has fragments that were sent before. */
static void set_tag(struct out_msg *msg)
{
	const struct repath_addr *to = &msg->route.addr;
	struct repath_xprt_turns *turns = turns_of(msg);
	u64 payer = msg->m.payer ? (unsigned long)msg->m.payer :
		    be64_to_cpu(to->dgid.global.subnet_prefix) ^ be64_to_cpu(to->dgid.global.interface_id) ^
		    to->dlid;
	u64 *next = &turns->next[hash_64(payer ^ msg->xprt->salt, REPATH_XPRT_PAYERS_BITS)];

	msg->tag = max(turns->now, *next);
	*next = msg->tag + DIV_ROUND_UP(msg->m.len, REPATH_FRAG_DATA);
}

/* Would a fragment of it be sent, if the windows of the device had room? */
static bool can_go_on(const struct out_msg *msg)
{
	return !msg->err && !msg->status && !msg->waits && !msg->finding && !msg->xprt->dead &&
	       msg->next < msg->m.len && msg->inflight < MSG_WINDOW;
}

static void no_turn(struct out_msg *msg)
{
	if (RB_EMPTY_NODE(&msg->turn))
		return;
	rb_erase_cached(&msg->turn, &turns_of(msg)->turns);
	RB_CLEAR_NODE(&msg->turn);
}

static void set_turn(struct out_msg *msg)
{
	lockdep_assert_held(&msg->xprt->lock);
	if (!can_go_on(msg))
		no_turn(msg);
	else if (RB_EMPTY_NODE(&msg->turn))
		rb_add_cached(&msg->turn, &turns_of(msg)->turns, is_before);
}

/*
 * A message waits for the one before it to the same process. Where a process has left is not asked long before it
 * is told where it is now: to another port it does not wait.
 */
static void line_up(struct out_msg *msg)
{
	struct rb_node *front;

	if (!msg->m.order)
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

	if (msg->waits || !msg->m.order) {
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
	return !msg->m.answer && msg->m.type != REPATH_MSG_MOVED;
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
	case -EHOSTDOWN:	/* it has been so for others a moment ago */
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
	trace_peer_tx(msg->xprt->dev->index, msg->m.type, msg->m.len, msg->err, msg->status);
	repath_route_end(&msg->route);
	msg->m.done(msg->m.arg, msg->err, msg->status);
	kvfree(msg->m.data);
	kfree(msg);
}

static bool has_room(const struct repath_xprt *xprt, enum repath_xprt_kind kind)
{
	lockdep_assert_held(&xprt->lock);
	return xprt->inflight < DEV_WINDOW && xprt->kinds[kind].inflight < windows[kind];
}

/* Of which a fragment may be sent now. Kinds take turns, and in each of them those who pay. */
static struct out_msg *next_turn(struct repath_xprt *xprt)
{
	struct rb_node *node;
	unsigned int i, kind;

	lockdep_assert_held(&xprt->lock);
	for (i = 0; i < REPATH_XPRT_KINDS; i++) {
		kind = (xprt->kind + i) % REPATH_XPRT_KINDS;
		node = rb_first_cached(&xprt->kinds[kind].turns);
		if (!node || !has_room(xprt, kind))
			continue;
		xprt->kind = kind + 1;
		return rb_entry(node, struct out_msg, turn);
	}
	return NULL;
}

/* Sends what the windows allow. */
static void msg_push(struct repath_xprt *xprt, struct out_msg *msg)
{
	lockdep_assert_held(&xprt->lock);
	while (can_go_on(msg) && has_room(xprt, repath_xprt_kind_of(msg))) {
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

/* Return: 0; -EINPROGRESS: route_ready() is called; or why it is not sent. */
static int get_ready(struct out_msg *msg, bool first)
{
	int err = first && msg->m.check ? msg->m.check(msg->m.arg) : 0;

	return err ?: repath_route_find(&msg->route, msg->xprt->dev->ibdev, route_ready, msg);
}

static void take_turn(struct repath_xprt *xprt, struct out_msg *msg)
{
	struct repath_xprt_turns *turns = turns_of(msg);
	bool first = !msg->next;
	int state;

	turns->now = max(turns->now, msg->tag);
	/* It may be found, and its turn come again, before the search for it returns. */
	msg->finding = true;
	no_turn(msg);
	spin_unlock(&xprt->lock);
	state = get_ready(msg, first);
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

static void end_finished(struct repath_xprt *xprt)
{
	struct out_msg *msg, *next;
	LIST_HEAD(finished);

	spin_lock(&xprt->lock);
	list_splice_init(&xprt->finished, &finished);
	spin_unlock(&xprt->lock);
	list_for_each_entry_safe(msg, next, &finished, node)
		msg_end(msg);
}

/* Who waits costs nothing: anybody may have thousands of messages wait, to hosts that are down. */
static void pump(struct work_struct *work)
{
	struct repath_xprt *xprt = container_of(work, struct repath_xprt, pump);
	struct out_msg *msg;

	repath_xprt_frag_reap(xprt);
	/* Before others go to the same port: check() knows by done() that it does not answer. */
	end_finished(xprt);
	spin_lock(&xprt->lock);
	while (!xprt->dead && (msg = next_turn(xprt))) {
		take_turn(xprt, msg);
		cond_resched_lock(&xprt->lock);
	}
	if (xprt->dead)
		end_all(xprt);
	spin_unlock(&xprt->lock);
	end_finished(xprt);
}

static void msg_add(struct repath_xprt *xprt, struct out_msg *msg)
{
	lockdep_assert_held(&xprt->lock);
	msg->number = xprt->sent_count++;
	set_tag(msg);
	INIT_LIST_HEAD(&msg->behind);
	RB_CLEAR_NODE(&msg->turn);
	list_add_tail(&msg->node, &xprt->msgs);
	xprt->unanswered += is_waited_for(msg);
	line_up(msg);
	set_turn(msg);
}

int repath_xprt_send(struct repath_device *dev, const struct repath_xprt_send *what)
{
	struct repath_xprt *xprt;
	struct out_msg *msg;
	int err = -EMSGSIZE;

	if (!what->len || what->len > REPATH_WIRE_MAX)
		goto err_data;
	err = -ENOMEM;
	msg = kzalloc(sizeof(*msg), GFP_KERNEL_ACCOUNT);
	if (!msg)
		goto err_data;
	msg->m = *what;
	msg->m.to = NULL;
	msg->m.answer_len = min_t(u32, what->answer_len, IB_CM_SIDR_REP_PRIVATE_DATA_SIZE -
							 sizeof(struct repath_frag_reply));
	repath_route_begin(&msg->route, what->to);
	/* Random, so that who gets messages from here can not guess those that others get. */
	msg->id = get_random_u64();

	/* Either this, or repath_xprt_remove_device(), has the device's xprt first. */
	rcu_read_lock();
	xprt = READ_ONCE(dev->xprt);
	err = -ENODEV;
	if (xprt) {
		spin_lock(&xprt->lock);
		if (!xprt->dead) {
			msg->xprt = xprt;
			msg_add(xprt, msg);
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
	kfree(msg);
err_data:
	kvfree(what->data);
	return err;
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
		xprt->kinds[kind].turns = RB_ROOT_CACHED;
	xprt->salt = get_random_u64();
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
