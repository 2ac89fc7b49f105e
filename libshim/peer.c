// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the peers' shims say. */
#include <errno.h>
#include <string.h>

#include "keys.h"

static void answer(struct rp_peer *peer, enum repath_msg type, const struct rp_ctl_peer_msg *in,
		   const void *blob, unsigned int len)
{
	struct rp_message *m = rp_message_new(peer, type, in->nrecs, blob, len);

	if (!m)
		return;		/* it will ask again */
	memcpy(m->recs, in->recs, in->nrecs * sizeof(*m->recs));
	m->nrecs = in->nrecs;
	rp_message_supersede(m);
	rp_message_try(m);
}

/* NULL: this end can be suspended and reconnected. */
static const char *why_not(const struct rp_conn *c)
{
	if (!c)
		return "the peer's queue pair is gone";
	if (!rp_conn_connectable(c->qp))
		return "the peer's queue pair is not connected";
	if (atomic_load(&c->ctx->immovable[RP_IMM_DIRECT_VERBS]))
		return "the peer posts by direct verbs";
	return NULL;
}

static void prepare_in(struct rp_peer *peer, const struct rp_ctl_peer_msg *in)
{
	const char *why = NULL;
	unsigned int i;

	for (i = 0; i < in->nrecs && !why; i++) {
		struct rp_conn *c = rp_conn_find(in->recs[i].conn_id);

		why = why_not(c);
		if (!why)
			rp_conn_look(c);
	}
	answer(peer, REPATH_MSG_PREPARED, in, why, why ? strlen(why) : 0);
}

/* It may have been asked about some of the connections only: its module did not know the others. */
static void prepared(struct rp_peer *peer, const struct rp_ctl_peer_msg *in)
{
	unsigned int i;

	for (i = 0; i < in->nrecs; i++) {
		struct rp_conn *c = rp_conn_find(in->recs[i].conn_id);
		uint32_t id = in->recs[i].count;

		if (!c || c->peer != peer)
			continue;
		if (c->asked == id)
			c->asked = 0;
		rp_cycle_prepared(c, id);
	}
}

static void prepared_in(struct rp_peer *peer, const struct rp_ctl_peer_msg *in)
{
	char why[REPATH_REASON_MAX] = "";
	unsigned int n;
	uint32_t id;

	if (!in->nrecs)
		return;
	if (!in->blob_len) {
		prepared(peer, in);
		return;
	}
	id = in->recs[0].count;
	if (rp_cycle_refused(peer, id))
		return;
	n = in->blob_len < sizeof(why) ? in->blob_len : sizeof(why) - 1;
	memcpy(why, in->blob, n);
	while (n--)	/* somebody else's text goes to a terminal */
		if (why[n] < ' ' || why[n] > '~')
			why[n] = '?';
	rp_message_refused(peer, id, why);	/* or it is of a check that is over */
}

/*
 * The peer has begun anew while this end waits for the end of the round before: it lost the last
 * word. The peer has had ours, else it would not be so far. What its READY told was right, then; but
 * how many of the requests that were stuck it has had only its INFO says.
 */
static void finish_round_before(struct rp_conn *c)
{
	if (c->connected) {
		c->peer_connected = true;
		c->informed |= c->early && !c->stuck;
		rp_conn_step(c);
		rp_conn_finish(c);
	} else if (!c->reset && !c->flushing && !c->mover) {
		rp_conn_cancel(c);
	}
}

/*
 * A message may come late, when what it is about has ended here: its round says so. ABORTED
 * answers a round of ours, and tells the peer's by its count.
 */
static bool of_ended_round(struct rp_conn *c, uint8_t type, const struct repath_conn_rec *r)
{
	uint16_t round = REPATH_REC_ROUND(r->flags);

	switch (type) {
	case REPATH_MSG_ABORTED:
		if (round != c->round)
			return true;
		round = r->count;
		break;
	case REPATH_MSG_ABORT:
		break;
	case REPATH_MSG_GATE:
	case REPATH_MSG_DRAINED:
	case REPATH_MSG_READY:
	case REPATH_MSG_INFO:
	case REPATH_MSG_CONNECTED:
		if (!rp_round_after(round, c->peer_over))
			return true;
		break;
	default:
		return false;
	}
	if (c->moving && rp_round_after(c->peer_round, c->peer_over) &&
	    rp_round_after(round, c->peer_round))
		finish_round_before(c);
	if (rp_round_after(round, c->peer_round)) {
		if (c->aborting)	/* what it said was of a round that has ended there */
			c->peer_gated = c->peer_drained = c->peer_quiet = false;
		c->peer_round = round;
	}
	return false;
}

/*
 * The peer goes on as if nothing had been. What it says of a move that it has begun since may have
 * overtaken this answer.
 */
static void cancelled(struct rp_conn *c, uint16_t ended)
{
	const bool drained = c->peer_drained, quiet = c->peer_quiet, mover = c->peer_mover;
	const uint16_t round = c->peer_round;

	if (!rp_round_after(round, ended)) {
		rp_conn_cancel(c);
		return;
	}
	c->peer_round = ended;
	rp_conn_cancel(c);
	c->peer_round = round;
	rp_conn_begin(c, false);
	c->peer_gated = true;
	c->peer_drained = drained;
	c->peer_quiet = quiet;
	c->peer_mover = c->peer_moved = mover;
}

static void note_mover(struct rp_conn *c, const struct repath_conn_rec *r)
{
	if (r->flags & REPATH_REC_MOVER)
		c->peer_mover = c->peer_moved = true;
}

/* A message says also all that must have come before it: they can overtake each other. */
static void rec_in(struct rp_conn *c, const struct rp_ctl_peer_msg *m,
		   const struct repath_conn_rec *r)
{
	if (of_ended_round(c, m->type, r)) {
		if (!c->moving)		/* the module takes what it says for news */
			rp_ctl_rests(c->id, rp_round_heard(c));
		return;
	}
	switch (m->type) {
	case REPATH_MSG_GATE:
		rp_conn_begin(c, false);
		c->peer_gated = true;
		note_mover(c, r);
		break;
	case REPATH_MSG_DRAINED:
		rp_conn_begin(c, false);
		c->peer_gated = c->peer_drained = true;
		c->peer_clear |= !(r->flags & REPATH_REC_STUCK);
		note_mover(c, r);
		break;
	case REPATH_MSG_READY:
		rp_conn_begin(c, false);
		c->peer_gated = c->peer_drained = c->peer_clear = c->peer_quiet = true;
		note_mover(c, r);
		if (c->peer_mover && !c->in_rts)
			c->early = false;	/* it has left, or will, what it told as one that stays */
		else if (r->flags & REPATH_REC_STAYS)
			rp_conn_inform(c, m, r, true);
		break;
	case REPATH_MSG_INFO:
		if (!c->moving)
			return;
		c->peer_gated = c->peer_drained = c->peer_quiet = true;
		if (c->aborting) {
			/* Ahead of its ABORTED: the peer has left RTS, and will be met there. */
			c->aborting = false;
			if (!c->reset)
				rp_conn_reset(c);
			rp_conn_usable(c);
		}
		rp_conn_inform(c, m, r, false);
		rp_ports_take(c, m);
		c->peer_mover = false;
		/* By this INFO, or by one from a device that this end has given up since. */
		if (r->flags & REPATH_REC_CONNECTED && REPATH_REC_ECHO(r->flags) == (c->psn & 31))
			c->peer_connected = true;
		break;
	case REPATH_MSG_CONNECTED:
		if (!c->moving)
			return;
		c->peer_to_qpn = r->qpn;
		c->peer_to_psn = r->psn;
		break;
	case REPATH_MSG_ABORT:
		c->abort_round = REPATH_REC_ROUND(r->flags);
		if (!c->moving || !rp_round_after(c->abort_round, c->peer_over)) {
			/* What it takes back may still come. */
			if (!c->moving && rp_round_after(c->peer_round, c->peer_over))
				c->peer_over = c->peer_round;
			c->due |= 1u << REPATH_MSG_ABORTED;
		} else if (c->mover && !c->aborting) {
			/* What the peer gives up, this end does for itself. */
			c->due |= 1u << REPATH_MSG_ABORTED;
		} else if (c->reset || c->flushing) {
			/* Too late to go back: this end has left RTS. */
			c->quiet = true;
			c->peer_gated = c->peer_drained = c->peer_quiet = true;
			if (!c->reset)
				rp_conn_reset(c);
			c->due |= 1u << REPATH_MSG_ABORTED;
		} else {
			c->due |= 1u << REPATH_MSG_ABORTED;
			if (!c->mover)
				rp_conn_cancel(c);
		}
		break;
	case REPATH_MSG_ABORTED:
		if (c->alone && r->flags & REPATH_REC_RESET)
			rp_conn_part(c);
		c->alone = false;
		if (!c->moving || !c->aborting)
			return;
		c->aborting = false;
		if (r->flags & REPATH_REC_MOVER) {
			rp_conn_stay(c);
		} else if (r->flags & REPATH_REC_RESET) {
			c->peer_quiet = true;
			if (!c->reset)
				rp_conn_reset(c);
			rp_conn_usable(c);
		} else {
			cancelled(c, r->count);
		}
		break;
	case REPATH_MSG_GONE:
		c->known = REPATH_CONN_GONE;
		rp_conn_kill(c);
		break;
	}
}

/* Nobody is left there who could answer. */
static bool all_gone(const struct rp_peer *peer)
{
	const struct rp_conn *c;

	list_for_each(c, &peer->conns, in_peer)
		if (c->known != REPATH_CONN_GONE)
			return false;
	return true;
}

/* It was on the move, too, and has not had this end's INFO: that may not have found it. */
static bool is_looked_for(const struct rp_peer *peer, const struct rp_ctl_peer_msg *m)
{
	unsigned int i;

	for (i = 0; i < m->nrecs; i++) {
		const struct rp_conn *c = rp_conn_find(m->recs[i].conn_id);

		if (c && c->peer == peer && c->moving && c->usable && !c->told && !c->informed &&
		    (!c->early || c->peer_lid != m->lid ||
		     memcmp(&c->peer_gid, m->gid, sizeof(c->peer_gid))))
			return true;
	}
	return false;
}

void rp_peer_msg_in(const struct rp_ctl_peer_msg *m)
{
	struct rp_keys_ack ack;
	struct rp_peer *peer;
	struct rp_conn *c;
	unsigned int i;

	/*
	 * A connection that we have not asked the module for yet; or the same process under another
	 * number, since its module was loaded anew.
	 */
	for (i = 0; i < m->nrecs; i++) {
		c = rp_conn_find(m->recs[i].conn_id);
		if (!c || c->peer->id != m->peer_id)
			break;
	}
	if (i < m->nrecs)
		rp_conns_refresh();
	peer = rp_peer_find(m->peer_id);
	if (!peer) {
		rp_log(RP_LOG_ERR, "message %d of unknown peer %u", m->type, m->peer_id);
		return;
	}
	rp_log(RP_LOG_DEBUG, "message %d of peer %u, %u connections", m->type, m->peer_id,
	       m->nrecs);

	switch (m->type) {
	case REPATH_MSG_PREPARE:
		prepare_in(peer, m);
		return;
	case REPATH_MSG_PREPARED:
		prepared_in(peer, m);
		return;
	case REPATH_MSG_KEYS:
		if (!rp_keys_asked(peer, m, &ack))
			rp_keys_take(peer, m, &ack);
		answer(peer, REPATH_MSG_KEYS_ACK, m, &ack, sizeof(ack));
		return;
	case REPATH_MSG_KEYS_ACK:
		if (!m->nrecs || !rp_message_answered(peer, (uint32_t)m->recs[0].count))
			return;
		rp_keys_told(peer, (uint32_t)m->recs[0].count, m);
		rp_keys_acked(peer, m);
		rp_request_keys_acked();
		return;
	case REPATH_MSG_INFO:
		/* Before the gate opens with them. */
		if (m->blob_len)
			rp_keys_take(peer, m, &ack);
		if (is_looked_for(peer, m))
			rp_peer_back(peer);
		break;
	}
	for (i = 0; i < m->nrecs; i++) {
		c = rp_conn_find(m->recs[i].conn_id);
		if (c && c->peer == peer)
			rec_in(c, m, &m->recs[i]);
	}
	if (m->type == REPATH_MSG_GONE && all_gone(peer)) {
		bool asked = peer->prepares;

		/* What has no peer any more does not stand in the way of a move. */
		rp_peer_drop(peer);
		rp_request_keys_acked();
		if (asked)
			rp_move_prepared();
	}
}
