// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Between ibv_start_poll() and ibv_end_poll() a program may use control verbs, which wait while
 * their device is away: neither its move nor a peer's must wait for the session in turn.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static atomic_bool stop;
static atomic_uint sessions;

struct side {
	struct end *e, *to;
};

static void control_verbs(struct end *e, char *buf)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_mr *mr = ibv_reg_mr(e->pd, buf, 4096, ALL_ACCESS);
	struct ibv_qp *qp = end_create_qp(e, &(struct pair_how){ 0 });
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(e->pd, &sa);

	CHECK(mr && srq);
	CHECK_EQ(ibv_req_notify_cq(e->cq, 0), 0);
	CHECK_EQ(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(ibv_modify_qp(e->qp, &(struct ibv_qp_attr){ .min_rnr_timer = 12 },
			       IBV_QP_MIN_RNR_TIMER), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

static void *poller(void *arg)
{
	struct side *s = arg;
	struct ibv_poll_cq_attr a = { 0 };
	char *buf = malloc(4096);
	uint64_t posted = 0, seen = 0;

	CHECK(buf);
	while (!atomic_load(&stop)) {
		while (posted < seen + 8)
			CHECK_EQ(post(s->e, s->to, IBV_WR_RDMA_WRITE, posted++, IBV_SEND_SIGNALED,
				      0, 8), 0);
		if (ibv_start_poll(s->e->cqx, &a) == ENOENT) {
			usleep(100);
			continue;
		}
		do {
			CHECK_EQ(s->e->cqx->status, IBV_WC_SUCCESS);
			CHECK_EQ(s->e->cqx->wr_id, seen++);
			control_verbs(s->e, buf);
			CHECK_EQ(ibv_wc_read_opcode(s->e->cqx), IBV_WC_RDMA_WRITE);
			CHECK_EQ(ibv_wc_read_qp_num(s->e->cqx), s->e->qp->qp_num);
		} while (!ibv_next_poll(s->e->cqx));
		ibv_end_poll(s->e->cqx);
		atomic_fetch_add(&sessions, 1);
	}
	while (seen < posted)
		CHECK_EQ(poll_one(s->e).wr_id, seen++);
	free(buf);
	return NULL;
}

int main(void)
{
	pthread_t thread[2];
	struct side side[2];
	struct end e[2];
	unsigned int i, before;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ .ex_cq = true, .events = true });
	for (i = 0; i < 2; i++) {
		side[i] = (struct side){ &e[i], &e[!i] };
		CHECK_EQ(pthread_create(&thread[i], NULL, poller, &side[i]), 0);
	}
	for (i = 0; i < TIMES(30); i++) {
		before = atomic_load(&sessions);
		move_away("mock0");
		move_back("mock0");
		while (atomic_load(&sessions) < before + 5)
			usleep(1000);
	}
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
