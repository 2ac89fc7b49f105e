// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Remote keys. A process that has moved tells its peers, per device that it has open, which real
 * key stands for each of its virtual keys; all connections to that device share one table.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"

#define KEYS_MAGIC 0x4b455953	/* "KEYS" */

/* Blob of INFO and KEYS; network order. @ctx tells the sender's devices apart. */
struct keys_wire {
	uint32_t magic;
	uint32_t ctx;
	uint32_t n;
	struct {
		uint32_t virt, real;
	} key[];
};

/* What one remote context's keys are; grows and changes entry by entry, published as a map. */
struct keyset {
	uint32_t ctx;
	uint32_t (*keys)[2];
	size_t n;
	struct rp_keymap *map;
	struct list_node node;
};

/*
 * Posts read a map under the queue pair's lock, and a changed map is given to every queue pair
 * under that lock before the old one is freed.
 */
void rp_keys_publish(struct rp_qp *qp, struct rp_keymap *map)
{
	rp_lock(&qp->lock);
	qp->rkeys = map;
	qp->xlate = map || rp_qp_context(qp)->lkeys;
	rp_unlock(&qp->lock);
}

static uint32_t ctx_number(struct rp_context *ctx)
{
	static unsigned int last;

	if (!ctx->number)
		ctx->number = ++last;
	return ctx->number;
}

unsigned int rp_keys_fill(struct rp_context *ctx, unsigned int from, void *blob, unsigned int room,
			  unsigned int *next)
{
	struct keys_wire *w = blob;
	unsigned int i = 0, n = 0, max = (room - sizeof(*w)) / sizeof(w->key[0]);
	struct rp_mr *mr;

	*next = 0;
	w->magic = htonl(KEYS_MAGIC);
	w->ctx = htonl(ctx_number(ctx));
	rp_lock(&ctx->objects);
	list_for_each(mr, &ctx->mrs, node) {
		if (i++ < from || !mr->real)
			continue;
		if (n == max) {
			*next = i - 1;
			break;
		}
		w->key[n].virt = htonl(mr->mr.rkey);
		w->key[n++].real = htonl(mr->real->rkey);
	}
	rp_unlock(&ctx->objects);
	w->n = htonl(n);
	return sizeof(*w) + n * sizeof(w->key[0]);
}

unsigned int rp_keys_fill_one(struct rp_mr *mr, void *blob, unsigned int room)
{
	struct keys_wire *w = blob;

	(void)room;
	w->magic = htonl(KEYS_MAGIC);
	w->ctx = htonl(ctx_number(to_rp_context(mr->mr.context)));
	w->n = htonl(1);
	w->key[0].virt = htonl(mr->mr.rkey);
	w->key[0].real = htonl(mr->real->rkey);
	return sizeof(*w) + sizeof(w->key[0]);
}

static struct keyset *keyset_get(struct rp_peer *peer, uint32_t ctx)
{
	struct keyset *ks;

	list_for_each(ks, &peer->keysets, node)
		if (ks->ctx == ctx)
			return ks;
	ks = calloc(1, sizeof(*ks));
	if (!ks)
		return NULL;
	ks->ctx = ctx;
	list_add_tail(&peer->keysets, &ks->node);
	return ks;
}

static int cmp_virt(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Adds or changes; the array stays sorted so that a table of thousands costs no square. */
static int keyset_merge(struct keyset *ks, const struct keys_wire *w, size_t n)
{
	uint32_t (*keys)[2] = realloc(ks->keys, (ks->n + n) * sizeof(*keys));
	size_t i, old = ks->n, end = ks->n;

	if (!keys)
		return -ENOMEM;
	ks->keys = keys;
	for (i = 0; i < n; i++) {
		uint32_t virt = ntohl(w->key[i].virt), real = ntohl(w->key[i].real);
		uint32_t (*hit)[2] = old ? bsearch(&virt, keys, old, sizeof(*keys), cmp_virt) : NULL;

		if (hit) {
			(*hit)[1] = real;
		} else {
			keys[end][0] = virt;
			keys[end++][1] = real;
		}
	}
	ks->n = end;
	qsort(keys, end, sizeof(*keys), cmp_virt);
	return 0;
}

int rp_keys_take(struct rp_peer *peer, const void *blob, unsigned int len,
		 const struct repath_conn_rec *recs, unsigned int nrecs)
{
	const struct keys_wire *w = blob;
	struct rp_keymap *map, *old;
	struct rp_conn *c;
	struct keyset *ks;
	unsigned int i, n;

	if (len < sizeof(*w) || ntohl(w->magic) != KEYS_MAGIC)
		return -EBADMSG;
	n = ntohl(w->n);
	if (n > (len - sizeof(*w)) / sizeof(w->key[0]))
		return -EBADMSG;
	ks = keyset_get(peer, ntohl(w->ctx));
	if (!ks || (n && keyset_merge(ks, w, n)))
		return -ENOMEM;
	map = rp_keymap_new(ks->n);
	if (!map)
		return -ENOMEM;
	for (i = 0; i < ks->n; i++)
		rp_keymap_add(map, ks->keys[i][0], ks->keys[i][1]);
	old = ks->map;
	ks->map = map;
	/* Those that had the old table, and those that the message names. */
	list_for_each(c, &peer->conns, in_peer)
		if (old && c->qp->rkeys == old)
			rp_keys_publish(c->qp, map);
	for (i = 0; i < nrecs; i++) {
		c = rp_conn_find(recs[i].conn_id);
		if (c && c->peer == peer && c->qp->rkeys != map)
			rp_keys_publish(c->qp, map);
	}
	rp_keymap_free(old);
	return 0;
}

void rp_keys_free(struct rp_peer *peer)
{
	struct keyset *ks, *tmp;

	list_for_each_safe(ks, tmp, &peer->keysets, node) {
		list_del(&ks->node);
		rp_keymap_free(ks->map);
		free(ks->keys);
		free(ks);
	}
}
