// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* May this process be moved? It is asked, and it asks its peers; nothing changes. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "move.h"

static void say(char *text, size_t room, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void say(char *text, size_t room, const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	if (n < room)
		vsnprintf(text + n, room - n, fmt, ap);
	va_end(ap);
}

void rp_move_check_context(struct rp_context *ctx, bool force, char *why, size_t room)
{
	char text[REPATH_REASON_MAX];
	struct rp_qp *qp;
	int what, n;

	for (what = 0; what < RP_IMM_N; what++) {
		n = atomic_load(&ctx->immovable[what]);
		if (!n)
			continue;
		rp_immovable_say(what, n, text, sizeof(text));
		say(why, room, "%s%s", why[0] ? ", " : "", text);
	}
	rp_lock(&ctx->objects);
	list_for_each(qp, &ctx->qps, node) {
		if (!rp_conn_connectable(qp) || why[0])
			continue;
		if (!qp->conn)
			say(why, room, "QP 0x%x: the module knows no connection of it",
			    qp->qp.qp_num);
		else if (!force && !rp_conn_peer_moves(qp->conn) && qp->conn->known != REPATH_CONN_NO_PEER)
			say(why, room, "QP 0x%x: its peer%s", qp->qp.qp_num,
			    qp->conn->known == REPATH_CONN_NO_SHIM ? " has no libibrepath.so" :
								     "'s host does not answer");
	}
	rp_unlock(&ctx->objects);
}

static void ask_peers(struct rp_context *ctx)
{
	struct rp_conn *c;
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node)
		rp_peer_prepare(p, ctx);
	/* Those are under way meanwhile. */
	list_for_each(c, &rp_conns, node)
		if (c->ctx == ctx)
			rp_conn_look(c);
}

static bool peers_pending(void)
{
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node)
		if (p->prepares)
			return true;
	return false;
}

void rp_move_check(uint32_t op, uint32_t dev_index, const char *name, bool force)
{
	char why[REPATH_REASON_MAX] = "";
	struct rp_context *ctx;
	struct rp_move *m, *tmp;
	unsigned int n = 0;
	int ret;

	list_for_each_safe(m, tmp, &rp_moves, node) {
		if (m->dev_index != dev_index)
			continue;
		if (m->state > MOVE_CHECKED) {
			rp_ctl_reply(op, REPATH_STAGE_CHECK, EBUSY, "another move is under way",
				     NULL);
			return;
		}
		rp_move_end(m);
	}
	ret = rp_rdmacm_ids(dev_index);
	if (ret) {
		if (ret > 0)
			snprintf(why, sizeof(why), "%d ID%s of librdmacm, which can not be moved",
				 ret, ret > 1 ? "s" : "");
		else
			snprintf(why, sizeof(why), "it uses librdmacm, and its IDs can not be read: %s",
				 strerror(-ret));
		rp_ctl_reply(op, REPATH_STAGE_CHECK, EOPNOTSUPP, why, NULL);
		return;
	}
	if (rp_held_by_others(dev_index, why, sizeof(why))) {
		rp_log(RP_LOG_ERR, "%s can not be moved: %s", name, why);
		rp_ctl_reply(op, REPATH_STAGE_CHECK, EOPNOTSUPP, why, NULL);
		return;
	}
	ret = rp_conns_refresh();
	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (ctx->real && ctx->dev_index == (int)dev_index) {
			n++;
			rp_move_check_context(ctx, force, why, sizeof(why));
		}
	rp_unlock(&rp_contexts_lock);
	if (ret)
		snprintf(why, sizeof(why), "its connections can not be read: %s", strerror(-ret));
	else if (!n)
		snprintf(why, sizeof(why), "%s was not opened through libibrepath.so", name);
	if (why[0]) {
		rp_ctl_reply(op, REPATH_STAGE_CHECK, EOPNOTSUPP, why, NULL);
		return;
	}

	m = calloc(1, sizeof(*m));
	if (!m) {
		rp_ctl_reply(op, REPATH_STAGE_CHECK, ENOMEM, "out of memory", NULL);
		return;
	}
	m->op = op;
	m->dev_index = dev_index;
	snprintf(m->name, sizeof(m->name), "%s", name);
	m->force = force;
	m->state = MOVE_CHECK;
	list_add_tail(&rp_moves, &m->node);
	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (ctx->real && ctx->dev_index == (int)dev_index)
			ask_peers(ctx);
	rp_unlock(&rp_contexts_lock);
	rp_move_prepared();
}

void rp_move_prepared(void)
{
	struct rp_move *m;

	if (peers_pending())
		return;
	list_for_each(m, &rp_moves, node)
		if (m->state == MOVE_CHECK) {
			m->state = MOVE_CHECKED;
			rp_ctl_reply(m->op, REPATH_STAGE_CHECK, 0, NULL, NULL);
		}
}

void rp_move_refused(const struct rp_context *ctx, const char *why)
{
	struct rp_move *m, *tmp;

	list_for_each_safe(m, tmp, &rp_moves, node)
		if (m->state == MOVE_CHECK && (int)m->dev_index == ctx->dev_index) {
			rp_ctl_reply(m->op, REPATH_STAGE_CHECK, EOPNOTSUPP, why, NULL);
			rp_move_end(m);
		}
}
