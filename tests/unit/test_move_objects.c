// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects around the queue pairs, each in a move: thread and parent domains, null memory regions,
 * regions that were registered again, CQs that were resized and moderated or lie in a parent
 * domain, several contexts of one device; and the numbers by which other processes import some of them.
 */
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static void domains(void)
{
	struct pair_how how = { .ex_cq = true };
	struct ibv_cq_init_attr_ex ca = {
		.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
	};
	struct ibv_parent_domain_init_attr pa = { 0 };
	struct ibv_td_init_attr ta = { 0 };
	struct ibv_pd *pd[2];
	struct ibv_td *td;
	struct end e[2];
	int k;

	pair_open(e, &how);
	td = ibv_alloc_td(e[0].ctx, &ta);
	CHECK(td);
	pa.pd = e[0].pd;
	pa.td = td;
	for (k = 0; k < 2; k++) {
		pd[k] = ibv_alloc_parent_domain(e[0].ctx, &pa);
		CHECK(pd[k]);
	}
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	CHECK_EQ(ibv_destroy_cq(e[0].cq), 0);
	qp_to(e[1].qp, IBV_QPS_RESET);
	ca.parent_domain = pd[1];
	e[0].cqx = ibv_create_cq_ex(e[0].ctx, &ca);
	CHECK(e[0].cqx);
	e[0].cq = ibv_cq_ex_to_cq(e[0].cqx);
	e[0].pd = pd[0];
	e[0].qp = end_create_qp(&e[0], &how);
	pair_connect(e);
	for (k = 0; k < 3; k++) {
		CHECK_EQ(post_recv(&e[0], 1, 0, 64), 0);
		move_away("mock0");
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 2, IBV_SEND_SIGNALED, 0, 16), 0);
		move_back("mock0");
		expect(&e[0], 2, IBV_WC_SUCCESS);
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 3, IBV_SEND_SIGNALED, 0, 16), 0);
		expect(&e[0], 1, IBV_WC_SUCCESS);
		expect(&e[1], 3, IBV_WC_SUCCESS);
		CHECK_EQ(mock_live(MOCK_TD), 1);
		CHECK_EQ(mock_live(MOCK_PD), 4);
	}
	CHECK_EQ(ibv_dealloc_td(td), EBUSY);
	CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
	CHECK_EQ(ibv_destroy_cq(e[0].cq), 0);
	CHECK_EQ(ibv_dealloc_pd(pd[0]), 0);
	CHECK_EQ(ibv_dealloc_pd(pd[1]), 0);
	CHECK_EQ(ibv_dealloc_td(td), 0);
	e[0].qp = NULL;
	e[0].cq = NULL;
	e[0].pd = pa.pd;
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void memory(void)
{
	struct ibv_send_wr wr = { .wr_id = 1, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_mr *null;
	char *other = calloc(1, 8192);
	struct ibv_sge sge;
	struct end e[2];
	int k;

	CHECK(other);
	pair_open(e, &(struct pair_how){ 0 });
	null = ibv_alloc_null_mr(e[0].pd);
	CHECK(null);
	CHECK_EQ(ibv_rereg_mr(e[0].mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 8192, 0), 0);
	for (k = 0; k < 3; k++) {
		if (k == 1)	/* again after a move: the keys stay */
			CHECK_EQ(ibv_rereg_mr(e[0].mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					      ALL_ACCESS), 0);
		move_away("mock0");
		move_back("mock0");
		memset(e[1].buf, 0xaa, 64);
		/* Zeroes of the null region to the peer, what is read goes nowhere. */
		sge = (struct ibv_sge){ 0, 64, null->lkey };
		wr.sg_list = &sge;
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = (uintptr_t)e[1].buf;
		wr.wr.rdma.rkey = e[1].mr->rkey;
		CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), 0);
		expect(&e[0], 1, IBV_WC_SUCCESS);
		CHECK(!e[1].buf[0] && !e[1].buf[63] && (e[1].buf[64] == 0));
		wr.opcode = IBV_WR_RDMA_READ;
		CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), 0);
		expect(&e[0], 1, IBV_WC_SUCCESS);
		/* The peer reaches the region where it is now. */
		snprintf(e[1].buf + 1024, 64, "round %d", k);
		sge = (struct ibv_sge){ (uintptr_t)e[1].buf + 1024, 64, e[1].mr->lkey };
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = (uintptr_t)other + 512;
		wr.wr.rdma.rkey = e[0].mr->rkey;
		CHECK_EQ(ibv_post_send(e[1].qp, &wr, &bad), 0);
		expect(&e[1], 1, IBV_WC_SUCCESS);
		CHECK(!strcmp(other + 512, e[1].buf + 1024), "%s", other + 512);
	}
	CHECK_EQ(ibv_dereg_mr(null), 0);
	pair_close(e);
	free(other);
	CHECK_EQ(mock_live_total(), 0);
}

/* One of two null regions that have one key is taken back, made before the move or after it: the other stays. */
static void null_regions(void)
{
	struct ibv_send_wr wr = {
		.wr_id = 1, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_mr *null[3];
	struct ibv_sge sge;
	struct end e[2];
	int k;

	pair_open(e, &(struct pair_how){ 0 });
	for (k = 0; k < 2; k++)
		null[k] = ibv_alloc_null_mr(e[0].pd);
	CHECK(null[0] && null[1] && null[0]->lkey == null[1]->lkey);
	move_away("mock0");
	move_back("mock0");
	null[2] = ibv_alloc_null_mr(e[0].pd);
	CHECK(null[2], "%s", strerror(errno));
	for (k = 0; k < 3; k++) {
		memset(e[1].buf, 0xaa, 64);
		sge = (struct ibv_sge){ 0, 64, null[k]->lkey };
		wr.sg_list = &sge;
		wr.wr.rdma.remote_addr = (uintptr_t)e[1].buf;
		wr.wr.rdma.rkey = e[1].mr->rkey;
		CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), 0);
		expect(&e[0], 1, IBV_WC_SUCCESS);
		CHECK(!e[1].buf[0] && !e[1].buf[63]);
		CHECK_EQ(ibv_dereg_mr(null[k]), 0);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void queues(void)
{
	struct ibv_modify_cq_attr ma = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { .cq_count = 7, .cq_period = 9 },
	};
	unsigned int count, period;
	struct end e[2];
	int cqe;

	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(ibv_resize_cq(e[0].cq, 500), 0);
	CHECK_EQ(e[0].cq->cqe, 500);
	CHECK_EQ(ibv_modify_cq(e[0].cq, &ma), 0);
	mock_last_moderation(&count, &period);
	move_away("mock0");
	move_back("mock0");
	mock_last_moderation(&count, &period);
	CHECK_EQ(count, 7);
	CHECK_EQ(period, 9);
	mock_last_caps(&(uint32_t){ 0 }, &cqe);
	CHECK(cqe >= 500);
	CHECK_EQ(e[0].cq->cqe, 500);
	/* Once more on the new device, and a move behind it. */
	CHECK_EQ(ibv_resize_cq(e[0].cq, 300), 0);
	CHECK_EQ(e[0].cq->cqe, 300);
	ma.moderate.cq_count = 5;
	CHECK_EQ(ibv_modify_cq(e[0].cq, &ma), 0);
	mock_last_moderation(&count, &period);
	move_away("mock0");
	move_back("mock0");
	mock_last_moderation(&count, &period);
	CHECK_EQ(count, 5);
	CHECK_EQ(period, 9);
	mock_last_caps(&(uint32_t){ 0 }, &cqe);
	CHECK(cqe >= 300 && cqe < 500, "%d", cqe);
	CHECK_EQ(e[0].cq->cqe, 300);
	pair_close(e);
}

/* Three contexts of one device, connected to each other and to another device. */
static void contexts(void)
{
	struct pair_how how[2] = {
		{ .cqe = 256 }, { .dev = { "mock0", "mock0" }, .sgid_index = 1 },
	};
	struct traffic *t[2];
	struct end e[2][2];
	int i, k;

	for (k = 0; k < 2; k++) {
		pair_open(e[k], &how[k]);
		t[k] = traffic_start(e[k], &(struct traffic_how){ .seed = 5 + k });
	}
	for (i = 0; i < 4; i++) {
		move_away(i % 2 ? "mock1" : "mock0");
		move_back(i % 2 ? "mock1" : "mock0");
		for (k = 0; k < 2; k++)
			traffic_flows(t[k], 20);
	}
	for (k = 0; k < 2; k++) {
		traffic_stop(t[k]);
		pair_close(e[k]);
	}
	CHECK_EQ(mock_live_total(), 0);
}

/* What others import after a move is what is there then. */
static void handles(void)
{
	struct ibv_parent_domain_init_attr pa = { 0 };
	struct ibv_context *ctx;
	struct ibv_pd *parent, *pd;
	struct ibv_mw *mw;
	struct ibv_mr *mr;
	struct end e[2];
	uint32_t was[4];

	pair_open(e, &(struct pair_how){ .srq = true });
	pa.pd = e[0].pd;
	parent = ibv_alloc_parent_domain(e[0].ctx, &pa);
	mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	CHECK(parent && mw);
	was[0] = e[0].cq->handle;
	was[1] = e[0].srq->handle;
	was[2] = e[0].qp->handle;
	was[3] = mw->handle;
	move_away("mock0");
	move_back("mock0");
	CHECK(e[0].cq->handle != was[0] && e[0].srq->handle != was[1] && e[0].qp->handle != was[2] &&
	      mw->handle != was[3]);
	/* The mock imports the device that has been open for longest. */
	move_away("mock1");
	move_back("mock1");
	ctx = ibv_import_device(dup(e[0].ctx->cmd_fd));
	CHECK(ctx, "%s", strerror(errno));
	pd = ibv_import_pd(ctx, parent->handle);
	CHECK(pd, "%s", strerror(errno));
	ibv_unimport_pd(pd);
	pd = ibv_import_pd(ctx, e[0].pd->handle);
	CHECK(pd, "%s", strerror(errno));
	mr = ibv_import_mr(pd, e[0].mr->handle);
	CHECK(mr, "%s", strerror(errno));
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	CHECK_EQ(ibv_close_device(ctx), 0);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	CHECK_EQ(ibv_dealloc_pd(parent), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	domains();
	memory();
	null_regions();
	queues();
	contexts();
	handles();
	return 0;
}
