// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory: gone with its device, so not moved. */
#include <stdlib.h>

#include "objects.h"

static struct ibv_dm *real_dm(struct ibv_dm *dm)
{
	return ((struct rp_dm *)dm)->real;
}

static int memcpy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
	return real_dm(dm)->memcpy_to_dm(real_dm(dm), offset, host, length);
}

static int memcpy_from_dm(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	return real_dm(dm)->memcpy_from_dm(host, real_dm(dm), offset, length);
}

static struct ibv_dm *wrap(struct rp_context *ctx, struct ibv_dm *real)
{
	struct rp_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->real = real;
	dm->dm.context = &ctx->vctx.context;
	dm->dm.comp_mask = real->comp_mask;
	dm->dm.handle = real->handle;
	dm->dm.memcpy_to_dm = real->memcpy_to_dm ? memcpy_to_dm : NULL;
	dm->dm.memcpy_from_dm = real->memcpy_from_dm ? memcpy_from_dm : NULL;
	rp_pin(ctx, RP_IMM_DM);
	return &dm->dm;
}

struct ibv_dm *rp_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct ibv_dm *real, *ret = NULL;

	real = rp_verbs_enter(ctx) ? RP_REAL(RP_SLOT(ctx, alloc_dm)(ctx->real, attr)) : NULL;
	if (real) {
		ret = wrap(ctx, real);
		if (!ret)
			RP_REAL(RP_SLOT(ctx, free_dm)(real));
	}
	rp_verbs_leave(ctx);
	return ret;
}

int rp_free_dm(struct ibv_dm *dm)
{
	struct rp_context *ctx = to_rp_context(dm->context);
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, free_dm)(real_dm(dm)));
	if (!ret)
		rp_unpin(ctx, RP_IMM_DM);
	rp_verbs_leave(ctx);
	if (!ret)
		free(dm);
	return ret;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct rp_context *ctx = to_rp_context(context);
	struct ibv_dm *real, *ret = NULL;

	if (RP_PASSING)
		return rp_real.ibv_import_dm(context, handle);
	real = rp_verbs_enter(ctx) ? RP_REAL(rp_real.ibv_import_dm(ctx->real, handle)) : NULL;
	if (real) {
		ret = wrap(ctx, real);
		if (!ret)
			RP_REAL_VOID(rp_real.ibv_unimport_dm(real));
	}
	rp_verbs_leave(ctx);
	return ret;
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	struct rp_context *ctx = to_rp_context(dm->context);

	if (RP_PASSING) {
		rp_real.ibv_unimport_dm(dm);
		return;
	}
	if (!rp_verbs_enter(ctx)) {
		rp_verbs_leave(ctx);
		return;
	}
	RP_REAL_VOID(rp_real.ibv_unimport_dm(real_dm(dm)));
	rp_unpin(ctx, RP_IMM_DM);
	rp_verbs_leave(ctx);
	free(dm);
}
