// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 8 */
/*
 * Which packets a connected queue pair takes, by the LIDs and GIDs of its paths, and what it makes of a
 * peer that has migrated. Lanes and events are counters here.
 */
#include <kunit/test.h>

#include "lane.h"
#include "qp.h"

#define OWN_LID 0x10
#define PEER_LID 0x20
#define PEER_ALT_LID 0x24
#define OWN_GUID 0x0002c90200000011ull
#define PEER_GUID 0x0002c90200000021ull
#define LMC 2

static struct {
	struct vhca_dev dev;
	struct rvt_qp qp;
	struct vhca_qp vqp;
	struct ib_grh grh;
	int migrated, refused, others;
} *bed;

static struct vhca_port *port;
static struct rvt_qp *qp;

static void fake_event(enum ib_event_type event)
{
	if (event == IB_EVENT_PATH_MIG)
		bed->migrated++;
	else if (event == IB_EVENT_PATH_MIG_ERR)
		bed->refused++;
	else
		bed->others++;
}

#define vhca_qp_event(qp, event) fake_event(event)
#define vhca_lane_moved(dev, vqp) do { } while (0)

#include "apm.c"

static void set_path(struct rdma_ah_attr *path, u32 num, u16 dlid, u8 bits)
{
	memset(path, 0, sizeof(*path));
	path->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(path, num);
	rdma_ah_set_dlid(path, dlid);
	rdma_ah_set_path_bits(path, bits);
}

static int begin(struct kunit *test)
{
	unsigned int i;

	bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);
	if (!bed)
		return -ENOMEM;
	qp = &bed->qp;
	port = &bed->dev.port[0];
	bed->dev.nports = 2;
	for (i = 0; i < 2; i++) {
		bed->dev.port[i].dev = &bed->dev;
		bed->dev.port[i].num = i + 1;
		bed->dev.port[i].lid = OWN_LID + i * 4;
		bed->dev.port[i].state = IB_PORT_ACTIVE;
		bed->dev.port[i].guids[0] = cpu_to_be64(OWN_GUID + i);
	}
	qp->ibqp.device = &bed->dev.rdi.ibdev;
	qp->priv = &bed->vqp;
	qp->port_num = 1;
	qp->s_mig_state = IB_MIG_MIGRATED;
	set_path(&qp->remote_ah_attr, 1, PEER_LID, 0);
	return 0;
}

/* It has an alternate path, to another of the peer's ports. */
static void load(enum ib_mig_state state)
{
	set_path(&qp->alt_ah_attr, 1, PEER_ALT_LID, 0);
	qp->s_mig_state = state;
}

static bool comes_to(u16 dlid, u16 slid, bool migreq)
{
	struct vhca_rx rx = { .slid = slid, .dlid = dlid, .bth.migreq = migreq };

	return vhca_apm_arrived(port, qp, &rx);
}

static bool comes(u16 slid, bool migreq)
{
	return comes_to(OWN_LID, slid, migreq);
}

#define EXPECT_EVENTS(test, m, r)							\
	do {										\
		KUNIT_EXPECT_EQ(test, bed->migrated, m);				\
		KUNIT_EXPECT_EQ(test, bed->refused, r);					\
		KUNIT_EXPECT_EQ(test, bed->others, 0);					\
	} while (0)

static void follows(struct kunit *test)
{
	load(IB_MIG_REARM);
	KUNIT_EXPECT_TRUE(test, comes(PEER_LID, true));		/* the peer has not been armed yet */
	KUNIT_EXPECT_EQ(test, (int)qp->s_mig_state, (int)IB_MIG_REARM);
	KUNIT_EXPECT_TRUE(test, comes(PEER_LID, false));
	KUNIT_EXPECT_EQ(test, (int)qp->s_mig_state, (int)IB_MIG_ARMED);
	KUNIT_EXPECT_TRUE(test, comes(PEER_LID, false));
	EXPECT_EVENTS(test, 0, 0);
	KUNIT_EXPECT_TRUE(test, comes(PEER_ALT_LID, true));
	KUNIT_EXPECT_EQ(test, (int)qp->s_mig_state, (int)IB_MIG_MIGRATED);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_dlid(&qp->remote_ah_attr), (u32)PEER_ALT_LID);
	EXPECT_EVENTS(test, 1, 0);
	/* It goes on there, and what was under way on the old path is late. */
	KUNIT_EXPECT_TRUE(test, comes(PEER_ALT_LID, true));
	KUNIT_EXPECT_FALSE(test, comes(PEER_LID, false));
	EXPECT_EVENTS(test, 1, 0);
}

/* The alternate path goes elsewhere: refused, and said so once, until another one is loaded. */
static void elsewhere(struct kunit *test)
{
	load(IB_MIG_ARMED);
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID + 1, true));
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID + 1, true));
	KUNIT_EXPECT_FALSE(test, comes(PEER_LID, true));	/* the primary path is no other */
	EXPECT_EVENTS(test, 0, 1);
	KUNIT_EXPECT_EQ(test, (int)qp->s_mig_state, (int)IB_MIG_ARMED);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_dlid(&qp->remote_ah_attr), (u32)PEER_LID);
	KUNIT_EXPECT_TRUE(test, comes(PEER_LID, false));	/* who has stayed is heard */

	set_path(&qp->alt_ah_attr, 1, PEER_ALT_LID + 2, 0);
	vhca_apm_changed(qp);
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID + 1, true));
	EXPECT_EVENTS(test, 0, 2);
	KUNIT_EXPECT_TRUE(test, comes(PEER_ALT_LID + 2, true));
	EXPECT_EVENTS(test, 1, 2);
}

/* What has migrated may refuse anew. */
static void told_again(struct kunit *test)
{
	load(IB_MIG_ARMED);
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID + 1, true));
	KUNIT_EXPECT_TRUE(test, comes(PEER_ALT_LID, true));
	EXPECT_EVENTS(test, 1, 1);
	set_path(&qp->alt_ah_attr, 1, PEER_LID, 0);
	qp->s_mig_state = IB_MIG_ARMED;
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID + 1, true));
	EXPECT_EVENTS(test, 1, 2);
}

/* The peer migrates before we are armed, or after the owner has let go of it. */
static void not_armed(struct kunit *test)
{
	load(IB_MIG_REARM);
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID, true));
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID, true));
	EXPECT_EVENTS(test, 0, 1);
	KUNIT_EXPECT_EQ(test, (int)qp->s_mig_state, (int)IB_MIG_REARM);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_dlid(&qp->remote_ah_attr), (u32)PEER_LID);
	/* Then it comes back, which arms, and goes again. */
	KUNIT_EXPECT_TRUE(test, comes(PEER_LID, false));
	KUNIT_EXPECT_TRUE(test, comes(PEER_ALT_LID, true));
	EXPECT_EVENTS(test, 1, 1);

	set_path(&qp->alt_ah_attr, 1, PEER_LID, 0);		/* loaded, and not rearmed */
	KUNIT_EXPECT_FALSE(test, comes(PEER_LID, true));
	KUNIT_EXPECT_FALSE(test, comes(PEER_LID, true));
	EXPECT_EVENTS(test, 1, 2);
}

/* Who has no alternate path sends MigReq all the time, and hears nothing of strangers. */
static void no_request(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, comes(PEER_LID, true));
	KUNIT_EXPECT_TRUE(test, comes(PEER_LID, false));
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID, true));
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID, false));
	load(IB_MIG_ARMED);
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID, false));	/* not migrated: no request */
	load(IB_MIG_REARM);
	KUNIT_EXPECT_FALSE(test, comes(PEER_ALT_LID, false));
	KUNIT_EXPECT_EQ(test, (int)qp->s_mig_state, (int)IB_MIG_REARM);
	EXPECT_EVENTS(test, 0, 0);
}

/* Of all LIDs at both ends only those of the path. */
static void path_bits(struct kunit *test)
{
	unsigned int own, to, from;

	port->lmc = LMC;
	for (own = 0; own < 1 << LMC; own++) {
		set_path(&qp->remote_ah_attr, 1, PEER_LID + 1, own | 1 << LMC);	/* no more than LMC says */
		KUNIT_EXPECT_EQ(test, vhca_path_lid(port, &qp->remote_ah_attr), OWN_LID + own);
		for (to = 0; to < 1 << LMC; to++)
			for (from = 0; from < 1 << LMC; from++)
				KUNIT_EXPECT_EQ(test, comes_to(OWN_LID + to, PEER_LID + from, true),
						to == own && from == 1);
	}
	/* Migration to other LIDs of the same ports. */
	set_path(&qp->remote_ah_attr, 1, PEER_LID, 0);
	set_path(&qp->alt_ah_attr, 1, PEER_LID + 2, 3);
	qp->s_mig_state = IB_MIG_ARMED;
	EXPECT_EVENTS(test, 0, 0);
	KUNIT_EXPECT_FALSE(test, comes_to(OWN_LID + 2, PEER_LID + 2, true));
	EXPECT_EVENTS(test, 0, 1);
	KUNIT_EXPECT_TRUE(test, comes_to(OWN_LID + 3, PEER_LID + 2, true));
	EXPECT_EVENTS(test, 1, 1);
}

/* With a GRH both GIDs have to be the path's, and it must be there. */
static void gids(struct kunit *test)
{
	struct vhca_rx rx = { .slid = PEER_LID, .dlid = OWN_LID, .grh = &bed->grh };
	union ib_gid peer = { .global = { cpu_to_be64(VHCA_GID_PREFIX), cpu_to_be64(PEER_GUID) } };

	bed->grh.sgid = peer;
	bed->grh.dgid.global.interface_id = cpu_to_be64(OWN_GUID);
	KUNIT_EXPECT_FALSE(test, vhca_apm_arrived(port, qp, &rx));
	rdma_ah_set_grh(&qp->remote_ah_attr, &peer, 0, 0, 1, 0);
	KUNIT_EXPECT_TRUE(test, vhca_apm_arrived(port, qp, &rx));
	bed->grh.dgid.global.interface_id = cpu_to_be64(OWN_GUID + 1);
	KUNIT_EXPECT_FALSE(test, vhca_apm_arrived(port, qp, &rx));
	bed->grh.dgid.global.interface_id = cpu_to_be64(OWN_GUID);
	bed->grh.sgid.global.interface_id = cpu_to_be64(PEER_GUID + 1);
	KUNIT_EXPECT_FALSE(test, vhca_apm_arrived(port, qp, &rx));
	KUNIT_EXPECT_FALSE(test, comes(PEER_LID, false));
}

/* To the other port, by itself: if that is not there it stays, and says so. */
static void by_itself(struct kunit *test)
{
	set_path(&qp->alt_ah_attr, 2, PEER_ALT_LID, 0);
	KUNIT_EXPECT_FALSE(test, vhca_apm_migrate(qp));		/* not armed */
	EXPECT_EVENTS(test, 0, 0);
	qp->s_mig_state = IB_MIG_ARMED;
	bed->dev.port[1].state = IB_PORT_DOWN;
	KUNIT_EXPECT_FALSE(test, vhca_apm_migrate(qp));
	EXPECT_EVENTS(test, 0, 1);
	KUNIT_EXPECT_EQ(test, (u32)qp->port_num, 1u);
	bed->dev.port[1].state = IB_PORT_ACTIVE;
	KUNIT_EXPECT_TRUE(test, vhca_apm_migrate(qp));
	EXPECT_EVENTS(test, 1, 1);
	KUNIT_EXPECT_EQ(test, (u32)qp->port_num, 2u);
	port = &bed->dev.port[1];
	KUNIT_EXPECT_TRUE(test, comes_to(OWN_LID + 4, PEER_ALT_LID, true));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(follows),
	KUNIT_CASE(elsewhere),
	KUNIT_CASE(told_again),
	KUNIT_CASE(not_armed),
	KUNIT_CASE(no_request),
	KUNIT_CASE(path_bits),
	KUNIT_CASE(gids),
	KUNIT_CASE(by_itself),
	{}
};

static struct kunit_suite suite = {
	.name = "vhca_apm",
	.init = begin,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_LICENSE("GPL");
