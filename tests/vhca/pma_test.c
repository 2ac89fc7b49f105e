// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 3 */
/* kunit-objs: pma.o */
/* The counters of a port: their widths, what a Set writes, and what is refused. */
#include <kunit/test.h>

#include "mad.h"

#define CLASS_PORT_INFO 0x01
#define PORT_COUNTERS 0x12
#define PORT_COUNTERS_EXT 0x1d

static struct vhca_dev dev;
static struct vhca_counters *const c = &dev.port[0].counters;

static int begin(struct kunit *test)
{
	memset(&dev, 0, sizeof(dev));
	return 0;
}

/* The attribute in the answer. */
static const u8 *perf(struct ib_mad *mad, u8 method, u16 attribute, u8 port, u16 select)
{
	u8 *data = (u8 *)mad + 64;

	memset(mad, 0, sizeof(*mad));
	mad->mad_hdr.class_version = 1;
	mad->mad_hdr.method = method;
	mad->mad_hdr.attr_id = cpu_to_be16(attribute);
	data[1] = port;
	put_unaligned_be16(select, data + 2);
	vhca_pma(&dev, 1, mad);
	return data;
}

/* Each width stays at its highest value; the two attributes are set apart; what is not selected stays. */
static void counters(struct kunit *test)
{
	struct ib_mad mad;
	const u8 *d;

	c->link_downed = 300;
	c->xmit_discards = 70000;
	c->xmit_data = 0x100000005ull;
	c->xmit_pkts = 6;
	c->multicast_rcv = 3;
	c->xmit_wait = 77;
	d = perf(&mad, IB_MGMT_METHOD_GET, PORT_COUNTERS, 1, 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(mad.mad_hdr.status), 0);
	KUNIT_EXPECT_EQ(test, mad.mad_hdr.method, IB_MGMT_METHOD_GET_RESP);
	KUNIT_EXPECT_EQ(test, d[7], 0xff);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(d + 14), 0xffff);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(d + 24), 0xffffffffu);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(d + 32), 6u);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(d + 40), 77u);

	/* PortXmitData and LinkDownedCounter */
	perf(&mad, IB_MGMT_METHOD_SET, PORT_COUNTERS, 1, BIT(12) | BIT(2));
	c->xmit_data += 4;
	c->xmit_pkts++;
	d = perf(&mad, IB_MGMT_METHOD_GET, PORT_COUNTERS, 1, 0);
	KUNIT_EXPECT_EQ(test, d[7], 0);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(d + 24), 4u);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(d + 32), 7u);

	d = perf(&mad, IB_MGMT_METHOD_GET, PORT_COUNTERS_EXT, 0xff, 0);
	KUNIT_EXPECT_EQ(test, get_unaligned_be64(d + 8), 0x100000009ull);
	KUNIT_EXPECT_EQ(test, get_unaligned_be64(d + 64), 3ull);
	perf(&mad, IB_MGMT_METHOD_SET, PORT_COUNTERS_EXT, 1, 0xff);
	d = perf(&mad, IB_MGMT_METHOD_GET, PORT_COUNTERS_EXT, 1, 0);
	KUNIT_EXPECT_EQ(test, get_unaligned_be64(d + 8), 0ull);
	d = perf(&mad, IB_MGMT_METHOD_GET, PORT_COUNTERS, 1, 0);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(d + 24), 4u);
}

static void capabilities(struct kunit *test)
{
	struct ib_mad mad;
	const u8 *d = perf(&mad, IB_MGMT_METHOD_GET, CLASS_PORT_INFO, 0, 0);

	/* All ports at once, extended counters, PortXmitWait. */
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(d + 2), 0x1300);
	perf(&mad, IB_MGMT_METHOD_SET, CLASS_PORT_INFO, 0, 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(mad.mad_hdr.status), VHCA_MAD_BAD_METHOD);
	perf(&mad, IB_MGMT_METHOD_GET, PORT_COUNTERS, 2, 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(mad.mad_hdr.status), VHCA_MAD_BAD_VALUE);
	perf(&mad, IB_MGMT_METHOD_GET, 0x10, 1, 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(mad.mad_hdr.status), VHCA_MAD_BAD_ATTRIBUTE);
}

/* PortSelect: the port that is asked or all; any other one has no counters to show or to set. */
static void port_select(struct kunit *test)
{
	static const u16 attributes[] = { PORT_COUNTERS, PORT_COUNTERS_EXT };
	static const u8 methods[] = { IB_MGMT_METHOD_GET, IB_MGMT_METHOD_SET };
	static const u8 bad[] = { 0, 2, 254 };
	unsigned int a, m, i, at;
	struct ib_mad mad;
	const u8 *d;

	c->xmit_pkts = 6;
	for (a = 0; a < ARRAY_SIZE(attributes); a++) {
		for (m = 0; m < ARRAY_SIZE(methods); m++)
			for (i = 0; i < ARRAY_SIZE(bad); i++) {
				d = perf(&mad, methods[m], attributes[a], bad[i], 0xffff);
				KUNIT_EXPECT_EQ(test, be16_to_cpu(mad.mad_hdr.status),
						VHCA_MAD_BAD_VALUE);
				KUNIT_EXPECT_EQ(test, d[1], bad[i]);
				for (at = 4; at < 72; at++)
					KUNIT_EXPECT_EQ(test, d[at], 0);
			}
		for (i = 0; i < 2; i++) {
			d = perf(&mad, IB_MGMT_METHOD_GET, attributes[a], i ? 0xff : 1, 0);
			KUNIT_EXPECT_EQ(test, be16_to_cpu(mad.mad_hdr.status), 0);
			KUNIT_EXPECT_EQ(test, d[1], i ? 0xff : 1);
			KUNIT_EXPECT_EQ(test, d[a ? 31 : 35], 6);
		}
		perf(&mad, IB_MGMT_METHOD_SET, attributes[a], 0xff, 0xffff);
		d = perf(&mad, IB_MGMT_METHOD_GET, attributes[a], 1, 0);
		KUNIT_EXPECT_EQ(test, d[a ? 31 : 35], 0);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(counters),
	KUNIT_CASE(capabilities),
	KUNIT_CASE(port_select),
	{}
};

static struct kunit_suite suite = {
	.name = "vhca_pma",
	.init = begin,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_LICENSE("GPL");
