// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The connections of this process and the processes at their other ends, as the module knows them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "keys.h"
#include "move.h"

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

	if (qp->qp.qp_type == IBV_QPT_UC && state == IBV_QPS_SQE)
		return true;
	return (qp->qp.qp_type == IBV_QPT_RC || qp->qp.qp_type == IBV_QPT_UC) &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD);
}

/* Every record of every message is looked up. */
static struct rp_conn *by_id[1024];

static struct rp_conn **hash_row(uint32_t id)
{
	return &by_id[id % (sizeof(by_id) / sizeof(by_id[0]))];
}

struct rp_conn *rp_conn_find(uint32_t id)
{
	struct rp_conn *c = *hash_row(id);

	while (c && c->id != id)
		c = c->next_hashed;
	return c;
}

static void unhash(struct rp_conn *c)
{
	struct rp_conn **at = hash_row(c->id);

	while (*at && *at != c)
		at = &(*at)->next_hashed;
	if (*at)
		*at = c->next_hashed;
}

struct rp_peer *rp_peer_find(uint32_t id)
{
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node)
		if (p->id == id && !p->of_lost_module)
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
	list_init(&p->streams);
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
	rp_keys_forget_peer(peer);
	rp_keys_forget_streams(peer);
	list_del(&peer->node);
	free(peer);
	if (asked)
		rp_move_prepared();
}

void rp_conn_forget(struct rp_conn *c)
{
	struct rp_peer *peer = c->peer;

	if (c->qp->conn == c)
		c->qp->conn = NULL;
	unhash(c);
	list_del(&c->node);
	list_del(&c->in_peer);
	free(c);
	peer_put(peer);
}

/* Some peers have another number, see rp_conns_renumbered(). */
static bool renumbered;

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

/*
 * While it is on a move the module names a connection by the number that its queue pair had last, which is another one's by
 * now, or nobody's: then its own number says which it is. Else that may be another one's, of a module that has gone.
 */
static struct rp_qp *qp_of_row(const struct qp_index *ix, const struct rp_ctl_conn *row)
{
	uint64_t key = qp_key(row->dev_index, row->qpn);
	const struct rp_conn *c = rp_conn_find(row->conn_id);
	const __typeof__(*ix->rows) *hit;

	if (c && (c->moving || !c->qp->real))
		return c->qp;
	hit = ix->n ? bsearch(&key, ix->rows, ix->n, sizeof(*ix->rows), cmp_key) : NULL;
	return hit ? hit->qp : NULL;
}

static void conn_row(const struct rp_ctl_conn *row, void *arg)
{
	struct qp_index *ix = arg;
	uint16_t round = 0, heard = 0;
	struct rp_qp *qp = qp_of_row(ix, row);
	struct rp_conn *c;

	if (!qp)
		return;		/* being destroyed */
	c = qp->conn;
	if (c && c->id != row->conn_id) {
		/* The module has been loaded anew; RESET ends a connection. The other end counts on. */
		round = c->round;
		heard = rp_round_heard(c);
		rp_conn_forget(c);
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
		c->round = round;
		c->peer_round = c->peer_over = heard;
		c->qp = qp;
		c->ctx = rp_qp_context(qp);
		c->next_hashed = *hash_row(c->id);
		*hash_row(c->id) = c;
		list_add_tail(&rp_conns, &c->node);
		list_add_tail(&c->peer->conns, &c->in_peer);
		qp->conn = c;
	} else if (c->peer->id != row->peer_id) {
		struct rp_peer *old = c->peer, *new = peer_get(row->peer_id);

		if (!new) {
			ix->err = -ENOMEM;
			return;
		}
		list_del(&c->in_peer);
		c->peer = new;
		list_add_tail(&new->conns, &c->in_peer);
		/* By its new number it has not been asked, and has no keys. */
		c->ask_again = c->asked && old->prepares;
		c->keys_epoch = 0;
		renumbered = true;
	}
	c->known = row->state;
	c->listed = true;
}

/* What has moved tells its keys to those who have not been told of them. */
static void push_keys(void)
{
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node)
		if (c->ctx->epoch && !c->keys_epoch)
			rp_keys_push_peer(c->peer, c->ctx);
}

void rp_conns_renumbered(void)
{
	struct rp_conn *c, *other;
	struct rp_peer *p, *next;

	if (!renumbered)
		return;
	renumbered = false;
	list_for_each(c, &rp_conns, node) {
		if (!c->ask_again)
			continue;
		c->ask_again = false;
		if (c->known == REPATH_CONN_GONE)
			continue;
		if (!rp_conn_is_ready(c)) {
			rp_move_refused(c->ctx, "its peer's module has been loaded anew");
			continue;
		}
		/* One question is about all of them. */
		list_for_each(other, &c->peer->conns, in_peer)
			if (other->ctx == c->ctx && rp_conn_is_ready(other))
				other->ask_again = false;
		rp_peer_prepare(c->peer, c->ctx);
	}
	/* Before the old ones go: who waits for a key to be known waits for the new ones then. */
	push_keys();
	list_for_each_safe(p, next, &rp_peers, node)
		peer_put(p);
}

void rp_conn_ready(const struct rp_ctl_conn *row)
{
	struct qp_index ix = { 0 };
	struct rp_conn *c;

	qp_index_fill(&ix);
	conn_row(row, &ix);
	free(ix.rows);
	c = rp_conn_find(row->conn_id);
	if (!c)
		return;
	/* The module looks for it elsewhere now; INFO will tell it the keys, too. */
	if (row->moving)
		rp_peer_back(c->peer);
	else
		rp_keys_push_peer(c->peer, c->ctx);
}

/* It is not forgotten: the module may have been loaded anew just now, and not have been told of it yet. */
static void not_listed(struct rp_conn *c)
{
	if (!rp_conn_is_ready(c))
		return;
	rp_log(RP_LOG_INFO, "QP 0x%x: the module does not have its connection %u any more",
	       c->qp->qp.qp_num, c->id);
	c->known = REPATH_CONN_NEW;
}

int rp_conns_refresh(void)
{
	struct qp_index ix = { 0 };
	struct rp_conn *c;
	int ret;

	qp_index_fill(&ix);
	list_for_each(c, &rp_conns, node)
		c->listed = false;
	ret = ix.err ? ix.err : rp_ctl_conns(conn_row, &ix);
	free(ix.rows);
	ret = ret ? ret : ix.err;
	if (!ret)
		list_for_each(c, &rp_conns, node)
			if (!c->listed)
				not_listed(c);
	return ret;
}

/*
 * The next module counts from where it likes: what one number meant and what it will mean have nothing to do with each
 * other. Found by none, each is replaced when the module that comes names its queue pair.
 */
void rp_conns_lost_module(void)
{
	struct rp_peer *p;
	struct rp_conn *c;

	list_for_each(p, &rp_peers, node) {
		p->of_lost_module = true;
		rp_peer_drop(p);
	}
	memset(by_id, 0, sizeof(by_id));
	list_for_each(c, &rp_conns, node) {
		c->next_hashed = NULL;
		c->id = c->asked = c->due = 0;
		if (rp_conn_is_ready(c))
			c->known = REPATH_CONN_NEW;
	}
}

void rp_conns_missed(void)
{
	rp_conns_refresh();
	push_keys();
}

/* The module knows a child of fork by no connection; nothing is freed that may have been half changed. */
void rp_conns_forked(void)
{
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node) {
		c->qp->conn = NULL;
		if (c->control)		/* by a thread that is not there */
			pthread_mutex_init(&c->qp->control, NULL);
	}
	list_init(&rp_conns);
	list_init(&rp_peers);
	memset(by_id, 0, sizeof(by_id));
}
