// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is due is kept as bits in the connections and gathered here, so that a peer process gets one
 * message for all its connections.
 */
#include <string.h>

#include "keys.h"
#include "objects.h"

void rp_message_record(struct repath_conn_rec *r, const struct rp_conn *c, enum repath_msg type)
{
	const bool stays = type == REPATH_MSG_READY && !c->mover;

	/* What says nothing is zero: the module packs what is alike. */
	r->conn_id = c->id;
	if (type == REPATH_MSG_INFO || stays) {
		r->qpn = c->qp->real ? c->qp->real->qp_num : c->qp->qp.qp_num;
		r->psn = c->psn;
		r->count = atomic_load(&c->qp->recvs_done);
	}
	r->flags = (uint32_t)c->round << REPATH_REC_ROUND_SHIFT;
	if (type == REPATH_MSG_DRAINED && c->stuck)
		r->flags |= REPATH_REC_STUCK;
	if (stays)
		r->flags |= REPATH_REC_STAYS;
	if (c->mover && (type == REPATH_MSG_GATE || type == REPATH_MSG_DRAINED ||
			 type == REPATH_MSG_READY))
		r->flags |= REPATH_REC_MOVER;
	if (type == REPATH_MSG_CONNECTED) {	/* to what: not to what was before */
		r->qpn = c->peer_qpn;
		r->psn = c->peer_psn;
	}
	if (type == REPATH_MSG_ABORTED) {
		/* Its round was over here, and this end may have begun another one since. */
		const bool over = !rp_round_after(c->abort_round, c->peer_over);

		r->flags = (uint32_t)c->abort_round << REPATH_REC_ROUND_SHIFT;
		r->count = over && c->moving ? (uint16_t)(c->round - 1) : c->round;
		if (over)
			return;
		if (c->mover && !c->aborting)
			r->flags |= REPATH_REC_MOVER;
		else if (c->reset)
			r->flags |= REPATH_REC_RESET;
	}
}

/* A message says also all that comes before it. */
static void leave_out(struct rp_conn *c)
{
	if (c->due & 1u << REPATH_MSG_READY)
		c->due &= ~(1u << REPATH_MSG_DRAINED | 1u << REPATH_MSG_GATE);
	else if (c->due & 1u << REPATH_MSG_DRAINED)
		c->due &= ~(1u << REPATH_MSG_GATE);
}

static enum ibv_mtu active_mtu(struct rp_context *ctx, uint8_t port)
{
	struct ibv_port_attr attr = { 0 };

	if (!ctx->real || RP_REAL(rp_real.ibv_query_port(ctx->real, port, (void *)&attr)))
		return 0;
	return attr.active_mtu;
}

static struct rp_ctl_bind bind_of(const struct rp_conn *c)
{
	const struct ibv_qp_attr *a = &c->qp->attr;
	struct rp_ctl_bind b = {
		.dev_index = c->ctx->dev_index,
		.port = a->port_num,
		.sgid_index = a->ah_attr.grh.sgid_index,
	};

	b.sgid_index = rp_real_sgid(c->ctx, b.port, b.sgid_index);
	return b;
}

static bool same_bind(const struct rp_conn *a, const struct rp_conn *b)
{
	return a->ctx == b->ctx && a->qp->attr.port_num == b->qp->attr.port_num &&
	       a->qp->attr.ah_attr.grh.sgid_index == b->qp->attr.ah_attr.grh.sgid_index;
}

static void send_due(struct rp_peer *peer, enum repath_msg type)
{
	static char blob[REPATH_BLOB_MAX];	/* of the control thread */
	const unsigned int bit = 1u << type;
	struct rp_conn *c, *first;
	struct repath_conn_rec *r;
	struct rp_message *m;

	for (;;) {
		unsigned int n = 0, len = 0, ports_len, mtu;
		uint32_t ports[RP_PORTS_INFO_MAX / sizeof(uint32_t)];

		first = NULL;
		list_for_each(c, &peer->conns, in_peer) {
			if (!(c->due & bit) || (first && !same_bind(first, c)))
				continue;
			if (!first)
				first = c;
			if (++n == REPATH_CONNS_MAX)
				break;
		}
		if (!first)
			return;
		if (type == REPATH_MSG_INFO) {
			ports_len = rp_ports_info(first, ports, sizeof(ports));
			if (!rp_keys_info(first, blob, sizeof(blob) - ports_len, &len))
				return;
			memcpy(blob + len, ports, ports_len);
			len += ports_len;
		}
		m = rp_message_new(peer, type, n, blob, len);
		if (!m)
			return;		/* the bits stay: tried again at the next tick */
		if (type == REPATH_MSG_INFO) {
			m->bound = true;
			m->bind = bind_of(first);
		}
		mtu = type == REPATH_MSG_INFO || type == REPATH_MSG_READY ?
		      active_mtu(first->ctx, first->qp->attr.port_num) : 0;
		list_for_each(c, &peer->conns, in_peer) {
			if (m->nrecs == n)
				break;
			if (!(c->due & bit) || !same_bind(first, c))
				continue;
			r = &m->recs[m->nrecs++];
			rp_message_record(r, c, type);
			if (mtu) {
				c->mtu = mtu;
				if (c->path_mtu && c->path_mtu < c->mtu)
					c->mtu = c->path_mtu;
				r->flags |= c->mtu << REPATH_REC_MTU_SHIFT;
			}
			if (type == REPATH_MSG_INFO) {
				c->keys_epoch = c->ctx->epoch + 1;
				c->telling = true;
			}
			c->due &= ~bit;
			if (type == REPATH_MSG_INFO && c->connected && c->informed) {
				r->flags |= REPATH_REC_CONNECTED |
					    (c->peer_psn & 31) << REPATH_REC_ECHO_SHIFT;
				c->due &= ~(1u << REPATH_MSG_CONNECTED);
			}
		}
		rp_message_try(m);
	}
}

void rp_peer_flush(void)
{
	struct rp_peer *p;
	int type;

	rp_message_retry();
	list_for_each(p, &rp_peers, node) {
		struct rp_conn *c;
		unsigned int due = 0;

		list_for_each(c, &p->conns, in_peer) {
			leave_out(c);
			due |= c->due;
		}
		for (type = REPATH_MSG_NONE + 1; due && type < __REPATH_MSG_MAX; type++)
			if (due & 1u << type)
				send_due(p, type);
		rp_keys_push_due(p);
	}
}

/*
 * A peer that is on the move itself has stopped already, and may be where nobody can ask it. Those
 * that are not READY have gone, or can not answer and are given up.
 */
static bool is_asked(const struct rp_conn *c, const struct rp_context *ctx)
{
	return c->ctx == ctx && rp_conn_is_ready(c) && !(c->moving && c->peer_mover);
}

/* As many as a message holds, but for the first @skip. How many; 0: there are no more, or no memory. */
static unsigned int prepare_some(struct rp_peer *peer, struct rp_context *ctx, unsigned int skip)
{
	unsigned int n = 0, at = 0;
	struct rp_message *m;
	struct rp_conn *c;

	list_for_each(c, &peer->conns, in_peer)
		n += is_asked(c, ctx);
	n = n > skip ? n - skip : 0;
	if (n > REPATH_CONNS_MAX)
		n = REPATH_CONNS_MAX;
	if (!n)
		return 0;
	m = rp_message_new(peer, REPATH_MSG_PREPARE, n, NULL, 0);
	if (!m) {
		rp_move_refused(ctx, "out of memory");
		return 0;
	}
	list_for_each(c, &peer->conns, in_peer)
		if (is_asked(c, ctx) && at++ >= skip && m->nrecs < n) {
			rp_message_record(&m->recs[m->nrecs++], c, REPATH_MSG_PREPARE);
			c->asked = m->id;
		}
	if (!rp_message_ask(m, &peer->prepares)) {
		rp_message_free(m);
		rp_move_refused(ctx, "out of memory");
		return 0;
	}
	rp_message_try(m);
	return n;
}

void rp_peer_prepare(struct rp_peer *peer, struct rp_context *ctx)
{
	unsigned int n, asked = 0;

	do {
		n = prepare_some(peer, ctx, asked);
		asked += n;
	} while (n == REPATH_CONNS_MAX);
}
