// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conn.h"
#include "mw.h"
#include "recreate.h"
#include "resolve.h"
#include "ud.h"

/* A port comes up, and its GIDs are written, some time after the device has appeared. */
#define READY_NS	5000000000ull
#define POLL_NS		5000000

static bool port_in_use(const struct rp_context *ctx, int port)
{
	struct rp_qp *qp;

	list_for_each(qp, &ctx->qps, node)
		if (qp->attr.port_num == port)
			return true;
	return false;
}

static int ports_active(struct rp_context *ctx, char *why, size_t room)
{
	int port;

	for (port = 1; port <= 4; port++) {
		struct ibv_port_attr p = { 0 };

		if (!port_in_use(ctx, port))
			continue;
		if (RP_REAL(rp_real.ibv_query_port(ctx->real, port, (void *)&p))) {
			snprintf(why, room, "%s has no port %d", ctx->name, port);
			return -ENODEV;
		}
		if (p.state != IBV_PORT_ACTIVE) {
			snprintf(why, room, "%s port %d is not ACTIVE", ctx->name, port);
			return -EAGAIN;
		}
	}
	return 0;
}

int rp_recreate_open(struct rp_context *ctx, const char *name, char *why, size_t room)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	uint64_t end = rp_now_ns() + READY_NS;
	int ret = rp_context_recreate(ctx, name);
	bool late, late_link;

	if (ret) {
		snprintf(why, room, "%s can not be opened: %s", name, strerror(-ret));
		return ret;
	}
	ret = rp_limits_check(ctx, why, room);
	if (!ret)
		ret = rp_lacking_check(ctx, why, room);
	if (ret)
		return ret;
	for (;;) {
		late = rp_now_ns() >= end;
		late_link = false;
		ret = ports_active(ctx, why, room);
		if (!ret)
			ret = rp_gids_map(ctx, &late_link, why, room);
		if (!ret)
			ret = rp_pkeys_map(ctx, why, room);
		/* It goes without, too. */
		if (!ret && !late && (late_link || rp_alternates_wait(ctx)))
			ret = -EAGAIN;
		if (!ret)
			ret = rp_clock_enter(ctx, why, room);
		if (ret != -EAGAIN || late)
			return ret == -EAGAIN ? -ENETDOWN : ret;
		nanosleep(&pause, NULL);
	}
}

/* What the addresses of a port are now may be asked again: as on hardware that was given others. */
static void tell_ports(struct rp_context *ctx)
{
	struct ibv_device_attr attr;
	int port;

	if (RP_REAL(rp_real.ibv_query_device(ctx->real, &attr)))
		attr.phys_port_cnt = 1;
	for (port = 1; port <= attr.phys_port_cnt; port++) {
		struct ibv_port_attr p = { 0 };

		rp_async_soft_event(ctx, IBV_EVENT_GID_CHANGE, port);
		if (!RP_REAL(rp_real.ibv_query_port(ctx->real, port, (void *)&p)) && p.lid)
			rp_async_soft_event(ctx, IBV_EVENT_LID_CHANGE, port);
	}
}

int rp_recreate_objects(struct rp_context *ctx, char *why, size_t room)
{
	struct rp_channel *ch;
	struct rp_pd *pd;
	struct rp_mr *mr;
	struct rp_cq *cq;
	struct rp_srq *srq;
	struct rp_td *td;
	struct rp_ah *ah;
	struct rp_mw *mw;
	struct rp_qp *qp;
	struct rp_keymap *lkeys, *old;
	int ret = 0;

#define RECREATE(what, list, obj, fn)							\
	list_for_each(obj, &ctx->list, node) {						\
		ret = fn(obj);								\
		if (ret) {								\
			snprintf(why, room, "%s on %s: %s", what, ctx->name,		\
				 strerror(-ret));					\
			return ret;							\
		}									\
	}
	RECREATE("thread domain", tds, td, rp_td_recreate);
	RECREATE("protection domain", pds, pd, rp_pd_recreate);
	RECREATE("memory region", mrs, mr, rp_mr_recreate);
	RECREATE("completion channel", channels, ch, rp_channel_recreate);
	RECREATE("completion queue", cqs, cq, rp_cq_recreate);
	RECREATE("shared receive queue", srqs, srq, rp_srq_recreate);
	rp_qps_recreate_begin();
	RECREATE("queue pair", qps, qp, rp_qp_recreate);
	RECREATE("memory window", mws, mw, rp_mw_recreate);
	RECREATE("address handle", ahs, ah, rp_ah_recreate);
#undef RECREATE

	ctx->limits_before = ctx->limits;
	ctx->epoch++;
	lkeys = rp_context_lkeys(ctx);
	if (!lkeys) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	old = ctx->lkeys;
	__atomic_store_n(&ctx->lkeys, lkeys, __ATOMIC_RELEASE);
	list_for_each(qp, &ctx->qps, node) {
		rp_lock(&qp->lock);
		qp->xlate = true;
		qp->swallow = false;
		qp->sq.submitted = atomic_load(&qp->sq.retired);
		qp->rq.submitted = atomic_load(&qp->rq.retired);
		rp_unlock(&qp->lock);
	}
	/* Posts to an SRQ are looked through even while it is away. */
	list_for_each(srq, &ctx->srqs, node) {
		rp_lock(&srq->pool.lock);
		rp_unlock(&srq->pool.lock);
	}
	rp_keymap_free(old);
	list_for_each(srq, &ctx->srqs, node) {
		ret = rp_srq_refill(srq);
		if (ret < 0) {
			snprintf(why, room, "receives of a shared receive queue can not be posted again: %s",
				 strerror(-ret));
			return ret;
		}
		if (rp_counters)
			rp_counters->replayed_recvs += ret;
	}
	list_for_each(qp, &ctx->qps, node) {
		if (qp->conn && qp->conn->moving)
			continue;
		ret = rp_qp_restore(qp);
		if (ret) {
			snprintf(why, room, "QP 0x%x can not be put back into its state: %s",
				 qp->qp.qp_num, strerror(-ret));
			return ret;
		}
	}
	rp_keys_renumber(ctx);
	rp_numbers_tell(ctx);
	rp_dests_again(ctx);
	tell_ports(ctx);
	return 0;
}

int rp_release_context(struct rp_context *ctx)
{
	struct rp_channel *ch;
	struct rp_pd *pd;
	struct rp_mr *mr;
	struct rp_cq *cq;
	struct rp_srq *srq;
	struct rp_td *td;
	struct rp_ah *ah;
	struct rp_mw *mw;
	struct rp_qp *qp;
	int ret = 0, r;

	if (!ctx->real)
		return 0;
	list_for_each(qp, &ctx->qps, node) {
		if (qp->conn && qp->conn->moving)
			rp_conn_leave(qp->conn);
		else
			rp_sqe_look(qp);
	}
	rp_gids_save(ctx);
	rp_ports_save(ctx);	/* these three in this order */
	rp_pkeys_save(ctx);
	rp_clock_leave(ctx);
	rp_drain_harvest(ctx);
	rp_async_take(ctx);
#define RELEASE(what, list, obj, fn)							\
	list_for_each_reverse(obj, &ctx->list, node) {					\
		if (!obj->real)								\
			continue;							\
		r = fn(obj);								\
		if (r) {								\
			rp_log(RP_LOG_ERR, "%s of %s is not released: %s", what,	\
			       ctx->name, strerror(-r));				\
			ret = ret ? ret : r;						\
		}									\
	}
	list_for_each(qp, &ctx->qps, node) {
		rp_lock(&qp->lock);
		qp->gate = qp->recv_gate = true;
		rp_unlock(&qp->lock);
		if (qp->qp.qp_type == IBV_QPT_UD)
			rp_ud_flush(qp);
		rp_ud_drain_end(qp);
	}
	/* A window before its queue pair and its region. */
	RELEASE("memory window", mws, mw, rp_mw_release);
	RELEASE("queue pair", qps, qp, rp_qp_release);
	RELEASE("address handle", ahs, ah, rp_ah_release);
	rp_drain_harvest(ctx);
	RELEASE("shared receive queue", srqs, srq, rp_srq_release);
	RELEASE("completion queue", cqs, cq, rp_cq_release);
	RELEASE("memory region", mrs, mr, rp_mr_release);
	RELEASE("completion channel", channels, ch, rp_channel_release);
	RELEASE("protection domain", pds, pd, rp_pd_release);
	RELEASE("thread domain", tds, td, rp_td_release);
#undef RELEASE
	r = rp_context_release(ctx);
	if (r)
		rp_log(RP_LOG_ERR, "%s is not closed: %s", ctx->name, strerror(-r));
	return ret ? ret : r;
}
