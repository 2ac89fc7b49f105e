/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Datagrams: address handles, and queue pairs that are connected to nobody. */
#ifndef RP_UD_H
#define RP_UD_H

#include "objects.h"

/* No queue pair has this number: what is sent to it is dropped, and takes nobody's receive. */
#define RP_QPN_NOBODY	0xfffffe

/**
 * struct rp_ah_real - what the device has for an address
 * @attr: as the device was given it
 * @lid: DLID of the address, which a path may have exchanged in @attr
 * @nowhere: the address can not be made: goes to nobody
 * @named: a request was given it
 * @era: of one that another has taken the place of: it goes when that is over
 * @next: an older one, which requests on their way may name
 */
struct rp_ah_real {
	struct ibv_ah *ah;
	struct ibv_ah_attr attr;
	uint16_t lid;
	bool nowhere, named;
	struct rp_ah_era *era;
	struct rp_ah_real *next;
};

/**
 * struct rp_ah_path - another path than that of the application's address
 * @there: there is one
 * @dlid: of the address; 0 on RoCE
 * @gid: to that, where the address has one
 * @to_dlid, @sl, @rate, with @gid @tclass: instead
 */
struct rp_ah_path {
	bool there;
	uint16_t dlid, to_dlid;
	uint8_t sl, tclass, rate;
	union ibv_gid gid;
};

/**
 * struct rp_ah_to - a queue pair that is sent to by an address handle
 * @qpn: as the application knows it; @real_qpn: its number now
 * @dest: where it is, kept up to date
 * @seen: dest->changes when the rest was made of it
 * @real: where it is not at the handle's own address (any more)
 * @path: to there
 * @ah: by which
 * @used: when last, see rp_ah_used_now(); this and @node under ctx->ah_tos_lock
 */
struct rp_ah_to {
	uint32_t qpn, real_qpn;
	struct rp_dest *dest;
	unsigned int seen;
	struct rp_ah_real *real;
	struct rp_ah_path path;
	struct rp_ah *ah;
	uint64_t used;
	struct list_node node;		/* ctx->ah_tos */
	struct rp_ah_to *next;
};

#define RP_AH_ROWS 8

/*
 * So many are kept by a process, below REPATH_RESOLVES_MAX, since each of its contexts may have a few of them in any
 * case (ah_unused.c). Tests keep fewer.
 */
extern unsigned int rp_ah_to_max;

/**
 * struct rp_ah - an address handle
 * @attr: as the application gave it
 * @own: the device's for @attr; @path: to there
 * @lock: of all that follows
 * @to: by number, @n in @rows; @few: the first rows
 */
struct rp_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
	struct rp_ah_real own;
	struct rp_ah_path path;
	struct rp_lock lock;
	struct rp_ah_to **to, *few[RP_AH_ROWS];
	unsigned int rows, n;
	struct ibv_ah *real;		/* own.ah; NULL while released */
	struct list_node node;
};

static inline struct rp_ah_to **rp_ah_row(const struct rp_ah *ah, uint32_t qpn)
{
	return &ah->to[qpn & (ah->rows - 1)];
}

/* ah.c. The device's own, to the port that @like leaves by; NULL: errno. */
struct ibv_ah *rp_ah_to_self(struct rp_context *ctx, struct ibv_pd *pd,
			     const struct ibv_ah_attr *like);
void rp_ahs_free(struct rp_context *ctx);	/* those that the application forgot */
int rp_ah_release(struct rp_ah *ah);	/* these two: 0 or -errno */
int rp_ah_recreate(struct rp_ah *ah);
/*
 * Before requests are posted, without locks: finds out where those are whom they are for. The first
 * time that somebody is sent to, this waits a little for the answer. Returns what rp_ah_posted() is to be told.
 */
uint64_t rp_ah_prepare(struct rp_qp *qp, const struct ibv_send_wr *wr);
/* Puts the device's handle and number into a request; caller holds the queue pair's lock. */
void rp_ah_real(struct ibv_send_wr *wr);

/* ah_unused.c */
uint64_t rp_ah_used_now(void);
/* Callers of both hold ah->lock. */
void rp_ah_used_first(struct rp_context *ctx, struct rp_ah_to *t);
void rp_ah_used_again(struct rp_context *ctx, struct rp_ah_to *t);
/* Those of a handle that is about to be destroyed, or is not after all. Caller holds ctx->objects. */
void rp_ah_list_all(struct rp_context *ctx, struct rp_ah *ah, bool on);
/* The longest unused ones, where there are too many. Called without locks. */
void rp_ah_drop_unused(struct rp_context *ctx);
/* What was prepared for has been given to the device, or waits, or was refused. Caller holds the queue pair's lock. */
void rp_ah_posted(struct rp_qp *qp, uint64_t since);

/* ah_path.c: the subnet manager has changed paths (rp_ahs_repath()). The first on the control thread. */
/* Destroys what nothing on its way names any more; milliseconds until it wants to be called again, or -1. */
int rp_ahs_tick(void);
/* What was made for where @to was goes when nothing on its way names it. Caller has entered @ctx's verbs. */
void rp_ah_retire(struct rp_context *ctx, struct rp_ah *ah, struct rp_ah_to *to);
bool rp_ah_path_is_of(const struct rp_ah_path *path, const struct ibv_ah_attr *attr);
void rp_ah_redirect(const struct rp_ah_path *path, struct ibv_ah_attr *attr);
void rp_ah_eras_free(struct rp_context *ctx);
/*
 * An era for what is replaced now, NULL: no memory; its begin, when it has something. Caller of both holds
 * ctx->objects, and wakes the control thread after the second.
 */
struct rp_ah_era *rp_ah_era_new(const struct rp_context *ctx);
void rp_ah_era_begin(struct rp_context *ctx, struct rp_ah_era *era);

/* ud.c */
/* Has all that was given to the UD queue pairs of @ctx been sent? To be asked until it has. */
bool rp_ud_drained(struct rp_context *ctx);
/*
 * Before the device is left: what is held back in SQD goes to the next one. Flushed, it tells where it begins,
 * as what was sent before may have asked for no completion.
 */
void rp_ud_flush(struct rp_qp *qp);
/* Forgets what it needed for that: the queue pair goes. */
void rp_ud_drain_end(struct rp_qp *qp);
/* The device is not left after all; a marker may still be on its way. */
void rp_ud_drain_cancel(struct rp_qp *qp);
/* Takes a queue pair out of its groups, without which it can not be destroyed. */
void rp_ud_leave(struct rp_qp *qp);
/* Puts a queue pair that was made anew into the state that it had; 0 or -errno. */
int rp_ud_restore(struct rp_qp *qp);

#endif /* RP_UD_H */
