// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages to and from the peers' shims. What is due is kept as bits in the connections and
 * gathered here, so that a peer process gets one message for all its connections. A message
 * that the module could not deliver is repeated; all of them may come twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conn.h"

#define RETRY_NS	50000000ull
#define KEYS_WAIT_S	2

struct message {
	struct list_node node;
	struct rp_peer *peer;
	uint32_t id;
	enum repath_msg type;
	bool inflight, bound;
	struct rp_ctl_bind bind;
	uint64_t next_ns, deadline_ns;
	unsigned int nrecs, blob_len;
	struct repath_conn_rec *recs;
	char *blob;
};

static struct list_head messages = { { &messages.n, &messages.n } };
static uint32_t last_id;

/* Threads that wait for KEYS_ACK. */
static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t keys_done = PTHREAD_COND_INITIALIZER;

/*
 * How long a message is worth repeating. PREPARE has somebody waiting at a prompt. A peer that does not hear
 * an INFO or ABORT for so long is as dead as one that answers no retry of the HCA.
 */
static uint64_t patience_ns(enum repath_msg type)
{
	switch (type) {
	case REPATH_MSG_PREPARE:
		return 4000000000ull;
	case REPATH_MSG_ABORT:
		return 10000000000ull;
	default:
		return 30000000000ull;
	}
}

static void message_free(struct message *m)
{
	list_del(&m->node);
	free(m->recs);
	free(m->blob);
	free(m);
}

static void message_try(struct message *m)
{
	int ret = rp_ctl_peer_send(m->peer->id, m->type, m->id, m->recs, m->nrecs,
				   m->bound ? &m->bind : NULL, m->blob, m->blob_len);

	m->inflight = !ret;
	m->next_ns = rp_now_ns() + RETRY_NS;
}

static struct message *message_new(struct rp_peer *peer, enum repath_msg type, unsigned int nrecs,
				   const void *blob, unsigned int blob_len)
{
	struct message *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->recs = calloc(nrecs ? nrecs : 1, sizeof(*m->recs));
	m->blob = blob_len ? malloc(blob_len) : NULL;
	if (!m->recs || (blob_len && !m->blob)) {
		free(m->recs);
		free(m->blob);
		free(m);
		return NULL;
	}
	if (blob_len)
		memcpy(m->blob, blob, blob_len);
	m->blob_len = blob_len;
	m->peer = peer;
	m->type = type;
	m->id = ++last_id ? last_id : ++last_id;
	m->deadline_ns = rp_now_ns() + patience_ns(type);
	list_add_tail(&messages, &m->node);
	return m;
}

/*
 * A KEYS or PREPARE that the peer has not answered. Answers may come twice, and late: they are
 * known by the number of the message, which the records carry there and back.
 */
struct question {
	struct list_node node;
	struct rp_peer *peer;
	uint32_t id;
	uint64_t deadline_ns;
	unsigned int *count;	/* in peer */
};

static struct list_head questions = { { &questions.n, &questions.n } };

static bool ask(struct message *m, unsigned int *count)
{
	struct question *q = calloc(1, sizeof(*q));
	unsigned int i;

	if (!q)
		return false;
	for (i = 0; i < m->nrecs; i++)	/* whichever of them comes back first */
		m->recs[i].count = m->id;
	q->peer = m->peer;
	q->id = m->id;
	q->deadline_ns = m->deadline_ns;
	q->count = count;
	list_add_tail(&questions, &q->node);
	++*count;
	return true;
}

static bool answered(struct rp_peer *peer, uint32_t id)
{
	struct question *q, *tmp;

	list_for_each_safe(q, tmp, &questions, node)
		if (q->peer == peer && q->id == id) {
			list_del(&q->node);
			--*q->count;
			free(q);
			return true;
		}
	return false;
}

void rp_peer_forked(void)
{
	list_init(&messages);
	list_init(&questions);
}

void rp_peer_expire(void)
{
	struct question *q, *tmp;
	uint64_t now = rp_now_ns();

	list_for_each_safe(q, tmp, &questions, node) {
		struct rp_peer *peer = q->peer;
		bool prepare = q->count == &peer->prepares;

		if (now < q->deadline_ns)
			continue;
		rp_log(RP_LOG_ERR, "peer %u has had message %u and does not answer", peer->id,
		       q->id);
		answered(peer, q->id);
		if (prepare)
			rp_move_prepared(peer, "its peer does not answer");
	}
}

void rp_peer_drop(struct rp_peer *peer)
{
	struct message *m, *tmp;
	struct question *q, *next;

	list_for_each_safe(q, next, &questions, node)
		if (q->peer == peer) {
			list_del(&q->node);
			free(q);
		}
	peer->acks = peer->prepares = 0;

	list_for_each_safe(m, tmp, &messages, node)
		if (m->peer == peer)
			message_free(m);
}

int rp_peer_wait_ms(void)
{
	struct message *m;
	struct question *q;
	uint64_t now = rp_now_ns();
	int wait = -1;

	list_for_each(m, &messages, node) {
		int ms = m->next_ns > now ? (m->next_ns - now) / 1000000 + 1 : 0;

		if (!m->inflight && (wait < 0 || ms < wait))
			wait = ms;
	}
	list_for_each(q, &questions, node) {
		int ms = q->deadline_ns > now ? (q->deadline_ns - now) / 1000000 + 1 : 0;

		if (wait < 0 || ms < wait)
			wait = ms;
	}
	return wait;
}

static void record(struct repath_conn_rec *r, const struct rp_conn *c, enum repath_msg type)
{
	r->conn_id = c->id;
	r->qpn = c->qp->real ? c->qp->real->qp_num : c->qp->qp.qp_num;
	r->psn = c->psn;
	r->count = atomic_load(&c->qp->recvs_done);
	r->flags = (uint32_t)c->round << REPATH_REC_ROUND_SHIFT;
	if (type == REPATH_MSG_DRAINED && c->stuck)
		r->flags |= REPATH_REC_STUCK;
	if (type == REPATH_MSG_ABORTED) {
		r->flags = (uint32_t)c->abort_round << REPATH_REC_ROUND_SHIFT;
		r->count = c->round;
		if (c->reset)
			r->flags |= REPATH_REC_RESET;
	}
}

static enum ibv_mtu active_mtu(struct rp_context *ctx, uint8_t port)
{
	struct ibv_port_attr attr = { 0 };

	if (!ctx->real || RP_REAL(rp_real.ibv_query_port(ctx->real, port, (void *)&attr)))
		return 0;
	return attr.active_mtu;
}

static struct rp_ctl_bind bind_of(const struct rp_conn *c)
{
	const struct ibv_qp_attr *a = &c->qp->attr;
	struct rp_ctl_bind b = {
		.dev_index = c->ctx->dev_index,
		.port = a->port_num,
		.sgid_index = a->ah_attr.grh.sgid_index,
	};

	if (b.port && b.port <= 4 && c->ctx->sgid_map[b.port - 1] &&
	    (int)b.sgid_index < c->ctx->sgid_map_len)
		b.sgid_index = c->ctx->sgid_map[b.port - 1][b.sgid_index];
	return b;
}

static bool same_bind(const struct rp_conn *a, const struct rp_conn *b)
{
	return a->ctx == b->ctx && a->qp->attr.port_num == b->qp->attr.port_num &&
	       a->qp->attr.ah_attr.grh.sgid_index == b->qp->attr.ah_attr.grh.sgid_index;
}

static void send_keys(struct rp_conn *c, const void *blob, unsigned int len)
{
	struct message *m = message_new(c->peer, REPATH_MSG_KEYS, 1, blob, len);

	if (!m)
		return;
	record(m->recs, c, REPATH_MSG_KEYS);
	m->nrecs = 1;
	ask(m, &c->peer->acks);
	message_try(m);
}

/*
 * More keys than one message carries go ahead in KEYS. The peer opens its gate some time after
 * INFO, which therefore waits until they are acknowledged: false.
 */
static bool keys_blob(struct rp_conn *c, char *blob, unsigned int *len)
{
	unsigned int next = 0;

	*len = 0;
	if (!c->ctx->epoch)
		return true;
	for (;;) {
		*len = rp_keys_fill(c->ctx, next, blob, REPATH_BLOB_MAX, &next);
		if (!next)
			break;
		if (!c->keys_sent)
			send_keys(c, blob, *len);
	}
	c->keys_sent = true;
	return !c->peer->acks;
}

static void send_due(struct rp_peer *peer, enum repath_msg type)
{
	static char blob[REPATH_BLOB_MAX];	/* of the control thread */
	const unsigned int bit = 1u << type;
	struct rp_conn *c, *first;
	struct message *m;

	for (;;) {
		unsigned int n = 0, len = 0;

		first = NULL;
		list_for_each(c, &peer->conns, in_peer) {
			if (!(c->due & bit) || (first && !same_bind(first, c)))
				continue;
			if (!first)
				first = c;
			if (++n == REPATH_CONNS_MAX)
				break;
		}
		if (!first)
			return;
		if (type == REPATH_MSG_INFO && !keys_blob(first, blob, &len))
			return;
		m = message_new(peer, type, n, blob, len);
		if (!m)
			return;		/* the bits stay: tried again at the next tick */
		if (type == REPATH_MSG_INFO) {
			m->bound = true;
			m->bind = bind_of(first);
		}
		list_for_each(c, &peer->conns, in_peer) {
			if (m->nrecs == n)
				break;
			if (!(c->due & bit) || !same_bind(first, c))
				continue;
			record(&m->recs[m->nrecs], c, type);
			if (type == REPATH_MSG_INFO)
				m->recs[m->nrecs].flags |= active_mtu(c->ctx, m->bind.port)
							   << REPATH_REC_MTU_SHIFT;
			m->nrecs++;
			c->due &= ~bit;
		}
		message_try(m);
	}
}

void rp_peer_flush(void)
{
	uint64_t now = rp_now_ns();
	struct message *m, *tmp;
	struct rp_peer *p;
	int type;

	list_for_each_safe(m, tmp, &messages, node)
		if (!m->inflight && now >= m->next_ns)
			message_try(m);
	list_for_each(p, &rp_peers, node)
		for (type = REPATH_MSG_NONE + 1; type < __REPATH_MSG_MAX; type++)
			send_due(p, type);
}

static void give_up(struct message *m, int err)
{
	struct rp_peer *peer = m->peer;
	struct rp_conn *c;
	unsigned int i;
	char why[96];

	rp_log(RP_LOG_ERR, "message %d to peer %u was not delivered: %s", m->type, peer->id,
	       strerror(err));
	if (m->type == REPATH_MSG_PREPARE) {
		snprintf(why, sizeof(why), "its peer's host does not answer (%s)", strerror(err));
		answered(peer, m->id);
		message_free(m);
		rp_move_prepared(peer, why);
		return;
	}
	if (m->type == REPATH_MSG_KEYS)
		answered(peer, m->id);
	for (i = 0; i < m->nrecs; i++) {
		c = rp_conn_find(m->recs[i].conn_id);
		if (!c || !c->moving)
			continue;
		if (m->type == REPATH_MSG_ABORT && c->aborting)
			rp_conn_cancel(c);
		else if (m->type == REPATH_MSG_INFO)
			rp_conn_kill(c);
	}
	message_free(m);
}

/* Records of connections that went away meanwhile would make the module refuse the rest. */
static void forget_missing(struct message *m)
{
	unsigned int i, n = 0;

	for (i = 0; i < m->nrecs; i++)
		if (rp_conn_find(m->recs[i].conn_id))
			m->recs[n++] = m->recs[i];
	m->nrecs = n;
}

void rp_peer_sent(uint32_t peer_id, uint64_t msg_id, int err)
{
	struct message *m;

	(void)peer_id;	/* an error of the request itself tells only the number */
	list_for_each(m, &messages, node)
		if (m->id == (uint32_t)msg_id)
			break;
	if (&m->node == &messages.n)
		return;
	if (!err) {
		message_free(m);
		return;
	}
	m->inflight = false;
	m->next_ns = rp_now_ns() + RETRY_NS;
	forget_missing(m);
	if (rp_now_ns() >= m->deadline_ns || !m->nrecs)
		give_up(m, err);
}

void rp_peer_resend(void)
{
	struct message *m;

	list_for_each(m, &messages, node) {
		if (!m->inflight)
			continue;
		m->inflight = false;
		m->next_ns = rp_now_ns() + RETRY_NS;
	}
}

void rp_peer_prepare(struct rp_peer *peer, struct rp_context *ctx)
{
	struct rp_conn *c;
	struct message *m;
	unsigned int n = 0;

	list_for_each(c, &peer->conns, in_peer)
		n += c->ctx == ctx && n < REPATH_CONNS_MAX;
	if (!n)
		return;
	m = message_new(peer, REPATH_MSG_PREPARE, n, NULL, 0);
	if (!m) {
		rp_move_prepared(peer, "out of memory");
		return;
	}
	list_for_each(c, &peer->conns, in_peer)
		if (c->ctx == ctx && m->nrecs < n)
			record(&m->recs[m->nrecs++], c, REPATH_MSG_PREPARE);
	if (!ask(m, &peer->prepares)) {
		message_free(m);
		rp_move_prepared(peer, "out of memory");
		return;
	}
	message_try(m);
}

static void answer(struct rp_peer *peer, enum repath_msg type, const struct rp_ctl_peer_msg *in,
		   const char *blob)
{
	struct message *m = message_new(peer, type, in->nrecs, blob, blob ? strlen(blob) : 0);

	if (!m)
		return;		/* it will ask again */
	memcpy(m->recs, in->recs, in->nrecs * sizeof(*m->recs));
	m->nrecs = in->nrecs;
	message_try(m);
}

/* NULL: this end can be suspended and reconnected. */
static const char *why_not(const struct rp_conn *c)
{
	if (!c)
		return "the peer's queue pair is gone";
	if (!rp_conn_connectable(c->qp))
		return "the peer's queue pair is not connected";
	if (atomic_load(&c->ctx->immovable[RP_IMM_DIRECT_VERBS]))
		return "the peer posts by direct verbs";
	return NULL;
}

static void prepare_in(struct rp_peer *peer, const struct rp_ctl_peer_msg *in)
{
	const char *why = NULL;
	unsigned int i;

	for (i = 0; i < in->nrecs && !why; i++)
		why = why_not(rp_conn_find(in->recs[i].conn_id));
	answer(peer, REPATH_MSG_PREPARED, in, why);
}

static void prepared_in(struct rp_peer *peer, const struct rp_ctl_peer_msg *in)
{
	char why[REPATH_REASON_MAX] = "";

	if (!in->nrecs || !answered(peer, (uint32_t)in->recs[0].count))
		return;		/* of a check that is over */
	if (in->blob_len) {
		unsigned int n = in->blob_len < sizeof(why) ? in->blob_len : sizeof(why) - 1;

		memcpy(why, in->blob, n);
		while (n--)	/* somebody else's text goes to a terminal */
			if (why[n] < ' ' || why[n] > '~')
				why[n] = '?';
	}
	rp_move_prepared(peer, why[0] ? why : NULL);
}

/*
 * The peer has begun anew while this end waits for the end of the round before: it lost the last
 * word. The peer has had ours, else it would not be so far.
 */
static void finish_round_before(struct rp_conn *c)
{
	if (c->connected) {
		c->peer_connected = true;
		rp_conn_step(c);
	} else if (!c->quiet && !c->mover) {
		rp_conn_cancel(c);
	}
}

/*
 * A message may come late, when what it is about has ended here: its round says so. ABORTED
 * answers a round of ours, and tells the peer's by its count.
 */
static bool of_ended_round(struct rp_conn *c, uint8_t type, const struct repath_conn_rec *r)
{
	uint16_t round = REPATH_REC_ROUND(r->flags);

	switch (type) {
	case REPATH_MSG_ABORTED:
		if (round != c->round)
			return true;
		round = r->count;
		break;
	case REPATH_MSG_ABORT:
		break;
	case REPATH_MSG_GATE:
	case REPATH_MSG_DRAINED:
	case REPATH_MSG_READY:
	case REPATH_MSG_INFO:
	case REPATH_MSG_CONNECTED:
		if (!rp_round_after(round, c->peer_over))
			return true;
		break;
	default:
		return false;
	}
	if (c->moving && rp_round_after(c->peer_round, c->peer_over) &&
	    rp_round_after(round, c->peer_round))
		finish_round_before(c);
	if (rp_round_after(round, c->peer_round))
		c->peer_round = round;
	return false;
}

/* A message says also all that must have come before it: they can overtake each other. */
static void rec_in(struct rp_conn *c, const struct rp_ctl_peer_msg *m,
		   const struct repath_conn_rec *r)
{
	if (of_ended_round(c, m->type, r))
		return;
	switch (m->type) {
	case REPATH_MSG_GATE:
		rp_conn_begin(c, false);
		c->peer_gated = true;
		break;
	case REPATH_MSG_DRAINED:
		if (!c->moving)
			return;
		c->peer_gated = c->peer_drained = true;
		c->peer_stuck = r->flags & REPATH_REC_STUCK;
		break;
	case REPATH_MSG_READY:
		if (!c->moving)
			return;
		c->peer_gated = c->peer_drained = c->peer_quiet = true;
		break;
	case REPATH_MSG_INFO:
		if (!c->moving)
			return;
		c->peer_gated = c->peer_drained = c->peer_quiet = true;
		if (c->aborting) {
			/* Ahead of its ABORTED: the peer has left RTS, and will be met there. */
			c->aborting = false;
			if (!c->reset)
				rp_conn_reset(c);
			rp_conn_usable(c);
		}
		c->peer_qpn = r->qpn;
		c->peer_psn = r->psn;
		c->peer_count = r->count;
		c->peer_mtu = REPATH_REC_MTU(r->flags);
		c->peer_lid = m->lid;
		memcpy(&c->peer_gid, m->gid, sizeof(c->peer_gid));
		c->informed = true;
		break;
	case REPATH_MSG_CONNECTED:
		if (c->moving)
			c->peer_connected = true;
		break;
	case REPATH_MSG_ABORT:
		c->abort_round = REPATH_REC_ROUND(r->flags);
		if (!c->moving || !rp_round_after(c->abort_round, c->peer_over)) {
			/* What it takes back may still come. */
			if (!c->moving && rp_round_after(c->peer_round, c->peer_over))
				c->peer_over = c->peer_round;
			c->due |= 1u << REPATH_MSG_ABORTED;
		} else if (c->quiet || c->flushing) {
			/*
			 * Too late to go back: this end has told that it stops, or has taken its
			 * queue pair to ERR.
			 */
			c->quiet = true;
			c->peer_gated = c->peer_drained = c->peer_quiet = true;
			if (!c->reset && !c->mover)
				rp_conn_reset(c);
			c->due |= 1u << REPATH_MSG_ABORTED;
		} else {
			c->due = 1u << REPATH_MSG_ABORTED;
			if (!c->mover)
				rp_conn_cancel(c);
		}
		break;
	case REPATH_MSG_ABORTED:
		if (!c->moving || !c->aborting)
			return;
		c->aborting = false;
		if (r->flags & REPATH_REC_RESET) {
			c->peer_quiet = true;
			if (!c->reset)
				rp_conn_reset(c);
			rp_conn_usable(c);
		} else {
			rp_conn_cancel(c);
		}
		break;
	case REPATH_MSG_GONE:
		rp_conn_kill(c);
		break;
	}
}

/* A key table that comes late, after that of a newer round. */
static bool keys_are_old(const struct rp_ctl_peer_msg *m)
{
	unsigned int i;

	for (i = 0; i < m->nrecs; i++) {
		struct rp_conn *c = rp_conn_find(m->recs[i].conn_id);

		if (c && rp_round_after(c->peer_round, REPATH_REC_ROUND(m->recs[i].flags)))
			return true;
	}
	return false;
}

void rp_peer_msg_in(const struct rp_ctl_peer_msg *m)
{
	struct rp_peer *peer;
	struct rp_conn *c;
	unsigned int i;

	/* A connection that we have not asked the module for yet. */
	for (i = 0; i < m->nrecs; i++)
		if (!rp_conn_find(m->recs[i].conn_id))
			break;
	if (i < m->nrecs)
		rp_conns_refresh();
	peer = rp_peer_find(m->peer_id);
	if (!peer) {
		rp_log(RP_LOG_ERR, "message %d of unknown peer %u", m->type, m->peer_id);
		return;
	}
	rp_log(RP_LOG_DEBUG, "message %d of peer %u, %u connections", m->type, m->peer_id,
	       m->nrecs);

	switch (m->type) {
	case REPATH_MSG_PREPARE:
		prepare_in(peer, m);
		return;
	case REPATH_MSG_PREPARED:
		prepared_in(peer, m);
		return;
	case REPATH_MSG_KEYS:
		if (keys_are_old(m) ||
		    !rp_keys_take(peer, m->blob, m->blob_len, m->recs, m->nrecs))
			answer(peer, REPATH_MSG_KEYS_ACK, m, NULL);
		return;
	case REPATH_MSG_KEYS_ACK:
		pthread_mutex_lock(&keys_lock);
		if (m->nrecs)
			answered(peer, (uint32_t)m->recs[0].count);
		pthread_cond_broadcast(&keys_done);
		pthread_mutex_unlock(&keys_lock);
		return;
	case REPATH_MSG_INFO:
		/* Before the gate opens with them. */
		if (m->blob_len && !keys_are_old(m) &&
		    rp_keys_take(peer, m->blob, m->blob_len, m->recs, m->nrecs))
			rp_log(RP_LOG_ERR, "peer %u: key table not understood", m->peer_id);
		break;
	}
	for (i = 0; i < m->nrecs; i++) {
		c = rp_conn_find(m->recs[i].conn_id);
		if (c && c->peer == peer)
			rec_in(c, m, &m->recs[i]);
	}
}

/* --- memory registered after a move --- */

struct new_mr {
	struct rp_mr *mr;
	unsigned int waiting;
};

static void push_mr(void *arg)
{
	struct new_mr *a = arg;
	struct rp_context *ctx = to_rp_context(a->mr->mr.context);
	char blob[64];
	unsigned int len;
	struct rp_conn *c;
	struct rp_peer *p;

	/* Its device has left since: the peers hear of it with all others at the resume. */
	if (!a->mr->real)
		return;
	len = rp_keys_fill_one(a->mr, blob, sizeof(blob));
	list_for_each(p, &rp_peers, node)
		list_for_each(c, &p->conns, in_peer)
			if (c->ctx == ctx) {
				send_keys(c, blob, len);
				break;
			}
}

static void count_acks(void *arg)
{
	struct new_mr *a = arg;
	struct rp_peer *p;

	a->waiting = 0;
	list_for_each(p, &rp_peers, node)
		a->waiting += p->acks;
}

/*
 * The application will give the key to a peer by its own means, and the peer may use it at once: so
 * the peer's shim has to know it before this returns.
 */
void rp_peer_new_mr(struct rp_mr *mr)
{
	struct new_mr a = { .mr = mr };
	struct timespec end;

	if (!rp_ctl_call(push_mr, &a))
		return;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += KEYS_WAIT_S;
	for (;;) {
		struct timespec step;

		rp_ctl_call(count_acks, &a);
		if (!a.waiting)
			return;
		clock_gettime(CLOCK_REALTIME, &step);
		if (step.tv_sec > end.tv_sec ||
		    (step.tv_sec == end.tv_sec && step.tv_nsec >= end.tv_nsec)) {
			rp_log(RP_LOG_ERR, "a peer did not acknowledge key 0x%x in time",
			       mr->mr.rkey);
			return;
		}
		/* The count was taken without the lock: look again soon even if no signal comes. */
		step.tv_nsec += 20000000;
		if (step.tv_nsec >= 1000000000) {
			step.tv_nsec -= 1000000000;
			step.tv_sec++;
		}
		pthread_mutex_lock(&keys_lock);
		pthread_cond_timedwait(&keys_done, &keys_lock, &step);
		pthread_mutex_unlock(&keys_lock);
	}
}

static void qp_gone(void *arg)
{
	struct rp_qp *qp = arg;
	struct rp_conn *c = qp->conn;
	struct message *m;

	if (!c)
		return;
	if (c->moving) {
		m = message_new(c->peer, REPATH_MSG_GONE, 1, NULL, 0);
		if (m) {
			record(m->recs, c, REPATH_MSG_GONE);
			m->nrecs = 1;
			message_try(m);
		}
		if (!c->mover)
			rp_conn_kill(c);
	}
	rp_conn_forget(c);
}

void rp_peer_qp_gone(struct rp_qp *qp)
{
	rp_ctl_call(qp_gone, qp);
}
