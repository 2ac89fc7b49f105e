// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * More regions than one message carries the keys of: what the peer uses is known to it before it is
 * used, in whatever order the messages come. Also those that get remote rights later.
 */
#include "../../include/repath_peer.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define REGIONS 5000

static void written(struct end e[2], struct ibv_mr *mr, enum ibv_wc_status status)
{
	struct ibv_mr *whole = e[0].mr;

	e[0].mr = mr;
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 5, IBV_SEND_SIGNALED, 0, 8), 0);
	e[0].mr = whole;
	expect(&e[1], 5, status);
}

/* A region that gets remote rights after a move, when it was made without, and keeps its key. */
static void rights_later(void)
{
	struct ibv_mr *mr, *old;
	struct end e[2];

	pair_open(e, &(struct pair_how){ 0 });
	old = ibv_reg_mr(e[0].pd, e[0].buf, 8, IBV_ACCESS_LOCAL_WRITE);
	move_away("mock0");
	move_back("mock0");
	mr = ibv_reg_mr(e[0].pd, e[0].buf, 8, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr && old);
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS), 0);
	written(e, mr, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_rereg_mr(old, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS), 0);
	written(e, old, IBV_WC_SUCCESS);
	move_away("mock0");
	move_back("mock0");
	written(e, mr, IBV_WC_SUCCESS);
	written(e, old, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	written(e, mr, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dereg_mr(old), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * After a move a region goes to another protection domain, and to other memory, for which the device has other keys:
 * it is known by those that it has, to its owner and to the peer, also after the next move.
 */
static void reregistered(void)
{
	struct ibv_send_wr wr = {
		.wr_id = 6, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	char *memory[2] = { calloc(1, 4096), calloc(1, 4096) };
	uint32_t lkey, rkey;
	struct ibv_sge sge;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct end e[2];
	int k, at;

	CHECK(memory[0] && memory[1]);
	pair_open(e, &(struct pair_how){ 0 });
	pd = ibv_alloc_pd(e[0].ctx);
	mr = ibv_reg_mr(pd, memory[0], 4096, ALL_ACCESS);
	CHECK(mr);
	lkey = mr->lkey;
	rkey = mr->rkey;
	move_away("mock0");
	move_back("mock0");
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, e[0].pd, NULL, 0, 0), 0);
	for (k = 0; k < 4; k++) {
		at = k / 2;
		if (k == 2)
			CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory[1], 4096, 0), 0);
		CHECK(mr->lkey == lkey && mr->rkey == rkey && mr->addr == memory[at]);
		/* The peer writes to it, and it is written to the peer. */
		snprintf(e[1].buf, 32, "round %d", k);
		sge = (struct ibv_sge){ (uintptr_t)e[1].buf, 32, e[1].mr->lkey };
		wr.sg_list = &sge;
		wr.wr.rdma.remote_addr = (uintptr_t)memory[at] + 64;
		wr.wr.rdma.rkey = rkey;
		CHECK_EQ(ibv_post_send(e[1].qp, &wr, &bad), 0);
		expect(&e[1], 6, IBV_WC_SUCCESS);
		sge = (struct ibv_sge){ (uintptr_t)memory[at] + 64, 32, lkey };
		wr.wr.rdma.remote_addr = (uintptr_t)e[1].buf + 64;
		wr.wr.rdma.rkey = e[1].mr->rkey;
		CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), 0);
		expect(&e[0], 6, IBV_WC_SUCCESS);
		CHECK(!strcmp(e[1].buf + 64, e[1].buf), "%s", e[1].buf + 64);
		CHECK_EQ(ibv_dealloc_pd(pd), 0);	/* nothing is in it */
		pd = ibv_alloc_pd(e[0].ctx);
		move_away("mock0");
		move_back("mock0");
	}
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	pair_close(e);
	free(memory[0]);
	free(memory[1]);
	CHECK_EQ(mock_live_total(), 0);
}

static void new_region(struct end e[2])
{
	struct ibv_mr *mr = ibv_reg_mr(e[0].pd, e[0].buf, 8, ALL_ACCESS);

	CHECK(mr);
	written(e, mr, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

/* Whatever the list of connections is read for, and whoever has another number: a new key is told to who may use it. */
static void new_keys(void)
{
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 2; i++) {
		move_away("mock0");
		/* As it is for a move of another device of the process. */
		fake_look();
		move_back("mock0");
		new_region(e);
		/* The peer's module was loaded anew, and says nothing by itself. */
		fake_renumber();
		new_region(e);
		new_region(e);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* A peer has not answered what it was told of a new key when the next move begins, of which it is told all. */
static void unanswered(void)
{
	struct ibv_mr *mr;
	struct end e[2];

	pair_open(e, &(struct pair_how){ 0 });
	move_away("mock0");
	move_back("mock0");
	fake_faults_set(&(struct fake_faults){ .slow = REPATH_MSG_KEYS, .slow_us = 25000000 });
	mr = ibv_reg_mr(e[0].pd, e[0].buf, 8, ALL_ACCESS);
	CHECK(mr);
	move_away("mock0");
	move_back("mock0");
	written(e, mr, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * What was known to be in no table was so of the table of then: a request whose key that table got late is still
 * before the device when the next move comes, whose table gets it late, too.
 */
static void late_twice(void)
{
	static struct ibv_mr *mr[REGIONS];
	struct ibv_mr *whole;
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < REGIONS; i++) {
		mr[i] = ibv_reg_mr(e[0].pd, e[0].buf + i % 1024 * 8, 8, ALL_ACCESS);
		CHECK(mr[i]);
	}
	/* That there is no more is heard when there is. */
	fake_faults_set(&(struct fake_faults){ .slow = REPATH_MSG_KEYS, .slow_us = 100000 });
	move_away("mock0");
	whole = e[0].mr;
	for (i = 0; i < 3; i++) {
		/* Behind one that waits for a receive. */
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 1, IBV_SEND_SIGNALED, 0, 8), 0);
		e[0].mr = mr[REGIONS - 1 - i];
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 2, IBV_SEND_SIGNALED, (REGIONS - 1 - i) % 1024 * 8, 8), 0);
		e[0].mr = whole;
		move_back("mock0");
		usleep(400000);
		move_away("mock0");
		move_back("mock0");
		CHECK_EQ(post_recv(&e[0], 3, 64, 64), 0);
		expect(&e[1], 1, IBV_WC_SUCCESS);
		expect(&e[0], 3, IBV_WC_SUCCESS);
		expect(&e[1], 2, IBV_WC_SUCCESS);
		move_away("mock0");
	}
	move_back("mock0");
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	for (i = 0; i < REGIONS; i++)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	static struct ibv_mr *mr[REGIONS];
	struct end e[2];
	int i, round;

	alarm(HANGS);
	rights_later();
	reregistered();
	new_keys();
	unanswered();
	late_twice();
	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < REGIONS; i++) {
		mr[i] = ibv_reg_mr(e[0].pd, e[0].buf + i % 1024 * 8, 8, ALL_ACCESS);
		CHECK(mr[i]);
	}
	for (round = 0; round < TIMES(8); round++) {
		struct fake_faults f = { .seed = round, .late_us = 20000, .twice = 20,
					 .lost = round % 2 ? 60 : 0 };
		const char *dev = round % 4 == 3 ? "mock1" : "mock0";

		if (round % 3 == 0) {
			f.slow = REPATH_MSG_KEYS;
			f.slow_us = 200000;
		}
		fake_faults_set(&f);
		move_away(dev);
		/* Kept, to be replayed with the new keys, from the last to the first */
		for (i = 0; i < 32; i++) {
			int r = REGIONS - 1 - i * (REGIONS / 32);
			struct ibv_mr *whole = e[0].mr;

			e[0].mr = mr[r];
			CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED,
				      r % 1024 * 8, 8), 0);
			e[0].mr = whole;
		}
		move_back(dev);
		for (i = 0; i < 32; i++)
			expect(&e[1], i, IBV_WC_SUCCESS);
	}
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	fake_late_keys(e[1].qp->qp_num);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 32, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[1], 32, IBV_WC_SUCCESS);
	for (i = 0; i < REGIONS; i++)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
