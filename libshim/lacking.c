// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Verbs that a provider does not have. What the first device lacks the application never sees; another
 * one may lack more: it is refused where that is in use, and says so of the rest when it is called.
 */
#include <stdio.h>

#include "mw.h"
#include "recreate.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NO_POINTER(type, op, ...)	\
	static type no_##op(__VA_ARGS__) { errno = EOPNOTSUPP; return NULL; }
#define NO_INT(op, ...)			\
	static int no_##op(__VA_ARGS__) { return EOPNOTSUPP; }
NO_POINTER(struct ibv_td *, alloc_td, struct ibv_context *c, struct ibv_td_init_attr *a)
NO_POINTER(struct ibv_dm *, alloc_dm, struct ibv_context *c, struct ibv_alloc_dm_attr *a)
NO_POINTER(struct ibv_xrcd *, open_xrcd, struct ibv_context *c, struct ibv_xrcd_init_attr *a)
NO_POINTER(struct ibv_qp *, open_qp, struct ibv_context *c, struct ibv_qp_open_attr *a)
NO_POINTER(struct ibv_wq *, create_wq, struct ibv_context *c, struct ibv_wq_init_attr *a)
NO_POINTER(struct ibv_rwq_ind_table *, create_rwq_ind_table, struct ibv_context *c,
	   struct ibv_rwq_ind_table_init_attr *a)
NO_POINTER(struct ibv_counters *, create_counters, struct ibv_context *c,
	   struct ibv_counters_init_attr *a)
NO_POINTER(struct ibv_flow_action *, create_flow_action_esp, struct ibv_context *c,
	   struct ibv_flow_action_esp_attr *a)
NO_POINTER(struct ibv_flow *, ibv_create_flow, struct ibv_qp *qp, struct ibv_flow_attr *a)
NO_INT(modify_cq, struct ibv_cq *cq, struct ibv_modify_cq_attr *a)
NO_INT(modify_qp_rate_limit, struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *a)
NO_INT(advise_mr, struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
       struct ibv_sge *sg, uint32_t n)
NO_INT(get_srq_num, struct ibv_srq *srq, uint32_t *num)

/* Those that need an object which no move leaves behind, or can not do without, are not called. */
const struct verbs_context rp_lacking = {
	.alloc_td = no_alloc_td,
	.alloc_dm = no_alloc_dm,
	.open_xrcd = no_open_xrcd,
	.open_qp = no_open_qp,
	.create_wq = no_create_wq,
	.create_rwq_ind_table = no_create_rwq_ind_table,
	.create_counters = no_create_counters,
	.create_flow_action_esp = no_create_flow_action_esp,
	.ibv_create_flow = no_ibv_create_flow,
	.modify_cq = no_modify_cq,
	.modify_qp_rate_limit = no_modify_qp_rate_limit,
	.advise_mr = no_advise_mr,
	.get_srq_num = no_get_srq_num,
};

static int lacks(const struct rp_context *ctx, const char *verb, char *why, size_t room)
{
	snprintf(why, room, "%s has no ibv_%s(), which is in use; resume on a device that has it, or on the old one",
		 ctx->name, verb);
	rp_log(RP_LOG_ERR, "%s", why);
	return -EOPNOTSUPP;
}

/* Is there one in @list of which @that is true? */
#define ANY(type, list, that) ({					\
	struct rp_##type *it;						\
	bool any_ = false;						\
	list_for_each(it, &ctx->list, node)				\
		any_ |= (that);						\
	any_; })

int rp_lacking_check(struct rp_context *ctx, char *why, size_t room)
{
	const struct ibv_context_ops *has = &ctx->vctx.context.ops, *ops = &ctx->real->ops;

#define NEED(op, is_there, used)								\
	do {											\
		if (!(is_there) && (used))							\
			return lacks(ctx, #op, why, room);					\
	} while (0)
#define SLOT(op, used) NEED(op, RP_HAS_SLOT(ctx, op), used)
#define OP(op, used) NEED(op, ops->op || !has->op, used)
	SLOT(alloc_td, !list_empty(&ctx->tds));
	SLOT(dealloc_td, !list_empty(&ctx->tds));
	SLOT(alloc_parent_domain, ANY(pd, pds, it->kind == RP_PD_PARENT));
	SLOT(alloc_null_mr, ANY(mr, mrs, it->how == RP_MR_NULL));
	SLOT(create_cq_ex, ANY(cq, cqs, it->is_ex));
	SLOT(create_srq_ex, ANY(srq, srqs, it->ex));
	SLOT(create_qp_ex, ANY(qp, qps, it->ex));
	SLOT(modify_qp_rate_limit, ANY(qp, qps, it->pace.rate_limit));
	OP(req_notify_cq, ANY(cq, cqs, rp_cq_armed(it) != RP_ARMED_NOT));
	OP(post_srq_recv, !list_empty(&ctx->srqs));
	OP(alloc_mw, !list_empty(&ctx->mws));
	OP(dealloc_mw, !list_empty(&ctx->mws));
	OP(bind_mw, ANY(mw, mws, it->mw.type == IBV_MW_TYPE_1));
#undef NEED
#undef SLOT
#undef OP
	return 0;
}
