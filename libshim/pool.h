/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests that do not complete in the order in which they were posted. */
#ifndef RP_POOL_H
#define RP_POOL_H

#include "objects.h"

/* In the order of posting; 0, or the provider's error and the first that it did not take. */
typedef int rp_pool_post_fn(void *owner, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

void rp_pool_init(struct rp_pool *p, struct rp_context *ctx, unsigned int max_sge,
		  rp_pool_post_fn *post, void *owner);
void rp_pool_free(struct rp_pool *p);

/* As ibv_post_srq_recv(). */
int rp_pool_post(struct rp_pool *p, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* A request has come back: false when the completion is not for the application. */
bool rp_pool_completed(struct rp_slot *slot, struct ibv_wc *wc);

/* The device's queue is gone with all that was in it: what is posted is kept, up to p->max. Caller
 * holds p->lock, since before it went. */
void rp_pool_away(struct rp_pool *p);

/* Gives the device what it has not (any more), in order: how many, or -errno. */
int rp_pool_submit(struct rp_pool *p);

#endif /* RP_POOL_H */
