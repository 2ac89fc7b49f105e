// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A strict policy is refused only where nothing keeps it: on small trees of two levels all tables
 * and all lanes are tried. A table is a spine for each host and each other leaf.
 */
#include "pftree_bed.h"

#define LEAVES 3
#define SPINES 3

/* A host that is reached from a leaf, by some partitions. */
struct choice {
	uint32_t from;
	uint32_t to;
	uint32_t parts;
};

struct brute {
	const struct fabric *f;
	struct choice choices[64];
	unsigned int n;
	unsigned int spines;
	unsigned int lanes;
	uint32_t leaf_of[64];			/* by end: 0, 1, 2 */
	uint8_t up[LEAVES][SPINES][MOST_PARTS];
	uint8_t down[SPINES][LEAVES][MOST_PARTS];
	uint32_t own[64];			/* by end: partitions on its cable */
	bool apart[MOST_PARTS][MOST_PARTS];
	int lane[MOST_PARTS];
};

static bool meets(const struct brute *b, int one, int other)
{
	for (uint32_t i = 0; i < b->f->topo.n_ends; i++)
		if ((b->own[i] >> one & 1) && (b->own[i] >> other & 1))
			return true;
	for (unsigned int leaf = 0; leaf < LEAVES; leaf++)
		for (unsigned int spine = 0; spine < b->spines; spine++)
			if ((b->up[leaf][spine][one] && b->up[leaf][spine][other]) ||
			    (b->down[spine][leaf][one] && b->down[spine][leaf][other]))
				return true;
	return false;
}

static bool paint(struct brute *b, uint32_t part)
{
	if (part == b->f->topo.n_partitions)
		return true;
	for (unsigned int lane = 0; lane < b->lanes; lane++) {
		bool fits = true;

		b->lane[part] = lane;
		for (uint32_t i = 0; i < part; i++)
			if (b->apart[part][i] &&
			    !peaceful(b->f, part, i, b->lane[part], b->lane[i]))
				fits = false;
		if (fits && paint(b, part + 1))
			return true;
	}
	return false;
}

static bool keeps_all(struct brute *b)
{
	for (uint32_t i = 0; i < b->f->topo.n_partitions; i++)
		for (uint32_t j = 0; j < i; j++)
			b->apart[i][j] = meets(b, i, j);
	return paint(b, 0);
}

static void put(struct brute *b, const struct choice *c, unsigned int spine, int by)
{
	for (uint32_t part = 0; part < b->f->topo.n_partitions; part++) {
		if (!(c->parts >> part & 1))
			continue;
		b->up[c->from][spine][part] += by;
		b->down[spine][b->leaf_of[c->to]][part] += by;
	}
}

/* What shares a link against the rules already does so whatever else is chosen. */
static bool is_hopeless(const struct brute *b, const uint8_t *link)
{
	for (uint32_t i = 0; i < b->f->topo.n_partitions; i++)
		for (uint32_t j = 0; j < i; j++)
			if (link[i] && link[j] && !peaceful(b->f, i, j, 0, 1))
				return true;
	return false;
}

static bool try_all(struct brute *b, unsigned int at)
{
	const struct choice *c = &b->choices[at];

	if (at == b->n)
		return keeps_all(b);
	for (unsigned int spine = 0; spine < b->spines; spine++) {
		bool kept;

		put(b, c, spine, 1);
		kept = !is_hopeless(b, b->up[c->from][spine]) &&
		       !is_hopeless(b, b->down[spine][b->leaf_of[c->to]]) && try_all(b, at + 1);
		put(b, c, spine, -1);
		if (kept)
			return true;
	}
	return false;
}

static bool possible(const struct fabric *f, unsigned int spines, unsigned int lanes)
{
	struct brute b = { .f = f, .spines = spines, .lanes = lanes };
	int32_t leaves[LEAVES];
	unsigned int n = 0;

	for (uint32_t i = 0; i < f->topo.n_ends; i++) {
		unsigned int at = 0;

		while (at < n && leaves[at] != f->topo.ends[i].leaf)
			at++;
		if (at == n)
			leaves[n++] = f->topo.ends[i].leaf;
		b.leaf_of[i] = at;
	}
	for (uint32_t to = 0; to < f->topo.n_ends; to++)
		for (unsigned int from = 0; from < n; from++) {
			struct choice c = { .from = from, .to = to };

			for (uint32_t i = 0; i < f->topo.n_ends; i++) {
				int part = i != to && b.leaf_of[i] == from ? talk(f, i, to) : -1;

				if (part < 0)
					continue;
				c.parts |= 1u << part;
				b.own[i] |= 1u << part;
				b.own[to] |= 1u << part;
			}
			if (c.parts && from != b.leaf_of[to])
				b.choices[b.n++] = c;
		}
	for (uint32_t i = 0; i < f->topo.n_partitions; i++)
		for (uint32_t j = 0; j < i; j++)
			for (uint32_t end = 0; end < f->topo.n_ends; end++)
				if ((b.own[end] >> i & 1) && (b.own[end] >> j & 1) &&
				    !peaceful(f, i, j, 0, 1))
					return false;
	return try_all(&b, 0);
}

int main(void)
{
	unsigned int kept = 0, refused = 0;

	for (unsigned int seed = 0; seed < 1000; seed++) {
		unsigned int leaves, hosts, spines, lanes, n;
		struct fabric f;
		char spec[40];
		bool could;
		int rc;

		srand(seed);
		leaves = 2 + rand() % 2;
		spines = 1 + rand() % SPINES;
		hosts = leaves == 2 ? 2 + rand() % 3 : 2;
		lanes = 1 + rand() % 3;
		n = 2 + rand() % 3;
		snprintf(spec, sizeof(spec), "xgft:%u,%u/1,%u", hosts, leaves, spines);
		bed_open(&f, spec);
		bed_topo(&f, 0, lanes);
		for (unsigned int i = 0; i < n; i++)
			bed_partition(&f, rand() % 3);
		for (uint32_t end = 0; end < f.topo.n_ends; end++) {
			uint32_t part = rand() % n, other = rand() % n;

			bed_member(&f, part, end, rand() % 4);
			if (!(rand() % 10) && other != part)
				bed_member(&f, other, end, true);
		}
		could = possible(&f, spines, lanes);
		rc = bed_route(&f, true);
		if (could != !rc)
			fprintf(stderr, "seed %u, %s, %u lanes: %s: %s\n", seed, spec, lanes,
				could ? "possible" : "impossible", f.why);
		CHECK_EQ(could, !rc);
		kept += could;
		refused += !could;
		bed_close(&f);
	}
	printf("%u sets possible, %u not\n", kept, refused);
	CHECK(kept > 200 && refused > 100);
	return 0;
}
