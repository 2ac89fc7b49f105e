// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains, parent domains and thread domains. */
#include <stdlib.h>

#include "objects.h"

struct parent_domain {
	struct rp_pd pd;
	struct ibv_parent_domain_init_attr attr;	/* the application's */
};

static struct ibv_pd *wrap(struct rp_context *ctx, struct rp_pd *pd, struct ibv_pd *real)
{
	pd->pd.context = &ctx->vctx.context;
	pd->pd.handle = real->handle;
	pd->real = real;
	rp_link(ctx, &ctx->pds, &pd->node);
	return &pd->pd;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct rp_context *ctx = to_rp_context(context);
	struct ibv_pd *real, *ret = NULL;
	struct rp_pd *pd;

	if (RP_PASSING)
		return rp_real.ibv_alloc_pd(context);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	real = rp_verbs_enter(ctx) ? RP_REAL(rp_real.ibv_alloc_pd(ctx->real)) : NULL;
	if (real)
		ret = wrap(ctx, pd, real);
	rp_verbs_leave(ctx);
	if (!ret) {
		int saved = errno;

		free(pd);
		errno = saved;
	}
	return ret;
}

static int dealloc(struct ibv_pd *ibpd)
{
	struct rp_context *ctx = to_rp_context(ibpd->context);
	struct rp_pd *pd = to_rp_pd(ibpd);
	int ret;

	ret = rp_verbs_enter(ctx) ? RP_REAL(rp_real.ibv_dealloc_pd(pd->real)) : ENODEV;
	if (!ret)
		rp_unlink(ctx, &pd->node);
	rp_verbs_leave(ctx);
	if (!ret)
		free(pd);
	return ret;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return RP_PASSING ? rp_real.ibv_dealloc_pd(pd) : dealloc(pd);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct rp_context *ctx = to_rp_context(context);
	struct ibv_pd *real, *ret = NULL;
	struct rp_pd *pd;

	if (RP_PASSING)
		return rp_real.ibv_import_pd(context, handle);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	real = rp_verbs_enter(ctx) ? RP_REAL(rp_real.ibv_import_pd(ctx->real, handle)) : NULL;
	if (real) {
		rp_pin(ctx, RP_IMM_IMPORTED);
		ret = wrap(ctx, pd, real);
	}
	rp_verbs_leave(ctx);
	if (!ret) {
		int saved = errno;

		free(pd);
		errno = saved;
	}
	return ret;
}

void ibv_unimport_pd(struct ibv_pd *ibpd)
{
	struct rp_context *ctx = to_rp_context(ibpd->context);
	struct rp_pd *pd = to_rp_pd(ibpd);

	if (RP_PASSING) {
		rp_real.ibv_unimport_pd(ibpd);
		return;
	}
	if (!rp_verbs_enter(ctx)) {
		rp_verbs_leave(ctx);
		return;
	}
	rp_unlink(ctx, &pd->node);
	RP_REAL_VOID(rp_real.ibv_unimport_pd(pd->real));
	rp_unpin(ctx, RP_IMM_IMPORTED);
	rp_verbs_leave(ctx);
	free(pd);
}

/* The provider calls back from within a verb, and the application may use verbs of its own then. */
static void *parent_alloc(struct ibv_pd *real, void *arg, size_t size, size_t align, uint64_t type)
{
	struct parent_domain *p = arg;
	int depth = rp_depth;
	void *ret;

	(void)real;
	rp_depth = 0;
	ret = p->attr.alloc(&p->pd.pd, p->attr.pd_context, size, align, type);
	rp_depth = depth;
	return ret;
}

static void parent_free(struct ibv_pd *real, void *arg, void *ptr, uint64_t type)
{
	struct parent_domain *p = arg;
	int depth = rp_depth;

	(void)real;
	rp_depth = 0;
	p->attr.free(&p->pd.pd, p->attr.pd_context, ptr, type);
	rp_depth = depth;
}

static struct ibv_pd *parent_real(struct parent_domain *p)
{
	struct rp_context *ctx = to_rp_context(p->pd.pd.context);
	struct ibv_parent_domain_init_attr a = p->attr;

	a.pd = real_pd(a.pd);
	a.td = real_td(a.td);
	if (a.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		a.alloc = a.alloc ? parent_alloc : NULL;
		a.free = a.free ? parent_free : NULL;
		a.comp_mask |= IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	}
	a.pd_context = p;
	if (RP_HAS_SLOT(ctx, alloc_parent_domain))
		return RP_REAL(RP_SLOT(ctx, alloc_parent_domain)(ctx->real, &a));
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_pd *rp_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct parent_domain *p = calloc(1, sizeof(*p));
	struct ibv_pd *real, *ret = NULL;

	if (!p)
		return NULL;
	p->attr = *attr;
	p->pd.kind = RP_PD_PARENT;
	p->pd.pd.context = context;
	real = rp_verbs_enter(ctx) ? parent_real(p) : NULL;
	if (real)
		ret = wrap(ctx, &p->pd, real);
	rp_verbs_leave(ctx);
	if (!ret) {
		int saved = errno;

		free(p);
		errno = saved;
	}
	return ret;
}

struct ibv_td *rp_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct rp_td *td = calloc(1, sizeof(*td));
	int saved, ret;

	if (!td)
		return NULL;
	td->attr = *attr;
	td->td.context = context;
	ret = rp_verbs_enter(ctx) ? rp_td_recreate(td) : -ENODEV;
	if (!ret)
		rp_link(ctx, &ctx->tds, &td->node);
	rp_verbs_leave(ctx);
	if (!ret)
		return &td->td;
	saved = -ret;
	free(td);
	errno = saved;
	return NULL;
}

int rp_dealloc_td(struct ibv_td *ibtd)
{
	struct rp_context *ctx = to_rp_context(ibtd->context);
	struct rp_td *td = (struct rp_td *)ibtd;
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, dealloc_td)(td->real));
	if (!ret)
		rp_unlink(ctx, &td->node);
	rp_verbs_leave(ctx);
	if (!ret)
		free(td);
	return ret;
}

int rp_pd_release(struct rp_pd *pd)
{
	int ret = RP_REAL(rp_real.ibv_dealloc_pd(pd->real));

	if (ret)
		return -ret;
	pd->real = NULL;
	return 0;
}

int rp_pd_recreate(struct rp_pd *pd)
{
	if (pd->kind == RP_PD_PARENT)	/* its parts are older, and so in the list before it */
		pd->real = parent_real((struct parent_domain *)pd);
	else
		pd->real = RP_REAL(rp_real.ibv_alloc_pd(to_rp_context(pd->pd.context)->real));
	if (!pd->real)
		return rp_minus_errno();
	pd->pd.handle = pd->real->handle;	/* others import it by that */
	return 0;
}

int rp_td_release(struct rp_td *td)
{
	struct rp_context *ctx = to_rp_context(td->td.context);
	int ret = RP_REAL(RP_SLOT(ctx, dealloc_td)(td->real));

	if (ret)
		return -ret;
	td->real = NULL;
	return 0;
}

int rp_td_recreate(struct rp_td *td)
{
	struct rp_context *ctx = to_rp_context(td->td.context);

	if (!RP_HAS_SLOT(ctx, alloc_td))
		return -EOPNOTSUPP;
	td->real = RP_REAL(RP_SLOT(ctx, alloc_td)(ctx->real, &td->attr));
	return td->real ? 0 : rp_minus_errno();
}
