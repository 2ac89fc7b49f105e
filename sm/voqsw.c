// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * VOQsw: another engine's tables, with lanes that make switches' inputs queue by output (voq.h). Where
 * that engine keeps paths apart by service levels, each of these gets levels and lanes of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "router.h"
#include "voq.h"

/* In the order of the option voqsw_engine. */
static const struct rsm_router *const engines[] = { &rsm_updown_router, &rsm_vftree_router };

/* The other engine's routes are kept: it says in which layer a path is. */
struct voqsw {
	const struct rsm_topo *topo;
	struct rsm_routes base;
	struct rsm_voq voq;
	uint32_t *end_of; /* by LID; UINT32_MAX: nobody's */
	uint32_t n_lids;
};

static void voqsw_free(void *context)
{
	struct voqsw *v = context;

	rsm_voq_free(&v->voq);
	if (v->base.free)
		v->base.free(v->base.context);
	else
		free(v->base.context);
	free(v->end_of);
	free(v);
}

static uint8_t layer(void *context, uint16_t slid, uint16_t dlid)
{
	struct voqsw *v = context;

	return v->base.sl ? v->base.sl(v->base.context, slid, dlid) : 0;
}

static uint8_t sl(void *context, uint16_t slid, uint16_t dlid)
{
	const struct voqsw *v = context;

	if (slid >= v->n_lids || v->end_of[slid] == UINT32_MAX)
		return 0;
	return rsm_voq_sl(&v->voq, v->end_of[slid], dlid);
}

static uint8_t vl(void *context, int32_t sw, uint16_t in, uint32_t out, uint8_t level)
{
	const struct voqsw *v = context;

	if (sw >= 0)
		return rsm_voq_vl(&v->voq, sw, in, out, level);
	return rsm_voq_end_vl(&v->voq, out, level);
}

/* Layers are the service levels that the engine gives, from 0 on. */
static unsigned int count_layers(struct voqsw *v)
{
	unsigned int most = 0;

	for (uint32_t from = 0; v->base.sl && from < v->topo->n_ends; from++)
		for (uint32_t to = 0; to < v->topo->n_ends; to++) {
			unsigned int one = layer(v, v->topo->ends[from].lid, v->topo->ends[to].lid);

			if (from != to && one > most)
				most = one;
		}
	return most + 1;
}

static int number_lids(struct voqsw *v)
{
	v->n_lids = v->topo->max_lid + 1;
	v->end_of = malloc(v->n_lids * sizeof(*v->end_of));
	if (!v->end_of)
		return -ENOMEM;
	memset(v->end_of, 0xff, v->n_lids * sizeof(*v->end_of));
	for (uint32_t i = 0; i < v->topo->n_ends; i++)
		for (unsigned int lid = 0; lid < v->topo->ends[i].n_lids; lid++)
			v->end_of[v->topo->ends[i].lid + lid] = i;
	return 0;
}

static int make(struct voqsw *v, const struct rsm_options *opt, const struct rsm_routes *routes,
		char *why, size_t size)
{
	unsigned int layers = count_layers(v), vls = v->topo->vls / layers;
	struct rsm_voq_spec spec = {
		.topo = v->topo, .lft = routes->lft, .n_lft = v->topo->max_lid + 1, .layers = layers,
		.layer = layer, .context = v, .sls = opt->voqsw_sls / layers, .vls = vls,
		.even = opt->voqsw_even, .hosts = opt->voqsw_hosts,
	};

	if (opt->voqsw_vls && (unsigned int)opt->voqsw_vls / layers < vls)
		spec.vls = opt->voqsw_vls / layers;
	if (!spec.sls || !spec.vls) {
		snprintf(why, size, "%s has %u layers: too few for %u SLs and %u VLs",
			 engines[opt->voqsw_engine]->name, layers, opt->voqsw_sls, v->topo->vls);
		return -EINVAL;
	}
	return rsm_voq_make(&spec, &v->voq, why, size);
}

static int route(const struct rsm_topo *topo, const struct rsm_options *opt,
		 struct rsm_routes *routes, char *why, size_t size)
{
	const struct rsm_router *engine = engines[opt->voqsw_engine];
	struct voqsw *v = calloc(1, sizeof(*v));
	int rc;

	snprintf(why, size, "no memory");
	if (!v)
		return -ENOMEM;
	v->topo = topo;
	v->base = (struct rsm_routes) { .lft = routes->lft, .n_lft = routes->n_lft };
	rc = number_lids(v) ?: engine->route(topo, opt, &v->base, why, size);
	rc = rc ?: make(v, opt, routes, why, size);
	if (rc) {
		voqsw_free(v);
		return rc;
	}
	routes->context = v;
	routes->sl = sl;
	routes->vl = vl;
	routes->free = voqsw_free;
	return 0;
}

const struct rsm_router rsm_voqsw_router = {
	.name = "voqsw",
	.route = route,
};
