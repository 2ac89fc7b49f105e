// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: creation, and the software queue of completions that were taken from the device
 * before the application asked for them.
 */
#include <stdlib.h>
#include <string.h>

#include "objects.h"

#define TAKE_BATCH 16

/* Entries for markers, where the device allows them. */
static uint32_t with_extra(const struct rp_context *ctx, uint32_t cqe)
{
	uint32_t max = ctx->limits.max_cqe > 0 ? ctx->limits.max_cqe : 0;

	if (!cqe || cqe >= max)
		return cqe;	/* refused as without us, or full already */
	return max - cqe < RP_CQ_EXTRA ? max : cqe + RP_CQ_EXTRA;
}

/* Makes the real one as cq->attr tells, for @cqe entries. */
static int create_real(struct rp_cq *cq, uint32_t cqe, bool again)
{
	struct rp_context *ctx = to_rp_context(cq->cq.context);
	struct ibv_comp_channel *ch = cq->channel ? cq->channel->real : NULL;
	struct ibv_cq_init_attr_ex a = cq->attr;
	struct ibv_cq *real;

	a.cqe = with_extra(ctx, cqe);
	a.cq_context = cq;
	a.channel = ch;
	a.parent_domain = a.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? real_pd(a.parent_domain) : NULL;
	if ((again || ctx->epoch) && a.comp_vector >= (uint32_t)ctx->real->num_comp_vectors)
		a.comp_vector = 0;	/* the new device has fewer */
	if (cq->is_ex) {
		if (!RP_HAS_SLOT(ctx, create_cq_ex))
			return -EOPNOTSUPP;
		cq->real_ex = RP_REAL(RP_SLOT(ctx, create_cq_ex)(ctx->real, &a));
		real = cq->real_ex ? ibv_cq_ex_to_cq(cq->real_ex) : NULL;
	} else {
		real = RP_REAL(rp_real.ibv_create_cq(ctx->real, (int)a.cqe, cq, ch,
						     (int)a.comp_vector));
	}
	if (!real)
		return rp_minus_errno();
	cq->extra = a.cqe - cqe;
	cq->real = real;
	return 0;
}

/* Can entries that were taken from the device say all that they were asked to, after a move, too? */
static bool can_carry(struct rp_context *ctx, uint64_t flags)
{
	const uint64_t carried = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK |
				 IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG;

	return !(flags & ~carried) &&
	       (!(flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) || rp_clock_use(ctx));
}

static struct rp_cq *create(struct rp_context *ctx, const struct ibv_cq_init_attr_ex *attr,
			    bool is_ex)
{
	struct rp_cq *cq = calloc(1, sizeof(*cq));
	int ret;

	if (!cq)
		return NULL;
	cq->attr = *attr;
	cq->is_ex = is_ex;
	cq->has_more = is_ex && attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS;
	cq->channel = attr->channel ? to_rp_channel(attr->channel) : NULL;
	cq->cq.context = &ctx->vctx.context;
	cq->cq.channel = attr->channel;
	cq->cq.cq_context = attr->cq_context;
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	list_node_init(&cq->soft_event);
	ret = rp_verbs_enter(ctx) ? create_real(cq, attr->cqe, false) : -ENODEV;
	if (!ret && is_ex) {
		ret = rp_cq_ex_init(cq);
		if (ret)
			RP_REAL(rp_real.ibv_destroy_cq(cq->real));
	}
	if (!ret) {
		cq->cq.handle = cq->real->handle;
		cq->cq.cqe = cq->real->cqe - cq->extra;
		if (cq->channel) {
			pthread_mutex_lock(&cq->cq.context->mutex);
			cq->channel->ch.refcnt++;
			pthread_mutex_unlock(&cq->cq.context->mutex);
		}
		if (is_ex && !can_carry(ctx, attr->wc_flags)) {
			cq->pinned = true;
			rp_pin(ctx, RP_IMM_CQ_EX);
		}
		rp_link(ctx, &ctx->cqs, &cq->node);
	}
	rp_verbs_leave(ctx);
	if (!ret)
		return cq;
	free(cq);
	errno = -ret;
	return NULL;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe, .cq_context = cq_context, .channel = channel,
		.comp_vector = comp_vector,
	};
	struct rp_cq *cq;

	if (RP_PASSING)
		return rp_real.ibv_create_cq(context, cqe, cq_context, channel, comp_vector);
	cq = create(to_rp_context(context), &attr, false);
	return cq ? &cq->cq : NULL;
}

struct ibv_cq_ex *rp_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_init_attr_ex a = *attr;
	struct rp_cq *cq;

	/* Fields that the caller's struct need not have. */
	if (!(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS))
		a.flags = 0;
	cq = create(to_rp_context(context), &a, true);
	return cq ? &cq->cqex : NULL;
}

int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct rp_context *ctx = to_rp_context(ibcq->context);
	struct rp_cq *cq = to_rp_cq(ibcq);
	uint32_t real_cqe;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_resize_cq(ibcq, cqe);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	real_cqe = with_extra(ctx, cqe);
	rp_lock(&cq->lock);	/* some providers exchange the ring under the poller */
	ret = RP_REAL(rp_real.ibv_resize_cq(cq->real, (int)real_cqe));
	if (!ret) {
		cq->extra = real_cqe - cqe;
		cq->attr.cqe = cqe;
		ibcq->cqe = cq->real->cqe - cq->extra;
	}
	rp_unlock(&cq->lock);
	rp_verbs_leave(ctx);
	return ret;
}

int rp_cq_grow(struct rp_cq *cq, unsigned int cqe)
{
	struct rp_context *ctx = to_rp_context(cq->cq.context);
	int ret = 0;

	if (cqe > (unsigned int)ctx->limits.max_cqe)
		cqe = ctx->limits.max_cqe;
	rp_lock(&cq->lock);
	if (cq->real && (unsigned int)cq->real->cqe < cqe) {
		ret = RP_REAL(rp_real.ibv_resize_cq(cq->real, (int)cqe));
		if (!ret)
			cq->extra = cq->real->cqe - cq->cq.cqe;
	}
	rp_unlock(&cq->lock);
	return ret > 0 ? -ret : ret ? rp_minus_errno() : 0;
}

int rp_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct rp_context *ctx = to_rp_context(ibcq->context);
	struct rp_cq *cq = to_rp_cq(ibcq);
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, modify_cq)(cq->real, attr));
	if (!ret)
		cq->moderation = *attr;
	rp_verbs_leave(ctx);
	return ret;
}

int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct rp_context *ctx = to_rp_context(ibcq->context);
	struct rp_cq *cq = to_rp_cq(ibcq);
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_destroy_cq(ibcq);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	rp_unlink(ctx, &cq->node);
	ret = RP_REAL(rp_real.ibv_destroy_cq(cq->real));
	if (ret) {
		rp_link(ctx, &ctx->cqs, &cq->node);
	} else {
		if (cq->channel) {
			rp_channel_forget_cq(cq);
			pthread_mutex_lock(&ibcq->context->mutex);
			cq->channel->ch.refcnt--;
			pthread_mutex_unlock(&ibcq->context->mutex);
		}
		if (cq->pinned)
			rp_unpin(ctx, RP_IMM_CQ_EX);
		rp_async_forget(ctx, cq);
	}
	rp_verbs_leave(ctx);
	if (ret)
		return ret;
	rp_wait_acked(&ibcq->mutex, &ibcq->cond, &cq->comp_events_unacked);
	rp_wait_acked(&ibcq->mutex, &ibcq->cond, &cq->async_events_unacked);
	rp_cq_ex_free(cq);
	free(cq->soft);
	free(cq);
	return 0;
}

static bool reserve(struct rp_cq *cq, unsigned int n)
{
	unsigned int size = cq->soft_size ? cq->soft_size : 64, i;
	struct rp_soft_wc *bigger;

	if (cq->soft_size - cq->soft_n >= n)
		return true;
	while (size - cq->soft_n < n)
		size *= 2;
	bigger = malloc(size * sizeof(*bigger));
	if (!bigger)
		return false;
	for (i = 0; i < cq->soft_n; i++)
		bigger[i] = cq->soft[(cq->soft_head + i) % cq->soft_size];
	free(cq->soft);
	cq->soft = bigger;
	cq->soft_size = size;
	cq->soft_head = 0;
	return true;
}

static void push(struct rp_cq *cq, const struct rp_qp *qp, const struct ibv_wc *wc,
		 const struct rp_wc_more *more)
{
	struct rp_soft_wc *s = &cq->soft[(cq->soft_head + cq->soft_n++) % cq->soft_size];

	s->qp = qp;
	s->wc = *wc;
	if (more)
		s->more = *more;
	else
		memset(&s->more, 0, sizeof(s->more));
}

void rp_cq_soft_push(struct rp_cq *cq, const struct rp_qp *qp, const struct ibv_wc *wc)
{
	struct rp_wc_more now = { 0 };

	if (!reserve(cq, 1)) {
		rp_log(RP_LOG_ERR, "out of memory: a completion is lost");
		return;
	}
	if (cq->has_more)
		rp_clock_stamp(to_rp_context(cq->cq.context), &now);
	push(cq, qp, wc, &now);
}

bool rp_cq_soft_pop(struct rp_cq *cq, struct ibv_wc *wc, struct rp_wc_more *more)
{
	const struct rp_soft_wc *s;

	if (!cq->soft_n)
		return false;
	s = &cq->soft[cq->soft_head];
	*wc = s->wc;
	if (more)
		*more = s->more;
	cq->soft_head = (cq->soft_head + 1) % cq->soft_size;
	cq->soft_n--;
	return true;
}

/* The queue pair that the device's entry is of. */
static const struct rp_qp *qp_of(struct rp_cq *cq, const struct ibv_wc *wc)
{
	const struct rp_slot *s = (const struct rp_slot *)(uintptr_t)wc->wr_id;

	return s->kind == RP_SLOT_SRQ ? rp_qp_of_srq(to_rp_context(cq->cq.context), wc->qp_num) :
					s->owner;
}

static bool take_one(struct rp_cq *cq, struct ibv_wc *wc, const struct rp_wc_more *more)
{
	const struct rp_qp *qp = qp_of(cq, wc);

	if (!rp_wc_translate(wc))
		return false;
	push(cq, qp, wc, more);
	return true;
}

/* One by one: poll_cq() does not tell all of it. */
static int take_more(struct rp_cq *cq)
{
	struct rp_wc_more more;
	struct ibv_wc wc;
	int total = 0;

	while (reserve(cq, 1) && !rp_cq_ex_read(cq, &wc, &more))
		total += take_one(cq, &wc, &more);
	return total;
}

static int take(struct rp_cq *cq)
{
	struct ibv_wc wc[TAKE_BATCH];
	int n, i, total = 0;

	if (cq->has_more)
		return take_more(cq);
	/* Room first: what has been polled must go somewhere. */
	while (cq->real && reserve(cq, TAKE_BATCH)) {
		n = cq->real->context->ops.poll_cq(cq->real, TAKE_BATCH, wc);
		for (i = 0; i < n; i++)
			total += take_one(cq, &wc[i], NULL);
		if (n < TAKE_BATCH)
			break;
	}
	return total;
}

void rp_cq_sweep(struct rp_cq *cq)
{
	rp_lock(&cq->lock);
	take(cq);
	rp_unlock(&cq->lock);
}

void rp_cq_sweep_if_room(struct rp_cq *cq)
{
	rp_lock(&cq->lock);
	if (cq->soft_n < (unsigned int)cq->cq.cqe)
		take(cq);
	rp_unlock(&cq->lock);
}

void rp_cq_forget_qp(struct rp_cq *cq, const struct rp_qp *qp)
{
	unsigned int i, kept = 0;

	rp_lock(&cq->lock);
	take(cq);
	for (i = 0; i < cq->soft_n; i++) {
		struct rp_soft_wc *s = &cq->soft[(cq->soft_head + i) % cq->soft_size];

		if (s->qp != qp)
			cq->soft[(cq->soft_head + kept++) % cq->soft_size] = *s;
	}
	cq->soft_n = kept;
	rp_unlock(&cq->lock);
}

int rp_cq_harvest(struct rp_cq *cq)
{
	int n;

	rp_lock(&cq->lock);
	n = take(cq);
	if (n)
		rp_cq_soft_notify(cq, true);
	rp_unlock(&cq->lock);
	return n;
}

/* As the device is asked: see rp_cq_any_event(). */
static int arm_real(struct rp_cq *cq, bool solicited_only)
{
	if (!cq->real->context->ops.req_notify_cq)
		return EOPNOTSUPP;
	return cq->real->context->ops.req_notify_cq(cq->real, solicited_only && !atomic_load(&cq->any_event));
}

void rp_cq_any_event(struct rp_cq *cq)
{
	atomic_store(&cq->any_event, true);
	if (rp_cq_armed(cq) == RP_ARMED_SOLICITED)
		arm_real(cq, true);
}

int rp_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct rp_cq *cq = to_rp_cq(ibcq);
	int ret = 0;

	rp_lock(&cq->lock);
	rp_cq_arm(cq, solicited_only);
	if (cq->real)
		ret = arm_real(cq, solicited_only);
	if (ret)
		rp_cq_event_came(cq);
	rp_unlock(&cq->lock);
	return ret;
}

int rp_cq_release(struct rp_cq *cq)
{
	int ret;

	rp_lock(&cq->lock);
	/* Events that the application has not read yet go with the real CQ. */
	if (cq->channel)
		rp_channel_take_events(cq->channel);
	ret = RP_REAL(rp_real.ibv_destroy_cq(cq->real));
	if (!ret) {
		cq->real = NULL;
		cq->real_ex = NULL;
	}
	rp_unlock(&cq->lock);
	return -ret;
}

/* No completion comes by it, only fewer events: a device without it is as good. It is tried again on the next. */
static void moderate(struct rp_cq *cq)
{
	struct rp_context *ctx = to_rp_context(cq->cq.context);
	int ret = EOPNOTSUPP;

	if (!cq->moderation.attr_mask)
		return;
	if (RP_HAS_SLOT(ctx, modify_cq))
		ret = RP_REAL(RP_SLOT(ctx, modify_cq)(cq->real, &cq->moderation));
	if (ret)
		rp_log(RP_LOG_INFO, "%s: a completion queue has lost its moderation, ibv_modify_cq(): %s",
		       ctx->name, strerror(ret));
}

int rp_cq_recreate(struct rp_cq *cq)
{
	enum rp_armed armed;
	int ret;

	rp_lock(&cq->lock);
	/* As many as the application was told, not as it asked for. */
	ret = create_real(cq, cq->cq.cqe, true);
	/* The table of the extended interface stays: the application reads it without a lock. */
	if (!ret) {
		cq->cq.handle = cq->real->handle;
		moderate(cq);
	}
	/* No event of the old device comes any more. */
	armed = rp_cq_armed(cq);
	if (!ret)
		atomic_store(&cq->armed, 0);
	if (!ret && armed != RP_ARMED_NOT) {
		rp_cq_arm(cq, armed == RP_ARMED_SOLICITED);
		ret = -arm_real(cq, armed == RP_ARMED_SOLICITED);
	}
	rp_unlock(&cq->lock);
	return ret;
}
