// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Address handles: of UD queue pairs, which are not moved in this release. */
#include <stdlib.h>

#include "objects.h"

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr a = *attr;
	struct rp_context *ctx;
	struct rp_ah *ah;
	int saved;

	if (RP_PASSING)
		return rp_real.ibv_create_ah(pd, attr);
	ctx = to_rp_context(pd->context);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	rp_verbs_enter(ctx);
	if (a.is_global)
		a.grh.sgid_index = rp_real_sgid(ctx, a.port_num, a.grh.sgid_index);
	ah->real = RP_REAL(rp_real.ibv_create_ah(real_pd(pd), &a));
	if (ah->real)
		rp_pin(ctx, RP_IMM_AH);
	rp_verbs_leave(ctx);
	if (ah->real) {
		ah->ah.context = pd->context;
		ah->ah.pd = pd;
		ah->ah.handle = ah->real->handle;
		return &ah->ah;
	}
	saved = errno;
	free(ah);
	errno = saved;
	return NULL;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port)
{
	struct ibv_ah_attr attr;

	if (RP_PASSING)
		return rp_real.ibv_create_ah_from_wc(pd, wc, grh, port);
	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	struct rp_context *ctx;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_destroy_ah(ah);
	ctx = to_rp_context(ah->context);
	rp_verbs_enter(ctx);
	ret = RP_REAL(rp_real.ibv_destroy_ah(real_ah(ah)));
	if (!ret)
		rp_unpin(ctx, RP_IMM_AH);
	rp_verbs_leave(ctx);
	if (!ret)
		free(ah);
	return ret;
}
