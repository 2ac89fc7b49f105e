// SPDX-License-Identifier: GPL-2.0
/*
 * Where is the queue pair that an application was told of? Asked before the application's own is
 * connected to it, or a UD address used: at the address itself, and of all processes that were once
 * there and were known to have moved. One answer is taken; two, or none, are not: nobody is ever
 * connected to a queue pair that may be a stranger's.
 */
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "known.h"
#include "netlink.h"
#include "number.h"
#include "op.h"
#include "proc.h"
#include "resolve.h"
#include "resolve_question.h"
#include "silent.h"
#include "track.h"
#include "watch.h"
#include "xprt.h"

/* All protected by repath_conn_mutex. */
static LIST_HEAD(questions);
static DEFINE_HASHTABLE(by_id, 12);
static DEFINE_HASHTABLE(by_token, 12);

static u64 id_hash(const struct repath_proc *proc, u64 id)
{
	return (unsigned long)proc ^ id << 20;
}

static struct repath_question *find(const struct repath_proc *proc, u64 id)
{
	struct repath_question *q;

	hash_for_each_possible(by_id, q, by_id, id_hash(proc, id))
		if (q->proc == proc && q->id == id && !q->gone)
			return q;
	return NULL;
}

static struct repath_question *find_token(u64 token)
{
	struct repath_question *q;

	hash_for_each_possible(by_token, q, by_token, token)
		if (q->token == token && !q->gone)
			return q;
	return NULL;
}

static u32 *count_of(struct repath_proc *proc, u8 type)
{
	return type == IB_QPT_UD ? &proc->ud_questions : &proc->questions;
}

/**
 * repath_question_free - forget a question
 * @q: question that nobody is asked any more
 *
 * Context: repath_conn_mutex held.
 */
void repath_question_free(struct repath_question *q)
{
	list_del(&q->node);
	list_del_init(&q->of_proc);
	repath_question_is_asked(q);
	hash_del(&q->by_id);
	if (q->token)
		hash_del(&q->by_token);
	if (q->dev)
		repath_device_put(q->dev);
	--*count_of(q->proc, q->type);
	repath_proc_put(q->proc);
	kfree(q->asked);
	kfree_sensitive(q);
}

static void question_end(struct repath_question *q)
{
	q->gone = true;
	list_del_init(&q->of_proc);
	if (!q->open)
		repath_question_free(q);
}

/**
 * repath_question_tell - EV_RESOLVED
 * @q: question
 * @err: positive errno, 0: the rest holds
 * @place: where the queue pair is
 * @qpn: its number there
 * @moved: its process has moved
 *
 * Context: repath_conn_mutex held.
 * Return: 0, or a negative errno: its process has not been told, as its socket is full.
 */
int repath_question_tell(struct repath_question *q, int err, const struct repath_addr *place,
			 u32 qpn, bool moved)
{
	struct sk_buff *skb;
	void *hdr;
	int ret;

	skb = repath_nl_msg_new(REPATH_CMD_EV_RESOLVED, NLMSG_DEFAULT_SIZE, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_u64_64bit(skb, REPATH_A_MSG_ID, q->id, REPATH_A_PAD) ||
	    nla_put_u32(skb, REPATH_A_ERRNO, err) ||
	    (!err && (nla_put_u32(skb, REPATH_A_QPN, qpn) ||
		      nla_put(skb, REPATH_A_DGID, sizeof(place->dgid), &place->dgid) ||
		      nla_put_u32(skb, REPATH_A_DLID, place->dlid) ||
		      (moved && nla_put_flag(skb, REPATH_A_MOVED))))) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	ret = repath_proc_send(q->proc, skb, hdr);
	q->told |= !ret && !err;
	return ret;
}

static int parse_addr(struct genl_info *info, struct repath_device *dev, struct repath_addr *addr)
{
	struct nlattr **a = info->attrs;

	memset(addr, 0, sizeof(*addr));
	addr->port = nla_get_u32(a[REPATH_A_PORT]);
	if (!rdma_is_port_valid(dev->ibdev, addr->port)) {
		GENL_SET_ERR_MSG(info, "no such port");
		return -ENODEV;
	}
	if (a[REPATH_A_SGID_INDEX])
		addr->sgid_index = nla_get_u32(a[REPATH_A_SGID_INDEX]);
	if (a[REPATH_A_DGID])
		memcpy(&addr->dgid, nla_data(a[REPATH_A_DGID]), sizeof(addr->dgid));
	if (a[REPATH_A_DLID])
		addr->dlid = nla_get_u32(a[REPATH_A_DLID]);
	if (a[REPATH_A_SL])
		addr->sl = nla_get_u8(a[REPATH_A_SL]) & 0xf;
	return 0;
}

static int ask(struct genl_info *info, struct repath_proc *proc, struct repath_device *dev,
	       const struct repath_addr *addr)
{
	struct repath_question *q, *old;
	u64 token = 0, moved_cookie = 0, moved_at = 0;
	u8 type = nla_get_u8(info->attrs[REPATH_A_QP_TYPE]);
	bool told = false;
	u32 *count;
	int err;

	lockdep_assert_held(&repath_conn_mutex);
	if (READ_ONCE(proc->left))
		return -ESRCH;
	old = find(proc, nla_get_u64(info->attrs[REPATH_A_MSG_ID]));
	if (old) {
		/* By that one it is told where the queue pair goes, if that is on its way, too. */
		token = old->token;
		told = old->told;
		moved_cookie = old->moved_cookie;
		moved_at = old->moved_at;
		question_end(old);
	}
	/* Anybody may register, and ask. Who keeps many UD addresses can still be connected. */
	count = count_of(proc, type);
	if (*count >= REPATH_RESOLVES_MAX) {
		GENL_SET_ERR_MSG(info, "too many addresses are asked for");
		return -ENOSPC;
	}
	q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	if (!q)
		return -ENOMEM;
	q->type = type;
	q->proc = repath_proc_get(proc);
	q->id = nla_get_u64(info->attrs[REPATH_A_MSG_ID]);
	q->qpn = nla_get_u32(info->attrs[REPATH_A_QPN]);
	q->src_qpn = nla_get_u32(info->attrs[REPATH_A_SRC_QPN]);
	q->place = q->found = *addr;
	if (q->type == IB_QPT_UD) {
		q->token = token;
		q->told = told;
		q->moved_cookie = moved_cookie;
		q->moved_at = moved_at;
	}
	while (q->type == IB_QPT_UD && (!q->token || find_token(q->token)))
		q->token = get_random_u64();
	++*count;
	INIT_LIST_HEAD(&q->later);
	list_add_tail(&q->node, &questions);
	list_add_tail(&q->of_proc, &proc->asks);
	hash_add(by_id, &q->by_id, id_hash(proc, q->id));
	if (q->token)
		hash_add(by_token, &q->by_token, q->token);
	err = repath_question_ask(q, dev);
	if (err)
		repath_question_free(q);
	return err;
}

/**
 * repath_resolve_cmd - RESOLVE
 * @skb: request
 * @info: request
 */
int repath_resolve_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_device *dev;
	struct repath_proc *proc;
	struct repath_addr addr;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, REPATH_A_MSG_ID) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_DEV_INDEX) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_PORT) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_QP_TYPE) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_QPN) ||
	    GENL_REQ_ATTR_CHECK(info, REPATH_A_SRC_QPN))
		return -EINVAL;
	err = repath_proc_and_device_of(info, &proc, &dev);
	if (err)
		return err;
	err = parse_addr(info, dev, &addr);
	if (!err) {
		mutex_lock(&repath_conn_mutex);
		err = ask(info, proc, dev, &addr);
		mutex_unlock(&repath_conn_mutex);
	}
	repath_device_put(dev);
	repath_proc_put(proc);
	return err;
}

/**
 * repath_unresolve_cmd - UNRESOLVE
 * @skb: request
 * @info: request
 */
int repath_unresolve_cmd(struct sk_buff *skb, struct genl_info *info)
{
	struct repath_proc *proc;
	struct repath_question *q;

	if (GENL_REQ_ATTR_CHECK(info, REPATH_A_MSG_ID))
		return -EINVAL;
	proc = repath_proc_of(info);
	if (!proc)
		return -EPERM;
	mutex_lock(&repath_conn_mutex);
	q = find(proc, nla_get_u64(info->attrs[REPATH_A_MSG_ID]));
	if (q)
		question_end(q);
	mutex_unlock(&repath_conn_mutex);
	repath_proc_put(proc);
	return q ? 0 : -ENOENT;
}

/**
 * repath_resolve_proc_left - a process is not there any more
 * @proc: process
 *
 * Context: repath_conn_mutex held.
 */
void repath_resolve_proc_left(struct repath_proc *proc)
{
	struct repath_question *q, *next;

	lockdep_assert_held(&repath_conn_mutex);
	list_for_each_entry_safe(q, next, &proc->asks, of_proc)
		question_end(q);
}

/* --- being asked, and told --- */

/**
 * repath_resolve_answer - somebody asks for a queue pair of this host
 * @dev: on which device the question came
 * @data: struct repath_resolve
 * @len: bytes
 * @answer: result if it is REPATH_PEER_OK, else zero
 *
 * The same question may come twice; nothing but the list of those who want to be told changes.
 *
 * Context: may sleep, takes repath_op_mutex and repath_conn_mutex.
 * Return: enum repath_peer_status.
 */
u8 repath_resolve_answer(struct repath_device *dev, const void *data, u32 len,
			 struct repath_resolved *answer)
{
	const struct repath_resolve *ask = data;
	struct repath_qp *rqp;
	u8 status;

	memset(answer, 0, sizeof(*answer));
	if (len != sizeof(*ask) || !ask->src_cookie || ask->reserved ||
	    be32_to_cpu(ask->qpn) > 0xffffff || be32_to_cpu(ask->src_qpn) > 0xffffff)
		return REPATH_PEER_MALFORMED;
	mutex_lock(&repath_op_mutex);
	mutex_lock(&repath_conn_mutex);
	repath_silent_forget(ask->src_gid, be32_to_cpu(ask->src_lid));
	status = repath_number_find(dev, ask, answer, &rqp);
	if (rqp) {
		if (rqp->type == IB_QPT_UD)
			repath_watch_add(dev, rqp, ask);
		repath_qp_put(rqp);
	}
	mutex_unlock(&repath_conn_mutex);
	mutex_unlock(&repath_op_mutex);
	return status;
}

static u8 moved_in(const struct repath_moved *moved)
{
	struct repath_question *q = find_token(be64_to_cpu(moved->token));
	u64 cookie = be64_to_cpu(moved->cookie), at = be64_to_cpu(moved->at);
	struct repath_addr place;

	if (!q)
		return REPATH_PEER_BAD_TOKEN;
	/* Said again, or late: it has moved on since. */
	if (q->moved_cookie == cookie && at <= q->moved_at)
		return REPATH_PEER_OK;
	place = q->place;
	memcpy(&place.dgid, moved->gid, sizeof(place.dgid));
	place.dlid = be32_to_cpu(moved->lid);
	place.has_dmac = false;
	/* It could say that it is where somebody else is, and then that it has left there. */
	repath_known_moved(q->proc, cookie, &q->found, &place);
	q->place = place;
	/* It is told again then. */
	if (repath_question_tell(q, 0, &place, be32_to_cpu(moved->qpn), true))
		return REPATH_PEER_BUSY;
	q->moved_cookie = cookie;
	q->moved_at = at;
	/* What is still to be answered was asked before. */
	if (q->open)
		q->heard = true;
	else
		repath_question_found(q);
	return REPATH_PEER_OK;
}

/**
 * repath_resolve_moved - a UD queue pair that was asked for has moved
 * @data: struct repath_moved
 * @len: bytes
 *
 * Context: may sleep, takes repath_conn_mutex.
 * Return: enum repath_peer_status.
 */
u8 repath_resolve_moved(const void *data, u32 len)
{
	const struct repath_moved *moved = data;
	u8 status;

	if (len != sizeof(*moved) || !moved->token || !moved->cookie ||
	    be32_to_cpu(moved->qpn) > 0xffffff)
		return REPATH_PEER_MALFORMED;
	mutex_lock(&repath_conn_mutex);
	status = moved_in(moved);
	mutex_unlock(&repath_conn_mutex);
	return status;
}

/**
 * repath_resolve_tell_local - tell a process of this host that a UD queue pair has moved
 * @cookie: the process
 * @moved: the news
 *
 * Context: repath_conn_mutex held.
 * Return: enum repath_peer_status; -ENOENT: the process is not of this host.
 */
int repath_resolve_tell_local(u64 cookie, const struct repath_moved *moved)
{
	lockdep_assert_held(&repath_conn_mutex);
	return repath_proc_is_local(cookie) ? moved_in(moved) : -ENOENT;
}

int repath_resolve_init(void)
{
	return repath_question_init();
}

/* Netlink is gone: nobody asks. */
void repath_resolve_exit(void)
{
	struct repath_question *q, *next;

	repath_question_exit();
	mutex_lock(&repath_conn_mutex);
	list_for_each_entry_safe(q, next, &questions, node)
		repath_question_free(q);
	mutex_unlock(&repath_conn_mutex);
}
