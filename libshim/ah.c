// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address handles. The application's stands for an address as it knew it; the device's are made for
 * where that is now.
 */
#include <stdlib.h>
#include <string.h>

#include "resolve.h"
#include "ud.h"

static struct ibv_ah_attr with_real_sgid(struct rp_context *ctx, const struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr a = *attr;

	if (a.is_global)
		a.grh.sgid_index = rp_real_sgid(ctx, a.port_num, a.grh.sgid_index);
	return a;
}

/* With the numbers of the device that is there now. */
static struct ibv_ah *make(struct rp_context *ctx, struct ibv_pd *pd,
			   const struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr a = with_real_sgid(ctx, attr);

	return RP_REAL(rp_real.ibv_create_ah(real_pd(pd), &a));
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct rp_context *ctx;
	struct rp_ah *ah;
	bool made;
	int saved;

	if (RP_PASSING)
		return rp_real.ibv_create_ah(pd, attr);
	ctx = to_rp_context(pd->context);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->attr = *attr;
	ah->to = ah->few;
	ah->rows = RP_AH_ROWS;
	ah->real = rp_verbs_enter(ctx) ? make(ctx, pd, attr) : NULL;
	ah->own.ah = ah->real;
	ah->own.attr = with_real_sgid(ctx, attr);
	ah->own.lid = attr->dlid;
	if (ah->real) {
		ah->ah.context = pd->context;
		ah->ah.pd = pd;
		ah->ah.handle = ah->real->handle;
		rp_link(ctx, &ctx->ahs, &ah->node);
	}
	made = ah->real;	/* from here on it may be moved */
	rp_verbs_leave(ctx);
	if (made)
		return &ah->ah;
	saved = errno;
	free(ah);
	errno = saved;
	return NULL;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port)
{
	struct ibv_ah_attr attr;

	if (RP_PASSING)
		return rp_real.ibv_create_ah_from_wc(pd, wc, grh, port);
	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

static void forget_real(struct rp_ah_real **list)
{
	while (*list) {
		struct rp_ah_real *next = (*list)->next;

		free(*list);
		*list = next;
	}
}

/* Of all that was sent to by @ah. */
static void forget(struct rp_ah *ah)
{
	unsigned int i;

	forget_real(&ah->own.next);
	for (i = 0; i < ah->rows; i++)
		while (ah->to[i]) {
			struct rp_ah_to *t = ah->to[i];

			ah->to[i] = t->next;
			forget_real(&t->real);
			rp_dest_put(t->dest);
			free(t);
		}
	if (ah->to != ah->few)
		free(ah->to);
}

static int destroy_list(struct rp_ah_real *r)
{
	int ret = 0;

	for (; r && !ret; r = r->next) {
		if (r->ah)
			ret = RP_REAL(rp_real.ibv_destroy_ah(r->ah));
		if (!ret)
			r->ah = NULL;
	}
	return ret;
}

static int destroy_real(struct rp_ah *ah)
{
	struct rp_ah_to *t;
	unsigned int i;
	int ret;

	ret = destroy_list(ah->own.next);
	for (i = 0; i < ah->rows; i++)
		for (t = ah->to[i]; t && !ret; t = t->next)
			ret = destroy_list(t->real);
	if (!ret)
		ret = RP_REAL(rp_real.ibv_destroy_ah(ah->real));
	if (!ret)
		ah->real = NULL;
	return ret;
}

/* Where the control thread finds it, and its least used addresses are dropped. */
static void list(struct rp_context *ctx, struct rp_ah *ah, bool on)
{
	rp_lock(&ctx->objects);
	rp_ah_list_all(ctx, ah, on);
	if (on)
		list_add_tail(&ctx->ahs, &ah->node);
	else
		list_del(&ah->node);
	rp_unlock(&ctx->objects);
}

int ibv_destroy_ah(struct ibv_ah *ibah)
{
	struct rp_ah *ah = (struct rp_ah *)ibah;
	struct rp_context *ctx;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_destroy_ah(ibah);
	ctx = to_rp_context(ibah->context);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	list(ctx, ah, false);
	ret = destroy_real(ah);
	if (ret)
		list(ctx, ah, true);
	rp_verbs_leave(ctx);
	if (ret)
		return ret;
	forget(ah);
	free(ah);
	return 0;
}

void rp_ahs_free(struct rp_context *ctx)
{
	while (!list_empty(&ctx->ahs)) {
		struct rp_ah *ah = list_first(&ctx->ahs, struct rp_ah, node);

		list(ctx, ah, false);
		forget(ah);
		free(ah);
	}
	rp_ah_eras_free(ctx);
}

struct ibv_ah *rp_ah_to_self(struct rp_context *ctx, struct ibv_pd *pd,
			     const struct ibv_ah_attr *like)
{
	struct ibv_port_attr port = { 0 };
	struct ibv_ah_attr a = *like;

	if (a.is_global && RP_REAL(rp_real.ibv_query_gid(ctx->real, a.port_num,
							 rp_real_sgid(ctx, a.port_num,
								      a.grh.sgid_index),
							 &a.grh.dgid)))
		return NULL;
	if (RP_REAL(rp_real.ibv_query_port(ctx->real, a.port_num, (void *)&port)))
		return NULL;
	a.dlid = port.lid;
	a.src_path_bits = 0;
	return make(ctx, pd, &a);
}

int rp_ah_release(struct rp_ah *ah)
{
	int ret;

	rp_lock(&ah->lock);
	ret = destroy_real(ah);
	rp_unlock(&ah->lock);
	return -ret;
}

/*
 * On RoCE the kernel asks for the neighbour's MAC when an address handle is made. That of a host
 * that is not there must not keep everything else from going on: what is sent to it is lost, as
 * it would be on the way. 0, or the errno of a device on which no address can be made.
 */
static int make_or_lose(struct rp_ah *ah, const struct ibv_ah_attr *real_attr, struct rp_ah_real *r)
{
	struct rp_context *ctx = to_rp_context(ah->ah.context);
	struct ibv_ah_attr a = *real_attr;

	r->attr = a;
	r->ah = RP_REAL(rp_real.ibv_create_ah(real_pd(ah->ah.pd), &a));
	r->nowhere = !r->ah;
	if (r->ah)
		return 0;
	rp_log(RP_LOG_ERR, "an address handle can not be made: %s; what is sent by it is lost",
	       strerror(errno));
	r->ah = rp_ah_to_self(ctx, ah->ah.pd, &ah->attr);
	return r->ah ? 0 : errno;
}

static bool same_way(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b)
{
	return a->dlid == b->dlid && a->sl == b->sl && a->static_rate == b->static_rate &&
	       (!a->is_global || (a->grh.sgid_index == b->grh.sgid_index &&
				  a->grh.traffic_class == b->grh.traffic_class &&
				  !memcmp(&a->grh.dgid, &b->grh.dgid, sizeof(a->grh.dgid))));
}

/*
 * Takes over where the destination is. Caller holds ah->lock, and the device stays. @tried: the handle's own
 * address just now; who is still there is not waited for again.
 */
static int follow(struct rp_ah *ah, struct rp_ah_to *t, bool tried)
{
	struct rp_context *ctx = to_rp_context(ah->ah.context);
	unsigned int changes = atomic_load(&t->dest->changes);
	struct rp_place now = rp_dest_now(t->dest);
	struct ibv_ah_attr given, want;
	struct rp_ah_real *r;
	uint16_t lid;
	int ret;

	rp_dest_av(ctx, &ah->attr, &now, &want);
	given = ah->attr;
	if (given.is_global)
		given.grh.sgid_index = want.grh.sgid_index;
	if (!t->real && (tried || !ah->own.nowhere) && want.dlid == given.dlid &&
	    (!want.is_global || !memcmp(&want.grh.dgid, &given.grh.dgid, sizeof(want.grh.dgid))))
		goto there;
	lid = want.dlid;
	rp_ah_redirect(rp_ah_path_is_of(&t->path, &want) ? &t->path : &ah->path, &want);
	/* On RoCE another HCA may have the GID now, and a handle has the MAC of the one before. */
	if (t->real && !t->real->nowhere && same_way(&t->real->attr, &want) &&
	    (want.dlid || now.qpn == t->real_qpn))
		goto there;
	r = calloc(1, sizeof(*r));
	if (!r)
		return ENOMEM;
	r->lid = lid;
	rp_log(RP_LOG_INFO, "UD QP 0x%x is now 0x%x, at another address", t->qpn, now.qpn);
	ret = make_or_lose(ah, &want, r);
	if (ret) {
		free(r);
		return ret;
	}
	r->next = t->real;
	t->real = r;
there:
	t->seen = changes;
	t->real_qpn = now.qpn;
	return 0;
}

int rp_ah_recreate(struct rp_ah *ah)
{
	struct rp_context *ctx = to_rp_context(ah->ah.context);
	struct ibv_ah_attr a = with_real_sgid(ctx, &ah->attr);
	struct rp_ah_to *t;
	unsigned int i;
	int ret;

	rp_ah_redirect(&ah->path, &a);
	rp_lock(&ah->lock);
	forget_real(&ah->own.next);
	ret = make_or_lose(ah, &a, &ah->own);
	ah->real = ah->own.ah;
	for (i = 0; i < ah->rows; i++)
		for (t = ah->to[i]; t && !ret; t = t->next) {
			/* Nothing is on its way by the old ones. */
			forget_real(&t->real);
			ret = follow(ah, t, true);
		}
	rp_unlock(&ah->lock);
	return -ret;
}

/* Caller holds ah->lock. */
static struct rp_ah_to *find(const struct rp_ah *ah, uint32_t qpn)
{
	struct rp_ah_to *t;

	for (t = *rp_ah_row(ah, qpn); t; t = t->next)
		if (t->qpn == qpn)
			break;
	return t;
}

static bool is_group(const struct ibv_ah_attr *attr, uint32_t qpn)
{
	static const uint8_t v4[13] = { [10] = 0xff, 0xff, 0xe0 };
	const uint8_t *raw = attr->grh.dgid.raw;

	return qpn == 0xffffff || (attr->is_global && (raw[0] == 0xff ||
			(!memcmp(raw, v4, 12) && (raw[12] & 0xf0) == 0xe0)));
}

static void chain(struct rp_ah *ah, struct rp_ah_to *t)
{
	struct rp_ah_to **row = rp_ah_row(ah, t->qpn);

	t->next = *row;
	*row = t;
}

/* Without memory it stays as it is. */
static void grow(struct rp_ah *ah)
{
	struct rp_ah_to **few = ah->to, **more = calloc(2 * ah->rows, sizeof(*more)), *t;
	unsigned int i, n = ah->rows;

	if (!more)
		return;
	ah->to = more;
	ah->rows = 2 * n;
	for (i = 0; i < n; i++)
		while ((t = few[i])) {
			few[i] = t->next;
			chain(ah, t);
		}
	if (few != ah->few)
		free(few);
}

/* Caller holds ah->lock. */
static void link_to(struct rp_context *ctx, struct rp_ah *ah, struct rp_ah_to *t)
{
	if (ah->n >= 2 * ah->rows)
		grow(ah);
	chain(ah, t);
	ah->n++;
	rp_ah_used_first(ctx, t);
}

static struct rp_ah_to *add(struct rp_ah *ah, uint32_t qpn)
{
	struct rp_context *ctx = to_rp_context(ah->ah.context);
	struct rp_ah_to *t = calloc(1, sizeof(*t)), *was;

	if (!t)
		return NULL;
	t->ah = ah;
	t->qpn = t->real_qpn = qpn;
	t->dest = rp_dest_get(ctx, &ah->attr, qpn);
	if (!t->dest) {
		free(t);
		return NULL;
	}
	rp_lock(&ah->lock);
	was = find(ah, qpn);
	if (!was)
		link_to(ctx, ah, t);
	rp_unlock(&ah->lock);
	if (!was) {
		rp_ah_drop_unused(ctx);
		return t;
	}
	rp_dest_put(t->dest);	/* another thread was faster */
	free(t);
	return was;
}

static void prepare(struct rp_ah *ah, uint32_t qpn)
{
	struct rp_context *ctx = to_rp_context(ah->ah.context);
	struct rp_ah_to *t;

	rp_lock(&ah->lock);
	t = find(ah, qpn);
	if (t && unlikely(t->used != rp_ah_used_now()))
		rp_ah_used_again(ctx, t);
	rp_unlock(&ah->lock);
	if (!t)
		t = add(ah, qpn);
	if (!t || likely(atomic_load(&t->dest->changes) == t->seen))
		return;
	/* Away: all of this is made anew when it is back. */
	if (!rp_verbs_try_enter(ctx))
		return;
	rp_lock(&ah->lock);
	if (ctx->real && atomic_load(&t->dest->changes) != t->seen)
		follow(ah, t, false);
	rp_unlock(&ah->lock);
	rp_ah_retire(ctx, ah, t);
	rp_verbs_leave(ctx);
}

uint64_t rp_ah_prepare(struct rp_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t since = rp_ah_used_now();

	/* None of these is dropped until it is posted. */
	if (!atomic_fetch_add(&qp->ud_posting, 1))
		atomic_store(&qp->ud_posting_since, since);
	for (; wr && !rp_no_remap; wr = wr->next) {
		struct rp_ah *ah = (struct rp_ah *)wr->wr.ud.ah;

		if (ah && !is_group(&ah->attr, wr->wr.ud.remote_qpn))
			prepare(ah, wr->wr.ud.remote_qpn);
	}
	return since;
}

void rp_ah_real(struct ibv_send_wr *wr)
{
	struct rp_ah *ah = (struct rp_ah *)wr->wr.ud.ah;
	struct rp_ah_real *r;
	struct rp_ah_to *t;

	if (!ah)
		return;
	rp_lock(&ah->lock);
	t = find(ah, wr->wr.ud.remote_qpn);
	r = t && t->real ? t->real : &ah->own;
	wr->wr.ud.ah = r->ah;
	r->named = true;
	if (t)
		wr->wr.ud.remote_qpn = t->real_qpn;
	if (r->nowhere)
		wr->wr.ud.remote_qpn = RP_QPN_NOBODY;
	rp_unlock(&ah->lock);
}
