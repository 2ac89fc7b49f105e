/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Questions to nodes of a live subnet, some at a time. Only Gets: nothing is changed. */
#ifndef REPATH_FABRIC_MADS_H
#define REPATH_FABRIC_MADS_H

#include <stdbool.h>
#include <stdint.h>

#define MAD_BYTES	256
#define MADS_HOPS	63

/* Management classes (IBA 1.2.1 vol 1, 13.4.4). */
enum mads_class {
	MADS_SUBNET = 0x81,	/* along a directed route */
	MADS_SA = 0x03,
	MADS_COUNTERS = 0x04,
};

/**
 * struct ask - one question
 * @class: to which agent
 * @attribute: attribute ID
 * @modifier: attribute modifier
 * @hops: of a directed route, and
 * @path: the port by which each of its nodes is left, from [1] on
 * @lid: of others: where to
 * @data: goes into the MAD behind its header, from @data_at on
 * @data_at: offset
 * @data_bytes: how much
 * @node: for the asker
 * @port: for the asker
 */
struct ask {
	uint8_t class;
	uint16_t attribute;
	uint32_t modifier;
	uint8_t hops;
	uint8_t path[MADS_HOPS + 1];
	uint16_t lid;
	uint8_t data[72];
	uint8_t data_at;
	uint8_t data_bytes;
	unsigned int node;
	unsigned int port;
};

struct mads;

#define MADS_SILENT	0x10000	/* no status that a MAD can have: nobody has answered */

/* The whole answer, or NULL with its status (13.4.7), or MADS_SILENT. More may be asked in it. */
typedef void mads_answered(void *context, const struct ask *ask, const uint8_t *answer,
			   unsigned int status);

/* At a port of this machine, NULL and 0: the first that is up. NULL with errno. */
struct mads *mads_open(const char *device, unsigned int port);
void mads_close(struct mads *m);
/* The LID of the subnet manager, where its SA is. */
unsigned int mads_sm_lid(const struct mads *m);
/* The number of the port that is asked from. */
unsigned int mads_port(const struct mads *m);
void mads_ask(struct mads *m, const struct ask *ask);
/* How many questions wait to be sent. */
unsigned int mads_waiting(const struct mads *m);
/* Until all are answered. False with errno if asking is not possible any more. */
bool mads_run(struct mads *m, mads_answered *answered, void *context);

#endif /* REPATH_FABRIC_MADS_H */
