// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 2 */
/* kunit-objs: ../xprt.o ../stat.o ../trace.o */
/* The carrier without a network: no route is ever found, so what is sent stays under way. */
#include <kunit/test.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "../device.h"
#include "../hello.h"
#include "../xprt_frag.h"

void repath_route_begin(struct repath_route *route, const struct repath_addr *addr)
{
}

int repath_route_find(struct repath_route *route, struct ib_device *ibdev,
		      void (*ready)(void *arg), void *arg)
{
	return -EINPROGRESS;
}

void repath_route_end(struct repath_route *route)
{
}

int repath_xprt_frag_send(struct repath_xprt *xprt, struct out_msg *msg, u32 offset)
{
	return -ENODEV;
}

void repath_xprt_frag_reap(struct repath_xprt *xprt)
{
}

int repath_xprt_listen(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	return 0;
}

void repath_hello_device_removed(struct repath_device *dev)
{
}

void repath_reasm_init(struct repath_reasm *r)
{
}

void repath_reasm_destroy(struct repath_reasm *r)
{
}

/* The CM, which knows nothing of the device here. */
struct ib_cm_id *ib_create_cm_id(struct ib_device *device, ib_cm_handler cm_handler, void *context)
{
	return ERR_PTR(-ENODEV);
}

void ib_destroy_cm_id(struct ib_cm_id *cm_id)
{
}

int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id)
{
	return -ENODEV;
}

struct ctx {
	struct repath_device dev;
	struct ib_device *ibdev;
	struct repath_addr to;
	int ended;
	u8 answer[8];
};

static struct ctx *of(struct kunit *test)
{
	return test->priv;
}

struct fake_device {
	struct ib_device ibdev;
};

static int xprt_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct fake_device *fake;

	if (!c)
		return -ENOMEM;
	fake = ib_alloc_device(fake_device, ibdev);
	if (!fake)
		return -ENOMEM;
	c->ibdev = &fake->ibdev;
	c->dev.ibdev = c->ibdev;
	test->priv = c;
	return repath_xprt_init();
}

static void xprt_exit(struct kunit *test)
{
	struct ctx *c = of(test);

	if (!c)
		return;
	repath_xprt_exit();
	ib_dealloc_device(c->ibdev);
}

static void ended(void *arg, int err, u8 status)
{
	struct ctx *c = arg;

	c->ended++;
}

/* Until all that is under way has ended, as when the device goes. */
static void kill(struct repath_xprt *xprt)
{
	spin_lock(&xprt->lock);
	xprt->dead = true;
	spin_unlock(&xprt->lock);
	repath_xprt_pump(xprt);
	flush_work(&xprt->pump);
}

/* As repath_xprt_add_device() does, but for the CM. */
static struct repath_xprt *begin(struct kunit *test)
{
	struct repath_xprt *xprt;

	xprt = repath_xprt_new(&of(test)->dev);
	KUNIT_ASSERT_NOT_NULL(test, xprt);
	WRITE_ONCE(of(test)->dev.xprt, xprt);
	return xprt;
}

static void end(struct kunit *test, struct repath_xprt *xprt)
{
	kill(xprt);
	WRITE_ONCE(of(test)->dev.xprt, NULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&xprt->msgs));
	kfree(xprt);
}

static int send(struct kunit *test, bool question)
{
	struct ctx *c = of(test);
	void *data = kvzalloc(8, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, data);
	if (question)
		return repath_xprt_ask(&c->dev, &c->to, REPATH_MSG_RESOLVE, data, 8, c->answer,
				       sizeof(c->answer), ended, c);
	return repath_xprt_send(&c->dev, &c->to, 0, REPATH_MSG_READY, data, 8, ended, c);
}

static void t_ends_with_the_device(struct kunit *test)
{
	struct repath_xprt *xprt;

	KUNIT_EXPECT_EQ(test, send(test, false), -ENODEV);
	KUNIT_EXPECT_FALSE(test, repath_xprt_busy(&of(test)->dev));
	xprt = begin(test);
	KUNIT_EXPECT_EQ(test, send(test, false), 0);
	KUNIT_EXPECT_EQ(test, send(test, true), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, of(test)->ended, 0);
	kill(xprt);
	KUNIT_EXPECT_EQ(test, of(test)->ended, 2);
	KUNIT_EXPECT_FALSE(test, repath_xprt_busy(&of(test)->dev));
	KUNIT_EXPECT_EQ(test, send(test, false), -ENODEV);
	end(test, xprt);
}

/* A suspend waits for what is said; where others are is asked on and on, and it could wait for ever. */
static void t_questions_hold_up_nobody(struct kunit *test)
{
	struct repath_xprt *xprt = begin(test);
	int i;

	KUNIT_EXPECT_FALSE(test, repath_xprt_busy(&of(test)->dev));
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, send(test, true), 0);
	KUNIT_EXPECT_FALSE(test, repath_xprt_busy(&of(test)->dev));
	KUNIT_EXPECT_EQ(test, send(test, false), 0);
	KUNIT_EXPECT_EQ(test, send(test, true), 0);
	KUNIT_EXPECT_TRUE(test, repath_xprt_busy(&of(test)->dev));
	end(test, xprt);
}

static struct kunit_case xprt_cases[] = {
	KUNIT_CASE(t_ends_with_the_device),
	KUNIT_CASE(t_questions_hold_up_nobody),
	{}
};

static struct kunit_suite xprt_suite = {
	.name = "repath_xprt",
	.init = xprt_init,
	.exit = xprt_exit,
	.test_cases = xprt_cases,
};
kunit_test_suite(xprt_suite);
MODULE_LICENSE("GPL");
