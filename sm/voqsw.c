// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "router.h"
#include "voqsw.h"

/* In the order of the option voqsw_engine. */
static const struct rsm_router *const engines[] = { &rsm_updown_router, &rsm_vftree_router, &rsm_pftree_router };

/* That there are, or are to be used. */
static unsigned int most_vls(const struct rsm_topo *topo, const struct rsm_options *opt)
{
	unsigned int wanted = opt->voqsw_vls;

	return wanted && wanted < topo->vls ? wanted : topo->vls;
}

/* As the log has it. */
static void describe(const struct rsm_voqsw *v, char *text, size_t size)
{
	int at = snprintf(text, size, "%s has %u layers", v->base.name, v->base.sl ? v->base.layers : 1);

	if (v->base.lanes && (size_t)at < size)
		snprintf(text + at, size - at, " in %u lanes", v->base.lanes);
}

static int make(struct rsm_voqsw *v, const struct rsm_options *opt, char *why, size_t size)
{
	unsigned int vls = most_vls(v->topo, opt), step = 1, lanes;
	struct rsm_voq_spec spec = {
		.topo = v->topo, .lft = v->base.lft, .n_lft = v->n_lids,
		.layers = v->base.sl ? v->base.layers : 1, .layer = v->base.sl, .context = v->base.context,
		.lanes = v->base.lanes, .even = opt->voqsw_even, .hosts = opt->voqsw_hosts,
	};

	spec.sls = opt->voqsw_sls / spec.layers;
	lanes = spec.lanes ?: spec.layers;
	spec.vls = vls / lanes;
	while (step < lanes)
		step *= 2;
	/* If that is no queue less. */
	spec.step = vls / step == spec.vls ? step : lanes;
	if (!spec.sls || !spec.vls) {
		char what[80];

		describe(v, what, sizeof(what));
		snprintf(why, size, "%s: %u SLs and %u VLs are too few", what, opt->voqsw_sls, vls);
		return -EINVAL;
	}
	return rsm_voq_make(&spec, &v->voq, why, size);
}

/**
 * rsm_voqsw_make - service levels and lanes for an engine's tables
 * @topo: the fabric; it stays until rsm_voqsw_free()
 * @opt: how many of them
 * @base: the engine
 * @v: filled in
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0 or a negative error number; then there is nothing to free.
 */
int rsm_voqsw_make(const struct rsm_topo *topo, const struct rsm_options *opt,
		   const struct rsm_voqsw_base *base, struct rsm_voqsw *v, char *why, size_t size)
{
	int rc;

	*v = (struct rsm_voqsw) { .topo = topo, .base = *base };
	snprintf(why, size, "no memory");
	v->n_lids = topo->max_lid + 1;
	v->end_of = rsm_topo_ends_by_lid(topo);
	rc = v->end_of ? make(v, opt, why, size) : -ENOMEM;
	if (rc)
		rsm_voqsw_free(v);
	return rc;
}

/** rsm_voqsw_sl - service level of a path; what switches send has the first one of its layer */
uint8_t rsm_voqsw_sl(const struct rsm_voqsw *v, uint16_t slid, uint16_t dlid)
{
	uint8_t one;

	if (slid < v->n_lids && v->end_of[slid] != UINT32_MAX)
		return rsm_voq_sl(&v->voq, v->end_of[slid], dlid);
	one = v->base.sl ? v->base.sl(v->base.context, slid, dlid) : 0;
	return one < v->voq.spec.layers ? one * v->voq.spec.sls : 0;
}

/** rsm_voqsw_vl - VL of packets of a service level, as struct rsm_routes has it; @lanes: as rsm_voq_vl() */
uint8_t rsm_voqsw_vl(const struct rsm_voqsw *v, int32_t sw, uint16_t in, uint32_t out, uint8_t level,
		     const uint8_t *lanes)
{
	if (sw >= 0)
		return rsm_voq_vl(&v->voq, sw, in, out, level, lanes);
	return rsm_voq_end_vl(&v->voq, out, level, lanes);
}

/**
 * rsm_voqsw_remark - what is not as it was wanted
 * @v: made
 * @opt: that it was made by
 * @remark: for a person; empty: nothing
 * @size: of @remark
 */
void rsm_voqsw_remark(const struct rsm_voqsw *v, const struct rsm_options *opt, char *remark, size_t size)
{
	char what[80];

	*remark = '\0';
	if (v->topo->vls <= 1 || v->voq.spec.vls > 1)
		return;
	describe(v, what, sizeof(what));
	snprintf(remark, size, "no queue: %s for %u SLs and %u VLs", what, opt->voqsw_sls,
		 most_vls(v->topo, opt));
}

/** rsm_voqsw_free - all that hangs on it, but for the fabric */
void rsm_voqsw_free(struct rsm_voqsw *v)
{
	rsm_voq_free(&v->voq);
	free(v->end_of);
	*v = (struct rsm_voqsw) { 0 };
}

/* The other engine's routes are kept: it says in which layer a path is, and what it knew of the ones before. */
struct routed {
	struct rsm_routes base;
	struct rsm_voqsw queues;
};

static void routed_free(void *context)
{
	struct routed *r = context;

	rsm_voqsw_free(&r->queues);
	if (r->base.free)
		r->base.free(r->base.context);
	else
		free(r->base.context);
	free(r);
}

static uint8_t sl(void *context, uint16_t slid, uint16_t dlid)
{
	const struct routed *r = context;

	return rsm_voqsw_sl(&r->queues, slid, dlid);
}

static uint8_t vl(void *context, int32_t sw, uint16_t in, uint32_t out, uint8_t level)
{
	const struct routed *r = context;

	return rsm_voqsw_vl(&r->queues, sw, in, out, level, NULL);
}

/* The highest service level that paths have, + 1. */
static int count_layers(const struct rsm_topo *topo, const struct rsm_router *engine,
			const struct rsm_routes *routes)
{
	bool *seen = calloc(topo->n_switches + 1, sizeof(*seen));
	int n = 1;

	if (!seen)
		return -ENOMEM;
	for (uint32_t from = 0; routes->sl && from < topo->n_ends; from++) {
		const struct rsm_topo_end *end = &topo->ends[from];

		for (uint32_t to = 0; !seen[end->leaf] && to < topo->n_ends; to++) {
			int one = to == from ? 1 :
				  routes->sl(routes->context, end->lid, topo->ends[to].lid) + 1;

			n = one > n ? one : n;
		}
		seen[end->leaf] = engine->by_switch;
	}
	free(seen);
	return n;
}

/* Partitions that share a link get different lanes, as far as there are any: these are no more than leave each a level. */
static int most_layers(const struct rsm_topo *topo, const struct rsm_options *opt)
{
	unsigned int vls = most_vls(topo, opt), sls = opt->voqsw_sls, n = vls < sls ? vls : sls;

	return n < (unsigned int)opt->pftree_lanes ? (int)n : opt->pftree_lanes;
}

/* What is not as it was wanted here, and what the other engine has to say. */
static void remark(const struct routed *r, const struct rsm_options *opt, struct rsm_routes *routes)
{
	char ours[160];

	rsm_voqsw_remark(&r->queues, opt, ours, sizeof(ours));
	snprintf(routes->remark, sizeof(routes->remark), "%s%s%.300s", ours,
		 *ours && *r->base.remark ? "; " : "", r->base.remark);
}

static int route(const struct rsm_topo *topo, const struct rsm_options *opt,
		 struct rsm_routes *routes, char *why, size_t size)
{
	const struct rsm_router *engine = engines[opt->voqsw_engine];
	struct rsm_options its = *opt;
	struct routed *r;
	int rc;

	/* Levels would be by the partitions of a VM, and by where it was before it moved. */
	if (engine->by_partition && opt->vswitch != RSM_VSWITCH_OFF) {
		snprintf(why, size, "voqsw_engine %s: not together with vswitch", engine->name);
		return -EINVAL;
	}
	its.pftree_lanes = most_layers(topo, opt);
	snprintf(why, size, "no memory");
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->base = (struct rsm_routes) { .lft = routes->lft, .n_lft = routes->n_lft };
	if (routes->before)
		r->base.before = &((const struct routed *)routes->before->context)->base;
	rc = engine->route(topo, &its, &r->base, why, size) ?: count_layers(topo, engine, &r->base);
	r->base.before = NULL;
	if (rc > 0) {
		struct rsm_voqsw_base base = {
			.name = engine->name, .lft = routes->lft, .sl = r->base.sl, .layers = rc,
			.context = r->base.context,
		};

		rc = rsm_voqsw_make(topo, opt, &base, &r->queues, why, size);
		if (!rc)
			remark(r, opt, routes);
	}
	if (rc) {
		routed_free(r);
		return rc;
	}
	routes->context = r;
	routes->sl = sl;
	routes->vl = vl;
	routes->free = routed_free;
	return 0;
}

const struct rsm_router rsm_voqsw_router = {
	.name = "voqsw",
	.route = route,
};
