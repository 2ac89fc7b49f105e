// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 23 */
/* kunit-objs: ../op.o ../op_list.o ../op_run.o ../op_state.o ../stat.o ../trace.o */
/* The order of an operation, with processes that are only structs. */
#include <kunit/test.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>

#include "../device.h"
#include "../op.h"
#include "../proc.h"
#include "../unplug.h"
#include "proc_fakes.h"

#define PROCS 3

/* What surrounds op.c in the module. */
static struct {
	int device_err, conns_err, again_err, tell_err;
	bool released, put_off;
	int killed, events;
	int told[REPATH_CMD_EV_ABORT + 1];
	int kept;
	struct repath_proc procs[PROCS];
	int nprocs;
} fake;

void repath_device_name(struct repath_device *dev, char name[IB_DEVICE_NAME_MAX])
{
	strscpy(name, dev->name, IB_DEVICE_NAME_MAX);
}

int repath_op_check_device(struct repath_op *op)
{
	int i;

	if (fake.device_err)
		repath_op_say(op, -fake.device_err, "PID 7 (foreign) has it open");
	for (i = 0; i < fake.nprocs && !fake.device_err; i++)
		repath_op_proc_add(op, &fake.procs[i]);
	return fake.device_err;
}

int repath_op_check_conns(struct repath_op *op)
{
	if (fake.conns_err && fake.conns_err != -EAGAIN)
		repath_op_say(op, -fake.conns_err, "no answer");
	op->helloed = true;
	op->look_put_off = fake.put_off;
	op->look_next = jiffies;
	return fake.conns_err;
}

int repath_op_check_again(struct repath_op *op)
{
	return fake.again_err;
}

void repath_unplug_left(const struct repath_op *op)
{
}

bool repath_op_is_released(struct repath_op *op)
{
	return fake.released;
}

void repath_op_kill_foreign(struct repath_op *op)
{
	fake.killed++;
}

int repath_op_tell(struct repath_op *op, struct repath_op_proc *p, u8 cmd)
{
	fake.told[cmd]++;
	return fake.tell_err;
}

void repath_op_event(struct repath_op *op)
{
	fake.events++;
}

/* Numbers are kept_test's. */
void repath_op_keep(struct repath_op *op, struct repath_op_proc *p)
{
	if (!p->kept)
		fake.kept++;
	p->kept = (void *)p;
}

void repath_op_unkeep(struct repath_op_proc *p)
{
	if (p->kept)
		fake.kept--;
	p->kept = NULL;
}

struct ctx {
	struct repath_device dev;
	struct repath_op *op;
	struct net *net;
	int refs;
};

static struct ctx *of(struct kunit *test)
{
	return test->priv;
}

static int op_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	int i;

	if (!c)
		return -ENOMEM;
	memset(&fake, 0, sizeof(fake));
	fake.nprocs = 2;
	for (i = 0; i < PROCS; i++) {
		kref_init(&fake.procs[i].kref);
		fake.procs[i].tgid = task_tgid(current);
		fake.procs[i].cookie = i + 1;
		snprintf(fake.procs[i].comm, TASK_COMM_LEN, "fake%d", i);
	}
	kref_init(&c->dev.kref);
	strscpy(c->dev.name, "fake0", sizeof(c->dev.name));
	c->net = &init_net;
	test->priv = c;
	return 0;
}

/* Whatever state a case leaves, all references are given back. */
static void op_exit(struct kunit *test)
{
	struct ctx *c = of(test);
	int i;

	if (!c)
		return;
	repath_op_exit();
	KUNIT_EXPECT_EQ(test, kref_read(&c->dev.kref), 1u);
	for (i = 0; i < PROCS; i++)
		KUNIT_EXPECT_EQ(test, kref_read(&fake.procs[i].kref), 1u);
}

static unsigned long run(void)
{
	unsigned long next;

	mutex_lock(&repath_op_mutex);
	next = repath_op_run();
	mutex_unlock(&repath_op_mutex);
	return next;
}

static struct repath_op *start(struct kunit *test, bool force, bool dry_run)
{
	struct ctx *c = of(test);

	mutex_lock(&repath_op_mutex);
	c->op = repath_op_start(&c->dev, c->net, &init_pid_ns, 1000, force, dry_run);
	mutex_unlock(&repath_op_mutex);
	KUNIT_ASSERT_NOT_NULL(test, c->op);
	run();
	return c->op;
}

static void answer(struct kunit *test, int proc, u8 stage, u32 err, const char *reason)
{
	struct repath_op_proc *p;

	mutex_lock(&repath_op_mutex);
	p = repath_op_proc_find(of(test)->op, &fake.procs[proc]);
	if (p)
		repath_op_reply(of(test)->op, p, stage, err, reason, NULL);
	mutex_unlock(&repath_op_mutex);
	KUNIT_ASSERT_NOT_NULL(test, p);
	run();
}

static void answer_all(struct kunit *test, u8 stage)
{
	int i;

	for (i = 0; i < fake.nprocs; i++)
		answer(test, i, stage, 0, NULL);
}

/* Through everything up to SUSPENDED. */
static struct repath_op *suspended(struct kunit *test)
{
	struct repath_op *op = start(test, false, false);

	answer_all(test, REPATH_STAGE_CHECK);
	fake.released = true;
	answer_all(test, REPATH_STAGE_GATE);
	answer_all(test, REPATH_STAGE_DRAIN);
	answer_all(test, REPATH_STAGE_RELEASE);
	KUNIT_ASSERT_EQ(test, (int)op->state, (int)REPATH_OP_SUSPENDED);
	return op;
}

static int resume_on(struct kunit *test, struct repath_device *dev)
{
	int err;

	mutex_lock(&repath_op_mutex);
	err = repath_op_resume(of(test)->op, dev, 0);
	mutex_unlock(&repath_op_mutex);
	run();
	return err;
}

static int resume(struct kunit *test)
{
	return resume_on(test, &of(test)->dev);
}

static int abort_op(struct kunit *test)
{
	int err;

	mutex_lock(&repath_op_mutex);
	err = repath_op_abort(of(test)->op);
	mutex_unlock(&repath_op_mutex);
	run();
	return err;
}

static void let_time_pass(struct repath_op *op)
{
	op->deadline = jiffies - 1;
	op->hello_deadline = jiffies - 1;
	run();
}

#define EXPECT_STATE(op, expected) KUNIT_EXPECT_EQ(test, (int)(op)->state, (int)(expected))

static void expect_between(struct kunit *test, bool between, bool arriving)
{
	mutex_lock(&repath_op_mutex);
	KUNIT_EXPECT_EQ(test, repath_op_between(&init_net, NULL, 0), between);
	KUNIT_EXPECT_EQ(test, repath_op_between(&init_net, &of(test)->dev, 0), arriving);
	mutex_unlock(&repath_op_mutex);
}

static void expect_itself_between(struct kunit *test, int proc, bool between)
{
	mutex_lock(&repath_op_mutex);
	KUNIT_EXPECT_EQ(test, repath_op_between(&init_net, NULL, fake.procs[proc].cookie), between);
	mutex_unlock(&repath_op_mutex);
}

static void t_suspend_resume(struct kunit *test)
{
	struct repath_op *op = start(test, false, false);

	expect_between(test, false, false);
	EXPECT_STATE(op, REPATH_OP_CHECKING);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_CHECK], 2);
	answer(test, 0, REPATH_STAGE_CHECK, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_CHECKING);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_SUSPEND], 0);
	answer(test, 1, REPATH_STAGE_CHECK, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_SUSPENDING);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_SUSPEND], 2);
	answer_all(test, REPATH_STAGE_GATE);
	answer_all(test, REPATH_STAGE_DRAIN);
	answer_all(test, REPATH_STAGE_RELEASE);
	/* The processes say so; the device has not been closed yet. */
	EXPECT_STATE(op, REPATH_OP_SUSPENDING);
	fake.released = true;
	run();
	EXPECT_STATE(op, REPATH_OP_SUSPENDED);
	expect_between(test, true, false);
	KUNIT_EXPECT_TRUE(test, op->pinned);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 0);

	KUNIT_EXPECT_EQ(test, resume(test), 0);
	EXPECT_STATE(op, REPATH_OP_RESUMING);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_RESUME], 2);
	answer_all(test, REPATH_STAGE_OPEN);
	expect_between(test, true, true);
	answer(test, 0, REPATH_STAGE_RECREATE, 0, NULL);
	expect_between(test, true, true);
	expect_itself_between(test, 0, false);
	expect_itself_between(test, 1, true);
	expect_itself_between(test, 2, false);
	answer(test, 1, REPATH_STAGE_RECREATE, 0, NULL);
	expect_between(test, false, false);
	answer_all(test, REPATH_STAGE_CONNECT);
	EXPECT_STATE(op, REPATH_OP_RESUMING);
	answer_all(test, REPATH_STAGE_REPLAY);
	EXPECT_STATE(op, REPATH_OP_RESUMED);
	KUNIT_EXPECT_FALSE(test, op->pinned);
	KUNIT_EXPECT_EQ(test, op->err, 0u);
}

static void t_stages_are_timed(struct kunit *test)
{
	struct repath_op *op = suspended(test);
	struct repath_op_proc *p = list_first_entry(&op->procs, struct repath_op_proc, node);
	u8 stage;

	KUNIT_EXPECT_EQ(test, (int)p->stage, (int)REPATH_STAGE_RELEASE);
	for (stage = REPATH_STAGE_CHECK; stage <= REPATH_STAGE_RELEASE; stage++) {
		KUNIT_EXPECT_NE(test, p->stage_ns[stage], 0ull);
		KUNIT_EXPECT_GE(test, p->stage_ns[stage], p->stage_ns[stage - 1]);
	}
	KUNIT_EXPECT_EQ(test, p->stage_ns[REPATH_STAGE_OPEN], 0ull);
}

static void t_device_refuses(struct kunit *test)
{
	struct repath_op *op;

	fake.device_err = -EBUSY;
	op = start(test, false, false);
	EXPECT_STATE(op, REPATH_OP_FAILED);
	KUNIT_EXPECT_EQ(test, op->err, (u32)EBUSY);
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "PID 7 (foreign)"));
	/* Nobody was asked, so nobody is told that it is over. */
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_CHECK], 0);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 0);
}

static void t_peers_answer_late(struct kunit *test)
{
	struct repath_op *op;

	fake.conns_err = -EAGAIN;
	op = start(test, false, false);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_CHECK], 0);
	fake.conns_err = 0;
	run();
	EXPECT_STATE(op, REPATH_OP_CHECKING);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_CHECK], 2);
}

/* They were to be looked at too soon after the last time, and that time has come meanwhile. */
static void t_peers_are_looked_at_again(struct kunit *test)
{
	fake.conns_err = -EAGAIN;
	start(test, false, false);
	KUNIT_EXPECT_GT(test, run(), HZ / 2ul);
	fake.put_off = true;
	KUNIT_EXPECT_EQ(test, run(), 1ul);
}

static void t_peers_do_not_answer(struct kunit *test)
{
	struct repath_op *op;

	fake.conns_err = -EHOSTUNREACH;
	op = start(test, false, false);
	EXPECT_STATE(op, REPATH_OP_FAILED);
	KUNIT_EXPECT_EQ(test, op->err, (u32)EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_CHECK], 0);
}

static void t_process_refuses(struct kunit *test)
{
	struct repath_op *op = start(test, false, false);

	answer(test, 0, REPATH_STAGE_CHECK, 0, NULL);
	answer(test, 1, REPATH_STAGE_CHECK, EOPNOTSUPP, "2 UD queue pairs");
	EXPECT_STATE(op, REPATH_OP_FAILED);
	KUNIT_EXPECT_EQ(test, op->err, (u32)EOPNOTSUPP);
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "fake1"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "2 UD queue pairs"));
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 2);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_SUSPEND], 0);
	KUNIT_EXPECT_FALSE(test, op->pinned);
}

static void t_dry_run(struct kunit *test)
{
	struct repath_op *op = start(test, false, true);

	answer_all(test, REPATH_STAGE_CHECK);
	EXPECT_STATE(op, REPATH_OP_CHECKED);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_SUSPEND], 0);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 2);
}

static void t_drain_fails(struct kunit *test)
{
	struct repath_op *op = start(test, false, false);

	answer_all(test, REPATH_STAGE_CHECK);
	answer(test, 0, REPATH_STAGE_RELEASE, 0, NULL);
	answer(test, 1, REPATH_STAGE_DRAIN, EIO, "lost");
	EXPECT_STATE(op, REPATH_OP_ABORTING);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 2);
	/* What it said before it heard of the abort changes nothing. */
	answer(test, 0, REPATH_STAGE_GATE, 0, NULL);
	answer(test, 0, REPATH_STAGE_ABORT, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_ABORTING);
	answer(test, 1, REPATH_STAGE_ABORT, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_FAILED);
	KUNIT_EXPECT_EQ(test, op->err, (u32)EIO);
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "lost"));
}

static void t_deadlines(struct kunit *test)
{
	struct repath_op *op = start(test, false, false);

	answer_all(test, REPATH_STAGE_CHECK);
	answer(test, 0, REPATH_STAGE_RELEASE, 0, NULL);
	let_time_pass(op);
	EXPECT_STATE(op, REPATH_OP_ABORTING);
	KUNIT_EXPECT_EQ(test, op->err, (u32)ETIMEDOUT);
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "fake1"));
	KUNIT_EXPECT_NULL(test, strstr(op->reason, "fake0)"));
	answer(test, 0, REPATH_STAGE_ABORT, 0, NULL);
	let_time_pass(op);
	/* One that does not come back can still be resumed. */
	EXPECT_STATE(op, REPATH_OP_PARKED);
	KUNIT_EXPECT_TRUE(test, op->pinned);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_RESUME], 1);
	answer(test, 1, REPATH_STAGE_REPLAY, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_RESUMED);
}

/* A device from which no peer can be reached: nothing is given up. */
static void t_resume_on_other_link_layer(struct kunit *test)
{
	struct repath_device other = { .link_layer = IB_LINK_LAYER_ETHERNET };
	struct repath_op *op = suspended(test);

	of(test)->dev.link_layer = IB_LINK_LAYER_INFINIBAND;
	KUNIT_EXPECT_EQ(test, resume_on(test, &other), -EINVAL);
	KUNIT_EXPECT_EQ(test, (int)op->state, (int)REPATH_OP_SUSPENDED);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	KUNIT_EXPECT_EQ(test, (int)op->state, (int)REPATH_OP_RESUMING);
}

static void t_resume_fails_in_one(struct kunit *test)
{
	struct repath_op *op = suspended(test);

	KUNIT_EXPECT_EQ(test, resume(test), 0);
	answer(test, 0, REPATH_STAGE_RECREATE, ENOMEM, "no MR");
	EXPECT_STATE(op, REPATH_OP_RESUMING);
	answer(test, 1, REPATH_STAGE_REPLAY, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_PARKED);
	KUNIT_EXPECT_EQ(test, op->err, (u32)ENOMEM);
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "no MR"));
	/* It may be late to notice, with its queue pairs half made. */
	expect_between(test, true, true);
	expect_itself_between(test, 0, true);
	expect_itself_between(test, 1, false);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	KUNIT_EXPECT_EQ(test, op->err, 0u);
	/* The one that had succeeded is not asked again. */
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_RESUME], 3);
	answer(test, 0, REPATH_STAGE_REPLAY, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_RESUMED);
	KUNIT_EXPECT_EQ(test, resume(test), -EBUSY);
}

/* The numbers of a process are kept from before it leaves until it is where it stays. */
static void t_numbers_are_kept(struct kunit *test)
{
	struct repath_op *op = start(test, false, false);

	answer_all(test, REPATH_STAGE_CHECK);
	answer_all(test, REPATH_STAGE_GATE);
	KUNIT_EXPECT_EQ(test, fake.kept, 0);
	expect_between(test, true, false);
	answer(test, 0, REPATH_STAGE_DRAIN, 0, NULL);
	KUNIT_EXPECT_EQ(test, fake.kept, 1);
	expect_between(test, true, true);
	answer(test, 1, REPATH_STAGE_DRAIN, EIO, "lost");
	EXPECT_STATE(op, REPATH_OP_ABORTING);
	expect_between(test, true, true);
	/* It has not heard of the abort yet, and leaves. */
	answer(test, 1, REPATH_STAGE_DRAIN, 0, NULL);
	KUNIT_EXPECT_EQ(test, fake.kept, 2);
	answer(test, 0, REPATH_STAGE_ABORT, 0, NULL);
	KUNIT_EXPECT_EQ(test, fake.kept, 1);
	answer(test, 1, REPATH_STAGE_ABORT, EIO, "no device");
	EXPECT_STATE(op, REPATH_OP_PARKED);
	KUNIT_EXPECT_EQ(test, fake.kept, 1);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	answer(test, 1, REPATH_STAGE_CONNECT, 0, NULL);
	KUNIT_EXPECT_EQ(test, fake.kept, 1);
	answer(test, 1, REPATH_STAGE_REPLAY, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_RESUMED);
	KUNIT_EXPECT_EQ(test, fake.kept, 0);

	/* It leaves for good. */
	fake.released = false;
	op = suspended(test);
	KUNIT_EXPECT_EQ(test, fake.kept, 2);
	repath_op_proc_left(&fake.procs[0]);
	KUNIT_EXPECT_EQ(test, fake.kept, 1);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	answer(test, 1, REPATH_STAGE_REPLAY, 0, NULL);
	KUNIT_EXPECT_EQ(test, fake.kept, 0);
}

/* They were on a device from which no peer could be told, and are resumed on another one. */
static void t_resume_elsewhere(struct kunit *test)
{
	struct repath_op *op = suspended(test);

	KUNIT_EXPECT_EQ(test, resume(test), 0);
	answer_all(test, REPATH_STAGE_OPEN);
	answer_all(test, REPATH_STAGE_RECREATE);
	let_time_pass(op);
	EXPECT_STATE(op, REPATH_OP_PARKED);
	expect_between(test, false, false);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	expect_between(test, true, true);
	answer_all(test, REPATH_STAGE_OPEN);
	answer(test, 0, REPATH_STAGE_RECREATE, 0, NULL);
	expect_between(test, true, true);
	expect_itself_between(test, 0, false);
	answer(test, 1, REPATH_STAGE_RECREATE, 0, NULL);
	expect_between(test, false, false);
	answer_all(test, REPATH_STAGE_REPLAY);
	EXPECT_STATE(op, REPATH_OP_RESUMED);
}

static void t_abort(struct kunit *test)
{
	struct repath_op *op = suspended(test);

	KUNIT_EXPECT_EQ(test, abort_op(test), 0);
	EXPECT_STATE(op, REPATH_OP_ABORTING);
	KUNIT_EXPECT_EQ(test, abort_op(test), 0);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 2);
	answer_all(test, REPATH_STAGE_ABORT);
	EXPECT_STATE(op, REPATH_OP_FAILED);
	KUNIT_EXPECT_EQ(test, op->err, (u32)ECANCELED);
	KUNIT_EXPECT_EQ(test, abort_op(test), -EALREADY);
}

/* An abort that does not fit into a socket is said again until it does. */
static void t_abort_again(struct kunit *test)
{
	struct repath_op *op = suspended(test);

	fake.tell_err = -EAGAIN;
	KUNIT_EXPECT_EQ(test, abort_op(test), 0);
	EXPECT_STATE(op, REPATH_OP_ABORTING);
	let_time_pass(op);
	EXPECT_STATE(op, REPATH_OP_PARKED);
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "fake1"));
	fake.tell_err = 0;
	fake.told[REPATH_CMD_EV_ABORT] = 0;
	run();
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 2);
	run();
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 2);
	answer_all(test, REPATH_STAGE_ABORT);
	EXPECT_STATE(op, REPATH_OP_FAILED);
	/* ... and why is known to the end */
	KUNIT_EXPECT_EQ(test, op->err, (u32)ECANCELED);
	KUNIT_EXPECT_NOT_NULL(test, strstr(op->reason, "fake1"));

	/* Who asks for something else in the meantime is not contradicted. */
	op = suspended(test);
	fake.tell_err = -EAGAIN;
	KUNIT_EXPECT_EQ(test, abort_op(test), 0);
	let_time_pass(op);
	fake.tell_err = 0;
	fake.told[REPATH_CMD_EV_ABORT] = 0;
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 0);
	answer_all(test, REPATH_STAGE_REPLAY);
	EXPECT_STATE(op, REPATH_OP_RESUMED);
}

static void t_abort_without_device(struct kunit *test)
{
	struct repath_op *op = suspended(test);

	repath_op_device_removed(&of(test)->dev);
	KUNIT_EXPECT_EQ(test, abort_op(test), 0);
	EXPECT_STATE(op, REPATH_OP_PARKED);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 0);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	EXPECT_STATE(op, REPATH_OP_RESUMING);
	/* What is under way goes on; nothing is there to go back to. */
	KUNIT_EXPECT_EQ(test, abort_op(test), 0);
	EXPECT_STATE(op, REPATH_OP_PARKED);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 0);
	answer_all(test, REPATH_STAGE_REPLAY);
	EXPECT_STATE(op, REPATH_OP_RESUMED);
}

/* One has resumed, one can not: who asks for it gets both off the operation. */
static void t_abort_while_resuming(struct kunit *test)
{
	struct repath_op *op = suspended(test);

	KUNIT_EXPECT_EQ(test, resume(test), 0);
	answer(test, 0, REPATH_STAGE_REPLAY, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_RESUMING);
	KUNIT_EXPECT_EQ(test, abort_op(test), 0);
	EXPECT_STATE(op, REPATH_OP_ABORTING);
	KUNIT_EXPECT_EQ(test, fake.told[REPATH_CMD_EV_ABORT], 2);
	answer_all(test, REPATH_STAGE_ABORT);
	EXPECT_STATE(op, REPATH_OP_FAILED);
	KUNIT_EXPECT_EQ(test, op->err, (u32)ECANCELED);
	KUNIT_EXPECT_FALSE(test, op->pinned);
}

/* Whoever removes the device is told when nothing is left on it, and when that will not be. */
static void t_settled(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(first);
	DECLARE_COMPLETION_ONSTACK(second);
	struct repath_op *op = start(test, false, false);

	op->settled = &first;
	answer_all(test, REPATH_STAGE_CHECK);
	EXPECT_STATE(op, REPATH_OP_SUSPENDING);
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&first));
	fake.released = true;
	answer_all(test, REPATH_STAGE_RELEASE);
	EXPECT_STATE(op, REPATH_OP_SUSPENDED);
	KUNIT_EXPECT_TRUE(test, try_wait_for_completion(&first));
	op->settled = NULL;
	KUNIT_EXPECT_EQ(test, abort_op(test), 0);
	answer_all(test, REPATH_STAGE_ABORT);

	op = start(test, false, false);
	op->settled = &second;
	answer(test, 0, REPATH_STAGE_CHECK, EOPNOTSUPP, "no");
	EXPECT_STATE(op, REPATH_OP_FAILED);
	KUNIT_EXPECT_TRUE(test, try_wait_for_completion(&second));
	op->settled = NULL;
}

static void t_processes_die(struct kunit *test)
{
	struct repath_op *op = start(test, false, false);

	answer(test, 0, REPATH_STAGE_CHECK, 0, NULL);
	repath_op_proc_left(&fake.procs[1]);
	run();
	EXPECT_STATE(op, REPATH_OP_SUSPENDING);
	KUNIT_EXPECT_EQ(test, op->nprocs, 1u);
	fake.released = true;
	answer(test, 0, REPATH_STAGE_RELEASE, 0, NULL);
	EXPECT_STATE(op, REPATH_OP_SUSPENDED);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	repath_op_proc_left(&fake.procs[0]);
	run();
	/* Nobody is left, so nobody waits. */
	EXPECT_STATE(op, REPATH_OP_RESUMED);
	KUNIT_EXPECT_FALSE(test, op->pinned);
}

/* A suspended device that nobody waits for must not keep the module loaded. */
static void t_unpinned_with_nobody(struct kunit *test)
{
	struct repath_op *op = suspended(test);

	repath_op_proc_left(&fake.procs[0]);
	KUNIT_EXPECT_TRUE(test, op->pinned);
	repath_op_proc_left(&fake.procs[1]);
	run();
	EXPECT_STATE(op, REPATH_OP_SUSPENDED);
	KUNIT_EXPECT_FALSE(test, op->pinned);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	EXPECT_STATE(op, REPATH_OP_RESUMED);

	fake.nprocs = 0;
	op = start(test, false, false);
	EXPECT_STATE(op, REPATH_OP_SUSPENDED);
	KUNIT_EXPECT_FALSE(test, op->pinned);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	EXPECT_STATE(op, REPATH_OP_RESUMED);
}

static void t_history_is_bounded(struct kunit *test)
{
	struct repath_op *op;
	unsigned int n = 0;
	u32 after = 0, i;

	fake.device_err = -EBUSY;
	for (i = 0; i < 100; i++)
		start(test, false, false);
	KUNIT_EXPECT_EQ(test, repath_op_of_device(&of(test)->dev), 0u);
	mutex_lock(&repath_op_mutex);
	while ((op = repath_op_next(after))) {
		after = op->id;
		n++;
	}
	mutex_unlock(&repath_op_mutex);
	KUNIT_EXPECT_EQ(test, n, 64u);

	fake.device_err = 0;
	start(test, true, false);
	KUNIT_EXPECT_EQ(test, repath_op_of_device(&of(test)->dev), of(test)->op->id);
	answer_all(test, REPATH_STAGE_CHECK);
	KUNIT_EXPECT_EQ(test, fake.killed, 0);
	answer_all(test, REPATH_STAGE_RELEASE);
	run();
	/* With force, once, and after the shims have let go. */
	KUNIT_EXPECT_EQ(test, fake.killed, 1);
}

static struct net *net_of(const struct repath_op *op)
{
	struct net *net;

	mutex_lock(&repath_op_mutex);
	net = op->net;
	mutex_unlock(&repath_op_mutex);
	return net;
}

/* A namespace ends whatever was left suspended in it, and its device comes back with all that belongs to it. */
static void t_namespace_ends(struct kunit *test)
{
	struct net *net = kunit_kzalloc(test, sizeof(*net), GFP_KERNEL);
	struct repath_op *op;
	u32 ended;

	KUNIT_ASSERT_NOT_NULL(test, net);
	refcount_set(&net->ns.count, 1);
	of(test)->net = net;
	fake.device_err = -EBUSY;
	ended = start(test, false, false)->id;
	fake.device_err = 0;
	fake.released = true;
	fake.nprocs = 0;
	op = start(test, false, false);
	KUNIT_ASSERT_EQ(test, (int)op->state, (int)REPATH_OP_SUSPENDED);
	KUNIT_EXPECT_EQ(test, refcount_read(&net->ns.count), 1u);
	KUNIT_EXPECT_PTR_EQ(test, net_of(op), net);

	refcount_set(&net->ns.count, 0);
	repath_op_net_gone(net);
	mutex_lock(&repath_op_mutex);
	KUNIT_EXPECT_NULL(test, repath_op_find(ended));
	mutex_unlock(&repath_op_mutex);
	KUNIT_EXPECT_PTR_EQ(test, net_of(op), &init_net);
	KUNIT_EXPECT_EQ(test, resume(test), 0);
	KUNIT_EXPECT_EQ(test, (int)op->state, (int)REPATH_OP_RESUMED);
	/* Its device is unplugged at that time. */
	KUNIT_EXPECT_PTR_EQ(test, net_of(start(test, false, false)), &init_net);
	KUNIT_EXPECT_EQ(test, refcount_read(&net->ns.count), 0u);
}

static struct kunit_case op_cases[] = {
	KUNIT_CASE(t_suspend_resume),
	KUNIT_CASE(t_stages_are_timed),
	KUNIT_CASE(t_device_refuses),
	KUNIT_CASE(t_peers_answer_late),
	KUNIT_CASE(t_peers_are_looked_at_again),
	KUNIT_CASE(t_peers_do_not_answer),
	KUNIT_CASE(t_process_refuses),
	KUNIT_CASE(t_dry_run),
	KUNIT_CASE(t_drain_fails),
	KUNIT_CASE(t_deadlines),
	KUNIT_CASE(t_resume_on_other_link_layer),
	KUNIT_CASE(t_resume_fails_in_one),
	KUNIT_CASE(t_numbers_are_kept),
	KUNIT_CASE(t_resume_elsewhere),
	KUNIT_CASE(t_abort),
	KUNIT_CASE(t_abort_again),
	KUNIT_CASE(t_abort_without_device),
	KUNIT_CASE(t_abort_while_resuming),
	KUNIT_CASE(t_settled),
	KUNIT_CASE(t_processes_die),
	KUNIT_CASE(t_unpinned_with_nobody),
	KUNIT_CASE(t_history_is_bounded),
	KUNIT_CASE(t_namespace_ends),
	{}
};

static struct kunit_suite op_suite = {
	.name = "repath_op",
	.init = op_init,
	.exit = op_exit,
	.test_cases = op_cases,
};
kunit_test_suite(op_suite);
MODULE_LICENSE("GPL");
