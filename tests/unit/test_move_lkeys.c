// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * After a move other threads register and deregister memory, so that the table of local keys is used up and copied,
 * while one advises on a region that stays, posts to a work queue, or tries to deregister a region that windows are bound to.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define PARTS 64	/* of the region, advised on at once */

static struct end e[2];
static atomic_bool stop;

static void *registers(void *arg)
{
	char *buf = calloc(1, 4096);

	(void)arg;
	CHECK(buf);
	while (!atomic_load(&stop)) {
		struct ibv_mr *mr = ibv_reg_mr(e[0].pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE);

		CHECK(mr, "%s", strerror(errno));
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	free(buf);
	return NULL;
}

static void while_others_register(void (*fn)(void))
{
	pthread_t thread;

	atomic_store(&stop, false);
	CHECK_EQ(pthread_create(&thread, NULL, registers, NULL), 0);
	fn();
	atomic_store(&stop, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void advised(void)
{
	struct ibv_sge sge[PARTS];
	int i;

	for (i = 0; i < PARTS; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)e[0].buf + 8 * i, 8, e[0].mr->lkey };
	for (i = 0; i < TIMES(80000); i++)
		CHECK_EQ(ibv_advise_mr(e[0].pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, PARTS), 0);
	sge[PARTS - 1].lkey = 0xfffffe;
	CHECK_EQ(ibv_advise_mr(e[0].pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, PARTS), EINVAL);
}

/* Full after the first: what is not taken has been looked through nevertheless. */
static void work_queue(void)
{
	struct ibv_wq_init_attr a = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = e[0].pd, .cq = e[0].cq,
	};
	struct ibv_sge sge = { (uintptr_t)e[0].buf, 8, e[0].mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wq *wq = ibv_create_wq(e[0].ctx, &a);
	int i;

	CHECK(wq, "%s", strerror(errno));
	for (i = 0; i < TIMES(200000); i++)
		CHECK_EQ(ibv_post_wq_recv(wq, &wr, &bad), i ? ENOMEM : 0);
	CHECK_EQ(ibv_destroy_wq(wq), 0);
}

/* It stays, and so does its key. */
static void windows_bound(void)
{
	struct ibv_mr *mr = ibv_reg_mr(e[0].pd, e[0].buf, 4096, ALL_ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind b = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_sge sge;
	int i;

	CHECK(mr && mw);
	b.bind_info = (struct ibv_mw_bind_info){
		.mr = mr, .addr = (uintptr_t)e[0].buf, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	CHECK_EQ(ibv_bind_mw(e[0].qp, mw, &b), 0);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	sge = (struct ibv_sge){ (uintptr_t)e[0].buf, 8, mr->lkey };
	for (i = 0; i < TIMES(20000); i++) {
		CHECK_EQ(ibv_dereg_mr(mr), EBUSY);
		CHECK_EQ(ibv_advise_mr(e[0].pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), 0);
	}
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	move_away("mock0");
	move_back("mock0");
	while_others_register(advised);
	while_others_register(work_queue);
	while_others_register(windows_bound);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
