// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 44 */
/* kunit-objs: ../known.o ../number.o ../resolve.o ../resolve_ask.o ../watch.o ../stat.o */
/*
 * Which queue pair is meant by a number, where several bear it, who is asked, and what is believed.
 * The carrier is a fake: what is sent is kept, and answered by the case.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <repath_peer.h>

#include "../conn.h"
#include "../device.h"
#include "../known.h"
#include "../local.h"
#include "../netlink.h"
#include "../number.h"
#include "../op.h"
#include "../proc.h"
#include "../resolve.h"
#include "../silent.h"
#include "../track.h"
#include "../watch.h"
#include "fake_ibdev.h"
#include "fuzz.h"
#include "proc_fakes.h"

/* What silent.c takes for now. */
static unsigned long skew;

static unsigned long now(void)
{
	return jiffies + skew;
}

#undef jiffies
#define jiffies now()
#include "../silent.c"
#undef jiffies

#define MINE	0xc001ULL	/* cookies */
#define OTHER	0xc002ULL
#define REMOTE	0xbeefULL
#define SENT	64

DEFINE_MUTEX(repath_conn_mutex);
DEFINE_MUTEX(repath_op_mutex);

static struct {
	struct repath_device *dev;
	struct repath_proc proc[2];
	struct pid pid[2];
	struct repath_qp *qp[4];
	struct repath_conn *conn;
	/* to the process */
	int told, counts;
	u32 told_err, told_qpn, told_lid, count;
	u32 followed;
	u8 told_gid;
	bool told_moved;
	bool other_asks;	/* and not the first of the processes */
	/* to the network */
	struct {
		u8 type;
		struct repath_addr to;
		u8 data[128];
		void *answer;
		repath_xprt_check_fn check;
		repath_xprt_done_fn done;
		void *arg;
	} sent[SENT];
	int nsent, send_err;
	bool deaf;		/* the asker's socket is full */
	/* processes, one of them OTHER, are between two devices; they come to this one */
	bool between, arriving;
	bool lease_asked, lease_over;
} fake;

bool repath_conn_lease_is_over(unsigned long since)
{
	fake.lease_asked = true;
	return fake.lease_over;
}

struct repath_device *repath_device_next(const struct net *net, u32 index)
{
	return index <= fake.dev->index ? repath_device_get(fake.dev) : NULL;
}

struct repath_device *repath_device_get_by_index(const struct net *net, u32 index)
{
	return index == fake.dev->index ? repath_device_get(fake.dev) : NULL;
}

struct net *repath_device_net(const struct repath_device *dev)
{
	return &init_net;
}

bool repath_op_between(const struct net *net, const struct repath_device *dev, u64 cookie)
{
	return (dev ? fake.arriving : fake.between) && (!cookie || cookie == OTHER);
}

/* Those that are away are kept_test's. */
bool repath_op_keeps_at(const struct repath_device *dev, const u8 gid[16], u8 type, u32 qpn,
			u64 cookie, const struct repath_proc *owner,
			const struct repath_qp *named)
{
	return false;
}

bool repath_device_use(struct repath_device *dev)
{
	return true;
}

void repath_device_unuse(struct repath_device *dev)
{
}

struct repath_device *repath_local_device(const struct repath_device *dev,
					  const struct repath_addr *addr)
{
	return NULL;
}

int repath_local_gid(struct repath_device *dev, const struct repath_addr *addr, u8 gid[16])
{
	gid[0] = 0xfe;
	return 0;
}

struct repath_proc *repath_proc_find(struct pid *tgid)
{
	int i;

	for (i = 0; i < 2; i++)
		if (fake.proc[i].tgid == tgid)
			return repath_proc_get(&fake.proc[i]);
	return NULL;
}

struct repath_proc *repath_proc_find_cookie(u64 cookie)
{
	int i;

	for (i = 0; i < 2; i++)
		if (fake.proc[i].cookie == cookie)
			return repath_proc_get(&fake.proc[i]);
	return NULL;
}

struct repath_proc *repath_proc_of(struct genl_info *info)
{
	return repath_proc_get(&fake.proc[fake.other_asks]);
}

int repath_proc_and_device_of(struct genl_info *info, struct repath_proc **proc,
			      struct repath_device **dev)
{
	*proc = repath_proc_of(info);
	*dev = repath_device_get(fake.dev);
	return 0;
}

void repath_proc_for_each(void (*fn)(struct repath_proc *proc, void *arg), void *arg)
{
	fn(&fake.proc[0], arg);
}

void repath_proc_tell_numbers(struct repath_proc *proc, u32 count)
{
	fake.counts++;
	fake.count = count;
}

struct sk_buff *repath_nl_msg_new(u8 cmd, size_t size, void **hdr)
{
	*hdr = NULL;
	return nlmsg_new(size, GFP_KERNEL);
}

int repath_proc_send(struct repath_proc *proc, struct sk_buff *skb, void *hdr)
{
	struct nlattr *tb[REPATH_A_MAX + 1];

	if (fake.deaf) {
		nlmsg_free(skb);
		return -EAGAIN;
	}
	if (!__nla_parse(tb, REPATH_A_MAX, (struct nlattr *)skb->data, skb->len, NULL, 0, NULL)) {
		fake.told++;
		fake.told_err = nla_get_u32(tb[REPATH_A_ERRNO]);
		fake.told_qpn = tb[REPATH_A_QPN] ? nla_get_u32(tb[REPATH_A_QPN]) : 0;
		fake.told_gid = tb[REPATH_A_DGID] ? ((u8 *)nla_data(tb[REPATH_A_DGID]))[15] : 0;
		fake.told_lid = tb[REPATH_A_DLID] ? nla_get_u32(tb[REPATH_A_DLID]) : 0;
		fake.told_moved = tb[REPATH_A_MOVED];
	}
	nlmsg_free(skb);
	return 0;
}

struct repath_qp *repath_qp_find(struct repath_device *dev, u32 qpn)
{
	int i;

	for (i = 0; i < 4; i++)
		if (fake.qp[i] && fake.qp[i]->qpn == qpn) {
			kref_get(&fake.qp[i]->kref);
			return fake.qp[i];
		}
	return NULL;
}

void repath_qp_follow(void)
{
	fake.followed++;
}

void repath_qp_unfollow(void)
{
	fake.followed--;
}

void repath_qp_release(struct kref *kref)
{
}

int repath_conn_for_each(int (*fn)(struct repath_conn *conn, void *arg), void *arg)
{
	return fake.conn ? fn(fake.conn, arg) : 0;
}

struct repath_conn *repath_conn_by_qp(struct repath_device *dev, u32 qpn)
{
	return fake.conn && fake.conn->qpn == qpn ? fake.conn : NULL;
}

unsigned long repath_xprt_patience(void)
{
	return 0;
}

int repath_xprt_send(struct repath_device *dev, const struct repath_xprt_send *msg)
{
	int n = fake.nsent;

	if (fake.send_err || n == SENT || msg->len > sizeof(fake.sent[n].data)) {
		kvfree(msg->data);
		return -ENODEV;
	}
	fake.sent[n].type = msg->type;
	fake.sent[n].to = *msg->to;
	memcpy(fake.sent[n].data, msg->data, msg->len);
	fake.sent[n].answer = msg->answer;
	fake.sent[n].check = msg->check;
	fake.sent[n].done = msg->done;
	fake.sent[n].arg = msg->arg;
	fake.nsent++;
	kvfree(msg->data);
	return 0;
}

/* The answer to what was sent as number @n. */
static void answer(int n, int err, u8 status, u64 tag, u32 qpn, u32 flags)
{
	struct repath_resolved *to = fake.sent[n].answer;

	if (!err && !status && to)
		*to = (struct repath_resolved){ cpu_to_be64(tag), cpu_to_be32(qpn),
						cpu_to_be32(flags) };
	fake.sent[n].done(fake.sent[n].arg, err, status);
}

/* A port without an SA is enough of a device. */
struct ctx {
	struct ib_device *ibdev;
	struct repath_device dev;
	struct repath_qp qp[4];
	struct repath_user user[2];
	struct repath_conn conn;
	struct repath_remote remote;
};

static struct ctx *of(struct kunit *test)
{
	return test->priv;
}

static int number_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	int i;

	if (!c)
		return -ENOMEM;
	memset(&fake, 0, sizeof(fake));
	c->ibdev = fake_ibdev_add("repath_number%d", RDMA_CORE_PORT_RAW_PACKET);
	if (!c->ibdev)
		return -ENODEV;
	fake.dev = &c->dev;
	kref_init(&c->dev.kref);
	c->dev.index = 1;
	c->dev.ibdev = c->ibdev;
	for (i = 0; i < 2; i++) {
		kref_init(&fake.proc[i].kref);
		repath_proc_lists_init(&fake.proc[i]);
		fake.proc[i].tgid = &fake.pid[i];
		fake.proc[i].cookie = i ? OTHER : MINE;
		c->user[i].pid = &fake.pid[i];
	}
	for (i = 0; i < 4; i++) {
		kref_init(&c->qp[i].kref);
		c->qp[i].dev = &c->dev;
		c->qp[i].type = IB_QPT_RC;
		c->qp[i].user = &c->user[i / 2];
		c->qp[i].qpn = 100 + i;
		c->qp[i].state = IB_QPS_INIT;
		fake.qp[i] = &c->qp[i];
	}
	c->conn.remote = &c->remote;
	c->remote.cookie = REMOTE + 1;
	test->priv = c;
	repath_number_init();
	return repath_resolve_init() ?: repath_watch_init();
}

/* Nothing stays behind: no reference, no entry. */
static void number_exit(struct kunit *test)
{
	struct ctx *c = of(test);
	int i;

	if (!c)
		return;
	mutex_lock(&repath_conn_mutex);
	for (i = 0; i < 2; i++) {
		repath_resolve_proc_left(&fake.proc[i]);
		repath_watch_proc_left(&fake.proc[i]);
		repath_number_proc_left(&fake.proc[i]);
		repath_known_forget(&fake.proc[i]);
	}
	repath_silent_device_removed(&c->dev);
	mutex_unlock(&repath_conn_mutex);
	repath_watch_exit();
	repath_resolve_exit();
	repath_number_exit();
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, kref_read(&c->qp[i].kref), 1u);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, kref_read(&fake.proc[i].kref), 1u);
	KUNIT_EXPECT_EQ(test, kref_read(&c->dev.kref), 1u);
	KUNIT_EXPECT_EQ(test, fake.proc[0].questions, 0u);
	KUNIT_EXPECT_EQ(test, fake.proc[0].ud_questions, 0u);
	KUNIT_EXPECT_EQ(test, repath_number_count(), 0u);
	KUNIT_EXPECT_EQ(test, fake.followed, 0u);
	fake_ibdev_del(c->ibdev);
}

static void known_as(struct kunit *test, int qp, u32 number)
{
	struct ctx *c = of(test);

	mutex_lock(&repath_conn_mutex);
	repath_number_moved(&fake.proc[qp / 2], &c->dev);
	KUNIT_EXPECT_EQ(test, repath_number_set(&fake.proc[qp / 2], &c->qp[qp], number), 0);
	mutex_unlock(&repath_conn_mutex);
}

static void connect(struct repath_qp *rqp, u32 dest, u8 gid)
{
	rqp->state = IB_QPS_RTS;
	rqp->path.has_av = rqp->path.has_grh = true;
	rqp->path.dest_qpn = dest;
	rqp->path.dgid.raw[0] = 0xfe;
	rqp->path.dgid.raw[15] = gid;
	rqp->path.port = 1;
}

#define ASKER_QPN	7
#define ASKER_GID	9
#define ASKER_LID	0x17

/* Somebody far away asks for @qpn. */
static u8 asked(struct kunit *test, u32 qpn, u64 cookie, u64 token, struct repath_resolved *out)
{
	struct repath_resolve ask = {
		.dst_gid = { 0xfe, [15] = 1 },
		.src_gid = { 0xfe, [15] = ASKER_GID },
		.dst_cookie = cpu_to_be64(cookie),
		.src_cookie = cpu_to_be64(REMOTE),
		.token = cpu_to_be64(token),
		.qpn = cpu_to_be32(qpn),
		.src_qpn = cpu_to_be32(token ? 0 : ASKER_QPN),
		.src_lid = cpu_to_be32(ASKER_LID),
		.qp_type = token ? IB_QPT_UD : IB_QPT_RC,
	};

	return repath_resolve_answer(&of(test)->dev, &ask, sizeof(ask), out);
}

static void expect_found(struct kunit *test, u32 qpn, u32 now)
{
	struct repath_resolved out;

	KUNIT_EXPECT_EQ(test, (int)asked(test, qpn, 0, 0, &out), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(out.qpn), now);
}

static void expect_status(struct kunit *test, u32 qpn, u8 status)
{
	struct repath_resolved out;

	KUNIT_EXPECT_EQ(test, (int)asked(test, qpn, 0, 0, &out), (int)status);
	KUNIT_EXPECT_EQ(test, out.qpn, 0u);
}

static void number_unmoved(struct kunit *test)
{
	struct repath_resolved out;

	expect_found(test, 101, 101);
	asked(test, 101, 0, 0, &out);
	KUNIT_EXPECT_EQ(test, out.flags, 0u);
	expect_status(test, 55, REPATH_PEER_NO_QP);
	of(test)->qp[1].type = IB_QPT_UC;
	expect_status(test, 101, REPATH_PEER_NO_QP);
}

/* It is told some time after it is so. */
static void expect_none_told(struct kunit *test)
{
	int i;

	for (i = 0; i < 1000 && READ_ONCE(fake.count); i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, fake.count, 0u);
}

static void number_moved(struct kunit *test)
{
	struct repath_resolved out;

	known_as(test, 0, 17);
	expect_found(test, 17, 100);
	asked(test, 17, 0, 0, &out);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(out.flags), (u32)REPATH_RESOLVED_MOVED);
	/* Nobody was told its new number. */
	expect_status(test, 100, REPATH_PEER_NO_QP);
	/* Its process's next one has moved, too, whatever its number. */
	asked(test, 101, 0, 0, &out);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(out.flags), (u32)REPATH_RESOLVED_MOVED);
	asked(test, 102, 0, 0, &out);
	KUNIT_EXPECT_EQ(test, out.flags, 0u);
	/* A second move */
	known_as(test, 0, 17);
	KUNIT_EXPECT_EQ(test, fake.counts, 1);
	KUNIT_EXPECT_EQ(test, fake.count, 1u);
	KUNIT_EXPECT_EQ(test, fake.followed, 1u);
	mutex_lock(&repath_conn_mutex);
	repath_number_qp_gone(&of(test)->qp[0]);
	mutex_unlock(&repath_conn_mutex);
	expect_none_told(test);
	fake.qp[0] = NULL;
	expect_status(test, 17, REPATH_PEER_NO_QP);
}

/* A process that has such a number, and has it no more, and so on, does not wake all others each time. */
static void numbers_come_and_go(struct kunit *test)
{
	int i;

	for (i = 0; i < 1000; i++) {
		known_as(test, 0, 17);
		KUNIT_EXPECT_EQ(test, repath_number_count(), 1u);
		known_as(test, 0, 100);
		/* Who comes now is told what the others know. */
		KUNIT_EXPECT_EQ(test, repath_number_count(), 1u);
	}
	known_as(test, 0, 17);
	KUNIT_EXPECT_EQ(test, fake.counts, 1);
	KUNIT_EXPECT_EQ(test, fake.count, 1u);
	known_as(test, 0, 100);
	expect_none_told(test);
	KUNIT_EXPECT_EQ(test, fake.counts, 2);
	KUNIT_EXPECT_EQ(test, repath_number_count(), 0u);
	known_as(test, 0, 17);
	KUNIT_EXPECT_EQ(test, fake.counts, 3);
	KUNIT_EXPECT_EQ(test, fake.count, 1u);
}

/* A number that is one process's by birth and another's on the device. */
static void number_collides(struct kunit *test)
{
	struct ctx *c = of(test);

	known_as(test, 0, 102);
	expect_status(test, 102, REPATH_PEER_AMBIGUOUS);
	/* The stranger's is connected: the one that is not must be meant. */
	connect(&c->qp[2], 1234, 5);
	expect_found(test, 102, 100);
	connect(&c->qp[2], ASKER_QPN, ASKER_GID);
	expect_found(test, 102, 102);
	/* The same number at another address is another. */
	connect(&c->qp[2], ASKER_QPN, 5);
	expect_found(test, 102, 100);
	/* Both elsewhere */
	connect(&c->qp[0], 1234, 6);
	expect_status(test, 102, REPATH_PEER_AMBIGUOUS);
	connect(&c->qp[0], ASKER_QPN, ASKER_GID);
	expect_found(test, 102, 100);
	c->qp[2].gone = true;
	expect_found(test, 102, 100);
	KUNIT_EXPECT_EQ(test, kref_read(&c->qp[2].kref), 1u);
}

static void connect_by_lid(struct repath_qp *rqp, u32 dest, u32 lid)
{
	connect(rqp, dest, 0);
	rqp->path.has_grh = false;
	memset(&rqp->path.dgid, 0, sizeof(rqp->path.dgid));
	rqp->path.dlid = lid;
}

/* Connected by LID alone: the asker's number at another LID is another's. */
static void number_by_lid(struct kunit *test)
{
	struct ctx *c = of(test);

	known_as(test, 0, 102);
	connect_by_lid(&c->qp[0], ASKER_QPN, ASKER_LID + 1);
	expect_found(test, 102, 102);
	connect_by_lid(&c->qp[0], ASKER_QPN, ASKER_LID);
	expect_found(test, 102, 100);
	connect_by_lid(&c->qp[2], ASKER_QPN, ASKER_LID + 1);
	expect_found(test, 102, 100);
	connect_by_lid(&c->qp[0], ASKER_QPN, ASKER_LID + 2);
	expect_status(test, 102, REPATH_PEER_AMBIGUOUS);

	connect_by_lid(&c->qp[1], ASKER_QPN, ASKER_LID + 1);
	c->conn.qpn = 101;
	c->conn.state = REPATH_CONN_READY;
	fake.conn = &c->conn;
	expect_status(test, 101, REPATH_PEER_TAKEN);
	/* With two LIDs to a port, as the own one has, it is the same. */
	c->ibdev->port_data[1].cache.lmc = 1;
	connect_by_lid(&c->qp[1], ASKER_QPN, ASKER_LID - 1);
	expect_found(test, 101, 101);
	connect_by_lid(&c->qp[1], ASKER_QPN, ASKER_LID + 1);
	expect_status(test, 101, REPATH_PEER_TAKEN);
}

/* Who bears a number may not be the one who is known by it, and who is not there may come. */
static void number_between(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_resolved out;

	fake.between = true;
	expect_found(test, 101, 101);
	expect_status(test, 55, REPATH_PEER_BUSY);
	fake.arriving = true;
	expect_status(test, 102, REPATH_PEER_BUSY);
	KUNIT_EXPECT_EQ(test, kref_read(&c->qp[2].kref), 1u);
	known_as(test, 0, 17);
	expect_found(test, 17, 100);
	connect(&c->qp[2], ASKER_QPN, ASKER_GID);
	expect_found(test, 102, 102);
	/* A process that is not on its way has what it has. */
	KUNIT_EXPECT_EQ(test, (int)asked(test, 101, MINE, 0, &out), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)asked(test, 55, MINE, 0, &out), (int)REPATH_PEER_NO_QP);
	KUNIT_EXPECT_EQ(test, (int)asked(test, 55, OTHER, 0, &out), (int)REPATH_PEER_BUSY);
	KUNIT_EXPECT_EQ(test, (int)asked(test, 103, OTHER, 0, &out), (int)REPATH_PEER_BUSY);
	fake.between = fake.arriving = false;
	expect_found(test, 101, 101);
	expect_status(test, 55, REPATH_PEER_NO_QP);
}

static void number_of_process(struct kunit *test)
{
	struct repath_resolved out;

	known_as(test, 0, 102);
	KUNIT_EXPECT_EQ(test, (int)asked(test, 102, MINE, 0, &out), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(out.qpn), 100u);
	KUNIT_EXPECT_EQ(test, (int)asked(test, 102, OTHER, 0, &out), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(out.qpn), 102u);
	KUNIT_EXPECT_EQ(test, (int)asked(test, 102, 0xdead, 0, &out), (int)REPATH_PEER_NO_QP);
}

static void number_taken(struct kunit *test)
{
	struct ctx *c = of(test);

	connect(&c->qp[2], 1234, 5);
	/* Not confirmed by the other end: it may have been meant for the asker. */
	expect_found(test, 102, 102);
	c->conn.qpn = 102;
	c->conn.state = REPATH_CONN_READY;
	fake.conn = &c->conn;
	expect_status(test, 102, REPATH_PEER_TAKEN);
	/* Of the same process: it connects anew. */
	c->remote.cookie = REMOTE;
	expect_found(test, 102, 102);
	c->remote.cookie = REMOTE + 1;
	connect(&c->qp[2], ASKER_QPN, ASKER_GID);
	expect_found(test, 102, 102);
}

static void number_malformed(struct kunit *test)
{
	struct repath_resolve ask = { .qpn = cpu_to_be32(101), .qp_type = IB_QPT_RC };
	struct repath_moved moved = { .cookie = cpu_to_be64(1) };
	struct repath_device *dev = &of(test)->dev;
	struct repath_resolved out;

#define EXPECT_BAD(status) KUNIT_EXPECT_EQ(test, (int)(status), (int)REPATH_PEER_MALFORMED)
	EXPECT_BAD(repath_resolve_answer(dev, &ask, sizeof(ask), &out));
	ask.src_cookie = cpu_to_be64(REMOTE);
	EXPECT_BAD(repath_resolve_answer(dev, &ask, sizeof(ask) - 1, &out));
	ask.qpn = cpu_to_be32(0x1000000);
	EXPECT_BAD(repath_resolve_answer(dev, &ask, sizeof(ask), &out));
	ask.qpn = cpu_to_be32(101);
	ask.reserved = 1;
	EXPECT_BAD(repath_resolve_answer(dev, &ask, sizeof(ask), &out));
	EXPECT_BAD(repath_resolve_moved(&moved, sizeof(moved)));
	moved.token = cpu_to_be64(5);
	EXPECT_BAD(repath_resolve_moved(&moved, sizeof(moved) - 1));
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)),
			(int)REPATH_PEER_BAD_TOKEN);
}

/* --- asking --- */

static int request_at(struct kunit *test, u64 id, u8 type, u32 qpn, u8 gid, u32 lid)
{
	struct nlattr *attrs[REPATH_A_MAX + 1] = {};
	struct sk_buff *skb = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	struct genl_info info = { .attrs = attrs };
	u8 dgid[16] = { 0xfe, [15] = gid };
	int err;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	genl_info_net_set(&info, &init_net);
	nla_put_u64_64bit(skb, REPATH_A_MSG_ID, id, REPATH_A_PAD);
	nla_put_u32(skb, REPATH_A_DEV_INDEX, fake.dev->index);
	nla_put_u32(skb, REPATH_A_PORT, 1);
	nla_put_u8(skb, REPATH_A_QP_TYPE, type);
	nla_put_u32(skb, REPATH_A_QPN, qpn);
	nla_put_u32(skb, REPATH_A_SRC_QPN, type == IB_QPT_UD ? 0 : 100);
	if (gid)
		nla_put(skb, REPATH_A_DGID, sizeof(dgid), dgid);
	if (lid)
		nla_put_u32(skb, REPATH_A_DLID, lid);
	KUNIT_ASSERT_EQ(test, __nla_parse(attrs, REPATH_A_MAX, (struct nlattr *)skb->data,
					  skb->len, NULL, 0, NULL), 0);
	fake.told = 0;
	err = repath_resolve_cmd(skb, &info);
	nlmsg_free(skb);
	return err;
}

static int request(struct kunit *test, u64 id, u8 type, u32 qpn, u8 gid)
{
	return request_at(test, id, type, qpn, gid, 0);
}

static void expect_told(struct kunit *test, u32 err, u32 qpn, u8 gid)
{
	KUNIT_EXPECT_EQ(test, fake.told, 1);
	KUNIT_EXPECT_EQ(test, fake.told_err, err);
	KUNIT_EXPECT_EQ(test, fake.told_qpn, qpn);
	KUNIT_EXPECT_EQ(test, fake.told_gid, gid);
}

static void resolve_plain(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 5), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 1);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	answer(0, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 170, 5);
	KUNIT_EXPECT_TRUE(test, fake.told_moved);

	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 17, 5), 0);
	answer(1, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	expect_told(test, EADDRNOTAVAIL, 0, 0);
	KUNIT_EXPECT_EQ(test, request(test, 3, IB_QPT_RC, 17, 5), 0);
	answer(2, 0, REPATH_PEER_TAKEN, 0, 0, 0);
	expect_told(test, EADDRINUSE, 0, 0);
	KUNIT_EXPECT_EQ(test, request(test, 4, IB_QPT_RC, 17, 5), 0);
	answer(3, 0, REPATH_PEER_AMBIGUOUS, 0, 0, 0);
	expect_told(test, ENOTUNIQ, 0, 0);
}

/* A host without the module: nobody there has ever moved. It is not asked twice in a row. */
static void resolve_silent(struct kunit *test)
{
	const u8 host[16] = { 0xfe, [15] = 5 };

	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 5), 0);
	answer(0, -ETIMEDOUT, 0, 0, 0, 0);
	expect_told(test, 0, 17, 5);
	KUNIT_EXPECT_FALSE(test, fake.told_moved);
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 18, 5), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 1);
	expect_told(test, 0, 18, 5);
	/* It has spoken. */
	mutex_lock(&repath_conn_mutex);
	repath_silent_forget(host, 0);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, request(test, 3, IB_QPT_RC, 18, 5), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 2);
	answer(1, 0, REPATH_PEER_OK, 1, 18, 0);
	expect_told(test, 0, 18, 5);
}

/* Before what waits for its turn is sent, others have found that nobody answers there: nothing is sent, which proves nothing. */
static void resolve_found_silent(struct kunit *test)
{
	int err;

	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 5), 0);
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 18, 5), 0);
	KUNIT_EXPECT_EQ(test, request(test, 3, IB_QPT_RC, 19, 6), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 3);
	KUNIT_EXPECT_EQ(test, fake.sent[1].check(fake.sent[1].arg), 0);
	answer(0, -ETIMEDOUT, 0, 0, 0, 0);
	fake.told = 0;
	skew += 4 * HZ;
	err = fake.sent[1].check(fake.sent[1].arg);
	KUNIT_EXPECT_EQ(test, err, -EHOSTDOWN);
	answer(1, err, 0, 0, 0, 0);
	expect_told(test, 0, 18, 5);
	KUNIT_EXPECT_EQ(test, fake.sent[2].check(fake.sent[2].arg), 0);
	skew += 2 * HZ;
	KUNIT_EXPECT_EQ(test, request(test, 4, IB_QPT_RC, 18, 5), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 4);
	answer(2, -ETIMEDOUT, 0, 0, 0, 0);
	answer(3, 0, REPATH_PEER_OK, 1, 18, 0);
}

/* By LID alone: not for as long, as who speaks may say no LID. */
static void resolve_silent_by_lid(struct kunit *test)
{
	const u8 host[16] = { 0xfe, [15] = 5 };
	int n;

	for (n = 0; n < 4; n += 2) {
		KUNIT_EXPECT_EQ(test, request_at(test, n + 1, IB_QPT_RC, 17, 0, 30), 0);
		KUNIT_ASSERT_EQ(test, fake.nsent, n + 1);
		answer(n, -ETIMEDOUT, 0, 0, 0, 0);
		KUNIT_EXPECT_EQ(test, request_at(test, n + 2, IB_QPT_RC, 18, 0, 30), 0);
		KUNIT_EXPECT_EQ(test, fake.nsent, n + 1);
		KUNIT_EXPECT_EQ(test, fake.told_qpn, 18u);
		if (n) {
			skew += HZ;
		} else {
			mutex_lock(&repath_conn_mutex);
			repath_silent_forget(host, 30);
			mutex_unlock(&repath_conn_mutex);
		}
		KUNIT_EXPECT_EQ(test, request_at(test, n + 3, IB_QPT_RC, 18, 0, 30), 0);
		KUNIT_ASSERT_EQ(test, fake.nsent, n + 2);
		answer(n + 1, 0, REPATH_PEER_OK, 1, 18, 0);
	}
}

/*
 * The host is there, its module is not, and was a moment ago: nobody is connected to where somebody may not be any
 * more, unless it stays so. A host without a module is not waited for.
 */
static void resolve_loaded_anew(struct kunit *test)
{
	const u8 host[16] = { 0xfe, [15] = 5 };
	struct ctx *c = of(test);

	c->conn.dev = &c->dev;
	c->conn.state = REPATH_CONN_NO_ANSWER;
	c->conn.addr = (struct repath_addr){ .dgid.raw = { 0xfe, [15] = 5 }, .port = 1 };
	fake.conn = &c->conn;
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 5), 0);
	answer(0, -ENOPROTOOPT, 0, 0, 0, 0);
	expect_told(test, 0, 17, 5);
	mutex_lock(&repath_conn_mutex);
	repath_silent_forget(host, 0);
	mutex_unlock(&repath_conn_mutex);

	c->conn.state = REPATH_CONN_READY;
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 17, 6), 0);
	answer(1, -ENOPROTOOPT, 0, 0, 0, 0);
	expect_told(test, 0, 17, 6);
	KUNIT_EXPECT_EQ(test, request(test, 3, IB_QPT_RC, 17, 5), 0);
	answer(2, -ENOPROTOOPT, 0, 0, 0, 0);
	expect_told(test, EAGAIN, 0, 0);
	skew += 9 * HZ;
	KUNIT_EXPECT_EQ(test, request(test, 4, IB_QPT_RC, 17, 5), 0);
	answer(3, -ENOPROTOOPT, 0, 0, 0, 0);
	expect_told(test, EAGAIN, 0, 0);
	/* It is back, and goes again. */
	KUNIT_EXPECT_EQ(test, request(test, 5, IB_QPT_RC, 17, 5), 0);
	answer(4, 0, REPATH_PEER_OK, 1, 99, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 99, 5);
	skew += 9 * HZ;
	KUNIT_EXPECT_EQ(test, request(test, 6, IB_QPT_RC, 17, 5), 0);
	answer(5, -ENOPROTOOPT, 0, 0, 0, 0);
	expect_told(test, EAGAIN, 0, 0);
	skew += 10 * HZ;
	KUNIT_EXPECT_EQ(test, request(test, 7, IB_QPT_RC, 17, 5), 0);
	answer(6, -ENOPROTOOPT, 0, 0, 0, 0);
	expect_told(test, 0, 17, 5);
}

/* What says nothing of the host: an answer that was damaged, and this end's own trouble. */
static void resolve_own_trouble(struct kunit *test)
{
	int i;

	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 5), 0);
	for (i = 0; i < 2; i++) {
		answer(i, -EBADMSG, 0, 0, 0, 0);
		KUNIT_EXPECT_EQ(test, fake.told, 0);
	}
	answer(2, 0, REPATH_PEER_OK, 1, 99, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 99, 5);
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 17, 5), 0);
	answer(3, -ENOMEM, 0, 0, 0, 0);
	expect_told(test, ENOMEM, 0, 0);
	/* It is asked all the same. */
	KUNIT_EXPECT_EQ(test, request(test, 3, IB_QPT_RC, 17, 5), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 5);
	answer(4, 0, REPATH_PEER_OK, 1, 99, 0);
	expect_told(test, 0, 99, 5);
}

/* 0: no GID, no LID. */
static struct repath_addr place(u8 gid, u32 lid)
{
	struct repath_addr addr = { .port = 1, .dlid = lid };

	if (gid) {
		addr.dgid.raw[0] = 0xfe;
		addr.dgid.raw[15] = gid;
	}
	return addr;
}

static void moved_between(u64 cookie, struct repath_addr from, struct repath_addr to)
{
	mutex_lock(&repath_conn_mutex);
	repath_known_moved(&fake.proc[0], cookie, &from, &to);
	mutex_unlock(&repath_conn_mutex);
}

static void moved_from(u64 cookie, u8 from, u8 to)
{
	moved_between(cookie, place(from, 0), place(to, 0));
}

/* The address is one that a peer has left: both places are asked. */
static void resolve_known(struct kunit *test)
{
	moved_from(REMOTE, 4, 5);
	moved_from(REMOTE, 5, 6);
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 5), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 2);
	KUNIT_EXPECT_EQ(test, fake.sent[1].to.dgid.raw[15], (u8)6);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(((struct repath_resolve *)fake.sent[1].data)->dst_cookie),
			REMOTE);
	answer(0, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	answer(1, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 170, 6);

	/* Both have one: a stranger has taken over the address. */
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 17, 4), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 4);
	answer(3, 0, REPATH_PEER_OK, 1, 170, 0);
	answer(2, 0, REPATH_PEER_OK, 2, 17, 0);
	expect_told(test, ENOTUNIQ, 0, 0);

	/* The very same queue pair, by both addresses of its host */
	KUNIT_EXPECT_EQ(test, request(test, 3, IB_QPT_RC, 17, 4), 0);
	answer(4, 0, REPATH_PEER_OK, 1, 170, 0);
	answer(5, 0, REPATH_PEER_OK, 1, 170, 0);
	expect_told(test, 0, 170, 4);

	/* Nobody is left at the address, and the peer has no such queue pair. */
	KUNIT_EXPECT_EQ(test, request(test, 4, IB_QPT_RC, 17, 4), 0);
	answer(6, -ETIMEDOUT, 0, 0, 0, 0);
	answer(7, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	expect_told(test, EADDRNOTAVAIL, 0, 0);
}

/* It has come back: nobody is asked elsewhere. */
static void resolve_known_back(struct kunit *test)
{
	moved_from(REMOTE, 5, 6);
	moved_from(REMOTE, 6, 5);
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 5), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 1);
	answer(0, 0, REPATH_PEER_OK, 1, 17, 0);
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 17, 6), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 3);
	answer(1, -ETIMEDOUT, 0, 0, 0, 0);
	answer(2, 0, REPATH_PEER_OK, 1, 17, 0);
	expect_told(test, 0, 17, 5);
}

/* Its GID has gone along with it, and another LID leads there; then it comes back. */
static void resolve_known_lid(struct kunit *test)
{
	moved_between(REMOTE, place(5, 0x20), place(5, 0x21));
	KUNIT_EXPECT_EQ(test, request_at(test, 1, IB_QPT_RC, 17, 5, 0x20), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 2);
	KUNIT_EXPECT_EQ(test, fake.sent[0].to.dlid, 0x20u);
	KUNIT_EXPECT_EQ(test, fake.sent[1].to.dlid, 0x21u);
	answer(0, -ETIMEDOUT, 0, 0, 0, 0);
	answer(1, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 170, 5);
	KUNIT_EXPECT_EQ(test, fake.told_lid, 0x21u);
	moved_between(REMOTE, place(5, 0x21), place(5, 0x22));
	KUNIT_EXPECT_EQ(test, request_at(test, 2, IB_QPT_RC, 17, 5, 0x20), 0);
	/* Once, however often it was there. */
	KUNIT_ASSERT_EQ(test, fake.nsent, 4);
	KUNIT_EXPECT_EQ(test, fake.sent[3].to.dlid, 0x22u);
	answer(2, -ETIMEDOUT, 0, 0, 0, 0);
	answer(3, 0, REPATH_PEER_OK, 1, 171, REPATH_RESOLVED_MOVED);
	KUNIT_EXPECT_EQ(test, fake.told_lid, 0x22u);
	moved_between(REMOTE, place(5, 0x22), place(5, 0x20));
	KUNIT_EXPECT_EQ(test, request_at(test, 3, IB_QPT_RC, 17, 5, 0x22), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 6);
	KUNIT_EXPECT_EQ(test, fake.sent[5].to.dlid, 0x20u);
	answer(4, -ETIMEDOUT, 0, 0, 0, 0);
	answer(5, 0, REPATH_PEER_OK, 1, 17, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 17, 5);
	KUNIT_EXPECT_EQ(test, fake.told_lid, 0x20u);
}

/* Known by its GID, and asked for by the LID alone that it had; not at another LID. */
static void resolve_by_lid(struct kunit *test)
{
	moved_between(REMOTE, place(5, 0x20), place(6, 0x21));
	KUNIT_EXPECT_EQ(test, request_at(test, 1, IB_QPT_RC, 17, 0, 0x20), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 2);
	KUNIT_EXPECT_EQ(test, fake.sent[1].to.dlid, 0x21u);
	/* The LID is another's now. */
	answer(0, 0, REPATH_PEER_OK, 2, 17, 0);
	answer(1, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, ENOTUNIQ, 0, 0);
	KUNIT_EXPECT_EQ(test, request_at(test, 2, IB_QPT_RC, 17, 0, 0x20), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 4);
	answer(2, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	answer(3, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	KUNIT_EXPECT_EQ(test, fake.told_qpn, 170u);
	KUNIT_EXPECT_EQ(test, fake.told_lid, 0x21u);
	KUNIT_EXPECT_EQ(test, request_at(test, 3, IB_QPT_RC, 17, 0, 0x22), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 5);
	answer(4, 0, REPATH_PEER_OK, 2, 17, 0);
	/* That GID has never been there. */
	KUNIT_EXPECT_EQ(test, request_at(test, 4, IB_QPT_RC, 17, 7, 0x20), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 6);
	answer(5, 0, REPATH_PEER_OK, 2, 17, 0);
	expect_told(test, 0, 17, 7);

	/* It was told by LID alone, too: who asks by GID is still told one. */
	moved_between(REMOTE, place(0, 0x20), place(0, 0x21));
	KUNIT_EXPECT_EQ(test, request_at(test, 5, IB_QPT_RC, 17, 5, 0x20), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 8);
	answer(6, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	answer(7, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 170, 6);
	/* As said in another order */
	moved_between(REMOTE + 1, place(0, 0x30), place(0, 0x31));
	moved_between(REMOTE + 1, place(8, 0x30), place(9, 0x31));
	KUNIT_EXPECT_EQ(test, request_at(test, 8, IB_QPT_RC, 17, 8, 0x30), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 10);
	answer(8, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	answer(9, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 170, 9);
	/* And to a place of which nobody has told the GID: it is not known by that, but by its LID. */
	moved_between(REMOTE, place(0, 0x21), place(0, 0x23));
	KUNIT_EXPECT_EQ(test, request_at(test, 6, IB_QPT_RC, 17, 5, 0x20), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 11);
	answer(10, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	expect_told(test, EADDRNOTAVAIL, 0, 0);
	KUNIT_EXPECT_EQ(test, request_at(test, 7, IB_QPT_RC, 17, 0, 0x20), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 13);
	answer(11, -ETIMEDOUT, 0, 0, 0, 0);
	answer(12, 0, REPATH_PEER_OK, 1, 171, REPATH_RESOLVED_MOVED);
	KUNIT_EXPECT_EQ(test, fake.told_lid, 0x23u);
}

/* The process leaves while its question is under way; another asks twice by one number. */
static void resolve_leaves(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 5), 0);
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 18, 5), 0);
	answer(0, 0, REPATH_PEER_OK, 1, 170, 0);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	mutex_lock(&repath_conn_mutex);
	repath_resolve_proc_left(&fake.proc[0]);
	mutex_unlock(&repath_conn_mutex);
	answer(1, 0, REPATH_PEER_OK, 1, 180, 0);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	fake.send_err = 1;
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 18, 5), 0);
	expect_told(test, 0, 18, 5);
}

/* It was damaged on its way, or its host is of another version: that is known when it is asked again. */
static void resolve_refused(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 5), 0);
	answer(0, 0, REPATH_PEER_MALFORMED, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 2);
	KUNIT_EXPECT_EQ(test, memcmp(fake.sent[0].data, fake.sent[1].data,
				     sizeof(struct repath_resolve)), 0);
	answer(1, 0, REPATH_PEER_VERSION_ERR, 0, 0, 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 3);
	answer(2, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 170, 5);

	/* It can not be asked: it knows no numbers, or other ones. */
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 17, 5), 0);
	answer(3, 0, REPATH_PEER_VERSION_ERR, 0, 0, 0);
	answer(4, 0, REPATH_PEER_VERSION_ERR, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	answer(5, 0, REPATH_PEER_VERSION_ERR, 0, 0, 0);
	expect_told(test, 0, 17, 5);
	KUNIT_EXPECT_EQ(test, fake.nsent, 6);

	/* Of each place by itself, and of the process that was meant there */
	moved_from(REMOTE, 5, 6);
	KUNIT_EXPECT_EQ(test, request(test, 3, IB_QPT_RC, 17, 5), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 8);
	answer(7, 0, REPATH_PEER_MALFORMED, 0, 0, 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 9);
	KUNIT_EXPECT_EQ(test, fake.sent[8].to.dgid.raw[15], (u8)6);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(((struct repath_resolve *)fake.sent[8].data)->dst_cookie),
			REMOTE);
	answer(6, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	answer(8, 0, REPATH_PEER_OK, 1, 170, 0);
	expect_told(test, 0, 170, 6);

	/* Nobody waits for it any more. */
	KUNIT_EXPECT_EQ(test, request(test, 4, IB_QPT_RC, 17, 4), 0);
	mutex_lock(&repath_conn_mutex);
	repath_resolve_proc_left(&fake.proc[0]);
	mutex_unlock(&repath_conn_mutex);
	answer(9, 0, REPATH_PEER_MALFORMED, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 10);
	KUNIT_EXPECT_EQ(test, kref_read(&of(test)->dev.kref), 1u);
}

/* --- UD --- */

static void resolve_ud(struct kunit *test)
{
	struct repath_moved moved = { .cookie = cpu_to_be64(REMOTE), .gid = { 0xfe, [15] = 8 },
				      .qpn = cpu_to_be32(99) };
	const struct repath_resolve *ask = (void *)fake.sent[0].data;

	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 17, 5), 0);
	KUNIT_EXPECT_NE(test, ask->token, (__be64)0);
	moved.token = ask->token;
	/* It has left before the answer is there, which waits for nobody's retries. */
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)), (int)REPATH_PEER_OK);
	expect_told(test, 0, 99, 8);
	fake.told = 0;
	answer(0, 0, REPATH_PEER_OK, 1, 17, 0);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	KUNIT_EXPECT_EQ(test, fake.proc[0].ud_questions, 1u);
	KUNIT_EXPECT_EQ(test, kref_read(&of(test)->dev.kref), 1u);
	moved.qpn = cpu_to_be32(98);
	moved.at = cpu_to_be64(1);
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)), (int)REPATH_PEER_OK);
	expect_told(test, 0, 98, 8);
	/* Who has left that address is known now. */
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_RC, 30, 5), 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 3);
	answer(1, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	answer(2, 0, REPATH_PEER_OK, 3, 31, 0);
	expect_told(test, 0, 31, 8);
	/* A datagram may go where nobody is, or nobody answers. */
	KUNIT_EXPECT_EQ(test, request(test, 3, IB_QPT_UD, 40, 7), 0);
	answer(3, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	expect_told(test, 0, 40, 7);
}

static __be64 token_of(int n)
{
	return ((struct repath_resolve *)fake.sent[n].data)->token;
}

static bool sent_within(int n, int seconds)
{
	int tries = seconds * 20;

	while (READ_ONCE(fake.nsent) < n && tries--)
		msleep(50);
	return fake.nsent == n;
}

static bool sent_until(int n)
{
	return sent_within(n, 30);
}

/* Its host may load the module, or anew; its answer may be damaged; this end may be short of memory. */
static void resolve_ud_no_answer(struct kunit *test)
{
	static const int errs[] = { -ENOPROTOOPT, -EBADMSG, -ENOMEM };
	int i, k, n = 0;

	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		KUNIT_EXPECT_EQ(test, request(test, i + 1, IB_QPT_UD, 17, 5 + i), 0);
		for (k = 0; k < (errs[i] == -EBADMSG ? 3 : 1); k++)
			answer(n++, errs[i], 0, 0, 0, 0);
		expect_told(test, 0, 17, 5 + i);
		fake.told = 0;
		KUNIT_ASSERT_TRUE(test, sent_until(n + 1));
		answer(n++, 0, REPATH_PEER_OK, 1, 99, 0);
		expect_told(test, 0, 99, 5 + i);
	}
}

/* It is on its way to another device: nobody answers there, then nobody knows its number yet. */
static void resolve_ud_away(struct kunit *test)
{
	struct repath_moved moved = { .cookie = cpu_to_be64(REMOTE), .gid = { 0xfe, [15] = 8 },
				      .qpn = cpu_to_be32(99) };
	int i;

	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 17, 5), 0);
	answer(0, -ETIMEDOUT, 0, 0, 0, 0);
	expect_told(test, 0, 17, 5);
	fake.told = 0;
	KUNIT_ASSERT_TRUE(test, sent_until(2));
	answer(1, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	KUNIT_ASSERT_TRUE(test, sent_until(3));
	answer(2, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 170, 5);
	KUNIT_EXPECT_EQ(test, fake.proc[0].ud_questions, 1u);
	KUNIT_EXPECT_EQ(test, kref_read(&of(test)->dev.kref), 1u);

	/* A module that can not answer this, so nobody is told by it; and one who has told it itself */
	KUNIT_EXPECT_EQ(test, request(test, 2, IB_QPT_UD, 18, 6), 0);
	for (i = 3; i < 6; i++)
		answer(i, 0, REPATH_PEER_VERSION_ERR, 0, 0, 0);
	expect_told(test, 0, 18, 6);
	KUNIT_EXPECT_EQ(test, request(test, 3, IB_QPT_UD, 19, 7), 0);
	answer(6, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	expect_told(test, 0, 19, 7);
	fake.told = 0;
	moved.token = token_of(6);
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)), (int)REPATH_PEER_OK);
	expect_told(test, 0, 99, 8);
	msleep(2500);
	KUNIT_EXPECT_EQ(test, fake.nsent, 7);
}

/* Its socket is full when it is to be told: it is told when it reads. */
static void resolve_ud_deaf(struct kunit *test)
{
	struct repath_moved moved = { .cookie = cpu_to_be64(REMOTE), .gid = { 0xfe, [15] = 8 },
				      .qpn = cpu_to_be32(99) };

	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 17, 5), 0);
	fake.deaf = true;
	answer(0, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	KUNIT_ASSERT_TRUE(test, sent_until(2));
	fake.deaf = false;
	answer(1, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 170, 5);
	fake.told = 0;
	fake.deaf = true;
	moved.token = token_of(0);
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)),
			(int)REPATH_PEER_BUSY);
	fake.deaf = false;
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)),
			(int)REPATH_PEER_OK);
	expect_told(test, 0, 99, 8);
}

/* A host with very many of them is away: it does not take all the room that messages have. */
static void resolve_ud_many(struct kunit *test)
{
	int i;

	for (i = 0; i < 20; i++)
		KUNIT_EXPECT_EQ(test, request(test, i + 1, IB_QPT_UD, 17 + i, 5), 0);
	for (i = 0; i < 20; i++)
		answer(i, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	KUNIT_ASSERT_TRUE(test, sent_until(36));
	msleep(1500);
	KUNIT_EXPECT_EQ(test, fake.nsent, 36);
	answer(20, 0, REPATH_PEER_OK, 1, 170, 0);
	KUNIT_ASSERT_TRUE(test, sent_until(37));
}

/* Who has very many, at hosts that do not answer, keeps nobody waiting who has one. */
static void resolve_ud_many_of_another(struct kunit *test)
{
	int i;

	for (i = 0; i < 40; i++)
		KUNIT_EXPECT_EQ(test, request(test, i + 1, IB_QPT_UD, 17 + i, 5 + i), 0);
	fake.other_asks = true;
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 99, 4), 0);
	/* The first one is asked for again alone, a second later; by the next time all the others may be, that one last. */
	answer(0, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	msleep(50);
	for (i = 1; i < 41; i++)
		answer(i, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	KUNIT_ASSERT_TRUE(test, sent_until(41 + 16));
	for (i = 41; i < 41 + 16; i++)
		if (((struct repath_resolve *)fake.sent[i].data)->qpn == cpu_to_be32(99))
			break;
	KUNIT_EXPECT_LT(test, i, 41 + 4);
}

/* What was asked on a device that has gone is asked by its process on the next one: it keeps nothing else waiting. */
static void resolve_ud_device_gone(struct kunit *test)
{
	int i;

	for (i = 0; i < 30; i++)
		KUNIT_EXPECT_EQ(test, request(test, i + 1, IB_QPT_UD, 17 + i, 5 + i), 0);
	for (i = 0; i < 30; i++)
		answer(i, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	of(test)->dev.index++;
	KUNIT_EXPECT_EQ(test, request(test, 31, IB_QPT_UD, 99, 4), 0);
	answer(30, 0, REPATH_PEER_NO_QP, 0, 0, 0);
	/* One of them a second would take half a minute. */
	KUNIT_EXPECT_TRUE(test, sent_within(32, 10));
}

/* Who keeps as many UD addresses as it may is refused more of them, and still connected. */
static void resolve_ud_full(struct kunit *test)
{
	u32 i;

	fake.send_err = -ENODEV;
	for (i = 0; i < REPATH_RESOLVES_MAX; i++)
		KUNIT_ASSERT_EQ(test, request(test, i + 1, IB_QPT_UD, 17 + i, 5), 0);
	KUNIT_EXPECT_EQ(test, request(test, i + 1, IB_QPT_UD, 17 + i, 5), -ENOSPC);
	fake.send_err = 0;
	KUNIT_ASSERT_EQ(test, request(test, i + 2, IB_QPT_RC, 17, 5), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 1);
	answer(0, 0, REPATH_PEER_OK, 1, 170, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 170, 5);
	KUNIT_EXPECT_EQ(test, request(test, i + 3, IB_QPT_UC, 18, 5), 0);
	answer(1, 0, REPATH_PEER_OK, 1, 171, 0);
	expect_told(test, 0, 171, 5);
}

/* Both are on their way: who has arrived asks again, and is told where the other one has gone. */
static void resolve_ud_both(struct kunit *test)
{
	struct repath_moved moved = { .cookie = cpu_to_be64(REMOTE), .gid = { 0xfe, [15] = 8 },
				      .qpn = cpu_to_be32(99) };

	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 17, 5), 0);
	answer(0, 0, REPATH_PEER_OK, 1, 17, 0);
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 17, 5), 0);
	KUNIT_EXPECT_EQ(test, token_of(1), token_of(0));
	moved.token = token_of(0);
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)), (int)REPATH_PEER_OK);
	expect_told(test, 0, 99, 8);
	fake.told = 0;
	answer(1, -EHOSTUNREACH, 0, 0, 0, 0);
	msleep(1500);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 2);
	/* A connection has none. */
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_RC, 17, 7), 0);
	KUNIT_EXPECT_EQ(test, token_of(2), (__be64)0);
	answer(2, 0, REPATH_PEER_OK, 1, 17, 0);
}

/*
 * The other one has arrived and told so before this one asks anew. Nobody is where it was, and where it is it has
 * not said yet by which numbers it is known: its process does not send to where it was again.
 */
static void resolve_ud_stays(struct kunit *test)
{
	struct repath_moved moved = { .cookie = cpu_to_be64(REMOTE), .gid = { 0xfe, [15] = 8 },
				      .qpn = cpu_to_be32(99) };

	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 17, 5), 0);
	answer(0, 0, REPATH_PEER_OK, 1, 17, 0);
	moved.token = token_of(0);
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 17, 5), 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 3);
	KUNIT_EXPECT_EQ(test, fake.sent[2].to.dgid.raw[15], (u8)8);
	answer(2, 0, REPATH_PEER_BUSY, 0, 0, 0);
	answer(1, -ETIMEDOUT, 0, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	KUNIT_ASSERT_TRUE(test, sent_until(5));
	answer(4, 0, REPATH_PEER_OK, 1, 199, REPATH_RESOLVED_MOVED);
	answer(3, -ETIMEDOUT, 0, 0, 0, 0);
	expect_told(test, 0, 199, 8);
}

/* What is said of a move comes after what was said of the next one. */
static void resolve_ud_late(struct kunit *test)
{
	struct repath_moved moved = { .cookie = cpu_to_be64(REMOTE), .gid = { 0xfe, [15] = 8 },
				      .qpn = cpu_to_be32(98), .at = cpu_to_be64(1000) };
	struct repath_moved next = { .cookie = cpu_to_be64(REMOTE), .gid = { 0xfe, [15] = 9 },
				     .qpn = cpu_to_be32(99), .at = cpu_to_be64(2000) };

	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 17, 5), 0);
	answer(0, 0, REPATH_PEER_OK, 1, 17, 0);
	moved.token = next.token = token_of(0);
	fake.told = 0;
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&next, sizeof(next)), (int)REPATH_PEER_OK);
	expect_told(test, 0, 99, 9);
	fake.told = 0;
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&next, sizeof(next)), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	/* Who asks anew, as it moves itself, knows it still. */
	KUNIT_EXPECT_EQ(test, request(test, 1, IB_QPT_UD, 17, 5), 0);
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, fake.told, 0);
	KUNIT_ASSERT_EQ(test, fake.nsent, 3);
	answer(1, -ETIMEDOUT, 0, 0, 0, 0);
	answer(2, 0, REPATH_PEER_OK, 1, 99, REPATH_RESOLVED_MOVED);
	expect_told(test, 0, 99, 9);
	/* Another process has another clock. */
	moved.cookie = cpu_to_be64(REMOTE + 1);
	fake.told = 0;
	KUNIT_EXPECT_EQ(test, (int)repath_resolve_moved(&moved, sizeof(moved)), (int)REPATH_PEER_OK);
	expect_told(test, 0, 98, 8);
}

/* A sender has asked for a UD queue pair, qp[1]; qp[3] is what it may go on as. */
static void watched(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_resolved out;

	c->qp[1].type = c->qp[3].type = IB_QPT_UD;
	c->qp[3].user = c->qp[1].user;
	KUNIT_EXPECT_EQ(test, (int)asked(test, 101, 0, 77, &out), (int)REPATH_PEER_OK);
}

/* Who has asked for a UD queue pair is told when it has moved, until it has heard it. */
static void watch_tells(struct kunit *test)
{
	struct repath_number row = { .qpn = 103, .known_as = 101 };
	struct repath_gid_change gid = { .old = { 0xfe, [15] = 1 }, .now = { 0xfe, [15] = 2 },
					 .port = 1 };
	const struct repath_moved *moved = (void *)fake.sent[0].data;
	struct ctx *c = of(test);
	struct repath_resolved out;
	u64 at;
	int i;

	watched(test);
	KUNIT_EXPECT_EQ(test, (int)asked(test, 101, 0, 77, &out), (int)REPATH_PEER_OK);
	c->qp[1].gone = true;
	mutex_lock(&repath_conn_mutex);
	repath_watch_device_removed(&c->dev);
	KUNIT_EXPECT_EQ(test, kref_read(&c->dev.kref), 1u);
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, fake.nsent, 1);
	KUNIT_EXPECT_EQ(test, fake.sent[0].to.dgid.raw[15], (u8)ASKER_GID);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(moved->token), 77ULL);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(moved->qpn), 103u);
	KUNIT_EXPECT_EQ(test, moved->gid[15], (u8)2);
	at = be64_to_cpu(moved->at);
	KUNIT_EXPECT_NE(test, at, 0ULL);

	/* Moved again meanwhile: told again when the first word has arrived. */
	mutex_lock(&repath_conn_mutex);
	memcpy(gid.old, gid.now, 16);
	gid.now[15] = 3;
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, fake.nsent, 1);
	answer(0, 0, REPATH_PEER_OK, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, fake.nsent, 2);
	moved = (void *)fake.sent[1].data;
	KUNIT_EXPECT_EQ(test, moved->gid[15], (u8)3);
	KUNIT_EXPECT_GT(test, be64_to_cpu(moved->at), at);
	at = be64_to_cpu(moved->at);

	/* Lost: again a second later. */
	answer(1, -ETIMEDOUT, 0, 0, 0, 0);
	msleep(1500);
	KUNIT_ASSERT_EQ(test, fake.nsent, 3);
	moved = (void *)fake.sent[2].data;
	KUNIT_EXPECT_EQ(test, be64_to_cpu(moved->at), at);
	/* Its token was damaged, or is not known: it does not use the address any more. */
	for (i = 2; i < 5; i++) {
		KUNIT_ASSERT_TRUE(test, sent_until(i + 1));
		answer(i, 0, REPATH_PEER_BAD_TOKEN, 0, 0, 0);
	}
	mutex_lock(&repath_conn_mutex);
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, fake.nsent, 5);
}

/*
 * Both move: the sender is not any more where it has asked from. When it is known where it is, it is told there,
 * and what is still tried at the old place does not matter.
 */
static void watch_sender_moved(struct kunit *test)
{
	struct repath_number row = { .qpn = 103, .known_as = 101 };
	struct repath_gid_change gid = { .old = { 0xfe, [15] = 1 }, .now = { 0xfe, [15] = 2 },
					 .port = 1 };
	struct repath_addr from = { .dgid.raw = { 0xfe, [15] = ASKER_GID } };
	struct repath_addr to = { .dgid.raw = { 0xfe, [15] = 12 } };
	const struct repath_moved *moved = (void *)fake.sent[1].data;
	struct ctx *c = of(test);

	watched(test);
	c->qp[1].gone = true;
	mutex_lock(&repath_conn_mutex);
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	KUNIT_EXPECT_EQ(test, fake.nsent, 1);
	/* Another process, and another port of this one */
	repath_watch_sender_moved(&fake.proc[0], REMOTE + 1, &from, &from, &to, false);
	repath_watch_sender_moved(&fake.proc[1], REMOTE, &from, &from, &to, false);
	repath_watch_sender_moved(&fake.proc[0], REMOTE, &to, &to, &from, false);
	KUNIT_EXPECT_EQ(test, fake.nsent, 1);
	repath_watch_sender_moved(&fake.proc[0], REMOTE, &from, &from, &to, false);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_EQ(test, fake.nsent, 2);
	KUNIT_EXPECT_EQ(test, fake.sent[1].to.dgid.raw[15], (u8)12);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(moved->token), 77ULL);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(moved->qpn), 103u);
	/* That nobody is there any more is no reason to tell it again, nor that a stranger is. */
	answer(0, 0, REPATH_PEER_BAD_TOKEN, 0, 0, 0);
	answer(1, 0, REPATH_PEER_OK, 0, 0, 0);
	msleep(1500);
	KUNIT_EXPECT_EQ(test, fake.nsent, 2);

	/* It has heard all: of its next place it is told when there is something to tell. */
	mutex_lock(&repath_conn_mutex);
	repath_watch_sender_moved(&fake.proc[0], REMOTE, &to, &to, &from, false);
	KUNIT_EXPECT_EQ(test, fake.nsent, 2);
	memcpy(gid.old, gid.now, 16);
	gid.now[15] = 3;
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_EQ(test, fake.nsent, 3);
	KUNIT_EXPECT_EQ(test, fake.sent[2].to.dgid.raw[15], (u8)ASKER_GID);
	answer(2, 0, REPATH_PEER_OK, 0, 0, 0);
}

/* Nobody but an administrator knows where the sender is. */
static void watch_told(struct kunit *test)
{
	struct repath_number row = { .qpn = 103, .known_as = 101 };
	struct repath_gid_change gid = { .old = { 0xfe, [15] = 1 }, .now = { 0xfe, [15] = 2 }, .port = 1 };
	struct repath_addr from = { .dgid.raw = { 0xfe, [15] = ASKER_GID } }, wrong = { .dgid.raw = { 0xfe, [15] = 12 } };
	const u8 right[16] = { 0xfe, [15] = 13 };
	struct ctx *c = of(test);
	int i;

	watched(test);
	c->qp[1].gone = true;
	mutex_lock(&repath_conn_mutex);
	/* There is nothing to tell it. */
	KUNIT_EXPECT_EQ(test, repath_watch_told(&c->dev, &from, right, 0), 0u);
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	KUNIT_EXPECT_EQ(test, fake.nsent, 1);
	KUNIT_EXPECT_EQ(test, repath_watch_told(&c->dev, &wrong, right, 0), 0u);
	KUNIT_EXPECT_EQ(test, repath_watch_told(NULL, &from, right, 0), 0u);
	KUNIT_EXPECT_EQ(test, repath_watch_told(&c->dev, &from, wrong.dgid.raw, 0), 1u);
	mutex_unlock(&repath_conn_mutex);
	answer(0, -ETIMEDOUT, 0, 0, 0, 0);	/* of where it was */
	/* A stranger's host: the sender is not given up for what that one does not know. */
	for (i = 1; i < 6; i++) {
		KUNIT_ASSERT_TRUE(test, sent_until(i + 1));
		KUNIT_EXPECT_EQ(test, fake.sent[i].to.dgid.raw[15], (u8)12);
		answer(i, 0, REPATH_PEER_BAD_TOKEN, 0, 0, 0);
	}
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, repath_watch_told(&c->dev, &wrong, right, 0), 1u);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_EQ(test, fake.nsent, 7);
	KUNIT_EXPECT_EQ(test, fake.sent[6].to.dgid.raw[15], (u8)13);
	answer(6, 0, REPATH_PEER_OK, 0, 0, 0);
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, repath_watch_told(&c->dev, &wrong, right, 0), 0u);
	/* It has been heard from there: what it does not know from now on it does not use any more. */
	memcpy(gid.old, gid.now, 16);
	gid.now[15] = 3;
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	for (i = 7; i < 10; i++) {
		KUNIT_ASSERT_TRUE(test, sent_until(i + 1));
		answer(i, 0, REPATH_PEER_BAD_TOKEN, 0, 0, 0);
	}
	msleep(1500);
	KUNIT_EXPECT_EQ(test, fake.nsent, 10);
}

/* The same when the word is about a connection of the two. */
static void watch_told_by_connection(struct kunit *test)
{
	struct repath_number row = { .qpn = 103, .known_as = 101 };
	struct repath_gid_change gid = { .old = { 0xfe, [15] = 1 }, .now = { 0xfe, [15] = 2 }, .port = 1 };
	struct repath_addr from = { .dgid.raw = { 0xfe, [15] = ASKER_GID } }, wrong = { .dgid.raw = { 0xfe, [15] = 12 } };
	const u8 right[16] = { 0xfe, [15] = 13 };
	struct ctx *c = of(test);
	int i;

	watched(test);
	c->qp[1].gone = true;
	mutex_lock(&repath_conn_mutex);
	/* Before the queue pair has moved. */
	repath_watch_sender_moved(&fake.proc[0], REMOTE, &from, &from, &wrong, true);
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_TRUE(test, sent_until(i + 1));
		KUNIT_EXPECT_EQ(test, fake.sent[i].to.dgid.raw[15], (u8)12);
		answer(i, 0, REPATH_PEER_BAD_TOKEN, 0, 0, 0);
	}
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, repath_watch_told(&c->dev, &wrong, right, 0), 1u);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_EQ(test, fake.nsent, 5);
	KUNIT_EXPECT_EQ(test, fake.sent[4].to.dgid.raw[15], (u8)13);
	answer(4, 0, REPATH_PEER_OK, 0, 0, 0);
}

/* A sender asks again while it is told: the answer to what it was told before is not the one to the new word. */
static void watch_asked_again(struct kunit *test)
{
	struct repath_number row = { .qpn = 103, .known_as = 101 };
	struct repath_gid_change gid = { .old = { 0xfe, [15] = 1 }, .now = { 0xfe, [15] = 2 },
					 .port = 1 };
	struct ctx *c = of(test);
	struct repath_resolved out;
	int i;

	c->qp[1].type = c->qp[3].type = IB_QPT_UD;
	c->qp[3].user = c->qp[1].user;
	for (i = 0; i < 2; i++) {
		c->qp[1].gone = false;
		KUNIT_EXPECT_EQ(test, (int)asked(test, 101, 0, 77, &out), (int)REPATH_PEER_OK);
		c->qp[1].gone = true;
		mutex_lock(&repath_conn_mutex);
		repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
		mutex_unlock(&repath_conn_mutex);
		KUNIT_ASSERT_EQ(test, fake.nsent, i + 1);
	}
	answer(0, 0, REPATH_PEER_OK, 0, 0, 0);
	/* Lost: again a second later */
	answer(1, -ETIMEDOUT, 0, 0, 0, 0);
	msleep(1500);
	KUNIT_ASSERT_EQ(test, fake.nsent, 3);
	answer(2, 0, REPATH_PEER_OK, 0, 0, 0);
}

/* Somebody says that he is at @gid, and asks for what is known as 101. */
static void asks_as(struct kunit *test, const u8 gid[16], u64 token)
{
	struct repath_resolve ask = {
		.dst_gid = { 0xfe, [15] = 1 },
		.src_cookie = cpu_to_be64(REMOTE + 1),
		.token = cpu_to_be64(token),
		.qpn = cpu_to_be32(101),
		.qp_type = IB_QPT_UD,
	};
	struct repath_resolved out;

	memcpy(ask.src_gid, gid, sizeof(ask.src_gid));
	KUNIT_ASSERT_EQ(test, (int)repath_resolve_answer(&of(test)->dev, &ask, sizeof(ask), &out), (int)REPATH_PEER_OK);
}

static u64 token_told(int n)
{
	return be64_to_cpu(((struct repath_moved *)fake.sent[n].data)->token);
}

/* More ask than there is room for, each from an address of its own: who is there is kept, and told first. */
static void watch_crowd(struct kunit *test)
{
	struct repath_number row = { .qpn = 103, .known_as = 101 }, next = { .qpn = 102, .known_as = 101 };
	struct repath_gid_change gid = { .old = { 0xfe, [15] = 1 }, .now = { 0xfe, [15] = 1 }, .port = 1 };
	struct ctx *c = of(test);
	u8 from[16] = { 0xfe };
	u32 i;

	watched(test);
	c->qp[1].gone = true;
	fake.qp[1] = NULL;
	known_as(test, 3, 101);
	mutex_lock(&repath_conn_mutex);
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_EQ(test, fake.nsent, 1);
	answer(0, 0, REPATH_PEER_OK, 0, 0, 0);

	for (i = 0; i < REPATH_WATCH_MAX + 1; i++) {
		memcpy(from + 8, &i, sizeof(i));
		asks_as(test, from, 1000 + i);
	}
	mutex_lock(&repath_conn_mutex);
	repath_number_qp_gone(&c->qp[3]);
	c->qp[3].gone = true;
	c->qp[2].type = IB_QPT_UD;
	c->qp[2].user = c->qp[1].user;
	repath_watch_moved(&fake.proc[0], &c->dev, &next, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_EQ(test, fake.nsent, SENT);
	KUNIT_EXPECT_EQ(test, token_told(1), 77ULL);
	for (i = 1; i < SENT; i++)
		answer(i, 0, i == 1 ? REPATH_PEER_OK : REPATH_PEER_BAD_TOKEN, 0, 0, 0);
}

/* Who asks for very many takes his own room. */
static void watch_crowd_of_one(struct kunit *test)
{
	struct repath_number row = { .qpn = 103, .known_as = 101 };
	struct repath_gid_change gid = { .old = { 0xfe, [15] = 1 }, .now = { 0xfe, [15] = 1 }, .port = 1 };
	struct repath_addr asker = { .dgid.raw = { 0xfe, [15] = ASKER_GID } };
	const u8 elsewhere[16] = { 0xfe, [15] = 13 };
	u8 from[16] = { 0xfe, [8] = 1 };
	struct ctx *c = of(test);
	u32 i;

	watched(test);
	for (i = 0; i < REPATH_WATCH_MAX + 1; i++)
		asks_as(test, from, 1000 + i);
	c->qp[1].gone = true;
	mutex_lock(&repath_conn_mutex);
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	KUNIT_EXPECT_EQ(test, repath_watch_told(&c->dev, &asker, elsewhere, 0), 1u);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_EQ(test, fake.nsent, SENT);
	for (i = 0; i < SENT; i++)
		answer(i, 0, REPATH_PEER_BAD_TOKEN, 0, 0, 0);
}

/* Numbers are of one device: another queue pair of the process that is known by the same one has stayed. */
static void watch_of_another(struct kunit *test)
{
	struct repath_number row = { .qpn = 103, .known_as = 101 };
	struct repath_gid_change other = { .old = { 0xfe, [15] = 7 }, .now = { 0xfe, [15] = 8 },
					   .port = 1 };
	struct repath_gid_change gid = { .old = { 0xfe, [15] = 1 }, .now = { 0xfe, [15] = 2 },
					 .port = 1 };
	const struct repath_moved *moved = (void *)fake.sent[0].data;
	struct ctx *c = of(test);

	watched(test);
	mutex_lock(&repath_conn_mutex);
	/* It is there still; and when it is not, it was not one without datagrams, nor at that GID. */
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	KUNIT_EXPECT_EQ(test, fake.nsent, 0);
	c->qp[1].gone = true;
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &other, 1);
	KUNIT_EXPECT_EQ(test, fake.nsent, 0);
	c->qp[3].type = IB_QPT_RC;
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	KUNIT_EXPECT_EQ(test, fake.nsent, 0);
	c->qp[3].type = IB_QPT_UD;
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_EQ(test, fake.nsent, 1);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(moved->qpn), 103u);
	answer(0, 0, REPATH_PEER_OK, 0, 0, 0);
}

/* Another process that says it has a peer's cookie does not lead away who looks for that. */
static void known_of_two_places(struct kunit *test)
{
	struct repath_addr left = place(4, 0), now;
	u64 cookie;

	moved_from(REMOTE, 4, 5);
	moved_from(REMOTE, 7, 8);
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, repath_known_find(&fake.proc[0], &left, &now, &cookie, 1), 1u);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, (int)now.dgid.raw[15], 5);
}

/* The module goes, and processes that have moved, and know others that have, do not. */
static void nothing_is_left(struct kunit *test)
{
	struct repath_addr from = { .dgid.raw = { 0xfe, [15] = 5 } }, to = { .dgid.raw = { 0xfe, [15] = 6 } };
	struct ctx *c = of(test);
	struct repath_addr now;
	u64 cookie;

	mutex_lock(&repath_conn_mutex);
	repath_number_moved(&fake.proc[0], &c->dev);
	repath_known_moved(&fake.proc[0], OTHER, &from, &to);
	KUNIT_EXPECT_TRUE(test, repath_number_has_moved(&fake.proc[0], &c->dev));
	KUNIT_EXPECT_EQ(test, repath_known_find(&fake.proc[0], &from, &now, &cookie, 1), 1u);
	mutex_unlock(&repath_conn_mutex);
	repath_number_exit();
	repath_known_exit();
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_FALSE(test, repath_number_has_moved(&fake.proc[0], &c->dev));
	KUNIT_EXPECT_EQ(test, repath_known_find(&fake.proc[0], &from, &now, &cookie, 1), 0u);
	mutex_unlock(&repath_conn_mutex);
}

/* Questions and news with bytes turned. */
static void fuzz(struct kunit *test)
{
	struct repath_resolve ask = { .src_gid = { 0xfe, [15] = 9 }, .src_cookie = 7, .token = 8 };
	struct repath_moved moved = { .token = 9, .cookie = 10, .gid = { 0xfe, [15] = 9 } };
	struct ctx *c = of(test);
	struct repath_resolved out;
	u32 i, len, found = 0;
	void *copy;
	u8 got;

	c->qp[1].type = IB_QPT_UD;
	c->qp[3].type = IB_QPT_UD;
	fuzz_begin();
	for (i = 0; i < rounds; i++) {
		if (fuzz_below(4)) {
			ask.qpn = cpu_to_be32(100 + fuzz_below(4));
			ask.qp_type = fuzz_below(2) ? IB_QPT_UD : IB_QPT_RC;
			ask.token = cpu_to_be64(fuzz_below(3));
			len = sizeof(ask);
			copy = fuzz_copy(&ask, &len);
			KUNIT_ASSERT_NOT_NULL(test, copy);
			got = repath_resolve_answer(&c->dev, copy, len, &out);
			found += got == REPATH_PEER_OK;
		} else {
			len = sizeof(moved);
			copy = fuzz_copy(&moved, &len);
			KUNIT_ASSERT_NOT_NULL(test, copy);
			got = repath_resolve_moved(copy, len);
		}
		kfree(copy);
		if (got > REPATH_PEER_TAKEN)
			break;
	}
	KUNIT_EXPECT_EQ(test, i, rounds);
	KUNIT_EXPECT_GT(test, found, rounds / 20);
	kunit_info(test, "%u messages, %u found, seed %u", i, found, seed);
}

/* Nobody answers for long, as if it were asleep: it is told all the same, for as long as a lease lasts. */
static void watch_unheard(struct kunit *test)
{
	struct repath_number row = { .qpn = 103, .known_as = 101 };
	struct repath_gid_change gid = { .old = { 0xfe, [15] = 1 }, .now = { 0xfe, [15] = 2 },
					 .port = 1 };
	struct repath_addr from = { .dgid.raw = { 0xfe, [15] = ASKER_GID } };
	struct repath_addr to = { .dgid.raw = { 0xfe, [15] = 12 } };
	struct ctx *c = of(test);
	int i;

	watched(test);
	c->qp[1].gone = true;
	mutex_lock(&repath_conn_mutex);
	repath_watch_moved(&fake.proc[0], &c->dev, &row, 1, &gid, 1);
	mutex_unlock(&repath_conn_mutex);
	for (i = 0; !fake.lease_asked && i < SENT - 1; i++) {
		KUNIT_ASSERT_TRUE(test, sent_until(i + 1));
		answer(i, -ETIMEDOUT, 0, 0, 0, 0);
	}
	KUNIT_EXPECT_TRUE(test, fake.lease_asked);
	/* It has not heard it yet: where it is found it hears it at once. */
	mutex_lock(&repath_conn_mutex);
	repath_watch_sender_moved(&fake.proc[0], REMOTE, &from, &from, &to, false);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_EQ(test, fake.nsent, i + 1);
	/* Until the lease is over. */
	fake.lease_over = true;
	answer(i, -ETIMEDOUT, 0, 0, 0, 0);
	mutex_lock(&repath_conn_mutex);
	repath_watch_sender_moved(&fake.proc[0], REMOTE, &to, &to, &from, false);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, fake.nsent, i + 1);
}

static struct kunit_case number_cases[] = {
	KUNIT_CASE(number_unmoved),
	KUNIT_CASE(number_moved),
	KUNIT_CASE(numbers_come_and_go),
	KUNIT_CASE(number_collides),
	KUNIT_CASE(number_by_lid),
	KUNIT_CASE(number_between),
	KUNIT_CASE(number_of_process),
	KUNIT_CASE(number_taken),
	KUNIT_CASE(number_malformed),
	KUNIT_CASE(resolve_plain),
	KUNIT_CASE(resolve_silent),
	KUNIT_CASE(resolve_silent_by_lid),
	KUNIT_CASE(resolve_found_silent),
	KUNIT_CASE(resolve_loaded_anew),
	KUNIT_CASE(resolve_own_trouble),
	KUNIT_CASE(resolve_known),
	KUNIT_CASE(resolve_known_back),
	KUNIT_CASE(resolve_known_lid),
	KUNIT_CASE(resolve_by_lid),
	KUNIT_CASE(resolve_leaves),
	KUNIT_CASE(resolve_refused),
	KUNIT_CASE(resolve_ud),
	KUNIT_CASE(resolve_ud_no_answer),
	KUNIT_CASE(resolve_ud_away),
	KUNIT_CASE(resolve_ud_deaf),
	KUNIT_CASE(resolve_ud_many),
	KUNIT_CASE(resolve_ud_many_of_another),
	KUNIT_CASE(resolve_ud_device_gone),
	KUNIT_CASE(resolve_ud_full),
	KUNIT_CASE(resolve_ud_both),
	KUNIT_CASE(resolve_ud_stays),
	KUNIT_CASE(resolve_ud_late),
	KUNIT_CASE(watch_tells),
	KUNIT_CASE(watch_sender_moved),
	KUNIT_CASE(known_of_two_places),
	KUNIT_CASE(watch_told),
	KUNIT_CASE(watch_told_by_connection),
	KUNIT_CASE(watch_asked_again),
	KUNIT_CASE(watch_unheard),
	KUNIT_CASE(watch_of_another),
	KUNIT_CASE(watch_crowd),
	KUNIT_CASE(watch_crowd_of_one),
	KUNIT_CASE(nothing_is_left),
	KUNIT_CASE(fuzz),
	{}
};

static struct kunit_suite number_suite = {
	.name = "number",
	.init = number_init,
	.exit = number_exit,
	.test_cases = number_cases,
};

kunit_test_suite(number_suite);
MODULE_LICENSE("GPL");
