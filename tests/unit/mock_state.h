/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the mock share. Everything is under mock.lock, a leaf for its callers. */
#ifndef MOCK_STATE_H
#define MOCK_STATE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"

/* Programs reach the symbols through these macros; we define the symbols. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define MOCK_SGE	16
#define MOCK_INLINE	256
#define MOCK_HEADER	128	/* of TSO */
#define MOCK_GIDS	16

struct mock_device {
	struct ibv_device dev;
	const void *driver;		/* here, as in libibverbs: whose it is */
	int refs, contexts, index;
	bool plugged;
	uint32_t next_qpn, next_key;
	int max_qp_wr, max_cqe, takes_wr;
	struct ibv_global_route last_grh;
	uint64_t clock_khz, clock_starts;
	bool hidden_clock;
	enum ibv_port_state port;
	struct ibv_gid_entry gids[MOCK_GIDS];
	int ngids;
	uint16_t pkeys[MOCK_PKEYS];
	struct ibv_device_attr limits;
	uint64_t without;
	int ports;
	uint16_t lid;
	bool no_apm;
	uint32_t max_rate;
	struct mock_device *next;
};

struct mock_event {
	struct ibv_async_event event;
	struct ibv_cq *cq;		/* of a channel */
	struct mock_event *next;
};

/* Events that wait, and a pipe that holds one byte for each. */
struct mock_events {
	int pipe[2];
	struct mock_event *first, **last;
};

struct mock_context {
	struct verbs_context vctx;
	struct mock_device *device;
	struct mock_events events;
	struct mock_context *next;
};

struct mock_pd {
	struct ibv_pd pd;
	int users;
	struct mock_pd *parent_of;	/* of a parent domain, an imported one: what it is made of */
	struct mock_td *td;
	struct mock_pd *next;
};

struct mock_td {
	struct ibv_td td;
	int users;
};

struct mock_group {
	union ibv_gid gid;
	struct mock_group *next;
};

struct mock_mr {
	struct ibv_mr mr;
	uint64_t iova;
	unsigned int access;
	bool null;
	unsigned int windows;		/* bound to it: it can not go */
	struct mock_mr *next;
};

struct mock_mw {
	struct ibv_mw mw;
	uint32_t key;			/* as last bound */
	struct mock_mr *mr;		/* NULL: not bound */
	struct mock_qp *qp;		/* type 2 */
	uint64_t addr, length;
	unsigned int access;
	struct mock_mw *next;
};

struct mock_channel {
	struct ibv_comp_channel ch;
	struct mock_events events;
};

struct mock_cqe {
	struct ibv_wc wc;
	uint32_t life;		/* of the queue pair, to free its slots */
	bool is_send;
	uint64_t index;
	struct mock_srq *srq;
	uint64_t cycles, wallclock_ns;
};

struct mock_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct mock_cqe *ring;
	unsigned int size, head, n;
	int armed;		/* 1: any, 2: solicited only */
	bool overrun;
	int users;
	uint32_t comp_events_given;
	struct ibv_wc current;
	uint64_t current_cycles, current_wallclock_ns;
	struct mock_cq *next;
	struct {		/* null mode */
		uint64_t wr_id;
		uint32_t qpn;
	} null[4096];
	unsigned int null_head, null_tail;
};

struct mock_wqe {
	struct ibv_send_wr wr;
	struct ibv_sge sge[MOCK_SGE];
	bool signaled;
	uint32_t inline_len;
	uint64_t at_ns;
	uint32_t dest_qpn, qkey;
	union ibv_gid dgid;
	struct mock_ah *ah;
	uint32_t window_key;		/* the handle's, before it is bound */
	uint32_t bytes;
	char data[MOCK_INLINE], header[MOCK_HEADER];
};

struct mock_rqe {
	uint64_t wr_id;
	int nsge;
	struct ibv_sge sge[MOCK_SGE];
};

/* Absolute numbers: tail (freed by polling) <= acked <= exec <= head. */
struct mock_sq {
	struct mock_wqe *ring;
	unsigned int size;
	uint64_t head, exec, acked, tail;
	uint64_t blocked_ns;		/* since when nothing answers; 0: not */
	enum ibv_wc_status blocked_by;	/* what it will end with */
};

struct mock_rq {
	struct mock_rqe *ring;
	unsigned int size, max_sge;
	uint64_t head, next, tail;
};

struct mock_xrcd {
	struct ibv_xrcd xrcd;
	int users;
};

struct mock_srq {
	struct ibv_srq srq;
	struct mock_xrcd *xrcd;
	struct mock_rq rq;
	unsigned int given;		/* consumed and not yet polled */
	uint32_t limit;
	int users;
};

struct mock_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct mock_sq sq;
	struct mock_rq rq;
	uint32_t life;			/* counts RESETs */
	uint32_t sq_psn, rq_psn;	/* next */
	bool has_ops;
	unsigned int max_header;	/* of TSO */
	bool tells_drained;		/* in SQD, when it is */
	bool migrated;			/* by itself: it sends by what was its alternate path */
	uint32_t rate;
	struct mock_group *groups;
	struct mock_xrcd *xrcd;
	struct mock_batch *batch;
	struct mock_qp *next;
};

struct mock_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

struct mock_failure {
	char function[48];
	int err;
	unsigned int skip, times;
	struct mock_failure *next;
};

struct mock_state {
	pthread_mutex_t lock;
	pthread_cond_t wake, acknowledged;
	struct mock_event *given;	/* asynchronous ones that were read */
	bool worker;
	struct mock_device *devices;	/* unplugged ones too, while referenced */
	struct mock_context *contexts;
	struct mock_pd *pds;		/* that can be imported */
	struct mock_mr *mrs;
	struct mock_mw *windows;
	uint32_t handles;
	unsigned int tags;
	struct mock_qp *qps;
	struct mock_cq *cqs;
	struct mock_failure *failures;
	unsigned int live[MOCK_OBJECTS];
	unsigned int delay_us, reset_us, retry_ms, overruns, strays, lmc;
	bool stalled, hold_acks, lose_answers, null_mode, sqe;
	uint64_t executed;
	uint32_t asked_send_wr, srqn;
	int asked_cqe;
	struct ibv_moderate_cq moderation;
};

extern struct mock_state mock;

static inline void mock_lock(void) { pthread_mutex_lock(&mock.lock); }
static inline void mock_unlock(void) { pthread_mutex_unlock(&mock.lock); }

static inline struct mock_context *mock_context(struct ibv_context *c)
{
	return (struct mock_context *)((char *)c - offsetof(struct mock_context, vctx.context));
}

static inline void *mock_zalloc(size_t n)
{
	void *p = calloc(1, n);

	if (!p)
		abort();
	return p;
}

uint64_t mock_now_ns(void);
/* The errno that a call has to fail with now, or 0. */
int mock_failing(const char *function);
void mock_start_worker(void);

/* mock_device.c; caller holds the lock */
struct mock_device *mock_find_device(const char *name);
/* Of the queue pair; 0: it has none */
uint16_t mock_qp_pkey(const struct mock_qp *qp);
void mock_fill_context(struct mock_context *c);		/* mock_context.c */

/* mock_events.c */
int mock_events_open(struct mock_events *e);
void mock_events_close(struct mock_events *e);
void mock_events_push(struct mock_events *e, const struct mock_event *event);
void mock_events_drop(struct mock_events *e, bool (*match)(const struct mock_event *, void *),
		      void *arg);
int mock_events_pop(struct mock_events *e, struct mock_event *event);	/* takes the lock */
void mock_async(struct ibv_context *c, enum ibv_event_type type, void *object);
void mock_async_drop(struct ibv_context *c, void *object);

/* mock_memory.c; caller holds the lock. NULL: not allowed. */
char *mock_local(struct ibv_pd *pd, const struct ibv_sge *sge, bool write);
uint32_t mock_new_key(struct mock_device *d);
char *mock_remote(struct mock_qp *qp, uint32_t rkey, uint64_t addr, uint64_t len,
		  unsigned int access);

/* mock_clock.c */
#define MOCK_CLOCK_MASK ((1ull << 48) - 1)
uint64_t mock_cycles(const struct mock_device *d);
uint64_t mock_wallclock_ns(void);
int mock_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);

/* mock_cq.c */
void mock_cq_push(struct ibv_cq *cq, const struct mock_cqe *cqe, bool solicited);
int mock_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int mock_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct mock_cq *mock_cq_create(struct ibv_context *c, int cqe, void *context,
			       struct ibv_comp_channel *channel);
struct ibv_cq_ex *mock_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);

/* mock_qp.c */
struct mock_qp *mock_find_qp(uint32_t qpn);
struct mock_qp *mock_new_qp(struct ibv_context *c, struct ibv_pd *pd, struct ibv_qp_init_attr *a);
struct ibv_qp *mock_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);
int mock_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
void mock_migrate(struct mock_qp *qp);	/* caller holds the lock, also of those that follow */
bool mock_draining(const struct mock_qp *qp);
void mock_tell_drained(struct mock_qp *qp);
bool mock_has_gid(const struct mock_device *d, const union ibv_gid *gid);

/* mock_post.c */
int mock_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* Of requests that ibv_wr_*() have made: ibv_post_send() takes no ATOMIC_WRITE. */
#define MOCK_BUILT	(1u << 30)
int mock_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int mock_rq_post(struct mock_rq *rq, unsigned int held, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad);

/* mock_wr.c */
bool mock_wr_has(const struct ibv_qp_init_attr_ex *attr);	/* ... what is asked for */
void mock_wr_init(struct mock_qp *qp);

/* mock_worker.c; caller holds the lock */
void mock_to_error(struct mock_qp *qp);
void mock_flush(struct mock_qp *qp);
void mock_flush_sends(struct mock_qp *qp);

/* mock_srq.c */
int mock_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *mock_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr);
int mock_get_srq_num(struct ibv_srq *srq, uint32_t *num);

/* mock_dm.c */
struct ibv_dm *mock_alloc_dm(struct ibv_context *c, struct ibv_alloc_dm_attr *attr);
int mock_free_dm(struct ibv_dm *dm);
struct ibv_mr *mock_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			      unsigned int access);

/* mock_xrc.c */
struct ibv_xrcd *mock_open_xrcd(struct ibv_context *c, struct ibv_xrcd_init_attr *attr);
int mock_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *mock_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *attr);

/* mock_wq.c */
struct ibv_wq *mock_create_wq(struct ibv_context *c, struct ibv_wq_init_attr *attr);
int mock_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int mock_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *mock_create_rwq_ind_table(struct ibv_context *c,
						    struct ibv_rwq_ind_table_init_attr *attr);
int mock_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);

/* mock_flow.c */
struct ibv_counters *mock_create_counters(struct ibv_context *c,
					  struct ibv_counters_init_attr *attr);
int mock_destroy_counters(struct ibv_counters *counters);
int mock_attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
			 struct ibv_flow *flow);
int mock_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n, uint32_t flags);
struct ibv_flow_action *mock_create_action(struct ibv_context *c,
					   struct ibv_flow_action_esp_attr *attr);
int mock_modify_action(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *attr);
int mock_destroy_action(struct ibv_flow_action *action);
struct ibv_flow *mock_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int mock_destroy_flow(struct ibv_flow *flow);

/* mock_domain.c */
struct ibv_td *mock_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int mock_dealloc_td(struct ibv_td *td);
struct ibv_pd *mock_alloc_parent_domain(struct ibv_context *c,
					struct ibv_parent_domain_init_attr *attr);
struct ibv_mr *mock_alloc_null_mr(struct ibv_pd *pd);
int mock_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg,
		   uint32_t n);
bool mock_same_pd(const struct ibv_pd *a, const struct ibv_pd *b);

/* mock_srq.c: is the queue pair in the group? */
bool mock_in_group(const struct mock_qp *qp, const union ibv_gid *gid);

/* mock_cq.c */
int mock_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

/* mock_window.c */
struct ibv_mw *mock_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int mock_dealloc_mw(struct ibv_mw *mw);
int mock_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
/* What the worker does with them: false, NULL: not allowed. */
bool mock_bind_window(struct mock_qp *qp, const struct ibv_send_wr *wr, uint32_t handle_key);
bool mock_invalidate_window(struct mock_qp *qp, uint32_t key);
char *mock_window_at(struct mock_qp *qp, uint32_t key, uint64_t addr, uint64_t len,
		     unsigned int access);

/* mock_null.c */
int mock_null_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int mock_null_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int mock_null_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);

/* mock_query.c */
int mock_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t len);
int mock_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *in,
			 struct ibv_device_attr_ex *attr, size_t len);

#endif /* MOCK_STATE_H */
