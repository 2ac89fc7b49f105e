/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A cable to a real HCA, as ext.c, which keeps it, and ext_wire.c, which carries packets, see it. */
#ifndef VF_EXT_CABLE_H
#define VF_EXT_CABLE_H

#include "../vhca/wire.h"
#include "ext.h"
#include "ext_socket.h"

#define MAX_CABLES 256

struct cable {
	uint32_t port;			/* of the switch */
	struct sockaddr_storage to;
	socklen_t to_size;
	uint32_t session, sequence, next;	/* next: the HCA's sequence */
	uint64_t guid, heard_ms, told_ms;
	uint32_t sent[VHCA_VLS], received[VHCA_VLS], peer_limit[VHCA_VLS], told[VHCA_VLS];
	/* Blocks that are on a cable with faults: out of the lane and not sent; received and not in. */
	uint32_t leaving[VHCA_VLS], coming[VHCA_VLS];
	uint32_t doubled[VHCA_VLS];	/* blocks of the room that second ones may have taken */
	uint8_t used, hca_port, function, version, up, era;
	uint8_t pulled;			/* by the console: it stays down, whatever the HCA says */
	struct ext_backlog late;
};

#define EXT_PATHS 4096	/* more than these are not told apart */

struct ext_path {
	uint16_t slid, dlid;
	uint8_t vl;
	uint64_t packets;
};

struct ext_paths {
	struct ext_path all[EXT_PATHS];		/* a hash table; no packets: free */
	uint64_t others;
};

struct ext {
	int fd;
	int ncables;			/* those behind were never used */
	uint64_t now_ms;
	struct cable cables[MAX_CABLES];
	struct ext_paths paths;
	uint8_t message[sizeof(struct vhca_header) + VHCA_MAX_PACKET + 1];
};

/* The cable of a switch's port, or NULL. */
struct cable *ext_cable_of(const struct fabric *f, uint32_t port);
void ext_tell(struct fabric *f, struct cable *c, enum vhca_type type, unsigned int vl,
	      const void *body, unsigned int length);
/* ext_wire.c: what an HCA has sent. */
void ext_data(struct fabric *f, struct cable *c, unsigned int vl, uint8_t *body,
	      unsigned int length);
void ext_paths_count(struct ext_paths *paths, uint16_t slid, uint16_t dlid, uint8_t vl);

/* Blocks of the room of a VL's input buffer that are not to be promised. */
static inline uint32_t ext_taken(const struct fabric *f, const struct cable *c, unsigned int vl)
{
	return queue_held(f, c->port * f->config.vls + vl) + c->coming[vl];
}

#endif
