// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs that were once sent to by an address handle, and for long not any more. The module keeps a limited
 * number of them resolved, and a program may use a handle for all whom it ever meets at a host. The longest
 * unused go first; who is sent to again is asked for again.
 */
#include <stdlib.h>

#include "resolve.h"
#include "ud.h"

/* So many are dropped at once, as far as a context has more than a few. */
#define BATCH 64
#define FEW 512

unsigned int rp_ah_to_max = 12288;

/* How many were ever added: what tells when another one was used. How many are kept, in all contexts. */
static _Atomic uint64_t added = 1;
static atomic_uint kept;

uint64_t rp_ah_used_now(void)
{
	return atomic_load_explicit(&added, memory_order_relaxed);
}

static void list_on(struct rp_context *ctx, struct rp_ah_to *t)
{
	list_add_tail(&ctx->ah_tos, &t->node);
	atomic_fetch_add(&ctx->nah_tos, 1);
	atomic_fetch_add(&kept, 1);
}

static void list_off(struct rp_context *ctx, struct rp_ah_to *t)
{
	list_del(&t->node);
	atomic_fetch_sub(&ctx->nah_tos, 1);
	atomic_fetch_sub(&kept, 1);
}

void rp_ah_used_first(struct rp_context *ctx, struct rp_ah_to *t)
{
	rp_lock(&ctx->ah_tos_lock);
	t->used = atomic_fetch_add(&added, 1) + 1;
	list_on(ctx, t);
	rp_unlock(&ctx->ah_tos_lock);
}

void rp_ah_used_again(struct rp_context *ctx, struct rp_ah_to *t)
{
	rp_lock(&ctx->ah_tos_lock);
	t->used = rp_ah_used_now();
	list_del(&t->node);
	list_add_tail(&ctx->ah_tos, &t->node);
	rp_unlock(&ctx->ah_tos_lock);
}

void rp_ah_list_all(struct rp_context *ctx, struct rp_ah *ah, bool on)
{
	struct rp_ah_to *t;
	unsigned int i;

	rp_lock(&ah->lock);
	rp_lock(&ctx->ah_tos_lock);
	for (i = 0; i < ah->rows; i++)
		for (t = ah->to[i]; t; t = t->next)
			if (on)
				list_on(ctx, t);
			else
				list_off(ctx, t);
	rp_unlock(&ctx->ah_tos_lock);
	rp_unlock(&ah->lock);
}

/*
 * What was used last before this, no request that is to be given to the device names, nor one that a thread is just
 * posting. Those that were given are given again only where the owner holds the queue back, in SQD: nothing is
 * dropped then. Caller holds ctx->objects.
 */
static uint64_t needed_since(struct rp_context *ctx)
{
	uint64_t since = rp_ah_used_now(), posting, waiting;
	struct rp_qp *qp;

	list_for_each(qp, &ctx->qps, node) {
		if (qp->qp.qp_type != IBV_QPT_UD)
			continue;
		if (atomic_load(&qp->ud_posting)) {
			posting = atomic_load(&qp->ud_posting_since);
			since = posting < since ? posting : since;
		}
		rp_lock(&qp->lock);
		waiting = qp->sq.submitted < qp->sq.head ? qp->ud_waiting_since : since;
		if (__atomic_load_n(&qp->qp.state, __ATOMIC_ACQUIRE) == IBV_QPS_SQD &&
		    atomic_load(&qp->sq.retired) < qp->sq.head)
			waiting = 0;
		rp_unlock(&qp->lock);
		since = waiting < since ? waiting : since;
	}
	return since;
}

static bool too_many(const struct rp_context *ctx, unsigned int max)
{
	return atomic_load(&kept) > max && atomic_load(&ctx->nah_tos) > FEW;
}

/* What the device has for it goes with @era if a request may name it. True: something does. */
static bool give_up_real(struct rp_ah *ah, struct rp_ah_to *t, struct rp_ah_era *era)
{
	struct rp_ah_real *r;
	bool any = false;

	while ((r = t->real)) {
		t->real = r->next;
		if (!r->era && !r->named && !RP_REAL(rp_real.ibv_destroy_ah(r->ah))) {
			free(r);
			continue;
		}
		if (!r->era) {
			r->era = era;
			any |= era != NULL;
		}
		r->next = ah->own.next;
		ah->own.next = r;
	}
	return any;
}

static void unchain(struct rp_ah *ah, struct rp_ah_to *t)
{
	struct rp_ah_to **at = rp_ah_row(ah, t->qpn);

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	ah->n--;
}

/* Takes out the longest unused one, if it was not used @since. Caller holds ctx->objects, so its handle stays. */
static struct rp_ah_to *take_oldest(struct rp_context *ctx, uint64_t since, struct rp_ah_era *era,
				    bool *any)
{
	struct rp_ah_to *t = NULL;
	bool unused = false;
	struct rp_ah *ah;

	rp_lock(&ctx->ah_tos_lock);
	if (!list_empty(&ctx->ah_tos))
		t = list_first(&ctx->ah_tos, struct rp_ah_to, node);
	ah = t && t->used < since ? t->ah : NULL;
	rp_unlock(&ctx->ah_tos_lock);
	if (!ah)
		return NULL;
	rp_lock(&ah->lock);
	rp_lock(&ctx->ah_tos_lock);
	unused = t->used < since;	/* still */
	if (unused)
		list_off(ctx, t);
	rp_unlock(&ctx->ah_tos_lock);
	if (unused) {
		unchain(ah, t);
		*any |= give_up_real(ah, t, era);
	}
	rp_unlock(&ah->lock);
	return unused ? t : NULL;
}

void rp_ah_drop_unused(struct rp_context *ctx)
{
	struct rp_ah_to *dropped = NULL, *t;
	struct rp_ah_era *era;
	bool any = false;
	uint64_t since;

	if (likely(!too_many(ctx, rp_ah_to_max)))
		return;
	/* Away: its requests wait, and what it had of the device's is not there. */
	if (!rp_verbs_try_enter(ctx))
		return;
	rp_lock(&ctx->objects);
	since = ctx->real ? needed_since(ctx) : 0;
	era = rp_ah_era_new(ctx);
	while (too_many(ctx, rp_ah_to_max - BATCH) && (t = take_oldest(ctx, since, era, &any))) {
		t->next = dropped;
		dropped = t;
	}
	if (any)
		rp_ah_era_begin(ctx, era);
	else
		free(era);
	rp_unlock(&ctx->objects);
	rp_verbs_leave(ctx);
	if (any)
		rp_ctl_wake();
	while ((t = dropped)) {
		dropped = t->next;
		rp_dest_put(t->dest);
		free(t);
	}
}

void rp_ah_posted(struct rp_qp *qp, uint64_t since)
{
	if (qp->sq.submitted == qp->sq.head)
		qp->ud_waiting_since = UINT64_MAX;
	else if (qp->ud_waiting_since > since)
		qp->ud_waiting_since = since;
	atomic_fetch_sub(&qp->ud_posting, 1);
}
