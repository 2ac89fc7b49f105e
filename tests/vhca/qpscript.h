/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue pairs of qpscript: what they are, how they are connected, and what is posted. */
#ifndef QPSCRIPT_H
#define QPSCRIPT_H

#include <stdbool.h>
#include <infiniband/verbs.h>

#define ROOM (1 << 20)
#define DEPTH 1024
#define ROOM_STATUS (2 * DEPTH)
#define QPS 8

struct queue {
	char name[16];
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct queue *peer;
	unsigned int seen[2], taken[2];	/* completions of sends and receives; those of done */
	unsigned int posted, bytes;	/* sends, and how long the last one is */
	unsigned int others;		/* receives of another length than what the peer has posted last */
	enum ibv_wc_status status[2][ROOM_STATUS];
	int type, port, pkey;		/* pkey: its index */
	bool by_gid;			/* with a GRH */
	int sl, slid;			/* by which, and from where, the last message has come */
	int bits;			/* its path bits: which of its port's LIDs is its own */
	int from, to;			/* path bits in what it sends */
	char *memory;
	struct ibv_srq *srq;
	struct ibv_ah *ah;		/* to the peer: UD */
};

int number(const char *text, int otherwise);

/* qpscript_queue.c; 0, or not. @w are the command's words. */
int open_queue(struct queue *q, char **w);
int connect_queues(struct queue *q, struct queue *r, char **w);
int post_recv(struct queue *q, int n);
int post_send(struct queue *q, char **w, enum ibv_wr_opcode opcode);
/* The way from a queue pair to its peer, to that port. On RoCE a service level is a class of IP's. */
void set_path(struct ibv_ah_attr *ah, const struct queue *q, int port, int sl);
struct ibv_port_attr port_of(const struct queue *q, int port);
int service_level(const struct ibv_ah_attr *ah);

#endif /* QPSCRIPT_H */
