/* SPDX-License-Identifier: GPL-2.0 */
/* MADs to the subnet administration: questions, and answers to its Reports. */
#ifndef REPATH_SA_ASK_H
#define REPATH_SA_ASK_H

#include <linux/types.h>
#include <rdma/ib_mad.h>

struct repath_sa_port;

/* InformInfo (15.2.5.12): what is subscribed to. */
struct repath_inform_info {
	__u8 gid[16];
	__be16 lid_range_begin;
	__be16 lid_range_end;
	__be16 reserved1;
	__u8 is_generic;
	__u8 subscribe;
	__be16 trap_type;
	__be16 trap_num;
	__be32 qpn_resp_time;
	__be32 producer;		/* the high byte is reserved */
} __packed;

enum repath_sa_kind {
	REPATH_SA_SUBSCRIBE,
	REPATH_SA_UNSUBSCRIBE,
	REPATH_SA_PATHS,
};

/**
 * struct repath_sa_ask - a question to the subnet administration
 * @node: in repath_sa_port::asked or ::answered
 * @sp: who asks
 * @way: reference; to whom
 * @buf: the request; NULL when it is over. repath_sa_port::lock
 * @kind: what is asked
 * @number: of the trap; DLID, 0: all
 * @started_ns: CLOCK_BOOTTIME
 * @err: 0: @answer is there; -ETIMEDOUT, -ECANCELED, -EIO
 * @answer: from whom it was asked; one or more segments
 */
struct repath_sa_ask {
	struct list_head node;
	struct repath_sa_port *sp;
	struct repath_sa_way *way;
	struct ib_mad_send_buf *buf;
	u8 kind;
	u16 number;
	u64 started_ns;
	int err;
	struct ib_mad_recv_wc *answer;
};

#define REPATH_SA_TRIES		5	/* of one question, each as long as a packet can live */
#define REPATH_SA_LEAVE_MS	1000	/* at most, to unsubscribe */

struct repath_sa_way *repath_sa_way_new(struct ib_mad_agent *agent, u32 port, u16 sm_lid, u8 sm_sl,
					bool grh, __be64 prefix);
void repath_sa_way_put(struct repath_sa_way *way);

int repath_sa_ask_subscription(struct repath_sa_port *sp, u16 trap, bool subscribe);
int repath_sa_ask_paths(struct repath_sa_port *sp, u16 dlid);
void repath_sa_cancel(struct repath_sa_port *sp);
void repath_sa_ask_free(struct repath_sa_ask *ask);
int repath_sa_ask_status(const struct repath_sa_ask *ask);

/* @fn is told each record of an answer of several segments. Returns how many, or -EBADMSG. */
int repath_sa_records(const struct ib_mad_recv_wc *answer, size_t size,
		      void (*fn)(const void *record, void *arg), void *arg);

void repath_sa_report_resp(struct repath_sa_port *sp, const struct ib_mad *report);

/* What the agent is registered with. */
void repath_sa_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc);
void repath_sa_answer(struct ib_mad_send_buf *buf, struct ib_mad_recv_wc *wc);

#endif /* REPATH_SA_ASK_H */
