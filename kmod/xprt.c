// SPDX-License-Identifier: GPL-2.0
/*
 * The carrier of peer messages: IB CM service ID resolution (IBA 1.2.1 vol 1, 12.7.2), one fragment
 * in the private data of a SIDR_REQ, its answer in that of the SIDR_REP. Requests are repeated by
 * the CM. docs/peer-channel.md says why it is this one.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <repath_peer.h>

#include "device.h"
#include "hello.h"
#include "lid.h"
#include "peer.h"
#include "range.h"
#include "resolve.h"
#include "stat.h"
#include "trace.h"
#include "xprt.h"
#include "xprt_reasm.h"
#include "xprt_route.h"

static unsigned int sidr_timeout_ms = 250;
REPATH_RANGE_PARAM(sidr_timeout_ms, 10, 10000, 0644);
MODULE_PARM_DESC(sidr_timeout_ms,
		 "Time until an unanswered peer request is repeated, in ms (250; 10 to 10000)");

static unsigned int sidr_retries = 8;
REPATH_RANGE_PARAM(sidr_retries, 0, 15, 0644);
MODULE_PARM_DESC(sidr_retries, "How often an unanswered peer request is repeated (8; at most 15)");

#define MSG_WINDOW	16	/* fragments of one message under way */
#define DEV_WINDOW	64	/* of all messages of a device: QP1's queues are everybody's */
#define LOST_AFTER	(10 * HZ)	/* beyond the last retry: the CM has lost a fragment */

/**
 * struct repath_xprt - a device's end of the peer channel
 * @dev: the device; outlives this
 * @listener: takes SIDR_REQs
 * @lock: protects @msgs, @sent, @answered, @inflight, @dead and the counts of the messages
 * @msgs: struct out_msg in the order of sending; entries are removed by @pump alone
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
 * @node: in repath_xprt::msgs
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
 * @answer: where to put what comes back beside @status, or NULL
 * @answer_len: room there
 * @done: whom to tell
 * @arg: for @done
 */
struct out_msg {
	struct list_head node;
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

static struct workqueue_struct *xprt_wq;

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

/*
 * The answer of a fragment. The CM ID is not destroyed from inside its own callback, by returning
 * non-zero, but by the pump: so the module's text is not left for good before the CM has returned from it.
 */
static int frag_event(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	const struct repath_frag_reply *reply = event->private_data;
	struct out_frag *frag = id->context;
	struct out_msg *msg = frag->msg;
	struct repath_xprt *xprt = msg->xprt;
	u8 status = REPATH_PEER_OK;
	int err = 0;

	switch (event->event) {
	case IB_CM_SIDR_REP_RECEIVED:
		if (event->param.sidr_rep_rcvd.status != IB_SIDR_SUCCESS)
			err = -ENOPROTOOPT;
		else if (be64_to_cpu(reply->msg_id) != msg->id ||
			 be32_to_cpu(reply->offset) != frag->offset)
			err = -EBADMSG;
		else if (reply->version != REPATH_PEER_VERSION)
			status = REPATH_PEER_VERSION_ERR;
		else
			status = reply->status;
		break;
	case IB_CM_SIDR_REQ_ERROR:
		err = event->param.send_status == IB_WC_RESP_TIMEOUT_ERR ? -ETIMEDOUT
									 : -EHOSTUNREACH;
		break;
	default:
		return 0;
	}

	spin_lock(&xprt->lock);
	/* Else it was given up. */
	if (!frag->ended) {
		frag->ended = true;
		if (err && !msg->err)
			msg->err = err;
		if (status)
			msg->status = status;
		if (!err && !status && msg->answer)
			memcpy(msg->answer, reply + 1, msg->answer_len);
		list_move_tail(&frag->node, &xprt->answered);
		queue_work(xprt_wq, &xprt->pump);
	}
	spin_unlock(&xprt->lock);
	return 0;
}

static int frag_send(struct repath_xprt *xprt, struct out_msg *msg, u32 offset)
{
	u32 bytes = min_t(u32, REPATH_FRAG_DATA, msg->len - offset);
	struct ib_cm_sidr_req_param param = {
		.sgid_attr		= msg->route.sgid_attr,
		.service_id		= cpu_to_be64(REPATH_SERVICE_ID),
		.timeout_ms		= READ_ONCE(sidr_timeout_ms),
		.max_cm_retries		= READ_ONCE(sidr_retries),
	};
	struct sa_path_rec path;
	struct repath_frag pdata = {
		.version	= REPATH_PEER_VERSION,
		.type		= msg->type,
		.total		= cpu_to_be32(msg->len),
		.msg_id		= cpu_to_be64(msg->id),
		.offset		= cpu_to_be32(offset),
	};
	struct out_frag *frag;
	int err;

	BUILD_BUG_ON(sizeof(struct repath_frag) > IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE);
	frag = kzalloc(sizeof(*frag), GFP_KERNEL);
	if (!frag)
		return -ENOMEM;
	frag->msg = msg;
	frag->offset = offset;
	memcpy(pdata.data, msg->data + offset, bytes);
	repath_route_path(&msg->route, repath_lid(xprt->dev, msg->route.addr.port), &path);
	param.path = &path;
	param.private_data = &pdata;
	param.private_data_len = sizeof(pdata);

	frag->id = ib_create_cm_id(xprt->dev->ibdev, frag_event, frag);
	if (IS_ERR(frag->id)) {
		err = PTR_ERR(frag->id);
		goto err_frag;
	}
	frag->overdue = jiffies + LOST_AFTER +
			msecs_to_jiffies(param.timeout_ms * (param.max_cm_retries + 1));
	/* The answer may be there before the CM returns. */
	spin_lock(&xprt->lock);
	list_add_tail(&frag->node, &xprt->sent);
	spin_unlock(&xprt->lock);
	err = ib_send_cm_sidr_req(frag->id, &param);
	if (err)
		goto err_id;
	repath_stat_inc(xprt->dev, REPATH_STAT_TX_FRAG);
	return 0;

err_id:
	spin_lock(&xprt->lock);
	list_del(&frag->node);
	spin_unlock(&xprt->lock);
	ib_destroy_cm_id(frag->id);
err_frag:
	kfree(frag);
	return err;
}

/*
 * The CM says nothing of a request that a broken device has flushed from QP1. Nothing else would
 * end it, and whoever removes the device would wait for ever.
 */
static void give_up_lost(struct repath_xprt *xprt)
{
	struct out_frag *frag, *next;

	lockdep_assert_held(&xprt->lock);
	list_for_each_entry_safe(frag, next, &xprt->sent, node) {
		if (time_before(jiffies, frag->overdue))
			continue;
		frag->ended = true;
		if (!frag->msg->err)
			frag->msg->err = -ETIMEDOUT;
		list_move_tail(&frag->node, &xprt->answered);
	}
}

static void reap_answered(struct repath_xprt *xprt)
{
	struct out_frag *frag;

	spin_lock(&xprt->lock);
	give_up_lost(xprt);
	while ((frag = list_first_entry_or_null(&xprt->answered, struct out_frag, node))) {
		list_del(&frag->node);
		spin_unlock(&xprt->lock);
		/* Waits until the callback has returned. */
		ib_destroy_cm_id(frag->id);
		spin_lock(&xprt->lock);
		frag->msg->inflight--;
		if (!--xprt->inflight)
			wake_up_all(&xprt->idle);
		kfree(frag);
	}
	spin_unlock(&xprt->lock);
}

static bool is_finished(const struct out_msg *msg)
{
	return !msg->inflight && (msg->err || msg->status || msg->next >= msg->len);
}

/* Where a process has left is not asked long before it is told where it is now. */
static bool same_port(const struct out_msg *a, const struct out_msg *b)
{
	return a->route.addr.dlid == b->route.addr.dlid &&
	       !memcmp(&a->route.addr.dgid, &b->route.addr.dgid, sizeof(a->route.addr.dgid));
}

/* A message waits for the one before it to the same process. */
static bool must_wait(struct repath_xprt *xprt, const struct out_msg *msg)
{
	const struct out_msg *other;

	lockdep_assert_held(&xprt->lock);
	if (!msg->order)
		return false;
	list_for_each_entry(other, &xprt->msgs, node) {
		if (other == msg)
			return false;
		if (other->order == msg->order && same_port(other, msg))
			return true;
	}
	return false;
}

static void route_ready(void *arg)
{
	struct out_msg *msg = arg;

	queue_work(xprt_wq, &msg->xprt->pump);
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

/* Sends what the windows allow. */
static void msg_push(struct repath_xprt *xprt, struct out_msg *msg)
{
	lockdep_assert_held(&xprt->lock);
	while (!msg->err && !msg->status && !xprt->dead && msg->next < msg->len &&
	       msg->inflight < MSG_WINDOW && xprt->inflight < DEV_WINDOW) {
		u32 offset = msg->next;
		int err;

		msg->next += REPATH_FRAG_DATA;
		msg->inflight++;
		xprt->inflight++;
		spin_unlock(&xprt->lock);
		err = frag_send(xprt, msg, offset);
		spin_lock(&xprt->lock);
		if (err) {
			msg->inflight--;
			if (!--xprt->inflight)
				wake_up_all(&xprt->idle);
			if (!msg->err)
				msg->err = err;
		}
	}
}

static void xprt_pump(struct work_struct *work)
{
	struct repath_xprt *xprt = container_of(work, struct repath_xprt, pump);
	struct out_msg *msg, *next;
	LIST_HEAD(finished);
	int state;

	reap_answered(xprt);
	spin_lock(&xprt->lock);
	/* The lock is dropped inside; entries are only ever added, at the end, by others. */
	list_for_each_entry_safe(msg, next, &xprt->msgs, node) {
		if (xprt->dead && !msg->err)
			msg->err = -ESHUTDOWN;
		if (!msg->err && !must_wait(xprt, msg)) {
			spin_unlock(&xprt->lock);
			state = repath_route_find(&msg->route, xprt->dev->ibdev, route_ready, msg);
			spin_lock(&xprt->lock);
			if (state < 0 && state != -EINPROGRESS)
				msg->err = state;
			else if (!state)
				msg_push(xprt, msg);
		}
		if (is_finished(msg)) {
			/* What waits behind it is seen later in this round, or has been passed. */
			next = list_next_entry(msg, node);
			list_move_tail(&msg->node, &finished);
		}
	}
	spin_unlock(&xprt->lock);

	list_for_each_entry_safe(msg, next, &finished, node)
		msg_end(msg);
}

static int msg_send(struct repath_device *dev, const struct repath_addr *to, struct out_msg msg)
{
	struct repath_xprt *xprt;
	struct out_msg *m;
	int err = -EMSGSIZE;

	if (!msg.len || msg.len > REPATH_WIRE_MAX)
		goto err_data;
	err = -ENOMEM;
	m = kmemdup(&msg, sizeof(msg), GFP_KERNEL);
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
			list_add_tail(&m->node, &xprt->msgs);
			queue_work(xprt_wq, &xprt->pump);
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
 */
bool repath_xprt_busy(struct repath_device *dev)
{
	struct repath_xprt *xprt;
	bool busy = false;

	rcu_read_lock();
	xprt = READ_ONCE(dev->xprt);
	if (xprt) {
		spin_lock(&xprt->lock);
		busy = !xprt->dead && !list_empty(&xprt->msgs);
		spin_unlock(&xprt->lock);
	}
	rcu_read_unlock();
	return busy;
}

/* --- receiving --- */

static u8 receive(struct repath_xprt *xprt, const struct repath_frag *frag)
{
	struct repath_inmsg *msg;
	bool again;
	u8 status;

	mutex_lock(&xprt->rx_lock);
	repath_stat_inc(xprt->dev, REPATH_STAT_RX_FRAG);
	again = repath_reasm_has(&xprt->reasm, frag);
	if (again)
		repath_stat_inc(xprt->dev, REPATH_STAT_RX_FRAG_AGAIN);
	status = repath_reasm_add(&xprt->reasm, frag, IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE, &msg);
	if (msg) {
		repath_stat_inc(xprt->dev, REPATH_STAT_RX_MSG);
		if (msg->type == REPATH_MSG_HELLO)
			status = repath_hello_receive(xprt->dev, msg->data, msg->total);
		else if (msg->type == REPATH_MSG_MOVED)
			status = repath_resolve_moved(msg->data, msg->total);
		else
			status = repath_peer_receive(xprt->dev, msg->type, msg->data, msg->total);
		trace_peer_rx(xprt->dev->index, msg->type, msg->total, status);
		repath_reasm_done(&xprt->reasm, msg, status);
	}
	/* Each message once; and what never becomes one. */
	if (msg || (status != REPATH_PEER_OK && !again))
		repath_stat_inc(xprt->dev, repath_stat_of_status(status, true));
	mutex_unlock(&xprt->rx_lock);
	return status;
}

/*
 * A question, which is one fragment. Asked again it is answered again, with what is true then: what
 * was answered is not kept.
 */
static u8 receive_question(struct repath_xprt *xprt, const struct repath_frag *frag,
			   struct repath_resolved *answer)
{
	if (frag->version != REPATH_PEER_VERSION)
		return REPATH_PEER_VERSION_ERR;
	if (frag->reserved || frag->offset ||
	    be32_to_cpu(frag->total) != sizeof(struct repath_resolve))
		return REPATH_PEER_MALFORMED;
	return repath_resolve_answer(xprt->dev, frag->data, sizeof(struct repath_resolve), answer);
}

static int listen_event(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	const struct repath_frag *frag = event->private_data;
	struct repath_xprt *xprt = id->context;
	struct {
		struct repath_frag_reply head;
		struct repath_resolved answer;
	} __packed reply = { .head.version = REPATH_PEER_VERSION };
	struct ib_cm_sidr_rep_param param = {
		.status			= IB_SIDR_SUCCESS,
		.private_data		= &reply,
		.private_data_len	= sizeof(reply),
	};

	BUILD_BUG_ON(sizeof(reply) > IB_CM_SIDR_REP_PRIVATE_DATA_SIZE);
	BUILD_BUG_ON(sizeof(struct repath_resolve) > REPATH_FRAG_DATA);
	if (event->event != IB_CM_SIDR_REQ_RECEIVED)
		return 0;
	reply.head.msg_id = frag->msg_id;
	reply.head.offset = frag->offset;
	if (frag->type == REPATH_MSG_RESOLVE)
		reply.head.status = receive_question(xprt, frag, &reply.answer);
	else
		reply.head.status = receive(xprt, frag);
	/* If it can not be sent, the request comes again. */
	ib_send_cm_sidr_rep(id, &param);
	return 1;
}

/* --- devices --- */

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

	xprt = kzalloc(sizeof(*xprt), GFP_KERNEL);
	if (!xprt)
		return -ENOMEM;
	xprt->dev = dev;
	spin_lock_init(&xprt->lock);
	INIT_LIST_HEAD(&xprt->msgs);
	INIT_LIST_HEAD(&xprt->sent);
	INIT_LIST_HEAD(&xprt->answered);
	INIT_WORK(&xprt->pump, xprt_pump);
	mutex_init(&xprt->rx_lock);
	repath_reasm_init(&xprt->reasm);
	init_waitqueue_head(&xprt->idle);

	xprt->listener = ib_create_cm_id(dev->ibdev, listen_event, xprt);
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
		queue_work(xprt_wq, &xprt->pump);
	/* A round on a dead device ends every message, and with it the search for its route. */
	queue_work(xprt_wq, &xprt->pump);
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
