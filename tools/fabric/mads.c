// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Questions by libibumad: sixteen under way, told apart by their transaction IDs. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/umad.h>
#include "fabric.h"
#include "mads.h"

#define UNDER_WAY	16
#define TIMEOUT_MS	500
#define RETRIES		3
#define SA_VERSION	2
#define GET		1
#define GMP_QKEY	0x80010000u

enum { AT_METHOD = 3, AT_HOP_COUNT = 7, AT_TID = 8, AT_ATTRIBUTE = 16, AT_MODIFIER = 20,
	AT_DR_SLID = 32, AT_DR_DLID = 34, AT_PATH = 128 };

struct slot {
	struct ask ask;
	bool busy;
	uint32_t number;
};

struct mads {
	int port;
	umad_port_t info;
	int agent[3];
	struct slot slot[UNDER_WAY];
	unsigned int busy;
	uint32_t number;
	struct ask *queue;
	unsigned int head, tail, room;	/* of the queue; it is compacted when it grows */
	void *umad;
};

static const struct {
	uint8_t class;
	uint8_t version;
} classes[] = { { MADS_SUBNET, 1 }, { MADS_SA, SA_VERSION }, { MADS_COUNTERS, 1 } };

struct mads *mads_open(const char *device, unsigned int port)
{
	struct mads *m = fabric_alloc(1, sizeof(*m));

	m->port = umad_init() ? -EIO : umad_open_port(device, port);
	if (m->port < 0) {
		errno = -m->port;
		free(m);
		return NULL;
	}
	m->umad = fabric_alloc(1, umad_size() + MAD_BYTES);
	if (umad_get_port(device, port, &m->info))
		goto fail;
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		m->agent[i] = umad_register(m->port, classes[i].class, classes[i].version, 0, NULL);
		if (m->agent[i] < 0) {
			umad_release_port(&m->info);
			goto fail;
		}
	}
	return m;
fail:
	umad_close_port(m->port);
	free(m->umad);
	free(m);
	errno = EIO;
	return NULL;
}

void mads_close(struct mads *m)
{
	umad_release_port(&m->info);
	umad_close_port(m->port);
	free(m->umad);
	free(m->queue);
	free(m);
}

unsigned int mads_sm_lid(const struct mads *m)
{
	return m->info.sm_lid;
}

unsigned int mads_port(const struct mads *m)
{
	return m->info.portnum;
}

unsigned int mads_waiting(const struct mads *m)
{
	return m->tail - m->head;
}

void mads_ask(struct mads *m, const struct ask *ask)
{
	if (m->tail == m->room) {
		unsigned int n = mads_waiting(m);
		struct ask *more = fabric_alloc(2ul * n + 64, sizeof(*more));

		if (n)
			memcpy(more, m->queue + m->head, n * sizeof(*more));
		free(m->queue);
		m->queue = more;
		m->room = 2 * n + 64;
		m->head = 0;
		m->tail = n;
	}
	m->queue[m->tail++] = *ask;
}

static void put16(uint8_t *at, uint16_t v)
{
	v = htobe16(v);
	memcpy(at, &v, sizeof(v));
}

static void put32(uint8_t *at, uint32_t v)
{
	v = htobe32(v);
	memcpy(at, &v, sizeof(v));
}

static bool send_one(struct mads *m, unsigned int s, const struct ask *ask)
{
	unsigned int agent = 0;
	uint8_t *mad;

	while (classes[agent].class != ask->class)
		agent++;
	m->slot[s].ask = *ask;
	m->slot[s].number = ++m->number;
	memset(m->umad, 0, umad_size() + MAD_BYTES);
	mad = umad_get_mad(m->umad);
	mad[0] = 1;
	mad[1] = ask->class;
	mad[2] = classes[agent].version;
	mad[AT_METHOD] = GET;
	/* The kernel has the upper half of a transaction ID for itself. */
	put32(mad + AT_TID + 4, m->number * UNDER_WAY + s);
	put16(mad + AT_ATTRIBUTE, ask->attribute);
	put32(mad + AT_MODIFIER, ask->modifier);
	memcpy(mad + ask->data_at, ask->data, ask->data_bytes);
	if (ask->class == MADS_SUBNET) {
		mad[AT_HOP_COUNT] = ask->hops;
		put16(mad + AT_DR_SLID, 0xffff);
		put16(mad + AT_DR_DLID, 0xffff);
		memcpy(mad + AT_PATH, ask->path, sizeof(ask->path));
		umad_set_addr(m->umad, 0xffff, 0, 0, 0);
	} else {
		umad_set_addr(m->umad, ask->lid, 1, m->info.sm_sl, GMP_QKEY);
	}
	if (umad_send(m->port, m->agent[agent], m->umad, MAD_BYTES, TIMEOUT_MS, RETRIES))
		return false;
	m->slot[s].busy = true;
	m->busy++;
	return true;
}

static bool send_some(struct mads *m)
{
	for (unsigned int s = 0; s < UNDER_WAY && mads_waiting(m); s++) {
		struct ask ask;

		if (m->slot[s].busy)
			continue;
		ask = m->queue[m->head++];
		if (m->head == m->tail)
			m->head = m->tail = 0;
		if (!send_one(m, s, &ask))
			return false;
	}
	return true;
}

static bool receive_one(struct mads *m, mads_answered *answered, void *context)
{
	int length = MAD_BYTES;
	uint8_t answer[MAD_BYTES];
	unsigned int status;
	struct slot *slot;
	struct ask ask;
	uint32_t tid;
	uint8_t *mad;

	/* Each send has a time-out of its own, and then comes back: this one is for a dead kernel. */
	if (umad_recv(m->port, m->umad, &length, TIMEOUT_MS * (RETRIES + 2) * UNDER_WAY) < 0)
		return false;
	mad = umad_get_mad(m->umad);
	memcpy(&tid, mad + AT_TID + 4, sizeof(tid));
	tid = be32toh(tid);
	slot = &m->slot[tid % UNDER_WAY];
	if (!slot->busy || (slot->number * UNDER_WAY + tid % UNDER_WAY) != tid)
		return true;
	slot->busy = false;
	m->busy--;
	ask = slot->ask;
	memcpy(answer, mad, sizeof(answer));
	/* Bit 15 of a directed route's status is its direction. */
	status = umad_status(m->umad) ? MADS_SILENT : (answer[4] & 0x7f) << 8 | answer[5];
	answered(context, &ask, status ? NULL : answer, status);
	return true;
}

bool mads_run(struct mads *m, mads_answered *answered, void *context)
{
	while (mads_waiting(m) || m->busy)
		if (!send_some(m) || (m->busy && !receive_one(m, answered, context)))
			return false;
	return true;
}
