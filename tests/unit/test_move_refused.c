// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What can not be moved is refused by name, before anything is touched. */
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static void refused(const char *dev, const char *because)
{
	const char *why = "";
	int ret = fake_check(dev, &why);

	CHECK(ret == EOPNOTSUPP, "%d", ret);
	CHECK(strstr(why, because), "says: %s", why);
	CHECK_EQ(fake_abort(), 0);
}

int main(void)
{
	struct pair_how ud = { .type = IBV_QPT_UD }, uc = { .type = IBV_QPT_UC };
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1 };
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp *qp[2];
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	struct traffic *t;
	struct end e[2];

	alarm(60);
	pair_open(e, &(struct pair_how){ 0 });
	t = traffic_start(e, &(struct traffic_how){ .seed = 8 });
	traffic_flows(t, 50);

	qp[0] = end_create_qp(&e[0], &ud);
	qp[1] = end_create_qp(&e[0], &ud);
	refused("mock0", "2 UD queue pairs");
	CHECK_EQ(ibv_destroy_qp(qp[0]), 0);
	refused("mock0", "1 UD queue pair");
	CHECK_EQ(ibv_destroy_qp(qp[1]), 0);
	qp[0] = end_create_qp(&e[0], &uc);
	refused("mock0", "1 UC queue pair");
	CHECK_EQ(ibv_destroy_qp(qp[0]), 0);
	srq = ibv_create_srq(e[0].pd, &sa);
	ah = ibv_create_ah(e[0].pd, &aa);
	mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	CHECK(srq && ah && mw);
	refused("mock0", "shared receive queue");
	refused("mock0", "address handle");
	refused("mock0", "memory window");
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	traffic_flows(t, 50);

	/* Made after the check: the suspend is refused, and can be tried again. */
	CHECK_EQ(fake_check("mock0", NULL), 0);
	qp[0] = end_create_qp(&e[0], &ud);
	CHECK_EQ(fake_suspend("mock0"), EOPNOTSUPP);
	CHECK_EQ(fake_abort(), 0);
	traffic_flows(t, 50);
	CHECK_EQ(ibv_destroy_qp(qp[0]), 0);
	move_away("mock0");
	move_back("mock0");
	traffic_flows(t, 50);
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
