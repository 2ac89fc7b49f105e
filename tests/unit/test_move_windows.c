// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory windows: bound again before the peer goes on, with the key that the peer has; bound,
 * unbound and invalidated from either side, before, in and after moves of either side.
 */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define ACCESS (ALL_ACCESS | IBV_ACCESS_MW_BIND)
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct end e[2];
static bool by_wr;	/* requests of windows of type 2 are made by ibv_wr_*() */

static struct ibv_mw_bind_info info(struct end *end, unsigned int offset, unsigned int len)
{
	return (struct ibv_mw_bind_info){
		.mr = end->mr, .addr = (uintptr_t)end->buf + offset, .length = len,
		.mw_access_flags = REMOTE,
	};
}

static void bind1(struct end *end, struct ibv_mw *mw, unsigned int offset, int flags)
{
	struct ibv_mw_bind b = {
		.wr_id = 700, .send_flags = flags, .bind_info = info(end, offset, 64),
	};
	uint32_t before = mw->rkey;

	CHECK_EQ(ibv_bind_mw(end->qp, mw, &b), 0);
	CHECK_EQ(mw->rkey, ibv_inc_rkey(before));
}

/* What was given may be written over when it is posted. */
static void build2(struct ibv_qp_ex *x, struct ibv_send_wr wr, uint64_t wr_id, int flags)
{
	ibv_wr_start(x);
	x->wr_id = wr_id;
	x->wr_flags = flags;
	switch (wr.opcode) {
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(x, wr.bind_mw.mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(x, wr.invalidate_rkey);
		break;
	default:
		CHECK_EQ(wr.opcode, IBV_WR_SEND_WITH_INV);
		ibv_wr_send_inv(x, wr.invalidate_rkey);
	}
	memset(&wr, 0xff, sizeof(wr));
	CHECK_EQ(ibv_wr_complete(x), 0);
}

static void request2(struct end *end, struct ibv_send_wr wr, uint64_t wr_id, int flags)
{
	struct ibv_send_wr *bad;

	if (by_wr) {
		build2(end->qpx, wr, wr_id, flags);
		return;
	}
	wr.wr_id = wr_id;
	wr.send_flags = flags;
	CHECK_EQ(ibv_post_send(end->qp, &wr, &bad), 0);
}

static void bind2(struct end *end, struct ibv_mw *mw, unsigned int offset, int flags)
{
	mw->rkey = ibv_inc_rkey(mw->rkey);
	request2(end, (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw, .rkey = mw->rkey, .bind_info = info(end, offset, 64) },
	}, 800, flags);
}

static void write_by(struct end *from, struct end *to, uint32_t rkey, unsigned int offset,
		     const char *text, enum ibv_wc_status status)
{
	struct ibv_sge sge = { (uintptr_t)from->buf + 4096, 32, from->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 900, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)to->buf + offset, .rkey = rkey },
	}, *bad;

	snprintf(from->buf + 4096, 32, "%s", text);
	CHECK_EQ(ibv_post_send(from->qp, &wr, &bad), 0);
	expect(from, 900, status);
	if (!status)
		CHECK(!strcmp(to->buf + offset, text), "%s", to->buf + offset);
}

static void move(int k)
{
	move_away(k ? "mock1" : "mock0");
	move_back(k ? "mock1" : "mock0");
}

static void reconnect(void)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++)
		qp_to(e[i].qp, IBV_QPS_RESET);
	while (ibv_poll_cq(e[0].cq, 1, &wc) || ibv_poll_cq(e[1].cq, 1, &wc))
		;
	pair_connect(e);
}

/* e[0] has the windows, e[1] writes; @rarely: binds ask for no completion. */
static void both_types(bool sig_all, int flags)
{
	struct ibv_mw *mw[2];
	char text[32];
	int k, i;

	pair_open(e, &(struct pair_how){ .access = ACCESS, .sig_all = sig_all, .ex_qp = by_wr });
	mw[0] = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	mw[1] = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_2);
	CHECK(mw[0] && mw[1]);
	for (k = 0; k < 6; k++) {
		bind1(&e[0], mw[0], 128, flags);
		bind2(&e[0], mw[1], 256, flags);
		if (sig_all || flags) {
			expect(&e[0], 700, IBV_WC_SUCCESS);
			expect(&e[0], 800, IBV_WC_SUCCESS);
		}
		snprintf(text, sizeof(text), "before %d", k);
		/* Unsignalled ones have been executed when a later one completes. */
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 8), 0);
		expect(&e[0], 1, IBV_WC_SUCCESS);
		for (i = 0; i < 2; i++)
			write_by(&e[1], &e[0], mw[i]->rkey, 128 + 128 * i, text, IBV_WC_SUCCESS);
		move(k % 3 == 2);
		snprintf(text, sizeof(text), "after %d", k);
		for (i = 0; i < 2; i++)
			write_by(&e[1], &e[0], mw[i]->rkey, 128 + 128 * i, text, IBV_WC_SUCCESS);
		request2(&e[0], (struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV,
						      .invalidate_rkey = mw[1]->rkey }, 801,
			 IBV_SEND_SIGNALED);
		expect(&e[0], 801, IBV_WC_SUCCESS);
	}
	/* The invalidated one stays so. */
	move(0);
	write_by(&e[1], &e[0], mw[0]->rkey, 128, "last", IBV_WC_SUCCESS);
	write_by(&e[1], &e[0], mw[1]->rkey, 256, "never", IBV_WC_REM_ACCESS_ERR);
	CHECK(strcmp(e[0].buf + 256, "never"));
	for (i = 0; i < 2; i++)
		CHECK_EQ(ibv_dealloc_mw(mw[i]), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Posted while the device is away: bind, and a write of the peer that may come only after it. */
static void bound_meanwhile(void)
{
	struct ibv_mw *mw[2];
	int k;

	pair_open(e, &(struct pair_how){ .access = ACCESS, .ex_qp = by_wr });
	mw[0] = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	mw[1] = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_2);
	for (k = 0; k < 2; k++) {
		move_away("mock0");
		bind1(&e[0], mw[0], 0, IBV_SEND_SIGNALED);
		bind1(&e[0], mw[0], 128, IBV_SEND_SIGNALED);
		bind2(&e[0], mw[1], 256, IBV_SEND_SIGNALED);
		move_back("mock0");
		expect(&e[0], 700, IBV_WC_SUCCESS);
		expect(&e[0], 700, IBV_WC_SUCCESS);
		expect(&e[0], 800, IBV_WC_SUCCESS);
		write_by(&e[1], &e[0], mw[0]->rkey, 128, "one", IBV_WC_SUCCESS);
		write_by(&e[1], &e[0], mw[1]->rkey, 256, "two", IBV_WC_SUCCESS);
		move("mock1"[4] - '0');
		write_by(&e[1], &e[0], mw[1]->rkey, 256, "three", IBV_WC_SUCCESS);
		request2(&e[0], (struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV,
						      .invalidate_rkey = mw[1]->rkey }, 801, 0);
	}
	/* One that was made after a move is known to the peer, too. */
	CHECK_EQ(ibv_dealloc_mw(mw[0]), 0);
	mw[0] = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	bind1(&e[0], mw[0], 128, IBV_SEND_SIGNALED);
	expect(&e[0], 700, IBV_WC_SUCCESS);
	write_by(&e[1], &e[0], mw[0]->rkey, 128, "new", IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dealloc_mw(mw[0]), 0);
	CHECK_EQ(ibv_dealloc_mw(mw[1]), 0);
	pair_close(e);
}

/* The peer's message invalidates: the key is the application's at both ends. */
static void invalidated_from_afar(bool srq)
{
	struct ibv_mw *mw;
	struct ibv_wc wc;
	int k;

	pair_open(e, &(struct pair_how){ .access = ACCESS, .srq = srq, .ex_qp = by_wr });
	mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_2);
	for (k = 0; k < 3; k++) {
		bind2(&e[0], mw, 256, IBV_SEND_SIGNALED);
		expect(&e[0], 800, IBV_WC_SUCCESS);
		move(0);
		CHECK_EQ(post_recv(&e[0], 5, 0, 64), 0);
		request2(&e[1], (struct ibv_send_wr){ .opcode = IBV_WR_SEND_WITH_INV,
						      .invalidate_rkey = mw->rkey }, 6,
			 IBV_SEND_SIGNALED);
		wc = expect(&e[0], 5, IBV_WC_SUCCESS);
		CHECK(wc.wc_flags & IBV_WC_WITH_INV);
		CHECK_EQ(wc.invalidated_rkey, mw->rkey);
		expect(&e[1], 6, IBV_WC_SUCCESS);
	}
	move(0);
	if (srq) {
		write_by(&e[1], &e[0], mw->rkey, 256, "never", IBV_WC_REM_ACCESS_ERR);
	} else {
		/* A key that the peer was never told is looked at in a message without payload, too. */
		CHECK_EQ(post_recv(&e[0], 5, 0, 64), 0);
		request2(&e[1], (struct ibv_send_wr){ .opcode = IBV_WR_SEND_WITH_INV,
						      .invalidate_rkey = mw->rkey + 0x800 }, 6,
			 IBV_SEND_SIGNALED);
		expect(&e[1], 6, IBV_WC_REM_ACCESS_ERR);
		reconnect();
		write_by(&e[1], &e[0], mw->rkey, 256, "never", IBV_WC_REM_ACCESS_ERR);
		reconnect();
		bind2(&e[0], mw, 256, IBV_SEND_SIGNALED);
		expect(&e[0], 800, IBV_WC_SUCCESS);
		move(0);
		write_by(&e[1], &e[0], mw->rkey, 256, "again", IBV_WC_SUCCESS);
	}
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* More windows than the send queue has room for. */
static void many(void)
{
	struct ibv_mw *mw[100];
	char text[32];
	int i, k;

	pair_open(e, &(struct pair_how){ .access = ACCESS, .send_wr = 8, .ex_qp = by_wr });
	for (i = 0; i < 100; i++) {
		mw[i] = ibv_alloc_mw(e[0].pd, i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		if (i % 2)
			bind1(&e[0], mw[i], 64 * (i % 32), IBV_SEND_SIGNALED);
		else
			bind2(&e[0], mw[i], 64 * (i % 32), IBV_SEND_SIGNALED);
		CHECK_EQ(poll_one(&e[0]).status, IBV_WC_SUCCESS);
	}
	for (k = 0; k < 2; k++) {
		move(0);
		for (i = 0; i < 100; i++) {
			snprintf(text, sizeof(text), "%d %d", k, i);
			write_by(&e[1], &e[0], mw[i]->rkey, 64 * (i % 32), text, IBV_WC_SUCCESS);
		}
	}
	for (i = 0; i < 100; i++)
		CHECK_EQ(ibv_dealloc_mw(mw[i]), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Not bound before the move, and any of three queue pairs may have brought its key to where it was. */
static void never_bound(void)
{
	struct pair_how how = { .access = ACCESS };
	struct ibv_qp *qp[3][2];
	struct ibv_mw *mw;
	int i, k;

	pair_open(e, &how);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 2; k++) {
			if (i)
				e[k].qp = end_create_qp(&e[k], &how);
			qp[i][k] = e[k].qp;
		}
		if (i)
			pair_connect(e);
	}
	mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	for (i = 0; i < 3; i++) {
		move(0);
		bind1(&e[0], mw, 128, IBV_SEND_SIGNALED);
		expect(&e[0], 700, IBV_WC_SUCCESS);
		write_by(&e[1], &e[0], mw->rkey, 128, "bound", IBV_WC_SUCCESS);
		CHECK_EQ(ibv_dealloc_mw(mw), 0);
		mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	}
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	for (i = 1; i < 3; i++)
		for (k = 0; k < 2; k++)
			CHECK_EQ(ibv_destroy_qp(qp[i][k]), 0);
	for (k = 0; k < 2; k++)
		e[k].qp = qp[0][k];
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Moves e[0], the @nth key behind which will be @index: one region and one window are made first. */
static void move_before(uint32_t index, unsigned int nth)
{
	const char *why = NULL;

	move_away("mock0");
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0",
						.first_key = (index - 3 - nth) << 8 }), 0);
	CHECK_EQ(fake_resume("mock0", &why), 0);
	CHECK_EQ(fake_settled(), 0);
}

/* What is made after a move is known by no key that may become another window's, or is a region's. */
static void numbers_of_others(void)
{
	struct ibv_mw *mw, *other;
	struct ibv_mr *mr;
	uint32_t index;

	pair_open(e, &(struct pair_how){ .access = ACCESS });
	mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	bind1(&e[0], mw, 128, IBV_SEND_SIGNALED);
	expect(&e[0], 700, IBV_WC_SUCCESS);
	index = mw->rkey >> 8;

	move_before(index, 0);
	other = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	CHECK(other);
	bind1(&e[0], other, 256, IBV_SEND_SIGNALED);
	expect(&e[0], 700, IBV_WC_SUCCESS);
	write_by(&e[1], &e[0], mw->rkey, 128, "first", IBV_WC_SUCCESS);
	write_by(&e[1], &e[0], other->rkey, 256, "second", IBV_WC_SUCCESS);
	CHECK(mw->rkey >> 8 == index && other->rkey >> 8 != index);
	CHECK_EQ(ibv_dealloc_mw(other), 0);

	move_before(index, 1);
	mr = ibv_reg_mr(e[0].pd, e[0].buf, 4096, ALL_ACCESS);
	CHECK(mr && mr->rkey >> 8 != index);
	write_by(&e[1], &e[0], mw->rkey, 128, "third", IBV_WC_SUCCESS);

	move_before(mr->rkey >> 8, 2);
	other = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_2);
	CHECK(other && other->rkey >> 8 != mr->rkey >> 8);
	CHECK_EQ(ibv_dealloc_mw(other), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	int k;

	alarm(HANGS);
	numbers_of_others();
	for (k = 0; k < 2; k++) {
		by_wr = k;
		both_types(false, IBV_SEND_SIGNALED);
		both_types(false, 0);
		both_types(true, 0);
		bound_meanwhile();
		invalidated_from_afar(false);
		invalidated_from_afar(true);
		many();
	}
	by_wr = false;
	never_bound();
	return 0;
}
