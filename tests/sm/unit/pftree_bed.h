/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A fabric with partitions for engine pftree, and a judge of what it makes: packets between all
 * ends that may talk are walked by LFTs, SLs and SLtoVL tables, and each link remembers which
 * partition was on it in which lane. The judge knows nothing of the engine's.
 */
#ifndef PFTREE_BED_H
#define PFTREE_BED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "judged.h"
#include "options.h"
#include "router.h"
#include "topo_net.h"

#define MOST_PARTS 32
#define FAR 100

enum wish { DEF, VLANE, PHY };

struct fabric {
	struct net net;
	struct rsm_topo topo;
	struct rsm_routes routes;
	struct rsm_options opt;
	char names[MOST_PARTS][16];
	enum wish wishes[MOST_PARTS];
	char policy[2000];
	char why[512];
	bool unjudged;		/* by repath fabric check */
};

extern const struct rsm_router rsm_pftree_router;

static inline void bed_open(struct fabric *f, const char *spec)
{
	*f = (struct fabric) { .opt = { .pftree_isolation = 100, .pftree_lanes = 15 } };
	net_init(&f->net);
	CHECK_EQ(net_make(&f->net, spec), 0);
}

static inline void bed_topo(struct fabric *f, unsigned int lmc, unsigned int vls)
{
	CHECK_EQ(topo_of_net(&f->net, lmc, vls, &f->topo), 0);
	f->topo.partitions = calloc(MOST_PARTS, sizeof(*f->topo.partitions));
}

static inline uint32_t bed_partition(struct fabric *f, enum wish wish)
{
	static const char *const words[] = { "def", "vlane", "phy" };
	uint32_t i = f->topo.n_partitions++;
	size_t at = strlen(f->policy);

	CHECK(i < MOST_PARTS);
	snprintf(f->names[i], sizeof(f->names[i]), "part%u", i);
	f->wishes[i] = wish;
	f->topo.partitions[i] = (struct rsm_topo_partition) {
		.pkey = 0x100 + i,
		.name = f->names[i],
		.members = calloc(f->topo.n_ends, sizeof(struct rsm_topo_member)),
	};
	snprintf(f->policy + at, sizeof(f->policy) - at, "partition part%u %s\n", i, words[wish]);
	return i;
}

static inline void bed_member(struct fabric *f, uint32_t part, int32_t end, bool full)
{
	struct rsm_topo_partition *partition = &f->topo.partitions[part];

	partition->members[partition->n_members++] = (struct rsm_topo_member) { end, full };
}

static inline void bed_unroute(struct fabric *f)
{
	for (uint32_t i = 0; f->routes.lft && i < f->topo.n_switches; i++)
		free(f->routes.lft[i]);
	free(f->routes.lft);
	if (f->routes.free)
		f->routes.free(f->routes.context);
	f->routes = (struct rsm_routes) { 0 };
}

static inline int bed_route(struct fabric *f, bool strict)
{
	char path[] = "/tmp/pftree-XXXXXX";
	int fd = mkstemp(path), rc;
	FILE *file = fdopen(fd, "w");

	CHECK(file);
	fprintf(file, "%s\n%s", strict ? "strict" : "best-effort", f->policy);
	fclose(file);
	bed_unroute(f);
	f->routes.n_lft = f->topo.max_lid + 1;
	f->routes.lft = calloc(f->topo.n_switches, sizeof(*f->routes.lft));
	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		f->routes.lft[i] = malloc(f->routes.n_lft);
		memset(f->routes.lft[i], RSM_NO_PORT, f->routes.n_lft);
	}
	strcpy(f->opt.pftree_policy, path);
	f->why[0] = '\0';
	rc = rsm_pftree_router.route(&f->topo, &f->opt, &f->routes, f->why, sizeof(f->why));
	unlink(path);
	if (!rc)
		strcpy(f->why, f->routes.remark);
	if (!rc && !f->unjudged)
		CHECK_EQ(judged(&f->topo, &f->routes, false, NULL), 0);
	return rc;
}

static inline void bed_close(struct fabric *f)
{
	bed_unroute(f);
	rsm_topo_free(&f->topo);
	net_free(&f->net);
}

/* 0: it is no member, 1: a limited one, 2: a full one. */
static inline int membership(const struct fabric *f, uint32_t part, uint32_t end)
{
	const struct rsm_topo_partition *partition = &f->topo.partitions[part];

	for (uint32_t i = 0; i < partition->n_members; i++)
		if (partition->members[i].end == (int32_t)end)
			return 1 + partition->members[i].full;
	return 0;
}

/* In which partition two ends talk: the strictest, then the first; -1: they do not. */
static inline int talk(const struct fabric *f, uint32_t a, uint32_t b)
{
	int best = -1;

	for (uint32_t i = 0; i < f->topo.n_partitions; i++) {
		int one = membership(f, i, a), other = membership(f, i, b);

		if (one && other && one + other > 2 &&
		    (best < 0 || f->wishes[i] > f->wishes[best]))
			best = i;
	}
	return best;
}

/* Whether two partitions on one link keep what is wanted, in these lanes. */
static inline bool peaceful(const struct fabric *f, int one, int other, int lane, int other_lane)
{
	if (one == other)
		return true;
	if (f->wishes[one] == PHY || f->wishes[other] == PHY)
		return false;
	return (f->wishes[one] == DEF && f->wishes[other] == DEF) || lane != other_lane;
}

struct judge {
	const struct fabric *f;
	uint32_t *first;	/* number of a switch's port 0; ends' own ports come after all */
	uint16_t (*lanes)[MOST_PARTS];	/* by link and partition: bits of lanes */
	uint32_t n_links;
	uint32_t shared;	/* links with several partitions */
	uint32_t broken;	/* pairs of partitions on a link against what is wanted */
};

static inline void judge_walk(struct judge *j, uint32_t from, uint32_t to, uint16_t dlid, int part)
{
	const struct rsm_topo *topo = &j->f->topo;
	const struct rsm_routes *routes = &j->f->routes;
	uint8_t sl = routes->sl(routes->context, topo->ends[from].lid, dlid);
	uint32_t at = topo->ends[from].leaf, in = topo->ends[from].leaf_port;
	uint32_t own = j->n_links - topo->n_ends + from;
	uint8_t vl = routes->vl(routes->context, -1, 0, from, sl);

	CHECK(vl < topo->ends[from].vls);
	j->lanes[own][part] |= 1 << vl;
	for (unsigned int hops = 0; hops < FAR; hops++) {
		uint32_t out = routes->lft[at][dlid];
		const struct rsm_topo_port *port = &topo->switches[at].ports[out];

		CHECK(out && out < topo->switches[at].n_ports);
		vl = routes->vl(routes->context, at, in, out, sl);
		CHECK(vl < port->vls);
		j->lanes[j->first[at] + out][part] |= 1 << vl;
		if (port->peer == RSM_TOPO_END) {
			CHECK_EQ(port->end, to);
			return;
		}
		CHECK(port->peer >= 0);
		at = port->peer;
		in = port->peer_port;
	}
	CHECK(!"arrived");
}

static inline void judge_link(struct judge *j, uint32_t link)
{
	const struct fabric *f = j->f;
	uint16_t *lanes = j->lanes[link];
	unsigned int users = 0;

	for (uint32_t a = 0; a < f->topo.n_partitions; a++) {
		if (!lanes[a])
			continue;
		users++;
		for (uint32_t b = 0; b < a; b++)
			if (lanes[b] && !peaceful(f, a, b, 0, !(lanes[a] & lanes[b])))
				j->broken++;
	}
	j->shared += users > 1;
}

static inline struct judge judge(const struct fabric *f)
{
	struct judge j = { .f = f, .first = calloc(f->topo.n_switches, sizeof(*j.first)) };

	for (uint32_t i = 0; i < f->topo.n_switches; i++) {
		j.first[i] = j.n_links;
		j.n_links += f->topo.switches[i].n_ports;
	}
	j.n_links += f->topo.n_ends;
	j.lanes = calloc(j.n_links, sizeof(*j.lanes));
	for (uint32_t a = 0; a < f->topo.n_ends; a++)
		for (uint32_t b = 0; b < f->topo.n_ends; b++) {
			int part = a == b ? -1 : talk(f, a, b);

			for (unsigned int lid = 0; part >= 0 && lid < f->topo.ends[b].n_lids; lid++)
				judge_walk(&j, a, b, f->topo.ends[b].lid + lid, part);
		}
	for (uint32_t i = 0; i < j.n_links; i++)
		judge_link(&j, i);
	return j;
}

/* A link as the engine has it: "port 3 of S1"; of a host's own port "port 1 of H1". */
static inline void judge_name(const struct judge *j, uint32_t link, char *name, size_t size)
{
	const struct rsm_topo *topo = &j->f->topo;
	uint32_t sw = 0, own = j->n_links - topo->n_ends;

	if (link >= own) {
		snprintf(name, size, "port 1 of %s", topo->ends[link - own].name);
		return;
	}
	while (sw + 1 < topo->n_switches && j->first[sw + 1] <= link)
		sw++;
	snprintf(name, size, "port %u of %s", link - j->first[sw], topo->switches[sw].name);
}

/* All links that several partitions are on, each with those and their lanes. Returns how many; @list is to be freed. */
static inline uint32_t judge_list(const struct judge *j, char **list)
{
	uint32_t n = 0;
	size_t room;
	FILE *to = open_memstream(list, &room);

	CHECK(to);
	for (uint32_t link = 0; link < j->n_links; link++) {
		char name[80];
		int users = 0;

		for (uint32_t part = 0; part < j->f->topo.n_partitions; part++)
			users += j->lanes[link][part] != 0;
		if (users < 2)
			continue;
		judge_name(j, link, name, sizeof(name));
		fprintf(to, "%s:", name);
		for (uint32_t part = 0; part < j->f->topo.n_partitions; part++)
			if (j->lanes[link][part])
				fprintf(to, " %s (%#x)", j->f->names[part], j->lanes[link][part]);
		fprintf(to, "\n");
		n++;
	}
	fclose(to);
	return n;
}

static inline void judge_end(struct judge *j)
{
	free(j->first);
	free(j->lanes);
}

static inline bool has_cables(const struct rsm_topo_switch *sw)
{
	for (unsigned int port = 1; port < sw->n_ports; port++)
		if (sw->ports[port].peer >= 0)
			return true;
	return false;
}

/* Everything arrives from everywhere, also where nobody talks: management does. */
static inline void all_arrive(const struct fabric *f)
{
	for (uint32_t sw = 0; sw < f->topo.n_switches; sw++) {
		if (!has_cables(&f->topo.switches[sw]))
			continue;
		for (uint32_t i = 0; i < f->topo.n_ends; i++) {
			const struct rsm_topo_end *end = &f->topo.ends[i];

			for (unsigned int lid = end->lid; lid < end->lid + end->n_lids; lid++) {
				uint32_t at = sw;
				unsigned int hops = 0;

				while (at != (uint32_t)end->leaf && hops++ < FAR) {
					uint8_t out = f->routes.lft[at][lid];

					CHECK(out < f->topo.switches[at].n_ports);
					CHECK(f->topo.switches[at].ports[out].peer >= 0);
					at = f->topo.switches[at].ports[out].peer;
				}
				CHECK_EQ(at, end->leaf);
				CHECK_EQ(f->routes.lft[at][lid], end->leaf_port);
			}
		}
	}
}

#endif
