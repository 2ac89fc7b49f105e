// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Asynchronous events: of the device, given back with our handles, and our own. */
#include <stdlib.h>

#include "objects.h"

struct soft_async {
	struct ibv_async_event event;
	struct list_node node;
};

void rp_async_free(struct rp_context *ctx)
{
	while (!list_empty(&ctx->soft_async)) {
		struct soft_async *e = list_first(&ctx->soft_async, struct soft_async, node);

		list_del(&e->node);
		free(e);
	}
}

static void soft_event(struct rp_context *ctx, const struct ibv_async_event *event)
{
	struct soft_async *e = calloc(1, sizeof(*e));

	if (!e)
		return;
	e->event = *event;
	pthread_mutex_lock(&ctx->async_lock);
	list_add_tail(&ctx->soft_async, &e->node);
	rp_evfd_raise(&ctx->async);
	pthread_mutex_unlock(&ctx->async_lock);
}

void rp_async_soft_event(struct rp_context *ctx, enum ibv_event_type type, int port)
{
	soft_event(ctx, &(struct ibv_async_event){ .event_type = type, .element.port_num = port });
}

void rp_async_soft_qp_event(struct rp_qp *qp, enum ibv_event_type type)
{
	soft_event(to_rp_context(qp->qp.context),
		   &(struct ibv_async_event){ .event_type = type, .element.qp = &qp->qp });
}

/* The object of an event: its mutex, condition and count of unacknowledged events. */
struct subject {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	unsigned int *unacked;
};

static bool subject_of(const struct ibv_async_event *event, struct subject *s)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR: {
		struct rp_cq *cq = to_rp_cq(event->element.cq);

		*s = (struct subject){ &cq->cq.mutex, &cq->cq.cond, &cq->async_events_unacked };
		return true;
	}
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED: {
		struct rp_qp *qp = to_rp_qp(event->element.qp);

		*s = (struct subject){ &qp->qp.mutex, &qp->qp.cond, &qp->async_events_unacked };
		return true;
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct rp_srq *srq = to_rp_srq(event->element.srq);

		*s = (struct subject){ &srq->srq.mutex, &srq->srq.cond,
				       &srq->async_events_unacked };
		return true;
	}
	case IBV_EVENT_WQ_FATAL: {
		struct rp_wq *wq = (struct rp_wq *)event->element.wq;

		*s = (struct subject){ &wq->wq.mutex, &wq->wq.cond, &wq->async_events_unacked };
		return true;
	}
	default:
		return false;	/* of a port or the device */
	}
}

/* Real object to ours: its *_context is our object. */
static void translate(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		event->element.cq = event->element.cq->cq_context;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		event->element.qp = event->element.qp->qp_context;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		event->element.srq = event->element.srq->srq_context;
		break;
	case IBV_EVENT_WQ_FATAL:
		event->element.wq = event->element.wq->wq_context;
		break;
	default:
		break;
	}
}

/* Is a migration due, to an alternate path of the application's? Then it is not, any more. */
bool rp_async_take_mig(struct rp_qp *qp)
{
	unsigned int due = atomic_load(&qp->mig_due);

	while (due && !atomic_compare_exchange_weak(&qp->mig_due, &due, due - 1))
		;
	return due;
}

/*
 * What the device tells of a queue pair that a move has taken to ERR is not for the application; nor
 * that it was drained or has migrated, if the application has not caused that, or was told: the module
 * has moved it to another path, or a move has put it back into SQD.
 */
static bool caused_by_us(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_PATH_MIG:
		return !rp_async_take_mig(to_rp_qp(event->element.qp));
	case IBV_EVENT_PATH_MIG_ERR:
		return !atomic_load(&to_rp_qp(event->element.qp)->mig_due);
	case IBV_EVENT_SQ_DRAINED:
		return !atomic_exchange(&to_rp_qp(event->element.qp)->sqd_due, false);
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return atomic_load(&to_rp_qp(event->element.qp)->swallow);
	default:
		return false;
	}
}

/*
 * The device's next event, with our handle. It is acknowledged at once: a move must not wait for
 * the application. 1, 0: none now, -1: errno. Caller holds async_lock.
 */
static int take_real(struct rp_context *ctx, struct ibv_async_event *event)
{
	struct ibv_async_event real;

	while (ctx->real) {
		if (RP_REAL(rp_real.ibv_get_async_event(ctx->real, &real)))
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
		*event = real;
		translate(event);
		RP_REAL_VOID(rp_real.ibv_ack_async_event(&real));
		if (event->event_type == IBV_EVENT_DEVICE_FATAL)
			rp_log(RP_LOG_ERR, "%s: IBV_EVENT_DEVICE_FATAL: it is gone, or its driver has given it up", ctx->name);
		if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
			atomic_store(&to_rp_srq(event->element.srq)->limit, 0);
		if (!caused_by_us(event))
			return 1;
	}
	return 0;
}

void rp_async_take(struct rp_context *ctx)
{
	struct soft_async *e;

	pthread_mutex_lock(&ctx->async_lock);
	for (;;) {
		e = calloc(1, sizeof(*e));
		if (!e || take_real(ctx, &e->event) <= 0)
			break;
		list_add_tail(&ctx->soft_async, &e->node);
		rp_evfd_raise(&ctx->async);
	}
	free(e);
	pthread_mutex_unlock(&ctx->async_lock);
}

void rp_async_forget(struct rp_context *ctx, const void *object)
{
	struct soft_async *e, *tmp;
	struct subject s;

	pthread_mutex_lock(&ctx->async_lock);
	list_for_each_safe(e, tmp, &ctx->soft_async, node)
		if (subject_of(&e->event, &s) && e->event.element.qp == object) {
			list_del(&e->node);
			free(e);
		}
	if (list_empty(&ctx->soft_async))
		rp_evfd_lower(&ctx->async);
	pthread_mutex_unlock(&ctx->async_lock);
}

/* 1: an event, 0: none now, -1: errno */
static int take_event(struct rp_context *ctx, struct ibv_async_event *event)
{
	struct subject s;
	int ret = 1;

	if (!list_empty(&ctx->soft_async)) {
		struct soft_async *e = list_first(&ctx->soft_async, struct soft_async, node);

		*event = e->event;
		list_del(&e->node);
		free(e);
		if (list_empty(&ctx->soft_async))
			rp_evfd_lower(&ctx->async);
	} else {
		ret = take_real(ctx, event);
	}
	if (ret == 1 && subject_of(event, &s)) {
		pthread_mutex_lock(s.mutex);
		(*s.unacked)++;
		pthread_mutex_unlock(s.mutex);
	}
	return ret;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct rp_context *ctx = to_rp_context(context);
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_get_async_event(context, event);
	for (;;) {
		pthread_mutex_lock(&ctx->async_lock);
		ret = take_event(ctx, event);
		pthread_mutex_unlock(&ctx->async_lock);
		if (ret)
			return ret > 0 ? 0 : -1;
		ret = rp_evfd_wait(&ctx->async);
		if (ret) {
			errno = -ret;
			return -1;
		}
	}
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct subject s;

	if (RP_PASSING) {
		rp_real.ibv_ack_async_event(event);
		return;
	}
	if (!subject_of(event, &s))
		return;
	pthread_mutex_lock(s.mutex);
	(*s.unacked)--;
	pthread_cond_broadcast(s.cond);
	pthread_mutex_unlock(s.mutex);
}
