// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "conn.h"
#include "mw.h"

#define KEY_TRIES 16
#define FREE_TRIES 64
#define REBIND_BATCH 64

/* A request about a window, which has been executed when its queue has come past it. */
struct rp_mw_request {
	struct rp_qp *qp;
	uint64_t index;		/* in the send queue */
	struct rp_mw_state makes;
	struct list_node node;
};

static struct rp_context *ctx_of(const struct rp_mw *mw)
{
	return to_rp_context(mw->mw.context);
}

/* Caller holds ctx->mws_lock. */
static struct rp_mw *find(struct rp_context *ctx, uint32_t key)
{
	struct rp_mw *mw;

	list_for_each(mw, &ctx->mws, node)
		if (mw->index == (key & ~RP_MW_TAG))
			return mw;
	return NULL;
}

/* Folds what has been executed into mw->now. */
static void settle(struct rp_mw *mw)
{
	while (!list_empty(&mw->posted)) {
		struct rp_mw_request *r = list_first(&mw->posted, struct rp_mw_request, node);

		if (r->qp && r->index >= atomic_load(&r->qp->sq.retired))
			return;
		mw->now = r->makes;
		list_del(&r->node);
		free(r);
	}
}

/* Would this key be the next that the application binds, or the one that it has? */
static bool tag_in_the_way(const struct rp_mw *mw, uint32_t real)
{
	uint32_t tag = (real - mw->mw.rkey) & RP_MW_TAG;

	return mw->mw.type == IBV_MW_TYPE_2 && (tag == 1 || (mw->now.bound && tag == 0));
}

static struct ibv_mw *alloc_real(struct rp_mw *mw)
{
	struct rp_context *ctx = ctx_of(mw);

	if (!ctx->real->ops.alloc_mw || !ctx->real->ops.dealloc_mw)
		return errno = EOPNOTSUPP, NULL;
	return RP_REAL(ctx->real->ops.alloc_mw(real_pd(mw->mw.pd), mw->mw.type));
}

/* With keys that nothing else is known by, once that may be others than the device's. */
static struct ibv_mw *alloc_free_keys(struct rp_mw *mw)
{
	struct rp_context *ctx = ctx_of(mw);
	struct ibv_mw *held[FREE_TRIES], *real = NULL;
	int n = 0, saved;

	if (!ctx->epoch)
		return alloc_real(mw);
	while (n < FREE_TRIES) {
		real = alloc_real(mw);
		if (!real || !rp_keys_taken(ctx, NULL, real->rkey, false))
			break;
		held[n++] = real;
		real = NULL;
		errno = EAGAIN;
	}
	saved = errno;
	while (n)
		RP_REAL(ctx->real->ops.dealloc_mw(held[--n]));
	errno = saved;
	return real;
}

struct ibv_mw *rp_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct rp_context *ctx = to_rp_context(pd->context);
	struct rp_mw *mw = calloc(1, sizeof(*mw));
	bool made, tell;
	int saved;

	if (!mw)
		return NULL;
	list_init(&mw->posted);
	mw->mw.context = pd->context;
	mw->mw.pd = pd;
	mw->mw.type = type;
	mw->real = rp_verbs_enter(ctx) ? alloc_free_keys(mw) : NULL;
	if (mw->real) {
		mw->mw.rkey = mw->now.key = mw->real->rkey;
		mw->mw.handle = mw->real->handle;
		mw->index = mw->real_index = mw->mw.rkey & ~RP_MW_TAG;
		rp_keys_add_mw(ctx, mw);
	}
	/* From here on it may be moved. */
	made = mw->real;
	tell = ctx->epoch;
	rp_verbs_leave(ctx);
	if (made) {
		if (tell)
			rp_peer_new_key(ctx, mw->key_serial);
		return &mw->mw;
	}
	saved = errno;
	free(mw);
	errno = saved;
	return NULL;
}

int rp_dealloc_mw(struct ibv_mw *ibmw)
{
	struct rp_context *ctx = to_rp_context(ibmw->context);
	struct rp_mw *mw = (struct rp_mw *)ibmw;
	bool tell;
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	rp_keys_del_mw(ctx, mw);
	ret = RP_REAL(ctx->real->ops.dealloc_mw(mw->real));
	if (ret)
		rp_keys_add_mw(ctx, mw);
	tell = ctx->epoch;
	rp_verbs_leave(ctx);
	if (tell)
		rp_peer_key_removed(ctx);
	if (ret)
		return ret;
	while (!list_empty(&mw->posted)) {
		struct rp_mw_request *r = list_first(&mw->posted, struct rp_mw_request, node);

		list_del(&r->node);
		free(r);
	}
	free(mw);
	return 0;
}

void rp_mw_logged(struct rp_qp *qp, const struct rp_slot *s)
{
	struct rp_context *ctx = rp_qp_context(qp);
	struct rp_mw_request *r = calloc(1, sizeof(*r));
	struct rp_mw *mw;

	if (!r) {
		rp_log(RP_LOG_ERR, "out of memory: a memory window is lost in the next move");
		return;
	}
	r->qp = qp;
	r->index = s->index;
	rp_lock(&ctx->mws_lock);
	if (s->send.opcode == IBV_WR_BIND_MW) {
		mw = (struct rp_mw *)s->send.bind_mw.mw;
		r->makes = (struct rp_mw_state){
			.bound = s->send.bind_mw.bind_info.length != 0, .qp = qp,
			.key = s->send.bind_mw.rkey, .info = s->send.bind_mw.bind_info,
		};
	} else {
		mw = find(ctx, s->send.invalidate_rkey);
	}
	if (mw) {
		settle(mw);
		list_add_tail(&mw->posted, &r->node);
	}
	rp_unlock(&ctx->mws_lock);
	if (!mw)
		free(r);
}

/* All requests of @qp from @index on, of every window; caller holds ctx->mws_lock. */
static void forget(struct rp_context *ctx, const struct rp_qp *qp, uint64_t index)
{
	struct rp_mw_request *r, *tmp;
	struct rp_mw *mw;

	list_for_each(mw, &ctx->mws, node)
		list_for_each_safe(r, tmp, &mw->posted, node)
			if (r->qp == qp && r->index >= index) {
				list_del(&r->node);
				free(r);
			}
}

void rp_mw_rolled_back(struct rp_qp *qp)
{
	struct rp_context *ctx = rp_qp_context(qp);

	rp_lock(&ctx->mws_lock);
	forget(ctx, qp, qp->sq.head);
	rp_unlock(&ctx->mws_lock);
}

void rp_mw_qp_reset(struct rp_qp *qp)
{
	struct rp_context *ctx = rp_qp_context(qp);
	struct rp_mw *mw;

	rp_lock(&ctx->mws_lock);
	list_for_each(mw, &ctx->mws, node)
		settle(mw);
	forget(ctx, qp, 0);
	rp_unlock(&ctx->mws_lock);
}

void rp_mw_qp_gone(struct rp_qp *qp)
{
	struct rp_context *ctx = rp_qp_context(qp);
	struct rp_mw *mw;

	rp_mw_qp_reset(qp);
	rp_lock(&ctx->mws_lock);
	list_for_each(mw, &ctx->mws, node) {
		if (mw->now.qp != qp)
			continue;
		mw->now.qp = NULL;
		/* Those of type 2 were the queue pair's. */
		if (mw->mw.type == IBV_MW_TYPE_2)
			mw->now.bound = false;
	}
	rp_unlock(&ctx->mws_lock);
}

static uint32_t real_key(const struct rp_mw *mw, uint32_t key)
{
	return (mw->real->rkey & ~RP_MW_TAG) | (key & RP_MW_TAG);
}

void rp_mw_real_bind(struct ibv_send_wr *wr)
{
	struct rp_mw *mw = (struct rp_mw *)wr->bind_mw.mw;

	wr->bind_mw.rkey = real_key(mw, wr->bind_mw.rkey);
	wr->bind_mw.mw = mw->real;
	wr->bind_mw.bind_info.mr = real_mr(wr->bind_mw.bind_info.mr);
}

void rp_mw_real_inv(const struct rp_qp *qp, struct ibv_send_wr *wr)
{
	struct rp_context *ctx = to_rp_context(qp->qp.context);
	struct rp_mw *mw;

	rp_lock(&ctx->mws_lock);
	mw = find(ctx, wr->invalidate_rkey);
	if (mw)
		wr->invalidate_rkey = real_key(mw, wr->invalidate_rkey);
	rp_unlock(&ctx->mws_lock);
}

void rp_mw_invalidated(struct rp_qp *qp, struct ibv_wc *wc)
{
	struct rp_context *ctx = rp_qp_context(qp);
	struct rp_mw *mw;

	rp_lock(&ctx->mws_lock);
	list_for_each(mw, &ctx->mws, node) {
		if (!mw->real || ((mw->real->rkey ^ wc->invalidated_rkey) & ~RP_MW_TAG))
			continue;
		wc->invalidated_rkey = mw->index | (wc->invalidated_rkey & RP_MW_TAG);
		settle(mw);
		if (mw->now.bound && mw->now.key == wc->invalidated_rkey)
			mw->now.bound = false;
		break;
	}
	rp_unlock(&ctx->mws_lock);
}

/* --- type 1: bound by a verb, which finds the next key by itself --- */

bool rp_mw_is_type1(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW && wr->bind_mw.mw->type == IBV_MW_TYPE_1;
}

int rp_mw_bind_type1(struct rp_qp *qp, struct rp_slot *s)
{
	struct rp_mw *mw = (struct rp_mw *)s->send.bind_mw.mw;
	struct ibv_mw_bind bind = {
		.wr_id = s->send.wr_id,
		.send_flags = s->send.send_flags,
		.bind_info = s->send.bind_mw.bind_info,
	};

	if (!qp->real->context->ops.bind_mw)
		return EOPNOTSUPP;
	bind.bind_info.mr = real_mr(bind.bind_info.mr);
	/* It counts up from what the handle has. */
	mw->real->rkey = real_key(mw, s->send.bind_mw.rkey - 1);
	return qp->real->context->ops.bind_mw(qp->real, mw->real, &bind);
}

int rp_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *ibmw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags,
		.bind_mw = {
			.mw = ibmw, .rkey = ibv_inc_rkey(ibmw->rkey), .bind_info = bind->bind_info,
		},
	};
	struct ibv_send_wr *bad;
	int ret;

	if (ibmw->type != IBV_MW_TYPE_1)
		return EINVAL;
	ret = rp_post_send(ibqp, &wr, &bad);
	if (!ret)
		ibmw->rkey = wr.bind_mw.rkey;
	return ret;
}

/* --- moves --- */

int rp_mw_release(struct rp_mw *mw)
{
	struct rp_context *ctx = ctx_of(mw);
	int ret = RP_REAL(ctx->real->ops.dealloc_mw(mw->real));

	if (ret)
		return -ret;
	rp_lock(&ctx->mws_lock);
	mw->real = NULL;
	settle(mw);
	mw->rebind = mw->now.bound || mw->mw.type == IBV_MW_TYPE_1;
	rp_unlock(&ctx->mws_lock);
	return 0;
}

/* With a tag that a bind of type 2 does not refuse as the one that it has already. */
int rp_mw_recreate(struct rp_mw *mw)
{
	struct ibv_mw *held[KEY_TRIES], *real;
	int n = 0;

	for (;;) {
		real = alloc_real(mw);
		if (!real || !tag_in_the_way(mw, real->rkey) || n == KEY_TRIES)
			break;
		held[n++] = real;
	}
	while (n)
		RP_REAL(ctx_of(mw)->real->ops.dealloc_mw(held[--n]));
	rp_lock(&ctx_of(mw)->mws_lock);
	mw->real = real;
	if (real) {
		mw->real_index = real->rkey & ~RP_MW_TAG;
		mw->mw.handle = real->handle;
	}
	rp_unlock(&ctx_of(mw)->mws_lock);
	return real ? 0 : rp_minus_errno();
}

/* One of type 1 whose queue pair is gone is bound by any of the same protection domain. */
static bool binds(const struct rp_qp *qp, const struct rp_mw *mw)
{
	return mw->now.qp ? mw->now.qp == qp : qp->qp.pd == mw->mw.pd;
}

/* A bind to nothing names a region all the same. Caller holds the context's objects. */
static struct ibv_mr *any_mr(const struct rp_mw *mw)
{
	struct rp_mr *mr;

	list_for_each(mr, &ctx_of(mw)->mrs, node)
		if (mr->mr.pd == mw->mw.pd && !mr->going)
			return &mr->mr;
	return NULL;
}

/*
 * How many binds a window is away from what it was. One of type 1 counts its tag up, bind by
 * bind, from that which the device has given it; a device may refuse one that says to be elsewhere.
 * It must be there even if it is not bound: the application's next bind goes on from there.
 */
static unsigned int binds_left(const struct rp_mw *mw)
{
	unsigned int n = (mw->now.key - mw->real->rkey) & RP_MW_TAG;

	if (mw->mw.type != IBV_MW_TYPE_1)
		return 1;
	if (mw->now.bound)
		return n ? n : RP_MW_TAG + 1;
	return any_mr(mw) ? n : 0;
}

static int rebind(struct rp_qp *qp, struct rp_mw *mw, unsigned int flags)
{
	struct rp_slot s = { .send = {
		.wr_id = (uintptr_t)&qp->marker, .opcode = IBV_WR_BIND_MW, .send_flags = flags,
		.bind_mw = { .mw = &mw->mw, .rkey = mw->now.key, .bind_info = mw->now.info },
	} };
	struct ibv_send_wr *bad;
	int ret;

	if (mw->mw.type == IBV_MW_TYPE_1) {
		s.send.bind_mw.rkey = ibv_inc_rkey(mw->real->rkey);
		if (!mw->now.bound)
			s.send.bind_mw.bind_info = (struct ibv_mw_bind_info){ .mr = any_mr(mw) };
		return rp_mw_bind_type1(qp, &s);
	}
	rp_mw_real_bind(&s.send);
	ret = qp->real->context->ops.post_send(qp->real, &s.send, &bad);
	if (!ret)
		mw->real->rkey = s.send.bind_mw.rkey;
	return ret;
}

bool rp_mw_rebound(struct rp_qp *qp)
{
	struct rp_context *ctx = rp_qp_context(qp);
	unsigned int n = 0, max = qp->sq.size - 1 < REBIND_BATCH ? qp->sq.size - 1 : REBIND_BATCH;
	unsigned int left;
	struct rp_mw *mw;
	int ret = 0;

	if (qp->rebinding) {
		rp_drain_harvest(ctx);
		if (!qp->marker_done)
			return false;
		qp->rebinding = false;
		if (qp->marker_status != IBV_WC_SUCCESS)
			rp_log(RP_LOG_ERR, "QP 0x%x: a memory window is not bound again: %s",
			       qp->qp.qp_num, rp_real.ibv_wc_status_str(qp->marker_status));
	}
	rp_lock(&ctx->objects);
	rp_lock(&qp->lock);
	rp_lock(&ctx->mws_lock);
	list_for_each(mw, &ctx->mws, node)
		if (mw->rebind && binds(qp, mw))
			n += binds_left(mw);
	/* The marker is back with the last, or, where each is signalled, with the first. */
	n = qp->sig_all && n ? 1 : n < max ? n : max;
	if (n) {
		qp->marker.kind = RP_SLOT_MARKER;
		qp->marker.hidden = true;
		qp->marker.owner = qp;
		qp->marker_done = false;
	}
	list_for_each(mw, &ctx->mws, node) {
		if (!mw->rebind || !binds(qp, mw))
			continue;
		mw->now.qp = qp;	/* what is still to be done is this one's */
		for (left = binds_left(mw); left && n && !ret; left--) {
			ret = rebind(qp, mw, n == 1 ? IBV_SEND_SIGNALED : 0);
			n -= !ret;
			qp->rebinding = !n;
		}
		if (ret)
			rp_log(RP_LOG_ERR, "memory window 0x%x is not bound again: %d",
			       mw->now.key, ret);
		mw->rebind = left && !ret;
		ret = 0;
	}
	rp_unlock(&ctx->mws_lock);
	rp_unlock(&qp->lock);
	rp_unlock(&ctx->objects);
	return !qp->rebinding;
}
