// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An end that has moved tells by INFO where the port is that its queue pair uses. Where alternate paths
 * are in use it tells of the others, too: they lead to those.
 */
#include <arpa/inet.h>
#include <string.h>

#include "keys.h"
#include "objects.h"
#include "recreate.h"

#define PORTS_MAGIC	0x504f5254	/* "PORT" */
#define PORTS_MAX	4

/**
 * struct ports_wire - in the blob of INFO, behind the keys; network order
 * @magic: PORTS_MAGIC
 * @n: so many ports
 * @port: where each was before the sender's move, and where it is
 */
struct ports_wire {
	uint32_t magic, n;
	struct {
		uint16_t lid, lid_now;
		uint32_t lmc;
		uint8_t gid[16], gid_now[16];
	} port[];
};

/* Its first GID, which every port has. */
static bool read_port(struct rp_context *ctx, int number, struct rp_port *port)
{
	struct ibv_port_attr attr = { 0 };

	if (RP_REAL(rp_real.ibv_query_port(ctx->real, number, (void *)&attr)) ||
	    RP_REAL(rp_real.ibv_query_gid(ctx->real, number, 0, &port->gid)))
		return false;
	port->lid = attr.lid;
	port->lmc = attr.lmc;
	return true;
}

void rp_ports_save(struct rp_context *ctx)
{
	int i;

	/* Once in a move, as the P_Keys: peers know no device in between. */
	if (ctx->pkeys_saved)
		return;
	memset(ctx->ports, 0, sizeof(ctx->ports));
	for (i = 0; i < PORTS_MAX && i < ctx->limits.phys_port_cnt; i++)
		if (!read_port(ctx, i + 1, &ctx->ports[i]))
			ctx->ports[i].lid = 0;
}

static bool anybody_asks(const struct rp_conn *c)
{
	const struct rp_conn *o;

	/* An alternate path serves only where both ends have one. */
	list_for_each(o, &c->peer->conns, in_peer)
		if (o->ctx == c->ctx && o->qp->attr_mask & IBV_QP_ALT_PATH)
			return true;
	return false;
}

unsigned int rp_ports_info(const struct rp_conn *c, void *blob, unsigned int room)
{
	struct ports_wire *w = blob;
	struct rp_port now;
	uint32_t n = 0;
	int i;

	_Static_assert(sizeof(*w) + PORTS_MAX * sizeof(w->port[0]) == RP_PORTS_INFO_MAX, "as conn.h says");
	if (!c->ctx->epoch || !anybody_asks(c) || room < RP_PORTS_INFO_MAX)
		return 0;
	for (i = 0; i < PORTS_MAX; i++) {
		const struct rp_port *before = &c->ctx->ports[i];

		if (!before->lid || i >= c->ctx->limits.phys_port_cnt ||
		    !read_port(c->ctx, i + 1, &now) || !now.lid)
			continue;
		w->port[n].lid = htons(before->lid);
		w->port[n].lid_now = htons(now.lid);
		w->port[n].lmc = htonl(before->lmc < now.lmc ? before->lmc : now.lmc);
		memcpy(w->port[n].gid, &before->gid, sizeof(before->gid));
		memcpy(w->port[n].gid_now, &now.gid, sizeof(now.gid));
		n++;
	}
	if (!n)
		return 0;
	w->magic = htonl(PORTS_MAGIC);
	w->n = htonl(n);
	return sizeof(*w) + n * sizeof(w->port[0]);
}

static void find(struct rp_conn *c, const struct ports_wire *w)
{
	const struct rp_port *alt = &c->alt_from;
	static const union ibv_gid none;
	const bool global = memcmp(&alt->gid, &none, sizeof(none));
	uint32_t i, lmc;

	for (i = 0; i < ntohl(w->n); i++) {
		lmc = ntohl(w->port[i].lmc) & 7;
		if (alt->lid >> lmc != ntohs(w->port[i].lid) >> lmc ||
		    (global && memcmp(&alt->gid, w->port[i].gid, sizeof(alt->gid))))
			continue;
		c->alt_told = true;
		c->alt_to.lid = (ntohs(w->port[i].lid_now) & ~((1u << lmc) - 1)) |
				(alt->lid & ((1u << lmc) - 1));
		c->alt_to.gid = none;
		if (global)
			memcpy(&c->alt_to.gid, w->port[i].gid_now, sizeof(c->alt_to.gid));
	}
}

void rp_ports_take(struct rp_conn *c, const struct rp_ctl_peer_msg *m)
{
	const unsigned int at = rp_keys_length(m->blob, m->blob_len), len = m->blob_len - at;
	const struct ports_wire *w = (const void *)((const char *)m->blob + at);

	if (!c->left)
		rp_conn_leave(c);	/* the peer has: it is not to migrate any more */
	if (!c->qp->other)
		return;
	c->alt_told = false;
	if (len >= sizeof(*w) && ntohl(w->magic) == PORTS_MAGIC && ntohl(w->n) <= PORTS_MAX &&
	    len == sizeof(*w) + ntohl(w->n) * sizeof(w->port[0]))
		find(c, w);
}
