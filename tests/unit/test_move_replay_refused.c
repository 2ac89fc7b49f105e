// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The new device does not take what the old one would have taken: the queue pair fails, and each of its
 * requests completes once, in order. And what no device takes in the state that a queue pair has, the
 * shim does not keep for it either.
 */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define SENDS 6

/* What no device's ibv_post_send() takes is flushed as well: an atomic write, and a bind of a window. */
static void built(struct end *from, const struct end *to)
{
	struct ibv_mw *mw = ibv_alloc_mw(from->pd, IBV_MW_TYPE_2);
	uint64_t value = 7;

	CHECK(mw);
	ibv_wr_start(from->qpx);
	from->qpx->wr_id = 51;
	from->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(from->qpx, to->mr->rkey, (uintptr_t)to->buf, &value);
	CHECK_EQ(ibv_wr_complete(from->qpx), 0);
	expect(from, 51, IBV_WC_WR_FLUSH_ERR);
	ibv_wr_start(from->qpx);
	from->qpx->wr_id = 52;
	from->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(from->qpx, mw, ibv_inc_rkey(mw->rkey), &(struct ibv_mw_bind_info){
		.mr = from->mr, .addr = (uintptr_t)from->buf, .length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	});
	CHECK_EQ(ibv_wr_complete(from->qpx), 0);
	expect(from, 52, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
}

/* The @nth request that is given to the device again is refused. */
static void refused(unsigned int nth, bool srq, bool ex_qp)
{
	enum ibv_wc_status status;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	bool failed = false;
	struct ibv_wc wc;
	struct end e[2];
	unsigned int i;

	pair_open(e, &(struct pair_how){ .srq = srq, .ex_qp = ex_qp });
	for (i = 0; i < SENDS; i++)
		CHECK_EQ(post_recv(&e[1], 100 + i, 64 * i, 64), 0);
	CHECK_EQ(post_recv(&e[0], 200, 4096, 64), 0);
	CHECK_EQ(post_recv(&e[0], 201, 4096, 64), 0);
	move_away("mock0");
	for (i = 0; i < SENDS; i++)
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, i, i % 2 ? 0 : IBV_SEND_SIGNALED, 64 * i, 8), 0);
	mock_fail("post_send", EIO, nth, 1);
	move_back("mock0");
	for (i = 0; i < SENDS; i++) {
		/* Of what was executed only half asks for a completion. */
		do {
			wc = poll_one(&e[0]);
			if (wc.wr_id < 200)
				break;
			CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
			failed = true;
		} while (1);
		status = wc.status;
		if (wc.wr_id > i) {
			CHECK(i % 2 && i < nth && !failed);
			i = wc.wr_id;
		}
		CHECK_EQ(wc.wr_id, i);
		CHECK(i < nth || status != IBV_WC_SUCCESS, "request %u", i);
		CHECK(!failed || status != IBV_WC_SUCCESS);
		failed |= status != IBV_WC_SUCCESS;
	}
	CHECK(failed);
	usleep(20000);
	for (i = 0; ibv_poll_cq(e[0].cq, 1, &wc); i++) {
		CHECK(!srq && wc.wr_id >= 200 && wc.status == IBV_WC_WR_FLUSH_ERR, "%lu", wc.wr_id);
		CHECK(i < 2);
	}
	CHECK_EQ(ibv_query_qp(e[0].qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 50, 0, 0, 8), 0);
	expect(&e[0], 50, IBV_WC_WR_FLUSH_ERR);
	if (ex_qp)
		built(&e[0], &e[1]);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Datagrams: what is given to be flushed has the device's address handle, too. */
static void datagrams(unsigned int nth)
{
	struct end e[2];
	unsigned int i;
	struct ibv_ah *ah;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = pair_ah(&e[0], &e[1]);
	move_away("mock0");
	for (i = 0; i < SENDS; i++)
		CHECK_EQ(post_datagram(&e[0], ah, e[1].qp->qp_num, IBV_WR_SEND, i, IBV_SEND_SIGNALED), 0);
	mock_fail("post_send", EIO, nth, 1);
	move_back("mock0");
	for (i = 0; i < SENDS; i++) {
		struct ibv_wc wc = poll_one(&e[0]);

		CHECK_EQ(wc.wr_id, i);
		CHECK(i < nth || wc.status != IBV_WC_SUCCESS, "request %u", i);
		CHECK(i <= nth || wc.status == IBV_WC_WR_FLUSH_ERR, "request %u: %d", i, wc.status);
	}
	CHECK_EQ(post_datagram(&e[0], ah, e[1].qp->qp_num, IBV_WR_SEND, 50, IBV_SEND_SIGNALED), 0);
	expect(&e[0], 50, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* A queue pair that is not connected takes no sends, also while there is no device to say so. */
static void not_connected(void)
{
	struct pair_how how = { 0 };
	struct ibv_qp *qp, *whole;
	struct ibv_wc wc;
	struct end e[2];
	int i;

	pair_open(e, &how);
	whole = e[0].qp;
	qp = e[0].qp = end_create_qp(&e[0], &how);
	for (i = 0; i < 2; i++) {
		if (i) {
			qp_to_init(&e[0], qp);
			CHECK_EQ(post_recv(&e[0], 5, 0, 64), 0);
		}
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 6, IBV_SEND_SIGNALED, 0, 8), EINVAL);
		move_away("mock0");
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 7, IBV_SEND_SIGNALED, 0, 8), EINVAL);
		move_back("mock0");
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 8, IBV_SEND_SIGNALED, 0, 8), EINVAL);
	}
	CHECK_EQ(ibv_poll_cq(e[0].cq, 1, &wc), 0);
	/* The receive is still there. */
	qp_to(qp, IBV_QPS_ERR);
	expect(&e[0], 5, IBV_WC_WR_FLUSH_ERR);
	expect_none(&e[0], 10);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	e[0].qp = whole;
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	not_connected();
	refused(0, false, false);
	refused(3, false, true);
	refused(5, true, false);
	datagrams(0);
	datagrams(3);
	return 0;
}
