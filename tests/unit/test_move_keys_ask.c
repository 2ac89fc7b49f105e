// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A request with a key that is in no table waits until the owner of the table has said how far that goes. That comes
 * to an end, however fast the table grows, and whoever does not know the question.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../../include/repath_peer.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define CHURNERS	4
#define REGIONS		1000
#define SLOW_US		600000	/* a table is longer under way than the next question waits */

static atomic_bool over;
static atomic_uint churned;

/* Who makes a key waits for the peer to hear of it; who takes one back does not. */
static void *take_back(void *arg)
{
	unsigned int i;

	for (i = 0; i < REGIONS; i++) {
		CHECK_EQ(ibv_dereg_mr(((struct ibv_mr **)arg)[i]), 0);
		if (!atomic_load(&over))
			usleep(10000);
	}
	return NULL;
}

static void *churn(void *arg)
{
	struct end *e = arg;

	while (!atomic_load(&over)) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf, 8, ALL_ACCESS);

		CHECK(mr);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		atomic_fetch_add(&churned, 1);
	}
	return NULL;
}

static void fails(struct end e[2])
{
	struct ibv_mr wrong = *e[0].mr;

	wrong.rkey ^= 0x5a000000;
	write_by_mr(e, e[0].mr, 1);
	write_by_mr(e, &wrong, 2);
	write_by_mr(e, e[0].mr, 3);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	expect(&e[1], 2, IBV_WC_REM_ACCESS_ERR);
	expect(&e[1], 3, IBV_WC_WR_FLUSH_ERR);
}

/* The owner makes keys and takes them back all the time: there is always more on its way. */
static void grows(unsigned int slow_us)
{
	struct ibv_mr *mr[REGIONS];
	pthread_t thread[CHURNERS], taker;
	struct end e[2];
	unsigned int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < REGIONS; i++) {
		mr[i] = ibv_reg_mr(e[0].pd, e[0].buf, 8, ALL_ACCESS);
		CHECK(mr[i]);
	}
	move_away("mock0");
	move_back("mock0");
	fake_faults_set(&(struct fake_faults){ .seed = 1, .slow = slow_us ? REPATH_MSG_KEYS : 0, .slow_us = slow_us });
	atomic_store(&over, false);
	atomic_store(&churned, 0);
	for (i = 0; i < CHURNERS; i++)
		CHECK(!pthread_create(&thread[i], NULL, churn, &e[0]));
	CHECK(!pthread_create(&taker, NULL, take_back, mr));
	while (atomic_load(&churned) < CHURNERS)
		usleep(1000);
	fails(e);
	atomic_store(&over, true);
	for (i = 0; i < CHURNERS; i++)
		pthread_join(thread[i], NULL);
	pthread_join(taker, NULL);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* It answers that it has understood no table, and what it has told before counts. */
static void is_not_known(void)
{
	struct end e[2];

	pair_open(e, &(struct pair_how){ 0 });
	move_away("mock0");
	move_back("mock0");
	fake_faults_set(&(struct fake_faults){ .seed = 1, .old_keys = true });
	fails(e);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	is_not_known();
	grows(0);
	grows(SLOW_US);
	return 0;
}
