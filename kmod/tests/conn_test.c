// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 26 */
/* kunit-objs: ../conn.o ../conn_move.o ../conn_qp.o ../conn_told.o ../known.o ../stat.o */
/* Connections: what keeps them, what ends them, and who may be their other end. */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <repath_peer.h>

#include "../conn.h"
#include "../conn_told.h"
#include "../device.h"
#include "../hello.h"
#include "../known.h"
#include "../netlink.h"
#include "../number.h"
#include "../op.h"
#include "../peer.h"
#include "../proc.h"
#include "../resolve.h"
#include "../track.h"
#include "../watch.h"
#include "conn_fakes.h"
#include "proc_fakes.h"

/* What surrounds conn.c in the module. */
static struct {
	int hellos, earlies, gone_sent, gone_told, qp_released;
	struct repath_proc proc;
	bool registered;
	bool moved;
	int ready_told;
	struct repath_device *admins;	/* that an administrator names */
	struct repath_device *elsewhere;	/* in another network namespace */
	bool may_not, local;
	int answered, senders;
} fake;

static const union ib_gid multicast = { .raw = { 0xff, 0x12, [15] = 1 } };

struct repath_proc *repath_proc_find(struct pid *tgid)
{
	return fake.registered && tgid == fake.proc.tgid ? repath_proc_get(&fake.proc) : NULL;
}

void repath_qp_release(struct kref *kref)
{
	fake.qp_released++;
}

int repath_qp_walk_of(struct pid *tgid, repath_qp_fn fn, void *arg)
{
	return 0;
}

void repath_hello_start(struct repath_conn *conn, bool force)
{
	fake.hellos++;
}

void repath_hello_early(struct repath_conn *conn)
{
	fake.earlies++;
}

void repath_peer_send_gone(struct repath_conn *conn, bool waited_for)
{
	fake.gone_sent++;
}

void repath_peer_tell_gone(struct repath_conn *conn)
{
	fake.gone_told++;
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

struct repath_device *repath_nl_admins_device(struct sk_buff *skb, struct genl_info *info)
{
	if (fake.may_not) {
		NL_SET_ERR_MSG(info->extack, "may not");
		return ERR_PTR(-EPERM);
	}
	return repath_device_get(fake.admins);
}

struct sk_buff *repath_nl_reply_new(struct genl_info *info, size_t size, void **hdr)
{
	*hdr = NULL;
	return nlmsg_new(size, GFP_KERNEL);
}

int repath_nl_reply(struct genl_info *info, struct sk_buff *skb, void *hdr)
{
	struct nlattr *conns = nla_find((struct nlattr *)skb->data, skb->len, REPATH_A_CONN_COUNT);

	fake.answered = nla_get_u32(conns);
	nlmsg_free(skb);
	return 0;
}

struct net *repath_device_net(const struct repath_device *dev)
{
	return fake.elsewhere == dev ? NULL : &init_net;
}

u32 repath_watch_told(const struct repath_device *dev, const struct repath_addr *from, const u8 *gid, u32 lid)
{
	return fake.senders;
}

struct repath_proc *repath_proc_find_cookie(u64 cookie)
{
	return fake.local ? repath_proc_get(&fake.proc) : NULL;
}

struct ctx {
	struct repath_device dev[2];
	struct ib_device ibdev;
	struct ib_port_data ports[2];
	struct repath_qp qp[4];
	struct repath_user user;
};

static struct ctx *of(struct kunit *test)
{
	return test->priv;
}

static void fake_rtr(struct repath_qp *rqp, u32 dest_qpn, u8 gid)
{
	rqp->state = IB_QPS_RTR;
	memset(&rqp->path, 0, sizeof(rqp->path));
	rqp->path.port = 1;
	rqp->path.has_av = true;
	rqp->path.has_grh = true;
	rqp->path.dgid.raw[0] = 0xfe;
	rqp->path.dgid.raw[15] = gid;
	rqp->path.dest_qpn = dest_qpn;
	rqp->path.dmac[5] = gid;
}

static int conn_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	int i;

	if (!c)
		return -ENOMEM;
	memset(&fake, 0, sizeof(fake));
	kref_init(&fake.proc.kref);
	repath_proc_lists_init(&fake.proc);
	fake.proc.tgid = task_tgid(current);
	fake.proc.cookie = 0xc0;
	fake.registered = true;
	for (i = 0; i < 2; i++) {
		kref_init(&c->dev[i].kref);
		c->dev[i].index = i + 1;
		c->dev[i].ibdev = &c->ibdev;
	}
	c->ibdev.phys_port_cnt = 1;
	c->ibdev.port_data = c->ports;
	fake.admins = &c->dev[0];
	c->user.pid = fake.proc.tgid;
	for (i = 0; i < 4; i++) {
		kref_init(&c->qp[i].kref);
		c->qp[i].dev = &c->dev[i / 2];
		c->qp[i].qpn = 17 + i % 2;
		c->qp[i].type = IB_QPT_RC;
		c->qp[i].user = &c->user;
	}
	test->priv = c;
	return repath_conn_init();
}

/* Whatever a case leaves, nothing stays behind. */
static void conn_exit(struct kunit *test)
{
	struct ctx *c = of(test);
	int i;

	if (!c)
		return;
	repath_known_exit();
	repath_conn_exit();
	KUNIT_EXPECT_EQ(test, kref_read(&fake.proc.kref), 1u);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 0u);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, kref_read(&c->dev[i].kref), 1u);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, kref_read(&c->qp[i].kref), 1u);
		KUNIT_EXPECT_EQ(test, c->qp[i].conn_id, 0u);
	}
}

static struct repath_conn *conn_of(struct repath_qp *rqp)
{
	struct repath_conn *conn;

	mutex_lock(&repath_conn_mutex);
	conn = repath_conn_by_qp(rqp->dev, rqp->qpn);
	mutex_unlock(&repath_conn_mutex);
	return conn;
}

static struct repath_conn *connected(struct kunit *test, struct repath_qp *rqp, u32 dest_qpn,
				     u8 gid)
{
	struct repath_conn *conn;

	fake_rtr(rqp, dest_qpn, gid);
	repath_conn_qp_connected(rqp);
	conn = conn_of(rqp);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	return conn;
}

static void message(struct repath_conn *conn, u8 type, u32 flags, bool tx)
{
	mutex_lock(&repath_conn_mutex);
	repath_conn_message(conn, type, flags, tx);
	mutex_unlock(&repath_conn_mutex);
}

static void t_created_at_rtr(struct kunit *test)
{
	struct repath_qp *rqp = &of(test)->qp[0];
	struct repath_conn *conn = connected(test, rqp, 99, 5);

	KUNIT_EXPECT_EQ(test, conn->qpn, 17u);
	KUNIT_EXPECT_EQ(test, conn->dest_qpn, 99u);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 5);
	KUNIT_EXPECT_TRUE(test, conn->addr.has_dmac);
	KUNIT_EXPECT_EQ(test, rqp->conn_id, conn->id);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_NEW);
	KUNIT_EXPECT_EQ(test, fake.hellos, 1);
	KUNIT_EXPECT_EQ(test, fake.earlies, 1);
}

static void t_who_gets_none(struct kunit *test)
{
	struct repath_qp *rqp = &of(test)->qp[0];

	fake_rtr(rqp, 99, 5);
	rqp->state = IB_QPS_INIT;
	repath_conn_qp_connected(rqp);
	rqp->state = IB_QPS_RTR;
	rqp->type = IB_QPT_UD;
	repath_conn_qp_connected(rqp);
	rqp->type = IB_QPT_RC;
	rqp->kernel = true;
	repath_conn_qp_connected(rqp);
	rqp->kernel = false;
	fake.registered = false;
	repath_conn_qp_connected(rqp);
	fake.registered = true;
	fake.proc.left = true;
	repath_conn_qp_connected(rqp);
	KUNIT_EXPECT_NULL(test, conn_of(rqp));
	KUNIT_EXPECT_EQ(test, fake.hellos, 0);
}

static void t_lookups(struct kunit *test)
{
	struct repath_conn *a = connected(test, &of(test)->qp[0], 99, 5);
	struct repath_conn *b = connected(test, &of(test)->qp[2], 99, 5);
	u8 state;

	/* The same QPN on two devices. */
	KUNIT_EXPECT_PTR_NE(test, a, b);
	KUNIT_EXPECT_NE(test, a->token, 0ull);
	KUNIT_EXPECT_NE(test, a->token, b->token);
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_PTR_EQ(test, repath_conn_by_token(a->token), a);
	KUNIT_EXPECT_PTR_EQ(test, repath_conn_by_token(b->token), b);
	KUNIT_EXPECT_NULL(test, repath_conn_by_token(a->token + 1));
	KUNIT_EXPECT_NULL(test, repath_conn_by_token(0));
	KUNIT_EXPECT_PTR_EQ(test, repath_conn_by_id(b->id), b);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_TRUE(test, repath_conn_query(a->id, &state));
	KUNIT_EXPECT_FALSE(test, repath_conn_query(a->id + 1000, &state));
}

static void t_who_is_the_peer(struct kunit *test)
{
	struct repath_conn *conn = connected(test, &of(test)->qp[0], 99, 5);
	u8 gid[16] = { 0xfe, [15] = 5 }, other[16] = { 0xfe, [15] = 6 };

	KUNIT_EXPECT_TRUE(test, repath_conn_is_peer(conn, 99, gid));
	KUNIT_EXPECT_FALSE(test, repath_conn_is_peer(conn, 98, gid));
	KUNIT_EXPECT_FALSE(test, repath_conn_is_peer(conn, 99, other));
}

static void t_ready_needs_both(struct kunit *test)
{
	struct repath_conn *conn = connected(test, &of(test)->qp[0], 99, 5);

	mutex_lock(&repath_conn_mutex);
	conn->peer_token = 7;
	repath_conn_update_ready(conn);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_NEW);
	conn->hello_acked = true;
	repath_conn_update_ready(conn);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_NEW);
	repath_conn_set_remote(conn, 0xabc);
	repath_conn_update_ready(conn);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_READY);
	mutex_unlock(&repath_conn_mutex);
}

static void t_same_peer_again(struct kunit *test)
{
	struct repath_qp *rqp = &of(test)->qp[0];
	struct repath_conn *conn = connected(test, rqp, 99, 5);
	u32 id = conn->id;

	conn->state = REPATH_CONN_READY;
	KUNIT_EXPECT_EQ(test, connected(test, rqp, 99, 5)->id, id);
	KUNIT_EXPECT_EQ(test, fake.hellos, 1);
	/* Somebody else: another connection. */
	KUNIT_EXPECT_NE(test, connected(test, rqp, 100, 5)->id, id);
	KUNIT_EXPECT_EQ(test, fake.hellos, 2);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 1u);
}

static void t_moves(struct kunit *test)
{
	struct repath_conn_moved moved = {};
	struct repath_qp *old = &of(test)->qp[0], *new = &of(test)->qp[3];
	struct repath_conn *conn = connected(test, old, 99, 5);
	u8 gid[16] = { 0xfe, [15] = 8 };
	u32 id = conn->id;

	message(conn, REPATH_MSG_GATE, 0, true);
	KUNIT_EXPECT_TRUE(test, conn->moving);
	repath_conn_qp_gone(old);
	KUNIT_EXPECT_NULL(test, conn_of(old));
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 1u);

	mutex_lock(&repath_conn_mutex);
	repath_conn_rebind(conn, new, 2, 3);
	KUNIT_EXPECT_FALSE(test, conn->addr.has_dmac);
	repath_conn_readdress(conn, gid, 0, 55, false, &moved);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_PTR_EQ(test, conn_of(new), conn);
	KUNIT_EXPECT_PTR_EQ(test, conn->dev, new->dev);
	KUNIT_EXPECT_EQ(test, conn->addr.port, 2u);
	KUNIT_EXPECT_EQ(test, new->conn_id, id);

	/* Late news of the old queue pair do not touch it, nor does RTR of the new one. */
	repath_conn_qp_gone(old);
	fake_rtr(new, 55, 8);
	repath_conn_qp_connected(new);
	KUNIT_EXPECT_PTR_EQ(test, conn_of(new), conn);
	message(conn, REPATH_MSG_CONNECTED, 0, true);
	KUNIT_EXPECT_TRUE(test, conn->moving);
	message(conn, REPATH_MSG_CONNECTED, 0, false);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	KUNIT_EXPECT_EQ(test, conn->id, id);
	repath_conn_qp_gone(new);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 0u);
}

/* A queue pair that reached RTR before its INFO said which connection it continues. */
static void t_bound_late(struct kunit *test)
{
	struct repath_qp *old = &of(test)->qp[0], *new = &of(test)->qp[3];
	struct repath_conn *conn = connected(test, old, 99, 5);

	message(conn, REPATH_MSG_GATE, 0, true);
	repath_conn_qp_gone(old);
	KUNIT_EXPECT_PTR_NE(test, connected(test, new, 99, 5), conn);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 2u);

	mutex_lock(&repath_conn_mutex);
	repath_conn_rebind(conn, new, 1, 1);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_PTR_EQ(test, conn_of(new), conn);
	KUNIT_EXPECT_EQ(test, new->conn_id, conn->id);
	/* No other that nobody would ever end. */
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 1u);
}

/* Another one has its number, and is connected, before the end of its queue pair is heard of. */
static void t_number_is_anothers(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_conn *conn = connected(test, &c->qp[0], 99, 5), *other;
	u32 id = conn->id;

	conn->state = REPATH_CONN_READY;
	message(conn, REPATH_MSG_GATE, 0, true);
	c->qp[1].qpn = c->qp[0].qpn;
	other = connected(test, &c->qp[1], 98, 6);
	KUNIT_EXPECT_NE(test, other->id, id);
	KUNIT_EXPECT_EQ(test, fake.gone_sent, 0);
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_PTR_EQ(test, repath_conn_by_id(id), conn);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_NULL(test, conn->rqp);
	repath_conn_qp_gone(&c->qp[0]);
	KUNIT_EXPECT_PTR_EQ(test, conn_of(&c->qp[1]), other);

	/* One that is on no move has ended with its queue pair. */
	other->state = REPATH_CONN_READY;
	c->qp[0].conn_id = 0;
	connected(test, &c->qp[0], 97, 7);
	KUNIT_EXPECT_EQ(test, fake.gone_sent, 1);
}

/* The same, and the other one continues a connection: whose queue pair that was has ended if it is on no move. */
static void t_number_is_a_movers(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_conn *other = connected(test, &c->qp[0], 99, 5);
	struct repath_conn *conn = connected(test, &c->qp[2], 98, 6);
	u32 id = other->id;

	other->state = REPATH_CONN_READY;
	message(conn, REPATH_MSG_READY, REPATH_REC_MOVER, true);
	c->qp[1].qpn = c->qp[0].qpn;
	mutex_lock(&repath_conn_mutex);
	repath_conn_rebind(conn, &c->qp[1], 1, 1);
	mutex_unlock(&repath_conn_mutex);
	repath_conn_qp_gone(&c->qp[0]);
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_NULL(test, repath_conn_by_id(id));
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, fake.gone_sent, 1);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 1u);
	KUNIT_EXPECT_PTR_EQ(test, conn_of(&c->qp[1]), conn);
}

/* Its former queue pair is destroyed, which nobody has heard of yet, and its number is that of the new one. */
static void t_number_is_its_own(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_conn *conn = connected(test, &c->qp[0], 99, 5);
	u32 id = conn->id;

	conn->state = REPATH_CONN_READY;
	c->qp[1].qpn = c->qp[0].qpn;
	mutex_lock(&repath_conn_mutex);
	repath_conn_rebind(conn, &c->qp[1], 1, 1);
	KUNIT_EXPECT_PTR_EQ(test, repath_conn_by_id(id), conn);
	mutex_unlock(&repath_conn_mutex);
	repath_conn_qp_gone(&c->qp[0]);
	KUNIT_EXPECT_PTR_EQ(test, conn_of(&c->qp[1]), conn);
	KUNIT_EXPECT_EQ(test, fake.gone_sent, 0);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 1u);
}

/* Both ends move: this one has connected itself to where the peer was when it said READY. */
static void t_both_move(struct kunit *test)
{
	struct repath_conn_moved moved = {};
	struct repath_qp *old = &of(test)->qp[0], *new = &of(test)->qp[3];
	struct repath_conn *conn = connected(test, old, 99, 5);
	u8 gid[16] = { 0xfe, [15] = 8 };

	message(conn, REPATH_MSG_READY, REPATH_REC_MOVER, true);
	repath_conn_qp_gone(old);
	mutex_lock(&repath_conn_mutex);
	repath_conn_rebind(conn, new, 2, 3);
	mutex_unlock(&repath_conn_mutex);
	message(conn, REPATH_MSG_INFO, 0, true);
	message(conn, REPATH_MSG_CONNECTED, 0, true);
	mutex_lock(&repath_conn_mutex);
	repath_conn_readdress(conn, gid, 0, 55, false, &moved);
	mutex_unlock(&repath_conn_mutex);
	message(conn, REPATH_MSG_INFO, REPATH_REC_CONNECTED, false);
	KUNIT_EXPECT_TRUE(test, conn->moving);

	/* So it is taken to RESET once more, and that ends nothing. */
	new->state = IB_QPS_RESET;
	repath_conn_qp_reset(new);
	KUNIT_EXPECT_PTR_EQ(test, conn_of(new), conn);
	fake_rtr(new, 55, 8);
	repath_conn_qp_connected(new);
	KUNIT_EXPECT_PTR_EQ(test, conn_of(new), conn);
	message(conn, REPATH_MSG_CONNECTED, 0, true);
	KUNIT_EXPECT_FALSE(test, conn->moving);
}

static u32 round_of(u16 round)
{
	return (u32)round << REPATH_REC_ROUND_SHIFT;
}

static void rests(struct repath_conn *conn, u16 heard)
{
	mutex_lock(&repath_conn_mutex);
	repath_conn_rest(conn, heard);
	mutex_unlock(&repath_conn_mutex);
}

static void t_abort(struct kunit *test)
{
	struct repath_conn *conn = connected(test, &of(test)->qp[0], 99, 5);

	message(conn, REPATH_MSG_GATE, 0, false);
	message(conn, REPATH_MSG_ABORT, 0, false);
	KUNIT_EXPECT_TRUE(test, conn->moving);
	message(conn, REPATH_MSG_ABORTED, 0, true);
	KUNIT_EXPECT_FALSE(test, conn->moving);

	/* An end that has left RTS must be connected again first. */
	message(conn, REPATH_MSG_GATE, round_of(1), false);
	message(conn, REPATH_MSG_ABORT, round_of(1), false);
	message(conn, REPATH_MSG_ABORTED, REPATH_REC_RESET | round_of(1), true);
	KUNIT_EXPECT_TRUE(test, conn->moving);
	message(conn, REPATH_MSG_CONNECTED, round_of(1), false);
	message(conn, REPATH_MSG_CONNECTED, 0, true);
	KUNIT_EXPECT_FALSE(test, conn->moving);

	/* The peer never answers; what it said before comes late. */
	message(conn, REPATH_MSG_GATE, 0, true);
	message(conn, REPATH_MSG_ABORT, REPATH_REC_RESET, true);
	rests(conn, 0);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	message(conn, REPATH_MSG_READY, 0, false);
	rests(conn, 0);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	message(conn, REPATH_MSG_GATE, 0, true);
	message(conn, REPATH_MSG_ABORTED, 0, false);
	KUNIT_EXPECT_FALSE(test, conn->moving);
}

/* What its shim says of late messages may cross a new one, which it has not read yet. */
static void t_rests_of_old(struct kunit *test)
{
	struct repath_conn *conn = connected(test, &of(test)->qp[0], 99, 5);

	message(conn, REPATH_MSG_GATE, 0xffff << REPATH_REC_ROUND_SHIFT, false);
	message(conn, REPATH_MSG_ABORT, 0xffff << REPATH_REC_ROUND_SHIFT, false);
	message(conn, REPATH_MSG_ABORTED, 0, true);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	message(conn, REPATH_MSG_DRAINED, 0xffff << REPATH_REC_ROUND_SHIFT, false);
	message(conn, REPATH_MSG_GATE, 0, false);
	message(conn, REPATH_MSG_DRAINED, 0xffff << REPATH_REC_ROUND_SHIFT, false);
	rests(conn, 0xffff);
	KUNIT_EXPECT_TRUE(test, conn->moving);
	rests(conn, 0);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	/* It gives up a move of its own, whatever was heard long ago. */
	message(conn, REPATH_MSG_GATE, 0, true);
	rests(conn, 0x9000);
	KUNIT_EXPECT_FALSE(test, conn->moving);
}

/* Its device goes, and with it the queue pair: a connection on a move outlives that, and tells its peer nothing. */
static void expect_outlives(struct kunit *test, struct repath_conn *conn)
{
	struct repath_qp *rqp = conn->rqp;
	int gones = fake.gone_sent;
	struct repath_conn *left;
	u32 id = conn->id;

	KUNIT_EXPECT_TRUE(test, conn->moving);
	repath_conn_qp_gone(rqp);
	KUNIT_EXPECT_EQ(test, fake.gone_sent, gones);
	mutex_lock(&repath_conn_mutex);
	left = repath_conn_by_id(id);
	if (left)
		repath_conn_bind(left, rqp);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_PTR_EQ(test, left, conn);
}

/* An ABORT was said twice, and answered twice: the second answer comes when the next move is under way. */
static void t_late_aborted(struct kunit *test)
{
	struct repath_conn *conn = connected(test, &of(test)->qp[0], 99, 5);

	conn->state = REPATH_CONN_READY;
	message(conn, REPATH_MSG_GATE, round_of(0xffff), true);
	message(conn, REPATH_MSG_ABORT, round_of(0xffff), true);
	message(conn, REPATH_MSG_ABORTED, round_of(0xffff), false);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	message(conn, REPATH_MSG_READY, round_of(0) | REPATH_REC_MOVER, true);
	message(conn, REPATH_MSG_READY, round_of(7), false);
	message(conn, REPATH_MSG_ABORTED, round_of(0xffff), false);
	expect_outlives(test, conn);
	/* Nor must it be connected anew because an end had left RTS then. */
	message(conn, REPATH_MSG_ABORTED, round_of(0xffff) | REPATH_REC_RESET, false);
	message(conn, REPATH_MSG_ABORTED, round_of(0), false);
	KUNIT_EXPECT_FALSE(test, conn->moving);

	/* The peer's, which this end answers once more, whether it has heard of the peer's next or not. */
	message(conn, REPATH_MSG_GATE, round_of(8), false);
	message(conn, REPATH_MSG_ABORTED, round_of(8), true);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	message(conn, REPATH_MSG_READY, round_of(1) | REPATH_REC_MOVER, true);
	message(conn, REPATH_MSG_ABORTED, round_of(8), true);
	expect_outlives(test, conn);
	message(conn, REPATH_MSG_READY, round_of(9), false);
	message(conn, REPATH_MSG_ABORTED, round_of(8), true);
	expect_outlives(test, conn);
	message(conn, REPATH_MSG_ABORTED, round_of(9), true);
	KUNIT_EXPECT_FALSE(test, conn->moving);
}

/* Both are on a move, and one gives it up: the other goes on, and the first one stays suspended as its peer. */
static void t_one_of_two_aborts(struct kunit *test)
{
	struct repath_conn *goes = connected(test, &of(test)->qp[0], 99, 5);
	struct repath_conn *stays = connected(test, &of(test)->qp[1], 98, 5);

	goes->state = REPATH_CONN_READY;
	stays->state = REPATH_CONN_READY;
	message(goes, REPATH_MSG_READY, round_of(1) | REPATH_REC_MOVER, true);
	message(goes, REPATH_MSG_READY, round_of(3) | REPATH_REC_MOVER, false);
	message(goes, REPATH_MSG_ABORT, round_of(3), false);
	message(goes, REPATH_MSG_ABORTED, round_of(3) | REPATH_REC_MOVER, true);
	expect_outlives(test, goes);

	message(stays, REPATH_MSG_READY, round_of(3) | REPATH_REC_MOVER, true);
	message(stays, REPATH_MSG_READY, round_of(1) | REPATH_REC_MOVER, false);
	message(stays, REPATH_MSG_ABORT, round_of(3), true);
	message(stays, REPATH_MSG_ABORTED, round_of(3) | REPATH_REC_MOVER, false);
	of(test)->qp[1].state = IB_QPS_RESET;
	repath_conn_qp_reset(&of(test)->qp[1]);
	KUNIT_EXPECT_EQ(test, fake.gone_sent, 0);
	KUNIT_EXPECT_PTR_EQ(test, conn_of(&of(test)->qp[1]), stays);
	KUNIT_EXPECT_TRUE(test, stays->moving);
}

/* CONNECTED of the move before is none of this one. */
static void t_late_connected(struct kunit *test)
{
	struct repath_conn *conn = connected(test, &of(test)->qp[0], 99, 5);

	conn->state = REPATH_CONN_READY;
	message(conn, REPATH_MSG_READY, round_of(1), true);
	message(conn, REPATH_MSG_READY, round_of(5), false);
	message(conn, REPATH_MSG_INFO, round_of(5) | REPATH_REC_CONNECTED, false);
	message(conn, REPATH_MSG_INFO, round_of(1) | REPATH_REC_CONNECTED, true);
	KUNIT_EXPECT_FALSE(test, conn->moving);
	message(conn, REPATH_MSG_READY, round_of(2), true);
	message(conn, REPATH_MSG_CONNECTED, round_of(5), false);
	message(conn, REPATH_MSG_READY, round_of(6), false);
	message(conn, REPATH_MSG_CONNECTED, round_of(5), false);
	message(conn, REPATH_MSG_CONNECTED, round_of(2), true);
	expect_outlives(test, conn);
	message(conn, REPATH_MSG_CONNECTED, round_of(6), false);
	KUNIT_EXPECT_FALSE(test, conn->moving);
}

static void t_gone(struct kunit *test)
{
	struct repath_qp *rqp = &of(test)->qp[0];
	struct repath_conn *conn = connected(test, rqp, 99, 5);

	message(conn, REPATH_MSG_GATE, 0, true);
	message(conn, REPATH_MSG_GONE, REPATH_REC_DEAD, false);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)REPATH_CONN_GONE);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 1u);
	repath_conn_qp_gone(rqp);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 0u);
	KUNIT_EXPECT_EQ(test, fake.gone_sent, 0);

	/* A queue pair that goes says so to whom it knows; one that is connected again begins anew. */
	conn = connected(test, rqp, 99, 5);
	conn->state = REPATH_CONN_READY;
	repath_conn_qp_gone(rqp);
	KUNIT_EXPECT_EQ(test, fake.gone_sent, 1);
	conn = connected(test, rqp, 99, 5);
	message(conn, REPATH_MSG_GONE, REPATH_REC_DEAD, false);
	KUNIT_EXPECT_EQ(test, (int)connected(test, rqp, 99, 5)->state, (int)REPATH_CONN_NEW);
	repath_conn_qp_gone(rqp);

	/* A suspended one that has no queue pair any more goes with the word. */
	conn = connected(test, rqp, 99, 5);
	message(conn, REPATH_MSG_GATE, 0, true);
	repath_conn_qp_gone(rqp);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 1u);
	message(conn, REPATH_MSG_GONE, REPATH_REC_DEAD, true);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 0u);
}

static void t_process_leaves(struct kunit *test)
{
	struct repath_conn *a = connected(test, &of(test)->qp[0], 99, 5);
	struct repath_conn *b = connected(test, &of(test)->qp[1], 98, 5);
	u32 count, moving;

	a->state = REPATH_CONN_READY;
	b->state = REPATH_CONN_READY;
	message(b, REPATH_MSG_GATE, 0, true);
	repath_conn_count(&fake.proc, &of(test)->dev[0], &count, &moving);
	KUNIT_EXPECT_EQ(test, count, 2u);
	KUNIT_EXPECT_EQ(test, moving, 1u);
	repath_conn_count(&fake.proc, &of(test)->dev[1], &count, &moving);
	KUNIT_EXPECT_EQ(test, count, 0u);
	KUNIT_EXPECT_EQ(test, fake.proc.nunbound, 0u);
	repath_conn_proc_left(&fake.proc);
	KUNIT_EXPECT_EQ(test, fake.gone_sent, 2);
	KUNIT_EXPECT_EQ(test, fake.proc.nconns, 0u);
	KUNIT_EXPECT_EQ(test, fake.proc.nunbound, 0u);
	KUNIT_EXPECT_NULL(test, conn_of(&of(test)->qp[0]));
}

static void t_remotes_are_shared(struct kunit *test)
{
	struct repath_conn *a = connected(test, &of(test)->qp[0], 99, 5);
	struct repath_conn *b = connected(test, &of(test)->qp[1], 98, 5);
	u32 id;

	mutex_lock(&repath_conn_mutex);
	repath_conn_set_remote(a, 0xabc);
	repath_conn_set_remote(b, 0xabc);
	KUNIT_EXPECT_PTR_EQ(test, a->remote, b->remote);
	KUNIT_EXPECT_EQ(test, a->remote->users, 2u);
	id = a->remote->id;
	repath_conn_set_remote(b, 0xdef);
	KUNIT_EXPECT_EQ(test, a->remote->users, 1u);
	KUNIT_EXPECT_NE(test, b->remote->id, id);
	/* A number is not used for somebody else later. */
	repath_conn_destroy(a);
	repath_conn_set_remote(b, 0xabc);
	KUNIT_EXPECT_NE(test, b->remote->id, id);
	mutex_unlock(&repath_conn_mutex);
}

static const struct kernel_param *parameter(const char *name)
{
	unsigned int i;

	for (i = 0; i < THIS_MODULE->num_kp; i++)
		if (!strcmp(THIS_MODULE->kp[i].name, name))
			return &THIS_MODULE->kp[i];
	return NULL;
}

/* So long that jiffies overflow would be no time at all. */
static void t_lease_in_range(struct kunit *test)
{
	const struct kernel_param *lease = parameter("peer_lease_s");

	KUNIT_ASSERT_NOT_NULL(test, lease);
	KUNIT_EXPECT_EQ(test, lease->ops->set("4294967295", lease), -EINVAL);
	KUNIT_EXPECT_EQ(test, lease->ops->set("604801", lease), -EINVAL);
	KUNIT_EXPECT_EQ(test, *(unsigned int *)lease->arg, 3600u);
	KUNIT_EXPECT_EQ(test, lease->ops->set("604800", lease), 0);
	KUNIT_EXPECT_EQ(test, lease->ops->set("0", lease), 0);
	KUNIT_EXPECT_EQ(test, lease->ops->set("3600", lease), 0);
}

/* Is the connection told to have no peer any more, if nothing is heard for so long? */
static bool lease_over(struct repath_conn *conn, unsigned long silent)
{
	int before = fake.gone_told;

	conn->moving_since -= silent;
	/* The first look comes after some seconds. */
	msleep(6 * MSEC_PER_SEC);
	return fake.gone_told > before;
}

/* What this end says, to an address where nobody is any more, does not prolong it; what it hears does. */
static void t_lease_is_by_what_is_heard(struct kunit *test)
{
	const struct kernel_param *lease = parameter("peer_lease_s");
	struct repath_conn *conn = connected(test, &of(test)->qp[0], 99, 5);
	unsigned long begun;

	KUNIT_ASSERT_EQ(test, lease->ops->set("3600", lease), 0);
	conn->state = REPATH_CONN_READY;
	message(conn, REPATH_MSG_GATE, 0, true);
	message(conn, REPATH_MSG_READY, 0, false);
	conn->moving_since -= 10 * HZ;
	begun = conn->moving_since;
	message(conn, REPATH_MSG_INFO, 0, true);
	message(conn, REPATH_MSG_READY, 0, true);
	message(conn, REPATH_MSG_PREPARE, 0, true);
	KUNIT_EXPECT_EQ(test, conn->moving_since, begun);
	message(conn, REPATH_MSG_INFO, 0, false);
	KUNIT_EXPECT_NE(test, conn->moving_since, begun);
	KUNIT_EXPECT_FALSE(test, lease_over(conn, 3500 * HZ));
	KUNIT_EXPECT_TRUE(test, lease_over(conn, 100 * HZ));
}

/* CONN_MOVED of a device: @was and @now are the last byte of a GID, 0: it is not said. */
static int told(struct kunit *test, u8 was, u32 was_lid, u8 now, u32 now_lid)
{
	struct nlattr *attrs[REPATH_A_MAX + 1];
	struct netlink_ext_ack extack = {};
	struct genl_info info = { .attrs = attrs, .extack = &extack };
	struct sk_buff *skb = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	union ib_gid from = { .raw = { 0xfe, [15] = was } }, to = { .raw = { 0xfe, [15] = now } };
	int err = 0;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	if (was)
		err |= nla_put(skb, REPATH_A_DGID, sizeof(from), &from);
	if (was_lid)
		err |= nla_put_u32(skb, REPATH_A_DLID, was_lid);
	if (now)
		err |= nla_put(skb, REPATH_A_NEW_DGID, sizeof(to), now == 0xff ? &multicast : &to);
	if (now_lid)
		err |= nla_put_u32(skb, REPATH_A_NEW_DLID, now_lid);
	err |= __nla_parse(attrs, REPATH_A_MAX, (struct nlattr *)skb->data, skb->len, NULL, 0, NULL);
	KUNIT_ASSERT_EQ(test, err, 0);
	fake.answered = 0;
	err = repath_conn_moved_cmd(NULL, &info);
	KUNIT_EXPECT_EQ(test, !err, !extack._msg);
	nlmsg_free(skb);
	return err ? err : fake.answered;
}

/* One that is suspended, as its peer is. */
static struct repath_conn *away(struct kunit *test, int qp, u8 gid, u64 cookie)
{
	struct repath_conn *conn = connected(test, &of(test)->qp[qp], 99 + qp, gid);

	mutex_lock(&repath_conn_mutex);
	conn->state = REPATH_CONN_READY;
	repath_conn_set_remote(conn, cookie);
	mutex_unlock(&repath_conn_mutex);
	message(conn, REPATH_MSG_GATE, REPATH_REC_MOVER, true);
	message(conn, REPATH_MSG_READY, REPATH_REC_MOVER, false);
	return conn;
}

static void t_told_moved(struct kunit *test)
{
	struct repath_conn_moved moved = {};
	struct repath_conn *conn = away(test, 0, 5, 0xbe), *same = away(test, 1, 5, 0xbe);
	struct repath_addr at = conn->addr, now[2];
	u64 cookies[2];

	of(test)->ports[1].immutable.core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 0), 2);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 7);
	KUNIT_EXPECT_EQ(test, (int)same->addr.dgid.raw[15], 7);
	KUNIT_EXPECT_FALSE(test, conn->addr.has_dmac);
	KUNIT_EXPECT_EQ(test, conn->dest_qpn, 99u);
	KUNIT_EXPECT_TRUE(test, conn->moving && conn->told);
	/* Both are of the same peer: one message is enough. */
	KUNIT_EXPECT_EQ(test, fake.ready_told, 1);
	/* Who connects to the old place again is led there, too. */
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, repath_known_find(&fake.proc, &at, now, cookies, 2), 1u);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, cookies[0], 0xbeull);
	/* Twice, by who does not know whether it was heard: the same answer, and nothing else. */
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 0), 2);
	KUNIT_EXPECT_EQ(test, fake.ready_told, 1);
	/* It was a mistake. */
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 8, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, told(test, 7, 0, 8, 0), 2);
	KUNIT_EXPECT_EQ(test, told(test, 7, 0, 8, 0), 2);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 8);
	/* The peer has the last word. */
	mutex_lock(&repath_conn_mutex);
	repath_conn_readdress(conn, at.dgid.raw, 0, 123, false, &moved);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_EXPECT_FALSE(test, conn->told);
	KUNIT_EXPECT_TRUE(test, same->told);
	/* It is where it was told to be, and is told so again when all is over. */
	message(same, REPATH_MSG_INFO, 0, false);
	message(same, REPATH_MSG_CONNECTED, 0, true);
	message(same, REPATH_MSG_CONNECTED, 0, false);
	KUNIT_EXPECT_FALSE(test, same->moving || same->told);
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 8, 0), 2);
	KUNIT_EXPECT_FALSE(test, same->told);
	KUNIT_EXPECT_TRUE(test, conn->told);
}

static void t_told_of_others(struct kunit *test)
{
	struct repath_conn *conn = away(test, 0, 5, 0xbe), *other = away(test, 2, 5, 0xbe);

	of(test)->ports[1].immutable.core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	KUNIT_EXPECT_EQ(test, told(test, 6, 0, 7, 0), -ENOENT);
	fake.local = true;	/* it is found without an address */
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 0), -ENOENT);
	fake.local = false;
	conn->state = REPATH_CONN_GONE;
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 0), -ENOENT);
	conn->state = REPATH_CONN_READY;
	conn->moving = false;
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 0), -ENOENT);
	conn->moving = true;
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 5);
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 0), 1);
	/* Of another device. */
	KUNIT_EXPECT_EQ(test, (int)other->addr.dgid.raw[15], 5);
	/* Which is gone now: it may be on its way to this one. */
	mutex_lock(&repath_conn_mutex);
	repath_conn_unbind(other);
	mutex_unlock(&repath_conn_mutex);
	fake.elsewhere = &of(test)->dev[1];
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 0), 1);
	KUNIT_EXPECT_EQ(test, (int)other->addr.dgid.raw[15], 5);
	fake.elsewhere = NULL;
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 0), 2);
	KUNIT_EXPECT_EQ(test, (int)other->addr.dgid.raw[15], 7);
	/* Nobody is connected, but somebody sends. */
	fake.senders = 1;
	KUNIT_EXPECT_EQ(test, told(test, 6, 0, 7, 0), 0);
}

static void t_told_wrong(struct kunit *test)
{
	away(test, 0, 5, 0xbe);
	of(test)->ports[1].immutable.core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	KUNIT_EXPECT_EQ(test, told(test, 0, 0, 7, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, told(test, 5, 3, 7, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 4), -EINVAL);
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 0xff, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, told(test, 0, 3, 7, 0), -EINVAL);
	of(test)->ports[1].immutable.core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, told(test, 0, 3, 7, 4), -EINVAL);
	fake.may_not = true;
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 7, 4), -EPERM);
	KUNIT_EXPECT_EQ(test, fake.ready_told, 0);
}

static void t_told_infiniband(struct kunit *test)
{
	struct repath_conn *conn = away(test, 0, 5, 0xbe), *lid = away(test, 1, 0, 0xbe);

	of(test)->ports[1].immutable.core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	memset(&lid->addr.dgid, 0, sizeof(lid->addr.dgid));
	conn->addr.dlid = 3;
	lid->addr.dlid = 3;
	/* What has a GID is known by that, whatever LID it is reached by. */
	KUNIT_EXPECT_EQ(test, told(test, 0, 3, 0, 9), 1);
	KUNIT_EXPECT_EQ(test, lid->addr.dlid, 9u);
	KUNIT_EXPECT_FALSE(test, repath_addr_has_gid(&lid->addr));
	KUNIT_EXPECT_EQ(test, conn->addr.dlid, 3u);
	/* A GID that comes along, and one that does not. Who goes by the LID looks for the same peer there, too. */
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 0, 9), 2);
	KUNIT_EXPECT_EQ(test, conn->addr.dlid, 9u);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 5);
	conn->told = false;		/* its INFO has come */
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 0, 9), 2);
	KUNIT_EXPECT_FALSE(test, conn->told);
	KUNIT_EXPECT_EQ(test, told(test, 5, 0, 6, 10), 1);
	KUNIT_EXPECT_EQ(test, conn->addr.dlid, 10u);
	KUNIT_EXPECT_EQ(test, (int)conn->addr.dgid.raw[15], 6);
}

static struct kunit_case conn_cases[] = {
	KUNIT_CASE(t_created_at_rtr),
	KUNIT_CASE(t_who_gets_none),
	KUNIT_CASE(t_lookups),
	KUNIT_CASE(t_who_is_the_peer),
	KUNIT_CASE(t_ready_needs_both),
	KUNIT_CASE(t_same_peer_again),
	KUNIT_CASE(t_moves),
	KUNIT_CASE(t_bound_late),
	KUNIT_CASE(t_number_is_anothers),
	KUNIT_CASE(t_number_is_a_movers),
	KUNIT_CASE(t_number_is_its_own),
	KUNIT_CASE(t_both_move),
	KUNIT_CASE(t_abort),
	KUNIT_CASE(t_rests_of_old),
	KUNIT_CASE(t_late_aborted),
	KUNIT_CASE(t_one_of_two_aborts),
	KUNIT_CASE(t_late_connected),
	KUNIT_CASE(t_gone),
	KUNIT_CASE(t_process_leaves),
	KUNIT_CASE(t_remotes_are_shared),
	KUNIT_CASE(t_lease_in_range),
	KUNIT_CASE(t_lease_is_by_what_is_heard),
	KUNIT_CASE(t_told_moved),
	KUNIT_CASE(t_told_of_others),
	KUNIT_CASE(t_told_wrong),
	KUNIT_CASE(t_told_infiniband),
	{}
};

static struct kunit_suite conn_suite = {
	.name = "repath_conn",
	.init = conn_init,
	.exit = conn_exit,
	.test_cases = conn_cases,
};
kunit_test_suite(conn_suite);
MODULE_LICENSE("GPL");
