// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 4 */
/* kunit-objs: ../lid.o */
/* LIDs of the own ports: the device is asked when they may have changed, and else not. */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../lid.h"
#include "fake_ibdev.h"

struct ctx {
	struct repath_device dev;
	bool begun;
};

static bool going;

bool repath_device_use(struct repath_device *dev)
{
	return !READ_ONCE(going);
}

void repath_device_unuse(struct repath_device *dev)
{
}

static struct repath_device *dev_of(struct kunit *test)
{
	return &((struct ctx *)test->priv)->dev;
}

static void add(struct kunit *test, u32 core_cap_flags)
{
	struct ctx *c = test->priv;

	c->dev.ibdev = fake_ibdev_add("repath_lid%d", core_cap_flags);
	KUNIT_ASSERT_NOT_NULL(test, c->dev.ibdev);
	fake_port.lid = 7;
	atomic_set(&fake_port.asked, 0);
	repath_lid_begin(&c->dev);
	c->begun = true;
}

static int lid_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	if (!c)
		return -ENOMEM;
	xa_init(&c->dev.lids);
	mutex_init(&c->dev.lid_lock);
	going = false;
	test->priv = c;
	return 0;
}

static void lid_exit(struct kunit *test)
{
	struct ctx *c = test->priv;

	if (!c)
		return;
	if (c->begun)
		repath_lid_end(&c->dev);
	if (c->dev.ibdev)
		fake_ibdev_del(c->dev.ibdev);
	xa_destroy(&c->dev.lids);
}

/* As the driver of @dev tells it; back when everybody has heard it. */
static void event(struct repath_device *dev, enum ib_event_type type)
{
	struct ib_event event = { .device = dev->ibdev, .event = type, .element.port_num = 1 };

	ib_dispatch_event(&event);
	flush_workqueue(ib_wq);
}

/* Nobody who wants to know waits for firmware. */
static void t_is_kept(struct kunit *test)
{
	struct repath_device *dev = dev_of(test);
	int i;

	add(test, RDMA_CORE_CAP_PROT_IB);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake_port.asked), 1);
	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_EQ(test, repath_lid(dev, 1), 7u);
	KUNIT_EXPECT_EQ(test, repath_lid(dev, 2), 0u);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake_port.asked), 1);
}

static void t_changes(struct kunit *test)
{
	static const enum ib_event_type types[] = {
		IB_EVENT_LID_CHANGE, IB_EVENT_PORT_ACTIVE, IB_EVENT_CLIENT_REREGISTER,
	};
	struct repath_device *dev = dev_of(test);
	int i;

	add(test, RDMA_CORE_CAP_PROT_IB);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		WRITE_ONCE(fake_port.lid, 20 + i);
		event(dev, types[i]);
		KUNIT_EXPECT_EQ(test, repath_lid(dev, 1), 20u + i);
	}
	/* Nothing of it is about the LID. */
	WRITE_ONCE(fake_port.lid, 30);
	event(dev, IB_EVENT_PKEY_CHANGE);
	KUNIT_EXPECT_EQ(test, repath_lid(dev, 1), 22u);
	repath_lid_ask(dev, 1);
	KUNIT_EXPECT_EQ(test, repath_lid(dev, 1), 30u);
}

/* A device that is going is not asked any more. */
static void t_device_goes(struct kunit *test)
{
	struct repath_device *dev = dev_of(test);

	add(test, RDMA_CORE_CAP_PROT_IB);
	WRITE_ONCE(fake_port.lid, 8);
	WRITE_ONCE(going, true);
	event(dev, IB_EVENT_LID_CHANGE);
	KUNIT_EXPECT_EQ(test, repath_lid(dev, 1), 7u);
}

static void t_none_on_roce(struct kunit *test)
{
	struct repath_device *dev = dev_of(test);

	add(test, RDMA_CORE_PORT_RAW_PACKET);
	event(dev, IB_EVENT_LID_CHANGE);
	KUNIT_EXPECT_EQ(test, repath_lid(dev, 1), 0u);
}

static struct kunit_case lid_cases[] = {
	KUNIT_CASE(t_is_kept),
	KUNIT_CASE(t_changes),
	KUNIT_CASE(t_device_goes),
	KUNIT_CASE(t_none_on_roce),
	{}
};

static struct kunit_suite lid_suite = {
	.name = "repath_lid",
	.init = lid_init,
	.exit = lid_exit,
	.test_cases = lid_cases,
};
kunit_test_suite(lid_suite);
MODULE_LICENSE("GPL");
