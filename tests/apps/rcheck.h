/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rcheck: are all messages there, once, in order, undamaged, each with its completion?
 *
 * Both ends do the same. A link is one RC queue pair. What a link posts is numbered four times:
 *
 *	post	every work request; the wr_id, and the order of completions
 *	seq	every request that carries data
 *	rseq	those that consume a receive at the other end
 *	wseq	those that write into the other end's write slots
 *
 * A receiver gives credits back in the headers of what it sends, or in CREDIT messages, so that
 * no receive is missing and no write slot is overwritten before it was verified (unless one is
 * held back on purpose). WRITEs are verified when a later SEND or WRITE_WITH_IMM arrives.
 */
#ifndef APPS_RCHECK_H
#define APPS_RCHECK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"
#include "message.h"

#define RCHECK_VERSION	2
#define MAX_MIX		32
#define MAX_LIST	16
#define MAX_CQS		64
#define CREDIT_ROOM	4	/* send requests beyond the depth, for CREDITs */
#define CREDIT_RECVS	8	/* receives beyond the depth, for the peer's CREDITs */
#define PROBE_ROOM	2	/* and beyond those: one that is under way, and one after a failure */
#define STATIC_SLOTS	8
#define TICK_MS		50
#define WC_STATUSES	32

enum wait_mode { WAIT_BLOCK, WAIT_EPOLL, WAIT_POLL, WAIT_SELECT, WAIT_NONBLOCK, WAIT_BUSY };

enum plant {
	PLANT_NONE,
	PLANT_LOSS,
	PLANT_WRITE_LOSS,
	PLANT_DUP,
	PLANT_ORDER,
	PLANT_DAMAGE,
	PLANT_READ,
	PLANT_ATOMIC,
	PLANT_MISSING_CQE,
	PLANT_DOUBLE_CQE,
	PLANT_WRONG_IMM,
	PLANT_WRONG_WRID,
	PLANT_WRONG_QPN,
	PLANT_STILL,
	PLANT_BALLAST,
	PLANTS
};

/* The traffic, as the client tells it to the server. */
struct traffic {
	uint32_t version;
	uint32_t qps;
	uint32_t depth;
	uint32_t size;
	uint32_t signal_every;
	uint32_t list;
	uint32_t inline_max;
	uint32_t sges;
	uint32_t rate;
	uint8_t bidir;
	uint8_t vary;
	uint8_t mixed;
	uint8_t reserved;
	uint8_t mix[MAX_MIX];
};

/* What one end chooses for itself. */
struct options {
	const char *host;
	const char *device;
	int gid_index;
	uint16_t port;
	uint8_t sl;
	enum wait_mode wait;
	uint32_t ballast;	/* MB */
	uint32_t regions;	/* of its first page, before all others */
	bool new_post;
	bool ex_cq;
	bool split_cq;
	bool sig_all;
	uint32_t cqs;
	bool numbers;
	bool alone;
	bool overrun;
	bool tail;
	bool fork, fork_init;
	double seconds;
	double interval;
	double stall;
	double probe;		/* seconds, 0: no probes */
	uint32_t no_recv_ms;
	uint32_t pause_ms;
	enum plant plant;
	struct rc_limits limits;
};

/* A link's end as the other end has to know it. */
struct link_address {
	struct rc_address rc;
	uint64_t writes;	/* write slots */
	uint64_t statics;	/* slots to READ */
	uint64_t added;		/* word for FETCH_ADD */
	uint64_t swapped;	/* word for CMP_SWP */
	uint32_t rkey;
	uint32_t ballast_rkey;
	uint64_t ballast, ballast_bytes;
};

struct totals {
	uint64_t rseq;
	uint64_t wseq;
	uint64_t adds;
	uint64_t swaps;
};

/* A posted send request that has not been retired. */
struct request {
	enum msg_op op;
	bool signaled;
	uint64_t wr_id;
	uint64_t seq;
	uint64_t expect;	/* READ: the checksum; atomics: the old value; SAMPLE: its offset */
	uint32_t len;
};

struct link {
	uint32_t index;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct ibv_mr *mr;
	uint32_t qpn, lkey, rkey;	/* as they were at the start */
	struct link_address local, remote;

	unsigned char *memory;
	size_t bytes;
	unsigned char *sends, *recvs, *writes, *statics;
	uint64_t *added, *swapped;

	struct request *ring;
	uint64_t posted, retired;	/* work requests */
	uint32_t since_signal;
	uint32_t since_trigger;		/* writes since the last message that verifies them */
	uint64_t seq, rseq, wseq, data_sent, adds, swaps;
	uint64_t credit_in, wcredit_in;	/* what the peer told */
	uint64_t last_write_sum;	/* 0: no WRITE was posted yet */
	uint32_t last_write_len;
	bool order_planted;

	double last_progress;		/* when it had a completion; 0: none yet */
	uint64_t round;			/* the last one that it had a completion in */

	uint64_t recvs_posted, recvs_done;
	uint64_t next_rseq, last_seq, writes_ok, data_got;
	uint64_t told, wtold;		/* what we told the peer */
	uint64_t missing;		/* an rseq that was jumped over; 0 none */
	double missing_since;
	struct totals theirs;
	bool finished;

	uint64_t probe;			/* the request after the last probe; 0: none yet */
	double probed;			/* when that was */
	bool alive;			/* it has answered after another link had failed */
	uint64_t send_errors[WC_STATUSES], recv_errors[WC_STATUSES];
	enum ibv_wc_status first_error;	/* of a send */
};

enum phase { RUNNING, STOPPING, SAMPLING, SETTLING, DONE };

struct check {
	struct options opt;
	struct traffic traffic;
	struct endpoint ep;
	struct ibv_pd *pd;
	void *ballast;
	struct ibv_mr *ballast_mr;
	struct ibv_mr **regions;
	uint32_t sampled;	/* samples of the other end's that were asked for */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cqs[MAX_CQS];
	struct ibv_cq_ex *cqx[MAX_CQS];
	unsigned int unacked[MAX_CQS];
	uint32_t ncqs;
	struct link *links;
	uint32_t slot;		/* bytes of a slot */
	uint32_t nsend, nrecv, nwrite;
	uint32_t room;		/* sends under way at most, but for probes */
	uint32_t from;		/* 0 client, 1 server */
	bool sender;		/* this end originates data */

	int oob;
	enum phase phase;
	bool totals_sent, totals_got, verdict_sent, verdict_got;
	bool planted;
	char failure[256];
	char aftermath[160];	/* what was wrong with completions that came after the first error */

	double started, now, last_progress, max_gap, interval_gap, settle_from;
	double hold_until, pause_until;
	double flow_from;	/* since when there was never no progress at all for long */
	uint64_t rounds;	/* how often all links had a completion */
	uint32_t in_round;	/* links that had one in this round */
	uint32_t turn;		/* the link that may send first */
	uint64_t sent[MSG_OPS], received[MSG_OPS], cqes, async_events, events, probes;
};

/* rcheck_options.c */
void options_parse(struct check *c, int argc, char **argv);

/* rcheck_link.c */
void links_create(struct check *c);
void links_connect(struct check *c);
void links_destroy(struct check *c, bool look);	/* @look: they must be as they were */

/* rcheck_send.c */
bool rate_allows(const struct check *c);
bool link_send(struct check *c, struct link *l);
void link_flush(struct check *c, struct link *l);
void link_post(struct check *c, struct link *l, enum msg_op op);
void send_completed(struct check *c, struct link *l, const struct ibv_wc *wc);

/* rcheck_ballast.c */
void ballast_create(struct check *c);
void ballast_check(struct check *c);
void ballast_destroy(struct check *c);
void ballast_sample(struct check *c);	/* posts what may be posted now; when all is retired, all was right */
bool ballast_is_sampled(const struct check *c);
void sample_fill(struct check *c, struct link *l, struct request *r, struct ibv_send_wr *wr, struct msg *m);
void sample_verify(struct check *c, struct link *l, const struct request *r, const void *data);

/* rcheck_recv.c */
void link_post_recvs(struct check *c, struct link *l);
void recv_completed(struct check *c, struct link *l, const struct ibv_wc *wc);
bool link_verify_end(struct check *c, struct link *l);

/* rcheck_probe.c */
void link_probe_if_still(struct check *c, struct link *l);
bool is_probe(const struct check *c, const struct link *l, const struct ibv_wc *wc);
void completed_after_failure(struct check *c, const struct ibv_wc *wc);
void prove_dead(struct check *c);	/* some link has failed: what of the rest of it, and of the others? */
void report_dead(const struct check *c);

/* rcheck_wait.c */
void wait_set_up(struct check *c);
void wait_and_poll(struct check *c, bool poll_anyway);
void poll_all(struct check *c);

/* rcheck_still.c */
void link_progressed(struct check *c, struct link *l);
void check_times(struct check *c);
void check_all_sent(struct check *c);

/* rcheck_report.c */
double seconds_now(void);
void fail(struct check *c, const struct link *l, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void report_numbers(struct check *c, const char *when);
void report_interval(struct check *c);
void report_end(struct check *c);

#define RECV_BIT	(1ull << 63)
#define POST_MASK	((1ull << 48) - 1)

/* wr_id: bit 63 a receive, bits 62..48 the link, bits 47..0 how many were posted before. */
static inline uint64_t make_wr_id(const struct link *l, uint64_t number)
{
	return (uint64_t)l->index << 48 | (number & POST_MASK);
}

static inline unsigned char *slot_at(const struct check *c, unsigned char *base, uint64_t n)
{
	return base + n * c->slot;
}

static inline bool consumes_recv(enum msg_op op)
{
	return op == MSG_SEND || op == MSG_SEND_IMM || op == MSG_WRITE_IMM || op == MSG_CREDIT;
}

static inline bool is_write(enum msg_op op)
{
	return op == MSG_WRITE || op == MSG_WRITE_IMM;
}

#endif
