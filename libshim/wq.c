// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work queues and their indirection tables: not moved in this release. */
#include <stdlib.h>

#include "pool.h"

static int post_real(void *owner, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ibv_wq *real = ((struct rp_wq *)owner)->real;

	return real->post_recv(real, wr, bad);
}

static int post_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct rp_wq *wq = (struct rp_wq *)ibwq;

	return rp_pool_post(&wq->pool, wr, bad);
}

struct ibv_wq *rp_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct ibv_wq_init_attr a = *attr;
	struct rp_wq *wq = calloc(1, sizeof(*wq));
	int saved;

	if (!wq)
		return NULL;
	a.wq_context = wq;
	a.pd = real_pd(attr->pd);
	a.cq = real_cq(attr->cq);
	wq->real = rp_verbs_enter(ctx) ? RP_REAL(RP_SLOT(ctx, create_wq)(ctx->real, &a)) : NULL;
	if (!wq->real) {
		rp_verbs_leave(ctx);
		saved = errno;
		free(wq);
		errno = saved;
		return NULL;
	}
	rp_pin(ctx, RP_IMM_WQ);
	/* ibv_create_wq() does this for the handle that it gets from us, not for the real one. */
	wq->real->wq_context = wq;
	wq->real->events_completed = 0;
	pthread_mutex_init(&wq->real->mutex, NULL);
	pthread_cond_init(&wq->real->cond, NULL);
	attr->max_wr = a.max_wr;
	attr->max_sge = a.max_sge;
	wq->wq = *wq->real;
	wq->wq.context = context;
	wq->wq.pd = attr->pd;
	wq->wq.cq = attr->cq;
	wq->wq.post_recv = wq->real->post_recv ? post_recv : NULL;
	rp_pool_init(&wq->pool, ctx, a.max_sge, post_real, wq);
	rp_link(ctx, &ctx->wqs, &wq->node);
	rp_verbs_leave(ctx);
	return &wq->wq;
}

int rp_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
	struct rp_context *ctx = to_rp_context(ibwq->context);
	struct rp_wq *wq = (struct rp_wq *)ibwq;
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, modify_wq)(wq->real, attr));
	ibwq->state = wq->real->state;
	rp_verbs_leave(ctx);
	return ret;
}

int rp_destroy_wq(struct ibv_wq *ibwq)
{
	struct rp_context *ctx = to_rp_context(ibwq->context);
	struct rp_wq *wq = (struct rp_wq *)ibwq;
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	rp_cq_sweep(to_rp_cq(ibwq->cq));
	ret = RP_REAL(RP_SLOT(ctx, destroy_wq)(wq->real));
	if (!ret) {
		rp_unlink(ctx, &wq->node);
		rp_cq_sweep(to_rp_cq(ibwq->cq));
		rp_async_forget(ctx, ibwq);
		rp_unpin(ctx, RP_IMM_WQ);
	}
	rp_verbs_leave(ctx);
	if (ret)
		return ret;
	rp_wait_acked(&ibwq->mutex, &ibwq->cond, &wq->async_events_unacked);
	rp_pool_free(&wq->pool);
	free(wq);
	return 0;
}

struct ibv_rwq_ind_table *rp_create_rwq_ind_table(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct ibv_rwq_ind_table_init_attr a = *attr;
	struct rp_rwq_ind_table *t = calloc(1, sizeof(*t));
	size_t i, n = attr->log_ind_tbl_size < 32 ? (size_t)1 << attr->log_ind_tbl_size : 0;
	int saved = ENOMEM;

	a.ind_tbl = calloc(n ? n : 1, sizeof(*a.ind_tbl));
	if (!t || !a.ind_tbl)
		goto err;
	for (i = 0; i < n; i++)
		a.ind_tbl[i] = attr->ind_tbl[i] ? ((struct rp_wq *)attr->ind_tbl[i])->real : NULL;
	t->real = rp_verbs_enter(ctx) ? RP_REAL(RP_SLOT(ctx, create_rwq_ind_table)(ctx->real, &a)) : NULL;
	if (t->real)
		rp_pin(ctx, RP_IMM_WQ);
	rp_verbs_leave(ctx);
	if (t->real) {
		t->tbl = *t->real;
		t->tbl.context = context;
		free(a.ind_tbl);
		return &t->tbl;
	}
	saved = errno;
err:
	free(a.ind_tbl);
	free(t);
	errno = saved;
	return NULL;
}

int rp_destroy_rwq_ind_table(struct ibv_rwq_ind_table *tbl)
{
	struct rp_context *ctx = to_rp_context(tbl->context);
	struct rp_rwq_ind_table *t = (struct rp_rwq_ind_table *)tbl;
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, destroy_rwq_ind_table)(t->real));
	if (!ret)
		rp_unpin(ctx, RP_IMM_WQ);
	rp_verbs_leave(ctx);
	if (!ret)
		free(t);
	return ret;
}
