// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <time.h>

#include "check.h"
#include "pair.h"

#ifdef __SANITIZE_THREAD__
/*
 * The control thread holds the locks of several queue pairs at once, taken in the order in which
 * GATEs come. No other thread holds more than one, or waits for anything while it does.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "deadlock:rp_conn_begin\n"
	       "deadlock:rp_conn_stay\n";
}
#endif

struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	CHECK(list);
	for (i = 0; list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	CHECK(ctx, "%s: %s", name, strerror(errno));
	return ctx;
}

static int or(int value, int otherwise)
{
	return value ? value : otherwise;
}

static uint64_t send_ops(enum ibv_qp_type type, bool tso)
{
	uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type == IBV_QPT_UD)
		return sends | (tso ? IBV_QP_EX_WITH_TSO : 0);
	sends |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (type != IBV_QPT_RC)
		return sends;
	return sends | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
	       IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE;
}

struct ibv_qp *end_create_qp(struct end *e, const struct pair_how *how)
{
	enum ibv_qp_type type = how->type ? how->type : IBV_QPT_RC;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.srq = e->srq,
		.cap = {
			.max_send_wr = or(how->send_wr, 64),
			.max_recv_wr = or(how->recv_wr, 64),
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = how->no_inline ? 0 : 64,
		},
		.qp_type = type,
		.sq_sig_all = how->sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			     (how->tso_header ? IBV_QP_INIT_ATTR_MAX_TSO_HEADER : 0),
		.pd = e->pd,
		.max_tso_header = how->tso_header,
		.send_ops_flags = send_ops(type, how->tso_header),
	};
	struct ibv_qp *qp;

	if (how->ex_qp)
		qp = ibv_create_qp_ex(e->ctx, &init);
	else
		qp = ibv_create_qp(e->pd, (struct ibv_qp_init_attr *)&init);
	CHECK(qp, "%s", strerror(errno));
	return qp;
}

void end_open(struct end *e, const char *dev, const struct pair_how *how)
{
	int cqe = or(how->cqe, 256);

	memset(e, 0, sizeof(*e));
	e->bytes = or(how->bytes, 65536);
	e->sgid_index = how->sgid_index;
	e->pkey_index = how->pkey_index;
	e->timeout = how->timeout;
	e->rate = how->rate;
	e->qp_access = how->no_write ? IBV_ACCESS_REMOTE_READ : or(how->access, ALL_ACCESS);
	e->buf = aligned_alloc(4096, e->bytes);
	CHECK(e->buf);
	memset(e->buf, 0, e->bytes);
	e->ctx = open_named(dev);
	e->pd = ibv_alloc_pd(e->ctx);
	CHECK(e->pd);
	e->mr = ibv_reg_mr(e->pd, e->buf, e->bytes, or(how->access, ALL_ACCESS));
	CHECK(e->mr, "%s", strerror(errno));
	if (how->events) {
		e->channel = ibv_create_comp_channel(e->ctx);
		CHECK(e->channel);
	}
	if (how->ex_cq) {
		struct ibv_cq_init_attr_ex a = {
			.cqe = cqe,
			.channel = e->channel,
			.wc_flags = IBV_WC_STANDARD_FLAGS | how->wc_flags,
		};

		e->cqx = ibv_create_cq_ex(e->ctx, &a);
		CHECK(e->cqx, "%s", strerror(errno));
		e->cq = ibv_cq_ex_to_cq(e->cqx);
	} else {
		e->cq = ibv_create_cq(e->ctx, cqe, NULL, e->channel, 0);
		CHECK(e->cq, "%s", strerror(errno));
	}
	if (how->srq) {
		struct ibv_srq_init_attr a = { .attr = { .max_wr = 64, .max_sge = 4 } };

		e->srq = ibv_create_srq(e->pd, &a);
		CHECK(e->srq);
	}
	e->qp = end_create_qp(e, how);
	if (how->ex_qp) {
		e->qpx = ibv_qp_to_qp_ex(e->qp);
		CHECK(e->qpx);
	}
}

void end_close(struct end *e)
{
	if (e->qp)
		CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	if (e->srq)
		CHECK_EQ(ibv_destroy_srq(e->srq), 0);
	if (e->cq)
		CHECK_EQ(ibv_destroy_cq(e->cq), 0);
	if (e->channel)
		CHECK_EQ(ibv_destroy_comp_channel(e->channel), 0);
	CHECK_EQ(ibv_dereg_mr(e->mr), 0);
	CHECK_EQ(ibv_dealloc_pd(e->pd), 0);
	CHECK_EQ(ibv_close_device(e->ctx), 0);
	free(e->buf);
}

void qp_to_init(struct end *e, struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = e->pkey_index,
		.port_num = 1,
		.qp_access_flags = e->qp_access,
		.qkey = QKEY,
	};

	CHECK_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			       (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
		 0);
}

void qp_to_rtr(struct end *e, struct ibv_qp *qp, uint32_t dest, uint32_t rq_psn)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = rq_psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.static_rate = e->rate,
			.grh = { .sgid_index = e->sgid_index, .hop_limit = 1 },
		},
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (qp->qp_type == IBV_QPT_UD)
		mask = IBV_QP_STATE;
	CHECK_EQ(ibv_query_gid(e->ctx, 1, e->sgid_index, &a.ah_attr.grh.dgid), 0);
	CHECK_EQ(ibv_modify_qp(qp, &a, mask), 0);
}

static void to_rts(struct ibv_qp *qp, uint32_t sq_psn, int timeout)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = sq_psn,
		.timeout = timeout ? timeout : 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	CHECK_EQ(ibv_modify_qp(qp, &a, mask), 0);
}

void qp_to_rts(struct ibv_qp *qp, uint32_t sq_psn)
{
	to_rts(qp, sq_psn, 0);
}

void qp_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	CHECK_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
}

void pair_connect(struct end e[2])
{
	int i;

	for (i = 0; i < 2; i++)
		qp_to_init(&e[i], e[i].qp);
	for (i = 0; i < 2; i++)
		qp_to_rtr(&e[i], e[i].qp, e[!i].qp->qp_num, 100 + !i);
	for (i = 0; i < 2; i++)
		to_rts(e[i].qp, 100 + i, e[i].timeout);
}

void pair_open(struct end e[2], const struct pair_how *how)
{
	end_open(&e[0], how->dev[0] ? how->dev[0] : "mock0", how);
	end_open(&e[1], how->dev[1] ? how->dev[1] : "mock1", how);
	pair_connect(e);
}

void pair_close(struct end e[2])
{
	end_close(&e[0]);
	end_close(&e[1]);
}

int post_recv(struct end *e, uint64_t wr_id, unsigned int offset, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + offset, len, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
}

int post(struct end *e, struct end *to, enum ibv_wr_opcode op, uint64_t wr_id,
	 unsigned int flags, unsigned int offset, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + offset, len, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = flags,
		.imm_data = htobe32(wr_id),
	}, *bad = NULL;
	int ret;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)to->buf + offset;
		wr.wr.atomic.rkey = to->mr->rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 77;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)to->buf + offset;
		wr.wr.rdma.rkey = to->mr->rkey;
	}
	ret = ibv_post_send(e->qp, &wr, &bad);
	CHECK(!ret || bad == &wr);
	return ret;
}

struct ibv_ah *pair_ah(struct end *from, struct end *to)
{
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1, .grh.hop_limit = 1 };
	struct ibv_ah *ah;

	CHECK_EQ(ibv_query_gid(to->ctx, 1, 0, &aa.grh.dgid), 0);
	ah = ibv_create_ah(from->pd, &aa);
	CHECK(ah, "%s", strerror(errno));
	return ah;
}

int post_datagram(struct end *from, struct ibv_ah *ah, uint32_t qpn, enum ibv_wr_opcode op, uint64_t wr_id,
		  unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)from->buf + 8192, 8, from->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = flags,
		.imm_data = htobe32(wr_id),
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY },
	}, *bad;

	return ibv_post_send(from->qp, &wr, &bad);
}

static int poll_ex(struct end *e, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr a = { 0 };
	int ret = ibv_start_poll(e->cqx, &a);

	if (ret == ENOENT)
		return 0;
	CHECK_EQ(ret, 0);
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = e->cqx->wr_id;
	wc->status = e->cqx->status;
	wc->qp_num = ibv_wc_read_qp_num(e->cqx);
	if (!wc->status) {
		wc->opcode = ibv_wc_read_opcode(e->cqx);
		wc->wc_flags = ibv_wc_read_wc_flags(e->cqx);
		wc->byte_len = ibv_wc_read_byte_len(e->cqx);
		if (wc->wc_flags & IBV_WC_WITH_IMM)
			wc->imm_data = ibv_wc_read_imm_data(e->cqx);
		wc->src_qp = ibv_wc_read_src_qp(e->cqx);
	}
	ibv_end_poll(e->cqx);
	return 1;
}

static int poll_now(struct end *e, struct ibv_wc *wc)
{
	return e->cqx ? poll_ex(e, wc) : ibv_poll_cq(e->cq, 1, wc);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void write_by_mr(struct end e[2], struct ibv_mr *mr, uint64_t wr_id)
{
	struct ibv_mr *whole = e[0].mr;

	e[0].mr = mr;
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, wr_id, IBV_SEND_SIGNALED, 0, 8), 0);
	e[0].mr = whole;
}

struct ibv_wc poll_one(struct end *e)
{
	const struct timespec pause = { .tv_nsec = 50000 };
	double end = seconds() + 5;
	struct ibv_wc wc = { 0 };
	int n;

	while (!(n = poll_now(e, &wc))) {
		CHECK(seconds() < end, "no completion");
		nanosleep(&pause, NULL);
	}
	CHECK_EQ(n, 1);
	return wc;
}

struct ibv_wc expect(struct end *e, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = poll_one(e);

	CHECK_EQ(wc.wr_id, wr_id);
	CHECK_EQ(wc.status, status);
	CHECK_EQ(wc.qp_num, e->qp->qp_num);
	return wc;
}

void expect_none(struct end *e, unsigned int ms)
{
	struct ibv_wc wc;

	usleep(ms * 1000);
	if (poll_now(e, &wc))
		CHECK(0, "completion of %llu, status %d", (unsigned long long)wc.wr_id, wc.status);
}

void send_one(struct end e[2])
{
	CHECK_EQ(post_recv(&e[1], 1, 0, 4), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, IBV_SEND_SIGNALED, 0, 4), 0);
	expect(&e[0], 2, IBV_WC_SUCCESS);
	expect(&e[1], 1, IBV_WC_SUCCESS);
}

void take_event(struct end *e)
{
	struct ibv_cq *cq;
	void *ctx;

	CHECK_EQ(ibv_get_cq_event(e->channel, &cq, &ctx), 0);
	CHECK(cq == e->cq);
	ibv_ack_cq_events(cq, 1);
}
