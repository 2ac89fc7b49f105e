// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The subnet management agents, asked SMP by SMP: who may send to whom, VL arbitration block by block, the
 * states of a port, and what is refused.
 */
#include "smp.h"

#define KEY 0x77
#define US 1000000ull

/* What H1 sends to H2 with that P_Key. Return: whether it comes. */
static bool passes(uint16_t pkey)
{
	uint32_t host = at("H2", 1), in = at("S1", 1), packet = packet_new(&f);
	uint64_t before = f.ports[host].counters.rcv_pkts;
	struct packet *p = &f.packets[packet];

	p->dlid = f.ports[host].lid;
	p->len = 256;
	p->flow = 0;
	p->pkey = pkey;
	p->epoch = f.ports[in].epoch;
	f.lanes[at("H1", 1) * f.config.vls].credits -= packet_blocks(p);
	relay_arrive(&f, in, packet);
	fabric_run(&f, f.clock.now + 10 * US);
	return f.ports[host].counters.rcv_pkts > before;
}

static void set_pkey(unsigned int num, uint16_t pkey)
{
	smp(SMP_SET, PKEYS, num << 16, 0);
	put_be16(data + 10, pkey);
	CHECK_EQ(ask(at("S1", 0)), 0);
	CHECK_EQ(get(at("S1", 0), PKEYS, num << 16, 0), 0);
	CHECK_EQ(be16_at(data), 0);
	CHECK_EQ(be16_at(data + 10), pkey);
}

static void enforce(unsigned int num, unsigned int bits)
{
	set_port_info(at("S1", num), 0);
	data[43] = (data[43] & 0xf0) | bits;
	CHECK_EQ(ask(at("S1", 0)), 0);
	CHECK_EQ(data[43] & 15, bits);
}

/*
 * 10.9.3: of two members one at least is a full one. A switch looks where its ports are told to: inbound by
 * bit 3, outbound by bit 2 (14.2.5.6), and each has a counter.
 */
static void test_partitions(void)
{
	static const struct {
		uint16_t mine, others;
		bool talk;
	} pairs[] = {
		{ 0xffff, 0xffff, true }, { 0xffff, 0x7fff, true }, { 0x7fff, 0xffff, true },
		{ 0x7fff, 0x7fff, false }, { 0x8001, 0x0001, true }, { 0x0001, 0x8001, true },
		{ 0x0001, 0x0001, false }, { 0x8001, 0x8002, false }, { 0x8001, 0xffff, false },
		{ 0x8000, 0x8000, false }, { 0, 0x8000, false },
	};
	struct flow_spec s = { .gbps = 1 };
	uint64_t in = 0, out = 0;

	up();
	s.from = at("H1", 1);
	s.to = at("H2", 1);
	CHECK_EQ(traffic_add(&f, &s), 0);
	f.traffic->flows[0].stopped = 1;
	for (unsigned int i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		set_pkey(1, pairs[i].mine);
		set_pkey(3, pairs[i].mine);
		enforce(1, 8);
		enforce(3, 0);
		CHECK_EQ(passes(pairs[i].others), pairs[i].talk);
		in += !pairs[i].talk;
		CHECK_EQ(f.ports[at("S1", 1)].counters.rcv_constraint, in);
		enforce(1, 0);
		enforce(3, 4);
		CHECK_EQ(passes(pairs[i].others), pairs[i].talk);
		out += !pairs[i].talk;
		CHECK_EQ(f.ports[at("S1", 3)].counters.xmit_constraint, out);
		/* The other directions, and no direction */
		enforce(1, 4);
		enforce(3, 8);
		CHECK(passes(pairs[i].others));
	}
	CHECK_EQ(f.drops[DROP_PKEY_IN], in);
	CHECK_EQ(f.drops[DROP_PKEY_OUT], out);
	CHECK_EQ(in, 6);
	CHECK_EQ(get(at("S1", 0), PKEYS, 5 << 16, 0), MAD_BAD_VALUE);
	CHECK_EQ(get(at("S1", 0), PKEYS, 1 << 16 | 1, 0), MAD_BAD_VALUE);
	down();
}

/* Blocks 1 and 2 are the low table's halves, 3 and 4 the high one's; each port has its own. */
static void test_vlarb(void)
{
	const uint32_t s1 = 0;
	uint32_t port;

	up();
	port = at("S1", 2);
	CHECK_EQ(f.nodes[s1].first, at("S1", 0));
	for (unsigned int block = 1; block <= 4; block++) {
		smp(SMP_SET, VLARB, block << 16 | 2, 0);
		for (unsigned int i = 0; i < 32; i++) {
			data[2 * i] = (i + block) % 8;
			data[2 * i + 1] = block * 32 + i;
		}
		CHECK_EQ(ask(at("S1", 0)), 0);
	}
	for (unsigned int block = 1; block <= 4; block++) {
		CHECK_EQ(get(at("S1", 0), VLARB, block << 16 | 2, 0), 0);
		for (unsigned int i = 0; i < 32; i++) {
			const struct vl_weight *entry =
				&f.ports[port].arbiter->table[block > 2][(block + 1) % 2 * 32 + i];

			CHECK_EQ(data[2 * i], (i + block) % 8);
			CHECK_EQ(data[2 * i + 1], block * 32 + i);
			CHECK_EQ(entry->vl, (i + block) % 8);
			CHECK_EQ(entry->weight, block * 32 + i);
		}
	}
	CHECK(f.ports[port].weighted);
	CHECK(!f.ports[at("S1", 1)].weighted);
	CHECK_EQ(get(at("S1", 0), VLARB, 0 << 16 | 2, 0), MAD_BAD_VALUE);
	CHECK_EQ(get(at("S1", 0), VLARB, 5 << 16 | 2, 0), MAD_BAD_VALUE);
	CHECK_EQ(get(at("S1", 0), VLARB, 1 << 16 | 5, 0), MAD_BAD_VALUE);
	/* A host's is that of the port which is asked. */
	smp(SMP_SET, VLARB, 3 << 16, 0);
	data[0] = 2;
	data[1] = 99;
	CHECK_EQ(ask(at("H1", 2)), 0);
	CHECK_EQ(f.ports[at("H1", 2)].arbiter->table[1][0].weight, 99);
	CHECK(f.ports[at("H1", 1)].arbiter->table[1][0].weight != 99);
	/* VLHighLimit is PortInfo's. */
	set_port_info(port, 0);
	data[38] = 9;
	CHECK_EQ(ask(at("S1", 0)), 0);
	CHECK_EQ(f.ports[port].arbiter->limit, 9);
	down();
}

static int set_state(uint32_t port, unsigned int state, unsigned int phys)
{
	set_port_info(port, 0);
	data[32] |= state;
	data[33] |= phys << 4;
	return ask(f.ports[port].is_switch ? f.nodes[f.ports[port].node].first : port);
}

/* Upwards one by one, down at any time; of a switch's port and of a host's. */
static void test_states(void)
{
	for (int host = 0; host < 2; host++) {
		uint32_t at_it, peer;
		struct port *port;

		up();
		at_it = host ? at("H2", 1) : at("S1", 3);
		port = &f.ports[at_it];
		peer = port->peer;
		port_set_state(&f, at_it, PORT_INIT);
		CHECK_EQ(set_state(at_it, PORT_ACTIVE, 0), MAD_BAD_VALUE);
		CHECK_EQ(data[32] & 15, PORT_INIT);
		CHECK_EQ(set_state(at_it, PORT_INIT, 0), MAD_BAD_VALUE);
		CHECK_EQ(port->state, PORT_INIT);
		CHECK_EQ(set_state(at_it, PORT_ARMED, 0), 0);
		CHECK_EQ(set_state(at_it, 0, 0), 0);
		CHECK_EQ(port->state, PORT_ARMED);
		CHECK_EQ(set_state(at_it, PORT_ACTIVE, 0), 0);
		CHECK_EQ(port->state, PORT_ACTIVE);
		CHECK_EQ(set_state(at_it, PORT_ARMED, 0), MAD_BAD_VALUE);
		CHECK_EQ(set_state(at_it, 5, 0), MAD_BAD_VALUE);
		CHECK_EQ(set_state(at_it, 0, 1), MAD_BAD_VALUE);
		CHECK_EQ(port->state, PORT_ACTIVE);
		/* Down, and both ends train again. */
		CHECK_EQ(set_state(at_it, PORT_DOWN, 0), 0);
		CHECK_EQ(port->state, PORT_INIT);
		CHECK_EQ(f.ports[peer].state, PORT_INIT);
		/* Down, and it stays there until it may train. */
		CHECK_EQ(set_state(at_it, PORT_DOWN, PHYS_DISABLED), 0);
		CHECK_EQ(port->state, PORT_DOWN);
		CHECK_EQ(f.ports[peer].state, PORT_DOWN);
		CHECK_EQ(set_state(at_it, PORT_ARMED, 0), MAD_BAD_VALUE);
		CHECK_EQ(set_state(at_it, 0, PHYS_POLLING), 0);
		CHECK_EQ(port->state, PORT_INIT);
		CHECK_EQ(f.ports[peer].state, PORT_INIT);
		down();
	}
}

/* What is asked for and can not be, is refused as a whole. */
static void test_values(void)
{
	uint32_t port;
	uint16_t lid;

	up();
	port = at("H2", 1);
	lid = f.ports[port].lid;
	for (unsigned int i = 0; i < 5; i++) {
		set_port_info(port, 0);
		put_be64(data, KEY);
		put_be16(data + 16, i == 3 ? UCAST_LIDS : 40);
		data[34] |= i == 4 ? 4 : 0;
		data[36] = (i == 0 ? 6 : 4) << 4;
		data[43] = (i == 1 ? 5 : i == 2 ? 15 : 4) << 4;
		CHECK_EQ(ask(port), MAD_BAD_VALUE);
		CHECK_EQ(f.ports[port].lid, lid);
		CHECK_EQ(be64_at(f.port_sma[port].info), 0);
	}
	set_port_info(port, 0);
	put_be16(data + 16, 40);
	data[34] |= 3;
	data[36] = 3 << 4 | 2;
	data[43] = 2 << 4;
	CHECK_EQ(ask(port), 0);
	CHECK_EQ(f.ports[port].lid, 40);
	CHECK_EQ(f.ports[port].mtu, 1024);
	CHECK_EQ(f.ports[port].op_vls, 2);
	CHECK_EQ(f.lids[47], port);
	CHECK_EQ(f.lids[48], NONE);

	/* No table reaches so far: nobody looks for the port behind it. */
	smp(SMP_SET, SWITCH_INFO, 0, 0);
	put_be16(data + 6, 100);
	CHECK_EQ(ask(at("S1", 0)), 0);
	CHECK_EQ(f.nodes[0].lft_top, 100);
	for (unsigned int top = UCAST_LIDS; top <= 0xffff; top += 0x3fff) {
		smp(SMP_SET, SWITCH_INFO, 0, 0);
		put_be16(data + 6, top);
		CHECK_EQ(ask(at("S1", 0)), MAD_BAD_VALUE);
		CHECK_EQ(f.nodes[0].lft_top, 100);
		CHECK_EQ(get(at("S1", 0), SWITCH_INFO, 0, 0), 0);
		CHECK_EQ(be16_at(data + 6), 100);
	}
	CHECK_EQ(get(at("H1", 1), SWITCH_INFO, 0, 0), MAD_BAD_ATTR);
	CHECK_EQ(get(at("H1", 1), 0x30, 0, 0), MAD_BAD_ATTR);
	smp(0x44, PORT_INFO, 0, 0);
	CHECK_EQ(ask(port), MAD_BAD_METHOD);
	smp(SMP_GET, PORT_INFO, 0, 0);
	mad[2] = 2;
	CHECK_EQ(ask(port), MAD_BAD_VERSION);
	down();
}

int main(void)
{
	test_partitions();
	test_vlarb();
	test_states();
	test_values();
	return 0;
}
