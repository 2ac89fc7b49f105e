/* SPDX-License-Identifier: GPL-2.0 */
/* The cable of a port: wire.h over a UDP socket, and the pump that moves packets both ways. */
#ifndef VHCA_WIRE_LINK_H
#define VHCA_WIRE_LINK_H

#include "vhca.h"

/* What comes before vhca_wire_open(): a port without a cable. */
void vhca_wire_init(struct vhca_port *port);

/**
 * vhca_wire_open() - plug a port in: attaching goes on by itself, for as long as it takes
 *
 * May sleep. Return: 0 or an error of the socket.
 */
int vhca_wire_open(struct vhca_port *port);

/* Pulls it out, with a BYE. When this returns nothing of the port runs any more. */
void vhca_wire_close(struct vhca_port *port);

/* Something is there for the pump to do. Any context. */
void vhca_wire_kick(struct vhca_port *port);

/* What LinkSpeedActive and LinkWidthActive come to, in Mbit/s of data. */
u32 vhca_wire_mbps(const struct vhca_port *port);

#endif
