// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 10 */
/* kunit-objs: packet.o credit.o arbiter.o */
/* The pure parts of the software HCA: bytes, numbers, credits, arbitration. */
#include <kunit/test.h>
#include <linux/slab.h>

#include "arbiter.h"
#include "credit.h"
#include "packet.h"
#include "psn.h"

static const struct vhca_address local = { .slid = 0x1234, .dlid = 0x4321, .sl = 5, .vl = 3 };

static struct vhca_packet *make(struct kunit *test, u8 opcode, const struct ib_grh *grh,
				u32 payload)
{
	struct vhca_bth bth = {
		.opcode = opcode, .solicited = true, .ackreq = true, .pkey = 0x8001,
		.qpn = 0xabcdef, .psn = 0x1fffffe,
	};
	struct vhca_address to = local;
	struct vhca_packet *packet;
	u8 *ext;
	u32 i;

	to.grh = grh;
	packet = vhca_packet_new(&to, &bth, payload, &ext);
	KUNIT_ASSERT_NOT_NULL(test, packet);
	for (i = 0; i < vhca_opcode_ext(opcode) + payload; i++)
		ext[i] = i;
	vhca_packet_seal(packet);
	return packet;
}

/* What was built comes apart into the same, for each opcode, with padding and with a GRH. */
static void round_trip(struct kunit *test)
{
	static const struct ib_grh grh = {
		.version_tclass_flow = cpu_to_be32(6u << 28 | 7 << 20 | 9), .next_hdr = 0x1b,
		.hop_limit = 3,
	};
	unsigned int opcode, payload, global, known = 0;
	struct vhca_packet *packet;
	struct vhca_rx rx;

	for (opcode = 0; opcode < 256; opcode++) {
		if (vhca_opcode_ext(opcode) < 0)
			continue;
		known++;
		for (payload = 0; payload < 9; payload++)
			for (global = 0; global < 2; global++) {
				packet = make(test, opcode, global ? &grh : NULL, payload);
				KUNIT_ASSERT_TRUE(test, vhca_packet_parse(&rx, packet->bytes,
									  packet->size, true));
				KUNIT_EXPECT_EQ(test, rx.length, payload);
				KUNIT_EXPECT_EQ(test, rx.slid, local.slid);
				KUNIT_EXPECT_EQ(test, rx.dlid, local.dlid);
				KUNIT_EXPECT_EQ(test, rx.sl, local.sl);
				KUNIT_EXPECT_EQ(test, rx.vl, local.vl);
				KUNIT_EXPECT_EQ(test, rx.bth.opcode, opcode);
				KUNIT_EXPECT_EQ(test, rx.bth.psn, 0xfffffeu);
				KUNIT_EXPECT_EQ(test, rx.bth.qpn, 0xabcdefu);
				KUNIT_EXPECT_EQ(test, rx.bth.pkey, 0x8001);
				KUNIT_EXPECT_TRUE(test, rx.bth.ackreq && rx.bth.solicited);
				KUNIT_EXPECT_FALSE(test, rx.bth.migreq);
				KUNIT_EXPECT_EQ(test, !!rx.grh, global);
				if (payload)
					KUNIT_EXPECT_EQ(test, rx.data[0],
							vhca_opcode_ext(opcode));
				kfree(packet);
			}
	}
	/* RC has 21, UC 12, UD 2. */
	KUNIT_EXPECT_EQ(test, known, 35u);
}

/* One bit wrong anywhere but where switches write is found out. */
static void damage(struct kunit *test)
{
	struct vhca_packet *packet = make(test, IB_OPCODE_RC_RDMA_WRITE_ONLY, NULL, 37);
	struct vhca_rx rx;
	unsigned int bit;

	for (bit = 0; bit < packet->size * 8; bit++) {
		bool vl = bit / 8 == 0 && bit % 8 >= 4;
		bool reserved = bit / 8 == IB_LRH_BYTES + 4;

		packet->bytes[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_EQ(test, vhca_packet_parse(&rx, packet->bytes, packet->size, true),
				vl || reserved);
		packet->bytes[bit / 8] ^= 1 << bit % 8;
	}
	kfree(packet);
}

/* Whatever is cut off, and whatever LRH says of the length, nothing behind the end is touched. */
static void short_packets(struct kunit *test)
{
	static const u8 opcodes[] = { IB_OPCODE_RC_COMPARE_SWAP, IB_OPCODE_UD_SEND_ONLY,
		IB_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE };
	unsigned int i, size;
	struct vhca_rx rx;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct vhca_packet *packet = make(test, opcodes[i], NULL, 8);

		for (size = 0; size < packet->size; size++) {
			/* A copy of that size, so that KASAN sees what is read behind it. */
			u8 *bytes = kmemdup(packet->bytes, size, GFP_KERNEL);

			KUNIT_EXPECT_FALSE(test, vhca_packet_parse(&rx, bytes, size, false));
			if (size >= 6) {
				put_unaligned_be16(size / 4, bytes + 4);
				if (vhca_packet_parse(&rx, bytes, size, false))
					KUNIT_EXPECT_LE(test, rx.data + rx.length + 4,
							bytes + size);
				bytes[1] |= IB_LNH_IBA_GLOBAL;
				KUNIT_EXPECT_FALSE(test, vhca_packet_parse(&rx, bytes, size,
									   false));
			}
			kfree(bytes);
		}
		kfree(packet);
	}
}

/* The value is from zlib's crc32(), of the bytes with what varies set to ones. */
static void known_icrc(struct kunit *test)
{
	/* LRH, BTH, 4 bytes of payload, ICRC. */
	static const u8 bytes[] = {
		0x70, 0x12, 0x0a, 0x1b, 0x00, 0x07, 0x0c, 0x1d,
		0x04, 0x00, 0x00, 0x0e, 0x00, 0x37, 0x5c, 0x49, 0x00, 0x0f, 0x5c, 0x49,
		0x01, 0x02, 0x03, 0x04, 0, 0, 0, 0,
	};

	KUNIT_EXPECT_EQ(test, vhca_packet_icrc(bytes, sizeof(bytes)), 0xf3d7b511u);
}

static void numbers(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vhca_psn_diff(0, 0xffffff), 1);
	KUNIT_EXPECT_EQ(test, vhca_psn_diff(0xffffff, 0), -1);
	KUNIT_EXPECT_EQ(test, vhca_psn_diff(0x800000, 0), -0x800000);
	KUNIT_EXPECT_EQ(test, vhca_psn_diff(0x1000005, 0x5), 0);
	KUNIT_EXPECT_EQ(test, vhca_psn_near(0x1000000, 0xffffff), 0xffffffu);
	KUNIT_EXPECT_EQ(test, vhca_psn_near(0xffffff, 0), 0x1000000u);
	KUNIT_EXPECT_EQ(test, vhca_psn_near(0xffffffff, 3), 3u);
}

static void sequence(struct kunit *test)
{
	u32 next = 0xfffffffe;

	KUNIT_EXPECT_EQ(test, vhca_wire_gap(&next, 0xfffffffe), 0u);
	/* Two are missing; then one of them comes, late, and what was to come next. */
	KUNIT_EXPECT_EQ(test, vhca_wire_gap(&next, 1), 2u);
	KUNIT_EXPECT_EQ(test, vhca_wire_gap(&next, 0xffffffff), 0u);
	KUNIT_EXPECT_EQ(test, vhca_wire_gap(&next, 2), 0u);
	KUNIT_EXPECT_EQ(test, next, 3u);
}

static void credits(struct kunit *test)
{
	struct vhca_header header = {};
	struct vhca_credits c;

	vhca_credits_reset(&c);
	KUNIT_EXPECT_FALSE(test, vhca_credits_allow(&c, 0, 1));
	/* Around the end of the numbers. */
	c.sent[0] = 0xfffffff0;
	header.credit[0].limit = cpu_to_be32(8);
	header.credit[0].sent = cpu_to_be32(5);
	vhca_credits_take(&c, &header);
	KUNIT_EXPECT_TRUE(test, vhca_credits_allow(&c, 0, 24));
	KUNIT_EXPECT_FALSE(test, vhca_credits_allow(&c, 0, 25));
	/* A limit in the past is no room at all, not a lot of it. */
	c.sent[0] = 9;
	KUNIT_EXPECT_FALSE(test, vhca_credits_allow(&c, 0, 1));
	vhca_credits_tell(&c, &header);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(header.credit[0].limit), 5 + VHCA_WINDOW);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(header.credit[0].sent), 9u);
	KUNIT_EXPECT_FALSE(test, vhca_credits_news(&c));
	header.credit[0].sent = cpu_to_be32(5 + VHCA_WINDOW / 4);
	vhca_credits_take(&c, &header);
	KUNIT_EXPECT_TRUE(test, vhca_credits_news(&c));
	KUNIT_EXPECT_EQ(test, vhca_blocks(64), 1u);
	KUNIT_EXPECT_EQ(test, vhca_blocks(65), 2u);
}

static void count_turns(struct vhca_arbiter *a, u32 ready, unsigned int n, unsigned int *turns)
{
	u32 bytes[VHCA_DATA_VLS];
	unsigned int i;

	memset(turns, 0, VHCA_DATA_VLS * sizeof(*turns));
	for (i = 0; i < VHCA_DATA_VLS; i++)
		bytes[i] = 64;
	for (i = 0; i < n; i++)
		turns[vhca_arbiter_pick(a, ready, bytes)]++;
}

static void weights(struct kunit *test)
{
	unsigned int turns[VHCA_DATA_VLS];
	struct vhca_arbiter a;

	vhca_arbiter_init(&a);
	memset(a.table, 0, sizeof(a.table));
	a.table[VHCA_ARB_LOW][0] = (struct ib_vl_weight_elem){ 0, 30 };
	a.table[VHCA_ARB_LOW][1] = (struct ib_vl_weight_elem){ 1, 10 };
	count_turns(&a, BIT(0) | BIT(1), 400, turns);
	KUNIT_EXPECT_EQ(test, turns[0], 300u);
	KUNIT_EXPECT_EQ(test, turns[1], 100u);
	/* Who is in no table sends only when no other can. */
	count_turns(&a, BIT(0) | BIT(2), 100, turns);
	KUNIT_EXPECT_EQ(test, turns[0], 100u);
	count_turns(&a, BIT(2), 10, turns);
	KUNIT_EXPECT_EQ(test, turns[2], 10u);
}

static void limits(struct kunit *test)
{
	unsigned int turns[VHCA_DATA_VLS];
	struct vhca_arbiter a;

	vhca_arbiter_init(&a);
	memset(a.table, 0, sizeof(a.table));
	a.table[VHCA_ARB_LOW][0] = (struct ib_vl_weight_elem){ 0, 1 };
	a.table[VHCA_ARB_HIGH][0] = (struct ib_vl_weight_elem){ 1, 1 };
	a.limit = 255;
	count_turns(&a, BIT(0) | BIT(1), 100, turns);
	KUNIT_EXPECT_EQ(test, turns[1], 100u);
	/* 4096 bytes are 64 packets of 64, then the low one has a turn. */
	a.limit = 1;
	a.high_left = 0;
	count_turns(&a, BIT(0) | BIT(1), 650, turns);
	KUNIT_EXPECT_EQ(test, turns[0], 10u);
	a.limit = 0;
	a.high_left = 0;
	count_turns(&a, BIT(0) | BIT(1), 100, turns);
	KUNIT_EXPECT_EQ(test, turns[0], 50u);
}

/* Any table that an SM may write gives every VL a turn, and never one that is not ready. */
static void any_table(struct kunit *test)
{
	u32 bytes[VHCA_DATA_VLS], seed = 1, round, i;
	struct vhca_arbiter a;

	for (i = 0; i < VHCA_DATA_VLS; i++)
		bytes[i] = 4096;
	for (round = 0; round < 1000; round++) {
		vhca_arbiter_init(&a);
		for (i = 0; i < sizeof(a.table); i++) {
			seed = seed * 1664525 + 1013904223;
			((u8 *)a.table)[i] = seed >> 24;
		}
		a.limit = seed >> 16;
		for (i = 0; i < 50; i++) {
			u32 ready = (seed >> (i % 16) & 0x7fff) | 1;

			KUNIT_ASSERT_TRUE(test, BIT(vhca_arbiter_pick(&a, ready, bytes)) & ready);
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(round_trip),
	KUNIT_CASE(damage),
	KUNIT_CASE(short_packets),
	KUNIT_CASE(known_icrc),
	KUNIT_CASE(numbers),
	KUNIT_CASE(sequence),
	KUNIT_CASE(credits),
	KUNIT_CASE(weights),
	KUNIT_CASE(limits),
	KUNIT_CASE(any_table),
	{}
};

static struct kunit_suite suite = { .name = "vhca", .test_cases = cases };
kunit_test_suite(suite);

MODULE_LICENSE("GPL");
