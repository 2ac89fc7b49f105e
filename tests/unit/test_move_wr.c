// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests whose data lie in them, made by ibv_wr_*() and by ibv_post_send(), before, in and after moves of
 * either side: an atomic write's eight bytes, the header of TSO. Their owner writes over what he gave as soon
 * as they are posted. Datagrams by ibv_wr_set_ud_addr(). (Windows: test_move_windows.)
 */
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define MSS	48
#define HEADER	64
#define AT	8192	/* of the far buffer, and of what is sent */

static struct end e[2];

static const char *mover(unsigned int k)
{
	return k % 2 ? "mock1" : "mock0";
}

/* --- atomic write --- */

static void add_atomic_write(uint64_t wr_id, uint64_t value, unsigned int offset, uint32_t rkey)
{
	struct ibv_qp_ex *x = e[0].qpx;

	x->wr_id = wr_id;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(x, rkey, (uintptr_t)e[1].buf + offset, &value);
	value = ~0ull;
}

static void atomic_write(uint64_t wr_id, uint64_t value)
{
	ibv_wr_start(e[0].qpx);
	add_atomic_write(wr_id, value, AT, e[1].mr->rkey);
	CHECK_EQ(ibv_wr_complete(e[0].qpx), 0);
}

static void written(uint64_t wr_id, uint64_t value)
{
	struct ibv_wc wc = expect(&e[0], wr_id, IBV_WC_SUCCESS);

	CHECK_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
	CHECK_EQ(*(uint64_t *)(e[1].buf + AT), value);
}

/* Between others, more of them than are translated at once; they keep their places. */
static void in_a_list(uint64_t first)
{
	struct ibv_qp_ex *x = e[0].qpx;
	unsigned int i;

	ibv_wr_start(x);
	for (i = 0; i < 40; i++) {
		if (i % 4) {
			add_atomic_write(first + i, first + i, AT + 8 * i, e[1].mr->rkey);
			continue;
		}
		*(uint64_t *)(e[0].buf + 8 * i) = first + i;
		x->wr_id = first + i;
		x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(x, e[1].mr->rkey, (uintptr_t)e[1].buf + AT + 8 * i);
		ibv_wr_set_sge(x, e[0].mr->lkey, (uintptr_t)e[0].buf + 8 * i, 8);
	}
	CHECK_EQ(ibv_wr_complete(x), 0);
}

static void list_written(uint64_t first)
{
	unsigned int i;

	for (i = 0; i < 40; i++)
		expect(&e[0], first + i, IBV_WC_SUCCESS);
	for (i = 0; i < 40; i++)
		CHECK_EQ(*(uint64_t *)(e[1].buf + AT + 8 * i), first + i);
}

static void atomic_writes(bool no_inline)
{
	unsigned int k;

	pair_open(e, &(struct pair_how){ .ex_qp = true, .no_inline = no_inline });
	atomic_write(1, 11);
	written(1, 11);
	for (k = 0; k < 4; k++) {
		/* On its way when the move begins. */
		mock_delay_us(2000);
		atomic_write(2, 20 + k);
		move_away(mover(k));
		mock_delay_us(0);
		written(2, 20 + k);
		atomic_write(3, 30 + k);
		expect_none(&e[0], 1);
		move_back(mover(k));
		written(3, 30 + k);
		atomic_write(4, 40 + k);
		written(4, 40 + k);
		move_away(mover(k));
		in_a_list(1000 * k + 100);
		move_back(mover(k));
		list_written(1000 * k + 100);
		in_a_list(1000 * k + 200);
		list_written(1000 * k + 200);
	}
	/* The device's refusal is the batch's. */
	mock_fail("post_send", EIO, 0, 1);
	ibv_wr_start(e[0].qpx);
	add_atomic_write(5, 5, AT, e[1].mr->rkey);
	CHECK_EQ(ibv_wr_complete(e[0].qpx), EIO);
	atomic_write(6, 66);
	written(6, 66);
	/* A key that nobody has. */
	ibv_wr_start(e[0].qpx);
	add_atomic_write(7, 77, AT, e[1].mr->rkey + 0x100000);
	CHECK_EQ(ibv_wr_complete(e[0].qpx), 0);
	expect(&e[0], 7, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(*(uint64_t *)(e[1].buf + AT), 66);
	/* What comes behind it is flushed. */
	atomic_write(8, 88);
	expect(&e[0], 8, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 9, 0, 0, 8), 0);
	expect(&e[0], 9, IBV_WC_WR_FLUSH_ERR);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Posted as a list: inline data goes the same way, where the queue pair has it; all else is as the device says. */
static void posted_atomic_write(bool ex_qp)
{
	uint64_t value[2] = { 5, 0 };
	struct ibv_sge sge = { (uintptr_t)value, 8, 0 };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_WRITE,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
	}, *bad = NULL;

	pair_open(e, &(struct pair_how){ .ex_qp = ex_qp, .no_inline = true });
	wr.wr.rdma.remote_addr = (uintptr_t)e[1].buf + AT;
	wr.wr.rdma.rkey = e[1].mr->rkey;
	if (ex_qp) {
		move_away("mock1");
		CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), 0);
		value[0] = 6;
		move_back("mock1");
		written(1, 5);
	} else {
		CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), EINVAL);
		CHECK(bad == &wr);
	}
	sge.length = 16;
	CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), EINVAL);
	sge.length = 4;
	CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), EINVAL);
	sge = (struct ibv_sge){ (uintptr_t)e[0].buf, 8, e[0].mr->lkey };
	wr.send_flags = IBV_SEND_SIGNALED;
	CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), EINVAL);
	expect_none(&e[0], 1);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 2, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[0], 2, IBV_WC_SUCCESS);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* --- datagrams --- */

static struct ibv_ah *ah;

static void header_of(char *header, unsigned int n)
{
	memset(header, n, HEADER);
	snprintf(header, HEADER, "header %u", n);
}

/* @by_wr: by ibv_wr_*() */
static void tso(bool by_wr, unsigned int n, unsigned int bytes)
{
	struct ibv_sge sge = { (uintptr_t)e[0].buf + AT, bytes, e[0].mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_TSO,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_qp_ex *x = e[0].qpx;
	char header[HEADER];

	header_of(header, n);
	if (by_wr) {
		ibv_wr_start(x);
		x->wr_id = n;
		x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send_tso(x, header, sizeof(header), MSS);
		memset(header, 'x', sizeof(header));
		ibv_wr_set_ud_addr(x, ah, e[1].qp->qp_num, QKEY);
		ibv_wr_set_sge(x, sge.lkey, sge.addr, sge.length);
		CHECK_EQ(ibv_wr_complete(x), 0);
		return;
	}
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = e[1].qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	wr.tso.hdr = header;
	wr.tso.hdr_sz = sizeof(header);
	wr.tso.mss = MSS;
	CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), 0);
	memset(header, 'x', sizeof(header));
}

static void receives(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		CHECK_EQ(post_recv(&e[1], i, 512 * i, 512), 0);
}

/* @at: receives before those of its pieces */
static unsigned int tso_came(unsigned int at, unsigned int n, unsigned int bytes)
{
	char header[HEADER];
	unsigned int done, part;

	header_of(header, n);
	for (done = 0; done < bytes; done += part, at++) {
		const char *got = e[1].buf + 512 * at + 40;
		struct ibv_wc wc = expect(&e[1], at, IBV_WC_SUCCESS);

		part = bytes - done < MSS ? bytes - done : MSS;
		CHECK_EQ(wc.byte_len, 40 + HEADER + part);
		CHECK(!memcmp(got, header, HEADER), "%.64s", got);
		CHECK(!memcmp(got + HEADER, e[0].buf + AT + done, part));
	}
	return at;
}

static void datagram(unsigned int n)
{
	char text[] = "inline 0";
	struct ibv_qp_ex *x = e[0].qpx;

	text[7] = '0' + n % 10;
	ibv_wr_start(x);
	x->wr_id = n;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(x, htobe32(n));
	ibv_wr_set_ud_addr(x, ah, e[1].qp->qp_num, QKEY);
	ibv_wr_set_inline_data(x, text, sizeof(text));
	memset(text, 'x', sizeof(text));
	CHECK_EQ(ibv_wr_complete(x), 0);
}

static unsigned int datagram_came(unsigned int at, unsigned int n)
{
	struct ibv_wc wc = expect(&e[1], at, IBV_WC_SUCCESS);
	char text[] = "inline 0";

	text[7] = '0' + n % 10;
	CHECK_EQ(be32toh(wc.imm_data), n);
	CHECK_EQ(wc.byte_len, 40 + sizeof(text));
	CHECK(!memcmp(e[1].buf + 512 * at + 40, text, sizeof(text)));
	return at + 1;
}

static void one_of_each(unsigned int n)
{
	datagram(n);
	tso(true, n + 1, 100);
	tso(false, n + 2, 48);
}

static void each_came(unsigned int n)
{
	unsigned int at = 0;
	struct ibv_wc wc;

	at = datagram_came(at, n);
	at = tso_came(at, n + 1, 100);
	at = tso_came(at, n + 2, 48);
	CHECK_EQ(at, 5);
	expect(&e[0], n, IBV_WC_SUCCESS);
	wc = expect(&e[0], n + 1, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_TSO);
	expect(&e[0], n + 2, IBV_WC_SUCCESS);
}

/* More than a batch has room for at first. */
static void many_in_a_batch(void)
{
	struct ibv_qp_ex *x = e[0].qpx;
	char header[HEADER];
	unsigned int i, at = 0;

	receives(40);
	ibv_wr_start(x);
	for (i = 0; i < 40; i++) {
		header_of(header, i);
		x->wr_id = i;
		x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send_tso(x, header, sizeof(header), MSS);
		ibv_wr_set_ud_addr(x, ah, e[1].qp->qp_num, QKEY);
		ibv_wr_set_sge(x, e[0].mr->lkey, (uintptr_t)e[0].buf + AT, MSS);
	}
	CHECK_EQ(ibv_wr_complete(x), 0);
	for (i = 0; i < 40; i++) {
		expect(&e[0], i, IBV_WC_SUCCESS);
		at = tso_came(at, i, MSS);
	}
}

/* Longer than was asked for: nothing of the batch is sent. */
static void too_long(void)
{
	char header[HEADER + 1] = "long";
	struct ibv_qp_ex *x = e[0].qpx;
	struct ibv_sge sge = { (uintptr_t)e[0].buf + AT, 8, e[0].mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_TSO, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { ah, e[1].qp->qp_num, QKEY },
		.tso = { .hdr = header, .hdr_sz = sizeof(header), .mss = MSS },
	}, *bad = NULL;

	ibv_wr_start(x);
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_tso(x, header, HEADER, MSS);
	ibv_wr_set_ud_addr(x, ah, e[1].qp->qp_num, QKEY);
	ibv_wr_set_sge(x, sge.lkey, sge.addr, sge.length);
	ibv_wr_send_tso(x, header, HEADER + 1, MSS);
	ibv_wr_set_ud_addr(x, ah, e[1].qp->qp_num, QKEY);
	ibv_wr_set_sge(x, sge.lkey, sge.addr, sge.length);
	CHECK_EQ(ibv_wr_complete(x), EINVAL);
	CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	expect_none(&e[0], 1);
}

static void datagrams(void)
{
	unsigned int i, k;

	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD, .ex_qp = true, .tso_header = HEADER });
	ah = pair_ah(&e[0], &e[1]);
	for (i = 0; i < 1024; i++)
		e[0].buf[AT + i] = i * 7;
	receives(5);
	one_of_each(1);
	each_came(1);
	many_in_a_batch();
	for (k = 0; k < 4; k++) {
		receives(5);
		if (k % 2) {
			/* Where it is sent to has another number and other keys. */
			move_away("mock1");
			move_back("mock1");
			one_of_each(10 * k);
			each_came(10 * k);
			continue;
		}
		move_away("mock0");
		one_of_each(10 * k);
		expect_none(&e[1], 1);
		move_back("mock0");
		each_came(10 * k);
		many_in_a_batch();
	}
	too_long();
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

int main(void)
{
	alarm(HANGS);
	atomic_writes(true);
	atomic_writes(false);
	posted_atomic_write(true);
	posted_atomic_write(false);
	datagrams();
	return 0;
}
