// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 10 */
/* kunit-objs: ../xprt.o ../stat.o ../trace.o */
/* The carrier to hosts that are down: no route is found, or what is sent stays under way. */
#include <kunit/test.h>
#include <linux/hash.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "../device.h"
#include "../hello.h"
#include "../xprt_frag.h"

static struct {
	bool routes;		/* are found */
	bool gives_up;		/* all that is under way */
	int sent[__REPATH_MSG_MAX];
	const void *later;	/* a payer */
	int late;		/* of these, paid by that */
	int looked;		/* for routes */
	void (*ready)(void *arg);
	void *ready_arg;
	repath_xprt_check_fn check;
	bool forgotten;
} fake;

void repath_route_begin(struct repath_route *route, const struct repath_addr *addr)
{
	route->addr = *addr;
}

int repath_route_find(struct repath_route *route, struct ib_device *ibdev,
		      void (*ready)(void *arg), void *arg)
{
	fake.looked++;
	fake.ready = ready;
	fake.ready_arg = arg;
	return fake.routes ? 0 : -EINPROGRESS;
}

void repath_route_end(struct repath_route *route)
{
}

int repath_xprt_frag_send(struct repath_xprt *xprt, struct out_msg *msg, u32 offset)
{
	fake.sent[msg->m.type]++;
	if (fake.later && msg->m.payer == fake.later)
		fake.late++;
	return 0;
}

void repath_xprt_frag_reap(struct repath_xprt *xprt)
{
	struct out_msg *msg, *next;

	spin_lock(&xprt->lock);
	list_for_each_entry_safe(msg, next, &xprt->msgs, node)
		while (fake.gives_up && msg->inflight) {
			repath_xprt_count(msg, -1);
			repath_xprt_settle(msg);
		}
	spin_unlock(&xprt->lock);
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
	int ended, canceled;
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
	struct fake_device *ibdev;

	if (!c)
		return -ENOMEM;
	memset(&fake, 0, sizeof(fake));
	ibdev = ib_alloc_device(fake_device, ibdev);
	if (!ibdev)
		return -ENOMEM;
	c->ibdev = &ibdev->ibdev;
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
	c->canceled += err == -ECANCELED;
}

/* Until all that is under way has ended, as when the device goes. */
static void kill(struct repath_xprt *xprt)
{
	spin_lock(&xprt->lock);
	xprt->dead = true;
	spin_unlock(&xprt->lock);
	fake.gives_up = true;
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
	unsigned int kind;

	kill(xprt);
	WRITE_ONCE(of(test)->dev.xprt, NULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&xprt->msgs));
	KUNIT_EXPECT_EQ(test, xprt->inflight, 0u);
	for (kind = 0; kind < REPATH_XPRT_KINDS; kind++)
		KUNIT_EXPECT_EQ(test, xprt->kinds[kind].inflight, 0u);
	kfree(xprt);
}

static int say_for(struct kunit *test, const void *payer, u8 type, u64 order, u32 len)
{
	struct ctx *c = of(test);
	struct repath_xprt_send msg = {
		.to = &c->to, .order = order, .payer = payer, .type = type, .len = len,
		.data = kvzalloc(len, GFP_KERNEL), .check = fake.check, .done = ended, .arg = c,
	};

	KUNIT_ASSERT_NOT_NULL(test, msg.data);
	if (type == REPATH_MSG_RESOLVE) {
		msg.answer = c->answer;
		msg.answer_len = sizeof(c->answer);
	}
	return repath_xprt_send(&c->dev, &msg);
}

static int say(struct kunit *test, u8 type, u64 order, u32 len)
{
	return say_for(test, NULL, type, order, len);
}

static int send(struct kunit *test, bool question)
{
	return say(test, question ? REPATH_MSG_RESOLVE : REPATH_MSG_READY, !question, 8);
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
	KUNIT_EXPECT_EQ(test, say(test, REPATH_MSG_MOVED, 0, 8), 0);
	KUNIT_EXPECT_FALSE(test, repath_xprt_busy(&of(test)->dev));
	KUNIT_EXPECT_EQ(test, send(test, false), 0);
	KUNIT_EXPECT_EQ(test, send(test, true), 0);
	KUNIT_EXPECT_TRUE(test, repath_xprt_busy(&of(test)->dev));
	end(test, xprt);
}

/* What was asked of a thousand hosts that are down, or said to them, does not keep out who is on a move. */
static void t_window_is_shared(struct kunit *test)
{
	struct repath_xprt *xprt = begin(test);
	u8 own[] = { REPATH_MSG_RESOLVE, REPATH_MSG_GONE, REPATH_MSG_HELLO, REPATH_MSG_MOVED };
	unsigned int i, k;

	fake.routes = true;
	for (k = 0; k < ARRAY_SIZE(own); k++)
		for (i = 0; i < 200; i++)
			KUNIT_ASSERT_EQ(test, say(test, own[k], 0, 8), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_RESOLVE], 16);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_GONE], 8);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_HELLO], 16);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_MOVED], 8);
	KUNIT_EXPECT_EQ(test, say(test, REPATH_MSG_PREPARE, 1, 8), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_PREPARE], 1);
	/* All of it is used by who has the right to it. */
	KUNIT_EXPECT_EQ(test, say(test, REPATH_MSG_KEYS, 2, 100 * REPATH_FRAG_DATA), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_KEYS], 15);
	KUNIT_EXPECT_EQ(test, xprt->inflight, 64u);
	end(test, xprt);
}

/* All that is under way is answered. */
static void answer_all(struct repath_xprt *xprt)
{
	fake.gives_up = true;
	repath_xprt_pump(xprt);
	flush_work(&xprt->pump);
	fake.gives_up = false;
}

/* One that has not the place of the other, without salt. */
static const void *payer_beside(const void *other)
{
	unsigned long payer = PAGE_SIZE;

	while (hash_64(payer, REPATH_XPRT_PAYERS_BITS) ==
	       hash_64((unsigned long)other, REPATH_XPRT_PAYERS_BITS))
		payer += PAGE_SIZE;
	return (const void *)payer;
}

/* Who lost a thousand peers, at hosts that are down, does not keep those waiting who look for theirs, nor those who lost one. */
static void t_payers_take_turns(struct kunit *test)
{
	static const u8 types[] = { REPATH_MSG_RESOLVE, REPATH_MSG_HELLO, REPATH_MSG_GONE, REPATH_MSG_PREPARE };
	struct repath_xprt *xprt = begin(test);
	unsigned int i, k;

	xprt->salt = 0;
	fake.later = payer_beside(test);
	fake.routes = true;
	for (k = 0; k < ARRAY_SIZE(types); k++) {
		u64 order = types[k] == REPATH_MSG_PREPARE;

		/* The order is of each process: these are a thousand's. */
		for (i = 0; i < 1000; i++)
			KUNIT_ASSERT_EQ(test, say_for(test, test, types[k], order * (i + 1), 8), 0);
	}
	flush_work(&xprt->pump);
	for (i = 0; i < 10; i++)
		answer_all(xprt);
	for (k = 0; k < ARRAY_SIZE(types); k++)
		for (i = 0; i < 3; i++)
			KUNIT_ASSERT_EQ(test, say_for(test, fake.later, types[k],
						      types[k] == REPATH_MSG_PREPARE ? 2000 + i : 0, 8), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.late, 0);
	answer_all(xprt);
	KUNIT_EXPECT_EQ(test, fake.late, 3 * (int)ARRAY_SIZE(types));
	end(test, xprt);
}

static void t_window_of_a_message(struct kunit *test)
{
	struct repath_xprt *xprt = begin(test);
	u64 order;

	fake.routes = true;
	KUNIT_EXPECT_EQ(test, say(test, REPATH_MSG_KEYS, 1, 100 * REPATH_FRAG_DATA), 0);
	KUNIT_EXPECT_EQ(test, say(test, REPATH_MSG_READY, 1, 8), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_KEYS], 16);
	/* It waits for the one before, to the same process. */
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_READY], 0);
	for (order = 2; order < 8; order++)
		KUNIT_EXPECT_EQ(test, say(test, REPATH_MSG_KEYS, order, 100 * REPATH_FRAG_DATA), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_KEYS], 64);
	end(test, xprt);
}

/* What waits, for a window or for the message before it, is not looked at each time that something is sent. */
static void t_who_waits_costs_nothing(struct kunit *test)
{
	struct repath_xprt *xprt = begin(test);
	int i;

	fake.routes = true;
	for (i = 0; i < 16384; i++)
		KUNIT_ASSERT_EQ(test, say(test, REPATH_MSG_RESOLVE, 0, 8), 0);
	for (i = 0; i < 1000; i++)
		KUNIT_ASSERT_EQ(test, say(test, REPATH_MSG_READY, 1 + i % 2, 8), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_RESOLVE], 16);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_READY], 2);
	fake.looked = 0;
	repath_xprt_pump(xprt);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.looked, 0);
	/* And each answer makes room for as many. */
	answer_all(xprt);
	KUNIT_EXPECT_EQ(test, of(test)->ended, 18);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_RESOLVE], 32);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_READY], 4);
	KUNIT_EXPECT_EQ(test, fake.looked, 18);
	end(test, xprt);
	KUNIT_EXPECT_EQ(test, of(test)->ended, 17384);
}

/* To each port, of each process, one after the other; and who waits there waits for nobody else. */
static void t_order_is_of_a_port(struct kunit *test)
{
	static const u8 said[] = { REPATH_MSG_GATE, REPATH_MSG_DRAINED, REPATH_MSG_INFO, REPATH_MSG_CONNECTED };
	struct repath_xprt *xprt = begin(test);
	unsigned int i, k, round;

	fake.routes = true;
	for (i = 0; i < ARRAY_SIZE(said); i++)
		for (k = 0; k < 6; k++) {
			of(test)->to.dlid = k % 2;
			of(test)->to.dgid.raw[15] = k / 2 == 2;
			KUNIT_ASSERT_EQ(test, say(test, said[i], 1 + k / 2 % 2, 8), 0);
		}
	flush_work(&xprt->pump);
	for (round = 0; round < ARRAY_SIZE(said); round++) {
		for (i = 0; i < ARRAY_SIZE(said); i++)
			KUNIT_EXPECT_EQ(test, fake.sent[said[i]], i <= round ? 6 : 0);
		KUNIT_EXPECT_EQ(test, of(test)->ended, 6 * round);
		answer_all(xprt);
	}
	KUNIT_EXPECT_EQ(test, of(test)->ended, 24);
	KUNIT_EXPECT_TRUE(test, RB_EMPTY_ROOT(&xprt->fronts));
	/* And the next one begins anew. */
	KUNIT_ASSERT_EQ(test, say(test, REPATH_MSG_GATE, 2, 8), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_GATE], 7);
	end(test, xprt);
}

/* A message whose route is looked for is looked at again when that is found, and only then. */
static void t_route_is_waited_for(struct kunit *test)
{
	struct repath_xprt *xprt = begin(test);

	KUNIT_ASSERT_EQ(test, say(test, REPATH_MSG_GATE, 1, 8), 0);
	KUNIT_ASSERT_EQ(test, say(test, REPATH_MSG_READY, 1, 8), 0);
	flush_work(&xprt->pump);
	KUNIT_ASSERT_EQ(test, fake.looked, 1);
	fake.routes = true;
	repath_xprt_pump(xprt);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.looked, 1);
	fake.ready(fake.ready_arg);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_GATE], 1);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_READY], 0);
	answer_all(xprt);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_READY], 1);
	end(test, xprt);
}

static int is_wanted(void *arg)
{
	return fake.forgotten ? -ECANCELED : 0;
}

/* Who connects a queue pair to one host after the other has nothing sent that is of no use any more. */
static void t_forgotten(struct kunit *test)
{
	struct repath_xprt *xprt = begin(test);
	struct ctx *c = of(test);
	int i;

	fake.routes = true;
	fake.check = is_wanted;
	for (i = 0; i < 200; i++)
		KUNIT_ASSERT_EQ(test, say(test, REPATH_MSG_HELLO, 0, 8), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_HELLO], 16);
	fake.forgotten = true;
	answer_all(xprt);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_HELLO], 16);
	KUNIT_EXPECT_EQ(test, c->ended, 200);
	KUNIT_EXPECT_EQ(test, c->canceled, 184);
	KUNIT_EXPECT_FALSE(test, repath_xprt_busy(&c->dev));
	end(test, xprt);
}

/* The carrier does not know who is silent: those who have said something do, once they are told. */
static int is_silent(void *arg)
{
	struct ctx *c = arg;

	return c->ended ? -ECANCELED : 0;
}

static void t_told_before_the_next(struct kunit *test)
{
	struct repath_xprt *xprt = begin(test);
	struct ctx *c = of(test);
	int i;

	fake.routes = true;
	fake.check = is_silent;
	for (i = 0; i < 200; i++)
		KUNIT_ASSERT_EQ(test, say(test, REPATH_MSG_GONE, 0, 8), 0);
	flush_work(&xprt->pump);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_GONE], 8);
	answer_all(xprt);
	KUNIT_EXPECT_EQ(test, fake.sent[REPATH_MSG_GONE], 8);
	KUNIT_EXPECT_EQ(test, c->ended, 200);
	KUNIT_EXPECT_EQ(test, c->canceled, 192);
	end(test, xprt);
}

static struct kunit_case xprt_cases[] = {
	KUNIT_CASE(t_ends_with_the_device),
	KUNIT_CASE(t_questions_hold_up_nobody),
	KUNIT_CASE(t_window_is_shared),
	KUNIT_CASE(t_payers_take_turns),
	KUNIT_CASE(t_window_of_a_message),
	KUNIT_CASE(t_who_waits_costs_nothing),
	KUNIT_CASE(t_order_is_of_a_port),
	KUNIT_CASE(t_route_is_waited_for),
	KUNIT_CASE(t_forgotten),
	KUNIT_CASE(t_told_before_the_next),
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
