// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* LRH, GRH, BTH and DETH (IBA 1.2.1 vol 1, 7.7, 8.3, 9.2, 9.3), read and written. */
#include <stdlib.h>
#include <string.h>

#include "ext_packet.h"
#include "sma.h"

#define LRH 8u
#define GRH 40u
#define BTH 12u
#define DETH 8u
#define UD_SEND_ONLY 0x64
#define QP1_QKEY 0x80010000u

uint32_t ext_packet_icrc(const uint8_t *packet, unsigned int length)
{
	uint32_t crc = ~0u;
	unsigned int bth = LRH + ((packet[1] & 3) == 3 ? GRH : 0);

	for (unsigned int i = 0; i + 4 < length; i++) {
		uint8_t byte = packet[i];

		if (bth > LRH && i < LRH)
			byte = 0xff;		/* routers write it anew */
		else if (i == 0)
			byte |= 0xf0;		/* LRH's VL changes from hop to hop */
		if (i == bth + 4)
			byte = 0xff;		/* BTH's reserved 8a */
		if (bth > LRH && i == LRH)
			byte |= 0x0f;		/* GRH's traffic class, flow label and hop limit */
		if (bth > LRH && ((i > LRH && i < LRH + 4) || i == LRH + 7))
			byte = 0xff;
		crc ^= byte;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* Where BTH starts, or 0 if this is not an IBA transport packet of that length. */
static unsigned int bth_at(const uint8_t *p, unsigned int length)
{
	unsigned int lnh = p[1] & 3, at = LRH;

	/* PktLen counts words up to and with ICRC's, that is all we have (7.7.7). */
	if (length < LRH || (be16_at(p + 4) & 0x7ff) * 4u != length || lnh < 2)
		return 0;
	if (lnh == 3)
		at += GRH;
	return at + BTH + 4 <= length ? at : 0;
}

void ext_packet_seal(uint8_t *packet, unsigned int length)
{
	uint32_t crc = ext_packet_icrc(packet, length);

	for (int i = 0; i < 4; i++)	/* least significant byte first (7.8.1) */
		packet[length - 4 + i] = crc >> 8 * i;
}

uint32_t ext_packet_qpn(const uint8_t *packet, unsigned int length)
{
	unsigned int bth = bth_at(packet, length);

	return bth ? be32_at(packet + bth + 4) & 0xffffff : 0;
}

uint8_t *ext_packet_gmp(uint8_t *packet, unsigned int length)
{
	unsigned int bth = bth_at(packet, length);

	if (!bth || packet[bth] != UD_SEND_ONLY || ext_packet_qpn(packet, length) != 1 ||
	    length != bth + BTH + DETH + 256 + 4)
		return NULL;
	return packet + bth + BTH + DETH;
}

uint32_t ext_packet_from(struct fabric *f, const uint8_t *bytes, unsigned int length)
{
	unsigned int bth = bth_at(bytes, length);
	struct packet *p;
	uint32_t packet;
	uint8_t *copy;

	if (!bth)
		return NONE;
	copy = malloc(length);
	if (!copy)
		return NONE;
	memcpy(copy, bytes, length);
	packet = packet_new(f);
	p = &f->packets[packet];
	p->kind = PACKET_REAL;
	p->bytes = copy;
	p->len = length;
	p->sl = bytes[1] >> 4;
	p->dlid = be16_at(bytes + 2);
	p->slid = be16_at(bytes + 6);
	p->pkey = be16_at(bytes + bth + 2);
	return packet;
}

void ext_packet_mad(struct fabric *f, uint32_t port, const uint8_t *bytes, unsigned int length)
{
	unsigned int bth = bth_at(bytes, length);
	struct mad_address a = { 0 };
	uint8_t mad[256];
	const uint8_t *deth;

	if (!bth || bytes[bth] != UD_SEND_ONLY || length != bth + BTH + DETH + 256 + 4)
		return;
	deth = bytes + bth + BTH;
	a.dlid = be16_at(bytes + 2);
	a.slid = be16_at(bytes + 6);
	a.dqp = be32_at(bytes + bth + 4) & 0xffffff;
	a.sqp = be32_at(deth + 4) & 0xffffff;
	if (a.dqp > 1)
		return;
	memcpy(mad, deth + DETH, 256);
	if (mad[1] == CLASS_SM_DR)
		smi_arrive(f, port, mad);
	else
		mad_arrive(f, port, &a, mad);
}

unsigned int ext_packet_of_mad(const struct mad_address *a, const uint8_t *mad, uint8_t *p)
{
	int smp = mad[1] == CLASS_SM || mad[1] == CLASS_SM_DR;
	unsigned int vl = smp ? 15 : 0;

	memset(p, 0, EXT_MAD_PACKET);
	p[0] = vl << 4;
	p[1] = 2;			/* SL 0, local, BTH next */
	put_be16(p + 2, a->dlid);
	put_be16(p + 4, EXT_MAD_PACKET / 4);
	put_be16(p + 6, a->slid);
	p[8] = UD_SEND_ONLY;
	put_be16(p + 10, 0xffff);
	put_be32(p + 12, smp ? 0 : a->dqp ? a->dqp : 1);
	put_be32(p + 20, smp ? 0 : QP1_QKEY);
	put_be32(p + 24, smp ? 0 : a->sqp ? a->sqp : 1);
	memcpy(p + 28, mad, 256);
	ext_packet_seal(p, EXT_MAD_PACKET);
	return vl;
}
