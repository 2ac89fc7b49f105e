/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets as bytes, LRH..ICRC, and what the model knows of them. */
#ifndef VF_EXT_PACKET_H
#define VF_EXT_PACKET_H

#include "manager.h"

#define EXT_MIN_PACKET (8u + 12u + 4u)
#define EXT_MAD_PACKET (8u + 12u + 8u + 256u + 4u)

/* A packet of the model from bytes, or NONE if they are malformed. */
uint32_t ext_packet_from(struct fabric *f, const uint8_t *bytes, unsigned int length);
/* A packet for QP0 or QP1 of an agent: over the management plane. Others are not for us. */
void ext_packet_mad(struct fabric *f, uint32_t port, const uint8_t *bytes, unsigned int length);
/* Writes EXT_MAD_PACKET bytes. Return: the VL. */
unsigned int ext_packet_of_mad(const struct mad_address *address, const uint8_t *mad,
			       uint8_t *packet);
/* The invariant CRC of a packet, over all but its last four bytes; it is written there by seal. */
uint32_t ext_packet_icrc(const uint8_t *packet, unsigned int length);
void ext_packet_seal(uint8_t *packet, unsigned int length);
/* The destination QPN; 0 also if the packet is malformed. */
uint32_t ext_packet_qpn(const uint8_t *packet, unsigned int length);
/* The MAD in a packet for QP1, or NULL. */
uint8_t *ext_packet_gmp(uint8_t *packet, unsigned int length);

#endif
