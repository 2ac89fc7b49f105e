/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two queue pairs on two devices, connected to each other, as an application would have them. */
#ifndef PAIR_H
#define PAIR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		    IBV_ACCESS_REMOTE_ATOMIC)

#define QKEY 0x11111111	/* of UD queue pairs */

/**
 * struct pair_how - zero means the default
 * @send_wr, @recv_wr, @cqe: depths; 64, 64, 256
 * @access: the queue pairs' and the MRs'; all
 * @events: the CQs have channels
 * @sgid_index: of the devices' GIDs; 0
 * @pkey_index: of the queue pairs; 0
 * @timeout: of the queue pairs; 14
 * @rate: static rate of their paths; the port's
 * @wc_flags: what else completions of an extended CQ tell
 * @srq: receives of both come from an SRQ
 * @tso_header: of UD, the longest
 * @no_inline: no inline data; 64 bytes
 */
struct pair_how {
	const char *dev[2];
	int send_wr, recv_wr, cqe, access, bytes, sgid_index, pkey_index, timeout, rate, tso_header;
	enum ibv_qp_type type;
	uint64_t wc_flags;
	bool sig_all, events, ex_qp, ex_cq, srq, no_write, no_inline;
};

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cqx;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	char *buf;
	int bytes, sgid_index, pkey_index, qp_access, timeout, rate;
};

/* All of these end the program when something fails. */
void end_open(struct end *e, const char *dev, const struct pair_how *how);
void end_close(struct end *e);
struct ibv_qp *end_create_qp(struct end *e, const struct pair_how *how);
void qp_to_init(struct end *e, struct ibv_qp *qp);
void qp_to_rtr(struct end *e, struct ibv_qp *qp, uint32_t dest, uint32_t rq_psn);
void qp_to_rts(struct ibv_qp *qp, uint32_t sq_psn);
void qp_to(struct ibv_qp *qp, enum ibv_qp_state state);
struct ibv_context *open_named(const char *name);

void pair_open(struct end e[2], const struct pair_how *how);
void pair_connect(struct end e[2]);
void pair_close(struct end e[2]);

int post_recv(struct end *e, uint64_t wr_id, unsigned int offset, uint32_t len);
/* @opcode with the buffer's bytes at @offset, to the same offset of @to */
int post(struct end *e, struct end *to, enum ibv_wr_opcode op, uint64_t wr_id,
	 unsigned int flags, unsigned int offset, uint32_t len);
/* Of UD: where the other end's port is; and 8 bytes there, with @wr_id as immediate data. */
struct ibv_ah *pair_ah(struct end *from, struct end *to);
int post_datagram(struct end *from, struct ibv_ah *ah, uint32_t qpn, enum ibv_wr_opcode op, uint64_t wr_id,
		  unsigned int flags);
/* The second writes 8 bytes to the first, by the key of @mr. */
void write_by_mr(struct end e[2], struct ibv_mr *mr, uint64_t wr_id);
/* The next completion, waited for at most 5 s. */
struct ibv_wc poll_one(struct end *e);
/* ... and it is this one */
struct ibv_wc expect(struct end *e, uint64_t wr_id, enum ibv_wc_status status);
void expect_none(struct end *e, unsigned int ms);
/* The first sends a message, and the second gets it. */
void send_one(struct end e[2]);

/* Waits for an event of the end's completion channel, and acknowledges it. */
void take_event(struct end *e);

#endif /* PAIR_H */
