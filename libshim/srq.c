// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues; XRC domains, which are not moved in this release. */
#include <stdlib.h>
#include <string.h>

#include "pool.h"

static int post_real(void *owner, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ibv_srq *real = ((struct rp_srq *)owner)->real;

	return real->context->ops.post_srq_recv(real, wr, bad);
}

/* Makes the real one as srq->init tells; what the device gave goes to *have. */
static int create_real(struct rp_srq *srq, struct ibv_srq_attr *have)
{
	struct rp_context *ctx = to_rp_context(srq->srq.context);
	struct ibv_srq_init_attr_ex a = srq->init;

	a.srq_context = srq;
	a.pd = a.comp_mask & IBV_SRQ_INIT_ATTR_PD ? real_pd(a.pd) : NULL;
	a.xrcd = a.comp_mask & IBV_SRQ_INIT_ATTR_XRCD ? real_xrcd(a.xrcd) : NULL;
	a.cq = a.comp_mask & IBV_SRQ_INIT_ATTR_CQ ? real_cq(a.cq) : NULL;
	if (!srq->ex)
		srq->real = RP_REAL(rp_real.ibv_create_srq(a.pd, (struct ibv_srq_init_attr *)&a));
	else if (RP_HAS_SLOT(ctx, create_srq_ex))
		srq->real = RP_REAL(RP_SLOT(ctx, create_srq_ex)(ctx->real, &a));
	else
		return -EOPNOTSUPP;
	*have = a.attr;
	return srq->real ? 0 : rp_minus_errno();
}

static struct ibv_srq *create(struct rp_context *ctx, const struct ibv_srq_init_attr_ex *attr,
			      bool ex)
{
	struct rp_srq *srq = calloc(1, sizeof(*srq));
	int ret;

	if (!srq)
		return NULL;
	srq->init = *attr;
	srq->ex = ex;
	srq->pin = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC ?
		   RP_IMM_XRC : -1;
	srq->srq.context = &ctx->vctx.context;
	srq->srq.srq_context = attr->srq_context;
	srq->srq.pd = attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	ret = rp_verbs_enter(ctx) ? create_real(srq, &srq->init.attr) : -ENODEV;
	if (!ret) {
		srq->srq.handle = srq->real->handle;
		rp_pool_init(&srq->pool, ctx, srq->init.attr.max_sge, post_real, srq);
		srq->pool.max = srq->init.attr.max_wr;
		if (srq->pin >= 0)
			rp_pin(ctx, srq->pin);
		rp_link(ctx, &ctx->srqs, &srq->node);
	}
	rp_verbs_leave(ctx);
	if (!ret)
		return &srq->srq;
	free(srq);
	errno = -ret;
	return NULL;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex a = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq;

	if (RP_PASSING)
		return rp_real.ibv_create_srq(pd, attr);
	srq = create(to_rp_context(pd->context), &a, false);
	if (srq)
		attr->attr = to_rp_srq(srq)->init.attr;
	return srq;
}

struct ibv_srq *rp_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	/* Tag matching completes one request several times: its wr_ids can not be slots. */
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_TM) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	srq = create(to_rp_context(context), attr, true);
	if (srq)
		attr->attr = to_rp_srq(srq)->init.attr;
	return srq;
}

#define ON_SRQ(ibsrq, call)						\
	struct rp_context *ctx = to_rp_context((ibsrq)->context);	\
	struct rp_srq *srq = to_rp_srq(ibsrq);				\
	int ret;							\
	ret = rp_verbs_enter(ctx) ? RP_REAL(call) : ENODEV

int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_srq_attr now;

	if (RP_PASSING)
		return rp_real.ibv_modify_srq(ibsrq, attr, mask);
	ON_SRQ(ibsrq, rp_real.ibv_modify_srq(srq->real, attr, mask));
	if (!ret && mask & IBV_SRQ_LIMIT)
		atomic_store(&srq->limit, attr->srq_limit);
	if (!ret && mask & IBV_SRQ_MAX_WR) {
		if (RP_REAL(rp_real.ibv_query_srq(srq->real, &now)))
			now.max_wr = attr->max_wr;
		srq->init.attr.max_wr = srq->pool.max = now.max_wr;
	}
	rp_verbs_leave(ctx);
	return ret;
}

int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	if (RP_PASSING)
		return rp_real.ibv_query_srq(ibsrq, attr);
	ON_SRQ(ibsrq, rp_real.ibv_query_srq(srq->real, attr));
	rp_verbs_leave(ctx);
	return ret;
}

int rp_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num)
{
	ON_SRQ(ibsrq, RP_SLOT(ctx, get_srq_num)(srq->real, num));
	rp_verbs_leave(ctx);
	return ret;
}

/* Completions that were not polled point to our slots, in whichever CQ. */
static void sweep_all(struct rp_context *ctx)
{
	struct rp_cq *cq;

	rp_lock(&ctx->objects);
	list_for_each(cq, &ctx->cqs, node)
		rp_cq_sweep(cq);
	rp_unlock(&ctx->objects);
}

int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct rp_context *ctx;
	struct rp_srq *srq;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_destroy_srq(ibsrq);
	ctx = to_rp_context(ibsrq->context);
	srq = to_rp_srq(ibsrq);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	rp_unlink(ctx, &srq->node);
	ret = RP_REAL(rp_real.ibv_destroy_srq(srq->real));
	if (ret) {
		rp_link(ctx, &ctx->srqs, &srq->node);
	} else {
		if (srq->pin >= 0)
			rp_unpin(ctx, srq->pin);
		sweep_all(ctx);
		rp_async_forget(ctx, srq);
	}
	rp_verbs_leave(ctx);
	if (ret)
		return ret;
	rp_wait_acked(&ibsrq->mutex, &ibsrq->cond, &srq->async_events_unacked);
	rp_pool_free(&srq->pool);
	free(srq);
	return 0;
}

int rp_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return rp_pool_post(&to_rp_srq(ibsrq)->pool, wr, bad);
}

int rp_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad)
{
	(void)srq;
	*bad = op;
	return EOPNOTSUPP;	/* tag matching: see rp_create_srq_ex() */
}

/* An event that was read late may have been of the limit before: what the device has is right. */
static void look_at_limit(struct rp_srq *srq)
{
	struct ibv_srq_attr now = { 0 };

	if (!RP_REAL(rp_real.ibv_query_srq(srq->real, &now)) && now.srq_limit)
		atomic_store(&srq->limit, now.srq_limit);
}

int rp_srq_release(struct rp_srq *srq)
{
	int ret;

	look_at_limit(srq);
	rp_lock(&srq->pool.lock);
	ret = RP_REAL(rp_real.ibv_destroy_srq(srq->real));
	if (!ret) {
		rp_pool_away(&srq->pool);
		srq->real = NULL;
	}
	rp_unlock(&srq->pool.lock);
	return -ret;
}

int rp_srq_recreate(struct rp_srq *srq)
{
	struct ibv_srq_attr have;
	int ret = create_real(srq, &have);

	if (!ret)
		srq->srq.handle = srq->real->handle;
	return ret;
}

/* The limit last: armed before, it would be reported for a queue that is not filled yet. */
int rp_srq_refill(struct rp_srq *srq)
{
	struct ibv_srq_attr attr = { .srq_limit = atomic_load(&srq->limit) };
	bool was_away;
	int n;

	rp_lock(&srq->pool.lock);
	was_away = srq->pool.away;
	rp_unlock(&srq->pool.lock);
	n = rp_pool_submit(&srq->pool);

	if (n < 0 || !was_away || !attr.srq_limit)
		return n;
	if (RP_REAL(rp_real.ibv_modify_srq(srq->real, &attr, IBV_SRQ_LIMIT)))
		rp_log(RP_LOG_ERR, "the limit of a shared receive queue is not set: %s",
		       strerror(errno));
	return n;
}

struct ibv_xrcd *rp_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct rp_xrcd *x = calloc(1, sizeof(*x));
	int saved;

	if (!x)
		return NULL;
	x->real = rp_verbs_enter(ctx) ? RP_REAL(RP_SLOT(ctx, open_xrcd)(ctx->real, attr)) : NULL;
	if (x->real)
		rp_pin(ctx, RP_IMM_XRC);
	rp_verbs_leave(ctx);
	if (x->real) {
		x->xrcd.context = context;
		return &x->xrcd;
	}
	saved = errno;
	free(x);
	errno = saved;
	return NULL;
}

int rp_close_xrcd(struct ibv_xrcd *xrcd)
{
	struct rp_context *ctx = to_rp_context(xrcd->context);
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, close_xrcd)(real_xrcd(xrcd)));
	if (!ret)
		rp_unpin(ctx, RP_IMM_XRC);
	rp_verbs_leave(ctx);
	if (!ret)
		free(xrcd);
	return ret;
}
