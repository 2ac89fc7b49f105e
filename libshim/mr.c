// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions and the translation of local keys. A key is what the device gave until the context
 * has moved; a region that is registered later keeps its real key too, unless something else has it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl.h"
#include "objects.h"

#define KEY_TRIES 64

static struct rp_context *ctx_of(const struct rp_mr *mr)
{
	return to_rp_context(mr->mr.context);
}

/* What a region is of that is not made again: of a dmabuf, or of device memory. */
struct other {
	struct ibv_dm *dm;	/* NULL: of a dmabuf */
	uint64_t offset;
	int fd;
};

/* Registers for @mr, whose public part is filled in. */
static struct ibv_mr *register_real(struct rp_mr *mr, const struct other *o)
{
	struct rp_context *ctx = ctx_of(mr);
	struct ibv_pd *pd = real_pd(mr->mr.pd);

	switch (mr->how) {
	case RP_MR_REG:
		return RP_REAL(rp_real.ibv_reg_mr(pd, mr->mr.addr, mr->mr.length, mr->access));
	case RP_MR_IOVA:
		return RP_REAL(rp_real.ibv_reg_mr_iova(pd, mr->mr.addr, mr->mr.length, mr->iova,
						       mr->access));
	case RP_MR_IOVA2:
		return RP_REAL(rp_real.ibv_reg_mr_iova2(pd, mr->mr.addr, mr->mr.length, mr->iova,
							mr->access));
	case RP_MR_NULL:
		if (RP_HAS_SLOT(ctx, alloc_null_mr))
			return RP_REAL(RP_SLOT(ctx, alloc_null_mr)(pd));
		break;
	case RP_MR_OTHER:
		if (!o)
			break;
		if (o->dm)
			return RP_REAL(RP_SLOT(ctx, reg_dm_mr)(pd, ((struct rp_dm *)o->dm)->real, o->offset,
							       mr->mr.length, mr->access));
		return RP_REAL(rp_real.ibv_reg_dmabuf_mr(pd, o->offset, mr->mr.length, mr->iova, o->fd,
							 mr->access));
	}
	errno = EOPNOTSUPP;
	return NULL;
}

/* As register_real(), with keys that are nobody's. */
static struct ibv_mr *register_free_keys(struct rp_mr *mr, const struct other *o)
{
	struct ibv_mr *held[KEY_TRIES], *real = NULL;
	int n = 0, saved;

	if (!ctx_of(mr)->epoch)
		return register_real(mr, o);
	while (n < KEY_TRIES) {
		real = register_real(mr, o);
		if (!real || !rp_keys_taken(ctx_of(mr), &real->lkey, real->rkey, mr->how == RP_MR_NULL))
			break;
		held[n++] = real;
		real = NULL;
		errno = EAGAIN;
	}
	saved = errno;
	while (n)
		RP_REAL(rp_real.ibv_dereg_mr(held[--n]));
	errno = saved;
	return real;
}

struct rp_keymap *rp_context_lkeys(struct rp_context *ctx)
{
	struct rp_keymap *map;
	struct rp_mr *mr;
	size_t n = 0;

	rp_lock(&ctx->objects);
	list_for_each(mr, &ctx->mrs, node)
		n++;
	map = rp_keymap_new(NULL, n);
	if (map)
		list_for_each(mr, &ctx->mrs, node)
			if (mr->real)
				rp_keymap_add(map, mr->mr.lkey, mr->real_lkey);
	rp_unlock(&ctx->objects);
	return map;
}

/* In the place of one that is full, which nobody on a list looks into then. Caller holds ctx->objects. */
static void replace_lkeys(struct rp_context *ctx, struct rp_keymap *map)
{
	struct rp_srq *srq;
	struct rp_qp *qp;
	struct rp_wq *wq;

	__atomic_store_n(&ctx->lkeys, map, __ATOMIC_RELEASE);
	/* Whoever still looks into the old one holds the lock under which it posts, or that of the objects. */
	list_for_each(qp, &ctx->qps, node) {
		rp_lock(&qp->lock);
		rp_unlock(&qp->lock);
	}
	list_for_each(srq, &ctx->srqs, node) {
		rp_lock(&srq->pool.lock);
		rp_unlock(&srq->pool.lock);
	}
	list_for_each(wq, &ctx->wqs, node) {
		rp_lock(&wq->pool.lock);
		rp_unlock(&wq->pool.lock);
	}
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Requests may name it by its key. */
static int publish_lkey(struct rp_context *ctx, const struct rp_mr *mr)
{
	struct rp_keymap *old = NULL, *map;
	int ret = 0;

	if (!ctx->epoch)
		return 0;
	rp_lock(&ctx->objects);
	if (!rp_keymap_add(ctx->lkeys, mr->mr.lkey, mr->real_lkey)) {
		old = ctx->lkeys;
		map = rp_keymap_new(old, 1);
		if (map) {
			rp_keymap_add(map, mr->mr.lkey, mr->real_lkey);
			replace_lkeys(ctx, map);
		} else {
			old = NULL;
			ret = -ENOMEM;
		}
	}
	rp_unlock(&ctx->objects);
	if (old) {
		/* The control thread may be at a queue pair that is on no list any more. */
		rp_ctl_call(nothing, NULL);
		rp_keymap_free(old);
	}
	return ret;
}

static struct ibv_mr *fail(struct rp_mr *mr)
{
	int saved = errno;

	free(mr);
	errno = saved;
	return NULL;
}

/* @real is there: the rest. NULL: without memory, and it is the caller's still. */
static struct ibv_mr *finish(struct rp_context *ctx, struct rp_mr *mr, struct ibv_mr *real)
{
	mr->real = real;
	mr->real_lkey = real->lkey;
	mr->real_rkey = real->rkey;
	mr->mr.addr = real->addr;
	mr->mr.length = real->length;
	mr->mr.handle = real->handle;
	mr->mr.lkey = real->lkey;
	mr->mr.rkey = real->rkey;
	rp_keys_add_mr(ctx, mr);
	if (publish_lkey(ctx, mr)) {
		rp_keys_del_mr(ctx, mr);
		mr->real = NULL;
		errno = ENOMEM;
		return NULL;
	}
	return &mr->mr;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned int access, enum rp_mr_how how, const struct other *o, int pin)
{
	struct rp_context *ctx = to_rp_context(pd->context);
	struct rp_mr *mr = calloc(1, sizeof(*mr));
	struct ibv_mr *real, *ret = NULL;
	bool tell;

	if (!mr)
		return NULL;
	mr->mr.context = pd->context;
	mr->mr.pd = pd;
	mr->mr.addr = addr;
	mr->mr.length = length;
	mr->how = how;
	mr->pin = pin;
	mr->iova = iova;
	mr->access = access;
	real = rp_verbs_enter(ctx) ? register_free_keys(mr, o) : NULL;
	if (real) {
		ret = finish(ctx, mr, real);
		if (!ret) {
			RP_REAL(rp_real.ibv_dereg_mr(real));
			errno = ENOMEM;
		}
	}
	if (ret && pin >= 0)
		rp_pin(ctx, pin);
	tell = ctx->epoch && (access & RP_REMOTE_ACCESS);
	rp_verbs_leave(ctx);
	if (!ret)
		return fail(mr);
	/* Without locks: it waits for the peers. */
	if (tell)
		rp_peer_new_key(ctx, mr->key_serial);
	return ret;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (RP_PASSING)
		return rp_real.ibv_reg_mr(pd, addr, length, access);
	return reg(pd, addr, length, (uintptr_t)addr, access, RP_MR_REG, NULL, -1);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	if (RP_PASSING)
		return rp_real.ibv_reg_mr_iova(pd, addr, length, iova, access);
	return reg(pd, addr, length, iova, access, RP_MR_IOVA, NULL, -1);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	if (RP_PASSING)
		return rp_real.ibv_reg_mr_iova2(pd, addr, length, iova, access);
	return reg(pd, addr, length, iova, access, RP_MR_IOVA2, NULL, -1);
}

struct ibv_mr *rp_alloc_null_mr(struct ibv_pd *pd)
{
	return reg(pd, NULL, 0, 0, 0, RP_MR_NULL, NULL, -1);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	const struct other o = { .offset = offset, .fd = fd };

	if (RP_PASSING)
		return rp_real.ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
	return reg(pd, NULL, length, iova, access, RP_MR_OTHER, &o, RP_IMM_DMABUF_MR);
}

struct ibv_mr *rp_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			    unsigned int access)
{
	const struct other o = { .dm = dm, .offset = offset };

	/* The device memory itself is what can not be moved. */
	return reg(pd, NULL, length, 0, access, RP_MR_OTHER, &o, -1);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct rp_context *ctx = to_rp_context(pd->context);
	struct ibv_mr *real, *ret = NULL;
	struct rp_mr *mr;

	if (RP_PASSING)
		return rp_real.ibv_import_mr(pd, handle);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->how = RP_MR_OTHER;
	mr->mr.context = pd->context;
	mr->mr.pd = pd;
	mr->pin = RP_IMM_IMPORTED;
	real = rp_verbs_enter(ctx) ? RP_REAL(rp_real.ibv_import_mr(real_pd(pd), handle)) : NULL;
	if (real) {
		ret = finish(ctx, mr, real);
		if (ret)
			rp_pin(ctx, RP_IMM_IMPORTED);
		else
			RP_REAL_VOID(rp_real.ibv_unimport_mr(real));
	}
	rp_verbs_leave(ctx);
	return ret ? ret : fail(mr);
}

static void going(struct rp_context *ctx, struct rp_mr *mr, bool is)
{
	rp_lock(&ctx->objects);
	mr->going = is;
	rp_unlock(&ctx->objects);
}

void ibv_unimport_mr(struct ibv_mr *ibmr)
{
	struct rp_context *ctx = to_rp_context(ibmr->context);
	struct rp_mr *mr = to_rp_mr(ibmr);

	if (RP_PASSING) {
		rp_real.ibv_unimport_mr(ibmr);
		return;
	}
	if (!rp_verbs_enter(ctx)) {
		rp_verbs_leave(ctx);
		return;
	}
	going(ctx, mr, true);
	RP_REAL_VOID(rp_real.ibv_unimport_mr(mr->real));
	rp_keys_del_mr(ctx, mr);
	rp_unpin(ctx, RP_IMM_IMPORTED);
	rp_verbs_leave(ctx);
	free(mr);
}

int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct rp_context *ctx = to_rp_context(ibmr->context);
	struct rp_mr *mr = to_rp_mr(ibmr);
	uint32_t rkey;
	bool tell, told;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_rereg_mr(ibmr, flags, pd, addr, length, access);
	if (!rp_verbs_enter(ctx)) {
		rp_verbs_leave(ctx);
		return IBV_REREG_MR_ERR_CMD;
	}
	rkey = mr->real_rkey;
	told = rp_mr_is_told(mr);
	ret = RP_REAL(rp_real.ibv_rereg_mr(mr->real, flags, real_pd(pd), addr, length, access));
	rp_lock(&ctx->objects);		/* peers may be told of it at this moment */
	if (!ret || ret == IBV_REREG_MR_ERR_DO_FORK_OLD) {
		if (flags & IBV_REREG_MR_CHANGE_PD)
			mr->mr.pd = pd;
		if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
			mr->mr.addr = addr;
			mr->mr.length = length;
			mr->iova = (uintptr_t)addr;
		}
		if (flags & IBV_REREG_MR_CHANGE_ACCESS)
			mr->access = access;
	}
	mr->real_lkey = mr->real->lkey;
	mr->real_rkey = mr->real->rkey;
	if (!ctx->epoch) {
		mr->mr.lkey = mr->real->lkey;
		mr->mr.rkey = mr->real->rkey;
	}
	tell = rp_keys_change_mr(ctx, mr, told, rkey);
	rp_unlock(&ctx->objects);
	publish_lkey(ctx, mr);		/* it has a place in the table */
	rp_verbs_leave(ctx);
	if (tell)
		rp_peer_new_key(ctx, mr->key_serial);
	return ret;
}

int ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct rp_context *ctx;
	struct rp_mr *mr;
	bool tell;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_dereg_mr(ibmr);
	ctx = to_rp_context(ibmr->context);
	mr = to_rp_mr(ibmr);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	going(ctx, mr, true);
	ret = RP_REAL(rp_real.ibv_dereg_mr(mr->real));
	if (ret) {
		going(ctx, mr, false);
	} else {
		rp_keys_del_mr(ctx, mr);
		if (mr->how == RP_MR_OTHER && mr->pin >= 0)
			rp_unpin(ctx, mr->pin);
	}
	tell = !ret && ctx->epoch;
	rp_verbs_leave(ctx);
	if (tell)
		rp_peer_key_removed(ctx);
	if (!ret)
		free(mr);
	return ret;
}

int rp_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg, uint32_t n)
{
	struct rp_context *ctx = to_rp_context(pd->context);
	struct ibv_sge *copy = n ? malloc(n * sizeof(*copy)) : NULL;
	const struct rp_keymap *lkeys;
	uint32_t i;
	int ret;

	if (n && !copy)
		return ENOMEM;
	ret = rp_verbs_enter(ctx) ? 0 : ENODEV;
	rp_lock(&ctx->objects);		/* until then replace_lkeys() waits */
	lkeys = __atomic_load_n(&ctx->lkeys, __ATOMIC_ACQUIRE);
	for (i = 0; i < n && !ret; i++) {
		copy[i] = sg[i];
		if (lkeys && !rp_keymap_find(lkeys, sg[i].lkey, &copy[i].lkey))
			ret = EINVAL;
	}
	rp_unlock(&ctx->objects);
	if (!ret)
		ret = RP_REAL(RP_SLOT(ctx, advise_mr)(real_pd(pd), advice, flags, copy, n));
	rp_verbs_leave(ctx);
	free(copy);
	return ret;
}

int rp_mr_release(struct rp_mr *mr)
{
	int ret = RP_REAL(rp_real.ibv_dereg_mr(mr->real));

	if (ret)
		return -ret;
	mr->real = NULL;
	return 0;
}

/*
 * Has the program given the memory back, or its right to it, and not deregistered it yet, as caches of
 * registrations and allocators do? The old device had its pages still; nobody can get them again.
 */
static bool memory_is_gone(const struct rp_mr *mr, int err)
{
	uintptr_t addr = (uintptr_t)mr->mr.addr, from = addr & -(uintptr_t)sysconf(_SC_PAGESIZE);

	if (mr->how == RP_MR_NULL || mr->how == RP_MR_OTHER || !addr || !mr->mr.length)
		return false;
	return err == EFAULT || (msync((void *)from, addr - from + mr->mr.length, MS_ASYNC) && errno == ENOMEM);
}

/* In place of memory that is gone, so that the key fails as any key without a right does. */
static struct ibv_mr *register_nothing(struct rp_mr *mr)
{
	static char nothing[4096] __attribute__((aligned(4096)));

	rp_log(RP_LOG_INFO, "memory at %p, %zu bytes, is not the program's any more: key 0x%x leads nowhere",
	       mr->mr.addr, mr->mr.length, mr->mr.lkey);
	return RP_REAL(rp_real.ibv_reg_mr(real_pd(mr->mr.pd), nothing, 1, 0));
}

int rp_mr_recreate(struct rp_mr *mr)
{
	int err;

	mr->real = register_real(mr, NULL);
	err = errno;
	if (!mr->real && memory_is_gone(mr, err))
		mr->real = register_nothing(mr);
	else
		errno = err;
	if (!mr->real)
		return rp_minus_errno();
	mr->real_lkey = mr->real->lkey;
	mr->real_rkey = mr->real->rkey;
	mr->mr.handle = mr->real->handle;	/* others import it by that */
	return 0;
}
