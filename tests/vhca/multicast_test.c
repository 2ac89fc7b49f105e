// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 3 */
/* kunit-objs: packet.o */
/*
 * Who gets a multicast packet on the port that it leaves from and on one that it comes to: each member of
 * the group once, but not its sender. rdmavt and the lanes are lists here.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "lane.h"
#include "rc.h"
#include "receive.h"
#include "trap.h"
#include "uc.h"
#include "ud.h"

#define GROUP_LID 0xc001
#define OWN_LID 0x10
#define PKEY 0x8001
#define QKEY 0x11
#define QPN 100
#define QPS 4		/* 0 sends, 0 to 2 are attached, 3 is not */
#define LENGTH 24

static struct {
	struct vhca_dev dev;
	struct vhca_qp vqp[QPS];
	struct rvt_qp qp[QPS];
	struct rvt_swqe wqe[2];
	struct rdma_ah_attr attr;
	struct rvt_mcast group;
	struct rvt_mcast_qp member[3];
	struct vhca_packet *sent[4];
	u8 payload[LENGTH], bytes[QPS][sizeof(struct ib_grh) + LENGTH];
	struct ib_wc wc[QPS];
	unsigned int nsent, filled[QPS], got[QPS], completed;
	bool attached;
} *bed;

static struct vhca_port *port;

static struct rvt_mcast *fake_find(const union ib_gid *mgid, u16 lid)
{
	if (!bed->attached || lid != GROUP_LID || mgid->raw[0] != 0xff)
		return NULL;
	atomic_inc(&bed->group.refcount);
	return &bed->group;
}

static void fake_address(u16 dlid, struct vhca_address *to, struct ib_grh *grh)
{
	memset(grh, 0, sizeof(*grh));
	grh->version_tclass_flow = cpu_to_be32(IB_GRH_VERSION << IB_GRH_VERSION_SHIFT);
	grh->next_hdr = IB_GRH_NEXT_HDR;
	grh->dgid.raw[0] = 0xff;
	*to = (struct vhca_address) { .slid = OWN_LID, .dlid = dlid, .grh = grh };
}

static void fake_put(struct vhca_packet *packet)
{
	if (bed->nsent < ARRAY_SIZE(bed->sent))
		bed->sent[bed->nsent++] = packet;
}

static int fake_get_rwqe(struct rvt_qp *qp)
{
	bed->filled[qp - bed->qp] = 0;
	set_bit(RVT_R_WRID_VALID, &qp->r_aflags);
	return 1;
}

static void fake_copy(struct rvt_qp *qp, const void *data, u32 length)
{
	unsigned int i = qp - bed->qp;

	if (bed->filled[i] + length <= sizeof(bed->bytes[i]))
		memcpy(bed->bytes[i] + bed->filled[i], data, length);
	bed->filled[i] += length;
}

static void fake_recv_cq(struct rvt_qp *qp, const struct ib_wc *wc)
{
	bed->got[qp - bed->qp]++;
	bed->wc[qp - bed->qp] = *wc;
}

#define rvt_get_pkey(...) PKEY
#define rvt_mcast_find(ibp, mgid, lid) fake_find(mgid, lid)
#define rvt_restart_sge(...) do { } while (0)
#define rvt_get_rwqe(qp, only) fake_get_rwqe(qp)
#define rvt_copy_sge(qp, ss, data, length, release, last) fake_copy(qp, data, length)
#define rvt_skip_sge(...) do { } while (0)
#define rvt_put_ss(...) do { } while (0)
#define rvt_recv_cq(qp, wc, solicited) fake_recv_cq(qp, wc)
#define rvt_send_complete(qp, wqe, status) (bed->completed++)
#define rvt_lookup_qpn(...) NULL
#define ib_rvt_state_ops ((const int[]) { RVT_PROCESS_RECV_OK })
#define vhca_address_of(port, attr, smp, to, grh) fake_address(rdma_ah_get_dlid(attr), to, grh)
#define vhca_lane_of(port, to) 0
#define vhca_lane_room(port, lane, vqp) true
#define vhca_lane_put(port, packet, vqp) fake_put(packet)
#define vhca_copy_from(ss, to, length) memcpy(to, bed->payload, length)
#define vhca_qp_error(...) do { } while (0)
#define vhca_qp_lock(qp) 0
#define vhca_qp_unlock(qp, flags) ((void)(flags))
#define vhca_qp_schedule(...) do { } while (0)
#define vhca_qp_engine(...) do { } while (0)
#define vhca_rc_receive(...) do { } while (0)
#define vhca_uc_receive(...) do { } while (0)
#define vhca_port_set_state(...) do { } while (0)
#define vhca_trap_bad_key(...) do { } while (0)

#include "ud.c"
#define pkey_ok receive_pkey_ok
#include "receive.c"

static int begin(struct kunit *test)
{
	unsigned int i;

	bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);
	if (!bed)
		return -ENOMEM;
	port = &bed->dev.port[0];
	bed->dev.nports = 1;
	port->dev = &bed->dev;
	port->num = 1;
	port->lid = OWN_LID;
	port->state = IB_PORT_ACTIVE;
	for (i = 0; i < LENGTH; i++)
		bed->payload[i] = i + 1;
	bed->attached = true;
	INIT_LIST_HEAD(&bed->group.qp_list);
	init_waitqueue_head(&bed->group.wait);
	atomic_set(&bed->group.refcount, 1);
	for (i = 0; i < QPS; i++) {
		struct rvt_qp *qp = &bed->qp[i];

		qp->ibqp.device = &bed->dev.rdi.ibdev;
		qp->ibqp.qp_type = IB_QPT_UD;
		qp->ibqp.qp_num = QPN + i;
		qp->port_num = 1;
		qp->qkey = QKEY;
		qp->r_len = sizeof(bed->bytes[i]);
		qp->priv = &bed->vqp[i];
		if (i < ARRAY_SIZE(bed->member)) {
			bed->member[i].qp = qp;
			list_add_tail(&bed->member[i].list, &bed->group.qp_list);
		}
	}
	bed->attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(&bed->attr, 1);
	return 0;
}

/* Queue pair 0 sends to that LID; what it has put into lanes is in bed->sent. */
static void post(struct kunit *test, u16 dlid)
{
	struct rvt_qp *qp = &bed->qp[0];
	struct rvt_swqe *wqe = &bed->wqe[0];

	rdma_ah_set_dlid(&bed->attr, dlid);
	wqe->wr.opcode = IB_WR_SEND;
	wqe->length = LENGTH;
	wqe->ud_wr.attr = &bed->attr;
	wqe->ud_wr.wr.remote_qpn = QPN + 3;
	wqe->ud_wr.wr.remote_qkey = QKEY;
	qp->s_wq = wqe;
	qp->s_size = ARRAY_SIZE(bed->wqe);
	qp->s_last = 0;
	qp->s_head = 1;
	KUNIT_EXPECT_EQ(test, (int)vhca_ud_request(qp), (int)VHCA_BUSY);
	KUNIT_EXPECT_EQ(test, bed->completed, 1u);
}

static void arrives(struct vhca_packet *packet, bool loop)
{
	struct vhca_batch batch = {};

	vhca_receive(port, packet->bytes, packet->size, loop, &batch);
}

static void end(struct kunit *test)
{
	unsigned int i;

	KUNIT_EXPECT_EQ(test, atomic_read(&bed->group.refcount), 1);
	for (i = 0; i < bed->nsent; i++)
		kfree(bed->sent[i]);
}

static void expect_got(struct kunit *test, unsigned int i)
{
	KUNIT_EXPECT_EQ(test, bed->got[i], 1u);
	KUNIT_EXPECT_EQ(test, bed->wc[i].byte_len, (u32)sizeof(bed->bytes[i]));
	KUNIT_EXPECT_EQ(test, bed->wc[i].src_qp, (u32)QPN);
	KUNIT_EXPECT_EQ(test, bed->bytes[i][24], 0xff);		/* the GRH's DGID */
	KUNIT_EXPECT_EQ(test, memcmp(bed->bytes[i] + sizeof(struct ib_grh), bed->payload, LENGTH), 0);
}

/* One goes out, and a copy stays here: for both others that are attached, not for who sent it. */
static void same_port(struct kunit *test)
{
	post(test, GROUP_LID);
	KUNIT_ASSERT_EQ(test, bed->nsent, 2u);
	KUNIT_EXPECT_EQ(test, bed->sent[0]->lane, VHCA_LANE_LOOP);
	KUNIT_EXPECT_EQ(test, bed->sent[1]->lane, 0);
	KUNIT_EXPECT_EQ(test, bed->sent[0]->size, bed->sent[1]->size);
	KUNIT_EXPECT_EQ(test, memcmp(bed->sent[0]->bytes, bed->sent[1]->bytes, bed->sent[0]->size), 0);
	arrives(bed->sent[0], true);
	KUNIT_EXPECT_EQ(test, bed->got[0], 0u);
	expect_got(test, 1);
	expect_got(test, 2);
	KUNIT_EXPECT_EQ(test, bed->got[3], 0u);
	end(test);
}

/* What comes from the wire is for all, also for one whose number the sender has elsewhere. */
static void other_port(struct kunit *test)
{
	unsigned int i;

	post(test, GROUP_LID);
	KUNIT_ASSERT_EQ(test, bed->nsent, 2u);
	vhca_packet_seal(bed->sent[1]);
	arrives(bed->sent[1], false);
	for (i = 0; i < 3; i++)
		expect_got(test, i);
	KUNIT_EXPECT_EQ(test, bed->got[3], 0u);
	KUNIT_EXPECT_EQ(test, port->counters.multicast_rcv, 1ull);
	end(test);
}

/* Nobody is attached here, or it is no multicast: one packet, and no copy. */
static void no_copy(struct kunit *test)
{
	bed->attached = false;
	post(test, GROUP_LID);
	KUNIT_ASSERT_EQ(test, bed->nsent, 1u);
	KUNIT_EXPECT_EQ(test, bed->sent[0]->lane, 0);
	bed->attached = true;
	bed->completed = 0;
	post(test, OWN_LID + 1);
	KUNIT_ASSERT_EQ(test, bed->nsent, 2u);
	KUNIT_EXPECT_EQ(test, bed->sent[1]->lane, 0);
	end(test);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(same_port),
	KUNIT_CASE(other_port),
	KUNIT_CASE(no_copy),
	{}
};

static struct kunit_suite suite = {
	.name = "vhca_multicast",
	.init = begin,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_LICENSE("GPL");
