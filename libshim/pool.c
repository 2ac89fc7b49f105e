// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of shared receive queues and work queues. They complete in another order than they were
 * posted in, so their slots lie on a free list; those that the device has are kept in order,
 * to be posted again after a move. The free list grows, and the device's refusal is the
 * only limit, except while there is no device.
 */
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define CHUNK 256
#define LIST_MAX 64	/* posted to the device at once */

/**
 * struct rp_kept - a request
 * @slot: its address is the wr_id on the device
 * @node: in rp_pool.posted, or in the free list
 * @submitted: the device has it
 */
struct rp_kept {
	struct rp_slot slot;
	struct list_node node;
	bool submitted;
	struct ibv_sge sge[];
};

struct rp_chunk {
	struct rp_chunk *next;
};

static struct rp_kept *pop(struct rp_pool *p)
{
	size_t stride = sizeof(struct rp_kept) + p->max_sge * sizeof(struct ibv_sge);
	struct rp_kept *k;
	int i;

	if (list_empty(&p->free)) {
		struct rp_chunk *c = calloc(1, sizeof(*c) + CHUNK * stride);

		if (!c)
			return NULL;
		c->next = p->chunks;
		p->chunks = c;
		for (i = 0; i < CHUNK; i++) {
			k = (struct rp_kept *)((char *)(c + 1) + i * stride);
			k->slot.kind = RP_SLOT_SRQ;
			k->slot.hidden = true;
			k->slot.owner = p;
			list_add_tail(&p->free, &k->node);
		}
	}
	k = list_first(&p->free, struct rp_kept, node);
	list_del(&k->node);
	list_add_tail(&p->posted, &k->node);
	p->n++;
	return k;
}

static void give_back(struct rp_pool *p, struct rp_kept *k)
{
	list_del(&k->node);
	list_add_head(&p->free, &k->node);
	p->n--;
}

void rp_pool_init(struct rp_pool *p, struct rp_context *ctx, unsigned int max_sge,
		  rp_pool_post_fn *post, void *owner)
{
	*p = (struct rp_pool){ .ctx = ctx, .max_sge = max_sge, .post = post, .owner = owner };
	list_init(&p->free);
	list_init(&p->posted);
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
		if (!rp_keymap_find(lkeys, wr->sg_list[i].lkey, &real) && wr->sg_list[i].length)
			return false;
	return true;
}

/*
 * Gives the device the @n requests from @k on; what it does not take stays as it is. Caller
 * holds p->lock. A region that is gone since its receive was posted: the receive fails
 * when it is used, as it would have on the old device.
 */
static int submit(struct rp_pool *p, struct rp_kept *k, unsigned int n, unsigned int *taken)
{
	const struct rp_keymap *lkeys = __atomic_load_n(&p->ctx->lkeys, __ATOMIC_ACQUIRE);
	struct ibv_recv_wr wr[LIST_MAX], *bad = NULL;
	struct ibv_sge few[16], *sges = NULL;	/* few: of one request, or some */
	struct rp_kept *at = k;
	unsigned int i;
	int s, ret;

	if (lkeys && !rp_no_remap) {
		sges = (size_t)n * p->max_sge <= sizeof(few) / sizeof(few[0]) ? few :
		       malloc((size_t)n * p->max_sge * sizeof(*sges));
		*taken = 0;
		if (!sges)
			return ENOMEM;
	}
	for (i = 0; i < n; i++, at = list_entry(at->node.next, struct rp_kept, node)) {
		wr[i] = at->slot.recv;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		at->submitted = true;
		if (!sges)
			continue;
		wr[i].sg_list = &sges[i * p->max_sge];
		for (s = 0; s < wr[i].num_sge; s++) {
			wr[i].sg_list[s] = at->sge[s];
			if (!rp_keymap_find(lkeys, at->sge[s].lkey, &wr[i].sg_list[s].lkey) &&
			    at->sge[s].length)
				wr[i].sg_list[s].lkey = RP_NO_KEY;
		}
	}
	ret = p->post(p->owner, wr, &bad);
	*taken = !ret ? n : bad ? (unsigned int)(bad - wr) : 0;
	for (i = 0; i < n; i++, k = list_entry(k->node.next, struct rp_kept, node))
		if (i >= *taken)
			k->submitted = false;
	if (sges != few)
		free(sges);
	return ret;
}

/* Keeps up to LIST_MAX of @wr, and gives them to the device; *posted says how many went. */
static int post_some(struct rp_pool *p, const struct ibv_recv_wr *wr, unsigned int *posted)
{
	const struct rp_keymap *lkeys = rp_no_remap ? NULL :
					__atomic_load_n(&p->ctx->lkeys, __ATOMIC_ACQUIRE);
	struct rp_kept *first = NULL, *k;
	unsigned int n;
	int ret = 0, early = 0;

	*posted = 0;
	for (n = 0; wr && n < LIST_MAX; wr = wr->next, n++) {
		if (wr->num_sge < 0 || (unsigned int)wr->num_sge > p->max_sge ||
		    !lkeys_known(lkeys, wr)) {
			early = EINVAL;
			break;
		}
		k = p->away && p->n >= p->max ? NULL : pop(p);
		if (!k) {
			early = ENOMEM;
			break;
		}
		k->slot.wr_id = wr->wr_id;
		k->slot.recv.wr_id = (uintptr_t)&k->slot;
		k->slot.recv.next = NULL;
		k->slot.recv.sg_list = k->sge;
		k->slot.recv.num_sge = wr->num_sge;
		if (wr->num_sge)
			memcpy(k->sge, wr->sg_list, wr->num_sge * sizeof(*k->sge));
		k->submitted = false;
		first = first ? first : k;
	}
	*posted = n;
	if (n && !p->away)
		ret = submit(p, first, n, posted);
	while (n-- > *posted)	/* they are the last of the list */
		give_back(p, list_entry(p->posted.n.prev, struct rp_kept, node));
	return ret ? ret : early;
}

int rp_pool_post(struct rp_pool *p, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	unsigned int posted;
	int ret = 0;

	rp_lock(&p->lock);
	while (wr && !ret) {
		ret = post_some(p, wr, &posted);
		while (posted--)
			wr = wr->next;
	}
	rp_unlock(&p->lock);
	if (ret)
		*bad = wr;
	return ret;
}

bool rp_pool_completed(struct rp_slot *slot, struct ibv_wc *wc)
{
	struct rp_kept *k = (struct rp_kept *)slot;
	struct rp_pool *p = slot->owner;
	bool ours = rp_qp_srq_completion(p->ctx, wc);

	rp_lock(&p->lock);
	if (ours) {	/* flushed by a move: rp_pool_submit() */
		k->submitted = false;
	} else {
		wc->wr_id = slot->wr_id;
		give_back(p, k);
	}
	rp_unlock(&p->lock);
	return !ours;
}

void rp_pool_away(struct rp_pool *p)
{
	struct rp_kept *k;

	p->away = true;
	list_for_each(k, &p->posted, node)
		k->submitted = false;
}

int rp_pool_submit(struct rp_pool *p)
{
	struct rp_kept *k, *first = NULL;
	unsigned int n = 0, taken, total = 0;
	int ret = 0;

	rp_lock(&p->lock);
	list_for_each(k, &p->posted, node) {
		if (!k->submitted) {
			first = n++ ? first : k;
			if (n < LIST_MAX && k->node.next != &p->posted.n)
				continue;
		}
		if (n) {
			ret = submit(p, first, n, &taken);
			total += taken;
			if (ret)
				break;
		}
		n = 0;
	}
	if (!ret)
		p->away = false;
	rp_unlock(&p->lock);
	return ret ? -ret : (int)total;
}
