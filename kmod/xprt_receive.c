// SPDX-License-Identifier: GPL-2.0
/* What comes in by the carrier: fragments, put together to messages, and questions. */
#include <rdma/ib_cm.h>

#include "device.h"
#include "hello.h"
#include "peer.h"
#include "resolve.h"
#include "stat.h"
#include "trace.h"
#include "xprt_frag.h"

static u8 receive(struct repath_xprt *xprt, const struct repath_frag *frag)
{
	struct repath_inmsg *msg;
	bool again;
	u8 status;

	mutex_lock(&xprt->rx_lock);
	repath_stat_inc(xprt->dev, REPATH_STAT_RX_FRAG);
	again = repath_reasm_has(&xprt->reasm, frag);
	if (again)
		repath_stat_inc(xprt->dev, REPATH_STAT_RX_FRAG_AGAIN);
	status = repath_reasm_add(&xprt->reasm, frag, IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE, &msg);
	if (msg) {
		repath_stat_inc(xprt->dev, REPATH_STAT_RX_MSG);
		if (msg->type == REPATH_MSG_HELLO)
			status = repath_hello_receive(xprt->dev, msg->data, msg->total);
		else if (msg->type == REPATH_MSG_MOVED)
			status = repath_resolve_moved(msg->data, msg->total);
		else
			status = repath_peer_receive(xprt->dev, msg->type, msg->data, msg->total);
		trace_peer_rx(xprt->dev->index, msg->type, msg->total, status);
		repath_reasm_done(&xprt->reasm, msg, status);
	}
	/* Each message once; and what never becomes one. */
	if (msg || (status != REPATH_PEER_OK && !again))
		repath_stat_inc(xprt->dev, repath_stat_of_status(status, true));
	mutex_unlock(&xprt->rx_lock);
	return status;
}

/*
 * A question, which is one fragment. Asked again it is answered again, with what is true then: what
 * was answered is not kept.
 */
static u8 receive_question(struct repath_xprt *xprt, const struct repath_frag *frag,
			   struct repath_resolved *answer)
{
	if (frag->version != REPATH_PEER_VERSION)
		return REPATH_PEER_VERSION_ERR;
	if (frag->reserved || frag->offset ||
	    be32_to_cpu(frag->total) != sizeof(struct repath_resolve))
		return REPATH_PEER_MALFORMED;
	return repath_resolve_answer(xprt->dev, frag->data, sizeof(struct repath_resolve), answer);
}

/**
 * repath_xprt_listen - a request has come in
 * @id: its exchange
 * @event: the request
 *
 * Return: non-zero: the exchange is over.
 */
int repath_xprt_listen(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	const struct repath_frag *frag = event->private_data;
	struct repath_xprt *xprt = id->context;
	struct {
		struct repath_frag_reply head;
		struct repath_resolved answer;
	} __packed reply = { .head.version = REPATH_PEER_VERSION };
	struct ib_cm_sidr_rep_param param = {
		.status			= IB_SIDR_SUCCESS,
		.private_data		= &reply,
		.private_data_len	= sizeof(reply),
	};

	BUILD_BUG_ON(sizeof(reply) > IB_CM_SIDR_REP_PRIVATE_DATA_SIZE);
	BUILD_BUG_ON(sizeof(struct repath_resolve) > REPATH_FRAG_DATA);
	if (event->event != IB_CM_SIDR_REQ_RECEIVED)
		return 0;
	reply.head.msg_id = frag->msg_id;
	reply.head.offset = frag->offset;
	if (frag->type == REPATH_MSG_RESOLVE)
		reply.head.status = receive_question(xprt, frag, &reply.answer);
	else
		reply.head.status = receive(xprt, frag);
	/* If it can not be sent, the request comes again. */
	ib_send_cm_sidr_rep(id, &param);
	return 1;
}
