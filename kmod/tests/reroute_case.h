/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each case of rerouting begins with: a registered device whose queue pairs are in ib_core's
 * table, and can be modified; how it does that, and what it can not, is the case's.
 */
#ifndef REPATH_TESTS_REROUTE_CASE_H
#define REPATH_TESTS_REROUTE_CASE_H

#include <linux/delay.h>
#include <rdma/restrack.h>

#include "../lid.h"
#include "../reroute.h"
#include "../reroute_behind.h"
#include "../reroute_qp.h"
#include "../reroute_shim.h"
#include "track_fakes.h"
#include "fake_ibdev.h"

/* Exported, and declared in a header of ib_core's own. */
void rdma_restrack_new(struct rdma_restrack_entry *res, enum rdma_restrack_type type);
void rdma_restrack_set_name(struct rdma_restrack_entry *res, const char *caller);
void rdma_restrack_add(struct rdma_restrack_entry *res);
void rdma_restrack_del(struct rdma_restrack_entry *res);

#define OLD_SL	1
#define NEW_SL	5
#define DLID	9
#ifndef MOST_QPS
#define MOST_QPS 256
#endif

/* A queue pair, and what its device makes of it. */
struct hw_qp {
	struct ib_qp qp;
	enum ib_qp_state state;
	struct rdma_ah_attr ah;
	struct rdma_ah_attr alt;
	u8 mig;
	bool draining;
	int tried;		/* modifications, by whomever */
	int modified;		/* of these were taken */
};

/* What the device can not, and what happens in the middle of a modification. */
static struct {
	bool no_sqd;
	bool no_alt;
	bool keeps_alt;		/* takes no other one while it is armed */
	bool keeps_ah;		/* takes a new address, and goes on with the old one */
	bool arms;		/* there is always traffic both ways, and the peer is ready */
	unsigned int verb_us;	/* what a verb takes */
	int mute;		/* so many verbs are not answered */
	void (*before)(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask);
	void (*after)(struct hw_qp *hw, const struct ib_qp_attr *attr, int mask);
	void (*asked)(struct hw_qp *hw);	/* before the work item hears the answer */
	struct repath_reroute *reroute;		/* of its queue pairs */
} hw_device;

static u32 fake_op;

u32 repath_op_of_device(struct repath_device *dev)
{
	return READ_ONCE(fake_op);
}

/* The shims at both ends. */
static struct {
	bool there;		/* at both */
	bool asked_for;		/* ... nobody knows yet */
	bool moving;		/* with something else */
	bool deaf;
	int asked;
	struct repath_new_path to;	/* last */
	int told;		/* of paths, for address handles */
	unsigned int tell_us;	/* what that takes */
	struct repath_new_path tale;
} shims;

bool repath_shim_can_cycle(struct repath_qp *rqp)
{
	return shims.there;
}

bool repath_shim_may_cycle(struct repath_qp *rqp)
{
	return shims.there || shims.asked_for;
}

bool repath_shim_is_moving(struct repath_qp *rqp)
{
	return READ_ONCE(shims.moving);
}

int repath_shim_cycle(struct repath_qp *rqp, const struct repath_new_path *to)
{
	shims.asked++;
	shims.to = *to;
	return shims.deaf ? -EAGAIN : 0;
}

void repath_shim_tell_path(struct repath_device *dev, u32 port, const struct repath_new_path *path)
{
	shims.told++;
	shims.tale = *path;
	udelay(shims.tell_us);
}

/* Who does not read is reroute_behind_test's. */
bool repath_behind_again(struct repath_reroute *r)
{
	return false;
}

void repath_behind_end(struct repath_reroute *r)
{
}

static struct hw_qp *to_hw(struct ib_qp *qp)
{
	return container_of(qp, struct hw_qp, qp);
}

static bool hw_answers(void)
{
	if (hw_device.mute <= 0)
		return true;
	hw_device.mute--;
	return false;
}

static int hw_modify(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct hw_qp *hw = to_hw(qp);
	enum ib_qp_state next;

	udelay(hw_device.verb_us);
	hw->tried++;
	if (!hw_answers())
		return -EIO;
	if (hw_device.before)
		hw_device.before(hw, attr, mask);
	next = mask & IB_QP_STATE ? attr->qp_state : hw->state;
	if (!ib_modify_qp_is_ok(hw->state, next, qp->qp_type, mask))
		return -EINVAL;
	if ((hw_device.no_sqd && next == IB_QPS_SQD) || (hw_device.no_alt && mask & IB_QP_ALT_PATH))
		return -EINVAL;
	if (hw_device.keeps_alt && mask & IB_QP_ALT_PATH && hw->mig == IB_MIG_ARMED)
		return -EINVAL;
	/* As rdmavt has it. */
	if (mask & IB_QP_PATH_MIG_STATE &&
	    (attr->path_mig_state == IB_MIG_REARM ? hw->mig == IB_MIG_ARMED :
	     hw->mig == IB_MIG_REARM))
		return -EINVAL;
	hw->modified++;
	hw->state = next;
	if (mask & IB_QP_AV && !hw_device.keeps_ah)
		hw->ah = attr->ah_attr;
	if (mask & IB_QP_ALT_PATH)
		hw->alt = attr->alt_ah_attr;
	if (mask & IB_QP_PATH_MIG_STATE) {
		if (hw->mig == IB_MIG_ARMED && attr->path_mig_state == IB_MIG_MIGRATED &&
		    !hw_device.keeps_ah)
			hw->ah = hw->alt;
		hw->mig = attr->path_mig_state;
	}
	/* As the hook does when it has returned. */
	repath_track_qp_modified(qp, attr, mask);
	if (hw_device.after)
		hw_device.after(hw, attr, mask);
	return 0;
}

static int hw_query(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct hw_qp *hw = to_hw(qp);

	udelay(hw_device.verb_us);
	if (!hw_answers())
		return -EIO;
	if (hw_device.arms && hw->mig == IB_MIG_REARM)
		hw->mig = IB_MIG_ARMED;
	attr->qp_state = hw->state;
	attr->port_num = 1;
	attr->ah_attr = hw->ah;
	attr->alt_ah_attr = hw->alt;
	attr->path_mig_state = hw->mig;
	attr->sq_draining = READ_ONCE(hw->draining);
	attr->timeout = 14;
	if (hw_device.asked)
		hw_device.asked(hw);
	return 0;
}

static const struct ib_device_ops hw_ops = {
	.driver_id = RDMA_DRIVER_QIB,
	.modify_qp = hw_modify,
	.query_qp = hw_query,
};

struct reroute_ctx {
	struct ib_device *ibdev;
	struct repath_device *dev;
	struct hw_qp *qps[MOST_QPS];
	int count;
};

static struct repath_device *the_device(struct kunit *test)
{
	return ((struct reroute_ctx *)test->priv)->dev;
}

static u64 stat_of(enum repath_stat stat)
{
	return atomic64_read(&repath_stats.n[stat]);
}

/* The owner's modification: this task is not the work item. */
static int owner_does(struct hw_qp *hw, struct ib_qp_attr *attr, int mask)
{
	return ib_modify_qp(&hw->qp, attr, mask);
}

/* The same in the middle of a modification of the work item's, by another task. */
static __maybe_unused int owner_does_meanwhile(struct hw_qp *hw, struct ib_qp_attr *attr, int mask)
{
	struct task_struct *hand = READ_ONCE(hw_device.reroute->hand);
	int err;

	WRITE_ONCE(hw_device.reroute->hand, NULL);
	err = owner_does(hw, attr, mask);
	WRITE_ONCE(hw_device.reroute->hand, hand);
	return err;
}

static __maybe_unused int owner_sets(struct hw_qp *hw, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return owner_does(hw, &attr, IB_QP_STATE);
}

/* Of the work item's: what another task does then. */
static __maybe_unused bool is_first(struct hw_qp *hw, int mask, const struct ib_qp_attr *attr, int bit, int state)
{
	if (!(mask & bit) || (bit == IB_QP_STATE && attr->qp_state != state))
		return false;
	hw_device.before = NULL;
	hw_device.after = NULL;
	return true;
}

/* By hardware: by itself, or as its peer has gone first. */
static __maybe_unused void hw_goes_over(struct hw_qp *hw)
{
	hw->ah = hw->alt;
	hw->mig = IB_MIG_MIGRATED;
}

/* Its owner gives it another address, in SQD. */
static __maybe_unused void owner_readdresses(struct kunit *test, struct hw_qp *hw, struct rdma_ah_attr *ah)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD, .ah_attr = *ah };

	owner_sets(hw, IB_QPS_SQD);
	KUNIT_ASSERT_EQ(test, owner_does(hw, &attr, IB_QP_STATE | IB_QP_AV), 0);
	owner_sets(hw, IB_QPS_RTS);
}

/* Its owner's. */
static void hear_event(struct ib_event *event, void *context)
{
}

/* A queue pair in RTS, to @dlid by OLD_SL. @task: NULL for the kernel's. */
static struct hw_qp *add_qp(struct kunit *test, u32 qpn, u16 dlid, struct task_struct *task)
{
	struct reroute_ctx *ctx = test->priv;
	struct hw_qp *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.dest_qp_num = 77,
		.path_mtu = IB_MTU_2048,
		.ah_attr = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1, .sl = OLD_SL },
	};

	KUNIT_ASSERT_NOT_NULL(test, hw);
	KUNIT_ASSERT_LT(test, ctx->count, (int)ARRAY_SIZE(ctx->qps));
	hw->qp.device = ctx->ibdev;
	hw->qp.real_qp = &hw->qp;
	hw->qp.qp_num = qpn;
	hw->qp.qp_type = IB_QPT_RC;
	hw->qp.port = 1;
	hw->qp.event_handler = hear_event;
	rdma_restrack_new(&hw->qp.res, RDMA_RESTRACK_QP);
	rdma_restrack_set_name(&hw->qp.res, task ? NULL : "fake");
	rdma_restrack_add(&hw->qp.res);
	ctx->qps[ctx->count++] = hw;

	fake_qp_created(&hw->qp, task);
	rdma_ah_set_dlid(&attr.ah_attr, dlid);
	hw->ah = attr.ah_attr;
	hw->state = IB_QPS_RTS;
	repath_track_qp_modified(&hw->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_DEST_QPN |
				 IB_QP_PATH_MTU);
	attr.qp_state = IB_QPS_RTS;
	repath_track_qp_modified(&hw->qp, &attr, IB_QP_STATE);
	return hw;
}

/* It is destroyed: ib_core waits for who uses it, and the hook tells. */
static void del_qp(struct kunit *test, struct hw_qp *hw)
{
	struct reroute_ctx *ctx = test->priv;
	int i;

	for (i = 0; i < ctx->count; i++)
		if (ctx->qps[i] == hw)
			ctx->qps[i] = NULL;
	rdma_restrack_del(&hw->qp.res);
	repath_track_qp_gone(&hw->qp);
}

static int reroute_to(struct kunit *test, u8 sl)
{
	const struct repath_new_path path = { .dlid = DLID, .sl = sl, .has = REPATH_PATH_SL };

	return repath_reroute_repath(the_device(test), 1, &path);
}

/* What was asked for has begun, and has gone as far as it goes. */
static void let_begin(struct kunit *test)
{
	struct repath_reroute *r = the_device(test)->reroute;
	int i;

	for (i = 0; i < 3; i++) {
		flush_delayed_work(&r->work);
		msleep(20);
	}
}

/*
 * Until nothing is under way any more. @hurry: nothing is waited for that has not come by then: each
 * wait ends at once.
 */
static void settle(struct kunit *test, bool hurry)
{
	struct repath_reroute *r = the_device(test)->reroute;
	struct reroute_ctx *ctx = test->priv;
	struct repath_move *move;
	int tries, i;

	for (tries = 0; tries < 10000; tries++) {
		flush_delayed_work(&r->work);
		if (!delayed_work_pending(&r->work) && list_empty(&r->moves) && list_empty(&r->jobs))
			break;
		usleep_range(1000, 2000);
		rcu_read_lock();
		for (i = 0; hurry && i < ctx->count; i++) {
			move = ctx->qps[i] ? xa_load(&r->table, ctx->qps[i]->qp.qp_num) : NULL;
			if (move)
				WRITE_ONCE(move->until, jiffies - 1);
		}
		rcu_read_unlock();
	}
	KUNIT_EXPECT_TRUE(test, list_empty(&r->moves));
	repath_note_flush();
}

/* What is remembered of a queue pair, and what it is. */
static void expect(struct kunit *test, struct hw_qp *hw, enum repath_move_state state,
		   enum repath_moved_by by, u8 sl, enum ib_qp_state qp_state)
{
	struct repath_move *move = xa_load(&the_device(test)->reroute->table, hw->qp.qp_num);

	KUNIT_ASSERT_NOT_NULL(test, move);
	KUNIT_EXPECT_EQ(test, (int)move->state, (int)state);
	KUNIT_EXPECT_EQ(test, (int)move->by, (int)by);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_sl(&hw->ah), (int)sl);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_dlid(&hw->ah), DLID);
	KUNIT_EXPECT_EQ(test, (int)hw->state, (int)qp_state);
	if (state == REPATH_MOVE_MOVED) {
		KUNIT_EXPECT_NE(test, move->since_ns, 0ull);
		KUNIT_EXPECT_NULL(test, move->why);
	} else if (state == REPATH_MOVE_FAILED || state == REPATH_MOVE_NO_WAY) {
		KUNIT_EXPECT_NOT_NULL(test, move->why);
	}
}

static int reroute_init(struct kunit *test)
{
	struct reroute_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	memset(&told, 0, sizeof(told));
	memset(&repath_stats, 0, sizeof(repath_stats));
	memset(&hw_device, 0, sizeof(hw_device));
	memset(&shims, 0, sizeof(shims));
	fake_op = 0;
	KUNIT_ASSERT_EQ(test, repath_track_init(), 0);
	KUNIT_ASSERT_EQ(test, repath_note_init(), 0);
	test->priv = ctx;
	ctx->ibdev = fake_ibdev_add("repath_reroute%d", RDMA_CORE_CAP_PROT_IB);
	KUNIT_ASSERT_NOT_NULL(test, ctx->ibdev);
	ib_set_device_ops(ctx->ibdev, &hw_ops);
	ctx->dev = repath_device_alloc(ctx->ibdev);
	KUNIT_ASSERT_NOT_NULL(test, ctx->dev);
	repath_reroute_begin(ctx->dev);
	KUNIT_ASSERT_NOT_NULL(test, ctx->dev->reroute);
	hw_device.reroute = ctx->dev->reroute;
	repath_device_link(ctx->dev);
	return 0;
}

static void reroute_exit(struct kunit *test)
{
	struct reroute_ctx *ctx = test->priv;
	int i;

	if (!ctx)
		return;
	hw_device.before = NULL;
	hw_device.asked = NULL;
	hw_device.after = NULL;
	if (ctx->dev) {
		repath_reroute_end(ctx->dev);
		for (i = 0; i < ctx->count; i++)
			if (ctx->qps[i])
				del_qp(test, ctx->qps[i]);
		repath_track_device_gone(ctx->dev);
		cancel_work_sync(&ctx->dev->rescan);
		repath_device_put(ctx->dev);
		repath_note_flush();
	}
	if (ctx->ibdev)
		fake_ibdev_del(ctx->ibdev);
	repath_note_exit();
	repath_track_exit();
}

#endif /* REPATH_TESTS_REROUTE_CASE_H */
