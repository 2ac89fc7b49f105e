// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 5 */
/* kunit-objs: ../op_check.o ../op_list.o ../op_state.o ../stat.o ../trace.o */
/* Who speaks against a suspend because he has the device open, and whom force ends. */
#include <kunit/test.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <net/net_namespace.h>

#include "../conn.h"
#include "../device.h"
#include "../hello.h"
#include "../op.h"
#include "../proc.h"
#include "../track.h"
#include "../unplug.h"
#include "../xprt.h"
#include "proc_fakes.h"

#define KTHREADD 2	/* ignores whatever kills others, and is of the initial user namespace */

DEFINE_MUTEX(repath_conn_mutex);

static struct {
	struct repath_ctx ctx;
	struct repath_proc proc;
	bool registered;
	u32 ctxs;
	bool busy;
} fake;

int repath_ctx_for_each(struct repath_device *dev, int (*fn)(struct repath_ctx *ctx, void *arg),
			void *arg)
{
	return fn(&fake.ctx, arg);
}

int repath_qp_for_each(struct repath_device *dev, repath_qp_fn fn, void *arg)
{
	return 0;
}

struct repath_proc *repath_proc_find(struct pid *tgid)
{
	return fake.registered ? repath_proc_get(&fake.proc) : NULL;
}

u32 repath_device_ctx_count(struct repath_device *dev)
{
	return fake.ctxs;
}

void repath_device_name(struct repath_device *dev, char name[IB_DEVICE_NAME_MAX])
{
	strscpy(name, dev->name, IB_DEVICE_NAME_MAX);
}

void repath_unplug_left(const struct repath_op *op)
{
}

bool repath_xprt_busy(struct repath_device *dev)
{
	return fake.busy;
}

void repath_hello_start(struct repath_conn *conn, bool force)
{
}

bool repath_hello_is_early(const struct repath_qp *rqp, struct repath_hello *from)
{
	return false;
}

void repath_conn_qp_connected(struct repath_qp *rqp)
{
}

struct repath_conn *repath_conn_by_qp(struct repath_device *dev, u32 qpn)
{
	return NULL;
}

void repath_op_event(struct repath_op *op)
{
}

void repath_op_unkeep(struct repath_op_proc *p)
{
}

struct ctx {
	struct repath_device dev;
	struct user_namespace inner;
	struct net net;
	struct pid *pid;
};

static int check_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	if (!c)
		return -ENOMEM;
	memset(&fake, 0, sizeof(fake));
	kref_init(&c->dev.kref);
	strscpy(c->dev.name, "fake0", sizeof(c->dev.name));
	refcount_set(&c->net.ns.count, 1);
	c->inner.parent = &init_user_ns;
	c->net.user_ns = &c->inner;
	c->pid = find_get_pid(KTHREADD);
	kref_init(&fake.proc.kref);
	fake.proc.tgid = c->pid;
	fake.ctx.dev = &c->dev;
	fake.ctx.pid = c->pid;
	fake.ctx.comm = "kthreadd";
	test->priv = c;
	return c->pid ? 0 : -ESRCH;
}

static void check_exit(struct kunit *test)
{
	struct ctx *c = test->priv;

	if (!c)
		return;
	repath_op_free_all();
	put_pid(c->pid);
	KUNIT_EXPECT_EQ(test, kref_read(&c->dev.kref), 1u);
	KUNIT_EXPECT_EQ(test, kref_read(&fake.proc.kref), 1u);
}

static u64 killed(struct repath_op *op)
{
	u64 before = atomic64_read(&op->dev->stats.n[REPATH_STAT_OP_KILLED]);

	repath_op_kill_foreign(op);
	return atomic64_read(&op->dev->stats.n[REPATH_STAT_OP_KILLED]) - before;
}

/* An operation in the initial network namespace, or in one that belongs to a user namespace. */
static struct repath_op *op_in(struct kunit *test, bool inner, bool force)
{
	struct ctx *c = test->priv;
	struct repath_op *op;

	mutex_lock(&repath_op_mutex);
	op = repath_op_new(&c->dev, inner ? &c->net : &init_net, &init_pid_ns);
	if (op)
		op->force = force;
	mutex_unlock(&repath_op_mutex);
	KUNIT_ASSERT_NOT_NULL(test, op);
	return op;
}

static int check(struct repath_op *op)
{
	int err;

	mutex_lock(&repath_op_mutex);
	err = repath_op_check_device(op);
	mutex_unlock(&repath_op_mutex);
	return err;
}

static void t_without_force(struct kunit *test)
{
	struct repath_op *op = op_in(test, false, false);

	KUNIT_EXPECT_EQ(test, check(op), -EBUSY);
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "PID 2 (kthreadd) has fake0 open"));
	fake.registered = true;
	op = op_in(test, false, false);
	KUNIT_EXPECT_EQ(test, check(op), 0);
	KUNIT_EXPECT_EQ(test, op->nprocs, 1u);
	KUNIT_EXPECT_EQ(test, killed(op), 0ull);
}

static void t_force(struct kunit *test)
{
	struct repath_op *op = op_in(test, false, true);

	KUNIT_EXPECT_EQ(test, check(op), 0);
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "will be killed"));
	KUNIT_EXPECT_EQ(test, killed(op), 1ull);
}

/* Root of a container is not root of the host, some of whose processes may have entered its network namespace. */
static void t_force_ends_at_the_user_namespace(struct kunit *test)
{
	struct repath_op *op = op_in(test, true, true);
	struct ctx *c = test->priv;

	KUNIT_EXPECT_EQ(test, check(op), -EBUSY);
	KUNIT_EXPECT_NULL(test, strstr(op->reason, "will be killed"));
	KUNIT_EXPECT_EQ(test, killed(op), 0ull);
	/* Processes of its own, or of one below, are his. */
	c->net.user_ns = &init_user_ns;
	op = op_in(test, true, true);
	KUNIT_EXPECT_EQ(test, check(op), 0);
	KUNIT_EXPECT_EQ(test, killed(op), 1ull);
}

/* What is said on the device is waited for, but not until those have answered who are no more. */
static void t_last_words(struct kunit *test)
{
	struct repath_op *op = op_in(test, false, false);

	op->deadline = jiffies + 60 * HZ;
	fake.busy = true;
	fake.ctxs = 1;
	KUNIT_EXPECT_FALSE(test, repath_op_is_released(op));
	fake.ctxs = 0;
	KUNIT_EXPECT_FALSE(test, repath_op_is_released(op));
	fake.busy = false;
	KUNIT_EXPECT_TRUE(test, repath_op_is_released(op));
	fake.busy = true;
	op->left_at -= 6 * HZ;
	KUNIT_EXPECT_TRUE(test, repath_op_is_released(op));
	/* Opened again meanwhile: it begins anew. */
	fake.ctxs = 1;
	KUNIT_EXPECT_FALSE(test, repath_op_is_released(op));
	fake.ctxs = 0;
	KUNIT_EXPECT_FALSE(test, repath_op_is_released(op));
	op->deadline = jiffies;
	KUNIT_EXPECT_TRUE(test, repath_op_is_released(op));
}

static int check_conns(struct repath_op *op)
{
	int err;

	mutex_lock(&repath_op_mutex);
	err = repath_op_check_conns(op);
	mutex_unlock(&repath_op_mutex);
	return err;
}

/* Who is not looked at, as all have been a moment ago, is looked at later. */
static void t_look_is_put_off(struct kunit *test)
{
	struct repath_op *op = op_in(test, false, false);

	op->hello_deadline = jiffies + 60 * HZ;
	op->helloed = true;
	op->look_next = jiffies + 60 * HZ;
	KUNIT_EXPECT_EQ(test, check_conns(op), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, op->look_put_off);
	op->look_next = jiffies;
	KUNIT_EXPECT_EQ(test, check_conns(op), 0);
	KUNIT_EXPECT_FALSE(test, op->look_put_off);
	/* There is no later. */
	op->look_next = jiffies + 60 * HZ;
	op->hello_deadline = jiffies;
	KUNIT_EXPECT_EQ(test, check_conns(op), 0);
	KUNIT_EXPECT_FALSE(test, op->look_put_off);
}

static struct kunit_case check_cases[] = {
	KUNIT_CASE(t_without_force),
	KUNIT_CASE(t_force),
	KUNIT_CASE(t_force_ends_at_the_user_namespace),
	KUNIT_CASE(t_last_words),
	KUNIT_CASE(t_look_is_put_off),
	{}
};

static struct kunit_suite check_suite = {
	.name = "repath_op_check",
	.init = check_init,
	.exit = check_exit,
	.test_cases = check_cases,
};
kunit_test_suite(check_suite);
MODULE_LICENSE("GPL");
