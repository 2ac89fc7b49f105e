// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that unmaps memory before it deregisters it, or takes its rights away, as caches of registrations
 * and allocators do, is moved with all that it has; the dead key leads nowhere, neither here nor from afar,
 * through two moves. So is one that deregisters memory which receives name that it has posted.
 */
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define BYTES 8192

static void gone(bool unmap)
{
	struct ibv_mr *dead, *half, *alive;
	struct ibv_sge sge = { .length = 8 };
	struct ibv_send_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct end e[2];
	char *memory;

	pair_open(e, &(struct pair_how){ 0 });
	memory = mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	dead = ibv_reg_mr(e[0].pd, memory, BYTES, ALL_ACCESS);
	half = ibv_reg_mr(e[0].pd, memory + BYTES, BYTES, ALL_ACCESS);
	alive = ibv_reg_mr(e[0].pd, memory + 2 * BYTES, BYTES, ALL_ACCESS);
	CHECK(dead && half && alive);
	if (unmap)
		CHECK_EQ(munmap(memory, BYTES + BYTES / 2), 0);
	else
		CHECK_EQ(mprotect(memory, BYTES + BYTES / 2, PROT_NONE), 0);
	for (int i = 0; i < 2; i++) {
		move_away("mock0");
		move_back("mock0");
		/* What is there still works, */
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 3, IBV_SEND_SIGNALED, 0, 64), 0);
		expect(&e[1], 3, IBV_WC_SUCCESS);
		memset(e[1].buf, 0x5a + i, 8);
		sge.addr = (uintptr_t)e[1].buf;
		sge.lkey = e[1].mr->lkey;
		wr.wr.rdma.remote_addr = (uintptr_t)memory + 2 * BYTES;
		wr.wr.rdma.rkey = alive->rkey;
		CHECK_EQ(ibv_post_send(e[1].qp, &wr, &bad), 0);
		expect(&e[1], 7, IBV_WC_SUCCESS);
		CHECK_EQ(memory[2 * BYTES], 0x5a + i);
	}
	/* what is not fails as with a key that has no right, */
	wr.wr.rdma.remote_addr = (uintptr_t)memory + BYTES + BYTES / 2;
	wr.wr.rdma.rkey = half->rkey;
	CHECK_EQ(ibv_post_send(e[1].qp, &wr, &bad), 0);
	expect(&e[1], 7, IBV_WC_REM_ACCESS_ERR);
	/* and is deregistered as ever. */
	CHECK_EQ(ibv_dereg_mr(dead), 0);
	CHECK_EQ(ibv_dereg_mr(half), 0);
	CHECK_EQ(ibv_dereg_mr(alive), 0);
	munmap(memory, 3 * BYTES);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void recv_on(struct ibv_qp *qp, struct end *e, uint64_t wr_id, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + 4096, 64, lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK_EQ(ibv_post_recv(qp, &wr, &bad), 0);
}

/* Of a queue pair that is connected, of one that is not yet, and of one of UD. */
static void posted(const char *dev)
{
	struct ibv_qp *idle, *ud;
	struct ibv_mr *mr;
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	idle = end_create_qp(&e[0], &(struct pair_how){ 0 });
	ud = end_create_qp(&e[0], &(struct pair_how){ .type = IBV_QPT_UD });
	qp_to_init(&e[0], idle);
	qp_to_init(&e[0], ud);
	qp_to_rtr(&e[0], ud, 0, 0);
	mr = ibv_reg_mr(e[0].pd, e[0].buf + 4096, 64, ALL_ACCESS);
	CHECK(mr);
	recv_on(e[0].qp, &e[0], 1, e[0].mr->lkey);
	recv_on(e[0].qp, &e[0], 2, mr->lkey);
	recv_on(idle, &e[0], 3, mr->lkey);
	recv_on(ud, &e[0], 4, mr->lkey);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	for (i = 0; i < 2; i++) {
		move_away(dev);
		move_back(dev);
	}
	/* What uses it fails then, as it would have without a move. */
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 5, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	expect(&e[1], 5, IBV_WC_SUCCESS);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, 6, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[0], 2, IBV_WC_LOC_PROT_ERR);
	expect(&e[1], 6, IBV_WC_REM_INV_REQ_ERR);
	CHECK_EQ(ibv_destroy_qp(idle), 0);
	CHECK_EQ(ibv_destroy_qp(ud), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	posted("mock0");
	posted("mock1");
	gone(true);
	gone(false);
	return 0;
}
