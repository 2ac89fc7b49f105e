// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 41 */
/* kunit-objs: ../conn.o ../conn_move.o ../conn_qp.o ../gone.o ../known.o ../lid.o ../peer.o ../peer_wire.o ../silent.o ../stat.o */
/* What comes from the network, of which nobody knows for sure who has sent it. */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <repath_peer.h>

#include "../conn.h"
#include "../device.h"
#include "../gone.h"
#include "../known.h"
#include "../local.h"
#include "../netlink.h"
#include "../number.h"
#include "../op.h"
#include "../peer.h"
#include "../proc.h"
#include "../resolve.h"
#include "../silent.h"
#include "../track.h"
#include "../watch.h"
#include "../xprt.h"
#include "conn_fakes.h"
#include "fuzz.h"
#include "proc_fakes.h"
#include "../hello.c"

#define COOKIE		0xc001ULL	/* of the process here */
#define PEER_COOKIE	0xbeefULL	/* of the one there */
#define PEER_TOKEN	0x1234567ULL
#define PEER_QPN	99
#define QPN		17
#define HELD_MAX	6000
#define DOWN		9	/* the last byte of a GID */

/* What surrounds the three in the module. */
static struct {
	struct repath_proc proc;
	bool registered;
	struct repath_qp *qp;
	int send_err;		/* of the process's socket */
	int told;		/* messages that it got */
	u8 told_type;
	u32 told_conns, told_blob;
	struct repath_conn_rec told_rec;
	bool moved;
	int ready_told;
	int gones, gone_err;	/* that were sent, and what became of them */
	unsigned long patience;	/* of the carrier */
	bool gones_wait;	/* for the carrier to send them */
	unsigned int gone_late;	/* ms that those to DOWN are under way, until nobody has answered */
	int down_tried, up_heard;	/* to there, and to others */
	u8 gone_status;
	struct repath_qp *second;
	struct repath_device *dev;	/* that a process may name */
	bool sender;			/* the process speaks */
	bool sends;			/* the carrier takes messages */
	int uses;			/* of the device: for each HELLO one */
	int errno_told;		/* of EV_PEER_SENT */
	bool absent, between;		/* the queue pair; processes, between two devices */
	u32 sent_form;
	repath_xprt_done_fn sent_done;
	void *sent_arg;
	bool holds;			/* HELLOs, until they are answered; else none is sent */
	unsigned int held, answered;
	struct {
		repath_xprt_done_fn done;
		void *arg;
	} hellos[HELD_MAX];
} fake;

struct repath_device *repath_device_get_by_index(const struct net *net, u32 index)
{
	if (fake.dev)
		kref_get(&fake.dev->kref);
	return fake.dev;
}

struct repath_device *repath_device_next(const struct net *net, u32 index)
{
	return NULL;
}

struct net *repath_device_net(const struct repath_device *dev)
{
	return &init_net;
}

DEFINE_MUTEX(repath_op_mutex);

bool repath_op_between(const struct net *net, const struct repath_device *dev, u64 cookie)
{
	return fake.between;
}

bool repath_qp_is_there(struct repath_device *dev, u32 qpn)
{
	return !fake.absent;
}

/* Without a device nothing is sent but GONE; most of these cases are about what comes in. */
bool repath_device_use(struct repath_device *dev)
{
	return false;
}

int repath_local_gid(struct repath_device *dev, const struct repath_addr *addr, u8 gid[16])
{
	WRITE_ONCE(fake.uses, fake.uses + 1);
	return fake.holds ? 0 : -ENODEV;
}

struct repath_device *repath_local_device(const struct repath_device *dev,
					  const struct repath_addr *addr)
{
	return NULL;
}

void repath_device_unuse(struct repath_device *dev)
{
}

struct repath_proc *repath_proc_find(struct pid *tgid)
{
	return fake.registered ? repath_proc_get(&fake.proc) : NULL;
}

struct repath_proc *repath_proc_find_cookie(u64 cookie)
{
	return cookie == COOKIE ? repath_proc_get(&fake.proc) : NULL;
}

struct repath_proc *repath_proc_of(struct genl_info *info)
{
	return fake.sender ? repath_proc_get(&fake.proc) : NULL;
}

struct sk_buff *repath_nl_msg_new(u8 cmd, size_t size, void **hdr)
{
	*hdr = NULL;
	return nlmsg_new(size, GFP_KERNEL);
}

int repath_proc_send(struct repath_proc *proc, struct sk_buff *skb, void *hdr)
{
	struct nlattr *tb[REPATH_A_MAX + 1];

	if (__nla_parse(tb, REPATH_A_MAX, (struct nlattr *)skb->data, skb->len, NULL, 0, NULL))
		memset(tb, 0, sizeof(tb));
	if (tb[REPATH_A_ERRNO])
		fake.errno_told = nla_get_u32(tb[REPATH_A_ERRNO]);
	if (!fake.send_err && tb[REPATH_A_CONNS]) {
		fake.told++;
		fake.told_type = nla_get_u8(tb[REPATH_A_MSG_TYPE]);
		fake.told_conns = nla_len(tb[REPATH_A_CONNS]) / sizeof(fake.told_rec);
		memcpy(&fake.told_rec, nla_data(tb[REPATH_A_CONNS]), sizeof(fake.told_rec));
		fake.told_blob = tb[REPATH_A_BLOB] ? nla_len(tb[REPATH_A_BLOB]) : 0;
	}
	nlmsg_free(skb);
	return fake.send_err;
}

struct repath_qp *repath_qp_find(struct repath_device *dev, u32 qpn)
{
	struct repath_qp *rqp = fake.second && fake.second->qpn == qpn ? fake.second : fake.qp;

	if (!rqp || rqp->qpn != qpn)
		return NULL;
	kref_get(&rqp->kref);
	return rqp;
}

void repath_qp_release(struct kref *kref)
{
}

int repath_qp_walk_of(struct pid *tgid, repath_qp_fn fn, void *arg)
{
	return 0;
}

/* GONEs that the carrier has. */
struct held_gone {
	struct list_head node;
	struct repath_xprt_send msg;
	bool down;		/* nobody answers */
	bool sent;
	unsigned long at;	/* its time is over */
};

static DEFINE_SPINLOCK(gones_lock);
static LIST_HEAD(held_gones);
static void end_gones(struct work_struct *work);
static DECLARE_DELAYED_WORK(gones_work, end_gones);

static struct held_gone *next_held(void)
{
	struct held_gone *held, *next = NULL;

	spin_lock(&gones_lock);
	list_for_each_entry(held, &held_gones, node)
		if (!held->sent || !READ_ONCE(fake.gone_late) || time_after_eq(jiffies, held->at)) {
			next = held;
			list_del(&next->node);
			break;
		}
	spin_unlock(&gones_lock);
	return next;
}

static void keep_under_way(struct held_gone *held)
{
	held->sent = true;
	held->at = jiffies + msecs_to_jiffies(fake.gone_late);
	fake.down_tried++;
	spin_lock(&gones_lock);
	list_add_tail(&held->node, &held_gones);
	spin_unlock(&gones_lock);
}

static void end_gone(struct held_gone *held)
{
	int err = held->sent ? 0 : held->msg.check(held->msg.arg);

	if (!err && held->down && !held->sent && READ_ONCE(fake.gone_late)) {
		keep_under_way(held);
		return;
	}
	if (!err) {
		WRITE_ONCE(fake.gones, fake.gones + 1);
		err = held->sent ? -ETIMEDOUT : READ_ONCE(fake.gone_err);
		WRITE_ONCE(fake.up_heard, fake.up_heard + (!held->down && !err));
	}
	held->msg.done(held->msg.arg, err, fake.gone_status);
	kfree(held);
}

static void end_gones(struct work_struct *work)
{
	struct held_gone *held;

	while (!READ_ONCE(fake.gones_wait) && (held = next_held()))
		end_gone(held);
	spin_lock(&gones_lock);
	if (!list_empty(&held_gones))
		schedule_delayed_work(&gones_work, HZ / 20);
	spin_unlock(&gones_lock);
}

/* That were sent. */
static int gones(void)
{
	flush_delayed_work(&gones_work);
	return READ_ONCE(fake.gones);
}

static int hold_gone(const struct repath_xprt_send *msg)
{
	struct held_gone *held = kzalloc(sizeof(*held), GFP_KERNEL);

	if (!held)
		return -ENOMEM;
	held->msg = *msg;
	held->down = msg->to->dgid.raw[15] == DOWN;
	spin_lock(&gones_lock);
	list_add_tail(&held->node, &held_gones);
	spin_unlock(&gones_lock);
	mod_delayed_work(system_wq, &gones_work, 0);
	return 0;
}

/* HELLOs under repath_conn_mutex. */
static int hold_hello(const struct repath_xprt_send *msg)
{
	if (fake.held >= HELD_MAX)
		return -ENOMEM;
	fake.hellos[fake.held].done = msg->done;
	fake.hellos[fake.held].arg = msg->arg;
	WRITE_ONCE(fake.held, fake.held + 1);
	return 0;
}

int repath_xprt_send(struct repath_device *dev, const struct repath_xprt_send *msg)
{
	const struct repath_wire_msg *wire = msg->data;

	if (msg->type != REPATH_MSG_HELLO)
		fake.sent_form = be32_to_cpu(wire->form);
	kvfree(msg->data);
	if (msg->type == REPATH_MSG_HELLO)
		return hold_hello(msg);
	if (msg->type == REPATH_MSG_GONE)
		return hold_gone(msg);
	if (!fake.sends)
		return -ENODEV;
	fake.sent_done = msg->done;
	fake.sent_arg = msg->arg;
	return 0;
}

unsigned long repath_xprt_patience(void)
{
	return fake.patience;
}

int repath_xprt_status_errno(u8 status)
{
	return status;
}

/* Numbers are number_test's. */
bool repath_number_has_moved(const struct repath_proc *proc, const struct repath_device *dev)
{
	return fake.moved;
}

void repath_conn_tell(const struct repath_conn *conn)
{
	fake.ready_told++;
}

void repath_watch_device_removed(struct repath_device *dev)
{
}

struct ctx {
	struct repath_device dev;
	struct ib_device ibdev;
	struct ib_port_data ports[2];
	struct repath_qp qp, second;
	struct repath_user user;
	struct repath_conn *conn;
	struct {
		struct repath_wire_msg msg;
		struct repath_wire_rec recs[2];
		u8 blob[8];
	} __packed wire;
	struct repath_hello hello;
};

static struct ctx *of(struct kunit *test)
{
	return test->priv;
}

static int peer_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	if (!c)
		return -ENOMEM;
	memset(&fake, 0, sizeof(fake));
	kref_init(&fake.proc.kref);
	repath_proc_lists_init(&fake.proc);
	fake.proc.tgid = task_tgid(current);
	fake.proc.cookie = COOKIE;
	fake.registered = true;
	kref_init(&c->dev.kref);
	c->dev.index = 1;
	c->ibdev.phys_port_cnt = 1;
	c->ibdev.port_data = c->ports;
	c->dev.ibdev = &c->ibdev;
	kref_init(&c->qp.kref);
	c->qp.dev = &c->dev;
	c->qp.qpn = QPN;
	c->qp.type = IB_QPT_RC;
	c->user.pid = fake.proc.tgid;
	c->qp.user = &c->user;
	c->hello = (struct repath_hello){
		.src_gid = { 0xfe, [15] = 5 },
		.src_qpn = cpu_to_be32(PEER_QPN),
		.dst_qpn = cpu_to_be32(QPN),
		.token = cpu_to_be64(PEER_TOKEN),
		.cookie = cpu_to_be64(PEER_COOKIE),
	};
	test->priv = c;
	return repath_conn_init() ?: repath_hello_init() ?: repath_peer_init();
}

static void peer_exit(struct kunit *test)
{
	struct ctx *c = of(test);

	if (!c)
		return;
	repath_peer_exit();
	WRITE_ONCE(fake.gone_late, 0);
	flush_delayed_work(&gones_work);
	repath_gone_exit();
	repath_hello_device_removed(&c->dev);
	repath_hello_exit();
	mutex_lock(&repath_conn_mutex);
	repath_known_forget(&fake.proc);
	mutex_unlock(&repath_conn_mutex);
	repath_conn_exit();
	KUNIT_EXPECT_EQ(test, kref_read(&fake.proc.kref), 1u);
	KUNIT_EXPECT_EQ(test, kref_read(&c->dev.kref), 1u);
	KUNIT_EXPECT_EQ(test, kref_read(&c->qp.kref), 1u);
}

static u8 hello(struct kunit *test)
{
	return repath_hello_receive(&of(test)->dev, &of(test)->hello, sizeof(of(test)->hello));
}

/* The queue pair reaches RTR, connected to PEER_QPN behind GID fe..5. */
static struct repath_conn *connect(struct kunit *test)
{
	struct ctx *c = of(test);

	c->qp.state = IB_QPS_RTR;
	c->qp.path.has_av = true;
	c->qp.path.has_grh = true;
	c->qp.path.port = 1;
	c->qp.path.dest_qpn = PEER_QPN;
	c->qp.path.dgid.raw[0] = 0xfe;
	c->qp.path.dgid.raw[15] = 5;
	fake.qp = &c->qp;
	repath_conn_qp_connected(&c->qp);
	mutex_lock(&repath_conn_mutex);
	c->conn = repath_conn_by_qp(&c->dev, QPN);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_NOT_NULL(test, c->conn);
	return c->conn;
}

/* A READY connection, and a good message about it with two records and a blob of 8 bytes. */
static struct repath_conn *ready(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_conn *conn = connect(test);
	int i;

	KUNIT_ASSERT_EQ(test, (int)hello(test), (int)REPATH_PEER_OK);
	KUNIT_ASSERT_EQ(test, (int)conn->state, (int)REPATH_CONN_READY);
	c->wire.msg.nconns = cpu_to_be32(2);
	c->wire.msg.blob_len = cpu_to_be32(8);
	c->wire.msg.dst_cookie = cpu_to_be64(COOKIE);
	c->wire.msg.src_cookie = cpu_to_be64(PEER_COOKIE);
	c->wire.msg.src_gid[15] = 77;
	for (i = 0; i < 2; i++) {
		c->wire.recs[i].dst_token = cpu_to_be64(conn->token);
		c->wire.recs[i].src_token = cpu_to_be64(PEER_TOKEN);
		c->wire.recs[i].qpn = cpu_to_be32(55);
		c->wire.recs[i].count = cpu_to_be64(1ULL << 40);
	}
	return conn;
}

static u8 receive_len(struct kunit *test, u8 type, u32 len)
{
	return repath_peer_receive(&of(test)->dev, type, &of(test)->wire, len);
}

static u8 receive(struct kunit *test, u8 type)
{
	return receive_len(test, type, sizeof(of(test)->wire));
}

#define EXPECT_STATUS(got, wanted) KUNIT_EXPECT_EQ(test, (int)(got), (int)(wanted))

static void expect_early(struct kunit *test, bool expected)
{
	struct ctx *c = of(test);
	struct repath_hello from;
	bool early;

	mutex_lock(&repath_conn_mutex);
	early = repath_hello_is_early(&c->qp, &from);
	c->second = c->qp;
	c->second.qpn++;
	KUNIT_EXPECT_FALSE(test, repath_hello_is_early(&c->second, &from));
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, early, expected);
	if (early)
		KUNIT_EXPECT_EQ(test, be32_to_cpu(from.src_qpn), (u32)PEER_QPN);
}

static void t_hello_before_the_queue_pair(struct kunit *test)
{
	struct repath_conn *conn;

	expect_early(test, false);
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	/* Until this end is connected, too, it can not be moved: nobody would tell the other one. */
	expect_early(test, true);
	conn = connect(test);
	expect_early(test, false);
	KUNIT_EXPECT_EQ(test, conn->peer_token, PEER_TOKEN);
	KUNIT_EXPECT_EQ(test, conn->remote->cookie, PEER_COOKIE);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_READY);
}

/* To one that has gone, unless that may come back; what is there and not tracked is not gone. */
static void t_hello_to_one_that_is_absent(struct kunit *test)
{
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	fake.absent = true;
	EXPECT_STATUS(hello(test), REPATH_PEER_ABSENT);
	fake.between = true;
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	fake.between = false;
	/* What is connected is there. */
	connect(test);
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
}

/* The peer has said HELLO, and does not hear this end's: it is not taken for one without a module at once. */
static void t_hello_is_not_heard(struct kunit *test)
{
	struct repath_conn *conn;
	int i, uses;

	of(test)->hello.flags = cpu_to_be32(REPATH_HELLO_WANT);
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	conn = connect(test);
	uses = fake.uses;
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_NEW);
	for (i = 0; i < 200 && READ_ONCE(conn->state) == REPATH_CONN_NEW; i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_NO_ANSWER);
	KUNIT_EXPECT_EQ(test, READ_ONCE(fake.uses), uses + 3);
	msleep(300);
	KUNIT_EXPECT_EQ(test, READ_ONCE(fake.uses), uses + 3);
	/* It has heard it after all. */
	of(test)->hello.flags = 0;
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_READY);
}

static void t_hello_before_the_queue_pair_holds_up(struct kunit *test)
{
	struct ctx *c = of(test);

	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	expect_early(test, true);
	/* Whoever says it again does not hold up the device for ever. */
	c->dev.held_at -= 61 * HZ;
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	expect_early(test, false);
	c->dev.held_at -= 600 * HZ;
	expect_early(test, true);
	/* It was said to the one before that had the number. */
	c->qp.created_ns = ktime_get_boottime_ns() + 1;
	expect_early(test, false);
}

static void t_hello_of_a_stranger_before(struct kunit *test)
{
	struct repath_conn *conn;

	of(test)->hello.src_gid[15] = 6;
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	of(test)->hello.src_gid[15] = 5;
	of(test)->hello.src_qpn = cpu_to_be32(PEER_QPN + 1);
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	conn = connect(test);
	KUNIT_EXPECT_EQ(test, conn->peer_token, 0ull);
	KUNIT_EXPECT_NE(test, (int)conn->state, (int)REPATH_CONN_READY);
}

static void t_hello_of_a_stranger(struct kunit *test)
{
	struct repath_conn *conn = connect(test);

	of(test)->hello.src_gid[15] = 6;
	EXPECT_STATUS(hello(test), REPATH_PEER_NO_QP);
	of(test)->hello.src_gid[15] = 5;
	of(test)->hello.src_qpn = cpu_to_be32(PEER_QPN + 1);
	EXPECT_STATUS(hello(test), REPATH_PEER_NO_QP);
	KUNIT_EXPECT_EQ(test, conn->peer_token, 0ull);
}

static void t_hello_to_nobody(struct kunit *test)
{
	struct ctx *c = of(test);

	fake.qp = &c->qp;
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	fake.registered = false;
	EXPECT_STATUS(hello(test), REPATH_PEER_NO_SHIM);
	fake.registered = true;
	c->qp.type = IB_QPT_UD;
	EXPECT_STATUS(hello(test), REPATH_PEER_NO_QP);
	c->qp.kernel = true;
	EXPECT_STATUS(hello(test), REPATH_PEER_NO_SHIM);
}

static void t_hello_malformed(struct kunit *test)
{
	struct ctx *c = of(test);

	connect(test);
	EXPECT_STATUS(repath_hello_receive(&c->dev, &c->hello, sizeof(c->hello) - 1),
		      REPATH_PEER_MALFORMED);
	EXPECT_STATUS(repath_hello_receive(&c->dev, &c->hello, sizeof(c->hello) + 1),
		      REPATH_PEER_MALFORMED);
	c->hello.token = 0;
	EXPECT_STATUS(hello(test), REPATH_PEER_MALFORMED);
	c->hello.token = cpu_to_be64(1);
	c->hello.cookie = 0;
	EXPECT_STATUS(hello(test), REPATH_PEER_MALFORMED);
}

static void t_hello_with_another_token(struct kunit *test)
{
	struct repath_conn *conn = ready(test);

	/* Not believed, but asked back: somebody may lie, or the peer's module was loaded anew. */
	conn->hello_at = 0;
	of(test)->hello.token = cpu_to_be64(PEER_TOKEN + 1);
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	KUNIT_EXPECT_EQ(test, conn->peer_token, PEER_TOKEN);
	KUNIT_EXPECT_TRUE(test, conn->expect_token);
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, conn->peer_token, PEER_TOKEN + 1);
	KUNIT_EXPECT_FALSE(test, conn->expect_token);
	KUNIT_EXPECT_EQ(test, fake.ready_told, 0);
}

/* Who has moved told keys to a process that it knew by another number. */
static void t_hello_with_another_cookie(struct kunit *test)
{
	struct repath_conn *conn;

	fake.moved = true;
	conn = ready(test);
	KUNIT_EXPECT_EQ(test, fake.ready_told, 1);
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, fake.ready_told, 1);
	conn->expect_token = true;
	of(test)->hello.token = cpu_to_be64(PEER_TOKEN + 1);
	of(test)->hello.cookie = cpu_to_be64(PEER_COOKIE + 1);
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, conn->remote->cookie, PEER_COOKIE + 1);
	KUNIT_EXPECT_EQ(test, fake.ready_told, 2);
}

/* A stranger is first to answer what the peer is asked: it is the peer who knows what was known before. */
static void t_hello_of_a_liar(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	struct ctx *c = of(test);
	int i;

	conn->hello_at = 0;
	c->hello.token = cpu_to_be64(PEER_TOKEN + 1);
	c->hello.cookie = cpu_to_be64(PEER_COOKIE + 1);
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
	/* Also when this end moves: else the peer would not be heard until the end. */
	conn->moving = true;
	c->hello.token = cpu_to_be64(PEER_TOKEN);
	c->hello.cookie = cpu_to_be64(PEER_COOKIE);
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, conn->peer_token, PEER_TOKEN);
	KUNIT_EXPECT_EQ(test, conn->remote->cookie, PEER_COOKIE);
	c->hello.token = cpu_to_be64(PEER_TOKEN + 1);
	EXPECT_STATUS(hello(test), REPATH_PEER_BAD_TOKEN);
	conn->moving = false;

	/* One that has said something is no liar, and what is late is not believed for its age. */
	conn->hello_at = 0;
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
	for (i = 0; i < 2; i++)
		c->wire.recs[i].src_token = cpu_to_be64(PEER_TOKEN + 1);
	EXPECT_STATUS(receive(test, REPATH_MSG_PREPARE), REPATH_PEER_OK);
	conn->hello_at = jiffies;
	c->hello.token = cpu_to_be64(PEER_TOKEN);
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
	KUNIT_EXPECT_EQ(test, conn->peer_token, PEER_TOKEN + 1);
}

static void t_hello_while_moving(struct kunit *test)
{
	struct repath_conn *conn = ready(test);

	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_OK);
	KUNIT_EXPECT_TRUE(test, conn->moving);
	conn->hello_at = 0;
	of(test)->hello.token = cpu_to_be64(PEER_TOKEN + 1);
	EXPECT_STATUS(hello(test), REPATH_PEER_BAD_TOKEN);
	KUNIT_EXPECT_FALSE(test, conn->expect_token);
	KUNIT_EXPECT_EQ(test, conn->peer_token, PEER_TOKEN);
}

static void t_hellos_are_bounded(struct kunit *test)
{
	int i, kept = 0;

	for (i = 0; i < 1000; i++) {
		of(test)->hello.src_qpn = cpu_to_be32(1000 + i);
		kept += hello(test) == REPATH_PEER_PENDING;
	}
	KUNIT_EXPECT_EQ(test, kept, 256);
	EXPECT_STATUS(hello(test), REPATH_PEER_BUSY);
	/* One that is there already takes no more room. */
	of(test)->hello.src_qpn = cpu_to_be32(1000);
	EXPECT_STATUS(hello(test), REPATH_PEER_PENDING);
}

static void answer_hellos(int err, u8 status)
{
	unsigned int end = READ_ONCE(fake.held);

	for (; fake.answered < end; fake.answered++)
		fake.hellos[fake.answered].done(fake.hellos[fake.answered].arg, err, status);
}

/* One queue pair, connected to one host after the other: what is not answered is not kept for each. */
static void t_hellos_of_a_process_are_bounded(struct kunit *test)
{
	struct ctx *c = of(test);
	unsigned int i;

	fake.holds = true;
	connect(test);
	for (i = 0; i < 5000; i++) {
		c->qp.path.dest_qpn = 1000 + i;
		repath_conn_qp_connected(&c->qp);
	}
	KUNIT_EXPECT_EQ(test, fake.held, 1024u);
	/* The connection that is there is not forgotten. */
	answer_hellos(-ECANCELED, 0);
	for (i = 0; i < 500 && READ_ONCE(fake.held) == 1024; i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, READ_ONCE(fake.held), 1025u);
	answer_hellos(0, REPATH_PEER_OK);
	mutex_lock(&repath_conn_mutex);
	c->conn = repath_conn_by_qp(&c->dev, QPN);
	KUNIT_EXPECT_TRUE(test, c->conn->hello_acked);
	KUNIT_EXPECT_EQ(test, (int)c->conn->hello_tries, 0);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, fake.proc.hellos, 0u);
}

static unsigned int said_by(const struct repath_conn *conn)
{
	unsigned int i, n = 0;

	for (i = 0; i < READ_ONCE(fake.held); i++)
		n += fake.hellos[i].arg == conn;
	return n;
}

/* Another queue pair, to another one of the peer. */
static void connect_second(struct ctx *c)
{
	c->second = c->qp;
	kref_init(&c->second.kref);
	c->second.qpn = QPN + 1;
	c->second.conn_id = 0;
	c->second.path.dest_qpn = PEER_QPN + 1;
	fake.second = &c->second;
	repath_conn_qp_connected(&c->second);
}

/* A peer is busy, and then another one: when the first one is asked again is not put off. */
static void t_busy_ones_put_off_nobody(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_conn *conn;
	unsigned long planned;

	fake.holds = true;
	conn = connect(test);
	answer_hellos(0, REPATH_PEER_BUSY);
	planned = busy_work.timer.expires;
	connect_second(c);
	KUNIT_ASSERT_EQ(test, fake.held, 2u);
	msleep(20);
	answer_hellos(0, REPATH_PEER_BUSY);
	/* Or it has been asked already. */
	KUNIT_EXPECT_TRUE(test, busy_work.timer.expires == planned || said_by(conn) > 1);
	mutex_lock(&repath_conn_mutex);
	fake.holds = false;
	mutex_unlock(&repath_conn_mutex);
	answer_hellos(0, REPATH_PEER_OK);
}

static void t_message(struct kunit *test)
{
	struct repath_conn *conn = ready(test);

	EXPECT_STATUS(receive(test, REPATH_MSG_PREPARE), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, fake.told, 1);
	KUNIT_EXPECT_EQ(test, (int)fake.told_type, (int)REPATH_MSG_PREPARE);
	KUNIT_EXPECT_EQ(test, fake.told_conns, 2u);
	KUNIT_EXPECT_EQ(test, fake.told_blob, 8u);
	KUNIT_EXPECT_EQ(test, fake.told_rec.conn_id, conn->id);
	KUNIT_EXPECT_EQ(test, fake.told_rec.qpn, 55u);
	KUNIT_EXPECT_EQ(test, fake.told_rec.count, 1ULL << 40);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	/* Only INFO changes addresses. */
	KUNIT_EXPECT_EQ(test, conn->dest_qpn, (u32)PEER_QPN);
}

static void t_message_malformed(struct kunit *test)
{
	struct ctx *c = of(test);
	u32 len = sizeof(c->wire);

	ready(test);
	EXPECT_STATUS(receive_len(test, REPATH_MSG_GATE, len - 1), REPATH_PEER_MALFORMED);
	EXPECT_STATUS(receive_len(test, REPATH_MSG_GATE, len + 1), REPATH_PEER_MALFORMED);
	EXPECT_STATUS(receive_len(test, REPATH_MSG_GATE, 0), REPATH_PEER_MALFORMED);
	EXPECT_STATUS(receive_len(test, REPATH_MSG_GATE, sizeof(c->wire.msg) - 1),
		      REPATH_PEER_MALFORMED);
	EXPECT_STATUS(receive(test, REPATH_MSG_HELLO), REPATH_PEER_MALFORMED);
	EXPECT_STATUS(receive(test, __REPATH_MSG_MAX), REPATH_PEER_MALFORMED);
	c->wire.msg.nconns = 0;
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_MALFORMED);
	c->wire.msg.nconns = cpu_to_be32(REPATH_CONNS_MAX + 1);
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_MALFORMED);
	/* Sizes that add up only where they overflow. */
	c->wire.msg.nconns = cpu_to_be32(2 + (1 << 29));
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_MALFORMED);
	c->wire.msg.nconns = cpu_to_be32(3);
	c->wire.msg.blob_len = cpu_to_be32(8 - sizeof(struct repath_wire_rec));
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
}

static void t_message_with_wrong_tokens(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	struct ctx *c = of(test);
	u64 before = repath_peer_bad_tokens();

	c->wire.recs[0].src_token = cpu_to_be64(PEER_TOKEN + 1);
	c->wire.recs[1].dst_token = cpu_to_be64(conn->token + 1);
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_BAD_TOKEN);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	KUNIT_EXPECT_EQ(test, repath_peer_bad_tokens(), before + 2);
	/* One good record is told without the other, of which the sender hears. */
	c->wire.recs[1].dst_token = cpu_to_be64(conn->token);
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_SOME_BAD);
	KUNIT_EXPECT_EQ(test, fake.told, 1);
	KUNIT_EXPECT_EQ(test, fake.told_conns, 1u);
	KUNIT_EXPECT_TRUE(test, conn->moving);
}

static void t_message_with_wrong_cookies(struct kunit *test)
{
	struct ctx *c = of(test);

	ready(test);
	c->wire.msg.src_cookie = cpu_to_be64(PEER_COOKIE + 1);
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_BAD_TOKEN);
	c->wire.msg.src_cookie = cpu_to_be64(PEER_COOKIE);
	c->wire.msg.dst_cookie = cpu_to_be64(COOKIE + 1);
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_BAD_TOKEN);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
}

static void t_info(struct kunit *test)
{
	struct repath_conn *conn = ready(test);

	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_OK);
	/* What the shim has not got has not happened. */
	fake.send_err = -EAGAIN;
	EXPECT_STATUS(receive(test, REPATH_MSG_INFO), REPATH_PEER_BUSY);
	KUNIT_EXPECT_EQ(test, conn->dest_qpn, (u32)PEER_QPN);
	fake.send_err = 0;
	EXPECT_STATUS(receive(test, REPATH_MSG_INFO), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, conn->dest_qpn, 55u);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 77);
	KUNIT_EXPECT_FALSE(test, conn->addr.has_dmac);
	KUNIT_EXPECT_TRUE(test, conn->moving);
}

static u8 receive_of(struct kunit *test, u8 type, u16 round, u32 flags, u8 gid)
{
	struct ctx *c = of(test);
	int i;

	c->wire.msg.src_gid[15] = gid;
	for (i = 0; i < 2; i++)
		c->wire.recs[i].flags = cpu_to_be32((u32)round << REPATH_REC_ROUND_SHIFT | flags);
	return receive(test, type);
}

/*
 * It is said again, by who has heard it, when the peer is elsewhere: this end's messages must not go to where the
 * peer was, where another host may be by now. The shim hears of it, which may have to say that it is over.
 */
static void t_info_of_a_round_before(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	int told;

	EXPECT_STATUS(receive_of(test, REPATH_MSG_READY, 0xffff, 0, 5), REPATH_PEER_OK);
	EXPECT_STATUS(receive_of(test, REPATH_MSG_INFO, 0xffff, REPATH_REC_CONNECTED, 77), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 77);
	mutex_lock(&repath_conn_mutex);
	repath_conn_message(conn, REPATH_MSG_CONNECTED, 0, true);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_FALSE(test, conn->moving);

	told = fake.told;
	EXPECT_STATUS(receive_of(test, REPATH_MSG_INFO, 0xffff, 0, 66), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 77);
	KUNIT_EXPECT_EQ(test, fake.told, told + 1);
	EXPECT_STATUS(receive_of(test, REPATH_MSG_READY, 0, 0, 77), REPATH_PEER_OK);
	EXPECT_STATUS(receive_of(test, REPATH_MSG_INFO, 0xffff, 0, 66), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 77);
	EXPECT_STATUS(receive_of(test, REPATH_MSG_INFO, 0, 0, 88), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 88);

	/* One that was loaded anew counts anew. */
	conn->moving = false;
	conn->expect_token = true;
	of(test)->hello.token = cpu_to_be64(PEER_TOKEN + 1);
	memcpy(of(test)->hello.src_gid, conn->addr.dgid.raw, sizeof(of(test)->hello.src_gid));
	of(test)->hello.src_qpn = cpu_to_be32(55);
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
	of(test)->wire.recs[0].src_token = cpu_to_be64(PEER_TOKEN + 1);
	of(test)->wire.recs[1].src_token = cpu_to_be64(PEER_TOKEN + 1);
	conn->peer_gated = false;
	EXPECT_STATUS(receive_of(test, REPATH_MSG_INFO, 0x8000, 0, 99), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 99);
}

static void t_gone(struct kunit *test)
{
	struct repath_conn *conn = ready(test);

	/* The same connection twice in one message. */
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_OK);
	repath_conn_qp_gone(&of(test)->qp);
	KUNIT_EXPECT_PTR_EQ(test, conn->rqp, (struct repath_qp *)NULL);
	EXPECT_STATUS(receive(test, REPATH_MSG_GONE), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 0u);
	EXPECT_STATUS(receive(test, REPATH_MSG_GONE), REPATH_PEER_BAD_TOKEN);
}

/* A process ends, whose connection is suspended or not: how often GONE was sent at once. */
static int gone_is_said(struct kunit *test, bool suspended, int err, u8 status)
{
	int before = gones();

	fake.gone_status = status;
	WRITE_ONCE(fake.gone_err, err);
	ready(test);
	if (suspended)
		EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_OK);
	repath_conn_proc_left(&fake.proc);
	return gones() - before;
}

static void wait_gones(struct kunit *test, int count)
{
	int i;

	for (i = 0; i < 600 && READ_ONCE(fake.gones) < count; i++)
		msleep(50);
	KUNIT_EXPECT_GE(test, READ_ONCE(fake.gones), count);
}

static int dev_users(struct kunit *test)
{
	return kref_read(&of(test)->dev.kref);
}

/* Who has ended repeats nothing: the module does, until it is heard, or its device goes. */
static void t_gone_again(struct kunit *test)
{
	int i, users = kref_read(&of(test)->dev.kref);

	KUNIT_EXPECT_EQ(test, gone_is_said(test, true, 0, REPATH_PEER_OK), 1);
	KUNIT_EXPECT_EQ(test, kref_read(&of(test)->dev.kref), users);
	KUNIT_EXPECT_EQ(test, gone_is_said(test, true, -ESHUTDOWN, 0), 1);
	KUNIT_EXPECT_EQ(test, kref_read(&of(test)->dev.kref), users);

	/* Three times where it is refused. */
	KUNIT_EXPECT_EQ(test, gone_is_said(test, true, 0, REPATH_PEER_BAD_TOKEN), 1);
	KUNIT_EXPECT_EQ(test, kref_read(&of(test)->dev.kref), users + 1);
	wait_gones(test, 5);
	KUNIT_EXPECT_EQ(test, kref_read(&of(test)->dev.kref), users);

	KUNIT_EXPECT_EQ(test, gone_is_said(test, true, -ETIMEDOUT, 0), 1);
	KUNIT_EXPECT_EQ(test, kref_read(&of(test)->dev.kref), users + 1);
	wait_gones(test, 9);
	WRITE_ONCE(fake.gone_err, 0);
	for (i = 0; i < 600 && kref_read(&of(test)->dev.kref) > users; i++)
		msleep(50);
	KUNIT_EXPECT_EQ(test, kref_read(&of(test)->dev.kref), users);
}

/* Nobody answers for long, as if the peer's host were asleep: that may still end before its lease does. */
static void t_gone_unheard(struct kunit *test)
{
	int users = dev_users(test);

	KUNIT_EXPECT_EQ(test, gone_is_said(test, true, -ETIMEDOUT, 0), 1);
	wait_gones(test, 5);
	msleep(1500);
	KUNIT_EXPECT_EQ(test, dev_users(test), users + 1);
	/* Not as often as at first. */
	KUNIT_EXPECT_EQ(test, gones(), 5);
}

/* A host with the peers of a thousand connections that have ended does not answer: it is asked by a few; then it does. */
static void t_gone_from_many(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	int i, tried, users = dev_users(test);
	const struct repath_wire_msg wire = {};

	WRITE_ONCE(fake.gone_err, -ETIMEDOUT);
	for (i = 0; i < 1000; i++)
		repath_gone_say(&of(test)->dev, &conn->addr, &wire, sizeof(wire), false);
	/* All had been sent before the first one's time was over. */
	KUNIT_EXPECT_EQ(test, gones(), 1);
	KUNIT_EXPECT_EQ(test, dev_users(test), users + 1000);
	wait_gones(test, 2);
	tried = gones();
	KUNIT_EXPECT_LE(test, tried, 3);
	WRITE_ONCE(fake.gone_err, 0);
	wait_gones(test, tried + 1000);
	KUNIT_EXPECT_EQ(test, gones(), tried + 1000);
	KUNIT_EXPECT_EQ(test, dev_users(test), users);
}

/*
 * Another host with as many is down, and each is under way for longer than there is a pause: this
 * one waits for one of them.
 */
static void t_gone_beside_many(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	struct repath_addr down = conn->addr;
	const struct repath_wire_msg wire = {};
	int i, users = dev_users(test);

	down.dgid.raw[15] = DOWN;
	WRITE_ONCE(fake.gone_err, -ETIMEDOUT);
	for (i = 0; i < 1000; i++)
		repath_gone_say(&of(test)->dev, &down, &wire, sizeof(wire), true);
	gones();
	for (i = 0; i < 100; i++)
		repath_gone_say(&of(test)->dev, &conn->addr, &wire, sizeof(wire), true);
	gones();
	KUNIT_ASSERT_EQ(test, dev_users(test), users + 1100);
	WRITE_ONCE(fake.gone_late, 2300);
	WRITE_ONCE(fake.gone_err, 0);
	for (i = 0; i < 140 && READ_ONCE(fake.up_heard) < 100; i++)
		msleep(50);
	KUNIT_EXPECT_EQ(test, READ_ONCE(fake.up_heard), 100);
	msleep(5000);
	gones();
	KUNIT_EXPECT_LE(test, fake.down_tried, 5);
	KUNIT_EXPECT_GE(test, fake.down_tried, 2);
}

/* All that wait in the carrier when a port falls silent end at once, and none of them was sent. */
static void t_gone_from_very_many(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	const struct repath_wire_msg wire = {};
	int i, users = dev_users(test);

	WRITE_ONCE(fake.gone_err, -ETIMEDOUT);
	/* However slow the kernel is. */
	WRITE_ONCE(fake.gones_wait, true);
	for (i = 0; i < 20000; i++)
		repath_gone_say(&of(test)->dev, &conn->addr, &wire, sizeof(wire), false);
	WRITE_ONCE(fake.gones_wait, false);
	gones();
	KUNIT_EXPECT_EQ(test, dev_users(test), users + 20000);
	WRITE_ONCE(fake.gone_err, 0);
	for (i = 0; i < 2400 && dev_users(test) > users; i++)
		msleep(50);
	KUNIT_EXPECT_EQ(test, dev_users(test), users);
	KUNIT_EXPECT_GE(test, gones(), 20000);
}

/* What has waited in the carrier for longer than it would be said again was not said at all. */
static void t_gone_waits_for_the_carrier(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	const struct repath_wire_msg wire = {};
	int i, users = dev_users(test);

	WRITE_ONCE(fake.gone_err, -ETIMEDOUT);
	WRITE_ONCE(fake.gones_wait, true);
	for (i = 0; i < 2; i++)
		repath_gone_say(&of(test)->dev, &conn->addr, &wire, sizeof(wire), false);
	msleep(21000);
	WRITE_ONCE(fake.gones_wait, false);
	KUNIT_EXPECT_EQ(test, gones(), 1);
	KUNIT_EXPECT_EQ(test, dev_users(test), users + 2);
	wait_gones(test, 5);
}

/* What was sent to a port before that has spoken, and times out afterwards, says nothing of it. */
static void t_port_has_spoken(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	struct repath_device *dev = &of(test)->dev;

	fake.patience = 2 * HZ;
	mutex_lock(&repath_conn_mutex);
	repath_silent_add(dev, &conn->addr, -ETIMEDOUT);
	KUNIT_EXPECT_TRUE(test, repath_silent_is(dev, &conn->addr));
	repath_silent_answered(dev, &conn->addr);
	KUNIT_EXPECT_FALSE(test, repath_silent_is(dev, &conn->addr));
	repath_silent_add(dev, &conn->addr, -ETIMEDOUT);
	KUNIT_EXPECT_FALSE(test, repath_silent_is(dev, &conn->addr));
	mutex_unlock(&repath_conn_mutex);
	msleep(2100);
	mutex_lock(&repath_conn_mutex);
	repath_silent_add(dev, &conn->addr, -ETIMEDOUT);
	KUNIT_EXPECT_TRUE(test, repath_silent_is(dev, &conn->addr));
	repath_silent_forget(conn->addr.dgid.raw, 0);
	repath_silent_add(dev, &conn->addr, -ETIMEDOUT);
	KUNIT_EXPECT_FALSE(test, repath_silent_is(dev, &conn->addr));
	/* The network knows no way to it, or no module is there: that is so now. */
	repath_silent_add(dev, &conn->addr, -EHOSTUNREACH);
	KUNIT_EXPECT_TRUE(test, repath_silent_is(dev, &conn->addr));
	repath_silent_answered(dev, &conn->addr);
	repath_silent_add(dev, &conn->addr, -ENOPROTOOPT);
	KUNIT_EXPECT_FALSE(test, repath_silent_is(dev, &conn->addr));
	mutex_unlock(&repath_conn_mutex);
}

/* A peer that is not suspended waits for nothing: a few times are enough. */
static void t_gone_in_vain(struct kunit *test)
{
	int i, users = dev_users(test);

	KUNIT_EXPECT_EQ(test, gone_is_said(test, false, -ETIMEDOUT, 0), 1);
	KUNIT_EXPECT_EQ(test, dev_users(test), users + 1);
	wait_gones(test, 5);
	for (i = 0; i < 600 && dev_users(test) > users; i++)
		msleep(50);
	KUNIT_EXPECT_EQ(test, dev_users(test), users);
	KUNIT_EXPECT_EQ(test, gones(), 5);
}

/* The peer has been away, or asleep, for longer than this end has waited for it. */
static void t_gone_is_answered(struct kunit *test)
{
	static const u8 types[] = {
		REPATH_MSG_PREPARE, REPATH_MSG_GATE, REPATH_MSG_DRAINED, REPATH_MSG_READY,
		REPATH_MSG_INFO, REPATH_MSG_CONNECTED, REPATH_MSG_ABORT,
	};
	struct repath_conn *conn = ready(test);
	int i, told;

	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, gones(), 0);
	mutex_lock(&repath_conn_mutex);
	repath_peer_tell_gone(conn);
	mutex_unlock(&repath_conn_mutex);
	told = fake.told;
	/* Two records each. */
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		EXPECT_STATUS(receive(test, types[i]), REPATH_PEER_OK);
		KUNIT_EXPECT_EQ(test, gones(), i + 1);
		/* Who asks at once, and again and again, is not answered each time. */
		EXPECT_STATUS(receive(test, types[i]), REPATH_PEER_OK);
		KUNIT_EXPECT_EQ(test, gones(), i + 1);
		conn->gone_at -= HZ;
	}
	KUNIT_EXPECT_EQ(test, fake.told, told);
	KUNIT_EXPECT_EQ(test, conn->dest_qpn, (u32)PEER_QPN);
	/* It may say so, too. */
	EXPECT_STATUS(receive(test, REPATH_MSG_GONE), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, gones(), i);
}

/* The peer is gone while it is suspended: the application has its queue pair connected to another one. */
static void t_gone_connected_again(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	struct ctx *c = of(test);
	u32 id = conn->id;

	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_OK);
	mutex_lock(&repath_conn_mutex);
	repath_peer_tell_gone(conn);
	mutex_unlock(&repath_conn_mutex);
	c->qp.state = IB_QPS_RESET;
	repath_conn_qp_reset(&c->qp);
	c->qp.state = IB_QPS_RTR;
	c->qp.path.dest_qpn = PEER_QPN + 1;
	repath_conn_qp_connected(&c->qp);
	mutex_lock(&repath_conn_mutex);
	conn = repath_conn_by_qp(&c->dev, QPN);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	KUNIT_EXPECT_NE(test, conn->id, id);
	KUNIT_EXPECT_EQ(test, conn->dest_qpn, PEER_QPN + 1u);
	c->hello.src_qpn = cpu_to_be32(PEER_QPN + 1);
	EXPECT_STATUS(hello(test), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_READY);
}

/* One peer is not heard; that others are, all the time, does not put off what is to be said to it again. */
static void t_gone_amidst_others(struct kunit *test)
{
	int i, users = dev_users(test);

	KUNIT_EXPECT_EQ(test, gone_is_said(test, true, -ETIMEDOUT, 0), 1);
	for (i = 0; i < 60 && dev_users(test) > users; i++) {
		KUNIT_EXPECT_GE(test, gone_is_said(test, true, 0, REPATH_PEER_OK), 1);
		msleep(50);
	}
	KUNIT_EXPECT_EQ(test, dev_users(test), users);
}

/* PEER_SEND of the process here to the one there; @bind: on the device, as INFO does. */
static int send(struct kunit *test, u8 type, const struct repath_conn_rec *recs, u32 nconns,
		bool bind)
{
	struct nlattr *attrs[REPATH_A_MAX + 1];
	struct genl_info info = { .attrs = attrs };
	struct sk_buff *skb = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	int err;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	err = nla_put_u32(skb, REPATH_A_PEER_ID, of(test)->conn->remote->id) ?:
	      nla_put_u8(skb, REPATH_A_MSG_TYPE, type) ?:
	      nla_put_u64_64bit(skb, REPATH_A_MSG_ID, 7, REPATH_A_PAD) ?:
	      nla_put(skb, REPATH_A_CONNS, nconns * sizeof(*recs), recs);
	if (!err && bind)
		err = nla_put_u32(skb, REPATH_A_DEV_INDEX, 1) ?:
		      nla_put_u32(skb, REPATH_A_PORT, 1) ?:
		      nla_put_u32(skb, REPATH_A_SGID_INDEX, 0);
	if (!err)
		err = __nla_parse(attrs, REPATH_A_MAX, (struct nlattr *)skb->data, skb->len, NULL,
				  0, NULL);
	KUNIT_EXPECT_EQ(test, err, 0);
	fake.sender = true;
	if (!err)
		err = repath_peer_send_cmd(NULL, &info);
	fake.sender = false;
	nlmsg_free(skb);
	return err;
}

/* What is refused because not all is known there is said at length; the shim says it again. */
static void t_send_unproven(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	struct repath_conn_rec recs[8];
	int i;

	for (i = 0; i < ARRAY_SIZE(recs); i++)
		recs[i] = (struct repath_conn_rec){ .conn_id = conn->id };
	fake.sends = true;
	KUNIT_ASSERT_EQ(test, send(test, REPATH_MSG_PREPARE, recs, 8, false), 0);
	KUNIT_EXPECT_EQ(test, fake.sent_form, (u32)REPATH_WIRE_PACKED);
	fake.sent_done(fake.sent_arg, 0, REPATH_PEER_OK);
	KUNIT_ASSERT_EQ(test, send(test, REPATH_MSG_PREPARE, recs, 8, false), 0);
	KUNIT_EXPECT_EQ(test, fake.sent_form, (u32)REPATH_WIRE_PACKED);
	fake.sent_done(fake.sent_arg, 0, REPATH_PEER_UNPROVEN);
	KUNIT_ASSERT_EQ(test, send(test, REPATH_MSG_PREPARE, recs, 8, false), 0);
	KUNIT_EXPECT_EQ(test, fake.sent_form, (u32)REPATH_WIRE_AT_LENGTH);
	fake.sent_done(fake.sent_arg, 0, REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake.proc.sending), 0);
}

/* Who was at this GID, as the process here knows? Where is it now; 0: nobody. */
static u8 has_left(u8 gid)
{
	struct repath_addr at = { .dgid.raw = { 0xfe, [15] = gid } }, now;
	u64 cookie;
	u32 n;

	mutex_lock(&repath_conn_mutex);
	n = repath_known_find(&fake.proc, &at, &now, &cookie, 1);
	mutex_unlock(&repath_conn_mutex);
	return n ? now.dgid.raw[15] : 0;
}

/*
 * Whoever is asked by its old address must have been there: a peer can say that it is where somebody else is, and then
 * that it has left. What has been understood there is no lie.
 */
static void t_lies_of_a_place(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	struct repath_conn_rec rec = { .conn_id = conn->id };
	static const u8 statuses[] = { REPATH_PEER_BAD_TOKEN, REPATH_PEER_OK };
	u8 gid, i;

	of(test)->wire.msg.src_gid[0] = 0xfe;
	fake.sends = true;
	EXPECT_STATUS(receive_of(test, REPATH_MSG_GATE, 1, 0, 5), REPATH_PEER_OK);
	EXPECT_STATUS(receive_of(test, REPATH_MSG_INFO, 1, 0, 6), REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)has_left(5), 6);
	for (i = 0, gid = 6; i < 2; i++, gid++) {
		KUNIT_ASSERT_EQ(test, send(test, REPATH_MSG_READY, &rec, 1, false), 0);
		fake.sent_done(fake.sent_arg, 0, statuses[i]);
		EXPECT_STATUS(receive_of(test, REPATH_MSG_INFO, 1, 0, gid + 1), REPATH_PEER_OK);
		KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], gid + 1);
		KUNIT_EXPECT_EQ(test, (int)has_left(5), gid + 1);
		KUNIT_EXPECT_EQ(test, (int)has_left(gid), statuses[i] ? 0 : gid + 1);
	}
	/* What is under way keeps who it goes to. */
	KUNIT_ASSERT_EQ(test, send(test, REPATH_MSG_READY, &rec, 1, false), 0);
	repath_conn_qp_gone(&of(test)->qp);
	mutex_lock(&repath_conn_mutex);
	conn = repath_conn_by_id(rec.conn_id);
	if (conn)
		repath_conn_destroy(conn);
	mutex_unlock(&repath_conn_mutex);
	fake.sent_done(fake.sent_arg, 0, REPATH_PEER_OK);
}

/* A host that an administrator has named, and that knows no such connection, says nothing of the peer's end. */
static void t_send_where_told(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	struct repath_conn_rec rec = { .conn_id = conn->id };

	fake.sends = true;
	conn->told = true;
	KUNIT_ASSERT_EQ(test, send(test, REPATH_MSG_READY, &rec, 1, false), 0);
	/* What is heard meanwhile is not of where it goes. */
	conn->told = false;
	fake.sent_done(fake.sent_arg, 0, REPATH_PEER_BAD_TOKEN);
	KUNIT_EXPECT_EQ(test, fake.errno_told, EHOSTUNREACH);
	KUNIT_ASSERT_EQ(test, send(test, REPATH_MSG_READY, &rec, 1, false), 0);
	fake.sent_done(fake.sent_arg, 0, REPATH_PEER_BAD_TOKEN);
	KUNIT_EXPECT_EQ(test, fake.errno_told, (int)REPATH_PEER_BAD_TOKEN);
}

/* The shim's last word is the module's to repeat: the process may end before it is heard. */
static void t_send_gone(struct kunit *test)
{
	struct repath_conn_rec rec = { .conn_id = ready(test)->id };
	int users = dev_users(test);

	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_OK);
	of(test)->dev.xprt = test;	/* there is one */
	WRITE_ONCE(fake.gone_err, -ETIMEDOUT);
	KUNIT_ASSERT_EQ(test, send(test, REPATH_MSG_GONE, &rec, 1, false), 0);
	KUNIT_EXPECT_EQ(test, gones(), 1);
	repath_conn_proc_left(&fake.proc);
	wait_gones(test, 2);
	WRITE_ONCE(fake.gone_err, 0);
	wait_gones(test, 3);
	KUNIT_EXPECT_LT(test, dev_users(test), users);
}

/* A connection that is named many times has one end. */
static void t_send_gone_often(struct kunit *test)
{
	struct repath_conn *conn = ready(test);
	struct repath_conn_rec recs[8];
	int i;

	for (i = 0; i < ARRAY_SIZE(recs); i++)
		recs[i] = (struct repath_conn_rec){ .conn_id = conn->id };
	EXPECT_STATUS(receive(test, REPATH_MSG_GATE), REPATH_PEER_OK);
	of(test)->dev.xprt = test;
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, send(test, REPATH_MSG_GONE, recs, 8, false), 0);
	KUNIT_EXPECT_EQ(test, gones(), 1);
}

/*
 * The peer knows another token than this end: both say theirs again for what is said again, or nothing would
 * ever be heard, as the answer to PREPARE of a peer whose HELLO was damaged.
 */
static void t_send_with_wrong_token(struct kunit *test)
{
	static const struct {
		u8 type, status;
		bool again;
	} sent[] = {
		{ REPATH_MSG_PREPARE, REPATH_PEER_BAD_TOKEN, true },
		{ REPATH_MSG_PREPARED, REPATH_PEER_BAD_TOKEN, true },
		{ REPATH_MSG_PREPARED, REPATH_PEER_SOME_BAD, true },
		{ REPATH_MSG_PREPARED, REPATH_PEER_OK, false },
		{ REPATH_MSG_KEYS, REPATH_PEER_BAD_TOKEN, true },
		{ REPATH_MSG_KEYS_ACK, REPATH_PEER_BAD_TOKEN, true },
		{ REPATH_MSG_ABORTED, REPATH_PEER_BAD_TOKEN, false },
	};
	struct repath_conn *conn = ready(test);
	struct repath_conn_rec rec = { .conn_id = conn->id };
	int i;

	fake.sends = true;
	for (i = 0; i < ARRAY_SIZE(sent); i++) {
		conn->hello_at = jiffies - 2 * HZ;
		conn->expect_token = false;
		KUNIT_ASSERT_EQ(test, send(test, sent[i].type, &rec, 1, false), 0);
		fake.sent_done(fake.sent_arg, 0, sent[i].status);
		KUNIT_EXPECT_EQ_MSG(test, conn->expect_token, sent[i].again, "%d", i);
	}
}

/* Who binds one connection to another's queue pair ends that one, which it names as well. */
static void t_send_ends_what_it_names(struct kunit *test)
{
	struct repath_conn *a = ready(test), *b;
	struct ctx *c = of(test);
	struct repath_conn_rec recs[2];

	connect_second(c);
	c->hello.src_qpn = cpu_to_be32(PEER_QPN + 1);
	c->hello.dst_qpn = cpu_to_be32(QPN + 1);
	c->hello.token = cpu_to_be64(PEER_TOKEN + 1);
	KUNIT_ASSERT_EQ(test, (int)hello(test), (int)REPATH_PEER_OK);
	mutex_lock(&repath_conn_mutex);
	b = repath_conn_by_qp(&c->dev, QPN + 1);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_NOT_NULL(test, b);

	recs[0] = (struct repath_conn_rec){ .conn_id = b->id, .qpn = QPN + 1 };
	recs[1] = (struct repath_conn_rec){ .conn_id = a->id, .qpn = QPN + 1 };
	fake.dev = &c->dev;
	fake.sends = true;
	KUNIT_EXPECT_EQ(test, send(test, REPATH_MSG_INFO, recs, 2, true), -ENOENT);
	KUNIT_EXPECT_PTR_EQ(test, a->rqp, &c->second);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 1u);
}

/* Good messages with some bytes turned, of every type, to a connection that is made again. */
static void t_fuzz(struct kunit *test)
{
	struct ctx *c = of(test);
	u32 i, len, status[16] = {};
	bool made = false;
	void *copy;
	u8 got;

	fuzz_begin();
	for (i = 0; i < rounds; i++) {
		mutex_lock(&repath_conn_mutex);
		c->conn = repath_conn_by_qp(&c->dev, QPN);
		mutex_unlock(&repath_conn_mutex);
		if (!c->conn) {
			c->qp.path.dgid.raw[15] = 5;
			ready(test);
			made = true;
		}
		if (!fuzz_below(4)) {
			len = sizeof(c->hello);
			copy = fuzz_copy(&c->hello, &len);
			KUNIT_ASSERT_NOT_NULL(test, copy);
			got = repath_hello_receive(&c->dev, copy, len);
		} else {
			len = sizeof(c->wire);
			copy = fuzz_copy(&c->wire, &len);
			KUNIT_ASSERT_NOT_NULL(test, copy);
			got = repath_peer_receive(&c->dev, fuzz_below(__REPATH_MSG_MAX + 2), copy,
						  len);
		}
		kfree(copy);
		if (got >= ARRAY_SIZE(status))
			break;
		status[got]++;
		/* Whoever has the tokens may say where it is now: go back. */
		if (fuzz_below(50))
			continue;
		mutex_lock(&repath_conn_mutex);
		c->conn = repath_conn_by_qp(&c->dev, QPN);
		if (c->conn)
			repath_conn_message(c->conn, REPATH_MSG_GONE, REPATH_REC_DEAD, false);
		mutex_unlock(&repath_conn_mutex);
	}
	KUNIT_EXPECT_EQ(test, i, rounds);
	KUNIT_EXPECT_TRUE(test, made);
	KUNIT_EXPECT_GT(test, status[REPATH_PEER_OK], rounds / 20);
	KUNIT_EXPECT_GT(test, status[REPATH_PEER_MALFORMED], rounds / 20);
	KUNIT_EXPECT_GT(test, status[REPATH_PEER_BAD_TOKEN], rounds / 100);
	KUNIT_EXPECT_GT(test, fake.told, (int)rounds / 50);
	kunit_info(test, "%u messages: %u taken, %u malformed, %u of strangers, seed %u", i,
		   status[REPATH_PEER_OK], status[REPATH_PEER_MALFORMED],
		   status[REPATH_PEER_BAD_TOKEN], seed);
}

static struct kunit_case peer_cases[] = {
	KUNIT_CASE(t_hello_before_the_queue_pair),
	KUNIT_CASE(t_hello_to_one_that_is_absent),
	KUNIT_CASE(t_hello_is_not_heard),
	KUNIT_CASE(t_hello_before_the_queue_pair_holds_up),
	KUNIT_CASE(t_hello_of_a_stranger_before),
	KUNIT_CASE(t_hello_of_a_stranger),
	KUNIT_CASE(t_hello_to_nobody),
	KUNIT_CASE(t_hello_malformed),
	KUNIT_CASE(t_hello_with_another_token),
	KUNIT_CASE(t_hello_with_another_cookie),
	KUNIT_CASE(t_hello_of_a_liar),
	KUNIT_CASE(t_hello_while_moving),
	KUNIT_CASE(t_hellos_are_bounded),
	KUNIT_CASE(t_hellos_of_a_process_are_bounded),
	KUNIT_CASE(t_busy_ones_put_off_nobody),
	KUNIT_CASE(t_message),
	KUNIT_CASE(t_message_malformed),
	KUNIT_CASE(t_message_with_wrong_tokens),
	KUNIT_CASE(t_message_with_wrong_cookies),
	KUNIT_CASE(t_info),
	KUNIT_CASE(t_info_of_a_round_before),
	KUNIT_CASE(t_gone),
	KUNIT_CASE(t_gone_again),
	KUNIT_CASE(t_gone_unheard),
	KUNIT_CASE(t_gone_from_many),
	KUNIT_CASE(t_gone_beside_many),
	KUNIT_CASE(t_gone_from_very_many),
	KUNIT_CASE(t_gone_waits_for_the_carrier),
	KUNIT_CASE(t_port_has_spoken),
	KUNIT_CASE(t_gone_in_vain),
	KUNIT_CASE(t_gone_is_answered),
	KUNIT_CASE(t_gone_connected_again),
	KUNIT_CASE(t_gone_amidst_others),
	KUNIT_CASE(t_send_unproven),
	KUNIT_CASE(t_lies_of_a_place),
	KUNIT_CASE(t_send_where_told),
	KUNIT_CASE(t_send_gone),
	KUNIT_CASE(t_send_gone_often),
	KUNIT_CASE(t_send_with_wrong_token),
	KUNIT_CASE(t_send_ends_what_it_names),
	KUNIT_CASE(t_fuzz),
	{}
};

static struct kunit_suite peer_suite = {
	.name = "repath_peer",
	.init = peer_init,
	.exit = peer_exit,
	.test_cases = peer_cases,
};
kunit_test_suite(peer_suite);
MODULE_LICENSE("GPL");
