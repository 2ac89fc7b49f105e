/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What surrounds tracking in the module, for its suites: devices and queue pairs that are only
 * structs, and counters where the module would send events or look after connections.
 */
#ifndef REPATH_TESTS_TRACK_FAKES_H
#define REPATH_TESTS_TRACK_FAKES_H

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "../adopt.h"
#include "../conn.h"
#include "../device.h"
#include "../event.h"
#include "../note.h"
#include "../op.h"
#include "../track.h"

/* What was told, since the beginning of the case. */
static struct {
	int qp_new, qp_change, qp_del;
	int user_new, user_del;
	int device_new, device_del;
	int connected, gone;
	int ctx_gone;
	int rescans;
	u32 last_connected_qpn;
	/* The order in which things came to one queue pair: digits, see fake_order(). */
	u64 order;
	/* Set by a case: nobody listens to events; who does takes long. */
	bool unheard;
	bool slow;
} told;

static void fake_order(int digit)
{
	told.order = told.order * 10 + digit;
}

bool repath_event_is_wanted(const struct repath_device *dev)
{
	return !told.unheard;
}

void repath_event_qp(struct repath_qp *rqp, enum repath_ev_action action)
{
	if (told.slow)
		msleep(20);
	told.qp_new += action == REPATH_EV_NEW;
	told.qp_change += action == REPATH_EV_CHANGE;
	told.qp_del += action == REPATH_EV_DEL;
	fake_order(action == REPATH_EV_NEW ? 1 : action == REPATH_EV_CHANGE ? 3 : 5);
}

void repath_event_user(struct repath_user *user, enum repath_ev_action action)
{
	told.user_new += action == REPATH_EV_NEW;
	told.user_del += action == REPATH_EV_DEL;
}

void repath_event_device(struct repath_device *dev, enum repath_ev_action action)
{
	told.device_new += action == REPATH_EV_NEW;
	told.device_del += action == REPATH_EV_DEL;
}

void repath_conn_qp_connected(struct repath_qp *rqp)
{
	told.connected++;
	told.last_connected_qpn = rqp->qpn;
	fake_order(2);
}

void repath_conn_qp_reset(struct repath_qp *rqp)
{
}

void repath_conn_qp_gone(struct repath_qp *rqp)
{
	told.gone++;
	fake_order(4);
}

void repath_op_ctx_gone(struct repath_device *dev)
{
	told.ctx_gone++;
}

void repath_adopt_work(struct work_struct *work)
{
	told.rescans++;
}

struct fake_device {
	struct ib_device ibdev;
};

/* A device that ib_core has never registered, on our list as if it had. */
static __maybe_unused struct repath_device *fake_device_add(struct kunit *test, const char *name, u32 index)
{
	struct fake_device *fake = ib_alloc_device(fake_device, ibdev);
	struct repath_device *dev;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->ibdev.node_type = RDMA_NODE_IB_CA;
	fake->ibdev.phys_port_cnt = 2;
	fake->ibdev.index = index;
	KUNIT_ASSERT_EQ(test, dev_set_name(&fake->ibdev.dev, "%s", name), 0);
	dev = repath_device_alloc(&fake->ibdev);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	repath_device_link(dev);
	return dev;
}

/* As remove() does, and the driver after it. */
static __maybe_unused void fake_device_del(struct repath_device *dev)
{
	struct ib_device *ibdev = dev->ibdev;

	repath_track_device_gone(dev);
	cancel_work_sync(&dev->rescan);
	repath_device_put(dev);
	repath_note_flush();
	ib_dealloc_device(ibdev);
}

static __maybe_unused struct ib_qp *fake_qp(struct kunit *test, struct repath_device *dev, u32 qpn)
{
	struct ib_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->device = dev->ibdev;
	qp->real_qp = qp;
	qp->qp_num = qpn;
	qp->qp_type = IB_QPT_RC;
	return qp;
}

/* As the hook does; the index keeps the object. */
static void fake_qp_created(struct ib_qp *qp, struct task_struct *task)
{
	struct repath_qp *rqp;

	rqp = repath_track_qp_add(qp, task, "fake", GFP_NOWAIT, 0);
	if (rqp)
		repath_qp_put(rqp);
}

/* To RTR towards a DLID, and a DGID that ends with the same number. */
static __maybe_unused void fake_qp_rtr(struct ib_qp *qp, u32 port, u16 dlid, u32 dest_qpn)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.dest_qp_num = dest_qpn,
		.path_mtu = IB_MTU_2048,
		.ah_attr = {
			.type = RDMA_AH_ATTR_TYPE_IB,
			.port_num = port,
			.sl = 3,
			.ah_flags = IB_AH_GRH,
		},
	};

	rdma_ah_set_dlid(&attr.ah_attr, dlid);
	attr.ah_attr.grh.dgid.raw[0] = 0xfe;
	attr.ah_attr.grh.dgid.raw[15] = dlid;
	repath_track_qp_modified(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_DEST_QPN |
				 IB_QP_PATH_MTU);
}

static __maybe_unused void fake_qp_state(struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	repath_track_qp_modified(qp, &attr, IB_QP_STATE);
}

static __maybe_unused union ib_gid fake_dgid(u16 dlid)
{
	union ib_gid gid = {};

	gid.raw[0] = 0xfe;
	gid.raw[15] = dlid;
	return gid;
}

static __maybe_unused int fake_count_qp(struct repath_qp *rqp, void *arg)
{
	(*(int *)arg)++;
	return 0;
}

#endif /* REPATH_TESTS_TRACK_FAKES_H */
