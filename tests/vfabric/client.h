/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The records that libumad2sim.so exchanges with a simulator, in host order unless said. */
#ifndef VF_CLIENT_H
#define VF_CLIENT_H

#include <stdint.h>

#define SIM_MAGIC 0xdeadbeefu
#define SIM_DATA 64

enum sim_type { SIM_ERROR, SIM_CONNECT, SIM_DISCONNECT, SIM_GET_PORT, SIM_GET_VENDOR, SIM_GET_GID,
		SIM_GET_GUID, SIM_GET_NODEINFO, SIM_GET_PORTINFO, SIM_SET_ISSM, SIM_GET_PKEYS };

/* A MAD with its addresses; LIDs, QPs and the length are big endian. */
struct sim_request {
	uint32_t dlid, slid, dqp, sqp, status;
	uint64_t length;
	uint8_t mad[256];
};

struct sim_ctl {
	uint32_t magic, clientid, type, len;
	char data[SIM_DATA];
};

struct sim_client_info {
	uint32_t id;		/* the client's pid; its number in the answer */
	uint32_t qp;
	uint32_t issm;
	char nodeid[32];
};

#endif
