// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: creation and destruction, and making them anew after a move. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "mw.h"
#include "resolve.h"
#include "ud.h"

#define QPN_TRIES 64

static struct rp_context *ctx_of(const struct rp_qp *qp)
{
	return to_rp_context(qp->qp.context);
}

/* Its queue pairs are bound to a CM id in the kernel, which does not move yet. */
static bool is_librdmacm(void *return_address)
{
	Dl_info info;

	return dladdr(return_address, &info) && info.dli_fname &&
	       strstr(info.dli_fname, "librdmacm");
}

static int pin_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return -1;
	case IBV_QPT_RAW_PACKET:
		return RP_IMM_RAW_QP;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return RP_IMM_XRC;
	default:
		return RP_IMM_DIRECT_VERBS;
	}
}

/* The attributes with the provider's handles. */
static struct ibv_qp_init_attr_ex real_init(struct rp_qp *qp)
{
	struct ibv_qp_init_attr_ex a = qp->init;

	a.qp_context = qp;
	a.send_cq = real_cq(a.send_cq);
	a.recv_cq = real_cq(a.recv_cq);
	a.srq = real_srq(a.srq);
	a.pd = a.comp_mask & IBV_QP_INIT_ATTR_PD ? real_pd(a.pd) : NULL;
	a.xrcd = a.comp_mask & IBV_QP_INIT_ATTR_XRCD ? real_xrcd(a.xrcd) : NULL;
	if (a.comp_mask & IBV_QP_INIT_ATTR_IND_TABLE && a.rwq_ind_tbl)
		a.rwq_ind_tbl = ((struct rp_rwq_ind_table *)a.rwq_ind_tbl)->real;
	a.cap.max_send_wr += qp->sq_extra;
	return a;
}

/* On the device that is there now: after a move it may have no more than the application was told. */
static void room_for_marker(struct rp_qp *qp)
{
	uint64_t max = ctx_of(qp)->limits.max_qp_wr;

	qp->sq_extra = qp->pin < 0 && (uint64_t)qp->init.cap.max_send_wr + RP_SQ_EXTRA <= max ?
		       RP_SQ_EXTRA : 0;
}

static struct ibv_qp *create_real(struct rp_qp *qp, struct ibv_qp_cap *cap)
{
	struct rp_context *ctx = ctx_of(qp);
	struct ibv_qp_init_attr_ex a = real_init(qp);
	struct ibv_qp *real;

	if (!qp->ex)
		real = RP_REAL(rp_real.ibv_create_qp(a.pd, (struct ibv_qp_init_attr *)&a));
	else if (RP_HAS_SLOT(ctx, create_qp_ex))
		real = RP_REAL(RP_SLOT(ctx, create_qp_ex)(ctx->real, &a));
	else
		return errno = EOPNOTSUPP, NULL;
	*cap = a.cap;
	return real;
}

/* What providers take of a queue's depth may end below max_qp_wr, by the size of its requests. */
static struct ibv_qp *create_once(struct rp_qp *qp, struct ibv_qp_cap *cap)
{
	struct ibv_qp *real = create_real(qp, cap);

	if (real || !qp->sq_extra || errno != EINVAL)
		return real;
	qp->sq_extra = 0;
	return create_real(qp, cap);
}

/* Of any context: its owner may be modifying it. */
static bool is_waiting(const struct rp_qp *qp)
{
	enum ibv_qp_state state = __atomic_load_n(&qp->qp.state, __ATOMIC_ACQUIRE);

	return state == IBV_QPS_RESET || state == IBV_QPS_INIT;
}

/* A bit for each number, modulo, that a queue pair which nobody is connected to is known by. */
static uint64_t waiting[1024];

static uint64_t *waiting_word(uint32_t qpn, uint64_t *bit)
{
	*bit = 1ull << qpn % 64;
	return &waiting[qpn / 64 % (sizeof(waiting) / sizeof(waiting[0]))];
}

void rp_qps_recreate_begin(void)
{
	struct rp_context *ctx;
	struct rp_qp *qp;
	uint64_t bit;

	memset(waiting, 0, sizeof(waiting));
	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node) {
		rp_lock(&ctx->objects);
		list_for_each(qp, &ctx->qps, node)
			if (is_waiting(qp))
				*waiting_word(qp->qp.qp_num, &bit) |= bit;
		rp_unlock(&ctx->objects);
	}
	rp_unlock(&rp_contexts_lock);
}

/*
 * Is the number one that the application knows another queue pair by? For one that is made anew
 * after a move only those count that nobody is connected to yet: whoever was told their number
 * would connect to this one instead. A new one keeps its number, so it must be nobody's.
 * -EADDRINUSE: it is; -EBUSY: of another process that is away.
 */
static int number_taken(const struct rp_qp *self, uint32_t qpn, bool fresh)
{
	struct rp_context *ctx;
	struct rp_qp *qp;
	bool taken = false;
	uint64_t bit;

	if (!fresh && !(*waiting_word(qpn, &bit) & bit))
		return rp_number_check(ctx_of(self), qpn);
	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node) {
		rp_lock(&ctx->objects);
		list_for_each(qp, &ctx->qps, node)
			taken |= qp != self && qp->qp.qp_num == qpn && (fresh || is_waiting(qp));
		rp_unlock(&ctx->objects);
	}
	rp_unlock(&rp_contexts_lock);
	/* Of another process, whose peers would be connected to this one, or be refused. */
	return taken ? -EADDRINUSE : rp_number_check(ctx_of(self), qpn);
}

/* The real one, with a number that is not taken; those in the way are held meanwhile. */
static struct ibv_qp *create_untaken(struct rp_qp *qp, struct ibv_qp_cap *cap, bool fresh)
{
	struct ibv_qp *held[QPN_TRIES], *real;
	int n = 0, saved, err;

	for (;;) {
		real = create_once(qp, cap);
		err = real ? number_taken(qp, real->qp_num, fresh) : 0;
		if (!err)
			break;
		/* As long as one is away that is known by it, the module connects nobody to either. */
		if (n == QPN_TRIES && (!fresh || err == -EBUSY)) {
			rp_log(RP_LOG_ERR, "QP 0x%x has a number that was another's", real->qp_num);
			break;
		}
		if (n == QPN_TRIES) {
			RP_REAL(rp_real.ibv_destroy_qp(real));
			real = NULL;
			errno = EAGAIN;
			break;
		}
		held[n++] = real;
	}
	saved = errno;
	while (n)
		RP_REAL(rp_real.ibv_destroy_qp(held[--n]));
	errno = saved;
	return real;
}

static struct rp_qp **hash_row(struct rp_context *ctx, uint32_t qpn)
{
	return &ctx->srq_qps[qpn % 64];
}

static void hash(struct rp_qp *qp)
{
	struct rp_context *ctx = ctx_of(qp);
	struct rp_qp **row = hash_row(ctx, qp->real->qp_num);

	rp_lock(&ctx->srq_qps_lock);
	qp->hashed_qpn = qp->real->qp_num;
	qp->next_hashed = *row;
	*row = qp;
	rp_unlock(&ctx->srq_qps_lock);
}

static void unhash(struct rp_qp *qp)
{
	struct rp_context *ctx = ctx_of(qp);
	struct rp_qp **at;

	rp_lock(&ctx->srq_qps_lock);
	for (at = hash_row(ctx, qp->hashed_qpn); *at; at = &(*at)->next_hashed)
		if (*at == qp) {
			*at = qp->next_hashed;
			break;
		}
	rp_unlock(&ctx->srq_qps_lock);
}

bool rp_qp_srq_completion(struct rp_context *ctx, struct ibv_wc *wc)
{
	bool ours = false;
	struct rp_qp *qp;

	rp_lock(&ctx->srq_qps_lock);
	for (qp = *hash_row(ctx, wc->qp_num); qp; qp = qp->next_hashed)
		if (qp->hashed_qpn == wc->qp_num) {
			if (wc->status == IBV_WC_SUCCESS)
				atomic_fetch_add(&qp->recvs_done, 1);
			ours = wc->status == IBV_WC_WR_FLUSH_ERR && atomic_load(&qp->swallow);
			wc->qp_num = qp->qp.qp_num;
			if (qp->readdressed && wc->src_qp && qp->qp.qp_type != IBV_QPT_UD)
				wc->src_qp = qp->attr.dest_qp_num;
			if (qp->handles && wc->status == IBV_WC_SUCCESS &&
			    wc->wc_flags & IBV_WC_WITH_INV)
				rp_mw_invalidated(qp, wc);
			break;
		}
	rp_unlock(&ctx->srq_qps_lock);
	return ours;
}

const struct rp_qp *rp_qp_of_srq(struct rp_context *ctx, uint32_t real_qpn)
{
	const struct rp_qp *qp;

	rp_lock(&ctx->srq_qps_lock);
	for (qp = *hash_row(ctx, real_qpn); qp && qp->hashed_qpn != real_qpn; qp = qp->next_hashed)
		;
	rp_unlock(&ctx->srq_qps_lock);
	return qp;
}

static void qp_free(struct rp_qp *qp)
{
	rp_keys_reset(qp);
	free(qp->sq.slots);
	free(qp->rq.slots);
	free(qp->scratch);
	rp_wr_free(qp);
	rp_ud_free(qp);
	pthread_mutex_destroy(&qp->control);
	free(qp);
}

/* The public part, and what follows from what the device gave. */
static int set_up(struct rp_qp *qp, struct ibv_qp *real, const struct ibv_qp_cap *cap)
{
	struct ibv_qp_cap *have = &qp->init.cap;
	struct rp_ring sends, recvs;
	int ret;

	qp->real = real;
	qp->qp.handle = real->handle;
	qp->qp.qp_num = real->qp_num;
	qp->qp.state = real->state;
	*have = *cap;
	have->max_send_wr -= qp->sq_extra < cap->max_send_wr ? qp->sq_extra : 0;
	sends = (struct rp_ring){
		.max_sge = have->max_send_sge, .max_inline = have->max_inline_data,
		.max_header = qp->init.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER ?
			      qp->init.max_tso_header : 0,
	};
	recvs = (struct rp_ring){ .max_sge = have->max_recv_sge };
	ret = rp_ring_alloc(&qp->sq, have->max_send_wr, &sends, RP_SLOT_SEND, qp);
	if (!ret && qp->has_recv)
		ret = rp_ring_alloc(&qp->rq, have->max_recv_wr, &recvs, RP_SLOT_RECV, qp);
	else
		qp->rq.size = 1;	/* always full */
	if (!ret && qp->has_ops)
		ret = rp_wr_init(qp);
	return ret;
}

static struct ibv_qp *create(struct rp_context *ctx, struct ibv_pd *pd,
			     const struct ibv_qp_init_attr_ex *attr, struct ibv_qp_cap *user_cap,
			     bool ex, bool rdmacm)
{
	struct rp_qp *qp = calloc(1, sizeof(*qp));
	struct ibv_qp_cap cap = { 0 };
	struct ibv_qp *real;
	bool there;
	int ret;

	if (!qp)
		return NULL;
	qp->init = *attr;
	qp->init.pd = pd;
	qp->ex = ex;
	qp->rdmacm = rdmacm;
	qp->pin = pin_of(attr->qp_type);
	qp->handles = attr->qp_type == IBV_QPT_UD;
	qp->ud_waiting_since = UINT64_MAX;
	list_init(&qp->mcasts);
	qp->sig_all = attr->sq_sig_all ? IBV_SEND_SIGNALED : 0;
	qp->has_ops = ex && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
	qp->has_recv = !attr->srq && attr->qp_type != IBV_QPT_XRC_SEND &&
		       attr->qp_type != IBV_QPT_XRC_RECV &&
		       !(ex && (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE));
	qp->qp.context = &ctx->vctx.context;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.pd = pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.srq = attr->srq;
	qp->qp.qp_type = attr->qp_type;
	qp->tailed = attr->qp_type != IBV_QPT_RC;
	pthread_mutex_init(&qp->qp.mutex, NULL);
	pthread_cond_init(&qp->qp.cond, NULL);
	pthread_mutex_init(&qp->control, NULL);

	there = rp_verbs_enter(ctx);
	room_for_marker(qp);
	real = !there ? NULL :
	       ctx->epoch || rp_numbers_any() ? create_untaken(qp, &cap, true) : create_once(qp, &cap);
	ret = real ? set_up(qp, real, &cap) : rp_minus_errno();
	if (ret) {
		if (real)
			RP_REAL(rp_real.ibv_destroy_qp(real));
	} else {
		qp->xlate = ctx->epoch || qp->handles;
		if (qp->pin >= 0)
			rp_pin(ctx, qp->pin);
		if (rdmacm)
			rp_pin(ctx, RP_IMM_RDMACM);
		if (attr->srq)
			hash(qp);
		*user_cap = qp->init.cap;
		rp_link(ctx, &ctx->qps, &qp->node);
	}
	rp_verbs_leave(ctx);
	if (!ret)
		return &qp->qp;
	qp_free(qp);
	errno = -ret;
	return NULL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex a = { 0 };

	if (RP_PASSING)
		return rp_real.ibv_create_qp(pd, attr);
	memcpy(&a, attr, sizeof(*attr));
	a.comp_mask = IBV_QP_INIT_ATTR_PD;
	return create(to_rp_context(pd->context), pd, &a, &attr->cap, false,
		      is_librdmacm(__builtin_return_address(0)));
}

struct ibv_qp *rp_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_pd *pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;

	/* One that later headers have: its call would find no function. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && attr->send_ops_flags & ~(uint64_t)RP_WR_OPS)
		return errno = EOPNOTSUPP, NULL;
	return create(to_rp_context(context), pd, attr, &attr->cap, true,
		      is_librdmacm(__builtin_return_address(0)));
}

/* A queue pair of another process (XRC): its receives are an SRQ's. */
struct ibv_qp *rp_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	struct rp_context *ctx = to_rp_context(context);
	struct ibv_qp_open_attr a = *attr;
	struct rp_qp *qp = calloc(1, sizeof(*qp));
	int saved;

	if (!qp)
		return NULL;
	pthread_mutex_init(&qp->qp.mutex, NULL);
	pthread_cond_init(&qp->qp.cond, NULL);
	pthread_mutex_init(&qp->control, NULL);
	qp->pin = RP_IMM_XRC;
	list_init(&qp->mcasts);
	a.qp_context = qp;
	a.xrcd = attr->comp_mask & IBV_QP_OPEN_ATTR_XRCD ? real_xrcd(attr->xrcd) : NULL;
	qp->real = rp_verbs_enter(ctx) ? RP_REAL(RP_SLOT(ctx, open_qp)(ctx->real, &a)) : NULL;
	if (qp->real) {
		qp->qp.context = context;
		qp->qp.qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ?
				    attr->qp_context : NULL;
		qp->qp.handle = qp->real->handle;
		qp->qp.qp_num = qp->real->qp_num;
		qp->qp.qp_type = qp->real->qp_type;
		qp->tailed = true;
		qp->sq.size = qp->rq.size = 1;
		qp->qp.state = qp->real->state;
		qp->init.qp_context = qp->qp.qp_context;
		qp->init.qp_type = qp->qp.qp_type;
		rp_pin(ctx, RP_IMM_XRC);
		rp_link(ctx, &ctx->qps, &qp->node);
	}
	rp_verbs_leave(ctx);
	if (qp->real)
		return &qp->qp;
	saved = errno;
	qp_free(qp);
	errno = saved;
	return NULL;
}

void rp_qp_sweep(struct rp_qp *qp)
{
	if (qp->qp.send_cq)
		rp_cq_sweep(to_rp_cq(qp->qp.send_cq));
	if (qp->qp.recv_cq && qp->qp.recv_cq != qp->qp.send_cq)
		rp_cq_sweep(to_rp_cq(qp->qp.recv_cq));
}

void rp_qp_forget_completions(struct rp_qp *qp)
{
	if (qp->qp.send_cq)
		rp_cq_forget_qp(to_rp_cq(qp->qp.send_cq), qp);
	if (qp->qp.recv_cq && qp->qp.recv_cq != qp->qp.send_cq)
		rp_cq_forget_qp(to_rp_cq(qp->qp.recv_cq), qp);
}

int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct rp_qp *qp = to_rp_qp(ibqp);
	struct rp_context *ctx;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_destroy_qp(ibqp);
	ctx = ctx_of(qp);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	rp_unlink(ctx, &qp->node);	/* so that the control thread finds it no more */
	rp_peer_qp_gone(qp);
	pthread_mutex_lock(&qp->control);
	/* If it is not destroyed they stay readable. */
	rp_qp_sweep(qp);
	ret = RP_REAL(rp_real.ibv_destroy_qp(qp->real));
	pthread_mutex_unlock(&qp->control);
	if (ret) {
		rp_link(ctx, &ctx->qps, &qp->node);
		rp_verbs_leave(ctx);
		return ret;
	}
	rp_qp_forget_completions(qp);
	if (qp->qp.srq)
		unhash(qp);
	rp_async_forget(ctx, qp);
	rp_mw_qp_gone(qp);
	rp_ud_drain_end(qp);
	if (qp->pin >= 0)
		rp_unpin(ctx, qp->pin);
	if (qp->rdmacm)
		rp_unpin(ctx, RP_IMM_RDMACM);
	if (qp->ece)
		rp_unpin(ctx, RP_IMM_ECE);
	rp_verbs_leave(ctx);
	rp_wait_acked(&ibqp->mutex, &ibqp->cond, &qp->async_events_unacked);
	qp_free(qp);
	return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibqp)
{
	struct rp_qp *qp = to_rp_qp(ibqp);

	if (RP_PASSING)
		return rp_real.ibv_qp_to_qp_ex(ibqp);
	return qp->has_ops ? &qp->qpx : NULL;
}

int rp_qp_release(struct rp_qp *qp)
{
	int ret;

	rp_ud_leave(qp);
	rp_lock(&qp->lock);
	ret = RP_REAL(rp_real.ibv_destroy_qp(qp->real));
	if (!ret) {
		qp->real = NULL;
		qp->marker_out = qp->marker_let = false;
	}
	rp_unlock(&qp->lock);
	return -ret;
}

int rp_qp_recreate(struct rp_qp *qp)
{
	struct ibv_qp_cap cap;
	struct ibv_qp *real;

	room_for_marker(qp);
	real = create_untaken(qp, &cap, false);
	if (!real)
		return rp_minus_errno();
	rp_lock(&qp->lock);
	qp->real = real;
	qp->qp.handle = real->handle;
	rp_unlock(&qp->lock);
	if (qp->qp.srq) {
		unhash(qp);
		hash(qp);
	}
	return 0;
}
