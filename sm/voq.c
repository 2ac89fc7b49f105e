// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hosts of a switch come in by different ports, but what waits behind is the same for all of them: they
 * are taken for one, and have the same service level to a LID. That needs no more levels than one of
 * them alone does, and there are as many fewer paths to look at.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "voq.h"

#define MOST_ENTRIES	(1u << 28) /* of a table that is kept for all paths or all crossings */
#define DIGIT		11 /* bits that are sorted by at a time */
#define EXACT		256 /* of so many crossings, one more or less does not matter */

static uint8_t out_port(const struct rsm_voq *voq, uint32_t sw, uint16_t lid)
{
	return lid < voq->spec.n_lft ? voq->spec.lft[sw][lid] : UINT8_MAX;
}

static const struct rsm_topo_port *behind(const struct rsm_voq *voq, uint32_t sw, uint8_t port)
{
	const struct rsm_topo_switch *s = &voq->spec.topo->switches[sw];

	return port && port < s->n_ports ? &s->ports[port] : NULL;
}

/* Number of an SLtoVL table. Hosts' ports, and the switch's own, have one together. */
static uint32_t table_of(const struct rsm_voq *voq, uint32_t sw, uint8_t in, uint8_t out)
{
	return voq->first[sw] + voq->link[sw][in] * voq->n_links[sw] + voq->link[sw][out] - 1;
}

/* The same of a switch's hosts, whose own tables choose the lane there. */
static uint32_t end_table(const struct rsm_voq *voq, uint32_t sw)
{
	return voq->first_end + voq->leaf[sw] - 1;
}

static uint64_t crossing(const struct rsm_voq *voq, const struct rsm_voq_hop *hop)
{
	return (uint64_t)hop->table * voq->most_ports + hop->next;
}

/* All crossings of the path from a switch's hosts to a LID. Returns how many: a loop is cut off. */
static uint32_t walk(struct rsm_voq *voq, uint32_t sw, uint16_t lid)
{
	uint8_t in = 0, out = out_port(voq, sw, lid);
	const struct rsm_topo_port *to = behind(voq, sw, out);
	uint32_t n = 0;

	if (voq->spec.hosts && to)
		voq->way[n++] = (struct rsm_voq_hop) { end_table(voq, sw), out };
	while (to && to->peer >= 0 && n < voq->spec.topo->n_switches) {
		uint8_t next = out_port(voq, to->peer, lid);
		const struct rsm_topo_port *then = behind(voq, to->peer, next);

		if (!then)
			break;
		if (!voq->spec.inner || (voq->link[sw][in] && then->peer >= 0))
			voq->way[n++] = (struct rsm_voq_hop) { table_of(voq, sw, in, out), next };
		sw = to->peer;
		in = to->peer_port;
		out = next;
		to = then;
	}
	return n;
}

static unsigned int layer_of(const struct rsm_voq *voq, uint32_t from, uint16_t lid)
{
	if (!voq->spec.layer)
		return 0;
	return voq->spec.layer(voq->spec.context, voq->spec.topo->ends[from].lid, lid);
}

static size_t place_of(const struct rsm_voq *voq, uint32_t sw, unsigned int layer, uint16_t lid)
{
	return ((size_t)(voq->leaf[sw] - 1) * voq->spec.layers + layer) * voq->spec.n_lft + lid;
}

/* What is done with the paths of a switch's hosts to a LID that are in one layer. */
typedef int (*visitor)(struct rsm_voq *voq, uint32_t sw, unsigned int layer, uint16_t lid, void *what);

static int visit_layers(struct rsm_voq *voq, uint32_t sw, uint16_t lid, visitor visit, void *what)
{
	int rc = 0;

	for (unsigned int layer = 0; layer < voq->spec.layers && !rc; layer++)
		if (voq->paths[place_of(voq, sw, layer, lid)])
			rc = visit(voq, sw, layer, lid, what);
	return rc;
}

static int visit_all(struct rsm_voq *voq, visitor visit, void *what)
{
	const struct rsm_topo *topo = voq->spec.topo;
	int rc = 0;

	for (uint32_t sw = 0; sw < topo->n_switches; sw++)
		for (uint32_t to = 0; voq->leaf[sw] && to < topo->n_ends; to++)
			for (unsigned int i = 0; i < topo->ends[to].n_lids && !rc; i++)
				rc = visit_layers(voq, sw, topo->ends[to].lid + i, visit, what);
	return rc;
}

/* How many hosts of a switch have a path to each LID, where there is one layer: all but who has the LID. */
static void count_hosts(struct rsm_voq *voq, uint32_t sw)
{
	const struct rsm_topo *topo = voq->spec.topo;
	uint16_t hosts = 0;

	for (uint32_t i = 0; i < topo->n_ends; i++)
		hosts += topo->ends[i].leaf == (int32_t)sw;
	for (uint32_t to = 0; to < topo->n_ends; to++)
		for (unsigned int i = 0; i < topo->ends[to].n_lids; i++)
			voq->paths[place_of(voq, sw, 0, topo->ends[to].lid + i)] =
				hosts - (topo->ends[to].leaf == (int32_t)sw);
}

/* The same of all switches, by layers. */
static void count_paths(struct rsm_voq *voq)
{
	const struct rsm_topo *topo = voq->spec.topo;

	if (!voq->spec.layer) {
		for (uint32_t sw = 0; sw < topo->n_switches; sw++)
			if (voq->leaf[sw])
				count_hosts(voq, sw);
		return;
	}
	for (uint32_t from = 0; from < topo->n_ends; from++)
		for (uint32_t to = 0; to < topo->n_ends; to++)
			for (unsigned int i = 0; from != to && i < topo->ends[to].n_lids; i++) {
				uint16_t lid = topo->ends[to].lid + i;

				voq->paths[place_of(voq, topo->ends[from].leaf,
						    layer_of(voq, from, lid), lid)]++;
			}
}

struct used {
	uint32_t *crossings;
	uint32_t n, room;
};

static int use(struct used *used, uint32_t at)
{
	if (used->n == used->room) {
		uint32_t room = used->room * 2 + 4096;
		uint32_t *more = realloc(used->crossings, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		used->crossings = more;
		used->room = room;
	}
	used->crossings[used->n++] = at;
	return 0;
}

/*
 * Stages 1 and 2: which crossings there are, and by how many paths. Where hosts come in it is those of
 * one host: each has a table of its own there.
 */
static int weigh(struct rsm_voq *voq, uint32_t sw, unsigned int layer, uint16_t lid, void *what)
{
	uint32_t n = walk(voq, sw, lid), paths = voq->paths[place_of(voq, sw, layer, lid)];

	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = crossing(voq, &voq->way[i]);

		if (!voq->rank[at] && use(what, at))
			return -ENOMEM;
		voq->rank[at] += !voq->spec.inner && i < 1u + voq->spec.hosts ? 1 : paths;
	}
	return 0;
}

/* By one digit of the weight, the greatest first; those that are equal stay as they were. */
static void sort_by(const struct rsm_voq *voq, const uint32_t *from, uint32_t *to, uint32_t n,
		    unsigned int shift)
{
	const uint32_t mask = (1u << DIGIT) - 1;
	uint32_t at[1 << DIGIT] = { 0 }, sum = 0;

	for (uint32_t i = 0; i < n; i++)
		at[~voq->rank[from[i]] >> shift & mask]++;
	for (uint32_t d = 0; d <= mask; d++) {
		uint32_t here = at[d];

		at[d] = sum;
		sum += here;
	}
	for (uint32_t i = 0; i < n; i++)
		to[at[~voq->rank[from[i]] >> shift & mask]++] = from[i];
}

/* Stage 3: the most used ones first. The weight makes room for the rank. */
static int sort(struct rsm_voq *voq, struct used *used)
{
	uint32_t *other = malloc((used->n + 1) * sizeof(*other)), *sorted = used->crossings;

	if (!other)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < 32; shift += DIGIT) {
		uint32_t *to = sorted == other ? used->crossings : other;

		sort_by(voq, sorted, to, used->n, shift);
		sorted = to;
	}
	for (uint32_t i = 0; i < used->n; i++)
		voq->rank[sorted[i]] = i + 1;
	voq->crossings = used->n;
	free(other);
	return 0;
}

/* The first that is free, or of these the one that the fewest paths have. Returns @end if none is. */
static unsigned int choose(const uint8_t *busy, unsigned int first, unsigned int end,
			   const uint32_t *paths)
{
	unsigned int best = end;

	for (unsigned int sl = first; sl < end; sl++) {
		if (busy[sl])
			continue;
		if (best == end || (paths && paths[sl] < paths[best]))
			best = sl;
		if (!paths)
			break;
	}
	return best;
}

/* Whether the crossing is one of those that have a queue. Ranks begin at 1. */
static bool is_considered(const struct rsm_voq *voq, const struct rsm_voq_hop *hop)
{
	uint32_t rank = voq->rank[crossing(voq, hop)];

	return rank && rank <= voq->considered;
}

/* An SL of the layer that nobody has who parts from these paths. @what: paths by SL, or NULL */
static int assign_path(struct rsm_voq *voq, uint32_t sw, unsigned int layer, uint16_t lid, void *what)
{
	unsigned int n_sls = voq->spec.sls * voq->spec.layers, first = layer * voq->spec.sls;
	uint32_t n = walk(voq, sw, lid), queues = 0, *paths = what;
	uint8_t busy[RSM_VOQ_SLS] = { 0 };
	unsigned int sl;

	for (uint32_t i = 0; i < n; i++) {
		struct rsm_voq_hop hop = voq->way[i];
		const uint8_t *owner = &voq->owner[(size_t)hop.table * n_sls];

		if (!is_considered(voq, &hop))
			continue;
		voq->way[queues++] = hop;
		for (unsigned int s = first; s < first + voq->spec.sls; s++)
			busy[s] |= owner[s] && owner[s] != hop.next;
	}
	sl = choose(busy, first, first + voq->spec.sls, paths);
	if (sl == first + voq->spec.sls)
		return -ENOSPC;
	if (paths)
		paths[sl] += voq->paths[place_of(voq, sw, layer, lid)];
	voq->sl[place_of(voq, sw, layer, lid)] = sl;
	if (sl - first >= voq->used_sls)
		voq->used_sls = sl - first + 1;
	for (uint32_t i = 0; i < queues; i++)
		voq->owner[(size_t)voq->way[i].table * n_sls + sl] = voq->way[i].next;
	return 0;
}

/*
 * Stage 4: SLs for all paths, with queues for so many crossings. The lowest SLs, as in the paper, need
 * the fewest; @even: those that the fewest paths have.
 */
static int assign(struct rsm_voq *voq, uint32_t considered)
{
	uint32_t paths[RSM_VOQ_SLS] = { 0 };

	memset(voq->owner, 0, (size_t)voq->n_tables * voq->spec.sls * voq->spec.layers);
	voq->used_sls = 0;
	voq->considered = considered;
	return visit_all(voq, assign_path, voq->spec.even ? paths : NULL);
}

/*
 * As many crossings as SLs suffice for. The paper tries one after the other; here the step is halved,
 * until it is small beside what there is.
 */
static void assign_most(struct rsm_voq *voq)
{
	uint32_t enough = 0, much = voq->crossings + 1, step = voq->crossings / EXACT + 1;

	if (!assign(voq, voq->crossings))
		return;
	while (much - enough > step) {
		uint32_t middle = enough + (much - enough) / 2;

		if (assign(voq, middle))
			much = middle;
		else
			enough = middle;
	}
	if (voq->considered != enough)
		assign(voq, enough);
}

static int number_switch(struct rsm_voq *voq, uint32_t index)
{
	const struct rsm_topo_switch *sw = &voq->spec.topo->switches[index];
	uint8_t n = 0;

	voq->port_index[index] = calloc(sw->n_ports + 1, 1);
	voq->link[index] = calloc(UINT8_MAX + 1, 1);
	if (!voq->port_index[index] || !voq->link[index])
		return -ENOMEM;
	for (unsigned int port = 1; port < sw->n_ports; port++) {
		if (sw->ports[port].peer != RSM_TOPO_NONE)
			voq->port_index[index][port] = n++;
		if (sw->ports[port].peer >= 0)
			voq->link[index][port] = ++voq->n_links[index];
	}
	if (sw->n_ports > voq->most_ports)
		voq->most_ports = sw->n_ports;
	voq->first[index] = voq->n_tables;
	voq->n_tables += (voq->n_links[index] + 1) * voq->n_links[index];
	return 0;
}

static int number_all(struct rsm_voq *voq)
{
	const struct rsm_topo *topo = voq->spec.topo;
	uint32_t n = topo->n_switches + 1;
	int rc = 0;

	voq->port_index = calloc(n, sizeof(*voq->port_index));
	voq->link = calloc(n, sizeof(*voq->link));
	voq->n_links = calloc(n, sizeof(*voq->n_links));
	voq->first = calloc(n, sizeof(*voq->first));
	voq->leaf = calloc(n, sizeof(*voq->leaf));
	voq->way = calloc(n, sizeof(*voq->way));
	if (!voq->port_index || !voq->link || !voq->n_links || !voq->first || !voq->leaf || !voq->way)
		return -ENOMEM;
	for (uint32_t i = 0; i < topo->n_switches && !rc; i++)
		rc = number_switch(voq, i);
	for (uint32_t i = 0; i < topo->n_ends; i++)
		if (!voq->leaf[topo->ends[i].leaf])
			voq->leaf[topo->ends[i].leaf] = ++voq->n_leaves;
	voq->first_end = voq->n_tables;
	voq->n_tables += voq->n_leaves;
	return rc;
}

static int make_room(struct rsm_voq *voq, char *why, size_t size)
{
	unsigned int n_sls = voq->spec.sls * voq->spec.layers;
	uint64_t paths = (uint64_t)voq->n_leaves * voq->spec.layers * voq->spec.n_lft;
	uint64_t crossings = (uint64_t)voq->n_tables * voq->most_ports;
	uint64_t entries = (uint64_t)voq->n_tables * n_sls;

	if (paths > MOST_ENTRIES || crossings > MOST_ENTRIES || entries > MOST_ENTRIES) {
		snprintf(why, size, "too large: %u ends, %u switches", voq->spec.topo->n_ends,
			 voq->spec.topo->n_switches);
		return -E2BIG;
	}
	voq->sl = calloc(paths + 1, sizeof(*voq->sl));
	voq->paths = calloc(paths + 1, sizeof(*voq->paths));
	voq->rank = calloc(crossings + 1, sizeof(*voq->rank));
	voq->owner = calloc(entries + 1, sizeof(*voq->owner));
	if (!voq->sl || !voq->paths || !voq->rank || !voq->owner)
		return -ENOMEM;
	/* To switches, too, packets go in their layer. */
	for (uint64_t i = 0; voq->spec.layers > 1 && i < paths; i++)
		voq->sl[i] = i / voq->spec.n_lft % voq->spec.layers * voq->spec.sls;
	return 0;
}

/**
 * rsm_voq_make - give service levels to all paths
 * @spec: what there is to use; what it points at stays there
 * @voq: for rsm_voq_free()
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0, -EINVAL, -E2BIG or -ENOMEM.
 */
int rsm_voq_make(const struct rsm_voq_spec *spec, struct rsm_voq *voq, char *why, size_t size)
{
	unsigned int lanes = spec->lanes ?: spec->layers;
	struct used used = { 0 };
	int rc;

	*voq = (struct rsm_voq) { .spec = *spec };
	voq->spec.step = spec->step ?: lanes;
	if (!spec->sls || !spec->vls || !spec->layers || spec->sls * spec->layers > RSM_VOQ_SLS ||
	    voq->spec.step < lanes || (spec->vls - 1) * voq->spec.step + lanes > 15) {
		snprintf(why, size, "%u layers of %u SLs and %u VLs", spec->layers, spec->sls,
			 spec->vls);
		return -EINVAL;
	}
	snprintf(why, size, "no memory");
	rc = number_all(voq) ?: make_room(voq, why, size);
	if (!rc) {
		count_paths(voq);
		rc = visit_all(voq, weigh, &used) ?: sort(voq, &used);
	}
	free(used.crossings);
	if (rc) {
		rsm_voq_free(voq);
		return rc;
	}
	assign_most(voq);
	return 0;
}

/** rsm_voq_sl - service level of the path from an end to a LID */
uint16_t rsm_voq_sl(const struct rsm_voq *voq, uint32_t end, uint16_t dlid)
{
	const struct rsm_topo_end *from = &voq->spec.topo->ends[end];

	return dlid < voq->spec.n_lft ?
		voq->sl[place_of(voq, from->leaf, layer_of(voq, end, dlid), dlid)] : 0;
}

/** rsm_voq_port_vl - VL at a switch's inputs of packets in a lane of the engine's that leave by a port of it */
uint8_t rsm_voq_port_vl(const struct rsm_voq *voq, uint32_t sw, uint8_t out, unsigned int lane)
{
	return lane + voq->port_index[sw][out] % voq->spec.vls * voq->spec.step;
}

/* The engine's, of a service level. One that there is none of is in the first layer. */
static unsigned int lane_of(const struct rsm_voq *voq, uint16_t sl, const uint8_t *lanes)
{
	unsigned int layer = sl / voq->spec.sls;

	if (layer >= voq->spec.layers)
		layer = 0;
	return lanes ? lanes[layer] : layer;
}

/* Whichever of the lane's: nobody has the service level there. */
static uint8_t any_vl(const struct rsm_voq *voq, uint16_t sl, const uint8_t *lanes)
{
	return lane_of(voq, sl, lanes) + sl % voq->spec.sls % voq->spec.vls * voq->spec.step;
}

/* An entry of a table that chooses the VL at a switch. */
static uint8_t queue(const struct rsm_voq *voq, uint32_t table, uint32_t at, uint16_t sl, const uint8_t *lanes)
{
	unsigned int n_sls = voq->spec.sls * voq->spec.layers;
	uint8_t next = sl < n_sls ? voq->owner[(size_t)table * n_sls + sl] : 0;

	return next ? rsm_voq_port_vl(voq, at, next, lane_of(voq, sl, lanes)) : any_vl(voq, sl, lanes);
}

/* A host's link may have fewer than those between switches. It closes no loop: who shares there does not wait. */
static uint8_t fit(uint8_t vl, uint8_t vls)
{
	return vls && vl >= vls ? vl % vls : vl;
}

/**
 * rsm_voq_vl - stage 5: an entry of an SLtoVL table
 * @voq: of the fabric
 * @sw: the switch
 * @in: where packets come in
 * @out: where they leave
 * @sl: their service level
 * @lanes: the engine's lane there by layer; NULL: each layer has its own
 *
 * A service level that is nobody's there gets any VL of its lane. So it does behind a host's port.
 */
uint8_t rsm_voq_vl(const struct rsm_voq *voq, uint32_t sw, uint8_t in, uint8_t out, uint16_t sl,
		   const uint8_t *lanes)
{
	const struct rsm_topo_port *to = behind(voq, sw, out);

	if (to && to->peer >= 0)
		return queue(voq, table_of(voq, sw, in, out), to->peer, sl, lanes);
	return fit(any_vl(voq, sl, lanes), to ? to->vls : 0);
}

/** rsm_voq_end_vl - the same for a host's table */
uint8_t rsm_voq_end_vl(const struct rsm_voq *voq, uint32_t end, uint16_t sl, const uint8_t *lanes)
{
	const struct rsm_topo_end *from = &voq->spec.topo->ends[end];

	return fit(queue(voq, end_table(voq, from->leaf), from->leaf, sl, lanes), from->vls);
}

/**
 * rsm_voq_queued - whether packets of a crossing have a queue of their own
 * @voq: of the fabric
 * @sw: the first switch
 * @in: where they come into it
 * @out: where they leave it, to another switch
 * @next: where they leave that
 *
 * Return: 1, 0 if there were too few service levels, -1 if no path is there.
 */
int rsm_voq_queued(const struct rsm_voq *voq, uint32_t sw, uint8_t in, uint8_t out, uint8_t next)
{
	struct rsm_voq_hop hop = { table_of(voq, sw, in, out), next };

	return voq->rank[crossing(voq, &hop)] ? is_considered(voq, &hop) : -1;
}

/** rsm_voq_free - all that hangs on it */
void rsm_voq_free(struct rsm_voq *voq)
{
	for (uint32_t i = 0; voq->port_index && i < voq->spec.topo->n_switches; i++)
		free(voq->port_index[i]);
	for (uint32_t i = 0; voq->link && i < voq->spec.topo->n_switches; i++)
		free(voq->link[i]);
	free(voq->port_index);
	free(voq->link);
	free(voq->n_links);
	free(voq->first);
	free(voq->leaf);
	free(voq->way);
	free(voq->sl);
	free(voq->paths);
	free(voq->rank);
	free(voq->owner);
	*voq = (struct rsm_voq) { 0 };
}
