// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 7 */
/* kunit-objs: ../device.o ../track.o ../track_path.o ../track_query.o ../track_user.o ../track_walk.o ../index.o ../path.o ../note.o ../stat.o ../trace.o ../qp_filter.o */
/* Which queue pairs a reader sees. */
#include <net/net_namespace.h>

#include "../netlink.h"
#include "../qp_filter.h"
#include "track_fakes.h"

/* netlink.c's. */
struct repath_device *repath_nl_device(const struct net *net, const struct nlattr *name,
				       struct netlink_ext_ack *extack)
{
	struct repath_device *dev = repath_device_get_by_name(net, nla_data(name));

	if (dev)
		return dev;
	NL_SET_ERR_MSG_ATTR(extack, name, "no RDMA device of this name");
	return ERR_PTR(-ENODEV);
}

struct filter_ctx {
	struct repath_device *one, *two;
};

/*
 * one: 40 (current, port 1, DLID 5, RTR), 41 (current, port 2, DLID 5, RTS), 42 (init, RESET),
 *      GSI of port 1
 * two: 40 (init, port 1, DLID 5, RTR)
 */
static int filter_init(struct kunit *test)
{
	struct filter_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	struct ib_qp *qp;

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	memset(&told, 0, sizeof(told));
	KUNIT_ASSERT_EQ(test, repath_track_init(), 0);
	KUNIT_ASSERT_EQ(test, repath_note_init(), 0);
	ctx->one = fake_device_add(test, "fake0", 1);
	ctx->two = fake_device_add(test, "fake1", 2);
	test->priv = ctx;

	qp = fake_qp(test, ctx->one, 40);
	fake_qp_created(qp, current);
	fake_qp_rtr(qp, 1, 5, 1);
	qp = fake_qp(test, ctx->one, 41);
	fake_qp_created(qp, current);
	fake_qp_rtr(qp, 2, 5, 1);
	fake_qp_state(qp, IB_QPS_RTS);
	qp = fake_qp(test, ctx->one, 42);
	fake_qp_created(qp, &init_task);
	qp = fake_qp(test, ctx->one, 1);
	qp->qp_type = IB_QPT_GSI;
	qp->port = 1;
	fake_qp_created(qp, NULL);
	qp = fake_qp(test, ctx->two, 40);
	fake_qp_created(qp, &init_task);
	fake_qp_rtr(qp, 1, 5, 1);
	return 0;
}

static void filter_exit(struct kunit *test)
{
	struct filter_ctx *ctx = test->priv;

	if (!ctx)
		return;
	fake_device_del(ctx->one);
	fake_device_del(ctx->two);
	repath_note_exit();
	repath_track_exit();
}

struct looked_at {
	const struct repath_qp_filter *filter;
	int matching;
};

static int look_at(struct repath_qp *rqp, void *arg)
{
	struct looked_at *all = arg;

	all->matching += repath_qp_filter_match(all->filter, rqp);
	return 0;
}

/* How many match, by the index that suits the filter; looking at all of them must find as many. */
static int matching(struct kunit *test, const struct repath_qp_filter *filter)
{
	struct looked_at all = { .filter = filter };
	struct repath_device *dev;
	int count = 0;

	KUNIT_EXPECT_EQ(test, repath_qp_filter_walk(filter, fake_count_qp, &count), 0);
	repath_device_for_each(dev, NULL)
		repath_qp_for_each(dev, look_at, &all);
	KUNIT_EXPECT_EQ(test, all.matching, count);
	return count;
}

static void t_all(struct kunit *test)
{
	struct repath_qp_filter filter = { .net = &init_net };

	KUNIT_EXPECT_EQ(test, matching(test, &filter), 5);
}

static void t_device_port_state(struct kunit *test)
{
	struct filter_ctx *ctx = test->priv;
	struct repath_qp_filter filter = { .dev = ctx->one };

	KUNIT_EXPECT_EQ(test, matching(test, &filter), 4);
	filter.port = 1;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2); /* 40, and the GSI one by its number */
	filter.port = 2;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 1);
	filter.port = 0;
	filter.has_state = true;
	filter.state = IB_QPS_RTR;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 1);
	filter.state = IB_QPS_RESET;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	filter.state = IB_QPS_ERR;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 0);
}

static void t_type(struct kunit *test)
{
	struct filter_ctx *ctx = test->priv;
	struct repath_qp_filter filter = { .dev = ctx->one, .has_type = true, .type = IB_QPT_GSI };

	KUNIT_EXPECT_EQ(test, matching(test, &filter), 1);
	filter.type = IB_QPT_RC;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 3);
	filter.type = IB_QPT_UC;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 0);
}

static void t_qpn(struct kunit *test)
{
	struct filter_ctx *ctx = test->priv;
	struct repath_qp_filter filter = { .has_qpn = true, .qpn = 40 };

	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	filter.dev = ctx->two;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 1);
	filter.qpn = 41;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 0);
	filter.dev = ctx->one;
	filter.qpn = 1;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 1);
}

static void t_path(struct kunit *test)
{
	struct filter_ctx *ctx = test->priv;
	struct repath_qp_filter filter = { .dlid = 5 };
	struct ib_qp *qp;

	KUNIT_EXPECT_EQ(test, matching(test, &filter), 3);
	filter.dev = ctx->one;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	filter.port = 2;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 1);
	filter.dlid = 6;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 0);
	/* The greatest number there is has no next one. */
	filter.dlid = 5;
	filter.port = U32_MAX;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 0);

	filter.dlid = 0;
	filter.port = 0;
	filter.has_dgid = true;
	filter.dgid = fake_dgid(5);
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	filter.dgid = fake_dgid(6);
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 0);
	/* Both conditions hold, whichever index is walked. */
	filter.dlid = 5;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 0);

	/* Who has left a path is not on it. */
	filter.dgid = fake_dgid(5);
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	qp = fake_qp(test, ctx->one, 43);
	fake_qp_created(qp, current);
	fake_qp_rtr(qp, 1, 5, 1);
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 3);
	fake_qp_state(qp, IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	filter.dlid = 0;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	filter.has_dgid = false;
	filter.dlid = 5;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	repath_track_qp_gone(qp);
}

static void t_process(struct kunit *test)
{
	struct filter_ctx *ctx = test->priv;
	struct repath_qp_filter filter = { .tgid = task_tgid(&init_task) };

	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	filter.dev = ctx->two;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 1);
	filter.tgid = task_tgid(current);
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 0);
	filter.dev = ctx->one;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 2);
	filter.nobody = true;
	KUNIT_EXPECT_EQ(test, matching(test, &filter), 0);
}

static void t_parse(struct kunit *test)
{
	struct filter_ctx *ctx = test->priv;
	struct {
		struct nlattr head;
		char name[8];
	} name = { .head = { .nla_len = NLA_HDRLEN + 6, .nla_type = REPATH_A_DEV_NAME } };
	struct {
		struct nlattr head;
		u32 value;
	} pid = { .head = { .nla_len = NLA_HDRLEN + 4, .nla_type = REPATH_A_PID } };
	struct netlink_ext_ack extack = {};
	struct repath_qp_filter filter;
	struct nlattr **attrs;

	attrs = kunit_kcalloc(test, REPATH_A_MAX + 1, sizeof(*attrs), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, attrs);
	attrs[REPATH_A_DEV_NAME] = &name.head;
	strscpy(name.name, "fake1", sizeof(name.name));
	KUNIT_ASSERT_EQ(test, repath_qp_filter_parse(&filter, &init_net, attrs, &extack), 0);
	KUNIT_EXPECT_PTR_EQ(test, filter.dev, ctx->two);
	KUNIT_EXPECT_FALSE(test, filter.nobody);
	repath_qp_filter_free(&filter);

	/* A process that is not there: nothing matches, rather than everything. */
	attrs[REPATH_A_PID] = &pid.head;
	pid.value = PID_MAX_LIMIT;
	KUNIT_ASSERT_EQ(test, repath_qp_filter_parse(&filter, &init_net, attrs, &extack), 0);
	KUNIT_EXPECT_TRUE(test, filter.nobody);
	repath_qp_filter_free(&filter);

	strscpy(name.name, "fake9", sizeof(name.name));
	KUNIT_EXPECT_EQ(test, repath_qp_filter_parse(&filter, &init_net, attrs, &extack), -ENODEV);
	KUNIT_EXPECT_NOT_NULL(test, extack._msg);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, (const struct nlattr *)&name.head);
}

static struct kunit_case filter_cases[] = {
	KUNIT_CASE(t_all),
	KUNIT_CASE(t_device_port_state),
	KUNIT_CASE(t_type),
	KUNIT_CASE(t_qpn),
	KUNIT_CASE(t_path),
	KUNIT_CASE(t_process),
	KUNIT_CASE(t_parse),
	{}
};

static struct kunit_suite filter_suite = {
	.name = "repath_qp_filter",
	.init = filter_init,
	.exit = filter_exit,
	.test_cases = filter_cases,
};
kunit_test_suite(filter_suite);
MODULE_LICENSE("GPL");
