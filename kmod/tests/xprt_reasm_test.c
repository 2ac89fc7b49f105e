// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 16 */
/* kunit-objs: ../xprt_reasm.o */
/* Fragments: in any order, twice, cut short, too many, and from somebody who lies. */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../xprt_reasm.h"
#include "fuzz.h"

#define WIRE sizeof(struct repath_frag)

struct ctx {
	struct repath_reasm reasm;
	struct repath_frag frag;
	struct repath_inmsg *whole;
};

static struct ctx *of(struct kunit *test)
{
	return test->priv;
}

static u8 pattern(u32 i)
{
	return i * 31 + i / 253;
}

static u8 add_len(struct kunit *test, u64 id, u32 total, u32 offset, u32 len)
{
	struct ctx *c = of(test);
	u32 i;

	c->frag.version = REPATH_PEER_VERSION;
	c->frag.type = REPATH_MSG_INFO;
	c->frag.msg_id = cpu_to_be64(id);
	c->frag.total = cpu_to_be32(total);
	c->frag.offset = cpu_to_be32(offset);
	for (i = 0; i < REPATH_FRAG_DATA; i++)
		c->frag.data[i] = pattern(offset + i);
	return repath_reasm_add(&c->reasm, &c->frag, len, &c->whole);
}

static u8 add(struct kunit *test, u64 id, u32 total, u32 offset)
{
	return add_len(test, id, total, offset, WIRE);
}

static void expect_intact(struct kunit *test, u32 total)
{
	struct repath_inmsg *msg = of(test)->whole;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, msg);
	KUNIT_ASSERT_EQ(test, msg->total, total);
	for (i = 0; i < total; i++)
		if (msg->data[i] != pattern(i))
			break;
	KUNIT_EXPECT_EQ(test, i, total);
}

static int reasm_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	if (!c)
		return -ENOMEM;
	repath_reasm_init(&c->reasm);
	test->priv = c;
	return 0;
}

static void reasm_exit(struct kunit *test)
{
	struct ctx *c = of(test);

	if (!c)
		return;
	repath_reasm_destroy(&c->reasm);
	KUNIT_EXPECT_EQ(test, c->reasm.count, 0u);
	KUNIT_EXPECT_EQ(test, c->reasm.open, 0u);
	KUNIT_EXPECT_EQ(test, c->reasm.bytes, 0u);
}

static void t_one_fragment(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, 10, 0), (int)REPATH_PEER_OK);
	expect_intact(test, 10);
}

static void t_in_order(struct kunit *test)
{
	u32 offset, total = 5 * REPATH_FRAG_DATA + 1;

	for (offset = 0; offset < total; offset += REPATH_FRAG_DATA) {
		KUNIT_EXPECT_NULL(test, of(test)->whole);
		KUNIT_EXPECT_EQ(test, (int)add(test, 1, total, offset), (int)REPATH_PEER_OK);
	}
	expect_intact(test, total);
}

static void t_largest_reversed(struct kunit *test)
{
	u32 total = REPATH_WIRE_MAX, i, frags = DIV_ROUND_UP(total, REPATH_FRAG_DATA);

	for (i = frags; i--;) {
		KUNIT_EXPECT_NULL(test, of(test)->whole);
		add(test, 1, total, i * REPATH_FRAG_DATA);
	}
	expect_intact(test, total);
}

static void t_doubled_while_open(struct kunit *test)
{
	u32 total = 3 * REPATH_FRAG_DATA;

	add(test, 1, total, REPATH_FRAG_DATA);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, total, REPATH_FRAG_DATA), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_NULL(test, of(test)->whole);
	add(test, 1, total, 0);
	add(test, 1, total, 0);
	KUNIT_EXPECT_NULL(test, of(test)->whole);
	add(test, 1, total, 2 * REPATH_FRAG_DATA);
	expect_intact(test, total);
}

static void t_doubles_are_answered_alike(struct kunit *test)
{
	struct ctx *c = of(test);
	u32 total = 2 * REPATH_FRAG_DATA;

	add(test, 1, total, 0);
	add(test, 1, total, REPATH_FRAG_DATA);
	KUNIT_ASSERT_NOT_NULL(test, c->whole);
	repath_reasm_done(&c->reasm, c->whole, REPATH_PEER_BAD_TOKEN);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, total, 0), (int)REPATH_PEER_BAD_TOKEN);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, total, REPATH_FRAG_DATA),
			(int)REPATH_PEER_BAD_TOKEN);
	KUNIT_EXPECT_NULL(test, c->whole);
	KUNIT_EXPECT_EQ(test, c->reasm.bytes, 0u);
}

static void t_busy_is_taken_again(struct kunit *test)
{
	struct ctx *c = of(test);

	add(test, 1, 10, 0);
	KUNIT_ASSERT_NOT_NULL(test, c->whole);
	repath_reasm_done(&c->reasm, c->whole, REPATH_PEER_BUSY);
	KUNIT_EXPECT_EQ(test, c->reasm.count, 0u);
	add(test, 1, 10, 0);
	expect_intact(test, 10);
}

static void t_interleaved(struct kunit *test)
{
	u32 total = 4 * REPATH_FRAG_DATA, i;
	u64 id;

	for (i = 0; i < 4; i++)
		for (id = 1; id <= 8; id++) {
			add(test, id, total, i * REPATH_FRAG_DATA);
			if (i < 3) {
				KUNIT_EXPECT_NULL(test, of(test)->whole);
			} else {
				expect_intact(test, total);
				repath_reasm_done(&of(test)->reasm, of(test)->whole,
						  REPATH_PEER_OK);
			}
		}
	KUNIT_EXPECT_EQ(test, of(test)->reasm.open, 0u);
}

static void t_truncated(struct kunit *test)
{
	u32 header = offsetof(struct repath_frag, data);

	KUNIT_EXPECT_EQ(test, (int)add_len(test, 1, 500, 0, header - 1),
			(int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, (int)add_len(test, 1, 500, 0, WIRE - 1), (int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, (int)add_len(test, 2, 10, 0, header + 9),
			(int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, of(test)->reasm.count, 0u);
	KUNIT_EXPECT_EQ(test, (int)add_len(test, 2, 10, 0, header + 10), (int)REPATH_PEER_OK);
	expect_intact(test, 10);
}

static void t_nonsense(struct kunit *test)
{
	struct ctx *c = of(test);

	KUNIT_EXPECT_EQ(test, (int)add(test, 1, 0, 0), (int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, REPATH_WIRE_MAX + 1, 0),
			(int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, U32_MAX, 0), (int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, 500, 1), (int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, 2 * REPATH_FRAG_DATA, 2 * REPATH_FRAG_DATA),
			(int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, 500, 0xffffff40), (int)REPATH_PEER_MALFORMED);

	add(test, 1, 500, 0);
	c->frag.version = REPATH_PEER_VERSION + 1;
	KUNIT_EXPECT_EQ(test, (int)repath_reasm_add(&c->reasm, &c->frag, WIRE, &c->whole),
			(int)REPATH_PEER_VERSION_ERR);
	c->frag.version = REPATH_PEER_VERSION;
	c->frag.type = __REPATH_MSG_MAX;
	KUNIT_EXPECT_EQ(test, (int)repath_reasm_add(&c->reasm, &c->frag, WIRE, &c->whole),
			(int)REPATH_PEER_MALFORMED);
	/* One message does not change its type or size on the way. */
	c->frag.type = REPATH_MSG_KEYS;
	KUNIT_EXPECT_EQ(test, (int)repath_reasm_add(&c->reasm, &c->frag, WIRE, &c->whole),
			(int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, 501, REPATH_FRAG_DATA),
			(int)REPATH_PEER_MALFORMED);
	KUNIT_EXPECT_EQ(test, c->reasm.count, 1u);
}

static struct repath_inmsg *oldest(struct kunit *test)
{
	return list_first_entry(&of(test)->reasm.lru, struct repath_inmsg, lru);
}

/* A few fragments of a stranger, of messages that never become whole, keep out none that does. */
static void t_too_many_open(struct kunit *test)
{
	struct ctx *c = of(test);
	u64 id;

	for (id = 1; id <= REPATH_REASM_OPEN_MAX; id++)
		KUNIT_EXPECT_EQ(test, (int)add(test, id, 500, 0), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)add(test, id, 2 * REPATH_FRAG_DATA, 0), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, c->reasm.open, (u32)REPATH_REASM_OPEN_MAX);
	/* The one that has waited longest was given up, and its sender hears that. */
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, 500, REPATH_FRAG_DATA), (int)REPATH_PEER_BUSY);
	KUNIT_EXPECT_FALSE(test, repath_reasm_has(&c->reasm, &c->frag));
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, 500, 0), (int)REPATH_PEER_BUSY);
	add(test, 2, 500, REPATH_FRAG_DATA);
	add(test, 2, 500, 2 * REPATH_FRAG_DATA);
	expect_intact(test, 500);
	repath_reasm_done(&c->reasm, c->whole, REPATH_PEER_OK);
	add(test, id, 2 * REPATH_FRAG_DATA, REPATH_FRAG_DATA);
	expect_intact(test, 2 * REPATH_FRAG_DATA);
	repath_reasm_done(&c->reasm, c->whole, REPATH_PEER_OK);
}

/* Those that go on stay, until they do not. */
static void t_too_many_go_on(struct kunit *test)
{
	struct ctx *c = of(test);
	u64 id;

	for (id = 1; id <= REPATH_REASM_OPEN_MAX; id++) {
		add(test, id, 500, 0);
		KUNIT_EXPECT_EQ(test, (int)add(test, id, 500, 2 * REPATH_FRAG_DATA), (int)REPATH_PEER_OK);
	}
	KUNIT_EXPECT_EQ(test, (int)add(test, id, 500, 0), (int)REPATH_PEER_BUSY);
	add(test, 1, 500, REPATH_FRAG_DATA);
	expect_intact(test, 500);
	repath_reasm_done(&c->reasm, c->whole, REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)add(test, id, 500, 0), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)add(test, id, 500, REPATH_FRAG_DATA), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)add(test, ++id, 500, 0), (int)REPATH_PEER_BUSY);
	KUNIT_ASSERT_EQ(test, oldest(test)->id, 2ULL);
	oldest(test)->seen -= REPATH_REASM_STALL;
	KUNIT_EXPECT_EQ(test, (int)add(test, id, 500, 0), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)add(test, 2, 500, REPATH_FRAG_DATA), (int)REPATH_PEER_BUSY);
	add(test, 3, 500, REPATH_FRAG_DATA);
	expect_intact(test, 500);
}

/* Three times as many senders at once as there is room for, each of which begins anew when it is refused. */
static void t_too_many_senders(struct kunit *test)
{
	enum { SENDERS = 3 * REPATH_REASM_OPEN_MAX, FRAGS = 8 };
	u32 total = FRAGS * REPATH_FRAG_DATA, round, i, whole = 0;
	struct ctx *c = of(test);
	struct {
		u64 id;
		u32 next;
	} *senders = kunit_kcalloc(test, SENDERS, sizeof(*senders), GFP_KERNEL);
	u64 id = 0;

	KUNIT_ASSERT_NOT_NULL(test, senders);
	for (round = 0; round < 10 * FRAGS && whole < SENDERS; round++)
		for (i = 0; i < SENDERS; i++) {
			if (senders[i].next == total)
				continue;
			if (!senders[i].next)
				senders[i].id = ++id;
			if (add(test, senders[i].id, total, senders[i].next) == REPATH_PEER_BUSY) {
				senders[i].next = 0;
				continue;
			}
			senders[i].next += REPATH_FRAG_DATA;
			if (!c->whole)
				continue;
			repath_reasm_done(&c->reasm, c->whole, REPATH_PEER_OK);
			whole++;
		}
	KUNIT_EXPECT_EQ(test, whole, (u32)SENDERS);
}

/* Nor a HELLO, which takes no room. */
static void t_short_ones_are_not_kept_out(struct kunit *test)
{
	struct ctx *c = of(test);
	u64 id;

	for (id = 1; id <= REPATH_REASM_OPEN_MAX; id++)
		add(test, id, 2 * REPATH_FRAG_DATA, 0);
	for (; id <= REPATH_REASM_OPEN_MAX + REPATH_REASM_MAX; id++) {
		KUNIT_EXPECT_EQ(test, (int)add(test, id, REPATH_FRAG_DATA, 0), (int)REPATH_PEER_OK);
		expect_intact(test, REPATH_FRAG_DATA);
		repath_reasm_done(&c->reasm, c->whole, REPATH_PEER_OK);
	}
	KUNIT_EXPECT_EQ(test, c->reasm.open, (u32)REPATH_REASM_OPEN_MAX);
	KUNIT_EXPECT_EQ(test, c->reasm.count, (u32)REPATH_REASM_MAX);
	repath_reasm_destroy(&c->reasm);
	for (id = 1; id <= REPATH_REASM_BYTES / REPATH_WIRE_MAX; id++)
		add(test, id, REPATH_WIRE_MAX, 0);
	KUNIT_EXPECT_EQ(test, (int)add(test, id, 10, 0), (int)REPATH_PEER_OK);
	expect_intact(test, 10);
}

static void t_too_many_bytes(struct kunit *test)
{
	u64 id, fits = REPATH_REASM_BYTES / REPATH_WIRE_MAX;

	KUNIT_ASSERT_LT(test, fits, (u64)REPATH_REASM_OPEN_MAX);
	for (id = 1; id <= fits; id++)
		KUNIT_EXPECT_EQ(test, (int)add(test, id, REPATH_WIRE_MAX, 0),
				(int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, (int)add(test, id, REPATH_WIRE_MAX, 0), (int)REPATH_PEER_OK);
	KUNIT_EXPECT_EQ(test, of(test)->reasm.open, (u32)fits);
	KUNIT_EXPECT_EQ(test, of(test)->reasm.bytes, (u32)REPATH_REASM_BYTES);
	KUNIT_EXPECT_EQ(test, (int)add(test, 1, REPATH_WIRE_MAX, REPATH_FRAG_DATA), (int)REPATH_PEER_BUSY);
	/* Answers are kept for doubles, but only so many of them. */
	repath_reasm_destroy(&of(test)->reasm);
	for (id = 1; id <= REPATH_REASM_MAX + 100; id++) {
		add(test, id, 10, 0);
		KUNIT_ASSERT_NOT_NULL(test, of(test)->whole);
		repath_reasm_done(&of(test)->reasm, of(test)->whole, REPATH_PEER_OK);
	}
	KUNIT_EXPECT_EQ(test, of(test)->reasm.count, (u32)REPATH_REASM_MAX);
}

static void t_age(struct kunit *test)
{
	struct ctx *c = of(test);

	add(test, 1, 500, 0);
	repath_reasm_expire(&c->reasm, jiffies + REPATH_REASM_AGE - HZ);
	KUNIT_EXPECT_EQ(test, c->reasm.count, 1u);
	repath_reasm_expire(&c->reasm, jiffies + REPATH_REASM_AGE + 1);
	KUNIT_EXPECT_EQ(test, c->reasm.count, 0u);
	/* What was forgotten begins anew. */
	add(test, 1, 500, REPATH_FRAG_DATA);
	add(test, 1, 500, 2 * REPATH_FRAG_DATA);
	KUNIT_EXPECT_NULL(test, c->whole);
	add(test, 1, 500, 0);
	expect_intact(test, 500);
}

/* Of messages of a few numbers, each with its own length, fragments in any order and any state. */
static void t_fuzz(struct kunit *test)
{
	struct ctx *c = of(test);
	u32 i, j, len, total, whole = 0;
	struct repath_frag *frag;

	fuzz_begin();
	for (i = 0; i < rounds; i++) {
		u64 id = fuzz_below(100);

		total = 1 + id * id * 5;
		c->frag.version = REPATH_PEER_VERSION;
		c->frag.type = REPATH_MSG_INFO;
		c->frag.msg_id = cpu_to_be64(id);
		c->frag.total = cpu_to_be32(total);
		j = fuzz_below(DIV_ROUND_UP(total, REPATH_FRAG_DATA)) * REPATH_FRAG_DATA;
		c->frag.offset = cpu_to_be32(j);
		memset(c->frag.data, id, sizeof(c->frag.data));
		len = WIRE;
		frag = fuzz_copy(&c->frag, &len);
		KUNIT_ASSERT_NOT_NULL(test, frag);
		repath_reasm_add(&c->reasm, frag, len, &c->whole);
		kfree(frag);
		if (c->whole) {
			whole++;
			/* Every byte of it was written by somebody. */
			for (j = 0; j < c->whole->total; j++)
				len += c->whole->data[j];
			repath_reasm_done(&c->reasm, c->whole,
					  fuzz_below(4) ? REPATH_PEER_OK : REPATH_PEER_BUSY);
		}
		if (c->reasm.open > REPATH_REASM_OPEN_MAX || c->reasm.count > REPATH_REASM_MAX ||
		    c->reasm.bytes > REPATH_REASM_BYTES)
			break;
		if (!fuzz_below(2000))
			repath_reasm_expire(&c->reasm, jiffies + REPATH_REASM_AGE + 1);
	}
	KUNIT_EXPECT_EQ(test, i, rounds);
	KUNIT_EXPECT_GT(test, whole, rounds / 200);
	kunit_info(test, "%u fragments, %u messages, seed %u", i, whole, seed);
}

static struct kunit_case reasm_cases[] = {
	KUNIT_CASE(t_one_fragment),
	KUNIT_CASE(t_in_order),
	KUNIT_CASE(t_largest_reversed),
	KUNIT_CASE(t_doubled_while_open),
	KUNIT_CASE(t_doubles_are_answered_alike),
	KUNIT_CASE(t_busy_is_taken_again),
	KUNIT_CASE(t_interleaved),
	KUNIT_CASE(t_truncated),
	KUNIT_CASE(t_nonsense),
	KUNIT_CASE(t_too_many_open),
	KUNIT_CASE(t_too_many_go_on),
	KUNIT_CASE(t_too_many_senders),
	KUNIT_CASE(t_short_ones_are_not_kept_out),
	KUNIT_CASE(t_too_many_bytes),
	KUNIT_CASE(t_age),
	KUNIT_CASE(t_fuzz),
	{}
};

static struct kunit_suite reasm_suite = {
	.name = "repath_xprt_reasm",
	.init = reasm_init,
	.exit = reasm_exit,
	.test_cases = reasm_cases,
};
kunit_test_suite(reasm_suite);
MODULE_LICENSE("GPL");
