// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "keys.h"
#include "mw.h"
#include "ud.h"

/* A queue that is flushed is so at once. */
#define RETURN_NS 2000000000ull

/*
 * The marker is an RDMA WRITE of no bytes. The responder looks at no key for it (IBA 1.2.1 vol 1,
 * 9.4.4, C9-88) but at the queue pair's access flags.
 */
static void allow_marker(struct rp_qp *qp, bool allow)
{
	struct ibv_qp_attr attr = { .qp_access_flags = qp->attr.qp_access_flags };

	if (qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE || qp->marker_let == allow)
		return;
	if (allow)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	if (!rp_qp_modify_real(qp, &attr, IBV_QP_ACCESS_FLAGS))
		qp->marker_let = allow;
}

static bool query(const struct rp_conn *c, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	return c->qp->real && !RP_REAL(rp_real.ibv_query_qp(c->qp->real, attr, RP_LOOK_MASK, &init));
}

/* In SQE what UC receives goes on, and its peer. */
static bool has_failed(const struct rp_conn *c)
{
	struct ibv_qp_attr attr;

	if (!atomic_load(&c->qp->failed))
		return false;
	return c->qp->qp.qp_type != IBV_QPT_UC || (query(c, &attr) && attr.qp_state == IBV_QPS_ERR);
}

/* The subnet manager may have had it moved to another path. On RoCE not every driver tells. */
static void note_path(struct rp_conn *c, const struct ibv_qp_attr *attr)
{
	if (attr->qp_state < IBV_QPS_RTR || attr->qp_state > IBV_QPS_SQD || !attr->ah_attr.dlid)
		return;
	c->has_path = true;
	c->dlid = attr->ah_attr.dlid;
	c->sl = attr->ah_attr.sl;
	c->rate = attr->ah_attr.static_rate;
}

/*
 * Asked before a move begins, when there is time. What fails afterwards has a completion that says
 * so, at the one end or at the other.
 */
void rp_conn_look(struct rp_conn *c)
{
	struct ibv_qp_attr attr;

	/* In the midst of a move it is where that has taken it. */
	if ((c->flushing || c->reset) && !c->in_rts)
		return;
	c->was_error = c->has_path = false;
	if (!query(c, &attr))
		return;
	c->was_error = attr.qp_state == IBV_QPS_ERR;
	note_path(c, &attr);
}

/* It failed before us and for its own reason: its completions say why. */
static void conn_failed(struct rp_conn *c)
{
	rp_log(RP_LOG_INFO, "QP 0x%x was in error before the move", c->qp->qp.qp_num);
	c->due |= 1u << REPATH_MSG_GONE;
	rp_conn_kill(c);
}

void rp_conn_begin(struct rp_conn *c, bool mover)
{
	struct rp_qp *qp = c->qp;

	if (c->moving) {
		/* The peer has heard of an end that stays. */
		if (mover && !c->mover)
			c->due |= 1u << (c->quiet ? REPATH_MSG_READY :
					 c->drained ? REPATH_MSG_DRAINED : REPATH_MSG_GATE);
		c->mover |= mover;
		return;
	}
	if (!mover)
		pthread_mutex_lock(&qp->control);
	/* Its owner has just taken it to RESET or ERR, and does with it what he likes. */
	if (!mover && !rp_conn_connectable(qp)) {
		pthread_mutex_unlock(&qp->control);
		c->known = REPATH_CONN_GONE;
		c->due |= 1u << REPATH_MSG_GONE;
		return;
	}
	c->control = !mover;
	c->moving = true;
	c->round++;
	c->mover = mover;
	c->peer_mover = c->peer_moved = c->peer_gated = c->drained = c->stuck = false;
	c->peer_drained = c->peer_clear = false;
	c->quiet = c->peer_quiet = c->flushing = c->reset = c->usable = false;
	c->inited = c->psn_chosen = c->told = c->early = c->informed = c->in_rts = false;
	c->connected = c->peer_connected = c->aborting = c->alone = c->dead = c->given_up = false;
	c->peer_to_qpn = c->peer_to_psn = c->lookups = 0;
	c->alt_told = c->alt_loaded = c->left = false;
	c->from = qp->dest;
	c->alt_from = qp->alt_dest;
	c->marker_old = qp->marker_out;
	c->heard_ns = 0;
	c->due &= 1u << REPATH_MSG_ABORTED;
	c->progress = atomic_load(&qp->sq.retired);
	c->begun_ns = c->progress_ns = rp_now_ns();

	rp_lock(&qp->lock);
	qp->gate = true;
	rp_unlock(&qp->lock);

	if (c->known == REPATH_CONN_GONE) {
		rp_conn_kill(c);
		return;
	}
	if (c->was_error || has_failed(c)) {
		conn_failed(c);
		return;
	}
	allow_marker(qp, true);
	c->due |= 1u << REPATH_MSG_GATE;
}

static void conn_end(struct rp_conn *c)
{
	c->moving = false;
	c->usable = c->aborting = c->reset = false;
	if (rp_round_after(c->peer_round, c->peer_over))
		c->peer_over = c->peer_round;
	if (c->control)
		pthread_mutex_unlock(&c->qp->control);
	/* What INFO had no room for, and what was not said meanwhile. */
	c->peer->keys_due |= c->mover;
	c->mover = c->peer_mover = c->control = false;
	rp_cycle_ended(c);
}

/* What the device has of this queue pair. */
static void harvest(struct rp_qp *qp)
{
	struct rp_cq *send = to_rp_cq(qp->qp.send_cq), *recv = to_rp_cq(qp->qp.recv_cq);
	int n = rp_cq_harvest(send);

	if (recv != send)
		n += rp_cq_harvest(recv);
	if (rp_counters && n > 0)
		rp_counters->drained_cqes += n;
}

static bool has_returned(const struct rp_qp *qp, bool marked)
{
	return (!marked || qp->marker_done) &&
	       (qp->qp.srq || atomic_load(&qp->rq.retired) == qp->rq.submitted);
}

void rp_qp_not_taken(struct rp_qp *qp, int err, enum ibv_wc_status first)
{
	uint64_t end = rp_now_ns() + RETURN_NS;
	bool marked;

	rp_log(RP_LOG_ERR, "QP 0x%x: the device does not take what was kept: %s", qp->qp.qp_num,
	       strerror(err));
	if (rp_qp_to_error(qp))
		rp_log(RP_LOG_ERR, "QP 0x%x does not go to ERR", qp->qp.qp_num);
	rp_lock(&qp->lock);
	qp->marker_done = false;
	marked = qp->qp.qp_type != IBV_QPT_UD && !rp_qp_post_marker(qp);
	rp_unlock(&qp->lock);
	do
		harvest(qp);
	while (!has_returned(qp, marked) && rp_now_ns() < end);
	/* What was not flushed has been executed, and asked for no completion. */
	rp_qp_retire_all(qp);
	rp_drain_fail_all(qp, first);
	rp_lock(&qp->lock);
	qp->as_is = true;
	qp->gate = false;
	rp_qp_submit_sends(qp);		/* what was posted meanwhile is flushed */
	rp_unlock(&qp->lock);
}

void rp_qp_open_gate(struct rp_qp *qp)
{
	int ret;

	if (qp->sqe) {
		rp_sqe_flush(qp);	/* it stays closed */
		return;
	}
	rp_lock(&qp->lock);
	if (rp_counters)
		rp_counters->replayed_sends += qp->sq.head - qp->sq.submitted;
	ret = rp_qp_submit_sends(qp);
	if (!ret)
		qp->gate = false;
	rp_unlock(&qp->lock);
	if (ret)
		rp_qp_not_taken(qp, ret, IBV_WC_GENERAL_ERR);
}

void rp_conn_reset(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	int ret;

	rp_conn_leave(c);
	rp_lock(&qp->lock);
	qp->recv_gate = true;
	rp_unlock(&qp->lock);
	harvest(qp);
	ret = rp_qp_to_state(qp, IBV_QPS_RESET);
	if (ret)
		rp_log(RP_LOG_ERR, "QP 0x%x: RESET: %s", qp->qp.qp_num, strerror(-ret));
	/* Some providers leave completions of the old life behind: take them while they mean us. */
	harvest(qp);
	if (c->flushing || qp->qp.srq)
		rp_async_take(c->ctx);	/* its way through ERR, or its last receive */
	/* What its SRQ gave it, and it has flushed, goes back. */
	if (qp->qp.srq && to_rp_srq(qp->qp.srq)->real)
		rp_srq_refill(to_rp_srq(qp->qp.srq));
	rp_lock(&qp->lock);
	qp->swallow = false;
	qp->sq.submitted = atomic_load(&qp->sq.retired);
	qp->rq.submitted = atomic_load(&qp->rq.retired);
	rp_unlock(&qp->lock);
	qp->marker_out = qp->marker_let = c->alt_loaded = false;
	c->inited = false;
	c->reset = true;
}

/* The module may have moved it to another path since the move began to be asked for, or the device itself. */
void rp_conn_leave(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	struct ibv_qp_attr attr;

	/* In the midst of a move it is where that has taken it. */
	if (((c->flushing || c->reset) && !c->in_rts) || !query(c, &attr))
		return;
	note_path(c, &attr);
	rp_alternate_look(qp, &attr);
	if (c->has_path)
		qp->dest.lid = c->dlid;
	/* It may be connected more than once in a move, to where the peer is said to be. */
	if (!c->left) {
		c->from = qp->dest;
		c->alt_from = qp->alt_dest;
		c->left = true;
	}
	if (attr.qp_state == IBV_QPS_SQE && qp->qp.qp_type == IBV_QPT_UC)
		__atomic_store_n(&qp->qp.state, IBV_QPS_SQE, __ATOMIC_RELEASE);
}

/* Far from every PSN that may still be on its way: at least 2^22 from the last first PSN. */
static void choose_psn(struct rp_conn *c)
{
	uint32_t r, last;

	if (c->psn_chosen)
		return;
	c->psn_chosen = true;
	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r = rp_now_ns();
	last = c->psn ? c->psn : c->qp->attr.sq_psn;
	c->psn = (last + (1u << 22) + 32 + r % (1u << 23)) & 0xffffff;
	/* Another one than before also by its low bits, which the peer's INFO repeats. */
	c->psn = (c->psn & ~31u) | ((last + 1) & 31);
}

void rp_conn_usable(struct rp_conn *c)
{
	if (c->usable)
		return;
	c->usable = true;
	choose_psn(c);
	c->due |= 1u << REPATH_MSG_INFO;
}

void rp_conn_inform(struct rp_conn *c, const struct rp_ctl_peer_msg *m,
		    const struct repath_conn_rec *r, bool early)
{
	enum ibv_mtu mtu = REPATH_REC_MTU(r->flags);

	if (early && c->informed)
		return;
	if (c->in_rts && (c->peer_qpn != r->qpn || c->peer_psn != r->psn ||
			  c->peer_lid != m->lid || c->peer_mtu != mtu ||
			  memcmp(&c->peer_gid, m->gid, sizeof(c->peer_gid)))) {
		/* It has moved itself since its READY: what this end is connected to is no more. */
		rp_conn_reset(c);
		c->in_rts = c->connected = false;
		c->due &= ~(1u << REPATH_MSG_CONNECTED);
	}
	c->peer_qpn = r->qpn;
	c->peer_psn = r->psn;
	c->peer_count = r->count;
	c->peer_mtu = mtu;
	c->peer_lid = m->lid;
	memcpy(&c->peer_gid, m->gid, sizeof(c->peer_gid));
	c->early |= early;
	c->informed |= !early;
}

void rp_conn_unusable(struct rp_conn *c)
{
	c->usable = c->told = c->in_rts = c->alt_loaded = c->connected = c->peer_connected = false;
	c->psn_chosen = false;	/* an answer to the INFO that has gone out is to be known as such */
	c->due &= ~(1u << REPATH_MSG_INFO | 1u << REPATH_MSG_CONNECTED);
	rp_message_forget(c, REPATH_MSG_INFO);
}

/* A queue pair whose peer has vanished fails as it would have without us: retries exceeded. */
static void conn_bury(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	bool fails;

	/*
	 * Its flushed completions are hidden, or it is connected again, with its receives: the device
	 * must have none left when all are made.
	 */
	if (c->stuck || c->reset)
		rp_conn_reset(c);
	fails = !c->was_error && !atomic_load(&qp->failed);
	if (fails)
		atomic_store(&qp->buried, true);
	if (rp_qp_to_error(qp))
		rp_log(RP_LOG_ERR, "QP 0x%x does not go to ERR", qp->qp.qp_num);
	if (c->reset)
		rp_drain_fail_all(qp, fails ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
	rp_lock(&qp->lock);
	qp->swallow = qp->sqe = false;
	/* The device flushes what it is given in ERR, in order, after what it had. */
	qp->as_is = true;
	rp_qp_submit_recvs(qp);
	rp_qp_submit_sends(qp);
	qp->recv_gate = false;
	qp->gate = false;
	rp_unlock(&qp->lock);
	c->due &= 1u << REPATH_MSG_GONE;
	if (c->given_up)	/* the module forgot it with the queue pair */
		c->known = REPATH_CONN_GONE;
	conn_end(c);
}

void rp_conn_cancel(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	unsigned int aborted = c->due & 1u << REPATH_MSG_ABORTED;

	if (c->stuck && qp->flushed) {
		/*
		 * It failed meanwhile, and completions of that were not shown: all are made, in order, when
		 * the device has none left.
		 */
		conn_bury(c);
		c->due |= aborted;
		return;
	}
	/* Else the peer's may come after all that is stuck in front of it; a RESET ends that. */
	if (c->peer_clear)
		allow_marker(qp, false);
	c->due = aborted;
	qp->swallow = false;
	rp_qp_open_gate(qp);
	conn_end(c);
}

static void kill_as(struct rp_conn *c, const char *why)
{
	/* The module forgets it when that is said: no message names it any more. */
	c->known = REPATH_CONN_GONE;
	c->alone = false;
	if (!c->moving)
		return;
	rp_log(RP_LOG_ERR, "QP 0x%x: %s", c->qp->qp.qp_num, why);
	c->dead = true;
	/* Without a device there is nothing to bury it in yet; a move that is given up has kept its own. */
	if (!c->mover || c->usable || c->aborting)
		conn_bury(c);
}

void rp_conn_kill(struct rp_conn *c)
{
	kill_as(c, "the peer's end is gone");
}

void rp_conn_disown(struct rp_conn *c)
{
	c->was_error = true;
	kill_as(c, "is taken out of service by its owner while its peer moves");
}

/* This end has gone on, and the other one has left RTS: they can not be brought together again. */
void rp_conn_part(struct rp_conn *c)
{
	rp_log(RP_LOG_ERR, "QP 0x%x: the peer has stopped and did not hear that the move was given up",
	       c->qp->qp.qp_num);
	rp_conn_begin(c, false);
	if (!c->moving)		/* it had failed, or has no peer any more */
		return;
	c->due |= 1u << REPATH_MSG_GONE;
	rp_conn_kill(c);
}

void rp_conn_give_up(struct rp_conn *c)
{
	if (c->dead)
		return;
	c->given_up = c->dead = true;
	c->due = 0;
	rp_log(RP_LOG_ERR, "QP 0x%x: its connection is given up%s", c->qp->qp.qp_num,
	       c->known == REPATH_CONN_NO_PEER ? ": its peer's host has no such queue pair" : " by force");
}

/* Nothing comes from here any more: the device has nothing, and the gate is closed. */
static void be_quiet(struct rp_conn *c)
{
	c->quiet = true;
	c->due |= 1u << REPATH_MSG_READY;
	if (!c->mover)
		choose_psn(c);
}

/* Before anything is given to it that its owner does not want to be sent. */
static bool hold_back(struct rp_conn *c)
{
	int ret = rp_qp_hold_back(c->qp);

	if (!ret)
		return true;
	rp_log(RP_LOG_ERR, "QP 0x%x: can not be put back into SQD: %s", c->qp->qp.qp_num, strerror(-ret));
	c->due |= 1u << REPATH_MSG_GONE;
	rp_conn_kill(c);
	return false;
}

void rp_conn_step(struct rp_conn *c)
{
	if (!c->moving || c->aborting)
		return;
	if (c->dead) {
		if (c->usable)
			conn_bury(c);
		return;
	}
	if (!c->drained)
		rp_drain_step(c);
	/* The device may have lost its patience with what is stuck. */
	if (c->drained && has_failed(c)) {
		conn_failed(c);
		return;
	}
	/* What is stuck may still be received; when the peer has stopped, nothing is any more. */
	if (c->drained && !c->quiet && (!c->stuck || (c->peer_drained && rp_drain_flush(c))))
		be_quiet(c);
	/* Of two that stay the one that has begun says first where it is. */
	if (c->reset && (c->informed || c->cycle == RP_CYCLE_RUNS) && !c->mover)
		rp_conn_usable(c);
	/* An end that stays is bound to its queue pair: INFO can say that it is connected already. */
	if (c->usable && c->informed && !c->in_rts && !c->mover)
		rp_conn_connect(c);
	/* The peer may use the windows when it has heard this. */
	if (c->in_rts && !c->connected && rp_mw_rebound(c->qp)) {
		if (!hold_back(c))
			return;
		c->connected = true;
		c->due |= 1u << REPATH_MSG_CONNECTED;
	}
	if (c->usable && c->peer_to_qpn == c->qp->real->qp_num && c->peer_to_psn == c->psn)
		c->peer_connected = true;
}

bool rp_conn_finish(struct rp_conn *c)
{
	if (!c->moving || !c->connected || !c->informed || !c->peer_connected)
		return false;
	if (!rp_drain_settle(c)) {
		c->due |= 1u << REPATH_MSG_GONE;
		rp_conn_kill(c);
		return true;
	}
	rp_alternate_again(c);
	rp_qp_open_gate(c->qp);
	c->due &= 1u << REPATH_MSG_CONNECTED | 1u << REPATH_MSG_INFO;
	conn_end(c);
	return true;
}

bool rp_conn_work(struct rp_conn *c)
{
	if (!c->moving || c->aborting || c->dead)
		return false;
	if (c->quiet && c->peer_quiet && !c->reset && !c->mover) {
		rp_conn_reset(c);
		c->inited = !rp_qp_to_init(c->qp);	/* else it fails again when it is connected */
		return true;
	}
	/*
	 * Not before the own INFO is out, which binds the connection to this queue pair: the module
	 * would take one that reaches RTR without for a new connection. INFO of a peer that moves as
	 * well may have been here long before. Where its READY says that it is, a peer is looked for
	 * only after it was reached there: on RoCE a modify_qp() that finds nobody takes a second.
	 * Windows are bound once, to the queue pair that stays.
	 */
	if (c->usable && !c->in_rts && !(c->due & 1u << REPATH_MSG_INFO) &&
	    (c->informed || (c->told && c->early && list_empty(&c->ctx->mws)))) {
		rp_conn_connect(c);
		return true;
	}
	/* The peer hears by CONNECTED that it may go on: before this end's kept work is given to the device. */
	if (rp_conn_finish(c))
		return true;
	/* Nothing has to be known of the peer for this, while it reads the INFO. */
	if (c->usable && c->mover && !c->inited && !c->informed && !(c->due & 1u << REPATH_MSG_INFO)) {
		c->inited = !rp_qp_to_init(c->qp);
		return c->inited;
	}
	return false;
}

void rp_conn_stay(struct rp_conn *c)
{
	/*
	 * Who modifies a queue pair holds its context's verbs first, which this move still has. One that was
	 * the peer's end before it was a mover has the lock.
	 */
	if (!c->control)
		pthread_mutex_lock(&c->qp->control);
	c->control = true;
	c->mover = false;
	c->aborting = false;
	/* The ABORT may have gone in the place of these. */
	if (c->quiet)
		be_quiet(c);
	else
		c->due |= 1u << REPATH_MSG_GATE;
}
