// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Functions that share a port: whose a packet is, and what a VF may send. */
#include <stdlib.h>
#include <string.h>

#include "../../vhca/wire.h"
#include "ext_packet.h"
#include "made.h"
#include "shared.h"

#define LID 5
#define ELSEWHERE 9
#define GUID 0x0002c9ff00000001ull
#define CM_ID 0x12345678

static struct net net;
static struct fabric f;

static void up(void)
{
	made_up(&f, &net, "mesh:2,shared=2", 0);
}

static void down(void)
{
	made_down(&f, &net);
}

static uint32_t inside(unsigned int num)
{
	return fabric_port(&f, net_find(&net, "H1-hca"), num);
}

/* The PF says what its LID is, and the GUID of its second VF. */
static void news(void)
{
	struct vhca_port_news n = { 0 };

	put_be16(n.info + 16, LID);
	put_be64((uint8_t *)&n.guids[2], GUID);
	CHECK_EQ(shared_news(&f, inside(1), (uint8_t *)&n, sizeof(n)), 0);
	CHECK_EQ(shared_news(&f, inside(3), (uint8_t *)&n, sizeof(n)), 0);
	CHECK_EQ(shared_news(&f, inside(SHARED_PF), (uint8_t *)&n, sizeof(n) - 1), 0);
	CHECK(!shared_told(&f, inside(3)));
	CHECK_EQ(shared_news(&f, inside(SHARED_PF), (uint8_t *)&n, sizeof(n)), 1);
	CHECK(shared_told(&f, inside(3)));
	CHECK(!shared_told(&f, inside(SHARED_PF)));
}

static const struct mad_address to_us = { ELSEWHERE, LID, 1, 1 };

/* By which port a GMP leaves that came by another one, and what became of it. */
static unsigned int route(unsigned int from, const uint8_t *mad, uint8_t *after)
{
	uint8_t packet[EXT_MAD_PACKET], *bytes;
	unsigned int num;
	uint32_t p;

	ext_packet_of_mad(&to_us, mad, packet);
	p = ext_packet_from(&f, packet, sizeof(packet));
	CHECK(p != NONE);
	num = shared_route(&f, inside(from), &f.packets[p]);
	bytes = f.packets[p].bytes;
	memcpy(packet, bytes, sizeof(packet));
	ext_packet_seal(packet, sizeof(packet));
	CHECK(!memcmp(packet, bytes, sizeof(packet)));
	memcpy(after, ext_packet_gmp(bytes, sizeof(packet)), 256);
	packet_put(&f, p);
	return num;
}

static int send(unsigned int from, const uint8_t *mad, uint8_t *after)
{
	uint8_t packet[EXT_MAD_PACKET];
	unsigned int vl = ext_packet_of_mad(&to_us, mad, packet);
	int may = shared_send(&f, inside(from), vl, packet, sizeof(packet));

	memcpy(after, packet + sizeof(packet) - 4 - 256, 256);
	return may;
}

static void test_smps(void)
{
	uint8_t mad[256] = { 1, CLASS_SM, 1, SMP_GET }, after[256];

	up();
	CHECK_EQ(send(SHARED_PF, mad, after), 1);
	CHECK_EQ(send(3, mad, after), 0);
	CHECK_EQ(send(4, mad, after), 0);
	CHECK_EQ(f.drops[DROP_VF_QP0], 2);
	CHECK_EQ(shared_route_mad(&f, inside(SHARED_PF), mad), inside(SHARED_UPLINK));
	CHECK_EQ(shared_route_mad(&f, inside(SHARED_UPLINK), mad), inside(SHARED_PF));
	down();
}

static void test_answers(void)
{
	uint8_t mad[256] = { 1, CLASS_SA, 2, SMP_GET }, after[256], back[256];

	up();
	news();
	put_be64(mad + 8, 0x00aabbccddeeff11ull);
	CHECK_EQ(send(SHARED_PF, mad, after), 1);
	CHECK(!memcmp(mad, after, 256));
	CHECK_EQ(send(4, mad, after), 1);
	CHECK_EQ(be64_at(after + 8), 0x02aabbccddeeff11ll);
	after[3] = SMP_RESP;
	CHECK_EQ(route(SHARED_UPLINK, after, back), 4);
	CHECK_EQ(be64_at(back + 8), 0x00aabbccddeeff11ll);
	CHECK_EQ(shared_route_mad(&f, inside(SHARED_UPLINK), after), inside(4));
	/* There is no such function, and nobody has asked. */
	back[8] = 3;
	CHECK_EQ(route(SHARED_UPLINK, back, after), SHARED_PF);
	/* Requests without a GRH are for the PF. */
	CHECK_EQ(route(SHARED_UPLINK, mad, after), SHARED_PF);
	down();
}

/* With a GRH it is for whom that names; and its ICRC leaves out the whole LRH, which routers write anew. */
static void test_grh(void)
{
	uint8_t mad[256] = { 1, 7, 2, 3 }, plain[EXT_MAD_PACKET], packet[EXT_MAD_PACKET + 40] = { 0 };
	uint32_t p, icrc;

	up();
	news();
	put_be16(mad + 16, 0x17);
	ext_packet_of_mad(&to_us, mad, plain);
	memcpy(packet, plain, 8);
	memcpy(packet + 48, plain + 8, sizeof(plain) - 8);
	packet[1] |= 3;
	put_be16(packet + 4, sizeof(packet) / 4);
	put_be64(packet + 8 + 24 + 8, GUID);
	ext_packet_seal(packet, sizeof(packet));
	p = ext_packet_from(&f, packet, sizeof(packet));
	CHECK(p != NONE);
	CHECK_EQ(shared_route(&f, inside(SHARED_UPLINK), &f.packets[p]), 4);
	CHECK(!memcmp(f.packets[p].bytes, packet, sizeof(packet)));
	packet_put(&f, p);

	icrc = ext_packet_icrc(packet, sizeof(packet));
	packet[0] ^= 0xf0;
	packet[1] ^= 0xf0;
	put_be16(packet + 2, ELSEWHERE);
	put_be16(packet + 6, 77);
	CHECK_EQ(ext_packet_icrc(packet, sizeof(packet)), icrc);
	packet[8 + 24 + 8]++;
	CHECK(ext_packet_icrc(packet, sizeof(packet)) != icrc);
	down();
}

static void test_cm(void)
{
	uint8_t mad[256] = { 1, 7, 2, 3 }, after[256];

	up();
	news();
	put_be16(mad + 16, 0x10);
	put_be64(mad + 104, GUID);
	CHECK_EQ(route(SHARED_UPLINK, mad, after), 4);
	put_be64(mad + 104, GUID + 1);
	CHECK_EQ(route(SHARED_UPLINK, mad, after), SHARED_PF);
	/* VF 1 asks, with an ID of its own; REP, and all others, name it as the remote one. */
	put_be32(mad + 24, CM_ID);
	CHECK_EQ(send(3, mad, after), 1);
	CHECK(!memcmp(mad, after, 256));
	put_be32(mad + 24, 77);
	put_be32(mad + 28, CM_ID);
	put_be16(mad + 16, 0x13);
	CHECK_EQ(route(SHARED_UPLINK, mad, after), 3);
	/* After many others it is forgotten. */
	put_be16(mad + 16, 0x10);
	for (unsigned int i = 0; i < 1000; i++) {
		put_be32(mad + 24, i + 1);
		CHECK_EQ(send(4, mad, after), 1);
	}
	put_be16(mad + 16, 0x13);
	CHECK_EQ(route(SHARED_UPLINK, mad, after), SHARED_PF);
	down();
}

static unsigned int route_data(unsigned int from, uint32_t qpn, unsigned int dlid)
{
	uint8_t bytes[64] = { 0, 2 };
	unsigned int num;
	uint32_t p;

	put_be16(bytes + 2, dlid);
	put_be16(bytes + 4, sizeof(bytes) / 4);
	put_be32(bytes + 12, qpn);
	p = ext_packet_from(&f, bytes, sizeof(bytes));
	CHECK(p != NONE);
	num = shared_route(&f, inside(from), &f.packets[p]);
	packet_put(&f, p);
	return num;
}

static void test_data(void)
{
	struct flow_spec s = { .size = 2078, .gbps = 1, .stop = 1000000000 };
	uint32_t n;

	up();
	news();
	CHECK_EQ(route_data(SHARED_UPLINK, 0x000005, LID), SHARED_PF);
	CHECK_EQ(route_data(SHARED_UPLINK, 0x100005, LID), 3);
	CHECK_EQ(route_data(SHARED_UPLINK, 0x200005, LID), 4);
	CHECK_EQ(route_data(SHARED_UPLINK, 0x700005, LID), SHARED_PF);
	CHECK_EQ(route_data(3, 0x200005, ELSEWHERE), SHARED_UPLINK);
	CHECK_EQ(route_data(3, 0x200005, LID), 4);
	CHECK_EQ(route_data(SHARED_PF, 0x100005, LID), 3);
	/* Modelled hosts are PFs. */
	s.from = fabric_port(&f, net_find(&net, "H1"), 1);
	s.to = fabric_port(&f, net_find(&net, "H2"), 1);
	n = traffic_add(&f, &s);
	CHECK(n != NONE);
	fabric_run(&f, 2000000000);
	CHECK(f.traffic->flows[n].received > 50);
	for (int i = 0; i < NDROPS; i++)
		CHECK_EQ(f.drops[i], 0);
	down();
}

int main(void)
{
	test_smps();
	test_answers();
	test_grh();
	test_cm();
	test_data();
	return 0;
}
