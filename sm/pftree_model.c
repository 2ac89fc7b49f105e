// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Partitions become classes of ends, and demands between leaves.
 *
 * Two ends that have several partitions in common talk in the strictest of these, for a path has
 * one service level. The default partition is there for management: who is in another one as well
 * does not count as its member, unless the policy names it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pftree.h"

#define DEFAULT_PKEY	0x7fff

struct maker {
	struct pftree *p;
	const struct rsm_topo *topo;
	const struct pftree_policy *policy;
	struct pftree_member **lists;	/* by end; sorted, as partitions are */
	uint32_t *lengths;
	uint32_t *by_list;
	uint32_t *sizes;		/* of classes */
	uint32_t *first_of_part;
	struct place *places;
	uint32_t room;
};

/* A class that has ends at a leaf. */
struct place {
	uint32_t part;
	uint32_t sw;
	uint32_t class;
};

static bool rule_means(const struct pftree_rule *rule, const struct rsm_topo_partition *partition)
{
	return rule->name[0] ? !strcmp(rule->name, partition->name) :
			       rule->pkey == partition->pkey;
}

static int make_parts(struct maker *m)
{
	struct pftree *p = m->p;

	p->n_parts = m->topo->n_partitions;
	p->parts = calloc(p->n_parts + 1, sizeof(*p->parts));
	p->pairs = calloc((size_t)p->n_parts * p->n_parts + 1, sizeof(*p->pairs));
	p->meet = calloc((size_t)p->n_parts * p->n_parts + 1, sizeof(*p->meet));
	if (!p->parts || !p->pairs || !p->meet)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_parts; i++)
		p->parts[i] = (struct pftree_part) {
			.pkey = m->topo->partitions[i].pkey,
			.name = m->topo->partitions[i].name,
			.rank = m->policy->n_rules + i,
			.lane = PFTREE_NO_LANE,
		};
	for (uint32_t r = m->policy->n_rules; r-- > 0;) {
		const struct pftree_rule *rule = &m->policy->rules[r];

		for (uint32_t i = 0; i < p->n_parts; i++) {
			if (!rule_means(rule, &m->topo->partitions[i]))
				continue;
			p->parts[i].wanted = rule->isolation;
			p->parts[i].isolation = rule->isolation;
			p->parts[i].links = rule->links;
			p->parts[i].rank = r;
		}
	}
	return 0;
}

static bool is_named(const struct maker *m, uint32_t part)
{
	for (uint32_t r = 0; r < m->policy->n_rules; r++)
		if (rule_means(&m->policy->rules[r], &m->topo->partitions[part]))
			return true;
	return false;
}

static int make_lists(struct maker *m)
{
	uint32_t n_ends = m->topo->n_ends;

	for (uint32_t i = 0; i < m->topo->n_partitions; i++)
		for (uint32_t j = 0; j < m->topo->partitions[i].n_members; j++)
			m->lengths[m->topo->partitions[i].members[j].end]++;
	for (uint32_t i = 0; i < n_ends; i++) {
		m->lists[i] = calloc(m->lengths[i] + 1, sizeof(**m->lists));
		if (!m->lists[i])
			return -ENOMEM;
		m->lengths[i] = 0;
	}
	for (uint32_t i = 0; i < m->topo->n_partitions; i++) {
		const struct rsm_topo_partition *partition = &m->topo->partitions[i];
		bool manages = partition->pkey == DEFAULT_PKEY && !is_named(m, i);

		/* It is the last, by its P_Key. */
		for (uint32_t j = 0; j < partition->n_members; j++) {
			int32_t end = partition->members[j].end;

			if (manages && m->lengths[end])
				continue;
			m->lists[end][m->lengths[end]++] = (struct pftree_member) {
				i, partition->members[j].full
			};
		}
	}
	return 0;
}

static int compare_lists(const void *a, const void *b, void *context)
{
	const struct maker *m = context;
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	if (m->lengths[one] != m->lengths[other])
		return m->lengths[one] < m->lengths[other] ? -1 : 1;
	for (uint32_t i = 0; i < m->lengths[one]; i++) {
		const struct pftree_member *x = &m->lists[one][i], *y = &m->lists[other][i];

		if (x->part != y->part)
			return x->part < y->part ? -1 : 1;
		if (x->full != y->full)
			return x->full ? -1 : 1;
	}
	return 0;
}

static int make_classes(struct maker *m)
{
	struct pftree *p = m->p;
	uint32_t n = m->topo->n_ends, n_members = 0;

	for (uint32_t i = 0; i < n; i++) {
		m->by_list[i] = i;
		n_members += m->lengths[i];
	}
	qsort_r(m->by_list, n, sizeof(*m->by_list), compare_lists, m);
	p->classes = calloc(n + 1, sizeof(*p->classes));
	p->members = calloc(n_members + 1, sizeof(*p->members));
	p->class_of = calloc(n + 1, sizeof(*p->class_of));
	if (!p->classes || !p->members || !p->class_of)
		return -ENOMEM;
	n_members = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t end = m->by_list[i];

		if (!i || compare_lists(&m->by_list[i - 1], &end, m)) {
			p->classes[p->n_classes++] = (struct pftree_class) {
				n_members, m->lengths[end]
			};
			memcpy(&p->members[n_members], m->lists[end],
			       m->lengths[end] * sizeof(**m->lists));
			n_members += m->lengths[end];
		}
		p->class_of[end] = p->n_classes - 1;
	}
	return 0;
}

/**
 * pftree_common - the partition in which ends of two classes talk
 * @p: the work
 * @one: index of a class
 * @other: and of another one or the same
 *
 * Return: its index, or PFTREE_NOBODY.
 */
uint32_t pftree_common(const struct pftree *p, uint32_t one, uint32_t other)
{
	const struct pftree_class *a = &p->classes[one], *b = &p->classes[other];
	uint32_t i = 0, j = 0, best = PFTREE_NOBODY;

	while (i < a->n && j < b->n) {
		const struct pftree_member *x = &p->members[a->first + i];
		const struct pftree_member *y = &p->members[b->first + j];

		i += x->part <= y->part;
		j += y->part <= x->part;
		if (x->part != y->part || (!x->full && !y->full))
			continue;
		if (best == PFTREE_NOBODY || p->parts[x->part].wanted > p->parts[best].wanted)
			best = x->part;
	}
	return best;
}

static int by_part(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	if (one->part != other->part)
		return one->part < other->part ? -1 : 1;
	if (one->sw != other->sw)
		return one->sw < other->sw ? -1 : 1;
	return one->class < other->class ? -1 : one->class > other->class;
}

/* Where each partition has ends. */
static int make_places(struct maker *m)
{
	struct pftree *p = m->p;
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < m->topo->n_ends; i++)
		n += m->lengths[i];
	m->places = calloc(n + 1, sizeof(*m->places));
	if (!m->places)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < m->topo->n_ends; i++)
		for (uint32_t j = 0; j < m->lengths[i]; j++)
			m->places[n++] = (struct place) {
				m->lists[i][j].part, m->topo->ends[i].leaf, p->class_of[i]
			};
	qsort(m->places, n, sizeof(*m->places), by_part);
	for (uint32_t i = 0; i < n; i++)
		if (!i || by_part(&m->places[i - 1], &m->places[i]))
			m->places[kept++] = m->places[i];
	for (uint32_t i = 0, part = 0; part <= p->n_parts; part++) {
		m->first_of_part[part] = i;
		while (i < kept && m->places[i].part == part)
			i++;
	}
	return 0;
}

static int by_from(const void *a, const void *b)
{
	const struct pftree_demand *one = a, *other = b;

	if (one->from != other->from)
		return one->from < other->from ? -1 : 1;
	return one->part < other->part ? -1 : one->part > other->part;
}

static int add_demand(struct maker *m, uint32_t tree, uint32_t from, uint32_t part)
{
	struct pftree *p = m->p;
	const struct pftree_demand *last = p->n_demands ? &p->demands[p->n_demands - 1] : NULL;

	if (last && last->tree == tree && last->from == from && last->part == part)
		return 0;
	if (p->n_demands == m->room) {
		void *more = realloc(p->demands, (2 * m->room + 64) * sizeof(*p->demands));

		if (!more)
			return -ENOMEM;
		p->demands = more;
		m->room = 2 * m->room + 64;
	}
	p->demands[p->n_demands++] = (struct pftree_demand) { tree, from, part };
	return 0;
}

static int make_demands(struct maker *m, uint32_t index)
{
	struct pftree *p = m->p;
	struct pftree_tree *tree = &p->trees[index];
	const struct pftree_class *class = &p->classes[tree->class];
	uint32_t leaf = p->tree.leaves[tree->leaf], kept;

	tree->first = p->n_demands;
	for (uint32_t i = 0; i < class->n; i++) {
		uint32_t part = p->members[class->first + i].part;

		for (uint32_t at = m->first_of_part[part]; at < m->first_of_part[part + 1]; at++) {
			const struct place *place = &m->places[at];

			if (place->sw != leaf &&
			    pftree_common(p, tree->class, place->class) == part &&
			    add_demand(m, index, place->sw, part))
				return -ENOMEM;
		}
	}
	kept = tree->first;
	if (class->n > 1 && p->n_demands > kept)
		qsort(&p->demands[kept], p->n_demands - kept, sizeof(*p->demands), by_from);
	for (uint32_t i = tree->first; i < p->n_demands; i++)
		if (i == tree->first || by_from(&p->demands[i - 1], &p->demands[i]))
			p->demands[kept++] = p->demands[i];
	p->n_demands = kept;
	tree->n = kept - tree->first;
	return 0;
}

static int by_class(const void *a, const void *b, void *context)
{
	const struct pftree *p = context;
	uint32_t one = p->class_of[*(const uint32_t *)a], other = p->class_of[*(const uint32_t *)b];

	return one < other ? -1 : one > other;
}

static int make_trees(struct maker *m)
{
	struct pftree *p = m->p;
	uint32_t *ends = m->by_list;

	p->trees = calloc(m->topo->n_ends + 1, sizeof(*p->trees));
	p->tree_of = calloc(m->topo->n_ends + 1, sizeof(*p->tree_of));
	if (!p->trees || !p->tree_of)
		return -ENOMEM;
	for (uint32_t leaf = 0; leaf < p->tree.n_leaves; leaf++) {
		uint32_t n = p->tree.first_end[leaf + 1] - p->tree.first_end[leaf];
		struct pftree_tree *tree = NULL;

		memcpy(ends, &p->tree.ends[p->tree.first_end[leaf]], n * sizeof(*ends));
		qsort_r(ends, n, sizeof(*ends), by_class, p);
		for (uint32_t i = 0; i < n; i++) {
			if (!tree || tree->class != p->class_of[ends[i]]) {
				tree = &p->trees[p->n_trees++];
				tree->class = p->class_of[ends[i]];
				tree->leaf = leaf;
			}
			tree->n_ends++;
			p->tree_of[ends[i]] = tree - p->trees;
		}
	}
	for (uint32_t i = 0; i < p->n_trees; i++)
		if (make_demands(m, i))
			return -ENOMEM;
	return 0;
}

/* Whether some end talks in that partition with ends of that class. */
static bool talks(const struct maker *m, uint32_t class, uint32_t part)
{
	const struct pftree *p = m->p;

	for (uint32_t at = m->first_of_part[part]; at < m->first_of_part[part + 1]; at++) {
		uint32_t other = m->places[at].class;

		if ((other != class || m->sizes[class] > 1) &&
		    pftree_common(p, class, other) == part)
			return true;
	}
	return false;
}

/* Partitions that use the cable of the same end, which no routing keeps apart. */
static void find_meetings(struct maker *m)
{
	struct pftree *p = m->p;

	for (uint32_t i = 0; i < m->topo->n_ends; i++)
		m->sizes[p->class_of[i]]++;
	for (uint32_t i = 0; i < p->n_classes; i++) {
		const struct pftree_member *in = &p->members[p->classes[i].first];
		uint32_t n = p->classes[i].n;

		for (uint32_t a = 0; n > 1 && a < n; a++)
			for (uint32_t b = 0; b < n; b++)
				if (a != b && talks(m, i, in[a].part) && talks(m, i, in[b].part))
					p->meet[in[a].part * p->n_parts + in[b].part] = true;
	}
}

static int make_links(struct pftree *p)
{
	p->first_link = calloc(p->topo->n_switches + 1, sizeof(*p->first_link));
	if (!p->first_link)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->topo->n_switches; i++) {
		p->first_link[i] = p->n_links;
		p->n_links += p->topo->switches[i].n_ports;
	}
	p->links = calloc(p->n_links + 1, sizeof(*p->links));
	p->marks = calloc((size_t)p->topo->n_switches * p->n_parts + 1, sizeof(*p->marks));
	return p->links && p->marks ? 0 : -ENOMEM;
}

static int make(struct maker *m)
{
	int rc = make_parts(m);

	rc = rc ?: make_lists(m) ?: make_classes(m) ?: make_places(m) ?: make_trees(m) ?:
	     make_links(m->p) ?: pftree_weigh(m->p, m->policy);
	if (!rc)
		find_meetings(m);
	return rc;
}

/**
 * pftree_model_make - who talks to whom
 * @p: filled in; for pftree_model_free(), also after a failure
 * @topo: stays as long
 * @policy: what is wanted
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0 or a negative error number.
 */
int pftree_model_make(struct pftree *p, const struct rsm_topo *topo,
		      const struct pftree_policy *policy, char *why, size_t size)
{
	struct maker m = {
		.p = p,
		.topo = topo,
		.policy = policy,
		.lists = calloc(topo->n_ends + 1, sizeof(*m.lists)),
		.lengths = calloc(topo->n_ends + 1, sizeof(*m.lengths)),
		.by_list = calloc(topo->n_ends + 1, sizeof(*m.by_list)),
		.sizes = calloc(topo->n_ends + 1, sizeof(*m.sizes)),
		.first_of_part = calloc(topo->n_partitions + 2, sizeof(*m.first_of_part)),
	};
	int rc;

	*p = (struct pftree) { .topo = topo };
	rc = rsm_fat_tree_make(&p->tree, topo, why, size);
	if (!rc) {
		snprintf(why, size, "no memory");
		rc = -ENOMEM;
		if (m.lists && m.lengths && m.by_list && m.sizes && m.first_of_part)
			rc = make(&m);
	}
	for (uint32_t i = 0; m.lists && i < topo->n_ends; i++)
		free(m.lists[i]);
	free(m.lists);
	free(m.lengths);
	free(m.by_list);
	free(m.sizes);
	free(m.first_of_part);
	free(m.places);
	return rc;
}

/** pftree_model_free - all but the topology */
void pftree_model_free(struct pftree *p)
{
	rsm_fat_tree_free(&p->tree);
	for (uint32_t i = 0; i < p->n_trees; i++)
		free(p->trees[i].out);
	for (uint32_t i = 0; p->links && i < p->n_links; i++)
		free(p->links[i].users);
	free(p->parts);
	free(p->members);
	free(p->classes);
	free(p->class_of);
	free(p->trees);
	free(p->tree_of);
	free(p->demands);
	free(p->first_link);
	free(p->links);
	free(p->marks);
	free(p->pairs);
	free(p->meet);
	free(p->weights);
	*p = (struct pftree) { 0 };
}
