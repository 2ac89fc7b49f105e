// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>

#include "mock_state.h"

/* The verbs that rxe has, and more that can be moved. */
void mock_fill_context(struct mock_context *c)
{
	struct verbs_context *v = &c->vctx;
	struct ibv_context *ctx = &v->context;
	bool null = mock.null_mode;

	v->sz = sizeof(*v);
	v->query_port = mock_query_port;
	v->query_device_ex = mock_query_device_ex;
	v->query_rt_values = mock_query_rt_values;
	v->create_qp_ex = mock_create_qp_ex;
	v->create_cq_ex = mock_create_cq_ex;
	v->create_srq_ex = mock_create_srq_ex;
	v->get_srq_num = mock_get_srq_num;
	v->alloc_td = mock_alloc_td;
	v->dealloc_td = mock_dealloc_td;
	v->alloc_parent_domain = mock_alloc_parent_domain;
	v->alloc_null_mr = mock_alloc_null_mr;
	v->advise_mr = mock_advise_mr;
	v->modify_cq = mock_modify_cq;
	v->alloc_dm = mock_alloc_dm;
	v->free_dm = mock_free_dm;
	v->reg_dm_mr = mock_reg_dm_mr;
	v->open_xrcd = mock_open_xrcd;
	v->close_xrcd = mock_close_xrcd;
	v->open_qp = mock_open_qp;
	v->create_wq = mock_create_wq;
	v->modify_wq = mock_modify_wq;
	v->destroy_wq = mock_destroy_wq;
	v->create_rwq_ind_table = mock_create_rwq_ind_table;
	v->destroy_rwq_ind_table = mock_destroy_rwq_ind_table;
	v->create_counters = mock_create_counters;
	v->destroy_counters = mock_destroy_counters;
	v->attach_counters_point_flow = mock_attach_counters;
	v->read_counters = mock_read_counters;
	v->create_flow_action_esp = mock_create_action;
	v->modify_flow_action_esp = mock_modify_action;
	v->destroy_flow_action = mock_destroy_action;
	v->ibv_create_flow = mock_create_flow;
	v->ibv_destroy_flow = mock_destroy_flow;
	v->modify_qp_rate_limit = mock_modify_qp_rate_limit;
#define DROP(name) v->name = c->device->without & MOCK_WITHOUT(name) ? NULL : v->name;
	MOCK_SLOTS(DROP)
#undef DROP

	ctx->device = &c->device->dev;
	/* Some device that nobody else has open. */
	ctx->cmd_fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	ctx->async_fd = c->events.pipe[0];
	ctx->num_comp_vectors = 1;
	ctx->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&ctx->mutex, NULL);
	ctx->ops._compat_query_device = ibv_query_device;
	ctx->ops._compat_query_port = ibv_query_port;
	ctx->ops.alloc_mw = mock_alloc_mw;
	ctx->ops.bind_mw = mock_bind_mw;
	ctx->ops.dealloc_mw = mock_dealloc_mw;
	ctx->ops.poll_cq = null ? mock_null_poll_cq : mock_poll_cq;
	ctx->ops.req_notify_cq = mock_req_notify_cq;
	ctx->ops.post_srq_recv = mock_post_srq_recv;
	ctx->ops.post_send = null ? mock_null_post_send : mock_post_send;
	ctx->ops.post_recv = null ? mock_null_post_recv : mock_post_recv;
#define DROP(name) ctx->ops.name = c->device->without & MOCK_WITHOUT(name) ? NULL : ctx->ops.name;
	MOCK_OPS(DROP)
#undef DROP
}
