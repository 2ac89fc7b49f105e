// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The PMA: PortCounters, PortCountersExtended, ClassPortInfo; and counters by name. */
#include <string.h>
#include <strings.h>

#include "sma.h"

#define CLASS_PORT_INFO 0x01
#define PORT_COUNTERS 0x12
#define PORT_COUNTERS_EXT 0x1d
#define ALL_PORTS 255
#define OFFSET(member) __builtin_offsetof(struct counters, member)

/* A tick of XmitWait is the time of 4 bytes on the link, as PortXmitData counts. */
static uint64_t wait_ticks(const struct fabric *f, uint32_t port, const struct counters *c)
{
	const struct port *p = &f->ports[port];
	uint64_t ps = c->xmit_wait, tick = 4ull * p->fs_per_byte;

	if (p->blocked)
		ps += f->clock.now - p->counters.blocked_since;
	return ps / tick * 1000 + ps % tick * 1000 / tick;
}

static uint64_t capped(uint64_t value, unsigned int bits)
{
	uint64_t max = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;

	return value > max ? max : value;
}

static const struct field {
	const char *name;
	size_t offset;
	uint8_t byte, bits, select;	/* in PortCounters: where, and its CounterSelect bit */
} fields[] = {
	{ "SymbolErrorCounter", OFFSET(symbol_errors), 4, 16, 0 },
	{ "LinkErrorRecoveryCounter", OFFSET(link_recovers), 6, 8, 1 },
	{ "LinkDownedCounter", OFFSET(link_downed), 7, 8, 2 },
	{ "PortRcvErrors", OFFSET(rcv_errors), 8, 16, 3 },
	{ "PortRcvRemotePhysicalErrors", OFFSET(rcv_remote_phys), 10, 16, 4 },
	{ "PortRcvSwitchRelayErrors", OFFSET(rcv_relay_errors), 12, 16, 5 },
	{ "PortXmitDiscards", OFFSET(xmit_discards), 14, 16, 6 },
	{ "PortXmitConstraintErrors", OFFSET(xmit_constraint), 16, 8, 7 },
	{ "PortRcvConstraintErrors", OFFSET(rcv_constraint), 17, 8, 8 },
	{ "LocalLinkIntegrityErrors", OFFSET(local_integrity), 19, 4, 9 },
	{ "ExcessiveBufferOverrunErrors", OFFSET(buffer_overruns), 19, 4, 10 },
	{ "VL15Dropped", OFFSET(vl15_dropped), 22, 16, 11 },
	{ "PortXmitData", OFFSET(xmit_bytes), 24, 32, 12 },
	{ "PortRcvData", OFFSET(rcv_bytes), 28, 32, 13 },
	{ "PortXmitPkts", OFFSET(xmit_pkts), 32, 32, 14 },
	{ "PortRcvPkts", OFFSET(rcv_pkts), 36, 32, 15 },
	{ "PortXmitWait", OFFSET(xmit_wait), 40, 32, 16 },
};

#define NFIELDS (sizeof(fields) / sizeof(*fields))

static uint64_t *member(struct counters *c, const struct field *field)
{
	return (uint64_t *)((char *)c + field->offset);
}

/* Unicast packets are what no other counter counts: they stay as they are when those change. */
static void set_member(struct counters *c, size_t offset, uint64_t value)
{
	uint64_t xmit = c->xmit_pkts - c->xmit_other, rcv = c->rcv_pkts - c->rcv_other;

	*(uint64_t *)((char *)c + offset) = value;
	c->xmit_other = c->xmit_pkts - xmit;
	c->rcv_other = c->rcv_pkts - rcv;
}

static uint64_t shown(struct fabric *f, uint32_t port, const struct field *field)
{
	struct counters *c = &f->ports[port].counters;

	if (field->offset == OFFSET(xmit_wait))
		return wait_ticks(f, port, c);
	if (field->offset == OFFSET(xmit_bytes) || field->offset == OFFSET(rcv_bytes))
		return *member(c, field) / 4;
	return *member(c, field);
}

/* The ports whose sum is asked for: that one, or all of its node. */
struct range {
	uint32_t first, last;
};

static struct range selected(const struct fabric *f, uint32_t port, const uint8_t *data)
{
	const struct node *node = &f->nodes[f->ports[port].node];

	if (data[1] != ALL_PORTS)
		return (struct range){ port, port };
	return (struct range){ node->first + (node->type != NET_SWITCH), node->first + node->nports };
}

static void port_counters(struct fabric *f, struct range ports, int set, uint8_t *data)
{
	uint32_t select = be16_at(data + 2) | (data[18] & 1u) << 16;
	uint64_t sum[NFIELDS] = { 0 };

	for (uint32_t p = ports.first; p <= ports.last; p++)
		for (unsigned int i = 0; i < NFIELDS; i++) {
			if (set && select >> fields[i].select & 1) {
				set_member(&f->ports[p].counters, fields[i].offset, 0);
				if (fields[i].offset == OFFSET(xmit_wait))
					f->ports[p].counters.blocked_since = f->clock.now;
			}
			sum[i] += shown(f, p, &fields[i]);
		}
	memset(data + 4, 0, 40);
	for (unsigned int i = 0; i < NFIELDS; i++) {
		uint64_t v = capped(sum[i], fields[i].bits);

		if (fields[i].bits == 32)
			put_be32(data + fields[i].byte, v);
		else if (fields[i].bits == 16)
			put_be16(data + fields[i].byte, v);
		else if (fields[i].bits == 8)
			data[fields[i].byte] = v;
		else	/* the two of 4 bits share a byte */
			data[fields[i].byte] |= fields[i].select == 9 ? v << 4 : v;
	}
}

static void clear_ext(struct counters *c, uint16_t select)
{
	static const size_t order[4] = { OFFSET(xmit_bytes), OFFSET(rcv_bytes), OFFSET(xmit_pkts),
		OFFSET(rcv_pkts) };

	for (unsigned int i = 0; i < 4; i++)
		if (select >> i & 1)
			set_member(c, order[i], 0);
	if (select >> 4 & 1)
		c->xmit_other = c->xmit_pkts;
	if (select >> 5 & 1)
		c->rcv_other = c->rcv_pkts;
	if (select >> 6 & 1)
		c->multi_xmit = 0;
	if (select >> 7 & 1)
		c->multi_rcv = 0;
}

static void port_counters_ext(struct fabric *f, struct range ports, int set, uint8_t *data)
{
	uint16_t select = set ? be16_at(data + 2) : 0;
	uint64_t sum[8] = { 0 };

	for (uint32_t p = ports.first; p <= ports.last; p++) {
		struct counters *c = &f->ports[p].counters;

		clear_ext(c, select);
		sum[0] += c->xmit_bytes / 4;
		sum[1] += c->rcv_bytes / 4;
		sum[2] += c->xmit_pkts;
		sum[3] += c->rcv_pkts;
		sum[4] += c->xmit_pkts - c->xmit_other;
		sum[5] += c->rcv_pkts - c->rcv_other;
		sum[6] += c->multi_xmit;
		sum[7] += c->multi_rcv;
	}
	memset(data + 4, 0, 68);
	for (unsigned int i = 0; i < 8; i++)
		put_be64(data + 8 + 8 * i, sum[i]);
}

unsigned int pma_process(struct fabric *f, uint32_t port, uint8_t *mad)
{
	unsigned int attr = be16_at(mad + 16);
	uint8_t *data = mad + 64;
	int set = mad[3] == SMP_SET;
	uint32_t at;

	if (mad[0] != 1 || mad[2] != 1)
		return MAD_BAD_VERSION;
	if (mad[3] != SMP_GET && !set)
		return MAD_BAD_METHOD;
	if (attr == CLASS_PORT_INFO) {
		if (set)
			return MAD_BAD_METHOD;
		memset(data, 0, 72);
		data[0] = 1;
		data[1] = 1;
		/* all ports, extended counters with all widths, PortXmitWait */
		put_be16(data + 2, 1u << 8 | 1u << 9 | 1u << 12);
		data[7] = 18;
		return 0;
	}
	at = data[1] == ALL_PORTS ? port : fabric_port(f, f->ports[port].node, data[1]);
	if (at == NONE || (!f->ports[at].is_switch && !f->ports[at].num))
		return MAD_BAD_VALUE;
	if (attr == PORT_COUNTERS)
		port_counters(f, selected(f, at, data), set, data);
	else if (attr == PORT_COUNTERS_EXT)
		port_counters_ext(f, selected(f, at, data), set, data);
	else
		return MAD_BAD_ATTR;
	return 0;
}

int pma_set(struct fabric *f, uint32_t port, const char *name, uint64_t value)
{
	for (unsigned int i = 0; i < NFIELDS; i++) {
		if (strcasecmp(fields[i].name, name))
			continue;
		if (fields[i].offset == OFFSET(xmit_wait))
			value = value * 4 * f->ports[port].fs_per_byte / 1000;
		else if (fields[i].offset == OFFSET(xmit_bytes) ||
			 fields[i].offset == OFFSET(rcv_bytes))
			value *= 4;
		set_member(&f->ports[port].counters, fields[i].offset, value);
		return 0;
	}
	return -1;
}
