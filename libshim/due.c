// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is due is kept as bits in the connections and gathered here, so that a peer process gets one
 * message for all its connections.
 */
#include <string.h>

#include "message.h"

void rp_message_record(struct repath_conn_rec *r, const struct rp_conn *c, enum repath_msg type)
{
	r->conn_id = c->id;
	r->qpn = c->qp->real ? c->qp->real->qp_num : c->qp->qp.qp_num;
	r->psn = c->psn;
	r->count = atomic_load(&c->qp->recvs_done);
	r->flags = (uint32_t)c->round << REPATH_REC_ROUND_SHIFT;
	if (type == REPATH_MSG_DRAINED && c->stuck)
		r->flags |= REPATH_REC_STUCK;
	if (type == REPATH_MSG_ABORTED) {
		r->flags = (uint32_t)c->abort_round << REPATH_REC_ROUND_SHIFT;
		r->count = c->round;
		if (c->reset)
			r->flags |= REPATH_REC_RESET;
	}
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

	if (b.port && b.port <= 4 && c->ctx->sgid_map[b.port - 1] &&
	    (int)b.sgid_index < c->ctx->sgid_map_len)
		b.sgid_index = c->ctx->sgid_map[b.port - 1][b.sgid_index];
	return b;
}

static bool same_bind(const struct rp_conn *a, const struct rp_conn *b)
{
	return a->ctx == b->ctx && a->qp->attr.port_num == b->qp->attr.port_num &&
	       a->qp->attr.ah_attr.grh.sgid_index == b->qp->attr.ah_attr.grh.sgid_index;
}

void rp_message_send_keys(struct rp_conn *c, const void *blob, unsigned int len)
{
	struct rp_message *m = rp_message_new(c->peer, REPATH_MSG_KEYS, 1, blob, len);

	if (!m)
		return;
	rp_message_record(m->recs, c, REPATH_MSG_KEYS);
	m->nrecs = 1;
	rp_message_ask(m, &c->peer->acks);
	rp_message_try(m);
}

/*
 * More keys than one message carries go ahead in KEYS. The peer opens its gate some time after
 * INFO, which therefore waits until they are acknowledged: false.
 */
static bool keys_blob(struct rp_conn *c, char *blob, unsigned int *len)
{
	unsigned int next = 0;

	*len = 0;
	if (!c->ctx->epoch)
		return true;
	for (;;) {
		*len = rp_keys_fill(c->ctx, next, blob, REPATH_BLOB_MAX, &next);
		if (!next)
			break;
		if (!c->keys_sent)
			rp_message_send_keys(c, blob, *len);
	}
	c->keys_sent = true;
	return !c->peer->acks;
}

static void send_due(struct rp_peer *peer, enum repath_msg type)
{
	static char blob[REPATH_BLOB_MAX];	/* of the control thread */
	const unsigned int bit = 1u << type;
	struct rp_conn *c, *first;
	struct rp_message *m;

	for (;;) {
		unsigned int n = 0, len = 0;

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
		if (type == REPATH_MSG_INFO && !keys_blob(first, blob, &len))
			return;
		m = rp_message_new(peer, type, n, blob, len);
		if (!m)
			return;		/* the bits stay: tried again at the next tick */
		if (type == REPATH_MSG_INFO) {
			m->bound = true;
			m->bind = bind_of(first);
		}
		list_for_each(c, &peer->conns, in_peer) {
			if (m->nrecs == n)
				break;
			if (!(c->due & bit) || !same_bind(first, c))
				continue;
			rp_message_record(&m->recs[m->nrecs], c, type);
			if (type == REPATH_MSG_INFO)
				m->recs[m->nrecs].flags |= active_mtu(c->ctx, m->bind.port)
							   << REPATH_REC_MTU_SHIFT;
			m->nrecs++;
			c->due &= ~bit;
		}
		rp_message_try(m);
	}
}

void rp_peer_flush(void)
{
	struct rp_peer *p;
	int type;

	rp_message_retry();
	list_for_each(p, &rp_peers, node)
		for (type = REPATH_MSG_NONE + 1; type < __REPATH_MSG_MAX; type++)
			send_due(p, type);
}

void rp_peer_prepare(struct rp_peer *peer, struct rp_context *ctx)
{
	struct rp_conn *c;
	struct rp_message *m;
	unsigned int n = 0;

	list_for_each(c, &peer->conns, in_peer)
		n += c->ctx == ctx && n < REPATH_CONNS_MAX;
	if (!n)
		return;
	m = rp_message_new(peer, REPATH_MSG_PREPARE, n, NULL, 0);
	if (!m) {
		rp_move_prepared(peer, "out of memory");
		return;
	}
	list_for_each(c, &peer->conns, in_peer)
		if (c->ctx == ctx && m->nrecs < n)
			rp_message_record(&m->recs[m->nrecs++], c, REPATH_MSG_PREPARE);
	if (!rp_message_ask(m, &peer->prepares)) {
		rp_message_free(m);
		rp_move_prepared(peer, "out of memory");
		return;
	}
	rp_message_try(m);
}
