/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A move of this process, as its files share it. All on the control thread, but for away.c. */
#ifndef RP_MOVE_H
#define RP_MOVE_H

#include "conn.h"

enum move_state {
	MOVE_CHECK,	/* peers are asked */
	MOVE_CHECKED,
	MOVE_LOCK,	/* waiting for control verbs to return */
	MOVE_GATE,	/* gates closed, the peers' not yet */
	MOVE_DRAIN,
	MOVE_PARKED,	/* released */
	MOVE_CONNECT,	/* recreated; peers are told */
	MOVE_AGAIN,	/* leaves that device for another one */
	MOVE_ABORT,	/* going back on the same device */
};

/**
 * struct rp_move - one operation of the module, in this process
 * @op: its number
 * @dev_index: the device that is left, or that is resumed on
 * @name: of the device that is left
 * @counters: what is told of it
 * @ctxs, @nctxs: contexts whose verbs are locked for writing
 * @next_index, @next_name: in MOVE_AGAIN, the device to be resumed on
 * @force: connections whose peers can not be moved with are given up
 * @connect_told: CONNECT was replied
 * @datagrams: UD queue pairs have not sent all that they were given
 */
struct rp_move {
	struct list_node node;
	uint32_t op;
	uint32_t dev_index;
	uint32_t next_index;
	char name[64];
	char next_name[64];
	enum move_state state;
	struct repath_counters counters;
	struct rp_context **ctxs;	/* locked ones */
	unsigned int nctxs;
	bool force, connect_told, datagrams;
};

extern struct list_head rp_moves;

static inline bool rp_move_has(const struct rp_move *m, const struct rp_context *ctx)
{
	return ctx->move == m;
}

/* move.c */
void rp_move_end(struct rp_move *m);	/* unlocks, and frees it */
void rp_move_open_gates(struct rp_move *m);	/* of what is not moving any more */
int rp_move_release(struct rp_move *m);	/* the device; then it is parked. 0 or -errno */
void rp_move_resume_on(struct rp_move *m, uint32_t dev_index, const char *name,
		       enum repath_stage failed_stage);

/* elsewhere.c */
void rp_elsewhere_resume(struct rp_move *m, uint32_t dev_index, const char *name);
void rp_elsewhere_step(struct rp_move *m);

/* check.c */
void rp_move_check(uint32_t op, uint32_t dev_index, const char *name, bool force);
/* Adds what forbids the move of @ctx to @why. @force: no peer does. */
void rp_move_check_context(struct rp_context *ctx, bool force, char *why, size_t room);

/* rdmacm.c: how many IDs of rdma_cm this process has on a device, or -errno */
int rp_rdmacm_ids(uint32_t dev_index);

/* holders.c: does anybody hold the device but our contexts? Then why it can not be released. */
bool rp_held_by_others(uint32_t dev_index, char *why, size_t room);

/* away.c: devices that are on the move; who opens one waits */
void rp_away_set(const char *name);
void rp_away_clear(const char *name);
bool rp_away_busy(void);	/* a device is being opened or closed by who has no context in the list */
void rp_away_forked(void);

/* verbs_lock.c: a move waits for the verbs of a context that run to end, or does so no more. */
void rp_verbs_want(struct rp_context *ctx, bool want);
void rp_verbs_forked(void);

#endif /* RP_MOVE_H */
