// SPDX-License-Identifier: GPL-2.0
/*
 * One fragment of a message, in the private data of a SIDR_REQ; its answer comes in that of the SIDR_REP.
 * Requests are repeated by the CM.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>

#include "device.h"
#include "lid.h"
#include "range.h"
#include "stat.h"
#include "xprt_frag.h"

static unsigned int sidr_timeout_ms = 250;
REPATH_RANGE_PARAM(sidr_timeout_ms, 10, 10000, 0644);
MODULE_PARM_DESC(sidr_timeout_ms,
		 "Time until an unanswered peer request is repeated, in ms (250; 10 to 10000)");

static unsigned int sidr_retries = 8;
REPATH_RANGE_PARAM(sidr_retries, 0, 15, 0644);
MODULE_PARM_DESC(sidr_retries, "How often an unanswered peer request is repeated (8; at most 15)");

#define LOST_AFTER	(10 * HZ)	/* beyond the last retry: the CM has lost a fragment */

/*
 * The answer of a fragment. The CM ID is not destroyed from inside its own callback, by returning
 * non-zero, but by the pump: so the module's text is not left for good before the CM has returned from it.
 */
static int frag_event(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	const struct repath_frag_reply *reply = event->private_data;
	struct out_frag *frag = id->context;
	struct out_msg *msg = frag->msg;
	struct repath_xprt *xprt = msg->xprt;
	u8 status = REPATH_PEER_OK;
	int err = 0;

	switch (event->event) {
	case IB_CM_SIDR_REP_RECEIVED:
		if (event->param.sidr_rep_rcvd.status != IB_SIDR_SUCCESS)
			err = -ENOPROTOOPT;
		else if (be64_to_cpu(reply->msg_id) != msg->id ||
			 be32_to_cpu(reply->offset) != frag->offset)
			err = -EBADMSG;
		else if (reply->version != REPATH_PEER_VERSION)
			status = REPATH_PEER_VERSION_ERR;
		else
			status = reply->status;
		break;
	case IB_CM_SIDR_REQ_ERROR:
		err = event->param.send_status == IB_WC_RESP_TIMEOUT_ERR ? -ETIMEDOUT
									 : -EHOSTUNREACH;
		break;
	default:
		return 0;
	}

	spin_lock(&xprt->lock);
	/* Else it was given up. */
	if (!frag->ended) {
		frag->ended = true;
		if (err && !msg->err)
			msg->err = err;
		if (status)
			msg->status = status;
		if (!err && !status && msg->m.answer)
			memcpy(msg->m.answer, reply + 1, msg->m.answer_len);
		list_move_tail(&frag->node, &xprt->answered);
		repath_xprt_pump(xprt);
	}
	spin_unlock(&xprt->lock);
	return 0;
}

unsigned long repath_xprt_patience(void)
{
	return msecs_to_jiffies(READ_ONCE(sidr_timeout_ms) * (READ_ONCE(sidr_retries) + 1));
}

/**
 * repath_xprt_frag_send - send a fragment
 * @xprt: a device's end
 * @msg: of which message; its route is there
 * @offset: in the message
 *
 * Context: the pump.
 * Return: 0: it is in repath_xprt::sent until it is answered; or why not.
 */
int repath_xprt_frag_send(struct repath_xprt *xprt, struct out_msg *msg, u32 offset)
{
	u32 bytes = min_t(u32, REPATH_FRAG_DATA, msg->m.len - offset);
	struct ib_cm_sidr_req_param param = {
		.sgid_attr		= msg->route.sgid_attr,
		.service_id		= cpu_to_be64(REPATH_SERVICE_ID),
		.timeout_ms		= READ_ONCE(sidr_timeout_ms),
		.max_cm_retries		= READ_ONCE(sidr_retries),
	};
	struct sa_path_rec path;
	struct repath_frag pdata = {
		.version	= REPATH_PEER_VERSION,
		.type		= msg->m.type,
		.total		= cpu_to_be32(msg->m.len),
		.msg_id		= cpu_to_be64(msg->id),
		.offset		= cpu_to_be32(offset),
	};
	struct out_frag *frag;
	int err;

	BUILD_BUG_ON(sizeof(struct repath_frag) > IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE);
	frag = kzalloc(sizeof(*frag), GFP_KERNEL);
	if (!frag)
		return -ENOMEM;
	frag->msg = msg;
	frag->offset = offset;
	memcpy(pdata.data, msg->m.data + offset, bytes);
	repath_route_path(&msg->route, repath_lid(xprt->dev, msg->route.addr.port), &path);
	param.path = &path;
	param.private_data = &pdata;
	param.private_data_len = sizeof(pdata);

	frag->id = ib_create_cm_id(xprt->dev->ibdev, frag_event, frag);
	if (IS_ERR(frag->id)) {
		err = PTR_ERR(frag->id);
		goto err_frag;
	}
	frag->overdue = jiffies + LOST_AFTER +
			msecs_to_jiffies(param.timeout_ms * (param.max_cm_retries + 1));
	/* The answer may be there before the CM returns. */
	spin_lock(&xprt->lock);
	list_add_tail(&frag->node, &xprt->sent);
	spin_unlock(&xprt->lock);
	err = ib_send_cm_sidr_req(frag->id, &param);
	if (err)
		goto err_id;
	repath_stat_inc(xprt->dev, REPATH_STAT_TX_FRAG);
	return 0;

err_id:
	spin_lock(&xprt->lock);
	list_del(&frag->node);
	spin_unlock(&xprt->lock);
	ib_destroy_cm_id(frag->id);
err_frag:
	kfree(frag);
	return err;
}

/*
 * The CM says nothing of a request that a broken device has flushed from QP1. Nothing else would
 * end it, and whoever removes the device would wait for ever.
 */
static void give_up_lost(struct repath_xprt *xprt)
{
	struct out_frag *frag, *next;

	lockdep_assert_held(&xprt->lock);
	list_for_each_entry_safe(frag, next, &xprt->sent, node) {
		if (time_before(jiffies, frag->overdue))
			continue;
		frag->ended = true;
		if (!frag->msg->err)
			frag->msg->err = -ETIMEDOUT;
		list_move_tail(&frag->node, &xprt->answered);
	}
}

/**
 * repath_xprt_frag_reap - end the exchanges of fragments that were answered, or are lost
 * @xprt: a device's end
 *
 * Context: the pump.
 */
void repath_xprt_frag_reap(struct repath_xprt *xprt)
{
	struct out_frag *frag;

	spin_lock(&xprt->lock);
	give_up_lost(xprt);
	while ((frag = list_first_entry_or_null(&xprt->answered, struct out_frag, node))) {
		list_del(&frag->node);
		spin_unlock(&xprt->lock);
		/* Waits until the callback has returned. */
		ib_destroy_cm_id(frag->id);
		spin_lock(&xprt->lock);
		repath_xprt_count(frag->msg, -1);
		repath_xprt_settle(frag->msg);
		kfree(frag);
	}
	spin_unlock(&xprt->lock);
}
