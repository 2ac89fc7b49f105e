// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Paper VI's algorithm 1: one table of GUIDs that are in use, and of those that may come back. */
#include <stdlib.h>

#include "moves.h"

#define NOBODY UINT32_MAX

/* A GUID. Those that are gone form a list, the oldest first. */
struct entry {
	uint64_t guid, since;		/* since: gone, ns */
	uint32_t chain;			/* the next in its bucket, or in the free list */
	uint32_t older, newer;		/* if gone */
	uint16_t lid;
	uint8_t present, used, seen;
};

struct moves {
	struct moves_counts counts;
	uint64_t keep;
	unsigned int limit;
	struct entry *entries;
	uint32_t *buckets;
	uint32_t room, free;		/* room: entries, and buckets; a power of two or 0 */
	uint32_t oldest, newest;
};

struct moves *moves_new(uint64_t keep, unsigned int limit)
{
	struct moves *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->keep = keep;
	m->limit = limit;
	m->free = m->oldest = m->newest = NOBODY;
	return m;
}

void moves_free(struct moves *m)
{
	if (!m)
		return;
	free(m->entries);
	free(m->buckets);
	free(m);
}

const struct moves_counts *moves_counts(const struct moves *m)
{
	return &m->counts;
}

static uint32_t *bucket_of(const struct moves *m, uint64_t guid)
{
	return &m->buckets[guid * 0x9e3779b97f4a7c15ull >> 32 & (m->room - 1)];
}

static struct entry *find(const struct moves *m, uint64_t guid)
{
	uint32_t i;

	if (!m->room)
		return NULL;
	for (i = *bucket_of(m, guid); i != NOBODY; i = m->entries[i].chain)
		if (m->entries[i].guid == guid)
			return &m->entries[i];
	return NULL;
}

static int grow(struct moves *m)
{
	uint32_t room = m->room ? m->room * 2 : 64;
	uint32_t *buckets = malloc(room * sizeof(*buckets));
	struct entry *entries = realloc(m->entries, room * sizeof(*entries));

	if (entries)
		m->entries = entries;
	if (!buckets || !entries) {
		free(buckets);
		return -1;
	}
	free(m->buckets);
	m->buckets = buckets;
	for (uint32_t i = 0; i < room; i++)
		buckets[i] = NOBODY;
	for (uint32_t i = m->room; i < room; i++) {
		entries[i].used = 0;
		entries[i].chain = m->free;
		m->free = i;
	}
	m->room = room;
	for (uint32_t i = 0; i < room; i++) {
		if (!entries[i].used)
			continue;
		entries[i].chain = *bucket_of(m, entries[i].guid);
		*bucket_of(m, entries[i].guid) = i;
	}
	return 0;
}

static struct entry *add(struct moves *m, uint64_t guid)
{
	struct entry *e;

	if (m->free == NOBODY && grow(m))
		return NULL;
	e = &m->entries[m->free];
	m->free = e->chain;
	e->guid = guid;
	e->used = 1;
	e->chain = *bucket_of(m, guid);
	*bucket_of(m, guid) = e - m->entries;
	return e;
}

static void remove_entry(struct moves *m, struct entry *e)
{
	uint32_t number = e - m->entries, *at = bucket_of(m, e->guid);

	while (*at != number)
		at = &m->entries[*at].chain;
	*at = e->chain;
	e->used = 0;
	e->chain = m->free;
	m->free = number;
}

static void gone(struct moves *m, struct entry *e, uint64_t now)
{
	uint32_t number = e - m->entries;

	e->present = 0;
	e->since = now;
	e->older = m->newest;
	e->newer = NOBODY;
	if (m->newest == NOBODY)
		m->oldest = number;
	else
		m->entries[m->newest].newer = number;
	m->newest = number;
	m->counts.present--;
	m->counts.absent++;
}

static void not_gone(struct moves *m, struct entry *e)
{
	if (e->older == NOBODY)
		m->oldest = e->newer;
	else
		m->entries[e->older].newer = e->newer;
	if (e->newer == NOBODY)
		m->newest = e->older;
	else
		m->entries[e->newer].older = e->older;
	m->counts.absent--;
}

/* Entries that never come back. */
static void forget(struct moves *m, uint64_t now)
{
	while (m->oldest != NOBODY) {
		struct entry *e = &m->entries[m->oldest];

		if (m->counts.absent <= m->limit && now - e->since <= m->keep)
			return;
		not_gone(m, e);
		remove_entry(m, e);
		m->counts.forgotten++;
	}
}

static void present(struct moves *m, struct entry *e, uint16_t lid)
{
	e->lid = lid;
	e->present = 1;
	e->seen = 1;
	m->counts.present++;
}

int moves_set(struct moves *m, uint64_t guid, uint16_t lid, uint64_t now, moves_tell tell,
	      void *context)
{
	struct entry *e;
	uint16_t old;

	forget(m, now);
	e = find(m, guid);
	if (!e) {
		e = add(m, guid);
		if (!e)
			return -1;
		present(m, e, lid);
		m->counts.boots++;
		return 0;
	}
	old = e->lid;
	if (e->present) {
		e->lid = lid;
		e->seen = 1;
		if (old == lid)
			return 0;
	} else {
		not_gone(m, e);
		present(m, e, lid);
		if (old == lid) {
			m->counts.reboots++;
			return 0;
		}
	}
	m->counts.moves++;
	tell(context, guid, old, lid);
	return 0;
}

void moves_delete(struct moves *m, uint64_t guid, uint16_t lid, uint64_t now)
{
	struct entry *e = find(m, guid);

	if (e && e->present && e->lid == lid)
		gone(m, e, now);
	forget(m, now);
}

void moves_all_set(struct moves *m, uint64_t now)
{
	for (uint32_t i = 0; i < m->room; i++) {
		struct entry *e = &m->entries[i];

		if (!e->used || !e->present)
			continue;
		if (!e->seen)
			gone(m, e, now);
		e->seen = 0;
	}
	forget(m, now);
}
