// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program forks while its device is away. In the child, that device does not come back: verbs on what it has
 * inherited say so, and do not wait for the thread that would bring it, which it does not have. What is on another
 * device is as without us, also the other end of a connection that is moved; and it can use verbs of its own.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static _Atomic bool inside;

/* One of the parent's waits for the device at that moment. */
static void *waits(void *arg)
{
	struct end *e = arg;
	struct ibv_mr *mr;

	inside = true;
	mr = ibv_reg_mr(e->pd, e->buf, 8, ALL_ACCESS);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	return NULL;
}

/* Nothing is there. */
static void on_the_device(struct end *e)
{
	struct ibv_qp_init_attr init = { .send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_ah_attr av = { .dlid = 1, .port_num = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_device_attr_ex all;
	struct ibv_gid_entry t[16];
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	errno = 0;
	CHECK(!ibv_alloc_pd(e->ctx));
	CHECK_EQ(errno, ENODEV);
	CHECK(!ibv_reg_mr(e->pd, e->buf, 8, ALL_ACCESS) && errno == ENODEV);
	CHECK(!ibv_create_comp_channel(e->ctx) && errno == ENODEV);
	CHECK(!ibv_create_cq(e->ctx, 1, NULL, NULL, 0) && errno == ENODEV);
	CHECK(!ibv_create_qp(e->pd, &init) && errno == ENODEV);
	CHECK(!ibv_create_srq(e->pd, &srq) && errno == ENODEV);
	CHECK(!ibv_create_ah(e->pd, &av) && errno == ENODEV);
	CHECK(!ibv_alloc_mw(e->pd, IBV_MW_TYPE_1) && errno == ENODEV);
	CHECK(ibv_query_device_ex(e->ctx, NULL, &all));
	CHECK(ibv_query_port(e->ctx, 1, &port));
	CHECK(ibv_query_gid(e->ctx, 1, 0, &gid));
	CHECK(ibv_query_gid_table(e->ctx, t, 16, 0) < 0);
	CHECK(ibv_query_pkey(e->ctx, 1, 0, &pkey));
	CHECK(ibv_get_pkey_index(e->ctx, 1, 0xffff) < 0);
	CHECK_EQ(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), ENODEV);
	attr.qp_state = IBV_QPS_ERR;
	CHECK_EQ(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), ENODEV);
	CHECK_EQ(ibv_resize_cq(e->cq, 4), ENODEV);
	CHECK(ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	CHECK_EQ(ibv_destroy_qp(e->qp), ENODEV);
	CHECK_EQ(ibv_destroy_cq(e->cq), ENODEV);
	CHECK_EQ(ibv_dereg_mr(e->mr), ENODEV);
	CHECK_EQ(ibv_dealloc_pd(e->pd), ENODEV);
	CHECK_EQ(ibv_close_device(e->ctx), 0);
}

static void own(void)
{
	struct end e;

	end_open(&e, "mock1", &(struct pair_how){ 0 });
	qp_to_init(&e, e.qp);
	end_close(&e);
}

static void child(struct end e[2])
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	alarm(100);
	own();
	on_the_device(&e[0]);
	CHECK_EQ(ibv_query_qp(e[1].qp, &attr, IBV_QP_STATE, &init), 0);
	qp_to(e[1].qp, IBV_QPS_RESET);
	CHECK_EQ(ibv_destroy_qp(e[1].qp), 0);
	CHECK_EQ(ibv_destroy_cq(e[1].cq), 0);
	own();
	_exit(0);
}

int main(void)
{
	pthread_t thread;
	struct end e[2];
	int i, status;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	puts("ThreadSanitizer knows no threads in a child of a process with threads");
	return 77;
#endif
	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 3; i++) {
		move_away("mock0");
		if (i) {
			inside = false;
			CHECK(!pthread_create(&thread, NULL, waits, &e[0]));
			while (!inside)
				usleep(1000);
			usleep(20000);
		}
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			child(e);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "fork %d: status 0x%x", i, status);
		move_back("mock0");
		if (i)
			pthread_join(thread, NULL);
		send_one(e);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
