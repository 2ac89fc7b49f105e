// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UD queue pairs of a mover: what was posted is sent, once, or kept until there is a device again;
 * address handles and multicast groups are there again; receives are posted in order, and
 * draining takes none of them. UC is connected as RC is.
 */
#include "../../libshim/ud.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define KEPT 1024

static struct end e[2];
static const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 7 } };

static struct ibv_ah *address(struct end *from, const union ibv_gid *gid)
{
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1, .grh = { .dgid = *gid } };
	struct ibv_ah *ah = ibv_create_ah(from->pd, &aa);

	CHECK(ah, "%s", strerror(errno));
	return ah;
}

static int send_to(struct end *from, struct ibv_ah *ah, uint32_t qpn, uint64_t wr_id, int flags)
{
	return post_datagram(from, ah, qpn, IBV_WR_SEND_WITH_IMM, wr_id, flags);
}

static void received(struct end *to, uint64_t recv, uint32_t imm)
{
	struct ibv_wc wc = expect(to, recv, IBV_WC_SUCCESS);

	CHECK_EQ(be32toh(wc.imm_data), imm);
}

static void unicast(bool srq)
{
	struct ibv_ah *ah, *back;
	unsigned int i, k;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD, .srq = srq, .events = true });
	ah = pair_ah(&e[0], &e[1]);
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 12; i++)
			CHECK_EQ(post_recv(&e[1], i, 64 * i, 64), 0);
		for (i = 0; i < 4; i++)
			CHECK_EQ(post_recv(&e[0], i, 64 * i, 64), 0);
		/* The last of those that were sent ask for no completion. */
		mock_delay_us(3000);
		for (i = 0; i < 6; i++)
			CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, i,
					 i < 3 ? IBV_SEND_SIGNALED : 0), 0);
		move_away("mock0");
		mock_delay_us(0);
		for (i = 0; i < 6; i++)
			received(&e[1], i, i);
		for (i = 0; i < 3; i++)
			expect(&e[0], i, IBV_WC_SUCCESS);
		expect_none(&e[0], 1);
		for (i = 6; i < 12; i++)
			CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, i, IBV_SEND_SIGNALED), 0);
		expect_none(&e[1], 1);
		move_back("mock0");
		for (i = 6; i < 12; i++) {
			received(&e[1], i, i);
			expect(&e[0], i, IBV_WC_SUCCESS);
		}
		/* The receives of the mover: all there, none taken, in order. */
		back = pair_ah(&e[1], &e[0]);
		for (i = 0; i < 4; i++) {
			/* A stranger has to be told; the mover's number now is what it sends with. */
			CHECK_EQ(post_recv(&e[1], 50, 1024, 64), 0);
			CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, i, 0), 0);
			CHECK_EQ(send_to(&e[1], back, poll_one(&e[1]).src_qp, i, 0), 0);
			received(&e[0], i, i);
		}
		CHECK_EQ(ibv_destroy_ah(back), 0);
	}
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

/* Who sends to a queue pair that moves goes on with the handle and the number that it has. */
static void to_the_mover(bool both)
{
	struct ibv_ah *to[2];
	unsigned int i, k;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	for (k = 0; k < 2; k++)
		to[k] = pair_ah(&e[!k], &e[k]);
	for (i = 0; i < 6; i++) {
		for (k = 0; k < 2; k++) {
			CHECK_EQ(post_recv(&e[k], i, 64 * i, 64), 0);
			CHECK_EQ(send_to(&e[!k], to[k], e[k].qp->qp_num, i, IBV_SEND_SIGNALED), 0);
			received(&e[k], i, i);
			expect(&e[!k], i, IBV_WC_SUCCESS);
		}
		move_away("mock0");
		/* Nobody is there: lost, and no fault. */
		CHECK_EQ(send_to(&e[1], to[0], e[0].qp->qp_num, 99, IBV_SEND_SIGNALED), 0);
		expect(&e[1], 99, IBV_WC_SUCCESS);
		move_back("mock0");
		if (both) {
			move_away("mock1");
			move_back("mock1");
		}
		CHECK_EQ(fake_settled(), 0);
	}
	for (k = 0; k < 2; k++)
		CHECK_EQ(ibv_destroy_ah(to[k]), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void multicast(void)
{
	struct ibv_ah *ah;
	unsigned int k;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	CHECK_EQ(ibv_attach_mcast(e[0].qp, &group, 0), 0);
	CHECK_EQ(ibv_attach_mcast(e[1].qp, &group, 0), 0);
	ah = address(&e[1], &group);
	for (k = 0; k < 3; k++) {
		CHECK_EQ(post_recv(&e[0], k, 0, 64), 0);
		CHECK_EQ(post_recv(&e[1], k, 0, 64), 0);
		move_away("mock0");
		move_back("mock0");
		CHECK_EQ(send_to(&e[1], ah, 0xffffff, k, IBV_SEND_SIGNALED), 0);
		received(&e[0], k, k);
		received(&e[1], k, k);
		expect(&e[1], k, IBV_WC_SUCCESS);
	}
	CHECK_EQ(ibv_detach_mcast(e[0].qp, &group, 0), 0);
	CHECK_EQ(ibv_detach_mcast(e[0].qp, &group, 0), EINVAL);
	CHECK_EQ(mock_live(MOCK_GROUP), 1);
	move_away("mock0");
	move_back("mock0");
	CHECK_EQ(mock_live(MOCK_GROUP), 1);
	/* What a resume can not do again it says, and does the next time. */
	CHECK_EQ(ibv_attach_mcast(e[0].qp, &group, 0), 0);
	move_away("mock0");
	mock_fail("ibv_attach_mcast", ENOMEM, 0, 1);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
	CHECK_EQ(fake_resume("mock0", NULL), ENOMEM);
	CHECK_EQ(fake_resume("mock0", NULL), 0);
	CHECK_EQ(mock_live(MOCK_GROUP), 2);
	/* A member is not destroyed, and goes on. */
	CHECK_EQ(ibv_destroy_qp(e[0].qp), EBUSY);
	for (k = 0; k < 2; k++)
		CHECK_EQ(ibv_detach_mcast(e[k].qp, &group, 0), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * The neighbour of one address does not answer: its datagrams are lost, all else goes on. When the
 * module has found out where it is, it is there again.
 */
static void nobody_there(void)
{
	unsigned int i, got[7] = { 0 };
	struct ibv_ah *ah, *lost;
	struct ibv_wc wc;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	lost = pair_ah(&e[0], &e[1]);
	ah = pair_ah(&e[0], &e[1]);
	for (i = 0; i < 16; i++)
		CHECK_EQ(post_recv(&e[1], i, 64 * i, 64), 0);
	move_away("mock0");
	CHECK_EQ(send_to(&e[0], lost, e[1].qp->qp_num, 4, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, 5, IBV_SEND_SIGNALED), 0);
	mock_fail("ibv_create_ah", ETIMEDOUT, 0, 1);
	move_back("mock0");
	expect(&e[0], 4, IBV_WC_SUCCESS);
	expect(&e[0], 5, IBV_WC_SUCCESS);
	for (i = 0; i < 1000 && !got[6]; i++) {
		CHECK_EQ(send_to(&e[0], lost, e[1].qp->qp_num, 6, IBV_SEND_SIGNALED), 0);
		expect(&e[0], 6, IBV_WC_SUCCESS);
		usleep(10000);
		while (ibv_poll_cq(e[1].cq, 1, &wc))
			got[be32toh(wc.imm_data) % 7]++;
	}
	CHECK(got[6] && got[4] <= 1 && got[5] == 1, "got %u %u %u", got[4], got[5], got[6]);
	CHECK_EQ(ibv_destroy_ah(lost), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
}

/* Queue pairs in each state, and a move that is given up with datagrams on their way. */
static void states_and_abort(void)
{
	struct pair_how how = { .type = IBV_QPT_UD };
	enum ibv_qp_state state[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR,
	};
	struct ibv_qp *qp[5], *first;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_ah *ah;
	unsigned int i;

	pair_open(e, &how);
	first = e[0].qp;
	ah = pair_ah(&e[0], &e[1]);
	for (i = 0; i < 5; i++) {
		e[0].qp = qp[i] = end_create_qp(&e[0], &how);
		if (state[i] == IBV_QPS_RESET)
			continue;
		qp_to_init(&e[0], qp[i]);
		CHECK_EQ(post_recv(&e[0], i, 0, 64), 0);
		if (state[i] == IBV_QPS_RTR || state[i] == IBV_QPS_RTS)
			qp_to(qp[i], IBV_QPS_RTR);
		if (state[i] == IBV_QPS_RTS)
			qp_to_rts(qp[i], 1);
		if (state[i] == IBV_QPS_ERR)
			qp_to(qp[i], IBV_QPS_ERR);
	}
	expect(&e[0], 4, IBV_WC_WR_FLUSH_ERR);
	move_away("mock0");
	CHECK_EQ(post_recv(&e[0], 9, 0, 64), 0);	/* of the one in ERR */
	CHECK_EQ(send_to(&e[0], ah, 1, 10, IBV_SEND_SIGNALED), 0);
	move_back("mock0");
	expect(&e[0], 9, IBV_WC_WR_FLUSH_ERR);
	expect(&e[0], 10, IBV_WC_WR_FLUSH_ERR);
	for (i = 0; i < 5; i++) {
		CHECK_EQ(ibv_query_qp(qp[i], &attr, IBV_QP_STATE | IBV_QP_QKEY, &init), 0);
		CHECK_EQ(attr.qp_state, state[i]);
		if (i)
			CHECK_EQ(attr.qkey, QKEY);
		CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
	}

	e[0].qp = first;
	for (i = 0; i < 8; i++)
		CHECK_EQ(post_recv(&e[1], i, 64 * i, 64), 0);
	for (i = 0; i < 4; i++) {
		mock_delay_us(30000);
		CHECK_EQ(fake_check("mock0", NULL), 0);
		CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, i, 0), 0);
		CHECK_EQ(fake_suspend_start("mock0"), 0);
		usleep(10000);
		CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, 100 + i, IBV_SEND_SIGNALED), 0);
		CHECK_EQ(fake_abort(), 0);
		mock_delay_us(0);
		received(&e[1], 2 * i, i);
		received(&e[1], 2 * i + 1, 100 + i);
		expect(&e[0], 100 + i, IBV_WC_SUCCESS);
		expect_none(&e[0], 1);
	}
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * In SQD the owner holds datagrams back. They wait for the device that comes; what was sent before, without
 * a completion, is not sent again, and what comes is received.
 */
static void held_back(bool srq)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_ah *ah, *back;
	unsigned int i, k;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD, .srq = srq });
	ah = pair_ah(&e[0], &e[1]);
	for (i = 0; i < 8; i++)
		CHECK_EQ(post_recv(&e[1], i, 64 * i, 64), 0);
	for (i = 0; i < 4; i++)
		CHECK_EQ(post_recv(&e[0], 20 + i, 1024 + 64 * i, 64), 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, i, 0), 0);
	for (i = 0; i < 3; i++)
		received(&e[1], i, i);
	qp_to(e[0].qp, IBV_QPS_SQD);
	for (; i < 5; i++)
		CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, i, i == 4 ? IBV_SEND_SIGNALED : 0), 0);
	for (k = 0; k < 2; k++) {
		CHECK_EQ(fake_check("mock0", NULL), 0);
		CHECK_EQ(fake_suspend_start("mock0"), 0);
		CHECK_EQ(fake_abort(), 0);
		move_away("mock0");
		CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, i++, IBV_SEND_SIGNALED), 0);
		move_back("mock0");
		CHECK_EQ(ibv_query_qp(e[0].qp, &attr, IBV_QP_STATE, &init), 0);
		CHECK_EQ(attr.qp_state, IBV_QPS_SQD);
		expect_none(&e[1], 20);
		expect_none(&e[0], 0);
	}
	qp_to(e[0].qp, IBV_QPS_RTS);
	for (i = 3; i < 7; i++)
		received(&e[1], i, i);
	for (i = 4; i < 7; i++)
		expect(&e[0], i, IBV_WC_SUCCESS);
	expect_none(&e[1], 5);
	CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, 7, 0), 0);
	back = pair_ah(&e[1], &e[0]);
	CHECK_EQ(send_to(&e[1], back, poll_one(&e[1]).src_qp, 20, 0), 0);
	received(&e[0], 20, 20);
	CHECK_EQ(ibv_destroy_ah(back), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

static void unreliable_connection(void)
{
	unsigned int i, k;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UC });
	for (k = 0; k < 4; k++) {
		for (i = 0; i < 16; i++)
			CHECK_EQ(post_recv(&e[1], i, 64 * i, 64), 0);
		mock_delay_us(1000);
		for (i = 0; i < 8; i++)
			CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND_WITH_IMM, i,
				      i % 2 ? IBV_SEND_SIGNALED : 0, 8192, 8), 0);
		move_away(k % 2 ? "mock0" : "mock1");
		mock_delay_us(0);
		for (; i < 16; i++)
			CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND_WITH_IMM, i,
				      i % 2 ? IBV_SEND_SIGNALED : 0, 8192, 8), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 99, IBV_SEND_SIGNALED, 4096, 8), 0);
		move_back(k % 2 ? "mock0" : "mock1");
		for (i = 0; i < 16; i++) {
			struct ibv_wc wc = expect(&e[1], i, IBV_WC_SUCCESS);

			CHECK_EQ(be32toh(wc.imm_data), i);
			CHECK_EQ(wc.src_qp, e[0].qp->qp_num);
		}
		for (i = 1; i < 16; i += 2)
			expect(&e[0], i, IBV_WC_SUCCESS);
		expect(&e[0], 99, IBV_WC_SUCCESS);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * The owner takes the queue pair to RESET with what a move that was given up has left in it. The next move
 * does not wait for that, and sends nothing twice.
 */
static void reset_between(void)
{
	struct ibv_ah *ah;
	int i;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ah = pair_ah(&e[0], &e[1]);
	mock_stall(true);
	CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, 1, 0), 0);
	CHECK_EQ(fake_check("mock0", NULL), 0);
	CHECK_EQ(fake_suspend_start("mock0"), 0);
	usleep(50000);
	CHECK_EQ(fake_abort(), 0);
	qp_to(e[0].qp, IBV_QPS_RESET);
	mock_stall(false);
	qp_to_init(&e[0], e[0].qp);
	qp_to_rtr(&e[0], e[0].qp, 0, 0);
	qp_to_rts(e[0].qp, 5);
	for (i = 0; i < 2; i++)
		CHECK_EQ(post_recv(&e[1], i, 64 * i, 64), 0);
	CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, 2, 0), 0);
	received(&e[1], 0, 2);
	move_away("mock0");
	move_back("mock0");
	expect_none(&e[1], 20);
	CHECK_EQ(send_to(&e[0], ah, e[1].qp->qp_num, 3, IBV_SEND_SIGNALED), 0);
	expect(&e[0], 3, IBV_WC_SUCCESS);
	received(&e[1], 1, 3);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* One to each of @n numbers from @first on that nobody has. What finds no room in the queue is asked for, too. */
static void send_to_many(struct end *from, struct ibv_ah *ah, uint32_t first, unsigned int n)
{
	struct ibv_wc wc;
	int ret;

	while (n--) {
		ret = send_to(from, ah, first++, 0, 0);
		CHECK(!ret || ret == ENOMEM, "%d", ret);
		if (!(n % 16)) {
			ret = send_to(from, ah, first, 1000, IBV_SEND_SIGNALED);
			CHECK(!ret || ret == ENOMEM, "%d", ret);
		}
		while (ibv_poll_cq(from->cq, 1, &wc))
			CHECK_EQ(wc.wr_id, 1000);
	}
}

static void done_to(uint64_t wr_id)
{
	struct ibv_wc wc;

	do
		wc = poll_one(&e[0]);
	while (wc.wr_id == 1000);
	CHECK_EQ(wc.wr_id, wr_id);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

/* What was sent to the crowd may still fill the queue. */
static void reaches(struct ibv_ah *ah, uint32_t qpn, uint64_t n)
{
	struct ibv_wc wc;
	int ret;

	CHECK_EQ(post_recv(&e[1], n, 0, 64), 0);
	while ((ret = send_to(&e[0], ah, qpn, n, IBV_SEND_SIGNALED)) == ENOMEM)
		while (ibv_poll_cq(e[0].cq, 1, &wc))
			CHECK_EQ(wc.wr_id, 1000);
	CHECK_EQ(ret, 0);
	received(&e[1], n, n);
	done_to(n);
}

static bool is_kept(struct ibv_ah *ibah, uint32_t qpn)
{
	const struct rp_ah *ah = (struct rp_ah *)ibah;
	const struct rp_ah_to *t;

	for (t = *rp_ah_row(ah, qpn); t; t = t->next)
		if (t->qpn == qpn)
			break;
	return t;
}

/*
 * More are sent to than are kept, by two handles: those that were not for long are dropped, and asked for again.
 * Who has moved meanwhile, or before, is found; nothing of the device's is left over.
 */
static void very_many(void)
{
	struct rp_context *ctx;
	uint32_t qpn, first = 0x800000;
	struct ibv_ah *ah, *other;
	unsigned int i;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	ctx = to_rp_context(e[0].ctx);
	ah = pair_ah(&e[0], &e[1]);
	other = pair_ah(&e[0], &e[1]);
	qpn = e[1].qp->qp_num;
	reaches(ah, qpn, 1);
	for (i = 0; i < 3; i++) {
		send_to_many(&e[0], i == 1 ? other : ah, first, KEPT / 2);
		first += KEPT / 2;
		CHECK(i || is_kept(ah, qpn));
		CHECK(ctx->nah_tos <= KEPT, "%u", ctx->nah_tos);
	}
	CHECK_EQ(((struct rp_ah *)ah)->n + ((struct rp_ah *)other)->n, ctx->nah_tos);
	CHECK(!is_kept(ah, qpn));
	CHECK(is_kept(ah, first - 1));
	reaches(ah, qpn, 2);

	/* It moves, and is kept; then it is dropped, with what the device had for where it is. */
	move_away("mock1");
	move_back("mock1");
	CHECK_EQ(fake_settled(), 0);
	reaches(ah, qpn, 3);
	send_to_many(&e[0], other, first, KEPT);
	first += KEPT;
	CHECK(!is_kept(ah, qpn));
	reaches(ah, qpn, 4);
	/* It is dropped, and moves. */
	send_to_many(&e[0], ah, first, KEPT);
	first += KEPT;
	CHECK(!is_kept(ah, qpn));
	move_away("mock1");
	move_back("mock1");
	CHECK_EQ(fake_settled(), 0);
	reaches(ah, qpn, 5);
	CHECK_EQ(ibv_destroy_ah(other), 0);
	CHECK(ctx->nah_tos <= KEPT + 1, "%u", ctx->nah_tos);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ctx->nah_tos, 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* To whom a request waits that the device has not been given, or not taken for good, stays until it has. */
static void very_many_waiting(void)
{
	struct pair_how how = { .type = IBV_QPT_UD };
	uint32_t qpn, first = 0x800000;
	struct ibv_qp *waits, *sends;
	struct rp_context *ctx;
	struct ibv_ah *ah;

	pair_open(e, &how);
	ctx = to_rp_context(e[0].ctx);
	ah = pair_ah(&e[0], &e[1]);
	qpn = e[1].qp->qp_num;
	move_away("mock1");
	move_back("mock1");
	CHECK_EQ(fake_settled(), 0);
	reaches(ah, qpn, 1);
	waits = e[0].qp;
	e[0].qp = sends = end_create_qp(&e[0], &how);
	qp_to_init(&e[0], sends);
	qp_to_rtr(&e[0], sends, 0, 0);
	qp_to_rts(sends, 5);

	/* Away */
	CHECK_EQ(post_recv(&e[1], 2, 0, 64), 0);
	move_away("mock0");
	e[0].qp = waits;
	CHECK_EQ(send_to(&e[0], ah, qpn, 2, IBV_SEND_SIGNALED), 0);
	e[0].qp = sends;
	send_to_many(&e[0], ah, first, KEPT + 100);
	first += KEPT + 100;
	CHECK(is_kept(ah, qpn));
	move_back("mock0");
	received(&e[1], 2, 2);
	done_to(2);
	send_to_many(&e[0], ah, first, 200);
	first += 200;
	CHECK(ctx->nah_tos <= KEPT, "%u", ctx->nah_tos);

	/* In SQD: what the device was given is given to the next one. */
	reaches(ah, qpn, 3);
	qp_to(waits, IBV_QPS_SQD);
	CHECK_EQ(post_recv(&e[1], 4, 0, 64), 0);
	e[0].qp = waits;
	CHECK_EQ(send_to(&e[0], ah, qpn, 4, IBV_SEND_SIGNALED), 0);
	e[0].qp = sends;
	send_to_many(&e[0], ah, first, KEPT + 100);
	first += KEPT + 100;
	CHECK(is_kept(ah, qpn));
	move_away("mock0");
	move_back("mock0");
	expect_none(&e[1], 1);
	qp_to(waits, IBV_QPS_RTS);
	received(&e[1], 4, 4);
	done_to(4);
	send_to_many(&e[0], ah, first, 200);
	CHECK(ctx->nah_tos <= KEPT, "%u", ctx->nah_tos);
	CHECK(!is_kept(ah, qpn));
	e[0].qp = waits;
	CHECK_EQ(ibv_destroy_qp(sends), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	fake_addresses_kept(KEPT);
	very_many();
	very_many_waiting();
	reset_between();
	unicast(false);
	unicast(true);
	to_the_mover(false);
	to_the_mover(true);
	multicast();
	nobody_there();
	states_and_abort();
	held_back(false);
	held_back(true);
	unreliable_connection();
	return 0;
}
