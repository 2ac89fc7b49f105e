/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the verbs half share: objects that are not moved in this release, and how a
 * wrapper enters and leaves libibverbs.
 */
#ifndef RP_OBJECTS_H
#define RP_OBJECTS_H

#include <errno.h>

#include "shim.h"

/* Inside libibverbs, or switched off: handles are real ones. */
#define RP_PASSING \
	unlikely(rp_depth || (atomic_load_explicit(&rp_disabled, memory_order_relaxed) && rp_is_disabled()))

/* The real context's entry in struct verbs_context; lacking.c's where the device of now has none. */
#define RP_SLOT(ctx, op) ({						\
	const struct verbs_context *rp_v_ = verbs_get_ctx_op((ctx)->real, op);	\
	(rp_v_ ? rp_v_ : &rp_lacking)->op; })
#define RP_HAS_SLOT(ctx, op) (verbs_get_ctx_op((ctx)->real, op) != NULL)

extern const struct verbs_context rp_lacking;

#define RP_NO_KEY 0xffffffffu	/* nobody's */

/* verbs_lock.c: how many verbs this thread is inside of, in callbacks; and when a move waits for others to end */
extern __thread unsigned int rp_verbs_inside __attribute__((tls_model("initial-exec")));
void rp_verbs_give_way(struct rp_context *ctx);

/*
 * Control verbs wait here while their context is away. False: inside, with errno, in a child of fork() whose parent's
 * device was away then: it has none, and will have none.
 */
static inline bool __attribute__((warn_unused_result)) rp_verbs_enter(struct rp_context *ctx)
{
	if (unlikely(atomic_load(&ctx->verbs_wanted)) && !rp_verbs_inside)
		rp_verbs_give_way(ctx);
	pthread_rwlock_rdlock(&ctx->verbs);
	rp_verbs_inside++;
	if (likely(ctx->real))
		return true;
	errno = ENODEV;
	return false;
}

/* Does not wait: false while it is away. */
static inline bool rp_verbs_try_enter(struct rp_context *ctx)
{
	if (pthread_rwlock_tryrdlock(&ctx->verbs))
		return false;
	rp_verbs_inside++;
	return true;
}

static inline void rp_verbs_leave(struct rp_context *ctx)
{
	int saved = errno;

	rp_verbs_inside--;
	pthread_rwlock_unlock(&ctx->verbs);
	errno = saved;
}

/* Of a verb that could be entered only. */
static inline int rp_verbs_refuse(struct rp_context *ctx)
{
	rp_verbs_leave(ctx);
	return ENODEV;
}

static inline void rp_pin(struct rp_context *ctx, enum rp_immovable what)
{
	atomic_fetch_add(&ctx->immovable[what], 1);
}

static inline void rp_unpin(struct rp_context *ctx, enum rp_immovable what)
{
	atomic_fetch_sub(&ctx->immovable[what], 1);
}

static inline void rp_link(struct rp_context *ctx, struct list_head *head, struct list_node *n)
{
	rp_lock(&ctx->objects);
	list_add_tail(head, n);
	rp_unlock(&ctx->objects);
}

static inline void rp_unlink(struct rp_context *ctx, struct list_node *n)
{
	rp_lock(&ctx->objects);
	list_del(n);
	rp_unlock(&ctx->objects);
}

/* Waits as libibverbs does in every destroy: until all events of the object are acknowledged. */
static inline void rp_wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond,
				 const unsigned int *unacked)
{
	pthread_mutex_lock(mutex);
	while (*unacked)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

/* -errno of a verb that returns NULL or -1 and sets errno. */
static inline int rp_minus_errno(void)
{
	return errno ? -errno : -EIO;
}

/**
 * struct rp_pool - receives that do not complete in the order in which they were posted (pool.h)
 * @posted: those that have not completed, @n of them, oldest first
 * @away: there is no device to give them to; @max: how many are kept then
 */
struct rp_pool {
	struct rp_lock lock;
	struct rp_context *ctx;
	struct list_head free, posted;
	struct rp_chunk *chunks;
	unsigned int max_sge, n, max;
	bool away;
	int (*post)(void *owner, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	void *owner;
};

/**
 * struct rp_srq - a shared receive queue
 * @init: as asked for, with our handles; attr as it was told to the application
 * @limit: as set and not yet reported
 * @pin: what it is counted as, enum rp_immovable, or -1
 */
struct rp_srq {
	struct ibv_srq srq;
	struct ibv_srq *real;
	struct rp_pool pool;
	struct ibv_srq_init_attr_ex init;
	atomic_uint limit;
	bool ex;
	int pin;
	unsigned int async_events_unacked;
	struct list_node node;
};

struct rp_wq {
	struct ibv_wq wq;
	struct ibv_wq *real;
	struct rp_pool pool;
	unsigned int async_events_unacked;
	struct list_node node;
};

struct rp_rwq_ind_table {
	struct ibv_rwq_ind_table tbl;
	struct ibv_rwq_ind_table *real;
};

struct rp_td {
	struct ibv_td td;
	struct ibv_td *real;
	struct ibv_td_init_attr attr;
	struct list_node node;
};

struct rp_xrcd {
	struct ibv_xrcd xrcd;
	struct ibv_xrcd *real;
};

struct rp_dm {
	struct ibv_dm dm;
	struct ibv_dm *real;
};

struct rp_counters_obj {
	struct ibv_counters counters;
	struct ibv_counters *real;
};

struct rp_flow {
	struct ibv_flow flow;
	struct ibv_flow *real;
};

struct rp_flow_action {
	struct ibv_flow_action action;
	struct ibv_flow_action *real;
};

static inline struct rp_srq *to_rp_srq(struct ibv_srq *s) { return (struct rp_srq *)s; }
static inline struct ibv_pd *real_pd(struct ibv_pd *p) { return p ? to_rp_pd(p)->real : NULL; }
static inline struct ibv_cq *real_cq(struct ibv_cq *c) { return c ? to_rp_cq(c)->real : NULL; }
static inline struct ibv_srq *real_srq(struct ibv_srq *s) { return s ? to_rp_srq(s)->real : NULL; }
static inline struct ibv_td *real_td(struct ibv_td *t)
{
	return t ? ((struct rp_td *)t)->real : NULL;
}
static inline struct ibv_xrcd *real_xrcd(struct ibv_xrcd *x)
{
	return x ? ((struct rp_xrcd *)x)->real : NULL;
}
static inline struct ibv_mr *real_mr(struct ibv_mr *m) { return m ? to_rp_mr(m)->real : NULL; }

/* device.c */
struct rp_device *rp_device_of(struct ibv_device *real);
struct ibv_context *rp_device_open(struct rp_device *dev);
void rp_devices_hold(struct ibv_device **list);	/* libibverbs' list of now, which is theirs */

/* async.c */
void rp_async_free(struct rp_context *ctx);
void rp_async_forget(struct rp_context *ctx, const void *object);	/* before it is freed */

/* srq.c, for moves; 0 or -errno */
int rp_srq_release(struct rp_srq *srq);
int rp_srq_recreate(struct rp_srq *srq);
int rp_srq_refill(struct rp_srq *srq);	/* posts again what the device has not; keys are known */

/* gids.c: GID indexes are the application's on one side, the device's on the other */
int rp_real_sgid(const struct rp_context *ctx, int port, int index);
int rp_virtual_sgid(const struct rp_context *ctx, int port, int index);
void rp_gids_free(struct rp_context *ctx);

/* pkeys.c: the same of P_Keys */
int rp_real_pkey(const struct rp_context *ctx, int port, int index);
int rp_virtual_pkey(const struct rp_context *ctx, int port, int index);
/* Has the port the P_Key that the application knows by this index? */
bool rp_pkey_is_there(const struct rp_context *ctx, int port, int index);
void rp_pkeys_free(struct rp_context *ctx);

/* channel.c */
void rp_channel_take_events(struct rp_channel *ch);	/* real events become soft ones */
void rp_channel_forget_cq(struct rp_cq *cq);		/* before it is freed */
enum rp_armed { RP_ARMED_NOT, RP_ARMED_ANY, RP_ARMED_SOLICITED };
enum rp_armed rp_cq_armed(const struct rp_cq *cq);	/* for what does it still owe an event? */
void rp_cq_arm(struct rp_cq *cq, bool solicited_only);
/*
 * A request will fail that succeeds for the device. An error is an event for those, too, who wait for solicited
 * ones only: from now on the device is asked for all.
 */
void rp_cq_any_event(struct rp_cq *cq);
void rp_cq_event_came(struct rp_cq *cq);		/* one of the device's, or none will come */

/* cq.c; the caller holds cq->lock */
bool rp_wc_translate(struct ibv_wc *wc);	/* false: not for the application */
bool rp_cq_soft_pop(struct rp_cq *cq, struct ibv_wc *wc, struct rp_wc_more *more);
/* cq.c; without locks */
/* Takes completions while their slots mean them: before a queue pair is destroyed or reset. */
void rp_cq_sweep(struct rp_cq *cq);
/* To make room in a ring; not when the application has left unpolled as many as the CQ has entries. */
void rp_cq_sweep_if_room(struct rp_cq *cq);
/*
 * Afterwards: takes them again, and drops those of @qp. Most devices do: a program may have freed what their
 * wr_ids point to. What others left in the CQ an event may still tell of.
 */
void rp_cq_forget_qp(struct rp_cq *cq, const struct rp_qp *qp);

/* cq_ex.c */
int rp_cq_ex_init(struct rp_cq *cq);
void rp_cq_ex_free(struct rp_cq *cq);
/* The device's next entry, as it is: 0, ENOENT or what start_poll() says. The caller holds cq->lock. */
int rp_cq_ex_read(struct rp_cq *cq, struct ibv_wc *wc, struct rp_wc_more *more);

/* clock.c */
/* The stamps of the device that is there will be read; false: its clock can not be. */
bool rp_clock_use(struct rp_context *ctx);
uint64_t rp_clock_real_to_virtual(const struct rp_context *ctx, uint64_t cycles);
/* For an entry that comes from no device. */
void rp_clock_stamp(struct rp_context *ctx, struct rp_wc_more *more);
/* Before the device is closed, and when another one is open: 0, or -errno and why. */
void rp_clock_leave(struct rp_context *ctx);
int rp_clock_enter(struct rp_context *ctx, char *why, size_t room);

/* pd.c, for moves; 0 or -errno */
int rp_td_release(struct rp_td *td);
int rp_td_recreate(struct rp_td *td);

/* ud.c: what is freed with a queue pair */
void rp_ud_free(struct rp_qp *qp);

/* qp.c */
void rp_qp_sweep(struct rp_qp *qp);	/* its CQs, see rp_cq_sweep() */
void rp_qp_forget_completions(struct rp_qp *qp);	/* in them, see rp_cq_forget_qp() */
/* Of those with an SRQ, which has this number on the device? Compared only. */
const struct rp_qp *rp_qp_of_srq(struct rp_context *ctx, uint32_t real_qpn);
/* A receive from an SRQ: counts it, and gives the completion our number; true: flushed by a move. */
bool rp_qp_srq_completion(struct rp_context *ctx, struct ibv_wc *wc);

/* ring.c, post_send.c */
void rp_qp_reset_rings(struct rp_qp *qp);
/* @like: what a slot is to have room for */
int rp_ring_alloc(struct rp_ring *r, unsigned int depth, const struct rp_ring *like,
		  enum rp_slot_kind kind, void *owner);

/* Posts a list of @n, all of it or nothing where the queue has no room or a request is malformed. */
int rp_qp_post_batch(struct rp_qp *qp, struct ibv_send_wr *wr, unsigned int n);

/* wr.c */
#define RP_WR_OPS (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |		\
		   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |	\
		   IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |	\
		   IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |				\
		   IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_TSO | IBV_QP_EX_WITH_ATOMIC_WRITE)
int rp_wr_init(struct rp_qp *qp);
void rp_wr_free(struct rp_qp *qp);

struct rp_mw;
/* keys_change.c: regions and windows come, go, and are made anew; peers are told afterwards */
void rp_keys_add_mr(struct rp_context *ctx, struct rp_mr *mr);
/* The device may have given its number to somebody else by then, but for rp_keys_taken(). */
void rp_keys_del_mr(struct rp_context *ctx, struct rp_mr *mr);
/*
 * It has other rights or keys by ibv_rereg_mr(), before which peers were told of @real_rkey, or were not. true: there is
 * something to tell. Caller holds ctx->objects.
 */
bool rp_keys_change_mr(struct rp_context *ctx, struct rp_mr *mr, bool told, uint32_t real_rkey);
void rp_keys_add_mw(struct rp_context *ctx, struct rp_mw *mw);
void rp_keys_del_mw(struct rp_context *ctx, struct rp_mw *mw);
void rp_keys_renumber(struct rp_context *ctx);		/* all of them are new */
/*
 * Is something else known by them, or may it be by peers that have not heard yet? @lkey: NULL: a
 * window's, of which all keys with the upper 24 bits of @rkey are. @null: other null regions may have them, too
 */
bool rp_keys_taken(struct rp_context *ctx, const uint32_t *lkey, uint32_t rkey, bool null);
/*
 * Peers are told all keys anew; 0 is that of a device that has not moved. On the control thread, which holds
 * ctx->objects.
 */
static inline void rp_keys_new_table(struct rp_context *ctx)
{
	if (!++ctx->tables)
		++ctx->tables;
	ctx->keys_clean = ctx->key_serial;
}

/* That they were taken back up to this change: all have heard it. */
void rp_keys_forget_removed(struct rp_context *ctx, uint32_t serial);
void rp_keys_changes_free(struct rp_context *ctx);

/* The functions behind the inline verbs, in the slots of every context that we hand out. */
struct ibv_mw *rp_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int rp_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int rp_dealloc_mw(struct ibv_mw *mw);
int rp_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int rp_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int rp_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int rp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int rp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

int rp_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t len);
int rp_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg, uint32_t n);
struct ibv_mr *rp_alloc_null_mr(struct ibv_pd *pd);
int rp_read_counters(struct ibv_counters *c, uint64_t *values, uint32_t n, uint32_t flags);
int rp_attach_counters_point_flow(struct ibv_counters *c, struct ibv_counter_attach_attr *attr,
				  struct ibv_flow *flow);
struct ibv_counters *rp_create_counters(struct ibv_context *c, struct ibv_counters_init_attr *a);
int rp_destroy_counters(struct ibv_counters *c);
struct ibv_mr *rp_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			    unsigned int access);
struct ibv_dm *rp_alloc_dm(struct ibv_context *c, struct ibv_alloc_dm_attr *attr);
int rp_free_dm(struct ibv_dm *dm);
int rp_modify_flow_action_esp(struct ibv_flow_action *a, struct ibv_flow_action_esp_attr *attr);
int rp_destroy_flow_action(struct ibv_flow_action *a);
struct ibv_flow_action *rp_create_flow_action_esp(struct ibv_context *c,
						  struct ibv_flow_action_esp_attr *attr);
int rp_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
struct ibv_pd *rp_alloc_parent_domain(struct ibv_context *c,
				      struct ibv_parent_domain_init_attr *attr);
int rp_dealloc_td(struct ibv_td *td);
struct ibv_td *rp_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int rp_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int rp_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad);
int rp_destroy_rwq_ind_table(struct ibv_rwq_ind_table *t);
struct ibv_rwq_ind_table *rp_create_rwq_ind_table(struct ibv_context *c,
						  struct ibv_rwq_ind_table_init_attr *attr);
int rp_destroy_wq(struct ibv_wq *wq);
int rp_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
struct ibv_wq *rp_create_wq(struct ibv_context *c, struct ibv_wq_init_attr *attr);
int rp_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);
struct ibv_cq_ex *rp_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);
int rp_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t size);
int rp_destroy_flow(struct ibv_flow *flow);
struct ibv_flow *rp_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
struct ibv_qp *rp_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *attr);
struct ibv_qp *rp_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);
int rp_get_srq_num(struct ibv_srq *srq, uint32_t *num);
struct ibv_srq *rp_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr);
struct ibv_xrcd *rp_open_xrcd(struct ibv_context *c, struct ibv_xrcd_init_attr *attr);
int rp_close_xrcd(struct ibv_xrcd *xrcd);

#endif /* RP_OBJECTS_H */
