// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A new device with smaller limits. Where what the program has fits, it moves, without room for our own
 * requests if there is none; where it does not, the limit is named before anything is made.
 */
#include <stddef.h>
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

/* What a process has, and one less than that. */
#define LIMIT(field, wanted) { #field, offsetof(struct ibv_device_attr, field),		\
			       sizeof(((struct ibv_device_attr *)0)->field), wanted }
static const struct {
	const char *name;
	size_t at, size;
	uint64_t wanted;
} limits[] = {
	LIMIT(max_pd, 2), LIMIT(max_mr, 3), LIMIT(max_cq, 2), LIMIT(max_srq, 2), LIMIT(max_qp, 3),
	LIMIT(max_mr_size, 65536), LIMIT(max_cqe, CQE),
	LIMIT(max_srq_wr, 40), LIMIT(max_srq_sge, 3),
	/* of the queue pair in traffic; then one has more receives, and one more sends than that */
	LIMIT(max_qp_wr, DEPTH), LIMIT(max_qp_wr, DEPTH + 36), LIMIT(max_qp_wr, DEPTH + 50),
	/* sent at once, received at once */
	LIMIT(max_sge, 5), LIMIT(max_sge, 7),
	LIMIT(max_qp_init_rd_atom, 4), LIMIT(max_qp_rd_atom, 4),
};
#define N_LIMITS (sizeof(limits) / sizeof(limits[0]))

static void set_limit(struct ibv_device_attr *a, unsigned int i, uint64_t value)
{
	int narrow = value;

	if (limits[i].size == sizeof(narrow))
		memcpy((char *)a + limits[i].at, &narrow, sizeof(narrow));
	else
		memcpy((char *)a + limits[i].at, &value, sizeof(value));
}

static struct ibv_qp *make_qp(struct end *e, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr a = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
		.cap = cap,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &a);

	CHECK(qp, "%s", strerror(errno));
	return qp;
}

/* Each limit, by name: one less than needed is refused, all of them at what is needed are enough. */
static void each(void)
{
	struct ibv_srq_init_attr sa[2] = {
		{ .attr = { .max_wr = 40, .max_sge = 1 } }, { .attr = { .max_wr = 4, .max_sge = 3 } },
	};
	const struct ibv_qp_cap caps[2] = {
		{ .max_send_wr = 4, .max_recv_wr = DEPTH + 36, .max_send_sge = 5, .max_recv_sge = 1 },
		{ .max_send_wr = DEPTH + 50, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 7 },
	};
	struct mock_plug how = { .name = "mock0" };
	struct ibv_srq *srq[2];
	struct ibv_mr *mr[2];
	struct ibv_qp *qp[2];
	struct traffic *t;
	const char *why;
	struct end e[2];
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	char said[80];
	unsigned int i;

	pair_open(e, &(struct pair_how){ .send_wr = DEPTH, .recv_wr = DEPTH, .cqe = CQE });
	pd = ibv_alloc_pd(e[0].ctx);
	cq = ibv_create_cq(e[0].ctx, 16, NULL, NULL, 0);
	CHECK(pd && cq);
	for (i = 0; i < 2; i++) {
		mr[i] = ibv_reg_mr(e[0].pd, e[0].buf, 4096, ALL_ACCESS);
		srq[i] = ibv_create_srq(e[0].pd, &sa[i]);
		qp[i] = make_qp(&e[0], caps[i]);
		CHECK(mr[i] && srq[i]);
	}
	t = traffic_start(e, &(struct traffic_how){ .seed = 11 });
	traffic_flows(t, 50);
	move_away("mock0");
	for (i = 0; i < N_LIMITS; i++) {
		unsigned long long wanted = limits[i].wanted;

		memset(&how.limits, 0, sizeof(how.limits));
		set_limit(&how.limits, i, wanted - 1);
		CHECK_EQ(mock_plug(&how), 0);
		why = "";
		CHECK(fake_resume("mock0", &why) == EOPNOTSUPP, "%s of %llu: %s", limits[i].name,
		      wanted - 1, why);
		snprintf(said, sizeof(said), "%s %llu, mock0 has %llu;", limits[i].name, wanted,
			 wanted - 1);
		CHECK(strstr(why, said), "says: %s", why);
		CHECK_EQ(mock_unplug("mock0"), 0);
	}
	for (i = 0; i < N_LIMITS; i++)
		set_limit(&how.limits, i, limits[i].wanted);
	CHECK_EQ(mock_plug(&how), 0);
	why = "";
	CHECK(!fake_resume("mock0", &why), "says: %s", why);
	CHECK_EQ(fake_settled(), 0);
	traffic_flows(t, 50);
	traffic_stop(t);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
		CHECK_EQ(ibv_destroy_srq(srq[i]), 0);
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	}
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* One that gives more than it says: another one that says the same is tried. */
static void generous(void)
{
	const struct mock_plug how = { .name = "mock0", .limits = { .max_mr = 1, .max_srq_wr = 2 } };
	const char *why = "";
	struct ibv_mr *mr;
	struct end e[2];

	CHECK_EQ(mock_unplug("mock0"), 0);
	CHECK_EQ(mock_plug(&how), 0);
	pair_open(e, &(struct pair_how){ .srq = true });
	mr = ibv_reg_mr(e[0].pd, e[0].buf, 4096, ALL_ACCESS);
	CHECK(mr);
	move_away("mock0");
	CHECK_EQ(mock_plug(&how), 0);
	CHECK(!fake_resume("mock0", &why), "says: %s", why);
	CHECK_EQ(fake_settled(), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
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

	alarm(HANGS);
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

	each();
	generous();
	return 0;
}
