// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The PMA, asked MAD by MAD: widths, what a Set clears, one port and all of them, ticks of PortXmitWait. */
#include <stdbool.h>
#include <string.h>

#include "console.h"
#include "made.h"

#define US 1000000ull
#define ALL 255

enum { CLASS_PORT_INFO = 0x01, PORT_COUNTERS = 0x12, PORT_COUNTERS_EXT = 0x1d };

static struct net net;
static struct fabric f;
static uint8_t mad[256];
static uint8_t *const data = mad + 64;

static void up(void)
{
	made_up(&f, &net, "mesh:2", 8);
}

static void down(void)
{
	made_down(&f, &net);
}

static uint32_t at(const char *id, unsigned int num)
{
	return fabric_port(&f, net_find(&net, id), num);
}

static unsigned int ask(const char *id, unsigned int method, unsigned int attr, unsigned int port, uint32_t select)
{
	uint32_t node = net_find(&net, id);

	memset(mad, 0, sizeof(mad));
	mad[0] = 1;
	mad[1] = CLASS_PERF;
	mad[2] = 1;
	mad[3] = method;
	put_be16(mad + 16, attr);
	data[1] = port;
	put_be16(data + 2, select);
	data[18] = select >> 16;	/* CounterSelect2 */
	return pma_process(&f, f.nodes[node].first + (f.nodes[node].type != NET_SWITCH), mad);
}

/* Where in PortCounters they are (16.1.3.5); of 4 bits: the upper or the lower half of the byte. */
static const struct {
	const char *name;
	unsigned int byte, bits, select;
	bool upper;
} fields[] = {
	{ "SymbolErrorCounter", 4, 16, 0, 0 }, { "LinkErrorRecoveryCounter", 6, 8, 1, 0 },
	{ "LinkDownedCounter", 7, 8, 2, 0 }, { "PortRcvErrors", 8, 16, 3, 0 },
	{ "PortRcvRemotePhysicalErrors", 10, 16, 4, 0 }, { "PortRcvSwitchRelayErrors", 12, 16, 5, 0 },
	{ "PortXmitDiscards", 14, 16, 6, 0 }, { "PortXmitConstraintErrors", 16, 8, 7, 0 },
	{ "PortRcvConstraintErrors", 17, 8, 8, 0 }, { "LocalLinkIntegrityErrors", 19, 4, 9, 1 },
	{ "ExcessiveBufferOverrunErrors", 19, 4, 10, 0 }, { "VL15Dropped", 22, 16, 11, 0 },
	{ "PortXmitData", 24, 32, 12, 0 }, { "PortRcvData", 28, 32, 13, 0 },
	{ "PortXmitPkts", 32, 32, 14, 0 }, { "PortRcvPkts", 36, 32, 15, 0 },
	{ "PortXmitWait", 40, 32, 16, 0 },
};

#define NFIELDS (sizeof(fields) / sizeof(*fields))

static uint64_t shown(unsigned int i)
{
	const uint8_t *p = data + fields[i].byte;

	switch (fields[i].bits) {
	case 4:
		return fields[i].upper ? *p >> 4 : *p & 15;
	case 8:
		return *p;
	case 16:
		return be16_at(p);
	default:
		return be32_at(p);
	}
}

static void fill(const char *id, unsigned int num, uint64_t value)
{
	for (unsigned int i = 0; i < NFIELDS; i++)
		CHECK_EQ(pma_set(&f, at(id, num), fields[i].name, value), 0);
	CHECK_EQ(pma_set(&f, at(id, num), "Nonsense", 1), -1);
}

/* Each is where the standard says, stays at its highest value, and is cleared by its own bit alone. */
static void test_select(void)
{
	up();
	for (unsigned int i = 0; i < NFIELDS; i++)
		CHECK_EQ(pma_set(&f, at("S1", 2), fields[i].name, i % 14 + 1), 0);
	CHECK_EQ(ask("S1", SMP_GET, PORT_COUNTERS, 2, 0), 0);
	for (unsigned int i = 0; i < NFIELDS; i++)
		CHECK_EQ(shown(i), i % 14 + 1);
	fill("S1", 2, 1ull << 34);
	CHECK_EQ(ask("S1", SMP_GET, PORT_COUNTERS, 2, 0), 0);
	for (unsigned int i = 0; i < NFIELDS; i++)
		CHECK_EQ(shown(i), (1ull << fields[i].bits) - 1);
	for (unsigned int i = 0; i < NFIELDS; i++) {
		fill("S1", 2, 7);
		CHECK_EQ(ask("S1", SMP_SET, PORT_COUNTERS, 2, 1u << fields[i].select), 0);
		for (unsigned int n = 0; n < NFIELDS; n++)
			CHECK_EQ(shown(n), n == i ? 0 : 7);
		CHECK_EQ(ask("S1", SMP_GET, PORT_COUNTERS, 2, 0x1ffff), 0);
		for (unsigned int n = 0; n < NFIELDS; n++)
			CHECK_EQ(shown(n), n == i ? 0 : 7);
	}
	/* Another port's are its own. */
	CHECK_EQ(ask("S1", SMP_GET, PORT_COUNTERS, 1, 0), 0);
	CHECK_EQ(shown(0), 0);
	down();
}

static void test_extended(void)
{
	struct counters *c;

	up();
	c = &f.ports[at("H1", 1)].counters;
	for (unsigned int i = 0; i < 8; i++) {
		static const uint64_t wanted[8] = { 0x100000005ull, 10, 20, 21, 14, 16, 6, 5 };

		c->xmit_bytes = 4 * wanted[0];
		c->rcv_bytes = 4 * wanted[1];
		c->xmit_pkts = wanted[2];
		c->rcv_pkts = wanted[3];
		c->xmit_other = c->multi_xmit = wanted[6];
		c->rcv_other = c->multi_rcv = wanted[7];
		CHECK_EQ(ask("H1", SMP_GET, PORT_COUNTERS_EXT, 1, 0xff), 0);
		for (unsigned int n = 0; n < 8; n++)
			CHECK_EQ(be64_at(data + 8 + 8 * n), wanted[n]);
		CHECK_EQ(ask("H1", SMP_SET, PORT_COUNTERS_EXT, 1, 1u << i), 0);
		for (unsigned int n = 0; n < 8; n++)
			CHECK_EQ(be64_at(data + 8 + 8 * n), n == i ? 0 : wanted[n]);
	}
	down();
}

/* PortSelect 255, which ClassPortInfo says there is: the sum, and a Set of all; of both attributes. */
static void test_all_ports(void)
{
	static const unsigned int attrs[2] = { PORT_COUNTERS, PORT_COUNTERS_EXT };
	unsigned int pkts[2] = { 35, 31 };	/* the last byte of PortXmitPkts */

	up();
	CHECK_EQ(ask("S1", SMP_GET, CLASS_PORT_INFO, 0, 0), 0);
	CHECK_EQ(be16_at(data + 2), 0x1300);
	CHECK_EQ(ask("S1", SMP_SET, CLASS_PORT_INFO, 0, 0), MAD_BAD_METHOD);
	for (unsigned int a = 0; a < 2; a++) {
		for (unsigned int p = 1; p <= 3; p++) {
			f.ports[at("S1", p)].counters.xmit_pkts = p;
			f.ports[at("S1", p)].counters.rcv_bytes = 40 * p;
		}
		f.ports[at("H1", 1)].counters.xmit_pkts = 9;
		CHECK_EQ(ask("S1", SMP_GET, attrs[a], 2, 0), 0);
		CHECK_EQ(data[pkts[a]], 2);
		CHECK_EQ(ask("S1", SMP_GET, attrs[a], ALL, 0), 0);
		CHECK_EQ(data[1], ALL);
		CHECK_EQ(data[pkts[a]], 6);
		CHECK_EQ(data[a ? 23 : 31], 60);
		CHECK_EQ(ask("H1", SMP_GET, attrs[a], ALL, 0), 0);
		CHECK_EQ(data[pkts[a]], 9);
		CHECK_EQ(ask("S1", SMP_SET, attrs[a], ALL, a ? 1 << 2 : 1 << 14), 0);
		CHECK_EQ(data[pkts[a]], 0);
		CHECK_EQ(data[a ? 23 : 31], 60);
		for (unsigned int p = 1; p <= 3; p++)
			CHECK_EQ(f.ports[at("S1", p)].counters.xmit_pkts, 0);
		CHECK_EQ(f.ports[at("H1", 1)].counters.xmit_pkts, 9);
		/* Those that are not there have none. */
		CHECK_EQ(ask("S1", SMP_GET, attrs[a], 99, 0), MAD_BAD_VALUE);
		CHECK_EQ(ask("S1", SMP_SET, attrs[a], 254, 0xffff), MAD_BAD_VALUE);
		CHECK_EQ(ask("H1", SMP_GET, attrs[a], 0, 0), MAD_BAD_VALUE);
		CHECK_EQ(ask("H1", SMP_GET, attrs[a], 2, 0), MAD_BAD_VALUE);
	}
	CHECK_EQ(ask("S1", SMP_GET, 0x16, 1, 0), MAD_BAD_ATTR);
	CHECK_EQ(ask("S1", 0x05, PORT_COUNTERS, 1, 0), MAD_BAD_METHOD);
	down();
}

static uint64_t waited(unsigned int num)
{
	CHECK_EQ(ask("S1", SMP_GET, PORT_COUNTERS, num, 0), 0);
	return be32_at(data + 40);
}

/* A port that has something to send and no credits waits: a tick is the time of 4 bytes on its link. */
static void test_wait(void)
{
	struct flow_spec s = { .gbps = 8 };
	uint64_t tick, ticks;
	uint32_t out;

	up();
	out = at("S1", 2);
	s.from = at("H1", 1);
	s.to = at("H2", 1);
	tick = 4ull * f.ports[out].fs_per_byte / 1000;
	CHECK_EQ(tick, 1000);		/* ps, of 32 Gbit/s */
	fabric_run(&f, 50 * US);
	CHECK_EQ(waited(2), 0);
	f.lanes[out * f.config.vls].credits = 0;
	CHECK(traffic_add(&f, &s) != NONE);
	fabric_run(&f, 60 * US);
	CHECK(f.ports[out].blocked);
	ticks = waited(2);
	CHECK(ticks > 0 && ticks <= 10 * US / tick);
	/* It waits still, and that counts at once; for nobody else. */
	fabric_run(&f, 90 * US);
	CHECK_EQ(waited(2), ticks + 30 * US / tick);
	CHECK_EQ(waited(1), 0);
	CHECK_EQ(waited(ALL), ticks + 30 * US / tick + waited(3));
	/* Cleared while it waits: from then on. */
	CHECK_EQ(ask("S1", SMP_SET, PORT_COUNTERS, 2, 1u << 16), 0);
	CHECK_EQ(be32_at(data + 40), 0);
	fabric_run(&f, 100 * US);
	CHECK_EQ(waited(2), 10 * US / tick);
	/* It goes on: no more. */
	f.lanes[out * f.config.vls].credits = f.capacity;
	relay_send(&f, out);
	fabric_run(&f, 101 * US);
	CHECK(!f.ports[out].blocked);
	ticks = waited(2);
	CHECK(ticks >= 10 * US / tick);
	traffic_stop(&f);
	fabric_run(&f, 200 * US);
	CHECK_EQ(waited(2), ticks);
	down();
}

/* Console: all of the port's counters, and what was to go wrong there. */
static void test_clear(void)
{
	FILE *out = fopen("/dev/null", "w");
	struct flow_spec s = { 0 };

	up();
	s.from = at("H1", 1);
	s.to = at("H2", 1);
	CHECK(traffic_add(&f, &s) != NONE);
	CHECK_EQ(console_line(&f, "Fault \"S1\"[2] loss=0.1 slow=200 delay=5", out), 0);
	f.lanes[at("S1", 2) * f.config.vls].credits = 0;
	fabric_run(&f, 100 * US);
	CHECK(waited(2) > 0);
	fill("S1", 2, 7);
	fill("S1", 1, 7);
	CHECK_EQ(console_line(&f, "Clear \"S1\"[2]", out), 0);
	CHECK_EQ(ask("S1", SMP_GET, PORT_COUNTERS, 2, 0), 0);
	for (unsigned int i = 0; i < NFIELDS; i++)
		CHECK_EQ(shown(i), 0);
	CHECK_EQ(ask("S1", SMP_GET, PORT_COUNTERS_EXT, 2, 0), 0);
	for (unsigned int i = 8; i < 72; i++)
		CHECK_EQ(data[i], 0);
	CHECK(!f.ports[at("S1", 2)].fault);
	CHECK_EQ(f.ports[at("S1", 2)].slow, 0);
	CHECK(!f.ports[at("S1", 2)].disturbed);
	CHECK_EQ(f.ports[at("S1", 2)].peer, NONE);
	CHECK_EQ(ask("S1", SMP_GET, PORT_COUNTERS, 1, 0), 0);
	CHECK_EQ(shown(0), 7);
	/* Nothing of the time before comes back with the cable. */
	CHECK_EQ(console_line(&f, "ReLink \"S1\"[2]", out), 0);
	CHECK_EQ(waited(2), 0);
	fclose(out);
	down();
}

int main(void)
{
	test_select();
	test_extended();
	test_all_ports();
	test_wait();
	test_clear();
	return 0;
}
