// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Flow rules, flow actions and counters: not moved in this release. */
#include <stdlib.h>
#include <string.h>

#include "objects.h"

/* Counters */

struct ibv_counters *rp_create_counters(struct ibv_context *context,
					struct ibv_counters_init_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct rp_counters_obj *c = calloc(1, sizeof(*c));
	int saved;

	if (!c)
		return NULL;
	c->real = rp_verbs_enter(ctx) ? RP_REAL(RP_SLOT(ctx, create_counters)(ctx->real, attr)) : NULL;
	if (c->real)
		rp_pin(ctx, RP_IMM_COUNTERS);
	rp_verbs_leave(ctx);
	if (c->real) {
		c->counters.context = context;
		return &c->counters;
	}
	saved = errno;
	free(c);
	errno = saved;
	return NULL;
}

static struct ibv_counters *real_counters(struct ibv_counters *c)
{
	return c ? ((struct rp_counters_obj *)c)->real : NULL;
}

int rp_destroy_counters(struct ibv_counters *counters)
{
	struct rp_context *ctx = to_rp_context(counters->context);
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, destroy_counters)(real_counters(counters)));
	if (!ret)
		rp_unpin(ctx, RP_IMM_COUNTERS);
	rp_verbs_leave(ctx);
	if (!ret)
		free(counters);
	return ret;
}

int rp_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n, uint32_t flags)
{
	struct rp_context *ctx = to_rp_context(counters->context);
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, read_counters)(real_counters(counters), values, n, flags));
	rp_verbs_leave(ctx);
	return ret;
}

int rp_attach_counters_point_flow(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	struct rp_context *ctx = to_rp_context(counters->context);
	struct ibv_flow *real = flow ? ((struct rp_flow *)flow)->real : NULL;
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, attach_counters_point_flow)(real_counters(counters), attr,
							       real));
	rp_verbs_leave(ctx);
	return ret;
}

/* Actions */

struct ibv_flow_action *rp_create_flow_action_esp(struct ibv_context *context,
						  struct ibv_flow_action_esp_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct rp_flow_action *a = calloc(1, sizeof(*a));
	int saved;

	if (!a)
		return NULL;
	a->real = rp_verbs_enter(ctx) ? RP_REAL(RP_SLOT(ctx, create_flow_action_esp)(ctx->real, attr)) : NULL;
	if (a->real)
		rp_pin(ctx, RP_IMM_FLOW);
	rp_verbs_leave(ctx);
	if (a->real) {
		a->action.context = context;
		return &a->action;
	}
	saved = errno;
	free(a);
	errno = saved;
	return NULL;
}

static struct ibv_flow_action *real_action(const struct ibv_flow_action *a)
{
	return a ? ((const struct rp_flow_action *)a)->real : NULL;
}

int rp_modify_flow_action_esp(struct ibv_flow_action *action,
			      struct ibv_flow_action_esp_attr *attr)
{
	struct rp_context *ctx = to_rp_context(action->context);
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, modify_flow_action_esp)(real_action(action), attr));
	rp_verbs_leave(ctx);
	return ret;
}

int rp_destroy_flow_action(struct ibv_flow_action *action)
{
	struct rp_context *ctx = to_rp_context(action->context);
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, destroy_flow_action)(real_action(action)));
	if (!ret)
		rp_unpin(ctx, RP_IMM_FLOW);
	rp_verbs_leave(ctx);
	if (!ret)
		free(action);
	return ret;
}

/*
 * Rules: a fixed part and specifications behind it, two of which carry handles. These become real ones
 * in @to, a copy, if there is one. Returns whether there are any. Nothing behind the fixed part, of 20
 * bytes, is aligned as it would like.
 */
static bool unwrap(const struct ibv_flow_attr *attr, char *to)
{
	const char *from = (const char *)attr;
	size_t at = sizeof(*attr);
	bool any = false;
	int i;

	for (i = 0; i < attr->num_of_specs; i++) {
		struct ibv_flow_spec_action_handle handle;
		struct ibv_flow_spec_counter_action count;
		struct ibv_flow_spec_action_drop head;

		if (at + sizeof(head) > attr->size)
			break;
		memcpy(&head, from + at, sizeof(head));
		if (head.type == IBV_FLOW_SPEC_ACTION_HANDLE && at + sizeof(handle) <= attr->size) {
			memcpy(&handle, from + at, sizeof(handle));
			handle.action = real_action(handle.action);
			if (to)
				memcpy(to + at, &handle, sizeof(handle));
			any = true;
		} else if (head.type == IBV_FLOW_SPEC_ACTION_COUNT &&
			   at + sizeof(count) <= attr->size) {
			memcpy(&count, from + at, sizeof(count));
			count.counters = real_counters(count.counters);
			if (to)
				memcpy(to + at, &count, sizeof(count));
			any = true;
		}
		if (!head.size)
			break;
		at += head.size;
	}
	return any;
}

struct ibv_flow *rp_create_flow(struct ibv_qp *ibqp, struct ibv_flow_attr *attr)
{
	struct rp_context *ctx = to_rp_context(ibqp->context);
	struct rp_flow *flow = calloc(1, sizeof(*flow));
	struct ibv_flow_attr *a = attr;
	int saved;

	if (!flow)
		return NULL;
	/* Programs of old set no total size; they know no specifications with handles either. */
	if (attr->size >= sizeof(*attr) && unwrap(attr, NULL)) {
		a = malloc(attr->size);
		if (!a) {
			free(flow);
			return NULL;
		}
		memcpy(a, attr, attr->size);
		unwrap(attr, (char *)a);
	}
	flow->real = rp_verbs_enter(ctx) ? RP_REAL(RP_SLOT(ctx, ibv_create_flow)(to_rp_qp(ibqp)->real, a)) : NULL;
	if (flow->real)
		rp_pin(ctx, RP_IMM_FLOW);
	rp_verbs_leave(ctx);
	saved = errno;
	if (a != attr)
		free(a);
	if (flow->real) {
		flow->flow = *flow->real;
		flow->flow.context = ibqp->context;
		return &flow->flow;
	}
	free(flow);
	errno = saved;
	return NULL;
}

int rp_destroy_flow(struct ibv_flow *ibflow)
{
	struct rp_context *ctx = to_rp_context(ibflow->context);
	struct rp_flow *flow = (struct rp_flow *)ibflow;
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_SLOT(ctx, ibv_destroy_flow)(flow->real));
	if (!ret)
		rp_unpin(ctx, RP_IMM_FLOW);
	rp_verbs_leave(ctx);
	if (!ret)
		free(flow);
	return ret;
}
