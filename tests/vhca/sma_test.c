// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 12 */
/* kunit-objs: sma.o sma_port.o */
/*
 * The agents of a port, asked MAD by MAD: what the M_Key protects and for how long, LID and LMC, the
 * logical states, tables, and what is refused with which status.
 */
#include <kunit/test.h>
#include <rdma/ib_smi.h>

#include "mad.h"
#include "trap.h"
#include "wire_link.h"

#define SM_LID 7
#define KEY cpu_to_be64(0x77)
#define STATUS 0x7fff		/* without the direction */

static struct {
	struct vhca_dev dev;
	int events[IB_EVENT_WQ_FATAL + 1];
	int bad_mkeys, repressed, kicks;
	u16 bad_from;
} bed;

static struct vhca_port *const port = &bed.dev.port[0];

/* What surrounds the agents. */

void vhca_dev_event(struct vhca_port *at, enum ib_event_type event)
{
	bed.events[event]++;
}

void vhca_wire_kick(struct vhca_port *at)
{
	bed.kicks++;
}

void vhca_port_set_state(struct vhca_port *at, u8 state)
{
	at->state = state;
}

void vhca_trap_bad_mkey(struct vhca_port *at, u16 slid, const struct ib_smp *smp)
{
	bed.bad_mkeys++;
	bed.bad_from = slid;
}

int vhca_pma(struct vhca_dev *dev, u32 num, struct ib_mad *mad)
{
	return IB_MAD_RESULT_FAILURE;
}

void vhca_trap_repress(struct vhca_port *at, const struct ib_smp *smp)
{
	bed.repressed++;
}

static int begin(struct kunit *test)
{
	memset(&bed, 0, sizeof(bed));
	bed.dev.nports = 2;
	bed.dev.guid = 0x0002c90200000010ull;
	for (unsigned int i = 0; i < 2; i++) {
		struct vhca_port *p = &bed.dev.port[i];

		p->dev = &bed.dev;
		p->num = i + 1;
		p->state = IB_PORT_INIT;
		p->phys = IB_PORT_PHYS_STATE_LINK_UP;
		p->neighbor_mtu = IB_MTU_4096;
		p->op_vls = 4;
		p->wire.up = true;
		p->ibp.sm_lid = SM_LID;
		p->guids[0] = cpu_to_be64(bed.dev.guid + i + 1);
		p->pkeys[0] = IB_DEFAULT_PKEY_FULL;
		spin_lock_init(&p->lane_lock);
	}
	port->lid = 12;
	return 0;
}

static struct ib_smp smp_of(u8 method, __be16 attribute, u32 modifier)
{
	return (struct ib_smp){
		.base_version = 1, .mgmt_class = IB_MGMT_CLASS_SUBN_LID_ROUTED, .class_version = 1,
		.method = method, .attr_id = attribute, .attr_mod = cpu_to_be32(modifier),
	};
}

/* Whether it was answered; the status, if so. */
static int ask_at(struct ib_smp *smp, u16 slid)
{
	smp->status = 0;
	if (vhca_sma(&bed.dev, 0, 1, slid, smp) != (IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY))
		return -1;
	return be16_to_cpu(smp->status) & STATUS;
}

static int ask(struct ib_smp *smp)
{
	return ask_at(smp, SM_LID);
}

static int get(struct ib_smp *smp, __be16 attribute, u32 modifier)
{
	*smp = smp_of(IB_MGMT_METHOD_GET, attribute, modifier);
	return ask(smp);
}

static struct ib_port_info *info_of(struct ib_smp *smp)
{
	return (struct ib_port_info *)smp->data;
}

/* A Set of PortInfo as it is, for the case to alter. */
static struct ib_smp set_port_info(void)
{
	struct ib_smp smp = smp_of(IB_MGMT_METHOD_SET, IB_SMP_ATTR_PORT_INFO, 1);

	smp.mkey = port->ibp.mkey;
	vhca_port_info_get(port, &smp, smp.data);
	info_of(&smp)->linkspeed_portstate &= 0xf0;
	info_of(&smp)->portphysstate_linkdown = 0;
	return smp;
}

static int protect(u8 level, u16 lease)
{
	struct ib_smp smp = set_port_info();

	info_of(&smp)->mkey = KEY;
	info_of(&smp)->mkeyprot_resv_lmc = level << 6;
	info_of(&smp)->mkey_lease_period = cpu_to_be16(lease);
	return ask(&smp);
}

/* 14.2.4.1, table 115: who may read, who may read the key, who may write. */
static void levels(struct kunit *test)
{
	static const struct {
		bool reads, learns;
	} wanted[] = { { true, true }, { true, false }, { false, false }, { false, false } };
	struct ib_smp smp;

	for (unsigned int level = 0; level < ARRAY_SIZE(wanted); level++) {
		begin(test);
		KUNIT_ASSERT_EQ(test, protect(level, 0), 0);
		/* Without the key */
		KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1) == 0, wanted[level].reads);
		if (wanted[level].reads)
			KUNIT_EXPECT_EQ(test, info_of(&smp)->mkey == KEY, wanted[level].learns);
		KUNIT_EXPECT_EQ(test, bed.bad_mkeys, !wanted[level].reads);
		smp = set_port_info();
		smp.mkey = 0;
		KUNIT_EXPECT_EQ(test, ask_at(&smp, 0x34), -1);
		KUNIT_EXPECT_EQ(test, bed.bad_mkeys, 1 + !wanted[level].reads);
		KUNIT_EXPECT_EQ(test, bed.bad_from, 0x34);
		KUNIT_EXPECT_EQ(test, port->ibp.mkey_violations, bed.bad_mkeys);
		/* With it */
		smp = smp_of(IB_MGMT_METHOD_GET, IB_SMP_ATTR_PORT_INFO, 1);
		smp.mkey = KEY;
		KUNIT_EXPECT_EQ(test, ask(&smp), 0);
		KUNIT_EXPECT_TRUE(test, info_of(&smp)->mkey == KEY);
		smp = set_port_info();
		KUNIT_EXPECT_EQ(test, ask(&smp), 0);
		/* And another key: the answer tells it, OpenSM wants to see what it has set. */
		smp = set_port_info();
		info_of(&smp)->mkey = cpu_to_be64(0x77);
		KUNIT_EXPECT_EQ(test, ask(&smp), 0);
		KUNIT_EXPECT_TRUE(test, info_of(&smp)->mkey == cpu_to_be64(0x77));
	}
	/* Its answer to a trap needs none. */
	smp = smp_of(IB_MGMT_METHOD_TRAP_REPRESS, IB_SMP_ATTR_NOTICE, 0);
	KUNIT_EXPECT_EQ(test, ask(&smp), -1);
	KUNIT_EXPECT_EQ(test, bed.repressed, 1);
}

/* The other port has a key of its own: who sets that one by this one needs both. */
static void other_port(struct kunit *test)
{
	struct ib_smp smp;

	bed.dev.port[1].ibp.mkey = cpu_to_be64(0x99);
	bed.dev.port[1].ibp.mkeyprot = 2;
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1), 0);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 2), -1);
	KUNIT_EXPECT_EQ(test, bed.dev.port[1].ibp.mkey_violations, 1);
	smp = smp_of(IB_MGMT_METHOD_GET, IB_SMP_ATTR_PORT_INFO, 2);
	smp.mkey = cpu_to_be64(0x99);
	KUNIT_EXPECT_EQ(test, ask(&smp), 0);
	KUNIT_EXPECT_EQ(test, info_of(&smp)->local_port_num, 2);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 3), VHCA_MAD_BAD_VALUE);
}

/* 14.2.4.2: the lease runs from the first violation until the key is seen, then the protection ends. */
static void lease(struct kunit *test)
{
	unsigned long end;
	struct ib_smp smp;

	KUNIT_ASSERT_EQ(test, protect(2, 15), 0);
	KUNIT_EXPECT_EQ(test, port->ibp.mkey_lease_timeout, 0ul);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1), -1);
	end = port->ibp.mkey_lease_timeout;
	KUNIT_EXPECT_TRUE(test, time_after(end, jiffies) &&
			  time_before_eq(end, jiffies + 15 * HZ));
	/* Another violation gives it no more time. */
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_NODE_INFO, 0), -1);
	KUNIT_EXPECT_EQ(test, port->ibp.mkey_lease_timeout, end);
	/* The manager is still there. */
	smp = smp_of(IB_MGMT_METHOD_GET, IB_SMP_ATTR_NODE_INFO, 0);
	smp.mkey = KEY;
	KUNIT_EXPECT_EQ(test, ask(&smp), 0);
	KUNIT_EXPECT_EQ(test, port->ibp.mkey_lease_timeout, 0ul);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1), -1);
	/* It is not any more: another one may read the key, and take over with it. */
	port->ibp.mkey_lease_timeout = jiffies - 1 ?: 1;
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1), 0);
	KUNIT_EXPECT_TRUE(test, info_of(&smp)->mkey == KEY);
	KUNIT_EXPECT_EQ(test, info_of(&smp)->mkeyprot_resv_lmc >> 6, 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(info_of(&smp)->mkey_lease_period), 15);
	KUNIT_EXPECT_EQ(test, protect(3, 0), 0);
	/* No lease is for ever. */
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1), -1);
	KUNIT_EXPECT_EQ(test, port->ibp.mkey_lease_timeout, 0ul);
}

static int set_with(__be64 key)
{
	struct ib_smp smp = set_port_info();

	smp.mkey = key;
	return ask(&smp);
}

/* What begins a lease, and that its end takes the protection of reading and leaves that of writing. */
static void lease_edges(struct kunit *test)
{
	struct ib_smp smp = smp_of(IB_MGMT_METHOD_TRAP_REPRESS, IB_SMP_ATTR_NOTICE, 0);

	KUNIT_ASSERT_EQ(test, protect(1, 15), 0);
	KUNIT_EXPECT_EQ(test, ask(&smp), -1);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1), 0);
	KUNIT_EXPECT_EQ(test, port->ibp.mkey_lease_timeout, 0ul);	/* neither was a violation */
	KUNIT_EXPECT_EQ(test, set_with(0), -1);
	KUNIT_EXPECT_NE(test, port->ibp.mkey_lease_timeout, 0ul);
	KUNIT_EXPECT_EQ(test, protect(2, 30), 0);
	KUNIT_EXPECT_EQ(test, port->ibp.mkey_lease_timeout, 0ul);
	/* It is over to the tick. */
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1), -1);
	port->ibp.mkey_lease_timeout = jiffies;
	KUNIT_EXPECT_EQ(test, set_with(0), -1);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1), 0);
	KUNIT_EXPECT_EQ(test, set_with(KEY), 0);
	/* Without a key there is nothing to violate. */
	port->ibp.mkey = 0;
	KUNIT_EXPECT_EQ(test, set_with(KEY), 0);
	KUNIT_EXPECT_EQ(test, port->ibp.mkey_lease_timeout, 0ul);
}

/* A counter of violations counts up to its highest value, and is set to 0 only. */
static void violations(struct kunit *test)
{
	struct ib_smp smp;

	KUNIT_ASSERT_EQ(test, protect(2, 0), 0);
	port->ibp.mkey_violations = 0xfffe;
	port->ibp.pkey_violations = 3;
	port->ibp.qkey_violations = 4;
	for (unsigned int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 1), -1);
	KUNIT_EXPECT_EQ(test, port->ibp.mkey_violations, 0xffff);
	smp = set_port_info();
	info_of(&smp)->mkey_violations = cpu_to_be16(5);
	info_of(&smp)->pkey_violations = 0;
	info_of(&smp)->qkey_violations = cpu_to_be16(1);
	KUNIT_EXPECT_EQ(test, ask(&smp), 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(info_of(&smp)->mkey_violations), 0xffff);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(info_of(&smp)->pkey_violations), 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(info_of(&smp)->qkey_violations), 4);
}

/* Every LMC: these LIDs are the port's, and no others. */
static void lids(struct kunit *test)
{
	struct ib_smp smp;

	for (unsigned int lmc = 0; lmc < 8; lmc++) {
		u16 lid = 0x400 + (1 << lmc) * 3;

		smp = set_port_info();
		info_of(&smp)->lid = cpu_to_be16(lid);
		info_of(&smp)->mkeyprot_resv_lmc = lmc;
		KUNIT_EXPECT_EQ(test, ask(&smp), 0);
		KUNIT_EXPECT_EQ(test, be16_to_cpu(info_of(&smp)->lid), lid);
		KUNIT_EXPECT_EQ(test, info_of(&smp)->mkeyprot_resv_lmc & 7, lmc);
		KUNIT_EXPECT_EQ(test, bed.events[IB_EVENT_LID_CHANGE], lmc + 1);
		for (unsigned int i = 0; i < 1 << lmc; i++)
			KUNIT_EXPECT_TRUE(test, vhca_is_my_lid(port, lid + i));
		KUNIT_EXPECT_FALSE(test, vhca_is_my_lid(port, lid - 1));
		KUNIT_EXPECT_FALSE(test, vhca_is_my_lid(port, lid + (1 << lmc)));
	}
	KUNIT_EXPECT_EQ(test, bed.events[IB_EVENT_SM_CHANGE], 0);
	smp = set_port_info();
	info_of(&smp)->sm_lid = cpu_to_be16(8);
	KUNIT_EXPECT_EQ(test, ask(&smp), 0);
	KUNIT_EXPECT_EQ(test, bed.events[IB_EVENT_SM_CHANGE], 1);
	KUNIT_EXPECT_EQ(test, bed.events[IB_EVENT_LID_CHANGE], 8);
	smp = set_port_info();
	info_of(&smp)->lid = 0;
	KUNIT_EXPECT_EQ(test, ask(&smp), VHCA_MAD_BAD_VALUE);
	smp = set_port_info();
	info_of(&smp)->lid = cpu_to_be16(VHCA_LID_MULTICAST);
	KUNIT_EXPECT_EQ(test, ask(&smp), VHCA_MAD_BAD_VALUE);
}

static int set_state(u8 state, u8 phys)
{
	struct ib_smp smp = set_port_info();

	info_of(&smp)->linkspeed_portstate |= state;
	info_of(&smp)->portphysstate_linkdown = phys << 4;
	return ask(&smp);
}

/* Upwards one by one, down at any time. */
static void states(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, set_state(IB_PORT_ACTIVE, 0), VHCA_MAD_BAD_VALUE);
	KUNIT_EXPECT_EQ(test, set_state(IB_PORT_INIT, 0), VHCA_MAD_BAD_VALUE);
	KUNIT_EXPECT_EQ(test, port->state, IB_PORT_INIT);
	KUNIT_EXPECT_EQ(test, set_state(IB_PORT_ARMED, 0), 0);
	KUNIT_EXPECT_EQ(test, port->state, IB_PORT_ARMED);
	KUNIT_EXPECT_EQ(test, set_state(IB_PORT_ACTIVE, 0), 0);
	KUNIT_EXPECT_EQ(test, set_state(0, 0), 0);
	KUNIT_EXPECT_EQ(test, port->state, IB_PORT_ACTIVE);
	KUNIT_EXPECT_EQ(test, set_state(IB_PORT_ARMED, 0), VHCA_MAD_BAD_VALUE);
	KUNIT_EXPECT_EQ(test, set_state(5, 0), VHCA_MAD_BAD_VALUE);
	/* Down, and it trains again. */
	KUNIT_EXPECT_EQ(test, set_state(IB_PORT_DOWN, 0), 0);
	KUNIT_EXPECT_EQ(test, port->state, IB_PORT_INIT);
	/* Down, and it stays there until it may train. */
	KUNIT_EXPECT_EQ(test, set_state(IB_PORT_DOWN, IB_PORT_PHYS_STATE_DISABLED), 0);
	KUNIT_EXPECT_EQ(test, port->state, IB_PORT_DOWN);
	KUNIT_EXPECT_EQ(test, port->phys, IB_PORT_PHYS_STATE_DISABLED);
	KUNIT_EXPECT_EQ(test, bed.kicks, 1);
	port->wire.up = false;
	KUNIT_EXPECT_EQ(test, set_state(IB_PORT_ARMED, 0), VHCA_MAD_BAD_VALUE);
	KUNIT_EXPECT_EQ(test, set_state(0, IB_PORT_PHYS_STATE_POLLING), 0);
	KUNIT_EXPECT_EQ(test, port->phys, IB_PORT_PHYS_STATE_POLLING);
	KUNIT_EXPECT_EQ(test, bed.kicks, 2);
}

/* What is asked for and can not be, is refused as a whole. */
static void values(struct kunit *test)
{
	struct ib_smp smp = set_port_info();

	info_of(&smp)->operationalvl_pei_peo_fpi_fpo = 5 << 4;
	info_of(&smp)->lid = cpu_to_be16(99);
	KUNIT_EXPECT_EQ(test, ask(&smp), VHCA_MAD_BAD_VALUE);
	KUNIT_EXPECT_EQ(test, port->lid, 12);
	smp = set_port_info();
	info_of(&smp)->neighbormtu_mastersmsl = 6 << 4;
	KUNIT_EXPECT_EQ(test, ask(&smp), VHCA_MAD_BAD_VALUE);
	smp = set_port_info();
	info_of(&smp)->neighbormtu_mastersmsl = IB_MTU_1024 << 4 | 3;
	info_of(&smp)->operationalvl_pei_peo_fpi_fpo = 2 << 4;
	info_of(&smp)->clientrereg_resv_subnetto = 0x80 | 17;
	info_of(&smp)->gid_prefix = cpu_to_be64(0xfec0000000000000ull);
	info_of(&smp)->vl_high_limit = 9;
	KUNIT_EXPECT_EQ(test, ask(&smp), 0);
	KUNIT_EXPECT_EQ(test, info_of(&smp)->clientrereg_resv_subnetto, 0x80 | 17);
	KUNIT_EXPECT_EQ(test, bed.events[IB_EVENT_CLIENT_REREGISTER], 1);
	KUNIT_EXPECT_EQ(test, bed.events[IB_EVENT_GID_CHANGE], 1);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PORT_INFO, 0), 0);
	KUNIT_EXPECT_EQ(test, info_of(&smp)->neighbormtu_mastersmsl, IB_MTU_1024 << 4 | 3);
	KUNIT_EXPECT_EQ(test, info_of(&smp)->operationalvl_pei_peo_fpi_fpo >> 4, 2);
	KUNIT_EXPECT_EQ(test, info_of(&smp)->clientrereg_resv_subnetto, 17);
	KUNIT_EXPECT_EQ(test, info_of(&smp)->vl_high_limit, 9);
}

static void node(struct kunit *test)
{
	struct ib_node_info *info;
	struct ib_smp smp;

	KUNIT_ASSERT_EQ(test, get(&smp, IB_SMP_ATTR_NODE_INFO, 0), 0);
	info = (struct ib_node_info *)smp.data;
	KUNIT_EXPECT_EQ(test, info->node_type, 1);
	KUNIT_EXPECT_EQ(test, info->num_ports, 2);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(info->node_guid), bed.dev.guid);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(info->port_guid), bed.dev.guid + 1);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(info->partition_cap), VHCA_PKEYS);
	strscpy(bed.dev.rdi.ibdev.node_desc, "H1 vhca", IB_DEVICE_NODE_DESC_MAX);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_NODE_DESC, 0), 0);
	KUNIT_EXPECT_STREQ(test, (char *)smp.data, "H1 vhca");
	/* Nothing waits to be polled. */
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_NOTICE, 0), 0);
	KUNIT_EXPECT_EQ(test, smp.data[0], 0xff);
}

static void tables(struct kunit *test)
{
	struct ib_smp smp = smp_of(IB_MGMT_METHOD_SET, IB_SMP_ATTR_PKEY_TABLE, 0);
	__be16 *keys = (__be16 *)smp.data;
	__be64 *guids = (__be64 *)smp.data;

	keys[0] = cpu_to_be16(0xffff);
	keys[1] = cpu_to_be16(0x8001);
	keys[2] = cpu_to_be16(0x8000);		/* of no partition */
	KUNIT_EXPECT_EQ(test, ask(&smp), 0);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PKEY_TABLE, 0), 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(keys[1]), 0x8001);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(keys[2]), 0);
	KUNIT_EXPECT_EQ(test, bed.events[IB_EVENT_PKEY_CHANGE], 1);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_PKEY_TABLE, 1), VHCA_MAD_BAD_VALUE);

	smp = smp_of(IB_MGMT_METHOD_SET, IB_SMP_ATTR_GUID_INFO, 0);
	guids[0] = cpu_to_be64(1);
	guids[3] = cpu_to_be64(2);
	KUNIT_EXPECT_EQ(test, ask(&smp), 0);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_GUID_INFO, 0), 0);
	KUNIT_EXPECT_TRUE(test, guids[0] == port->guids[0]);	/* the port's own */
	KUNIT_EXPECT_EQ(test, be64_to_cpu(guids[0]), bed.dev.guid + 1);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(guids[3]), 2ull);
	KUNIT_EXPECT_EQ(test, bed.events[IB_EVENT_GID_CHANGE], 1);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_GUID_INFO, VHCA_GUIDS / 8), VHCA_MAD_BAD_VALUE);
}

static void lanes(struct kunit *test)
{
	struct ib_smp smp = smp_of(IB_MGMT_METHOD_SET, IB_SMP_ATTR_SL_TO_VL_TABLE, 0);

	smp.data[0] = 0x1f;			/* SL 0 to VL 1, SL 1 to none */
	KUNIT_EXPECT_EQ(test, ask(&smp), 0);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_SL_TO_VL_TABLE, 0), 0);
	KUNIT_EXPECT_EQ(test, smp.data[0], 0x1f);
	KUNIT_EXPECT_EQ(test, vhca_sl_to_vl(port, 0), 1);
	KUNIT_EXPECT_EQ(test, vhca_sl_to_vl(port, 1), 15);
	/* A lane that is not there is none, either. */
	port->op_vls = 1;
	KUNIT_EXPECT_EQ(test, vhca_sl_to_vl(port, 0), 15);

	for (unsigned int block = 1; block < 5; block++) {
		smp = smp_of(IB_MGMT_METHOD_SET, IB_SMP_ATTR_VL_ARB_TABLE, block << 16);
		smp.data[0] = 2;
		smp.data[1] = block;
		KUNIT_EXPECT_EQ(test, ask(&smp), block & 1 ? 0 : VHCA_MAD_BAD_VALUE);
	}
	for (unsigned int block = 1; block < 5; block += 2) {
		KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_VL_ARB_TABLE, block << 16), 0);
		KUNIT_EXPECT_EQ(test, smp.data[0], 2);
		KUNIT_EXPECT_EQ(test, smp.data[1], block);
	}
}

static void refused(struct kunit *test)
{
	struct ib_smp smp = smp_of(IB_MGMT_METHOD_SET, IB_SMP_ATTR_NODE_INFO, 0);

	KUNIT_EXPECT_EQ(test, ask(&smp), VHCA_MAD_BAD_METHOD);
	smp = smp_of(0x44, IB_SMP_ATTR_NODE_INFO, 0);
	KUNIT_EXPECT_EQ(test, ask(&smp), VHCA_MAD_BAD_METHOD);
	KUNIT_EXPECT_EQ(test, get(&smp, cpu_to_be16(0x30), 0), VHCA_MAD_BAD_ATTRIBUTE);
	smp = smp_of(IB_MGMT_METHOD_GET, IB_SMP_ATTR_NODE_INFO, 0);
	smp.class_version = 2;
	KUNIT_EXPECT_EQ(test, ask(&smp), VHCA_MAD_BAD_CLASS);
	/* SMInfo is a manager's: of its own here, else of nobody. */
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_SM_INFO, 0), VHCA_MAD_BAD_ATTRIBUTE);
	port->ibp.port_cap_flags |= IB_PORT_SM;
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_SM_INFO, 0), -1);
	/* A VF's agent only answers. */
	bed.dev.function = 1;
	smp = set_port_info();
	KUNIT_EXPECT_EQ(test, ask(&smp), VHCA_MAD_BAD_METHOD);
	KUNIT_EXPECT_EQ(test, get(&smp, IB_SMP_ATTR_NODE_INFO, 0), 0);
	/* The answer to a directed route says its direction. */
	smp = smp_of(IB_MGMT_METHOD_GET, IB_SMP_ATTR_NODE_INFO, 0);
	smp.mgmt_class = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
	KUNIT_EXPECT_EQ(test, ask(&smp), 0);
	KUNIT_EXPECT_TRUE(test, smp.status == IB_SMP_DIRECTION);
	KUNIT_EXPECT_EQ(test, smp.method, IB_MGMT_METHOD_GET_RESP);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(levels),
	KUNIT_CASE(other_port),
	KUNIT_CASE(lease),
	KUNIT_CASE(lease_edges),
	KUNIT_CASE(violations),
	KUNIT_CASE(lids),
	KUNIT_CASE(states),
	KUNIT_CASE(values),
	KUNIT_CASE(node),
	KUNIT_CASE(tables),
	KUNIT_CASE(lanes),
	KUNIT_CASE(refused),
	{}
};

static struct kunit_suite suite = {
	.name = "vhca_sma",
	.init = begin,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_LICENSE("GPL");
