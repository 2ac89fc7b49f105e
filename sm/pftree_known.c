// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A partition that the policy names and that is not there. OpenSM has none without a member in the fabric: if all of
 * them are gone, nothing is left to be isolated. If they are there, the partition file can not be read, or does not
 * have it any more: to route would take from them what they have, whatever the policy insists on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pftree_known.h"

static bool rule_means(const struct pftree_rule *rule, uint16_t pkey, const char *name)
{
	return rule->name[0] ? !strcmp(rule->name, name) : rule->pkey == pkey;
}

static bool is_there(const struct rsm_topo *topo, const struct pftree_rule *rule)
{
	for (uint32_t i = 0; i < topo->n_partitions; i++)
		if (rule_means(rule, topo->partitions[i].pkey, topo->partitions[i].name))
			return true;
	return false;
}

static const struct pftree_known_part *find(const struct pftree_known *known,
					    const struct pftree_rule *rule)
{
	for (uint32_t i = 0; known && i < known->n; i++)
		if (rule_means(rule, known->parts[i].pkey, known->parts[i].name))
			return &known->parts[i];
	return NULL;
}

/* Not known: nobody can say. */
static bool has_hosts(const struct pftree_known_part *part, const struct rsm_topo *topo)
{
	if (!part)
		return true;
	for (uint32_t i = 0; i < part->n_guids; i++)
		if (rsm_topo_end_index(topo, part->guids[i]) >= 0)
			return true;
	return false;
}

static size_t name_it(const struct pftree_rule *rule, const char *more, char *text, size_t size)
{
	if (rule->name[0])
		return snprintf(text, size, "there is no partition %s%s", rule->name, more);
	return snprintf(text, size, "there is no partition 0x%04x%s", rule->pkey, more);
}

/**
 * pftree_known_check - whether what is missing forbids to route
 * @before: of the routing in force; NULL: there is none
 * @topo: the fabric as it is now
 * @policy: what is wanted
 * @why: the reason, for a person
 * @size: of @why
 *
 * Return: 0 or -ENOENT.
 */
int pftree_known_check(const struct pftree_known *before, const struct rsm_topo *topo,
		       const struct pftree_policy *policy, char *why, size_t size)
{
	for (uint32_t r = 0; r < policy->n_rules; r++) {
		const struct pftree_rule *rule = &policy->rules[r];
		const struct pftree_known_part *part = find(before, rule);

		if (is_there(topo, rule) || !has_hosts(part, topo) ||
		    (!policy->strict && (!part || part->gone)))
			continue;
		name_it(rule, part ? " any more, and its hosts are there" : "", why, size);
		return -ENOENT;
	}
	return 0;
}

/**
 * pftree_known_remark - add partitions that there are not
 * @before: of the routing in force; NULL: there is none
 * @topo: the fabric as it is now
 * @policy: what is wanted
 * @remark: of the new routing; with something in it or not
 * @size: of @remark
 */
void pftree_known_remark(const struct pftree_known *before, const struct rsm_topo *topo,
			 const struct pftree_policy *policy, char *remark, size_t size)
{
	size_t at = strlen(remark);

	for (uint32_t r = 0; r < policy->n_rules; r++) {
		const struct pftree_rule *rule = &policy->rules[r];

		if (is_there(topo, rule) || !has_hosts(find(before, rule), topo) || size - at < 3)
			continue;
		if (at)
			at += strlen(strcpy(remark + at, "; "));
		at += name_it(rule, "", remark + at, size - at);
		if (at >= size)
			at = size - 1;
	}
}

static int add(struct pftree_known *known, uint16_t pkey, const char *name, uint32_t n_guids)
{
	struct pftree_known_part *part = &known->parts[known->n++];

	*part = (struct pftree_known_part) {
		.pkey = pkey,
		.name = strdup(name),
		.guids = calloc(n_guids + 1, sizeof(*part->guids)),
		.n_guids = n_guids,
	};
	return part->name && part->guids ? 0 : -ENOMEM;
}

static int add_those_there(struct pftree_known *known, const struct rsm_topo *topo)
{
	int rc = 0;

	for (uint32_t i = 0; i < topo->n_partitions && !rc; i++) {
		const struct rsm_topo_partition *from = &topo->partitions[i];

		rc = add(known, from->pkey, from->name, from->n_members);
		for (uint32_t j = 0; j < from->n_members && !rc; j++)
			known->parts[i].guids[j] = topo->ends[from->members[j].end].guid;
	}
	return rc;
}

/* Hosts that are gone come back: their partition is not a new one then. */
static int add_those_gone(struct pftree_known *known, const struct pftree_known *before,
			  const struct rsm_topo *topo, const struct pftree_policy *policy)
{
	int rc = 0;

	for (uint32_t r = 0; r < policy->n_rules && !rc; r++) {
		const struct pftree_rule *rule = &policy->rules[r];
		const struct pftree_known_part *part = find(before, rule);

		if (!part || is_there(topo, rule))
			continue;
		rc = add(known, part->pkey, part->name, part->n_guids);
		known->parts[known->n - 1].gone = true;
		if (!rc)
			memcpy(known->parts[known->n - 1].guids, part->guids,
			       part->n_guids * sizeof(*part->guids));
	}
	return rc;
}

/**
 * pftree_known_make - what the next routing has to know of this one
 * @known: filled in; for pftree_known_free(), also after a failure
 * @before: of the routing in force; NULL: there is none
 * @topo: the fabric as it is now
 * @policy: what is wanted
 *
 * Return: 0 or -ENOMEM.
 */
int pftree_known_make(struct pftree_known *known, const struct pftree_known *before,
		      const struct rsm_topo *topo, const struct pftree_policy *policy)
{
	*known = (struct pftree_known) {
		.parts = calloc(topo->n_partitions + policy->n_rules + 1, sizeof(*known->parts)),
	};
	if (!known->parts)
		return -ENOMEM;
	return add_those_there(known, topo) ?: add_those_gone(known, before, topo, policy);
}

/** pftree_known_free - all that pftree_known_make() has filled in */
void pftree_known_free(struct pftree_known *known)
{
	for (uint32_t i = 0; i < known->n; i++) {
		free(known->parts[i].name);
		free(known->parts[i].guids);
	}
	free(known->parts);
	*known = (struct pftree_known) { 0 };
}
