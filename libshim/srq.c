// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues and XRC domains: not moved in this release. */
#include <stdlib.h>
#include <string.h>

#include "objects.h"

static struct ibv_srq *wrap(struct rp_context *ctx, struct rp_srq *srq, struct ibv_srq *real,
			    struct ibv_pd *pd, void *srq_context)
{
	srq->real = real;
	srq->srq.context = &ctx->vctx.context;
	srq->srq.srq_context = srq_context;
	srq->srq.pd = pd;
	srq->srq.handle = real->handle;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	rp_pool_init(&srq->pool, ctx);
	rp_pin(ctx, srq->xrc ? RP_IMM_XRC : RP_IMM_SRQ);
	rp_link(ctx, &ctx->srqs, &srq->node);
	return &srq->srq;
}

static void discard(struct rp_srq *srq)
{
	int saved = errno;

	free(srq);
	errno = saved;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr a = *attr;
	struct ibv_srq *real, *ret = NULL;
	struct rp_context *ctx;
	struct rp_srq *srq;

	if (RP_PASSING)
		return rp_real.ibv_create_srq(pd, attr);
	ctx = to_rp_context(pd->context);
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	a.srq_context = srq;
	rp_verbs_enter(ctx);
	real = RP_REAL(rp_real.ibv_create_srq(real_pd(pd), &a));
	if (real) {
		attr->attr = a.attr;
		ret = wrap(ctx, srq, real, pd, attr->srq_context);
	}
	rp_verbs_leave(ctx);
	if (!ret)
		discard(srq);
	return ret;
}

struct ibv_srq *rp_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct ibv_srq_init_attr_ex a = *attr;
	struct ibv_srq *real, *ret = NULL;
	struct rp_srq *srq;

	/* Tag matching completes one request several times: its wr_ids can not be slots. */
	if (a.comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a.srq_type == IBV_SRQT_TM) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->xrc = a.comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a.srq_type == IBV_SRQT_XRC;
	a.srq_context = srq;
	a.pd = a.comp_mask & IBV_SRQ_INIT_ATTR_PD ? real_pd(attr->pd) : NULL;
	a.xrcd = a.comp_mask & IBV_SRQ_INIT_ATTR_XRCD ? real_xrcd(attr->xrcd) : NULL;
	a.cq = a.comp_mask & IBV_SRQ_INIT_ATTR_CQ ? real_cq(attr->cq) : NULL;
	if (a.comp_mask & IBV_SRQ_INIT_ATTR_CQ && attr->cq)
		srq->cq = to_rp_cq(attr->cq);
	rp_verbs_enter(ctx);
	real = RP_REAL(RP_SLOT(ctx, create_srq_ex)(ctx->real, &a));
	if (real) {
		attr->attr = a.attr;
		ret = wrap(ctx, srq, real,
			   attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL,
			   attr->srq_context);
	}
	rp_verbs_leave(ctx);
	if (!ret)
		discard(srq);
	return ret;
}

#define ON_SRQ(ibsrq, call)						\
	struct rp_context *ctx = to_rp_context((ibsrq)->context);	\
	struct rp_srq *srq = to_rp_srq(ibsrq);				\
	int ret;							\
	rp_verbs_enter(ctx);						\
	ret = RP_REAL(call);						\
	rp_verbs_leave(ctx)

int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	if (RP_PASSING)
		return rp_real.ibv_modify_srq(ibsrq, attr, mask);
	ON_SRQ(ibsrq, rp_real.ibv_modify_srq(srq->real, attr, mask));
	return ret;
}

int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	if (RP_PASSING)
		return rp_real.ibv_query_srq(ibsrq, attr);
	ON_SRQ(ibsrq, rp_real.ibv_query_srq(srq->real, attr));
	return ret;
}

int rp_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num)
{
	ON_SRQ(ibsrq, RP_SLOT(ctx, get_srq_num)(srq->real, num));
	return ret;
}

int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct rp_context *ctx;
	struct rp_srq *srq;
	bool swept = true;
	struct rp_cq *cq;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_destroy_srq(ibsrq);
	ctx = to_rp_context(ibsrq->context);
	srq = to_rp_srq(ibsrq);
	rp_verbs_enter(ctx);
	rp_unlink(ctx, &srq->node);
	ret = RP_REAL(rp_real.ibv_destroy_srq(srq->real));
	if (ret) {
		rp_link(ctx, &ctx->srqs, &srq->node);
	} else {
		rp_unpin(ctx, srq->xrc ? RP_IMM_XRC : RP_IMM_SRQ);
		/* Completions that were not polled point to our slots, in whichever CQ. */
		rp_lock(&ctx->objects);
		list_for_each(cq, &ctx->cqs, node)
			swept &= rp_cq_sweep(cq);
		rp_unlock(&ctx->objects);
	}
	rp_verbs_leave(ctx);
	if (ret)
		return ret;
	rp_wait_acked(&ibsrq->mutex, &ibsrq->cond, &srq->async_events_unacked);
	/* Destroyed by who is just reading a CQ (start_poll): its slots may be read yet, and are lost. */
	if (!swept)
		return 0;
	rp_pool_free(&srq->pool);
	free(srq);
	return 0;
}

static int post_real(void *arg, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ibv_srq *real = arg;

	return real->context->ops.post_srq_recv(real, wr, bad);
}

int rp_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct rp_srq *srq = to_rp_srq(ibsrq);

	return rp_pool_post(&srq->pool, wr, bad, post_real, srq->real);
}

int rp_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad)
{
	(void)srq;
	*bad = op;
	return EOPNOTSUPP;	/* tag matching: see rp_create_srq_ex() */
}

struct ibv_xrcd *rp_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct rp_xrcd *x = calloc(1, sizeof(*x));
	int saved;

	if (!x)
		return NULL;
	rp_verbs_enter(ctx);
	x->real = RP_REAL(RP_SLOT(ctx, open_xrcd)(ctx->real, attr));
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

	rp_verbs_enter(ctx);
	ret = RP_REAL(RP_SLOT(ctx, close_xrcd)(real_xrcd(xrcd)));
	if (!ret)
		rp_unpin(ctx, RP_IMM_XRC);
	rp_verbs_leave(ctx);
	if (!ret)
		free(xrcd);
	return ret;
}
