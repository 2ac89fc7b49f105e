// SPDX-License-Identifier: GPL-2.0
/*
 * Asking the device for what nobody tells: a queue pair that hardware has taken to ERR, and paths
 * that hardware has migrated.
 */
#include <linux/jiffies.h>
#include <rdma/ib_verbs.h>

#include "track.h"

/* Whoever modifies it all the time is followed by the hooks. */
#define TRIES 8

/* An answer is news for so long. */
#define ASK_PERIOD (HZ / 10)

/**
 * repath_qp_query - ask the device for the state of a queue pair
 * @rqp: queue pair
 * @qp: the same, which can not go away meanwhile
 * @anew: see repath_track_qp_queried()
 *
 * Context: process.
 * Return: false if the device does not answer.
 */
bool repath_qp_query(struct repath_qp *rqp, struct ib_qp *qp, bool anew)
{
	int mask = IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX;
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	u32 changes;
	int tries, also;

	/* Some drivers refuse what a queue pair of the type can not have. */
	if (repath_qp_is_connected_type(rqp))
		mask |= IB_QP_AV | IB_QP_DEST_QPN | IB_QP_PATH_MTU | IB_QP_ALT_PATH |
			IB_QP_PATH_MIG_STATE;
	for (tries = 0; tries < TRIES; tries++) {
		changes = READ_ONCE(rqp->changes);
		if (ib_query_qp(qp, &attr, mask, &init))
			return false;
		also = 0;
		/* Not every driver says what kind of address it has returned. */
		if (rdma_is_port_valid(qp->device, attr.port_num)) {
			attr.ah_attr.type = rdma_ah_find_type(qp->device, attr.port_num);
			attr.alt_ah_attr.type = attr.ah_attr.type;
			/* There is no path migration on RoCE, and nobody fills it in. */
			if (rdma_protocol_ib(qp->device, attr.port_num))
				also = IB_QP_PATH_MIG_STATE;
			if (also && rdma_is_port_valid(qp->device, attr.alt_port_num) &&
			    attr.path_mig_state != IB_MIG_MIGRATED)
				also |= IB_QP_ALT_PATH;
		}
		if (repath_track_qp_queried(rqp, changes, &attr, also, anew)) {
			WRITE_ONCE(rqp->asked, (u32)jiffies | 1);
			return true;
		}
	}
	return false;
}

/* In the other states hardware changes nothing by itself. */
static bool is_worth_asking(const struct repath_qp *rqp)
{
	u8 state = READ_ONCE(rqp->state);

	return state >= IB_QPS_RTR && state <= IB_QPS_SQE && rqp->type != IB_QPT_SMI &&
	       rqp->type != IB_QPT_GSI;
}

/**
 * repath_qp_was_asked - is its state what the device says?
 * @rqp: queue pair
 */
bool repath_qp_was_asked(const struct repath_qp *rqp)
{
	u32 asked = READ_ONCE(rqp->asked);

	return asked && (u32)jiffies - asked < ASK_PERIOD;
}

/**
 * repath_qp_may_migrate - may hardware have gone over to an alternate path since the queue pair was modified?
 * @rqp: queue pair
 */
bool repath_qp_may_migrate(struct repath_qp *rqp)
{
	struct repath_alt_path alt;

	/* Most have none. */
	if (!READ_ONCE(rqp->alt.dlid))
		return false;
	repath_qp_snapshot_alt(rqp, &alt);
	return repath_alt_may_be_used(&alt);
}

/**
 * repath_qp_ask - bring the state of a queue pair up to date
 * @rqp: queue pair
 *
 * One verb, at most ten times a second; whoever destroys the queue pair meanwhile waits for it.
 *
 * Context: process.
 * Return: true if it took a verb.
 */
bool repath_qp_ask(struct repath_qp *rqp)
{
	struct ib_qp *qp;

	if (!is_worth_asking(rqp) || repath_qp_was_asked(rqp))
		return false;
	qp = repath_qp_use(rqp);
	if (!qp)
		return false;
	repath_qp_query(rqp, qp, false);
	repath_qp_unuse(qp);
	return true;
}
