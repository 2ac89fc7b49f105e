/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * VOQsw on an engine's tables: lanes that make switches' inputs queue by output (voq.h). Where that
 * engine keeps paths apart by service levels, each of these gets levels and lanes of its own.
 */
#ifndef RSM_VOQSW_H
#define RSM_VOQSW_H

#include <stddef.h>
#include <stdint.h>

#include "voq.h"

struct rsm_options;

/**
 * struct rsm_voqsw_base - the engine that has made the tables
 * @name: of it
 * @lft: by the switch's index
 * @sl: service level of a path, from 0 on, and the same each time; NULL: one for all
 * @layers: how many of them there are
 * @lanes: how many lanes it has for them; 0: each has one of its own
 * @context: for @sl
 */
struct rsm_voqsw_base {
	const char *name;
	uint8_t *const *lft;
	uint8_t (*sl)(void *context, uint16_t slid, uint16_t dlid);
	unsigned int layers;
	unsigned int lanes;
	void *context;
};

/**
 * struct rsm_voqsw - service levels and lanes
 * @topo: the fabric
 * @base: whose tables they are for; its tables are not looked at after rsm_voqsw_make()
 * @voq: what there is
 * @end_of: end's index by LID; UINT32_MAX: nobody's
 * @n_lids: of these
 */
struct rsm_voqsw {
	const struct rsm_topo *topo;
	struct rsm_voqsw_base base;
	struct rsm_voq voq;
	uint32_t *end_of;
	uint32_t n_lids;
};

int rsm_voqsw_make(const struct rsm_topo *topo, const struct rsm_options *opt,
		   const struct rsm_voqsw_base *base, struct rsm_voqsw *v, char *why, size_t size);
uint8_t rsm_voqsw_sl(const struct rsm_voqsw *v, uint16_t slid, uint16_t dlid);
uint8_t rsm_voqsw_vl(const struct rsm_voqsw *v, int32_t sw, uint16_t in, uint32_t out, uint8_t level,
		     const uint8_t *lanes);
void rsm_voqsw_remark(const struct rsm_voqsw *v, const struct rsm_options *opt, char *remark, size_t size);
void rsm_voqsw_free(struct rsm_voqsw *v);

#endif
