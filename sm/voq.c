// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "voq.h"

#define MOST_ENTRIES (1u << 27) /* of a table that is kept for all paths or all crossings */

/* A way through the tables, crossing by crossing. */
struct walk {
	const struct rsm_voq *voq;
	uint16_t lid;
	uint32_t end;
	bool started;
	uint32_t sw;
	uint8_t in;
	uint32_t left; /* switches, until it is a loop */
};

static uint8_t out_port(const struct rsm_voq *voq, uint32_t sw, uint16_t lid)
{
	return lid < voq->spec.n_lft ? voq->spec.lft[sw][lid] : UINT8_MAX;
}

static const struct rsm_topo_port *behind(const struct rsm_voq *voq, uint32_t sw, uint8_t port)
{
	const struct rsm_topo_switch *s = &voq->spec.topo->switches[sw];

	return port && port < s->n_ports ? &s->ports[port] : NULL;
}

/**
 * rsm_voq_crossing - index of a crossing, whether or not it is used
 * @voq: of the fabric
 * @sw: the first switch
 * @in: where packets come into it
 * @out: where they leave it
 * @next: where they leave the next one
 */
uint64_t rsm_voq_crossing(const struct rsm_voq *voq, uint32_t sw, uint8_t in, uint8_t out,
			  uint8_t next)
{
	return voq->first[sw] +
	       ((uint64_t)in * voq->spec.topo->switches[sw].n_ports + out) * voq->most_ports + next;
}

/* The same for a host, whose own table chooses the lane at its switch. */
static uint64_t end_crossing(const struct rsm_voq *voq, uint32_t end, uint8_t next)
{
	return voq->first_end + (uint64_t)end * voq->most_ports + next;
}

static struct walk walk_from(const struct rsm_voq *voq, uint32_t end, uint16_t lid)
{
	const struct rsm_topo_end *from = &voq->spec.topo->ends[end];

	return (struct walk) {
		.voq = voq, .lid = lid, .end = end, .sw = from->leaf, .in = from->leaf_port,
		.left = voq->spec.topo->n_switches,
	};
}

/* Return: whether there was another crossing, in @crossing. */
static bool walk_next(struct walk *w, uint64_t *crossing)
{
	uint8_t out = out_port(w->voq, w->sw, w->lid), next;
	const struct rsm_topo_port *to = behind(w->voq, w->sw, out);

	if (w->voq->spec.hosts && !w->started && to) {
		w->started = true;
		*crossing = end_crossing(w->voq, w->end, out);
		return true;
	}
	if (!to || to->peer < 0 || !w->left--)
		return false;
	next = out_port(w->voq, to->peer, w->lid);
	if (!behind(w->voq, to->peer, next))
		return false;
	*crossing = rsm_voq_crossing(w->voq, w->sw, w->in, out, next);
	w->sw = to->peer;
	w->in = to->peer_port;
	return true;
}

/* Stages 1 and 2: which crossings there are, and by how many paths. */
static void weigh(struct rsm_voq *voq)
{
	const struct rsm_topo *topo = voq->spec.topo;
	uint64_t crossing;

	for (uint32_t from = 0; from < topo->n_ends; from++)
		for (uint32_t to = 0; to < topo->n_ends; to++)
			for (unsigned int i = 0; from != to && i < topo->ends[to].n_lids; i++) {
				struct walk w = walk_from(voq, from, topo->ends[to].lid + i);

				while (walk_next(&w, &crossing))
					voq->crossings += !voq->weight[crossing]++;
			}
}

struct weighed {
	uint32_t weight;
	uint64_t crossing;
};

static int by_weight(const void *a, const void *b)
{
	const struct weighed *one = a, *other = b;

	if (one->weight != other->weight)
		return one->weight > other->weight ? -1 : 1;
	return one->crossing < other->crossing ? -1 : one->crossing > other->crossing;
}

/* Stage 3: the most used ones first. */
static int sort(struct rsm_voq *voq)
{
	struct weighed *all = calloc(voq->crossings + 1, sizeof(*all));
	uint32_t n = 0;

	if (!all)
		return -ENOMEM;
	for (uint64_t i = 0; i < voq->n; i++)
		if (voq->weight[i])
			all[n++] = (struct weighed) { voq->weight[i], i };
	qsort(all, n, sizeof(*all), by_weight);
	memset(voq->rank, 0xff, voq->n * sizeof(*voq->rank));
	for (uint32_t i = 0; i < n; i++)
		voq->rank[all[i].crossing] = i;
	free(all);
	return 0;
}

/* SLs that paths use that part from this one at the next switch. */
static void add_busy(const struct rsm_voq *voq, uint64_t crossing, uint32_t considered,
		     uint64_t *busy)
{
	/* Neighbours lie side by side: they differ in the last port only. */
	uint64_t first = crossing - crossing % voq->most_ports;

	for (uint64_t i = first; i < first + voq->most_ports; i++) {
		if (i == crossing || voq->rank[i] >= considered)
			continue;
		for (unsigned int w = 0; w < voq->words; w++)
			busy[w] |= voq->used[i * voq->words + w];
	}
}

static unsigned int layer_of(const struct rsm_voq *voq, uint32_t from, uint16_t lid)
{
	if (!voq->spec.layer)
		return 0;
	return voq->spec.layer(voq->spec.context, voq->spec.topo->ends[from].lid, lid);
}

/* The first that is free, or of these the one that the fewest paths have. Returns @end if none is. */
static unsigned int choose(const uint64_t *busy, unsigned int first, unsigned int end,
			   const uint32_t *paths)
{
	unsigned int best = end;

	for (unsigned int sl = first; sl < end; sl++) {
		if (busy[sl / 64] >> sl % 64 & 1)
			continue;
		if (best == end || (paths && paths[sl] < paths[best]))
			best = sl;
		if (!paths)
			break;
	}
	return best;
}

/* One path: an SL of its layer that none of those has that it parts from. */
static int assign_path(struct rsm_voq *voq, uint32_t from, uint16_t lid, uint32_t considered,
		       uint32_t *paths)
{
	uint64_t busy[RSM_VOQ_SLS / 64] = { 0 }, crossing;
	struct walk w = walk_from(voq, from, lid);
	unsigned int layer = layer_of(voq, from, lid), first = layer * voq->spec.sls;
	unsigned int end = first + voq->spec.sls, sl;

	while (walk_next(&w, &crossing))
		if (voq->rank[crossing] < considered)
			add_busy(voq, crossing, considered, busy);
	sl = choose(busy, first, end, paths);
	if (sl == end)
		return -ENOSPC;
	if (paths)
		paths[sl]++;
	voq->sl[(size_t)from * voq->spec.n_lft + lid] = sl;
	if (sl - first >= voq->used_sls)
		voq->used_sls = sl - first + 1;
	w = walk_from(voq, from, lid);
	while (walk_next(&w, &crossing))
		if (voq->rank[crossing] < considered)
			voq->used[crossing * voq->words + sl / 64] |= 1ull << sl % 64;
	return 0;
}

/*
 * Stage 4: SLs for all paths, with queues for so many crossings. The lowest SLs, as in the paper, need
 * the fewest; @even: those that the fewest paths have.
 */
static int assign(struct rsm_voq *voq, uint32_t considered, bool even)
{
	const struct rsm_topo *topo = voq->spec.topo;
	uint32_t paths[RSM_VOQ_SLS] = { 0 };
	int rc = 0;

	memset(voq->used, 0, voq->n * voq->words * sizeof(*voq->used));
	voq->used_sls = 0;
	voq->considered = considered;
	for (uint32_t from = 0; from < topo->n_ends; from++)
		for (uint32_t to = 0; to < topo->n_ends; to++)
			for (unsigned int i = 0; from != to && i < topo->ends[to].n_lids && !rc; i++)
				rc = assign_path(voq, from, topo->ends[to].lid + i, considered,
						 even ? paths : NULL);
	return rc;
}

/*
 * As many crossings as SLs suffice for, and one more is too many. The paper tries one after the other;
 * here the step is halved.
 */
static void assign_most(struct rsm_voq *voq, bool even)
{
	uint32_t enough = 0, much = voq->crossings + 1;

	while (much - enough > 1) {
		uint32_t middle = much > voq->crossings ? voq->crossings :
				  enough + (much - enough) / 2;

		if (assign(voq, middle, even))
			much = middle;
		else
			enough = middle;
	}
	assign(voq, enough, even);
}

static int number_ports(struct rsm_voq *voq)
{
	const struct rsm_topo *topo = voq->spec.topo;

	voq->port_index = calloc(topo->n_switches + 1, sizeof(*voq->port_index));
	voq->first = calloc(topo->n_switches + 1, sizeof(*voq->first));
	if (!voq->port_index || !voq->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < topo->n_switches; i++)
		if (topo->switches[i].n_ports > voq->most_ports)
			voq->most_ports = topo->switches[i].n_ports;
	for (uint32_t i = 0; i < topo->n_switches; i++) {
		const struct rsm_topo_switch *sw = &topo->switches[i];
		uint8_t n = 0;

		voq->port_index[i] = calloc(sw->n_ports + 1, 1);
		if (!voq->port_index[i])
			return -ENOMEM;
		for (unsigned int port = 1; port < sw->n_ports; port++)
			if (sw->ports[port].peer != RSM_TOPO_NONE)
				voq->port_index[i][port] = n++;
		voq->first[i] = voq->n;
		voq->n += (uint64_t)sw->n_ports * sw->n_ports * voq->most_ports;
	}
	voq->first_end = voq->n;
	voq->n += (uint64_t)topo->n_ends * voq->most_ports;
	return 0;
}

static int make_room(struct rsm_voq *voq, char *why, size_t size)
{
	uint64_t paths = (uint64_t)voq->spec.topo->n_ends * voq->spec.n_lft;

	if (paths > MOST_ENTRIES || voq->n * voq->words > MOST_ENTRIES) {
		snprintf(why, size, "too large: %u ends, %u switches", voq->spec.topo->n_ends,
			 voq->spec.topo->n_switches);
		return -E2BIG;
	}
	voq->sl = calloc(paths + 1, sizeof(*voq->sl));
	voq->weight = calloc(voq->n + 1, sizeof(*voq->weight));
	voq->rank = calloc(voq->n + 1, sizeof(*voq->rank));
	voq->used = calloc(voq->n * voq->words + 1, sizeof(*voq->used));
	return voq->sl && voq->weight && voq->rank && voq->used ? 0 : -ENOMEM;
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
	int rc;

	*voq = (struct rsm_voq) { .spec = *spec };
	if (!spec->sls || !spec->vls || !spec->layers ||
	    spec->sls * spec->layers > RSM_VOQ_SLS || spec->vls * spec->layers > 15) {
		snprintf(why, size, "%u layers of %u SLs and %u VLs", spec->layers, spec->sls,
			 spec->vls);
		return -EINVAL;
	}
	voq->words = (spec->sls * spec->layers + 63) / 64;
	snprintf(why, size, "no memory");
	rc = number_ports(voq) ?: make_room(voq, why, size);
	if (!rc) {
		weigh(voq);
		rc = sort(voq);
	}
	if (rc) {
		rsm_voq_free(voq);
		return rc;
	}
	assign_most(voq, spec->even);
	return 0;
}

/** rsm_voq_sl - service level of the path from an end to a LID */
uint16_t rsm_voq_sl(const struct rsm_voq *voq, uint32_t end, uint16_t dlid)
{
	return dlid < voq->spec.n_lft ? voq->sl[(size_t)end * voq->spec.n_lft + dlid] : 0;
}

/** rsm_voq_port_vl - lane at a switch's inputs of packets that leave by a port of it */
uint8_t rsm_voq_port_vl(const struct rsm_voq *voq, uint32_t sw, uint8_t out, unsigned int layer)
{
	return layer * voq->spec.vls + voq->port_index[sw][out] % voq->spec.vls;
}

/**
 * rsm_voq_vl - stage 5: an entry of an SLtoVL table
 * @voq: of the fabric
 * @sw: the switch
 * @in: where packets come in
 * @out: where they leave
 * @sl: their service level
 *
 * A service level that is nobody's there gets any lane of its layer.
 */
uint8_t rsm_voq_vl(const struct rsm_voq *voq, uint32_t sw, uint8_t in, uint8_t out, uint16_t sl)
{
	const struct rsm_topo_port *to = behind(voq, sw, out);
	unsigned int layer = sl / voq->spec.sls, rest = sl % voq->spec.sls;

	if (layer >= voq->spec.layers)
		layer = 0;
	for (unsigned int next = 1; to && to->peer >= 0 && next < voq->most_ports; next++) {
		uint64_t crossing = rsm_voq_crossing(voq, sw, in, out, next);

		if (voq->rank[crossing] < voq->considered &&
		    voq->used[crossing * voq->words + sl / 64] >> sl % 64 & 1)
			return rsm_voq_port_vl(voq, to->peer, next, layer);
	}
	return layer * voq->spec.vls + rest % voq->spec.vls;
}

/** rsm_voq_end_vl - the same for a host's table */
uint8_t rsm_voq_end_vl(const struct rsm_voq *voq, uint32_t end, uint16_t sl)
{
	unsigned int layer = sl / voq->spec.sls;

	if (layer >= voq->spec.layers)
		layer = 0;
	for (unsigned int next = 1; next < voq->most_ports; next++) {
		uint64_t crossing = end_crossing(voq, end, next);

		if (voq->rank[crossing] < voq->considered &&
		    voq->used[crossing * voq->words + sl / 64] >> sl % 64 & 1)
			return rsm_voq_port_vl(voq, voq->spec.topo->ends[end].leaf, next, layer);
	}
	return layer * voq->spec.vls + sl % voq->spec.sls % voq->spec.vls;
}

/** rsm_voq_free - all that hangs on it */
void rsm_voq_free(struct rsm_voq *voq)
{
	for (uint32_t i = 0; voq->port_index && i < voq->spec.topo->n_switches; i++)
		free(voq->port_index[i]);
	free(voq->port_index);
	free(voq->first);
	free(voq->sl);
	free(voq->weight);
	free(voq->rank);
	free(voq->used);
	*voq = (struct rsm_voq) { 0 };
}
