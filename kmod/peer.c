// SPDX-License-Identifier: GPL-2.0
/*
 * Messages from shim to shim. A message names connections; this end's module adds the tokens, the
 * other end's takes them off, so a process can speak for its own connections only.
 */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "gone.h"
#include "hello.h"
#include "lid.h"
#include "netlink.h"
#include "op.h"
#include "peer.h"
#include "peer_wire.h"
#include "proc.h"
#include "silent.h"
#include "track.h"

/* What a process's messages under way may take of memory, and what each takes besides itself. */
#define SENDING_MAX	(16 << 20)
#define LETTER_COST	1024

#define GONE_AGAIN	HZ	/* GONE of one connection is begun no more often */

/**
 * struct out_letter - a message under way
 * @work: delivers it on this host
 * @proc: who sent it and is told of its end; NULL: nobody is. Holds a reference
 * @remote: to whom; holds a reference
 * @to: where to
 * @type: enum repath_msg
 * @told: it goes to where an administrator has said that the peer is
 * @msg_id: @proc's number
 * @data: the message, for @work
 * @len: bytes of the message
 */
struct out_letter {
	struct work_struct work;
	struct repath_proc *proc;
	struct repath_remote *remote;
	struct repath_addr to;
	u8 type;
	bool told;
	u64 msg_id;
	void *data;
	u32 len;
};

static struct workqueue_struct *local_wq;
static atomic64_t bad_tokens = ATOMIC64_INIT(0);

u64 repath_peer_bad_tokens(void)
{
	return atomic64_read(&bad_tokens);
}

/* --- sending --- */

static void tell_sent(struct repath_proc *proc, u32 peer_id, u8 type, u64 msg_id, int err)
{
	struct sk_buff *skb;
	void *hdr;

	skb = repath_nl_msg_new(REPATH_CMD_EV_PEER_SENT, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return;
	if (nla_put_u32(skb, REPATH_A_PEER_ID, peer_id) ||
	    nla_put_u8(skb, REPATH_A_MSG_TYPE, type) ||
	    nla_put_u64_64bit(skb, REPATH_A_MSG_ID, msg_id, REPATH_A_PAD) ||
	    nla_put_u32(skb, REPATH_A_ERRNO, err)) {
		nlmsg_free(skb);
		return;
	}
	repath_proc_send(proc, skb, hdr);
}

/* Context: repath_conn_mutex held. */
static void letter_free(struct out_letter *letter)
{
	repath_remote_put(letter->remote);
	if (letter->proc)
		atomic_sub(letter->len + LETTER_COST, &letter->proc->sending);
	repath_proc_put(letter->proc);
	kfree(letter);
}

/*
 * The peer knows other tokens than this end: a HELLO was damaged, or a module loaded anew. Both say
 * theirs again, so that who asks a second time is understood.
 */
static void hello_again(struct repath_proc *proc, u32 peer_id)
{
	struct repath_conn *conn;

	mutex_lock(&repath_conn_mutex);
	list_for_each_entry(conn, &proc->conns, proc_node) {
		if (!conn->remote || conn->remote->id != peer_id || conn->moving ||
		    time_before(jiffies, conn->hello_at + HZ))
			continue;
		conn->expect_token = true;
		repath_hello_start(conn, true);
	}
	mutex_unlock(&repath_conn_mutex);
}

/* Is it said again for some seconds, and of connections that are not moving, or need not? */
static bool is_said_again(u8 type)
{
	return type == REPATH_MSG_PREPARE || type == REPATH_MSG_PREPARED ||
	       type == REPATH_MSG_KEYS || type == REPATH_MSG_KEYS_ACK;
}

static void letter_done(void *arg, int err, u8 status)
{
	struct out_letter *letter = arg;

	if (letter->proc && is_said_again(letter->type) && !err &&
	    (status == REPATH_PEER_BAD_TOKEN || status == REPATH_PEER_SOME_BAD))
		hello_again(letter->proc, letter->remote->id);
	/* A wrong word: that one is a stranger's host, and what it does not know says nothing of the peer. */
	if (letter->told && !err && status == REPATH_PEER_BAD_TOKEN)
		err = -EHOSTUNREACH;
	mutex_lock(&repath_conn_mutex);
	/* Whoever is there knows its tokens. */
	if (!err && status == REPATH_PEER_OK)
		repath_remote_was_at(letter->remote, &letter->to);
	/* Not all of the connections are known there: those that are, each with its own tokens. */
	if (letter->proc && !err && status == REPATH_PEER_UNPROVEN)
		letter->remote->at_length = true;
	if (letter->proc)
		tell_sent(letter->proc, letter->remote->id, letter->type, letter->msg_id,
			  err ? -err : repath_xprt_status_errno(status));
	letter_free(letter);
	mutex_unlock(&repath_conn_mutex);
	/* A suspend waits until everything is said. */
	repath_op_conn_changed();
}

static void local_deliver(struct work_struct *work)
{
	struct out_letter *letter = container_of(work, struct out_letter, work);
	u8 status = repath_peer_receive(NULL, letter->type, letter->data, letter->len);

	kvfree(letter->data);
	letter_done(letter, 0, status);
}

/*
 * Sends @wire by the way that @conn goes. @proc: who wants to know; NULL: it is GONE to a process of this
 * host. @wire is taken over in every case.
 */
static int letter_send(struct repath_conn *conn, struct repath_proc *proc, u8 type, u64 msg_id,
		       struct repath_wire_msg *wire, u32 len)
{
	struct out_letter *letter;
	int err;

	lockdep_assert_held(&repath_conn_mutex);
	letter = kzalloc(sizeof(*letter), GFP_KERNEL_ACCOUNT);
	if (!letter) {
		kvfree(wire);
		return -ENOMEM;
	}
	letter->len = len;
	if (proc) {
		letter->proc = repath_proc_get(proc);
		atomic_add(len + LETTER_COST, &proc->sending);
	}
	letter->remote = conn->remote;
	letter->remote->users++;
	letter->to = conn->addr;
	letter->type = type;
	letter->told = conn->told;
	letter->msg_id = msg_id;

	if (repath_proc_is_local(conn->remote->cookie)) {
		INIT_WORK(&letter->work, local_deliver);
		letter->data = wire;
		repath_stat_inc(conn->dev, REPATH_STAT_TX_LOCAL);
		queue_work(local_wq, &letter->work);
		return 0;
	}
	err = repath_xprt_send(conn->dev, &(struct repath_xprt_send){
		.to = &conn->addr, .order = conn->remote->cookie, .payer = proc, .type = type,
		.data = wire, .len = len, .done = letter_done, .arg = letter,
	});
	if (err)
		letter_free(letter);
	return err;
}

/*
 * It is said again by itself. Who names a connection a thousand times, or asks for it on and on, does not make this host
 * say it as often.
 */
static bool is_said(struct repath_conn *conn, bool waited_for)
{
	if (conn->gone_said && (conn->gone_waited || !waited_for) &&
	    time_before(jiffies, conn->gone_at + GONE_AGAIN))
		return true;
	conn->gone_said = true;
	conn->gone_waited = waited_for;
	conn->gone_at = jiffies;
	return false;
}

/**
 * repath_peer_send_gone - say for a process that its end of a connection is gone
 * @conn: connection
 * @waited_for: by the peer, as far as is known: it is said until it is heard
 *
 * Nothing is said where it was a moment ago.
 *
 * Context: repath_conn_mutex held.
 */
void repath_peer_send_gone(struct repath_conn *conn, bool waited_for)
{
	struct repath_conn_rec rec = {
		.conn_id = conn->id,
		.qpn = conn->qpn,
		.flags = REPATH_REC_DEAD,
	};
	struct repath_wire_msg *wire;
	u32 len;

	lockdep_assert_held(&repath_conn_mutex);
	if (!conn->remote || is_said(conn, waited_for))
		return;
	wire = repath_wire_write(conn, &rec, 1, NULL, 0, &len);
	if (!wire)
		return;
	if (repath_proc_is_local(conn->remote->cookie)) {
		letter_send(conn, NULL, REPATH_MSG_GONE, 0, wire, len);
	} else {
		repath_gone_say(conn->dev, &conn->addr, wire, len, waited_for);
		kvfree(wire);
	}
}

/* --- PEER_SEND --- */

/* A request, looked through. */
struct request {
	struct genl_info *info;
	struct repath_proc *proc;
	u32 peer_id;
	u8 type;
	u64 msg_id;
	const struct repath_conn_rec *recs;
	u32 nconns;
	const void *blob;
	u32 blob_len;
	struct repath_device *dev;
	u32 port;
	u32 sgid_index;
};

static int parse(struct request *rq)
{
	struct genl_info *info = rq->info;
	struct nlattr **a = info->attrs;

	if (GENL_REQ_ATTR_CHECK(info, REPATH_A_PEER_ID) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_MSG_TYPE) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_MSG_ID) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_CONNS))
		return -EINVAL;
	rq->peer_id = nla_get_u32(a[REPATH_A_PEER_ID]);
	rq->type = nla_get_u8(a[REPATH_A_MSG_TYPE]);
	rq->msg_id = nla_get_u64(a[REPATH_A_MSG_ID]);
	if (!repath_peer_is_shims(rq->type)) {
		GENL_SET_ERR_MSG(info, "a shim does not send messages of this type");
		return -EINVAL;
	}
	rq->recs = nla_data(a[REPATH_A_CONNS]);
	rq->nconns = nla_len(a[REPATH_A_CONNS]) / sizeof(*rq->recs);
	if (!rq->nconns || rq->nconns > REPATH_CONNS_MAX ||
	    nla_len(a[REPATH_A_CONNS]) % sizeof(*rq->recs)) {
		GENL_SET_ERR_MSG(info, "CONNS: 1 to 1024 records of struct repath_conn_rec");
		return -EINVAL;
	}
	if (a[REPATH_A_BLOB]) {
		rq->blob = nla_data(a[REPATH_A_BLOB]);
		rq->blob_len = nla_len(a[REPATH_A_BLOB]);
		if (rq->blob_len > REPATH_BLOB_MAX) {
			GENL_SET_ERR_MSG(info, "BLOB: at most 32768 bytes");
			return -EINVAL;
		}
	}
	if (!a[REPATH_A_DEV_INDEX])
		return 0;
	if (rq->type != REPATH_MSG_INFO || !a[REPATH_A_PORT] || !a[REPATH_A_SGID_INDEX]) {
		GENL_SET_ERR_MSG(info, "DEV_INDEX, PORT and SGID_INDEX go together, and with INFO");
		return -EINVAL;
	}
	rq->port = nla_get_u32(a[REPATH_A_PORT]);
	rq->sgid_index = nla_get_u32(a[REPATH_A_SGID_INDEX]);
	rq->dev = repath_device_get_by_index(genl_info_net(info),
					     nla_get_u32(a[REPATH_A_DEV_INDEX]));
	if (!rq->dev || !rdma_is_port_valid(rq->dev->ibdev, rq->port)) {
		GENL_SET_ERR_MSG(info, "no such device or port");
		return -ENODEV;
	}
	/* INFO comes once, and says where this end is now: no event of the port is waited for. */
	repath_lid_ask(rq->dev, rq->port);
	return 0;
}

/* The connection of a record, if the process may speak for it to this peer. */
static struct repath_conn *conn_of(const struct request *rq, u32 id)
{
	struct repath_conn *conn = repath_conn_by_id(id);

	if (!conn || conn->proc != rq->proc || !conn->remote || conn->remote->id != rq->peer_id)
		return NULL;
	return conn;
}

/* INFO: the connection goes on with another queue pair, which must be the process's own. */
static int bind(const struct request *rq, struct repath_conn *conn, u32 qpn)
{
	struct repath_qp *rqp = repath_qp_find(rq->dev, qpn);
	int err = 0;

	if (!rqp || repath_qp_pid(rqp) != rq->proc->tgid || !repath_qp_is_connected_type(rqp)) {
		GENL_SET_ERR_MSG(rq->info, "INFO names a queue pair that is not the process's own");
		err = -EPERM;
	} else {
		repath_conn_rebind(conn, rqp, rq->port, rq->sgid_index);
	}
	if (rqp)
		repath_qp_put(rqp);
	return err;
}

/*
 * The shim's last word of connections. This module says it until it is heard, also when the process has ended
 * since. false: there is no way there now, or the peer is a process of this host.
 */
static bool send_last(const struct request *rq, const struct repath_conn *way)
{
	struct repath_conn *conn;
	u32 i;

	if (repath_proc_is_local(way->remote->cookie) || !READ_ONCE(way->dev->xprt))
		return false;
	for (i = 0; i < rq->nconns; i++) {
		conn = repath_conn_by_id(rq->recs[i].conn_id);
		if (conn)
			repath_peer_send_gone(conn, true);
	}
	tell_sent(rq->proc, rq->peer_id, rq->type, rq->msg_id, 0);
	return true;
}

static int send_letter(const struct request *rq, struct repath_conn *way)
{
	struct repath_wire_msg *wire;
	u32 len;
	int err;

	wire = repath_wire_write(way, rq->recs, rq->nconns, rq->blob, rq->blob_len, &len);
	if (!wire)
		return -ENOMEM;
	err = letter_send(way, rq->proc, rq->type, rq->msg_id, wire, len);
	if (err == -ENODEV)
		GENL_SET_ERR_MSG(rq->info, "the connection's device is gone, or has no CM");
	return err;
}

static int send_locked(const struct request *rq)
{
	struct repath_conn *conn, *way = NULL;
	int err;
	u32 i;

	/* Anybody may register: nobody's peers that do not answer cost the host its memory. */
	if (atomic_read(&rq->proc->sending) >= SENDING_MAX) {
		GENL_SET_ERR_MSG(rq->info, "too much is under way: send again later");
		return -EAGAIN;
	}
	for (i = 0; i < rq->nconns; i++) {
		conn = conn_of(rq, rq->recs[i].conn_id);
		if (!conn) {
			GENL_SET_ERR_MSG(rq->info, "no such connection to this peer");
			return -ENOENT;
		}
		if (rq->dev) {
			err = bind(rq, conn, rq->recs[i].qpn);
			if (err)
				return err;
		}
	}
	for (i = 0; i < rq->nconns; i++) {
		/* Binding one may have ended another, which had its queue pair. */
		conn = conn_of(rq, rq->recs[i].conn_id);
		if (!conn)
			return -ENOENT;
		if (!way || (READ_ONCE(conn->dev->xprt) && !READ_ONCE(way->dev->xprt)))
			way = conn;
	}

	if (rq->type != REPATH_MSG_GONE || !send_last(rq, way)) {
		err = send_letter(rq, way);
		if (err)
			return err;
	}
	for (i = 0; i < rq->nconns; i++) {
		/* Again by number: a record may come twice, and the first one may end it. */
		conn = repath_conn_by_id(rq->recs[i].conn_id);
		if (conn)
			repath_conn_message(conn, rq->type, rq->recs[i].flags, true);
	}
	return 0;
}

/**
 * repath_peer_send_cmd - PEER_SEND
 * @skb: request
 * @info: request
 *
 * The answer says whether the message is on its way; EV_PEER_SENT says how it ended.
 */
int repath_peer_send_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct request rq = { .info = info };
	int err;

	rq.proc = repath_proc_of(info);
	if (!rq.proc)
		return -EPERM;
	err = parse(&rq);
	if (!err) {
		mutex_lock(&repath_conn_mutex);
		err = send_locked(&rq);
		mutex_unlock(&repath_conn_mutex);
	}
	if (rq.dev)
		repath_device_put(rq.dev);
	repath_proc_put(rq.proc);
	return err;
}

/* --- receiving --- */

static int tell_msg(struct repath_proc *proc, u32 peer_id, u8 type, u64 msg_id,
		    const struct repath_conn_rec *recs, u32 nconns, const u8 gid[16], u32 lid,
		    const void *blob, u32 blob_len)
{
	struct sk_buff *skb;
	void *hdr;

	skb = repath_nl_msg_new(REPATH_CMD_EV_PEER_MSG,
				nconns * sizeof(*recs) + blob_len + 256, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_u32(skb, REPATH_A_PEER_ID, peer_id) ||
	    nla_put_u8(skb, REPATH_A_MSG_TYPE, type) ||
	    nla_put_u64_64bit(skb, REPATH_A_MSG_ID, msg_id, REPATH_A_PAD) ||
	    nla_put(skb, REPATH_A_CONNS, nconns * sizeof(*recs), recs) ||
	    nla_put(skb, REPATH_A_DGID, 16, gid) || nla_put_u32(skb, REPATH_A_DLID, lid) ||
	    (blob_len && nla_put(skb, REPATH_A_BLOB, blob_len, blob))) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return repath_proc_send(proc, skb, hdr);
}

/* Would the other end go on with a connection, or wait for something to come of it? */
static bool goes_on(u8 type)
{
	switch (type) {
	case REPATH_MSG_PREPARE:
	case REPATH_MSG_GATE:
	case REPATH_MSG_DRAINED:
	case REPATH_MSG_READY:
	case REPATH_MSG_INFO:
	case REPATH_MSG_CONNECTED:
	case REPATH_MSG_ABORT:
		return true;
	default:
		return false;
	}
}

/*
 * Some of them have ended here: this end has been told that the other one is gone, or has given it up, when
 * it did not answer for too long. It was away, or asleep, and has to hear that. How many records are left.
 */
static u32 say_what_is_gone(struct repath_conn_rec *recs, u32 n)
{
	struct repath_conn *conn;
	u32 i, left = 0;

	for (i = 0; i < n; i++) {
		conn = repath_conn_by_id(recs[i].conn_id);
		if (conn->state == REPATH_CONN_GONE)
			repath_peer_send_gone(conn, true);
		else
			recs[left++] = recs[i];
	}
	return left;
}

/* Its application is told by the device that it comes to, or stays on; an administrator by this. */
static void log_gone(const struct repath_conn *conn)
{
	if (conn->moving && conn->state != REPATH_CONN_GONE)
		pr_info_ratelimited("repath: PID %d (%*pE): the peer of QP 0x%x, which is suspended, is gone\n",
				    pid_nr(conn->proc->tgid), (int)strlen(conn->proc->comm), conn->proc->comm,
				    conn->qpn);
}

static u8 receive_locked(struct repath_proc *proc, u8 type, const struct repath_wire_msg *wire,
			 u32 len, struct repath_conn_rec *recs)
{
	u32 i, n, known, nconns = be32_to_cpu(wire->nconns), lid = be32_to_cpu(wire->src_lid);
	struct repath_conn_moved moved = {};
	struct repath_conn *conn;

	n = repath_wire_read(wire, len, proc, recs);
	atomic64_add(nconns - n, &bad_tokens);
	if (!n)
		return wire->form == cpu_to_be32(REPATH_WIRE_PACKED) ? REPATH_PEER_UNPROVEN :
								       REPATH_PEER_BAD_TOKEN;

	repath_silent_forget(wire->src_gid, lid);
	known = n;
	if (goes_on(type))
		n = say_what_is_gone(recs, n);
	if (!n)
		return known < nconns ? REPATH_PEER_SOME_BAD : REPATH_PEER_OK;

	/* What the shim can not take now comes again; what it has, is acted on before it can answer. */
	conn = repath_conn_by_id(recs[0].conn_id);
	if (tell_msg(proc, conn->remote->id, type, 0, recs, n, wire->src_gid, lid,
		     repath_wire_blob(wire, len), be32_to_cpu(wire->blob_len)))
		return REPATH_PEER_BUSY;
	for (i = 0; i < n; i++) {
		conn = repath_conn_by_id(recs[i].conn_id);
		if (!conn)
			continue;
		conn->old_token = 0;
		if (type == REPATH_MSG_INFO && !repath_conn_is_late(conn, type, recs[i].flags))
			repath_conn_readdress(conn, wire->src_gid, lid, recs[i].qpn, false, &moved);
		if (type == REPATH_MSG_GONE)
			log_gone(conn);
		repath_conn_message(conn, type, recs[i].flags, false);
	}
	return known < nconns ? REPATH_PEER_SOME_BAD : REPATH_PEER_OK;
}

/**
 * repath_peer_receive - a whole message has come in
 * @dev: on which device, NULL if it did not leave this host
 * @type: enum repath_msg
 * @data: struct repath_wire_msg and what follows it
 * @len: bytes
 *
 * Context: may sleep, takes repath_conn_mutex.
 * Return: enum repath_peer_status.
 */
u8 repath_peer_receive(struct repath_device *dev, u8 type, const void *data, u32 len)
{
	const struct repath_wire_msg *wire = data;
	struct repath_conn_rec *recs;
	struct repath_proc *proc;
	u8 status;

	if (!repath_peer_is_shims(type) || !repath_wire_is_well_formed(wire, len))
		return REPATH_PEER_MALFORMED;
	proc = repath_proc_find_cookie(be64_to_cpu(wire->dst_cookie));
	if (!proc) {
		atomic64_inc(&bad_tokens);
		return REPATH_PEER_BAD_TOKEN;
	}
	recs = kvmalloc_array(be32_to_cpu(wire->nconns), sizeof(*recs), GFP_KERNEL);
	if (recs) {
		mutex_lock(&repath_conn_mutex);
		status = receive_locked(proc, type, wire, len, recs);
		mutex_unlock(&repath_conn_mutex);
	} else {
		status = REPATH_PEER_BUSY;
	}
	kvfree(recs);
	repath_proc_put(proc);
	return status;
}

/**
 * repath_peer_tell_gone - tell a process that the other end of its connection is gone
 * @conn: connection
 *
 * Context: repath_conn_mutex held.
 */
void repath_peer_tell_gone(struct repath_conn *conn)
{
	struct repath_conn_rec rec = {
		.conn_id = conn->id,
		.qpn = conn->dest_qpn,
		.flags = REPATH_REC_DEAD,
	};

	lockdep_assert_held(&repath_conn_mutex);
	/* Told again at the next opportunity if its socket is full. */
	if (tell_msg(conn->proc, conn->remote->id, REPATH_MSG_GONE, 0, &rec, 1,
		     conn->addr.dgid.raw, conn->addr.dlid, NULL, 0))
		return;
	repath_conn_message(conn, REPATH_MSG_GONE, REPATH_REC_DEAD, false);
}

int repath_peer_init(void)
{
	/* Ordered: messages of one process to another arrive as they were sent. */
	local_wq = alloc_ordered_workqueue("repath_peer", 0);
	return local_wq ? 0 : -ENOMEM;
}

/* Nobody can send any more; what is on its way is delivered to nobody. */
void repath_peer_exit(void)
{
	destroy_workqueue(local_wq);
}
