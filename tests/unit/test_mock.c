// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The mock does what the tests of the shim take for granted. */
#include <poll.h>

#include "check.h"
#include "mock.h"
#include "pair.h"

#ifndef CQ_EXTRA
#define CQ_EXTRA 0	/* test_verbs_same.c: the shim asks for more entries than the program does */
#endif

static struct end e[2];

static void data(const struct pair_how *how)
{
	struct ibv_wc wc;
	uint64_t *far;

	pair_open(e, how);
	strcpy(e[0].buf, "hello");
	CHECK_EQ(post_recv(&e[1], 1, 1000, 100), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, IBV_SEND_SIGNALED, 0, 6), 0);
	wc = expect(&e[1], 1, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, 6);
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK(!strcmp(e[1].buf + 1000, "hello"));
	expect(&e[0], 2, IBV_WC_SUCCESS);

	strcpy(e[0].buf + 2000, "write");
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 3, 0, 2000, 6), 0);
	CHECK_EQ(post_recv(&e[1], 4, 0, 0), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE_WITH_IMM, 5,
		      IBV_SEND_SIGNALED | IBV_SEND_INLINE, 2000, 6), 0);
	wc = expect(&e[1], 4, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(be32toh(wc.imm_data), 5);
	CHECK(!strcmp(e[1].buf + 2000, "write"));
	expect(&e[0], 5, IBV_WC_SUCCESS);

	strcpy(e[1].buf + 3000, "read");
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_READ, 6, IBV_SEND_SIGNALED, 3000, 5), 0);
	expect(&e[0], 6, IBV_WC_SUCCESS);
	CHECK(!strcmp(e[0].buf + 3000, "read"));

	far = (uint64_t *)(e[1].buf + 4096);
	*far = 41;
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 7, IBV_SEND_SIGNALED, 4096, 8), 0);
	expect(&e[0], 7, IBV_WC_SUCCESS);
	CHECK_EQ(*(uint64_t *)(e[0].buf + 4096), 41);
	CHECK_EQ(*far, 42);
	*far = 1;
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_ATOMIC_CMP_AND_SWP, 8, IBV_SEND_SIGNALED, 4096, 8), 0);
	expect(&e[0], 8, IBV_WC_SUCCESS);
	CHECK_EQ(*far, 77);
	expect_none(&e[0], 1);
	pair_close(e);
}

static void rnr_and_flush(void)
{
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 4; i++)
		CHECK_EQ(post(&e[0], &e[1], i ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, i, 0, 0, 4), 0);
	CHECK_EQ(post_recv(&e[0], 100, 0, 4), 0);
	expect_none(&e[0], 20);
	qp_to(e[0].qp, IBV_QPS_ERR);
	for (i = 0; i < 4; i++)
		expect(&e[0], i, IBV_WC_WR_FLUSH_ERR);
	expect(&e[0], 100, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 9, 0, 0, 4), 0);
	expect(&e[0], 9, IBV_WC_WR_FLUSH_ERR);

	/* The other end's requests go unanswered */
	mock_retry_ms(50);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 10, 0, 0, 4), 0);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 11, 0, 0, 4), 0);
	expect(&e[1], 10, IBV_WC_RETRY_EXC_ERR);
	expect(&e[1], 11, IBV_WC_WR_FLUSH_ERR);
	mock_retry_ms(1000);

	/* RESET empties, and both can be connected again; a wrong PSN does not */
	for (i = 0; i < 2; i++)
		qp_to(e[i].qp, IBV_QPS_RESET);
	pair_connect(e);
	CHECK_EQ(post_recv(&e[1], 1, 0, 4), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, IBV_SEND_SIGNALED, 0, 4), 0);
	expect(&e[0], 2, IBV_WC_SUCCESS);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	pair_close(e);
}

static void depth(void)
{
	struct pair_how how = { .send_wr = 4, .recv_wr = 2, .cqe = 3 };
	struct ibv_wc wc[8];
	int i;

	pair_open(e, &how);
	mock_stall(true);
	for (i = 0; i < 4; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, i, i == 3 ? IBV_SEND_SIGNALED : 0,
			      0, 4), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 9, 0, 0, 4), ENOMEM);
	mock_stall(false);
	expect(&e[0], 3, IBV_WC_SUCCESS);
	for (i = 0; i < 4; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED, 0, 4), 0);
	usleep(20000);
	CHECK_EQ(mock_cq_overruns(), CQ_EXTRA ? 0 : 1);
	CHECK_EQ(ibv_poll_cq(e[0].cq, 8, wc), CQ_EXTRA ? 4 : 3);
	CHECK_EQ(post_recv(&e[0], 1, 0, 4), 0);
	CHECK_EQ(post_recv(&e[0], 2, 0, 4), 0);
	CHECK_EQ(post_recv(&e[0], 3, 0, 4), ENOMEM);
	pair_close(e);
}

static void keys(void)
{
	struct pair_how how = { .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ };
	struct ibv_mr *mr, wrong;

	pair_open(e, &how);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, 0, 0, 4), 0);
	expect(&e[0], 1, IBV_WC_REM_ACCESS_ERR);
	pair_close(e);

	pair_open(e, &(struct pair_how){ 0 });
	mr = e[0].mr;
	wrong = *mr;
	wrong.lkey = mr->rkey;
	e[0].mr = &wrong;
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, 0, 0, 4), 0);
	expect(&e[0], 1, IBV_WC_LOC_PROT_ERR);
	e[0].mr = mr;
	pair_close(e);
	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, 0, 65534, 4), 0);
	expect(&e[0], 1, IBV_WC_LOC_PROT_ERR);
	pair_close(e);
}

static void events(void)
{
	struct pair_how how = { .events = true };
	struct pollfd p;
	struct ibv_cq *cq;
	void *arg;

	pair_open(e, &how);
	p = (struct pollfd){ .fd = e[1].channel->fd, .events = POLLIN };
	CHECK_EQ(ibv_req_notify_cq(e[1].cq, 0), 0);
	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(post_recv(&e[1], 1, 0, 4), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, 0, 0, 4), 0);
	CHECK_EQ(poll(&p, 1, 5000), 1);
	CHECK_EQ(ibv_get_cq_event(e[1].channel, &cq, &arg), 0);
	CHECK(cq == e[1].cq);
	ibv_ack_cq_events(cq, 1);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	/* Solicited only */
	CHECK_EQ(ibv_req_notify_cq(e[1].cq, 1), 0);
	CHECK_EQ(post_recv(&e[1], 1, 0, 4), 0);
	CHECK_EQ(post_recv(&e[1], 2, 0, 4), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, 0, 0, 4), 0);
	CHECK_EQ(poll(&p, 1, 50), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, IBV_SEND_SOLICITED, 0, 4), 0);
	CHECK_EQ(poll(&p, 1, 5000), 1);
	pair_close(e);	/* with an event that nobody took */
}

static void lost_answers(void)
{
	pair_open(e, &(struct pair_how){ 0 });
	mock_hold_acks(true);
	CHECK_EQ(post_recv(&e[1], 1, 0, 4), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, IBV_SEND_SIGNALED, 0, 4), 0);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	expect_none(&e[0], 20);
	qp_to(e[0].qp, IBV_QPS_ERR);
	expect(&e[0], 2, IBV_WC_WR_FLUSH_ERR);
	mock_hold_acks(false);
	pair_close(e);
}

static void plugging(void)
{
	uint32_t qpn, lkey;

	end_open(&e[0], "mock0", &(struct pair_how){ 0 });
	CHECK_EQ(mock_unplug("mock0"), EBUSY);
	qpn = e[0].qp->qp_num;
	lkey = e[0].mr->lkey;
	CHECK(e[0].mr->rkey != lkey);
	end_close(&e[0]);
	CHECK_EQ(mock_unplug("mock0"), 0);
	CHECK_EQ(mock_unplug("mock0"), ENODEV);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), EEXIST);
	end_open(&e[0], "mock0", &(struct pair_how){ 0 });
	CHECK(e[0].qp->qp_num != qpn);
	CHECK(e[0].mr->lkey != lkey);
	end_close(&e[0]);
	CHECK_EQ(mock_unplug("mock0"), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0", .first_qpn = qpn,
			   .first_key = lkey }), 0);
	end_open(&e[0], "mock0", &(struct pair_how){ 0 });
	CHECK_EQ(e[0].qp->qp_num, qpn);
	CHECK_EQ(e[0].mr->lkey, lkey);
	mock_fail("ibv_reg_mr", ENOSPC, 0, 1);
	errno = 0;
	CHECK(!ibv_reg_mr(e[0].pd, e[0].buf, 4096, 0));
	CHECK_EQ(errno, ENOSPC);
	end_close(&e[0]);
}

static void datagrams(void)
{
	struct pair_how how = { .type = IBV_QPT_UD };
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1 };
	struct ibv_send_wr wr = { .wr_id = 5, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED, .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	struct ibv_wc wc;

	pair_open(e, &how);
	wr.wr.ud.ah = ibv_create_ah(e[0].pd, &aa);
	CHECK(wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = e[1].qp->qp_num;
	wr.wr.ud.remote_qkey = 0x11111111;
	sge = (struct ibv_sge){ (uintptr_t)e[0].buf, 4, e[0].mr->lkey };
	wr.sg_list = &sge;
	strcpy(e[0].buf, "abc");
	CHECK_EQ(post_recv(&e[1], 1, 0, 100), 0);
	CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), 0);
	wc = expect(&e[1], 1, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, 44);
	CHECK_EQ(wc.src_qp, e[0].qp->qp_num);
	CHECK(!strcmp(e[1].buf + 40, "abc"));
	expect(&e[0], 5, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_ah(wr.wr.ud.ah), 0);
	pair_close(e);
}

int main(void)
{
	alarm(HANGS);
	data(&(struct pair_how){ 0 });
	data(&(struct pair_how){ .ex_cq = true, .ex_qp = true, .events = true });
	data(&(struct pair_how){ .srq = true });
	rnr_and_flush();
	keys();
	events();
	lost_answers();
	plugging();
	datagrams();
	CHECK_EQ(mock_cq_overruns(), 0);
	depth();
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
