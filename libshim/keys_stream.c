// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Remote keys: what peers are told. One message of a stream is under way at a time, so that they
 * are taken in order; what changes meanwhile goes with the next.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "mw.h"

/**
 * struct keystream - what one peer knows of the keys of one device
 * @epoch: of the device, when the table was begun
 * @table: rp_context::tables then, which the peer knows as the epoch; 0: the keys are the device's own
 * @begun: what had been removed up to here it has heard in no message of this table
 * @known: the changes that it has acknowledged
 * @told: up to where it was told by INFO, which nothing acknowledges; 0: it was not, since
 * @heard: the last change that it has ever acknowledged, by which table whatever: until it has the next it uses the one before
 * @message: number of the KEYS under way; 0: none
 */
struct keystream {
	struct list_node node;		/* rp_peer::streams */
	struct rp_context *ctx;
	uint32_t epoch, table, begun, known, told, heard, message;
};

static uint32_t ctx_number(struct rp_context *ctx)
{
	static unsigned int last;

	if (!ctx->number)
		ctx->number = ++last;
	return ctx->number;
}

static uint32_t max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Of what was removed up to here it need not be told. */
static uint32_t clean(const struct keystream *s)
{
	return max(s->known, s->begun);
}

/*
 * All of the table, from the beginning: it takes the place of an older one. A stream that is new may be one to a process
 * that has had this very table by another number. Caller holds ctx->objects.
 */
static void begin(struct keystream *s)
{
	struct rp_context *ctx = s->ctx;

	if (s->epoch == ctx->epoch) {
		s->begun = ctx->key_serial;
	} else {
		s->begun = ctx->keys_clean;
		s->heard = 0;
	}
	s->epoch = ctx->epoch;
	s->table = ctx->tables;
	s->known = s->told = 0;
}

static struct keystream *stream_of(struct rp_peer *peer, struct rp_context *ctx)
{
	struct keystream *s;

	list_for_each(s, &peer->streams, node)
		if (s->ctx == ctx)
			break;
	if (&s->node == &peer->streams.n) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->ctx = ctx;
		list_add_tail(&peer->streams, &s->node);
	}
	/* What is under way is answered first; but not what was of the device before. */
	if (s->epoch != ctx->epoch)
		s->message = 0;
	if (s->epoch != ctx->epoch || (s->table != ctx->tables && !s->message)) {
		rp_lock(&ctx->objects);
		begin(s);
		rp_unlock(&ctx->objects);
	}
	return s;
}

static uint32_t last_change(struct rp_context *ctx)
{
	uint32_t serial;

	rp_lock(&ctx->objects);
	serial = ctx->key_serial;
	rp_unlock(&ctx->objects);
	return serial;
}

static void put(struct rp_keys_wire *w, unsigned int i, uint32_t virt, uint32_t real)
{
	w->key[i].virt = htonl(virt);
	w->key[i].real = htonl(real);
}

/* These three put what has changed after @from, and lower *@to where there is no room for all. */

static unsigned int put_removed(struct rp_context *ctx, struct rp_keys_wire *w, unsigned int room,
				uint32_t from, uint32_t *to)
{
	struct rp_removed_key *gone;
	unsigned int n = 0;

	list_for_each(gone, &ctx->removed_keys, node) {
		if (gone->serial <= from)
			continue;
		if (n == room) {
			*to = gone->serial - 1;
			break;
		}
		put(w, n++, gone->virt, 0);
	}
	return n;
}

static unsigned int put_regions(struct rp_context *ctx, struct rp_keys_wire *w, unsigned int n,
				unsigned int room, uint32_t from, uint32_t *to)
{
	unsigned int first = n;
	struct list_node *at = ctx->mrs.n.prev;
	struct rp_mr *mr;

	/* What is new is at the end: regions are in the order of their changes. */
	while (at != &ctx->mrs.n && list_entry(at, struct rp_mr, node)->key_serial > from)
		at = at->prev;
	for (at = at->next; at != &ctx->mrs.n; at = at->next) {
		mr = list_entry(at, struct rp_mr, node);
		if (mr->key_serial > *to)
			break;
		if (!mr->real || !rp_mr_is_told(mr))
			continue;
		if (n == room) {
			*to = mr->key_serial - 1;
			break;
		}
		put(w, n++, mr->mr.rkey, mr->real_rkey);
	}
	return n - first;
}

static unsigned int put_windows(struct rp_context *ctx, struct rp_keys_wire *w, unsigned int n,
				unsigned int room, uint32_t from, uint32_t *to)
{
	unsigned int first = n;
	struct rp_mw *mw;

	rp_lock(&ctx->mws_lock);
	list_for_each(mw, &ctx->mws, node) {
		if (!mw->real || mw->key_serial <= from || mw->key_serial > *to)
			continue;
		if (n == room) {
			*to = mw->key_serial - 1;
			break;
		}
		put(w, n++, mw->index, mw->real_index);
	}
	rp_unlock(&ctx->mws_lock);
	return n - first;
}

/*
 * Changes after @from, or all where that is not known any more, as many as @size bytes hold. Returns the length;
 * *@to: the last of them.
 */
static unsigned int fill(struct keystream *s, uint32_t from, void *blob, unsigned int size, uint32_t *to)
{
	struct rp_context *ctx = s->ctx;
	struct rp_keys_wire *w = blob;
	const unsigned int room = (size - sizeof(*w)) / sizeof(w->key[0]);
	unsigned int removed, set, windows;

	rp_lock(&ctx->objects);
	if (clean(s) < ctx->keys_forgotten) {
		rp_keys_new_table(ctx);		/* for all, as a process may be more than one peer for a while */
		begin(s);
		from = 0;
	}
	*to = ctx->key_serial;
	/* From the beginning it may have heard of some, too, and that was not acknowledged. */
	removed = put_removed(ctx, w, room / 2, max(from, clean(s)), to);
	set = put_regions(ctx, w, removed, room, from, to);
	windows = put_windows(ctx, w, removed + set, room, from, to);
	rp_unlock(&ctx->objects);
	w->magic = htonl(RP_KEYS_MAGIC);
	w->ctx = htonl(ctx_number(ctx));
	w->epoch = htonl(s->table);
	w->from = htonl(from);
	w->to = htonl(*to);
	w->removed = htonl(removed);
	w->set = htonl(set);
	w->windows = htonl(windows);
	return sizeof(*w) + (removed + set + windows) * sizeof(w->key[0]);
}

/* Of a peer whose ends are all gone nobody hears any more. */
static bool is_heard(const struct rp_peer *peer, const struct rp_context *ctx)
{
	const struct rp_conn *c;

	list_for_each(c, &peer->conns, in_peer)
		if (c->ctx == ctx && c->known != REPATH_CONN_GONE)
			return true;
	return false;
}

static bool is_of(const struct rp_conn *c, const struct rp_context *ctx)
{
	return c->ctx == ctx && rp_conn_is_ready(c);
}

/* Of an end on its move the module does not know where it is before INFO: nothing else is said of it. */
static bool can_name(const struct rp_conn *c, const struct rp_context *ctx)
{
	return is_of(c, ctx) && !(c->moving && c->mover && !c->told);
}

/* A connection that the peer may hear of, and one that it does not use the table for yet first. */
static struct rp_conn *conn_to_name(struct rp_peer *peer, struct rp_context *ctx, bool *unbound)
{
	struct rp_conn *c, *any = NULL;

	*unbound = false;
	list_for_each(c, &peer->conns, in_peer) {
		if (!can_name(c, ctx))
			continue;
		if (c->keys_epoch != ctx->epoch + 1) {
			*unbound = true;
			return c;
		}
		if (!any)
			any = c;
	}
	return any;
}

/* The last change that a peer is known to have heard; where it will be told yet, none. */
static uint32_t heard_by(struct rp_peer *peer, struct rp_context *ctx)
{
	const struct keystream *s;
	const struct rp_conn *c;

	if (!is_heard(peer, ctx))
		return UINT32_MAX;
	list_for_each(s, &peer->streams, node)
		if (s->ctx == ctx && s->epoch == ctx->epoch)
			return s->heard;
	list_for_each(c, &peer->conns, in_peer)
		if (is_of(c, ctx))
			return 0;
	return UINT32_MAX;
}

/* What all peers have heard needs not be said to anybody any more. */
static void purge_removed(struct rp_context *ctx)
{
	uint32_t all = UINT32_MAX, heard;
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node) {
		heard = heard_by(p, ctx);
		if (heard < all)
			all = heard;
	}
	rp_keys_forget_removed(ctx, all);
}

static bool send_keys(struct rp_peer *peer, struct rp_context *ctx, struct keystream *s)
{
	static char blob[REPATH_BLOB_MAX];	/* of the control thread */
	unsigned int len, n = 0;
	struct rp_conn *c, *first;
	struct rp_message *m;
	bool unbound;
	uint32_t to;

	first = conn_to_name(peer, ctx, &unbound);
	if (!first)
		return false;
	len = fill(s, max(s->known, s->told), blob, sizeof(blob), &to);
	list_for_each(c, &peer->conns, in_peer)
		n += can_name(c, ctx) && n < REPATH_CONNS_MAX;
	m = rp_message_new(peer, REPATH_MSG_KEYS, n, blob, len);
	if (!m)
		return false;
	list_for_each(c, &peer->conns, in_peer) {
		if (!can_name(c, ctx) || m->nrecs == n)
			continue;
		if (unbound ? c->keys_epoch == ctx->epoch + 1 : c != first)
			continue;
		rp_message_record(&m->recs[m->nrecs++], c, REPATH_MSG_KEYS);
	}
	if (!rp_message_ask(m, &peer->acks)) {
		rp_message_free(m);
		return false;
	}
	s->message = m->id;
	rp_message_try(m);
	return true;
}

void rp_keys_push_peer(struct rp_peer *peer, struct rp_context *ctx)
{
	struct keystream *s;
	bool unbound;

	/* Of a device that has not moved: what the peer was told is right, unless it waits for us. */
	if (!peer->id || peer->of_lost_module || !conn_to_name(peer, ctx, &unbound) || (!ctx->epoch && !unbound))
		return;
	s = stream_of(peer, ctx);
	if (!s || s->message)
		return;
	if (unbound || max(s->known, s->told) != last_change(ctx))
		send_keys(peer, ctx, s);
}

void rp_keys_push_due(struct rp_peer *peer)
{
	struct rp_context *last = NULL;
	struct rp_conn *c;

	if (!peer->keys_due)
		return;
	peer->keys_due = false;
	list_for_each(c, &peer->conns, in_peer) {
		if (c->ctx != last)
			rp_keys_push_peer(peer, c->ctx);
		last = c->ctx;
	}
}

void rp_keys_push(struct rp_context *ctx)
{
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node)
		rp_keys_push_peer(p, ctx);
	purge_removed(ctx);
}

bool rp_keys_info(struct rp_conn *c, void *blob, unsigned int size, unsigned int *len)
{
	struct rp_context *ctx = c->ctx;
	uint32_t to, last = last_change(ctx);
	struct keystream *s;

	*len = 0;
	if (!ctx->epoch)
		return true;
	s = stream_of(c->peer, ctx);
	if (!s || s->message)
		return false;
	/* All, or all that was not acknowledged before, or the beginning: the rest follows when the peer can be heard. */
	*len = fill(s, 0, blob, size, &to);
	if (to < last)
		*len = fill(s, s->known, blob, size, &to);
	s->told = to;
	return true;
}

void rp_keys_acked(struct rp_peer *peer, const struct rp_ctl_peer_msg *m)
{
	const struct rp_keys_ack *ack = m->blob;
	struct keystream *s;
	struct rp_conn *c;
	unsigned int i;

	if (m->blob_len != sizeof(*ack) || !m->nrecs)
		return;
	list_for_each(s, &peer->streams, node) {
		if (!s->message || s->message != (uint32_t)m->recs[0].count)
			continue;
		s->message = 0;
		/* Not understood; or of the move before. */
		if (ntohl(ack->ctx) != s->ctx->number || ntohl(ack->epoch) != s->table)
			return;
		s->known = ntohl(ack->serial);
		s->heard = max(s->heard, s->known);
		s->told = 0;
		for (i = 0; i < m->nrecs; i++) {
			c = rp_conn_find(m->recs[i].conn_id);
			if (c && c->peer == peer && c->ctx == s->ctx)
				c->keys_epoch = s->ctx->epoch + 1;
		}
		rp_keys_push_peer(peer, s->ctx);
		purge_removed(s->ctx);
		return;
	}
}

static struct rp_context *by_number(uint32_t number)
{
	struct rp_context *ctx, *found = NULL;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (ctx->number == number)
			found = ctx;
	rp_unlock(&rp_contexts_lock);
	return found;
}

bool rp_keys_asked(struct rp_peer *peer, const struct rp_ctl_peer_msg *m, struct rp_keys_ack *ack)
{
	const struct rp_keys_ask *ask = m->blob;
	struct rp_context *ctx;
	struct keystream *s;

	if (m->blob_len != sizeof(*ask) || ntohl(ask->magic) != RP_KEYS_ASK_MAGIC)
		return false;
	memset(ack, 0, sizeof(*ack));
	ctx = ask->ctx ? by_number(ntohl(ask->ctx)) : NULL;
	if (!ctx)
		return true;
	s = stream_of(peer, ctx);
	/* What it lacks may have been given up when it was not to be reached, or have gone with an INFO that was. */
	if (s)
		s->told = 0;
	if (ctx->real)
		rp_keys_push_peer(peer, ctx);
	/* That may have begun the table anew, and be there first. */
	ack->ctx = ask->ctx;
	ack->epoch = htonl(s ? s->table : ctx->tables + 1);	/* out of memory: it asks again */
	ack->serial = htonl(last_change(ctx));
	return true;
}

void rp_keys_lost(struct rp_peer *peer, uint32_t message)
{
	struct keystream *s;

	rp_keys_not_told(peer, message);

	list_for_each(s, &peer->streams, node)
		if (s->message == message) {
			s->message = 0;
			peer->keys_due = true;
		}
}

bool rp_keys_known_to_all(struct rp_context *ctx, uint32_t serial)
{
	struct keystream *s;
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node)
		list_for_each(s, &p->streams, node)
			if (s->ctx == ctx && s->message &&
			    (s->epoch != ctx->epoch || s->known < serial))
				return false;
	return true;
}

static void stream_free(struct keystream *s)
{
	list_del(&s->node);
	free(s);
}

void rp_keys_forget_streams(struct rp_peer *peer)
{
	struct keystream *s, *tmp;

	list_for_each_safe(s, tmp, &peer->streams, node)
		stream_free(s);
}

void rp_keys_context_gone(struct rp_context *ctx)
{
	struct keystream *s, *tmp;
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node)
		list_for_each_safe(s, tmp, &p->streams, node)
			if (s->ctx == ctx)
				stream_free(s);
}
