/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An HCA whose functions share a port (SR-IOV's shared port model): one LID, one space of QPNs, one
 * QP1. In the model it is a switch that management does not see. Port 1 is the HCA's port, port 2
 * its PF (function 0), and function n is at port n + 2:
 *
 *	switch --- 1 [shared] 2 --- PF, "H1" of the topology
 *			      3 --- VF 1
 *
 * Data goes to the function to which the QPN belongs (QPN >> VHCA_FUNCTION_QPN_BITS). SMPs go to and
 * come from the PF alone. What a VF sends from its QP1 leaves as the PF's: answers come back by a
 * transaction ID whose first byte names the function, messages of the CM by the communication ID that
 * the function gave out or by the GID that a REQ names, anything else by the DGID of its GRH, if it
 * has one. The rest is the PF's. The PF says what the port's attributes are (VHCA_PORT); its VFs
 * are told the same.
 */
#ifndef VF_SHARED_H
#define VF_SHARED_H

#include "fabric.h"

enum shared_port_num { SHARED_UPLINK = 1, SHARED_PF = 2 };

/* What an HCA keeps beyond its node; free() ends it. */
struct hca *shared_new(void);

static inline int is_shared(const struct fabric *f, uint32_t port)
{
	return f->nodes[f->ports[port].node].shared;
}

/* The port of a function of the PF at @pf, or NONE. */
uint32_t shared_port(const struct fabric *f, uint32_t pf, unsigned int function);
/* The PF's port, if this is the port that the functions share, or NONE. */
uint32_t shared_pf_of(const struct fabric *f, uint32_t uplink);
/* The number of the port by which a packet leaves that came by @port. */
unsigned int shared_route(struct fabric *f, uint32_t port, struct packet *p);
/* The port by which a MAD leaves that came by @port on the management plane. */
uint32_t shared_route_mad(struct fabric *f, uint32_t port, uint8_t *mad);
/* What comes from a real HCA, before anything else. Return: 0 if it may not be sent, and is counted. */
int shared_send(struct fabric *f, uint32_t port, unsigned int vl, uint8_t *bytes,
		unsigned int length);
/* The real HCA at @port has come or gone: if it is a PF, so has the shared port. */
void shared_pf(struct fabric *f, uint32_t port, int up);
/* What the real HCA at @port has told of its port. Return: 0 if nobody is to be told of it. */
int shared_news(struct fabric *f, uint32_t port, const uint8_t *told, unsigned int length);
/* The struct vhca_port_news that a VF at @port is to be told; NULL: none yet, or no VF. */
const void *shared_told(const struct fabric *f, uint32_t port);

#endif
