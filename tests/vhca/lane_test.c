// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 6 */
/* kunit-objs: arbiter.o credit.o */
/*
 * Queue pairs that wait for room in a lane: each is woken when there is some, whatever those before
 * it do with their turn. The pump and the engine are counters here; a case is both.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "qp.h"
#include "wire_link.h"

#define LANE 2
#define QPS 40

static struct {
	struct vhca_dev dev;
	struct rvt_qp qp[QPS];
	struct vhca_qp vqp[QPS];
	unsigned int woken[QPS], order[QPS], n;
} *bed;

static struct vhca_port *port;

static bool fake_schedule(struct rvt_qp *qp)
{
	unsigned int i = qp - bed->qp;

	if (!bed->woken[i]++)
		bed->order[bed->n++ % QPS] = i;
	return true;
}

#define vhca_qp_schedule(qp) fake_schedule(qp)
#define vhca_wire_kick(port) do { } while (0)

#include "lane.c"

static int begin(struct kunit *test)
{
	unsigned int i;

	bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);
	if (!bed)
		return -ENOMEM;
	bed->dev.nports = 1;
	port = &bed->dev.port[0];
	port->dev = &bed->dev;
	port->state = IB_PORT_ACTIVE;
	port->wire.up = true;
	vhca_lanes_init(port);
	for (i = 0; i < VHCA_DATA_VLS; i++)
		port->wire.credits.peer_limit[i] = 1 << 20;
	for (i = 0; i < QPS; i++) {
		spin_lock_init(&bed->qp[i].s_lock);
		init_waitqueue_head(&bed->qp[i].wait);
		atomic_set(&bed->qp[i].refcount, 1);
		bed->qp[i].priv = &bed->vqp[i];
		bed->vqp[i].qp = &bed->qp[i];
		INIT_LIST_HEAD(&bed->vqp[i].waiting);
	}
	return 0;
}

/* A queue pair asks for room; if there is some it puts a packet in. */
static bool put_in(struct kunit *test, unsigned int i, unsigned int lane)
{
	struct vhca_packet *packet;
	unsigned long flags;
	bool room;

	spin_lock_irqsave(&bed->qp[i].s_lock, flags);
	room = vhca_lane_room(port, lane, &bed->vqp[i]);
	if (room) {
		packet = kzalloc(sizeof(*packet) + 64, GFP_ATOMIC);
		if (packet) {
			packet->lane = lane;
			packet->size = 64;
			vhca_lane_put(port, packet, &bed->vqp[i]);
		}
		vhca_lane_done(&bed->vqp[i]);
	}
	spin_unlock_irqrestore(&bed->qp[i].s_lock, flags);
	return room;
}

/* The first one fills the lane; so many others wait. */
static void fill(struct kunit *test, unsigned int waiters)
{
	unsigned int i;

	for (i = 0; i < VHCA_LANE_DEPTH; i++)
		KUNIT_ASSERT_TRUE(test, put_in(test, 0, LANE));
	for (i = 1; i <= waiters; i++)
		KUNIT_ASSERT_FALSE(test, put_in(test, i, LANE));
	KUNIT_EXPECT_EQ(test, bed->n, 0u);
}

static bool take(void)
{
	bool blocked;
	struct vhca_packet *packet = vhca_lane_next(port, &blocked);

	kfree(packet);
	return packet;
}

/* Nobody is waiting, and no reference to a queue pair is left. */
static void check_end(struct kunit *test)
{
	unsigned int i;

	while (take())
		;
	for (i = 0; i < QPS; i++) {
		KUNIT_EXPECT_TRUE(test, list_empty(&bed->vqp[i].waiting));
		KUNIT_EXPECT_EQ(test, atomic_read(&bed->qp[i].refcount), 1);
		KUNIT_EXPECT_EQ(test, atomic_read(&bed->vqp[i].queued), 0);
	}
}

/* Engines of those that were woken run, in that order, with nothing to send, until none is woken. */
static void run_idle(void)
{
	unsigned int i;

	for (i = 0; i < bed->n; i++)
		vhca_lane_pass(&bed->vqp[bed->order[i]]);
}

/* First come first woken, from when the lane is half empty. */
static void order(struct kunit *test)
{
	unsigned int i;

	fill(test, 5);
	for (i = 0; i < VHCA_LANE_DEPTH / 2 - 1; i++)
		KUNIT_EXPECT_TRUE(test, take());
	KUNIT_EXPECT_EQ(test, bed->n, 0u);
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_TRUE(test, take());
		KUNIT_EXPECT_EQ(test, bed->n, i + 1);
		KUNIT_EXPECT_EQ(test, bed->order[i], i + 1);
	}
	check_end(test);
	KUNIT_EXPECT_EQ(test, bed->n, 5u);
}

/* The lane is emptied at once, as a link that goes down does; who is woken sends nothing. */
static void flushed(struct kunit *test)
{
	fill(test, 5);
	vhca_lanes_flush(port);
	KUNIT_EXPECT_EQ(test, bed->n, 1u);
	run_idle();
	KUNIT_EXPECT_EQ(test, bed->n, 5u);
	check_end(test);
}

/* More wait than packets are taken out; none of those woken has anything to put in. */
static void many(struct kunit *test)
{
	fill(test, QPS - 1);
	while (take())
		;
	KUNIT_EXPECT_LT(test, bed->n, QPS - 1u);
	run_idle();
	KUNIT_EXPECT_EQ(test, bed->n, QPS - 1u);
	check_end(test);
}

/* Who was woken is destroyed before its engine has run; another one waits in another lane by then. */
static void gone(struct kunit *test)
{
	unsigned int i;

	fill(test, 3);
	vhca_lane_forget(&bed->dev, &bed->vqp[0]);
	KUNIT_ASSERT_EQ(test, bed->n, 1u);
	vhca_lane_forget(&bed->dev, &bed->vqp[1]);
	KUNIT_ASSERT_EQ(test, bed->n, 2u);
	KUNIT_EXPECT_EQ(test, bed->order[1], 2u);
	for (i = 0; i < VHCA_LANE_DEPTH; i++)
		KUNIT_EXPECT_TRUE(test, put_in(test, 4, LANE + 1));
	KUNIT_EXPECT_FALSE(test, put_in(test, 2, LANE + 1));
	KUNIT_EXPECT_EQ(test, bed->n, 3u);
	KUNIT_EXPECT_EQ(test, bed->order[2], 3u);
	check_end(test);
}

/*
 * A queue pair whose path changes neither waits in the old lane nor counts what it has there as on its
 * way; that leaves, and still takes up room.
 */
static void moved(struct kunit *test)
{
	unsigned long flags;
	unsigned int i;

	fill(test, 2);
	for (i = 0; i < 2; i++) {
		spin_lock_irqsave(&bed->qp[i].s_lock, flags);
		vhca_lane_moved(&bed->dev, &bed->vqp[i]);
		spin_unlock_irqrestore(&bed->qp[i].s_lock, flags);
		KUNIT_EXPECT_TRUE(test, list_empty(&bed->vqp[i].waiting));
		KUNIT_EXPECT_EQ(test, atomic_read(&bed->qp[i].refcount), 1);
		KUNIT_EXPECT_EQ(test, atomic_read(&bed->vqp[i].queued), 0);
		KUNIT_EXPECT_TRUE(test, put_in(test, i, LANE + 1));
		KUNIT_EXPECT_EQ(test, atomic_read(&bed->vqp[i].queued), 1);
	}
	KUNIT_EXPECT_EQ(test, port->lane[LANE].count, VHCA_LANE_DEPTH);
	KUNIT_EXPECT_FALSE(test, put_in(test, 3, LANE));
	for (i = 0; i < VHCA_LANE_DEPTH; i++)
		KUNIT_EXPECT_TRUE(test, take());
	KUNIT_ASSERT_GE(test, bed->n, 1u);
	KUNIT_EXPECT_EQ(test, bed->order[0], 2u);
	check_end(test);
}

static bool has_room(unsigned int i, unsigned int lane)
{
	unsigned long flags;
	bool room;

	spin_lock_irqsave(&bed->qp[i].s_lock, flags);
	room = vhca_lane_room(port, lane, &bed->vqp[i]);
	spin_unlock_irqrestore(&bed->qp[i].s_lock, flags);
	return room;
}

static void last_word(void)
{
	struct vhca_packet *packet = kzalloc(sizeof(*packet) + 64, GFP_KERNEL);

	if (!packet)
		return;
	packet->lane = LANE;
	packet->size = 64;
	vhca_lane_put(port, packet, NULL);
}

/* The last place is one queue pair's, until it has used it or not; what asks for none has an end, too. */
static void bound(struct kunit *test)
{
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < VHCA_LANE_DEPTH - 1; i++)
		KUNIT_ASSERT_TRUE(test, put_in(test, 0, LANE));
	KUNIT_EXPECT_TRUE(test, has_room(1, LANE));
	KUNIT_EXPECT_FALSE(test, has_room(2, LANE));
	/* Asked again it still is one place; and it can be given back. */
	KUNIT_EXPECT_TRUE(test, has_room(1, LANE));
	spin_lock_irqsave(&bed->qp[1].s_lock, flags);
	vhca_lane_done(&bed->vqp[1]);
	vhca_lane_done(&bed->vqp[1]);
	spin_unlock_irqrestore(&bed->qp[1].s_lock, flags);
	KUNIT_EXPECT_TRUE(test, put_in(test, 3, LANE));
	KUNIT_EXPECT_FALSE(test, put_in(test, 1, LANE));
	KUNIT_EXPECT_EQ(test, port->lane_most, VHCA_LANE_DEPTH);
	for (i = 0; i < 2 * VHCA_LANE_DEPTH; i++)
		last_word();
	KUNIT_EXPECT_EQ(test, port->lane[LANE].count, 2 * VHCA_LANE_DEPTH);
	KUNIT_EXPECT_EQ(test, port->lane_most, 2 * VHCA_LANE_DEPTH);
	KUNIT_EXPECT_EQ(test, port->ibp.n_pkt_drops, (u64)VHCA_LANE_DEPTH);
	check_end(test);
	KUNIT_EXPECT_EQ(test, port->lane[LANE].places, 0u);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(order),
	KUNIT_CASE(flushed),
	KUNIT_CASE(many),
	KUNIT_CASE(gone),
	KUNIT_CASE(moved),
	KUNIT_CASE(bound),
	{}
};

static struct kunit_suite suite = {
	.name = "vhca_lane",
	.init = begin,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_LICENSE("GPL");
