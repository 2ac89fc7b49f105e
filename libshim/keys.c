// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Remote keys: what peers have told, and what a queue pair's requests are translated with. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "objects.h"

static void keyset_put(struct rp_keyset *ks)
{
	if (!ks || --ks->refs)
		return;
	rp_keymap_free(ks->map);
	free(ks);
}

/* Posts read a map under the queue pair's lock, and all are given another under that before it is freed. */
void rp_keys_publish(struct rp_qp *qp, struct rp_keymap *map)
{
	bool go_on;

	rp_lock(&qp->lock);
	qp->rkeys = map;
	qp->xlate = map || qp->handles || rp_qp_context(qp)->epoch;
	go_on = qp->keys_held && map != rp_keymap_awaited;
	rp_unlock(&qp->lock);
	/* What has waited for it. */
	if (go_on)
		rp_keys_go_on(qp);
}

/* Of a queue pair that does not post by it any more. */
static void drop_set(struct rp_qp *qp)
{
	struct rp_keyset *ks = qp->keyset;

	if (!ks)
		return;
	qp->keyset = NULL;
	list_del(&qp->in_keyset);
	keyset_put(ks);
}

static void bind_set(struct rp_qp *qp, struct rp_keyset *ks)
{
	if (qp->keyset != ks) {
		rp_lock(&qp->lock);
		qp->keys_sure = qp->keys_asked = 0;
		rp_unlock(&qp->lock);
	}
	rp_keys_publish(qp, ks->map ? ks->map : rp_keymap_awaited);
	if (qp->keyset == ks)
		return;
	drop_set(qp);
	qp->keyset = ks;
	ks->refs++;
	list_add_tail(&ks->qps, &qp->in_keyset);
}

void rp_keys_clear(struct rp_qp *qp)
{
	rp_lock(&qp->lock);
	qp->rkeys = NULL;
	qp->xlate = qp->handles || rp_qp_context(qp)->epoch;
	rp_keys_unhold(qp);	/* what has waited is never given to the device */
	qp->keys_sure = qp->keys_asked = 0;
	rp_unlock(&qp->lock);
	drop_set(qp);
}

void rp_keys_await(struct rp_qp *qp)
{
	rp_lock(&qp->lock);
	if (!qp->rkeys)
		qp->rkeys = rp_keymap_awaited;
	qp->xlate = true;
	rp_unlock(&qp->lock);
}

static struct rp_keyset *keyset_find(struct rp_peer *peer, uint32_t ctx)
{
	struct rp_keyset *ks;

	list_for_each(ks, &peer->keysets, node)
		if (ks->ctx == ctx)
			return ks;
	return NULL;
}

static struct rp_keyset *keyset_get(struct rp_peer *peer, uint32_t ctx)
{
	struct rp_keyset *ks = keyset_find(peer, ctx);

	if (ks)
		return ks;
	ks = calloc(1, sizeof(*ks));
	if (!ks)
		return NULL;
	ks->ctx = ctx;
	ks->refs = 1;
	list_init(&ks->qps);
	list_add_tail(&peer->keysets, &ks->node);
	return ks;
}

/* Each queue pair has it before the old one goes; NULL: they wait. */
static void set_map(struct rp_keyset *ks, struct rp_keymap *map)
{
	struct rp_keymap *old = ks->map;
	struct rp_qp *qp;

	ks->map = map;
	list_for_each(qp, &ks->qps, in_keyset)
		rp_keys_publish(qp, map ? map : rp_keymap_awaited);
	if (old != map)
		rp_keymap_free(old);
}

/* What the message says of the table as it is, or of a new one. */
static int change(struct rp_keyset *ks, const struct rp_keys_wire *w, bool anew)
{
	const uint32_t removed = ntohl(w->removed), set = removed + ntohl(w->set), end = set + ntohl(w->windows);
	struct rp_keymap *map = anew ? NULL : ks->map;
	uint32_t i;

	if (!map || rp_keymap_room(map) < end - removed)
		map = rp_keymap_new(map, end - removed);
	if (!map)
		return -ENOMEM;
	/* What is not there any more, first: a number can be used again. */
	for (i = 0; i < removed; i++)
		rp_keymap_remove(map, ntohl(w->key[i].virt));
	for (; i < end; i++)
		(i < set ? rp_keymap_add : rp_keymap_add_window)
			(map, ntohl(w->key[i].virt), ntohl(w->key[i].real));
	set_map(ks, map);
	return 0;
}

unsigned int rp_keys_length(const void *blob, unsigned int len)
{
	const struct rp_keys_wire *w = blob;
	uint64_t n;

	if (len < sizeof(*w) || ntohl(w->magic) != RP_KEYS_MAGIC)
		return 0;
	n = (uint64_t)ntohl(w->set) + ntohl(w->windows) + ntohl(w->removed);
	n = sizeof(*w) + n * sizeof(w->key[0]);
	return n <= len ? n : 0;
}

/* Sizes add up: the blob is as long as it says, but for what INFO tells of ports (ports.c). */
static bool well_formed(const struct rp_ctl_peer_msg *m)
{
	const struct rp_keys_wire *w = m->blob;
	const unsigned int len = rp_keys_length(w, m->blob_len);

	return len && (len == m->blob_len || m->type == REPATH_MSG_INFO) &&
	       ntohl(w->from) <= ntohl(w->to);
}

/* The connections that a message names use this table; NULL: the device's own keys. */
static void bind_named(struct rp_peer *peer, const struct rp_ctl_peer_msg *m, struct rp_keyset *ks)
{
	struct rp_conn *c;
	unsigned int i;

	for (i = 0; i < m->nrecs; i++) {
		c = rp_conn_find(m->recs[i].conn_id);
		if (!c || c->peer != peer)
			continue;
		if (ks) {
			bind_set(c->qp, ks);
		} else {
			rp_keys_publish(c->qp, NULL);
			drop_set(c->qp);
		}
	}
}

/* Of another table nothing is known yet: not that it lacks what the one before has lacked. */
static void doubt_all(struct rp_keyset *ks)
{
	struct rp_qp *qp;

	list_for_each(qp, &ks->qps, in_keyset) {
		rp_lock(&qp->lock);
		qp->keys_sure = qp->keys_asked = 0;
		rp_unlock(&qp->lock);
	}
}

static int apply(struct rp_keyset *ks, const struct rp_keys_wire *w)
{
	uint32_t from = ntohl(w->from), to = ntohl(w->to), epoch = ntohl(w->epoch);
	bool anew = epoch != ks->epoch || !ks->map;
	int ret;

	if ((int32_t)(epoch - ks->epoch) < 0)
		return 0;		/* late, of the move or the table before */
	if (anew) {
		/* From the beginning, or what is missing is asked for by the answer. */
		if (from)
			return 0;
		ks->serial = 0;
		ks->until = 0;
		doubt_all(ks);
		ks->epoch = epoch;
	} else if (from > ks->serial || to <= ks->serial) {
		return 0;		/* something is missing; or it came twice */
	}
	ret = change(ks, w, anew);
	if (!ret)
		ks->serial = to;
	else if (anew)
		set_map(ks, NULL);	/* not with those of another device meanwhile */
	return ret;
}

void rp_keys_take(struct rp_peer *peer, const struct rp_ctl_peer_msg *m, struct rp_keys_ack *ack)
{
	const struct rp_keys_wire *w = m->blob;
	struct rp_keyset *ks;

	memset(ack, 0, sizeof(*ack));
	if (!well_formed(m)) {
		rp_log(RP_LOG_ERR, "peer %u: key table not understood", peer->id);
		return;
	}
	ack->ctx = w->ctx;
	ack->epoch = w->epoch;
	if (!w->epoch) {
		ks = keyset_find(peer, ntohl(w->ctx));
		if (ks && ks->epoch)
			return;		/* late: its device has moved since */
		bind_named(peer, m, NULL);
		ack->serial = w->to;
		return;
	}
	ks = keyset_get(peer, ntohl(w->ctx));
	if (!ks)
		return;
	if (apply(ks, w))
		rp_log(RP_LOG_ERR, "peer %u: out of memory for its keys", peer->id);
	/* Not those of a late message: what they use is newer. */
	if ((int32_t)(ntohl(w->epoch) - ks->epoch) < 0)
		return;
	bind_named(peer, m, ks);
	if (ntohl(w->epoch) == ks->epoch)
		ack->serial = htonl(ks->serial);
}

void rp_keys_forget_peer(struct rp_peer *peer)
{
	struct rp_keyset *ks, *tmp;

	list_for_each_safe(ks, tmp, &peer->keysets, node) {
		list_del(&ks->node);
		keyset_put(ks);
	}
}
