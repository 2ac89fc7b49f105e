// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * GIDs. An application names its own by indexes into the port's table, which is another one on each device, and
 * on RoCE follows the addresses of the network interfaces: after a move an index stands for the device's GID
 * that plays the same role, and one that has come meanwhile is remembered from the next move on.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "objects.h"
#include "recreate.h"
#include "ud.h"

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

static int read_table(struct rp_context *ctx, struct ibv_gid_entry **gids)
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

int rp_real_sgid(const struct rp_context *ctx, int port, int index)
{
	if (port < 1 || port > 4 || !ctx->sgid_map[port - 1] || index < 0 ||
	    index >= ctx->sgid_map_len)
		return index;
	return ctx->sgid_map[port - 1][index];
}

int rp_virtual_sgid(const struct rp_context *ctx, int port, int index)
{
	int i;

	if (port < 1 || port > 4 || !ctx->sgid_map[port - 1])
		return index;
	for (i = 0; i < ctx->sgid_map_len; i++)
		if (ctx->sgid_map[port - 1][i] == index)
			return i;
	return index;
}

static bool same_gid(const struct ibv_gid_entry *a, const struct ibv_gid_entry *b)
{
	return a->port_num == b->port_num && a->gid_type == b->gid_type && !memcmp(&a->gid, &b->gid, sizeof(a->gid));
}

static bool same_role(const struct ibv_gid_entry *a, const struct ibv_gid_entry *b)
{
	return a->port_num == b->port_num && a->gid_type == b->gid_type && gid_kind(&a->gid) == gid_kind(&b->gid);
}

static struct rp_gid *gid_at(const struct rp_context *ctx, uint32_t port, int index)
{
	int i;

	for (i = 0; i < ctx->ngids; i++)
		if (ctx->gids[i].is.port_num == port && (int)ctx->gids[i].is.gid_index == index)
			return &ctx->gids[i];
	return NULL;
}

/* --- when a device is left --- */

static void save_gid(struct rp_context *ctx, const struct ibv_gid_entry *is)
{
	const int index = rp_virtual_sgid(ctx, is->port_num, is->gid_index);
	struct rp_gid *g = gid_at(ctx, is->port_num, index), *more;

	if (!g) {
		more = realloc(ctx->gids, (ctx->ngids + 1) * sizeof(*more));
		if (!more) {
			rp_log(RP_LOG_ERR, "GID index %d of %s is forgotten: out of memory", index, ctx->name);
			return;
		}
		ctx->gids = more;
		g = &ctx->gids[ctx->ngids++];
		memset(g, 0, sizeof(*g));
	}
	/* What stands for one since a move is no other; what has come, or has another address, is. */
	if (!same_gid(&g->now, is)) {
		g->is = g->now = *is;
		g->is.gid_index = index;
		g->before = is->gid;
	}
	g->there = true;
}

void rp_gids_save(struct rp_context *ctx)
{
	struct ibv_gid_entry *gids;
	int n, i;

	/* Once in a move, as the P_Keys: what a device has in between no application has asked for. */
	if (ctx->pkeys_saved)
		return;
	n = read_table(ctx, &gids);
	for (i = 0; i < ctx->ngids && n > 0; i++)
		ctx->gids[i].there = false;
	for (i = 0; i < n; i++)
		save_gid(ctx, &gids[i]);
	free(gids);
}

/* --- when another one is open --- */

static bool in_use(const struct rp_context *ctx, const struct ibv_gid_entry *g)
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

static void stand_for(struct rp_gid *g, const struct ibv_gid_entry *new, bool *taken)
{
	g->now = *new;
	g->found = true;
	*taken = true;
}

static void match(struct rp_context *ctx, const struct ibv_gid_entry *new, int n, bool *taken, bool there,
		  bool (*alike)(const struct ibv_gid_entry *a, const struct ibv_gid_entry *b))
{
	struct rp_gid *g;
	int i;

	for (g = ctx->gids; g < ctx->gids + ctx->ngids; g++)
		for (i = 0; i < n && g->there == there && !g->found; i++)
			if (!taken[i] && alike(&new[i], &g->is))
				stand_for(g, &new[i], &taken[i]);
}

/* Fewer than before: the n-th of its kind and type, which stands for another, too, is better than none. */
static void share(struct rp_context *ctx, struct rp_gid *g, const struct ibv_gid_entry *new, int n, bool *taken)
{
	int i, rank = 0;

	for (i = 0; &ctx->gids[i] != g; i++)
		rank += same_role(&ctx->gids[i].is, &g->is);
	for (i = 0; i < n && !g->found; i++)
		if (same_role(&new[i], &g->is) && !rank--)
			stand_for(g, &new[i], &taken[i]);
}

/*
 * Each GID gets one of the device's: itself, else the next of its kind and type; what had gone from the last
 * device comes last. Those who use ours that it stands for will be told of it.
 */
static void match_all(struct rp_context *ctx, const struct ibv_gid_entry *new, int n, bool *taken)
{
	struct rp_gid *g;

	for (g = ctx->gids; g < ctx->gids + ctx->ngids; g++) {
		memset(&g->now, 0, sizeof(g->now));
		g->found = false;
	}
	match(ctx, new, n, taken, true, same_gid);
	match(ctx, new, n, taken, false, same_gid);
	match(ctx, new, n, taken, true, same_role);
	match(ctx, new, n, taken, false, same_role);
	for (g = ctx->gids; g < ctx->gids + ctx->ngids; g++)
		if (!g->found && in_use(ctx, &g->is))
			share(ctx, g, new, n, taken);
}

static int find(const int *map, int len, int real)
{
	int i;

	for (i = 0; i < len && map[i] != real; i++)
		;
	return i;
}

static void swap(int *map, int a, int b)
{
	int was = map[a];

	map[a] = map[b];
	map[b] = was;
}

/* An index at which the application knows nothing, nor finds anything; @index if there is none. */
static int spare(const struct rp_context *ctx, const struct ibv_gid_entry *new, int n, const int *map, int len,
		 int port, int index)
{
	int i, k;

	for (i = 0; i < len; i++) {
		if (gid_at(ctx, port, i))
			continue;
		for (k = 0; k < n && !((int)new[k].port_num == port && (int)new[k].gid_index == map[i]); k++)
			;
		if (k == n)
			return i;
	}
	return index;
}

/*
 * A permutation, so that the application finds all that there are, each by one index; but for one that stands
 * for two. What stands for none of ours has no index that another had: the application may have kept that.
 */
static void fill(const struct rp_context *ctx, int port, const struct ibv_gid_entry *new, int n,
		 const bool *taken, int *map, int len)
{
	const struct rp_gid *g, *holder;
	int i, at;

	for (i = 0; i < len; i++)
		map[i] = i;
	for (g = ctx->gids; g < ctx->gids + ctx->ngids; g++) {
		if ((int)g->is.port_num != port || !g->found)
			continue;
		at = find(map, len, g->now.gid_index);
		holder = gid_at(ctx, port, at);
		if (at == len || (holder && holder->found && holder->now.gid_index == g->now.gid_index))
			map[g->is.gid_index] = g->now.gid_index;
		else
			swap(map, at, g->is.gid_index);
	}
	for (i = 0; i < n; i++) {
		if ((int)new[i].port_num != port || taken[i])
			continue;
		at = find(map, len, new[i].gid_index);
		if (at < len && gid_at(ctx, port, at))
			swap(map, at, spare(ctx, new, n, map, len, port, at));
	}
}

static int make_maps(struct rp_context *ctx, const struct ibv_gid_entry *new, int n, const bool *taken)
{
	int i, len = 1;

	for (i = 0; i < ctx->ngids; i++)
		if ((int)ctx->gids[i].is.gid_index >= len)
			len = ctx->gids[i].is.gid_index + 1;
	for (i = 0; i < n; i++)
		if ((int)new[i].gid_index >= len)
			len = new[i].gid_index + 1;
	ctx->sgid_map_len = len;
	for (i = 0; i < 4; i++) {
		free(ctx->sgid_map[i]);
		ctx->sgid_map[i] = malloc(len * sizeof(int));
	}
	for (i = 0; i < 4; i++) {
		if (!ctx->sgid_map[i])
			return -ENOMEM;
		fill(ctx, i + 1, new, n, taken, ctx->sgid_map[i], len);
	}
	return 0;
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

static bool needs_link(const struct ibv_gid_entry *g)
{
	return g->gid_type == IBV_GID_TYPE_ROCE_V2 && gid_kind(&g->gid) != GID_IPV4;
}

int rp_gids_map(struct rp_context *ctx, bool *late_link, char *why, size_t room)
{
	struct ibv_gid_entry *new;
	const struct rp_gid *g;
	int n = read_table(ctx, &new), ret = -ENOMEM;
	bool *taken;

	if (n < 0) {
		snprintf(why, room, "%s: its GIDs can not be read: %s", ctx->name, strerror(-n));
		return n;
	}
	taken = calloc(n + 1, sizeof(*taken));
	if (taken) {
		match_all(ctx, new, n, taken);
		ret = make_maps(ctx, new, n, taken);
	}
	free(taken);
	free(new);
	if (ret) {
		snprintf(why, room, "out of memory");
		return ret;
	}
	for (g = ctx->gids; g < ctx->gids + ctx->ngids; g++) {
		if (!in_use(ctx, &g->is))
			continue;
		*late_link |= g->found && needs_link(&g->is) && link_is_late(g->now.ndev_ifindex);
		if (g->found && g->is.port_num <= 4)
			continue;
		snprintf(why, room, "%s port %u has no GID of the kind of index %u yet; configure its address",
			 ctx->name, g->is.port_num, g->is.gid_index);
		ret = -EAGAIN;
	}
	return ret;
}

void rp_gids_free(struct rp_context *ctx)
{
	int i;

	for (i = 0; i < 4; i++)
		free(ctx->sgid_map[i]);
	free(ctx->gids);
}
