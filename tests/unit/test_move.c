// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One end's device is taken away under traffic and comes back with other numbers. */
#include "check.h"
#include "fake_module.h"
#include "mock.h"
#include "move_cycle.h"
#include "traffic.h"

static void go(const struct pair_how *how, const struct traffic_how *traffic)
{
	struct end e[2];
	struct traffic *t;
	uint32_t qpn, lkey;
	int i;

	pair_open(e, how);
	qpn = e[0].qp->qp_num;
	lkey = e[0].mr->lkey;
	t = traffic_start(e, traffic);
	for (i = 0; i < 3; i++) {
		traffic_flows(t, 100);
		move_away("mock0");
		move_back("mock0");
		traffic_flows(t, 100);
	}
	move_away("mock1");
	move_back("mock1");
	traffic_flows(t, 100);
	traffic_stop(t);
	CHECK_EQ(e[0].qp->qp_num, qpn);
	CHECK_EQ(e[0].mr->lkey, lkey);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

/* Opened again by what the program has kept of the time before. */
static void open_again(void)
{
	struct ibv_device *device, **list;
	struct ibv_context *ctx;
	struct end e[2];
	int i, n;

	pair_open(e, &(struct pair_how){ 0 });
	device = e[0].ctx->device;
	for (i = 0; i < 2; i++) {
		move_away("mock0");
		move_back("mock0");
		ctx = ibv_open_device(device);
		CHECK(ctx, "%s", strerror(errno));
		CHECK(ctx->device == device);
		CHECK_EQ(ibv_close_device(ctx), 0);
		n = ibv_get_device_index(device);
		list = ibv_get_device_list(NULL);
		CHECK(list);
		CHECK_EQ(ibv_get_device_index(device), n);
		ibv_free_device_list(list);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	open_again();
	go(&(struct pair_how){ 0 }, &(struct traffic_how){ .seed = 1 });
	go(&(struct pair_how){ .events = true }, &(struct traffic_how){ .seed = 2 });
	go(&(struct pair_how){ .ex_cq = true, .ex_qp = true }, &(struct traffic_how){ .seed = 3 });
	go(&(struct pair_how){ .no_write = false, .sig_all = false },
	   &(struct traffic_how){ .rarely = true });
	return 0;
}
