// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The time of day is set back while an answer is waited for: the wait is no longer for that. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "fake_module.h"
#include "mock.h"
#include "pair.h"

/* What it was before it was set back. */
static _Atomic int ahead_s;

int clock_gettime(clockid_t id, struct timespec *t)
{
	int ret = syscall(SYS_clock_gettime, id, t);

	if (id == CLOCK_REALTIME)
		t->tv_sec += ahead_s;
	return ret;
}

int main(void)
{
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1 };
	struct ibv_send_wr wr = { .wr_id = 1, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_sge sge;
	struct end e[2];

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ .type = IBV_QPT_UD });
	CHECK_EQ(post_recv(&e[1], 2, 0, 64), 0);
	CHECK_EQ(ibv_query_gid(e[1].ctx, 1, 0, &aa.grh.dgid), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1, .late_us = 4000000000u });
	ahead_s = 3600;
	wr.wr.ud.ah = ibv_create_ah(e[0].pd, &aa);
	CHECK(wr.wr.ud.ah, "%s", strerror(errno));
	wr.wr.ud.remote_qpn = e[1].qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	sge = (struct ibv_sge){ (uintptr_t)e[0].buf + 4096, 8, e[0].mr->lkey };
	wr.sg_list = &sge;
	CHECK_EQ(ibv_post_send(e[0].qp, &wr, &bad), 0);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	expect(&e[1], 2, IBV_WC_SUCCESS);
	ahead_s = 0;
	CHECK_EQ(ibv_destroy_ah(wr.wr.ud.ah), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
