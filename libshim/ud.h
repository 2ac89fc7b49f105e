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
 * @dlid: of the address; 0: there is none
 * @to_dlid, @sl, @rate: instead
 */
struct rp_ah_path {
	uint16_t dlid, to_dlid;
	uint8_t sl, rate;
};

/**
 * struct rp_ah_to - a queue pair that is sent to by an address handle
 * @qpn: as the application knows it; @real_qpn: its number now
 * @dest: where it is, kept up to date
 * @seen: dest->changes when the rest was made of it
 * @real: where it is not at the handle's own address (any more)
 * @path: to there
 */
struct rp_ah_to {
	uint32_t qpn, real_qpn;
	struct rp_dest *dest;
	unsigned int seen;
	struct rp_ah_real *real;
	struct rp_ah_path path;
	struct rp_ah_to *next;
};

#define RP_AH_ROWS 8

/**
 * struct rp_ah - an address handle
 * @attr: as the application gave it
 * @own: the device's for @attr; @path: to there
 * @lock: of all that follows
 * @to: by number
 */
struct rp_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
	struct rp_ah_real own;
	struct rp_ah_path path;
	struct rp_lock lock;
	struct rp_ah_to *to[RP_AH_ROWS];
	struct ibv_ah *real;		/* own.ah; NULL while released */
	struct list_node node;
};

/* ah.c. The device's own, to the port that @like leaves by; NULL: errno. */
struct ibv_ah *rp_ah_to_self(struct rp_context *ctx, struct ibv_pd *pd,
			     const struct ibv_ah_attr *like);
void rp_ahs_free(struct rp_context *ctx);	/* those that the application forgot */
int rp_ah_release(struct rp_ah *ah);	/* these two: 0 or -errno */
int rp_ah_recreate(struct rp_ah *ah);
/*
 * Before requests are posted, without locks: finds out where those are whom they are for. The first
 * time that somebody is sent to, this waits a little for the answer.
 */
void rp_ah_prepare(const struct ibv_send_wr *wr);
/* Puts the device's handle and number into a request; caller holds the queue pair's lock. */
void rp_ah_real(struct ibv_send_wr *wr);

/* ah_path.c: the subnet manager has changed paths (rp_ahs_repath()). The first on the control thread. */
/* Destroys what nothing on its way names any more; milliseconds until it wants to be called again, or -1. */
int rp_ahs_tick(void);
/* What was made for where @to was goes when nothing on its way names it. Caller has entered @ctx's verbs. */
void rp_ah_retire(struct rp_context *ctx, struct rp_ah *ah, struct rp_ah_to *to);
void rp_ah_redirect(const struct rp_ah_path *path, struct ibv_ah_attr *attr);
void rp_ah_eras_free(struct rp_context *ctx);

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
