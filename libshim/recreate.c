// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
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

/* GIDs of one kind stand for each other on the old and the new device. */
enum gid_kind { GID_NONE, GID_LINK_LOCAL, GID_IPV4, GID_OTHER };

static enum gid_kind gid_kind(const union ibv_gid *g)
{
	static const uint8_t zero[16], v4[12] = { [10] = 0xff, [11] = 0xff };

	if (!memcmp(g->raw, zero, 16) || !memcmp(g->raw + 8, zero, 8))
		return GID_NONE;
	if (g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80)
		return GID_LINK_LOCAL;
	if (!memcmp(g->raw, v4, 12))
		return GID_IPV4;
	return GID_OTHER;
}

static int read_gids(struct rp_context *ctx, struct ibv_gid_entry **gids)
{
	int room = 0, port, n;
	struct ibv_device_attr attr;

	*gids = NULL;
	if (RP_REAL(rp_real.ibv_query_device(ctx->real, &attr)))
		return -errno;
	for (port = 1; port <= attr.phys_port_cnt; port++) {
		struct ibv_port_attr p = { 0 };

		if (!RP_REAL(rp_real.ibv_query_port(ctx->real, port, (void *)&p)))
			room += p.gid_tbl_len;
	}
	if (!room)
		return 0;
	*gids = calloc(room, sizeof(**gids));
	if (!*gids)
		return -ENOMEM;
	n = RP_REAL(rp_real._ibv_query_gid_table(ctx->real, *gids, room, 0, sizeof(**gids)));
	if (n < 0) {
		free(*gids);
		*gids = NULL;
	}
	return n;
}

/* The index on the new device of the GID that plays the role of @want; -1: not there (yet). */
static int match_gid(const struct ibv_gid_entry *want, const struct ibv_gid_entry *old, int nold,
		     const struct ibv_gid_entry *new, int nnew)
{
	int i, rank = 0;

	for (i = 0; i < nnew; i++)
		if (new[i].port_num == want->port_num && new[i].gid_type == want->gid_type &&
		    !memcmp(&new[i].gid, &want->gid, sizeof(want->gid)))
			return new[i].gid_index;
	/* The n-th of its kind and type */
	for (i = 0; i < nold && &old[i] != want; i++)
		rank += old[i].port_num == want->port_num && old[i].gid_type == want->gid_type &&
			gid_kind(&old[i].gid) == gid_kind(&want->gid);
	for (i = 0; i < nnew; i++)
		if (new[i].port_num == want->port_num && new[i].gid_type == want->gid_type &&
		    gid_kind(&new[i].gid) == gid_kind(&want->gid) && !rank--)
			return new[i].gid_index;
	return -1;
}

static bool gid_in_use(const struct rp_context *ctx, const struct ibv_gid_entry *g)
{
	struct rp_qp *qp;
	struct rp_ah *ah;

	list_for_each(ah, &ctx->ahs, node)
		if (ah->attr.is_global && ah->attr.port_num == g->port_num &&
		    ah->attr.grh.sgid_index == g->gid_index)
			return true;
	list_for_each(qp, &ctx->qps, node)
		if (rp_conn_connectable(qp) && qp->attr.ah_attr.is_global &&
		    qp->attr.port_num == g->port_num &&
		    qp->attr.ah_attr.grh.sgid_index == g->gid_index)
			return true;
	return false;
}

/* The GID at an index of the new device. Those who use ours that it stands for will be told of it. */
static const struct ibv_gid_entry *note_gid(struct rp_context *ctx, int i, const struct ibv_gid_entry *new, int nnew,
					    int at)
{
	int k;

	memset(&ctx->gid_now[i], 0, sizeof(ctx->gid_now[i]));
	for (k = 0; k < nnew && at >= 0; k++)
		if (new[k].port_num == ctx->gids[i].port_num && (int)new[k].gid_index == at) {
			ctx->gid_now[i] = new[k].gid;
			return &new[k];
		}
	return NULL;
}

static bool needs_link(const struct rp_context *ctx, const struct ibv_gid_entry *g)
{
	return g->gid_type == IBV_GID_TYPE_ROCE_V2 && gid_kind(&g->gid) != GID_IPV4 && gid_in_use(ctx, g);
}

/* Up, and with a carrier: IFF_LOWER_UP, which is not in <net/if.h>. */
#define UP	(IFF_UP | 1u << 16)

/*
 * A port of RoCE is ACTIVE with its carrier, but IPv6 has no route, and none to a group, before the kernel calls
 * the link operational (up to a second later): what soft RoCE is given to send meanwhile is an error. IPv4 has
 * its routes with its address.
 */
static bool link_is_late(unsigned int ifindex)
{
	struct ifaddrs *all, *i;
	bool late = false;

	if (getifaddrs(&all))
		return false;
	for (i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET &&
		    (unsigned int)((const struct sockaddr_ll *)i->ifa_addr)->sll_ifindex == ifindex)
			late = (i->ifa_flags & UP) == UP && !(i->ifa_flags & IFF_RUNNING);
	freeifaddrs(all);
	return late;
}

/* 0, or -EAGAIN with what is missing in @why. @late_link: one is not operational yet */
static int map_gids(struct rp_context *ctx, bool *late_link, char *why, size_t room)
{
	const struct ibv_gid_entry *now;
	struct ibv_gid_entry *new;
	int n = read_gids(ctx, &new), i, at, len = 0, ret = 0;

	if (n < 0) {
		snprintf(why, room, "%s: its GIDs can not be read: %s", ctx->name, strerror(-n));
		return n;
	}
	for (i = 0; i < ctx->ngids; i++)
		if ((int)ctx->gids[i].gid_index >= len)
			len = ctx->gids[i].gid_index + 1;
	for (i = 0; i < 4; i++) {
		free(ctx->sgid_map[i]);
		ctx->sgid_map[i] = malloc((len ? len : 1) * sizeof(int));
		for (at = 0; ctx->sgid_map[i] && at < len; at++)
			ctx->sgid_map[i][at] = at;
	}
	ctx->sgid_map_len = len;
	for (i = 0; i < ctx->ngids; i++) {
		const struct ibv_gid_entry *g = &ctx->gids[i];

		at = match_gid(g, ctx->gids, ctx->ngids, new, n);
		now = note_gid(ctx, i, new, n, at);
		*late_link |= now && needs_link(ctx, g) && link_is_late(now->ndev_ifindex);
		if (at >= 0 && g->port_num <= 4 && ctx->sgid_map[g->port_num - 1]) {
			ctx->sgid_map[g->port_num - 1][g->gid_index] = at;
		} else if (gid_in_use(ctx, g)) {
			snprintf(why, room, "%s port %u has no GID of the kind of index %u yet; configure its address",
				 ctx->name, g->port_num, g->gid_index);
			ret = -EAGAIN;
		}
	}
	free(new);
	return ret;
}

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

/* What others know us by until they are told (rp_numbers_tell()). */
static int keep_gids_before(struct rp_context *ctx)
{
	int i;

	if (!ctx->ngids || ctx->gid_now)
		return 0;
	ctx->gid_now = calloc(2 * ctx->ngids, sizeof(*ctx->gid_now));
	if (!ctx->gid_now)
		return -ENOMEM;
	ctx->gid_before = ctx->gid_now + ctx->ngids;
	for (i = 0; i < ctx->ngids; i++)
		ctx->gid_before[i] = ctx->gids[i].gid;
	return 0;
}

int rp_recreate_open(struct rp_context *ctx, const char *name, char *why, size_t room)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	uint64_t end = rp_now_ns() + READY_NS;
	int ret = keep_gids_before(ctx);
	bool late, late_link;

	if (!ret)
		ret = rp_context_recreate(ctx, name);
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
			ret = map_gids(ctx, &late_link, why, room);
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

static void save_gids(struct rp_context *ctx)
{
	struct ibv_gid_entry *gids;
	int n;

	if (ctx->gids)
		return;
	n = read_gids(ctx, &gids);
	if (n > 0) {
		ctx->gids = gids;
		ctx->ngids = n;
	}
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
	save_gids(ctx);
	rp_ports_save(ctx);	/* these two in this order */
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
