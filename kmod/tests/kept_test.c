// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 13 */
/* kunit-objs: ../number.o ../number_cmd.o ../op_kept.o ../op_list.o ../op_state.o ../stat.o ../trace.o */
/* What becomes of the numbers of queue pairs while their process is away from its device. */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <repath_peer.h>

#include "../conn.h"
#include "../device.h"
#include "../local.h"
#include "../netlink.h"
#include "../number.h"
#include "../op.h"
#include "../proc.h"
#include "../track.h"
#include "../unplug.h"
#include "../watch.h"
#include "proc_fakes.h"

#define QPS	6
#define GID	1	/* of the first device; the second one has GID + 1 */
#define GID_TWO	2
#define ASKER_QPN 7
#define ASKER_GID 9

DEFINE_MUTEX(repath_conn_mutex);

static struct {
	struct repath_device *devs;
	struct repath_proc proc[2];	/* the one that is away, and a stranger */
	struct pid pid[3];		/* the third one is of no shim */
	struct repath_qp *qp[QPS];
	u32 told[2];			/* EV_NUMBERS */
	int tells;
	bool no_users;
	int speaks, on;			/* which process, and of which device */
} fake;

struct repath_device *repath_device_get_by_index(const struct net *net, u32 index)
{
	return NULL;
}

int repath_proc_and_device_of(struct genl_info *info, struct repath_proc **proc,
			      struct repath_device **dev)
{
	*proc = repath_proc_get(&fake.proc[fake.speaks]);
	*dev = repath_device_get(&fake.devs[fake.on]);
	return 0;
}

void repath_watch_moved(struct repath_proc *proc, struct repath_device *dev,
			const struct repath_number *rows, u32 n,
			const struct repath_gid_change *gids, u32 ngids)
{
}

void repath_unplug_left(const struct repath_op *op)
{
}

/* Its ports have one LID each. */
bool repath_device_use(struct repath_device *dev)
{
	return false;
}

void repath_device_unuse(struct repath_device *dev)
{
}

void repath_device_name(struct repath_device *dev, char name[IB_DEVICE_NAME_MAX])
{
	strscpy(name, "fake0", IB_DEVICE_NAME_MAX);
}

struct repath_device *repath_device_next(const struct net *net, u32 index)
{
	int i;

	for (i = 0; i < 2; i++)
		if (index <= fake.devs[i].index)
			return repath_device_get(&fake.devs[i]);
	return NULL;
}

struct net *repath_device_net(const struct repath_device *dev)
{
	return &init_net;
}

union ib_gid *repath_local_gids(struct repath_device *dev, u32 *n)
{
	union ib_gid *gids = kvcalloc(2, sizeof(*gids), GFP_KERNEL);

	*n = gids ? 2 : 0;
	if (gids) {
		gids[0].raw[0] = gids[1].raw[0] = 0xfe;
		gids[0].raw[15] = 0xf0;
		gids[1].raw[15] = dev == &fake.devs[0] ? GID : GID_TWO;
	}
	return gids;
}

struct repath_proc *repath_proc_find(struct pid *tgid)
{
	int i;

	for (i = 0; i < 2; i++)
		if (fake.proc[i].tgid == tgid)
			return repath_proc_get(&fake.proc[i]);
	return NULL;
}

void repath_proc_for_each(void (*fn)(struct repath_proc *proc, void *arg), void *arg)
{
	fn(&fake.proc[0], arg);
	fn(&fake.proc[1], arg);
}

void repath_proc_tell_numbers(struct repath_proc *proc, u32 count)
{
	fake.told[proc - fake.proc] = count;
	fake.tells++;
}

struct repath_qp *repath_qp_find(struct repath_device *dev, u32 qpn)
{
	int i;

	for (i = 0; i < QPS; i++)
		if (fake.qp[i] && fake.qp[i]->dev == dev && fake.qp[i]->qpn == qpn) {
			kref_get(&fake.qp[i]->kref);
			return fake.qp[i];
		}
	return NULL;
}

int repath_qp_walk_of(struct pid *tgid, repath_qp_fn fn, void *arg)
{
	int i, ret = 0;

	for (i = 0; i < QPS && !ret; i++)
		if (fake.qp[i] && fake.qp[i]->user->pid == tgid)
			ret = fn(fake.qp[i], arg);
	return ret;
}

int repath_user_for_each(struct repath_device *dev, struct pid *tgid,
			 int (*fn)(struct repath_user *user, void *arg), void *arg)
{
	struct repath_user user = { .qp_count = QPS };

	return fake.no_users ? -ENOMEM : fn(&user, arg);
}

void repath_qp_follow(void)
{
}

void repath_qp_unfollow(void)
{
}

void repath_qp_release(struct kref *kref)
{
}

struct repath_conn *repath_conn_by_qp(struct repath_device *dev, u32 qpn)
{
	return NULL;
}

void repath_op_event(struct repath_op *op)
{
}

struct ctx {
	struct repath_device dev[3];	/* the third one is in no operation */
	struct repath_qp qp[QPS];
	struct repath_user user[3];
	struct repath_op *op;
	struct repath_op_proc *p;
};

static struct ctx *of(struct kunit *test)
{
	return test->priv;
}

/* The queue pair @n of process @proc has appeared on a device. */
static void appears(struct kunit *test, int n, int proc, int dev, u8 type, u32 qpn)
{
	struct ctx *c = of(test);
	struct repath_qp *rqp = &c->qp[n];

	rqp->dev = &c->dev[dev];
	rqp->user = &c->user[proc];
	rqp->type = type;
	rqp->qpn = qpn;
	rqp->state = IB_QPS_INIT;
	fake.qp[n] = rqp;
}

static void known_as(struct kunit *test, int n, u32 number)
{
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, repath_number_set(&fake.proc[0], &of(test)->qp[n], number), 0);
	mutex_unlock(&repath_conn_mutex);
}

static void goes(struct kunit *test, int n)
{
	mutex_lock(&repath_conn_mutex);
	repath_number_qp_gone(&of(test)->qp[n]);
	mutex_unlock(&repath_conn_mutex);
	fake.qp[n] = NULL;
}

/* The first process has 17, one that is known as 40, and a UD one, 19; it is suspended. */
static int kept_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	int i;

	if (!c)
		return -ENOMEM;
	memset(&fake, 0, sizeof(fake));
	fake.devs = c->dev;
	test->priv = c;
	for (i = 0; i < 2; i++) {
		kref_init(&c->dev[i].kref);
		c->dev[i].index = i + 1;
		kref_init(&fake.proc[i].kref);
		repath_proc_lists_init(&fake.proc[i]);
		fake.proc[i].tgid = &fake.pid[i];
		fake.proc[i].cookie = 0xc0 + i;
	}
	for (i = 0; i < 3; i++) {
		refcount_set(&fake.pid[i].count, 1);
		c->user[i].pid = &fake.pid[i];
	}
	for (i = 0; i < QPS; i++)
		kref_init(&c->qp[i].kref);
	repath_number_init();
	appears(test, 0, 0, 0, IB_QPT_RC, 17);
	appears(test, 1, 0, 0, IB_QPT_RC, 18);
	appears(test, 2, 0, 0, IB_QPT_UD, 19);
	known_as(test, 1, 40);
	fake.tells = 0;
	mutex_lock(&repath_op_mutex);
	c->op = repath_op_new(&c->dev[0], &init_net, &init_pid_ns);
	if (c->op)
		c->p = repath_op_proc_add(c->op, &fake.proc[0]);
	mutex_unlock(&repath_op_mutex);
	return c->p ? 0 : -ENOMEM;
}

static void reach(struct kunit *test, u8 state, u8 stage)
{
	struct ctx *c = of(test);

	mutex_lock(&repath_op_mutex);
	c->p->stage = stage;
	if (state == REPATH_OP_RESUMING && !c->op->new_dev)
		c->op->new_dev = repath_device_get(&c->dev[1]);
	repath_op_set_state(c->op, state);
	mutex_unlock(&repath_op_mutex);
}

static void suspend(struct kunit *test)
{
	struct ctx *c = of(test);
	int i;

	reach(test, REPATH_OP_SUSPENDING, REPATH_STAGE_DRAIN);
	mutex_lock(&repath_op_mutex);
	repath_op_keep(c->op, c->p);
	mutex_unlock(&repath_op_mutex);
	for (i = 0; i < 3; i++)
		goes(test, i);
	reach(test, REPATH_OP_SUSPENDED, REPATH_STAGE_RELEASE);
}

static void kept_exit(struct kunit *test)
{
	struct ctx *c = of(test);
	int i;

	if (!c)
		return;
	if (c->op && !repath_op_is_final(c->op))
		reach(test, REPATH_OP_FAILED, REPATH_STAGE_ABORT);
	repath_op_free_all();
	mutex_lock(&repath_conn_mutex);
	for (i = 0; i < 2; i++)
		repath_number_proc_left(&fake.proc[i]);
	mutex_unlock(&repath_conn_mutex);
	repath_number_exit();
	KUNIT_EXPECT_EQ(test, repath_number_count(), 0u);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, kref_read(&c->dev[i].kref), 1u);
		KUNIT_EXPECT_EQ(test, kref_read(&fake.proc[i].kref), 1u);
		KUNIT_EXPECT_EQ(test, fake.proc[i].kept, 0u);
	}
	for (i = 0; i < QPS; i++)
		KUNIT_EXPECT_EQ(test, kref_read(&c->qp[i].kref), 1u);
}

static u8 asked(struct kunit *test, int dev, u8 gid, u8 type, u32 qpn, u64 cookie, u32 *now)
{
	struct repath_resolve ask = {
		.dst_gid = { gid ? 0xfe : 0, [15] = gid },
		.src_gid = { 0xfe, [15] = ASKER_GID },
		.dst_cookie = cpu_to_be64(cookie),
		.src_cookie = cpu_to_be64(0xbeef),
		.qpn = cpu_to_be32(qpn),
		.src_qpn = cpu_to_be32(type == IB_QPT_UD ? 0 : ASKER_QPN),
		.qp_type = type,
	};
	struct repath_resolved out = {};
	struct repath_qp *rqp;
	u8 status;

	mutex_lock(&repath_op_mutex);
	mutex_lock(&repath_conn_mutex);
	status = repath_number_find(&of(test)->dev[dev], &ask, &out, &rqp);
	mutex_unlock(&repath_conn_mutex);
	mutex_unlock(&repath_op_mutex);
	if (rqp)
		repath_qp_put(rqp);
	*now = be32_to_cpu(out.qpn);
	return status;
}

static void expect(struct kunit *test, int dev, u8 gid, u8 type, u32 qpn, u8 status, u32 now)
{
	u32 got;

	KUNIT_EXPECT_EQ(test, (int)asked(test, dev, gid, type, qpn, 0, &got), (int)status);
	KUNIT_EXPECT_EQ(test, got, now);
}

#define EXPECT_OK(dev, gid, type, qpn, now) \
	expect(test, dev, gid, IB_QPT_##type, qpn, REPATH_PEER_OK, now)
#define EXPECT_BUSY(dev, gid, type, qpn) \
	expect(test, dev, gid, IB_QPT_##type, qpn, REPATH_PEER_BUSY, 0)

/* On the device that it has left a stranger has taken its numbers. */
static void t_taken(struct kunit *test)
{
	struct ctx *c = of(test);

	EXPECT_OK(0, GID, RC, 17, 17);
	EXPECT_OK(0, GID, RC, 40, 18);
	suspend(test);
	EXPECT_BUSY(0, GID, RC, 17);
	appears(test, 0, 1, 0, IB_QPT_RC, 17);
	appears(test, 1, 1, 0, IB_QPT_RC, 40);
	appears(test, 2, 1, 0, IB_QPT_UD, 19);
	EXPECT_BUSY(0, GID, RC, 17);
	EXPECT_BUSY(0, GID, RC, 40);
	EXPECT_BUSY(0, GID, UD, 19);
	/* It may have been given another address. */
	EXPECT_BUSY(0, 0x77, RC, 17);
	KUNIT_EXPECT_EQ(test, kref_read(&c->qp[0].kref), 1u);
	/* Numbers that nobody was told, and those of queue pairs of another type */
	appears(test, 3, 1, 0, IB_QPT_RC, 18);
	appears(test, 2, 1, 0, IB_QPT_RC, 19);
	EXPECT_OK(0, GID, RC, 18, 18);
	EXPECT_OK(0, GID, RC, 19, 19);
	/* The stranger's own peer */
	c->qp[0].state = IB_QPS_RTS;
	c->qp[0].path.has_av = c->qp[0].path.has_grh = true;
	c->qp[0].path.dest_qpn = ASKER_QPN;
	c->qp[0].path.dgid.raw[0] = 0xfe;
	c->qp[0].path.dgid.raw[15] = ASKER_GID;
	EXPECT_OK(0, GID, RC, 17, 17);
	/* Neither are they a stranger's who has no shim. */
	appears(test, 1, 2, 0, IB_QPT_RC, 40);
	EXPECT_BUSY(0, GID, RC, 40);
}

/* Its address is another device's by now. */
static void t_taken_elsewhere(struct kunit *test)
{
	suspend(test);
	appears(test, 0, 1, 1, IB_QPT_RC, 17);
	EXPECT_BUSY(1, GID, RC, 17);
	EXPECT_BUSY(1, 0xf0, RC, 17);
	/* Where there is no GID it is not known whose the address was. */
	EXPECT_BUSY(1, 0, RC, 17);
	/* At the other device's own nobody else can be meant, until the process comes there. */
	EXPECT_OK(1, GID_TWO, RC, 17, 17);
	reach(test, REPATH_OP_RESUMING, REPATH_STAGE_OPEN);
	EXPECT_BUSY(1, GID_TWO, RC, 17);
}

/* Its queue pairs are made anew, with any numbers; then it says by which they are known. */
static void t_comes_back(struct kunit *test)
{
	suspend(test);
	reach(test, REPATH_OP_RESUMING, REPATH_STAGE_OPEN);
	appears(test, 0, 0, 1, IB_QPT_RC, 17);
	appears(test, 1, 0, 1, IB_QPT_RC, 18);
	EXPECT_BUSY(1, GID, RC, 17);
	EXPECT_BUSY(1, GID, RC, 18);
	known_as(test, 1, 17);
	known_as(test, 0, 40);
	/* Who asks for them need not wait until it has said that all are made. */
	EXPECT_OK(1, GID, RC, 17, 18);
	EXPECT_OK(1, GID, RC, 40, 17);
	reach(test, REPATH_OP_RESUMING, REPATH_STAGE_RECREATE);
	EXPECT_OK(1, GID, RC, 17, 18);
	EXPECT_OK(1, GID, RC, 40, 17);
	/* What a stranger has where it was is still not it. */
	appears(test, 3, 1, 0, IB_QPT_RC, 17);
	EXPECT_BUSY(0, GID, RC, 17);
	/* It was not heard there by its peers, and gives up what it has made. */
	reach(test, REPATH_OP_PARKED, REPATH_STAGE_RECREATE);
	goes(test, 0);
	goes(test, 1);
	EXPECT_BUSY(0, GID, RC, 17);
	appears(test, 4, 1, 1, IB_QPT_RC, 40);
	EXPECT_BUSY(1, GID, RC, 40);
}

/* What is there, by whatever number it is known, is about to go; or not. */
static void t_leaves(struct kunit *test)
{
	struct ctx *c = of(test);

	reach(test, REPATH_OP_SUSPENDING, REPATH_STAGE_DRAIN);
	mutex_lock(&repath_op_mutex);
	repath_op_keep(c->op, c->p);
	mutex_unlock(&repath_op_mutex);
	EXPECT_BUSY(0, GID, RC, 17);
	EXPECT_BUSY(0, GID, RC, 40);
	reach(test, REPATH_OP_ABORTING, REPATH_STAGE_DRAIN);
	EXPECT_BUSY(0, GID, RC, 40);
	reach(test, REPATH_OP_FAILED, REPATH_STAGE_ABORT);
	EXPECT_OK(0, GID, RC, 17, 17);
}

/* Back to where it was: a failed suspend */
static void t_goes_back(struct kunit *test)
{
	suspend(test);
	reach(test, REPATH_OP_ABORTING, REPATH_STAGE_RELEASE);
	appears(test, 0, 0, 0, IB_QPT_RC, 17);
	appears(test, 1, 0, 0, IB_QPT_RC, 55);
	EXPECT_BUSY(0, GID, RC, 17);
	EXPECT_BUSY(0, GID, RC, 55);
	known_as(test, 1, 17);
	known_as(test, 0, 40);
	reach(test, REPATH_OP_FAILED, REPATH_STAGE_ABORT);
	EXPECT_OK(0, GID, RC, 17, 55);
	EXPECT_OK(0, GID, RC, 40, 17);
}

/* Two queue pairs of one process, by the same number on two devices */
static void t_own_on_another_device(struct kunit *test)
{
	u32 now;

	appears(test, 3, 0, 1, IB_QPT_RC, 17);
	suspend(test);
	EXPECT_OK(1, GID_TWO, RC, 17, 17);
	EXPECT_BUSY(1, GID, RC, 17);
	/* Nor is it meant by who knows the process, and where that was. */
	KUNIT_EXPECT_EQ(test, (int)asked(test, 0, GID, IB_QPT_RC, 17, 0xc0, &now),
			(int)REPATH_PEER_BUSY);
	/* Who means another process does not wait for this one. */
	appears(test, 4, 1, 1, IB_QPT_RC, 40);
	KUNIT_EXPECT_EQ(test, (int)asked(test, 1, GID, IB_QPT_RC, 40, 0xc1, &now),
			(int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, now, 40u);
	/* Another one of its own that is known by that number, elsewhere, is not the one that is away either. */
	goes(test, 3);
	goes(test, 4);
	appears(test, 3, 0, 1, IB_QPT_RC, 41);
	known_as(test, 3, 17);
	EXPECT_BUSY(1, GID, RC, 17);
	KUNIT_EXPECT_EQ(test, (int)asked(test, 0, GID, IB_QPT_RC, 17, 0xc0, &now),
			(int)REPATH_PEER_BUSY);
}

static void t_ends(struct kunit *test)
{
	struct ctx *c = of(test);

	suspend(test);
	appears(test, 0, 1, 0, IB_QPT_RC, 17);
	EXPECT_BUSY(0, GID, RC, 17);
	/* The process has ended. */
	mutex_lock(&repath_op_mutex);
	repath_op_proc_free(c->op, c->p);
	mutex_unlock(&repath_op_mutex);
	c->p = NULL;
	EXPECT_OK(0, GID, RC, 17, 17);
	mutex_lock(&repath_op_mutex);
	repath_op_set_state(c->op, REPATH_OP_RESUMED);
	mutex_unlock(&repath_op_mutex);
}

/* Without memory to note them it may have had any. */
static void t_unknown(struct kunit *test)
{
	fake.no_users = true;
	suspend(test);
	appears(test, 0, 1, 0, IB_QPT_RC, 1234);
	EXPECT_BUSY(0, GID, RC, 1234);
	reach(test, REPATH_OP_RESUMED, REPATH_STAGE_REPLAY);
	EXPECT_OK(0, GID, RC, 1234, 1234);
}

static bool may_not_have(struct kunit *test, u32 qpn, int proc, int dev)
{
	bool kept;

	mutex_lock(&repath_op_mutex);
	kept = repath_op_keeps(&fake.devs[dev], qpn, &fake.proc[proc]);
	mutex_unlock(&repath_op_mutex);
	return kept;
}

/* That no queue pair is known by another number any more is told some time after. */
static void expect_told(struct kunit *test, u32 count)
{
	int i;

	for (i = 0; i < 1000 && repath_number_count() != count; i++)
		msleep(20);
	/* All have been told then. */
	mutex_lock(&repath_conn_mutex);
	KUNIT_EXPECT_EQ(test, repath_number_count(), count);
	mutex_unlock(&repath_conn_mutex);
}

/* Nobody else gives a new queue pair such a number, and all are told that there are some. */
static void t_others_are_told(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, may_not_have(test, 17, 1, 0));
	suspend(test);
	expect_told(test, 1);
	KUNIT_EXPECT_EQ(test, fake.told[0], 0u);
	KUNIT_EXPECT_EQ(test, fake.told[1], 1u);
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 17, 1, 0));
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 19, 1, 0));
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 40, 1, 0));
	KUNIT_EXPECT_FALSE(test, may_not_have(test, 18, 1, 0));
	KUNIT_EXPECT_FALSE(test, may_not_have(test, 17, 0, 0));
	/* Where it will be is not known; then it is. */
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 17, 1, 1));
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 17, 1, 2));
	reach(test, REPATH_OP_RESUMING, REPATH_STAGE_OPEN);
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 17, 1, 0));
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 17, 1, 1));
	KUNIT_EXPECT_FALSE(test, may_not_have(test, 17, 1, 2));
	reach(test, REPATH_OP_RESUMED, REPATH_STAGE_REPLAY);
	KUNIT_EXPECT_FALSE(test, may_not_have(test, 17, 1, 0));
	expect_told(test, 0);
	KUNIT_EXPECT_EQ(test, fake.told[1], 0u);
}

/* A second operation, of process @proc on device @dev; it is suspended, or failed to be. */
static struct repath_op *suspend_too(struct kunit *test, int proc, int dev)
{
	struct repath_op_proc *p = NULL;
	struct repath_op *op;

	mutex_lock(&repath_op_mutex);
	op = repath_op_new(&of(test)->dev[dev], &init_net, &init_pid_ns);
	if (op)
		p = repath_op_proc_add(op, &fake.proc[proc]);
	if (p) {
		p->stage = REPATH_STAGE_DRAIN;
		repath_op_set_state(op, REPATH_OP_SUSPENDING);
		repath_op_keep(op, p);
		p->stage = REPATH_STAGE_RELEASE;
		repath_op_set_state(op, REPATH_OP_SUSPENDED);
	}
	mutex_unlock(&repath_op_mutex);
	KUNIT_EXPECT_NOT_NULL(test, p);
	return p ? op : NULL;
}

static void end(struct repath_op *op)
{
	mutex_lock(&repath_op_mutex);
	repath_op_set_state(op, REPATH_OP_FAILED);
	mutex_unlock(&repath_op_mutex);
}

/* Who is away from one device makes new queue pairs on another: there it is as everybody else. */
static void t_on_its_other_device(struct kunit *test)
{
	struct repath_op *op;

	suspend(test);
	op = suspend_too(test, 1, 1);
	if (!op)
		return;
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 17, 1, 2));
	KUNIT_EXPECT_FALSE(test, may_not_have(test, 17, 1, 1));
	/* The first one comes to a device: where the other one was, and may come back to. */
	reach(test, REPATH_OP_RESUMING, REPATH_STAGE_OPEN);
	KUNIT_EXPECT_FALSE(test, may_not_have(test, 17, 1, 1));
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 17, 1, 0));
	end(op);
	KUNIT_EXPECT_TRUE(test, may_not_have(test, 17, 1, 1));
}

/* Both devices of a process are suspended, and resumed on one: what has come first is not what is still to come. */
static void t_second_resume(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_op *op;

	appears(test, 3, 0, 1, IB_QPT_RC, 17);
	op = suspend_too(test, 0, 1);
	if (!op)
		return;
	goes(test, 3);
	suspend(test);
	/* The second device's first: its queue pair has another number now. */
	mutex_lock(&repath_op_mutex);
	op->new_dev = repath_device_get(&c->dev[1]);
	repath_op_set_state(op, REPATH_OP_RESUMING);
	mutex_unlock(&repath_op_mutex);
	c->qp[3].created_ns = ktime_get_boottime_ns();
	appears(test, 3, 0, 1, IB_QPT_RC, 41);
	known_as(test, 3, 17);
	end(op);
	EXPECT_OK(1, GID_TWO, RC, 17, 41);
	EXPECT_BUSY(1, GID, RC, 17);
	/* The first device's are on their way there as well. */
	mutex_lock(&repath_op_mutex);
	c->p->stage_ns[REPATH_STAGE_NONE] = ktime_get_boottime_ns() + 1 - c->op->started_ns;
	mutex_unlock(&repath_op_mutex);
	reach(test, REPATH_OP_RESUMING, REPATH_STAGE_OPEN);
	EXPECT_BUSY(1, GID, RC, 17);
	/* The one that is meant */
	goes(test, 3);
	c->qp[0].created_ns = c->op->started_ns + c->p->stage_ns[REPATH_STAGE_NONE];
	appears(test, 0, 0, 1, IB_QPT_RC, 42);
	known_as(test, 0, 17);
	EXPECT_OK(1, GID, RC, 17, 42);
}

struct numbers {
	struct nlattr attr;
	struct repath_number rows[2];
};

/* NUMBERS of process @proc on device @dev */
static int says(struct kunit *test, int proc, int dev, struct numbers *numbers, u32 n)
{
	struct nlattr index = { .nla_len = NLA_HDRLEN + sizeof(u32) };
	struct nlattr *attrs[REPATH_A_MAX + 1] = { [REPATH_A_DEV_INDEX] = &index };
	struct genl_info info = { .attrs = attrs };

	numbers->attr.nla_len = NLA_HDRLEN + n * sizeof(numbers->rows[0]);
	attrs[REPATH_A_NUMBERS] = &numbers->attr;
	fake.speaks = proc;
	fake.on = dev;
	return repath_numbers_cmd(NULL, &info);
}

static int claims(struct kunit *test, int proc, int dev, u32 qpn, u32 known_as)
{
	struct numbers numbers = { .rows = { { .qpn = qpn, .known_as = known_as } } };

	return says(test, proc, dev, &numbers, 1);
}

/* Who has never moved says that its queue pair is known by a stranger's number. */
static void t_claims(struct kunit *test)
{
	struct numbers both = { .rows = { { 50, 17 }, { 51, 30 } } };
	struct ctx *c = of(test);

	c->qp[3].created_ns = c->qp[4].created_ns = 1;
	appears(test, 3, 1, 0, IB_QPT_RC, 50);
	appears(test, 4, 1, 0, IB_QPT_RC, 51);
	KUNIT_EXPECT_EQ(test, claims(test, 1, 0, 50, 17), -EPERM);
	EXPECT_OK(0, GID, RC, 17, 17);
	KUNIT_EXPECT_EQ(test, claims(test, 1, 0, 50, 40), -EPERM);
	EXPECT_OK(0, GID, RC, 40, 18);
	/* Nor is the stranger's its own; what it may say of others holds. */
	KUNIT_EXPECT_EQ(test, claims(test, 1, 0, 17, 60), -EPERM);
	KUNIT_EXPECT_EQ(test, says(test, 1, 0, &both, 2), -EPERM);
	EXPECT_OK(0, GID, RC, 17, 17);
	EXPECT_OK(0, GID, RC, 30, 51);
	/* Nobody means these by them: one is of another type, one is known by another number. */
	KUNIT_EXPECT_EQ(test, claims(test, 1, 0, 50, 19), 0);
	EXPECT_OK(0, GID, UD, 19, 19);
	KUNIT_EXPECT_EQ(test, claims(test, 1, 0, 50, 18), 0);
	EXPECT_OK(0, GID, RC, 18, 50);
	/* A process that is away comes back to its numbers. */
	suspend(test);
	KUNIT_EXPECT_EQ(test, claims(test, 1, 0, 50, 17), -EPERM);
	KUNIT_EXPECT_EQ(test, claims(test, 1, 0, 50, 50), 0);
	EXPECT_OK(0, GID, RC, 50, 50);
}

/* Who moves says so of its own, whoever bears the number where it comes to; and again, to a module that knows nothing. */
static void t_claims_its_own(struct kunit *test)
{
	struct ctx *c = of(test);

	suspend(test);
	reach(test, REPATH_OP_RESUMING, REPATH_STAGE_OPEN);
	c->qp[0].created_ns = c->qp[3].created_ns = 1;
	appears(test, 0, 0, 1, IB_QPT_RC, 60);
	appears(test, 3, 1, 1, IB_QPT_RC, 17);
	KUNIT_EXPECT_EQ(test, claims(test, 0, 1, 60, 17), 0);
	EXPECT_BUSY(1, GID_TWO, RC, 17);
	reach(test, REPATH_OP_RESUMED, REPATH_STAGE_REPLAY);
	KUNIT_EXPECT_EQ(test, claims(test, 0, 1, 60, 17), 0);
	expect(test, 1, GID_TWO, IB_QPT_RC, 17, REPATH_PEER_AMBIGUOUS, 0);
	/* It was there before the module. */
	goes(test, 0);
	c->qp[0].created_ns = 0;
	appears(test, 0, 0, 1, IB_QPT_RC, 60);
	KUNIT_EXPECT_EQ(test, claims(test, 0, 1, 60, 17), 0);
	expect(test, 1, GID_TWO, IB_QPT_RC, 17, REPATH_PEER_AMBIGUOUS, 0);
}

static struct kunit_case kept_cases[] = {
	KUNIT_CASE(t_taken),
	KUNIT_CASE(t_taken_elsewhere),
	KUNIT_CASE(t_comes_back),
	KUNIT_CASE(t_goes_back),
	KUNIT_CASE(t_leaves),
	KUNIT_CASE(t_own_on_another_device),
	KUNIT_CASE(t_ends),
	KUNIT_CASE(t_unknown),
	KUNIT_CASE(t_others_are_told),
	KUNIT_CASE(t_on_its_other_device),
	KUNIT_CASE(t_second_resume),
	KUNIT_CASE(t_claims),
	KUNIT_CASE(t_claims_its_own),
	{}
};

static struct kunit_suite kept_suite = {
	.name = "repath_kept",
	.init = kept_init,
	.exit = kept_exit,
	.test_cases = kept_cases,
};

kunit_test_suite(kept_suite);
MODULE_LICENSE("GPL");
