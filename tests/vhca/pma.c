// SPDX-License-Identifier: GPL-2.0
#include <rdma/ib_pma.h>

#include "mad.h"

/* Attributes (IBA 1.2.1 vol 1, 16.1.3, table 243). */
enum {
	CLASS_PORT_INFO = 0x0001,
	PORT_COUNTERS = 0x0012,
	PORT_COUNTERS_EXT = 0x001d,
};

#define DATA_AT 64			/* of an attribute in a PerfMgt MAD */
#define ALL_PORTS 0xff
#define CAP_ALL_PORTS 0x0100
#define CAP_EXT_WIDTH 0x0200
#define CAP_XMIT_WAIT 0x1000
#define RESPONSE_TIME 18

/* Counters of the standard: where, how wide, which select bit clears it, where we count it. */
struct field {
	u8 at, bits, select;
	u16 counter;
};

#define COUNTER(name) offsetof(struct vhca_counters, name)

static const struct field counters[] = {
	{ 4, 16, 0, COUNTER(symbol_errors) },
	{ 6, 8, 1, COUNTER(link_recovers) },
	{ 7, 8, 2, COUNTER(link_downed) },
	{ 8, 16, 3, COUNTER(rcv_errors) },
	{ 12, 16, 5, COUNTER(rcv_switch_relay) },
	{ 14, 16, 6, COUNTER(xmit_discards) },
	{ 16, 8, 7, COUNTER(xmit_constraint) },
	{ 17, 8, 8, COUNTER(rcv_constraint) },
	{ 22, 16, 11, COUNTER(vl15_dropped) },
	{ 24, 32, 12, COUNTER(xmit_data) },
	{ 28, 32, 13, COUNTER(rcv_data) },
	{ 32, 32, 14, COUNTER(xmit_pkts) },
	{ 36, 32, 15, COUNTER(rcv_pkts) },
	{ 40, 32, 16, COUNTER(xmit_wait) },	/* its select bit is CounterSelect2's */
};

static const struct field counters_ext[] = {
	{ 8, 64, 0, COUNTER(xmit_data) },
	{ 16, 64, 1, COUNTER(rcv_data) },
	{ 24, 64, 2, COUNTER(xmit_pkts) },
	{ 32, 64, 3, COUNTER(rcv_pkts) },
	{ 40, 64, 4, COUNTER(unicast_xmit) },
	{ 48, 64, 5, COUNTER(unicast_rcv) },
	{ 56, 64, 6, COUNTER(multicast_xmit) },
	{ 64, 64, 7, COUNTER(multicast_rcv) },
};

static u64 *at(struct vhca_counters *c, const struct field *field)
{
	return (u64 *)((u8 *)c + field->counter);
}

/* A counter of so many bits stays at its highest value (16.1.3.5); 64 bits never get there. */
static void put(u8 *data, const struct field *field, u64 value)
{
	switch (field->bits) {
	case 8:
		data[field->at] = min_t(u64, value, U8_MAX);
		break;
	case 16:
		put_unaligned_be16(min_t(u64, value, U16_MAX), data + field->at);
		break;
	case 32:
		put_unaligned_be32(min_t(u64, value, U32_MAX), data + field->at);
		break;
	default:
		put_unaligned_be64(value, data + field->at);
		break;
	}
}

static u64 get(const u8 *data, const struct field *field)
{
	switch (field->bits) {
	case 8:
		return data[field->at];
	case 16:
		return get_unaligned_be16(data + field->at);
	case 32:
		return get_unaligned_be32(data + field->at);
	default:
		return get_unaligned_be64(data + field->at);
	}
}

/*
 * A Set writes the selected counters: what is shown is what was counted since, plus what was
 * written. Each of the two attributes has its own zero, as they are separate counters.
 */
static void access(struct vhca_port *port, u8 *data, const struct field *fields, size_t n,
		   struct vhca_counters *base, u32 select)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct field *field = &fields[i];

		if (select & BIT(field->select))
			*at(base, field) = *at(&port->counters, field) - get(data, field);
	}
	for (i = 0; i < n; i++)
		put(data, &fields[i], *at(&port->counters, &fields[i]) - *at(base, &fields[i]));
}

static u16 port_counters(struct vhca_port *port, u8 *data, bool set)
{
	u32 select = set ? get_unaligned_be16(data + 2) | (data[18] & 1) << 16 : 0;
	u8 keep[4];

	memcpy(keep, data, sizeof(keep));
	if (!set)
		memset(data, 0, 64);
	memcpy(data, keep, sizeof(keep));
	access(port, data, counters, ARRAY_SIZE(counters), &port->counters_base[0], select);
	return VHCA_MAD_OK;
}

static u16 port_counters_ext(struct vhca_port *port, u8 *data, bool set)
{
	u32 select = set ? get_unaligned_be16(data + 2) : 0;

	access(port, data, counters_ext, ARRAY_SIZE(counters_ext), &port->counters_base[1],
	       select);
	return VHCA_MAD_OK;
}

static u16 class_port_info(u8 *data)
{
	memset(data, 0, 72);
	data[0] = 1;
	data[1] = 1;
	put_unaligned_be16(CAP_ALL_PORTS | CAP_EXT_WIDTH | CAP_XMIT_WAIT, data + 2);
	data[7] = RESPONSE_TIME;
	return VHCA_MAD_OK;
}

int vhca_pma(struct vhca_dev *dev, u32 num, struct ib_mad *mad)
{
	u8 *data = (u8 *)mad + DATA_AT, named = data[1];
	bool set = mad->mad_hdr.method == IB_MGMT_METHOD_SET;
	u16 status;

	if (!set && mad->mad_hdr.method != IB_MGMT_METHOD_GET) {
		if (mad->mad_hdr.method & IB_MGMT_METHOD_RESP)
			return IB_MAD_RESULT_SUCCESS;
		return vhca_mad_reply(&mad->mad_hdr, VHCA_MAD_BAD_METHOD);
	}
	if (mad->mad_hdr.class_version != 1)
		return vhca_mad_reply(&mad->mad_hdr, VHCA_MAD_BAD_CLASS);
	if (mad->mad_hdr.attr_id == cpu_to_be16(CLASS_PORT_INFO))
		return vhca_mad_reply(&mad->mad_hdr, set ? VHCA_MAD_BAD_METHOD :
				      class_port_info(data));
	/* An HCA's agent counts for the port that it is asked at, as QP1 is. */
	if (named != num && named != ALL_PORTS)
		return vhca_mad_reply(&mad->mad_hdr, VHCA_MAD_BAD_VALUE);
	switch (be16_to_cpu(mad->mad_hdr.attr_id)) {
	case PORT_COUNTERS:
		status = port_counters(vhca_port(dev, num), data, set);
		break;
	case PORT_COUNTERS_EXT:
		status = port_counters_ext(vhca_port(dev, num), data, set);
		break;
	default:
		status = VHCA_MAD_BAD_ATTRIBUTE;
		break;
	}
	return vhca_mad_reply(&mad->mad_hdr, status);
}
