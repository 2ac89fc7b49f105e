/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* repath fabric check on the tables of an engine, without OpenSM. */
#ifndef JUDGED_H
#define JUDGED_H

#include <stdbool.h>

#include "router.h"
#include "topo.h"

/**
 * judged - says what is wrong with an engine's tables, SLs and lanes
 * @topo: what was routed, which may be several parts; names are not looked at
 * @routes: the engine's, as router.h has them
 * @minimal: paths must be as short as can be
 * @but: what need not be, a word of struct fault's @kind, or NULL
 *
 * Return: how many faults; each is on standard error.
 */
unsigned int judged(const struct rsm_topo *topo, const struct rsm_routes *routes, bool minimal,
		    const char *but);

#endif
