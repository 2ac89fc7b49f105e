// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 10 */
/* kunit-objs: ../peer_wire.o */
/* Messages as one module writes and the other reads them; and as nobody has written them. */
#include <kunit/test.h>
#include <linux/slab.h>
#include <repath_peer.h>
#include <uapi/ib_repath.h>

#include "../conn.h"
#include "../device.h"
#include "../local.h"
#include "../peer_wire.h"
#include "../proc.h"
#include "fuzz.h"

#define CONNS	64
#define BLOB	40
#define HEADER	sizeof(struct repath_wire_msg)

DEFINE_MUTEX(repath_conn_mutex);

/* The two modules: connection 1 of the one is connected to connection 1 of the other, and so on. */
static struct side {
	struct repath_proc proc;
	struct repath_remote remote;
	struct repath_conn conns[CONNS];
} sides[2];
static struct side *here;	/* whose module is asked */

struct repath_conn *repath_conn_by_id(u32 id)
{
	return id && id <= CONNS ? here->conns + id - 1 : NULL;
}

struct repath_conn *repath_conn_by_token(u64 token)
{
	int i;

	for (i = 0; i < CONNS; i++)
		if (here->conns[i].token == token)
			return here->conns + i;
	return NULL;
}

struct repath_conn *repath_conn_by_name(const struct repath_proc *proc, u64 cookie, u16 name)
{
	int i;

	for (i = 0; i < CONNS; i++)
		if (here->conns[i].proc == proc && (u16)here->conns[i].token == name)
			return here->conns + i;
	return NULL;
}

int repath_local_gid(struct repath_device *dev, const struct repath_addr *addr, u8 gid[16])
{
	gid[15] = 77;
	return 0;
}

struct ctx {
	struct repath_device dev;
	struct repath_conn_rec recs[CONNS], read[CONNS];
	u8 blob[BLOB];
	struct repath_wire_msg *wire;
	u32 len;
};

static struct ctx *of(struct kunit *test)
{
	return test->priv;
}

static int wire_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	int s, i;

	if (!c)
		return -ENOMEM;
	test->priv = c;
	fuzz_begin();
	memset(sides, 0, sizeof(sides));
	xa_init(&c->dev.lids);
	for (s = 0; s < 2; s++) {
		sides[s].proc.cookie = 0xc0 + s;
		sides[s].remote.cookie = 0xc0 + !s;
		for (i = 0; i < CONNS; i++) {
			struct repath_conn *conn = sides[s].conns + i;

			conn->id = i + 1;
			conn->dev = &c->dev;
			conn->proc = &sides[s].proc;
			conn->remote = &sides[s].remote;
			conn->token = (u64)(s + 1) << 60 | (u64)i << 32 | (0x1234 + 257 * i);
			conn->peer_token = (u64)(!s + 1) << 60 | (u64)i << 32 | (0x1234 + 257 * i);
		}
	}
	for (i = 0; i < CONNS; i++)
		c->recs[i] = (struct repath_conn_rec){
			.conn_id = 1 + (i * 7) % CONNS,		/* in another order */
			.qpn = 0x4711 + fuzz_below(CONNS),
			.psn = fuzz_below(1 << 24),
			.flags = 5 << REPATH_REC_ROUND_SHIFT,
			.count = 1ULL << 40 | fuzz_below(1000),
		};
	memset(c->blob, 0xb1, sizeof(c->blob));
	here = &sides[0];
	return 0;
}

static void wire_exit(struct kunit *test)
{
	struct ctx *c = of(test);

	if (c)
		kvfree(c->wire);
}

/* The one side's module writes of the first @nconns records. */
static void write(struct kunit *test, u32 nconns, u32 blob_len)
{
	struct ctx *c = of(test);

	kvfree(c->wire);
	here = &sides[0];
	mutex_lock(&repath_conn_mutex);
	c->wire = repath_wire_write(here->conns, c->recs, nconns, c->blob, blob_len, &c->len);
	mutex_unlock(&repath_conn_mutex);
	KUNIT_ASSERT_NOT_NULL(test, c->wire);
	KUNIT_ASSERT_TRUE(test, repath_wire_is_well_formed(c->wire, c->len));
	KUNIT_EXPECT_EQ(test, (int)c->wire->src_gid[15], 77);
}

/* @side's module reads it, for the process @proc. */
static u32 read_by(struct kunit *test, struct side *side, const struct repath_proc *proc,
		   const struct repath_wire_msg *wire, u32 len)
{
	struct ctx *c = of(test);
	u32 n;

	here = side;
	memset(c->read, 0, sizeof(c->read));
	mutex_lock(&repath_conn_mutex);
	n = repath_wire_read(wire, len, proc, c->read);
	mutex_unlock(&repath_conn_mutex);
	return n;
}

static u32 read(struct kunit *test)
{
	return read_by(test, &sides[1], &sides[1].proc, of(test)->wire, of(test)->len);
}

static bool is_packed(struct kunit *test)
{
	return of(test)->wire->form == cpu_to_be32(REPATH_WIRE_PACKED);
}

static void expect_all(struct kunit *test, u32 nconns, u32 blob_len)
{
	struct ctx *c = of(test);

	KUNIT_EXPECT_EQ(test, read(test), nconns);
	KUNIT_EXPECT_EQ(test, memcmp(c->read, c->recs, nconns * sizeof(c->read[0])), 0);
	KUNIT_EXPECT_EQ(test, memcmp(repath_wire_blob(c->wire, c->len), c->blob, blob_len), 0);
}

static void t_few_are_said_at_length(struct kunit *test)
{
	write(test, 3, 0);
	KUNIT_EXPECT_FALSE(test, is_packed(test));
	KUNIT_EXPECT_EQ(test, of(test)->len, (u32)(HEADER + 3 * sizeof(struct repath_wire_rec)));
	expect_all(test, 3, 0);
}

static void t_many_are_packed(struct kunit *test)
{
	struct ctx *c = of(test);

	write(test, CONNS, BLOB);
	KUNIT_EXPECT_TRUE(test, is_packed(test));
	/* Names and PSNs; QPNs, counts that are within 64 and 1000 of each other. */
	KUNIT_EXPECT_EQ(test, c->len, (u32)(HEADER + sizeof(struct repath_wire_packed) +
					    CONNS * (2 + 1 + 3 + 0 + 2) + BLOB));
	expect_all(test, CONNS, BLOB);
}

static void t_what_is_alike_takes_no_room(struct kunit *test)
{
	struct ctx *c = of(test);
	int i;

	for (i = 0; i < CONNS; i++)
		c->recs[i] = (struct repath_conn_rec){ c->recs[i].conn_id, 17, 18, U32_MAX, U64_MAX };
	write(test, CONNS, 0);
	KUNIT_EXPECT_EQ(test, c->len,
			(u32)(HEADER + sizeof(struct repath_wire_packed) + CONNS * 2));
	expect_all(test, CONNS, 0);
}

static void t_the_widest(struct kunit *test)
{
	struct ctx *c = of(test);
	u32 nconns = 5;

	memset(&c->recs[0].qpn, 0, sizeof(c->recs[0]) - sizeof(c->recs[0].conn_id));
	memset(&c->recs[1].qpn, 0xff, sizeof(c->recs[1]) - sizeof(c->recs[1].conn_id));
	/* In so few records it saves nothing; with others it does. */
	write(test, nconns, 0);
	expect_all(test, nconns, 0);
	write(test, CONNS, BLOB);
	KUNIT_EXPECT_TRUE(test, is_packed(test));
	expect_all(test, CONNS, BLOB);
}

static void t_who_does_not_understand_is_told_at_length(struct kunit *test)
{
	sides[0].remote.at_length = true;
	write(test, CONNS, BLOB);
	KUNIT_EXPECT_FALSE(test, is_packed(test));
	expect_all(test, CONNS, BLOB);
}

/* At length each record is judged by itself, packed all or none. */
static void t_one_is_not_known(struct kunit *test)
{
	struct repath_conn *conn = &sides[1].conns[9];
	u64 *const secret[] = { &conn->token, &conn->peer_token };
	int i, bit;

	for (i = 0; i < 2; i++)
		for (bit = 0; bit < 64; bit += 9) {
			*secret[i] ^= 1ULL << bit;
			write(test, CONNS, BLOB);
			KUNIT_ASSERT_TRUE(test, is_packed(test));
			KUNIT_EXPECT_EQ(test, read(test), 0u);
			sides[0].remote.at_length = true;
			write(test, CONNS, BLOB);
			KUNIT_EXPECT_EQ(test, read(test), (u32)CONNS - 1);
			sides[0].remote.at_length = false;
			*secret[i] ^= 1ULL << bit;
		}
	conn->peer_token = 0;
	write(test, CONNS, BLOB);
	KUNIT_EXPECT_EQ(test, read(test), 0u);
}

static void t_to_somebody_else(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_proc other = { .cookie = sides[1].proc.cookie };
	struct side *own = &sides[0];

	write(test, CONNS, BLOB);
	KUNIT_EXPECT_EQ(test, read_by(test, &sides[1], &other, c->wire, c->len), 0u);
	/* Back to who has written it: it is not the other's word. */
	KUNIT_EXPECT_EQ(test, read_by(test, own, &own->proc, c->wire, c->len), 0u);
	swap(c->wire->src_cookie, c->wire->dst_cookie);
	KUNIT_EXPECT_EQ(test, read_by(test, own, &own->proc, c->wire, c->len), 0u);
}

/* No byte of a packed message can be another. */
static void t_altered(struct kunit *test)
{
	struct ctx *c = of(test);
	u32 i;

	write(test, CONNS, BLOB);
	for (i = 0; i < c->len; i++) {
		u8 *byte = (u8 *)c->wire + i;

		/* That of the form is the one that says where to look for a proof. */
		if (i >= offsetof(struct repath_wire_msg, form) &&
		    i < offsetofend(struct repath_wire_msg, form))
			continue;
		*byte ^= 1 << i % 8;
		if (repath_wire_is_well_formed(c->wire, c->len))
			KUNIT_EXPECT_EQ_MSG(test, read(test), 0u, "byte %u", i);
		*byte ^= 1 << i % 8;
	}
	expect_all(test, CONNS, BLOB);
}

static void t_malformed(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_wire_packed *packed;

	write(test, CONNS, BLOB);
	packed = (struct repath_wire_packed *)(c->wire + 1);
	KUNIT_EXPECT_FALSE(test, repath_wire_is_well_formed(c->wire, c->len - 1));
	KUNIT_EXPECT_FALSE(test, repath_wire_is_well_formed(c->wire, c->len + 1));
	KUNIT_EXPECT_FALSE(test, repath_wire_is_well_formed(c->wire, HEADER));
	KUNIT_EXPECT_FALSE(test, repath_wire_is_well_formed(c->wire, 0));
	c->wire->form = cpu_to_be32(REPATH_WIRE_PACKED + 1);
	KUNIT_EXPECT_FALSE(test, repath_wire_is_well_formed(c->wire, c->len));
	c->wire->form = cpu_to_be32(REPATH_WIRE_AT_LENGTH);
	KUNIT_EXPECT_FALSE(test, repath_wire_is_well_formed(c->wire, c->len));
	c->wire->form = cpu_to_be32(REPATH_WIRE_PACKED);
	c->wire->nconns = 0;
	KUNIT_EXPECT_FALSE(test, repath_wire_is_well_formed(c->wire, c->len));
	c->wire->nconns = cpu_to_be32(REPATH_CONNS_MAX + 1);
	KUNIT_EXPECT_FALSE(test, repath_wire_is_well_formed(c->wire, c->len));
	c->wire->nconns = cpu_to_be32(CONNS);
	/* Widths that add up to the same. */
	packed->width[2] = 5;
	packed->width[1] = 0;
	packed->width[3] = 0;
	KUNIT_EXPECT_FALSE(test, repath_wire_is_well_formed(c->wire, c->len));
}

static void t_fuzz(struct kunit *test)
{
	u32 i, len, well = 0, taken = 0;
	struct ctx *c = of(test);
	void *copy;

	write(test, CONNS, BLOB);
	for (i = 0; i < rounds; i++) {
		len = c->len;
		copy = fuzz_copy(c->wire, &len);
		KUNIT_ASSERT_NOT_NULL(test, copy);
		if (repath_wire_is_well_formed(copy, len)) {
			well++;
			taken += !!read_by(test, &sides[1], &sides[1].proc, copy, len);
		}
		kfree(copy);
	}
	/* About a fifth of them is as it was written. */
	KUNIT_EXPECT_GT(test, well, rounds / 4);
	KUNIT_EXPECT_GT(test, taken, rounds / 20);
	KUNIT_EXPECT_LT(test, taken, rounds / 2);
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(t_few_are_said_at_length),
	KUNIT_CASE(t_many_are_packed),
	KUNIT_CASE(t_what_is_alike_takes_no_room),
	KUNIT_CASE(t_the_widest),
	KUNIT_CASE(t_who_does_not_understand_is_told_at_length),
	KUNIT_CASE(t_one_is_not_known),
	KUNIT_CASE(t_to_somebody_else),
	KUNIT_CASE(t_altered),
	KUNIT_CASE(t_malformed),
	KUNIT_CASE(t_fuzz),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "repath_peer_wire",
	.init = wire_init,
	.exit = wire_exit,
	.test_cases = wire_cases,
};
kunit_test_suite(wire_suite);
MODULE_LICENSE("GPL");
