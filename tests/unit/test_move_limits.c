// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A new device with smaller limits. Where what the program has fits, it moves, without room for our own
 * requests if there is none; where it does not, the limit is named before anything is made.
 */
#include <string.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"
#include "traffic.h"

#define DEPTH	64
#define CQE	256

static void back_on(const char *dev, int max_qp_wr, int max_cqe)
{
	const struct mock_plug how = { .name = dev, .max_qp_wr = max_qp_wr, .max_cqe = max_cqe };
	const char *why = NULL;
	int ret;

	CHECK_EQ(mock_plug(&how), 0);
	ret = fake_resume(dev, &why);
	CHECK(!ret, "resume on %s: %d, %s", dev, ret, why);
	CHECK_EQ(fake_settled(), 0);
}

static void refused_on(const char *dev, int max_qp_wr, int max_cqe, const char *limit, int wanted,
		       int has)
{
	const struct mock_plug how = { .name = dev, .max_qp_wr = max_qp_wr, .max_cqe = max_cqe };
	char want[32], had[64];
	const char *why = "";

	CHECK_EQ(mock_plug(&how), 0);
	CHECK_EQ(fake_resume(dev, &why), EOPNOTSUPP);
	snprintf(want, sizeof(want), "%s %d", limit, wanted);
	snprintf(had, sizeof(had), "%s has %d", dev, has);
	CHECK(strstr(why, want) && strstr(why, had) && strstr(why, "resume on"), "%s", why);
	CHECK_EQ(mock_unplug(dev), 0);	/* it is not held */
}

static void asked(uint32_t send_wr, int cqe)
{
	uint32_t wr;
	int entries;

	mock_last_caps(&wr, &entries);
	CHECK_EQ(wr, send_wr);
	CHECK_EQ(entries, cqe);
}

int main(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct traffic *t;
	struct end e[2];

	alarm(110);
	pair_open(e, &(struct pair_how){ .send_wr = DEPTH, .recv_wr = DEPTH, .cqe = CQE,
					 .events = true });
	t = traffic_start(e, &(struct traffic_how){ .seed = 3 });
	traffic_flows(t, 50);

	/* Just what the program has, no more. */
	move_away("mock0");
	back_on("mock0", DEPTH, CQE);
	asked(DEPTH, CQE);
	traffic_flows(t, 50);
	/* From there, too, and to more again. */
	move_away("mock0");
	back_on("mock0", DEPTH + 1, CQE + 10);
	asked(DEPTH + 1, CQE + 10);
	traffic_flows(t, 50);
	move_away("mock0");
	refused_on("mock0", DEPTH - 1, 0, "max_qp_wr", DEPTH, DEPTH - 1);
	refused_on("mock7", 0, CQE - 1, "max_cqe", CQE, CQE - 1);
	refused_on("mock0", DEPTH / 2, CQE, "max_qp_wr", DEPTH, DEPTH / 2);
	back_on("mock0", 0, 0);
	traffic_flows(t, 50);
	traffic_stop(t);
	CHECK_EQ(ibv_query_qp(e[0].qp, &attr, IBV_QP_CAP, &init), 0);
	CHECK_EQ(attr.cap.max_send_wr, DEPTH);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
