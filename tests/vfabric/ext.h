/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Cables to real HCAs: ../vhca/wire.h over datagram sockets. */
#ifndef VF_EXT_H
#define VF_EXT_H

#include "fabric.h"
#include "manager.h"

#define TAG_EXT 0x200000000ull

/**
 * ext_listen() - take HCAs at a socket
 * @where: unix:PATH; udp:ADDRESS:PORT with an address in 127.0.0.0/8; or net:ADDRESS:PORT with any,
 *	for guests on a network that nobody else is on
 * Return: 0, or -1 with errno.
 */
int ext_listen(struct fabric *f, const char *where, int epoll);
void ext_close(struct fabric *f);
void ext_ready(struct fabric *f, uint64_t tag);
/* What has to be done by the clock: keep-alives, silence. Return: ms to the next call, or -1. */
int ext_tick(struct fabric *f, uint64_t now_ms);
void ext_send_mad(struct fabric *f, uint32_t port, const struct mad_address *address,
		  const uint8_t *mad);
void ext_deliver(struct fabric *f, uint32_t port, uint32_t packet);
/* A packet is at the end of a cable with faults: at the HCA, or at the switch's port. */
void ext_leave(struct fabric *f, uint32_t port, uint32_t packet);
void ext_arrive(struct fabric *f, uint32_t port, uint32_t packet);
/* Pulls the cable of a switch port out of its HCA, or puts it back. Return: -1 if it can not be. */
int ext_plug(struct fabric *f, uint32_t port, int in);
/* Has the HCA whose cable was pulled out of a switch port ask anew. Return: -1 if there is none. */
int ext_dismiss(struct fabric *f, uint32_t port);
/* The link of a switch port has gone down at this end: its HCA is to know. */
void ext_down(struct fabric *f, uint32_t port);
/* Those attached, a line each, with what they have not read yet. */
void ext_print(const struct fabric *f, FILE *file);
/* Packets that real HCAs were sent: SLID, DLID, data VL and how many, a line each. */
void ext_paths_print(const struct fabric *f, FILE *file);
/* Room was freed in the input buffers of a port. */
void ext_room(struct fabric *f, uint32_t port);

#endif
