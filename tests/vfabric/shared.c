// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The inside of an HCA whose functions share a port, see shared.h. */
#include <stdlib.h>
#include <string.h>

#include "../vhca/wire.h"
#include "ext_packet.h"
#include "shared.h"
#include "sma.h"

#define GRH_DGID_GUID (8u + 24u + 8u)	/* its lower half, from LRH on */
#define MAD_TID 8u
#define MAD_ATTR 16u
#define CLASS_CM 0x07
#define CM_REQ 0x10
#define CM_SIDR_REQ 0x17
#define CM_SIDR_REP 0x18
#define CM_LOCAL_ID 24u
#define CM_REMOTE_ID 28u
#define CM_REQ_GUID (24u + 72u + 8u)	/* of the primary path's remote GID (12.6.5) */
#define IDS 512u

/* Communication IDs that VFs gave out; a new one takes the place of the oldest. */
struct known_id {
	uint32_t id;
	uint8_t function;
};

struct hca {
	struct vhca_port_news news;
	uint8_t told;			/* there are news */
	struct known_id ids[IDS];
	unsigned int next_id;
};

struct hca *shared_new(void)
{
	return calloc(1, sizeof(struct hca));
}

static struct node *node_of(const struct fabric *f, uint32_t port)
{
	return &f->nodes[f->ports[port].node];
}

uint32_t shared_port(const struct fabric *f, uint32_t pf, unsigned int function)
{
	if (!is_shared(f, pf) || f->ports[pf].num != SHARED_PF)
		return function ? NONE : pf;
	return function + SHARED_PF <= node_of(f, pf)->nports ? pf + function : NONE;
}

uint32_t shared_pf_of(const struct fabric *f, uint32_t uplink)
{
	return is_shared(f, uplink) && f->ports[uplink].num == SHARED_UPLINK ? uplink + 1 : NONE;
}

/* Where a function's port is plugged in, or the PF's if there is no such function. */
static unsigned int port_num(const struct node *node, unsigned int function)
{
	return function + SHARED_PF <= node->nports ? function + SHARED_PF : SHARED_PF;
}

static unsigned int by_guid(const struct node *node, const uint8_t *guid)
{
	for (unsigned int i = 1; i + SHARED_PF <= node->nports; i++)
		if (be64_at(guid) && !memcmp(&node->hca->news.guids[i], guid, 8))
			return i;
	return 0;
}

static struct known_id *find_id(struct hca *hca, uint32_t id)
{
	for (unsigned int i = 0; i < IDS; i++)
		if (hca->ids[i].function && hca->ids[i].id == id)
			return &hca->ids[i];
	return NULL;
}

static void remember_id(struct hca *hca, uint32_t id, unsigned int function)
{
	struct known_id *known = find_id(hca, id);

	if (!known)
		known = &hca->ids[hca->next_id++ % IDS];
	known->id = id;
	known->function = function;
}

static unsigned int by_cm(const struct node *node, const uint8_t *mad)
{
	unsigned int attr = be16_at(mad + MAD_ATTR);
	const struct known_id *known;

	if (attr == CM_REQ)
		return by_guid(node, mad + CM_REQ_GUID);
	if (attr == CM_SIDR_REQ)
		return 0;
	known = find_id(node->hca, be32_at(mad + (attr == CM_SIDR_REP ? CM_LOCAL_ID : CM_REMOTE_ID)));
	return known ? known->function : 0;
}

/* Whose a GMP is that came for QP1; grh_guid: NULL without a GRH. An answer gets its asker's TID. */
static unsigned int gmp_for(const struct node *node, uint8_t *mad, const uint8_t *grh_guid)
{
	unsigned int function = 0;

	if (mad[3] & 0x80) {
		function = mad[MAD_TID];
		if (function + SHARED_PF > node->nports)
			return 0;
		mad[MAD_TID] = 0;
		return function;
	}
	if (mad[1] == CLASS_CM)
		function = by_cm(node, mad);
	if (!function && grh_guid)
		function = by_guid(node, grh_guid);
	return function;
}

/* A GMP that a VF sends. */
static void gmp_from(const struct node *node, unsigned int function, uint8_t *mad)
{
	if (!(mad[3] & 0x80) && mad[1] != CLASS_CM)
		mad[MAD_TID] = function;
	else if (mad[1] == CLASS_CM && be16_at(mad + MAD_ATTR) != CM_SIDR_REP)
		remember_id(node->hca, be32_at(mad + CM_LOCAL_ID), function);
}

static int is_own_lid(const struct node *node, uint16_t lid)
{
	const uint8_t *info = node->hca->news.info;
	uint16_t own = be16_at(info + 16);

	return own && lid >> (info[34] & 7) == own >> (info[34] & 7);
}

unsigned int shared_route(struct fabric *f, uint32_t port, struct packet *p)
{
	const struct node *node = node_of(f, port);
	uint8_t *bytes = p->bytes, *mad;
	unsigned int function;
	uint32_t qpn;

	if (f->ports[port].num != SHARED_UPLINK && !is_own_lid(node, p->dlid))
		return SHARED_UPLINK;
	if (!bytes)
		return SHARED_PF;
	qpn = ext_packet_qpn(bytes, p->len);
	mad = ext_packet_gmp(bytes, p->len);
	if (!mad)
		return port_num(node, qpn >> VHCA_FUNCTION_QPN_BITS);
	function = gmp_for(node, mad, (bytes[1] & 3) == 3 ? bytes + GRH_DGID_GUID : NULL);
	ext_packet_seal(bytes, p->len);
	return port_num(node, function);
}

uint32_t shared_route_mad(struct fabric *f, uint32_t port, uint8_t *mad)
{
	const struct node *node = node_of(f, port);

	if (f->ports[port].num != SHARED_UPLINK)
		return node->first + SHARED_UPLINK;
	if (mad[1] == CLASS_SM || mad[1] == CLASS_SM_DR)
		return node->first + SHARED_PF;
	return node->first + port_num(node, gmp_for(node, mad, NULL));
}

int shared_send(struct fabric *f, uint32_t port, unsigned int vl, uint8_t *bytes,
		unsigned int length)
{
	unsigned int function = f->ports[port].num - SHARED_PF;
	uint8_t *mad;

	if (!is_shared(f, port) || !function)
		return 1;
	if (vl == 15 || !ext_packet_qpn(bytes, length)) {
		f->ports[port].counters.xmit_discards++;
		f->drops[DROP_VF_QP0]++;
		return 0;
	}
	mad = ext_packet_gmp(bytes, length);
	if (mad) {
		gmp_from(node_of(f, port), function, mad);
		ext_packet_seal(bytes, length);
	}
	return 1;
}

/* The VFs are told that the port is down, when its PF is gone. */
void shared_pf(struct fabric *f, uint32_t port, int up)
{
	struct node *node = node_of(f, port);

	if (!is_shared(f, port) || f->ports[port].num != SHARED_PF)
		return;
	if (up) {
		link_up(f, node->first + SHARED_UPLINK);
		return;
	}
	link_down(f, node->first + SHARED_UPLINK);
	node->hca->news.info[32] = (node->hca->news.info[32] & 0xf0) | PORT_DOWN;
}

int shared_news(struct fabric *f, uint32_t port, const uint8_t *told, unsigned int length)
{
	struct node *node = node_of(f, port);

	if (!is_shared(f, port) || f->ports[port].num != SHARED_PF ||
	    length != sizeof(node->hca->news))
		return 0;
	memcpy(&node->hca->news, told, length);
	node->hca->told = 1;
	return 1;
}

const void *shared_told(const struct fabric *f, uint32_t port)
{
	const struct node *node = node_of(f, port);

	return is_shared(f, port) && f->ports[port].num > SHARED_PF && node->hca->told ?
		&node->hca->news : NULL;
}
