// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The numbers and GIDs by which others know this process's queue pairs, for the module: it answers
 * for them when somebody wants to connect, and tells those who send to UD queue pairs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "objects.h"
#include "resolve.h"

#define ROWS 2048	/* of one message */

/* Queue pairs of this host that are known by numbers not their own. */
static atomic_uint known;

void rp_numbers_about(uint32_t count)
{
	atomic_store(&known, count);
}

bool rp_numbers_any(void)
{
	return atomic_load(&known);
}

struct check {
	uint32_t dev_index, qpn;
	int ret;
};

static void check(void *arg)
{
	struct check *c = arg;

	c->ret = rp_ctl_number_check(c->dev_index, c->qpn);
}

int rp_number_check(struct rp_context *ctx, uint32_t qpn)
{
	struct check c = { .dev_index = ctx->dev_index, .qpn = qpn };

	if (!rp_numbers_any() || !rp_ctl_call(check, &c) || !c.ret)
		return 0;
	if (c.ret != -EADDRINUSE && c.ret != -EBUSY) {
		rp_log(RP_LOG_ERR, "the module does not say whose number 0x%x is: %s", qpn,
		       strerror(-c.ret));
		return 0;
	}
	return c.ret;
}

static uint32_t lid_of(struct rp_context *ctx, uint8_t port)
{
	struct ibv_port_attr attr = { 0 };

	if (RP_REAL(rp_real.ibv_query_port(ctx->real, port, (void *)&attr)) ||
	    attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		return 0;
	return attr.lid;
}

static bool has_ud(struct rp_context *ctx)
{
	struct rp_qp *qp;
	bool has = false;

	rp_lock(&ctx->objects);
	list_for_each(qp, &ctx->qps, node)
		has |= qp->qp.qp_type == IBV_QPT_UD;
	rp_unlock(&ctx->objects);
	return has;
}

/* What has become of each GID since the last time; who sends to a UD queue pair reaches it by one. */
static unsigned int gid_changes(struct rp_context *ctx, struct repath_gid_change **out)
{
	unsigned int n = 0;
	uint32_t lid[5];
	int i;

	*out = ctx->ngids && has_ud(ctx) ? calloc(ctx->ngids, sizeof(**out)) : NULL;
	if (!*out)
		return 0;
	memset(lid, 0xff, sizeof(lid));
	for (i = 0; i < ctx->ngids && n < REPATH_GIDS_MAX; i++) {
		struct repath_gid_change *c = &(*out)[n];
		uint32_t port = ctx->gids[i].is.port_num;

		if (port > 4)
			continue;
		if (lid[port] == UINT32_MAX)
			lid[port] = lid_of(ctx, port);
		memcpy(c->old, &ctx->gids[i].before, sizeof(c->old));
		memcpy(c->now, &ctx->gids[i].now.gid, sizeof(c->now));
		c->port = port;
		c->lid = lid[port];
		n++;
	}
	return n;
}

void rp_numbers_tell(struct rp_context *ctx)
{
	static struct repath_number rows[ROWS];		/* of the control thread */
	struct repath_gid_change *gids;
	unsigned int n = 0, ngids = gid_changes(ctx, &gids);
	bool told = false;
	struct rp_qp *qp;
	int i;

	rp_lock(&ctx->objects);
	list_for_each(qp, &ctx->qps, node) {
		if (!qp->real || (qp->real->qp_num == qp->qp.qp_num &&
				  qp->qp.qp_type != IBV_QPT_UD))
			continue;
		rows[n].qpn = qp->real->qp_num;
		rows[n++].known_as = qp->qp.qp_num;
		if (n < ROWS)
			continue;
		rp_ctl_numbers(ctx->dev_index, rows, n, gids, ngids);
		told = true;
		n = 0;
	}
	rp_unlock(&ctx->objects);
	/* At least once: the process has moved, whatever its numbers are. */
	if (n || !told)
		rp_ctl_numbers(ctx->dev_index, rows, n, gids, ngids);
	for (i = 0; i < ctx->ngids; i++)
		ctx->gids[i].before = ctx->gids[i].now.gid;
	free(gids);
}

void rp_numbers_again(void)
{
	struct rp_context *ctx;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (ctx->real && !ctx->move) {
			if (ctx->epoch)
				rp_numbers_tell(ctx);
			rp_dests_again(ctx);
		}
	rp_unlock(&rp_contexts_lock);
}
