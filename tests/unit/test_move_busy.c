// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sixteen threads register and deregister memory, and windows, without a rest: at no moment none of them is inside of a
 * verb. A move finds its moment all the same, and one that is given up lets them go on.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define THREADS 16

static struct end e[2];
static atomic_bool stop;
static atomic_uint made[THREADS];

static void *registers(void *arg)
{
	atomic_uint *mine = arg;
	char *buf = calloc(1, 4096);

	CHECK(buf);
	while (!atomic_load(&stop)) {
		struct ibv_mr *mr = ibv_reg_mr(e[0].pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE);
		struct ibv_mw *mw;

		CHECK(mr, "%s", strerror(errno));
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
		CHECK(mw, "%s", strerror(errno));
		CHECK_EQ(ibv_dealloc_mw(mw), 0);
		atomic_fetch_add(mine, 1);
	}
	free(buf);
	return NULL;
}

static void all_go_on(void)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		unsigned int before = atomic_load(&made[i]);

		while (atomic_load(&made[i]) < before + 2)
			usleep(1000);
	}
}

int main(void)
{
	pthread_t thread[THREADS];
	int i;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, registers, &made[i]), 0);
	for (i = 0; i < 5; i++) {
		all_go_on();
		CHECK_EQ(fake_check("mock0", NULL), 0);
		fake_suspend_start("mock0");
		CHECK_EQ(fake_abort(), 0);
		all_go_on();
		move_away("mock0");
		move_back("mock0");
	}
	all_go_on();
	atomic_store(&stop, true);
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
