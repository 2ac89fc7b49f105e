// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 7 */
/*
 * Traps: what they say of whom, that they are sent until the subnet manager represses them, and no
 * longer. ib_mad and the workqueue are counters here; a case is the clock.
 */
#include <kunit/test.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "trap.h"

#define OWN_LID 12
#define SM_LID 7
#define PEER_LID 0x34
#define DETAILS 10
#define MOST 8

static struct {
	struct vhca_dev dev;
	struct ib_mad_agent agent;
	struct rvt_ah ah;
	struct ib_mad_send_buf buf;
	struct ib_smp sent[VHCA_MAX_TRAPS];
	int nsent, scheduled, failing;
} bed;

static struct vhca_port *const port = &bed.dev.port[0];

static struct ib_mad_send_buf *fake_create_send_mad(void)
{
	bed.buf.mad = &bed.sent[bed.nsent % VHCA_MAX_TRAPS];
	memset(bed.buf.mad, 0, sizeof(struct ib_smp));
	return bed.failing ? ERR_PTR(-ENOMEM) : &bed.buf;
}

static int fake_post_send_mad(void)
{
	bed.nsent++;
	return 0;
}

static bool fake_schedule(void)
{
	bed.scheduled++;
	return true;
}

#define ib_create_send_mad(...) fake_create_send_mad()
#define ib_post_send_mad(...) fake_post_send_mad()
#define ib_free_send_mad(...) do { } while (0)
#undef rdma_create_ah
#define rdma_create_ah(...) ERR_PTR(-ENOMEM)
#undef rdma_destroy_ah
#define rdma_destroy_ah(...) do { } while (0)
#define mod_delayed_work(...) fake_schedule()
#define queue_delayed_work(...) fake_schedule()

#include "trap.c"

static int begin(struct kunit *test)
{
	memset(&bed, 0, sizeof(bed));
	port->dev = &bed.dev;
	port->num = 1;
	port->lid = OWN_LID;
	port->state = IB_PORT_ACTIVE;
	port->ibp.sm_lid = SM_LID;
	port->ibp.mkey = cpu_to_be64(0x77);
	port->ibp.port_cap_flags = 0x02010000;
	port->ibp.send_agent = &bed.agent;
	bed.ah.attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(&bed.ah.attr, SM_LID);
	port->ibp.sm_ah = &bed.ah;
	vhca_traps_init(port);
	return 0;
}

static const u8 *details(unsigned int i)
{
	return port->traps[i].notice + DETAILS;
}

static u16 number(unsigned int i)
{
	return get_unaligned_be16(port->traps[i].notice + 4);
}

/* The clock has reached the next time. */
static void pass(void)
{
	trap_work(&port->trap_work.work);
}

static void repress(__be64 tid)
{
	struct ib_smp smp = { .method = IB_MGMT_METHOD_TRAP_REPRESS, .tid = tid };

	vhca_trap_repress(port, &smp);
}

/* Who has sent it, for whom, with what key; a datagram also says its sender's queue pair. */
static void bad_keys(struct kunit *test)
{
	u8 ext[8] = { 0x80, 0x01, 0x00, 0x05, 0, 0xab, 0xcd, 0xef };
	struct ib_grh grh = { .hop_limit = 1 };
	struct vhca_rx rx = { .ext = ext, .slid = PEER_LID, .dlid = OWN_LID, .sl = 5 };
	const u8 *d;

	grh.sgid.raw[15] = 1;
	grh.dgid.raw[15] = 2;
	rx.bth.opcode = IB_OPCODE_RC_SEND_ONLY;
	vhca_trap_bad_key(port, IB_NOTICE_TRAP_BAD_PKEY, 0x8001, &rx, 0x123456);
	rx.bth.opcode = IB_OPCODE_UD_SEND_ONLY;
	rx.grh = &grh;
	vhca_trap_bad_key(port, IB_NOTICE_TRAP_BAD_QKEY, 0x80010005, &rx, 0x123456);
	KUNIT_ASSERT_EQ(test, port->ntraps, 2u);
	KUNIT_EXPECT_EQ(test, number(0), 257);
	KUNIT_EXPECT_EQ(test, port->traps[0].notice[0], 0x80 | 2);	/* generic, security */
	KUNIT_EXPECT_EQ(test, port->traps[0].notice[3], 1);		/* a channel adapter */
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(port->traps[0].notice + 6), OWN_LID);
	d = details(0);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(d + 2), PEER_LID);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(d + 4), OWN_LID);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(d + 6), 0x8001u);
	KUNIT_EXPECT_EQ(test, d[10], 5 << 4);
	KUNIT_EXPECT_EQ(test, get_unaligned_be24(d + 11), 0u);
	KUNIT_EXPECT_EQ(test, get_unaligned_be24(d + 15), 0x123456u);
	KUNIT_EXPECT_NULL(test, memchr_inv(d + 18, 0, 32));

	KUNIT_EXPECT_EQ(test, number(1), 258);
	d = details(1);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(d + 6), 0x80010005u);
	KUNIT_EXPECT_EQ(test, get_unaligned_be24(d + 11), 0xabcdefu);
	KUNIT_EXPECT_EQ(test, get_unaligned_be24(d + 15), 0x123456u);
	KUNIT_EXPECT_EQ(test, d[18 + 15], 1);
	KUNIT_EXPECT_EQ(test, d[34 + 15], 2);
	KUNIT_EXPECT_EQ(test, port->ibp.pkey_violations, 1);
	KUNIT_EXPECT_EQ(test, port->ibp.qkey_violations, 1);
}

/* A counter of violations stays at its highest value (14.2.5.6). */
static void violations(struct kunit *test)
{
	struct vhca_rx rx = { .slid = PEER_LID, .dlid = OWN_LID };

	port->ibp.pkey_violations = 0xfffe;
	port->ibp.qkey_violations = 0xfffe;
	rx.bth.opcode = IB_OPCODE_RC_SEND_ONLY;
	for (unsigned int i = 0; i < 3; i++) {
		vhca_trap_bad_key(port, IB_NOTICE_TRAP_BAD_PKEY, i, &rx, 3);
		vhca_trap_bad_key(port, IB_NOTICE_TRAP_BAD_QKEY, i, &rx, 3);
	}
	KUNIT_EXPECT_EQ(test, port->ibp.pkey_violations, 0xffff);
	KUNIT_EXPECT_EQ(test, port->ibp.qkey_violations, 0xffff);
}

/* Who has tried what with which key, and the way that it came by. */
static void bad_mkey(struct kunit *test)
{
	struct ib_smp smp = { .mgmt_class = IB_MGMT_CLASS_SUBN_LID_ROUTED,
		.method = IB_MGMT_METHOD_SET, .attr_id = IB_SMP_ATTR_PORT_INFO,
		.attr_mod = cpu_to_be32(1), .mkey = cpu_to_be64(0x78) };
	const u8 *d;

	vhca_trap_bad_mkey(port, PEER_LID, &smp);
	smp.mgmt_class = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
	smp.hop_cnt = 2;
	smp.return_path[1] = 3;
	vhca_trap_bad_mkey(port, VHCA_LID_PERMISSIVE, &smp);
	smp.hop_cnt = 40;
	vhca_trap_bad_mkey(port, VHCA_LID_PERMISSIVE, &smp);
	KUNIT_ASSERT_EQ(test, port->ntraps, 3u);
	KUNIT_EXPECT_EQ(test, number(0), 256);
	d = details(0);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(d + 2), PEER_LID);
	KUNIT_EXPECT_EQ(test, d[6], IB_MGMT_METHOD_SET);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(d + 8), 0x15);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(d + 10), 1u);
	KUNIT_EXPECT_EQ(test, get_unaligned_be64(d + 14), 0x78ull);
	KUNIT_EXPECT_EQ(test, d[23], 0);
	d = details(1);
	KUNIT_EXPECT_EQ(test, d[23], IB_NOTICE_TRAP_DR_NOTICE | 2);
	KUNIT_EXPECT_EQ(test, d[25], 3);
	d = details(2);
	KUNIT_EXPECT_EQ(test, d[23], IB_NOTICE_TRAP_DR_NOTICE | IB_NOTICE_TRAP_DR_TRUNC | 30);
}

static void changes(struct kunit *test)
{
	vhca_trap_cap_mask(&bed.dev.rdi, 1);
	vhca_trap_node_desc(port);
	KUNIT_ASSERT_EQ(test, port->ntraps, 2u);
	for (unsigned int i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, number(i), 144);
		KUNIT_EXPECT_EQ(test, port->traps[i].notice[0], 0x80 | 4);	/* news */
		KUNIT_EXPECT_EQ(test, get_unaligned_be16(details(i) + 2), OWN_LID);
		KUNIT_EXPECT_EQ(test, get_unaligned_be32(details(i) + 6), 0x02010000u);
	}
	KUNIT_EXPECT_EQ(test, details(0)[5], 0);
	KUNIT_EXPECT_EQ(test, details(1)[5], 1);
	KUNIT_EXPECT_EQ(test, details(1)[11], 1);
}

/* The same twice is one trap; it is sent again until its own answer comes. */
static void repressed(struct kunit *test)
{
	vhca_trap_node_desc(port);
	vhca_trap_node_desc(port);
	KUNIT_EXPECT_EQ(test, port->ntraps, 1u);
	KUNIT_EXPECT_EQ(test, bed.scheduled, 1);
	pass();
	KUNIT_ASSERT_EQ(test, bed.nsent, 1);
	KUNIT_EXPECT_EQ(test, bed.sent[0].method, IB_MGMT_METHOD_TRAP);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(bed.sent[0].attr_id), 0x02);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(bed.sent[0].mkey), 0x77ull);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(bed.sent[0].data + 4), 144);
	KUNIT_EXPECT_EQ(test, bed.scheduled, 2);
	pass();
	KUNIT_EXPECT_EQ(test, bed.nsent, 2);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(bed.sent[1].tid), be64_to_cpu(bed.sent[0].tid));
	repress(cpu_to_be64(be64_to_cpu(bed.sent[0].tid) + 1));
	KUNIT_EXPECT_EQ(test, port->ntraps, 1u);
	repress(bed.sent[0].tid);
	KUNIT_EXPECT_EQ(test, port->ntraps, 0u);
	pass();
	KUNIT_EXPECT_EQ(test, bed.nsent, 2);
	KUNIT_EXPECT_EQ(test, bed.scheduled, 3);
	/* The next one is another, with a number of its own. */
	vhca_trap_node_desc(port);
	KUNIT_EXPECT_NE(test, port->traps[0].tid, be64_to_cpu(bed.sent[0].tid));
}

/* It waits until there is somebody to tell; who never answers is not told for ever. */
static void nobody(struct kunit *test)
{
	vhca_trap_node_desc(port);
	port->state = IB_PORT_INIT;
	pass();
	port->state = IB_PORT_ACTIVE;
	port->ibp.sm_lid = 0;
	pass();
	port->ibp.sm_lid = SM_LID;
	port->ibp.send_agent = NULL;
	pass();
	port->ibp.send_agent = &bed.agent;
	KUNIT_EXPECT_EQ(test, bed.nsent, 0);
	KUNIT_EXPECT_EQ(test, port->ntraps, 1u);
	bed.failing = true;
	pass();
	bed.failing = false;
	for (unsigned int i = 1; i < MOST; i++) {
		KUNIT_EXPECT_EQ(test, port->ntraps, 1u);
		pass();
	}
	KUNIT_EXPECT_EQ(test, bed.nsent, MOST - 1);
	KUNIT_EXPECT_EQ(test, port->ntraps, 0u);
}

/* No more than there is room for; none of a VF, nor of a port that goes away. */
static void bounds(struct kunit *test)
{
	struct vhca_rx rx = { .slid = PEER_LID, .dlid = OWN_LID };

	rx.bth.opcode = IB_OPCODE_RC_SEND_ONLY;
	for (unsigned int i = 0; i < 2 * VHCA_MAX_TRAPS; i++)
		vhca_trap_bad_key(port, IB_NOTICE_TRAP_BAD_PKEY, i, &rx, 3);
	KUNIT_EXPECT_EQ(test, port->ntraps, (unsigned int)VHCA_MAX_TRAPS);
	pass();
	KUNIT_EXPECT_EQ(test, bed.nsent, VHCA_MAX_TRAPS);
	vhca_traps_stop(port);
	vhca_trap_node_desc(port);
	KUNIT_EXPECT_EQ(test, port->ntraps, 0u);
	port->traps_stopped = false;
	bed.dev.function = 1;
	vhca_trap_node_desc(port);
	KUNIT_EXPECT_EQ(test, port->ntraps, 0u);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(bad_keys),
	KUNIT_CASE(violations),
	KUNIT_CASE(bad_mkey),
	KUNIT_CASE(changes),
	KUNIT_CASE(repressed),
	KUNIT_CASE(nobody),
	KUNIT_CASE(bounds),
	{}
};

static struct kunit_suite suite = {
	.name = "vhca_trap",
	.init = begin,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_LICENSE("GPL");
