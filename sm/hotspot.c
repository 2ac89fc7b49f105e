// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* dFtree's equations 1 to 3 and algorithm 1: hot spots, contributors, lanes. */
#include <stdlib.h>
#include <string.h>

#include "hotspot.h"

#define NOBODY UINT32_MAX

/* One counter of one port. */
struct reading {
	uint64_t when;		/* of the last one, ns; 0: none yet */
	double per_s;
	uint8_t fresh;		/* since the sweep before */
};

struct end {
	struct reading waited, sent;
};

struct link {
	struct hotspot_link at;
	struct end at_switch, at_host;
	uint32_t *contributors;		/* bits by link; NULL: no hot spot */
	unsigned int streak;		/* sweeps above the threshold, or below its lower one if hot */
};

/* An end of a link by its node and port; link: number * 2, and 1 for the host's. */
struct slot {
	uint64_t guid;
	uint32_t link;
	uint8_t port;
};

struct hotspot {
	struct hotspot_rules rules;
	struct hotspot_counts counts;
	struct link *links;
	struct slot *slots;
	uint32_t nlinks, mask;		/* mask: slots - 1, a power of two */
};

static uint32_t hash(uint64_t guid, uint8_t port)
{
	return (guid + port) * 0x9e3779b97f4a7c15ull >> 32;
}

/* The slot where that end is or would be; there are always free ones. */
static struct slot *find(struct slot *slots, uint32_t mask, uint64_t guid, uint8_t port)
{
	uint32_t i = hash(guid, port) & mask;

	while (slots[i].link != NOBODY && (slots[i].guid != guid || slots[i].port != port))
		i = (i + 1) & mask;
	return &slots[i];
}

static void put(struct slot *slots, uint32_t mask, uint64_t guid, uint8_t port, uint32_t link)
{
	struct slot *slot = find(slots, mask, guid, port);

	slot->guid = guid;
	slot->port = port;
	slot->link = link;
}

static struct end *find_end(struct hotspot *h, uint64_t guid, uint8_t port)
{
	uint32_t link;

	if (!h->slots)
		return NULL;
	link = find(h->slots, h->mask, guid, port)->link;
	if (link == NOBODY)
		return NULL;
	return link & 1 ? &h->links[link / 2].at_host : &h->links[link / 2].at_switch;
}

struct hotspot *hotspot_new(const struct hotspot_rules *rules)
{
	struct hotspot *h = calloc(1, sizeof(*h));

	if (h)
		h->rules = *rules;
	return h;
}

static void free_links(struct link *links, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(links[i].contributors);
	free(links);
}

void hotspot_free(struct hotspot *h)
{
	if (!h)
		return;
	free_links(h->links, h->nlinks);
	free(h->slots);
	free(h);
}

const struct hotspot_counts *hotspot_counts(const struct hotspot *h)
{
	return &h->counts;
}

static size_t bitmap_bytes(uint32_t n)
{
	return (n + 31) / 32 * sizeof(uint32_t);
}

static int is_set(const uint32_t *bits, uint32_t i)
{
	return bits[i / 32] >> i % 32 & 1;
}

static void tell_fast(struct hotspot *h, const struct link *hot, hotspot_tell tell, void *context)
{
	for (uint32_t i = 0; i < h->nlinks; i++) {
		if (!is_set(hot->contributors, i))
			continue;
		h->counts.contributors--;
		h->counts.fast++;
		tell(context, HOTSPOT_FAST, hot->at.lid, h->links[i].at.lid);
	}
}

static void end_hot(struct hotspot *h, struct link *hot, hotspot_tell tell, void *context)
{
	tell_fast(h, hot, tell, context);
	free(hot->contributors);
	hot->contributors = NULL;
	hot->streak = 0;
	h->counts.hot--;
	h->counts.ended++;
}

/* The link of the same host's port, as it was before: its number, or NOBODY. */
static uint32_t before(struct hotspot *h, const struct hotspot_link *at)
{
	uint32_t link;

	if (!h->slots)
		return NOBODY;
	link = find(h->slots, h->mask, at->host_guid, at->host_port)->link;
	return link == NOBODY || !(link & 1) ? NOBODY : link / 2;
}

/* Moves the contributors' bits from the old numbers to the new ones; those that are gone, go. */
static void renumber(struct hotspot *h, uint32_t *to, const uint32_t *from,
		     const struct hotspot_link *links, uint32_t n)
{
	for (uint32_t i = 0; i < h->nlinks; i++)
		h->counts.contributors -= is_set(from, i);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t old = before(h, &links[i]);

		if (old == NOBODY || !is_set(from, old))
			continue;
		to[i / 32] |= 1u << i % 32;
		h->counts.contributors++;
	}
}

static int same_cable(const struct hotspot_link *a, const struct hotspot_link *b)
{
	return a->switch_guid == b->switch_guid && a->switch_port == b->switch_port;
}

/* New links with what is known of the old ones, but for contributors, which need no memory then. */
static struct link *make_links(struct hotspot *h, const struct hotspot_link *links, uint32_t n)
{
	struct link *made = calloc(n ? n : 1, sizeof(*made));

	for (uint32_t i = 0; made && i < n; i++) {
		uint32_t old = before(h, &links[i]);

		if (old != NOBODY) {
			made[i].at_host = h->links[old].at_host;
			if (same_cable(&links[i], &h->links[old].at))
				made[i].at_switch = h->links[old].at_switch;
			made[i].streak = h->links[old].streak;
			if (h->links[old].contributors) {
				made[i].contributors = calloc(1, bitmap_bytes(n));
				if (!made[i].contributors) {
					free_links(made, i);
					return NULL;
				}
			}
		}
		made[i].at = links[i];
	}
	return made;
}

int hotspot_links(struct hotspot *h, const struct hotspot_link *links, unsigned int n,
		  hotspot_tell tell, void *context)
{
	struct slot *slots;
	struct link *made;
	uint8_t *stays;
	uint32_t room = 16;

	while (room < n * 4)
		room *= 2;
	stays = calloc(1, h->nlinks + 1);
	slots = malloc(room * sizeof(*slots));
	made = make_links(h, links, n);
	if (!stays || !slots || !made) {
		free(stays);
		free(slots);
		if (made)
			free_links(made, n);
		return -1;
	}
	for (uint32_t i = 0; i < room; i++)
		slots[i].link = NOBODY;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t old = before(h, &links[i]);

		put(slots, room - 1, links[i].switch_guid, links[i].switch_port, i * 2);
		put(slots, room - 1, links[i].host_guid, links[i].host_port, i * 2 + 1);
		if (old != NOBODY && links[i].lid == h->links[old].at.lid)
			stays[old] = 1;
	}
	for (uint32_t i = 0; i < h->nlinks; i++)
		if (h->links[i].contributors && !stays[i])
			end_hot(h, &h->links[i], tell, context);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t old = before(h, &links[i]);

		if (!made[i].contributors)
			continue;
		if (h->links[old].contributors) {
			renumber(h, made[i].contributors, h->links[old].contributors, links, n);
		} else {
			free(made[i].contributors);
			made[i].contributors = NULL;
			made[i].streak = 0;
		}
	}
	free(stays);
	free_links(h->links, h->nlinks);
	free(h->slots);
	h->links = made;
	h->nlinks = n;
	h->slots = slots;
	h->mask = room - 1;
	h->counts.links = n;
	return 0;
}

static void take(struct reading *r, double grown, uint64_t now)
{
	if (r->when && now > r->when) {
		r->per_s = grown * 1e9 / (now - r->when);
		r->fresh = 1;
	}
	r->when = now;
}

/* Equation 1: the congestion of a port. */
void hotspot_waited(struct hotspot *h, uint64_t guid, uint8_t port, uint64_t ticks, uint64_t now)
{
	struct end *end = find_end(h, guid, port);

	if (end)
		take(&end->waited, ticks, now);
}

/* Equation 2: its bandwidth, bytes; the counter's unit is four. */
void hotspot_sent(struct hotspot *h, uint64_t guid, uint8_t port, uint64_t words, uint64_t now)
{
	struct end *end = find_end(h, guid, port);

	if (end)
		take(&end->sent, words * 4.0, now);
}

/* Equation 3: its utilisation, against what the rules say. */
static int little_used(const struct hotspot *h, const struct link *link)
{
	return link->at_host.sent.per_s * 100 < (double)link->at.bytes_per_s * h->rules.used_percent;
}

static int contributes(const struct hotspot *h, const struct link *link)
{
	const struct end *end = &link->at_host;

	return end->waited.fresh && end->sent.fresh && end->waited.per_s > h->rules.wait_per_s &&
	       little_used(h, link);
}

/* Lines 10 to 19: whoever contributes now and was not told before. */
static void tell_slow(struct hotspot *h, struct link *hot, hotspot_tell tell, void *context)
{
	for (uint32_t i = 0; i < h->nlinks; i++) {
		struct link *link = &h->links[i];

		if (link == hot || is_set(hot->contributors, i) || !contributes(h, link))
			continue;
		if (!tell(context, HOTSPOT_SLOW, hot->at.lid, link->at.lid))
			continue;
		hot->contributors[i / 32] |= 1u << i % 32;
		h->counts.contributors++;
		h->counts.slow++;
	}
}

static void judge(struct hotspot *h, struct link *link, hotspot_tell tell, void *context)
{
	double waited = link->at_switch.waited.per_s, threshold = h->rules.wait_per_s;

	if (!link->contributors) {
		link->streak = waited > threshold ? link->streak + 1 : 0;
		if (link->streak < h->rules.onset || !link->streak)
			return;
		link->contributors = calloc(1, bitmap_bytes(h->nlinks));
		if (!link->contributors)
			return;		/* the next sweep tries again */
		link->streak = 0;
		h->counts.hot++;
		h->counts.begun++;
	} else {
		link->streak = waited * 100 < threshold * h->rules.calm_percent ? link->streak + 1 : 0;
		if (link->streak && link->streak >= h->rules.calm) {
			end_hot(h, link, tell, context);
			return;
		}
	}
	/* Only while it lasts: what waits after it was somebody else's. */
	if (waited > threshold)
		tell_slow(h, link, tell, context);
}

void hotspot_sweep(struct hotspot *h, hotspot_tell tell, void *context)
{
	h->counts.sweeps++;
	for (uint32_t i = 0; i < h->nlinks; i++)
		if (h->links[i].at_switch.waited.fresh)
			judge(h, &h->links[i], tell, context);
	for (uint32_t i = 0; i < h->nlinks; i++) {
		struct link *link = &h->links[i];

		link->at_switch.waited.fresh = 0;
		link->at_host.waited.fresh = 0;
		link->at_host.sent.fresh = 0;
	}
}
