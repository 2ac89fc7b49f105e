// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A queue pair gets to another path that its device can not take it to where it is: the two ends do what
 * the peer's end of a move does, and the one that has begun says first that it may be connected. Both may
 * have begun. The process stays as it is, and so do all other queue pairs.
 */
#include <errno.h>
#include <string.h>

#include "conn.h"
#include "message.h"

#define ASKED_NS	5000000000ull	/* a PREPARE that was delivered, and its answer */
#define WANTED_NS	10000000000ull	/* until a move that is under way has ended */
#define RUNS_NS		10000000000ull	/* until both have stopped */
#define PEERS_NS	20000000000ull	/* until the peer, which has begun, has ended it or taken it back */
#define AGAIN_NS	10000000ull
#define ANSWER_NS	10000000000ull	/* to an ABORT that was delivered */

static void end(struct rp_conn *c, int err)
{
	if (err)
		rp_log(RP_LOG_INFO, "QP 0x%x: not connected by another path: %s", c->qp->qp.qp_num,
		       strerror(err));
	c->cycle = RP_CYCLE_NONE;
	c->cycle_again = false;
	rp_ctl_cycled(c->id, err);
}

static void want(struct rp_conn *c)
{
	c->cycle = RP_CYCLE_WANTED;
	c->cycle_again = false;
	c->cycle_until = rp_now_ns() + WANTED_NS;
}

static void run(struct rp_conn *c)
{
	c->cycle = RP_CYCLE_RUNS;
	c->cycle_late = false;
	c->cycle_until = rp_now_ns() + RUNS_NS;
}

void rp_cycle_event(uint32_t conn_id, const struct rp_ctl_path *to)
{
	struct rp_conn *c = rp_conn_find(conn_id);

	if (!c) {
		rp_conns_refresh();
		c = rp_conn_find(conn_id);
	}
	if (!c) {
		rp_ctl_cycled(conn_id, ENOTCONN);
		return;
	}
	rp_log(RP_LOG_INFO, "QP 0x%x: to be connected by another path to LID %u", c->qp->qp.qp_num,
	       to->dlid);
	c->to = *to;
	if (to->mtu)
		c->path_mtu = to->mtu;
	if (c->cycle == RP_CYCLE_NONE)
		want(c);
	else if (c->cycle == RP_CYCLE_RUNS && c->in_rts)
		c->cycle_again = true;
}

/* 0, or why it can not be begun: an errno. */
static int why_not(const struct rp_conn *c)
{
	if (!rp_conn_is_ready(c) || atomic_load(&c->ctx->immovable[RP_IMM_DIRECT_VERBS]))
		return EOPNOTSUPP;
	/* Its owner drains it himself, or has not connected it, or it has failed. */
	if (!rp_conn_connectable(c->qp) ||
	    __atomic_load_n(&c->qp->qp.state, __ATOMIC_ACQUIRE) == IBV_QPS_SQD ||
	    atomic_load(&c->qp->failed))
		return ENOTCONN;
	return 0;
}

/* The peer has begun, for the same reason. */
static bool joins(const struct rp_conn *c)
{
	return c->moving && !c->mover && !c->peer_moved && !c->in_rts && !c->aborting && !c->dead;
}

/* A peer that has connected by READY is not through before it has INFO: it would not know a new GATE. */
static bool is_busy(const struct rp_conn *c)
{
	return c->moving || c->telling || c->ctx->move || !c->ctx->real;
}

static void begin(struct rp_conn *c)
{
	int err;

	if (joins(c)) {
		run(c);
		return;
	}
	if (is_busy(c)) {
		want(c);
		return;
	}
	rp_conn_look(c);
	err = c->was_error ? ENOTCONN : why_not(c);
	if (err) {
		end(c, err);
		return;
	}
	run(c);
	rp_conn_begin(c, false);
	if (!c->moving)
		end(c, ENOTCONN);
}

void rp_cycle_prepared(struct rp_conn *c, uint32_t id)
{
	if (c->cycle == RP_CYCLE_ASKED && c->cycle_ask == id)
		begin(c);
}

bool rp_cycle_refused(struct rp_peer *peer, uint32_t id)
{
	struct rp_conn *c, *tmp;
	bool any = false;

	list_for_each_safe(c, tmp, &peer->conns, in_peer) {
		if (c->cycle != RP_CYCLE_ASKED || c->cycle_ask != id)
			continue;
		any = true;
		end(c, EOPNOTSUPP);
	}
	return any;
}

/* Those of one peer that are wanted and can be begun, in one question. */
static void ask(struct rp_peer *peer)
{
	struct rp_message *m = NULL;
	struct rp_conn *c;
	unsigned int n = 0;

	list_for_each(c, &peer->conns, in_peer)
		n += c->cycle == RP_CYCLE_WANTED && !is_busy(c) && n < REPATH_CONNS_MAX;
	if (n)
		m = rp_message_new(peer, REPATH_MSG_PREPARE, n, NULL, 0);
	if (!m)
		return;
	list_for_each(c, &peer->conns, in_peer) {
		if (m->nrecs == n)
			break;
		if (c->cycle != RP_CYCLE_WANTED || is_busy(c))
			continue;
		rp_message_record(&m->recs[m->nrecs], c, REPATH_MSG_PREPARE);
		m->recs[m->nrecs++].count = m->id;
		c->cycle = RP_CYCLE_ASKED;
		c->cycle_ask = m->id;
		c->cycle_until = rp_now_ns() + ASKED_NS;
	}
	rp_message_try(m);
}

/*
 * The peer has begun, and says nothing: it may have taken that back without being heard. When this end
 * has left RTS it is the peer that asks.
 */
static bool is_kept_waiting(const struct rp_conn *c)
{
	return c->cycle == RP_CYCLE_NONE && c->moving && !c->mover && !c->peer_moved &&
	       !c->aborting && !c->dead && !c->reset && !c->flushing;
}

static void take_back(struct rp_conn *c)
{
	c->aborting = true;
	c->due = (c->due & 1u << REPATH_MSG_ABORTED) | 1u << REPATH_MSG_ABORT;
}

/* Its peer may have answered for as long as an answer is said, and nobody has heard that. */
static bool is_unanswered(const struct rp_conn *c)
{
	return c->moving && c->aborting && c->heard_ns;
}

static void step(struct rp_conn *c, uint64_t now)
{
	bool late = now >= c->cycle_until;

	if (is_unanswered(c) && now >= c->heard_ns + ANSWER_NS) {
		c->heard_ns = 0;
		c->due |= 1u << REPATH_MSG_ABORT;
	}
	switch (c->cycle) {
	case RP_CYCLE_NONE:
		if (is_kept_waiting(c) && now >= c->begun_ns + PEERS_NS)
			take_back(c);
		break;
	case RP_CYCLE_WANTED:
		if (joins(c))
			run(c);
		else if (late)
			end(c, EBUSY);
		else if (!is_busy(c) && why_not(c))
			end(c, why_not(c));
		break;
	case RP_CYCLE_ASKED:
		if (late)
			end(c, ETIMEDOUT);
		break;
	case RP_CYCLE_RUNS:
		c->cycle_late = late;
		/* A device goes: it comes back by the paths of another one. */
		if (c->mover || c->peer_moved)
			end(c, EBUSY);
		/* When both have stopped the peer has left RTS, or is about to: there is no way back. */
		else if (late && !c->aborting && !c->reset && !c->flushing &&
			 !(c->quiet && c->peer_quiet))
			take_back(c);
		break;
	}
}

void rp_cycle_tick(void)
{
	uint64_t now = rp_now_ns();
	struct rp_conn *c;
	struct rp_peer *p;
	bool any = false;

	list_for_each(c, &rp_conns, node) {
		step(c, now);
		any |= c->cycle == RP_CYCLE_WANTED;
	}
	if (any)
		list_for_each(p, &rp_peers, node)
			ask(p);
}

/* When it is to be looked at whatever happens; 0: not at all. */
static uint64_t next_look(const struct rp_conn *c, uint64_t now)
{
	switch (c->cycle) {
	case RP_CYCLE_NONE:
		return is_kept_waiting(c) ? c->begun_ns + PEERS_NS : 0;
	case RP_CYCLE_WANTED:
		/* Its peer had been asked for others, or it was busy a moment ago. */
		return is_busy(c) ? c->cycle_until : now + AGAIN_NS;
	case RP_CYCLE_RUNS:
		return c->cycle_late ? 0 : c->cycle_until;
	default:
		return c->cycle_until;
	}
}

int rp_cycle_wait_ms(void)
{
	uint64_t now = rp_now_ns(), next;
	struct rp_conn *c;
	int wait = -1;

	list_for_each(c, &rp_conns, node) {
		int ms;

		next = next_look(c, now);
		if (is_unanswered(c) && (!next || c->heard_ns + ANSWER_NS < next))
			next = c->heard_ns + ANSWER_NS;
		if (!next)
			continue;
		ms = next > now ? (next - now) / 1000000 + 1 : 0;
		wait = wait < 0 || ms < wait ? ms : wait;
	}
	return wait;
}

void rp_cycle_ended(struct rp_conn *c)
{
	if (c->cycle != RP_CYCLE_RUNS)
		return;
	if (!c->in_rts || c->dead)
		end(c, c->dead ? ENOTCONN : EAGAIN);
	else if (c->cycle_again)
		want(c);
	else
		end(c, c->wrong_path ? EADDRNOTAVAIL : 0);
}

/* Nobody waits for an answer any more; those that run end as others' moves do. */
void rp_cycle_lost_module(void)
{
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node)
		c->cycle = RP_CYCLE_NONE;
}
