// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How partitions disturb each other in fat trees that engine pftree has routed: patterns of flows
 * over its tables, counted by link, without time. What a pattern is delayed is the number of flows
 * on the fullest link that it uses. A quarter of the nodes of each leaf, taken at random, are the
 * victims; the others interfere.
 *
 *	partitions SETS PATTERNS [SEED]	random sets of victims; patterns in each
 *
 * A line of JSON for each result.
 */
#include "pftree_bed.h"

#define MOST_NODES 1024
#define MOST_LEAVES 16
#define MOST_SPINES 16

enum { DOWN, UP, WAYS };

static unsigned int seed = 1;

static const struct size {
	unsigned int hosts;	/* of a leaf */
	unsigned int leaves;
	unsigned int spines;
} sizes[] = {
	{ 8, 4, 4 }, { 12, 4, 4 }, { 16, 4, 4 }, { 16, 8, 8 }, { 24, 8, 8 }, { 32, 8, 8 },
	{ 32, 16, 16 }, { 48, 16, 16 }, { 64, 16, 16 },
};

static const char *const patterns[] = {
	"bisect", "bisect_fb_sym", "gather", "scatter", "alltoall",
};

enum { BISECT, BISECT_FB_SYM, GATHER, SCATTER, ALLTOALL, PATTERNS };

struct engine {
	const char *name;
	bool blind;		/* it is told of one partition with all */
	bool phy;
	bool much;		/* links as the paper's engine takes them, not the victims' share */
	int isolation;
};

static const struct engine engines[] = {
	{ "unaware", true, false, false, 100 },
	{ "pFTree", false, false, false, 100 },
	{ "pFTree-Ext", false, true, true, 100 },
	{ "pFTree-Ext, fair", false, true, false, 100 },
};

static const struct engine weighted[] = {
	{ "unaware", true, false, false, 100 },
	{ "pFTree", false, false, false, 100 },
	{ "pFTree-Wt", false, false, false, 0 },
	{ "half and half", false, false, false, 50 },
};

/* Links by number: [UP] leaf * spines + spine, [DOWN] the other way; hosts' own, out and in. */
struct map {
	const struct size *size;
	unsigned int n;
	unsigned int leaf[MOST_NODES];
	uint8_t spine[MOST_LEAVES][MOST_NODES];
	uint32_t flows[WAYS][MOST_LEAVES * MOST_SPINES];
	uint32_t out[MOST_NODES], in[MOST_NODES];
};

struct flow {
	uint16_t from, to;
};

struct span {
	double least, sum, most;
	unsigned long n;
};

static void span_add(struct span *s, double value)
{
	if (!s->n || value < s->least)
		s->least = value;
	if (!s->n || value > s->most)
		s->most = value;
	s->sum += value;
	s->n++;
}

static void span_print(const char *name, const struct span *s)
{
	printf(", \"%s\": [%.6g, %.6g, %.6g]", name, s->least, s->sum / s->n, s->most);
}

static uint32_t *up_of(struct map *m, struct flow f)
{
	return &m->flows[UP][m->leaf[f.from] * m->size->spines + m->spine[m->leaf[f.from]][f.to]];
}

static uint32_t *down_of(struct map *m, struct flow f)
{
	return &m->flows[DOWN][m->leaf[f.to] * m->size->spines + m->spine[m->leaf[f.from]][f.to]];
}

static void add(struct map *m, const struct flow *flows, unsigned int n, int by)
{
	for (unsigned int i = 0; i < n; i++) {
		m->out[flows[i].from] += by;
		m->in[flows[i].to] += by;
		if (m->leaf[flows[i].from] == m->leaf[flows[i].to])
			continue;
		*up_of(m, flows[i]) += by;
		*down_of(m, flows[i]) += by;
	}
}

static uint32_t fullest(struct map *m, struct flow f)
{
	uint32_t most = m->out[f.from];

	if (m->in[f.to] > most)
		most = m->in[f.to];
	if (m->leaf[f.from] == m->leaf[f.to])
		return most;
	if (*up_of(m, f) > most)
		most = *up_of(m, f);
	return *down_of(m, f) > most ? *down_of(m, f) : most;
}

static uint32_t delay(struct map *m, const struct flow *flows, unsigned int n)
{
	uint32_t most = 0;

	add(m, flows, n, 1);
	for (unsigned int i = 0; i < n; i++) {
		uint32_t here = fullest(m, flows[i]);

		most = here > most ? here : most;
	}
	add(m, flows, n, -1);
	return most;
}

/* Mean part of a link that a flow gets. */
static double bandwidth(struct map *m, const struct flow *flows, unsigned int n)
{
	double sum = 0;

	add(m, flows, n, 1);
	for (unsigned int i = 0; i < n; i++)
		sum += 1.0 / fullest(m, flows[i]);
	add(m, flows, n, -1);
	return sum / n;
}

static void shuffle(uint16_t *nodes, unsigned int n)
{
	for (unsigned int i = n - 1; i > 0; i--) {
		unsigned int j = rand() % (i + 1);
		uint16_t kept = nodes[i];

		nodes[i] = nodes[j];
		nodes[j] = kept;
	}
}

static unsigned int all_to_all(const uint16_t *nodes, unsigned int n, struct flow *flows)
{
	unsigned int k = 0;

	for (unsigned int i = 0; i < n; i++)
		for (unsigned int j = 0; j < n; j++)
			if (i != j)
				flows[k++] = (struct flow) { nodes[i], nodes[j] };
	return k;
}

static unsigned int make_pattern(int pattern, uint16_t *nodes, unsigned int n, struct flow *flows)
{
	unsigned int k = 0;

	if (pattern == ALLTOALL)
		return all_to_all(nodes, n, flows);
	shuffle(nodes, n);
	if (pattern == GATHER || pattern == SCATTER) {
		for (unsigned int i = 1; i < n; i++)
			flows[k++] = pattern == GATHER ? (struct flow) { nodes[i], nodes[0] } :
							 (struct flow) { nodes[0], nodes[i] };
		return k;
	}
	for (unsigned int i = 0; i < n / 2; i++) {
		flows[k++] = (struct flow) { nodes[i], nodes[n / 2 + i] };
		if (pattern == BISECT_FB_SYM)
			flows[k++] = (struct flow) { nodes[n / 2 + i], nodes[i] };
	}
	return k;
}

/* The victims of each leaf, and the others. */
static void choose(const struct fabric *f, const struct size *size, uint16_t *victims,
		   uint16_t *others)
{
	unsigned int n = 0, m = 0;

	for (uint32_t sw = 0; sw < f->topo.n_switches; sw++) {
		uint16_t here[MOST_NODES];
		unsigned int k = 0;

		for (uint32_t i = 0; i < f->topo.n_ends; i++)
			if (f->topo.ends[i].leaf == (int32_t)sw)
				here[k++] = i;
		if (!k)
			continue;
		shuffle(here, k);
		for (unsigned int i = 0; i < k; i++) {
			if (i < size->hosts / 4)
				victims[n++] = here[i];
			else
				others[m++] = here[i];
		}
	}
}

static void read_tables(const struct fabric *f, struct map *m)
{
	int number[2 * (MOST_LEAVES + MOST_SPINES)], n_leaves = 0, n_spines = 0;

	for (uint32_t sw = 0; sw < f->topo.n_switches; sw++) {
		bool leaf = false;

		for (uint32_t i = 0; i < f->topo.n_ends; i++)
			leaf |= f->topo.ends[i].leaf == (int32_t)sw;
		number[sw] = leaf ? n_leaves++ : n_spines++;
		for (uint32_t i = 0; leaf && i < f->topo.n_ends; i++)
			if (f->topo.ends[i].leaf == (int32_t)sw)
				m->leaf[i] = number[sw];
	}
	for (uint32_t i = 0; i < f->topo.n_ends; i++)
		for (uint32_t j = 0; j < f->topo.n_ends; j++) {
			int32_t from = f->topo.ends[j].leaf;
			uint8_t port = f->routes.lft[from][f->topo.ends[i].lid];

			if (from != f->topo.ends[i].leaf)
				m->spine[number[from]][i] =
					number[f->topo.switches[from].ports[port].peer];
		}
}

static void open_size(struct fabric *f, const struct size *size)
{
	char spec[40];

	snprintf(spec, sizeof(spec), "xgft:%u,%u/1,%u", size->hosts, size->leaves, size->spines);
	bed_open(f, spec);
	bed_topo(f, 0, 8);
}

static void divide(struct fabric *f, const struct size *size, const struct engine *engine,
		  const uint16_t *victims, const uint16_t *others)
{
	unsigned int n = f->topo.n_ends, links = size->hosts / 4;

	while (f->topo.n_partitions)
		free(f->topo.partitions[--f->topo.n_partitions].members);
	f->policy[0] = '\0';
	bed_partition(f, engine->phy ? PHY : DEF);
	bed_partition(f, DEF);
	if (links > size->spines * 3 / 4)
		links = size->spines * 3 / 4;
	if (engine->phy && engine->much)
		sprintf(f->policy, "partition part0 phy links=%u\n", links);
	for (unsigned int i = 0; i < n / 4; i++)
		bed_member(f, 0, victims[i], true);
	for (unsigned int i = 0; i < n - n / 4; i++)
		bed_member(f, !engine->blind, others[i], true);
	f->opt.pftree_isolation = engine->isolation;
}

/* Table 4, figures 10 and 11. */
static void disturb(const struct size *size, const struct engine *engine, unsigned int sets,
		    unsigned int tries)
{
	static struct flow flows[MOST_NODES * MOST_NODES];
	struct span spans[PATTERNS][2] = { 0 }, ebb = { 0 };
	static uint16_t victims[MOST_NODES], others[MOST_NODES];
	static struct map m;
	struct fabric f;
	unsigned int n;

	srand(seed);
	open_size(&f, size);
	n = f.topo.n_ends;
	for (unsigned int set = 0; set < sets; set++) {
		choose(&f, size, victims, others);
		divide(&f, size, engine, victims, others);
		CHECK_EQ(bed_route(&f, true), 0);
		memset(&m, 0, sizeof(m));
		m.size = size;
		read_tables(&f, &m);
		for (int noise = 0; noise < 2; noise++) {
			if (noise)
				add(&m, flows, all_to_all(others, n - n / 4, flows), 1);
			for (int p = 0; p < PATTERNS; p++) {
				unsigned int again = p == ALLTOALL ? 1 : tries;

				while (again--) {
					unsigned int k;
					static struct flow of[MOST_NODES * MOST_NODES / 16];

					k = make_pattern(p, victims, n / 4, of);
					span_add(&spans[p][noise], delay(&m, of, k));
				}
			}
		}
		add(&m, flows, all_to_all(others, n - n / 4, flows), -1);
		for (unsigned int i = 0; i < tries; i++) {
			unsigned int k = make_pattern(BISECT, others, n - n / 4, flows);

			span_add(&ebb, bandwidth(&m, flows, k));
		}
	}
	for (int p = 0; p < PATTERNS; p++) {
		printf("{\"nodes\": %u, \"engine\": \"%s\", \"pattern\": \"%s\"", n, engine->name,
		       patterns[p]);
		span_print("quiet", &spans[p][0]);
		span_print("noisy", &spans[p][1]);
		printf("}\n");
	}
	printf("{\"nodes\": %u, \"engine\": \"%s\"", n, engine->name);
	span_print("ebb", &ebb);
	printf("}\n");
	fflush(stdout);
	bed_close(&f);
}

/* Links with routes to several receivers, by direction; and what is more than one, in all. */
static void contention(const struct map *m, const bool *receives, unsigned int n, struct span *sums,
		       struct span *links)
{
	static uint8_t routes[WAYS][MOST_LEAVES * MOST_SPINES];
	const struct size *size = m->size;

	memset(routes, 0, sizeof(routes));
	for (unsigned int i = 0; i < n; i++) {
		bool down[MOST_SPINES] = { false };

		for (unsigned int leaf = 0; receives[i] && leaf < size->leaves; leaf++) {
			unsigned int spine = m->spine[leaf][i];

			if (leaf == m->leaf[i])
				continue;
			routes[UP][leaf * size->spines + spine]++;
			down[spine] = true;
		}
		for (unsigned int spine = 0; spine < size->spines; spine++)
			routes[DOWN][m->leaf[i] * size->spines + spine] += down[spine];
	}
	for (int way = 0; way < WAYS; way++) {
		unsigned int sum = 0, count = 0;

		for (unsigned int i = 0; i < size->leaves * size->spines; i++) {
			sum += routes[way][i] ? routes[way][i] - 1 : 0;
			count += routes[way][i] > 1;
		}
		span_add(&sums[way], sum);
		span_add(&links[way], count);
	}
}

/* How often a flow of one partition shares a link with flows of the other. */
static unsigned int interference(struct map *m, const uint16_t *victims, const uint16_t *others,
				 unsigned int n)
{
	static struct flow of[2][MOST_NODES * MOST_NODES];
	unsigned int k[2], found = 0;

	k[0] = all_to_all(victims, n / 4, of[0]);
	k[1] = all_to_all(others, n - n / 4, of[1]);
	for (int mine = 0; mine < 2; mine++) {
		add(m, of[!mine], k[!mine], 1);
		for (unsigned int i = 0; i < k[mine]; i++)
			if (m->leaf[of[mine][i].from] != m->leaf[of[mine][i].to])
				found += (*up_of(m, of[mine][i]) > 0) +
					 (*down_of(m, of[mine][i]) > 0);
		add(m, of[!mine], k[!mine], -1);
	}
	return found;
}

/* Figures 13 to 15: so many victims of each leaf receive, from one to all. */
static void weigh(const struct size *size, const struct engine *engine, unsigned int sets)
{
	struct span sums[WAYS] = { 0 }, links[WAYS] = { 0 }, shared = { 0 };
	static uint16_t victims[MOST_NODES], others[MOST_NODES];
	static struct map m;
	struct fabric f;
	unsigned int n, each = size->hosts / 4;

	srand(seed);
	open_size(&f, size);
	n = f.topo.n_ends;
	for (unsigned int set = 0; set < sets; set++)
		for (unsigned int r = 1; r <= each; r++) {
			bool receives[MOST_NODES] = { false };

			choose(&f, size, victims, others);
			divide(&f, size, engine, victims, others);
			for (unsigned int i = 0; i < n / 4; i++)
				receives[victims[i]] = i % each < r;
			/* Weights are learnt: 100 and 1. */
			for (unsigned int i = 0; i < n; i++)
				f.topo.ends[i].received = receives[i];
			CHECK_EQ(bed_route(&f, true), 0);
			memset(&m, 0, sizeof(m));
			m.size = size;
			read_tables(&f, &m);
			contention(&m, receives, n, sums, links);
			span_add(&shared, interference(&m, victims, others, n));
		}
	printf("{\"nodes\": %u, \"engine\": \"%s\"", n, engine->name);
	span_print("contention_down", &sums[DOWN]);
	span_print("contention_up", &sums[UP]);
	span_print("contended_down", &links[DOWN]);
	span_print("contended_up", &links[UP]);
	span_print("interference", &shared);
	printf("}\n");
	fflush(stdout);
	bed_close(&f);
}

int main(int argc, char **argv)
{
	unsigned int sets = argc > 1 ? atoi(argv[1]) : 0, tries = argc > 2 ? atoi(argv[2]) : 0;

	if (!sets || !tries) {
		fprintf(stderr, "usage: %s SETS PATTERNS [SEED]\n", argv[0]);
		return 2;
	}
	if (argc > 3)
		seed = atoi(argv[3]);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (size_t e = 0; e < sizeof(engines) / sizeof(*engines); e++)
			disturb(&sizes[i], &engines[e], sets, tries);
		for (size_t e = 0; e < sizeof(weighted) / sizeof(*weighted); e++)
			weigh(&sizes[i], &weighted[e], 5);
	}
	return 0;
}
