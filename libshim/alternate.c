// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an owner has set of a queue pair beside its path, and a RESET takes from it: an alternate path,
 * to which the device migrates by itself, and a limit of its rate. Both ends come from RESET when either
 * moves.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conn.h"
#include "objects.h"
#include "recreate.h"

struct rp_port rp_place_of(const struct ibv_ah_attr *av)
{
	struct rp_port place = { .lid = av->dlid };

	if (av->is_global)
		place.gid = av->grh.dgid;
	return place;
}

static uint8_t own_lmc(const struct rp_qp *qp)
{
	struct ibv_port_attr port = { 0 };

	RP_REAL(rp_real.ibv_query_port(rp_qp_context((struct rp_qp *)qp)->real, qp->attr.port_num,
				       (void *)&port));
	return port.lmc;
}

/* Is it a port's, by one of its LIDs? A LID may be a router's, behind which there are many. */
static bool is_at(const struct rp_port *place, const struct rp_port *port, uint8_t lmc)
{
	return place->lid >> lmc == port->lid >> lmc &&
	       !memcmp(&place->gid, &port->gid, sizeof(place->gid));
}

/* The same of its LIDs at another port. */
static struct rp_port other_port(const struct rp_port *place, const struct rp_port *port, uint8_t lmc)
{
	const uint16_t bits = (1u << lmc) - 1;
	struct rp_port to = *port;

	if (to.lid)
		to.lid = (to.lid & ~bits) | (place->lid & bits);
	return to;
}

/* What the owner calls @av leads to where that port of the peer is now. */
static void real_place(const struct rp_qp *qp, struct ibv_ah_attr *av)
{
	const struct rp_port known = rp_place_of(&qp->attr.ah_attr), given = rp_place_of(av);
	const uint8_t lmc = own_lmc(qp);
	struct rp_port to;

	if (is_at(&given, &known, lmc))
		to = other_port(&given, &qp->dest, lmc);
	else if (qp->other && is_at(&given, &qp->alt_known, lmc))
		to = other_port(&given, &qp->alt_dest, lmc);
	else
		return;
	rp_place_fill(av, &to);
}

/* An owner knows a peer that has moved by where it was; who connects has asked where it is (rp_resolve_rtr()). */
void rp_alternate_real(struct rp_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (!qp->readdressed || mask & IBV_QP_DEST_QPN)
		return;
	if (mask & IBV_QP_AV)
		real_place(qp, &attr->ah_attr);
	if (mask & IBV_QP_ALT_PATH)
		real_place(qp, &attr->alt_ah_attr);
}

void rp_alternate_set(struct rp_qp *qp, const struct ibv_qp_attr *real, int mask)
{
	if (mask & IBV_QP_AV)
		qp->dest = rp_place_of(&real->ah_attr);
	if (!(mask & IBV_QP_ALT_PATH))
		return;
	qp->alternate = qp->other = true;
	qp->alt_known = rp_place_of(&qp->attr.alt_ah_attr);
	qp->alt_dest = rp_place_of(&real->alt_ah_attr);
}

void rp_place_fill(struct ibv_ah_attr *av, const struct rp_port *place)
{
	av->dlid = place->lid;
	if (av->is_global)
		av->grh.dgid = place->gid;
}

/* Does it send by its alternate path? */
static bool on_alternate(const struct rp_qp *qp, const struct ibv_qp_attr *is)
{
	const struct ibv_ah_attr *now = &is->ah_attr, *alt = &qp->attr.alt_ah_attr;

	return is->port_num == qp->attr.alt_port_num && now->dlid == qp->alt_dest.lid &&
	       now->sl == alt->sl && now->src_path_bits == alt->src_path_bits &&
	       !now->is_global == !alt->is_global &&
	       (!alt->is_global || !memcmp(&now->grh.dgid, &qp->alt_dest.gid, sizeof(now->grh.dgid)));
}

static void forget(struct rp_qp *qp)
{
	qp->alternate = false;
	memset(&qp->attr.alt_ah_attr, 0, sizeof(qp->attr.alt_ah_attr));
	qp->attr.alt_pkey_index = 0;
	qp->attr.alt_port_num = qp->attr.alt_timeout = 0;
	qp->attr.path_mig_state = IBV_MIG_MIGRATED;
}

void rp_alternate_look(struct rp_qp *qp, const struct ibv_qp_attr *is)
{
	struct ibv_qp_attr *attr = &qp->attr;
	struct rp_port left = qp->dest;

	if (!qp->alternate || is->qp_state < IBV_QPS_RTR)
		return;
	attr->path_mig_state = is->path_mig_state;
	if (is->path_mig_state != IBV_MIG_MIGRATED || !on_alternate(qp, is))
		return;
	rp_log(RP_LOG_INFO, "QP 0x%x has migrated to port %u", qp->qp.qp_num, attr->alt_port_num);
	qp->dest = qp->alt_dest;
	qp->alt_dest = left;
	qp->alt_known = rp_place_of(&attr->ah_attr);
	attr->ah_attr = attr->alt_ah_attr;
	attr->pkey_index = attr->alt_pkey_index;
	attr->port_num = attr->alt_port_num;
	attr->timeout = attr->alt_timeout;
	forget(qp);
}

void rp_alternate_query(const struct rp_qp *qp, struct ibv_qp_attr *attr)
{
	if (!qp->alternate && !qp->readdressed)
		return;
	attr->alt_ah_attr = qp->attr.alt_ah_attr;
	attr->alt_pkey_index = qp->attr.alt_pkey_index;
	attr->alt_port_num = qp->attr.alt_port_num;
	attr->alt_timeout = qp->attr.alt_timeout;
}

void rp_alternate_drop(struct rp_qp *qp, const char *why)
{
	rp_log(RP_LOG_INFO, "QP 0x%x goes on without its alternate path: %s", qp->qp.qp_num, why);
	forget(qp);
	rp_async_take_mig(qp);
}

const char *rp_alternate_leads(const struct rp_conn *c, const struct rp_port *to, struct rp_port *alt)
{
	const struct rp_qp *qp = c->qp;
	uint8_t lmc = own_lmc(qp);

	*alt = c->alt_from;
	if (is_at(alt, &c->from, lmc))
		*alt = other_port(alt, to, lmc);
	else if (c->alt_told)
		*alt = c->alt_to;
	/* The peer has not moved, or is there again; or it has migrated to where that path leads. */
	else if (!is_at(to, &c->from, lmc) && !is_at(alt, to, lmc))
		return "the peer has moved, and does not tell where that path leads now";
	return NULL;
}

static const char *lacks(const struct rp_qp *qp)
{
	const struct rp_context *ctx = rp_qp_context((struct rp_qp *)qp);

	if (qp->attr.alt_port_num > ctx->limits.phys_port_cnt)
		return "the device has no such port";
	if (!rp_pkey_is_there(ctx, qp->attr.alt_port_num, qp->attr.alt_pkey_index))
		return "the device's port is not in that partition";
	return NULL;
}

/* ib_modify_qp_is_ok(): from RTR on it can be set at any time. */
static void restore_alternate(struct rp_qp *qp)
{
	struct ibv_qp_attr attr = qp->attr;
	int mask = IBV_QP_ALT_PATH, ret;
	char why[64];

	if (attr.path_mig_state != IBV_MIG_MIGRATED) {
		attr.path_mig_state = IBV_MIG_REARM;	/* ARMED follows */
		mask |= IBV_QP_PATH_MIG_STATE;
	}
	rp_place_fill(&attr.alt_ah_attr, &qp->alt_dest);
	ret = rp_qp_modify_real(qp, &attr, mask);
	if (!ret) {
		rp_log(RP_LOG_INFO, "QP 0x%x has its alternate path by port %u, to LID %u",
		       qp->qp.qp_num, attr.alt_port_num, attr.alt_ah_attr.dlid);
		return;
	}
	snprintf(why, sizeof(why), "the device does not take it: %s", strerror(-ret));
	rp_alternate_drop(qp, why);
}

void rp_qp_rate_limit(struct rp_qp *qp)
{
	struct rp_context *ctx = rp_qp_context(qp);
	struct ibv_qp_attr attr = qp->attr;
	int ret = 0;

	if (qp->pace.rate_limit)
		ret = -RP_REAL(RP_SLOT(ctx, modify_qp_rate_limit)(qp->real, &qp->pace));
	else if (qp->attr_mask & IBV_QP_RATE_LIMIT && attr.rate_limit)
		ret = rp_qp_modify_real(qp, &attr, IBV_QP_RATE_LIMIT);
	if (ret)
		rp_log(RP_LOG_ERR, "QP 0x%x goes on without its rate limit: the device does not take it: %s",
		       qp->qp.qp_num, strerror(-ret));
}

void rp_alternate_again(struct rp_conn *c)
{
	struct rp_qp *qp = c->qp;
	const char *nowhere;
	struct rp_port alt;

	if (!qp->other)
		return;
	nowhere = rp_alternate_leads(c, &qp->dest, &alt);
	if (nowhere && !c->informed)
		return;
	qp->other = !nowhere;
	if (!nowhere)
		qp->alt_dest = alt;
	if (!qp->alternate || c->alt_loaded)
		return;
	if (!nowhere)
		nowhere = lacks(qp);
	if (!nowhere && qp->qp.state == IBV_QPS_RTR)
		nowhere = "it was not known in time where that leads";
	c->alt_loaded = true;
	if (nowhere)
		rp_alternate_drop(qp, nowhere);
	else
		restore_alternate(qp);
}

/* One that the subnet manager is about to bring up, not one that has no cable. */
static bool comes_up(struct rp_context *ctx, int port)
{
	struct ibv_port_attr p = { 0 };

	return !RP_REAL(rp_real.ibv_query_port(ctx->real, port, (void *)&p)) &&
	       (p.state == IBV_PORT_INIT || p.state == IBV_PORT_ARMED);
}

bool rp_alternates_wait(struct rp_context *ctx)
{
	bool wanted[5] = { false }, any = false;
	struct rp_qp *qp;
	int port;

	list_for_each(qp, &ctx->qps, node)
		if (qp->alternate && qp->attr.alt_port_num <= 4)
			wanted[qp->attr.alt_port_num] = true;
	for (port = 1; port <= 4; port++)
		any |= wanted[port] && comes_up(ctx, port);
	return any;
}
