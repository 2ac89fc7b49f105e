/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The objects that applications hold. Each begins with the public struct, so that a handle is
 * turned into ours by a cast, and points to the provider's object, which is exchanged by a move
 * and is NULL while its device is released.
 *
 * Locks, in the order in which they are taken:
 *   rp_contexts_lock	the list of contexts
 *   ctx->verbs		control verbs of a context hold it for reading, a move for writing from
 *			before the first release to after the last recreation
 *   qp->control	control verbs of one queue pair; a peer's move holds it
 *   cq->lock		polling, the software queue, cq->real
 *   qp->lock		posting, both rings, qp->real, the gates
 *   channel->lock	software events
 * The retired counters of rings are written under the lock of the CQ that reports them and
 * read without it.
 */
#ifndef RP_SHIM_H
#define RP_SHIM_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"
#include "lock.h"

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* Entries that a CQ has beyond what was asked for, for markers. */
#define RP_CQ_EXTRA	64
/* Send requests that a queue pair has beyond what was asked for: the marker. */
#define RP_SQ_EXTRA	1

struct rp_context;
struct rp_qp;
struct rp_conn;

/**
 * struct rp_device - what stands for an ibv_device
 * @dev: what the application sees; the padding makes a foreign provider library that reads its
 *	own struct behind it ("is it mine?") find zeroes
 * @real: libibverbs' device of that name now, referenced; NULL when it is gone
 */
struct rp_device {
	union {
		struct ibv_device dev;
		char pad[2048];
	};
	struct ibv_device *real;
	struct list_node node;
	int refs;
};

/* Why a context cannot be moved, counted by kind of object. */
enum rp_immovable {
	RP_IMM_RAW_QP,
	RP_IMM_XRC,
	RP_IMM_DM,
	RP_IMM_WQ,
	RP_IMM_FLOW,
	RP_IMM_COUNTERS,
	RP_IMM_CQ_EX,
	RP_IMM_DMABUF_MR,
	RP_IMM_IMPORTED,
	RP_IMM_DIRECT_VERBS,
	RP_IMM_RDMACM,
	RP_IMM_ECE,
	RP_IMM_N
};

/* "2 flow rules (destroy ...)": @n of a kind, as snprintf() (immovable.c). */
int rp_immovable_say(enum rp_immovable what, int n, char *text, size_t room);

/*
 * struct rp_keymap - virtual to real keys
 * One thread at a time changes it, while others look keys up. Where there is no room a larger one takes its place:
 * who looks into it holds the lock under which posts are made, and the old one is freed when each has been free since.
 */
struct rp_keymap;
/* With what is in @of, where that is not NULL, and room for @n more. NULL: no memory */
struct rp_keymap *rp_keymap_new(const struct rp_keymap *of, size_t n);
size_t rp_keymap_room(const struct rp_keymap *m);
/* Or changes. false: there is no room */
bool rp_keymap_add(struct rp_keymap *m, uint32_t virt, uint32_t real);
/* Of a memory window: all keys with these upper 24 bits, the lower 8 stay. */
bool rp_keymap_add_window(struct rp_keymap *m, uint32_t virt, uint32_t real);
void rp_keymap_remove(struct rp_keymap *m, uint32_t virt);
/* false: not in the map */
bool rp_keymap_find(const struct rp_keymap *m, uint32_t virt, uint32_t *real);
void rp_keymap_free(struct rp_keymap *m);
/* Empty ones: of a peer that has moved and will tell its keys; of one that has not told them. */
extern struct rp_keymap *const rp_keymap_awaited, *const rp_keymap_none;

/*
 * A key that was told to peers and is not there any more; its number is not used again before they
 * have heard of it. At most so many are kept of a device: who has not heard then is told all that are there.
 */
extern unsigned int rp_removed_keys_max;

struct rp_removed_key {
	struct list_node node;
	uint32_t virt, real, serial;
	bool window;
};

/**
 * struct rp_evfd - a descriptor that the application keeps for ever
 * @epfd: an epoll descriptor around @realfd (exchanged by a move) and @softfd
 * @softfd: an eventfd, readable while software events wait
 */
struct rp_evfd {
	int epfd;
	int softfd;
	int realfd;
};

int rp_evfd_open(struct rp_evfd *e, int realfd);	/* 0 or -errno */
void rp_evfd_close(struct rp_evfd *e);
int rp_evfd_attach(struct rp_evfd *e, int realfd);	/* makes realfd non-blocking, adds it */
void rp_evfd_detach(struct rp_evfd *e);			/* before the real descriptor is closed */
void rp_evfd_raise(struct rp_evfd *e);
void rp_evfd_lower(struct rp_evfd *e);
/* Waits until readable, or returns -EAGAIN at once when the application set O_NONBLOCK on epfd. */
int rp_evfd_wait(struct rp_evfd *e);

/**
 * struct rp_clock - a device's clock as the application knows it (clock.c)
 * @khz, @mask: of the first device whose stamps it read; 0: it has read none
 * @add: to what the device says, so that it goes on where the one before stopped
 * @in_step: @add is right for the device that is there
 * @left: what it said at @left_ns, when the device was left or, if it could not be read then, before
 */
struct rp_clock {
	uint64_t khz, mask, add, left, left_ns;
	bool in_step;
};

/**
 * struct rp_pkeys - the P_Keys of a port, by the application's index (pkeys.c)
 * @key: as when its device was left; 0: none
 * @map: to the device's index; NULL: the same
 */
struct rp_pkeys {
	__be16 *key;
	int *map, n;
};

/**
 * struct rp_port - where a port is reached, or was
 * @lid: one of its LIDs; 0 on RoCE
 * @gid: zero where a path has no GRH
 */
struct rp_port {
	uint16_t lid;
	uint8_t lmc;
	union ibv_gid gid;
};

/**
 * struct rp_gid - a GID by the application's index
 * @is: as it was first seen at that index, which is @is.gid_index
 * @now: what stands for it on the device that is there, at that one's index; zero: none
 * @before: what others know it by until they are told (rp_numbers_tell())
 * @there: it was in the table when the device was left
 * @found: there is @now
 */
struct rp_gid {
	struct ibv_gid_entry is, now;
	union ibv_gid before;
	bool there, found;
};

/**
 * struct rp_context - an open device
 * @vctx: what the application sees is &vctx.context
 * @real: the provider's, NULL while released
 * @name: name of the real device, "rxe0"
 * @dev_index: ib_device index of @real (RDMA_NLDEV_ATTR_DEV_INDEX, ibv_get_device_index)
 * @epoch: moves so far; 0: every virtual number is the real one
 * @lkeys: virtual to real local keys; NULL while @epoch is 0
 * @keys_shared: there are, or have been, regions that may have one key (keys_change.c)
 * @sgid_map: virtual to real GID index by port (from 0); NULL: the same
 * @pkeys: by port (from 0)
 * @ports: addresses by port (from 0), as when the device was left
 * @pkeys_saved: @gids, @pkeys and @ports were, in this move
 * @immovable: objects that forbid a move
 * @limits: the device's, which our extra depth respects
 * @limits_before: those of the device that its objects are from, while they are made anew
 * @srq_qps: queue pairs with an SRQ, by real QPN (qp.c)
 */
struct rp_context {
	struct verbs_context vctx;
	struct ibv_context *real;
	struct rp_device *device;
	char name[IBV_SYSFS_NAME_MAX];
	int dev_index;
	unsigned int epoch;
	unsigned int number;	/* among those that were ever told to peers, from 1; 0: not yet */
	pthread_rwlock_t verbs;
	_Atomic uint64_t verbs_wanted;	/* since when (rp_now_ns()) a move waits for it; 0: none does */
	struct rp_keymap *lkeys;
	bool keys_shared;
	int *sgid_map[4];
	int sgid_map_len;
	struct rp_pkeys pkeys[4];
	struct rp_port ports[4];
	bool pkeys_saved;
	struct rp_gid *gids;		/* all that there were when a device was left (gids.c) */
	int ngids;
	atomic_int immovable[RP_IMM_N];
	struct ibv_device_attr limits, limits_before;
	struct rp_clock clock;

	struct rp_lock srq_qps_lock;
	struct rp_qp *srq_qps[64];

	uint32_t key_serial;		/* changes of keys since the last move; under @objects */
	uint32_t tables;		/* number of the table of keys that peers are told (keys_stream.c), the control thread's */
	struct list_head removed_keys;	/* struct rp_removed_key; this and the next three under @objects */
	unsigned int nremoved_keys;
	uint32_t keys_clean;		/* nobody has what was removed up to here in this table */
	uint32_t keys_forgotten;	/* the last change that @removed_keys does not tell of */
	struct rp_lock mws_lock;	/* memory windows; taken last */
	struct list_head mws;
	struct rp_lock objects;		/* the lists below */
	struct list_head tds, pds, mrs, channels, cqs, qps, srqs, wqs, ahs;
	struct list_head ah_eras;	/* struct rp_ah_era (ah_path.c) */
	struct rp_lock ah_tos_lock;	/* the next two; taken last */
	struct list_head ah_tos;	/* struct rp_ah_to, the longest unused first (ah_unused.c) */
	atomic_uint nah_tos;

	struct rp_evfd async;
	pthread_mutex_t async_lock;	/* soft_async, and unacknowledged counts of objects */
	pthread_cond_t async_acked;
	struct list_head soft_async;

	struct list_node node;		/* rp_contexts */
	struct rp_move *move;		/* move.c's; NULL when nothing goes on */
};

enum rp_pd_kind { RP_PD_PLAIN, RP_PD_PARENT };

struct rp_pd {
	struct ibv_pd pd;
	struct ibv_pd *real;
	enum rp_pd_kind kind;
	struct list_node node;
};

enum rp_mr_how { RP_MR_REG, RP_MR_IOVA, RP_MR_IOVA2, RP_MR_NULL, RP_MR_OTHER };

/**
 * struct rp_mr - a memory region
 * @mr: lkey and rkey as the application knows them for ever
 * @real_lkey, @real_rkey: @real's, for who reads them while @real may be registered again; under
 *	ctx->objects
 * @pin: of RP_MR_OTHER, the enum rp_immovable that it is counted as, or -1
 */
struct rp_mr {
	struct ibv_mr mr;
	struct ibv_mr *real;
	uint32_t real_lkey, real_rkey;
	enum rp_mr_how how;
	uint64_t iova;
	unsigned int access;
	uint32_t key_serial;	/* of its last change, after a move; regions are listed in that order */
	int pin;
	bool going;		/* the device may have let it go; under rp_context::objects */
	struct list_node node;
};

#define RP_REMOTE_ACCESS \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Peers are told of its key. */
static inline bool rp_mr_is_told(const struct rp_mr *mr)
{
	return mr->how == RP_MR_OTHER || mr->access & RP_REMOTE_ACCESS;
}

struct rp_channel {
	struct ibv_comp_channel ch;	/* ch.fd is evfd.epfd */
	struct ibv_comp_channel *real;
	struct rp_evfd evfd;
	struct rp_lock lock;
	struct list_head soft_events;	/* rp_cq.soft_event */
	struct list_node node;
};

/* What an entry may have that the extended interface alone tells. */
struct rp_wc_more {
	uint64_t completion_ts, completion_wallclock_ns;
	uint16_t cvlan;
	uint32_t flow_tag;
	struct ibv_wc_tm_info tm_info;
};

/* An entry that was taken from the device before the application asked for it; of @qp, which may be NULL (WQ). */
struct rp_soft_wc {
	const struct rp_qp *qp;
	struct ibv_wc wc;
	struct rp_wc_more more;
};

/**
 * struct rp_cq - a completion queue
 * @soft: completions that were taken from the device and not yet polled by the application,
 *	oldest first; a ring that grows; already translated
 * @armed: as last asked for and not yet reported (channel.c)
 * @any_event: the device is asked for events of all completions (rp_cq_any_event())
 * @extra: entries that the device has beyond cq.cqe
 * @markers: on their way: not more than @extra, or what the application has posted finds no room
 * @moderation: as last set by ibv_modify_cq
 */
struct rp_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cqex;
	};
	struct ibv_cq *real;
	struct ibv_cq_ex *real_ex;	/* when created by ibv_create_cq_ex, else NULL */
	struct rp_lock lock;
	struct rp_soft_wc *soft;
	unsigned int soft_head, soft_n, soft_size;
	atomic_int armed;
	atomic_bool any_event;
	atomic_int extra;
	int markers;
	struct ibv_modify_cq_attr moderation;
	struct rp_channel *channel;
	struct list_node soft_event;
	bool soft_event_queued;
	struct ibv_cq_init_attr_ex attr;	/* as asked for */
	unsigned int comp_events_unacked;	/* under cq.mutex, cq.cond */
	unsigned int async_events_unacked;
	struct list_node node;
	bool is_ex, pinned;
	bool has_more;			/* its entries have what struct ibv_wc has no room for */
	struct rp_cq_ex *ex;		/* state of the extended poll interface (cq_ex.c) */
};

enum rp_slot_kind { RP_SLOT_SEND, RP_SLOT_RECV, RP_SLOT_SRQ, RP_SLOT_MARKER };

/**
 * struct rp_slot - a request that the device may hold; its address is the wr_id on the device
 * @owner: the rp_qp, or the rp_srq
 * @wr_id: the application's
 * @index: absolute number in its ring
 * @sends: SENDs and WRITE_WITH_IMMs posted on the queue pair, this one included
 * @hidden: its completion is not for the application, or not as it is: the application asked for none,
 *	or it is of a kind that is in no ring
 * @next: in its ring, the one behind it
 * @send, @recv: in a ring, wr_id and sg_list are made once, and next is NULL but while it is posted
 */
struct rp_slot {
	enum rp_slot_kind kind;
	bool hidden;
	void *owner;
	uint64_t wr_id;
	uint64_t index;
	uint64_t sends;
	struct rp_slot *next;
	union {
		struct ibv_send_wr send;	/* virtual keys; sg_list points behind the slot */
		struct ibv_recv_wr recv;
	};
};

/**
 * struct rp_ring - requests of one queue, in the order in which they were posted
 * Numbers are absolute and never wrap: retired <= submitted <= head <= retired + size - 1.
 * @size: slots, one more than the queue's depth, so that slot retired - 1 is still there
 * @stride: bytes from slot to slot (slot, SGEs, inline data, TSO header)
 * @next: the slot of @head, so that posting needs no division
 * @max_sge, @max_inline, @max_header: what a slot has room for
 * @head: next to be posted by the application
 * @submitted: next to be given to the device
 * @retired: next to complete
 * @room: up to here @head may go without another look at @retired
 */
struct rp_ring {
	char *slots;
	struct rp_slot *next;
	unsigned int size, stride, max_sge, max_inline, max_header;
	uint64_t head, submitted, room;
	_Atomic uint64_t retired;
	uint64_t sends;
};

static inline struct rp_slot *rp_ring_slot(const struct rp_ring *r, uint64_t index)
{
	return (struct rp_slot *)(r->slots + (size_t)(index % r->size) * r->stride);
}

/**
 * struct rp_qp - a queue pair
 * @qp: qp_num is the virtual number, for ever; state is kept up to date
 * @gate: posts to the send queue are kept in the ring and not given to the device
 * @recv_gate: the same for the receive queue
 * @swallow: flushed completions are hidden: they only say how far the device had come
 * @failed: a completion has said that the device has it in ERR
 * @sqd_due: in SQD, or was last, and the event that it is drained has not come; @sqd_asked: its owner wants it
 * @buried: we have put it there, as its peer has vanished: its first send that fails is to say so
 * @rkeys: the peer's keys, virtual to real; NULL while the peer has not moved
 * @init: as asked for at creation, with our pd, CQs and SRQ
 * @attr, @attr_mask: everything set by ibv_modify_qp since RESET, virtual values
 * @dest: where its path leads now
 * @alternate: it has the alternate path that is in @attr
 * @mig_due: alternate paths of its owner that it may have gone over to, and the event has not come
 * @other: another place where its owner knows the peer by @alt_known, which is @alt_dest now: where an
 *	alternate path leads, or the path led before it migrated
 * @sqe: in SQE for its owner, as a device before had it; this one has it in RTS and is given no sends
 * @pace: as last set by ibv_modify_qp_rate_limit(); 0: by ibv_modify_qp, or not at all
 * @recvs_done: messages that consumed a receive, since the last RESET by the application
 * @sq_extra: send requests that the device has beyond init.cap.max_send_wr
 * @readdressed: the device's AV or destination is not what the application set
 * @ex: made by create_qp_ex; @has_ops: with send_ops_flags, so that it has ibv_wr_*
 * @has_recv: has a receive queue of its own
 * @pin: enum rp_immovable that it is counted as, or -1; @rdmacm: and as RP_IMM_RDMACM;
 *	@ece: and as RP_IMM_ECE
 * @ud_posting, @ud_posting_since: threads that look for whom their requests are for, since when (ah_unused.c)
 * @ud_waiting_since: as @sq's requests that are not given to the device
 * @scratch: requests with real keys, for the device
 * @next_hashed: in ctx->srq_qps
 * @conn: the module's connection while a move goes on (conn.c), else NULL
 */
struct rp_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qpx;
	};
	struct ibv_qp *real;
	struct rp_lock lock;
	union {
		struct {
			bool gate, recv_gate;
			bool xlate;	/* keys must be translated: ctx->lkeys or rkeys is set */
			bool tailed;	/* its requests say more than those of RC */
		};
		uint32_t slow;		/* one look at all of them (ring.h) */
	};
	atomic_bool swallow;
	atomic_bool flushed;		/* while swallowing: the first flushed send was seen */
	atomic_bool failed;
	atomic_bool buried;
	atomic_bool sqd_due;
	atomic_uint mig_due;
	bool sqd_asked;
	struct rp_keymap *rkeys;
	struct rp_keyset *keyset;	/* that @rkeys is of (keys.c) */
	struct list_node in_keyset;
	uint64_t keys_held;		/* since when requests wait for @rkeys; 0: none does */
	uint64_t keys_asked;		/* the peer is being asked about keys of requests before this one; 0: it is not */
	uint64_t keys_sure;		/* before this one, a key that is not known is wrong */
	bool key_stop;			/* a request had a wrong key: nothing behind it is given */
	bool as_is;			/* in ERR for that: what is given is only flushed */
	atomic_bool key_failed;		/* and its completion was reported */
	uint64_t bad_index;		/* which one, while @key_stop */
	enum ibv_wc_status bad_status;
	struct rp_ring sq, rq;
	atomic_uint_fast64_t recvs_done;
	struct rp_slot marker;
	atomic_bool marker_done;
	atomic_int marker_status;	/* enum ibv_wc_status */
	atomic_bool marker_out;		/* on its way */
	bool marker_let;		/* the peer's is let in, beyond what the owner allows */
	pthread_mutex_t control;
	struct ibv_qp_init_attr_ex init;
	struct ibv_qp_attr attr;
	int attr_mask;
	struct rp_port dest, alt_dest, alt_known;
	bool alternate, other, sqe;
	struct ibv_qp_rate_limit_attr pace;
	unsigned int async_events_unacked;
	unsigned int sq_extra;
	unsigned int sig_all;		/* IBV_SEND_SIGNALED when every request is */
	bool rebinding;			/* memory windows, after a move (mw.c) */
	union {
		struct {
			bool readdressed;
			bool handles;	/* requests name objects, or are built by ibv_wr_*(): always translated */
		};
		uint16_t foreign;	/* one look at both: a completion may have the device's numbers */
	};
	bool ex, has_ops, has_recv, rdmacm, ece;
	int pin;
	struct rp_scratch *scratch;
	struct rp_qp *next_hashed;
	uint32_t hashed_qpn;
	struct rp_conn *conn;
	struct rp_ud_drain *ud_drain;	/* ud.c */
	atomic_uint ud_posting;
	_Atomic uint64_t ud_posting_since;
	uint64_t ud_waiting_since;
	struct list_head mcasts;
	struct list_node node;
	struct rp_batch *batch;		/* ibv_wr_*: what is being built (wr.c) */
};

/* Does a request of this kind take a receive at the other end? */
static inline bool rp_consumes_receive(enum ibv_wr_opcode op)
{
	const unsigned int set = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM |
				 1u << IBV_WR_SEND_WITH_INV | 1u << IBV_WR_RDMA_WRITE_WITH_IMM;

	return (unsigned int)op < 32 && (set >> op & 1);
}

extern struct rp_lock rp_contexts_lock;
extern struct list_head rp_contexts;

static inline struct rp_context *to_rp_context(struct ibv_context *c)
{
	return (struct rp_context *)((char *)c - offsetof(struct rp_context, vctx.context));
}
static inline struct rp_pd *to_rp_pd(struct ibv_pd *p) { return (struct rp_pd *)p; }
static inline struct rp_mr *to_rp_mr(struct ibv_mr *m) { return (struct rp_mr *)m; }
static inline struct rp_cq *to_rp_cq(struct ibv_cq *c) { return (struct rp_cq *)c; }
static inline struct rp_qp *to_rp_qp(struct ibv_qp *q) { return (struct rp_qp *)q; }
static inline struct rp_channel *to_rp_channel(struct ibv_comp_channel *c)
{
	return (struct rp_channel *)c;
}

/*
 * Entering libibverbs. The real functions call each other through the PLT, that is, through us;
 * inside RP_REAL() our wrappers pass straight through. Evaluates to the call's value.
 */
extern __thread int rp_depth __attribute__((tls_model("initial-exec")));
#define RP_REAL(call) ({							\
	int rp_cancel_ = rp_uncancelled();					\
	rp_depth++;								\
	__auto_type rp_ret_ = (call);						\
	rp_depth--;								\
	rp_cancelled_as(rp_cancel_);						\
	rp_ret_; })
#define RP_REAL_VOID(call) ((void)RP_REAL(((call), 0)))

/* The table of libibverbs' own functions, from verbs.def: rp_real.ibv_create_qp(...) (real.c) */
#include "real.h"

/* --- what the object files offer to move.c; all return 0 or -errno --- */

/* Releases the provider's object; the caller holds ctx->verbs for writing. */
int rp_pd_release(struct rp_pd *pd);
int rp_mr_release(struct rp_mr *mr);
int rp_channel_release(struct rp_channel *ch);
int rp_cq_release(struct rp_cq *cq);
int rp_qp_release(struct rp_qp *qp);
int rp_context_release(struct rp_context *ctx);

/*
 * Makes the provider's object anew as it was asked for. Of a queue pair: creates it (a QPN that is
 * another queue pair's virtual number is not accepted: tried again) and leaves it in RESET.
 * Of a context: opens the device of that name. The caller holds ctx->verbs for writing.
 */
int rp_context_recreate(struct rp_context *ctx, const char *name);
int rp_pd_recreate(struct rp_pd *pd);
int rp_mr_recreate(struct rp_mr *mr);
int rp_channel_recreate(struct rp_channel *ch);
int rp_cq_recreate(struct rp_cq *cq);	/* and arms it if it was armed */
/* Before the first of a context: notes the numbers that are not to be given to others. */
void rp_qps_recreate_begin(void);
int rp_qp_recreate(struct rp_qp *qp);

/* Takes every completion that the device has into the software queue (unless hidden), raises the
 * channel if the CQ was armed. Returns how many were taken. */
int rp_cq_harvest(struct rp_cq *cq);
/* Makes the device's queue hold at least @cqe entries, as far as the device allows. */
int rp_cq_grow(struct rp_cq *cq, unsigned int cqe);
/* Puts one completion of @qp, already translated, into the software queue. Caller holds cq->lock. */
void rp_cq_soft_push(struct rp_cq *cq, const struct rp_qp *qp, const struct ibv_wc *wc);
/* After soft pushes: raises the channel when armed; @solicited: by one of those, or in error. Caller holds
 * cq->lock. */
void rp_cq_soft_notify(struct rp_cq *cq, bool solicited);

/* Gives ring entries from submitted to head to the device, keys translated. Caller holds qp->lock.
 * On failure stops there and returns the provider's error (positive errno). */
int rp_qp_submit_sends(struct rp_qp *qp);
int rp_qp_submit_recvs(struct rp_qp *qp);
/* Posts the marker: a signalled RDMA WRITE of no bytes. Sets marker_done when it comes back. */
int rp_qp_post_marker(struct rp_qp *qp);
/* Completes a slot of the send ring without the device: retires it and all before it, pushes a
 * completion with @status if one is due. Caller holds the send CQ's lock and qp->lock. */
void rp_qp_settle_send(struct rp_qp *qp, uint64_t index, enum ibv_wc_status status);
void rp_qp_settle_recv(struct rp_qp *qp, uint64_t index, enum ibv_wc_status status);

/* Everything that was submitted has been executed: what asked for no completion goes too. */
void rp_qp_retire_all(struct rp_qp *qp);

/* Real modify: not recorded in qp->attr, indexes translated, other values as given. */
int rp_qp_modify_real(struct rp_qp *qp, struct ibv_qp_attr *attr, int mask);

/* Tells the application (ibv_get_async_event) of a port, or of a queue pair. */
void rp_async_soft_event(struct rp_context *ctx, enum ibv_event_type type, int port);
void rp_async_soft_qp_event(struct rp_qp *qp, enum ibv_event_type type);
/* Events that the device has told become software events, but for those that a move has caused. */
void rp_async_take(struct rp_context *ctx);
bool rp_async_take_mig(struct rp_qp *qp);

/* The local keys of all its MRs, for ctx->lkeys. */
struct rp_keymap *rp_context_lkeys(struct rp_context *ctx);

/* --- what move.c, ctl.c and request.c offer to the object files --- */

/* Before a device is opened: waits while that device is away on a move (away.c). */
void rp_move_wait_open(const char *device_name);
/* It is open and in the list of contexts, or it is not. A move waits for that. */
void rp_move_open_end(void);
/* The same about closing: before a context leaves the list, and rp_move_open_end() when it is closed. */
void rp_move_close_begin(void);
/* First open of a device: registers with the module (starts the control thread); never fails the
 * application. */
void rp_ctl_start(void);
/* A key was made after a move: tells the peers and waits (bounded) for their answers. */
void rp_peer_new_key(struct rp_context *ctx, uint32_t serial);
/* One is not there any more: tells the peers, does not wait. */
void rp_peer_key_removed(struct rp_context *ctx);
/* The application is about to destroy a queue pair that may be in the middle of a move. Called
 * without locks; afterwards nobody else uses the queue pair. */
void rp_peer_qp_gone(struct rp_qp *qp);
/* It goes to ERR or RESET: if its peer moves that is not waited for. */
void rp_peer_qp_ends(struct rp_qp *qp);

/* dl.c: the C library's dlvsym(), which ours stands in front of; called from here. */
void *rp_dl_real(void *handle, const char *name, const char *version);

/* direct.c: our refusal of a provider's direct verb that does not look whose object it is given, or NULL. */
void *rp_direct(const char *library, const char *name);

enum rp_log_level { RP_LOG_ERR, RP_LOG_INFO, RP_LOG_DEBUG };
void rp_log(enum rp_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));		/* log.c; silent unless REPATH_LOG */

/* REPATH_DISABLE=1: every wrapper passes through. Read at the first verb, or when this is loaded. */
#define RP_UNREAD	(-1)
extern atomic_int rp_disabled;
bool rp_is_disabled(void);
extern bool rp_no_remap;	/* REPATH_NO_REMAP=1 (tests): keys, QPN are not translated */

#endif /* RP_SHIM_H */
