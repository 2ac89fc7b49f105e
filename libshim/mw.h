/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows. A window's key has an index in its upper 24 bits, which the device gives, and a
 * tag in the lower 8, which each bind chooses: the index is translated, the tag stays.
 */
#ifndef RP_MW_H
#define RP_MW_H

#include "objects.h"

#define RP_MW_TAG	0xffu

/**
 * struct rp_mw_state - what a bind or an invalidation makes of a window
 * @qp: by which it was bound last; NULL when that is gone
 * @key: as the application knows it
 */
struct rp_mw_state {
	bool bound;
	struct rp_qp *qp;
	uint32_t key;
	struct ibv_mw_bind_info info;	/* our mr */
};

/**
 * struct rp_mw - a window; under ctx->mws_lock
 * @mw: rkey as the application knows it; @index: upper 24 bits of that, for ever
 * @real_index: the same of @real; its lower 8 bits change with each bind that is posted
 * @now: what all requests that are executed have made of it
 * @posted: struct rp_mw_request, requests that may not have been, oldest first
 * @rebind: @now, or its key, is not true on the device that is there
 */
struct rp_mw {
	struct ibv_mw mw;
	struct ibv_mw *real;
	uint32_t index;
	uint32_t real_index;
	struct rp_mw_state now;
	struct list_head posted;
	bool rebind;
	uint32_t key_serial;	/* of its making, after a move; under ctx->objects, too */
	struct list_node node;
};

/* mw.c. A BIND_MW or LOCAL_INV has been put into the log; caller holds qp->lock. */
void rp_mw_logged(struct rp_qp *qp, const struct rp_slot *s);
/* What the device did not take was taken back from the log. */
void rp_mw_rolled_back(struct rp_qp *qp);
/* The request with the device's handles and keys. */
void rp_mw_real_bind(struct ibv_send_wr *wr);
void rp_mw_real_inv(const struct rp_qp *qp, struct ibv_send_wr *wr);
/* A message has invalidated a window: its key for the application. */
void rp_mw_invalidated(struct rp_qp *qp, struct ibv_wc *wc);
/* The bind of a type 1 window that was logged, by the device's own verb; positive errno. */
int rp_mw_bind_type1(struct rp_qp *qp, struct rp_slot *s);
bool rp_mw_is_type1(const struct ibv_send_wr *wr);
/* Its requests are numbered from 0 again; or it is destroyed. */
void rp_mw_qp_reset(struct rp_qp *qp);
void rp_mw_qp_gone(struct rp_qp *qp);

/* For moves; 0 or -errno. */
int rp_mw_release(struct rp_mw *mw);
int rp_mw_recreate(struct rp_mw *mw);
/* Binds the windows of @qp again, which is in RTS: to be asked until it says that they are. */
bool rp_mw_rebound(struct rp_qp *qp);

#endif /* RP_MW_H */
