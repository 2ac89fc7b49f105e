// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kernel sends a request again whose answer does not come, and tells the program when none has come at
 * all; libumad2sim has no clock, so we do it.
 */
#include <stdlib.h>
#include <string.h>

#include "manager.h"
#include "sma.h"

#define ANSWER_MS 1000	/* from outside */
#define RESEND_MS 50	/* within the model, where nothing takes that long */
#define RESENDS 3	/* OpenSM's transaction_retries */
#define HELD_MS 4000	/* from a subnet manager, which may be busy, or not answer yet */

static struct pending *add(struct fabric *f, uint32_t client, const uint8_t *mad, unsigned int ms)
{
	struct manager *m = f->manager;
	struct pending *pending = realloc(m->pending, (m->npending + 1) * sizeof(*pending));

	if (!pending)
		return NULL;
	m->pending = pending;
	pending += m->npending++;
	memset(pending, 0, sizeof(*pending));
	pending->client = client;
	pending->taker = NONE;
	pending->until_ms = m->now_ms + ms;
	memcpy(pending->mad, mad, 256);
	return pending;
}

void pending_expect(struct fabric *f, uint32_t client, const uint8_t *mad)
{
	add(f, client, mad, ANSWER_MS);
}

void pending_resend(struct fabric *f, uint32_t client, const struct mad_address *to,
		    const uint8_t *mad)
{
	struct pending *p = add(f, client, mad, RESEND_MS);

	if (!p)
		return;
	p->to = *to;
	p->tries = RESENDS;
}

void pending_hold(struct fabric *f, uint32_t client, uint32_t taker, const uint8_t *mad)
{
	struct pending *p = add(f, client, mad, HELD_MS);

	if (p)
		p->taker = taker;
}

void pending_taker_gone(struct manager *m, uint32_t taker)
{
	for (uint32_t i = 0; i < m->npending; i++) {
		if (m->pending[i].taker != taker)
			continue;
		m->pending[i].taker = NONE;
		m->pending[i].until_ms = m->now_ms;
	}
}

void pending_asked(struct manager *m, const uint8_t *mad)
{
	uint64_t tid = be64_at(mad + 8);

	for (uint32_t i = 0; i < ANSWERED && m->nanswered; i++)
		if (m->answered_tids[i] == tid)
			m->answered_tids[i] = 0;
}

/* What has been answered needs no care: who comes asks before it is answered. */
void pending_drop(struct manager *m, uint32_t client)
{
	for (uint32_t i = m->npending; i-- > 0;)
		if (m->pending[i].client == client)
			m->pending[i] = m->pending[--m->npending];
}

/* libumad2sim takes TrapRepress for a request, and writes its sender's agent into the middle of the transaction ID. */
static int answers(const uint8_t *mad, const uint8_t *request)
{
	if (mad[3] == SMP_REPRESS)
		return request[3] == SMP_TRAP && be16_at(mad + 8) == be16_at(request + 8) &&
		       be32_at(mad + 12) == be32_at(request + 12);
	return be64_at(mad + 8) == be64_at(request + 8);
}

int pending_waits(const struct manager *m, const uint8_t *mad)
{
	for (uint32_t i = 0; i < m->npending; i++)
		if (answers(mad, m->pending[i].mad))
			return 1;
	return 0;
}

int pending_came(struct manager *m, const uint8_t *mad)
{
	uint64_t tid = be64_at(mad + 8);

	for (uint32_t i = 0; i < m->npending; i++) {
		if (!answers(mad, m->pending[i].mad))
			continue;
		tid = be64_at(m->pending[i].mad + 8);
		m->pending[i] = m->pending[--m->npending];
		m->answered_tids[m->nanswered++ % ANSWERED] = tid;
		return 1;
	}
	for (uint32_t i = 0; i < ANSWERED; i++)
		if (tid && m->answered_tids[i] == tid)
			return 0;
	return 1;
}

int pending_expire(struct fabric *f)
{
	struct manager *m = f->manager;
	int wait = -1;

	for (uint32_t i = m->npending; i-- > 0;) {
		struct pending p;

		if (i >= m->npending)	/* answers have come meanwhile */
			continue;
		p = m->pending[i];
		if (p.until_ms > m->now_ms) {
			if (wait < 0 || p.until_ms - m->now_ms < (uint64_t)wait)
				wait = p.until_ms - m->now_ms;
			continue;
		}
		if (p.client < m->nclients && m->clients[p.client].fd >= 0 && p.tries) {
			m->pending[i].tries--;
			m->pending[i].until_ms = m->now_ms + RESEND_MS;
			mad_send(f, m->clients[p.client].port, &p.to, p.mad);
			wait = 0;
			continue;
		}
		m->pending[i] = m->pending[--m->npending];
		if (p.client < m->nclients && m->clients[p.client].fd >= 0)
			client_give_up(f, p.client, p.mad);
		wait = 0;	/* a client that is gone takes its own along: not all have been looked at */
	}
	return wait;
}
