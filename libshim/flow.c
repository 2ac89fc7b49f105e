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
	rp_verbs_enter(ctx);
	c->real = RP_REAL(RP_SLOT(ctx, create_counters)(ctx->real, attr));
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

	rp_verbs_enter(ctx);
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

	rp_verbs_enter(ctx);
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

	rp_verbs_enter(ctx);
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
	rp_verbs_enter(ctx);
	a->real = RP_REAL(RP_SLOT(ctx, create_flow_action_esp)(ctx->real, attr));
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

	rp_verbs_enter(ctx);
	ret = RP_REAL(RP_SLOT(ctx, modify_flow_action_esp)(real_action(action), attr));
	rp_verbs_leave(ctx);
	return ret;
}

int rp_destroy_flow_action(struct ibv_flow_action *action)
{
	struct rp_context *ctx = to_rp_context(action->context);
	int ret;

	rp_verbs_enter(ctx);
	ret = RP_REAL(RP_SLOT(ctx, destroy_flow_action)(real_action(action)));
	if (!ret)
		rp_unpin(ctx, RP_IMM_FLOW);
	rp_verbs_leave(ctx);
	if (!ret)
		free(action);
	return ret;
}

/* Rules: a fixed part and specifications behind it, two of which carry handles. */

static bool has_handles(const struct ibv_flow_attr *attr)
{
	const char *at = (const char *)(attr + 1), *end = (const char *)attr + attr->size;
	int i;

	for (i = 0; i < attr->num_of_specs && at + sizeof(struct ibv_flow_spec_action_drop) <= end;
	     i++) {
		const struct ibv_flow_spec *spec = (const void *)at;

		if (spec->hdr.type == IBV_FLOW_SPEC_ACTION_HANDLE ||
		    spec->hdr.type == IBV_FLOW_SPEC_ACTION_COUNT)
			return true;
		if (!spec->hdr.size)
			break;
		at += spec->hdr.size;
	}
	return false;
}

static void unwrap(struct ibv_flow_attr *attr)
{
	char *at = (char *)(attr + 1), *end = (char *)attr + attr->size;
	int i;

	for (i = 0; i < attr->num_of_specs && at + sizeof(struct ibv_flow_spec_action_drop) <= end;
	     i++) {
		struct ibv_flow_spec *spec = (void *)at;

		if (spec->hdr.type == IBV_FLOW_SPEC_ACTION_HANDLE)
			spec->handle.action = real_action(spec->handle.action);
		else if (spec->hdr.type == IBV_FLOW_SPEC_ACTION_COUNT)
			spec->flow_count.counters = real_counters(spec->flow_count.counters);
		if (!spec->hdr.size)
			break;
		at += spec->hdr.size;
	}
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
	if (attr->size >= sizeof(*attr) && has_handles(attr)) {
		a = malloc(attr->size);
		if (!a) {
			free(flow);
			return NULL;
		}
		memcpy(a, attr, attr->size);
		unwrap(a);
	}
	rp_verbs_enter(ctx);
	flow->real = RP_REAL(RP_SLOT(ctx, ibv_create_flow)(to_rp_qp(ibqp)->real, a));
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

	rp_verbs_enter(ctx);
	ret = RP_REAL(RP_SLOT(ctx, ibv_destroy_flow)(flow->real));
	if (!ret)
		rp_unpin(ctx, RP_IMM_FLOW);
	rp_verbs_leave(ctx);
	if (!ret)
		free(flow);
	return ret;
}
