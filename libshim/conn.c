// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "conn.h"

struct list_head rp_conns = { { &rp_conns.n, &rp_conns.n } };
struct list_head rp_peers = { { &rp_peers.n, &rp_peers.n } };

uint64_t rp_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

bool rp_conn_connectable(const struct rp_qp *qp)
{
	/* The application may modify it meanwhile; after the state its attributes are there. */
	enum ibv_qp_state state = __atomic_load_n(&qp->qp.state, __ATOMIC_ACQUIRE);

	return (qp->qp.qp_type == IBV_QPT_RC || qp->qp.qp_type == IBV_QPT_UC) &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD);
}

struct rp_conn *rp_conn_find(uint32_t id)
{
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node)
		if (c->id == id)
			return c;
	return NULL;
}

struct rp_peer *rp_peer_find(uint32_t id)
{
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node)
		if (p->id == id)
			return p;
	return NULL;
}

static struct rp_peer *peer_get(uint32_t id)
{
	struct rp_peer *p = rp_peer_find(id);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->id = id;
	list_init(&p->conns);
	list_init(&p->keysets);
	list_add_tail(&rp_peers, &p->node);
	return p;
}

/* Nothing that it has not answered counts any more. */
static void peer_put(struct rp_peer *peer)
{
	bool asked = peer->prepares;

	if (!list_empty(&peer->conns))
		return;
	rp_peer_drop(peer);
	rp_keys_free(peer);
	list_del(&peer->node);
	free(peer);
	if (asked)
		rp_move_prepared(NULL, NULL);
}

void rp_conn_forget(struct rp_conn *c)
{
	struct rp_peer *peer = c->peer;

	if (c->qp->conn == c)
		c->qp->conn = NULL;
	rp_keys_publish(c->qp, NULL);
	list_del(&c->node);
	list_del(&c->in_peer);
	free(c);
	peer_put(peer);
}

/* Queue pairs by what the module knows of them, for one pass over its list. */
struct qp_index {
	struct {
		uint64_t key;
		struct rp_qp *qp;
	} *rows;
	size_t n, room;
	int err;
};

static uint64_t qp_key(uint32_t dev_index, uint32_t qpn)
{
	return (uint64_t)dev_index << 32 | qpn;
}

static int cmp_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void qp_index_fill(struct qp_index *ix)
{
	struct rp_context *ctx;
	struct rp_qp *qp;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node) {
		rp_lock(&ctx->objects);
		list_for_each(qp, &ctx->qps, node) {
			void *grown;

			if (!qp->real)
				continue;
			if (ix->n == ix->room) {
				ix->room = ix->room ? 2 * ix->room : 64;
				grown = realloc(ix->rows, ix->room * sizeof(*ix->rows));
				if (!grown) {
					ix->err = -ENOMEM;
					break;
				}
				ix->rows = grown;
			}
			ix->rows[ix->n].key = qp_key(ctx->dev_index, qp->real->qp_num);
			ix->rows[ix->n++].qp = qp;
		}
		rp_unlock(&ctx->objects);
	}
	rp_unlock(&rp_contexts_lock);
	if (ix->n)
		qsort(ix->rows, ix->n, sizeof(*ix->rows), cmp_key);
}

static void conn_row(const struct rp_ctl_conn *row, void *arg)
{
	struct qp_index *ix = arg;
	uint64_t key = qp_key(row->dev_index, row->qpn);
	struct rp_qp *qp;
	struct rp_conn *c;
	void *hit;

	hit = ix->n ? bsearch(&key, ix->rows, ix->n, sizeof(*ix->rows), cmp_key) : NULL;
	if (!hit)
		return;		/* being destroyed, or its device is away: we know it already */
	qp = ((__typeof__(ix->rows))hit)->qp;
	c = qp->conn;
	if (c && c->id != row->conn_id) {
		rp_conn_forget(c);	/* connected to somebody else since */
		c = NULL;
	}
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (c)
			c->peer = peer_get(row->peer_id);
		if (!c || !c->peer) {
			free(c);
			ix->err = -ENOMEM;
			return;
		}
		c->id = row->conn_id;
		c->qp = qp;
		c->ctx = rp_qp_context(qp);
		list_add_tail(&rp_conns, &c->node);
		list_add_tail(&c->peer->conns, &c->in_peer);
		qp->conn = c;
	} else if (c->peer->id != row->peer_id) {
		struct rp_peer *old = c->peer, *new = peer_get(row->peer_id);

		if (!new) {
			ix->err = -ENOMEM;
			return;
		}
		/* The tables of the one it was connected to go with that one. */
		if (qp->rkeys)
			rp_keys_publish(qp, NULL);
		list_del(&c->in_peer);
		c->peer = new;
		list_add_tail(&new->conns, &c->in_peer);
		peer_put(old);
	}
	c->known = row->state;
}

int rp_conns_refresh(void)
{
	struct qp_index ix = { 0 };
	int ret;

	qp_index_fill(&ix);
	ret = ix.err ? ix.err : rp_ctl_conns(conn_row, &ix);
	free(ix.rows);
	return ret ? ret : ix.err;
}

/*
 * The marker is an RDMA WRITE of no bytes. The responder looks at no key for it (IBA 1.2.1 vol 1,
 * 9.4.4, C9-88) but at the queue pair's access flags.
 */
static void allow_marker(struct rp_qp *qp, bool allow)
{
	struct ibv_qp_attr attr = { .qp_access_flags = qp->attr.qp_access_flags };

	if (qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)
		return;
	if (allow)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	rp_qp_modify_real(qp, &attr, IBV_QP_ACCESS_FLAGS);
}

static bool real_in_error(struct rp_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	if (RP_REAL(rp_real.ibv_query_qp(qp->real, &attr, IBV_QP_STATE, &init)))
		return false;
	return attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE;
}

void rp_conn_begin(struct rp_conn *c, bool mover)
{
	struct rp_qp *qp = c->qp;

	if (c->moving) {
		c->mover |= mover;
		return;
	}
	if (!mover)
		pthread_mutex_lock(&qp->control);
	c->control = !mover;
	c->moving = true;
	c->round++;
	c->mover = mover;
	c->peer_gated = c->drained = c->stuck = c->peer_drained = c->peer_stuck = false;
	c->quiet = c->peer_quiet = c->flushing = c->reset = c->usable = false;
	c->informed = c->connected = c->peer_connected = c->aborting = c->dead = false;
	c->marker_old = c->marker_out;
	c->keys_sent = false;
	c->due = 0;
	c->progress = atomic_load(&qp->sq.retired);
	c->progress_ns = rp_now_ns();

	rp_lock(&qp->lock);
	qp->gate = true;
	rp_unlock(&qp->lock);

	if (c->known == REPATH_CONN_GONE) {
		rp_conn_kill(c);
		return;
	}
	if (real_in_error(qp)) {
		/* It failed before us and for its own reason: its completions say why. */
		rp_log(RP_LOG_INFO, "QP 0x%x was in error before the move", qp->qp.qp_num);
		c->due |= 1u << REPATH_MSG_GONE;
		rp_conn_kill(c);
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
	c->mover = c->control = false;
}

/* Gives kept sends to the device and lets new ones through. */
static void open_gate(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	int ret;

	rp_lock(&qp->lock);
	if (rp_counters)
		rp_counters->replayed_sends += qp->sq.head - qp->sq.submitted;
	ret = rp_qp_submit_sends(qp);
	if (!ret)
		qp->gate = false;
	rp_unlock(&qp->lock);
	if (ret) {
		/* The device does not take what the old one took: nothing left but its error. */
		rp_log(RP_LOG_ERR, "QP 0x%x: replay failed: %s", qp->qp.qp_num, strerror(ret));
		rp_drain_fail_all(qp, IBV_WC_GENERAL_ERR);
		rp_lock(&qp->lock);
		qp->gate = false;
		rp_unlock(&qp->lock);
	}
}

void rp_conn_cancel(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;

	allow_marker(qp, false);
	c->due &= 1u << REPATH_MSG_ABORTED;
	qp->swallow = false;
	if (c->stuck && qp->flushed) {
		/* It failed meanwhile, and its completions were not shown. */
		rp_drain_harvest(c->ctx);
		rp_drain_fail_all(qp, IBV_WC_RETRY_EXC_ERR);
	}
	open_gate(c);
	conn_end(c);
}

static int to_state(struct rp_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return rp_qp_modify_real(qp, &attr, IBV_QP_STATE);
}

void rp_conn_reset(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	int ret;

	rp_lock(&qp->lock);
	qp->recv_gate = true;
	rp_unlock(&qp->lock);
	rp_drain_harvest(c->ctx);
	ret = to_state(qp, IBV_QPS_RESET);
	if (ret)
		rp_log(RP_LOG_ERR, "QP 0x%x: RESET: %s", qp->qp.qp_num, strerror(-ret));
	/* Some providers leave completions of the old life behind: take them while they mean us. */
	rp_drain_harvest(c->ctx);
	rp_lock(&qp->lock);
	qp->swallow = false;
	qp->sq.submitted = atomic_load(&qp->sq.retired);
	qp->rq.submitted = atomic_load(&qp->rq.retired);
	rp_unlock(&qp->lock);
	c->marker_out = false;
	c->reset = true;
}

void rp_conn_usable(struct rp_conn *c)
{
	uint32_t r;

	if (c->usable)
		return;
	c->usable = true;
	/* Far from every PSN that may still be on its way: at least 2^22 from the last first PSN. */
	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r = rp_now_ns();
	c->psn = ((c->psn ? c->psn : c->qp->attr.sq_psn) + (1u << 22) + r % (1u << 23)) & 0xffffff;
	c->due |= 1u << REPATH_MSG_INFO;
}

static int to_init(struct rp_qp *qp)
{
	struct ibv_qp_attr attr = qp->attr;
	int ret;

	attr.qp_state = IBV_QPS_INIT;
	ret = rp_qp_modify_real(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				IBV_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	rp_lock(&qp->lock);
	if (rp_counters)
		rp_counters->replayed_recvs += qp->rq.head - qp->rq.submitted;
	ret = -rp_qp_submit_recvs(qp);
	if (!ret)
		qp->recv_gate = false;
	rp_unlock(&qp->lock);
	return ret;
}

static enum ibv_mtu min_mtu(enum ibv_mtu a, enum ibv_mtu b)
{
	return b && b < a ? b : a;
}

static int to_rtr(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	struct ibv_qp_attr attr = qp->attr;
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp.qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = c->peer_qpn;
	attr.rq_psn = c->peer_psn;
	attr.path_mtu = min_mtu(attr.path_mtu, c->peer_mtu);
	if (attr.ah_attr.is_global)
		attr.ah_attr.grh.dgid = c->peer_gid;
	if (c->peer_lid)
		attr.ah_attr.dlid = c->peer_lid;
	return rp_qp_modify_real(qp, &attr, mask);
}

static int to_rts(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	struct ibv_qp_attr attr = qp->attr;
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp.state == IBV_QPS_RTR)
		return 0;	/* it only ever received */
	if (qp->qp.qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = c->psn;
	return rp_qp_modify_real(qp, &attr, mask);
}

static void conn_connect(struct rp_conn *c)
{
	int ret;

	ret = to_init(c->qp);
	if (!ret)
		ret = to_rtr(c);
	if (!ret)
		ret = to_rts(c);
	if (ret) {
		rp_log(RP_LOG_ERR, "QP 0x%x: can not be connected to QP 0x%x again: %s",
		       c->qp->qp.qp_num, c->peer_qpn, strerror(-ret));
		c->due |= 1u << REPATH_MSG_GONE;
		rp_conn_kill(c);
		return;
	}
	c->connected = true;
	c->due |= 1u << REPATH_MSG_CONNECTED;
	rp_log(RP_LOG_INFO, "QP 0x%x is now 0x%x, connected to 0x%x, PSN 0x%x/0x%x",
	       c->qp->qp.qp_num, c->qp->real->qp_num, c->peer_qpn, c->psn, c->peer_psn);
}

int rp_qp_restore(struct rp_qp *qp)
{
	int ret = 0;

	if (qp->qp.state == IBV_QPS_INIT)
		return to_init(qp);
	if (qp->qp.state == IBV_QPS_ERR || qp->qp.state == IBV_QPS_SQE) {
		ret = to_state(qp, IBV_QPS_ERR);
		rp_lock(&qp->lock);
		qp->recv_gate = false;
		qp->gate = false;
		rp_unlock(&qp->lock);
	} else {
		rp_lock(&qp->lock);
		qp->recv_gate = false;
		qp->gate = false;
		rp_unlock(&qp->lock);
	}
	return ret;
}

/* A queue pair whose peer has vanished fails as it would have without us: retries exceeded. */
static void conn_bury(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;

	/* Its flushed completions are hidden: the device must have none left when they are made. */
	if (c->stuck && !c->reset)
		rp_conn_reset(c);
	to_state(qp, IBV_QPS_ERR);
	if (c->reset)
		rp_drain_fail_all(qp, IBV_WC_RETRY_EXC_ERR);
	rp_lock(&qp->lock);
	qp->swallow = false;
	/* The device flushes what it is given in ERR, in order, after what it had. */
	rp_qp_submit_recvs(qp);
	rp_qp_submit_sends(qp);
	qp->recv_gate = false;
	qp->gate = false;
	rp_unlock(&qp->lock);
	c->due &= 1u << REPATH_MSG_GONE;
	conn_end(c);
}

void rp_conn_kill(struct rp_conn *c)
{
	if (!c->moving)
		return;
	rp_log(RP_LOG_ERR, "QP 0x%x: the peer's end is gone", c->qp->qp.qp_num);
	c->dead = true;
	/* Without a device there is nothing to bury it in yet. */
	if (!c->mover || c->usable)
		conn_bury(c);
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
	if (c->peer_gated && !c->drained)
		rp_drain_step(c);
	if (c->drained && c->peer_drained && !c->quiet && (!c->stuck || rp_drain_flush(c))) {
		c->quiet = true;
		c->due |= 1u << REPATH_MSG_READY;
	}
	if (c->quiet && c->peer_quiet && !c->reset && !c->mover)
		rp_conn_reset(c);
	if (c->reset && c->informed && !c->mover)
		rp_conn_usable(c);
	if (c->usable && c->informed && !c->connected)
		conn_connect(c);
	if (c->connected && c->peer_connected) {
		rp_drain_settle(c);
		open_gate(c);
		c->due &= 1u << REPATH_MSG_CONNECTED | 1u << REPATH_MSG_INFO;
		conn_end(c);
	}
}
