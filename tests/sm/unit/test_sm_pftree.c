// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Engine pftree: the paper's examples, random partitions, bad policies. */
#include <errno.h>

#include "pftree.h"
#include "pftree_bed.h"
#include "pftree_known.h"

/* Letters are hosts: "AE,BFI": A and E are in one partition, B, F and I in another. */
static void partitions(struct fabric *f, const char *text, const enum wish *wishes)
{
	uint32_t part = bed_partition(f, *wishes);

	for (; *text; text++) {
		if (*text == ',')
			part = bed_partition(f, *++wishes);
		else
			bed_member(f, part, *text - 'A', true);
	}
}

/* The spine that a host of a tree of two leaves is reached by. */
static int32_t spine_to(const struct fabric *f, uint32_t end)
{
	for (uint32_t i = 0; i < f->topo.n_ends; i++) {
		int32_t from = f->topo.ends[i].leaf;

		if (from == f->topo.ends[end].leaf)
			continue;
		return f->topo.switches[from].ports[f->routes.lft[from][f->topo.ends[end].lid]].peer;
	}
	return -1;
}

/* How many hosts of a leaf share the spine of one. */
static unsigned int beside(const struct fabric *f, uint32_t end)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < f->topo.n_ends; i++)
		n += f->topo.ends[i].leaf == f->topo.ends[end].leaf &&
		     spine_to(f, i) == spine_to(f, end);
	return n;
}

/* Figure 4: two partitions, all balanced and nothing shared. Figure 12: one host weighs more. */
static void figures_4_and_12(void)
{
	static const enum wish any[] = { DEF, DEF };
	struct fabric f;
	struct judge j;

	bed_open(&f, "xgft:4,2/1,2");
	bed_topo(&f, 0, 8);
	partitions(&f, "ADGH,BCEF", any);
	CHECK_EQ(bed_route(&f, true), 0);
	j = judge(&f);
	CHECK_EQ(j.shared, 0);
	judge_end(&j);
	all_arrive(&f);
	for (uint32_t i = 0; i < f.topo.n_ends; i++)
		CHECK_EQ(beside(&f, i), 2);
	strcat(f.policy, "weight H1 100\n");
	f.opt.pftree_isolation = 0;
	CHECK_EQ(bed_route(&f, false), 0);
	CHECK_EQ(f.why[0], 0);
	CHECK_EQ(beside(&f, 0), 1);
	CHECK_EQ(beside(&f, 1), 3);
	for (uint32_t i = 4; i < f.topo.n_ends; i++)
		CHECK_EQ(beside(&f, i), 2);
	j = judge(&f);
	CHECK(j.shared >= 1);
	judge_end(&j);
	bed_close(&f);
}

/* By weights alone, the one heavy host of each of four leaves is reached by a spine of its own. */
static void heavy_ones_apart(void)
{
	static const enum wish any[] = { DEF };
	bool taken[16] = { false };
	struct fabric f;

	bed_open(&f, "xgft:8,4/1,4");
	bed_topo(&f, 0, 8);
	partitions(&f, "AIQY", any);
	for (unsigned int leaf = 0; leaf < 4; leaf++)
		sprintf(f.policy + strlen(f.policy), "weight H%u 100\n", 8 * leaf + 1);
	f.opt.pftree_isolation = 0;
	CHECK_EQ(bed_route(&f, false), 0);
	for (uint32_t i = 0; i < f.topo.n_ends; i += 8) {
		int32_t spine = spine_to(&f, i);

		CHECK(spine >= 0 && spine < 16 && !taken[spine]);
		taken[spine] = true;
	}
	all_arrive(&f);
	bed_close(&f);
}

/* Figure 5: three partitions, two spines. Figure 6: the first shares nothing. */
static void figures_5_and_6(void)
{
	static const enum wish none[] = { DEF, DEF, DEF }, first[] = { PHY, DEF, DEF };
	struct fabric f;
	struct judge j;

	for (int phy = 0; phy < 2; phy++) {
		bed_open(&f, "xgft:3,3/1,2");
		bed_topo(&f, 0, 8);
		partitions(&f, "AE,BFI,CDGH", phy ? first : none);
		CHECK_EQ(bed_route(&f, true), 0);
		all_arrive(&f);
		j = judge(&f);
		CHECK_EQ(j.broken, 0);
		for (uint32_t i = 0; i < j.n_links; i++)
			CHECK(!phy || !j.lanes[i][0] || (!j.lanes[i][1] && !j.lanes[i][2]));
		CHECK(phy || j.shared);
		judge_end(&j);
		bed_close(&f);
	}
}

/* Equation 1: what is counted becomes 1 to 100; what the policy says counts more. */
static void weights(void)
{
	struct pftree_policy policy = {
		.weights = (struct pftree_weight[]) { { .name = "H3", .weight = 7 } },
		.n_weights = 1,
	};
	static const int expected[] = { 1, 100, 7, 50, 34, 1 };
	static const uint64_t received[] = { 1000, 4000, 4000, 2500, 2000, 1020 };
	struct pftree p;
	struct fabric f;

	bed_open(&f, "xgft:3,2/1,2");
	bed_topo(&f, 0, 8);
	CHECK_EQ(pftree_model_make(&p, &f.topo, &policy, f.why, sizeof(f.why)), 0);
	for (unsigned int i = 0; i < 6; i++)
		CHECK_EQ(p.weights[i], i == 2 ? 7 : 1);
	pftree_model_free(&p);
	for (unsigned int i = 0; i < 6; i++)
		f.topo.ends[i].received = received[i];
	CHECK_EQ(pftree_model_make(&p, &f.topo, &policy, f.why, sizeof(f.why)), 0);
	for (unsigned int i = 0; i < 6; i++)
		CHECK_EQ(p.weights[i], expected[i]);
	pftree_model_free(&p);
	bed_close(&f);
}

/* The two links of the way from one end to another at another leaf of a tree with spines. */
static void links_of(const struct fabric *f, uint32_t from, uint32_t to, uint32_t *up, uint32_t *down)
{
	const struct rsm_topo_end *a = &f->topo.ends[from], *b = &f->topo.ends[to];
	uint32_t out = f->routes.lft[a->leaf][b->lid], spine = f->topo.switches[a->leaf].ports[out].peer;

	*up = a->leaf * 64 + out;
	*down = spine * 64 + f->routes.lft[spine][b->lid];
}

/* How often a flow shares a link with the other partition, all to all in both of them: figure 15. */
static unsigned int interference(const struct fabric *f)
{
	unsigned int flows[2][64 * 64] = { 0 }, found = 0;
	uint32_t up, down;

	for (int count = 0; count < 2; count++)
		for (uint32_t a = 0; a < f->topo.n_ends; a++)
			for (uint32_t b = 0; b < f->topo.n_ends; b++) {
				int part = talk(f, a, b);

				if (a == b || part < 0 || f->topo.ends[a].leaf == f->topo.ends[b].leaf)
					continue;
				links_of(f, a, b, &up, &down);
				if (count) {
					found += (flows[!part][up] > 0) + (flows[!part][down] > 0);
				} else {
					flows[part][up]++;
					flows[part][down]++;
				}
			}
	return found;
}

/* Equation 2: the more isolation counts, the less do two partitions with heavy hosts share. */
static void combined_objective(void)
{
	static const int parts[] = { 100, 50, 0 };
	unsigned int found[3] = { 0 };

	for (unsigned int seed = 0; seed < 20; seed++) {
		struct fabric f;

		srand(seed);
		bed_open(&f, "xgft:8,4/1,4");
		bed_topo(&f, 0, 8);
		bed_partition(&f, DEF);
		bed_partition(&f, DEF);
		for (uint32_t end = 0, first = 0, other = 0; end < f.topo.n_ends; end++) {
			if (end % 8 == 0) {
				first = rand() % 8;
				other = (first + 1 + rand() % 7) % 8;
			}
			bed_member(&f, end % 8 != first && end % 8 != other, end, true);
			f.topo.ends[end].received = end % 8 == first || (seed % 2 && end % 8 == other);
		}
		for (unsigned int i = 0; i < 3; i++) {
			f.opt.pftree_isolation = parts[i];
			CHECK_EQ(bed_route(&f, true), 0);
			found[i] += interference(&f);
		}
		bed_close(&f);
	}
	printf("interference: %u, half and half %u, by weights %u\n", found[0], found[1], found[2]);
	CHECK_EQ(found[0], 0);
	CHECK(found[1] > 0 && found[1] < found[2]);
}

/* Bits of all lanes in which packets are anywhere. */
static uint16_t used_lanes(const struct judge *j)
{
	uint16_t lanes = 0;

	for (uint32_t link = 0; link < j->n_links; link++)
		for (int part = 0; part < MOST_PARTS; part++)
			lanes |= j->lanes[link][part];
	return lanes;
}

/* Partitions that can not be kept apart are named, and one is given up. */
static void refusals(void)
{
	static const enum wish three[] = { PHY, PHY, DEF }, lanes[] = { VLANE, VLANE, DEF };
	struct fabric f;
	struct judge j;

	bed_open(&f, "xgft:3,3/1,2");
	bed_topo(&f, 0, 8);
	partitions(&f, "ADG,BEH,CFI", three);
	CHECK(bed_route(&f, true) < 0);
	CHECK(strstr(f.why, "part1 (0x0101) can not be phy"));
	CHECK(strstr(f.why, "2 links for 3 partitions, 2 of which share none"));
	CHECK_EQ(bed_route(&f, false), 0);
	CHECK(strstr(f.why, "partition part1 (0x0101) is not phy: it shares"));
	CHECK(!strstr(f.why, "part0 (0x0100) is not"));
	j = judge(&f);
	CHECK(j.broken);
	judge_end(&j);
	bed_close(&f);

	/* Lanes that are not there, or are not to be used. */
	for (int few = 0; few < 2; few++) {
		bed_open(&f, "xgft:3,3/1,1");
		bed_topo(&f, 0, few ? 8 : 2);
		f.opt.pftree_lanes = few ? 2 : 15;
		partitions(&f, "ADG,BEH,CFI", lanes);
		CHECK(bed_route(&f, true) < 0);
		CHECK(strstr(f.why, "2 lanes are too few"));
		CHECK_EQ(bed_route(&f, false), 0);
		CHECK(strstr(f.why, "partition part1 (0x0101) is not vlane: it shares"));
		CHECK(!strstr(f.why, "part0 (0x0100) is not"));
		j = judge(&f);
		CHECK(j.broken);
		CHECK_EQ(used_lanes(&j), 3);
		judge_end(&j);
		bed_close(&f);
		bed_open(&f, "xgft:3,3/1,1");
		bed_topo(&f, 0, few ? 8 : 3);
		f.opt.pftree_lanes = few ? 3 : 15;
		partitions(&f, "ADG,BEH,CFI", lanes);
		CHECK_EQ(bed_route(&f, true), 0);
		j = judge(&f);
		CHECK_EQ(j.broken, 0);
		CHECK_EQ(used_lanes(&j), 7);
		judge_end(&j);
		bed_close(&f);
	}
}

/* A host in an isolated partition and another one shares its own cable. */
static void two_partitions(void)
{
	static const enum wish wishes[] = { PHY, DEF }, lanes[] = { VLANE, DEF };
	struct fabric f;
	struct judge j;

	bed_open(&f, "xgft:3,3/1,2");
	bed_topo(&f, 0, 8);
	partitions(&f, "AE,EI", wishes);
	CHECK(bed_route(&f, true) < 0);
	CHECK(strstr(f.why, "a host of it is in part1 as well"));
	bed_close(&f);
	bed_open(&f, "xgft:3,3/1,2");
	bed_topo(&f, 0, 8);
	partitions(&f, "AE,EI", lanes);
	CHECK_EQ(bed_route(&f, true), 0);
	j = judge(&f);
	CHECK_EQ(j.broken, 0);
	judge_end(&j);
	bed_close(&f);
}

/* As many isolated partitions as there are spines to a leaf, with a host at each leaf. */
static void all_spines(void)
{
	struct fabric f;
	struct judge j;

	bed_open(&f, "xgft:6,6,6/1,6,6");
	bed_topo(&f, 0, 8);
	for (unsigned int i = 0; i < 6; i++)
		bed_partition(&f, PHY);
	for (uint32_t end = 0; end < f.topo.n_ends; end++)
		bed_member(&f, f.topo.ends[end].leaf_port % 6, end, true);
	CHECK_EQ(bed_route(&f, true), 0);
	j = judge(&f);
	CHECK_EQ(j.broken, 0);
	CHECK_EQ(j.shared, 0);
	judge_end(&j);
	all_arrive(&f);
	bed_close(&f);
}

static void bad_policies(void)
{
	static const char *const lines[] = {
		"partition part0", "partition part0 some", "partition 0x8000 phy",
		"partition part0 vlane links=2", "partition part0 phy links=0", "weight H1 0",
		"weight H1 101", "weight H1", "nothing", "partition \"part0 phy", "a b c d e f",
		"partition part0 phy links=2 more",
	};
	struct fabric f;

	bed_open(&f, "xgft:3,3/1,2");
	bed_topo(&f, 0, 8);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		sprintf(f.policy, "# one\n%s # two\n", lines[i]);
		CHECK(bed_route(&f, false) < 0);
		CHECK(strstr(f.why, ":3: not understood: "));
	}
	strcpy(f.policy, "partition nobody phy\n");
	CHECK(bed_route(&f, true) < 0);
	CHECK(strstr(f.why, "there is no partition nobody"));
	CHECK_EQ(bed_route(&f, false), 0);
	CHECK(!strcmp(f.why, "there is no partition nobody"));
	f.policy[0] = '\0';
	strcpy(f.opt.pftree_policy, "/nonexistent");
	CHECK(rsm_pftree_router.route(&f.topo, &f.opt, &f.routes, f.why, sizeof(f.why)) < 0);
	/* What can not be read does not stand for no wishes. */
	strcpy(f.opt.pftree_policy, "/tmp");
	CHECK(rsm_pftree_router.route(&f.topo, &f.opt, &f.routes, f.why, sizeof(f.why)) < 0);
	CHECK(strstr(f.why, "/tmp: Is a directory"));
	/* A comment of any length is one line. */
	snprintf(f.policy, sizeof(f.policy), "#%1500s\n", "some");
	CHECK_EQ(bed_route(&f, false), 0);
	bed_close(&f);
}

/* What one says of the first partition, by its P_Key, after a routing of before. Returns what the next one knows. */
static int missing(struct fabric *f, bool strict, struct pftree_known *known)
{
	struct pftree_policy policy = {
		.strict = strict,
		.rules = (struct pftree_rule[]) { { .pkey = 0x100, .isolation = PFTREE_PHY } },
		.n_rules = 1,
	};
	struct pftree_known next;
	int rc;

	f->why[0] = '\0';
	rc = pftree_known_check(known, &f->topo, &policy, f->why, sizeof(f->why));
	if (rc)
		return rc;
	pftree_known_remark(known, &f->topo, &policy, f->why, sizeof(f->why));
	CHECK_EQ(pftree_known_make(&next, known, &f->topo, &policy), 0);
	pftree_known_free(known);
	*known = next;
	return 0;
}

/* A partition that there was is missing while its hosts are there, while they are not, and when they come back. */
static void missing_partitions(void)
{
	static const enum wish wishes[] = { PHY, DEF };

	for (int strict = 0; strict < 2; strict++) {
		struct rsm_topo_partition *parts;
		struct pftree_known known = { 0 };
		struct fabric f;

		bed_open(&f, "xgft:3,3/1,2");
		bed_topo(&f, 0, 8);
		partitions(&f, "HI,AB", wishes);
		parts = f.topo.partitions;
		CHECK_EQ(missing(&f, strict, &known), 0);
		CHECK_EQ(f.why[0], 0);
		f.topo.partitions = parts + 1;
		f.topo.n_partitions = 1;
		CHECK(missing(&f, strict, &known) < 0);
		CHECK(!strcmp(f.why, "there is no partition 0x0100 any more, and its hosts are there"));
		f.topo.n_ends--;
		CHECK(missing(&f, strict, &known) < 0);
		f.topo.n_ends--;
		for (int i = 0; i < 2; i++) {
			CHECK_EQ(missing(&f, strict, &known), 0);
			CHECK_EQ(f.why[0], 0);
		}
		f.topo.n_ends += 2;
		CHECK_EQ(missing(&f, strict, &known), strict ? -ENOENT : 0);
		CHECK(strstr(f.why, "there is no partition 0x0100"));
		f.topo.partitions = parts;
		f.topo.n_partitions = 2;
		CHECK_EQ(missing(&f, strict, &known), 0);
		CHECK_EQ(f.why[0], 0);
		f.topo.partitions = parts + 1;
		f.topo.n_partitions = 1;
		CHECK(missing(&f, strict, &known) < 0);
		f.topo.partitions = parts;
		f.topo.n_partitions = 2;
		pftree_known_free(&known);
		bed_close(&f);
	}
}

/* Two cables from each leaf to each spine, and what is left of a tree. */
static void open_random(struct fabric *f, const char *spec)
{
	unsigned int lost = rand() % 4;

	if (*spec) {
		bed_open(f, spec);
	} else {
		bed_open(f, "xgft:4,1/1,1");
		net_free(&f->net);
		net_init(&f->net);
		for (unsigned int i = 0; i < 5; i++) {
			char name[] = { 'S', '1' + i, '\0' };

			CHECK_EQ(net_add(&f->net, NET_SWITCH, name, NULL, 8), i);
		}
		for (unsigned int leaf = 0; leaf < 3; leaf++)
			for (unsigned int i = 0; i < 4; i++)
				CHECK_EQ(net_plug(&f->net, leaf, 1 + i, 3 + i / 2,
						  1 + 2 * leaf + i % 2), 0);
		for (unsigned int i = 0; i < 12; i++) {
			char name[] = { 'H', 'a' + i, '\0' };

			CHECK_EQ(net_add(&f->net, NET_HCA, name, NULL, 1), 5 + i);
			CHECK_EQ(net_plug(&f->net, 5 + i, 1, i / 4, 5 + i % 4), 0);
		}
	}
	while (lost--) {
		uint32_t node = rand() % f->net.n;
		unsigned int port = 1 + rand() % f->net.nodes[node].nports;
		uint32_t peer = f->net.nodes[node].ports[port].peer;

		if (peer != NET_NONE && f->net.nodes[node].type == NET_SWITCH &&
		    f->net.nodes[peer].type == NET_SWITCH)
			net_unplug(&f->net, node, port);
	}
}

/* Of a host's link there are fewer lanes. */
static void narrow(struct fabric *f, uint32_t end)
{
	struct rsm_topo_end *narrowed = &f->topo.ends[end];

	narrowed->vls = 1;
	f->topo.switches[narrowed->leaf].ports[narrowed->leaf_port].vls = 1;
}

static void random_partitions(struct fabric *f)
{
	unsigned int n = 1 + rand() % 5;

	for (unsigned int i = 0; i < n; i++)
		bed_partition(f, rand() % 3);
	for (uint32_t end = 0; end < f->topo.n_ends; end++) {
		uint32_t part = rand() % n, other = rand() % n;

		bed_member(f, part, end, rand() % 8);
		if (!(rand() % 40) && other != part)
			bed_member(f, other, end, true);
		else if (!(rand() % 10))
			narrow(f, end);
	}
}

/* What the engine says that is shared is so by the judge, and by the same two. */
static unsigned int said_is_listed(const struct fabric *f, const char *list)
{
	unsigned int n = 0, port;
	char who[16], other[16], sw[16], wanted[80];

	for (const char *at = f->why; (at = strstr(at, "partition part")); at++) {
		const char *line;

		if (sscanf(at, "partition %15s (%*[^)]) is not %*[a-z]: it shares port %u of %15s with %15[a-z0-9]",
			   who, &port, sw, other) != 4)
			continue;
		snprintf(wanted, sizeof(wanted), "port %u of %s:", port, sw);
		line = strstr(list, wanted);
		CHECK(line && (line == list || line[-1] == '\n'));
		for (int i = 0; i < 2; i++) {
			const char *named;

			snprintf(wanted, sizeof(wanted), " %s (", i ? other : who);
			named = strstr(line, wanted);
			CHECK(named && named < strchr(line, '\n'));
		}
		n++;
	}
	return n;
}

/* Lists what is shared: all of it with SHARED=1. */
static unsigned int list_shared(const struct judge *j, unsigned int seed)
{
	unsigned int n;
	char *list;

	CHECK_EQ(judge_list(j, &list), j->shared);
	n = said_is_listed(j->f, list);
	if (getenv("SHARED"))
		printf("set %u: %u links are shared\n%s", seed, j->shared, list);
	free(list);
	return n;
}

/* The engine says just when the judge does that something is not as it was wanted. */
static void random_sets(unsigned int from, unsigned int to)
{
	static const char *const specs[] = {
		"xgft:4,4/1,4", "xgft:8,4/1,4", "xgft:2,2,4/1,2,2", "xgft:3,3/1,2", "xgft:4,3/1,3",
		"xgft:4,2,2/1,4,2", "",
	};
	unsigned int kept = 0, refused = 0, torn = 0, shared = 0, said = 0;

	for (unsigned int seed = from; seed < to; seed++) {
		struct fabric f;
		struct judge j;

		srand(seed);
		open_random(&f, specs[rand() % (sizeof(specs) / sizeof(*specs))]);
		bed_topo(&f, rand() % 4 ? 0 : 1, 1 + rand() % 8);
		random_partitions(&f);
		f.unjudged = seed % 8 && !getenv("LONG");
		f.opt.pftree_isolation = rand() % 3 * 50;
		if (bed_route(&f, true) && strstr(f.why, "no tree: no way leads up")) {
			torn++;
			bed_close(&f);
			continue;
		}
		if (bed_route(&f, true)) {
			refused++;
			CHECK(f.why[0]);
		} else {
			kept++;
			j = judge(&f);
			CHECK_EQ(j.broken, 0);
			judge_end(&j);
			all_arrive(&f);
		}
		CHECK_EQ(bed_route(&f, false), 0);
		j = judge(&f);
		CHECK_EQ(!j.broken, !f.why[0]);
		shared += j.shared;
		said += list_shared(&j, seed);
		judge_end(&j);
		all_arrive(&f);
		bed_close(&f);
	}
	printf("%u sets kept, %u refused, %u on no tree any more; %u shared links listed, %u as the engine says\n", kept,
	       refused, torn, shared, said);
	CHECK(shared > said && said > (to - from) / 20);
	CHECK(kept > (to - from) / 3 && refused > (to - from) / 20 && kept + refused >= 1000);
}

/*
 * Two hosts of a partition that shares nothing take the only way over the top from one half to the
 * other. What is left for the others leads down by a leaf and up again: that is no way.
 *
 *	      P
 *	     / \
 *	    A   S
 *	   /|\ /|\
 *	  Y Q X T Z	a host each; X hangs at both
 */
static void no_way_down_and_up(void)
{
	static const char cables[] = "AP SP YA QA XA XS TS ZS yY qQ xX tT zZ";
	uint8_t used[128] = { 0 };
	int32_t end[128] = { 0 };
	struct fabric f = { .opt = { .pftree_isolation = 100, .pftree_lanes = 15 } };
	uint32_t part;

	net_init(&f.net);
	for (const char *c = "PASYQXTZyqxtz"; *c; c++) {
		char id[] = { *c, '\0' };

		CHECK(net_add(&f.net, *c < 'a' ? NET_SWITCH : NET_HCA, id, id, *c < 'a' ? 6 : 1) !=
		      NET_NONE);
	}
	for (const char *c = cables; *c; c += c[2] ? 3 : 2) {
		char a[] = { c[0], '\0' }, b[] = { c[1], '\0' };

		CHECK_EQ(net_plug(&f.net, net_find(&f.net, a), ++used[(int)c[0]],
				  net_find(&f.net, b), ++used[(int)c[1]]), 0);
	}
	bed_topo(&f, 0, 8);
	for (uint32_t i = 0; i < f.topo.n_ends; i++)
		end[(int)*f.topo.ends[i].name] = i;
	part = bed_partition(&f, PHY);
	bed_member(&f, part, end['y'], true);
	bed_member(&f, part, end['z'], true);
	part = bed_partition(&f, DEF);
	bed_member(&f, part, end['q'], true);
	bed_member(&f, part, end['t'], true);
	bed_member(&f, part, end['x'], true);
	CHECK(bed_route(&f, true));
	CHECK_EQ(bed_route(&f, false), 0);
	CHECK(f.why[0]);
	all_arrive(&f);
	bed_close(&f);
}

int main(void)
{
	figures_4_and_12();
	heavy_ones_apart();
	figures_5_and_6();
	weights();
	combined_objective();
	refusals();
	two_partitions();
	all_spines();
	bad_policies();
	missing_partitions();
	no_way_down_and_up();
	random_sets(0, 1200);
	return 0;
}
