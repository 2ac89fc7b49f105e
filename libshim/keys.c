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
	free(ks->keys);
	free(ks);
}

/*
 * Posts read a map under the queue pair's lock, and a changed map is given to every queue pair
 * under that lock before the old one is freed.
 */
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

static int cmp_virt(const void *a, const void *b)
{
	uint32_t x = ((const struct key *)a)->virt, y = ((const struct key *)b)->virt;

	return x < y ? -1 : x > y;
}

static struct key *find(struct rp_keyset *ks, size_t n, uint32_t virt)
{
	struct key key = { .virt = virt };

	return n ? bsearch(&key, ks->keys, n, sizeof(key), cmp_virt) : NULL;
}

/* What is not there any more, first: a number can be used again. */
static void remove_keys(struct rp_keyset *ks, const struct rp_keys_wire *w, uint32_t n)
{
	size_t i, kept = 0;
	struct key *hit;

	for (i = 0; i < n; i++) {
		hit = find(ks, ks->n, ntohl(w->key[i].virt));
		if (hit)
			hit->gone = true;
	}
	for (i = 0; n && i < ks->n; i++)
		if (!ks->keys[i].gone)
			ks->keys[kept++] = ks->keys[i];
	if (n)
		ks->n = kept;
}

/* Adds or changes; the array stays sorted so that a table of thousands costs no square. */
static int set_keys(struct rp_keyset *ks, const struct rp_keys_wire *w, uint32_t first,
		    uint32_t set, uint32_t windows)
{
	struct key *keys = realloc(ks->keys, (ks->n + set + windows + 1) * sizeof(*keys)), *hit;
	size_t i, old = ks->n;

	if (!keys)
		return -ENOMEM;
	ks->keys = keys;
	for (i = 0; i < set + windows; i++) {
		struct key key = {
			.virt = ntohl(w->key[first + i].virt),
			.real = ntohl(w->key[first + i].real),
			.window = i >= set,
		};

		hit = find(ks, old, key.virt);
		if (hit)
			*hit = key;
		else
			keys[ks->n++] = key;
	}
	if (ks->n > old)
		qsort(keys, ks->n, sizeof(*keys), cmp_virt);
	return 0;
}

/* Each queue pair has it before the old one goes; NULL: they wait. */
static void set_map(struct rp_keyset *ks, struct rp_keymap *map)
{
	struct rp_keymap *old = ks->map;
	struct rp_qp *qp;

	ks->map = map;
	list_for_each(qp, &ks->qps, in_keyset)
		rp_keys_publish(qp, map ? map : rp_keymap_awaited);
	rp_keymap_free(old);
}

static int make_map(struct rp_keyset *ks)
{
	struct rp_keymap *map = rp_keymap_new(ks->n);
	size_t i;

	if (!map)
		return -ENOMEM;
	for (i = 0; i < ks->n; i++)
		(ks->keys[i].window ? rp_keymap_add_window : rp_keymap_add)
			(map, ks->keys[i].virt, ks->keys[i].real);
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
	uint32_t set = ntohl(w->set), windows = ntohl(w->windows);
	bool anew = epoch != ks->epoch || !ks->map;
	int ret;

	if ((int32_t)(epoch - ks->epoch) < 0)
		return 0;		/* late, of the move or the table before */
	if (anew) {
		/* From the beginning, or what is missing is asked for by the answer. */
		if (from)
			return 0;
		ks->n = 0;
		ks->serial = 0;
		ks->until = 0;
		doubt_all(ks);
		ks->epoch = epoch;
	} else if (from > ks->serial || to <= ks->serial) {
		return 0;		/* something is missing; or it came twice */
	}
	remove_keys(ks, w, ntohl(w->removed));
	ret = set_keys(ks, w, ntohl(w->removed), set, windows);
	if (!ret)
		ret = make_map(ks);
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
