// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion channels. Real events are acknowledged when they are read, so that nothing in libibverbs
 * waits for the application while its device is released; what the application owes is counted here.
 */
#include <limits.h>
#include <stdlib.h>

#include "objects.h"

/* What programs that were linked with libibverbs 1.0 hold, as libibverbs keeps it for them. */
struct old_context {
	void *device, *ops[27];
	int cmd_fd, async_fd, num_comp_vectors;
	struct ibv_context *context;
};

/*
 * All other functions have a version of their own for those programs, which comes to us with what
 * stands in @context. This one has not: it may be given either.
 */
static struct rp_context *context_of(struct ibv_context *given)
{
	struct ibv_context *meant = NULL;
	struct rp_context *ctx, *found = NULL;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (&ctx->vctx.context == given)
			found = ctx;
	if (!found)
		meant = ((struct old_context *)given)->context;
	list_for_each(ctx, &rp_contexts, node)
		if (&ctx->vctx.context == meant)
			found = ctx;
	rp_unlock(&rp_contexts_lock);
	return found;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct rp_context *ctx;
	struct rp_channel *ch;
	int ret = -ENOMEM;

	if (RP_PASSING)
		return rp_real.ibv_create_comp_channel(context);
	ctx = context_of(context);
	if (!ctx)	/* a child of fork, which has its parent's */
		ctx = to_rp_context(context);
	context = &ctx->vctx.context;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;
	list_init(&ch->soft_events);
	ch->real = rp_verbs_enter(ctx) ? RP_REAL(rp_real.ibv_create_comp_channel(ctx->real)) : NULL;
	if (!ch->real)
		ret = rp_minus_errno();
	else
		ret = rp_evfd_open(&ch->evfd, ch->real->fd);
	if (ret && ch->real)
		RP_REAL(rp_real.ibv_destroy_comp_channel(ch->real));
	if (!ret) {
		ch->ch.context = context;
		ch->ch.fd = ch->evfd.epfd;
		rp_link(ctx, &ctx->channels, &ch->node);
	}
	rp_verbs_leave(ctx);
	if (!ret)
		return &ch->ch;
	free(ch);
	errno = -ret;
	return NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct rp_context *ctx = to_rp_context(channel->context);
	struct rp_channel *ch = to_rp_channel(channel);
	int ret = 0;

	if (RP_PASSING)
		return rp_real.ibv_destroy_comp_channel(channel);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	pthread_mutex_lock(&channel->context->mutex);
	if (channel->refcnt)
		ret = EBUSY;
	pthread_mutex_unlock(&channel->context->mutex);
	if (!ret) {
		rp_unlink(ctx, &ch->node);
		rp_evfd_detach(&ch->evfd);
		ret = RP_REAL(rp_real.ibv_destroy_comp_channel(ch->real));
		if (ret) {
			rp_evfd_attach(&ch->evfd, ch->real->fd);
			rp_link(ctx, &ctx->channels, &ch->node);
		}
	}
	rp_verbs_leave(ctx);
	if (ret)
		return ret;
	rp_evfd_close(&ch->evfd);
	free(ch);
	return 0;
}

/*
 * How a CQ is armed is one word, as those who arm it and those who read its events hold different
 * locks: how often it was armed and no event of the device has come for it yet, and two bits.
 * An event may be older than the last arming, so it answers for one: the count may be too high, where
 * the device has taken two for one, and never too low. Too high costs an event too many behind a move,
 * too low would leave the program asleep.
 */
#define ARM_ANY		1	/* not only for solicited ones */
#define ARM_TOLD	2	/* by a software event; the device's may come, too */
#define ARM_ONE		4

void rp_cq_arm(struct rp_cq *cq, bool solicited_only)
{
	int old = atomic_load(&cq->armed), new;

	do {
		new = old < INT_MAX / 2 ? (old & ~ARM_TOLD) + ARM_ONE : old & ~ARM_TOLD;
		if (old < ARM_ONE || old & ARM_TOLD)
			new &= ~ARM_ANY;	/* else one for any, if there is one, stays */
		if (!solicited_only)
			new |= ARM_ANY;
	} while (!atomic_compare_exchange_weak(&cq->armed, &old, new));
}

void rp_cq_event_came(struct rp_cq *cq)
{
	int old = atomic_load(&cq->armed);

	while (old >= ARM_ONE && !atomic_compare_exchange_weak(&cq->armed, &old, old - ARM_ONE))
		;
}

enum rp_armed rp_cq_armed(const struct rp_cq *cq)
{
	int armed = atomic_load(&cq->armed);

	if (armed < ARM_ONE || armed & ARM_TOLD)
		return RP_ARMED_NOT;
	return armed & ARM_ANY ? RP_ARMED_ANY : RP_ARMED_SOLICITED;
}

/* Caller holds ch->lock. */
static void queue_event(struct rp_channel *ch, struct rp_cq *cq)
{
	if (cq->soft_event_queued)
		return;
	cq->soft_event_queued = true;
	list_add_tail(&ch->soft_events, &cq->soft_event);
	rp_evfd_raise(&ch->evfd);
}

void rp_channel_take_events(struct rp_channel *ch)
{
	struct ibv_cq *real;
	void *ours;

	rp_lock(&ch->lock);
	while (ch->real && !RP_REAL(rp_real.ibv_get_cq_event(ch->real, &real, &ours))) {
		struct rp_cq *cq = ours;

		rp_cq_event_came(cq);
		queue_event(ch, cq);
		/* Only now may a destroy of the CQ go on; it comes to rp_channel_forget_cq(). */
		RP_REAL_VOID(rp_real.ibv_ack_cq_events(real, 1));
	}
	rp_unlock(&ch->lock);
}

void rp_channel_forget_cq(struct rp_cq *cq)
{
	struct rp_channel *ch = cq->channel;

	rp_lock(&ch->lock);
	if (cq->soft_event_queued) {
		cq->soft_event_queued = false;
		list_del(&cq->soft_event);
		if (list_empty(&ch->soft_events))
			rp_evfd_lower(&ch->evfd);
	}
	rp_unlock(&ch->lock);
}

void rp_cq_soft_notify(struct rp_cq *cq, bool solicited)
{
	struct rp_channel *ch = cq->channel;
	enum rp_armed armed = rp_cq_armed(cq);

	if (!ch || armed == RP_ARMED_NOT || (armed == RP_ARMED_SOLICITED && !solicited))
		return;
	/* The device may have told already: then that is the event. */
	rp_channel_take_events(ch);
	if (rp_cq_armed(cq) == RP_ARMED_NOT)
		return;
	rp_lock(&ch->lock);
	atomic_fetch_or(&cq->armed, ARM_TOLD);
	queue_event(ch, cq);
	rp_unlock(&ch->lock);
}

/* Caller holds ch->lock, which keeps the CQ from being freed until the event is counted. */
static struct rp_cq *next_event(struct rp_channel *ch)
{
	struct ibv_cq *real = NULL;
	struct rp_cq *cq;
	void *ours;

	if (!list_empty(&ch->soft_events)) {
		cq = list_first(&ch->soft_events, struct rp_cq, soft_event);
		list_del(&cq->soft_event);
		cq->soft_event_queued = false;
		if (list_empty(&ch->soft_events))
			rp_evfd_lower(&ch->evfd);
	} else {
		errno = EAGAIN;
		if (!ch->real || RP_REAL(rp_real.ibv_get_cq_event(ch->real, &real, &ours)))
			return NULL;
		cq = ours;
		rp_cq_event_came(cq);
	}
	pthread_mutex_lock(&cq->cq.mutex);
	cq->comp_events_unacked++;
	pthread_mutex_unlock(&cq->cq.mutex);
	/* After counting: destroying the real CQ waits for this. */
	if (real)
		RP_REAL_VOID(rp_real.ibv_ack_cq_events(real, 1));
	return cq;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct rp_channel *ch = to_rp_channel(channel);
	struct rp_cq *c;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_get_cq_event(channel, cq, cq_context);
	for (;;) {
		rp_lock(&ch->lock);
		c = next_event(ch);
		ret = c ? 0 : errno;
		rp_unlock(&ch->lock);
		if (c) {
			*cq = &c->cq;
			*cq_context = c->cq.cq_context;
			return 0;
		}
		if (ret != EAGAIN && ret != EWOULDBLOCK) {
			errno = ret;
			return -1;
		}
		ret = rp_evfd_wait(&ch->evfd);
		if (ret) {
			errno = -ret;
			return -1;
		}
	}
}

void ibv_ack_cq_events(struct ibv_cq *ibcq, unsigned int nevents)
{
	struct rp_cq *cq = to_rp_cq(ibcq);

	if (RP_PASSING) {
		rp_real.ibv_ack_cq_events(ibcq, nevents);
		return;
	}
	pthread_mutex_lock(&ibcq->mutex);
	ibcq->comp_events_completed += nevents;
	cq->comp_events_unacked -= nevents;
	pthread_cond_broadcast(&ibcq->cond);
	pthread_mutex_unlock(&ibcq->mutex);
}

int rp_channel_release(struct rp_channel *ch)
{
	int ret;

	rp_channel_take_events(ch);
	rp_lock(&ch->lock);
	rp_evfd_detach(&ch->evfd);
	ret = RP_REAL(rp_real.ibv_destroy_comp_channel(ch->real));
	if (!ret)
		ch->real = NULL;
	else
		rp_evfd_attach(&ch->evfd, ch->real->fd);
	rp_unlock(&ch->lock);
	return -ret;
}

int rp_channel_recreate(struct rp_channel *ch)
{
	struct rp_context *ctx = to_rp_context(ch->ch.context);
	struct ibv_comp_channel *real = RP_REAL(rp_real.ibv_create_comp_channel(ctx->real));
	int ret;

	if (!real)
		return rp_minus_errno();
	rp_lock(&ch->lock);
	ret = rp_evfd_attach(&ch->evfd, real->fd);
	if (!ret)
		ch->real = real;
	rp_unlock(&ch->lock);
	if (ret)
		RP_REAL(rp_real.ibv_destroy_comp_channel(real));
	return ret;
}
