// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address handles follow a path that the subnet manager has changed. What is posted from now on goes by
 * a new handle of the device's; the old one may still be named by requests that the device has, and goes
 * when the queue pairs have completed what they had been given by then, or at once if none was given it.
 * The application's stays.
 */
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "resolve.h"
#include "ud.h"

#define WAIT_MIN_MS	10
#define WAIT_MAX_MS	10000

/**
 * struct rp_ah_era - handles that were replaced at the same time
 * @wait_ms: until the next look, longer each time; @next_ns: when that is
 * @use, @n: queue pairs that may name them: up to this request
 */
struct rp_ah_era {
	struct list_node node;		/* ctx->ah_eras */
	unsigned int wait_ms, n;
	uint64_t next_ns;
	struct {
		const struct rp_qp *qp;
		uint64_t upto;
	} use[];
};

static atomic_uint eras;

static bool goes_to(const struct ibv_ah_attr *attr, const void *gid)
{
	return attr->is_global && !memcmp(&attr->grh.dgid, gid, sizeof(attr->grh.dgid));
}

bool rp_ah_path_is_of(const struct rp_ah_path *path, const struct ibv_ah_attr *attr)
{
	if (!path->there || path->dlid != attr->dlid)
		return false;
	return path->dlid || goes_to(attr, &path->gid);
}

void rp_ah_redirect(const struct rp_ah_path *path, struct ibv_ah_attr *attr)
{
	if (!rp_ah_path_is_of(path, attr))
		return;
	attr->dlid = path->to_dlid;
	attr->sl = path->sl;
	attr->static_rate = path->rate;
	if (goes_to(attr, &path->gid))
		attr->grh.traffic_class = path->tclass;
}

/* Several GIDs may have a LID, and one of them may have moved. */
static bool leads_there(const struct ibv_ah_attr *attr, const uint8_t *gid, uint16_t dlid)
{
	return gid ? goes_to(attr, gid) : attr->dlid == dlid;
}

/* Nothing names it: it need not wait for anything. */
static bool destroy_unnamed(const struct rp_ah_real *r)
{
	return !r->named && !RP_REAL(rp_real.ibv_destroy_ah(r->ah));
}

/* Caller holds ah->lock. True: one that another has taken the place of goes with @era. */
static bool replace(struct rp_ah *ah, struct rp_ah_real *r, struct rp_ah_path *path,
		    const uint8_t *gid, const struct rp_ctl_path *to, struct rp_ah_era *era)
{
	struct ibv_ah_attr want = r->attr, given;
	struct rp_ah_real *old;
	struct ibv_ah *made;

	if (!r->ah || r->nowhere || !leads_there(&want, gid, to->dlid))
		return false;
	if (to->new_dlid)
		want.dlid = to->new_dlid;
	if (to->sl >= 0)
		want.sl = to->sl;
	if (to->tclass >= 0 && want.is_global)
		want.grh.traffic_class = to->tclass;
	/* 0 is the port's own, and stays that. */
	if (to->rate && want.static_rate)
		want.static_rate = to->rate;
	if (want.dlid == r->attr.dlid && want.sl == r->attr.sl &&
	    want.static_rate == r->attr.static_rate &&
	    want.grh.traffic_class == r->attr.grh.traffic_class)
		return false;
	old = malloc(sizeof(*old));
	given = want;
	made = old ? RP_REAL(rp_real.ibv_create_ah(real_pd(ah->ah.pd), &given)) : NULL;
	if (!made) {
		rp_log(RP_LOG_ERR, "an address handle can not be made for the new path to LID %u",
		       to->dlid);
		free(old);
		return false;
	}
	*path = (struct rp_ah_path){
		.there = true,
		.dlid = r->lid,
		.to_dlid = want.dlid,
		.sl = want.sl,
		.tclass = want.grh.traffic_class,
		.rate = want.static_rate,
		.gid = want.grh.dgid,
	};
	*old = *r;
	r->ah = made;
	r->attr = want;
	r->named = false;
	if (destroy_unnamed(old)) {
		free(old);
		return false;
	}
	old->era = era;
	r->next = old;
	return true;
}

static bool repath(struct rp_ah *ah, const uint8_t *gid, const struct rp_ctl_path *to,
		   struct rp_ah_era *era)
{
	struct rp_ah_to *t;
	unsigned int i;
	bool any;

	rp_lock(&ah->lock);
	any = replace(ah, &ah->own, &ah->path, gid, to, era);
	ah->real = ah->own.ah;
	for (i = 0; i < ah->rows; i++)
		for (t = ah->to[i]; t; t = t->next)
			any |= t->real && replace(ah, t->real, &t->path, gid, to, era);
	rp_unlock(&ah->lock);
	return any;
}

/* Caller holds ctx->objects. */
static unsigned int count_qps(const struct rp_context *ctx)
{
	const struct rp_qp *qp;
	unsigned int n = 0;

	list_for_each(qp, &ctx->qps, node)
		n += qp->qp.qp_type == IBV_QPT_UD;
	return n;
}

struct rp_ah_era *rp_ah_era_new(const struct rp_context *ctx)
{
	struct rp_ah_era *era;

	return calloc(1, sizeof(*era) + count_qps(ctx) * sizeof(era->use[0]));
}

/*
 * The handle is put into a request, and that given to the device, under the queue pair's lock: who
 * takes it now has the new one.
 */
void rp_ah_era_begin(struct rp_context *ctx, struct rp_ah_era *era)
{
	struct rp_qp *qp;

	list_for_each(qp, &ctx->qps, node) {
		if (qp->qp.qp_type != IBV_QPT_UD)
			continue;
		rp_lock(&qp->lock);
		era->use[era->n].qp = qp;
		era->use[era->n++].upto = qp->sq.submitted;
		rp_unlock(&qp->lock);
	}
	era->wait_ms = WAIT_MIN_MS;
	era->next_ns = rp_now_ns();
	list_add_tail(&ctx->ah_eras, &era->node);
	atomic_fetch_add(&eras, 1);
}

void rp_ah_retire(struct rp_context *ctx, struct rp_ah *ah, struct rp_ah_to *to)
{
	struct rp_ah_era *era;
	struct rp_ah_real *r;
	bool any = false;

	rp_lock(&ctx->objects);
	era = rp_ah_era_new(ctx);
	rp_lock(&ah->lock);
	for (r = era && to->real ? to->real->next : NULL; r; r = r->next)
		if (!r->era) {
			r->era = era;
			any = true;
		}
	rp_unlock(&ah->lock);
	if (any)
		rp_ah_era_begin(ctx, era);
	else
		free(era);
	rp_unlock(&ctx->objects);
	if (any)
		rp_ctl_wake();
}

/* @lid: the port's first */
static bool is_by(const struct rp_ah *ah, uint32_t port, uint16_t lid, uint32_t slid)
{
	return ah->attr.port_num == port && (!slid || (lid | ah->attr.src_path_bits) == slid);
}

static void repath_all(struct rp_context *ctx, uint32_t port, const uint8_t *gid,
		       const struct rp_ctl_path *to)
{
	struct ibv_port_attr attr = { 0 };
	struct rp_ah_era *era;
	bool any = false;
	struct rp_ah *ah;

	/* Asked once: some devices take longer to answer than all the rest does. */
	if (to->slid && RP_REAL(rp_real.ibv_query_port(ctx->real, port, (void *)&attr)))
		return;
	rp_lock(&ctx->objects);
	era = rp_ah_era_new(ctx);
	list_for_each(ah, &ctx->ahs, node)
		if (era && is_by(ah, port, attr.lid, to->slid))
			any |= repath(ah, gid, to, era);
	if (any)
		rp_ah_era_begin(ctx, era);
	else
		free(era);
	rp_unlock(&ctx->objects);
}

void rp_ahs_repath(uint32_t dev_index, uint32_t port, const uint8_t *gid,
		   const struct rp_ctl_path *to)
{
	struct rp_context *ctx;

	rp_log(RP_LOG_DEBUG, "device %u port %u: the path to LID %u has changed", dev_index, port,
	       to->dlid);
	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (ctx->real && ctx->dev_index == (int)dev_index)
			repath_all(ctx, port, gid, to);
	rp_unlock(&rp_contexts_lock);
}

/* One that was taken to RESET since has fewer: nothing of what it had is on its way. */
static bool is_over(const struct rp_context *ctx, const struct rp_ah_era *era)
{
	bool over = true;
	struct rp_qp *qp;
	unsigned int i;

	list_for_each(qp, &ctx->qps, node)
		for (i = 0; over && i < era->n; i++) {
			if (era->use[i].qp != qp)
				continue;
			rp_lock(&qp->lock);
			over = atomic_load(&qp->sq.retired) >= era->use[i].upto ||
			       qp->sq.submitted < era->use[i].upto;
			rp_unlock(&qp->lock);
		}
	return over;
}

static void destroy_of(struct rp_ah_real *head, const struct rp_ah_era *era)
{
	struct rp_ah_real **at = &head->next, *r;

	while ((r = *at)) {
		if (r->era != era) {
			at = &r->next;
			continue;
		}
		r->era = NULL;
		if (r->ah && RP_REAL(rp_real.ibv_destroy_ah(r->ah))) {
			rp_log(RP_LOG_ERR, "an address handle that was replaced is not destroyed");
			at = &r->next;
			continue;
		}
		*at = r->next;
		free(r);
	}
}

/* Caller holds ctx->objects. */
static void end_era(struct rp_context *ctx, struct rp_ah_era *era)
{
	struct rp_ah_to *t;
	struct rp_ah *ah;
	unsigned int i;

	list_for_each(ah, &ctx->ahs, node) {
		rp_lock(&ah->lock);
		destroy_of(&ah->own, era);
		for (i = 0; i < ah->rows; i++)
			for (t = ah->to[i]; t; t = t->next)
				if (t->real)
					destroy_of(t->real, era);
		rp_unlock(&ah->lock);
	}
	list_del(&era->node);
	free(era);
	atomic_fetch_sub(&eras, 1);
}

/* Milliseconds until the next look at one of @ctx; -1: there is none. */
static int tick(struct rp_context *ctx, uint64_t now)
{
	struct rp_ah_era *era, *tmp;
	int ms, wait = -1;

	rp_lock(&ctx->objects);
	list_for_each_safe(era, tmp, &ctx->ah_eras, node) {
		if (now >= era->next_ns) {
			if (is_over(ctx, era)) {
				end_era(ctx, era);
				continue;
			}
			era->next_ns = now + era->wait_ms * 1000000ull;
			era->wait_ms = era->wait_ms < WAIT_MAX_MS / 2 ? 2 * era->wait_ms : WAIT_MAX_MS;
		}
		ms = (era->next_ns - now) / 1000000 + 1;
		wait = wait < 0 || ms < wait ? ms : wait;
	}
	rp_unlock(&ctx->objects);
	return wait;
}

int rp_ahs_tick(void)
{
	struct rp_context *ctx;
	int ms, wait = -1;

	if (!atomic_load(&eras))
		return -1;
	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node) {
		/* What a device had that is away went with it. */
		if (!ctx->real)
			continue;
		ms = tick(ctx, rp_now_ns());
		wait = wait < 0 || (ms >= 0 && ms < wait) ? ms : wait;
	}
	rp_unlock(&rp_contexts_lock);
	return wait;
}

void rp_ah_eras_free(struct rp_context *ctx)
{
	while (!list_empty(&ctx->ah_eras)) {
		struct rp_ah_era *era = list_first(&ctx->ah_eras, struct rp_ah_era, node);

		list_del(&era->node);
		free(era);
		atomic_fetch_sub(&eras, 1);
	}
}
