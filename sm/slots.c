// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "homes.h"
#include "plugin.h"
#include "slots.h"

#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

/**
 * struct table - what the engine has computed for a switch
 * @sw: its GUID
 * @n: entries
 * @lft: by the slots' LIDs
 * @kept: what OpenSM has in force, while the engine sees @lft
 */
struct table {
	uint64_t sw;
	uint32_t n;
	uint8_t *lft, *kept;
};

/**
 * struct odd - a LID that some switches do not send to the paths of its slot
 * @next: another one
 * @lid: it
 * @place: where it is
 * @ports: by the table's index
 */
struct odd {
	struct odd *next;
	uint16_t lid;
	struct rsm_place place;
	uint8_t ports[];
};

/**
 * struct expected - a LID that is routed to where it need not be
 * @lid: it
 * @place: where to
 * @held: also when it has been there
 * @from: where it is maybe still, as far as OpenSM has seen; valid unless @held
 * @gone: it was not seen anywhere, since or before
 * @since: rsm_now()
 */
struct expected {
	uint16_t lid;
	struct rsm_place place;
	bool held;
	struct rsm_place from;
	bool gone;
	uint64_t since;
};

#define COMES_MS 30000	/* so long who has moved is maybe still seen where it was */
#define GONE_MS (15 * 60 * 1000) /* and so long its place is kept if it is nowhere */

static struct {
	struct rsm_homes homes;
	struct table *tables;
	uint32_t n_tables;
	struct odd *odd;
	struct expected expected[RSM_MOST_EXPECTED];
	unsigned int n_expected;
	uint64_t due;			/* when to look at them; 0: never. Read without the lock */
	uint16_t lids[RSM_N_LIDS];	/* the LID whose paths a LID has where it is; 0: its own */
	uint16_t seen[RSM_N_LIDS];	/* the one that the engine saw there */
	uint64_t fabric;		/* what @tables were computed for */
	struct osm_routing_engine *engine;
	unsigned long long computed, reused;
	uint64_t began, computed_us;
	unsigned int moved;
} s;

static int by_guid(const void *a, const void *b)
{
	const struct table *one = a, *other = b;

	return one->sw < other->sw ? -1 : one->sw > other->sw;
}

static struct table *find_table(const osm_switch_t *sw)
{
	struct table wanted = { .sw = cl_ntoh64(osm_node_get_node_guid(sw->p_node)) };

	return bsearch(&wanted, s.tables, s.n_tables, sizeof(*s.tables), by_guid);
}

static uint8_t entry(const struct table *table, uint16_t lid)
{
	return lid < table->n ? table->lft[lid] : OSM_NO_PATH;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
	return hash * 0xff51afd7ed558ccdull;
}

/* Who has several LIDs is in no slot, and is routed where it is. */
static uint64_t hash_several(struct rsm *rsm, uint64_t hash)
{
	cl_qmap_t *map = &rsm->osm->subn.port_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_port_t *port = (osm_port_t *)i;
		struct rsm_place place = { 0 };

		if (!osm_port_get_lmc(port))
			continue;
		rsm_place_of(port, &place);
		hash = mix(hash, osm_port_get_guid(port));
		hash = mix(hash, osm_port_get_base_lid(port));
		hash = mix(hash, osm_port_get_lmc(port));
		hash = mix(hash, place.sw);
		hash = mix(hash, place.port);
	}
	return hash;
}

/* Switches, their LIDs and cables, and who else is not in a slot. */
static uint64_t hash_fabric(struct rsm *rsm)
{
	cl_qmap_t *map = &rsm->osm->subn.sw_guid_tbl;
	uint64_t hash = hash_several(rsm, 1);

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_switch_t *sw = (osm_switch_t *)i;

		hash = mix(hash, osm_node_get_node_guid(sw->p_node));
		hash = mix(hash, osm_node_get_base_lid(sw->p_node, 0));
		for (unsigned int number = 1; number < sw->num_ports; number++) {
			osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, number);
			osm_physp_t *behind = port ? osm_physp_get_remote(port) : NULL;

			if (!behind || !behind->p_node->sw)
				continue;
			hash = mix(hash, number);
			hash = mix(hash, osm_node_get_node_guid(behind->p_node));
			hash = mix(hash, osm_physp_get_port_num(behind));
		}
	}
	return hash;
}

/* An engine may keep what is in force, if it likes it: that is its own tables, not what became of them. */
static void show_tables(struct rsm *rsm, bool own)
{
	cl_qmap_t *map = &rsm->osm->subn.sw_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_switch_t *sw = (osm_switch_t *)i;
		struct table *table = find_table(sw);
		uint32_t n;

		if (!table || !sw->lft)
			continue;
		if (own) {
			n = table->n < sw->lft_size ? table->n : sw->lft_size;
			table->kept = malloc(sw->lft_size);
			if (!table->kept)
				continue;
			memcpy(table->kept, sw->lft, sw->lft_size);
			memcpy(sw->lft, table->lft, n);
		} else if (table->kept) {
			memcpy(sw->lft, table->kept, sw->lft_size);
			free(table->kept);
			table->kept = NULL;
		}
	}
}

/**
 * rsm_slots_begin - before an engine computes
 * @rsm: the plugin
 * @engine: it
 * @forced: somebody wants new tables
 *
 * Return: whether it need not: its tables of the last time are right. rsm_slots_end() follows.
 */
bool rsm_slots_begin(struct rsm *rsm, struct osm_routing_engine *engine, bool forced)
{
	uint64_t fabric = hash_fabric(rsm);
	bool same;

	if (rsm_homes_update(rsm, &s.homes))
		rsm_log(rsm, OSM_LOG_ERROR, "no memory: VMs that have moved are routed anew");
	same = s.tables && fabric == s.fabric && engine == s.engine && !forced;
	for (uint32_t i = 0; i < s.homes.n && same; i++)
		same = !s.homes.slots[i].now || s.homes.slots[i].routed == s.homes.slots[i].home;
	s.fabric = fabric;
	s.engine = engine;
	if (same)
		return true;
	s.began = rsm_cpu_microseconds();
	rsm_homes_show(rsm, &s.homes, false);
	show_tables(rsm, true);
	return false;
}

static void forget_odd(struct odd **at)
{
	struct odd *odd = *at;

	*at = odd->next;
	free(odd);
}

static void free_tables(void)
{
	for (uint32_t i = 0; i < s.n_tables; i++) {
		free(s.tables[i].lft);
		free(s.tables[i].kept);
	}
	free(s.tables);
	s.tables = NULL;
	s.n_tables = 0;
	while (s.odd)
		forget_odd(&s.odd);
}

static void keep_tables(struct rsm *rsm)
{
	cl_qmap_t *map = &rsm->osm->subn.sw_guid_tbl;

	free_tables();
	s.tables = calloc(cl_qmap_count(map) + 1, sizeof(*s.tables));
	for (cl_map_item_t *i = cl_qmap_head(map); s.tables && i != cl_qmap_end(map);
	     i = cl_qmap_next(i)) {
		osm_switch_t *sw = (osm_switch_t *)i;
		struct table *table = &s.tables[s.n_tables++];

		table->sw = cl_ntoh64(osm_node_get_node_guid(sw->p_node));
		table->n = sw->lft_size;
		table->lft = malloc(sw->lft_size);
		if (!table->lft) {
			free_tables();
			return;
		}
		memcpy(table->lft, sw->new_lft, sw->lft_size);
	}
	/* OpenSM has them in the order of GUIDs as they are on the wire. */
	qsort(s.tables, s.n_tables, sizeof(*s.tables), by_guid);
}

/* The LID whose paths who is there has: that of the slot, or if it has none that of its hypervisor; 0: neither. */
static uint16_t paths_of(struct rsm *rsm, const struct rsm_place *place)
{
	struct rsm_slot *slot = rsm_homes_find(&s.homes, place);
	struct rsm_place first;
	osm_port_t *pf;

	if (slot && slot->home && slot->home == slot->routed)
		return slot->home;
	pf = rsm_place_pf(rsm, place->sw);
	slot = pf && rsm_place_of(pf, &first) ? rsm_homes_find(&s.homes, &first) : NULL;
	return slot ? slot->home : 0;
}

/* Of who is at @place, and has the paths of @lid there; 0: none. */
static uint8_t entry_at(const struct table *table, const struct rsm_place *place, uint16_t lid)
{
	if (table->sw == place->sw)
		return place->port;
	return lid ? entry(table, lid) : OSM_NO_PATH;
}

static void note_place(struct rsm *rsm, uint16_t lid, const struct rsm_place *place)
{
	const struct rsm_slot *slot = rsm_homes_find(&s.homes, place);

	s.lids[lid] = paths_of(rsm, place);
	s.seen[lid] = slot ? slot->seen : 0;
}

static const struct odd *odd_of(uint16_t lid, const struct rsm_place *place)
{
	for (const struct odd *odd = s.odd; odd; odd = odd->next)
		if (odd->lid == lid && rsm_place_is(&odd->place, place))
			return odd;
	return NULL;
}

/* Behind note_place(). */
static void route_lid(struct rsm *rsm, uint16_t lid, const struct rsm_place *place)
{
	const struct odd *odd = odd_of(lid, place);
	cl_qmap_t *map = &rsm->osm->subn.sw_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_switch_t *sw = (osm_switch_t *)i;
		struct table *table = find_table(sw);

		if (!table || lid >= sw->lft_size)
			continue;
		sw->new_lft[lid] = odd ? odd->ports[table - s.tables] :
					 entry_at(table, place, s.lids[lid]);
		if (lid > sw->max_lid_ho)
			sw->max_lid_ho = lid;
	}
}

static bool has_come(const struct expected *expected)
{
	const struct rsm_slot *slot = rsm_homes_find(&s.homes, &expected->place);

	return slot && slot->now == expected->lid;
}

/* Where a LID is, as OpenSM saw it last; NULL: nowhere. */
static const struct rsm_slot *slot_of(uint16_t lid)
{
	for (uint32_t i = 0; i < s.homes.n; i++)
		if (s.homes.slots[i].now == lid)
			return &s.homes.slots[i];
	return NULL;
}

static uint64_t ends_at(const struct expected *expected)
{
	return expected->since + (expected->gone ? GONE_MS : COMES_MS);
}

/* Another one is at its index then. */
static void drop_expected(unsigned int i)
{
	s.expected[i] = s.expected[--s.n_expected];
}

/* It has come, is somewhere else, is back where it was, or has never left: it is routed to where it is. */
static bool is_over(struct expected *expected)
{
	const struct rsm_slot *slot = slot_of(expected->lid);

	if (expected->held)
		return false;
	if (slot && (expected->gone || !rsm_place_is(&slot->place, &expected->from)))
		return true;
	expected->gone |= !slot;
	return rsm_now() >= ends_at(expected);
}

static void route_expected(struct rsm *rsm)
{
	for (unsigned int i = 0; i < s.n_expected; i++) {
		struct expected *expected = &s.expected[i];

		if (is_over(expected)) {
			if (!has_come(expected))
				rsm_log(rsm, OSM_LOG_ERROR, "LID %u was moved, and is not where it was to come",
					expected->lid);
			drop_expected(i--);
			continue;
		}
		note_place(rsm, expected->lid, &expected->place);
		route_lid(rsm, expected->lid, &expected->place);
	}
}

static void take_tables(struct rsm *rsm)
{
	cl_qmap_t *map = &rsm->osm->subn.sw_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_switch_t *sw = (osm_switch_t *)i;
		struct table *table = find_table(sw);

		if (table)
			memcpy(sw->new_lft, table->lft,
			       table->n < sw->lft_size ? table->n : sw->lft_size);
	}
}

/**
 * rsm_slots_end - after an engine has computed, or did not have to
 * @rsm: the plugin
 * @computed: it did; else OpenSM gets the tables of the last time
 */
void rsm_slots_end(struct rsm *rsm, bool computed)
{
	if (computed) {
		s.computed_us = rsm_cpu_microseconds() - s.began;
		show_tables(rsm, false);
		keep_tables(rsm);
		for (uint32_t i = 0; i < s.homes.n; i++) {
			struct rsm_slot *slot = &s.homes.slots[i];

			slot->routed = slot->now ? slot->home : 0;
			slot->seen = slot->routed ?: slot->now;
		}
		rsm_homes_show(rsm, &s.homes, true);
		s.computed++;
	} else {
		take_tables(rsm);
		s.reused++;
	}
	if (!s.tables)
		return;
	s.moved = 0;
	memset(s.lids, 0, sizeof(s.lids));
	memset(s.seen, 0, sizeof(s.seen));
	for (uint32_t i = 0; i < s.homes.n; i++) {
		const struct rsm_slot *slot = &s.homes.slots[i];

		if (!slot->now)
			continue;
		note_place(rsm, slot->now, &slot->place);
		if (slot->home != slot->now || odd_of(slot->now, &slot->place)) {
			route_lid(rsm, slot->now, &slot->place);
			s.moved += slot->home && slot->home != slot->now;
		}
	}
	route_expected(rsm);
}

/**
 * rsm_slots_failed - an engine has computed nothing
 * @rsm: the plugin
 */
void rsm_slots_failed(struct rsm *rsm)
{
	show_tables(rsm, false);
	rsm_homes_show(rsm, &s.homes, true);
	s.fabric = 0;
}

/**
 * rsm_slots_entries - what switches have for who is in a slot, or comes there
 * @rsm: the plugin
 * @place: the slot
 * @guids: of the switches
 * @n: of them
 * @entries: filled in, by their index
 *
 * Return: false if it has no paths.
 */
bool rsm_slots_entries(struct rsm *rsm, const struct rsm_place *place, const uint64_t *guids,
		       uint32_t n, uint8_t *entries)
{
	uint16_t paths = paths_of(rsm, place);
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		struct table wanted = { .sw = guids[i] };
		struct table *table = bsearch(&wanted, s.tables, s.n_tables, sizeof(*s.tables),
					      by_guid);

		entries[i] = table ? entry_at(table, place, paths) : OSM_NO_PATH;
		any |= table && table->sw != place->sw && entries[i] != OSM_NO_PATH;
	}
	return any || n == 1;
}

/**
 * rsm_slots_tables - as the engine has made them
 * @guids: of the switches
 * @n: of them
 * @lft: filled in, by their index
 *
 * Return: entries that all of them have; 0: a switch has none.
 */
uint32_t rsm_slots_tables(const uint64_t *guids, uint32_t n, uint8_t **lft)
{
	uint32_t least = RSM_N_LIDS;

	for (uint32_t i = 0; i < n; i++) {
		struct table wanted = { .sw = guids[i] };
		struct table *table = bsearch(&wanted, s.tables, s.n_tables, sizeof(*s.tables),
					      by_guid);

		if (!table)
			return 0;
		lft[i] = table->lft;
		if (table->n < least)
			least = table->n;
	}
	return least;
}

/**
 * rsm_slots_moved - a move has been made
 * @rsm: the plugin
 * @lid: that is elsewhere now
 * @place: where
 *
 * Tables of all switches are as they are to be (new_lft). Where they are not the slot's it is kept.
 */
void rsm_slots_moved(struct rsm *rsm, uint16_t lid, const struct rsm_place *place)
{
	cl_qmap_t *map = &rsm->osm->subn.sw_guid_tbl;
	struct odd **at = &s.odd, *odd;
	bool differs = false;

	while (*at) {
		if ((*at)->lid == lid)
			forget_odd(at);
		else
			at = &(*at)->next;
	}
	if (!s.tables)
		return;
	note_place(rsm, lid, place);
	odd = calloc(1, sizeof(*odd) + s.n_tables);
	if (!odd)
		return;
	odd->lid = lid;
	odd->place = *place;
	for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map); i = cl_qmap_next(i)) {
		osm_switch_t *sw = (osm_switch_t *)i;
		struct table *table = find_table(sw);

		if (!table || !sw->new_lft || lid >= sw->lft_size)
			continue;
		odd->ports[table - s.tables] = sw->new_lft[lid];
		differs |= sw->new_lft[lid] != entry_at(table, place, s.lids[lid]);
	}
	odd->next = s.odd;
	if (differs)
		s.odd = odd;
	else
		free(odd);
}

/**
 * rsm_slots_expect - a LID is routed to a place, wherever it is
 * @lid: it
 * @place: where to
 * @from: where it is as far as OpenSM knows: until it is seen at @place, or elsewhere; NULL: until rsm_slots_forget()
 *
 * Return: false if there are too many.
 */
bool rsm_slots_expect(uint16_t lid, const struct rsm_place *place, const struct rsm_place *from)
{
	struct expected expected = { .lid = lid, .place = *place, .held = !from, .since = rsm_now() };

	if (from) {
		expected.from = *from;
		expected.gone = !slot_of(lid);
	}
	rsm_slots_forget(lid);
	if (s.n_expected == RSM_MOST_EXPECTED)
		return false;
	s.expected[s.n_expected++] = expected;
	if (from && (!s.due || ends_at(&expected) < s.due))
		__atomic_store_n(&s.due, ends_at(&expected), __ATOMIC_RELEASE);
	return true;
}

/**
 * rsm_slots_due - when to call rsm_slots_are_late(), in milliseconds of rsm_now()
 *
 * Return: RSM_NEVER: not before somebody is expected.
 */
uint64_t rsm_slots_due(void)
{
	return __atomic_load_n(&s.due, __ATOMIC_ACQUIRE) ?: RSM_NEVER;
}

/**
 * rsm_slots_are_late - has somebody who was expected not come in time?
 * @now: rsm_now()
 *
 * Return: whether the next sweep has something to do.
 */
bool rsm_slots_are_late(uint64_t now)
{
	uint64_t due = 0, at;
	bool late = false;

	for (unsigned int i = 0; i < s.n_expected; i++) {
		if (s.expected[i].held)
			continue;
		at = ends_at(&s.expected[i]);
		if (at <= now) {
			late = true;
			at = now + COMES_MS;
		}
		if (!due || at < due)
			due = at;
	}
	__atomic_store_n(&s.due, due, __ATOMIC_RELEASE);
	return late;
}

/**
 * rsm_slots_forget - it is not expected any more
 * @lid: it
 *
 * Return: whether it was.
 */
bool rsm_slots_forget(uint16_t lid)
{
	bool was = false;

	for (unsigned int i = 0; i < s.n_expected; i++)
		if (s.expected[i].lid == lid) {
			drop_expected(i--);
			was = true;
		}
	return was;
}

/**
 * rsm_slots_awaits - does another one come to a place?
 * @place: it
 * @lid: not this one
 */
bool rsm_slots_awaits(const struct rsm_place *place, uint16_t lid)
{
	for (unsigned int i = 0; i < s.n_expected; i++)
		if (!s.expected[i].held && s.expected[i].lid != lid && rsm_place_is(&s.expected[i].place, place))
			return true;
	return false;
}

/**
 * rsm_slots_learn - another subnet manager has been master
 * @holder: ports by their LID; NULL: not known
 *
 * What was to come then may have gone on.
 */
void rsm_slots_learn(osm_port_t *const *holder)
{
	for (unsigned int i = 0; i < s.n_expected; i++)
		if (!s.expected[i].held && (!holder || holder[s.expected[i].lid]))
			drop_expected(i--);
}

/**
 * rsm_slots_expected - LIDs that are not where they are routed to
 * @lids: filled in, RSM_MOST_EXPECTED at most
 *
 * Return: how many there are.
 */
unsigned int rsm_slots_expected(uint16_t *lids)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < s.n_expected; i++)
		if (!has_come(&s.expected[i]))
			lids[n++] = s.expected[i].lid;
	return n;
}

/**
 * rsm_slots_lid - the LID that who has this one has the paths of
 * @lid: it
 *
 * Return: @lid itself if it is in no slot.
 */
uint16_t rsm_slots_lid(uint16_t lid)
{
	return lid < RSM_N_LIDS && s.lids[lid] ? s.lids[lid] : lid;
}

/**
 * rsm_slots_known - the LID that the engine knew who was there by where this one is
 * @lid: it
 *
 * Of who follows its hypervisor rsm_slots_lid() is the hypervisor's, this its own. Return: if nobody was there, that.
 */
uint16_t rsm_slots_known(uint16_t lid)
{
	return lid < RSM_N_LIDS && s.seen[lid] ? s.seen[lid] : rsm_slots_lid(lid);
}

/** rsm_slots_counts - for the status */
struct rsm_slots_counts rsm_slots_counts(void)
{
	struct rsm_slots_counts counts = {
		.slots = s.homes.n,
		.moved = s.moved,
		.expected = s.n_expected,
		.computed = s.computed,
		.reused = s.reused,
		.computed_us = s.computed_us,
	};

	for (const struct odd *odd = s.odd; odd; odd = odd->next)
		counts.odd++;
	return counts;
}

/** rsm_slots_free - when OpenSM ends */
void rsm_slots_free(void)
{
	free_tables();
	free(s.homes.slots);
	memset(&s, 0, sizeof(s));
}
