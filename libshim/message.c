// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue of messages to the peers' shims. What the module could not deliver is repeated; all of
 * them may come twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"

#define RETRY_NS	50000000ull
#define AWAY_NS		500000000ull
#define SELDOM_NS	10000000000ull
#define REFUSED_NS	5000000000ull
#define ASKS_NS		300000000000ull	/* the peer whether it has left RTS */

static struct list_head messages = { { &messages.n, &messages.n } };
static uint32_t last_id;

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

void rp_message_free(struct rp_message *m)
{
	struct rp_conn *c;
	unsigned int i;

	for (i = 0; m->type == REPATH_MSG_INFO && i < m->nrecs; i++) {
		c = rp_conn_find(m->recs[i].conn_id);
		if (c)
			c->telling = false;
	}
	list_del(&m->node);
	free(m->recs);
	free(m->blob);
	free(m);
}

void rp_message_try(struct rp_message *m)
{
	int ret = rp_ctl_peer_send(m->peer->id, m->type, m->id, m->recs, m->nrecs,
				   m->bound ? &m->bind : NULL, m->blob, m->blob_len);

	rp_log(RP_LOG_DEBUG, "message %d number %u to peer %u, %u connections, %u bytes",
	       m->type, m->id, m->peer->id, m->nrecs, m->blob_len);
	m->inflight = !ret;
	m->next_ns = rp_now_ns() + RETRY_NS;
}

struct rp_message *rp_message_new(struct rp_peer *peer, enum repath_msg type, unsigned int nrecs,
				   const void *blob, unsigned int blob_len)
{
	struct rp_message *m = calloc(1, sizeof(*m));

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

bool rp_message_ask(struct rp_message *m, unsigned int *count)
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

bool rp_message_answered(struct rp_peer *peer, uint32_t id)
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

void rp_message_refused(struct rp_peer *peer, uint32_t id, const char *why)
{
	const struct rp_context *ctx = NULL;
	const struct rp_conn *c;

	list_for_each(c, &peer->conns, in_peer)
		if (c->asked == id)
			ctx = c->ctx;
	if (!rp_message_answered(peer, id))
		return;
	/* One that has nobody left to ask for is refused nothing. */
	if (ctx)
		rp_move_refused(ctx, why);
	rp_move_prepared();
}

void rp_peer_forked(void)
{
	list_init(&messages);
	list_init(&questions);
}

/* Has it still to answer for one of its connections? */
static bool must_answer(const struct rp_peer *peer, uint32_t id)
{
	const struct rp_conn *c;

	list_for_each(c, &peer->conns, in_peer)
		if (c->asked == id && rp_conn_is_ready(c))
			return true;
	return false;
}

void rp_peer_expire(void)
{
	struct question *q, *tmp;
	uint64_t now = rp_now_ns();

	list_for_each_safe(q, tmp, &questions, node) {
		struct rp_peer *peer = q->peer;
		bool prepare = q->count == &peer->prepares;

		if (prepare && !must_answer(peer, q->id)) {
			rp_message_answered(peer, q->id);
			rp_move_prepared();
			continue;
		}
		if (now < q->deadline_ns)
			continue;
		rp_log(RP_LOG_ERR, "peer %u has had message %u and does not answer", peer->id,
		       q->id);
		if (prepare) {
			rp_message_refused(peer, q->id, "its peer does not answer");
		} else {
			rp_keys_lost(peer, q->id);
			rp_message_answered(peer, q->id);
		}
	}
}

/* What was to be said of a connection is not so any more. */
void rp_message_forget(const struct rp_conn *c, enum repath_msg type)
{
	struct rp_message *m, *tmp;
	unsigned int i;

	list_for_each_safe(m, tmp, &messages, node) {
		for (i = 0; m->type == type && i < m->nrecs; i++)
			if (m->recs[i].conn_id == c->id)
				break;
		if (m->type == type && i < m->nrecs)
			rp_message_free(m);
	}
}

/* What was answered in the same way before, and has not arrived, need not: this one will. */
void rp_message_supersede(const struct rp_message *m)
{
	struct rp_message *old, *tmp;

	list_for_each_safe(old, tmp, &messages, node)
		if (old != m && old->peer == m->peer && old->type == m->type &&
		    old->nrecs == m->nrecs &&
		    !memcmp(old->recs, m->recs, m->nrecs * sizeof(*m->recs)))
			rp_message_free(old);
}

void rp_peer_drop(struct rp_peer *peer)
{
	struct rp_message *m, *tmp;
	struct question *q, *next;

	list_for_each_safe(q, next, &questions, node)
		if (q->peer == peer) {
			if (q->count == &peer->acks)
				rp_keys_lost(peer, q->id);
			list_del(&q->node);
			free(q);
		}
	peer->acks = peer->prepares = 0;

	list_for_each_safe(m, tmp, &messages, node)
		if (m->peer == peer)
			rp_message_free(m);
}

int rp_peer_wait_ms(void)
{
	struct rp_message *m;
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

/*
 * Two that move at once: the other one's machine may still be on its way. It is waited for, as the
 * other end of any move is, until the module says that it is gone.
 */
static bool waits_for_mover(const struct rp_message *m, const struct rp_conn *c)
{
	return c->peer_mover && (m->type == REPATH_MSG_GATE || m->type == REPATH_MSG_DRAINED ||
				 m->type == REPATH_MSG_READY || m->type == REPATH_MSG_INFO);
}

/*
 * Two that stay, and one takes it back: having heard that this end was drained the other one may have left
 * RTS. Only it knows whether there is a way back.
 */
static bool asks_on(const struct rp_message *m, const struct rp_conn *c)
{
	return m->type == REPATH_MSG_ABORT && c->aborting && c->drained && !c->mover &&
	       !c->peer_moved && rp_now_ns() < c->begun_ns + ASKS_NS;
}

/* Is it about what the connection is at now, or was last? */
static bool of_this_round(const struct repath_conn_rec *r, const struct rp_conn *c)
{
	return REPATH_REC_ROUND(r->flags) == c->round;
}

/*
 * A host that is cut off, or asleep, may come back. Its end has stopped, and would wait for this one until its
 * lease ends: it is told when it is there again.
 */
static void lose(const struct rp_message *m, const struct repath_conn_rec *r, struct rp_conn *c, bool refused)
{
	if (m->type == REPATH_MSG_INFO)
		c->telling = false;
	if (!c->moving)
		return;
	if (m->type == REPATH_MSG_ABORT && c->aborting && of_this_round(r, c)) {
		rp_ctl_rests(c->id, rp_round_heard(c));
		rp_conn_cancel(c);
		c->alone = !refused;
	} else if (m->type == REPATH_MSG_INFO) {
		c->due |= 1u << REPATH_MSG_GONE;
		rp_conn_kill(c);
	}
}

/* This end goes on as if nothing had been, and the other one has not heard that. */
static bool is_told_on(const struct rp_message *m, const struct repath_conn_rec *r, const struct rp_conn *c)
{
	return m->type == REPATH_MSG_ABORT && c->alone && of_this_round(r, c);
}

/* What need not be waited for is lost; true: the rest is said on. */
static bool wait_on(struct rp_message *m, bool refused)
{
	unsigned int i, n = 0;
	bool seldom = true;

	for (i = 0; i < m->nrecs; i++) {
		struct rp_conn *c = rp_conn_find(m->recs[i].conn_id);

		if (c && c->moving && !refused && (waits_for_mover(m, c) || asks_on(m, c))) {
			m->recs[n++] = m->recs[i];
			seldom = false;
		} else if (c) {
			lose(m, &m->recs[i], c, refused);
			if (!refused && is_told_on(m, &m->recs[i], c))
				m->recs[n++] = m->recs[i];
		}
	}
	m->nrecs = n;
	if (!n)
		return false;
	m->seldom = seldom;
	m->deadline_ns = rp_now_ns() + patience_ns(m->type);
	m->next_ns = rp_now_ns() + (seldom ? SELDOM_NS : AWAY_NS);
	rp_log(RP_LOG_INFO, "message %d to peer %u is said on: it may come back", m->type,
	       m->peer->id);
	return true;
}

static void give_up(struct rp_message *m, int err)
{
	struct rp_peer *peer = m->peer;
	char why[96];
	uint32_t id;

	if (m->type != REPATH_MSG_PREPARE && m->type != REPATH_MSG_KEYS && wait_on(m, err == EACCES))
		return;
	rp_log(RP_LOG_ERR, "message %d to peer %u was not delivered: %s", m->type, peer->id,
	       strerror(err));
	if (m->type == REPATH_MSG_PREPARE) {
		snprintf(why, sizeof(why), "its peer's host does not answer (%s)", strerror(err));
		id = m->id;
		rp_message_free(m);
		if (!rp_cycle_refused(peer, id))
			rp_message_refused(peer, id, why);
		return;
	}
	if (m->type == REPATH_MSG_KEYS) {
		rp_message_answered(peer, m->id);
		rp_keys_lost(peer, m->id);
	}
	rp_message_free(m);
}

static bool tells_of_round(enum repath_msg type)
{
	return type == REPATH_MSG_GATE || type == REPATH_MSG_DRAINED || type == REPATH_MSG_READY;
}

/* Said again when its move has ended here, the module would take it for the beginning of another one. */
static bool is_over(const struct rp_message *m, const struct repath_conn_rec *r, const struct rp_conn *c)
{
	return tells_of_round(m->type) && (!c->moving || !of_this_round(r, c));
}

static bool is_wanted(const struct rp_message *m, const struct repath_conn_rec *r, const struct rp_conn *c)
{
	/* What the peer has said of itself need not be asked, and what the module does not have can not be. */
	if ((m->type == REPATH_MSG_PREPARE || m->type == REPATH_MSG_KEYS) && !rp_conn_is_ready(c))
		return false;
	/* Of an end that has begun anew since the peer hears something newer. */
	if (m->seldom && !is_told_on(m, r, c))
		return false;
	return !is_over(m, r, c);
}

/*
 * What need not be said any more; records of connections that went away would make the module refuse the rest, and if it has
 * refused it as @unknown, those whose peer is gone are what it does not know. Returns how many are left.
 */
static unsigned int forget_unwanted(struct rp_message *m, bool unknown)
{
	unsigned int i, n = 0;

	for (i = 0; i < m->nrecs; i++) {
		const struct rp_conn *c = rp_conn_find(m->recs[i].conn_id);

		if (c && is_wanted(m, &m->recs[i], c) && !(unknown && c->known == REPATH_CONN_GONE))
			m->recs[n++] = m->recs[i];
	}
	m->nrecs = n;
	return n;
}

/* What the connections are now connected to, or will be, is known there; or ABORT, which is to be answered. */
static void note_told(const struct rp_message *m)
{
	struct rp_conn *c;
	unsigned int i;

	for (i = 0; i < m->nrecs; i++) {
		c = rp_conn_find(m->recs[i].conn_id);
		if (c && m->type == REPATH_MSG_INFO)
			c->told = c->usable;
		else if (c && m->type == REPATH_MSG_ABORT)
			c->heard_ns = rp_now_ns();
	}
}

/*
 * The peer's module knew some of the connections and has told them; which ones it did not know is found
 * out by halves. A question is asked again as it was.
 */
static int some_refused(struct rp_message *m)
{
	unsigned int n = m->nrecs / 2;
	struct rp_message *half;

	if (m->type == REPATH_MSG_PREPARE)
		return EACCES;
	if (!n || m->type == REPATH_MSG_KEYS || m->type == REPATH_MSG_KEYS_ACK)
		return 0;
	half = rp_message_new(m->peer, m->type, n, m->blob, m->blob_len);
	if (!half)
		return EKEYREJECTED;
	m->nrecs -= n;
	memcpy(half->recs, m->recs + m->nrecs, n * sizeof(*half->recs));
	half->nrecs = n;
	half->bound = m->bound;
	half->bind = m->bind;
	half->deadline_ns = m->deadline_ns;
	return EKEYREJECTED;
}

static struct rp_message *message_find(uint32_t id)
{
	struct rp_message *m;

	list_for_each(m, &messages, node)
		if (m->id == id)
			return m;
	return NULL;
}

void rp_peer_sent(uint64_t msg_id, int err)
{
	struct rp_message *m = message_find(msg_id);

	if (!m)
		return;
	rp_log(RP_LOG_DEBUG, "message number %u: %s", m->id, err ? strerror(err) : "there");
	/*
	 * The peer's module was loaded anew, which only this end's module has heard; or a connection has ended there, or
	 * the peer has before that.
	 */
	if (err == ENOENT || (err == EACCES && m->type == REPATH_MSG_PREPARE)) {
		rp_conns_refresh();
		m = message_find(msg_id);
		if (!m)
			return;
	}
	if (err == EKEYREJECTED)
		err = some_refused(m);
	if (!err) {
		note_told(m);
		rp_message_free(m);
		return;
	}
	m->inflight = false;
	m->next_ns = rp_now_ns() + (m->seldom ? SELDOM_NS : RETRY_NS);
	/*
	 * Its module knows no such tokens: the process has ended, or the module was loaded anew. A
	 * damaged message is refused for the same reason, but not again and again.
	 */
	if (err == EACCES && m->deadline_ns > rp_now_ns() + REFUSED_NS)
		m->deadline_ns = rp_now_ns() + REFUSED_NS;
	/* With nothing left to ask (see rp_peer_expire()) or to say it is over; but its sender waits for KEYS. */
	if (!forget_unwanted(m, err == ENOENT) && m->type != REPATH_MSG_KEYS)
		rp_message_free(m);
	else if (rp_now_ns() >= m->deadline_ns || !m->nrecs)
		give_up(m, err);
}

void rp_peer_resend(void)
{
	struct rp_message *m;

	list_for_each(m, &messages, node) {
		if (!m->inflight)
			continue;
		m->inflight = false;
		m->next_ns = rp_now_ns() + RETRY_NS;
	}
}

/*
 * The module may still be looking for it where it was. What is said twice, the one time there and
 * the other time here, is known by its round.
 */
void rp_peer_back(struct rp_peer *peer)
{
	struct rp_message *m;

	list_for_each(m, &messages, node)
		if (m->peer == peer) {
			m->inflight = false;
			m->next_ns = 0;
		}
}

void rp_message_retry(void)
{
	uint64_t now = rp_now_ns();
	struct rp_message *m, *tmp;

	list_for_each_safe(m, tmp, &messages, node) {
		if (m->inflight || now < m->next_ns)
			continue;
		if ((m->seldom || tells_of_round(m->type)) && !forget_unwanted(m, false)) {
			rp_message_free(m);
			continue;
		}
		rp_message_try(m);
		/* The module did not even take it. */
		if (!m->inflight && now >= m->deadline_ns)
			give_up(m, EIO);
	}
}
