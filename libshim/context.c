// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "keys.h"
#include "ud.h"

struct rp_lock rp_contexts_lock;
struct list_head rp_contexts = { { &rp_contexts.n, &rp_contexts.n } };

/* Every entry for which the real context has one. */
static void fill(struct rp_context *ctx, struct ibv_context *real)
{
	struct verbs_context *v = &ctx->vctx;
	struct ibv_context_ops *ops = &v->context.ops;

#define SLOT(op, fn) do { if (verbs_get_ctx_op(real, op)) v->op = fn; } while (0)
	SLOT(query_port, rp_query_port);
	SLOT(advise_mr, rp_advise_mr);
	SLOT(alloc_null_mr, rp_alloc_null_mr);
	SLOT(read_counters, rp_read_counters);
	SLOT(attach_counters_point_flow, rp_attach_counters_point_flow);
	SLOT(create_counters, rp_create_counters);
	SLOT(destroy_counters, rp_destroy_counters);
	SLOT(reg_dm_mr, rp_reg_dm_mr);
	SLOT(alloc_dm, rp_alloc_dm);
	SLOT(free_dm, rp_free_dm);
	SLOT(modify_flow_action_esp, rp_modify_flow_action_esp);
	SLOT(destroy_flow_action, rp_destroy_flow_action);
	SLOT(create_flow_action_esp, rp_create_flow_action_esp);
	SLOT(modify_qp_rate_limit, rp_modify_qp_rate_limit);
	SLOT(alloc_parent_domain, rp_alloc_parent_domain);
	SLOT(dealloc_td, rp_dealloc_td);
	SLOT(alloc_td, rp_alloc_td);
	SLOT(modify_cq, rp_modify_cq);
	SLOT(post_srq_ops, rp_post_srq_ops);
	SLOT(destroy_rwq_ind_table, rp_destroy_rwq_ind_table);
	SLOT(create_rwq_ind_table, rp_create_rwq_ind_table);
	SLOT(destroy_wq, rp_destroy_wq);
	SLOT(modify_wq, rp_modify_wq);
	SLOT(create_wq, rp_create_wq);
	SLOT(query_rt_values, rp_query_rt_values);
	SLOT(create_cq_ex, rp_create_cq_ex);
	SLOT(query_device_ex, rp_query_device_ex);
	SLOT(ibv_destroy_flow, rp_destroy_flow);
	SLOT(ibv_create_flow, rp_create_flow);
	SLOT(open_qp, rp_open_qp);
	SLOT(create_qp_ex, rp_create_qp_ex);
	SLOT(get_srq_num, rp_get_srq_num);
	SLOT(create_srq_ex, rp_create_srq_ex);
	SLOT(open_xrcd, rp_open_xrcd);
	SLOT(close_xrcd, rp_close_xrcd);
#undef SLOT
	/* Programs built against libibverbs 1.1.8 find the flow verbs here. */
	v->ABI_placeholder1 = (void (*)(void))v->ibv_create_flow;
	v->ABI_placeholder2 = (void (*)(void))v->ibv_destroy_flow;

	ops->_compat_query_device = ibv_query_device;
	ops->_compat_query_port = ibv_query_port;
#define OP(op) (ops->op = real->ops.op ? rp_##op : NULL)
	OP(alloc_mw);
	OP(bind_mw);
	OP(dealloc_mw);
	OP(poll_cq);
	OP(req_notify_cq);
	OP(post_srq_recv);
	OP(post_send);
	OP(post_recv);
#undef OP
}

/* What depends on which device is behind. */
static int adopt(struct rp_context *ctx, struct ibv_context *real)
{
	struct ibv_device_attr attr;

	if (RP_REAL(rp_real.ibv_query_device(real, &attr)))
		return rp_minus_errno();
	ctx->limits = attr;
	ctx->vctx.context.cmd_fd = real->cmd_fd;
	memcpy(ctx->name, real->device->name, sizeof(ctx->name));
	ctx->dev_index = RP_REAL(rp_real.ibv_get_device_index(real->device));
	return 0;
}

static struct ibv_context *wrap(struct rp_device *dev, struct ibv_context *real)
{
	struct rp_context *ctx = calloc(1, sizeof(*ctx));
	int ret = -ENOMEM;

	if (!ctx)
		goto err;
	ctx->vctx.sz = sizeof(ctx->vctx);
	ctx->vctx.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	ctx->vctx.context.device = &dev->dev;
	ctx->vctx.context.num_comp_vectors = real->num_comp_vectors;
	pthread_mutex_init(&ctx->vctx.context.mutex, NULL);
	pthread_rwlock_init(&ctx->verbs, NULL);
	pthread_mutex_init(&ctx->async_lock, NULL);
	pthread_cond_init(&ctx->async_acked, NULL);
	list_init(&ctx->tds);
	list_init(&ctx->pds);
	list_init(&ctx->mrs);
	list_init(&ctx->channels);
	list_init(&ctx->cqs);
	list_init(&ctx->qps);
	list_init(&ctx->srqs);
	list_init(&ctx->wqs);
	list_init(&ctx->ahs);
	list_init(&ctx->ah_eras);
	list_init(&ctx->ah_tos);
	list_init(&ctx->mws);
	list_init(&ctx->removed_keys);
	list_init(&ctx->soft_async);
	fill(ctx, real);
	ret = adopt(ctx, real);
	ctx->limits_before = ctx->limits;
	if (!ret)
		ret = rp_evfd_open(&ctx->async, real->async_fd);
	if (ret)
		goto err;
	ctx->vctx.context.async_fd = ctx->async.epfd;
	ctx->device = dev;
	ctx->real = real;
	rp_lock(&rp_contexts_lock);
	list_add_tail(&rp_contexts, &ctx->node);
	rp_unlock(&rp_contexts_lock);
	return &ctx->vctx.context;
err:
	free(ctx);
	RP_REAL(rp_real.ibv_close_device(real));
	errno = -ret;
	return NULL;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct rp_device *dev = (struct rp_device *)device;
	struct ibv_context *real, *ret;

	if (RP_PASSING)
		return rp_real.ibv_open_device(device);
	rp_ctl_start();
	rp_move_wait_open(dev->dev.name);	/* else it would hold the device that is leaving */
	real = rp_device_open(dev);
	ret = real ? wrap(dev, real) : NULL;
	rp_move_open_end();
	return ret;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *real, *context;
	struct rp_device *dev;

	if (RP_PASSING)
		return rp_real.ibv_import_device(cmd_fd);
	real = RP_REAL(rp_real.ibv_import_device(cmd_fd));
	if (!real)
		return NULL;
	dev = rp_device_of(real->device);
	if (!dev) {
		RP_REAL(rp_real.ibv_close_device(real));
		errno = ENOMEM;
		return NULL;
	}
	context = wrap(dev, real);
	if (context)
		rp_pin(to_rp_context(context), RP_IMM_IMPORTED);
	return context;
}

/* On the control thread, so that it is not in the middle of something with the context. */
static void unlist(void *arg)
{
	struct rp_context *ctx = arg;

	rp_keys_context_gone(ctx);
	rp_lock(&rp_contexts_lock);
	list_del(&ctx->node);
	rp_unlock(&rp_contexts_lock);
}

int ibv_close_device(struct ibv_context *context)
{
	struct rp_context *ctx = to_rp_context(context);
	struct rp_qp *qp, *tmp;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_close_device(context);
	pthread_rwlock_wrlock(&ctx->verbs);	/* not while it is away */
	rp_move_close_begin();
	/* Queue pairs that the application forgot die with the device. */
	list_for_each_safe(qp, tmp, &ctx->qps, node) {
		rp_unlink(ctx, &qp->node);
		rp_peer_qp_gone(qp);
	}
	if (!rp_ctl_call(unlist, ctx))
		unlist(ctx);
	rp_evfd_detach(&ctx->async);
	/* A child of fork() has none where its parent's was away. */
	ret = ctx->real ? RP_REAL(rp_real.ibv_close_device(ctx->real)) : 0;
	rp_move_open_end();
	rp_evfd_close(&ctx->async);
	rp_async_free(ctx);
	rp_ahs_free(ctx);
	pthread_rwlock_unlock(&ctx->verbs);
	pthread_rwlock_destroy(&ctx->verbs);
	rp_keymap_free(ctx->lkeys);
	rp_gids_free(ctx);
	rp_pkeys_free(ctx);
	rp_keys_changes_free(ctx);
	free(ctx);
	return ret;
}

int rp_context_release(struct rp_context *ctx)
{
	int ret;

	pthread_mutex_lock(&ctx->async_lock);
	rp_evfd_detach(&ctx->async);
	ret = RP_REAL(rp_real.ibv_close_device(ctx->real));
	ctx->real = NULL;
	pthread_mutex_unlock(&ctx->async_lock);
	return ret ? rp_minus_errno() : 0;
}

int rp_context_recreate(struct rp_context *ctx, const char *name)
{
	struct ibv_device **list = RP_REAL(rp_real.ibv_get_device_list(NULL));
	struct ibv_context *real = NULL;
	int i, ret = -ENODEV;

	if (!list)
		return rp_minus_errno();
	for (i = 0; list[i]; i++)
		if (!strcmp(list[i]->name, name)) {
			real = RP_REAL(rp_real.ibv_open_device(list[i]));
			ret = real ? 0 : rp_minus_errno();
			break;
		}
	/* Who opens it again, by what he has kept of it, is to get this one. */
	rp_devices_hold(list);
	if (ret)
		return ret;
	ret = adopt(ctx, real);
	if (!ret)
		ret = rp_evfd_attach(&ctx->async, real->async_fd);
	if (ret) {
		RP_REAL(rp_real.ibv_close_device(real));
		return ret;
	}
	pthread_mutex_lock(&ctx->async_lock);
	ctx->real = real;
	pthread_mutex_unlock(&ctx->async_lock);
	return 0;
}
