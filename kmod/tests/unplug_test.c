// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 4 */
/* kunit-objs: ../stat.o */
/* What an unplugged device has left suspended goes on where another one of its kind comes. */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/slab.h>

#include "../unplug.c"
#include "fake_ibdev.h"
#include "proc_fakes.h"

DEFINE_MUTEX(repath_op_mutex);

static struct {
	struct repath_device dev[2];	/* the old one, and the new one, if it has come */
	struct repath_op op;
	int resumed;
	bool busy;			/* something goes on there */
	u32 ctxs;
} fake;

struct repath_device *repath_device_next(const struct net *net, u32 index)
{
	return index <= fake.dev[1].index ? repath_device_get(&fake.dev[1]) : NULL;
}

struct net *repath_device_net(const struct repath_device *dev)
{
	return &init_net;
}

void repath_device_name(struct repath_device *dev, char name[IB_DEVICE_NAME_MAX])
{
	strscpy(name, dev->name, IB_DEVICE_NAME_MAX);
}

bool repath_device_use(struct repath_device *dev)
{
	return true;
}

void repath_device_unuse(struct repath_device *dev)
{
}

u32 repath_device_ctx_count(struct repath_device *dev)
{
	return fake.ctxs;
}

void repath_op_for_each(void (*fn)(struct repath_op *op, void *arg), void *arg)
{
	fn(&fake.op, arg);
}

struct repath_op *repath_op_on(const struct repath_device *dev)
{
	return fake.busy && dev == &fake.dev[1] ? &fake.op : NULL;
}

struct repath_op *repath_op_find(u32 id)
{
	return NULL;
}

struct repath_op *repath_op_start(struct repath_device *dev, struct net *net,
				  struct pid_namespace *ns, u32 timeout_ms, bool force, bool dry_run)
{
	return NULL;
}

int repath_op_resume(struct repath_op *op, struct repath_device *dev, u32 timeout_ms)
{
	fake.resumed++;
	op->state = REPATH_OP_RESUMING;
	return 0;
}

void repath_op_say(struct repath_op *op, u32 err, const char *fmt, ...)
{
}

void repath_op_refuse(struct repath_op *op)
{
}

void repath_op_go_back(struct repath_op *op)
{
}

void repath_op_wake(void)
{
}

void repath_op_event(struct repath_op *op)
{
}

/* KUnit runs suites before the kernel gives up what a module needs to start. */
static int __ref plug_init(struct kunit *test)
{
	struct ib_device *ibdev = fake_ibdev_add("fake%d", RDMA_CORE_PORT_IBA_IB);
	int i;

	memset(&fake, 0, sizeof(fake));
	if (!ibdev)
		return -ENODEV;
	for (i = 0; i < 2; i++) {
		kref_init(&fake.dev[i].kref);
		fake.dev[i].ibdev = ibdev;
		fake.dev[i].index = i;
	}
	fake.op.dev = &fake.dev[0];
	fake.op.net = &init_net;
	fake.op.state = REPATH_OP_SUSPENDED;
	fake.op.unplug = true;
	fake.op.dev_gone = true;
	strscpy(fake.dev[1].name, "spare", sizeof(fake.dev[1].name));
	strscpy(fake.op.dev_name, "gone", sizeof(fake.op.dev_name));
	return repath_unplug_init();
}

static void plug_exit(struct kunit *test)
{
	if (!fake.dev[0].ibdev)
		return;
	repath_unplug_exit();
	fake_ibdev_del(fake.dev[0].ibdev);
	KUNIT_EXPECT_EQ(test, kref_read(&fake.dev[1].kref), 1u);
}

/* Everybody who asks this host for a queue pair waits for the mutex: nobody who holds it waits for firmware. */
static void t_asks_no_firmware(struct kunit *test)
{
	atomic_set(&fake_port.asked, 0);
	auto_fn(NULL);
	KUNIT_EXPECT_EQ(test, fake.resumed, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake_port.asked), 0);
}

static void t_who_goes_on(struct kunit *test)
{
	fake.busy = true;
	auto_fn(NULL);
	KUNIT_EXPECT_EQ(test, fake.resumed, 0);
	fake.busy = false;
	fake.op.net = NULL;
	auto_fn(NULL);
	KUNIT_EXPECT_EQ(test, fake.resumed, 0);
	fake.op.net = &init_net;
	fake.op.unplug = false;
	auto_fn(NULL);
	KUNIT_EXPECT_EQ(test, fake.resumed, 0);
	fake.op.unplug = true;
	fake.dev[1].link_layer = IB_LINK_LAYER_ETHERNET;
	auto_fn(NULL);
	KUNIT_EXPECT_EQ(test, fake.resumed, 0);
	fake.dev[1].link_layer = fake.dev[0].link_layer;
	auto_fn(NULL);
	KUNIT_EXPECT_EQ(test, fake.resumed, 1);
}

/* One that others use does only where it has its name, or something has come. */
static void t_one_in_use(struct kunit *test)
{
	fake.ctxs = 1;
	auto_fn(NULL);
	KUNIT_EXPECT_EQ(test, fake.resumed, 0);
	arrived = true;
	auto_fn(NULL);
	KUNIT_EXPECT_EQ(test, fake.resumed, 1);
	fake.op.state = REPATH_OP_PARKED;
	fake.op.auto_any = false;
	strscpy(fake.dev[1].name, "gone", sizeof(fake.dev[1].name));
	auto_fn(NULL);
	KUNIT_EXPECT_EQ(test, fake.resumed, 2);
}

/* The new one came first, then the old one went: nothing more comes. */
static void t_there_already(struct kunit *test)
{
	int i;

	mutex_lock(&repath_op_mutex);
	fake.op.state = REPATH_OP_SUSPENDING;
	repath_unplug_left(&fake.op);
	fake.op.state = REPATH_OP_SUSPENDED;
	fake.op.dev_gone = false;
	repath_unplug_left(&fake.op);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&auto_work));
	fake.op.dev_gone = true;
	repath_unplug_left(&fake.op);
	mutex_unlock(&repath_op_mutex);
	for (i = 0; i < 100 && !READ_ONCE(fake.resumed); i++)
		msleep(50);
	KUNIT_EXPECT_EQ(test, fake.resumed, 1);
}

static struct kunit_case plug_cases[] = {
	KUNIT_CASE(t_asks_no_firmware),
	KUNIT_CASE(t_who_goes_on),
	KUNIT_CASE(t_one_in_use),
	KUNIT_CASE(t_there_already),
	{}
};

static struct kunit_suite plug_suite = {
	.name = "repath_unplug",
	.init = plug_init,
	.exit = plug_exit,
	.test_cases = plug_cases,
};
kunit_test_suite(plug_suite);
MODULE_LICENSE("GPL");
