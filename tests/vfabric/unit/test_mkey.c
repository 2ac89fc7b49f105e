// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The M_Key: what it protects and for how long, and the trap that tells of who has another one. */
#include "smp.h"

#define KEY 0x77

static int protect(uint32_t port, unsigned int level, unsigned int lease)
{
	set_port_info(port, KEY);
	put_be64(data, KEY);
	data[34] = (data[34] & 0x3f) | level << 6;
	put_be16(data + 26, lease);
	return ask(port);
}

static int set_with(uint32_t port, uint64_t key)
{
	set_port_info(port, key);
	return ask(port);
}

static unsigned int violations(uint32_t port)
{
	return be16_at(f.port_sma[port].info + 44);
}

static unsigned int level_of(uint32_t port)
{
	return f.port_sma[port].info[34] >> 6;
}

static unsigned int traps_256(void)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < manager.ntraps; i++)
		n += be16_at(manager.traps[i].notice + 4) == 256;
	return n;
}

/* 14.2.4.1, table 115: who may read, who may read the key, who may write; of a host and of a switch. */
static void test_levels(void)
{
	static const struct {
		bool reads, learns;
	} wanted[] = { { true, true }, { true, false }, { false, false }, { false, false } };

	for (unsigned int i = 0; i < 8; i++) {
		unsigned int level = i / 2, bad = !wanted[level].reads;
		uint32_t port;

		up();
		port = i % 2 ? at("S1", 0) : at("H1", 1);
		CHECK_EQ(protect(port, level, 0), 0);
		/* Without the key */
		CHECK_EQ(get(port, PORT_INFO, 0, 0), bad ? NONE_CAME : 0);
		if (!bad)
			CHECK_EQ(be64_at(data), wanted[level].learns ? KEY : 0);
		CHECK_EQ(violations(port), bad);
		CHECK_EQ(set_with(port, 0), NONE_CAME);
		CHECK_EQ(violations(port), bad + 1);
		CHECK_EQ(traps_256(), bad + 1);
		/* With it */
		CHECK_EQ(get(port, PORT_INFO, 0, KEY), 0);
		CHECK_EQ(be64_at(data), KEY);
		CHECK_EQ(data[34] >> 6, level);
		CHECK_EQ(set_with(port, KEY), 0);
		CHECK_EQ(be64_at(data), KEY);
		CHECK_EQ(violations(port), bad + 1);
		/* Its answer to a trap needs none, and who is at the node itself does neither. */
		smp(SMP_REPRESS, 2, 0, 0);
		CHECK_EQ(ask(port), NONE_CAME);
		CHECK_EQ(sma_read(&f, port, PORT_INFO, f.ports[port].num, data), 0);
		CHECK_EQ(violations(port), bad + 1);
		down();
	}
}

/* The other port has a key of its own: who asks for that one by this one needs it, too. */
static void test_other_port(void)
{
	uint32_t one, two;

	up();
	one = at("H1", 1);
	two = at("H1", 2);
	CHECK_EQ(protect(two, 2, 0), 0);
	CHECK_EQ(get(one, PORT_INFO, 1, 0), 0);
	CHECK_EQ(get(one, PORT_INFO, 2, 0), NONE_CAME);
	CHECK_EQ(violations(two), 1);
	CHECK_EQ(violations(one), 0);
	CHECK_EQ(get(one, PORT_INFO, 2, KEY), 0);
	CHECK_EQ(be64_at(data), KEY);
	CHECK_EQ(get(one, PORT_INFO, 3, 0), MAD_BAD_VALUE);
	CHECK_EQ(protect(two, 1, 0), 0);
	CHECK_EQ(get(one, PORT_INFO, 2, 0), 0);
	CHECK_EQ(be64_at(data), 0);
	/* A switch has one, whichever port it is asked by and about. */
	CHECK_EQ(protect(at("S1", 0), 2, 0), 0);
	CHECK_EQ(get(at("S1", 3), PORT_INFO, 1, 0), NONE_CAME);
	CHECK_EQ(violations(at("S1", 0)), 1);
	CHECK_EQ(get(at("S1", 3), PORT_INFO, 1, KEY), 0);
	down();
}

/* 14.2.4.2: the lease runs from the first violation until the key is seen, then the protection ends. */
static void test_lease(void)
{
	uint32_t port;
	struct port_sma *ps;

	up();
	port = at("H1", 1);
	ps = &f.port_sma[port];
	CHECK_EQ(protect(port, 2, 15), 0);
	CHECK_EQ(ps->lease_ms, 0);
	CHECK_EQ(get(port, PORT_INFO, 0, 0), NONE_CAME);
	CHECK_EQ(ps->lease_ms, 20000);
	/* Another violation gives it no more time, and who reads at the node itself is not the manager. */
	manager.now_ms = 19999;
	CHECK_EQ(get(port, PORT_INFO, 0, 0), NONE_CAME);
	CHECK_EQ(sma_read(&f, port, PORT_INFO, 1, data), 0);
	CHECK_EQ(ps->lease_ms, 20000);
	/* The manager is still there. */
	CHECK_EQ(get(port, PORT_INFO, 0, KEY), 0);
	CHECK_EQ(ps->lease_ms, 0);
	manager.now_ms = 30000;
	CHECK_EQ(get(port, PORT_INFO, 0, 0), NONE_CAME);
	CHECK_EQ(ps->lease_ms, 45000);
	/* It is not any more: another one may read the key, but writes only with it. */
	manager.now_ms = 45000;
	CHECK_EQ(set_with(port, 0), NONE_CAME);
	CHECK_EQ(get(port, PORT_INFO, 0, 0), 0);
	CHECK_EQ(be64_at(data), KEY);
	CHECK_EQ(data[34] >> 6, 0);
	CHECK_EQ(be16_at(data + 26), 15);
	CHECK_EQ(set_with(port, KEY), 0);
	/* No lease is for ever. */
	CHECK_EQ(protect(port, 3, 0), 0);
	CHECK_EQ(get(port, PORT_INFO, 0, 0), NONE_CAME);
	CHECK_EQ(ps->lease_ms, 0);
	manager.now_ms += 100000000;
	CHECK_EQ(get(port, PORT_INFO, 0, 0), NONE_CAME);
	CHECK_EQ(level_of(port), 3);
	/* What is allowed begins none. */
	CHECK_EQ(protect(port, 1, 15), 0);
	CHECK_EQ(get(port, PORT_INFO, 0, 0), 0);
	CHECK_EQ(ps->lease_ms, 0);
	down();
}

/* Who sets another key had the old one: the answer says what is set now. */
static void test_new_key(void)
{
	uint32_t port;

	up();
	port = at("H1", 1);
	for (unsigned int i = 0; i < 2; i++) {
		set_port_info(port, i ? KEY : 0);
		put_be64(data, KEY + i);
		data[34] |= 2 << 6;
		CHECK_EQ(ask(port), 0);
		CHECK_EQ(be64_at(data), KEY + i);
	}
	CHECK_EQ(get(port, PORT_INFO, 0, KEY), NONE_CAME);
	CHECK_EQ(get(port, PORT_INFO, 0, KEY + 1), 0);
	down();
}

/* A counter of violations counts up to its highest value, and is set to 0 only. */
static void test_violations(void)
{
	uint32_t port;

	up();
	port = at("S1", 0);
	CHECK_EQ(protect(port, 2, 0), 0);
	put_be16(f.port_sma[port].info + 44, 0xfffe);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(get(port, PORT_INFO, 0, 0), NONE_CAME);
	CHECK_EQ(violations(port), 0xffff);
	set_port_info(port, KEY);
	put_be16(data + 44, 5);
	CHECK_EQ(ask(port), 0);
	CHECK_EQ(be16_at(data + 44), 0xffff);
	set_port_info(port, KEY);
	put_be16(data + 44, 0);
	CHECK_EQ(ask(port), 0);
	CHECK_EQ(be16_at(data + 44), 0);
	CHECK_EQ(get(port, PORT_INFO, 0, 0), NONE_CAME);
	CHECK_EQ(violations(port), 1);
	down();
}

/* Trap 256 says who asked for what with which key, and by which way; a few wait, not all. */
static void test_trap(void)
{
	const uint8_t *notice;
	uint32_t port;
	int reply;

	up();
	port = at("H1", 1);
	CHECK_EQ(protect(port, 2, 0), 0);
	CHECK_EQ(get(port, PKEYS, 0x30000, 0x1234), NONE_CAME);
	CHECK_EQ(manager.ntraps, 1);
	notice = manager.traps[0].notice;
	CHECK_EQ(manager.traps[0].node, f.ports[port].node);
	CHECK_EQ(notice[0], 0x80 | 2);
	CHECK_EQ(notice[3], NET_HCA);
	CHECK_EQ(be16_at(notice + 4), 256);
	CHECK_EQ(be16_at(notice + 12), SM_LID);
	CHECK_EQ(be16_at(notice + 14), 0);
	CHECK_EQ(notice[16], SMP_GET);
	CHECK_EQ(be16_at(notice + 18), PKEYS);
	CHECK_EQ(be32_at(notice + 20), 0x30000);
	CHECK_EQ(be64_at(notice + 24), 0x1234);
	CHECK_EQ(notice[33], 0);
	/* By a directed route, and by one that is too long for the notice. */
	for (unsigned int hops = 2; hops <= 40; hops += 38) {
		smp(SMP_SET, PORT_INFO, 1, 0);
		mad[1] = CLASS_SM_DR;
		mad[7] = hops;
		put_be16(mad + 32, 0xffff);
		for (unsigned int i = 1; i <= hops; i++)
			mad[192 + i] = i;
		sma_process(&f, port, 0xffff, mad, &reply);
		CHECK_EQ(reply, 0);
		notice = manager.traps[manager.ntraps - 1].notice;
		CHECK_EQ(be16_at(notice + 12), 0xffff);
		CHECK_EQ(be16_at(notice + 14), 0xffff);
		CHECK_EQ(notice[33], hops == 2 ? 0x80 | 2 : 0xc0 | 30);
		CHECK(!memcmp(notice + 34, mad + 192, hops == 2 ? 2 : 30));
		CHECK_EQ(notice[hops == 2 ? 36 : 63], hops == 2 ? 0 : 29);
	}
	CHECK_EQ(manager.ntraps, 3);
	/* The same once more is the same trap; a thousand others are not a thousand. */
	CHECK_EQ(get(port, PKEYS, 0x30000, 0x1234), NONE_CAME);
	CHECK_EQ(manager.ntraps, 3);
	for (unsigned int i = 0; i < 1000; i++)
		CHECK_EQ(get(port, PKEYS, 0, 0x2000 + i), NONE_CAME);
	CHECK_EQ(manager.ntraps, 16);
	CHECK_EQ(violations(port), 1004);
	/* Other nodes have room of their own. */
	CHECK_EQ(protect(at("S1", 0), 2, 0), 0);
	CHECK_EQ(get(at("S1", 0), PKEYS, 0, 0), NONE_CAME);
	CHECK_EQ(manager.ntraps, 17);
	CHECK_EQ(manager.traps[16].notice[3], NET_SWITCH);
	down();
}

int main(void)
{
	test_levels();
	test_other_port();
	test_lease();
	test_new_key();
	test_violations();
	test_trap();
	return 0;
}
