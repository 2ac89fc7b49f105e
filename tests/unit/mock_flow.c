// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Flow rules that nothing is steered by, their actions and counters. */
#include "mock_state.h"

struct mock_counters {
	struct ibv_counters counters;
	int users;
	uint64_t points;
};

struct mock_action {
	struct ibv_flow_action action;
	int users;
	uint32_t esn;
};

struct mock_flow {
	struct ibv_flow flow;
	struct mock_counters *counters;
	struct mock_action *action;
};

static void live(int n)
{
	mock_lock();
	mock.live[MOCK_FIXED] += n;
	mock_unlock();
}

/* Frees @object, unless it has users. */
static int gone(void *object, const int *users)
{
	int ret;

	mock_lock();
	ret = users && *users ? EBUSY : 0;
	mock.live[MOCK_FIXED] -= !ret;
	mock_unlock();
	if (!ret)
		free(object);
	return ret;
}

struct ibv_counters *mock_create_counters(struct ibv_context *c,
					  struct ibv_counters_init_attr *attr)
{
	struct mock_counters *k;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	k = mock_zalloc(sizeof(*k));
	k->counters.context = c;
	live(1);
	return &k->counters;
}

int mock_destroy_counters(struct ibv_counters *counters)
{
	return gone(counters, &((struct mock_counters *)counters)->users);
}

int mock_attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
			 struct ibv_flow *flow)
{
	if (flow && flow->context != counters->context)
		return EINVAL;
	((struct mock_counters *)counters)->points |= 1ull << attr->index;
	return 0;
}

/* What is attached to a point has counted the place where it stands. */
int mock_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n, uint32_t flags)
{
	uint32_t i;

	(void)flags;
	for (i = 0; i < n; i++)
		values[i] = ((struct mock_counters *)counters)->points >> i & 1 ? i + 1 : 0;
	return 0;
}

struct ibv_flow_action *mock_create_action(struct ibv_context *c,
					   struct ibv_flow_action_esp_attr *attr)
{
	struct mock_action *a = mock_zalloc(sizeof(*a));

	a->action.context = c;
	a->esn = attr->esn;
	live(1);
	return &a->action;
}

int mock_modify_action(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *attr)
{
	((struct mock_action *)action)->esn = attr->esn;
	return 0;
}

int mock_destroy_action(struct ibv_flow_action *action)
{
	return gone(action, &((struct mock_action *)action)->users);
}

struct ibv_flow *mock_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	char *at = (char *)(attr + 1);
	struct mock_flow *f;
	int i;

	if (qp->qp_type != IBV_QPT_RAW_PACKET && qp->qp_type != IBV_QPT_UD) {
		errno = EINVAL;
		return NULL;
	}
	f = mock_zalloc(sizeof(*f));
	f->flow.context = qp->context;
	for (i = 0; i < attr->num_of_specs; i++) {
		struct ibv_flow_spec spec;

		memcpy(&spec, at, sizeof(spec.handle));
		if (spec.hdr.type == IBV_FLOW_SPEC_ACTION_HANDLE)
			f->action = (struct mock_action *)spec.handle.action;
		else if (spec.hdr.type == IBV_FLOW_SPEC_ACTION_COUNT)
			f->counters = (struct mock_counters *)spec.flow_count.counters;
		at += spec.hdr.size;
	}
	/* Another context's are those of the caller, which nobody has taken out of their shells. */
	if ((f->action && f->action->action.context != qp->context) ||
	    (f->counters && f->counters->counters.context != qp->context)) {
		free(f);
		errno = EINVAL;
		return NULL;
	}
	if (f->action)
		f->action->users++;
	if (f->counters)
		f->counters->users++;
	live(1);
	return &f->flow;
}

int mock_destroy_flow(struct ibv_flow *flow)
{
	struct mock_flow *f = (struct mock_flow *)flow;

	if (f->action)
		f->action->users--;
	if (f->counters)
		f->counters->users--;
	return gone(f, NULL);
}
