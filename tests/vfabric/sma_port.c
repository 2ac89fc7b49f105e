// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* PortInfo, and the link state machine as an SM drives it (IBA 1.2.1 vol 1, 7.2 and 14.2.5.6). */
#include <string.h>

#include "journal.h"
#include "manager.h"
#include "sma.h"

static unsigned int op_vls(unsigned int code)
{
	static const uint8_t vls[] = { 0, 1, 2, 4, 8, 15 };

	return code < sizeof(vls) ? vls[code] : 0;
}

static uint8_t code_of_vls(unsigned int vls)
{
	return vls >= 15 ? 5 : vls >= 8 ? 4 : vls >= 4 ? 3 : vls >= 2 ? 2 : 1;
}

void sma_port_info_now(struct fabric *f, uint32_t at, unsigned int local, uint8_t *data)
{
	const struct port *port = &f->ports[at];
	const struct port_sma *ps = &f->port_sma[at];
	int port0 = port->is_switch && !port->num;

	memcpy(data, ps->info, 64);
	put_be16(data + 16, port->lid);
	put_be16(data + 18, port->smlid);
	if (ps->is_sm)
		put_be32(data + 20, be32_at(data + 20) | 2);
	data[28] = local;
	data[32] = (data[32] & 0xf0) | (port0 ? PORT_ACTIVE : port->state);
	data[33] = (port0 ? PHYS_LINKUP : port->phys) << 4 | (data[33] & 15);
	data[34] = (data[34] & 0xc0) | port->lmc;
	data[51] &= 0x7f;
}

static unsigned int set_state(struct fabric *f, uint32_t at, unsigned int state,
			      unsigned int phys)
{
	struct port *port = &f->ports[at];

	if (phys == PHYS_DISABLED) {
		if (port->up)
			link_down(f, at);
		port->phys = PHYS_DISABLED;
		return 0;
	}
	if (phys == PHYS_POLLING) {
		if (port->up)
			link_down(f, at);
		port->phys = PHYS_POLLING;
		link_up(f, at);
		return 0;
	}
	if (phys == 1)		/* sleeping is not modelled */
		return MAD_BAD_VALUE;
	switch (state) {
	case 0:
		return 0;
	case PORT_DOWN:
		if (port->up) {
			link_down(f, at);
			link_up(f, at);
		}
		return 0;
	case PORT_ARMED:
		if (port->state == PORT_INIT || port->state == PORT_ARMED) {
			port_set_state(f, at, PORT_ARMED);
			return 0;
		}
		break;
	case PORT_ACTIVE:
		if (port->state == PORT_ARMED || port->state == PORT_ACTIVE) {
			port_set_state(f, at, PORT_ACTIVE);
			return 0;
		}
		break;
	}
	return MAD_BAD_VALUE;
}

static void set_lid(struct fabric *f, uint32_t at, uint16_t lid, uint8_t lmc)
{
	struct port *port = &f->ports[at];
	unsigned int i;

	for (i = 0; i < 1u << port->lmc; i++)
		if (port->lid + i < UCAST_LIDS && f->lids[port->lid + i] == at)
			f->lids[port->lid + i] = NONE;
	port->lid = lid;
	port->lmc = lmc;
	for (i = 0; lid && i < 1u << lmc; i++)
		if (lid + i < UCAST_LIDS)
			f->lids[lid + i] = at;
	journal_lid(f, at);
}

/* What can not be is refused as a whole; but for states, of which the link is asked last. */
static int values_ok(const struct fabric *f, uint32_t at, const uint8_t *data)
{
	const struct port *port = &f->ports[at];
	unsigned int lid = be16_at(data + 16), lmc = data[34] & 7, vls = data[43] >> 4;
	int port0 = port->is_switch && !port->num;

	if ((!port->is_switch || port0) &&
	    (lid >= UCAST_LIDS || lid & ((1u << lmc) - 1) ||
	     (port0 && lmc && !f->nodes[port->node].net->esp0)))
		return 0;
	return port0 || (data[36] >> 4 <= 5 && (!vls || (op_vls(vls) && vls <= code_of_vls(f->config.vls))));
}

/* What an SM may write and the model keeps for it. */
static unsigned int set(struct fabric *f, uint32_t at, const uint8_t *data)
{
	struct port *port = &f->ports[at];
	struct port_sma *ps = &f->port_sma[at];
	uint8_t *info = ps->info;
	unsigned int vls = op_vls(data[43] >> 4), mtu = data[36] >> 4, lmc = data[34] & 7;
	int end_port = !port->is_switch || !port->num;

	if (!values_ok(f, at, data))
		return MAD_BAD_VALUE;
	if (end_port) {
		memcpy(info, data, 16);			/* M_Key, GidPrefix */
		put_be16(info + 26, be16_at(data + 26));
		info[34] = data[34] & 0xc0;
		info[51] = data[51] & 0x1f;
		/* It is set to 0 only (14.2.5.6). */
		if (!be16_at(data + 44))
			put_be16(info + 44, 0);
		set_lid(f, at, be16_at(data + 16), lmc);
		port->smlid = be16_at(data + 18);
		info[36] = (info[36] & 0xf0) | (data[36] & 15);
	}
	if (port->is_switch && !port->num)
		return 0;
	/* 0 and 0xff mean no change and all that is supported. */
	if (data[29])
		info[29] = data[29] == 0xff ? info[30] : data[29] & info[30];
	if ((data[35] & 15) == 15)
		info[35] = (info[35] & 0xf0) | info[32] >> 4;
	else if (data[35] & 15)
		info[35] = (info[35] & 0xf0) | (data[35] & (info[32] >> 4));
	if (mtu) {
		info[36] = mtu << 4 | (info[36] & 15);
		port->mtu = 128u << mtu;
	}
	if (data[43] >> 4) {
		port->op_vls = vls;
		journal_state(f, at);
		info[43] = data[43];
	}
	info[43] = (info[43] & 0xf0) | (data[43] & 15);
	port->enforce_in = data[43] >> 3 & 1;
	port->enforce_out = data[43] >> 2 & 1;
	info[38] = data[38];
	port->arbiter->limit = data[38];
	info[42] = data[42];
	port->stall_count = data[42] >> 5;
	port_set_hoq(port, f->config.endless ? CLOCK_NEVER : life_time(data[42] & 31));
	info[53] = data[53];
	info[33] = (info[33] & 0xf0) | (data[33] & 15 ? data[33] & 15 : info[33] & 15);
	return set_state(f, at, data[32] & 15, data[33] >> 4);
}

unsigned int sma_port_info(struct fabric *f, uint32_t node, unsigned int num, unsigned int local,
			   int is_set, uint8_t *data)
{
	unsigned int status = 0;
	uint32_t at;

	if (f->nodes[node].type != NET_SWITCH && !num)
		num = local;
	if (num > f->nodes[node].nports)
		return MAD_BAD_VALUE;
	at = f->nodes[node].first + num;
	if (is_set)
		status = set(f, at, data);
	sma_port_info_now(f, at, local, data);
	return status;
}
