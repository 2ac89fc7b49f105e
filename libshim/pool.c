// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Slots of shared receive queues and work queues. They are given back in the order of completion, so
 * they lie on a free list; the list grows, and the device's refusal is the only limit.
 */
#include <stdlib.h>

#include "objects.h"

#define CHUNK 256
#define LIST_MAX 64	/* posted to the device at once */

struct rp_chunk {
	struct rp_chunk *next;
	struct rp_slot slot[CHUNK];
};

/* A free slot's wr_id is the next free one. */
static void push(struct rp_pool *p, struct rp_slot *s)
{
	s->wr_id = (uintptr_t)p->free;
	p->free = s;
}

static struct rp_slot *pop(struct rp_pool *p)
{
	struct rp_slot *s;
	int i;

	if (!p->free) {
		struct rp_chunk *c = calloc(1, sizeof(*c));

		if (!c)
			return NULL;
		c->next = p->chunks;
		p->chunks = c;
		for (i = 0; i < CHUNK; i++) {
			c->slot[i].kind = RP_SLOT_SRQ;
			c->slot[i].owner = p;
			push(p, &c->slot[i]);
		}
	}
	s = p->free;
	p->free = (struct rp_slot *)(uintptr_t)s->wr_id;
	return s;
}

void rp_pool_init(struct rp_pool *p, struct rp_context *ctx)
{
	*p = (struct rp_pool){ .ctx = ctx };
}

void rp_pool_free(struct rp_pool *p)
{
	while (p->chunks) {
		struct rp_chunk *next = p->chunks->next;

		free(p->chunks);
		p->chunks = next;
	}
}

static bool lkeys_known(const struct rp_keymap *lkeys, const struct ibv_recv_wr *wr)
{
	uint32_t real;
	int i;

	for (i = 0; lkeys && i < wr->num_sge; i++)
		if (!rp_keymap_find(lkeys, wr->sg_list[i].lkey, &real))
			return false;
	return true;
}

/* Posts up to LIST_MAX; *posted says how many went. Caller holds p->lock. */
static int post_some(struct rp_pool *p, struct ibv_recv_wr *wr, int *posted,
		     int (*post)(void *arg, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),
		     void *arg)
{
	const struct rp_keymap *lkeys = __atomic_load_n(&p->ctx->lkeys, __ATOMIC_ACQUIRE);
	struct ibv_recv_wr copy[LIST_MAX], *bad = NULL;
	struct ibv_sge *sges = NULL;
	int n, i, at = 0, total = 0, ret = 0, early = 0;
	struct ibv_recv_wr *w;

	*posted = 0;
	for (n = 0, w = wr; w && n < LIST_MAX; w = w->next, n++)
		total += w->num_sge;
	if (lkeys && !rp_no_remap && total) {
		sges = malloc(total * sizeof(*sges));
		if (!sges)
			return ENOMEM;
	}
	for (n = 0, w = wr; w && n < LIST_MAX; w = w->next, n++) {
		struct rp_slot *s;

		if (sges && !lkeys_known(lkeys, w)) {
			early = EINVAL;
			break;
		}
		s = pop(p);
		if (!s) {
			early = ENOMEM;
			break;
		}
		s->wr_id = w->wr_id;
		copy[n] = *w;
		copy[n].wr_id = (uintptr_t)s;
		copy[n].next = NULL;
		if (n)
			copy[n - 1].next = &copy[n];
		if (sges) {
			copy[n].sg_list = &sges[at];
			for (i = 0; i < w->num_sge; i++, at++) {
				sges[at] = w->sg_list[i];
				rp_keymap_find(lkeys, sges[at].lkey, &sges[at].lkey);
			}
		}
	}
	if (n)
		ret = post(arg, copy, &bad);
	*posted = !ret ? n : bad ? (int)(bad - copy) : 0;
	for (i = *posted; i < n; i++)
		push(p, (struct rp_slot *)(uintptr_t)copy[i].wr_id);
	free(sges);
	return ret ? ret : early;
}

int rp_pool_post(struct rp_pool *p, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
		 int (*post)(void *arg, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),
		 void *arg)
{
	int ret = 0, posted;

	rp_lock(&p->lock);
	while (wr && !ret) {
		ret = post_some(p, wr, &posted, post, arg);
		while (posted--)
			wr = wr->next;
	}
	rp_unlock(&p->lock);
	if (ret)
		*bad = wr;
	return ret;
}

void rp_pool_completed(struct rp_slot *slot, struct ibv_wc *wc)
{
	struct rp_pool *p = slot->owner;

	wc->wr_id = slot->wr_id;
	rp_lock(&p->lock);
	push(p, slot);
	rp_unlock(&p->lock);
	rp_qp_srq_completion(p->ctx, wc);
}
