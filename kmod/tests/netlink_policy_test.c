// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 8 */
/* kunit-objs: ../netlink_policy.o */
/* What a command refuses before anybody looks at it. */
#include <kunit/test.h>
#include <rdma/ib_verbs.h>

#include <repath_peer.h>

#include "../netlink_policy.h"

#define BUFFER 32768

static int policy_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, BUFFER, GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

/* One attribute of @len bytes, filled with @fill, checked as the kernel checks a request. */
static int check(struct kunit *test, const struct nla_policy *policy, u16 type, u16 len, u8 fill)
{
	struct netlink_ext_ack extack = {};
	struct nlattr *attr = test->priv;

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memset(nla_data(attr), fill, len);
	return __nla_validate(attr, NLA_ALIGN(attr->nla_len), REPATH_A_MAX, policy,
			      NL_VALIDATE_STRICT, &extack);
}

static int check_u32(struct kunit *test, const struct nla_policy *policy, u16 type, u32 value)
{
	struct netlink_ext_ack extack = {};
	struct nlattr *attr = test->priv;

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + sizeof(value);
	memcpy(nla_data(attr), &value, sizeof(value));
	return __nla_validate(attr, attr->nla_len, REPATH_A_MAX, policy, NL_VALIDATE_STRICT,
			      &extack);
}

static int check_string(struct kunit *test, const struct nla_policy *policy, u16 type, u16 len)
{
	struct netlink_ext_ack extack = {};
	struct nlattr *attr = test->priv;

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len + 1;
	memset(nla_data(attr), 'x', len);
	((char *)nla_data(attr))[len] = 0;
	return __nla_validate(attr, NLA_ALIGN(attr->nla_len), REPATH_A_MAX, policy,
			      NL_VALIDATE_STRICT, &extack);
}

static void t_foreign_attributes(struct kunit *test)
{
	KUNIT_EXPECT_NE(test, check_u32(test, repath_none_policy, REPATH_A_QPN, 1), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, repath_qp_get_policy, REPATH_A_OP_ID, 1), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, repath_device_get_policy, REPATH_A_PID, 1), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, repath_abort_policy, REPATH_A_TIMEOUT_MS, 1), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, repath_suspend_policy, REPATH_A_MAX + 1, 1), 0);
	KUNIT_EXPECT_NE(test, check(test, repath_register_policy, REPATH_A_FORCE, 0, 0), 0);
}

static void t_names(struct kunit *test)
{
	u16 max = IB_DEVICE_NAME_MAX - 1;

	KUNIT_EXPECT_EQ(test, check_string(test, repath_qp_get_policy, REPATH_A_DEV_NAME, max), 0);
	KUNIT_EXPECT_NE(test, check_string(test, repath_qp_get_policy, REPATH_A_DEV_NAME, max + 1),
			0);
	/* Without its end. */
	KUNIT_EXPECT_NE(test, check(test, repath_qp_get_policy, REPATH_A_DEV_NAME, 4, 'x'), 0);
	KUNIT_EXPECT_EQ(test, check_string(test, repath_reply_policy, REPATH_A_REASON,
					   REPATH_REASON_MAX - 1), 0);
	KUNIT_EXPECT_NE(test, check_string(test, repath_reply_policy, REPATH_A_REASON,
					   REPATH_REASON_MAX), 0);
}

static void t_numbers(struct kunit *test)
{
	const struct nla_policy *qp = repath_qp_get_policy;

	KUNIT_EXPECT_EQ(test, check_u32(test, qp, REPATH_A_QPN, 0xffffff), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, qp, REPATH_A_QPN, 0x1000000), 0);
	KUNIT_EXPECT_EQ(test, check_u32(test, qp, REPATH_A_PID, 1), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, qp, REPATH_A_PID, 0), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, qp, REPATH_A_PID, U32_MAX), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, qp, REPATH_A_PORT, 0), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, qp, REPATH_A_DLID, 0), 0);
	KUNIT_EXPECT_EQ(test, check(test, qp, REPATH_A_QP_STATE, 1, IB_QPS_ERR), 0);
	KUNIT_EXPECT_NE(test, check(test, qp, REPATH_A_QP_STATE, 1, IB_QPS_ERR + 1), 0);
	KUNIT_EXPECT_EQ(test, check_u32(test, repath_cycled_policy, REPATH_A_COUNT, 0xffff), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, repath_cycled_policy, REPATH_A_COUNT, 0x10000), 0);
	/* Of the wrong size. */
	KUNIT_EXPECT_NE(test, check(test, qp, REPATH_A_QPN, 2, 0), 0);
	KUNIT_EXPECT_NE(test, check(test, qp, REPATH_A_QPN, 8, 0), 0);
}

static void t_gid(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, check(test, repath_qp_get_policy, REPATH_A_DGID, 16, 1), 0);
	KUNIT_EXPECT_NE(test, check(test, repath_qp_get_policy, REPATH_A_DGID, 15, 1), 0);
	KUNIT_EXPECT_NE(test, check(test, repath_qp_get_policy, REPATH_A_DGID, 17, 1), 0);
}

static void t_admin(struct kunit *test)
{
	const struct nla_policy *suspend = repath_suspend_policy;

	KUNIT_EXPECT_EQ(test, check(test, suspend, REPATH_A_FORCE, 0, 0), 0);
	KUNIT_EXPECT_NE(test, check(test, suspend, REPATH_A_FORCE, 4, 0), 0);
	KUNIT_EXPECT_EQ(test, check_u32(test, suspend, REPATH_A_TIMEOUT_MS, 86400000), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, suspend, REPATH_A_TIMEOUT_MS, 86400001), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, suspend, REPATH_A_TIMEOUT_MS, 0), 0);
	KUNIT_EXPECT_EQ(test, check_u32(test, repath_resume_policy, REPATH_A_OP_ID, 1), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, repath_resume_policy, REPATH_A_OP_ID, 0), 0);
}

static void t_reply(struct kunit *test)
{
	const struct nla_policy *reply = repath_reply_policy;

	KUNIT_EXPECT_EQ(test, check(test, reply, REPATH_A_OP_STAGE, 1, REPATH_STAGE_ABORT), 0);
	KUNIT_EXPECT_NE(test, check(test, reply, REPATH_A_OP_STAGE, 1, REPATH_STAGE_ABORT + 1), 0);
	KUNIT_EXPECT_NE(test, check(test, reply, REPATH_A_OP_STAGE, 1, REPATH_STAGE_NONE), 0);
	KUNIT_EXPECT_EQ(test, check_u32(test, reply, REPATH_A_ERRNO, 0), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, reply, REPATH_A_ERRNO, 4096), 0);
	KUNIT_EXPECT_EQ(test, check(test, reply, REPATH_A_COUNTERS,
				    sizeof(struct repath_counters), 0), 0);
	KUNIT_EXPECT_NE(test, check(test, reply, REPATH_A_COUNTERS,
				    sizeof(struct repath_counters) - 8, 0), 0);
}

static void t_peer_send(struct kunit *test)
{
	const struct nla_policy *send = repath_peer_send_policy;
	const u16 rec = sizeof(struct repath_conn_rec);

	KUNIT_EXPECT_EQ(test, check(test, send, REPATH_A_CONNS, REPATH_CONNS_MAX * rec, 0), 0);
	KUNIT_EXPECT_NE(test, check(test, send, REPATH_A_CONNS, REPATH_CONNS_MAX * rec + rec, 0),
			0);
	KUNIT_EXPECT_NE(test, check(test, send, REPATH_A_CONNS, rec - 1, 0), 0);
	KUNIT_EXPECT_NE(test, check(test, send, REPATH_A_MSG_TYPE, 1, REPATH_MSG_NONE), 0);
	KUNIT_EXPECT_EQ(test, check(test, send, REPATH_A_MSG_TYPE, 1, REPATH_MSG_GONE), 0);
	KUNIT_EXPECT_NE(test, check(test, send, REPATH_A_MSG_TYPE, 1, __REPATH_MSG_MAX), 0);
	KUNIT_EXPECT_NE(test, check(test, send, REPATH_A_MSG_ID, 4, 1), 0);
}

static void t_relay(struct kunit *test)
{
	const struct nla_policy *relay = repath_relay_policy;

	KUNIT_EXPECT_EQ(test, check(test, relay, REPATH_A_NOTICE, REPATH_NOTICE_SIZE, 0), 0);
	KUNIT_EXPECT_NE(test, check(test, relay, REPATH_A_NOTICE, REPATH_NOTICE_SIZE - 1, 0), 0);
	KUNIT_EXPECT_NE(test, check(test, relay, REPATH_A_NOTICE, REPATH_NOTICE_SIZE + 4, 0), 0);
	KUNIT_EXPECT_EQ(test, check_u32(test, relay, REPATH_A_PORT, 1), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, relay, REPATH_A_PORT, 0), 0);
	KUNIT_EXPECT_NE(test, check_u32(test, relay, REPATH_A_DLID, 1), 0);
}

static struct kunit_case policy_cases[] = {
	KUNIT_CASE(t_foreign_attributes),
	KUNIT_CASE(t_names),
	KUNIT_CASE(t_numbers),
	KUNIT_CASE(t_gid),
	KUNIT_CASE(t_admin),
	KUNIT_CASE(t_reply),
	KUNIT_CASE(t_peer_send),
	KUNIT_CASE(t_relay),
	{}
};

static struct kunit_suite policy_suite = {
	.name = "repath_netlink_policy",
	.init = policy_init,
	.test_cases = policy_cases,
};
kunit_test_suite(policy_suite);
MODULE_LICENSE("GPL");
