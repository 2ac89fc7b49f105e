// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that unmaps memory before it deregisters it, as caches of registrations do, is moved with
 * all that it has; the dead key leads nowhere, neither here nor from afar, through two moves.
 */
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define BYTES 8192

int main(void)
{
	struct ibv_mr *dead, *half, *alive;
	struct ibv_sge sge = { .length = 8 };
	struct ibv_send_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct end e[2];
	char *memory;

	alarm(60);
	pair_open(e, &(struct pair_how){ 0 });
	memory = mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	dead = ibv_reg_mr(e[0].pd, memory, BYTES, ALL_ACCESS);
	half = ibv_reg_mr(e[0].pd, memory + BYTES, BYTES, ALL_ACCESS);
	alive = ibv_reg_mr(e[0].pd, memory + 2 * BYTES, BYTES, ALL_ACCESS);
	CHECK(dead && half && alive);
	CHECK_EQ(munmap(memory, BYTES + BYTES / 2), 0);
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
	munmap(memory + BYTES + BYTES / 2, BYTES + BYTES / 2);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
