// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process that loses its device: check, suspend, resume, abort, as the module asks for them.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "recreate.h"

enum move_state {
	MOVE_CHECK,	/* peers are asked */
	MOVE_CHECKED,
	MOVE_LOCK,	/* waiting for control verbs to return */
	MOVE_GATE,	/* gates closed, the peers' not yet */
	MOVE_DRAIN,
	MOVE_PARKED,	/* released */
	MOVE_CONNECT,	/* recreated; peers are told */
	MOVE_ABORT,	/* going back on the same device */
};

struct rp_move {
	struct list_node node;
	uint32_t op;
	uint32_t dev_index;
	char name[64];
	enum move_state state;
	struct repath_counters counters;
	struct rp_context **ctxs;	/* locked ones */
	unsigned int nctxs;
	bool connect_told;
};

static struct list_head moves = { { &moves.n, &moves.n } };
struct repath_counters *rp_counters;

/* Devices that are on the move; openers wait. */
static pthread_mutex_t away_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t away_changed = PTHREAD_COND_INITIALIZER;
static struct list_head away = { { &away.n, &away.n } };

struct away_device {
	struct list_node node;
	char name[64];
};

static void away_set(const char *name)
{
	struct away_device *d = calloc(1, sizeof(*d));

	if (!d)
		return;
	snprintf(d->name, sizeof(d->name), "%s", name);
	pthread_mutex_lock(&away_lock);
	list_add_tail(&away, &d->node);
	pthread_mutex_unlock(&away_lock);
}

static void away_clear(const char *name)
{
	struct away_device *d, *tmp;

	pthread_mutex_lock(&away_lock);
	list_for_each_safe(d, tmp, &away, node)
		if (!strcmp(d->name, name)) {
			list_del(&d->node);
			free(d);
		}
	pthread_cond_broadcast(&away_changed);
	pthread_mutex_unlock(&away_lock);
}

static bool is_away(const char *name)
{
	struct away_device *d;

	list_for_each(d, &away, node)
		if (!strcmp(d->name, name))
			return true;
	return false;
}

void rp_move_wait_open(const char *name)
{
	pthread_mutex_lock(&away_lock);
	while (is_away(name))
		pthread_cond_wait(&away_changed, &away_lock);
	pthread_mutex_unlock(&away_lock);
}

static struct rp_move *move_find(uint32_t op)
{
	struct rp_move *m;

	list_for_each(m, &moves, node)
		if (m->op == op)
			return m;
	return NULL;
}

static bool mine(const struct rp_move *m, const struct rp_context *ctx)
{
	return ctx->move == m;
}

static void move_free(struct rp_move *m)
{
	unsigned int i;

	for (i = 0; i < m->nctxs; i++) {
		m->ctxs[i]->move = NULL;
		pthread_rwlock_unlock(&m->ctxs[i]->verbs);
	}
	away_clear(m->name);
	list_del(&m->node);
	free(m->ctxs);
	free(m);
}

/* --- check --- */

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

/* rdma_cm keeps connections in the kernel, tied to the device that goes away. */
static bool uses_rdma_cm(void)
{
	char link[64], target[64];
	struct dirent *e;
	DIR *d = opendir("/proc/self/fd");
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%.20s", e->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		found = !strcmp(target, "/dev/infiniband/rdma_cm");
	}
	if (d)
		closedir(d);
	return found;
}

/* Adds what forbids the move to @why. */
static void check_context(struct rp_context *ctx, char *why, size_t room)
{
	struct rp_qp *qp;
	int what, n;

	for (what = 0; what < RP_IMM_N; what++) {
		n = atomic_load(&ctx->immovable[what]);
		if (n)
			say(why, room, "%s%d %s%s", why[0] ? ", " : "", n,
			    rp_immovable_name(what), n > 1 ? "s" : "");
	}
	rp_lock(&ctx->objects);
	list_for_each(qp, &ctx->qps, node) {
		if (!rp_conn_connectable(qp) || why[0])
			continue;
		if (!qp->conn)
			say(why, room, "QP 0x%x: the module knows no connection of it",
			    qp->qp.qp_num);
		else if (qp->conn->known == REPATH_CONN_NO_SHIM)
			say(why, room, "QP 0x%x: its peer has no libibrepath.so", qp->qp.qp_num);
		else if (qp->conn->known != REPATH_CONN_READY &&
			 qp->conn->known != REPATH_CONN_GONE)
			say(why, room, "QP 0x%x: its peer's host does not answer", qp->qp.qp_num);
	}
	rp_unlock(&ctx->objects);
}

static void ask_peers(struct rp_context *ctx)
{
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node)
		rp_peer_prepare(p, ctx);
}

static bool peers_pending(void)
{
	struct rp_peer *p;

	list_for_each(p, &rp_peers, node)
		if (p->prepares)
			return true;
	return false;
}

static void ev_check(uint32_t op, uint32_t dev_index, const char *name)
{
	char why[REPATH_REASON_MAX] = "";
	struct rp_context *ctx;
	struct rp_move *m, *tmp;
	unsigned int n = 0;
	int ret;

	list_for_each_safe(m, tmp, &moves, node) {
		if (m->dev_index != dev_index)
			continue;
		if (m->state > MOVE_CHECKED) {
			rp_ctl_reply(op, REPATH_STAGE_CHECK, EBUSY, "another move is under way",
				     NULL);
			return;
		}
		move_free(m);
	}
	if (uses_rdma_cm()) {
		rp_ctl_reply(op, REPATH_STAGE_CHECK, EOPNOTSUPP,
			     "it uses librdmacm, whose connections can not be moved yet", NULL);
		return;
	}
	ret = rp_conns_refresh();
	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (ctx->real && ctx->dev_index == (int)dev_index) {
			n++;
			check_context(ctx, why, sizeof(why));
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
	m->state = MOVE_CHECK;
	list_add_tail(&moves, &m->node);
	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (ctx->real && ctx->dev_index == (int)dev_index)
			ask_peers(ctx);
	rp_unlock(&rp_contexts_lock);
	if (!peers_pending())
		rp_move_prepared(NULL, NULL);
}

void rp_move_prepared(struct rp_peer *peer, const char *reason)
{
	struct rp_move *m, *tmp;

	(void)peer;
	list_for_each_safe(m, tmp, &moves, node) {
		if (m->state != MOVE_CHECK)
			continue;
		if (reason) {
			rp_ctl_reply(m->op, REPATH_STAGE_CHECK, EOPNOTSUPP, reason, NULL);
			move_free(m);
		} else if (!peers_pending()) {
			m->state = MOVE_CHECKED;
			rp_ctl_reply(m->op, REPATH_STAGE_CHECK, 0, NULL, NULL);
		}
	}
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
			all = false;
			continue;
		}
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

	rp_conns_refresh();
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
	away_set(m->name);
	m->state = MOVE_LOCK;
}

/* Something that can not be moved was made after the check. */
static bool still_movable(struct rp_move *m)
{
	char why[REPATH_REASON_MAX] = "";
	unsigned int i;

	rp_conns_refresh();
	for (i = 0; i < m->nctxs; i++)
		check_context(m->ctxs[i], why, sizeof(why));
	if (!why[0])
		return true;
	rp_ctl_reply(m->op, REPATH_STAGE_GATE, EOPNOTSUPP, why, NULL);
	return false;
}

static bool all_conns(struct rp_move *m, bool (*done)(const struct rp_conn *c))
{
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node)
		if (mine(m, c->ctx) && c->moving && !c->dead && !done(c))
			return false;
	return true;
}

static bool conn_gated(const struct rp_conn *c) { return c->peer_gated; }
static bool conn_quiet(const struct rp_conn *c) { return c->quiet && c->peer_quiet; }
static bool conn_connected(const struct rp_conn *c) { return c->connected && c->peer_connected; }
/* The end of a peer's move is near, and it has been told the queue pair that we are to leave. */
static bool conn_not_ending(const struct rp_conn *c) { return !c->usable; }
static bool conn_never(const struct rp_conn *c) { (void)c; return false; }

static void release(struct rp_move *m)
{
	struct rp_conn *c;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < m->nctxs; i++) {
		int r = rp_release_context(m->ctxs[i]);

		if (r && !ret)
			ret = r;
	}
	list_for_each(c, &rp_conns, node)
		if (mine(m, c->ctx) && c->moving) {
			c->reset = true;
			c->marker_out = false;
		}
	m->state = MOVE_PARKED;
	rp_ctl_reply(m->op, REPATH_STAGE_RELEASE, -ret,
		     ret ? "the device could not be closed" : NULL, NULL);
}

/* --- resume --- */

static void resume_on(struct rp_move *m, uint32_t dev_index, const char *name,
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
		if (mine(m, c->ctx) && c->moving)
			rp_conn_usable(c);
}

static void ev_resume(uint32_t op, uint32_t dev_index, const char *name)
{
	struct rp_move *m = move_find(op);

	if (!m || m->state != MOVE_PARKED) {
		rp_ctl_reply(op, REPATH_STAGE_OPEN, EINVAL, "it is not suspended", NULL);
		return;
	}
	resume_on(m, dev_index, name, REPATH_STAGE_RECREATE);
}

static void open_gates(struct rp_move *m)
{
	unsigned int i;
	struct rp_qp *qp;

	for (i = 0; i < m->nctxs; i++)
		list_for_each(qp, &m->ctxs[i]->qps, node)
			if (qp->gate && (!qp->conn || !qp->conn->moving)) {
				rp_lock(&qp->lock);
				qp->gate = false;
				rp_unlock(&qp->lock);
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
		move_free(m);
		return;
	case MOVE_PARKED:
		resume_on(m, m->dev_index, m->name, REPATH_STAGE_ABORT);
		return;
	case MOVE_GATE:
	case MOVE_DRAIN:
		list_for_each(c, &rp_conns, node) {
			if (!mine(m, c->ctx) || !c->moving)
				continue;
			if (c->dead) {
				rp_conn_usable(c);	/* buried at the next step */
				c->due = 0;
			} else if (c->quiet || c->flushing) {
				/*
				 * The peer may have left RTS on our word, or we have: meet it
				 * by INFO.
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

void rp_move_event(int cmd, uint32_t op, uint32_t dev_index, const char *name, uint32_t timeout_ms)
{
	rp_log(RP_LOG_INFO, "op %u: %s %s, %u ms", op,
	       cmd == REPATH_CMD_EV_CHECK ? "check" : cmd == REPATH_CMD_EV_SUSPEND ? "suspend" :
	       cmd == REPATH_CMD_EV_RESUME ? "resume on" : "abort", name, timeout_ms);
	switch (cmd) {
	case REPATH_CMD_EV_CHECK:
		ev_check(op, dev_index, name);
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

static void conn_lost(struct rp_conn *c)
{
	c->mover = false;	/* its device stays */
	if (c->quiet || c->flushing)
		rp_conn_kill(c);
	else
		rp_conn_cancel(c);
}

/*
 * The module is gone, and with it the word of the peers. What has not been released goes on as it
 * was; what is parked waits for a module. A queue pair of which the peer was told that nothing more
 * comes is not in step with it any more, and nobody will say where the peer is: it has failed.
 */
void rp_move_lost_module(void)
{
	struct rp_move *m, *tmp;
	struct rp_conn *c;

	list_for_each_safe(m, tmp, &moves, node) {
		if (m->state == MOVE_PARKED || m->state == MOVE_CONNECT)
			continue;
		list_for_each(c, &rp_conns, node)
			if (mine(m, c->ctx) && c->moving)
				conn_lost(c);
		open_gates(m);
		move_free(m);
	}
	/* The ends of others' moves. */
	list_for_each(c, &rp_conns, node)
		if (c->moving && !c->ctx->move)
			conn_lost(c);
}

/*
 * What the child has inherited are the parent's objects, through the parent's descriptors: a move of
 * either process must not release or recreate them from here. What they were made of may have been
 * in the middle of a change: nothing is freed.
 */
void rp_move_forked(void)
{
	struct rp_context *ctx, *tmp;
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node)
		c->qp->conn = NULL;
	list_init(&rp_conns);
	list_init(&rp_peers);
	rp_peer_forked();
	list_init(&moves);
	list_init(&away);
	pthread_mutex_init(&away_lock, NULL);
	pthread_cond_init(&away_changed, NULL);
	atomic_store(&rp_contexts_lock.word, 0);
	list_for_each_safe(ctx, tmp, &rp_contexts, node) {
		ctx->move = NULL;
		list_del(&ctx->node);
	}
}

/* --- progress --- */

static void move_step(struct rp_move *m)
{
	switch (m->state) {
	case MOVE_LOCK:
		if (!lock_contexts(m) || !all_conns(m, conn_not_ending))
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
		if (!all_conns(m, conn_quiet))
			return;
		rp_peer_flush();	/* our READY, before the device goes */
		rp_ctl_reply(m->op, REPATH_STAGE_DRAIN, 0, NULL, &m->counters);
		release(m);
		return;
	case MOVE_CONNECT:
		if (!m->connect_told && all_conns(m, conn_connected)) {
			rp_ctl_reply(m->op, REPATH_STAGE_CONNECT, 0, NULL, NULL);
			m->connect_told = true;
		}
		if (!all_conns(m, conn_never))
			return;
		open_gates(m);
		rp_ctl_reply(m->op, REPATH_STAGE_REPLAY, 0, NULL, &m->counters);
		move_free(m);
		return;
	case MOVE_ABORT:
		if (!all_conns(m, conn_never))
			return;
		open_gates(m);
		rp_ctl_reply(m->op, REPATH_STAGE_ABORT, 0, NULL, &m->counters);
		move_free(m);
		return;
	default:
		return;
	}
}

static struct repath_counters *counters_of(const struct rp_conn *c)
{
	return c->ctx->move ? &c->ctx->move->counters : NULL;
}

int rp_move_tick(void)
{
	struct rp_context *harvested = NULL;
	struct rp_conn *c, *tmp;
	struct rp_move *m, *next;
	bool busy = false;
	int ms;

	rp_peer_expire();
	list_for_each(c, &rp_conns, node) {
		if (!c->moving || c->ctx == harvested || !c->ctx->real)
			continue;
		if (c->drained && (!c->stuck || c->quiet))
			continue;
		rp_counters = counters_of(c);
		rp_drain_harvest(c->ctx);
		harvested = c->ctx;
	}
	list_for_each_safe(c, tmp, &rp_conns, node) {
		rp_counters = counters_of(c);
		rp_conn_step(c);
		busy |= c->moving && ((c->peer_gated && !c->drained) ||
				      (c->stuck && !c->quiet));
	}
	list_for_each_safe(m, next, &moves, node) {
		rp_counters = &m->counters;
		move_step(m);
	}
	rp_counters = NULL;
	list_for_each(m, &moves, node)
		busy |= m->state == MOVE_LOCK;
	rp_peer_flush();
	ms = rp_peer_wait_ms();
	return busy && (ms < 0 || ms > 1) ? 1 : ms;
}
