// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pFTree, pFTree-Ext and pFTree-Wt: a plan that keeps all that is wanted, tables around it, lanes.
 * What can not be kept is given up, one partition after the other, or is an error if the policy is
 * strict.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "pftree.h"
#include "pftree_known.h"
#include "router.h"

/**
 * struct lanes - what is left of the work, for SLs and for the next routing
 * @topo: the fabric
 * @p: only parts, members and classes
 * @class_of: by LID, or PFTREE_NOBODY
 * @n_lids: of them
 * @n: lanes
 * @known: partitions
 */
struct lanes {
	const struct rsm_topo *topo;
	struct pftree p;
	uint32_t *class_of;
	uint32_t n_lids;
	int n;
	struct pftree_known known;
};

static void lanes_free(void *context)
{
	struct lanes *lanes = context;

	if (!lanes)
		return;
	pftree_known_free(&lanes->known);
	free(lanes->class_of);
	free(lanes->p.parts);
	free(lanes->p.members);
	free(lanes->p.classes);
	free(lanes);
}

/* Takes over what it needs. */
static struct lanes *lanes_of(struct pftree *p)
{
	struct lanes *lanes = calloc(1, sizeof(*lanes));

	if (!lanes)
		return NULL;
	lanes->n_lids = p->topo->max_lid + 1u;
	lanes->class_of = malloc(lanes->n_lids * sizeof(*lanes->class_of));
	if (!lanes->class_of) {
		free(lanes);
		return NULL;
	}
	memset(lanes->class_of, 0xff, lanes->n_lids * sizeof(*lanes->class_of));
	for (uint32_t i = 0; i < p->topo->n_ends; i++)
		for (unsigned int lid = 0; lid < p->topo->ends[i].n_lids; lid++)
			lanes->class_of[p->topo->ends[i].lid + lid] = p->class_of[i];
	lanes->n = p->lanes;
	lanes->topo = p->topo;
	lanes->p.parts = p->parts;
	lanes->p.members = p->members;
	lanes->p.classes = p->classes;
	p->parts = NULL;
	p->members = NULL;
	p->classes = NULL;
	return lanes;
}

static uint8_t pftree_sl(void *context, uint16_t slid, uint16_t dlid)
{
	const struct lanes *lanes = context;
	uint32_t part;

	if (slid >= lanes->n_lids || dlid >= lanes->n_lids ||
	    lanes->class_of[slid] == PFTREE_NOBODY || lanes->class_of[dlid] == PFTREE_NOBODY)
		return 0;
	part = pftree_common(&lanes->p, lanes->class_of[slid], lanes->class_of[dlid]);
	return part == PFTREE_NOBODY ? 0 : lanes->p.parts[part].lane;
}

/* A host's link may have fewer lanes than those between switches. */
static uint8_t pftree_vl(void *context, int32_t sw, uint16_t in, uint32_t out, uint8_t sl)
{
	const struct lanes *lanes = context;
	const struct rsm_topo *topo = lanes->topo;
	int vls = sw < 0 ? topo->ends[out].vls : topo->switches[sw].ports[out].vls;

	(void)in;
	return sl % (vls && vls < lanes->n ? vls : lanes->n);
}

static void give_up(struct pftree *p, uint32_t who)
{
	p->parts[who].isolation--;
	p->hard = false;
	for (uint32_t i = 0; i < p->n_parts; i++)
		p->hard |= p->parts[i].isolation != PFTREE_DEF;
}

static int refuse(const struct pftree *p, uint32_t who, const char *reason, char *why, size_t size)
{
	snprintf(why, size, "partition %s (0x%04x) can not be %s: %s", p->parts[who].name,
		 p->parts[who].pkey, pftree_isolation_name(p->parts[who].isolation), reason);
	return -EINVAL;
}

/* A plan for what can be kept. */
static int settle(struct pftree *p, bool strict, char *why, size_t size)
{
	char reason[300];
	uint32_t who;
	int rc;

	while (p->hard) {
		rc = pftree_plan(p, &who, reason, sizeof(reason));
		if (rc != -ENOSPC)
			return rc;
		if (strict)
			return refuse(p, who, reason, why, size);
		give_up(p, who);
	}
	pftree_use_clear(p);
	return 0;
}

/* Lanes for the links that are shared in the end; those of the plan fit them in any case. */
static int paint(struct pftree *p)
{
	int *planned = calloc(p->n_parts + 1, sizeof(*planned));
	int rc;

	if (!planned)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_parts; i++)
		planned[i] = p->parts[i].lane;
	rc = pftree_lanes_assign(p);
	for (uint32_t i = 0; rc == -ENOSPC && i < p->n_parts; i++)
		p->parts[i].lane = planned[i];
	free(planned);
	return rc == -ENOSPC ? 0 : rc;
}

/* Whether what is wanted is kept; if not, who does not, in words. */
static bool validate(const struct pftree *p, char *why, size_t size)
{
	uint32_t n = 0, at = 0;

	for (uint32_t i = 0; i < p->n_parts; i++) {
		char where[120];
		uint32_t other;

		if (p->parts[i].wanted == PFTREE_DEF ||
		    !pftree_shared(p, i, &other, where, sizeof(where)))
			continue;
		if (n++ < 3)
			at += snprintf(why + at, size - at,
				       "%spartition %s (0x%04x) is not %s: it shares %s with %s",
				       at ? "; " : "", p->parts[i].name, p->parts[i].pkey,
				       pftree_isolation_name(p->parts[i].wanted), where,
				       p->parts[other].name);
		if (at >= size)
			at = size - 1;
	}
	if (n > 3)
		snprintf(why + at, size - at, "; and %u more", n - 3);
	return !n;
}

static const struct pftree_known *known_before(const struct rsm_routes *routes)
{
	const struct lanes *lanes = routes->before ? routes->before->context : NULL;

	return lanes ? &lanes->known : NULL;
}

static int route_as(struct pftree *p, const struct pftree_policy *policy,
		    const struct rsm_options *opt, struct rsm_routes *routes, char *why, size_t size)
{
	struct lanes *lanes;
	int rc;

	p->lanes = p->topo->vls < opt->pftree_lanes ? p->topo->vls : opt->pftree_lanes;
	for (uint32_t i = 0; i < p->n_parts; i++)
		p->hard |= p->parts[i].isolation != PFTREE_DEF;
	rc = settle(p, policy->strict, why, size);
	rc = rc ?: pftree_route_all(p, routes, opt->pftree_isolation);
	rc = rc ?: paint(p);
	if (rc)
		return rc;
	if (!validate(p, routes->remark, sizeof(routes->remark)) && policy->strict) {
		snprintf(why, size, "%s", routes->remark);
		return -EINVAL;
	}
	pftree_known_remark(known_before(routes), p->topo, policy, routes->remark,
			    sizeof(routes->remark));
	lanes = lanes_of(p);
	routes->context = lanes;
	routes->free = lanes_free;
	if (!lanes || pftree_known_make(&lanes->known, known_before(routes), p->topo, policy)) {
		snprintf(why, size, "no memory");
		return -ENOMEM;
	}
	routes->sl = pftree_sl;
	routes->vl = pftree_vl;
	return 0;
}

static int pftree_route(const struct rsm_topo *topo, const struct rsm_options *opt,
			struct rsm_routes *routes, char *why, size_t size)
{
	struct pftree_policy policy;
	struct pftree p;
	int rc;

	rc = pftree_policy_read(&policy, opt->pftree_policy, why, size);
	if (rc)
		return rc;
	rc = pftree_known_check(known_before(routes), topo, &policy, why, size);
	if (!rc) {
		rc = pftree_model_make(&p, topo, &policy, why, size);
		rc = rc ?: route_as(&p, &policy, opt, routes, why, size);
		pftree_model_free(&p);
	}
	pftree_policy_free(&policy);
	return rc;
}

const struct rsm_router rsm_pftree_router = {
	.name = "pftree",
	.by_partition = true,
	.by_more = true,
	.route = pftree_route,
};
