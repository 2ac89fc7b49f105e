/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * vcheck: one of each kind of object between two ends, in use all the time, everything checked:
 * RC over a shared receive queue with its limit event and an extended completion queue, atomics,
 * memory windows of both types, UC, UD with address handles both ways, a multicast group. What a provider
 * lacks is left out, and told: an extended CQ, windows; on InfiniBand the group, which wants a subnet manager.
 */
#ifndef APPS_VCHECK_H
#define APPS_VCHECK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"

#define QKEY		0x5eed
#define SLOT		256	/* bytes of a message */
#define CQ_DEPTH	256	/* of the rest, at least */
#define SRQ_DEPTH	16
#define RECV_DEPTH	32	/* of the UC and the UD queue pair */
#define QUIET_MS	20	/* a round of datagrams is over when nothing came for so long */

enum { RC, UC, UD, KINDS };

/* What a message says, at the beginning of its slot (behind the GRH). */
struct word {
	uint64_t seq;
	uint64_t inverse;	/* ~seq */
};

/* What the other end has to know. */
struct introduction {
	struct rc_address rc, uc, ud;
	uint64_t memory;
	uint32_t rkey;
	uint32_t reserved;
};

/* The windows change with each round: told by a SEND. */
struct windows {
	struct word word;
	uint32_t key[2];
};

struct tally {
	uint64_t sent, got, last;
};

struct vcheck {
	struct endpoint ep;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	unsigned char *memory;
	struct ibv_srq *srq;
	struct ibv_cq_ex *cqx;		/* NULL: not there */
	struct ibv_cq *rc_cq;		/* of RC: cqx, if there is one */
	struct ibv_cq *cq;		/* of the rest */
	struct ibv_qp *qp[KINDS];
	struct ibv_mw *mw[2];		/* NULL: not there */
	struct ibv_ah *ah, *group;	/* group is NULL: not there */
	struct introduction own, peer;
	bool client;
	int oob;

	uint64_t round, messages, limits, adds;
	uint64_t srq_posted, srq_seen;	/* receives are taken in the order of posting */
	uint64_t resized;
	bool no_resize;
	bool is_early;			/* a receive of RC has completed before the send that it answers: */
	struct ibv_wc early;
	struct tally uc, ud, mc;
};

/* vcheck_objects.c: make everything, connect, release */
void objects_make(struct vcheck *v, const char *device);
void objects_connect(struct vcheck *v);
void objects_release(struct vcheck *v);

/* vcheck_traffic.c */
/* One turn of each kind; exits at the first that is wrong. */
void traffic_round(struct vcheck *v);
void traffic_fill(struct vcheck *v);	/* posts the receives */

/* Exits with a message that says the round. */
__attribute__((noreturn, format(printf, 2, 3)))
void wrong(const struct vcheck *v, const char *fmt, ...);

/* Where things lie in the memory; @index counts without end. */
static inline unsigned char *srq_slot(const struct vcheck *v, uint64_t index)
{
	return v->memory + (index % SRQ_DEPTH) * SLOT;
}

static inline unsigned char *recv_slot(const struct vcheck *v, int kind, uint64_t index)
{
	return v->memory + (SRQ_DEPTH + (kind == UD) * RECV_DEPTH + index % RECV_DEPTH) * SLOT;
}

#define AT_SEND		((SRQ_DEPTH + 2 * RECV_DEPTH) * SLOT)
#define AT_WINDOW(i)	(AT_SEND + (4 + (i)) * SLOT)
#define AT_PLAIN	(AT_SEND + 6 * SLOT)
#define AT_ATOMIC	(AT_SEND + 7 * SLOT)
#define AT_RESULT	(AT_SEND + 8 * SLOT)
#define MEMORY		(AT_SEND + 16 * SLOT)

#endif
