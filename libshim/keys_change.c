// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which of this process's keys have changed since a move. Each change has a number, by which peers
 * are told what they do not know yet (keys_stream.c).
 */
#include <stdlib.h>

#include "mw.h"

unsigned int rp_removed_keys_max = 4096;

/* Caller holds ctx->objects. */
static uint32_t next_serial(struct rp_context *ctx)
{
	return ctx->epoch ? ++ctx->key_serial : 0;
}

/* Of all up to this change. Caller holds ctx->objects. */
static void forget(struct rp_context *ctx, uint32_t serial)
{
	struct rp_removed_key *gone, *tmp;

	list_for_each_safe(gone, tmp, &ctx->removed_keys, node) {
		if (gone->serial > serial)
			break;
		if (gone->serial > ctx->keys_forgotten)
			ctx->keys_forgotten = gone->serial;
		ctx->nremoved_keys--;
		list_del(&gone->node);
		free(gone);
	}
}

/*
 * Caller holds ctx->objects. Noted before the device can give the number to somebody else: until
 * the peers have heard of it, it stands for nothing new.
 */
static void removed(struct rp_context *ctx, uint32_t virt, uint32_t real, bool window)
{
	struct rp_removed_key *gone;

	if (!ctx->epoch)
		return;
	gone = malloc(sizeof(*gone));
	if (!gone) {
		/* Then all peers are told anew what there is. */
		ctx->keys_forgotten = next_serial(ctx);
		return;
	}
	gone->virt = virt;
	gone->real = real;
	gone->window = window;
	gone->serial = next_serial(ctx);
	list_add_tail(&ctx->removed_keys, &gone->node);
	if (++ctx->nremoved_keys > rp_removed_keys_max)
		forget(ctx, list_first(&ctx->removed_keys, struct rp_removed_key, node)->serial);
}

static bool same(uint32_t a, uint32_t b, bool window)
{
	return !((a ^ b) & (window ? ~RP_MW_TAG : UINT32_MAX));
}

bool rp_keys_taken(struct rp_context *ctx, const uint32_t *lkey, uint32_t rkey, bool null)
{
	const bool window = !lkey;
	struct rp_removed_key *gone;
	struct rp_mr *mr;
	struct rp_mw *mw;
	bool taken = false;

	rp_lock(&ctx->objects);
	list_for_each(mr, &ctx->mrs, node) {
		if (null && mr->how == RP_MR_NULL)
			continue;
		/* Its real one, too, while it is on its way out of the list. */
		taken = same(mr->mr.rkey, rkey, window) || same(mr->real_rkey, rkey, window) ||
			(lkey && mr->mr.lkey == *lkey);
		if (taken)
			break;
	}
	list_for_each(gone, &ctx->removed_keys, node)
		taken |= same(gone->virt, rkey, window || gone->window) ||
			 same(gone->real, rkey, window || gone->window);
	rp_lock(&ctx->mws_lock);
	list_for_each(mw, &ctx->mws, node)
		taken |= same(mw->index, rkey, true);
	rp_unlock(&ctx->mws_lock);
	rp_unlock(&ctx->objects);
	return taken;
}

void rp_keys_add_mr(struct rp_context *ctx, struct rp_mr *mr)
{
	rp_lock(&ctx->objects);
	ctx->keys_shared |= mr->how == RP_MR_NULL || mr->how == RP_MR_OTHER;
	mr->key_serial = next_serial(ctx);
	list_add_tail(&ctx->mrs, &mr->node);
	rp_unlock(&ctx->objects);
}

/* Null regions of a device may have one key, and so have those that are imported. */
static const struct rp_mr *sharing(const struct rp_context *ctx, const struct rp_mr *gone, bool local)
{
	const struct rp_mr *mr;

	if (!ctx->keys_shared)
		return NULL;
	list_for_each(mr, &ctx->mrs, node)
		if (local ? mr->mr.lkey == gone->mr.lkey : rp_mr_is_told(mr) && mr->mr.rkey == gone->mr.rkey)
			return mr;
	return NULL;
}

void rp_keys_del_mr(struct rp_context *ctx, struct rp_mr *mr)
{
	const struct rp_mr *other;

	rp_lock(&ctx->objects);
	list_del(&mr->node);
	other = sharing(ctx, mr, true);
	if (ctx->epoch && other)
		rp_keymap_add(ctx->lkeys, other->mr.lkey, other->real_lkey);
	else if (ctx->epoch)
		rp_keymap_remove(ctx->lkeys, mr->mr.lkey);
	if (rp_mr_is_told(mr) && !sharing(ctx, mr, false))
		removed(ctx, mr->mr.rkey, mr->real_rkey, false);
	rp_unlock(&ctx->objects);
}

bool rp_keys_change_mr(struct rp_context *ctx, struct rp_mr *mr, bool told, uint32_t real_rkey)
{
	if (!ctx->epoch || (mr->real_rkey == real_rkey && told == rp_mr_is_told(mr)))
		return false;
	list_del(&mr->node);
	if (told)
		removed(ctx, mr->mr.rkey, real_rkey, false);
	mr->key_serial = next_serial(ctx);
	list_add_tail(&ctx->mrs, &mr->node);
	return true;
}

void rp_keys_add_mw(struct rp_context *ctx, struct rp_mw *mw)
{
	rp_lock(&ctx->objects);
	rp_lock(&ctx->mws_lock);
	mw->key_serial = next_serial(ctx);
	list_add_tail(&ctx->mws, &mw->node);
	rp_unlock(&ctx->mws_lock);
	rp_unlock(&ctx->objects);
}

void rp_keys_del_mw(struct rp_context *ctx, struct rp_mw *mw)
{
	rp_lock(&ctx->objects);
	rp_lock(&ctx->mws_lock);
	list_del(&mw->node);
	rp_unlock(&ctx->mws_lock);
	removed(ctx, mw->index, mw->real->rkey & ~RP_MW_TAG, true);
	rp_unlock(&ctx->objects);
}

void rp_keys_forget_removed(struct rp_context *ctx, uint32_t serial)
{
	rp_lock(&ctx->objects);
	forget(ctx, serial);
	if (serial > ctx->key_serial)
		serial = ctx->key_serial;
	if (serial > ctx->keys_clean)
		ctx->keys_clean = serial;
	rp_unlock(&ctx->objects);
}

void rp_keys_renumber(struct rp_context *ctx)
{
	struct rp_mr *mr;
	struct rp_mw *mw;

	rp_lock(&ctx->objects);
	forget(ctx, UINT32_MAX);
	rp_keys_new_table(ctx);
	ctx->key_serial = ctx->keys_forgotten = ctx->keys_clean = 0;
	list_for_each(mr, &ctx->mrs, node)
		mr->key_serial = next_serial(ctx);
	list_for_each(mw, &ctx->mws, node)
		mw->key_serial = next_serial(ctx);
	rp_unlock(&ctx->objects);
}

void rp_keys_changes_free(struct rp_context *ctx)
{
	forget(ctx, UINT32_MAX);
}
