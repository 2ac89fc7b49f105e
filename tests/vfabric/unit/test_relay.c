// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The data path: timing, credits, drops and their counters, arbitration, lifetimes, faults. */
#include <string.h>

#include "fault.h"
#include "made.h"

#define US 1000000ull
#define SIZE 2078u

static struct net net;
static struct fabric f;

static void up(const char *spec, unsigned int vls)
{
	made_up(&f, &net, spec, vls);
}

static void down(void)
{
	made_down(&f, &net);
}

static uint32_t at(const char *id, unsigned int num)
{
	return fabric_port(&f, net_find(&net, id), num);
}

static void set_vl(uint32_t node, unsigned int in, unsigned int out, unsigned int sl, uint8_t vl)
{
	relay_set_vl(&f, &f.nodes[node], in, out, sl, vl);
}

static struct flow *flow(const char *a, const char *b, double gbps, unsigned int sl)
{
	struct flow_spec s = { .from = at(a, 1), .to = at(b, 1), .gbps = gbps, .sl = sl };
	uint32_t n = traffic_add(&f, &s);

	CHECK(n != NONE);
	return &f.traffic->flows[n];
}

static uint64_t dropped(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < NDROPS; i++)
		sum += f.drops[i];
	return sum;
}

/* Credits, packets and buffers add up when all is quiet. */
static void check_quiet(void)
{
	fabric_run(&f, f.clock.now + 1000000 * US);
	for (uint32_t q = 0; q < f.nports * f.config.vls; q++) {
		uint32_t port = q / f.config.vls;

		CHECK_EQ(queue_held(&f, q), 0);
		CHECK_EQ(f.queues[q].blocks, 0);
		if (f.ports[port].up)
			CHECK_EQ(f.lanes[q].credits, f.capacity);
	}
}

/* One packet alone: cables, two switches' delays, and its own length once (cut-through). */
static void test_timing(void)
{
	struct flow_spec s = { .size = SIZE, .stop = 1, .gbps = 0.01 };
	uint64_t expected;

	up("mesh:2", 8);
	s.from = at("H1", 1);
	s.to = at("H2", 1);
	CHECK(traffic_add(&f, &s) != NONE);
	fabric_run(&f, 100 * US);
	expected = 3 * f.config.cable_delay + 2 * f.config.switch_delay + SIZE * 250;
	CHECK_EQ(f.traffic->received, 1);
	CHECK(f.traffic->latency.max >= expected);
	CHECK(f.traffic->latency.max < expected + 3 * 512);
	CHECK_EQ(f.hops, 3);
	check_quiet();
	down();
}

/*
 * One packet from a link to another, each of its own rate and length: it arrives when the slower one has
 * brought its last byte, and its first byte has gone over both. The rates are those of the standard.
 */
static void test_rates(void)
{
	static const struct rate { const char *options; double gbps; } rates[] = {
		{ "w=1 s=1", 2 }, { "w=1 s=2", 4 }, { "w=1 s=4", 8 }, { "w=2 s=1", 8 }, { "w=2 s=4", 32 },
		{ "w=16 s=4", 16 }, { "w=4 s=4", 64 }, { "w=8 s=4", 96 }, { "w=2 e=1", 54.5454 },
		{ "w=2 e=2", 100 }, { "w=2 e=4", 200 }, { "w=8 e=4", 600 }, { "w=8 e=8", 1200 },
	};
	static const double metres[] = { 0.5, 2, 30, 10000 };
	const unsigned int n = sizeof(rates) / sizeof(*rates);

	for (unsigned int i = 0; i < n * n; i++) {
		const struct rate *a = &rates[i / n], *b = &rates[i % n];
		double la = metres[i % 4], lb = metres[(i / 3 + i / n) % 4];
		double ta = SIZE * 8000 / a->gbps, tb = SIZE * 8000 / b->gbps, expected;
		struct flow_spec s = { .size = SIZE, .stop = 1, .gbps = 0.01 };
		char text[400];
		FILE *file;

		snprintf(text, sizeof(text), "Switch 2 \"S1\"\n[1] \"H1\"[1] %s l=%g\n"
			 "[2] \"H2\"[1] %s l=%g\n\nHca 1 \"H1\"\n[1] \"S1\"[1] w=31 s=7 e=15\n\n"
			 "Hca 1 \"H2\"\n[1] \"S1\"[2] w=31 s=7 e=15\n", a->options, la, b->options, lb);
		net_init(&net);
		file = fmemopen(text, strlen(text), "r");
		CHECK_EQ(net_read_stream(&net, file, "rates"), 0);
		fclose(file);
		made_of(&f, &net, 1);
		s.from = at("H1", 1);
		s.to = at("H2", 1);
		CHECK(traffic_add(&f, &s) != NONE);
		fabric_run(&f, 1000 * US);
		/* What limits: all of the first link and then the cable, or the head and then all of the second. */
		expected = (la + lb) * 5000;
		expected += ta > tb + f.config.switch_delay ? ta : tb + f.config.switch_delay;
		CHECK_EQ(f.traffic->received, 1);
		CHECK(f.traffic->latency.max >= expected - 5);	/* of femtoseconds */
		CHECK(f.traffic->latency.max < expected + 3 * 512);
		down();
	}
}

static void test_full_rate(void)
{
	struct flow *a;

	up("mesh:2", 8);
	a = flow("H1", "H2", 0, 0);
	fabric_run(&f, 1000 * US);
	CHECK(a->bytes * 8000.0 / (1000 * US) > 31.5);	/* 32 Gbit/s less the ramp */
	CHECK_EQ(dropped(), 0);
	traffic_stop(&f);
	check_quiet();
	CHECK_EQ(a->sent, a->received);
	down();
}

/* Of a quarter of the link, at random times; what it has while its port is down is lost. */
static void test_poisson(void)
{
	struct flow_spec s = { .gbps = 8, .poisson = 1 };
	uint64_t sent;
	uint32_t n;

	up("mesh:2", 8);
	s.from = at("H1", 1);
	s.to = at("H2", 1);
	n = traffic_add(&f, &s);
	CHECK(n != NONE);
	fabric_run(&f, 20000 * US);
	sent = f.traffic->flows[n].sent;
	CHECK(sent > 9200 && sent < 10050);	/* 9625 */
	CHECK_EQ(dropped(), 0);
	port_set_state(&f, s.from, PORT_INIT);
	fabric_run(&f, 40000 * US);
	CHECK(dropped() > 9200 && dropped() < 10050);
	traffic_stop(&f);
	check_quiet();
	down();
}

/* A host whose bus is slower than its link: the switch before it waits, as at a hot spot. */
static void test_slow_host(void)
{
	uint32_t last;
	struct flow *a;

	up("mesh:2", 8);
	CHECK_EQ(fault_set(&f, at("H2", 1), "drain", 125), 0);
	CHECK_EQ(fault_set(&f, at("S1", 1), "drain", 125), -1);
	last = f.ports[at("H2", 1)].peer;
	a = flow("H1", "H2", 0, 0);
	fabric_run(&f, 1000 * US);
	CHECK(a->bytes * 8000.0 / (1000 * US) > 0.98 * 32 / 1.25);
	CHECK(a->bytes * 8000.0 / (1000 * US) < 1.01 * 32 / 1.25);
	CHECK(f.ports[last].counters.xmit_wait > 190 * US);	/* a fifth of the time */
	CHECK(f.ports[last].counters.xmit_wait < 210 * US);
	CHECK_EQ(dropped(), 0);
	traffic_stop(&f);
	check_quiet();
	fault_clear(&f, at("H2", 1));
	CHECK_EQ(f.ports[at("H2", 1)].drain, 0);
	down();
}

static void test_drops(void)
{
	uint32_t in, out;

	up("mesh:2", 8);
	in = at("S1", 3);
	out = at("S1", 2);
	flow("H1", "H2", 1, 3);
	node_lft_set(&f, net_find(&net, "S1"), f.ports[at("H2", 1)].lid, 255);
	fabric_run(&f, 100 * US);
	CHECK(f.drops[DROP_LFT] > 1);
	CHECK_EQ(f.ports[in].counters.rcv_relay_errors, f.drops[DROP_LFT]);
	node_lft_set(&f, net_find(&net, "S1"), f.ports[at("H2", 1)].lid, 3);
	fabric_run(&f, 200 * US);
	CHECK(f.drops[DROP_LOOP] > 1);
	CHECK_EQ(f.ports[in].counters.looping, f.drops[DROP_LOOP]);
	node_lft_set(&f, net_find(&net, "S1"), f.ports[at("H2", 1)].lid, 2);
	set_vl(net_find(&net, "S1"), 3, 2, 3, 15);
	fabric_run(&f, 300 * US);
	CHECK(f.drops[DROP_VL] > 1);
	CHECK_EQ(f.ports[in].counters.vl_mapping, f.drops[DROP_VL]);
	set_vl(net_find(&net, "S1"), 3, 2, 3, 1);
	f.ports[out].mtu = 1024;
	fabric_run(&f, 400 * US);
	CHECK(f.drops[DROP_MTU] > 1);
	CHECK_EQ(f.ports[out].counters.discard_mtu, f.drops[DROP_MTU]);
	f.ports[out].mtu = 2048;
	f.ports[out].enforce_out = 1;
	memset(f.port_sma[out].pkeys, 0, 64);
	fabric_run(&f, 500 * US);
	CHECK(f.drops[DROP_PKEY_OUT] > 1);
	CHECK_EQ(f.ports[out].counters.xmit_constraint, f.drops[DROP_PKEY_OUT]);
	f.ports[out].enforce_out = 0;
	f.ports[in].enforce_in = 1;
	memset(f.port_sma[in].pkeys, 0, 64);
	fabric_run(&f, 600 * US);
	CHECK(f.drops[DROP_PKEY_IN] > 1);
	CHECK_EQ(f.ports[in].counters.rcv_constraint, f.drops[DROP_PKEY_IN]);
	f.ports[in].enforce_in = 0;
	port_set_state(&f, out, PORT_INIT);
	fabric_run(&f, 700 * US);
	CHECK(f.drops[DROP_INACTIVE] > 1);
	CHECK_EQ(f.ports[out].counters.discard_inactive, f.drops[DROP_INACTIVE]);
	CHECK_EQ(f.ports[out].counters.xmit_discards,
		 f.drops[DROP_INACTIVE] + f.drops[DROP_MTU]);
	traffic_stop(&f);
	check_quiet();
	down();
}

/*
 * What comes to a port that is not active, at a switch or at a host, ends there. PortXmitDiscards is of what goes
 * out, and to come too early is none of the errors of PortRcvErrors (16.1.3.5).
 */
static void test_too_early(void)
{
	uint64_t before = 0;

	up("mesh:2", 8);
	flow("H1", "H2", 1, 0);
	for (int host = 0; host < 2; host++) {
		uint32_t in = host ? at("H2", 1) : f.ports[at("S1", 2)].peer;
		struct counters *c = &f.ports[in].counters;

		CHECK_EQ(f.ports[in].is_switch, !host);
		port_set_state(&f, in, PORT_INIT);
		fabric_run(&f, f.clock.now + 100 * US);
		CHECK(f.drops[DROP_NOT_READY] > before + 1);
		CHECK_EQ(dropped(), f.drops[DROP_NOT_READY]);
		CHECK(c->rcv_pkts >= f.drops[DROP_NOT_READY] - before);
		CHECK_EQ(c->xmit_discards + c->discard_inactive, 0);
		CHECK_EQ(c->rcv_errors + c->rcv_relay_errors, 0);
		CHECK_EQ(f.ports[f.ports[in].peer].counters.xmit_discards, 0);
		before = f.drops[DROP_NOT_READY];
		port_set_state(&f, in, PORT_ACTIVE);
	}
	traffic_stop(&f);
	check_quiet();
	down();
}

/* A service level without a lane: at a host it is what it would have sent, which no switch relays. */
static void test_no_lane(void)
{
	struct counters *c;

	up("mesh:2", 8);
	c = &f.ports[at("H1", 1)].counters;
	flow("H1", "H2", 1, 3);
	set_vl(net_find(&net, "H1"), 0, 0, 3, 15);
	fabric_run(&f, 100 * US);
	CHECK(f.drops[DROP_VL] > 1);
	CHECK_EQ(c->xmit_discards, f.drops[DROP_VL]);
	CHECK_EQ(c->rcv_relay_errors + c->vl_mapping, 0);
	CHECK_EQ(c->xmit_pkts, 0);
	traffic_stop(&f);
	check_quiet();
	down();
}

/* A lane without credits: HOQLife discards, VLStallCount stalls, XmitWait counts. */
static void test_lifetimes(void)
{
	uint32_t out, lane;

	up("mesh:2", 8);
	out = at("S1", 2);
	lane = out * f.config.vls;
	port_set_hoq(&f.ports[out], life_time(4));	/* 65 us */
	f.lanes[lane].credits = 0;
	flow("H1", "H2", 8, 0);
	fabric_run(&f, 60 * US);
	CHECK_EQ(dropped(), 0);
	fabric_run(&f, 1000 * US);
	CHECK(f.drops[DROP_HOQ] >= 3 && f.drops[DROP_HOQ] <= 16);
	CHECK_EQ(f.ports[out].counters.discard_hoq, f.drops[DROP_HOQ]);
	CHECK(f.ports[out].counters.xmit_wait + f.clock.now - f.ports[out].counters.blocked_since > 500 * US);
	f.ports[out].stall_count = 2;
	fabric_run(&f, 1500 * US);
	CHECK(f.drops[DROP_STALL] > 20);
	port_set_hoq(&f.ports[out], CLOCK_NEVER);
	f.ports[out].stall_count = 0;
	f.nodes[f.ports[out].node].lifetime = life_time(3);
	fabric_run(&f, 4000 * US);
	CHECK(f.drops[DROP_LIFETIME] > 10);
	CHECK_EQ(f.ports[out].counters.discard_lifetime, f.drops[DROP_LIFETIME]);
	down();
}

/* A packet that has waited too long makes way for who waits behind it, and fits into the credits. */
static void test_lifetimes_behind(void)
{
	struct flow_spec large = { .size = SIZE, .messages = 2 };
	struct flow_spec small = { .size = 100, .messages = 1, .start = 5 * US };
	uint32_t out;

	up("mesh:2,hosts=2", 8);
	out = at("S1", 2);
	port_set_hoq(&f.ports[out], life_time(4));
	f.nodes[f.ports[out].node].lifetime = life_time(10);
	f.lanes[out * f.config.vls].credits = 2;
	large.from = at("H1", 1);
	small.from = at("H2", 1);
	large.to = at("H3", 1);
	small.to = large.to;
	CHECK(traffic_add(&f, &large) != NONE && traffic_add(&f, &small) != NONE);
	fabric_run(&f, 60 * US);
	CHECK_EQ(f.traffic->received, 0);
	fabric_run(&f, 1000 * US);
	CHECK_EQ(f.traffic->flows[1].received, 1);
	CHECK_EQ(f.drops[DROP_HOQ], 2);
	down();
}

/* Two VLs, weights 3:1 in the low table; then one in the high table takes all but its limit. */
static void test_arbitration(void)
{
	struct flow *a, *b;
	struct arbiter *arbiter;
	double ratio;

	up("mesh:2,hosts=2", 8);
	arbiter = f.ports[at("S1", 2)].arbiter;
	memset(arbiter->table, 0, sizeof(arbiter->table));
	arbiter->table[0][0] = (struct vl_weight){ 0, 192 };
	arbiter->table[0][1] = (struct vl_weight){ 1, 64 };
	flow("H1", "H3", 0, 0);
	flow("H2", "H4", 0, 1);
	fabric_run(&f, 100 * US);
	traffic_measure(&f, 0);
	fabric_run(&f, 2100 * US);
	a = &f.traffic->flows[0];
	b = &f.traffic->flows[1];
	ratio = (double)a->bytes / b->bytes;
	CHECK(ratio > 2.8 && ratio < 3.2);
	arbiter->table[0][0].weight = 0;
	arbiter->table[1][0] = (struct vl_weight){ 0, 255 };
	arbiter->limit = 255;
	arbiter_changed(&f.ports[at("S1", 2)]);
	traffic_measure(&f, 0);
	fabric_run(&f, 4100 * US);
	CHECK(a->bytes > 50 * b->bytes);
	arbiter->limit = 2;		/* 8 KiB high, then one low packet */
	traffic_measure(&f, 0);
	fabric_run(&f, 6100 * US);
	ratio = (double)a->bytes / b->bytes;
	CHECK(ratio > 3.5 && ratio < 4.5);
	traffic_stop(&f);
	check_quiet();
	down();
}

/* An RC-like flow asks for as few ACKs as its requester does: each 16th packet and the last of a message. */
static void test_acks(void)
{
	struct flow_spec s = { .window = 32, .ack = 16, .message = 20 * (SIZE - 30) };
	uint64_t acks, packets;

	up("mesh:2", 1);
	s.from = at("H1", 1);
	s.to = at("H2", 1);
	CHECK(traffic_add(&f, &s) != NONE);
	fabric_run(&f, 1000 * US);
	packets = f.traffic->flows[0].received;
	acks = f.ports[s.to].counters.xmit_pkts;
	CHECK(packets > 1000);
	CHECK_EQ(f.traffic->flows[0].resent, 0);
	CHECK(acks >= packets / 10 - 2 && acks <= packets / 10 + 2);
	down();
}

/* A bad wire under an RC-like flow: all arrives once and in order, nothing leaks. */
static void test_faults(void)
{
	struct flow_spec s = { .window = 32, .rto = 100 * US, .stop = 20000 * US };
	struct flow *a;
	uint32_t out;

	up("mesh:3", 8);
	out = at("S1", 2);
	CHECK_EQ(fault_set(&f, out, "loss", 0.01), 0);
	CHECK_EQ(fault_set(&f, out, "corrupt", 0.01), 0);
	CHECK_EQ(fault_set(&f, out, "duplicate", 0.01), 0);
	CHECK_EQ(fault_set(&f, out, "reorder", 0.05), 0);
	CHECK_EQ(fault_set(&f, out, "jitter", 200), 0);
	CHECK_EQ(fault_set(&f, out, "loss", 2), -1);
	CHECK_EQ(fault_set(&f, out, "nonsense", 0), -1);
	s.from = at("H1", 1);
	s.to = at("H3", 1);
	CHECK(traffic_add(&f, &s) != NONE);
	a = f.traffic->flows;
	fabric_run(&f, 10000 * US);
	CHECK(f.drops[DROP_LOST] > 0 && f.drops[DROP_CORRUPT] > 0);
	CHECK_EQ(f.ports[f.ports[out].peer].counters.symbol_errors, f.drops[DROP_CORRUPT]);
	CHECK(a->resent > 0 && a->received > 500);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(link_unplug(&f, out), 0);
		fabric_run(&f, f.clock.now + 50 * US);
		CHECK_EQ(link_replug(&f, out), 0);
		port_activate_all(&f);
		fabric_run(&f, f.clock.now + 450 * US);
	}
	CHECK_EQ(f.ports[out].counters.link_downed, 5);
	fault_clear(&f, out);
	check_quiet();
	CHECK_EQ(a->acked, a->next);
	CHECK_EQ(a->received, a->acked);
	down();
}

static void test_multicast(void)
{
	uint32_t packet;

	up("mesh:3", 8);
	/* 0xc001: from H1 at S1 over S2 to H2 and H3. Ports: 1 left, 2 right, 3 host. */
	f.nodes[net_find(&net, "S1")].mft[1 * 16] = 1 << 2 | 1 << 3;
	f.nodes[net_find(&net, "S2")].mft[1 * 16] = 1 << 1 | 1 << 2 | 1 << 3;
	f.nodes[net_find(&net, "S3")].mft[1 * 16] = 1 << 1 | 1 << 3;
	flow("H1", "H2", 1, 0)->stopped = 1;
	for (int i = 0; i < 100; i++) {
		packet = packet_new(&f);
		f.packets[packet].dlid = 0xc001;
		f.packets[packet].len = SIZE;
		f.packets[packet].flow = 0;
		f.packets[packet].epoch = f.ports[at("S1", 3)].epoch;
		f.lanes[at("H1", 1) * f.config.vls].credits -= packet_blocks(&f.packets[packet]);
		relay_arrive(&f, at("S1", 3), packet);
		fabric_run(&f, f.clock.now + 10 * US);
	}
	CHECK_EQ(f.traffic->received, 200);
	CHECK_EQ(f.ports[at("S2", 3)].counters.multi_xmit, 100);
	CHECK_EQ(f.ports[at("H3", 1)].counters.multi_rcv, 100);
	CHECK_EQ(f.ports[at("H3", 1)].counters.rcv_pkts, f.ports[at("H3", 1)].counters.rcv_other);
	CHECK_EQ(dropped(), 0);
	check_quiet();
	down();
}

static uint64_t uniform_bytes(unsigned int seed)
{
	struct fabric_config config = { .seed = seed };
	uint64_t bytes;

	net_init(&net);
	CHECK_EQ(net_make(&net, "xgft:4,4/1,4"), 0);
	CHECK_EQ(fabric_init(&f, &net, &config), 0);
	CHECK_EQ(routes_minhop(&f), 0);
	port_activate_all(&f);
	for (uint32_t p = 0; p < f.nports; p++) {
		struct flow_spec s = { .from = p, .pattern = FLOW_UNIFORM, .spread = 2 };

		if (!f.ports[p].is_switch && f.ports[p].num)
			CHECK(traffic_add(&f, &s) != NONE);
	}
	fabric_run(&f, 500 * US);
	bytes = f.traffic->bytes * 1000003 + f.clock.events;
	fabric_free(&f);
	net_free(&net);
	return bytes;
}

static void test_seeds(void)
{
	CHECK(uniform_bytes(3) == uniform_bytes(3));
	CHECK(uniform_bytes(3) != uniform_bytes(4));
}

int main(void)
{
	test_timing();
	test_rates();
	test_full_rate();
	test_poisson();
	test_slow_host();
	test_drops();
	test_too_early();
	test_no_lane();
	test_lifetimes();
	test_lifetimes_behind();
	test_arbitration();
	test_acks();
	test_faults();
	test_multicast();
	test_seeds();
	return 0;
}
