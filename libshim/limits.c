// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Is a device large enough for what is to be made on it anew? Before anything is made. */
#include <errno.h>
#include <stdio.h>

#include "conn.h"
#include "objects.h"
#include "recreate.h"

/*
 * @wanted of what the device names @limit, of which it has @has. What the device before said that it
 * has not either, and gave all the same, is tried here, too.
 */
static int judge(struct rp_context *ctx, const char *what, uint32_t number, const char *limit,
		 uint64_t wanted, uint64_t has, uint64_t before, char *why, size_t room)
{
	char which[16] = "";

	if (wanted <= has || wanted > before)
		return 0;
	if (number)
		snprintf(which, sizeof(which), " 0x%x", number);
	snprintf(why, room,
		 "%s%s needs %s %llu, %s has %llu; resume on a device that has as much, or on the old one",
		 what, which, limit, (unsigned long long)wanted, ctx->name,
		 (unsigned long long)has);
	rp_log(RP_LOG_ERR, "%s", why);
	return -EOPNOTSUPP;
}

static uint64_t length(const struct list_head *head)
{
	const struct list_node *n;
	uint64_t count = 0;

	for (n = head->n.next; n != &head->n; n = n->next)
		count++;
	return count;
}

#define JUDGE(what, number, field, wanted)						\
	do {										\
		int ret = judge(ctx, what, number, #field, wanted,			\
				(uint64_t)now->field, (uint64_t)was->field, why, room);	\
		if (ret)								\
			return ret;							\
	} while (0)

static int judge_qp(struct rp_context *ctx, const struct rp_qp *qp, const struct ibv_device_attr *now,
		    const struct ibv_device_attr *was, char *why, size_t room)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;

	JUDGE("QP", qp->qp.qp_num, max_qp_wr, cap->max_send_wr);
	JUDGE("QP", qp->qp.qp_num, max_sge, cap->max_send_sge);
	if (qp->has_recv) {
		JUDGE("QP", qp->qp.qp_num, max_qp_wr, cap->max_recv_wr);
		JUDGE("QP", qp->qp.qp_num, max_sge, cap->max_recv_sge);
	}
	if (qp->qp.qp_type == IBV_QPT_RC && rp_conn_connectable(qp)) {
		JUDGE("QP", qp->qp.qp_num, max_qp_init_rd_atom, qp->attr.max_rd_atomic);
		JUDGE("QP", qp->qp.qp_num, max_qp_rd_atom, qp->attr.max_dest_rd_atomic);
	}
	return 0;
}

int rp_limits_check(struct rp_context *ctx, char *why, size_t room)
{
	const struct ibv_device_attr *now = &ctx->limits, *was = &ctx->limits_before;
	struct rp_srq *srq;
	struct rp_mr *mr;
	struct rp_cq *cq;
	struct rp_qp *qp;
	int err;

	JUDGE("the process", 0, max_pd, length(&ctx->pds));
	JUDGE("the process", 0, max_mr, length(&ctx->mrs));
	JUDGE("the process", 0, max_cq, length(&ctx->cqs));
	JUDGE("the process", 0, max_srq, length(&ctx->srqs));
	JUDGE("the process", 0, max_qp, length(&ctx->qps));
	list_for_each(mr, &ctx->mrs, node)
		JUDGE("a memory region", 0, max_mr_size, mr->mr.length);
	list_for_each(cq, &ctx->cqs, node)
		JUDGE("a completion queue", 0, max_cqe, (uint64_t)cq->cq.cqe);
	list_for_each(srq, &ctx->srqs, node) {
		JUDGE("a shared receive queue", 0, max_srq_wr, srq->init.attr.max_wr);
		JUDGE("a shared receive queue", 0, max_srq_sge, srq->init.attr.max_sge);
	}
	list_for_each(qp, &ctx->qps, node) {
		err = judge_qp(ctx, qp, now, was, why, room);
		if (err)
			return err;
	}
	return 0;
}
