// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "method.h"
#include "paths.h"
#include "plugin.h"
#include "queue.h"
#include "rate.h"
#include "signal.h"

#define RECORD	64	/* bytes of a path record */
#define PACKET	200	/* of an answer's packet, for records */
#define ACKED	64	/* packets of an answer that are acknowledged at once */

/** rsm_method_compares - whether paths need to be compared at all */
bool rsm_method_compares(const struct rsm *rsm)
{
	return rsm->opt.method != RSM_WILDCARD;
}

/** rsm_method_unpaths - whether hosts are told before tables change, too: the papers do not */
bool rsm_method_unpaths(const struct rsm *rsm)
{
	if (rsm->opt.unpath >= 0)
		return rsm->opt.unpath;
	return rsm->opt.method == RSM_AFFECTED || rsm->opt.method == RSM_AUTO;
}

/** rsm_method_keeps - how many changes of one host are needed one by one */
uint32_t rsm_method_keeps(const struct rsm *rsm)
{
	switch (rsm->opt.method) {
	case RSM_REPATH_ONLY:
		return RSM_QUEUE_MOST;
	case RSM_AUTO:
		return rsm->opt.auto_records;
	default:
		return 0;
	}
}

/* Who has another LID than before, and where that was: there is nobody now, or it is not said. */
static void add_moved(const struct rsm *rsm, const struct rsm_change *change, struct rsm_notice *notice)
{
	ib_gid_t gid = { .unicast = { rsm->osm->subn.opt.subnet_prefix, change->guid } };

	notice->flags = REPATH_SM_MOVED;
	notice->mask |= REPATH_SM_MASK_DGID;
	memcpy(notice->path.dgid, &gid, sizeof(notice->path.dgid));
	notice->old_dlid = change->taken ? 0 : change->was;
}

static struct rsm_notice wildcard(const struct rsm *rsm, uint16_t trap)
{
	return (struct rsm_notice) {
		.trap = trap,
		.flags = REPATH_SM_ROUTE | (trap == REPATH_SM_UNPATH ? REPATH_SM_WAIT_FOR_REPATH : 0),
		.serial = rsm->serial,
	};
}

/* A port with several LIDs has the same path from each of them: of another kind there are no records. */
static struct rsm_notice record(const struct rsm *rsm, uint16_t trap,
				const struct rsm_changed_end *end, const struct rsm_change *change)
{
	struct rsm_notice notice = wildcard(rsm, trap);

	notice.mask = REPATH_SM_MASK_DLID;
	notice.path.dlid = cl_hton16(change->dlid);
	if (end->n_lids == 1) {
		notice.mask |= REPATH_SM_MASK_SLID;
		notice.path.slid = cl_hton16(end->lid);
	}
	if (change->attr == RSM_NO_PATH) {
		notice.flags = REPATH_SM_ROUTE;
		return notice;
	}
	if (trap == REPATH_SM_UNPATH)
		notice.flags |= REPATH_SM_AHEAD;
	notice.mask |= REPATH_SM_MASK_SL | REPATH_SM_MASK_MTU | REPATH_SM_MASK_RATE |
		       REPATH_SM_MASK_LIFE;
	notice.path.num_path = 0x80;
	notice.path.qos_class_sl = cl_hton16(change->sl);
	notice.path.mtu = REPATH_SM_EXACTLY | RSM_ATTR_MTU(change->attr);
	notice.path.rate = REPATH_SM_EXACTLY | rsm_place_rate(RSM_ATTR_PLACE(change->attr));
	notice.path.pkt_life = REPATH_SM_EXACTLY | rsm->osm->subn.opt.subnet_timeout;
	if (change->was)
		add_moved(rsm, change, &notice);
	return notice;
}

/* Returns whether somebody was told what a path will be. */
static bool tell_records(struct rsm *rsm, uint16_t trap, const struct rsm_changed_end *end)
{
	bool ahead = false;

	for (uint32_t i = 0; i < end->n_kept; i++) {
		struct rsm_notice notice = record(rsm, trap, end, &end->changes[i]);

		/* A port has its LID before tables change: nothing is there any more that could break. */
		if (trap == REPATH_SM_UNPATH && end->changes[i].was)
			continue;
		/* No path any more: that was said by UnPath, or is said by it now. */
		if (trap == REPATH_SM_REPATH && end->changes[i].attr == RSM_NO_PATH) {
			if (rsm_method_unpaths(rsm))
				continue;
			notice.trap = REPATH_SM_UNPATH;
		}
		if (rsm_signal_port(rsm, end->lid, &notice))
			ahead |= notice.flags & REPATH_SM_AHEAD;
	}
	return ahead;
}

/**
 * cost_of_all - MADs of a host that is told to ask for all its paths, by RePath
 * @n_records: of the answer: from each LID of its port to each LID of the subnet, its own and the switches' too
 *
 * The notice and its response, the question, the answer's packets of 200 bytes of records, and what the host's kernel
 * acknowledges of those: the first, each 64th after it, and the last. Beside 36 switches and as many hosts of one LID
 * that is 72 records of 64 bytes: 2 + 1 + 24 + 2 = 29.
 *
 * Paper II, equations 1 to 3, has 4 + n / 4 without the response: n paths to hosts, four in a packet, two MADs of RMPP.
 */
static uint32_t cost_of_all(uint32_t n_records)
{
	uint32_t packets = (n_records * RECORD + PACKET - 1) / PACKET;
	uint32_t acks = 1 + (packets - 1 + ACKED - 1) / ACKED;

	return 2 + 1 + packets + acks;
}

/* RePath and its response for each: of 14 paths 28. What UnPath costs besides is what loading them ahead is worth. */
static uint32_t cost_of_records(uint32_t n)
{
	return 2 * n;
}

static bool is_cheaper(const struct rsm *rsm, const struct rsm_changes *changes, const struct rsm_changed_end *end)
{
	uint32_t n_lids = changes->n_paths + cl_qmap_count(&rsm->osm->subn.sw_guid_tbl);

	return cost_of_records(end->n) <= cost_of_all(end->n_lids * n_lids);
}

static bool by_records(const struct rsm *rsm, const struct rsm_changes *changes,
		       const struct rsm_changed_end *end)
{
	/* What a record without SLID says is not so from each of its LIDs. */
	if (end->own_sl)
		return false;
	/* The queue has no room for all: what it leaves out of other LIDs is not made good for by those after it. */
	if (end->n != end->n_kept)
		return false;
	/* What goes to one of several LIDs by a GID is to go on to the one in its place, which an answer with all shows. */
	for (uint32_t i = 0; i < end->n_kept; i++)
		if (end->changes[i].was && end->changes[i].several)
			return false;
	return rsm->opt.method == RSM_REPATH_ONLY ||
	       (rsm->opt.method == RSM_AUTO && is_cheaper(rsm, changes, end));
}

/** rsm_method_tell_all - say that any path may be another, whatever the method: nobody knows which */
void rsm_method_tell_all(struct rsm *rsm, uint16_t trap)
{
	struct rsm_notice all = wildcard(rsm, trap);

	rsm_signal_all(rsm, &all);
}

/*
 * A device that only migrates goes over when both ends have loaded an alternate path (IBA 1.2.1 vol 1, 17.2.8): who is at
 * the other end of a path that is another now is told the way back as well, though nothing is new for him. In the
 * papers nobody does that.
 */
static bool tells_both(const struct rsm *rsm)
{
	return rsm->opt.method == RSM_AUTO && rsm->opt.both_ends;
}

static void tell_way_back(struct rsm *rsm, const struct rsm_changed_end *end, const struct rsm_change *path)
{
	struct rsm_notice notice = record(rsm, REPATH_SM_REPATH, end, path);

	notice.flags = REPATH_SM_WAY_BACK;
	rsm_signal_port(rsm, end->lid, &notice);
}

/**
 * rsm_method_way_back - tell a host of a path that is what it was, for the sake of who is at its other end
 * @rsm: the plugin; OpenSM's lock is held
 * @slid: the host
 * @dlid: who has another path to it
 */
void rsm_method_way_back(struct rsm *rsm, uint16_t slid, uint16_t dlid)
{
	const struct rsm_prd *prd = rsm_paths_prd(rsm);
	struct rsm_changed_end end;
	struct rsm_change path;

	if (tells_both(rsm) && rsm_prd_path(prd, slid, dlid, &end, &path) && !end.own_sl &&
	    rsm_prd_is_told(prd, slid, dlid))
		tell_way_back(rsm, &end, &path);
}

/**
 * struct ways_back - who hears of a routing
 * @changes: of it
 * @ends: by LID: the number of the end that has it there, from 1 on
 * @told: by LID: how many ways back that end has heard of
 */
struct ways_back {
	const struct rsm_changes *changes;
	uint32_t *ends;
	uint16_t *told;
};

static bool is_among(const struct rsm_changed_end *end, uint16_t dlid)
{
	for (uint32_t i = 0; i < end->n_kept; i++)
		if (end->changes[i].dlid == dlid)
			return true;
	return false;
}

/* Whether it hears of its own path, be it by an answer with all, of which it is not known what was in it. */
static bool hears_itself(const struct ways_back *w, uint16_t slid, uint16_t dlid)
{
	const struct rsm_changed_end *end = w->ends[slid] ? &w->changes->ends[w->ends[slid] - 1] : NULL;

	return end && (end->n != end->n_kept || is_among(end, dlid));
}

/* From each LID of the port that has another path there are connections. */
static void tell_others(struct rsm *rsm, struct ways_back *w, const struct rsm_changed_end *end,
			const struct rsm_change *change)
{
	for (unsigned int i = 0; i < end->n_lids; i++) {
		struct rsm_changed_end other;
		struct rsm_change back;

		if (!rsm_prd_path(rsm_paths_prd(rsm), change->dlid, end->lid + i, &other, &back) || other.own_sl ||
		    change->dlid != other.lid || hears_itself(w, other.lid, end->lid + i) ||
		    w->told[other.lid] >= rsm->opt.auto_records)
			continue;
		w->told[other.lid]++;
		tell_way_back(rsm, &other, &back);
	}
}

/* Those at the other ends of paths, who hear of no change of their own; each of so many as it is told records. */
static void tell_other_ends(struct rsm *rsm, const struct rsm_changes *changes)
{
	struct ways_back w = {
		.changes = changes,
		.ends = calloc(UINT16_MAX + 1, sizeof(*w.ends)),
		.told = calloc(UINT16_MAX + 1, sizeof(*w.told)),
	};

	for (uint32_t i = 0; w.ends && i < changes->n_ends; i++)
		w.ends[changes->ends[i].lid] = i + 1;
	for (uint32_t i = 0; w.ends && w.told && i < changes->n_ends; i++) {
		const struct rsm_changed_end *end = &changes->ends[i];

		for (uint32_t j = 0; end->n == end->n_kept && j < end->n_kept; j++)
			if (!end->changes[j].was && end->changes[j].attr != RSM_NO_PATH)
				tell_others(rsm, &w, end, &end->changes[j]);
	}
	free(w.ends);
	free(w.told);
}

/**
 * rsm_method_tell - say it to whom it concerns
 * @rsm: the plugin, whose subscribers were refreshed
 * @trap: REPATH_SM_UNPATH before tables change, REPATH_SM_REPATH afterwards
 * @changes: which paths; not looked at by a method that does not compare
 *
 * Return: whether somebody was told what a path will be, and can prepare for it.
 */
bool rsm_method_tell(struct rsm *rsm, uint16_t trap, const struct rsm_changes *changes)
{
	struct rsm_notice all = wildcard(rsm, trap);
	bool ahead = false;

	switch (rsm->opt.method) {
	case RSM_WILDCARD:
		rsm_method_tell_all(rsm, trap);
		return false;
	case RSM_HYBRID:
		if (changes->n)
			rsm_method_tell_all(rsm, trap);
		return false;
	}
	for (uint32_t i = 0; i < changes->n_ends; i++) {
		const struct rsm_changed_end *end = &changes->ends[i];

		if (by_records(rsm, changes, end))
			ahead |= tell_records(rsm, trap, end);
		else
			rsm_signal_port(rsm, end->lid, &all);
	}
	if (tells_both(rsm) && trap == REPATH_SM_REPATH)
		tell_other_ends(rsm, changes);
	return ahead;
}
