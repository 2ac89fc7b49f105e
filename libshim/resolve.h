/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where is the queue pair that the application was told of? A process that has moved is known by a
 * number, and maybe an address, that it has no more; the modules know the present ones. Asked before
 * a queue pair is connected, and before a UD address is used for the first time.
 */
#ifndef RP_RESOLVE_H
#define RP_RESOLVE_H

#include "ctl.h"
#include "shim.h"

/**
 * struct rp_dest - a UD address that is kept resolved
 * @ctx: own device
 * @av: the address as the application gave it
 * @qpn: the number as the application gave it
 * @lock: protects @now
 * @now: where it is
 * @changes: how often @now has changed: what was made of it earlier is out of date
 */
struct rp_dest {
	struct list_node node;		/* these three: resolve.c */
	struct rp_dest *next_by_address, *next_by_id;
	struct rp_context *ctx;
	struct ibv_ah_attr av;
	uint32_t qpn, id;
	unsigned int users;
	bool answered;
	struct rp_lock lock;
	struct rp_place now;
	atomic_uint changes;
};

/*
 * Finds or makes the one for an address, and waits for its first answer; NULL without memory. Each
 * must be put. Not for multicast addresses. Called without locks that the control thread takes.
 */
struct rp_dest *rp_dest_get(struct rp_context *ctx, const struct ibv_ah_attr *av, uint32_t qpn);
void rp_dest_put(struct rp_dest *d);
struct rp_place rp_dest_now(struct rp_dest *d);
/* @av as the device needs it to reach @now: GID or LID exchanged, own GID index translated. */
void rp_dest_av(struct rp_context *ctx, const struct ibv_ah_attr *av, const struct rp_place *now,
		struct ibv_ah_attr *real);

/* On the control thread, when @ctx is on another device: all of its addresses are asked for anew. */
void rp_dests_again(struct rp_context *ctx);

/*
 * Before a queue pair goes to RTR: the real destination into @attr. 0, or as modify_qp:
 * EADDRNOTAVAIL (no such queue pair there, nor where those are that were there), ENOTUNIQ (two may be
 * meant), EADDRINUSE (it is connected to somebody else), ETIMEDOUT, EAGAIN (processes there are between
 * two devices: to be asked again, with the own device free to be left meanwhile).
 */
int rp_resolve_rtr(struct rp_qp *qp, struct ibv_qp_attr *attr, int mask, bool *moved);

/* In a child of fork. */
void rp_resolve_lost_module(void);	/* nobody answers any more */
void rp_resolve_forked(void);

/* numbers.c */
bool rp_numbers_any(void);	/* Are queue pairs of this host known by numbers not their own? */
/*
 * Of a queue pair just made: is its number one that others know another process's by (-EADDRINUSE), one of a
 * process that is away (-EBUSY)? 0: neither.
 */
int rp_number_check(struct rp_context *ctx, uint32_t qpn);
/* On the control thread, when all of @ctx is made anew: tells the module the numbers and GIDs. */
void rp_numbers_tell(struct rp_context *ctx);

#endif /* RP_RESOLVE_H */
