// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process that loses its device: suspend, resume, abort, as the module asks for them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "move.h"
#include "recreate.h"
#include "ud.h"

struct list_head rp_moves = { { &rp_moves.n, &rp_moves.n } };
struct repath_counters *rp_counters;

static struct rp_move *move_find(uint32_t op)
{
	struct rp_move *m;

	list_for_each(m, &rp_moves, node)
		if (m->op == op)
			return m;
	return NULL;
}

static unsigned int ended;	/* moves, ever */

static void want_no_more(const struct rp_move *m)
{
	struct rp_context *ctx;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (ctx->dev_index == (int)m->dev_index)
			rp_verbs_want(ctx, false);
	rp_unlock(&rp_contexts_lock);
}

void rp_move_end(struct rp_move *m)
{
	unsigned int i;

	ended++;
	for (i = 0; i < m->nctxs; i++) {
		m->ctxs[i]->move = NULL;
		m->ctxs[i]->pkeys_saved = false;
		pthread_rwlock_unlock(&m->ctxs[i]->verbs);
	}
	if (m->state == MOVE_LOCK)
		want_no_more(m);
	rp_away_clear(m->name);
	list_del(&m->node);
	free(m->ctxs);
	free(m);
}

/* --- suspend --- */

/* Control verbs that run now must return first; they may wait for this thread, so it only tries. */
static bool lock_contexts(struct rp_move *m)
{
	struct rp_context *ctx;
	bool all = true;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node) {
		struct rp_context **grown;

		if (!ctx->real || ctx->dev_index != (int)m->dev_index || ctx->move)
			continue;
		grown = realloc(m->ctxs, (m->nctxs + 1) * sizeof(*grown));
		if (!grown) {
			all = false;
			break;
		}
		m->ctxs = grown;
		if (pthread_rwlock_trywrlock(&ctx->verbs)) {
			rp_verbs_want(ctx, true);
			all = false;
			continue;
		}
		rp_verbs_want(ctx, false);
		ctx->move = m;
		m->ctxs[m->nctxs++] = ctx;
	}
	rp_unlock(&rp_contexts_lock);
	return all;
}

static void close_gates(struct rp_move *m)
{
	struct rp_qp *qp;
	struct rp_mr *mr;
	unsigned int i;

	for (i = 0; i < m->nctxs; i++) {
		struct rp_context *ctx = m->ctxs[i];

		list_for_each(qp, &ctx->qps, node) {
			rp_lock(&qp->lock);
			qp->gate = true;
			m->counters.send_inflight += qp->sq.submitted -
						     atomic_load(&qp->sq.retired);
			m->counters.recv_posted += qp->rq.submitted -
						   atomic_load(&qp->rq.retired);
			rp_unlock(&qp->lock);
			m->counters.qps++;
			if (qp->conn && rp_conn_connectable(qp))
				rp_conn_begin(qp->conn, true);
			if (qp->conn && qp->conn->moving && !rp_conn_peer_moves(qp->conn))
				rp_conn_give_up(qp->conn);
		}
		list_for_each(mr, &ctx->mrs, node) {
			m->counters.mrs++;
			m->counters.bytes += mr->mr.length;
		}
	}
	m->state = MOVE_GATE;
}

static void ev_suspend(uint32_t op)
{
	struct rp_move *m = move_find(op);

	if (!m || m->state != MOVE_CHECKED) {
		rp_ctl_reply(op, REPATH_STAGE_GATE, EINVAL, "it was not checked", NULL);
		return;
	}
	rp_away_set(m->name);
	m->state = MOVE_LOCK;
}

static void check_again(struct rp_move *m, char *why, size_t room)
{
	unsigned int i;

	why[0] = 0;
	for (i = 0; i < m->nctxs; i++)
		rp_move_check_context(m->ctxs[i], m->force, why, room);
}

/*
 * Something that can not be moved was made after the check. Only what was connected since has a
 * connection that is not known here; peers that have gone meanwhile have said so.
 */
static bool still_movable(struct rp_move *m)
{
	char why[REPATH_REASON_MAX];

	check_again(m, why, sizeof(why));
	if (why[0] || m->force) {
		rp_conns_refresh();
		check_again(m, why, sizeof(why));
	}
	if (!why[0])
		return true;
	rp_ctl_reply(m->op, REPATH_STAGE_GATE, EOPNOTSUPP, why, NULL);
	return false;
}

static bool all_conns(struct rp_move *m, bool (*done)(const struct rp_conn *c))
{
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node)
		if (rp_move_has(m, c->ctx) && c->moving && !c->dead && !done(c))
			return false;
	return true;
}

static bool conn_gated(const struct rp_conn *c) { return c->peer_gated; }
static bool conn_quiet(const struct rp_conn *c) { return c->quiet && c->peer_quiet; }
static bool conn_connected(const struct rp_conn *c) { return c->connected && c->peer_connected; }
/*
 * The end of a peer's move is near, and it has been told the queue pair that we are to leave; or the answer
 * to ABORT of another path is near, which would open the gate.
 */
static bool conn_not_ending(const struct rp_conn *c) { return !c->usable && !c->aborting; }
/* What has become a peer's end does not hold up the end of this move. */
static bool conn_never(const struct rp_conn *c) { return !c->mover; }

static bool datagrams_sent(struct rp_move *m)
{
	unsigned int i;

	m->datagrams = false;
	for (i = 0; i < m->nctxs; i++)
		m->datagrams |= !rp_ud_drained(m->ctxs[i]);
	return !m->datagrams;
}

int rp_move_release(struct rp_move *m)
{
	struct rp_conn *c;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < m->nctxs; i++) {
		int r = rp_release_context(m->ctxs[i]);

		if (r && !ret)
			ret = r;
	}
	list_for_each(c, &rp_conns, node) {
		if (!rp_move_has(m, c->ctx))
			continue;
		if (!c->moving) {
			/* Of one that was in ERR: with its queue pair it has ended for the module, too. */
			c->known = REPATH_CONN_GONE;
			continue;
		}
		c->reset = true;
		c->inited = false;
		c->psn_chosen = false;	/* one that READY told was of this queue pair */
	}
	m->state = MOVE_PARKED;
	return ret;
}

static void release(struct rp_move *m)
{
	int ret = rp_move_release(m);

	rp_ctl_reply(m->op, REPATH_STAGE_RELEASE, -ret,
		     ret ? "the device could not be closed" : NULL, NULL);
}

/* --- resume --- */

void rp_move_resume_on(struct rp_move *m, uint32_t dev_index, const char *name,
		       enum repath_stage failed_stage)
{
	char why[REPATH_REASON_MAX] = "";
	struct rp_conn *c;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < m->nctxs && !ret; i++)
		ret = rp_recreate_open(m->ctxs[i], name, why, sizeof(why));
	if (!ret && failed_stage != REPATH_STAGE_ABORT)
		rp_ctl_reply(m->op, REPATH_STAGE_OPEN, 0, NULL, NULL);
	else if (ret && failed_stage != REPATH_STAGE_ABORT)
		failed_stage = REPATH_STAGE_OPEN;
	for (i = 0; i < m->nctxs && !ret; i++)
		ret = rp_recreate_objects(m->ctxs[i], why, sizeof(why));
	if (ret) {
		for (i = 0; i < m->nctxs; i++)
			rp_release_context(m->ctxs[i]);
		m->state = MOVE_PARKED;
		rp_ctl_reply(m->op, failed_stage, -ret, why, NULL);
		return;
	}
	if (failed_stage != REPATH_STAGE_ABORT)
		rp_ctl_reply(m->op, REPATH_STAGE_RECREATE, 0, NULL, NULL);
	m->dev_index = dev_index;
	m->state = failed_stage == REPATH_STAGE_ABORT ? MOVE_ABORT : MOVE_CONNECT;
	m->connect_told = false;
	list_for_each(c, &rp_conns, node)
		if (rp_move_has(m, c->ctx) && c->moving)
			rp_conn_usable(c);
}

static void ev_resume(uint32_t op, uint32_t dev_index, const char *name)
{
	struct rp_move *m = move_find(op);

	if (m && (m->state == MOVE_CONNECT || m->state == MOVE_AGAIN)) {
		rp_elsewhere_resume(m, dev_index, name);
		return;
	}
	if (!m || m->state != MOVE_PARKED) {
		rp_ctl_reply(op, REPATH_STAGE_OPEN, EINVAL, "it is not suspended", NULL);
		return;
	}
	rp_move_resume_on(m, dev_index, name, REPATH_STAGE_RECREATE);
}

void rp_move_open_gates(struct rp_move *m)
{
	unsigned int i;
	struct rp_qp *qp;

	for (i = 0; i < m->nctxs; i++)
		list_for_each(qp, &m->ctxs[i]->qps, node)
			if (qp->gate && (!qp->conn || !qp->conn->moving)) {
				rp_ud_drain_cancel(qp);
				rp_qp_open_gate(qp);
			}
}

static void ev_abort(uint32_t op)
{
	struct rp_move *m = move_find(op);
	struct rp_conn *c;

	if (!m) {
		rp_ctl_reply(op, REPATH_STAGE_ABORT, 0, NULL, NULL);
		return;
	}
	switch (m->state) {
	case MOVE_CHECK:
	case MOVE_CHECKED:
	case MOVE_LOCK:
		rp_ctl_reply(op, REPATH_STAGE_ABORT, 0, NULL, NULL);
		rp_move_end(m);
		return;
	case MOVE_PARKED:
		rp_move_resume_on(m, m->dev_index, m->name, REPATH_STAGE_ABORT);
		return;
	case MOVE_GATE:
	case MOVE_DRAIN:
	case MOVE_AGAIN:
		list_for_each(c, &rp_conns, node) {
			if (!rp_move_has(m, c->ctx) || !c->moving || c->usable)
				continue;
			if (m->state == MOVE_AGAIN && c->reset) {
				rp_conn_usable(c);	/* it goes on where it is */
			} else if (c->given_up) {
				rp_conn_cancel(c);
			} else if (c->dead) {
				rp_conn_usable(c);	/* buried at the next step */
				c->due = 0;
			} else if ((c->quiet && c->peer_quiet) || c->flushing) {
				/*
				 * Both have stopped, so the peer has left RTS or is about to; or
				 * this end has: meet it by INFO.
				 */
				c->quiet = true;
				rp_conn_reset(c);
				rp_conn_usable(c);
				c->due |= 1u << REPATH_MSG_READY;
			} else {
				c->aborting = true;
				c->due = 1u << REPATH_MSG_ABORT;
			}
		}
		m->state = MOVE_ABORT;
		return;
	case MOVE_CONNECT:	/* all there is to do is to go on */
	case MOVE_ABORT:
		m->state = MOVE_ABORT;
		return;
	}
}

void rp_move_event(int cmd, uint32_t op, uint32_t dev_index, const char *name, uint32_t timeout_ms,
		   bool force)
{
	rp_log(RP_LOG_INFO, "op %u: %s %s, %u ms%s", op,
	       cmd == REPATH_CMD_EV_CHECK ? "check" : cmd == REPATH_CMD_EV_SUSPEND ? "suspend" :
	       cmd == REPATH_CMD_EV_RESUME ? "resume on" : "abort", name, timeout_ms,
	       force ? ", by force" : "");
	switch (cmd) {
	case REPATH_CMD_EV_CHECK:
		rp_move_check(op, dev_index, name, force);
		break;
	case REPATH_CMD_EV_SUSPEND:
		ev_suspend(op);
		break;
	case REPATH_CMD_EV_RESUME:
		ev_resume(op, dev_index, name);
		break;
	case REPATH_CMD_EV_ABORT:
		ev_abort(op);
		break;
	}
}

/* --- progress --- */

static void move_step(struct rp_move *m)
{
	switch (m->state) {
	case MOVE_LOCK:
		if (rp_away_busy() || !lock_contexts(m) || !all_conns(m, conn_not_ending))
			return;
		if (!still_movable(m)) {
			m->state = MOVE_CHECKED;	/* the module aborts */
			return;
		}
		close_gates(m);
		/* fall through */
	case MOVE_GATE:
		if (!all_conns(m, conn_gated))
			return;
		m->state = MOVE_DRAIN;
		rp_ctl_reply(m->op, REPATH_STAGE_GATE, 0, NULL, NULL);
		/* fall through */
	case MOVE_DRAIN:
		if (!all_conns(m, conn_quiet) || !datagrams_sent(m))
			return;
		rp_peer_flush();	/* our READY, before the device goes */
		rp_ctl_reply(m->op, REPATH_STAGE_DRAIN, 0, NULL, &m->counters);
		release(m);
		return;
	case MOVE_AGAIN:
		rp_elsewhere_step(m);
		return;
	case MOVE_CONNECT:
		if (!m->connect_told && all_conns(m, conn_connected)) {
			rp_ctl_reply(m->op, REPATH_STAGE_CONNECT, 0, NULL, NULL);
			m->connect_told = true;
		}
		if (!all_conns(m, conn_never))
			return;
		rp_move_open_gates(m);
		rp_ctl_reply(m->op, REPATH_STAGE_REPLAY, 0, NULL, &m->counters);
		rp_move_end(m);
		return;
	case MOVE_ABORT:
		if (!all_conns(m, conn_never))
			return;
		rp_move_open_gates(m);
		rp_ctl_reply(m->op, REPATH_STAGE_ABORT, 0, NULL, &m->counters);
		rp_move_end(m);
		return;
	default:
		return;
	}
}

static struct repath_counters *counters_of(const struct rp_conn *c)
{
	return c->ctx->move ? &c->ctx->move->counters : NULL;
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* All, or those that have not closed their gates yet. */
static void step_moves(bool all)
{
	struct rp_move *m, *next;
	unsigned int before;

again:
	before = ended;
	list_for_each_safe(m, next, &rp_moves, node) {
		rp_counters = &m->counters;
		if (all || m->state == MOVE_LOCK)
			move_step(m);
		/* What one says may end others: the next one, too. */
		if (ended != before)
			goto again;
	}
}

int rp_move_tick(void)
{
	struct rp_context *harvested = NULL;
	struct rp_conn *c, *tmp;
	struct rp_move *m;
	bool busy = false;
	bool more = false;
	int ms;

	rp_conns_renumbered();
	rp_peer_expire();
	rp_keys_tick();
	/* First: a queue that is empty when its gate closes is READY at once, and one that is not is watched. */
	step_moves(false);
	list_for_each(c, &rp_conns, node) {
		if (!c->moving || c->ctx == harvested || !c->ctx->real)
			continue;
		if (c->drained && (!c->stuck || c->quiet))
			continue;
		rp_counters = counters_of(c);
		rp_drain_harvest(c->ctx);
		harvested = c->ctx;
	}
	rp_drain_count();
	list_for_each_safe(c, tmp, &rp_conns, node) {
		rp_counters = counters_of(c);
		rp_conn_step(c);
		busy |= c->moving && !c->aborting && !c->dead &&
			((!c->drained && !c->reset) || (c->stuck && !c->quiet) ||
			 (c->in_rts && !c->connected) ||
			 (c->usable && c->informed && !c->in_rts));
	}
	step_moves(true);
	rp_counters = NULL;
	rp_cycle_tick();
	list_for_each(m, &rp_moves, node)
		busy |= m->state == MOVE_LOCK || (m->state == MOVE_DRAIN && m->datagrams);
	rp_peer_flush();
	list_for_each_safe(c, tmp, &rp_conns, node) {
		rp_counters = counters_of(c);
		more |= rp_conn_work(c);
	}
	rp_counters = NULL;
	if (more)
		return 0;
	ms = sooner(rp_peer_wait_ms(), rp_keys_wait_ms());
	ms = sooner(ms, sooner(rp_cycle_wait_ms(), rp_ahs_tick()));
	return busy && (ms < 0 || ms > 1) ? 1 : ms;
}
